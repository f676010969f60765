//! Which blocks lie on a cycle of the transaction graph?
//!
//! The strongly connected components of the graph, by Tarjan's algorithm with a stack of its own,
//! walked against its edges from the blocks: every cycle passes through a block, since edges between
//! events follow the observed order. A barrier's round is a node between its arrivals and what
//! waits for them. It is no transaction, so a component is a cycle if it holds two others.

use reweave_base::{Id, IndexVec};
use reweave_trace::views::RoundId;
use reweave_trace::{EventId, Trace};

use super::edges::Edges;
use crate::blocks::{BlockRunId, Blocks};

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
        let mut walk = Walk::new(self);
        for (id, block) in self.blocks.entries() {
            if self.block_of[block.begin] == Some(id) {
                walk.explore(id.index());
            }
        }
        walk.on_cycle
    }
}

/// Not visited yet.
const UNSEEN: u32 = 0;

/// In a component that is complete.
const DONE: u32 = u32::MAX;

/// Nodes are numbered: first the blocks, then the events, then the rounds.
struct Walk<'a, 't> {
    graph: &'a Graph<'a, 't>,
    /// When each node was visited first, or [`UNSEEN`] or [`DONE`].
    visited: Vec<u32>,
    /// The earliest node, by its visit, known to be in the same component.
    low: Vec<u32>,
    time: u32,
    /// Nodes whose component is not complete.
    open: Vec<usize>,
    frames: Vec<Frame>,
    on_cycle: IndexVec<BlockRunId, bool>,
}

/// A node whose predecessors are being visited.
struct Frame {
    node: usize,
    /// Which of its events is next, and which of what that follows.
    event: usize,
    source: usize,
}

impl<'a, 't> Walk<'a, 't> {
    fn new(graph: &'a Graph<'a, 't>) -> Self {
        let (blocks, events) = (graph.blocks.len(), graph.trace().len());
        // A round has arrivals, so there are no more of them than events.
        let nodes = blocks + events;
        Self {
            graph,
            visited: vec![UNSEEN; nodes],
            low: vec![0; nodes],
            time: UNSEEN,
            open: Vec::new(),
            frames: Vec::new(),
            on_cycle: IndexVec::from_elem(false, blocks),
        }
    }

    fn node(&self, event: EventId) -> usize {
        match self.graph.transaction(event) {
            Transaction::Block(block) => block.index(),
            Transaction::Lone(event) => self.graph.blocks.len() + event.index(),
        }
    }

    fn round_node(&mut self, round: RoundId) -> usize {
        let node = self.graph.blocks.len() + self.graph.trace().len() + round.index();
        if node >= self.visited.len() {
            self.visited.resize(node + 1, UNSEEN);
            self.low.resize(node + 1, 0);
        }
        node
    }

    fn is_round(&self, node: usize) -> bool {
        node >= self.graph.blocks.len() + self.graph.trace().len()
    }

    /// The next node that the one of `frame` follows; none when there are no more.
    fn predecessor(&mut self, frame: &mut Frame) -> Option<usize> {
        let (graph, trace) = (self.graph, self.graph.trace());
        let blocks = graph.blocks.len();
        if self.is_round(frame.node) {
            let round = RoundId::from_index(frame.node - blocks - trace.len());
            let arrival = trace.signals().round(round).arrivals.get(frame.source).copied();
            frame.source += 1;
            return arrival.map(|arrival| self.node(arrival));
        }
        let transaction = match frame.node.checked_sub(blocks) {
            Some(event) => Transaction::Lone(EventId::from_index(event)),
            None => Transaction::Block(BlockRunId::from_index(frame.node)),
        };
        let events = graph.events(transaction);
        while let Some(&event) = events.get(frame.event) {
            let sources = graph.edges.sources(event);
            let at = frame.source;
            frame.source += 1;
            if let Some(&source) = sources.get(at) {
                return Some(self.node(source));
            }
            if at == sources.len()
                && let Some(round) = graph.edges.round(event)
            {
                return Some(self.round_node(round));
            }
            if at <= sources.len() + 1
                && frame.event == 0
                && let Some(previous) = graph.previous(event)
            {
                frame.source = sources.len() + 2;
                return Some(self.node(previous));
            }
            frame.event += 1;
            frame.source = 0;
        }
        None
    }

    fn enter(&mut self, node: usize) {
        self.time += 1;
        self.visited[node] = self.time;
        self.low[node] = self.time;
        self.open.push(node);
        self.frames.push(Frame { node, event: 0, source: 0 });
    }

    /// Finds the components of `root` and of all that it follows.
    fn explore(&mut self, root: usize) {
        if self.visited[root] != UNSEEN {
            return;
        }
        self.enter(root);
        while let Some(mut frame) = self.frames.pop() {
            let node = frame.node;
            match self.predecessor(&mut frame) {
                Some(other) => {
                    self.frames.push(frame);
                    match self.visited[other] {
                        UNSEEN => self.enter(other),
                        DONE => {}
                        time => self.low[node] = self.low[node].min(time),
                    }
                }
                None => {
                    if self.low[node] == self.visited[node] {
                        self.complete(node);
                    }
                    if let Some(parent) = self.frames.last() {
                        let parent = parent.node;
                        self.low[parent] = self.low[parent].min(self.low[node]);
                    }
                }
            }
        }
    }

    /// Ends the component that was entered at `root`.
    fn complete(&mut self, root: usize) {
        let from = self.open.iter().rposition(|&node| node == root).unwrap_or(0);
        let transactions = self.open[from..].iter().filter(|&&node| !self.is_round(node)).count();
        for node in self.open.split_off(from) {
            self.visited[node] = DONE;
            if transactions > 1 && node < self.on_cycle.len() {
                self.on_cycle[BlockRunId::from_index(node)] = true;
            }
        }
    }
}
