//! Runs of small random programs that take locks inside each other, so that many can deadlock.
//!
//! Each thread does a few blocks: a lock, perhaps something else, another lock inside, perhaps
//! something else, and back; in either mode, some never given back, some asked for again. A random
//! scheduler runs them as far as the events stay well formed.

use reweave_base::{Id, Rng};
use reweave_trace::{
    AccessOp, ConditionId, ConditionOp, LockId, LockOp, MemoryOrder, Op, SemaphoreId, SemaphoreOp,
    SiteId, ThreadId, ThreadOp, Trace, TraceBuilder, VarId,
};

/// What programs consist of besides locks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) threads: usize,
    pub(crate) locks: usize,
    /// How many blocks a thread has at most.
    pub(crate) blocks_max: usize,
    /// How many in a hundred acquires are in shared mode.
    pub(crate) shared: usize,
    /// How many in a hundred places hold something else than locks.
    pub(crate) extras: usize,
    /// What a semaphore starts at, if that is known.
    pub(crate) start: Option<u32>,
}

/// The run of a random program that `seed` stands for.
pub(crate) fn random(style: Style, seed: u64) -> Trace {
    let mut rng = Rng::new(seed);
    let mut programs: Vec<Vec<Op>> = (0..style.threads)
        .map(|_| {
            let mut ops = Vec::new();
            for _ in 0..=rng.below(style.blocks_max) {
                block(style, &mut rng, &mut ops);
            }
            ops
        })
        .collect();
    if rng.chance(style.extras) {
        let child = ThreadId::from_index(style.threads - 1);
        let at = rng.below(programs[0].len() + 1);
        programs[0].insert(at, Op::Thread(ThreadOp::Fork, child));
        if rng.chance(50) {
            programs[0].push(Op::Thread(ThreadOp::Join, child));
        }
    }
    schedule(style, &programs, &mut rng)
}

fn block(style: Style, rng: &mut Rng, ops: &mut Vec<Op>) {
    let mut locks: Vec<LockId> = (0..style.locks).map(LockId::from_index).collect();
    let outer = locks.swap_remove(rng.below(locks.len()));
    // Now and then the same lock again, which in another mode may block.
    let inner = if rng.chance(10) { outer } else { locks[rng.below(locks.len())] };
    let [outer, inner] = [outer, inner].map(|lock| match rng.chance(style.shared) {
        true => (Op::Lock(LockOp::AcquireShared, lock), Op::Lock(LockOp::ReleaseShared, lock)),
        false => (Op::Lock(LockOp::Acquire, lock), Op::Lock(LockOp::Release, lock)),
    });
    extra(style, rng, ops);
    ops.push(outer.0);
    extra(style, rng, ops);
    if rng.chance(4) {
        // A request that no acquire follows: who asks to share does not say so.
        ops.push(match inner.0 {
            Op::Lock(LockOp::Acquire, lock) => Op::Lock(LockOp::RequestExclusive, lock),
            Op::Lock(_, lock) => Op::Lock(LockOp::Request, lock),
            other => other,
        });
        return;
    }
    ops.push(inner.0);
    extra(style, rng, ops);
    if rng.chance(style.extras / 2) {
        let on = ConditionId::from_index(0);
        ops.extend([
            outer.1,
            Op::Condition(ConditionOp::Wait, on),
            Op::Condition(ConditionOp::Wake, on),
            outer.0,
        ]);
    }
    let mut ends = [outer.1, inner.1];
    if rng.chance(70) {
        ends.reverse();
    }
    ops.extend(ends.into_iter().filter(|_| !rng.chance(3)));
}

fn extra(style: Style, rng: &mut Rng, ops: &mut Vec<Op>) {
    if !rng.chance(style.extras) {
        return;
    }
    let var = VarId::from_index(rng.below(2));
    let semaphore = SemaphoreId::from_index(0);
    let all = [
        Op::Access(AccessOp::Read, var),
        Op::Access(AccessOp::Write, var),
        Op::Access(AccessOp::Read, var),
        Op::Access(AccessOp::Write, var),
        Op::Access(AccessOp::UnknownRead, var),
        Op::Access(AccessOp::AtomicUpdate(MemoryOrder::SeqCst), var),
        Op::Semaphore(SemaphoreOp::Post, semaphore),
        Op::Semaphore(SemaphoreOp::Take, semaphore),
        Op::Condition(ConditionOp::Notify, ConditionId::from_index(0)),
        Op::Condition(ConditionOp::NotifyAll, ConditionId::from_index(0)),
    ];
    ops.extend(rng.pick(&all));
}

/// Runs `programs` until nobody can go on.
fn schedule(style: Style, programs: &[Vec<Op>], rng: &mut Rng) -> Trace {
    let mut done = vec![0; programs.len()];
    let mut steps: Vec<(ThreadId, Op)> = Vec::new();
    let mut trace = build(style, &steps).expect("nothing happened yet");
    let mut last = 0;
    loop {
        // Threads that run for long stretches leave few deadlocks behind them on the way.
        let mut turns: Vec<usize> = (0..programs.len()).collect();
        let at = if rng.chance(70) { last } else { rng.below(turns.len()) };
        turns.swap(0, at);
        let next = turns.into_iter().find_map(|at| {
            let &op = programs[at].get(done[at])?;
            steps.push((ThreadId::from_index(at), op));
            let grown = build(style, &steps);
            if grown.is_none() {
                steps.pop();
            }
            grown.map(|grown| (at, grown))
        });
        let Some((at, grown)) = next else { return trace };
        (last, trace) = (at, grown);
        done[at] += 1;
    }
}

/// The trace of `steps`, if they are well formed.
fn build(style: Style, steps: &[(ThreadId, Op)]) -> Option<Trace> {
    let mut builder = TraceBuilder::new();
    for at in 0..style.threads {
        builder.thread(&format!("t{}", at + 1));
    }
    for at in 0..style.locks {
        builder.lock(&format!("l{}", at + 1));
    }
    let semaphore = builder.semaphore("s");
    builder.condition("c");
    for name in ["x", "y"] {
        builder.var(name);
    }
    style.start.into_iter().for_each(|start| builder.declare_start(semaphore, start));
    let sites: Vec<SiteId> =
        (1..=steps.len()).map(|number| builder.site(&number.to_string())).collect();
    for (&(thread, op), &site) in steps.iter().zip(&sites) {
        builder.push(thread, op, site);
    }
    builder.finish().ok()
}
