//! One event of a finding, with what a reader needs to place it.

use reweave_trace::views::Mode;
use reweave_trace::{EventId, Trace};

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
