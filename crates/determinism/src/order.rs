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
//! One closure of all couples serves all witnesses of kind 2, since these keep the couple that they
//! break as an order. For kind 1 there is one without the couple, found by halving (`without`). A
//! witness adds its edges on top, as cuts, without touching an event (`bend`). The choices that
//! matter are those of a strongly connected component, which is a range of each thread (`reach`).
//! Most choice graphs need not be made: the observed order, cut once or twice (`cuts`) or bent here
//! and there (`greedy`), shows the witness; else they are searched (`choices`).
//!
//! Along a line, the writes of one thread, verdicts depend on each other. A run that has `c` before
//! the read has all earlier writes of the line before it, so kind 1 is feasible up to some place,
//! in either phase. For kind 2, if writes from `c` to `d` can all come between, each can. And where
//! what a read reaches and what reaches its writer say that no choice can matter, a range needs no
//! further look. So most witnesses cost nothing of their own, and the rest a few cuts each, but for
//! those that many choices matter to: these cost more the more sections are left unordered around
//! them. A couple costs, besides, as much as its edge changes in a closure, once for each halving.
//!
//! Exact, but for a budget that ends. Counts are those of the definition, but for choice graphs
//! explored, which depend on what is tried first: sections as observed.
//!
//! A. Sinha, S. Malik, A. Gupta, *Efficient Predictive Analysis for Detecting Nondeterminism in
//! Multi-Threaded Programs* (FMCAD 2012), section III. [`mod@reference`] transcribes it.

mod bend;
mod choices;
mod clocks;
mod cuts;
mod desk;
mod greedy;
mod ground;
mod lines;
mod reach;
pub mod reference;
mod schedule;
mod without;

use reweave_base::IndexVec;
use reweave_trace::{EventId, VarId};

use self::bend::{Base, Work};
use self::clocks::Clocks;
use self::desk::{Chain, Desk};
use self::ground::{Ground, LooseId, Point};
use self::lines::{Case, Room, Tally, Writes};
use self::without::Without;
use crate::accesses::{Accesses, Couple};
use crate::verdicts::{Phases, ReadVerdicts};
use crate::witness::{Witness, WitnessKind};

/// What must come before what in a trace, whatever the order of its sections: with all couples, and
/// with those alone that no witness can break.
#[derive(Debug)]
pub struct OrderGraph<'t> {
    ground: Ground<'t>,
    writes: Writes,
    /// The closure with all couples.
    rows: Vec<u32>,
    /// The closure with the couples that always hold.
    firm: Clocks,
}

impl<'t> OrderGraph<'t> {
    /// The graph of the trace of `accesses`.
    #[must_use]
    pub fn new(accesses: &Accesses<'t>) -> Self {
        let reads = accesses.couples().iter().map(|couple| couple.read);
        let mut ground = Ground::of(accesses.trace(), reads);
        let firm = Clocks::of(&ground);
        // Who comes before a read without their couple does so in every graph.
        let base = Base { ground: &ground, rows: firm.rows() };
        let is_loose = |&(writer, read): &(Point, Point)| !base.is_before(writer, read);
        let loose: IndexVec<LooseId, (Point, Point)> =
            ground.loose.iter().copied().filter(is_loose).collect();
        let ids = loose.entries().map(|(id, &(_, read))| (ground.event(read), id)).collect();
        (ground.loose, ground.loose_of) = (loose, ids);
        let mut all = firm.clone();
        all.add_all(&ground, ground.loose.as_slice());
        Self { writes: Writes::of(accesses), rows: all.into_rows(), ground, firm }
    }

    fn base(&self) -> Base<'_> {
        Base { ground: &self.ground, rows: &self.rows }
    }
}

/// Decides the witnesses of one couple after the other. Those of couples next to each other in
/// [`Accesses::couples`] share most of the work; what is said of each does not depend on others.
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
            without: Without::from(graph.firm.clone()),
            desk: Desk::new(threads_count),
            room: Room::new(threads_count),
        }
    }

    /// Puts into `verdicts` those on the witnesses of kinds 1 and 2 of all challengers of `couple`,
    /// and gives how the phases decided them. `budget` counts entries of cuts; where it ends, the
    /// rest is unknown.
    ///
    /// Each witness is counted once: those that are infeasible in the first phase, feasible in it,
    /// with choices, and unknown are twice as many as there are challengers.
    pub fn decide(
        &mut self,
        couple: &Couple,
        verdicts: &mut ReadVerdicts,
        budget: &mut u64,
    ) -> Phases {
        let ground = &self.graph.ground;
        let is_write = ground.trace.event(couple.read).op.is_write();
        let count = self.graph.writes.count(couple.var) - u64::from(is_write);
        let read = ground.point(couple.read);
        let writer = couple.writer.map(|writer| ground.point(writer));
        let [after, between, _] = &mut verdicts.kinds;
        let mut phases = self.decide_writer_after(couple, Tally::new(after), budget).finish(count);
        let case = self.case_between(couple.var, Tally::new(between), budget);
        phases.add(&case.decide_between(writer, Some(read)).finish(count));
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
        let writer = self.graph.ground.point(writer);
        let [after, between, _] = &mut verdicts.kinds;
        let mut phases = Tally::new(after).finish(count);
        let case = self.case_between(var, Tally::new(between), budget);
        phases.add(&case.decide_between(Some(writer), None).finish(count));
        phases
    }

    /// A full order of all events that shows `witness`, of kind 1 or 2, if there is one.
    pub fn schedule(&mut self, witness: &Witness) -> Option<Vec<EventId>> {
        let ground = &self.graph.ground;
        let [writer, read, challenger] = [witness.writer, witness.read, witness.challenger]
            .map(|event| event.map(|event| ground.point(event)));
        if witness.kind.is_void(witness.writer, witness.challenger) {
            return None;
        }
        let (chain, rows) = match witness.kind {
            WitnessKind::WriterAfter => {
                let chain = Chain { first: challenger, middle: read?, last: writer };
                let loose = ground.loose_of.get(&witness.read?)?;
                (chain, self.without.rows(ground, *loose))
            }
            WitnessKind::Between => {
                let chain = Chain { first: writer, middle: challenger?, last: read };
                (chain, self.graph.rows.as_slice())
            }
            WitnessKind::WriterAbsent => return None,
        };
        let base = Base { ground, rows };
        let mut unlimited = u64::MAX;
        let mut work = Work(&mut unlimited);
        self.desk.set(base, &chain, &mut work).ok()?;
        self.desk.schedule(base, &chain, witness.read, &mut work).ok()?
    }

    fn decide_writer_after<'a>(
        &'a mut self,
        couple: &Couple,
        tally: Tally<'a>,
        budget: &'a mut u64,
    ) -> Tally<'a> {
        let ground = &self.graph.ground;
        // Where the couple is not loose the writer comes first without it, or is the initial value.
        let Some(&loose) = ground.loose_of.get(&couple.read) else { return tally };
        let (writer, read) = ground.loose[loose];
        let base = Base { ground, rows: self.without.rows(ground, loose) };
        let case = Case {
            base,
            writes: &self.graph.writes,
            var: couple.var,
            desk: &mut self.desk,
            room: &mut self.room,
            tally,
            work: Work(budget),
        };
        case.decide_writer_after(writer, read)
    }

    fn case_between<'a>(
        &'a mut self,
        var: VarId,
        tally: Tally<'a>,
        budget: &'a mut u64,
    ) -> Case<'a> {
        Case {
            base: self.graph.base(),
            writes: &self.graph.writes,
            var,
            desk: &mut self.desk,
            room: &mut self.room,
            tally,
            work: Work(budget),
        }
    }
}
