//! How does the end of a reordering come about with few context switches?
//!
//! The engine keeps the observed order where it can, and that jumps between threads as the recorded run did. Steps
//! that do not depend on each other can be exchanged: no read sees another write, no lock, queue or barrier is found
//! otherwise, and happens-before stays. What comes out is equivalent in the sense of Mazurkiewicz, so it shows what
//! the given reordering shows; it is put before the checker all the same.
//!
//! A `free` keeps its place among the accesses to what it frees, though no rule asks for that: a
//! program that follows the schedule should not meet another fault on the way.
//!
//! Only the last steps are looked at. Costs these, and what [`with_few_switches`] does.

use reweave_base::{FxHashMap, Id, count_switches, with_few_switches};
use reweave_trace::{
    ConditionOp, EventId, Goal, NameKind, ObjectId, Op, Reordering, ThreadId, ThreadOp, Trace,
};

use crate::engine::Cut;

/// How many of the last steps are put into another order, at most.
pub const SWITCH_STEPS_MAX: usize = 512;

/// `reordering`, which ends as `goal` says, with the same events and fewer context switches among its last steps;
/// none if there is no such order, none was found, or `reordering` is how the observed run began: that is best shown as
/// it was.
#[must_use]
pub fn with_fewer_switches(
    trace: &Trace,
    reordering: &Reordering,
    goal: &Goal,
) -> Option<Reordering> {
    if reordering.schedule.len() > SWITCH_STEPS_MAX || is_observed(trace, reordering) {
        return None;
    }
    let (base, steps) = last_steps(trace, reordering);
    let owners: Vec<usize> = steps.iter().map(|&event| trace.event(event).thread.index()).collect();
    let mut dependences = Dependences::new(trace);
    let before: Vec<Vec<usize>> = steps.iter().map(|&event| dependences.step(event)).collect();
    let before = with_chain(before, &steps, goal);
    let order = with_few_switches(&owners, &before);
    let given: Vec<usize> = (0..steps.len()).collect();
    if count_switches(&owners, &order) >= count_switches(&owners, &given) {
        return None;
    }
    let schedule = order.into_iter().map(|step| steps[step]).collect();
    Some(Reordering { base, schedule })
}

/// Whether `reordering` runs what was observed first, in the order in which it was observed.
fn is_observed(trace: &Trace, reordering: &Reordering) -> bool {
    let Reordering { base, schedule } = reordering;
    let in_base: usize = base.iter().map(|&count| count as usize).sum();
    // The base is how the run began exactly if its last event has as many before it as it holds.
    let last = base.entries().filter_map(|(thread, &count)| prefix(trace, thread, count).last());
    last.max().is_none_or(|last| last.index() + 1 == in_base)
        && schedule.iter().zip(in_base..).all(|(event, at)| event.index() == at)
}

/// The last steps of `reordering` in their order, and how many events of each thread come before them.
fn last_steps(trace: &Trace, reordering: &Reordering) -> (Cut, Vec<EventId>) {
    let Reordering { base, schedule } = reordering;
    let in_base: usize = base.iter().map(|&count| count as usize).sum();
    let kept = (in_base + schedule.len()).saturating_sub(SWITCH_STEPS_MAX);
    let threads = || base.entries();
    let before = |event: usize| -> usize {
        let first = |&other: &EventId| other.index() < event;
        threads().map(|(thread, &count)| prefix(trace, thread, count).partition_point(first)).sum()
    };
    // The first event such that as many of the fixed prefix come before it as are kept.
    let (mut low, mut high) = (0, trace.len());
    while low < high {
        let middle = low.midpoint(high);
        if before(middle) < kept {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let mut kept = base.clone();
    let mut steps = Vec::new();
    for (thread, &count) in threads() {
        let own = prefix(trace, thread, count);
        let first = own.partition_point(|event| event.index() < low);
        kept[thread] = first as u32;
        steps.extend(&own[first..]);
    }
    steps.sort_unstable();
    steps.extend(schedule);
    (kept, steps)
}

fn prefix(trace: &Trace, thread: ThreadId, count: u32) -> &[EventId] {
    &trace.thread_events(thread)[..count as usize]
}

/// Adds to `before` that the events of the chain that `goal` names come in its order.
fn with_chain(mut before: Vec<Vec<usize>>, steps: &[EventId], goal: &Goal) -> Vec<Vec<usize>> {
    let Goal::Order { chain, .. } = goal else { return before };
    let places: Vec<usize> =
        chain.iter().filter_map(|event| steps.iter().position(|step| step == event)).collect();
    for pair in places.windows(2) {
        before[pair[1]].push(pair[0]);
    }
    before
}

/// What steps use in common. Those that change it keep their order with all that use it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Used {
    Thing(NameKind, u32),
    Life(ObjectId),
}

/// The steps so far that used something: the last that changed it, and those since.
#[derive(Default)]
struct Uses {
    last_change: Option<usize>,
    since: Vec<usize>,
}

/// On which earlier steps of other threads each step depends, step by step.
struct Dependences<'t> {
    trace: &'t Trace,
    steps_count: usize,
    uses: FxHashMap<Used, Uses>,
    forks: FxHashMap<ThreadId, usize>,
    last_of: FxHashMap<ThreadId, usize>,
    /// The objects that stand for the lives of things.
    lives: FxHashMap<(NameKind, u32), Option<ObjectId>>,
}

impl<'t> Dependences<'t> {
    fn new(trace: &'t Trace) -> Self {
        Self {
            trace,
            steps_count: 0,
            uses: FxHashMap::default(),
            forks: FxHashMap::default(),
            last_of: FxHashMap::default(),
            lives: FxHashMap::default(),
        }
    }

    /// The steps that `event`, the next step, depends on and that depend on all others that it does.
    fn step(&mut self, event: EventId) -> Vec<usize> {
        let step = self.steps_count;
        self.steps_count += 1;
        let (op, thread) = (self.trace.event(event).op, self.trace.event(event).thread);
        let mut before = Vec::new();
        if self.last_of.insert(thread, step).is_none() {
            before.extend(self.forks.get(&thread));
        }
        let (code, index) = op.encode();
        let kind = code.kind().operand();
        match op {
            Op::Thread(ThreadOp::Fork, child) => _ = self.forks.insert(child, step),
            Op::Thread(ThreadOp::Join, child) => {
                before.extend(self.last_of.get(&child).or_else(|| self.forks.get(&child)));
            }
            Op::Object(_, object) => self.depend(&mut before, Used::Life(object), true),
            Op::Access(..) => {
                self.depend(&mut before, Used::Thing(kind, index), op.is_write());
            }
            // A request has no effect.
            Op::Lock(op, _) if op.is_request() => {}
            Op::Lock(..) | Op::Condition(..) | Op::Barrier(..) | Op::Semaphore(..) => {
                self.depend(&mut before, Used::Thing(kind, index), true);
            }
            Op::Fence(_) | Op::Marker(_) => return before,
        }
        if let Some(life) = self.life(op, kind, index) {
            self.depend(&mut before, Used::Life(life), false);
        }
        // A wait begins with the release just before it.
        let after = self.trace.position(event) as usize + 1;
        if let Some(&next) = self.trace.thread_events(thread).get(after)
            && let op @ Op::Condition(ConditionOp::Wait, _) = self.trace.event(next).op
        {
            let (_, index) = op.encode();
            self.depend(&mut before, Used::Thing(NameKind::Condition, index), true);
        }
        before
    }

    /// The object that is over when what `op` uses is: a block of memory, or what stands for the life of a handle.
    fn life(&mut self, op: Op, kind: NameKind, index: u32) -> Option<ObjectId> {
        let names = self.trace.names();
        *self.lives.entry((kind, index)).or_insert_with(|| match op.var() {
            Some(var) => names.object_of(var),
            None => names.handle(kind, index),
        })
    }

    fn depend(&mut self, before: &mut Vec<usize>, used: Used, is_change: bool) {
        let step = self.steps_count - 1;
        let uses = self.uses.entry(used).or_default();
        before.extend(uses.last_change);
        if is_change {
            before.append(&mut uses.since);
            uses.last_change = Some(step);
        } else {
            uses.since.push(step);
        }
    }
}
