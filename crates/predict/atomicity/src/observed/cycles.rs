//! Which blocks lie on a cycle of the transaction graph?
//!
//! The strongly connected components of the graph, walked against its edges from the blocks: every
//! cycle passes through a block, since edges between events follow the observed order. A barrier's round is a node between its arrivals and what
//! waits for them. It is no transaction, so a component is a cycle if it holds two others.

use reweave_base::{ComponentId, Id, IndexVec, strong_components};
use reweave_trace::views::RoundId;
use reweave_trace::{EventId, Trace};

use super::edges::Edges;
use crate::blocks::{BlockRunId, Blocks};

reweave_base::id! {
    /// A node of the graph: first the blocks, then the events, then the rounds of barriers.
    struct NodeId;
}

/// What an event is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Transaction {
    Block(BlockRunId),
    /// An event outside all blocks.
    Lone(EventId),
}

/// The transactions of a run and what each follows.
#[derive(Debug)]
pub(super) struct Graph<'a, 't> {
    pub(super) edges: &'a Edges<'t>,
    pub(super) blocks: &'a Blocks,
    block_of: IndexVec<EventId, Option<BlockRunId>>,
}

impl<'a, 't> Graph<'a, 't> {
    /// The graph in which the blocks that are `whole` are one transaction each.
    pub(super) fn new(
        edges: &'a Edges<'t>,
        blocks: &'a Blocks,
        whole: &IndexVec<BlockRunId, bool>,
    ) -> Self {
        let trace = edges.trace();
        let mut block_of = IndexVec::from_elem(None, trace.len());
        for (id, block) in blocks.entries().filter(|&(id, _)| whole[id]) {
            for &event in block.events(trace) {
                block_of[event] = Some(id);
            }
        }
        Self { edges, blocks, block_of }
    }

    pub(super) fn trace(&self) -> &'t Trace {
        self.edges.trace()
    }

    /// What `event` is part of.
    pub(super) fn transaction(&self, event: EventId) -> Transaction {
        self.block_of[event].map_or(Transaction::Lone(event), Transaction::Block)
    }

    /// The events of `transaction`, in program order.
    pub(super) fn events(&self, transaction: Transaction) -> &'t [EventId] {
        let trace = self.trace();
        match transaction {
            Transaction::Block(block) => self.blocks[block].events(trace),
            Transaction::Lone(event) => {
                let at = trace.position(event) as usize;
                &trace.thread_events(trace.event(event).thread)[at..=at]
            }
        }
    }

    /// The event before `event` in its thread.
    pub(super) fn previous(&self, event: EventId) -> Option<EventId> {
        let trace = self.trace();
        let position = trace.position(event).checked_sub(1)? as usize;
        Some(trace.thread_events(trace.event(event).thread)[position])
    }

    /// The blocks among those that are one transaction each that lie on a cycle.
    pub(super) fn on_cycle(&self) -> IndexVec<BlockRunId, bool> {
        let trace = self.trace();
        let rounds = trace.events().filter_map(|(event, _)| self.edges.round(event));
        let rounds_count = rounds.map(|round| round.index() + 1).max().unwrap_or(0);
        let firsts = self.blocks.entries().map(|(_, block)| block.begin);
        let roots = firsts.filter(|&first| self.block_of[first].is_some());
        let components = strong_components(
            self.round_node(rounds_count).index(),
            roots.map(|first| self.node(first)),
            |node| self.predecessors(node),
        );
        let mut transactions: IndexVec<ComponentId, u32> = IndexVec::new();
        for component in components.iter().take(self.round_node(0).index()).flatten() {
            *transactions.get_or_default(*component) += 1;
        }
        let is_on_cycle = |&component: &Option<ComponentId>| {
            component.is_some_and(|component| transactions[component] > 1)
        };
        components.iter().take(self.blocks.len()).map(is_on_cycle).collect()
    }

    fn node(&self, event: EventId) -> NodeId {
        NodeId::from_index(match self.transaction(event) {
            Transaction::Block(block) => block.index(),
            Transaction::Lone(event) => self.blocks.len() + event.index(),
        })
    }

    fn round_node(&self, round: usize) -> NodeId {
        NodeId::from_index(self.blocks.len() + self.trace().len() + round)
    }

    /// What `node` follows.
    fn predecessors(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let (blocks, trace) = (self.blocks.len(), self.trace());
        let (events, arrivals): (&[EventId], &[EventId]) = match node.index().checked_sub(blocks) {
            None => (self.events(Transaction::Block(BlockRunId::from_index(node.index()))), &[]),
            Some(event) if event < trace.len() => {
                (self.events(Transaction::Lone(EventId::from_index(event))), &[])
            }
            Some(round) => {
                let round = RoundId::from_index(round - trace.len());
                (&[], &trace.signals().round(round).arrivals)
            }
        };
        let previous = events.first().and_then(|&first| self.previous(first));
        let followed = events.iter().flat_map(|&event| {
            let round = self.edges.round(event).map(|round| self.round_node(round.index()));
            self.edges.sources(event).iter().map(|&source| self.node(source)).chain(round)
        });
        let others = arrivals.iter().copied().chain(previous);
        followed.chain(others.map(|event| self.node(event)))
    }
}
