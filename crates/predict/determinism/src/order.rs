//! Witnesses of kinds 1 and 2 in [`Mode::Order`](crate::Mode::Order), by the two phases of the
//! paper.
//!
//! All events happen; threads, signals and every other couple keep their order, and sections of a
//! lock exclude each other. The *witness order graph* has these edges, those of the witness, and
//! those that follow where one section must start before another ends. If it has a cycle, the
//! witness is infeasible. Pairs of sections that it leaves unordered are choices; of these only
//! those matter that could close a cycle through the witness, and if there are none, the witness is
//! feasible. Otherwise it is feasible if some *choice graph*, which orders all those pairs, has no
//! cycle.
//!
//! One closure of all couples (`clocks`, `after`) serves all witnesses of kind 2, since these keep
//! the couple that they break as an order. For kind 1 it is patched where it rests on the couple
//! (`without`, `suspects`). A witness adds its edges on top, as cuts, without touching an event
//! (`bend`). The choices that matter are those of a strongly connected component, which is a range
//! of each thread (`reach`). Most choice graphs need not be made: the observed order, cut once or
//! twice (`cuts`) or bent here and there (`greedy`), shows the witness; else they are searched
//! (`choices`).
//!
//! Along a line, the writes of one thread, verdicts depend on each other. A run that has `c` before
//! the read has all earlier writes of the line before it, so kind 1 is feasible up to some place,
//! in either phase; and all that come before the read anyway share one graph, so they are decided
//! together. For kind 2, if writes from `c` to `d` can all come between, each can. And where what a
//! read reaches and what reaches its writer say that no choice can matter, a range needs no further
//! look. So most witnesses cost nothing of their own, and the rest a few cuts each, but for those
//! that many choices matter to: these cost more the more sections are left unordered around them.
//! A couple costs, besides, what its edge changes in the closure, twice over or so where threads
//! are few, and more where they are many.
//!
//! Memory is about two rows of numbers, one for each thread, for each event that has to do with
//! another thread. Where that is too much ([`OrderGraph::is_too_large`]) nothing is decided. All
//! work but making the closure, which is limited by its size, and a few rows for each couple counts
//! against the budget of the couple. Of that it takes [`COUPLE_MAX`], or a small part if that is
//! more; and a part of what is left goes to looking for one choice graph.
//!
//! Exact, but for what is left unknown then. Counts are those of the definition, but for choice
//! graphs explored, which depend on what is tried first: sections as observed.
//!
//! A. Sinha, S. Malik, A. Gupta, *Efficient Predictive Analysis for Detecting Nondeterminism in
//! Multi-Threaded Programs* (FMCAD 2012), section III. `oracle::choice_graphs` transcribes it.

mod after;
mod bend;
mod choices;
mod clocks;
mod cuts;
mod desk;
mod edges;
mod greedy;
mod ground;
mod lines;
mod reach;
mod schedule;
mod suspects;
mod without;

use reweave_trace::{EventId, VarId};

use self::after::Successors;
use self::bend::{Base, Halt, Work};
use self::desk::{Chain, Desk};
use self::ground::{Ground, Point};
use self::lines::{Case, Room, Tally, Writes};
use self::without::Without;
use crate::accesses::{Accesses, ReadsFrom};
use crate::verdicts::{Phases, ReadVerdicts};
use crate::witness::{Witness, WitnessKind};

/// How many entries all rows of a closure may have together.
const ENTRIES_MAX: usize = 1 << 27;

/// How much one couple may cost, whatever its budget: more hardly ever helps.
pub const COUPLE_MAX: u64 = 1 << 22;

/// Which part of a larger budget it may cost.
const SHARE: u64 = 32;

/// How much of `budget` one couple may cost.
fn allowed(budget: u64) -> u64 {
    COUPLE_MAX.max(budget / SHARE).min(budget)
}

/// What must come before what in a trace, whatever the order of its sections.
#[derive(Debug)]
pub struct OrderGraph<'t> {
    ground: Ground<'t>,
    writes: Writes,
    /// None if it is too large.
    closure: Option<Closure>,
}

/// The closure of all couples.
#[derive(Debug)]
struct Closure {
    rows: Vec<u32>,
    successors: Successors,
}

impl<'t> OrderGraph<'t> {
    /// The graph of the trace of `accesses`.
    #[must_use]
    pub fn new(accesses: &Accesses<'t>) -> Self {
        let ground = Ground::new(accesses.trace());
        let is_small = ground.segments.len().saturating_mul(ground.threads_count) <= ENTRIES_MAX;
        let rows = is_small.then(|| clocks::closure(&ground, None)).flatten();
        let closure = rows.map(|rows| {
            let successors = Successors::new(&ground, &rows);
            Closure { rows, successors }
        });
        Self { writes: Writes::new(accesses), ground, closure }
    }

    /// Whether nothing is decided, since there are too many threads for as often as they have to do
    /// with each other.
    #[must_use]
    pub const fn is_too_large(&self) -> bool {
        self.closure.is_none()
    }

    fn base(&self) -> Option<Base<'_>> {
        let Closure { rows, successors } = self.closure.as_ref()?;
        Some(Base { ground: &self.ground, rows, successors, patch: None })
    }
}

/// Decides the witnesses of one couple after the other. What is said of each does not depend on
/// others.
#[derive(Debug)]
pub struct OrderSolver<'g, 't> {
    graph: &'g OrderGraph<'t>,
    without: Without,
    desk: Desk,
    room: Room,
}

impl<'g, 't> OrderSolver<'g, 't> {
    /// A solver on `graph`.
    #[must_use]
    pub fn new(graph: &'g OrderGraph<'t>) -> Self {
        let threads_count = graph.ground.threads_count;
        Self {
            graph,
            without: Without::new(&graph.ground),
            desk: Desk::new(threads_count),
            room: Room::new(threads_count),
        }
    }

    /// Puts into `verdicts` those on the witnesses of kinds 1 and 2 of all challengers of `couple`,
    /// and gives how the phases decided them. `budget` counts entries of cuts; where it ends, or
    /// what one couple may cost of it, the rest is unknown.
    ///
    /// Each witness is counted once: those that are infeasible in the first phase, feasible in it,
    /// with choices, and unknown are twice as many as there are challengers.
    pub fn decide(
        &mut self,
        couple: &ReadsFrom,
        verdicts: &mut ReadVerdicts,
        budget: &mut u64,
    ) -> Phases {
        let ground = &self.graph.ground;
        let is_write = ground.trace.event(couple.read).op.is_write();
        let count = self.graph.writes.count(couple.var) - u64::from(is_write);
        let writer = couple.writer.map(|writer| ground.point(writer));
        let ends = (writer, Some(ground.point(couple.read)));
        let [after, between, _] = &mut verdicts.kinds;
        let allowed = allowed(*budget);
        let mut left = allowed;
        let after = self.decide_writer_after(couple, Tally::new(after), &mut left);
        let mut phases = after.finish(count);
        let between = self.decide_between(couple.var, ends, Tally::new(between), &mut left);
        phases.add(&between.finish(count));
        *budget -= allowed - left;
        phases
    }

    /// The same for the implicit read of `var` at the end, which saw `writer`, the last write. No
    /// witness of kind 1 is feasible, since nothing comes after the end.
    pub fn decide_final(
        &mut self,
        var: VarId,
        writer: EventId,
        verdicts: &mut ReadVerdicts,
        budget: &mut u64,
    ) -> Phases {
        let count = self.graph.writes.count(var);
        let ends = (Some(self.graph.ground.point(writer)), None);
        let [after, between, _] = &mut verdicts.kinds;
        let mut phases = Tally::new(after).finish(count);
        let allowed = allowed(*budget);
        let mut left = allowed;
        let between = self.decide_between(var, ends, Tally::new(between), &mut left);
        phases.add(&between.finish(count));
        *budget -= allowed - left;
        phases
    }

    /// A full order of all events that shows `witness`, of kind 1 or 2, if there is one.
    pub fn schedule(&mut self, witness: &Witness) -> Option<Vec<EventId>> {
        let ground = &self.graph.ground;
        let [writer, read, interfering] = [witness.writer, witness.read, witness.interfering]
            .map(|event| event.map(|event| ground.point(event)));
        if witness.kind.is_void(witness.writer, witness.interfering) {
            return None;
        }
        let mut unlimited = u64::MAX;
        let mut work = Work(&mut unlimited);
        let mut base = self.graph.base()?;
        let chain = match witness.kind {
            WitnessKind::WriterAfter => {
                let couple = ground.loose(witness.read?)?;
                base.patch = Some(self.without.patch(base, couple, &mut work).ok()?);
                Chain { first: interfering, middle: read?, last: writer }
            }
            WitnessKind::Between => Chain { first: writer, middle: interfering?, last: read },
            WitnessKind::WriterAbsent => return None,
        };
        self.desk.set(base, &chain, &mut work).ok()?;
        self.desk.schedule(base, &chain, witness.read, &mut work).ok()?
    }

    fn decide_writer_after<'a>(
        &'a mut self,
        couple: &ReadsFrom,
        mut tally: Tally<'a>,
        budget: &'a mut u64,
    ) -> Tally<'a> {
        let OrderGraph { ground, writes, .. } = self.graph;
        // Where the couple is not loose the writer comes first without it, or is the initial value.
        let Some((writer, read)) = ground.loose(couple.read) else { return tally };
        let base = self.graph.base().ok_or(Halt::Spent).and_then(|base| {
            let patch = self.without.patch(base, (writer, read), &mut Work(budget))?;
            Ok(Base { patch: Some(patch), ..base })
        });
        match base {
            Ok(base) => {
                let (desk, room, work) = (&mut self.desk, &mut self.room, Work(budget));
                let case = Case { base, writes, var: couple.var, desk, room, tally, work };
                case.decide_writer_after(writer, read)
            }
            Err(Halt::Cycle) => tally,
            Err(Halt::Spent) => {
                tally.verdicts.unknown.initial = true;
                tally.leave(writes, couple.var, [Some(writer), Some(read)]);
                tally
            }
        }
    }

    fn decide_between<'a>(
        &'a mut self,
        var: VarId,
        (writer, read): (Option<Point>, Option<Point>),
        mut tally: Tally<'a>,
        budget: &'a mut u64,
    ) -> Tally<'a> {
        let writes = &self.graph.writes;
        let Some(base) = self.graph.base() else {
            tally.leave(writes, var, [writer, read]);
            return tally;
        };
        let (desk, room, work) = (&mut self.desk, &mut self.room, Work(budget));
        Case { base, writes, var, desk, room, tally, work }.decide_between(writer, read)
    }
}
