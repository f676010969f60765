//! `cargo reweave`: cargo with an environment in which its builds are recorded.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context as _;
use reweave_record::toolchain::{self, CargoRequest};

use super::cc::{StepArgs, exec, own_path};

/// Build a Cargo project for recording, and record its programs and tests.
///
/// `cargo reweave build|run|test|bench`, followed by cargo's own arguments. `run`, `test` and `bench` record what they
/// run, to PROGRAM.rwt or to the output given by -o. Builds are in target/reweave, apart from ordinary ones. C code in
/// dependencies is not instrumented: its threads and locks are recorded, its memory accesses are not.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_flag = true,
    override_usage = "cargo reweave [OPTIONS] build|run|test|bench [ARGUMENT]...",
    after_help = "Options:\n  -o, --output TRACE  The trace to write, or a folder for one trace per \
                  program\n      --build-std     Instrument the standard library too (needs \
                  rust-src)\n      --time-limit S  Stop each program after this many seconds, and keep \
                  what was recorded\n      --mode MODE     How threads run while recorded: serial or \
                  free\n      --seed N        Seed of the context switches; another seed gives another \
                  schedule\n      --keep-env N    Also store this environment variable in the \
                  trace\n\nExample:\n  \
                  cargo reweave run\n  cargo reweave -o traces test --release"
)]
pub struct Args {
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// A command of cargo and its arguments
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs the command. Returns only if cargo cannot be started.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let request = CargoRequest {
        arguments: args.arguments.clone(),
        own: own_path()?,
        folder: std::env::current_dir().context("cannot find the current folder")?,
    };
    exec(&toolchain::cargo(&request)?)
}

/// Runs a program that cargo has built. If cargo is ended, so is this.
pub fn run_program(args: &StepArgs) -> anyhow::Result<ExitCode> {
    reweave_record::run::terminate_with_parent();
    exec(&toolchain::runner(&own_path()?, args.arguments())?)
}
