//! The CP clocks hold exactly the relation of the definition, and the paper's figures come out.

use proptest::prelude::*;
use reweave_oracle::cp::{order, order_within};
use reweave_oracle::relation::Order;
use reweave_order::cp::CausallyPrecedes;
use reweave_order::hb::HappensBefore;
use reweave_testkit::{Scope, Shape, soak, traces};
use reweave_trace::{EventId, OpKind, Trace};

/// The first event pair, if any, that clocks and definition disagree on.
fn disagreement(trace: &Trace) -> Option<String> {
    compare(trace, &CausallyPrecedes::new(trace), &order(trace))
}

/// The same for one window.
fn disagreement_within(trace: &Trace, window: usize) -> Option<String> {
    compare(trace, &CausallyPrecedes::within(trace, window), &order_within(trace, window))
}

fn compare(trace: &Trace, causal: &CausallyPrecedes, order: &Order) -> Option<String> {
    let mut clocks = causal.clocks();
    for (late, _) in trace.events() {
        let clock = clocks.advance(trace, late);
        for (early, event) in trace.events() {
            let in_clock = trace.position(early) < clock.get(event.thread);
            let defined = order.is_before(early, late);
            if in_clock != defined {
                let (early, late) = (early.number(), late.number());
                return Some(format!("{early} before {late}: {in_clock}, not {defined}"));
            }
        }
    }
    None
}

/// The conflicting pairs that CP leaves unordered, by its clocks.
fn races(trace: &Trace) -> Vec<Vec<u32>> {
    let causal = CausallyPrecedes::new(trace);
    let mut clocks = causal.clocks();
    let mut races = Vec::new();
    for (late, to) in trace.events() {
        let clock = clocks.advance(trace, late);
        for (early, from) in trace.events().take_while(|&(early, _)| early < late) {
            let unordered = trace.position(early) >= clock.get(from.thread);
            if from.thread != to.thread && from.op.conflicts_with(to.op) && unordered {
                races.push(vec![early.number(), late.number()]);
            }
        }
    }
    races.sort_unstable();
    races
}

#[test]
fn clocks_agree_with_the_definition_on_every_small_trace() {
    let scopes = [
        Scope::LOCKS.events(7),
        Scope::LOCKS.threads(3).things(2),
        Scope::SHARED_LOCKS.threads(3).events(5),
        Scope::FORKS.threads(3).events(5),
        Scope::MONITORS.events(6),
        Scope::BARRIERS.threads(3).events(6),
        Scope::ATOMICS.threads(3).events(4),
    ];
    for scope in scopes {
        scope.for_each(|trace| {
            let found = disagreement(trace);
            assert_eq!(found, None, "\n{}", reweave_testkit::draw(trace));
        });
    }
}

#[test]
fn clocks_agree_with_the_definition_on_every_section_in_both_modes() {
    // Two sections that hold a write each, in every mode and every overlap that there can be.
    let kinds = &[
        OpKind::Write,
        OpKind::Acquire,
        OpKind::Release,
        OpKind::AcquireShared,
        OpKind::ReleaseShared,
    ];
    Scope::new(kinds).events(6).for_each(|trace| {
        let found = disagreement(trace);
        assert_eq!(found, None, "\n{}", reweave_testkit::draw(trace));
    });
}

#[test]
fn every_window_agrees_with_its_definition_on_every_small_trace() {
    for scope in [Scope::LOCKS.events(6), Scope::SHARED_LOCKS.threads(3).events(5)] {
        scope.for_each(|trace| {
            for window in 0..trace.len() {
                let found = disagreement_within(trace, window);
                assert_eq!(found, None, "{window}\n{}", reweave_testkit::draw(trace));
            }
        });
    }
}

/// An event by its number.
fn event(trace: &Trace, number: u32) -> EventId {
    trace.numbered(number).expect("the trace has so many events")
}

#[test]
fn rule_b_holds_within_one_thread_too() {
    // Lock l is used by one thread alone, and still orders: without it, 5 and 20 would race.
    let trace = reweave_testkit::trace(
        "
        t1      t2      t3
        acq(l)
        acq(m)
        w(x)
        rel(m)
        w(y)
        rel(l)
                acq(m)
                w(x)
                rel(m)
                acq(n)
                rel(n)
        acq(l)
        acq(n)
        rel(n)
        rel(l)
        acq(k)
        rel(k)
                        acq(k)
                        rel(k)
                        w(y)
        ",
    );
    assert!(order(&trace).is_before(event(&trace, 5), event(&trace, 20)));
    assert_eq!(races(&trace), Vec::<Vec<u32>>::new());
}

#[test]
fn a_thread_may_be_joined_while_it_holds_a_lock() {
    // The section that stays open ends with its thread, after the post, and so after 1: rule (b).
    let trace = reweave_testkit::trace(
        "
        t1       t2
        acq(l)
        post(s)
        rel(l)
                 acq(l)
                 take(s)
        join(t2)
        ",
    );
    assert!(order(&trace).is_before(event(&trace, 3), event(&trace, 4)));
    assert_eq!(disagreement(&trace), None);
}

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn clocks_agree_with_the_definition_on_everything(trace in traces(Shape::EVERYTHING)) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn clocks_agree_with_the_definition_on_locks(trace in traces(Shape::LOCKS.events(40))) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn clocks_agree_with_the_definition_on_nested_locks(trace in traces(Shape::NESTED)) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn what_cp_orders_happens_before_orders(trace in traces(Shape::GENERAL)) {
        let causal = CausallyPrecedes::new(&trace);
        let (mut narrow, mut wide) = (causal.clocks(), HappensBefore::new());
        for (id, _) in trace.events() {
            let (narrow, wide) = (narrow.advance(&trace, id), wide.advance(&trace, id));
            for (thread, _) in trace.names().threads.entries() {
                prop_assert!(narrow.get(thread) <= wide.get(thread));
            }
        }
    }

    #[test]
    fn a_window_agrees_with_its_definition(
        trace in traces(Shape::EVERYTHING.events(60)),
        window in 0..60_usize,
    ) {
        prop_assert_eq!(disagreement_within(&trace, window), None);
    }

    #[test]
    fn a_window_as_long_as_the_trace_is_none(trace in traces(Shape::EVERYTHING)) {
        let (whole, windowed) =
            (CausallyPrecedes::new(&trace), CausallyPrecedes::within(&trace, trace.len()));
        let (mut whole, mut windowed) = (whole.clocks(), windowed.clocks());
        for (id, _) in trace.events() {
            prop_assert_eq!(whole.advance(&trace, id), windowed.advance(&trace, id));
        }
    }

    #[test]
    fn a_window_orders_all_that_is_ordered_without(
        trace in traces(Shape::NESTED),
        window in 0..60_usize,
    ) {
        let (whole, windowed) =
            (CausallyPrecedes::new(&trace), CausallyPrecedes::within(&trace, window));
        let (mut whole, mut windowed) = (whole.clocks(), windowed.clocks());
        for (id, _) in trace.events() {
            prop_assert!(windowed.advance(&trace, id).covers(whole.advance(&trace, id)));
        }
    }

    #[test]
    fn events_may_be_left_out(trace in traces(Shape::EVERYTHING)) {
        let causal = CausallyPrecedes::new(&trace);
        let (mut all, mut accesses) = (causal.clocks(), causal.clocks());
        for (id, event) in trace.events() {
            let clock = all.advance(&trace, id);
            if event.op.var().is_some() {
                prop_assert_eq!(clock, accesses.advance(&trace, id));
            }
        }
    }
}
