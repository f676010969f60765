//! Every outcome of a program: with reductions and without.

use crate::common;

use std::collections::BTreeSet;

use common::code;
use common::generate::{Shape, programs};
use expect_test::expect;
use proptest::prelude::*;
use reweave_base::Id;
use reweave_exec::explore::reference;
use reweave_exec::scheduler::{Random, Replay};
use reweave_exec::{
    Ending, Exploration, Limits, Outcome, Schedule, Settings, explore, explore_while, run,
};
use reweave_testkit::soak;
use reweave_trace::LocalId;

fn outcomes<W: Clone>(exploration: &Exploration<W>) -> BTreeSet<Outcome> {
    exploration.outcomes.iter().map(|(outcome, _)| outcome.clone()).collect()
}

/// That an exploration of `text` finds what going through all states finds, and that its schedules
/// show it. Whether there are few enough states to know.
#[track_caller]
fn agrees(text: &str, states_max: u64) -> bool {
    let code = code(text);
    let Some(expected) = reference::states(&code, states_max) else { return false };
    let found = explore(&code, &Limits::default());
    assert!(found.complete, "{text}");
    assert_eq!(outcomes(&found), expected.outcomes, "{text}");
    let faults: BTreeSet<_> = found.faults.iter().map(|(fault, _)| fault.clone()).collect();
    assert_eq!(faults, expected.faults, "{text}");
    if let Some(interleavings) = reference::interleavings(&code, states_max) {
        assert!(!found.is_endless, "{text}");
        assert_eq!(interleavings, expected, "{text}");
    }
    for (outcome, schedule) in &found.outcomes {
        let run = run(&code, &mut Replay::new(schedule), &Settings::default());
        assert_eq!(&run.outcome(&code), outcome, "{text}");
    }
    for (fault, schedule) in &found.faults {
        let run = run(&code, &mut Replay::new(schedule), &Settings::default());
        assert!(run.faults.contains(fault), "{text}");
    }
    true
}

proptest! {
    #![proptest_config(soak::config(200))]

    #[test]
    fn reductions_lose_no_outcome_and_no_fault(text in programs(Shape::SMALL)) {
        agrees(&text, 3_000);
    }
}

/// The outcomes of `text`: results with how the run ended, without its faults.
#[track_caller]
fn endings(text: &str) -> Vec<(Vec<i64>, Ending)> {
    assert!(agrees(text, 100_000), "the program is small");
    let found = explore(&code(text), &Limits::default());
    found.outcomes.into_iter().map(|(outcome, _)| (outcome.result, outcome.ending)).collect()
}

fn finished(results: &[i64]) -> Vec<(Vec<i64>, Ending)> {
    results.iter().map(|&result| (vec![result], Ending::Finished)).collect()
}

#[test]
fn a_lost_update_is_found() {
    let text = "shared x; thread a { x = x + 1; } thread b { x = x + 1; }";
    assert_eq!(endings(text), finished(&[1, 2]));
    let atomic = "shared x; thread a { atomic { x = x + 1; } } thread b { atomic { x = x + 1; } }";
    assert_eq!(endings(atomic), finished(&[2]));
}

#[test]
fn an_element_that_a_loop_comes_to_later_counts() {
    let text =
        "shared a[3]; focus a; thread u { a[1] = 2; } thread v { for (i in 0..3) { a[i] = 1; } }";
    let expected = [[1, 1, 1], [1, 2, 1]].map(|result| (result.to_vec(), Ending::Finished));
    assert_eq!(endings(text), expected);
}

#[test]
fn a_thread_that_joins_others_does_not_wait_for_all_that_it_started() {
    let text = "shared x; shared y; focus x; main { let t = fork { x = 1; };
        cobegin { { y = 1; } { y = 2; } } x = 2; }";
    assert_eq!(endings(text), finished(&[1, 2]));
}

#[test]
fn one_that_is_notified_may_be_faster_than_others() {
    let text = "shared x; lock m; cond c;
        thread a { sync (m) { wait(c, m); } x = 1; } thread b { x = 2; } thread d { notify(c); }";
    let results: Vec<i64> = endings(text)
        .into_iter()
        .filter(|(_, ending)| *ending == Ending::Finished)
        .map(|(result, _)| result[0])
        .collect();
    assert_eq!(results, [1, 2]);
}

#[test]
fn an_assumption_that_fails_hides_no_other_run() {
    let always = "shared x; shared y; focus x; thread a { assume(0); } thread b { x = 1; assert(x == 0); y = 1 / y; }";
    assert_eq!(endings(always).len(), 2, "with the fault of the other thread, and without");
    let sometimes = "shared x; thread a { assume(x == 0); x = 2; } thread b { x = 1; }";
    let expected =
        [(vec![], Ending::Assumption(1)), (vec![1], Ending::Finished), (vec![2], Ending::Finished)];
    assert_eq!(endings(sometimes), expected);
    let two = "shared x; thread a { assume(x);\n } thread b { assume(x); } thread c { x = 1; }";
    let expected = [
        (vec![], Ending::Assumption(1)),
        (vec![], Ending::Assumption(2)),
        (vec![1], Ending::Finished),
    ];
    assert_eq!(endings(two), expected);
}

#[test]
fn a_loop_that_never_ends_hides_no_fault() {
    let text = "shared x; shared y; thread a { while (y == 0) { x = x ^ 1; } } thread b { assert(x == 0); y = 1; }";
    assert!(agrees(text, 10_000));
    let found = explore(&code(text), &Limits::default());
    assert!(found.complete && found.is_endless);
    assert_eq!(found.faults.len(), 1);
    assert!(!found.outcomes.is_empty());

    let stuck = "shared x; thread a { while (1) { skip; } } thread b { assert(x); }";
    let found = explore(&code(stuck), &Limits::default());
    assert!(found.complete && found.is_endless && found.outcomes.is_empty());
    assert_eq!(found.faults.len(), 1);
}

#[test]
fn threads_that_share_nothing_are_run_once() {
    let text = "shared a[4]; shared b[4]; main { for (k in 0..3) { coforeach (i in 0..4) {
        for (j in 0..9) { a[i] = a[i] + j; b[3 - i] = a[i]; } } } }";
    let found = explore(&code(text), &Limits::default());
    assert!(found.complete && found.outcomes.len() == 1);
    assert!(found.states_count < 200, "{}", found.states_count);
    let locks = "lock m[8]; shared x; main { coforeach (i in 0..4) { for (j in 0..3) {
        sync (m[2 * i]) { sync (m[2 * i + 1]) { skip; } } } } }";
    let found = explore(&code(locks), &Limits::default());
    assert!(found.complete && found.states_count < 60, "{}", found.states_count);
}

#[test]
fn philosophers_deadlock_in_one_way() {
    let text = "lock at[4]; shared meals; main { coforeach (i in 0..4) {
        sync (at[i]) { sync (at[(i + 1) % 4]) { let n = fetchadd(meals, 1); } } } }";
    let found = explore(&code(text), &Limits::default());
    let (deadlocks, ends): (Vec<_>, Vec<_>) = found
        .outcomes
        .iter()
        .partition(|(outcome, _)| matches!(outcome.ending, Ending::Deadlock(_)));
    assert_eq!((deadlocks.len(), ends.len()), (1, 1));
    assert_eq!(ends[0].0.result, [4]);
}

#[test]
fn what_is_cut_short_says_so() {
    let text = "shared x; main { while (1) { x = x + 1; } }";
    let limits = Limits { states_max: 100, ..Limits::default() };
    let found = explore(&code(text), &limits);
    assert!(!found.complete && found.states_count <= 100);
    let short = Limits { steps_max: 10, ..Limits::default() };
    assert!(!explore(&code(text), &short).complete);
    let threads = "shared x; main { while (1) { let t = fork { x = 1; }; } }";
    assert!(!explore(&code(threads), &limits).complete);
}

#[test]
fn random_runs_show_every_outcome_of_small_programs() {
    let programs = [
        "shared x; thread a { x = x + 1; } thread b { x = x * 2; }",
        "shared x; lock m; lock n; thread a { sync (m) { sync (n) { x = 1; } } } thread b { sync (n) { sync (m) { x = 2; } } }",
        "shared x; main { coforeach (i in 1..=2) { let done = 0; while (!done) {
            let t = x; done = cas_(t, i); } } } fn cas_(t, i) { let w = cas(x, t, t + i); return w; }",
        "shared x; shared y; thread a { x = 1; assert(y == 0); } thread b { y = 1; assert(x == 0); }",
        "shared x; lock m; cond c; thread a { sync (m) { wait(c, m); x = x + 1; } } thread b { sync (m) { wait(c, m); x = x + 1; } } thread d { notify(c); notifyall(c); }",
        "shared x; thread a { assume(x != 1); x = 3; } thread b { x = 1; x = 2; }",
    ];
    for text in programs {
        let code = code(text);
        let all = explore(&code, &Limits::default());
        assert!(all.complete);
        let shown: BTreeSet<Outcome> = (0..3000)
            .map(|seed| run(&code, &mut Random::new(seed), &Settings::default()).outcome(&code))
            .collect();
        assert_eq!(outcomes(&all), shown, "{text}");
    }
}

/// Two threads of two statements each, of every kind that threads can meet in.
#[test]
fn reductions_lose_nothing_in_all_small_programs() {
    let statements = [
        "x = x + 1;",
        "let w# = cas(x, 0, 2);",
        "lock(m);",
        "sync (m) { y = x; }",
        "sync (m) { if (y == 0) { wait(c, m); } }",
        "sync (m) { y = 1; notify(c); }",
        "notifyall(c);",
        "assert(x == 0);",
        "assume(x < 2);",
        "while (y == 0) { skip; }",
        "let t# = fork { y = x; }; join(t#);",
        "cobegin { { x = 2; } { atomic { y = y + x; } } }",
    ];
    let mut count = 0;
    for (number, first) in statements.iter().enumerate() {
        for second in statements {
            for third in &statements[..=number] {
                let first = first.replace('#', "1");
                let text = format!(
                    "shared x; shared y; lock m; cond c;
                     thread a {{ {first} {second} }} thread b {{ {third} x = 1; }}"
                );
                count += u32::from(agrees(&text.replace('#', "2"), 20_000));
            }
        }
    }
    assert_eq!(count, 936);
}

/// Figure 1 of the paper: two threads add to `x` by swaps that may fail.
#[test]
fn the_figure_of_the_paper_runs_as_it_says() {
    let text = "shared x; main { coforeach (i in 1..=2) {
  let done = 0;
  while (!done) {

    let prev = x;
    let curr = prev + i;
    let c = cas(x, prev, curr);
    if (c) {
      done = 1;
    }
  }
} }";
    let code = code(text);
    // `main` starts both; the first reads, the second goes through, the first fails and retries.
    let main = |count| std::iter::repeat_n(0, count);
    let steps = main(8).chain([1; 4]).chain([2; 8]).chain([1; 9]).chain(main(2)).collect();
    let run = run(&code, &mut Replay::new(&Schedule(steps)), &Settings::default());
    assert_eq!((run.ending, run.memory), (Ending::Finished, vec![3]));
    let trace = &run.trace;
    let flow = trace.flow().expect("recorded");
    let mut told = String::new();
    let mut numbers = std::collections::BTreeMap::new();
    for (id, event) in trace.events().filter(|(_, event)| event.thread.index() > 0) {
        numbers.insert(id, numbers.len() + 1);
        let names = trace.names();
        let (line, step) = (names.location(event.site), flow.step(id));
        let local = |&local: &LocalId| names.locals.name(local);
        let uses: Vec<&str> = flow.uses(id).iter().map(local).collect();
        told += &format!(
            "{} {} {} ({}) {} {}\n",
            numbers[&id],
            line.trim_start_matches("p.rw:"),
            trace.spell(id),
            uses.join(" "),
            step.defines.as_ref().map_or("-", local),
            step.control.and_then(|control| numbers.get(&control)).map_or(0, |&number| number),
        );
    }
    expect![[r#"
        1 2 main.1|let(done) () done 0
        2 3 main.1|branch (done) - 0
        3 5 main.1|r(x) () prev 2
        4 6 main.1|let(curr) (i prev) curr 2
        5 2 main.2|let(done) () done 0
        6 3 main.2|branch (done) - 0
        7 5 main.2|r(x) () prev 6
        8 6 main.2|let(curr) (i prev) curr 6
        9 7 main.2|arw(x) (curr prev) c 6
        10 8 main.2|branch (c) - 6
        11 9 main.2|let(done) () done 10
        12 3 main.2|branch (done) - 0
        13 7 main.1|ar(x) (curr prev) c 2
        14 8 main.1|branch (c) - 2
        15 3 main.1|branch (done) - 0
        16 5 main.1|r(x) () prev 15
        17 6 main.1|let(curr) (i prev) curr 15
        18 7 main.1|arw(x) (curr prev) c 15
        19 8 main.1|branch (c) - 15
        20 9 main.1|let(done) () done 19
        21 3 main.1|branch (done) - 0
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_search_that_is_cut_short_says_so() {
    let code = code("shared x; thread a { x = x + 1; x = x + 1; } thread b { x = x + 1; x = 2; }");
    let whole = explore(&code, &Limits::default());
    assert!(whole.complete);
    let few = [
        Limits { states_max: 1, ..Limits::default() },
        Limits { steps_max: 3, ..Limits::default() },
    ];
    for limits in few {
        let part = explore(&code, &limits);
        assert!(!part.complete, "{limits:?}");
        let is_known = |outcome| whole.outcomes.iter().any(|(known, _)| known == outcome);
        assert!(part.outcomes.iter().all(|(outcome, _)| is_known(outcome)), "{limits:?}");
    }
    let endless = self::code("shared x; thread a { while (1) { x = x + 1; } } thread b { x = 5; }");
    assert!(!explore_while(&endless, &Limits::default(), &|| false).complete);
}
