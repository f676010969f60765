//! An event at fault, as JSON reports tell of it.

use reweave_trace::views::Mode;
use reweave_trace::{EventId, Trace};
use serde::Serialize;

use crate::site::Site;
use crate::sources::Place;

#[derive(Serialize)]
pub(super) struct SiteEntry<'a> {
    event: u32,
    thread: &'a str,
    op: String,
    location: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stack: Vec<&'a str>,
    locks: Vec<&'a str>,
    /// The same once more with how each is held.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held: Vec<HeldEntry<'a>>,
}

/// A lock that a thread holds.
#[derive(Serialize)]
struct HeldEntry<'a> {
    lock: &'a str,
    mode: &'static str,
}

impl<'a> SiteEntry<'a> {
    pub(super) fn new(trace: &'a Trace, event: EventId) -> Self {
        let site = Site::new(trace, event);
        let place = Place::new(site.location);
        let held = |&(lock, mode): &(&'a str, Mode)| HeldEntry { lock, mode: mode.as_str() };
        Self {
            event: site.number,
            thread: site.thread,
            location: site.location,
            function: site.function(),
            file: place.map(|place| place.file),
            line: place.map(|place| place.line),
            column: place.and_then(|place| place.column),
            locks: site.locks.iter().map(|&(name, _)| name).collect(),
            held: site.locks.iter().map(held).collect(),
            op: site.op,
            stack: site.stack,
        }
    }
}
