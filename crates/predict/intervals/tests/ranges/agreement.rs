//! The fast propagation gives what the definition gives.

use proptest::prelude::*;
use reweave_intervals::ctp::Ctp;
use reweave_intervals::domain::{Congruence, Domain, Interval, Product};
use reweave_intervals::graph::Graph;
use reweave_intervals::propagate::{Mode, Settings, propagate, reference};
use reweave_testkit::soak;

use crate::ranges::common::Cut;
use crate::ranges::generate;

#[track_caller]
fn check<D: Domain>(ctp: &Ctp, graph: &Graph) {
    for mode in [Mode::Copy, Mode::Own, Mode::Both] {
        let settings = Settings { mode, ..Settings::default() };
        let values = propagate::<D>(ctp, graph, &settings);
        let expected = reference::propagate::<D>(ctp, graph, mode).values;
        for (step, expected) in expected.steps.entries() {
            assert_eq!(&values.steps[step], expected, "{mode:?} {step:?} of {graph:?}");
        }
        for (node, expected) in expected.at.entries() {
            assert_eq!(&values.at[node], expected, "{mode:?} {node:?} of {graph:?}");
        }
        assert_eq!(values, expected, "{mode:?} of {graph:?}");
        let shared = Settings { shared_work_min: 0, ..settings };
        assert_eq!(propagate::<D>(ctp, graph, &shared), expected, "{mode:?} of {graph:?}, shared");
    }
}

/// Whether no two numbers are further apart than half of all integers. Congruences have no modulus
/// above that, so that what the join of several such numbers is depends on their order; the fast
/// propagation takes another one, and both answers are true.
fn is_narrow(ctp: &Ctp, graph: &Graph) -> bool {
    [Mode::Copy, Mode::Own].into_iter().all(|mode| {
        let values = reference::propagate::<Interval>(ctp, graph, mode).values;
        let assigned = values.steps.iter().flat_map(|step| [step.stored, step.defined]);
        assigned.flatten().all(|range| range.low() >= -(1 << 62) && range.high() <= 1 << 62)
    })
}

#[test]
fn many_random_programs_have_narrow_numbers() {
    let is_narrow = |&seed: &u64| {
        let ctp = generate::program(seed);
        is_narrow(&ctp, &generate::graph(&ctp, seed))
    };
    assert!((0..100).filter(is_narrow).count() >= 50);
}

proptest! {
    #![proptest_config(soak::config(400))]

    #[test]
    fn on_random_graphs_of_random_programs(seed: u64) {
        let ctp = generate::program(seed);
        let graph = generate::graph(&ctp, seed);
        check::<Interval>(&ctp, &graph);
        if is_narrow(&ctp, &graph) {
            check::<Congruence>(&ctp, &graph);
            check::<Product>(&ctp, &graph);
        }
    }

    #[test]
    fn where_every_point_is_a_node(seed: u64) {
        let ctp = generate::program(seed);
        check::<Interval>(&ctp, &Cut::everywhere(&ctp).graph(&ctp));
    }
}

#[test]
fn on_all_small_programs() {
    for (number, ctp) in generate::small_programs().enumerate() {
        check::<Interval>(&ctp, &Cut::everywhere(&ctp).graph(&ctp));
        check::<Interval>(&ctp, &generate::graph(&ctp, number as u64));
    }
}
