//! Postponing: the needed set in observed order, but for threads that stop inside a section that
//! is in the way.
//!
//! Where a section cannot be completed, since the query keeps its thread inside, growth fails as
//! soon as its lock is taken again. Often nobody needs what the thread did since it took the lock:
//! then everything else can run in observed order first, and the tail of that thread, from the
//! acquire on, last. Whether its reads then still see what they saw, and its other locks are free,
//! is tested event by event. So most queries that growth cannot answer are answered without a
//! closure; a failure here says nothing.
//!
//! Costs what growth does, and the tails.

use reweave_base::FxHashMap;
use reweave_trace::views::Mode;
use reweave_trace::{AccessOp, EventId, LockId, LockOp, Op, Reordering, ThreadId, ThreadOp, VarId};

use crate::engine::{Cut, Problem};
use crate::growth;

/// How many events tails may have together, and how many accesses a look for a write may pass.
const STEPS_MAX: usize = 4096;

/// Looks for a reordering of `cut`, grown where sections can be completed, with the tails of
/// threads that stop inside a section last.
pub(crate) fn postpone(problem: &Problem<'_, '_>, mut cut: Cut) -> Option<Reordering> {
    let engine = problem.engine;
    let mut tails: Vec<(ThreadId, u32)> = Vec::new();
    let mut whole = cut.clone();
    while let Some((thread, obstacle)) = growth::obstacle(problem, &cut) {
        let completion = obstacle.completion.filter(|&event| !problem.is_out_of_reach(event));
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
        // What was put off may be needed by what was added since.
        let is_needed = |&(thread, position): &(ThreadId, u32)| {
            cut[thread] > position || is_needed(problem, &cut, thread, position)
        };
        if problem.is_too_much(&cut) || tails.iter().any(is_needed) {
            return None;
        }
    }
    tails.sort_unstable();
    let mut run =
        Tails { problem, base: &cut, writes: FxHashMap::default(), steps_left: STEPS_MAX };
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

/// Whether another thread's part of `cut` needs more of `thread` than its first `count` events.
fn is_needed(problem: &Problem<'_, '_>, cut: &Cut, thread: ThreadId, count: u32) -> bool {
    let trace = problem.engine.trace();
    cut.ids().filter(|&other| other != thread && cut[other] > 0).any(|other| {
        let last = trace.thread_events(other)[cut[other] as usize - 1];
        problem.needs.of_event(last).get(thread) > count
    })
}

/// The run of the tails.
struct Tails<'a, 'e, 't> {
    problem: &'a Problem<'e, 't>,
    base: &'a Cut,
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
            | Op::Lock(LockOp::Release | LockOp::ReleaseShared | LockOp::Request, _)
            | Op::Thread(ThreadOp::Fork, _)
            | Op::Block(..)
            | Op::Branch
            | Op::Let(_) => {}
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
        let last = self.base.entries().filter(|&(_, &count)| count > 0);
        let last = last.map(|(thread, &count)| trace.thread_events(thread)[count as usize - 1]);
        let Some(last) = last.max() else { return Some(None) };
        let accesses = trace.accesses(var);
        let count = accesses.partition_point(|&access| access <= last);
        for &access in accesses[..count].iter().rev() {
            if trace.event(access).op.is_write() && engine.is_in(self.base, access) {
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
            let count = if is_done { whole[user.thread] } else { self.base[user.thread] };
            engine.open(user.thread, count).any(|section| {
                section.lock == lock && (mode == Mode::Exclusive || section.mode == Mode::Exclusive)
            })
        })
    }
}
