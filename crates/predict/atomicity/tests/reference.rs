//! The oracle's definitions, asked about the blocks of this crate.

use reweave_atomicity::blocks::{BlockRunId, Blocks};
use reweave_atomicity::predicted::Pattern;
use reweave_base::Id;
use reweave_oracle::atomicity::{self as oracle, Block};
use reweave_trace::Trace;

/// The blocks as the oracle takes them.
pub(crate) fn plain(blocks: &Blocks) -> Vec<Block> {
    let plain = |block: &reweave_atomicity::blocks::Block| {
        let reweave_atomicity::blocks::Block { thread, begin, end, .. } = *block;
        Block { thread, begin, end }
    };
    blocks.iter().map(plain).collect()
}

/// The blocks that others come between, and those that overlap.
pub(crate) fn violations(trace: &Trace, blocks: &Blocks) -> [Vec<BlockRunId>; 2] {
    let found = oracle::violations(trace, &plain(blocks));
    found.map(|indexes| indexes.into_iter().map(BlockRunId::from_index).collect())
}

/// Every pattern of `trace`, in order.
pub(crate) fn patterns(trace: &Trace, blocks: &Blocks) -> Vec<Pattern> {
    let own = |pattern: oracle::Pattern| {
        let oracle::Pattern { block, first, between, second } = pattern;
        Pattern { block: BlockRunId::from_index(block), first, between, second }
    };
    oracle::patterns(trace, &plain(blocks)).into_iter().map(own).collect()
}

/// Whether some correct reordering shows `pattern`.
pub(crate) fn is_shown(trace: &Trace, pattern: &Pattern, states_max: usize) -> Option<bool> {
    let Pattern { block, first, between, second } = *pattern;
    let plain = oracle::Pattern { block: block.index(), first, between, second };
    oracle::is_shown(trace, &plain, states_max)
}
