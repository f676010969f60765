//! The subcommands, one module each.

pub(crate) mod atomicity;
pub(crate) mod check;
pub(crate) mod convert;
pub(crate) mod deadlocks;
pub(crate) mod demo;
pub(crate) mod determinism;
mod examine;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod generate;
pub(crate) mod intervals;
pub(crate) mod list;
pub(crate) mod ndseq;
pub(crate) mod races;
pub(crate) mod run;
pub(crate) mod states;
pub(crate) mod stats;
