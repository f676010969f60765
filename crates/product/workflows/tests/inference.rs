//! Specifications of random small programs: the best there is by trying all, and true of every run
//! by going through all sequential ones.

use crate::common;

use proptest::prelude::*;
use reweave_exec::{Code, Limits, Outcome, Run, Settings, explore_sequential};
use reweave_lang::{Program, Source, check};
use reweave_ndseq::{Answer, Placement};
use reweave_oracle::ndseq::BruteForce;
use reweave_testkit::soak;
use reweave_trace::{OpKind, Trace};
use reweave_workflows::inference::{Inferred, Request, Validation, Wrong, gather, infer};
use reweave_workflows::runs::{Plan, SchedulerKind};
use reweave_workflows::specification::inferred;

struct Prepared {
    source: Source,
    program: Program,
    code: Code,
}

#[track_caller]
fn prepared(text: &str) -> Prepared {
    let source = Source::new("test.rw", text);
    let checked = check(&source);
    let program = checked.program.unwrap_or_else(|| panic!("{text}\n{:?}", checked.diagnostics));
    let code = Code::new(&program, &source);
    Prepared { source, program, code }
}

fn runs_of(prepared: &Prepared, seed: u64, runs_count: u32) -> Vec<Run> {
    let settings = Settings { steps_max: 400, ..Settings::default() };
    let plan = Plan { scheduler: SchedulerKind::RaceDirected, seed, runs_count, settings };
    gather(&prepared.code, &plan, &|| true).runs.into_iter().map(|observed| observed.run).collect()
}

/// The events that count for a specification.
fn counting(trace: &Trace) -> usize {
    let counts = |kind: OpKind| {
        matches!(
            kind,
            OpKind::Read
                | OpKind::Write
                | OpKind::AtomicRead
                | OpKind::AtomicUpdate
                | OpKind::Branch
                | OpKind::Let
        )
    };
    trace.events().filter(|(_, event)| counts(event.op.kind())).count()
}

fn placements(answer: &Answer) -> Option<Vec<Placement>> {
    match answer {
        Answer::Unneeded(_) => Some(Vec::new()),
        Answer::Specification(placements) => Some(placements.clone()),
        Answer::Impossible(_) | Answer::NoneLeft | Answer::Exhausted { .. } => None,
    }
}

/// Every run's result is one of the sequential program's.
fn assert_safe(prepared: &Prepared, placements: &[Placement], runs: &[Run], text: &str) {
    let specification = inferred(&prepared.source, &prepared.program, placements)
        .unwrap_or_else(|error| panic!("{text}\n{error:?}"));
    let sequential = self::prepared(&specification);
    let all = explore_sequential(&sequential.code, &Limits::default());
    if !all.complete {
        return;
    }
    for run in runs {
        let result = run.result(&prepared.code);
        let is_result = |outcome: &Outcome| outcome.result == result;
        assert!(
            all.outcomes.iter().any(|(outcome, _)| is_result(outcome)),
            "{text}\n{specification}\nno sequential run has {result:?}"
        );
    }
}

proptest! {
    #![proptest_config(soak::config(64))]

    #[test]
    fn what_is_inferred_is_best_and_every_run_is_safe(seed: u64, runs_count in 1..4_u32) {
        let text = common::program(seed);
        let prepared = prepared(&text);
        let runs = runs_of(&prepared, seed, runs_count);
        let traces: Vec<&Trace> = runs.iter().map(|run| &run.trace).collect();
        let inference = reweave_ndseq::infer(&traces, &reweave_ndseq::Settings::default()).unwrap();
        let found = placements(&inference.answer);
        if let Some(placements) = &found {
            assert_safe(&prepared, placements, &runs, &text);
        }
        if !traces.is_empty() && traces.iter().all(|trace| counting(trace) <= 128) {
            let brute = BruteForce::new(&traces);
            let smallest = brute.smallest(&[], 2);
            match (found, smallest) {
                (Some(found), Some(smallest)) => {
                    let best = brute.best(smallest, true);
                    let best = best.iter().map(|own| (own.block, own.first, own.last));
                    let found = found.iter().map(|own| (own.block, own.first, own.last));
                    prop_assert!(found.eq(best), "{}", text);
                }
                (Some(found), None) => prop_assert!(found.len() > 2, "{}", text),
                (None, smallest) => prop_assert_eq!(smallest, None, "{}", text),
            }
        }
    }

    #[test]
    fn what_is_validated_has_every_result(seed: u64) {
        let text = common::program(seed);
        let prepared = prepared(&text);
        let settings = Settings { steps_max: 2_000, ..Settings::default() };
        let plan = Plan { scheduler: SchedulerKind::Random, seed, runs_count: 1, settings };
        let limits = Limits { states_max: 20_000, ..Limits::default() };
        let request = Request { plan, settings: Default::default(), validation: Some(limits) };
        let Prepared { source, program, code } = &prepared;
        let Ok(result) = infer(source, program, code, &request, &|| true) else {
            return Ok(());
        };
        // Nothing that explains all the runs can be wrong: these programs assert nothing.
        prop_assert!(result.rejected.is_empty(), "{}\n{:?}", text, result.rejected);
        if placements(&result.inference.answer).is_some() {
            let is_decided = matches!(result.validation, Validation::Valid { .. });
            prop_assert!(is_decided || result.validation == Validation::Unknown, "{}", text);
        }
    }
}

#[test]
fn a_declaration_that_is_used_later_moves_out() {
    let text = "shared x;\nmain {\n    coforeach (i in 0..2) {\n        let a = x;\n        \
                let b = cas(x, a, 1);\n        if (a) { skip; }\n        x = a + b;\n    }\n}\n";
    let prepared = prepared(text);
    let run = &runs_of(&prepared, 1, 1)[0];
    let flow = run.trace.flow().unwrap();
    let placement = |first, last| reweave_ndseq::placements_of_lines(flow, first, last).unwrap()[0];
    let specification =
        inferred(&prepared.source, &prepared.program, &[placement(4, 6), placement(5, 5)]).unwrap();
    expect_test::expect![[r#"
        shared x;

        main {
            coforeach (i in 0..2) {
                let a = 0;
                let b = 0;
                if (*) {
                    a = x;
                    if (*) {
                        let b_result = cas(x, a, 1);
                        b = b_result;
                    }
                    if (a) {
                        skip;
                    }
                }
                x = a + b;
            }
        }
    "#]]
    .assert_eq(&specification);
    self::prepared(&specification);
}

#[test]
fn only_what_declares_moves_and_comments_are_no_values() {
    let text = "shared x;\nmain {\n    coforeach (i in 0..2) {\n        let letter = 0;\n        \
                letter = x;\n        let /* a=b */ t /* = */ = x; // = 3\n        x = letter + t;\n    \
                }\n}\n";
    let prepared = prepared(text);
    let run = &runs_of(&prepared, 1, 1)[0];
    let placements = reweave_ndseq::placements_of_lines(run.trace.flow().unwrap(), 5, 6).unwrap();
    let specification = inferred(&prepared.source, &prepared.program, &placements).unwrap();
    let lines: Vec<&str> = specification.lines().map(str::trim).collect();
    assert!(lines.contains(&"let t = 0;") && lines.contains(&"letter = x;"), "{specification}");
    assert!(lines.contains(&"t = x;"), "{specification}");
    self::prepared(&specification);
}

/// What is inferred for `text` from five runs and held against all, within so many states.
#[track_caller]
fn validated(text: &str, states_max: u64) -> (Inferred, Vec<Vec<(u32, u32)>>) {
    let prepared = prepared(text);
    let settings = Settings::default();
    let plan = Plan { scheduler: SchedulerKind::RaceDirected, seed: 1, runs_count: 5, settings };
    let limits = Limits { states_max, ..Limits::default() };
    let request = Request { plan, settings: Default::default(), validation: Some(limits) };
    let Prepared { source, program, code } = &prepared;
    let result = infer(source, program, code, &request, &|| true).expect("some run ends");
    let flow = result.runs[0].run.trace.flow().expect("a run has a flow layer");
    let lines = |placement: &Placement| placement.lines(flow).expect("it stands in the program");
    let rejected = result.rejected.iter();
    let rejected = rejected.map(|it| it.placements.iter().map(lines).collect()).collect();
    (result, rejected)
}

const RETRY: &str = "shared x;\nmain {\n    coforeach (i in 1..=2) {\n        let done = 0;\n        \
                     let flag = 0;\n        while (!done || flag) {\n            \
                     let old = x;\n            let divisor = old + 1;\n            \
                     let ok = cas(x, old, old + 1);\n            if (ok) { done = 1; }\n            \
                     flag = 0;\n            let unused = 10 / divisor;\n        }\n    }\n}\n";

#[test]
fn a_specification_that_fails_is_rejected_and_the_next_best_inferred() {
    // What is enclosed first leaves the divisor at 0 where it is left out.
    let (result, rejected) = validated(RETRY, 100_000);
    assert_eq!(rejected, [[(7, 10)]]);
    let Wrong::Fault { statement, .. } = &result.rejected[0].reason else {
        panic!("{:?}", result.rejected)
    };
    assert_eq!(statement, "let unused = 10 / divisor;");
    assert_eq!(result.validation, Validation::Valid { parallel: 1, sequential: 1 });
    let specification = result.specification.expect("there is a next best");
    assert!(
        specification.contains("let divisor = old + 1;\n            if (*) {"),
        "{specification}"
    );
}

#[test]
fn what_cannot_be_gone_through_is_not_called_valid() {
    let (result, _) = validated(RETRY, 1);
    assert_eq!(result.validation, Validation::Unknown);
}

#[test]
fn a_result_that_no_sequential_run_has_rejects_what_explains_its_run() {
    // The swap that fails is a read that nothing depends on; run alone it would not fail.
    let text = "shared y;\nmain {\n    cobegin {\n        { let o = fetchadd(y, 1); }\n        \
                { let t = y; let c = cas(y, t, 5); }\n    }\n}\n";
    let (result, rejected) = validated(text, 100_000);
    assert_eq!(rejected, [[]; 1] as [[(u32, u32); 0]; 1]);
    assert!(matches!(result.rejected[0].reason, Wrong::Missing(_)), "{:?}", result.rejected);
    assert_eq!(result.inference.answer, Answer::NoneLeft);
}

#[test]
fn a_run_that_shows_a_missing_result_is_added() {
    let text = "shared x;\nmain {\n    coforeach (i in 0..2) { let t = x; x = t + 1; }\n}\n";
    let prepared = prepared(text);
    let settings = Settings::default();
    // Without a change of priorities each thread runs to its end.
    let scheduler = SchedulerKind::Pct { depth: 1 };
    let plan = Plan { scheduler, seed: 1, runs_count: 1, settings };
    let request =
        Request { plan, settings: Default::default(), validation: Some(Limits::default()) };
    let Prepared { source, program, code } = &prepared;
    let result = infer(source, program, code, &request, &|| true).expect("the run ends");
    assert_eq!(result.runs.iter().map(|it| it.seed).collect::<Vec<_>>(), [Some(1), None]);
    assert!(matches!(result.inference.answer, Answer::Impossible(_)));
}

/// The lines of what is inferred from `runs_count` runs; none if there is nothing.
#[track_caller]
fn inferred_lines(text: &str, runs_count: u32) -> Option<Vec<(u32, u32)>> {
    let prepared = prepared(text);
    let runs = runs_of(&prepared, 1, runs_count);
    let traces: Vec<&Trace> = runs.iter().map(|run| &run.trace).collect();
    let inference = reweave_ndseq::infer(&traces, &reweave_ndseq::Settings::default());
    let inference = inference.expect("runs of one program");
    let flow = runs[0].trace.flow().expect("a run has a flow layer");
    let lines = |placement: Placement| placement.lines(flow).expect("it stands in the program");
    placements(&inference.answer).map(|found| found.into_iter().map(lines).collect())
}

const TOGGLE: &str = "{ x = 1; x = 0; }";

#[test]
fn a_result_that_no_return_gives_belongs_to_the_call() {
    let text = format!(
        "shared x;\nshared y;\nfocus y;\nfn f() {{\n    if (x) {{ skip; }}\n}}\nmain {{\n    cobegin {{\n        \
         {TOGGLE}\n        {{ y = f(); }}\n    }}\n}}\n"
    );
    assert_eq!(inferred_lines(&text, 30), Some(vec![(5, 5)]));
}

#[test]
fn declared_threads_are_inside_no_statement_of_main() {
    let text = format!(
        "shared x;\nshared z;\nfocus z;\nmain {{\n    let t = x;\n}}\nthread a {TOGGLE}\nthread b {{\n    \
         if (x) {{ skip; }}\n}}\n"
    );
    assert_eq!(inferred_lines(&text, 30), Some(vec![(9, 9)]));
}

#[test]
fn what_follows_an_assertion_depends_on_it() {
    let text = format!(
        "shared x;\nshared y;\nfocus y;\nmain {{\n    cobegin {{\n        {TOGGLE}\n        \
         {{ assert(x == 1); y = 1; }}\n    }}\n}}\n"
    );
    assert_ne!(inferred_lines(&text, 30), Some(Vec::new()));
}
