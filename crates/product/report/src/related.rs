//! Events that a finding is about besides those at fault: the notify that is lost, the write that a read
//! saw, the atomics that do not order. A reader needs their code to see what is wrong.

use reweave_analysis::{Detail, Finding, Kind, Proof};
use reweave_trace::{
    EventId, Goal, LockId, LockOp, Marker, Op, Reordering, SemaphoreId, SemaphoreOp, Trace,
};

use crate::schedule::prefix_of;

/// How many are named.
const RELATED_MAX: usize = 4;

/// How far back in a thread the begin of a block is looked for, or a take.
const BACK_MAX: usize = 100_000;

/// An event that a finding is about, and what it has to do with it, in a few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    pub event: EventId,
    pub what: String,
}

/// What `finding` is about besides its own events, each event once.
pub fn related(trace: &Trace, finding: &Finding) -> Vec<Related> {
    let mut all: Vec<Related> = Vec::new();
    let mut push = |event: EventId, what: &str| {
        let is_new = !finding.events.contains(&event) && all.iter().all(|it| it.event != event);
        if is_new && all.len() < RELATED_MAX {
            all.push(Related { event, what: what.to_owned() });
        }
    };
    if let Detail::MemoryOrders(weak) = &finding.detail {
        weak.iter().for_each(|it| push(it.event, "does not order the two"));
    }
    if let Some(detail) = finding.detail.nondeterminism() {
        detail.writer.into_iter().for_each(|it| push(it, "the write that was seen"));
        detail
            .interfering
            .into_iter()
            .for_each(|it| push(it, "the write that can be seen instead"));
    }
    match (finding.kind, finding.evidence.proof().map(Proof::goal)) {
        (Kind::Stuck, Some(Goal::Stuck(events))) => {
            for &event in events {
                let notify = lost_notify(trace, event);
                if let Some(notify) = notify.filter(|&it| is_run(trace, finding, it)) {
                    push(notify, "nobody waits yet when this notifies");
                }
                if let Some(take) = last_take(trace, finding, event) {
                    push(take, "takes the last token");
                }
            }
        }
        (Kind::Atomicity, _) => {
            let begin = finding.events.first().and_then(|&event| block_begin(trace, event));
            begin.into_iter().for_each(|it| push(it, "the block begins"));
        }
        _ => {}
    }
    all
}

/// Whether the schedule of `finding` runs `event`.
fn is_run(trace: &Trace, finding: &Finding, event: EventId) -> bool {
    finding.evidence.proof().map(Proof::reordering).is_some_and(|reordering| {
        trace.is_in_prefix(reordering, event) || reordering.schedule.contains(&event)
    })
}

/// The notify that woke the wait that `event` ends, which a schedule has before the wait.
pub fn lost_notify(trace: &Trace, event: EventId) -> Option<EventId> {
    trace.signals().wait_interval(event)?.notify
}

/// The lock that the wait which `event` ends gives up, where it is known.
pub fn lock_of_wait(trace: &Trace, event: EventId) -> Option<LockId> {
    let interval = trace.signals().wait_interval(event)?;
    match trace.event(interval.begin).op {
        Op::Lock(LockOp::Release | LockOp::ReleaseShared, lock) => Some(lock),
        _ => None,
    }
}

/// The last take of the semaphore that `event` waits for, in the schedule of `finding`.
pub fn last_take(trace: &Trace, finding: &Finding, event: EventId) -> Option<EventId> {
    let Op::Semaphore(SemaphoreOp::Take, semaphore) = trace.event(event).op else { return None };
    let reordering = finding.evidence.proof()?.reordering();
    take_in(trace, reordering, semaphore)
}

fn take_in(trace: &Trace, reordering: &Reordering, semaphore: SemaphoreId) -> Option<EventId> {
    let is_take =
        |event: &EventId| trace.event(*event).op == Op::Semaphore(SemaphoreOp::Take, semaphore);
    let scheduled = reordering.schedule.iter().rev().copied().find(is_take);
    // The prefix runs in observed order.
    let last = |thread| {
        let run = prefix_of(trace, reordering, thread).iter().rev().take(BACK_MAX);
        run.copied().find(is_take)
    };
    scheduled.or_else(|| reordering.base.ids().filter_map(last).max())
}

/// Where the innermost block begins that `event` is in.
pub fn block_begin(trace: &Trace, event: EventId) -> Option<EventId> {
    let before = &trace.thread_events(trace.event(event).thread)[..trace.position(event) as usize];
    let mut depth = 0_u32;
    for &event in before.iter().rev().take(BACK_MAX) {
        match trace.event(event).op {
            Op::Marker(Marker::End(_)) => depth += 1,
            Op::Marker(Marker::Begin(_)) if depth == 0 => return Some(event),
            Op::Marker(Marker::Begin(_)) => depth -= 1,
            _ => {}
        }
    }
    None
}
