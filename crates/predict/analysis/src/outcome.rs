//! What a run of analyses gave: findings ready to be shown, and how far each analysis went.

use crate::coverage::{Coverage, Settings};
use crate::detail::WitnessList;
use crate::finding::Finding;
use crate::fingerprint::Fingerprint;

/// A fault: the finding that is shown for it, with its names, and where else it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Its name in this report: the kind's letter and a number, such as `R1`.
    pub id: String,
    /// Its name in every report on the same code: that of the finding that is shown.
    pub fingerprint: Fingerprint,
    /// What is shown: of all findings of the fault the most certain, of these the earliest.
    pub finding: Finding,
    /// The other findings of the same fault, each with the name that it has where it is shown.
    pub places: Vec<(Fingerprint, Finding)>,
    /// The other traces that show the fault.
    pub traces: Vec<String>,
}

impl Reported {
    /// A fault that is at one place.
    #[must_use]
    pub const fn new(id: String, fingerprint: Fingerprint, finding: Finding) -> Self {
        Self { id, fingerprint, finding, places: Vec::new(), traces: Vec::new() }
    }

    /// How many instances it has at all its places.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.findings().map(|finding| finding.count).sum()
    }

    /// What is found at each place, what is shown first.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        [&self.finding].into_iter().chain(self.places.iter().map(|(_, finding)| finding))
    }

    /// The names that it has by any of its places, its own first.
    pub fn fingerprints(&self) -> impl Iterator<Item = Fingerprint> {
        [self.fingerprint].into_iter().chain(self.places.iter().map(|&(name, _)| name))
    }

    /// Leaves only the places that `is_kept` says, and shows the first of these; none if it says none.
    #[must_use]
    pub fn filtered(self, mut is_kept: impl FnMut(Fingerprint, &Finding) -> bool) -> Option<Self> {
        let Self { id, fingerprint, finding, places, traces } = self;
        let all = [(fingerprint, finding)].into_iter().chain(places);
        let mut kept = all.filter(|(name, finding)| is_kept(*name, finding));
        let (fingerprint, finding) = kept.next()?;
        Some(Self { id, fingerprint, finding, places: kept.collect(), traces })
    }
}

/// A fault that is listed with another trace, which shows it as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What it is where it would be listed by itself.
    pub fault: Reported,
    /// What the other trace is called.
    pub trace: String,
    /// The id of the fault there.
    pub id: String,
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
    /// What was found as well, and is listed with another trace.
    pub listed: Vec<Listed>,
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
