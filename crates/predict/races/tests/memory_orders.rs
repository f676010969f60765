//! The shapes of the memory model, each with its verdict, by the analysis and by brute force.

use std::path::Path;

use proptest::prelude::*;
use reweave_analysis::{Detail, Guarantee, WeakAccess};
use reweave_oracle::{memory_orders, reachable};
use reweave_races::exact::{self, EXACT};
use reweave_testkit::{Shape, draw, soak, std, traces};
use reweave_trace::{AccessOp, Goal, MemoryOrder, Op, Trace, TraceBuilder};

use crate::common::findings;

/// The shapes: names, whether there is a race, and events.
fn shapes() -> Vec<(String, bool, Trace)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../corpus/memory_orders.txt");
    let text = ::std::fs::read_to_string(path).expect("the corpus is here");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let shapes = lines.map(|line| {
        let [name, verdict, events] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("three parts: {line}");
        };
        let events = events.split("; ").enumerate().map(|(at, event)| {
            let (thread, operation) = event.split_once(' ').expect("a thread and an operation");
            let operation = operation.replace("(2)", "(T2)");
            format!("T{thread}|{operation}|{name}:{}\n", at + 1)
        });
        assert!(["race", "none"].contains(&verdict), "{line}");
        (name.to_owned(), verdict == "race", std(&events.collect::<String>()))
    });
    shapes.collect()
}

#[test]
fn every_shape_has_its_verdict() {
    let shapes = shapes();
    assert!(shapes.len() >= 60);
    for (name, has_race, trace) in &shapes {
        let decided = exact::races(trace);
        assert_eq!(decided.unknown, 0, "{name}");
        assert_eq!(!decided.pairs.is_empty(), *has_race, "{name}: {:?}", decided.pairs);
        let unordered = memory_orders::unordered_pairs(trace);
        let together = reachable::predictable_races(trace);
        let by_force = !unordered.is_empty() || !together.is_empty();
        assert_eq!(by_force, *has_race, "{name}: {unordered:?} {together:?}");
        let (found, coverage) = findings(&EXACT, trace, false);
        assert!(coverage.is_complete(), "{name}");
        assert!(found.iter().all(|it| it.guarantee() == Guarantee::Witnessed), "{name}");
    }
}

/// `trace` with the orders that `weak` asks for.
fn repaired(trace: &Trace, weak: &[WeakAccess]) -> Trace {
    let mut builder = TraceBuilder::new();
    *builder.names() = trace.names().clone();
    for (id, event) in trace.events() {
        let needed = weak.iter().find(|it| it.event == id).map(|it| it.needed);
        let op = match (event.op, needed) {
            (Op::Access(access, var), Some(needed)) => {
                Op::Access(strengthened(access, needed), var)
            }
            (op, _) => op,
        };
        builder.push(event.thread, op, event.site);
    }
    builder.finish().expect("the events are the same")
}

/// How many findings of `trace` ask for orders. With these, nothing may be found of the same accesses that
/// is about order.
#[track_caller]
fn check_repairs(trace: &Trace) -> usize {
    let (found, _) = findings(&EXACT, trace, true);
    let mut count = 0;
    for finding in found {
        let Detail::MemoryOrders(weak) = &finding.detail else { continue };
        if weak.is_empty() {
            continue;
        }
        count += 1;
        let repaired = repaired(trace, weak);
        let (left, _) = findings(&EXACT, &repaired, true);
        let is_left = left.iter().any(|it| {
            let goal = it.evidence.proof().map(|proof| proof.goal());
            it.events == finding.events && matches!(goal, Some(Goal::Unordered(..)))
        });
        assert!(!is_left, "{weak:?}\n{}", draw(trace));
    }
    count
}

fn strengthened(access: AccessOp, needed: MemoryOrder) -> AccessOp {
    use AccessOp::{AtomicRead, AtomicUpdate, AtomicWrite};
    match access {
        AtomicRead(_) => AtomicRead(needed),
        AtomicWrite(_) => AtomicWrite(needed),
        AtomicUpdate(_) => AtomicUpdate(needed),
        plain => plain,
    }
}

#[test]
fn the_orders_that_a_finding_asks_for_repair_it() {
    let count: usize = shapes().iter().map(|(_, _, trace)| check_repairs(trace)).sum();
    assert!(count > 20, "{count}");
    // Fences that are too early, or too late, do not count.
    let early =
        "T1|fence(release)|1\nT1|w(x)|2\nT1|aw.relaxed(f)|3\nT2|ar.relaxed(f)|4\nT2|r(x)|5\n";
    let late = "T1|w(x)|1\nT1|aw.release(f)|2\nT2|ar.relaxed(f)|3\nT2|aw.relaxed(g)|4\n\
                T2|fence(acquire)|5\nT3|ar.acquire(g)|6\nT3|r(x)|7\n";
    for text in [early, late] {
        assert_eq!(check_repairs(&std(text)), 1, "{text}");
    }
}

proptest! {
    #![proptest_config(soak::config(100))]

    #[test]
    fn the_orders_that_a_finding_asks_for_repair_it_on_random_traces(
        trace in traces(Shape::ATOMICS.events(14))
    ) {
        check_repairs(&trace);
    }
}
