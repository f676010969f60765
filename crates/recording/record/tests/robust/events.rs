//! Bytes as events: few threads, addresses and numbers, so that they meet, and the ends of ranges.

use reweave_record::wire::{Event, Kind};

/// An event and the thread that logged it.
pub(super) type Logged = (u32, Event);

const BYTES_PER_EVENT: usize = 8;

/// The events that `bytes` stand for, eight bytes each.
pub(super) fn from_bytes(bytes: &[u8]) -> Vec<Logged> {
    let (chunks, _) = bytes.as_chunks::<BYTES_PER_EVENT>();
    chunks.iter().map(from_chunk).collect()
}

fn from_chunk(chunk: &[u8; BYTES_PER_EVENT]) -> Logged {
    let &[who, kind, address, code, form, known, numbers, values] = chunk;
    let kind = Kind::ALL[usize::from(kind) % Kind::ALL.len()];
    let thread = u32::from(who & 3);
    let address = number(address).wrapping_add(u64::from(who >> 5));
    if kind.is_brief() {
        return (thread, Event::new(kind, address, 0));
    }
    let is_known = |bit: u32| known >> bit & 1 == 1;
    let event = Event {
        kind,
        size: form & 7,
        order: form >> 3 & 7,
        flags: u16::from(known >> 4) | u16::from(form >> 6) << 14,
        address,
        // Sixteen bytes a function, as the small object has them.
        code: 0x1000 + 8 * u64::from(code),
        number: is_known(0).then(|| number(numbers)),
        stored: is_known(1).then(|| number(numbers.rotate_left(4))),
        extra: is_known(2).then(|| number(values)),
        value: is_known(3).then(|| number(values.rotate_left(4))),
    };
    (thread, event)
}

/// Small numbers, addresses, and what is near the ends of addresses and of words.
fn number(byte: u8) -> u64 {
    let low = u64::from(byte & 31);
    match byte >> 5 {
        0 | 1 => low,
        2 => 0x2000 + 4 * low,
        3 => 0x2000 + 64 * low,
        4 => (1 << 47) + 4 * low,
        5 => (1 << 48) - 1 - low,
        6 => 1 << low,
        _ => u64::MAX - low,
    }
}
