//! What the analyses tell of: groups, values, reads at the end, lists, budgets.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use reweave_analysis::{
    Analysis, Counter, Coverage, Finding, Gathered, Guarantee, Nondeterminism, Settings, Sink,
    Subject, Truncation, WitnessVerdict,
};
use reweave_determinism::{Determinism, ORDER, PREFIX, STRICT};
use reweave_trace::{EventId, Trace};

/// Two writers and a reader, all under a lock: no race, and three results.
const TOTAL: &str = "\
T0|fork(T1)|m:1\nT0|fork(T2)|m:2\n\
T1|acq(m)|a:1\nT1|w(x)|a:2|5\nT1|rel(m)|a:3\n\
T2|acq(m)|b:1\nT2|w(x)|b:2|9\nT2|rel(m)|b:3\n\
T0|acq(m)|m:3\nT0|r(x)|m:4|9\nT0|rel(m)|m:5\n";

fn run(analysis: &Determinism, trace: &Trace, settings: &Settings) -> (Vec<Finding>, Coverage) {
    let mut sink = Gathered::default();
    let coverage = analysis.run(&Subject::new(trace), settings, &mut sink);
    (sink.findings, coverage)
}

fn detail(finding: &Finding) -> &Nondeterminism {
    finding.detail.nondeterminism().expect("it is about nondeterminism")
}

fn number(event: Option<EventId>) -> u32 {
    event.map_or(0, EventId::number)
}

#[track_caller]
fn tells(analysis: &Determinism, text: &str, settings: &Settings, expected: &Expect) {
    let trace = reweave_testkit::std(text);
    let (findings, coverage) = run(analysis, &trace, settings);
    let mut out = String::new();
    for finding in findings {
        let it = detail(&finding);
        let kind = it.witness_kind;
        let names = [it.writer, it.read, it.interfering].map(number);
        _ = writeln!(out, "{} {kind} {names:?} {}", finding.guarantee(), finding.message);
        for other in it.alternatives() {
            let (write, count) = (number(other.write), other.count);
            let (race_free, changes) = (other.is_race_free, other.changes_value);
            _ = writeln!(out, "  {write} x{count} race-free {race_free:?} changes {changes:?}");
        }
    }
    let counters: Vec<String> =
        coverage.counters.iter().map(|(name, count)| format!("{name} {count}")).collect();
    _ = writeln!(out, "{}", counters.join(", "));
    expected.assert_eq(&out);
}

#[test]
fn a_lock_orders_accesses_but_not_who_comes_first() {
    let settings = Settings::default();
    tells(
        &STRICT,
        TOTAL,
        &settings,
        &expect![[r#"
            witnessed 3 [7, 10, 4] `r(x)` at m:4 saw `w(x)` at b:2; it can see `w(x)` at a:2 instead
              4 x1 race-free Some(true) changes Some(true)
              0 x1 race-free Some(true) changes None
            witnesses 6, feasible 3, reads 1
        "#]],
    );
    tells(
        &ORDER,
        TOTAL,
        &settings,
        &expect![[r#"
            witnessed 3 [7, 10, 4] `r(x)` at m:4 saw `w(x)` at b:2; it can see `w(x)` at a:2 instead
              4 x1 race-free Some(true) changes Some(true)
              0 x1 race-free Some(true) changes None
            witnesses 6, feasible 5, reads 1, infeasible_phase1 1, feasible_phase1 4, with_choices 1, choice_graphs 1, possible_choice_graphs 4
        "#]],
    );
}

#[test]
fn writes_of_the_same_value_are_let_go_if_asked_to() {
    let settings = Settings { differing_values: true, ..Settings::default() };
    let same = TOTAL.replace("|5", "|9");
    tells(
        &STRICT,
        &same,
        &settings,
        &expect![[r#"
            witnessed 3 [7, 10, 0] `r(x)` at m:4 saw `w(x)` at b:2; it can see the initial value instead
              0 x1 race-free Some(true) changes None
            witnesses 6, feasible 3, reads 1, same_value 1
        "#]],
    );
    // The read saw the 5 of one place and could see others there, one of which is a 7.
    let some = "T0|fork(T1)|m\nT1|w(x)|a|5\nT1|w(x)|a|7\nT1|w(x)|a|5\nT0|w(x)|b|5\nT0|r(x)|c|5\n";
    tells(
        &STRICT,
        some,
        &settings,
        &expect![[r#"
            witnessed 2 [5, 6, 3] `r(x)` at c saw `w(x)` at b; it can see `w(x)` at a instead
              3 x1 race-free Some(false) changes Some(true)
            witnesses 12, feasible 3, reads 1, same_value 2
        "#]],
    );
}

#[test]
fn what_an_update_recorded_tells_nothing_and_what_saw_no_write_tells_the_initial_value() {
    let text = "T1|r(x)|a|3\nT1|w(x)|b|4\nT2|r(x)|c|4\n";
    tells(
        &STRICT,
        text,
        &Settings::default(),
        &expect![[r#"
            witnessed 3 [2, 3, 0] `r(x)` at c saw `w(x)` at b; it can see the initial value instead
              0 x1 race-free Some(false) changes Some(true)
            witnesses 6, feasible 2, reads 1
        "#]],
    );
    let text = "T1|arw(x)|a|3\nT1|w(x)|b|3\nT2|r(x)|c|3\n";
    tells(
        &STRICT,
        text,
        &Settings::default(),
        &expect![[r#"
            witnessed 3 [2, 3, 0] `r(x)` at c saw `w(x)` at b; it can see the initial value instead
              0 x1 race-free Some(false) changes None
              1 x1 race-free Some(false) changes None
            witnesses 9, feasible 4, reads 1
        "#]],
    );
}

#[test]
fn two_writes_that_race_are_not_called_race_free() {
    let text = "T1|w(x)|a\nT2|w(x)|b\n";
    let settings = Settings { final_reads: true, ..Settings::default() };
    tells(
        &STRICT,
        text,
        &settings,
        &expect![[r#"
            witnessed 2 [2, 0, 1] `x` was last written by `w(x)` at b; it can be `w(x)` at a instead
              1 x1 race-free Some(false) changes None
            witnesses 6, feasible 1, reads 1
        "#]],
    );
}

#[test]
fn what_the_run_leaves_behind_can_be_asked_for() {
    let text =
        "T1|acq(m)|a:1\nT1|w(x)|a:2\nT1|rel(m)|a:3\nT2|acq(m)|b:1\nT2|w(x)|b:2\nT2|rel(m)|b:3\n";
    tells(
        &STRICT,
        text,
        &Settings::default(),
        &expect![[r#"
        witnesses 0, feasible 0, reads 0
    "#]],
    );
    let settings = Settings { final_reads: true, ..Settings::default() };
    tells(
        &STRICT,
        text,
        &settings,
        &expect![[r#"
            witnessed 2 [5, 0, 2] `x` was last written by `w(x)` at b:2; it can be `w(x)` at a:2 instead
              2 x1 race-free Some(true) changes None
            witnesses 6, feasible 1, reads 1
        "#]],
    );
    tells(
        &ORDER,
        text,
        &settings,
        &expect![[r#"
            witnessed 2 [5, 0, 2] `x` was last written by `w(x)` at b:2; it can be `w(x)` at a:2 instead
              2 x1 race-free Some(true) changes None
            witnesses 6, feasible 1, reads 1, infeasible_phase1 5, feasible_phase1 1, with_choices 0, choice_graphs 0, possible_choice_graphs 0
        "#]],
    );
}

/// T3's write of `x` could come after T1's if only the order of events counts; but then T1's own
/// read would see it.
const CLAIM: &str = "\
T0|fork(T1)|0\nT0|fork(T2)|0\nT0|fork(T3)|0\n\
T3|acq(m)|1\nT3|w(x)|2\nT3|rel(m)|3\n\
T1|acq(m)|4\nT1|w(x)|5\nT1|rel(m)|6\n\
T3|aw.seqcst(z)|7\nT1|ar.seqcst(z)|8\n\
T1|acq(m)|9\nT1|r(x)|10\nT1|rel(m)|11\n\
T1|aw.seqcst(y)|12\nT2|ar.seqcst(y)|13\nT2|acq(m)|14\nT2|r(x)|15\nT2|rel(m)|16\n";

#[test]
fn what_only_the_order_of_events_allows_is_no_more_than_a_claim() {
    let trace = reweave_testkit::std(CLAIM);
    let all = Settings { all: true, ..Settings::default() };
    let sees = |analysis: &Determinism| -> Vec<(u32, Guarantee)> {
        let (findings, _) = run(analysis, &trace, &all);
        findings.iter().map(|it| (number(detail(it).read), it.guarantee())).collect()
    };
    let proven = sees(&STRICT);
    assert!(proven.iter().all(|&(_, guarantee)| guarantee == Guarantee::Witnessed));
    let claimed: Vec<_> = sees(&ORDER).into_iter().filter(|it| !proven.contains(it)).collect();
    assert_eq!(claimed, [(18, Guarantee::Unordered)]);
}

/// Counts what is listed.
#[derive(Default)]
struct Listed {
    findings: usize,
    witnesses: Vec<WitnessVerdict>,
    lists: usize,
}

impl Sink for Listed {
    fn found(&mut self, _: Finding) -> std::ops::ControlFlow<()> {
        self.findings += 1;
        std::ops::ControlFlow::Continue(())
    }

    fn listed(&mut self, witnesses: &[WitnessVerdict]) -> std::ops::ControlFlow<()> {
        self.lists += 1;
        self.witnesses.extend(witnesses);
        std::ops::ControlFlow::Continue(())
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, _: u64, _: u64) {}
}

#[test]
fn every_witness_is_listed_if_all_are_asked_for_and_none_otherwise() {
    let trace = reweave_testkit::std(TOTAL);
    for analysis in [&STRICT, &PREFIX, &ORDER] {
        let mut sink = Listed::default();
        let settings = Settings { all: true, ..Settings::default() };
        let coverage = analysis.run(&Subject::new(&trace), &settings, &mut sink);
        assert_eq!(sink.witnesses.len() as u64, coverage.counter(Counter::Witnesses).unwrap());
        let feasible = sink.witnesses.iter().filter(|it| it.is_feasible == Some(true)).count();
        assert_eq!(Some(feasible as u64), coverage.counter(Counter::Feasible));
        let mut sink = Listed::default();
        analysis.run(&Subject::new(&trace), &Settings::default(), &mut sink);
        assert_eq!((sink.lists, sink.findings), (0, 1));
    }
}

#[test]
fn a_budget_that_ends_leaves_the_rest_undecided_and_says_so() {
    let trace = reweave_testkit::std(TOTAL);
    for analysis in [&STRICT, &PREFIX, &ORDER] {
        let settings = Settings { budget: 0, ..Settings::default() };
        let (findings, coverage) = run(analysis, &trace, &settings);
        assert!(findings.is_empty());
        assert_eq!(coverage.truncated, Some(Truncation::Budget));
        assert_eq!(coverage.counter(Counter::Undecided), coverage.counter(Counter::Witnesses));
    }
}

/// Asks to stop when it has found something.
#[derive(Default)]
struct Impatient {
    findings: u64,
}

impl Sink for Impatient {
    fn found(&mut self, _: Finding) -> std::ops::ControlFlow<()> {
        self.findings += 1;
        std::ops::ControlFlow::Continue(())
    }

    fn is_cancelled(&self) -> bool {
        self.findings > 0
    }

    fn progress(&mut self, _: u64, _: u64) {}
}

#[test]
fn an_interrupt_says_how_many_groups_it_left_untold() {
    let mut text = String::new();
    for at in 0..100 {
        _ = write!(text, "T1|w(x{at})|a{at}\nT2|r(x{at})|b{at}\n");
    }
    let trace = reweave_testkit::std(&text);
    let mut sink = Impatient::default();
    let coverage = STRICT.run(&Subject::new(&trace), &Settings::default(), &mut sink);
    assert_eq!(coverage.truncated, Some(Truncation::Cancelled));
    assert_eq!(coverage.counter(Counter::Untried), Some(100 - sink.findings));
    assert!(sink.findings < 100);
}

#[test]
fn what_is_too_large_for_the_closure_of_all_orders_is_said_to_be_declined() {
    let mut text = String::new();
    for thread in 0..9_000 {
        _ = write!(text, "{thread}|w(y)|a\n{thread}|r(x)|b\n{thread}|w(x)|c\n");
    }
    let trace = reweave_testkit::std(&text);
    let settings = Settings { budget: 1_000_000, ..Settings::default() };
    let (_, coverage) = run(&ORDER, &trace, &settings);
    assert!(coverage.counter(Counter::Declined) > Some(0));
    assert_eq!(coverage.truncated, Some(Truncation::Budget));
}

#[test]
fn a_variable_that_is_written_a_hundred_thousand_times_takes_no_memory_for_its_witnesses() {
    let mut text = String::from("T0|fork(T1)|m\nT0|fork(T2)|m\n");
    for at in 0..50_000 {
        text += "T1|w(x)|a\nT2|w(x)|b\n";
        if at % 5_000 == 0 {
            text += "T0|r(x)|c\n";
        }
    }
    let trace = reweave_testkit::std(&text);
    for analysis in [&STRICT, &PREFIX] {
        let (findings, coverage) = run(analysis, &trace, &Settings::default());
        assert_eq!(coverage.counter(Counter::Witnesses), Some(3 * 10 * 100_000));
        assert_eq!((findings.len(), coverage.truncated), (1, None));
    }
}
