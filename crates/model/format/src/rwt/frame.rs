//! Frames: a kind, a length, a payload and a checksum over all of them.

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The frame holds a block of events.
pub(super) const BLOCK: u8 = 1;
/// The frame says that the trace ends here.
pub(super) const END: u8 = 2;

/// The longest payload that is accepted.
pub(super) const PAYLOAD_MAX: usize = 1 << 28;

fn checksum(head: [u8; 5], payload: &[u8]) -> u64 {
    let mut seed = [0; 8];
    seed[..5].copy_from_slice(&head);
    xxh3_64_with_seed(payload, u64::from_le_bytes(seed))
}

/// Writes a frame.
pub(super) fn write(out: &mut dyn Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    if payload.len() > PAYLOAD_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a block is too large"));
    }
    let mut head = [kind, 0, 0, 0, 0];
    head[1..].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    out.write_all(&head)?;
    out.write_all(payload)?;
    out.write_all(&checksum(head, payload).to_le_bytes())
}

/// What came of reading a frame.
pub(super) enum Frame {
    /// A whole frame of this kind; its payload is in the buffer.
    Whole(u8),
    /// The file ends, or was damaged, at this many bytes into the frame.
    Broken(u64, String),
}

/// Reads a frame's payload into `payload`.
pub(super) fn read(source: &mut dyn Read, payload: &mut Vec<u8>) -> io::Result<Frame> {
    let mut head = Vec::with_capacity(5);
    let head_length = source.take(5).read_to_end(&mut head)?;
    let Ok(head) = <[u8; 5]>::try_from(&head[..]) else {
        let reason = match head_length {
            0 => "the file ends without the mark of its end",
            _ => "the file is cut off within the head of a frame",
        };
        return Ok(Frame::Broken(head_length as u64, reason.into()));
    };
    let [kind, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    if !(kind == BLOCK || kind == END) || length > PAYLOAD_MAX {
        let reason = format!("no frame starts with kind {kind} and length {length}");
        return Ok(Frame::Broken(0, reason));
    }
    payload.clear();
    // Grows with what is there, not with what the frame says.
    let read = source.take(length as u64).read_to_end(payload)?;
    let mut sum = Vec::with_capacity(8);
    let sum_length = if read == length { source.take(8).read_to_end(&mut sum)? } else { 0 };
    let Ok(sum) = <[u8; 8]>::try_from(&sum[..]) else {
        let reason = "the file is cut off within a frame".into();
        return Ok(Frame::Broken((5 + read + sum_length) as u64, reason));
    };
    if u64::from_le_bytes(sum) != checksum(head, payload) {
        let reason = "the checksum of a frame does not match: it was damaged".into();
        return Ok(Frame::Broken(0, reason));
    }
    Ok(Frame::Whole(kind))
}
