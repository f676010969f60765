//! Arrows from an event to one of another thread that comes after it for a reason.

use reweave_base::IndexVec;
use reweave_trace::{
    AccessOp, BarrierOp, ConditionOp, EventId, LockId, LockOp, Names, Op, SemaphoreOp, ThreadId,
    ThreadOp, VarId,
};

use super::Run;

/// When and in which thread an arrow starts or ends.
pub(super) type End = (u64, ThreadId);

/// An arrow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    /// What it stands for.
    pub(super) name: &'static str,
    pub(super) from: End,
    pub(super) to: End,
}

/// What arrows may start from, as of some moment of a run.
#[derive(Debug)]
pub(super) struct Arrows {
    writes: IndexVec<VarId, Option<End>>,
    releases: IndexVec<LockId, Option<End>>,
    /// For each thread the fork that started it, until it is seen to run.
    forks: IndexVec<ThreadId, Option<End>>,
    last: IndexVec<ThreadId, Option<End>>,
}

impl Arrows {
    /// At the start of a run of what has `names`.
    pub(super) fn new(names: &Names) -> Self {
        Self {
            writes: IndexVec::from_elem(None, names.vars.len()),
            releases: IndexVec::from_elem(None, names.locks.len()),
            forks: IndexVec::from_elem(None, names.threads.len()),
            last: IndexVec::from_elem(None, names.threads.len()),
        }
    }

    /// The arrows to `event`, which is next in `run` and happens at `moment`.
    pub(super) fn to(
        &mut self,
        run: &Run<'_>,
        moment: u64,
        event: EventId,
    ) -> impl Iterator<Item = Arrow> + use<> {
        let trace = run.trace;
        let (thread, op) = (trace.event(event).thread, trace.event(event).op);
        let here = (moment, thread);
        let start = self.forks[thread].take().map(|from| ("starts", from));
        let reason = self.reason(run, event).or_else(|| {
            let var = op
                .var()
                .filter(|_| op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _)))?;
            Some(("reads from", self.writes[var]?))
        });
        self.record(op, here);
        let is_arrow = move |&(_, from): &(&str, End)| from.1 != here.1 && from.0 < here.0;
        let all = [start, reason].into_iter().flatten().filter(is_arrow);
        all.map(move |(name, from)| Arrow { name, from, to: here })
    }

    /// What lets `event` go on, if it is one that waits.
    fn reason(&self, run: &Run<'_>, event: EventId) -> Option<(&'static str, End)> {
        let trace = run.trace;
        let end = |event: EventId| Some((run.moment(event)?, trace.event(event).thread));
        let signals = trace.signals();
        match trace.event(event).op {
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => {
                Some(("hands over", self.releases[lock]?))
            }
            Op::Thread(ThreadOp::Join, child) => Some(("ends", self.last[child]?)),
            Op::Condition(ConditionOp::Wake, _) => {
                Some(("wakes", end(signals.stay(event)?.notify?)?))
            }
            Op::Semaphore(SemaphoreOp::Take, _) => Some(("posts", end(signals.post(event)?)?)),
            Op::Barrier(BarrierOp::Depart, _) => {
                let round = signals.round(signals.needed_round(event)?);
                Some(("lets go", end(*round.arrivals.last()?)?))
            }
            _ => None,
        }
    }

    fn record(&mut self, op: Op, here: End) {
        self.last[here.1] = Some(here);
        if let Some(var) = op.var().filter(|_| op.is_write()) {
            self.writes[var] = Some(here);
        }
        match op {
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, lock) => {
                self.releases[lock] = Some(here)
            }
            // A lock that is taken again by its owner is not handed over once more.
            Op::Lock(LockOp::Acquire, lock) => self.releases[lock] = None,
            Op::Thread(ThreadOp::Fork, child) => self.forks[child] = Some(here),
            _ => {}
        }
    }
}
