//! The syntax tree: what the parser saw, names still as written.
//!
//! Expressions live in one table, each after its operands and nothing foreign in between. A long
//! chain of operators is then a long table and no deep tree, and whoever goes through an expression
//! goes through a stretch of the table, in the order of evaluation.

use reweave_base::IndexVec;
use reweave_trace::{Binary, Unary};

use crate::source::Span;

reweave_base::id! {
    /// A node of an expression.
    pub(crate) struct NodeId;
}

/// A program as written.
#[derive(Debug, Default)]
pub(crate) struct Syntax {
    pub(crate) items: Vec<Item>,
    pub(crate) nodes: IndexVec<NodeId, Node>,
}

/// One declaration. A name is where it is written.
#[derive(Debug)]
pub(crate) enum Item {
    Shared { name: Span, length: Option<Length>, initial: Option<Value> },
    Lock { name: Span, length: Option<Length> },
    Condition { name: Span },
    Focus { names: Vec<Span> },
    Function { name: Span, parameters: Vec<Span>, body: Block },
    Thread { name: Span, body: Block },
    Main { word: Span, body: Block },
}

/// The length of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub(crate) value: u64,
    pub(crate) span: Span,
}

/// A whole expression: the nodes from `first` to `root`, and no others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    pub(crate) first: NodeId,
    pub(crate) root: NodeId,
}

/// A node of an expression.
#[derive(Debug)]
pub(crate) struct Node {
    /// From its first token to its last.
    pub(crate) span: Span,
    pub(crate) kind: NodeKind,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Number(i64),
    Name,
    Index { name: Span, index: NodeId },
    Call { name: Span, arguments: Vec<NodeId> },
    Unary(Unary, NodeId),
    Binary(Binary, NodeId, NodeId),
    // What stands in parentheses.
    Paren(NodeId),
}

/// Statements between braces.
#[derive(Debug)]
pub(crate) struct Block {
    /// With the braces; for what follows `else` in `else if`, the inner statement.
    pub(crate) span: Span,
    pub(crate) statements: Vec<Statement>,
}

/// One statement.
#[derive(Debug)]
pub(crate) struct Statement {
    /// From its first token to its last.
    pub(crate) span: Span,
    pub(crate) kind: StatementKind,
}

#[derive(Debug)]
pub(crate) enum StatementKind {
    Let { name: Span, value: Value },
    CompareAndSwap { name: Span, place: Place, old: Value, new: Value },
    FetchAdd { name: Span, place: Place, amount: Value },
    // With the place of its word, `fork`.
    Fork { name: Span, word: Span, body: Block },
    Assign { place: Place, value: Value },
    If { condition: Value, then: Block, otherwise: Option<Block> },
    Optional { body: Block },
    While { condition: Value, body: Block },
    For { range: Range, body: Block },
    ForEachThread { range: Range, body: Block },
    Threads { bodies: Vec<Block> },
    Atomic { body: Block },
    Expect { body: Block },
    Sync { lock: Place, body: Block },
    Lock(Place),
    Unlock(Place),
    Wait { condition: Span, lock: Place },
    Notify(Span),
    NotifyAll(Span),
    Join(Span),
    Assert(Value),
    Assume(Value),
    Skip,
    Return { value: Option<Value> },
    Break,
    Continue,
    Call { name: Span, arguments: Vec<Value> },
}

/// A name, or an element of what it names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) name: Span,
    pub(crate) index: Option<Value>,
    pub(crate) span: Span,
}

/// What a loop goes through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) name: Span,
    pub(crate) from: Value,
    pub(crate) to: Value,
    pub(crate) is_inclusive: bool,
}
