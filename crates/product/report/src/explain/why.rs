//! Why a finding is a fault, in paragraphs.

use reweave_analysis::{Detail, Finding, Guarantee, Kind, Nondeterminism, Proof, WeakAccess};
use reweave_trace::views::Mode;
use reweave_trace::{After, EventId, ObjectOp, Op, Trace};

use crate::alternatives::{BY_ORDER_ALONE, Unconfirmed, variable};
use crate::finding::free_reads;
use crate::schedule::{Seen, holds, sees};
use crate::site::Site;
use crate::{standing, state};

/// Why `finding` is a fault, and what is special about it.
pub fn paragraphs(trace: &Trace, finding: &Finding) -> Vec<String> {
    let mut paragraphs = match finding.kind {
        Kind::Race => race(trace, finding),
        Kind::UseAfterFree => use_after_free(trace, finding),
        Kind::Nondeterminism => match finding.detail.nondeterminism() {
            Some(detail) => nondeterminism(trace, finding, detail),
            None => usual(finding.kind),
        },
        Kind::Predicate => match finding.detail.state() {
            Some(state) => {
                let is_known = |proof: &Proof| proof.unknown_reads_count() == 0;
                state::paragraphs(state, finding.evidence.proof().is_some_and(is_known))
            }
            None => usual(finding.kind),
        },
        Kind::Stuck => super::stuck::why(trace, finding),
        Kind::Misuse => match super::misuse::why(trace, finding) {
            Some(paragraph) => vec![paragraph.to_owned()],
            None => usual(finding.kind),
        },
        Kind::UseAfterClose => vec![use_after_close(trace, finding).to_owned()],
        Kind::Deadlock if standing::happened(trace, finding) => {
            usual(finding.kind).into_iter().take(1).collect()
        }
        _ => usual(finding.kind),
    };
    if finding.guarantee() != Guarantee::Witnessed {
        paragraphs.push(finding.guarantee().meaning().to_owned());
    }
    paragraphs
}

/// What is said of every proven finding of `kind`.
fn usual(kind: Kind) -> Vec<String> {
    kind.info().why.iter().map(|&paragraph| paragraph.to_owned()).collect()
}

fn race(trace: &Trace, finding: &Finding) -> Vec<String> {
    if finding.guarantee() != Guarantee::Witnessed {
        return vec![
            "Two threads access the same variable, and at least one of them writes. That is a fault if \
             they can do so at the same time, which is not proven here."
                .to_owned(),
        ];
    }
    if let Detail::MemoryOrders(weak) = &finding.detail {
        return vec![format!(
            "Two threads access the same variable, at least one of them writes, and happens-before puts \
             neither access before the other.{} In C, C++ and Rust this is a data race, and the \
             behaviour of the program is undefined.",
            what_does_not_order(trace, weak)
        )];
    }
    let mut paragraphs = usual(Kind::Race);
    let [first, second] = finding.events[..] else { return paragraphs };
    paragraphs.push(locks(trace, first, second));
    paragraphs
}

fn use_after_free(trace: &Trace, finding: &Finding) -> Vec<String> {
    let Detail::MemoryOrders(weak) = &finding.detail else {
        return if is_of_ended_thread(trace, finding) {
            vec![
                "The variable is on the stack of a thread or in its thread-local storage. Both are gone when the \
                 thread has ended, and nothing makes it wait until the other thread is done with the variable."
                    .to_owned(),
            ]
        } else if is_of_frame(trace, finding) {
            vec![
                "The variable is on the stack of a function that returns, and nothing makes it wait until the \
                 other thread is done with the variable. An access after that reads or changes whatever the \
                 next functions keep there."
                    .to_owned(),
            ]
        } else {
            usual(Kind::UseAfterFree)
        };
    };
    vec![format!(
        "One thread frees memory that the other accesses, and happens-before puts neither before the \
         other.{} In C, C++ and Rust the behaviour of the program is undefined.",
        what_does_not_order(trace, weak)
    )]
}

/// What happens when a lock is used that was destroyed, a descriptor that was closed, and so on.
fn use_after_close(trace: &Trace, finding: &Finding) -> &'static str {
    match ended_handle(trace, finding) {
        "descriptor" => {
            "One thread closes the file descriptor, and nothing makes it wait until the other is done with it. The \
             number of a closed descriptor can be given to another file at once: the use then reads or writes \
             there, or fails."
        }
        "library" => {
            "One thread unloads the library, and nothing makes it wait until the other is done with it. Code and \
             variables of the library are gone then: the use crashes, or finds what was loaded there next."
        }
        "thread" => {
            "The handle of a thread is gone once the thread was joined, or has ended and is detached. Nothing makes \
             that wait until the other thread is done with the handle, which may be that of another thread by then."
        }
        "timer" | "stream" => {
            "One thread ends what the other still uses, and nothing makes it wait. Its memory may be something \
             else's by then."
        }
        _ => {
            "One thread destroys what the other still uses, and nothing makes it wait. What a destroyed lock, \
             condition, barrier or semaphore does is not defined: it may keep nobody out, or never let anybody in."
        }
    }
}

/// What `finding` ends: the word for it.
pub(super) fn ended_handle<'t>(trace: &'t Trace, finding: &Finding) -> &'t str {
    let word = |&event: &EventId| match trace.event(event).op {
        Op::Object(ObjectOp::Free, object) => {
            trace.names().objects.name(object).split_once('(').map(|(word, _)| word)
        }
        _ => None,
    };
    finding.events.iter().find_map(word).unwrap_or_default()
}

/// Whether what is used after its end is a variable of a thread that ends.
pub(super) fn is_of_ended_thread(trace: &Trace, finding: &Finding) -> bool {
    finding.kind == Kind::UseAfterFree && ended_handle(trace, finding) == "stack"
}

/// Whether what is used after its end is a variable of a function that returns.
pub(super) fn is_of_frame(trace: &Trace, finding: &Finding) -> bool {
    let ends_frame = |&event: &EventId| match trace.event(event).op {
        Op::Object(ObjectOp::Free, object) => trace.names().is_frame(object),
        _ => false,
    };
    finding.kind == Kind::UseAfterFree && finding.events.iter().any(ends_frame)
}

/// What lies between the two and does not order them: a sentence with a space before it, or nothing.
fn what_does_not_order(trace: &Trace, weak: &[WeakAccess]) -> &'static str {
    match weak {
        [] => "",
        _ if weak.iter().any(|it| it.tried_lock(trace).is_some()) => {
            " One thread finds that the other has a lock and goes on, but only who takes the lock \
             synchronizes."
        }
        _ => {
            " An atomic variable tells one thread that the other is done, but its memory orders do \
             not synchronize: the compiler and the processor may move the accesses past it."
        }
    }
}

/// Why what the two threads hold does not keep them apart.
fn locks(trace: &Trace, first: EventId, second: EventId) -> String {
    let [one, other] = [first, second].map(|event| Site::new(trace, event));
    if one.locks.is_empty() && other.locks.is_empty() {
        return "Neither holds a lock.".to_owned();
    }
    let is_common = |&&(name, _): &&(&str, Mode)| other.locks.iter().any(|&(held, _)| held == name);
    let holds =
        format!("{} is {} and {} is {}", one.thread, one.holding(), other.thread, other.holding());
    match one.locks.iter().find(is_common) {
        None => format!("{holds}: there is no lock that both hold."),
        Some((name, _)) => format!("{holds}: `{name}` is held shared, which keeps neither out."),
    }
}

fn nondeterminism(trace: &Trace, finding: &Finding, detail: &Nondeterminism) -> Vec<String> {
    let mut paragraphs = vec![outcome(trace, finding, detail) + how(finding, detail)];
    let racing = match detail.is_race_free {
        Some(true) => Some(
            "No race detector reports it: the accesses are synchronized, whichever comes first. \
             If the result must be the same in every run, fix their order; if not, nothing needs \
             to be done.",
        ),
        Some(false) => Some(
            "The accesses race as well, and `races` reports them. A lock around each would \
             remove the race, but not decide which comes first.",
        ),
        None => None,
    };
    paragraphs.extend(racing.map(str::to_owned));
    let value = match (detail.changes_value, finding.evidence.proof()) {
        (Some(true), Some(_)) => "The value differs from the one that was observed.",
        (Some(true), None) => "The value would differ from the one that was observed.",
        (Some(false), Some(_)) => {
            "The value is the one that was observed, so this read alone changes no result."
        }
        (Some(false), None) => "The value would be the one that was observed.",
        (None, _) => "The trace does not show whether the value differs.",
    };
    paragraphs.push(format!("{value} {}", reach(trace, finding, detail)));
    paragraphs
}

/// What the schedule takes for granted. A mode may give more than it asks for.
fn reach(trace: &Trace, finding: &Finding, detail: &Nondeterminism) -> String {
    let mode = detail.mode;
    let Some(proof) = finding.evidence.proof() else {
        return match mode {
            "order" => format!(
                "Only the order of events was examined (mode {mode}): other reads come after \
                 what they saw, but may see a write that comes in between."
            ),
            _ => format!("The search for a schedule gave up (mode {mode})."),
        };
    };
    match (free_reads(trace, proof), detail.read) {
        ((reads, _), None) if reads.is_empty() => {
            format!("All observed events happen, and every read sees what it saw (mode {mode}).")
        }
        ((reads, _), _) if reads.len() > 1 => format!(
            "Other reads may see different writes too, and the schedule assumes that the program \
             continues as observed (mode {mode})."
        ),
        ((_, After::Stops), _) => format!(
            "Nothing is assumed: every other read sees what it saw, and the thread of this one \
             stops there, so this holds whatever the program does with the value (mode {mode})."
        ),
        ((_, After::RunsOn), _) => format!(
            "Every other read sees what it saw; the schedule assumes that the thread of this one \
             continues as observed (mode {mode})."
        ),
    }
}

/// What was observed, and what the schedule gives instead, if there is one.
fn outcome(trace: &Trace, finding: &Finding, detail: &Nondeterminism) -> String {
    let saw = Seen::new(detail.writer);
    let Some(proof) = finding.evidence.proof() else { return unconfirmed(trace, detail) };
    let reordering = proof.reordering();
    let var = detail.writer.or(detail.interfering).and_then(|write| trace.event(write).op.var());
    let now = match detail.read {
        Some(read) => sees(trace, reordering, read),
        None => var.map(|var| holds(trace, reordering, var)),
    };
    let now = now.unwrap_or_else(|| Seen::new(detail.interfering));
    match detail.read {
        Some(read) => format!(
            "With the same input, what event {} sees depends on the schedule: it saw {saw}, and can see {now}.",
            read.number()
        ),
        None => format!(
            "With the same input, what `{}` holds at the end depends on the schedule: {saw}, as \
             observed, or {now}.",
            variable(trace, detail).unwrap_or("the variable")
        ),
    }
}

/// What was observed, and what nothing but the order of events gives instead.
fn unconfirmed(trace: &Trace, detail: &Nondeterminism) -> String {
    let saw = Seen::new(detail.writer);
    let other = Seen::new(detail.interfering);
    let number = detail.read.map_or(0, EventId::number);
    let unknown = "depends on the schedule is not known";
    match Unconfirmed::new(detail) {
        Unconfirmed::Between => format!(
            "Whether what event {number} sees {unknown}: it saw {saw}, and {other} could come in \
             between {BY_ORDER_ALONE}."
        ),
        Unconfirmed::Last => format!(
            "Whether what `{}` holds at the end {unknown}: it was {saw}, and {other} could come \
             after it {BY_ORDER_ALONE}.",
            variable(trace, detail).unwrap_or("the variable")
        ),
        Unconfirmed::Earlier => format!(
            "Whether what event {number} sees {unknown}: it saw {saw}, and could come before that \
             {BY_ORDER_ALONE}."
        ),
    }
}

/// How the schedule breaks the reads-from edge to the read.
fn how(finding: &Finding, detail: &Nondeterminism) -> &'static str {
    let is_shown = detail.read.is_some() && finding.evidence.proof().is_some();
    match (detail.witness_kind, is_shown) {
        (1, true) => " In the schedule below the read comes before the write that it saw.",
        (2, true) if detail.writer.is_none() => {
            " In the schedule below another write comes before it."
        }
        (2, true) => " In the schedule below another write comes after the one that it saw.",
        (3, true) => " In the schedule below the write that it saw does not happen.",
        _ => "",
    }
}
