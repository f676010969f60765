//! Value ranges over all interleavings of a run: which values can a variable have, wherever threads
//! are interrupted?
//!
//! The program layers of runs become a concurrent trace program ([`ctp`]): what threads did, without
//! the order between them. Steps that do not depend on each other can be exchanged, so threads need
//! be interrupted at few points only: the ends of mutually atomic transactions ([`mats`]), or of
//! transactions by Lipton's reduction ([`movers`]), both from the pairs of points that two threads
//! can be at together ([`lattice`]). A [`mod@graph`] has these points, the transactions between them
//! and the switches that are needed. Along it sets of values ([`domain`]) are propagated
//! ([`mod@propagate`], [`lookahead`]), measured ([`metric`]) and asked ([`mod@answers`]);
//! [`mod@analyse`] does all of that. What ranges leave open [`symbolic`] searches for, and [`mod@calm`]
//! makes what it finds readable. [`schedules`] enumerates, for tests.
//!
//! Sound in the default mode: every value of every interleaving, complete or not, is in its range,
//! whatever an assertion is said to be is true, and a schedule was executed before it is shown. Not
//! complete: ranges can be too wide. The paper's own mode is sound for two threads only.
//!
//! Ganai, Wang: "Interval analysis for concurrent trace programs using transaction sequence graphs"
//! (RV 2010).

pub mod analyse;
pub mod answers;
pub mod calm;
pub mod ctp;
pub mod domain;
pub mod evaluate;
pub mod graph;
pub mod lattice;
pub mod lookahead;
pub mod mats;
pub mod metric;
pub mod movers;
pub mod propagate;
pub mod schedules;
pub mod symbolic;
pub mod terms;
