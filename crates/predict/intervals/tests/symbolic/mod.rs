//! Symbolic reachability against what all interleavings do.

#![allow(clippy::unwrap_used, reason = "tests")]

mod agree;
mod oracle;
mod programs;
mod shapes;
