//! Race directed: seeks the moments at which two conflicting accesses are next.
//!
//! A first run says which pairs of lines access one variable from two threads, one of them writing,
//! with no lock in common. In the runs that follow, a thread that comes to such a line is held back
//! until another comes to the other line of the pair, at the same variable; then chance decides who
//! goes first. Where only threads that are held back are left, one of them goes on (Sen, *Race
//! Directed Random Testing of Concurrent Programs*, 2008). Atomic accesses count too: what depends
//! on their order is no race, but is what a specification must allow for.

use reweave_base::{FxHashMap, FxHashSet, Id, Rng};
use reweave_trace::{LockOp, Op, SiteId, ThreadId, Trace, VarId};

use super::{Scheduler, View};
use crate::observe::ThreadNumber;

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
    #[must_use]
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
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is nothing to seek.
    #[must_use]
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
    #[must_use]
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
