//! Findings held against what is known and what is tolerated.

use reweave_analysis::{Kind, Outcome, Truncation};
use reweave_trace::Trace;

use crate::baseline::{Baseline, Known};
use crate::suppress::{Suppressions, Unused};

/// What findings are held against.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    /// What is known.
    pub baseline: Option<Baseline>,
    /// What is tolerated, file by file.
    pub suppressions: Vec<Suppressions>,
}

/// How many findings were set aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// They are known, and nobody said that they are tolerated.
    pub known: u64,
    /// They are tolerated.
    pub suppressed: u64,
}

impl Gate {
    /// Whether everything passes.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.baseline.is_none() && self.suppressions.is_empty()
    }

    /// Takes out of `outcome`, made of `trace`, what is known or tolerated, and of the rest what is
    /// beyond `limit`: a limit counts what is shown. What stays keeps its id.
    pub fn sift(&mut self, trace: &Trace, outcome: &mut Outcome, limit: Option<usize>) -> Aside {
        let mut tolerated = vec![false; outcome.findings.len()];
        for suppressions in &mut self.suppressions {
            let by_these = suppressions.tolerated(trace, &outcome.findings);
            tolerated.iter_mut().zip(by_these).for_each(|(one, other)| *one |= other);
        }
        let mut aside = Aside::default();
        let mut kept = Vec::new();
        for (reported, is_tolerated) in outcome.findings.drain(..).zip(tolerated) {
            let baseline = self.baseline.as_mut();
            let is_known = baseline.is_some_and(|baseline| baseline.meet(reported.fingerprint));
            match (is_tolerated, is_known) {
                (true, _) => aside.suppressed += 1,
                (false, true) => aside.known += 1,
                (false, false) => kept.push(reported),
            }
        }
        outcome.findings = kept;
        let limit = limit.unwrap_or(usize::MAX).min(outcome.findings.len());
        for cut in outcome.findings.split_off(limit) {
            let analysis = cut.finding.analysis;
            let entries = outcome.coverage.iter_mut().filter(|entry| entry.analysis == analysis);
            entries.for_each(|entry| {
                entry.truncated = entry.truncated.or(Some(Truncation::Limit));
            });
        }
        aside
    }

    /// What is known and was not found, though `kinds` of faults were looked for.
    pub fn unmet(&self, kinds: &[Kind]) -> impl Iterator<Item = &Known> {
        self.baseline.iter().flat_map(move |baseline| baseline.unmet(kinds))
    }

    /// The suppressions that matched nothing, though `kinds` of faults were looked for.
    pub fn unused(&self, kinds: &[Kind]) -> impl Iterator<Item = Unused<'_>> {
        self.suppressions.iter().flat_map(move |suppressions| suppressions.unused(kinds))
    }
}
