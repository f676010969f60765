//! What a program is compiled to: instructions on registers.
//!
//! An instruction either makes one event, and is then a step of its thread, or is part of the
//! step before it. Expressions that make no event are computed in between, so that a thread which
//! is not running always stands at an instruction that makes an event, its operands computed.
//!
//! Locals and the intermediate results that events leave behind are *named* registers: together
//! with the instruction at which a thread stands they are its whole state. The registers after
//! them hold what is recomputed from those, and constants.

use reweave_lang::{BlockId, FunctionId, Span};
use reweave_trace::{Binary, StaticBlock, Unary};

/// A register of a thread.
pub(crate) type Register = u32;
/// The position of an instruction.
pub(crate) type Address = u32;
/// The position of a symbolic expression.
pub(crate) type SymbolId = u32;

/// A compiled program.
#[derive(Clone, Debug, Default)]
pub struct Code {
    pub(crate) instructions: Vec<Instruction>,
    /// What is known of each instruction that makes an event.
    pub(crate) effects: Vec<Effect>,
    /// The named registers that events use, by ranges in `effects`.
    pub(crate) uses: Vec<Register>,
    /// The values of all registers when a thread starts.
    pub(crate) registers: Vec<i64>,
    /// The names of the named registers, which come first; all different.
    pub(crate) names: Vec<String>,
    /// Symbolic expressions, each after its operands.
    pub(crate) symbols: Vec<Symbol>,
    /// Where each function starts.
    pub(crate) functions: Vec<Address>,
    /// The registers that threads get a copy of, by ranges in the instructions.
    pub(crate) captured: Vec<Register>,
    /// The threads that are there at the start.
    pub(crate) entries: Vec<Entry>,
    /// The threads that `main` starts when it ends.
    pub(crate) later: Vec<Entry>,
    /// Where each global's cells start.
    pub(crate) cells: Vec<Cells>,
    /// What all cells hold at the start.
    pub(crate) memory: Vec<i64>,
    /// Where each lock's elements start. The first is the lock of all atomic sections.
    pub(crate) locks: Vec<Cells>,
    pub(crate) locks_count: u32,
    pub(crate) conditions: Vec<String>,
    /// The cells that are the program's result.
    pub(crate) focus: Vec<u32>,
    /// The blocks of the source.
    pub(crate) blocks: Vec<StaticBlock>,
    /// The name of the source, for sites.
    pub(crate) source: String,
    /// The names of the blocks that are expected to be atomic.
    pub(crate) expected: Vec<String>,
}

/// A thread that is there from the start.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) address: Address,
}

/// A variable or lock, or an array of them: consecutive cells.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    pub(crate) name: String,
    pub(crate) start: u32,
    /// How many; none for what is no array.
    pub(crate) length: Option<u32>,
}

/// The depth of what stands in no statement of its function or thread.
pub(crate) const OUTSIDE: u16 = u16::MAX;

/// What is known, before any run, of an event that an instruction makes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effect {
    /// The registers that it uses, as a range.
    pub(crate) uses: (u32, u32),
    /// The register whose value the event decides, though it may be computed just after it.
    pub(crate) defines: Option<Register>,
    /// How many conditions of its function's body are around it.
    pub(crate) control_depth: u16,
    /// How many blocks of its function's body are around that in which its statement stands.
    pub(crate) scope_depth: u16,
    /// The line and the place of the statement or expression.
    pub(crate) line: u32,
    pub(crate) span: Span,
    /// What it assigns or tests, of the registers before it and of what it reads.
    pub(crate) value: Option<SymbolId>,
    /// What else it must know: which element an access goes to, what a swap compares with.
    pub(crate) index: Option<SymbolId>,
    pub(crate) compared: Option<SymbolId>,
}

/// A symbolic expression, for the program layer of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    Constant(i64),
    Register(Register),
    /// What the event's access reads.
    Accessed,
    Unary(Unary, SymbolId),
    Binary(Binary, SymbolId, SymbolId),
}

/// Which cell an access goes to, or which lock: its place in [`Code::cells`] or [`Code::locks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellOf {
    /// The only one.
    Single(u32),
    /// The element that a register says.
    Element(u32, Register),
}

/// The lock of all atomic sections.
pub(crate) const ATOMIC: CellOf = CellOf::Single(0);

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    // What makes no event.
    Unary { operator: Unary, to: Register, of: Register },
    Binary { operator: Binary, to: Register, left: Register, right: Register },
    Copy { to: Register, from: Register },
    Jump { target: Address },
    // A block's execution starts.
    Enter { block: BlockId, depth: u16 },
    // A statement's execution starts, in the block entered at this depth.
    Begin { position: u32, depth: u16 },
    Call { function: FunctionId },
    Return,
    // Remembers how many children there are.
    CountChildren { to: Register },
    // Leaves the loop over the children that came since when all are joined, and forgets them.
    WhileChildren { since: Register, next: Register, otherwise: Address },
    // The body of an `if (*)` follows, up to `otherwise`.
    Optional { otherwise: Address },

    // What makes one event.
    Let { to: Register, from: Register },
    Read { to: Register, cell: CellOf },
    Write { cell: CellOf, from: Register },
    CompareAndSwap { to: Register, cell: CellOf, old: Register, new: Register },
    FetchAdd { to: Register, cell: CellOf, amount: Register },
    // Goes on if the register is not zero, else at `otherwise`.
    Branch { condition: Register, otherwise: Address },
    // A test that a jump out of blocks has decided.
    Guard { flag: Register },
    Assert { condition: Register },
    Assume { condition: Register },
    Acquire { lock: CellOf },
    Release { lock: CellOf },
    // Releases the lock and starts waiting: two events.
    Wait { condition: u32, lock: CellOf },
    // Stops waiting.
    Wake { condition: u32 },
    Notify { condition: u32 },
    NotifyAll { condition: u32 },
    BeginBlock { block: u32 },
    EndBlock { block: u32 },
    Fork { address: Address, captured: (u32, u32), handle: Option<Register> },
    // Starts one of the declared threads.
    ForkDeclared { thread: u32 },
    Join { handle: Register },
    // Joins the child that the register counts to, and counts on.
    JoinChild { next: Register },
    End,
}
