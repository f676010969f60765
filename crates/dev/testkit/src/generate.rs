//! Well-formed traces of a given shape, at random.
//!
//! A trace is made by running threads that follow no program: at each step one of the threads does
//! one of the actions that are enabled. Which one is read off a list of numbers, one per step, so a
//! trace is well formed by construction, and leaving out or lowering numbers gives another, simpler
//! one. That is how the strategies shrink.
//!
//! Each step costs the number of enabled actions.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;

use proptest::strategy::Strategy;
use reweave_base::{Id, Rng};
use reweave_trace::{
    AccessOp, BarrierId, BarrierOp, BlockId, BlockOp, ConditionId, ConditionOp, LockOp,
    MemoryOrder, NameKind, ObjectId, ObjectOp, Op, SemaphoreId, SemaphoreOp, ThreadOp, Trace,
    TraceBuilder, VarId,
};

use crate::fixture;

/// What the traces to generate are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many threads there are.
    pub threads: usize,
    /// How many variables there are.
    pub vars: usize,
    /// How many locks there are.
    pub locks: usize,
    /// How many condition variables there are.
    pub conditions: usize,
    /// How many barriers there are; of every second one the number of parties is known.
    pub barriers: usize,
    /// How many semaphores there are; of every second one the start value is known.
    pub semaphores: usize,
    /// How many objects there are to allocate.
    pub objects: usize,
    /// How many blocks there are to enter.
    pub blocks: usize,
    /// How many locks a thread holds at most at a time.
    pub held_max: usize,
    /// How many steps there are at most; a step gives an event unless no action is enabled.
    pub events: usize,
    /// Whether threads but the first start with a fork and may be joined.
    pub forks: bool,
    /// Whether threads take locks that they hold already.
    pub reentrant: bool,
    /// Whether locks are taken in shared mode too.
    pub shared: bool,
    /// Whether there are atomic accesses and fences.
    pub atomics: bool,
    /// Whether there are reads whose writer is not known.
    pub unknown_writers: bool,
    /// Whether there are requests, branches and assignments of locals.
    pub notes: bool,
    /// Whether accesses have values.
    pub values: bool,
}

impl Shape {
    const BARE: Self = Self {
        threads: 3,
        vars: 2,
        locks: 2,
        conditions: 0,
        barriers: 0,
        semaphores: 0,
        objects: 0,
        blocks: 0,
        held_max: 2,
        events: 60,
        forks: false,
        reentrant: false,
        shared: false,
        atomics: false,
        unknown_writers: false,
        notes: false,
        values: false,
    };

    /// Few enough events that every reordering can be searched: accesses and locks.
    pub const SMALL: Self = Self { events: 14, ..Self::BARE };
    /// Accesses, locks, forks and joins.
    pub const GENERAL: Self = Self { threads: 4, vars: 4, locks: 3, forks: true, ..Self::BARE };
    /// Many locks, few variables.
    pub const LOCKS: Self = Self { threads: 4, locks: 6, held_max: 3, ..Self::BARE };
    /// Locks in each other and in themselves, in both modes, released in any order.
    pub const NESTED: Self =
        Self { vars: 1, locks: 3, held_max: 5, reentrant: true, shared: true, ..Self::BARE };
    /// Many short-lived threads.
    pub const FORKS: Self = Self { threads: 8, locks: 1, forks: true, ..Self::BARE };
    /// Waits, notifies and timeouts.
    pub const SIGNALS: Self = Self { threads: 4, vars: 1, conditions: 2, ..Self::BARE };
    /// Barriers.
    pub const BARRIERS: Self = Self { threads: 4, vars: 1, locks: 0, barriers: 2, ..Self::BARE };
    /// Semaphores.
    pub const SEMAPHORES: Self = Self { vars: 1, locks: 0, semaphores: 2, ..Self::BARE };
    /// Atomic accesses and fences among plain ones, some of unknown writers.
    pub const ATOMICS: Self = Self { locks: 1, atomics: true, unknown_writers: true, ..Self::BARE };
    /// Every operation that there is.
    pub const EVERYTHING: Self = Self {
        threads: 4,
        conditions: 1,
        barriers: 2,
        semaphores: 2,
        objects: 2,
        blocks: 2,
        held_max: 3,
        events: 100,
        forks: true,
        reentrant: true,
        shared: true,
        atomics: true,
        unknown_writers: true,
        notes: true,
        values: true,
        ..Self::BARE
    };

    /// Every shape with its name.
    pub const ALL: [(&'static str, Self); 10] = [
        ("small", Self::SMALL),
        ("general", Self::GENERAL),
        ("locks", Self::LOCKS),
        ("nested", Self::NESTED),
        ("forks", Self::FORKS),
        ("signals", Self::SIGNALS),
        ("barriers", Self::BARRIERS),
        ("semaphores", Self::SEMAPHORES),
        ("atomics", Self::ATOMICS),
        ("everything", Self::EVERYTHING),
    ];

    /// The same with so many events at most.
    #[must_use]
    pub const fn events(self, events: usize) -> Self {
        Self { events, ..self }
    }
}

/// A generated trace, which shows itself as a figure when a test fails.
pub struct Drawn(pub Trace);

impl Deref for Drawn {
    type Target = Trace;

    fn deref(&self) -> &Trace {
        &self.0
    }
}

impl Debug for Drawn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", fixture::draw(&self.0))
    }
}

/// The trace of `shape` that `seed` stands for.
#[must_use]
pub fn random(shape: Shape, seed: u64) -> Trace {
    let mut rng = Rng::new(seed);
    let choices: Vec<u16> = (0..shape.events).map(|_| (rng.next() >> 48) as u16).collect();
    from_choices(shape, &choices)
}

/// The trace of `shape` that comes of these choices, one per step.
///
/// # Panics
/// If the simulation made an ill-formed trace, which is a fault of it or of the trace model.
#[must_use]
pub fn from_choices(shape: Shape, choices: &[u16]) -> Trace {
    match simulate(shape, choices).finish() {
        Ok(trace) => trace,
        Err(error) => panic!("simulated from {choices:?}: {error}"),
    }
}

/// Traces of `shape`, shorter ones included; they shrink by leaving out events.
pub fn traces(shape: Shape) -> impl Strategy<Value = Drawn> {
    let choices = proptest::collection::vec(proptest::num::u16::ANY, 0..=shape.events);
    choices.prop_map(move |choices| Drawn(from_choices(shape, &choices)))
}

/// The events that come of `choices`, one per step.
fn simulate(shape: Shape, choices: &[u16]) -> TraceBuilder {
    let mut world = World::new(shape);
    for &choice in choices {
        let able: Vec<usize> =
            (0..shape.threads).filter(|&at| !world.actions(at).is_empty()).collect();
        if able.is_empty() {
            break;
        }
        let (thread, rest) =
            (able[usize::from(choice) % able.len()], usize::from(choice) / able.len());
        let actions = world.actions(thread);
        let total: usize = actions.iter().map(|&(weight, _)| weight).sum();
        let mut left = rest % total;
        let chosen = actions.iter().find(|&&(weight, _)| {
            let here = left < weight;
            left = left.saturating_sub(weight);
            here
        });
        let &(_, action) = chosen.expect("the weights sum to the total");
        world.perform(thread, action);
    }
    world.builder
}

/// Something that a thread could do.
#[derive(Clone, Copy)]
enum Action {
    Do(Op),
    /// Releases a lock and waits, to take it again afterwards.
    BeginWait {
        release: Op,
        on: ConditionId,
        acquire: Op,
    },
    /// Notifies one condition, waking the thread at this index.
    Wake {
        on: ConditionId,
        whom: usize,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Unborn,
    Running,
    Over,
}

struct Thread {
    life: Life,
    /// Locks held, with whether in shared mode; one entry for each acquire.
    held: Vec<(usize, bool)>,
    /// What it is bound to do next, before anything else.
    bound: VecDeque<Op>,
    /// Whether the wait that it is in was notified.
    woken: bool,
    /// Barriers it arrived at, with the round.
    inside: Vec<(usize, usize)>,
    blocks: Vec<usize>,
}

#[derive(Default)]
struct Barrier {
    parties: Option<usize>,
    /// How many arrived in each round so far; the last is the one now.
    rounds: Vec<usize>,
}

struct World {
    shape: Shape,
    builder: TraceBuilder,
    threads: Vec<Thread>,
    barriers: Vec<Barrier>,
    /// What each semaphore stands at, and whether its start is known.
    semaphores: Vec<(usize, bool)>,
    objects: Vec<Life>,
    memory: Vec<i64>,
}

type Actions = Vec<(usize, Action)>;

/// Adds that a thread could do `op`.
fn may(actions: &mut Actions, weight: usize, op: Op) {
    actions.push((weight, Action::Do(op)));
}

fn id<I: Id>(index: usize) -> I {
    I::from_index(index)
}

impl World {
    fn new(shape: Shape) -> Self {
        let mut builder = TraceBuilder::new();
        name_all(&mut builder, shape);
        let life = |at| if at > 0 && shape.forks { Life::Unborn } else { Life::Running };
        let thread = |at| Thread {
            life: life(at),
            held: Vec::new(),
            bound: VecDeque::new(),
            woken: false,
            inside: Vec::new(),
            blocks: Vec::new(),
        };
        let mut barriers: Vec<Barrier> = Vec::new();
        for at in 0..shape.barriers {
            let parties = (at % 2 == 0).then_some(2);
            parties.into_iter().for_each(|count| builder.declare_parties(id(at), count));
            barriers
                .push(Barrier { parties: parties.map(|count| count as usize), rounds: vec![0] });
        }
        let mut semaphores = Vec::new();
        for at in 0..shape.semaphores {
            let known = at % 2 == 0;
            if known {
                builder.declare_start(id(at), 1);
            }
            semaphores.push((usize::from(known), known));
        }
        Self {
            shape,
            builder,
            threads: (0..shape.threads).map(thread).collect(),
            barriers,
            semaphores,
            objects: vec![Life::Unborn; shape.objects],
            memory: vec![0; shape.vars],
        }
    }

    /// Everything that the thread at `at` could do now, with weights, the simplest first.
    fn actions(&self, at: usize) -> Actions {
        let thread = &self.threads[at];
        let mut actions = Actions::new();
        if thread.life != Life::Running {
            return actions;
        }
        match thread.bound.front().copied() {
            Some(Op::Condition(ConditionOp::Wake, on)) => {
                let end = if thread.woken { ConditionOp::Wake } else { ConditionOp::Timeout };
                // Most waits should live to be notified; a last thread must give up itself.
                let is_patient = !thread.woken && !self.builder.len().is_multiple_of(4);
                if !is_patient || self.is_alone(at) {
                    may(&mut actions, 1, Op::Condition(end, on));
                }
                return actions;
            }
            Some(op @ Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock)) => {
                if self.is_free(at, lock.index(), matches!(op, Op::Lock(LockOp::AcquireShared, _)))
                {
                    may(&mut actions, 1, op);
                }
                return actions;
            }
            Some(op) => {
                may(&mut actions, 1, op);
                return actions;
            }
            None => {}
        }
        self.access_actions(&mut actions);
        self.lock_actions(at, &mut actions);
        self.thread_actions(at, &mut actions);
        self.condition_actions(at, &mut actions);
        self.counting_actions(at, &mut actions);
        self.other_actions(at, &mut actions);
        actions
    }

    /// Whether nobody but the thread at `at` can run.
    fn is_alone(&self, at: usize) -> bool {
        let is_free = |thread: &Thread| thread.life == Life::Running && thread.bound.is_empty();
        !self.threads.iter().enumerate().any(|(other, thread)| other != at && is_free(thread))
    }

    fn access_actions(&self, actions: &mut Actions) {
        for x in (0..self.shape.vars).map(id::<VarId>) {
            may(actions, 3, Op::Access(AccessOp::Write, x));
            may(actions, 5, Op::Access(AccessOp::Read, x));
            if self.shape.unknown_writers {
                may(actions, 1, Op::Access(AccessOp::UnknownRead, x));
            }
            if self.shape.atomics {
                may(actions, 2, Op::Access(AccessOp::AtomicRead(MemoryOrder::SeqCst), x));
                may(actions, 1, Op::Access(AccessOp::AtomicRead(MemoryOrder::Acquire), x));
                may(actions, 2, Op::Access(AccessOp::AtomicWrite(MemoryOrder::Release), x));
                may(actions, 1, Op::Access(AccessOp::AtomicWrite(MemoryOrder::Relaxed), x));
                may(actions, 2, Op::Access(AccessOp::AtomicUpdate(MemoryOrder::AcqRel), x));
            }
        }
        if self.shape.atomics {
            may(actions, 1, Op::Fence(MemoryOrder::SeqCst));
        }
    }

    /// Whether the thread at `at` could take the lock in that mode.
    fn is_free(&self, at: usize, lock: usize, shared: bool) -> bool {
        let others = self.threads.iter().enumerate().filter(|&(other, _)| other != at);
        let mut held = others.flat_map(|(_, other)| &other.held);
        !held.any(|&(on, is_shared)| on == lock && !(shared && is_shared))
    }

    fn lock_actions(&self, at: usize, actions: &mut Actions) {
        let held = &self.threads[at].held;
        for lock in 0..self.shape.locks {
            let has = held.iter().any(|&(on, _)| on == lock);
            if held.len() >= self.shape.held_max || (has && !self.shape.reentrant) {
                continue;
            }
            if self.is_free(at, lock, false) {
                may(actions, 3, Op::Lock(LockOp::Acquire, id(lock)));
            }
            if self.shape.shared && self.is_free(at, lock, true) {
                may(actions, 3, Op::Lock(LockOp::AcquireShared, id(lock)));
            }
        }
        for (place, &entry) in held.iter().enumerate() {
            if !held[..place].contains(&entry) {
                may(actions, 4, release(entry));
            }
        }
    }

    fn thread_actions(&self, at: usize, actions: &mut Actions) {
        if !self.shape.forks {
            return;
        }
        for (child, thread) in self.threads.iter().enumerate().skip(1) {
            let is_quiet = thread.held.is_empty() && thread.bound.is_empty();
            match thread.life {
                Life::Unborn => {
                    may(actions, 6, Op::Thread(ThreadOp::Fork, id(child)));
                }
                Life::Running if child != at && is_quiet && thread.inside.is_empty() => {
                    may(actions, 1, Op::Thread(ThreadOp::Join, id(child)));
                }
                Life::Over => may(actions, 1, Op::Thread(ThreadOp::Join, id(child))),
                Life::Running => {}
            }
        }
    }

    fn condition_actions(&self, at: usize, actions: &mut Actions) {
        for on in (0..self.shape.conditions).map(id::<ConditionId>) {
            may(actions, 1, Op::Condition(ConditionOp::Wait, on));
            for &entry in &self.threads[at].held {
                let (release, acquire) = (release(entry), acquire(entry));
                actions.push((4, Action::BeginWait { release, on, acquire }));
            }
            let waiting: Vec<usize> =
                (0..self.shape.threads).filter(|&other| self.waits_on(other, on)).collect();
            if waiting.is_empty() {
                may(actions, 1, Op::Condition(ConditionOp::Notify, on));
            }
            let wakes = waiting.iter().map(|&whom| (4, Action::Wake { on, whom }));
            actions.extend(wakes);
            let weight = if waiting.is_empty() { 1 } else { 3 };
            may(actions, weight, Op::Condition(ConditionOp::NotifyAll, on));
        }
    }

    /// Whether the thread at `at` waits on the condition and was not notified.
    fn waits_on(&self, at: usize, on: ConditionId) -> bool {
        let thread = &self.threads[at];
        thread.bound.contains(&Op::Condition(ConditionOp::Wake, on)) && !thread.woken
    }

    fn counting_actions(&self, at: usize, actions: &mut Actions) {
        for (at_barrier, barrier) in self.barriers.iter().enumerate() {
            let own = self.threads[at].inside.iter().find(|&&(inside, _)| inside == at_barrier);
            match own {
                None => {
                    may(actions, 4, Op::Barrier(BarrierOp::Arrive, id(at_barrier)));
                }
                Some(&(_, round)) => {
                    if barrier.parties.is_none_or(|parties| barrier.rounds[round] == parties) {
                        may(actions, 4, Op::Barrier(BarrierOp::Depart, id(at_barrier)));
                    }
                }
            }
        }
        for (semaphore, &(tokens, known)) in self.semaphores.iter().enumerate() {
            may(actions, 3, Op::Semaphore(SemaphoreOp::Post, id::<SemaphoreId>(semaphore)));
            if tokens > 0 || !known {
                may(actions, 4, Op::Semaphore(SemaphoreOp::Take, id(semaphore)));
            }
        }
    }

    fn other_actions(&self, at: usize, actions: &mut Actions) {
        for (object, &life) in self.objects.iter().enumerate() {
            match life {
                Life::Unborn => {
                    may(actions, 1, Op::Object(ObjectOp::Alloc, id::<ObjectId>(object)));
                }
                Life::Running => {
                    may(actions, 1, Op::Object(ObjectOp::Free, id(object)));
                }
                Life::Over => {}
            }
        }
        for block in 0..self.shape.blocks {
            may(actions, 1, Op::Block(BlockOp::Begin, id::<BlockId>(block)));
            if self.threads[at].blocks.contains(&block) {
                may(actions, 2, Op::Block(BlockOp::End, id(block)));
            }
        }
        if self.shape.notes {
            may(actions, 1, Op::Branch);
            may(actions, 1, Op::Let(id(0)));
            for lock in 0..self.shape.locks {
                may(actions, 1, Op::Lock(LockOp::Request, id(lock)));
            }
        }
    }

    fn perform(&mut self, at: usize, action: Action) {
        match action {
            Action::Do(op) => {
                self.emit(at, op);
                self.take_effect(at, op);
            }
            Action::BeginWait { release, on, acquire } => {
                self.emit(at, release);
                self.take_effect(at, release);
                self.threads[at].bound.extend([
                    Op::Condition(ConditionOp::Wait, on),
                    Op::Condition(ConditionOp::Wake, on),
                    acquire,
                ]);
                self.threads[at].woken = false;
            }
            Action::Wake { on, whom } => {
                self.emit(at, Op::Condition(ConditionOp::Notify, on));
                self.threads[whom].woken = true;
            }
        }
    }

    fn emit(&mut self, at: usize, op: Op) {
        let site = self.builder.site(&(self.builder.len() + 1).to_string());
        self.builder.push(id(at), op, site);
        if self.shape.values
            && let Some(var) = op.var()
        {
            let number = self.builder.len() as i64;
            let cell = &mut self.memory[var.index()];
            self.builder.value(*cell);
            if op.is_write() {
                *cell = number;
                self.builder.value(number);
            }
        }
    }

    fn take_effect(&mut self, at: usize, op: Op) {
        let thread = &mut self.threads[at];
        let was_bound = thread.bound.pop_front().is_some();
        match op {
            Op::Lock(LockOp::Acquire, lock) => thread.held.push((lock.index(), false)),
            Op::Lock(LockOp::AcquireShared, lock) => thread.held.push((lock.index(), true)),
            Op::Lock(LockOp::Release, lock) => drop_one(&mut thread.held, &(lock.index(), false)),
            Op::Lock(LockOp::ReleaseShared, lock) => {
                drop_one(&mut thread.held, &(lock.index(), true));
            }
            Op::Thread(ThreadOp::Fork, child) => self.threads[child.index()].life = Life::Running,
            Op::Thread(ThreadOp::Join, child) => self.threads[child.index()].life = Life::Over,
            Op::Condition(ConditionOp::Wait, on) if !was_bound => {
                thread.bound.push_back(Op::Condition(ConditionOp::Wake, on));
                thread.woken = false;
            }
            Op::Condition(ConditionOp::NotifyAll, on) => {
                for other in 0..self.threads.len() {
                    self.threads[other].woken |= self.waits_on(other, on);
                }
            }
            Op::Barrier(BarrierOp::Arrive, barrier) => self.arrive(at, barrier),
            Op::Barrier(BarrierOp::Depart, barrier) => self.depart(at, barrier),
            Op::Semaphore(SemaphoreOp::Post, semaphore) => {
                self.semaphores[semaphore.index()].0 += 1;
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                let tokens = &mut self.semaphores[semaphore.index()].0;
                *tokens = tokens.saturating_sub(1);
            }
            Op::Object(ObjectOp::Alloc, object) => self.objects[object.index()] = Life::Running,
            Op::Object(ObjectOp::Free, object) => self.objects[object.index()] = Life::Over,
            Op::Block(BlockOp::Begin, block) => thread.blocks.push(block.index()),
            Op::Block(BlockOp::End, block) => drop_one(&mut thread.blocks, &block.index()),
            _ => {}
        }
    }

    fn arrive(&mut self, at: usize, barrier: BarrierId) {
        let Barrier { parties, rounds } = &mut self.barriers[barrier.index()];
        if rounds.last().copied() == *parties {
            rounds.push(0);
        }
        let round = rounds.len() - 1;
        rounds[round] += 1;
        self.threads[at].inside.push((barrier.index(), round));
    }

    fn depart(&mut self, at: usize, barrier: BarrierId) {
        let inside = &mut self.threads[at].inside;
        let place = inside.iter().position(|&(on, _)| on == barrier.index());
        let (_, round) = inside.swap_remove(place.expect("only who is inside departs"));
        let Barrier { parties, rounds } = &mut self.barriers[barrier.index()];
        if parties.is_none() && round + 1 == rounds.len() {
            rounds.push(0);
        }
    }
}

fn acquire((lock, shared): (usize, bool)) -> Op {
    Op::Lock(if shared { LockOp::AcquireShared } else { LockOp::Acquire }, id(lock))
}

fn release((lock, shared): (usize, bool)) -> Op {
    Op::Lock(if shared { LockOp::ReleaseShared } else { LockOp::Release }, id(lock))
}

fn drop_one<T: PartialEq>(items: &mut Vec<T>, item: &T) {
    let place = items.iter().rposition(|other| other == item);
    items.remove(place.expect("only what is there is released"));
}

/// Names everything that the shape speaks of, numbered from 1.
fn name_all(builder: &mut TraceBuilder, shape: Shape) {
    for at in 1..=shape.threads {
        builder.thread(&format!("t{at}"));
    }
    let named = [
        (NameKind::Var, "x", shape.vars),
        (NameKind::Lock, "l", shape.locks),
        (NameKind::Condition, "c", shape.conditions),
        (NameKind::Barrier, "b", shape.barriers),
        (NameKind::Semaphore, "s", shape.semaphores),
        (NameKind::Object, "o", shape.objects),
        (NameKind::Block, "k", shape.blocks),
        (NameKind::Local, "v", usize::from(shape.notes)),
    ];
    for (operand, letter, count) in named {
        for at in 1..=count {
            let name = format!("{letter}{at}");
            builder.names().intern(operand, name.as_bytes()).expect("a name is text");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_trace::OpKind;

    #[test]
    fn every_operation_is_generated() {
        let mut seen = [false; OpKind::ALL.len()];
        for seed in 0..50 {
            for (_, event) in random(Shape::EVERYTHING, seed).events() {
                seen[event.op.kind() as usize] = true;
            }
        }
        let missing: Vec<_> =
            OpKind::ALL.into_iter().filter(|&kind| !seen[kind as usize]).collect();
        assert_eq!(missing, []);
    }

    #[test]
    fn a_seed_always_gives_the_same_trace() {
        for (name, shape) in Shape::ALL {
            assert_eq!(random(shape, 7), random(shape, 7), "{name}");
            assert_ne!(random(shape, 7), random(shape, 8), "{name}");
        }
    }

    #[test]
    fn most_steps_give_an_event() {
        for (name, shape) in Shape::ALL {
            let events: usize = (0..50).map(|seed| random(shape, seed).len()).sum();
            assert!(events >= 50 * shape.events * 9 / 10, "{name}: {events}");
        }
    }

    #[test]
    fn a_figure_gives_its_trace_again() {
        for (name, shape) in Shape::ALL {
            let shape = Shape { values: false, ..shape };
            for seed in 0..50 {
                let figure = fixture::draw(&random(shape, seed));
                assert_eq!(fixture::draw(&fixture::trace(&figure)), figure, "{name}");
            }
        }
    }
}
