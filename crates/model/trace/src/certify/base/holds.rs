//! Which locks does a thread hold after its first events?
//!
//! What a thread holds is written down once in a while, and the few lock events since are gone
//! through again. Once in a while is when as many lock events have passed as locks are held, and
//! at least [`SPACING`]: so the notes take no more room than the events, and a question costs
//! about [`SPACING`] steps, or as many as there are locks held.

use std::collections::BTreeMap;
use std::ops::Range;

use reweave_base::CsrTable;

use crate::certify::tables::{Place, Tables, pick};
use crate::op::{LockId, LockOp, Op, OpKind, ThreadId};
use crate::trace::Trace;

/// How many lock events pass between two notes at least; few in tests, whose traces are short.
const SPACING: usize = if cfg!(test) { 2 } else { 32 };

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::certify) struct Hold {
    pub(in crate::certify) lock: LockId,
    pub(in crate::certify) is_shared: bool,
    /// The acquire that began it.
    pub(in crate::certify) since: Place,
    /// How often it was acquired and not given back.
    pub(in crate::certify) depth: u32,
}

/// What a thread holds, by lock and mode.
type Open = BTreeMap<(LockId, bool), Hold>;

#[derive(Debug)]
pub(super) struct Holds {
    /// The acquires and releases of each thread, with their positions.
    events: CsrTable<ThreadId, (u32, Op)>,
    /// By thread, and then by how many lock events had passed.
    notes: Vec<Note>,
    noted: Vec<Hold>,
}

#[derive(Debug)]
struct Note {
    thread: ThreadId,
    /// How many lock events of the thread had passed.
    passed: usize,
    /// What it held then, as a part of [`Holds::noted`].
    held: Range<usize>,
}

impl Holds {
    pub(super) fn new(trace: &Trace, tables: &Tables) -> Self {
        let threads_count = trace.names().threads.len();
        let events = CsrTable::group(threads_count, (0, Op::Branch), || {
            let is_lock_event = |kind| {
                use OpKind::{Acquire, AcquireShared, Release, ReleaseShared};
                matches!(kind, Acquire | Release | AcquireShared | ReleaseShared)
            };
            let picked = pick(trace, tables, is_lock_event);
            picked.map(|(_, place, op)| (place.thread, (place.position, op)))
        });
        let (mut notes, mut noted) = (Vec::new(), Vec::new());
        for (thread, row) in events.rows() {
            let mut open = Open::new();
            let mut noted_at = 0;
            for (at, &(position, op)) in row.iter().enumerate() {
                pass(&mut open, Place { thread, position }, op);
                let passed = at + 1;
                if passed - noted_at >= open.len().max(SPACING) {
                    let start = noted.len();
                    noted.extend(open.values());
                    notes.push(Note { thread, passed, held: start..noted.len() });
                    noted_at = passed;
                }
            }
        }
        Self { events, notes, noted }
    }

    /// What `thread` holds after its first `count` events, by lock.
    pub(super) fn after(&self, thread: ThreadId, count: u32) -> Vec<Hold> {
        let row = self.events.row(thread);
        let passed = row.partition_point(|&(position, _)| position < count);
        let next =
            self.notes.partition_point(|note| (note.thread, note.passed) <= (thread, passed));
        let note = next.checked_sub(1).map(|at| &self.notes[at]);
        let mut open = Open::new();
        let mut from = 0;
        if let Some(note) = note.filter(|note| note.thread == thread) {
            let held = &self.noted[note.held.clone()];
            open.extend(held.iter().map(|&hold| ((hold.lock, hold.is_shared), hold)));
            from = note.passed;
        }
        for &(position, op) in &row[from..passed] {
            pass(&mut open, Place { thread, position }, op);
        }
        open.into_values().collect()
    }
}

fn pass(open: &mut Open, place: Place, op: Op) {
    let (lock, is_shared, acquires) = match op {
        Op::Lock(LockOp::Acquire, lock) => (lock, false, true),
        Op::Lock(LockOp::AcquireShared, lock) => (lock, true, true),
        Op::Lock(LockOp::Release, lock) => (lock, false, false),
        Op::Lock(LockOp::ReleaseShared, lock) => (lock, true, false),
        _ => return,
    };
    let key = (lock, is_shared);
    if acquires {
        let new = Hold { lock, is_shared, since: place, depth: 0 };
        open.entry(key).or_insert(new).depth += 1;
    } else if let Some(hold) = open.get_mut(&key) {
        hold.depth -= 1;
        if hold.depth == 0 {
            open.remove(&key);
        }
    }
}
