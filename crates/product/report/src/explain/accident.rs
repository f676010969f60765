//! Why the observed order was an accident: what put the events at fault in it, and what of that the
//! schedule turns around.

use reweave_analysis::{Finding, Proof};
use reweave_trace::{EventId, Goal, Trace};

use super::path::{Hop, Link, path};
use crate::schedule::numbered;

/// How many pairs of events that the schedule turns around are told of.
const PAIRS_MAX: usize = 2;

/// How many links of a chain are told.
const HOPS_MAX: usize = 6;

/// Which order was observed, by what, and what the schedule does instead; empty if there is nothing
/// to say.
pub(crate) fn paragraphs(trace: &Trace, finding: &Finding) -> Vec<String> {
    let Some(proof) = finding.evidence.proof() else { return Vec::new() };
    if let Goal::Deadlock(events) = proof.goal() {
        return held(trace, events);
    }
    let pairs = turned(trace, proof);
    pairs.into_iter().take(PAIRS_MAX).filter_map(|pair| of_pair(trace, proof, pair)).collect()
}

/// The pairs of events of different threads that the schedule runs, or could run, in another order
/// than was observed, the one observed first at the front.
fn turned(trace: &Trace, proof: &Proof) -> Vec<[EventId; 2]> {
    let thread = |event: EventId| trace.event(event).thread;
    let mut pairs: Vec<[EventId; 2]> = match proof.goal() {
        Goal::Race(one, other) => vec![[*one.min(other), *one.max(other)]],
        Goal::Order { chain, .. } => {
            let after = |at: usize| chain[at + 1..].iter().map(move |&later| [later, chain[at]]);
            let all = (0..chain.len()).flat_map(after);
            all.filter(|[observed_first, observed_last]| observed_first < observed_last).collect()
        }
        Goal::Sees { read, write, .. } => match (write, trace.writer(*read)) {
            (Some(write), _) if write > read => vec![[*read, *write]],
            (_, Some(writer)) => vec![[writer, *read]],
            (_, None) => Vec::new(),
        },
        Goal::Enabled(_) | Goal::Deadlock(_) | Goal::Reaches(_) | Goal::Leaves { .. } => Vec::new(),
    };
    pairs.retain(|&[first, second]| thread(first) != thread(second));
    pairs
}

/// What ordered a pair in the run, and how the schedule gets around it.
fn of_pair(trace: &Trace, proof: &Proof, [first, second]: [EventId; 2]) -> Option<String> {
    let numbers = (first.number(), second.number());
    let Some(hops) = path(trace, first, second) else {
        return matches!(proof.goal(), Goal::Race(..)).then(|| {
            format!(
                "Nothing in this run put event {} before event {}: happens-before leaves them \
                 unordered too, so a detector that goes by it can see this race in this run.",
                numbers.0, numbers.1
            )
        });
    };
    let told: Vec<String> = hops.iter().take(HOPS_MAX).map(|hop| hop_words(trace, hop)).collect();
    let more = match hops.len().saturating_sub(HOPS_MAX) {
        0 => String::new(),
        count => format!(", and so on through {count} more"),
    };
    let chain = told.join("; then ");
    let lead = format!(
        "In the run as it happened, event {} came before event {} by this chain: {chain}{more}.",
        numbers.0, numbers.1
    );
    let silent = match proof.goal() {
        Goal::Race(..) => {
            " A detector that goes by happens-before takes that for an order and stays silent about the pair."
        }
        _ => "",
    };
    let told = &hops[..hops.len().min(HOPS_MAX)];
    let turn = broken(trace, proof, told).map_or(String::new(), |hop| turn(trace, proof, &hop));
    Some(format!("{lead}{silent}{turn}"))
}

/// The first link that the schedule does not keep: it runs the end of it without the start before.
pub(crate) fn broken(trace: &Trace, proof: &Proof, hops: &[Hop]) -> Option<Hop> {
    let is_broken = |hop: &&Hop| match (step(trace, proof, hop.from), step(trace, proof, hop.to)) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(from), Some(to)) => to < from,
    };
    hops.iter().find(is_broken).copied()
}

/// Which step of the schedule `event` is, if it runs.
fn step(trace: &Trace, proof: &Proof, event: EventId) -> Option<usize> {
    numbered(trace, proof.reordering(), vec![event]).first().map(|&(step, _)| step)
}

/// How the schedule turns `hop` around.
fn turn(trace: &Trace, proof: &Proof, hop: &Hop) -> String {
    let Some(to) = step(trace, proof, hop.to) else { return String::new() };
    let names = trace.names();
    let thread = |event: EventId| names.threads.name(trace.event(event).thread);
    let Link::Lock(lock) = hop.link else {
        return format!(
            " The schedule runs event {} (step {to}) without event {} before it.",
            hop.to.number(),
            hop.from.number()
        );
    };
    let (one, other, lock) = (thread(hop.from), thread(hop.to), names.locks.name(lock));
    let mut held = trace.sections().held(trace.event(hop.from).thread, hop.from);
    let taken = held.find(|section| section.release == Some(hop.from));
    let Some(taken) = taken.map(|section| section.acquire) else { return String::new() };
    // Whoever gives it back later takes it later, since nobody else has it in between.
    let later = match step(trace, proof, taken) {
        Some(step) => format!(" before {one} does (event {}, step {step})", taken.number()),
        None => format!(", and event {}, with which {one} took it, is yet to come", taken.number()),
    };
    format!(
        " But a lock says only that one comes after the other, not which: in the schedule {other} \
         takes `{lock}` (step {to}){later}."
    )
}

fn hop_words(trace: &Trace, hop: &Hop) -> String {
    let names = trace.names();
    let thread = |event: EventId| names.threads.name(trace.event(event).thread);
    let (one, other) = (thread(hop.from), thread(hop.to));
    let (from, to) = (hop.from.number(), hop.to.number());
    match hop.link {
        Link::Lock(lock) => format!(
            "{one} gave `{}` back (event {from}) and {other} took it (event {to})",
            names.locks.name(lock)
        ),
        Link::Start => format!("{one} started {other} (event {from})"),
        Link::End => format!("{one} ended (event {from}) and {other} waited for that (event {to})"),
        Link::Empty(child) => format!(
            "{one} started {} (event {from}), which ran nothing, and {other} waited for its end (event {to})",
            names.threads.name(child)
        ),
        Link::Notify => format!("{one} notified {other} (event {from}), which woke (event {to})"),
        Link::Barrier => {
            format!(
                "{one} arrived at the barrier (event {from}) before {other} went on (event {to})"
            )
        }
        Link::Semaphore => {
            format!("{one} raised the semaphore (event {from}) and {other} lowered it (event {to})")
        }
        Link::Atomic => {
            format!("{one} wrote atomically (event {from}) and {other} saw it (event {to})")
        }
        Link::Life => {
            format!("{one} allocated what {other} released (events {from} and {to})")
        }
    }
}

/// The events that the chains of `paragraphs` name.
pub(crate) fn named(trace: &Trace, proof: &Proof) -> Vec<EventId> {
    let pairs = turned(trace, proof).into_iter().take(PAIRS_MAX);
    let chains = pairs.filter_map(|[first, second]| path(trace, first, second));
    let hops = chains.flat_map(|hops| hops.into_iter().take(HOPS_MAX));
    hops.flat_map(|hop| [hop.from, hop.to]).collect()
}

/// Of a deadlock that did not happen: since when and until when each lock was held in the run.
fn held(trace: &Trace, events: &[EventId]) -> Vec<String> {
    let names = trace.names();
    let waits = super::circle::waits(trace, events);
    let spans = waits.iter().map(|wait| {
        let release = wait.section.release?;
        Some(format!(
            "{} held `{}` from event {} to event {}",
            names.threads.name(wait.section.thread),
            names.locks.name(wait.section.lock),
            wait.section.acquire.number(),
            release.number(),
        ))
    });
    let Some(spans) = spans.collect::<Option<Vec<String>>>().filter(|spans| !spans.is_empty())
    else {
        return Vec::new();
    };
    vec![format!(
        "In the run as it happened {}. Only the order in which the threads came let them pass each \
         other: in the schedule each has its lock before any of them gets the next.",
        spans.join("; ")
    )]
}
