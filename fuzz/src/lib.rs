//! What every fuzz target checks: the same as the test that replays what fuzzing once found.

#[path = "../../crates/format/tests/robust/mod.rs"]
mod robust;

pub use robust::{check_bytes, check_trace};
