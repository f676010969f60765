//! The arguments of compilers: response files, and which sanitizers are on.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

/// The most response files that one call may name, so that one that names itself comes to an end.
const FILES_MAX: usize = 2000;

/// The arguments with each `@file` replaced by what the file says. As compilers do, one that cannot
/// be read stands for itself.
pub(super) fn expanded(arguments: &[OsString]) -> Vec<OsString> {
    let mut expanded = Vec::with_capacity(arguments.len());
    let mut pending: Vec<OsString> = arguments.iter().rev().cloned().collect();
    let mut files = 0;
    while let Some(argument) = pending.pop() {
        let named = argument.as_encoded_bytes().strip_prefix(b"@");
        let contents = named.filter(|_| files < FILES_MAX).and_then(|name| {
            let name = from_bytes(name.to_vec());
            let path = Path::new(&name);
            path.is_file().then(|| fs::read(path).ok()).flatten()
        });
        match contents {
            Some(contents) => {
                files += 1;
                pending.extend(words(&contents).into_iter().rev());
            }
            None => expanded.push(argument),
        }
    }
    expanded
}

/// The words of a response file: separated by white space, which quotes and backslashes protect. A
/// backslash protects inside quotes of both kinds.
pub(super) fn words(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote: Option<u8> = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        let current = &mut word;
        match (byte, quote) {
            (b'\\', _) => {
                current.get_or_insert_default().extend(bytes.next());
            }
            (_, Some(open)) if byte == open => quote = None,
            (b'"' | b'\'', None) => {
                quote = Some(byte);
                current.get_or_insert_default();
            }
            (_, None) if byte.is_ascii_whitespace() => words.extend(current.take()),
            _ => current.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words.into_iter().map(from_bytes).collect()
}

#[cfg(unix)]
fn from_bytes(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
fn from_bytes(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Sanitizers whose runtime stands where ours must stand.
const RIVALS: [&str; 8] = [
    "address",
    "hwaddress",
    "kernel-address",
    "kernel-hwaddress",
    "leak",
    "memory",
    "kernel-memory",
    "dataflow",
];

/// What the arguments say of sanitizers, the last word counting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sanitizers {
    /// Whether the thread sanitizer is asked for or forbidden.
    pub(super) thread: Option<bool>,
    /// One that cannot be combined with recording.
    pub(super) rival: Option<&'static str>,
}

/// The sanitizers that the arguments turn on or off. Response files must have been expanded.
pub(super) fn sanitizers(arguments: &[OsString]) -> Sanitizers {
    let mut found = Sanitizers::default();
    let mut rivals = [false; RIVALS.len()];
    for argument in arguments.iter().filter_map(|argument| argument.to_str()) {
        let (names, is_on) = match argument.strip_prefix("-fsanitize=") {
            Some(names) => (names, true),
            None => match argument.strip_prefix("-fno-sanitize=") {
                Some(names) => (names, false),
                None => continue,
            },
        };
        for name in names.split(',') {
            let is_all = name == "all" && !is_on;
            if name == "thread" || is_all {
                found.thread = Some(is_on);
            }
            for (rival, state) in RIVALS.iter().zip(&mut rivals) {
                if *rival == name || is_all {
                    *state = is_on;
                }
            }
        }
    }
    found.rival = RIVALS.into_iter().zip(rivals).find(|(_, is_on)| *is_on).map(|(name, _)| name);
    found
}

/// Whether optimisation while linking is asked for.
pub(super) fn optimises_while_linking(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| argument == "-flto" || starts_with(argument, "-flto="))
}

pub(super) fn starts_with(argument: &OsStr, start: &str) -> bool {
    argument.as_encoded_bytes().starts_with(start.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(words(text.as_bytes()), strings(expected));
    }

    #[test]
    fn response_files_are_split_as_compilers_split_them() {
        check("", &[]);
        check(" a\tb\nc ", &["a", "b", "c"]);
        check(r#""a b" 'c d' e\ f"#, &["a b", "c d", "e f"]);
        check(r#"'a\'b' "a\"b" -D'X="y"'"#, &["a'b", "a\"b", "-DX=\"y\""]);
        check("'' \"\"", &["", ""]);
        check("'open", &["open"]);
    }

    #[test]
    fn response_files_may_name_others_and_even_themselves() {
        let folder = tempfile::TempDir::new().unwrap();
        let name = |file: &str| format!("@{}", folder.path().join(file).display());
        let put = |file: &str, text: String| fs::write(folder.path().join(file), text).unwrap();
        put("inner", "-static b.c".to_owned());
        put("outer", format!("-c {} -O2", name("inner")));
        let outer = strings(&["a.c", &name("outer"), "@missing"]);
        assert_eq!(expanded(&outer), strings(&["a.c", "-c", "-static", "b.c", "-O2", "@missing"]));
        put("self", format!("-c {}", name("self")));
        assert_eq!(expanded(&strings(&[&name("self")])).len(), FILES_MAX + 1);
    }

    #[test]
    fn the_last_word_on_a_sanitizer_counts() {
        let check = |words: &[&str], thread, rival| {
            assert_eq!(sanitizers(&strings(words)), Sanitizers { thread, rival }, "{words:?}");
        };
        check(&["-c", "a.c"], None, None);
        check(&["-fsanitize=thread"], Some(true), None);
        check(&["-fsanitize=thread", "-fno-sanitize=thread"], Some(false), None);
        check(&["-fno-sanitize=all"], Some(false), None);
        check(&["-fsanitize=undefined,thread"], Some(true), None);
        check(&["-fsanitize=undefined,address"], None, Some("address"));
        check(&["-fsanitize=address", "-fno-sanitize=all"], Some(false), None);
        check(&["-fsanitize=leak", "-fno-sanitize=address"], None, Some("leak"));
    }
}
