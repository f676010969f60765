//! What an analysis is given: the trace, and where to report.

use std::ops::ControlFlow;
use std::sync::OnceLock;

use reweave_reorder::Engine;
use reweave_trace::{Checker, Goal, Refusal, Reordering, Trace};

use crate::detail::WitnessVerdict;
use crate::finding::Finding;
use crate::proof::Proof;

/// What is examined.
#[derive(Debug)]
pub struct Subject<'a> {
    trace: &'a Trace,
    checker: OnceLock<Checker<'a>>,
    engine: OnceLock<Engine<'a>>,
}

impl<'a> Subject<'a> {
    /// The subject that is `trace`.
    #[must_use]
    pub const fn new(trace: &'a Trace) -> Self {
        Self { trace, checker: OnceLock::new(), engine: OnceLock::new() }
    }

    /// The trace.
    #[must_use]
    pub const fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// The engine that decides what its reorderings can do, made when first asked for and then
    /// shared.
    pub fn engine(&self) -> &Engine<'a> {
        self.engine.get_or_init(|| Engine::new(self.trace))
    }

    /// Asks the independent checker whether `reordering` is correct and ends as `goal` says.
    ///
    /// Linear in what the reordering does not share with those proven before; the checker's tables,
    /// linear in the trace, are made when first asked for.
    ///
    /// # Errors
    /// The first step that breaks a rule, or what the end lacks.
    pub fn prove(&self, reordering: Reordering, goal: Goal) -> Result<Proof, Refusal> {
        let prefix = || reordering.base.iter().map(|&count| count as usize).sum::<usize>();
        let stage = tracing::debug_span!(
            "check schedule",
            steps = prefix() + reordering.schedule.len(),
            accepted = tracing::field::Empty,
            refusal = tracing::field::Empty,
        );
        let stage = stage.entered();
        let checker = self.checker.get_or_init(|| Checker::new(self.trace));
        let proof = Proof::new(checker, reordering, goal);
        stage.record("accepted", proof.is_ok());
        if let Err(refusal) = &proof {
            stage.record("refusal", tracing::field::display(refusal));
        }
        proof
    }
}

/// Where findings go as they are made, and where an analysis learns that it should stop.
pub trait Sink {
    /// Takes `finding`; a break says that no more are wanted.
    fn found(&mut self, finding: Finding) -> ControlFlow<()>;

    /// Takes the next entries of the list of all witnesses; none means that there is a list and it
    /// is empty so far. A break says that no more are wanted. By default they are dropped.
    fn listed(&mut self, _witnesses: &[WitnessVerdict]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Whether someone asked the work to stop. Cheap, but not free: ask once in a while.
    fn is_cancelled(&self) -> bool;

    /// Says that `done` of `total` steps are done.
    fn progress(&mut self, done: u64, total: u64);
}

/// A sink that keeps everything and never asks to stop.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// The findings so far.
    pub findings: Vec<Finding>,
}

impl Sink for Gathered {
    fn found(&mut self, finding: Finding) -> ControlFlow<()> {
        self.findings.push(finding);
        ControlFlow::Continue(())
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, _: u64, _: u64) {}
}
