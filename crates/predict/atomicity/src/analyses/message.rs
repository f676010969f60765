//! What a finding says.

use reweave_analysis::spelled;
use reweave_trace::{EventId, ThreadId, Trace};

use crate::blocks::{Block, BlockName};

/// Whether something was observed or is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Observed,
    Possible,
    /// Not known to be possible.
    Open,
}

/// That the events within `chain` come between its first and last, of `block`.
pub(super) fn between(trace: &Trace, block: &Block, chain: &[EventId], mood: Mood) -> String {
    let [first, others @ .., last] = chain else { return not_atomic(trace, block) };
    let verb = match mood {
        Mood::Observed => "came",
        Mood::Possible => "can come",
        Mood::Open => "may come",
    };
    let others = listed(trace, others);
    let (first, last) = (spelled(trace, *first), spelled(trace, *last));
    let start = not_atomic(trace, block);
    format!("{start}: {others} {verb} between {first} and {last}")
}

/// That the events of `chain` leave no order for `block` and others.
pub(super) fn overlap(trace: &Trace, block: &Block, chain: &[EventId]) -> String {
    let start = not_atomic(trace, block);
    let events = listed(trace, chain);
    format!("{start}, nor are those it overlaps with: {events} came in this order")
}

fn not_atomic(trace: &Trace, block: &Block) -> String {
    let names = trace.names();
    let thread = names.threads.name(block.thread);
    match block.name {
        BlockName::Marked(name) => {
            format!("block `{}` of {thread} is not atomic", names.blocks.name(name))
        }
        BlockName::Section(lock) => {
            format!("the section of {thread} on `{}` is not atomic", names.locks.name(lock))
        }
    }
}

/// The events as a list, each with its thread where that is another than the one before it.
fn listed(trace: &Trace, events: &[EventId]) -> String {
    let mut thread: Option<ThreadId> = None;
    let mut text = String::new();
    for (at, &event) in events.iter().enumerate() {
        if at > 0 {
            text.push_str(if at + 1 == events.len() { " and " } else { ", " });
        }
        let own = trace.event(event).thread;
        if thread != Some(own) {
            text.push_str(trace.names().threads.name(own));
            text.push_str("'s ");
        }
        thread = Some(own);
        text.push_str(&spelled(trace, event));
    }
    text
}
