//! The names that are new in a block, and the numbers declared for them.
//!
//! ```text
//! names        = count: varint, (length: varint)*, text
//! declarations = (place: varint, number: varint)*
//! ```

use reweave_base::{Id, Interner};

/// The names of `interner` from index `start` to before `end`, as bytes.
pub(super) fn write<I: Id>(interner: &Interner<I>, start: usize, end: usize) -> Vec<u8> {
    let names = || (start..end).map(|index| interner.name(I::from_index(index)));
    let mut bytes = Vec::new();
    push_varint(&mut bytes, (end - start) as u64);
    for name in names() {
        push_varint(&mut bytes, name.len() as u64);
    }
    for name in names() {
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes
}

/// Adds the names in `bytes` to `interner`.
pub(super) fn read<I: Id>(interner: &mut Interner<I>, bytes: &[u8]) -> Result<(), String> {
    let mut rest = bytes;
    let count = take_varint(&mut rest)? as usize;
    // A name takes at least the byte of its length, so this also bounds the memory.
    if count > rest.len() || interner.len() + count > I::COUNT_MAX {
        return Err(format!("{count} names in {} bytes", rest.len()));
    }
    let mut lengths = Vec::with_capacity(count);
    for _ in 0..count {
        lengths.push(take_varint(&mut rest)? as usize);
    }
    for length in lengths {
        let (name, after) = rest.split_at_checked(length).ok_or("a name is cut off")?;
        rest = after;
        let expected = interner.len();
        let id = interner.intern_bytes(name).map_err(|_| "a name is not UTF-8")?;
        if id.index() != expected {
            return Err(format!("the name `{}` comes twice", interner.name(id)));
        }
    }
    if rest.is_empty() { Ok(()) } else { Err("bytes after the last name".into()) }
}

/// Pairs of a place and a number, as bytes.
pub(super) fn write_declarations(pairs: impl Iterator<Item = (usize, u32)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (place, number) in pairs {
        push_varint(&mut bytes, place as u64);
        push_varint(&mut bytes, u64::from(number));
    }
    bytes
}

/// The pairs of a place below `places_count` and a number in `bytes`.
pub(super) fn read_declarations<I: Id>(
    bytes: &[u8],
    places_count: usize,
) -> Result<Vec<(I, u32)>, String> {
    let mut rest = bytes;
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let place = take_varint(&mut rest)? as usize;
        let number = take_varint(&mut rest)?;
        if place >= places_count {
            return Err("a number is declared for what has no name".into());
        }
        let number = u32::try_from(number).map_err(|_| "a declared number is too large")?;
        pairs.push((I::from_index(place), number));
    }
    Ok(pairs)
}

fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("a number is cut off")?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a number is longer than 64 bits".into())
}
