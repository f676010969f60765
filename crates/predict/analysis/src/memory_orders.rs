//! Which memory orders are too weak: why do atomics that lead from one access to the other not order
//! them?
//!
//! From the later access back to the earlier one there is a way through reads and the writes that they
//! saw. Where both are atomic, the write has to release and the read has to acquire, by their own
//! orders or by fences. Within a release sequence, which read-modify-writes continue, only its ends do.

use reweave_order::mhb::MustHappenBefore;
use reweave_trace::{EventId, MemoryOrder, Op, Trace};

use crate::WeakAccess;

/// How many events are looked at on the way back.
const LOOKS_MAX: usize = 100_000;

/// The atomic accesses between `first` and `second` that would have to be stronger for the two to be
/// ordered, in observed order; empty if no atomics lead from one to the other.
#[must_use]
pub fn too_weak(
    trace: &Trace,
    mhb: &MustHappenBefore<'_>,
    first: EventId,
    second: EventId,
) -> Vec<WeakAccess> {
    let (early, late) = (first.min(second), first.max(second));
    let way = way(trace, mhb, early, late);
    let mut weak: Vec<WeakAccess> = Vec::new();
    for (at, &Hop { from: write, to: read, is_atomic }) in way.iter().enumerate() {
        if !is_atomic {
            continue;
        }
        // Where the way comes into the thread of the write, and where it leaves that of the read.
        let before = at.checked_sub(1).map(|before| way[before]);
        let after = way.get(at + 1);
        let is_continued = before.is_some_and(|hop| hop.is_atomic && hop.to == write);
        if !is_continued && !is_released(trace, before.map_or(early, |hop| hop.to), write) {
            add(trace, &mut weak, write, MemoryOrder::Release);
        }
        let continues = after.is_some_and(|hop| hop.is_atomic && hop.from == read);
        if !continues && !is_acquired(trace, read, after.map_or(late, |hop| hop.from)) {
            add(trace, &mut weak, read, MemoryOrder::Acquire);
        }
    }
    weak
}

fn order(trace: &Trace, event: EventId) -> MemoryOrder {
    match trace.event(event).op {
        Op::Access(access, _) => access.order().unwrap_or_default(),
        _ => MemoryOrder::default(),
    }
}

fn add(trace: &Trace, weak: &mut Vec<WeakAccess>, event: EventId, needed: MemoryOrder) {
    let present = order(trace, event);
    let has_other_half = match needed {
        MemoryOrder::Release => present.acquires(),
        _ => present.releases(),
    };
    let needed = if has_other_half { MemoryOrder::AcqRel } else { needed };
    match weak.iter_mut().find(|it| it.event == event) {
        Some(it) => it.needed = MemoryOrder::AcqRel,
        None => weak.push(WeakAccess { event, needed }),
    }
}

/// Whether `write` releases what comes from `start`, by itself or by a fence of its thread in between.
fn is_released(trace: &Trace, start: EventId, write: EventId) -> bool {
    let is_fence = |id: EventId| matches!(trace.event(id).op, Op::Fence(it) if it.releases());
    order(trace, write).releases() || between(trace, start, write).any(is_fence)
}

/// Whether `read` acquires for what goes to `end`, by itself or by a fence of its thread in between.
fn is_acquired(trace: &Trace, read: EventId, end: EventId) -> bool {
    let is_fence = |id: EventId| matches!(trace.event(id).op, Op::Fence(it) if it.acquires());
    order(trace, read).acquires() || between(trace, read, end).any(is_fence)
}

/// The events between `from` and `to`, which are of one thread.
fn between(trace: &Trace, from: EventId, to: EventId) -> impl Iterator<Item = EventId> {
    let events = trace.thread_events(trace.event(from).thread);
    let start = trace.position(from) as usize + 1;
    events[start..].iter().copied().take_while(move |&id| id < to)
}

/// A step from an event of one thread to one of another that needs it.
#[derive(Clone, Copy, Debug)]
struct Hop {
    from: EventId,
    to: EventId,
    /// Whether an atomic read sees an atomic write.
    is_atomic: bool,
}

/// The way from `early` to `late`, if one is found: the nearest step back each time, which is what the
/// programmer meant to wait for.
fn way(trace: &Trace, mhb: &MustHappenBefore<'_>, early: EventId, late: EventId) -> Vec<Hop> {
    let (thread, time) = (trace.event(early).thread, trace.position(early) + 1);
    let is_after = |event: EventId| mhb.past(event).get(thread) >= time;
    let mut way = Vec::new();
    let (mut at, mut looks) = (late, 0);
    'back: while trace.event(at).thread != thread {
        let events = trace.thread_events(trace.event(at).thread);
        let last = trace.position(at) as usize;
        // What the later access itself sees does not count.
        let from = if at == late { last } else { last + 1 };
        for &event in events[..from].iter().rev() {
            looks += 1;
            if looks > LOOKS_MAX {
                break 'back;
            }
            let mut causes = Vec::from_iter(trace.writer(event));
            mhb.for_each_signal(event, |cause| causes.push(cause));
            if trace.position(event) == 0 {
                causes.extend(trace.lifetime(trace.event(event).thread).fork);
            }
            let Some(cause) = causes.into_iter().find(|&cause| is_after(cause)) else { continue };
            let is_atomic = [event, cause].iter().all(|&id| trace.event(id).op.is_atomic());
            way.push(Hop { from: cause, to: event, is_atomic });
            at = cause;
            continue 'back;
        }
        break;
    }
    if trace.event(at).thread != thread {
        return Vec::new();
    }
    way.reverse();
    way
}
