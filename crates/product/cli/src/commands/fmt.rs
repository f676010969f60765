//! `fmt`: formats programs of the language.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use reweave_lang::Source;

use crate::{exit, input, program};

/// The exit code of `--check` if something differs, as for other formatters.
const DIFFERS: u8 = 1;

/// Format programs of the reweave language.
///
/// Four spaces per block, one statement per line; comments stay. A file is replaced as a whole, and only if it
/// changes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave fmt bank.rw\n  reweave fmt --check *.rw")]
pub struct Args {
    /// Programs to format; `-` is standard input to standard output
    #[arg(value_name = "PROGRAM", required = true)]
    programs: Vec<PathBuf>,
    /// Change nothing; list unformatted programs and exit with 1 if any
    #[arg(long)]
    check: bool,
}

/// Runs the command. A program that cannot be formatted does not stop the others.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    input::check_names(&args.programs)?;
    let (mut failures, mut differing) = (Vec::new(), Vec::new());
    for path in &args.programs {
        match format(path, args.check) {
            Ok(true) => {}
            Ok(false) => differing.push(input::name(path)),
            // Without standard output there is no use in going on.
            Err(error) if error.is::<OutputFailed>() => return Err(error),
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

/// Standard output cannot be written to.
#[derive(Debug)]
struct OutputFailed;

impl std::fmt::Display for OutputFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output")
    }
}

/// Formats the program at `path`, in place unless `is_check`. Whether it was formatted before.
fn format(path: &Path, is_check: bool) -> anyhow::Result<bool> {
    let source = program::read(path)?;
    let text = reweave_lang::format(&source).map_err(|faults| {
        program::draw(&source, &faults);
        anyhow::anyhow!("{}: not formatted", source.name())
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

/// Replaces the file at `path`, or the target of a link there: as a whole, or not at all.
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
