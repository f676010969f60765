//! All tests of this package from outside, as one program: fewer programs link faster.

mod common;
mod constructs;
mod endings;
mod explore;
mod ground_truth;
mod layers;
mod sequential;
