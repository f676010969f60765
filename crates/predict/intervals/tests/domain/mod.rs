//! Abstract domains, and terms evaluated on them, against all members of small sets.

mod congruence;
mod evaluate;
mod interval;
mod laws;
mod product;
