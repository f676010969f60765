//! What the polynomial algorithms find is what is found by looking at every state and every path.

use proptest::prelude::*;
use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};
use reweave_states::Bounds;
use reweave_states::detect::{Forbidden, Truths, definitely, definitely_conjunctive, least_linear};
use reweave_states::enumerate::Stopped;
use reweave_testkit::soak;

use crate::posets;
use crate::reference;

/// The least of the states that meet `is_met`, each number for itself; none if nothing does.
fn meet(poset: &Poset, is_met: impl Fn(&[u32]) -> bool) -> Option<Vec<u32>> {
    let states = reference::states(poset, &Bounds::all(poset));
    let meeting = states.into_iter().filter(|state| is_met(state));
    meeting.reduce(|one, two| one.iter().zip(&two).map(|(a, b)| *a.min(b)).collect())
}

/// Whether every path meets `is_met`: whether the top cannot be reached without it.
fn unavoidable(poset: &Poset, is_met: impl Fn(&[u32]) -> bool) -> bool {
    let states = reference::states(poset, &Bounds::all(poset));
    let mut reached: Vec<bool> = Vec::new();
    for (at, state) in states.iter().enumerate() {
        let is_step = |before: &Vec<u32>| {
            let gains = before.iter().zip(state).map(|(a, b)| i64::from(*b) - i64::from(*a));
            gains.clone().all(|gain| (0..=1).contains(&gain)) && gains.sum::<i64>() == 1
        };
        // In lexical order a state comes after those with fewer events of the same.
        let is_reached = at == 0 || (0..at).any(|early| reached[early] && is_step(&states[early]));
        reached.push(is_reached && !is_met(state));
    }
    !reached.last().copied().unwrap_or(false)
}

/// A poset, and for each chain where its predicate holds.
fn conjunctions() -> impl Strategy<Value = (Poset, Vec<Truths>)> {
    let truths = proptest::option::weighted(0.8, proptest::collection::vec(any::<bool>(), 16));
    (posets::posets(), proptest::collection::vec(truths, 5)).prop_map(|(poset, truths)| {
        let of_chain = |(chain, truths): (ChainId, Option<Vec<bool>>)| {
            let length = poset.length(chain);
            truths.map(|truths| (0..=length).filter(|&index| truths[index as usize]).collect())
        };
        let truths = poset.chains().zip(truths).map(of_chain).collect();
        (poset, truths)
    })
}

fn all_hold(truths: &[Truths], state: &[u32]) -> bool {
    let holds = |(truths, index): (&Truths, &u32)| {
        truths.as_ref().is_none_or(|truths| truths.contains(index))
    };
    truths.iter().zip(state).all(holds)
}

proptest! {
    #![proptest_config(soak::config(400))]

    #[test]
    fn the_least_state_of_a_conjunction_is_found((poset, truths) in conjunctions()) {
        let expected = meet(&poset, |state| all_hold(&truths, state));
        let forbidden = |state: &[u32]| poset.chains().find_map(|chain| {
            let index = state[chain.index()];
            let truths = truths[chain.index()].as_ref()?;
            let until = truths.iter().copied().find(|&at| at >= index).unwrap_or(u32::MAX);
            (until > index).then_some(Forbidden { chain, until })
        });
        prop_assert_eq!(least_linear(&poset, forbidden), expected);
    }

    #[test]
    fn a_conjunction_is_unavoidable_if_every_path_meets_it((poset, truths) in conjunctions()) {
        let expected = unavoidable(&poset, |state| all_hold(&truths, state));
        prop_assert_eq!(definitely_conjunctive(&poset, &truths), expected);
        let general = definitely(&poset, usize::MAX, &|| false, |state| {
            all_hold(&truths, state)
        });
        prop_assert_eq!(general, Ok(expected));
    }

    #[test]
    fn whatever_the_predicate_paths_are_told_apart(poset in posets::posets(), seed in any::<u32>()) {
        let is_met = |state: &[u32]| {
            let mixed = state.iter().fold(seed, |mixed, &index| {
                (mixed ^ index).wrapping_mul(0x9e37_79b1).rotate_left(13)
            });
            mixed % 3 == 0
        };
        let found = definitely(&poset, usize::MAX, &|| false, is_met);
        prop_assert_eq!(found, Ok(unavoidable(&poset, is_met)));
    }

    #[test]
    fn the_least_state_of_a_linear_predicate_is_found(
        poset in posets::posets(),
        lags in proptest::collection::vec((0..5_usize, 0..5_usize, 0..3_u32, 0..5_u32), 0..4),
    ) {
        // One chain is behind another by at most so many, and has done so many at least.
        let count = poset.chains_count();
        let lags: Vec<_> =
            lags.into_iter().filter(|&(behind, ahead, ..)| behind < count && ahead < count).collect();
        let forbidden = |state: &[u32]| {
            lags.iter().find_map(|&(behind, ahead, lag, least)| {
                let until = least.max(state[ahead].saturating_sub(lag));
                let chain = ChainId::from_index(behind);
                (state[behind] < until).then_some(Forbidden { chain, until })
            })
        };
        let expected = meet(&poset, |state| forbidden(state).is_none());
        prop_assert_eq!(least_linear(&poset, forbidden), expected);
    }
}

#[test]
fn where_there_is_no_room_that_is_said() {
    let poset = posets::grid(4, 6);
    let end = definitely(&poset, 100, &|| false, |_| false);
    assert_eq!(end, Err(Stopped::Memory));
    assert_eq!(definitely(&poset, 100_000, &|| true, |_| false), Err(Stopped::Visitor));
}
