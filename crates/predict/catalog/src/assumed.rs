//! What ordering that is only assumed may hide.
//!
//! A recorder that sees a program call a library which was not rebuilt does not see whether the
//! library orders its threads. It takes it to, and marks the events that say so
//! ([`reweave_trace::ASSUMED`]). What can race without them, and cannot with them, is not decided.

use std::collections::BTreeSet;

use reweave_analysis::{Analysis, Coverage, Gathered, Guarantee, Settings, Subject};
use reweave_trace::{Event, Trace, TraceBuilder};

/// A trace without the ordering that was assumed in it.
pub(crate) struct WithoutAssumed {
    trace: Trace,
    /// The libraries that the ordering was of.
    pub(crate) libraries: Vec<String>,
}

impl WithoutAssumed {
    /// Takes what was assumed out of `trace`; nothing where nothing was, or where a trace knows more
    /// of its program than events.
    pub(crate) fn new(trace: &Trace) -> Option<Self> {
        let names = trace.names();
        let library = |event: Event| event.op.var().and_then(|var| names.assumed_library(var));
        let libraries: BTreeSet<&str> =
            trace.events().filter_map(|(_, event)| library(event)).collect();
        if libraries.is_empty() || trace.flow().is_some() || trace.program().is_some() {
            return None;
        }
        let mut builder = TraceBuilder::new();
        *builder.names() = names.clone();
        for (semaphore, _) in names.semaphores.entries() {
            if let Some(start) = trace.declared().start(semaphore) {
                builder.declare_start(semaphore, start);
            }
        }
        for (barrier, _) in names.barriers.entries() {
            if let Some(parties) = trace.declared().parties(barrier) {
                builder.declare_parties(barrier, parties);
            }
        }
        for (id, event) in trace.events().filter(|&(_, event)| library(event).is_none()) {
            builder.push(event.thread, event.op, event.site);
            if let Some(value) = trace.value(id) {
                builder.value(value);
            }
        }
        let libraries = libraries.into_iter().map(str::to_owned).collect();
        // Accesses of variables that nothing else accesses: without them the rest is as well formed.
        builder.finish().ok().map(|trace| Self { trace, libraries })
    }

    /// How many location sets `analysis` finds here that are not in `found`, and how far it went.
    pub(crate) fn undecided(
        &self,
        analysis: &dyn Analysis,
        settings: &Settings,
        found: &BTreeSet<Vec<&str>>,
    ) -> (u64, Coverage) {
        let settings = Settings { all: false, limit: None, ..*settings };
        let mut sink = Gathered::default();
        let coverage = analysis.run(&Subject::new(&self.trace), &settings, &mut sink);
        let witnessed = sink.findings.iter().filter(|it| it.guarantee() == Guarantee::Witnessed);
        let mut more: BTreeSet<Vec<&str>> =
            witnessed.map(|finding| finding.locations(&self.trace)).collect();
        more.retain(|locations| !found.contains(locations));
        (more.len() as u64, coverage)
    }
}
