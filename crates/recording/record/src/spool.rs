//! The recorded stream on disk: what the threads of a program logged, in observed order.
//!
//! A recording is long, regular and written while the program runs, so it must be cheap to write
//! and small. Both come from one guess. Per thread and *slot* (a code address with everything
//! about an event but its numbers) the writer and the reader remember which slot came next the
//! last time, the last address and how it moves, and the same for each value; what a read sees is
//! also guessed from the last value known at its address. An event that is all as guessed
//! lengthens a run, which is one number however long it is; any other is a byte that says what was
//! not as guessed, and those numbers.
//!
//! Frames of about 256 KiB are compressed by zstd and carry a checksum. A file that is cut off or
//! damaged yields every event of the whole frames before that, and [`Stream::ending`] says so.
//! Reading needs bounded memory whatever the bytes are; nothing in them can cause a panic.
//!
//! ```text
//! file     = magic, frame*
//! frame    = kind: u8, packed_length: u32, events_count: u32, control_length: u32,
//!            payload_length: u32, checksum: u64, packed: packed_length bytes
//! ```
//!
//! All numbers are little-endian. `packed` unpacks to the control bytes (what was not as guessed,
//! and the lengths of runs), then the payload (the numbers themselves). What is learnt in a frame
//! is used in the next.

mod frame;
mod predict;
mod reader;
mod writer;

use std::io;

use reweave_runtime::wire::Event;

pub use reader::{Ending, Reader};
pub use writer::Writer;

/// Events of a recording, in observed order, each with the number of its thread.
///
/// What rewrites a recording on its way to [`crate::convert`] implements this too. So that the
/// occurrences of code addresses are still counted as the program logged them, it replaces an
/// event that is to mean nothing by one of the kind `Nothing` with the same code address, and
/// gives events of its own making the code address 0.
pub trait Stream {
    /// The next event, or nothing after the last.
    ///
    /// # Errors
    /// If the source cannot be read. Where it is merely cut off, the stream ends.
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>>;

    /// How the recording ended, once all of it was read, where there is something to say.
    fn ending(&self) -> Option<Ending> {
        None
    }
}

impl<S: Stream + ?Sized> Stream for Box<S> {
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        (**self).next_event()
    }

    fn ending(&self) -> Option<Ending> {
        (**self).ending()
    }
}

/// A stream of events that are in memory.
impl Stream for std::vec::IntoIter<(u32, Event)> {
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        Ok(self.next())
    }
}

/// A recording of one frame that holds `control` and `payload` with a checksum that fits: for
/// tests that want to get past it.
#[doc(hidden)]
#[must_use]
pub fn framed(control: &[u8], payload: &[u8], events_count: u32) -> Vec<u8> {
    let packed = zstd::bulk::compress(&[control, payload].concat(), 1).unwrap_or_default();
    let head = frame::Head {
        kind: frame::EVENTS,
        packed_length: packed.len() as u32,
        events_count,
        control_length: control.len() as u32,
        payload_length: payload.len() as u32,
    };
    let mut file = frame::MAGIC.to_vec();
    frame::write(&mut file, head, &packed).expect("a vector takes what is written to it");
    file
}
