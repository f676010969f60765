//! What the driver does with what analyses claim.

use reweave_analysis::{
    Analysis, Coverage, Evidence, Finding, Guarantee, Info, Kind, Layer, Settings, Sink, Subject,
    Truncation,
};
use reweave_catalog::{Quiet, run};
use reweave_trace::{EventId, Flow, Goal, Reordering, Trace, TraceBuilder};

/// An analysis that claims what it is told to.
struct Claims {
    info: &'static Info,
    pairs: &'static [(u32, u32)],
}

const INFO: Info = Info {
    name: "races.claims",
    family: "races",
    kind: Kind::Race,
    guarantee: Guarantee::Witnessed,
    needs: Layer::Events,
    is_default: true,
    summary: "",
    paper: "",
};

impl Analysis for Claims {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn run(&self, subject: &Subject<'_>, _: &Settings, sink: &mut dyn Sink) -> Coverage {
        for &(first, second) in self.pairs {
            let events: Vec<EventId> =
                [first, second].into_iter().filter_map(EventId::from_number).collect();
            let goal = Goal::Race(events[0], events[1]);
            let proof = subject.prove(Reordering::default(), goal);
            let evidence = proof.map_or(Evidence::Unordered, Evidence::Schedule);
            let finding = Finding {
                analysis: self.info.name,
                kind: self.info.kind,
                events,
                message: String::new(),
                count: 1,
                evidence,
            };
            if sink.found(finding).is_break() {
                break;
            }
        }
        Coverage { analysis: self.info.name, truncated: None, counters: Vec::new() }
    }
}

const TRACE: &str = "T1|w(x)|a\nT2|w(x)|b\nT1|w(x)|a\nT2|w(x)|b\n";

fn trace() -> Trace {
    reweave_testkit::std(TRACE)
}

#[test]
fn what_the_checker_refuses_is_shown_only_if_all_is_asked_for() {
    let claims = Claims { info: &INFO, pairs: &[(1, 4)] };
    let shown = run(&trace(), &[&claims], &Settings::default(), &Quiet);
    assert_eq!((shown.findings.len(), shown.unshown_count()), (0, 1));
    let settings = Settings { all: true, ..Settings::default() };
    let all = run(&trace(), &[&claims], &settings, &Quiet);
    assert_eq!(all.findings[0].finding.guarantee(), Guarantee::Unordered);
}

#[test]
fn an_analysis_whose_layer_the_trace_lacks_is_not_run_and_said_not_to_be() {
    const FLOW: Info = Info { needs: Layer::Flow, ..INFO };
    let claims = Claims { info: &FLOW, pairs: &[] };
    let outcome = run(&trace(), &[&claims], &Settings::default(), &Quiet);
    assert_eq!(outcome.coverage[0].truncated, Some(Truncation::Lacks(Layer::Flow)));
    assert!(!outcome.is_complete());
    let mut builder = TraceBuilder::new();
    builder.set_flow(Flow::default());
    let with_flow = builder.finish().unwrap();
    assert!(run(&with_flow, &[&claims], &Settings::default(), &Quiet).is_complete());
}

#[test]
fn findings_at_the_same_locations_are_one_unless_all_are_asked_for() {
    let claims = Claims { info: &INFO, pairs: &[(1, 2), (1, 2)] };
    let grouped = run(&trace(), &[&claims], &Settings::default(), &Quiet);
    assert_eq!(grouped.findings.len(), 1);
    assert_eq!((grouped.findings[0].id.as_str(), grouped.findings[0].finding.count), ("R1", 2));
    let settings = Settings { all: true, ..Settings::default() };
    assert_eq!(run(&trace(), &[&claims], &settings, &Quiet).findings.len(), 2);
}

#[test]
fn a_limit_that_cuts_nothing_leaves_the_answer_complete() {
    let claims = Claims { info: &INFO, pairs: &[(1, 2)] };
    let settings = Settings { limit: Some(1), ..Settings::default() };
    assert!(run(&trace(), &[&claims], &settings, &Quiet).is_complete());
    let settings = Settings { limit: Some(0), ..Settings::default() };
    assert!(!run(&trace(), &[&claims], &settings, &Quiet).is_complete());
}
