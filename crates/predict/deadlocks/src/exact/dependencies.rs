//! Dependencies: who asks for a lock while holding others, and where in the code?
//!
//! A dependency is a thread, the locks it holds, the lock it asks for and the code location; all
//! acquires that agree in these are its instances. Only the outermost acquire of a lock in a mode
//! can block, and a thread's last event if it requests a lock that the thread never got. In a trace
//! that says where in the program events come from, an acquire that was not requested is one that
//! would not have waited. Locks that one thread alone uses can neither block nor guard anybody and
//! are left out.
//!
//! Costs the nesting depth for each nested section.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::views::Mode;
use reweave_trace::{ConditionOp, EventId, LockId, LockOp, Op, SiteId, ThreadId, Trace};

reweave_base::id! {
    /// A thread with some locks held.
    pub(super) struct HoldingId;
    /// A dependency.
    pub(super) struct DependencyId;
}

/// How many holds are kept in all; nesting thousands deep would take memory without end.
const HOLDS_MAX: usize = 8_000_000;

/// A lock, and how it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hold {
    pub(super) lock: LockId,
    pub(super) mode: Mode,
}

/// A thread with some locks held.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) thread: ThreadId,
    /// Each lock once, in the order of their ids; one held in both modes counts as exclusive.
    pub(super) holds: Box<[Hold]>,
}

/// A thread that holds some locks and asks for another.
#[derive(Debug)]
pub(super) struct Dependency {
    pub(super) holding: HoldingId,
    pub(super) lock: LockId,
    pub(super) mode: Mode,
    /// The acquires, in observed order.
    pub(super) instances: Vec<EventId>,
}

/// All dependencies of a trace.
#[derive(Debug)]
pub(super) struct Dependencies {
    pub(super) holdings: IndexVec<HoldingId, Holding>,
    pub(super) all: IndexVec<DependencyId, Dependency>,
    pub(super) locks_count: usize,
    /// Whether none was left out for want of room.
    pub(super) is_whole: bool,
}

/// Whether a lock held in the mode `held` keeps one that asks for it in the mode `wanted` waiting.
pub(super) fn excludes(held: Mode, wanted: Mode) -> bool {
    held == Mode::Exclusive || wanted == Mode::Exclusive
}

impl Holding {
    /// How it holds `lock`, if it does.
    pub(super) fn mode_of(&self, lock: LockId) -> Option<Mode> {
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
            if section.outer.is_some() && may_wait(trace, section.acquire) {
                builder.add(section.acquire, section.thread, section.lock, section.mode);
            }
        }
        for (event, thread, lock) in last_requests(trace) {
            // In which mode it asks is not known; an exclusive holder blocks both.
            builder.add(event, thread, lock, Mode::Shared);
        }
        let Builder { holdings, all, is_whole, .. } = builder;
        Self { holdings, all, locks_count: names.locks.len(), is_whole }
    }

    /// The thread of `dependency`.
    pub(super) fn thread(&self, dependency: DependencyId) -> ThreadId {
        self.holding(dependency).thread
    }

    /// What the thread of `dependency` holds.
    pub(super) fn holding(&self, dependency: DependencyId) -> &Holding {
        &self.holdings[self.all[dependency].holding]
    }
}

/// Whether the thread would have waited at `acquire` for the lock: a recorder of programs, which
/// knows the origins of events, says so by a request. Who wakes takes its lock again and waits for it.
fn may_wait(trace: &Trace, acquire: EventId) -> bool {
    let before = trace.position(acquire).checked_sub(1);
    let events = trace.thread_events(trace.event(acquire).thread);
    let before = before.map(|place| trace.event(events[place as usize]).op);
    trace.origins().is_none()
        || matches!(
            before,
            Some(
                Op::Lock(LockOp::Request, _)
                    | Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _)
            )
        )
}

/// The requests that are the last event of their thread.
fn last_requests(trace: &Trace) -> impl Iterator<Item = (EventId, ThreadId, LockId)> {
    let threads = trace.names().threads.entries();
    let last = threads.filter_map(|(thread, _)| trace.thread_events(thread).last().copied());
    last.filter_map(|id| {
        let event = trace.event(id);
        if let Op::Lock(LockOp::Request, lock) = event.op {
            Some((id, event.thread, lock))
        } else {
            None
        }
    })
}

/// Which locks more than one thread asks for.
fn contended(trace: &Trace) -> IndexVec<LockId, bool> {
    let locks_count = trace.names().locks.len();
    let mut first: IndexVec<LockId, Option<ThreadId>> = IndexVec::from_elem(None, locks_count);
    let mut contended = IndexVec::from_elem(false, locks_count);
    let sections = trace.sections().entries().map(|(_, section)| (section.thread, section.lock));
    let requests = last_requests(trace).map(|(_, thread, lock)| (thread, lock));
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
