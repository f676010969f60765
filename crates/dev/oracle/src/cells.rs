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
        let word = begin / WORD_BYTES;
        let others = accesses_of_lifetime(events, place, word);
        let is_border = |byte: u64| {
            byte.is_multiple_of(WORD_BYTES)
                || others.iter().any(|(_, _, other)| other.start == byte || other.end == byte)
        };
        let end = (begin + 1..).find(|&byte| is_border(byte)).expect("a shadow word ends");
        let (lifetime, ..) = others[0];
        let is_contended = others.iter().enumerate().any(|(place, first)| {
            others[place + 1..].iter().any(|second| {
                (first.2.writes || second.2.writes) && !is_ordered(events, first.0, second.0)
            })
        });
        if is_contended {
            cells.push(Cell { begin, end, lifetime });
        }
        begin = end;
    }
    cells
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

/// All accesses to `word` in the lifetime in which it is at `place`, with their places and
/// threads.
fn accesses_of_lifetime(
    events: &[(u32, Event)],
    place: usize,
    word: u64,
) -> Vec<(usize, u32, Access)> {
    let mut owners = Owners::default();
    let mut lifetime = Vec::new();
    for (at, (thread, event)) in events.iter().enumerate() {
        let ends = owners.step(at, event).iter().any(|byte| byte / WORD_BYTES == word);
        match (ends, at > place) {
            (true, true) => break,
            (true, false) => lifetime.clear(),
            (false, _) => {}
        }
        if let Event::Access(access) = *event
            && (access.start / WORD_BYTES..=(access.end - 1) / WORD_BYTES).contains(&word)
        {
            lifetime.push((at, *thread, access));
        }
    }
    lifetime
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
