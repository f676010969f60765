//! The driver: runs analyses, certifies what they find, groups it by code location and puts the
//! worst first.

use std::ops::ControlFlow;

use reweave_analysis::{
    Analysis, Coverage, Evidence, Finding, Fingerprint, Guarantee, Info, Kind, Outcome, Reported,
    Settings, Sink, Subject, Truncation,
};
use reweave_base::FxHashMap;
use reweave_trace::Trace;

/// Someone who looks on while analyses run, and can stop them.
pub trait Watch {
    /// Whether the work should stop with what was found so far.
    fn is_cancelled(&self) -> bool;

    /// The analysis `info` has done `done` of `total` steps.
    fn progress(&self, info: &'static Info, done: u64, total: u64);
}

/// Nobody looks on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Watch for Quiet {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&self, _: &'static Info, _: u64, _: u64) {}
}

/// Runs `analyses` on `trace`.
///
/// Findings are grouped by the code locations of their events, each group shown by its earliest
/// instance, and only witnessed ones are kept; with [`Settings::all`] every instance is kept as
/// it comes. A schedule that the checker refuses makes its finding a mere claim.
pub fn run(
    trace: &Trace,
    analyses: &[&dyn Analysis],
    settings: &Settings,
    watch: &dyn Watch,
) -> Outcome {
    let subject = Subject::new(trace);
    let mut shown = Shown::default();
    let mut outcome = Outcome::default();
    for analysis in analyses {
        let kept_max = settings.limit.map_or(usize::MAX, |limit| shown.findings.len() + limit);
        let mut collector = Collector {
            subject: &subject,
            info: analysis.info(),
            all: settings.all,
            kept_max,
            watch,
            shown: &mut shown,
            unshown: 0,
            refused: 0,
            limited: false,
        };
        let mut coverage = analysis.run(&subject, settings, &mut collector);
        if collector.limited {
            coverage.truncated = coverage.truncated.or(Some(Truncation::Limit));
        }
        outcome.unshown += collector.unshown;
        outcome.refused += collector.refused;
        outcome.coverage.push(coverage);
    }
    let mut findings = shown.findings;
    findings.sort_by_cached_key(|finding| {
        let last = finding.events.iter().max().copied();
        (finding.kind, finding.guarantee, last, finding.events.clone())
    });
    if let Some(limit) = settings.limit {
        for cut in findings.drain(limit.min(findings.len())..) {
            mark_limited(&mut outcome.coverage, cut.analysis);
        }
    }
    outcome.findings = name(trace, findings);
    outcome
}

fn mark_limited(coverage: &mut [Coverage], analysis: &str) {
    for entry in coverage.iter_mut().filter(|entry| entry.analysis == analysis) {
        entry.truncated = entry.truncated.or(Some(Truncation::Limit));
    }
}

/// Gives every finding its id and its fingerprint.
fn name(trace: &Trace, findings: Vec<Finding>) -> Vec<Reported> {
    let mut numbers = [0; Kind::ALL.len()];
    let reported = |finding: Finding| {
        let number = &mut numbers[finding.kind as usize];
        *number += 1;
        let id = format!("{}{number}", finding.kind.letter());
        let fingerprint = Fingerprint::of(trace, finding.kind, &finding.events);
        Reported { id, fingerprint, finding }
    };
    findings.into_iter().map(reported).collect()
}

/// What will be shown, so far.
#[derive(Default)]
struct Shown<'t> {
    findings: Vec<Finding>,
    /// Where the group of a kind and some locations is.
    groups: FxHashMap<(Kind, Vec<&'t str>), usize>,
}

/// Takes the findings of one analysis.
struct Collector<'a, 't> {
    subject: &'a Subject<'t>,
    info: &'static Info,
    all: bool,
    kept_max: usize,
    watch: &'a dyn Watch,
    shown: &'a mut Shown<'t>,
    unshown: u64,
    refused: u64,
    limited: bool,
}

impl Sink for Collector<'_, '_> {
    fn found(&mut self, finding: Finding) -> ControlFlow<()> {
        let finding = self.certified(finding);
        if !self.all {
            if finding.guarantee != Guarantee::Witnessed {
                self.unshown += 1;
                return ControlFlow::Continue(());
            }
            if let Some(&at) = self.shown.groups.get(&self.group(&finding)) {
                join(&mut self.shown.findings[at], finding);
                return ControlFlow::Continue(());
            }
        }
        if self.shown.findings.len() >= self.kept_max {
            self.limited = true;
            return ControlFlow::Break(());
        }
        if !self.all {
            let group = self.group(&finding);
            self.shown.groups.insert(group, self.shown.findings.len());
        }
        self.shown.findings.push(finding);
        ControlFlow::Continue(())
    }

    fn is_cancelled(&self) -> bool {
        self.watch.is_cancelled()
    }

    fn progress(&mut self, done: u64, total: u64) {
        self.watch.progress(self.info, done, total);
    }
}

impl<'t> Collector<'_, 't> {
    /// `finding` as it stands if the checker accepts its schedule, or as a claim if not.
    fn certified(&mut self, mut finding: Finding) -> Finding {
        let holds = match &finding.evidence {
            Evidence::Schedule { reordering, goal } => {
                self.subject.checker().check(reordering, goal).is_ok()
            }
            Evidence::Unordered => finding.guarantee != Guarantee::Witnessed,
        };
        if !holds {
            self.refused += 1;
            finding.guarantee = Guarantee::Unordered;
            finding.evidence = Evidence::Unordered;
            finding.message.push_str(" (so it is claimed, but the checker refused the schedule)");
        }
        finding
    }

    fn group(&self, finding: &Finding) -> (Kind, Vec<&'t str>) {
        let trace = self.subject.trace();
        let location = |&id| trace.names().location(trace.event(id).site);
        let mut locations: Vec<&str> = finding.events.iter().map(location).collect();
        locations.sort_unstable();
        (finding.kind, locations)
    }
}

/// Adds `other`, at the same locations, to the group that `kept` shows.
fn join(kept: &mut Finding, other: Finding) {
    if kept.analysis != other.analysis {
        // Two analyses that see the same fault see the same instances: the first one counts.
        return;
    }
    let count = kept.count + other.count;
    if other.events.iter().max() < kept.events.iter().max() {
        *kept = other;
    }
    kept.count = count;
}
