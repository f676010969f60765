//! Events as sentences name them.

use reweave_trace::{EventId, Trace};

/// What `event` does and where, for a sentence: "`w(x)` at a.c:3".
#[must_use]
pub fn spelled(trace: &Trace, event: EventId) -> String {
    let (names, event) = (trace.names(), trace.event(event));
    let (op, location) = (names.spell(event.op), names.location(event.site).trim());
    match location {
        "" => format!("`{op}`"),
        // A bare number would read as part of the sentence.
        _ if location.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("`{op}` at location {location}")
        }
        _ => format!("`{op}` at {location}"),
    }
}
