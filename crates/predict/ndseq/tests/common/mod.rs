//! What the tests of this crate share.

#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod programs;
pub(crate) mod vectors;
