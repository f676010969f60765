//! What clang would run: its answer to `-###`, one line for each step with every word in quotes.

use std::ffi::OsString;
use std::path::Path;

use super::arguments::words;

/// The steps of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Jobs {
    /// Whether any of them compiles or preprocesses.
    pub(super) compiles: bool,
    /// The arguments of the linker, if one runs.
    pub(super) linker: Option<Vec<OsString>>,
}

/// Reads the answer.
pub(super) fn parse(answer: &[u8]) -> Jobs {
    let mut jobs = Jobs::default();
    // Other lines give the version and the folders; only steps are indented.
    for line in answer.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b" ")) {
        let mut words = words(line).into_iter();
        let Some(program) = words.next() else { continue };
        let arguments: Vec<OsString> = words.collect();
        match arguments.first().and_then(|first| first.to_str()) {
            Some("-cc1") => jobs.compiles = true,
            Some("-cc1as") => {}
            _ if is_linker(Path::new(&program)) => jobs.linker = Some(arguments),
            _ => {}
        }
    }
    jobs
}

/// Whether the program is a linker by its name: `ld`, `ld.gold`, `ld.lld`, `mold`, with any prefix.
fn is_linker(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.to_string_lossy().contains("ld"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, compiles: bool, linker: Option<&[&str]>) {
        let linker = linker.map(|words| words.iter().map(OsString::from).collect());
        assert_eq!(parse(answer.as_bytes()), Jobs { compiles, linker });
    }

    #[test]
    fn steps_are_told_apart() {
        let start = "clang version 14.0.6\nInstalledDir: /usr/bin\n";
        check(start, false, None);
        check(&format!("{start} (in-process)\n \"/bin/clang\" \"-cc1\" \"a.c\"\n"), true, None);
        check(&format!("{start} \"/bin/clang\" \"-cc1as\" \"a.s\"\n"), false, None);
        check(" \"/bin/ld.lld\" \"-o\" \"a b\"\n", false, Some(&["-o", "a b"]));
        check(" \"clang\" \"-cc1\"\n \"ld\" \"a \\\"b\"\n", true, Some(&["a \"b"]));
    }
}
