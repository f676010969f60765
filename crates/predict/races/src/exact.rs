//! Exact races: which conflicting accesses can some correct reordering bring together, or run with
//! nothing that orders them?
//!
//! Every pair that a cheap look does not rule out ([`mod@crate::candidates`]) is put before the
//! engine ([`reweave_reorder`]), which finds a schedule, refutes the pair, or runs out of budget.
//! So this finds what happens-before, SHB, WCP, CP and sync-preserving prediction find, as far as
//! it is real, and what all of them miss; and nothing that cannot happen: each finding's schedule
//! is accepted by the checker. `races.syncp` asks the same of the candidates, but only for
//! reorderings that keep the observed order of the sections they run, which growth alone decides.
//!
//! Where atomics hand something over that their memory orders do not order, two accesses that never
//! come together race all the same, if some correct reordering runs both and its happens-before
//! orders neither. Then all pairs are candidates that memory orders leave unordered, and those that
//! cannot come together are asked about once more. In a trace without such atomics and without
//! conditions there are none: what nothing orders in a reordering can come together in a shorter one.
//!
//! Pairs are grouped by code location and what they access, and the earliest proven instance is shown. After much work, a
//! location pair that has a proven instance gets only a quick look at its others, and none once
//! [`PROVEN_MAX`] are proven, which is more than anyone looks at. Then the counts are lower bounds
//! and say so.
//!
//! Costs the pass over the candidates and a query for each; queries are independent and run in
//! parallel. Memory is linear in the accesses and the location pairs.
//!
//! Follows for sync-preserving races Mathur, Pavlogiannis and Viswanathan (POPL 2021); the rest is
//! our own, after Definition 4 of Smaragdakis et al. (POPL 2012).

use std::ops::ControlFlow;

use reweave_analysis::{
    Analysis, Counter, Coverage, Gathered, Guarantee, Info, Kind, Layer, Settings, Sink, Subject,
    Truncation,
};
use reweave_base::{FxHashSet, Id};
use reweave_driver::{Driver, Evaluator, Reorderings, Workers};
use reweave_order::mhb::MustHappenBefore;
use reweave_order::shb::SchedulableHappensBefore;
use reweave_reorder::Answer;
use reweave_trace::{SiteId, Trace};

use crate::candidates::Candidates;
use crate::pairs::{Access, Counts, GROUPS_MAX, Group, Race, RacePredictor, Unordered, to_prove};
use crate::relation::{Groups, Key, Maxima, Races};

/// How many instances of one location pair are proven at most.
pub const PROVEN_MAX: u64 = 1_000;

/// How many candidates are decided at a time.
const BATCH: usize = 1 << 14;

/// How many of those that a quick look leaves open are.
const HARD_BATCH: usize = 64;

/// After how much work location pairs with a proven instance get no more than a quick look.
const BEST_EFFORT_AFTER: u64 = 20_000_000;

/// How many runs of accesses the pass over the candidates looks at, at most.
const LOOKS_MAX: u64 = 4_000_000_000;

/// How many location pairs are distinguished beyond those that findings are made of.
const UNLISTED_MAX: usize = 2_000_000;

/// How many events are gone through between two looks at whether to stop.
const STRIDE: usize = 1 << 16;

/// How many pairs are kept to be listed one by one at most.
const PAIRS_MAX: usize = 10_000_000;

/// What was decided of a whole trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// How many races the engine found.
    pub counts: Counts,
    /// The proven pairs by location pair, in the order of their earliest instances.
    pub groups: Vec<Group>,
    /// Candidates that cannot race.
    pub refuted: u64,
    /// Candidates on which the engine's budget ended.
    pub unknown: u64,
    /// Candidates of location pairs with so many proven instances that no more were decided.
    pub skipped: u64,
    /// Location pairs of candidates that were not decided, there being so many others: at least.
    pub unlisted: u64,
    /// Why not all candidates were gone through, if so.
    pub truncated: Option<Truncation>,
    /// Every proven pair, where all were asked for.
    pub pairs: Vec<Race>,
}

/// How hard to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// As hard as the budget allows.
    Full,
    /// What takes no saturation.
    Quick,
}

/// What came of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The two can come together, or both happen with nothing that orders them.
    Race,
    /// They cannot.
    Refuted,
    /// The budget ended first.
    Unknown,
}

impl From<Answer> for Verdict {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Feasible(_) => Self::Race,
            Answer::Infeasible(_) => Self::Refuted,
            Answer::Unknown => Self::Unknown,
        }
    }
}

/// Every race of `trace` that a correct reordering shows.
///
/// ```
/// let trace = reweave_testkit::trace("
/// T1    T2
/// w(x)
///       r(x)
/// w(y)
///       r(y)
/// ");
/// assert_eq!(reweave_races::exact::races(&trace).counts.pairs, 2);
/// ```
#[must_use]
pub fn races(trace: &Trace) -> Decided {
    decided(trace, Reorderings::All)
}

/// Every race of `trace` that a reordering shows which keeps the observed order of the sections
/// that it runs.
///
/// ```
/// let trace = reweave_testkit::trace("
/// T1      T2
/// acq(m)
/// w(x)
/// rel(m)
///         acq(m)
///         rel(m)
///         w(x)
/// ");
/// // T2 would have to take the lock first, which turns the observed order round.
/// assert_eq!(reweave_races::exact::preserving_races(&trace).counts.pairs, 0);
/// ```
#[must_use]
pub fn preserving_races(trace: &Trace) -> Decided {
    decided(trace, Reorderings::SyncPreserving)
}

fn decided(trace: &Trace, reorderings: Reorderings) -> Decided {
    let (subject, mut sink) = (Subject::new(trace), Gathered::default());
    let settings = Settings { all: true, ..Settings::default() };
    let mut driver = Driver::new(&subject, &settings, &mut sink);
    Pass::new(&mut driver, reorderings).run()
}

/// The pass over the candidates.
struct Pass<'d, 'a, 't> {
    trace: &'t Trace,
    driver: &'d mut Driver<'a, 't>,
    workers: Workers<'a, Evaluator<'a, 't>>,
    reorderings: Reorderings,
    keeps_pairs: bool,
    groups: Groups<'t>,
    /// Location pairs of candidates beyond those that findings are made of.
    unlisted: FxHashSet<(SiteId, SiteId)>,
    /// Candidates to be decided together.
    batch: Vec<Candidate>,
    /// Whether atomics hand something over without ordering it.
    is_weak: bool,
    decided: Decided,
}

/// A pair that might race.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    race: Race,
    /// Whether nothing orders it in the observed run.
    is_unordered: bool,
}

impl<'d, 'a, 't> Pass<'d, 'a, 't> {
    fn new(driver: &'d mut Driver<'a, 't>, reorderings: Reorderings) -> Self {
        let trace = driver.trace();
        let all = Maxima { groups: usize::MAX, location_pairs: usize::MAX };
        Self {
            trace,
            workers: driver.evaluators(driver.query_budget()),
            reorderings,
            keeps_pairs: driver.settings().all,
            driver,
            groups: Groups::bounded(trace, all),
            unlisted: FxHashSet::default(),
            batch: Vec::new(),
            is_weak: trace.synchronization().is_weak(),
            decided: Decided::default(),
        }
    }

    fn run(mut self) -> Decided {
        // Cut short or not, what was decided counts.
        _ = self.go();
        let Races { counts, groups, .. } = self.groups.finish();
        (self.decided.counts, self.decided.groups) = (counts, groups);
        self.decided.unlisted = self.unlisted.len() as u64;
        if self.decided.unknown > 0 {
            self.driver.truncate(Truncation::Budget);
        }
        if self.decided.unlisted > 0 {
            self.driver.truncate(Truncation::Capped);
        }
        self.decided.truncated = self.driver.truncated();
        self.decided
    }

    fn go(&mut self) -> ControlFlow<()> {
        let engine = self.driver.subject().engine();
        let synchronized = self.is_weak.then(|| MustHappenBefore::synchronized(self.trace));
        // Conditions and semaphores order more than these clocks say.
        let names = self.trace.names();
        let is_plain = names.conditions.is_empty() && names.semaphores.is_empty();
        let is_decided_by_clocks = self.is_weak && is_plain;
        let mut observed = is_decided_by_clocks.then(SchedulableHappensBefore::by_memory_orders);
        let needs = synchronized.as_ref().unwrap_or_else(|| engine.mhb());
        let mut candidates = Candidates::new(self.trace, needs);
        for (second, event) in self.trace.events() {
            let clock = observed.as_mut().map(|observed| observed.advance(self.trace, second));
            if second.index().is_multiple_of(STRIDE) {
                self.driver.progress(second.index(), self.trace.len())?;
            }
            let from = self.batch.len();
            candidates.step(second, |unordered| {
                let key = self.groups.key(unordered.site, &event);
                let group = self.groups.get(key);
                if self.is_best_effort() && group.is_some_and(|group| group.count >= PROVEN_MAX) {
                    self.decided.skipped += unordered.len() as u64;
                    return;
                }
                if group.is_none() && self.is_full() {
                    self.decided.skipped += unordered.len() as u64;
                    if self.unlisted.len() < UNLISTED_MAX {
                        self.unlisted.insert(key.sites);
                    }
                    return;
                }
                // No more of one run than could ever be shown.
                let most = if self.is_best_effort() { PROVEN_MAX as usize } else { PAIRS_MAX };
                self.decided.skipped += unordered.len().saturating_sub(most) as u64;
                let accesses = unordered.accesses.iter().take(most);
                self.batch.extend(accesses.map(|&Access { event: first, time }| {
                    let thread = self.trace.event(first).thread;
                    let is_unordered = clock.is_some_and(|clock| clock.get(thread) < time);
                    Candidate { race: Race { first, second }, is_unordered }
                }));
            });
            self.batch[from..].sort_unstable_by_key(|candidate| candidate.race.order());
            if self.batch.len() >= BATCH {
                self.flush()?;
            }
            if candidates.work > LOOKS_MAX {
                self.driver.truncate(Truncation::Capped);
                break;
            }
        }
        self.flush()
    }

    /// Whether there are as many location pairs as findings are made of.
    fn is_full(&self) -> bool {
        !self.keeps_pairs && self.groups.len() >= GROUPS_MAX
    }

    /// Decides the candidates that were gathered; a break if it should stop.
    fn flush(&mut self) -> ControlFlow<()> {
        let batch = std::mem::take(&mut self.batch);
        self.driver.check_cancelled()?;
        if self.driver.work_left() == 0 && !batch.is_empty() {
            self.driver.truncate(Truncation::Budget);
            return ControlFlow::Break(());
        }
        let mut verdicts = vec![None; batch.len()];
        let all: Vec<usize> = (0..batch.len()).collect();
        self.decide(&batch, &all, Effort::Quick, &mut verdicts);
        let open: Vec<usize> = all.into_iter().filter(|&at| verdicts[at].is_none()).collect();
        if self.is_best_effort() {
            self.decide_one_per_group(&batch, open, &mut verdicts);
        } else {
            self.decide(&batch, &open, Effort::Full, &mut verdicts);
        }
        for (candidate, verdict) in batch.into_iter().zip(verdicts) {
            match verdict {
                Some(Verdict::Race) => self.add(candidate.race),
                Some(Verdict::Refuted) => self.decided.refuted += 1,
                Some(Verdict::Unknown) => self.decided.unknown += 1,
                None => self.decided.skipped += 1,
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether so much work was done that location pairs with a proven instance get no more than a
    /// quick look.
    fn is_best_effort(&self) -> bool {
        !self.keeps_pairs && self.driver.work() > BEST_EFFORT_AFTER
    }

    /// Decides those of `batch` that `chosen` lists.
    fn decide(
        &mut self,
        batch: &[Candidate],
        chosen: &[usize],
        effort: Effort,
        verdicts: &mut [Option<Verdict>],
    ) {
        let (reorderings, is_weak) = (self.reorderings, self.is_weak);
        let evaluate = |evaluator: &mut Evaluator<'_, '_>, candidate: &mut Candidate, _: u64| {
            let Candidate { race, is_unordered } = *candidate;
            let together = match (effort, reorderings) {
                (Effort::Quick, Reorderings::All) => {
                    evaluator.solver().solve_quickly(&race.query())
                }
                _ => Some(evaluator.answer(&race.query(), reorderings)),
            };
            let verdict = match (together.map(Verdict::from), effort) {
                (Some(Verdict::Race), _) => Some(Verdict::Race),
                (_, Effort::Quick) if is_unordered => Some(Verdict::Race),
                (_, Effort::Quick) if is_weak => None,
                (Some(verdict), _) if is_weak => {
                    let apart = Verdict::from(race.unordered(evaluator, reorderings));
                    Some(if apart == Verdict::Refuted { verdict } else { apart })
                }
                (verdict, _) => verdict,
            };
            (verdict, evaluator.take_work())
        };
        // What is hard may take long: there is a look at whether to stop every now and then.
        let size = if effort == Effort::Full { HARD_BATCH } else { BATCH };
        let mut candidates: Vec<Candidate> = chosen.iter().map(|&at| batch[at]).collect();
        let mut places = chosen.iter();
        let take = |_: &mut Driver<'_, '_>, _: &mut Candidate, verdict| {
            if let Some(&at) = places.next() {
                verdicts[at] = verdict;
            }
            ControlFlow::Continue(())
        };
        _ = self.driver.batches(&self.workers, &mut candidates, size, evaluate, take);
        // Those for which the budget or the patience of whoever waits did not last.
        if effort == Effort::Full {
            places.for_each(|&at| verdicts[at] = Some(Verdict::Unknown));
        }
    }

    /// Decides of those that are `open` one instance of each group at a time, until one is
    /// proven.
    fn decide_one_per_group(
        &mut self,
        batch: &[Candidate],
        mut open: Vec<usize>,
        verdicts: &mut [Option<Verdict>],
    ) {
        let key_of = |pass: &Self, race: &Race| {
            let site = pass.trace.event(race.first).site;
            pass.groups.key(site, &pass.trace.event(race.second))
        };
        let mut proven: FxHashSet<Key> = FxHashSet::default();
        loop {
            for (candidate, verdict) in batch.iter().zip(&*verdicts) {
                if *verdict == Some(Verdict::Race) {
                    proven.insert(key_of(self, &candidate.race));
                }
            }
            let mut chosen: FxHashSet<Key> = FxHashSet::default();
            let (mut now, mut later) = (Vec::new(), Vec::new());
            for at in open {
                let key = key_of(self, &batch[at].race);
                if proven.contains(&key) || self.groups.get(key).is_some() {
                    continue;
                }
                if chosen.insert(key) { now.push(at) } else { later.push(at) }
            }
            if now.is_empty() {
                return;
            }
            self.decide(batch, &now, Effort::Full, verdicts);
            open = later;
        }
    }

    fn add(&mut self, race: Race) {
        let Race { first, second } = race;
        let (site, time) = (self.trace.event(first).site, self.trace.position(first) + 1);
        let accesses = &[Access { time, event: first }];
        self.groups.add(self.trace, &Unordered { site, accesses, second });
        if self.keeps_pairs {
            if self.decided.pairs.len() < PAIRS_MAX {
                self.decided.pairs.push(race);
            } else {
                self.driver.truncate(Truncation::Capped);
            }
        }
    }
}

/// The exact analyses.
#[derive(Clone, Copy, Debug)]
pub struct ExactRaces {
    info: &'static Info,
    reorderings: Reorderings,
}

/// All races that can be proven.
pub const EXACT: ExactRaces = ExactRaces {
    info: &Info {
        name: "races.exact",
        family: "races",
        kind: Kind::Race,
        guarantee: Guarantee::Witnessed,
        needs: Layer::Events,
        is_default: true,
        summary: "every race that some correct reordering shows",
        paper: "our own, after Smaragdakis et al., POPL 2012, Definition 4",
    },
    reorderings: Reorderings::All,
};

/// Those that keep the observed order of sections.
pub const SYNC_PRESERVING: ExactRaces = ExactRaces {
    info: &Info {
        name: "races.syncp",
        family: "races",
        kind: Kind::Race,
        guarantee: Guarantee::Witnessed,
        needs: Layer::Events,
        is_default: false,
        summary: "races of reorderings that keep the order of critical sections",
        paper: "Mathur, Pavlogiannis and Viswanathan, POPL 2021",
    },
    reorderings: Reorderings::SyncPreserving,
};

impl Analysis for ExactRaces {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let mut driver = Driver::new(subject, settings, sink);
        let decided = Pass::new(&mut driver, self.reorderings).run();
        let mut predictor = RacePredictor::new(self.info, subject, self.reorderings);
        // What was decided is proven whatever it takes, so that nothing that counts goes unreported.
        predictor.is_decided = true;
        _ = driver.prove(&mut predictor, to_prove(decided.groups, decided.pairs, settings.all));
        let mut counters = decided.counts.counters();
        counters.push((Counter::Refuted, decided.refuted));
        counters.extend((decided.skipped > 0).then_some((Counter::PairsExact, 0)));
        counters.extend((decided.unlisted > 0).then_some((Counter::LocationPairsExact, 0)));
        let is_bound = decided.unlisted >= UNLISTED_MAX as u64;
        counters.extend(is_bound.then_some((Counter::UnlistedExact, 0)));
        let undecided = decided.unknown + predictor.undecided + predictor.untried;
        let unknown_writer = if settings.all { 0 } else { predictor.unknown_writer };
        let more = [
            (Counter::Untried, decided.unlisted),
            (Counter::Unlisted, decided.unlisted),
            (Counter::Capped, predictor.capped),
            (Counter::Undecided, undecided),
            (Counter::UnknownWriter, unknown_writer),
        ];
        counters.extend(more.into_iter().filter(|&(_, count)| count > 0));
        driver.coverage(self.info, counters)
    }
}
