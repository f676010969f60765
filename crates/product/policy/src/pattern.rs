//! Patterns of suppressions: does a name match?
//!
//! As in ThreadSanitizer: `*` matches any characters, `^` at the start anchors to the start of the
//! name, `$` at the end to its end, and anything else matches itself. Without anchors a pattern
//! matches anywhere in the name. No pattern matches an empty name. One difference: ThreadSanitizer
//! tries only the leftmost match of what stands before `$`, so its `ab$` misses `abab`; ours does not.
//!
//! Pieces between stars hold no wildcards, so each is matched as far left as possible, except one
//! that is anchored to the end. No backtracking: linear in the pattern and the name.

/// A pattern for names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The pieces between the stars; at least one.
    pieces: Vec<Box<str>>,
    is_at_start: bool,
    is_at_end: bool,
}

impl Pattern {
    /// Parses `text`; every text is a pattern.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let (is_at_start, text) = text.strip_prefix('^').map_or((false, text), |it| (true, it));
        let (is_at_end, text) = text.strip_suffix('$').map_or((false, text), |it| (true, it));
        Self { pieces: text.split('*').map(Box::from).collect(), is_at_start, is_at_end }
    }

    /// Whether `name` matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let Some((last, others)) = self.pieces.split_last() else { return false };
        let mut rest = name;
        for (at, piece) in others.iter().enumerate() {
            let found = if at == 0 && self.is_at_start {
                rest.strip_prefix(&**piece)
            } else {
                rest.split_once(&**piece).map(|(_, after)| after)
            };
            let Some(after) = found else { return false };
            rest = after;
        }
        let is_whole = others.is_empty() && self.is_at_start;
        let is_last_there = match (is_whole, self.is_at_end) {
            (true, true) => rest == &**last,
            (true, false) => rest.starts_with(&**last),
            (false, true) => rest.ends_with(&**last),
            (false, false) => rest.contains(&**last),
        };
        is_last_there && !name.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &str, matched: &[&str], unmatched: &[&str]) {
        let pattern = Pattern::new(pattern);
        for name in matched {
            assert!(pattern.matches(name), "{pattern:?} {name}");
        }
        for name in unmatched {
            assert!(!pattern.matches(name), "{pattern:?} {name}");
        }
    }

    #[test]
    fn without_anchors_a_pattern_may_be_anywhere() {
        check("bar", &["bar", "foobar", "barfoo", "foobarfoo"], &["", "ba", "b.ar"]);
        check("b*r", &["br", "a bar here"], &["rb", "b"]);
        check("*", &["x"], &[""]);
    }

    #[test]
    fn anchors_hold_the_start_and_the_end() {
        check("^foo", &["foo", "foobar"], &["xfoo", ""]);
        check("foo$", &["foo", "xfoo", "foofoo"], &["foox"]);
        check("^foo$", &["foo"], &["foofoo", "foo ", ""]);
        check(
            "^std::*::push$",
            &["std::vec::push", "std::::push"],
            &["std::push", "x std::a::push"],
        );
        check("ab*b$", &["abb", "xabxb", "abab"], &["ab", "abx"]);
        check("a$b^", &["xa$b^"], &["ab"]);
    }

    #[test]
    fn many_stars_take_no_more_time_than_few() {
        let pattern = Pattern::new(&format!("{}b$", "a*".repeat(10_000)));
        assert!(!pattern.matches(&"a".repeat(1_000_000)));
        assert!(pattern.matches(&format!("{}b", "a".repeat(1_000_000))));
    }

    /// What the letters of a pattern mean, tried in every way.
    fn is_glob(pattern: &[char], name: &[char]) -> bool {
        match pattern {
            [] => name.is_empty(),
            ['*', rest @ ..] => (0..=name.len()).any(|skipped| is_glob(rest, &name[skipped..])),
            [letter, rest @ ..] => name.first() == Some(letter) && is_glob(rest, &name[1..]),
        }
    }

    /// Whether `name` matches `pattern` by definition.
    fn reference(pattern: &str, name: &str) -> bool {
        let start = if pattern.starts_with('^') { "" } else { "*" };
        let inner = pattern.strip_prefix('^').unwrap_or(pattern);
        let end = if inner.ends_with('$') { "" } else { "*" };
        let inner = inner.strip_suffix('$').unwrap_or(inner);
        let whole: Vec<char> = format!("{start}{inner}{end}").chars().collect();
        !name.is_empty() && is_glob(&whole, &name.chars().collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn matches_what_the_definition_matches(
            pattern in "\\^?[ab*é]{0,6}\\$?",
            name in "[abé]{0,8}",
        ) {
            prop_assert_eq!(Pattern::new(&pattern).matches(&name), reference(&pattern, &name));
        }

        #[test]
        fn no_text_is_too_strange(pattern in ".*", name in ".*") {
            let is_matched = Pattern::new(&pattern).matches(&name);
            prop_assert!(!(is_matched && name.is_empty()));
        }
    }
}
