//! The events inserted so far, as far as an interval to come can need them, and the intervals.
//!
//! The clock of a thread's next event includes the clock of its last one. So take, for thread t,
//! the minimum of the entries for t in the clocks of all running threads: no interval of a later
//! event has a state in which t has run fewer events, and earlier events of t can be dropped. If a
//! thread appears that nobody declared, or there were too many events to keep, some that an
//! interval needs may be gone. The interval then starts at the least state whose events are all
//! there, and [`Interval::is_whole`] says that it is not the whole one.
//!
//! An insertion costs the number of threads. Dropping, once in [`CHUNK`] insertions, costs its
//! square.

use std::sync::{Arc, OnceLock};

use reweave_base::{Id, IndexVec};
use reweave_order::poset::{CHAINS_MAX, ChainId};

/// How many events of a thread are stored, and dropped, together.
const CHUNK: u32 = 64;

/// An inserted event.
#[derive(Debug)]
struct Event<L> {
    /// For each thread the number of its events up to this one; threads that are not listed have 0.
    clock: Box<[u32]>,
    label: L,
}

/// The events of one thread, without the first ones, which were dropped.
///
/// An event is written once, before any interval with it exists, and never changes. So searches
/// read their intervals without a lock while events are added behind them, and a dropped chunk is
/// freed when the last interval with it is.
#[derive(Debug)]
struct ThreadLog<L> {
    /// How many chunks were dropped.
    dropped: u32,
    chunks: Vec<Arc<[OnceLock<Event<L>>]>>,
}

// Not derived: a copy shares its chunks, so labels need not be `Clone` or `Default`.
impl<L> Clone for ThreadLog<L> {
    fn clone(&self) -> Self {
        Self { dropped: self.dropped, chunks: self.chunks.clone() }
    }
}

impl<L> Default for ThreadLog<L> {
    fn default() -> Self {
        Self { dropped: 0, chunks: Vec::new() }
    }
}

impl<L> ThreadLog<L> {
    /// Event `index`, counted from 1, if it is stored.
    fn event(&self, index: u32) -> Option<&Event<L>> {
        let offset = index.checked_sub(1)?;
        let chunk = (offset / CHUNK).checked_sub(self.dropped)?;
        self.chunks.get(chunk as usize)?[(offset % CHUNK) as usize].get()
    }

    /// The least number of events that the thread can have run in a state whose events are stored:
    /// a state needs the clock and label of each thread's last event.
    const fn floor(&self) -> u32 {
        if self.dropped == 0 { 0 } else { self.dropped * CHUNK + 1 }
    }

    /// Adds event `index`, the one after the last.
    fn push(self: &mut Arc<Self>, index: u32, event: Event<L>) {
        let offset = index - 1;
        let chunk = (offset / CHUNK - self.dropped) as usize;
        if chunk == self.chunks.len() {
            let slots = (0..CHUNK).map(|_| OnceLock::new()).collect();
            Arc::make_mut(self).chunks.push(slots);
        }
        let is_new = self.chunks[chunk][(offset % CHUNK) as usize].set(event).is_ok();
        debug_assert!(is_new, "events are numbered one by one");
    }

    /// Drops the first `count` chunks, but never the last one, which the next event goes to.
    fn drop_chunks(self: &mut Arc<Self>, count: usize) {
        let count = count.min(self.chunks.len().saturating_sub(1));
        if count > 0 {
            let own = Arc::make_mut(self);
            own.chunks.drain(..count);
            own.dropped += count as u32;
        }
    }
}

/// A thread.
#[derive(Debug)]
struct Chain<L> {
    status: Status,
    length: u32,
    log: Arc<ThreadLog<L>>,
    /// The clock of its last event.
    clock: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Unknown,
    Running,
    Ended,
}

impl<L> Default for Chain<L> {
    fn default() -> Self {
        Self { status: Status::Unknown, length: 0, log: Arc::default(), clock: Vec::new() }
    }
}

/// The events so far and the threads they are of.
#[derive(Debug)]
pub(super) struct Log<L> {
    chains: IndexVec<ChainId, Chain<L>>,
    chunks_max: usize,
    /// How many events came since some were dropped.
    unswept: u32,
}

impl<L> Log<L> {
    /// No events yet. Keeps about `events_max` at most.
    pub(super) fn new(events_max: usize) -> Self {
        let chunks_max = events_max.div_ceil(CHUNK as usize);
        Self { chains: IndexVec::new(), chunks_max, unswept: 0 }
    }

    /// How many threads there are, up to the last that was named.
    pub(super) fn chains_count(&self) -> usize {
        self.chains.len()
    }

    /// How many events are kept for intervals to come.
    pub(super) fn events_kept(&self) -> usize {
        let kept = |its: &Chain<L>| its.length.saturating_sub(its.log.dropped * CHUNK) as usize;
        self.chains.iter().map(kept).sum()
    }

    /// Adds the next event of `chain` and returns its interval.
    pub(super) fn insert(
        &mut self,
        chain: ChainId,
        clock: &[u32],
        label: L,
    ) -> Result<Interval<L>, Refused> {
        self.check(chain, clock)?;
        let width = clock.iter().rposition(|&index| index > 0).map_or(0, |last| last + 1);
        let clock = &clock[..width];
        let own = self.chains.get_or_default(chain);
        own.status = Status::Running;
        own.length += 1;
        own.clock.clear();
        own.clock.extend_from_slice(clock);
        own.log.push(own.length, Event { clock: clock.into(), label });
        let interval = self.interval(chain, clock);
        self.unswept += 1;
        if self.unswept >= CHUNK {
            self.unswept = 0;
            self.drop_unneeded();
        }
        Ok(interval)
    }

    /// The interval of the last event of `chain`, whose clock is `clock`.
    fn interval(&self, chain: ChainId, clock: &[u32]) -> Interval<L> {
        let mut least = clock.to_vec();
        least.resize(self.chains.len(), 0);
        let mut is_whole = true;
        for (other, its) in self.chains.entries() {
            let floor = its.log.floor();
            if least[other.index()] < floor {
                is_whole = false;
                let event = its.log.event(floor).expect("the event at the floor is stored");
                for (own, &needed) in least.iter_mut().zip(&event.clock) {
                    *own = needed.max(*own);
                }
            }
        }
        Interval {
            event: Some((chain, self.chains[chain].length)),
            least,
            greatest: self.chains.iter().map(|its| its.length).collect(),
            logs: self.chains.iter().map(|its| Arc::clone(&its.log)).collect(),
            events_min: clock.iter().map(|&index| u64::from(index)).sum(),
            is_whole,
        }
    }

    /// Refuses a clock that is not the next of `chain` in a partial order.
    fn check(&self, chain: ChainId, clock: &[u32]) -> Result<(), Refused> {
        check_chain(chain)?;
        let (length, last) = match self.chains.get(chain) {
            Some(own) if own.status == Status::Ended => return Err(Refused::Ended { chain }),
            Some(own) => (own.length, &*own.clock),
            None => (0, &[][..]),
        };
        let expected = length.checked_add(1).ok_or(Refused::Full { chain })?;
        let found = entry(clock, chain.index());
        if found != expected {
            return Err(Refused::Own { chain, found, expected });
        }
        if !includes(clock, last) {
            return Err(Refused::Backwards { chain });
        }
        for (at, &index) in clock.iter().enumerate() {
            // Entries that the last clock had were checked with it.
            if at != chain.index() && index > entry(last, at) {
                self.check_entry(at, index, clock)?;
            }
        }
        Ok(())
    }

    /// Checks that `clock`, which includes event `index` of thread `at`, includes its clock as
    /// well.
    fn check_entry(&self, at: usize, index: u32, clock: &[u32]) -> Result<(), Refused> {
        let length = self.chains.as_slice().get(at).map_or(0, |its| its.length);
        let other = ChainId::from_index(at.min(CHAINS_MAX));
        if index > length {
            return Err(Refused::Later { other, index, length });
        }
        // A dropped event cannot be checked; the interval starts after it in any case.
        let Some(event) = self.chains[other].log.event(index) else { return Ok(()) };
        if includes(clock, &event.clock) { Ok(()) } else { Err(Refused::Open { other, index }) }
    }

    /// Notes that `chain` runs, or soon will, and may start at any state.
    pub(super) fn declare(&mut self, chain: ChainId) -> Result<(), Refused> {
        check_chain(chain)?;
        let own = self.chains.get_or_default(chain);
        if own.status == Status::Ended {
            return Err(Refused::Ended { chain });
        }
        own.status = Status::Running;
        Ok(())
    }

    /// Notes that `chain` does nothing more.
    pub(super) fn end(&mut self, chain: ChainId) -> Result<(), Refused> {
        check_chain(chain)?;
        self.chains.get_or_default(chain).status = Status::Ended;
        Ok(())
    }

    /// Drops events that no interval of a later event needs, and, if there are still too many, the
    /// first events of the threads with the most.
    fn drop_unneeded(&mut self) {
        let running = || self.chains.iter().filter(|its| its.status == Status::Running);
        // Without a running thread nobody can say where the next one will start.
        if running().next().is_some() {
            let known_to_all: Vec<u32> = (0..self.chains.len())
                .map(|at| running().map(|its| entry(&its.clock, at)).min().unwrap_or(0))
                .collect();
            for (its, known) in self.chains.iter_mut().zip(known_to_all) {
                let chunks = (known.saturating_sub(1) / CHUNK).saturating_sub(its.log.dropped);
                its.log.drop_chunks(chunks as usize);
            }
        }
        let mut chunks_count: usize = self.chains.iter().map(|its| its.log.chunks.len()).sum();
        while chunks_count > self.chunks_max {
            let longest = self.chains.iter_mut().max_by_key(|its| its.log.chunks.len());
            let Some(its) = longest.filter(|its| its.log.chunks.len() > 1) else { return };
            its.log.drop_chunks(1);
            chunks_count -= 1;
        }
    }
}

fn check_chain(chain: ChainId) -> Result<(), Refused> {
    if chain.index() < CHAINS_MAX { Ok(()) } else { Err(Refused::Chain { chain }) }
}

/// The entry of `clock` for thread `at`: clocks end with their last entry that is not 0.
fn entry(clock: &[u32], at: usize) -> u32 {
    clock.get(at).copied().unwrap_or(0)
}

/// Whether `clock` is at least `other` in every entry.
fn includes(clock: &[u32], other: &[u32]) -> bool {
    other.iter().enumerate().all(|(at, &needed)| needed <= entry(clock, at))
}

/// Why an event, or a notice about a thread, was refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages explain the fields")]
pub enum Refused {
    /// There are too many threads.
    #[error("expected a thread below {CHAINS_MAX}, found {}", chain.index())]
    Chain { chain: ChainId },
    /// The thread has ended.
    #[error("thread {} has ended already", chain.index())]
    Ended { chain: ChainId },
    /// The thread has as many events as can be counted.
    #[error("thread {} has as many events as can be counted", chain.index())]
    Full { chain: ChainId },
    /// A clock's entry for its own thread is not the index of its event.
    #[error("expected {expected} as the clock's entry for its own thread {}, found {found}", chain.index())]
    Own { chain: ChainId, found: u32, expected: u32 },
    /// A clock does not include that of the thread's last event.
    #[error("the clock does not include that of the last event of thread {}", chain.index())]
    Backwards { chain: ChainId },
    /// A clock includes an event that was not inserted yet.
    #[error("the clock includes {index} events of thread {}, of which only {length} were inserted: \
             insert each event before its thread continues", other.index())]
    Later { other: ChainId, index: u32, length: u32 },
    /// A clock includes an event but not all that happens before it.
    #[error("the clock includes event {index} of thread {}, but not all that happens before it",
            other.index())]
    Open { other: ChainId, index: u32 },
}

/// The states whose last event, in the order of insertion, is a certain one: those between the
/// event's clock and all that was inserted up to it. It has its events with it, so it can be
/// searched at any time and on any thread, whatever was inserted since.
#[derive(Debug)]
pub struct Interval<L> {
    event: Option<(ChainId, u32)>,
    least: Vec<u32>,
    greatest: Vec<u32>,
    logs: IndexVec<ChainId, Arc<ThreadLog<L>>>,
    events_min: u64,
    is_whole: bool,
}

impl<L> Interval<L> {
    /// The empty state alone, which is before any event.
    pub(super) fn before_all() -> Self {
        Self {
            event: None,
            least: Vec::new(),
            greatest: Vec::new(),
            logs: IndexVec::new(),
            events_min: 0,
            is_whole: true,
        }
    }

    /// The event, as its thread and its index there; none for the empty state.
    #[must_use]
    pub const fn event(&self) -> Option<(ChainId, u32)> {
        self.event
    }

    /// The least state: how many events of each thread.
    #[must_use]
    pub fn least(&self) -> &[u32] {
        &self.least
    }

    /// The greatest state.
    #[must_use]
    pub fn greatest(&self) -> &[u32] {
        &self.greatest
    }

    /// No state of the whole interval has fewer events.
    #[must_use]
    pub const fn events_min(&self) -> u64 {
        self.events_min
    }

    /// Whether these are all states of the event: none of their events was dropped before.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The clock of event `index` of `chain` and its label, if it is stored.
    #[must_use]
    pub fn labelled(&self, chain: ChainId, index: u32) -> Option<(&[u32], &L)> {
        self.stored(chain, index).map(|event| (&*event.clock, &event.label))
    }

    /// Its states in lexical order, the first thread most significant.
    #[must_use]
    pub fn states(&self) -> StateCursor<'_, L> {
        let chains = (0..self.least.len()).map(ChainId::from_index);
        let last = chains.zip(&self.least).map(|(chain, &index)| self.stored(chain, index));
        StateCursor { interval: self, indices: self.least.clone(), last: last.collect() }
    }

    fn stored(&self, chain: ChainId, index: u32) -> Option<&Event<L>> {
        self.logs.get(chain)?.event(index)
    }
}

/// The states of an interval in lexical order, one at a time: the bounded lexical enumeration of
/// Algorithm 2 of Chang and Garg (see [`lexical`](crate::enumerate::lexical)), on stored events.
#[derive(Debug)]
pub struct StateCursor<'a, L> {
    interval: &'a Interval<L>,
    indices: Vec<u32>,
    /// The last event of each thread.
    last: Vec<Option<&'a Event<L>>>,
}

impl<'a, L> StateCursor<'a, L> {
    /// The current state.
    #[must_use]
    pub fn state(&self) -> State<'_, L> {
        State { indices: &self.indices, last: &self.last }
    }

    /// Moves to the next state; false if this is the last.
    pub fn advance(&mut self) -> bool {
        let Some((chain, event)) = (0..self.indices.len()).rev().find_map(|at| self.next(at))
        else {
            return false;
        };
        self.indices[chain] += 1;
        self.last[chain] = Some(event);
        // The threads to the right go back to the least that those to the left allow.
        for (right, &least) in self.interval.least.iter().enumerate().skip(chain + 1) {
            let needed = self.last[..=chain].iter().flatten().map(|last| entry(&last.clock, right));
            let index = needed.fold(least, u32::max);
            if self.indices[right] != index {
                self.indices[right] = index;
                self.last[right] = self.interval.stored(ChainId::from_index(right), index);
            }
        }
        true
    }

    /// The next event of thread `at`, if it is within bounds and the threads to the left have run
    /// all that it needs of them.
    fn next(&self, at: usize) -> Option<(usize, &'a Event<L>)> {
        if self.indices[at] >= self.interval.greatest[at] {
            return None;
        }
        let event = self.interval.stored(ChainId::from_index(at), self.indices[at] + 1)?;
        let mut needed = event.clock.iter().zip(&self.indices[..at]);
        needed.all(|(needed, held)| needed <= held).then_some((at, event))
    }
}

/// A consistent state of the events so far.
#[derive(Debug)]
pub struct State<'a, L> {
    indices: &'a [u32],
    last: &'a [Option<&'a Event<L>>],
}

impl<'a, L> State<'a, L> {
    /// How many events each thread has run; of threads that are not listed, none.
    #[must_use]
    pub const fn indices(&self) -> &'a [u32] {
        self.indices
    }

    /// How many events it has in all.
    #[must_use]
    pub fn events_count(&self) -> u64 {
        self.indices.iter().map(|&index| u64::from(index)).sum()
    }

    /// The last event of each thread that has run any: its clock and its label.
    pub fn frontier(&self) -> impl Iterator<Item = (ChainId, &'a [u32], &'a L)> + use<'a, L> {
        self.last.iter().enumerate().filter_map(|(at, last)| {
            last.map(|event| (ChainId::from_index(at), &*event.clock, &event.label))
        })
    }
}
