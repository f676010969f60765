//! All tests of this package from outside, as one program: fewer programs link faster.

mod certify;
mod certify_goals;
mod certify_rules;
mod certify_whole;
mod litmus;
mod repair;
mod views;
mod wellformed;
