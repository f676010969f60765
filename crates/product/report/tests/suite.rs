//! All tests of this package from outside, as one program: fewer programs link faster.

mod argument;
mod browser;
mod confirmations;
mod explain;
mod faults;
mod machines;
mod pages;
mod reasons;
mod reports;
mod schedules;
mod snapshots;
mod state;
