//! Deadlocks and threads that get stuck, compared with their definitions.

mod exact;
mod figures;
mod programs;
mod stuck;
