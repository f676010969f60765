//! The subcommands, one module each.

pub(crate) mod atomicity;
pub(crate) mod cargo;
pub(crate) mod cc;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod confirm;
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
mod lookup;
pub(crate) mod man;
pub(crate) mod ndseq;
pub(crate) mod races;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod states;
pub(crate) mod stats;
