//! The trace of a run: every operation a program's threads can do to each other, stored by
//! column; what follows from it; and the checker that says whether its events could have come in
//! another order.
//!
//! A [`Trace`] is well formed by construction, so what reads one needs no error paths.
//! [`TraceBuilder`] makes it and refuses events that cannot have happened, saying which and why.
//! [`views`] are computed once and shared. [`certify`] decides whether a [`Reordering`] is one
//! that the program could have run; nothing shares code with it.

mod builder;
mod certify;
mod columns;
mod discipline;
mod flow;
mod mend;
mod names;
mod op;
mod origins;
mod place;
mod program;
mod reordering;
mod signals;
mod trace;
pub mod views;

pub use builder::TraceBuilder;
pub use certify::{Certificate, Checker, Refusal, Rule, certify, certify_order};
pub use columns::{Columns, Event, Values};
pub use discipline::IllFormed;
pub use flow::{Extent, Flow, Instance, InstanceId, StaticBlock, StaticBlockId, Step};
pub use mend::Repair;
pub use names::{FRAME_SEPARATOR, Names, Spelled};
pub use op::{
    BarrierId, BlockId, ConditionId, EventId, LocalId, LockId, MemoryOrder, NameKind, ObjectId, Op,
    OpCode, OpKind, SemaphoreId, SiteId, ThreadId, VarId,
};
pub use origins::{Code, CodeId, Module, ModuleId, Origin, Origins};
pub use place::{Calls, Frame, Place};
pub use program::{Binary, Expr, ExprId, PointId, Program, Transition, TransitionId, Unary};
pub use reordering::{After, Goal, Reordering};
pub use signals::Stay;
pub use trace::{Declared, Trace};
