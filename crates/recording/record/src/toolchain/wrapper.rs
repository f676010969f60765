//! One step of gcc: the compiler proper, the assembler or the linker, which gcc runs through us.

use std::ffi::OsString;
use std::path::Path;

use super::arguments::{expanded, optimises_while_linking};
use super::{Invocation, Linkage, ToolchainError, link};
use crate::unpack::{Runtime, unpack};

/// What the wrapper is told before the step: whether to instrument, and how to link.
pub(super) fn settings(instruments: bool, linkage: Linkage) -> [&'static str; 2] {
    [if instruments { "on" } else { "off" }, linkage.name()]
}

/// The step to run for the arguments with which gcc called us.
///
/// # Errors
/// If the arguments are not gcc's, or the runtime cannot be unpacked.
pub fn wrap(arguments: &[OsString]) -> Result<Invocation, ToolchainError> {
    let [instruments, linkage, program, rest @ ..] = arguments else {
        return Err(ToolchainError::Usage("a step of gcc is missing".to_owned()));
    };
    let linkage = Linkage::from_name(linkage).unwrap_or_default();
    let step = match Step::new(Path::new(program)) {
        Step::Compile if instruments == "on" => compiled(Path::new(program), rest),
        Step::Link => linked(rest, linkage, &unpack()?),
        Step::Compile | Step::Other => rest.to_vec(),
    };
    Ok(Invocation::new(program, step))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Compile,
    Link,
    Other,
}

impl Step {
    fn new(program: &Path) -> Self {
        match program.file_name().and_then(|name| name.to_str()) {
            Some("cc1" | "cc1plus" | "cc1obj" | "cc1objplus" | "f951") => Self::Compile,
            Some("collect2" | "ld") => Self::Link,
            _ => Self::Other,
        }
    }
}

/// The compilers proper for C and its kin.
const C_FAMILY: [&str; 4] = ["cc1", "cc1plus", "cc1obj", "cc1objplus"];

/// What gcc would do itself, where it does not instrument, if the amount is small and known.
const CALLED: [&str; 17] = [
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
    "-fno-builtin-memset",
    "-fno-builtin-mempcpy",
    "-fno-builtin-memcmp",
    "-fno-builtin-bcmp",
    "-fno-builtin-bcopy",
    "-fno-builtin-bzero",
    "-fno-builtin-strcpy",
    "-fno-builtin-stpcpy",
    "-fno-builtin-strncpy",
    "-fno-builtin-strcat",
    "-fno-builtin-strncat",
    "-fno-builtin-strcmp",
    "-fno-builtin-strncmp",
    "-fno-builtin-sprintf",
    "-fno-builtin-snprintf",
];

fn compiled(program: &Path, arguments: &[OsString]) -> Vec<OsString> {
    let mut step = arguments.to_vec();
    step.push("-fsanitize=thread".into());
    if program.file_name().is_some_and(|name| C_FAMILY.iter().any(|compiler| name == *compiler)) {
        step.extend(CALLED.map(OsString::from));
    }
    if optimises_while_linking(arguments) {
        // What optimises while linking would not know that it has to instrument.
        step.push("-fno-lto".into());
    }
    step
}

fn linked(arguments: &[OsString], linkage: Linkage, runtime: &Runtime) -> Vec<OsString> {
    let additions = link::additions(link::product(&expanded(arguments)), linkage, runtime);
    let mut step = additions.first;
    step.extend_from_slice(arguments);
    step.extend(additions.last);
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let step = wrap(&words(line)).unwrap();
        let mut found = vec![step.program];
        found.extend(step.arguments);
        assert_eq!(found, words(expected), "{line}");
    }

    #[test]
    fn the_compiler_proper_instruments_unless_told_not_to() {
        let called = CALLED.join(" ");
        let instruments = format!("/x/cc1 a.c -o a.s -fsanitize=thread {called}");
        check("on dynamic /x/cc1 a.c -o a.s", &instruments);
        let instruments = format!("/x/cc1plus -flto=auto a.cc -fsanitize=thread {called} -fno-lto");
        check("on static /x/cc1plus -flto=auto a.cc", &instruments);
        check("on dynamic /x/f951 a.f", "/x/f951 a.f -fsanitize=thread");
        check("off dynamic /x/cc1 -fno-sanitize=thread a.c", "/x/cc1 -fno-sanitize=thread a.c");
    }

    #[test]
    fn other_steps_are_left_alone() {
        check("on dynamic as --64 a.s -o a.o", "as --64 a.s -o a.o");
        check("on dynamic /x/lto-wrapper -static", "/x/lto-wrapper -static");
    }

    #[test]
    fn the_linker_meets_the_runtime_first() {
        let runtime = Runtime::at(Path::new("/c"));
        let linked = |line| linked(&words(line), Linkage::Dynamic, &runtime);
        assert_eq!(
            linked("-o a -dynamic-linker x crt1.o a.o -lc"),
            words(
                "--push-state --no-as-needed /c/libreweave_rt.so --pop-state -rpath /c \
                 -o a -dynamic-linker x crt1.o a.o -lc"
            )
        );
        let complete = linked("-static -o a a.o");
        assert_eq!(complete[0], "/c/reweave_rt_static.o");
        assert!(complete.contains(&"--wrap=pthread_create".into()), "{complete:?}");
        assert_eq!(linked("-r -o a a.o"), words("-r -o a a.o"));
    }

    #[test]
    fn a_call_that_is_not_from_gcc_is_refused() {
        wrap(&words("on dynamic")).unwrap_err();
    }
}
