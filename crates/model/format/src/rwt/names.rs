//! The names that are new in a block, and the numbers declared for them.
//!
//! ```text
//! names        = count: varint, (length: varint)*, text
//! declarations = (place: varint, number: varint)*
//! ```

use std::ops::Range;

use reweave_base::Id;
use reweave_trace::{NameKind, Names, SiteId};

use super::{push_varint, take_varint};

/// The names of `kind` at the places `new`, as bytes.
pub(super) fn write_names(names: &Names, kind: NameKind, new: Range<usize>) -> Vec<u8> {
    let texts = || new.clone().map(|place| names.name(kind, place as u32));
    let mut bytes = Vec::new();
    push_varint(&mut bytes, new.len() as u64);
    for text in texts() {
        push_varint(&mut bytes, text.len() as u64);
    }
    for text in texts() {
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// Adds the names in `bytes`, all of `kind`, to `names`.
pub(super) fn read_names(names: &mut Names, kind: NameKind, bytes: &[u8]) -> Result<(), String> {
    let mut rest = bytes;
    let count = take_varint(&mut rest)? as usize;
    // A name takes at least the byte of its length, so this also bounds the memory.
    if count > rest.len() || names.count(kind) + count > SiteId::COUNT_MAX {
        return Err(format!("{count} names in {} bytes", rest.len()));
    }
    let mut lengths = Vec::with_capacity(count);
    for _ in 0..count {
        lengths.push(take_varint(&mut rest)? as usize);
    }
    for length in lengths {
        let (text, after) = rest.split_at_checked(length).ok_or("a name is cut off")?;
        rest = after;
        let expected = names.count(kind);
        let place = names.intern(kind, text).map_err(|_| "a name is not UTF-8")?;
        if place as usize != expected {
            return Err(format!("the name `{}` comes twice", names.name(kind, place)));
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
        if place >= places_count || pairs.len() >= places_count {
            return Err("more numbers are declared than there are names".into());
        }
        let number = u32::try_from(number).map_err(|_| "a declared number is too large")?;
        pairs.push((I::from_index(place), number));
    }
    Ok(pairs)
}
