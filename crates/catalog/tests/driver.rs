//! What the driver does with what analyses claim.

use reweave_analysis::{
    Analysis, Coverage, Evidence, Finding, Guarantee, Info, Kind, Settings, Sink, Subject,
};
use reweave_catalog::{Quiet, run};
use reweave_trace::{EventId, Goal, Reordering, Trace};

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
    summary: "",
    paper: "",
};

impl Analysis for Claims {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn run(&self, _: &Subject<'_>, _: &Settings, sink: &mut dyn Sink) -> Coverage {
        for &(first, second) in self.pairs {
            let events: Vec<EventId> =
                [first, second].into_iter().filter_map(EventId::from_number).collect();
            let goal = Goal::Race(events[0], events[1]);
            let evidence = Evidence::Schedule { reordering: Reordering::default(), goal };
            let finding = Finding {
                analysis: self.info.name,
                kind: self.info.kind,
                guarantee: Guarantee::Witnessed,
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
fn a_schedule_that_the_checker_refuses_makes_a_claim_of_its_finding() {
    let claims = Claims { info: &INFO, pairs: &[(1, 4)] };
    let shown = run(&trace(), &[&claims], &Settings::default(), &Quiet);
    assert_eq!((shown.findings.len(), shown.unshown, shown.refused), (0, 1, 1));
    let settings = Settings { all: true, ..Settings::default() };
    let all = run(&trace(), &[&claims], &settings, &Quiet);
    assert_eq!(all.findings[0].finding.guarantee, Guarantee::Unordered);
    assert_eq!(all.findings[0].finding.evidence, Evidence::Unordered);
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
