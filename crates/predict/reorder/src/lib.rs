//! The feasibility engine: is there a correct reordering of this trace in which these events are
//! next at once, or happen in this order, or this read sees that write?
//!
//! One question stands behind races, deadlocks, broken atomic blocks and nondeterminism; a
//! [`Query`] asks it, an [`Engine`] answers with a [`Reordering`], or that there is none, or that
//! its budget ended first. The answer is worked out in this order, the cheapest first:
//!
//! 1. the *causal past* of the query: the events that every such reordering runs
//!    ([`reweave_order::mhb`]), as a number per thread. If it holds an event that must not happen,
//!    there is no reordering;
//! 2. the *sync-preserving ideal*: run the causal past in observed order. Every read then sees what
//!    it saw; only a section that stays open before a later one of its lock is in the way, so complete
//!    it, with its causal past, and look again. What remains is a witness without any per-event work
//!    (`sync_preserving`);
//! 3. *deferred tails*: where a thread must stop inside a section that is in the way, run what it
//!    did since it took the lock last, if nobody needs it (`sync_preserving`);
//! 4. *saturation* of a *reordering window* at the end of the causal past, after a *fixed prefix*
//!    (`window`). Sections of one lock exclude each other, and no other write comes between a read
//!    and what it sees; where one order is impossible the other is forced, until nothing changes. A
//!    cycle refutes (`saturation`);
//! 5. a *schedule*: the observed order, changed where saturation says so (`search`);
//! 6. *search*, where that gets stuck: decide one exclusion, as observed first; complete one more
//!    open section; move the window's start back (`search`).
//!
//! Whether two events can both happen with nothing that orders them is asked by such queries, one after
//! the other (`unordered`). A schedule that is to be shown can be made easier to follow
//! ([`with_fewer_switches`]).
//!
//! Sound: every reordering is put before the checker by whoever reports it. Complete but for
//! the budget: a correct reordering that answers the query, restricted to the causal past and the
//! sections it completes, still does, and steps 4 to 6 go through all of these. A semaphore whose
//! start is known is the exception, since its takes may use other posts than observed: there a
//! search through all states has the last word (`exhaustive`).
//!
//! Step 2 follows Mathur, Pavlogiannis and Viswanathan, "Optimal prediction of
//! synchronization-preserving races" (POPL 2021), step 4 Pavlogiannis, "Fast, sound, and effectively
//! complete dynamic race prediction" (POPL 2020).
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

mod engine;
mod exhaustive;
mod query;
mod saturation;
mod search;
mod switches;
mod sync_preserving;
mod unordered;
mod window;

pub use engine::{Answer, Budget, Engine, Refuted, Solver};
pub use query::{Query, View};
pub use switches::{SWITCH_STEPS_MAX, with_fewer_switches};

#[cfg(doc)]
use reweave_trace::Reordering;
