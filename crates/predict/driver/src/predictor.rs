//! What an analysis predicts, and which candidate of a group is shown.

use std::ops::ControlFlow;

use reweave_analysis::{Finding, Proof, Truncation};
use reweave_reorder::{Answer, Budget, Query};
use reweave_trace::Goal;

use crate::driver::{Driver, Evaluator};

/// How many groups take turns with each other; a trace with more is gone through in such parts, which
/// bounds the memory for proofs that are not final.
const GROUPS_AT_ONCE: usize = 1 << 16;

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

    /// Which reorderings show a candidate.
    fn reorderings(&self) -> Reorderings {
        Reorderings::All
    }

    /// Whether candidates are known to be feasible: then proving them is neither charged nor limited.
    fn is_decided(&self) -> bool {
        false
    }

    /// How much one query may take, if that is less than the driver allows.
    fn query_budget(&self, usual: Budget) -> Budget {
        usual
    }

    /// The questions each of which, answered, shows `candidate`, the cheapest first; each with what
    /// the end of a run that answers it must show.
    fn questions(&self, candidate: &Self::Candidate) -> Vec<(Query, Goal)>;

    /// What comes of trying `candidate`.
    fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, candidate: &Self::Candidate) -> Tried {
        let mut tried = Tried::Refuted;
        for (query, goal) in self.questions(candidate) {
            match evaluator.answer(&query, self.reorderings()) {
                Answer::Feasible(reordering) => {
                    return evaluator.prove(reordering, goal).map_or(Tried::Refused, Tried::Proven);
                }
                Answer::Infeasible(_) => {}
                Answer::Unknown => tried = Tried::Unknown,
            }
        }
        tried
    }

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

/// Candidates at the same code locations: instances of one fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<C> {
    /// Those to try, in this order; never none.
    pub candidates: Vec<C>,
    /// How many instances the group stands for.
    pub count: u64,
    /// Whether there are instances that are not tried and might be shown where these are refuted.
    pub is_cut: bool,
}

impl<C> Group<C> {
    /// A group that stands for `count` instances, of which `candidates` speak for all.
    #[must_use]
    pub const fn new(candidates: Vec<C>, count: u64) -> Self {
        Self { candidates, count, is_cut: false }
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
    /// Not all candidates were tried.
    Untried,
    /// The search for a schedule was given up.
    Unknown,
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
            Tried::Refused => {
                self.is_unknown = true;
                self.refused += 1;
            }
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
            None if self.is_unknown => Some(Open::Unknown),
            None => (self.has_next() || self.group.is_cut).then_some(Open::Untried),
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
                open = self.round(predictor, open, is_first)?;
                is_first = false;
            }
        }
        ControlFlow::Continue(())
    }

    /// Tries the next candidate of each of `open`; gives those that are still open.
    fn round<P: Predictor>(
        &mut self,
        predictor: &mut P,
        open: Vec<State<P::Candidate>>,
        mut is_first: bool,
    ) -> ControlFlow<(), Vec<State<P::Candidate>>> {
        let is_decided = predictor.is_decided();
        let unlimited = Budget { work: u64::MAX, ..Budget::default() };
        let usual = if is_decided { unlimited } else { self.query_budget() };
        let workers = self.evaluators(predictor.query_budget(usual));
        let (total, mut still_open) = (open.len(), Vec::new());
        let mut queue = open.into_iter();
        while queue.len() > 0 {
            if self.progress(total - queue.len(), total).is_break() && !is_first {
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
            let tries = self.map(&workers, &mut batch, |evaluator, state| {
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
        if group.open.is_some() {
            self.truncate(Truncation::Budget);
        }
        predictor.report(group).map_or(ControlFlow::Continue(()), |finding| self.found(finding))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_analysis::{Settings, Sink, Subject};
    use reweave_trace::{EventId, Reordering, Trace};

    /// Candidates that are proven if they are true and refuted otherwise, after some work.
    struct Scripted {
        race: [EventId; 2],
        reported: Vec<String>,
    }

    impl Predictor for Scripted {
        type Candidate = bool;

        const BATCH: usize = 2;

        fn questions(&self, _: &bool) -> Vec<(Query, Goal)> {
            Vec::new()
        }

        fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, &is_race: &bool) -> Tried {
            let [first, second] = self.race;
            let proof = evaluator.prove(Reordering::default(), Goal::Race(first, second));
            proof.filter(|_| is_race).map_or(Tried::Refuted, Tried::Proven)
        }

        fn report(&mut self, group: Evaluated<bool>) -> Option<Finding> {
            let is_proven = group.proof.is_some();
            self.reported.push(format!("{} {is_proven} {:?}", group.count, group.open));
            None
        }
    }

    /// Is asked to stop from the start, or never.
    struct Watcher {
        is_cancelled: bool,
    }

    impl Sink for Watcher {
        fn found(&mut self, _: Finding) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn is_cancelled(&self) -> bool {
            self.is_cancelled
        }

        fn progress(&mut self, _: u64, _: u64) {}
    }

    /// What is reported of groups with these candidates, which stand for 1, 2, … instances.
    fn reported(budget: u64, is_cancelled: bool, groups: &[&[bool]]) -> Vec<String> {
        let trace: Trace = reweave_testkit::std("T1|w(x)|a\nT2|w(x)|b\n");
        let race = [1, 2].map(|number| trace.numbered(number).unwrap());
        let mut scripted = Scripted { race, reported: Vec::new() };
        let (subject, mut sink) = (Subject::new(&trace), Watcher { is_cancelled });
        let settings = Settings { budget, ..Settings::default() };
        let groups = (1..).zip(groups).map(|(count, &them)| Group::new(them.to_vec(), count));
        _ = Driver::new(&subject, &settings, &mut sink).prove(&mut scripted, groups);
        scripted.reported
    }

    #[test]
    fn a_group_is_tried_until_it_is_proven() {
        let found = reported(1 << 20, false, &[&[false, true, false], &[false], &[true]]);
        assert_eq!(found, ["2 false None", "3 true None", "1 true None"]);
    }

    #[test]
    fn a_budget_pays_for_a_candidate_of_every_group_before_a_second_of_any() {
        let found = reported(1, false, &[&[false, true], &[true]]);
        assert_eq!(found, ["2 true None", "1 false Some(Untried)"]);
        assert_eq!(reported(0, false, &[&[true]]), ["1 false Some(Untried)"]);
    }

    #[test]
    fn who_asks_to_stop_still_gets_one_batch() {
        let found = reported(1 << 20, true, &[&[true], &[true], &[true]]);
        assert_eq!(found, ["1 true None", "2 true None"]);
    }
}
