//! Which reads of a `free` recording may have seen another write than the last one recorded?
//!
//! Threads that run freely number their events of synchronisation, atomic accesses among them, by
//! one counter that every thread raises as it goes. So an access is known to have come before
//! another if its thread raised the counter after it and the other's thread did so, to a greater
//! number, before the other. Of any two accesses to a cell of which one writes and one is plain, and
//! that are not known to be ordered so, the recorded order says nothing. The plain reads of a cell
//! with such a pair have no known writer, all of them: later passes need not know the future.
//!
//! Of the accesses of one kind by one thread the last one decides, so a cell costs one entry per
//! thread that accesses it.

use std::io;

use reweave_base::{FxHashMap, FxHashSet};

use crate::cells::{Access, Blocks, Cells};
use crate::spool::Stream;

/// When a thread last did something to a cell: the number that its thread had reached, plus one.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    thread: u32,
    /// Plain reads, plain writes, atomic reads, atomic writes.
    times: [Option<u64>; 4],
}

/// A cell of a lifetime, as one number.
#[inline]
pub(super) fn key(lifetime: u32, begin: u8) -> u64 {
    u64::from(lifetime) * crate::cells::GRANULE + u64::from(begin)
}

/// The cells whose plain reads have no known writer.
pub(super) fn loose_cells(
    stream: &mut dyn Stream,
    cells: &mut Cells,
) -> io::Result<FxHashSet<u64>> {
    let mut loose = FxHashSet::default();
    let mut accesses: FxHashMap<u64, Vec<Last>> = FxHashMap::default();
    let mut reached: FxHashMap<u32, u64> = FxHashMap::default();
    let mut blocks = Blocks::default();
    while let Some((thread, event)) = stream.next_event()? {
        blocks.step(&event);
        // Whether a numbered access comes just before or just after its number is not known, so it
        // is taken to come after what came before its thread's number before that.
        let before = reached.get(&thread).copied().unwrap_or(0);
        if let Some(number) = event.number {
            reached.insert(thread, number.saturating_add(1));
        }
        let Some(access) = Access::new(&event) else { continue };
        for (granule, from, to) in access.granules() {
            let Some(place) = cells.lifetime_at(granule, blocks.time()) else { continue };
            let lifetime = cells.lifetimes()[place as usize];
            for (begin, _) in lifetime.cells(from, to) {
                let key = key(place, begin);
                if loose.contains(&key) {
                    continue;
                }
                let list = accesses.entry(key).or_default();
                if is_unordered(list, (thread, before), access, &reached) {
                    loose.insert(key);
                    accesses.remove(&key);
                }
            }
        }
    }
    cells.rewind();
    Ok(loose)
}

/// Whether `access` is not known to come after all in `list` that it conflicts with; adds it.
fn is_unordered(
    list: &mut Vec<Last>,
    (thread, before): (u32, u64),
    access: Access,
    reached: &FxHashMap<u32, u64>,
) -> bool {
    let now = |of: u32| reached.get(&of).copied().unwrap_or(0);
    let class = usize::from(access.writes) + 2 * usize::from(access.is_atomic);
    let conflicts = |other: usize| {
        let (writes, is_atomic) = (other % 2 == 1, other >= 2);
        (writes || access.writes) && !(is_atomic && access.is_atomic)
    };
    let is_known = |last: &Last| {
        let clock = now(last.thread);
        let mut times = last.times.iter().enumerate().filter(|&(other, _)| conflicts(other));
        times.all(|(_, time)| time.is_none_or(|then| then < clock && clock <= before))
    };
    if !list.iter().filter(|last| last.thread != thread).all(is_known) {
        return true;
    }
    let place = list.iter().position(|last| last.thread == thread).unwrap_or_else(|| {
        list.push(Last { thread, ..Last::default() });
        list.len() - 1
    });
    list[place].times[class] = Some(now(thread));
    false
}
