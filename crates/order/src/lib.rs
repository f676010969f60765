//! Orders over the events of a trace.
//!
//! | order | module |
//! | --- | --- |
//! | happens-before: what synchronisation makes certain | [`hb`] |

mod clock;
pub mod hb;

pub use clock::VectorClock;
