//! A call of gcc or clang, as it must be made so that the program can be recorded.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::arguments::{Sanitizers, expanded, optimises_while_linking, sanitizers, starts_with};
use super::jobs::{self, Jobs};
use super::{Invocation, Linkage, ToolchainError, WRAPPER, answer, link, wrapper};
use crate::unpack::{Runtime, plain_path, unpack};

/// The language that a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `reweave cc`.
    C,
    /// `reweave c++`.
    CPlusPlus,
}

impl Language {
    const fn compiler(self) -> &'static str {
        match self {
            Self::C => "cc",
            Self::CPlusPlus => "c++",
        }
    }
}

/// A call of a compiler.
#[derive(Clone, Debug)]
pub struct CompilerRequest {
    /// Which compiler to use if nothing else says so.
    pub language: Language,
    /// How the runtime gets into dynamic executables.
    pub linkage: Linkage,
    /// The compiler to use unless the first argument names one.
    pub preferred: Option<OsString>,
    /// The compiler's arguments, perhaps with its name before them.
    pub arguments: Vec<OsString>,
    /// The path of this command, for gcc to run its steps through.
    pub own: PathBuf,
}

/// The call to make instead.
///
/// # Errors
/// If there is no such compiler, or it is none that can be driven, or another sanitizer is on, or
/// the runtime cannot be unpacked.
pub fn compile(request: &CompilerRequest) -> Result<Invocation, ToolchainError> {
    let (program, arguments) = chosen(request);
    let words = expanded(arguments);
    let asked = sanitizers(&words);
    if let Some(name) = asked.rival {
        return Err(ToolchainError::Sanitizer { name: name.to_owned() });
    }
    let call = Call { program: &program, arguments, words: &words, asked: &asked, request };
    match Family::new(&program)? {
        Family::Gcc => call.gcc(&unpack()?),
        Family::Clang => call.clang(&unpack()?),
    }
}

/// The compiler and its arguments.
fn chosen(request: &CompilerRequest) -> (OsString, &[OsString]) {
    match request.arguments.as_slice() {
        [first, rest @ ..] if is_compiler(first) => (first.clone(), rest),
        arguments => {
            let preferred = request.preferred.clone().filter(|name| !name.is_empty());
            (preferred.unwrap_or_else(|| request.language.compiler().into()), arguments)
        }
    }
}

/// Whether the argument names a compiler that is there, not an input.
fn is_compiler(argument: &OsStr) -> bool {
    const INPUTS: [&str; 22] = [
        "c", "cc", "cp", "cpp", "cxx", "c++", "C", "CPP", "i", "ii", "m", "mm", "h", "hh", "hpp",
        "s", "S", "o", "lo", "a", "so", "ll",
    ];
    let path = Path::new(argument);
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return false };
    let is_input =
        path.extension().is_some_and(|extension| INPUTS.iter().any(|input| extension == *input));
    let is_named_so = ["cc", "g++", "clang", "c++"].iter().any(|part| name.contains(part));
    is_named_so && !is_input && !starts_with(argument, "-") && found(path).is_some()
}

/// The file that runs when `program` is called.
fn found(program: &Path) -> Option<PathBuf> {
    let is_bare = program.components().count() == 1 && !starts_with(program.as_os_str(), ".");
    if !is_bare {
        return is_executable(program).then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| is_executable(file))
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Gcc,
    Clang,
}

impl Family {
    /// The family of a compiler: by its name if that says clang, which takes long to say so itself,
    /// else by what it says of its version.
    fn new(program: &OsStr) -> Result<Self, ToolchainError> {
        let file = found(Path::new(program)).and_then(|file| fs::canonicalize(file).ok());
        let name = file.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
        if name.is_some_and(|name| name.contains("clang")) {
            return Ok(Self::Clang);
        }
        let mut command = Command::new(program);
        command.arg("--version");
        let said = answer(command)?.stdout;
        Self::from_version(&String::from_utf8_lossy(&said))
            .ok_or_else(|| ToolchainError::UnknownCompiler { name: program.display().to_string() })
    }

    fn from_version(said: &str) -> Option<Self> {
        if said.contains("clang version") {
            return Some(Self::Clang);
        }
        // Gcc says nothing of its own name; the second line sets it apart from other GNU tools.
        let is_gcc = said.contains("Free Software Foundation")
            && said.contains("see the source for copying conditions");
        is_gcc.then_some(Self::Gcc)
    }
}

/// A call of a known compiler: its arguments as given, and as words with response files expanded.
struct Call<'a> {
    program: &'a OsStr,
    arguments: &'a [OsString],
    words: &'a [OsString],
    asked: &'a Sanitizers,
    request: &'a CompilerRequest,
}

impl Call<'_> {
    fn instruments(&self) -> bool {
        self.asked.thread != Some(false)
    }

    /// Arguments for compiling. They come first, so that what the user says of the same wins.
    fn for_compiling(&self, runtime: &Runtime) -> Vec<OsString> {
        vec!["-g".into(), "-idirafter".into(), runtime.include().into()]
    }

    /// The driver must not know of the sanitizer: it would link the one that comes with it.
    fn without_sanitizer(&self) -> Option<OsString> {
        (self.asked.thread == Some(true)).then(|| "-fno-sanitize=thread".into())
    }

    fn gcc(&self, runtime: &Runtime) -> Result<Invocation, ToolchainError> {
        let own = plain_path(&self.request.own, |character| character == ',')?;
        let [instruments, linkage] = wrapper::settings(self.instruments(), self.request.linkage);
        let mut steps = own.into_os_string();
        steps.push(format!(",{WRAPPER},{instruments},{linkage}"));
        let mut arguments = vec![OsString::from("-wrapper"), steps];
        arguments.extend(self.for_compiling(runtime));
        arguments.extend_from_slice(self.arguments);
        arguments.extend(self.without_sanitizer());
        Ok(Invocation::new(self.program, arguments))
    }

    fn clang(&self, runtime: &Runtime) -> Result<Invocation, ToolchainError> {
        let jobs = self.jobs()?;
        let mut additions = link::Additions::default();
        if let Some(linker) = &jobs.linker {
            additions = link::additions(link::product(linker), self.request.linkage, runtime);
        }
        let to_linker = |words: Vec<OsString>| {
            words.into_iter().flat_map(|word| [OsString::from("-Xlinker"), word])
        };
        let mut arguments = Vec::new();
        if jobs.compiles {
            arguments.extend(self.for_compiling(runtime));
            if self.instruments() {
                arguments.extend(CLANG_INSTRUMENTS.map(OsString::from));
            }
        }
        arguments.extend(to_linker(additions.first));
        arguments.extend_from_slice(self.arguments);
        arguments.extend(to_linker(additions.last));
        let does_anything = jobs.compiles || jobs.linker.is_some();
        if does_anything {
            arguments.extend(self.without_sanitizer());
            if optimises_while_linking(self.words) {
                arguments.push("-fno-lto".into());
            }
        }
        Ok(Invocation::new(self.program, arguments))
    }

    /// The steps that clang would run: it is asked, unless the call plainly compiles one source.
    fn jobs(&self) -> Result<Jobs, ToolchainError> {
        if only_compiles(self.words) {
            return Ok(Jobs { compiles: true, linker: None });
        }
        if self.words.first().is_some_and(|first| starts_with(first, "-cc1")) {
            return Ok(Jobs::default());
        }
        let mut command = Command::new(self.program);
        command.arg("-###").args(self.arguments);
        Ok(jobs::parse(&answer(command)?.stderr))
    }
}

/// What makes clang instrument a source. Without the second option it leaves out reads of what is
/// written right after, as in `count++`: it would seem to be written blindly, and schedules would be
/// found in which the read sees something else. Without the last ones it compares in place what is
/// short, after it has instrumented.
const CLANG_INSTRUMENTS: [&str; 8] = [
    "-Xclang",
    "-fsanitize=thread",
    "-mllvm",
    "-tsan-instrument-read-before-write=1",
    "-fno-builtin-memcmp",
    "-fno-builtin-bcmp",
    "-fno-builtin-strcmp",
    "-fno-builtin-strncmp",
];

/// Whether the call certainly compiles and does nothing else. A `-c` behind an argument that takes
/// the next one as it is may mean anything, and so may inputs that are not sources.
fn only_compiles(words: &[OsString]) -> bool {
    const SOURCES: [&str; 5] = ["c", "cc", "cpp", "cxx", "C"];
    let is_passed_on = |place: usize| place > 0 && starts_with(&words[place - 1], "-X");
    let compiles = (0..words.len()).any(|place| words[place] == "-c" && !is_passed_on(place));
    let is_plain = |word: &OsString| {
        let extension = Path::new(word).extension().and_then(OsStr::to_str);
        let is_doubtful = word == "-x" || word == "-" || starts_with(word, "-###");
        !is_doubtful && !matches!(extension, Some("s" | "S" | "sx"))
    };
    let has_source = words.iter().any(|word| {
        let extension = Path::new(word).extension().and_then(OsStr::to_str);
        !starts_with(word, "-") && extension.is_some_and(|found| SOURCES.contains(&found))
    });
    compiles && has_source && words.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn plain_compiling_is_recognised_and_nothing_else() {
        for line in ["-c a.c", "-O2 -c x/a.cpp -o a.o -MMD -MF a.d"] {
            assert!(only_compiles(&words(line)), "{line}");
        }
        for line in ["a.c", "-c a.s", "-c -x c a", "-c", "a.o -Xlinker -c -o a", "-c a.c b.S"] {
            assert!(!only_compiles(&words(line)), "{line}");
        }
    }

    #[test]
    fn families_are_told_by_what_they_say() {
        let gcc = "cc (Debian 12) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n\
                   This is free software; see the source for copying conditions.\n";
        assert_eq!(Family::from_version(gcc), Some(Family::Gcc));
        let clang = "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n";
        assert_eq!(Family::from_version(clang), Some(Family::Clang));
        assert_eq!(Family::from_version("tcc version 0.9.27 (x86_64 Linux)"), None);
        let other = "true (GNU coreutils) 9.1\nCopyright (C) 2022 Free Software Foundation, Inc.\n";
        assert_eq!(Family::from_version(other), None);
    }

    #[cfg(unix)]
    #[test]
    fn only_compilers_that_are_there_are_taken_for_compilers() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::TempDir::new().unwrap();
        let put = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path.into_os_string()
        };
        assert!(is_compiler(&put("my-gcc", 0o755)));
        assert!(is_compiler(&put("clang++-14", 0o755)));
        assert!(!is_compiler(&put("account", 0o644)));
        assert!(!is_compiler(&put("account.c", 0o755)));
        assert!(!is_compiler(&put("tool", 0o755)));
        assert!(!is_compiler(&folder.path().join("gcc-missing").into_os_string()));
        assert!(!is_compiler(OsStr::new("-cc")));
    }
}
