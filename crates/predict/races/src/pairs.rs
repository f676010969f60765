//! Pairs of accesses: what they are counted by, grouped by, and how a verdict on them reads.

use reweave_analysis::{
    Counter, Counters, Detail, Evidence, Finding, Guarantee, Info, Subject, WeakAccess, spelled,
    too_weak,
};
use reweave_driver::{Evaluated, Evaluator, Open, Predictor, Reorderings, Tried};
use reweave_reorder::{Answer, Query};
use reweave_trace::{EventId, Goal, SiteId, Trace};

/// Of how many location pairs, with what is accessed there, instances are kept.
pub const GROUPS_MAX: usize = 100_000;

/// Two conflicting accesses of different threads; `first` was observed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Race {
    /// The access observed first.
    pub first: EventId,
    /// The other.
    pub second: EventId,
}

impl Race {
    /// Races are listed in the order in which they showed: by the second access, then the first.
    pub(crate) const fn order(&self) -> (EventId, EventId) {
        (self.second, self.first)
    }

    /// Whether a reordering brings the two together.
    pub(crate) fn query(&self) -> Query {
        Query::enabled(&[self.first, self.second])
    }

    /// A reordering that runs both, with nothing that orders them.
    pub(crate) fn unordered(
        &self,
        evaluator: &mut Evaluator<'_, '_>,
        reorderings: Reorderings,
    ) -> Answer {
        let (solver, Self { first, second }) = (evaluator.solver(), *self);
        match reorderings {
            Reorderings::All => solver.unordered(first, second),
            Reorderings::SyncPreserving => solver.sync_preserving_unordered(first, second),
        }
    }
}

/// How many races a trace holds, counted four ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pairs of accesses.
    pub pairs: u64,
    /// Events that are the second of a pair.
    pub second_events: u64,
    /// Variables with a pair.
    pub vars: u64,
    /// Pairs of code locations with a pair of accesses.
    pub location_pairs: u64,
}

impl Counts {
    pub(crate) fn counters(self) -> Counters {
        vec![
            (Counter::Pairs, self.pairs),
            (Counter::SecondEvents, self.second_events),
            (Counter::RacyVars, self.vars),
            (Counter::LocationPairs, self.location_pairs),
        ]
    }
}

/// The pairs between two code locations on what has one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// A site at each of the two locations.
    pub sites: (SiteId, SiteId),
    /// How many pairs there are.
    pub count: u64,
    /// The earliest of them, at most [`TRIES_MAX`](reweave_driver::TRIES_MAX).
    pub earliest: Vec<Race>,
}

/// The groups that findings are made of: those of location pairs with what is accessed, or each pair by itself.
pub(crate) fn to_prove(
    groups: Vec<Group>,
    pairs: Vec<Race>,
    all: bool,
) -> impl Iterator<Item = reweave_driver::Group<Race>> {
    let groups = if all { Vec::new() } else { groups };
    let pairs = if all { pairs } else { Vec::new() };
    let grouped = groups.into_iter().map(|it| reweave_driver::Group::new(it.earliest, it.count));
    grouped.chain(pairs.into_iter().map(|race| reweave_driver::Group::new(vec![race], 1)))
}

/// One access of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// Its number in its thread, counted from 1.
    pub(crate) time: u32,
    pub(crate) event: EventId,
}

/// Accesses of one thread at one site, oldest first, that a later access is unordered with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unordered<'a> {
    pub(crate) site: SiteId,
    pub(crate) accesses: &'a [Access],
    pub(crate) second: EventId,
}

impl Unordered<'_> {
    /// The earlier accesses, oldest first.
    pub(crate) fn firsts(&self) -> impl ExactSizeIterator<Item = EventId> + DoubleEndedIterator {
        self.accesses.iter().map(|access| access.event)
    }

    /// How many there are.
    pub(crate) const fn len(&self) -> usize {
        self.accesses.len()
    }

    /// Those from `earliest` on, if there are any.
    pub(crate) fn since(self, earliest: EventId) -> Option<Self> {
        let from = self.accesses.partition_point(|access| access.event < earliest);
        let accesses = &self.accesses[from..];
        (!accesses.is_empty()).then_some(Self { accesses, ..self })
    }
}

/// Says which question a pair asks, and makes findings of pairs.
pub(crate) struct RacePredictor<'a, 't> {
    pub(crate) info: &'static Info,
    subject: &'a Subject<'t>,
    trace: &'t Trace,
    pub(crate) reorderings: Reorderings,
    /// Whether the engine has found all of them to be feasible already.
    pub(crate) is_decided: bool,
    /// The pair that is the first one a relation finds, if that says something.
    pub(crate) first: Option<Race>,
    /// Groups with no schedule but one that rests on reads of unknown writers.
    pub(crate) unknown_writer: u64,
    /// Groups that were reported without a try, the budget being used up.
    pub(crate) untried: u64,
    /// Groups whose candidates are refuted, but that have more instances than candidates.
    pub(crate) capped: u64,
    /// Groups that were tried and neither proven nor refuted.
    pub(crate) undecided: u64,
}

impl<'a, 't> RacePredictor<'a, 't> {
    pub(crate) const fn new(
        info: &'static Info,
        subject: &'a Subject<'t>,
        reorderings: Reorderings,
    ) -> Self {
        Self {
            info,
            subject,
            trace: subject.trace(),
            reorderings,
            is_decided: false,
            first: None,
            unknown_writer: 0,
            untried: 0,
            capped: 0,
            undecided: 0,
        }
    }
}

impl Predictor for RacePredictor<'_, '_> {
    type Candidate = Race;

    const BATCH: usize = 1024;

    fn is_decided(&self) -> bool {
        self.is_decided
    }

    fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, race: &Race) -> Tried {
        let Race { first, second } = *race;
        let together = (race.query(), Goal::Race(first, second));
        let tried = evaluator.ask([together], self.reorderings);
        if tried.is_witnessed() || !self.trace.synchronization().is_weak() {
            return tried;
        }
        tried.or_better(match race.unordered(evaluator, self.reorderings) {
            Answer::Feasible(found) => evaluator.prove(found, Goal::Unordered(first, second)),
            Answer::Infeasible(_) => Tried::Refuted,
            Answer::Unknown => Tried::Unknown,
        })
    }

    fn report(&mut self, group: Evaluated<Race>) -> Option<Finding> {
        let race = group.candidate;
        let why = match (&group.proof, group.open, group.tried) {
            (Some(_), ..) => {
                self.unknown_writer += u64::from(!group.is_witnessed());
                "can happen at the same time in a schedule that depends on reads with an unknown \
                 writer"
            }
            (None, None, _) => "are left unordered, but no correct reordering brings them together",
            (None, Some(Open::Untried), 0) => {
                self.untried += 1;
                "are left unordered; not tried: the budget ran out"
            }
            (None, Some(Open::Capped), _) => {
                self.capped += 1;
                "are left unordered; no correct reordering brings the instances that were tried \
                 together"
            }
            (None, Some(Open::Refused), _) => {
                "are left unordered; the checker refused the schedule that was found"
            }
            (None, Some(Open::Untried | Open::Unknown), _) => {
                self.undecided += 1;
                "are left unordered; the search for a schedule gave up"
            }
        };
        let proof = group.proof.as_ref();
        let is_apart = proof.is_some_and(|it| matches!(it.goal(), Goal::Unordered(..)));
        let weak = if is_apart {
            let mhb = self.subject.engine().mhb();
            too_weak(self.trace, mhb, race.first, race.second)
        } else {
            Vec::new()
        };
        let evidence = match group.proof {
            Some(proof) => Evidence::Schedule(proof),
            None if self.first == Some(race) => Evidence::First,
            None => Evidence::Unordered,
        };
        let [first, second] = [race.first, race.second].map(|access| spelled(self.trace, access));
        let verdict = match evidence.guarantee() {
            Guarantee::Observed | Guarantee::Witnessed | Guarantee::Decided if is_apart => {
                let is_attempt = |it: &WeakAccess| it.tried_lock(self.trace).is_some();
                match weak[..] {
                    [] => "can both happen with nothing that orders them",
                    _ if weak.iter().any(is_attempt) => {
                        "are ordered by nothing: an attempt to take a lock that fails does not synchronize"
                    }
                    _ => "are ordered by nothing: the atomics between them do not synchronize",
                }
            }
            Guarantee::Observed | Guarantee::Witnessed | Guarantee::Decided => {
                "can happen at the same time"
            }
            Guarantee::First => "are a race, or threads can deadlock before",
            Guarantee::Unordered => why,
        };
        Some(Finding {
            analysis: self.info.name,
            kind: self.info.kind,
            events: vec![race.first, race.second],
            message: format!("{first} and {second} {verdict}"),
            count: group.count,
            evidence,
            detail: if is_apart { Detail::MemoryOrders(weak) } else { Detail::None },
        })
    }
}
