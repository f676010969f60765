//! Symbolic reachability: can a step be reached, or an assertion fail, in some interleaving?
//!
//! The question becomes one of satisfiability. Threads are cut into [`Unit`]s that nobody
//! interrupts. Which steps are taken, which of two units of different threads comes first, and
//! which write a read sees are choices; values are vectors of bits, as wide as [`Widths`] says,
//! that circuits compute from what reads saw. A satisfying assignment is a schedule
//! (see [`crate::schedule`]), and it is executed on plain numbers before it is reported.
//!
//! An interleaving need not be complete: a thread may stop at the end of a unit, and inside one
//! before a step that might not be possible (a guard, a division, a lock to take, a thread to wait
//! for), and behind a step that was asked about. Since every interleaving goes on to one where each
//! thread has ended or cannot go on, no answer is lost by threads not stopping elsewhere.
//!
//! [`Answer::Possible`] is always right. [`Answer::Impossible`] is right for [`Widths::Fixed`] with
//! 64 bits and for sound ranges, as far as the units are adequate: every interleaving that cannot
//! go on must be equivalent to one where units are contiguous. [`single_steps`] are adequate
//! trivially; so are the transactions of a graph that was built soundly.
//!
//! Cost: with `u` units, `u²` literals for the order, a clause for each read, each write that it
//! may see and each write of a third thread, and circuits linear in the widths, but for
//! products, quotients and shifts by what is not constant. Cycles through three threads and more
//! are excluded as models show them. The search itself is exponential and has a budget.
//!
//! Ganai, Wang: "Interval analysis for concurrent trace programs using transaction sequence graphs"
//! (RV 2010), section 5, where an SMT solver is asked. The encoding here is another.

mod circuits;
mod encode;
mod plan;

use reweave_base::IndexVec;
use reweave_solver::{Outcome, Solver};

use self::circuits::Circuits;
use self::encode::Encoder;
use self::plan::{Plan, UnitId};
use crate::ctp::{Ctp, Point, StepId};
use crate::domain::Domain;
use crate::graph::{Graph, Transaction};
use crate::propagate::Values;
use crate::schedule::replay;
use crate::symbolic::circuits::Gates;
use crate::symbolic::plan::Order;

/// Steps of one thread that are taken without interruption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Where the thread is before it; no two units start at one point.
    pub from: Point,
    /// Its steps: some from `from`, and all from every point between, ordered by where they start.
    pub steps: Vec<StepId>,
}

/// The units of one step, or of the alternatives that a thread has at a point.
pub fn single_steps(ctp: &Ctp) -> Vec<Unit> {
    let points = ctp.leaving.ids();
    let unit = |from| Unit { from, steps: ctp.steps_from(from).map(|(step, _)| step).collect() };
    points.map(unit).filter(|unit| !unit.steps.is_empty()).collect()
}

/// The transactions of `graph` as units.
pub fn transactions(graph: &Graph) -> Vec<Unit> {
    let unit = |transaction: &Transaction| {
        let mut steps = transaction.steps.clone();
        steps.sort_unstable();
        Unit { from: graph.nodes[transaction.from].point, steps }
    };
    graph.transactions.iter().map(unit).collect()
}

/// What is known of each step, for all interleavings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRanges {
    /// Whether it can be taken.
    pub reached: IndexVec<StepId, bool>,
    /// The least and the greatest value that it stores; none if it stores nothing or is not taken.
    pub stored: IndexVec<StepId, Option<(i64, i64)>>,
    /// The least and the greatest value that it defines a local by.
    pub defined: IndexVec<StepId, Option<(i64, i64)>>,
}

impl StepRanges {
    /// What `values` say of each step.
    pub fn new<D: Domain>(values: &Values<D>) -> Self {
        let steps = &values.steps;
        let bounds = |value: &Option<D>| value.as_ref().map(D::bounds);
        Self {
            reached: steps.iter().map(|step| step.reached).collect(),
            stored: steps.iter().map(|step| bounds(&step.stored)).collect(),
            defined: steps.iter().map(|step| bounds(&step.defined)).collect(),
        }
    }
}

/// How wide numbers are.
#[derive(Clone, Copy, Debug)]
pub enum Widths<'a> {
    /// All have so many bits (2 to 64) and wrap.
    Fixed(u32),
    /// Each as many as its range needs; what leaves the 64 bits wraps.
    Ranges(&'a StepRanges),
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Can one of these steps be taken while its assertion is false?
    Fails(Vec<StepId>),
    /// Can one of these steps be taken?
    Reaches(Vec<StepId>),
}

impl Question {
    /// The steps it asks about.
    pub fn steps(&self) -> &[StepId] {
        match self {
            Self::Fails(steps) | Self::Reaches(steps) => steps,
        }
    }
}

/// By what means an answer is sought, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many conflicts it may meet.
    pub conflicts_max: u64,
    /// How many clauses there may be.
    pub clauses_max: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { conflicts_max: 100_000, clauses_max: 5_000_000 }
    }
}

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It happens when these steps are taken in this order; that was tried.
    Possible(Vec<StepId>),
    /// It happens in no interleaving.
    Impossible,
    /// Numbers of the given width suggest this order, but numbers of 64 bits do not confirm it.
    Unconfirmed(Vec<StepId>),
    /// The budget ran out.
    Exhausted,
}

/// How large the formula was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// How many variables.
    pub variables: u64,
    /// How many clauses.
    pub clauses: u64,
    /// How many conflicts the solver met.
    pub conflicts: u64,
    /// How many times it was asked.
    pub rounds: u64,
}

/// Answers `question` about the interleavings of `ctp` in which `units` are not interrupted.
pub fn ask(
    ctp: &Ctp,
    units: &[Unit],
    widths: Widths<'_>,
    question: &Question,
    settings: &Settings,
) -> (Answer, Statistics) {
    let solver = Solver::new(settings.conflicts_max);
    let mut gates = Gates::new(solver, settings.clauses_max);
    let plan = Plan::new(ctp, units, question);
    let Some(order) = Order::new(ctp, &plan, &mut gates, settings.clauses_max) else {
        return (Answer::Exhausted, Statistics::default());
    };
    let limit = match widths {
        Widths::Fixed(width) => width,
        Widths::Ranges(_) => 64,
    };
    let circuits = Circuits::new(gates, limit);
    let mut encoder = Encoder::new(ctp, &plan, &order, widths, circuits, question);
    encoder.encode_threads();
    encoder.encode_memory();
    encoder.encode_locks();
    let mut rounds = 0;
    let answer = if encoder.circuits.gates.is_full() {
        Answer::Exhausted
    } else {
        search(&mut encoder, question, &mut rounds)
    };
    let solver = &encoder.circuits.gates.solver;
    let statistics = Statistics {
        variables: u64::from(solver.variables_count()),
        clauses: solver.clauses_count(),
        conflicts: solver.conflicts_count(),
        rounds,
    };
    (answer, statistics)
}

/// Looks for models until one has an order.
fn search(encoder: &mut Encoder<'_>, question: &Question, rounds: &mut u64) -> Answer {
    loop {
        *rounds += 1;
        match encoder.circuits.gates.solver.solve(&[]) {
            Outcome::Satisfied => {}
            Outcome::Refuted(_) => return Answer::Impossible,
            Outcome::Exhausted => return Answer::Exhausted,
        }
        let gates = &mut encoder.circuits.gates;
        let mut executed = IndexVec::from_elem(Vec::new(), encoder.plan.units_of.len());
        for (thread, units) in encoder.plan.units_of.entries() {
            let begun = units.iter().copied().filter(|&unit| gates.holds(encoder.begun[unit]));
            executed[thread] = begun.collect();
        }
        let line = match encoder.order.linearize(&executed, gates, &encoder.begun) {
            Ok(line) => line,
            Err(rings) => {
                rings.iter().for_each(|ring| gates.long_clause(ring));
                continue;
            }
        };
        let mut steps: IndexVec<UnitId, Vec<StepId>> =
            IndexVec::from_elem(Vec::new(), encoder.plan.units.len());
        for visit in &encoder.visits {
            if gates.holds(visit.taken) {
                steps[visit.unit].push(visit.step);
            }
        }
        let mut schedule: Vec<StepId> =
            line.iter().flat_map(|&unit| steps[unit].iter().copied()).collect();
        return match replay(encoder.ctp, &schedule, question) {
            Some(length) => {
                schedule.truncate(length);
                Answer::Possible(schedule)
            }
            None => Answer::Unconfirmed(schedule),
        };
    }
}
