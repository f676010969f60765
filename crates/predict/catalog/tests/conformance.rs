//! What every analysis must do, whatever it looks for, on the whole corpus: repeat itself, respect
//! its limit and its budget, stop when asked to, accept the empty trace, and give evidence that
//! holds.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use reweave_analysis::{Analysis, Guarantee, Info, Kind, Outcome, Reported, Settings, Truncation};
use reweave_catalog::{Quiet, Watch, analyses, run};
use reweave_testkit::corpus;
use reweave_trace::{Checker, EventId, Trace, TraceBuilder};

/// Longer traces are gone through with a limit on findings, since some have hundreds of thousands.
const LONG: usize = 5_000;

/// How many findings of a long trace are looked at.
const LIMIT: usize = 30;

const ALL: Settings = Settings {
    all: true,
    limit: None,
    budget: 1_000_000_000,
    time: None,
    window: None,
    differing_values: false,
    final_reads: true,
    seqcst: false,
    threads: 1,
};

/// Analyses that list what a relation leaves unordered, proven or not.
const RELATIONS: [&str; 4] = ["races.hb", "races.shb", "races.wcp", "races.cp"];

/// An analysis on a trace, and all that it finds there, as far as a test has time for it.
struct Ran {
    what: String,
    analysis: &'static dyn Analysis,
    trace: &'static Trace,
    outcome: Outcome,
}

fn all_of(trace: &Trace) -> Settings {
    Settings { limit: (trace.len() > LONG).then_some(LIMIT), ..ALL }
}

fn examine(trace: &Trace, analysis: &dyn Analysis, settings: &Settings) -> Outcome {
    run(trace, &[analysis], settings, &Quiet)
}

/// Every analysis on every trace of the corpus.
static RUNS: LazyLock<Vec<Ran>> = LazyLock::new(|| {
    let mut runs = Vec::new();
    for case in corpus::litmus().into_iter().chain(corpus::traces()) {
        let trace: &'static Trace = Box::leak(Box::new(case.trace()));
        for analysis in analyses() {
            let what = format!("{} on {}", analysis.info().name, case.name);
            let outcome = examine(trace, analysis, &all_of(trace));
            runs.push(Ran { what, analysis, trace, outcome });
        }
    }
    runs
});

#[test]
fn an_analysis_repeats_itself_whatever_the_number_of_threads() {
    for Ran { what, analysis, trace, outcome } in &*RUNS {
        let again = examine(trace, *analysis, &Settings { threads: 4, ..all_of(trace) });
        assert_eq!(outcome, &again, "{what}");
    }
}

#[test]
fn an_analysis_respects_its_limit() {
    for Ran { what, analysis, trace, outcome } in &*RUNS {
        let found = outcome.findings.len();
        for limit in [0, 1, 2] {
            let limited = examine(trace, *analysis, &Settings { limit: Some(limit), ..ALL });
            assert_eq!(limited.findings.len(), found.min(limit), "{what}");
            if outcome.is_complete() {
                assert_eq!(limited.is_complete(), found <= limit, "{what}");
            }
        }
    }
}

/// What a finding is about, whatever is known of it.
fn subjects(outcome: &Outcome) -> Vec<(Kind, Vec<EventId>)> {
    let subject = |reported: &Reported| (reported.finding.kind, reported.finding.events.clone());
    let mut subjects: Vec<_> = outcome.findings.iter().map(subject).collect();
    subjects.sort_unstable();
    subjects
}

#[track_caller]
fn assert_part(what: &str, part: &Outcome, whole: &Outcome) {
    let mut known = subjects(whole).into_iter();
    for subject in subjects(part) {
        assert!(known.any(|other| other == subject), "{what}: {subject:?}");
    }
}

/// What kind of fault is found at which code locations.
fn places<'t>(trace: &'t Trace, outcome: &Outcome) -> BTreeSet<(Kind, Vec<&'t str>)> {
    let findings = outcome.findings.iter().flat_map(Reported::findings);
    findings.map(|finding| (finding.kind, finding.locations(trace))).collect()
}

#[test]
fn a_budget_that_is_used_up_is_said_to_be_and_what_is_found_with_it_is_found_without() {
    for Ran { what, analysis, trace, .. } in &*RUNS {
        // Groups are few, and with a limit others would be the first ones.
        let grouped = Settings { all: false, ..ALL };
        let whole = examine(trace, *analysis, &grouped);
        for budget in [0, 1, 2 * trace.len() as u64] {
            let limited = examine(trace, *analysis, &Settings { budget, ..grouped });
            // Another instance of the same fault may be the first that the budget lasts for.
            let known = places(trace, &whole);
            assert!(places(trace, &limited).is_subset(&known), "{what} with {budget}");
            let is_less = limited.findings.len() < whole.findings.len();
            assert!(!is_less || !limited.is_complete(), "{what} with {budget}");
            let coverage = limited.coverage.first();
            if let Some(reason) = coverage.and_then(|coverage| coverage.truncated) {
                assert!(
                    matches!(reason, Truncation::Budget | Truncation::Capped | Truncation::Limit),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn claims_made_without_a_budget_are_those_made_with_one() {
    for Ran { what, analysis, trace, outcome } in RUNS.iter().filter(|ran| ran.trace.len() <= LONG)
    {
        let limited = examine(trace, *analysis, &Settings { budget: 0, ..ALL });
        if RELATIONS.contains(&analysis.info().name) {
            assert_eq!(subjects(&limited), subjects(outcome), "{what}");
        } else {
            assert_part(what, &limited, outcome);
        }
    }
}

struct StopAfter(Cell<u32>);

impl Watch for StopAfter {
    fn is_cancelled(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }

    fn progress(&self, _: &'static Info, _: u64, _: u64) {}
}

#[test]
fn an_analysis_stops_when_told() {
    for Ran { what, analysis, trace, .. } in &*RUNS {
        let outcome = run(trace, &[*analysis], &all_of(trace), &StopAfter(Cell::new(1)));
        assert!(outcome.findings.is_empty(), "{what}");
        // Nothing is said of an end that was no fault.
        let is_silent = analysis.info().family == "endings";
        assert!(trace.is_empty() || is_silent || !outcome.is_complete(), "{what}");
    }
}

#[test]
fn an_analysis_accepts_the_empty_trace() {
    let trace = TraceBuilder::new().finish().unwrap();
    for analysis in analyses() {
        let outcome = examine(&trace, analysis, &ALL);
        assert!(outcome.findings.is_empty());
        let reasons = outcome.coverage.iter().map(|coverage| coverage.truncated);
        assert!(reasons.eq(outcome.coverage.iter().map(|_| Some(Truncation::NoEvents))));
    }
}

#[test]
fn evidence_holds() {
    for Ran { what, trace, outcome, .. } in &*RUNS {
        let checker = Checker::new(*trace);
        for Reported { id, finding, .. } in &outcome.findings {
            let Some(proof) = finding.evidence.proof() else {
                assert_ne!(finding.guarantee(), Guarantee::Witnessed, "{what}: {id}");
                continue;
            };
            let checked = checker.check(proof.reordering(), proof.goal());
            let loose = checked.map(|certificate| certificate.unknown_reads_count);
            assert_eq!(loose, Ok(proof.unknown_reads_count()), "{what}: {id}");
            // A report marks the events at fault by what the goal names.
            assert_eq!(proof.goal().named(), finding.events, "{what}: {id}");
        }
    }
}

#[test]
fn only_witnessed_findings_are_shown_unless_all_are_asked_for() {
    for Ran { what, analysis, trace, .. } in &*RUNS {
        let settings = Settings { limit: Some(LIMIT), ..Settings::default() };
        let outcome = examine(trace, *analysis, &settings);
        let all = outcome.findings.iter().map(|reported| &reported.finding);
        assert!(all.clone().all(|f| f.guarantee() == Guarantee::Witnessed), "{what}");
        assert!(all.clone().is_sorted_by_key(|f| f.kind), "{what}");
    }
}
