//! The poset of a trace, or of those of its events that matter.
//!
//! What is left out takes its place in the order with it: of two events that are kept one comes
//! before the other exactly if it did. A global state of the smaller poset is what some global
//! states of the larger one have of it, and each of those has one.

use std::convert::Infallible;

use reweave_base::{Id, IndexVec};
use reweave_trace::{AccessOp, EventId, LockOp, Op, ThreadId, Trace};

use super::{ChainId, IllFormedPoset, Poset, PosetBuilder, TraceOrder};
use crate::clock::VectorClock;
use crate::hb::HappensBefore;

/// Which order a poset of a trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Happens-before, the paper's. Past a read that races, a state may be one that no run
    /// reaches.
    HappensBefore,
    /// What every cut of the run keeps: each state is one that a run reaches. See [`TraceOrder`].
    Kept,
}

impl Relation {
    /// How commands and reports spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HappensBefore => "hb",
            Self::Kept => "kept",
        }
    }
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is an event of the poset.
    Event,
    /// It is part of the event before it in its thread if that was made of such, nothing else of
    /// its thread was kept since and nothing new comes before it; else it starts an event.
    Collected,
    /// It is left out.
    Outside,
}

/// A poset whose events are those of a trace.
#[derive(Clone, Debug)]
pub struct TracePoset {
    poset: Poset,
    relation: Relation,
    threads: IndexVec<ChainId, ThreadId>,
    /// For each chain the trace's events that its events start with.
    firsts: IndexVec<ChainId, Vec<EventId>>,
}

/// Every event is one of the poset.
#[must_use]
pub const fn raw(_: &Trace, _: EventId) -> Place {
    Place::Event
}

/// The paper's event collections: accesses of a thread with nothing between them that
/// synchronises are one event; what neither accesses nor synchronises is left out.
#[must_use]
pub fn collections(trace: &Trace, event: EventId) -> Place {
    match trace.event(event).op {
        Op::Access(AccessOp::Read | AccessOp::Write | AccessOp::UnknownRead, _) => Place::Collected,
        Op::Access(
            AccessOp::AtomicRead(_) | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_),
            _,
        )
        | Op::Lock(
            LockOp::Acquire | LockOp::Release | LockOp::AcquireShared | LockOp::ReleaseShared,
            _,
        )
        | Op::Thread(..)
        | Op::Condition(..)
        | Op::Barrier(..)
        | Op::Semaphore(..)
        | Op::Object(..) => Place::Event,
        Op::Fence(_) | Op::Lock(LockOp::Request, _) | Op::Block(..) | Op::Branch | Op::Let(_) => {
            Place::Outside
        }
    }
}

impl TracePoset {
    /// The poset of the events of `trace` that `place` keeps, by `relation`. Its chains are the
    /// threads with such events, in the order of their ids.
    ///
    /// # Errors
    /// If it has too many chains or would take too much memory.
    pub fn new(
        trace: &Trace,
        relation: Relation,
        place: impl Fn(&Trace, EventId) -> Place,
    ) -> Result<Self, IllFormedPoset> {
        let mut is_kept = IndexVec::from_elem(false, trace.names().threads.len());
        for (id, event) in trace.events() {
            if !is_kept[event.thread] && place(trace, id) != Place::Outside {
                is_kept[event.thread] = true;
            }
        }
        let threads = is_kept.entries().filter(|&(_, &kept)| kept).map(|(thread, _)| thread);
        Self::of_threads(trace, relation, threads.collect(), place)
    }

    /// The poset of the events of `threads` that `place` keeps, by `relation`; each thread is a
    /// chain, if it has such events or not.
    ///
    /// # Errors
    /// If it has too many chains or would take too much memory.
    pub fn of_threads(
        trace: &Trace,
        relation: Relation,
        threads: IndexVec<ChainId, ThreadId>,
        place: impl Fn(&Trace, EventId) -> Place,
    ) -> Result<Self, IllFormedPoset> {
        let mut gathering = Gathering::new(trace, threads)?;
        let all = trace.events().map(|(id, _)| id);
        each_clock(trace, relation, all, |event, clock| {
            gathering.take(trace, event, clock, &place)
        })?;
        let Gathering { builder, threads, firsts, .. } = gathering;
        Ok(Self { poset: builder.finish(), relation, threads, firsts })
    }

    /// The poset.
    #[must_use]
    pub const fn poset(&self) -> &Poset {
        &self.poset
    }

    /// Which order it has.
    #[must_use]
    pub const fn relation(&self) -> Relation {
        self.relation
    }

    /// The thread of each chain.
    #[must_use]
    pub const fn threads(&self) -> &IndexVec<ChainId, ThreadId> {
        &self.threads
    }

    /// The event of the trace that event `index` of `chain`, counted from 1, is or starts with.
    #[must_use]
    pub fn first(&self, chain: ChainId, index: u32) -> Option<EventId> {
        index.checked_sub(1).map(|index| self.firsts[chain][index as usize])
    }

    /// The least cut of the trace that holds the events of `cut`, collections by their first: how
    /// many events each thread has run. Goes through the trace up to the last of them.
    #[must_use]
    pub fn in_trace(&self, trace: &Trace, cut: &[u32]) -> IndexVec<ThreadId, u32> {
        let held = self.poset.chains().zip(cut);
        let frontier: Vec<EventId> =
            held.filter_map(|(chain, &index)| self.first(chain, index)).collect();
        least_cut(trace, self.relation, &frontier)
    }
}

/// The least cut of `trace` that holds `events` and all that comes before them by `relation`: how
/// many events each thread has run. Goes through the trace up to the last of them.
#[must_use]
pub fn least_cut(trace: &Trace, relation: Relation, events: &[EventId]) -> IndexVec<ThreadId, u32> {
    let mut joined = VectorClock::default();
    let Some(&last) = events.iter().max() else { return joined.to_cut() };
    let all = trace.events().map(|(id, _)| id).take_while(|&id| id <= last);
    each_clock(trace, relation, all, |event, clock| {
        if events.contains(&event) {
            joined.join(clock);
        }
        Ok::<_, Infallible>(())
    })
    .unwrap_or_else(|never| match never {});
    joined.to_cut()
}

/// Hands `take` each of `events`, the first of `trace` in observed order, with its clock.
fn each_clock<E>(
    trace: &Trace,
    relation: Relation,
    events: impl Iterator<Item = EventId>,
    mut take: impl FnMut(EventId, &VectorClock) -> Result<(), E>,
) -> Result<(), E> {
    match relation {
        Relation::HappensBefore => {
            let mut order = HappensBefore::new();
            for event in events {
                take(event, order.advance(trace, event))?;
            }
        }
        Relation::Kept => {
            let mut order = TraceOrder::new(trace);
            for event in events {
                take(event, order.advance(trace, event))?;
            }
        }
    }
    Ok(())
}

/// A poset in the making.
struct Gathering {
    builder: PosetBuilder,
    threads: IndexVec<ChainId, ThreadId>,
    chains: IndexVec<ThreadId, Option<ChainId>>,
    firsts: IndexVec<ChainId, Vec<EventId>>,
    /// For each chain the numbers, in their thread, of the events in `firsts`.
    numbers: IndexVec<ChainId, Vec<u32>>,
    /// Whether the last event of each chain is a collection that can go on.
    is_open: IndexVec<ChainId, bool>,
    /// The clock of the event at hand.
    clock: Vec<u32>,
}

impl Gathering {
    fn new(trace: &Trace, threads: IndexVec<ChainId, ThreadId>) -> Result<Self, IllFormedPoset> {
        let mut chains = IndexVec::from_elem(None, trace.names().threads.len());
        for (chain, &thread) in threads.entries() {
            chains[thread] = Some(chain);
        }
        let count = threads.len();
        Ok(Self {
            builder: PosetBuilder::new(count)?,
            chains,
            threads,
            firsts: IndexVec::from_elem(Vec::new(), count),
            numbers: IndexVec::from_elem(Vec::new(), count),
            is_open: IndexVec::from_elem(false, count),
            clock: vec![0; count],
        })
    }

    /// Takes the next event of the trace, whose clock is `clock`.
    fn take(
        &mut self,
        trace: &Trace,
        event: EventId,
        clock: &VectorClock,
        place: &impl Fn(&Trace, EventId) -> Place,
    ) -> Result<(), IllFormedPoset> {
        let thread = trace.event(event).thread;
        let Some(chain) = self.chains[thread] else { return Ok(()) };
        let place = place(trace, event);
        if place == Place::Outside {
            return Ok(());
        }
        for (other, &thread) in self.threads.entries() {
            let held = clock.get(thread);
            self.clock[other.index()] =
                self.numbers[other].partition_point(|&number| number <= held) as u32;
        }
        let last = self.builder.so_far().length(chain);
        if place == Place::Collected
            && self.is_open[chain]
            && self.builder.so_far().clock(chain, last) == self.clock
        {
            return Ok(());
        }
        self.clock[chain.index()] = last + 1;
        self.builder.push_unchecked(chain, &self.clock)?;
        self.firsts[chain].push(event);
        self.numbers[chain].push(clock.get(thread));
        self.is_open[chain] = place == Place::Collected;
        Ok(())
    }
}
