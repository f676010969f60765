//! A column as bytes: transform, byte planes, compression.
//!
//! Numbers of a column are first made small: taken as they are, as differences from the one
//! before (zigzag, so that small negative ones are small too), or as places in a dictionary of
//! the block's distinct numbers. Then all their lowest bytes come first, then all the next ones:
//! planes of equal bytes pack better and are taken apart faster than variable-length numbers.
//! The writer tries each transform and keeps the smallest result.
//!
//! ```text
//! form   = transform (low 2 bits: 0 plain, 1 differences, 2 dictionary)
//!        | bytes a number (next 4 bits, 0 to 8) | compressed (bit 6)
//! body   = planes                                     for plain and differences
//!        | entries_count: u32, planes                 for a dictionary: the planes of the
//!                                                     entries, four bytes each, as differences,
//!                                                     then the planes of the places
//! ```
//!
//! The `entries_count` stands before the compressed part.

use std::io;

use zstd::bulk::{Compressor, Decompressor};

const PLAIN: u8 = 0;
const DELTA: u8 = 1;
const DICTIONARY: u8 = 2;
const COMPRESSED: u8 = 1 << 6;
const WIDTH_SHIFT: u8 = 2;
const ENTRY_WIDTH: usize = 4;

/// How hard the compressor tries. Level 3 reads as fast as level 1 and packs better.
const LEVEL: i32 = 3;

/// Packs columns; keeps its buffers from one to the next.
pub(super) struct Packer {
    compressor: Compressor<'static>,
}

/// A packed column.
pub(super) struct Packed {
    pub(super) form: u8,
    pub(super) body: Vec<u8>,
}

impl Packer {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { compressor: Compressor::new(LEVEL)? })
    }

    /// Packs `numbers` by the transform that makes them smallest.
    pub(super) fn pack(&mut self, numbers: &[u64]) -> io::Result<Packed> {
        let mut best = self.pack_planes(PLAIN, numbers, &[])?;
        let differences: Vec<u64> = differences(numbers).collect();
        let candidates = [Some((DELTA, differences, Vec::new())), dictionary(numbers)];
        for (transform, places, entries) in candidates.into_iter().flatten() {
            let packed = self.pack_planes(transform, &places, &entries)?;
            if packed.body.len() < best.body.len() {
                best = packed;
            }
        }
        Ok(best)
    }

    /// Packs bytes that are no column of numbers.
    pub(super) fn pack_bytes(&mut self, bytes: &[u8]) -> io::Result<Packed> {
        let (body, compressed) = self.squeeze(&[], bytes)?;
        Ok(Packed { form: compressed, body })
    }

    fn pack_planes(
        &mut self,
        transform: u8,
        numbers: &[u64],
        entries: &[u64],
    ) -> io::Result<Packed> {
        let mut head = Vec::new();
        let mut planes = Vec::new();
        if transform == DICTIONARY {
            head.extend_from_slice(&(entries.len() as u32).to_le_bytes());
            let entries: Vec<u64> = differences(entries).collect();
            split(&entries, ENTRY_WIDTH, &mut planes);
        }
        let width = width(numbers);
        split(numbers, width, &mut planes);
        let (body, compressed) = self.squeeze(&head, &planes)?;
        Ok(Packed { form: transform | (width as u8) << WIDTH_SHIFT | compressed, body })
    }

    fn squeeze(&mut self, head: &[u8], bytes: &[u8]) -> io::Result<(Vec<u8>, u8)> {
        let squeezed = self.compressor.compress(bytes)?;
        let (tail, flag) =
            if squeezed.len() < bytes.len() { (&squeezed[..], COMPRESSED) } else { (bytes, 0) };
        Ok(([head, tail].concat(), flag))
    }
}

/// The bytes that the largest of `numbers` takes.
fn width(numbers: &[u64]) -> usize {
    let bits = numbers.iter().fold(0, |all, &number| all | number);
    (64 - bits.leading_zeros() as usize).div_ceil(8)
}

fn split(numbers: &[u64], width: usize, planes: &mut Vec<u8>) {
    for plane in 0..width {
        planes.extend(numbers.iter().map(|&number| (number >> (8 * plane)) as u8));
    }
}

fn differences(numbers: &[u64]) -> impl Iterator<Item = u64> {
    let before = std::iter::once(0).chain(numbers.iter().copied());
    numbers.iter().zip(before).map(|(&number, before)| {
        let difference = number.wrapping_sub(before) as i64;
        ((difference << 1) ^ (difference >> 63)) as u64
    })
}

/// The distinct numbers in ascending order and the place of each number among them; none where
/// there are so many that it cannot pay.
fn dictionary(numbers: &[u64]) -> Option<(u8, Vec<u64>, Vec<u64>)> {
    let mut entries = numbers.to_vec();
    entries.sort_unstable();
    entries.dedup();
    if entries.len() > numbers.len() / 2 || entries.last()? >> (8 * ENTRY_WIDTH - 1) != 0 {
        return None;
    }
    let place = |number: &u64| entries.binary_search(number).expect("every number is an entry");
    let places = numbers.iter().map(|number| place(number) as u64).collect();
    Some((DICTIONARY, places, entries))
}

/// Unpacks columns; keeps its buffers from one to the next.
pub(super) struct Unpacker {
    decompressor: Decompressor<'static>,
    planes: Vec<u8>,
    entries: Vec<u32>,
}

impl Unpacker {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { decompressor: Decompressor::new()?, planes: Vec::new(), entries: Vec::new() })
    }

    /// Unpacks a column of `count` 32-bit numbers and adds them to `out`.
    pub(super) fn unpack(
        &mut self,
        form: u8,
        body: &[u8],
        count: usize,
        out: &mut Vec<u32>,
    ) -> Result<(), String> {
        let width = (form >> WIDTH_SHIFT & 15) as usize;
        if width > ENTRY_WIDTH {
            // Differences of 32-bit numbers may take five bytes.
            let mut wide = Vec::new();
            self.unpack_wide(form, body, count, &mut wide)?;
            for number in wide {
                out.push(u32::try_from(number).map_err(|_| "a number wider than its column")?);
            }
            return Ok(());
        }
        let entries_count = self.open(form, body, count, width)?;
        let planes = &self.planes[ENTRY_WIDTH * entries_count..];
        let start = out.len();
        join(planes, count, width, out);
        match form & 3 {
            DELTA => undo_differences(&mut out[start..]),
            DICTIONARY => look_up(&self.entries, &mut out[start..])?,
            _ => {}
        }
        Ok(())
    }

    /// Unpacks a column of `count` 64-bit numbers and adds them to `out`.
    pub(super) fn unpack_wide(
        &mut self,
        form: u8,
        body: &[u8],
        count: usize,
        out: &mut Vec<u64>,
    ) -> Result<(), String> {
        let width = (form >> WIDTH_SHIFT & 15) as usize;
        let entries_count = self.open(form, body, count, width)?;
        let planes = &self.planes[ENTRY_WIDTH * entries_count..];
        let mut before = 0_u64;
        for at in 0..count {
            let mut number = 0;
            for plane in 0..width {
                number |= u64::from(planes[plane * count + at]) << (8 * plane);
            }
            match form & 3 {
                DELTA => {
                    before = before.wrapping_add((number >> 1) ^ (number & 1).wrapping_neg());
                    number = before;
                }
                DICTIONARY => {
                    let entry = self.entries.get(number as usize);
                    number = u64::from(*entry.ok_or("a place past the end of its dictionary")?);
                }
                _ => {}
            }
            out.push(number);
        }
        Ok(())
    }

    /// Unpacks bytes that are no column of numbers, at most `max` of them.
    pub(super) fn unpack_bytes(
        &mut self,
        form: u8,
        body: &[u8],
        max: usize,
    ) -> Result<&[u8], String> {
        if form & !COMPRESSED != 0 {
            return Err(format!("a form that does not exist ({form})"));
        }
        self.planes.clear();
        if form == 0 {
            if body.len() > max {
                return Err(format!("more than {max} bytes in a section"));
            }
            self.planes.extend_from_slice(body);
        } else {
            // Grows as far as the data goes, so that a short lie costs little memory.
            let mut capacity = body.len().saturating_mul(8).clamp(1 << 12, max);
            loop {
                self.planes.reserve(capacity);
                match self.decompressor.decompress_to_buffer(body, &mut self.planes) {
                    Ok(_) => break,
                    Err(_) if capacity < max => {
                        self.planes.clear();
                        capacity = capacity.saturating_mul(4).min(max);
                    }
                    Err(error) => return Err(format!("a section does not unpack: {error}")),
                }
            }
        }
        Ok(&self.planes)
    }

    /// Decompresses into `self.planes` and reads the dictionary; gives its size.
    fn open(
        &mut self,
        form: u8,
        mut body: &[u8],
        count: usize,
        width: usize,
    ) -> Result<usize, String> {
        let transform = form & 3;
        if transform > DICTIONARY || width > 8 || form & !(COMPRESSED | 63) != 0 {
            return Err(format!("a form that does not exist ({form})"));
        }
        let mut entries_count = 0;
        if transform == DICTIONARY {
            let (head, rest) = body.split_at_checked(4).ok_or("a dictionary without its size")?;
            entries_count = u32::from_le_bytes(head.try_into().expect("four bytes")) as usize;
            if entries_count > count {
                return Err(format!("a dictionary of {entries_count} for {count} events"));
            }
            body = rest;
        }
        let expected = ENTRY_WIDTH * entries_count + count * width;
        self.planes.clear();
        if form & COMPRESSED == 0 {
            self.planes.extend_from_slice(body);
        } else {
            self.planes.reserve(expected);
            let unpacked = self.decompressor.decompress_to_buffer(body, &mut self.planes);
            unpacked.map_err(|error| format!("a column does not unpack: {error}"))?;
        }
        if self.planes.len() != expected {
            return Err(format!("a column of {} bytes, not {expected}", self.planes.len()));
        }
        self.entries.clear();
        join(&self.planes, entries_count, ENTRY_WIDTH, &mut self.entries);
        undo_differences(&mut self.entries);
        Ok(entries_count)
    }
}

/// Puts byte planes together again.
fn join(planes: &[u8], count: usize, width: usize, out: &mut Vec<u32>) {
    let plane = |number: usize| &planes[number * count..(number + 1) * count];
    match width {
        0 => out.resize(out.len() + count, 0),
        1 => out.extend(plane(0).iter().map(|&low| u32::from(low))),
        2 => {
            let pairs = plane(0).iter().zip(plane(1));
            out.extend(pairs.map(|(&low, &high)| u32::from(low) | u32::from(high) << 8));
        }
        _ => {
            let start = out.len();
            out.resize(start + count, 0);
            for number in 0..width {
                for (whole, &byte) in out[start..].iter_mut().zip(plane(number)) {
                    *whole |= u32::from(byte) << (8 * number);
                }
            }
        }
    }
}

fn undo_differences(numbers: &mut [u32]) {
    let mut before = 0_u32;
    for number in numbers {
        before = before.wrapping_add((*number >> 1) ^ (*number & 1).wrapping_neg());
        *number = before;
    }
}

fn look_up(entries: &[u32], places: &mut [u32]) -> Result<(), String> {
    let most = places.iter().fold(0, |most, &place| most.max(place));
    if !places.is_empty() && most as usize >= entries.len() {
        return Err("a place past the end of its dictionary".into());
    }
    for place in places {
        *place = entries[*place as usize];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(numbers: &[u64]) {
        let mut packer = Packer::new().unwrap();
        let mut unpacker = Unpacker::new().unwrap();
        let all = differences(numbers).collect::<Vec<_>>();
        let mut forms = vec![
            packer.pack(numbers).unwrap(),
            packer.pack_planes(PLAIN, numbers, &[]).unwrap(),
            packer.pack_planes(DELTA, &all, &[]).unwrap(),
        ];
        if let Some((transform, places, entries)) = dictionary(numbers) {
            forms.push(packer.pack_planes(transform, &places, &entries).unwrap());
        }
        for Packed { form, body } in forms {
            let mut wide = Vec::new();
            unpacker.unpack_wide(form, &body, numbers.len(), &mut wide).unwrap();
            assert_eq!(wide, numbers, "form {form}");
            if numbers.iter().all(|&number| u32::try_from(number).is_ok()) {
                let mut narrow = Vec::new();
                unpacker.unpack(form, &body, numbers.len(), &mut narrow).unwrap();
                assert!(narrow.iter().map(|&n| u64::from(n)).eq(numbers.iter().copied()));
            }
        }
    }

    #[test]
    fn odd_columns_survive() {
        check(&[]);
        check(&[0]);
        check(&[0; 1000]);
        check(&[u64::MAX, 0, u64::MAX]);
        check(&[u64::from(u32::MAX), 0, u64::from(u32::MAX), 0, 0, 0]);
        check(&(0..3000).map(|n| 1_000_000 + n % 7).collect::<Vec<u64>>());
    }

    proptest! {
        #[test]
        fn every_column_survives(numbers in prop::collection::vec(any::<u64>(), 0..200), shift in 0..64_u32) {
            check(&numbers.iter().map(|number| number >> shift).collect::<Vec<_>>());
        }
    }
}
