//! Patterns: which dependencies of different threads could block each other in a cycle?
//!
//! A *dependency* is a thread, the locks it holds, the lock it asks for and the code location; all
//! acquires that agree in these are its instances. Only the outermost acquire of a lock in a mode
//! can block, and a thread's last event if it requests a lock that the thread never got. In a trace
//! that says where in the program events come from, an acquire that was not requested is one that
//! would not have waited. Locks that one thread alone uses can neither block nor guard anybody and
//! are left out. Dependencies cost the nesting depth for each nested section.
//!
//! A *pattern* is a cycle of two or more dependencies of different threads. Each asks for a lock
//! that the next one holds in a mode that keeps it waiting, and no two hold a lock in modes that
//! exclude each other, for then they could not stand there at once. These are the cycles of the
//! lock-order graph, guards taken into account.
//!
//! Locks and holdings make a graph: a lock leads to who holds it, a holding to the locks it asks
//! for. Cycles lie within its strongly connected components; most programs have none, and are done
//! in linear time. Otherwise a search starts from each dependency, the lowest thread of a cycle
//! first, so that each cycle comes once, the shortest cycles before longer ones, and turns back
//! where the way home is too long. The number of cycles may be exponential, so it takes a limit
//! and says whether it was reached.

use reweave_analysis::Truncation;
use reweave_base::{CsrTable, FxHashMap, FxHashSet, Id, IndexVec, strong_components};
use reweave_trace::views::Mode;
use reweave_trace::{EventId, LockId, Op, SiteId, ThreadId, Trace};

use super::wanted;

reweave_base::id! {
    /// A thread with some locks held.
    struct HoldingId;
    /// A dependency.
    pub(super) struct DependencyId;
}

/// How many holds are kept in all; nesting thousands deep would take memory without end.
const HOLDS_MAX: usize = 8_000_000;

/// A lock, and how it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Hold {
    lock: LockId,
    mode: Mode,
}

/// A thread with some locks held.
#[derive(Debug)]
struct Holding {
    thread: ThreadId,
    /// Each lock once, in the order of their ids; one held in both modes counts as exclusive.
    holds: Box<[Hold]>,
}

/// A thread that holds some locks and asks for another.
#[derive(Debug)]
pub(super) struct Dependency {
    holding: HoldingId,
    lock: LockId,
    mode: Mode,
    /// The acquires, in observed order.
    pub(super) instances: Vec<EventId>,
}

/// All dependencies of a trace.
#[derive(Debug)]
pub(super) struct Dependencies {
    holdings: IndexVec<HoldingId, Holding>,
    pub(super) all: IndexVec<DependencyId, Dependency>,
    locks_count: usize,
    /// Whether none was left out for want of room.
    is_whole: bool,
}

/// Whether a lock held in the mode `held` keeps one that asks for it in the mode `wanted` waiting.
pub(super) fn excludes(held: Mode, wanted: Mode) -> bool {
    held == Mode::Exclusive || wanted == Mode::Exclusive
}

impl Holding {
    /// How it holds `lock`, if it does.
    fn mode_of(&self, lock: LockId) -> Option<Mode> {
        let at = self.holds.binary_search_by_key(&lock, |hold| hold.lock).ok()?;
        Some(self.holds[at].mode)
    }
}

impl Dependencies {
    /// The dependencies of `trace`.
    pub(super) fn new(trace: &Trace) -> Self {
        let names = trace.names();
        let mut builder = Builder {
            trace,
            is_contended: contended(trace),
            holdings: IndexVec::new(),
            by_holds: IndexVec::from_elem(FxHashMap::default(), names.threads.len()),
            all: IndexVec::new(),
            by_key: FxHashMap::default(),
            sites: FxHashMap::default(),
            holds: Vec::new(),
            holds_count: 0,
            is_whole: true,
        };
        for (_, section) in trace.sections().entries() {
            if section.outer.is_some() && trace.may_wait(section.acquire) {
                builder.add(section.acquire, section.thread, section.lock, section.mode);
            }
        }
        for (event, thread, lock, mode) in last_requests(trace) {
            builder.add(event, thread, lock, mode);
        }
        let Builder { holdings, all, is_whole, .. } = builder;
        Self { holdings, all, locks_count: names.locks.len(), is_whole }
    }

    /// The thread of `dependency`.
    fn thread(&self, dependency: DependencyId) -> ThreadId {
        self.holding(dependency).thread
    }

    /// What the thread of `dependency` holds.
    fn holding(&self, dependency: DependencyId) -> &Holding {
        &self.holdings[self.all[dependency].holding]
    }
}

/// The requests that are the last event of their thread.
fn last_requests(trace: &Trace) -> impl Iterator<Item = (EventId, ThreadId, LockId, Mode)> {
    let threads = trace.names().threads.entries();
    let last = threads.filter_map(|(thread, _)| trace.thread_events(thread).last().copied());
    last.filter_map(|id| {
        let event = trace.event(id);
        let (lock, mode) = wanted(event.op)?;
        matches!(event.op, Op::Lock(op, _) if op.is_request()).then_some((
            id,
            event.thread,
            lock,
            mode,
        ))
    })
}

/// Which locks more than one thread asks for.
fn contended(trace: &Trace) -> IndexVec<LockId, bool> {
    let locks_count = trace.names().locks.len();
    let mut first: IndexVec<LockId, Option<ThreadId>> = IndexVec::from_elem(None, locks_count);
    let mut contended = IndexVec::from_elem(false, locks_count);
    let sections = trace.sections().entries().map(|(_, section)| (section.thread, section.lock));
    let requests = last_requests(trace).map(|(_, thread, lock, _)| (thread, lock));
    for (thread, lock) in sections.chain(requests) {
        contended[lock] |= *first[lock].get_or_insert(thread) != thread;
    }
    contended
}

/// What makes two acquires instances of one dependency.
type Key = (HoldingId, LockId, Mode, SiteId);

struct Builder<'t> {
    trace: &'t Trace,
    is_contended: IndexVec<LockId, bool>,
    holdings: IndexVec<HoldingId, Holding>,
    by_holds: IndexVec<ThreadId, FxHashMap<Box<[Hold]>, HoldingId>>,
    all: IndexVec<DependencyId, Dependency>,
    by_key: FxHashMap<Key, DependencyId>,
    /// One site for each code location.
    sites: FxHashMap<&'t str, SiteId>,
    /// Room for what is held at one acquire.
    holds: Vec<Hold>,
    holds_count: usize,
    is_whole: bool,
}

impl Builder<'_> {
    fn add(&mut self, event: EventId, thread: ThreadId, lock: LockId, mode: Mode) {
        if !self.is_contended[lock] {
            return;
        }
        self.gather_holds(event, thread);
        if self.holds.is_empty() {
            return;
        }
        let Some(holding) = self.holding(thread) else {
            self.is_whole = false;
            return;
        };
        let site = self.trace.event(event).site;
        let site = *self.sites.entry(self.trace.names().location(site)).or_insert(site);
        let dependency = *self.by_key.entry((holding, lock, mode, site)).or_insert_with(|| {
            self.all.push(Dependency { holding, lock, mode, instances: Vec::new() })
        });
        self.all[dependency].instances.push(event);
    }

    /// Puts what `thread` holds at `event` into `holds`.
    fn gather_holds(&mut self, event: EventId, thread: ThreadId) {
        let held = self.trace.sections().held(thread, event);
        let held = held.map(|section| Hold { lock: section.lock, mode: section.mode });
        self.holds.clear();
        self.holds.extend(held.filter(|hold| self.is_contended[hold.lock]));
        self.holds.sort_unstable_by_key(|hold| (hold.lock, hold.mode == Mode::Shared));
        self.holds.dedup_by_key(|hold| hold.lock);
    }

    /// `thread` with `holds`; none if there is no room for more.
    fn holding(&mut self, thread: ThreadId) -> Option<HoldingId> {
        if let Some(&known) = self.by_holds[thread].get(self.holds.as_slice()) {
            return Some(known);
        }
        if self.holds_count + self.holds.len() > HOLDS_MAX {
            return None;
        }
        self.holds_count += self.holds.len();
        let holds: Box<[Hold]> = self.holds.as_slice().into();
        let id = self.holdings.push(Holding { thread, holds: holds.clone() });
        self.by_holds[thread].insert(holds, id);
        Some(id)
    }
}

/// How many patterns are kept at most.
const PATTERNS_MAX: usize = 100_000;

/// A cycle of dependencies, its lowest thread first, each blocked by the next.
pub(super) type Pattern = Box<[DependencyId]>;

/// What the search for patterns gave.
#[derive(Debug)]
pub(super) struct Patterns {
    /// The patterns, shorter ones first.
    pub(super) all: Vec<Pattern>,
    /// Why these may not be all.
    pub(super) truncated: Option<Truncation>,
    /// How many steps were taken.
    pub(super) steps: u64,
}

/// The patterns that can be found in `steps_max` steps.
pub(super) fn patterns(dependencies: &Dependencies, steps_max: u64) -> Patterns {
    let mut search = Search::new(dependencies, steps_max);
    let mut length = 2;
    while search.has_longer && search.truncated.is_none() {
        search.has_longer = false;
        for at in 0..search.starts.len() {
            search.start(search.starts[at], length);
        }
        length += 1;
    }
    let left_out = (!dependencies.is_whole).then_some(Truncation::Capped);
    let truncated = search.truncated.or(left_out);
    Patterns { all: search.found, truncated, steps: steps_max - search.steps_left }
}

/// How far a lock is from home: how many more dependencies it takes from one that asks for it, to
/// one that asks for a lock which the first of the cycle holds.
const FAR: u32 = u32::MAX;

/// A lock that the path holds alone; other numbers say how many hold it in shared mode.
const ALONE: u32 = u32::MAX;

struct Search<'d> {
    dependencies: &'d Dependencies,
    /// The holdings with a dependency that may be in a cycle, by thread.
    starts: Vec<HoldingId>,
    /// Those dependencies of each holding.
    asks: CsrTable<HoldingId, DependencyId>,
    /// Those dependencies by the lock they ask for.
    askers: CsrTable<LockId, DependencyId>,
    /// The holdings with such dependencies by the locks they hold.
    holders: CsrTable<LockId, HoldingId>,
    distances: IndexVec<LockId, u32>,
    /// The locks that have a distance, in the order they got it.
    measured: Vec<LockId>,
    /// Whether locks without a distance may only be too far away to have got one.
    is_horizon: bool,
    /// The path so far, each entry blocked by the next.
    path: Vec<DependencyId>,
    /// How the path holds each lock.
    taken: IndexVec<LockId, u32>,
    seen: FxHashSet<Pattern>,
    found: Vec<Pattern>,
    /// Whether there may be cycles longer than those looked for.
    has_longer: bool,
    steps_left: u64,
    /// Why the search ended early.
    truncated: Option<Truncation>,
}

/// Where the search stands in what may follow one entry of the path.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    holder: usize,
    ask: usize,
}

impl<'d> Search<'d> {
    fn new(dependencies: &'d Dependencies, steps_max: u64) -> Self {
        let on_cycles = on_cycles(dependencies);
        let is_kept = |dependency: &DependencyId| on_cycles[*dependency];
        let (holdings_count, locks_count) = (dependencies.holdings.len(), dependencies.locks_count);
        let filler = DependencyId::from_index(0);
        let kept = || dependencies.all.ids().filter(is_kept);
        let asks = CsrTable::group(holdings_count, filler, || {
            kept().map(|id| (dependencies.all[id].holding, id))
        });
        let askers = CsrTable::group(locks_count, filler, || {
            kept().map(|id| (dependencies.all[id].lock, id))
        });
        let mut starts: Vec<HoldingId> =
            dependencies.holdings.ids().filter(|&id| !asks.row(id).is_empty()).collect();
        starts.sort_by_key(|&id| dependencies.holdings[id].thread);
        let holders = CsrTable::group(locks_count, HoldingId::from_index(0), || {
            starts.iter().flat_map(|&id| {
                dependencies.holdings[id].holds.iter().map(move |hold| (hold.lock, id))
            })
        });
        Self {
            dependencies,
            has_longer: !starts.is_empty(),
            starts,
            asks,
            askers,
            holders,
            distances: IndexVec::from_elem(FAR, locks_count),
            measured: Vec::new(),
            is_horizon: false,
            path: Vec::new(),
            taken: IndexVec::from_elem(0, locks_count),
            seen: FxHashSet::default(),
            found: Vec::new(),
            steps_left: steps_max,
            truncated: None,
        }
    }

    /// Takes `count` steps; false if there are not so many left.
    fn step(&mut self, count: usize) -> bool {
        match self.steps_left.checked_sub(count as u64) {
            Some(left) => self.steps_left = left,
            None => (self.steps_left, self.truncated) = (0, Some(Truncation::Budget)),
        }
        self.truncated.is_none()
    }

    /// Finds the cycles of `length` whose lowest thread is that of `holding`, with what it holds.
    fn start(&mut self, holding: HoldingId, length: usize) {
        if self.truncated.is_some() {
            return;
        }
        self.measure(holding, length as u32 - 1);
        for at in 0..self.asks.row(holding).len() {
            let first = self.asks.row(holding)[at];
            if self.is_near(first, length - 1) {
                self.search(first, length);
            }
        }
    }

    /// Finds how far each lock is from `home`, up to `distance_max`, by threads above its own.
    fn measure(&mut self, home: HoldingId, distance_max: u32) {
        for lock in self.measured.drain(..) {
            self.distances[lock] = FAR;
        }
        self.is_horizon = false;
        let dependencies = self.dependencies;
        let Holding { thread, holds } = &dependencies.holdings[home];
        for hold in holds {
            self.distances[hold.lock] = 0;
            self.measured.push(hold.lock);
        }
        let mut at = 0;
        while let Some(&lock) = self.measured.get(at) {
            at += 1;
            let distance = self.distances[lock] + 1;
            for asker in 0..self.askers.row(lock).len() {
                let holding = dependencies.holding(self.askers.row(lock)[asker]);
                if holding.thread <= *thread {
                    continue;
                }
                if distance > distance_max {
                    self.is_horizon = true;
                    return;
                }
                for hold in &holding.holds {
                    if self.distances[hold.lock] == FAR {
                        self.distances[hold.lock] = distance;
                        self.measured.push(hold.lock);
                    }
                }
                if !self.step(holding.holds.len()) {
                    return;
                }
            }
        }
    }

    /// Whether the cycle can be closed with at most `more` dependencies after `dependency`.
    fn is_near(&mut self, dependency: DependencyId, more: usize) -> bool {
        let distance = self.distances[self.dependencies.all[dependency].lock];
        let is_near = distance != FAR && distance as usize <= more;
        // Without a horizon, a lock that has no distance is on no way home at all.
        self.has_longer |= !is_near && (distance != FAR || self.is_horizon);
        is_near
    }

    /// Finds the cycles of `length` that start with `first`.
    fn search(&mut self, first: DependencyId, length: usize) {
        let mut places = vec![Place::default()];
        self.enter(first);
        while let Some(place) = places.last_mut() {
            if self.path.len() < length
                && let Some(next) = self.next(place, length)
            {
                self.enter(next);
                places.push(Place::default());
                continue;
            }
            if self.path.len() == length {
                self.has_longer = true;
                self.close();
            }
            places.pop();
            self.leave();
        }
    }

    /// The next dependency that may follow the path, which has got to `place`.
    fn next(&mut self, place: &mut Place, length: usize) -> Option<DependencyId> {
        let dependencies = self.dependencies;
        let last = &dependencies.all[*self.path.last()?];
        while let Some(&holder) = self.holders.row(last.lock).get(place.holder) {
            if place.ask == 0 && !self.may_follow(holder, last.lock, last.mode) {
                place.holder += 1;
                continue;
            }
            if let Some(&next) = self.asks.row(holder).get(place.ask) {
                place.ask += 1;
                if !self.step(1) {
                    return None;
                }
                if self.is_near(next, length - self.path.len() - 1) {
                    return Some(next);
                }
                continue;
            }
            *place = Place { holder: place.holder + 1, ask: 0 };
        }
        None
    }

    /// Whether the path can be blocked by `holder` at `lock`, wanted in `mode`, while all of the
    /// path stands where it does.
    fn may_follow(&mut self, holder: HoldingId, lock: LockId, mode: Mode) -> bool {
        let dependencies = self.dependencies;
        let holding = &dependencies.holdings[holder];
        if !self.step(1 + self.path.len()) || !self.is_new(holding.thread) {
            return false;
        }
        if !holding.mode_of(lock).is_some_and(|held| excludes(held, mode)) {
            return false;
        }
        let is_free = holding.holds.iter().all(|hold| match self.taken[hold.lock] {
            0 => true,
            ALONE => false,
            _ => hold.mode == Mode::Shared,
        });
        is_free && self.step(holding.holds.len())
    }

    /// Whether `thread` is above that of the path's first entry and has no entry of its own.
    fn is_new(&self, thread: ThreadId) -> bool {
        let mut threads = self.path.iter().map(|&entry| self.dependencies.thread(entry));
        threads.next().is_some_and(|first| first < thread) && threads.all(|other| other != thread)
    }

    fn enter(&mut self, dependency: DependencyId) {
        self.path.push(dependency);
        for hold in &self.dependencies.holding(dependency).holds {
            match hold.mode {
                Mode::Exclusive => self.taken[hold.lock] = ALONE,
                Mode::Shared => self.taken[hold.lock] += 1,
            }
        }
    }

    fn leave(&mut self) {
        let Some(dependency) = self.path.pop() else { return };
        for hold in &self.dependencies.holding(dependency).holds {
            match hold.mode {
                Mode::Exclusive => self.taken[hold.lock] = 0,
                Mode::Shared => self.taken[hold.lock] -= 1,
            }
        }
    }

    /// Keeps the path if its first entry blocks its last.
    fn close(&mut self) {
        let (first, last) = (self.path[0], self.path[self.path.len() - 1]);
        let wanted = &self.dependencies.all[last];
        let held = self.dependencies.holding(first).mode_of(wanted.lock);
        if !held.is_some_and(|held| excludes(held, wanted.mode)) {
            return;
        }
        if self.found.len() == PATTERNS_MAX {
            self.truncated = Some(Truncation::Capped);
            return;
        }
        // With shared locks the same dependencies may block each other in more than one way.
        let mut members = self.path.clone().into_boxed_slice();
        members.sort_unstable();
        if self.seen.insert(members) {
            self.found.push(self.path.as_slice().into());
        }
    }
}

/// Which dependencies lie on a cycle of locks and holdings.
fn on_cycles(dependencies: &Dependencies) -> IndexVec<DependencyId, bool> {
    let lock_node = |lock: LockId| NodeId::from_index(lock.index());
    let holding_node =
        |holding: HoldingId| NodeId::from_index(dependencies.locks_count + holding.index());
    let nodes_count = dependencies.locks_count + dependencies.holdings.len();
    let graph = CsrTable::group(nodes_count, NodeId::from_index(0), || {
        let holds = dependencies.holdings.entries().flat_map(|(id, holding)| {
            holding.holds.iter().map(move |hold| (lock_node(hold.lock), holding_node(id)))
        });
        let asks = dependencies.all.iter();
        holds.chain(asks.map(|ask| (holding_node(ask.holding), lock_node(ask.lock))))
    });
    let nodes = (0..nodes_count).map(NodeId::from_index);
    let components = strong_components(nodes_count, nodes, |node| graph.row(node).iter().copied());
    let ends =
        |ask: &Dependency| components[holding_node(ask.holding)] == components[lock_node(ask.lock)];
    dependencies.all.iter().map(ends).collect()
}

reweave_base::id! {
    /// A node of the graph of locks and holdings.
    struct NodeId;
}
