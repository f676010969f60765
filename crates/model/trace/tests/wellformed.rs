//! Which events make a trace, and what is said of those that cannot have happened.

use expect_test::{Expect, expect};
use reweave_base::Id;
use reweave_testkit::fixture::builder;
use reweave_testkit::try_trace;
use reweave_trace::{AccessOp, ConditionOp, LockOp, Op, SiteId, ThreadId, TraceBuilder, VarId};

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "calls read better without a reference")]
fn check(drawing: &str, expected: Expect) {
    let answer = match try_trace(drawing) {
        Ok(trace) => format!("{} events", trace.len()),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&answer);
}

#[test]
fn an_acquire_finds_no_other_holder() {
    check(
        "
t1      t2
acq(m)
        acq(m)
",
        expect!["event 2: acquires lock `m`, which thread `t1` holds"],
    );
    check(
        "
t1       t2
racq(m)
         acq(m)
",
        expect!["event 2: acquires lock `m`, which thread `t1` holds"],
    );
    check(
        "
t1      t2
acq(m)
        racq(m)
",
        expect!["event 2: acquires lock `m`, which thread `t1` holds"],
    );
    check(
        "
t1       t2
racq(m)
         racq(m)
acq(m)
",
        expect!["event 3: acquires lock `m`, which thread `t2` holds"],
    );
}

#[test]
fn a_release_is_of_a_lock_held_in_that_mode() {
    check("t1\nrel(m)", expect!["event 1: releases lock `m`, which its thread does not hold"]);
    check(
        "t1\nacq(m)\nrrel(m)",
        expect!["event 2: releases lock `m`, which its thread does not hold in shared mode"],
    );
    check(
        "t1\nracq(m)\nrel(m)",
        expect!["event 2: releases lock `m`, which its thread does not hold"],
    );
    check(
        "t1\nacq(m)\nacq(m)\nrel(m)\nrel(m)\nrel(m)",
        expect!["event 5: releases lock `m`, which its thread does not hold"],
    );
    check(
        "
t1      t2
acq(m)
        rel(m)
",
        expect!["event 2: releases lock `m`, which its thread does not hold"],
    );
}

#[test]
fn locks_nest_share_and_stay_held() {
    check("t1\nacq(m)\nacq(m)\nrel(m)\nrel(m)", expect!["4 events"]);
    check("t1\nacq(m)\nracq(m)\nrel(m)\nrrel(m)", expect!["4 events"]);
    check("t1\nracq(m)\nacq(m)\nrrel(m)\nrel(m)", expect!["4 events"]);
    check("t1\nacq(m)\nacq(n)\nrel(m)\nrel(n)", expect!["4 events"]);
    check("t1\nacq(m)\nreq(n)", expect!["2 events"]);
    check("t1\nracq(m)\nwreq(m)", expect!["2 events"]);
    check(
        "
t1       t2
racq(m)
         racq(m)
rrel(m)
",
        expect!["3 events"],
    );
}

#[test]
fn a_thread_runs_between_its_fork_and_its_join() {
    check(
        "
t1        t2
          w(x)
fork(t2)
",
        expect!["event 1: thread `t2` runs before its fork at event 2"],
    );
    check("t1\nfork(t1)", expect!["event 1: a thread cannot fork itself"]);
    check(
        "
t1        t2
join(t2)
          w(x)
",
        expect!["event 2: thread `t2` runs after its join at event 1"],
    );
    check("t1\nfork(t2)\nfork(t2)", expect!["event 2: thread `t2` was forked already, at event 1"]);
    check(
        "t1\njoin(t2)\nfork(t2)",
        expect!["event 2: forks thread `t2`, which was joined at event 1"],
    );
    check("t1\njoin(t1)", expect!["event 1: a thread cannot wait for its own end"]);
}

#[test]
fn threads_may_never_run_and_be_joined_twice() {
    check("t1\nfork(t2)\njoin(t2)\njoin(t2)\njoin(t3)\nfork(t4)", expect!["5 events"]);
    check(
        "
t1        t2
fork(t2)
          acq(m)
join(t2)
",
        expect!["3 events"],
    );
}

#[test]
fn a_waiting_thread_does_nothing_but_wake() {
    check(
        "t1\nwait(c)\nw(x)",
        expect!["event 2: its thread still waits on `c`: expected `wake` or `timeout`"],
    );
    check("t1\nwait(c)\ntimeout(d)", expect!["event 2: its thread does not wait on `d`"]);
    check("t1\ntimeout(c)", expect!["event 1: its thread does not wait on `c`"]);
    check("t1\nwake(c)", expect!["event 1: its thread does not wait on `c`"]);
    check("t1\nwait(c)\ntimeout(c)\nwait(c)", expect!["3 events"]);
}

#[test]
fn a_wake_has_a_notify() {
    check(
        "t1\nwait(c)\nwake(c)",
        expect!["event 2: wakes from `c`, but no notify since its wait is left to have woken it"],
    );
    check(
        "
t1       t2
         notify(c)
wait(c)
wake(c)
",
        expect!["event 3: wakes from `c`, but no notify since its wait is left to have woken it"],
    );
    check(
        "
t1       t2       t3
wait(c)
         wait(c)
                  notify(c)
wake(c)
         wake(c)
",
        expect!["event 5: wakes from `c`, but no notify since its wait is left to have woken it"],
    );
    check(
        "
t1       t2
wait(c)
         notify(d)
wake(c)
",
        expect!["event 3: wakes from `c`, but no notify since its wait is left to have woken it"],
    );
}

#[test]
fn wakes_are_explained_whenever_they_can_be() {
    check(
        "
t1       t2       t3
wait(c)
         wait(c)
                  notifyall(c)
wake(c)
         wake(c)
",
        expect!["5 events"],
    );
    // The first notify must have been for the second wait, which wakes before the next notify.
    check(
        "
t1       t2       t3
wait(c)
         wait(c)
                  notify(c)
         wake(c)
                  notify(c)
wake(c)
",
        expect!["6 events"],
    );
    // The lock is given up and the wait begun in one step, so the notify is in time.
    check(
        "
t1       t2
acq(m)
rel(m)
         notify(c)
wait(c)
wake(c)
acq(m)
",
        expect!["6 events"],
    );
}

#[test]
fn a_departure_follows_all_arrivals() {
    check("t1\ndepart(b)", expect!["event 1: departs from `b`, where its thread has not arrived"]);
    check(
        "t1\nparties(b)=2\narrive(b)\ndepart(b)",
        expect!["event 2: departs from `b` when 1 of 2 have arrived"],
    );
    check(
        "t1\narrive(b)\narrive(b)",
        expect!["event 2: its thread arrived at `b` before and has not departed"],
    );
    check(
        "
t1         t2
parties(b)=2
arrive(b)
           arrive(b)
depart(b)
arrive(b)
depart(b)
",
        expect!["event 5: departs from `b` when 1 of 2 have arrived"],
    );
}

#[test]
fn rounds_of_a_barrier_may_overlap() {
    check(
        "
t1         t2         t3
parties(b)=2
arrive(b)
           arrive(b)
                      arrive(b)
depart(b)
arrive(b)
depart(b)
           depart(b)
",
        expect!["7 events"],
    );
    check("t1\narrive(b)\ndepart(b)\narrive(b)\ndepart(b)", expect!["4 events"]);
}

#[test]
fn a_semaphore_of_known_start_never_drops_below_zero() {
    check(
        "t1\nstart(s)=1\ntake(s)\ntake(s)",
        expect!["event 2: takes from semaphore `s`, which is at zero"],
    );
    check("t1\nstart(s)=1\ntake(s)\npost(s)\ntake(s)", expect!["3 events"]);
    check("t1\ntake(s)\ntake(s)", expect!["2 events"]);
}

#[test]
fn an_object_lives_once() {
    check("t1\nfree(o)", expect!["1 events"]);
    check("t1\nfree(o)\nfree(o)", expect!["event 2: object `o` was freed before"]);
    check("t1\nfree(o)\nalloc(o)", expect!["event 2: object `o` was alive before"]);
    check("t1\nalloc(o)\nalloc(o)", expect!["event 2: object `o` was alive before"]);
    check("t1\nalloc(o)\nfree(o)\nfree(o)", expect!["event 3: object `o` was freed before"]);
    check("t1\nalloc(o)\nfree(o)\nalloc(o)", expect!["event 3: object `o` was alive before"]);
    check("t1\nalloc(o)", expect!["1 events"]);
}

#[test]
fn a_block_ends_after_it_begins_in_the_same_thread() {
    check("t1\nend(a)", expect!["event 1: ends block `a`, which its thread has not begun"]);
    check(
        "
t1        t2
begin(a)
          end(a)
",
        expect!["event 2: ends block `a`, which its thread has not begun"],
    );
    check("t1\nbegin(a)\nbegin(b)\nend(a)\nbegin(a)", expect!["4 events"]);
}

#[test]
fn a_trace_may_be_empty() {
    check("", expect!["0 events"]);
    check("t1", expect!["0 events"]);
}

#[test]
fn every_event_speaks_of_things_that_have_names() {
    let reason = |thread, op, site| {
        let mut builder = builder("t1\nw(x)");
        builder.push(ThreadId::from_index(thread), op, SiteId::from_index(site));
        builder.finish().unwrap_err().to_string()
    };
    let write = |index| Op::Access(AccessOp::Write, VarId::from_index(index));
    expect!["event 2: its thread has no name in this trace"].assert_eq(&reason(1, write(0), 0));
    expect!["event 2: the operand of its `w` has no name in this trace"].assert_eq(&reason(
        0,
        write(1),
        0,
    ));
    expect!["event 2: its location has no name in this trace"].assert_eq(&reason(0, write(0), 1));
}

#[test]
fn the_first_event_that_cannot_have_happened_is_named() {
    let mut builder = TraceBuilder::new();
    let (thread, lock, site) = (builder.thread("t1"), builder.lock("m"), builder.site("here"));
    for op in [
        Op::Lock(LockOp::Acquire, lock),
        Op::Lock(LockOp::Release, lock),
        Op::Lock(LockOp::Release, lock),
        Op::Lock(LockOp::Release, lock),
    ] {
        builder.push(thread, op, site);
    }
    assert_eq!(builder.finish().unwrap_err().event.number(), 3);
}

#[test]
fn a_wake_without_a_notify_is_named_before_a_later_fault() {
    check(
        "t1\nwait(c)\nwake(c)\nrel(m)",
        expect!["event 2: wakes from `c`, but no notify since its wait is left to have woken it"],
    );
}

/// What a thread does to the one condition variable there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Wait,
    Wake,
    Timeout,
    Notify,
    NotifyAll,
}

/// Whether some choice of whom each notify woke explains every wake from place `at` on, when the
/// waits that began at the places `waiting` are not woken yet.
fn can_be_explained(actions: &[(usize, Action)], at: usize, waiting: &[usize]) -> bool {
    let Some(&(thread, deed)) = actions.get(at) else { return true };
    let end_of = |wait: usize| {
        let own = |&&(other, _): &&(usize, Action)| other == actions[wait].0;
        actions[wait + 1..].iter().find(own).map(|&(_, end)| end)
    };
    let wakeable = || waiting.iter().copied().filter(|&wait| end_of(wait) != Some(Action::Timeout));
    let without = |gone: &[usize]| -> Vec<usize> {
        waiting.iter().copied().filter(|wait| !gone.contains(wait)).collect()
    };
    let own = waiting.iter().copied().find(|&wait| actions[wait].0 == thread);
    match deed {
        Action::Wait => can_be_explained(actions, at + 1, &[waiting, &[at]].concat()),
        Action::Wake => own.is_none() && can_be_explained(actions, at + 1, waiting),
        Action::Timeout => can_be_explained(actions, at + 1, &without(&Vec::from_iter(own))),
        Action::NotifyAll => {
            can_be_explained(actions, at + 1, &without(&wakeable().collect::<Vec<_>>()))
        }
        Action::Notify => {
            wakeable().next().is_none() && can_be_explained(actions, at + 1, waiting)
                || wakeable().any(|woken| can_be_explained(actions, at + 1, &without(&[woken])))
        }
    }
}

fn is_accepted(actions: &[(usize, Action)]) -> bool {
    let mut builder = TraceBuilder::new();
    let (condition, site) = (builder.condition("c"), builder.site("here"));
    for &(thread, deed) in actions {
        let thread = builder.thread(["t1", "t2", "t3"][thread]);
        let op = match deed {
            Action::Wait => Op::Condition(ConditionOp::Wait, condition),
            Action::Wake => Op::Condition(ConditionOp::Wake, condition),
            Action::Timeout => Op::Condition(ConditionOp::Timeout, condition),
            Action::Notify => Op::Condition(ConditionOp::Notify, condition),
            Action::NotifyAll => Op::Condition(ConditionOp::NotifyAll, condition),
        };
        builder.push(thread, op, site);
    }
    builder.finish().is_ok()
}

#[test]
fn wakes_are_accepted_exactly_when_some_choice_of_the_woken_explains_them() {
    fn grow(actions: &mut Vec<(usize, Action)>, counts: &mut [usize; 2]) {
        let accepted = is_accepted(actions);
        assert_eq!(accepted, can_be_explained(actions, 0, &[]), "{actions:?}");
        counts[usize::from(accepted)] += 1;
        if actions.len() == 6 {
            return;
        }
        let known = actions.iter().map(|&(thread, _)| thread + 1).max().unwrap_or(0);
        for thread in 0..(known + 1).min(3) {
            let own = actions.iter().rev().find(|&&(other, _)| other == thread);
            let choices: &[Action] = match own {
                Some((_, Action::Wait)) => &[Action::Wake, Action::Timeout],
                _ => &[Action::Wait, Action::Notify, Action::NotifyAll],
            };
            for &deed in choices {
                actions.push((thread, deed));
                grow(actions, counts);
                actions.pop();
            }
        }
    }
    let mut counts = [0; 2];
    grow(&mut Vec::new(), &mut counts);
    assert!(counts.iter().all(|&count| count > 1_000), "{counts:?}");
}

#[test]
fn a_wait_may_ask_for_its_lock_before_it_takes_it_again() {
    let drawing = "
t1          t2
acq(m)
rel(m)
            notify(c)
wait(c)
wake(c)
req(m)
acq(m)
";
    assert!(try_trace(drawing).is_ok());
}

#[test]
fn indexes_that_name_nothing_are_refused_after_a_wait_too() {
    use reweave_trace::{ConditionOp, MemoryOrder, Op, OpCode, OpKind, TraceBuilder};
    let far = u32::MAX;
    let broken = [(far, 0, 0), (0, far, 0), (0, 0, far)];
    for (thread, operand, site) in broken {
        let mut builder = TraceBuilder::new();
        let (own, condition) = (builder.thread("t1"), builder.condition("c"));
        let (_, here) = (builder.var("x"), builder.site("1"));
        builder.push(own, Op::Condition(ConditionOp::Wait, condition), here);
        let code = OpCode::new(OpKind::Read, MemoryOrder::SeqCst);
        builder.push_indexes(thread, code, operand, site);
        let refused = builder.finish().expect_err("no such thing has a name");
        assert_eq!(refused.event.number(), 2, "{refused}");
    }
}
