//! Which accesses come before which in every run: by fork, join and the order within threads.
//!
//! A thread's life is cut into *segments* where it creates or joins another. All of a segment comes
//! before all of another one, or neither does; a vector clock for each segment says which. Accesses
//! are then remembered by segment: the last write and the reads since, of which there may be several
//! that are in no order.
//!
//! Segments are as many as forks and joins, and so are clocks, each as long as there are threads. In
//! a program with more threads than [`THREADS_MAX`] nothing counts as ordered but what one thread
//! does.

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind};

/// With more threads than this, clocks would take too much memory.
const THREADS_MAX: usize = 4096;

/// A stretch of a thread between forks and joins.
#[derive(Clone, Debug)]
struct Segment {
    thread: usize,
    index: u32,
    /// For each thread how many of its segments come before this one.
    clock: Vec<u32>,
}

/// The segments of a recording, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Segments {
    threads: FxHashMap<u32, usize>,
    /// The segment that each thread is in.
    current: Vec<u32>,
    segments: Vec<Segment>,
    /// The thread that was asked for last, and its segment: most questions repeat.
    last: Option<(u32, u32)>,
}

impl Segments {
    /// Takes note of an event that may begin segments.
    #[inline]
    pub(super) fn step(&mut self, thread: u32, event: &Event) {
        match event.kind {
            Kind::Fork => self.fork(thread, event.address as u32),
            Kind::Join => self.join(thread, event.address as u32),
            _ => {}
        }
    }

    /// The segment that `thread` is in.
    #[inline]
    pub(super) fn of(&mut self, thread: u32) -> u32 {
        match self.last {
            Some((last, segment)) if last == thread => segment,
            _ => {
                let place = self.place(thread);
                let segment = self.current[place];
                self.last = Some((thread, segment));
                segment
            }
        }
    }

    /// Whether all of segment `first` comes before, or is part of, `second`.
    #[inline]
    pub(super) fn precedes(&self, first: u32, second: u32) -> bool {
        if first == second {
            return true;
        }
        let [first, second] = [first, second].map(|place| &self.segments[place as usize]);
        if first.thread == second.thread {
            return first.index <= second.index;
        }
        second.clock.get(first.thread).is_some_and(|&count| first.index < count)
    }

    fn place(&mut self, thread: u32) -> usize {
        if let Some(&place) = self.threads.get(&thread) {
            return place;
        }
        let place = self.threads.len();
        self.threads.insert(thread, place);
        self.current.push(self.segments.len() as u32);
        self.segments.push(Segment { thread: place, index: 0, clock: Vec::new() });
        place
    }

    /// The clock of what comes after segment `place`.
    fn after(&self, place: u32) -> Vec<u32> {
        let Segment { thread, index, clock } = &self.segments[place as usize];
        let mut clock = clock.clone();
        raise(&mut clock, *thread, index + 1);
        clock
    }

    fn fork(&mut self, parent: u32, child: u32) {
        let is_new = !self.threads.contains_key(&child);
        let parent = self.place(parent);
        let child = self.place(child);
        self.last = None;
        if parent == child || self.threads.len() > THREADS_MAX {
            return;
        }
        if is_new {
            let first = self.current[child] as usize;
            self.segments[first].clock = self.after(self.current[parent]);
        }
        self.next_segment(parent, None);
    }

    fn join(&mut self, parent: u32, child: u32) {
        let parent = self.place(parent);
        let child = self.place(child);
        self.last = None;
        if parent == child || self.threads.len() > THREADS_MAX {
            return;
        }
        self.next_segment(parent, Some(self.current[child]));
        // Should the thread go on all the same, that is not what was joined.
        self.next_segment(child, None);
    }

    /// Begins a segment of thread `place`, after segment `other` too.
    fn next_segment(&mut self, place: usize, other: Option<u32>) {
        let Segment { thread, index, mut clock } =
            self.segments[self.current[place] as usize].clone();
        if let Some(other) = other {
            for (of, count) in self.after(other).into_iter().enumerate() {
                raise(&mut clock, of, count);
            }
        }
        self.current[place] = self.segments.len() as u32;
        self.segments.push(Segment { thread, index: index + 1, clock });
    }
}

fn raise(clock: &mut Vec<u32>, thread: usize, count: u32) {
    if clock.len() <= thread {
        clock.resize(thread + 1, 0);
    }
    clock[thread] = clock[thread].max(count);
}

/// The segments of the last accesses to a granule: 0 for none, else one more than the segment, or
/// than a set of them with [`SET`] added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Last {
    write: u32,
    reads: u32,
}

/// Marks a number as that of a set.
const SET: u32 = 1 << 31;

/// Sets of segments, each kept once.
#[derive(Debug, Default)]
pub(super) struct Sets {
    sets: Vec<Box<[u32]>>,
    ids: FxHashMap<Box<[u32]>, u32>,
    /// What became of a set when a segment was added.
    grown: FxHashMap<(u32, u32), u32>,
}

impl Last {
    /// Takes note of an access in `segment`; false if it is in no order with one that it conflicts
    /// with.
    #[inline]
    pub(super) fn is_ordered(
        &mut self,
        segments: &Segments,
        sets: &mut Sets,
        segment: u32,
        writes: bool,
    ) -> bool {
        if self.write != 0 && !segments.precedes(self.write - 1, segment) {
            return false;
        }
        if writes {
            let ordered = sets.precede(segments, self.reads, segment);
            (self.write, self.reads) = (segment + 1, 0);
            return ordered;
        }
        if self.reads != segment + 1 {
            self.reads = sets.with(segments, self.reads, segment);
        }
        true
    }
}

impl Sets {
    fn members(&self, reads: u32) -> &[u32] {
        &self.sets[(reads & !SET) as usize - 1]
    }

    /// Whether all of `reads` come before `segment`.
    fn precede(&self, segments: &Segments, reads: u32, segment: u32) -> bool {
        match reads {
            0 => true,
            _ if reads & SET == 0 => segments.precedes(reads - 1, segment),
            _ => self.members(reads).iter().all(|&read| segments.precedes(read, segment)),
        }
    }

    /// `reads` with `segment` in it, and without what comes before that.
    fn with(&mut self, segments: &Segments, reads: u32, segment: u32) -> u32 {
        if reads == 0 || reads & SET == 0 && segments.precedes(reads - 1, segment) {
            return segment + 1;
        }
        if let Some(&grown) = self.grown.get(&(reads, segment)) {
            return grown;
        }
        let mut members = match reads & SET {
            0 => vec![reads - 1],
            _ => self.members(reads).to_vec(),
        };
        members.retain(|&read| !segments.precedes(read, segment));
        members.push(segment);
        members.sort_unstable();
        let grown = match *members {
            [only] => only + 1,
            _ => self.id(members.into()),
        };
        self.grown.insert((reads, segment), grown);
        grown
    }

    fn id(&mut self, members: Box<[u32]>) -> u32 {
        if let Some(&id) = self.ids.get(&members) {
            return id;
        }
        self.sets.push(members.clone());
        let id = self.sets.len() as u32 | SET;
        self.ids.insert(members, id);
        id
    }
}
