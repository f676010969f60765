//! Graphs: recorded ones, their definitions, and that they cover all interleavings.

mod adequacy;
mod common;
mod definitions;
mod schedules;
mod shapes;
mod vectors;
