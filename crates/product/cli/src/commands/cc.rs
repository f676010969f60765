//! `cc`, `c++`: a compiler that builds programs for recording, and the steps of gcc.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus, Stdio};

use anyhow::Context as _;
use reweave_record::toolchain::{self, CompilerRequest, Invocation, Language, Linkage, Unchanged};

use crate::exit::say;

/// Compile and link a C program for recording, like gcc or clang.
///
/// Takes any arguments of the compiler, for compiling, linking or both: `CC="reweave cc" make`. The compiler is the
/// first argument if that names one, else $REWEAVE_CC, else `cc`. Files compiled with -fno-sanitize=thread are not
/// instrumented. <reweave.h> is in the include path.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Example:\n  reweave cc -O1 -pthread bank.c -o bank\n  reweave cc clang -c bank.c\n  \
                  CC=\"reweave cc\" make"
)]
pub struct CArgs {
    #[command(flatten)]
    call: CallArgs,
}

/// Compile and link a C++ program for recording, like g++ or clang++.
///
/// Takes any arguments of the compiler, for compiling, linking or both: `CXX="reweave c++" make`. The compiler is the
/// first argument if that names one, else $REWEAVE_CXX, else `c++`. Files compiled with -fno-sanitize=thread are not
/// instrumented. <reweave.h> is in the include path.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Example:\n  reweave c++ -O1 -pthread bank.cpp -o bank\n  \
                  reweave c++ clang++ -c bank.cpp\n  CXX=\"reweave c++\" make"
)]
pub struct CPlusPlusArgs {
    #[command(flatten)]
    call: CallArgs,
}

#[derive(Debug, clap::Args)]
struct CallArgs {
    /// How to link the recorder: `dynamic` or `static` [default: dynamic]
    ///
    /// `dynamic` is a shared library in the cache, `static` puts it into the executable. The variable REWEAVE_RUNTIME
    /// sets it too.
    #[arg(long, value_name = "HOW")]
    runtime: Option<OsString>,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// Arguments of the compiler, optionally after its name
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// A step that gcc runs through us.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct StepArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl StepArgs {
    /// The arguments.
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }
}

/// Runs `cc`. Returns only if the compiler cannot be started.
pub fn run_c(args: &CArgs) -> anyhow::Result<ExitCode> {
    run(&args.call, Language::C, "REWEAVE_CC")
}

/// Runs `c++`. Returns only if the compiler cannot be started.
pub fn run_cplusplus(args: &CPlusPlusArgs) -> anyhow::Result<ExitCode> {
    run(&args.call, Language::CPlusPlus, "REWEAVE_CXX")
}

/// Runs a step of gcc.
pub fn run_step(args: &StepArgs) -> anyhow::Result<ExitCode> {
    exec(&toolchain::wrap(&args.arguments)?)
}

fn run(args: &CallArgs, language: Language, variable: &str) -> anyhow::Result<ExitCode> {
    let request = CompilerRequest {
        language,
        linkage: linkage(args)?,
        preferred: std::env::var_os(variable),
        arguments: args.arguments.clone(),
        own: own_path()?,
    };
    exec(&toolchain::compile(&request)?)
}

fn linkage(args: &CallArgs) -> anyhow::Result<Linkage> {
    let asked = args
        .runtime
        .clone()
        .or_else(|| std::env::var_os("REWEAVE_RUNTIME").filter(|value| !value.is_empty()));
    let Some(asked) = asked else { return Ok(Linkage::default()) };
    Linkage::from_name(&asked).with_context(|| {
        format!("expected `static` or `dynamic` for the runtime, found `{}`", asked.display())
    })
}

/// The path of this command.
pub fn own_path() -> anyhow::Result<std::path::PathBuf> {
    std::env::current_exe().context("cannot find the path of this executable")
}

/// Makes this process the program, so that its end, its signals and its output are the program's.
pub fn exec(invocation: &Invocation) -> anyhow::Result<ExitCode> {
    for warning in &invocation.warnings {
        say(&format!("reweave: {warning}"));
    }
    if let Some(unchanged) = &invocation.unchanged {
        return run_or_unchanged(invocation, unchanged);
    }
    let error = std::os::unix::process::CommandExt::exec(&mut invocation.command());
    Err(error).with_context(|| format!("cannot run `{}`", invocation.program.display()))
}

/// Runs the step as we changed it; if it fails, as it was.
fn run_or_unchanged(invocation: &Invocation, unchanged: &Unchanged) -> anyhow::Result<ExitCode> {
    // Whoever interrupts also interrupts the step, and the folder must not stay.
    _ = ctrlc::set_handler(|| {});
    let mut command = invocation.command();
    let changed =
        command.stderr(Stdio::piped()).spawn().and_then(std::process::Child::wait_with_output);
    _ = std::fs::remove_dir_all(&unchanged.scratch);
    if let Ok(output) = &changed
        && (output.status.success() || output.status.signal().is_some())
    {
        std::io::stderr().write_all(&output.stderr)?;
        return Ok(exit_code(output.status));
    }
    let mut command = std::process::Command::new(&invocation.program);
    let status = command.args(&unchanged.arguments).status();
    let status =
        status.with_context(|| format!("cannot run `{}`", invocation.program.display()))?;
    if status.success() {
        say(&format!("reweave: {}", unchanged.warning));
    }
    Ok(exit_code(status))
}

/// The exit code that a shell would give.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
