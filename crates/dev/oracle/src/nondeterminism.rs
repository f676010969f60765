//! What the three modes mean: every order of a small trace's events, tried one after the other.
//!
//! An order of events shows a witness if it has the events that the witness speaks of, in its order, and
//! keeps the rules of the mode. *Prefix* and *strict* ask for correct reorderings, by a [`Query`]; in
//! *order* what was observed to let an event happen must have happened, as must-happen-before says.
//!
//! | mode, kind | which events happen | other reads | waits, semaphores |
//! | --- | --- | --- | --- |
//! | order, 1 and 2 | all | after what they saw | after the observed notify, post |
//! | order, 3 | some of each thread, without the writer | after what they saw | as a correct reordering |
//! | prefix, strict | some of each thread | see what they saw | as a correct reordering |
//! | a final read, order | all | after what they saw | after the observed notify, post |
//! | a final read, prefix and strict | all | see what they saw | as a correct reordering |
//!
//! Exact, and slow: states may be as many as the product of the threads' lengths, times the orders
//! of writes.
//!
//! The notions are those of Sinha, Malik and Gupta, "Efficient predictive analysis for detecting
//! nondeterminism in multi-threaded programs" (FMCAD 2012), made precise: *order* is what the paper
//! decides, the other two are what its definition of a witness asks for.

use std::ops::ControlFlow;

use reweave_trace::{AccessOp, EventId, Op, Trace, VarId};

use crate::mhb;
use crate::query::{Query, View};
use crate::reachable::{Search, depth_first};

/// The three orders that break a reads-from edge; they order events, and do not ask that the read
/// sees the interfering write and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WitnessKind {
    /// The interfering write, the read, then the writer.
    WriterAfter,
    /// The writer, the interfering write, then the read.
    Between,
    /// The interfering write, then the read; the writer does not happen.
    WriterAbsent,
}

impl WitnessKind {
    const ALL: [Self; 3] = [Self::WriterAfter, Self::Between, Self::WriterAbsent];
}

/// A read that saw `writer`, and another write of the variable that it might see instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// How the reads-from edge is broken.
    pub kind: WitnessKind,
    /// What the read saw; none is the initial value.
    pub writer: Option<EventId>,
    /// The read; none is the implicit read of the variable at the end of the run.
    pub read: Option<EventId>,
    /// The other write; none is the initial value.
    pub interfering: Option<EventId>,
}

impl Witness {
    /// Whether the events are missing that the kind speaks of: an initial value is there before
    /// everything else.
    pub(crate) const fn is_void(&self) -> bool {
        match self.kind {
            WitnessKind::WriterAfter | WitnessKind::WriterAbsent => self.writer.is_none(),
            WitnessKind::Between => self.interfering.is_none(),
        }
    }

    /// The order that the kind asks for, edge by edge. An initial value is there before everything.
    pub(crate) fn edges(&self) -> Vec<(EventId, EventId)> {
        let chain = match self.kind {
            WitnessKind::WriterAfter => [self.interfering, self.read, self.writer],
            WitnessKind::Between => [self.writer, self.interfering, self.read],
            WitnessKind::WriterAbsent => [self.interfering, self.read, None],
        };
        chain.windows(2).filter_map(|pair| pair[0].zip(pair[1])).collect()
    }
}

/// Which reorderings count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All events happen, and every other read comes after what it saw; for kind 3, some do, so.
    Order,
    /// Some events of each thread happen, and every other read sees what it saw.
    Prefix,
    /// As [`Mode::Prefix`], and the thread of the read goes no further.
    Strict,
}

/// Every witness of every read, also those that are infeasible by definition: variable by variable,
/// reads in observed order, interfering writes in observed order with the initial value first, then kinds.
///
/// Reads whose writer is not known have none.
#[must_use]
pub fn witnesses(trace: &Trace) -> Vec<Witness> {
    let mut all = Vec::new();
    for (var, _) in trace.names().vars.entries() {
        for &read in trace.accesses(var) {
            let op = trace.event(read).op;
            if op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _)) {
                add_witnesses(trace, var, trace.writer(read), Some(read), &mut all);
            }
        }
    }
    all
}

/// Every witness of the implicit read of each written variable at the end of the run, also those
/// that are infeasible by definition, in the order of [`witnesses`].
#[must_use]
pub fn final_witnesses(trace: &Trace) -> Vec<Witness> {
    let mut all = Vec::new();
    for (var, _) in trace.names().vars.entries() {
        let mut latest_first = trace.accesses(var).iter().rev();
        let last = latest_first.find(|&&access| trace.event(access).op.is_write());
        if let Some(&last) = last {
            add_witnesses(trace, var, Some(last), None, &mut all);
        }
    }
    all
}

/// Adds to `all` the witnesses of `read` of `var`, which saw `writer`.
fn add_witnesses(
    trace: &Trace,
    var: VarId,
    writer: Option<EventId>,
    read: Option<EventId>,
    all: &mut Vec<Witness>,
) {
    let accesses = trace.accesses(var).iter().copied();
    let writes = accesses.filter(|&access| trace.event(access).op.is_write()).map(Some);
    for interfering in [None].into_iter().chain(writes) {
        let is_itself = interfering.is_some() && interfering == read;
        if interfering != writer && !is_itself {
            let witness = |kind| Witness { kind, writer, read, interfering };
            all.extend(WitnessKind::ALL.into_iter().map(witness));
        }
    }
}

/// Whether some order of events that counts in `mode` shows `witness`, one of `trace`'s own.
#[must_use]
pub fn is_feasible(trace: &Trace, witness: &Witness, mode: Mode) -> bool {
    let Witness { kind, writer, read, .. } = *witness;
    // At the end everything has happened: the writer is neither missing nor still to come.
    if witness.is_void() || read.is_none() && kind != WitnessKind::Between {
        return false;
    }
    let order = witness.edges();
    if mode == Mode::Order && kind != WitnessKind::WriterAbsent {
        return has_whole_order(trace, &order, read.as_slice());
    }
    let all = || trace.events().map(|(id, _)| id).collect();
    let query = Query {
        order,
        must: if read.is_none() { all() } else { Vec::new() },
        absent: writer.filter(|_| kind == WitnessKind::WriterAbsent).into_iter().collect(),
        views: read.map(|read| (read, View::Any)).into_iter().collect(),
        stop: read.filter(|_| mode == Mode::Strict).into_iter().collect(),
        relaxed: mode == Mode::Order,
        ..Query::default()
    };
    query.search(trace, usize::MAX).known().expect("every state is visited")
}

/// Whether some order of all events has `edges`, excludes critical sections from each other, and keeps
/// what must happen before what, but for the reads of `free`.
fn has_whole_order(trace: &Trace, edges: &[(EventId, EventId)], free: &[EventId]) -> bool {
    let mut is_found = false;
    let may_run = |search: &Search<'_>, event: EventId| {
        let mut earlier = trace.events().map(|(id, _)| id).take_while(|&early| early < event);
        search.keep_waiting(event).is_empty()
            && edges.iter().all(|&(first, second)| second != event || search.has_run(first))
            && earlier
                .all(|early| search.has_run(early) || !mhb::is_edge(trace, early, event, free))
    };
    depth_first(trace, usize::MAX, false, may_run, |_, path| {
        is_found = path.len() == trace.len();
        if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    is_found
}
