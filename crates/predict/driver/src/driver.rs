//! The driver: threads, budget, progress and the end of an analysis.

use std::ops::ControlFlow;
use std::sync::Mutex;

use rayon::prelude::*;
use reweave_analysis::{
    Counter, Counters, Coverage, Finding, Info, Settings, Sink, Subject, Truncation, WitnessVerdict,
};
use reweave_reorder::{Answer, Budget, Query, Refuted, Solver};
use reweave_trace::{Goal, Reordering, Trace};

use crate::predictor::{Reorderings, Tried};

/// Which part of the budget one query may cost at most.
const SHARE: u64 = 16;

/// What a look of the checker costs beyond the length of the schedule.
const CHECK_WORK: u64 = 256;

/// How many items a worker takes at a time, at most: enough that taking them costs nothing.
const PART_MAX: usize = 256;

/// Into how many parts for each thread a batch is split, so that no thread waits long for another.
const PARTS_PER_THREAD: usize = 8;

/// Runs the prediction of one analysis on one trace.
pub struct Driver<'a, 't> {
    subject: &'a Subject<'t>,
    settings: &'a Settings,
    sink: &'a mut dyn Sink,
    /// None for a single thread.
    pool: Option<rayon::ThreadPool>,
    work: u64,
    work_left: u64,
    truncated: Option<Truncation>,
    /// Schedules that the checker refused.
    refused: u64,
}

/// What each thread has of its own while it evaluates. What it did before changes no answer, so
/// workers are used again.
pub struct Workers<'f, W> {
    make: Box<dyn Fn() -> W + Sync + 'f>,
    idle: Mutex<Vec<W>>,
}

impl<'f, W> Workers<'f, W> {
    /// Workers that `make` makes, as many as there turn out to be threads.
    pub fn new(make: impl Fn() -> W + Sync + 'f) -> Self {
        Self { make: Box::new(make), idle: Mutex::new(Vec::new()) }
    }

    fn with<R>(&self, work: impl FnOnce(&mut W) -> R) -> R {
        // A poisoned list only means that another worker failed; a new one does as well.
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let mut worker = idle.unwrap_or_else(|| (self.make)());
        let result = work(&mut worker);
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(worker);
        }
        result
    }
}

impl<'a, 't> Driver<'a, 't> {
    /// A driver with the whole budget of `settings`.
    pub fn new(subject: &'a Subject<'t>, settings: &'a Settings, sink: &'a mut dyn Sink) -> Self {
        let pool = (settings.threads > 1)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build().ok());
        Self {
            subject,
            settings,
            sink,
            pool: pool.flatten(),
            work: 0,
            work_left: settings.budget,
            truncated: None,
            refused: 0,
        }
    }

    /// What is examined.
    #[must_use]
    pub const fn subject(&self) -> &'a Subject<'t> {
        self.subject
    }

    /// The trace.
    #[must_use]
    pub const fn trace(&self) -> &'t Trace {
        self.subject.trace()
    }

    /// How hard to look.
    #[must_use]
    pub const fn settings(&self) -> &'a Settings {
        self.settings
    }

    /// How much work was done.
    #[must_use]
    pub const fn work(&self) -> u64 {
        self.work
    }

    /// How much work may still be done.
    #[must_use]
    pub const fn work_left(&self) -> u64 {
        self.work_left
    }

    /// Counts `work` as done.
    pub const fn charge(&mut self, work: u64) {
        self.work = self.work.saturating_add(work);
        self.work_left = self.work_left.saturating_sub(work);
    }

    /// Sets `work` aside for a later part of the analysis; [`Driver::release`] gives it back.
    pub const fn reserve(&mut self, work: u64) {
        self.work_left = self.work_left.saturating_sub(work);
    }

    /// Makes `work` that was set aside available.
    pub const fn release(&mut self, work: u64) {
        self.work_left = self.work_left.saturating_add(work);
    }

    /// How much one query may take: a good part of the budget, but not all of it.
    #[must_use]
    pub fn query_budget(&self) -> Budget {
        // Who asks for a larger budget gets more of everything that ends a query.
        let times = (self.settings.budget / Settings::default().budget).max(1);
        Budget { work: self.settings.budget / SHARE, ..Budget::default().times(times) }
    }

    /// Says that the question is not answered in full. The first reason counts.
    pub fn truncate(&mut self, reason: Truncation) {
        self.truncated = self.truncated.or(Some(reason));
    }

    /// Counts `refused` schedules that the checker refused, which is a fault of the engine: if
    /// there are any, that is why the question is not answered in full, whatever else is.
    pub const fn count_refused(&mut self, refused: u64) {
        self.refused += refused;
        if refused > 0 {
            self.truncated = Some(Truncation::EngineFault);
        }
    }

    /// Why the question is not answered in full, if so.
    #[must_use]
    pub const fn truncated(&self) -> Option<Truncation> {
        self.truncated
    }

    /// Reports that `done` of `total` steps are done; a break if someone asked to stop.
    pub fn progress(&mut self, done: usize, total: usize) -> ControlFlow<()> {
        self.sink.progress(done as u64, total as u64);
        self.check_cancelled()
    }

    /// A break if someone asked to stop.
    pub fn check_cancelled(&mut self) -> ControlFlow<()> {
        if self.sink.is_cancelled() {
            self.truncate(Truncation::Cancelled);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Reports `finding`; a break if no more are wanted.
    pub fn found(&mut self, finding: Finding) -> ControlFlow<()> {
        self.sink.found(finding)
    }

    /// Adds to the list of all witnesses; a break if no more are wanted.
    pub fn listed(&mut self, witnesses: &[WitnessVerdict]) -> ControlFlow<()> {
        self.sink.listed(witnesses)
    }

    /// How far the analysis `info` went.
    #[must_use]
    pub fn coverage(self, info: &Info, mut counters: Counters) -> Coverage {
        counters.extend((self.refused > 0).then_some((Counter::Refused, self.refused)));
        Coverage { analysis: info.name, truncated: self.truncated, counters }
    }

    /// Workers that ask the engine and the checker, with at most `budget` for each query.
    #[must_use]
    pub fn evaluators(&self, budget: Budget) -> Workers<'a, Evaluator<'a, 't>> {
        let subject = self.subject;
        Workers::new(move || Evaluator::new(subject, budget))
    }

    /// What `evaluate` gives for each of `items`, in their order, on all threads; it also says how
    /// much work that took, which is charged.
    ///
    /// The result does not depend on the number of threads as long as that of one item depends
    /// neither on other items nor on what its worker did before.
    pub fn map<T: Send, W: Send, R: Send>(
        &mut self,
        workers: &Workers<'_, W>,
        items: &mut [T],
        evaluate: impl Fn(&mut W, &mut T) -> (R, u64) + Sync,
    ) -> Vec<R> {
        let run = |part: &mut [T]| -> Vec<(R, u64)> {
            workers.with(|worker| part.iter_mut().map(|item| evaluate(worker, item)).collect())
        };
        let results: Vec<(R, u64)> = match &self.pool {
            None => run(items),
            Some(pool) => {
                let parts_count = pool.current_num_threads() * PARTS_PER_THREAD;
                let part = items.len().div_ceil(parts_count).clamp(1, PART_MAX);
                pool.install(|| items.par_chunks_mut(part).flat_map_iter(run).collect())
            }
        };
        let charged = results.into_iter().map(|(result, work)| {
            self.charge(work);
            result
        });
        charged.collect()
    }

    /// Goes through `items` a batch at a time, as [`Driver::map`] does, and hands each result to
    /// `take` in order; `evaluate` is given how much work was left when its batch began.
    ///
    /// Gives how many were evaluated before the budget was used up or someone asked to stop; a break is
    /// that of `take`.
    pub fn batches<T: Send, W: Send, R: Send>(
        &mut self,
        workers: &Workers<'_, W>,
        items: &mut [T],
        size: usize,
        evaluate: impl Fn(&mut W, &mut T, u64) -> (R, u64) + Sync,
        mut take: impl FnMut(&mut Self, &mut T, R) -> ControlFlow<()>,
    ) -> ControlFlow<(), usize> {
        let total = items.len();
        for (at, batch) in items.chunks_mut(size).enumerate() {
            let done = at * size;
            if self.check_cancelled().is_break() {
                return ControlFlow::Continue(done);
            }
            if self.work_left == 0 {
                return ControlFlow::Continue(done);
            }
            let left = self.work_left;
            let results = self.map(workers, batch, |worker, item| evaluate(worker, item, left));
            for (item, result) in batch.iter_mut().zip(results) {
                take(self, item, result)?;
            }
        }
        ControlFlow::Continue(total)
    }
}

/// Asks the engine and the checker about one candidate after the other, and counts the work.
#[derive(Debug)]
pub struct Evaluator<'a, 't> {
    subject: &'a Subject<'t>,
    solver: Solver<'a, 't>,
    work: u64,
}

impl<'a, 't> Evaluator<'a, 't> {
    /// An evaluator that spends at most `budget` on each query.
    #[must_use]
    pub fn new(subject: &'a Subject<'t>, budget: Budget) -> Self {
        Self { subject, solver: Solver::new(subject.engine(), budget), work: 0 }
    }

    /// The trace.
    #[must_use]
    pub const fn trace(&self) -> &'t Trace {
        self.subject.trace()
    }

    /// What is examined.
    #[must_use]
    pub const fn subject(&self) -> &'a Subject<'t> {
        self.subject
    }

    /// The solver, for questions that are not about one candidate.
    pub const fn solver(&mut self) -> &mut Solver<'a, 't> {
        &mut self.solver
    }

    /// Answers `query`, looking only at `reorderings`.
    pub fn answer(&mut self, query: &Query, reorderings: Reorderings) -> Answer {
        match reorderings {
            Reorderings::All => self.solver.solve(query),
            Reorderings::SyncPreserving => self
                .solver
                .sync_preserving(query)
                .map_or(Answer::Infeasible(Refuted::Exhausted), Answer::Feasible),
        }
    }

    /// Asks questions each of which, answered, shows the same; each with what the end of a run that
    /// answers it must show. Gives the best that comes of any, and stops at one that is witnessed.
    pub fn ask(
        &mut self,
        questions: impl IntoIterator<Item = (Query, Goal)>,
        reorderings: Reorderings,
    ) -> Tried {
        let mut best = Tried::Refuted;
        for (query, goal) in questions {
            let tried = match self.answer(&query, reorderings) {
                Answer::Feasible(reordering) => self.prove(reordering, goal),
                Answer::Infeasible(_) => Tried::Refuted,
                Answer::Unknown => Tried::Unknown,
            };
            best = best.or_better(tried);
            if best.is_witnessed() {
                break;
            }
        }
        best
    }

    /// Proves that `reordering` ends as `goal` says, or is refused.
    pub fn prove(&mut self, reordering: Reordering, goal: Goal) -> Tried {
        self.work += CHECK_WORK + reordering.schedule.len() as u64;
        self.subject.prove(reordering, goal).map_or(Tried::Refused, Tried::Proven)
    }

    /// Counts `work` that was done elsewhere for the candidate.
    pub const fn charge(&mut self, work: u64) {
        self.work += work;
    }

    /// How much work was done since this was last asked. Forgets what the solver keeps of earlier
    /// queries, so that the next ones cost the same on every thread.
    pub fn take_work(&mut self) -> u64 {
        self.solver.forget();
        self.solver.take_work() + std::mem::replace(&mut self.work, 0)
    }
}
