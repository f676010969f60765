//! The memory that a recorded process shares with the recorder.
//!
//! A process that finds the variable [`DIRECTORY_VARIABLE`] makes a *session*: files in that
//! directory whose names start with `s<pid>.<n>`. `.head` holds a [`Header`], then a [`Ring`]; in
//! `free` recordings `.t<k>` holds the k-th ring; `.maps<k>` is the k-th copy of the
//! process's memory map. The directory also holds [`Settings`], as words, in `settings`, and where
//! a schedule is to be followed, `plan`.
//!
//! A ring has one writer, the program, and one reader, the recorder: the writer moves `head`, the
//! reader `tail`, both counted in words and never reset.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The environment variable that names the directory; without it nothing is recorded.
pub const DIRECTORY_VARIABLE: &str = "REWEAVE_RECORD";

/// The first word of a session and of settings: the version of this layout.
pub const MAGIC: u64 = 0x7265_7765_6176_0001;

/// Bytes before the ring of a session.
pub const HEADER_BYTES: usize = 4096;

/// Bytes before the words of a ring.
pub const RING_HEADER_BYTES: usize = 4096;

/// How a program is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Mode {
    /// One thread at a time; the order and the values are exact.
    Serial = 0,
    /// Threads run in parallel; the order is exact on synchronization.
    Free = 1,
}

/// What the recorder asks of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How the program is recorded.
    pub mode: Mode,
    /// Whether the values of accesses are recorded, in `serial` recordings.
    pub values: bool,
    /// The seed of the moments at which the token is passed on.
    pub seed: u64,
    /// The longest quantum, counted in accesses.
    pub quantum_max: u64,
    /// The words of each ring, a power of two.
    pub ring_words: u64,
    /// The process that reads the rings.
    pub collector: u64,
    /// Whether `plan` says who runs until when.
    pub replay: bool,
    /// Milliseconds without progress after which a plan is given up.
    pub stall_timeout_ms: u64,
    /// Milliseconds that a program which exits waits for its other threads.
    pub exit_wait_ms: u64,
}

/// How many words [`Settings`] take.
pub const SETTINGS_WORDS: usize = 10;

impl Settings {
    /// The settings as words.
    #[must_use]
    pub const fn encode(&self) -> [u64; SETTINGS_WORDS] {
        [
            MAGIC,
            self.mode as u64,
            self.values as u64,
            self.seed,
            self.quantum_max,
            self.ring_words,
            self.collector,
            self.replay as u64,
            self.stall_timeout_ms,
            self.exit_wait_ms,
        ]
    }

    /// The settings that `words` spell, if they do.
    #[must_use]
    pub fn decode(words: &[u64; SETTINGS_WORDS]) -> Option<Self> {
        let &[
            magic,
            mode,
            values,
            seed,
            quantum_max,
            ring_words,
            collector,
            replay,
            stall_timeout_ms,
            exit_wait_ms,
        ] = words;
        let mode = match mode {
            0 => Mode::Serial,
            1 => Mode::Free,
            _ => return None,
        };
        let is_sane = magic == MAGIC
            && ring_words.is_power_of_two()
            && (1 << 9..=1 << 28).contains(&ring_words)
            && quantum_max > 0;
        is_sane.then_some(Self {
            mode,
            values: values == 1,
            seed,
            quantum_max,
            ring_words,
            collector,
            replay: replay == 1,
            stall_timeout_ms,
            exit_wait_ms,
        })
    }
}

/// What happened to a plan; the first word of [`Header::outcome`].
pub mod outcome {
    /// The plan is being followed.
    pub const PENDING: u64 = 0;
    /// The goal was reached: then, for each party, its plan entry, code address and address.
    pub const CONFIRMED: u64 = 1;
    /// Nothing moved for too long: then the step, the thread's plan entry, and what it waits for.
    pub const STALLED: u64 = 2;
    /// The thread of a step ended before it got there: then the step and the thread's entry.
    pub const ENDED: u64 = 3;
    /// The goal's accesses were reached, but at addresses that have nothing in common.
    pub const NO_OVERLAP: u64 = 4;
    /// The plan cannot be read.
    pub const UNREADABLE: u64 = 5;
    /// A lock that was to be waited for was free: then the thread's entry, its code, the lock.
    pub const TAKEN: u64 = 6;
}

/// How many words say what happened to a plan.
pub const OUTCOME_WORDS: usize = 64;

/// How a program failed; see [`Header::failure`].
pub mod failure {
    /// It did not.
    pub const NONE: u32 = 0;
    /// It is about to, or a handler of its own comes before.
    pub const NOTED: u32 = 1;
    /// It does.
    pub const CERTAIN: u32 = 2;
    /// Instead of a signal: a panic of Rust. It is no failure where the program goes on.
    pub const PANIC: u64 = 101;
}

/// The most words of what a program said when it failed.
pub const FAILURE_WORDS: usize = 64;

/// The state of a recorded process.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: AtomicU64,
    /// The process.
    pub pid: AtomicU64,
    /// The [`Mode`].
    pub mode: AtomicU64,
    /// The words of each ring.
    pub ring_words: AtomicU64,
    /// The next place in the order of synchronization.
    pub sequence: AtomicU64,
    /// How many thread numbers were given.
    pub threads: AtomicU32,
    /// How many rings there are besides the first, in `free` recordings.
    pub rings: AtomicU32,
    /// How many copies of the memory map were written.
    pub maps: AtomicU32,
    /// Not 0: record nothing more.
    pub stop: AtomicU32,
    /// Rung when a ring fills up.
    pub bell: AtomicU32,
    /// Whether the reader sleeps until the bell rings.
    pub listening: AtomicU32,
    /// How often the token was taken from a thread that ran unseen.
    pub evictions: AtomicU32,
    /// How many threads could not be recorded, for want of memory or of an open file.
    pub unrecorded: AtomicU32,
    /// How many child processes it was about to make that would be recorded too.
    pub forks: AtomicU32,
    /// What became of the plan: a word of [`outcome`], how many follow, then these.
    pub outcome: [AtomicU64; OUTCOME_WORDS],
    /// Whether the program failed: a word of [`failure`].
    pub failure: AtomicU32,
    /// 1 + the number of the thread that failed; 0 if it was none that is recorded.
    pub failure_thread: AtomicU32,
    /// The signal, or [`failure::PANIC`].
    pub failure_signal: AtomicU64,
    /// The code address after that at which it failed; 0 where that says nothing.
    pub failure_code: AtomicU64,
    /// The bytes of what it said.
    pub failure_length: AtomicU64,
    /// What it said.
    pub failure_text: [AtomicU64; FAILURE_WORDS],
}

/// The counters of a ring; its words follow at [`RING_HEADER_BYTES`].
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Ring {
    /// Words written.
    pub head: AtomicU64,
    /// Accesses that were as expected since the last word was written: their number in the low
    /// half, the low half of `head` at that moment in the other. They count only as long as the two
    /// heads agree, so that a program that dies between two stores is not misunderstood.
    pub run: AtomicU64,
    /// Keeps the writer's line apart from the reader's.
    pub apart: [u64; 6],
    /// Words read.
    pub tail: AtomicU64,
    /// Whether the writer sleeps until words are read.
    pub sleeping: AtomicU32,
    /// Changed when words were read while the writer slept.
    pub drained: AtomicU32,
    /// 1 once the writer has ended.
    pub ended: AtomicU32,
}

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES, "the header has its own page");
const _: () = assert!(size_of::<Ring>() <= RING_HEADER_BYTES, "so do the counters of a ring");

/// The bytes of a file with a ring of `words`, after `before` bytes.
#[must_use]
pub const fn file_bytes(before: usize, words: u64) -> usize {
    before + RING_HEADER_BYTES + words as usize * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_their_words() {
        let settings = Settings {
            mode: Mode::Free,
            values: true,
            seed: 7,
            quantum_max: 4096,
            ring_words: 1 << 17,
            collector: 12,
            replay: true,
            stall_timeout_ms: 2000,
            exit_wait_ms: 1000,
        };
        assert_eq!(Settings::decode(&settings.encode()), Some(settings));
        assert_eq!(Settings::decode(&[0; SETTINGS_WORDS]), None);
    }
}
