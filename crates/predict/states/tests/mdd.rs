//! The decision diagram has exactly the states, and its counts, samples and searches agree with them.

use num_bigint::BigUint;
use proptest::prelude::*;
use reweave_base::{Id, Rng};
use reweave_order::poset::{ChainId, Poset, PosetBuilder};
use reweave_states::mdd::{
    Count, Diagram, Fold, Limits, Reason, Stop, count, interval_counts, least,
};
use reweave_states::{Bounds, intervals};
use reweave_testkit::soak;
use reweave_workload::posets::Spec;

use crate::posets;
use crate::reference;

const NEVER: Stop<'static> = &|| false;

fn number(count: usize) -> Count {
    Count::from(count as u128)
}

/// The poset that `spec` names.
fn made(spec: &str) -> Poset {
    let clocks = spec.parse::<Spec>().expect("it names a poset").make();
    let mut builder = PosetBuilder::new(clocks.chains_count).expect("there are few chains");
    for (chain, clock) in &clocks.events {
        builder.push(*chain, clock).expect("it is the join of clocks");
    }
    builder.finish()
}

/// Limits that most posets pass: on windows, in both ways of choosing chains, or on memory.
fn tight() -> [Limits; 4] {
    let limits = Limits::default();
    [
        Limits { nodes_soft: 1, nodes_max: 1, ..limits },
        Limits { nodes_soft: 2, nodes_max: 3, ..limits },
        Limits { nodes_soft: 1, nodes_max: 12, ..limits },
        Limits { bytes_max: 100, ..limits },
    ]
}

/// Small numbers that depend on `seed`, the chain and the index alone.
fn value(seed: u64, chain: ChainId, index: u32) -> i64 {
    let place = (chain.index() as u64) << 32 | u64::from(index);
    (Rng::new(seed ^ place.wrapping_mul(0x9e37_79b9)).next() % 11) as i64 - 4
}

fn sum(seed: u64, state: &[u32]) -> i64 {
    let values = state.iter().enumerate();
    values.map(|(chain, &index)| value(seed, ChainId::from_index(chain), index)).sum()
}

/// Whether the values add up to at least `bound`, none of them the greatest there is.
struct SumFold {
    seed: u64,
    bound: i64,
}

impl Fold for SumFold {
    type Memory = i64;

    fn start(&self) -> i64 {
        0
    }

    fn step(&self, memory: &i64, chain: ChainId, index: u32) -> Option<i64> {
        let value = value(self.seed, chain, index);
        (value < 6).then_some(memory + value)
    }

    fn is_met(&self, memory: &i64) -> bool {
        *memory >= self.bound
    }
}

impl SumFold {
    fn is_met_by(&self, state: &[u32]) -> bool {
        let mut chains = state.iter().enumerate();
        let memory = chains.try_fold(0, |memory, (chain, &index)| {
            self.step(&memory, ChainId::from_index(chain), index)
        });
        memory.is_some_and(|memory| self.is_met(&memory))
    }
}

/// Goes up along a chain, here and there.
fn weight(chain: ChainId, index: u32) -> u32 {
    (index + chain.index() as u32) / 2
}

fn weight_of(state: &[u32]) -> u64 {
    let chains = state.iter().enumerate();
    chains.map(|(chain, &index)| u64::from(weight(ChainId::from_index(chain), index))).sum()
}

#[track_caller]
fn check_counts(poset: &Poset, bounds: &Bounds, states: &[Vec<u32>]) {
    let counted = count(poset, bounds, &Limits::default(), NEVER);
    assert_eq!((counted.count, counted.cut_short), (number(states.len()), None));
    assert_eq!(counted.overflow, None);
    for limits in tight() {
        let counted = count(poset, bounds, &limits, NEVER);
        assert_eq!((counted.count, counted.cut_short), (number(states.len()), None));
    }
}

#[track_caller]
fn check_numbers(diagram: &Diagram, states: &[Vec<u32>]) {
    assert_eq!(diagram.count(), number(states.len()));
    let unranked = |rank: usize| diagram.unrank(&BigUint::from(rank));
    let mut all: Vec<Vec<u32>> = (0..states.len()).filter_map(unranked).collect();
    assert_eq!(unranked(states.len()), None);
    all.sort_unstable();
    assert_eq!(all, states);
}

#[track_caller]
fn check_sums(diagram: &Diagram, seed: u64, stretch: i64, states: &[Vec<u32>]) {
    let values = |chain, index| value(seed, chain, index) * stretch;
    let mut sums: Vec<i128> =
        states.iter().map(|state| i128::from(sum(seed, state) * stretch)).collect();
    sums.sort_unstable();
    let expected: Vec<(i128, Count)> = sums
        .chunk_by(|one, other| one == other)
        .map(|same| (same[0], number(same.len())))
        .collect();
    let histogram = diagram.histogram(values, &Limits::default(), NEVER);
    assert_eq!(histogram.as_ref(), Ok(&expected));
}

#[track_caller]
fn check_least(poset: &Poset, bounds: &Bounds, fold: &SumFold, states: &[Vec<u32>]) {
    let met = states.iter().filter(|state| fold.is_met_by(state));
    let expected = met.map(|state| weight_of(state)).min();
    for limits in tight().into_iter().take(3).chain([Limits::default()]) {
        let search = least(poset, bounds, fold, &weight, &limits, NEVER);
        assert_eq!(search.cut_short, None);
        assert_eq!(search.found.as_ref().map(|found| found.0), expected);
        if let Some((weight, state)) = search.found {
            assert!(fold.is_met_by(&state) && weight_of(&state) == weight, "{state:?}");
            assert!(states.binary_search(&state).is_ok(), "{state:?}");
        }
    }
}

#[track_caller]
fn check(poset: &Poset, bounds: &Bounds, seed: u64) {
    let states = reference::states(poset, bounds);
    check_counts(poset, bounds, &states);
    let fits = "so few nodes fit";
    let diagram = Diagram::build(poset, bounds, &Limits::default(), NEVER).expect(fits);
    check_numbers(&diagram, &states);
    check_sums(&diagram, seed, 1, &states);
    check_sums(&diagram, seed, 1_000_000_007, &states);
    // The same whatever order the chains are fixed in.
    let greedy = Limits { nodes_soft: 1, ..Limits::default() };
    let diagram = Diagram::build(poset, bounds, &greedy, NEVER).expect(fits);
    check_numbers(&diagram, &states);
    check_least(poset, bounds, &SumFold { seed, bound: (seed % 7) as i64 }, &states);
}

proptest! {
    #![proptest_config(soak::config(60))]

    #[test]
    fn the_diagram_agrees_with_the_states_one_by_one(
        poset in posets::posets(),
        seed in 0..1_000_u64,
    ) {
        check(&poset, &Bounds::all(&poset), seed);
    }

    #[test]
    fn so_it_does_within_bounds(poset in posets::posets(), seed in 0..1_000_u64) {
        for (place, bounds) in intervals(&poset).enumerate() {
            check(&poset, &bounds, seed + place as u64);
        }
    }

    #[test]
    fn intervals_are_counted_and_the_empty_state_with_the_first(poset in posets::posets()) {
        let mut expected: Vec<usize> =
            intervals(&poset).map(|bounds| reference::states(&poset, &bounds).len()).collect();
        expected.iter_mut().take(1).for_each(|first| *first += 1);
        let expected: Vec<Count> = expected.into_iter().map(number).collect();
        for limits in tight().into_iter().chain([Limits::default()]) {
            prop_assert_eq!(interval_counts(&poset, &limits, NEVER), Ok(expected.clone()));
        }
    }

    #[test]
    fn work_that_runs_out_leaves_a_count_that_is_not_too_great(
        poset in posets::posets(),
        work_max in 0..200_u64,
    ) {
        let bounds = Bounds::all(&poset);
        let all = number(reference::states(&poset, &bounds).len());
        for limits in tight() {
            let counted = count(&poset, &bounds, &Limits { work_max, ..limits }, NEVER);
            prop_assert!(counted.count <= all && counted.count > Count::ZERO);
            prop_assert!(counted.cut_short.is_some() || counted.count == all);
            let fold = SumFold { seed: 3, bound: 1 };
            let limits = Limits { work_max, ..limits };
            let search = least(&poset, &bounds, &fold, &weight, &limits, NEVER);
            let is_met = search.found.is_none_or(|(_, state)| fold.is_met_by(&state));
            prop_assert!(is_met);
        }
    }
}

/// Each poset of `events_count` events of three chains, where an event comes after the last one of
/// some of the others.
fn each_small_poset(events_count: usize, check: &mut dyn FnMut(&Poset)) {
    const CHAINS: usize = 3;
    const KINDS: usize = CHAINS << (CHAINS - 1);
    for code in 0..KINDS.pow(events_count as u32) {
        let mut builder = PosetBuilder::new(CHAINS).expect("there are few chains");
        let mut rest = code;
        for _ in 0..events_count {
            let (chain, others) = (rest % KINDS % CHAINS, rest % KINDS / CHAINS);
            rest /= KINDS;
            let so_far = builder.so_far();
            let mut clock = vec![0; CHAINS];
            let after = (1..CHAINS).filter(|bit| others >> (bit - 1) & 1 == 1);
            for other in after.map(|step| (chain + step) % CHAINS).chain([chain]) {
                let id = ChainId::from_index(other);
                let last = so_far.clock(id, so_far.length(id));
                clock.iter_mut().zip(last).for_each(|(own, &last)| *own = last.max(*own));
            }
            clock[chain] += 1;
            builder.push(chain, &clock).expect("it is the join of clocks");
        }
        check(&builder.finish());
    }
}

#[test]
fn every_small_poset_is_counted_right_and_has_each_state_once() {
    for events_count in 0..=3 {
        each_small_poset(events_count, &mut |poset| {
            check(poset, &Bounds::all(poset), events_count as u64);
        });
    }
    each_small_poset(4, &mut |poset| {
        let bounds = Bounds::all(poset);
        check_counts(poset, &bounds, &reference::states(poset, &bounds));
    });
}

#[test]
fn posets_of_published_sizes_have_the_published_counts() {
    let cases = [
        ("rand:10:300:0.52:35", 41_875_818_u64),
        ("rand:10:500:0.52:23", 233_381_897),
        ("rand:10:10000:0.505:6", 4_907_316_378),
        ("grid:8:12", 815_730_721),
        ("rand:12:216:0.5:10", 3_615_527_951),
        ("rand:12:38528:0.65:1", 30_630_499_889),
    ];
    for (spec, expected) in cases {
        let poset = made(spec);
        let counted = count(&poset, &Bounds::all(&poset), &Limits::default(), NEVER);
        assert_eq!((counted.count, counted.overflow), (Count::from(expected), None), "{spec}");
    }
}

#[test]
fn counts_have_any_size() {
    let power = |base: u32, exponent| Count::from(base).pow(exponent);
    for (chains_count, length) in
        [(0, 3), (1, 0), (1, 7), (5, 0), (16, 9), (17, 9), (16, 20), (37, 10), (40, 1000)]
    {
        let poset = posets::grid(chains_count as usize, length);
        let bounds = Bounds::all(&poset);
        let expected = power(length + 1, chains_count);
        assert_eq!(count(&poset, &bounds, &Limits::default(), NEVER).count, expected);
        let diagram = Diagram::build(&poset, &bounds, &Limits::default(), NEVER).unwrap();
        assert_eq!(diagram.count(), expected);
        assert_eq!(diagram.width(), 1);
        if chains_count == 0 {
            continue;
        }
        let last = expected - 1_u8;
        assert_eq!(diagram.unrank(&last), Some(poset.top()));
    }
}

#[test]
fn a_histogram_counts_beyond_128_bits() {
    let poset = made("grid:90:2");
    let limits = Limits::default();
    let diagram = Diagram::build(&poset, &Bounds::all(&poset), &limits, NEVER).unwrap();
    let histogram = diagram.histogram(|_, index| i64::from(index == 1), &limits, NEVER).unwrap();
    // As many chains at 1 as the sum says, and two ways for each of the others.
    let mut binomial = BigUint::from(1_u8);
    for (ones, (sum, count)) in histogram.iter().enumerate() {
        let ways = &binomial << (90 - ones);
        assert_eq!((*sum, count), (ones as i128, &ways));
        binomial = binomial * (90 - ones) / (ones + 1);
    }
    assert_eq!(histogram.len(), 91);
}

#[test]
fn chains_may_be_longer_than_16_bits_count() {
    let mut builder = PosetBuilder::new(3).unwrap();
    for index in 1..=70_000 {
        if index == 69_000 {
            builder.push(1, &[66_000, 1, 0]).unwrap();
        }
        builder.push(0, &[index, u32::from(index >= 69_000), 0]).unwrap();
    }
    let poset = builder.finish();
    let bounds = Bounds::all(&poset);
    let expected = Count::from(66_000_u32 + 2 * 3_000 + 1_001);
    assert_eq!(count(&poset, &bounds, &Limits::default(), NEVER).count, expected);
    let diagram = Diagram::build(&poset, &bounds, &Limits::default(), NEVER).unwrap();
    assert_eq!(diagram.count(), expected);
    for limits in tight() {
        assert_eq!(count(&poset, &bounds, &limits, NEVER).count, expected);
    }
}

#[test]
fn long_runs_are_counted_as_short_ones_are() {
    for (spec, seed) in [("rand:2:300:0.1:", 3), ("rand:3:200:0.1:", 9), ("rand:3:150:0.02:", 2)] {
        for seed in seed..seed + 5 {
            let poset = made(&format!("{spec}{seed}"));
            let mut expected = 0_u128;
            reweave_states::enumerate::lexical(&poset, &Bounds::all(&poset), |_| {
                expected += 1;
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
            let counted = count(&poset, &Bounds::all(&poset), &Limits::default(), NEVER);
            assert_eq!(counted.count, Count::from(expected));
        }
    }
}

#[test]
fn chains_that_belong_together_are_fixed_together_if_that_leaves_few_nodes() {
    let poset = made("pairs:12:6");
    let bounds = Bounds::all(&poset);
    let diagram = Diagram::build(&poset, &bounds, &Limits::default(), NEVER).unwrap();
    assert_eq!(diagram.width(), 4);
    assert_eq!(diagram.count(), Count::from(18_u128.pow(6)));
    // In the given order alone it does not fit.
    let limits = Limits { nodes_max: 100, ..Limits::default() };
    let counted = count(&poset, &bounds, &limits, NEVER);
    assert_eq!((counted.count, counted.overflow), (Count::from(18_u128.pow(6)), None));
}

#[test]
fn samples_are_uniform() {
    let poset = made("rand:4:12:0.4:5");
    let bounds = Bounds::all(&poset);
    let states = reference::states(&poset, &bounds);
    let diagram = Diagram::build(&poset, &bounds, &Limits::default(), NEVER).unwrap();
    let mut drawn = vec![0_u32; states.len()];
    let mut rng = Rng::new(1);
    for _ in 0..states.len() * 1_000 {
        drawn[states.binary_search(&diagram.sample(&mut rng)).unwrap()] += 1;
    }
    assert!(states.len() > 50, "{}", states.len());
    assert!(drawn.iter().all(|&count| (840..1_160).contains(&count)), "{drawn:?}");
}

#[test]
fn what_does_not_fit_says_where_and_why() {
    let poset = made("rand:10:300:0.52:35");
    let bounds = Bounds::all(&poset);
    let limits = Limits { nodes_soft: 50, nodes_max: 50, ..Limits::default() };
    let overflow = count(&poset, &bounds, &limits, NEVER).overflow.unwrap();
    assert_eq!(overflow.reason, Reason::Nodes);
    expect_test::expect!["too many nodes for the decision diagram (level 1 has 19 nodes)"]
        .assert_eq(&overflow.to_string());
    let counted = count(&poset, &bounds, &limits, NEVER);
    assert_eq!((counted.count, counted.overflow), (Count::from(41_875_818_u64), Some(overflow)));
    let limits = Limits { bytes_max: 10_000, ..Limits::default() };
    let overflow = Diagram::build(&poset, &bounds, &limits, NEVER).unwrap_err();
    assert_eq!(overflow.reason, Reason::Memory);
}

#[test]
fn it_ends_when_told_to() {
    let poset = made("rand:10:300:0.52:35");
    let bounds = Bounds::all(&poset);
    let always: Stop<'_> = &|| true;
    let limits = Limits::default();
    let counted = count(&poset, &bounds, &limits, always);
    assert_eq!((counted.count, counted.cut_short), (Count::from(1_u8), Some(Reason::Stopped)));
    let overflow = Diagram::build(&poset, &bounds, &limits, always).unwrap_err();
    assert_eq!(overflow.reason, Reason::Stopped);
    let overflow = interval_counts(&poset, &limits, always).unwrap_err();
    assert_eq!(overflow.reason, Reason::Stopped);
    let fold = SumFold { seed: 1, bound: 0 };
    let search = least(&poset, &bounds, &fold, &weight, &limits, always);
    assert_eq!((search.found, search.cut_short), (None, Some(Reason::Stopped)));
}
