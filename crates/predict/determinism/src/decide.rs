//! Deciding witnesses: read by read, each on its own and within a budget of its own.

use reweave_reorder::{Budget, Engine, Solver};
use reweave_trace::{EventId, Trace};

use crate::accesses::{Accesses, ReadsFrom};
use crate::order::{OrderGraph, OrderSolver};
use crate::runs::Runs;
use crate::verdicts::{Phases, ReadVerdicts, WriteRanges};
use crate::witness::{Mode, Witness, WitnessKind};

/// What came of the witnesses of one read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decided {
    pub(crate) verdicts: ReadVerdicts,
    /// In mode `order`.
    pub(crate) phases: Phases,
    pub(crate) work: u64,
}

/// Decides one read after the other.
#[derive(Debug)]
pub(crate) struct ReadDecider<'a, 't> {
    runs: Runs<'a, 't>,
    /// In mode `order`.
    order: Option<OrderSolver<'a, 't>>,
}

impl<'a, 't> ReadDecider<'a, 't> {
    /// `graph` is there in mode `order`.
    pub(crate) fn new(
        accesses: &'a Accesses<'t>,
        engine: &'a Engine<'t>,
        graph: Option<&'a OrderGraph<'t>>,
        mode: Mode,
    ) -> Self {
        let solver = Solver::new(engine, Budget::default());
        Self { runs: Runs::new(accesses, solver, mode), order: graph.map(OrderSolver::new) }
    }

    /// Decides the witnesses of `edge` within about `work` steps.
    pub(crate) fn decide(&mut self, edge: &ReadsFrom, work: u64) -> Decided {
        let mut decided = Decided::default();
        let Decided { verdicts, phases, work: done } = &mut decided;
        *done = self.runs.decide(edge, work, verdicts);
        if let Some(order) = &mut self.order {
            let mut left = work.saturating_sub(*done);
            let before = left;
            *phases = order.decide(edge, verdicts, &mut left);
            *done += before - left;
        }
        decided
    }
}

/// Every witness of every read of `trace` and whether it is feasible, none where a budget ended:
/// variable by variable, read by read, interfering write by interfering write, the initial value first.
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
    of_readers(&accesses, mode, accesses.edges(), work)
}

/// The same of the implicit reads of all variables at the end of the run.
#[must_use]
pub fn final_verdicts(trace: &Trace, mode: Mode) -> Vec<(Witness, Option<bool>)> {
    let accesses = Accesses::new(trace);
    of_readers(&accesses, mode, &accesses.final_reads(), Budget::default().work)
}

fn of_readers(
    accesses: &Accesses<'_>,
    mode: Mode,
    readers: &[ReadsFrom],
    work: u64,
) -> Vec<(Witness, Option<bool>)> {
    let engine = Engine::new(accesses.trace());
    let graph = (mode == Mode::Order).then(|| OrderGraph::new(accesses));
    let mut decider = ReadDecider::new(accesses, &engine, graph.as_ref(), mode);
    let mut all = Vec::new();
    for reader in readers {
        let decided = decider.decide(reader, work);
        expand(accesses, reader, &decided.verdicts, |witness, verdict| {
            all.push((witness, verdict));
        });
    }
    all
}

/// Hands `visit` every witness of `reader`, interfering write by interfering write, the initial value first.
pub(crate) fn expand(
    accesses: &Accesses<'_>,
    reader: &ReadsFrom,
    verdicts: &ReadVerdicts,
    mut visit: impl FnMut(Witness, Option<bool>),
) {
    let ReadsFrom { var, read, writer } = *reader;
    let mut interfering_writes: Vec<(Option<EventId>, u32, u32)> = Vec::new();
    if writer.is_some() {
        interfering_writes.push((None, 0, 0));
    }
    for (list, own) in (0..).zip(accesses.lists(var)) {
        let writes = (0..).zip(accesses.writes(own).iter().copied().map(Some));
        let others = writes.filter(|&(_, write)| write != writer && write != read);
        interfering_writes.extend(others.map(|(at, write)| (write, list, at)));
    }
    interfering_writes.sort_unstable();
    for (interfering, list, at) in interfering_writes {
        for kind in WitnessKind::ALL {
            let known = verdicts.of_kind(kind);
            let is_in = |of: &WriteRanges| match interfering {
                None => of.initial,
                Some(_) => of.contains(list, at),
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
