//! Two accesses, or an access and the end of what it accesses, that both happen, with nothing that orders them.
//!
//! Happens-before of a reordering goes by memory orders: a relaxed atomic that hands something over
//! orders nothing, though no reordering can do without it. What orders the two is looked for in the
//! schedule that the engine gives first. If it is made of what every reordering has, they are always
//! ordered. Otherwise it has an edge that another schedule need not have: from a release of a lock to
//! an acquire, or from a post of a semaphore to a take. In a reordering that leaves the two
//! unordered one of these edges is missing: its ends come in the other order, or one of them does not
//! happen. Each of these is asked for in turn.
//!
//! Complete but for the budget and [`QUERIES_MAX`]. Costs a query, and a look at the events from the
//! first access on, for each.

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::{
    AccessOp, BarrierOp, ConditionOp, EventId, LockId, LockOp, MemoryOrder, ObjectId, ObjectOp, Op,
    Reordering, SemaphoreId, SemaphoreOp, ThreadId, ThreadOp, Trace, VarId,
};

use crate::engine::{Answer, Refuted, Solver};
use crate::query::Query;

/// How many queries are asked about one pair.
const QUERIES_MAX: usize = 64;

impl Solver<'_, '_> {
    /// A reordering that runs `first` and `second` and whose happens-before orders neither.
    pub fn unordered(&mut self, first: EventId, second: EventId) -> Answer {
        let trace = self.engine().trace();
        let mut open = vec![Query { must: vec![first, second], ..Query::default() }];
        let (mut asked, mut is_unknown) = (0, false);
        let limit = self.work_limit();
        while let Some(query) = open.pop() {
            asked += 1;
            // All queries about one pair share what one may take.
            if asked > QUERIES_MAX || self.work() > limit {
                return Answer::Unknown;
            }
            let reordering = match self.solve(&query) {
                Answer::Feasible(reordering) => reordering,
                Answer::Infeasible(_) => continue,
                Answer::Unknown => {
                    is_unknown = true;
                    continue;
                }
            };
            let (edges, looks) = path(trace, &reordering, first, second);
            self.add_work(looks);
            let Some(edges) = edges else { return Answer::Feasible(reordering) };
            for edge in edges.into_iter().rev() {
                let without = |absent| {
                    let absent = query.absent.iter().copied().chain([absent]).collect();
                    Query { absent, ..query.clone() }
                };
                open.extend([without(edge.to), without(edge.from)]);
                open.extend(edge.turned(trace).map(|turned| {
                    let order = query.order.iter().copied().chain([turned]).collect();
                    Query { order, ..query.clone() }
                }));
            }
        }
        if is_unknown { Answer::Unknown } else { Answer::Infeasible(Refuted::Exhausted) }
    }

    /// As [`Self::unordered`], of reorderings that keep the order of sections.
    pub fn sync_preserving_unordered(&mut self, first: EventId, second: EventId) -> Answer {
        let query = Query { must: vec![first, second], ..Query::default() };
        let found = self.sync_preserving(&query).filter(|reordering| {
            let (edges, looks) = path(self.engine().trace(), reordering, first, second);
            self.add_work(looks);
            edges.is_none()
        });
        found.map_or(Answer::Infeasible(Refuted::Exhausted), Answer::Feasible)
    }
}

/// An edge that depends on the schedule: from a release to an acquire, or from a post to a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    from: EventId,
    to: EventId,
}

impl Edge {
    /// What must come before what for the edge to be turned round, if that is possible.
    fn turned(self, trace: &Trace) -> Option<(EventId, EventId)> {
        let Op::Lock(_, lock) = trace.event(self.to).op else { return Some((self.to, self.from)) };
        let (sections, thread) = (trace.sections(), |event| trace.event(event).thread);
        let source = sections.held(thread(self.from), self.from).find(|it| it.lock == lock)?;
        let target = sections.held_after(thread(self.to), self.to).find(|it| it.lock == lock)?;
        Some((target.release?, source.acquire))
    }
}

/// What orders the two in `reordering`: the edges that depend on the schedule; none if nothing does. And
/// how many events were looked at.
fn path(
    trace: &Trace,
    reordering: &Reordering,
    first: EventId,
    second: EventId,
) -> (Option<Vec<Edge>>, u64) {
    let base = &reordering.base;
    let is_in_base = |event: EventId| {
        base.get(trace.event(event).thread).is_some_and(|&count| trace.position(event) < count)
    };
    let place = |event: EventId| match is_in_base(event) {
        true => (0, event.index()),
        false => (1, reordering.schedule.iter().position(|&step| step == event).unwrap_or(0)),
    };
    let [early, late] =
        if place(first) < place(second) { [first, second] } else { [second, first] };
    let (part, from) = place(early);
    let ends = base.entries().filter_map(|(thread, &count)| {
        let last = count.checked_sub(1)? as usize;
        trace.thread_events(thread).get(last).copied()
    });
    let end = ends.max().map_or(0, |last| last.index() + 1);
    let in_base = (if part == 0 { from..end } else { 0..0 }).map(EventId::from_index);
    let steps = reordering.schedule.iter().copied().skip(if part == 0 { 0 } else { from });
    let mut follower = Follower::new(trace, early);
    let mut looks = in_base.len() as u64;
    for event in in_base.filter(|&event| is_in_base(event)).chain(steps) {
        if event == late {
            break;
        }
        looks += 1;
        follower.step(event);
    }
    let happening = trace.event(late);
    // What the later access itself sees makes no order, unless it acquires it.
    let seen = match happening.op {
        Op::Access(access, _) if !access.is_read() => None,
        Op::Access(access, var) => {
            let value = follower.values.get(&var).copied().unwrap_or_default();
            let Value { is_atomic, passed_on, .. } = value;
            passed_on.filter(|_| is_atomic && access.order().is_some_and(MemoryOrder::acquires))
        }
        op => follower.receive(late, op, happening.thread),
    };
    let reached = follower.threads[happening.thread].or(seen);
    (reached.map(|link| follower.edges(link)), looks)
}

/// How something came to be after an event: an entry of [`Follower::links`].
type Link = u32;

/// The last write of a variable: how it came to be after the event, and what who acquires it comes
/// after.
#[derive(Clone, Copy, Debug, Default)]
struct Value {
    is_atomic: bool,
    write: Option<Link>,
    passed_on: Option<Link>,
}

/// Follows what comes after an event, and by which edges.
struct Follower<'t> {
    trace: &'t Trace,
    /// The edges on the way that depend on the schedule, each with the one before.
    links: Vec<(Option<Link>, Option<Edge>)>,
    threads: IndexVec<ThreadId, Option<Link>>,
    /// From which event on, by its place in its thread.
    since: IndexVec<ThreadId, u32>,
    /// Of the last release fence, and of what was seen without being acquired.
    fences: IndexVec<ThreadId, (Option<Link>, Option<Link>)>,
    values: FxHashMap<VarId, Value>,
    /// By which variable each thread has released.
    released: FxHashMap<(ThreadId, VarId), Link>,
    /// By exclusive releases and by shared ones, with the release.
    locks: FxHashMap<LockId, [Option<(Link, EventId)>; 2]>,
    posts: FxHashMap<SemaphoreId, (Link, EventId)>,
    objects: FxHashMap<ObjectId, Link>,
    /// Of notifies and arrivals.
    signals: FxHashMap<EventId, Link>,
}

impl<'t> Follower<'t> {
    fn new(trace: &'t Trace, early: EventId) -> Self {
        let names = trace.names();
        let mut follower = Self {
            trace,
            links: vec![(None, None)],
            threads: IndexVec::from_elem(None, names.threads.len()),
            since: IndexVec::from_elem(0, names.threads.len()),
            fences: IndexVec::from_elem((None, None), names.threads.len()),
            values: FxHashMap::default(),
            released: FxHashMap::default(),
            locks: FxHashMap::default(),
            posts: FxHashMap::default(),
            objects: FxHashMap::default(),
            signals: FxHashMap::default(),
        };
        follower.threads[trace.event(early).thread] = Some(0);
        follower.since[trace.event(early).thread] = trace.position(early);
        follower
    }

    /// The edges that led to `link`.
    fn edges(&self, link: Link) -> Vec<Edge> {
        let mut edges = Vec::new();
        let mut at = Some(link);
        while let Some((before, edge)) = at.map(|at| self.links[at as usize]) {
            edges.extend(edge);
            at = before;
        }
        edges
    }

    fn lock(&self, lock: LockId) -> [Option<(Link, EventId)>; 2] {
        self.locks.get(&lock).copied().unwrap_or_default()
    }

    fn follow(&mut self, source: Option<(Link, EventId)>, to: EventId) -> Option<Link> {
        let (before, from) = source?;
        self.links.push((Some(before), Some(Edge { from, to })));
        Some(self.links.len() as Link - 1)
    }

    fn step(&mut self, event: EventId) {
        let happening = self.trace.event(event);
        let (thread, op) = (happening.thread, happening.op);
        if self.threads[thread].is_none() {
            self.threads[thread] = self.receive(event, op, thread);
            self.since[thread] = self.trace.position(event);
        }
        let own = self.threads[thread];
        match op {
            Op::Access(access, var) => self.access(access, var, thread),
            Op::Fence(order) if order.releases() => self.fences[thread].0 = own,
            Op::Lock(release @ (LockOp::Release | LockOp::ReleaseShared), lock) => {
                let slots = self.locks.entry(lock).or_default();
                let slot = &mut slots[usize::from(release == LockOp::ReleaseShared)];
                *slot = slot.or(own.map(|own| (own, event)));
            }
            Op::Thread(ThreadOp::Fork, child) => {
                self.threads[child] = self.threads[child].or(own);
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _)
            | Op::Barrier(BarrierOp::Arrive, _) => {
                self.signals.extend(own.map(|own| (event, own)));
            }
            Op::Semaphore(SemaphoreOp::Post, semaphore) => {
                if let Some(own) = own {
                    self.posts.entry(semaphore).or_insert((own, event));
                }
            }
            Op::Object(ObjectOp::Alloc, object) => {
                self.objects.extend(own.map(|own| (object, own)));
            }
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

    fn receive(&mut self, event: EventId, op: Op, thread: ThreadId) -> Option<Link> {
        let signals = self.trace.signals();
        let signal = |id: &EventId| self.signals.get(id).copied();
        match op {
            Op::Fence(order) if order.acquires() => self.fences[thread].1,
            Op::Lock(LockOp::Acquire, lock) => {
                let [exclusive, shared] = self.lock(lock);
                self.follow(exclusive.or(shared), event)
            }
            Op::Lock(LockOp::AcquireShared, lock) => self.follow(self.lock(lock)[0], event),
            Op::Thread(ThreadOp::Join, child) => self.threads[child],
            Op::Condition(ConditionOp::Wake, _) => {
                let notify = signals.wait_interval(event).and_then(|interval| interval.notify);
                notify.as_ref().and_then(signal)
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                // It comes after the begin of each wait that it woke.
                let woken = signals.woken(event).iter();
                let mut begins = woken.filter_map(|&wait| Some(signals.wait_interval(wait)?.begin));
                begins.find_map(|begin| {
                    let waiting = self.trace.event(begin).thread;
                    let is_after = self.trace.position(begin) >= self.since[waiting];
                    self.threads[waiting].filter(|_| is_after)
                })
            }
            Op::Barrier(..) => {
                let needed = signals.needed_generation(event).map(|it| signals.generation(it));
                needed.and_then(|needed| needed.arrivals.iter().find_map(signal))
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                self.follow(self.posts.get(&semaphore).copied(), event)
            }
            Op::Object(ObjectOp::Free, object) => self.objects.get(&object).copied(),
            Op::Access(..)
            | Op::Fence(_)
            | Op::Lock(..)
            | Op::Thread(..)
            | Op::Condition(..)
            | Op::Semaphore(..)
            | Op::Object(..)
            | Op::Marker(_) => None,
        }
    }

    fn access(&mut self, access: AccessOp, var: VarId, thread: ThreadId) {
        let value = self.values.get(&var).copied().unwrap_or_default();
        let order = access.order();
        if access.is_read() && access != AccessOp::UnknownRead {
            let (threads, fences) = (&mut self.threads[thread], &mut self.fences[thread].1);
            match order.filter(|_| value.is_atomic) {
                None => *threads = threads.or(value.write),
                Some(order) if order.acquires() => *threads = threads.or(value.passed_on),
                Some(_) => *fences = fences.or(value.passed_on),
            }
        }
        if access.is_write() {
            let (write, is_atomic) = (self.threads[thread], order.is_some());
            if order.is_some_and(MemoryOrder::releases)
                && let Some(link) = write
            {
                self.released.entry((thread, var)).or_insert(link);
            }
            let releases = order.is_none_or(MemoryOrder::releases);
            let own = if releases { write } else { self.fences[thread].0 };
            let continued = value.passed_on.filter(|_| access.is_read() && value.is_atomic);
            let before = self.released.get(&(thread, var)).copied().filter(|_| is_atomic);
            let passed_on = own.or(continued).or(before);
            self.values.insert(var, Value { is_atomic, write, passed_on });
        }
    }
}
