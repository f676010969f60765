//! The clocks hold exactly the order of the definition, and the pairs that it leaves unordered are
//! races that can happen.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_oracle::{reachable, shb};
use reweave_order::VectorClock;
use reweave_order::shb::SchedulableHappensBefore;
use reweave_testkit::{Scope, Shape, corpus, soak, traces};
use reweave_trace::{Checker, ConditionOp, EventId, Goal, Op, OpKind, Reordering, Trace};

/// The first event pair, if any, that clocks and definition disagree on.
fn disagreement(trace: &Trace) -> Option<String> {
    let tested = shb::tested(trace);
    let mut clocks = SchedulableHappensBefore::new();
    for (late, _) in trace.events() {
        let clock = clocks.advance(trace, late);
        for (early, event) in trace.events() {
            let in_clock = trace.position(early) < clock.get(event.thread);
            let defined = early == late || tested.is_before(early, late);
            if in_clock != defined {
                let (early, late) = (early.number(), late.number());
                return Some(format!("{early} before {late}: {in_clock}, not {defined}"));
            }
        }
    }
    None
}

/// What each event is tested against.
fn tested(trace: &Trace) -> Vec<VectorClock> {
    let mut clocks = SchedulableHappensBefore::new();
    trace.events().map(|(id, _)| clocks.advance(trace, id).clone()).collect()
}

/// The conflicting accesses that are left unordered.
fn races(trace: &Trace, tested: &[VectorClock]) -> Vec<(EventId, EventId)> {
    let mut races = Vec::new();
    for ((second, late), clock) in trace.events().zip(tested) {
        let Some(var) = late.op.var() else { continue };
        for &first in trace.accesses(var).iter().take_while(|&&first| first < second) {
            let early = trace.event(first);
            let is_unordered = trace.position(first) >= clock.get(early.thread);
            if early.thread != late.thread && early.op.conflicts_with(late.op) && is_unordered {
                races.push((first, second));
            }
        }
    }
    races
}

/// The events that come before either access, to run as they were observed.
fn cut(trace: &Trace, tested: &[VectorClock], pair: (EventId, EventId)) -> Reordering {
    let clock_of = |event: EventId| &tested[event.number() as usize - 1];
    let mut clock = clock_of(pair.0).clone();
    clock.join(clock_of(pair.1));
    for access in [pair.0, pair.1] {
        clock.set(trace.event(access).thread, trace.position(access));
    }
    Reordering { base: clock.to_cut(), schedule: Vec::new() }
}

/// Whether each notify comes after the begin of every wait that it woke and, if it may have woken
/// more, after what ended each wait that was over by then.
fn orders_its_waits(trace: &Trace) -> bool {
    let order = shb::order(trace);
    let condition = |event| match trace.event(event).op {
        Op::Condition(
            ConditionOp::Wait | ConditionOp::Notify | ConditionOp::NotifyAll,
            condition,
        ) => Some(condition),
        _ => None,
    };
    let fine = |notify: EventId, op: Op| {
        let signals = trace.signals();
        let wakes_one = matches!(op, Op::Condition(ConditionOp::Notify, _))
            && !signals.woken(notify).is_empty();
        signals
            .wait_intervals()
            .iter()
            .filter(|interval| condition(interval.wait) == condition(notify))
            .all(|interval| {
                let is_known = |event: Option<EventId>| {
                    event.is_some_and(|event| order.is_before(event, notify))
                };
                if interval.notify == Some(notify) {
                    return is_known(Some(interval.begin));
                }
                wakes_one
                    || interval.begin > notify
                    || interval.is_spared_by(notify)
                    || is_known(interval.end)
                    || is_known(interval.notify)
            })
    };
    let mut notifies = trace.events().filter(|(_, e)| {
        matches!(e.op, Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _))
    });
    notifies.all(|(id, event)| fine(id, event.op))
}

/// The first race, if any, whose cut the checker refuses.
fn refused(trace: &Trace) -> Option<String> {
    let tested = tested(trace);
    let checker = Checker::new(trace);
    races(trace, &tested).into_iter().find_map(|pair| {
        let refusal = checker.check(&cut(trace, &tested, pair), &Goal::Race(pair.0, pair.1)).err();
        refusal.map(|refusal| format!("{pair:?}: {refusal:?}"))
    })
}

/// The first race, if any, that no correct reordering shows.
fn impossible(trace: &Trace) -> Option<(EventId, EventId)> {
    let possible = reachable::predictable_races(trace);
    races(trace, &tested(trace)).into_iter().find(|pair| !possible.contains(pair))
}

/// Lists the races, each with whether it is predictable and whether its cut shows it.
#[track_caller]
fn check(drawing: &str, expected: &Expect) {
    let trace = reweave_testkit::trace(drawing);
    assert_eq!(disagreement(&trace), None);
    let tested = tested(&trace);
    let possible = reachable::predictable_races(&trace);
    let mut lines = String::new();
    for pair in races(&trace, &tested) {
        let shown = Checker::new(&trace)
            .check(&cut(&trace, &tested, pair), &Goal::Race(pair.0, pair.1))
            .map_or("refused", |_| "shown");
        let verdict = if possible.contains(&pair) { "possible" } else { "impossible" };
        lines.push_str(&format!("{}-{} {verdict}, {shown}\n", pair.0.number(), pair.1.number()));
    }
    expected.assert_eq(&lines);
}

#[test]
fn accesses_around_a_read_and_its_writer_are_ordered() {
    check(
        "
        t1      t2
        w(x)
        w(y)
                r(y)
                r(x)
        ",
        &expect![[r#"
            2-3 possible, shown
        "#]],
    );
}

#[test]
fn a_read_races_with_the_write_that_it_saw_and_those_before() {
    check(
        "
        t1      t2      t3
        acq(m)
        w(x)
        rel(m)
                acq(m)
                w(x)
                rel(m)
                        r(x)
        ",
        &expect![[r#"
            2-7 possible, shown
            5-7 possible, shown
        "#]],
    );
}

#[test]
fn a_read_of_an_unknown_writer_comes_after_no_write() {
    check(
        "
        t1      t2
        w(x)
        w(y)
                r?(y)
                r(x)
        ",
        &expect![[r#"
            2-3 possible, shown
            1-4 possible, shown
        "#]],
    );
}

#[test]
fn an_atomic_read_comes_after_the_plain_write_it_saw() {
    check(
        "
        t1      t2
        w(y)
        w(x)
                ar(x)
                w(y)
        ",
        &expect![[r#"
            2-3 possible, shown
        "#]],
    );
}

#[test]
fn an_update_passes_on_what_it_learnt_from_the_write_it_saw() {
    check(
        "
        t1      t2      t3
        w(y)
        w(x)
                arw(x)
                        ar(x)
                        w(y)
        ",
        &expect![[r#"
            2-3 possible, shown
        "#]],
    );
}

#[test]
fn a_notify_that_no_edge_puts_after_the_wait_it_ended_may_make_a_pair_impossible() {
    check(
        "
        t1       t2
        w(x)
        wait(c)
                 notify(c)
                 w(x)
        ",
        &expect![[r#"
            1-4 impossible, refused
        "#]],
    );
}

#[test]
fn a_notify_that_no_edge_puts_after_a_timeout_may_need_more_than_the_cut() {
    check(
        "
        t1          t2         t3
        acq(m)
        rel(m)
        wait(c)
        timeout(c)
                    acq(m)
                    notify(c)
                    rel(m)
                    w(x)
                               w(x)
        acq(m)
        ",
        &expect![[r#"
            8-9 possible, refused
        "#]],
    );
}

#[test]
fn a_notify_under_the_lock_of_its_waits_is_ordered() {
    check(
        "
        t1       t2         t3
        w(y)
        acq(m)
        rel(m)
        wait(c)
                 acq(m)
                 notify(c)
                 rel(m)
        wake(c)
                 w(x)
                            w(x)
        acq(m)
                            w(y)
        ",
        &expect![[r#"
            9-10 possible, shown
            1-12 possible, shown
        "#]],
    );
}

/// Accesses with each family of other operations.
fn scopes() -> [Scope; 8] {
    use OpKind::*;
    [
        Scope::LOCKS.events(6),
        Scope::LOCKS.threads(3).things(2),
        Scope::new(&[Write, Read, AcquireShared, ReleaseShared, Acquire, Release]).events(6),
        Scope::FORKS.threads(3).events(5),
        Scope::new(&[Write, Read, Arrive, Depart]).events(6),
        Scope::new(&[Write, Read, Post, Take]).events(6),
        Scope::ATOMICS.threads(3).events(4),
        Scope::new(&[Write, Read, Alloc, Free, UnknownRead, AtomicUpdate]).events(5),
    ]
}

/// The same with conditions.
fn scopes_with_conditions() -> [Scope; 2] {
    use OpKind::*;
    [
        Scope::new(&[Write, Wait, Wake, Timeout, Notify, NotifyAll]).events(5),
        Scope::new(&[Write, Acquire, Release, Wait, Wake, Notify]).events(6),
    ]
}

#[test]
fn clocks_agree_with_the_definition_on_every_small_trace() {
    for scope in scopes().into_iter().chain(scopes_with_conditions()).chain([Scope::REST]) {
        scope.for_each(|trace| {
            let found = disagreement(trace);
            assert_eq!(found, None, "\n{}", reweave_testkit::draw(trace));
        });
    }
}

#[test]
fn every_race_of_every_small_trace_can_happen() {
    for scope in scopes() {
        scope.for_each(|trace| {
            assert_eq!(refused(trace), None, "\n{}", reweave_testkit::draw(trace));
            assert_eq!(impossible(trace), None, "\n{}", reweave_testkit::draw(trace));
        });
    }
}

#[test]
fn every_race_of_every_small_trace_with_conditions_can_happen_if_notifies_are_ordered() {
    for scope in scopes_with_conditions() {
        scope.for_each(|trace| {
            if !orders_its_waits(trace) {
                return;
            }
            assert_eq!(refused(trace), None, "\n{}", reweave_testkit::draw(trace));
            assert_eq!(impossible(trace), None, "\n{}", reweave_testkit::draw(trace));
        });
    }
}

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn clocks_agree_with_the_definition_on_everything(trace in traces(Shape::EVERYTHING)) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn clocks_agree_with_the_definition_among_locks(trace in traces(Shape::GENERAL)) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn clocks_agree_with_the_definition_on_atomics(trace in traces(Shape::ATOMICS)) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn every_race_is_predictable(trace in traces(Shape::SMALL)) {
        prop_assert_eq!(impossible(&trace), None);
    }

    #[test]
    fn every_race_among_other_operations_is_predictable_if_notifies_are_ordered(
        trace in traces(Shape::EVERYTHING.events(16)),
    ) {
        if orders_its_waits(&trace) {
            prop_assert_eq!(impossible(&trace), None);
        }
    }

    #[test]
    fn the_cut_of_every_race_shows_it_if_notifies_are_ordered(trace in traces(Shape::EVERYTHING)) {
        if orders_its_waits(&trace) {
            prop_assert_eq!(refused(&trace), None);
        }
    }

    #[test]
    fn the_cut_of_every_race_shows_it_among_atomics(trace in traces(Shape::ATOMICS)) {
        prop_assert_eq!(refused(&trace), None);
    }
}

#[test]
fn the_races_of_the_litmus_cases_can_happen() {
    for case in corpus::litmus() {
        let trace = case.trace();
        assert_eq!((disagreement(&trace), refused(&trace)), (None, None), "{}", case.name);
    }
}

#[test]
fn the_recorded_traces_have_as_many_racy_events_as_another_tool_finds() {
    for case in corpus::traces() {
        let trace = case.trace();
        let mut seconds: Vec<EventId> =
            races(&trace, &tested(&trace)).into_iter().map(|(_, second)| second).collect();
        seconds.dedup();
        let expected = case.expected["peer_racy_events"]["SHB"].as_u64();
        assert_eq!(Some(seconds.len() as u64), expected, "{}", case.name);
    }
}
