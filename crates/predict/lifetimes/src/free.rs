//! Predictable use after free: which accesses can come after the free of what they access?
//!
//! A use after free is a correct reordering in which a thread frees an object and another thread then
//! accesses a part of it. In the observed run the access came first, since whatever uses the same
//! memory later is another object. What the access sees does not matter: its thread stops there.
//!
//! Sound: each finding is a schedule that the checker accepted. Complete if all are asked for, but for
//! budgets. Memory that no `free` event ends is not looked at, nor are accesses that are no
//! events: what one thread alone accesses is no part of a recorded trace.
//!
//! Costs a pass and a query for each candidate. `oracle::lifetimes` is the definition.

use reweave_analysis::{
    Analysis, Coverage, Finding, Gathered, Guarantee, Info, Kind, Layer, Settings, Sink, Subject,
    located, spelled,
};
use reweave_trace::{Op, Trace};

use crate::ends::{self, Lives, Use};

/// What `subject` has of uses after free, as findings.
#[must_use]
pub fn uses(subject: &Subject<'_>, settings: &Settings) -> Vec<Finding> {
    let mut sink = Gathered::default();
    UseAfterFree.run(subject, settings, &mut sink);
    sink.findings
}

/// The search for uses after free as one of many.
#[derive(Clone, Copy, Debug, Default)]
pub struct UseAfterFree;

const INFO: Info = Info {
    name: "lifetimes.free",
    family: crate::FAMILY,
    kind: Kind::UseAfterFree,
    guarantee: Guarantee::Witnessed,
    needs: Layer::Events,
    is_default: true,
    summary: "memory that a thread can access after another has freed it",
    paper: "our own, after Smaragdakis et al., POPL 2012, Definition 4",
};

impl Analysis for UseAfterFree {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        ends::run((&INFO, Lives::Memory), (subject, settings), sink, message)
    }
}

fn message(trace: &Trace, Use { end, event, .. }: Use) -> String {
    let names = trace.names();
    let thread = |event| names.threads.name(trace.event(event).thread);
    let [freed, accessed] = [end, event].map(|event| spelled(trace, event));
    let (user, owner) = (thread(event), thread(end));
    if let Op::Object(_, object) = trace.event(end).op {
        if names.is_stack(object) {
            return format!(
                "{accessed} in {user} is on the stack of {owner} or in its thread-local storage, and can come after {owner} has ended"
            );
        }
        if names.is_frame(object) {
            let place = names.location(trace.event(end).site);
            let function = match place {
                "" => format!("that {owner} began with"),
                _ => format!("called{}", located(place)),
            };
            return format!(
                "{accessed} in {user} is on the stack of {owner}, and can come after the function {function} has returned"
            );
        }
    }
    format!("{accessed} in {user} can come after {freed} in {owner}")
}
