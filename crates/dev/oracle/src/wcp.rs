//! Weak-causally-precedes pair by pair, straight from its definition: for tests.

use reweave_trace::views::CriticalSection;
use reweave_trace::{EventId, Trace};

use crate::cp::source_of;
use crate::hb::{self, is_hard_edge};
use crate::relation::Order;

/// WCP over all events of `trace`: the smallest relation that the rules hold for.
#[must_use]
pub fn order(trace: &Trace) -> Order {
    let happens_before = hb::order(trace);
    let mut order = Order::empty(trace);
    for (late, _) in trace.events() {
        for (early, _) in trace.events().take_while(|&(early, _)| early < late) {
            if is_hard_edge(trace, early, late) || is_rule_a(trace, early, late) {
                // By rule (c) with all that happens before and after.
                order.add_composed(&happens_before, early, late);
            }
        }
    }
    while apply_rule_b(trace, &happens_before, &mut order) {}
    order
}

/// Adds the edges that rule (b) gives now. Whether there was a new one.
fn apply_rule_b(trace: &Trace, happens_before: &Order, order: &mut Order) -> bool {
    let mut changed = false;
    for (_, second) in trace.sections().entries() {
        let Some(end) = second.release else { continue };
        for (_, first) in trace.sections().entries() {
            let Some(release) = source_of(first, second) else { continue };
            // If any event of the first comes before any of the second, then by rule (c) so do the
            // outermost two.
            if order.is_before(first.acquire, end) && !order.is_before(release, end) {
                order.add_composed(happens_before, release, end);
                changed = true;
            }
        }
    }
    changed
}

/// Whether `release` ends a section, and `access` lies in a later one on the same lock and
/// conflicts with an access of another thread in the first.
fn is_rule_a(trace: &Trace, release: EventId, access: EventId) -> bool {
    let op = trace.event(access).op;
    let sections = || trace.sections().entries().map(|(_, section)| section);
    let conflicts = |first: &CriticalSection| {
        trace.events().any(|(id, event)| is_inside(trace, id, first) && event.op.conflicts_with(op))
    };
    op.var().is_some()
        && sections().filter(|second| is_inside(trace, access, second)).any(|second| {
            sections().any(|first| {
                source_of(first, second) == Some(release)
                    && first.thread != second.thread
                    && conflicts(first)
            })
        })
}

/// Whether `event` is done in `section`.
fn is_inside(trace: &Trace, event: EventId, section: &CriticalSection) -> bool {
    trace.event(event).thread == section.thread
        && section.acquire < event
        && section.release.is_none_or(|release| event < release)
}
