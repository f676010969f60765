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

use reweave_base::Id;
use reweave_trace::{Code, CodeId, Columns, Module, ModuleId, Origin, Origins};
use zstd::bulk::{Compressor, Decompressor};

use crate::rwt::{NAMES_BYTES_GOAL, NAMES_BYTES_MAX, push_varint, take_varint};

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

// Where the events of a block come from: files, code addresses, and an origin for each event.
//
// ```text
// modules      = (length: varint, path, length: varint, build id)*
// codes        = (module: varint, offset: varint)*
// code         = a column: the place of the code address, counted from 1; 0 for no origin
// occurrence   = a column: the occurrence; 0 for no origin
// ```
//
// Both columns hold zigzag differences from a guess. The guess is what the last event of the block
// had that does the same at the same site, for the code address; and one more than what the last
// event of the same thread and code address had, for the occurrence. "Last" is looked up in a table
// with as many places as [`PLACES`], in which different keys may share a place: a wrong guess costs
// a few bytes and nothing else. Most guesses are right, and zeros pack to nothing.

/// How many places a table of guesses has.
const PLACES: usize = 1 << 14;

/// Files and code addresses as bytes, as many as one block takes.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) modules: Vec<u8>,
    pub(super) codes: Vec<u8>,
}

/// How many files and code addresses are written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    modules: usize,
    codes: usize,
}

impl Written {
    /// The files and code addresses of `origins` that are not written yet, cut so that a block
    /// takes each piece; there is always one. None if a path is longer than the format can carry.
    pub(super) fn rest(&mut self, origins: &Origins) -> Option<Vec<Tables>> {
        let mut pieces = vec![Tables::default()];
        for module in origins.modules().iter().skip(self.modules) {
            let (path, build_id) = (module.path.as_bytes(), module.build_id.as_bytes());
            let length = path.len() + build_id.len() + 10;
            if length > NAMES_BYTES_MAX {
                return None;
            }
            let bytes = &mut piece_for(&mut pieces, length).modules;
            for text in [path, build_id] {
                push_varint(bytes, text.len() as u64);
                bytes.extend_from_slice(text);
            }
        }
        for code in origins.codes().iter().skip(self.codes) {
            let bytes = &mut piece_for(&mut pieces, 15).codes;
            push_varint(bytes, code.module.index() as u64);
            push_varint(bytes, code.offset);
        }
        *self = Self { modules: origins.modules().len(), codes: origins.codes().len() };
        Some(pieces)
    }
}

/// The last of `pieces`, or a new one if `length` more bytes would be too much for it.
fn piece_for(pieces: &mut Vec<Tables>, length: usize) -> &mut Tables {
    let size = |piece: &Tables| piece.modules.len() + piece.codes.len();
    let is_full =
        |piece: &Tables| size(piece) > 0 && size(piece).saturating_add(length) > NAMES_BYTES_GOAL;
    if pieces.last().is_none_or(is_full) {
        pieces.push(Tables::default());
    }
    pieces.last_mut().expect("one was there or has come")
}

/// Adds the files in `bytes`.
pub(super) fn read_modules(origins: &mut Origins, mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        let mut text = || -> Result<String, String> {
            let length = take_varint(&mut bytes)? as usize;
            let (text, rest) = bytes.split_at_checked(length).ok_or("a path is cut off")?;
            bytes = rest;
            let text = std::str::from_utf8(text).map_err(|_| "a path is not UTF-8")?;
            Ok(text.to_owned())
        };
        let module = Module { path: text()?, build_id: text()? };
        if origins.modules().len() >= ModuleId::COUNT_MAX {
            return Err("more files than can be numbered".into());
        }
        origins.add_module(module);
    }
    Ok(())
}

/// Adds the code addresses in `bytes`.
pub(super) fn read_codes(origins: &mut Origins, mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        let module = take_varint(&mut bytes)? as usize;
        let offset = take_varint(&mut bytes)?;
        if module >= origins.modules().len() || origins.codes().len() >= CodeId::COUNT_MAX {
            return Err("a code address in a file that is not there".into());
        }
        origins.add_code(Code { module: ModuleId::from_index(module), offset });
    }
    Ok(())
}

/// Guesses from what was seen before under the same key, or one that shares its place.
struct Guesses {
    last: Vec<u32>,
}

impl Guesses {
    fn new() -> Self {
        Self { last: vec![0; PLACES] }
    }

    /// What stands in the place of the key of these two numbers.
    fn at(&mut self, high: u32, low: u32) -> &mut u32 {
        let key = u64::from(high) << 32 | u64::from(low);
        // The golden ratio spreads keys that differ little over all places.
        let spread = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &mut self.last[(spread >> (64 - PLACES.trailing_zeros())) as usize]
    }
}

const fn zigzag(difference: u32) -> u32 {
    let difference = difference as i32;
    ((difference << 1) ^ (difference >> 31)) as u32
}

const fn unzigzag(number: u32) -> u32 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

/// Turns the origins of a block's events into differences from guesses, or back.
pub(super) struct Coder {
    codes: Guesses,
    occurrences: Guesses,
}

impl Coder {
    /// A coder for one block.
    pub(super) fn new() -> Self {
        Self { codes: Guesses::new(), occurrences: Guesses::new() }
    }

    /// The two columns of the event at `place` of `columns`, which comes from `origin`.
    pub(super) fn encode(
        &mut self,
        columns: &Columns,
        place: usize,
        origin: Option<Origin>,
    ) -> [u32; 2] {
        let number = origin.map_or(0, |origin| origin.code.number());
        let guess = self.codes.at(columns.sites[place], u32::from(columns.codes[place].byte()));
        let code = zigzag(number.wrapping_sub(*guess));
        *guess = number;
        let Some(origin) = origin else { return [code, 0] };
        let guess = self.occurrences.at(columns.threads[place], number);
        let occurrence = zigzag(origin.occurrence.wrapping_sub(*guess));
        *guess = origin.occurrence.wrapping_add(1);
        [code, occurrence]
    }

    /// Where the event at `place` of `columns` comes from, by its two columns: a code address by
    /// its number, counted from 1, and an occurrence.
    pub(super) fn decode(
        &mut self,
        columns: &Columns,
        place: usize,
        [code, occurrence]: [u32; 2],
    ) -> Option<(u32, u32)> {
        let guess = self.codes.at(columns.sites[place], u32::from(columns.codes[place].byte()));
        let number = guess.wrapping_add(unzigzag(code));
        *guess = number;
        if number == 0 {
            return None;
        }
        let guess = self.occurrences.at(columns.threads[place], number);
        let occurrence = guess.wrapping_add(unzigzag(occurrence));
        *guess = occurrence.wrapping_add(1);
        Some((number, occurrence))
    }
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

#[cfg(test)]
mod origins_tests {
    use super::*;
    use proptest::prelude::*;
    use reweave_trace::OpCode;

    proptest! {
        #[test]
        fn origins_survive_whatever_is_guessed(
            rows in prop::collection::vec(
                (0..3_u32, 0..4_u8, any::<u32>(), prop::option::of((1..u32::MAX, any::<u32>()))),
                0..200,
            ),
        ) {
            let mut columns = Columns::default();
            let (mut encoder, mut decoder) = (Coder::new(), Coder::new());
            for (place, &(thread, code, site, origin)) in rows.iter().enumerate() {
                columns.push(thread, OpCode::from_byte(code).unwrap(), 0, site);
                let known = origin.map(|(number, occurrence)| Origin {
                    code: CodeId::from_number(number).unwrap(),
                    occurrence,
                });
                let numbers = encoder.encode(&columns, place, known);
                prop_assert_eq!(decoder.decode(&columns, place, numbers), origin);
            }
        }
    }

    #[test]
    fn many_code_addresses_are_cut_into_pieces() {
        let mut origins = Origins::new();
        let module = origins.add_module(Module { path: "a".to_owned(), build_id: String::new() });
        for offset in 0..700_000 {
            origins.add_code(Code { module, offset: offset << 40 });
        }
        let mut written = Written::default();
        let pieces = written.rest(&origins).unwrap();
        assert!(pieces.len() > 1);
        let mut back = Origins::new();
        for piece in pieces {
            assert!(piece.modules.len() + piece.codes.len() <= NAMES_BYTES_GOAL);
            read_modules(&mut back, &piece.modules).unwrap();
            read_codes(&mut back, &piece.codes).unwrap();
        }
        assert!(back == origins);
        assert_eq!(written.rest(&origins).unwrap().len(), 1);
    }
}
