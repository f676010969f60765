//! Events: what specification inference sees of a run.
//!
//! Only assignments and branches count: accesses of shared variables, assignments of locals, and
//! evaluated conditions. Locks, forks and all else order a run but take part in no dependence and no
//! conflict. The events that count get dense ids of their own, in observed order, and one column
//! for each thing that is asked of them.
//!
//! Beside them stand the threads as a tree: who forked whom.
//!
//! Linear in the trace. Section 3.2 of Burnim et al.

use reweave_base::{CsrTable, Id, IndexVec};
use reweave_trace::{
    AccessOp, EventId, Flow, InstanceId, Marker, Op, ThreadId, ThreadOp, Trace, VarId,
};

reweave_base::id! {
    /// An event that counts, or a junction between such events (see
    /// [`Dependences`](crate::dependences::Dependences)): events first, in observed order.
    pub struct NodeId;
}

/// What an event does, as far as it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Evaluates a condition.
    Branch,
    /// Assigns a local from locals.
    Local,
    /// Reads a shared variable.
    Read(VarId),
    /// Writes a shared variable.
    Write(VarId),
    /// Reads and writes a shared variable as one event.
    Update(VarId),
}

/// The events of a run that count, by column, and its threads.
#[derive(Clone, Debug)]
pub struct Events {
    ids: IndexVec<NodeId, EventId>,
    kinds: IndexVec<NodeId, Kind>,
    threads: IndexVec<NodeId, ThreadId>,
    instances: IndexVec<NodeId, Option<InstanceId>>,
    controls: IndexVec<NodeId, Option<NodeId>>,
    accesses: CsrTable<VarId, NodeId>,
    parents: IndexVec<ThreadId, Option<ThreadId>>,
    forked: Vec<ThreadId>,
}

impl Kind {
    /// What `op` does, if it counts.
    pub const fn new(op: Op) -> Option<Self> {
        match op {
            Op::Marker(Marker::Branch) => Some(Self::Branch),
            Op::Marker(Marker::Let(_)) => Some(Self::Local),
            Op::Access(AccessOp::Read | AccessOp::UnknownRead | AccessOp::AtomicRead(_), var) => {
                Some(Self::Read(var))
            }
            Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_), var) => Some(Self::Write(var)),
            Op::Access(AccessOp::AtomicUpdate(_), var) => Some(Self::Update(var)),
            Op::Fence(_)
            | Op::Lock(..)
            | Op::Thread(..)
            | Op::Condition(..)
            | Op::Barrier(..)
            | Op::Semaphore(..)
            | Op::Object(..)
            | Op::Marker(Marker::Begin(_) | Marker::End(_) | Marker::Timed | Marker::Unchecked) => {
                None
            }
        }
    }

    /// The shared variable that it accesses.
    pub const fn var(self) -> Option<VarId> {
        match self {
            Self::Branch | Self::Local => None,
            Self::Read(var) | Self::Write(var) | Self::Update(var) => Some(var),
        }
    }

    /// Whether it reads a shared variable.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Read(_) | Self::Update(_))
    }

    /// Whether it writes a shared variable.
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write(_) | Self::Update(_))
    }
}

impl Events {
    /// The events of `trace` that count, `flow` being its flow layer.
    pub fn new(trace: &Trace, flow: &Flow) -> Self {
        let mut ids = IndexVec::new();
        let mut kinds = IndexVec::new();
        let mut threads = IndexVec::new();
        let mut instances = IndexVec::new();
        let mut nodes: IndexVec<EventId, Option<NodeId>> = IndexVec::from_elem(None, trace.len());
        let mut parents = IndexVec::from_elem(None, trace.names().threads.len());
        let mut forked = Vec::new();
        for (id, event) in trace.events() {
            if let Op::Thread(ThreadOp::Fork, child) = event.op {
                parents[child] = Some(event.thread);
                forked.push(child);
            }
            let Some(kind) = Kind::new(event.op) else { continue };
            nodes[id] = Some(ids.push(id));
            kinds.push(kind);
            threads.push(event.thread);
            instances.push(flow.step(id).instance);
        }
        let control = |&id: &EventId| flow.step(id).control.and_then(|branch| nodes[branch]);
        let controls = ids.iter().map(control).collect();
        let accesses = {
            let access = |(node, kind): (NodeId, &Kind)| kind.var().map(|var| (var, node));
            let vars_count = trace.names().vars.len();
            CsrTable::group(vars_count, NodeId::from_index(0), || {
                kinds.entries().filter_map(access)
            })
        };
        Self { ids, kinds, threads, instances, controls, accesses, parents, forked }
    }

    /// How many events count.
    pub const fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether none does.
    pub const fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The events that count.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeId> + DoubleEndedIterator + use<> {
        self.ids.ids()
    }

    /// Where in the trace `node` stands.
    pub fn id(&self, node: NodeId) -> EventId {
        self.ids[node]
    }

    /// What `node` does.
    #[inline]
    pub fn kind(&self, node: NodeId) -> Kind {
        self.kinds[node]
    }

    /// Whether `node` evaluates a condition.
    #[inline]
    pub fn is_branch(&self, node: NodeId) -> bool {
        self.kinds[node] == Kind::Branch
    }

    /// Who did `node`.
    #[inline]
    pub fn thread(&self, node: NodeId) -> ThreadId {
        self.threads[node]
    }

    /// The execution of a statement that made `node`.
    #[inline]
    pub fn instance(&self, node: NodeId) -> Option<InstanceId> {
        self.instances[node]
    }

    /// The branch that decided that `node` runs (C1).
    pub fn control(&self, node: NodeId) -> Option<NodeId> {
        self.controls[node]
    }

    /// For each shared variable its accesses, in observed order.
    pub const fn accesses(&self) -> &CsrTable<VarId, NodeId> {
        &self.accesses
    }

    /// Who forked each thread; none for those that were there from the start.
    pub const fn parents(&self) -> &IndexVec<ThreadId, Option<ThreadId>> {
        &self.parents
    }

    /// The threads that were forked, each after the one that forked it.
    pub(crate) fn forked(&self) -> &[ThreadId] {
        &self.forked
    }

    /// The targets: for each thread and each variable of `focus`, its last write there (R1), in
    /// observed order.
    pub fn targets(&self, focus: &[VarId]) -> Vec<NodeId> {
        let mut last: IndexVec<ThreadId, Option<NodeId>> =
            IndexVec::from_elem(None, self.parents.len());
        let mut targets = Vec::new();
        for &var in focus {
            let mut writers = Vec::new();
            for &node in self.accesses.row(var) {
                if self.kind(node).is_write() && last[self.thread(node)].replace(node).is_none() {
                    writers.push(self.thread(node));
                }
            }
            targets.extend(writers.iter().filter_map(|&thread| last[thread].take()));
        }
        targets.sort_unstable();
        targets.dedup();
        targets
    }
}
