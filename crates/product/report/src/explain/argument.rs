//! The argument around a schedule: why the observed run did not show the fault, who waits for whom in
//! a deadlock, and which relations order a pair.

use reweave_analysis::{Finding, Proof};
use reweave_order::Clocks;
use reweave_order::cp::CausallyPrecedes;
use reweave_order::hb::HappensBefore;
use reweave_order::shb::SchedulableHappensBefore;
use reweave_order::wcp::WeakCausallyPrecedes;
use reweave_trace::views::CriticalSection;
use reweave_trace::{EventId, Goal, LockId, Trace};

use super::path::{Hop, Link, path};
use crate::legend::asked_for;
use crate::schedule::numbered;
use crate::shown::capital;
use crate::site::place;

/// How many pairs of events that the schedule turns around are listed.
const PAIRS_MAX: usize = 2;

/// How many links of a chain are listed.
const HOPS_MAX: usize = 6;

/// Which order was observed, by what, and what the schedule does instead; empty if there is nothing
/// to say.
pub fn not_shown(trace: &Trace, finding: &Finding) -> Vec<String> {
    let Some(proof) = finding.evidence.proof() else { return Vec::new() };
    if let Goal::Deadlock(events) = proof.goal() {
        return held(trace, events);
    }
    if let Goal::Stuck(events) = proof.goal() {
        return woken(trace, events);
    }
    let pairs = turned(trace, proof);
    pairs.into_iter().take(PAIRS_MAX).filter_map(|pair| of_pair(trace, proof, pair)).collect()
}

/// Whether `finding` is a race of two events that happens-before leaves unordered.
pub fn is_plain_race(trace: &Trace, finding: &Finding) -> bool {
    match finding.evidence.proof().map(Proof::goal) {
        Some(Goal::Race(one, other)) => path(trace, *one.min(other), *one.max(other)).is_none(),
        _ => false,
    }
}

/// Who woke the threads that wait in the schedule.
fn woken(trace: &Trace, events: &[EventId]) -> Vec<String> {
    let thread = |event: EventId| trace.names().threads.name(trace.event(event).thread);
    let said = events.iter().filter_map(|&event| {
        let notify = trace.signals().wait_interval(event)?.notify?;
        Some(format!(
            "In the recorded run {} was waiting when event {} in {} came, and was woken by it.",
            thread(event),
            notify.number(),
            thread(notify),
        ))
    });
    said.collect()
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
        Goal::Unordered(..)
        | Goal::Enabled(_)
        | Goal::Deadlock(_)
        | Goal::Stuck(_)
        | Goal::Reaches(_)
        | Goal::Leaves { .. } => Vec::new(),
    };
    // Within a thread the order is that of the program and never turned around.
    pairs.retain(|&[first, second]| thread(first) != thread(second));
    pairs
}

/// What ordered a pair in the run, and how the schedule gets around it.
fn of_pair(trace: &Trace, proof: &Proof, [first, second]: [EventId; 2]) -> Option<String> {
    let numbers = (first.number(), second.number());
    let Some(hops) = path(trace, first, second) else {
        return match proof.goal() {
            Goal::Race(..) => Some(format!(
                "Happens-before leaves events {} and {} unordered, so a happens-before detector can report this from this run.",
                numbers.0, numbers.1
            )),
            Goal::Order { .. } => Some(format!(
                "In the observed run, event {} came before event {}, but happens-before leaves the two unordered: only timing decided.",
                numbers.0, numbers.1
            )),
            _ => None,
        };
    };
    let links: Vec<String> = hops.iter().take(HOPS_MAX).map(|hop| hop_words(trace, hop)).collect();
    let more = match hops.len().saturating_sub(HOPS_MAX) {
        0 => String::new(),
        count => format!(", and so on through {count} more"),
    };
    let chain = links.join("; then ");
    let order = format!(
        "In the observed run, event {} happened before event {}: {chain}{more}.",
        numbers.0, numbers.1
    );
    let silent = match proof.goal() {
        Goal::Race(..) => {
            " A happens-before detector treats this as an order and does not report the pair."
        }
        _ => "",
    };
    let shown = &hops[..hops.len().min(HOPS_MAX)];
    let turn = broken(trace, proof, shown).map_or(String::new(), |hop| turn(trace, proof, &hop));
    Some(format!("{order}{silent}{turn}"))
}

/// The first link that the schedule does not keep: it runs the end of it without the start before.
fn broken(trace: &Trace, proof: &Proof, hops: &[Hop]) -> Option<Hop> {
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
    // Whoever releases it later acquires it later, since nobody else holds it in between.
    let later = match step(trace, proof, taken) {
        Some(step) => format!(" before {one} does (event {}, step {step})", taken.number()),
        None => format!(", and {one} has yet to acquire it (event {})", taken.number()),
    };
    format!(
        " But a lock only keeps critical sections apart, in either order: in the schedule {other} acquires `{lock}` (step {to}){later}."
    )
}

fn hop_words(trace: &Trace, hop: &Hop) -> String {
    let names = trace.names();
    let thread = |event: EventId| names.threads.name(trace.event(event).thread);
    let (one, other) = (thread(hop.from), thread(hop.to));
    let (from, to) = (hop.from.number(), hop.to.number());
    match hop.link {
        Link::Lock(lock) => format!(
            "{one} released `{}` (event {from}) and {other} acquired it (event {to})",
            names.locks.name(lock)
        ),
        Link::Start => format!("{one} started {other} (event {from})"),
        Link::End => format!("{one} ended (event {from}) and {other} joined it (event {to})"),
        Link::Empty(child) => format!(
            "{one} started {} (event {from}), which had no events, and {other} joined it (event {to})",
            names.threads.name(child)
        ),
        Link::Notify => {
            format!("{one} notified {other} (event {from}), which woke up (event {to})")
        }
        Link::Barrier => {
            format!(
                "{one} arrived at the barrier (event {from}) before {other} left it (event {to})"
            )
        }
        Link::Semaphore => {
            format!("{one} posted the semaphore (event {from}) and {other} took it (event {to})")
        }
        Link::Atomic => {
            format!("{one} released an atomic (event {from}) and {other} acquired it (event {to})")
        }
        Link::Life => {
            format!("{one} allocated what {other} freed (events {from} and {to})")
        }
    }
}

/// The events that the chains of `paragraphs` name.
pub fn named(trace: &Trace, proof: &Proof) -> Vec<EventId> {
    let pairs = turned(trace, proof).into_iter().take(PAIRS_MAX);
    let chains = pairs.filter_map(|[first, second]| path(trace, first, second));
    let hops = chains.flat_map(|hops| hops.into_iter().take(HOPS_MAX));
    hops.flat_map(|hop| [hop.from, hop.to]).collect()
}

/// Of a deadlock that did not happen: since when and until when each lock was held in the run.
fn held(trace: &Trace, events: &[EventId]) -> Vec<String> {
    let names = trace.names();
    let waits = waits(trace, events);
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
        "In the observed run {}. Only timing kept them apart: in the schedule each thread acquires its lock before any of them gets the next.",
        spans.join("; ")
    )]
}

/// One thread of a circle: what it waits for, and what it holds that the one before it wants.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Its blocked acquire or request.
    pub event: EventId,
    /// The lock that it wants.
    pub wants: LockId,
    /// What it holds.
    pub section: CriticalSection,
}

/// The threads of the circle that `events` are in, in order: each waits for what the next one holds.
pub fn waits(trace: &Trace, events: &[EventId]) -> Vec<Wait> {
    let before = events.last().into_iter().chain(events);
    let wait = |(&event, &before): (&EventId, &EventId)| {
        let wants = asked_for(trace.event(event).op)?;
        let wanted = asked_for(trace.event(before).op)?;
        let mut held = trace.sections().held(trace.event(event).thread, event);
        let section = *held.find(|section| section.lock == wanted)?;
        Some(Wait { event, wants, section })
    };
    events.iter().zip(before).filter_map(wait).collect()
}

/// The circle in a line for each thread and one that closes it; empty for what is none.
pub fn circle(trace: &Trace, finding: &Finding) -> Vec<String> {
    let Some(Goal::Deadlock(events)) = finding.evidence.proof().map(|proof| proof.goal()) else {
        return Vec::new();
    };
    let names = trace.names();
    let waits = waits(trace, events);
    // A request that was never granted may lack the section that closes the circle.
    if waits.len() < 2 || waits.len() != events.len() {
        return Vec::new();
    }
    let at = |event: EventId| {
        let place = place(names.location(trace.event(event).site));
        if place.is_empty() { String::new() } else { format!(" at {place}") }
    };
    let thread = |wait: &Wait| names.threads.name(wait.section.thread);
    let mut lines: Vec<String> = waits
        .iter()
        .map(|wait| {
            format!(
                "{} acquired `{}`{} and waits for `{}`{}.",
                thread(wait),
                names.locks.name(wait.section.lock),
                at(wait.section.acquire),
                names.locks.name(wait.wants),
                at(wait.event),
            )
        })
        .collect();
    let links = waits.iter().map(|it| format!("{} ─{}→ ", thread(it), names.locks.name(it.wants)));
    lines.push(format!("{}{}", links.collect::<String>(), thread(&waits[0])));
    lines
}

/// In longer traces no relation is computed.
const EVENTS_MAX: usize = 2_000_000;

/// In longer traces causally-precedes is not computed, which goes through them more than once.
const CAUSAL_EVENTS_MAX: usize = 200_000;

/// Each relation, and whether it orders `first` and `second`, which was observed later in another
/// thread; empty if the trace is too long for that.
fn verdicts(trace: &Trace, first: EventId, second: EventId) -> Vec<(&'static str, bool)> {
    if trace.len() > EVENTS_MAX {
        return Vec::new();
    }
    let ask = |clocks: &mut dyn Clocks| is_ordered(clocks, trace, first, second);
    let mut verdicts = vec![
        ("happens-before (`hb`)", ask(&mut HappensBefore::new())),
        ("schedulable happens-before (`shb`)", ask(&mut SchedulableHappensBefore::new())),
        ("weak causally-precedes (`wcp`)", ask(&mut WeakCausallyPrecedes::new(trace))),
    ];
    if trace.len() <= CAUSAL_EVENTS_MAX {
        let order = CausallyPrecedes::new(trace);
        verdicts.push(("causally-precedes (`cp`)", ask(&mut order.clocks())));
    }
    verdicts
}

/// Goes through the events up to `second` and asks whether `first` comes before it.
fn is_ordered(clocks: &mut dyn Clocks, trace: &Trace, first: EventId, second: EventId) -> bool {
    // Clocks must see every event before the second one, in observed order.
    let earlier = trace.events().map(|(id, _)| id).take_while(|&id| id < second);
    for event in earlier {
        clocks.advance(trace, event);
    }
    let clock = clocks.advance(trace, second);
    clock.get(trace.event(first).thread) > trace.position(first)
}

/// The same in sentences.
pub fn relations(trace: &Trace, first: EventId, second: EventId, is_proven: bool) -> String {
    let verdicts = verdicts(trace, first, second);
    if verdicts.is_empty() {
        return "The trace is too long to compute the relations for this pair.".to_owned();
    }
    let of = |is_ordered: bool| {
        let names = verdicts.iter().filter(|&&(_, it)| it == is_ordered);
        names.map(|&(relation, _)| relation).collect::<Vec<_>>()
    };
    let (ordered, unordered) = (of(true), of(false));
    let verdict = match (&ordered[..], &unordered[..]) {
        ([], all) => format!("No relation orders the pair: {} leave it unordered.", listed(all)),
        (all, []) => format!("Every relation orders the pair: {}.", listed(all)),
        (some, rest) => format!(
            "{} order{} the pair; {} {} not.",
            capital(&listed(some)),
            if some.len() == 1 { "s" } else { "" },
            listed(rest),
            if rest.len() == 1 { "does" } else { "do" },
        ),
    };
    let end = match (is_proven, ordered.is_empty()) {
        (true, false) => " The schedule proves that this order is not necessary.",
        (true, true) => " The schedule proves that both can happen at once.",
        (false, _) => " No schedule is known that proves the race.",
    };
    verdict + end
}

/// `a`, `a and b`, or `a, b and c`.
pub fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
