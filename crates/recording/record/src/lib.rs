//! Recording real programs: from a run to a trace, and from a schedule back to a run.
//!
//! The runtime (`reweave-runtime`) is linked into the program and logs what its threads do. This
//! crate builds programs with it ([`toolchain`]), drains its rings while the program runs
//! ([`collect`]), keeps the events on disk ([`event_log`]), turns them into a trace ([`convert`]),
//! names code and data ([`symbols`]), and makes plans that replay a schedule ([`plan`]).
//! What the user recorded is [`remembered`].
//!
//! ```no_run
//! use std::fs::File;
//! use std::path::Path;
//! use std::process::Command;
//! use std::time::Duration;
//!
//! use reweave_record::run::{Options, record};
//! use reweave_record::shared::Mode;
//! use reweave_record::{attach, convert, install};
//!
//! let mut command = Command::new("./program");
//! attach::attach(&mut command, &install::install()?);
//! let exit_wait = Duration::from_secs(1);
//! let options =
//!     Options { mode: Mode::Serial, values: true, seed: 1, limit: u64::MAX, exit_wait };
//! let run = record(&mut command, &options, Path::new("logs"))?;
//! for recording in &run.recordings {
//!     let mut out = File::create("program.rwt")?;
//!     let conversion = convert::Conversion::new(Path::new("."));
//!     let summary = convert::write_trace(recording, &conversion, &mut out)?;
//!     println!("{} events of {} threads", summary.events, summary.threads);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(unreachable_pub, reason = "in private modules, `pub` means used by other modules")]

pub mod attach;
pub mod collect;
pub mod convert;
mod debug_info;
pub mod decode;
pub mod event_log;
pub mod frames;
pub mod install;
pub mod live;
pub mod locks;
mod order;
pub mod plan;
pub mod remembered;
pub mod replay;
pub mod run;
pub mod shadow;
mod shorten;
mod source_text;
pub mod symbols;
pub mod tasks;
pub mod toolchain;
pub mod watchdog;

pub use reweave_runtime::{shared, wire};
