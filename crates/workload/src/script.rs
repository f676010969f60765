//! What threads of each shape do next.

use reweave_base::Id;
use reweave_trace::{Op, ThreadId, VarId};

use crate::Shape;
use crate::run::{Run, barrier, condition, lock, semaphore};

impl Run {
    /// Gives the first thread its forks; in the fork-join shape each thread forks its own.
    pub(crate) fn start(&mut self) {
        match self.config.shape {
            Shape::ForkJoin => {
                for parent in 0..self.config.threads {
                    for child in self.children(parent) {
                        self.push(parent, Op::Fork(ThreadId::from_index(child)));
                    }
                }
            }
            _ => {
                for child in 1..self.config.threads {
                    self.push(0, Op::Fork(ThreadId::from_index(child)));
                }
            }
        }
    }

    /// Gives `thread` its next few steps; at least one unless it closes.
    pub(crate) fn refill(&mut self, thread: usize) {
        match self.config.shape {
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
                self.push(thread, Op::Arrive(barrier()));
                self.push(thread, Op::Depart(barrier()));
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
            let op = if self.rng.chance(33) { Op::Write(var) } else { Op::Read(var) };
            self.push(thread, op);
        }
    }

    /// Up to `depth` nested critical sections around some accesses. Locks are taken in the order
    /// of their numbers, so that no threads wait for each other for ever.
    fn section(&mut self, thread: usize, depth: usize, accesses_max: usize) {
        let mut locks: Vec<usize> = (0..depth).map(|_| self.rng.below(self.config.locks)).collect();
        locks.sort_unstable();
        locks.dedup();
        for &index in &locks {
            self.push(thread, Op::Acquire(lock(index)));
            self.accesses(thread, accesses_max);
        }
        for &index in locks.iter().rev() {
            self.push(thread, Op::Release(lock(index)));
        }
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
            self.push(thread, Op::Join(ThreadId::from_index(child)));
        }
        self.threads[thread].is_closing = true;
    }

    /// Even threads put items into a queue, odd ones take them out.
    fn producer_consumer(&mut self, thread: usize) {
        let queue = self.rng.below(self.config.locks);
        let slot = self.var();
        let is_producer = thread.is_multiple_of(2);
        if !is_producer {
            self.push(thread, Op::Take(semaphore(queue)));
        }
        self.push(thread, Op::Acquire(lock(queue)));
        self.push(thread, if is_producer { Op::Write(slot) } else { Op::Read(slot) });
        self.push(thread, Op::Release(lock(queue)));
        if is_producer {
            self.push(thread, Op::Post(semaphore(queue)));
        }
        self.accesses(thread, 2);
    }

    /// Even threads put items into a monitor and notify; odd ones take them out, and wait first
    /// if they find none.
    fn wait_notify(&mut self, thread: usize) {
        let monitor = self.rng.below(self.config.locks);
        let item = self.var();
        self.push(thread, Op::Acquire(lock(monitor)));
        if thread.is_multiple_of(2) {
            self.items[monitor] += 1;
            self.push(thread, Op::Write(item));
            let all = self.rng.chance(10);
            let wakes = condition(monitor);
            self.push(thread, if all { Op::NotifyAll(wakes) } else { Op::Notify(wakes) });
        } else {
            self.push(thread, Op::Read(item));
            if self.items[monitor] == 0 {
                self.push(thread, Op::Release(lock(monitor)));
                self.push(thread, Op::Wait(condition(monitor)));
                self.push(thread, Op::Wake(condition(monitor)));
                self.push(thread, Op::Acquire(lock(monitor)));
            }
            self.items[monitor] = self.items[monitor].saturating_sub(1);
            self.push(thread, Op::Write(item));
        }
        self.push(thread, Op::Release(lock(monitor)));
        self.accesses(thread, 2);
    }
}
