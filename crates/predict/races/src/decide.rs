//! Deciding pairs: each put before the engine, many at a time, on as many threads as there may be.
//!
//! Every pair is decided on its own, so neither the answers nor their order depend on the threads.

use rayon::prelude::*;
use reweave_analysis::{Proof, Settings, Subject};
use reweave_reorder::{Answer, Budget, Query, Refuted, Solver};
use reweave_trace::Goal;

use crate::Race;

/// Which part of the budget one pair may cost at most.
const SHARE: u64 = 16;

/// Which reorderings are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All correct ones.
    All,
    /// Those that keep the observed order of the sections of each lock that they run.
    Preserving,
}

/// How hard to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// As hard as the budget allows.
    Full,
    /// What takes no closure.
    Quick,
}

/// What came of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The two can come together.
    Race,
    /// They cannot.
    None,
    /// The budget ended first.
    Unknown,
}

/// What came of trying to prove a pair.
#[derive(Clone, Debug)]
pub(crate) enum Tried {
    /// The checker accepted a schedule.
    Proven(Proof),
    /// No correct reordering brings the two together.
    Refuted,
    /// The budget of the try ended first.
    Unknown,
    /// There was no budget left for a try.
    Untried,
}

impl Tried {
    /// The proof, if there is one.
    pub(crate) fn proof(self) -> Option<Proof> {
        match self {
            Self::Proven(proof) => Some(proof),
            Self::Refuted | Self::Unknown | Self::Untried => None,
        }
    }
}

/// What to run pairs with.
#[derive(Debug)]
pub(crate) struct Decider<'a, 't> {
    subject: &'a Subject<'t>,
    pool: Option<rayon::ThreadPool>,
    scope: Scope,
    budget: Budget,
}

impl<'a, 't> Decider<'a, 't> {
    pub(crate) fn new(subject: &'a Subject<'t>, settings: &Settings, scope: Scope) -> Self {
        let pool = (settings.threads > 1)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build().ok());
        let budget = Budget { work: settings.budget / SHARE, ..Budget::default() };
        Self { subject, pool: pool.flatten(), scope, budget }
    }

    /// The verdict on each of `races`, and the work that they took together; none for those that
    /// a quick look does not decide, if that is all there may be.
    pub(crate) fn decide(&self, races: &[Race], effort: Effort) -> (Vec<Option<Verdict>>, u64) {
        let verdicts = self.map(races, |solver, race| {
            let answer = match (effort, self.scope) {
                (Effort::Quick, Scope::All) => solver.solve_quickly(&query(race)),
                _ => Some(self.answer(solver, race)),
            };
            let verdict = answer.map(|answer| match answer {
                Answer::Feasible(_) => Verdict::Race,
                Answer::Infeasible(_) => Verdict::None,
                Answer::Unknown => Verdict::Unknown,
            });
            (verdict, solver.take_work())
        });
        let work = verdicts.iter().map(|&(_, work)| work).sum();
        (verdicts.into_iter().map(|(verdict, _)| verdict).collect(), work)
    }

    /// What comes of trying to prove each of `races`, and the work that they took together.
    pub(crate) fn prove(&self, races: &[Race]) -> (Vec<Tried>, u64) {
        let tries = self.map(races, |solver, race| {
            let tried = match self.answer(solver, race) {
                Answer::Feasible(reordering) => {
                    let goal = Goal::Race(race.first, race.second);
                    // A schedule that the checker refuses says nothing about the pair.
                    self.subject.prove(reordering, goal).map_or(Tried::Unknown, Tried::Proven)
                }
                Answer::Infeasible(_) => Tried::Refuted,
                Answer::Unknown => Tried::Unknown,
            };
            (tried, solver.take_work())
        });
        let work = tries.iter().map(|(_, work)| work).sum();
        (tries.into_iter().map(|(tried, _)| tried).collect(), work)
    }

    fn answer(&self, solver: &mut Solver<'_, 't>, race: &Race) -> Answer {
        match self.scope {
            Scope::All => solver.solve(&query(race)),
            Scope::Preserving => solver
                .sync_preserving(&query(race))
                .map_or(Answer::Infeasible(Refuted::Exhausted), Answer::Feasible),
        }
    }

    fn map<R: Send>(
        &self,
        races: &[Race],
        work: impl Fn(&mut Solver<'_, 't>, &Race) -> R + Sync,
    ) -> Vec<R> {
        let solver = || Solver::new(self.subject.engine(), self.budget);
        match &self.pool {
            None => {
                let mut solver = solver();
                races.iter().map(|race| work(&mut solver, race)).collect()
            }
            Some(pool) => pool.install(|| {
                races.par_iter().map_init(solver, |solver, race| work(solver, race)).collect()
            }),
        }
    }
}

fn query(race: &Race) -> Query {
    Query::enabled(&[race.first, race.second])
}
