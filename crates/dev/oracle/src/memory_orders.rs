//! Happens-before of one order of events, by the memory orders of C++20, pair by pair.
//!
//! A *release point* of an atomic write is the write itself, if it releases, and each release fence
//! of its thread before it. An *acquire point* of an atomic read is the read, if it acquires, and each
//! acquire fence of its thread after it. The *release sequence* that a read sees is the atomic write
//! that it saw and, while that is a read-modify-write, the atomic write that this saw. Every release
//! point of that sequence comes before every acquire point of the read.
//!
//! More than that: an atomic write also has the earlier ones of its thread to the same variable as release
//! points, if they release, as in C11; a read comes after the write that it saw, unless both are atomic; a
//! take comes after all posts before it; a wake after its notify, and that after the begin of the wait.
//!
//! Follows N4861, 6.9.2.1 (data races) and 31.11 (fences).

use std::collections::BTreeSet;

use reweave_trace::{
    AccessOp, BarrierOp, EventId, LockOp, MemoryOrder, ObjectOp, Op, SemaphoreOp, ThreadId,
    ThreadOp, Trace,
};

use crate::observed::Observed;
use crate::relation::close;
use crate::reordering::Definition;

/// Whether happens-before of `schedule` puts one of two accesses before the other. That the later one
/// sees the earlier makes no order by itself.
#[must_use]
pub fn is_ordered(
    observed: &Observed<'_>,
    schedule: &[EventId],
    first: EventId,
    second: EventId,
) -> bool {
    let place = |event| schedule.iter().position(|&other| other == event);
    let (Some(one), Some(other)) = (place(first), place(second)) else { return false };
    let (early, late) = (one.min(other), one.max(other));
    let before = happens_before(observed, schedule);
    let run = Run { observed, schedule };
    let is_last_edge = |from: usize| {
        let is_sight = run.seen(late) == Some(from) && run.thread(from) != run.thread(late);
        synchronizes(&run, from, late) || run.is_edge(from, late) && !is_sight
    };
    (early..late).any(|from| (from == early || before[early][from]) && is_last_edge(from))
}

/// Every pair of conflicting accesses, the one observed first first, that happens-before of some correct
/// reordering leaves unordered; goes through all of them.
#[must_use]
pub fn unordered_pairs(trace: &Trace) -> Vec<(EventId, EventId)> {
    unordered_pairs_of(trace, Op::conflicts_with)
}

/// The same of pairs of which `is_pair` holds, whichever of the two is first.
pub(crate) fn unordered_pairs_of(
    trace: &Trace,
    is_pair: impl Fn(Op, Op) -> bool,
) -> Vec<(EventId, EventId)> {
    let (definition, observed) = (Definition::new(trace), Observed::new(trace));
    let mut pairs = BTreeSet::new();
    let mut schedules = vec![Vec::new()];
    while let Some(schedule) = schedules.pop() {
        for event in observed.ids().filter(|event| !schedule.contains(event)) {
            let mut longer = schedule.clone();
            longer.push(event);
            if !definition.is_correct(&longer) {
                continue;
            }
            for &other in &schedule {
                let (left, right) = (observed.event(other), observed.event(event));
                if left.thread != right.thread
                    && is_pair(left.op, right.op)
                    && !is_ordered(&observed, &longer, other, event)
                {
                    pairs.insert((other.max(event), other.min(event)));
                }
            }
            schedules.push(longer);
        }
    }
    pairs.into_iter().map(|(second, first)| (first, second)).collect()
}

/// `relation[early][late]`, by the places in `schedule`.
fn happens_before(observed: &Observed<'_>, schedule: &[EventId]) -> Vec<Vec<bool>> {
    let run = Run { observed, schedule };
    let places = 0..schedule.len();
    let edges = places.clone().map(|early| {
        let is_edge =
            |late| early < late && (run.is_edge(early, late) || synchronizes(&run, early, late));
        places.clone().map(is_edge).collect()
    });
    let mut relation: Vec<Vec<bool>> = edges.collect();
    close(&mut relation);
    relation
}

/// Events in some order, by their places in it.
pub(crate) trait Sequence {
    fn op(&self, place: usize) -> Op;
    fn thread(&self, place: usize) -> ThreadId;
    /// The place of the last write before `place` to the variable that is accessed there.
    fn before(&self, place: usize) -> Option<usize> {
        let var = self.op(place).var()?;
        let writes = |&at: &usize| self.op(at).is_write() && self.op(at).var() == Some(var);
        (0..place).rev().find(writes)
    }

    /// The place of the write that the read at `place` is known to see.
    fn seen(&self, place: usize) -> Option<usize> {
        let op = self.op(place);
        let is_known = op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _));
        self.before(place).filter(|_| is_known)
    }
}

/// The memory order of an atomic access.
fn order(op: Op) -> Option<MemoryOrder> {
    match op {
        Op::Access(
            AccessOp::AtomicRead(order)
            | AccessOp::AtomicWrite(order)
            | AccessOp::AtomicUpdate(order),
            _,
        ) => Some(order),
        _ => None,
    }
}

fn releases(order: MemoryOrder) -> bool {
    !matches!(order, MemoryOrder::Relaxed | MemoryOrder::Acquire)
}

fn acquires(order: MemoryOrder) -> bool {
    !matches!(order, MemoryOrder::Relaxed | MemoryOrder::Release)
}

/// The places of the atomic writes whose release sequence the atomic read at `place` sees.
fn release_sequence(run: &impl Sequence, place: usize) -> Vec<usize> {
    let is_atomic = |write: &usize| order(run.op(*write)).is_some();
    let mut sequence = Vec::new();
    let mut next = run.seen(place).filter(is_atomic);
    while let Some(write) = next {
        sequence.push(write);
        next = run.seen(write).filter(is_atomic);
    }
    sequence
}

/// Whether `early` is a release point, and `late` an acquire point, of an atomic read and one of the
/// writes that it sees.
pub(crate) fn synchronizes(run: &impl Sequence, early: usize, late: usize) -> bool {
    let is_release = |write: usize| match run.op(early) {
        Op::Fence(order) => {
            releases(order) && early < write && run.thread(early) == run.thread(write)
        }
        // Also an earlier one of the same thread and variable.
        op => {
            let is_own = run.thread(early) == run.thread(write) && op.var() == run.op(write).var();
            early <= write && is_own && order(op).is_some_and(|it| op.is_write() && releases(it))
        }
    };
    let is_acquire = |read: usize| match run.op(late) {
        Op::Fence(order) => acquires(order) && run.thread(read) == run.thread(late),
        op => read == late && order(op).is_some_and(acquires),
    };
    let is_atomic_read = |&at: &usize| order(run.op(at)).is_some() && run.op(at).is_read();
    (0..=late)
        .filter(is_atomic_read)
        .filter(|&read| is_acquire(read))
        .any(|read| release_sequence(run, read).into_iter().any(is_release))
}

struct Run<'a> {
    observed: &'a Observed<'a>,
    schedule: &'a [EventId],
}

impl Sequence for Run<'_> {
    fn op(&self, place: usize) -> Op {
        self.observed.event(self.schedule[place]).op
    }

    fn thread(&self, place: usize) -> ThreadId {
        self.observed.event(self.schedule[place]).thread
    }
}

impl Run<'_> {
    /// Whether `early` comes before `late` by anything but atomics and fences.
    fn is_edge(&self, early: usize, late: usize) -> bool {
        if self.thread(early) == self.thread(late) {
            return true;
        }
        let (from, to) = (self.schedule[early], self.schedule[late]);
        match (self.op(early), self.op(late)) {
            (Op::Thread(ThreadOp::Fork, child), Op::Thread(ThreadOp::Join, joined)) => {
                child == joined || child == self.thread(late) || joined == self.thread(early)
            }
            (Op::Thread(ThreadOp::Fork, child), _) if child == self.thread(late) => true,
            (_, Op::Thread(ThreadOp::Join, joined)) => joined == self.thread(early),
            (
                Op::Lock(LockOp::Release, released),
                Op::Lock(LockOp::Acquire | LockOp::AcquireShared, acquired),
            )
            | (Op::Lock(LockOp::ReleaseShared, released), Op::Lock(LockOp::Acquire, acquired)) => {
                released == acquired
            }
            (_, Op::Condition(..)) => self.observed.waits.iter().any(|wait| {
                let is_woken = wait.notify == Some(from) && wait.end == Some(to);
                is_woken || wait.begin == from && wait.notify == Some(to)
            }),
            (Op::Barrier(BarrierOp::Arrive, _), Op::Barrier(..)) => {
                self.observed.arrivals[to.number() as usize - 1].contains(&from)
            }
            (Op::Semaphore(SemaphoreOp::Post, posted), Op::Semaphore(SemaphoreOp::Take, taken)) => {
                posted == taken
            }
            (Op::Object(ObjectOp::Alloc, born), Op::Object(ObjectOp::Free, freed)) => born == freed,
            (written, read) => {
                let is_plain = !(written.is_atomic() && read.is_atomic());
                self.seen(late) == Some(early) && is_plain
            }
        }
    }
}
