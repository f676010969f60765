//! Which parts of a line of code are keywords, strings, numbers, comments and directives.
//!
//! A tokenizer, not a parser: it knows the words and the quotes of C, C++, Java, Rust and our own
//! language, and carries from line to line only whether a comment or a string goes on. Whatever the
//! text is, the lengths that it gives add up to the text; a wrong colour is the worst that code it
//! does not understand can cause. It takes time linear in the text.

/// A language whose code is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cpp,
    Java,
    Rust,
    /// Our own.
    Reweave,
}

/// What a part of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Plain,
    Keyword,
    String,
    Number,
    Comment,
    Directive,
}

impl Class {
    /// How pages know it.
    pub const fn letter(self) -> char {
        match self {
            Self::Plain => '-',
            Self::Keyword => 'k',
            Self::String => 's',
            Self::Number => 'n',
            Self::Comment => 'c',
            Self::Directive => 'd',
        }
    }
}

/// How long the delimiter of a raw string of C++ may be.
const DELIMITER_MAX: usize = 16;

/// What goes on from the line before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    #[default]
    Code,
    /// A comment, so deep in others.
    Comment(u32),
    /// A string that ends with this quote, unless a backslash is before it.
    Quoted,
    /// A raw string of Rust, which ends with a quote and so many `#`.
    Raw(u32),
    /// A raw string of C++, which ends with `)`, this and a quote.
    Delimited([u8; DELIMITER_MAX], u8),
    /// A text block of Java.
    Block,
}

#[rustfmt::skip]
const C: &[&str] = &[
    "alignas", "alignof", "asm", "auto", "bool", "break", "case", "char", "const", "constexpr",
    "continue", "default", "do", "double", "else", "enum", "extern", "false", "float", "for",
    "goto", "if", "inline", "int", "long", "nullptr", "register", "restrict", "return", "short",
    "signed", "sizeof", "static", "static_assert", "struct", "switch", "thread_local", "true",
    "typedef", "typeof", "union", "unsigned", "void", "volatile", "while", "_Alignas", "_Alignof",
    "_Atomic", "_Bool", "_Complex", "_Generic", "_Noreturn", "_Static_assert", "_Thread_local",
];

#[rustfmt::skip]
const CPP: &[&str] = &[
    "catch", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield",
    "concept", "const_cast", "consteval", "constinit", "decltype", "delete", "dynamic_cast",
    "explicit", "export", "final", "friend", "mutable", "namespace", "new", "noexcept", "operator",
    "override", "private", "protected", "public", "reinterpret_cast", "requires", "static_cast",
    "template", "this", "throw", "try", "typeid", "typename", "using", "virtual", "wchar_t",
];

#[rustfmt::skip]
const JAVA: &[&str] = &[
    "abstract", "assert", "boolean", "break", "byte", "case", "catch", "char", "class", "continue",
    "default", "do", "double", "else", "enum", "extends", "false", "final", "finally", "float",
    "for", "if", "implements", "import", "instanceof", "int", "interface", "long", "native", "new",
    "null", "package", "permits", "private", "protected", "public", "record", "return", "sealed",
    "short", "static", "strictfp", "super", "switch", "synchronized", "this", "throw", "throws",
    "transient", "true", "try", "var", "void", "volatile", "while", "yield",
];

#[rustfmt::skip]
const RUST: &[&str] = &[
    "as", "async", "await", "bool", "break", "char", "const", "continue", "crate", "dyn", "else",
    "enum", "extern", "f32", "f64", "false", "fn", "for", "i128", "i16", "i32", "i64", "i8", "if",
    "impl", "in", "isize", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return",
    "self", "Self", "static", "str", "struct", "super", "trait", "true", "type", "u128", "u16",
    "u32", "u64", "u8", "unsafe", "use", "usize", "where", "while",
];

#[rustfmt::skip]
const REWEAVE: &[&str] = &[
    "assert", "assume", "atomic", "break", "cas", "cobegin", "coforeach", "cond", "continue",
    "else", "expect", "fetchadd", "fn", "focus", "for", "fork", "if", "in", "join", "let", "lock",
    "main", "notify", "notifyall", "return", "shared", "skip", "sync", "thread", "unlock", "wait",
    "while",
];

impl Language {
    /// The language of the file called `name`, by how it ends.
    pub fn of(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "c" | "i" | "inc" => Some(Self::C),
            "C" | "H" | "c++" | "cc" | "cp" | "cpp" | "cu" | "cxx" | "def" | "h" | "h++" | "hh"
            | "hpp" | "hxx" | "ii" | "inl" | "ipp" | "ixx" | "m" | "mm" | "tcc" | "tpp" => {
                Some(Self::Cpp)
            }
            "java" => Some(Self::Java),
            "rs" => Some(Self::Rust),
            "rw" => Some(Self::Reweave),
            _ => None,
        }
    }

    fn is_keyword(self, word: &str) -> bool {
        match self {
            Self::C => C.contains(&word),
            Self::Cpp => C.contains(&word) || CPP.contains(&word),
            Self::Java => JAVA.contains(&word),
            Self::Rust => RUST.contains(&word),
            Self::Reweave => REWEAVE.contains(&word),
        }
    }

    const fn has_directives(self) -> bool {
        matches!(self, Self::C | Self::Cpp)
    }
}

/// The parts of `text`, a line of `language` that starts in `state`, with their lengths in bytes; and
/// the state in which the next line starts.
pub fn line(language: Language, state: State, text: &str) -> (Vec<(Class, usize)>, State) {
    let mut scanner = Scanner { language, text, at: 0, state, parts: Vec::new() };
    scanner.run();
    (scanner.parts, scanner.state)
}

/// The state in which each line of `text` starts.
pub fn states(language: Language, text: &str) -> Vec<State> {
    let mut state = State::Code;
    let mut states = Vec::new();
    for text in text.lines() {
        states.push(state);
        state = line(language, state, text).1;
    }
    states
}

struct Scanner<'t> {
    language: Language,
    text: &'t str,
    /// How far it is, between two letters.
    at: usize,
    state: State,
    parts: Vec<(Class, usize)>,
}

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next `length` bytes are `class`.
    fn push(&mut self, class: Class, length: usize) {
        self.at += length;
        match self.parts.last_mut() {
            Some((last, sum)) if *last == class => *sum += length,
            _ if length > 0 => self.parts.push((class, length)),
            _ => {}
        }
    }

    fn run(&mut self) {
        if self.language.has_directives() && self.state == State::Code {
            self.directive();
        }
        while self.at < self.text.len() {
            match self.state {
                State::Code => self.code(),
                State::Comment(depth) => self.comment(depth),
                State::Quoted => self.until(|rest| quote_end(rest, '"')),
                State::Raw(count) => {
                    let end = format!("\"{}", "#".repeat(count as usize));
                    self.until(|rest| rest.find(&end).map(|at| at + end.len()));
                }
                State::Delimited(delimiter, length) => {
                    let delimiter = String::from_utf8_lossy(&delimiter[..length as usize]);
                    let end = format!("){delimiter}\"");
                    self.until(|rest| rest.find(&end).map(|at| at + end.len()));
                }
                State::Block => self.until(|rest| rest.find("\"\"\"").map(|at| at + 3)),
            }
        }
        // In C a string ends with its line, whatever is missing, unless the line says that it goes on.
        let goes_on = self.language == Language::Rust || self.text.ends_with('\\');
        if self.state == State::Quoted && !goes_on {
            self.state = State::Code;
        }
    }

    /// A string up to where `end` says that it ends, or the rest of the line.
    fn until(&mut self, end: impl FnOnce(&str) -> Option<usize>) {
        let end = end(self.rest());
        self.push(Class::String, end.unwrap_or(self.rest().len()));
        if end.is_some() {
            self.state = State::Code;
        }
    }

    fn comment(&mut self, depth: u32) {
        let rest = self.rest();
        let end = rest.find("*/");
        let nested = rest.find("/*").filter(|_| self.language == Language::Rust);
        match (end, nested) {
            (_, Some(start)) if end.is_none_or(|end| start < end) => {
                self.push(Class::Comment, start + 2);
                self.state = State::Comment(depth.saturating_add(1));
            }
            (Some(end), _) => {
                self.push(Class::Comment, end + 2);
                self.state = if depth > 1 { State::Comment(depth - 1) } else { State::Code };
            }
            (None, _) => self.push(Class::Comment, rest.len()),
        }
    }

    /// `#include <x>`, `#define`.
    fn directive(&mut self) {
        let rest = self.rest();
        let blanks = rest.len() - rest.trim_start().len();
        if !rest[blanks..].starts_with('#') {
            return;
        }
        self.push(Class::Plain, blanks);
        let after = &self.rest()[1..];
        let name = after.trim_start();
        let word = word_length(name);
        self.push(Class::Directive, 1 + after.len() - name.len() + word);
        let rest = self.rest();
        let file = rest.trim_start();
        if name[..word] == *"include" && file.starts_with('<') {
            self.push(Class::Plain, rest.len() - file.len());
            self.push(Class::String, file.find('>').map_or(file.len(), |at| at + 1));
        }
    }

    fn code(&mut self) {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return };
        let second = rest[first.len_utf8()..].chars().next();
        match (first, second) {
            ('/', Some('/')) => self.push(Class::Comment, rest.len()),
            ('/', Some('*')) => {
                self.push(Class::Comment, 2);
                self.state = State::Comment(1);
            }
            ('#', Some('[' | '!')) if self.language == Language::Rust => {
                self.push(Class::Directive, rest.find(']').map_or(rest.len(), |at| at + 1));
            }
            ('@', Some(letter)) if self.language == Language::Java && letter.is_alphabetic() => {
                self.push(Class::Directive, 1 + word_length(&rest[1..]));
            }
            ('"', _) => self.string(),
            ('\'', _) => self.letter(),
            _ if first.is_ascii_digit() => self.push(Class::Number, number_length(rest)),
            _ if first == '_' || first.is_alphabetic() => self.word(),
            _ => self.push(Class::Plain, first.len_utf8()),
        }
    }

    /// A string that starts with a quote.
    fn string(&mut self) {
        if self.language == Language::Java && self.rest().starts_with("\"\"\"") {
            self.push(Class::String, 3);
            self.state = State::Block;
            return;
        }
        self.push(Class::String, 1);
        self.state = State::Quoted;
    }

    /// `'x'`, or in Rust the name of a lifetime.
    fn letter(&mut self) {
        let rest = &self.rest()[1..];
        let end = quote_end(rest, '\'').filter(|&end| {
            // A lifetime has no quote right after its first letter.
            let length = rest.chars().next().map_or(0, char::len_utf8);
            self.language != Language::Rust || rest.starts_with('\\') || end == length + 1
        });
        match end {
            Some(end) => self.push(Class::String, 1 + end),
            None => self.push(Class::Plain, 1),
        }
    }

    fn word(&mut self) {
        let rest = self.rest();
        let length = word_length(rest);
        let (word, after) = rest.split_at(length);
        match (self.language, word) {
            (Language::Rust, "r" | "br" | "cr") => {
                let hashes = after.len() - after.trim_start_matches('#').len();
                if after[hashes..].starts_with('"') {
                    self.push(Class::String, length + hashes + 1);
                    self.state = State::Raw(hashes as u32);
                    return;
                }
            }
            (Language::Rust, "b" | "c") if after.starts_with(['"', '\'']) => {
                self.push(Class::String, length);
                return;
            }
            (Language::Cpp, "R" | "LR" | "uR" | "UR" | "u8R") if after.starts_with('"') => {
                if let Some((delimiter, start)) = delimiter(&after[1..]) {
                    self.push(Class::String, length + 1 + start);
                    self.state = delimiter;
                    return;
                }
            }
            _ => {}
        }
        let is_keyword = self.language.is_keyword(word);
        self.push(if is_keyword { Class::Keyword } else { Class::Plain }, length);
    }
}

/// The delimiter before the `(` of a raw string, and where its text starts.
fn delimiter(text: &str) -> Option<(State, usize)> {
    let end = text.find('(').filter(|&end| end <= DELIMITER_MAX)?;
    let mut delimiter = [0; DELIMITER_MAX];
    delimiter[..end].copy_from_slice(&text.as_bytes()[..end]);
    Some((State::Delimited(delimiter, end as u8), end + 1))
}

/// How many bytes of `text` there are up to `quote`, which is no part of an escape, and it.
fn quote_end(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if letter == quote => return Some(at + letter.len_utf8()),
            _ => {}
        }
    }
    None
}

/// How long the word is that `text` starts with.
fn word_length(text: &str) -> usize {
    text.find(|letter: char| letter != '_' && !letter.is_alphanumeric()).unwrap_or(text.len())
}

/// How long the number is that `text` starts with.
fn number_length(text: &str) -> usize {
    let mut last = ' ';
    for (at, letter) in text.char_indices() {
        let next = text[at + letter.len_utf8()..].chars().next();
        let is_part = match letter {
            '.' => next.is_none_or(|next| next.is_ascii_digit()) && last != '.',
            '\'' => next.is_some_and(|next| next.is_ascii_hexdigit()),
            '+' | '-' => matches!(last, 'e' | 'E' | 'p' | 'P') && !text.starts_with("0x"),
            _ => letter == '_' || letter.is_alphanumeric(),
        };
        if !is_part {
            return at;
        }
        last = letter;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    /// Each part of a text that is not plain, with what it is.
    #[track_caller]
    fn check(name: &str, text: &str, expected: &Expect) {
        let language = Language::of(name).unwrap();
        let mut state = State::Code;
        let mut out = String::new();
        for text in text.lines() {
            let (parts, next) = line(language, state, text);
            let mut at = 0;
            for (class, length) in parts {
                let part = &text[at..at + length];
                if class != Class::Plain {
                    out += &format!("{}:{part} ", class.letter());
                }
                at += length;
            }
            assert_eq!(at, text.len());
            out = out.trim_end().to_owned() + "\n";
            state = next;
        }
        expected.assert_eq(&out);
    }

    #[test]
    fn c_has_words_quotes_numbers_and_directives() {
        check(
            "a.c",
            "  #include <stdio.h> // io\nstatic int x = 0x1F + 1.5e-3; /* two\nlines */ char c = '\\'';\nputs(\"a \\\" b\" L\"c\");\n\"open\nreturn 10'000;",
            &expect![[r##"
                d:#include s:<stdio.h> c:// io
                k:static k:int n:0x1F n:1.5e-3 c:/* two
                c:lines */ k:char s:'\''
                s:"a \" b" s:"c"
                s:"open
                k:return n:10'000
            "##]],
        );
    }

    #[test]
    fn cpp_has_raw_strings() {
        check(
            "a.cpp",
            "auto s = R\"x(one \"\n)\" two)x\"; class T;",
            &expect![[r#"
                k:auto s:R"x(one "
                s:)" two)x" k:class
            "#]],
        );
    }

    #[test]
    fn rust_has_lifetimes_raw_strings_and_nested_comments() {
        check(
            "a.rs",
            "#[test]\nfn f<'a>(x: &'a str) { let c = 'x'; r#\"a\"b\nc\"# }\n/* a /* b */ c\n*/ 0..10 \"two\nlines\" b'\\n' 1.max(2)",
            &expect![[r##"
                d:#[test]
                k:fn k:str k:let s:'x' s:r#"a"b
                s:c"#
                c:/* a /* b */ c
                c:*/ n:0 n:10 s:"two
                s:lines" s:b'\n' n:1 n:2
            "##]],
        );
    }

    #[test]
    fn java_has_annotations_and_text_blocks() {
        check(
            "A.java",
            "@Override public void run() {\nvar s = \"\"\"\n  class\n\"\"\"; synchronized (this) {}",
            &expect![[r#"
                d:@Override k:public k:void
                k:var s:"""
                s:  class
                s:""" k:synchronized k:this
            "#]],
        );
    }

    #[test]
    fn only_code_is_coloured() {
        assert_eq!(Language::of("a.txt"), None);
        assert_eq!(Language::of("Makefile"), None);
        assert_eq!(Language::of("src/x.hpp"), Some(Language::Cpp));
    }

    proptest! {
        #[test]
        fn the_parts_of_any_text_are_the_text(
            text in "(\\PC|[\"'#/*\\\\\n(]){0,60}|[rbRu8\"'#/*\\\\()x\n]{0,60}",
            name in prop::sample::select(vec!["a.c", "a.cpp", "a.java", "a.rs", "a.rw"]),
        ) {
            let language = Language::of(name).unwrap();
            let mut state = State::Code;
            for text in text.lines() {
                let (parts, next) = line(language, state, text);
                prop_assert_eq!(parts.iter().map(|&(_, length)| length).sum::<usize>(), text.len());
                let mut at = 0;
                for (_, length) in parts {
                    at += length;
                    prop_assert!(text.is_char_boundary(at));
                }
                state = next;
            }
        }
    }
}
