//! The closure of all couples but one, for one after the other.
//!
//! What rests on a couple cannot be told from what holds without it by looking at the closure: each
//! may support the other. So all that might rest on the couple is taken back, and what holds
//! without it is found again.
//!
//! An edge is *suspect* if it is the couple's, or orders two scopes because one starts before the
//! tail of a suspect edge and the other ends after its head. If one event comes before another in
//! the closure with the couple but not in that without, the one is before the tail and the other
//! after the head of a suspect edge: this is so for the couple, and stays so whatever follows. Scopes
//! that are wholly before or after are ordered by the suspect edge itself; so only those that are
//! open at its cuts make further ones, few as a rule. Those with the same tail are kept as one, with
//! all that comes after any of their heads.
//!
//! A row can change only after the head of a suspect edge, in entries that are what the tail knows
//! and that the row before it in its thread has not. This ends where a thread learns more by
//! another way, as a rule soon. These entries are set to nothing and raised again, from the rows
//! before, until nothing changes: the result is what follows without the couple, since nothing in
//! the rows says more than that when it starts.
//!
//! Costs what the couple changes, which may be much of the trace where threads hardly communicate,
//! and counts it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reweave_base::{Id, IndexVec};
use reweave_trace::{EventId, ThreadId};

use super::bend::{Base, Halt, Work, has, raise};
use super::ground::{Ground, NEVER, Point, SegmentId};
use super::suspects::Suspects;

/// Rows that are other than those of the graph below.
#[derive(Debug)]
pub(super) struct Patch {
    width: usize,
    /// For each segment one more than the place of its row, or nothing.
    places: IndexVec<SegmentId, u32>,
    segments: Vec<SegmentId>,
    rows: Vec<u32>,
    /// Which threads have such rows.
    is_touched: IndexVec<ThreadId, bool>,
}

impl Patch {
    fn new(ground: &Ground<'_>) -> Self {
        Self {
            width: ground.threads_count,
            places: IndexVec::from_elem(0, ground.segments.len()),
            segments: Vec::new(),
            rows: Vec::new(),
            is_touched: IndexVec::from_elem(false, ground.threads_count),
        }
    }

    /// The row of `segment`, if it has one here.
    #[inline]
    pub(super) fn row(&self, segment: SegmentId) -> Option<&[u32]> {
        let place = self.places[segment].checked_sub(1)? as usize;
        Some(&self.rows[place * self.width..][..self.width])
    }

    fn row_mut(&mut self, segment: SegmentId) -> Option<&mut [u32]> {
        let place = self.places[segment].checked_sub(1)? as usize;
        Some(&mut self.rows[place * self.width..][..self.width])
    }

    /// The row of `segment`, which is `row` if there is none yet.
    fn row_or(&mut self, segment: SegmentId, row: &[u32]) -> &mut [u32] {
        if self.places[segment] == 0 {
            self.segments.push(segment);
            self.rows.extend_from_slice(row);
            self.places[segment] = self.segments.len() as u32;
        }
        let place = self.places[segment] as usize - 1;
        &mut self.rows[place * self.width..][..self.width]
    }

    fn clear(&mut self) {
        self.segments.drain(..).for_each(|segment| self.places[segment] = 0);
        self.rows.clear();
        self.is_touched.as_mut_vec().fill(false);
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Without {
    patch: Patch,
    suspects: Suspects,
    /// Which entries of a row a suspect edge may have brought.
    brought: Vec<bool>,
    room: Vec<u32>,
    queue: BinaryHeap<Reverse<(EventId, SegmentId)>>,
    is_queued: IndexVec<SegmentId, bool>,
}

impl Without {
    pub(super) fn new(ground: &Ground<'_>) -> Self {
        Self {
            patch: Patch::new(ground),
            suspects: Suspects::default(),
            brought: vec![false; ground.threads_count],
            room: vec![0; ground.threads_count],
            queue: BinaryHeap::new(),
            is_queued: IndexVec::from_elem(false, ground.segments.len()),
        }
    }

    /// What to change in `base`, the graph of all couples, to get that of all but `couple`; a cycle
    /// if the writer comes before the read without their couple.
    pub(super) fn patch(
        &mut self,
        base: Base<'_>,
        couple: (Point, Point),
        work: &mut Work<'_>,
    ) -> Result<&Patch, Halt> {
        self.patch.clear();
        for Reverse((_, segment)) in self.queue.drain() {
            self.is_queued[segment] = false;
        }
        self.suspects.find(base, couple, work)?;
        if !self.suspects.has(base, couple) {
            return Err(Halt::Cycle);
        }
        for at in 0..self.suspects.tails.len() {
            self.take_back(base, at, work)?;
        }
        self.find_again(base, couple, work)?;
        Ok(&self.patch)
    }

    /// Sets to nothing all that the suspect edge at `at` may have brought.
    fn take_back(&mut self, base: Base<'_>, at: usize, work: &mut Work<'_>) -> Result<(), Halt> {
        let (ground, count) = (base.ground, base.ground.threads_count);
        let (before, after) = self.suspects.cuts(at, count);
        for thread in ground.threads() {
            let first = after[thread.index()];
            if first == ground.events_count(thread) {
                continue;
            }
            work.spend(ground.row_cost())?;
            let first = ground.segment(Point { thread, position: first });
            let row = base.row(first);
            let last = ground.previous_segment(first).map(|last| base.row(last));
            let mut is_any = false;
            for other in 0..count {
                let is_known = last.map_or(0, |last| last[other]) == row[other];
                let is_brought =
                    other != thread.index() && row[other] == before[other] && !is_known;
                self.brought[other] = is_brought;
                is_any |= is_brought;
            }
            let mut next = Some(first).filter(|_| is_any);
            while let Some(segment) = next {
                work.spend(ground.row_cost())?;
                let row = base.row(segment);
                let is_brought =
                    |other: &usize| self.brought[*other] && row[*other] == before[*other];
                if !(0..count).any(|other| is_brought(&other)) {
                    break;
                }
                self.patch.is_touched[thread] = true;
                let patched = self.patch.row_or(segment, row);
                (0..count).filter(is_brought).for_each(|other| patched[other] = 0);
                next = ground.next_segment(segment);
            }
        }
        Ok(())
    }

    /// Raises rows again, as far as they are without `couple`.
    fn find_again(
        &mut self,
        base: Base<'_>,
        couple: (Point, Point),
        work: &mut Work<'_>,
    ) -> Result<(), Halt> {
        let ground = base.ground;
        for at in 0..self.patch.segments.len() {
            self.enqueue(ground, self.patch.segments[at]);
        }
        while let Some(Reverse((_, segment))) = self.queue.pop() {
            self.is_queued[segment] = false;
            if self.pull(base, segment, couple, work)? {
                self.push(base, segment, work)?;
            }
        }
        Ok(())
    }

    /// Has `segment` looked at, if its row may have been lowered.
    fn enqueue(&mut self, ground: &Ground<'_>, segment: SegmentId) {
        if self.patch.places[segment] > 0 && !std::mem::replace(&mut self.is_queued[segment], true)
        {
            self.queue.push(Reverse((ground.segments[segment].event, segment)));
        }
    }

    /// Raises the row of `segment` by all that comes right before it; whether that changed it.
    fn pull(
        &mut self,
        base: Base<'_>,
        segment: SegmentId,
        (writer, read): (Point, Point),
        work: &mut Work<'_>,
    ) -> Result<bool, Halt> {
        let (ground, edges) = (base.ground, &base.ground.edges);
        let own = Base { patch: Some(&self.patch), ..base };
        let start = ground.segments[segment].start;
        let room = &mut self.room;
        // From nothing, not from what is left of the row: that may know of an event without what
        // comes before it.
        room.fill(0);
        let mut join = |tail: Point| {
            if has(room, tail) {
                return work.spend(1);
            }
            raise(room, own.row(ground.segment(tail)));
            let known = &mut room[tail.thread.index()];
            *known = (tail.position + 1).max(*known);
            work.spend(ground.row_cost())
        };
        if let Some(position) = start.position.checked_sub(1) {
            join(Point { thread: start.thread, position })?;
        }
        for &tail in edges.into.row(segment) {
            if (tail, start) != (writer, read) {
                join(tail)?;
            }
        }
        for &hub in edges.hubs_into.row(segment) {
            edges.tails.row(hub).iter().try_for_each(|&tail| join(tail))?;
        }
        let acquired = ground.acquired_at(start).filter(|scope| scope.release != NEVER);
        if let Some(scope) = acquired {
            let seen = own.row(ground.segment(scope.end()));
            for queue in ground.rivals(scope) {
                let last = ground.last_before(queue, seen[queue.thread.index()]);
                if let Some(last) = last.filter(|last| last.release != NEVER) {
                    join(last.end())?;
                }
            }
        }
        let row = self.patch.row_mut(segment).expect("what is looked at has a row of its own");
        let mut has_changed = false;
        for (slot, &number) in row.iter_mut().zip(&self.room) {
            has_changed |= number > *slot;
            *slot = number.max(*slot);
        }
        Ok(has_changed)
    }

    /// Has all looked at that come right after `segment`, or come after others because of it.
    fn push(
        &mut self,
        base: Base<'_>,
        segment: SegmentId,
        work: &mut Work<'_>,
    ) -> Result<(), Halt> {
        let (ground, edges) = (base.ground, &base.ground.edges);
        if let Some(next) = ground.next_segment(segment) {
            self.enqueue(ground, next);
        }
        for &(_, head) in edges.from.row(segment) {
            self.enqueue(ground, head);
        }
        for &(_, hub) in edges.hubs_from.row(segment) {
            work.spend(edges.heads.row(hub).len())?;
            edges.heads.row(hub).iter().for_each(|&head| self.enqueue(ground, head));
        }
        for scope in ground.releases.row(segment).iter().map(|&scope| &ground.scopes[scope]) {
            self.enqueue(ground, ground.segment(scope.start()));
            for queue in ground.rivals(scope) {
                work.spend(1)?;
                if !self.patch.is_touched[queue.thread] {
                    continue;
                }
                let own = Base { patch: Some(&self.patch), ..base };
                let from = own.first_after(scope.start(), queue.thread);
                if let Some(late) = ground.first_ending_from(queue, from) {
                    self.enqueue(ground, ground.segment(late.start()));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use reweave_testkit::{Shape, draw, generate, soak};
    use reweave_trace::Trace;

    use super::super::after::Successors;
    use super::super::clocks::closure;
    use super::*;

    /// Compares what comes before and after with `rows`, for all events.
    fn check_rows(base: Base<'_>, rows: &[u32]) {
        let (ground, trace) = (base.ground, base.ground.trace);
        let defined = Base { rows, patch: None, ..base };
        for segment in ground.segments.ids() {
            assert_eq!(base.row(segment), defined.row(segment), "{segment:?}\n{}", draw(trace));
        }
        let mut after = vec![0; ground.threads_count];
        for point in trace.events().map(|(id, _)| ground.point(id)) {
            base.after(point, &mut after);
            for thread in ground.threads() {
                let mut positions = 0..ground.events_count(thread);
                let is_after = |position: &u32| {
                    defined.is_before(point, Point { thread, position: *position })
                };
                let first = positions.find(is_after).unwrap_or(ground.events_count(thread));
                assert_eq!(after[thread.index()], first, "{point:?} {thread:?}\n{}", draw(trace));
            }
        }
    }

    /// Leaves out each couple of `trace`; how many there are, and how many change something.
    fn check(trace: &Trace) -> [usize; 2] {
        let ground = Ground::new(trace);
        let rows = closure(&ground, None).unwrap();
        let successors = Successors::new(&ground, &rows);
        let base = Base { ground: &ground, rows: &rows, successors: &successors, patch: None };
        check_rows(base, &rows);
        let mut without = Without::new(&ground);
        let mut counts = [0, 0];
        for (writer, read) in trace.events().filter_map(|(id, _)| ground.loose(id)) {
            let defined = closure(&ground, Some((writer, ground.segment(read)))).unwrap();
            let mut budget = u64::MAX;
            counts[0] += 1;
            match without.patch(base, (writer, read), &mut Work(&mut budget)) {
                Ok(patch) => {
                    counts[1] += 1;
                    check_rows(Base { patch: Some(patch), ..base }, &defined);
                }
                Err(_) => assert!(Base { rows: &defined, ..base }.is_before(writer, read)),
            }
        }
        counts
    }

    #[test]
    fn what_holds_without_a_couple_is_what_follows_from_all_others() {
        let mut total = [0, 0];
        for (_, shape) in Shape::ALL {
            for seed in 0..u64::from(soak::cases(20)) {
                let counts = check(&generate::random(shape, seed));
                total = [total[0] + counts[0], total[1] + counts[1]];
            }
        }
        assert!(total[1] > 1_000 && total[0] > total[1], "{total:?}");
    }
}
