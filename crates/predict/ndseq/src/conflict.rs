//! Conflicts: can the threads of a run be put one after the other (Definitions 3 and 4)?
//!
//! Two events of a set conflict if they are of different threads and access one variable, at least
//! one of them writing. A thread's transaction is its own events and those of its descendants; two
//! threads conflict if neither descends from the other and their transactions do. The set is
//! serializable if conflicts, directed as observed, have no cycle.
//!
//! A cycle among threads of any depth maps to one among the children of the lowest thread above
//! all of them, so it is enough to look at siblings: for each variable and each thread that has
//! several children, at the accesses below those children. There only neighbours are joined: the
//! last write with the reads after it, those with the next write, a write with the next. Every
//! other conflict is a path of such edges, since an access by the same child is at the same node.
//! (One pass for all siblings together would not do: a parent's access between those of two
//! children conflicts with neither.)
//!
//! Linear in the accesses times the depth at which threads nest, counting only those with
//! siblings. `oracle::ndseq` is the
//! definition to the letter.

use std::collections::VecDeque;

use reweave_base::{ComponentId, CsrTable, FxHashSet, Id, IndexVec, strong_components};
use reweave_trace::ThreadId;

use crate::events::NodeId;
use crate::run::Run;

/// A conflict between two events, and the two siblings whose transactions it joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The sibling whose transaction has the earlier event.
    pub from: ThreadId,
    /// The one that has the later.
    pub to: ThreadId,
    /// The earlier event.
    pub earlier: NodeId,
    /// The later.
    pub later: NodeId,
}

/// The conflicts inside a set of events.
#[derive(Clone, Debug)]
pub struct Conflicts {
    /// Sorted.
    edges: Vec<Edge>,
    /// For each thread, and each to which a conflict leads from it, in order, where the edges lie.
    arcs: CsrTable<ThreadId, Arc>,
    components: IndexVec<ThreadId, Option<ComponentId>>,
}

/// The edges from one thread to another.
#[derive(Clone, Copy, Debug)]
struct Arc {
    from: ThreadId,
    to: ThreadId,
    edges: (u32, u32),
}

impl Conflicts {
    /// The conflicts between those events of `run` for which `is_member`.
    pub fn new(run: &Run<'_>, is_member: &IndexVec<NodeId, bool>) -> Self {
        let mut edges = edges(run, is_member);
        edges.sort_unstable();
        edges.dedup();
        let mut arcs: Vec<Arc> = Vec::new();
        for (index, edge) in edges.iter().enumerate() {
            match arcs.last_mut() {
                Some(arc) if (arc.from, arc.to) == (edge.from, edge.to) => arc.edges.1 += 1,
                _ => arcs.push(Arc {
                    from: edge.from,
                    to: edge.to,
                    edges: (index as u32, index as u32 + 1),
                }),
            }
        }
        let threads_count = run.events.parents().len();
        let (any, threads) =
            (ThreadId::from_index(0), (0..threads_count).map(ThreadId::from_index));
        let filler = Arc { from: any, to: any, edges: (0, 0) };
        let arcs =
            CsrTable::group(threads_count, filler, || arcs.iter().map(|&arc| (arc.from, arc)));
        let components = strong_components(threads_count, threads, |thread| {
            arcs.row(thread).iter().map(|arc| arc.to)
        });
        Self { edges, arcs, components }
    }

    /// Whether the threads can be put one after the other.
    pub fn is_serializable(&self) -> bool {
        self.cyclic_arcs().next().is_none()
    }

    /// The arcs on cycles, in order: those inside a component, since none leads from a thread to itself.
    fn cyclic_arcs(&self) -> impl Iterator<Item = &Arc> {
        let arcs = self.arcs.rows().flat_map(|(_, row)| row);
        arcs.filter(|arc| self.is_inside(arc))
    }

    fn edges_of(&self, arc: Arc) -> &[Edge] {
        &self.edges[arc.edges.0 as usize..arc.edges.1 as usize]
    }

    fn arc(&self, from: ThreadId, to: ThreadId) -> Option<Arc> {
        let arcs = self.arcs.row(from);
        arcs.binary_search_by_key(&to, |arc| arc.to).ok().map(|index| arcs[index])
    }

    fn is_inside(&self, arc: &Arc) -> bool {
        self.components[arc.from] == self.components[arc.to]
    }

    /// A cycle of fewest threads: each edge starts at the thread where the one before it ends.
    pub fn shortest_cycle(&self) -> Option<Vec<Edge>> {
        let two = self.cyclic_arcs().find_map(|&arc| Some([arc, self.arc(arc.to, arc.from)?]));
        let first_edges = |arcs: &[Arc]| arcs.iter().map(|&arc| self.edges_of(arc)[0]).collect();
        if let Some(two) = two {
            return Some(first_edges(&two));
        }
        let mut paths = Paths::new(self.components.len());
        let mut shortest: Option<Vec<Arc>> = None;
        let mut previous = None;
        for arc in self.cyclic_arcs() {
            // One search from each thread finds the shortest cycle through it.
            if previous.replace(arc.from) == Some(arc.from) {
                continue;
            }
            let bound = shortest.as_ref().map_or(usize::MAX, |cycle| cycle.len() - 1);
            if let Some(cycle) = paths.find(self, arc.from, arc.from, bound) {
                shortest = Some(cycle);
            }
        }
        shortest.map(|cycle| first_edges(&cycle))
    }

    /// Shows `visit` cycles: for every conflict that lies on a cycle of two threads such a cycle,
    /// and shortest cycles for some of the others, `searches_max` or one for each component. Of
    /// the conflicts that would do, the one of least `cost` is taken.
    pub fn visit_cycles(
        &self,
        searches_max: usize,
        cost: impl Fn(&Edge) -> u32,
        mut visit: impl FnMut(&[Edge]),
    ) {
        let best = |arc: Arc| self.edges_of(arc).iter().min_by_key(|edge| cost(edge)).copied();
        let mut is_shown: FxHashSet<Option<ComponentId>> = FxHashSet::default();
        let mut single = Vec::new();
        for &arc in self.cyclic_arcs() {
            let Some(back) = self.arc(arc.to, arc.from).and_then(best) else {
                single.push(arc);
                continue;
            };
            is_shown.insert(self.components[arc.from]);
            for &edge in self.edges_of(arc) {
                visit(&[edge, back]);
            }
        }
        let mut paths = Paths::new(self.components.len());
        let mut covered: Vec<(ThreadId, ThreadId)> = Vec::new();
        let mut searches = 0;
        for arc in single {
            let component = self.components[arc.from];
            if searches >= searches_max && is_shown.contains(&component)
                || covered.contains(&(arc.from, arc.to))
            {
                continue;
            }
            searches += 1;
            let Some(rest) = paths.find(self, arc.to, arc.from, usize::MAX) else { continue };
            is_shown.insert(component);
            let cycle: Vec<Edge> =
                std::iter::once(arc).chain(rest.iter().copied()).filter_map(best).collect();
            covered.extend(rest.iter().map(|arc| (arc.from, arc.to)));
            visit(&cycle);
        }
    }
}

/// Breadth-first search among the threads of one component.
struct Paths {
    stamps: IndexVec<ThreadId, u32>,
    arrivals: IndexVec<ThreadId, Option<Arc>>,
    stamp: u32,
}

impl Paths {
    fn new(threads_count: usize) -> Self {
        Self {
            stamps: IndexVec::from_elem(0, threads_count),
            arrivals: IndexVec::from_elem(None, threads_count),
            stamp: 0,
        }
    }

    /// A shortest path from `start` to `goal` that has at least one arc and at most `length_max`.
    fn find(
        &mut self,
        conflicts: &Conflicts,
        start: ThreadId,
        goal: ThreadId,
        length_max: usize,
    ) -> Option<Vec<Arc>> {
        self.stamp += 1;
        let mut queue = VecDeque::from([(start, 0_usize)]);
        while let Some((thread, length)) = queue.pop_front() {
            if length >= length_max {
                return None;
            }
            for arc in conflicts.arcs.row(thread).iter().filter(|arc| conflicts.is_inside(arc)) {
                if self.stamps[arc.to] == self.stamp {
                    continue;
                }
                self.stamps[arc.to] = self.stamp;
                self.arrivals[arc.to] = Some(*arc);
                if arc.to == goal {
                    return Some(self.path(start, goal));
                }
                queue.push_back((arc.to, length + 1));
            }
        }
        None
    }

    fn path(&self, start: ThreadId, goal: ThreadId) -> Vec<Arc> {
        let mut path: Vec<Arc> = Vec::new();
        let mut thread = goal;
        while let Some(arc) = self.arrivals[thread] {
            path.push(arc);
            thread = arc.from;
            if thread == start {
                break;
            }
        }
        path.reverse();
        path
    }
}

/// The accesses of one variable below the children of one thread, as far as they were seen.
#[derive(Clone, Debug, Default)]
struct Siblings {
    last_write: Option<(ThreadId, NodeId)>,
    /// Since that write, the first read below each child.
    reads: Vec<(ThreadId, NodeId)>,
    /// Which stretch without a write it is; 0 if nothing was seen of the variable.
    stretch: u32,
}

/// Edges between siblings such that every conflict is a path of them.
fn edges(run: &Run<'_>, is_member: &IndexVec<NodeId, bool>) -> Vec<Edge> {
    let nearest = nearest_with_siblings(run);
    let threads_count = nearest.len();
    // The last one is for the threads that nobody forked.
    let mut families: Vec<Siblings> = vec![Siblings::default(); threads_count + 1];
    let mut seen: IndexVec<ThreadId, u32> = IndexVec::from_elem(0, threads_count);
    let mut stretch = 0;
    let mut touched: Vec<usize> = Vec::new();
    let mut edges = Vec::new();
    for (_, accesses) in run.events.accesses().rows() {
        for &node in accesses.iter().filter(|&&node| is_member[node]) {
            let kind = run.events.kind(node);
            let mut next = nearest[run.events.thread(node)];
            while let Some(child) = next {
                let parent = run.events.parents()[child];
                let family_index = parent.map_or(threads_count, Id::index);
                let family = &mut families[family_index];
                if family.stretch == 0 {
                    stretch += 1;
                    family.stretch = stretch;
                    touched.push(family_index);
                }
                if kind.is_read()
                    && std::mem::replace(&mut seen[child], family.stretch) != family.stretch
                {
                    family.read(child, node, &mut edges);
                }
                if kind.is_write() {
                    stretch += 1;
                    family.write(child, node, stretch, &mut edges);
                }
                next = parent.and_then(|parent| nearest[parent]);
            }
        }
        for family in touched.drain(..) {
            families[family].last_write = None;
            families[family].reads.clear();
            families[family].stretch = 0;
        }
    }
    edges
}

impl Siblings {
    fn read(&mut self, child: ThreadId, node: NodeId, edges: &mut Vec<Edge>) {
        self.reads.push((child, node));
        if let Some((from, earlier)) = self.last_write.filter(|&(from, _)| from != child) {
            edges.push(Edge { from, to: child, earlier, later: node });
        }
    }

    fn write(&mut self, child: ThreadId, node: NodeId, stretch: u32, edges: &mut Vec<Edge>) {
        // Conflicts with earlier writes follow by way of the last one.
        let before = self.last_write.iter().chain(&self.reads);
        for &(from, earlier) in before.filter(|&&(from, _)| from != child) {
            edges.push(Edge { from, to: child, earlier, later: node });
        }
        self.last_write = Some((child, node));
        self.reads.clear();
        self.stretch = stretch;
    }
}

/// For each thread the nearest of it and its ancestors that has siblings; the others never
/// conflict with anyone on their own.
fn nearest_with_siblings(run: &Run<'_>) -> IndexVec<ThreadId, Option<ThreadId>> {
    let parents = run.events.parents();
    let mut children_counts = vec![0_u32; parents.len() + 1];
    for parent in parents.iter() {
        children_counts[parent.map_or(parents.len(), Id::index)] += 1;
    }
    let has_siblings =
        |thread| children_counts[parents[thread].map_or(parents.len(), Id::index)] > 1;
    let mut nearest: IndexVec<ThreadId, Option<ThreadId>> =
        parents.ids().map(|thread| has_siblings(thread).then_some(thread)).collect();
    for &thread in run.events.forked() {
        let above = parents[thread].and_then(|parent| nearest[parent]);
        nearest[thread] = nearest[thread].or(above);
    }
    nearest
}
