//! `cargo reweave`: hands its arguments to the `reweave` beside it.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The exit code where nothing could be run, as for bad input elsewhere.
const NOT_RUN: u8 = 2;

fn main() -> ExitCode {
    // Cargo passes on the name under which it was asked for us.
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "reweave") {
        arguments.remove(0);
    }
    let name = format!("reweave{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(&name));
    let program = beside.filter(|file| file.is_file()).unwrap_or_else(|| PathBuf::from(&name));
    let mut command = Command::new(&program);
    match arguments.first().and_then(|first| first.to_str()) {
        Some("--version" | "-V") => command.arg("--version"),
        _ => command.arg("cargo").args(arguments),
    };
    let error = command.exec();
    let place = program.display();
    _ = writeln!(std::io::stderr(), "cargo-reweave: cannot run `{place}`: {error}");
    ExitCode::from(NOT_RUN)
}
