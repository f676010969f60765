//! Happens-before races straight from their definition: cubic, for tests.

use reweave_order::hb::reference::Order;
use reweave_trace::Trace;

use super::Race;

/// Every pair of conflicting accesses by different threads, neither of which happens before the
/// other, in the order of the second access, then the first.
#[must_use]
pub fn races(trace: &Trace) -> Vec<Race> {
    let order = Order::of(trace);
    let mut races = Vec::new();
    for (second, late) in trace.events() {
        for (first, early) in trace.events().take_while(|&(first, _)| first < second) {
            let conflict = early.thread != late.thread && early.op.conflicts_with(late.op);
            if conflict && !order.is_before(first, second) {
                races.push(Race { first, second });
            }
        }
    }
    races
}
