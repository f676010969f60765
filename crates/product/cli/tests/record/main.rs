//! Real programs: built, recorded, checked and replayed by the command as a user would do it.
//!
//! What is not there, such as a compiler, is named on standard error, and the test passes.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail as tests do, and say what was skipped"
)]

mod attachments;
mod attempts;
mod channels;
mod commands;
mod endings;
mod examples;
mod exits;
mod faults;
mod fingerprints;
mod generated;
mod harness;
mod interface;
mod leaving;
mod libraries;
mod library_calls;
mod lifetimes;
mod memory;
mod memory_orders;
mod misuse;
mod names;
mod openmp;
mod ordered;
mod programs;
mod rust;
mod signals;
mod sizes;
mod sources;
mod stuck;
mod values;
mod watch;
