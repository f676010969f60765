//! Is there a global state of a trace that meets a predicate, and which is the least?
//!
//! The poset that is searched has only the events that can change the answer. What the predicate
//! is then decides how: see [`Class`]. Conjunctions of truths of one thread each, and linear ones,
//! have a least state that is found in polynomial time; of several the lesser is taken. What is left
//! goes through the cut diagram, which carries what is known of the predicate.
//!
//! The state found has the fewest of the events that can change the answer, and besides only what
//! those need: no smaller state meets the predicate. A search that was
//! cut short says so; it may have found one that is not the least.
//!
//! `definitely` asks of paths instead: from nothing to all, an event at a time, in this order, and the
//! writes of the variables that it speaks of as observed. It is polynomial for one conjunction and for what stays true; else every size of states that avoid the
//! predicate is kept in turn.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use reweave_base::{Id, IndexVec};
use reweave_order::poset::{
    ChainId, EventRole, IllFormedPoset, Poset, Relation, TracePoset, least_cut,
};
use reweave_trace::{EventId, ThreadId, Trace, VarId};

use crate::bounds::Bounds;
use crate::diagram::{self, Limits, Reason};
use crate::enumerate::Stopped;
use crate::online::least::{Least, opaque};
use crate::online::replay::{Gate, ReplayError, replay};
use crate::online::{OnlineDetector, Options, Outcome, State};
use crate::pairwise::first_races_until;
use crate::predicate::{Class, Conjunction, Leaf, Modality, Placed, Predicate, StatePredicate};
use crate::{conjunctive, definitely, linear, walk};

/// The most numbers that the states of two sizes have together when paths are told apart.
const PATHS_MAX: usize = 1 << 26;

/// How often it is looked whether the online detector is to be interrupted.
const PATIENCE: Duration = Duration::from_millis(1);

/// How much work it is to ask a predicate of a state, beside a choice of a number.
const STATE_WORK: u64 = 8;

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether some state meets the goal, or under `definitely` every path has one that does; none
    /// if that was not decided.
    pub is_met: Option<bool>,
    /// The least state that meets the goal, if it is met: how many events each thread has run.
    pub state: Option<IndexVec<ThreadId, u32>>,
    /// The two accesses that race, where that was the question.
    pub race: Option<(EventId, EventId)>,
    /// Whether the search ended before all was looked at.
    pub is_cut_short: bool,
    /// How it was decided.
    pub method: &'static str,
    /// How many events the poset had that was searched.
    pub events_count: usize,
}

/// Searches the states of `trace`, by `relation`, for one that meets the goal of `predicate`, which
/// is about it. At most `work_max` choices of a number of events are gone through, and `stop` ends
/// it early.
///
/// ```
/// use reweave_order::poset::Relation;
/// use reweave_states::find::find;
/// use reweave_states::predicate::Predicate;
///
/// let trace = reweave_testkit::trace("
/// T1      T2
/// acq(m)
/// rel(m)
///         acq(n)
///         rel(n)
/// ");
/// let predicate = Predicate::parse("holds(T1, m) && holds(T2, n)", &trace)?;
/// let answer = find(&trace, &predicate, Relation::TraceOrderPreserving, 1_000_000, &|| false)?;
/// assert_eq!(answer.is_met, Some(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the poset would take too much memory.
pub fn find(
    trace: &Trace,
    predicate: &Predicate,
    relation: Relation,
    work_max: u64,
    stop: &dyn Fn() -> bool,
) -> Result<Answer, IllFormedPoset> {
    if *predicate.class() == Class::Pairwise {
        return Ok(race(trace, stop));
    }
    let made = poset(trace, predicate, relation)?;
    let placed = predicate.on(trace, &made);
    let search = Search { trace, made: &made, placed: &placed, work_max, stop };
    Ok(match predicate.modality() {
        Modality::Definitely => search.definitely(predicate.is_stable()),
        Modality::Possibly | Modality::Always | Modality::Never => {
            search.possibly(predicate.is_stable())
        }
    })
}

/// The state of `poset` with the fewest events that meets `predicate`, of which nothing is known but
/// what it says of a state. At most `states_max` states are asked about, and `stop` ends it early.
///
/// States that are no smaller than one found before are passed by; of equally small ones the first
/// found counts, which is always the same.
pub fn least(
    poset: &Poset,
    predicate: &impl StatePredicate,
    states_max: u64,
    stop: &dyn Fn() -> bool,
) -> walk::Least {
    let lengths = poset.chains().map(|chain| u64::from(poset.length(chain)));
    let weights: Vec<Vec<u64>> = lengths.map(|length| (0..=length).collect()).collect();
    let is_told = AtomicBool::new(false);
    let mut asked = 0_u32;
    let is_met = |state: &[u32]| {
        asked = asked.wrapping_add(1);
        if asked.is_multiple_of(1 << 10) && stop() {
            is_told.store(true, Ordering::Relaxed);
        }
        predicate.is_met(state)
    };
    let stop = || is_told.load(Ordering::Relaxed);
    let limits = walk::Limits { states: Some(states_max), stop: Some(&stop) };
    walk::least(poset, &Bounds::all(poset), &weights, is_met, &limits)
}

/// Searches as [`find`] does, but by the online detector: the events that matter are fed to it as if
/// they happened, and the states that each brings are gone through by so many `workers`, at most
/// `states_max` for one event. What `definitely` asks is of whole runs, and is answered as by
/// [`find`]; so are races, which take one pass in any case.
///
/// # Errors
/// If the poset would take too much memory, or there is no room for threads.
pub fn find_online(
    trace: &Trace,
    predicate: &Predicate,
    relation: Relation,
    workers: usize,
    states_max: u64,
    stop: &dyn Fn() -> bool,
) -> Result<Answer, ReplayError> {
    if *predicate.class() == Class::Pairwise || predicate.modality() == Modality::Definitely {
        let found = find(trace, predicate, relation, states_max, stop);
        return found.map_err(ReplayError::Poset);
    }
    let made = poset(trace, predicate, relation).map_err(ReplayError::Poset)?;
    let placed = predicate.on(trace, &made);
    let chains_count = made.poset().chains_count();
    let is_met = move |state: &State<'_, ()>| {
        // A thread that has done nothing yet may not be in it.
        let mut cut = vec![0; chains_count];
        cut[..state.indices().len()].copy_from_slice(state.indices());
        placed.is_met(&cut)
    };
    let options = Options { workers, states_max, ..Options::default() };
    let detector = OnlineDetector::new(Least::new(opaque(is_met)), options);
    let interrupt = detector.interrupter();
    let mut is_told = false;
    let Outcome { answer, .. } = thread::scope(|scope| {
        let searched = scope.spawn(|| {
            replay(made.poset(), |_, _| (), Gate::Recorded, &detector)?;
            Ok(detector.finish())
        });
        while !searched.is_finished() {
            if stop() {
                is_told = true;
                interrupt();
            }
            thread::sleep(PATIENCE);
        }
        searched.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    let state = answer.least.map(|least| made.in_trace(trace, &least));
    // What was not fed any more is not known to the detector.
    let is_cut_short = is_told || !answer.is_certain;
    Ok(Answer {
        is_met: (state.is_some() || !is_cut_short).then_some(state.is_some()),
        state,
        race: None,
        is_cut_short,
        method: "online",
        events_count: made.poset().len(),
    })
}

/// The events of `trace` that can change what `predicate` says, by `relation`.
fn poset(
    trace: &Trace,
    predicate: &Predicate,
    relation: Relation,
) -> Result<TracePoset, IllFormedPoset> {
    let place = |_: &Trace, event: EventId| match predicate.is_relevant(event) {
        true => EventRole::Event,
        false => EventRole::Outside,
    };
    let threads = predicate.threads().iter().copied().collect();
    TracePoset::of_threads(trace, relation, threads, place)
}

/// The first race and the least state that has it.
fn race(trace: &Trace, stop: &dyn Fn() -> bool) -> Answer {
    let (races, is_whole) = first_races_until(trace, stop);
    let pair = races.first().map(|race| (race.first, race.second));
    let state = |(first, second)| least_cut(trace, Relation::HappensBefore, &[first, second]);
    Answer {
        is_met: (pair.is_some() || is_whole).then_some(pair.is_some()),
        state: pair.map(state),
        race: pair,
        is_cut_short: pair.is_none() && !is_whole,
        method: "pairwise",
        events_count: trace.len(),
    }
}

/// A predicate among the states of a poset.
struct Search<'a> {
    trace: &'a Trace,
    made: &'a TracePoset,
    placed: &'a Placed,
    work_max: u64,
    stop: &'a dyn Fn() -> bool,
}

impl Search<'_> {
    /// Whether some state meets the goal; if it `is_stable`, the last one tells.
    fn possibly(&self, is_stable: bool) -> Answer {
        match self.placed.class() {
            Class::Constant(is_met) => {
                let bottom = is_met.then(|| vec![0; self.made.poset().chains_count()]);
                self.answer("constant", Some(*is_met), bottom, false)
            }
            _ if is_stable && !self.placed.is_met(&self.made.poset().top()) => {
                self.answer("stable", Some(false), None, false)
            }
            Class::Conjunctive(all) => {
                let least = |one: &Conjunction<ChainId>| {
                    conjunctive::least(self.made.poset(), &one.truths(self.made.poset()))
                };
                self.decided("conjunctive", all.iter().filter_map(least))
            }
            Class::Linear(all) => {
                let least = |one: &Conjunction<ChainId>| {
                    linear::least(self.made.poset(), |cut| one.forbidden(cut))
                };
                self.decided("linear", all.iter().filter_map(least))
            }
            Class::Stable => self.merged("stable"),
            Class::Sum(_) => self.merged("sum"),
            Class::Fold | Class::Pairwise => self.merged("fold"),
        }
    }

    /// The least of `states`, which are all that matter.
    fn decided(&self, method: &'static str, states: impl Iterator<Item = Vec<u32>>) -> Answer {
        let least =
            states.min_by_key(|state| state.iter().map(|&index| u64::from(index)).sum::<u64>());
        self.answer(method, Some(least.is_some()), least, false)
    }

    /// The least state by the cut diagram.
    fn merged(&self, method: &'static str) -> Answer {
        let poset = self.made.poset();
        let limits = Limits { work_max: self.work_max, ..Limits::default() };
        let fold = self.placed.fold();
        let bounds = Bounds::all(poset);
        let least = diagram::least(poset, &bounds, &fold, &|_, index| index, &limits, self.stop);
        if matches!(least.cut_short, Some(Reason::Memory | Reason::Windows)) {
            return self.walked();
        }
        let is_cut_short = least.cut_short.is_some();
        self.searched(method, least.found.map(|(_, state)| state), is_cut_short)
    }

    /// The least state by going through them, where the diagram has no room for what is to be
    /// remembered.
    fn walked(&self) -> Answer {
        let states_max = self.work_max / STATE_WORK;
        let least = least(self.made.poset(), self.placed, states_max, self.stop);
        let state = least.found.map(|(state, _)| state);
        self.searched("walk", state, least.halt.is_some())
    }

    /// What a search came to that found `state`, if any.
    fn searched(
        &self,
        method: &'static str,
        state: Option<Vec<u32>>,
        is_cut_short: bool,
    ) -> Answer {
        let is_met = (state.is_some() || !is_cut_short).then_some(state.is_some());
        self.answer(method, is_met, state, is_cut_short)
    }

    /// Whether every path has a state that meets the goal.
    fn definitely(&self, is_stable: bool) -> Answer {
        let poset = self.made.poset();
        let method = if is_stable { "stable" } else { "paths" };
        let (method, is_met) = match self.placed.class() {
            Class::Constant(is_met) => ("constant", Ok(*is_met)),
            _ if is_stable => (method, Ok(self.placed.is_met(&poset.top()))),
            Class::Conjunctive(all) if all.len() == 1 => {
                let truths = all.iter().map(|one| one.truths(poset)).next().unwrap_or_default();
                ("conjunctive", Ok(conjunctive::is_unavoidable(poset, &truths)))
            }
            Class::Conjunctive(_)
            | Class::Linear(_)
            | Class::Stable
            | Class::Sum(_)
            | Class::Fold
            | Class::Pairwise => {
                let is_met = |state: &[u32]| self.placed.is_met(state);
                // Of paths on which a variable is written in another order than observed, its
                // value is not what the predicate takes it to be.
                let ordered = poset.ordered(|chain, index| {
                    let op = self.trace.event(self.made.first(chain, index)?).op;
                    let var = op.var().filter(|&var| op.is_write() && self.speaks_of(var));
                    var.map(Id::index)
                });
                (method, definitely::is_unavoidable(&ordered, PATHS_MAX, &self.metered(), is_met))
            }
        };
        match is_met {
            Ok(true) => {
                let answer = self.possibly(is_stable);
                match answer.state {
                    Some(_) => Answer { method, ..answer },
                    // It is met all the same; where it stays met, the last state shows it.
                    None => {
                        let top = is_stable.then(|| poset.top());
                        self.answer(method, Some(true), top, true)
                    }
                }
            }
            Ok(false) => self.answer(method, Some(false), None, false),
            Err(Stopped::Memory | Stopped::Visitor) => self.answer(method, None, None, true),
        }
    }

    /// Whether the goal depends on the value of `var`, which several threads write.
    fn speaks_of(&self, var: VarId) -> bool {
        let mut leaves = self.placed.goal().leaves.iter();
        leaves.any(|leaf| matches!(leaf, Leaf::Shared(shared) if shared.var == var))
    }

    /// Says whether to stop, and after how many looks in any case.
    fn metered(&self) -> impl Fn() -> bool {
        let left = Cell::new(self.work_max / STATE_WORK);
        move || {
            let more = left.get().checked_sub(1);
            left.set(more.unwrap_or(0));
            more.is_none_or(|more| more.is_multiple_of(1 << 10) && (self.stop)())
        }
    }

    fn answer(
        &self,
        method: &'static str,
        is_met: Option<bool>,
        state: Option<Vec<u32>>,
        is_cut_short: bool,
    ) -> Answer {
        let state = state.map(|state| self.made.in_trace(self.trace, &state));
        let events_count = self.made.poset().len();
        Answer { is_met, state, race: None, is_cut_short, method, events_count }
    }
}

/// The last event of each thread that `state` holds.
#[must_use]
pub fn frontier(trace: &Trace, state: &IndexVec<ThreadId, u32>) -> Vec<EventId> {
    let last = |(thread, &count): (ThreadId, &u32)| {
        let index = (count as usize).checked_sub(1)?;
        trace.thread_events(thread).get(index).copied()
    };
    state.entries().filter_map(last).collect()
}
