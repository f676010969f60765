//! The race predicate is met where happens-before leaves conflicting accesses unordered.

use crate::reference;

use proptest::prelude::*;
use reweave_base::Id;
use reweave_order::poset::{Relation, TracePoset, collections, raw};
use reweave_races::relation::{Relation as Races, pairs};
use reweave_states::Bounds;
use reweave_states::pairwise::{RacyPair, first_races};
use reweave_testkit::{Scope, Shape, corpus, soak, traces};
use reweave_trace::{Trace, VarId};

/// For each variable the first pair, of those that `races` lists.
fn listed(trace: &Trace) -> Vec<RacyPair> {
    let mut listed: Vec<RacyPair> = pairs(trace, Races::HappensBefore, None)
        .into_iter()
        .map(|race| {
            let (first, second) = (race.first.min(race.second), race.first.max(race.second));
            let var = trace.event(first).op.var().expect("it is an access");
            RacyPair { var, first, second }
        })
        .collect();
    listed.sort_by_key(|race| (race.second, race.first));
    let mut seen: Vec<VarId> = Vec::new();
    listed.retain(|race| {
        let is_new = !seen.contains(&race.var);
        seen.push(race.var);
        is_new
    });
    listed
}

/// The variables of which some state has two racing accesses last, by the definition.
fn by_states(trace: &Trace) -> Vec<VarId> {
    let made = TracePoset::new(trace, Relation::HappensBefore, raw).expect("it is small");
    let poset = made.poset();
    let mut vars = Vec::new();
    for state in reference::states(poset, &Bounds::all(poset)) {
        for one in poset.chains() {
            for other in poset.chains().filter(|&other| other > one) {
                let (a, b) = (state[one.index()], state[other.index()]);
                if a == 0
                    || b == 0
                    || poset.clock(one, a)[other.index()] >= b
                    || poset.clock(other, b)[one.index()] >= a
                {
                    continue;
                }
                let event = |chain, index| {
                    trace.event(made.first(chain, index).expect("it has happened")).op
                };
                let (left, right) = (event(one, a), event(other, b));
                if left.conflicts_with(right) {
                    vars.extend(left.var());
                }
            }
        }
    }
    vars.sort_unstable();
    vars.dedup();
    vars
}

fn racy(trace: &Trace) -> Vec<VarId> {
    let mut vars: Vec<VarId> = first_races(trace).into_iter().map(|race| race.var).collect();
    vars.sort_unstable();
    vars
}

#[test]
fn it_agrees_with_the_states_of_every_small_trace() {
    for scope in [Scope::LOCKS, Scope::FORKS, Scope::ATOMICS, Scope::BARRIERS, Scope::MONITORS] {
        scope.for_each(|trace| assert_eq!(racy(trace), by_states(trace)));
    }
}

#[test]
fn it_agrees_with_races_on_the_corpus() {
    for case in corpus::litmus().into_iter().chain(corpus::traces()) {
        let trace = case.trace();
        if trace.len() < 50_000 {
            assert_eq!(first_races(&trace), listed(&trace), "{}", case.name);
        }
        // Collections have fewer states, and the same variables race: see the online detector.
        let made = TracePoset::new(&trace, Relation::HappensBefore, collections);
        assert!(made.is_ok_and(|made| made.poset().len() <= trace.len()));
    }
}

proptest! {
    #![proptest_config(soak::config(100))]

    #[test]
    fn it_agrees_with_races(drawn in traces(Shape::EVERYTHING)) {
        prop_assert_eq!(first_races(&drawn.0), listed(&drawn.0));
    }

    #[test]
    fn it_agrees_with_the_states(drawn in traces(Shape::SMALL.events(12))) {
        prop_assert_eq!(racy(&drawn.0), by_states(&drawn.0));
    }
}
