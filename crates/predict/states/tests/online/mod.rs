//! What is found while a program runs is what is found afterwards, from the whole.

mod clocks;
mod common;
mod least;
mod limits;
mod program;
mod races;
