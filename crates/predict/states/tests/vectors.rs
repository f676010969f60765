//! The posets of the corpus, whose states are known, by every algorithm.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::ControlFlow;

use reweave_order::poset::{Poset, PosetBuilder};
use reweave_states::Bounds;
use reweave_states::by_chain::{EachState, Limits, Plan};
use reweave_states::count::{Algorithm, Counted, CutShort, Effort, count, count_intervals};
use reweave_states::enumerate::{BreadthFirst, Enumerate, Gather, Lexical, ParaMount};
use reweave_states::mdd::Count;
use reweave_testkit::corpus;
use reweave_workload::posets::{Clocks, Spec, random};

fn built(chains_count: usize, events: &[(usize, Vec<u32>)]) -> Poset {
    let mut builder = PosetBuilder::new(chains_count).unwrap();
    for (chain, clock) in events {
        builder.push(*chain, clock).unwrap();
    }
    builder.finish()
}

fn of_clocks(clocks: &Clocks) -> Poset {
    built(clocks.chains_count, &clocks.events)
}

fn effort(threads: usize) -> Effort<'static> {
    Effort { threads, budget: None, stop: &|| false }
}

/// The states themselves.
#[derive(Clone, Default)]
struct States(Vec<Vec<u32>>);

impl Gather for States {
    fn visit(&mut self, state: &[u32]) -> ControlFlow<()> {
        self.0.push(state.to_vec());
        ControlFlow::Continue(())
    }

    fn join(&mut self, later: Self) {
        self.0.extend(later.0);
    }
}

fn visited(algorithm: &impl Enumerate, poset: &Poset) -> Vec<Vec<u32>> {
    let mut states = States::default();
    algorithm.visit(poset, &Bounds::all(poset), |state| states.visit(state)).unwrap();
    states.0
}

fn visited_fast(poset: &Poset) -> Vec<Vec<u32>> {
    let mut states = States::default();
    let plan = Plan::new(poset, &Bounds::all(poset));
    let mut each = EachState::new(&plan, |state: &[u32]| states.visit(state));
    plan.visit(&mut each, (), &Limits::default()).unwrap();
    states.0
}

fn gathered(within: impl Enumerate, poset: &Poset) -> Vec<Vec<u32>> {
    ParaMount { within }.gather(poset, &States::default()).map_err(|_| "ended").unwrap().0
}

#[test]
fn every_algorithm_counts_the_states_of_the_small_posets() {
    for case in corpus::posets() {
        let poset = built(case.chains_count, &case.events);
        for algorithm in Algorithm::ALL {
            for threads in [1, 3] {
                let counted = count(&poset, algorithm, &effort(threads));
                let name = format!("{} by {}", case.name, algorithm.as_str());
                assert_eq!(counted.states, Count::from(case.states), "{name}");
                assert_eq!((counted.cut_short, counted.algorithm), (None, algorithm), "{name}");
            }
        }
    }
}

#[test]
fn every_algorithm_counts_the_states_of_each_event_of_the_small_posets() {
    for case in corpus::posets() {
        let poset = built(case.chains_count, &case.events);
        for algorithm in Algorithm::ALL {
            let Counted { states, intervals, .. } = count_intervals(&poset, algorithm, &effort(2));
            let intervals: Vec<u64> =
                intervals.unwrap().into_iter().map(|it| it.try_into().unwrap()).collect();
            assert_eq!(intervals, case.intervals, "{} by {}", case.name, algorithm.as_str());
            assert_eq!(states, Count::from(case.states));
        }
    }
}

#[test]
fn every_algorithm_visits_the_listed_states_and_the_lexical_one_in_their_order() {
    for case in corpus::posets() {
        let Some(listed) = case.lexical else { continue };
        let poset = built(case.chains_count, &case.events);
        assert_eq!(visited(&Lexical, &poset), listed, "{}", case.name);
        for (name, mut states) in [
            ("fast", visited_fast(&poset)),
            ("breadth first", visited(&BreadthFirst::default(), &poset)),
            ("ParaMount, lexical", gathered(Lexical, &poset)),
            ("ParaMount, breadth first", gathered(BreadthFirst::default(), &poset)),
        ] {
            states.sort_unstable();
            assert_eq!(states, listed, "{} by {name}", case.name);
        }
    }
}

#[test]
fn the_generator_draws_the_posets_that_are_written_out() {
    for (spec, file) in [
        ("grid:8:12", "poset_bank_like.json"),
        ("rand:10:300:0.52:35", "poset_d300_like.json"),
        ("rand:12:216:0.5:10", "poset_hedc_like.json"),
    ] {
        let text = std::fs::read_to_string(corpus::folder().join("posets").join(file)).unwrap();
        let written: serde_json::Value = serde_json::from_str(&text).unwrap();
        let drawn = spec.parse::<Spec>().unwrap().make();
        assert_eq!(written["n"], drawn.chains_count, "{spec}");
        assert_eq!(written["events"], serde_json::json!(drawn.events), "{spec}");
    }
}

#[test]
fn the_diagram_counts_the_states_of_the_posets_of_the_benchmarks() {
    for (text, states) in corpus::poset_specs() {
        let poset = of_clocks(&text.parse::<Spec>().unwrap().make());
        let counted = count(&poset, Algorithm::Mdd, &effort(1));
        assert_eq!(counted.states, Count::from(states), "{text}");
        assert_eq!(counted.overflow, None, "{text}");
    }
}

#[test]
fn a_budget_leaves_a_lower_bound_that_is_the_same_for_any_number_of_threads() {
    let poset = of_clocks(&random(7, 70, 0.4, 3));
    let all = u128::try_from(count(&poset, Algorithm::Mdd, &effort(1)).states).unwrap();
    assert!(all > 20_000, "{all}");
    for algorithm in &Algorithm::ALL[1..] {
        for budget in [1, 2, 4096, 5000, all as u64 - 1, all as u64, all as u64 + 1] {
            for threads in [1, 2, 4] {
                let effort = Effort { budget: Some(budget), ..effort(threads) };
                let counted = count(&poset, *algorithm, &effort);
                let name = format!("{} {budget} {threads}", algorithm.as_str());
                let expected = all.min(budget.into());
                assert_eq!(counted.states, Count::from(expected), "{name}");
                let cut_short = (expected < all).then_some(CutShort::Budget);
                assert_eq!(counted.cut_short, cut_short, "{name}");
                let each = count_intervals(&poset, *algorithm, &effort);
                assert_eq!((each.states, each.cut_short), (counted.states, cut_short), "{name}");
                assert_eq!(each.intervals.is_some(), cut_short.is_none(), "{name}");
            }
        }
    }
}

#[test]
fn a_diagram_out_of_budget_says_so_and_counts_no_more_than_there_are() {
    let poset = of_clocks(&random(7, 70, 0.4, 3));
    let all = count(&poset, Algorithm::Mdd, &effort(1)).states;
    let mut is_cut_short = false;
    for budget in [0, 1, 100, 10_000, 1 << 40] {
        let effort = Effort { budget: Some(budget), ..effort(1) };
        let counted = count(&poset, Algorithm::Mdd, &effort);
        assert!(counted.states <= all && counted.states > Count::ZERO, "{budget}");
        assert!(counted.cut_short.is_some() || counted.states == all, "{budget}");
        is_cut_short |= counted.cut_short == Some(CutShort::Budget);
    }
    assert!(is_cut_short);
}

#[test]
fn every_algorithm_stops_when_told_to() {
    let poset = of_clocks(&Spec::Grid { chains_count: 16, length: 100 }.make());
    for algorithm in Algorithm::ALL {
        let effort = Effort { threads: 2, budget: None, stop: &|| true };
        let counted = count(&poset, algorithm, &effort);
        assert_eq!(counted.cut_short, Some(CutShort::Stopped), "{}", algorithm.as_str());
        assert!(counted.states > Count::ZERO, "{}", algorithm.as_str());
        let each = count_intervals(&poset, algorithm, &effort);
        assert_eq!(each.cut_short, Some(CutShort::Stopped), "{} by event", algorithm.as_str());
    }
}

#[test]
fn without_chains_or_events_there_is_one_state() {
    for (chains_count, length) in [(0, 0), (1, 0), (17, 0)] {
        let poset = of_clocks(&Spec::Grid { chains_count, length }.make());
        for algorithm in Algorithm::ALL {
            let counted = count_intervals(&poset, algorithm, &effort(1));
            let name = algorithm.as_str();
            assert_eq!(counted.states, Count::from(1_u8), "{name} {chains_count}");
            assert_eq!(counted.intervals, Some(Vec::new()), "{name} {chains_count}");
        }
    }
}
