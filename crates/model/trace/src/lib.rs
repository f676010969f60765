//! The trace of a run: every operation a program's threads can do to each other, stored by
//! column; what follows from it; and whether its events could have come in another order.
//!
//! A [`Trace`] is well formed by construction, so what reads one needs no error paths.
//! [`TraceBuilder`] makes it and refuses events that cannot have happened, saying which and why.
//! [`views`] are computed once and shared. [`certify`] asks the checker, a crate of its own, whether a
//! [`Reordering`] is one that the program could have run.
//!
//! ```
//! use reweave_trace::{AccessOp, Goal, LockOp, Op, Reordering, TraceBuilder, certify};
//!
//! // The lock goes from T1 to T2, and only then T2 writes.
//! let mut builder = TraceBuilder::new();
//! let (t1, t2) = (builder.thread("T1"), builder.thread("T2"));
//! let (m, x, here) = (builder.lock("m"), builder.var("x"), builder.site("a.c:1"));
//! for op in [Op::Lock(LockOp::Acquire, m), Op::Access(AccessOp::Write, x), Op::Lock(LockOp::Release, m)] {
//!     builder.push(t1, op, here);
//! }
//! for op in [Op::Lock(LockOp::Acquire, m), Op::Lock(LockOp::Release, m), Op::Access(AccessOp::Write, x)] {
//!     builder.push(t2, op, here);
//! }
//! let trace = builder.finish()?;
//!
//! // If T2 takes the lock first, both writes are next at once.
//! let event = |number| trace.numbered(number).expect("there are six");
//! let schedule = Reordering::explicit(vec![event(4), event(5), event(1)]);
//! assert!(certify(&trace, &schedule, &Goal::Race(event(2), event(6))).is_ok());
//!
//! // Nobody can write inside a section that was never entered.
//! let schedule = Reordering::explicit(vec![event(2)]);
//! assert!(certify(&trace, &schedule, &Goal::Race(event(2), event(6))).is_err());
//! # Ok::<(), reweave_trace::IllFormed>(())
//! ```

mod builder;
mod certify;
mod columns;
mod ending;
mod flow;
mod monitor;
mod names;
mod origins;
mod place;
mod program;
mod repair;
mod start;
mod trace;
pub mod views;
mod wait_matching;

use reweave_op as op;

pub use builder::TraceBuilder;
pub use certify::{certify, certify_order};
pub use columns::{Columns, Event, Values};
pub use ending::{EndKind, Misuse, MisuseKind, RunEnd, ThreadEnd};
pub use flow::{Extent, Flow, Instance, InstanceId, StaticBlock, StaticBlockId, Step};
pub use monitor::{IllFormed, Monitor, Violation};
pub use names::{
    ASSUMED, ASSUMED_DESCRIPTORS, ASSUMED_UNSEEN, DESCRIPTOR, FRAME_SEPARATOR, LIBRARY, NAMELESS,
    Names, SOURCE_TEXT, Spelled, TAKEN_BY, VALUE, counted_life,
};
pub use origins::{Code, CodeId, Module, ModuleId, Origin, Origins};
pub use place::{Calls, Frame, Place};
pub use program::{Binary, Expr, ExprId, PointId, Program, Transition, TransitionId, Unary};
pub use repair::Repair;
pub use reweave_checker::{Certificate, Checker, Refusal, Rule};
pub use reweave_op::{
    AccessOp, After, BarrierId, BarrierOp, BlockId, ConditionId, ConditionOp, EventId, Goal,
    LocalId, LockId, LockOp, Marker, MemoryOrder, NameKind, ObjectId, ObjectOp, Op, OpCode, OpKind,
    Reordering, SemaphoreId, SemaphoreOp, SiteId, ThreadId, ThreadOp, VarId,
};
pub use start::{RunStart, is_variable_name};
pub use trace::{Declared, Trace};
pub use wait_matching::WaitInterval;
