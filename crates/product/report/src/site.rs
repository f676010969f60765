//! One event of a finding, with what a reader needs to place it.

use std::borrow::Cow;

use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, Trace};

use crate::shown::{clipped, shown};
use crate::sources::Place;
use crate::stack;

/// `location` for people: a bare number says what it is.
pub(crate) fn place(location: &str) -> Cow<'_, str> {
    let location = location.trim();
    let is_number = !location.is_empty() && location.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Cow::Owned(format!("location {location}")) } else { Cow::Borrowed(location) }
}

/// How long a location gets where it is one of many.
const PLACE_MAX: usize = 32;

/// `location` for people, cut at its start if it is long: `…/src/bank.c:12`. The line of a file is
/// never cut away.
pub(crate) fn brief_place(location: &str) -> String {
    let place = place(location);
    if Place::new(&place).is_none() {
        return clipped(&place, PLACE_MAX);
    }
    let text = shown(&place);
    let count = text.chars().count();
    if count <= PLACE_MAX {
        return text.into_owned();
    }
    let rest = |skipped: usize| text.chars().skip(skipped).collect::<String>();
    // Whole names of folders are left, if anything is left of them.
    let end = rest(count - (PLACE_MAX - 1));
    match end.split_once('/') {
        Some((_, whole)) => format!("…/{whole}"),
        None => format!("…{end}"),
    }
}

/// Where `event` is in the program's own code, as far as that is known.
pub(crate) fn own_place(trace: &Trace, event: EventId) -> &str {
    let (names, site) = (trace.names(), trace.event(event).site);
    let stack: Vec<&str> = names.stack(site).collect();
    stack::own_place(names.location(site), &stack)
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
    pub(crate) fn new(trace: &'t Trace, id: EventId) -> Self {
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

    /// The function that it is in, where that is told.
    pub(crate) fn function(&self) -> Option<&'t str> {
        stack::own_function(self.location, &self.stack)
    }

    /// The calls that led there, without what starts threads.
    pub(crate) fn callers(&self) -> Vec<&'t str> {
        stack::callers(self.location, &self.stack)
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

/// What the thread of `event` holds, with where it took each: `holding m (taken at line 18)`.
pub(crate) fn holding_since(trace: &Trace, event: EventId) -> String {
    let (happening, names) = (trace.event(event), trace.names());
    let own = Place::new(names.location(happening.site));
    let held: Vec<_> = trace.sections().held(happening.thread, event).collect();
    let lock = |section: &&CriticalSection| {
        let location = names.location(trace.event(section.acquire).site);
        let taken = Place::new(location).map(|place| match own {
            Some(own) if own.file == place.file => format!("taken at line {}", place.line),
            _ => format!("taken at {}", location.trim()),
        });
        let shared = (section.mode == Mode::Shared).then(|| "shared".to_owned());
        let notes: Vec<String> = shared.into_iter().chain(taken).collect();
        let name = names.locks.name(section.lock);
        match notes.is_empty() {
            true => name.to_owned(),
            false => format!("{name} ({})", notes.join(", ")),
        }
    };
    match held.is_empty() {
        true => "holding no lock".to_owned(),
        false => {
            format!("holding {}", held.iter().rev().map(lock).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_cut_at_the_start_and_keep_their_line() {
        assert_eq!(brief_place("bank.c:12"), "bank.c:12");
        assert_eq!(brief_place("17"), "location 17");
        let long = "/srv/build/projects/ledger/src/bank/transfer.c:1234";
        assert_eq!(brief_place(long), "…/src/bank/transfer.c:1234");
        let name = format!("{}.c:1234", "x".repeat(60));
        let brief = brief_place(&name);
        assert!(brief.starts_with('…') && brief.ends_with("x.c:1234"), "{brief}");
        assert_eq!(brief.chars().count(), PLACE_MAX);
    }
}
