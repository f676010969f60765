//! The run: who can go on, and what that changes.

use std::collections::VecDeque;

use reweave_base::{Id, Rng};
use reweave_trace::{
    AccessOp, BarrierId, BarrierOp, ConditionId, ConditionOp, LockId, LockOp, Op, SemaphoreId,
    SemaphoreOp, SiteId, ThreadId, ThreadOp, Trace, TraceBuilder, VarId,
};

use crate::{Config, Shape};

/// How many locations there are: twenty files of a hundred lines.
const SITES: usize = 2_000;

/// How many events lie between two looks at whether to stop.
const STRIDE: usize = 1 << 16;

/// What a thread is doing.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub(crate) script: VecDeque<Op>,
    is_forked: bool,
    /// How many steps it did.
    pub(crate) steps: usize,
    /// No more is coming once the script is used up.
    pub(crate) is_closing: bool,
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
    pub(crate) config: Config,
    pub(crate) rng: Rng,
    pub(crate) threads: Vec<Thread>,
    builder: TraceBuilder,
    holders: Vec<Option<usize>>,
    tokens: Vec<u64>,
    /// The threads that wait on each condition and were not woken, longest first.
    waiting: Vec<VecDeque<usize>>,
    arrivals: u64,
    /// Items that each monitor holds, for shapes with monitors.
    pub(crate) items: Vec<u64>,
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

    pub(crate) fn push(&mut self, thread: usize, op: Op) {
        self.threads[thread].script.push_back(op);
    }
}

pub(crate) fn lock(index: usize) -> LockId {
    LockId::from_index(index)
}

pub(crate) fn condition(index: usize) -> ConditionId {
    ConditionId::from_index(index)
}

pub(crate) fn semaphore(index: usize) -> SemaphoreId {
    SemaphoreId::from_index(index)
}

pub(crate) fn barrier() -> BarrierId {
    BarrierId::from_index(0)
}
