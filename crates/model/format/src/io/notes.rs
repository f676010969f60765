//! What a person should know of a trace that was read.

use reweave_trace::{ThreadId, Trace};

/// How many notes of one kind are worth reading.
const NOTES_MAX: usize = 20;

/// What was changed to make `trace` well formed, if it was to be; else what looks like a slip.
pub(super) fn of(trace: &Trace, repaired: bool) -> Vec<String> {
    if repaired { of_repairs(trace) } else { of_thread_names(trace) }
}

/// What was changed to make the trace well formed.
fn of_repairs(trace: &Trace) -> Vec<String> {
    let repairs = trace.repairs();
    let mut notes: Vec<String> = repairs.iter().take(NOTES_MAX).map(ToString::to_string).collect();
    shorten(&mut notes, repairs.len(), "repairs");
    notes
}

fn shorten(notes: &mut Vec<String>, all: usize, what: &str) {
    if all > NOTES_MAX {
        notes.push(format!("and {} more {what}", all - NOTES_MAX));
    }
}

/// Threads that are probably one thread under two spellings.
fn of_thread_names(trace: &Trace) -> Vec<String> {
    let threads = &trace.names().threads;
    let slips = trace.two_spellings();
    let note = |&(named, running): &(ThreadId, ThreadId)| {
        let word = if trace.lifetime(named).fork.is_some() { "fork" } else { "join" };
        let (named, running) = (threads.name(named), threads.name(running));
        format!(
            "`{word}({named})` and thread `{running}` are different names: `{named}` never runs, \
             `{running}` is never forked; `--repair` takes them as one"
        )
    };
    let mut notes: Vec<String> = slips.iter().take(NOTES_MAX).map(note).collect();
    shorten(&mut notes, slips.len(), "pairs of names");
    notes
}
