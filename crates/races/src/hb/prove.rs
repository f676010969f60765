//! From unordered pairs to findings: a witness for each, tried before the checker.
//!
//! Every location pair gets its first try before any gets its second, so that where the budget
//! does not last for all tries, it lasts for as many location pairs as it can.

use std::ops::ControlFlow;
use std::vec;

use reweave_analysis::{
    Evidence, Finding, Guarantee, Kind, Proof, Settings, Sink, Subject, Truncation,
};
use reweave_base::FxHashSet;
use reweave_trace::{Goal, Reordering};

use super::{Group, INFO, Race, witnesses};

/// How many witnesses are made in one pass over the trace.
const BATCH: usize = 512;

/// Tries witnesses while the budget lasts.
pub(super) struct Proofs<'a, 't> {
    subject: &'a Subject<'t>,
    /// Whether every pair is a finding of its own.
    all: bool,
    /// How many replays of the trace are left.
    replays_left: u64,
    truncated: Option<Truncation>,
    /// The pairs that are findings already, where every pair is to be one.
    told: FxHashSet<Race>,
    /// How many groups were told of without a try, the budget being used up.
    untried: u64,
    /// How many groups have no schedule but one that rests on reads of unknown writers.
    loose: u64,
}

/// A location pair of which no try has succeeded yet.
struct Open<'r> {
    group: &'r Group,
    /// A try that passed but for reads whose writer was not observed. Few groups have one, and
    /// there may be millions of groups.
    loose: Option<Box<(Race, Proof)>>,
}

/// Pairs to try, in this order, and the witnesses of the next few.
struct Queue<'r> {
    races: &'r [Race],
    at: usize,
    witnesses: vec::IntoIter<Reordering>,
}

impl<'r> Queue<'r> {
    fn of(races: &'r [Race]) -> Self {
        Self { races, at: 0, witnesses: Vec::new().into_iter() }
    }
}

impl<'a, 't> Proofs<'a, 't> {
    pub(super) fn new(
        subject: &'a Subject<'t>,
        settings: &Settings,
        truncated: Option<Truncation>,
    ) -> Self {
        let replays_left = settings.budget / subject.trace().len().max(1) as u64;
        let told = FxHashSet::default();
        Self { subject, all: settings.all, replays_left, truncated, told, untried: 0, loose: 0 }
    }

    /// Why not everything was tried and told, if so.
    pub(super) const fn truncated(&self) -> Option<Truncation> {
        self.truncated
    }

    /// Why location pairs are not shown, as far as it is not that tries failed; `unlisted` of them
    /// are in no group.
    pub(super) fn counters(&self, unlisted: u64) -> Vec<(&'static str, u64)> {
        let untried = self.untried + unlisted;
        let counters = [("untried", untried), ("unlisted", unlisted), ("loose", self.loose)];
        counters.into_iter().filter(|&(_, count)| count > 0).collect()
    }

    /// Makes a finding of each of `groups`, shown by the first instance that can be proven; or,
    /// if every pair is to be a finding, of each instance tried on the way.
    pub(super) fn report_groups(
        &mut self,
        groups: &[Group],
        sink: &mut dyn Sink,
    ) -> ControlFlow<()> {
        let mut open: Vec<Open<'_>> =
            groups.iter().map(|group| Open { group, loose: None }).collect();
        for round in 0.. {
            let races: Vec<Race> = open.iter().map(|open| open.group.earliest[round]).collect();
            if races.is_empty() {
                break;
            }
            let mut queue = Queue::of(&races);
            let mut still_open = Vec::new();
            for (&race, entry) in races.iter().zip(open) {
                if round == 0 && self.replays_left == 0 && !self.all {
                    self.untried += 1;
                }
                let proof = self.attempt(&mut queue, sink)?;
                if let Some(entry) = self.take_try(entry, race, round, proof, sink)? {
                    still_open.push(entry);
                }
            }
            open = still_open;
        }
        ControlFlow::Continue(())
    }

    /// Tells what came of trying `race`, the instance numbered `round` of a group; gives the group
    /// back if another instance should be tried.
    fn take_try<'r>(
        &mut self,
        mut open: Open<'r>,
        race: Race,
        round: usize,
        proof: Option<Proof>,
        sink: &mut dyn Sink,
    ) -> ControlFlow<(), Option<Open<'r>>> {
        let is_proven = proof.as_ref().is_some_and(|proof| proof.loose_reads_count() == 0);
        let untried = round + 1 < open.group.earliest.len();
        if untried && !is_proven && self.replays_left == 0 {
            self.truncate(Truncation::Budget);
        }
        let is_closed = is_proven || !untried || self.replays_left == 0;
        if self.all {
            self.told.insert(race);
            sink.found(self.finding(race, 1, proof))?;
        } else if is_proven {
            sink.found(self.finding(race, open.group.count, proof))?;
        } else {
            open.loose = open.loose.or(proof.map(|proof| Box::new((race, proof))));
            if is_closed {
                let (race, proof) = match open.loose.take().map(|loose| *loose) {
                    Some((race, proof)) => {
                        self.loose += 1;
                        (race, Some(proof))
                    }
                    None => (open.group.earliest[0], None),
                };
                sink.found(self.finding(race, open.group.count, proof))?;
            }
        }
        ControlFlow::Continue((!is_closed).then_some(open))
    }

    /// Makes a finding of each of `pairs` that is none yet.
    pub(super) fn report_pairs(
        &mut self,
        mut pairs: Vec<Race>,
        sink: &mut dyn Sink,
    ) -> ControlFlow<()> {
        pairs.retain(|pair| !self.told.contains(pair));
        let mut queue = Queue::of(&pairs);
        for &race in &pairs {
            let proof = self.attempt(&mut queue, sink)?;
            sink.found(self.finding(race, 1, proof))?;
        }
        ControlFlow::Continue(())
    }

    /// A proof of the next race of `queue`, if its witness passes and the budget is not used up.
    fn attempt(
        &mut self,
        queue: &mut Queue<'_>,
        sink: &mut dyn Sink,
    ) -> ControlFlow<(), Option<Proof>> {
        sink.progress(queue.at as u64, queue.races.len() as u64);
        if sink.is_cancelled() {
            self.truncate(Truncation::Cancelled);
            return ControlFlow::Break(());
        }
        let rest = &queue.races[queue.at..];
        queue.at += 1;
        if self.replays_left == 0 {
            self.truncate(Truncation::Budget);
            return ControlFlow::Continue(None);
        }
        if queue.witnesses.len() == 0 {
            let wanted = rest.len().min(BATCH).min(self.replays_left as usize);
            queue.witnesses = witnesses(self.subject.trace(), &rest[..wanted]).into_iter();
        }
        self.replays_left -= 1;
        let goal = Goal::Race(rest[0].first, rest[0].second);
        let witness = queue.witnesses.next();
        let proof = witness.and_then(|witness| self.subject.prove(witness, goal).ok());
        ControlFlow::Continue(proof)
    }

    fn truncate(&mut self, reason: Truncation) {
        self.truncated = self.truncated.or(Some(reason));
    }

    fn finding(&self, race: Race, count: u64, proof: Option<Proof>) -> Finding {
        let trace = self.subject.trace();
        let names = trace.names();
        let [first, second] = [race.first, race.second].map(|access| {
            let event = trace.event(access);
            let (op, location) = (names.spell(event.op), names.location(event.site).trim());
            match location {
                "" => format!("`{op}`"),
                // A bare number would read as part of the sentence.
                _ if location.bytes().all(|byte| byte.is_ascii_digit()) => {
                    format!("`{op}` at location {location}")
                }
                _ => format!("`{op}` at {location}"),
            }
        });
        let evidence = proof.map_or(Evidence::Unordered, Evidence::Schedule);
        let verdict = match evidence.guarantee() {
            Guarantee::Witnessed => "can happen at the same time",
            Guarantee::First | Guarantee::Unordered => "are not ordered by synchronisation",
        };
        Finding {
            analysis: INFO.name,
            kind: Kind::Race,
            events: vec![race.first, race.second],
            message: format!("{first} and {second} {verdict}"),
            count,
            evidence,
        }
    }
}
