//! The accesses of each variable, those that are alike together.
//!
//! Two accesses of one thread to one variable are alike if they have the same code location, both
//! write or neither does, and the same locks are held at both: then what rules out one rules out the
//! other, but for what happened before it.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, LockId, NameKind, SiteId, ThreadId, Trace, VarId};

reweave_base::id! {
    /// A set of locks that are held together.
    pub(super) struct LocksId;
}

/// Accesses that are alike, in program order.
#[derive(Debug)]
pub(super) struct Alike {
    pub(super) thread: ThreadId,
    pub(super) writes: bool,
    pub(super) locks: LocksId,
    pub(super) events: Vec<EventId>,
}

/// Those accesses to a variable that hold the same locks and all write, or none of which does.
#[derive(Debug)]
pub(super) struct Peers {
    pub(super) writes: bool,
    pub(super) locks: LocksId,
    /// As indexes.
    pub(super) alike: Vec<usize>,
}

/// The accesses to one variable.
#[derive(Debug, Default)]
pub(super) struct Variable {
    pub(super) alike: Vec<Alike>,
    pub(super) peers: Vec<Peers>,
}

/// The accesses to variables that some block accesses and more than one thread does.
#[derive(Debug)]
pub(super) struct Accesses {
    vars: IndexVec<VarId, Variable>,
    by_thread: FxHashMap<(VarId, ThreadId), Vec<usize>>,
    locks: IndexVec<LocksId, Vec<(LockId, Mode)>>,
    /// For each site the first with the same location.
    pub(super) locations: IndexVec<SiteId, SiteId>,
}

impl Variable {
    fn add(&mut self, alike: Alike) -> usize {
        let at = self.alike.len();
        let (writes, locks) = (alike.writes, alike.locks);
        let is_peer = |peers: &&mut Peers| peers.writes == writes && peers.locks == locks;
        match self.peers.iter_mut().find(is_peer) {
            Some(peers) => peers.alike.push(at),
            None => self.peers.push(Peers { writes, locks, alike: vec![at] }),
        }
        self.alike.push(alike);
        at
    }
}

impl Accesses {
    /// Those of `trace` to variables for which `is_wanted`.
    pub(super) fn new(trace: &Trace, is_wanted: impl Fn(VarId) -> bool) -> Self {
        let names = trace.names();
        let mut first: FxHashMap<&str, SiteId> = FxHashMap::default();
        let locations =
            names.sites.entries().map(|(id, _)| *first.entry(names.location(id)).or_insert(id));
        let mut accesses = Self {
            vars: (0..names.vars.len()).map(|_| Variable::default()).collect(),
            by_thread: FxHashMap::default(),
            locks: IndexVec::new(),
            locations: locations.collect(),
        };
        let mut known: FxHashMap<Vec<(LockId, Mode)>, LocksId> = FxHashMap::default();
        let mut alike: FxHashMap<(VarId, ThreadId, bool, SiteId, LocksId), usize> =
            FxHashMap::default();
        // What each thread holds, until it takes or gives back a lock.
        let mut held: IndexVec<ThreadId, Option<LocksId>> =
            IndexVec::from_elem(None, names.threads.len());
        for (id, event) in trace.events() {
            let Some(var) = event.op.var() else {
                if event.op.kind().operand() == NameKind::Lock {
                    held[event.thread] = None;
                }
                continue;
            };
            if !is_wanted(var) {
                continue;
            }
            let locks = *held[event.thread].get_or_insert_with(|| {
                let mut list: Vec<(LockId, Mode)> = trace
                    .sections()
                    .held(event.thread, id)
                    .map(|section| (section.lock, section.mode))
                    .collect();
                list.sort_unstable_by_key(|&(lock, mode)| (lock, mode == Mode::Shared));
                *known.entry(list).or_insert_with_key(|list| accesses.locks.push(list.clone()))
            });
            let (writes, location) = (event.op.is_write(), accesses.locations[event.site]);
            let variable = &mut accesses.vars[var];
            let at = alike.entry((var, event.thread, writes, location, locks));
            let at = *at.or_insert_with(|| {
                let at = variable.alike.len();
                accesses.by_thread.entry((var, event.thread)).or_default().push(at);
                variable.add(Alike { thread: event.thread, writes, locks, events: Vec::new() })
            });
            variable.alike[at].events.push(id);
        }
        accesses
    }

    /// The accesses to `var`.
    pub(super) fn of_var(&self, var: VarId) -> &Variable {
        &self.vars[var]
    }

    /// The accesses of `thread` to `var`.
    pub(super) fn of_thread(&self, var: VarId, thread: ThreadId) -> impl Iterator<Item = &Alike> {
        let own = self.by_thread.get(&(var, thread)).map_or(&[][..], Vec::as_slice);
        own.iter().map(move |&at| &self.vars[var].alike[at])
    }

    /// Whether what holds `locks` cannot come while another thread is in one of `sections`.
    pub(super) fn are_excluded(&self, locks: LocksId, sections: &[CriticalSection]) -> bool {
        self.locks[locks].iter().any(|&(lock, mode)| {
            sections.iter().any(|section| {
                let is_alone = mode == Mode::Exclusive || section.mode == Mode::Exclusive;
                section.lock == lock && is_alone
            })
        })
    }
}
