//! Predictable use of a closed handle: which operations on locks, conditions, barriers, semaphores, threads, file
//! descriptors, streams, timers and libraries can come after these were destroyed, joined, closed or unloaded?
//!
//! A correct reordering in which a thread ends the life of a handle and another thread then uses it. A
//! thread that was woken from a condition, or let go by a barrier, no longer uses it: POSIX allows to
//! destroy it by then.
//!
//! Sound: each finding is a schedule that the checker accepted. Complete if all are asked for, but for
//! budgets. Handles that are never destroyed or closed are not looked at.
//!
//! Costs a pass and a query for each candidate. `oracle::lifetimes` is the definition.

use reweave_analysis::{
    Analysis, Coverage, Finding, Gathered, Guarantee, Info, Kind, Layer, Settings, Sink, Subject,
};
use reweave_trace::{DESCRIPTOR, LIBRARY, ObjectOp, Op, Trace, counted_life};

use crate::ends::{self, Lives, Use};

/// What `subject` has of uses of closed handles, as findings.
#[must_use]
pub fn uses(subject: &Subject<'_>, settings: &Settings) -> Vec<Finding> {
    let mut sink = Gathered::default();
    UseAfterClose.run(subject, settings, &mut sink);
    sink.findings
}

/// The search for uses of closed handles as one of many.
#[derive(Clone, Copy, Debug, Default)]
pub struct UseAfterClose;

const INFO: Info = Info {
    name: "lifetimes.close",
    family: crate::FAMILY,
    kind: Kind::UseAfterClose,
    guarantee: Guarantee::Witnessed,
    needs: Layer::Events,
    is_default: true,
    summary: "locks, threads, files and libraries that can be used after they were destroyed, joined or closed",
    paper: "our own, after Smaragdakis et al., POPL 2012, Definition 4",
};

impl Analysis for UseAfterClose {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        ends::run((&INFO, Lives::Handles), (subject, settings), sink, message)
    }
}

fn message(trace: &Trace, Use { end, event, .. }: Use) -> String {
    let names = trace.names();
    let thread = |event| names.threads.name(trace.event(event).thread);
    let place = |event| names.location(trace.event(event).site);
    let name = match trace.event(end).op {
        Op::Object(ObjectOp::Free, object) => names.objects.name(object),
        _ => "",
    };
    let (word, own) = counted_life(name).unwrap_or_else(|| word_and_name(name));
    let (what, deed) = match word {
        DESCRIPTOR => (format!("file descriptor {own}"), "closed"),
        LIBRARY => (format!("library {own}"), "unloaded"),
        "stream" => ("a stream".to_owned(), "closed"),
        "timer" => ("a timer".to_owned(), "deleted"),
        "thread" if thread(end) == own => {
            return format!(
                "{} can use the handle of {own} at {} after {own}, which is detached, has ended",
                thread(event),
                place(event)
            );
        }
        "thread" => (format!("the handle of {own}"), "joined"),
        _ => (format!("{word} `{own}`"), "destroyed"),
    };
    format!(
        "{} can use {what} at {} after {} has {deed} it at {}",
        thread(event),
        place(event),
        thread(end),
        place(end)
    )
}

/// The parts of `lock(m)`: its word, and what stands in brackets.
fn word_and_name(name: &str) -> (&str, &str) {
    let (word, rest) = name.split_once('(').unwrap_or((name, name));
    (word, rest.strip_suffix(')').unwrap_or(rest))
}
