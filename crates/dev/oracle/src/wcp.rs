//! Weak-causally-precedes pair by pair, straight from its definition: for tests.

use reweave_base::{Id, IndexVec};
use reweave_trace::views::CriticalSection;
use reweave_trace::{EventId, Trace};

use crate::cp::source_of;
use crate::hb::{Order as HappensBefore, is_hard_edge};

/// Whether each event comes before each other by WCP.
#[derive(Debug)]
pub struct Order {
    before: IndexVec<EventId, Vec<bool>>,
}

impl Order {
    /// WCP over all events of `trace`: the smallest relation that the rules hold for.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let happens_before = HappensBefore::new(trace);
        let events: Vec<EventId> = trace.events().map(|(id, _)| id).collect();
        let none = vec![false; events.len()];
        let mut order = Self { before: IndexVec::from_elem(none, events.len()) };
        for &late in &events {
            for &early in events.iter().filter(|&&early| early < late) {
                if is_hard_edge(trace, early, late) || is_rule_a(trace, early, late) {
                    order.add(&happens_before, &events, early, late);
                }
            }
        }
        while order.apply_rule_b(trace, &happens_before, &events) {}
        order
    }

    /// Whether `early` comes before `late` by WCP.
    #[must_use]
    pub fn is_before(&self, early: EventId, late: EventId) -> bool {
        self.before[late][early.index()]
    }

    /// Adds the edges that rule (b) gives now. Whether there was a new one.
    fn apply_rule_b(
        &mut self,
        trace: &Trace,
        happens_before: &HappensBefore,
        events: &[EventId],
    ) -> bool {
        let mut changed = false;
        for (_, second) in trace.sections().entries() {
            let Some(end) = second.release else { continue };
            for (_, first) in trace.sections().entries() {
                let Some(release) = source_of(first, second) else { continue };
                // If any event of the first comes before any of the second, then by rule (c) so
                // do the outermost two.
                if self.is_before(first.acquire, end) && !self.is_before(release, end) {
                    self.add(happens_before, events, release, end);
                    changed = true;
                }
            }
        }
        changed
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
