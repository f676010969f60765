//! Every enumeration algorithm visits each state once, whatever the bounds.

use std::ops::ControlFlow;

use proptest::prelude::*;
use reweave_order::poset::Poset;
use reweave_states::enumerate::{BreadthFirst, Enumerate, Gather, Lexical, ParaMount, Stopped};
use reweave_states::{Bounds, intervals};
use reweave_testkit::soak;

use crate::posets;
use crate::reference;

/// The states that `algorithm` visits, in its order.
fn visited(algorithm: &impl Enumerate, poset: &Poset, bounds: &Bounds) -> Vec<Vec<u32>> {
    let mut states = Vec::new();
    let end = algorithm.visit(poset, bounds, |state| {
        states.push(state.to_vec());
        ControlFlow::Continue(())
    });
    assert_eq!(end, Ok(()));
    states
}

#[track_caller]
fn check(poset: &Poset, bounds: &Bounds) {
    let expected = reference::states(poset, bounds);
    assert_eq!(visited(&Lexical, poset, bounds), expected, "lexical, in its order");
    let mut states = visited(&BreadthFirst::default(), poset, bounds);
    let size = |state: &Vec<u32>| state.iter().sum::<u32>();
    assert!(states.is_sorted_by_key(size), "breadth first is by size");
    states.sort_unstable();
    assert_eq!(states, expected, "breadth first");
}

/// Gathers the states themselves.
#[derive(Clone, Debug, Default)]
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

proptest! {
    #![proptest_config(soak::config(200))]

    #[test]
    fn every_state_is_visited_once(poset in posets::posets()) {
        check(&poset, &Bounds::all(&poset));
        for bounds in intervals(&poset) {
            check(&poset, &bounds);
        }
    }

    #[test]
    fn intervals_and_the_empty_state_are_all_states_in_one_order_on_any_number_of_threads(
        poset in posets::posets(),
    ) {
        let mut expected = vec![vec![0; poset.chains_count()]];
        for bounds in intervals(&poset) {
            expected.extend(visited(&Lexical, &poset, &bounds));
        }
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let gathered = pool.install(|| {
                ParaMount { within: Lexical }.gather(&poset, &States::default())
            });
            prop_assert_eq!(gathered.unwrap().0, expected.clone());
            let within = BreadthFirst::default();
            let gathered = pool.install(|| ParaMount { within }.gather(&poset, &States::default()));
            let mut states = gathered.unwrap().0;
            states.sort_unstable();
            prop_assert_eq!(states, reference::states(&poset, &Bounds::all(&poset)));
        }
    }

    #[test]
    fn a_visitor_can_end_it(poset in posets::posets(), count in 1..20_usize) {
        let all = reference::states(&poset, &Bounds::all(&poset)).len();
        let expected = if all >= count { Err(Stopped::Visitor) } else { Ok(()) };
        let stops = |left: &mut usize| {
            *left -= 1;
            if *left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let bounds = Bounds::all(&poset);
        let mut left = count;
        prop_assert_eq!(Lexical.visit(&poset, &bounds, |_| stops(&mut left)), expected);
        let mut left = count;
        let end = BreadthFirst::default().visit(&poset, &bounds, |_| stops(&mut left));
        prop_assert_eq!(end, expected);
    }
}

#[test]
fn breadth_first_ends_when_there_is_no_room() {
    let poset = posets::grid(4, 9);
    let narrow = BreadthFirst { entries_max: 400 };
    let end = narrow.visit(&poset, &Bounds::all(&poset), |_| ControlFlow::Continue(()));
    assert_eq!(end, Err(Stopped::Memory));
    check(&poset, &Bounds::all(&poset));
}
