//! Runs analyses, joins what they find to faults and puts the worst first.
//!
//! What is called witnessed holds a proof, and a proof is made by the checker alone, so findings
//! are taken as they come.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use reweave_analysis::{
    Analysis, Counter, Coverage, Detail, Finding, Guarantee, Identities, Info, Instances, Kind,
    Nondeterminism, Outcome, Reach, Reported, Settings, Sink, Subject, Truncation, Unshown,
    WitnessList, WitnessVerdict,
};
use reweave_base::FxHashMap;
use reweave_reorder::{SWITCH_STEPS_MAX, with_fewer_switches};
use reweave_trace::{Calls, EventId, Trace};

use crate::assumed::WithoutAssumed;
use crate::faults::{Faults, faults};

/// How many steps of schedules are put into another order, in all.
const REORDERED_MAX: usize = 1 << 16;

/// Follows the progress of analyses, and can stop them.
pub trait Watch {
    /// Whether the work should stop with what was found so far.
    fn is_cancelled(&self) -> bool;

    /// Whether it should stop because its time is up.
    fn is_out_of_time(&self) -> bool {
        false
    }

    /// The analysis `info` has done `done` of `total` steps.
    fn progress(&self, info: &'static Info, done: u64, total: u64);
}

/// Reports no progress and never stops an analysis.
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
/// Findings are grouped by the code locations at fault, each group shown by its earliest instance,
/// of nondeterminism by the worst, and these by the fault that they are of
/// ([`Identities`](reweave_analysis::Identities)); only those that hold for certain are kept. With
/// [`Settings::all`] every instance is kept as it comes. An analysis that needs a layer which `trace`
/// lacks is not run, and its coverage says so; so does that of one which looks at accesses where none
/// could be recorded.
/// Where ordering was only assumed, races and deadlocks are looked for without it too: what only
/// shows then is counted as undecided. What stands for such ordering is nothing of the program's, so a
/// finding about it is none.
///
/// ```
/// use reweave_analysis::Settings;
/// use reweave_catalog::{Quiet, run, select};
///
/// let trace = reweave_testkit::trace("
/// T1    T2
/// w(x)
///       w(x)
/// ");
/// let outcome = run(&trace, &select("races.exact", &[]).unwrap(), &Settings::default(), &Quiet);
/// assert_eq!(outcome.findings.len(), 1);
/// ```
pub fn run(
    trace: &Trace,
    analyses: &[&dyn Analysis],
    settings: &Settings,
    watch: &dyn Watch,
) -> Outcome {
    let subject = Subject::new(trace);
    let identities = Identities::new(trace);
    let mut shown = Shown::default();
    let is_not_instrumented = is_not_instrumented(trace);
    let without_assumed = WithoutAssumed::new(trace);
    let threads = Settings::default().threads;
    let asked = Settings { threads, ..*settings };
    let mut outcome = Outcome { settings: asked, ..Outcome::default() };
    for analysis in analyses {
        let info = analysis.info();
        if !applies(info, trace, analyses) {
            continue;
        }
        if !info.needs.is_in(trace) {
            outcome.coverage.push(not_run(info));
            outcome.unshown.push(Unshown::default());
            continue;
        }
        let kept_max = settings.limit.map(|limit| shown.faults_count(settings.all) + limit);
        let mut collector = Collector {
            trace,
            identities: &identities,
            info,
            all: settings.all,
            kept_max,
            watch,
            shown: &mut shown,
            witnesses: None,
            unshown: Unshown::default(),
            limited: false,
        };
        let mut coverage = coverage(*analysis, &subject, settings, &mut collector);
        if let Some(reason) = collector.unanswered(is_not_instrumented) {
            coverage.truncated = coverage.truncated.or(Some(reason));
        }
        let (unshown, witnesses) = (collector.unshown, collector.witnesses);
        if let Some(without) = without_assumed.as_ref().filter(|_| is_counted(info)) {
            count_undecided(&mut coverage, without, *analysis, settings, shown.locations(trace));
        }
        // Groups that an analysis only counts never come as findings.
        let unlisted = coverage.counter(Counter::Unlisted).unwrap_or(0);
        outcome.unshown.push(Unshown { unlisted, ..unshown });
        let listed = witnesses.into_iter();
        let analysis = info.name;
        outcome.witnesses.extend(listed.map(|witnesses| WitnessList { analysis, witnesses }));
        outcome.coverage.push(coverage);
    }
    let mut findings = shown.findings;
    sort(&mut findings);
    outcome.findings = faults(&identities, findings, !settings.all);
    if let Some(limit) = settings.limit {
        for cut in outcome.findings.drain(limit.min(outcome.findings.len())..) {
            mark_limited(&mut outcome.coverage, cut.finding.analysis);
        }
    }
    show_with_few_switches(&subject, &mut outcome.findings, watch);
    outcome.assumed = without_assumed.map(|without| without.libraries).unwrap_or_default();
    outcome
}

/// Runs `analysis`; what it covered.
fn coverage(
    analysis: &dyn Analysis,
    subject: &Subject<'_>,
    settings: &Settings,
    collector: &mut Collector<'_, '_>,
) -> Coverage {
    let name = analysis.info().name;
    let stage = tracing::info_span!("analyse", analysis = name).entered();
    let mut coverage = analysis.run(subject, settings, collector);
    drop(stage);
    for (counter, count) in &coverage.counters {
        tracing::debug!("{name}: {counter} {count}");
    }
    if coverage.truncated == Some(Truncation::Cancelled) && collector.watch.is_out_of_time() {
        coverage.truncated = Some(Truncation::Time);
    }
    coverage
}

/// Whether there is anything to say of the analysis `info`, be it that it found nothing.
fn applies(info: &Info, trace: &Trace, analyses: &[&dyn Analysis]) -> bool {
    // Not of a run that ended well.
    if info.family == reweave_endings::FAMILY {
        return reweave_endings::applies(info, trace);
    }
    // Nor of lives where none ends, unless that is all that is asked for.
    info.family != reweave_lifetimes::FAMILY
        || reweave_lifetimes::applies(info, trace)
        || analyses.iter().all(|other| other.info().family == info.family)
}

/// Whether what ordering hides that was only assumed is counted as undecided.
const fn is_counted(info: &Info) -> bool {
    matches!(info.kind, Kind::Race | Kind::Deadlock | Kind::UseAfterFree | Kind::UseAfterClose)
}

/// Sorts `findings`, the worst and the most certain first, then by where they end.
fn sort(findings: &mut [Finding]) {
    findings.sort_by_cached_key(|finding| {
        let last = finding.events.iter().max().copied();
        let severity = finding.detail.nondeterminism().map(Nondeterminism::severity);
        (finding.kind, finding.guarantee(), severity, last, finding.events.clone())
    });
}

/// Counts what `analysis` finds besides `found` where nothing is assumed.
fn count_undecided(
    coverage: &mut Coverage,
    without: &WithoutAssumed,
    analysis: &dyn Analysis,
    settings: &Settings,
    found: BTreeSet<Vec<&str>>,
) {
    let (count, other) = without.undecided(analysis, settings, &found);
    if count > 0 {
        coverage.counters.push((Counter::Assumed, count));
    }
    let truncated = if count > 0 { Some(Truncation::Assumed) } else { other.truncated };
    coverage.truncated = coverage.truncated.or(truncated);
}

fn not_run(info: &Info) -> Coverage {
    let truncated = Some(Truncation::Lacks(info.needs));
    Coverage { analysis: info.name, truncated, counters: Vec::new() }
}

/// Whether `trace` was recorded of a program in which accesses are not seen: several threads, no
/// access, and no call that is followed out of the program.
fn is_not_instrumented(trace: &Trace) -> bool {
    let names = trace.names();
    trace.origins().is_some()
        && names.threads.len() > 1
        && trace.events().all(|(_, event)| event.op.var().is_none())
        && !names.sites.entries().any(|(site, _)| {
            Calls::new(names, site).callers.iter().any(|call| is_start(call.function))
        })
}

/// Whether `function` is one of the C library that starts threads or `main`. Calls are followed that
/// far where accesses are seen; where they are not, only calls that the compiler has put in place are
/// known.
fn is_start(function: &str) -> bool {
    // Where the C library has no symbols, the module stands for the function.
    let module = function.rsplit('/').next().unwrap_or(function);
    let module = module.split_once("+0x").map(|(module, _)| module);
    function == "start_thread"
        || function.starts_with("__libc_start")
        || module.is_some_and(|module| {
            // The C library of GNU, old and new, and musl's.
            ["libc.so.", "libc-2.", "libc.musl-"].iter().any(|start| module.starts_with(start))
        })
}

fn mark_limited(coverage: &mut [Coverage], analysis: &str) {
    for entry in coverage.iter_mut().filter(|entry| entry.analysis == analysis) {
        entry.truncated = entry.truncated.or(Some(Truncation::Limit));
    }
}

/// Gives findings schedules that are easier to follow, the worst findings first.
fn show_with_few_switches(subject: &Subject<'_>, findings: &mut [Reported], watch: &dyn Watch) {
    let _stage = tracing::info_span!("reduce context switches").entered();
    let mut left = REORDERED_MAX;
    for reported in findings {
        if watch.is_cancelled() || watch.is_out_of_time() {
            return;
        }
        // What happened is shown as it happened.
        let is_wanted = reported.finding.guarantee() != Guarantee::Observed;
        let proof = reported.finding.evidence.proof().filter(|_| is_wanted);
        let Some(proof) = proof else { continue };
        let (reordering, goal) = (proof.reordering(), proof.goal());
        // Steps of the fixed prefix are put into another order too, and then stand in the schedule.
        let in_base: usize = reordering.base.iter().map(|&count| count as usize).sum();
        let steps = (in_base + reordering.schedule.len()).min(SWITCH_STEPS_MAX);
        let Some(rest) = left.checked_sub(steps) else { return };
        left = rest;
        let Some(other) = with_fewer_switches(subject.trace(), reordering, goal) else { continue };
        // A schedule that is refused would be a fault; the one that was accepted still holds.
        if let Ok(proof) = subject.prove(other, goal.clone()) {
            reported.finding.show_by(proof);
        }
    }
}

/// What will be shown, so far.
#[derive(Default)]
struct Shown<'t> {
    findings: Vec<Finding>,
    /// Where each group is.
    groups: FxHashMap<Instances<'t>, usize>,
    /// Which faults they are of, where that matters: where their number has a limit.
    faults: Faults,
}

impl<'t> Shown<'t> {
    /// How many faults there are; each finding is one if `all` are asked for.
    const fn faults_count(&self, all: bool) -> usize {
        if all { self.findings.len() } else { self.faults.count() }
    }

    /// The locations of the races so far.
    fn locations(&self, trace: &'t Trace) -> BTreeSet<Vec<&'t str>> {
        let races = self.findings.iter().filter(|finding| finding.kind == Kind::Race);
        races.map(|finding| finding.locations(trace)).collect()
    }
}

/// Takes the findings of one analysis.
struct Collector<'a, 't> {
    trace: &'t Trace,
    identities: &'a Identities<'t>,
    info: &'static Info,
    all: bool,
    /// How many faults are kept, if that has a limit.
    kept_max: Option<usize>,
    watch: &'a dyn Watch,
    shown: &'a mut Shown<'t>,
    witnesses: Option<Vec<WitnessVerdict>>,
    unshown: Unshown,
    limited: bool,
}

impl Sink for Collector<'_, '_> {
    fn found(&mut self, finding: Finding) -> ControlFlow<()> {
        let is_added = |&event: &EventId| {
            let var = self.trace.event(event).op.var();
            var.is_some_and(|var| self.trace.names().is_added(var))
        };
        if finding.events.iter().any(is_added) {
            return ControlFlow::Continue(());
        }
        if self.all {
            // The deadlock that happened is not predicted as well.
            if (finding.kind, finding.guarantee()) == (Kind::Deadlock, Guarantee::Observed) {
                let of = |it: &Finding| (it.kind, BTreeSet::from_iter(it.events.iter().copied()));
                self.shown.findings.retain(|it| of(it) != of(&finding));
            }
            return self.keep(finding);
        }
        if !finding.guarantee().is_certain() {
            let unshown = match finding.evidence.proof() {
                Some(_) => &mut self.unshown.unknown_writer,
                None => &mut self.unshown.unproven,
            };
            *unshown += 1;
            return ControlFlow::Continue(());
        }
        if finding.detail.state().is_some() {
            return self.keep(finding);
        }
        let group = self.identities.instances(&finding);
        if let Some(&at) = self.shown.groups.get(&group) {
            join(self.trace, &mut self.shown.findings[at], finding);
            return ControlFlow::Continue(());
        }
        let at = self.shown.findings.len();
        self.keep(finding)?;
        self.shown.groups.insert(group, at);
        ControlFlow::Continue(())
    }

    fn listed(&mut self, witnesses: &[WitnessVerdict]) -> ControlFlow<()> {
        self.witnesses.get_or_insert_default().extend(witnesses);
        ControlFlow::Continue(())
    }

    fn is_cancelled(&self) -> bool {
        self.watch.is_cancelled()
    }

    fn progress(&mut self, done: u64, total: u64) {
        self.watch.progress(self.info, done, total);
    }
}

impl Collector<'_, '_> {
    /// Why the question has no answer, though the analysis went through everything.
    fn unanswered(&self, is_not_instrumented: bool) -> Option<Truncation> {
        let found = |finding: &Finding| finding.analysis == self.info.name;
        if self.limited {
            Some(Truncation::Limit)
        } else if is_not_instrumented && self.info.kind.info().needs_accesses {
            Some(Truncation::NotInstrumented)
        } else if self.unshown.unknown_writer > 0 && !self.shown.findings.iter().any(found) {
            // It saw candidates and could prove or refute none of them.
            Some(Truncation::UnknownWriters)
        } else {
            self.trace.is_empty().then_some(Truncation::NoEvents)
        }
    }

    fn keep(&mut self, finding: Finding) -> ControlFlow<()> {
        if let Some(kept_max) = self.kept_max {
            let is_grouped = !self.all;
            let marks = is_grouped.then(|| self.identities.marks(&finding, Reach::Trace));
            let is_known = marks.as_ref().is_some_and(|marks| self.shown.faults.has(marks));
            if !is_known && self.shown.faults_count(self.all) >= kept_max {
                self.limited = true;
                return ControlFlow::Break(());
            }
            self.shown.faults.add(&marks.unwrap_or_default());
        }
        self.shown.findings.push(finding);
        ControlFlow::Continue(())
    }
}

/// Adds `other`, at the same locations, to the group that `kept` shows.
fn join(trace: &Trace, kept: &mut Finding, mut other: Finding) {
    if kept.analysis != other.analysis {
        // Two analyses that see the same fault see the same instances: the first one counts, unless it predicts what
        // happened.
        let is_shown = other.guarantee() == Guarantee::Observed;
        if is_shown && kept.guarantee() != Guarantee::Observed {
            other.count = other.count.max(kept.count);
            *kept = other;
        }
        return;
    }
    let count = kept.count + other.count;
    if is_shown_before(&other, kept) {
        std::mem::swap(kept, &mut other);
    }
    if let (Detail::Nondeterminism(shown), Detail::Nondeterminism(joined)) =
        (&mut kept.detail, &other.detail)
    {
        shown.join(trace, joined);
    }
    kept.count = count;
}

/// Whether a group is shown by `finding` rather than by `other`.
fn is_shown_before(finding: &Finding, other: &Finding) -> bool {
    let is_earlier = finding.events.iter().max() < other.events.iter().max();
    match (finding.detail.nondeterminism(), other.detail.nondeterminism()) {
        (Some(detail), Some(known)) if detail.is_worse_than(known) => true,
        (Some(detail), Some(known)) if known.is_worse_than(detail) => false,
        _ => is_earlier,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_c_library_starts_threads() {
        for start in ["start_thread", "__libc_start_call_main", "libc.so.6+0x94ac2"] {
            assert!(is_start(start), "{start}");
        }
        for own in ["libcurl_start", "my_libc", "libcurl.so.4+0x10", "main"] {
            assert!(!is_start(own), "{own}");
        }
    }
}
