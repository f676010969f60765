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
    fn prose_is_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable a b", 3), ["unbreakable", "a b"]);
        assert_eq!(wrapped("", 3), [""]);
    }
}
