//! How what was inferred is printed.

use std::io::{self, Write};

use reweave_exec::{Blocked, Fault};
use reweave_ndseq::{Answer, Explanation, Placement, Statistics, Unneeded};
use reweave_report::{compact, cycle_html, markup, page, prose};
use reweave_trace::{Flow, Trace};
use reweave_workflows::inference::{Inferred, Observed, Rejected, Trouble, Validation, Wrong};
use serde_json::{Value, json};

use super::write_documents;
use crate::commands::stats::DrawnFormat;
use crate::program::Loaded;

/// What was inferred of one program.
pub(super) struct Inference {
    pub(super) loaded: Loaded,
    pub(super) inferred: Inferred,
}

/// Writes all of `results`; for programs as a list if `is_list`.
pub(super) fn write_all(
    out: &mut dyn Write,
    results: &[Inference],
    format: DrawnFormat,
    is_list: bool,
) -> io::Result<()> {
    match format {
        DrawnFormat::Text => results.iter().try_for_each(|result| result.text(out)),
        DrawnFormat::Json => {
            let documents: Vec<Value> = results.iter().map(Inference::json).collect();
            write_documents(out, &documents, is_list)
        }
        DrawnFormat::Html => {
            write_page(out, |out| results.iter().try_for_each(|result| result.html(out)))
        }
    }
}

impl Inference {
    fn flow(&self) -> Option<&Flow> {
        self.inferred.runs.first().and_then(|observed| observed.run.trace.flow())
    }

    fn lines(&self, placement: Placement) -> (u32, u32) {
        self.flow().and_then(|flow| placement.lines(flow)).unwrap_or((0, 0))
    }

    fn spelled(&self, placements: &[Placement]) -> String {
        let spelled: Vec<String> = placements
            .iter()
            .map(|&placement| match self.lines(placement) {
                (first, last) if first == last => format!("line {first}"),
                (first, last) => format!("lines {first}–{last}"),
            })
            .collect();
        spelled.join(", ")
    }

    /// What is said to people. With a specification the whole is a program: the rest are comments.
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let specification = self.specification();
        let comment = if specification.is_some() { "// " } else { "" };
        for line in self.said() {
            writeln!(out, "{comment}{line}")?;
        }
        if let Some((trace, explanation)) = self.cycle() {
            reweave_report::cycle_text(out, trace, explanation)?;
        }
        if let Some(validation) = self.validation_text() {
            writeln!(out, "{comment}{validation}")?;
        }
        match specification {
            Some(specification) => write!(out, "\n{specification}"),
            None => Ok(()),
        }
    }

    fn html(&self, out: &mut dyn Write) -> io::Result<()> {
        write_section(out, &self.said(), self.cycle())?;
        if let Some(validation) = self.validation_text() {
            writeln!(out, "<p>{}</p>", markup(&validation))?;
        }
        match self.specification() {
            Some(program) => {
                let lines: Vec<String> = program.lines().map(markup).collect();
                writeln!(out, "<pre>{}</pre>", lines.join("\n"))
            }
            None => Ok(()),
        }
    }

    /// The program with `if (*)` in place, if it needs any.
    fn specification(&self) -> Option<&String> {
        self.inferred.specification.as_ref().filter(|_| !self.is_unneeded())
    }

    /// The cycle that no placement removes, if that is the answer.
    fn cycle(&self) -> Option<(&Trace, &Explanation)> {
        match &self.inferred.inference.answer {
            Answer::Impossible(explanation) => {
                Some((&self.inferred.runs[explanation.run].run.trace, explanation))
            }
            _ => None,
        }
    }

    /// What is said before the cycle or the program.
    fn said(&self) -> Vec<String> {
        let name = self.loaded.source.name();
        let troubles = self.inferred.troubles.iter().map(|trouble| format!("{name}: {trouble}"));
        let rejected = self.inferred.rejected.iter();
        let rejected = rejected.map(|it| format!("{name}: {}", self.rejected_text(it)));
        let answer = format!("{name}: {}", self.answer_text());
        troubles.chain(rejected).chain([answer]).collect()
    }

    fn answer_text(&self) -> String {
        match &self.inferred.inference.answer {
            Answer::Unneeded(reason) => {
                format!("no `if (*)` is needed: {}", unneeded_text(*reason))
            }
            Answer::Specification(placements) => {
                let count = placements.len();
                let are = if count == 1 { "is" } else { "are" };
                format!("{count} `if (*)` {are} needed: {}", self.spelled(placements))
            }
            Answer::Impossible(explanation) => {
                let run = run_text(&self.inferred.runs[explanation.run]);
                format!("no `if (*)` removes this cycle of conflicts from {run}")
            }
            Answer::NoneLeft => "every specification of the runs is rejected".to_owned(),
            Answer::Exhausted { lower_bound, .. } => {
                format!("the search was cut short; at least {lower_bound} `if (*)` are needed")
            }
        }
    }

    fn is_unneeded(&self) -> bool {
        matches!(self.inferred.inference.answer, Answer::Unneeded(_))
    }

    fn validation_text(&self) -> Option<String> {
        Some(match &self.inferred.validation {
            Validation::NotAsked => return None,
            Validation::Valid { parallel, sequential } if self.inferred.specification.is_none() => {
                format!(
                    "yet every result of the program ({parallel}) is one of its sequential runs \
                     ({sequential})"
                )
            }
            Validation::Valid { parallel, sequential } => format!(
                "validated: every result of the program ({parallel}) is one of the sequential \
                 program's ({sequential}), and no assertion fails"
            ),
            Validation::Faulty(fault) => {
                let Fault { thread, kind, line, .. } = fault;
                format!("the program itself is at fault: line {line} in thread {thread}: {kind}")
            }
            Validation::Deadlock(blocked) => {
                let waits = |blocked: &Blocked| {
                    let Blocked { thread, awaited, line } = blocked;
                    format!("{thread} waits at line {line} for {awaited}")
                };
                let waits: Vec<String> = blocked.iter().map(waits).collect();
                format!("the program itself can deadlock: {}", waits.join(", "))
            }
            Validation::Unknown => "not validated: there are too many runs to go through; \
                                    `--states` sets how many"
                .to_owned(),
        })
    }

    fn rejected_text(&self, rejected: &Rejected) -> String {
        let what = match rejected.placements.as_slice() {
            [] => "no `if (*)` at all".to_owned(),
            placements => format!("`if (*)` at {}", self.spelled(placements)),
        };
        let why = match &rejected.reason {
            Wrong::Fault { fault, statement } => {
                format!("sequentially `{statement}` fails: {}", fault.kind)
            }
            Wrong::Missing(outcome) => {
                let names = self.loaded.code.result_names();
                let values = names.iter().zip(&outcome.result).take(8);
                let values: Vec<String> =
                    values.map(|(name, value)| format!("{name} = {value}")).collect();
                format!("the program can end with {}, no sequential run does", values.join(", "))
            }
        };
        format!("{what} is rejected: {why}")
    }

    fn json(&self) -> Value {
        let inferred = &self.inferred;
        let answer = &inferred.inference.answer;
        let placements = match answer {
            Answer::Specification(placements)
            | Answer::Exhausted { found: Some(placements), .. } => placements.as_slice(),
            _ => &[],
        };
        let satisfiable = match answer {
            Answer::Unneeded(_) | Answer::Specification(_) => Some(true),
            Answer::Impossible(_) | Answer::NoneLeft => Some(false),
            Answer::Exhausted { found, .. } => found.is_some().then_some(true),
        };
        let reason = match answer {
            Answer::Unneeded(reason) => Some(unneeded_word(*reason)),
            Answer::NoneLeft => Some("every specification is rejected"),
            _ => None,
        };
        let cycle = match answer {
            Answer::Impossible(explanation) => {
                Some(cycle_json(&inferred.runs[explanation.run], explanation))
            }
            _ => None,
        };
        let rejected = inferred.rejected.iter().map(|rejected| {
            json!({
                "placements": self.placements_json(&rejected.placements),
                "reason": self.rejected_text(rejected),
            })
        });
        let mut document = compact(json!({
            "schema": "reweave/1",
            "program": self.loaded.source.name(),
            "placements": self.placements_json(placements),
            "complete": !matches!(answer, Answer::Exhausted { .. }),
            "runs": inferred.runs.len(),
            "unfinished": inferred.troubles.iter().filter(|trouble| trouble.is_left_out()).count(),
            "faults": faults_json(&inferred.troubles),
            "statistics": statistics_json(&inferred.inference.statistics),
            "reason": reason,
            "cycle": cycle,
            "specification": inferred.specification,
            "rejected": (!inferred.rejected.is_empty()).then(|| Value::from_iter(rejected)),
        }));
        // These are null where the answer is not known.
        document["satisfiable"] = json!(satisfiable);
        document["cost"] = json!((satisfiable == Some(true)).then_some(placements.len()));
        if let Some(validated) =
            validated(&inferred.validation).filter(|_| satisfiable == Some(true))
        {
            document["validated"] = validated;
        }
        document
    }

    fn placements_json(&self, placements: &[Placement]) -> Value {
        let lines = placements.iter().map(|&placement| self.lines(placement));
        Value::from_iter(lines.map(|(first, last)| json!({ "first": first, "last": last })))
    }
}

/// What a run is called.
pub(super) fn run_text(observed: &Observed) -> String {
    match observed.seed {
        Some(seed) => format!("the run with seed {seed}"),
        None => "a run that the validation found".to_owned(),
    }
}

/// The cycle, with the seed of its run where it has one.
pub(super) fn cycle_json(observed: &Observed, explanation: &Explanation) -> Value {
    let mut cycle = reweave_report::cycle_json(&observed.run.trace, explanation);
    if let Some(cycle) = cycle.as_object_mut() {
        cycle.insert("seed".to_owned(), json!(observed.seed));
    }
    cycle
}

/// What the program did wrong by itself.
pub(super) fn faults_json(troubles: &[Trouble]) -> Value {
    let faulty = troubles.iter().filter(|trouble| trouble.is_fault());
    Value::from_iter(faulty.map(|trouble| {
        let line = trouble.faults.first().map(|fault| fault.line);
        json!({ "seed": trouble.seed, "line": line, "message": trouble.to_string() })
    }))
}

/// Whether the specification holds for all runs; null where that could not be decided, none where
/// it was not asked.
fn validated(validation: &Validation) -> Option<Value> {
    match validation {
        Validation::NotAsked => None,
        Validation::Valid { .. } => Some(json!(true)),
        Validation::Faulty(_) | Validation::Deadlock(_) => Some(json!(false)),
        Validation::Unknown => Some(Value::Null),
    }
}

const fn unneeded_text(reason: Unneeded) -> &'static str {
    match reason {
        Unneeded::Serializable => "every run can be serialized as it is",
        Unneeded::IrrelevantConflicts => {
            "what cannot be serialized affects neither a result nor a branch"
        }
        Unneeded::OwnPlacements => "the program's own are enough",
    }
}

const fn unneeded_word(reason: Unneeded) -> &'static str {
    match reason {
        Unneeded::Serializable => "serializable",
        Unneeded::IrrelevantConflicts => "irrelevant-conflicts",
        Unneeded::OwnPlacements => "own-placements",
    }
}

fn statistics_json(statistics: &Statistics) -> Value {
    let runs = statistics.runs.iter().map(|run| {
        json!({
            "events": run.events,
            "sliced_out": run.sliced_out,
            "forced": run.forced,
            "serializable": run.is_serializable,
        })
    });
    json!({
        "runs": Value::from_iter(runs),
        "candidates": statistics.candidates,
        "variables": statistics.variables,
        "clauses": statistics.clauses,
        "cycle_clauses": statistics.cycles,
        "rounds": statistics.rounds,
        "cores": statistics.cores,
    })
}

/// Writes a page with what `body` writes.
pub(super) fn write_page(
    out: &mut dyn Write,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    page(
        out,
        "Sequential specifications: reweave",
        "What runs one after the other would give",
        body,
    )
}

/// Writes what is `said` of one program, and its cycle if there is one.
pub(super) fn write_section(
    out: &mut dyn Write,
    said: &[String],
    cycle: Option<(&Trace, &Explanation)>,
) -> io::Result<()> {
    for line in said {
        writeln!(out, "<p>{}</p>", prose(line))?;
    }
    cycle.map_or(Ok(()), |(trace, explanation)| cycle_html(out, trace, explanation))
}
