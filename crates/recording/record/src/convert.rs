//! From a recording to a trace.
//!
//! The recording is read twice (three times if its threads ran freely). The first pass finds which
//! memory is shared and how it must be cut ([`crate::cells`]); the last emits an event for each
//! access to such a cell and for all synchronisation, in observed order, with names, call stacks,
//! values and origins. In between, the accesses of a `free` recording are searched for those whose
//! order is not known (`order`).
//!
//! What is promised: the trace is well formed whatever the recording is. An event that contradicts
//! those before it, such as the release of a lock that unseen code took, is left out and counted in
//! [`Summary::impossible`]. Every access to shared memory is kept; nothing is folded. Variables,
//! locks and the rest are told apart by address *and* lifetime.
//!
//! | recorded | in the trace |
//! | --- | --- |
//! | access | `r`, `w`, `ar`, `aw`, `arw` for each cell; a failed compare-and-swap is `ar` |
//! | lock, unlock | `acq` or `racq`; `rel` or `rrel`, as the thread holds the lock |
//! | wait, wake | `rel(m) wait(c)`, `wake(c) acq(m)`; `timeout(c)` where nobody can have woken it |
//! | fork that failed | nothing |
//! | allocation, release | `alloc`, `free` if a cell of the block is shared |
//! | park, unpark | `take`, `post` of the semaphore `park(T)` |
//! | send, receive | `arw.rel` of what was sent; `ar.acq` of it, `arw` of what was taken |
//! | done once | `arw.acqrel` of the variable `once(name)` |
//! | futex calls | nothing |
//!
//! Memory grows with the memory that the program touched and the names in the trace, not with the
//! number of events, if the [`Sink`] is a file.

mod memory;
mod naming;
mod order;
mod pass;
mod preview;
mod rules;
mod sink;
mod stacks;
mod synchronisation;

use std::collections::BTreeMap;
use std::io;

use reweave_base::FxHashSet;

use crate::spool::{Ending, Stream};

pub(crate) use memory::part;
pub use naming::Symbols;
pub(crate) use naming::at_offset;
pub use sink::{Converted, FileSink, Sink};

/// What became of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events of the trace.
    pub events: u64,
    /// Events of the recording.
    pub recorded: u64,
    /// Accesses to memory that threads do not contend for: left out.
    pub local_accesses: u64,
    /// What was left out because it cannot have happened, and how often.
    pub impossible: BTreeMap<&'static str, u64>,
    /// Waits that ended though nobody can have woken them.
    pub spurious_wakes: u64,
    /// Plain reads whose writer is not known, in recordings of threads that ran freely.
    pub unknown_reads: u64,
    /// Threads of the trace.
    pub threads: usize,
    /// Threads that ran but were never forked, other than the first: the program's calls did not
    /// all go through the runtime, so the order of its events is not known.
    pub unforked: Vec<u32>,
    /// How often a thread ran unseen for a while.
    pub escaped: u64,
    /// Whether no access to memory was recorded at all.
    pub sync_only: bool,
    /// Whether threads ran freely.
    pub is_free: bool,
    /// Events beyond the most that a trace can hold: left out.
    pub beyond_limit: u64,
    /// How the recording ended, if its stream says so.
    pub ending: Option<Ending>,
}

/// Converts the recording that `open` opens from its beginning, as often as it is called. With
/// `keeps_all`, accesses to memory that nobody contends for are kept too.
///
/// # Errors
/// If the recording cannot be read or the trace cannot be written.
pub fn convert<S: Stream>(
    mut open: impl FnMut() -> io::Result<S>,
    keeps_all: bool,
    symbols: &mut dyn Symbols,
    sink: &mut dyn Sink,
) -> io::Result<Summary> {
    let mut preview = preview::Preview::new(&mut open()?, keeps_all)?;
    let loose = match preview.is_free {
        true => order::loose_cells(&mut open()?, &mut preview.cells)?,
        false => FxHashSet::default(),
    };
    pass::run(open()?, preview, loose, symbols, sink)
}
