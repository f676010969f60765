//! Frames: what their heads say, and their checksums.

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The first bytes of every file.
pub(super) const MAGIC: [u8; 8] = *b"\x89RWSP\r\n\x01";

/// The frame holds events.
pub(super) const EVENTS: u8 = 1;
/// The frame says that the stream ends here; its body is the number of events, eight bytes.
pub(super) const END: u8 = 2;

/// A frame ends when so many bytes are in it.
pub(super) const BYTES_GOAL: usize = 1 << 18;
/// A frame ends when so many events are in it.
pub(super) const EVENTS_MAX: u32 = 1 << 20;
/// The most bytes that a frame may hold, packed or not.
pub(super) const BYTES_MAX: usize = 1 << 20;

const HEAD_LENGTH: usize = 17;

/// What stands before a frame's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: u8,
    pub(super) packed_length: u32,
    pub(super) events_count: u32,
    pub(super) control_length: u32,
    pub(super) payload_length: u32,
}

impl Head {
    fn bytes(self) -> [u8; HEAD_LENGTH] {
        let mut bytes = [0; HEAD_LENGTH];
        bytes[0] = self.kind;
        let numbers =
            [self.packed_length, self.events_count, self.control_length, self.payload_length];
        for (place, number) in numbers.into_iter().enumerate() {
            bytes[1 + 4 * place..5 + 4 * place].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: [u8; HEAD_LENGTH]) -> Self {
        let number = |place: usize| {
            let at = 1 + 4 * place;
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Self {
            kind: bytes[0],
            packed_length: number(0),
            events_count: number(1),
            control_length: number(2),
            payload_length: number(3),
        }
    }

    fn is_sane(self) -> bool {
        let unpacked = u64::from(self.control_length) + u64::from(self.payload_length);
        (self.kind == EVENTS || self.kind == END)
            && self.packed_length as usize <= BYTES_MAX
            && unpacked <= BYTES_MAX as u64
            && self.events_count <= EVENTS_MAX
    }
}

fn checksum(head: &[u8; HEAD_LENGTH], body: &[u8]) -> u64 {
    xxh3_64_with_seed(body, xxh3_64_with_seed(head, 0))
}

/// Writes a frame.
pub(super) fn write(out: &mut dyn Write, head: Head, body: &[u8]) -> io::Result<()> {
    let head = head.bytes();
    out.write_all(&head)?;
    out.write_all(&checksum(&head, body).to_le_bytes())?;
    out.write_all(body)
}

/// Reads a frame, its body into `body`; or says why there is none.
pub(super) fn read(
    source: &mut dyn Read,
    body: &mut Vec<u8>,
) -> io::Result<Result<Head, &'static str>> {
    let mut start = Vec::with_capacity(HEAD_LENGTH + 8);
    let read = take(source, HEAD_LENGTH + 8, &mut start)?;
    if read == 0 {
        return Ok(Err("the recording ends without the mark of its end"));
    }
    let Some((head, sum)) = start.split_first_chunk::<HEAD_LENGTH>() else {
        return Ok(Err("the recording is cut off within the head of a frame"));
    };
    let Ok(sum) = <[u8; 8]>::try_from(sum) else {
        return Ok(Err("the recording is cut off within the head of a frame"));
    };
    let parsed = Head::from_bytes(*head);
    if !parsed.is_sane() {
        return Ok(Err("no frame of a recording starts so: it was damaged"));
    }
    body.clear();
    let length = parsed.packed_length as usize;
    if take(source, length, body)? < length {
        return Ok(Err("the recording is cut off within a frame"));
    }
    if checksum(head, body) != u64::from_le_bytes(sum) {
        return Ok(Err("the checksum of a frame does not match: it was damaged"));
    }
    Ok(Ok(parsed))
}

/// Reads up to `length` bytes and says how many there were.
pub(super) fn take(source: &mut dyn Read, length: usize, into: &mut Vec<u8>) -> io::Result<usize> {
    source.take(length as u64).read_to_end(into)
}
