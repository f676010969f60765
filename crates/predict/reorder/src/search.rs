//! The search: which sections to complete, and how to resolve what nothing forces.
//!
//! A cut is examined with the least that the query needs. Sections that stay open in it come after
//! all others of their lock. One whose release is out of reach stays open in every larger cut too,
//! so what follows from those, and from what the cut completes, refutes all larger cuts. Others
//! could be completed: if what follows from leaving them open is contradictory, each completion is
//! a larger cut to examine.

use reweave_base::{FxHashSet, Id, IndexVec};
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, Reordering, ThreadId, WaitInterval};

use crate::engine::{Answer, Budget, Cut, Problem, Refuted, leave};
use crate::saturation::{Interruption, Saturation};
use crate::window::{BEFORE, FixedPrefix, NEVER, Window, WindowIndex};

/// How many numbers the rows of a window may have: several copies of them are kept at a time.
const NUMBERS_MAX: u64 = 50_000_000;

/// What it costs to look at what a thread leaves open.
const LOOK: u64 = 8;

/// What is left of a query's budget.
#[derive(Debug, Default)]
pub(crate) struct Search {
    decisions_left: u32,
    work_left: u64,
    /// How much work was done for all queries so far.
    pub(crate) work: u64,
    /// The cuts that were examined.
    seen: FxHashSet<Vec<u32>>,
}

/// What came of one cut.
enum Examined {
    Found(Reordering),
    /// It and all larger cuts are refuted.
    Refuted,
    /// It is refuted; these larger ones may not be.
    Grown(Vec<Cut>),
    /// The budget ended.
    BudgetExhausted,
}

/// What came of looking for an order of one cut.
enum Oriented {
    Found(Reordering),
    Refuted,
    /// There is none, but there may be of a larger cut.
    Failed,
    /// This event must happen too.
    Complete(EventId),
    BudgetExhausted,
}

impl Search {
    /// Looks for a cut, from the causal past on, and an order of its events.
    pub(crate) fn run(&mut self, problem: &Problem<'_, '_>, past: Cut, budget: Budget) -> Answer {
        (self.decisions_left, self.work_left) = (budget.decisions, budget.work);
        // A cut that was refuted once is refuted on every path that leads to it.
        self.seen.clear();
        let mut stack = vec![past];
        let mut refuted = Refuted::Cycle;
        let mut completions_left = budget.completions;
        while let Some(cut) = stack.pop() {
            if completions_left == 0 {
                return Answer::Unknown;
            }
            completions_left -= 1;
            match self.examine(problem, cut) {
                Examined::Found(reordering) => return Answer::Feasible(reordering),
                Examined::Refuted => {}
                Examined::Grown(larger) => {
                    refuted = Refuted::Exhausted;
                    stack.extend(larger.into_iter().rev());
                }
                Examined::BudgetExhausted => return Answer::Unknown,
            }
        }
        Answer::Infeasible(refuted)
    }

    fn examine(&mut self, problem: &Problem<'_, '_>, mut cut: Cut) -> Examined {
        loop {
            // Every thread is looked at for what it leaves open, and so is each larger cut.
            self.spend(LOOK * cut.len() as u64);
            if self.work_left == 0 {
                return Examined::BudgetExhausted;
            }
            if problem.is_excluded(&cut) {
                return Examined::Refuted;
            }
            if let Some(ways) = open_conflict(problem, &cut) {
                let completed = |releases: &Vec<EventId>| {
                    let mut larger = cut.clone();
                    releases.iter().for_each(|&release| problem.add(release, &mut larger));
                    (!problem.is_excluded(&larger)).then_some(larger)
                };
                let mut larger: Vec<Cut> = ways.iter().filter_map(completed).collect();
                match larger.len() {
                    0 => return Examined::Refuted,
                    1 => cut = larger.remove(0),
                    _ => return Examined::Grown(larger),
                }
                continue;
            }
            if self.is_seen(&cut) {
                return Examined::Refuted;
            }
            match self.orient(problem, &cut) {
                Oriented::Found(reordering) => return Examined::Found(reordering),
                Oriented::Refuted => return Examined::Refuted,
                Oriented::Complete(event) => problem.add(event, &mut cut),
                Oriented::Failed => {
                    let larger = larger(problem, &cut);
                    self.spend(LOOK * (larger.len() * cut.len()) as u64);
                    return Examined::Grown(larger);
                }
                Oriented::BudgetExhausted => return Examined::BudgetExhausted,
            }
        }
    }

    fn spend(&mut self, work: u64) {
        self.work += work;
        self.work_left = self.work_left.saturating_sub(work);
    }

    /// Whether `cut` was examined before; it counts as examined from now on.
    fn is_seen(&mut self, cut: &Cut) -> bool {
        !self.seen.insert(cut.as_slice().to_vec())
    }

    /// Looks for an order of the events of `cut`.
    fn orient(&mut self, problem: &Problem<'_, '_>, cut: &Cut) -> Oriented {
        let mut prefix = FixedPrefix::new(problem, cut);
        let mut extensions_count = 0;
        loop {
            let size = Window::size(cut, prefix.cut());
            if size > self.work_left.min(NUMBERS_MAX) {
                self.spend(std::mem::take(&mut prefix.lookups));
                return Oriented::BudgetExhausted;
            }
            let window = Window::build(problem, cut, prefix.cut());
            // At least the window's own size is spent, so that this ends.
            self.spend(size + window.events.len() as u64 + std::mem::take(&mut prefix.lookups));
            let interruption = match Saturation::new(&window, problem, self.work_left) {
                Ok(saturation) => match self.decide(&window, saturation) {
                    Ok(order) => return Oriented::Found(reordering(problem, cut, &window, order)),
                    Err(interruption) => interruption,
                },
                // Nothing was assumed yet: what contradicts itself here does so in larger cuts too.
                Err(Interruption::Contradiction) => return Oriented::Refuted,
                Err(Interruption::Complete(event)) => return Oriented::Complete(event),
                Err(interruption) => interruption,
            };
            match interruption {
                // Sections were assumed to stay open, so a larger cut may do.
                Interruption::Contradiction | Interruption::Complete(_) => return Oriented::Failed,
                Interruption::BudgetExhausted => return Oriented::BudgetExhausted,
                Interruption::Extend(event) => {
                    prefix.lower(event);
                    extensions_count += 1;
                    prefix.lower_to(extended(&window, event, extensions_count));
                    prefix.settle();
                }
            }
        }
    }

    /// Goes through the decisions that nothing forces.
    fn decide(
        &mut self,
        window: &Window,
        mut saturation: Saturation,
    ) -> Result<Vec<EventId>, Interruption> {
        saturation.assume_open(window)?;
        let mut stack = vec![saturation];
        let mut extend: Option<EventId> = None;
        while let Some(saturation) = stack.pop() {
            self.spend(saturation.work);
            match schedule(window, &saturation) {
                Ok(order) => return Ok(order),
                Err(Stuck::Extend(event)) => extend = extend.max(Some(event)),
                Err(Stuck::Decide(first, second)) => {
                    let kept = (stack.len() as u64 + 2) * window.rows.len() as u64;
                    if self.decisions_left == 0 || self.work_left == 0 || kept > 4 * NUMBERS_MAX {
                        return Err(Interruption::BudgetExhausted);
                    }
                    self.decisions_left -= 1;
                    // The one to try first goes onto the stack last.
                    for edge in [second, Some(first)].into_iter().flatten() {
                        let mut decided = saturation.clone();
                        match decided.decide(window, edge) {
                            Ok(()) => stack.push(decided),
                            Err(Interruption::Extend(event)) => extend = extend.max(Some(event)),
                            Err(Interruption::BudgetExhausted) => {
                                return Err(Interruption::BudgetExhausted);
                            }
                            Err(Interruption::Contradiction | Interruption::Complete(_)) => {}
                        }
                    }
                }
            }
        }
        Err(extend.map_or(Interruption::Contradiction, Interruption::Extend))
    }
}

/// Where in the observed order the next window starts: where this one does, or at `event`, if that
/// is earlier; from the second time on, as long again before.
fn extended(window: &Window, event: EventId, extensions_count: u32) -> usize {
    let (Some(first), Some(last)) = (window.events.first(), window.events.last()) else {
        return event.index();
    };
    let length = last.index() + 1 - first.index();
    let start = first.index().saturating_sub(if extensions_count > 1 { length } else { 0 });
    start.min(event.index())
}

/// The ways to settle which of the sections of one lock that `cut` leaves open, and that exclude
/// each other, wait open: for each way the releases that then have to happen. None if no lock has
/// such sections.
///
/// One that holds the lock alone may wait open, or those that share it; all others are completed.
fn open_conflict(problem: &Problem<'_, '_>, cut: &Cut) -> Option<Vec<Vec<EventId>>> {
    let threads = cut.ids().filter(|&thread| cut[thread] > 0);
    let mut open: Vec<&CriticalSection> =
        threads.flat_map(|thread| problem.engine.open(thread, cut[thread])).collect();
    open.sort_unstable_by_key(|section| (section.lock, section.acquire));
    for sections in open.chunk_by(|left, right| left.lock == right.lock) {
        let mut alone = sections.iter().filter(|section| section.mode == Mode::Exclusive);
        // A thread that holds a lock in both modes excludes nobody twice.
        let has_others =
            |owner: &CriticalSection| sections.iter().any(|section| section.thread != owner.thread);
        if !alone.clone().any(|owner| has_others(owner)) {
            continue;
        }
        let is_stuck = |section: &&&CriticalSection| {
            section.release.is_none_or(|release| problem.is_unreachable(release))
        };
        let complete = |keep: &dyn Fn(&CriticalSection) -> bool| {
            let others = sections.iter().filter(|section| !keep(section));
            others.map(|section| section.release).collect::<Option<Vec<EventId>>>()
        };
        let keep_owner =
            |owner: &CriticalSection| complete(&|section| section.thread == owner.thread);
        let keep_shared = || complete(&|section| section.mode == Mode::Shared);
        let ways = match sections.iter().find(is_stuck) {
            Some(stuck) if stuck.mode == Mode::Exclusive => vec![keep_owner(stuck)],
            Some(_) => {
                let mut ways = vec![keep_shared()];
                ways.extend(alone.map(|owner| keep_owner(owner)));
                ways
            }
            None => {
                let mut ways: Vec<_> = alone.by_ref().map(|owner| keep_owner(owner)).collect();
                ways.push(keep_shared());
                ways
            }
        };
        return Some(ways.into_iter().flatten().collect());
    }
    None
}

/// The larger cuts that complete one thing which `cut` leaves open in the way of another.
fn larger(problem: &Problem<'_, '_>, cut: &Cut) -> Vec<Cut> {
    let engine = problem.engine;
    let mut completions: Vec<EventId> = Vec::new();
    for thread in cut.ids().filter(|&thread| cut[thread] > 0) {
        for section in engine.open(thread, cut[thread]) {
            let mut others = engine.users(section.lock).iter();
            let is_used = others.any(|user| {
                user.thread != thread
                    && engine.last_section(user, section.mode, cut[user.thread]).is_some()
            });
            completions.extend(section.release.filter(|_| is_used));
        }
        if let Some(wait) = open_wait(problem, cut, thread)
            && engine.unwoken_by(wait).any(|notify| engine.is_in(cut, notify))
        {
            completions.extend(leave(wait));
        }
    }
    completions.sort_unstable();
    let complete = |event: EventId| {
        let mut larger = cut.clone();
        problem.add(event, &mut larger);
        (!problem.is_excluded(&larger)).then_some(larger)
    };
    completions.into_iter().filter_map(complete).collect()
}

/// The wait that `thread` is in after its events in `cut`.
fn open_wait<'t>(
    problem: &Problem<'_, 't>,
    cut: &Cut,
    thread: ThreadId,
) -> Option<&'t WaitInterval> {
    let wait = problem.engine.last_wait(thread, cut[thread])?;
    (!leave(wait).is_some_and(|leave| problem.engine.is_in(cut, leave))).then_some(wait)
}

/// The events of `cut` before the window in observed order, then those of the window in `order`.
fn reordering(
    problem: &Problem<'_, '_>,
    cut: &Cut,
    window: &Window,
    order: Vec<EventId>,
) -> Reordering {
    let mut base: IndexVec<ThreadId, u32> = cut.clone();
    for (line, &thread) in window.by_thread.iter().zip(&window.threads) {
        base[thread] = window.position[line[0] as usize];
    }
    debug_assert!(cut.len() == problem.engine.trace().names().threads.len());
    Reordering { base, schedule: order }
}

// The schedule. At each step the earliest observed event that may come next does: all that must
// come before it has, its lock is free, the reads that must still see the value it would overwrite
// are done, and nobody waits whom it would wake. When nothing may come next, some exclusion that is
// not forced was resolved wrongly, and the caller has to decide it; or the fault lies in the fixed
// prefix, which then has to be shorter.
//
// Costs the events of the window times its threads, more where many threads are blocked.

/// An edge that puts one event before another.
type Edge = (WindowIndex, WindowIndex);

/// Why no event may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stuck {
    /// An exclusion that is not decided: the edge to try first, and the one that puts the two the
    /// other way, if that is possible too.
    Decide(Edge, Option<Edge>),
    /// This event, before the window, might have to come later.
    Extend(EventId),
}

/// What keeps an event from coming next.
enum Block {
    /// A section, by its index, that another thread is in.
    Section(usize),
    /// A read that must still see what would be overwritten.
    Read(WindowIndex),
    /// A thread, by the index of its wait, that would be woken.
    Wait(usize),
}

/// The state after the steps so far.
struct Run<'a> {
    window: &'a Window,
    saturation: &'a Saturation,
    /// How many events of each thread happened, in the whole trace.
    done: Vec<u32>,
    /// Threads with events left, by their next event.
    heads: Vec<(WindowIndex, u32)>,
    /// The next event of each thread, as an index of its events.
    next: Vec<usize>,
    /// The sections that threads are in, by lock.
    held: Vec<Vec<usize>>,
    /// The last write of each variable, and the reads that must still see it.
    current: Vec<(WindowIndex, Vec<WindowIndex>)>,
    waiting: Vec<usize>,
}

/// The events of `window` in an order that keeps `saturation` and all exclusions.
fn schedule(window: &Window, saturation: &Saturation) -> Result<Vec<EventId>, Stuck> {
    let mut run = Run::new(window, saturation);
    let mut order = Vec::with_capacity(window.events.len());
    while !run.heads.is_empty() {
        let ready = |run: &Run<'_>, at: WindowIndex| run.is_ready(at) && run.block(at).is_none();
        match run.heads.iter().position(|&(at, _)| ready(&run, at)) {
            Some(index) => order.push(window.events[run.step(index) as usize]),
            None => return Err(run.stuck()),
        }
    }
    Ok(order)
}

impl<'a> Run<'a> {
    fn new(window: &'a Window, saturation: &'a Saturation) -> Self {
        let first = |line: &Vec<WindowIndex>| window.position[line[0] as usize];
        let mut heads: Vec<(WindowIndex, u32)> =
            window.by_thread.iter().zip(0..).map(|(line, thread)| (line[0], thread)).collect();
        heads.sort_unstable();
        let mut held = vec![Vec::new(); window.locks.len()];
        for (at, section) in window.sections.iter().enumerate() {
            if section.acquire == BEFORE {
                held[section.lock].push(at);
            }
        }
        let waits = window.waits.iter().enumerate();
        let waiting = waits.filter(|(_, wait)| wait.begin == BEFORE).map(|(at, _)| at).collect();
        let current = window.vars.iter().map(|var| (BEFORE, var.prefix_readers.clone())).collect();
        let next = vec![0; window.by_thread.len()];
        let done = window.by_thread.iter().map(first).collect();
        Self { window, saturation, done, heads, next, held, current, waiting }
    }

    /// Whether all that must come before `at` has.
    fn is_ready(&self, at: WindowIndex) -> bool {
        let own = self.window.thread[at as usize] as usize;
        let row = self.saturation.row(at).iter().zip(&self.done).enumerate();
        row.into_iter().all(|(thread, (needed, done))| thread == own || needed <= done)
    }

    fn block(&self, at: WindowIndex) -> Option<Block> {
        let window = self.window;
        if let Some(section) = window.sections.get(window.starts[at as usize] as usize) {
            let held = self.held[section.lock].iter().copied();
            let other = held.into_iter().find(|&other| section.excludes(&window.sections[other]));
            if let Some(other) = other {
                return Some(Block::Section(other));
            }
        }
        let var = window.var_of[at as usize];
        if var != NEVER && window.is_write[at as usize] {
            let pending = &self.current[var as usize].1;
            if let Some(&read) = pending.iter().find(|&&read| read != at) {
                return Some(Block::Read(read));
            }
        }
        let &on = window.notify_at.get(&at)?;
        let event = window.events[at as usize];
        let mut waiting = self.waiting.iter().copied();
        waiting.find(|&wait| window.waits[wait].must_not_wake(on, event)).map(Block::Wait)
    }

    /// Lets the next event of the thread at `index` of the heads happen.
    fn step(&mut self, index: usize) -> WindowIndex {
        let (at, thread) = self.heads.remove(index);
        self.done[thread as usize] += 1;
        self.next[thread as usize] += 1;
        if let Some(&next) = self.window.by_thread[thread as usize].get(self.next[thread as usize])
        {
            let to = self.heads.partition_point(|&(other, _)| other < next);
            self.heads.insert(to, (next, thread));
        }
        self.happen(at);
        at
    }

    fn happen(&mut self, at: WindowIndex) {
        let window = self.window;
        let (start, end) = (window.starts[at as usize], window.ends[at as usize]);
        if let Some(section) = window.sections.get(start as usize) {
            self.held[section.lock].push(start as usize);
        }
        if let Some(section) = window.sections.get(end as usize) {
            self.held[section.lock].retain(|&other| other != end as usize);
        }
        let var = window.var_of[at as usize];
        if var != NEVER {
            self.current[var as usize].1.retain(|&read| read != at);
            if window.is_write[at as usize] {
                self.current[var as usize] = (at, window.readers(at).to_vec());
            }
        }
        self.waiting.extend(window.begins_at.get(&at).into_iter().flatten());
        if let Some(left) = window.leaves_at.get(&at) {
            self.waiting.retain(|other| !left.contains(other));
        }
    }

    /// What to decide, or else where to start instead.
    fn stuck(&self) -> Stuck {
        let mut extend: Option<EventId> = None;
        for &(at, _) in self.heads.iter().filter(|&&(at, _)| self.is_ready(at)) {
            let Some(block) = self.block(at) else { continue };
            match self.choice(at, &block) {
                Ok((first, second)) => return Stuck::Decide(first, second),
                Err(event) => extend = extend.max(Some(event)),
            }
        }
        Stuck::Extend(extend.expect("an order without a cycle has an event that is ready"))
    }

    /// The two edges between which to decide so that `at` is not blocked, the one as observed
    /// first; or the event of the fixed prefix that would have to move.
    fn choice(&self, at: WindowIndex, block: &Block) -> Result<(Edge, Option<Edge>), EventId> {
        let window = self.window;
        let (start, end, other_start, other_end, event) = match *block {
            Block::Section(other) => {
                let (other, own) =
                    (window.sections[other], window.sections[window.starts[at as usize] as usize]);
                (other.acquire, other.release, own.acquire, own.release, other.of.acquire)
            }
            Block::Read(read) => {
                let var = &window.vars[window.var_of[at as usize] as usize];
                let source = window.reads_from[read as usize];
                let event = match source {
                    BEFORE => var.prefix_write.unwrap_or(window.events[at as usize]),
                    _ => window.events[source as usize],
                };
                (source, read, at, at, event)
            }
            Block::Wait(wait) => {
                let wait = window.waits[wait];
                (wait.begin, wait.leave, at, at, wait.of.begin)
            }
        };
        if start == BEFORE {
            return Err(event);
        }
        let (here, there) = ((end, other_start), (other_end, start));
        // What never ends comes last.
        Ok(match (end, other_end) {
            (NEVER, _) => (there, None),
            (_, NEVER) => (here, None),
            _ if start < other_start => (here, Some(there)),
            _ => (there, Some(here)),
        })
    }
}
