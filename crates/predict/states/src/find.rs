//! Is there a global state of a trace that meets a predicate, and which is the least?
//!
//! The poset that is searched has only the events that can change the answer. The [`Class`] of the
//! predicate decides how: conjunctive and linear predicates have a least state that is found in
//! polynomial time, and of several alternatives the least is taken; all others are searched by the
//! decision diagram, whose nodes carry what is known of the predicate.
//!
//! The state found has the fewest of the events that can change the answer, and besides only what
//! those need: no smaller state meets the predicate. A search that was cut short says so; it may
//! have found one that is not the least.
//!
//! `definitely` is about paths instead: from the empty state to all events, one at a time, with the
//! writes of the variables it speaks of in observed order. It is polynomial for one conjunction and
//! for stable predicates; otherwise all states of one size that avoid the predicate are kept.

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

use crate::by_chain;
use crate::detect;
use crate::enumerate::{Bounds, Stopped};
use crate::mdd::{self, Limits, Reason};
use crate::online::{Least, OnlineDetector, Options, State, replay};
use crate::pairwise::first_races_until;
use crate::predicate::{Class, Conjunction, Leaf, Modality, PosetPredicate, Predicate};

/// The most numbers that the states of two sizes have together when all paths are searched.
const PATHS_MAX: usize = 1 << 26;

/// How often an online search checks whether to stop.
const PATIENCE: Duration = Duration::from_millis(1);

/// How much work it is to evaluate a predicate at a state, in arcs of the decision diagram.
const STATE_WORK: u64 = 8;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether some state meets the goal, or under `definitely` every path has one that does; none
    /// if that was not decided.
    pub is_met: Option<bool>,
    /// The least state that meets the goal, if it is met: how many events each thread has run.
    pub state: Option<IndexVec<ThreadId, u32>>,
    /// The two accesses that race, where that was the question.
    pub race: Option<(EventId, EventId)>,
    /// Whether the search was cut short.
    pub is_cut_short: bool,
    /// Which method decided it.
    pub method: &'static str,
    /// How many events the poset had that was searched.
    pub events_count: usize,
}

/// Searches the states of `trace`, by `relation`, for one that meets the goal of `predicate`, which
/// is about it. At most `work_max` arcs of the decision diagram are followed, and `stop` ends it
/// early.
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

/// The state of `poset` with the fewest events that meets `predicate`, which can be anything. At
/// most `states_max` states are evaluated, and `stop` ends it early.
///
/// States that are no smaller than one found before are skipped; of equally small ones the first
/// found counts, which is always the same.
pub fn least(
    poset: &Poset,
    predicate: impl Fn(&[u32]) -> bool,
    states_max: u64,
    stop: &dyn Fn() -> bool,
) -> by_chain::Least {
    let lengths = poset.chains().map(|chain| u64::from(poset.length(chain)));
    let weights: Vec<Vec<u64>> = lengths.map(|length| (0..=length).collect()).collect();
    let is_stopped = AtomicBool::new(false);
    let mut asked = 0_u32;
    let is_met = |state: &[u32]| {
        asked = asked.wrapping_add(1);
        if asked.is_multiple_of(1 << 10) && stop() {
            is_stopped.store(true, Ordering::Relaxed);
        }
        predicate(state)
    };
    let stop = || is_stopped.load(Ordering::Relaxed);
    let limits = by_chain::Limits { states: Some(states_max), stop: Some(&stop) };
    by_chain::least(poset, &Bounds::all(poset), &weights, is_met, &limits)
}

/// Searches as [`find`] does, but by the online detector: the events that matter are inserted as if
/// they happened now, and the states that each adds are searched by so many `workers`, at most
/// `states_max` for one event. `definitely`, which is about whole runs, and races, which take one
/// pass in any case, are answered by [`find`].
///
/// # Errors
/// If the poset would take too much memory.
pub fn find_online(
    trace: &Trace,
    predicate: &Predicate,
    relation: Relation,
    workers: usize,
    states_max: u64,
    stop: &dyn Fn() -> bool,
) -> Result<Answer, IllFormedPoset> {
    if *predicate.class() == Class::Pairwise || predicate.modality() == Modality::Definitely {
        return find(trace, predicate, relation, states_max, stop);
    }
    let made = poset(trace, predicate, relation)?;
    let placed = predicate.on(trace, &made);
    let chains_count = made.poset().chains_count();
    let is_met = move |state: &State<'_, ()>| {
        // A thread that has done nothing yet may not be listed.
        let mut cut = vec![0; chains_count];
        cut[..state.indices().len()].copy_from_slice(state.indices());
        placed.is_met(&cut)
    };
    let options = Options { workers, states_max, ..Options::default() };
    let detector = OnlineDetector::new(Least::new(is_met), options);
    let interrupt = detector.interrupt_flag();
    let mut is_stopped = false;
    // `stop` can be asked on this thread only, so the events are inserted on another.
    let outcome = thread::scope(|scope| {
        let searched = scope.spawn(|| {
            let inserted = replay(made.poset(), |_, _| (), &detector);
            inserted.expect("a poset's clocks are those of an order");
            detector.finish()
        });
        while !searched.is_finished() {
            if stop() {
                is_stopped = true;
                interrupt.store(true, Ordering::Relaxed);
            }
            thread::sleep(PATIENCE);
        }
        searched.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    let answer = outcome.answer;
    let state = answer.least.map(|least| made.in_trace(trace, &least));
    // The detector does not know of events that were not inserted after an interrupt.
    let is_cut_short = is_stopped || !answer.is_certain;
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
    placed: &'a PosetPredicate,
    work_max: u64,
    stop: &'a dyn Fn() -> bool,
}

impl Search<'_> {
    /// Whether some state meets the goal; if it `is_stable`, the last state decides.
    fn possibly(&self, is_stable: bool) -> Answer {
        match self.placed.class() {
            Class::Constant(is_met) => {
                let bottom = is_met.then(|| vec![0; self.made.poset().chains_count()]);
                self.answer("constant", Some(*is_met), bottom, false)
            }
            _ if is_stable && !self.placed.is_met(&self.made.poset().top()) => {
                self.answer("stable", Some(false), None, false)
            }
            Class::Conjunctive(all) => self.by_form("conjunctive", all),
            Class::Linear(all) => self.by_form("linear", all),
            Class::Stable => self.by_diagram("stable"),
            Class::Sum(_) => self.by_diagram("sum"),
            Class::Fold | Class::Pairwise => self.by_diagram("fold"),
        }
    }

    /// The least of the states that are the least to meet one of `all`.
    fn by_form(&self, method: &'static str, all: &[Conjunction<ChainId>]) -> Answer {
        let least = |one: &Conjunction<ChainId>| {
            detect::least_linear(self.made.poset(), |cut| one.forbidden(cut))
        };
        let states = all.iter().filter_map(least);
        let least =
            states.min_by_key(|state| state.iter().map(|&index| u64::from(index)).sum::<u64>());
        self.answer(method, Some(least.is_some()), least, false)
    }

    /// The least state by the decision diagram.
    fn by_diagram(&self, method: &'static str) -> Answer {
        let poset = self.made.poset();
        let limits = Limits { work_max: self.work_max, ..Limits::default() };
        let fold = self.placed.fold();
        let bounds = Bounds::all(poset);
        let least = mdd::least(poset, &bounds, &fold, &|_, index| index, &limits, self.stop);
        if matches!(least.cut_short, Some(Reason::Memory | Reason::Nodes)) {
            return self.by_enumeration();
        }
        let is_cut_short = least.cut_short.is_some();
        self.searched(method, least.found.map(|(_, state)| state), is_cut_short)
    }

    /// The least state by enumeration, where what the diagram must remember does not fit in memory.
    fn by_enumeration(&self) -> Answer {
        let states_max = self.work_max / STATE_WORK;
        let is_met = |state: &[u32]| self.placed.is_met(state);
        let least = least(self.made.poset(), is_met, states_max, self.stop);
        let state = least.found.map(|(state, _)| state);
        self.searched("frontier", state, least.ended.is_some())
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
                ("conjunctive", Ok(detect::definitely_conjunctive(poset, &truths)))
            }
            _ => {
                let is_met = |state: &[u32]| self.placed.is_met(state);
                // On a path that writes a variable in another order than observed, its value is not
                // the one that the predicate is evaluated with.
                let ordered = poset.ordered(|chain, index| {
                    let op = self.trace.event(self.made.first(chain, index)?).op;
                    let var = op.var().filter(|&var| op.is_write() && self.speaks_of(var));
                    var.map(Id::index)
                });
                (method, detect::definitely(&ordered, PATHS_MAX, &self.metered(), is_met))
            }
        };
        match is_met {
            Ok(true) => {
                let answer = self.possibly(is_stable);
                match answer.state {
                    Some(_) => Answer { method, ..answer },
                    // It is met all the same; if it is stable, the last state shows it.
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

    /// Whether to stop: when asked to, and when the work is spent.
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

/// The last event of each thread in `state`.
#[must_use]
pub fn last_events(trace: &Trace, state: &IndexVec<ThreadId, u32>) -> Vec<EventId> {
    let last = |(thread, &count): (ThreadId, &u32)| {
        let index = (count as usize).checked_sub(1)?;
        trace.thread_events(thread).get(index).copied()
    };
    state.entries().filter_map(last).collect()
}
