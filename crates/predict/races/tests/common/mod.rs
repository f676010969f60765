//! What the tests of this crate share.

use reweave_analysis::{Analysis, Coverage, Finding, Gathered, Settings, Subject};
use reweave_races::Race;
use reweave_trace::Trace;

/// What `analysis` finds in `trace` with `settings`.
pub(crate) fn run(
    analysis: &dyn Analysis,
    trace: &Trace,
    settings: &Settings,
) -> (Vec<Finding>, Coverage) {
    let mut kept = Gathered::default();
    let coverage = analysis.run(&Subject::new(trace), settings, &mut kept);
    (kept.findings, coverage)
}

/// What `analysis` finds in `trace`, every instance if `all`.
pub(crate) fn findings(
    analysis: &dyn Analysis,
    trace: &Trace,
    all: bool,
) -> (Vec<Finding>, Coverage) {
    run(analysis, trace, &Settings { all, ..Settings::default() })
}

/// The event numbers of `races`, in ascending order.
pub(crate) fn numbers(races: &[Race]) -> Vec<Vec<u32>> {
    let mut numbers: Vec<Vec<u32>> =
        races.iter().map(|race| vec![race.first.number(), race.second.number()]).collect();
    numbers.sort_unstable();
    numbers
}
