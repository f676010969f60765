//! The run: who can go on, and what that changes.

use std::collections::VecDeque;

use reweave_base::{Id, Rng};
use reweave_trace::{
    AccessOp, BarrierOp, ConditionOp, LockOp, Op, SemaphoreOp, SiteId, ThreadId, ThreadOp, Trace,
    TraceBuilder, VarId,
};

use crate::{Config, Shape};

/// How many locations there are: twenty files of a hundred lines.
const SITES: usize = 2_000;

/// How many events lie between two looks at whether to stop.
const STRIDE: usize = 1 << 16;

/// What a thread is doing.
#[derive(Debug, Default)]
struct Thread {
    script: VecDeque<Op>,
    is_forked: bool,
    /// How many steps it did.
    steps: usize,
    /// No more is coming once the script is used up.
    is_closing: bool,
    is_woken: bool,
    departs_after: u64,
}

impl Thread {
    fn is_done(&self) -> bool {
        self.is_closing && self.script.is_empty()
    }
}

/// A run that is being made.
#[derive(Debug)]
pub(crate) struct Run {
    config: Config,
    rng: Rng,
    threads: Vec<Thread>,
    builder: TraceBuilder,
    holders: Vec<Option<usize>>,
    tokens: Vec<u64>,
    /// The threads that wait on each condition and were not woken, longest first.
    waiting: Vec<VecDeque<usize>>,
    arrivals: u64,
    /// Items that each monitor holds, for shapes with monitors.
    items: Vec<u64>,
}

impl Run {
    pub(crate) fn new(config: &Config) -> Self {
        let needs_lock = matches!(config.shape, Shape::ProducerConsumer | Shape::WaitNotify);
        let config = Config {
            threads: config.threads.max(1),
            locks: config.locks.max(usize::from(needs_lock)),
            vars: config.vars.max(1),
            ..*config
        };
        let mut builder = TraceBuilder::new();
        for site in 0..SITES {
            builder.site(&format!("file{}.c:{}", site / 100, site % 100 + 1));
        }
        for thread in 0..config.threads {
            builder.thread(&format!("T{thread}"));
        }
        for var in 0..config.vars {
            builder.var(&format!("v{var}"));
        }
        for lock in 0..config.locks {
            builder.lock(&format!("l{lock}"));
            if config.shape == Shape::WaitNotify {
                builder.condition(&format!("c{lock}"));
            }
            if config.shape == Shape::ProducerConsumer {
                builder.names().semaphores.intern(&format!("s{lock}"));
            }
        }
        if config.shape == Shape::Barrier {
            let barrier = builder.names().barriers.intern("b");
            builder.declare_parties(barrier, config.threads as u32);
        }
        let mut threads: Vec<Thread> = Vec::new();
        threads.resize_with(config.threads, Thread::default);
        threads[0].is_forked = true;
        Self {
            config,
            rng: Rng::new(config.seed),
            threads,
            builder,
            holders: vec![None; config.locks],
            tokens: vec![0; config.locks],
            waiting: vec![VecDeque::new(); config.locks],
            arrivals: 0,
            items: vec![0; config.locks],
        }
    }

    /// Runs to the end, while `go_on` says so.
    pub(crate) fn finish(mut self, go_on: &dyn Fn(usize) -> bool) -> Option<Trace> {
        self.start();
        while self.builder.len() < self.config.events {
            if self.builder.len().is_multiple_of(STRIDE) && !go_on(self.builder.len()) {
                return None;
            }
            let threads = self.config.threads;
            let first = self.rng.below(threads);
            let mut turns = (first..threads).chain(0..first);
            let Some(thread) = turns.find(|&thread| self.can_step(thread)) else {
                // Everyone is done, or waits for someone who is: the first thread fills up.
                let var = self.rng.below(self.config.vars);
                self.emit(0, Op::Access(AccessOp::Read, VarId::from_index(var)));
                continue;
            };
            if let Some(op) = self.threads[thread].script.pop_front() {
                self.emit(thread, op);
            }
        }
        Some(self.builder.finish().expect("a step is only taken when it can happen"))
    }

    /// Whether `thread` has a next step and it can happen now.
    fn can_step(&mut self, thread: usize) -> bool {
        if !self.threads[thread].is_forked {
            return false;
        }
        if self.threads[thread].script.is_empty() && !self.threads[thread].is_closing {
            self.refill(thread);
        }
        let Some(&op) = self.threads[thread].script.front() else { return false };
        match op {
            Op::Lock(LockOp::Acquire, lock) => self.holders[lock.index()].is_none(),
            Op::Thread(ThreadOp::Join, child) => self.threads[child.index()].is_done(),
            Op::Semaphore(SemaphoreOp::Take, semaphore) => self.tokens[semaphore.index()] > 0,
            Op::Condition(ConditionOp::Wake, _) => self.threads[thread].is_woken,
            Op::Barrier(BarrierOp::Depart, _) => {
                self.arrivals >= self.threads[thread].departs_after
            }
            _ => true,
        }
    }

    fn emit(&mut self, thread: usize, op: Op) {
        match op {
            Op::Lock(LockOp::Acquire, lock) => self.holders[lock.index()] = Some(thread),
            Op::Lock(LockOp::Release, lock) => self.holders[lock.index()] = None,
            Op::Thread(ThreadOp::Fork, child) => self.threads[child.index()].is_forked = true,
            Op::Semaphore(SemaphoreOp::Post, semaphore) => self.tokens[semaphore.index()] += 1,
            Op::Semaphore(SemaphoreOp::Take, semaphore) => self.tokens[semaphore.index()] -= 1,
            Op::Condition(ConditionOp::Wait, condition) => {
                self.threads[thread].is_woken = false;
                self.waiting[condition.index()].push_back(thread);
            }
            Op::Condition(ConditionOp::Notify, condition) => {
                if let Some(woken) = self.waiting[condition.index()].pop_front() {
                    self.threads[woken].is_woken = true;
                }
            }
            Op::Condition(ConditionOp::NotifyAll, condition) => {
                while let Some(woken) = self.waiting[condition.index()].pop_front() {
                    self.threads[woken].is_woken = true;
                }
            }
            Op::Barrier(BarrierOp::Arrive, _) => {
                let parties = self.config.threads as u64;
                self.threads[thread].departs_after = (self.arrivals / parties + 1) * parties;
                self.arrivals += 1;
            }
            _ => {}
        }
        self.threads[thread].steps += 1;
        let site = SiteId::from_index(match self.config.shape {
            // As in programs, a place in the code does one thing.
            Shape::Guarded => {
                let (code, operand) = op.encode();
                (operand as usize * 4 + usize::from(code.byte())) % SITES
            }
            _ => self.rng.below(SITES),
        });
        self.builder.push(ThreadId::from_index(thread), op, site);
    }

    fn push(&mut self, thread: usize, op: Op) {
        self.threads[thread].script.push_back(op);
    }
}

fn id<I: Id>(index: usize) -> I {
    I::from_index(index)
}

// What threads of each shape do next.

impl Run {
    /// Gives the first thread its forks; in the fork-join shape each thread forks its own.
    fn start(&mut self) {
        match self.config.shape {
            Shape::ForkJoin => {
                for parent in 0..self.config.threads {
                    for child in self.children(parent) {
                        self.push(parent, Op::Thread(ThreadOp::Fork, id(child)));
                    }
                }
            }
            _ => {
                for child in 1..self.config.threads {
                    self.push(0, Op::Thread(ThreadOp::Fork, id(child)));
                }
            }
        }
    }

    /// Gives `thread` its next few steps; at least one unless it closes.
    fn refill(&mut self, thread: usize) {
        match self.config.shape {
            Shape::Guarded => self.guarded(thread),
            Shape::Mixed => {
                if self.config.locks > 0 && self.rng.chance(25) {
                    let depth = 1 + usize::from(self.rng.chance(20));
                    self.section(thread, depth, 6);
                } else {
                    self.accesses(thread, 4);
                }
            }
            Shape::LockHeavy => {
                if self.config.locks > 0 {
                    let depth = 1 + self.rng.below(4);
                    self.section(thread, depth, 1);
                } else {
                    self.accesses(thread, 1);
                }
            }
            Shape::ForkJoin => self.fork_join(thread),
            Shape::ProducerConsumer => self.producer_consumer(thread),
            Shape::WaitNotify => self.wait_notify(thread),
            Shape::Barrier => {
                self.accesses(thread, 20);
                self.push(thread, Op::Barrier(BarrierOp::Arrive, id(0)));
                self.push(thread, Op::Barrier(BarrierOp::Depart, id(0)));
            }
        }
    }

    fn var(&mut self) -> VarId {
        id(self.rng.below(self.config.vars))
    }

    /// From one access to `accesses_max`, two reads to a write.
    fn accesses(&mut self, thread: usize, accesses_max: usize) {
        for _ in 0..=self.rng.below(accesses_max) {
            let var = self.var();
            self.access(thread, var.index());
        }
    }

    /// Up to `depth` nested critical sections around some accesses. Locks are taken in the order
    /// of their numbers, so that no threads wait for each other forever.
    fn section(&mut self, thread: usize, depth: usize, accesses_max: usize) {
        let mut locks: Vec<usize> = (0..depth).map(|_| self.rng.below(self.config.locks)).collect();
        locks.sort_unstable();
        locks.dedup();
        for &index in &locks {
            self.push(thread, Op::Lock(LockOp::Acquire, id(index)));
            self.accesses(thread, accesses_max);
        }
        for &index in locks.iter().rev() {
            self.push(thread, Op::Lock(LockOp::Release, id(index)));
        }
    }

    /// Half of the work is on variables of one's own, the rest under locks, which guard the other
    /// variables in turn. The lock is forgotten about ten times in the whole run.
    fn guarded(&mut self, thread: usize) {
        let (threads, locks) = (self.config.threads, self.config.locks);
        let own_count = self.config.vars / 2;
        if locks == 0 || (own_count >= threads && self.rng.chance(50)) {
            for _ in 0..=self.rng.below(5) {
                let own = thread + threads * self.rng.below((own_count / threads).max(1));
                self.access(thread, own.min(self.config.vars - 1));
            }
            return;
        }
        let guard = self.rng.below(locks);
        let inner = guard + 1 + self.rng.below(locks);
        // Locks are taken in the order of their numbers, so that no threads wait forever.
        let inner = (self.rng.chance(15) && inner < locks).then_some(inner);
        // A section is about ten events, and half of all events are in one.
        let is_forgotten = self.rng.below((self.config.events / 200).max(1)) == 0;
        if !is_forgotten {
            self.push(thread, Op::Lock(LockOp::Acquire, id(guard)));
        }
        self.guarded_accesses(thread, guard, own_count);
        if let Some(inner) = inner {
            self.push(thread, Op::Lock(LockOp::Acquire, id(inner)));
            self.guarded_accesses(thread, inner, own_count);
            self.push(thread, Op::Lock(LockOp::Release, id(inner)));
        }
        if !is_forgotten {
            self.push(thread, Op::Lock(LockOp::Release, id(guard)));
        }
    }

    fn guarded_accesses(&mut self, thread: usize, guard: usize, own_count: usize) {
        let locks = self.config.locks;
        for _ in 0..=self.rng.below(4) {
            let count = (self.config.vars - own_count).div_ceil(locks);
            let var = own_count + guard + locks * self.rng.below(count);
            self.access(thread, var.min(self.config.vars - 1));
        }
    }

    /// One access, two reads to a write.
    fn access(&mut self, thread: usize, var: usize) {
        let var = id(var);
        let op = if self.rng.chance(33) { AccessOp::Write } else { AccessOp::Read };
        self.push(thread, Op::Access(op, var));
    }

    /// The threads that `parent` forks: threads are a binary tree, numbered level by level.
    fn children(&self, parent: usize) -> std::ops::Range<usize> {
        let threads = self.config.threads;
        (2 * parent + 1).min(threads)..(2 * parent + 3).min(threads)
    }

    /// An equal share of work, then the joins of one's own threads.
    fn fork_join(&mut self, thread: usize) {
        let threads = self.config.threads;
        let edges = 2 * (threads - 1);
        let share = self.config.events.saturating_sub(edges) / threads;
        if self.threads[thread].steps < share {
            if self.config.locks > 0 && self.rng.chance(10) {
                self.section(thread, 1, 4);
            } else {
                self.accesses(thread, 4);
            }
            return;
        }
        for child in self.children(thread) {
            self.push(thread, Op::Thread(ThreadOp::Join, id(child)));
        }
        self.threads[thread].is_closing = true;
    }

    /// Even threads put items into a queue, odd ones take them out.
    fn producer_consumer(&mut self, thread: usize) {
        let queue = self.rng.below(self.config.locks);
        let slot = self.var();
        let is_producer = thread.is_multiple_of(2);
        if !is_producer {
            self.push(thread, Op::Semaphore(SemaphoreOp::Take, id(queue)));
        }
        self.push(thread, Op::Lock(LockOp::Acquire, id(queue)));
        self.push(
            thread,
            if is_producer {
                Op::Access(AccessOp::Write, slot)
            } else {
                Op::Access(AccessOp::Read, slot)
            },
        );
        self.push(thread, Op::Lock(LockOp::Release, id(queue)));
        if is_producer {
            self.push(thread, Op::Semaphore(SemaphoreOp::Post, id(queue)));
        }
        self.accesses(thread, 2);
    }

    /// Even threads put items into a monitor and notify; odd ones take them out, and wait first
    /// if they find none.
    fn wait_notify(&mut self, thread: usize) {
        let monitor = self.rng.below(self.config.locks);
        let item = self.var();
        self.push(thread, Op::Lock(LockOp::Acquire, id(monitor)));
        if thread.is_multiple_of(2) {
            self.items[monitor] += 1;
            self.push(thread, Op::Access(AccessOp::Write, item));
            let wakes_all = self.rng.chance(10);
            let op = if wakes_all { ConditionOp::NotifyAll } else { ConditionOp::Notify };
            self.push(thread, Op::Condition(op, id(monitor)));
        } else {
            self.push(thread, Op::Access(AccessOp::Read, item));
            if self.items[monitor] == 0 {
                self.push(thread, Op::Lock(LockOp::Release, id(monitor)));
                self.push(thread, Op::Condition(ConditionOp::Wait, id(monitor)));
                self.push(thread, Op::Condition(ConditionOp::Wake, id(monitor)));
                self.push(thread, Op::Lock(LockOp::Acquire, id(monitor)));
            }
            self.items[monitor] = self.items[monitor].saturating_sub(1);
            self.push(thread, Op::Access(AccessOp::Write, item));
        }
        self.push(thread, Op::Lock(LockOp::Release, id(monitor)));
        self.accesses(thread, 2);
    }
}
