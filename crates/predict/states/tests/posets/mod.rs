//! Posets to test with.

use proptest::prelude::*;
use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset, PosetBuilder};

/// Posets of up to five chains: each event may come after the last one of some others.
pub(crate) fn posets() -> impl Strategy<Value = Poset> {
    let event = (any::<u16>(), proptest::collection::vec(any::<u16>(), 0..3), 0..3_u8);
    (0..=5_usize, proptest::collection::vec(event, 0..14)).prop_map(|(chains_count, events)| {
        let mut builder = PosetBuilder::new(chains_count).expect("there are few chains");
        for (chain, others, luck) in events {
            if chains_count == 0 {
                break;
            }
            let pick = |number: u16| usize::from(number) % chains_count;
            let chain = pick(chain);
            let others = others.into_iter().map(pick).filter(|_| luck == 0);
            let so_far = builder.so_far();
            let mut clock = vec![0; chains_count];
            for other in others.chain([chain]) {
                let last = ChainId::from_index(other);
                let theirs = so_far.clock(last, so_far.length(last));
                clock.iter_mut().zip(theirs).for_each(|(own, &theirs)| *own = theirs.max(*own));
            }
            clock[chain] += 1;
            builder.push(chain, &clock).expect("it is the join of clocks");
        }
        builder.finish()
    })
}

/// So many chains of so many events each, and no order between them.
pub(crate) fn grid(chains_count: usize, length: u32) -> Poset {
    let mut builder = PosetBuilder::new(chains_count).expect("there are few chains");
    for index in 1..=length {
        for chain in 0..chains_count {
            let mut clock = vec![0; chains_count];
            clock[chain] = index;
            builder.push(chain, &clock).expect("it comes after its own chain alone");
        }
    }
    builder.finish()
}
