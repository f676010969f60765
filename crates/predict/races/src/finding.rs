//! From pairs to findings: a schedule for each, accepted by the checker.

use std::ops::ControlFlow;

use reweave_analysis::{
    Detail, Evidence, Finding, Guarantee, Info, Kind, Settings, Sink, Subject, Truncation, spelled,
};
use reweave_trace::Trace;

use crate::Race;
use crate::decide::{Decider, Scope, Tried};

/// How many pairs are proven at a time.
const BATCH: usize = 1024;

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
    /// How many pairs or groups were tried and neither proven nor refuted.
    pub(crate) undecided: u64,
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
        Self { info, trace, decider, first: None, loose: 0, untried: 0, undecided: 0, work_left }
    }

    /// Makes a finding of each pair.
    pub(crate) fn report_pairs(
        &mut self,
        pairs: &[Race],
        sink: &mut dyn Sink,
    ) -> ControlFlow<Option<Truncation>> {
        for (at, batch) in pairs.chunks(BATCH).enumerate() {
            sink.progress((at * BATCH) as u64, pairs.len() as u64);
            // Who asks to stop still wants what was found: as much as can be proven at once.
            if at > 0 && sink.is_cancelled() {
                return ControlFlow::Break(Some(Truncation::Cancelled));
            }
            let tries = self.prove(batch);
            for (&race, tried) in batch.iter().zip(tries) {
                self.count(&tried);
                let finding = self.finding(race, 1, tried);
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
            // Who asks to stop still wants what was found: as much as can be proven at once.
            if at > 0 && sink.is_cancelled() {
                return ControlFlow::Break(Some(Truncation::Cancelled));
            }
            let first: Vec<Race> = batch.iter().map(|(races, _)| races[0]).collect();
            let tries = self.prove(&first);
            for (&(races, count), tried) in batch.iter().zip(tries) {
                let (race, tried) = self.best(races, tried);
                let finding = self.finding(race, count, tried);
                if sink.found(finding).is_break() {
                    return ControlFlow::Break(None);
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// What comes of trying each of `races`, as long as the budget lasts.
    fn prove(&mut self, races: &[Race]) -> Vec<Tried> {
        if self.work_left == 0 {
            return vec![Tried::Untried; races.len()];
        }
        let (tries, work) = self.decider.prove(races);
        self.work_left = self.work_left.saturating_sub(work);
        tries
    }

    fn count(&mut self, tried: &Tried) {
        match tried {
            Tried::Proven(_) | Tried::Refuted => {}
            Tried::Unknown => self.undecided += 1,
            Tried::Untried => self.untried += 1,
        }
    }

    /// The instance of a group to show; `tried` is what came of the first.
    fn best(&mut self, races: &[Race], tried: Tried) -> (Race, Tried) {
        let is_untried = matches!(tried, Tried::Untried);
        let mut first = Some(tried);
        let (mut loose, mut is_open) = (None, false);
        for &race in races {
            let tried = first.take().or_else(|| self.prove(&[race]).pop());
            match tried {
                Some(Tried::Proven(proof)) if proof.unknown_reads_count() == 0 => {
                    return (race, Tried::Proven(proof));
                }
                Some(Tried::Proven(proof)) => loose = loose.or(Some((race, proof))),
                Some(Tried::Unknown | Tried::Untried) => is_open = true,
                Some(Tried::Refuted) | None => {}
            }
        }
        if let Some((race, proof)) = loose {
            self.loose += 1;
            return (race, Tried::Proven(proof));
        }
        let tried = match (is_open, is_untried) {
            (false, _) => Tried::Refuted,
            (true, true) => Tried::Untried,
            (true, false) => Tried::Unknown,
        };
        self.count(&tried);
        (races[0], tried)
    }

    fn finding(&self, race: Race, count: u64, tried: Tried) -> Finding {
        let why = match tried {
            Tried::Proven(_) => "are reached only by way of reads whose writer was not observed",
            Tried::Refuted => "are left unordered, but no correct reordering brings them together",
            Tried::Unknown => "are left unordered; the search for a schedule was given up",
            Tried::Untried => "are left unordered; no schedule was looked for",
        };
        let evidence = match tried.proof() {
            Some(proof) => Evidence::Schedule(proof),
            None if self.first == Some(race) => Evidence::First,
            None => Evidence::Unordered,
        };
        let [first, second] = [race.first, race.second].map(|access| spelled(self.trace, access));
        let verdict = match evidence.guarantee() {
            Guarantee::Witnessed => "can happen at the same time",
            Guarantee::First => "are a race, or threads can deadlock before",
            Guarantee::Unordered => why,
        };
        Finding {
            analysis: self.info.name,
            kind: Kind::Race,
            events: vec![race.first, race.second],
            message: format!("{first} and {second} {verdict}"),
            count,
            evidence,
            detail: Detail::None,
        }
    }
}
