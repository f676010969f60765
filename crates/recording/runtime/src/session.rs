//! The recorder's side of the shared memory: sessions and rings, read while the program writes.
//!
//! Nothing that a program does to its side can harm the reader: counters are taken modulo the size
//! of the ring, and words that are no event end the ring.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::shared::{
    HEADER_BYTES, Header, MAGIC, OUTCOME_WORDS, RING_HEADER_BYTES, Ring, file_bytes,
};
use crate::sys;
pub use crate::sys::kill;
use crate::wire::Event;

const KILL: usize = 9;
const TERMINATE: usize = 15;

/// Has this process asked to terminate when the one ends that started it.
pub fn terminate_with_parent() {
    sys::end_with_parent(TERMINATE);
}

/// Makes the program that `command` starts end when we do, however that happens.
pub fn end_with_us(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes one system call and touches no memory.
    unsafe {
        command.pre_exec(|| {
            sys::end_with_parent(KILL);
            Ok(())
        });
    }
}

/// Memory that is shared with the program, released when dropped.
#[derive(Debug)]
struct Mapping {
    place: *mut u8,
    length: usize,
}

// SAFETY: the memory is only reached through atomic fields.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(file: &File, length: usize) -> io::Result<Self> {
        if file.metadata()?.len() < length as u64 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "shorter than its layout"));
        }
        let descriptor = usize::try_from(file.as_raw_fd()).map_err(io::Error::other)?;
        let place = sys::map_shared(length, descriptor)
            .ok_or_else(|| io::Error::other("the kernel refused to map it"))?;
        Ok(Self { place, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing outlives it.
        unsafe { sys::unmap(self.place, self.length) }
    }
}

/// A recorded process, as the recorder sees it.
#[derive(Debug)]
pub struct Session {
    mapping: Arc<Mapping>,
    ring_words: u64,
}

impl Session {
    /// Opens the session whose `.head` file is `path`; nothing while it is not set up.
    ///
    /// # Errors
    /// If the file cannot be opened or mapped.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.metadata()?.len() < HEADER_BYTES as u64 {
            return Ok(None);
        }
        let head = Mapping::new(&file, HEADER_BYTES)?;
        // SAFETY: a page of atomic fields, mapped as long as `head` lives.
        let header = unsafe { &*head.place.cast::<Header>() };
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Ok(None);
        }
        let ring_words = header.ring_words.load(Ordering::Relaxed);
        if !ring_words.is_power_of_two() || ring_words > 1 << 28 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a session of ours"));
        }
        let mapping = Mapping::new(&file, file_bytes(HEADER_BYTES, ring_words))?;
        Ok(Some(Self { mapping: Arc::new(mapping), ring_words }))
    }

    /// What the process says of itself.
    #[must_use]
    pub fn header(&self) -> &Header {
        // SAFETY: atomic fields at the start of a mapping that lives as long as `self`.
        unsafe { &*self.mapping.place.cast::<Header>() }
    }

    /// The ring of all threads, in `serial` recordings.
    #[must_use]
    pub fn ring(&self) -> Reader {
        Reader::new(Arc::clone(&self.mapping), HEADER_BYTES, self.ring_words)
    }

    /// A ring of a `free` recording, which is in the file `path`.
    ///
    /// # Errors
    /// If the file cannot be opened or mapped.
    pub fn thread_ring(&self, path: &Path) -> io::Result<Reader> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mapping = Mapping::new(&file, file_bytes(0, self.ring_words))?;
        Ok(Reader::new(Arc::new(mapping), 0, self.ring_words))
    }

    /// Makes the process record nothing more.
    pub fn stop(&self) {
        self.header().stop.store(1, Ordering::Release);
    }

    /// Sleeps until a ring fills up, or `timeout_ms` has passed.
    pub fn listen(&self, timeout_ms: u64) {
        let header = self.header();
        let heard = header.bell.load(Ordering::Acquire);
        header.listening.store(1, Ordering::SeqCst);
        sys::futex_wait(&header.bell, heard, timeout_ms);
        header.listening.store(0, Ordering::Relaxed);
    }

    /// What became of the plan: a word of [`crate::shared::outcome`] and what belongs to it.
    #[must_use]
    pub fn outcome(&self) -> (u64, Vec<u64>) {
        let [first, length, rest @ ..] = &self.header().outcome;
        let what = first.load(Ordering::Acquire);
        let count = length.load(Ordering::Relaxed).min(OUTCOME_WORDS as u64 - 2) as usize;
        (what, rest[..count].iter().map(|word| word.load(Ordering::Relaxed)).collect())
    }
}

/// Reads the events of a ring.
#[derive(Debug)]
pub struct Reader {
    mapping: Arc<Mapping>,
    offset: usize,
    mask: u64,
    position: u64,
    head: u64,
    is_damaged: bool,
}

impl Reader {
    fn new(mapping: Arc<Mapping>, offset: usize, words: u64) -> Self {
        Self { mapping, offset, mask: words - 1, position: 0, head: 0, is_damaged: false }
    }

    fn ring(&self) -> &Ring {
        // SAFETY: the mapping has a ring at this offset, of atomic fields.
        unsafe { &*self.mapping.place.add(self.offset).cast::<Ring>() }
    }

    /// Looks how far the writer got.
    pub fn refresh(&mut self) {
        self.head = self.ring().head.load(Ordering::Acquire);
    }

    /// The next event, and how many words it takes; it stays the next until it is passed.
    #[inline]
    pub fn peek(&mut self) -> Option<(Event, usize)> {
        let available = self.head.wrapping_sub(self.position).min(self.mask + 1) as usize;
        if available == 0 || self.is_damaged {
            return None;
        }
        // SAFETY: the words follow the ring's counters in the same mapping, `mask + 1` of them.
        let words =
            unsafe { self.mapping.place.add(self.offset + RING_HEADER_BYTES).cast::<AtomicU64>() };
        let word = |place: usize| {
            let index = self.position.wrapping_add(place as u64) & self.mask;
            // SAFETY: as above.
            unsafe { (*words.add(index as usize)).load(Ordering::Relaxed) }
        };
        let event = Event::decode(available, word);
        self.is_damaged = event.is_none();
        event
    }

    /// Passes an event of `words` words.
    #[inline]
    pub fn pass(&mut self, words: usize) {
        self.position = self.position.wrapping_add(words as u64);
    }

    /// Gives what was passed back to the writer.
    pub fn release(&self) {
        let ring = self.ring();
        ring.tail.store(self.position, Ordering::SeqCst);
        if ring.sleeping.load(Ordering::SeqCst) != 0 {
            ring.drained.fetch_add(1, Ordering::Release);
            sys::futex_wake(&ring.drained, 1);
        }
    }

    /// How many accesses were as expected since the last event: they will be reported by a run, or
    /// were the last that the program did.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        let ring = self.ring();
        let run = ring.run.load(Ordering::Acquire);
        let is_current = run >> 32 == ring.head.load(Ordering::Acquire) & u64::from(u32::MAX);
        if is_current { run & u64::from(u32::MAX) } else { 0 }
    }

    /// Whether the writer has ended and all of it is read.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let ring = self.ring();
        ring.ended.load(Ordering::Acquire) != 0
            && ring.head.load(Ordering::Acquire) == self.position
    }

    /// Whether words were found that are no event.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.is_damaged
    }
}
