//! `fmt`: programs of the language in the one layout.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use reweave_lang::Source;

use crate::{exit, input, program};

/// The exit code of `--check` where something differs, as formatters have it.
const DIFFERS: u8 = 1;

/// Lay out programs of the language in the one way: four spaces a block, one statement a line,
/// comments kept. Files are replaced whole, and only if they change.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave fmt bank.rw\n  reweave fmt --check *.rw")]
pub(crate) struct Args {
    /// The programs; `-` is standard input, laid out on standard output
    #[arg(value_name = "PROGRAM", required = true)]
    programs: Vec<PathBuf>,
    /// Change nothing: print the names of the programs that differ, and exit with 1 if there are
    /// any
    #[arg(long)]
    check: bool,
}

/// Runs the command. What cannot be laid out does not keep the others from it.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    input::check_names(&args.programs)?;
    let (mut failures, mut differing) = (Vec::new(), Vec::new());
    for path in &args.programs {
        match lay_out(path, args.check) {
            Ok(true) => {}
            Ok(false) => differing.push(input::name(path)),
            Err(error) if is_of_output(&error) => return Err(error),
            Err(error) => failures.push(error),
        }
    }
    let mut code = ExitCode::SUCCESS;
    if args.check && !differing.is_empty() {
        let mut out = io::stdout().lock();
        let printed = differing.iter().try_for_each(|name| writeln!(out, "{name}"));
        printed.context("standard output")?;
        code = ExitCode::from(DIFFERS);
    }
    Ok(exit::after(&failures, code))
}

/// Whether standard output is what failed: then there is no use in going on.
fn is_of_output(error: &anyhow::Error) -> bool {
    error.is::<OutputFailed>()
}

/// Standard output cannot be written to.
#[derive(Debug)]
struct OutputFailed;

impl std::fmt::Display for OutputFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output")
    }
}

/// Lays out the program at `path`, in place unless only asked. Whether it was laid out so before.
fn lay_out(path: &Path, is_check: bool) -> anyhow::Result<bool> {
    let source = program::read(path)?;
    let text = reweave_lang::format(&source).map_err(|faults| {
        program::draw(&source, &faults);
        anyhow::anyhow!("{}: left as it is", source.name())
    })?;
    let is_same = text == source.text();
    if is_check {
        return Ok(is_same);
    }
    if path == Path::new("-") {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(OutputFailed)?;
    } else if !is_same {
        replace(path, &source, &text)?;
    }
    Ok(is_same)
}

/// Replaces the file at `path`, or what a link there points to: whole, or not at all.
fn replace(path: &Path, source: &Source, text: &str) -> anyhow::Result<()> {
    let replaced = || -> io::Result<()> {
        let target = fs::canonicalize(path)?;
        let there = fs::metadata(&target)?;
        if !there.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        if there.permissions().readonly() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
        }
        let folder = target.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".reweave-").tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(there.permissions())?;
        file.persist(&target)?;
        Ok(())
    };
    replaced().with_context(|| format!("cannot write {}", source.name()))
}
