//! What a run of analyses gave: findings ready to be shown, and how far each analysis went.

use crate::coverage::{Coverage, Settings};
use crate::detail::WitnessList;
use crate::finding::Finding;
use crate::fingerprint::Fingerprint;

/// A finding with its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Its name in this report: the kind's letter and a number, such as `R1`.
    pub id: String,
    /// Its name in every report on the same code.
    pub fingerprint: Fingerprint,
    /// What was found.
    pub finding: Finding,
}

/// What one analysis reported that is not shown, since no schedule proves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unshown {
    /// Groups with a schedule that rests on reads whose writer was not observed.
    pub unknown_writer: u64,
    /// Groups without a schedule.
    pub unproven: u64,
    /// Groups that were only counted.
    pub unlisted: u64,
}

impl Unshown {
    /// All of them.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.unknown_writer + self.unproven + self.unlisted
    }
}

/// What analyses found in one trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How hard was looked; the number of threads, on which nothing depends, is the default.
    pub settings: Settings,
    /// The findings, worst first.
    pub findings: Vec<Reported>,
    /// How far each analysis went, in the order they ran.
    pub coverage: Vec<Coverage>,
    /// What each of them reported that is not shown, in the same order.
    pub unshown: Vec<Unshown>,
    /// Every witness of nondeterminism with its verdict, by analysis, where one lists them.
    pub witnesses: Vec<WitnessList>,
    /// The libraries that were assumed to order threads, since nobody saw whether they do.
    pub assumed: Vec<String>,
}

impl Outcome {
    /// Whether every analysis answered its whole question.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.coverage.iter().all(Coverage::is_complete)
    }

    /// How many groups are not shown.
    #[must_use]
    pub fn unshown_count(&self) -> u64 {
        self.unshown.iter().map(Unshown::count).sum()
    }
}
