//! How the run went as a whole: for each thread how busy it was when, so that a page can show where
//! in the run a finding is.
//!
//! The run is cut into as many parts of equal length as fit a line of a page, however long it is, so
//! an overview takes one pass over the trace and a few kilobytes.

use reweave_base::Id as _;
use reweave_trace::{ThreadId, Trace};
use serde::Serialize;

/// How many parts a run is cut into at most.
const PARTS_MAX: usize = 120;

/// How many threads have a line of their own at most.
const THREADS_MAX: usize = 48;

/// How many shades there are, the lightest for at least one event.
const SHADES: u64 = 9;

/// How busy a run was when.
#[derive(Debug, Serialize)]
pub(super) struct Overview {
    /// How many events it has.
    events: usize,
    /// How many threads.
    threads_count: usize,
    /// All threads together: a digit for each part, from 0 for no event to 9 for as many as in any.
    all: String,
    /// The first threads, each likewise.
    threads: Vec<Lane>,
}

/// One thread of an overview.
#[derive(Debug, Serialize)]
struct Lane {
    number: usize,
    name: String,
    activity: String,
}

impl Overview {
    /// The overview of `trace`; none if nothing happened in it.
    pub(super) fn new(trace: &Trace) -> Option<Self> {
        let events = trace.len();
        if events == 0 {
            return None;
        }
        let parts = events.min(PARTS_MAX);
        let names = &trace.names().threads;
        let mut all = vec![0_u64; parts];
        let mut each = vec![vec![0_u64; parts]; names.len().min(THREADS_MAX)];
        for (id, event) in trace.events() {
            let part = id.index() * parts / events;
            all[part] += 1;
            if let Some(counts) = each.get_mut(event.thread.index()) {
                counts[part] += 1;
            }
        }
        let lanes = names.entries().zip(&each).map(|((thread, name), counts)| Lane {
            number: thread.index(),
            name: called(trace, thread, name),
            activity: shades(counts, counts.iter().copied().max().unwrap_or(0)),
        });
        let most = all.iter().copied().max().unwrap_or(0);
        Some(Self {
            events,
            threads_count: names.len(),
            all: shades(&all, most),
            threads: lanes.collect(),
        })
    }
}

/// The `name` of `thread`, with what the program calls it.
fn called(trace: &Trace, thread: ThreadId, name: &str) -> String {
    match trace.names().given_name(thread) {
        Some(given) => format!("{name} {given}"),
        None => name.to_owned(),
    }
}

/// A digit for each of `counts`, of which `most` is the largest.
fn shades(counts: &[u64], most: u64) -> String {
    let shade = |&count: &u64| char::from(b'0' + (count * SHADES).div_ceil(most.max(1)) as u8);
    counts.iter().map(shade).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_cut_into_parts_and_every_event_shows() {
        let trace = reweave_testkit::std("T1|w(x)|1\nT1|w(x)|2\nT2|w(y)|3\n");
        let overview = Overview::new(&trace).unwrap();
        assert_eq!((overview.events, &*overview.all), (3, "999"));
        let lanes: Vec<&str> = overview.threads.iter().map(|lane| &*lane.activity).collect();
        assert_eq!(lanes, ["990", "009"]);
        let long = "T1|w(x)|1\n".repeat(999) + "T2|w(y)|2\n";
        let overview = Overview::new(&reweave_testkit::std(&long)).unwrap();
        assert_eq!(overview.all.len(), PARTS_MAX);
        assert!(overview.threads[1].activity.ends_with("09"));
        assert_eq!(shades(&[0, 1, 1_000], 1_000), "019");
        assert!(Overview::new(&reweave_testkit::std("")).is_none());
    }
}
