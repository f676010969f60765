//! What a correct reordering is, and what it shows: the definition, stated a second time.
//!
//! Every rule is a formula over the places that events have in a schedule: for each event of a
//! kind, something stands before it or does not. There is no state that is stepped along, so a
//! fault of the checker, which is a state machine, is not likely to be here too. Nothing of the
//! checker or of the trace's views is used; [`Observed`] reads what was observed off the events.
//!
//! Never made faster: each rule looks at the whole schedule again for each event.
//!
//! Follows Definition 4 of Smaragdakis et al., "Sound Predictive Race Detection in Polynomial
//! Time" (POPL 2012), completed for the operations that it leaves out.

use reweave_trace::{
    AccessOp, After, BarrierOp, ConditionOp, EventId, Goal, LockId, Marker, ObjectOp, Op,
    SemaphoreOp, ThreadId, ThreadOp, Trace, VarId,
};

use crate::memory_orders;
use crate::observed::{Observed, Wait, acquired, released};

/// Whether `schedule` is a correct reordering of `trace`.
#[must_use]
pub fn is_correct(trace: &Trace, schedule: &[EventId]) -> bool {
    Definition::new(trace).is_correct(schedule)
}

/// Whether `schedule` is a correct reordering of `trace`, but for the reads that `goal` sets
/// free, and ends as `goal` says.
#[must_use]
pub fn shows(trace: &Trace, schedule: &[EventId], goal: &Goal) -> bool {
    Definition::new(trace).shows(schedule, goal)
}

/// The definition for one trace, which is read once.
#[derive(Debug)]
pub struct Definition<'a> {
    observed: Observed<'a>,
}

impl<'a> Definition<'a> {
    /// The definition for `trace`.
    #[must_use]
    pub fn new(trace: &'a Trace) -> Self {
        Self { observed: Observed::new(trace) }
    }

    /// Whether `schedule` is a correct reordering.
    #[must_use]
    pub fn is_correct(&self, schedule: &[EventId]) -> bool {
        self.is_correct_but_for(schedule, &[], &[])
    }

    /// The same, but that the wakes of `lost` need not come.
    #[must_use]
    pub fn is_correct_but_for_wakes(&self, schedule: &[EventId], lost: &[EventId]) -> bool {
        self.is_correct_but_for(schedule, &[], lost)
    }

    fn is_correct_but_for(&self, schedule: &[EventId], free: &[EventId], lost: &[EventId]) -> bool {
        let known = |event: &EventId| self.observed.trace.numbered(event.number()).is_some();
        let once = |event: &EventId| schedule.iter().filter(|other| *other == event).count() == 1;
        schedule.iter().all(|event| known(event) && once(event))
            && Run::new(&self.observed, schedule).obeys_the_rules(free, lost)
    }

    /// Whether `schedule` is a correct reordering, but for the reads that `goal` sets free, and
    /// ends as `goal` says.
    #[must_use]
    pub fn shows(&self, schedule: &[EventId], goal: &Goal) -> bool {
        let (free, _) = goal.free_reads();
        if !self.is_correct_but_for(schedule, free, goal.lost_wakes()) {
            return false;
        }
        let run = Run::new(&self.observed, schedule);
        let known = |event: &EventId| self.observed.trace.numbered(event.number()).is_some();
        match goal {
            Goal::Enabled(events) => {
                events.iter().all(known)
                    && run.are_next(events)
                    && events.iter().all(|&event| self.can_follow(schedule, event))
            }
            Goal::Race(first, second) => {
                [first, second].into_iter().all(known)
                    && run.are_next(&[*first, *second])
                    && run.conflict(*first, *second)
            }
            Goal::Unordered(first, second) => {
                [first, second].into_iter().all(|&event| run.place(event).is_some())
                    && run.thread(*first) != run.thread(*second)
                    && (run.conflict(*first, *second)
                        || run.is_end_and_access(*first, *second)
                        || run.is_end_and_access(*second, *first))
                    && !memory_orders::is_ordered(&self.observed, schedule, *first, *second)
            }
            Goal::Deadlock(events) => {
                events.len() >= 2
                    && events.iter().all(known)
                    && run.are_next(events)
                    && (0..events.len())
                        .all(|at| run.is_blocked_by(events[at], events[(at + 1) % events.len()]))
            }
            Goal::Stuck(events) => {
                !events.is_empty()
                    && events.iter().all(known)
                    && run.are_next(events)
                    && events.iter().all(|&event| run.is_stuck(event))
                    && run.is_over_but_for(events)
            }
            Goal::Order { chain, absent, free, after } => {
                chain.iter().all(|&event| run.place(event).is_some())
                    && chain.windows(2).all(|pair| run.before(pair[0], pair[1]))
                    && absent.iter().all(|&event| known(&event) && run.place(event).is_none())
                    && (*after == After::RunsOn
                        || free.iter().all(|&read| run.stops_at(read, free)))
            }
            Goal::Sees { read, write, after } => run.sees_another(*read, *write, *after),
            Goal::Reaches(events) => run.reaches(events),
            Goal::Leaves { var, write } => run.leaves(*var, *write),
        }
    }

    /// Whether `event` could happen after `schedule`. A read always can: it sees what is there.
    fn can_follow(&self, schedule: &[EventId], event: EventId) -> bool {
        let mut longer = schedule.to_vec();
        longer.push(event);
        self.is_correct_but_for(&longer, &[event], &[])
    }
}

/// A schedule of distinct events, with the place of each.
struct Run<'a> {
    observed: &'a Observed<'a>,
    order: &'a [EventId],
    places: Vec<Option<usize>>,
}

impl<'a> Run<'a> {
    fn new(observed: &'a Observed<'a>, order: &'a [EventId]) -> Self {
        let places =
            observed.ids().map(|event| order.iter().position(|&other| other == event)).collect();
        Self { observed, order, places }
    }

    /// Where `event` stands, if it happened.
    fn place(&self, event: EventId) -> Option<usize> {
        self.places.get(event.number() as usize - 1).copied().flatten()
    }

    /// Whether both happened, `first` before `second`.
    fn before(&self, first: EventId, second: EventId) -> bool {
        match (self.place(first), self.place(second)) {
            (Some(first), Some(second)) => first < second,
            _ => false,
        }
    }

    /// Whether `event` happened before the place `at`.
    fn is_done(&self, event: EventId, at: usize) -> bool {
        self.place(event).is_some_and(|place| place < at)
    }

    fn op(&self, event: EventId) -> Op {
        self.observed.event(event).op
    }

    fn thread(&self, event: EventId) -> ThreadId {
        self.observed.event(event).thread
    }

    /// How many events before the place `at` are such.
    fn count(&self, at: usize, is_such: impl Fn(EventId) -> bool) -> usize {
        self.order[..at].iter().filter(|&&event| is_such(event)).count()
    }

    fn obeys_the_rules(&self, free: &[EventId], lost: &[EventId]) -> bool {
        self.order.iter().enumerate().all(|(at, &event)| {
            self.is_in_program_order(event)
                && (free.contains(&event) || self.sees_as_observed(at, event))
                && self.respects_locks(at, event)
                && self.respects_forks_and_joins(at, event)
                && self.respects_conditions(at, event, lost)
                && self.respects_the_rest(at, event)
        })
    }

    /// Rule 1: each thread runs a prefix of its events, in program order.
    fn is_in_program_order(&self, event: EventId) -> bool {
        let earlier = self.observed.events_of(self.thread(event)).filter(|&other| other < event);
        earlier.into_iter().all(|other| self.before(other, event))
    }

    /// The last write of `var` before the place `at`.
    fn last_write(&self, var: VarId, at: usize) -> Option<EventId> {
        let writes =
            |event: EventId| self.op(event).is_write() && self.op(event).var() == Some(var);
        let last = (0..at).filter(|&place| writes(self.order[place])).max();
        last.map(|place| self.order[place])
    }

    /// Rule 2: every read sees the write it saw when observed.
    fn sees_as_observed(&self, at: usize, event: EventId) -> bool {
        let op = self.op(event);
        match op.var() {
            Some(var) if op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _)) => {
                self.last_write(var, at) == self.observed.saw[event.number() as usize - 1]
            }
            _ => true,
        }
    }

    /// Whether `thread` has acquired `lock` in that mode more often than released it before `at`.
    fn holds(&self, thread: ThreadId, lock: LockId, shared: bool, at: usize) -> bool {
        let own = |event| self.thread(event) == thread;
        let acquires =
            self.count(at, |id| own(id) && acquired(self.op(id)) == Some((lock, shared)));
        let releases =
            self.count(at, |id| own(id) && released(self.op(id)) == Some((lock, shared)));
        acquires > releases
    }

    /// Whether `holder` keeps another thread from acquiring `lock` in that mode at the place `at`.
    fn keeps_out(&self, holder: ThreadId, lock: LockId, shared: bool, at: usize) -> bool {
        self.holds(holder, lock, false, at) || (!shared && self.holds(holder, lock, true, at))
    }

    /// Rule 3: a lock is acquired while no other thread holds it (in shared mode: while no other
    /// thread holds it alone) and released by a holder.
    fn respects_locks(&self, at: usize, event: EventId) -> bool {
        let thread = self.thread(event);
        if let Some((lock, shared)) = acquired(self.op(event)) {
            let mut others = self.observed.threads().filter(|&other| other != thread);
            return !others.any(|other| self.keeps_out(other, lock, shared, at));
        }
        match released(self.op(event)) {
            Some((lock, shared)) => self.holds(thread, lock, shared, at),
            None => true,
        }
    }

    /// Rule 4: a thread runs after its fork; a join comes after the fork and all events of its
    /// thread.
    fn respects_forks_and_joins(&self, at: usize, event: EventId) -> bool {
        let is_started =
            |thread| self.observed.fork_of(thread).is_none_or(|fork| self.is_done(fork, at));
        let is_joinable = match self.op(event) {
            Op::Thread(ThreadOp::Join, child) => {
                is_started(child)
                    && self.observed.events_of(child).all(|other| self.is_done(other, at))
            }
            _ => true,
        };
        is_started(self.thread(event)) && is_joinable
    }

    /// Whether `wait` has begun, not ended, and not been woken before the place `at`.
    fn is_waiting(&self, wait: &Wait, at: usize) -> bool {
        let wakes = |notify| self.is_done(notify, at) && self.before(wait.begin, notify);
        self.is_done(wait.begin, at)
            && !wait.end.is_some_and(|end| self.is_done(end, at))
            && !wait.notify.is_some_and(wakes)
    }

    /// Rule 5: a notify comes while the waits that it woke are waiting. One that woke nobody, and
    /// a notify-all, come while nobody else is waiting but waits that were there when it was
    /// observed and timed out. A wake comes after the notify that woke it. It is as if a wait that
    /// ends with a wake of `lost` had been woken by nobody.
    fn respects_conditions(&self, at: usize, event: EventId, lost: &[EventId]) -> bool {
        let observed = self.observed;
        match self.op(event) {
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, on) => {
                let all = matches!(self.op(event), Op::Condition(ConditionOp::NotifyAll, _));
                let is_lost = |wait: &&Wait| wait.end.is_some_and(|end| lost.contains(&end));
                let woken = || observed.woken_by(event).filter(|wait| !is_lost(wait));
                let woken_wait = woken().all(|wait| self.is_waiting(wait, at));
                let woke_nobody = woken().next().is_none();
                let mut others = observed
                    .waits
                    .iter()
                    .filter(|wait| wait.condition == on && wait.notify != Some(event))
                    .filter(|wait| self.is_waiting(wait, at));
                let nobody_else = others.all(|wait| observed.is_spared(wait, event));
                woken_wait && (nobody_else || !(all || woke_nobody))
            }
            Op::Condition(ConditionOp::Wake, _) => {
                let own = observed.waits.iter().find(|wait| wait.end == Some(event));
                let notify = own.and_then(|wait| wait.notify);
                notify.is_some_and(|notify| self.is_done(notify, at))
            }
            _ => true,
        }
    }

    /// Rule 6: a departure comes after all arrivals of its generation, an arrival after all
    /// arrivals of earlier generations; a take finds the semaphore above zero or, where its start
    /// is not known, comes after the post it used; an object is freed after it was allocated.
    fn respects_the_rest(&self, at: usize, event: EventId) -> bool {
        let index = event.number() as usize - 1;
        match self.op(event) {
            Op::Barrier(..) => {
                self.observed.arrivals[index].iter().all(|&arrival| self.is_done(arrival, at))
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                match self.observed.trace.declared().start(semaphore) {
                    Some(start) => {
                        let posts = self.count(at, |id| {
                            self.op(id) == Op::Semaphore(SemaphoreOp::Post, semaphore)
                        });
                        let takes = self.count(at, |id| {
                            self.op(id) == Op::Semaphore(SemaphoreOp::Take, semaphore)
                        });
                        start as usize + posts > takes
                    }
                    None => self.observed.post[index].is_none_or(|post| self.is_done(post, at)),
                }
            }
            Op::Object(ObjectOp::Free, object) => {
                let is_birth = |id| self.op(id) == Op::Object(ObjectOp::Alloc, object);
                // Perhaps nobody saw it allocated.
                self.observed.ids().filter(|&id| is_birth(id)).all(|id| self.is_done(id, at))
            }
            _ => true,
        }
    }

    /// Each of `events` is the next of its thread, which has started, and no two share a thread.
    fn are_next(&self, events: &[EventId]) -> bool {
        let end = self.order.len();
        let is_next = |event: EventId| {
            let thread = self.thread(event);
            let mut earlier = self.observed.events_of(thread).filter(|&other| other < event);
            self.place(event).is_none()
                && earlier.all(|other| self.is_done(other, end))
                && self.observed.fork_of(thread).is_none_or(|fork| self.is_done(fork, end))
        };
        let is_alone = |event: EventId| {
            events.iter().filter(|&&other| self.thread(other) == self.thread(event)).count() == 1
        };
        events.iter().all(|&event| is_next(event) && is_alone(event))
    }

    /// The same variable, at least one write, not both atomic.
    fn conflict(&self, first: EventId, second: EventId) -> bool {
        let (first, second) = (self.op(first), self.op(second));
        first.var().is_some()
            && first.var() == second.var()
            && (first.is_write() || second.is_write())
            && (!first.is_atomic() || !second.is_atomic())
    }

    /// Whether `end` ends a life, perhaps that of what `access` accesses.
    fn is_end_and_access(&self, end: EventId, access: EventId) -> bool {
        matches!(self.op(end), Op::Object(ObjectOp::Free, _)) && self.op(access).var().is_some()
    }

    /// Whether `blocked` acquires a lock that, at the end, the thread of `holder` keeps it from, or
    /// joins that thread.
    fn is_blocked_by(&self, blocked: EventId, holder: EventId) -> bool {
        if let Op::Thread(ThreadOp::Join, child) = self.op(blocked) {
            return child == self.thread(holder);
        }
        acquired(self.op(blocked)).is_some_and(|(lock, shared)| {
            self.keeps_out(self.thread(holder), lock, shared, self.order.len())
        })
    }

    /// Whether `event`, the next of its thread, waits at the end, for as long as it takes.
    fn is_stuck(&self, event: EventId) -> bool {
        let (end, observed) = (self.order.len(), &self.observed);
        let declared = observed.trace.declared();
        let wait = observed.waits.iter().find(|wait| wait.end == Some(event));
        let begin = wait.map_or(event, |wait| wait.begin);
        let before = observed.events_of(self.thread(event)).rfind(|&id| id < begin);
        if before.is_some_and(|id| self.op(id) == Op::Marker(Marker::Timed)) {
            return false;
        }
        match self.op(event) {
            Op::Condition(ConditionOp::Wake, _) => {
                wait.is_some_and(|wait| self.is_waiting(wait, end))
            }
            Op::Thread(ThreadOp::Join, child) => {
                !observed.events_of(child).all(|id| self.is_done(id, end))
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                declared.start(semaphore).is_some() && !self.respects_the_rest(end, event)
            }
            Op::Barrier(BarrierOp::Depart, barrier) => {
                declared.parties(barrier).is_some() && !self.respects_the_rest(end, event)
            }
            op => acquired(op).is_some() && !self.respects_locks(end, event),
        }
    }

    /// Whether all threads but those of `events` have run to their ends, or were never started.
    fn is_over_but_for(&self, events: &[EventId]) -> bool {
        let is_over = |thread| {
            let mut own = self.observed.events_of(thread);
            let fork = self.observed.fork_of(thread);
            events.iter().any(|&event| self.thread(event) == thread)
                || fork.is_some_and(|fork| self.place(fork).is_none())
                || own.all(|event| self.place(event).is_some())
        };
        self.observed.threads().all(is_over)
    }

    /// Whether nothing that happened rests on what `read`, if it is a read and happened, saw: its
    /// thread has not gone on, and nobody saw what an update made of the value, but for reads that
    /// are `free`, which may have seen anything.
    fn stops_at(&self, read: EventId, free: &[EventId]) -> bool {
        let saw = |event: EventId| self.observed.saw[event.number() as usize - 1];
        let rests_on_it = |event: &EventId| {
            (saw(*event) == Some(read) && !free.contains(event))
                || (self.thread(*event) == self.thread(read) && *event > read)
        };
        self.place(read).is_none()
            || !self.op(read).is_read()
            || !self.order.iter().any(rests_on_it)
    }

    /// Whether `events`, no two alike, are the last of their threads, and all that happened is in
    /// one of those.
    fn reaches(&self, events: &[EventId]) -> bool {
        let thread = |event: EventId| self.observed.trace.event(event).thread;
        let count = |event: EventId| events.iter().filter(|&&other| other == event).count();
        let follows = |late: EventId, early: EventId| thread(late) == thread(early) && late > early;
        events.iter().all(|&event| {
            self.place(event).is_some()
                && count(event) == 1
                && !self.order.iter().any(|&other| follows(other, event))
        }) && self
            .order
            .iter()
            .all(|&event| events.iter().any(|&last| thread(last) == thread(event)))
    }

    /// Whether all events happened, `write` is a write of `var`, and none comes after it.
    fn leaves(&self, var: VarId, write: EventId) -> bool {
        let writes =
            |event: EventId| self.op(event).is_write() && self.op(event).var() == Some(var);
        let is_last =
            |event: EventId| event == write || !writes(event) || self.before(event, write);
        self.observed.ids().all(|event| self.place(event).is_some() && is_last(event))
            && self.place(write).is_some()
            && writes(write)
    }

    /// Whether `read` saw `write`, which is known not to be what it saw when observed, and its
    /// thread stopped there if it has to.
    fn sees_another(&self, read: EventId, write: Option<EventId>, after: After) -> bool {
        let Some(at) = self.place(read) else { return false };
        let op = self.op(read);
        let Some(var) = op.var().filter(|_| op.is_read()) else { return false };
        let is_known = !matches!(op, Op::Access(AccessOp::UnknownRead, _));
        let saw = |event: EventId| self.observed.saw[event.number() as usize - 1];
        is_known
            && self.last_write(var, at) == write
            && saw(read) != write
            && (after == After::RunsOn || self.stops_at(read, &[]))
    }
}
