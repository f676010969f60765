//! The search: which sections to complete, and which way round to decide what nothing forces.
//!
//! A cut is examined with the least that the query needs. Sections that stay open in it come after
//! all others of their lock. One whose release is out of reach stays open in every larger cut too,
//! so what follows from those, and from what the cut completes, refutes all larger cuts. Others
//! could be completed: if what follows from leaving them open is contradictory, each completion is
//! a larger cut to examine.

use reweave_base::{FxHashSet, Id, IndexVec};
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, Reordering, ThreadId};

use crate::base::Base;
use crate::closure::{Closure, Halt};
use crate::engine::{Answer, Budget, Cut, Problem, Refuted, leave};
use crate::schedule::{Stuck, schedule};
use crate::window::Window;

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
    Spent,
}

/// What came of looking for an order of one cut.
enum Oriented {
    Found(Reordering),
    Refuted,
    /// There is none, but there may be of a larger cut.
    Failed,
    /// This event must happen too.
    Complete(EventId),
    Spent,
}

impl Search {
    /// Looks for a cut, from `seed` on, and an order of its events.
    pub(crate) fn run(&mut self, problem: &Problem<'_, '_>, seed: Cut, budget: Budget) -> Answer {
        (self.decisions_left, self.work_left) = (budget.decisions, budget.work);
        self.seen.clear();
        let mut stack = vec![seed];
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
                Examined::Spent => return Answer::Unknown,
            }
        }
        Answer::Infeasible(refuted)
    }

    fn examine(&mut self, problem: &Problem<'_, '_>, mut cut: Cut) -> Examined {
        loop {
            // Every thread is looked at for what it leaves open, and so is each larger cut.
            self.spend(LOOK * cut.len() as u64);
            if self.work_left == 0 {
                return Examined::Spent;
            }
            if problem.is_too_much(&cut) {
                return Examined::Refuted;
            }
            if let Some(ways) = clash(problem, &cut) {
                let completed = |releases: &Vec<EventId>| {
                    let mut larger = cut.clone();
                    releases.iter().for_each(|&release| problem.add(release, &mut larger));
                    (!problem.is_too_much(&larger)).then_some(larger)
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
                Oriented::Spent => return Examined::Spent,
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
        let mut base = Base::new(problem, cut);
        let mut extensions_count = 0;
        loop {
            let size = Window::size(cut, base.cut());
            if size > self.work_left.min(NUMBERS_MAX) {
                self.spend(std::mem::take(&mut base.looks));
                return Oriented::Spent;
            }
            let window = Window::build(problem, cut, base.cut());
            // At least the window's own size is spent, so that this ends.
            self.spend(size + window.events.len() as u64 + std::mem::take(&mut base.looks));
            let halt = match Closure::new(&window, problem, self.work_left) {
                Ok(closure) => match self.decide(&window, closure) {
                    Ok(order) => return Oriented::Found(reordering(problem, cut, &window, order)),
                    Err(halt) => halt,
                },
                Err(Halt::Contradiction) => return Oriented::Refuted,
                Err(Halt::Complete(event)) => return Oriented::Complete(event),
                Err(halt) => halt,
            };
            match halt {
                Halt::Contradiction | Halt::Complete(_) => return Oriented::Failed,
                Halt::Spent => return Oriented::Spent,
                Halt::Extend(event) => {
                    base.lower(event);
                    extensions_count += 1;
                    base.lower_to(extended(&window, event, extensions_count));
                    base.settle();
                }
            }
        }
    }

    /// Goes through the decisions that nothing forces.
    fn decide(&mut self, window: &Window, mut closure: Closure) -> Result<Vec<EventId>, Halt> {
        closure.assume_open(window)?;
        let mut stack = vec![closure];
        let mut extend: Option<EventId> = None;
        while let Some(closure) = stack.pop() {
            self.spend(closure.work);
            match schedule(window, &closure) {
                Ok(order) => return Ok(order),
                Err(Stuck::Extend(event)) => extend = extend.max(Some(event)),
                Err(Stuck::Decide(first, second)) => {
                    let kept = (stack.len() as u64 + 2) * window.rows.len() as u64;
                    if self.decisions_left == 0 || self.work_left == 0 || kept > 4 * NUMBERS_MAX {
                        return Err(Halt::Spent);
                    }
                    self.decisions_left -= 1;
                    for edge in [second, Some(first)].into_iter().flatten() {
                        let mut decided = closure.clone();
                        match decided.decide(window, edge) {
                            Ok(()) => stack.push(decided),
                            Err(Halt::Extend(event)) => extend = extend.max(Some(event)),
                            Err(Halt::Spent) => return Err(Halt::Spent),
                            Err(Halt::Contradiction | Halt::Complete(_)) => {}
                        }
                    }
                }
            }
        }
        Err(extend.map_or(Halt::Contradiction, Halt::Extend))
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
/// each other, stay open: for each way the releases that then have to happen. None if no lock has
/// such sections.
///
/// One that holds the lock alone may stay open, or those that share it; all others are completed.
fn clash(problem: &Problem<'_, '_>, cut: &Cut) -> Option<Vec<Vec<EventId>>> {
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
            section.release.is_none_or(|release| problem.is_out_of_reach(release))
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
        if let Some(stay) = open_stay(problem, cut, thread)
            && engine.kept_from(stay).any(|notify| engine.is_in(cut, notify))
        {
            completions.extend(leave(stay));
        }
    }
    completions.sort_unstable();
    let complete = |event: EventId| {
        let mut larger = cut.clone();
        problem.add(event, &mut larger);
        (!problem.is_too_much(&larger)).then_some(larger)
    };
    completions.into_iter().filter_map(complete).collect()
}

/// The stay that `thread` is in after its events in `cut`.
fn open_stay<'t>(
    problem: &Problem<'_, 't>,
    cut: &Cut,
    thread: ThreadId,
) -> Option<&'t reweave_trace::WaitInterval> {
    let stay = problem.engine.last_stay(thread, cut[thread])?;
    (!leave(stay).is_some_and(|leave| problem.engine.is_in(cut, leave))).then_some(stay)
}

/// The events of `cut` before the window in observed order, then those of the window in `order`.
fn reordering(
    problem: &Problem<'_, '_>,
    cut: &Cut,
    window: &Window,
    order: Vec<EventId>,
) -> Reordering {
    let mut base: IndexVec<ThreadId, u32> = cut.clone();
    for (line, &thread) in window.lines.iter().zip(&window.threads) {
        base[thread] = window.position[line[0] as usize];
    }
    debug_assert!(cut.len() == problem.engine.trace().names().threads.len());
    Reordering { base, schedule: order }
}
