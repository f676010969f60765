//! One event of a finding, with what a reader needs to place it.

use std::borrow::Cow;

use reweave_trace::views::Mode;
use reweave_trace::{EventId, Trace};

/// `location` for people: a bare number says what it is.
pub(crate) fn place(location: &str) -> Cow<'_, str> {
    let location = location.trim();
    let is_number = !location.is_empty() && location.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Cow::Owned(format!("location {location}")) } else { Cow::Borrowed(location) }
}

/// An event in words.
#[derive(Clone, Debug)]
pub(crate) struct Site<'t> {
    pub(crate) number: u32,
    pub(crate) thread: &'t str,
    pub(crate) op: String,
    pub(crate) location: &'t str,
    pub(crate) stack: Vec<&'t str>,
    /// The locks its thread holds when it is about to happen, the oldest first.
    pub(crate) locks: Vec<(&'t str, Mode)>,
}

impl<'t> Site<'t> {
    pub(crate) fn of(trace: &'t Trace, id: EventId) -> Self {
        let (event, names) = (trace.event(id), trace.names());
        let held = trace.sections().held(event.thread, id);
        let mut locks: Vec<_> =
            held.map(|section| (names.locks.name(section.lock), section.mode)).collect();
        locks.reverse();
        Self {
            number: id.number(),
            thread: names.threads.name(event.thread),
            op: names.spell(event.op).to_string(),
            location: names.location(event.site),
            stack: names.stack(event.site).collect(),
            locks,
        }
    }

    /// Where it is, for people; empty if that is not known.
    pub(crate) fn place(&self) -> Cow<'t, str> {
        place(self.location)
    }

    /// `holding m, n (shared)` or `holding no lock`.
    pub(crate) fn holding(&self) -> String {
        if self.locks.is_empty() {
            return "holding no lock".to_owned();
        }
        let lock = |&(name, mode): &(&str, Mode)| match mode {
            Mode::Exclusive => name.to_owned(),
            Mode::Shared => format!("{name} (shared)"),
        };
        format!("holding {}", self.locks.iter().map(lock).collect::<Vec<_>>().join(", "))
    }
}
