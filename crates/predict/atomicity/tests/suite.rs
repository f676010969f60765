//! All tests of this package from outside, as one program: fewer programs link faster.

mod analyses;
mod observed;
mod predicted;
mod reference;
