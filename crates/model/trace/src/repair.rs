//! Repair: the least change that makes events well formed.
//!
//! Other people's recorders are sometimes wrong at the edges: a fork is logged after its thread
//! already ran, a wait gives its lock away unseen, a join that timed out is logged as one that
//! did not. Going through the events once, each that cannot happen is given the smallest change
//! that lets it: a release that never matched is dropped, a lock that was given away unseen is
//! released before another thread takes it and taken again before its holder goes on, and so
//! on; `Repairer::let_happen` lists them all. Threads known by two spellings are taken as one
//! first. Later events are judged as they stand after the changes before them.
//!
//! What comes out is well formed; whether it is what happened, nobody can know, so every change
//! is listed and reports say that the trace was repaired.

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};

use reweave_base::{FxHashMap, FxHashSet, Id, IndexVec, Interner};

use crate::builder::TraceBuilder;
use crate::columns::{Columns, Values};
use crate::monitor::{Monitor, Violation};
use crate::names::Names;
use crate::op::{
    BarrierId, BarrierOp, ConditionOp, EventId, LockId, LockOp, Op, OpCode, OpKind, SemaphoreId,
    ThreadId, ThreadOp,
};
use crate::views::Mode;
use crate::wait_matching;

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
pub(crate) fn repair(builder: &mut TraceBuilder) -> Vec<Repair> {
    let mut repairs = merge_aliases(builder);
    if !in_range(builder) {
        return repairs;
    }
    loop {
        let outcome = Repairer::new(builder).run();
        match outcome {
            Ok((output, changes)) => {
                let Repaired { columns, values, causes, kept } = output.finish();
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
    repairs.extend(merge_aliases(builder));
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
    let events = wait_matching::condition_events(&builder.columns);
    let matching = wait_matching::match_waits(&events, &builder.columns, builder.columns.len());
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
                format!("forgot the party count of barrier `{name}`: fewer arrived in a generation")
            }
        };
        Repair { event: None, change }
    }
}

/// A lock that a thread gave away unseen and must take again before it goes on.
struct PendingReacquire {
    lock: LockId,
    mode: Mode,
    /// How often it will still release it.
    depth: u32,
}

struct Repairer<'a> {
    names: &'a Names,
    columns: &'a Columns,
    values: &'a Values,
    monitor: Monitor,
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
    pending_reacquires: IndexVec<ThreadId, Vec<PendingReacquire>>,
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
            monitor: Monitor::new(&builder.declared),
            output: Output::default(),
            repairs: Vec::new(),
            remaining,
            late_fork: IndexVec::from_elem(None, threads_count),
            hoisted: Vec::new(),
            postponed: (0..threads_count).map(|_| Vec::new()).collect(),
            pending_reacquires: (0..threads_count).map(|_| Vec::new()).collect(),
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
            let Err(violation) = self.monitor.step(next, event.thread, event.op) else {
                self.emit(id);
                return Ok(());
            };
            match violation {
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
        if self.monitor.step(self.output.next(), thread, op).is_err() {
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
        if let Some(condition) = self.monitor.waits_on(event.thread)
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
        let (mode, depth) = self.monitor.force_release(lock, holder);
        let (_, release) = lock_ops(lock, mode);
        for _ in 0..depth {
            self.output.push_after_last(self.made_up(id, holder, release));
        }
        let depth = depth + self.surplus.remove(&(holder, lock, mode)).unwrap_or(0);
        let thread = self.names.threads.name(holder);
        let release = self.names.spell(release);
        let text = format!("put `{thread}|{release}` where that thread last did something");
        self.note(id, &text);
        self.pending_reacquires[holder].push(PendingReacquire { lock, mode, depth });
    }

    /// Takes the locks again that the thread of `id` gave away unseen, before it goes on.
    ///
    /// A thread that goes on by releasing the lock is only said to have released it earlier. If
    /// another thread has the lock by now it is not taken again, and its release is dropped.
    fn take_back(&mut self, id: EventId) {
        let event = self.columns.event(id);
        if self.monitor.waits_on(event.thread).is_some() {
            // It wakes with `id`, and takes its locks after that.
            return;
        }
        let acquires = matches!(event.op, Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _));
        if acquires && self.output.has_just_woken(event.thread) {
            // The acquire that ends the wait comes first, or it is the one that is pending.
            let is_this =
                |pending: &PendingReacquire| lock_ops(pending.lock, pending.mode).0 == event.op;
            if !self.pending_reacquires[event.thread].iter().any(is_this) {
                return;
            }
        }
        for pending in std::mem::take(&mut self.pending_reacquires[event.thread]) {
            let (acquire, release) = lock_ops(pending.lock, pending.mode);
            if pending.depth == 1 && event.op == release {
                continue;
            }
            // A release was lost, not a taking again, if the thread acquires the lock itself.
            let taken = event.op == acquire || self.insert(id, event.thread, acquire);
            if taken && pending.depth > 1 {
                self.surplus.insert((event.thread, pending.lock, pending.mode), pending.depth - 1);
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
        if self.monitor.depth(lock, event.thread, mode) != 1 {
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

// What comes out of repair: events in order, some of them put in later at an earlier place.

/// An event on its way out.
#[derive(Clone, Copy)]
struct Outgoing {
    thread: ThreadId,
    code: OpCode,
    operand: u32,
    site: u32,
    value: Option<i64>,
    /// The event that it was, or for whose sake it was put in.
    cause: EventId,
    /// Whether it is that event.
    is_kept: bool,
}

/// Events after repair.
struct Repaired {
    columns: Columns,
    values: Values,
    /// The event that each was, or for whose sake it was put in.
    causes: IndexVec<EventId, EventId>,
    /// The event that each was; none if it was put in.
    kept: IndexVec<EventId, Option<EventId>>,
}

/// The events so far.
#[derive(Default)]
struct Output {
    events: Vec<Outgoing>,
    /// Events that come before the one at that place.
    earlier: Vec<(usize, Outgoing)>,
    /// The last event of each thread, and the one before it.
    last: IndexVec<ThreadId, [Option<usize>; 2]>,
}

impl Output {
    /// The id that the next event has as things stand.
    fn next(&self) -> EventId {
        EventId::from_index(self.events.len())
    }

    /// The event that the one at `id` was, or for whose sake it was put in.
    fn cause(&self, id: EventId) -> EventId {
        self.events[id.index()].cause
    }

    /// Adds `event` at the end.
    fn push(&mut self, event: Outgoing) {
        let [last, _] = *self.last.get_or_default(event.thread);
        self.last[event.thread] = [Some(self.events.len()), last];
        self.events.push(event);
    }

    /// Whether the last event of `thread` ended a wait.
    fn has_just_woken(&self, thread: ThreadId) -> bool {
        let last = self.last.get(thread).and_then(|&[last, _]| last);
        let kind = last.map(|last| self.events[last].code.kind());
        matches!(kind, Some(OpKind::Wake | OpKind::Timeout))
    }

    /// Puts `event` right after the last event of its thread, which has one. If that is a wait, it
    /// goes before the wait and the release that begins it: after it the thread does nothing until
    /// it wakes.
    fn push_after_last(&mut self, event: Outgoing) {
        let [last, before] = *self.last.get_or_default(event.thread);
        let last = last.expect("whoever holds a lock took it");
        let kind = |at: usize| self.events[at].code.kind();
        let begins = |&at: &usize| matches!(kind(at), OpKind::Release | OpKind::ReleaseShared);
        let place = match kind(last) {
            OpKind::Wait => before.filter(begins).unwrap_or(last),
            _ => last + 1,
        };
        self.earlier.push((place, event));
    }

    /// All events in their order, and where each came from.
    fn finish(mut self) -> Repaired {
        self.earlier.sort_by_key(|&(place, _)| place);
        let mut earlier = self.earlier.into_iter().peekable();
        let (mut columns, mut values) = (Columns::default(), Values::default());
        let (mut causes, mut kept) = (IndexVec::new(), IndexVec::new());
        let mut emit = |event: Outgoing| {
            causes.push(event.cause);
            kept.push(event.is_kept.then_some(event.cause));
            let id = EventId::from_index(columns.len());
            let thread = event.thread.index() as u32;
            columns.push(thread, event.code, event.operand, event.site);
            if let Some(value) = event.value {
                values.set(id, value);
            }
        };
        for (place, event) in self.events.into_iter().enumerate() {
            while let Some((_, put_in)) = earlier.next_if(|&(before, _)| before <= place) {
                emit(put_in);
            }
            emit(event);
        }
        for (_, put_in) in earlier {
            emit(put_in);
        }
        Repaired { columns, values, causes, kept }
    }
}

// Threads known by two spellings: `fork(2)` starts what then runs as `T2`.

/// Takes each pair of spellings of which one is only forked or joined, and the other only runs
/// in between, as one thread: the one that runs.
fn merge_aliases(builder: &mut TraceBuilder) -> Vec<Repair> {
    let pairs = two_spellings(&builder.names, &builder.columns);
    if pairs.is_empty() {
        return Vec::new();
    }
    let old = std::mem::take(&mut builder.names.threads);
    let mut target: IndexVec<ThreadId, ThreadId> = old.entries().map(|(id, _)| id).collect();
    for &(named, runs) in &pairs {
        target[named] = runs;
    }
    let mut threads = Interner::new();
    let renumbered: IndexVec<ThreadId, ThreadId> =
        target.iter().map(|&id| threads.intern(old.name(id))).collect();
    let columns = &mut builder.columns;
    for index in 0..columns.len() {
        let renumber = |index: &mut u32| {
            if let Some(id) = renumbered.get(ThreadId::from_index(*index as usize)) {
                *index = id.index() as u32;
            }
        };
        if matches!(columns.codes[index].kind(), OpKind::Fork | OpKind::Join) {
            renumber(&mut columns.operands[index]);
        }
        renumber(&mut columns.threads[index]);
    }
    builder.names.threads = threads;
    let text = |&(named, runs): &(ThreadId, ThreadId)| {
        format!("took threads `{}` and `{}` as one", old.name(named), old.name(runs))
    };
    pairs.iter().map(|pair| Repair { event: None, change: text(pair) }).collect()
}

/// When a thread is spoken of, and when it runs; positions of events.
#[derive(Clone, Copy, Default)]
struct Spans {
    runs: Option<(usize, usize)>,
    /// Whether its last event is a wait, so that it never ends.
    waits: bool,
    fork: Option<usize>,
    joins: Option<(usize, usize)>,
}

/// Pairs of a thread that is forked or joined and never runs, and one that runs and is neither,
/// whose names differ by a leading `T`, and that fit: the fork before the run, the joins after.
pub(crate) fn two_spellings(names: &Names, columns: &Columns) -> Vec<(ThreadId, ThreadId)> {
    let threads = &names.threads;
    let other_spelling = |name: &str| match name.strip_prefix('T') {
        Some(rest) if !rest.is_empty() => threads.get(rest),
        _ => threads.get(&format!("T{name}")),
    };
    let pairs: Vec<(ThreadId, ThreadId)> = threads
        .entries()
        .filter_map(|(id, name)| other_spelling(name).map(|other| (id, other)))
        .collect();
    if pairs.is_empty() {
        return pairs;
    }
    let spans = spans(threads.len(), columns);
    let fits = |&(named, runs): &(ThreadId, ThreadId)| {
        let (named, runs) = (spans[named], spans[runs]);
        let Some((first, last)) = runs.runs else { return false };
        named.runs.is_none()
            && (named.fork.is_some() || named.joins.is_some())
            && runs.fork.is_none()
            && runs.joins.is_none()
            && named.fork.is_none_or(|fork| fork < first)
            && named.joins.is_none_or(|(join, _)| join > last && !runs.waits)
    };
    let mut pairs: Vec<(ThreadId, ThreadId)> = pairs.into_iter().filter(fits).collect();
    // Of several spellings of one thread only the first is taken: it cannot be forked twice.
    let mut taken = FxHashSet::default();
    pairs.retain(|&(_, runs)| taken.insert(runs));
    pairs
}

fn spans(threads_count: usize, columns: &Columns) -> IndexVec<ThreadId, Spans> {
    let mut spans = IndexVec::from_elem(Spans::default(), threads_count);
    let widen = |span: &mut Option<(usize, usize)>, at: usize| {
        *span = Some((span.map_or(at, |(first, _)| first), at));
    };
    for index in 0..columns.len() {
        let thread = columns.threads[index] as usize;
        let operand = columns.operands[index] as usize;
        if thread >= threads_count {
            continue;
        }
        let own = &mut spans[ThreadId::from_index(thread)];
        widen(&mut own.runs, index);
        own.waits = columns.codes[index].kind() == OpKind::Wait;
        if operand >= threads_count {
            continue;
        }
        let spoken_of = &mut spans[ThreadId::from_index(operand)];
        match columns.codes[index].kind() {
            OpKind::Fork => _ = spoken_of.fork.get_or_insert(index),
            OpKind::Join => widen(&mut spoken_of.joins, index),
            _ => {}
        }
    }
    spans
}

#[cfg(test)]
mod tests;
