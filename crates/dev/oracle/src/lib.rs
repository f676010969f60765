//! Oracles: definitions, transcribed to be compared with the paper line by line, never made faster.
//!
//! For tests alone. An oracle knows traces, and where a definition speaks of something else, a plain
//! type beside it; it uses no code of what it is the oracle of. Property tests compare the fast
//! algorithms with these on random traces, and exhaustively on all traces of a small scope.
//!
//! | module | what it defines |
//! | --- | --- |
//! | [`reordering`] | a correct reordering and what it shows, as formulas over positions |
//! | [`observed`] | what the definitions ask of the observed order |
//! | [`reachable`] | every state that a correct reordering reaches, races and deadlocks among them |
//! | [`query`] | whether a correct reordering meets a query |
//! | [`hb`], [`shb`], [`cp`], [`wcp`] | the relations, pair by pair, each an [`Order`](relation::Order) |
//! | [`memory_orders`] | happens-before of an order of events, by memory orders; all pairs that some order leaves unordered |
//! | [`mhb`] | must-happen-before: what every correct reordering keeps |
//! | [`cut_order`], [`cuts`] | the trace-order-preserving relation; consistent cuts of a poset |
//! | [`predicate`] | predicates over global states |
//! | [`races`], [`deadlocks`] | the races of each relation; predictable deadlocks |
//! | [`stuck`] | threads that can wait for ever |
//! | [`atomicity`] | blocks that are not atomic, in the observed run and in others |
//! | [`nondeterminism`], [`choice_graphs`] | reads that can see another write, in three modes; choice graphs |
//! | [`ndseq`] | nondeterministic sequential specifications |
//! | [`mats`] | mutually atomic transactions of two threads |
//! | [`cells`] | the shadow cells of a recording |
//!
//! ```
//! let trace = reweave_testkit::trace("
//! T1    T2
//! w(x)
//!       r(x)
//! ");
//! assert_eq!(reweave_oracle::reachable::predictable_races(&trace).len(), 1);
//! assert_eq!(reweave_oracle::races::happens_before(&trace).len(), 1);
//! ```

pub mod atomicity;
pub mod cells;
pub mod choice_graphs;
pub mod cp;
pub mod cut_order;
pub mod cuts;
pub mod deadlocks;
pub mod hb;
pub mod lifetimes;
pub mod mats;
pub mod memory_orders;
pub mod mhb;
pub mod ndseq;
pub mod nondeterminism;
pub mod observed;
pub mod predicate;
pub mod query;
pub mod races;
pub mod reachable;
pub mod relation;
pub mod reordering;
pub mod shb;
pub mod stuck;
pub mod wcp;
