//! The small concurrent language: programs whose statements and data flow the analyses can see.
//!
//! [`check`] takes a [`Source`] to a [`Program`], every name resolved, or to [`Diagnostic`]s that
//! point at the places of the faults; it reports several at once, and no input makes it panic.
//! [`format()`] prints a source in the one layout.

mod check;
mod diagnostic;
mod format;
mod lexer;
mod parser;
mod program;
mod render;
mod resolve;
mod source;
mod syntax;

pub use check::{Checked, check};
pub use diagnostic::{Diagnostic, Label, Severity};
pub use format::format;
pub use program::{
    Block, BlockId, Capture, Condition, ConditionId, Expr, ExprId, ExprKind, Function, FunctionId,
    Global, GlobalId, Local, LocalId, Lock, LockId, LockPlace, Place, Program, Range, Statement,
    StatementKind, Thread,
};
pub use render::Style;
pub use source::{Source, Span};
