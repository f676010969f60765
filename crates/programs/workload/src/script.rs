//! What threads of each shape do next.

use reweave_base::Id;
use reweave_trace::{
    AccessOp, BarrierOp, ConditionOp, LockOp, Op, SemaphoreOp, ThreadId, ThreadOp, VarId,
};

use crate::Shape;
use crate::run::{Run, barrier, condition, lock, semaphore};

impl Run {
    /// Gives the first thread its forks; in the fork-join shape each thread forks its own.
    pub(crate) fn start(&mut self) {
        match self.config.shape {
            Shape::ForkJoin => {
                for parent in 0..self.config.threads {
                    for child in self.children(parent) {
                        self.push(parent, Op::Thread(ThreadOp::Fork, ThreadId::from_index(child)));
                    }
                }
            }
            _ => {
                for child in 1..self.config.threads {
                    self.push(0, Op::Thread(ThreadOp::Fork, ThreadId::from_index(child)));
                }
            }
        }
    }

    /// Gives `thread` its next few steps; at least one unless it closes.
    pub(crate) fn refill(&mut self, thread: usize) {
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
                self.push(thread, Op::Barrier(BarrierOp::Arrive, barrier()));
                self.push(thread, Op::Barrier(BarrierOp::Depart, barrier()));
            }
        }
    }

    fn var(&mut self) -> VarId {
        VarId::from_index(self.rng.below(self.config.vars))
    }

    /// From one access to `accesses_max`, two reads to a write.
    fn accesses(&mut self, thread: usize, accesses_max: usize) {
        for _ in 0..=self.rng.below(accesses_max) {
            let var = self.var();
            self.access(thread, var.index());
        }
    }

    /// Up to `depth` nested critical sections around some accesses. Locks are taken in the order
    /// of their numbers, so that no threads wait for each other for ever.
    fn section(&mut self, thread: usize, depth: usize, accesses_max: usize) {
        let mut locks: Vec<usize> = (0..depth).map(|_| self.rng.below(self.config.locks)).collect();
        locks.sort_unstable();
        locks.dedup();
        for &index in &locks {
            self.push(thread, Op::Lock(LockOp::Acquire, lock(index)));
            self.accesses(thread, accesses_max);
        }
        for &index in locks.iter().rev() {
            self.push(thread, Op::Lock(LockOp::Release, lock(index)));
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
        // Locks are taken in the order of their numbers, so that no threads wait for ever.
        let inner = (self.rng.chance(15) && inner < locks).then_some(inner);
        // A section is about ten events, and half of all events are in one.
        let is_forgotten = self.rng.below((self.config.events / 200).max(1)) == 0;
        if !is_forgotten {
            self.push(thread, Op::Lock(LockOp::Acquire, lock(guard)));
        }
        self.guarded_accesses(thread, guard, own_count);
        if let Some(inner) = inner {
            self.push(thread, Op::Lock(LockOp::Acquire, lock(inner)));
            self.guarded_accesses(thread, inner, own_count);
            self.push(thread, Op::Lock(LockOp::Release, lock(inner)));
        }
        if !is_forgotten {
            self.push(thread, Op::Lock(LockOp::Release, lock(guard)));
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
        let var = VarId::from_index(var);
        let op = if self.rng.chance(33) {
            Op::Access(AccessOp::Write, var)
        } else {
            Op::Access(AccessOp::Read, var)
        };
        self.push(thread, op);
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
            self.push(thread, Op::Thread(ThreadOp::Join, ThreadId::from_index(child)));
        }
        self.threads[thread].is_closing = true;
    }

    /// Even threads put items into a queue, odd ones take them out.
    fn producer_consumer(&mut self, thread: usize) {
        let queue = self.rng.below(self.config.locks);
        let slot = self.var();
        let is_producer = thread.is_multiple_of(2);
        if !is_producer {
            self.push(thread, Op::Semaphore(SemaphoreOp::Take, semaphore(queue)));
        }
        self.push(thread, Op::Lock(LockOp::Acquire, lock(queue)));
        self.push(
            thread,
            if is_producer {
                Op::Access(AccessOp::Write, slot)
            } else {
                Op::Access(AccessOp::Read, slot)
            },
        );
        self.push(thread, Op::Lock(LockOp::Release, lock(queue)));
        if is_producer {
            self.push(thread, Op::Semaphore(SemaphoreOp::Post, semaphore(queue)));
        }
        self.accesses(thread, 2);
    }

    /// Even threads put items into a monitor and notify; odd ones take them out, and wait first
    /// if they find none.
    fn wait_notify(&mut self, thread: usize) {
        let monitor = self.rng.below(self.config.locks);
        let item = self.var();
        self.push(thread, Op::Lock(LockOp::Acquire, lock(monitor)));
        if thread.is_multiple_of(2) {
            self.items[monitor] += 1;
            self.push(thread, Op::Access(AccessOp::Write, item));
            let all = self.rng.chance(10);
            let wakes = condition(monitor);
            self.push(
                thread,
                if all {
                    Op::Condition(ConditionOp::NotifyAll, wakes)
                } else {
                    Op::Condition(ConditionOp::Notify, wakes)
                },
            );
        } else {
            self.push(thread, Op::Access(AccessOp::Read, item));
            if self.items[monitor] == 0 {
                self.push(thread, Op::Lock(LockOp::Release, lock(monitor)));
                self.push(thread, Op::Condition(ConditionOp::Wait, condition(monitor)));
                self.push(thread, Op::Condition(ConditionOp::Wake, condition(monitor)));
                self.push(thread, Op::Lock(LockOp::Acquire, lock(monitor)));
            }
            self.items[monitor] = self.items[monitor].saturating_sub(1);
            self.push(thread, Op::Access(AccessOp::Write, item));
        }
        self.push(thread, Op::Lock(LockOp::Release, lock(monitor)));
        self.accesses(thread, 2);
    }
}
