//! What is reported: messages, counts, evidence, coverage.

use std::ops::ControlFlow;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_analysis::{
    Analysis, Counter, Coverage, Finding, Guarantee, Settings, Sink, Subject, Truncation,
};
use reweave_atomicity::analyses::{Atomicity, MARKED, SECTIONS};
use reweave_testkit::{Shape, draw, soak, std, trace, traces};
use reweave_trace::{AccessOp, Checker, EventId, LockOp, Marker, Op, Trace, TraceBuilder};

#[derive(Default)]
struct Collected {
    findings: Vec<Finding>,
    limit: Option<usize>,
    is_cancelled: bool,
}

impl Sink for Collected {
    fn found(&mut self, finding: Finding) -> ControlFlow<()> {
        if self.limit.is_some_and(|limit| self.findings.len() >= limit) {
            return ControlFlow::Break(());
        }
        self.findings.push(finding);
        ControlFlow::Continue(())
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    fn progress(&mut self, _: u64, _: u64) {}
}

fn run(trace: &Trace, analysis: &Atomicity, settings: &Settings) -> (Vec<Finding>, Coverage) {
    let mut collected = Collected::default();
    let coverage = analysis.run(&Subject::new(trace), settings, &mut collected);
    (collected.findings, coverage)
}

/// Lists the findings, and whether that is all.
#[track_caller]
fn check(trace: &Trace, analysis: &Atomicity, expected: &Expect) {
    let (findings, coverage) = run(trace, analysis, &Settings::default());
    let mut lines = String::new();
    for finding in &findings {
        let numbers: Vec<u32> = finding.events.iter().map(|event| event.number()).collect();
        let (count, guarantee) = (finding.count, finding.guarantee());
        lines += &format!("{} {numbers:?} {count} {guarantee}\n", finding.message);
    }
    let counters = coverage.counters.iter().map(|&(counter, count)| (counter.as_str(), count));
    lines += &format!("{:?} {:?}\n", coverage.truncated, counters.collect::<Vec<_>>());
    expected.assert_eq(&lines);
}

#[test]
fn what_was_observed_is_told_before_what_is_possible() {
    let trace = std("
T1|begin(update)|f.c:2
T1|r(x)|f.c:3
T2|w(x)|g.c:9
T1|w(x)|f.c:5
T1|r(y)|f.c:6
T1|w(y)|f.c:7
T1|end(update)|f.c:8
T2|w(y)|g.c:12
");
    check(
        &trace,
        &MARKED,
        &expect![[r#"
            block `update` of T1 is not atomic: T2's `w(x)` at g.c:9 came between `r(x)` at f.c:3 and `w(x)` at f.c:5 [2, 3, 4] 1 witnessed
            block `update` of T1 is not atomic: T2's `w(y)` at g.c:12 can come between `r(y)` at f.c:6 and `w(y)` at f.c:7 [5, 8, 6] 1 witnessed
            None [("blocks", 1), ("violations", 1), ("patterns", 2), ("location_sets", 2), ("proven", 1)]
        "#]],
    );
}

#[test]
fn instances_at_the_same_locations_are_one_finding() {
    let mut text = String::new();
    for _ in 0..3 {
        text += "T1|begin(k)|1\nT1|r(x)|2\nT1|w(x)|3\nT1|end(k)|4\n";
    }
    text += "T2|w(x)|9\nT2|w(x)|9\n";
    check(
        &std(&text),
        &MARKED,
        &expect![[r#"
        block `k` of T1 is not atomic: T2's `w(x)` at location 9 can come between `r(x)` at location 2 and `w(x)` at location 3 [2, 13, 3] 6 witnessed
        None [("blocks", 3), ("violations", 0), ("patterns", 6), ("location_sets", 1), ("proven", 1)]
    "#]],
    );
}

#[test]
fn an_overlap_names_the_events_that_leave_no_order() {
    let trace = trace(
        "
        t1        t2
        begin(k)
                  begin(j)
        r(x)
                  r(y)
        w(y)
                  w(x)
        ",
    );
    check(
        &trace,
        &MARKED,
        &expect![[r#"
        block `k` of t1 is not atomic, nor are those it overlaps with: t1's `r(x)` at location 3, t2's `r(y)` at location 4, t1's `w(y)` at location 5 and t2's `w(x)` at location 6 came in this order [3, 4, 5, 6] 2 witnessed
        None [("blocks", 2), ("violations", 2), ("patterns", 0), ("location_sets", 0), ("proven", 0)]
    "#]],
    );
}

#[test]
fn a_lock_that_is_given_up_is_told_once_where_nothing_else_is() {
    let gap = "T1|begin(k)|1\nT1|acq(m)|2\nT1|rel(m)|3\nT2|acq(m)|9\nT2|rel(m)|9\n\
               T1|acq(m)|4\nT1|rel(m)|5\n";
    let again = "T1|end(k)|6\nT1|begin(k)|1\nT1|acq(m)|2\nT1|rel(m)|3\nT3|acq(m)|8\nT3|rel(m)|8\n\
                 T1|acq(m)|4\n";
    check(
        &std(&format!("{gap}{again}")),
        &MARKED,
        &expect![[r#"
        block `k` of T1 is not atomic: T2's `acq(m)` at location 9 and `rel(m)` at location 9 came between `rel(m)` at location 3 and `acq(m)` at location 4 [3, 4, 5, 6] 2 witnessed
        None [("blocks", 2), ("violations", 2), ("patterns", 0), ("location_sets", 0), ("proven", 0)]
    "#]],
    );
    let data = "T1|r(x)|6\nT2|w(x)|7\nT1|r(x)|8\n";
    check(
        &std(&format!("{gap}{data}")),
        &MARKED,
        &expect![[r#"
        block `k` of T1 is not atomic: T2's `w(x)` at location 7 came between `r(x)` at location 6 and `r(x)` at location 8 [8, 9, 10] 1 witnessed
        None [("blocks", 1), ("violations", 1), ("patterns", 1), ("location_sets", 1), ("proven", 0)]
    "#]],
    );
}

#[test]
fn sections_are_examined_when_asked_for() {
    let trace = trace(
        "
        t1      t2
        acq(m)
        r(x)
        w(x)
        rel(m)
                w(x)
        ",
    );
    check(
        &trace,
        &MARKED,
        &expect![[r#"
        None [("blocks", 0), ("violations", 0), ("patterns", 0), ("location_sets", 0), ("proven", 0)]
    "#]],
    );
    check(
        &trace,
        &SECTIONS,
        &expect![[r#"
        the section of t1 on `m` is not atomic: t2's `w(x)` at location 5 can come between `r(x)` at location 2 and `w(x)` at location 3 [2, 5, 3] 1 witnessed
        None [("blocks", 1), ("violations", 0), ("patterns", 1), ("location_sets", 1), ("proven", 1)]
    "#]],
    );
}

#[test]
fn what_rests_on_reads_of_unknown_writers_is_labelled() {
    let trace = trace(
        "
        t1        t2
        begin(k)
        r?(x)
        w(x)
        end(k)
                  w(x)
        ",
    );
    check(
        &trace,
        &MARKED,
        &expect![[r#"
        block `k` of t1 is not atomic: t2's `w(x)` at location 5 can come between `r?(x)` at location 2 and `w(x)` at location 3 [2, 5, 3] 1 unordered
        None [("blocks", 1), ("violations", 0), ("patterns", 1), ("location_sets", 1), ("proven", 0)]
    "#]],
    );
}

#[test]
fn nothing_is_asked_where_no_block_is_marked() {
    let trace = trace("a  b\nw(x)\n   w(x)\nw(x)\n");
    check(
        &trace,
        &MARKED,
        &expect![[r#"
        None [("blocks", 0), ("violations", 0), ("patterns", 0), ("location_sets", 0), ("proven", 0)]
    "#]],
    );
    let trace = TraceBuilder::new().finish().unwrap();
    check(
        &trace,
        &SECTIONS,
        &expect![[r#"
        None [("blocks", 0), ("violations", 0), ("patterns", 0), ("location_sets", 0), ("proven", 0)]
    "#]],
    );
}

const SPOILED: &str = "
t1        t2
begin(k)
r(x)
r(y)
          w(x)
r(x)
r(y)
end(k)
          w(y)
";

#[test]
fn a_budget_that_is_used_up_a_limit_and_a_stop_are_told() {
    let trace = trace(SPOILED);
    let (findings, coverage) = run(&trace, &MARKED, &Settings { budget: 0, ..Settings::default() });
    assert_eq!(coverage.truncated, Some(Truncation::Budget));
    assert!(findings.iter().all(|finding| finding.guarantee() == Guarantee::Unordered));
    let subject = Subject::new(&trace);
    for (limit, expected) in [(0, 0), (1, 1)] {
        let mut limited = Collected { limit: Some(limit), ..Collected::default() };
        MARKED.run(&subject, &Settings::default(), &mut limited);
        assert_eq!(limited.findings.len(), expected);
    }
    let mut stopped = Collected { is_cancelled: true, ..Collected::default() };
    let coverage = MARKED.run(&subject, &Settings::default(), &mut stopped);
    assert_eq!(coverage.truncated, Some(Truncation::Cancelled));
    assert!(stopped.findings.is_empty());
}

#[test]
fn all_gives_every_instance() {
    let all = Settings { all: true, ..Settings::default() };
    let (findings, coverage) = run(&trace(SPOILED), &MARKED, &all);
    let events: Vec<Vec<u32>> = findings
        .iter()
        .map(|finding| finding.events.iter().map(|event| event.number()).collect())
        .collect();
    assert!(coverage.is_complete());
    assert_eq!(events, [vec![2, 4, 5], vec![3, 8, 6], vec![2, 4, 8, 3]]);
}

#[test]
fn ten_thousand_threads_with_a_block_each_are_no_trouble() {
    let mut builder = TraceBuilder::new();
    let site = builder.site("a.c:1");
    let (lock, var) = (builder.lock("m"), builder.var("x"));
    let block = builder.block("k");
    for index in 0..10_000 {
        let thread = builder.thread(&format!("T{index}"));
        let own = builder.var(&format!("x{}", index / 2));
        for op in [
            Op::Marker(Marker::Begin(block)),
            Op::Lock(LockOp::Acquire, lock),
            Op::Access(AccessOp::Read, var),
            Op::Access(AccessOp::Write, var),
            Op::Lock(LockOp::Release, lock),
            Op::Access(AccessOp::Read, own),
            Op::Access(AccessOp::Write, own),
            Op::Marker(Marker::End(block)),
        ] {
            builder.push(thread, op, site);
        }
    }
    check(
        &builder.finish().unwrap(),
        &MARKED,
        &expect![[r#"
        block `k` of T0 is not atomic: T1's `w(x)` at a.c:1 and `r(x0)` at a.c:1 can come between `w(x)` at a.c:1 and `w(x0)` at a.c:1 [4, 12, 14, 7] 10000 witnessed
        None [("blocks", 10000), ("violations", 0), ("patterns", 10000), ("location_sets", 1), ("proven", 1)]
    "#]],
    );
}

/// Why what is reported of `trace` is wrong, if it is.
fn fault(trace: &Trace, analysis: &Atomicity) -> Option<String> {
    let checker = Checker::new(trace);
    for all in [false, true] {
        let settings = Settings { all, ..Settings::default() };
        let (findings, coverage) = run(trace, analysis, &settings);
        let again = run(trace, analysis, &Settings { threads: 3, ..settings });
        if again != (findings.clone(), coverage.clone()) {
            return Some(format!("another answer on more threads\n{}", draw(trace)));
        }
        let is_refused = coverage.counter(Counter::Refused).is_some();
        if is_refused || !coverage.is_complete() {
            return Some(format!("{coverage:?}\n{}", draw(trace)));
        }
        for finding in &findings {
            let Some(proof) = finding.evidence.proof() else {
                return Some(format!("{}\n{}", finding.message, draw(trace)));
            };
            if let Err(refusal) = checker.check(proof.reordering(), proof.goal()) {
                return Some(format!("{refusal}\n{}", draw(trace)));
            }
        }
    }
    let witnessed = |budget: u64| -> Vec<Vec<EventId>> {
        let (findings, _) = run(trace, analysis, &Settings { budget, ..Settings::default() });
        let known = |finding: &Finding| finding.guarantee() == Guarantee::Witnessed;
        findings.into_iter().filter(known).map(|finding| finding.events).collect()
    };
    let all = witnessed(u64::MAX);
    let new = |budget| witnessed(budget).into_iter().find(|events| !all.contains(events));
    let new = [0, 5_000, 15_000, 50_000].into_iter().find_map(new);
    new.map(|events| format!("{events:?} with a small budget only\n{}", draw(trace)))
}

#[test]
fn a_larger_budget_takes_no_finding_back() {
    let figure = "
        t1        t2     t3         t4
        fork(t2)
        fork(t3)
        fork(t4)
        w(x2)
                         acq(l2)
                  w(x3)
                         w(x2)
                                    w(x4)
                  w(x3)
                                    w(x2)
                  r(x2)
        w(x1)
        r(x1)
                  r(x2)
                                    acq(l1)
                         r(x2)
                  r(x2)
                                    w(x2)
                         begin(k2)
        acq(l3)
                  w(x1)
                         join(t2)
                         r(x2)
                         rel(l2)
                         r(x1)
                         w(x2)
    ";
    assert_eq!(fault(&trace(figure), &MARKED), None);
}

proptest! {
    #![proptest_config(soak::config(100))]

    #[test]
    fn evidence_holds_on_general_traces(trace in traces(Shape { blocks: 2, ..Shape::GENERAL })) {
        prop_assert_eq!(fault(&trace, &MARKED).unwrap_or_default(), "");
        prop_assert_eq!(fault(&trace, &SECTIONS).unwrap_or_default(), "");
    }

    #[test]
    fn evidence_holds_on_signals(trace in traces(Shape { blocks: 1, ..Shape::SIGNALS })) {
        prop_assert_eq!(fault(&trace, &MARKED).unwrap_or_default(), "");
    }

    #[test]
    fn evidence_holds_on_everything(trace in traces(Shape::EVERYTHING.events(50))) {
        prop_assert_eq!(fault(&trace, &MARKED).unwrap_or_default(), "");
        prop_assert_eq!(fault(&trace, &SECTIONS).unwrap_or_default(), "");
    }
}
