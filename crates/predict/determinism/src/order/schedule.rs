//! A full order of all events, from a graph in which every choice that matters was made.
//!
//! Scopes that nothing orders run as observed. That closes no cycle: one would have to pass an edge
//! that was not observed, which only a witness and the choices of its component bring in, and then
//! the pair would be one of these.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reweave_base::{Id, IndexVec};
use reweave_trace::EventId;

use super::bend::{Base, Bend};
use super::ground::{Ground, NEVER, Scope};

/// All events, the earliest observed first of those that can be next; none if there is a cycle.
///
/// The couple of `free` does not hold.
pub(super) fn schedule(base: Base<'_>, bend: &Bend, free: Option<EventId>) -> Option<Vec<EventId>> {
    let ground = base.ground;
    let edges = edges(base, bend, free);
    let mut missing: IndexVec<EventId, u32> = IndexVec::from_elem(0, ground.trace.len());
    edges.iter().for_each(|&(_, head)| missing[head] += 1);
    let next = reweave_base::CsrTable::group(missing.len(), EventId::from_index(0), || {
        edges.iter().copied()
    });
    let ready = missing.entries().filter(|(_, count)| **count == 0);
    let mut ready: BinaryHeap<Reverse<EventId>> = ready.map(|(id, _)| Reverse(id)).collect();
    let mut order = Vec::with_capacity(missing.len());
    while let Some(Reverse(event)) = ready.pop() {
        order.push(event);
        for &head in next.row(event) {
            missing[head] -= 1;
            if missing[head] == 0 {
                ready.push(Reverse(head));
            }
        }
    }
    (order.len() == missing.len()).then_some(order)
}

fn edges(base: Base<'_>, bend: &Bend, free: Option<EventId>) -> Vec<(EventId, EventId)> {
    let (ground, trace) = (base.ground, base.ground.trace);
    let mut edges = Vec::new();
    for thread in ground.threads() {
        edges.extend(trace.thread_events(thread).windows(2).map(|pair| (pair[0], pair[1])));
    }
    let writer = free.and_then(|free| trace.writer(free));
    for (head, tails) in ground.edges.into.rows() {
        let head = ground.segments[head].event;
        let tails = tails.iter().map(|&tail| ground.event(tail));
        let is_free = |tail: EventId| (Some(tail), Some(head)) == (writer, free);
        edges.extend(tails.filter(|&tail| !is_free(tail)).map(|tail| (tail, head)));
    }
    for (hub, heads) in ground.edges.heads.rows() {
        for &tail in ground.edges.tails.row(hub) {
            let tail = ground.event(tail);
            edges.extend(heads.iter().map(|&head| (tail, ground.segments[head].event)));
        }
    }
    let reads = trace.events().filter(|&(id, _)| Some(id) != free);
    edges.extend(reads.filter_map(|(id, _)| trace.writer(id).map(|writer| (writer, id))));
    let added = bend.edges().iter();
    edges.extend(added.map(|&(tail, head)| (ground.event(tail), ground.event(head))));
    let (mut before, mut after) = (vec![0; ground.threads_count], vec![0; ground.threads_count]);
    for scope in ground.scopes.iter().filter(|scope| scope.release != NEVER) {
        bend.before(base, scope.start(), &mut before);
        bend.after(base, scope.end(), &mut after);
        for queue in ground.rivals(scope) {
            let at = queue.thread.index();
            let is_before = |rival: &Scope| {
                rival.release < before[at]
                    || (rival.acquire < after[at] && is_observed_before(ground, rival, scope))
            };
            let rivals = ground.scopes_in(queue);
            let count = rivals.partition_point(|&rival| is_before(&ground.scopes[rival]));
            if let Some(&last) = rivals[..count].last() {
                let last = &ground.scopes[last];
                edges.push((ground.event(last.end()), ground.event(scope.start())));
            }
        }
    }
    edges
}

fn is_observed_before(ground: &Ground<'_>, early: &Scope, late: &Scope) -> bool {
    ground.event(early.start()) < ground.event(late.start())
}
