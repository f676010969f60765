//! `fmt`: formats programs of the language.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use reweave_lang::Source;

use crate::destination::Destination;
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
    let (mut failures, mut unformatted) = (Vec::new(), Vec::new());
    for path in &args.programs {
        let (source, text) = match format(path) {
            Ok(formatted) => formatted,
            Err(error) => {
                failures.push(error);
                continue;
            }
        };
        let is_same = text == source.text();
        if args.check {
            unformatted.extend((!is_same).then(|| input::name(path)));
        } else if path == Path::new("-") {
            // Without standard output there is no use in going on.
            write(Destination::StandardOutput, &text).context("standard output")?;
        } else if !is_same {
            let written = Destination::prepare(Some(path)).and_then(|it| write(it, &text));
            failures.extend(written.err());
        }
    }
    let mut out = io::stdout().lock();
    let printed = unformatted.iter().try_for_each(|name| writeln!(out, "{name}"));
    printed.context("standard output")?;
    let code = if unformatted.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) };
    Ok(exit::after(&failures, code))
}

/// The program at `path`, and its text as it should be.
fn format(path: &Path) -> anyhow::Result<(Source, String)> {
    let source = program::read(path)?;
    let formatted = reweave_lang::format(&source);
    let text = formatted.map_err(|faults| {
        program::draw(&source, &faults);
        anyhow::anyhow!("{}: not formatted", source.name())
    })?;
    Ok((source, text))
}

fn write(destination: Destination, text: &str) -> anyhow::Result<()> {
    destination.write_bytes(|out| Ok(out.write_all(text.as_bytes()).and_then(|()| out.flush())?))
}
