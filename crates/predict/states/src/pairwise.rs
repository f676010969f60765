//! The paper's data-race predicate: two accesses that conflict, of different threads, are the last
//! of their threads and neither happens before the other.
//!
//! States need not be enumerated for it. Two concurrent events are the last of their threads in
//! some state, the one with them and all that happens before either; so there is such a state
//! exactly if happens-before leaves two conflicting accesses unordered. For each variable the first
//! such pair is found: of all that end first in observed order the one that begins first. No
//! smaller state has one on the variable: its accesses would end before or begin before.
//!
//! Costs a binary search for each access and thread; keeps one number per access.
//!
//! Follows Figure 3 and Algorithms 5 and 6 of Chang and Garg (2015). As printed they compare an
//! event with itself too, and take for concurrent whatever is last in two threads, which an edge
//! between the two does not prevent; here clocks decide.

use reweave_base::IndexVec;
use reweave_order::access::{CLASSES, CONFLICTS, class};
use reweave_order::hb::HappensBefore;
use reweave_trace::{EventId, ThreadId, Trace, VarId};

/// Two accesses that conflict and are concurrent, in observed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RacyPair {
    /// What they access.
    pub var: VarId,
    /// The one observed first.
    pub first: EventId,
    /// The other.
    pub second: EventId,
}

/// For each variable with a race its first, in the order of their second accesses.
#[must_use]
pub fn first_races(trace: &Trace) -> Vec<RacyPair> {
    first_races_until(trace, &|| false).0
}

/// `stop` is asked once in so many events.
const EVENTS_BETWEEN: u32 = 1 << 14;

/// As [`first_races`], but ends when `stop` says so; and whether it has seen the whole trace.
pub fn first_races_until(trace: &Trace, stop: &dyn Fn() -> bool) -> (Vec<RacyPair>, bool) {
    let mut order = HappensBefore::new();
    let mut accesses: IndexVec<VarId, Accesses> = IndexVec::new();
    let mut races = Vec::new();
    for (second, event) in trace.events() {
        if second.number() % EVENTS_BETWEEN == 1 && stop() {
            return (races, false);
        }
        let clock = order.advance(trace, second);
        let Some(var) = event.op.var() else { continue };
        let known = accesses.get_or_default(var);
        if known.is_racy {
            continue;
        }
        let class = class(event.op);
        let others = known.threads.iter().filter(|others| others.thread != event.thread);
        let unordered = others.flat_map(|others| {
            let held = clock.get(others.thread);
            CONFLICTS[class].iter().filter_map(move |&class| {
                let events = &others.events[class];
                events.get(events.partition_point(|&access| trace.position(access) < held))
            })
        });
        if let Some(&first) = unordered.min() {
            races.push(RacyPair { var, first, second });
            *known = Accesses { is_racy: true, threads: Vec::new() };
            continue;
        }
        known.of_thread(event.thread)[class].push(second);
    }
    (races, true)
}

/// The accesses of a variable so far.
#[derive(Clone, Debug, Default)]
struct Accesses {
    /// Whether there was a race; then no accesses are kept.
    is_racy: bool,
    threads: Vec<ThreadAccesses>,
}

/// Those of one thread.
#[derive(Clone, Debug)]
struct ThreadAccesses {
    thread: ThreadId,
    /// By what they conflict with.
    events: [Vec<EventId>; CLASSES],
}

impl Accesses {
    fn of_thread(&mut self, thread: ThreadId) -> &mut [Vec<EventId>; CLASSES] {
        let at = self.threads.iter().position(|known| known.thread == thread);
        let at = at.unwrap_or_else(|| {
            self.threads.push(ThreadAccesses { thread, events: Default::default() });
            self.threads.len() - 1
        });
        &mut self.threads[at].events
    }
}
