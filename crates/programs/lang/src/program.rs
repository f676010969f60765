//! The resolved form of a program: a tree in tables, every name an id.
//!
//! What runs a program, prints where a statement stands, or checks it needs no text and no scope:
//! a local that is declared twice in different blocks is two locals, a captured local is listed
//! where the thread starts, and every statement knows the tokens that it spans.

use reweave_base::IndexVec;
use reweave_trace::{Binary, Unary};

use crate::source::Span;

reweave_base::id! {
    /// A shared variable or array.
    pub struct GlobalId;
    /// A lock or an array of locks.
    pub struct LockId;
    /// A condition variable.
    pub struct ConditionId;
    /// A function.
    pub struct FunctionId;
    /// A local: a parameter, a loop's variable or what a `let` declares.
    pub struct LocalId;
    /// A block of statements.
    pub struct BlockId;
    /// An expression.
    pub struct ExprId;
}

/// A program whose names are all resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Shared variables, as declared.
    pub globals: IndexVec<GlobalId, Global>,
    /// Locks, as declared.
    pub locks: IndexVec<LockId, Lock>,
    /// Condition variables, as declared.
    pub conditions: IndexVec<ConditionId, Condition>,
    /// What the program's result is; every global where the program does not say.
    pub focus: Vec<GlobalId>,
    /// Functions, as declared. None calls itself, directly or through others.
    pub functions: IndexVec<FunctionId, Function>,
    /// The threads that are there from the start, as declared.
    pub threads: Vec<Thread>,
    /// What runs to its end before those threads start.
    pub main: Option<BlockId>,
    /// Locals of all functions and threads.
    pub locals: IndexVec<LocalId, Local>,
    /// Blocks, each after the one that it is inside of.
    pub blocks: IndexVec<BlockId, Block>,
    /// Expressions, each after its operands.
    pub expressions: IndexVec<ExprId, Expr>,
}

/// A shared integer, or an array of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// Where the name is declared.
    pub span: Span,
    /// How many elements an array has; none for a single integer.
    pub length: Option<u32>,
    /// What it, or each element, holds at the start.
    pub initial: i64,
}

/// A mutex, or an array of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// Where the name is declared.
    pub span: Span,
    /// How many elements an array has; none for a single lock.
    pub length: Option<u32>,
}

/// A condition variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its name.
    pub name: String,
    /// Where the name is declared.
    pub span: Span,
}

/// A function of integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Where the name is declared.
    pub span: Span,
    /// Its parameters.
    pub parameters: Vec<LocalId>,
    /// What it does; the result is 0 where no `return` gives one.
    pub body: BlockId,
}

/// A thread that is there from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// Where the name is declared.
    pub span: Span,
    /// What it does.
    pub body: BlockId,
}

/// A local integer, or the handle of a forked thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// Its name.
    pub name: String,
    /// Where the name is declared.
    pub span: Span,
}

/// A sequence of statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// From its `{` to its `}`; for what follows `else` in `else if`, the inner statement.
    pub span: Span,
    /// The statement whose body it is, by block and position; none for the body of `main`, a
    /// thread or a function.
    pub inside: Option<(BlockId, u32)>,
    /// Its statements, in order.
    pub statements: Vec<Statement>,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// From its first token to its last.
    pub span: Span,
    /// What it does.
    pub kind: StatementKind,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the grammar")]
pub enum StatementKind {
    /// `let l = e;` and, for a local that is there, `l = e;`
    Set { local: LocalId, value: ExprId },
    /// `x = e;`, `a[i] = e;`
    Store { place: Place, value: ExprId },
    /// `if (c) { … } else { … }`
    If { condition: ExprId, then: BlockId, otherwise: Option<BlockId> },
    /// `if (*) { … }`
    Optional { body: BlockId },
    /// `while (c) { … }`
    While { condition: ExprId, body: BlockId },
    /// `for (l in a..b) { … }`
    For { range: Range, body: BlockId },
    /// `coforeach (l in a..b) { … }`
    ForEachThread { range: Range, body: Capture },
    /// `cobegin { { … } { … } }`
    Threads { bodies: Vec<Capture> },
    /// `atomic { … }`
    Atomic { body: BlockId },
    /// `expect atomic { … }`
    Expect { body: BlockId },
    /// `sync (m) { … }`
    Sync { lock: LockPlace, body: BlockId },
    /// `lock(m);`
    Lock { lock: LockPlace },
    /// `unlock(m);`
    Unlock { lock: LockPlace },
    /// `wait(c, m);`
    Wait { condition: ConditionId, lock: LockPlace },
    /// `notify(c);`
    Notify { condition: ConditionId },
    /// `notifyall(c);`
    NotifyAll { condition: ConditionId },
    /// `let l = cas(x, old, new);`
    CompareAndSwap { local: LocalId, place: Place, old: ExprId, new: ExprId },
    /// `let l = fetchadd(x, e);`
    FetchAdd { local: LocalId, place: Place, amount: ExprId },
    /// `let t = fork { … };`
    Fork { local: LocalId, body: Capture },
    /// `join(t);`
    Join { local: LocalId },
    /// `assert(e);`
    Assert { condition: ExprId },
    /// `assume(e);`
    Assume { condition: ExprId },
    /// `skip;`
    Skip,
    /// `return e;`: from the function; without a value also from a thread's body
    Return { value: Option<ExprId> },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `f(a, b);`
    Call { function: FunctionId, arguments: Vec<ExprId> },
}

/// The body of a thread that a statement starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// What the thread does.
    pub body: BlockId,
    /// The locals of the code around it that it uses, of which it gets a copy; in order of id.
    /// The variable of a `coforeach` is one of them.
    pub locals: Vec<LocalId>,
}

/// The numbers that a loop goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The loop's variable.
    pub local: LocalId,
    /// The first number.
    pub from: ExprId,
    /// The bound.
    pub to: ExprId,
    /// Whether the bound is gone through too.
    pub is_inclusive: bool,
}

/// A shared integer: a variable or an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The variable or array.
    pub global: GlobalId,
    /// Which element; for arrays, and only for them.
    pub index: Option<ExprId>,
    /// Where it is written.
    pub span: Span,
}

/// A lock, or an element of an array of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockPlace {
    /// The lock or array.
    pub lock: LockId,
    /// Which element; for arrays, and only for them.
    pub index: Option<ExprId>,
    /// Where it is written.
    pub span: Span,
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// From its first token to its last.
    pub span: Span,
    /// What it computes.
    pub kind: ExprKind,
}

/// What an expression computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    /// A number.
    Number(i64),
    /// A local.
    Local(LocalId),
    /// A shared variable or element.
    Shared(Place),
    /// An operator on one operand.
    Unary(Unary, ExprId),
    /// An operator on two operands; `&&` and `||` leave out the second where the first decides.
    Binary(Binary, ExprId, ExprId),
    /// A call.
    Call(FunctionId, Vec<ExprId>),
}
