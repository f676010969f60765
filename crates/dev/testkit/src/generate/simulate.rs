//! Threads that do, at each turn, one of the things they could do just then.

use std::collections::VecDeque;

use reweave_base::Id;
use reweave_trace::{
    AccessOp, BarrierId, BarrierOp, BlockId, BlockOp, ConditionId, ConditionOp, LockId, LockOp,
    MemoryOrder, NameKind, ObjectId, ObjectOp, Op, SemaphoreId, SemaphoreOp, ThreadOp,
    TraceBuilder, VarId,
};

use super::Shape;

/// The events that come of `choices`, one a turn.
pub(super) fn run(shape: Shape, choices: &[u16]) -> TraceBuilder {
    let mut world = World::new(shape);
    for &choice in choices {
        let able: Vec<usize> =
            (0..shape.threads).filter(|&at| !world.deeds(at).is_empty()).collect();
        if able.is_empty() {
            break;
        }
        let (thread, rest) =
            (able[usize::from(choice) % able.len()], usize::from(choice) / able.len());
        let deeds = world.deeds(thread);
        let total: usize = deeds.iter().map(|&(weight, _)| weight).sum();
        let mut left = rest % total;
        let chosen = deeds.iter().find(|&&(weight, _)| {
            let here = left < weight;
            left = left.saturating_sub(weight);
            here
        });
        let &(_, deed) = chosen.expect("the weights sum to the total");
        world.perform(thread, deed);
    }
    world.builder
}

/// Something that a thread could do.
#[derive(Clone, Copy)]
enum Deed {
    Do(Op),
    /// Gives up a lock and waits, to take it again afterwards.
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

type Deeds = Vec<(usize, Deed)>;

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
    fn deeds(&self, at: usize) -> Deeds {
        let thread = &self.threads[at];
        let mut deeds = Deeds::new();
        if thread.life != Life::Running {
            return deeds;
        }
        match thread.bound.front().copied() {
            Some(Op::Condition(ConditionOp::Wake, on)) => {
                let end = if thread.woken {
                    Op::Condition(ConditionOp::Wake, on)
                } else {
                    Op::Condition(ConditionOp::Timeout, on)
                };
                // Most waits should live to be notified; a last thread must give up itself.
                let is_patient = !thread.woken && !self.builder.len().is_multiple_of(4);
                if !is_patient || self.is_alone(at) {
                    deeds.push((1, Deed::Do(end)));
                }
                return deeds;
            }
            Some(op @ Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock)) => {
                if self.is_free(at, lock.index(), matches!(op, Op::Lock(LockOp::AcquireShared, _)))
                {
                    deeds.push((1, Deed::Do(op)));
                }
                return deeds;
            }
            Some(op) => {
                deeds.push((1, Deed::Do(op)));
                return deeds;
            }
            None => {}
        }
        self.access_deeds(&mut deeds);
        self.lock_deeds(at, &mut deeds);
        self.thread_deeds(at, &mut deeds);
        self.condition_deeds(at, &mut deeds);
        self.counting_deeds(at, &mut deeds);
        self.other_deeds(at, &mut deeds);
        deeds
    }

    /// Whether nobody but the thread at `at` can run.
    fn is_alone(&self, at: usize) -> bool {
        let is_free = |thread: &Thread| thread.life == Life::Running && thread.bound.is_empty();
        !self.threads.iter().enumerate().any(|(other, thread)| other != at && is_free(thread))
    }

    fn access_deeds(&self, deeds: &mut Deeds) {
        for x in (0..self.shape.vars).map(id::<VarId>) {
            deeds.push((3, Deed::Do(Op::Access(AccessOp::Write, x))));
            deeds.push((5, Deed::Do(Op::Access(AccessOp::Read, x))));
            if self.shape.loose {
                deeds.push((1, Deed::Do(Op::Access(AccessOp::UnknownRead, x))));
            }
            if self.shape.atomics {
                deeds.push((2, Deed::Do(Op::Access(AccessOp::AtomicRead(MemoryOrder::SeqCst), x))));
                deeds
                    .push((1, Deed::Do(Op::Access(AccessOp::AtomicRead(MemoryOrder::Acquire), x))));
                deeds.push((
                    2,
                    Deed::Do(Op::Access(AccessOp::AtomicWrite(MemoryOrder::Release), x)),
                ));
                deeds.push((
                    1,
                    Deed::Do(Op::Access(AccessOp::AtomicWrite(MemoryOrder::Relaxed), x)),
                ));
                deeds.push((
                    2,
                    Deed::Do(Op::Access(AccessOp::AtomicUpdate(MemoryOrder::AcqRel), x)),
                ));
            }
        }
        if self.shape.atomics {
            deeds.push((1, Deed::Do(Op::Fence(MemoryOrder::SeqCst))));
        }
    }

    /// Whether the thread at `at` could take the lock in that mode.
    fn is_free(&self, at: usize, lock: usize, shared: bool) -> bool {
        let others = self.threads.iter().enumerate().filter(|&(other, _)| other != at);
        let mut held = others.flat_map(|(_, other)| &other.held);
        !held.any(|&(on, is_shared)| on == lock && !(shared && is_shared))
    }

    fn lock_deeds(&self, at: usize, deeds: &mut Deeds) {
        let held = &self.threads[at].held;
        for lock in 0..self.shape.locks {
            let has = held.iter().any(|&(on, _)| on == lock);
            if held.len() >= self.shape.held_max || (has && !self.shape.reentrant) {
                continue;
            }
            if self.is_free(at, lock, false) {
                deeds.push((3, Deed::Do(Op::Lock(LockOp::Acquire, id(lock)))));
            }
            if self.shape.shared && self.is_free(at, lock, true) {
                deeds.push((3, Deed::Do(Op::Lock(LockOp::AcquireShared, id(lock)))));
            }
        }
        for (place, &entry) in held.iter().enumerate() {
            if !held[..place].contains(&entry) {
                deeds.push((4, Deed::Do(release(entry))));
            }
        }
    }

    fn thread_deeds(&self, at: usize, deeds: &mut Deeds) {
        if !self.shape.forks {
            return;
        }
        for (child, thread) in self.threads.iter().enumerate().skip(1) {
            let is_quiet = thread.held.is_empty() && thread.bound.is_empty();
            match thread.life {
                Life::Unborn => deeds.push((6, Deed::Do(Op::Thread(ThreadOp::Fork, id(child))))),
                Life::Running if child != at && is_quiet && thread.inside.is_empty() => {
                    deeds.push((1, Deed::Do(Op::Thread(ThreadOp::Join, id(child)))));
                }
                Life::Over => deeds.push((1, Deed::Do(Op::Thread(ThreadOp::Join, id(child))))),
                Life::Running => {}
            }
        }
    }

    fn condition_deeds(&self, at: usize, deeds: &mut Deeds) {
        for on in (0..self.shape.conditions).map(id::<ConditionId>) {
            deeds.push((1, Deed::Do(Op::Condition(ConditionOp::Wait, on))));
            for &entry in &self.threads[at].held {
                let (release, acquire) = (release(entry), acquire(entry));
                deeds.push((4, Deed::BeginWait { release, on, acquire }));
            }
            let waiting: Vec<usize> =
                (0..self.shape.threads).filter(|&other| self.waits_on(other, on)).collect();
            if waiting.is_empty() {
                deeds.push((1, Deed::Do(Op::Condition(ConditionOp::Notify, on))));
            }
            let wakes = waiting.iter().map(|&whom| (4, Deed::Wake { on, whom }));
            deeds.extend(wakes);
            deeds.push((
                if waiting.is_empty() { 1 } else { 3 },
                Deed::Do(Op::Condition(ConditionOp::NotifyAll, on)),
            ));
        }
    }

    /// Whether the thread at `at` waits on the condition and was not notified.
    fn waits_on(&self, at: usize, on: ConditionId) -> bool {
        let thread = &self.threads[at];
        thread.bound.contains(&Op::Condition(ConditionOp::Wake, on)) && !thread.woken
    }

    fn counting_deeds(&self, at: usize, deeds: &mut Deeds) {
        for (at_barrier, barrier) in self.barriers.iter().enumerate() {
            let own = self.threads[at].inside.iter().find(|&&(inside, _)| inside == at_barrier);
            match own {
                None => deeds.push((4, Deed::Do(Op::Barrier(BarrierOp::Arrive, id(at_barrier))))),
                Some(&(_, round)) => {
                    if barrier.parties.is_none_or(|parties| barrier.rounds[round] == parties) {
                        deeds.push((4, Deed::Do(Op::Barrier(BarrierOp::Depart, id(at_barrier)))));
                    }
                }
            }
        }
        for (semaphore, &(tokens, known)) in self.semaphores.iter().enumerate() {
            deeds.push((
                3,
                Deed::Do(Op::Semaphore(SemaphoreOp::Post, id::<SemaphoreId>(semaphore))),
            ));
            if tokens > 0 || !known {
                deeds.push((4, Deed::Do(Op::Semaphore(SemaphoreOp::Take, id(semaphore)))));
            }
        }
    }

    fn other_deeds(&self, at: usize, deeds: &mut Deeds) {
        for (object, &life) in self.objects.iter().enumerate() {
            match life {
                Life::Unborn => {
                    deeds.push((1, Deed::Do(Op::Object(ObjectOp::Alloc, id::<ObjectId>(object)))))
                }
                Life::Running => deeds.push((1, Deed::Do(Op::Object(ObjectOp::Free, id(object))))),
                Life::Over => {}
            }
        }
        for block in 0..self.shape.blocks {
            deeds.push((1, Deed::Do(Op::Block(BlockOp::Begin, id::<BlockId>(block)))));
            if self.threads[at].blocks.contains(&block) {
                deeds.push((2, Deed::Do(Op::Block(BlockOp::End, id(block)))));
            }
        }
        if self.shape.notes {
            deeds.push((1, Deed::Do(Op::Branch)));
            deeds.push((1, Deed::Do(Op::Let(id(0)))));
            deeds.extend(
                (0..self.shape.locks)
                    .map(|lock| (1, Deed::Do(Op::Lock(LockOp::Request, id(lock))))),
            );
        }
    }

    fn perform(&mut self, at: usize, deed: Deed) {
        match deed {
            Deed::Do(op) => {
                self.emit(at, op);
                self.take_effect(at, op);
            }
            Deed::BeginWait { release, on, acquire } => {
                self.emit(at, release);
                self.take_effect(at, release);
                self.threads[at].bound.extend([
                    Op::Condition(ConditionOp::Wait, on),
                    Op::Condition(ConditionOp::Wake, on),
                    acquire,
                ]);
                self.threads[at].woken = false;
            }
            Deed::Wake { on, whom } => {
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
                drop_one(&mut thread.held, &(lock.index(), true))
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
                self.semaphores[semaphore.index()].0 += 1
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
    if shared {
        Op::Lock(LockOp::AcquireShared, id::<LockId>(lock))
    } else {
        Op::Lock(LockOp::Acquire, id(lock))
    }
}

fn release((lock, shared): (usize, bool)) -> Op {
    if shared {
        Op::Lock(LockOp::ReleaseShared, id::<LockId>(lock))
    } else {
        Op::Lock(LockOp::Release, id(lock))
    }
}

fn drop_one<T: PartialEq>(items: &mut Vec<T>, item: &T) {
    let place = items.iter().rposition(|other| other == item);
    items.remove(place.expect("only what is there is given back"));
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
