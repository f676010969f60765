//! What every analysis must do, whatever it looks for, on the whole corpus: repeat itself,
//! respect its limit, stop when told, accept the empty trace, and give evidence that holds.

use std::cell::Cell;

use reweave_analysis::{Analysis, Evidence, Guarantee, Info, Outcome, Settings};
use reweave_catalog::{Quiet, Watch, analyses, run};
use reweave_testkit::corpus;
use reweave_trace::{Checker, Trace, TraceBuilder};

/// The corpus, but for traces so long that going through them many times takes minutes.
fn traces() -> Vec<(String, Trace)> {
    let cases = corpus::litmus().into_iter().chain(corpus::traces());
    let traces = cases.map(|case| (case.name.clone(), case.trace()));
    traces.filter(|(_, trace)| trace.len() <= 5_000).collect()
}

fn for_each(mut visit: impl FnMut(&str, &'static dyn Analysis, &Trace)) {
    for (name, trace) in traces() {
        for analysis in analyses() {
            visit(&format!("{} on {name}", analysis.info().name), analysis, &trace);
        }
    }
}

fn examine(trace: &Trace, analysis: &dyn Analysis, settings: &Settings) -> Outcome {
    run(trace, &[analysis], settings, &Quiet)
}

const ALL: Settings = Settings { all: true, limit: None, budget: 1_000_000, threads: 1 };

#[test]
fn an_analysis_repeats_itself_whatever_the_number_of_threads() {
    for_each(|what, analysis, trace| {
        let once = examine(trace, analysis, &ALL);
        let again = examine(trace, analysis, &Settings { threads: 4, ..ALL });
        assert_eq!(once, again, "{what}");
    });
}

#[test]
fn an_analysis_respects_its_limit() {
    for_each(|what, analysis, trace| {
        let whole = examine(trace, analysis, &Settings { all: true, ..Settings::default() });
        for limit in [0, 1, 2] {
            let settings = Settings { all: true, limit: Some(limit), ..Settings::default() };
            let limited = examine(trace, analysis, &settings);
            assert_eq!(limited.findings.len(), whole.findings.len().min(limit), "{what}");
            assert_eq!(limited.is_complete(), whole.findings.len() <= limit, "{what}");
        }
    });
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
    for_each(|what, analysis, trace| {
        let outcome = run(trace, &[analysis], &ALL, &StopAfter(Cell::new(1)));
        assert!(outcome.findings.is_empty(), "{what}");
        assert!(trace.is_empty() || !outcome.is_complete(), "{what}");
    });
}

#[test]
fn an_analysis_accepts_the_empty_trace() {
    let trace = TraceBuilder::new().finish().unwrap();
    for analysis in analyses() {
        let outcome = examine(&trace, analysis, &ALL);
        assert!(outcome.findings.is_empty());
        assert!(outcome.is_complete());
    }
}

#[test]
fn evidence_holds() {
    for_each(|what, analysis, trace| {
        let outcome = examine(trace, analysis, &ALL);
        assert_eq!(outcome.refused, 0, "{what}");
        let checker = Checker::new(trace);
        for reported in &outcome.findings {
            match (&reported.finding.evidence, reported.finding.guarantee) {
                (Evidence::Schedule { reordering, goal }, _) => {
                    assert!(checker.check(reordering, goal).is_ok(), "{what}: {}", reported.id);
                }
                (Evidence::Unordered, guarantee) => {
                    assert_ne!(guarantee, Guarantee::Witnessed, "{what}: {}", reported.id);
                }
            }
        }
    });
}

#[test]
fn only_witnessed_findings_are_shown_unless_all_are_asked_for() {
    for_each(|what, analysis, trace| {
        let outcome = examine(trace, analysis, &Settings::default());
        let all = outcome.findings.iter().map(|reported| &reported.finding);
        assert!(all.clone().all(|f| f.guarantee == Guarantee::Witnessed), "{what}");
        assert!(all.clone().is_sorted_by_key(|f| f.kind), "{what}");
    });
}
