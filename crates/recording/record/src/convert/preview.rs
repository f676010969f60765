//! The first pass: what must be known before the first event can be written.

use std::collections::VecDeque;
use std::io;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind};

use crate::cells::{Access, Cells, Survey};
use crate::spool::Stream;

/// How many events [`Ahead`] looks ahead for what a write stored.
const AHEAD_MAX: usize = 64;

/// The thread that the program starts with.
pub(super) const MAIN: u32 = 0;

/// What the first pass found.
#[derive(Debug, Default)]
pub(super) struct Preview {
    pub(super) cells: Cells,
    /// What writes stored, by their places in the stream, where that was said more than
    /// [`AHEAD_MAX`] events later.
    late: FxHashMap<u64, u64>,
    /// The places of forks that failed.
    failed_forks: FxHashSet<u64>,
    /// Threads that ran without being forked, in order.
    pub(super) unforked: Vec<u32>,
    /// Whether some events have places in the order of synchronisation and others do not.
    pub(super) is_free: bool,
    pub(super) has_accesses: bool,
}

/// What is known of a thread in the first pass.
#[derive(Default)]
struct Seen {
    runs: bool,
    is_forked: bool,
    last_fork: Option<u64>,
    last_write: Option<u64>,
}

impl Preview {
    pub(super) fn new(stream: &mut dyn Stream, keeps_all: bool) -> io::Result<Self> {
        let mut preview = Self::default();
        let mut survey = Survey::new(keeps_all);
        let mut threads: FxHashMap<u32, Seen> = FxHashMap::default();
        let mut place = 0;
        while let Some((thread, event)) = stream.next_event()? {
            survey.step(thread, &event);
            preview.has_accesses |= Access::new(&event).is_some();
            preview.is_free |= event.number.is_some();
            preview.note_thread(&mut threads, thread, &event, place);
            place += 1;
        }
        preview.cells = survey.finish();
        let unforked = threads.iter().filter(|(_, seen)| seen.runs && !seen.is_forked);
        preview.unforked = unforked.map(|(&thread, _)| thread).filter(|&t| t != MAIN).collect();
        preview.unforked.sort_unstable();
        Ok(preview)
    }

    fn note_thread(
        &mut self,
        threads: &mut FxHashMap<u32, Seen>,
        thread: u32,
        event: &Event,
        place: u64,
    ) {
        let seen = threads.entry(thread).or_default();
        seen.runs = true;
        if !event.kind.is_one_word()
            && let Some(write) = seen.last_write.take()
            && let Some(stored) = event.stored
            && place - write > AHEAD_MAX as u64
        {
            self.late.insert(write, stored);
        }
        match event.kind {
            Kind::Write => seen.last_write = Some(place),
            Kind::Fork => {
                let child = threads.entry(event.address as u32).or_default();
                child.last_fork = Some(place);
                child.is_forked = true;
            }
            Kind::ForkFailed => {
                let child = threads.entry(event.address as u32).or_default();
                self.failed_forks.extend(child.last_fork.take());
                child.is_forked = false;
            }
            _ => {}
        }
    }

    pub(super) fn fork_fails(&self, place: u64) -> bool {
        self.failed_forks.contains(&place)
    }

    /// What the write of `thread` at `place`, the event that `ahead` gave last, stored.
    pub(super) fn stored<S: Stream>(
        &self,
        ahead: &mut Ahead<S>,
        thread: u32,
        place: u64,
    ) -> io::Result<Option<u64>> {
        match ahead.next_of(thread)? {
            Some(event) => Ok(event.stored),
            None => Ok(self.late.get(&place).copied()),
        }
    }
}

/// A stream that can be looked at before it is read.
pub(super) struct Ahead<S> {
    stream: S,
    queue: VecDeque<(u32, Event)>,
}

impl<S: Stream> Ahead<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, queue: VecDeque::with_capacity(AHEAD_MAX) }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<(u32, Event)>> {
        match self.queue.pop_front() {
            Some(event) => Ok(Some(event)),
            None => self.stream.next_event(),
        }
    }

    /// The next event of `thread` that is no single word, if it is near.
    fn next_of(&mut self, thread: u32) -> io::Result<Option<Event>> {
        for place in 0..AHEAD_MAX {
            if place == self.queue.len() {
                let Some(event) = self.stream.next_event()? else { return Ok(None) };
                self.queue.push_back(event);
            }
            let (of, event) = self.queue[place];
            if of == thread && !event.kind.is_one_word() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }
}
