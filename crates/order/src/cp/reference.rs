//! Causally-precedes pair by pair, straight from its definition: for tests.

use reweave_base::{Id, IndexVec};
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, Op, Trace};

use crate::hb::reference::Order as HappensBefore;

/// Whether each event comes before each other by CP.
#[derive(Debug)]
pub struct Order {
    before: IndexVec<EventId, Vec<bool>>,
}

impl Order {
    /// CP over all events of `trace`: the smallest relation that the rules hold for.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let happens_before = HappensBefore::of(trace);
        let events: Vec<EventId> = trace.events().map(|(id, _)| id).collect();
        let none = vec![false; events.len()];
        let mut order = Self { before: IndexVec::from_elem(none, events.len()) };
        for &late in &events {
            for &early in events.iter().filter(|&&early| early < late) {
                if is_hard_edge(trace, early, late) {
                    order.add(&happens_before, &events, early, late);
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
                    // Rule (a), rule (b).
                    if conflict(trace, first, second) || order.is_before(first.acquire, end) {
                        order.add(&happens_before, &events, release, second.acquire);
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
    fn add(&mut self, order: &HappensBefore, events: &[EventId], from: EventId, to: EventId) {
        let reaches = |early: EventId, late: EventId| early == late || order.is_before(early, late);
        for &late in events.iter().filter(|&&late| reaches(to, late)) {
            for &early in events.iter().filter(|&&early| reaches(early, from)) {
                self.before[late][early.index()] = true;
            }
        }
    }
}

/// The release of `first`, if the two are sections on one lock, `first` the earlier, not both in
/// shared mode.
fn source_of(first: &CriticalSection, second: &CriticalSection) -> Option<EventId> {
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

/// Whether an edge of happens-before that is no lock's and no program order leads from `early` to
/// `late`.
fn is_hard_edge(trace: &Trace, early: EventId, late: EventId) -> bool {
    let (from, to) = (trace.event(early), trace.event(late));
    let lock = matches!(
        (from.op, to.op),
        (Op::Release(_) | Op::ReleaseShared(_), Op::Acquire(_) | Op::AcquireShared(_))
    );
    from.thread != to.thread && !lock && crate::hb::reference::is_edge(trace, early, late)
}
