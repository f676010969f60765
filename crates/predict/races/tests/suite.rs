//! All tests of this package from outside, as one program: fewer programs link faster.

mod common;
mod epoch;
mod exact;
mod memory_orders;
mod reduce;
mod relation;
