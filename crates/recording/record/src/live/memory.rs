//! Who wrote which bytes last, while the program runs.
//!
//! A trace cuts memory into cells that no access covers in part, so all bytes of a cell have the
//! same last write: to keep that of every byte, without knowing the cells, gives each read the write
//! that it has in the trace. Memory that turns out not to be shared changes nothing: what a thread
//! did itself comes before what it does in any case.
//!
//! Thirty-two bytes for each eight of the program that are accessed, more where halves of four bytes
//! are not written as a whole.

use reweave_base::FxHashMap;

use super::clock::Clock;
use crate::cells::{Access, GRANULE};

const PAGE_GRANULES: u64 = 512;

/// The most pages that are followed.
const PAGES_MAX: usize = 1 << 15;

/// What is known of eight bytes.
#[derive(Clone, Default)]
struct Granule {
    /// The last writes of the first four bytes and of the others.
    halves: [Clock; 2],
    /// The last writes of each byte, once that is not enough.
    bytes: Option<Box<[Clock; GRANULE as usize]>>,
    /// The thread that accessed it first, plus one.
    thread: u32,
    is_shared: bool,
    is_written: bool,
}

impl Granule {
    fn note(&mut self, thread: u32, writes: bool) {
        let thread = thread.wrapping_add(1);
        if self.thread == 0 {
            self.thread = thread;
        }
        self.is_shared |= self.thread != thread;
        self.is_written |= writes;
    }

    fn read(&self, from: u8, to: u8, clock: &mut Clock) {
        match &self.bytes {
            Some(bytes) => {
                bytes[usize::from(from)..usize::from(to)].iter().for_each(|byte| clock.join(byte));
            }
            None => {
                if from < 4 {
                    clock.join(&self.halves[0]);
                }
                if to > 4 {
                    clock.join(&self.halves[1]);
                }
            }
        }
    }

    fn write(&mut self, from: u8, to: u8, clock: &Clock) {
        if let Some(bytes) = &mut self.bytes {
            bytes[usize::from(from)..usize::from(to)].fill(clock.clone());
            return;
        }
        match (from, to) {
            (0, 4) => self.halves[0].clone_from(clock),
            (4, 8) => self.halves[1].clone_from(clock),
            (0, 8) => self.halves.fill(clock.clone()),
            _ => {
                let [first, second] = std::mem::take(&mut self.halves);
                if first.is_empty() && second.is_empty() && clock.is_empty() {
                    return;
                }
                let byte = |at: usize| if at < 4 { first.clone() } else { second.clone() };
                let mut bytes: Box<[Clock; GRANULE as usize]> = Box::new(std::array::from_fn(byte));
                bytes[usize::from(from)..usize::from(to)].fill(clock.clone());
                self.bytes = Some(bytes);
            }
        }
    }
}

/// The memory of a program.
#[derive(Default)]
pub(super) struct Memory {
    pages: FxHashMap<u64, Box<[Granule]>>,
    /// Whether there was more memory than is followed.
    pub(super) is_full: bool,
}

impl Memory {
    /// Puts the writes that `access` of `thread` sees before it.
    pub(super) fn read(&mut self, thread: u32, access: Access, clock: &mut Clock) {
        for (number, from, to) in access.granules() {
            let Some(granule) = self.granule(number) else { return };
            granule.note(thread, false);
            granule.read(from, to, clock);
        }
    }

    /// From now on who reads what `access` of `thread` wrote comes after `clock`.
    pub(super) fn write(&mut self, thread: u32, access: Access, clock: &Clock) {
        for (number, from, to) in access.granules() {
            let Some(granule) = self.granule(number) else { return };
            granule.note(thread, true);
            granule.write(from, to, clock);
        }
    }

    /// Forgets the memory from `start` to `end`; says whether several threads shared some of it.
    pub(super) fn forget(&mut self, start: u64, end: u64) -> bool {
        let granules = start / GRANULE..(end - 1) / GRANULE + 1;
        let pages = granules.start / PAGE_GRANULES..(granules.end - 1) / PAGE_GRANULES + 1;
        let mut was_shared = false;
        let mut forget = |number: u64, page: &mut Box<[Granule]>| {
            let base = number * PAGE_GRANULES;
            let from = granules.start.max(base) - base;
            let to = (granules.end - base).min(PAGE_GRANULES);
            for granule in &mut page[from as usize..to as usize] {
                was_shared |= granule.is_shared && granule.is_written;
                *granule = Granule::default();
            }
        };
        // A block can be much larger than the memory that was touched.
        if pages.end - pages.start > self.pages.len() as u64 {
            let touched = self.pages.iter_mut().filter(|(number, _)| pages.contains(number));
            touched.for_each(|(&number, page)| forget(number, page));
        } else {
            for number in pages {
                if let Some(page) = self.pages.get_mut(&number) {
                    forget(number, page);
                }
            }
        }
        was_shared
    }

    fn granule(&mut self, number: u64) -> Option<&mut Granule> {
        let (page, place) = (number / PAGE_GRANULES, (number % PAGE_GRANULES) as usize);
        if self.pages.len() >= PAGES_MAX && !self.pages.contains_key(&page) {
            self.is_full = true;
            return None;
        }
        let new = || vec![Granule::default(); PAGE_GRANULES as usize].into_boxed_slice();
        self.pages.entry(page).or_insert_with(new).get_mut(place)
    }
}
