//! SHB pair by pair, straight from its definition: cubic, for tests.

use reweave_base::{Id, IndexVec};
use reweave_trace::{EventId, Trace};

use crate::hb::is_edge;

/// Which events come before which.
#[derive(Debug)]
pub struct Order {
    /// By SHB.
    before: IndexVec<EventId, Vec<bool>>,
    /// By SHB, but for the edge from the write that the later event saw.
    tested: IndexVec<EventId, Vec<bool>>,
}

impl Order {
    /// SHB over all events of `trace`.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let events: Vec<EventId> = trace.events().map(|(id, _)| id).collect();
        let nothing = IndexVec::from_elem(vec![false; events.len()], events.len());
        let mut order = Self { before: nothing.clone(), tested: nothing };
        // Edges go forward in observed order, so what is before `middle` is known by its turn.
        for &late in &events {
            for &middle in events.iter().filter(|&&middle| middle < late) {
                let happens_before = is_edge(trace, middle, late);
                let is_seen = trace.writer(late) == Some(middle);
                for early in (0..=middle.index()).map(EventId::from_index) {
                    if early == middle || order.is_before(early, middle) {
                        order.tested[late][early.index()] |= happens_before;
                        order.before[late][early.index()] |= happens_before || is_seen;
                    }
                }
            }
        }
        order
    }

    /// Whether `early` comes before `late`.
    #[must_use]
    pub fn is_before(&self, early: EventId, late: EventId) -> bool {
        self.before[late][early.index()]
    }

    /// Whether `early` comes before `late` even without the edge from the write that `late` saw:
    /// then the two, if they conflict, are no race.
    #[must_use]
    pub fn is_ordered(&self, early: EventId, late: EventId) -> bool {
        self.tested[late][early.index()]
    }
}
