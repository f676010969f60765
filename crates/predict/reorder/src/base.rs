//! The base: how much of a cut can run in observed order before the events whose order is open?
//!
//! Some events have to move: those that the query puts the other way round, reads that see another
//! write, and sections that stay open and are in the way. All that needs one of them moves along, and
//! nothing else: the base is what is left. It is closed under needs, so in observed order its reads
//! see what they saw. What moved may hold more back: a section or a stay that the base leaves open in
//! the way of a later event of its own, or that never ends while another behind it has to end first;
//! and a write after the one that a read behind the base must see. Those move too.
//!
//! Costs for each event that has to move a search in each thread, and for each read that moves along
//! a look at each thread that writes its variable.

use reweave_base::Id;
use reweave_trace::{EventId, ThreadId};

use crate::engine::{Cut, Problem};
use crate::growth;
use crate::query::View;

/// The part of a cut that runs first.
#[derive(Debug)]
pub(crate) struct Base<'a, 'e, 't> {
    problem: &'a Problem<'e, 't>,
    /// The whole cut.
    whole: &'a Cut,
    base: Cut,
    /// The events of each thread from here on were looked at for what they hold back.
    looked: Cut,
    /// How many threads and events were looked at.
    pub(crate) looks: u64,
}

impl<'a, 'e, 't> Base<'a, 'e, 't> {
    /// The base of `whole`.
    pub(crate) fn new(problem: &'a Problem<'e, 't>, whole: &'a Cut) -> Self {
        let (base, looked) = (whole.clone(), whole.clone());
        let mut base = Self { problem, whole, base, looked, looks: 0 };
        for &(first, second) in &problem.query.order {
            if first > second {
                base.lower(second);
            }
        }
        for &(read, view) in &problem.query.views {
            base.lower(read);
            if let View::Of(Some(write)) = view {
                base.lower(write);
            }
        }
        base.settle();
        base
    }

    /// How many events of each thread are in it.
    pub(crate) const fn cut(&self) -> &Cut {
        &self.base
    }

    /// Takes out `event` and all that needs it.
    pub(crate) fn lower(&mut self, event: EventId) {
        let trace = self.problem.engine.trace();
        let (owner, position) = (trace.event(event).thread, trace.position(event));
        self.looks += self.base.len() as u64;
        for thread in self.base.ids() {
            let count = &mut self.base[thread];
            if thread == owner {
                *count = (*count).min(position);
                continue;
            }
            let own = &trace.thread_events(thread)[..*count as usize];
            let needs = &self.problem.needs;
            let is_free = |&other: &EventId| needs.of_event(other).get(owner) <= position;
            // Most often nothing moves.
            if !own.last().is_none_or(is_free) {
                *count = own.partition_point(is_free) as u32;
            }
        }
    }

    /// Takes out everything from the observed time `start` on.
    pub(crate) fn lower_to(&mut self, start: usize) {
        let from = EventId::from_index(start.min(self.problem.engine.trace().len()));
        for thread in self.base.ids() {
            let own = self.problem.engine.trace().thread_events(thread);
            let own = &own[..self.base[thread] as usize];
            self.base[thread] = own.partition_point(|&event| event < from) as u32;
        }
    }

    /// Takes out what keeps it, or what follows it, from running.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut has_moved = false;
            self.looks += self.base.len() as u64;
            for thread in self.base.ids() {
                while let Some(event) = self.in_the_way(thread) {
                    self.lower(event);
                    has_moved = true;
                }
            }
            has_moved |= self.look();
            if !has_moved {
                return;
            }
        }
    }

    /// The start of what `thread` leaves open after its part and that has to move.
    fn in_the_way(&self, thread: ThreadId) -> Option<EventId> {
        if self.base[thread] == 0 {
            return None;
        }
        if let Some(obstacle) = growth::in_the_way(self.problem, &self.base, thread) {
            return Some(obstacle.start);
        }
        let engine = self.problem.engine;
        let mut open = engine.open(thread, self.base[thread]);
        let never_ends = open.find(|section| {
            let ends = section.release.is_some_and(|release| engine.is_in(self.whole, release));
            let mut others = engine.users(section.lock).iter().filter(|user| user.thread != thread);
            !ends
                && others.any(|user| {
                    let last = engine.last_section(user, section.mode, self.whole[user.thread]);
                    last.is_some_and(|last| !engine.is_in(&self.base, last.acquire))
                })
        });
        never_ends.map(|section| section.acquire)
    }

    /// Takes out writes that come after what reads behind the base must see; whether there were any.
    fn look(&mut self) -> bool {
        let (engine, mut has_moved) = (self.problem.engine, false);
        for thread in self.base.ids() {
            while self.looked[thread] > self.base[thread] {
                self.looked[thread] -= 1;
                self.looks += 1;
                let event = engine.trace().thread_events(thread)[self.looked[thread] as usize];
                let Some(seen) = self.problem.must_see(event) else { continue };
                // What is not in the base is not overwritten there.
                if seen.is_some_and(|write| !engine.is_in(&self.base, write)) {
                    continue;
                }
                let Some(var) = engine.trace().event(event).op.var() else { continue };
                let all = engine.trace().writes();
                for line in all.lines(var) {
                    self.looks += 1;
                    let writes = all.of_line(line);
                    let later = writes.partition_point(|&write| Some(write) <= seen);
                    let Some(&later) = writes.get(later) else { continue };
                    if engine.trace().position(later) < self.base[line.thread] {
                        self.lower(later);
                        has_moved = true;
                    }
                }
            }
        }
        has_moved
    }
}
