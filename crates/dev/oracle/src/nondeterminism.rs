//! What the three modes mean: every order of a small trace's events, tried one after the other.
//!
//! A search starts where nothing has happened and lets each thread do its next event wherever the
//! mode's rules and the witness allow, until all that the witness asks for has happened or every
//! state was visited. A state is how far each thread has come and, where reads must see what they
//! saw, the last write of each variable. Whatever else decides what may come next follows from
//! which events happened, whatever their order.
//!
//! | mode, kind | which events happen | other reads | waits, semaphores |
//! | --- | --- | --- | --- |
//! | order, 1 and 2 | all | after what they saw | after the observed notify, post |
//! | order, 3 | some of each thread, without the writer | after what they saw | as a correct reordering |
//! | prefix, strict | some of each thread | see what they saw | as a correct reordering |
//! | a final read, order | all | after what they saw | after the observed notify, post |
//! | a final read, prefix and strict | all | see what they saw | as a correct reordering |
//!
//! Exact, and slow: states may be as many as the product of the threads' lengths, times the orders
//! of writes.
//!
//! The notions are those of Sinha, Malik and Gupta, "Efficient predictive analysis for detecting
//! nondeterminism in multi-threaded programs" (FMCAD 2012), made precise: *order* is what the paper
//! decides, the other two are what its definition of a witness asks for.

use reweave_base::{FxHashSet, IndexVec};
use reweave_trace::{
    AccessOp, ConditionId, ConditionOp, EventId, LockId, LockOp, ObjectOp, Op, SemaphoreId,
    SemaphoreOp, ThreadId, ThreadOp, Trace, VarId, WaitInterval,
};

/// The three orders that break a reads-from edge; they order events, and do not ask that the read
/// sees the interfering write and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WitnessKind {
    /// The interfering write, the read, then the writer.
    WriterAfter,
    /// The writer, the interfering write, then the read.
    Between,
    /// The interfering write, then the read; the writer does not happen.
    WriterAbsent,
}

impl WitnessKind {
    const ALL: [Self; 3] = [Self::WriterAfter, Self::Between, Self::WriterAbsent];
}

/// A read that saw `writer`, and another write of the variable that it might see instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// How the reads-from edge is broken.
    pub kind: WitnessKind,
    /// What the read saw; none is the initial value.
    pub writer: Option<EventId>,
    /// The read; none is the implicit read of the variable at the end of the run.
    pub read: Option<EventId>,
    /// The other write; none is the initial value.
    pub interfering: Option<EventId>,
}

impl Witness {
    /// Whether the events are missing that the kind speaks of: an initial value is there before
    /// everything else.
    pub(crate) const fn is_void(&self) -> bool {
        match self.kind {
            WitnessKind::WriterAfter | WitnessKind::WriterAbsent => self.writer.is_none(),
            WitnessKind::Between => self.interfering.is_none(),
        }
    }
}

/// Which reorderings count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All events happen, and every other read comes after what it saw; for kind 3, some do, so.
    Order,
    /// Some events of each thread happen, and every other read sees what it saw.
    Prefix,
    /// As [`Mode::Prefix`], and the thread of the read goes no further.
    Strict,
}

/// Every witness of every read, also those that are infeasible by definition: variable by variable,
/// reads in observed order, challengers in observed order with the initial value first, then kinds.
///
/// Reads whose writer is not known have none.
#[must_use]
pub fn witnesses(trace: &Trace) -> Vec<Witness> {
    let mut all = Vec::new();
    for (var, _) in trace.names().vars.entries() {
        for &read in trace.accesses(var) {
            let op = trace.event(read).op;
            if op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _)) {
                add_witnesses(trace, var, trace.writer(read), Some(read), &mut all);
            }
        }
    }
    all
}

/// Every witness of the implicit read of each written variable at the end of the run, also those
/// that are infeasible by definition, in the order of [`witnesses`].
#[must_use]
pub fn final_witnesses(trace: &Trace) -> Vec<Witness> {
    let mut all = Vec::new();
    for (var, _) in trace.names().vars.entries() {
        let mut latest_first = trace.accesses(var).iter().rev();
        let last = latest_first.find(|&&access| trace.event(access).op.is_write());
        if let Some(&last) = last {
            add_witnesses(trace, var, Some(last), None, &mut all);
        }
    }
    all
}

/// Adds to `all` the witnesses of `read` of `var`, which saw `writer`.
fn add_witnesses(
    trace: &Trace,
    var: VarId,
    writer: Option<EventId>,
    read: Option<EventId>,
    all: &mut Vec<Witness>,
) {
    let accesses = trace.accesses(var).iter().copied();
    let writes = accesses.filter(|&access| trace.event(access).op.is_write()).map(Some);
    for interfering in [None].into_iter().chain(writes) {
        let is_itself = interfering.is_some() && interfering == read;
        if interfering != writer && !is_itself {
            let witness = |kind| Witness { kind, writer, read, interfering };
            all.extend(WitnessKind::ALL.into_iter().map(witness));
        }
    }
}

/// Whether some order of events that counts in `mode` shows `witness`, one of `trace`'s own.
#[must_use]
pub fn is_feasible(trace: &Trace, witness: &Witness, mode: Mode) -> bool {
    question(trace, witness, mode).is_some_and(|question| question.has_answer())
}

/// What `witness` asks for in `mode`; none if it is infeasible by definition.
fn question<'t>(trace: &'t Trace, witness: &Witness, mode: Mode) -> Option<Question<'t>> {
    let Witness { kind, writer, read, interfering } = *witness;
    if witness.is_void() {
        return None;
    }
    let rules = match (mode, kind) {
        (Mode::Order, WitnessKind::WriterAfter | WitnessKind::Between) => Rules::Edges,
        (Mode::Order, WitnessKind::WriterAbsent) => Rules::Relaxed,
        (Mode::Prefix | Mode::Strict, _) => Rules::Exact,
    };
    let Some(read) = read else {
        // At the end everything has happened: the writer is neither missing nor still to come.
        return (kind == WitnessKind::Between).then(|| Question {
            trace,
            rules,
            is_whole: true,
            order: chain(&[writer, interfering]),
            must: Vec::new(),
            absent: None,
            free: None,
            stop: None,
        });
    };
    let (order, last, absent) = match kind {
        WitnessKind::WriterAfter => (chain(&[interfering, Some(read), writer]), writer, None),
        WitnessKind::Between => (chain(&[writer, interfering, Some(read)]), Some(read), None),
        WitnessKind::WriterAbsent => (chain(&[interfering, Some(read)]), Some(read), writer),
    };
    Some(Question {
        trace,
        rules,
        is_whole: rules == Rules::Edges,
        order,
        must: last.into_iter().collect(),
        absent,
        free: Some(read),
        stop: (mode == Mode::Strict).then_some(read),
    })
}

/// The pairs of neighbours in `events`, of which an initial value is there before everything.
fn chain(events: &[Option<EventId>]) -> Vec<(EventId, EventId)> {
    let events: Vec<EventId> = events.iter().copied().flatten().collect();
    events.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// What keeps an event from happening, besides program order, forks, joins, locks, barriers and
/// births.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    /// What was observed to let it happen must have: the write it read, the notify that woke it,
    /// the waits it woke, the post it took. Other writes may come between a write and its read.
    Edges,
    /// Those of a correct reordering, but reads only come after what they saw.
    Relaxed,
    /// Those of a correct reordering: reads see what they saw.
    Exact,
}

/// What is asked of an order of events.
#[derive(Debug)]
struct Question<'t> {
    trace: &'t Trace,
    rules: Rules,
    /// Whether all events happen.
    is_whole: bool,
    /// Pairs of events: the second happens after the first only.
    order: Vec<(EventId, EventId)>,
    /// Events that happen, if not all do.
    must: Vec<EventId>,
    /// An event that does not happen.
    absent: Option<EventId>,
    /// A read that may see anything.
    free: Option<EventId>,
    /// A read after which its thread does nothing, and whose own write, if it is one, nobody sees:
    /// what it would write now is not known.
    stop: Option<EventId>,
}

/// Where a search stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// How many events of each thread have happened.
    done: IndexVec<ThreadId, u32>,
    /// The last write of each variable, where rules ask for it.
    last_write: IndexVec<VarId, Option<EventId>>,
}

impl Question<'_> {
    /// Whether a state that can be reached has all that is asked for.
    fn has_answer(&self) -> bool {
        let names = self.trace.names();
        let start = State {
            done: IndexVec::from_elem(0, names.threads.len()),
            last_write: IndexVec::from_elem(None, names.vars.len()),
        };
        let mut seen: FxHashSet<State> = FxHashSet::default();
        seen.insert(start.clone());
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            if self.is_met(&state) {
                return true;
            }
            for thread in state.done.ids() {
                let next = self.next(&state, thread);
                if let Some(event) = next.filter(|&event| self.may_happen(&state, event)) {
                    let after = self.after(&state, event);
                    if seen.insert(after.clone()) {
                        open.push(after);
                    }
                }
            }
        }
        false
    }

    fn is_met(&self, state: &State) -> bool {
        let is_done = |thread| self.next(state, thread).is_none();
        self.must.iter().all(|&event| self.has_happened(state, event))
            && (!self.is_whole || state.done.ids().all(is_done))
    }

    fn next(&self, state: &State, thread: ThreadId) -> Option<EventId> {
        self.trace.thread_events(thread).get(state.done[thread] as usize).copied()
    }

    fn has_happened(&self, state: &State, event: EventId) -> bool {
        self.trace.position(event) < state.done[self.trace.event(event).thread]
    }

    /// `state` once `event`, the next of its thread, has happened too.
    fn after(&self, state: &State, event: EventId) -> State {
        let mut after = state.clone();
        let happening = self.trace.event(event);
        after.done[happening.thread] += 1;
        if let Some(var) = happening.op.var()
            && happening.op.is_write()
            && self.rules == Rules::Exact
        {
            after.last_write[var] = Some(event);
        }
        after
    }

    /// Whether `event`, the next of its thread, may happen now.
    fn may_happen(&self, state: &State, event: EventId) -> bool {
        self.is_started(state, self.trace.event(event).thread)
            && self.is_permitted(state, event)
            && self.is_enabled(state, event)
    }

    fn is_started(&self, state: &State, thread: ThreadId) -> bool {
        let fork = self.trace.lifetime(thread).fork;
        fork.is_none_or(|fork| self.has_happened(state, fork))
    }

    /// Whether what is asked lets `event` happen now.
    fn is_permitted(&self, state: &State, event: EventId) -> bool {
        let is_stopped = self.stop.is_some_and(|stop| {
            let is_later = stop < event;
            let is_same_thread = self.trace.event(stop).thread == self.trace.event(event).thread;
            is_same_thread && is_later || self.trace.writer(event) == Some(stop)
        });
        let mut before = self.order.iter().filter(|&&(_, second)| second == event);
        self.absent != Some(event)
            && !is_stopped
            && before.all(|&(first, _)| self.has_happened(state, first))
    }

    /// Whether the rules let `event`, the next of its thread, happen now.
    fn is_enabled(&self, state: &State, event: EventId) -> bool {
        let signals = self.trace.signals();
        let has_happened = |event| self.has_happened(state, event);
        match self.trace.event(event).op {
            Op::Access(
                AccessOp::Read | AccessOp::AtomicRead(_) | AccessOp::AtomicUpdate(_),
                var,
            ) => {
                let writer = self.trace.writer(event);
                let is_kept = match self.rules {
                    Rules::Edges | Rules::Relaxed => writer.is_none_or(has_happened),
                    Rules::Exact => state.last_write[var] == writer,
                };
                self.free == Some(event) || is_kept
            }
            Op::Lock(LockOp::Acquire, lock) => {
                !self.is_held(state, event, lock, &[Hold::Alone, Hold::Together])
            }
            Op::Lock(LockOp::AcquireShared, lock) => {
                !self.is_held(state, event, lock, &[Hold::Alone])
            }
            Op::Thread(ThreadOp::Join, child) => {
                self.is_started(state, child) && self.next(state, child).is_none()
            }
            Op::Condition(ConditionOp::Notify, condition) => {
                self.may_notify(state, event, condition, true)
            }
            Op::Condition(ConditionOp::NotifyAll, condition) => {
                self.may_notify(state, event, condition, false)
            }
            Op::Condition(ConditionOp::Wake, _) => signals
                .wait_interval(event)
                .and_then(|interval| interval.notify)
                .is_some_and(has_happened),
            Op::Barrier(..) => {
                let round = signals.needed_round(event).map(|round| signals.round(round));
                round.is_none_or(|round| round.arrivals.iter().copied().all(has_happened))
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                match self.trace.declared().start(semaphore) {
                    Some(start) if self.rules != Rules::Edges => {
                        self.tokens(state, semaphore, start) > 0
                    }
                    _ => signals.post(event).is_none_or(has_happened),
                }
            }
            Op::Object(ObjectOp::Free, object) => {
                let is_birth =
                    |&id: &EventId| self.trace.event(id).op == Op::Object(ObjectOp::Alloc, object);
                self.ids().filter(is_birth).all(has_happened)
            }
            Op::Access(AccessOp::Write | AccessOp::UnknownRead | AccessOp::AtomicWrite(_), _)
            | Op::Fence(_)
            | Op::Lock(LockOp::Release | LockOp::ReleaseShared | LockOp::Request, _)
            | Op::Thread(ThreadOp::Fork, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Timeout, _)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(ObjectOp::Alloc, _)
            | Op::Block(..)
            | Op::Branch
            | Op::Let(_) => true,
        }
    }

    fn ids(&self) -> impl Iterator<Item = EventId> {
        self.trace.events().map(|(id, _)| id)
    }

    /// Whether a thread other than that of `acquire` holds `lock` in one of these ways.
    fn is_held(&self, state: &State, acquire: EventId, lock: LockId, holds: &[Hold]) -> bool {
        let own = self.trace.event(acquire).thread;
        let mut others = state.done.ids().filter(|&thread| thread != own);
        others.any(|thread| {
            let past = &self.trace.thread_events(thread)[..state.done[thread] as usize];
            holds.iter().any(|&hold| depth(self.trace, past, lock, hold) > 0)
        })
    }

    /// How many tokens `semaphore`, which had `start` of them, has now.
    fn tokens(&self, state: &State, semaphore: SemaphoreId, start: u32) -> i64 {
        let happened = self.ids().filter(|&id| self.has_happened(state, id));
        let changes = happened.map(|id| match self.trace.event(id).op {
            Op::Semaphore(SemaphoreOp::Post, other) if other == semaphore => 1,
            Op::Semaphore(SemaphoreOp::Take, other) if other == semaphore => -1,
            _ => 0,
        });
        i64::from(start) + changes.sum::<i64>()
    }

    /// Whether `notify` may happen: it finds all waiting whom it woke. In a correct reordering one
    /// that woke nobody, or wakes all, finds nobody else but those who waited then too and timed
    /// out.
    fn may_notify(&self, state: &State, notify: EventId, on: ConditionId, wakes_one: bool) -> bool {
        let has_happened = |event| self.has_happened(state, event);
        let is_waiting = |interval: &&WaitInterval| {
            has_happened(interval.begin)
                && !interval.end.is_some_and(has_happened)
                && !interval.notify.is_some_and(has_happened)
        };
        let intervals = self.trace.signals().wait_intervals();
        let mut woken =
            intervals.iter().filter(|interval| interval.notify == Some(notify)).peekable();
        let others_are_safe = wakes_one && woken.peek().is_some();
        if self.rules == Rules::Edges {
            return woken.all(|interval| has_happened(interval.begin));
        }
        let mut others = intervals.iter().filter(|interval| {
            self.trace.event(interval.wait).op == Op::Condition(ConditionOp::Wait, on)
                && interval.notify != Some(notify)
                && !interval.is_spared_by(notify)
        });
        woken.all(|interval| is_waiting(&interval))
            && (others_are_safe || !others.any(|interval| is_waiting(&interval)))
    }
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Alone,
    Together,
}

/// How often a thread that did `past` has taken `lock` so without releasing it.
fn depth(trace: &Trace, past: &[EventId], lock: LockId, hold: Hold) -> i64 {
    let changes = past.iter().map(|&event| match (trace.event(event).op, hold) {
        (Op::Lock(LockOp::Acquire, other), Hold::Alone)
        | (Op::Lock(LockOp::AcquireShared, other), Hold::Together) => i64::from(other == lock),
        (Op::Lock(LockOp::Release, other), Hold::Alone)
        | (Op::Lock(LockOp::ReleaseShared, other), Hold::Together) => -i64::from(other == lock),
        _ => 0,
    });
    changes.sum()
}
