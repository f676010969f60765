//! Events as sentences name them.

use reweave_trace::{EventId, Op, Trace};

/// What `event` does and where, for a sentence: "`w(x)` at a.c:3".
#[must_use]
pub fn spelled(trace: &Trace, event: EventId) -> String {
    let (names, event) = (trace.names(), trace.event(event));
    format!("`{}`{}", names.spell(event.op), located(names.location(event.site)))
}

/// What the thread of `event`, which is its next, waits for: "T1 waits on `c` at a.c:3".
#[must_use]
pub fn waiting(trace: &Trace, event: EventId) -> String {
    let (names, event) = (trace.names(), trace.event(event));
    let place = located(names.location(event.site));
    let what = match event.op {
        Op::Lock(_, lock) => format!("waits for `{}`", names.locks.name(lock)),
        Op::Thread(_, child) => format!("waits for {} to end", names.threads.name(child)),
        Op::Condition(_, condition) => format!("waits on `{}`", names.conditions.name(condition)),
        Op::Semaphore(_, semaphore) => {
            format!("waits for a post of `{}`", names.semaphores.name(semaphore))
        }
        Op::Barrier(_, barrier) => format!("waits at `{}`", names.barriers.name(barrier)),
        op @ (Op::Access(..) | Op::Fence(_) | Op::Object(..) | Op::Marker(_)) => {
            format!("is before `{}`", names.spell(op))
        }
    };
    format!("{} {what}{place}", names.threads.name(event.thread))
}

/// How a sentence goes on to say where: " at a.c:3", or nothing.
#[must_use]
pub fn located(location: &str) -> String {
    match location.trim() {
        "" => String::new(),
        // A bare number would read as part of the sentence.
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!(" at location {number}")
        }
        location => format!(" at {location}"),
    }
}
