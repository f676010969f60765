//! The causal past of every event is that of the definition.

use proptest::prelude::*;
use reweave_oracle::mhb;
use reweave_order::mhb::MustHappenBefore;
use reweave_testkit::{Scope, Shape, soak, traces};
use reweave_trace::{EventId, Trace};

/// The first event pair, if any, that rows and definition disagree on.
fn disagreement(trace: &Trace, free: &[EventId]) -> Option<String> {
    let order = mhb::order(trace, free);
    let found = MustHappenBefore::with_free_reads(trace, free);
    for (late, _) in trace.events() {
        let row = found.past(late);
        for (early, event) in trace.events() {
            let in_row = trace.position(early) < row.get(event.thread);
            let defined = early == late || order.is_before(early, late);
            if in_row != defined {
                let (early, late) = (early.number(), late.number());
                return Some(format!("{early} before {late}: {in_row}, not {defined}"));
            }
        }
    }
    None
}

#[test]
fn causal_pasts_agree_with_the_definition_on_every_small_trace() {
    let scopes = [
        Scope::LOCKS.events(6),
        Scope::FORKS.threads(3).events(5),
        Scope::MONITORS.events(6),
        Scope::BARRIERS.threads(3).events(6),
        Scope::SEMAPHORES.events(6),
        Scope::ATOMICS.threads(3).events(4),
        Scope::REST.events(5),
    ];
    for scope in scopes {
        scope.for_each(|trace| {
            let found = disagreement(trace, &[]);
            assert_eq!(found, None, "\n{}", reweave_testkit::draw(trace));
        });
    }
}

#[test]
fn a_thread_that_joins_thousands_shares_their_clocks() {
    let mut text = String::new();
    for child in 1..3000 {
        text.push_str(&format!("T0|fork(T{child})|1\nT{child}|w(x{child})|2\n"));
    }
    for child in 1..3000 {
        text.push_str(&format!("T0|join(T{child})|3\n"));
    }
    let trace = reweave_testkit::std(&text);
    let found = MustHappenBefore::new(&trace);
    let last = EventId::from_number(trace.len() as u32).unwrap();
    let row = found.past(last);
    assert!(trace.names().threads.entries().all(|(thread, _)| row.get(thread) > 0));
    assert!(found.rows_count() < 7000, "{}", found.rows_count());
}

proptest! {
    #![proptest_config(soak::config(200))]

    #[test]
    fn causal_pasts_agree_with_the_definition_on_everything(
        trace in traces(Shape::EVERYTHING),
        chosen in any::<prop::sample::Index>(),
    ) {
        prop_assert_eq!(disagreement(&trace, &[]), None);
        let reads: Vec<EventId> =
            trace.events().filter(|(_, event)| event.op.is_read()).map(|(id, _)| id).collect();
        if !reads.is_empty() {
            prop_assert_eq!(disagreement(&trace, &[reads[chosen.index(reads.len())]]), None);
        }
    }
}
