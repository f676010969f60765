//! What a run of analyses gave: findings ready to be shown, and how far each analysis went.

use crate::coverage::Coverage;
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

/// What analyses found in one trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The findings, worst first.
    pub findings: Vec<Reported>,
    /// How far each analysis went, in the order they ran.
    pub coverage: Vec<Coverage>,
    /// How many groups were left out no schedule being known for them.
    pub unshown: u64,
}

impl Outcome {
    /// Whether every analysis answered its whole question.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.coverage.iter().all(Coverage::is_complete)
    }
}
