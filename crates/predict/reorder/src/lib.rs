//! The feasibility engine: is there a correct reordering of this trace in which these events are
//! next at once, or happen in this order, or this read sees that write?
//!
//! One question stands behind races, deadlocks, broken atomic blocks and nondeterminism; a
//! [`Query`] asks it, an [`Engine`] answers with a [`Reordering`], or that there is none, or that
//! its budget ended first. The answer is worked out in this order, the cheapest first:
//!
//! 1. the *needed set*: the events that every such reordering runs ([`reweave_order::needs`]), a
//!    number a thread. If it holds an event that must not happen, there is none;
//! 2. *growth*: run the needed set in observed order. Every read then sees what it saw; only a
//!    lock section that stays open before a later one of its lock is in the way, so complete it,
//!    with what that needs, and look again. What remains is a witness without any per-event work
//!    (`growth`);
//! 3. *postponing*: where a thread must stop inside a section that is in the way, run what it did
//!    since it took the lock last, if nobody needs it (`postpone`);
//! 4. *closure*: what must come before what, among the events of a window at the end of the
//!    needed set: those that have to move, and what needs them (`base`). Sections of one lock
//!    exclude each other, and no other write comes between a read and what it sees; where one way
//!    round is impossible the other is forced, until nothing changes. A cycle refutes (`closure`);
//! 5. a *schedule*, the observed order bent to the closure (`schedule`);
//! 6. *search*, where that gets stuck: decide one exclusion, the observed way round first;
//!    complete one more open section; move the window's start back (`search`).
//!
//! Sound: every reordering is put before the checker by whoever reports it. Complete but for
//! the budget: a correct reordering that answers the query, restricted to the needed set and the
//! sections it completes, still does, and steps 4 to 6 go through all of these. A semaphore whose
//! start is known is the exception, since its takes may use other posts than observed: there a
//! search through all states (`exhaustive`) has the last word.
//!
//! Follows the needed-set algorithm of our notes on Sinha, Malik and Gupta, "Efficient predictive
//! analysis for detecting nondeterminism in multi-threaded programs" (FMCAD 2012), and for step 2
//! Mathur, Pavlogiannis and Viswanathan, "Optimal prediction of synchronization-preserving races"
//! (POPL 2021).
//!
//! ```
//! use reweave_reorder::{Answer, Engine, Query};
//! use reweave_trace::{Goal, certify};
//!
//! let trace = reweave_testkit::trace("
//! T1      T2
//! acq(m)
//! w(x)
//! rel(m)
//!         acq(m)
//!         rel(m)
//!         w(x)
//! ");
//! let [first, second, taken] = [2, 6, 4].map(|number| trace.numbered(number).unwrap());
//! let engine = Engine::new(&trace);
//!
//! // Can both writes be next at once? T2 must take the lock first.
//! let Answer::Feasible(reordering) = engine.solve(&Query::enabled(&[first, second])) else {
//!     panic!("there is a schedule");
//! };
//! assert!(certify(&trace, &reordering, &Goal::Race(first, second)).is_ok());
//!
//! // Can T2 take the lock while T1 is inside?
//! let inside = Query { absent: vec![trace.numbered(3).unwrap()], ..Query::order(&[first, taken]) };
//! assert!(matches!(engine.solve(&inside), Answer::Infeasible(_)));
//! ```

mod base;
mod closure;
mod engine;
mod exhaustive;
mod growth;
mod postpone;
mod query;
mod schedule;
mod search;
mod window;

pub use engine::{Answer, Budget, Engine, Refuted, Solver};
pub use query::{Query, View};

#[cfg(doc)]
use reweave_trace::Reordering;
