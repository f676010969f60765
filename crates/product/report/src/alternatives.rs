//! What a read can see instead of what it saw, in sentences.

use reweave_analysis::{Alternative, Finding, Nondeterminism};
use reweave_trace::views::Mode;
use reweave_trace::{AccessOp, EventId, Op, Trace};

use crate::counted;
use crate::schedule::Seen;
use crate::site::Site;

/// How many alternatives a report for people lists of one finding.
pub const LISTED_MAX: usize = 20;

/// What a finding says of the writes that a read can see.
#[derive(Clone, Debug)]
pub struct Choices {
    /// What the read saw.
    pub heading: String,
    /// What it can see instead, at most [`LISTED_MAX`] of them.
    pub listed: Vec<Choice>,
    /// How many more there are.
    pub unlisted_count: usize,
    /// Why a race detector is silent about all of them, if it is and for one reason.
    pub silence: Option<String>,
}

/// A write that the read can see.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The write, and the value it gives.
    pub write: String,
    /// Why a race detector is silent about it, if it is and that is not said of all.
    pub silence: Option<String>,
}

impl Choices {
    /// What `finding` says of the writes that a read can see, if it does.
    pub fn new(trace: &Trace, finding: &Finding) -> Option<Self> {
        let detail = finding.detail.nondeterminism()?;
        let all = detail.alternatives();
        let mut listed: Vec<Choice> =
            all.take(LISTED_MAX).map(|write| choice(trace, detail, &write)).collect();
        let unlisted_count = (1 + detail.others.len()).saturating_sub(LISTED_MAX);
        // One reason for all is said once; with some unlisted it might not hold for them.
        let silence = match (&mut listed[..], unlisted_count) {
            ([first, rest @ ..], 0) if !rest.is_empty() => common_silence(first, rest),
            _ => None,
        };
        let heading = match finding.evidence.proof() {
            Some(_) => heading(trace, detail),
            None => unconfirmed_heading(trace, detail),
        };
        Some(Self { heading, listed, unlisted_count, silence })
    }
}

/// Why a race detector is silent about `first` and all of the `rest`, taken away from each of them;
/// none if it is not, or for several reasons.
fn common_silence(first: &mut Choice, rest: &mut [Choice]) -> Option<String> {
    if first.silence.is_none() || rest.iter().any(|choice| choice.silence != first.silence) {
        return None;
    }
    for choice in rest {
        choice.silence = None;
    }
    first.silence.take()
}

/// What the read saw, as the start of a list of what else it can see.
fn heading(trace: &Trace, detail: &Nondeterminism) -> String {
    let what = if detail.others.is_empty() { "this" } else { "any of these" };
    let saw = saw(trace, detail);
    match detail.read {
        Some(_) => format!("{saw}; it can see {what} instead:"),
        None => format!("{saw}; it can end with {what} instead:"),
    }
}

/// What the read saw, as the start of a list of what nothing but the order of events lets it see.
fn unconfirmed_heading(trace: &Trace, detail: &Nondeterminism) -> String {
    let saw = saw(trace, detail);
    match Unconfirmed::new(detail) {
        Unconfirmed::Between => format!("{saw}; this could come in between {BY_ORDER_ALONE}:"),
        Unconfirmed::Last => format!("{saw}; this could come after it {BY_ORDER_ALONE}:"),
        Unconfirmed::Earlier => {
            format!("{saw}; it could come before that {BY_ORDER_ALONE}, and see:")
        }
    }
}

/// What the read saw, as the start of a sentence.
fn saw(trace: &Trace, detail: &Nondeterminism) -> String {
    let saw = Seen::new(detail.writer);
    let value = value(trace, detail.read, detail.writer);
    let value = value.map_or(String::new(), |value| format!(", value {value}"));
    match detail.read {
        Some(read) => format!("Event {} saw {saw}{value}", read.number()),
        None => {
            let name = variable(trace, detail).unwrap_or("the variable");
            format!("`{name}` ended with what {saw} wrote{value}")
        }
    }
}

/// How far what no schedule proves is known to hold.
pub const BY_ORDER_ALONE: &str = "by the order of events alone";

/// What the order of events allows, where no schedule is known that shows it.
#[derive(Clone, Copy, Debug)]
pub enum Unconfirmed {
    /// The other write comes between what the read saw and the read.
    Between,
    /// The other write comes after all others.
    Last,
    /// The read comes before what it saw, and sees the initial value.
    Earlier,
}

impl Unconfirmed {
    /// What the order of events allows in `detail`.
    pub const fn new(detail: &Nondeterminism) -> Self {
        match (detail.read, detail.interfering) {
            (None, _) => Self::Last,
            (Some(_), Some(_)) => Self::Between,
            (Some(_), None) => Self::Earlier,
        }
    }
}

/// The variable that is read.
pub fn variable<'t>(trace: &'t Trace, detail: &Nondeterminism) -> Option<&'t str> {
    let event = detail.read.or(detail.writer).or(detail.interfering)?;
    let var = trace.event(event).op.var()?;
    Some(trace.names().vars.name(var))
}

fn choice(trace: &Trace, detail: &Nondeterminism, alternative: &Alternative) -> Choice {
    let mut write = match alternative.write {
        None => "the initial value".to_owned(),
        Some(write) => Site::new(trace, write).line(),
    };
    let saw = value(trace, alternative.read, writer(trace, detail, alternative));
    let gives = alternative.write.and_then(|write| known_value(trace, write));
    write += &match (alternative.changes_value, gives, saw) {
        (None, ..) => String::new(),
        (Some(false), ..) => ", the same value".to_owned(),
        (Some(true), Some(gives), Some(saw)) => format!(", value {gives} instead of {saw}"),
        (Some(true), ..) => ", another value".to_owned(),
    };
    if alternative.count > 1 {
        write += &format!(" ({})", counted(alternative.count, "pair"));
    }
    let is_silent = alternative.is_race_free == Some(true);
    let silence = is_silent.then(|| silence(trace, detail, alternative));
    Choice { write, silence }
}

/// Why a race detector is silent about `alternative`.
fn silence(trace: &Trace, detail: &Nondeterminism, alternative: &Alternative) -> String {
    let pairs = pairs(trace, detail, alternative);
    let is_atomic = |event: EventId| trace.event(event).op.is_atomic();
    match common_locks(trace, &pairs)[..] {
        [lock] => format!("lock `{lock}` keeps the accesses apart, but either can come first"),
        [_, ..] => "locks keep the accesses apart, but either can come first".to_owned(),
        // Atomic accesses never race, so no lock is needed to keep a detector silent.
        [] if pairs.iter().flatten().all(|&event| is_atomic(event)) => {
            "the accesses are atomic, and either can come first".to_owned()
        }
        [] => "synchronization keeps the accesses apart, but either can come first".to_owned(),
    }
}

/// The accesses of different threads whose order decides what is seen: the read, what it saw and
/// what it can see; or for a read at the end of the run the two writes.
fn pairs(trace: &Trace, detail: &Nondeterminism, alternative: &Alternative) -> Vec<[EventId; 2]> {
    let thread = |event: EventId| trace.event(event).thread;
    let (writer, read) = (writer(trace, detail, alternative), alternative.read);
    let pairs =
        [read.zip(writer), read.zip(alternative.write), writer.zip(alternative.write)].into_iter();
    let pairs = pairs.flatten().map(<[EventId; 2]>::from);
    pairs.filter(|&[one, other]| thread(one) != thread(other)).collect()
}

/// The locks that keep the accesses of the pairs apart, in alphabetical order; none unless every
/// pair has one.
fn common_locks<'t>(trace: &'t Trace, pairs: &[[EventId; 2]]) -> Vec<&'t str> {
    let mut common = Vec::new();
    for pair in pairs {
        let [one, other] = pair.map(|event| Site::new(trace, event).locks);
        let keeps_apart = |&(name, mode): &(&str, Mode)| {
            other.iter().any(|&(held, held_mode)| {
                held == name && (mode == Mode::Exclusive || held_mode == Mode::Exclusive)
            })
        };
        let names: Vec<&str> = one.into_iter().filter(keeps_apart).map(|(name, _)| name).collect();
        if names.is_empty() {
            return names;
        }
        common.extend(names);
    }
    // A report must not depend on which pair came first.
    common.sort_unstable();
    common.dedup();
    common
}

/// What the read of `alternative` saw; none is the initial value.
pub fn writer(
    trace: &Trace,
    detail: &Nondeterminism,
    alternative: &Alternative,
) -> Option<EventId> {
    match alternative.read {
        read if read == detail.read => detail.writer,
        read => read.and_then(|read| trace.writer(read)),
    }
}

/// What `read` got from `writer`, where the trace has it.
fn value(trace: &Trace, read: Option<EventId>, writer: Option<EventId>) -> Option<i64> {
    let of = |event: Option<EventId>| event.and_then(|event| known_value(trace, event));
    of(read).or_else(|| of(writer))
}

/// The value that `event` read or wrote, where the trace has it. Of an update it may be either.
pub fn known_value(trace: &Trace, event: EventId) -> Option<i64> {
    match trace.event(event).op {
        Op::Access(AccessOp::AtomicUpdate(_), _) => None,
        _ => trace.value(event),
    }
}
