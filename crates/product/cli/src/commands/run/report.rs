//! How runs of a program are printed.

use std::io::{self, Write};
use std::path::PathBuf;

use reweave_exec::{Blocked, Choice, Code, Ending, Exploration, Fault, FaultKind, Outcome, Run};
use reweave_report::{Examined, counted};
use reweave_trace::Trace;
use serde_json::{Value, json};

use super::SchedulerName;
use crate::program::{self, Loaded};

/// What the runs of a program did.
#[derive(Default)]
pub struct Made {
    pub runs: Vec<OneRun>,
    /// The number of states, if all schedules were enumerated.
    pub states_count: Option<u64>,
    pub is_complete: bool,
    /// Whether some schedule never ends.
    pub is_endless: bool,
    /// Faults of schedules that do not end.
    pub other_faults: Vec<Fault>,
    /// What was watched for, run by run.
    pub watched: Vec<Watched>,
}

/// What was found in one run that was watched.
pub struct Watched {
    pub name: String,
    pub trace: Trace,
    pub outcome: reweave_analysis::Outcome,
}

/// One run, or one outcome of many.
pub struct OneRun {
    seed: Option<u64>,
    steps_count: Option<usize>,
    events_count: Option<usize>,
    /// The choices of a sequential run.
    choices: Option<String>,
    ending: Ending,
    faults: Vec<Fault>,
    /// The program's result, by name.
    result: Vec<(String, i64)>,
    trace: Option<PathBuf>,
}

impl Made {
    /// An exploration, its outcomes to be added.
    pub fn new<W>(exploration: &Exploration<W>) -> Self {
        let is_told = |fault: &Fault| {
            exploration.outcomes.iter().any(|(outcome, _)| outcome.faults.contains(fault))
        };
        let faults = exploration.faults.iter().map(|(fault, _)| fault);
        Self {
            states_count: Some(exploration.states_count),
            is_complete: exploration.complete,
            is_endless: exploration.is_endless,
            other_faults: faults.filter(|fault| !is_told(fault)).cloned().collect(),
            ..Self::default()
        }
    }

    /// Adds an outcome, and how long a schedule that shows it is.
    pub fn add_outcome(&mut self, code: &Code, outcome: &Outcome, steps: Option<usize>) {
        self.runs.push(OneRun {
            seed: None,
            steps_count: steps,
            events_count: None,
            choices: None,
            ending: outcome.ending.clone(),
            faults: outcome.faults.clone(),
            result: code.result_names().into_iter().zip(outcome.result.iter().copied()).collect(),
            trace: None,
        });
    }

    /// Adds the choices that lead to the last outcome.
    pub fn add_choices(&mut self, choices: &[Choice]) {
        let told = choices.iter().take(CHOICES_MAX).map(|choice| match choice {
            Choice::Thread(name) => name.to_string(),
            Choice::Taken(line) => format!("line {line} taken"),
            Choice::Skipped(line) => format!("line {line} skipped"),
        });
        let mut told: Vec<String> = told.collect();
        if choices.len() > CHOICES_MAX {
            told.push(format!("… {} more", choices.len() - CHOICES_MAX));
        }
        if let Some(last) = self.runs.last_mut() {
            last.choices = Some(told.join(", "));
        }
    }

    pub fn add(&mut self, code: &Code, seed: Option<u64>, run: &Run, trace: Option<PathBuf>) {
        self.runs.push(OneRun {
            seed,
            steps_count: Some(run.schedule.0.len()),
            events_count: Some(run.trace.len()),
            choices: None,
            ending: run.ending.clone(),
            faults: run.faults.clone(),
            result: code.result_names().into_iter().zip(run.result(code)).collect(),
            trace,
        });
    }
}

/// What is printed of the runs of one program.
pub struct Report<'a> {
    pub loaded: &'a Loaded,
    pub scheduler: SchedulerName,
    pub made: &'a Made,
}

/// How many choices of a sequential run are shown.
const CHOICES_MAX: usize = 24;

/// How many elements of a result are shown to people.
const SHOWN_MAX: usize = 32;

impl Report<'_> {
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = self.loaded.source.name();
        if let Some(states_count) = self.made.states_count {
            let outcomes = counted(self.made.runs.len() as u64, "outcome");
            let states = counted(states_count, "state");
            let of = match self.scheduler {
                SchedulerName::Sequential => "the sequential program",
                _ => "all schedules",
            };
            let cut = if self.made.is_complete { "" } else { ", incomplete" };
            writeln!(out, "{name}: {outcomes} of {of} ({states}{cut})")?;
        }
        for (place, run) in self.made.runs.iter().enumerate() {
            match run.seed {
                Some(seed) => write!(out, "{name}, seed {seed}: ")?,
                None => write!(out, "{}. ", place + 1)?,
            }
            self.one(out, run)?;
        }
        self.endless(out)?;
        match self.made.watched.is_empty() {
            true => Ok(()),
            false => reweave_report::text(out, &self.examined()),
        }
    }

    fn examined(&self) -> Vec<Examined<'_>> {
        let watched = self.made.watched.iter();
        watched
            .map(|Watched { name, trace, outcome }| Examined::new(name, trace, outcome))
            .collect()
    }

    /// What no outcome tells: schedules that do not end.
    fn endless(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.made.is_endless {
            writeln!(out, "Some schedules never end, perhaps only unfair ones.")?;
        }
        for fault in &self.made.other_faults {
            writeln!(out, "In schedules that never end:")?;
            writeln!(out, "{}", program::picture(&self.loaded.source, fault))?;
        }
        Ok(())
    }

    fn one(&self, out: &mut dyn Write, run: &OneRun) -> io::Result<()> {
        let after = run
            .steps_count
            .map_or(String::new(), |count| format!(" after {}", counted(count as u64, "step")));
        match &run.ending {
            Ending::Finished => writeln!(out, "finished{after}")?,
            Ending::Deadlock(_) => writeln!(out, "deadlock{after}")?,
            Ending::Assumption(line) => {
                writeln!(out, "stopped{after}: the assumption at line {line} is false")?;
            }
            Ending::Steps => {
                writeln!(out, "stopped{after}: the maximum of `--steps`")?;
            }
            Ending::Threads => writeln!(out, "stopped{after}: too many threads")?,
            Ending::Stopped => writeln!(out, "interrupted{after}")?,
        }
        if let Some(choices) = run.choices.as_ref().filter(|choices| !choices.is_empty()) {
            writeln!(out, "  by {choices}")?;
        }
        if let Ending::Deadlock(blocked) = &run.ending {
            for Blocked { thread, awaited, line } in blocked {
                writeln!(out, "  {thread} waits at line {line} for {awaited}")?;
            }
        }
        let shown = run.result.iter().take(SHOWN_MAX);
        let result: Vec<String> = shown.map(|(name, value)| format!("{name} = {value}")).collect();
        if !result.is_empty() {
            let rest = run.result.len().saturating_sub(SHOWN_MAX);
            let more = if rest > 0 { format!(", … {rest} more") } else { String::new() };
            writeln!(out, "  {}{more}", result.join(", "))?;
        }
        for fault in &run.faults {
            writeln!(out, "{}", program::picture(&self.loaded.source, fault))?;
        }
        Ok(())
    }

    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let runs: Vec<Value> = self.made.runs.iter().map(one_json).collect();
        let scheduler = clap::ValueEnum::to_possible_value(&self.scheduler);
        let scheduler = scheduler.map(|value| value.get_name().to_owned());
        let mut document = json!({
            "schema": "reweave/1",
            "program": self.loaded.source.name(),
            "scheduler": scheduler,
            "runs": runs,
        });
        if let (Some(states), Some(document)) = (self.made.states_count, document.as_object_mut()) {
            document.insert("states".to_owned(), json!(states));
            document.insert("complete".to_owned(), json!(self.made.is_complete));
            document.insert("endless".to_owned(), json!(self.made.is_endless));
            let others: Vec<Value> = self.made.other_faults.iter().map(fault_json).collect();
            document.insert("other_faults".to_owned(), json!(others));
        }
        if let (false, Some(document)) = (self.made.watched.is_empty(), document.as_object_mut()) {
            let mut reports = Vec::new();
            reweave_report::json_list(&mut reports, &self.examined())?;
            document.insert("watched".to_owned(), serde_json::from_slice(&reports)?);
        }
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    }
}

fn one_json(run: &OneRun) -> Value {
    let faults: Vec<Value> = run.faults.iter().map(fault_json).collect();
    let result: serde_json::Map<String, Value> =
        run.result.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let mut value = json!({
        "ending": ending_word(&run.ending),
        "faults": faults,
        "result": result,
    });
    let Some(object) = value.as_object_mut() else { return value };
    for (key, count) in [("steps", run.steps_count), ("events", run.events_count)] {
        if let Some(count) = count {
            object.insert(key.to_owned(), json!(count));
        }
    }
    if let Some(choices) = &run.choices {
        object.insert("choices".to_owned(), json!(choices));
    }
    if let Some(seed) = run.seed {
        object.insert("seed".to_owned(), json!(seed));
    }
    if let Some(trace) = &run.trace {
        object.insert("trace".to_owned(), json!(trace.display().to_string()));
    }
    if let Ending::Deadlock(blocked) = &run.ending {
        let blocked: Vec<Value> = blocked.iter().map(|blocked| {
            json!({ "thread": blocked.thread, "line": blocked.line, "awaits": blocked.awaited.to_string() })
        }).collect();
        object.insert("blocked".to_owned(), json!(blocked));
    }
    value
}

fn fault_json(fault: &Fault) -> Value {
    json!({
        "thread": fault.thread,
        "line": fault.line,
        "kind": fault_word(&fault.kind),
        "message": fault.kind.to_string(),
    })
}

const fn fault_word(kind: &FaultKind) -> &'static str {
    match kind {
        FaultKind::Assertion => "assertion",
        FaultKind::DivisionByZero => "division",
        FaultKind::OutOfBounds { .. } => "index",
        FaultKind::NotHeld(_) | FaultKind::HeldTwice(_) => "lock",
        FaultKind::TooLong => "time",
    }
}

const fn ending_word(ending: &Ending) -> &'static str {
    match ending {
        Ending::Finished => "finished",
        Ending::Deadlock(_) => "deadlock",
        Ending::Assumption(_) => "assumption",
        Ending::Steps => "steps",
        Ending::Threads => "threads",
        Ending::Stopped => "stopped",
    }
}
