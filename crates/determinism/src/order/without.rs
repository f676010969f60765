//! The closure of all couples but one, for one after the other.
//!
//! What follows from a couple cannot be told apart from what follows without it, so nothing is
//! taken away: the graph grows from the edges that hold always. Half of the couples are added
//! before the other half is looked into, half of that before its other half, and so on: couples
//! next to each other share almost all of the way, and each is added once for each halving.

use std::ops::Range;

use reweave_base::Id;

use super::clocks::{Clocks, Mark};
use super::ground::{Ground, LooseId};

/// See the module.
#[derive(Debug)]
pub(super) struct Without {
    clocks: Clocks,
    /// From the whole to the part that is looked into: which couples are left out, and the clocks
    /// before those of the other half were added.
    levels: Vec<(Range<usize>, Mark)>,
}

impl Without {
    /// From the graph that has none of the couples.
    pub(super) const fn from(clocks: Clocks) -> Self {
        Self { clocks, levels: Vec::new() }
    }

    /// The rows of the graph of all couples but `left_out`.
    pub(super) fn rows(&mut self, ground: &Ground<'_>, left_out: LooseId) -> &[u32] {
        let target = left_out.index();
        while let Some((range, mark)) = self.levels.last()
            && !range.contains(&target)
        {
            self.clocks.undo(ground, *mark);
            self.levels.pop();
        }
        let whole = 0..ground.loose.len();
        let mut range = self.levels.last().map_or(whole, |(range, _)| range.clone());
        while range.len() > 1 {
            let middle = range.start + range.len() / 2;
            let (early, late) = (range.start..middle, middle..range.end);
            let (kept, added) = if target < middle { (early, late) } else { (late, early) };
            self.levels.push((kept.clone(), self.clocks.mark()));
            self.clocks.add_all(ground, &ground.loose.as_slice()[added]);
            range = kept;
        }
        self.clocks.rows()
    }
}
