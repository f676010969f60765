//! Witnesses of kinds 1 and 2 in [`Mode::Order`](crate::Mode::Order), by the two phases of the
//! paper.
//!
//! All events happen; threads, signals and every other reads-from edge keep their order, and
//! critical sections of a lock exclude each other. The *witness order graph* has these edges, those
//! of the witness, and those that follow where one section must start before another ends. If it
//! has a cycle, the witness is infeasible. Pairs of sections that it leaves unordered are choices;
//! only those matter that could close a cycle through the witness, and if there are none, the
//! witness is feasible. Otherwise it is feasible if some *choice graph*, which orders all those
//! pairs, is acyclic.
//!
//! | part | module |
//! | --- | --- |
//! | the events, their scopes and the edges between threads | `graph` |
//! | what must come before what, with all reads-from edges or all but one | `closure` |
//! | the edges of a witness on top of the closure, as cuts | `overlay` |
//! | the choices that matter: those of a strongly connected component | `component` |
//! | does the graph of a witness have a cycle, and can its choices be made | `evaluate` |
//! | full orders that show a witness, most often without a search of choice graphs | `schedule` |
//! | all interfering writes of a read, by the write list of each thread | `writes` |
//!
//! One closure serves all witnesses of kind 2, since these keep the reads-from edge that they break
//! as an order. For kind 1 the closure is patched where it depends on the edge.
//!
//! Along the writes of one thread verdicts depend on each other. A run that has `c` before the read
//! has all earlier writes of that thread before it, so kind 1 is feasible up to some write, in
//! either phase; and all that come before the read anyway share one graph, so they are decided
//! together. For kind 2, if writes from `c` to `d` can all come between, each can. And where
//! reachability from the read and to its writer shows that no choice can matter, a range of writes
//! is decided at once. So most witnesses cost nothing of their own, and the rest a few cuts each,
//! except for those that many choices matter to: these cost more the more sections are left
//! unordered around them. A reads-from edge costs, besides, what it changes in the closure.
//!
//! Memory is about two rows of numbers, one for each thread, for each event with an edge from or to
//! another thread. Where that is too much ([`OrderGraph::is_too_large`]) nothing is decided. All
//! work except making the closure, which is limited by its size, and a few rows for each read
//! counts against the budget of the read. Of that it takes [`READ_MAX`], or a small part if that is
//! more; and a part of what is left goes to the search for one choice graph.
//!
//! Exact, except for what is left unknown then. Counts are those of the definition, except for
//! choice graphs explored, which depend on what is tried first: sections as observed.
//!
//! A. Sinha, S. Malik, A. Gupta, *Efficient Predictive Analysis for Detecting Nondeterminism in
//! Multi-Threaded Programs* (FMCAD 2012), section III. `oracle::choice_graphs` transcribes it.

mod closure;
mod component;
mod evaluate;
mod graph;
mod overlay;
mod schedule;
mod writes;

use reweave_trace::{EventId, VarId};

use self::closure::{ReducedClosure, Successors};
use self::evaluate::{Chain, Workspace};
use self::graph::EventGraph;
use self::overlay::{ClosedGraph, Incomplete, Work};
use self::writes::{Ends, ReadCase, Results, Shared, Writes};
use crate::accesses::{Accesses, ReadsFrom};
use crate::verdicts::{Phases, ReadVerdicts};
use crate::witness::{Witness, WitnessKind};

/// How many entries all rows of a closure may have together.
const ENTRIES_MAX: usize = 1 << 27;

/// How much one read may cost, whatever its budget: more hardly ever helps.
pub const READ_MAX: u64 = 1 << 22;

/// Which part of a larger budget it may cost.
const SHARE: u64 = 32;

/// How much of `budget` one read may cost.
fn allowed(budget: u64) -> u64 {
    READ_MAX.max(budget / SHARE).min(budget)
}

/// What must come before what in a trace, whatever the order of its critical sections.
#[derive(Debug)]
pub struct OrderGraph<'t> {
    events: EventGraph<'t>,
    writes: Writes,
    /// With all reads-from edges; none if it is too large.
    closure: Option<Closure>,
}

#[derive(Debug)]
struct Closure {
    rows: Vec<u32>,
    successors: Successors,
}

impl<'t> OrderGraph<'t> {
    /// The graph of the trace of `accesses`.
    #[must_use]
    pub fn new(accesses: &Accesses<'t>) -> Self {
        let events = EventGraph::new(accesses.trace());
        let is_small = events.segments.len().saturating_mul(events.threads_count) <= ENTRIES_MAX;
        let rows = is_small.then(|| closure::closure(&events, None)).flatten();
        let closure = rows.map(|rows| {
            let successors = Successors::new(&events, &rows);
            Closure { rows, successors }
        });
        Self { writes: Writes::new(accesses), events, closure }
    }

    /// Whether nothing is decided, since there are too many threads and edges between them.
    #[must_use]
    pub const fn is_too_large(&self) -> bool {
        self.closure.is_none()
    }

    fn closed(&self) -> Option<ClosedGraph<'_>> {
        let Closure { rows, successors } = self.closure.as_ref()?;
        Some(ClosedGraph { graph: &self.events, rows, successors, patch: None })
    }
}

/// Decides the witnesses of one read after the other. The verdicts on each do not depend on the
/// others.
#[derive(Debug)]
pub struct OrderSolver<'g, 't> {
    graph: &'g OrderGraph<'t>,
    reduced: ReducedClosure,
    workspace: Workspace,
    shared: Shared,
}

impl<'g, 't> OrderSolver<'g, 't> {
    /// A solver on `graph`.
    #[must_use]
    pub fn new(graph: &'g OrderGraph<'t>) -> Self {
        let threads_count = graph.events.threads_count;
        Self {
            graph,
            reduced: ReducedClosure::new(&graph.events),
            workspace: Workspace::new(threads_count),
            shared: Shared::new(threads_count),
        }
    }

    /// Puts into `verdicts` those on the witnesses of kinds 1 and 2 of all interfering writes of
    /// `edge`, and returns how the phases decided them. `budget` counts entries of cuts; where it
    /// ends, or what one read may cost of it, the rest is unknown.
    ///
    /// Each witness is counted once: those that are infeasible in the first phase, feasible in it,
    /// with choices, and unknown are twice as many as there are interfering writes.
    pub fn decide(
        &mut self,
        edge: &ReadsFrom,
        verdicts: &mut ReadVerdicts,
        budget: &mut u64,
    ) -> Phases {
        let events = &self.graph.events;
        let is_write = edge.read.is_some_and(|read| events.trace.event(read).op.is_write());
        let count = self.graph.writes.count(edge.var) - u64::from(is_write);
        let point = |event: Option<EventId>| event.map(|event| events.point(event));
        let ends = (point(edge.writer), point(edge.read));
        let [after, between, _] = &mut verdicts.kinds;
        let allowed = allowed(*budget);
        let mut work = Work(allowed);
        let after = self.decide_writer_after(edge, Results::new(after), &mut work);
        let mut phases = after.finish(count);
        let between = self.decide_between(edge.var, ends, Results::new(between), &mut work);
        phases.add(&between.finish(count));
        *budget -= allowed - work.0;
        phases
    }

    /// A full order of all events that shows `witness`, of kind 1 or 2, if there is one.
    pub fn schedule(&mut self, witness: &Witness) -> Option<Vec<EventId>> {
        let events = &self.graph.events;
        let [writer, read, interfering] = [witness.writer, witness.read, witness.interfering]
            .map(|event| event.map(|event| events.point(event)));
        if witness.kind.is_void(witness.writer, witness.interfering) {
            return None;
        }
        let mut work = Work(u64::MAX);
        let mut closed = self.graph.closed()?;
        let chain = match witness.kind {
            WitnessKind::WriterAfter => {
                let edge = events.breakable(witness.read?)?;
                closed.patch = Some(self.reduced.patch(closed, edge, &mut work).ok()?);
                Chain { first: interfering, middle: read?, last: writer }
            }
            WitnessKind::Between => Chain { first: writer, middle: interfering?, last: read },
            WitnessKind::WriterAbsent => return None,
        };
        self.workspace.set(closed, &chain, &mut work).ok()?;
        self.workspace.schedule(closed, &chain, witness.read, &mut work).ok()?
    }

    fn decide_writer_after<'a>(
        &'a mut self,
        edge: &ReadsFrom,
        mut results: Results<'a>,
        work: &'a mut Work,
    ) -> Results<'a> {
        let OrderGraph { events, writes, .. } = self.graph;
        // If the edge is not breakable, the writer comes first without it, or is the initial value.
        // Nothing comes after the read at the end of the run.
        let breakable = edge.read.and_then(|read| events.breakable(read));
        let Some((writer, read)) = breakable else { return results };
        let closed = self.graph.closed().ok_or(Incomplete::Budget).and_then(|closed| {
            let patch = self.reduced.patch(closed, (writer, read), work)?;
            Ok(ClosedGraph { patch: Some(patch), ..closed })
        });
        match closed {
            Ok(closed) => {
                let (workspace, shared) = (&mut self.workspace, &mut self.shared);
                let var = edge.var;
                let case = ReadCase { closed, writes, var, workspace, shared, results, work };
                case.decide_writer_after(writer, read)
            }
            Err(Incomplete::Cycle) => results,
            Err(Incomplete::Budget) => {
                results.verdicts.unknown.initial = true;
                results.record_unknown(writes, edge.var, [Some(writer), Some(read)]);
                results
            }
        }
    }

    fn decide_between<'a>(
        &'a mut self,
        var: VarId,
        ends: Ends,
        mut results: Results<'a>,
        work: &'a mut Work,
    ) -> Results<'a> {
        let writes = &self.graph.writes;
        let Some(closed) = self.graph.closed() else {
            results.record_unknown(writes, var, ends.into());
            return results;
        };
        let (workspace, shared) = (&mut self.workspace, &mut self.shared);
        let case = ReadCase { closed, writes, var, workspace, shared, results, work };
        case.decide_between(ends)
    }
}
