//! The names of a predicate looked up in a trace, and what it speaks of tabulated.
//!
//! Numbers and truths are distinguished, every name is looked up, and quantifiers are expanded over
//! the threads. Each *atom*, such as `holds(T1, m)` or a variable, becomes a leaf: its value by how
//! many events threads have run. All but shared variables depend on one thread's events alone; so
//! does a variable that only one thread writes, and one that nobody writes never changes.

use std::ops::Range;

use reweave_base::{FxHashMap, Id, IndexVec, Interner};
use reweave_trace::{
    AccessOp, EventId, LocalId, LockId, LockOp, Marker, NameKind, Op, SiteId, ThreadId, Trace,
    VarId,
};

use super::PARTS_MAX;
use super::error::{PredicateError, PredicateErrorKind, Type};
use super::expression::{
    Comparison, Leaf, LeafId, Local, Node, Shared, Steps, Term, Write, Writer,
};
use super::syntax::{Function, Kind, Name, Quantifier, Syntax, is_plain, nearest};

/// `syntax`, which is that of `text`, over the atoms of a trace.
pub(super) fn resolve<'t>(
    text: &str,
    syntax: &Syntax,
    trace: &'t Trace,
    atoms: &mut Atoms<'t>,
) -> Result<Node, PredicateError> {
    Resolver { text, trace, atoms, bound: Vec::new(), parts_count: 0 }.truth(syntax)
}

struct Resolver<'a, 't> {
    text: &'a str,
    trace: &'t Trace,
    atoms: &'a mut Atoms<'t>,
    /// The threads that quantified names stand for here.
    bound: Vec<(&'a str, ThreadId)>,
    parts_count: usize,
}

type Resolved<T = Node> = Result<T, PredicateError>;

impl<'a> Resolver<'a, '_> {
    fn fault<T>(&self, span: &Range<usize>, kind: PredicateErrorKind) -> Resolved<T> {
        Err(PredicateError { text: self.text.to_owned(), span: span.clone(), kind })
    }

    fn truth(&mut self, syntax: &'a Syntax) -> Resolved {
        self.typed(syntax, Type::Truth)
    }

    fn number(&mut self, syntax: &'a Syntax) -> Resolved {
        self.typed(syntax, Type::Number)
    }

    fn typed(&mut self, syntax: &'a Syntax, expected: Type) -> Resolved {
        let (node, found) = self.part(syntax)?;
        if found == expected {
            return Ok(node);
        }
        self.fault(&syntax.span, PredicateErrorKind::Type { expected })
    }

    fn truths(&mut self, parts: &'a [Syntax]) -> Resolved<Vec<Node>> {
        parts.iter().map(|part| self.truth(part)).collect()
    }

    fn part(&mut self, syntax: &'a Syntax) -> Resolved<(Node, Type)> {
        self.parts_count += 1;
        if self.parts_count > PARTS_MAX {
            return self.fault(&syntax.span, PredicateErrorKind::TooLarge);
        }
        let truth = |node| Ok((node, Type::Truth));
        let number = |node| Ok((node, Type::Number));
        match &syntax.kind {
            Kind::Number(value) => number(Node::Constant(Some(*value))),
            Kind::Truth(value) => truth(Node::truth(*value)),
            Kind::Race => self.fault(&syntax.span, PredicateErrorKind::InnerRace),
            Kind::Variable(name) => number(self.variable(name)?),
            Kind::Ask(function, arguments) => {
                let atom = self.asked(*function, arguments)?;
                let kind = if atom.is_truth() { Type::Truth } else { Type::Number };
                Ok((self.atoms.leaf(atom), kind))
            }
            Kind::Quantified(quantifier, name, inner) => self.quantified(*quantifier, name, inner),
            Kind::Not(inner) => truth(Node::Not(Box::new(self.truth(inner)?))),
            Kind::All(parts) => truth(Node::All(self.truths(parts)?)),
            Kind::Any(parts) => truth(Node::Any(self.truths(parts)?)),
            Kind::Implies(sides) => {
                let [left, right] = sides.as_ref();
                let left = Node::Not(Box::new(self.truth(left)?));
                truth(Node::Any(vec![left, self.truth(right)?]))
            }
            Kind::Compare(comparison, sides) => {
                let [left, right] = sides.as_ref();
                let [(left, kind), (right, other)] = [self.part(left)?, self.part(right)?];
                // Truths are the same or not; there is no other order of them.
                let is_order = !matches!(comparison, Comparison::Equal | Comparison::Unequal);
                let fault = match (kind, other) {
                    (Type::Truth, Type::Number) => Some((0, PredicateErrorKind::Mixed)),
                    (Type::Number, Type::Truth) => Some((1, PredicateErrorKind::Mixed)),
                    (Type::Truth, Type::Truth) if is_order => {
                        Some((0, PredicateErrorKind::Type { expected: Type::Number }))
                    }
                    (Type::Truth, Type::Truth) | (Type::Number, Type::Number) => None,
                };
                if let Some((side, kind)) = fault {
                    return self.fault(&sides[side].span, kind);
                }
                truth(Node::Compare(*comparison, Box::new([left, right])))
            }
            Kind::Sum(terms) => {
                let term = |(is_negative, part): &'a (bool, Syntax)| {
                    Ok(Term { is_negative: *is_negative, node: self.number(part)? })
                };
                number(Node::Sum(terms.iter().map(term).collect::<Resolved<_>>()?))
            }
            Kind::Arithmetic(operator, sides) => {
                let [left, right] = sides.as_ref();
                let sides = [self.number(left)?, self.number(right)?];
                number(Node::Arithmetic(*operator, Box::new(sides)))
            }
        }
    }

    /// A quantifier, expanded over the threads.
    fn quantified(
        &mut self,
        quantifier: Quantifier,
        name: &'a Name,
        inner: &'a Syntax,
    ) -> Resolved<(Node, Type)> {
        if self.bound.iter().any(|(bound, _)| *bound == name.text) {
            let kind = PredicateErrorKind::BoundTwice { name: name.text.clone() };
            return self.fault(&name.span, kind);
        }
        let expected = match quantifier {
            Quantifier::Sum => Type::Number,
            Quantifier::Count | Quantifier::Exists | Quantifier::All => Type::Truth,
        };
        let mut parts = Vec::new();
        for (thread, _) in self.trace.names().threads.entries() {
            self.bound.push((&name.text, thread));
            parts.push(self.typed(inner, expected)?);
            self.bound.pop();
        }
        let added = |parts: Vec<Node>| {
            Node::Sum(parts.into_iter().map(|node| Term { is_negative: false, node }).collect())
        };
        Ok(match quantifier {
            Quantifier::Count | Quantifier::Sum => (added(parts), Type::Number),
            Quantifier::Exists => (Node::Any(parts), Type::Truth),
            Quantifier::All => (Node::All(parts), Type::Truth),
        })
    }

    fn asked(&mut self, function: Function, arguments: &[Name]) -> Resolved<Atom> {
        let names = self.trace.names();
        let thread = self.thread(&arguments[0])?;
        match function {
            Function::At => Ok(Atom::At(thread, self.place(&arguments[1])?)),
            Function::Next => Ok(Atom::Next(thread, self.place(&arguments[1])?)),
            Function::Holds => {
                Ok(Atom::Holds(thread, self.known(&names.locks, NameKind::Lock, &arguments[1])?))
            }
            Function::Position => Ok(Atom::Position(thread)),
            Function::Done => Ok(Atom::Done(thread)),
            Function::Started => Ok(Atom::Started(thread)),
            Function::Local => {
                Ok(Atom::Local(thread, self.known(&names.locals, NameKind::Local, &arguments[1])?))
            }
        }
    }

    fn bound(&self, name: &str) -> Option<ThreadId> {
        self.bound.iter().find(|(bound, _)| *bound == name).map(|&(_, thread)| thread)
    }

    fn thread(&self, name: &Name) -> Resolved<ThreadId> {
        match self.bound(&name.text) {
            Some(thread) if !name.is_quoted => Ok(thread),
            _ => self.known(&self.trace.names().threads, NameKind::Thread, name),
        }
    }

    fn place(&mut self, name: &Name) -> Resolved<PlaceId> {
        if let Some(place) = self.atoms.place(&name.text) {
            return Ok(place);
        }
        let names = self.trace.names();
        // With and without the last number: a line is named as often as a column in it.
        let locations = names.sites.entries().flat_map(|(site, _)| {
            let location = names.location(site);
            let line = location.rsplit_once(':').map(|(line, _)| line);
            [Some(location), line].into_iter().flatten()
        });
        let near = nearest(&name.text, locations);
        self.unknown(NameKind::Site, &name.text, &name.span, near)
    }

    /// The thing that `name` names among `all`.
    fn known<I: Id>(&self, all: &Interner<I>, kind: NameKind, name: &Name) -> Resolved<I> {
        match all.get(&name.text) {
            Some(id) => Ok(id),
            None => {
                let near = nearest(&name.text, all.entries().map(|(_, name)| name));
                self.unknown(kind, &name.text, &name.span, near)
            }
        }
    }

    fn unknown<T>(
        &self,
        kind: NameKind,
        name: &str,
        span: &Range<usize>,
        near: Vec<String>,
    ) -> Resolved<T> {
        let names = self.trace.names();
        let also = if self.bound(name).is_some() || names.threads.get(name).is_some() {
            Some(NameKind::Thread)
        } else if names.locks.get(name).is_some() {
            Some(NameKind::Lock)
        } else if names.locals.get(name).is_some() {
            Some(NameKind::Local)
        } else {
            None
        };
        let (name, is_recorded) = (name.to_owned(), self.trace.origins().is_some());
        self.fault(span, PredicateErrorKind::Unknown { kind, name, near, also, is_recorded })
    }

    /// A variable, or `thread.local`.
    fn variable(&mut self, name: &Name) -> Resolved {
        let names = self.trace.names();
        let var = names.vars.get(&name.text);
        let local = if name.is_quoted { None } else { self.dotted(name, var.is_some())? };
        let atom = match (var, local) {
            (None, Some(local)) => local.atom,
            // What stands for a thread stands for nothing else.
            (Some(_), Some(local)) if local.is_bound => local.atom,
            (Some(_), Some(local)) => {
                let kind =
                    PredicateErrorKind::Ambiguous { name: name.text.clone(), local: local.spelled };
                return self.fault(&name.span, kind);
            }
            (Some(var), None) => Atom::Variable(var),
            (None, None) => Atom::Variable(self.known(&names.vars, NameKind::Var, name)?),
        };
        Ok(self.atoms.leaf(atom))
    }

    /// What `name` is if it is that of a thread, a dot, and that of a local.
    fn dotted(&self, name: &Name, is_variable: bool) -> Resolved<Option<Dotted>> {
        let names = self.trace.names();
        let mut without_local = None;
        for (at, _) in name.text.match_indices('.') {
            let (owner, rest) = (&name.text[..at], &name.text[at + 1..]);
            let bound = self.bound(owner);
            let Some(thread) = bound.or_else(|| names.threads.get(owner)) else { continue };
            if let Some(local) = names.locals.get(rest) {
                let spelled = format!("local({owner}, {rest})");
                let is_bound = bound.is_some();
                return Ok(Some(Dotted { atom: Atom::Local(thread, local), is_bound, spelled }));
            }
            if bound.is_some() || !is_variable {
                without_local = without_local.or(Some(rest));
            }
        }
        let Some(local) = without_local else { return Ok(None) };
        let near = nearest(local, names.locals.entries().map(|(_, name)| name));
        let span = name.span.end - local.len()..name.span.end;
        self.unknown(NameKind::Local, local, &span, near)
    }
}

/// A thread's local, written with a dot.
struct Dotted {
    atom: Atom,
    /// Whether the thread's name is a quantified one.
    is_bound: bool,
    spelled: String,
}

reweave_base::id! {
    /// A location as a predicate names it: a set of sites.
    pub(super) struct PlaceId;
}

/// An atom of a predicate.
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
                let is_own = |event| self.trace.event(event).op == Op::Marker(Marker::Let(local));
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
        let plain = |name: &str| match is_plain(name) {
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
                name if is_plain(name) => name.to_owned(),
                name => format!("`{name}`"),
            },
        }
    }
}

/// The lock that `op` acquires or releases, and by how much that changes its depth.
const fn held(op: Op) -> Option<(LockId, i64)> {
    match op {
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => Some((lock, 1)),
        Op::Lock(LockOp::Release | LockOp::ReleaseShared, lock) => Some((lock, -1)),
        Op::Access(..)
        | Op::Fence(_)
        | Op::Lock(LockOp::Request | LockOp::RequestExclusive, _)
        | Op::Thread(..)
        | Op::Condition(..)
        | Op::Barrier(..)
        | Op::Semaphore(..)
        | Op::Object(..)
        | Op::Marker(_) => None,
    }
}

/// The initial value of `var`, which is what a read that saw no write recorded, or what the trace
/// declares, and its writes, in
/// observed order, with their values. What an update recorded may be what it read or what it wrote;
/// of it, and of a write that recorded nothing, the value is what a read that saw it recorded.
fn written(trace: &Trace, var: VarId) -> (Option<i64>, Vec<(EventId, Option<i64>)>) {
    let mut initial = None;
    let mut writes: Vec<(EventId, Option<i64>)> = Vec::new();
    for &event in trace.accesses(var) {
        match trace.event(event).op {
            Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_), _) => {
                writes.push((event, trace.value(event)));
            }
            Op::Access(AccessOp::AtomicUpdate(_), _) => writes.push((event, None)),
            // In observed order, the write it saw is the last one.
            Op::Access(AccessOp::Read | AccessOp::AtomicRead(_), _) => {
                let seen = writes.last_mut().map_or(&mut initial, |(_, value)| value);
                *seen = seen.or_else(|| trace.value(event));
            }
            // Which write it saw is not known.
            Op::Access(AccessOp::UnknownRead, _) => {}
            // These are no accesses.
            Op::Fence(_)
            | Op::Lock(..)
            | Op::Thread(..)
            | Op::Condition(..)
            | Op::Barrier(..)
            | Op::Semaphore(..)
            | Op::Object(..)
            | Op::Marker(_) => {}
        }
    }
    (initial.or_else(|| trace.declared().initial(var)), writes)
}
