//! Value ranges over all interleavings of a run: which values can a variable have, wherever threads
//! are interrupted?
//!
//! The program layers of runs become a concurrent trace program ([`ctp`]): what threads did, without
//! the order between them. Steps that do not depend on each other can be exchanged, so threads need
//! be interrupted at few points only: the ends of mutually atomic transactions ([`mats`]), or of
//! transactions by Lipton's reduction ([`movers`]), both from the pairs of points that two threads
//! can be at together ([`lattice`]). A [`mod@graph`] has these points, the transactions between them
//! and the switches that are needed. Along it sets of values ([`domain`]) are propagated
//! ([`mod@propagate`], [`lookahead`]) and read off as answers ([`mod@answers`]);
//! [`mod@analyse`] does all of that. What ranges leave open [`symbolic`] searches for; a [`schedule`]
//! that it finds is executed and gets few context switches.
//!
//! Sound in the default mode: every value of every interleaving, complete or not, is in its range,
//! whatever an assertion is said to be is true, and a schedule was executed before it is shown. Not
//! complete: ranges can be too wide. The paper's own mode is sound for two threads only.
//!
//! Ganai, Wang: "Interval analysis for concurrent trace programs using transaction sequence graphs"
//! (RV 2010).
//!
//! ```
//! use reweave_exec::scheduler::RoundRobin;
//! use reweave_exec::{Code, run};
//! use reweave_intervals::analyse::{Settings, analyse};
//! use reweave_intervals::ctp::Ctp;
//! use reweave_intervals::domain::Interval;
//! use reweave_lang::{Source, check};
//!
//! let text = "shared x; thread a { x = 5; } thread b { x = 7; }";
//! let source = Source::new("a.rw", text);
//! let code = Code::new(&check(&source).program.unwrap(), &source);
//! let made = run(&code, &mut RoundRobin::new(), &reweave_exec::Settings::default());
//!
//! let ctp = Ctp::new(&[&made.trace])?;
//! let analysis = analyse::<Interval>(&ctp, &Settings::default(), &|| true)?;
//! // Whoever writes last.
//! assert!(analysis.answers.closed);
//! assert_eq!(analysis.answers.finals.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod analyse;
pub mod answers;
pub mod ctp;
pub mod domain;
pub mod evaluate;
pub mod graph;
pub mod lattice;
pub mod lookahead;
pub mod mats;
pub mod movers;
pub mod propagate;
pub mod schedule;
pub mod symbolic;
pub mod terms;
