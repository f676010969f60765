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
//! numbers read, of which [`ENTRIES_MAX`] are accepted; `n` is taken as a number and nothing is
//! made as large as it.
//!
//! A file is taken for a poset, not for JSON lines, by the keys of its first object: `n`, or
//! `events` with a list, are those of a poset, and `thread`, `op` and the like those of a trace.
//!
//! Linear in the text.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Formatter};
use std::io::{self, BufReader, Read};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::ReadOptions;
use crate::error::{Failure, Place, ReadErrorKind};
use crate::lines::{BYTE_ORDER_MARK, broken_stream};

/// The most numbers that the clocks of a poset may have together.
pub const ENTRIES_MAX: usize = 1 << 27;

/// How much of a text is looked at to tell what it is.
pub(crate) const HEAD_MAX: usize = 64 << 10;

/// How much is read at once.
const BUFFER: usize = 64 << 10;

/// How many bytes may pass before the caller is asked whether to go on.
const ASK_EVERY: u64 = 1 << 20;

/// The events of a poset as a file lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawPoset {
    chains_count: usize,
    /// The thread of each event.
    chains: Vec<u32>,
    /// The clocks of the events, end to end.
    clocks: Vec<u32>,
}

impl RawPoset {
    /// How many threads there are, by the file's word: nothing says that it is not huge.
    #[must_use]
    pub const fn chains_count(&self) -> usize {
        self.chains_count
    }

    /// How many events there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.chains.len()
    }

    /// Whether there are no events.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// The thread and the clock of each event, as they were listed.
    pub fn events(&self) -> impl ExactSizeIterator<Item = (usize, &[u32])> {
        let width = if self.is_empty() { 0 } else { self.chains_count };
        self.chains.iter().enumerate().map(move |(event, &chain)| {
            (chain as usize, &self.clocks[event * width..(event + 1) * width])
        })
    }
}

/// Reads the poset that `source` gives.
pub(crate) fn read(source: &mut dyn Read, options: &ReadOptions<'_>) -> Result<RawPoset, Failure> {
    let failure = RefCell::new(None);
    let progress = Cell::new(Progress::default());
    let watched = Watched { source, options, taken: 0, asked: 0, failure: &failure };
    let mut text = serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER, watched));
    let read = text.deserialize_map(Object { progress: &progress });
    let read = read.and_then(|poset| text.end().map(|()| poset));
    read.map_err(|error| match failure.take() {
        Some(failure) => failure,
        None => refusal(&error, progress.get()),
    })
}

/// Where and why the text is not that of a poset.
fn refusal(error: &serde_json::Error, progress: Progress) -> Failure {
    let reason = error.to_string();
    let (line, column) = (error.line() as u64, error.column() as u64);
    let reason =
        reason.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&reason);
    let reason = reworded(reason);
    let kind = ReadErrorKind::Malformed(match progress.event {
        Some(event) => format!("event {event}: {reason}"),
        None => reason,
    });
    // Faults of the object as a whole have no place of their own.
    let place = if line == 0 { Place::File } else { Place::Column { line, column } };
    (place, kind)
}

/// A reason of the deserializer in our words.
fn reworded(reason: &str) -> String {
    if let Some(what) = reason.strip_prefix("EOF while parsing ") {
        return format!("the text ends early, in {what}");
    }
    let of_type = reason.strip_prefix("invalid type: ");
    match of_type.and_then(|reason| reason.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("expected {expected}, found {found}"),
        None if reason == "trailing characters" => {
            "expected nothing after the object, found more".to_owned()
        }
        None => reason.to_owned(),
    }
}

/// How far the reader is, for messages.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The event that is being read, counted from 1.
    event: Option<usize>,
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

/// The object as a whole.
struct Object<'a> {
    progress: &'a Cell<Progress>,
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = RawPoset;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `n` and `events`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawPoset, A::Error> {
        let mut count = None;
        let mut events = None;
        while let Some(key) = map.next_key_seed(KeySeed)? {
            match key {
                Key::Count if count.is_some() => return Err(twice("n")),
                Key::Events if events.is_some() => return Err(twice("events")),
                Key::Count => count = Some(map.next_value_seed(Number("a number of threads"))?),
                Key::Events => {
                    let seed = Events { width: count, progress: self.progress };
                    events = Some(map.next_value_seed(seed)?);
                    self.progress.set(Progress::default());
                }
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let count = count.ok_or_else(|| lacks("n"))?;
        let (width, chains, clocks) = events.ok_or_else(|| lacks("events"))?;
        if let Some(width) = width.filter(|&width| width != count) {
            return Err(Error::custom(format_args!(
                "expected clocks of {count} numbers, as `n` says, found {width}"
            )));
        }
        Ok(RawPoset { chains_count: count as usize, chains, clocks })
    }
}

fn lacks<E: Error>(key: &str) -> E {
    E::custom(format_args!("expected the key `{key}` too, found the end of the object"))
}

fn twice<E: Error>(key: &str) -> E {
    E::custom(format_args!("expected the key `{key}` once, found it again"))
}

/// A key of the object.
enum Key {
    Count,
    Events,
    Other,
}

struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Key, D::Error> {
        source.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Key, E> {
        Ok(match key {
            "n" => Key::Count,
            "events" => Key::Events,
            _ => Key::Other,
        })
    }
}

/// A whole number that is not negative and not over the largest that a clock can have, called so.
struct Number(&'static str);

impl<'de> DeserializeSeed<'de> for Number {
    type Value = u32;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<u32, D::Error> {
        source.deserialize_u32(self)
    }
}

impl Visitor<'_> for Number {
    type Value = u32;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u32, E> {
        u32::try_from(number).map_err(|_| {
            let max = u32::MAX;
            E::custom(format_args!("expected {}, at most {max}, found {number}", self.0))
        })
    }
}

/// The list of events: the width of their clocks if there are any, their threads, their clocks.
struct Events<'a> {
    /// The width that is known already.
    width: Option<u32>,
    progress: &'a Cell<Progress>,
}

type Listed = (Option<u32>, Vec<u32>, Vec<u32>);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = Listed;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Listed, D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = Listed;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Listed, A::Error> {
        let (mut chains, mut clocks) = (Vec::new(), Vec::new());
        let mut width = self.width;
        loop {
            self.progress.set(Progress { event: Some(chains.len() + 1) });
            let before = clocks.len();
            let Some(chain) = list.next_element_seed(Event { clocks: &mut clocks })? else { break };
            let found = (clocks.len() - before) as u32;
            let expected = *width.get_or_insert(found);
            if found != expected {
                return Err(Error::custom(format_args!(
                    "expected a clock of {expected} numbers, one a thread, found {found}"
                )));
            }
            chains.push(chain);
        }
        self.progress.set(Progress::default());
        Ok((width, chains, clocks))
    }
}

/// An event: its thread; its clock is added to `clocks`.
struct Event<'a> {
    clocks: &'a mut Vec<u32>,
}

impl<'de> DeserializeSeed<'de> for Event<'_> {
    type Value = u32;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<u32, D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Event<'_> {
    type Value = u32;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an event: a list of a thread and a clock")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u32, A::Error> {
        let Some(chain) = list.next_element_seed(Number("a thread"))? else {
            return Err(Error::custom("expected a thread and a clock, found an empty list"));
        };
        if list.next_element_seed(Clock { clocks: self.clocks })?.is_none() {
            return Err(Error::custom(
                "expected a clock after the thread, found the end of the list",
            ));
        }
        match list.next_element::<IgnoredAny>()? {
            None => Ok(chain),
            Some(_) => Err(Error::custom("expected a thread and a clock, found more in the list")),
        }
    }
}

/// A clock, which is added to `clocks`.
struct Clock<'a> {
    clocks: &'a mut Vec<u32>,
}

impl<'de> DeserializeSeed<'de> for Clock<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Clock<'_> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a clock: a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(number) = list.next_element_seed(Number("a number of events"))? {
            if self.clocks.len() == ENTRIES_MAX {
                return Err(Error::custom(format_args!(
                    "the poset is too large: its clocks have more than {ENTRIES_MAX} numbers"
                )));
            }
            self.clocks.push(number);
        }
        Ok(())
    }
}

/// Whether a text that starts with `head` is to be taken for a poset.
pub(crate) fn is_poset(head: &[u8]) -> bool {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let Some(mut rest) = head.trim_ascii_start().strip_prefix(b"{") else { return false };
    // The keys of the object one after the other, until one decides.
    while let Some((key, value)) = key_and_value(rest) {
        match key {
            b"n" => return true,
            b"events" => return value.starts_with(b"["),
            b"thread" | b"op" | b"on" | b"semaphore" | b"barrier" => return false,
            _ => {}
        }
        let Some(after) = after_value(value) else { return false };
        rest = after;
    }
    false
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
