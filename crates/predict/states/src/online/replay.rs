//! A recorded run, fed through a detector as if it ran.
//!
//! Each thread of the run has a real thread that inserts its events, up to a number; beyond that
//! they share. [`Gate`] says when an event may come: in its place of the recorded order, so that
//! the same is inserted in the same order each time; or as soon as all that comes before it has
//! come, which is another run of the same events each time.
//!
//! Costs a wait and a wake-up of the real threads an event.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use reweave_base::{Id, IndexVec};
use reweave_order::poset::{
    ChainId, EventRole, IllFormedPoset, Poset, Relation, TracePoset, collections,
};
use reweave_trace::{EventId, Trace, VarId};

use super::races::{Form, Races, collected};
use super::{OnlineDetector, Options, Outcome, Refused, Search, lock};

/// How many real threads there are at most.
const THREADS_MAX: usize = 64;

/// When an event may be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// After all that was recorded before it.
    Recorded,
    /// After all that comes before it.
    Free,
}

/// An event to insert: its place in the recorded order, its thread and its index there.
#[derive(Clone, Copy, Debug)]
struct Turn {
    place: usize,
    chain: ChainId,
    index: u32,
}

/// What was inserted so far.
#[derive(Debug)]
struct Progress {
    places: usize,
    lengths: IndexVec<ChainId, u32>,
    /// Why no more is to come.
    broken: Option<ReplayError>,
    /// Whether some real thread is gone.
    is_given_up: bool,
}

/// Feeds the events of `poset` to `detector`, labelled by `label`, from many real threads, and
/// waits until all were inserted, or the detector was interrupted.
///
/// # Errors
/// If an event was refused, as by a detector that has seen others before, or the system has no room
/// for the threads. Some events may have been inserted then.
pub fn replay<S: Search>(
    poset: &Poset,
    label: impl Fn(ChainId, u32) -> S::Label + Sync,
    gate: Gate,
    detector: &OnlineDetector<S>,
) -> Result<(), ReplayError> {
    for chain in poset.chains().filter(|&chain| poset.length(chain) > 0) {
        detector.declare(chain).map_err(ReplayError::Refused)?;
    }
    let shares = shares(poset);
    let desk = Desk {
        poset,
        gate,
        progress: Mutex::new(Progress {
            places: 0,
            lengths: IndexVec::from_elem(0, poset.chains_count()),
            broken: None,
            is_given_up: false,
        }),
        bell: Condvar::new(),
    };
    thread::scope(|scope| {
        for share in &shares {
            let feed = || desk.feed(share, &label, detector);
            if thread::Builder::new().spawn_scoped(scope, feed).is_err() {
                desk.give_up(Some(ReplayError::Threads { wanted: shares.len() }));
                return;
            }
        }
    });
    let progress = desk.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    progress.broken.map_or(Ok(()), Err)
}

/// Which real thread inserts what, in the recorded order.
fn shares(poset: &Poset) -> Vec<Vec<Turn>> {
    let mut shares = vec![Vec::new(); poset.chains_count().min(THREADS_MAX)];
    for (place, (chain, index)) in poset.events().enumerate() {
        shares[chain.index() % THREADS_MAX].push(Turn { place, chain, index });
    }
    shares
}

/// What the real threads share.
struct Desk<'a> {
    poset: &'a Poset,
    gate: Gate,
    progress: Mutex<Progress>,
    bell: Condvar,
}

impl Desk<'_> {
    /// What a real thread does.
    fn feed<S: Search>(
        &self,
        share: &[Turn],
        label: &(impl Fn(ChainId, u32) -> S::Label + Sync),
        detector: &OnlineDetector<S>,
    ) {
        let _leaving = Leaving(self);
        for turn in share {
            let clock = self.poset.clock(turn.chain, turn.index);
            if !self.await_turn(turn, clock) {
                return;
            }
            if detector.is_interrupted() {
                // Nothing would be looked at any more.
                self.give_up(None);
                return;
            }
            let mut taken = detector.insert(turn.chain, clock, label(turn.chain, turn.index));
            if turn.index == self.poset.length(turn.chain) {
                taken = taken.and_then(|()| detector.end(turn.chain));
            }
            if let Err(refused) = taken {
                self.give_up(Some(ReplayError::Refused(refused)));
                return;
            }
            let mut progress = lock(&self.progress);
            progress.places += 1;
            progress.lengths[turn.chain] += 1;
            drop(progress);
            self.bell.notify_all();
        }
    }

    /// Waits until the event at `turn` may be inserted; false if it never will.
    fn await_turn(&self, turn: &Turn, clock: &[u32]) -> bool {
        let mut progress = lock(&self.progress);
        loop {
            if progress.is_given_up {
                return false;
            }
            let is_open = match self.gate {
                Gate::Recorded => progress.places == turn.place,
                Gate::Free => {
                    let mut needed = progress.lengths.entries().zip(clock);
                    needed.all(|((chain, &held), &needed)| needed <= held || chain == turn.chain)
                }
            };
            if is_open {
                return true;
            }
            progress = self.bell.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sends all real threads home.
    fn give_up(&self, reason: Option<ReplayError>) {
        let mut progress = lock(&self.progress);
        progress.is_given_up = true;
        if progress.broken.is_none() {
            progress.broken = reason;
        }
        drop(progress);
        self.bell.notify_all();
    }
}

/// Sends the others home if its thread panics, which they would wait for otherwise.
struct Leaving<'a, 'b>(&'a Desk<'b>);

impl Drop for Leaving<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.give_up(None);
        }
    }
}

/// For each chain of `poset`, which was made of `trace` with this `place`, the events of the trace
/// that each of its events stands for.
#[must_use]
pub fn members(
    trace: &Trace,
    poset: &TracePoset,
    place: impl Fn(&Trace, EventId) -> EventRole,
) -> IndexVec<ChainId, Vec<Vec<EventId>>> {
    let mut chains = IndexVec::from_elem(None, trace.names().threads.len());
    for (chain, &thread) in poset.threads().entries() {
        chains[thread] = Some(chain);
    }
    let count = poset.poset().chains_count();
    let mut members: IndexVec<ChainId, Vec<Vec<EventId>>> = IndexVec::from_elem(Vec::new(), count);
    for (id, event) in trace.events() {
        let Some(chain) = chains[event.thread] else { continue };
        if place(trace, id) == EventRole::Outside {
            continue;
        }
        let next = members[chain].len() as u32 + 1;
        if next <= poset.poset().length(chain) && poset.first(chain, next) == Some(id) {
            members[chain].push(Vec::new());
        }
        // The first event of a chain starts one.
        if let Some(last) = members[chain].last_mut() {
            last.push(id);
        }
    }
    members
}

/// The variables of `trace` that are raced on by happens-before, found by feeding it through a
/// detector in the recorded order.
///
/// # Errors
/// If its poset is too large, or the system has no room for the threads.
pub fn races(
    trace: &Trace,
    form: Form,
    options: Options,
) -> Result<Outcome<BTreeSet<VarId>>, ReplayError> {
    let recorded =
        TracePoset::new(trace, Relation::HappensBefore, collections).map_err(ReplayError::Poset)?;
    let members = members(trace, &recorded, collections);
    let label = |chain: ChainId, index: u32| {
        let events = members[chain].get(index as usize - 1).map_or(&[][..], |events| events);
        collected(events.iter().map(|&event| trace.event(event).op))
    };
    let detector = OnlineDetector::new(Races::new(form), options);
    replay(recorded.poset(), label, Gate::Recorded, &detector)?;
    Ok(detector.finish())
}

/// Why a run was not replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// It is too large.
    Poset(IllFormedPoset),
    /// The detector did not take an event.
    Refused(Refused),
    /// The system has no room for as many threads.
    Threads {
        /// How many there were to be.
        wanted: usize,
    },
}

impl Display for ReplayError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poset(reason) => reason.fmt(f),
            Self::Refused(reason) => reason.fmt(f),
            Self::Threads { wanted } => {
                write!(f, "expected room for {wanted} threads, found less")
            }
        }
    }
}

impl std::error::Error for ReplayError {}
