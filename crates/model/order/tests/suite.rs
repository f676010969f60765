//! All tests of this package from outside, as one program: fewer programs link faster.

mod cp;
mod cp_datalog;
mod hb;
mod mhb;
mod poset;
mod shb;
mod wcp;
