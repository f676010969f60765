//! Events that the program logs as one are brought together.
//!
//! A wide access is an event for each of its cells, a wait on a condition gives its lock back, a wake
//! takes it again: all events of a thread with the same origin happen at once. Where a schedule runs
//! others between them, the later ones are moved up or the earlier ones down, past events with which
//! they commute; each move gives a schedule that does the same. Where a schedule ends in between, the
//! rest is done too, or none of it, if nobody would notice; a rest that may have to wait for others is
//! not done. Else the schedule is refused.

use std::ops::RangeInclusive;

use reweave_base::IndexVec;
use reweave_trace::{EventId, Origin, Origins, Reordering, ThreadId, Trace};

use super::commute::{commute, may_wait};
use super::{PlanError, Target, waypoint_of};

/// Events in the order in which they are to happen.
#[derive(Debug)]
pub(super) struct Order<'a> {
    trace: &'a Trace,
    origins: &'a Origins,
    events: Vec<EventId>,
    /// The last group of each thread so far.
    open: IndexVec<ThreadId, Option<Group>>,
}

/// Events of one thread in a row that have one origin; some between them may have none.
#[derive(Clone, Copy, Debug)]
struct Group {
    origin: Origin,
    first: usize,
    last: usize,
}

impl<'a> Order<'a> {
    /// The order of `reordering`.
    pub(super) fn new(trace: &'a Trace, origins: &'a Origins, reordering: &Reordering) -> Self {
        let threads = trace.names().threads.entries().map(|(thread, _)| thread);
        let base = threads.flat_map(|thread| {
            let events = trace.thread_events(thread);
            let count = reordering.base.get(thread).copied().unwrap_or(0) as usize;
            &events[..events.len().min(count)]
        });
        let mut events: Vec<EventId> = base.copied().collect();
        events.sort_unstable();
        events.extend(&reordering.schedule);
        let open = IndexVec::from_elem(None, trace.names().threads.len());
        Self { trace, origins, events, open }
    }

    /// The same order, but what is logged as one comes in a row, and whole or not at all.
    pub(super) fn grouped(mut self, target: &Target) -> Result<Vec<EventId>, PlanError> {
        // Where the events of one thread in a row began.
        let mut run_start = 0;
        for at in 0..self.events.len() {
            let event = self.events[at];
            let thread = self.thread_of(event);
            if at > 0 && self.thread_of(self.events[at - 1]) != thread {
                run_start = at;
            }
            let Some(origin) = self.origin(event) else { continue };
            match self.open[thread].filter(|group| group.origin == origin) {
                None => self.open[thread] = Some(Group { origin, first: at, last: at }),
                Some(group) if group.first >= run_start => {
                    self.open[thread] = Some(Group { last: at, ..group });
                }
                Some(group) => {
                    self.bring_together(group, at)?;
                    // Events have moved: whose run this place is in must be looked up.
                    run_start = self.run_start(at);
                }
            }
        }
        for thread in self.open.ids() {
            self.finish(thread, target)?;
        }
        Ok(self.events)
    }

    fn origin(&self, event: EventId) -> Option<Origin> {
        waypoint_of(self.trace, self.origins, event)
    }

    fn thread_of(&self, event: EventId) -> ThreadId {
        self.trace.event(event).thread
    }

    /// Where the events in a row of one thread that `at` is in begin.
    fn run_start(&self, at: usize) -> usize {
        let thread = self.thread_of(self.events[at]);
        let before = self.events[..at].iter().rev();
        at - before.take_while(|&&event| self.thread_of(event) == thread).count()
    }

    /// Brings the event at `at` together with the earlier ones of its group.
    fn bring_together(&mut self, group: Group, at: usize) -> Result<(), PlanError> {
        let event = self.events[at];
        let thread = self.thread_of(event);
        let up = group.last + 1..=at;
        let down = group.first..=at;
        let own_in = |events: &[EventId]| {
            events.iter().filter(|&&event| self.thread_of(event) == thread).count()
        };
        let (first, last) = if self.own_pass_others(thread, up.clone(), Way::Up) {
            let count = own_in(&self.events[up.clone()]);
            self.part(thread, up, Way::Up);
            (group.first, group.last + count)
        } else if self.own_pass_others(thread, down.clone(), Way::Down) {
            let count = own_in(&self.events[down.clone()]);
            self.part(thread, down, Way::Down);
            (at + 1 - count, at)
        } else {
            return Err(PlanError::Split(event));
        };
        self.open[thread] = Some(Group { first, last, ..group });
        Ok(())
    }

    /// Whether the events of `thread` in `range` may pass the others there that are in their way.
    fn own_pass_others(&self, thread: ThreadId, range: RangeInclusive<usize>, way: Way) -> bool {
        let events = &self.events[range];
        let is_own = |event: EventId| self.thread_of(event) == thread;
        let own = events.iter().enumerate().filter(|&(_, &event)| is_own(event));
        let mut own = own.map(|(place, &event)| {
            let passed = match way {
                Way::Up => &events[..place],
                Way::Down => &events[place + 1..],
            };
            (event, passed)
        });
        own.all(|(event, passed)| {
            let mut others = passed.iter().filter(|&&other| !is_own(other));
            others.all(|&other| commute(self.trace, event, other))
        })
    }

    /// Puts the events of `thread` in `range` before all others there, or after them.
    fn part(&mut self, thread: ThreadId, range: RangeInclusive<usize>, way: Way) {
        let start = *range.start();
        let events = &self.events[range.clone()];
        let mut places: Vec<usize> = (0..events.len()).collect();
        let is_own = |place: usize| self.trace.event(events[place]).thread == thread;
        places.sort_by_key(|&place| is_own(place) != (way == Way::Up));
        let parted: Vec<EventId> = places.iter().map(|&place| events[place]).collect();
        let mut moved = vec![0; places.len()];
        for (now, &before) in places.iter().enumerate() {
            moved[before] = start + now;
        }
        self.events[range.clone()].copy_from_slice(&parted);
        for group in self.open.as_mut_vec().iter_mut().flatten() {
            for place in [&mut group.first, &mut group.last] {
                if range.contains(place) {
                    *place = moved[*place - start];
                }
            }
        }
    }

    /// Does the rest of the last group of `thread`, or none of it, if the order ends within it.
    fn finish(&mut self, thread: ThreadId, target: &Target) -> Result<(), PlanError> {
        let Some(group) = self.open[thread] else { return Ok(()) };
        let rest = self.rest(thread, group);
        let Some(&next) = rest.first() else { return Ok(()) };
        let others =
            || self.events[group.last + 1..].iter().filter(|&&it| self.thread_of(it) != thread);
        let passes = |event: EventId| others().all(|&other| commute(self.trace, event, other));
        let may_happen = rest.iter().all(|&event| {
            let waits = may_wait(self.trace.event(event).op);
            !target.ahead.contains(&event) && !waits && passes(event)
        });
        if may_happen {
            return Ok(());
        }
        let members = &self.events[group.first..=group.last];
        let may_not = members.iter().all(|event| !target.behind.contains(event) && passes(*event));
        let is_last = others().count() == self.events.len() - group.last - 1;
        if !(may_not && is_last) {
            return Err(PlanError::Split(next));
        }
        let length = group.last + 1 - group.first;
        self.events.drain(group.first..=group.last);
        self.open[thread] = None;
        for other in self.open.as_mut_vec().iter_mut().flatten() {
            if other.first > group.last {
                (other.first, other.last) = (other.first - length, other.last - length);
            }
        }
        Ok(())
    }

    /// The events of `thread` after those that happen, up to the last that is of `group`.
    fn rest(&self, thread: ThreadId, group: Group) -> Vec<EventId> {
        let last = self.events[group.last..].iter().rev();
        let last = last.copied().find(|&event| self.thread_of(event) == thread);
        let done = last.map_or(0, |last| self.trace.position(last) as usize + 1);
        let ahead = self.trace.thread_events(thread)[done..].iter().copied();
        let is_near = |event: &EventId| self.origin(*event).is_none_or(|it| it == group.origin);
        let mut rest: Vec<EventId> = ahead.take_while(is_near).collect();
        while rest.last().is_some_and(|&event| self.origin(event).is_none()) {
            rest.pop();
        }
        rest
    }
}

/// Which way events of one thread go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}
