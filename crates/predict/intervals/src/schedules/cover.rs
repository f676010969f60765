//! Whether a graph covers an interleaving that may be incomplete.

use reweave_base::{FxHashMap, FxHashSet, Id, IndexVec};
use reweave_trace::ThreadId;

use super::is_dependent;
use crate::ctp::{Ctp, Point, StepId};
use crate::graph::{Graph, NodeId};

/// What a graph has of an interleaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
    /// The steps that no schedule comes to with the same steps before that they depend on.
    pub missing: Vec<StepId>,
    /// Whether some schedule has all steps, and no transaction in part.
    pub is_whole: bool,
}

/// How many steps of `run` each thread has taken, and where the processor is.
type Place = (Vec<usize>, Option<Source>);

/// From where the next transaction comes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    /// A thread that came to a node.
    Node(ThreadId),
    /// A thread that stopped for good.
    Stop(Point),
}

/// What schedules of `graph` have of `run`, if threads take no steps but those of `run`.
#[must_use]
pub fn cover(ctp: &Ctp, graph: &Graph, run: &[StepId]) -> Covered {
    let cover = Cover::new(ctp, graph, run);
    let mut is_seen: FxHashSet<StepId> = FxHashSet::default();
    let start: Place = (vec![0; ctp.threads.len()], None);
    let mut known: FxHashSet<Place> = FxHashSet::default();
    let mut open = vec![start];
    let mut is_whole = run.is_empty();
    while let Some(place) = open.pop() {
        for thread in ctp.threads.ids().filter(|&thread| cover.may_go(&place, thread)) {
            for next in cover.go(&place.0, thread, &mut is_seen) {
                let is_node = matches!(next.1, Some(Source::Node(_)));
                is_whole |= is_node && next.0.iter().sum::<usize>() == run.len();
                if known.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
    }
    let missing = run.iter().copied().filter(|step| !is_seen.contains(step)).collect();
    Covered { missing, is_whole }
}

struct Cover<'a> {
    ctp: &'a Ctp,
    graph: &'a Graph,
    passes: FxHashSet<(NodeId, NodeId)>,
    stops: FxHashMap<Point, &'a [NodeId]>,
    node_of: IndexVec<Point, Option<NodeId>>,
    /// The steps of each thread in the run, each with how many of every thread come before it.
    steps: IndexVec<ThreadId, Vec<(StepId, Vec<usize>)>>,
}

impl<'a> Cover<'a> {
    fn new(ctp: &'a Ctp, graph: &'a Graph, run: &[StepId]) -> Self {
        let mut node_of = IndexVec::from_elem(None, ctp.leaving.len());
        for (id, node) in graph.nodes.entries() {
            node_of[node.point] = Some(id);
        }
        let mut steps: IndexVec<ThreadId, Vec<(StepId, Vec<usize>)>> =
            IndexVec::from_elem(Vec::new(), ctp.threads.len());
        for (index, &step) in run.iter().enumerate() {
            let mut needs = vec![0; ctp.threads.len()];
            let mut counts = vec![0; ctp.threads.len()];
            for &earlier in &run[..index] {
                let thread = ctp.steps[earlier].thread.index();
                counts[thread] += 1;
                if is_dependent(ctp, earlier, step) {
                    needs[thread] = counts[thread];
                }
            }
            steps[ctp.steps[step].thread].push((step, needs));
        }
        Self {
            ctp,
            graph,
            passes: graph.switches.iter().chain(&graph.orders).copied().collect(),
            stops: graph.stops.iter().map(|stop| (stop.point, &stop.targets[..])).collect(),
            node_of,
            steps,
        }
    }

    fn point(&self, counts: &[usize], thread: ThreadId) -> Point {
        match counts[thread.index()].checked_sub(1) {
            None => self.ctp.threads[thread].points.start,
            Some(last) => self.ctp.steps[self.steps[thread][last].0].to,
        }
    }

    fn node(&self, counts: &[usize], thread: ThreadId) -> Option<NodeId> {
        self.node_of[self.point(counts, thread)]
    }

    fn may_go(&self, (counts, source): &Place, thread: ThreadId) -> bool {
        let Some(to) = self.node(counts, thread) else { return false };
        match source {
            None => self.graph.roots.contains(&to),
            Some(Source::Node(last)) if *last == thread => true,
            Some(Source::Node(last)) => {
                self.node(counts, *last).is_some_and(|from| self.passes.contains(&(from, to)))
            }
            Some(Source::Stop(point)) => self.stops[point].contains(&to),
        }
    }

    /// Takes the steps of `thread` to its next node, as far as `run` has them and they have what
    /// they depend on: where the processor is then.
    fn go(&self, counts: &[usize], thread: ThreadId, seen: &mut FxHashSet<StepId>) -> Vec<Place> {
        let mut counts = counts.to_vec();
        let steps = &self.steps[thread];
        let mut has_moved = false;
        while let Some((step, needs)) = steps.get(counts[thread.index()]) {
            if has_moved && self.node(&counts, thread).is_some() {
                break;
            }
            if needs.iter().zip(&counts).any(|(need, count)| need > count) {
                return Vec::new();
            }
            seen.insert(*step);
            counts[thread.index()] += 1;
            has_moved = true;
        }
        if !has_moved {
            return Vec::new();
        }
        let mut places = Vec::new();
        if self.node(&counts, thread).is_some() {
            places.push((counts.clone(), Some(Source::Node(thread))));
        }
        let point = self.point(&counts, thread);
        if counts[thread.index()] == steps.len() && self.stops.contains_key(&point) {
            places.push((counts, Some(Source::Stop(point))));
        }
        places
    }
}
