//! Our binary format: blocks of up to 65 536 events, each checksummed, each column on its own.
//!
//! A file is a header, then frames. Each frame has a checksum, so that a file that was cut off
//! or damaged still yields every whole block before the damage; the last frame says that the
//! trace ends here. A block brings the names that are new in it, then its columns: each is
//! turned into small numbers (as they are, as differences, or as places in a dictionary, whichever
//! packs best), split into byte planes, and compressed by zstd.
//!
//! ```text
//! file     = magic, version: u16, reserved: u16, frame*
//! frame    = kind: u8, length: u32, payload: length bytes, checksum: u64
//! block    = events_count: u32, section*                    (the payload of kind 1)
//! end      = events_count: u64, blocks_count: u64           (the payload of kind 2)
//! section  = tag: u8, form: u8, length: u32, body: length bytes
//! ```
//!
//! All numbers are little-endian. The checksum is XXH3 of the payload, its seed the kind and the
//! length. The book describes every byte.
//!
//! Nothing is allocated on the word of the file: a frame is read as far as it goes, and what a
//! section may unpack to is bounded by the number of events in its block, which is bounded.

mod column;
mod frame;
mod names;
mod origins;
mod reader;
mod writer;

pub use writer::{BlockOrigins, Writer, write};

use reweave_trace::NameKind;

pub use reader::decode;
pub(crate) use reader::read;

/// The first eight bytes of every file: not text, and damaged by transfers that change line ends.
pub const MAGIC: [u8; 8] = *b"\x89RWT\r\n\x1a\n";

/// The version that is written, and the only one that is read.
pub const VERSION: u16 = 1;

/// The most events that a block holds.
pub const BLOCK_EVENTS_MAX: usize = 1 << 16;

/// The most bytes that the new names of one kind take in a block.
const NAMES_BYTES_MAX: usize = 1 << 24;

/// New names beyond this are brought by blocks of their own.
const NAMES_BYTES_GOAL: usize = 1 << 22;

/// What a section of a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    /// New names of this kind: 1 to 10, as [`NameKind::ALL`] lists them.
    Names(NameKind),
    Starts,
    Parties,
    Threads,
    Codes,
    Operands,
    Sites,
    Known,
    Values,
    Modules,
    Addresses,
    Origins,
    Occurrences,
    /// What a later version may add and a reader can do without: above these.
    Optional,
}

impl Tag {
    const REST: [(Self, u8); 12] = [
        (Self::Starts, 16),
        (Self::Parties, 17),
        (Self::Threads, 32),
        (Self::Codes, 33),
        (Self::Operands, 34),
        (Self::Sites, 35),
        (Self::Known, 36),
        (Self::Values, 37),
        // Readers of before these were written skip them.
        (Self::Modules, 128),
        (Self::Addresses, 129),
        (Self::Origins, 130),
        (Self::Occurrences, 131),
    ];

    fn byte(self) -> u8 {
        let listed = Self::REST.into_iter().find(|&(tag, _)| tag == self).map(|(_, byte)| byte);
        match self {
            Self::Names(kind) => {
                let place = NameKind::ALL.into_iter().position(|other| other == kind);
                place.map_or(0, |place| place as u8 + 1)
            }
            _ => listed.unwrap_or(u8::MAX),
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        let names = NameKind::ALL.get((byte as usize).wrapping_sub(1));
        let rest = || Self::REST.into_iter().find(|&(_, other)| other == byte);
        let known = names.map(|&kind| Self::Names(kind)).or_else(|| rest().map(|(tag, _)| tag));
        known.or((byte >= 128).then_some(Self::Optional))
    }
}

/// A file whose frames hold the payloads that `bytes` cut themselves into, with checksums that
/// fit: for tests that want to get past them.
///
/// `bytes` are a sequence of a length (two bytes, little-endian) and that many bytes of payload;
/// the first byte of each payload says the frame's kind.
#[doc(hidden)]
#[must_use]
pub fn framed(mut bytes: &[u8]) -> Vec<u8> {
    let mut file = [&MAGIC[..], &VERSION.to_le_bytes(), &[0; 2]].concat();
    while let Some((length, rest)) = bytes.split_at_checked(2) {
        let length = u16::from_le_bytes([length[0], length[1]]) as usize;
        let (payload, rest) = rest.split_at(length.min(rest.len()));
        bytes = rest;
        let kind = payload.first().map_or(frame::END, |&first| 1 + (first & 1));
        let payload = payload.get(1..).unwrap_or_default();
        frame::write(&mut file, kind, payload).expect("a vector takes what is written to it");
    }
    file
}
