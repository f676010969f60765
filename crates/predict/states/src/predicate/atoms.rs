//! What predicates speak of, tabulated: the value of each by how far threads have come.
//!
//! All but shared variables depend on one thread's events alone; so does a variable that only one
//! thread writes, and one that nobody writes never changes.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{
    AccessOp, EventId, LocalId, LockId, LockOp, Op, SiteId, ThreadId, Trace, VarId,
};

use super::expression::{Leaf, LeafId, Local, Node, Shared, Write, Writer};
use super::lex;
use super::steps::Steps;

reweave_base::id! {
    /// A location as a predicate names it: a set of sites.
    pub(super) struct PlaceId;
}

/// Something that a predicate speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    At(ThreadId, PlaceId),
    Next(ThreadId, PlaceId),
    Holds(ThreadId, LockId),
    Position(ThreadId),
    Done(ThreadId),
    Started(ThreadId),
    Local(ThreadId, LocalId),
    Variable(VarId),
}

impl Atom {
    pub(super) const fn is_truth(self) -> bool {
        match self {
            Self::At(..) | Self::Next(..) | Self::Holds(..) | Self::Done(_) | Self::Started(_) => {
                true
            }
            Self::Position(_) | Self::Local(..) | Self::Variable(_) => false,
        }
    }
}

/// The atoms of a predicate, each tabulated once.
pub(super) struct Atoms<'t> {
    trace: &'t Trace,
    ids: FxHashMap<Atom, LeafId>,
    pub(super) atoms: IndexVec<LeafId, Atom>,
    pub(super) leaves: IndexVec<LeafId, Leaf<ThreadId>>,
    places: IndexVec<PlaceId, (String, IndexVec<SiteId, bool>)>,
}

impl<'t> Atoms<'t> {
    pub(super) fn new(trace: &'t Trace) -> Self {
        Self {
            trace,
            ids: FxHashMap::default(),
            atoms: IndexVec::new(),
            leaves: IndexVec::new(),
            places: IndexVec::new(),
        }
    }

    /// The sites at `location`, or at a place within it: `a.c:3` is one, for `a.c:3:14`. None if
    /// there is none.
    pub(super) fn place(&mut self, location: &str) -> Option<PlaceId> {
        let known = self.places.entries().find(|(_, (text, _))| text == location);
        if let Some((id, _)) = known {
            return Some(id);
        }
        let names = self.trace.names();
        let sites: IndexVec<SiteId, bool> = names
            .sites
            .entries()
            .map(|(site, _)| {
                let rest = names.location(site).strip_prefix(location);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            })
            .collect();
        sites.iter().any(|&is_there| is_there).then(|| self.places.push((location.into(), sites)))
    }

    /// The leaf of `atom`.
    pub(super) fn leaf(&mut self, atom: Atom) -> Node {
        if let Some(&id) = self.ids.get(&atom) {
            return Node::Leaf(id);
        }
        let leaf = match atom {
            Atom::At(thread, place) => self.at(thread, place),
            Atom::Next(thread, place) => self.next(thread, place),
            Atom::Holds(thread, lock) => self.holds(thread, lock),
            Atom::Position(thread) => {
                self.scan(thread, Some(0), |count, _| Some(Some(i64::from(count))))
            }
            Atom::Done(thread) => {
                let length = self.trace.thread_events(thread).len() as u32;
                let done = move |count| Some(i64::from(count == length));
                self.scan(thread, done(0), |count, _| Some(done(count)))
            }
            Atom::Started(thread) => self.scan(thread, Some(0), |_, _| Some(Some(1))),
            Atom::Local(thread, local) => {
                let is_own = |event| self.trace.event(event).op == Op::Let(local);
                self.scan(thread, None, |_, event| is_own(event).then(|| self.trace.value(event)))
            }
            Atom::Variable(var) => self.variable(var),
        };
        let id = self.leaves.push(leaf);
        self.atoms.push(atom);
        self.ids.insert(atom, id);
        Node::Leaf(id)
    }

    /// What changes as `thread` runs: `value` before its first event, then for each event, with how
    /// many have run with it, what `after` says, if anything.
    fn scan(
        &self,
        thread: ThreadId,
        value: Option<i64>,
        mut after: impl FnMut(u32, EventId) -> Option<Option<i64>>,
    ) -> Leaf<ThreadId> {
        let mut steps = Steps::constant(value);
        for (&event, count) in self.trace.thread_events(thread).iter().zip(1..) {
            if let Some(value) = after(count, event) {
                steps.push(count, value);
            }
        }
        Leaf::Local(Local { owner: thread, steps })
    }

    fn at(&self, thread: ThreadId, place: PlaceId) -> Leaf<ThreadId> {
        let sites = &self.places[place].1;
        self.scan(thread, Some(0), |_, event| {
            Some(Some(i64::from(sites[self.trace.event(event).site])))
        })
    }

    fn next(&self, thread: ThreadId, place: PlaceId) -> Leaf<ThreadId> {
        let sites = &self.places[place].1;
        let events = self.trace.thread_events(thread);
        let is_next = |count: usize| {
            let is_there = |&event: &EventId| sites[self.trace.event(event).site];
            Some(i64::from(events.get(count).is_some_and(is_there)))
        };
        self.scan(thread, is_next(0), |count, _| Some(is_next(count as usize)))
    }

    fn holds(&self, thread: ThreadId, lock: LockId) -> Leaf<ThreadId> {
        let mut depth = 0_i64;
        self.scan(thread, Some(0), |_, event| {
            let (own, change) = held(self.trace.event(event).op)?;
            depth += if own == lock { change } else { 0 };
            Some(Some(i64::from(depth > 0)))
        })
    }

    fn variable(&self, var: VarId) -> Leaf<ThreadId> {
        let (initial, writes) = written(self.trace, var);
        let mut writers: Vec<Writer<ThreadId>> = Vec::new();
        for (event, value) in writes {
            let owner = self.trace.event(event).thread;
            let write = Write { count: self.trace.position(event) + 1, event, value };
            match writers.binary_search_by_key(&owner, |writer| writer.owner) {
                Ok(at) => writers[at].writes.push(write),
                Err(at) => writers.insert(at, Writer { owner, writes: vec![write] }),
            }
        }
        match writers.as_slice() {
            [writer] => {
                let mut steps = Steps::constant(initial);
                for write in &writer.writes {
                    steps.push(write.count, write.value);
                }
                Leaf::Local(Local { owner: writer.owner, steps })
            }
            _ => Leaf::Shared(Shared { var, initial, writers }),
        }
    }

    /// How `leaf` is written.
    pub(super) fn spell(&self, leaf: LeafId) -> String {
        let names = self.trace.names();
        let plain = |name: &str| match lex::is_plain(name) {
            true => name.to_owned(),
            false => format!("{name:?}"),
        };
        let of = |thread: ThreadId| plain(names.threads.name(thread));
        match self.atoms[leaf] {
            Atom::At(thread, place) => format!("at({}, {:?})", of(thread), self.places[place].0),
            Atom::Next(thread, place) => {
                format!("next({}, {:?})", of(thread), self.places[place].0)
            }
            Atom::Holds(thread, lock) => {
                format!("holds({}, {})", of(thread), plain(names.locks.name(lock)))
            }
            Atom::Position(thread) => format!("position({})", of(thread)),
            Atom::Done(thread) => format!("done({})", of(thread)),
            Atom::Started(thread) => format!("started({})", of(thread)),
            Atom::Local(thread, local) => {
                format!("local({}, {})", of(thread), plain(names.locals.name(local)))
            }
            Atom::Variable(var) => match names.vars.name(var) {
                name if lex::is_plain(name) => name.to_owned(),
                name => format!("`{name}`"),
            },
        }
    }
}

/// The lock that `op` takes or gives back, and how many more times it is held then.
const fn held(op: Op) -> Option<(LockId, i64)> {
    match op {
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => Some((lock, 1)),
        Op::Lock(LockOp::Release | LockOp::ReleaseShared, lock) => Some((lock, -1)),
        Op::Access(..)
        | Op::Fence(_)
        | Op::Lock(LockOp::Request, _)
        | Op::Thread(..)
        | Op::Condition(..)
        | Op::Barrier(..)
        | Op::Semaphore(..)
        | Op::Object(..)
        | Op::Block(..)
        | Op::Branch
        | Op::Let(_) => None,
    }
}

/// The initial value of `var`, which is what a read that saw no write recorded, and its writes, in
/// observed order, with their values. What an update recorded may be what it read or what it wrote; of
/// it, and of a write that recorded nothing, the value is what a read that saw it recorded.
fn written(trace: &Trace, var: VarId) -> (Option<i64>, Vec<(EventId, Option<i64>)>) {
    let mut initial = None;
    let mut writes: Vec<(EventId, Option<i64>)> = Vec::new();
    for &event in trace.accesses(var) {
        match trace.event(event).op {
            Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_), _) => {
                writes.push((event, trace.value(event)))
            }
            Op::Access(AccessOp::AtomicUpdate(_), _) => writes.push((event, None)),
            // In observed order, the write it saw is the last one.
            Op::Access(AccessOp::Read | AccessOp::AtomicRead(_), _) => {
                let seen = writes.last_mut().map_or(&mut initial, |(_, value)| value);
                *seen = seen.or_else(|| trace.value(event));
            }
            // It saw some write or other.
            Op::Access(AccessOp::UnknownRead, _) => {}
            // These are no accesses.
            Op::Fence(_)
            | Op::Lock(..)
            | Op::Thread(..)
            | Op::Condition(..)
            | Op::Barrier(..)
            | Op::Semaphore(..)
            | Op::Object(..)
            | Op::Block(..)
            | Op::Branch
            | Op::Let(_) => {}
        }
    }
    (initial, writes)
}
