//! Tokens of semaphores: who keeps the last one, who holds one while it waits, and cycles of such threads.
//!
//! A thread *holds* a token if it has taken more of a semaphore than it has posted. Many programs use a semaphore that
//! starts at one as a lock; then this is what it means to hold a lock, and a cycle of threads that each wait for what
//! the next one holds is what a cycle of locks is. Semaphores that hand over from one thread to another look
//! as if their takers held ever more: such candidates do not happen, which the engine finds out.

use std::collections::{BTreeMap, BTreeSet};

use reweave_base::{ComponentId, FxHashMap, FxHashSet, Id as _, IndexVec, strong_components};
use reweave_trace::{
    EventId, LockId, LockOp, Op, SemaphoreId, SemaphoreOp, SiteId, ThreadId, Trace,
};

use super::waits_for_ever;

/// How many threads a cycle may have.
const CYCLE_MAX: usize = 8;

/// How many waits that can be part of a cycle with a token are looked at, and how many steps the search takes.
const WAITS_MAX: usize = 4096;
const STEPS_MAX: usize = 1 << 20;

/// How many tokens `op` adds.
const fn change(op: SemaphoreOp) -> i64 {
    match op {
        SemaphoreOp::Post => 1,
        SemaphoreOp::Take => -1,
    }
}

/// The operations on semaphores whose start is known.
fn operations(
    trace: &Trace,
) -> impl Iterator<Item = (EventId, ThreadId, SemaphoreOp, SemaphoreId)> {
    trace.events().filter_map(|(id, event)| match event.op {
        Op::Semaphore(op, semaphore) => {
            trace.declared().start(semaphore).map(|_| (id, event.thread, op, semaphore))
        }
        _ => None,
    })
}

/// The takes that find no token if their threads stop there and all others run, with a take of another thread that
/// never posts again what it takes.
pub(super) fn kept(trace: &Trace) -> Vec<(EventId, EventId)> {
    let mut tokens: FxHashMap<SemaphoreId, Tokens> = FxHashMap::default();
    for (id, thread, op, semaphore) in operations(trace) {
        let start = trace.declared().start(semaphore).unwrap_or(0);
        tokens.entry(semaphore).or_insert_with(|| Tokens::new(start)).step(id, thread, op);
    }
    tokens.values_mut().for_each(Tokens::finish);
    let found = operations(trace).filter_map(|(id, thread, op, semaphore)| {
        let tokens = tokens.get_mut(&semaphore)?;
        let keeps = (op == SemaphoreOp::Take).then(|| tokens.keeper(thread)).flatten();
        tokens.ran(thread, op);
        Some((id, keeps?))
    });
    found.filter(|&(take, _)| waits_for_ever(trace, take)).collect()
}

/// What threads do to a semaphore.
struct Tokens {
    /// How many are left when all is over.
    left: i64,
    by_thread: FxHashMap<ThreadId, ThreadTokens>,
    /// The last takes of the two threads that keep most, the one that keeps more first.
    keepers: Vec<(i64, ThreadId, EventId)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ThreadTokens {
    /// How many it has posted more than it has taken, in all, and so far.
    posted: i64,
    posted_so_far: i64,
    last_take: Option<EventId>,
}

impl Tokens {
    fn new(start: u32) -> Self {
        Self { left: i64::from(start), by_thread: FxHashMap::default(), keepers: Vec::new() }
    }

    fn step(&mut self, id: EventId, thread: ThreadId, op: SemaphoreOp) {
        self.left += change(op);
        let own = self.by_thread.entry(thread).or_default();
        own.posted += change(op);
        if op == SemaphoreOp::Take {
            own.last_take = Some(id);
        }
    }

    /// All that threads did is known.
    fn finish(&mut self) {
        let takers = self.by_thread.iter();
        let takers = takers.filter_map(|(&thread, it)| Some((it.posted, thread, it.last_take?)));
        self.keepers = takers.collect();
        self.keepers.sort_unstable();
        self.keepers.truncate(2);
    }

    fn ran(&mut self, thread: ThreadId, op: SemaphoreOp) {
        self.by_thread.entry(thread).or_default().posted_so_far += change(op);
    }

    /// If no token is left for `thread` when it stops here and all others run to their ends: the last take of
    /// another thread, of the one that keeps most of them.
    fn keeper(&self, thread: ThreadId) -> Option<EventId> {
        let own = self.by_thread.get(&thread).copied().unwrap_or_default();
        if self.left - (own.posted - own.posted_so_far) > 0 {
            return None;
        }
        let other = self.keepers.iter().find(|&&(_, keeper, _)| keeper != thread);
        other.map(|&(.., take)| take)
    }
}

/// What a thread can hold and wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Resource {
    Lock(LockId),
    Token(SemaphoreId),
}

/// Which tokens threads hold, and who takes them.
#[derive(Debug, Default)]
pub(super) struct HeldTokens {
    /// For each thread and semaphore, its operations and how many tokens it holds after each.
    balances: BTreeMap<ThreadId, BTreeMap<SemaphoreId, Vec<(EventId, i64)>>>,
    /// The takes of each semaphore that wait if they have to, by thread.
    takes: FxHashMap<SemaphoreId, BTreeMap<ThreadId, Vec<EventId>>>,
}

impl HeldTokens {
    pub(super) fn new(trace: &Trace) -> Self {
        let mut held = Self::default();
        for (id, thread, op, semaphore) in operations(trace) {
            let balance = held.balances.entry(thread).or_default().entry(semaphore).or_default();
            let before = balance.last().map_or(0, |&(_, count)| count);
            balance.push((id, before - change(op)));
            if op == SemaphoreOp::Take && waits_for_ever(trace, id) {
                let takes = held.takes.entry(semaphore).or_default();
                takes.entry(thread).or_default().push(id);
            }
        }
        held
    }

    pub(super) fn is_empty(&self) -> bool {
        self.balances.is_empty()
    }

    /// The semaphores of which `thread` holds a token before `event`, one of its own.
    pub(super) fn held(
        &self,
        thread: ThreadId,
        event: EventId,
    ) -> impl Iterator<Item = SemaphoreId> {
        let own = self.balances.get(&thread).into_iter().flatten();
        own.filter_map(move |(&semaphore, balance)| {
            let before = balance.partition_point(|&(id, _)| id < event);
            let count = before.checked_sub(1).map_or(0, |at| balance[at].1);
            (count > 0).then_some(semaphore)
        })
    }

    /// The takes of `semaphore`, by thread.
    pub(super) fn takes(
        &self,
        semaphore: SemaphoreId,
    ) -> Option<&BTreeMap<ThreadId, Vec<EventId>>> {
        self.takes.get(&semaphore)
    }

    /// The sets of waits in which each thread waits for what the next holds, with a semaphore among them: the last
    /// instances, unless `all` are asked for.
    pub(super) fn cycles(&self, trace: &Trace, all: bool) -> TokenCycles {
        let (waits, is_capped) = self.waits(trace, all);
        let mut holders: FxHashMap<Resource, Vec<usize>> = FxHashMap::default();
        for (at, wait) in waits.iter().enumerate() {
            for &resource in &wait.held {
                holders.entry(resource).or_default().push(at);
            }
        }
        let found = TokenCycles { found: Vec::new(), is_capped };
        let mut search = Cycles { waits: &waits, holders, steps: 0, path: Vec::new(), found };
        for start in 0..waits.len() {
            search.path.push(start);
            search.extend();
            search.path.pop();
        }
        search.found
    }

    /// Where threads wait while they hold something, as far as that can be part of a cycle with a token, and whether
    /// there are more.
    fn waits(&self, trace: &Trace, all: bool) -> (Vec<HoldingWait>, bool) {
        let cyclic = Cyclic::new(self, trace);
        let mut waits: Vec<HoldingWait> = Vec::new();
        let mut at: BTreeMap<(ThreadId, Resource, Vec<Resource>, SiteId), usize> = BTreeMap::new();
        for wait in self.all_waits(trace).filter(|wait| cyclic.has(wait)) {
            let held = wait.held.iter().copied().collect();
            let key = (wait.thread, wait.wanted, held, trace.event(wait.event).site);
            match at.get(&key) {
                Some(&earlier) if !all => waits[earlier] = wait,
                _ if waits.len() == WAITS_MAX => return (waits, true),
                _ => {
                    at.insert(key, waits.len());
                    waits.push(wait);
                }
            }
        }
        (waits, false)
    }

    /// Where threads wait while they hold something.
    fn all_waits(&self, trace: &Trace) -> impl Iterator<Item = HoldingWait> {
        trace.events().filter_map(|(id, event)| {
            let wanted = match event.op {
                Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => Resource::Lock(lock),
                Op::Semaphore(SemaphoreOp::Take, semaphore) => Resource::Token(semaphore),
                _ => return None,
            };
            let thread = event.thread;
            let locks = trace.sections().held(thread, id).map(|it| Resource::Lock(it.lock));
            let held: BTreeSet<Resource> =
                self.held(thread, id).map(Resource::Token).chain(locks).collect();
            // Who holds what it wants waits for itself, or not at all.
            let is_wait = !held.is_empty() && !held.contains(&wanted) && waits_for_ever(trace, id);
            is_wait.then_some(HoldingWait { event: id, thread, wanted, held })
        })
    }
}

/// The cycles that were found.
#[derive(Debug)]
pub(super) struct TokenCycles {
    pub(super) found: Vec<Vec<EventId>>,
    /// Whether there may be more, since a limit was reached.
    pub(super) is_capped: bool,
}

reweave_base::id! {
    /// A lock or a semaphore that some thread waits for or holds while it waits.
    struct ResourceId;
}

/// Which resources can be in a cycle with a token: what holds one of them and waits for another may be as well.
///
/// In most programs few waits are of that kind, so that the limits are for those.
struct Cyclic {
    ids: FxHashMap<Resource, ResourceId>,
    components: IndexVec<ResourceId, Option<ComponentId>>,
    /// Components with a semaphore.
    with_tokens: FxHashSet<ComponentId>,
}

impl Cyclic {
    fn new(held: &HeldTokens, trace: &Trace) -> Self {
        let mut ids: FxHashMap<Resource, ResourceId> = FxHashMap::default();
        let mut wanted: IndexVec<ResourceId, FxHashSet<ResourceId>> = IndexVec::new();
        for wait in held.all_waits(trace) {
            let mut id = |resource| {
                *ids.entry(resource).or_insert_with(|| wanted.push(FxHashSet::default()))
            };
            let to = id(wait.wanted);
            let from: Vec<ResourceId> = wait.held.into_iter().map(id).collect();
            from.into_iter().for_each(|from| _ = wanted[from].insert(to));
        }
        let nodes = (0..wanted.len()).map(ResourceId::from_index);
        let components =
            strong_components(wanted.len(), nodes, |node| wanted[node].iter().copied());
        let tokens = ids.iter().filter(|(resource, _)| matches!(resource, Resource::Token(_)));
        let with_tokens = tokens.filter_map(|(_, &id)| components[id]).collect();
        Self { ids, components, with_tokens }
    }

    fn component(&self, resource: Resource) -> Option<ComponentId> {
        self.components[*self.ids.get(&resource)?]
    }

    /// Whether `wait` can be part of a cycle with a token.
    fn has(&self, wait: &HoldingWait) -> bool {
        let component = self.component(wait.wanted);
        component.is_some_and(|it| self.with_tokens.contains(&it))
            && wait.held.iter().any(|&held| self.component(held) == component)
    }
}

/// A thread that waits for something while it holds other things.
#[derive(Debug)]
struct HoldingWait {
    event: EventId,
    thread: ThreadId,
    wanted: Resource,
    held: BTreeSet<Resource>,
}

/// A search for cycles, each begun at its lowest thread.
struct Cycles<'a> {
    waits: &'a [HoldingWait],
    /// The waits of those that hold a resource.
    holders: FxHashMap<Resource, Vec<usize>>,
    steps: usize,
    path: Vec<usize>,
    found: TokenCycles,
}

impl Cycles<'_> {
    /// Tries all ways on from the end of the path.
    fn extend(&mut self) {
        let [Some(&first), Some(&last)] = [self.path.first(), self.path.last()] else { return };
        let (first, last) = (&self.waits[first], &self.waits[last]);
        let count = self.holders.get(&last.wanted).map_or(0, Vec::len);
        for at in 0..count {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                self.found.is_capped = true;
                return;
            }
            let at = self.holders[&last.wanted][at];
            let next = &self.waits[at];
            if self.path.len() > 1 && next.event == first.event {
                let waits = || self.path.iter().map(|&at| &self.waits[at]);
                // Cycles of locks alone are found by another search.
                if waits().any(|wait| matches!(wait.wanted, Resource::Token(_))) {
                    let cycle = waits().map(|wait| wait.event).collect();
                    self.found.found.push(cycle);
                }
                continue;
            }
            let is_new = self.path.iter().all(|&other| self.waits[other].thread != next.thread);
            if next.thread <= first.thread || !is_new {
                continue;
            }
            if self.path.len() < CYCLE_MAX {
                self.path.push(at);
                self.extend();
                self.path.pop();
            } else if self.is_simple() {
                self.found.is_capped = true;
            }
        }
    }

    /// Whether each thread of the path wants something else: of a cycle in which two want the same a part is one, too.
    fn is_simple(&self) -> bool {
        let wanted: BTreeSet<Resource> =
            self.path.iter().map(|&at| self.waits[at].wanted).collect();
        wanted.len() == self.path.len()
    }
}
