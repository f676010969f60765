//! All tests of this package from outside, as one program: fewer programs link faster.

mod by_chain;
mod detect;
mod enumerate;
mod find;
mod mdd;
mod online;
mod pairwise;
mod posets;
mod predicate;
mod reference;
mod vectors;
