//! What goes wrong is a result with its line.

use crate::common;

use common::code;
use reweave_exec::scheduler::{Candidates, Pct, RaceDirected, Random, Replay, RoundRobin};
use reweave_exec::{
    Awaited, Blocked, Code, Ending, FaultKind, Limits, Run, Schedule, Scheduler, Settings, explore,
    run,
};

#[track_caller]
fn in_turn(text: &str) -> Run {
    run(&code(text), &mut RoundRobin::new(), &Settings::default())
}

/// That one thread of `text` fails like this, at this line.
#[track_caller]
fn fails(text: &str, thread: &str, kind: &FaultKind, line: u32) -> Run {
    let run = in_turn(text);
    assert_eq!(run.faults.len(), 1, "{:?}", run.faults);
    let fault = &run.faults[0];
    assert_eq!((fault.thread.as_str(), &fault.kind, fault.line), (thread, kind, line));
    common::replayed::check(&run.trace);
    run
}

#[test]
fn a_failed_assertion_ends_its_thread_alone() {
    let text =
        "shared x; shared y;\nthread a {\n  assert(x == 1);\n  y = 1;\n}\nthread b { x = 2; }";
    let run = fails(text, "a", &FaultKind::Assertion, 3);
    assert_eq!((run.ending, run.memory), (Ending::Finished, vec![2, 0]));
}

#[test]
fn a_division_by_zero_ends_its_thread() {
    fails("shared x;\nmain {\n  x = 1 / x;\n}", "main", &FaultKind::DivisionByZero, 3);
    fails("shared x;\nmain {\n  let a = 7 % x;\n}", "main", &FaultKind::DivisionByZero, 3);
    let minimum = "shared x = -9223372036854775807;\nmain {\n  x = (x - 1) / -1;\n}";
    assert_eq!(in_turn(minimum).memory, [i64::MIN]);
}

#[test]
fn an_index_out_of_bounds_ends_its_thread_before_the_access() {
    let kind = |index| FaultKind::OutOfBounds { name: "a".to_owned(), index, length: 2 };
    let run = fails("shared a[2];\nmain {\n  let i = 2;\n  a[i] = 1;\n}", "main", &kind(2), 4);
    assert_eq!(run.trace.len(), 1);
    fails("shared a[2];\nmain {\n  let i = 0;\n  let b = a[i - 1];\n}", "main", &kind(-1), 4);
    let lock = FaultKind::OutOfBounds { name: "m".to_owned(), index: 5, length: 2 };
    fails("lock m[2]; shared x = 5;\nmain {\n  lock(m[x]);\n}", "main", &lock, 3);
}

#[test]
fn a_lock_that_is_not_held_cannot_be_given_back() {
    let kind = FaultKind::NotHeld("m".to_owned());
    fails("lock m;\nmain {\n  sync (m) { skip; }\n  unlock(m);\n}", "main", &kind, 4);
    fails("lock m; cond c;\nmain {\n  sync (m) { skip; }\n  wait(c, m);\n}", "main", &kind, 4);
    let twice = FaultKind::HeldTwice("m".to_owned());
    fails(
        "lock m; cond c;\nmain {\n  lock(m);\n  sync (m) {\n    wait(c, m);\n  }\n}",
        "main",
        &twice,
        5,
    );
}

#[test]
fn a_deadlock_says_who_waits_for_what_and_where() {
    let text = "lock m; lock n;\nthread a {\n  lock(m);\n  lock(n);\n}\nthread b {\n  lock(n);\n  lock(m);\n}";
    let run = in_turn(text);
    let waits = |thread: &str, lock: &str, line| Blocked {
        thread: thread.to_owned(),
        awaited: Awaited::Lock(lock.to_owned()),
        line,
    };
    assert_eq!(run.ending, Ending::Deadlock(vec![waits("a", "n", 4), waits("b", "m", 8)]));
    let text = "lock m; cond c;\nmain {\n  let t = fork {\n    sync (m) { wait(c, m); }\n  };\n  join(t);\n}";
    let blocked = vec![
        Blocked {
            thread: "main".to_owned(),
            awaited: Awaited::Thread("main.1".to_owned()),
            line: 6,
        },
        Blocked {
            thread: "main.1".to_owned(),
            awaited: Awaited::Condition("c".to_owned()),
            line: 4,
        },
    ];
    assert_eq!(in_turn(text).ending, Ending::Deadlock(blocked));
}

#[test]
fn an_assumption_that_fails_ends_the_run_without_a_fault() {
    let text =
        "shared x;\nthread a {\n  assume(x);\n  x = 1 / x;\n}\nthread b { while (1) { skip; } }";
    let run = in_turn(text);
    assert_eq!((run.ending, run.faults), (Ending::Assumption(3), vec![]));
}

#[test]
fn limits_are_endings() {
    let code = code("shared x; main { while (1) { let t = fork { x = 1; }; } }");
    let short = Settings { steps_max: 100, ..Settings::default() };
    assert_eq!(run(&code, &mut RoundRobin::new(), &short).ending, Ending::Steps);
    let few = Settings { threads_max: 10, ..Settings::default() };
    assert_eq!(run(&code, &mut RoundRobin::new(), &few).ending, Ending::Threads);
    let one_step = Schedule(vec![0]);
    let stopped = run(&code, &mut Replay::new(&one_step), &Settings::default());
    assert_eq!(stopped.ending, Ending::Stopped);
}

const LOST_UPDATE: &str = "shared x; thread a { let t = x; skip; x = t + 1; }
    thread b { for (i in 0..20) { skip; } let t = x; x = t + 1; }";

/// In how many of the runs of `code` with seeds up to 200 `is_found` says so.
fn count<S: Scheduler>(
    code: &Code,
    scheduler: impl Fn(u64) -> S,
    is_found: impl Fn(&Run) -> bool,
) -> usize {
    let found = |&seed: &u64| is_found(&run(code, &mut scheduler(seed), &Settings::default()));
    (0..200).filter(found).count()
}

#[test]
fn race_directed_runs_meet_what_random_ones_miss() {
    let lost_update = code(LOST_UPDATE);
    let is_lost = |run: &Run| run.memory == [1];
    let first = run(&lost_update, &mut Random::new(0), &Settings::default());
    let candidates = Candidates::new(&first.trace);
    let random = count(&lost_update, Random::new, is_lost);
    let directed = count(&lost_update, |seed| RaceDirected::new(seed, candidates.clone()), is_lost);
    assert!(directed >= 50 && directed > 2 * random, "{directed} and {random}");

    let swap = code(
        "shared x; shared failed; thread a { let t = x; let w = cas(x, t, t + 1); if (!w) { failed = 1; } }
         thread b { for (i in 0..20) { skip; } let t = x; let w = cas(x, t, t + 1); if (!w) { failed = 1; } }",
    );
    let fails = |run: &Run| run.memory[1] == 1;
    let first = run(&swap, &mut Random::new(0), &Settings::default());
    let candidates = Candidates::new(&first.trace);
    let random = count(&swap, Random::new, fails);
    let directed = count(&swap, |seed| RaceDirected::new(seed, candidates.clone()), fails);
    assert!(directed >= 50 && directed > 2 * random, "{directed} and {random}");
}

#[test]
fn every_scheduler_shows_outcomes_that_are_there_and_repeats_itself() {
    let code = code(
        "shared x; lock m; lock n;
         thread a { sync (m) { sync (n) { x = x + 1; } } x = x * 2; }
         thread b { sync (n) { sync (m) { x = x + 3; } } }
         thread c { x = 7; }",
    );
    let all = explore(&code, &Limits::default());
    let first = run(&code, &mut Random::new(1), &Settings::default());
    let candidates = Candidates::new(&first.trace);
    let schedulers = |seed| -> [(&str, Box<dyn Scheduler>); 4] {
        [
            ("round robin", Box::new(RoundRobin::new())),
            ("random", Box::new(Random::new(seed))),
            ("pct", Box::new(Pct::new(seed, 3, 30))),
            ("race directed", Box::new(RaceDirected::new(seed, candidates.clone()))),
        ]
    };
    for seed in 0..100 {
        for ((name, mut one), (_, mut other)) in schedulers(seed).into_iter().zip(schedulers(seed))
        {
            let one = run(&code, &mut *one, &Settings::default());
            let again = run(&code, &mut *other, &Settings::default());
            assert_eq!(one.trace, again.trace, "{name}");
            let replayed = run(&code, &mut Replay::new(&one.schedule), &Settings::default());
            assert_eq!(one.trace, replayed.trace, "{name}");
            assert_eq!(one.ending, replayed.ending, "{name}");
            let outcome = one.outcome(&code);
            assert!(all.outcomes.iter().any(|(other, _)| *other == outcome), "{name}: {outcome:?}");
        }
    }
}

#[test]
fn calls_that_go_on_without_an_event_end_their_thread() {
    let mut text = String::from("fn f0() { skip; }\n");
    for number in 1..40 {
        let below = number - 1;
        text += &format!("fn f{number}() {{ f{below}(); f{below}(); }}\n");
    }
    let run = in_turn(&(text + "main { f39(); }"));
    assert_eq!(
        run.faults.iter().map(|fault| &fault.kind).collect::<Vec<_>>(),
        [&FaultKind::TooLong]
    );
}

#[test]
fn a_return_from_main_starts_the_declared_threads() {
    let run = in_turn("shared x;\nmain { x = 1; return; }\nthread t { x = 2; }");
    assert_eq!((run.ending, run.memory), (Ending::Finished, vec![2]));
}

#[test]
fn expressions_of_any_shape_are_compiled() {
    let nested = (0..100).fold("x".to_owned(), |inner, _| {
        let chain = " + (x & 1)".repeat(80);
        format!("(1 | {inner}{chain})")
    });
    let run = in_turn(&format!("shared x = 2;\nmain {{ let t = {nested}; x = 7; }}"));
    assert_eq!((run.ending, run.memory), (Ending::Finished, vec![7]));
}
