//! Reducing: which events can happens-before, CP and WCP do without to find the racy variables?
//!
//! Plain accesses of variables that one thread alone uses, or that nobody writes, conflict with
//! nothing. And of the accesses that a thread makes to a variable between two synchronisation
//! events, the first read and the first write are enough: what is unordered with a later one is
//! unordered with the first of its kind too, the two lie in the same critical sections, and what
//! comes before the first comes before the later one.
//!
//! Promise: the reduced trace is well formed, and happens-before, CP and WCP have races on the same
//! variables of it as of the full trace. Not kept: which pairs race, how many, and at which code
//! locations; last writers, on which SHB and everything that reorders the trace rely. So witnesses
//! are sought in the full trace, and [`Reduced::events`] leads back to it.
//!
//! Only plain accesses are dropped. Empty sections stay, since an order can hinge on one, and so do
//! locks that one thread alone takes, since CP's rule (b) holds within a thread. A variable that is
//! anywhere accessed atomically stays whole: a plain write covers an atomic one, and a read
//! after it would synchronise if it were gone.
//!
//! Costs two passes, with a look-up for each access of a shared variable; keeps a few words for each
//! variable, and for each thread that accesses a shared one.
//!
//! Follows Smaragdakis, Evans, Sadowski, Yi and Flanagan, "Sound Predictive Race Detection in
//! Polynomial Time" (POPL 2012), section 5, which does not say whether a write after a read is a
//! repetition. Here it is not.

use reweave_base::{FxHashMap, IndexVec};
use reweave_order::access::{CLASSES, class};
use reweave_trace::{AccessOp, Event, EventId, LockOp, Op, ThreadId, Trace, TraceBuilder, VarId};

/// A trace without the events that change no answer about variables.
#[derive(Debug)]
pub struct Reduced {
    /// The events that are left, with the names of the full trace.
    pub trace: Trace,
    /// For each of them its id in the full trace.
    pub events: IndexVec<EventId, EventId>,
}

impl Reduced {
    /// Reduces `trace`.
    ///
    /// Values and the layers of flow and program, which no relation looks at, are left behind.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let events: IndexVec<EventId, EventId> = kept_events(trace).into_iter().collect();
        let mut builder = TraceBuilder::new();
        builder.names().clone_from(trace.names());
        for (_, &id) in events.entries() {
            let Event { thread, op, site } = trace.event(id);
            builder.push(thread, op, site);
        }
        builder.declare(trace.declared().clone());
        let trace = builder.finish().expect("no plain access is a condition of another event");
        Self { trace, events }
    }
}

/// The events of `trace` that are not dropped, in observed order.
///
/// ```
/// let trace = reweave_testkit::trace("
/// T1    T2
/// w(x)
/// w(x)
///       r(x)
/// r(z)
/// ");
/// // Nobody else accesses `z`, and of two writes in a row one will do.
/// let kept = reweave_races::reduce::kept_events(&trace);
/// assert!(kept.len() < trace.len());
/// ```
#[must_use]
pub fn kept_events(trace: &Trace) -> Vec<EventId> {
    let uses = uses(trace);
    // Segments are counted from 1, so 0 is none.
    let mut segments: IndexVec<ThreadId, u32> = IndexVec::from_elem(1, trace.names().threads.len());
    let mut accessed: FxHashMap<(ThreadId, VarId), [u32; CLASSES]> = FxHashMap::default();
    let mut is_kept = |Event { thread, op, .. }: Event| match meaning(op) {
        Meaning::Nothing => true,
        Meaning::Synchronisation => {
            segments[thread] += 1;
            true
        }
        Meaning::Access(var) => match uses[var] {
            Use::ByOne(_) | Use::Read => false,
            Use::Atomic => true,
            Use::Shared => {
                let last = &mut accessed.entry((thread, var)).or_default()[class(op)];
                std::mem::replace(last, segments[thread]) != segments[thread]
            }
        },
    };
    trace.events().filter(|&(_, event)| is_kept(event)).map(|(id, _)| id).collect()
}

/// What an operation is to the relations.
enum Meaning {
    /// A plain access.
    Access(VarId),
    /// What may order events of different threads.
    Synchronisation,
    /// What they do not look at.
    Nothing,
}

const fn meaning(op: Op) -> Meaning {
    match op {
        Op::Access(AccessOp::Read | AccessOp::UnknownRead | AccessOp::Write, var) => {
            Meaning::Access(var)
        }
        Op::Access(
            AccessOp::AtomicRead(_) | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_),
            _,
        )
        | Op::Fence(_)
        | Op::Lock(
            LockOp::Acquire | LockOp::Release | LockOp::AcquireShared | LockOp::ReleaseShared,
            _,
        )
        | Op::Thread(..)
        | Op::Condition(..)
        | Op::Barrier(..)
        | Op::Semaphore(..)
        | Op::Object(..) => Meaning::Synchronisation,
        Op::Lock(LockOp::Request | LockOp::RequestExclusive, _) | Op::Marker(_) => Meaning::Nothing,
    }
}

/// How a variable is used in the whole trace.
#[derive(Clone, Copy)]
enum Use {
    /// By no more than one thread, if by any.
    ByOne(Option<ThreadId>),
    /// By several, and nobody writes it.
    Read,
    /// By several, and someone writes it.
    Shared,
    /// By atomic accesses, perhaps among others.
    Atomic,
}

fn uses(trace: &Trace) -> IndexVec<VarId, Use> {
    let vars_count = trace.names().vars.len();
    let mut uses = IndexVec::from_elem(Use::ByOne(None), vars_count);
    let mut is_written = IndexVec::from_elem(false, vars_count);
    for (_, Event { thread, op, .. }) in trace.events() {
        let Some(var) = op.var() else { continue };
        is_written[var] |= op.is_write();
        uses[var] = match uses[var] {
            _ if op.is_atomic() => Use::Atomic,
            Use::ByOne(None) => Use::ByOne(Some(thread)),
            Use::ByOne(Some(other)) if other != thread => Use::Read,
            same => same,
        };
    }
    for (var, is_written) in is_written.entries() {
        if *is_written && matches!(uses[var], Use::Read) {
            uses[var] = Use::Shared;
        }
    }
    uses
}
