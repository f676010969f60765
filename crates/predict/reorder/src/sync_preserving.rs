//! Can the query be met without changing the observed order of what runs?
//!
//! *The sync-preserving ideal.* In observed order every read of a cut that is closed under
//! must-happen-before sees what it saw. A section of a lock that the cut leaves open is in the way of
//! a later one of its lock, and a thread left in a condition's queue is in the way of a later notify
//! that did not wake it. Completing either, with its causal past, is the only way to keep the observed
//! order, so the cut that this ends with is the least that works: a reordering that keeps the
//! observed order of the sections it runs, of waits and notifies, and of posts and takes, exists
//! exactly if the ideal holds nothing that the query excludes.
//!
//! *Deferred tails.* Where a section cannot be completed, since the query keeps its thread inside,
//! the ideal does not exist as soon as the lock is taken again. Often nobody needs what the thread did
//! since it took the lock: then everything else can run in observed order first, and the tail of that
//! thread, from the acquire on, last. Whether its reads then still see what they saw, and its other
//! locks are free, is tested event by event; a failure here says nothing.
//!
//! Costs a look at each thread and open section each time the cut grows, and the tails.
//!
//! SPIdeal is from Mathur, Pavlogiannis and Viswanathan, "Optimal prediction of
//! synchronization-preserving races" (POPL 2021); conditions, barriers and semaphores are added.

use reweave_base::FxHashMap;
use reweave_trace::views::Mode;
use reweave_trace::{AccessOp, EventId, LockId, LockOp, Op, Reordering, ThreadId, ThreadOp, VarId};

use crate::engine::{Cut, Problem, leave};

/// Grows `cut` to the least one whose events can run in observed order; false if that takes an event
/// that the query excludes.
pub(crate) fn close(problem: &Problem<'_, '_>, cut: &mut Cut) -> bool {
    if problem.is_excluded(cut) {
        return false;
    }
    loop {
        let mut has_grown = false;
        for thread in cut.ids() {
            if cut[thread] == 0 {
                continue;
            }
            while let Some(obstacle) = obstacle_of(problem, cut, thread) {
                let Some(event) = obstacle.completion else { return false };
                problem.add(event, cut);
                if problem.is_excluded(cut) {
                    return false;
                }
                has_grown = true;
            }
        }
        if !has_grown {
            return true;
        }
    }
}

/// Something that `cut` leaves open and that is in the way of a later event of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Obstacle {
    /// Where it was begun.
    pub(crate) start: EventId,
    /// What completes it, if it ever is.
    pub(crate) completion: Option<EventId>,
}

/// The first thread, and what of it is in the way of the observed order of `cut`.
fn obstacle(problem: &Problem<'_, '_>, cut: &Cut) -> Option<(ThreadId, Obstacle)> {
    let threads = cut.ids().filter(|&thread| cut[thread] > 0);
    let mut found = threads.filter_map(|thread| Some((thread, obstacle_of(problem, cut, thread)?)));
    found.next()
}

/// What of `thread`, after its events in `cut`, is in the way.
pub(crate) fn obstacle_of(
    problem: &Problem<'_, '_>,
    cut: &Cut,
    thread: ThreadId,
) -> Option<Obstacle> {
    let engine = problem.engine;
    problem.lookups.update(|lookups| lookups + 1);
    for section in engine.open(thread, cut[thread]) {
        problem.lookups.update(|lookups| lookups + engine.users(section.lock).len() as u64);
        let others = engine.users(section.lock).iter().filter(|user| user.thread != thread);
        let mut last =
            others.filter_map(|user| engine.last_section(user, section.mode, cut[user.thread]));
        if last.any(|other| other.acquire > section.acquire) {
            return Some(Obstacle { start: section.acquire, completion: section.release });
        }
    }
    let wait = engine.last_wait(thread, cut[thread])?;
    if leave(wait).is_some_and(|leave| engine.is_in(cut, leave)) {
        return None;
    }
    let mut later = engine.unwoken_by(wait).filter(|&notify| notify > wait.begin);
    let is_found = later.any(|notify| engine.is_in(cut, notify));
    is_found.then(|| Obstacle { start: wait.begin, completion: leave(wait) })
}

/// How many events tails may have together, and how many accesses a look for a write may pass.
const STEPS_MAX: usize = 4096;

/// Looks for a reordering of `cut`, with sections completed where they can be, that runs the tails
/// of threads that stop inside a section last.
pub(crate) fn defer_tails(problem: &Problem<'_, '_>, mut cut: Cut) -> Option<Reordering> {
    let engine = problem.engine;
    let mut tails: Vec<(ThreadId, u32)> = Vec::new();
    let mut whole = cut.clone();
    while let Some((thread, obstacle)) = obstacle(problem, &cut) {
        let completion = obstacle.completion.filter(|&event| !problem.is_unreachable(event));
        match completion {
            Some(event) => problem.add(event, &mut cut),
            None => {
                let position = engine.trace().position(obstacle.start);
                tails.retain(|&(other, _)| other != thread);
                tails.push((thread, position));
                cut[thread] = position;
            }
        }
        for thread in cut.ids() {
            whole[thread] = whole[thread].max(cut[thread]);
        }
        // A tail must not be in the causal past of what was added since.
        let is_needed = |&(thread, position): &(ThreadId, u32)| {
            cut[thread] > position || is_needed(problem, &cut, thread, position)
        };
        if problem.is_excluded(&cut) || tails.iter().any(is_needed) {
            return None;
        }
    }
    tails.sort_unstable();
    let mut run =
        Tails { problem, prefix: &cut, writes: FxHashMap::default(), steps_left: STEPS_MAX };
    let mut schedule = Vec::new();
    for (at, &(thread, position)) in tails.iter().enumerate() {
        let fork = engine.trace().lifetime(thread).fork.filter(|_| position == 0);
        if fork.is_some_and(|fork| !engine.is_in(&cut, fork)) {
            return None;
        }
        let own = &engine.trace().thread_events(thread)[position as usize..whole[thread] as usize];
        for &event in own {
            run.step(event, thread, &tails[..at], &whole)?;
            schedule.push(event);
        }
    }
    Some(Reordering { base: cut, schedule })
}

/// Whether the causal past of another thread's part of `cut` has more of `thread` than its first
/// `count` events.
fn is_needed(problem: &Problem<'_, '_>, cut: &Cut, thread: ThreadId, count: u32) -> bool {
    let trace = problem.engine.trace();
    cut.ids().filter(|&other| other != thread && cut[other] > 0).any(|other| {
        let last = trace.thread_events(other)[cut[other] as usize - 1];
        problem.mhb.past(last).get(thread) > count
    })
}

/// The run of the tails.
struct Tails<'a, 'e, 't> {
    problem: &'a Problem<'e, 't>,
    prefix: &'a Cut,
    /// The last write of a variable by a tail.
    writes: FxHashMap<VarId, EventId>,
    steps_left: usize,
}

impl Tails<'_, '_, '_> {
    /// Runs `event` of `thread` after the tails of `done`, if that can be seen to be right.
    fn step(
        &mut self,
        event: EventId,
        thread: ThreadId,
        done: &[(ThreadId, u32)],
        whole: &Cut,
    ) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        let trace = self.problem.engine.trace();
        let op = trace.event(event).op;
        match op {
            Op::Access(
                AccessOp::Read | AccessOp::AtomicRead(_) | AccessOp::AtomicUpdate(_),
                var,
            ) => {
                if self.last_write(var)? != trace.writer(event) {
                    return None;
                }
            }
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => {
                let mode = if op == Op::Lock(LockOp::Acquire, lock) {
                    Mode::Exclusive
                } else {
                    Mode::Shared
                };
                if self.is_held(lock, mode, thread, done, whole) {
                    return None;
                }
            }
            Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_) | AccessOp::UnknownRead, _)
            | Op::Fence(_)
            | Op::Lock(
                LockOp::Release
                | LockOp::ReleaseShared
                | LockOp::Request
                | LockOp::RequestExclusive,
                _,
            )
            | Op::Thread(ThreadOp::Fork, _)
            | Op::Marker(_) => {}
            Op::Thread(ThreadOp::Join, _)
            | Op::Condition(..)
            | Op::Barrier(..)
            | Op::Semaphore(..)
            | Op::Object(..) => return None,
        }
        if let Some(var) = op.var().filter(|_| op.is_write()) {
            self.writes.insert(var, event);
        }
        Some(())
    }

    /// The last write of `var` so far; none if that takes too long to find.
    fn last_write(&mut self, var: VarId) -> Option<Option<EventId>> {
        if let Some(&write) = self.writes.get(&var) {
            return Some(Some(write));
        }
        let engine = self.problem.engine;
        let trace = engine.trace();
        let last = self.prefix.entries().filter(|&(_, &count)| count > 0);
        let last = last.map(|(thread, &count)| trace.thread_events(thread)[count as usize - 1]);
        let Some(last) = last.max() else { return Some(None) };
        let accesses = trace.accesses(var);
        let count = accesses.partition_point(|&access| access <= last);
        for &access in accesses[..count].iter().rev() {
            if trace.event(access).op.is_write() && engine.is_in(self.prefix, access) {
                return Some(Some(access));
            }
            self.steps_left = self.steps_left.checked_sub(1)?;
        }
        Some(None)
    }

    /// Whether another thread holds `lock` in a way that excludes `mode`.
    fn is_held(
        &self,
        lock: LockId,
        mode: Mode,
        thread: ThreadId,
        done: &[(ThreadId, u32)],
        whole: &Cut,
    ) -> bool {
        let engine = self.problem.engine;
        engine.users(lock).iter().filter(|user| user.thread != thread).any(|user| {
            let is_done = done.iter().any(|&(other, _)| other == user.thread);
            let count = if is_done { whole[user.thread] } else { self.prefix[user.thread] };
            engine.open(user.thread, count).any(|section| {
                section.lock == lock && (mode == Mode::Exclusive || section.mode == Mode::Exclusive)
            })
        })
    }
}
