//! Posets of events: chains, one per thread, and what comes before what between them.
//!
//! A poset is kept as vector clocks. The clock of an event says, for each chain, how many of its
//! events come before the event or are it; so one row of numbers per event is the whole order. A
//! *cut* says how many of each chain's first events have happened. It is *consistent*, a global
//! state, if with an event it holds all that come before it: [`Poset::is_consistent`].
//!
//! [`PosetBuilder`] takes the events in some order that keeps the poset's own (`→p` in the paper)
//! and refuses clocks that are of no order. [`TracePoset`] makes the poset of a trace.
//!
//! Keeps a number for each event and chain. What would take more than [`ENTRIES_MAX`] of them is
//! refused.
//!
//! Follows Chang and Garg, "A parallel algorithm for global states enumeration in concurrent
//! systems" (PPoPP 2015), section 2, with clocks after Mattern (1989) and Fidge (1988).

use std::convert::Infallible;

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::{
    AccessOp, BarrierId, ConditionId, ConditionOp, EventId, LockOp, Op, ThreadId, Trace, VarId,
};

use crate::clock::VectorClock;
use crate::edge_clocks::EdgeClocks;
use crate::hb::HappensBefore;

reweave_base::id! {
    /// A chain of a poset: the events of one thread.
    pub struct ChainId;
}

/// The most numbers that the clocks of a poset may have together.
pub const ENTRIES_MAX: usize = 1 << 27;

/// The most chains of a poset.
pub const CHAINS_MAX: usize = 1 << 16;

/// Events in chains, partially ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poset {
    /// The clocks of each chain's events, end to end.
    clocks: IndexVec<ChainId, Vec<u32>>,
    /// The chain of each event, in the order in which they were added.
    order: Vec<ChainId>,
    /// The clock before a chain's first event.
    zeros: Vec<u32>,
}

impl Poset {
    /// How many chains there are.
    #[must_use]
    pub fn chains_count(&self) -> usize {
        self.clocks.len()
    }

    /// The chains.
    pub fn chains(&self) -> impl ExactSizeIterator<Item = ChainId> + use<> {
        (0..self.clocks.len()).map(ChainId::from_index)
    }

    /// How many events there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no events.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// How many events `chain` has.
    #[inline]
    #[must_use]
    pub fn length(&self, chain: ChainId) -> u32 {
        // A chain with events has a clock, so there is at least one number in a row.
        (self.clocks[chain].len() / self.zeros.len().max(1)) as u32
    }

    /// The clock of event `index` of `chain`, counted from 1; all zeros for 0, before the first.
    ///
    /// # Panics
    /// If there is no such event.
    #[inline]
    #[must_use]
    pub fn clock(&self, chain: ChainId, index: u32) -> &[u32] {
        let width = self.zeros.len();
        match index {
            0 => &self.zeros,
            _ => &self.clocks[chain][(index as usize - 1) * width..index as usize * width],
        }
    }

    /// The chain of each event, in an order that keeps the poset's own.
    #[must_use]
    pub fn order(&self) -> &[ChainId] {
        &self.order
    }

    /// The events in an order that keeps the poset's own, each with its chain and its index there.
    pub fn events(&self) -> impl Iterator<Item = (ChainId, u32)> {
        let mut lengths = IndexVec::from_elem(0_u32, self.chains_count());
        self.order.iter().map(move |&chain| {
            lengths[chain] += 1;
            (chain, lengths[chain])
        })
    }

    /// The cut that holds every event.
    #[must_use]
    pub fn top(&self) -> Vec<u32> {
        self.chains().map(|chain| self.length(chain)).collect()
    }

    /// Whether `cut` holds, with an event, all that come before it.
    ///
    /// # Panics
    /// If it has not one number a chain, or more events of a chain than there are.
    #[must_use]
    pub fn is_consistent(&self, cut: &[u32]) -> bool {
        assert_eq!(cut.len(), self.chains_count(), "a cut has one number a chain");
        let holds = |(chain, &index)| {
            let clock = self.clock(ChainId::from_index(chain), index);
            clock.iter().zip(cut).all(|(needed, held)| needed <= held)
        };
        cut.iter().enumerate().all(holds)
    }

    /// The least order of the same events that holds this one and in which those of a `group`, if
    /// they have one, come as they are listed. Costs the square of the chains an event.
    #[must_use]
    pub fn ordered(&self, group: impl Fn(ChainId, u32) -> Option<usize>) -> Self {
        let mut ordered = Self {
            clocks: IndexVec::from_elem(Vec::new(), self.chains_count()),
            order: self.order.clone(),
            zeros: self.zeros.clone(),
        };
        let mut lasts: FxHashMap<usize, (ChainId, u32)> = FxHashMap::default();
        for (chain, index) in self.events() {
            let mut clock = self.clock(chain, index).to_vec();
            let group = group(chain, index);
            let last = group.and_then(|group| lasts.insert(group, (chain, index)));
            let before = self.clock(chain, index).iter().enumerate().map(|(other, &held)| {
                let other = ChainId::from_index(other);
                (other, if other == chain { index - 1 } else { held })
            });
            for (other, held) in before.chain(last) {
                let needed = ordered.clock(other, held);
                clock.iter_mut().zip(needed).for_each(|(own, &needed)| *own = needed.max(*own));
            }
            ordered.clocks[chain].extend(clock);
        }
        ordered
    }
}

/// Takes the events of a poset one by one.
#[derive(Clone, Debug)]
pub struct PosetBuilder {
    poset: Poset,
}

impl PosetBuilder {
    /// A poset of `chains_count` chains without events.
    ///
    /// # Errors
    /// If there are more than [`CHAINS_MAX`].
    pub fn new(chains_count: usize) -> Result<Self, IllFormedPoset> {
        if chains_count > CHAINS_MAX {
            return Err(IllFormedPoset::ChainsCount { count: chains_count });
        }
        let clocks = IndexVec::from_elem(Vec::new(), chains_count);
        let zeros = vec![0; chains_count];
        Ok(Self { poset: Poset { clocks, order: Vec::new(), zeros } })
    }

    /// The poset so far.
    #[must_use]
    pub const fn so_far(&self) -> &Poset {
        &self.poset
    }

    /// Adds the next event of the chain with index `chain`, by its clock. What comes before it was
    /// added before it.
    ///
    /// # Errors
    /// If the clock is not that of an order, or the poset becomes too large; nothing is added then.
    pub fn push(&mut self, chain: usize, clock: &[u32]) -> Result<(), IllFormedPoset> {
        self.check(chain, clock)?;
        self.push_unchecked(ChainId::from_index(chain), clock)
    }

    /// Adds an event whose clock is known to be right.
    pub(crate) fn push_unchecked(
        &mut self,
        chain: ChainId,
        clock: &[u32],
    ) -> Result<(), IllFormedPoset> {
        let poset = &mut self.poset;
        let entries = (poset.order.len() + 1).saturating_mul(clock.len());
        if entries > ENTRIES_MAX || poset.order.len() >= u32::MAX as usize {
            let chains_count = poset.chains_count();
            return Err(IllFormedPoset::TooLarge { chains_count });
        }
        poset.clocks[chain].extend_from_slice(clock);
        poset.order.push(chain);
        Ok(())
    }

    fn check(&self, chain: usize, clock: &[u32]) -> Result<(), IllFormedPoset> {
        let poset = &self.poset;
        let chains_count = poset.chains_count();
        if chain >= chains_count {
            return Err(IllFormedPoset::Chain { chain, chains_count });
        }
        if clock.len() != chains_count {
            return Err(IllFormedPoset::Width { found: clock.len(), chains_count });
        }
        let own = poset.length(ChainId::from_index(chain)) + 1;
        if clock[chain] != own {
            return Err(IllFormedPoset::Own { chain, found: clock[chain], expected: own });
        }
        for (other, &index) in clock.iter().enumerate() {
            let id = ChainId::from_index(other);
            // Of its own chain, what it must hold is what the event before it held.
            let index = if other == chain { index - 1 } else { index };
            if index > poset.length(id) {
                return Err(IllFormedPoset::Later { other, index, length: poset.length(id) });
            }
            let needed = poset.clock(id, index).iter().zip(clock).position(|(a, b)| a > b);
            if let Some(third) = needed {
                let needed = poset.clock(id, index)[third];
                let found = clock[third];
                return Err(IllFormedPoset::Open { other, index, third, needed, found });
            }
        }
        Ok(())
    }

    /// The poset of the events so far.
    #[must_use]
    pub fn finish(self) -> Poset {
        self.poset
    }
}

/// Why some clocks are not those of a poset, or of one too large. Chains count from 0, as indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages explain the fields")]
pub enum IllFormedPoset {
    /// There are too many chains.
    #[error("expected at most {CHAINS_MAX} threads, found {count}")]
    ChainsCount { count: usize },
    /// The clocks would take too much memory.
    #[error("the poset is too large: with {chains_count} threads there is room for the clocks of \
             {} events", ENTRIES_MAX / (*chains_count).max(1))]
    TooLarge { chains_count: usize },
    /// There is no such chain.
    #[error("expected a thread below {chains_count}, found {chain}")]
    Chain { chain: usize, chains_count: usize },
    /// A clock does not have one number per chain.
    #[error("expected a clock of {chains_count} numbers, one per thread, found {found}")]
    Width { found: usize, chains_count: usize },
    /// A clock's own number is not the index of its event.
    #[error(
        "expected {expected} as the clock's number of thread {chain}, whose event this is, \
             found {found}"
    )]
    Own { chain: usize, found: u32, expected: u32 },
    /// A clock holds an event that was not added yet.
    #[error(
        "the clock holds {index} events of thread {other}, of which {length} were listed \
             before: list each event after what comes before it"
    )]
    Later { other: usize, index: u32, length: u32 },
    /// A clock holds an event but not what comes before that. The index is 0 if the event is the one
    /// before in the same chain and there is none.
    #[error(
        "the clock holds event {index} of thread {other}, before which {needed} events of \
             thread {third} come, but only {found} of those"
    )]
    Open { other: usize, index: u32, third: usize, needed: u32, found: u32 },
}

// The poset of a trace, or of those of its events that matter.
//
// What is left out takes its place in the order with it: of two events that are kept one comes
// before the other exactly if it did. A global state of the smaller poset is what some global
// states of the larger one have of it, and each of those has one.

/// Which order a poset of a trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Happens-before, the paper's. Past a read that races, a state may be one that no run
    /// reaches.
    HappensBefore,
    /// Trace-order-preserving: each state is one that a run reaches. See [`TraceOrder`].
    TraceOrderPreserving,
}

impl Relation {
    /// How commands and reports spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HappensBefore => "hb",
            Self::TraceOrderPreserving => "preserving",
        }
    }
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventRole {
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
pub const fn raw(_: &Trace, _: EventId) -> EventRole {
    EventRole::Event
}

/// The paper's event collections: accesses of a thread with nothing between them that
/// synchronises are one event; what neither accesses nor synchronises is left out.
#[must_use]
pub fn collections(trace: &Trace, event: EventId) -> EventRole {
    match trace.event(event).op {
        Op::Access(AccessOp::Read | AccessOp::Write | AccessOp::UnknownRead, _) => {
            EventRole::Collected
        }
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
        | Op::Object(..) => EventRole::Event,
        Op::Fence(_) | Op::Lock(LockOp::Request | LockOp::RequestExclusive, _) | Op::Marker(_) => {
            EventRole::Outside
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
        place: impl Fn(&Trace, EventId) -> EventRole,
    ) -> Result<Self, IllFormedPoset> {
        let mut is_kept = IndexVec::from_elem(false, trace.names().threads.len());
        for (id, event) in trace.events() {
            if !is_kept[event.thread] && place(trace, id) != EventRole::Outside {
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
        place: impl Fn(&Trace, EventId) -> EventRole,
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
        Relation::TraceOrderPreserving => {
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
        place: &impl Fn(&Trace, EventId) -> EventRole,
    ) -> Result<(), IllFormedPoset> {
        let thread = trace.event(event).thread;
        let Some(chain) = self.chains[thread] else { return Ok(()) };
        let place = place(trace, event);
        if place == EventRole::Outside {
            return Ok(());
        }
        for (other, &thread) in self.threads.entries() {
            let held = clock.get(thread);
            self.clock[other.index()] =
                self.numbers[other].partition_point(|&number| number <= held) as u32;
        }
        let last = self.builder.so_far().length(chain);
        if place == EventRole::Collected
            && self.is_open[chain]
            && self.builder.so_far().clock(chain, last) == self.clock
        {
            return Ok(());
        }
        self.clock[chain.index()] = last + 1;
        self.builder.push_unchecked(chain, &self.clock)?;
        self.firsts[chain].push(event);
        self.numbers[chain].push(clock.get(thread));
        self.is_open[chain] = place == EventRole::Collected;
        Ok(())
    }
}

/// The clocks of the trace-order-preserving relation after the events so far.
///
/// Happens-before; each read after the write that it saw; and, of each condition and each barrier,
/// every event after those before it, the begin of a wait among them. A set of events that holds,
/// with an event, all that come before it by this order is a correct reordering when it is run as observed: each read finds its
/// writer, each acquire the releases before it, each wait what it was woken by and each notify the
/// waits that it found. So a global state of this order is one that some run reaches.
///
/// It is schedulable happens-before ([`shb`](crate::shb)) with its exception taken away. Reads of
/// unknown writers come after no write. Not promised: that a set that is not closed in this way
/// could not have happened.
///
/// Costs what schedulable happens-before costs, and a clock operation at each event of a condition
/// or a barrier.
#[derive(Debug)]
pub struct TraceOrder {
    clocks: EdgeClocks,
    writes: IndexVec<VarId, VectorClock>,
    conditions: IndexVec<ConditionId, VectorClock>,
    barriers: IndexVec<BarrierId, VectorClock>,
    /// The releases that waits begin with.
    begins: FxHashMap<EventId, ConditionId>,
}

impl TraceOrder {
    /// The clocks before any event of `trace`.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let begins = trace
            .signals()
            .wait_intervals()
            .iter()
            .filter(|interval| interval.begin != interval.wait);
        let begins = begins.filter_map(|interval| match trace.event(interval.wait).op {
            Op::Condition(ConditionOp::Wait, condition) => Some((interval.begin, condition)),
            _ => None,
        });
        Self {
            begins: begins.collect(),
            clocks: EdgeClocks::closed(),
            writes: IndexVec::new(),
            conditions: IndexVec::new(),
            barriers: IndexVec::new(),
        }
    }

    /// Takes the next event of `trace` in observed order and gives its clock: what comes before
    /// it, itself included.
    pub fn advance(&mut self, trace: &Trace, event: EventId) -> &VectorClock {
        let happening = trace.event(event);
        let thread = happening.thread;
        let mut clock = self.clocks.take(thread);
        self.clocks.receive(trace, event, happening, &mut clock);
        clock.tick(thread);
        if let Some(&condition) = self.begins.get(&event) {
            meet(self.conditions.get_or_default(condition), &mut clock);
        }
        match happening.op {
            Op::Access(AccessOp::Read | AccessOp::AtomicRead(_), var) => {
                clock.join(self.writes.get_or_default(var));
            }
            Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_), var) => {
                self.writes.get_or_default(var).copy_from(&clock);
            }
            Op::Access(AccessOp::AtomicUpdate(_), var) => {
                meet(self.writes.get_or_default(var), &mut clock);
            }
            Op::Condition(_, condition) => {
                meet(self.conditions.get_or_default(condition), &mut clock);
            }
            Op::Barrier(_, barrier) => {
                meet(self.barriers.get_or_default(barrier), &mut clock);
            }
            Op::Access(AccessOp::UnknownRead, _)
            | Op::Fence(_)
            | Op::Lock(..)
            | Op::Thread(..)
            | Op::Semaphore(..)
            | Op::Object(..)
            | Op::Marker(_) => {}
        }
        self.clocks.send(trace, event, happening, &clock, &clock);
        self.clocks.put(thread, clock)
    }
}

/// Puts an event with `clock` after all that `last` holds, and lets the next come after it.
fn meet(last: &mut VectorClock, clock: &mut VectorClock) {
    clock.join(last);
    last.copy_from(clock);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chain of an event and its clock.
    type Listed<'a> = (usize, &'a [u32]);

    fn poset(chains_count: usize, events: &[Listed<'_>]) -> Result<Poset, IllFormedPoset> {
        let mut builder = PosetBuilder::new(chains_count)?;
        for (chain, clock) in events {
            builder.push(*chain, clock)?;
        }
        Ok(builder.finish())
    }

    /// Figure 4 of the paper.
    fn crossed() -> Poset {
        poset(2, &[(0, &[1, 0]), (1, &[0, 1]), (0, &[2, 1]), (1, &[1, 2])]).unwrap()
    }

    #[test]
    fn a_cut_is_consistent_if_it_holds_what_comes_before_what_it_holds() {
        let poset = crossed();
        let consistent: Vec<[u32; 2]> = (0..9)
            .map(|code| [code / 3, code % 3])
            .filter(|cut| poset.is_consistent(cut))
            .collect();
        assert_eq!(consistent, [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [2, 1], [2, 2]]);
        assert_eq!((poset.len(), poset.top()), (4, vec![2, 2]));
    }

    #[test]
    fn clocks_of_no_order_are_refused_with_the_reason() {
        let cases: [(&[Listed<'_>], &str); 7] = [
            (&[(2, &[1, 0])], "expected a thread below 2, found 2"),
            (&[(0, &[1])], "expected a clock of 2 numbers, one per thread, found 1"),
            (
                &[(0, &[2, 0])],
                "expected 1 as the clock's number of thread 0, whose event this is, found 2",
            ),
            (
                &[(0, &[0, 0])],
                "expected 1 as the clock's number of thread 0, whose event this is, found 0",
            ),
            (
                &[(0, &[1, 1])],
                "the clock holds 1 events of thread 1, of which 0 were listed before: list each \
                 event after what comes before it",
            ),
            (
                &[(0, &[1, 0]), (1, &[1, 1]), (1, &[0, 2])],
                "the clock holds event 1 of thread 1, before which 1 events of thread 0 come, but \
                 only 0 of those",
            ),
            (
                &[(1, &[0, 1]), (0, &[1, 1]), (0, &[2, 0])],
                "the clock holds event 1 of thread 0, before which 1 events of thread 1 come, but \
                 only 0 of those",
            ),
        ];
        for (events, reason) in cases {
            assert_eq!(poset(2, events).unwrap_err().to_string(), reason);
        }
        assert!(PosetBuilder::new(CHAINS_MAX + 1).is_err());
    }

    #[test]
    fn a_poset_without_chains_has_one_state() {
        let poset = poset(0, &[]).unwrap();
        assert!(poset.is_empty() && poset.is_consistent(&[]));
    }

    #[test]
    fn the_events_of_a_group_come_as_they_are_listed_and_what_follows_follows() {
        let free = poset(3, &[(0, &[1, 0, 0]), (1, &[0, 1, 0]), (2, &[0, 1, 1])]).unwrap();
        let in_group = |chain: ChainId, _| (chain.index() < 2).then_some(7);
        let ordered = free.ordered(in_group);
        let clocks = [0, 1, 2].map(|chain| ordered.clock(ChainId::from_index(chain), 1).to_vec());
        assert_eq!(clocks, [[1, 0, 0], [1, 1, 0], [1, 1, 1]]);
        assert_eq!(free.ordered(|_, _| None), free);
        assert_eq!(free.ordered(|chain, _| Some(chain.index())), free);
    }
}
