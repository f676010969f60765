//! A predicate over the chains of a poset.

use reweave_base::{Id, IndexVec};
use reweave_order::poset::{ChainId, TracePoset};
use reweave_trace::{ThreadId, Trace};

use super::classify::{self, Class};
use super::expression::{Expression, Leaf, LeafId, Shared};
use super::{Predicate, StatePredicate};

/// A predicate over the chains of a poset: what its states are asked.
///
/// Everything is tabulated by the chains' own numbers of events, so asking costs a look-up a leaf.
#[derive(Clone, Debug)]
pub struct Placed {
    goal: Expression<ChainId>,
    class: Class<ChainId>,
    columns: IndexVec<LeafId, Column>,
}

/// A leaf by the numbers of events of the chains that it depends on.
#[derive(Clone, Debug)]
pub(super) enum Column {
    Local { chain: ChainId, values: Vec<Option<i64>> },
    Shared { initial: Option<i64>, writers: Vec<WriterColumn> },
}

/// The last write of a chain by the number of its events.
#[derive(Clone, Debug)]
pub(super) struct WriterColumn {
    pub(super) chain: ChainId,
    pub(super) lasts: Vec<Last>,
}

/// A write: its number in observed order, 0 if there is none yet, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Last {
    pub(super) number: u32,
    pub(super) value: Option<i64>,
}

impl Predicate {
    /// The predicate over the chains of `poset`, which is one of `trace`, the trace that the
    /// predicate is about. The poset must have every relevant event as an event of its own, and may
    /// have others.
    #[must_use]
    pub fn on(&self, trace: &Trace, poset: &TracePoset) -> Placed {
        let mut places: IndexVec<ThreadId, Option<(ChainId, Vec<u32>)>> =
            IndexVec::from_elem(None, trace.names().threads.len());
        for (chain, &thread) in poset.threads().entries() {
            let events = (1..=poset.poset().length(chain)).filter_map(|at| poset.first(chain, at));
            let counts = std::iter::once(0).chain(events.map(|event| trace.position(event) + 1));
            places[thread] = Some((chain, counts.collect()));
        }
        let place = |thread: ThreadId| {
            let (chain, counts) = places[thread].as_ref()?;
            Some((*chain, counts.as_slice()))
        };
        let goal = self.goal.placed(&place);
        let class = match self.class {
            Class::Pairwise => Class::Pairwise,
            _ => classify::classify(&goal),
        };
        let length = |chain| poset.poset().length(chain);
        let columns = goal.leaves.iter().map(|leaf| column(leaf, length)).collect();
        Placed { goal, class, columns }
    }
}

fn column(leaf: &Leaf<ChainId>, length: impl Fn(ChainId) -> u32) -> Column {
    match leaf {
        Leaf::Local(local) => {
            Column::Local { chain: local.owner, values: local.steps.tabulated(length(local.owner)) }
        }
        Leaf::Shared(Shared { initial, writers, .. }) => {
            let writer_column = |writer: &super::expression::Writer<ChainId>| {
                let last = |index| match writer.last(index) {
                    Some(write) => Last { number: write.event.number(), value: write.value },
                    None => Last { number: 0, value: *initial },
                };
                let chain = writer.owner;
                WriterColumn { chain, lasts: (0..=length(chain)).map(last).collect() }
            };
            Column::Shared {
                initial: *initial,
                writers: writers.iter().map(writer_column).collect(),
            }
        }
    }
}

impl Placed {
    /// What its states are searched for.
    #[must_use]
    pub const fn goal(&self) -> &Expression<ChainId> {
        &self.goal
    }

    /// The class of that, over chains.
    #[must_use]
    pub const fn class(&self) -> &Class<ChainId> {
        &self.class
    }

    pub(super) const fn columns(&self) -> &IndexVec<LeafId, Column> {
        &self.columns
    }

    #[inline]
    fn leaf(&self, id: LeafId, state: &[u32]) -> Option<i64> {
        match &self.columns[id] {
            Column::Local { chain, values } => values[state[chain.index()] as usize],
            Column::Shared { initial, writers } => {
                let lasts = writers.iter().map(|own| own.lasts[state[own.chain.index()] as usize]);
                lasts.max_by_key(|last| last.number).map_or(*initial, |last| last.value)
            }
        }
    }
}

impl StatePredicate for Placed {
    fn is_met(&self, state: &[u32]) -> bool {
        self.goal.root.value(&|id| self.leaf(id, state)) == Some(1)
    }
}
