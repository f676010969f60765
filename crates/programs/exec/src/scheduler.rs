//! Schedulers: they pick the thread of each step.
//!
//! A scheduler sees the threads that may be able to continue; where the one that it picks turns out
//! to wait, it is asked again without it.

use reweave_base::{FxHashMap, FxHashSet, Id, Rng};
use reweave_trace::{LockOp, Op, SiteId, ThreadId, Trace, VarId};

use crate::code::Instruction;
use crate::machine::Machine;
use crate::observe::ThreadNumber;
use crate::run::Schedule;

/// What a scheduler may look at.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) machine: &'a Machine<'a>,
    pub(crate) steps_count: u64,
}

impl<'a> View<'a> {
    /// How many threads have started so far.
    pub fn threads_count(self) -> usize {
        self.machine.threads.len()
    }

    /// The name of `thread`, which does not depend on the order in which threads started.
    pub fn name(self, thread: ThreadNumber) -> &'a str {
        &self.machine.threads[thread as usize].name
    }

    /// Whether `thread` waits for nothing.
    pub fn can_step(self, thread: ThreadNumber) -> bool {
        self.machine.can_step(thread)
    }

    /// How many steps were taken so far.
    pub const fn steps_count(self) -> u64 {
        self.steps_count
    }

    /// The line, the cell and whether it may write, if the next step of `thread` is an access.
    pub fn next_access(self, thread: ThreadNumber) -> Option<(u32, u32, bool)> {
        let (cell, writes) = match self.machine.next(thread) {
            Instruction::Read { cell, .. } => (cell, false),
            Instruction::Write { cell, .. }
            | Instruction::CompareAndSwap { cell, .. }
            | Instruction::FetchAdd { cell, .. } => (cell, true),
            _ => return None,
        };
        let at = self.machine.threads[thread as usize].at;
        let cell = self.machine.cell(thread, cell, &self.machine.code.cells)?;
        Some((self.machine.code.effects[at as usize].line, cell, writes))
    }
}

/// Picks the thread of each step.
pub trait Scheduler {
    /// The position in `ready`, which is not empty, of the thread that is to go on; none stops the
    /// run. Each thread is in `ready` once, in no particular order, but the same one in a run that
    /// is the same so far.
    fn pick(&mut self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize>;
}

// PCT: priorities, and a bound on how deep a fault hides.
//
// Each thread gets a random priority and the highest goes on; at `depth - 1` random moments the one
// that goes on falls below all others. A fault that needs `depth` ordering constraints shows with
// probability at least 1/(n k^(depth-1)) for n threads and k steps (Burckhardt et al., *A
// Randomized Scheduler with Probabilistic Guarantees of Finding Bugs*, 2010).

/// Picks by random priorities that change a bounded number of times.
#[derive(Clone, Debug)]
pub struct Pct {
    rng: Rng,
    /// Higher goes first. Those that have fallen are below all others.
    priorities: Vec<u64>,
    /// The steps at which the thread that goes on falls, the last first.
    changes: Vec<u64>,
    /// The priority for the next that falls.
    lowest: u64,
}

/// Priorities below this are those of threads that have fallen.
const FALLEN: u64 = 1 << 32;

impl Pct {
    /// The choices of `seed`, for faults of `depth` in runs of about `steps_count` steps.
    pub fn new(seed: u64, depth: u32, steps_count: u64) -> Self {
        let mut rng = Rng::new(seed);
        let bound = usize::try_from(steps_count.max(1)).unwrap_or(usize::MAX);
        let mut changes: Vec<u64> = (1..depth.max(1)).map(|_| rng.below(bound) as u64).collect();
        changes.sort_unstable_by(|left, right| right.cmp(left));
        Self { rng, priorities: Vec::new(), changes, lowest: FALLEN }
    }

    /// The place of the thread of highest priority, of those that can go on if some can.
    fn highest(&self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize> {
        let priority = |&place: &usize| {
            let thread = ready[place];
            (view.can_step(thread), self.priorities[thread as usize])
        };
        (0..ready.len()).max_by_key(priority)
    }
}

impl Scheduler for Pct {
    fn pick(&mut self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize> {
        while self.priorities.len() < view.threads_count() {
            let priority = FALLEN + (self.rng.next() >> 1);
            self.priorities.push(priority);
        }
        let mut place = self.highest(ready, view)?;
        while self.changes.last().is_some_and(|&change| change <= view.steps_count()) {
            self.changes.pop();
            self.lowest -= 1;
            self.priorities[ready[place] as usize] = self.lowest;
            place = self.highest(ready, view)?;
        }
        Some(place)
    }
}

// Race directed: seeks the moments at which two conflicting accesses are next.
//
// A first run says which pairs of lines access one variable from two threads, one of them writing,
// with no lock in common. In the runs that follow, a thread that comes to such a line is held back
// until another comes to the other line of the pair, at the same variable; then chance decides who
// goes first. Where only threads that are held back are left, one of them goes on (Sen, *Race
// Directed Random Testing of Concurrent Programs*, 2008). Atomic accesses count too: what depends
// on their order is no race, but is what a specification must allow for.

/// Pairs of lines whose accesses may conflict.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    pairs: FxHashSet<(u32, u32)>,
    lines: FxHashSet<u32>,
}

/// How many different accesses of one variable are compared with each other.
const ACCESSES_MAX: usize = 256;

/// An access as far as candidates go.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Access {
    thread: ThreadId,
    site: SiteId,
    writes: bool,
    locks: Vec<u32>,
}

impl Candidates {
    /// The candidates that `trace`, of an earlier run, shows.
    pub fn new(trace: &Trace) -> Self {
        let mut candidates = Self::default();
        for accesses in accesses(trace).values() {
            for (number, left) in accesses.iter().enumerate() {
                for right in &accesses[..number] {
                    let is_candidate = left.thread != right.thread
                        && (left.writes || right.writes)
                        && !left.locks.iter().any(|lock| right.locks.contains(lock));
                    if is_candidate {
                        candidates.add(line(trace, left.site), line(trace, right.site));
                    }
                }
            }
        }
        candidates
    }

    /// How many pairs of lines there are.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is nothing to seek.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    fn add(&mut self, left: u32, right: u32) {
        self.pairs.insert((left.min(right), left.max(right)));
        self.lines.extend([left, right]);
    }

    fn has(&self, left: u32, right: u32) -> bool {
        self.pairs.contains(&(left.min(right), left.max(right)))
    }
}

/// The line at the end of a site's location.
fn line(trace: &Trace, site: SiteId) -> u32 {
    let location = trace.names().location(site);
    location.rsplit(':').next().and_then(|line| line.parse().ok()).unwrap_or(0)
}

/// The different accesses of each variable, as many as are compared.
fn accesses(trace: &Trace) -> FxHashMap<VarId, Vec<Access>> {
    let mut held: Vec<Vec<u32>> = vec![Vec::new(); trace.names().threads.len()];
    let mut seen: FxHashSet<(VarId, Access)> = FxHashSet::default();
    let mut accesses: FxHashMap<VarId, Vec<Access>> = FxHashMap::default();
    for (_, event) in trace.events() {
        let held = &mut held[event.thread.index()];
        match event.op {
            Op::Lock(LockOp::Acquire, lock) => held.push(lock.number()),
            Op::Lock(LockOp::Release, lock) => {
                if let Some(place) = held.iter().rposition(|&other| other == lock.number()) {
                    held.remove(place);
                }
            }
            op => {
                let Some(var) = op.var() else { continue };
                let of_var = accesses.entry(var).or_default();
                if of_var.len() >= ACCESSES_MAX {
                    continue;
                }
                let access = Access {
                    thread: event.thread,
                    site: event.site,
                    writes: op.is_write(),
                    locks: held.clone(),
                };
                if seen.insert((var, access.clone())) {
                    of_var.push(access);
                }
            }
        }
    }
    accesses
}

/// Holds threads back at candidates until their partners come.
#[derive(Clone, Debug)]
pub struct RaceDirected {
    rng: Rng,
    candidates: Candidates,
    /// By thread, whether it is held back. Its next step is an access, which waits for nothing, so
    /// it stays among those that can go on.
    is_held: Vec<bool>,
    held_count: usize,
    /// Those that are held back, by the cell that they are about to access.
    held: FxHashMap<u32, Vec<Held>>,
}

/// A thread that is held back, and the access it is about to make.
#[derive(Clone, Copy, Debug)]
struct Held {
    thread: ThreadNumber,
    line: u32,
    writes: bool,
}

impl RaceDirected {
    /// The choices of `seed`, seeking `candidates`.
    pub fn new(seed: u64, candidates: Candidates) -> Self {
        Self {
            rng: Rng::new(seed),
            candidates,
            is_held: Vec::new(),
            held_count: 0,
            held: FxHashMap::default(),
        }
    }

    /// The thread held back that an access at `line` to `cell` would meet, if there is one.
    fn partner(&self, line: u32, cell: u32, writes: bool) -> Option<ThreadNumber> {
        let at_cell = self.held.get(&cell)?;
        let meets = |held: &&Held| (writes || held.writes) && self.candidates.has(line, held.line);
        at_cell.iter().find(meets).map(|held| held.thread)
    }

    fn hold(&mut self, cell: u32, held: Held) {
        self.held.entry(cell).or_default().push(held);
        self.is_held[held.thread as usize] = true;
        self.held_count += 1;
    }

    fn release(&mut self, thread: ThreadNumber, cell: u32) {
        if !std::mem::take(&mut self.is_held[thread as usize]) {
            return;
        }
        self.held_count -= 1;
        if let Some(at_cell) = self.held.get_mut(&cell) {
            at_cell.retain(|held| held.thread != thread);
        }
    }
}

impl Scheduler for RaceDirected {
    fn pick(&mut self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize> {
        self.is_held.resize(view.threads_count(), false);
        while self.held_count < ready.len() {
            let place = self.rng.below(ready.len());
            let thread = ready[place];
            if self.is_held[thread as usize] {
                continue;
            }
            let Some((line, cell, writes)) = view.next_access(thread) else { return Some(place) };
            if !self.candidates.lines.contains(&line) {
                return Some(place);
            }
            if let Some(partner) = self.partner(line, cell, writes) {
                self.release(partner, cell);
                let first = if self.rng.chance(50) { thread } else { partner };
                return ready.iter().position(|&ready| ready == first);
            }
            self.hold(cell, Held { thread, line, writes });
        }
        let place = self.rng.below(ready.len());
        if let Some((_, cell, _)) = view.next_access(ready[place]) {
            self.release(ready[place], cell);
        }
        Some(place)
    }
}

// Random: each thread is as likely as the others, at every step.

/// Picks at random, by a seed.
#[derive(Clone, Debug)]
pub struct Random {
    rng: Rng,
}

impl Random {
    /// The choices of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed) }
    }
}

impl Scheduler for Random {
    fn pick(&mut self, ready: &[ThreadNumber], _: View<'_>) -> Option<usize> {
        Some(self.rng.below(ready.len()))
    }
}

// Replay: a schedule that was recorded, step by step.

/// Repeats a schedule, and stops where it ends or cannot be followed.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    schedule: &'a Schedule,
}

impl<'a> Replay<'a> {
    /// Repeats `schedule`.
    pub const fn new(schedule: &'a Schedule) -> Self {
        Self { schedule }
    }
}

impl Scheduler for Replay<'_> {
    fn pick(&mut self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize> {
        let step = usize::try_from(view.steps_count()).ok()?;
        let thread = self.schedule.0.get(step)?;
        ready.iter().position(|ready| ready == thread)
    }
}

// Round robin: one step for each thread in turn.

/// Picks the threads in turn, in the order in which they started.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    /// The number after that of the thread which went last.
    next: ThreadNumber,
}

impl RoundRobin {
    /// Starts with the first thread.
    pub const fn new() -> Self {
        Self { next: 0 }
    }
}

impl Scheduler for RoundRobin {
    fn pick(&mut self, ready: &[ThreadNumber], _: View<'_>) -> Option<usize> {
        // The distance to the next number, around the largest one.
        let turn = |thread: ThreadNumber| thread.wrapping_sub(self.next);
        let (place, &thread) = ready.iter().enumerate().min_by_key(|&(_, &thread)| turn(thread))?;
        self.next = thread + 1;
        Some(place)
    }
}
