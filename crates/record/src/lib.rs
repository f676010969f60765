//! Recording real programs: from a run to a trace, and from a schedule back to a run.
//!
//! The runtime (`reweave-runtime`) is linked into the program and logs what its threads do. This
//! crate builds programs with it ([`toolchain`]), drains its rings while the program runs
//! ([`collect`]), keeps the events on disk ([`spool`]), turns them into a trace ([`convert`]),
//! names code and data ([`symbols`]), and makes plans that replay a schedule ([`plan`]).

pub mod attach;
pub mod cells;
pub mod collect;
pub mod convert;
pub mod expand;
pub mod gather;
pub mod lift;
pub mod live;
pub mod plan;
pub mod replay;
pub mod run;
pub mod spool;
pub mod symbols;
pub mod toolchain;
pub mod unpack;

pub use reweave_runtime::{shared, wire};
