//! Plans of drawn schedules, and that plans of random ones lead where the schedules do.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_base::Rng;
use reweave_oracle::reachable;
use reweave_testkit::{Drawn, Shape, events, soak, traces};
use reweave_trace::{AccessOp, ConditionOp, Module, TraceBuilder};

use super::*;

mod simulate;

/// `trace` with the origins that `origin` gives its events: a code address by its offset, and an
/// occurrence.
fn with_origins(trace: &Trace, mut origin: impl FnMut(EventId) -> Option<(u64, u32)>) -> Trace {
    let mut builder = TraceBuilder::new();
    builder.names().clone_from(trace.names());
    builder.declare(trace.declared().clone());
    let modules = ["/bin/bank", "/lib/ledger.so"].map(|path| {
        let module = Module { path: path.to_owned(), build_id: String::new() };
        builder.origins().add_module(module)
    });
    let mut codes: FxHashMap<u64, CodeId> = FxHashMap::default();
    for (id, event) in trace.events() {
        builder.push(event.thread, event.op, event.site);
        let Some((offset, occurrence)) = origin(id) else { continue };
        let module = modules[(offset % 2) as usize];
        let code = *codes
            .entry(offset)
            .or_insert_with(|| builder.origins().add_code(reweave_trace::Code { module, offset }));
        builder.origin(Origin { code, occurrence });
    }
    builder.finish().unwrap()
}

/// The trace that `drawing` shows, each event from a code address of its own, but those of `same`,
/// which are logged as one with the event before.
fn drawn(drawing: &str, same: &[u32]) -> Trace {
    let mut offset = 0;
    with_origins(&reweave_testkit::trace(drawing), |event| {
        offset =
            if same.contains(&event.number()) { offset } else { 2 * u64::from(event.number()) };
        Some((offset, 0))
    })
}

/// The plan in lines: its threads, its steps by event, its goal.
fn spelled(trace: &Trace, plan: &Plan) -> String {
    let mut lines = String::new();
    let waypoint = |at: &Waypoint, event: &EventId| {
        let code = plan.codes[at.code as usize];
        let path = &plan.modules[code.module as usize];
        let spelled = trace.spell(*event);
        format!("{} {path}+{} #{}  {spelled}\n", at.thread, code.offset, at.occurrence)
    };
    for (entry, thread) in plan.threads.iter().enumerate() {
        lines += &format!("thread {entry}: {} of {}\n", thread.child, thread.parent);
    }
    for (step, event) in plan.steps.iter().zip(&plan.step_events) {
        lines += &format!("run {}", waypoint(step, event));
    }
    for (goal, event) in plan.goals.iter().zip(&plan.goal_events) {
        lines += &format!("then {}", waypoint(goal, event));
    }
    let pairs: Vec<[u32; 2]> = plan.pairs.iter().map(|it| [it.first, it.second]).collect();
    lines + &format!("{:?} {pairs:?}\n", plan.goal_kind)
}

#[track_caller]
fn check(trace: &Trace, reordering: &Reordering, goal: &Goal, expected: &Expect) {
    let text = match Plan::new(trace, reordering, goal) {
        Ok(plan) => spelled(trace, &plan),
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&text);
}

const HIDDEN: &str = "
    main      t1      t2
    fork(t1)
    fork(t2)
              w(x)
              acq(m)
              rel(m)
                      acq(m)
                      rel(m)
                      w(x)
";

#[test]
fn a_race_is_two_threads_right_before_their_accesses() {
    let trace = drawn(HIDDEN, &[]);
    let [first, second] = [3, 8].map(|number| trace.numbered(number).unwrap());
    check(
        &trace,
        &Reordering::explicit(events(&[1, 2, 6, 7])),
        &Goal::Race(first, second),
        &expect![[r#"
            thread 0: 0 of 0
            thread 1: 0 of 0
            thread 2: 1 of 0
            run 0 /bin/bank+4 #0  main|fork(t2)
            run 2 /bin/bank+14 #0  t2|rel(m)
            then 1 /bin/bank+6 #0  t1|w(x)
            then 2 /bin/bank+16 #0  t2|w(x)
            Together [[0, 1]]
        "#]],
    );
}

#[test]
fn what_runs_first_runs_as_observed() {
    let trace = drawn(HIDDEN, &[]);
    let [write, other] = [8, 3].map(|number| trace.numbered(number).unwrap());
    let base = [2, 1].into_iter().collect();
    let reordering = Reordering { base, schedule: events(&[6, 7, 8]) };
    let goal = Goal::Order {
        chain: vec![other, write],
        absent: events(&[4]),
        free: Vec::new(),
        after: reweave_trace::After::Stops,
    };
    check(
        &trace,
        &reordering,
        &goal,
        &expect![[r#"
            thread 0: 0 of 0
            thread 1: 0 of 0
            thread 2: 1 of 0
            run 0 /bin/bank+4 #0  main|fork(t2)
            run 1 /bin/bank+6 #0  t1|w(x)
            run 2 /bin/bank+16 #0  t2|w(x)
            Passed [[1, 2]]
        "#]],
    );
}

const CROSSED: &str = "
    main      t1      t2
    fork(t1)
    fork(t2)
              acq(m)
              req(n)
              acq(n)
              rel(n)
              rel(m)
                      acq(n)
                      acq(m)
                      rel(m)
                      rel(n)
";

#[test]
fn a_deadlock_is_threads_that_wait_and_requests_are_no_steps() {
    let trace = drawn(CROSSED, &[]);
    check(
        &trace,
        &Reordering::explicit(events(&[1, 2, 3, 4, 8])),
        &Goal::Deadlock(events(&[5, 9])),
        &expect![[r#"
            thread 0: 0 of 0
            thread 1: 0 of 0
            thread 2: 1 of 0
            run 0 /bin/bank+4 #0  main|fork(t2)
            run 1 /bin/bank+6 #0  t1|acq(m)
            run 2 /bin/bank+16 #0  t2|acq(n)
            then 1 /bin/bank+10 #0  t1|acq(n)
            then 2 /bin/bank+18 #0  t2|acq(m)
            Blocked []
        "#]],
    );
    // A thread that is at its request is to wait for the acquire that comes next.
    let at_request = Goal::Deadlock(events(&[4, 9]));
    let plan =
        Plan::new(&trace, &Reordering::explicit(events(&[1, 2, 3, 8])), &at_request).unwrap();
    let goal = plan.goals[0];
    assert_eq!((plan.codes[goal.code as usize].offset, goal.occurrence), (10, 0));
}

#[test]
fn what_a_read_sees_is_a_step_that_is_an_access() {
    let trace = drawn(
        "
        main      t1      t2
        fork(t1)
        fork(t2)
                  w(x)
                  w(y)
                          w(x)
        r(x)
        ",
        &[],
    );
    let [read, write] = [6, 3].map(|number| trace.numbered(number).unwrap());
    let goal = Goal::Sees { read, write: Some(write), after: reweave_trace::After::Stops };
    check(
        &trace,
        &Reordering::explicit(events(&[1, 2, 5, 3, 4, 6])),
        &goal,
        &expect![[r#"
            thread 0: 0 of 0
            thread 1: 0 of 0
            thread 2: 1 of 0
            run 0 /bin/bank+4 #0  main|fork(t2)
            run 2 /bin/bank+10 #0  t2|w(x)
            run 1 /bin/bank+6 #0  t1|w(x)
            run 1 /bin/bank+8 #0  t1|w(y)
            run 0 /bin/bank+12 #0  main|r(x)
            Passed [[2, 4]]
        "#]],
    );
}

/// Two cells that t1 writes at once, and t2 reads.
const WIDE: &str = "
    main      t1      t2
    fork(t1)
    fork(t2)
              w(x)
              w(y)
                      r(x)
                      r(y)
";

#[test]
fn a_wide_access_that_races_in_its_second_cell_does_not_happen_at_all() {
    let trace = drawn(WIDE, &[4]);
    let [first, second] = [4, 6].map(|number| trace.numbered(number).unwrap());
    let race = Goal::Race(first, second);
    check(
        &trace,
        &Reordering::explicit(events(&[1, 2, 3, 5])),
        &race,
        &expect![[r#"
            the schedule switches threads in the middle of what the program does in one step, before event 4: it cannot be replayed at this granularity
        "#]],
    );
    // Here nobody sees that the first cell is not written.
    let trace = drawn(&WIDE.replace("r(x)", "r(z)"), &[4]);
    check(
        &trace,
        &Reordering::explicit(events(&[1, 2, 3, 5])),
        &race,
        &expect![[r#"
            thread 0: 0 of 0
            thread 1: 0 of 0
            thread 2: 1 of 0
            run 0 /bin/bank+4 #0  main|fork(t2)
            run 2 /bin/bank+10 #0  t2|r(z)
            then 1 /bin/bank+6 #0  t1|w(y)
            then 2 /bin/bank+12 #0  t2|r(y)
            Together [[0, 1]]
        "#]],
    );
}

#[test]
fn what_is_logged_as_one_is_brought_together_where_nobody_can_tell() {
    let trace = drawn(WIDE, &[4]);
    let passed = |numbers: &[u32], expected: &Expect| {
        let read = trace.numbered(5).unwrap();
        let goal = Goal::Reaches(vec![read]);
        check(&trace, &Reordering::explicit(events(numbers)), &goal, expected);
    };
    // The second cell is written earlier than scheduled, before a read of the first.
    passed(
        &[1, 2, 3, 5, 4],
        &expect![[r#"
            thread 0: 0 of 0
            thread 1: 0 of 0
            thread 2: 1 of 0
            run 0 /bin/bank+4 #0  main|fork(t2)
            run 1 /bin/bank+6 #0  t1|w(y)
            run 2 /bin/bank+10 #0  t2|r(x)
            Passed []
        "#]],
    );
    passed(
        &[1, 2, 3, 5, 6, 4],
        &expect![[r#"
            the schedule switches threads in the middle of what the program does in one step, before event 4: it cannot be replayed at this granularity
        "#]],
    );
}

#[test]
fn a_trace_that_does_not_tell_enough_is_refused_with_what_is_missing() {
    let plain = reweave_testkit::trace(HIDDEN);
    let [first, second] = [3, 8].map(|number| plain.numbered(number).unwrap());
    let goal = Goal::Race(first, second);
    let run = Reordering::explicit(events(&[1, 2, 6, 7]));
    check(
        &plain,
        &run,
        &goal,
        &expect![[r#"
            the trace does not say where in the program its events come from; record the program again with `reweave record`
        "#]],
    );
    let some = with_origins(&plain, |event| (event != first).then_some((event.number().into(), 0)));
    check(
        &some,
        &run,
        &goal,
        &expect![[r#"
            event 3 does not say where in the program it comes from
        "#]],
    );
    let trace = drawn("main  t1\nw(x)\n      w(x)\n", &[]);
    let [first, second] = [1, 2].map(|number| trace.numbered(number).unwrap());
    check(
        &trace,
        &Reordering::default(),
        &Goal::Race(first, second),
        &expect![[r#"
            nobody was seen to create thread `t1`, so it cannot be found again in another run
        "#]],
    );
}

/// `trace` as a recorder would have it: code addresses are few, each thread counts what it logs at
/// each of them, not all of that is in the trace, and by chance several events are logged as one.
fn recorded(trace: &Trace, are_wide: bool, rng: &mut Rng) -> Trace {
    let mut counts: FxHashMap<(ThreadId, u64), u32> = FxHashMap::default();
    let mut group: Vec<EventId> = Vec::new();
    let mut last = (0, 0);
    with_origins(trace, |event| {
        let joins = are_wide && rng.chance(60) && may_join(trace, &group, event);
        if !joins {
            group.clear();
            let thread = trace.event(event).thread;
            let offset = rng.below(3) as u64;
            let count = counts.entry((thread, offset)).or_default();
            let unseen = if rng.chance(30) { 1 } else { 0 };
            last = (offset, *count + unseen);
            *count = last.1 + 1;
        }
        group.push(event);
        Some(last)
    })
}

/// Whether `event` may be logged as one with those of `group`, which came right before it.
fn may_join(trace: &Trace, group: &[EventId], event: EventId) -> bool {
    let next = trace.event(event);
    let are_own = group.iter().all(|&before| trace.event(before).thread == next.thread);
    let ops: Vec<Op> = group.iter().map(|&before| trace.event(before).op).collect();
    let fits = match next.op {
        Op::Access(AccessOp::Read, _) => {
            ops.iter().all(|&op| matches!(op, Op::Access(AccessOp::Read, _)) && op != next.op)
        }
        Op::Access(AccessOp::Write, _) => {
            ops.iter().all(|&op| matches!(op, Op::Access(AccessOp::Write, _)) && op != next.op)
        }
        Op::Condition(ConditionOp::Wait, _) => matches!(ops[..], [Op::Lock(LockOp::Release, _)]),
        Op::Lock(LockOp::Acquire, _) => {
            matches!(ops[..], [Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _)])
        }
        _ => false,
    };
    !group.is_empty() && are_own && fits
}

/// The same schedule with as much of it as was observed so as its base.
fn with_base(trace: &Trace, schedule: &[EventId]) -> Reordering {
    let ascending = schedule.windows(2).take_while(|pair| pair[0] < pair[1]).count();
    let (start, rest) = schedule.split_at((ascending + 1).min(schedule.len()));
    let mut base = IndexVec::from_elem(0, trace.names().threads.len());
    start.iter().for_each(|&event| base[trace.event(event).thread] += 1);
    Reordering { base, schedule: rest.to_vec() }
}

/// How many plans led where they should, and how many could not be made.
#[derive(Debug, Default)]
struct Tally {
    met: usize,
    split: usize,
}

/// Replays every race and deadlock of `trace` that the oracle knows.
fn replay_all(trace: &Trace, tally: &mut Tally) -> Result<(), String> {
    let found = reachable::predictable(trace, 20_000);
    let races = found
        .races
        .iter()
        .map(|(&(first, second), schedule)| (Goal::Race(first, second), schedule));
    let deadlocks = found.deadlocks.values();
    let deadlocks = deadlocks.map(|it| (Goal::Deadlock(it.cycle.clone()), &it.schedule));
    for (goal, schedule) in races.chain(deadlocks) {
        for reordering in [Reordering::explicit(schedule.clone()), with_base(trace, schedule)] {
            match Plan::new(trace, &reordering, &goal) {
                Ok(plan) => {
                    let replayed = simulate::replay(trace, &plan, schedule);
                    replayed.map_err(|wrong| format!("{goal:?} {schedule:?}: {wrong}"))?;
                    tally.met += 1;
                }
                Err(PlanError::Split(_)) => tally.split += 1,
                Err(PlanError::UnknownThread(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    Ok(())
}

const SHAPE: Shape = Shape { forks: true, conditions: 1, events: 16, ..Shape::SMALL };

proptest! {
    #![proptest_config(soak::config(200))]

    #[test]
    fn plans_lead_where_their_schedules_do(drawn in traces(SHAPE), seed: u64) {
        let trace = recorded(&drawn, true, &mut Rng::new(seed));
        let replayed = replay_all(&trace, &mut Tally::default());
        prop_assert!(replayed.is_ok(), "{replayed:?} {:?}", Drawn(trace));
    }

    #[test]
    fn a_schedule_of_events_that_are_logged_one_by_one_can_always_be_replayed(
        drawn in traces(Shape { shared: true, reentrant: true, ..SHAPE }),
        seed: u64,
    ) {
        let trace = recorded(&drawn, false, &mut Rng::new(seed));
        let mut tally = Tally::default();
        let replayed = replay_all(&trace, &mut tally);
        prop_assert!(replayed.is_ok(), "{replayed:?}");
        prop_assert_eq!(tally.split, 0);
    }

    #[test]
    fn plans_of_any_correct_reordering_run_it(drawn in traces(RICH), seed: u64) {
        let mut rng = Rng::new(seed);
        let trace = recorded(&drawn, true, &mut rng);
        let schedule = reachable::walk(&trace, &[], &mut rng);
        let last = trace.names().threads.entries().filter_map(|(thread, _)| {
            schedule.iter().rev().copied().find(|&event| trace.event(event).thread == thread)
        });
        let goal = Goal::Reaches(last.collect());
        for reordering in [Reordering::explicit(schedule.clone()), with_base(&trace, &schedule)] {
            match Plan::new(&trace, &reordering, &goal) {
                Ok(plan) => {
                    let replayed = simulate::replay(&trace, &plan, &schedule);
                    prop_assert!(replayed.is_ok(), "{replayed:?} {schedule:?}");
                }
                Err(PlanError::Split(_)) => {}
                Err(PlanError::NoOrigins) if trace.is_empty() => {}
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }
}

#[test]
fn a_thread_that_woke_and_cannot_take_its_lock_again_has_not_woken_for_replay() {
    // t1 wakes while t2 has the lock, which is as far as the schedule goes.
    let trace = drawn(
        "
        main      t1        t2
        fork(t1)
        fork(t2)
                  acq(m)
                  rel(m)
                  wait(c)
        notify(c)
                  wake(c)
                  acq(m)
                  rel(m)
                            acq(m)
                            w(x)
        w(x)
        ",
        &[5, 8],
    );
    let [first, second] = [11, 12].map(|number| trace.numbered(number).unwrap());
    check(
        &trace,
        &Reordering::explicit(events(&[1, 2, 3, 4, 5, 10, 6, 7])),
        &Goal::Race(first, second),
        &expect![[r#"
            thread 0: 0 of 0
            thread 1: 0 of 0
            thread 2: 1 of 0
            run 0 /bin/bank+4 #0  main|fork(t2)
            run 1 /bin/bank+8 #0  t1|wait(c)
            run 2 /bin/bank+20 #0  t2|acq(m)
            run 0 /bin/bank+12 #0  main|notify(c)
            then 2 /bin/bank+22 #0  t2|w(x)
            then 0 /bin/bank+24 #0  main|w(x)
            Together [[0, 1]]
        "#]],
    );
}

/// Every operation, all threads but the first created by another.
const RICH: Shape = Shape { events: 60, ..Shape::EVERYTHING };

#[test]
fn most_schedules_of_wide_accesses_can_be_replayed() {
    let mut tally = Tally::default();
    for seed in 0..100 {
        let trace = reweave_testkit::generate::random(SHAPE, seed);
        let trace = recorded(&trace, true, &mut Rng::new(seed));
        replay_all(&trace, &mut tally).unwrap();
    }
    assert!(tally.met > 200 && tally.split > 0 && tally.met > 5 * tally.split, "{tally:?}");
}
