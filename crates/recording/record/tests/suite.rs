//! All tests of this package from outside, as one program: fewer programs link faster.

mod convert;
mod convert_cells;
mod convert_random;
mod convert_support;
mod lift;
mod reference;
mod regressions;
mod robust;
mod spool;
mod symbols;
