//! Events as sentences name them.

use reweave_trace::{EventId, Trace};

/// What `event` does and where, for a sentence: "`w(x)` at a.c:3".
#[must_use]
pub fn spelled(trace: &Trace, event: EventId) -> String {
    let (names, event) = (trace.names(), trace.event(event));
    format!("`{}`{}", names.spell(event.op), located(names.location(event.site)))
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
