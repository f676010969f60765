//! Placements: where an `if (*)` stands.
//!
//! An `if (*)` encloses neighbouring statements of one block. All ways in which a function is
//! called and a loop runs share the block, so a placement is a place in the source.

use reweave_base::IndexVec;
use reweave_trace::{Flow, StaticBlock, StaticBlockId};

/// An `if (*)` around the statements `first` to `last` of a block, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    /// The block.
    pub block: StaticBlockId,
    /// The first statement enclosed.
    pub first: u32,
    /// The last.
    pub last: u32,
}

/// Why placements cannot be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// There are no such statements.
    #[error("the program has no statements {} to {} in block {}", .0.first + 1, .0.last + 1, .0.block.number())]
    NoSuchStatements(Placement),
    /// Two placements overlap, and neither is inside the other.
    #[error(
        "an `if (*)` around statements {} to {} and one around {} to {} of the same block overlap",
        .0.first + 1, .0.last + 1, .1.first + 1, .1.last + 1
    )]
    Overlap(Placement, Placement),
    /// No statements start and end at the lines asked for.
    #[error("no statements start at line {first_line} and end at line {last_line} in one block")]
    NoSuchLines {
        /// The line at which they should start.
        first_line: u32,
        /// The line at which they should end.
        last_line: u32,
    },
}

impl Placement {
    /// How many statements it encloses.
    pub const fn width(self) -> u32 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }

    /// Whether the two are in one block, share a statement, and neither is inside the other.
    pub fn overlaps(self, other: Self) -> bool {
        let (left, right) = if self.first <= other.first { (self, other) } else { (other, self) };
        left.block == right.block
            && left.first < right.first
            && right.first <= left.last
            && left.last < right.last
    }

    /// The lines of its first and last token; none if there are no such statements.
    pub fn lines(self, flow: &Flow) -> Option<(u32, u32)> {
        let statements = &flow.blocks().get(self.block)?.statements;
        let first = statements.get(self.first as usize)?;
        Some((first.first_line, statements.get(self.last as usize)?.last_line))
    }

    fn exists(self, blocks: &IndexVec<StaticBlockId, StaticBlock>) -> bool {
        let statements = blocks.get(self.block).map_or(0, |block| block.statements.len());
        self.first <= self.last && (self.last as usize) < statements
    }

    /// What placements are sorted by: where in the source they start.
    pub(crate) fn order(self, blocks: &IndexVec<StaticBlockId, StaticBlock>) -> (u32, Self) {
        let start =
            blocks.get(self.block).and_then(|block| block.statements.get(self.first as usize));
        (start.map_or(0, |extent| extent.start), self)
    }
}

/// The placements that start at line `first_line` and end at line `last_line`, outermost first.
///
/// There are several where one statement fills the lines that another encloses.
///
/// # Errors
/// If there is none.
pub fn placements_of_lines(
    flow: &Flow,
    first_line: u32,
    last_line: u32,
) -> Result<Vec<Placement>, PlacementError> {
    let mut found = Vec::new();
    for (block, static_block) in flow.blocks().entries() {
        let statements = &static_block.statements;
        let starts = (0..statements.len()).filter(|&at| statements[at].first_line == first_line);
        for first in starts {
            let ends =
                (first..statements.len()).filter(|&at| statements[at].last_line == last_line);
            found.extend(ends.map(|last| Placement {
                block,
                first: first as u32,
                last: last as u32,
            }));
        }
    }
    if found.is_empty() {
        return Err(PlacementError::NoSuchLines { first_line, last_line });
    }
    Ok(found)
}

/// Says whether `placements` can stand together in the program whose blocks are `blocks`.
pub(crate) fn validate(
    blocks: &IndexVec<StaticBlockId, StaticBlock>,
    placements: &[Placement],
) -> Result<(), PlacementError> {
    if let Some(&stranger) = placements.iter().find(|placement| !placement.exists(blocks)) {
        return Err(PlacementError::NoSuchStatements(stranger));
    }
    match overlap(placements) {
        Some((left, right)) => Err(PlacementError::Overlap(left, right)),
        None => Ok(()),
    }
}

/// Two of `placements` that overlap.
pub(crate) fn overlap(placements: &[Placement]) -> Option<(Placement, Placement)> {
    placements.iter().enumerate().find_map(|(index, &left)| {
        let right = placements[index + 1..].iter().find(|right| left.overlaps(**right))?;
        Some((left, *right))
    })
}

/// The program's own `if (*)`: each encloses the whole of its block.
pub fn own_placements(flow: &Flow) -> Vec<Placement> {
    let own = |(block, static_block): (StaticBlockId, &StaticBlock)| {
        let last = static_block.statements.len().checked_sub(1)? as u32;
        static_block.is_optional.then_some(Placement { block, first: 0, last })
    };
    flow.blocks().entries().filter_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(block: u32, first: u32, last: u32) -> Placement {
        let block = StaticBlockId::from_number(block).unwrap();
        Placement { block, first, last }
    }

    #[test]
    fn ranges_overlap_if_they_cross() {
        let cases = [
            ((1, 0, 2), (1, 1, 3), true),
            ((1, 0, 2), (1, 2, 3), true),
            ((1, 0, 2), (1, 3, 4), false),
            ((1, 0, 2), (1, 0, 3), false),
            ((1, 0, 2), (1, 1, 2), false),
            ((1, 0, 2), (1, 0, 2), false),
            ((1, 0, 2), (2, 1, 3), false),
        ];
        for ((b, i, j), (c, k, l), expected) in cases {
            let (left, right) = (placement(b, i, j), placement(c, k, l));
            assert_eq!(left.overlaps(right), expected, "{left:?} {right:?}");
            assert_eq!(right.overlaps(left), expected, "{left:?} {right:?}");
        }
    }
}
