//! Why one event came before another when they were observed: a chain of happens-before.
//!
//! The question: what put `first` before `second`? The idea: one pass over the events between the two
//! keeps, for each thread, its earliest event that comes after `first`, and by which edge. A thread is
//! reached once, so the chain passes each at most once.
//!
//! Promised: every link is an edge of happens-before, and a chain is found exactly if the order holds.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{
    AccessOp, ConditionOp, EventId, LockId, LockOp, ObjectId, ObjectOp, Op, SemaphoreOp, ThreadId,
    ThreadOp, Trace,
};

/// What an edge between two threads is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A lock was released, then acquired.
    Lock(LockId),
    /// A thread was started.
    Start,
    /// A thread ended, and another waited for that.
    End,
    /// A thread was started that ran nothing, and another waited for its end.
    Empty(ThreadId),
    /// A notify woke a thread that waited.
    Notify,
    /// Threads met at a barrier.
    Barrier,
    /// A semaphore was posted, then taken.
    Semaphore,
    /// What an atomic write or a fence released was acquired.
    Atomic,
    /// An object was born, then ended.
    Life,
}

/// An edge from an event of one thread to one of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    pub from: EventId,
    pub to: EventId,
    pub link: Link,
}

/// The edges between threads that lead from `first` to `second`, which was observed later in another
/// thread; from one to the next it is the order of a thread. None if happens-before leaves the two
/// unordered.
pub fn path(trace: &Trace, first: EventId, second: EventId) -> Option<Vec<Hop>> {
    let entries = IndexVec::from_elem(None, trace.names().threads.len());
    let mut search =
        Search { trace, entries, released: FxHashMap::default(), born: FxHashMap::default() };
    search.entries[trace.event(first).thread] = Some(Entry { event: first, by: None });
    for number in first.number()..=second.number() {
        search.step(trace.numbered(number)?);
    }
    search.back_from(trace.event(second).thread)
}

/// How a thread was reached.
#[derive(Clone, Copy, Debug)]
struct Entry {
    event: EventId,
    by: Option<(EventId, Link)>,
}

struct Search<'t> {
    trace: &'t Trace,
    entries: IndexVec<ThreadId, Option<Entry>>,
    /// Of each lock the first release that was reached: of one that had it alone, and any.
    released: FxHashMap<LockId, [Option<EventId>; 2]>,
    born: FxHashMap<ObjectId, EventId>,
}

impl Search<'_> {
    fn step(&mut self, event: EventId) {
        let happening = self.trace.event(event);
        // A thread is entered once, at its earliest event: later edges into it add nothing.
        if self.entries[happening.thread].is_none() {
            let Some(by) = self.edge_to(event) else { return };
            self.entries[happening.thread] = Some(Entry { event, by: Some(by) });
        }
        // One that leaves the lock held, since it was taken more than once, hands nothing over.
        let mut held = self.trace.sections().held(happening.thread, event);
        match happening.op {
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, _)
                if held.all(|section| section.release != Some(event)) => {}
            Op::Lock(LockOp::Release, lock) => {
                let [alone, any] = self.released.entry(lock).or_default();
                alone.get_or_insert(event);
                any.get_or_insert(event);
            }
            Op::Lock(LockOp::ReleaseShared, lock) => {
                _ = self.released.entry(lock).or_default()[1].get_or_insert(event);
            }
            Op::Object(ObjectOp::Alloc, object) => _ = self.born.insert(object, event),
            _ => {}
        }
    }

    /// An edge from an event that was reached to `event`, whose thread was not.
    fn edge_to(&self, event: EventId) -> Option<(EventId, Link)> {
        let (trace, happening) = (self.trace, self.trace.event(event));
        let reached = |source: EventId| self.is_reached(source).then_some(source);
        // Any event of a thread comes after its fork, so this edge needs no operation of its own.
        let fork = trace.lifetime(happening.thread).fork.and_then(reached);
        if let Some(fork) = fork {
            return Some((fork, Link::Start));
        }
        let signals = trace.signals();
        let released = |lock: LockId| self.released.get(&lock).copied().unwrap_or_default();
        match happening.op {
            Op::Lock(LockOp::Acquire, lock) => {
                // An exclusive acquire comes after every release, shared ones too.
                released(lock)[1].map(|from| (from, Link::Lock(lock)))
            }
            Op::Lock(LockOp::AcquireShared, lock) => {
                // Shared sections do not order each other.
                released(lock)[0].map(|from| (from, Link::Lock(lock)))
            }
            Op::Thread(ThreadOp::Join, child) => {
                let life = trace.lifetime(child);
                let ends = life.last.and_then(reached).map(|from| (from, Link::End));
                // A thread that ran nothing ended when it was started.
                let start = || Some((life.fork.and_then(reached)?, Link::Empty(child)));
                ends.or_else(start)
            }
            Op::Condition(ConditionOp::Wake, _) => {
                let notify = signals.wait_interval(event)?.notify.and_then(reached)?;
                Some((notify, Link::Notify))
            }
            Op::Barrier(..) => {
                let generation = signals.generation(signals.needed_generation(event)?);
                let arrival = generation.arrivals.iter().copied().find_map(reached)?;
                Some((arrival, Link::Barrier))
            }
            Op::Semaphore(SemaphoreOp::Take, _) => {
                Some((signals.post(event).and_then(reached)?, Link::Semaphore))
            }
            Op::Access(AccessOp::AtomicRead(_) | AccessOp::AtomicUpdate(_), _) | Op::Fence(_) => {
                let mut releases = trace.synchronization().acquired(event).iter().copied();
                releases.find_map(reached).map(|from| (from, Link::Atomic))
            }
            Op::Object(ObjectOp::Free, object) => {
                self.born.get(&object).map(|&birth| (birth, Link::Life))
            }
            _ => None,
        }
    }

    fn is_reached(&self, event: EventId) -> bool {
        let entry = self.entries[self.trace.event(event).thread];
        entry.is_some_and(|entry| entry.event <= event)
    }

    fn back_from(&self, thread: ThreadId) -> Option<Vec<Hop>> {
        let mut hops = Vec::new();
        let mut entry = self.entries[thread]?;
        while let Some((from, link)) = entry.by {
            hops.push(Hop { from, to: entry.event, link });
            entry = self.entries[self.trace.event(from).thread]?;
        }
        hops.reverse();
        Some(hops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_oracle::hb::{is_edge, order};
    use reweave_testkit::generate::{Shape, random};

    fn check_chain(trace: &Trace, first: EventId, second: EventId, hops: &[Hop]) {
        let thread = |event: EventId| trace.event(event).thread;
        let mut at = first;
        for hop in hops {
            assert!(thread(hop.from) == thread(at) && at <= hop.from, "{hop:?}");
            assert!(thread(hop.from) != thread(hop.to) && hop.from < hop.to, "{hop:?}");
            assert!(is_edge(trace, hop.from, hop.to), "{hop:?}");
            at = hop.to;
        }
        assert!(thread(at) == thread(second) && at <= second);
    }

    #[test]
    fn chains_are_of_edges_and_there_is_one_exactly_if_the_order_holds() {
        let (mut ordered, mut unordered) = (0, 0);
        let shapes =
            Shape::ALL.into_iter().flat_map(|(_, shape)| (0..30).map(move |it| (shape, it)));
        for (shape, seed) in shapes {
            let trace = random(shape.events(24), seed);
            let order = order(&trace);
            let ids: Vec<EventId> = trace.events().map(|(id, _)| id).collect();
            for &second in &ids {
                for &first in ids.iter().filter(|&&first| first < second) {
                    if trace.event(first).thread == trace.event(second).thread {
                        continue;
                    }
                    let found = path(&trace, first, second);
                    assert_eq!(found.is_some(), order.is_before(first, second));
                    match found {
                        Some(hops) => {
                            check_chain(&trace, first, second, &hops);
                            ordered += 1;
                        }
                        None => unordered += 1,
                    }
                }
            }
        }
        assert!(ordered > 1000 && unordered > 1000);
    }
}
