//! What was inserted, as far as later events can need it.
//!
//! The clock of a thread's next event holds its last clock. So with the least number that the
//! clocks of the running threads have for a thread, no interval of a later event has a state in
//! which that thread has run fewer events, and rows of earlier ones can go. A thread that was
//! forked but has done nothing yet counts with its parent's clock, and one that waits for another
//! to end with the other's clock as well as its own. If a thread appears of which nobody knew, or
//! the rows were too many, rows may be missing: the interval then begins at the least state of
//! those whose rows are there, and says so.
//!
//! An event costs its threads, and a step of letting go, once in a while, their square.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reweave_base::{Id, IndexVec};
use reweave_order::poset::{CHAINS_MAX, ChainId};

use super::interval::Interval;
use super::rows::{CHUNK, Line, Row};

/// The events so far and the threads they are of.
#[derive(Debug)]
pub(super) struct Log<L> {
    chains: IndexVec<ChainId, Chain<L>>,
    /// How many rows there are, those that only searches hold included.
    held: Arc<AtomicUsize>,
    chunks_max: usize,
    /// How many events came since rows were let go.
    unswept: u32,
}

/// A thread.
#[derive(Debug)]
struct Chain<L> {
    status: Status,
    length: u32,
    line: Arc<Line<L>>,
    /// What its next event comes after: the clock of its last one, or of the fork.
    clock: Vec<u32>,
    /// Whose last event its next one comes after as well, if that is known.
    awaited: Option<ChainId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Unknown,
    Running,
    Ended,
}

impl<L> Default for Chain<L> {
    fn default() -> Self {
        let (status, clock) = (Status::Unknown, Vec::new());
        Self { status, length: 0, line: Arc::default(), clock, awaited: None }
    }
}

impl<L> Log<L> {
    /// Nothing yet. Holds about `rows_max` rows at most.
    pub(super) fn new(rows_max: usize) -> Self {
        Self {
            chains: IndexVec::new(),
            held: Arc::default(),
            chunks_max: rows_max.div_ceil(CHUNK as usize),
            unswept: 0,
        }
    }

    /// How many threads there are, up to the last that was named.
    pub(super) fn chains_count(&self) -> usize {
        self.chains.len()
    }

    /// How many rows are held here and by searches.
    pub(super) fn rows_held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Adds the next event of `chain` and gives its interval.
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
        own.awaited = None;
        own.clock.clear();
        own.clock.extend_from_slice(clock);
        own.line.push(own.length, Row { clock: clock.into(), label }, &self.held);
        let interval = self.interval(chain, clock);
        self.unswept += 1;
        if self.unswept >= CHUNK {
            self.unswept = 0;
            self.let_go();
        }
        Ok(interval)
    }

    /// The interval of the last event of `chain`, whose clock is `clock`.
    fn interval(&self, chain: ChainId, clock: &[u32]) -> Interval<L> {
        let mut least = clock.to_vec();
        least.resize(self.chains.len(), 0);
        let mut is_whole = true;
        for (other, its) in self.chains.entries() {
            let floor = its.line.floor();
            if least[other.index()] < floor {
                is_whole = false;
                let row = its.line.row(floor).expect("the row at the floor is held");
                raise(&mut least, &row.clock);
            }
        }
        Interval {
            event: Some((chain, self.chains[chain].length)),
            least,
            greatest: self.chains.iter().map(|its| its.length).collect(),
            lines: self.chains.iter().map(|its| Arc::clone(&its.line)).collect(),
            events_min: clock.iter().map(|&index| u64::from(index)).sum(),
            is_whole,
        }
    }

    fn check(&self, chain: ChainId, clock: &[u32]) -> Result<(), Refused> {
        check_chain(chain)?;
        let (length, last, awaited) = match self.chains.get(chain) {
            Some(own) if own.status == Status::Ended => return Err(Refused::Ended { chain }),
            Some(own) => (own.length, &*own.clock, self.awaited(own)),
            None => (0, &[][..], &[][..]),
        };
        let expected = length.checked_add(1).ok_or(Refused::Full { chain })?;
        let found = clock.get(chain.index()).copied().unwrap_or(0);
        if found != expected {
            return Err(Refused::Own { chain, found, expected });
        }
        if !is_held(last, clock) || !is_held(awaited, clock) {
            return Err(Refused::Backwards { chain });
        }
        for (at, &index) in clock.iter().enumerate() {
            let before = last.get(at).copied().unwrap_or(0);
            if at != chain.index() && index > before {
                self.check_entry(at, index, clock)?;
            }
        }
        Ok(())
    }

    /// Checks what a clock that holds `index` events of the thread with index `at` must hold with
    /// them. Whoever held them before was checked then.
    fn check_entry(&self, at: usize, index: u32, clock: &[u32]) -> Result<(), Refused> {
        let length = self.chains.as_slice().get(at).map_or(0, |its| its.length);
        let other = ChainId::from_index(at.min(CHAINS_MAX));
        if index > length {
            return Err(Refused::Later { other, index, length });
        }
        // A row that was let go cannot be looked at; the interval begins above it then.
        let Some(row) = self.chains[other].line.row(index) else { return Ok(()) };
        if is_held(&row.clock, clock) { Ok(()) } else { Err(Refused::Open { other, index }) }
    }

    /// The clock so far of whom `own` waits for.
    fn awaited(&self, own: &Chain<L>) -> &[u32] {
        own.awaited.and_then(|other| self.chains.get(other)).map_or(&[], |its| &its.clock)
    }

    /// Says that `chain` runs, or soon will, and knows of nothing.
    pub(super) fn declare(&mut self, chain: ChainId) -> Result<(), Refused> {
        check_chain(chain)?;
        let own = self.chains.get_or_default(chain);
        match own.status {
            Status::Unknown => own.status = Status::Running,
            Status::Running => {}
            Status::Ended => return Err(Refused::Ended { chain }),
        }
        Ok(())
    }

    /// Says that `child` comes after what `parent` has done so far.
    pub(super) fn fork(&mut self, parent: ChainId, child: ChainId) -> Result<(), Refused> {
        check_chain(parent)?;
        check_chain(child)?;
        let clock = self.chains.get(parent).map_or_else(Vec::new, |its| its.clock.clone());
        let own = self.chains.get_or_default(child);
        if own.length > 0 {
            return Err(Refused::Started { chain: child });
        }
        if own.status == Status::Ended {
            return Err(Refused::Ended { chain: child });
        }
        own.status = Status::Running;
        own.clock = clock;
        Ok(())
    }

    /// Says that the next event of `chain` comes after the last one of `other`.
    pub(super) fn wait(&mut self, chain: ChainId, other: ChainId) -> Result<(), Refused> {
        check_chain(other)?;
        self.declare(chain)?;
        self.chains[chain].awaited = Some(other);
        Ok(())
    }

    /// Says that `chain` does nothing more.
    pub(super) fn end(&mut self, chain: ChainId) -> Result<(), Refused> {
        check_chain(chain)?;
        self.chains.get_or_default(chain).status = Status::Ended;
        Ok(())
    }

    /// Lets go of rows that no interval of a later event needs, and of the first rows of the
    /// longest lines if there are too many.
    fn let_go(&mut self) {
        let mut known: Option<Vec<u32>> = None;
        for its in self.chains.iter().filter(|its| its.status == Status::Running) {
            let mut clock = its.clock.clone();
            clock.resize(self.chains.len(), 0);
            raise(&mut clock, self.awaited(its));
            match &mut known {
                None => known = Some(clock),
                Some(known) => lower(known, &clock),
            }
        }
        // Without a running thread nobody can say where the next one will begin.
        let known = known.unwrap_or_default();
        for (its, known) in self.chains.iter_mut().zip(known) {
            its.line.let_go_before(known);
        }
        let mut chunks_count: usize = self.chains.iter().map(|its| its.line.chunks_count()).sum();
        while chunks_count > self.chunks_max {
            let longest = self.chains.iter_mut().max_by_key(|its| its.line.chunks_count());
            let Some(its) = longest.filter(|its| its.line.chunks_count() > 1) else { return };
            its.line.let_go(1);
            chunks_count -= 1;
        }
    }
}

fn check_chain(chain: ChainId) -> Result<(), Refused> {
    if chain.index() < CHAINS_MAX { Ok(()) } else { Err(Refused::Chain { chain }) }
}

/// Joins `clock` to `state`, which has a number for each thread.
fn raise(state: &mut [u32], clock: &[u32]) {
    for (own, &needed) in state.iter_mut().zip(clock) {
        *own = (*own).max(needed);
    }
}

/// Takes the lesser numbers of the two, which have one for each thread.
fn lower(state: &mut [u32], clock: &[u32]) {
    for (own, &known) in state.iter_mut().zip(clock) {
        *own = (*own).min(known);
    }
}

/// Whether `clock` holds all that `needed` does, which has no zeros at its end.
fn is_held(needed: &[u32], clock: &[u32]) -> bool {
    needed.len() <= clock.len() && needed.iter().zip(clock).all(|(needed, held)| needed <= held)
}

/// Why an event, or news of a thread, was not taken. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There are too many threads.
    Chain {
        /// Which was named.
        chain: ChainId,
    },
    /// The thread has ended.
    Ended {
        /// Which.
        chain: ChainId,
    },
    /// The thread has had events before it was forked.
    Started {
        /// Which.
        chain: ChainId,
    },
    /// The thread has as many events as can be counted.
    Full {
        /// Which.
        chain: ChainId,
    },
    /// A clock's own number is not the index of its event.
    Own {
        /// The event's thread.
        chain: ChainId,
        /// The number.
        found: u32,
        /// The index.
        expected: u32,
    },
    /// A clock does not hold what the thread's last event held, or its fork, or what it waited for.
    Backwards {
        /// The event's thread.
        chain: ChainId,
    },
    /// A clock holds an event that was not inserted yet.
    Later {
        /// The thread of that event.
        other: ChainId,
        /// Its index.
        index: u32,
        /// How many events of that thread there were.
        length: u32,
    },
    /// A clock holds an event but not all that comes before that.
    Open {
        /// The thread of the event.
        other: ChainId,
        /// Its index.
        index: u32,
    },
}

impl Display for Refused {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Chain { chain } => {
                write!(f, "expected a thread below {CHAINS_MAX}, found {}", chain.index())
            }
            Self::Ended { chain } => {
                write!(f, "thread {} was said to have ended", chain.index())
            }
            Self::Started { chain } => {
                write!(f, "thread {} was forked after its first event", chain.index())
            }
            Self::Full { chain } => {
                write!(f, "thread {} has as many events as can be counted", chain.index())
            }
            Self::Own { chain, found, expected } => write!(
                f,
                "expected {expected} as the clock's number of thread {}, whose event this is, \
                 found {found}",
                chain.index()
            ),
            Self::Backwards { chain } => write!(
                f,
                "the clock does not hold what thread {} had seen: its last event, its fork, whom it \
                 waited for",
                chain.index()
            ),
            Self::Later { other, index, length } => write!(
                f,
                "the clock holds {index} events of thread {}, of which {length} were inserted \
                 before: insert each event before its thread goes on",
                other.index()
            ),
            Self::Open { other, index } => write!(
                f,
                "the clock holds event {index} of thread {}, but not all that comes before that",
                other.index()
            ),
        }
    }
}

impl std::error::Error for Refused {}
