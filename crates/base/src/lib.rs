//! What every other crate stands on, and nothing about traces: typed ids, tables indexed by
//! them, interned names, fast hashing, seeded randomness.

mod id;
mod interner;
mod rng;
mod rows;
mod table;

pub use id::Id;
pub use interner::Interner;
pub use rng::Rng;
pub use rows::Rows;
pub use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
pub use table::IndexVec;
