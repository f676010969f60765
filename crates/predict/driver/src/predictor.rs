//! What an analysis predicts, and which candidate of a group is shown.

use std::ops::ControlFlow;

use reweave_analysis::{Finding, Proof, Truncation};
use reweave_reorder::Budget;

use crate::driver::{Driver, Evaluator, Workers};

/// How many groups take turns with each other; a trace with more is gone through in such parts, which
/// bounds the memory for proofs that are not final.
const GROUPS_AT_ONCE: usize = 1 << 16;

/// How many instances at the same code locations are tried, where an analysis knows no better.
pub const TRIES_MAX: usize = 8;

/// Which reorderings are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reorderings {
    /// All correct ones.
    All,
    /// Those that keep the observed order of the sections of each lock that they run.
    SyncPreserving,
}

/// What one analysis predicts.
pub trait Predictor: Sync {
    /// Something that might be a fault.
    type Candidate: Clone + Send + Sync;

    /// How many candidates are evaluated between two looks at whether to stop.
    const BATCH: usize = 64;

    /// Whether candidates are known to be feasible: then proving them is neither charged nor limited.
    fn is_decided(&self) -> bool {
        false
    }

    /// How much one query may take, if that is less than the driver allows.
    fn query_budget(&self, usual: Budget) -> Budget {
        usual
    }

    /// What comes of trying `candidate`: as a rule, of the questions that [`Evaluator::ask`] answers.
    fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, candidate: &Self::Candidate) -> Tried;

    /// What is reported of `group`, if anything.
    fn report(&mut self, group: Evaluated<Self::Candidate>) -> Option<Finding>;
}

/// What came of trying a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// The checker accepted a schedule.
    Proven(Proof),
    /// No reordering shows it.
    Refuted,
    /// The budget of a query ended first.
    Unknown,
    /// The checker refused the schedule, which is a fault of the engine and says nothing about the
    /// candidate.
    Refused,
}

impl Tried {
    /// Whether it is proven, and the proof rests on no read of an unknown writer.
    #[must_use]
    pub fn is_witnessed(&self) -> bool {
        matches!(self, Self::Proven(proof) if proof.unknown_reads_count() == 0)
    }

    /// The proof, if there is one.
    #[must_use]
    pub fn proof(self) -> Option<Proof> {
        match self {
            Self::Proven(proof) => Some(proof),
            Self::Refuted | Self::Unknown | Self::Refused => None,
        }
    }

    /// The more useful of the two; this one if they are alike. A refusal comes before what is
    /// unknown, since it must not go unnoticed.
    #[must_use]
    pub fn or_better(self, other: Self) -> Self {
        let rank = |tried: &Self| match tried {
            Self::Proven(_) if tried.is_witnessed() => 4,
            Self::Proven(_) => 3,
            Self::Refused => 2,
            Self::Unknown => 1,
            Self::Refuted => 0,
        };
        if rank(&other) > rank(&self) { other } else { self }
    }
}

/// Candidates at the same code locations: instances of one fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<C> {
    /// Those to try, in this order; never none.
    pub candidates: Vec<C>,
    /// How many instances the group stands for.
    pub count: u64,
    /// Whether there are instances that are not tried and might be shown where these are refuted.
    is_capped: bool,
}

impl<C> Group<C> {
    /// A group of `count` instances, of which `candidates` are tried. If these are fewer, nothing
    /// is known of the others.
    #[must_use]
    pub const fn new(candidates: Vec<C>, count: u64) -> Self {
        let is_capped = count > candidates.len() as u64;
        Self { candidates, count, is_capped }
    }

    /// A group of `count` instances, of which `candidates` are tried, for an analysis that does not promise to
    /// find all: that others are not tried is nothing to be said.
    #[must_use]
    pub const fn sampled(candidates: Vec<C>, count: u64) -> Self {
        Self { candidates, count, is_capped: false }
    }

    /// A group whose `representative` answers for all instances: none of them holds if it does not.
    #[must_use]
    pub fn represented_by(representative: C) -> Self {
        Self { candidates: vec![representative], count: 1, is_capped: false }
    }
}

/// What came of a group.
#[derive(Clone, Debug)]
pub struct Evaluated<C> {
    /// The candidate that is shown: the one that is proven, or the first.
    pub candidate: C,
    /// How many instances the group stands for.
    pub count: u64,
    /// The proof, if there is one. It may rest on reads of unknown writers.
    pub proof: Option<Proof>,
    /// Why a better proof may exist; none if there is a proof that rests on no read of an unknown
    /// writer, or if all candidates were tried.
    pub open: Option<Open>,
    /// How many candidates were tried.
    pub tried: usize,
    /// How many schedules the checker refused.
    pub refused: u64,
}

impl<C> Evaluated<C> {
    /// Whether it is proven, and the proof rests on no read of an unknown writer.
    #[must_use]
    pub fn is_witnessed(&self) -> bool {
        self.proof.as_ref().is_some_and(|proof| proof.unknown_reads_count() == 0)
    }
}

/// Why nothing is known of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// The budget did not last for all candidates.
    Untried,
    /// All candidates were tried, but there are more instances than candidates.
    Capped,
    /// The search for a schedule was given up.
    Unknown,
    /// The checker refused a schedule, which is a fault of the engine.
    Refused,
}

/// A group of which no candidate is proven yet without reads of unknown writers.
struct State<C> {
    group: Group<C>,
    tried: usize,
    /// The first candidate that is proven but for reads of unknown writers.
    weak: Option<(usize, Proof)>,
    is_unknown: bool,
    refused: u64,
}

impl<C: Clone> State<C> {
    /// Notes what came of the next candidate; the proof, if that settles the group.
    fn take(&mut self, tried: Tried) -> Option<(usize, Proof)> {
        let at = self.tried;
        self.tried += 1;
        match tried {
            Tried::Proven(proof) if proof.unknown_reads_count() == 0 => return Some((at, proof)),
            Tried::Proven(proof) => self.weak = self.weak.take().or(Some((at, proof))),
            Tried::Refuted => {}
            Tried::Unknown => self.is_unknown = true,
            Tried::Refused => self.refused += 1,
        }
        None
    }

    fn has_next(&self) -> bool {
        self.tried < self.group.candidates.len()
    }

    /// What the group comes to, with the `proof` that settles it if there is one.
    fn end(mut self, proof: Option<(usize, Proof)>) -> Evaluated<C> {
        let open = match &proof {
            Some(_) => None,
            None if self.refused > 0 => Some(Open::Refused),
            None if self.is_unknown => Some(Open::Unknown),
            None if self.has_next() => Some(Open::Untried),
            None => self.group.is_capped.then_some(Open::Capped),
        };
        let shown = proof.or_else(|| self.weak.take());
        let (at, proof) = shown.map_or((0, None), |(at, proof)| (at, Some(proof)));
        let Group { mut candidates, count, .. } = self.group;
        let candidate = candidates.swap_remove(at);
        Evaluated { candidate, count, proof, open, tried: self.tried, refused: self.refused }
    }
}

impl Driver<'_, '_> {
    /// Tries the candidates of `groups` and reports what `predictor` makes of each group, in the
    /// order in which they are settled; a break if it stopped early.
    ///
    /// In round k the k-th candidate of every group that is still open is tried. If the budget is used
    /// up, the rest is reported as not tried. If someone asked to stop before, one batch is tried all
    /// the same: who stops an analysis still wants what it has found.
    pub fn prove<P: Predictor>(
        &mut self,
        predictor: &mut P,
        groups: impl IntoIterator<Item = Group<P::Candidate>>,
    ) -> ControlFlow<()> {
        let unlimited = Budget { work: u64::MAX, ..Budget::default() };
        let usual = if predictor.is_decided() { unlimited } else { self.query_budget() };
        // A group may take many rounds: what workers have allocated stays.
        let workers = self.evaluators(predictor.query_budget(usual));
        let mut groups = groups.into_iter().peekable();
        let mut is_first = true;
        while groups.peek().is_some() {
            let part = groups.by_ref().take(GROUPS_AT_ONCE).map(|group| State {
                group,
                tried: 0,
                weak: None,
                is_unknown: false,
                refused: 0,
            });
            let mut open: Vec<State<P::Candidate>> = part.collect();
            while !open.is_empty() {
                open = self.round(predictor, &workers, open, is_first)?;
                is_first = false;
            }
        }
        ControlFlow::Continue(())
    }

    /// Tries the next candidate of each of `open`; gives those that are still open.
    fn round<P: Predictor>(
        &mut self,
        predictor: &mut P,
        workers: &Workers<'_, Evaluator<'_, '_>>,
        open: Vec<State<P::Candidate>>,
        mut is_first: bool,
    ) -> ControlFlow<(), Vec<State<P::Candidate>>> {
        let is_decided = predictor.is_decided();
        let (total, mut still_open) = (open.len(), Vec::new());
        let mut queue = open.into_iter();
        while queue.len() > 0 {
            if self.progress(total - queue.len(), total).is_break() && !is_first {
                // Who stops an analysis still wants what it has found.
                for state in still_open.into_iter().chain(queue).filter(|it| it.weak.is_some()) {
                    self.settle(predictor, state.end(None))?;
                }
                return ControlFlow::Break(());
            }
            is_first = false;
            let mut batch: Vec<State<P::Candidate>> = queue.by_ref().take(P::BATCH).collect();
            if self.work_left() == 0 && !is_decided {
                for state in batch {
                    self.settle(predictor, state.end(None))?;
                }
                continue;
            }
            let known = &*predictor;
            let tries = self.map(workers, &mut batch, |evaluator, state| {
                let tried = known.evaluate(evaluator, &state.group.candidates[state.tried]);
                let work = evaluator.take_work();
                (tried, if is_decided { 0 } else { work })
            });
            for (mut state, tried) in batch.into_iter().zip(tries) {
                let proof = state.take(tried);
                if proof.is_none() && state.has_next() {
                    still_open.push(state);
                } else {
                    self.settle(predictor, state.end(proof))?;
                }
            }
        }
        ControlFlow::Continue(still_open)
    }

    fn settle<P: Predictor>(
        &mut self,
        predictor: &mut P,
        group: Evaluated<P::Candidate>,
    ) -> ControlFlow<()> {
        self.count_refused(group.refused);
        match group.open {
            Some(Open::Untried | Open::Unknown) => self.truncate(Truncation::Budget),
            Some(Open::Capped) => self.truncate(Truncation::Capped),
            // Counted above, also where another candidate is proven.
            Some(Open::Refused) | None => {}
        }
        predictor.report(group).map_or(ControlFlow::Continue(()), |finding| self.found(finding))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use reweave_analysis::{
        Counter, Counters, Coverage, Guarantee, Info, Kind, Layer, Settings, Sink, Subject,
    };
    use reweave_reorder::Query;
    use reweave_trace::{EventId, Goal, Reordering, Trace};

    /// What comes of a candidate, after some work.
    #[derive(Clone, Copy)]
    enum Script {
        Proven,
        /// Proven but for a read of an unknown writer.
        Weak,
        Refuted,
        Refused,
    }

    use Script::{Proven, Refused, Refuted, Weak};

    /// Two writes that race, after a read of an unknown writer.
    const TRACE: &str = "T1|r?(y)|a\nT1|w(x)|b\nT2|w(x)|c\nT3|w(x)|d\n";

    struct Scripted {
        events: [EventId; 4],
        reported: Vec<String>,
    }

    impl Predictor for Scripted {
        type Candidate = Script;

        const BATCH: usize = 2;

        fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, &script: &Script) -> Tried {
            let [read, first, second, third] = self.events;
            let weak = Reordering::explicit(vec![read]);
            match script {
                Proven => evaluator.prove(Reordering::default(), Goal::Race(second, third)),
                Weak => evaluator.prove(weak, Goal::Race(first, second)),
                Refused => evaluator.prove(Reordering::default(), Goal::Race(first, second)),
                Refuted => {
                    _ = evaluator.prove(Reordering::default(), Goal::Race(second, third));
                    Tried::Refuted
                }
            }
        }

        fn report(&mut self, group: Evaluated<Script>) -> Option<Finding> {
            let is_proven = group.proof.is_some();
            self.reported.push(format!("{} {is_proven} {:?}", group.count, group.open));
            None
        }
    }

    /// Is asked to stop when this many looks were taken.
    struct Watcher {
        looks_left: Cell<usize>,
    }

    impl Sink for Watcher {
        fn found(&mut self, _: Finding) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn is_cancelled(&self) -> bool {
            let left = self.looks_left.get();
            self.looks_left.set(left.saturating_sub(1));
            left == 0
        }

        fn progress(&mut self, _: u64, _: u64) {}
    }

    /// What is reported of groups with these candidates, which stand for 1, 2, … instances, if
    /// someone asks to stop after `looks`; and how far it went.
    fn reported(budget: u64, looks: usize, groups: &[&[Script]]) -> (Vec<String>, Coverage) {
        let trace: Trace = reweave_testkit::std(TRACE);
        let events = [1, 2, 3, 4].map(|number| trace.numbered(number).unwrap());
        let mut scripted = Scripted { events, reported: Vec::new() };
        let (subject, mut sink) = (Subject::new(&trace), Watcher { looks_left: Cell::new(looks) });
        let settings = Settings { budget, ..Settings::default() };
        let groups = (1..).zip(groups).map(|(count, &them)| Group::new(them.to_vec(), count));
        let mut driver = Driver::new(&subject, &settings, &mut sink);
        _ = driver.prove(&mut scripted, groups);
        (scripted.reported, driver.coverage(&INFO, Counters::new()))
    }

    const INFO: Info = Info {
        name: "races.scripted",
        family: "races",
        kind: Kind::Race,
        guarantee: Guarantee::Witnessed,
        needs: Layer::Events,
        is_default: false,
        summary: "",
        paper: "",
    };

    #[test]
    fn a_group_is_tried_until_it_is_proven() {
        let groups: [&[Script]; 3] = [&[Refuted, Proven, Refuted], &[Refuted, Refuted], &[Proven]];
        let (found, coverage) = reported(1 << 20, usize::MAX, &groups);
        assert_eq!(found, ["3 true None", "1 true None", "2 false None"]);
        assert_eq!(coverage.truncated, None);
    }

    #[test]
    fn a_budget_pays_for_a_candidate_of_every_group_before_a_second_of_any() {
        let (found, coverage) = reported(1, usize::MAX, &[&[Refuted, Proven], &[Proven]]);
        assert_eq!(found, ["2 true None", "1 false Some(Untried)"]);
        assert_eq!(coverage.truncated, Some(Truncation::Budget));
        assert_eq!(reported(0, usize::MAX, &[&[Proven]]).0, ["1 false Some(Untried)"]);
    }

    #[test]
    fn who_asks_to_stop_still_gets_one_batch() {
        let (found, coverage) = reported(1 << 20, 0, &[&[Proven], &[Proven], &[Proven]]);
        assert_eq!(found, ["1 true None", "2 true None"]);
        assert_eq!(coverage.truncated, Some(Truncation::Cancelled));
    }

    #[test]
    fn who_asks_to_stop_gets_the_proofs_that_a_better_one_might_have_replaced() {
        let groups: [&[Script]; 3] = [&[Weak, Proven], &[Weak, Proven], &[Weak, Proven]];
        // The first round takes two looks, one for each batch.
        let (found, _) = reported(1 << 20, 2, &groups);
        let weak = |count: u64| format!("{count} true Some(Untried)");
        assert_eq!(found, [weak(1), weak(2), weak(3)]);
    }

    #[test]
    fn a_group_with_more_instances_than_candidates_is_not_refuted_by_them() {
        let (found, coverage) = reported(1 << 20, usize::MAX, &[&[Refuted], &[Refuted]]);
        assert_eq!(found, ["1 false None", "2 false Some(Capped)"]);
        assert_eq!(coverage.truncated, Some(Truncation::Capped));
    }

    #[test]
    fn a_schedule_that_the_checker_refuses_is_a_fault_and_not_a_small_budget() {
        let (found, coverage) = reported(1 << 20, usize::MAX, &[&[Refused], &[Refused, Proven]]);
        assert_eq!(found, ["1 false Some(Refused)", "2 true None"]);
        assert_eq!(coverage.truncated, Some(Truncation::EngineFault));
        assert_eq!(coverage.counters, [(Counter::Refused, 2)]);
    }

    /// Asks two questions, the first of which rests on a read of an unknown writer.
    struct TwoWays([EventId; 4]);

    impl Predictor for TwoWays {
        type Candidate = ();

        fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, (): &()) -> Tried {
            let [_, first, second, third] = self.0;
            let race = |one, other| (Query::enabled(&[one, other]), Goal::Race(one, other));
            evaluator.ask([race(first, second), race(second, third)], Reorderings::All)
        }

        fn report(&mut self, group: Evaluated<()>) -> Option<Finding> {
            assert!(group.is_witnessed());
            None
        }
    }

    #[test]
    fn a_weaker_answer_does_not_end_the_questions() {
        let trace: Trace = reweave_testkit::std(TRACE);
        let events = [1, 2, 3, 4].map(|number| trace.numbered(number).unwrap());
        let (subject, settings) = (Subject::new(&trace), Settings::default());
        let mut sink = Watcher { looks_left: Cell::new(usize::MAX) };
        let mut driver = Driver::new(&subject, &settings, &mut sink);
        _ = driver.prove(&mut TwoWays(events), [Group::new(vec![()], 1)]);
    }
}
