//! All tests of this package from outside, as one program: fewer programs link faster.

mod detect;
mod diagram;
mod enumerate;
mod find;
mod online;
mod pairwise;
mod posets;
mod predicate;
mod reference;
mod vectors;
mod walk;
