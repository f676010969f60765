//! The fast enumeration visits what the definition says, with narrow rows and wide, on one thread and on many.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset, PosetBuilder};
use reweave_states::by_chain::{
    Additive, Count, EachState, EarlyEnd, Join, Least, Limits, Plan, Visitor, least,
};
use reweave_states::{Bounds, intervals};
use reweave_testkit::soak;
use reweave_workload::posets::random;

use crate::reference;

const NONE: Limits<'_> = Limits { states: None, stop: None };

fn built(chains_count: usize, events: &[(usize, Vec<u32>)]) -> Poset {
    let mut builder = PosetBuilder::new(chains_count).expect("there are few chains");
    for (chain, clock) in events {
        builder.push(*chain, clock).expect("clocks of an order");
    }
    builder.finish()
}

/// So many independent chains with so many events.
fn independent(lengths: &[u32]) -> Poset {
    let mut builder = PosetBuilder::new(lengths.len()).expect("there are few chains");
    let mut clock = vec![0; lengths.len()];
    for (chain, &length) in lengths.iter().enumerate() {
        for index in 1..=length {
            clock[chain] = index;
            builder.push(chain, &clock).expect("clocks of an order");
        }
        clock[chain] = 0;
    }
    builder.finish()
}

fn posets(
    chains: std::ops::RangeInclusive<usize>,
    events_max: usize,
) -> impl Strategy<Value = Poset> {
    (chains, 0..=events_max, 0..=10_u32, any::<u64>()).prop_map(|(chains, events, tenths, seed)| {
        let clocks = random(chains, events, f64::from(tenths) / 10.0, seed);
        built(clocks.chains_count, &clocks.events)
    })
}

/// The states of a plan as it visits them, up to a state that it is to end with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct States {
    state: Vec<u32>,
    last: Option<ChainId>,
    until: Option<Vec<u32>>,
    seen: Vec<Vec<u32>>,
}

impl States {
    fn new(plan: &Plan) -> Self {
        let state = vec![u32::MAX; plan.bounds().least.len()];
        Self { state, last: plan.last(), until: None, seen: Vec::new() }
    }
}

impl Visitor for States {
    type Acc = usize;

    fn step(&mut self, steps: usize, chain: ChainId, index: u32) -> usize {
        self.state[chain.index()] = index;
        steps + 1
    }

    fn run(&mut self, steps: usize, low: u32, high: u32) -> ControlFlow<()> {
        assert!(low <= high, "no run is empty");
        assert_eq!(steps, self.state.len().saturating_sub(1), "all but the last took steps");
        for index in low..=high {
            if let Some(last) = self.last {
                self.state[last.index()] = index;
            }
            self.seen.push(self.state.clone());
            if self.until.as_ref() == Some(&self.state) {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

impl Join for States {
    fn join(&mut self, later: Self) {
        self.seen.extend(later.seen);
    }
}

fn visited(plan: &Plan, limits: &Limits<'_>) -> (Vec<Vec<u32>>, Result<(), EarlyEnd>) {
    let mut states = States::new(plan);
    let end = plan.visit(&mut states, 0, limits);
    (states.seen, end)
}

fn on_threads<T: Send>(count: usize, run: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build();
    pool.expect("threads can be started").install(run)
}

/// The states of `poset` within `bounds` by every plan.
#[track_caller]
fn check(poset: &Poset, bounds: &Bounds) {
    let expected = reference::states(poset, bounds);
    for plan in [Plan::new(poset, bounds), Plan::wide(poset, bounds)] {
        let (mut seen, end) = visited(&plan, &NONE);
        assert_eq!(end, Ok(()));
        seen.sort_unstable();
        assert_eq!(seen, expected);
        let mut count = Count::default();
        assert_eq!(plan.visit(&mut count, (), &NONE), Ok(()));
        assert_eq!(count.states, expected.len() as u128);
        assert_eq!(plan.is_empty(), expected.is_empty());
    }
}

/// All states, and each interval.
#[track_caller]
fn check_all(poset: &Poset) {
    check(poset, &Bounds::all(poset));
    for bounds in intervals(poset) {
        check(poset, &bounds);
    }
}

/// Values for each chain and number of events, drawn from `seed`, none further from 0 than `most`.
fn values(poset: &Poset, seed: u64, most: i64) -> Vec<Vec<i64>> {
    let mut rng = reweave_base::Rng::new(seed);
    let mut draw = || match most {
        i64::MAX => rng.next() as i64,
        _ => rng.below(2 * most as usize + 1) as i64 - most,
    };
    poset.chains().map(|chain| (0..=poset.length(chain)).map(|_| draw()).collect()).collect()
}

fn sum(values: &[Vec<i64>], state: &[u32]) -> i128 {
    values.iter().zip(state).map(|(values, &index)| i128::from(values[index as usize])).sum()
}

fn hits(additive: &Additive, states: &[Vec<u32>]) -> u64 {
    let is_hit = |state: &&Vec<u32>| sum(&additive.values, state) >= i128::from(additive.threshold);
    states.iter().filter(is_hit).count() as u64
}

proptest! {
    #![proptest_config(soak::config(60))]

    #[test]
    fn each_state_is_visited_once(poset in posets(0..=6, 16)) {
        check_all(&poset);
    }

    #[test]
    fn up_to_sixteen_chains_are_narrow_and_more_are_wide(poset in posets(15..=18, 9)) {
        check_all(&poset);
    }

    #[test]
    fn sixteen_chains_may_all_take_part(seed in any::<u64>(), chains in 16..=17_usize) {
        // Each chain has an event: what the first draw leaves out comes after the last.
        let mut clocks = random(chains, 12, 1.0, seed).events;
        for chain in 0..chains {
            if !clocks.iter().any(|(other, _)| *other == chain) {
                let mut clock = clocks.last().unwrap().1.clone();
                clock[chain] += 1;
                clocks.push((chain, clock));
            }
        }
        let poset = built(chains, &clocks);
        let bounds = Bounds::all(&poset);
        let mut expected = Vec::new();
        let end = reweave_states::enumerate::lexical(&poset, &bounds, |state| {
            expected.push(state.to_vec());
            ControlFlow::Continue(())
        });
        prop_assert_eq!(end, Ok(()));
        for plan in [Plan::new(&poset, &bounds), Plan::wide(&poset, &bounds)] {
            let (mut seen, end) = visited(&plan, &NONE);
            prop_assert_eq!(end, Ok(()));
            seen.sort_unstable();
            prop_assert_eq!(&seen, &expected);
        }
    }

    #[test]
    fn bounds_that_are_no_states_hold_those_between_them(
        poset in posets(0..=5, 12),
        ends in proptest::collection::vec((any::<u32>(), any::<u32>()), 5),
    ) {
        let mut bounds = Bounds::all(&poset);
        for (chain, &(one, other)) in poset.chains().zip(&ends) {
            let [one, other] = [one, other].map(|end| end % (poset.length(chain) + 1));
            bounds.least[chain.index()] = one.min(other);
            bounds.greatest[chain.index()] = one.max(other);
        }
        check(&poset, &bounds);
    }

    #[test]
    fn any_number_of_threads_gathers_the_same_in_the_same_order(poset in posets(0..=6, 14)) {
        let bounds = Bounds::all(&poset);
        for plan in [Plan::new(&poset, &bounds), Plan::wide(&poset, &bounds)] {
            let (expected, _) = visited(&plan, &NONE);
            for threads in 1..=4 {
                let gathered = on_threads(threads, || plan.gather(&States::new(&plan), 0, &NONE));
                prop_assert_eq!(&gathered.unwrap().seen, &expected);
            }
        }
    }

    #[test]
    fn a_limit_on_states_is_kept_to_the_state(poset in posets(0..=5, 12), most in 0..40_u64) {
        let bounds = Bounds::all(&poset);
        let limits = Limits { states: Some(most), stop: None };
        for plan in [Plan::new(&poset, &bounds), Plan::wide(&poset, &bounds)] {
            let (all, _) = visited(&plan, &NONE);
            let expected = &all[..all.len().min(most as usize)];
            let ended = (all.len() > expected.len()).then_some(EarlyEnd::States);
            let (seen, end) = visited(&plan, &limits);
            prop_assert_eq!((&seen[..], end.err()), (expected, ended));
            let gathered = on_threads(3, || plan.gather(&States::new(&plan), 0, &limits));
            let (states, end) = match gathered {
                Ok(states) => (states, None),
                Err((states, ended)) => (states, Some(ended)),
            };
            prop_assert_eq!((&states.seen[..], end), (expected, ended));
        }
    }

    #[test]
    fn a_visitor_ends_it_at_the_same_state_on_any_number_of_threads(
        poset in posets(1..=5, 12),
        at in any::<prop::sample::Index>(),
    ) {
        let plan = Plan::new(&poset, &Bounds::all(&poset));
        let (all, _) = visited(&plan, &NONE);
        let place = at.index(all.len());
        let empty = States { until: Some(all[place].clone()), ..States::new(&plan) };
        for threads in [1, 3] {
            let (states, ended) =
                on_threads(threads, || plan.gather(&empty, 0, &NONE)).unwrap_err();
            prop_assert_eq!((&states.seen[..], ended), (&all[..=place], EarlyEnd::Visitor));
        }
    }

    #[test]
    fn sums_are_counted_whatever_their_size(
        poset in posets(0..=6, 14),
        seed in any::<u64>(),
        most in prop::sample::select(vec![3, 100, 9_000, 1_000_000_000, i64::MAX]),
        within in any::<prop::sample::Index>(),
    ) {
        let values = values(&poset, seed, most);
        let all: Vec<Bounds> = intervals(&poset).chain([Bounds::all(&poset)]).collect();
        for bounds in [&all[within.index(all.len())], &all[all.len() - 1]] {
            let states = reference::states(&poset, bounds);
            let middle = sum(&values, &states[within.index(states.len())]);
            let middle = middle.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            for threshold in [i64::MIN, 0, middle, middle.saturating_add(1), i64::MAX] {
                let additive = Additive { values: values.clone(), threshold };
                let expected = hits(&additive, &states);
                for plan in [Plan::new(&poset, bounds), Plan::wide(&poset, bounds)] {
                    prop_assert_eq!(additive.count(&plan, &NONE), Ok(expected));
                    let split = on_threads(2, || additive.count_split(&plan, &NONE));
                    prop_assert_eq!(split, Ok(expected));
                }
            }
        }
    }

    #[test]
    fn the_least_state_weighs_the_least_of_those_that_meet_the_predicate(
        poset in posets(0..=6, 14),
        seed in any::<u64>(),
        modulus in 1..9_u64,
        within in any::<prop::sample::Index>(),
    ) {
        let mut weights = values(&poset, seed, 2);
        for weights in &mut weights {
            // Sums of steps of 0, 1 and 2 go up or stay the same.
            let mut total = 0;
            weights.iter_mut().for_each(|weight| {
                total += weight.abs();
                *weight = total;
            });
        }
        let all: Vec<Bounds> = intervals(&poset).chain([Bounds::all(&poset)]).collect();
        let bounds = &all[within.index(all.len())];
        let predicate = |state: &[u32]| {
            let mixed = state.iter().fold(seed, |mixed, &index| {
                (mixed ^ u64::from(index)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
            });
            mixed.is_multiple_of(modulus)
        };
        let meeting = reference::states(&poset, bounds).into_iter().filter(|state| predicate(state));
        let expected = meeting.map(|state| sum(&weights, &state)).min();
        let unsigned: Vec<Vec<u64>> = weights
            .iter()
            .map(|weights| weights.iter().map(|&weight| weight as u64).collect())
            .collect();
        let Least { found, ended, .. } = least(&poset, bounds, &unsigned, predicate, &NONE);
        prop_assert_eq!(ended, None);
        prop_assert_eq!(found.as_ref().map(|&(_, weight)| i128::from(weight)), expected);
        if let Some((state, weight)) = found {
            prop_assert!(predicate(&state) && poset.is_consistent(&state));
            prop_assert_eq!(sum(&weights, &state), i128::from(weight));
        }
    }
}

/// Calls `take` with every poset of `chains_count` chains and so many events, each of which comes
/// after the last events of some other chains.
fn each_poset(chains_count: usize, events_count: u32, mut take: impl FnMut(&Poset)) {
    let choices = chains_count << (chains_count - 1);
    for code in 0..choices.pow(events_count) {
        let mut builder = PosetBuilder::new(chains_count).expect("there are few chains");
        let mut rest = code;
        for _ in 0..events_count {
            let (chain, others) = (rest % choices % chains_count, rest % choices / chains_count);
            rest /= choices;
            let so_far = builder.so_far();
            let mut clock = vec![0; chains_count];
            for number in 0..chains_count {
                // The bits of `others` are for the chains but the own one.
                let is_before = match number {
                    _ if number == chain => true,
                    _ => others >> (number - usize::from(number > chain)) & 1 == 1,
                };
                if is_before {
                    let id = ChainId::from_index(number);
                    let theirs = so_far.clock(id, so_far.length(id)).iter();
                    clock.iter_mut().zip(theirs).for_each(|(own, &other)| *own = other.max(*own));
                }
            }
            clock[chain] += 1;
            builder.push(chain, &clock).expect("clocks of an order");
        }
        take(&builder.finish());
    }
}

#[test]
fn each_state_of_every_small_poset_is_visited_once() {
    let mut count = 0;
    for (chains_count, events_max) in [(1, 3), (2, 5), (3, 3), (4, 2)] {
        for events_count in 0..=events_max + u32::from(soak::multiplier() > 1) {
            each_poset(chains_count, events_count, |poset| {
                check(poset, &Bounds::all(poset));
                count += 1;
            });
        }
    }
    assert!(count >= 4_000, "{count}");
}

#[test]
fn few_chains_and_none_need_no_care() {
    for lengths in [&[][..], &[0], &[5], &[0, 0], &[0, 3], &[2, 3], &[0, 2, 0], &[1, 2, 3, 0]] {
        check_all(&independent(lengths));
    }
    let nothing = independent(&[]);
    let plan = Plan::new(&nothing, &Bounds::all(&nothing));
    for (threshold, expected) in [(0, 1), (1, 0)] {
        let additive = Additive { values: Vec::new(), threshold };
        assert_eq!(additive.count(&plan, &NONE), Ok(expected));
    }
    let found = least(&nothing, &Bounds::all(&nothing), &[], |_| true, &NONE).found;
    assert_eq!(found, Some((Vec::new(), 0)));
}

#[test]
fn long_runs_and_pairs_of_many_states_are_counted_alike() {
    for lengths in [&[40, 1100, 3][..], &[1100, 1000], &[90, 100, 110], &[17, 16, 15, 33]] {
        let poset = independent(lengths);
        let bounds = Bounds::all(&poset);
        let additive = Additive { values: values(&poset, 5, 50), threshold: 20 };
        let mut expected = 0;
        let plan = Plan::new(&poset, &bounds);
        let mut each = EachState::new(&plan, |state: &[u32]| {
            expected += u64::from(sum(&additive.values, state) >= 20);
            ControlFlow::Continue(())
        });
        assert_eq!(plan.visit(&mut each, (), &NONE), Ok(()));
        for plan in [plan, Plan::wide(&poset, &bounds)] {
            assert_eq!(additive.count(&plan, &NONE), Ok(expected));
            assert_eq!(on_threads(2, || additive.count_split(&plan, &NONE)), Ok(expected));
            let states: u64 = lengths.iter().map(|&length| u64::from(length) + 1).product();
            let mut count = Count::default();
            assert_eq!(plan.visit(&mut count, (), &NONE), Ok(()));
            assert_eq!(count.states, u128::from(states));
            for most in [states - 1, states] {
                let mut count = Count::default();
                let limits = Limits { states: Some(most), stop: None };
                let end = plan.visit(&mut count, (), &limits);
                assert_eq!((count.states, end.is_ok()), (u128::from(most), most == states));
            }
        }
    }
}

#[test]
fn chains_too_long_for_narrow_rows_have_wide_ones() {
    for length in [65_535, 65_536] {
        let poset = independent(&[2, length, 1]);
        let plan = Plan::new(&poset, &Bounds::all(&poset));
        let mut count = Count::default();
        assert_eq!(plan.visit(&mut count, (), &NONE), Ok(()));
        assert_eq!(count.states, 6 * (u128::from(length) + 1));
        let values = [2, length, 1].map(|length| (0..=i64::from(length)).collect()).to_vec();
        let additive = Additive { values, threshold: i64::from(length) };
        // The last number alone, and one or two before it with as many of the others.
        assert_eq!(additive.count(&plan, &NONE), Ok(6 + 5 + 3 + 1));
    }
}

#[test]
fn it_stops_when_told_to_with_what_it_has_so_far() {
    let poset = independent(&[400, 400, 400]);
    let plan = Plan::new(&poset, &Bounds::all(&poset));
    let all = 401_u128.pow(3);
    let asked = AtomicU32::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 4;
    let limits = Limits { states: None, stop: Some(&stop) };
    let mut count = Count::default();
    assert_eq!(plan.visit(&mut count, (), &limits), Err(EarlyEnd::Stop));
    assert!(count.states > 0 && count.states < all / 8, "{}", count.states);
    let (count, ended) = on_threads(2, || plan.gather(&Count::default(), (), &limits)).unwrap_err();
    assert!(ended == EarlyEnd::Stop && count.states == 0, "it had been asked before");
    let weights = vec![(0..=400).collect(); 3];
    let found = least(&poset, &Bounds::all(&poset), &weights, |_| false, &limits);
    assert_eq!((found.found, found.ended), (None, Some(EarlyEnd::Stop)));
    assert!(found.states < 10_000, "{}", found.states);
}

#[test]
fn the_search_for_the_least_passes_by_what_weighs_more() {
    let poset = independent(&[9; 6]);
    let bounds = Bounds::all(&poset);
    let weights = vec![(0..=9).collect(); 6];
    let is_met = |state: &[u32]| state.iter().filter(|&&index| index >= 4).count() >= 3;
    let found = least(&poset, &bounds, &weights, is_met, &NONE);
    assert_eq!(found.found.map(|(_, weight)| weight), Some(12));
    // Of a million states.
    assert!(found.states < 20_000, "{}", found.states);
    let limits = Limits { states: Some(100), stop: None };
    let found = least(&poset, &bounds, &weights, is_met, &limits);
    assert_eq!((found.found, found.states, found.ended), (None, 100, Some(EarlyEnd::States)));
}

#[test]
fn bounds_without_a_state_have_nothing_to_visit() {
    let poset = built(2, &[(0, vec![1, 0]), (1, vec![1, 1])]);
    for (least, greatest) in [([0, 1], [0, 1]), ([1, 0], [0, 1]), ([2, 0], [3, 1])] {
        let bounds = Bounds { least: least.to_vec(), greatest: greatest.to_vec() };
        let plan = Plan::new(&poset, &bounds);
        assert!(plan.is_empty() && visited(&plan, &NONE) == (Vec::new(), Ok(())));
    }
}
