//! Candidates: the pairs of accesses that might race, as far as a cheap look can say.
//!
//! Two conflicting accesses of different threads of which neither needs the other
//! ([`reweave_order::mhb`]) and which no common lock keeps apart. Every predictable race is among
//! them, whatever relation would find it: what is needed happens in every reordering, and two
//! sections of one lock are never open at once.
//!
//! One pass keeps what each thread did to each variable: reads and writes apart, and in runs at one
//! site with the same locks held. Most variables are guarded by one lock, so accesses with the
//! lock that is held most often lie apart from those without it: who holds it looks only at the
//! others. Which lock that is, a vote in a pass before says; it decides the cost, not the answer.
//!
//! Costs a look at every run that is neither needed nor under the variable's most common lock.

use reweave_base::IndexVec;
use reweave_order::access::{CONFLICTS, class};
use reweave_order::mhb::MustHappenBefore;
use reweave_trace::{EventId, LockId, SiteId, ThreadId, Trace, VarId};

use crate::Race;
use crate::locksets::{LocksetId, Locksets};
use crate::pairs::{Access, Unordered};

/// The pass over the trace.
#[derive(Debug)]
pub(crate) struct Candidates<'a, 't> {
    trace: &'t Trace,
    needs: &'a MustHappenBefore<'t>,
    locksets: Locksets,
    guards: IndexVec<VarId, Option<LockId>>,
    vars: IndexVec<VarId, VarAccesses>,
    /// How many runs were looked at.
    pub(crate) work: u64,
}

/// What was done to one variable.
#[derive(Debug, Default)]
struct VarAccesses {
    /// What every later access looks at, apart from what few do.
    heads: Vec<Head>,
    lists: Vec<AccessList>,
}

/// What one thread did to one variable in one way: who, how, and when last.
#[derive(Clone, Copy, Debug)]
struct Head {
    thread: ThreadId,
    kind: Kind,
    last: u32,
}

/// The accesses, and where a run of them starts.
#[derive(Debug, Default)]
struct AccessList {
    accesses: Vec<Access>,
    runs: Vec<Run>,
}

/// The class of access, and whether the variable's guard was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    class: u8,
    is_guarded: bool,
}

/// Accesses at one site with the same locks held, from `start` on.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u32,
    site: SiteId,
    lockset: LocksetId,
}

impl<'a, 't> Candidates<'a, 't> {
    pub(crate) fn new(trace: &'t Trace, needs: &'a MustHappenBefore<'t>) -> Self {
        let vars = (0..trace.names().vars.len()).map(|_| VarAccesses::default()).collect();
        let (locksets, guards) = (Locksets::new(trace), guards(trace));
        Self { trace, needs, locksets, guards, vars, work: 0 }
    }

    /// Takes the next event and hands `found` the accesses that it might race with.
    pub(crate) fn step(&mut self, second: EventId, mut found: impl FnMut(Unordered<'_>)) {
        let event = self.trace.event(second);
        let Some(var) = event.op.var() else {
            self.locksets.step(self.trace, second);
            return;
        };
        let lockset = self.locksets.of_thread(event.thread);
        let guard = self.guards[var];
        let is_guarded = guard.is_some_and(|guard| self.locksets.holds_alone(lockset, guard));
        let conflicts = CONFLICTS[class(event.op)];
        let needed = self.needs.before(second);
        let own = &mut self.vars[var];
        for (head, list) in own.heads.iter().zip(&own.lists) {
            let is_apart = head.thread == event.thread
                || head.kind.is_guarded && is_guarded
                || !conflicts.contains(&usize::from(head.kind.class));
            if is_apart {
                continue;
            }
            let seen = needed.get(head.thread);
            if head.last <= seen {
                continue;
            }
            self.work += list.each_since(seen, |run, accesses| {
                if !self.locksets.exclude(lockset, run.lockset) {
                    found(Unordered { site: run.site, accesses, second });
                }
            });
        }
        let kind = Kind { class: class(event.op) as u8, is_guarded };
        let access = Access { time: self.trace.position(second) + 1, event: second };
        own.push(event.thread, kind, access, (event.site, lockset));
    }
}

impl VarAccesses {
    fn push(&mut self, thread: ThreadId, kind: Kind, access: Access, at: (SiteId, LocksetId)) {
        let is_own = |head: &Head| head.thread == thread && head.kind == kind;
        let index = self.heads.iter().position(is_own).unwrap_or_else(|| {
            self.heads.push(Head { thread, kind, last: 0 });
            self.lists.push(AccessList::default());
            self.lists.len() - 1
        });
        self.heads[index].last = access.time;
        let list = &mut self.lists[index];
        let last = list.runs.last();
        if last.is_none_or(|last| (last.site, last.lockset) != at) {
            let (start, (site, lockset)) = (list.accesses.len() as u32, at);
            list.runs.push(Run { start, site, lockset });
        }
        list.accesses.push(access);
    }
}

impl AccessList {
    /// Hands `visit` each run with those of its accesses that come after `seen`, of which there
    /// are some; gives how many runs.
    fn each_since(&self, seen: u32, mut visit: impl FnMut(Run, &[Access])) -> u64 {
        let from = self.accesses.partition_point(|access| access.time <= seen);
        let first = self.runs.partition_point(|run| run.start as usize <= from) - 1;
        for (at, &run) in self.runs.iter().enumerate().skip(first) {
            let end = self.runs.get(at + 1).map_or(self.accesses.len(), |next| next.start as usize);
            visit(run, &self.accesses[from.max(run.start as usize)..end]);
        }
        (self.runs.len() - first) as u64
    }
}

/// For each variable the lock that is held at most of its accesses, if there is one such.
///
/// A vote: a lock that is held stays, one that is not loses, and the next takes its place.
fn guards(trace: &Trace) -> IndexVec<VarId, Option<LockId>> {
    let mut votes: IndexVec<VarId, (Option<LockId>, u32)> =
        IndexVec::from_elem((None, 0), trace.names().vars.len());
    let mut locksets = Locksets::new(trace);
    for (id, event) in trace.events() {
        let Some(var) = event.op.var() else {
            locksets.step(trace, id);
            continue;
        };
        let lockset = locksets.of_thread(event.thread);
        let (lock, votes) = &mut votes[var];
        if lock.is_some_and(|lock| locksets.holds_alone(lockset, lock)) {
            *votes += 1;
        } else if *votes > 0 {
            *votes -= 1;
        } else {
            // A different one each time, so that the right one gets its turn.
            let held = locksets.locks(lockset);
            *lock = held.get(id.number() as usize % held.len().max(1)).map(|&(lock, _)| lock);
            *votes = u32::from(lock.is_some());
        }
    }
    votes.iter().map(|&(lock, _)| lock).collect()
}

/// All candidates of `trace`, in the order of the second access, then the first.
///
/// ```
/// let trace = reweave_testkit::trace("
/// T1      T2
/// acq(m)
/// w(x)
/// rel(m)
///         acq(m)
///         w(x)
///         rel(m)
///         w(x)
/// ");
/// // The two writes under the lock are none.
/// let candidates = reweave_races::candidates::candidates(&trace);
/// let numbers = candidates.iter().map(|race| (race.first.number(), race.second.number()));
/// assert_eq!(numbers.collect::<Vec<_>>(), [(2, 7)]);
/// ```
#[must_use]
pub fn candidates(trace: &Trace) -> Vec<Race> {
    let needs = MustHappenBefore::for_any_post(trace);
    let mut pass = Candidates::new(trace, &needs);
    let mut races = Vec::new();
    for (second, _) in trace.events() {
        let from = races.len();
        pass.step(second, |unordered| {
            races.extend(unordered.firsts().map(|first| Race { first, second }));
        });
        races[from..].sort_unstable_by_key(Race::order);
    }
    races
}
