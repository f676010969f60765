//! Why threads wait for ever, and how that is repaired: by what each of them waits for.

use std::collections::BTreeSet;

use reweave_analysis::{Finding, Kind};
use reweave_trace::{BarrierOp, ConditionOp, EndKind, EventId, Op, ThreadId, ThreadOp, Trace};

use super::argument::listed;
use super::fix::at;
use crate::related::{last_take, lock_of_wait, lost_notify};
use crate::standing::is_stuck_at;

/// What a thread waits for that nobody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    /// A lock of each other, in a circle.
    Circle,
    /// A lock that the thread has itself.
    OwnLock,
    /// A lock whose holder has ended.
    Abandoned,
    Lock,
    Notify,
    Post,
    Arrivals,
    /// The ends of each other.
    Ends,
    /// The end of a thread.
    End,
}

impl Wait {
    const fn why(self) -> &'static str {
        match self {
            Self::Circle => {
                "Each of these threads waits for a lock that another of them holds, in a circle. None can go \
                 on, so none ever releases what it holds, and whoever needs one of these locks later waits as \
                 well."
            }
            Self::OwnLock => {
                "The thread asks for a lock that it holds already. Such a lock can be taken once, so the thread \
                 waits for itself to release it, which it never does."
            }
            Self::Abandoned => {
                "The thread that held the lock ended without releasing it. Nobody else can release it, so \
                 whoever asks for it waits for ever."
            }
            Self::Lock => {
                "The lock is held by a thread that never releases it, so whoever asks for it waits for ever."
            }
            Self::Notify => {
                "A notify wakes only threads that are waiting when it comes. Here it comes after a thread has \
                 decided to wait and before it waits: nobody is woken, and no other notify follows."
            }
            Self::Post => {
                "The semaphore is at zero, and no thread is left that posts it: a thread took a token and did \
                 not give one back."
            }
            Self::Arrivals => {
                "A barrier lets its threads go when as many have arrived as it is for. Some never arrive here, so \
                 the others wait for ever."
            }
            Self::Ends => {
                "Each of these threads waits for the end of another of them, so none of them ever ends."
            }
            Self::End => {
                "A thread that waits for the end of a thread that never ends waits for ever as well."
            }
        }
    }
}

/// What each thread of `finding` waits for that is a cause and not only a consequence.
fn waits(trace: &Trace, finding: &Finding) -> BTreeSet<Wait> {
    let ended = trace.run_end().map(|end| end.kind);
    let is_end = finding.events.iter().all(|&event| is_stuck_at(trace, event));
    let mut waits: BTreeSet<Wait> = match ended.filter(|_| is_end) {
        Some(EndKind::Deadlock) => [Wait::Circle].into(),
        Some(EndKind::SelfDeadlock) => [Wait::OwnLock].into(),
        Some(EndKind::AbandonedLock) => [Wait::Abandoned].into(),
        _ => finding.events.iter().filter_map(|&event| wait(trace, event)).collect(),
    };
    // Who waits for a thread to end is stuck because that thread is.
    if waits.len() > 1 {
        waits.remove(&Wait::End);
    } else if waits.contains(&Wait::End) && is_among_themselves(trace, &finding.events) {
        waits = [Wait::Ends].into();
    }
    waits
}

/// Whether each of the threads that `events` are of waits for another of these to end.
fn is_among_themselves(trace: &Trace, events: &[EventId]) -> bool {
    let thread = |event: EventId| trace.event(event).thread;
    let is_in = |&event: &EventId| {
        let awaited = awaited(trace, event);
        awaited.is_some_and(|it| {
            it != thread(event) && events.iter().any(|&other| thread(other) == it)
        })
    };
    events.iter().all(is_in)
}

/// The thread for whose end `event` waits.
fn awaited(trace: &Trace, event: EventId) -> Option<ThreadId> {
    if let Op::Thread(ThreadOp::Join, child) = trace.event(event).op {
        return Some(child);
    }
    let name = state(trace, event)?.strip_prefix("waits for ")?.strip_suffix(" to end")?;
    trace.names().threads.entries().find(|&(_, other)| other == name).map(|(thread, _)| thread)
}

/// What the recorder said of the thread of `event`, which was stuck there when the run ended.
pub fn state(trace: &Trace, event: EventId) -> Option<&str> {
    let end = trace.run_end()?;
    end.threads.iter().find(|thread| thread.event == event).map(|thread| &*thread.state)
}

fn wait(trace: &Trace, event: EventId) -> Option<Wait> {
    match trace.event(event).op {
        Op::Lock(..) => Some(Wait::Lock),
        Op::Condition(ConditionOp::Wait | ConditionOp::Wake | ConditionOp::Timeout, _) => {
            Some(Wait::Notify)
        }
        Op::Semaphore(..) => Some(Wait::Post),
        Op::Barrier(BarrierOp::Arrive | BarrierOp::Depart, _) => Some(Wait::Arrivals),
        Op::Thread(ThreadOp::Join, _) => Some(Wait::End),
        // Of a call that did not return the trace has what the recorder said of it.
        Op::Marker(_) | Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
            match state(trace, event)?.strip_prefix("waits ")? {
                state if state.ends_with(" to end") => Some(Wait::End),
                state if state.starts_with("for lock") => Some(Wait::Lock),
                state if state.starts_with("for semaphore") => Some(Wait::Post),
                _ => None,
            }
        }
        Op::Access(..) | Op::Fence(_) | Op::Object(..) | Op::Thread(ThreadOp::Fork, _) => None,
    }
}

/// Why the threads of `finding` wait for ever.
pub fn why(trace: &Trace, finding: &Finding) -> Vec<String> {
    let waits = waits(trace, finding);
    if waits.is_empty() {
        return Kind::Stuck.info().why.iter().map(|&paragraph| paragraph.to_owned()).collect();
    }
    waits.into_iter().map(|wait| wait.why().to_owned()).collect()
}

/// What usually repairs `finding`.
pub fn fix(trace: &Trace, finding: &Finding) -> Vec<String> {
    let waits = waits(trace, finding);
    let mut fixes = Vec::new();
    for wait in waits {
        match wait {
            Wait::Circle => fixes.push(
                "The usual fix is to take these locks in the same order everywhere, or to take one lock \
                 around both, or to give up what is held when the next lock cannot be had (try-lock)."
                    .to_owned(),
            ),
            Wait::OwnLock => fixes.push(
                "The usual fix is to release the lock before the call that takes it again, or to give the \
                 function that is called a variant for callers that hold the lock. A recursive lock works \
                 too, but hides who holds it."
                    .to_owned(),
            ),
            Wait::Abandoned | Wait::Lock => fixes.push(
                "The usual fix is to release the lock on every way out, also out of errors: `std::lock_guard` \
                 in C++ and the guards of Rust do so by themselves."
                    .to_owned(),
            ),
            Wait::Notify => fixes.extend(notify(trace, finding)),
            Wait::Post => fixes.extend(post(trace, finding)),
            Wait::Arrivals => fixes.push(
                "The usual fix is to let as many threads arrive at the barrier as it was made for, on every \
                 way through them."
                    .to_owned(),
            ),
            Wait::Ends | Wait::End => fixes.push(
                "The usual fix is one thread that waits for the others, and none that waits for it: no thread \
                 may wait for the end of one that waits for its own."
                    .to_owned(),
            ),
        }
    }
    if fixes.is_empty() {
        fixes.push(Kind::Stuck.info().fix.to_owned());
    }
    fixes
}

/// How to wait so that no notify is lost.
fn notify(trace: &Trace, finding: &Finding) -> Vec<String> {
    let names = trace.names();
    let mut fixes: Vec<String> = Vec::new();
    for &event in &finding.events {
        let Some(notify) = lost_notify(trace, event) else { continue };
        let Some(lock) = lock_of_wait(trace, event) else { continue };
        let [waiter, notifier] =
            [event, notify].map(|event| names.threads.name(trace.event(event).thread));
        let mut held = trace.sections().held(trace.event(notify).thread, notify);
        let (name, place) = (names.locks.name(lock), at(trace, notify));
        fixes.push(if held.any(|section| section.lock == lock) {
            format!(
                "{notifier} holds `{name}` when it notifies at {place}, so {waiter} either waits already or has \
                 yet to look. The usual fix is to let {waiter} look right before it waits, under `{name}` and \
                 in a loop: `while (!ready) wait`; and to set what it looks at under `{name}` before the \
                 notify."
            )
        } else {
            format!(
                "{notifier} notifies at {place} without `{name}`, so the notify can come after {waiter} has \
                 looked and before it waits. The usual fix is to take `{name}` there, and to change under it \
                 what {waiter} looks at before it waits, in a loop: `while (!ready) wait`."
            )
        });
    }
    if fixes.is_empty() {
        fixes.push(
            "The usual fix is to wait in a loop over a condition that is changed under the same lock, so that a \
             notify before the wait is not needed."
                .to_owned(),
        );
    }
    fixes.dedup();
    fixes
}

/// Who is to post.
fn post(trace: &Trace, finding: &Finding) -> Vec<String> {
    let names = trace.names();
    let takes = finding.events.iter().filter_map(|&event| last_take(trace, finding, event));
    let takes = takes.map(|take| {
        let thread = names.threads.name(trace.event(take).thread);
        format!("{thread} takes one at {}", at(trace, take))
    });
    let takes: Vec<String> = takes.collect();
    let takes = match &takes[..] {
        [] => String::new(),
        takes => {
            let takes: Vec<&str> = takes.iter().map(String::as_str).collect();
            format!(": {}", listed(&takes))
        }
    };
    vec![format!(
        "The usual fix is to post the semaphore on every way out of the code that took a token of it, also where \
         it returns early{takes}."
    )]
}
