//! What an analysis is given: the trace, and someone to tell.

use std::ops::ControlFlow;
use std::sync::OnceLock;

use reweave_trace::{Checker, Trace};

use crate::finding::Finding;

/// What is examined.
#[derive(Debug)]
pub struct Subject<'a> {
    trace: &'a Trace,
    checker: OnceLock<Checker<'a>>,
}

impl<'a> Subject<'a> {
    /// The subject that is `trace`.
    #[must_use]
    pub const fn new(trace: &'a Trace) -> Self {
        Self { trace, checker: OnceLock::new() }
    }

    /// The trace.
    #[must_use]
    pub const fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// The checker of the trace's reorderings, made when first asked for.
    #[must_use]
    pub fn checker(&self) -> &Checker<'a> {
        self.checker.get_or_init(|| Checker::new(self.trace))
    }
}

/// Where findings go as they are made, and where an analysis learns that it should stop.
pub trait Sink {
    /// Takes `finding`; a break says that no more are wanted.
    fn found(&mut self, finding: Finding) -> ControlFlow<()>;

    /// Whether someone asked the work to stop. Cheap, but not free: ask once in a while.
    fn is_cancelled(&self) -> bool;

    /// Says that `done` of `total` steps are done.
    fn progress(&mut self, done: u64, total: u64);
}
