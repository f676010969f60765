//! The least state, by whoever searches.

use proptest::prelude::*;
use reweave_base::Id;
use reweave_order::poset::{Poset, PosetBuilder};
use reweave_states::online::{LeastState, Options};
use reweave_testkit::{corpus, soak};

use crate::online::common::{Asked, Order, chain, detect, limits, options, padded, states_count};

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

#[track_caller]
fn check(poset: &Poset, asked: Asked, order: Order, options: Options) {
    let outcome = detect(poset, asked, order, options);
    let expected = LeastState { least: asked.offline(poset), is_certain: true };
    let answer = padded(outcome.answer, poset.chains_count());
    assert_eq!(answer, expected, "{asked:?} {order:?} {options:?}");
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
                check(&poset, asked, Order::Recorded, options);
                check(&poset, asked, Order::Drawn(one_in), options);
            }
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
            padded(detect(&poset, asked, Order::Recorded, options).answer, poset.chains_count())
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
        check(&builder.finish(), Asked::Never, Order::Recorded, limits());
    }
}
