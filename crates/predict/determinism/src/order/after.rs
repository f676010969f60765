//! What comes after each event: for each thread its first event that does.
//!
//! Where an edge leaves a thread is an *exit*. All events of a thread behind one exit, up to the
//! next, have the same events of other threads after them, so there is a row for each exit. Made
//! from the rows of what comes before, and linear in these, in time and in room.

use reweave_base::Id;
use reweave_trace::ThreadId;

use super::ground::{Ground, NEVER, Point, Scope};

/// See the module.
#[derive(Debug)]
pub(super) struct Successors {
    /// For each slot the first exit that is not before it, or [`NEVER`].
    exit_of: Vec<u32>,
    rows: Vec<u32>,
}

impl Successors {
    /// Those of `ground`, of which `rows` say what comes before each segment.
    pub(super) fn new(ground: &Ground<'_>, rows: &[u32]) -> Self {
        let mut successors = Self { exit_of: exits(ground), rows: Vec::new() };
        let mut own: Vec<u32> = Vec::new();
        for thread in ground.threads() {
            own.clear();
            let first = successors.rows.len();
            let mut exit = (first / ground.threads_count) as u32;
            for position in 0..ground.events_count(thread) {
                let slot = &mut successors.exit_of[ground.slot(thread, position)];
                let is_exit = std::mem::replace(slot, exit) != NEVER;
                if is_exit {
                    own.push(position);
                    exit += 1;
                }
            }
            let behind_last = own.last().map_or(0, |&last| last + 1);
            for position in behind_last..ground.events_count(thread) {
                successors.exit_of[ground.slot(thread, position)] = NEVER;
            }
            successors.rows.resize(first + own.len() * ground.threads_count, 0);
            for other in ground.threads().filter(|&other| other != thread) {
                fill(ground, rows, thread, &own, other, &mut successors.rows[first..]);
            }
        }
        successors
    }

    /// For each thread the first event that comes after `point`, but for its own thread; none if
    /// none does.
    #[inline]
    pub(super) fn row(&self, ground: &Ground<'_>, point: Point) -> Option<&[u32]> {
        let exit = self.exit_of[ground.slot(point.thread, point.position)];
        let count = ground.threads_count;
        (exit != NEVER).then(|| &self.rows[exit as usize * count..][..count])
    }
}

/// Makes the entries of `other` in `successors`, the rows of the `exits` of `thread`.
fn fill(
    ground: &Ground<'_>,
    rows: &[u32],
    thread: ThreadId,
    exits: &[u32],
    other: ThreadId,
    successors: &mut [u32],
) {
    let count = ground.threads_count;
    let starts = &ground.segments.as_slice()[ground.segments_of(other)];
    let rows = &rows[ground.segments_of(other).start * count..];
    let mut seen = rows.chunks_exact(count).map(|row| row[thread.index()]).zip(starts).peekable();
    for (row, &exit) in successors.chunks_exact_mut(count).zip(exits) {
        while seen.next_if(|(known, _)| *known <= exit).is_some() {}
        let first = seen.peek().map(|(_, segment)| segment.start.position);
        row[other.index()] = first.unwrap_or_else(|| ground.events_count(other));
    }
}

/// For each slot something else than [`NEVER`] where an edge leaves its thread.
fn exits(ground: &Ground<'_>) -> Vec<u32> {
    let mut exits = vec![NEVER; ground.slots_count()];
    let mut mark = |point: Point| exits[ground.slot(point.thread, point.position)] = 0;
    for (segment, edges) in ground.edges.from.rows() {
        let thread = ground.segments[segment].start.thread;
        edges.iter().for_each(|&(position, _)| mark(Point { thread, position }));
    }
    for (_, tails) in ground.edges.tails.rows() {
        tails.iter().copied().for_each(&mut mark);
    }
    ground.scopes.iter().filter(|scope| scope.release != NEVER).map(Scope::end).for_each(mark);
    exits
}
