//! A relation between the events of a trace, as a table of pairs: what the orders are made of.

use reweave_base::{Id, IndexVec};
use reweave_trace::{EventId, Trace};

/// Which events come before which.
#[derive(Clone, Debug)]
pub struct Order {
    before: IndexVec<EventId, Vec<bool>>,
}

impl Order {
    /// Nothing comes before anything.
    pub(crate) fn empty(trace: &Trace) -> Self {
        Self { before: IndexVec::from_elem(vec![false; trace.len()], trace.len()) }
    }

    /// The smallest transitive relation with all edges. `is_edge` is asked about pairs in observed order
    /// alone.
    pub(crate) fn closure(trace: &Trace, is_edge: impl Fn(EventId, EventId) -> bool) -> Self {
        let mut order = Self::empty(trace);
        // Edges go forward in observed order, so what is before `middle` is known by its turn.
        for (late, _) in trace.events() {
            for (middle, _) in trace.events().take_while(|&(middle, _)| middle < late) {
                if is_edge(middle, late) {
                    order.before[late][middle.index()] = true;
                    for early in 0..middle.index() {
                        order.before[late][early] |= order.before[middle][early];
                    }
                }
            }
        }
        order
    }

    /// What comes before an event by one edge, after any number of steps of this relation.
    pub(crate) fn then(&self, trace: &Trace, is_edge: impl Fn(EventId, EventId) -> bool) -> Self {
        let mut order = Self::empty(trace);
        for (late, _) in trace.events() {
            for (middle, _) in trace.events().take_while(|&(middle, _)| middle < late) {
                if is_edge(middle, late) {
                    order.before[late][middle.index()] = true;
                    let row = order.before[late].iter_mut().zip(&self.before[middle]);
                    row.for_each(|(slot, &is_set)| *slot |= is_set);
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

    /// Adds an edge and all pairs that `other` makes of it by composition from both sides.
    pub(crate) fn add_composed(&mut self, other: &Self, from: EventId, to: EventId) {
        let reaches = |early: EventId, late: EventId| early == late || other.is_before(early, late);
        for late in other.before.ids().filter(|&late| reaches(to, late)) {
            for early in other.before.ids().filter(|&early| reaches(early, from)) {
                self.before[late][early.index()] = true;
            }
        }
    }
}

/// Closes a relation, of any things, under composition: `relation[early][late]`.
pub(crate) fn close(relation: &mut [Vec<bool>]) {
    for middle in 0..relation.len() {
        let onward = relation[middle].clone();
        for row in relation.iter_mut().filter(|row| row[middle]) {
            row.iter_mut().zip(&onward).for_each(|(slot, &is_set)| *slot |= is_set);
        }
    }
}
