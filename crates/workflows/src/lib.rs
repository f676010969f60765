//! What joins producers, analyses and reports.
//!
//! [`runs`] repeats a program under a scheduler; [`specification`] prints a program with its
//! inferred `if (*)` in place; [`inference`] gathers runs, infers, and, where asked, validates what
//! was inferred by all runs of the sequential program; [`ranges`] finds the ranges of a program's
//! values, and runs the schedules that break its assertions; [`confirm`] has the schedule of a
//! finding replayed in the program that it was found in.

pub mod confirm;
pub mod inference;
pub mod ranges;
pub mod runs;
pub mod specification;
pub mod watch;
