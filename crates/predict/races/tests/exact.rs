//! Exact races are those of all correct reorderings; the others find a part of them.

use std::collections::BTreeSet;

use crate::common;

use proptest::prelude::*;
use reweave_analysis::{Counter, Guarantee, Identities, Settings, Subject, Truncation};
use reweave_base::FxHashSet;
use reweave_oracle::{memory_orders, reachable};
use reweave_races::exact::{self, Decided, EXACT};
use reweave_races::relation::{self, Relation};
use reweave_races::{Race, candidates};
use reweave_testkit::{Scope, Shape, corpus, draw, soak, traces};
use reweave_trace::{EventId, Trace};

use common::{findings, numbers, run};

/// How many states the oracle may visit.
const STATES_MAX: usize = 300_000;

/// Of longer traces with weak memory orders the oracle would not get to the end.
const WEAK_EVENTS_MAX: usize = 11;

/// What is wrong with the exact races of `trace`, if anything is.
fn fault(trace: &Trace) -> Option<String> {
    let found = reachable::predictable(trace, STATES_MAX);
    if !found.explored.complete {
        return None;
    }
    let mut expected: BTreeSet<(EventId, EventId)> =
        found.races.into_keys().map(|(first, second)| (second, first)).collect();
    let is_weak = trace.synchronization().is_weak();
    let is_short = trace.len() <= WEAK_EVENTS_MAX;
    // Without weak atomics, what nothing orders can come together, but for conditions. The shorter
    // traces are too many to show it of all.
    let comes_together = trace.names().conditions.is_empty() && trace.len() > 7;
    if is_short && (is_weak || comes_together) {
        let unordered = memory_orders::unordered_pairs(trace).into_iter();
        expected.extend(unordered.map(|(first, second)| (second, first)));
    }
    let decided = exact::races(trace);
    let pairs = decided.pairs.iter().map(|race| (race.second, race.first));
    let is_right = match is_weak && !is_short {
        true => expected.is_subset(&pairs.collect()),
        false => pairs.eq(expected.iter().copied()) && decided.unknown == 0,
    };
    if !is_right {
        return Some(format!("{decided:?}, not {expected:?}\n{}", draw(trace)));
    }
    let preserving = exact::preserving_races(trace);
    let all = candidates::candidates(trace);
    if !preserving.pairs.iter().all(|race| decided.pairs.contains(race))
        || !is_weak && !decided.pairs.iter().all(|race| all.contains(race))
    {
        return Some(format!("{preserving:?}\n{}", draw(trace)));
    }
    let (findings, _) = findings(&EXACT, trace, true);
    let unproven = findings.iter().find(|finding| finding.evidence.proof().is_none());
    unproven.map(|finding| format!("{finding:?}\n{}", draw(trace)))
}

#[test]
fn exact_races_are_those_of_every_reordering_of_every_small_trace() {
    let scopes = [
        Scope::LOCKS.events(7),
        Scope::LOCKS.threads(3).things(2).events(5),
        Scope::SHARED_LOCKS.threads(3).events(4),
        Scope::FORKS.threads(3).events(5),
        Scope::MONITORS.events(6),
        Scope::SEMAPHORES.events(5),
        Scope::ATOMICS.threads(3).events(4),
    ];
    for scope in scopes {
        scope.for_each(|trace| assert_eq!(fault(trace).unwrap_or_default(), ""));
    }
}

#[test]
fn the_litmus_cases_have_the_races_listed_for_them() {
    for case in corpus::litmus() {
        let trace = case.trace();
        let found = numbers(&exact::races(&trace).pairs);
        assert_eq!(found, case.numbers("predictable_races"), "{}", case.name);
        let found = numbers(&exact::preserving_races(&trace).pairs);
        assert_eq!(found, case.numbers("syncp_races"), "{}", case.name);
        let found = findings(&EXACT, &trace, false).0;
        assert!(found.iter().all(|it| it.guarantee() == Guarantee::Witnessed), "{}", case.name);
    }
}

/// How many different second events there are among `races`.
fn second_events(races: &[Race]) -> usize {
    let mut events: Vec<EventId> = races.iter().map(|race| race.second).collect();
    events.sort_unstable();
    events.dedup();
    events.len()
}

#[test]
fn every_candidate_of_every_recorded_trace_is_decided_and_none_is_missed() {
    for case in corpus::traces() {
        let trace = case.trace();
        let decided = exact::races(&trace);
        assert_eq!((decided.unknown, decided.truncated), (0, None), "{}", case.name);
        let preserving = exact::preserving_races(&trace);
        let schedulable = relation::pairs(&trace, Relation::Shb, None);
        let exact = second_events(&decided.pairs);
        assert_eq!(exact as u64, decided.counts.second_events, "{}", case.name);
        assert!(second_events(&preserving.pairs) <= exact, "{}", case.name);
        assert!(second_events(&schedulable) <= exact, "{}", case.name);
        for race in preserving.pairs.iter().chain(&schedulable) {
            assert!(decided.pairs.contains(race), "{}: {race:?}", case.name);
        }
        if let Some(expected) = case.expected["exhaustive"]["predictable_race_pairs"].as_u64()
            && case.expected["exhaustive"]["complete"] == true
        {
            assert_eq!(decided.counts.pairs, expected, "{}", case.name);
        }
    }
}

#[test]
fn findings_are_one_a_location_pair_and_variable_and_each_is_certified() {
    for case in corpus::traces() {
        let trace = case.trace();
        let (found, coverage) = findings(&EXACT, &trace, false);
        let identities = Identities::new(&trace);
        let instances: FxHashSet<_> = found.iter().map(|it| identities.instances(it)).collect();
        assert_eq!(instances.len(), found.len(), "{}", case.name);
        let locations: FxHashSet<_> = found.iter().map(|it| it.locations(&trace)).collect();
        assert_eq!(
            Some(locations.len() as u64),
            coverage.counter(Counter::LocationPairs),
            "{}",
            case.name
        );
        for finding in &found {
            assert_eq!(finding.guarantee(), Guarantee::Witnessed, "{}", case.name);
            let proof = finding.evidence.proof().unwrap();
            let subject = Subject::new(&trace);
            let again = subject.prove(proof.reordering().clone(), proof.goal().clone());
            assert!(again.is_ok(), "{}", case.name);
        }
    }
}

#[test]
fn figures_of_recorded_traces_are_as_measured_before() {
    let expected = [
        ("focs/bubblesort.std", 374),
        ("focs/clean.std", 110),
        ("focs/ftpserver.std", 85),
        ("focs/jigsaw.std", 6),
        ("focs/moldyn.std", 103),
        ("ibm2003/bubblesort.std", 154),
    ];
    for case in corpus::traces() {
        if let Some((_, second_events)) = expected.iter().find(|(name, _)| *name == case.name) {
            let decided = exact::races(&case.trace());
            assert_eq!(decided.counts.second_events, *second_events, "{}", case.name);
        }
    }
}

fn at_any_number_of_threads(trace: &Trace) -> [String; 3] {
    [1, 2, 5].map(|threads| {
        let settings = Settings { all: true, threads, ..Settings::default() };
        format!("{:?}", run(&EXACT, trace, &settings))
    })
}

#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    for case in corpus::traces() {
        let trace = case.trace();
        // Every pair of the longer ones is a proof of its own.
        if trace.len() > 6_000 {
            continue;
        }
        let [one, two, five] = at_any_number_of_threads(&trace);
        assert!(one == two && two == five, "{}", case.name);
    }
}

#[test]
fn a_thousand_instances_of_a_location_pair_are_enough() {
    let lines = (0..2_000).map(|_| "T1|w(x)|a\nT2|w(x)|b\n");
    let trace = reweave_testkit::std(&lines.collect::<String>());
    let (found, coverage) = findings(&EXACT, &trace, false);
    assert_eq!(found.len(), 1);
    assert!(found[0].count >= exact::PROVEN_MAX);
    assert_eq!(coverage.counter(Counter::PairsExact), Some(0));
    assert!(coverage.is_complete());
}

#[test]
fn location_pairs_beyond_a_hundred_thousand_are_only_counted() {
    let lines = (0..400).map(|at| format!("T1|w(x)|a{at}\nT2|w(x)|b{at}\n"));
    let trace = reweave_testkit::std(&lines.collect::<String>());
    let (found, coverage) = findings(&EXACT, &trace, false);
    let unlisted = coverage.counter(Counter::Unlisted).unwrap_or(0);
    assert!(found.len() >= 100_000 && unlisted > 0, "{} and {unlisted}", found.len());
    assert_eq!(found.len() as u64 + unlisted, 160_000);
    // A larger budget would list no more.
    assert_eq!(coverage.truncated, Some(Truncation::Capped));
    assert_eq!(coverage.counter(Counter::UnlistedExact), None);
}

#[test]
fn odd_traces_get_right_answers() {
    let counts = |text: &str| exact::races(&reweave_testkit::std(text)).counts.pairs;
    assert_eq!(counts(""), 0);
    assert_eq!(counts("T1|w(x)|1\nT1|r(x)|1\n"), 0);
    assert_eq!(counts("T1|acq(l)|1\nT1|w(x)|1\nT2|w(x)|1\n"), 1);
    let threads: String = (0..10_000).map(|at| format!("T{at}|w(x{})|1\n", at / 2)).collect();
    assert_eq!(counts(&threads), 5_000);
    let nested: String = (0..100)
        .map(|at| format!("T1|acq(l{at})|1\n"))
        .chain(["T1|w(x)|2\n".to_owned()])
        .chain((0..100).rev().map(|at| format!("T1|rel(l{at})|1\n")))
        .chain((0..100).map(|at| format!("T2|acq(l{at})|1\nT2|rel(l{at})|1\n")))
        .chain(["T2|w(x)|3\n".to_owned()])
        .collect();
    assert_eq!(counts(&nested), 1);
}

#[test]
fn what_once_gave_other_races_gives_those_of_every_reordering() {
    let upgraded = "
        t1       t2       t3
                          acq(l2)
                          racq(l1)
                          r(x1)
                          acq(l1)
                          r(x1)
                          rel(l2)
                 acq(l2)
                 rel(l2)
        acq(l2)
                 w(x1)
        r(x1)
                 w(x1)
        w(x1)
        w(x1)
        w(x1)
    ";
    let counted = "
        t1        t2        t3          t4
        start(s1)=1
        parties(b1)=2
        fork(t2)
        fork(t3)
        racq(l2)
                  fork(t4)
                            arrive(b2)
                            w(x1)
                            post(s1)
                                        racq(l1)
                                        take(s1)
                                        acq(l1)
                                        r(x1)
    ";
    for figure in [upgraded, counted] {
        assert_eq!(fault(&reweave_testkit::trace(figure)), None, "{figure}");
    }
}

#[test]
fn so_does_what_once_did_by_memory_orders() {
    // A plain read comes after the write that it saw, but not after what that passes on.
    let continued = "
        t1               t2
                         arw.release(x1)
        arw.relaxed(x1)
        r(x1)
        w(x1)
    ";
    // A notify comes after the release with which a wait that it woke began.
    let woken = "
        t1             t2
        acq(l1)
        w(x1)
        aw.relaxed(x2)
        rel(l1)
        wait(c1)
                       notify(c1)
        wake(c1)
        acq(l1)
                       ar.relaxed(x2)
                       r(x1)
    ";
    // Another thread's post may have been taken, so what came before it comes before.
    let posted = "
        t1             t2             t3
                                      post(s1)
        w(x1)
        post(s1)
        aw.relaxed(x2)
                       ar.relaxed(x2)
                       take(s1)
                       r(x1)
    ";
    // What a read of an unknown writer saw orders nothing.
    let unknown = "
        t1             t2
        w(x1)
        w(x2)
        aw.relaxed(x3)
                       ar.relaxed(x3)
                       r?(x2)
                       r(x1)
    ";
    let unknown_before = "
        t1             t2
        w(x1)
        w(x2)
        aw.relaxed(x3)
                       r?(x2)
                       ar.relaxed(x3)
                       r(x1)
    ";
    for figure in [continued, woken, posted, unknown, unknown_before] {
        assert_eq!(fault(&reweave_testkit::trace(figure)), None, "{figure}");
    }
}

macro_rules! exact_races_are_right {
    ($($name:ident: $shape:expr;)+) => {
        proptest! {
            #![proptest_config(soak::config(100))]
            $(
                #[test]
                fn $name(trace in traces($shape)) {
                    prop_assert_eq!(fault(&trace).unwrap_or_default(), "");
                }
            )+
        }
    };
}

exact_races_are_right! {
    exact_races_are_right_on_small_traces: Shape::SMALL;
    exact_races_are_right_on_general_traces: Shape::GENERAL.events(30);
    exact_races_are_right_on_locks: Shape::LOCKS.events(30);
    exact_races_are_right_on_nested_locks: Shape::NESTED.events(30);
    exact_races_are_right_on_signals: Shape::SIGNALS.events(26);
    exact_races_are_right_on_everything: Shape::EVERYTHING.events(24);
    exact_races_are_right_by_memory_orders: Shape::ATOMICS.events(10);
    exact_races_are_right_by_memory_orders_of_everything: Shape::EVERYTHING.events(10);
}

proptest! {
    #![proptest_config(soak::config(100))]

    #[test]
    fn what_a_relation_proves_exact_has(trace in traces(Shape::LOCKS)) {
        let Decided { pairs, unknown, .. } = exact::races(&trace);
        prop_assert_eq!(unknown, 0);
        for race in relation::pairs(&trace, Relation::Shb, None) {
            prop_assert!(pairs.contains(&race));
        }
    }
}
