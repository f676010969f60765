//! What ways of going through states have in common.

use std::ops::ControlFlow;

use reweave_order::poset::Poset;

use crate::bounds::Bounds;

/// A way of going through states.
pub trait Enumerate: Sync {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// Visits each state of `poset` within `bounds` once, on this thread. A break ends it.
    ///
    /// # Errors
    /// If it did not visit all of them.
    fn visit(
        &self,
        poset: &Poset,
        bounds: &Bounds,
        visit: &mut dyn FnMut(&[u32]) -> ControlFlow<()>,
    ) -> Result<(), Stopped>;

    /// The same for a visitor that is known when this is compiled, where a way makes use of that.
    ///
    /// # Errors
    /// If it did not visit all of them.
    fn each(
        &self,
        poset: &Poset,
        bounds: &Bounds,
        mut visit: impl FnMut(&[u32]) -> ControlFlow<()>,
    ) -> Result<(), Stopped>
    where
        Self: Sized,
    {
        self.visit(poset, bounds, &mut visit)
    }
}

/// Why not all states were visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The visitor wanted no more.
    Visitor,
    /// There was no room for the states to be visited next.
    Memory,
}
