//! Ranges against the truth: every schedule of small random programs.

mod programs;

use std::collections::BTreeMap;

use proptest::prelude::*;
use reweave_exec::scheduler::Random;
use reweave_exec::{Code, FaultKind, Layers, Limits, Settings, explore, run};
use reweave_intervals::ctp::Owner;
use reweave_intervals::domain::{Domain, Interval, Product};
use reweave_intervals::graph;
use reweave_intervals::{analyse, symbolic};
use reweave_lang::Source;
use reweave_testkit::soak;
use reweave_trace::{AccessOp, Op, Trace};
use reweave_workflows::ranges::{Assertion, Ranges, RangesError, Request, Verdict, find};
use reweave_workflows::runs::{Plan, SchedulerKind};

fn code(text: &str) -> Code {
    let source = Source::new("p.rw".to_owned(), text.to_owned());
    let checked = reweave_lang::check(&source);
    let program = checked.program.unwrap_or_else(|| panic!("{:?}\n{text}", checked.diagnostics));
    Code::new(&program, &source)
}

fn request(runs_count: u32) -> Request {
    let plan = Plan {
        scheduler: SchedulerKind::Random,
        seed: 1,
        runs_count,
        settings: Settings::default(),
    };
    let search = Some(symbolic::Settings::default());
    Request { plan, settings: analyse::Settings::default(), search, reach: Vec::new() }
}

fn ranges<D: Domain>(code: &Code, request: &Request) -> Ranges<D> {
    find(code, request, &|| true).expect("small programs have ranges")
}

fn line(location: &str) -> u32 {
    location.rsplit(':').next().and_then(|line| line.parse().ok()).expect("sites end in lines")
}

/// For each line and variable what is read and written there.
fn by_line<D: Domain>(ranges: &Ranges<D>) -> BTreeMap<(u32, String, bool), D> {
    let mut lines: BTreeMap<(u32, String, bool), D> = BTreeMap::new();
    let answers = &ranges.analysis.answers;
    let reads = answers.read.iter().map(|range| (range, false));
    for (range, is_write) in answers.assigned.iter().map(|range| (range, true)).chain(reads) {
        let Owner::Shared(var) = ranges.ctp.slots[range.slot] else { continue };
        let line = line(ranges.ctp.names.location(range.site));
        let key = (line, ranges.ctp.names.vars.name(var).to_owned(), is_write);
        lines
            .entry(key)
            .and_modify(|value| value.join(&range.value))
            .or_insert(range.value.clone());
    }
    lines
}

/// That every value of `trace` is in the range of its line.
fn assert_inside<D: Domain>(lines: &BTreeMap<(u32, String, bool), D>, trace: &Trace, text: &str) {
    for (id, event) in trace.events() {
        let (var, is_write) = match event.op {
            Op::Access(AccessOp::Read | AccessOp::AtomicRead(_), var) => (var, false),
            Op::Access(AccessOp::Write, var) => (var, true),
            _ => continue,
        };
        let line = line(trace.names().location(event.site));
        let name = trace.names().vars.name(var);
        let value = trace.value(id).expect("accesses of programs have values");
        let range = lines.get(&(line, name.to_owned(), is_write));
        assert!(
            range.is_some_and(|range| range.contains(value)),
            "{name} is {value} at line {line}, not in {range:?}\n{text}"
        );
    }
}

/// That what `ranges` says of all runs is so in all runs.
fn assert_sound<D: Domain>(code: &Code, ranges: &Ranges<D>, text: &str) {
    let truth = explore(code, &Limits::default());
    assert!(truth.complete, "the program is small");
    let fails = |line: u32| {
        let mut faults = truth.faults.iter().map(|(fault, _)| fault);
        faults.any(|fault| fault.kind == FaultKind::Assertion && fault.line == line)
    };
    for assertion in &ranges.assertions {
        let line = line(ranges.ctp.names.location(assertion.site));
        match assertion.verdict {
            Verdict::Holds | Verdict::HoldsBySearch | Verdict::NotReached => {
                assert!(!ranges.is_closed || !fails(line), "line {line} fails\n{text}");
            }
            Verdict::Fails(_) => assert!(fails(line), "line {line} does not fail\n{text}"),
            Verdict::MayFail => panic!("line {line} is left open\n{text}"),
        }
    }
    if !ranges.is_closed {
        return;
    }
    let lines = by_line(ranges);
    for seed in 100..110 {
        let settings = Settings { layers: Layers::Events, ..Settings::default() };
        assert_inside(&lines, &run(code, &mut Random::new(seed), &settings).trace, text);
    }
    let finals: BTreeMap<&str, &D> = ranges
        .analysis
        .answers
        .finals
        .iter()
        .filter_map(|of| Some((ranges.ctp.names.vars.name(of.var), of.value.as_ref()?)))
        .collect();
    let names = code.result_names();
    let finished = |outcome: &&reweave_exec::Outcome| {
        outcome.ending == reweave_exec::Ending::Finished && outcome.faults.is_empty()
    };
    for outcome in truth.outcomes.iter().map(|(outcome, _)| outcome).filter(finished) {
        for (name, &value) in names.iter().zip(&outcome.result) {
            if let Some(range) = finals.get(name.as_str()) {
                assert!(range.contains(value), "{name} ends as {value}, not {range:?}\n{text}");
            }
        }
    }
}

proptest! {
    #![proptest_config(soak::config(150))]

    #[test]
    fn what_is_said_of_all_runs_is_so(text in programs::text(), runs in prop::sample::select(vec![1, 12])) {
        let code = code(&text);
        assert_sound(&code, &ranges::<Interval>(&code, &request(runs)), &text);
    }

    #[test]
    fn remainders_and_other_settings_are_sound_too(text in programs::text()) {
        let code = code(&text);
        let mut request = request(12);
        request.settings.graph.switches = graph::Rule::Lockset;
        request.settings.propagation.lookahead = 2;
        assert_sound(&code, &ranges::<Product>(&code, &request), &text);
    }
}

#[test]
fn an_endless_loop_is_refused_with_its_line() {
    let code = code("shared x;\nthread a {\n    while (1) {\n        x = x + 1;\n    }\n}\n");
    let mut request = request(1);
    request.plan.settings.steps_max = 1000;
    let error = find::<Interval>(&code, &request, &|| true).expect_err("it never ends");
    assert!(matches!(error, RangesError::CutOff { seed: 1, steps: 1000, line: 3 | 4 }), "{error}");
}

#[test]
fn overflow_is_the_whole_range() {
    let text =
        "shared x = 9223372036854775807;\nthread a { x = x + 1; }\nthread b { x = x + 1; }\n";
    let code = code(text);
    let found = ranges::<Interval>(&code, &request(1));
    assert_sound(&code, &found, text);
    assert_eq!(found.analysis.answers.overflows.len(), 2);
    assert!(found.analysis.answers.finals.iter().all(|of| of.value == Some(Interval::TOP)));
}

#[test]
fn an_assertion_that_only_a_rare_schedule_breaks_is_shown() {
    let text = "
shared x; shared y;
thread a { x = 1; x = 2; y = 3; }
thread b { let p = y; let q = x; assert(!(p == 0 && q == 1)); }
";
    let code = code(text);
    let found = ranges::<Interval>(&code, &request(1));
    assert!(found.is_closed);
    assert!(matches!(found.assertions[0].verdict, Verdict::Fails(_)));
    assert_sound(&code, &found, text);
}

#[test]
fn more_runs_close_a_program() {
    let text = "
shared x; shared y;
thread a { x = 1; }
thread b { if (x == 0) { y = 2; } else { y = 3; } let t = y; assert(t >= 2); }
";
    let code = code(text);
    let one = ranges::<Interval>(&code, &request(1));
    assert!(!one.is_closed && one.assertions[0].verdict == Verdict::Holds);
    let more = ranges::<Interval>(&code, &request(30));
    assert!(more.is_closed && more.assertions[0].verdict == Verdict::Holds);
    assert_sound(&code, &more, text);
}

#[track_caller]
fn check_seeds(text: &str, runs: u32) -> Vec<Ranges<Interval>> {
    let code = code(text);
    let seeds = (1..8).map(|seed| {
        let mut request = request(runs);
        request.plan.seed = seed;
        let found = ranges::<Interval>(&code, &request);
        assert_sound(&code, &found, text);
        found
    });
    seeds.collect()
}

#[test]
fn a_child_that_fails_lets_its_parent_go_on() {
    let text = "
shared x; shared y;
main { let t = fork { assert(x == 1); y = 1; }; x = 1; join(t); assert(y == 1); }
";
    let found = check_seeds(text, 1);
    assert!(found.iter().all(|ranges| !ranges.is_closed));
}

#[test]
fn a_lock_of_an_array_is_the_one_that_was_taken() {
    let text = "
shared x; shared i; lock m[2];
thread a { let k = i; lock(m[k]); x = 1; x = 0; unlock(m[k]); }
thread b { lock(m[0]); assert(x == 0); unlock(m[0]); }
thread c { i = 1; }
";
    let found = check_seeds(text, 1);
    assert!(found.iter().all(|ranges| !ranges.is_closed));
    check_seeds(text, 20);
}

#[test]
fn an_assertion_that_only_failing_runs_reach_fails() {
    let text = "
shared x;
thread a { x = 1; }
thread b { if (x) { assert(0); } }
";
    for ranges in check_seeds(text, 20) {
        assert!(matches!(ranges.assertions[..], [Assertion { verdict: Verdict::Fails(_), .. }]));
    }
}

#[test]
fn a_thread_that_may_not_be_forked_may_store_nothing() {
    let text = "
shared c; shared x = 2;
main { let d = c; if (d == 0) { let t = fork { x = 1; }; join(t); } }
thread b { c = 1; }
";
    check_seeds(text, 20);
}

#[test]
fn the_mode_of_the_paper_proves_nothing() {
    let text = "
shared x;
thread a { x = x + 1; }
thread b { x = x + 1; }
thread c { x = x; assert(x < 4); }
";
    let code = code(text);
    let mut request = request(1);
    request.settings.graph.mode = graph::Mode::Paper;
    assert!(!ranges::<Interval>(&code, &request).is_closed);
}

#[test]
fn a_schedule_through_a_wait_is_run() {
    let text = "
shared full; shared x; lock m; cond c;
thread a { lock(m); while (full == 0) { wait(c, m); } unlock(m); let t = x; assert(t == 0); }
thread b { lock(m); full = 1; notify(c); unlock(m); x = 1; }
";
    for ranges in check_seeds(text, 10) {
        assert!(matches!(ranges.assertions[0].verdict, Verdict::Fails(_)));
    }
}
