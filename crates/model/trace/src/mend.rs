//! Mending: the least change that makes events well formed.
//!
//! Other people's recorders are sometimes wrong at the edges: a fork is logged after its thread
//! already ran, a wait gives its lock away unseen, a join that timed out is logged as one that
//! did not. Going through the events once, each that cannot happen is given the smallest change
//! that lets it: a release that never matched is dropped, a lock that was given away unseen is
//! given back before another thread takes it and taken again before its holder goes on, and so
//! on; `Repairer::let_happen` lists them all. Threads known by two spellings are taken as one
//! first. Later events are judged as they stand after the changes before them.
//!
//! What comes out is well formed; whether it is what happened, nobody can know, so every change
//! is listed and reports say that the trace was repaired.

mod aliases;
mod output;

pub(crate) use aliases::two_spellings;

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};

use reweave_base::{FxHashMap, Id, IndexVec};

use crate::builder::TraceBuilder;
use crate::columns::{Columns, Values};
use crate::discipline::{Monitor, Violation};
use crate::names::Names;
use crate::op::{
    BarrierId, BarrierOp, ConditionOp, EventId, LockId, LockOp, Op, SemaphoreId, ThreadId, ThreadOp,
};
use crate::signals;
use crate::views::Mode;
use output::{Mended, Outgoing, Output};

/// One change that was made to let events happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The event that could not happen as it stood, as it was numbered before any change; none
    /// if the change concerns the trace as a whole.
    pub event: Option<EventId>,
    /// What was changed and why, for people.
    pub change: String,
}

impl Display for Repair {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(event) = self.event {
            write!(f, "event {}: ", event.number())?;
        }
        f.write_str(&self.change)
    }
}

/// Changes the events of `builder` until they are well formed, and lists the changes.
///
/// Events that name what does not exist are left as they are, for the check to refuse.
pub(crate) fn mend(builder: &mut TraceBuilder) -> Vec<Repair> {
    let mut repairs = aliases::merge(builder);
    if !in_range(builder) {
        return repairs;
    }
    loop {
        let outcome = Repairer::new(builder).run();
        match outcome {
            Ok((output, changes)) => {
                let Mended { columns, values, causes, kept } = output.finish();
                (builder.columns, builder.values) = (columns, values);
                builder.origins = std::mem::take(&mut builder.origins).reordered(&kept);
                repairs.extend(changes);
                explain_wakes(builder, &causes, &mut repairs);
                break;
            }
            Err(declaration) => repairs.push(declaration.forget(builder)),
        }
    }
    // Threads that no longer run may now be other spellings of ones that do.
    repairs.extend(aliases::merge(builder));
    repairs
}

/// Whether every event names things that exist.
fn in_range(builder: &TraceBuilder) -> bool {
    let (columns, names) = (&builder.columns, &builder.names);
    let operand_fits = |index: usize| {
        let count = names.count(columns.codes[index].kind().operand());
        (columns.operands[index] as usize) < count
    };
    columns.len() <= EventId::COUNT_MAX
        && columns.threads.iter().all(|&thread| (thread as usize) < names.threads.len())
        && columns.sites.iter().all(|&site| (site as usize) < names.sites.len())
        && (0..columns.len()).all(operand_fits)
}

/// Turns wakes that no notify explains into timeouts.
fn explain_wakes(
    builder: &mut TraceBuilder,
    causes: &IndexVec<EventId, EventId>,
    repairs: &mut Vec<Repair>,
) {
    let events = signals::condition_events(&builder.columns);
    let matching = signals::match_waits(&events, &builder.columns, builder.columns.len());
    for (event, condition) in matching.unexplained {
        let (code, operand) = Op::Condition(ConditionOp::Timeout, condition).encode();
        builder.columns.codes[event.index()] = code;
        builder.columns.operands[event.index()] = operand;
        let name = builder.names.conditions.name(condition);
        let change = format!("took a wake from `{name}` that no notify explains for a timeout");
        repairs.push(Repair { event: Some(causes[event]), change });
    }
}

/// A declared number that events contradict.
enum Declaration {
    Start(SemaphoreId),
    Parties(BarrierId),
}

impl Declaration {
    fn forget(self, builder: &mut TraceBuilder) -> Repair {
        let change = match self {
            Self::Start(semaphore) => {
                *builder.declared.starts.get_or_default(semaphore) = None;
                let name = builder.names.semaphores.name(semaphore);
                format!("forgot the start value of semaphore `{name}`: more was taken from it")
            }
            Self::Parties(barrier) => {
                *builder.declared.parties.get_or_default(barrier) = None;
                let name = builder.names.barriers.name(barrier);
                format!("forgot the party count of barrier `{name}`: fewer arrived in a round")
            }
        };
        Repair { event: None, change }
    }
}

/// A lock that a thread gave away unseen and must take again before it goes on.
struct Owed {
    lock: LockId,
    mode: Mode,
    /// How often it will still release it.
    depth: u32,
}

struct Repairer<'a> {
    names: &'a Names,
    columns: &'a Columns,
    values: &'a Values,
    discipline: Monitor<'a>,
    output: Output,
    repairs: Vec<Repair>,
    /// Events still to come, of each thread.
    remaining: IndexVec<ThreadId, usize>,
    /// The fork that each thread must wait for, if that comes later than its first event.
    late_fork: IndexVec<ThreadId, Option<EventId>>,
    /// Forks to let happen before the event of the same index, which is their thread's first.
    hoisted: Vec<(EventId, EventId)>,
    /// Events of threads that wait for their fork.
    postponed: IndexVec<ThreadId, Vec<EventId>>,
    owed: IndexVec<ThreadId, Vec<Owed>>,
    /// A lock that was held several times over is taken again once; so many of its releases are
    /// still to be dropped.
    surplus: FxHashMap<(ThreadId, LockId, Mode), u32>,
}

impl<'a> Repairer<'a> {
    fn new(builder: &'a TraceBuilder) -> Self {
        let threads_count = builder.names.threads.len();
        let mut remaining = IndexVec::from_elem(0, threads_count);
        for &thread in &builder.columns.threads {
            remaining[ThreadId::from_index(thread as usize)] += 1;
        }
        let mut repairer = Self {
            names: &builder.names,
            columns: &builder.columns,
            values: &builder.values,
            discipline: Monitor::new(&builder.names, &builder.declared),
            output: Output::default(),
            repairs: Vec::new(),
            remaining,
            late_fork: IndexVec::from_elem(None, threads_count),
            hoisted: Vec::new(),
            postponed: (0..threads_count).map(|_| Vec::new()).collect(),
            owed: (0..threads_count).map(|_| Vec::new()).collect(),
            surplus: FxHashMap::default(),
        };
        repairer.find_late_forks();
        repairer
    }

    /// Decides for each thread that runs before its fork whether the fork moves up (its own
    /// thread did nothing in between) or the thread's early events move down.
    fn find_late_forks(&mut self) {
        let threads_count = self.names.threads.len();
        let mut first: IndexVec<ThreadId, Option<EventId>> =
            IndexVec::from_elem(None, threads_count);
        let mut last = first.clone();
        let mut forked = IndexVec::from_elem(false, threads_count);
        for (id, event) in self.columns.events() {
            if let Op::Thread(ThreadOp::Fork, child) = event.op
                && child != event.thread
                && !std::mem::replace(&mut forked[child], true)
                && let Some(early) = first[child]
            {
                let parent_was_idle = last[event.thread].is_some_and(|before| before < early);
                if parent_was_idle {
                    self.hoisted.push((early, id));
                }
                self.late_fork[child] = Some(id);
            }
            first[event.thread].get_or_insert(id);
            last[event.thread] = Some(id);
        }
        // A fork whose own thread must wait for its fork cannot move up.
        let (columns, late_fork) = (self.columns, &mut self.late_fork);
        self.hoisted.retain(|&(_, fork)| late_fork[columns.event(fork).thread].is_none());
        for &(early, _) in &self.hoisted {
            late_fork[columns.event(early).thread] = None;
        }
        self.hoisted.sort_unstable();
    }

    fn run(mut self) -> Result<(Output, Vec<Repair>), Declaration> {
        let hoisted = std::mem::take(&mut self.hoisted);
        let moved: Vec<EventId> = {
            let mut forks: Vec<EventId> = hoisted.iter().map(|&(_, fork)| fork).collect();
            forks.sort_unstable();
            forks
        };
        let mut next_hoisted = hoisted.into_iter().peekable();
        for (id, _) in self.columns.events() {
            while let Some((_, fork)) = next_hoisted.next_if(|&(before, _)| before == id) {
                self.note(fork, "moved it up to before its thread's first event");
                self.process(fork)?;
            }
            if moved.binary_search(&id).is_err() {
                self.process(id)?;
            }
        }
        self.release_postponed()?;
        Ok((self.output, self.repairs))
    }

    /// Threads still waiting for a fork that waits for them: their forks are dropped.
    fn release_postponed(&mut self) -> Result<(), Declaration> {
        loop {
            let stuck = self.postponed.entries().filter(|(_, events)| !events.is_empty());
            let Some((thread, _)) = stuck.min_by_key(|(_, events)| events[0]) else {
                return Ok(());
            };
            self.late_fork[thread] = None;
            let events = std::mem::take(&mut self.postponed[thread]);
            for event in events {
                self.process(event)?;
            }
        }
    }

    /// Lets `first`, and whatever waited for it, happen or be dropped.
    fn process(&mut self, first: EventId) -> Result<(), Declaration> {
        let mut queue = VecDeque::from([first]);
        while let Some(id) = queue.pop_front() {
            let event = self.columns.event(id);
            if self.late_fork[event.thread].is_some() {
                self.postponed[event.thread].push(id);
                continue;
            }
            self.remaining[event.thread] -= 1;
            self.let_happen(id)?;
            if let Op::Thread(ThreadOp::Fork, child) = event.op
                && self.late_fork[child] == Some(id)
            {
                self.late_fork[child] = None;
                let early = std::mem::take(&mut self.postponed[child]);
                if !early.is_empty() {
                    let text = format!(
                        "moved what thread `{}` did before it, {} events, down to after it",
                        self.names.threads.name(child),
                        early.len()
                    );
                    self.note(id, &text);
                }
                for event in early.into_iter().rev() {
                    queue.push_front(event);
                }
            }
        }
        Ok(())
    }

    /// Lets `id` happen after the change that it needs, or drops it.
    fn let_happen(&mut self, id: EventId) -> Result<(), Declaration> {
        let event = self.columns.event(id);
        if let Op::Thread(ThreadOp::Join, child) = event.op
            && child != event.thread
            && self.remaining[child] > 0
        {
            self.drop_event(id, "its thread goes on afterwards");
            return Ok(());
        }
        self.stop_waiting(id);
        self.take_back(id);
        if self.is_surplus(id) {
            self.drop_event(id, "its lock was taken again only once");
            return Ok(());
        }
        loop {
            let next = self.output.next();
            let Err((_, breach)) = self.discipline.step(next, event.thread, event.op) else {
                self.emit(id);
                return Ok(());
            };
            match breach {
                Violation::Held { lock, holder } => self.give_away(id, lock, holder),
                Violation::StillInside(barrier) => {
                    if !self.insert(id, event.thread, Op::Barrier(BarrierOp::Depart, barrier)) {
                        return Err(Declaration::Parties(barrier));
                    }
                }
                Violation::TooFewArrived { barrier, .. } => {
                    return Err(Declaration::Parties(barrier));
                }
                Violation::BelowZero(semaphore) => return Err(Declaration::Start(semaphore)),
                other => {
                    let cause = |other| if other == next { id } else { self.output.cause(other) };
                    let reason = other.explain(id, self.names, cause).reason;
                    self.drop_event(id, &reason);
                    return Ok(());
                }
            }
        }
    }
}

impl Repairer<'_> {
    /// Adds `id` as it stands.
    fn emit(&mut self, id: EventId) {
        let index = id.index();
        self.output.push(Outgoing {
            thread: self.columns.event(id).thread,
            code: self.columns.codes[index],
            operand: self.columns.operands[index],
            site: self.columns.sites[index],
            value: self.values.get(id),
            cause: id,
            is_kept: true,
        });
    }

    /// An event that was not there, for the sake of `id`.
    fn made_up(&self, id: EventId, thread: ThreadId, op: Op) -> Outgoing {
        let (code, operand) = op.encode();
        let site = self.columns.sites[id.index()];
        Outgoing { thread, code, operand, site, value: None, cause: id, is_kept: false }
    }

    /// Adds an event that was not there before `id`; false if it cannot happen.
    fn insert(&mut self, id: EventId, thread: ThreadId, op: Op) -> bool {
        if self.discipline.step(self.output.next(), thread, op).is_err() {
            return false;
        }
        self.output.push(self.made_up(id, thread, op));
        let thread = self.names.threads.name(thread);
        self.note(id, &format!("put `{thread}|{}` before it", self.names.spell(op)));
        true
    }

    fn drop_event(&mut self, id: EventId, reason: &str) {
        let event = self.columns.event(id);
        let thread = self.names.threads.name(event.thread);
        let text = format!("dropped `{thread}|{}`: {reason}", self.names.spell(event.op));
        self.note(id, &text);
    }

    fn note(&mut self, event: EventId, change: &str) {
        self.repairs.push(Repair { event: Some(event), change: change.into() });
    }

    /// Lets a thread that waits, and goes on with `id` as if it did not, time out.
    fn stop_waiting(&mut self, id: EventId) {
        let event = self.columns.event(id);
        if let Some(condition) = self.discipline.waits_on(event.thread)
            && !matches!(event.op, Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _))
        {
            let woke =
                self.insert(id, event.thread, Op::Condition(ConditionOp::Timeout, condition));
            assert!(woke, "a thread that waits can time out");
        }
    }

    /// `holder` gave `lock` away unseen, as a wait does: it is said to have released it after
    /// whatever it did last, and must take it again before it goes on.
    fn give_away(&mut self, id: EventId, lock: LockId, holder: ThreadId) {
        let (mode, depth) = self.discipline.give_away(lock, holder);
        let (_, release) = lock_ops(lock, mode);
        for _ in 0..depth {
            self.output.push_after_last(self.made_up(id, holder, release));
        }
        let depth = depth + self.surplus.remove(&(holder, lock, mode)).unwrap_or(0);
        let thread = self.names.threads.name(holder);
        let release = self.names.spell(release);
        let text = format!("put `{thread}|{release}` where that thread last did something");
        self.note(id, &text);
        self.owed[holder].push(Owed { lock, mode, depth });
    }

    /// Takes the locks again that the thread of `id` gave away unseen, before it goes on.
    ///
    /// A thread that goes on by releasing the lock is only said to have released it earlier. If
    /// another thread has the lock by now it is not taken again, and its release is dropped.
    fn take_back(&mut self, id: EventId) {
        let event = self.columns.event(id);
        if self.discipline.waits_on(event.thread).is_some() {
            // It wakes with `id`, and takes its locks after that.
            return;
        }
        let acquires = matches!(event.op, Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _));
        if acquires && self.output.has_just_woken(event.thread) {
            // The acquire that ends the wait comes first, or it is what is owed.
            let owes = |owed: &Owed| lock_ops(owed.lock, owed.mode).0 == event.op;
            if !self.owed[event.thread].iter().any(owes) {
                return;
            }
        }
        for owed in std::mem::take(&mut self.owed[event.thread]) {
            let (acquire, release) = lock_ops(owed.lock, owed.mode);
            if owed.depth == 1 && event.op == release {
                continue;
            }
            // A release was lost, not a taking again, if the thread acquires the lock itself.
            let taken = event.op == acquire || self.insert(id, event.thread, acquire);
            if taken && owed.depth > 1 {
                self.surplus.insert((event.thread, owed.lock, owed.mode), owed.depth - 1);
            }
        }
    }

    /// Whether `id` is the outermost release of a lock that was taken again fewer times than it
    /// will be released.
    fn is_surplus(&mut self, id: EventId) -> bool {
        let event = self.columns.event(id);
        let (lock, mode) = match event.op {
            Op::Lock(LockOp::Release, lock) => (lock, Mode::Exclusive),
            Op::Lock(LockOp::ReleaseShared, lock) => (lock, Mode::Shared),
            _ => return false,
        };
        if self.discipline.depth(lock, event.thread, mode) != 1 {
            return false;
        }
        let Some(left) = self.surplus.get_mut(&(event.thread, lock, mode)) else { return false };
        *left -= 1;
        if *left == 0 {
            self.surplus.remove(&(event.thread, lock, mode));
        }
        true
    }
}

/// The acquire and the release of `lock` in `mode`.
const fn lock_ops(lock: LockId, mode: Mode) -> (Op, Op) {
    match mode {
        Mode::Exclusive => (Op::Lock(LockOp::Acquire, lock), Op::Lock(LockOp::Release, lock)),
        Mode::Shared => {
            (Op::Lock(LockOp::AcquireShared, lock), Op::Lock(LockOp::ReleaseShared, lock))
        }
    }
}

#[cfg(test)]
mod tests;
