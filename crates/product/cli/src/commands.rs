//! The subcommands, one module each.

pub mod about;
pub mod cargo;
pub mod cc;
pub mod check;
mod compare;
pub mod confirm;
pub mod convert;
pub mod demo;
mod examine;
pub mod explain;
pub mod fmt;
pub mod generate;
pub mod intervals;
pub mod ndseq;
pub mod record;
pub mod run;
pub mod states;
pub mod stats;
