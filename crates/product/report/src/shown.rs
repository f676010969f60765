//! Text that shows what it holds and does nothing else.

use std::borrow::Cow;
use std::fmt::Write as _;

/// How long a line of prose gets.
pub const LINE_MAX: usize = 96;

/// `text` with every character that could move the cursor, colour the terminal, turn the writing
/// around or vanish, or that XML cannot carry, replaced by its escape, such as `\u{1b}`.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if is_hidden(letter) {
            // Writing to a string cannot fail.
            _ = write!(out, "{}", letter.escape_unicode());
        } else {
            out.push(letter);
        }
    }
    Cow::Owned(out)
}

/// At most `letters_max` letters of `text`, shown; an ellipsis replaces the rest.
pub fn clipped(text: &str, letters_max: usize) -> String {
    let text = shown(text);
    match text.char_indices().nth(letters_max) {
        None => text.into_owned(),
        Some(_) => text.chars().take(letters_max - 1).chain(['…']).collect(),
    }
}

/// An operation as `w(app::stats.bytes)`, in at most `letters_max` letters: without the namespaces of its name, then
/// without the start of the name, since names that are alike differ at their ends.
pub fn clipped_op(text: &str, letters_max: usize) -> String {
    let text = shown(text);
    let is_short = |text: &str| text.chars().count() <= letters_max;
    if is_short(&text) {
        return text.into_owned();
    }
    let spelled = without_namespaces(&text);
    let Some((op, name, value)) = parts(&spelled).filter(|_| !is_short(&spelled)) else {
        return clipped(&spelled, letters_max);
    };
    let around = op.chars().count() + value.chars().count() + "(…)".chars().count();
    match letters_max.checked_sub(around).filter(|&left| left >= NAME_MIN) {
        Some(left) => {
            let skipped = name.chars().count() - left;
            let end: String = name.chars().skip(skipped).collect();
            format!("{op}(…{end}){value}")
        }
        None => clipped(&spelled, letters_max),
    }
}

/// An operation without the namespaces of its name.
pub fn without_namespaces(text: &str) -> String {
    match parts(text) {
        Some((op, name, value)) => format!("{op}({}){value}", &name[namespaces(name)..]),
        None => text.to_owned(),
    }
}

/// What an operation does, with what, and what follows, as in `r(x) = 1`; none if it names nothing.
fn parts(text: &str) -> Option<(&str, &str, &str)> {
    let (op, rest) = text.split_once('(')?;
    let (name, value) = rest.rsplit_once(')')?;
    Some((op, name, value))
}

/// How many letters of a name are worth showing.
const NAME_MIN: usize = 8;

/// How long the namespaces in front of the variable in `name` are: those of its members and within brackets are no
/// part of them.
fn namespaces(name: &str) -> usize {
    let (mut depth, mut end) = (0_u32, 0);
    for (at, letter) in name.char_indices() {
        match letter {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '.' if depth == 0 => break,
            ':' if depth == 0 && name[..at].ends_with(':') => end = at + 1,
            _ => {}
        }
    }
    end
}

/// `text` in lines of at most `letters_max` letters, as far as its words allow.
pub fn wrapped(text: &str, letters_max: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in text.split(' ') {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > letters_max {
            lines.push(String::new());
            length = 0;
        }
        let line = lines.last_mut().expect("there is a line to start with");
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += word_length;
    }
    lines
}

/// `text`, shown, with the characters that mean something to HTML escaped.
#[must_use]
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in shown(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// `text` as markup, with what stands between backticks as code.
#[must_use]
pub fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut out = String::with_capacity(text.len());
    for (at, part) in parts.iter().enumerate() {
        let is_code = at % 2 == 1 && at + 1 < parts.len();
        match at {
            0 => out += &markup(part),
            _ if is_code => out += &format!("<code>{}</code>", markup(part)),
            // The last backtick of an odd number of them closes nothing.
            _ if at % 2 == 1 => out += &format!("`{}", markup(part)),
            _ => out += &markup(part),
        }
    }
    out
}

/// `text`, with a capital letter at its start.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Whether `letter` could move the cursor, colour the terminal, turn the writing around or vanish.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}' | '\u{fffe}'..='\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_turned_writing_are_shown_not_done() {
        assert_eq!(shown("\u{1b}[2Jx\r\n"), "\\u{1b}[2Jx\\u{d}\\u{a}");
        assert_eq!(shown("a\u{202e}b\u{9b}1m"), "a\\u{202e}b\\u{9b}1m");
        assert_eq!(shown("größe[3] <b>"), "größe[3] <b>");
    }

    #[test]
    fn markup_is_text() {
        assert_eq!(markup("<script>\"&'"), "&lt;script&gt;&quot;&amp;&#39;");
    }

    #[test]
    fn backticks_in_pairs_are_code() {
        assert_eq!(prose("`w(<x>)` at a"), "<code>w(&lt;x&gt;)</code> at a");
        assert_eq!(prose("a ` b"), "a ` b");
        assert_eq!(prose("`a` `b"), "<code>a</code> `b");
    }

    #[test]
    fn long_text_is_clipped_at_a_letter() {
        assert_eq!(clipped("äöüß", 3), "äö…");
        assert_eq!(clipped("äöü", 3), "äöü");
    }

    #[test]
    fn a_long_operation_keeps_the_end_of_its_name() {
        let cases = [
            ("w(app::x)", "w(app::x)"),
            ("r(warehouse::TOTALS.weight)", "r(TOTALS.weight)"),
            ("r(warehouse::TOTALS.0.weight.grams)", "r(…LS.0.weight.grams)"),
            ("r(cache()::the_cache.order_)", "r(the_cache.order_)"),
            ("r(Table<app::Key>#2.count)", "r(…app::Key>#2.count)"),
            ("r(a_rather_long_name) = 12345", "r(…long_name) = 12345"),
            ("r(name_that_is_long) = 1234567890123", "r(name_that_is_long)…"),
            ("a text without a name", "a text without a name"),
            ("a longer text without a name", "a longer text withou…"),
            ("w(äöüäöüäöüäöüäöüäöüäöüäöü)", "w(…öüäöüäöüäöüäöüäöü)"),
        ];
        for (text, expected) in cases {
            let clipped = clipped_op(text, 21);
            assert!(clipped.chars().count() <= 21, "{clipped}");
            assert_eq!(clipped, expected);
        }
    }

    #[test]
    fn prose_is_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable a b", 3), ["unbreakable", "a b"]);
        assert_eq!(wrapped("", 3), [""]);
    }
}
