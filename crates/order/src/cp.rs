//! Causally-precedes (CP): which events keep their order in the runs that this one predicts?
//!
//! Happens-before takes every hand-over of a lock for an order. CP keeps only those that matter:
//!
//! - (a) a release comes before a later acquire of its lock if the two sections hold conflicting
//!   accesses;
//! - (b) or if the acquire of the first section comes before the release of the second by CP;
//! - (c) CP composed with happens-before, on either side, is CP.
//!
//! Edges that are no lock's (fork and join, notify, barriers, posts, atomic accesses) are CP edges
//! as they are. Two sections in shared mode give no edge. CP is not reflexive.
//!
//! By (c) the CP-predecessors of an event within a thread are a prefix of it, so a clock holds
//! them all. One pass finds the edges of rule (a) with the latest section of each thread that
//! accessed a variable under a lock; then passes over the trace carry the clocks along the
//! happens-before edges and add what rule (b) gives, found by binary search among the sections of
//! each thread, until nothing is new. An edge into an acquire is found at its release, so it works
//! backwards, and one pass is not enough; real traces take up to three.
//!
//! Exact over the whole trace: [`mod@reference`] is the definition. A pair of conflicting accesses
//! that CP leaves unordered is a race of CP. The first one is a race or a deadlock that can happen;
//! later ones are leads. Rule (b) holds, as printed, within one thread too.
//!
//! Costs events times threads for each pass; keeps a clock for each section.
//!
//! Follows Smaragdakis, Evans, Sadowski, Yi and Flanagan, "Sound Predictive Race Detection in
//! Polynomial Time" (POPL 2012), Definition 2.

pub mod reference;
mod sections;

use reweave_trace::{EventId, Op, Trace};

use crate::clock::VectorClock;
use crate::flow::Flow;
use crate::hb::HappensBefore;
use sections::{Edges, Scan};

/// The CP edges of a trace, from which clocks follow.
#[derive(Debug)]
pub struct CausallyPrecedes {
    edges: Edges,
    passes_count: usize,
}

impl CausallyPrecedes {
    /// Finds the edges of `trace`.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let mut edges = Scan::edges(trace);
        let mut passes_count = 0;
        loop {
            passes_count += 1;
            let mut clocks = Clocks::new(&edges);
            let mut found = Vec::new();
            for (id, _) in trace.events() {
                let clock = clocks.advance(trace, id);
                for &section in edges.ends.get(&id).into_iter().flatten() {
                    edges.apply_rule_b(section, clock, &mut found);
                }
            }
            if found.is_empty() {
                return Self { edges, passes_count };
            }
            for (section, source) in found {
                edges.add(section, source);
            }
        }
    }

    /// The clocks of the events, to be asked for in observed order.
    #[must_use]
    pub fn clocks(&self) -> Clocks<'_> {
        Clocks::new(&self.edges)
    }

    /// How many passes over the trace it took, the one that found nothing new included.
    #[must_use]
    pub const fn passes_count(&self) -> usize {
        self.passes_count
    }
}

/// The CP clocks after the events so far.
#[derive(Debug)]
pub struct Clocks<'a> {
    edges: &'a Edges,
    happens_before: HappensBefore,
    flow: Flow,
    /// Room for a clock that is sent along a hard edge.
    hard: VectorClock,
}

impl<'a> Clocks<'a> {
    fn new(edges: &'a Edges) -> Self {
        let (happens_before, flow) = (HappensBefore::new(), Flow::default());
        Self { edges, happens_before, flow, hard: VectorClock::default() }
    }

    /// Takes the next event of `trace` in observed order and gives its clock: the events that
    /// come before it by CP. Its own thread's earlier events need not be among them.
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        let happening = trace.event(event);
        let op = happening.op;
        let mut clock = self.flow.take(happening.thread);
        self.flow.receive(trace, event, happening, &mut clock);
        if let Op::Join(child) = op
            && trace.lifetime(child).first.is_some()
            && let Some(last) = self.happens_before.of_thread(child)
        {
            clock.join(last);
        }
        if let Some(section) = self.edges.starts.get(&event) {
            clock.join(&self.edges.into[*section]);
        }
        let happened = self.happens_before.advance(trace, event);
        if is_hard_source(op) {
            self.hard.copy_from(&clock);
            self.hard.join(happened);
            self.flow.send(trace, event, happening, &clock, &self.hard);
        } else {
            self.flow.send(trace, event, happening, &clock, &clock);
        }
        self.flow.put(happening.thread, clock)
    }
}

/// Whether an edge that is no lock's starts at `op`.
const fn is_hard_source(op: Op) -> bool {
    matches!(
        op,
        Op::Fork(_)
            | Op::Notify(_)
            | Op::NotifyAll(_)
            | Op::Arrive(_)
            | Op::Post(_)
            | Op::AtomicWrite(..)
            | Op::AtomicUpdate(..)
            | Op::Alloc(_)
    )
}
