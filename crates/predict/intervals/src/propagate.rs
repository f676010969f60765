//! Propagation: what slots may hold, and what steps may do, in all interleavings of a graph.
//!
//! **Question.** A graph stands for interleavings: paths of transactions, each after one switch of
//! the processor at most. Which values can be read, written and asserted on them?
//!
//! **Idea.** Rounds. What places hold after one round is passed on to the transactions that can be
//! next, and what these come to is what places hold after the next round. Rounds are not added up:
//! after as many as an interleaving can have transactions everything was seen, so that no widening
//! is needed. Locals travel with switches ([`Mode::Copy`]) or stay with their threads
//! ([`Mode::Own`]); each way excludes what the other does not, and both are true.
//!
//! **Promise.** Whatever happens in an interleaving that the graph stands for is in the [`Values`].
//! [`Values::at`] speaks of threads that come to a node or go on from it, not of threads that are
//! suspended there. What needs too much work is given up, and everything is taken to be possible
//! then. The answer is the same for any number of processors, and that of `reference`, the definition, wherever
//! the domain's join is associative, commutative and idempotent, as that of intervals is. That of
//! congruences is not for numbers more than 2^63 apart: there the two answers are both true, but one
//! can be wider.
//!
//! **Cost.** Rounds × switches × slots at worst. A round computes only what changed, switches that
//! start at neighbouring nodes are taken together, and transactions are run on the slots that they
//! look at, once for equal values.
//!
//! Source: M. Ganai, C. Wang, "Interval analysis for concurrent trace programs using transaction
//! sequence graphs", 2010, procedure RPT. Own locals, stops and branching transactions are additions.

mod bits;
mod code;
mod ends;
mod engine;
mod memo;
pub(crate) mod plain;
#[cfg(feature = "reference")]
pub mod reference;
mod table;
mod target;
mod values;

pub(crate) use ends::final_values;
pub(crate) use values::join_option;
pub use values::{Asserted, Row, StepValues, Values};

use self::plain::Shape;
use crate::ctp::Ctp;
use crate::domain::Domain;
use crate::graph::Graph;
use crate::lookahead;

/// What a thread knows of its locals when it goes on after others ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// What the switch carried, as of everything else.
    Copy,
    /// What they were whenever it came to where it is.
    Own,
    /// What is possible by both.
    #[default]
    Both,
}

/// How to propagate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What becomes of locals at a switch.
    pub mode: Mode,
    /// How many transactions are run one after the other before values are joined; at least 1.
    pub lookahead: u32,
    /// How many paths may be looked along in one round before less is looked ahead.
    pub paths_max: u64,
    /// How many rounds there may be in one mode.
    pub rounds_max: u64,
    /// How many values may be computed in one mode.
    pub work_max: u64,
    /// How many values a round must compute for its work to be shared out among processors.
    pub shared_work_min: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Both,
            lookahead: 1,
            paths_max: 1 << 18,
            rounds_max: u64::MAX,
            work_max: 1 << 32,
            shared_work_min: 200_000,
        }
    }
}

/// What may happen in the interleavings of `ctp` that `graph` stands for.
#[must_use]
pub fn propagate<D: Domain>(ctp: &Ctp, graph: &Graph, settings: &Settings) -> Values<D> {
    match settings.mode {
        Mode::Copy => one_mode(ctp, graph, settings, false),
        Mode::Own => one_mode(ctp, graph, settings, true),
        Mode::Both => {
            let copy = one_mode::<D>(ctp, graph, settings, false);
            copy.meet(&one_mode(ctp, graph, settings, true))
        }
    }
}

fn one_mode<D: Domain>(ctp: &Ctp, graph: &Graph, settings: &Settings, own: bool) -> Values<D> {
    for length in (2..=settings.lookahead).rev() {
        let (paths_max, windows_max) = (settings.paths_max, settings.rounds_max);
        let window = lookahead::Settings { own, length, capped: true, paths_max, windows_max };
        if let Some(outcome) = lookahead::propagate(ctp, graph, &window) {
            return outcome.values;
        }
    }
    engine::propagate(ctp, &Shape::new(ctp, graph), settings, own)
}
