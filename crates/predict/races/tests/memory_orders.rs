//! The shapes of the memory model, each with its verdict, by the analysis and by brute force.

use std::path::Path;

use reweave_analysis::{Detail, Guarantee};
use reweave_oracle::{memory_orders, reachable};
use reweave_races::exact::{self, EXACT};
use reweave_testkit::std;
use reweave_trace::{Goal, MemoryOrder, Op, Trace};

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

/// `trace` with the orders that its findings ask for.
fn repaired(trace: &Trace) -> Option<Trace> {
    let (found, _) = findings(&EXACT, trace, true);
    let weak: Vec<_> = found
        .iter()
        .filter_map(|finding| match &finding.detail {
            Detail::MemoryOrders(weak) if !weak.is_empty() => Some(weak.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    let mut builder = reweave_trace::TraceBuilder::new();
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
    (!weak.is_empty()).then(|| builder.finish().expect("the events are the same"))
}

fn strengthened(access: reweave_trace::AccessOp, needed: MemoryOrder) -> reweave_trace::AccessOp {
    use reweave_trace::AccessOp::{AtomicRead, AtomicUpdate, AtomicWrite};
    match access {
        AtomicRead(_) => AtomicRead(needed),
        AtomicWrite(_) => AtomicWrite(needed),
        AtomicUpdate(_) => AtomicUpdate(needed),
        plain => plain,
    }
}

#[test]
fn the_orders_that_a_finding_asks_for_repair_it() {
    let mut count = 0;
    for (name, _, trace) in shapes() {
        let Some(repaired) = repaired(&trace) else { continue };
        count += 1;
        let (left, _) = findings(&EXACT, &repaired, true);
        let is_weak = |goal: &Goal| matches!(goal, Goal::Unordered(..));
        let left = left.iter().filter_map(|finding| finding.evidence.proof());
        assert_eq!(left.filter(|proof| is_weak(proof.goal())).count(), 0, "{name}");
    }
    assert!(count > 20, "{count}");
}
