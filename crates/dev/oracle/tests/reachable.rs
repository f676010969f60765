//! The oracle finds what trying every sequence of events against the definition finds.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use proptest::prelude::*;
use reweave_base::Id;
use reweave_oracle::observed::acquired;
use reweave_oracle::reachable;
use reweave_oracle::reordering::Definition;
use reweave_testkit::{Scope, Shape, draw, soak, trace, traces};
use reweave_trace::{EventId, Goal, Trace, certify_order};

/// What every correct sequence of events shows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    /// Which events ran and the last write of each variable.
    states: BTreeSet<(Vec<EventId>, Vec<EventId>)>,
    races: BTreeSet<(EventId, EventId)>,
    deadlocks: BTreeSet<Vec<EventId>>,
}

fn ids(trace: &Trace) -> impl Iterator<Item = EventId> + Clone + use<> {
    (0..trace.len()).map(EventId::from_index)
}

fn state_after(trace: &Trace, schedule: &[EventId]) -> (Vec<EventId>, Vec<EventId>) {
    let mut ran = schedule.to_vec();
    ran.sort_unstable();
    let is_overwritten = |at: usize| {
        let var = |event: EventId| trace.event(event).op.var();
        let later = &schedule[at + 1..];
        later
            .iter()
            .any(|&other| trace.event(other).op.is_write() && var(other) == var(schedule[at]))
    };
    let writes = (0..schedule.len()).filter(|&at| trace.event(schedule[at]).op.is_write());
    let mut last: Vec<EventId> =
        writes.filter(|&at| !is_overwritten(at)).map(|at| schedule[at]).collect();
    last.sort_unstable();
    (ran, last)
}

fn try_all(
    trace: &Trace,
    definition: &Definition<'_>,
    schedule: &mut Vec<EventId>,
    shown: &mut Shown,
) {
    if !definition.is_correct(schedule) || !shown.states.insert(state_after(trace, schedule)) {
        return;
    }
    for first in ids(trace) {
        for second in ids(trace).filter(|&second| second > first) {
            if definition.shows(schedule, &Goal::Race(first, second)) {
                shown.races.insert((first, second));
            }
            if definition.shows(schedule, &Goal::Deadlock(vec![first, second])) {
                shown.deadlocks.insert(vec![first, second]);
            }
        }
    }
    for event in ids(trace) {
        schedule.push(event);
        try_all(trace, definition, schedule, shown);
        schedule.pop();
    }
}

/// Compares states, races, and deadlocks of two threads.
#[track_caller]
fn check(trace: &Trace) {
    let mut shown = Shown::default();
    try_all(trace, &Definition::new(trace), &mut Vec::new(), &mut shown);
    let found = reachable::predictable(trace, reachable::STATES_MAX);
    assert!(found.explored.complete);
    assert_eq!(found.explored.states_count, shown.states.len(), "{}", draw(trace));
    assert!(found.races.keys().eq(shown.races.iter()), "{}\n{found:?}\n{shown:?}", draw(trace));
    let of_two = found.deadlocks.keys().filter(|blocked| blocked.len() == 2);
    assert!(of_two.eq(shown.deadlocks.iter()), "{}\n{found:?}\n{shown:?}", draw(trace));
}

#[test]
fn finds_what_the_definition_shows_of_every_small_trace() {
    let scopes = [
        Scope::LOCKS.things(2).events(4),
        Scope::SHARED_LOCKS.events(5),
        Scope::FORKS.threads(3).events(4),
        Scope::TIMEOUTS.events(5),
        Scope::MONITORS.events(4),
        Scope::BARRIERS.threads(3).events(5),
        Scope { parties: Some(2), ..Scope::BARRIERS.threads(3).events(5) },
        Scope::SEMAPHORES.events(5),
        Scope { start: Some(1), ..Scope::SEMAPHORES.events(5) },
        Scope::ATOMICS.events(3),
        Scope::REST.events(3),
    ];
    for scope in scopes {
        scope.for_each(check);
    }
}

proptest! {
    #![proptest_config(soak::config(32))]

    #[test]
    fn finds_what_the_definition_shows_of_generated_traces(trace in traces(Shape::SMALL)) {
        check(&trace);
    }

    #[test]
    fn finds_what_the_definition_shows_of_nested_locks(trace in traces(Shape::NESTED.events(12))) {
        check(&trace);
    }

    #[test]
    fn finds_what_the_definition_shows_of_anything(trace in traces(Shape::EVERYTHING.events(12))) {
        check(&trace);
    }
}

#[test]
fn the_path_to_every_state_is_a_correct_reordering() {
    let trace = trace(
        "
t1       t2         t3
acq(m)
rel(m)
wait(c)
         acq(m)
         w(x)
         notify(c)
         rel(m)
wake(c)
acq(m)
r(x)
                    r(y)
",
    );
    let mut paths_count = 0;
    let explored = reachable::explore(&trace, 1_000, |state| {
        assert!(certify_order(&trace, state.path).is_ok());
        paths_count += 1;
        ControlFlow::Continue(())
    });
    assert!(explored.complete);
    assert_eq!(paths_count, explored.states_count);
}

#[test]
fn a_search_ends_at_its_limit_and_says_so() {
    let trace = trace("t1    t2    t3\nw(x)\nw(x)\n      w(y)\n      w(y)\n            w(z)\n");
    let all = reachable::explore(&trace, 1_000, |_| ControlFlow::Continue(()));
    assert_eq!((all.states_count, all.complete), (3 * 3 * 2, true));
    let some = reachable::explore(&trace, 4, |_| ControlFlow::Continue(()));
    assert!(!some.complete && some.states_count < all.states_count);
    let one = reachable::explore(&trace, 1_000, |_| ControlFlow::Break(()));
    assert_eq!((one.states_count, one.complete), (1, false));
}

#[test]
fn a_deadlock_of_three_names_each_blocked_acquire_once() {
    let trace = trace(
        "
t1      t2      t3
acq(a)
acq(b)
rel(b)
rel(a)
        acq(b)
        acq(c)
        rel(c)
        rel(b)
                acq(c)
                acq(a)
                rel(a)
                rel(c)
",
    );
    let found = reachable::predictable_deadlocks(&trace);
    let numbers: Vec<Vec<u32>> =
        found.iter().map(|set| set.iter().map(|event| event.number()).collect()).collect();
    assert_eq!(numbers, [[2, 6, 10]]);
    assert!(found.iter().flatten().all(|&event| acquired(trace.event(event).op).is_some()));
}
