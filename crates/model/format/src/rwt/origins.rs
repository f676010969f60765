//! Where the events of a block come from: files, code addresses, and an origin for each event.
//!
//! ```text
//! modules      = (length: varint, path, length: varint, build id)*
//! codes        = (module: varint, offset: varint)*
//! code         = a column: the place of the code address, counted from 1; 0 for no origin
//! occurrence   = a column: the occurrence; 0 for no origin
//! ```
//!
//! Both columns hold zigzag differences from a guess. The guess is what the last event of the block
//! had that does the same at the same site, for the code address; and one more than what the last
//! event of the same thread and code address had, for the occurrence. "Last" is looked up in a table
//! with as many places as [`PLACES`], in which different keys may share a place: a wrong guess costs
//! a few bytes and nothing else. Most guesses are right, and zeros pack to nothing.

use reweave_base::Id;
use reweave_trace::{Code, CodeId, Columns, Module, ModuleId, Origin, Origins};

use super::names::{push_varint, take_varint};
use super::{NAMES_BYTES_GOAL, NAMES_BYTES_MAX};

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
