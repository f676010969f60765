//! From pairs to findings: a schedule for each, accepted by the checker.

use std::ops::ControlFlow;

use reweave_analysis::{
    Evidence, Finding, Guarantee, Info, Kind, Proof, Settings, Sink, Subject, Truncation,
};
use reweave_trace::{EventId, Trace};

use crate::Race;
use crate::decide::{Decider, Scope};

/// How many pairs are proven at a time.
const BATCH: usize = 1024;

/// Nobody is told.
pub(crate) struct Nobody;

impl Sink for Nobody {
    fn found(&mut self, _: Finding) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, _: u64, _: u64) {}
}

/// Proves pairs and tells of them. A break with no reason means that no more are wanted.
#[derive(Debug)]
pub(crate) struct Proofs<'a, 't> {
    info: &'static Info,
    trace: &'t Trace,
    decider: Decider<'a, 't>,
    /// The pair that is the first one the relation finds, if that says something.
    pub(crate) first: Option<Race>,
    /// How many groups have no schedule but one that rests on reads of unknown writers.
    pub(crate) loose: u64,
    /// How many pairs or groups were told of without a try, the budget being used up.
    pub(crate) untried: u64,
    work_left: u64,
}

impl<'a, 't> Proofs<'a, 't> {
    pub(crate) fn new(
        info: &'static Info,
        subject: &'a Subject<'t>,
        settings: &Settings,
        scope: Scope,
    ) -> Self {
        let decider = Decider::new(subject, settings, scope);
        let (trace, work_left) = (subject.trace(), settings.budget);
        Self { info, trace, decider, first: None, loose: 0, untried: 0, work_left }
    }

    /// Makes a finding of each pair.
    pub(crate) fn report_pairs(
        &mut self,
        pairs: &[Race],
        sink: &mut dyn Sink,
    ) -> ControlFlow<Option<Truncation>> {
        for (at, batch) in pairs.chunks(BATCH).enumerate() {
            sink.progress((at * BATCH) as u64, pairs.len() as u64);
            if sink.is_cancelled() {
                return ControlFlow::Break(Some(Truncation::Cancelled));
            }
            let proofs = self.prove(batch);
            for (&race, proof) in batch.iter().zip(proofs) {
                let finding = self.finding(race, 1, proof);
                if sink.found(finding).is_break() {
                    return ControlFlow::Break(None);
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Makes a finding of each group, shown by the first instance that can be proven without reads
    /// of unknown writers, failing that by the first that can be proven at all.
    pub(crate) fn report_groups<'g>(
        &mut self,
        groups: impl Iterator<Item = (&'g [Race], u64)>,
        sink: &mut dyn Sink,
    ) -> ControlFlow<Option<Truncation>> {
        let groups: Vec<(&[Race], u64)> = groups.collect();
        for (at, batch) in groups.chunks(BATCH).enumerate() {
            sink.progress((at * BATCH) as u64, groups.len() as u64);
            if sink.is_cancelled() {
                return ControlFlow::Break(Some(Truncation::Cancelled));
            }
            let first: Vec<Race> = batch.iter().map(|(races, _)| races[0]).collect();
            let proofs = self.prove(&first);
            for (&(races, count), proof) in batch.iter().zip(proofs) {
                let (race, proof) = self.best(races, proof);
                let finding = self.finding(race, count, proof);
                if sink.found(finding).is_break() {
                    return ControlFlow::Break(None);
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// A proof for each of `races`, where there is one and the budget lasts.
    fn prove(&mut self, races: &[Race]) -> Vec<Option<Proof>> {
        if self.work_left == 0 {
            self.untried += races.len() as u64;
            return vec![None; races.len()];
        }
        let (proofs, work) = self.decider.prove(races);
        self.work_left = self.work_left.saturating_sub(work);
        proofs
    }

    /// The instance of a group to show; `proof` is what came of the first.
    fn best(&mut self, races: &[Race], proof: Option<Proof>) -> (Race, Option<Proof>) {
        let is_sure = |proof: &Proof| proof.loose_reads_count() == 0;
        if proof.as_ref().is_some_and(is_sure) {
            return (races[0], proof);
        }
        let mut loose = proof.map(|proof| (races[0], proof));
        for &race in &races[1..] {
            if self.work_left == 0 {
                break;
            }
            match self.prove(&[race]).pop().flatten() {
                Some(proof) if is_sure(&proof) => return (race, Some(proof)),
                Some(proof) => loose = loose.or(Some((race, proof))),
                None => {}
            }
        }
        match loose {
            Some((race, proof)) => {
                self.loose += 1;
                (race, Some(proof))
            }
            None => (races[0], None),
        }
    }

    fn finding(&self, race: Race, count: u64, proof: Option<Proof>) -> Finding {
        let evidence = match proof {
            Some(proof) => Evidence::Schedule(proof),
            None if self.first == Some(race) => Evidence::First,
            None => Evidence::Unordered,
        };
        let [first, second] = [race.first, race.second].map(|access| spelled(self.trace, access));
        let verdict = match evidence.guarantee() {
            Guarantee::Witnessed => "can happen at the same time",
            Guarantee::First => "are a race, or threads can deadlock before",
            Guarantee::Unordered => "are not ordered by synchronisation",
        };
        Finding {
            analysis: self.info.name,
            kind: Kind::Race,
            events: vec![race.first, race.second],
            message: format!("{first} and {second} {verdict}"),
            count,
            evidence,
        }
    }
}

/// The access and where it is, for a sentence.
fn spelled(trace: &Trace, access: EventId) -> String {
    let (names, event) = (trace.names(), trace.event(access));
    let (op, location) = (names.spell(event.op), names.location(event.site).trim());
    match location {
        "" => format!("`{op}`"),
        // A bare number would read as part of the sentence.
        _ if location.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("`{op}` at location {location}")
        }
        _ => format!("`{op}` at {location}"),
    }
}
