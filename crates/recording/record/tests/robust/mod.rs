//! What fuzz targets and the test of their old finds check of all that recordings are read from.
//!
//! Whatever the bytes: no panic, no hang, memory bounded by them; and what is promised of what was
//! read holds.
#![allow(unreachable_pub, reason = "fuzz targets use these too")]
#![allow(clippy::expect_used, reason = "what fails here is the test")]

mod conversion;
mod events;
mod names;
mod plans;
mod recordings;

pub use conversion::check_conversion;
pub use names::{check_maps, check_object, check_symbol};
pub use plans::check_plan;
pub use recordings::{check_decoding, check_event_log};

type Check = fn(&[u8]);

/// What each fuzz target for recordings checks, by the target's name.
#[allow(dead_code, reason = "fuzz targets call their own")]
pub const CHECKS: [(&str, Check); 7] = [
    ("read_event_log", check_event_log),
    ("decode", check_decoding),
    ("convert", check_conversion),
    ("read_plan", check_plan),
    ("read_maps", check_maps),
    ("read_object", check_object),
    ("read_symbol", check_symbol),
];
