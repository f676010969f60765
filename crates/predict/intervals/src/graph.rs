//! The graphs that values are propagated on: nodes are control points where a thread can be
//! suspended, edges are transactions of one thread and switches between threads.
//!
//! A schedule of a graph is a sequence of transactions, the first from a root, each following the
//! one before it in the same thread or across one switch, order or stop. [`build`] makes the
//! graphs. In [`Mode::Sound`] it promises: every interleaving, complete or not, has for each of
//! its steps a schedule in which that step sees the same values, the last transaction possibly
//! stopping at the step. In [`Mode::Paper`] the graphs are those of the paper, which promises this
//! of two threads and complete interleavings.

mod build;
mod pairs;
mod switches;

use reweave_base::IndexVec;
use reweave_trace::ThreadId;

use crate::ctp::{Point, StepId};

pub use self::build::{Mode, Rule, Settings, build};

reweave_base::id! {
    /// A node of a graph.
    pub struct NodeId;
}

/// How a graph cuts threads into transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphKind {
    /// The concurrent control flow graph: every access ends a transaction.
    Ccfg,
    /// The transaction sequence graph of plain mutually atomic transactions.
    Tsg,
    /// The one of those that locks leave possible.
    TsgReduced,
}

/// A point where a thread can be suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Whose point.
    pub thread: ThreadId,
    /// Which of them.
    pub point: Point,
}

/// What a thread does from one node until it comes to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Where it starts.
    pub from: NodeId,
    /// All steps between, each after all that lead to it.
    pub steps: Vec<StepId>,
    /// The nodes that it can end at, in order.
    pub exits: Vec<NodeId>,
}

/// A graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// How it was made.
    pub kind: GraphKind,
    /// Nodes, thread by thread, and in a thread in the order of points.
    pub nodes: IndexVec<NodeId, Node>,
    /// At most one for each node, in the order of nodes. A transaction of several exits counts as
    /// so many edges.
    pub transactions: Vec<Transaction>,
    /// From where to where the processor can pass: `(from, to)`, sorted.
    pub switches: Vec<(NodeId, NodeId)>,
    /// Where a fork starts a thread and where a join waits for one, if those are not among the
    /// switches: `(from, to)`, sorted.
    pub orders: Vec<(NodeId, NodeId)>,
    /// Where a thread can stop for good because no guard holds, and where others may go on then.
    pub stops: Vec<Stop>,
    /// Where threads that nobody forks start.
    pub roots: Vec<NodeId>,
    /// How many mutually atomic transactions it was made of, if it was.
    pub mats_count: Option<usize>,
}

/// A point that a thread may never get past, since every step from it has a guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The point; it may lie inside a transaction.
    pub point: Point,
    /// The nodes of other threads from which these go on, in order.
    pub targets: Vec<NodeId>,
}

impl Graph {
    /// How many transaction edges there are.
    #[must_use]
    pub fn transaction_edges_count(&self) -> usize {
        self.transactions.iter().map(|transaction| transaction.exits.len()).sum()
    }
}
