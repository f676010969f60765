//! Data dependence: which events an event's values may come from (D1 and D2).
//!
//! D1: the last earlier assignment of each local that is read, in the same thread, or in the
//! forking thread if the local was taken over at the fork. D2: for a read of a shared variable, of
//! every thread its last write before and its first write after, since a serial order may put
//! either of them last; the reader's own write after cannot come earlier and is left out.
//!
//! Written down one by one, D2 has as many edges as reads times writing threads. But the sets of
//! last writes of two successive reads differ little. So they are kept as balanced trees over the
//! writing threads, whose inner nodes are *junctions*: a new tree shares all junctions below which
//! nothing changed. An edge `source → target` then may lead over junctions, and all that is
//! computed from the edges is closures, to which that makes no difference.
//!
//! For a variable with `w` writes, `r` reads and `t` writing threads there are at most
//! `(w + r) log t` edges. Section 3.3 of Burnim et al.

use reweave_base::{CsrTable, FxHashMap, Id, IndexVec};
use reweave_trace::{Flow, LocalId, Marker, Op, ThreadId, ThreadOp, Trace};

use crate::events::{Events, NodeId};

/// The direct sources of every event and junction.
#[derive(Clone, Debug)]
pub struct Dependences {
    sources: CsrTable<NodeId, NodeId>,
    events_count: usize,
}

impl Dependences {
    /// The dependences between `events`, those of `trace`, whose flow layer is `flow`.
    pub fn new(trace: &Trace, flow: &Flow, events: &Events) -> Self {
        let mut graph = Graph { edges: Vec::new(), nodes_count: events.len() };
        add_local(trace, flow, events, &mut graph);
        add_shared(events, &mut graph);
        let Graph { edges, nodes_count } = graph;
        let filler = NodeId::from_index(0);
        let sources = CsrTable::group(nodes_count, filler, || edges.iter().copied());
        Self { sources, events_count: events.len() }
    }

    /// How many events and junctions there are.
    pub fn nodes_count(&self) -> usize {
        self.sources.len()
    }

    /// Whether `node` is a junction, not an event.
    #[inline]
    pub fn is_junction(&self, node: NodeId) -> bool {
        node.index() >= self.events_count
    }

    /// The nodes from which an edge leads to `node`.
    #[inline]
    pub fn sources(&self, node: NodeId) -> &[NodeId] {
        self.sources.row(node)
    }

    /// The events on which `event` depends directly, in order, seen through the junctions.
    pub fn direct(&self, event: NodeId) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut rest = self.sources(event).to_vec();
        while let Some(node) = rest.pop() {
            if self.is_junction(node) {
                rest.extend_from_slice(self.sources(node));
            } else {
                found.push(node);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The same edges the other way round: for each node those that it leads to.
    pub fn targets(&self) -> CsrTable<NodeId, NodeId> {
        let edges =
            || self.sources.rows().flat_map(|(to, row)| row.iter().map(move |&from| (from, to)));
        CsrTable::group(self.nodes_count(), NodeId::from_index(0), edges)
    }
}

/// Edges under construction: each target with one of its sources.
struct Graph {
    edges: Vec<(NodeId, NodeId)>,
    nodes_count: usize,
}

impl Graph {
    fn junction(&mut self, left: NodeId, right: NodeId) -> NodeId {
        let junction = NodeId::from_index(self.nodes_count);
        self.nodes_count += 1;
        self.edges.extend([(junction, left), (junction, right)]);
        junction
    }
}

/// D1.
fn add_local(trace: &Trace, flow: &Flow, events: &Events, graph: &mut Graph) {
    let mut writers: FxHashMap<(ThreadId, LocalId), NodeId> = FxHashMap::default();
    let mut nodes = events.nodes().peekable();
    for (id, event) in trace.events() {
        let node = nodes.next_if(|&node| events.id(node) == id);
        let uses = flow.uses(id);
        if let Op::Thread(ThreadOp::Fork, child) = event.op {
            for &local in uses {
                match writers.get(&(event.thread, local)).copied() {
                    Some(writer) => writers.insert((child, local), writer),
                    None => writers.remove(&(child, local)),
                };
            }
        }
        if let Some(node) = node {
            let found = uses.iter().filter_map(|&local| writers.get(&(event.thread, local)));
            graph.edges.extend(found.map(|&writer| (node, writer)));
        }
        let own = if let Op::Marker(Marker::Let(local)) = event.op { Some(local) } else { None };
        let Some(defined) = flow.step(id).defines.or(own) else { continue };
        // What assigns a local and does not count hides the assignments before it.
        match node {
            Some(node) => writers.insert((event.thread, defined), node),
            None => writers.remove(&(event.thread, defined)),
        };
    }
}

/// D2.
fn add_shared(events: &Events, graph: &mut Graph) {
    let mut ranks: IndexVec<ThreadId, Option<Rank>> =
        IndexVec::from_elem(None, events.parents().len());
    let mut writes = Writes::default();
    for (_, accesses) in events.accesses().rows() {
        let mut writers = Vec::new();
        for &node in accesses.iter().filter(|&&node| events.kind(node).is_write()) {
            let rank = &mut ranks[events.thread(node)];
            if rank.is_none() {
                *rank = Some(Rank::from_index(writers.len()));
                writers.push(events.thread(node));
            }
        }
        if !writers.is_empty() {
            add_before(events, accesses, &ranks, writers.len(), &mut writes, graph);
            add_after(events, accesses, &ranks, writers.len(), &mut writes, graph);
        }
        for thread in writers {
            ranks[thread] = None;
        }
    }
}

fn add_before(
    events: &Events,
    accesses: &[NodeId],
    ranks: &IndexVec<ThreadId, Option<Rank>>,
    writers_count: usize,
    writes: &mut Writes,
    graph: &mut Graph,
) {
    writes.clear(writers_count);
    for &node in accesses {
        let kind = events.kind(node);
        if kind.is_read() {
            let all = writes.all(graph);
            graph.edges.extend(all.map(|source| (node, source)));
        }
        if let Some(rank) = ranks[events.thread(node)].filter(|_| kind.is_write()) {
            writes.set(rank, node);
        }
    }
}

fn add_after(
    events: &Events,
    accesses: &[NodeId],
    ranks: &IndexVec<ThreadId, Option<Rank>>,
    writers_count: usize,
    writes: &mut Writes,
    graph: &mut Graph,
) {
    writes.clear(writers_count);
    for &node in accesses.iter().rev() {
        let kind = events.kind(node);
        let rank = ranks[events.thread(node)];
        if let Some(rank) = rank.filter(|_| kind.is_write()) {
            writes.set(rank, node);
        }
        if !kind.is_read() {
            continue;
        }
        let all = writes.all(graph);
        match rank {
            Some(own) => graph.edges.extend(writes.others(own).map(|source| (node, source))),
            None => graph.edges.extend(all.map(|source| (node, source))),
        }
    }
}

reweave_base::id! {
    /// A writing thread's place among those that write a variable.
    struct Rank;
}

/// One write of each thread, as a tree of junctions: slot 1 is the root, the slots below `n` are
/// `2n` and `2n + 1`, and the threads' own are the last half.
#[derive(Default)]
struct Writes {
    slots: Vec<Option<NodeId>>,
    stale: Vec<bool>,
    stale_slots: Vec<usize>,
}

impl Writes {
    fn clear(&mut self, writers_count: usize) {
        let slots_count = 2 * writers_count.next_power_of_two();
        self.slots.clear();
        self.slots.resize(slots_count, None);
        self.stale.clear();
        self.stale.resize(slots_count, false);
        self.stale_slots.clear();
    }

    fn set(&mut self, rank: Rank, node: NodeId) {
        let mut slot = self.slots.len() / 2 + rank.index();
        self.slots[slot] = Some(node);
        slot /= 2;
        while slot > 0 && !std::mem::replace(&mut self.stale[slot], true) {
            self.stale_slots.push(slot);
            slot /= 2;
        }
    }

    /// A node to which edges lead from all of them, if there are any. Brings the tree up to date.
    fn all(&mut self, graph: &mut Graph) -> Option<NodeId> {
        // Deeper slots have larger numbers, and a slot needs those below it.
        self.stale_slots.sort_unstable_by(|left, right| right.cmp(left));
        for slot in self.stale_slots.drain(..) {
            self.stale[slot] = false;
            self.slots[slot] = match (self.slots[2 * slot], self.slots[2 * slot + 1]) {
                (Some(left), Some(right)) => Some(graph.junction(left, right)),
                (left, right) => left.or(right),
            };
        }
        self.slots[1]
    }

    /// Nodes to which edges lead from all but that of `own`; the tree is up to date.
    fn others(&self, own: Rank) -> impl Iterator<Item = NodeId> {
        let path = std::iter::successors(Some(self.slots.len() / 2 + own.index()), |&slot| {
            (slot > 3).then_some(slot / 2)
        });
        path.filter(|&slot| slot > 1).filter_map(|slot| self.slots[slot ^ 1])
    }
}
