//! Causally-precedes pair by pair, straight from its definition: for tests.

use reweave_base::{Id, IndexVec};
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, Trace};

use crate::hb::{is_edge, is_hard_edge};

/// Whether each event comes before each other by CP.
#[derive(Debug)]
pub struct Order {
    before: Pairs,
}

/// For each event, of which events it is true.
type Pairs = IndexVec<EventId, Vec<bool>>;

impl Order {
    /// CP over all events of `trace`: the smallest relation that the rules hold for.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        Self::with(trace, None)
    }

    /// The same with an edge, too, from each section to those on its lock, not both in shared
    /// mode, that end more than `window` events after it began.
    #[must_use]
    pub fn within(trace: &Trace, window: usize) -> Self {
        Self::with(trace, Some(window))
    }

    fn with(trace: &Trace, window: Option<usize>) -> Self {
        let happens_before = happens_before(trace);
        let mut order = Self { before: none(trace) };
        for (late, _) in trace.events() {
            for (early, _) in trace.events().take_while(|&(early, _)| early < late) {
                if is_hard_edge(trace, early, late) {
                    order.add(&happens_before, early, late);
                }
            }
        }
        loop {
            let mut changed = false;
            for (_, second) in trace.sections().entries() {
                for (_, first) in trace.sections().entries() {
                    let Some(release) = source_of(first, second) else { continue };
                    if order.is_before(release, second.acquire) {
                        continue;
                    }
                    let last = trace.lifetime(second.thread).last;
                    let end = second.release.or(last).expect("its acquire is an event");
                    let span = end.index() - first.acquire.index();
                    // Rule (a), rule (b), the window.
                    if conflict(trace, first, second)
                        || order.is_before(first.acquire, end)
                        || window.is_some_and(|window| span > window)
                    {
                        order.add(&happens_before, release, second.acquire);
                        changed = true;
                    }
                }
            }
            if !changed {
                return order;
            }
        }
    }

    /// Whether `early` comes before `late` by CP.
    #[must_use]
    pub fn is_before(&self, early: EventId, late: EventId) -> bool {
        self.before[late][early.index()]
    }

    /// Adds an edge and, by rule (c), all pairs that happens-before makes of it.
    fn add(&mut self, happens_before: &Pairs, from: EventId, to: EventId) {
        let reaches = |early: EventId, late| early == late || happens_before[late][early.index()];
        for late in happens_before.ids().filter(|&late| reaches(to, late)) {
            for early in happens_before.ids().filter(|&early| reaches(early, from)) {
                self.before[late][early.index()] = true;
            }
        }
    }
}

fn none(trace: &Trace) -> Pairs {
    IndexVec::from_elem(vec![false; trace.len()], trace.len())
}

fn happens_before(trace: &Trace) -> Pairs {
    let mut before = none(trace);
    // Edges go forward in observed order, so what is before `middle` is known by its turn.
    for (late, _) in trace.events() {
        for (middle, _) in trace.events().take_while(|&(middle, _)| middle < late) {
            if is_edge(trace, middle, late) {
                before[late][middle.index()] = true;
                for early in 0..middle.index() {
                    before[late][early] |= before[middle][early];
                }
            }
        }
    }
    before
}

/// The release of `first`, if the two are sections on one lock, `first` the earlier, not both in
/// shared mode.
pub(crate) fn source_of(first: &CriticalSection, second: &CriticalSection) -> Option<EventId> {
    let both_shared = first.mode == Mode::Shared && second.mode == Mode::Shared;
    let release = first.release?;
    (first.lock == second.lock && !both_shared && release < second.acquire).then_some(release)
}

/// Whether the two sections hold accesses of different threads that conflict.
fn conflict(trace: &Trace, first: &CriticalSection, second: &CriticalSection) -> bool {
    let inside = |section: &CriticalSection| {
        let (thread, acquire, release) = (section.thread, section.acquire, section.release);
        let own = trace.events().filter(move |(_, event)| event.thread == thread);
        own.filter(move |&(id, _)| acquire < id && release.is_none_or(|release| id < release))
    };
    first.thread != second.thread
        && inside(first)
            .any(|(_, one)| inside(second).any(|(_, other)| one.op.conflicts_with(other.op)))
}
