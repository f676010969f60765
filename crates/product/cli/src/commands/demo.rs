//! `demo`: a run without a visible fault, and what other runs can do.
//!
//! With a C compiler the run is one of a real program, in which the predicted race is then replayed.
//! Without one, or if any step fails, the run is a bundled trace.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use reweave_analysis::{Outcome, Settings};
use reweave_catalog::Quiet;
use reweave_format::ReadOptions;
use reweave_report::{Confirmation, Examined, SetAside, Sources};
use reweave_trace::Trace;
use tempfile::TempDir;

use super::cc::own_path;
use super::confirm::{self, Replaying};
use crate::destination::Destination;
use crate::exit::{self, say};
use crate::interrupt;
use crate::launch::Launch;

const BUNDLED: &str = include_str!("../../data/hidden.std");

/// A program whose ordinary runs hide a race, and its name without `.c`.
const PROGRAM: &str = include_str!("../../../../../examples/hidden_race.c");
const PROGRAM_NAME: &str = "hidden_race";

/// The relation that widely used detectors use.
const USUAL: &str = "races.hb";

/// How long to wait for a compiler, or for the run to be recorded.
const PATIENCE: Duration = Duration::from_secs(20);

/// Predict a race in a small program, make it happen, write a report.
///
/// Without a C compiler a bundled trace is used instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave demo -o demo.html")]
pub struct Args {
    /// Write the HTML report to this file; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "reweave-demo.html")]
    output: PathBuf,
}

/// A run, and what was found in it.
struct DemoRun {
    /// The name of the trace.
    name: &'static str,
    trace: Trace,
    /// What happens-before finds.
    usual: Outcome,
    /// What we find.
    found: Outcome,
    confirmations: Vec<Confirmation>,
    sources: Sources,
    /// Where the program was built; kept while its source code is shown.
    _folder: Option<TempDir>,
    /// What a recorded program printed; none for the bundled run.
    printed: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let demo = match recorded() {
        Ok(demo) => demo,
        Err(error) => {
            say(&format!("Using a bundled trace, since no program could be recorded: {error:#}"));
            bundled()?
        }
    };
    let examined = Examined::new(demo.name, &demo.trace, &demo.found);
    let (confirmations, sources) = (&demo.confirmations[..], &demo.sources);
    // There is no trace that another command could read.
    let examined = Examined { confirmations, sources, is_kept: false, ..examined };
    let page = |out: &mut dyn Write| reweave_report::html(out, &[examined]);
    if args.output == Path::new("-") {
        // Standard output is the page, so the text goes to standard error.
        demo.write(&mut anstream::stderr().lock(), &examined)?;
        Destination::StandardOutput.write("", page)?;
    } else {
        Destination::StandardOutput.write("", |out| demo.write(out, &examined))?;
        write_page(&args.output, page);
    }
    Ok(exit::of_search([&demo.found].into_iter()))
}

/// What the analyses whose names start with `only` find, or the default ones.
fn check(trace: &Trace, only: &str) -> anyhow::Result<Outcome> {
    let analyses = reweave_catalog::select(only, &[])?;
    Ok(reweave_catalog::run(trace, &analyses, &Settings::default(), &Quiet))
}

fn bundled() -> anyhow::Result<DemoRun> {
    let name = "hidden.std";
    let trace = reweave_format::read_from(BUNDLED.as_bytes(), name, &ReadOptions::default())?.trace;
    let (usual, found) = (check(&trace, USUAL)?, check(&trace, "")?);
    let (confirmations, sources) = (Vec::new(), Sources::none());
    Ok(DemoRun { name, trace, usual, found, confirmations, sources, _folder: None, printed: None })
}

/// Builds the program, runs it once, looks at the run and replays what is found.
fn recorded() -> anyhow::Result<DemoRun> {
    let folder = tempfile::tempdir().context("cannot create a folder to build it in")?;
    let source = format!("{PROGRAM_NAME}.c");
    fs::write(folder.path().join(&source), PROGRAM)
        .context("cannot create a folder to build it in")?;
    let building = ["cc", "-g", "-O1", "-pthread", &source, "-o", PROGRAM_NAME];
    own_command(folder.path(), &building).context("cannot build it")?;
    let program = folder.path().join(PROGRAM_NAME);
    let trace = format!("{PROGRAM_NAME}.rwt");
    let recording = ["record", "-o", &trace, "--", &format!("./{PROGRAM_NAME}")];
    let printed = own_command(folder.path(), &recording).context("cannot record it")?;
    let trace = reweave_format::read(&folder.path().join(trace), &ReadOptions::default())?.trace;
    let (usual, found) = (check(&trace, USUAL)?, check(&trace, "")?);
    // On a busy computer the audit may come first; then there is nothing hidden to show.
    let is_hidden = usual.findings.is_empty() && !found.findings.is_empty();
    anyhow::ensure!(is_hidden, "the race was not hidden in this run");
    let launch = Launch::new(&[program.into()], None);
    let confirmations = confirm::all(&trace, &found, Replaying::quiet(PATIENCE), &launch)?;
    let (name, printed) = ("hidden_race.rwt", Some(printed));
    let sources = Sources::new(vec![folder.path().to_owned()], None);
    let _folder = Some(folder);
    Ok(DemoRun { name, trace, usual, found, confirmations, sources, _folder, printed })
}

/// Runs this command with `arguments` in `folder`, and gives what it prints.
///
/// # Errors
/// If it cannot be started, takes too long or fails; then the first line of what it says.
fn own_command(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    // Files and not pipes: nobody needs to read along, and children of it cannot keep them open.
    let [out, err] = ["out", "err"].map(|name| folder.join(name));
    let mut child = Command::new(own_path()?)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?)
        .spawn()?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if interrupt::is_asked() || start.elapsed() > PATIENCE {
            // It ended by itself meanwhile, or it ends now.
            _ = child.kill();
            _ = child.wait();
            anyhow::bail!("`reweave {}` took too long", arguments[0]);
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if !status.success() {
        let said = fs::read_to_string(&err).unwrap_or_default();
        let line = said.lines().next().unwrap_or("no reason given");
        anyhow::bail!("{}", line.strip_prefix("reweave: ").unwrap_or(line));
    }
    Ok(fs::read_to_string(&out)?)
}

impl DemoRun {
    fn write(&self, out: &mut dyn Write, examined: &Examined<'_>) -> io::Result<()> {
        match &self.printed {
            Some(printed) => write_program(out, printed)?,
            None => write_bundled(out)?,
        }
        let lock = if self.printed.is_some() { "lock" } else { "book" };
        writeln!(
            out,
            "\nA detector that uses happens-before, as ThreadSanitizer does, reports for this run:\n\
             {}. One thread released the lock `{lock}` before the other acquired it, which orders\n\
             the two writes of `balance` in this run. What can happen in other runs:\n",
            reweave_report::summary(&self.usual, SetAside::default())
        )?;
        reweave_report::text(out, &[*examined])
    }
}

fn write_bundled(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "A program moves money in one thread and audits in another. One run of it:\n")?;
    for line in BUNDLED.lines().filter(|line| !line.starts_with('#')) {
        writeln!(out, "    {line}")?;
    }
    Ok(())
}

/// The functions of the program that the threads run, and what it printed.
fn write_program(out: &mut dyn Write, printed: &str) -> io::Result<()> {
    writeln!(out, "This program makes a deposit in one thread and audits in another:\n")?;
    let lines = PROGRAM.lines().enumerate();
    let shown = lines.skip_while(|(_, line)| !line.contains("*deposit("));
    for (at, line) in shown.take_while(|(_, line)| !line.contains("main(")) {
        writeln!(out, "{}", format!("{:>6}  {line}", at + 1).trim_end())?;
    }
    let printed = printed.trim_end();
    writeln!(out, "It was built and recorded once. It printed: {printed}")
}

/// Writes the page if possible; the demo goes on without it.
fn write_page(path: &Path, page: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let written =
        Destination::prepare(Some(path)).and_then(|destination| destination.write("", page));
    match written {
        Ok(()) => say(&format!("Report written to {}", path.display())),
        Err(error) => say(&format!("No report was written: {error:#}")),
    }
}
