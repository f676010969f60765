//! Nondeterministic sequential specifications: where must `if (*)` stand for a parallel program to
//! equal a sequential one?
//!
//! Written sequentially, a parallel program's threads run one after the other, in any order, and
//! what stands under an `if (*)` may be skipped. If every parallel run has the result of such a
//! sequential run, the parallelism is correct, and all else can be checked sequentially. Given a
//! few runs with their flow layer, [`infer()`] finds the fewest `if (*)` with which every run can be
//! serialized, or the cycle of conflicts that proves that no placement does; [`check()`] says whether
//! given ones do.
//!
//! A run is made ready as a [`Run`]: its [`events`], the [`dependences`] between them, the
//! [`scopes`] they lie in. From it follow the dynamic slice, the events that are [`mod@relevant`]
//! with given placements, and the conflicts between them ([`conflict`]). All of these are linear, and
//! `oracle::ndseq` has each by its definition, and the best placements by trying all.
//!
//! Sound for the runs that are given: with the answer each of them is conflict-serializable once
//! irrelevant events are dropped. Complete: if no placements are found there are none, and the
//! answer has the fewest there can be, unless the budget ran out, which is said.
//!
//! Burnim, Elmas, Necula, Sen: "NDetermin: inferring nondeterministic sequential specifications for
//! parallelism correctness" (UCB/EECS-2011-143).
//!
//! ```
//! use reweave_exec::scheduler::Random;
//! use reweave_exec::{Code, run};
//! use reweave_lang::{Source, check as check_source};
//! use reweave_ndseq::{Answer, Settings, infer};
//!
//! // In some runs both threads read before either writes, and one update is lost.
//! let source = Source::new(
//!     "hits.rw",
//!     "shared hits;
//!      main { coforeach (i in 0..2) { let seen = hits; hits = seen + 1; } }",
//! );
//! let code = Code::new(&check_source(&source).program.unwrap(), &source);
//! let settings = reweave_exec::Settings::default();
//! let runs: Vec<_> = (1..=20).map(|seed| run(&code, &mut Random::new(seed), &settings)).collect();
//! let traces: Vec<_> = runs.iter().map(|run| &run.trace).collect();
//!
//! let inference = infer(&traces, &Settings::default())?;
//! assert!(matches!(inference.answer, Answer::Impossible(_)), "no `if (*)` removes the cycle");
//! # Ok::<(), reweave_ndseq::RunError>(())
//! ```

pub mod check;
pub mod conflict;
pub mod dependences;
mod encode;
pub mod events;
pub mod infer;
pub mod placement;
pub mod relevant;
pub mod run;
pub mod scopes;
mod search;

pub use check::{Chain, CheckError, Explanation, Hop, Link, Reason, Verdict, check};
pub use infer::{
    Answer, Inference, Inferrer, Known, RunStatistics, Settings, Statistics, Unneeded, infer,
};
pub use placement::{Placement, PlacementError, own_placements, placements_of_lines};
pub use run::{Run, RunError};
