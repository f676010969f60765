//! What every fuzz target checks: the same as the tests that replay what fuzzing once found.

#[path = "../../crates/recording/record/tests/robust/mod.rs"]
mod recorded;
#[path = "../../crates/model/format/tests/robust/mod.rs"]
mod robust;

pub use recorded::{
    check_conversion, check_expansion, check_maps, check_object, check_plan, check_spool,
    check_symbol,
};
pub use robust::{check_bytes, check_trace};
