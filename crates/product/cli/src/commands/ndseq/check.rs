//! `ndseq check`: whether a program's runs agree with its own `if (*)`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use reweave_ndseq::{Explanation, Verdict};
use reweave_report::compact;
use reweave_trace::Trace;
use reweave_workflows::inference::{Gathered, InferenceError, Observed, Trouble, gather};
use serde_json::{Value, json};

use super::report::{cycle_json, faults_json, run_text, write_page, write_section};
use super::{Processed, Running, write_documents};
use crate::commands::stats::DrawnFormat;
use crate::destination::Output;
use crate::exit;
use crate::interrupt;
use crate::program::{self, Loaded};

/// Check runs of a program against its own `if (*)`.
///
/// Runs the program a few times and reports whether every run has the result of a sequential one, in which threads run
/// one after another and the bodies of `if (*)` may be skipped. Exits with 0 if all do, and 66 if one does not or fails.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave ndseq check reduce_spec.rw --runs 20")]
pub(crate) struct Args {
    /// Programs of the language; `-` is standard input
    #[arg(value_name = "PROGRAM.rw", required = true)]
    programs: Vec<PathBuf>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output<DrawnFormat>,
}

/// What was checked of one program.
struct Checked {
    loaded: Loaded,
    gathered: Gathered,
    verdict: Verdict,
}

impl Checked {
    /// The run that no sequential one equals, and why.
    fn violation(&self) -> Option<(&Observed, &Explanation)> {
        match &self.verdict {
            Verdict::Serializable => None,
            Verdict::Violated(explanation) => {
                Some((&self.gathered.runs[explanation.run], explanation))
            }
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (destination, format) = args.output.prepare()?;
    let processed = Processed::new(&args.programs, |path| check(args, path));
    let results = &processed.results;
    if !results.is_empty() {
        destination.write("check of the specification", |out| match format {
            DrawnFormat::Text => results.iter().try_for_each(|checked| text(out, checked)),
            DrawnFormat::Json => write_json(out, results, args.programs.len() > 1),
            DrawnFormat::Html => {
                write_page(out, |out| results.iter().try_for_each(|checked| html(out, checked)))
            }
        })?;
    }
    let is_violated = |checked: &Checked| {
        checked.violation().is_some() || checked.gathered.troubles.iter().any(Trouble::is_fault)
    };
    Ok(processed.exit_code(|results| {
        if results.iter().any(is_violated) { exit::found() } else { ExitCode::SUCCESS }
    }))
}

fn check(args: &Args, path: &Path) -> anyhow::Result<Checked> {
    let loaded = program::load(path)?;
    interrupt::keep(interrupt::RESULTS);
    let name = loaded.source.name().to_owned();
    if let Some(line) = loaded.code.has_fork() {
        return Err(InferenceError::Fork(line)).context(name);
    }
    let gathered = gather(&loaded.code, &args.running.plan(), &|| !interrupt::is_asked());
    if gathered.runs.is_empty() {
        return Err(InferenceError::NoResult(gathered.troubles)).context(name);
    }
    let traces: Vec<&Trace> = gathered.runs.iter().map(|observed| &observed.run.trace).collect();
    let verdict = reweave_ndseq::check(&traces, &[]).context(name)?;
    Ok(Checked { loaded, gathered, verdict })
}

fn text(out: &mut dyn Write, checked: &Checked) -> io::Result<()> {
    for line in said(checked) {
        writeln!(out, "{line}")?;
    }
    checked.violation().map_or(Ok(()), |(observed, explanation)| {
        reweave_report::cycle_text(out, &observed.run.trace, explanation)
    })
}

fn html(out: &mut dyn Write, checked: &Checked) -> io::Result<()> {
    let violation = checked.violation();
    let cycle = violation.map(|(observed, explanation)| (&observed.run.trace, explanation));
    write_section(out, &said(checked), cycle)
}

/// What is said to people before the cycle, if there is one.
fn said(checked: &Checked) -> Vec<String> {
    let name = checked.loaded.source.name();
    let troubles = checked.gathered.troubles.iter();
    let mut said: Vec<String> = troubles.map(|trouble| format!("{name}: {trouble}")).collect();
    let runs = match checked.gathered.runs.len() {
        1 => "the run".to_owned(),
        count => format!("all {count} runs"),
    };
    let has_own = checked.gathered.runs[0]
        .run
        .trace
        .flow()
        .is_some_and(|flow| flow.blocks().iter().any(|block| block.is_optional));
    let with = if has_own {
        " with the program's own `if (*)`"
    } else {
        "; the program has no `if (*)` of its own"
    };
    said.push(match checked.violation() {
        None => format!("{name}: {runs} can be serialized{with}"),
        Some((observed, _)) => format!("{name}: {} cannot be serialized{with}", run_text(observed)),
    });
    said
}

fn write_json(out: &mut dyn Write, results: &[Checked], is_list: bool) -> io::Result<()> {
    let document = |checked: &Checked| {
        let violation = checked.violation();
        let cycle = violation.map(|(observed, explanation)| cycle_json(observed, explanation));
        compact(json!({
            "schema": "reweave/1",
            "program": checked.loaded.source.name(),
            "runs": checked.gathered.runs.len(),
            "unfinished": checked.gathered.troubles.iter().filter(|it| it.is_left_out()).count(),
            "faults": faults_json(&checked.gathered.troubles),
            "serializable": violation.is_none(),
            "cycle": cycle,
        }))
    };
    let documents: Vec<Value> = results.iter().map(document).collect();
    write_documents(out, &documents, is_list)
}
