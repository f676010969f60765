//! `cargo reweave build|run|test`: cargo with an environment in which what it builds is recorded.
//!
//! The compiler's thread sanitizer is not stable, but the compilers that are have it: a variable
//! opens it. The standard library comes compiled without it, which is safe, since its hooks change
//! nothing (`--build-std` compiles it too). A target is always named, which keeps build scripts and
//! procedural macros as they are, and the build has a folder of its own, which leaves ordinary
//! builds valid. C code in dependencies is built as ever: its accesses are not seen, its threads
//! and locks are.
//!
//! Locks of the standard library are seen through wrappers at link time ([`std_wrappers`]), for which
//! calls must still be calls when the linker comes: link-time optimisation is off whatever the
//! profile says.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::std_wrappers::{self, LINK_ARGUMENTS};
use super::{Invocation, Linkage, RUNNER, ToolchainError, answer};
use crate::install::{Runtime, install, plain_path};

/// The one target whose programs can be recorded.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The variable with the runner of that target.
const RUNNER_VARIABLE: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER";

/// Where the user stands, for the runner: cargo runs tests elsewhere.
const FOLDER_VARIABLE: &str = "REWEAVE_CARGO_FOLDER";

/// Where the user wants the trace.
const OUTPUT_VARIABLE: &str = "REWEAVE_CARGO_OUTPUT";

/// The environment variable with the options of `record` that were given.
const OPTIONS_VARIABLE: &str = "REWEAVE_CARGO_OPTIONS";

/// An option of `record` that may be given to `cargo reweave`.
struct RecordOption {
    name: &'static str,
    is_valid: fn(&str) -> bool,
    /// What its value is.
    expected: &'static str,
}

const RECORD_OPTIONS: [RecordOption; 4] = [
    RecordOption {
        name: "--time-limit",
        is_valid: |text| text.parse().is_ok_and(|it: u64| it > 0),
        expected: "a number of seconds",
    },
    RecordOption {
        name: "--seed",
        is_valid: |text| text.parse::<u64>().is_ok(),
        expected: "a whole number",
    },
    RecordOption {
        name: "--mode",
        is_valid: |text| matches!(text, "serial" | "free"),
        expected: "`serial` or `free`",
    },
    RecordOption {
        name: "--keep-env",
        // The options are handed on as words between spaces.
        is_valid: |text| {
            !text.is_empty() && !text.contains(|it: char| it == '=' || it.is_whitespace())
        },
        expected: "the name of a variable",
    },
];

/// When cargo was called, so that no trace of this call is written over.
const STARTED_VARIABLE: &str = "REWEAVE_CARGO_STARTED";

/// The flag that allows to combine code with and without the sanitizer.
const ALLOW_MIXING: &str = "-Cunsafe-allow-abi-mismatch=sanitizer";

/// What separates flags in the variables that allow spaces in them.
const SEPARATOR: &str = "\u{1f}";

/// A call of `cargo reweave`.
#[derive(Clone, Debug)]
pub struct CargoRequest {
    /// The arguments after `cargo reweave`.
    pub arguments: Vec<OsString>,
    /// The path of this command, for cargo to run programs through.
    pub own: PathBuf,
    /// Where the user stands.
    pub folder: PathBuf,
}

/// The call of cargo to make.
///
/// # Errors
/// If the arguments ask for what cannot be recorded, a tool is missing, or the runtime cannot be
/// unpacked.
pub fn cargo(request: &CargoRequest) -> Result<Invocation, ToolchainError> {
    let asked = Options::parse(&request.arguments)?;
    let runtime = install()?;
    let tools = Tools::of_environment();
    let compiler = Compiler::ask(&tools)?;
    if asked.builds_std && !compiler.has_source() {
        let said = "`--build-std` needs the source of the standard library: \
                    rustup component add rust-src";
        return Err(ToolchainError::Usage(said.to_owned()));
    }
    std_wrappers::check_driver()?;
    let mut call = Invocation::new(&tools.cargo, Vec::new());
    let flags = compiler.flags(&asked, &runtime, &mut call.warnings)?;
    call.environment.push(("RUSTC_BOOTSTRAP".into(), Some("1".into())));
    set_profiles(&mut call, &asked);
    set_flags(&mut call, &tools, &flags);
    set_doc_flags(&mut call, &flags);
    set_runner(&mut call, request, &asked)?;
    call.arguments.push(asked.command.clone());
    if asked.target.is_none() {
        call.arguments.extend(["--target", TARGET].map(OsString::from));
    }
    if !asked.has_folder
        && let Some(folder) = tools.target_folder(&asked)
    {
        call.arguments.push("--target-dir".into());
        call.arguments.push(folder.join("reweave").into());
    }
    if asked.builds_std {
        call.arguments.push("-Zbuild-std".into());
    }
    call.arguments.extend(asked.rest);
    Ok(call)
}

/// What the user asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Options {
    command: OsString,
    builds_std: bool,
    output: Option<OsString>,
    /// Options of `record`, with their values.
    recording: Vec<String>,
    target: Option<OsString>,
    manifest: Option<OsString>,
    profile: Option<OsString>,
    has_folder: bool,
    /// Everything that is cargo's.
    rest: Vec<OsString>,
}

impl Options {
    /// Takes an option of `record`.
    fn take_record_option(
        &mut self,
        option: &RecordOption,
        value: Option<OsString>,
    ) -> Result<(), ToolchainError> {
        let RecordOption { name, is_valid, expected } = option;
        let text = value.and_then(|value| value.into_string().ok()).filter(|text| is_valid(text));
        let Some(text) = text else {
            return Err(ToolchainError::Usage(format!("`{name}` needs {expected}")));
        };
        self.recording.extend([(*name).to_owned(), text]);
        Ok(())
    }

    /// Takes our own options, which may stand before or after the command of cargo, out of the
    /// arguments. Those of the program follow `--` and are not looked at.
    fn parse(arguments: &[OsString]) -> Result<Self, ToolchainError> {
        const COMMANDS: [&str; 7] = ["build", "b", "run", "r", "test", "t", "bench"];
        let usage = |text: String| ToolchainError::Usage(text);
        let mut asked = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, joined) = split(argument);
            let value = || joined.clone().or_else(|| rest.clone().next().cloned());
            if let Some(option) = RECORD_OPTIONS.iter().find(|option| Some(option.name) == name) {
                asked.take_record_option(option, value())?;
                if joined.is_none() {
                    rest.next();
                }
                continue;
            }
            match name {
                Some("--") => {
                    asked.rest.push(argument.clone());
                    asked.rest.extend(rest.by_ref().cloned());
                    break;
                }
                Some("--build-std") => {
                    asked.builds_std = true;
                    continue;
                }
                Some("-o" | "--output") => {
                    asked.output = value();
                    if asked.output.is_none() {
                        return Err(usage("`-o` needs the name of a trace".to_owned()));
                    }
                    if joined.is_none() {
                        rest.next();
                    }
                    continue;
                }
                Some("--target") => asked.target = value(),
                Some("--manifest-path") => asked.manifest = value(),
                Some("--profile") => asked.profile = value(),
                Some("--target-dir") => asked.has_folder = true,
                Some(name) if asked.command.is_empty() && !name.starts_with('-') => {
                    if !COMMANDS.contains(&name) {
                        let known = "build, run, test or bench";
                        let text = format!("`cargo reweave` knows {known}, not `{name}`");
                        return Err(usage(text));
                    }
                    asked.command.clone_from(argument);
                    continue;
                }
                _ => {}
            }
            asked.rest.push(argument.clone());
        }
        if asked.command.is_empty() {
            return Err(usage("`cargo reweave` needs build, run, test or bench".to_owned()));
        }
        match &asked.target {
            Some(target) if target != TARGET => {
                let found = target.display();
                Err(usage(format!("recording needs the target {TARGET}, found {found}")))
            }
            _ => Ok(asked),
        }
    }
}

/// An option apart from the value that is joined to it by `=`.
fn split(argument: &OsStr) -> (Option<&str>, Option<OsString>) {
    match argument.to_str() {
        Some(text) if text.starts_with("--") => match text.split_once('=') {
            Some((name, value)) => (Some(name), Some(value.into())),
            None => (Some(text), None),
        },
        text => (text, None),
    }
}

/// The tools of the toolchain in use.
struct Tools {
    cargo: OsString,
    rustc: OsString,
}

impl Tools {
    fn of_environment() -> Self {
        let tool = |variable: &str, name: &str| {
            std::env::var_os(variable).unwrap_or_else(|| OsString::from(name))
        };
        Self { cargo: tool("CARGO", "cargo"), rustc: tool("RUSTC", "rustc") }
    }

    /// The folder for what is built, if there is a project; if not, cargo will say so.
    fn target_folder(&self, asked: &Options) -> Option<PathBuf> {
        let mut command = Command::new(&self.cargo);
        command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
        if let Some(manifest) = &asked.manifest {
            command.arg("--manifest-path").arg(manifest);
        }
        let said = answer(command).ok()?.stdout;
        let metadata: Value = serde_json::from_slice(&said).ok()?;
        metadata["target_directory"].as_str().map(PathBuf::from)
    }

    /// A table of cargo's configuration; null if there is none.
    fn configuration(&self, name: &str) -> Value {
        let mut command = Command::new(&self.cargo);
        command.env("RUSTC_BOOTSTRAP", "1");
        command.args(["-Zunstable-options", "config", "get", "--format", "json-value", name]);
        let said = answer(command).map(|output| output.stdout).unwrap_or_default();
        serde_json::from_slice(&said).unwrap_or_default()
    }
}

/// What the Rust compiler says of itself.
struct Compiler {
    sysroot: PathBuf,
    /// Whether it refuses to combine code with and without the sanitizer unless told to.
    checks_mixing: bool,
    /// Whether it brings a linker of its own, unless told not to.
    has_linker: bool,
    /// Whether it knows the options of [`APART`], which its optimiser may rename at any time.
    can_keep_apart: bool,
}

impl Compiler {
    fn ask(tools: &Tools) -> Result<Self, ToolchainError> {
        let ask = |arguments: &[&str]| {
            let mut command = Command::new(&tools.rustc);
            command.env("RUSTC_BOOTSTRAP", "1").args(arguments);
            let output = answer(command)?;
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            Ok::<_, ToolchainError>((output.status.success(), said))
        };
        let (_, root) = ask(&["--print", "sysroot"])?;
        let (checks_mixing, _) = ask(&[ALLOW_MIXING, "--print", "cfg"])?;
        let (has_linker, _) = ask(&[LINK_ARGUMENTS[0], "--print", "cfg"])?;
        let (can_keep_apart, _) = ask(&[&APART[..], &["--print", "cfg"]].concat())?;
        Ok(Self { sysroot: PathBuf::from(root), checks_mixing, has_linker, can_keep_apart })
    }

    fn has_source(&self) -> bool {
        self.sysroot.join("lib/rustlib/src/rust/library/Cargo.lock").is_file()
    }

    /// The flags for what is recorded. They bring the runtime before everything that is linked.
    fn flags(
        &self,
        asked: &Options,
        runtime: &Runtime,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<OsString>, ToolchainError> {
        let mut flags = INSTRUMENTS.map(OsString::from).to_vec();
        if self.can_keep_apart {
            flags.extend(APART.map(OsString::from));
        }
        let mut linked = Vec::new();
        if !asked.builds_std {
            if self.checks_mixing {
                flags.push(ALLOW_MIXING.into());
            }
            let std_wrappers = std_wrappers::for_toolchain(&self.sysroot, TARGET);
            warnings.extend(std_wrappers::warning(&std_wrappers));
            linked = std_wrappers::link_arguments(&std_wrappers)?;
            let choices = &LINK_ARGUMENTS[usize::from(!self.has_linker)..];
            flags.extend(choices.iter().map(OsString::from));
        }
        let additions = super::additions(super::Product::Dynamic, Linkage::Dynamic, runtime);
        let words = additions.first.into_iter().flat_map(|word| ["-Xlinker".into(), word]);
        for word in words.chain(linked) {
            let mut flag = OsString::from("-Zpre-link-arg=");
            flag.push(word);
            flags.push(flag);
        }
        Ok(flags)
    }
}

/// What makes rustc instrument code and bring no runtime of its own. Without the third option, reads
/// of what is written right after, as in `count += 1`, would not be seen. The others keep what names
/// code and data whatever the profile says: locks of the standard library are recognized by the whole names of
/// functions, which tables of lines alone do not have, and fields are called by the types of variables.
const INSTRUMENTS: [&str; 6] = [
    "-Zsanitizer=thread",
    "-Zexternal-clangrt",
    "-Cllvm-args=-tsan-instrument-read-before-write=1",
    "-Cdebuginfo=full",
    "-Cstrip=none",
    "-Csplit-debuginfo=off",
];

/// What keeps the optimiser from merging code of several functions into one place, which has no name
/// then: the end of a guard in both arms of a `Result` would be no longer seen to be one.
const APART: [&str; 3] = [
    "-Cllvm-args=-simplifycfg-sink-common=false",
    "-Cllvm-args=-simplifycfg-hoist-common=false",
    "-Cllvm-args=-enable-tail-merge=0",
];

/// Switches link-time optimisation off, which the compiler's flags cannot: cargo builds what is to be
/// optimised at link time in another way.
fn set_profiles(call: &mut Invocation, asked: &Options) {
    let own = asked.profile.as_ref().map(|profile| profile.to_string_lossy().into_owned());
    for profile in ["dev", "release", "test", "bench"].into_iter().chain(own.as_deref()) {
        let name = profile.to_uppercase().replace('-', "_");
        call.environment.push((format!("CARGO_PROFILE_{name}_LTO").into(), Some("off".into())));
    }
}

/// The user's own flags in a variable, in the order in which cargo looks for them.
fn flags_of_environment(encoded: &str, plain: &str) -> Option<Vec<String>> {
    if let Ok(flags) = std::env::var(encoded) {
        let flags = flags.split(SEPARATOR).filter(|flag| !flag.is_empty());
        return Some(flags.map(str::to_owned).collect());
    }
    let flags = std::env::var(plain).ok()?;
    Some(flags.split_whitespace().map(str::to_owned).collect())
}

/// Adds the flags to the user's own, wherever those are: cargo uses only one of the places.
fn set_flags(call: &mut Invocation, tools: &Tools, flags: &[OsString]) {
    let own = flags_of_environment("CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS");
    let targets = if own.is_none() { tools.configuration("target") } else { Value::Null };
    let are_of_target = targets
        .as_object()
        .is_some_and(|targets| targets.values().any(|target| !target["rustflags"].is_null()));
    if !are_of_target {
        let own = own
            .or_else(|| flags_of_environment("", "CARGO_BUILD_RUSTFLAGS"))
            .unwrap_or_else(|| words(&tools.configuration("build.rustflags")));
        set_encoded(call, "CARGO_ENCODED_RUSTFLAGS", &own, flags);
        return;
    }
    // Some may depend on the target's properties, so it is left to cargo to join them.
    let texts = flags.iter().map(|flag| Value::from(flag.to_string_lossy().into_owned()));
    let list = Value::Array(texts.collect());
    call.arguments.push("--config".into());
    call.arguments.push(format!("target.{TARGET}.rustflags={list}").into());
}

/// The words of a setting that is either a list or a text.
fn words(setting: &Value) -> Vec<String> {
    match setting {
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Examples in documentation link with what was built, so they need the same flags.
fn set_doc_flags(call: &mut Invocation, flags: &[OsString]) {
    let own = flags_of_environment("CARGO_ENCODED_RUSTDOCFLAGS", "RUSTDOCFLAGS");
    set_encoded(call, "CARGO_ENCODED_RUSTDOCFLAGS", &own.unwrap_or_default(), flags);
}

fn set_encoded(call: &mut Invocation, name: &str, own: &[String], flags: &[OsString]) {
    let own = own.iter().map(OsString::from);
    let all: Vec<OsString> = own.chain(flags.iter().cloned()).collect();
    call.environment.push((name.into(), Some(all.join(OsStr::new(SEPARATOR)))));
}

/// Makes cargo run programs through the recorder.
fn set_runner(
    call: &mut Invocation,
    request: &CargoRequest,
    asked: &Options,
) -> Result<(), ToolchainError> {
    let mut runner = plain_path(&request.own, char::is_whitespace)?.into_os_string();
    runner.push(format!(" {RUNNER}"));
    let folder = request.folder.clone().into_os_string();
    let output = asked.output.as_ref().map(|output| request.folder.join(output));
    if let Some(output) = output.as_ref().filter(|output| output.extension().is_none()) {
        std::fs::create_dir_all(output).map_err(|error| {
            ToolchainError::Usage(format!("cannot make the folder {}: {error}", output.display()))
        })?;
    }
    let output = output.map(PathBuf::into_os_string);
    let started = since_epoch(SystemTime::now()).as_nanos().to_string();
    call.environment.push((STARTED_VARIABLE.into(), Some(started.into())));
    call.environment.push((RUNNER_VARIABLE.into(), Some(runner)));
    call.environment.push((FOLDER_VARIABLE.into(), Some(folder)));
    call.environment.push((OUTPUT_VARIABLE.into(), output));
    let options = Some(asked.recording.join(" ").into());
    call.environment.push((OPTIONS_VARIABLE.into(), options));
    Ok(())
}

/// What to run when cargo asks for a program: the recorder `own` with it.
///
/// # Errors
/// If no program is named.
pub fn runner(own: &Path, arguments: &[OsString]) -> Result<Invocation, ToolchainError> {
    let [program, rest @ ..] = arguments else {
        return Err(ToolchainError::Usage("no program to run".to_owned()));
    };
    let folder = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from).unwrap_or_default();
    let output = std::env::var_os(OUTPUT_VARIABLE).map(PathBuf::from);
    let name = trace_name(Path::new(program));
    let mut call = if name == "rust_out.rwt" {
        // An example in documentation: there are many, all of this name.
        Invocation::new(program, rest.to_vec())
    } else {
        let trace = match output {
            Some(output) if output.is_dir() => output.join(name),
            Some(output) => output,
            None => folder.join(name),
        };
        let started = std::env::var(STARTED_VARIABLE).ok().and_then(|text| text.parse().ok());
        let trace = started.map_or_else(|| trace.clone(), |started| unwritten(&trace, started));
        let mut words = ["record", "-o"].map(OsString::from).to_vec();
        words.push(trace.into_os_string());
        let options = std::env::var(OPTIONS_VARIABLE).unwrap_or_default();
        words.extend(options.split_whitespace().map(OsString::from));
        words.push("--".into());
        words.extend_from_slice(arguments);
        Invocation::new(own, words)
    };
    call.environment.push((FOLDER_VARIABLE.into(), None));
    call.environment.push((OUTPUT_VARIABLE.into(), None));
    call.environment.push((STARTED_VARIABLE.into(), None));
    call.environment.push((OPTIONS_VARIABLE.into(), None));
    Ok(call)
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// `trace`, or a name like it if it was written after `started`, by another program of the same call
/// of cargo.
fn unwritten(trace: &Path, started: u128) -> PathBuf {
    let is_written = |path: &Path| {
        let written = std::fs::metadata(path).and_then(|file| file.modified());
        written.is_ok_and(|time| since_epoch(time).as_nanos() >= started)
    };
    if !is_written(trace) {
        return trace.to_owned();
    }
    let part = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, extension) = (part(trace.file_stem()), part(trace.extension()));
    let other = |number: u32| trace.with_file_name(format!("{stem}-{number}.{extension}"));
    (2..).map(other).find(|path| !is_written(path)).unwrap_or_else(|| trace.to_owned())
}

/// The name of the trace of a program. Tests have a number from cargo, and often the name of what
/// they test.
fn trace_name(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let is_number = |text: &str| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let plain = match name.rsplit_once('-') {
        Some((plain, number)) if is_number(number) => format!("{plain}-test"),
        _ => name.into_owned(),
    };
    format!("{plain}.rwt")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&arguments(line)).map_err(|error| error.to_string())
    }

    #[test]
    fn our_own_options_are_taken_out_and_the_others_are_left() {
        assert_eq!(parse("--mode fast test").unwrap_err(), "`--mode` needs `serial` or `free`");
        assert!(parse("--time-limit soon test").is_err());
        let asked = parse("--time-limit 60 --mode=free test --release --seed 3").unwrap();
        assert_eq!(asked.recording.join(" "), "--time-limit 60 --mode free --seed 3");
        assert_eq!(asked.rest, arguments("--release"));
        let asked = parse("-o x.rwt test --build-std --release -p a -- -o y --build-std").unwrap();
        assert_eq!(asked.command, "test");
        assert_eq!(asked.output, Some("x.rwt".into()));
        assert!(asked.builds_std && !asked.has_folder);
        assert_eq!(asked.rest, arguments("--release -p a -- -o y --build-std"));
        let asked = parse("run --output=z --target-dir=t --manifest-path a/Cargo.toml").unwrap();
        assert_eq!(asked.output, Some("z".into()));
        assert_eq!(asked.manifest, Some("a/Cargo.toml".into()));
        assert!(asked.has_folder);
        assert_eq!(asked.rest, arguments("--target-dir=t --manifest-path a/Cargo.toml"));
        assert_eq!(parse("-v run --bin b").unwrap().rest, arguments("-v --bin b"));
    }

    #[test]
    fn what_cannot_be_recorded_is_refused() {
        let error = |line: &str| parse(line).unwrap_err();
        assert!(error("").contains("needs build, run, test"));
        assert!(error("publish").contains("not `publish`"));
        assert!(error("run -o").contains("needs the name"));
        assert!(error("build --target wasm32-unknown-unknown").contains("found wasm32"));
        assert!(parse(&format!("build --target={TARGET}")).is_ok());
    }

    #[test]
    fn no_trace_of_one_call_of_cargo_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("bank-test.rwt");
        let started = since_epoch(SystemTime::now()).as_nanos() - 1_000_000_000;
        assert_eq!(unwritten(&trace, started), trace);
        std::fs::write(&trace, "").unwrap();
        let second = folder.path().join("bank-test-2.rwt");
        assert_eq!(unwritten(&trace, started), second);
        std::fs::write(&second, "").unwrap();
        assert_eq!(unwritten(&trace, started), folder.path().join("bank-test-3.rwt"));
        assert_eq!(unwritten(&trace, u128::MAX), trace, "of another call");
    }

    #[test]
    fn a_trace_is_named_after_its_program() {
        let check = |program: &str, expected: &str| {
            assert_eq!(trace_name(Path::new(program)), expected);
        };
        check("target/debug/bank", "bank.rwt");
        check("target/debug/deps/bank-0123456789abcdef", "bank-test.rwt");
        check("target/debug/bank-account", "bank-account.rwt");
    }
}
