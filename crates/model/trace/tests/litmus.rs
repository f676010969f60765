//! The oracle finds in every litmus case what is expected, and the checker accepts its schedules.

use reweave_oracle::reachable::{self, Predictable};
use reweave_testkit::corpus::{self, Case};
use reweave_trace::{Checker, EventId, Goal, Reordering, Trace};

fn numbers(events: &[EventId]) -> Vec<u32> {
    events.iter().map(|event| event.number()).collect()
}

#[track_caller]
fn check_schedules(name: &str, trace: &Trace, found: &Predictable) {
    let checker = Checker::new(trace);
    for (&(first, second), schedule) in &found.races {
        let reordering = Reordering::explicit(schedule.clone());
        let certificate = checker.check(&reordering, &Goal::Race(first, second));
        assert_eq!(certificate.map(|found| found.events_count), Ok(schedule.len()), "{name}");
    }
    for deadlock in found.deadlocks.values() {
        let reordering = Reordering::explicit(deadlock.schedule.clone());
        let certificate = checker.check(&reordering, &Goal::Deadlock(deadlock.cycle.clone()));
        assert!(certificate.is_ok(), "{name}: {certificate:?}");
    }
}

#[track_caller]
fn check(case: &Case) {
    let trace = case.trace();
    let found = reachable::predictable(&trace, reachable::STATES_MAX);
    assert!(found.explored.complete, "{}", case.name);
    let races: Vec<Vec<u32>> =
        found.races.keys().map(|&(first, second)| numbers(&[first, second])).collect();
    assert_eq!(races, case.numbers("predictable_races"), "{}", case.name);
    let deadlocks: Vec<Vec<u32>> = found.deadlocks.keys().map(|set| numbers(set)).collect();
    assert_eq!(deadlocks, case.numbers("predictable_deadlocks"), "{}", case.name);
    check_schedules(&case.name, &trace, &found);
}

#[test]
fn every_litmus_case_has_the_expected_races_and_deadlocks() {
    let all = corpus::litmus();
    assert_eq!(all.len(), 37);
    all.iter().for_each(check);
}

#[test]
fn recorded_traces_have_the_races_and_deadlocks_of_an_exhaustive_search() {
    let mut searched = Vec::new();
    for case in corpus::traces() {
        let expected = &case.expected["exhaustive"];
        if expected["complete"] != true {
            continue;
        }
        let trace = case.trace();
        let found = reachable::predictable(&trace, reachable::STATES_MAX);
        assert!(found.explored.complete, "{}", case.name);
        assert_eq!(expected["predictable_race_pairs"], found.races.len(), "{}", case.name);
        let deadlocks: Vec<Vec<u32>> = found.deadlocks.keys().map(|set| numbers(set)).collect();
        assert_eq!(deadlocks, corpus::numbers(&expected["predictable_deadlocks"]), "{}", case.name);
        check_schedules(&case.name, &trace, &found);
        searched.push(case.name);
    }
    assert_eq!(searched, ["spd/Bensalem.std", "spd/Deadlock.std", "spd/StringBuffer.std"]);
}
