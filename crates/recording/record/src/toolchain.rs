//! Building programs so that they can be recorded: `reweave cc`, `reweave c++`, `cargo reweave`.
//!
//! A program is recorded if its code was compiled with the compiler's thread sanitizer, whose hooks
//! the runtime provides, and if the runtime stands before the C library where the loader looks for
//! symbols. So each call of a compiler is changed in two places and otherwise left as it is:
//! compiling gets `-fsanitize=thread`, linking gets the runtime as its first input and never the
//! sanitizer's own.
//!
//! Which of the two a call does is never guessed from its arguments: gcc runs the steps through a
//! wrapper ([`wrapper`](wrap)), which sees the compiler and the linker one by one, and clang says
//! beforehand what it would run. What the user asks for wins: a file compiled with
//! `-fno-sanitize=thread` stays as it is.
//!
//! A call costs a look at the unpacked runtime and, for clang where it may link, one start of it.

mod cargo;
mod static_code;
pub mod std_wrappers;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::install::{InstallError, Runtime, install, plain_path};
use static_code::StaticCode;

pub use cargo::{CargoRequest, cargo, runner};
pub use static_code::STATIC_LIBRARY_SECTION;

/// The name under which the command runs a step of gcc.
pub const WRAPPER: &str = "__wrapper";

/// The name under which the command runs what cargo has built.
pub const RUNNER: &str = "__runner";

/// How the runtime gets into a dynamic executable. Static ones always have it inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// As a shared library in the cache.
    #[default]
    Dynamic,
    /// Inside the executable.
    Static,
}

impl Linkage {
    /// The linkage that is called `name`.
    #[must_use]
    pub fn from_name(name: &OsStr) -> Option<Self> {
        [Self::Dynamic, Self::Static].into_iter().find(|linkage| linkage.name() == name)
    }

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dynamic => "dynamic",
            Self::Static => "static",
        }
    }
}

/// A program to run in place of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables to set, or to remove.
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// What the user should know beforehand.
    pub warnings: Vec<String>,
    /// What to do if it fails.
    pub unchanged: Option<Unchanged>,
}

/// A step without what we added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchanged {
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What the user should know if it succeeds.
    pub warning: String,
    /// A folder that only the changed step needs.
    pub scratch: PathBuf,
}

impl Invocation {
    fn new(program: impl Into<OsString>, arguments: Vec<OsString>) -> Self {
        let (environment, warnings) = (Vec::new(), Vec::new());
        Self { program: program.into(), arguments, environment, warnings, unchanged: None }
    }

    /// The command that does it.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

/// Why a program cannot be built for recording.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    /// There is no runtime to link with.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// A tool does not start.
    #[error("cannot run `{name}`: {error}{}", missing_tool(name, error))]
    Start {
        /// The tool.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// The compiler is none that we know how to drive.
    #[error("`{name}` is neither gcc nor clang; name one first, or set REWEAVE_CC or REWEAVE_CXX")]
    UnknownCompiler {
        /// The compiler.
        name: String,
    },
    /// Another sanitizer is asked for.
    #[error("-fsanitize={name} cannot be combined with recording; build without it")]
    Sanitizer {
        /// The sanitizer.
        name: String,
    },
    /// The arguments are not what the command understands.
    #[error("{0}")]
    Usage(String),
    /// A tool did what it should not.
    #[error("`{name}` failed: {said}")]
    Failed {
        /// The tool.
        name: String,
        /// What it said.
        said: String,
    },
}

/// What to do about a tool that is not there.
fn missing_tool(name: &str, error: &io::Error) -> &'static str {
    let tool = Path::new(name).file_name().and_then(OsStr::to_str).unwrap_or(name);
    match tool {
        _ if error.kind() != io::ErrorKind::NotFound => "",
        "cargo" | "rustc" => "; install Rust (https://rustup.rs), or set CARGO and RUSTC",
        "c++" | "g++" | "clang++" => {
            "; install a C++ compiler, or name one: reweave c++ clang++ -g -pthread FILE.cpp -o PROGRAM"
        }
        _ => "; install a C compiler, or name one: reweave cc clang -g -pthread FILE.c -o PROGRAM",
    }
}

/// What a tool answers, or that it does not start.
fn answer(mut command: Command) -> Result<std::process::Output, ToolchainError> {
    command.env("LC_ALL", "C").stdin(std::process::Stdio::null()).output().map_err(|error| {
        ToolchainError::Start { name: command.get_program().display().to_string(), error }
    })
}

// The arguments of compilers: response files, and which sanitizers are on.

/// The most response files that one call may name, so that one that names itself comes to an end.
const FILES_MAX: usize = 2000;

/// The arguments with each `@file` replaced by what the file says. As compilers do, one that cannot
/// be read stands for itself.
fn expanded(arguments: &[OsString]) -> Vec<OsString> {
    let mut expanded = Vec::with_capacity(arguments.len());
    let mut pending: Vec<OsString> = arguments.iter().rev().cloned().collect();
    let mut files = 0;
    while let Some(argument) = pending.pop() {
        let named = argument.as_encoded_bytes().strip_prefix(b"@");
        let contents = named.filter(|_| files < FILES_MAX).and_then(|name| {
            let path = Path::new(OsStr::from_bytes(name));
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
fn words(text: &[u8]) -> Vec<OsString> {
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
    words.into_iter().map(OsString::from_vec).collect()
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
struct Sanitizers {
    /// Whether the thread sanitizer is asked for or forbidden.
    thread: Option<bool>,
    /// One that cannot be combined with recording.
    rival: Option<&'static str>,
}

/// The sanitizers that the arguments turn on or off. Response files must have been expanded.
fn sanitizers(arguments: &[OsString]) -> Sanitizers {
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
fn optimises_while_linking(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| argument == "-flto" || starts_with(argument, "-flto="))
}

fn starts_with(argument: &OsStr, start: &str) -> bool {
    argument.as_encoded_bytes().starts_with(start.as_bytes())
}

// A call of gcc or clang, as it must be made so that the program can be recorded.

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
        Family::Gcc => call.gcc(&install()?),
        Family::Clang => call.clang(&install()?),
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
pub(crate) fn found(program: &Path) -> Option<PathBuf> {
    let is_bare = program.components().count() == 1 && !starts_with(program.as_os_str(), ".");
    if !is_bare {
        return is_executable(program).then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
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
        let mut words = vec!["-g".into(), "-idirafter".into(), runtime.include().into()];
        if self.instruments() {
            words.extend(["-isystem".into(), runtime.cxx_include().into()]);
            // Variables of functions have names and ends only where it is known which frame they are in.
            words.push("-fno-omit-frame-pointer".into());
        }
        words
    }

    /// The driver must not know of the sanitizer: it would link the one that comes with it.
    fn without_sanitizer(&self) -> Option<OsString> {
        (self.asked.thread == Some(true)).then(|| "-fno-sanitize=thread".into())
    }

    fn gcc(&self, runtime: &Runtime) -> Result<Invocation, ToolchainError> {
        let own = plain_path(&self.request.own, |character| character == ',')?;
        let [instruments, linkage] = settings(self.instruments(), self.request.linkage);
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
        let own_linker = self.linker_through_us(&jobs, runtime)?;
        let additions = match &jobs.linker {
            Some((_, arguments)) if own_linker.is_none() => {
                additions(product(arguments), self.request.linkage, runtime)
            }
            _ => Additions::default(),
        };
        let to_linker = |words: Vec<OsString>| {
            words.into_iter().flat_map(|word| [OsString::from("-Xlinker"), word])
        };
        let mut arguments = Vec::new();
        if jobs.compiles {
            arguments.extend(self.for_compiling(runtime));
            // Names need the types of libraries too, which clang takes to be described elsewhere.
            arguments.push("-fstandalone-debug".into());
            if self.instruments() {
                arguments.extend(CLANG_INSTRUMENTS.map(OsString::from));
            }
        }
        arguments.extend(to_linker(additions.first));
        arguments.extend_from_slice(self.arguments);
        arguments.extend(to_linker(additions.last));
        arguments.extend(own_linker);
        let does_anything = jobs.compiles || jobs.linker.is_some();
        if does_anything {
            arguments.extend(self.without_sanitizer());
            if optimises_while_linking(self.words) {
                arguments.push("-fno-lto".into());
            }
        }
        Ok(Invocation::new(self.program, arguments))
    }

    /// How to make clang run the linker through us, where it is given what was not compiled for
    /// recording: which calls there are is known only once all is compiled.
    fn linker_through_us(
        &self,
        jobs: &Jobs,
        runtime: &Runtime,
    ) -> Result<Option<OsString>, ToolchainError> {
        let Some((linker, arguments)) = &jobs.linker else { return Ok(None) };
        let arguments = expanded(arguments);
        if !StaticCode::may_be_in(&arguments) {
            return Ok(None);
        }
        let is_taken = |character: char| "'\n".contains(character);
        let own = plain_path(&self.request.own, is_taken)?;
        let linker = plain_path(Path::new(linker), is_taken)?;
        let [instruments, linkage] = settings(self.instruments(), self.request.linkage);
        let step = format!("'{}' {WRAPPER} {instruments} {linkage}", own.display());
        let name = linker.display().to_string();
        let script = runtime.script("ld", &format!("#!/bin/sh\nexec {step} '{name}' \"$@\"\n"));
        // Without it only the calls are not seen.
        Ok(script.ok().map(|script| {
            let mut option = OsString::from("--ld-path=");
            option.push(script);
            option
        }))
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
        Ok(parse(&answer(command)?.stderr))
    }
}

/// What makes clang instrument a source. Without the second option it leaves out reads of what is
/// written right after, as in `count++`: it would seem to be written blindly, and schedules would be
/// found in which the read sees something else. The third marks reads of volatile variables: threads
/// may wait for what they see. Without the last ones it compares in place what is short, after it has
/// instrumented.
///
/// Before version 20 clang takes the fields of a local variable for unshared unless the address of the very field is
/// passed on. If it gives up to find out who has which address, it instruments all of them.
const CLANG_INSTRUMENTS: [&str; 12] = [
    "-Xclang",
    "-fsanitize=thread",
    "-mllvm",
    "-tsan-instrument-read-before-write=1",
    "-mllvm",
    "-tsan-distinguish-volatile=1",
    "-mllvm",
    "-capture-tracking-max-uses-to-explore=0",
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

// What clang would run: its answer to `-###`, one line for each step with every word in quotes.

/// The steps of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Jobs {
    /// Whether any of them compiles or preprocesses.
    compiles: bool,
    /// The linker and its arguments, if one runs.
    linker: Option<(OsString, Vec<OsString>)>,
}

/// Reads the answer.
fn parse(answer: &[u8]) -> Jobs {
    let mut jobs = Jobs::default();
    // Other lines give the version and the folders; only steps are indented.
    for line in answer.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b" ")) {
        let mut words = words(line).into_iter();
        let Some(program) = words.next() else { continue };
        let arguments: Vec<OsString> = words.collect();
        match arguments.first().and_then(|first| first.to_str()) {
            Some("-cc1") => jobs.compiles = true,
            Some("-cc1as") => {}
            _ if is_linker(Path::new(&program)) => jobs.linker = Some((program, arguments)),
            _ => {}
        }
    }
    jobs
}

/// Whether the program is a linker by its name: `ld`, `ld.gold`, `ld.lld`, `mold`, with any prefix.
fn is_linker(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.to_string_lossy().contains("ld"))
}

// One step of gcc: the compiler proper, the assembler or the linker, which gcc runs through us.

/// What the wrapper is given before the step: whether to instrument, and how to link.
fn settings(instruments: bool, linkage: Linkage) -> [&'static str; 2] {
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
        Step::Link => return Ok(static_code::link(program, rest, linkage, &install()?)),
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
            Some("collect2") => Self::Link,
            _ if is_linker(program) => Self::Link,
            _ => Self::Other,
        }
    }
}

/// The compilers proper for C and its kin.
const C_FAMILY: [&str; 4] = ["cc1", "cc1plus", "cc1obj", "cc1objplus"];

/// What gcc would do itself, where it does not instrument, if the amount is small and known.
const CALLED: [&str; 17] = [
    "memcpy", "memmove", "memset", "mempcpy", "memcmp", "bcmp", "bcopy", "bzero", "strcpy",
    "stpcpy", "strncpy", "strcat", "strncat", "strcmp", "strncmp", "sprintf", "snprintf",
];

/// The version of gcc whose step `program` is: such programs are in a folder that is called so.
fn gcc_version(program: &Path) -> Option<u32> {
    let folder = program.parent()?.file_name()?.to_str()?;
    folder.split('.').next()?.parse().ok()
}

fn compiled(program: &Path, arguments: &[OsString]) -> Vec<OsString> {
    let mut step = arguments.to_vec();
    // Otherwise gcc takes the hooks of atomic operations for functions that change no static variable,
    // and keeps what such a lock protects in registers across them.
    step.extend(["-fsanitize=thread", "-fno-ipa-reference"].map(OsString::from));
    // Reads of volatile variables are marked: threads may wait for what they see.
    if gcc_version(program).is_some_and(|version| version >= 11) {
        step.push("--param=tsan-distinguish-volatile=1".into());
    }
    if program.file_name().is_some_and(|name| C_FAMILY.iter().any(|compiler| name == *compiler)) {
        step.extend(CALLED.map(|name| format!("-fno-builtin-{name}").into()));
    }
    if optimises_while_linking(arguments) {
        // What optimises while linking would not know that it has to instrument.
        step.push("-fno-lto".into());
    }
    step
}

fn linked(arguments: &[OsString], linkage: Linkage, runtime: &Runtime) -> Vec<OsString> {
    let expanded = expanded(arguments);
    let product = product(&expanded);
    let additions = additions(product, linkage, runtime);
    let mut step = additions.first;
    step.extend_from_slice(arguments);
    step.extend(additions.last);
    // gcc leaves this library out if nothing is missing without it; the runtime defines its locks, and
    // needs those behind them.
    if product == Product::Dynamic && expanded.iter().any(|argument| argument == OPENMP) {
        let kept = ["--push-state", "--no-as-needed", OPENMP, "--pop-state"];
        step.extend(kept.map(OsString::from));
    }
    step
}

/// How gcc asks for its OpenMP library.
const OPENMP: &str = "-lgomp";

// What the linker is given: the runtime, before everything else.
//
// The loader looks for a symbol in the libraries in the order in which they were linked, so the
// runtime must come before the C library: otherwise accesses would be recorded but no thread and
// no lock. Shared libraries leave the hooks undefined, since the executable brings them; two
// runtimes in one process would each see half of it.

/// What is being linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Product {
    /// An executable that the loader completes.
    Dynamic,
    /// An executable that is complete.
    Static,
    /// A shared library.
    Library {
        /// Whether every symbol must be found while linking.
        is_closed: bool,
    },
    /// An object made of objects.
    Partial,
}

/// What a linker with these arguments makes.
fn product(arguments: &[OsString]) -> Product {
    let has =
        |names: &[&str]| arguments.iter().any(|argument| names.iter().any(|name| argument == name));
    if has(&["-r", "-Ur", "-i", "--relocatable"]) {
        return Product::Partial;
    }
    if has(&["-shared", "--shared", "-Bshareable"]) {
        let is_pair = arguments.windows(2).any(|pair| pair[0] == "-z" && pair[1] == "defs");
        return Product::Library { is_closed: is_pair || has(&["-zdefs", "--no-undefined"]) };
    }
    // By itself `-static` says only how the libraries after it are looked for.
    if has(&["-static"]) && !has(&["-dynamic-linker", "--dynamic-linker"]) {
        return Product::Static;
    }
    Product::Dynamic
}

/// Arguments for a linker: some before all others, some after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Additions {
    first: Vec<OsString>,
    last: Vec<OsString>,
}

/// What brings the runtime into the product.
fn additions(product: Product, linkage: Linkage, runtime: &Runtime) -> Additions {
    let mut additions = Additions::default();
    let first = &mut additions.first;
    match (product, linkage) {
        (Product::Dynamic | Product::Library { is_closed: true }, Linkage::Dynamic) => {
            first.extend(["--push-state", "--no-as-needed"].map(OsString::from));
            first.push(runtime.shared().into());
            first.extend(["--pop-state", "-rpath"].map(OsString::from));
            first.push(runtime.folder().into());
        }
        (Product::Dynamic, Linkage::Static) => {
            first.push(runtime.object().into());
            // Exported, so that the calls of libraries are bound to the executable's runtime.
            first.push("--export-dynamic".into());
            // Before version 2.34 the C library kept these apart.
            let libraries = ["--push-state", "--as-needed", "-ldl", "-lpthread", "--pop-state"];
            first.extend(libraries.map(OsString::from));
        }
        (Product::Static, _) => {
            first.push(runtime.static_object().into());
            // Exceptions find their way through the runtime by this table alone: what a static
            // program registers begins with the compiler's own object, which comes later.
            first.push("--eh-frame-hdr".into());
            first.extend(runtime.wrapped().map(|name| format!("--wrap={name}").into()));
        }
        (Product::Library { is_closed: true }, Linkage::Static) => {
            additions.last.extend(["-z", "undefs"].map(OsString::from));
        }
        (Product::Library { is_closed: false } | Product::Partial, _) => {}
    }
    additions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn split_words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
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

    #[test]
    fn plain_compiling_is_recognised_and_nothing_else() {
        for line in ["-c a.c", "-O2 -c x/a.cpp -o a.o -MMD -MF a.d"] {
            assert!(only_compiles(&split_words(line)), "{line}");
        }
        for line in ["a.c", "-c a.s", "-c -x c a", "-c", "a.o -Xlinker -c -o a", "-c a.c b.S"] {
            assert!(!only_compiles(&split_words(line)), "{line}");
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

    #[test]
    fn only_compilers_that_are_there_are_taken_for_compilers() {
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

    #[track_caller]
    fn check_jobs(answer: &str, compiles: bool, linker: Option<&[&str]>) {
        let linker = linker.map(|words| (OsString::from(words[0]), strings(&words[1..])));
        assert_eq!(parse(answer.as_bytes()), Jobs { compiles, linker });
    }

    #[test]
    fn steps_are_told_apart() {
        let start = "clang version 14.0.6\nInstalledDir: /usr/bin\n";
        check_jobs(start, false, None);
        check_jobs(
            &format!("{start} (in-process)\n \"/bin/clang\" \"-cc1\" \"a.c\"\n"),
            true,
            None,
        );
        check_jobs(&format!("{start} \"/bin/clang\" \"-cc1as\" \"a.s\"\n"), false, None);
        check_jobs(" \"/bin/ld.lld\" \"-o\" \"a b\"\n", false, Some(&["/bin/ld.lld", "-o", "a b"]));
        check_jobs(" \"clang\" \"-cc1\"\n \"ld\" \"a \\\"b\"\n", true, Some(&["ld", "a \"b"]));
    }

    #[track_caller]
    fn check_step(line: &str, expected: &str) {
        let step = wrap(&split_words(line)).unwrap();
        let mut found = vec![step.program];
        found.extend(step.arguments);
        assert_eq!(found, split_words(expected), "{line}");
    }

    #[test]
    fn the_compiler_proper_instruments_unless_told_not_to() {
        let called = CALLED.map(|name| format!("-fno-builtin-{name}")).join(" ");
        let instruments =
            format!("/x/cc1 a.c -o a.s -fsanitize=thread -fno-ipa-reference {called}");
        check_step("on dynamic /x/cc1 a.c -o a.s", &instruments);
        let instruments = format!(
            "/x/cc1plus -flto=auto a.cc -fsanitize=thread -fno-ipa-reference {called} -fno-lto"
        );
        check_step("on static /x/cc1plus -flto=auto a.cc", &instruments);
        check_step("on dynamic /x/f951 a.f", "/x/f951 a.f -fsanitize=thread -fno-ipa-reference");
        for (folder, volatile) in [("10", ""), ("12.2.0", " --param=tsan-distinguish-volatile=1")] {
            let step = format!("/x/{folder}/f951 a.f");
            let instruments = format!("{step} -fsanitize=thread -fno-ipa-reference{volatile}");
            check_step(&format!("on dynamic {step}"), &instruments);
        }
        check_step(
            "off dynamic /x/cc1 -fno-sanitize=thread a.c",
            "/x/cc1 -fno-sanitize=thread a.c",
        );
    }

    #[test]
    fn other_steps_are_left_alone() {
        check_step("on dynamic as --64 a.s -o a.o", "as --64 a.s -o a.o");
        check_step("on dynamic /x/lto-wrapper -static", "/x/lto-wrapper -static");
    }

    #[test]
    fn the_linker_meets_the_runtime_first() {
        let runtime = Runtime::at(Path::new("/c"));
        let linked = |line| linked(&split_words(line), Linkage::Dynamic, &runtime);
        assert_eq!(
            linked("-o a -dynamic-linker x crt1.o a.o -lc"),
            split_words(
                "--push-state --no-as-needed /c/libreweave_rt.so --pop-state -rpath /c \
                 -o a -dynamic-linker x crt1.o a.o -lc"
            )
        );
        let complete = linked("-static -o a a.o");
        assert_eq!(complete[..2], ["/c/reweave_rt_static.o", "--eh-frame-hdr"]);
        assert!(complete.contains(&"--wrap=pthread_create".into()), "{complete:?}");
        assert_eq!(linked("-r -o a a.o"), split_words("-r -o a a.o"));
    }

    #[test]
    fn an_openmp_library_is_kept_though_the_runtime_stands_before_it() {
        let runtime = Runtime::at(Path::new("/c"));
        let linked = linked(&split_words("-o a a.o -lgomp -lc"), Linkage::Dynamic, &runtime);
        let kept = split_words("--push-state --no-as-needed -lgomp --pop-state");
        assert!(linked.ends_with(&kept), "{linked:?}");
    }

    #[test]
    fn a_call_that_is_not_from_gcc_is_refused() {
        wrap(&split_words("on dynamic")).unwrap_err();
    }

    #[track_caller]
    fn check_product(line: &str, expected: Product) {
        assert_eq!(product(&split_words(line)), expected, "{line}");
    }

    #[test]
    fn the_product_is_read_off_the_arguments() {
        check_product("-pie -dynamic-linker /lib/ld.so a.o -lc", Product::Dynamic);
        check_product("-dynamic-linker /lib/ld.so a.o -static -lx -Bdynamic -lc", Product::Dynamic);
        check_product("-static a.o", Product::Static);
        check_product("-static -pie --no-dynamic-linker -z text a.o", Product::Static);
        check_product("-shared a.o", Product::Library { is_closed: false });
        check_product("-shared -z defs a.o", Product::Library { is_closed: true });
        check_product("-shared --no-undefined a.o", Product::Library { is_closed: true });
        check_product("-r a.o b.o", Product::Partial);
    }

    #[test]
    fn libraries_leave_the_runtime_to_the_executable_where_they_may() {
        let runtime = Runtime::at(Path::new("/cache"));
        for linkage in [Linkage::Dynamic, Linkage::Static] {
            for product in [Product::Library { is_closed: false }, Product::Partial] {
                assert_eq!(additions(product, linkage, &runtime), Additions::default());
            }
        }
        let closed = Product::Library { is_closed: true };
        let linked = additions(closed, Linkage::Dynamic, &runtime);
        assert!(linked.first.contains(&"/cache/libreweave_rt.so".into()));
        let left = additions(closed, Linkage::Static, &runtime);
        assert_eq!(left.last, ["-z", "undefs"]);
    }
}
