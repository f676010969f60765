//! Every outcome of a program read as a sequential one.

use crate::common;

use std::collections::BTreeSet;

use common::code;
use common::generate::{Shape, programs};
use proptest::prelude::*;
use reweave_exec::explore::reference;
use reweave_exec::{Choice, Ending, Limits, Outcome, explore, explore_sequential};
use reweave_testkit::soak;

/// Deadlocks without who waits.
fn plain(outcome: &Outcome) -> Outcome {
    let ending = match &outcome.ending {
        Ending::Deadlock(_) => Ending::Deadlock(Vec::new()),
        other => other.clone(),
    };
    Outcome { ending, ..outcome.clone() }
}

#[track_caller]
fn agrees(text: &str, states_max: u64) -> bool {
    let code = code(text);
    let Some(expected) = reference::sequential_states(&code, states_max) else { return false };
    let found = explore_sequential(&code, &Limits::default());
    assert!(found.complete, "{text}");
    let outcomes: BTreeSet<Outcome> =
        found.outcomes.iter().map(|(outcome, _)| plain(outcome)).collect();
    assert_eq!(outcomes, expected.outcomes, "{text}");
    let faults: BTreeSet<_> = found.faults.iter().map(|(fault, _)| fault.clone()).collect();
    assert_eq!(faults, expected.faults, "{text}");
    true
}

proptest! {
    #![proptest_config(soak::config(200))]

    #[test]
    fn sequential_runs_are_those_of_the_definition(
        text in programs(Shape { forks: false, ..Shape::SMALL })
    ) {
        agrees(&text, 3_000);
    }

    /// What threads do one after the other they can do at once.
    #[test]
    fn sequential_results_are_parallel_results(
        text in programs(Shape {
            forks: false,
            optional: false,
            unpaired_locks: false,
            ..Shape::SMALL
        })
    ) {
        let code = code(&text);
        let limits = Limits { states_max: 10_000, ..Limits::default() };
        let (parallel, sequential) = (explore(&code, &limits), explore_sequential(&code, &limits));
        let parallel_outcomes: BTreeSet<&Outcome> =
            parallel.outcomes.iter().map(|(outcome, _)| outcome).collect();
        for (outcome, _) in &sequential.outcomes {
            let is_result = outcome.ending == Ending::Finished;
            prop_assert!(!is_result || !parallel.complete || parallel_outcomes.contains(outcome));
        }
    }
}

/// The results of the sequential runs of `text` that end.
#[track_caller]
fn results(text: &str) -> Vec<Vec<i64>> {
    let found = explore_sequential(&code(text), &Limits::default());
    assert!(found.complete);
    let mut results: Vec<Vec<i64>> = found
        .outcomes
        .into_iter()
        .filter(|(outcome, _)| outcome.ending == Ending::Finished)
        .map(|(outcome, _)| outcome.result)
        .collect();
    results.dedup();
    results
}

#[test]
fn an_optional_body_may_be_left_out() {
    assert_eq!(results("shared x; main { if (*) { x = 1; } }"), [[0], [1]]);
}

#[test]
fn threads_of_a_statement_run_in_any_order_and_not_at_once() {
    let text = "shared x = 1; main { coforeach (i in 0..3) { x = x * 2; x = x + i; } }";
    assert_eq!(results(text), [[12], [13], [14], [16], [17], [18]]);
    let lost_update = "shared x; main { cobegin { { x = x + 1; } { x = x + 1; } } }";
    assert_eq!(results(lost_update), [[2]]);
}

#[test]
fn descendants_run_with_their_thread() {
    let text = "shared x; main { cobegin {
        { x = x * 10 + 1; cobegin { { x = x * 10 + 2; } { x = x * 10 + 3; } } }
        { x = x * 10 + 4; }
    } }";
    assert_eq!(results(text), [[1234], [1324], [4123], [4132]]);
}

#[test]
fn declared_threads_run_in_any_order_after_main() {
    let text =
        "shared x; main { x = 1; } thread a { x = x * 10 + 2; } thread b { x = x * 10 + 3; }";
    assert_eq!(results(text), [[123], [132]]);
    let without_main = "shared x; thread a { x = x * 10 + 2; } thread b { x = x * 10 + 3; }";
    assert_eq!(results(without_main), [[23], [32]]);
}

#[test]
fn a_loop_that_may_choose_for_ever_ends() {
    let text = "shared x; main { let done = 0; while (!done) { if (*) { x = 1; done = 1; } } }";
    let found = explore_sequential(&code(text), &Limits::default());
    assert!(found.complete && found.is_endless);
    assert_eq!(results(text), [[1]]);
}

#[test]
fn a_thread_that_waits_waits_for_ever() {
    let text = "shared x; lock m; cond c;
        main { cobegin { { sync (m) { wait(c, m); } x = 1; } { notify(c); } } }";
    let found = explore_sequential(&code(text), &Limits::default());
    assert!(found.complete && !found.outcomes.is_empty());
    assert!(
        found.outcomes.iter().all(|(outcome, _)| matches!(outcome.ending, Ending::Deadlock(_)))
    );
}

#[test]
fn the_choices_tell_how_an_assertion_fails() {
    let text = "shared x;
        main {
            cobegin {
                { if (*) { x = 1; } }
                { assert(x == 0); }
            }
        }";
    let found = explore_sequential(&code(text), &Limits::default());
    let (fault, choices) = &found.faults[0];
    assert_eq!(fault.line, 5);
    let expected = [
        Choice::Thread("main".to_owned()),
        Choice::Thread("main.1".to_owned()),
        Choice::Taken(4),
        Choice::Thread("main.2".to_owned()),
    ];
    assert_eq!(choices.as_slice(), expected);
}

#[test]
fn fork_has_no_sequential_meaning() {
    let text = "shared x;\nmain {\n    let t = fork { x = 1; };\n    join(t);\n}";
    let code = code(text);
    assert_eq!(code.has_fork(), Some(3));
    let found = explore_sequential(&code, &Limits::default());
    assert!(!found.complete && found.outcomes.is_empty());
}
