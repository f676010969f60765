//! Concurrent trace programs of runs: their shape, merging, constants, and what is refused.

use std::fmt::Write;

use expect_test::{Expect, expect};
use reweave_base::Id;
use reweave_exec::scheduler::Random;
use reweave_exec::{Code, Settings, run};
use reweave_intervals::ctp::{Action, Ctp, CtpError, Owner};
use reweave_intervals::schedule::minimize_switches;
use reweave_intervals::terms::{Term, TermId};
use reweave_lang::Source;
use reweave_trace::{AccessOp, Op, Program, Trace, TraceBuilder, Transition};

fn traces(text: &str, seeds: std::ops::Range<u64>) -> Vec<Trace> {
    let source = Source::new("p.rw".to_owned(), text.to_owned());
    let program = reweave_lang::check(&source).program.expect("the program is right");
    let code = Code::new(&program, &source);
    seeds.map(|seed| run(&code, &mut Random::new(seed), &Settings::default()).trace).collect()
}

fn merged(text: &str, seeds: std::ops::Range<u64>) -> Ctp {
    let traces = traces(text, seeds);
    Ctp::new(&traces.iter().collect::<Vec<_>>()).expect("runs of programs have no loops")
}

fn term(ctp: &Ctp, id: TermId) -> String {
    match ctp.terms.term(id) {
        Term::Constant(value) => value.to_string(),
        Term::Slot(slot) => match ctp.slots[slot] {
            Owner::Shared(var) => ctp.names.vars.name(var).to_owned(),
            Owner::Local(_, local) => ctp.names.locals.name(local).to_owned(),
        },
        Term::Unary(operator, of) => format!("{operator:?}({})", term(ctp, of)),
        Term::Binary(operator, left, right) => {
            format!("{operator:?}({}, {})", term(ctp, left), term(ctp, right))
        }
    }
}

fn drawn(ctp: &Ctp) -> String {
    let mut text = String::new();
    for step in ctp.steps.iter() {
        let thread = &ctp.threads[step.thread];
        let place =
            |point: reweave_intervals::ctp::Point| point.index() - thread.points.start.index();
        let action = match step.action {
            Action::Local => "local".to_owned(),
            Action::Read(var) => format!("r({})", ctp.names.vars.name(var)),
            Action::Write(var) => format!("w({})", ctp.names.vars.name(var)),
            Action::Update(var) => format!("u({})", ctp.names.vars.name(var)),
            Action::Acquire(lock) => format!("acq({})", ctp.names.locks.name(lock)),
            Action::Release(lock) => format!("rel({})", ctp.names.locks.name(lock)),
            Action::Fork(of) => format!("fork({})", ctp.names.threads.name(of)),
            Action::Join(of) => format!("join({})", ctp.names.threads.name(of)),
        };
        write!(
            text,
            "{} {}->{} {action}",
            ctp.names.threads.name(step.thread),
            place(step.from),
            place(step.to)
        )
        .expect("strings take all");
        let assigned =
            step.store.or(step.define).map(|(_, value)| format!(" := {}", term(ctp, value)));
        let guard = step.guard.map(|guard| format!(" if {}", term(ctp, guard)));
        let assertion = step.assertion.map(|of| format!(" assert {}", term(ctp, of)));
        for part in [assigned, guard, assertion].into_iter().flatten() {
            text.push_str(&part);
        }
        text.push('\n');
    }
    text
}

#[track_caller]
fn check(ctp: &Ctp, expected: Expect) {
    expected.assert_eq(&drawn(ctp));
}

const BRANCHING: &str = "
shared x; shared y;
thread a { x = 1; }
thread b { if (x == 0) { y = 2; } else { y = 3; } y = y + 1; }
";

#[test]
fn one_run_is_a_chain_for_each_thread() {
    check(
        &merged("shared x; lock m; thread a { lock(m); x = x + 1; unlock(m); }", 0..1),
        expect![[r#"
            a 0->1 acq(m)
            a 1->2 r(x) := x
            a 2->3 w(x) := Add(%0, 1)
            a 3->4 rel(m)
        "#]],
    );
}

#[test]
fn runs_that_part_share_what_is_before_and_after() {
    let ctp = merged(BRANCHING, 0..20);
    assert!(!ctp.is_straight_line(ctp.names.threads.get("b").expect("it ran")));
    check(
        &ctp,
        expect![[r#"
        a 0->1 w(x) := 1
        b 0->1 r(x) := x
        b 1->2 local if Equal(%0, 0)
        b 1->3 local if Not(Equal(%0, 0))
        b 2->4 w(y) := 2
        b 3->4 w(y) := 3
        b 4->5 r(y) := y
        b 5->6 w(y) := Add(%1, 1)
    "#]],
    );
}

#[test]
fn the_same_run_again_adds_nothing() {
    assert_eq!(drawn(&merged(BRANCHING, 3..4)), {
        let trace = traces(BRANCHING, 3..4).remove(0);
        drawn(&Ctp::new(&[&trace, &trace, &trace]).expect("a run has no loops"))
    });
}

#[test]
fn what_is_constant_is_put_into_terms_and_guards_that_hold_are_dropped() {
    let mut ctp = merged(
        "
shared x; shared size = 2; shared table[4]; shared own;
thread a { own = 5; for (k in 0..size) { table[k + own - 5] = x; } }
thread b { x = size; table[0] = 9; table[1] = x; }
",
        0..1,
    );
    ctp.propagate_constants();
    check(
        &ctp,
        expect![[r#"
        a 0->1 w(own) := 5
        a 1->2 local := 0
        a 2->3 r(size) := 2
        a 3->4 local
        a 4->5 r(own) := 5
        a 5->6 r(x) := x
        a 6->7 w(table[0]) := %5
        a 7->8 local := 1
        a 8->9 local
        a 9->10 r(own) := 5
        a 10->11 r(x) := x
        a 11->12 w(table[1]) := %5
        a 12->13 local := 2
        a 13->14 local
        b 0->1 r(size) := 2
        b 1->2 w(x) := 2
        b 2->3 w(table[0]) := 9
        b 3->4 r(x) := x
        b 4->5 w(table[1]) := %8
    "#]],
    );
}

const FORKING: &str = "
shared x; shared y;
main {
    let c = x;
    coforeach (i in 0..2) { y = i + c; }
}
";

#[test]
fn what_a_child_takes_over_is_passed() {
    check(
        &merged(FORKING, 0..1),
        expect![[r#"
        main 0->1 r(x) := x
        main 1->2 local := 0
        main 2->3 local if Less(i, 2)
        main 3->4 w(%c of main.1) := c
        main 4->5 w(%i of main.1) := i
        main 5->6 fork(main.1)
        main 6->7 local := Add(i, 1)
        main 7->8 local if Less(i, 2)
        main 8->9 w(%c of main.2) := c
        main 9->10 w(%i of main.2) := i
        main 10->11 fork(main.2)
        main 11->12 local := Add(i, 1)
        main 12->13 local if Not(Less(i, 2))
        main 13->14 join(main.1)
        main 14->15 join(main.2)
        main.1 0->1 r(%c of main.1) := %c of main.1
        main.1 1->2 r(%i of main.1) := %i of main.1
        main.1 2->3 w(y) := Add(i, c)
        main.2 0->1 r(%c of main.2) := %c of main.2
        main.2 1->2 r(%i of main.2) := %i of main.2
        main.2 2->3 w(y) := Add(i, c)
    "#]],
    );
}

#[test]
fn what_is_passed_and_constant_is_not_passed() {
    let mut ctp = merged(&FORKING.replace("c = x", "c = 7"), 0..1);
    ctp.propagate_constants();
    check(
        &ctp,
        expect![[r#"
        main 0->1 local := 7
        main 1->2 local := 0
        main 2->3 local
        main 3->4 fork(main.1)
        main 4->5 local := 1
        main 5->6 local
        main 6->7 fork(main.2)
        main 7->8 local := 2
        main 8->9 local
        main 9->10 join(main.1)
        main 10->11 join(main.2)
        main.1 0->1 w(y) := 7
        main.2 0->1 w(y) := 8
    "#]],
    );
}

#[test]
fn a_wait_goes_with_the_release_before_it() {
    let text = "
lock m; cond c; shared x;
thread a { lock(m); while (x == 0) { wait(c, m); } unlock(m); }
thread b { lock(m); x = 1; notify(c); unlock(m); }
";
    check(
        &merged(text, 0..20),
        expect![[r#"
        a 0->1 acq(m)
        a 1->2 r(x) := x
        a 2->8 local if Not(Equal(%0, 0))
        a 2->3 local if Equal(%0, 0)
        a 3->4 rel(m)
        a 4->5 local
        a 5->6 acq(m)
        a 6->7 r(x) := x
        a 7->8 local if Not(Equal(%0, 0))
        a 8->9 rel(m)
        b 0->1 acq(m)
        b 1->2 w(x) := 1
        b 2->3 local
        b 3->4 rel(m)
    "#]],
    );
}

#[test]
fn a_minimized_order_switches_where_it_must_and_leaves_out_what_is_not_needed() {
    let ctp = merged(
        "shared x; shared y; thread a { x = 1; y = 1; x = 2; } thread b { y = 2; let t = x; }",
        0..1,
    );
    let id = |thread: &str, place: usize| {
        let thread = ctp.names.threads.get(thread).expect("it ran");
        ctp.steps_of(thread).nth(place).expect("it has so many steps").0
    };
    let order = [id("a", 0), id("b", 0), id("a", 1), id("b", 1), id("a", 2)];
    assert_eq!(minimize_switches(&ctp, &order[..4]), [id("a", 0), id("b", 0), id("b", 1)]);
    assert_eq!(
        minimize_switches(&ctp, &order),
        [id("a", 0), id("b", 0), id("b", 1), id("a", 1), id("a", 2)]
    );
    assert!(minimize_switches(&ctp, &[]).is_empty());
}

#[test]
fn a_lock_taken_twice_is_taken_once() {
    check(
        &merged("lock m; thread a { lock(m); lock(m); unlock(m); unlock(m); }", 0..1),
        expect![[r#"
            a 0->1 acq(m)
            a 1->2 local
            a 2->3 local
            a 3->4 rel(m)
        "#]],
    );
}

#[test]
fn a_loop_that_was_not_unrolled_is_refused() {
    let mut builder = TraceBuilder::new();
    let thread = builder.thread("a");
    let var = builder.var("x");
    let site = builder.site("p.rw:7");
    builder.push(thread, Op::Access(AccessOp::Write, var), site);
    let mut program = Program::default();
    let point = program.add_point(thread);
    program.set_entry(thread, point);
    program.add_transition(Transition {
        thread,
        from: point,
        to: point,
        guard: None,
        access: Some(Op::Access(AccessOp::Write, var)),
        store: None,
        define: None,
        assertion: None,
        site,
    });
    builder.set_program(program);
    let trace = builder.finish().expect("the trace is well formed");
    let error = Ctp::new(&[&trace]).expect_err("it has a loop");
    expect!["p.rw:7: thread `a` has a loop here that the run did not unroll; expected each repetition as steps of its own"].assert_eq(&error.to_string());
}

#[test]
fn runs_without_a_program_and_no_runs_are_refused() {
    assert_eq!(Ctp::new(&[]).expect_err("there is none"), CtpError::Empty);
    let trace = TraceBuilder::new().finish().expect("nothing is well formed");
    assert_eq!(Ctp::new(&[&trace]).expect_err("it has none"), CtpError::NoProgram { run: 1 });
}
