//! Which memory was written by code that was not recorded, as far as values say so?
//!
//! Where one thread runs at a time, what an access reads is what was last written there. The bytes that
//! recorded accesses wrote or saw are remembered, and a read of others tells of a writer that nobody saw.
//! No other order or lock tells of such memory, so all of it that is found so is kept.
//!
//! Nine bytes for each eight that are accessed with a known value.

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind};

use crate::shadow::{Access, WORD_BYTES};

const PAGE_WORDS: usize = 512;

const PAGE_BYTES: u64 = PAGE_WORDS as u64 * WORD_BYTES;

/// What words hold, and which bytes of them are known.
struct Page {
    values: [u64; PAGE_WORDS],
    known: [u8; PAGE_WORDS],
}

/// What memory holds, by the accesses so far.
#[derive(Default)]
pub struct Values {
    pages: FxHashMap<u64, Box<Page>>,
    /// The last plain write of each thread, if it is not known yet what it stored.
    pending: FxHashMap<u32, Event>,
}

/// Whether `next`, which the same thread did next, may be the second half of a write of sixteen bytes of
/// which `write` is the first: what that stored was then looked at before it was stored.
pub fn is_first_half(write: &Event, next: &Event) -> bool {
    const EIGHT: u8 = 3;
    let of = |event: &Event| (event.kind, event.size, event.code);
    of(write) == (Kind::Write, EIGHT, next.code)
        && of(write) == of(next)
        && next.address == write.address.wrapping_add(WORD_BYTES)
}

impl Values {
    /// Takes the next event; gives the bytes that it read if they were not what recorded accesses left.
    pub fn step(&mut self, thread: u32, event: &Event) -> Option<Access> {
        if event.kind.is_one_word() {
            return None;
        }
        if let Some(write) = self.pending.remove(&thread)
            && let Some(stored) = event.stored
            && !is_first_half(&write, event)
            && let Some(access) = Access::new(&write)
        {
            self.set(access, stored);
        }
        if event.kind == Kind::Escaped {
            // What the thread did unseen is not known.
            self.pages.clear();
        }
        let access = Access::new(event)?;
        let (seen, left) = match event.kind {
            Kind::Read | Kind::AtomicLoad | Kind::AtomicFailed => (event.value, event.value),
            Kind::AtomicUpdate => (event.value, event.extra),
            Kind::AtomicStore => (None, event.value),
            _ => (None, None),
        };
        let is_other = seen.is_some_and(|seen| self.differs(access, seen));
        match left {
            Some(left) => self.set(access, left),
            None if access.writes => self.forget(access.start, access.end),
            None => {}
        }
        if event.kind == Kind::Write {
            self.pending.insert(thread, *event);
        }
        is_other.then_some(access)
    }

    /// The memory from `start` to `end` may hold anything.
    pub fn forget(&mut self, start: u64, end: u64) {
        let pages = start / PAGE_BYTES..=end.saturating_sub(1) / PAGE_BYTES;
        // A block can be much larger than the memory that was touched.
        if pages.end() - pages.start() > self.pages.len() as u64 {
            self.pages.retain(|page, _| !pages.contains(page));
            return;
        }
        for number in pages {
            let Some(page) = self.pages.get_mut(&number) else { continue };
            let base = number * PAGE_BYTES;
            let from = start.max(base) - base;
            let to = end.min(base + PAGE_BYTES) - base;
            let words = (from / WORD_BYTES) as usize..to.div_ceil(WORD_BYTES) as usize;
            page.known[words].fill(0);
        }
    }

    /// Whether some byte of `access` is known and not as in `value`.
    fn differs(&self, access: Access, value: u64) -> bool {
        access.words().any(|(word, from, to)| {
            let (page, place) = (word / PAGE_WORDS as u64, word as usize % PAGE_WORDS);
            let Some(page) = self.pages.get(&page) else { return false };
            let seen = in_word(value, access, word);
            let other = (page.values[place] ^ seen).to_le_bytes();
            (from..to).any(|byte| page.known[place] >> byte & 1 == 1 && other[byte as usize] != 0)
        })
    }

    fn set(&mut self, access: Access, value: u64) {
        for (word, from, to) in access.words() {
            let (page, place) = (word / PAGE_WORDS as u64, word as usize % PAGE_WORDS);
            let page = self.pages.entry(page).or_insert_with(|| {
                Box::new(Page { values: [0; PAGE_WORDS], known: [0; PAGE_WORDS] })
            });
            let bytes = ((1_u32 << to) - (1 << from)) as u8;
            let mask = (from..to).fold(0_u64, |mask, byte| mask | 0xff << (8 * byte));
            page.values[place] = page.values[place] & !mask | in_word(value, access, word) & mask;
            page.known[place] |= bytes;
        }
    }
}

/// The bytes of `value`, which is at `access`, where they are in `word`.
const fn in_word(value: u64, access: Access, word: u64) -> u64 {
    let base = word * WORD_BYTES;
    if access.start >= base {
        value << (8 * (access.start - base))
    } else {
        value >> (8 * (base - access.start))
    }
}
