//! What was found, and why it holds.

use reweave_trace::{EventId, Goal, Trace};

use crate::detail::Detail;
use crate::info::Guarantee;
use crate::kind::Kind;
use crate::proof::Proof;

/// A fault that a trace shows to be possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which analysis made it.
    pub analysis: &'static str,
    /// What kind of fault it is.
    pub kind: Kind,
    /// The events at fault.
    pub events: Vec<EventId>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// How many instances at the same code locations it stands for, itself included.
    pub count: u64,
    /// Why it holds.
    pub evidence: Evidence,
    /// What it says beyond what all findings say.
    pub detail: Detail,
}

impl Finding {
    /// The finding of `kind` that `proof` shows. Its events are those that the proof's goal names.
    ///
    /// # Panics
    /// If the goal is not one that shows a fault of this kind.
    #[must_use]
    pub fn proven(
        analysis: &'static str,
        kind: Kind,
        proof: Proof,
        message: String,
        count: u64,
        detail: Detail,
    ) -> Self {
        assert!(kind.is_shown_by(proof.goal()), "the goal of a proof fits the kind of the finding");
        let events = proof.goal().named();
        Self { analysis, kind, events, message, count, evidence: Evidence::Schedule(proof), detail }
    }

    /// Shows the same by `proof`, another schedule to the same goal.
    ///
    /// # Panics
    /// If the goal is another one than before.
    pub fn show_by(&mut self, proof: Proof) {
        let shown = match &mut self.evidence {
            Evidence::Schedule(shown) | Evidence::Decided(Some(shown)) => shown,
            _ => panic!("only what has a schedule can have another"),
        };
        assert_eq!(shown.goal(), proof.goal(), "the other schedule leads to the same");
        *shown = proof;
    }

    /// How much it can be relied on, which is what its evidence gives. A schedule that shows
    /// something else than this finding is no evidence.
    #[must_use]
    pub fn guarantee(&self) -> Guarantee {
        match &self.evidence {
            Evidence::Schedule(proof) if !self.is_shown_by(proof.goal()) => Guarantee::Unordered,
            evidence => evidence.guarantee(),
        }
    }

    /// Whether `goal` is about this kind of fault and names the events at fault.
    fn is_shown_by(&self, goal: &Goal) -> bool {
        let named = goal.named();
        self.kind.is_shown_by(goal) && self.events.iter().all(|event| named.contains(event))
    }

    /// The code locations at fault in alphabetical order: findings of one kind at the same locations
    /// are instances of the same fault, but for states, which go by their predicate.
    ///
    /// They are the locations of its events. For nondeterminism it is only that of the read,
    /// whatever the read can see. A final read has no location: it is given as the empty text,
    /// together with the location of the write that it saw.
    #[must_use]
    pub fn locations<'t>(&self, trace: &'t Trace) -> Vec<&'t str> {
        let location = |&event: &EventId| trace.names().location(trace.event(event).site);
        let mut locations: Vec<&str> = match self.detail.nondeterminism() {
            None => self.events.iter().map(location).collect(),
            Some(detail) => match &detail.read {
                Some(read) => vec![location(read)],
                None => [""].into_iter().chain(detail.writer.iter().map(location)).collect(),
            },
        };
        locations.sort_unstable();
        locations
    }
}

/// Why a finding holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// It happened in the recorded run, which a schedule that is there follows.
    Observed(Option<Proof>),
    /// A schedule that leads to the fault.
    Schedule(Proof),
    /// All runs of an order were decided together, so no schedule can prove it. A schedule that is
    /// there shows an example.
    Decided(Option<Proof>),
    /// A claim, labelled as one: the first pair that a relation leaves unordered, of which a
    /// theorem says that it is real or that threads deadlock before it.
    First,
    /// A claim, labelled as one: a relation leaves the events unordered.
    Unordered,
}

impl Evidence {
    /// How much a finding with this evidence can be relied on. A schedule that runs reads whose
    /// writer was not observed is no more than a claim.
    #[must_use]
    pub fn guarantee(&self) -> Guarantee {
        match self {
            Self::Schedule(proof) if proof.unknown_reads_count() == 0 => Guarantee::Witnessed,
            Self::Decided(_) => Guarantee::Decided,
            Self::Observed(_) => Guarantee::Observed,
            Self::First => Guarantee::First,
            Self::Schedule(_) | Self::Unordered => Guarantee::Unordered,
        }
    }

    /// The schedule, if there is one.
    #[must_use]
    pub const fn proof(&self) -> Option<&Proof> {
        match self {
            Self::Schedule(proof) => Some(proof),
            Self::Observed(shown) | Self::Decided(shown) => shown.as_ref(),
            Self::First | Self::Unordered => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Subject;
    use reweave_trace::{AccessOp, Op, Reordering, TraceBuilder};

    #[test]
    fn a_schedule_witnesses_only_what_it_shows() {
        let mut builder = TraceBuilder::new();
        let (var, site) = (builder.var("x"), builder.site("a.c:1"));
        for name in ["T1", "T2", "T3"] {
            let thread = builder.thread(name);
            builder.push(thread, Op::Access(AccessOp::Write, var), site);
        }
        let trace = builder.finish().unwrap();
        let [first, second, third] = [1, 2, 3].map(|number| trace.numbered(number).unwrap());
        let proof = Subject::new(&trace).prove(Reordering::default(), Goal::Race(first, second));
        let proven =
            Finding::proven("some", Kind::Race, proof.unwrap(), String::new(), 1, Detail::None);
        assert_eq!(proven.events, [first, second]);
        assert_eq!(proven.guarantee(), Guarantee::Witnessed);
        let other_kind = Finding { kind: Kind::Deadlock, ..proven.clone() };
        let other_events = Finding { events: vec![first, third], ..proven };
        for finding in [other_kind, other_events] {
            assert_eq!(finding.guarantee(), Guarantee::Unordered);
        }
    }
}
