//! Predictable use of a closed handle: which operations on locks, conditions, barriers, semaphores, threads and file
//! descriptors can come after these were destroyed, joined or closed?
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
use reweave_trace::{DESCRIPTOR, ObjectOp, Op, Trace};

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
    summary: "locks, threads and file descriptors that can be used after they were destroyed, joined or closed",
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
    // `lock(m)`, or `descriptor(3)#1` of which the last part counts lives.
    let name = match trace.event(end).op {
        Op::Object(ObjectOp::Free, object) => names.objects.name(object),
        _ => "",
    };
    let (what, deed) = match name.strip_prefix(DESCRIPTOR).and_then(|rest| rest.rsplit_once('#')) {
        Some((number, _)) => (format!("file descriptor {}", inner(number)), "closed"),
        None => {
            let word = name.split('(').next().unwrap_or_default();
            match word {
                "thread" if thread(end) == inner(name) => {
                    let user = thread(event);
                    let ended = inner(name);
                    return format!(
                        "{user} can use the handle of {ended} at {} after {ended}, which is detached, has ended",
                        place(event)
                    );
                }
                "thread" => (format!("the handle of {}", inner(name)), "joined"),
                _ => (format!("{word} `{}`", inner(name)), "destroyed"),
            }
        }
    };
    format!(
        "{} can use {what} at {} after {} has {deed} it at {}",
        thread(event),
        place(event),
        thread(end),
        place(end)
    )
}

/// What stands between the first and the last bracket.
fn inner(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
    inner.map_or(name, |(inner, _)| inner)
}
