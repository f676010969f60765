//! What every fuzz target checks: the same as the tests that replay what fuzzing once found.

#[path = "../../crates/recording/record/tests/robust/mod.rs"]
mod recorded;
#[path = "../../crates/model/format/tests/robust/mod.rs"]
mod robust;

pub use recorded::{
    check_conversion, check_decoding, check_event_log, check_maps, check_object, check_plan,
    check_symbol,
};
pub use robust::{check_bytes, check_trace};
