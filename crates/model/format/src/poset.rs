//! Posets: one JSON object that lists events with their vector clocks.
//!
//! ```json
//! {"n": 2, "events": [[0, [1, 0]], [1, [0, 1]], [0, [2, 1]]]}
//! ```
//!
//! `n` is how many threads there are. Each event is a thread, counted from 0, and its clock: for
//! each thread, how many of its events come before the event or are it. Events come in an order
//! that keeps the poset's own. Other keys are passed over.
//!
//! What is read has the right shape, a clock of n numbers for each event, and no more: whether the
//! clocks are those of an order is for whoever builds the poset to say. Memory is that of the
//! numbers read, of which [`ENTRIES_MAX`] are accepted; nothing is allocated on the word of `n`.
//!
//! A file is taken for a poset, not for JSON lines, by the keys of its first object: `n`, or
//! `events` with a list, are those of a poset, and `thread`, `op` and the like those of a trace.
//!
//! Linear in the text.

use std::cell::RefCell;
use std::io::{self, BufReader, Read};

use serde::Deserialize;

use crate::ReadOptions;
use crate::error::{Failure, Place, ReadErrorKind};
use crate::lines::{BYTE_ORDER_MARK, broken_stream};

/// The most numbers that the clocks of a poset may have together.
pub const ENTRIES_MAX: usize = 1 << 27;

/// How many bytes are examined to detect a poset.
pub(crate) const HEAD_MAX: usize = 64 << 10;

/// How much is read at once.
const BUFFER: usize = 64 << 10;

/// How many bytes may pass before the caller is asked whether to go on.
const ASK_EVERY: u64 = 1 << 20;

/// The events of a poset as a file lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object with `n` and `events`")]
pub struct RawPoset {
    n: u32,
    events: Vec<ClockedEvent>,
}

/// The thread of an event and its clock.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an event: a list of a thread and a clock")]
struct ClockedEvent(u32, Vec<u32>);

impl RawPoset {
    /// How many threads the file claims to have. It may be any number.
    pub const fn chains_count(&self) -> usize {
        self.n as usize
    }

    /// How many events there are.
    pub const fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are no events.
    pub const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The thread and the clock of each event, in file order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = (usize, &[u32])> {
        self.events.iter().map(|ClockedEvent(chain, clock)| (*chain as usize, clock.as_slice()))
    }

    /// What is wrong with the clocks, if anything.
    fn fault(&self) -> Option<String> {
        let count = self.chains_count();
        let mut clocks = self.events.iter().map(|ClockedEvent(_, clock)| clock.len());
        if let Some(index) = clocks.clone().position(|length| length != count) {
            let found = self.events[index].1.len();
            return Some(format!(
                "event {}: expected a clock of {count} numbers, one per thread, found {found}",
                index + 1
            ));
        }
        let entries = clocks.try_fold(0_usize, usize::checked_add);
        entries.is_none_or(|entries| entries > ENTRIES_MAX).then(|| {
            format!("the poset is too large: its clocks have more than {ENTRIES_MAX} numbers")
        })
    }
}

/// Reads the poset that `source` gives.
pub(crate) fn read(source: &mut dyn Read, options: &ReadOptions<'_>) -> Result<RawPoset, Failure> {
    let failure = RefCell::new(None);
    let watched = Watched { source, options, taken: 0, asked: 0, failure: &failure };
    let buffered = BufReader::with_capacity(BUFFER, watched);
    // The deserializer sees only that reading failed; `failure` says why.
    let poset: RawPoset = serde_json::from_reader(buffered)
        .map_err(|error| failure.take().unwrap_or_else(|| refusal(&error)))?;
    match poset.fault() {
        Some(reason) => Err((Place::File, ReadErrorKind::Malformed(reason))),
        None => Ok(poset),
    }
}

/// Where and why the text is not that of a poset.
fn refusal(error: &serde_json::Error) -> Failure {
    let (line, column) = (error.line() as u64, error.column() as u64);
    let reason = error.to_string();
    let suffix = format!(" at line {line} column {column}");
    let reason = reason
        .strip_suffix(&suffix)
        .unwrap_or(&reason)
        .replace("expected u32", "expected a number from 0 to 4294967295")
        .replace("EOF while parsing", "the text ends early, in");
    // Faults of the object as a whole have no place of their own.
    let place = if line == 0 { Place::File } else { Place::Column { line, column } };
    (place, ReadErrorKind::Malformed(reason))
}

/// Passes bytes on, asks now and then whether to go on, and keeps what went wrong.
struct Watched<'a> {
    source: &'a mut dyn Read,
    options: &'a ReadOptions<'a>,
    taken: u64,
    asked: u64,
    failure: &'a RefCell<Option<Failure>>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken - self.asked >= ASK_EVERY {
            self.asked = self.taken;
            if self.options.go_on.is_some_and(|go_on| !go_on(self.taken)) {
                *self.failure.borrow_mut() = Some((Place::File, ReadErrorKind::Interrupted));
                return Err(io::ErrorKind::Other.into());
            }
        }
        let read = self.source.read(buffer).map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                let reason = match broken_stream(&error) {
                    Some(reason) => ReadErrorKind::Malformed(reason),
                    None => error.into(),
                };
                *self.failure.borrow_mut() = Some((Place::File, reason));
            }
            io::Error::from(kind)
        });
        self.taken += *read.as_ref().unwrap_or(&0) as u64;
        read
    }
}

/// Whether a text that starts with `head` is to be taken for a poset.
pub(crate) fn is_poset(head: &[u8]) -> bool {
    // The keys of the object one after the other, until one decides.
    let decision = keys(head).find_map(|(key, value)| match key {
        b"n" => Some(true),
        b"events" => Some(value.starts_with(b"[")),
        b"thread" | b"op" | b"on" | b"semaphore" | b"barrier" => Some(false),
        _ => None,
    });
    decision.unwrap_or(false)
}

/// The keys of the object that `text` starts with, as they are spelled, each with the text from its
/// value on; as far as the text goes.
pub(crate) fn keys(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut rest = text.trim_ascii_start().strip_prefix(b"{");
    std::iter::from_fn(move || {
        let (key, value) = key_and_value(rest?)?;
        rest = after_value(value);
        Some((key, value))
    })
}

/// The next key of an object, as it is spelled, and the text from its value on.
fn key_and_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b",").unwrap_or(text).trim_ascii_start().strip_prefix(b"\"")?;
    let length = string_length(text)?;
    let value = text[length + 1..].trim_ascii_start().strip_prefix(b":")?;
    Some((&text[..length], value.trim_ascii_start()))
}

/// How long the string is that `text`, which starts after a quote, goes on with.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|&byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// What comes after the value that `text` starts with; none if that is not in the text.
fn after_value(text: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => at += string_length(&text[at + 1..])? + 1,
            b'[' | b'{' => depth += 1,
            b',' if depth == 0 => return Some(&text[at..]),
            b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
}
