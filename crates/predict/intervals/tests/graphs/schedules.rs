//! Schedules by enumeration: what a small program's interleavings are up to equivalence, and which
//! of them a graph has.
//!
//! Guards and values are not looked at; locks, forks and joins are. Two interleavings are
//! equivalent if they differ in the order of steps that do not depend on each other. Each class has
//! one *canonical* member: the one that takes the step of the lowest thread wherever it can.
//!
//! This is the oracle that graphs are tested with. Everything here takes exponential time.

use std::collections::BTreeSet;

use reweave_base::{FxHashMap, FxHashSet, Id, IndexVec};
use reweave_intervals::ctp::{Action, Ctp, Point, StepId};
use reweave_intervals::graph::{Graph, NodeId};
use reweave_intervals::movers;
use reweave_trace::{LockId, ThreadId};

/// Where an interleaving has come to.
#[derive(Clone, Debug)]
pub(crate) struct State<'a> {
    ctp: &'a Ctp,
    /// Where each thread is.
    pub points: IndexVec<ThreadId, Point>,
    owners: IndexVec<LockId, Option<ThreadId>>,
    has_started: IndexVec<ThreadId, bool>,
}

impl<'a> State<'a> {
    /// Before the first step.
    pub(crate) fn start(ctp: &'a Ctp) -> Self {
        let mut has_started = IndexVec::from_elem(true, ctp.threads.len());
        for step in ctp.steps.iter() {
            if let Action::Fork(child) = step.action {
                has_started[child] = false;
            }
        }
        Self {
            ctp,
            points: ctp.threads.iter().map(|thread| thread.points.start).collect(),
            owners: IndexVec::from_elem(None, ctp.names.locks.len()),
            has_started,
        }
    }

    /// After the steps of `run`.
    pub(crate) fn after(ctp: &'a Ctp, run: &[StepId]) -> Self {
        let mut state = Self::start(ctp);
        run.iter().for_each(|&step| state.take(step));
        state
    }

    /// Whether `step` can be taken.
    pub(crate) fn is_enabled(&self, step: StepId) -> bool {
        let step = &self.ctp.steps[step];
        if self.points[step.thread] != step.from || !self.has_started[step.thread] {
            return false;
        }
        match step.action {
            Action::Acquire(lock) => self.owners[lock].is_none(),
            Action::Release(lock) => self.owners[lock] == Some(step.thread),
            Action::Join(child) => self.has_ended(child),
            Action::Local
            | Action::Read(_)
            | Action::Write(_)
            | Action::Update(_)
            | Action::Fork(_) => true,
        }
    }

    /// Takes `step`, which must be enabled.
    pub(crate) fn take(&mut self, step: StepId) {
        debug_assert!(self.is_enabled(step), "only enabled steps are taken");
        let step = &self.ctp.steps[step];
        self.points[step.thread] = step.to;
        match step.action {
            Action::Acquire(lock) => self.owners[lock] = Some(step.thread),
            Action::Release(lock) => self.owners[lock] = None,
            Action::Fork(child) => self.has_started[child] = true,
            Action::Local
            | Action::Read(_)
            | Action::Write(_)
            | Action::Update(_)
            | Action::Join(_) => {}
        }
    }

    /// The steps that can be taken.
    pub(crate) fn enabled(&self) -> Vec<StepId> {
        let steps = self.points.iter().flat_map(|&point| self.ctp.steps_from(point));
        steps.map(|(id, _)| id).filter(|&id| self.is_enabled(id)).collect()
    }

    /// Whether `thread` is at an end point.
    pub(crate) fn has_ended(&self, thread: ThreadId) -> bool {
        self.ctp.steps_from(self.points[thread]).next().is_none()
    }

    /// Whether all threads are.
    pub(crate) fn is_complete(&self) -> bool {
        self.points.ids().all(|thread| self.has_ended(thread))
    }
}

/// Whether the order of two steps counts, `left` having been taken first.
pub(crate) fn is_dependent(ctp: &Ctp, left: StepId, right: StepId) -> bool {
    let (left, right) = (&ctp.steps[left], &ctp.steps[right]);
    left.thread == right.thread
        || movers::is_conflict(left.action, right.action)
        || left.action == Action::Fork(right.thread)
        || right.action == Action::Join(left.thread)
}

/// The canonical member of the class of `run`.
pub(crate) fn canonical(ctp: &Ctp, run: &[StepId]) -> Vec<StepId> {
    let mut rest = run.to_vec();
    let mut canonical = Vec::with_capacity(run.len());
    while !rest.is_empty() {
        let is_first = |index: usize| {
            !rest[..index].iter().any(|&earlier| is_dependent(ctp, earlier, rest[index]))
        };
        let next = (0..rest.len())
            .filter(|&index| is_first(index))
            .min_by_key(|&index| ctp.steps[rest[index]].thread)
            .expect("the first step depends on none before it");
        canonical.push(rest.remove(next));
    }
    canonical
}

/// The classes of all interleavings, incomplete ones too, each by its canonical member; shorter
/// ones first.
pub(crate) fn prefixes(ctp: &Ctp) -> Vec<Vec<StepId>> {
    let mut found = vec![Vec::new()];
    let mut layer: BTreeSet<Vec<StepId>> = BTreeSet::from([Vec::new()]);
    while !layer.is_empty() {
        let mut next = BTreeSet::new();
        for run in &layer {
            for step in State::after(ctp, run).enabled() {
                let mut longer = run.clone();
                longer.push(step);
                next.insert(canonical(ctp, &longer));
            }
        }
        found.extend(next.iter().cloned());
        layer = next;
    }
    found
}

/// The classes of complete interleavings.
pub(crate) fn classes(ctp: &Ctp) -> BTreeSet<Vec<StepId>> {
    let is_complete = |run: &Vec<StepId>| State::after(ctp, run).is_complete();
    prefixes(ctp).into_iter().filter(is_complete).collect()
}

/// What the schedules of a graph are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Permitted {
    /// How many complete ones there are.
    pub schedules_count: usize,
    /// Their classes.
    pub classes: BTreeSet<Vec<StepId>>,
}

/// The complete schedules of `graph`, switches and orders taken, stops not.
pub(crate) fn permitted(ctp: &Ctp, graph: &Graph) -> Permitted {
    let passes: FxHashSet<(NodeId, NodeId)> =
        graph.switches.iter().chain(&graph.orders).copied().collect();
    let mut node_of = IndexVec::from_elem(None, ctp.leaving.len());
    for (id, node) in graph.nodes.entries() {
        node_of[node.point] = Some(id);
    }
    let mut found = Permitted::default();
    let mut open: Vec<(Vec<StepId>, Option<ThreadId>)> = vec![(Vec::new(), None)];
    while let Some((run, last)) = open.pop() {
        let state = State::after(ctp, &run);
        if state.is_complete() {
            found.schedules_count += 1;
            found.classes.insert(canonical(ctp, &run));
            continue;
        }
        let node = |thread| node_of[state.points[thread]].expect("transactions end at nodes");
        for thread in ctp.threads.ids() {
            let may_go = match last {
                None => graph.roots.contains(&node(thread)),
                Some(last) => last == thread || passes.contains(&(node(last), node(thread))),
            };
            if may_go {
                let runs = transactions(ctp, &node_of, &run, thread);
                open.extend(runs.into_iter().map(|run| (run, Some(thread))));
            }
        }
    }
    found
}

/// `run` with each of the transactions that `thread` can make after it.
fn transactions(
    ctp: &Ctp,
    node_of: &IndexVec<Point, Option<NodeId>>,
    run: &[StepId],
    thread: ThreadId,
) -> Vec<Vec<StepId>> {
    let mut found = Vec::new();
    let mut open = vec![run.to_vec()];
    while let Some(current) = open.pop() {
        let state = State::after(ctp, &current);
        let point = state.points[thread];
        if current.len() > run.len() && node_of[point].is_some() {
            found.push(current);
            continue;
        }
        for (step, _) in ctp.steps_from(point) {
            if state.is_enabled(step) {
                let mut longer = current.clone();
                longer.push(step);
                open.push(longer);
            }
        }
    }
    found
}

/// The classes of interleavings that can be the last of what happens: every thread has ended, or
/// waits, or is where every step may fail.
pub(crate) fn settled(ctp: &Ctp) -> Vec<Vec<StepId>> {
    let may_fail = movers::may_fail(ctp);
    let mut runs = prefixes(ctp);
    runs.retain(|run| State::after(ctp, run).enabled().iter().all(|&step| may_fail[step]));
    runs
}

/// What a graph has of an interleaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Covered {
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
pub(crate) fn cover(ctp: &Ctp, graph: &Graph, run: &[StepId]) -> Covered {
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
