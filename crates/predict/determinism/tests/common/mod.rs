//! What several tests of this crate use.

#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod guarded;
pub(crate) mod reference;
pub(crate) mod vectors;
pub(crate) mod verdicts;
