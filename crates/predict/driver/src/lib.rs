//! The prediction driver: what races, deadlocks, broken blocks and nondeterminism have in common.
//!
//! An analysis that predicts has *candidates*: events that might race, block each other or come in
//! between. It asks the engine about each ([`reweave_reorder`]), shows the checker what the engine
//! found, groups candidates by code location and reports one of each group. A [`Predictor`] says
//! which question a candidate asks and how a verdict reads; a [`Driver`] does the rest:
//!
//! - it evaluates candidates in batches, on all threads that it is given. Every candidate is
//!   evaluated on its own, and between two batches everything happens in order, so nothing depends
//!   on the number of threads;
//! - it keeps one budget for the whole analysis, in the engine's unit: steps of work;
//! - it tries one candidate of every group before it tries a second one of any, so that a budget lasts
//!   for as many groups as it can ([`Driver::prove`]);
//! - it shows each group by the earliest candidate whose proof rests on no read of an unknown writer,
//!   failing that by the earliest that is proven at all;
//! - it reports progress, and stops when asked to or when no more findings are wanted.
//!
//! Sound: a [`Proof`](reweave_analysis::Proof) is the checker's word, whatever a predictor says.
//!
//! ```
//! use reweave_analysis::{Detail, Finding, Gathered, Guarantee, Kind, Settings, Subject};
//! use reweave_driver::{Driver, Evaluated, Evaluator, Group, Predictor, Reorderings, Tried};
//! use reweave_reorder::Query;
//! use reweave_trace::{EventId, Goal};
//!
//! /// Whether two accesses race.
//! struct Pairs;
//!
//! impl Predictor for Pairs {
//!     type Candidate = [EventId; 2];
//!
//!     fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, &[first, second]: &[EventId; 2]) -> Tried {
//!         let question = (Query::enabled(&[first, second]), Goal::Race(first, second));
//!         evaluator.ask([question], Reorderings::All)
//!     }
//!
//!     fn report(&mut self, group: Evaluated<[EventId; 2]>) -> Option<Finding> {
//!         let message = "these can happen at the same time".to_owned();
//!         let (name, kind) = ("races.pairs", Kind::Race);
//!         Some(Finding::proven(name, kind, group.proof?, message, group.count, Detail::None))
//!     }
//! }
//!
//! let trace = reweave_testkit::trace("
//! T1    T2
//! w(x)
//!       w(x)
//! ");
//! let pair = [1, 2].map(|number| trace.numbered(number).unwrap());
//! let (subject, settings, mut sink) = (Subject::new(&trace), Settings::default(), Gathered::default());
//! let mut driver = Driver::new(&subject, &settings, &mut sink);
//! _ = driver.prove(&mut Pairs, [Group::new(vec![pair], 1)]);
//! assert_eq!(sink.findings[0].guarantee(), Guarantee::Witnessed);
//! ```

mod driver;
mod predictor;

pub use driver::{Driver, Evaluator, Workers};
pub use predictor::{Evaluated, Group, Open, Predictor, Reorderings, TRIES_MAX, Tried};
