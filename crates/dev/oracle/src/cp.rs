//! Causally-precedes pair by pair, straight from its definition: for tests.

use reweave_base::Id;
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, Trace};

use crate::hb::{is_edge, is_hard_edge};
use crate::relation::Order;

/// CP over all events of `trace`: the smallest relation that the rules hold for.
#[must_use]
pub fn order(trace: &Trace) -> Order {
    order_with(trace, None)
}

/// The same with an edge, too, from each section to those on its lock, not both in shared mode, that
/// end more than `window` events after it began.
#[must_use]
pub fn order_within(trace: &Trace, window: usize) -> Order {
    order_with(trace, Some(window))
}

fn order_with(trace: &Trace, window: Option<usize>) -> Order {
    let happens_before = Order::closure(trace, |early, late| is_edge(trace, early, late));
    let mut order = Order::empty(trace);
    for (late, _) in trace.events() {
        for (early, _) in trace.events().take_while(|&(early, _)| early < late) {
            if is_hard_edge(trace, early, late) {
                // By rule (c) with all that happens before and after.
                order.add_composed(&happens_before, early, late);
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
                    order.add_composed(&happens_before, release, second.acquire);
                    changed = true;
                }
            }
        }
        if !changed {
            return order;
        }
    }
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
