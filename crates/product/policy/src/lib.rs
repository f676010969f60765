//! Which findings count: those that are neither in a baseline nor suppressed.
//!
//! A [`Baseline`] is an older report: its findings are known, and only new ones matter.
//! [`Suppressions`] list tolerated faults in ThreadSanitizer's syntax. A [`Policy`] filters findings
//! by both and remembers which entries matched, so that stale ones can be reported and removed.
//!
//! Findings are never renumbered: those that remain keep the ids of the unfiltered report. A fault that is at
//! several places is filtered place by place: it goes if none is left, and else shows one that is.
//!
//! ```
//! use reweave_policy::Pattern;
//!
//! assert!(Pattern::new("bank::*deposit").matches("bank::Account::deposit"));
//! ```

mod baseline;
mod error;
mod pattern;
mod suppress;

pub use baseline::{Baseline, KnownFinding};
pub use error::{ReadError, ReadErrorKind, nearest};
pub use pattern::Pattern;
pub use suppress::{Suppression, Suppressions};

use reweave_analysis::{Kind, Outcome, Reported, Truncation};
use reweave_trace::Trace;

/// What decides which findings count.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Findings that are known already.
    pub baseline: Option<Baseline>,
    /// Findings that are tolerated, file by file.
    pub suppressions: Vec<Suppressions>,
}

/// How many findings a policy removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suppressed {
    /// In the baseline, and not suppressed.
    pub known: u64,
    /// Matched by a suppression, whether or not the baseline has them.
    pub suppressed: u64,
}

impl Policy {
    /// Whether every finding counts.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.baseline.is_none() && self.suppressions.is_empty()
    }

    /// Removes from `outcome`, made of `trace`, the findings that do not count, then those beyond
    /// `limit`: a limit counts what is shown.
    pub fn filter(
        &mut self,
        trace: &Trace,
        outcome: &mut Outcome,
        limit: Option<usize>,
    ) -> Suppressed {
        let places = |reported: &Reported| vec![false; 1 + reported.places.len()];
        let mut is_suppressed: Vec<Vec<bool>> = outcome.findings.iter().map(places).collect();
        for suppressions in &mut self.suppressions {
            let matched = suppressions.matching(trace, &outcome.findings);
            let flags = is_suppressed.iter_mut().flatten();
            flags.zip(matched.into_iter().flatten()).for_each(|(one, other)| *one |= other);
        }
        let mut removed = Suppressed::default();
        let findings = std::mem::take(&mut outcome.findings).into_iter();
        outcome.findings = findings
            .zip(is_suppressed)
            .filter_map(|(reported, suppressed)| {
                // Asked even of suppressed findings: an entry that was found is not stale.
                let known = match &mut self.baseline {
                    Some(baseline) => baseline.mark_found(reported.fingerprints()),
                    None => places(&reported),
                };
                let is_suppressed = suppressed.iter().all(|&is_so| is_so);
                let mut set_aside =
                    suppressed.into_iter().zip(known).map(|(one, other)| one | other);
                let left = reported.filtered(|_, _| set_aside.next() == Some(false));
                removed.suppressed += u64::from(is_suppressed);
                removed.known += u64::from(left.is_none() && !is_suppressed);
                left
            })
            .collect();
        let limit = limit.unwrap_or(usize::MAX).min(outcome.findings.len());
        for cut in outcome.findings.split_off(limit) {
            let analysis = cut.finding.analysis;
            for entry in outcome.coverage.iter_mut().filter(|entry| entry.analysis == analysis) {
                entry.truncated.get_or_insert(Truncation::Limit);
            }
        }
        removed
    }

    /// Findings of the baseline that were not found, though `kinds` were searched.
    pub fn not_found(&self, kinds: &[Kind]) -> impl Iterator<Item = &KnownFinding> {
        self.baseline.iter().flat_map(move |baseline| baseline.not_found(kinds))
    }

    /// Suppressions that matched nothing, though `kinds` were searched.
    pub fn unused(&self, kinds: &[Kind]) -> impl Iterator<Item = Suppression<'_>> {
        self.suppressions.iter().flat_map(move |suppressions| suppressions.unused(kinds))
    }
}
