//! What lasts longer than an event: locks that are held, blocks, waits; and the tracks for them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use reweave_base::IndexVec;
use reweave_trace::views::Mode;
use reweave_trace::{BlockId, BlockOp, ConditionId, ConditionOp, EventId, LockId, Op, ThreadId};

use super::{EVENT_TIME, Run, track};

/// What a slice shows.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Lock(LockId, Mode),
    Block(BlockId),
    Wait(ConditionId),
}

/// A stretch of a thread's time, its last moment not included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) thread: ThreadId,
    pub(super) what: What,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Which of the thread's tracks it is on.
    pub(super) lane: u32,
}

/// The tracks of each thread.
#[derive(Debug)]
pub(super) struct Lanes {
    /// How many tracks each thread has, and the number of its second.
    tracks: IndexVec<ThreadId, (u32, u32)>,
}

impl Lanes {
    /// How many tracks `thread` has.
    pub(super) fn count(&self, thread: ThreadId) -> u32 {
        self.tracks[thread].0
    }

    /// The number of the track `lane` of `thread`.
    pub(super) fn track(&self, thread: ThreadId, lane: u32) -> u32 {
        match lane {
            0 => track(thread),
            lane => self.tracks[thread].1 + lane - 1,
        }
    }
}

/// The slices of `run`, those of a thread in the order of their starts, and the tracks they need.
pub(super) fn of(run: &Run<'_>) -> (Vec<Slice>, Lanes) {
    let mut slices = locks(run);
    slices.extend(blocks_and_waits(run));
    // Of what begins before the run, what ends last lies around the others.
    slices.sort_by_key(|slice| (slice.thread, slice.start, Reverse(slice.end)));
    let threads_count = run.trace.names().threads.len();
    let mut counts: IndexVec<ThreadId, u32> = IndexVec::from_elem(1, threads_count);
    for of_thread in slices.chunk_by_mut(|one, other| one.thread == other.thread) {
        counts[of_thread[0].thread] = place(of_thread);
    }
    let mut tracks = IndexVec::new();
    let mut next = threads_count as u32 + 1;
    for &count in counts.iter() {
        tracks.push((count, next));
        next += count - 1;
    }
    (slices, Lanes { tracks })
}

/// Puts each of `slices`, of one thread and in the order of their starts, on the first track where
/// it overlaps none in part. Answers how many tracks there are.
fn place(slices: &mut [Slice]) -> u32 {
    // On each track the ends of the slices that are open, the outermost first.
    let mut lanes: Vec<Vec<u64>> = vec![Vec::new()];
    for slice in slices {
        for open in &mut lanes {
            while open.last().is_some_and(|&end| end <= slice.start) {
                open.pop();
            }
        }
        let fits = |open: &Vec<u64>| open.last().is_none_or(|&end| slice.end <= end);
        let lane = lanes.iter().position(fits).unwrap_or_else(|| {
            lanes.push(Vec::new());
            lanes.len() - 1
        });
        lanes[lane].push(slice.end);
        slice.lane = lane as u32;
    }
    lanes.len() as u32
}

/// From when to when what `begins` and `ends` lasts in `run`: it may have begun before, and may end
/// after. None if `run` has neither.
fn span(run: &Run<'_>, begins: EventId, ends: Option<EventId>) -> Option<(u64, u64)> {
    let is_shown = |event: EventId| run.moment(event).is_some();
    if !is_shown(begins) && !ends.is_some_and(is_shown) {
        return None;
    }
    let (first, last) = run.span();
    let start = run.known_moment(begins).unwrap_or(first).max(first);
    let end = ends.and_then(|ends| run.known_moment(ends)).map_or(last, |it| it + EVENT_TIME);
    (start < end).then_some((start, end.min(last)))
}

fn locks(run: &Run<'_>) -> Vec<Slice> {
    let sections = run.trace.sections().entries();
    let slices = sections.filter_map(|(_, section)| {
        let (start, end) = span(run, section.acquire, section.release)?;
        let what = What::Lock(section.lock, section.mode);
        Some(Slice { thread: section.thread, what, start, end, lane: 0 })
    });
    slices.collect()
}

fn blocks_and_waits(run: &Run<'_>) -> Vec<Slice> {
    let mut slices = Vec::new();
    let mut open: BTreeMap<(ThreadId, BlockId), Vec<EventId>> = BTreeMap::new();
    let trace = run.trace;
    let mut add = |thread, what, begins, ends| {
        if let Some((start, end)) = span(run, begins, ends) {
            slices.push(Slice { thread, what, start, end, lane: 0 });
        }
    };
    for (id, event) in trace.events() {
        match event.op {
            Op::Block(BlockOp::Begin, block) => {
                open.entry((event.thread, block)).or_default().push(id)
            }
            Op::Block(BlockOp::End, block) => {
                let begins = open.get_mut(&(event.thread, block)).and_then(Vec::pop);
                if let Some(begins) = begins {
                    add(event.thread, What::Block(block), begins, Some(id));
                }
            }
            Op::Condition(ConditionOp::Wait, condition) => {
                let stay = trace.signals().stay(id);
                add(event.thread, What::Wait(condition), id, stay.and_then(|stay| stay.end));
            }
            _ => {}
        }
    }
    for ((thread, block), begins) in open {
        for begins in begins {
            add(thread, What::Block(block), begins, None);
        }
    }
    slices
}
