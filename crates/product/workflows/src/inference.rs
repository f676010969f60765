//! From a program to its specification: runs, inference, and the validation of what was inferred.
//!
//! A specification that explains a few runs may still be wrong in two ways: another run of the
//! parallel program may have a result that no sequential run has, or a sequential run may break an
//! assertion that the parallel program keeps. Where the program is small both are decided by going
//! through all runs of both. A run that shows the first is added to the runs and the inference
//! repeated; a placement that shows the second is rejected and the next best inferred, which is the
//! loop of appendix C of Burnim et al.

use std::collections::BTreeSet;

use reweave_exec::scheduler::Replay;
use reweave_exec::{
    Blocked, Choice, Code, Ending, Exploration, Fault, Layers, Limits, Outcome, Run, Schedule,
    explore_sequential_while, explore_while,
};
use reweave_lang::{Diagnostic, Program, Source, check};
use reweave_ndseq::{self as ndseq, Answer, CheckError, Inference, Placement, RunError, Verdict};
use reweave_trace::Trace;

use crate::runs::{Plan, repeat};
use crate::specification::inferred;

/// What to infer, and from what.
#[derive(Clone, Debug)]
pub struct Request {
    /// The runs.
    pub plan: Plan,
    /// How to infer.
    pub settings: ndseq::Settings,
    /// Whether to go through all runs of the program and of what is inferred, and how many.
    pub validation: Option<Limits>,
}

/// The runs of a program, by whether they came to their end.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Those that did, with or without faults.
    pub runs: Vec<Observed>,
    /// What went wrong, in those and in others.
    pub troubles: Vec<Trouble>,
}

/// A run that has a result.
#[derive(Debug)]
pub struct Observed {
    /// Its seed; none for one that the validation added.
    pub seed: Option<u64>,
    /// What it did.
    pub run: Run,
}

/// What went wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Its seed.
    pub seed: u64,
    /// How it ended.
    pub ending: Ending,
    /// The threads that could not go on, and why.
    pub faults: Vec<Fault>,
}

impl Trouble {
    /// Whether the program is to blame, and not a limit or an assumption.
    pub fn is_fault(&self) -> bool {
        !self.faults.is_empty() || matches!(self.ending, Ending::Deadlock(_))
    }

    /// What went wrong in `run`, whose seed is `seed`.
    pub(crate) fn new(seed: u64, run: &Run) -> Self {
        Self { seed, ending: run.ending.clone(), faults: run.faults.clone() }
    }

    /// What became of the run, to be said after its name.
    pub fn what(&self) -> String {
        if let Some(fault) = self.faults.first() {
            return format!("fails at line {}: {}", fault.line, fault.kind);
        }
        match &self.ending {
            Ending::Finished => "ends".to_owned(),
            Ending::Deadlock(_) => "ends in a deadlock".to_owned(),
            Ending::Assumption(line) => format!("ends by the assumption at line {line}"),
            Ending::Steps => "exceeds the step limit".to_owned(),
            Ending::Threads => "exceeds the thread limit".to_owned(),
            Ending::Stopped => "was stopped".to_owned(),
        }
    }

    /// Whether the run has no result, and was left out.
    pub fn is_left_out(&self) -> bool {
        self.ending != Ending::Finished
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "the run with seed {} {}", self.seed, self.what())?;
        if self.is_left_out() { write!(out, "; it is ignored") } else { Ok(()) }
    }
}

fn first_trouble(troubles: &[Trouble]) -> String {
    troubles.first().map_or_else(String::new, Trouble::to_string)
}

/// What was inferred, from what, and whether it holds for all runs.
#[derive(Debug)]
pub struct Inferred {
    /// The runs that it was inferred from.
    pub runs: Vec<Observed>,
    /// What went wrong in runs.
    pub troubles: Vec<Trouble>,
    /// The answer, and what it took.
    pub inference: Inference,
    /// The sequential program, where there is one.
    pub specification: Option<String>,
    /// Whether it holds for all runs.
    pub validation: Validation,
    /// What was inferred first and turned out wrong.
    pub rejected: Vec<Rejected>,
}

/// Whether a specification holds for all runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Validation {
    /// That was not asked, or there is no specification.
    NotAsked,
    /// Every result of the parallel program is one of the sequential program, whose assertions
    /// hold. Where there is no specification, the sequential program is the program as it is.
    Valid {
        /// How many results the parallel program has.
        parallel: usize,
        /// How many the sequential one has.
        sequential: usize,
    },
    /// The program has runs with a fault, which no specification explains.
    Faulty(Fault),
    /// The program has runs that end in a deadlock, which no specification explains.
    Deadlock(Vec<Blocked>),
    /// There are too many runs to go through.
    Unknown,
}

/// Placements that explain the runs and are wrong all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The placements.
    pub placements: Vec<Placement>,
    /// Why they are wrong.
    pub reason: Wrong,
}

/// Why placements are wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A sequential run ends in a fault that no parallel run has.
    Fault {
        /// What it is; its line is that of the sequential program.
        fault: Fault,
        /// The first line of the statement that fails.
        statement: String,
    },
    /// A parallel run has a result that no sequential run has.
    Missing(Outcome),
}

/// Why nothing can be inferred.
#[derive(Debug, thiserror::Error)]
pub enum InferenceError {
    /// The runs cannot be looked at together.
    #[error(transparent)]
    Runs(#[from] RunError),
    /// A run cannot be checked against what was inferred.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A thread is started by a statement that has no sequential meaning.
    #[error("line {0}: `fork` has no sequential meaning; use `cobegin` or `coforeach`")]
    Fork(u32),
    /// No run came to its end, so there is no result to explain.
    #[error("no run came to its end: {}", first_trouble(.0))]
    NoResult(Vec<Trouble>),
    /// The program with its `if (*)` is no program, which is a fault of ours.
    #[error("the inferred program cannot be read: {}", .0.first().map_or("", |first| &first.message))]
    Specification(Vec<Diagnostic>),
}

/// How many specifications are tried before validation gives up.
const TRIES_MAX: usize = 64;

/// Runs `code`, the program `program` of `source`, and infers as `request` says.
///
/// # Errors
/// If the program forks threads that it need not join, or no run of it came to its end.
pub fn infer(
    source: &Source,
    program: &Program,
    code: &Code,
    request: &Request,
    goes_on: &dyn Fn() -> bool,
) -> Result<Inferred, InferenceError> {
    if let Some(line) = code.has_fork() {
        return Err(InferenceError::Fork(line));
    }
    let Gathered { runs, troubles } = gather(code, &request.plan, goes_on);
    if runs.is_empty() {
        return Err(InferenceError::NoResult(troubles));
    }
    let parallel = request.validation.as_ref().map(|limits| explore_while(code, limits, goes_on));
    let rejected = Vec::new();
    let mut attempt = Attempt { source, program, code, request, parallel, runs, rejected, goes_on };
    let mut tries_count = 0;
    loop {
        let (inference, specification) = attempt.infer()?;
        let validation = match &specification {
            Some(_) if tries_count == TRIES_MAX => Some(Validation::Unknown),
            Some((placements, text)) => attempt.validate(placements, text)?,
            None => Some(attempt.compare()?),
        };
        if let Some(validation) = validation {
            let specification = specification.map(|(_, text)| text);
            let Attempt { runs, rejected, .. } = attempt;
            return Ok(Inferred { runs, troubles, inference, specification, validation, rejected });
        }
        tries_count += 1;
    }
}

/// The runs of `plan`, with the flow layer.
pub fn gather(code: &Code, plan: &Plan, goes_on: &dyn Fn() -> bool) -> Gathered {
    let mut plan = *plan;
    plan.settings.layers = Layers::Flow;
    let mut gathered = Gathered::default();
    repeat(code, &plan, goes_on, |seed, run| {
        if run.ending != Ending::Finished || !run.faults.is_empty() {
            gathered.troubles.push(Trouble::new(seed, &run));
        }
        if run.ending == Ending::Finished {
            gathered.runs.push(Observed { seed: Some(seed), run });
        }
        goes_on()
    });
    gathered
}

/// An inference that may have to be repeated.
struct Attempt<'a> {
    source: &'a Source,
    program: &'a Program,
    code: &'a Code,
    request: &'a Request,
    /// All runs of the parallel program, where they are asked for.
    parallel: Option<Exploration>,
    runs: Vec<Observed>,
    rejected: Vec<Rejected>,
    goes_on: &'a dyn Fn() -> bool,
}

impl Attempt<'_> {
    /// What explains the runs and is not rejected, and the sequential program, if there is one.
    #[expect(clippy::type_complexity, reason = "two results of one question")]
    fn infer(&self) -> Result<(Inference, Option<(Vec<Placement>, String)>), InferenceError> {
        let traces: Vec<&Trace> = self.runs.iter().map(|observed| &observed.run.trace).collect();
        let mut settings = self.request.settings.clone();
        let rejected = self.rejected.iter().map(|rejected| rejected.placements.clone());
        settings.rejected.extend(rejected);
        let inference = ndseq::infer(&traces, &settings)?;
        let placements = match &inference.answer {
            Answer::Unneeded(_) => Vec::new(),
            Answer::Specification(placements)
            | Answer::Exhausted { found: Some(placements), .. } => placements.clone(),
            Answer::Impossible(_) | Answer::NoneLeft | Answer::Exhausted { found: None, .. } => {
                return Ok((inference, None));
            }
        };
        let text = inferred(self.source, self.program, &placements)
            .map_err(InferenceError::Specification)?;
        Ok((inference, Some((placements, text))))
    }

    /// Whether the sequential program `text`, which has `placements`, holds for all runs; none if
    /// it does not and another is to be inferred.
    fn validate(
        &mut self,
        placements: &[Placement],
        text: &str,
    ) -> Result<Option<Validation>, InferenceError> {
        let (Some(limits), Some(parallel)) = (&self.request.validation, &self.parallel) else {
            return Ok(Some(Validation::NotAsked));
        };
        if let Some(broken) = broken(parallel) {
            return Ok(Some(broken));
        }
        let sequential = self.sequential(text, limits)?;
        if let Some((fault, _)) = sequential.faults.first() {
            let statement = text.get(fault.span.range()).and_then(|text| text.lines().next());
            let statement = statement.unwrap_or_default().to_owned();
            let reason = Wrong::Fault { fault: fault.clone(), statement };
            self.rejected.push(Rejected { placements: placements.to_vec(), reason });
            return Ok(None);
        }
        if !parallel.complete || !sequential.complete {
            return Ok(Some(Validation::Unknown));
        }
        let results = results(&sequential);
        let Some((outcome, schedule)) = missing(parallel, &results) else {
            let (parallel, sequential) = (finished(parallel).count(), results.len());
            return Ok(Some(Validation::Valid { parallel, sequential }));
        };
        let mut settings = self.request.plan.settings;
        (settings.layers, settings.steps_max) = (Layers::Flow, u64::MAX);
        let run = reweave_exec::run(self.code, &mut Replay::new(schedule), &settings);
        let reason = Wrong::Missing(outcome.clone());
        // A run that the placements do not explain asks for others; one that they do shows that
        // they are wrong.
        match ndseq::check(&[&run.trace], placements)? {
            Verdict::Violated(_) => self.runs.push(Observed { seed: None, run }),
            Verdict::Serializable => {
                self.rejected.push(Rejected { placements: placements.to_vec(), reason });
            }
        }
        Ok(None)
    }

    /// All sequential runs of the program `text`.
    fn sequential(
        &self,
        text: &str,
        limits: &Limits,
    ) -> Result<Exploration<Vec<Choice>>, InferenceError> {
        let source = Source::new(self.source.name(), text);
        let checked = check(&source);
        let Some(program) = checked.program else {
            return Err(InferenceError::Specification(checked.diagnostics));
        };
        Ok(explore_sequential_while(&Code::new(&program, &source), limits, self.goes_on))
    }

    /// Whether the results of the program are those of sequential runs of it, though nothing
    /// explains its runs.
    fn compare(&self) -> Result<Validation, InferenceError> {
        let (Some(limits), Some(parallel)) = (&self.request.validation, &self.parallel) else {
            return Ok(Validation::NotAsked);
        };
        if let Some(broken) = broken(parallel) {
            return Ok(broken);
        }
        let sequential = self.sequential(self.source.text(), limits)?;
        let results = results(&sequential);
        Ok(match missing(parallel, &results) {
            _ if !parallel.complete || !sequential.complete => Validation::Unknown,
            Some(_) => Validation::NotAsked,
            None => {
                let (parallel, sequential) = (finished(parallel).count(), results.len());
                Validation::Valid { parallel, sequential }
            }
        })
    }
}

/// The results of the runs that end without a fault.
fn results<W>(exploration: &Exploration<W>) -> BTreeSet<&[i64]> {
    finished(exploration).map(|outcome| outcome.result.as_slice()).collect()
}

/// An outcome whose result is none of `results`, and a schedule that shows it.
fn missing<'p>(
    parallel: &'p Exploration,
    results: &BTreeSet<&[i64]>,
) -> Option<&'p (Outcome, Schedule)> {
    let is_missing = |outcome: &Outcome| !results.contains(outcome.result.as_slice());
    parallel.outcomes.iter().find(|(outcome, _)| is_finished(outcome) && is_missing(outcome))
}

fn is_finished(outcome: &Outcome) -> bool {
    outcome.ending == Ending::Finished && outcome.faults.is_empty()
}

fn finished<W>(exploration: &Exploration<W>) -> impl Iterator<Item = &Outcome> {
    exploration.outcomes.iter().map(|(outcome, _)| outcome).filter(|outcome| is_finished(outcome))
}

/// What is wrong with the parallel program by itself.
fn broken(parallel: &Exploration) -> Option<Validation> {
    if let Some((fault, _)) = parallel.faults.first() {
        return Some(Validation::Faulty(fault.clone()));
    }
    parallel.outcomes.iter().find_map(|(outcome, _)| match &outcome.ending {
        Ending::Deadlock(blocked) => Some(Validation::Deadlock(blocked.clone())),
        _ => None,
    })
}
