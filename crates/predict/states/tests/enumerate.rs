//! Every way of going through states visits each once, whatever the bounds.

use std::ops::ControlFlow;

use proptest::prelude::*;
use reweave_order::poset::Poset;
use reweave_states::breadth_first::BreadthFirst;
use reweave_states::lexical::Lexical;
use reweave_states::paramount::{Gather, ParaMount};
use reweave_states::{Bounds, Enumerate, Stopped, intervals};
use reweave_testkit::soak;

use crate::posets;
use crate::reference;

/// The states that `way` visits, in its order.
fn visited(way: &dyn Enumerate, poset: &Poset, bounds: &Bounds) -> Vec<Vec<u32>> {
    let mut states = Vec::new();
    let end = way.visit(poset, bounds, &mut |state| {
        states.push(state.to_vec());
        ControlFlow::Continue(())
    });
    assert_eq!(end, Ok(()));
    states
}

fn ways() -> Vec<Box<dyn Enumerate>> {
    vec![
        Box::new(BreadthFirst::default()),
        Box::new(Lexical),
        Box::new(ParaMount { within: Lexical }),
        Box::new(ParaMount { within: BreadthFirst::default() }),
    ]
}

#[track_caller]
fn check(poset: &Poset, bounds: &Bounds) {
    let expected = reference::states(poset, bounds);
    assert_eq!(visited(&Lexical, poset, bounds), expected, "lexical, in its order");
    for way in ways() {
        let mut states = visited(&*way, poset, bounds);
        if way.name() == "bfs" {
            let size = |state: &Vec<u32>| state.iter().sum::<u32>();
            assert!(states.is_sorted_by_key(size), "bfs goes by size");
        }
        states.sort_unstable();
        assert_eq!(states, expected, "{}", way.name());
    }
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
        let expected = visited(&ParaMount { within: Lexical }, &poset, &Bounds::all(&poset));
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let gathered = pool.install(|| {
                ParaMount { within: Lexical }.gather(&poset, &States::default())
            });
            prop_assert_eq!(gathered.unwrap().0, expected.clone());
        }
    }

    #[test]
    fn a_visitor_can_end_it(poset in posets::posets(), count in 1..20_usize) {
        let all = reference::states(&poset, &Bounds::all(&poset)).len();
        for way in ways() {
            let mut left = count;
            let end = way.visit(&poset, &Bounds::all(&poset), &mut |_| {
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            prop_assert_eq!(end, if all >= count { Err(Stopped::Visitor) } else { Ok(()) });
        }
    }
}

#[test]
fn breadth_first_ends_when_there_is_no_room() {
    let poset = posets::grid(4, 9);
    let narrow = BreadthFirst { entries_max: 400 };
    let end = narrow.visit(&poset, &Bounds::all(&poset), &mut |_| ControlFlow::Continue(()));
    assert_eq!(end, Err(Stopped::Memory));
    check(&poset, &Bounds::all(&poset));
}
