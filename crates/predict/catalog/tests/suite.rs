//! All tests of this package from outside, as one program: fewer programs link faster.

mod conformance;
mod faults;
mod run;
