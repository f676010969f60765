//! Why each step of a schedule is allowed.
//!
//! The steps are replayed once, with who holds which lock, what each variable holds and how far
//! each thread is; from that each reason is read off. The checker has accepted the schedule before,
//! by other means: what is said here is what it checked, in words.

use reweave_analysis::{Proof, waiting};
use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{
    AccessOp, ConditionOp, EventId, Goal, LockId, LockOp, ObjectOp, Op, Reordering, SemaphoreOp,
    ThreadId, ThreadOp, Trace, VarId,
};

use super::argument::{self, Wait};
use crate::finding::end_of_life;
use crate::schedule::{
    Extent, Label, Row, Seen, Table, observed, prefix_count, step_in_prefix, steps,
};

/// A step with why it is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which step it is, counted from 1.
    pub step: usize,
    /// How many steps before it are not shown.
    pub left_out: usize,
    /// What happens.
    pub event: EventId,
    /// Why it may.
    pub reason: Reason,
}

/// Why a step is allowed. Steps are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It needs nothing but its turn in its thread.
    Next,
    /// It is its thread's first, and this step started the thread.
    Started(usize),
    /// The lock is free, since nobody acquired it before.
    Untaken,
    /// The lock is free, since this thread released it at this step.
    Released(ThreadId, usize),
    /// The thread already holds the lock.
    Nested,
    /// The lock is held in shared mode, as is asked for.
    SharedWith(ThreadId),
    /// It releases what it acquired at this step.
    Releases(usize),
    /// It sees this, as observed.
    Sees(Seen),
    /// It sees the first, where it saw the second; that is what the schedule is to show.
    SeesOther(Seen, Seen),
    /// It is not known what it saw.
    SeesUnknown,
    /// It sees anything: this step freed the memory.
    Freed(usize),
    /// The thread that it waits for has ended, with this step, or ran nothing.
    Ended(ThreadId, Option<usize>),
    /// This step notified it.
    Notified(usize),
    /// Waits may time out at any moment.
    TimesOut,
    /// It wakes so many, who wait.
    Wakes(usize),
    /// All of the barrier generation that it waits for have arrived, the last with this step.
    Arrived(usize),
    /// This step posted the semaphore.
    Posted(usize),
    /// The semaphore is above zero.
    AboveZero,
}

impl Reason {
    /// In a few words.
    pub fn words(self, trace: &Trace, event: EventId) -> String {
        let name = |thread: ThreadId| trace.names().threads.name(thread);
        let own = trace.event(event).thread;
        match self {
            Self::Next => format!("comes next in {}", name(own)),
            Self::Started(step) => format!("{} was started at step {step}", name(own)),
            Self::Untaken => "free: nobody has acquired it yet".to_owned(),
            Self::Released(thread, step) if thread == own => {
                format!("free: {} itself released it at step {step}", name(own))
            }
            Self::Released(thread, step) => {
                format!("free: {} released it at step {step}", name(thread))
            }
            Self::Nested => format!("{} already holds it", name(own)),
            Self::SharedWith(thread) => format!("shared with {}", name(thread)),
            Self::Releases(step) => format!("releases what it acquired at step {step}"),
            Self::Sees(seen) => format!("sees {seen}, as observed"),
            Self::SeesOther(seen, saw) => {
                format!("sees {seen} instead of {saw}: this is the point of the schedule")
            }
            Self::Freed(step) => {
                format!("the memory was freed at step {step}: this is the point of the schedule")
            }
            Self::SeesUnknown => "its writer was not recorded".to_owned(),
            Self::Ended(thread, Some(step)) => format!("{} ended with step {step}", name(thread)),
            Self::Ended(thread, None) => format!("{} has no events", name(thread)),
            Self::Notified(step) => format!("step {step} notified it"),
            Self::TimesOut => "a wait can time out at any moment".to_owned(),
            Self::Wakes(1) => "the thread that it wakes is waiting".to_owned(),
            Self::Wakes(count) => format!("the {count} threads that it wakes are waiting"),
            Self::Arrived(step) => format!("all have arrived, the last at step {step}"),
            Self::Posted(step) => format!("step {step} posted it"),
            Self::AboveZero => "the semaphore is above zero".to_owned(),
        }
    }
}

/// The steps of `proof` that a table of them shows, each with why it is allowed.
pub fn argued(trace: &Trace, proof: &Proof) -> Vec<Step> {
    let table = Table::new(trace, proof, Extent::ARGUED);
    let (mut shown, mut gaps, mut gap) = (Vec::new(), Vec::new(), 0);
    for row in &table.rows {
        match row {
            Row::Event { label: Label::Step(step) | Label::Fault(step), event, .. } => {
                shown.push((*step, *event));
                gaps.push(std::mem::take(&mut gap));
            }
            Row::Gap { count, .. } => gap = *count,
            Row::Event { .. } | Row::Line => {}
        }
    }
    let mut argued = reasons(trace, proof.reordering(), &shown);
    for (step, left_out) in argued.iter_mut().zip(gaps) {
        step.left_out = left_out;
    }
    if let Some(end) = end_of_life(trace, proof) {
        let freed = Replay::new(trace, proof.reordering()).step(end);
        let (free, _) = proof.goal().free_reads();
        for step in argued.iter_mut().filter(|step| free.contains(&step.event)) {
            step.reason = freed.map_or(step.reason, Reason::Freed);
        }
    }
    argued
}

/// Why each of `wanted`, in the order of `reordering`, is allowed.
pub fn reasons(trace: &Trace, reordering: &Reordering, wanted: &[(usize, EventId)]) -> Vec<Step> {
    let mut replay = Replay::new(trace, reordering);
    let mut wanted = wanted.iter().peekable();
    let mut argued = Vec::new();
    for event in steps(trace, reordering) {
        let Some(&&(step, next)) = wanted.peek() else { break };
        if event == next {
            argued.push(Step { step, left_out: 0, event, reason: replay.reason(event) });
            wanted.next();
        }
        replay.happen(event);
    }
    argued
}

/// What is so at the end: why the events that are next can happen, or cannot.
pub fn ending(trace: &Trace, proof: &Proof) -> Vec<String> {
    let names = trace.names();
    let thread = |event: EventId| names.threads.name(trace.event(event).thread);
    match proof.goal() {
        Goal::Race(first, second) => vec![format!(
            "Now event {} is next in {} and event {} is next in {}. Neither waits for the other, so they can happen in either order or at the same time.",
            first.number(),
            thread(*first),
            second.number(),
            thread(*second),
        )],
        Goal::Unordered(first, second) => vec![format!(
            "Event {} in {} and event {} in {} have both happened, and happens-before of this schedule puts neither before the other.",
            first.number(),
            thread(*first),
            second.number(),
            thread(*second),
        )],
        Goal::Deadlock(events) => waits(trace, proof, events),
        Goal::Stuck(events) => {
            let waits: Vec<String> = events.iter().map(|&event| waiting(trace, event)).collect();
            vec![format!(
                "Now {}. All other threads have run all their recorded events, so nobody is left to \
                 change that.",
                waits.join(", ")
            )]
        }
        Goal::Enabled(_)
        | Goal::Order { .. }
        | Goal::Sees { .. }
        | Goal::Reaches(_)
        | Goal::Leaves { .. } => Vec::new(),
    }
}

/// Who waits for whom.
fn waits(trace: &Trace, proof: &Proof, events: &[EventId]) -> Vec<String> {
    let names = trace.names();
    let replay = Replay::new(trace, proof.reordering());
    let circle = argument::waits(trace, events);
    let owners = circle.iter().skip(1).chain(circle.first());
    let wait = |(wait, owner): (&Wait, &Wait)| {
        Some(format!(
            "{} waits for `{}`, which {} acquired at step {}.",
            names.threads.name(wait.section.thread),
            names.locks.name(wait.wants),
            names.threads.name(owner.section.thread),
            replay.step(owner.section.acquire)?
        ))
    };
    let waits: Vec<String> = circle.iter().zip(owners).filter_map(wait).collect();
    vec![format!("Now none of them can continue: {}", waits.join(" "))]
}

/// Who has a lock, and who had it last.
#[derive(Debug, Default)]
struct Holding {
    /// Who has it, how often, and whether in shared mode.
    holders: Vec<(ThreadId, u32, bool)>,
    /// Who released it last, and when.
    last: Option<(ThreadId, usize)>,
}

/// How far a schedule is.
struct Replay<'t> {
    trace: &'t Trace,
    reordering: &'t Reordering,
    scheduled: FxHashMap<EventId, usize>,
    done_count: usize,
    locks: IndexVec<LockId, Holding>,
    writes: IndexVec<VarId, Option<EventId>>,
}

impl<'t> Replay<'t> {
    fn new(trace: &'t Trace, reordering: &'t Reordering) -> Self {
        let prefix_count = prefix_count(reordering);
        let scheduled = reordering.schedule.iter().enumerate();
        let names = trace.names();
        Self {
            trace,
            reordering,
            scheduled: scheduled.map(|(at, &event)| (event, prefix_count + at + 1)).collect(),
            done_count: 0,
            locks: (0..names.locks.len()).map(|_| Holding::default()).collect(),
            writes: IndexVec::from_elem(None, names.vars.len()),
        }
    }

    /// Which step `event` is.
    fn step(&self, event: EventId) -> Option<usize> {
        if self.trace.is_in_prefix(self.reordering, event) {
            return Some(step_in_prefix(self.trace, self.reordering, event));
        }
        self.scheduled.get(&event).copied()
    }

    fn happen(&mut self, event: EventId) {
        self.done_count += 1;
        let happening = self.trace.event(event);
        match happening.op {
            Op::Lock(LockOp::Acquire, lock) => self.acquire_lock(lock, happening.thread, false),
            Op::Lock(LockOp::AcquireShared, lock) => {
                self.acquire_lock(lock, happening.thread, true);
            }
            Op::Lock(LockOp::Release, lock) => self.release_lock(lock, happening.thread, false),
            Op::Lock(LockOp::ReleaseShared, lock) => {
                self.release_lock(lock, happening.thread, true);
            }
            op if op.is_write() => {
                if let Some(var) = op.var() {
                    self.writes[var] = Some(event);
                }
            }
            _ => {}
        }
    }

    fn acquire_lock(&mut self, lock: LockId, thread: ThreadId, shared: bool) {
        let holders = &mut self.locks[lock].holders;
        // Locks can be re-entrant, and a thread may hold one in both modes.
        match holders.iter_mut().find(|it| (it.0, it.2) == (thread, shared)) {
            Some((_, depth, _)) => *depth += 1,
            None => holders.push((thread, 1, shared)),
        }
    }

    fn release_lock(&mut self, lock: LockId, thread: ThreadId, shared: bool) {
        let holding = &mut self.locks[lock];
        let found = holding.holders.iter().position(|it| (it.0, it.2) == (thread, shared));
        let Some(at) = found else { return };
        holding.holders[at].1 -= 1;
        if holding.holders[at].1 == 0 {
            holding.holders.remove(at);
            holding.last = Some((thread, self.done_count));
        }
    }

    fn reason(&self, event: EventId) -> Reason {
        let (trace, happening) = (self.trace, self.trace.event(event));
        let signals = trace.signals();
        let at = |cause: Option<EventId>, reason: fn(usize) -> Reason| {
            cause.and_then(|cause| self.step(cause)).map(reason)
        };
        let reason = match happening.op {
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => {
                Some(self.acquire(event, lock))
            }
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, _) => self.release(event),
            Op::Access(AccessOp::Read | AccessOp::AtomicRead(_) | AccessOp::AtomicUpdate(_), _) => {
                self.sees(event)
            }
            Op::Access(AccessOp::UnknownRead, _) => Some(Reason::SeesUnknown),
            Op::Thread(ThreadOp::Join, child) => {
                let last = trace.lifetime(child).last;
                Some(Reason::Ended(child, last.and_then(|last| self.step(last))))
            }
            Op::Condition(ConditionOp::Wake, _) => at(
                signals.wait_interval(event).and_then(|interval| interval.notify),
                Reason::Notified,
            ),
            Op::Condition(ConditionOp::Timeout, _) => Some(Reason::TimesOut),
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                match signals.woken(event).len() {
                    0 => None,
                    count => Some(Reason::Wakes(count)),
                }
            }
            Op::Barrier(..) => {
                let generation = signals
                    .needed_generation(event)
                    .map(|generation| signals.generation(generation));
                let arrivals = generation.map_or(&[][..], |generation| &generation.arrivals);
                arrivals.iter().filter_map(|&it| self.step(it)).max().map(Reason::Arrived)
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                // With a declared start any post will do, so none is named.
                match trace.declared().start(semaphore) {
                    Some(_) => Some(Reason::AboveZero),
                    None => at(signals.post(event), Reason::Posted),
                }
            }
            Op::Object(ObjectOp::Free, _)
            | Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_), _)
            | Op::Fence(_)
            | Op::Lock(LockOp::Request | LockOp::RequestExclusive, _)
            | Op::Thread(ThreadOp::Fork, _)
            | Op::Condition(ConditionOp::Wait, _)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(ObjectOp::Alloc, _)
            | Op::Marker(_) => None,
        };
        let is_first = trace.position(event) == 0;
        let fork = trace.lifetime(happening.thread).fork.filter(|_| is_first);
        reason.or_else(|| at(fork, Reason::Started)).unwrap_or(Reason::Next)
    }

    fn acquire(&self, event: EventId, lock: LockId) -> Reason {
        let own = self.trace.event(event).thread;
        let Holding { holders, last } = &self.locks[lock];
        let other = holders.iter().find(|(thread, ..)| *thread != own);
        match (holders.iter().any(|(thread, ..)| *thread == own), other, last) {
            (true, ..) => Reason::Nested,
            (false, Some(&(thread, ..)), _) => Reason::SharedWith(thread),
            (false, None, &Some((thread, step))) => Reason::Released(thread, step),
            (false, None, None) => Reason::Untaken,
        }
    }

    fn release(&self, event: EventId) -> Option<Reason> {
        let thread = self.trace.event(event).thread;
        let mut held = self.trace.sections().held(thread, event);
        let section = held.find(|section| section.release == Some(event))?;
        self.step(section.acquire).map(Reason::Releases)
    }

    fn sees(&self, event: EventId) -> Option<Reason> {
        let var = self.trace.event(event).op.var()?;
        let (seen, saw) = (Seen::new(self.writes[var]), observed(self.trace, event)?);
        Some(if seen == saw { Reason::Sees(seen) } else { Reason::SeesOther(seen, saw) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_oracle::reachable::walk;
    use reweave_testkit::generate::{Shape, random};
    use reweave_trace::BarrierOp;

    /// Whether `reason` is so, looked up in the schedule before it.
    fn holds(trace: &Trace, before: &[EventId], step: &Step) -> bool {
        let op = |at: usize| trace.event(before[at - 1]);
        let own = trace.event(step.event);
        let lock_of = |op: Op| match op {
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => Some(lock),
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, lock) => Some(lock),
            _ => None,
        };
        let touches = |event: &EventId| lock_of(trace.event(*event).op) == lock_of(own.op);
        let gives = |op: Op| matches!(op, Op::Lock(LockOp::Release | LockOp::ReleaseShared, _));
        let written = before.iter().rev().copied().find(|&event| {
            let op = trace.event(event).op;
            op.is_write() && op.var() == own.op.var()
        });
        match step.reason {
            Reason::Next | Reason::TimesOut | Reason::SeesUnknown => true,
            Reason::Started(at) => op(at).op == Op::Thread(ThreadOp::Fork, own.thread),
            Reason::Untaken => !before.iter().any(touches),
            Reason::Released(thread, at) => {
                let later = before[at..].iter().filter(|event| touches(event));
                op(at).thread == thread
                    && gives(op(at).op)
                    && lock_of(op(at).op) == lock_of(own.op)
                    && later.count() == 0
            }
            Reason::Nested => before
                .iter()
                .any(|event| touches(event) && trace.event(*event).thread == own.thread),
            Reason::SharedWith(thread) => {
                matches!(own.op, Op::Lock(LockOp::AcquireShared, _)) && thread != own.thread
            }
            Reason::Releases(at) => {
                lock_of(op(at).op) == lock_of(own.op) && op(at).thread == own.thread
            }
            Reason::Sees(seen) => seen == Seen::new(written) && trace.writer(step.event) == written,
            Reason::SeesOther(..) => false,
            Reason::Freed(at) => matches!(op(at).op, Op::Object(ObjectOp::Free, _)),
            Reason::Ended(thread, at) => {
                at.is_none_or(|at| op(at).thread == thread)
                    && trace.thread_events(thread).iter().all(|event| before.contains(event))
            }
            Reason::Notified(at) => {
                matches!(op(at).op, Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _))
            }
            Reason::Wakes(_) => {
                let woken = trace.signals().woken(step.event).iter();
                woken.copied().all(|wait| {
                    let begin = trace.signals().wait_interval(wait).map(|interval| interval.begin);
                    begin.is_some_and(|begin| before.contains(&begin))
                })
            }
            Reason::Arrived(at) => matches!(op(at).op, Op::Barrier(BarrierOp::Arrive, _)),
            Reason::Posted(at) => matches!(op(at).op, Op::Semaphore(SemaphoreOp::Post, _)),
            Reason::AboveZero => matches!(own.op, Op::Semaphore(SemaphoreOp::Take, _)),
        }
    }

    #[test]
    fn what_is_said_of_a_step_is_so_in_its_schedule() {
        let mut kinds = std::collections::BTreeSet::new();
        let shapes =
            Shape::ALL.into_iter().flat_map(|(_, shape)| (0..60).map(move |it| (shape, it)));
        for (shape, seed) in shapes {
            let trace = random(shape.events(40), seed);
            let schedule = walk(&trace, &[], &mut reweave_base::Rng::new(seed));
            let reordering = Reordering::explicit(schedule.clone());
            let wanted: Vec<(usize, EventId)> = (1..).zip(schedule.iter().copied()).collect();
            let argued = reasons(&trace, &reordering, &wanted);
            assert_eq!(argued.len(), schedule.len());
            for step in &argued {
                assert!(holds(&trace, &schedule[..step.step - 1], step), "{step:?}");
                let reason = format!("{:?}", step.reason);
                kinds.insert(reason.split('(').next().unwrap_or("").to_owned());
            }
        }
        assert!(kinds.len() >= 14, "{kinds:?}");
    }
}
