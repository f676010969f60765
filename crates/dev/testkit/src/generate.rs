//! Well-formed traces of a given shape, at random.
//!
//! A trace is made by running threads that follow no program: at each step one of the threads does
//! one of the actions that it would like to do and that the [`Monitor`] of well-formed traces
//! allows. Which one is read off a list of numbers, one per step, so a trace is well formed by
//! construction, and leaving out or lowering numbers gives another, simpler one. That is how the
//! strategies shrink.
//!
//! Each step costs the number of proposed actions.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;

use proptest::strategy::Strategy;
use reweave_base::{Id, Rng};
use reweave_trace::views::Mode;
use reweave_trace::{
    BarrierOp, ConditionId, ConditionOp, LockId, LockOp, MemoryOrder, Monitor, NameKind, Op,
    OpCode, OpKind, ThreadOp, Trace, TraceBuilder,
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

    /// How many things of `kind` there are.
    const fn count(&self, kind: NameKind) -> usize {
        match kind {
            NameKind::Thread => self.threads,
            NameKind::Var => self.vars,
            NameKind::Lock => self.locks,
            NameKind::Condition => self.conditions,
            NameKind::Barrier => self.barriers,
            NameKind::Semaphore => self.semaphores,
            NameKind::Object => self.objects,
            NameKind::Block => self.blocks,
            NameKind::Local => self.notes as usize,
            NameKind::Site | NameKind::None => 0,
        }
    }

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
        let (first, rest) =
            (usize::from(choice) % shape.threads, usize::from(choice) / shape.threads);
        let mut threads = (first..shape.threads).chain(0..first);
        if !threads.any(|thread| world.step(thread, rest)) {
            break;
        }
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

/// What the monitor does not know of a thread: what it is about to do.
struct Thread {
    life: Life,
    /// What it is bound to do next, before anything else.
    bound: VecDeque<Op>,
    /// Whether the wait that it is in was notified.
    woken: bool,
    /// How many barriers it arrived at and did not depart from.
    inside_count: usize,
}

/// A run under way. Threads propose what the shape wants, and the monitor decides what can happen.
struct World {
    shape: Shape,
    builder: TraceBuilder,
    monitor: Monitor,
    threads: Vec<Thread>,
    memory: Vec<i64>,
}

type Actions = Vec<(usize, Action)>;

fn id<I: Id>(index: usize) -> I {
    I::from_index(index)
}

impl World {
    fn new(shape: Shape) -> Self {
        let (mut builder, mut monitor) = (TraceBuilder::new(), Monitor::default());
        name_all(&mut builder, shape);
        for barrier in (0..shape.barriers).step_by(2).map(id) {
            builder.declare_parties(barrier, 2);
            monitor.declare_parties(barrier, 2);
        }
        for semaphore in (0..shape.semaphores).step_by(2).map(id) {
            builder.declare_start(semaphore, 1);
            monitor.declare_start(semaphore, 1);
        }
        let life = |at| if at > 0 && shape.forks { Life::Unborn } else { Life::Running };
        let thread =
            |at| Thread { life: life(at), bound: VecDeque::new(), woken: false, inside_count: 0 };
        let threads = (0..shape.threads).map(thread).collect();
        Self { shape, builder, monitor, threads, memory: vec![0; shape.vars] }
    }

    /// Lets the thread at `at` do what `choice` picks of what can happen, if anything can.
    fn step(&mut self, at: usize, choice: usize) -> bool {
        let mut actions = self.actions(at);
        while !actions.is_empty() {
            let mut left = choice % actions.iter().map(|&(weight, _)| weight).sum::<usize>();
            let chosen = actions.iter().position(|&(weight, _)| {
                let here = left < weight;
                left = left.saturating_sub(weight);
                here
            });
            let (_, action) = actions.remove(chosen.expect("the weights sum to the total"));
            if self.perform(at, action) {
                return true;
            }
        }
        false
    }

    /// What the thread at `at` would like to do now, with weights, the simplest first.
    fn actions(&self, at: usize) -> Actions {
        let thread = &self.threads[at];
        if thread.life != Life::Running {
            return Vec::new();
        }
        match thread.bound.front().copied() {
            Some(Op::Condition(ConditionOp::Wake, on)) => {
                // Most waits should live to be notified; a last thread must give up itself.
                let is_patient = !thread.woken && !self.builder.len().is_multiple_of(4);
                let end = if thread.woken { ConditionOp::Wake } else { ConditionOp::Timeout };
                let stays = is_patient && !self.is_alone(at);
                return if stays {
                    Vec::new()
                } else {
                    vec![(1, Action::Do(Op::Condition(end, on)))]
                };
            }
            Some(op) => return vec![(1, Action::Do(op))],
            None => {}
        }
        let mut actions = self.plain_actions();
        self.lock_actions(at, &mut actions);
        self.thread_actions(at, &mut actions);
        self.condition_actions(at, &mut actions);
        actions
    }

    /// Whether nobody but the thread at `at` can run.
    fn is_alone(&self, at: usize) -> bool {
        let is_free = |thread: &Thread| thread.life == Life::Running && thread.bound.is_empty();
        !self.threads.iter().enumerate().any(|(other, thread)| other != at && is_free(thread))
    }

    /// What a thread may try whatever it has done.
    fn plain_actions(&self) -> Actions {
        use MemoryOrder::{AcqRel, Acquire, Relaxed, Release, SeqCst};
        let Shape { atomics, shared, unknown_writers, notes, .. } = self.shape;
        [
            (3, OpKind::Write, SeqCst, true),
            (5, OpKind::Read, SeqCst, true),
            (1, OpKind::UnknownRead, SeqCst, unknown_writers),
            (2, OpKind::AtomicRead, SeqCst, atomics),
            (1, OpKind::AtomicRead, Acquire, atomics),
            (2, OpKind::AtomicWrite, Release, atomics),
            (1, OpKind::AtomicWrite, Relaxed, atomics),
            (2, OpKind::AtomicUpdate, AcqRel, atomics),
            (1, OpKind::AtomicRead, Relaxed, atomics),
            (1, OpKind::AtomicUpdate, Relaxed, atomics),
            (1, OpKind::AtomicUpdate, Release, atomics),
            (1, OpKind::Fence, SeqCst, atomics),
            (1, OpKind::Fence, Acquire, atomics),
            (1, OpKind::Fence, Release, atomics),
            (4, OpKind::Release, SeqCst, true),
            (4, OpKind::ReleaseShared, SeqCst, shared),
            (4, OpKind::Arrive, SeqCst, true),
            (4, OpKind::Depart, SeqCst, true),
            (3, OpKind::Post, SeqCst, true),
            (4, OpKind::Take, SeqCst, true),
            (1, OpKind::Alloc, SeqCst, true),
            (1, OpKind::Free, SeqCst, true),
            (1, OpKind::Begin, SeqCst, true),
            (2, OpKind::End, SeqCst, true),
            (1, OpKind::Branch, SeqCst, notes),
            (1, OpKind::Timed, SeqCst, notes),
            (1, OpKind::Unchecked, SeqCst, notes),
            (1, OpKind::Let, SeqCst, notes),
            (1, OpKind::Request, SeqCst, notes),
            (1, OpKind::RequestExclusive, SeqCst, notes && shared),
        ]
        .into_iter()
        .filter(|&(_, _, _, is_wanted)| is_wanted)
        .flat_map(|(weight, kind, order, _)| {
            let count =
                if kind.operand() == NameKind::None { 1 } else { self.shape.count(kind.operand()) };
            let op = move |index| Op::decode(OpCode::new(kind, order), index as u32);
            (0..count).map(move |index| (weight, Action::Do(op(index))))
        })
        .collect()
    }

    /// The locks that the thread at `at` holds, with the mode and how often.
    fn held(&self, at: usize) -> impl Iterator<Item = (LockId, Mode, u32)> {
        let modes = |lock| [(lock, Mode::Exclusive), (lock, Mode::Shared)];
        let depths = (0..self.shape.locks).map(id).flat_map(modes);
        let depths =
            depths.map(move |(lock, mode)| (lock, mode, self.monitor.depth(lock, id(at), mode)));
        depths.filter(|&(_, _, depth)| depth > 0)
    }

    fn lock_actions(&self, at: usize, actions: &mut Actions) {
        if self.held(at).map(|(_, _, depth)| depth as usize).sum::<usize>() >= self.shape.held_max {
            return;
        }
        for lock in (0..self.shape.locks).map(id) {
            if self.shape.reentrant || self.held(at).all(|(held, ..)| held != lock) {
                actions.push((3, Action::Do(Op::Lock(LockOp::Acquire, lock))));
                if self.shape.shared {
                    actions.push((3, Action::Do(Op::Lock(LockOp::AcquireShared, lock))));
                }
            }
        }
    }

    fn thread_actions(&self, at: usize, actions: &mut Actions) {
        if !self.shape.forks {
            return;
        }
        for (child, thread) in self.threads.iter().enumerate().skip(1) {
            // A thread ends outside of critical sections, waits and barriers.
            let can_end = thread.bound.is_empty()
                && thread.inside_count == 0
                && self.held(child).next().is_none();
            let (weight, op) = match thread.life {
                Life::Unborn => (6, ThreadOp::Fork),
                Life::Running if child == at || !can_end => continue,
                Life::Running | Life::Over => (1, ThreadOp::Join),
            };
            actions.push((weight, Action::Do(Op::Thread(op, id(child)))));
        }
    }

    fn condition_actions(&self, at: usize, actions: &mut Actions) {
        for on in (0..self.shape.conditions).map(id::<ConditionId>) {
            actions.push((1, Action::Do(Op::Condition(ConditionOp::Wait, on))));
            for (lock, mode, _) in self.held(at) {
                let (acquire, release) = match mode {
                    Mode::Exclusive => (LockOp::Acquire, LockOp::Release),
                    Mode::Shared => (LockOp::AcquireShared, LockOp::ReleaseShared),
                };
                let [acquire, release] = [acquire, release].map(|op| Op::Lock(op, lock));
                actions.push((4, Action::BeginWait { release, on, acquire }));
            }
            let waiting = (0..self.shape.threads).filter(|&other| self.waits_on(other, on));
            let wakes: Actions = waiting.map(|whom| (4, Action::Wake { on, whom })).collect();
            if wakes.is_empty() {
                actions.push((1, Action::Do(Op::Condition(ConditionOp::Notify, on))));
            }
            let weight = if wakes.is_empty() { 1 } else { 3 };
            actions.extend(wakes);
            actions.push((weight, Action::Do(Op::Condition(ConditionOp::NotifyAll, on))));
        }
    }

    /// Whether the thread at `at` waits on the condition and was not notified.
    fn waits_on(&self, at: usize, on: ConditionId) -> bool {
        let thread = &self.threads[at];
        thread.bound.contains(&Op::Condition(ConditionOp::Wake, on)) && !thread.woken
    }

    /// Does it, if it can happen.
    fn perform(&mut self, at: usize, action: Action) -> bool {
        let op = match action {
            Action::Do(op) | Action::BeginWait { release: op, .. } => op,
            Action::Wake { on, .. } => Op::Condition(ConditionOp::Notify, on),
        };
        if self.monitor.step(id(self.builder.len()), id(at), op).is_err() {
            return false;
        }
        self.emit(at, op);
        let thread = &mut self.threads[at];
        let was_bound = thread.bound.pop_front().is_some();
        match (action, op) {
            (Action::BeginWait { on, acquire, .. }, _) => {
                let wait = [ConditionOp::Wait, ConditionOp::Wake].map(|op| Op::Condition(op, on));
                thread.bound.extend(wait.into_iter().chain([acquire]));
                thread.woken = false;
            }
            (Action::Wake { whom, .. }, _) => self.threads[whom].woken = true,
            (_, Op::Condition(ConditionOp::Wait, on)) if !was_bound => {
                thread.bound.push_back(Op::Condition(ConditionOp::Wake, on));
                thread.woken = false;
            }
            (_, Op::Condition(ConditionOp::NotifyAll, on)) => {
                for other in 0..self.threads.len() {
                    self.threads[other].woken |= self.waits_on(other, on);
                }
            }
            (_, Op::Thread(ThreadOp::Fork, child)) => {
                self.threads[child.index()].life = Life::Running;
            }
            (_, Op::Thread(ThreadOp::Join, child)) => self.threads[child.index()].life = Life::Over,
            (_, Op::Barrier(BarrierOp::Arrive, _)) => thread.inside_count += 1,
            (_, Op::Barrier(BarrierOp::Depart, _)) => thread.inside_count -= 1,
            _ => {}
        }
        true
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
}

/// Names everything that the shape speaks of, numbered from 1.
fn name_all(builder: &mut TraceBuilder, shape: Shape) {
    for (kind, letter) in NameKind::ALL.into_iter().zip("txlcbsokv".chars()) {
        for at in 1..=shape.count(kind) {
            let name = format!("{letter}{at}");
            builder.names().intern(kind, name.as_bytes()).expect("a name is text");
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
