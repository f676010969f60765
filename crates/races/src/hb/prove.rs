//! From unordered pairs to findings: a witness for each, tried before the checker.

use std::ops::ControlFlow;

use reweave_analysis::{Evidence, Finding, Guarantee, Kind, Settings, Sink, Subject, Truncation};
use reweave_trace::{Goal, Reordering, Trace};

use super::{INFO, Race, TRIES_MAX, witnesses};

/// How many findings get their witnesses in one pass over the trace.
const BATCH: usize = 512;

/// Tries witnesses while the budget lasts.
pub(super) struct Proofs<'a, 't> {
    subject: &'a Subject<'t>,
    /// How many replays of the trace are left.
    replays_left: u64,
    truncated: Option<Truncation>,
}

impl<'a, 't> Proofs<'a, 't> {
    pub(super) fn new(
        subject: &'a Subject<'t>,
        settings: &Settings,
        truncated: Option<Truncation>,
    ) -> Self {
        let replays_left = settings.budget / subject.trace().len().max(1) as u64;
        Self { subject, replays_left, truncated }
    }

    /// Why not everything was tried and told, if so.
    pub(super) const fn truncated(&self) -> Option<Truncation> {
        self.truncated
    }

    /// Makes a finding of each of `instances`: how many pairs it stands for, and which of them
    /// to try.
    pub(super) fn report<'r>(
        &mut self,
        instances: impl ExactSizeIterator<Item = (u64, &'r [Race])>,
        sink: &mut dyn Sink,
    ) -> ControlFlow<()> {
        let total = instances.len() as u64;
        let mut done = 0;
        let mut instances = instances.peekable();
        while instances.peek().is_some() {
            let batch: Vec<_> = instances.by_ref().take(BATCH).collect();
            let mut tried = self.witnesses_for(&batch);
            for (count, races) in batch {
                sink.progress(done, total);
                if sink.is_cancelled() {
                    self.truncated = self.truncated.or(Some(Truncation::Cancelled));
                    return ControlFlow::Break(());
                }
                let taken = tried.len().min(races.len());
                let finding = self.prove(count, races, tried.drain(..taken).collect());
                sink.found(finding)?;
                done += 1;
            }
        }
        ControlFlow::Continue(())
    }

    /// Witnesses for all races of `batch`, in order; none once the budget is used up.
    fn witnesses_for(&self, batch: &[(u64, &[Race])]) -> Vec<Reordering> {
        if self.replays_left == 0 {
            return Vec::new();
        }
        let races: Vec<Race> = batch.iter().flat_map(|(_, races)| races.iter().copied()).collect();
        debug_assert!(races.len() <= BATCH * TRIES_MAX, "tries are bounded");
        witnesses(self.subject.trace(), &races)
    }

    /// The first of `races` whose witness passes, or the first as a claim.
    fn prove(&mut self, count: u64, races: &[Race], witnesses: Vec<Reordering>) -> Finding {
        let trace = self.subject.trace();
        if witnesses.len() < races.len() {
            self.truncated = self.truncated.or(Some(Truncation::Budget));
        }
        for (race, reordering) in races.iter().zip(witnesses) {
            if self.replays_left == 0 {
                self.truncated = self.truncated.or(Some(Truncation::Budget));
                break;
            }
            self.replays_left -= 1;
            let goal = Goal::Race(race.first, race.second);
            if self.subject.checker().check(&reordering, &goal).is_ok() {
                let evidence = Evidence::Schedule { reordering, goal };
                return finding(trace, *race, count, Guarantee::Witnessed, evidence);
            }
        }
        finding(trace, races[0], count, Guarantee::Unordered, Evidence::Unordered)
    }
}

fn finding(
    trace: &Trace,
    race: Race,
    count: u64,
    guarantee: Guarantee,
    evidence: Evidence,
) -> Finding {
    let names = trace.names();
    let [first, second] = [race.first, race.second].map(|access| {
        let event = trace.event(access);
        format!("`{}` at {}", names.spell(event.op), names.location(event.site))
    });
    let verdict = match guarantee {
        Guarantee::Witnessed => "can happen at the same time",
        Guarantee::First | Guarantee::Unordered => "are not ordered by synchronisation",
    };
    Finding {
        analysis: INFO.name,
        kind: Kind::Race,
        guarantee,
        events: vec![race.first, race.second],
        message: format!("{first} and {second} {verdict}"),
        count,
        evidence,
    }
}
