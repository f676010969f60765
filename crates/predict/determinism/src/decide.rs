//! Deciding witnesses: read by read, on as many threads as there may be.
//!
//! Every read is decided on its own, within a budget of its own, so neither verdicts nor their
//! order depend on the threads.

use std::sync::Mutex;

use rayon::prelude::*;
use reweave_reorder::{Budget, Engine, Solver};
use reweave_trace::{EventId, Trace};

use crate::accesses::{Accesses, Reader, ReadsFrom};
use crate::order::{OrderGraph, OrderSolver};
use crate::runs::Runs;
use crate::verdicts::{Challengers, Phases, ReadVerdicts};
use crate::witness::{Mode, Witness, WitnessKind};

/// What came of the witnesses of one read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decided {
    pub(crate) verdicts: ReadVerdicts,
    /// In mode `order`.
    pub(crate) phases: Phases,
    pub(crate) work: u64,
}

/// What to decide reads with.
#[derive(Debug)]
pub(crate) struct Decider<'a, 't> {
    pub(crate) accesses: &'a Accesses<'t>,
    engine: &'a Engine<'t>,
    mode: Mode,
    /// In mode `order`.
    graph: Option<&'a OrderGraph<'t>>,
    pool: Option<rayon::ThreadPool>,
    /// Workers that have nothing to do. What they did before changes no answer.
    idle: Mutex<Vec<Worker<'a, 't>>>,
}

/// What a worker has of its own.
#[derive(Debug)]
struct Worker<'a, 't> {
    runs: Runs<'a, 't>,
    order: Option<OrderSolver<'a, 't>>,
}

impl<'a, 't> Decider<'a, 't> {
    pub(crate) fn new(
        accesses: &'a Accesses<'t>,
        engine: &'a Engine<'t>,
        graph: Option<&'a OrderGraph<'t>>,
        mode: Mode,
        threads: usize,
    ) -> Self {
        let pool = (threads > 1)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok());
        let idle = Mutex::new(Vec::new());
        Self { accesses, engine, mode, graph, pool: pool.flatten(), idle }
    }

    /// Whether mode `order` decides nothing of kinds 1 and 2, the trace being too large for it.
    pub(crate) fn is_too_large(&self) -> bool {
        self.graph.is_some_and(OrderGraph::is_too_large)
    }

    /// Decides the witnesses of each of `readers`, each within about `work` steps.
    pub(crate) fn decide(&self, readers: &[Reader], work: u64) -> Vec<Decided> {
        self.map(readers, || self.worker(), |hired, reader| hired.decide(reader, work))
    }

    /// A worker that goes back to the idle ones when it is let go.
    fn worker(&self) -> Hired<'_, 'a, 't> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let worker = idle.unwrap_or_else(|| Worker {
            runs: Runs::new(self.accesses, Solver::new(self.engine, Budget::default()), self.mode),
            order: self.graph.map(OrderSolver::new),
        });
        Hired { worker: Some(worker), decider: self }
    }

    /// What `work` gives for each of `items`.
    pub(crate) fn map<T: Sync, W, R: Send>(
        &self,
        items: &[T],
        worker: impl Fn() -> W + Sync + Send,
        work: impl Fn(&mut W, &T) -> R + Sync + Send,
    ) -> Vec<R> {
        match &self.pool {
            None => {
                let mut worker = worker();
                items.iter().map(|item| work(&mut worker, item)).collect()
            }
            Some(pool) => pool.install(|| {
                items.par_iter().map_init(worker, |worker, item| work(worker, item)).collect()
            }),
        }
    }
}

/// A worker at work.
struct Hired<'d, 'a, 't> {
    /// There until it is let go.
    worker: Option<Worker<'a, 't>>,
    decider: &'d Decider<'a, 't>,
}

impl Hired<'_, '_, '_> {
    fn decide(&mut self, reader: &Reader, work: u64) -> Decided {
        self.worker.as_mut().expect("it was not let go").decide(reader, work)
    }
}

impl Drop for Hired<'_, '_, '_> {
    fn drop(&mut self) {
        if let Ok(mut idle) = self.decider.idle.lock() {
            idle.extend(self.worker.take());
        }
    }
}

impl Worker<'_, '_> {
    fn decide(&mut self, reader: &Reader, work: u64) -> Decided {
        let mut decided = Decided::default();
        let Decided { verdicts, phases, work: spent } = &mut decided;
        let Reader { var, read, writer } = *reader;
        match (read, writer, &mut self.order) {
            (Some(read), _, order) => {
                let couple = ReadsFrom { var, read, writer };
                *spent = self.runs.decide(&couple, work, verdicts);
                if let Some(order) = order {
                    let mut left = work.saturating_sub(*spent);
                    let before = left;
                    *phases = order.decide(&couple, verdicts, &mut left);
                    *spent += before - left;
                }
            }
            (None, Some(writer), Some(order)) => {
                let mut left = work;
                *phases = order.decide_final(var, writer, verdicts, &mut left);
                *spent = work - left;
            }
            (None, Some(writer), None) => {
                *spent = self.runs.decide_final(var, writer, work, verdicts);
            }
            // A variable that is never written is read as it was.
            (None, None, _) => {}
        }
        decided
    }
}

/// Every witness of every read of `trace` and whether it is feasible, none where a budget ended:
/// variable by variable, read by read, challenger by challenger, the initial value first.
///
/// ```
/// use reweave_determinism::{Mode, decide};
///
/// let trace = reweave_testkit::trace("
/// T1    T2
/// w(x)
///       r(x)
/// ");
/// // The read can come first, and then sees the initial value.
/// let verdicts = decide::verdicts(&trace, Mode::Strict);
/// assert!(verdicts.iter().any(|(_, verdict)| *verdict == Some(true)));
/// ```
#[must_use]
pub fn verdicts(trace: &Trace, mode: Mode) -> Vec<(Witness, Option<bool>)> {
    verdicts_within(trace, mode, Budget::default().work)
}

/// The same, with about `work` steps for each read.
#[must_use]
pub fn verdicts_within(trace: &Trace, mode: Mode, work: u64) -> Vec<(Witness, Option<bool>)> {
    let accesses = Accesses::new(trace);
    let readers: Vec<Reader> = accesses.couples().iter().map(Reader::from).collect();
    of_readers(&accesses, mode, &readers, work)
}

/// The same of the implicit reads of all variables at the end of the run.
#[must_use]
pub fn final_verdicts(trace: &Trace, mode: Mode) -> Vec<(Witness, Option<bool>)> {
    let accesses = Accesses::new(trace);
    of_readers(&accesses, mode, &accesses.final_readers(), Budget::default().work)
}

fn of_readers(
    accesses: &Accesses<'_>,
    mode: Mode,
    readers: &[Reader],
    work: u64,
) -> Vec<(Witness, Option<bool>)> {
    let engine = Engine::new(accesses.trace());
    let graph = (mode == Mode::Order).then(|| OrderGraph::new(accesses));
    let decider = Decider::new(accesses, &engine, graph.as_ref(), mode, 1);
    let decided = decider.decide(readers, work);
    let mut all = Vec::new();
    for (reader, decided) in readers.iter().zip(decided) {
        expand(accesses, reader, &decided.verdicts, |witness, verdict| {
            all.push((witness, verdict));
        });
    }
    all
}

/// Tells `visit` of every witness of `reader`, challenger by challenger, the initial value first.
pub(crate) fn expand(
    accesses: &Accesses<'_>,
    reader: &Reader,
    verdicts: &ReadVerdicts,
    mut visit: impl FnMut(Witness, Option<bool>),
) {
    let Reader { var, read, writer } = *reader;
    let mut interfering_writes: Vec<(Option<EventId>, u32, u32)> = Vec::new();
    if writer.is_some() {
        interfering_writes.push((None, 0, 0));
    }
    for (line, own) in (0..).zip(accesses.lines(var)) {
        let writes = (0..).zip(accesses.writes(own).iter().copied().map(Some));
        let others = writes.filter(|&(_, write)| write != writer && write != read);
        interfering_writes.extend(others.map(|(at, write)| (write, line, at)));
    }
    interfering_writes.sort_unstable();
    for (interfering, line, at) in interfering_writes {
        for kind in WitnessKind::ALL {
            let known = verdicts.of(kind);
            let is_in = |of: &Challengers| match interfering {
                None => of.initial,
                Some(_) => of.contains(line, at),
            };
            let verdict = match (is_in(&known.feasible), is_in(&known.unknown)) {
                (true, _) => Some(true),
                (false, true) => None,
                (false, false) => Some(false),
            };
            visit(Witness { kind, writer, read, interfering }, verdict);
        }
    }
}
