//! The subcommands, one module each.

pub(crate) mod check;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod generate;
pub(crate) mod list;
pub(crate) mod stats;
