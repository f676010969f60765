//! What an analysis is, what it takes and what it returns. No algorithms.
//!
//! An [`Analysis`] examines a [`Subject`] under [`Settings`] and hands each [`Finding`] to a
//! [`Sink`]; its [`Coverage`] says how much of the question it answered. A finding that is called
//! witnessed holds a [`Proof`], which only the independent checker gives. An analysis sees traces
//! and settings, never files or arguments; it prints nothing, reads no clock and draws no
//! randomness, so the same trace and settings give the same findings in the same order.
//!
//! ```
//! use reweave_analysis::Subject;
//! use reweave_trace::{AccessOp, Goal, Op, Reordering, TraceBuilder};
//!
//! let mut builder = TraceBuilder::new();
//! let (t1, t2) = (builder.thread("T1"), builder.thread("T2"));
//! let (x, here) = (builder.var("x"), builder.site("a.c:1"));
//! builder.push(t1, Op::Access(AccessOp::Write, x), here);
//! builder.push(t2, Op::Access(AccessOp::Read, x), here);
//! let trace = builder.finish()?;
//!
//! // The one way to a proof leads through the checker.
//! let subject = Subject::new(&trace);
//! let [write, read] = [1, 2].map(|number| trace.numbered(number).unwrap());
//! assert!(subject.prove(Reordering::default(), Goal::Race(write, read)).is_ok());
//! let backwards = Reordering::explicit(vec![read, write]);
//! assert!(subject.prove(backwards, Goal::Enabled(Vec::new())).is_err());
//! # Ok::<(), reweave_trace::IllFormed>(())
//! ```

mod counter;
mod coverage;
mod detail;
mod finding;
mod fingerprint;
mod identity;
mod info;
mod kind;
mod memory_orders;
mod modality;
mod outcome;
mod proof;
mod spelled;
mod subject;

pub use counter::{Counter, Counters};
pub use coverage::{Coverage, Settings, Truncation};
pub use detail::{
    Alternative, Detail, GlobalState, Nondeterminism, Severity, WeakAccess, WitnessList,
    WitnessVerdict,
};
pub use finding::{Evidence, Finding};
pub use fingerprint::Fingerprint;
pub use identity::{Class, Identities, Instances, Reach};
pub use info::{Guarantee, Info, Layer};
pub use kind::{Kind, KindInfo};
pub use memory_orders::too_weak;
pub use modality::Modality;
pub use outcome::{Listed, Outcome, Reported, Unshown};
pub use proof::Proof;
pub use spelled::{located, spelled, waiting};
pub use subject::{Gathered, Sink, Subject};

/// One way of examining traces.
pub trait Analysis: Sync {
    /// What this analysis is called, needs, and promises.
    fn info(&self) -> &'static Info;

    /// Examines `subject` and hands each finding to `sink` as it is made.
    ///
    /// It ends early when `sink` breaks or [`Sink::is_cancelled`], and its coverage then says why.
    /// Whoever runs it counts the findings and cuts the list; the conformance tests of the catalog
    /// hold for all analyses.
    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage;
}

impl<A: Analysis + ?Sized> Analysis for &A {
    fn info(&self) -> &'static Info {
        (**self).info()
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        (**self).run(subject, settings, sink)
    }
}
