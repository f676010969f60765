//! Building a concurrent trace program from the program layers of runs.
//!
//! Of each thread the runs' chains are followed together: as long as they take the same steps they
//! share points, and where they part the thread branches. Then points from which the same can
//! happen are made one, so that ways that part come together again. Both keep exactly the runs'
//! ways and those that cross over between them at a common point; steps differ by what
//! they do and where in the code they stand, so nothing needs to be known of a language.
//!
//! Linear in the steps of all runs, but for sorting.

use std::collections::{BTreeMap, BTreeSet};

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::{
    AccessOp, ConditionOp, Expr, ExprId, LocalId, LockId, LockOp, Names, Op, PointId, Program,
    SiteId, ThreadId, ThreadOp, Trace, Transition, TransitionId, VarId,
};

use crate::ctp::{Action, Ctp, Owner, Point, Step, StepId, Thread};
use crate::terms::{Slot, Term, TermId, Terms};

/// Why there is no concurrent trace program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CtpError {
    /// There is nothing to look at.
    #[error("expected the program of at least one run, found none")]
    Empty,
    /// A trace was recorded without its program.
    #[error(
        "run {run} has no program layer: only runs of programs in our language carry one, and files do not keep it"
    )]
    NoProgram {
        /// Which run, counted from 1.
        run: usize,
    },
    /// The steps of a thread go round.
    #[error(
        "{site}: thread `{thread}` has a loop here that the run did not unroll; expected each repetition as steps of its own"
    )]
    Loop {
        /// Whose loop.
        thread: String,
        /// Where it closes.
        site: String,
    },
}

/// What distinguishes steps: all but where they start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Body {
    action: Action,
    site: SiteId,
    guard: Option<TermId>,
    store: Option<(Slot, TermId)>,
    define: Option<(Slot, TermId)>,
    assertion: Option<TermId>,
}

impl Body {
    /// That of a step that assigns nothing.
    fn plain(action: Action, site: SiteId) -> Self {
        Self { action, site, guard: None, store: None, define: None, assertion: None }
    }
}

/// A point while it is being made: where the runs stand that came the same way, and what the
/// thread holds, how often.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    at: Vec<(u32, PointId)>,
    held: Vec<(LockId, u32)>,
}

type Edge = (Body, usize);

pub(super) fn build(traces: &[&Trace]) -> Result<Ctp, CtpError> {
    let programs = programs(traces)?;
    let mut builder = Builder::new(traces, programs)?;
    let mut threads: Vec<Vec<Vec<Edge>>> = Vec::new();
    for thread in (0..builder.names.threads.len()).map(ThreadId::from_index) {
        let points = builder.thread(thread);
        threads.push(builder.pass(thread, points));
    }
    Ok(builder.finish(threads))
}

fn programs<'t>(traces: &[&'t Trace]) -> Result<Vec<&'t Program>, CtpError> {
    if traces.is_empty() {
        return Err(CtpError::Empty);
    }
    let layers = traces.iter().enumerate();
    layers.map(|(run, trace)| trace.program().ok_or(CtpError::NoProgram { run: run + 1 })).collect()
}

/// One run, and what its ids are in the common names.
struct Source<'t> {
    program: &'t Program,
    threads: Vec<ThreadId>,
    vars: Vec<VarId>,
    locks: Vec<LockId>,
    locals: Vec<LocalId>,
    sites: Vec<SiteId>,
    /// The run's own id of each of our threads.
    own_threads: FxHashMap<ThreadId, ThreadId>,
    leaving: IndexVec<PointId, Vec<TransitionId>>,
    transitions: IndexVec<TransitionId, Transition>,
    /// How the run calls things.
    names: &'t Names,
}

struct Builder<'t> {
    names: Names,
    sources: Vec<Source<'t>>,
    /// What threads take over from their parents, and the variables by which.
    captures: Captures,
    passed: FxHashMap<(ThreadId, LocalId), VarId>,
    slots: IndexVec<Slot, Owner>,
    slot_of: FxHashMap<Owner, Slot>,
    terms: Terms,
    /// For each run, thread and expression the term that it is.
    translated: FxHashMap<(u32, ThreadId, ExprId), TermId>,
}

impl<'t> Builder<'t> {
    fn new(traces: &[&'t Trace], programs: Vec<&'t Program>) -> Result<Self, CtpError> {
        let mut names = Names::default();
        let sources: Vec<Source<'t>> = traces
            .iter()
            .zip(programs)
            .map(|(trace, program)| Source::new(trace.names(), program, &mut names))
            .collect();
        let mut builder = Self {
            names,
            captures: captures(&sources)?,
            sources,
            passed: FxHashMap::default(),
            slots: IndexVec::new(),
            slot_of: FxHashMap::default(),
            terms: Terms::default(),
            translated: FxHashMap::default(),
        };
        builder.name_captures();
        builder.number_slots();
        Ok(builder)
    }

    /// Gives every shared variable and every local that occurs its slot.
    fn number_slots(&mut self) {
        for (var, _) in self.names.vars.entries() {
            self.slots.push(Owner::Shared(var));
        }
        let mut found: Vec<(ThreadId, LocalId)> = Vec::new();
        for source in &self.sources {
            for transition in source.transitions.iter() {
                let thread = source.threads[transition.thread.index()];
                let mut add = |local: LocalId| found.push((thread, source.locals[local.index()]));
                if let Some((local, _)) = transition.define {
                    add(local);
                }
                let values = [transition.store.map(|(_, value)| value), transition.guard];
                let more = [transition.define.map(|(_, value)| value), transition.assertion];
                for expr in values.into_iter().chain(more).flatten() {
                    each_local(source.program, expr, &mut add);
                }
                if let Some(Op::Thread(ThreadOp::Fork, child)) = transition.access {
                    let child = source.threads[child.index()];
                    let passed = self.captures.get(&child).into_iter().flatten();
                    found.extend(passed.flat_map(|&local| [(thread, local), (child, local)]));
                }
            }
            found.sort_unstable();
            found.dedup();
        }
        for (thread, local) in found {
            self.slots.push(Owner::Local(thread, local));
        }
        self.slot_of = self.slots.entries().map(|(slot, &owner)| (owner, slot)).collect();
    }

    /// The points of `thread` with the steps from each; the first is its entry.
    fn thread(&mut self, thread: ThreadId) -> Vec<Vec<Edge>> {
        let mut at = Vec::new();
        for (run, source) in self.sources.iter().enumerate() {
            let own = source.own_threads.get(&thread);
            if let Some(entry) = own.and_then(|&own| source.program.entry(own)) {
                at.push((run as u32, entry));
            }
        }
        let start = Place { at, held: Vec::new() };
        let mut known: FxHashMap<Place, usize> = FxHashMap::default();
        known.insert(start.clone(), 0);
        let mut places = vec![start];
        let mut edges: Vec<Vec<Edge>> = Vec::new();
        // Places are found in an order of breadth, so what follows is the end of the list.
        while edges.len() < places.len() {
            let here = places[edges.len()].clone();
            let mut leaving = Vec::new();
            for (body, next) in self.ways(thread, &here) {
                let to = *known.entry(next.clone()).or_insert_with(|| {
                    places.push(next);
                    places.len() - 1
                });
                leaving.push((body, to));
            }
            edges.push(leaving);
        }
        let held = places.into_iter().map(|place| place.held).collect();
        minimise(&edges, held)
    }

    /// The ways on from `here`, each with where it leads.
    fn ways(&mut self, thread: ThreadId, here: &Place) -> Vec<(Body, Place)> {
        let mut ways: Vec<(Body, Place)> = Vec::new();
        for &(run, point) in &here.at {
            for index in 0..self.sources[run as usize].leaving[point].len() {
                let source = &self.sources[run as usize];
                let transition = source.transitions[source.leaving[point][index]];
                let (action, held) = hold(source.action(transition.access), &here.held);
                let to = (run, source.behind_wait(transition.to));
                let body = self.body(run, thread, action, &transition);
                match ways.iter_mut().find(|(known, _)| *known == body) {
                    Some((_, place)) => place.at.push(to),
                    None => ways.push((body, Place { at: vec![to], held })),
                }
            }
        }
        for (_, place) in &mut ways {
            place.at.sort_unstable();
            place.at.dedup();
        }
        ways
    }

    fn body(&mut self, run: u32, thread: ThreadId, action: Action, of: &Transition) -> Body {
        let (site, store, define) = {
            let source = &self.sources[run as usize];
            let store =
                of.store.map(|(var, value)| (Owner::Shared(source.vars[var.index()]), value));
            let define = of
                .define
                .map(|(local, value)| (Owner::Local(thread, source.locals[local.index()]), value));
            (source.sites[of.site.index()], store, define)
        };
        let mut assign = |(owner, value)| (self.slot_of[&owner], self.term(run, thread, value));
        let (store, define) = (store.map(&mut assign), define.map(&mut assign));
        Body {
            action,
            site,
            guard: of.guard.map(|guard| self.term(run, thread, guard)),
            store,
            define,
            assertion: of.assertion.map(|assertion| self.term(run, thread, assertion)),
        }
    }

    fn term(&mut self, run: u32, thread: ThreadId, expr: ExprId) -> TermId {
        if let Some(&known) = self.translated.get(&(run, thread, expr)) {
            return known;
        }
        let source = &self.sources[run as usize];
        let term = match source.program.expr(expr) {
            Expr::Constant(value) => Term::Constant(value),
            Expr::Local(local) => {
                Term::Slot(self.slot_of[&Owner::Local(thread, source.locals[local.index()])])
            }
            Expr::Shared(var) => Term::Slot(self.slot_of[&Owner::Shared(source.vars[var.index()])]),
            Expr::Unary(operator, of) => Term::Unary(operator, self.term(run, thread, of)),
            Expr::Binary(operator, left, right) => {
                let left = self.term(run, thread, left);
                Term::Binary(operator, left, self.term(run, thread, right))
            }
        };
        let made = self.terms.add(term);
        self.translated.insert((run, thread, expr), made);
        made
    }

    fn finish(self, threads: Vec<Vec<Vec<Edge>>>) -> Ctp {
        let mut ctp = Ctp {
            terms: self.terms,
            initial: IndexVec::from_elem(0, self.slots.len()),
            slots: self.slots,
            threads: IndexVec::new(),
            steps: IndexVec::new(),
            leaving: IndexVec::new(),
            names: self.names,
        };
        for source in &self.sources {
            for (var, &of) in source.vars.iter().enumerate() {
                let value = source.program.initial(VarId::from_index(var));
                ctp.initial[Slot::from_index(of.index())] = value;
            }
        }
        for (thread, points) in threads.into_iter().enumerate() {
            ctp.add_thread(ThreadId::from_index(thread), points);
        }
        for step in 0..ctp.steps.len() {
            let step = ctp.steps[StepId::from_index(step)];
            if let Action::Fork(child) = step.action {
                ctp.threads[child].parent.get_or_insert(step.thread);
            }
        }
        ctp
    }
}

impl Ctp {
    fn add_thread(&mut self, thread: ThreadId, points: Vec<Vec<Edge>>) {
        let base = self.leaving.len();
        let first = self.steps.len();
        let count = points.len();
        for (index, leaving) in points.into_iter().enumerate() {
            let start = StepId::from_index(self.steps.len());
            for (body, to) in leaving {
                self.steps.push(Step {
                    thread,
                    from: Point::from_index(base + index),
                    to: Point::from_index(base + to),
                    action: body.action,
                    guard: body.guard,
                    store: body.store,
                    define: body.define,
                    assertion: body.assertion,
                    site: body.site,
                });
            }
            self.leaving.push(start..StepId::from_index(self.steps.len()));
        }
        self.threads.push(Thread {
            points: Point::from_index(base)..Point::from_index(base + count),
            steps: StepId::from_index(first)..StepId::from_index(self.steps.len()),
            parent: None,
        });
    }
}

impl<'t> Source<'t> {
    fn new(own: &'t Names, program: &'t Program, names: &mut Names) -> Self {
        let threads: Vec<ThreadId> =
            own.threads.entries().map(|(_, name)| names.threads.intern(name)).collect();
        let own_threads =
            threads.iter().enumerate().map(|(own, &of)| (of, ThreadId::from_index(own))).collect();
        let mut leaving = IndexVec::from_elem(Vec::new(), program.points().len());
        for (id, transition) in program.transitions() {
            leaving[transition.from].push(id);
        }
        Self {
            program,
            threads,
            vars: own.vars.entries().map(|(_, name)| names.vars.intern(name)).collect(),
            locks: own.locks.entries().map(|(_, name)| names.locks.intern(name)).collect(),
            locals: own.locals.entries().map(|(_, name)| names.locals.intern(name)).collect(),
            sites: own.sites.entries().map(|(_, name)| names.sites.intern(name)).collect(),
            own_threads,
            leaving,
            transitions: program.transitions().map(|(_, &transition)| transition).collect(),
            names: own,
        }
    }

    /// What an operation is to others. Operations that only ever keep threads waiting, and are no
    /// mutexes, are taken as if they did not: that leaves more interleavings, never fewer.
    fn action(&self, op: Option<Op>) -> Action {
        match op {
            Some(Op::Access(
                AccessOp::Read | AccessOp::UnknownRead | AccessOp::AtomicRead(_),
                var,
            )) => Action::Read(self.vars[var.index()]),
            Some(Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_), var)) => {
                Action::Write(self.vars[var.index()])
            }
            Some(Op::Access(AccessOp::AtomicUpdate(_), var)) => {
                Action::Update(self.vars[var.index()])
            }
            Some(Op::Lock(LockOp::Acquire, lock)) => Action::Acquire(self.locks[lock.index()]),
            Some(Op::Lock(LockOp::Release, lock)) => Action::Release(self.locks[lock.index()]),
            Some(Op::Thread(ThreadOp::Fork, thread)) => Action::Fork(self.threads[thread.index()]),
            Some(Op::Thread(ThreadOp::Join, thread)) => Action::Join(self.threads[thread.index()]),
            Some(
                Op::Fence(_)
                | Op::Lock(
                    LockOp::AcquireShared
                    | LockOp::ReleaseShared
                    | LockOp::Request
                    | LockOp::RequestExclusive,
                    _,
                )
                | Op::Condition(..)
                | Op::Barrier(..)
                | Op::Semaphore(..)
                | Op::Object(..)
                | Op::Marker(_),
            )
            | None => Action::Local,
        }
    }

    /// Where a thread is behind a wait, which it begins in the same step as it releases the lock.
    fn behind_wait(&self, point: PointId) -> PointId {
        match self.leaving[point][..] {
            [only]
                if matches!(
                    self.transitions[only].access,
                    Some(Op::Condition(ConditionOp::Wait, _))
                ) =>
            {
                self.transitions[only].to
            }
            _ => point,
        }
    }

    /// The points that `entry` leads to, each after all that it leads to.
    fn backward(&self, entry: PointId) -> Result<Vec<PointId>, CtpError> {
        let mut states = IndexVec::from_elem(State::New, self.leaving.len());
        let mut path = vec![(entry, 0)];
        let mut done = Vec::new();
        states[entry] = State::Open;
        while let Some((point, next)) = path.last_mut() {
            let Some(&id) = self.leaving[*point].get(*next) else {
                states[*point] = State::Done;
                done.push(*point);
                path.pop();
                continue;
            };
            *next += 1;
            let transition = &self.transitions[id];
            match states[transition.to] {
                State::Open => return Err(self.has_loop(transition)),
                State::Done => {}
                State::New => {
                    states[transition.to] = State::Open;
                    path.push((transition.to, 0));
                }
            }
        }
        Ok(done)
    }

    fn has_loop(&self, closing: &Transition) -> CtpError {
        CtpError::Loop {
            thread: self.names.threads.name(closing.thread).to_owned(),
            site: self.names.location(closing.site).to_owned(),
        }
    }
}

/// How far a search has come with a point.
#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Open,
    Done,
}

/// What `action` is to a thread that holds `held`, and what it holds then: a lock that is taken
/// again is taken by the first acquire and released by the last release.
fn hold(action: Action, held: &[(LockId, u32)]) -> (Action, Vec<(LockId, u32)>) {
    let mut held = held.to_vec();
    let found = |held: &[(LockId, u32)], lock| held.binary_search_by_key(&lock, |&(of, _)| of);
    let action = match action {
        Action::Acquire(lock) => match found(&held, lock) {
            Ok(place) => {
                held[place].1 += 1;
                Action::Local
            }
            Err(place) => {
                held.insert(place, (lock, 1));
                action
            }
        },
        Action::Release(lock) => match found(&held, lock) {
            Ok(place) if held[place].1 > 1 => {
                held[place].1 -= 1;
                Action::Local
            }
            Ok(place) => {
                held.remove(place);
                action
            }
            Err(_) => Action::Local,
        },
        other => other,
    };
    (action, held)
}

fn each_local(program: &Program, expr: ExprId, visit: &mut dyn FnMut(LocalId)) {
    match program.expr(expr) {
        Expr::Constant(_) | Expr::Shared(_) => {}
        Expr::Local(local) => visit(local),
        Expr::Unary(_, of) => each_local(program, of, visit),
        Expr::Binary(_, left, right) => {
            each_local(program, left, visit);
            each_local(program, right, visit);
        }
    }
}

/// What a thread holds at a point, and the steps from it with where they lead.
type Future = (Vec<(LockId, u32)>, Vec<(Body, usize)>);

/// The graph with points made one from which the same can happen while the same locks are held;
/// points are in an order in which steps lead forward.
fn minimise(edges: &[Vec<Edge>], held: Vec<Vec<(LockId, u32)>>) -> Vec<Vec<Edge>> {
    let order = topological(edges);
    let mut class = vec![usize::MAX; edges.len()];
    let mut known: FxHashMap<Future, usize> = FxHashMap::default();
    let mut classes: Vec<usize> = Vec::new();
    let mut held: Vec<Option<_>> = held.into_iter().map(Some).collect();
    for &point in order.iter().rev() {
        let mut future: Vec<(Body, usize)> =
            edges[point].iter().map(|&(body, to)| (body, class[to])).collect();
        future.sort_unstable();
        let holds = held[point].take().expect("a point is visited once");
        class[point] = *known.entry((holds, future)).or_insert_with(|| {
            classes.push(point);
            classes.len() - 1
        });
    }
    // Classes were found from the ends, so the other way round steps lead forward.
    let last = classes.len() - 1;
    let mut merged: Vec<Vec<Edge>> = Vec::new();
    for &point in classes.iter().rev() {
        let onward = edges[point].iter();
        merged.push(onward.map(|&(body, to)| (body, last - class[to])).collect());
    }
    merged
}

/// All points, each after those that lead to it; the entry, which all come from, is first.
fn topological(edges: &[Vec<Edge>]) -> Vec<usize> {
    let mut incoming = vec![0_u32; edges.len()];
    for &(_, to) in edges.iter().flatten() {
        incoming[to] += 1;
    }
    let mut order = vec![0];
    let mut next = 0;
    while next < order.len() {
        for &(_, to) in &edges[order[next]] {
            incoming[to] -= 1;
            if incoming[to] == 0 {
                order.push(to);
            }
        }
        next += 1;
    }
    order
}

// What a forked thread takes over from its parent.
//
// A child starts with the values that some of its parent's locals have at the fork. Locals are of
// one thread here, so the values are passed: the parent writes them to variables that nobody else
// knows, just before the fork, and the child reads them first of all. Fork and start order the
// two, so that nothing else changes. Where what is passed is one number only, constant propagation
// takes the steps out again.

/// How names of passed values start; no variable of a program starts so.
const MARK: char = '%';

/// For each thread what it takes over.
type Captures = BTreeMap<ThreadId, BTreeSet<LocalId>>;

/// The locals that each thread uses before it defines them.
fn captures(sources: &[Source<'_>]) -> Result<Captures, CtpError> {
    let mut orders = Vec::new();
    for source in sources {
        for (own, &thread) in source.threads.iter().enumerate() {
            if let Some(entry) = source.program.entry(ThreadId::from_index(own)) {
                orders.push((source, thread, source.backward(entry)?));
            }
        }
    }
    let mut captures = Captures::new();
    // What a thread passes on it must have itself: as often as there are generations.
    loop {
        let mut is_settled = true;
        for (source, thread, order) in &orders {
            let live = live_at_entry(source, order, &captures);
            let known = captures.entry(*thread).or_default();
            let before = known.len();
            known.extend(live);
            is_settled &= known.len() == before;
        }
        if is_settled {
            captures.retain(|_, locals| !locals.is_empty());
            return Ok(captures);
        }
    }
}

fn live_at_entry(
    source: &Source<'_>,
    backward: &[PointId],
    captures: &Captures,
) -> BTreeSet<LocalId> {
    let mut live: FxHashMap<PointId, BTreeSet<LocalId>> = FxHashMap::default();
    let mut last = BTreeSet::new();
    for &point in backward {
        let mut here = BTreeSet::new();
        for &id in &source.leaving[point] {
            let step = &source.transitions[id];
            let mut after = live.get(&step.to).cloned().unwrap_or_default();
            if let Some((local, _)) = step.define {
                after.remove(&source.locals[local.index()]);
            }
            let terms = [step.define.map(|(_, of)| of), step.store.map(|(_, of)| of)];
            for expr in terms.into_iter().chain([step.guard, step.assertion]).flatten() {
                each_local(source.program, expr, &mut |local| {
                    after.insert(source.locals[local.index()]);
                });
            }
            if let Some(Op::Thread(ThreadOp::Fork, child)) = step.access {
                after.extend(captures.get(&source.threads[child.index()]).into_iter().flatten());
            }
            here.append(&mut after);
        }
        live.insert(point, here.clone());
        last = here;
    }
    last
}

impl Builder<'_> {
    /// Adds the variables by which values are passed.
    fn name_captures(&mut self) {
        for (&thread, locals) in &self.captures {
            for &local in locals {
                let (local_name, thread_name) =
                    (self.names.locals.name(local), self.names.threads.name(thread));
                let name = format!("{MARK}{local_name} of {thread_name}");
                self.passed.insert((thread, local), self.names.vars.intern(&name));
            }
        }
    }

    /// `points` of `thread` with what passes values put in.
    fn pass(&mut self, thread: ThreadId, points: Vec<Vec<Edge>>) -> Vec<Vec<Edge>> {
        let mut passing: Vec<Vec<Edge>> = Vec::new();
        // For each old point its new one; edges are renumbered once all are known.
        let mut new_of = Vec::with_capacity(points.len());
        let mut unnumbered = Vec::new();
        for (old, leaving) in points.into_iter().enumerate() {
            if old == 0
                && let Some(first) = leaving.first().copied()
            {
                for local in self.captured(thread) {
                    let body = self.takes_over(thread, local, first.0.site);
                    let next = passing.len() + 1;
                    passing.push(vec![(body, next)]);
                }
            }
            let here = passing.len();
            new_of.push(here);
            passing.push(Vec::new());
            for (body, to) in leaving {
                let mut from = here;
                if let Action::Fork(child) = body.action {
                    for local in self.captured(child) {
                        let passes = self.hands_over(thread, child, local, body.site);
                        let next = passing.len();
                        passing.push(Vec::new());
                        passing[from].push((passes, next));
                        from = next;
                    }
                }
                unnumbered.push((from, passing[from].len()));
                passing[from].push((body, to));
            }
        }
        for (point, place) in unnumbered {
            let edge = &mut passing[point][place];
            edge.1 = new_of[edge.1];
        }
        passing
    }

    fn captured(&self, thread: ThreadId) -> Vec<LocalId> {
        self.captures.get(&thread).into_iter().flatten().copied().collect()
    }

    fn takes_over(&mut self, thread: ThreadId, local: LocalId, site: SiteId) -> Body {
        let var = self.passed[&(thread, local)];
        let value = self.terms.add(Term::Slot(self.slot_of[&Owner::Shared(var)]));
        let define = Some((self.slot_of[&Owner::Local(thread, local)], value));
        Body { define, ..Body::plain(Action::Read(var), site) }
    }

    fn hands_over(
        &mut self,
        parent: ThreadId,
        child: ThreadId,
        local: LocalId,
        site: SiteId,
    ) -> Body {
        let var = self.passed[&(child, local)];
        let value = self.terms.add(Term::Slot(self.slot_of[&Owner::Local(parent, local)]));
        let store = Some((self.slot_of[&Owner::Shared(var)], value));
        Body { store, ..Body::plain(Action::Write(var), site) }
    }
}

impl Ctp {
    /// Whether `var` is no variable of the program, but passes a value to a thread that is forked.
    pub fn is_passed(&self, var: VarId) -> bool {
        self.names.vars.name(var).starts_with(MARK)
    }

    /// Whether a step of this `action` is none of the program, but passes a value.
    pub fn is_passing(&self, action: Action) -> bool {
        matches!(action, Action::Read(var) | Action::Write(var) if self.is_passed(var))
    }

    /// Takes out the steps that pass what `is_constant`, whose readers know it already.
    pub(super) fn drop_passing(&mut self, is_constant: &IndexVec<Slot, bool>) {
        let is_dropped = |ctp: &Self, step: &Step| match step.action {
            Action::Read(var) | Action::Write(var) => {
                ctp.is_passed(var) && is_constant[ctp.shared(var)]
            }
            _ => false,
        };
        if !self.steps.iter().any(|step| is_dropped(self, step)) {
            return;
        }
        // From the last point on: what leaves a point instead of what is dropped.
        let mut leaving: Vec<Vec<Step>> = vec![Vec::new(); self.leaving.len()];
        for point in (0..self.leaving.len()).rev() {
            let mut own = Vec::new();
            for (_, step) in self.steps_from(Point::from_index(point)) {
                if is_dropped(self, step) {
                    own.extend(leaving[step.to.index()].iter().copied());
                } else {
                    own.push(*step);
                }
            }
            leaving[point] = own;
        }
        self.rebuild(&leaving);
    }

    /// Makes it the program whose points have `leaving` steps, without points that nothing leads to.
    fn rebuild(&mut self, leaving: &[Vec<Step>]) {
        let mut is_there = vec![false; leaving.len()];
        for thread in self.threads.iter() {
            is_there[thread.points.start.index()] = true;
        }
        for point in 0..leaving.len() {
            if is_there[point] {
                for step in &leaving[point] {
                    is_there[step.to.index()] = true;
                }
            }
        }
        let mut new_of = Vec::with_capacity(leaving.len());
        let mut count = 0;
        for &is_there in &is_there {
            new_of.push(count);
            count += usize::from(is_there);
        }
        (self.steps, self.leaving) = (IndexVec::new(), IndexVec::new());
        for index in 0..self.threads.len() {
            let id = ThreadId::from_index(index);
            let points = self.threads[id].points.clone();
            let (first_point, first_step) = (self.leaving.len(), self.steps.len());
            for point in (points.start.index()..points.end.index()).filter(|&point| is_there[point])
            {
                let start = StepId::from_index(self.steps.len());
                let here = Point::from_index(new_of[point]);
                for step in &leaving[point] {
                    let to = Point::from_index(new_of[step.to.index()]);
                    self.steps.push(Step { from: here, to, ..*step });
                }
                self.leaving.push(start..StepId::from_index(self.steps.len()));
            }
            let thread = &mut self.threads[id];
            thread.points = Point::from_index(first_point)..Point::from_index(self.leaving.len());
            thread.steps = StepId::from_index(first_step)..StepId::from_index(self.steps.len());
        }
    }
}
