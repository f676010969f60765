//! The racy variables are those of the races that the definition gives.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_oracle::hb;
use reweave_races::epoch;
use reweave_testkit::{Scope, Shape, corpus, soak, traces};
use reweave_trace::{EventId, OpKind, Trace, VarId};

/// The variables with two conflicting accesses of different threads, neither of which happens
/// before the other.
fn expected(trace: &Trace) -> Vec<VarId> {
    let order = hb::order(trace);
    let is_race = |&first: &EventId, &second: &EventId| {
        let (early, late) = (trace.event(first), trace.event(second));
        early.thread != late.thread
            && early.op.conflicts_with(late.op)
            && !order.is_before(first, second)
    };
    let is_racy = |&var: &VarId| {
        let accesses = trace.accesses(var);
        let firsts = |at: usize| accesses[..at].iter();
        accesses.iter().enumerate().any(|(at, late)| firsts(at).any(|early| is_race(early, late)))
    };
    trace.names().vars.entries().map(|(var, _)| var).filter(is_racy).collect()
}

#[track_caller]
fn check(drawing: &str, racy: &Expect) {
    let trace = reweave_testkit::trace(drawing);
    let vars = epoch::racy_variables(&trace);
    assert_eq!(vars, expected(&trace));
    let names: Vec<&str> = vars.iter().map(|&var| trace.names().vars.name(var)).collect();
    racy.assert_eq(&names.join(" "));
}

#[test]
fn one_racy_variable_says_nothing_of_another() {
    check(
        "
        t1      t2
        w(x)
        acq(m)
        w(y)
        rel(m)
                w(x)
                acq(m)
                w(y)
                rel(m)
        ",
        &expect!["x"],
    );
}

#[test]
fn a_write_races_with_any_of_the_reads_done_at_once() {
    check(
        "
        t1        t2      t3      t4
        w(x)
        w(y)
        fork(t2)
        fork(t3)
                  r(x)
                  r(y)
                          r(x)
                          r(y)
        join(t3)
        w(x)
        join(t2)
        w(y)
        ",
        &expect!["x"],
    );
}

#[test]
fn what_comes_after_a_release_is_not_passed_on_by_it() {
    check(
        "
        t1      t2
        acq(m)
        w(x)
        rel(m)
        w(y)
                acq(m)
                w(x)
                w(y)
                rel(m)
        ",
        &expect!["y"],
    );
}

#[test]
fn an_atomic_write_is_passed_on_by_itself() {
    check(
        "
        t1      t2
        aw(x)
                ar(x)
                w(x)
        aw(y)
                w(y)
        ",
        &expect!["y"],
    );
}

#[test]
fn atomic_accesses_race_with_plain_ones_alone() {
    check(
        "
        t1      t2      t3
        aw(x)
                aw(x)
                arw(x)
        ar(y)
                r(y)
                ar(z)
                        w(z)
        ",
        &expect!["z"],
    );
}

#[test]
fn the_racy_variables_of_every_small_trace_are_those_of_the_definition() {
    use OpKind::*;
    let scopes = [
        Scope::LOCKS.events(6),
        Scope::LOCKS.threads(3).things(2).events(5),
        Scope::new(&[Write, Read]).threads(3).events(6),
        Scope::new(&[Write, Read, AcquireShared, ReleaseShared, Acquire, Release]).events(6),
        Scope::FORKS.threads(3).events(6),
        Scope::new(&[Write, Read, Wait, Wake, Timeout, Notify, NotifyAll]).events(5),
        Scope::new(&[Write, Read, Arrive, Depart]).events(6),
        Scope::new(&[Write, Read, Post, Take]).events(6),
        Scope::ATOMICS.threads(3).events(4),
        Scope::new(&[Write, Read, AtomicWrite, AtomicRead]).threads(3).events(5),
        Scope::new(&[Write, Alloc, Free, Request, Fence]).events(5),
    ];
    for scope in scopes {
        scope.for_each(|trace| {
            let racy = epoch::racy_variables(trace);
            assert_eq!(racy, expected(trace), "\n{}", reweave_testkit::draw(trace));
        });
    }
}

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn racy_variables_are_those_of_the_definition(trace in traces(Shape::EVERYTHING)) {
        prop_assert_eq!(epoch::racy_variables(&trace), expected(&trace));
    }

    #[test]
    fn racy_variables_are_those_of_the_definition_among_many(
        trace in traces(Shape { vars: 20, forks: true, ..Shape::LOCKS }),
    ) {
        prop_assert_eq!(epoch::racy_variables(&trace), expected(&trace));
    }

    #[test]
    fn racy_variables_are_those_of_the_definition_among_atomics(
        trace in traces(Shape { vars: 8, ..Shape::ATOMICS }),
    ) {
        prop_assert_eq!(epoch::racy_variables(&trace), expected(&trace));
    }
}

#[test]
fn the_recorded_traces_have_as_many_racy_variables_as_the_definition_gives() {
    for case in corpus::traces() {
        let count = epoch::racy_variables(&case.trace()).len() as u64;
        let expected = case.expected["definition"]["HB"]["vars"].as_u64();
        assert_eq!(Some(count), expected, "{}", case.name);
    }
}

#[test]
fn the_litmus_cases_have_the_racy_variables_of_their_races() {
    for case in corpus::litmus() {
        let trace = case.trace();
        assert_eq!(epoch::racy_variables(&trace), expected(&trace), "{}", case.name);
    }
}
