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
//! as they are. Two sections in shared mode give no edge. CP is not reflexive. A section that is
//! open at the end is taken to end with its thread, and no edge starts from it.
//!
//! By (c) the CP-predecessors of an event within a thread are a prefix of it, so a clock holds
//! them all, and it changes only where a thread synchronises. One pass over the events leaves the
//! skeleton of such steps. Lock by lock, the latest section of each thread that accessed a variable
//! gives the edges of rule (a). Then sweeps over the skeleton carry the clocks along the
//! happens-before edges and add what rule (b) gives, until nothing is new. An edge into an acquire
//! is found at its release, so it works backwards, and one sweep is not enough; real traces take
//! up to three. What happens before a release is worked out again in each sweep and kept only
//! while an edge that starts there has not ended, and an edge that the others make needless is
//! dropped, so there are about as many edges as there are sections, and mostly far fewer.
//!
//! Exact over the whole trace: `oracle::cp` is the definition. A pair of conflicting accesses
//! that CP leaves unordered is a race of CP. The first one is a race or a deadlock that can happen,
//! if sections are well nested; later ones are leads, and [`first_races`] gives more that are not.
//! Rule (b) holds, as printed, within one thread too. [`CausallyPrecedes::within`] presumes order
//! between sections far apart, as the paper does to bound its cost.
//!
//! Costs a constant an event, and steps times threads for each sweep. Keeps some tens of bytes a
//! step and a section, a clock for each thread and lock, and one for each section that is open or
//! from which an edge has still to end.
//!
//! Follows Smaragdakis, Evans, Sadowski, Yi and Flanagan, "Sound Predictive Race Detection in
//! Polynomial Time" (POPL 2012), Definition 2.

mod closure;
mod conflicts;
mod edges;
mod first;
mod shelf;
mod skeleton;
mod sweep;

use reweave_base::Id;
use reweave_trace::{EventId, ThreadId, Trace};

use crate::clock::VectorClock;
use conflicts::Search;
use edges::{Edges, Locks};
use skeleton::{Scan, Skeleton};
use sweep::Sweep;

pub use first::first_races;

/// The CP edges of a trace, from which clocks follow.
#[derive(Debug)]
pub struct CausallyPrecedes {
    skeleton: Skeleton,
    edges: Edges,
    passes_count: usize,
}

impl CausallyPrecedes {
    /// Finds the edges of `trace`.
    ///
    /// ```
    /// use reweave_order::cp::CausallyPrecedes;
    ///
    /// let trace = reweave_testkit::trace("
    /// T1      T2
    /// acq(m)
    /// w(x)
    /// rel(m)
    ///         acq(m)
    ///         r(x)
    ///         rel(m)
    ///         w(y)
    /// ");
    /// let t1 = trace.events().next().unwrap().1.thread;
    /// let order = CausallyPrecedes::new(&trace);
    /// let mut clocks = order.clocks();
    /// // These sections conflict, so the hand-over of their lock counts.
    /// let known = trace.events().map(|(event, _)| clocks.advance(&trace, event).get(t1)).last();
    /// assert_eq!(known, Some(3));
    /// ```
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        Self::with(trace, None, &[])
    }

    /// Finds the edges of `trace`, and presumes one from each section to those on the same lock
    /// that end more than `window` events after it began, unless both are in shared mode.
    ///
    /// The clocks hold all that those of [`Self::new`] hold. What they leave unordered is a race of
    /// CP, if the caller reports only pairs that lie less than `window` events apart: of others
    /// the window knows too little to be worth reporting.
    #[must_use]
    pub fn within(trace: &Trace, window: usize) -> Self {
        Self::with(trace, Some(window), &[])
    }

    /// Finds the edges of `trace` with `added` to its hard edges, each from an earlier event to a
    /// later one of another thread.
    fn with(trace: &Trace, window: Option<usize>, added: &[(EventId, EventId)]) -> Self {
        let (skeleton, accesses) = Scan::run(trace, added);
        let by_lock = edges::by_lock(&skeleton);
        let locks = Locks::new(&skeleton, &by_lock);
        let vars_count = trace.names().vars.len();
        let conflicts = Search::edges(&skeleton, &accesses, &by_lock, &locks, vars_count, window);
        drop((accesses, by_lock));
        let (edges, passes_count) = closure::close(&skeleton, &locks, conflicts);
        Self { skeleton, edges, passes_count }
    }

    /// The clocks of the events, to be asked for in observed order.
    #[must_use]
    pub fn clocks(&self) -> Clocks<'_> {
        Clocks { sweep: Sweep::new(&self.skeleton, &self.edges) }
    }

    /// How many passes it took, the one that found nothing new included.
    #[must_use]
    pub const fn passes_count(&self) -> usize {
        self.passes_count
    }
}

/// The CP clocks after the events so far.
#[derive(Debug)]
pub struct Clocks<'a> {
    sweep: Sweep<'a>,
}

impl Clocks<'_> {
    /// Takes the next event of `trace` in observed order and gives its clock: the events that
    /// come before it by CP. Its own thread's earlier events need not be among them.
    ///
    /// Events whose clocks nobody needs may be left out. An access costs a look at its thread.
    #[inline]
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        while self.sweep.next().is_some_and(|step| step.event <= event) {
            self.sweep.advance();
        }
        let thread = trace.columns().threads[event.index()];
        self.sweep.causal(ThreadId::from_index(thread as usize))
    }
}
