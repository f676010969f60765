//! Shadow cells of a recording, a byte at a time: which there are, and which of them are kept. Every
//! question goes through all events.

use std::collections::BTreeMap;

/// The bytes of a shadow word.
const WORD_BYTES: u64 = 8;

/// An event of a recording, as far as it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An access of bytes.
    Access(Access),
    /// Memory becomes a block.
    Alloc {
        /// Its first byte.
        start: u64,
        /// How many bytes it has.
        length: u64,
    },
    /// A block is released, or these bytes if a length is given.
    Free {
        /// The first byte.
        start: u64,
        /// How many bytes; 0 is the whole block.
        length: u64,
    },
    /// A thread begins.
    Fork(u32),
    /// A thread has ended.
    Join(u32),
    /// Anything else.
    Other,
}

/// The bytes that an event accesses, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// Whether it writes.
    pub writes: bool,
}

/// A cell that an access covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Its first byte.
    pub begin: u64,
    /// The byte after its last.
    pub end: u64,
    /// The place of the first access to its shadow word in its lifetime.
    pub lifetime: usize,
}

/// The cells that the access at `place` in `events` covers, as far as their shadow words are kept, by
/// address.
#[must_use]
pub fn cells_of(events: &[(u32, Event)], place: usize) -> Vec<Cell> {
    let Event::Access(access) = events[place].1 else { return Vec::new() };
    let mut cells = Vec::new();
    let mut begin = access.start;
    while begin < access.end {
        let mut word = begin / WORD_BYTES;
        let life = life_of(events, place, word);
        let is_border = |byte: u64| byte.is_multiple_of(WORD_BYTES) || life.has_border(byte);
        let mut end = (begin + 1..).find(|&byte| is_border(byte)).expect("a shadow word ends");
        // Neighbouring words that are a cell each are one if every access covers both.
        if end - begin == WORD_BYTES {
            while is_one_cell(
                &life_of(events, place, word),
                &life_of(events, place, word + 1),
                word,
            ) {
                word += 1;
                end += WORD_BYTES;
            }
        }
        let others = &life.accesses;
        let (lifetime, ..) = others[0];
        let is_contended = others.iter().enumerate().any(|(place, first)| {
            others[place + 1..].iter().any(|second| {
                (first.2.writes || second.2.writes) && !is_ordered(events, first.0, second.0)
            })
        });
        // Who frees memory counts as one who writes there.
        let free = life.ending.filter(|&at| matches!(events[at].1, Event::Free { .. }));
        let is_freed_by_another =
            free.is_some_and(|free| others.iter().any(|it| !is_ordered(events, it.0, free)));
        if is_contended || is_freed_by_another {
            cells.push(Cell { begin, end, lifetime });
        }
        begin = end;
    }
    cells
}

/// The lifetime of a shadow word.
struct Life {
    /// All accesses to the word, with their places and threads.
    accesses: Vec<(usize, u32, Access)>,
    /// The place of the event that ended it.
    ending: Option<usize>,
    /// The block that all of its bytes were in when it ended, if that event ended all of them and
    /// they were in the same block, or all in none.
    owner: Option<Option<(u64, usize)>>,
}

impl Life {
    fn has_border(&self, byte: u64) -> bool {
        self.accesses.iter().any(|(_, _, access)| access.start == byte || access.end == byte)
    }
}

/// Whether `word` with the life `first` is one cell with the next word, which has the life `second`.
fn is_one_cell(first: &Life, second: &Life, word: u64) -> bool {
    let mut inner = (1..WORD_BYTES).flat_map(|byte| {
        [(first, word * WORD_BYTES + byte), (second, (word + 1) * WORD_BYTES + byte)]
    });
    first.accesses == second.accesses
        && first.ending == second.ending
        && first.owner.is_some()
        && first.owner == second.owner
        && !inner.any(|(life, byte)| life.has_border(byte))
}

/// Whether the event at `first` comes before that at `second` in every run: there is a way from one
/// to the other along threads, from forks to what they begin, and from ends to joins.
fn is_ordered(events: &[(u32, Event)], first: usize, second: usize) -> bool {
    let mut reached = vec![false; events.len()];
    reached[first] = true;
    for place in first + 1..=second {
        let (thread, event) = &events[place];
        let comes_after = |&before: &usize| {
            let (other, fork) = &events[before];
            let is_forked = *fork == Event::Fork(*thread) && {
                // Only the first fork of a thread begins it, and only if it had not run before.
                let known = events[..before].iter().any(|(of, event)| {
                    let named = [Event::Fork(*thread), Event::Join(*thread)];
                    of == thread || named.contains(event)
                });
                !known && other != thread
            };
            let is_joined = *event == Event::Join(*other);
            reached[before] && (other == thread || is_forked || is_joined)
        };
        reached[place] = (first..place).any(|before| comes_after(&before));
    }
    reached[second]
}

/// The lifetime in which `word` is at `place`.
fn life_of(events: &[(u32, Event)], place: usize, word: u64) -> Life {
    let bytes = word * WORD_BYTES..(word + 1) * WORD_BYTES;
    let mut owners = Owners::default();
    let mut accesses = Vec::new();
    let mut ending = None;
    let mut ended: Vec<u64> = bytes.clone().collect();
    let mut before: Vec<_> = Vec::new();
    for (at, (thread, event)) in events.iter().enumerate() {
        before = bytes.clone().map(|byte| owners.0.get(&byte).copied()).collect();
        let mut changed = owners.step(at, event);
        changed.retain(|byte| bytes.contains(byte));
        if !changed.is_empty() && at > place {
            (ending, ended) = (Some(at), changed);
            break;
        }
        if !changed.is_empty() {
            accesses.clear();
        }
        if let Event::Access(access) = *event
            && (access.start / WORD_BYTES..=(access.end - 1) / WORD_BYTES).contains(&word)
        {
            accesses.push((at, *thread, access));
        }
        before = bytes.clone().map(|byte| owners.0.get(&byte).copied()).collect();
    }
    let is_whole = bytes.clone().all(|byte| ended.contains(&byte));
    let is_one = before.iter().all(|owner| *owner == before[0]);
    let owner = (is_whole && is_one).then(|| before.first().copied().flatten());
    Life { accesses, ending, owner }
}

/// For each byte of allocated memory where it was allocated, and by which event.
#[derive(Default)]
struct Owners(BTreeMap<u64, (u64, usize)>);

impl Owners {
    /// Takes the event at `at`; gives the bytes that are others from now on.
    fn step(&mut self, at: usize, event: &Event) -> Vec<u64> {
        let range = |start: u64, length| start..start.saturating_add(length);
        match *event {
            Event::Alloc { start, length } => {
                self.0.extend(range(start, length).map(|byte| (byte, (start, at))));
                range(start, length).collect()
            }
            // Of the blocks that were allocated there and of which something is left, the last.
            Event::Free { start, length: 0 } => {
                let blocks = self.0.values().filter(|(base, _)| *base == start);
                let Some(&last) = blocks.max() else { return Vec::new() };
                let owned = self.0.iter().filter(|&(_, owner)| *owner == last);
                let bytes: Vec<u64> = owned.map(|(&byte, _)| byte).collect();
                self.0.retain(|_, owner| *owner != last);
                bytes
            }
            Event::Free { start, length } => {
                self.0.retain(|byte, _| !range(start, length).contains(byte));
                range(start, length).collect()
            }
            Event::Access(_) | Event::Fork(_) | Event::Join(_) | Event::Other => Vec::new(),
        }
    }
}
