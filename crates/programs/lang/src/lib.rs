//! The small concurrent language: programs whose statements and data flow the analyses can see.
//!
//! [`check`] takes a [`Source`] to a [`Program`], every name resolved, or to [`Diagnostic`]s that
//! point at the places of the faults; it reports several at once, and no input makes it panic.
//! [`format()`] prints a source in the one layout.
//!
//! ```
//! use reweave_lang::{Source, check, format};
//!
//! let source = Source::new(
//!     "bank.rw",
//!     "shared balance = 100;
//!      thread left { balance = balance + 10; }
//!      thread right { balance = balance + 20; }",
//! );
//! let checked = check(&source);
//! assert!(checked.diagnostics.is_empty());
//! assert!(checked.program.is_some());
//! assert!(format(&source).is_ok_and(|text| text.contains("    balance = balance + 10;\n")));
//!
//! let wrong = check(&Source::new("wrong.rw", "thread a { x = 1; }"));
//! assert!(wrong.program.is_none());
//! assert!(wrong.diagnostics[0].message.contains("`x`"));
//! ```

mod check;
mod diagnostic;
mod format;
mod lexer;
mod parser;
mod program;
mod resolve;
mod source;
mod syntax;

pub use crate::diagnostic::Style;
pub use check::{Checked, check};
pub use diagnostic::{Diagnostic, Label, Severity};
pub use format::format;
pub use program::{
    Block, BlockId, Capture, Condition, ConditionId, Expr, ExprId, ExprKind, Function, FunctionId,
    Global, GlobalId, Local, LocalId, Lock, LockId, LockPlace, Place, Program, Range, Statement,
    StatementKind, Thread,
};
pub use source::{Source, Span};
