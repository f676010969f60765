//! `cargo reweave`: cargo with an environment in which what it builds is recorded.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context as _;
use reweave_record::toolchain::{self, CargoRequest};

use super::cc::{StepArgs, become_it, own_path};
use crate::exit::say;

/// Build a Cargo project to be recorded, and record its programs and tests.
///
/// `cargo reweave build|run|test|bench`, with cargo's own arguments after it. `run`, `test` and
/// `bench` record what they run: to PROGRAM.rwt, or to where -o says. What is built lies in
/// target/reweave, apart from ordinary builds. C code in dependencies is built as ever: its threads
/// and locks are seen, its accesses are not.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_flag = true,
    override_usage = "cargo reweave [-o TRACE] [--build-std] build|run|test|bench [ARGUMENT]...",
    after_help = "Options:\n  -o, --output TRACE  The trace to write, or a folder for one trace per \
                  program\n      --build-std     Build the standard library too, so that all of it \
                  is seen (needs\n                      rust-src)\n\nExample:\n  \
                  cargo reweave run\n  cargo reweave -o traces test --release"
)]
pub(crate) struct Args {
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// The command of cargo and its arguments
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs the command. Does not return unless cargo does not start.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let request = CargoRequest {
        arguments: args.arguments.clone(),
        own: own_path()?,
        folder: std::env::current_dir().context("the current folder is unknown")?,
    };
    let call = toolchain::cargo(&request)?;
    for warning in &call.warnings {
        say(&format!("reweave: {warning}"));
    }
    become_it(&call)
}

/// Runs a program that cargo has built.
pub(crate) fn run_program(args: &StepArgs) -> anyhow::Result<ExitCode> {
    become_it(&toolchain::runner(&own_path()?, args.arguments())?)
}
