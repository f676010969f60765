//! The first race by CP, and those that follow it with it as a hard edge, can happen.

use proptest::prelude::*;
use reweave_oracle::{cp, reachable};
use reweave_order::cp::first_races;
use reweave_testkit::{Scope, Shape, soak, traces};
use reweave_trace::{EventId, Trace};

/// More than any trace here has.
const ALL: usize = 1_000;

fn numbers(races: &[(EventId, EventId)]) -> Vec<(u32, u32)> {
    races.iter().map(|(early, late)| (early.number(), late.number())).collect()
}

#[track_caller]
fn check(figure: &str, expected: &[(u32, u32)]) {
    let trace = reweave_testkit::trace(figure);
    assert_eq!(numbers(&first_races(&trace, ALL)), expected);
}

#[test]
fn of_one_second_access_the_latest_first_access_is_reported() {
    // The edge 2-3 puts 1 before 3, too, since 2 was after it.
    check(
        "
        t1   t2
        w(x)
        r(x)
             w(x)
        ",
        &[(2, 3)],
    );
}

#[test]
fn what_a_report_orders_is_not_reported() {
    // 1-4 and 2-3 are both unordered; with 2-3 as an edge nothing is.
    check(
        "
        t1   t2
        w(x)
        w(y)
             r(y)
             r(x)
        ",
        &[(2, 3)],
    );
}

#[test]
fn a_race_that_no_report_orders_follows() {
    check(
        "
        t1   t2   t3
        w(x)
             r(x)
                  r(x)
        ",
        &[(1, 2), (1, 3)],
    );
}

#[test]
fn no_more_are_reported_than_asked_for() {
    let trace = reweave_testkit::trace(
        "
        t1   t2   t3
        w(x)
             r(x)
                  r(x)
        ",
    );
    assert_eq!(numbers(&first_races(&trace, 1)), [(1, 2)]);
    assert_eq!(first_races(&trace, 0), []);
}

#[test]
fn the_first_report_of_a_litmus_case_is_its_first_race() {
    for case in reweave_testkit::corpus::litmus() {
        let expected = case.numbers("cp_races");
        let first = expected.iter().min_by_key(|pair| (pair[1], u32::MAX - pair[0]));
        let found = numbers(&first_races(&case.trace(), 1));
        let found = found.first().map(|&(early, late)| vec![early, late]);
        assert_eq!(found.as_ref(), first, "{}", case.name);
    }
}

#[test]
fn reports_agree_with_the_definition_on_every_small_trace() {
    let scopes = [Scope::LOCKS.events(6), Scope::FORKS.threads(3), Scope::ATOMICS.threads(3)];
    for scope in scopes {
        scope.for_each(|trace| {
            let (found, defined) = (first_races(trace, ALL), cp::first_races(trace, ALL));
            assert_eq!(found, defined, "\n{}", reweave_testkit::draw(trace));
        });
    }
}

/// Whether each section ends before those do that it was opened in.
fn is_well_nested(trace: &Trace) -> bool {
    let sections = || trace.sections().entries().map(|(_, section)| section);
    sections().all(|inner| {
        let end = inner.release.map_or(u32::MAX, EventId::number);
        sections().filter(|outer| outer.thread == inner.thread).all(|outer| {
            let outer_end = outer.release.map_or(u32::MAX, EventId::number);
            let is_around = outer.acquire < inner.acquire && inner.acquire.number() < outer_end;
            !is_around || end <= outer_end
        })
    })
}

/// The reports that cannot happen, in a trace that cannot deadlock.
fn unsound(trace: &Trace) -> Vec<(EventId, EventId)> {
    let mut reports = first_races(trace, ALL);
    if reports.is_empty() {
        return reports;
    }
    let predictable = reachable::predictable(trace, reachable::STATES_MAX);
    assert!(predictable.explored.complete);
    if !predictable.deadlocks.is_empty() {
        return Vec::new();
    }
    reports.retain(|pair| !predictable.races.contains_key(pair));
    reports
}

#[test]
fn each_report_of_a_small_trace_can_happen_or_a_deadlock_can() {
    for scope in [Scope::LOCKS.events(7), Scope::LOCKS.threads(3).things(2).events(5)] {
        scope.for_each(|trace| {
            if is_well_nested(trace) {
                assert_eq!(unsound(trace), [], "\n{}", reweave_testkit::draw(trace));
            }
        });
    }
}

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn reports_agree_with_the_definition(trace in traces(Shape::EVERYTHING.events(40))) {
        prop_assert_eq!(first_races(&trace, 5), cp::first_races(&trace, 5));
    }

    #[test]
    fn each_report_can_happen_or_a_deadlock_can(
        trace in traces(Shape { locks: 3, ..Shape::SMALL.events(18) }),
    ) {
        if !is_well_nested(&trace) {
            return Ok(());
        }
        prop_assert_eq!(unsound(&trace), []);
    }
}
