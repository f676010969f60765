//! The events of one thread as they come, in pieces that are shared with whoever searches them.
//!
//! A row is written once, before anyone is told of it, and never changes. So searches read without
//! a lock while rows are added behind what they look at. Who holds a line holds its rows: what the
//! log lets go of is freed when the last search that was given it ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// How many rows there are in a chunk.
pub(super) const CHUNK: u32 = 64;

/// One event.
#[derive(Debug)]
pub(super) struct Row<L> {
    /// For each thread, how many of its events come before this one or are it; later ones 0.
    pub(super) clock: Box<[u32]>,
    pub(super) label: L,
}

/// Some consecutive events of a thread.
#[derive(Debug)]
struct Chunk<L> {
    slots: Box<[OnceLock<Row<L>>]>,
    /// How many rows there are in all chunks of the log and its searches.
    held: Arc<AtomicUsize>,
}

impl<L> Chunk<L> {
    fn new(held: &Arc<AtomicUsize>) -> Self {
        Self { slots: (0..CHUNK).map(|_| OnceLock::new()).collect(), held: Arc::clone(held) }
    }
}

impl<L> Drop for Chunk<L> {
    fn drop(&mut self) {
        let written = self.slots.iter().filter(|slot| slot.get().is_some()).count();
        self.held.fetch_sub(written, Ordering::Relaxed);
    }
}

/// The events of a thread but for those that were let go, which are its first.
#[derive(Debug)]
pub(super) struct Line<L> {
    /// How many chunks were let go.
    gone: u32,
    chunks: Vec<Arc<Chunk<L>>>,
}

// Not derived: labels need not be cloned for it.
impl<L> Clone for Line<L> {
    fn clone(&self) -> Self {
        Self { gone: self.gone, chunks: self.chunks.clone() }
    }
}

impl<L> Default for Line<L> {
    fn default() -> Self {
        Self { gone: 0, chunks: Vec::new() }
    }
}

impl<L> Line<L> {
    /// The row of event `index`, counted from 1, if it is there.
    pub(super) fn row(&self, index: u32) -> Option<&Row<L>> {
        let place = index.checked_sub(1)?;
        let chunk = (place / CHUNK).checked_sub(self.gone)?;
        self.chunks.get(chunk as usize)?.slots[(place % CHUNK) as usize].get()
    }

    /// The least number of events that the thread can have run in a state that is looked at: with
    /// its last one still there, or none if nothing was let go.
    pub(super) fn floor(&self) -> u32 {
        if self.gone == 0 { 0 } else { self.gone * CHUNK + 1 }
    }

    pub(super) const fn chunks_count(&self) -> usize {
        self.chunks.len()
    }

    /// Adds event `index`, the one after the last.
    pub(super) fn push(self: &mut Arc<Self>, index: u32, row: Row<L>, held: &Arc<AtomicUsize>) {
        let place = index - 1;
        let chunk = (place / CHUNK - self.gone) as usize;
        if chunk == self.chunks.len() {
            Arc::make_mut(self).chunks.push(Arc::new(Chunk::new(held)));
        }
        let is_new = self.chunks[chunk].slots[(place % CHUNK) as usize].set(row).is_ok();
        debug_assert!(is_new, "events are counted one by one");
        held.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets go of chunks all of whose events are before event `index`.
    pub(super) fn let_go_before(self: &mut Arc<Self>, index: u32) {
        let whole = (index.saturating_sub(1) / CHUNK).saturating_sub(self.gone);
        self.let_go(whole as usize);
    }

    /// Lets go of its first chunks, so many.
    pub(super) fn let_go(self: &mut Arc<Self>, count: usize) {
        // The last one stays: what comes next goes there.
        let count = count.min(self.chunks.len().saturating_sub(1));
        if count > 0 {
            let line = Arc::make_mut(self);
            line.chunks.drain(..count);
            line.gone += count as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_let_go_is_freed_when_nobody_looks_at_it_any_more() {
        let held = Arc::new(AtomicUsize::new(0));
        let mut line = Arc::new(Line::default());
        for index in 1..=3 * CHUNK {
            line.push(index, Row { clock: [index].into(), label: index }, &held);
        }
        let search = Arc::clone(&line);
        line.let_go_before(CHUNK + 1);
        assert_eq!((line.floor(), held.load(Ordering::Relaxed)), (CHUNK + 1, 192));
        assert!(line.row(CHUNK).is_none() && line.row(CHUNK + 1).is_some());
        assert_eq!(search.row(CHUNK).map(|row| row.label), Some(CHUNK));
        drop(search);
        assert_eq!(held.load(Ordering::Relaxed), 128);
        line.let_go(7);
        assert_eq!((line.floor(), held.load(Ordering::Relaxed)), (2 * CHUNK + 1, 64));
        line.push(3 * CHUNK + 1, Row { clock: [].into(), label: 0 }, &held);
        assert_eq!((line.row(0).is_none(), line.row(3 * CHUNK + 2).is_none()), (true, true));
    }
}
