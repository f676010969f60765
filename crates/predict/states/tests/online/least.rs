//! The least state, by whoever searches.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset, PosetBuilder};
use reweave_states::online::least::{Least, LeastState, opaque};
use reweave_states::online::merged::{Merged, OnlineFold};
use reweave_states::online::replay::{Gate, replay};
use reweave_states::online::{OnlineDetector, Options, State};
use reweave_testkit::{corpus, soak};

use crate::online::common::{
    Asked, chain, detect, limits, of_spec, options, padded, states_count, value,
};
use crate::reference;

/// A poset from the numbers of `events`: each of some chain and perhaps after the last of others.
fn poset(chains_count: usize, events: &[(u16, Vec<u16>)]) -> Poset {
    let mut builder = PosetBuilder::new(chains_count).expect("there are few chains");
    for (own, others) in events {
        let pick = |number: &u16| chain(usize::from(*number) % chains_count);
        let own = pick(own);
        let so_far = builder.so_far();
        let mut clock = vec![0; chains_count];
        for other in others.iter().map(pick).chain([own]) {
            let theirs = so_far.clock(other, so_far.length(other));
            clock.iter_mut().zip(theirs).for_each(|(own, &theirs)| *own = theirs.max(*own));
        }
        clock[own.index()] += 1;
        builder.push(own.index(), &clock).expect("it is the join of clocks");
    }
    builder.finish()
}

fn small_posets() -> impl Strategy<Value = Poset> {
    let other = prop_oneof![3 => Just(vec![]), 2 => proptest::collection::vec(any::<u16>(), 1..3)];
    let events = proptest::collection::vec((any::<u16>(), other), 0..14);
    (1..=5_usize, events).prop_map(|(chains_count, events)| poset(chains_count, &events))
}

/// The sum of the labels, coarsely, so that many states are alike; and a remainder of the numbers of events.
struct Remainder {
    sum_min: i64,
    remainder: u32,
}

impl Remainder {
    const OF: u32 = 2;

    fn offline(&self, poset: &Poset) -> Option<Vec<u32>> {
        reference::least(poset, |indices| {
            let done = indices.iter().enumerate().filter(|&(_, &index)| index > 0);
            let memory = done.fold(self.start(), |memory, (at, &index)| {
                let chain = chain(at);
                self.step(&memory, chain, index, &value(chain, index)).expect("nothing is pruned")
            });
            self.is_met(&memory)
        })
    }
}

impl OnlineFold for Remainder {
    type Label = i64;
    type Memory = (i64, u32);

    fn start(&self) -> (i64, u32) {
        (0, 0)
    }

    fn step(
        &self,
        memory: &(i64, u32),
        chain: ChainId,
        index: u32,
        label: &i64,
    ) -> Option<(i64, u32)> {
        let number = (chain.index() as u32 + 1) * index;
        Some((memory.0 + label / 25, (memory.1 + number) % Self::OF))
    }

    fn is_met(&self, memory: &(i64, u32)) -> bool {
        memory.0 >= self.sum_min && memory.1 == self.remainder
    }
}

#[track_caller]
fn check(poset: &Poset, asked: Asked, gate: Gate, options: Options) {
    let outcome = detect(poset, asked, gate, options);
    let expected = LeastState { least: asked.offline(poset), is_certain: true };
    let answer = padded(outcome.answer, poset.chains_count());
    assert_eq!(answer, expected, "{asked:?} {gate:?} {options:?}");
    assert_eq!(outcome.summary.intervals, poset.len() as u64 + 1);
    assert!(outcome.summary.is_complete());
    if expected.least.is_none() {
        assert_eq!(outcome.summary.states, states_count(poset), "each state once");
    }
}

proptest! {
    #![proptest_config(soak::config(40))]

    #[test]
    fn the_least_state_is_found_whoever_searches_and_in_whatever_order_events_come(
        poset in small_posets(),
        sum in 0..400_i64,
        one_in in 1..40_u64,
    ) {
        for asked in [Asked::Sum(sum), Asked::Scattered(one_in), Asked::Never] {
            for options in options() {
                check(&poset, asked, Gate::Recorded, options);
                check(&poset, asked, Gate::Free, options);
            }
        }
    }

    #[test]
    fn merged_intervals_give_the_same_state_as_visited_ones(
        poset in small_posets(),
        sum_min in 0..12_i64,
        remainder in 0..Remainder::OF,
        visited_max in prop_oneof![Just(0), Just(1), Just(10), Just(1000)],
        states_max in prop_oneof![3 => Just(u64::MAX), 1 => 0..200_u64],
    ) {
        let expected = Remainder { sum_min, remainder }.offline(&poset);
        let run = |options: Options| {
            let search = Merged::new(Remainder { sum_min, remainder }).visited_max(visited_max);
            let detector = OnlineDetector::new(search, Options { states_max, ..options });
            replay(&poset, value, Gate::Recorded, &detector).unwrap();
            padded(detector.finish().answer, poset.chains_count())
        };
        let answer = run(limits());
        prop_assert!(!answer.is_certain || answer.least == expected, "{:?}", answer);
        prop_assert!(answer.is_certain || states_max < u64::MAX);
        for options in options() {
            prop_assert_eq!(&run(options), &answer);
        }
    }

    #[test]
    fn with_few_states_an_interval_the_answer_is_the_same_each_time_and_says_if_it_may_be_wrong(
        poset in small_posets(),
        one_in in 1..40_u64,
        states_max in 0..6_u64,
    ) {
        let asked = Asked::Scattered(one_in);
        let limited = |options: Options| {
            let options = Options { states_max, ..options };
            padded(detect(&poset, asked, Gate::Recorded, options).answer, poset.chains_count())
        };
        let answer = limited(limits());
        for options in options() {
            prop_assert_eq!(&answer, &limited(options));
        }
        if answer.is_certain {
            prop_assert_eq!(&answer.least, &asked.offline(&poset));
        }
        if answer.least == asked.offline(&poset) && states_max > 300 {
            prop_assert!(answer.is_certain);
        }
    }
}

#[test]
fn the_corpus_of_posets_has_each_state_once() {
    for case in corpus::posets() {
        let mut builder = PosetBuilder::new(case.chains_count).unwrap();
        for (chain, clock) in &case.events {
            builder.push(*chain, clock).unwrap();
        }
        check(&builder.finish(), Asked::Never, Gate::Recorded, limits());
    }
}

#[test]
fn of_merged_states_with_as_few_events_the_first_in_lexical_order_is_found() {
    for seed in 0..60 {
        let poset = of_spec(&format!("rand:4:14:0.3:{seed}"));
        for sum_min in 0..12 {
            for remainder in 0..Remainder::OF {
                let asked = || Remainder { sum_min, remainder };
                let search = Merged::new(asked()).visited_max(0);
                let detector = OnlineDetector::new(search, limits());
                for (chain, index) in poset.events() {
                    let clock = poset.clock(chain, index);
                    detector.insert(chain, clock, value(chain, index)).unwrap();
                }
                let answer = padded(detector.finish().answer, poset.chains_count());
                assert_eq!(answer.least, asked().offline(&poset), "{sum_min} {remainder}");
            }
        }
    }
}

#[test]
fn intervals_too_large_to_be_gone_through_are_merged() {
    let poset = of_spec("grid:12:8");
    let run = |sum_min| {
        let search = Merged::new(Remainder { sum_min, remainder: 1 });
        let detector = OnlineDetector::new(search, Options { states_max: 1 << 20, ..limits() });
        replay(&poset, value, Gate::Recorded, &detector).unwrap();
        detector.finish()
    };
    let beyond = run(40);
    assert_eq!(beyond.answer, LeastState { least: None, is_certain: true });
    let found = run(30).answer;
    assert!(found.is_certain && poset.is_consistent(&found.least.unwrap()));
}

#[test]
fn each_state_that_is_told_is_less_than_the_one_before() {
    let poset = of_spec("rand:4:30:0.3:5");
    let told: Arc<Mutex<Vec<Vec<u32>>>> = Arc::default();
    let told_to = Arc::clone(&told);
    let asked = Asked::Scattered(50);
    let predicate = opaque(move |state: &State<'_, i64>| asked.online(state));
    let search =
        Least::new(predicate).on_found(move |state| told_to.lock().unwrap().push(state.to_vec()));
    let detector = OnlineDetector::new(search, limits());
    replay(&poset, value, Gate::Recorded, &detector).unwrap();
    let answer = padded(detector.finish().answer, 4);
    let told = told.lock().unwrap();
    let keys: Vec<(u32, &Vec<u32>)> =
        told.iter().map(|state| (state.iter().sum(), state)).collect();
    assert!(!keys.is_empty() && keys.is_sorted_by(|earlier, later| earlier > later));
    let mut last = told.last().unwrap().clone();
    last.resize(4, 0);
    assert_eq!((Some(last), true), (answer.least, answer.is_certain));
}
