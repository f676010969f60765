//! What every other crate stands on, and nothing about traces: typed ids, tables indexed by
//! them, bit sets, strongly connected components, orders with few switches, interned names, fast hashing, seeded randomness.
//!
//! ```
//! use reweave_base::{IndexVec, Interner, id};
//!
//! id! {
//!     /// A fruit.
//!     struct FruitId;
//! }
//!
//! let mut names: Interner<FruitId> = Interner::default();
//! let apple = names.intern("apple");
//! assert_eq!(names.intern("apple"), apple);
//!
//! let mut counts: IndexVec<FruitId, u32> = IndexVec::from_elem(0, names.len());
//! counts[apple] += 2;
//! assert_eq!(counts.as_slice(), [2]);
//! ```

pub mod bits;
mod components;
mod csr;
mod id;
mod interner;
mod rng;
mod switches;
mod table;

pub use bits::BitRows;
pub use components::{ComponentId, strong_components};
pub use csr::CsrTable;
pub use id::Id;
pub use interner::Interner;
pub use rng::Rng;
pub use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
pub use switches::{count_switches, with_few_switches};
pub use table::IndexVec;
