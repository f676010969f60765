//! Every construct of the language, as it runs: events, values and flow.

use crate::common;

use common::code;
use expect_test::{Expect, expect};
use reweave_exec::scheduler::RoundRobin;
use reweave_exec::{Ending, Run, Settings, run};
use reweave_trace::Trace;

/// One line for each event: its number, what it did and where, the value, the locals that it uses
/// and defines, and the branch that it depends on.
fn listing(trace: &Trace) -> String {
    let flow = trace.flow().expect("recorded");
    let names = trace.names();
    let mut text = String::new();
    for (id, event) in trace.events() {
        let (step, line) = (flow.step(id), names.location(event.site));
        let line = line.strip_prefix("p.rw:").unwrap_or(line);
        let mut one = format!("{} :{line} {}", id.number(), trace.spell(id));
        if let Some(value) = trace.value(id) {
            one += &format!(" = {value}");
        }
        for &local in flow.uses(id) {
            one += &format!(" <{}", names.locals.name(local));
        }
        if let Some(local) = step.defines {
            one += &format!(" >{}", names.locals.name(local));
        }
        if let Some(control) = step.control {
            one += &format!(" after {}", control.number());
        }
        text += &one;
        text.push('\n');
    }
    text
}

/// The run of `text` with one step for each thread in turn.
#[track_caller]
fn in_turn(text: &str) -> Run {
    run(&code(text), &mut RoundRobin::new(), &Settings::default())
}

/// That `text` runs to its end, without faults, as `expected` says.
#[track_caller]
fn check(text: &str, expected: Expect) {
    let run = in_turn(text);
    assert_eq!((&run.ending, run.faults.as_slice()), (&Ending::Finished, &[][..]));
    expected.assert_eq(&listing(&run.trace));
    common::replayed::check(&run.trace);
}

/// That the variables of `text` hold `expected` at the end.
#[track_caller]
fn holds(text: &str, expected: &[i64]) {
    let run = in_turn(text);
    assert_eq!((&run.ending, run.faults.as_slice()), (&Ending::Finished, &[][..]));
    assert_eq!(run.memory, expected);
    common::replayed::check(&run.trace);
}

#[test]
fn each_access_of_an_expression_is_an_event_and_then_the_write() {
    check(
        "shared x = 2; shared y = 3;\nmain {\n  x = x * y + 1;\n}",
        expect![[r#"
         1 :3 main|r(x) = 2 >%0
         2 :3 main|r(y) = 3 >%1
         3 :3 main|w(x) = 7 <%1 <%0
    "#]],
    );
}

#[test]
fn a_let_of_one_access_is_one_event() {
    check(
        "shared x = 2;\nmain {\n  let a = x;\n  let b = x + a;\n  let d = a + b;\n  a = 5;\n}",
        expect![[r#"
             1 :3 main|r(x) = 2 >a
             2 :4 main|r(x) = 2 <a >b
             3 :5 main|let(d) = 6 <b <a >d
             4 :6 main|let(a) = 5 >a
        "#]],
    );
}

#[test]
fn elements_of_arrays_are_variables() {
    check(
        "shared a[3] = 7;\nmain {\n  let i = 1;\n  a[i + 1] = a[i] + a[0];\n  a[a[2] - 13] = 0;\n}",
        expect![[r#"
             1 :3 main|let(i) = 1 >i
             2 :4 main|r(a[1]) = 7 <i >%2
             3 :4 main|r(a[0]) = 7 >%3
             4 :4 main|w(a[2]) = 14 <%3 <%2 <i
             5 :5 main|r(a[2]) = 14 >%4
             6 :5 main|w(a[1]) = 0 <%4
        "#]],
    );
}

#[test]
fn an_index_survives_a_call_in_the_value() {
    holds(
        "shared a[4]; fn f(p) { let q = p + 5; return q * 2 + 1; }
         main { let i = 0; a[i + 1] = f(2); let w = cas(a[i + 2], f(1) - 13, f(3)); }",
        &[0, 15, 17, 0],
    );
}

#[test]
fn branches_decide_what_depends_on_them() {
    check(
        "shared x;\nmain {\n  if (x) {\n    x = 1;\n  } else if (x == 0) {\n    x = 2;\n  } else {\n    x = 3;\n  }\n  x = 4;\n}",
        expect![[r#"
             1 :3 main|r(x) = 0 >%0
             2 :3 main|branch = 0 <%0
             3 :5 main|r(x) = 0 >%1 after 2
             4 :5 main|branch = 1 <%1 after 2
             5 :6 main|w(x) = 2 after 4
             6 :10 main|w(x) = 4
        "#]],
    );
}

#[test]
fn a_loop_tests_before_each_round() {
    check(
        "shared x;\nmain {\n  while (x < 2) {\n    x = x + 1;\n  }\n}",
        expect![[r#"
            1 :3 main|r(x) = 0 >%0
            2 :3 main|branch = 1 <%0
            3 :4 main|r(x) = 0 >%1 after 2
            4 :4 main|w(x) = 1 <%1 after 2
            5 :3 main|r(x) = 1 >%0
            6 :3 main|branch = 1 <%0
            7 :4 main|r(x) = 1 >%1 after 6
            8 :4 main|w(x) = 2 <%1 after 6
            9 :3 main|r(x) = 2 >%0
            10 :3 main|branch = 0 <%0
        "#]],
    );
}

#[test]
fn for_counts_to_its_bound() {
    holds("shared x; main { for (i in 1..4) { x = x * 10 + i; } }", &[123]);
    holds("shared x; main { for (i in 1..=4) { x = x * 10 + i; } }", &[1234]);
    holds("shared x; main { for (i in 4..1) { x = 1; } }", &[0]);
    holds("shared x; main { let n = 2; for (i in 0..n) { n = 9; x = x + 1; } }", &[2]);
}

#[test]
fn break_and_continue_leave_the_innermost_loop() {
    holds(
        "shared x; main { for (i in 0..9) { if (i == 2) { continue; } if (i == 5) { break; }
           x = x * 10 + i; } }",
        &[134],
    );
    holds(
        "shared x; main { let i = 0; while (1) { i = i + 1; for (j in 0..3) { if (j == i) { break; }
           x = x + 1; } if (i == 3) { break; } } }",
        &[6],
    );
}

#[test]
fn a_jump_is_a_flag_that_what_it_leaves_out_depends_on() {
    check(
        "shared x;\nmain {\n  while (1) {\n    if (x == 0) {\n      break;\n    }\n    x = 2;\n  }\n}",
        expect![[r#"
             1 :3 main|branch = 1
             2 :4 main|r(x) = 0 >%0 after 1
             3 :4 main|branch = 1 <%0 after 1
             4 :5 main|let(%1) = 1 >%1 after 3
             5 :5 main|branch = 1 <%1
        "#]],
    );
}

#[test]
fn and_and_or_leave_out_the_second_operand_where_the_first_decides() {
    check(
        "shared x; shared y = 1;\nmain {\n  if (x && y) { skip; }\n  if (y || x) { skip; }\n}",
        expect![[r#"
            1 :3 main|r(x) = 0 >%1
            2 :3 main|branch = 0 <%1
            3 :3 main|branch = 0 <%1
            4 :4 main|r(y) = 1 >%4
            5 :4 main|branch = 0 <%4
            6 :4 main|branch = 1 <%4
        "#]],
    );
    holds(
        "shared x; main { let i = 0; if (i != 0 && 10 / i > 1) { x = 1; } else { x = 2; } }",
        &[2],
    );
    holds("shared x; main { let i = 0; if (i == 0 || 10 % i > 1) { x = 1; } }", &[1]);
}

#[test]
fn functions_take_arguments_and_give_results() {
    check(
        "shared x = 3;\nfn twice(a) {\n  return a * 2;\n}\nmain {\n  x = twice(x) + twice(1);\n}",
        expect![[r#"
             1 :6 main|r(x) = 3 >%2
             2 :6 main|let(a) = 3 <%2 >a
             3 :3 main|let(twice()) = 6 <a >twice()
             4 :6 main|let(%3) = 6 <twice() >%3
             5 :6 main|let(a) = 1 >a
             6 :3 main|let(twice()) = 2 <a >twice()
             7 :6 main|let(%4) = 2 <twice() >%4
             8 :6 main|w(x) = 8 <%4 <%3
        "#]],
    );
    holds(
        "shared x = 4; fn f(a, b) { if (a > b) { return a; } } main { x = f(2, 1) * 10 + f(1, 2); }",
        &[20],
    );
    holds(
        "shared x; fn f(n) { for (i in 0..9) { sync_(i); if (i == n) { return; } } } fn sync_(i) { x = x + i; } main { f(3); }",
        &[6],
    );
}

#[test]
fn threads_of_a_cobegin_start_and_are_joined() {
    check(
        "shared x;\nmain {\n  let a = 5;\n  cobegin {\n    { x = a; }\n    { let b = 1; }\n  }\n  x = 2;\n}",
        expect![[r#"
             1 :3 main|let(a) = 5 >a
             2 :4 main|fork(main.1) <a
             3 :5 main.1|w(x) = 5 <a
             4 :4 main|fork(main.2)
             5 :6 main.2|let(b) = 1 >b
             6 :4 main|join(main.1)
             7 :4 main|join(main.2)
             8 :8 main|w(x) = 2
        "#]],
    );
}

#[test]
fn a_coforeach_starts_one_thread_for_each_number() {
    check(
        "shared a[2];\nmain {\n  coforeach (i in 0..2) {\n    a[i] = i + 1;\n  }\n}",
        expect![[r#"
            1 :3 main|let(i) = 0 >i
            2 :3 main|branch = 1 <i
            3 :3 main|fork(main.1) <i after 2
            4 :4 main.1|w(a[0]) = 1 <i after 2
            5 :3 main|let(i) = 1 <i >i after 2
            6 :3 main|branch = 1 <i
            7 :3 main|fork(main.2) <i after 6
            8 :4 main.2|w(a[1]) = 2 <i after 6
            9 :3 main|let(i) = 2 <i >i after 6
            10 :3 main|branch = 0 <i
            11 :3 main|join(main.1)
            12 :3 main|join(main.2)
        "#]],
    );
    holds(
        "shared a[3]; main { let n = 3; coforeach (i in 0..n) { coforeach (j in 0..=i) { let w = fetchadd(a[i], j); } } }",
        &[0, 1, 3],
    );
    holds("shared x; main { coforeach (i in 0..0) { x = 1; } }", &[0]);
}

#[test]
fn a_thread_has_its_own_copy_of_the_locals_around_it() {
    holds(
        "shared x; shared y; main { let a = 1; let t = fork { a = a + 10; x = a; }; a = 2; join(t); y = a; }",
        &[11, 2],
    );
}

#[test]
fn fork_and_join_are_events() {
    check(
        "shared x;\nmain {\n  let t = fork {\n    x = 1;\n  };\n  join(t);\n  x = 2;\n}",
        expect![[r#"
             1 :3 main|fork(main.1)
             2 :4 main.1|w(x) = 1
             3 :6 main|join(main.1)
             4 :7 main|w(x) = 2
        "#]],
    );
}

#[test]
fn declared_threads_start_after_main_if_there_is_one() {
    check(
        "shared x;\nmain { x = 1; }\nthread a { x = 2; }\nthread b { x = 3; }",
        expect![[r#"
         1 :2 main|w(x) = 1
         2 :3 main|fork(a)
         3 :3 a|w(x) = 2
         4 :4 main|fork(b)
         5 :4 b|w(x) = 3
    "#]],
    );
    check(
        "shared x;\nthread a { x = 2; }\nthread b { x = 3; }",
        expect![[r#"
         1 :2 a|w(x) = 2
         2 :3 b|w(x) = 3
    "#]],
    );
}

#[test]
fn sections_are_left_on_every_way_out() {
    check(
        "shared x; lock m;\nfn f() {\n  sync (m) {\n    if (x == 0) {\n      return 1;\n    }\n  }\n  return 2;\n}\nmain {\n  x = f();\n}",
        expect![[r#"
             1 :3 main|acq(m)
             2 :4 main|r(x) = 0 >%2
             3 :4 main|branch = 1 <%2
             4 :5 main|let(f()) = 1 >f() after 3
             5 :5 main|rel(m) after 3
             6 :5 main|let(%3) = 1 >%3 after 3
             7 :5 main|branch = 1 <%3
             8 :11 main|let(%1) = 1 <f() >%1
             9 :11 main|w(x) = 1 <%1
        "#]],
    );
    holds(
        "shared x; lock m; main { for (i in 0..3) { sync (m) { if (i == 1) { break; } x = x + 1; } } sync (m) { skip; } let t = fork { sync (m) { x = x + 10; } }; join(t); }",
        &[11],
    );
}

#[test]
fn locks_are_held_as_often_as_they_are_taken() {
    check(
        "shared x; lock m[2];\nmain {\n  let i = 0;\n  lock(m[i + 1]);\n  sync (m[1]) {\n    x = 1;\n  }\n  unlock(m[1]);\n}",
        expect![[r#"
            1 :3 main|let(i) = 0 >i
            2 :4 main|acq(m[1]) <i
            3 :5 main|acq(m[1])
            4 :6 main|w(x) = 1
            5 :7 main|rel(m[1])
            6 :8 main|rel(m[1])
        "#]],
    );
}

#[test]
fn atomic_sections_share_one_lock() {
    check(
        "shared x;\nthread a { atomic { x = 1; } }\nthread b { atomic { x = 2; } }",
        expect![[r#"
             1 :2 a|acq(atomic)
             2 :2 a|w(x) = 1
             3 :2 a|rel(atomic)
             4 :3 b|acq(atomic)
             5 :3 b|w(x) = 2
             6 :3 b|rel(atomic)
        "#]],
    );
}

#[test]
fn what_is_expected_to_be_atomic_is_marked_and_not_enforced() {
    check(
        "shared x;\nmain {\n  expect atomic {\n    x = 1;\n  }\n}",
        expect![[r#"
         1 :3 main|begin(expect:3)
         2 :4 main|w(x) = 1
         3 :5 main|end(expect:3)
    "#]],
    );
}

#[test]
fn swaps_and_adds_are_one_event() {
    check(
        "shared x;\nmain {\n  let a = cas(x, 0, 5);\n  let b = cas(x, 0, 6);\n  let d = fetchadd(x, b + 2);\n  x = d;\n}",
        expect![[r#"
             1 :3 main|arw(x) = 5 >a
             2 :4 main|ar(x) = 5 >b
             3 :5 main|arw(x) = 7 <b >d
             4 :6 main|w(x) = 5 <d
        "#]],
    );
}

#[test]
fn a_wait_gives_its_lock_back_and_takes_it_again() {
    check(
        "shared x; lock m; cond c;\nthread a {\n  sync (m) {\n    while (x == 0) { wait(c, m); }\n  }\n}\nthread b {\n  sync (m) { x = 1; notify(c); }\n}",
        expect![[r#"
            1 :3 a|acq(m)
            2 :4 a|r(x) = 0 >%0
            3 :4 a|branch = 1 <%0
            4 :4 a|rel(m) after 3
            5 :4 a|wait(c) after 3
            6 :8 b|acq(m)
            7 :8 b|w(x) = 1
            8 :8 b|notify(c)
            9 :4 a|wake(c) after 3
            10 :8 b|rel(m)
            11 :4 a|acq(m) after 3
            12 :4 a|r(x) = 1 >%0
            13 :4 a|branch = 0 <%0
            14 :5 a|rel(m)
        "#]],
    );
}

#[test]
fn notifyall_wakes_all_and_notify_one() {
    let text = |how: &str| {
        format!(
            "shared x; shared ready; lock m; cond c;
             main {{ cobegin {{
               {{ sync (m) {{ ready = ready + 1; wait(c, m); x = x + 1; }} }}
               {{ sync (m) {{ ready = ready + 1; wait(c, m); x = x + 1; }} }}
               {{ let go = 0; while (!go) {{ sync (m) {{ go = ready == 2; }} }} {how}(c); }}
             }} }}"
        )
    };
    assert_eq!(in_turn(&text("notifyall")).memory, [2, 2]);
    let one = in_turn(&text("notify"));
    assert_eq!(one.memory, [1, 2]);
    assert!(matches!(one.ending, Ending::Deadlock(blocked) if blocked.len() == 2));
}

#[test]
fn an_optional_body_runs_in_a_parallel_run() {
    holds("shared x; main { if (*) { x = 1; } }", &[1]);
}

#[test]
fn an_assertion_that_holds_is_an_event() {
    check(
        "shared x;\nmain {\n  assert(x == 0);\n  assume(x < 1);\n  skip;\n}",
        expect![[r#"
            1 :3 main|r(x) = 0 >%0
            2 :3 main|branch = 1 <%0
            3 :4 main|r(x) = 0 >%1
            4 :4 main|branch = 1 <%1
        "#]],
    );
}

#[test]
fn instances_are_executions_of_statements() {
    let run = in_turn(
        "shared x;\nfn f() {\n  x = 1;\n}\nmain {\n  for (i in 0..2) {\n    f();\n    coforeach (j in 0..1) {\n      x = j;\n    }\n  }\n}",
    );
    let flow = run.trace.flow().expect("recorded");
    let mut text = String::new();
    for (id, _) in run.trace.events() {
        let Some(instance) = flow.step(id).instance else { continue };
        text += &format!("{} {}:", id.number(), run.trace.spell(id));
        for around in flow.enclosing(instance) {
            let line = flow.blocks()[around.block].statements[around.position as usize].first_line;
            text += &format!(" {line}#{}", around.execution);
        }
        text.push('\n');
    }
    expect![[r#"
        1 main|let(i): 6#0
        2 main|branch: 6#0
        3 main|w(x): 3#2 7#1 6#0
        4 main|let(j): 8#1 6#0
        5 main|branch: 8#1 6#0
        6 main|fork(main.1): 8#1 6#0
        7 main.1|w(x): 9#3 8#1 6#0
        8 main|let(j): 8#1 6#0
        9 main|branch: 8#1 6#0
        10 main|join(main.1): 8#1 6#0
        11 main|let(i): 6#0
        12 main|branch: 6#0
        13 main|w(x): 3#5 7#4 6#0
        14 main|let(j): 8#4 6#0
        15 main|branch: 8#4 6#0
        16 main|fork(main.2): 8#4 6#0
        17 main.2|w(x): 9#6 8#4 6#0
        18 main|let(j): 8#4 6#0
        19 main|branch: 8#4 6#0
        20 main|join(main.2): 8#4 6#0
        21 main|let(i): 6#0
        22 main|branch: 6#0
    "#]]
    .assert_eq(&text);
}
