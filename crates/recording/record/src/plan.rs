//! From a schedule of a trace to a plan that makes the recorded program run it.
//!
//! A schedule is a sequence of events. What replay can wait for is coarser: that a thread logs its
//! k-th event at a code address. So the events are put in the order of the schedule, those that the
//! program logs as one are brought together (`groups`), runs of one thread become one step that
//! ends with the last of them, and the goal says what must hold after the last step. Events without
//! an origin are passed over: their thread stops a little earlier than the schedule says. So are
//! requests for locks, which do nothing: a thread that would stop after one stops before it, where
//! it cannot have taken the lock.
//!
//! Threads are named by who created them and when, code addresses by file and offset; nothing in a
//! plan depends on where things lay in memory.
//!
//! Linear in the events that the schedule runs, but for switches in the middle of what is logged as
//! one, each of which costs as many events as lie between.

use std::ops::RangeInclusive;

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_runtime::plan::{self, Module};
use reweave_trace::{
    AccessOp, BarrierOp, CodeId, ConditionId, ConditionOp, EventId, Goal, LockId, LockOp, ModuleId,
    ObjectOp, Op, Origin, Origins, Reordering, SemaphoreOp, ThreadId, ThreadOp, Trace, VarId,
};

pub use reweave_runtime::plan::{Code, GoalKind, Pair, Thread, Waypoint};

/// Why a schedule cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The trace has no origins at all.
    #[error(
        "the trace does not say where in the program its events come from; record the program \
         again with `reweave record`"
    )]
    NoOrigins,
    /// An event that must be waited for has no origin.
    #[error("event {} does not say where in the program it comes from", .0.number())]
    NoOrigin(EventId),
    /// The schedule switches threads in the middle of what the program does in one step.
    #[error(
        "the schedule switches threads in the middle of what the program does in one step, before \
         event {}: it cannot be replayed at this granularity",
        .0.number()
    )]
    Split(EventId),
    /// A thread that nobody was seen to create.
    #[error("nobody was seen to create thread `{0}`, so it cannot be found again in another run")]
    UnknownThread(String),
}

/// What came of one attempt to replay a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The goal was seen to hold.
    Confirmed {
        /// What was seen, for people; a fragment.
        details: String,
    },
    /// It was not. That does not mean that it cannot be.
    NotConfirmed {
        /// Why, for people; a fragment.
        reason: String,
    },
}

/// How a recorded program is made to run a schedule; see [`reweave_runtime::plan`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The threads, the main thread first, parents before children.
    pub threads: Vec<Thread>,
    /// The paths of the files that code addresses are in.
    pub modules: Vec<String>,
    /// The code addresses.
    pub codes: Vec<Code>,
    /// The steps, in this order.
    pub steps: Vec<Waypoint>,
    /// What is to hold after them.
    pub goal_kind: GoalKind,
    /// Of which moments.
    pub goals: Vec<Waypoint>,
    /// Which accesses must overlap.
    pub pairs: Vec<Pair>,
    /// The event of the trace that each step ends with.
    pub step_events: Vec<EventId>,
    /// The event of the trace that each goal speaks of.
    pub goal_events: Vec<EventId>,
    /// What is shown once all steps are done, if that is the goal.
    pub shown: Shown,
}

/// What is shown by a schedule of which all steps were done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// That it can be.
    #[default]
    Order,
    /// That nothing orders two accesses, which no run can show.
    NoOrder,
    /// That no thread goes on afterwards, which remains to be seen.
    Stuck,
    /// That what was freed can be used: what AddressSanitizer calls that.
    UseOfFreed(&'static str),
}

/// What AddressSanitizer calls it if `chain` ends the life of memory and uses it then.
fn use_of_freed(trace: &Trace, chain: &[EventId]) -> Option<&'static str> {
    let &[end, _] = chain else { return None };
    let names = trace.names();
    match trace.event(end).op {
        // It does not watch the stacks of threads that have ended.
        Op::Object(ObjectOp::Free, object)
            if !names.is_handle(object) && !names.is_stack(object) =>
        {
            Some(if names.is_frame(object) {
                "stack-use-after-return"
            } else {
                "heap-use-after-free where it is heap memory"
            })
        }
        _ => None,
    }
}

impl Plan {
    /// The plan that makes the program of `trace` run `reordering`, and looks whether `goal` holds.
    ///
    /// # Errors
    /// If the trace does not tell enough, or the schedule is finer than what can be waited for.
    pub fn new(trace: &Trace, reordering: &Reordering, goal: &Goal) -> Result<Self, PlanError> {
        let origins = trace.origins().ok_or(PlanError::NoOrigins)?;
        let target = Target::new(trace, goal);
        let order = Order::new(trace, origins, reordering).grouped(&target)?;
        let mut builder = PlanBuilder::new(trace, origins);
        builder.steps(&order, &target)?;
        builder.goals(&target)?;
        Ok(Self { shown: target.shown, ..builder.plan })
    }

    /// The plan in the words that the runtime reads.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        let mut paths = String::new();
        let modules: Vec<Module> = self
            .modules
            .iter()
            .map(|path| {
                let start = paths.len() as u32;
                paths.push_str(path);
                Module { start, length: path.len() as u32 }
            })
            .collect();
        let plan = plan::Plan {
            threads: &self.threads,
            modules: &modules,
            codes: &self.codes,
            steps: &self.steps,
            goal_kind: self.goal_kind,
            goals: &self.goals,
            pairs: &self.pairs,
            paths: paths.as_bytes(),
        };
        plan.words()
    }
}

/// What a goal asks of replay.
#[derive(Debug, Default)]
struct Target {
    kind: GoalKind,
    /// What must not have happened at the end: what threads are to stand before, and more.
    ahead: Vec<EventId>,
    /// What threads are to stand before.
    goals: Vec<EventId>,
    /// What must have happened.
    behind: Vec<EventId>,
    /// Which of `goals`, or of what happened, access the same variable.
    pairs: Vec<[EventId; 2]>,
    shown: Shown,
}

impl Target {
    fn new(trace: &Trace, goal: &Goal) -> Self {
        let mut target = Self::default();
        match goal {
            Goal::Race(first, second) => {
                target.kind = GoalKind::Together;
                target.goals = vec![*first, *second];
                target.pairs = vec![[*first, *second]];
            }
            // What is shown is that nothing orders them, whichever comes first.
            Goal::Unordered(first, second) => {
                target.shown = Shown::NoOrder;
                target.behind = vec![*first, *second];
                target.pairs = conflicts(trace, &target.behind);
            }
            Goal::Enabled(events) => {
                target.kind = GoalKind::Together;
                target.goals.clone_from(events);
            }
            // Threads that wait for something else than locks are seen by that they do not go on.
            Goal::Deadlock(events) | Goal::Stuck(events)
                if events.iter().any(|&event| !matches!(trace.event(event).op, Op::Lock(..))) =>
            {
                target.shown = Shown::Stuck;
                target.goals.clone_from(events);
            }
            Goal::Deadlock(events) | Goal::Stuck(events) => {
                target.kind = GoalKind::Blocked;
                target.goals.clone_from(events);
            }
            Goal::Order { chain, absent, .. } => {
                target.ahead.clone_from(absent);
                target.behind.clone_from(chain);
                target.pairs = conflicts(trace, chain);
                if let Some(called) = use_of_freed(trace, chain) {
                    target.shown = Shown::UseOfFreed(called);
                }
            }
            Goal::Sees { read, write, .. } => {
                target.behind = write.iter().copied().chain([*read]).collect();
                target.pairs = write.iter().map(|&write| [write, *read]).collect();
            }
            Goal::Reaches(events) => target.behind.clone_from(events),
            Goal::Leaves { var, write } => {
                let mut writes = trace.accesses(*var).iter().copied();
                let observed = writes.rfind(|&event| trace.event(event).op.is_write());
                let other = observed.filter(|observed| observed != write);
                target.behind = other.into_iter().chain([*write]).collect();
                target.pairs = other.map(|other| [other, *write]).into_iter().collect();
            }
        }
        target.ahead.extend(&target.goals);
        target
    }
}

/// The pairs of `chain` that access one variable from different threads, one of them writing.
fn conflicts(trace: &Trace, chain: &[EventId]) -> Vec<[EventId; 2]> {
    let conflict = |&[first, second]: &[EventId; 2]| {
        let [first, second] = [first, second].map(|event| trace.event(event));
        let is_same = first.op.var().is_some() && first.op.var() == second.op.var();
        first.thread != second.thread && is_same && (first.op.is_write() || second.op.is_write())
    };
    let pairs = chain.iter().enumerate();
    let pairs = pairs.flat_map(|(at, &first)| chain[at + 1..].iter().map(move |&it| [first, it]));
    pairs.filter(conflict).collect()
}

/// Whether replay can wait for `event`, and for what.
fn waypoint_of(trace: &Trace, origins: &Origins, event: EventId) -> Option<Origin> {
    match trace.event(event).op {
        Op::Lock(LockOp::Request | LockOp::RequestExclusive, _) => None,
        _ => origins.get(event),
    }
}

struct PlanBuilder<'a> {
    trace: &'a Trace,
    origins: &'a Origins,
    /// The entry of each thread in the table.
    entries: IndexVec<ThreadId, Option<u32>>,
    codes: FxHashMap<CodeId, u32>,
    modules: FxHashMap<ModuleId, u64>,
    plan: Plan,
}

impl<'a> PlanBuilder<'a> {
    fn new(trace: &'a Trace, origins: &'a Origins) -> Self {
        let (threads, entries) = threads(trace);
        let plan = Plan { threads, ..Plan::default() };
        let (codes, modules) = (FxHashMap::default(), FxHashMap::default());
        Self { trace, origins, entries, codes, modules, plan }
    }

    /// Makes the steps: what comes in a row in one thread is one, but ends where an access of a pair
    /// does, so that it is known when that happens.
    fn steps(&mut self, order: &[EventId], target: &Target) -> Result<(), PlanError> {
        let mut marked = match target.kind {
            GoalKind::Passed => target.pairs.concat(),
            GoalKind::Together | GoalKind::Blocked => Vec::new(),
        };
        marked.sort_unstable();
        let mut places: FxHashMap<EventId, u32> = FxHashMap::default();
        let mut last: Option<(ThreadId, Origin)> = None;
        let mut is_closed = true;
        for &event in order {
            let Some(origin) = waypoint_of(self.trace, self.origins, event) else { continue };
            let thread = self.trace.event(event).thread;
            let is_same = last == Some((thread, origin));
            let goes_on = last.is_some_and(|(before, _)| before == thread) && !is_closed;
            if !is_same && goes_on {
                self.plan.steps.pop();
                self.plan.step_events.pop();
            }
            if !is_same {
                let waypoint = self.waypoint(thread, origin)?;
                self.plan.steps.push(waypoint);
                self.plan.step_events.push(event);
                is_closed = false;
            }
            if let Some(step) = self.plan.step_events.last_mut() {
                *step = event;
            }
            if marked.binary_search(&event).is_ok() {
                places.insert(event, self.plan.steps.len() as u32 - 1);
                is_closed = true;
            }
            last = Some((thread, origin));
        }
        if let Some(&lost) = marked.iter().find(|event| !places.contains_key(event)) {
            return Err(PlanError::NoOrigin(lost));
        }
        if target.kind == GoalKind::Passed {
            let pair = |pair: &[EventId; 2]| {
                let [first, second] = pair.map(|event| places[&event]);
                Pair { first, second }
            };
            self.plan.pairs = target.pairs.iter().map(pair).collect();
        }
        Ok(())
    }

    fn goals(&mut self, target: &Target) -> Result<(), PlanError> {
        self.plan.goal_kind = target.kind;
        for &event in &target.goals {
            let origin = self.goal_origin(event).ok_or(PlanError::NoOrigin(event))?;
            let waypoint = self.waypoint(self.trace.event(event).thread, origin)?;
            self.plan.goals.push(waypoint);
            self.plan.goal_events.push(event);
        }
        if target.kind == GoalKind::Together {
            let place = |event: EventId| target.goals.iter().position(|&goal| goal == event);
            let pair = |&[first, second]: &[EventId; 2]| {
                let (first, second) = (place(first)? as u32, place(second)? as u32);
                Some(Pair { first, second })
            };
            self.plan.pairs = target.pairs.iter().filter_map(pair).collect();
        }
        Ok(())
    }

    /// The origin of `event`; of a request, that of the acquire which comes next. Where it never came
    /// it would have been logged right after the request, from the same place.
    fn goal_origin(&self, event: EventId) -> Option<Origin> {
        let Some(origin) = self.origins.get(event) else { return self.request_origin(event) };
        let Op::Lock(LockOp::Request | LockOp::RequestExclusive, lock) = self.trace.event(event).op
        else {
            return Some(origin);
        };
        let events = self.trace.thread_events(self.trace.event(event).thread);
        let next = events.get(self.trace.position(event) as usize + 1).copied();
        let acquire = next.filter(|&next| {
            let op = self.trace.event(next).op;
            op == Op::Lock(LockOp::Acquire, lock) || op == Op::Lock(LockOp::AcquireShared, lock)
        });
        match acquire {
            Some(acquire) => self.origins.get(acquire),
            None => Some(Origin { occurrence: origin.occurrence.saturating_add(1), ..origin }),
        }
    }

    /// The origin of the request just before `event`, if there is one.
    fn request_origin(&self, event: EventId) -> Option<Origin> {
        let events = self.trace.thread_events(self.trace.event(event).thread);
        let before = (self.trace.position(event) as usize).checked_sub(1)?;
        let request = *events.get(before)?;
        let is_request = matches!(self.trace.event(request).op, Op::Lock(op, _) if op.is_request());
        is_request.then(|| self.origins.get(request)).flatten()
    }

    fn waypoint(&mut self, thread: ThreadId, origin: Origin) -> Result<Waypoint, PlanError> {
        let Some(entry) = self.entries[thread] else {
            let name = self.trace.names().threads.name(thread);
            return Err(PlanError::UnknownThread(name.to_owned()));
        };
        let code = self.code(origin.code);
        Ok(Waypoint { thread: entry, code, occurrence: origin.occurrence.into() })
    }

    /// The number of `code` in the plan, which gets it if it does not have it yet.
    fn code(&mut self, code: CodeId) -> u32 {
        if let Some(&number) = self.codes.get(&code) {
            return number;
        }
        let reweave_trace::Code { module, offset } = self.origins.codes()[code];
        let plan = &mut self.plan;
        let module = *self.modules.entry(module).or_insert_with(|| {
            plan.modules.push(self.origins.modules()[module].path.clone());
            plan.modules.len() as u64 - 1
        });
        plan.codes.push(Code { module, offset });
        let number = plan.codes.len() as u32 - 1;
        self.codes.insert(code, number);
        number
    }
}

/// The thread that was there first and all that were created by a thread of the table, and the entry
/// of each thread that is there.
fn threads(trace: &Trace) -> (Vec<Thread>, IndexVec<ThreadId, Option<u32>>) {
    let mut entries = IndexVec::from_elem(None, trace.names().threads.len());
    let mut threads = vec![Thread::default()];
    let mut children = vec![0_u32];
    if let Some(&main) = trace.columns().threads.first() {
        entries[ThreadId::from_index(main as usize)] = Some(0);
    }
    // A fork comes after that of its own thread, so parents come first.
    for (_, event) in trace.events() {
        let Op::Thread(ThreadOp::Fork, child) = event.op else { continue };
        let Some(parent) = entries[event.thread] else { continue };
        let count = &mut children[parent as usize];
        threads.push(Thread { parent, child: *count });
        *count += 1;
        children.push(0);
        entries[child] = Some(threads.len() as u32 - 1);
    }
    (threads, entries)
}

// Events that the program logs as one are brought together.
//
// A wide access is an event for each of its cells, a wait on a condition releases its lock, a wake
// acquires it again: all events of a thread with the same origin happen at once. Where a schedule runs
// others between them, the later ones are moved up or the earlier ones down, past events with which
// they commute; each move gives a schedule that does the same. Where a schedule ends in between, the
// rest is done too, or none of it, if nobody would notice; a rest that may have to wait for others is
// not done. Else the schedule is refused.

/// Events in the order in which they are to happen.
#[derive(Debug)]
struct Order<'a> {
    trace: &'a Trace,
    origins: &'a Origins,
    events: Vec<EventId>,
    /// The last group of each thread so far.
    open: IndexVec<ThreadId, Option<Group>>,
}

/// Events of one thread in a row that have one origin; some between them may have none.
#[derive(Clone, Copy, Debug)]
struct Group {
    origin: Origin,
    first: usize,
    last: usize,
}

impl<'a> Order<'a> {
    /// The order of `reordering`.
    fn new(trace: &'a Trace, origins: &'a Origins, reordering: &Reordering) -> Self {
        let threads = trace.names().threads.entries().map(|(thread, _)| thread);
        let base = threads.flat_map(|thread| {
            let events = trace.thread_events(thread);
            let count = reordering.base.get(thread).copied().unwrap_or(0) as usize;
            &events[..events.len().min(count)]
        });
        let mut events: Vec<EventId> = base.copied().collect();
        events.sort_unstable();
        events.extend(&reordering.schedule);
        let open = IndexVec::from_elem(None, trace.names().threads.len());
        Self { trace, origins, events, open }
    }

    /// The same order, but what is logged as one comes in a row, and whole or not at all.
    fn grouped(mut self, target: &Target) -> Result<Vec<EventId>, PlanError> {
        // Where the events of one thread in a row began.
        let mut run_start = 0;
        for at in 0..self.events.len() {
            let event = self.events[at];
            let thread = self.thread_of(event);
            if at > 0 && self.thread_of(self.events[at - 1]) != thread {
                run_start = at;
            }
            let Some(origin) = self.origin(event) else { continue };
            match self.open[thread].filter(|group| group.origin == origin) {
                None => self.open[thread] = Some(Group { origin, first: at, last: at }),
                Some(group) if group.first >= run_start => {
                    self.open[thread] = Some(Group { last: at, ..group });
                }
                Some(group) => {
                    self.bring_together(group, at)?;
                    // Events have moved: whose run this place is in must be looked up.
                    run_start = self.run_start(at);
                }
            }
        }
        for thread in self.open.ids() {
            self.finish(thread, target)?;
        }
        Ok(self.events)
    }

    fn origin(&self, event: EventId) -> Option<Origin> {
        waypoint_of(self.trace, self.origins, event)
    }

    fn thread_of(&self, event: EventId) -> ThreadId {
        self.trace.event(event).thread
    }

    /// Where the events in a row of one thread that `at` is in begin.
    fn run_start(&self, at: usize) -> usize {
        let thread = self.thread_of(self.events[at]);
        let before = self.events[..at].iter().rev();
        at - before.take_while(|&&event| self.thread_of(event) == thread).count()
    }

    /// Brings the event at `at` together with the earlier ones of its group.
    fn bring_together(&mut self, group: Group, at: usize) -> Result<(), PlanError> {
        let event = self.events[at];
        let thread = self.thread_of(event);
        let up = group.last + 1..=at;
        let down = group.first..=at;
        let own_in = |events: &[EventId]| {
            events.iter().filter(|&&event| self.thread_of(event) == thread).count()
        };
        let (first, last) = if self.own_pass_others(thread, up.clone(), Direction::Up) {
            let count = own_in(&self.events[up.clone()]);
            self.part(thread, up, Direction::Up);
            (group.first, group.last + count)
        } else if self.own_pass_others(thread, down.clone(), Direction::Down) {
            let count = own_in(&self.events[down.clone()]);
            self.part(thread, down, Direction::Down);
            (at + 1 - count, at)
        } else {
            return Err(PlanError::Split(event));
        };
        self.open[thread] = Some(Group { first, last, ..group });
        Ok(())
    }

    /// Whether the events of `thread` in `range` may pass the others there that are in their way.
    fn own_pass_others(
        &self,
        thread: ThreadId,
        range: RangeInclusive<usize>,
        way: Direction,
    ) -> bool {
        let events = &self.events[range];
        let is_own = |event: EventId| self.thread_of(event) == thread;
        let own = events.iter().enumerate().filter(|&(_, &event)| is_own(event));
        let mut own = own.map(|(place, &event)| {
            let passed = match way {
                Direction::Up => &events[..place],
                Direction::Down => &events[place + 1..],
            };
            (event, passed)
        });
        own.all(|(event, passed)| {
            let mut others = passed.iter().filter(|&&other| !is_own(other));
            others.all(|&other| commute(self.trace, event, other))
        })
    }

    /// Puts the events of `thread` in `range` before all others there, or after them.
    fn part(&mut self, thread: ThreadId, range: RangeInclusive<usize>, way: Direction) {
        let start = *range.start();
        let events = &self.events[range.clone()];
        let mut places: Vec<usize> = (0..events.len()).collect();
        let is_own = |place: usize| self.trace.event(events[place]).thread == thread;
        places.sort_by_key(|&place| is_own(place) != (way == Direction::Up));
        let parted: Vec<EventId> = places.iter().map(|&place| events[place]).collect();
        let mut moved = vec![0; places.len()];
        for (now, &before) in places.iter().enumerate() {
            moved[before] = start + now;
        }
        self.events[range.clone()].copy_from_slice(&parted);
        for group in self.open.as_mut_vec().iter_mut().flatten() {
            for place in [&mut group.first, &mut group.last] {
                if range.contains(place) {
                    *place = moved[*place - start];
                }
            }
        }
    }

    /// Does the rest of the last group of `thread`, or none of it, if the order ends within it.
    fn finish(&mut self, thread: ThreadId, target: &Target) -> Result<(), PlanError> {
        let Some(mut group) = self.open[thread] else { return Ok(()) };
        let rest = self.rest(thread, group);
        let Some(&next) = rest.first() else { return Ok(()) };
        // What has no origin happens with what is around it.
        let is_own =
            |event: EventId| self.thread_of(event) == thread && self.origin(event).is_none();
        while self.events.get(group.last + 1).is_some_and(|&event| is_own(event)) {
            group.last += 1;
        }
        let others =
            || self.events[group.last + 1..].iter().filter(|&&it| self.thread_of(it) != thread);
        let passes = |event: EventId| others().all(|&other| commute(self.trace, event, other));
        let may_happen = rest.iter().all(|&event| {
            let waits = may_wait(self.trace.event(event).op);
            !target.ahead.contains(&event) && !waits && passes(event)
        });
        // Who began to wait on a condition waits until the plan has it go on.
        let begins = rest.iter().take_while(|&&event| !is_end_of_wait(self.trace.event(event).op));
        let is_wait = begins.clone().count() < rest.len();
        let begins_to_wait = is_wait
            && begins.into_iter().all(|&event| !target.ahead.contains(&event) && passes(event));
        let may_happen = may_happen || begins_to_wait;
        if may_happen {
            return Ok(());
        }
        let members = &self.events[group.first..=group.last];
        let may_not = members.iter().all(|event| !target.behind.contains(event) && passes(*event));
        let is_last = others().count() == self.events.len() - group.last - 1;
        if !(may_not && is_last) {
            return Err(PlanError::Split(next));
        }
        let length = group.last + 1 - group.first;
        self.events.drain(group.first..=group.last);
        self.open[thread] = None;
        for other in self.open.as_mut_vec().iter_mut().flatten() {
            if other.first > group.last {
                (other.first, other.last) = (other.first - length, other.last - length);
            }
        }
        Ok(())
    }

    /// The events of `thread` after those that happen, up to the last that is of `group`.
    fn rest(&self, thread: ThreadId, group: Group) -> Vec<EventId> {
        let last = self.events[group.last..].iter().rev();
        let last = last.copied().find(|&event| self.thread_of(event) == thread);
        let done = last.map_or(0, |last| self.trace.position(last) as usize + 1);
        let ahead = self.trace.thread_events(thread)[done..].iter().copied();
        let is_near = |event: &EventId| self.origin(*event).is_none_or(|it| it == group.origin);
        let mut rest: Vec<EventId> = ahead.take_while(is_near).collect();
        while rest.last().is_some_and(|&event| self.origin(event).is_none()) {
            rest.pop();
        }
        rest
    }
}

/// Which way events of one thread go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

// Which events of different threads may change places without anybody noticing.

/// What an operation has to do with, as far as other threads can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Footprint {
    /// Nothing that others touch.
    Own,
    /// A variable.
    Var { var: VarId, writes: bool },
    /// A lock.
    Lock(LockId),
    /// Who waits on a condition.
    Condition(ConditionId),
    /// What is not looked into.
    Anything,
}

const fn footprint(op: Op) -> Footprint {
    match op {
        Op::Access(AccessOp::Read | AccessOp::UnknownRead | AccessOp::AtomicRead(_), var) => {
            Footprint::Var { var, writes: false }
        }
        Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_), var) => {
            Footprint::Var { var, writes: true }
        }
        Op::Lock(
            LockOp::Acquire | LockOp::Release | LockOp::AcquireShared | LockOp::ReleaseShared,
            lock,
        ) => Footprint::Lock(lock),
        Op::Condition(
            ConditionOp::Wait | ConditionOp::Timeout | ConditionOp::Notify | ConditionOp::NotifyAll,
            condition,
        ) => Footprint::Condition(condition),
        // Whoever was woken no longer waits from the notify on, whenever it goes on.
        Op::Condition(ConditionOp::Wake, _) => Footprint::Own,
        // For all but the thread that is begun or awaited.
        Op::Thread(..) => Footprint::Own,
        Op::Fence(_) | Op::Lock(LockOp::Request | LockOp::RequestExclusive, _) | Op::Marker(_) => {
            Footprint::Own
        }
        Op::Barrier(..) | Op::Semaphore(..) | Op::Object(..) => Footprint::Anything,
    }
}

/// What `event` has to do with. A wait may begin with the release before it, which then is what
/// others can tell.
fn footprints(trace: &Trace, event: EventId) -> [Footprint; 2] {
    let op = trace.event(event).op;
    let of_wait =
        |wait: EventId| trace.signals().wait_interval(wait).map(|interval| interval.begin);
    match op {
        Op::Condition(ConditionOp::Wait, _) if of_wait(event) != Some(event) => [Footprint::Own; 2],
        Op::Lock(LockOp::Release | LockOp::ReleaseShared, _) => {
            let thread = trace.event(event).thread;
            let next = trace.thread_events(thread).get(trace.position(event) as usize + 1);
            let begun = next.filter(|&&next| of_wait(next) == Some(event));
            let begun = begun.map_or(Footprint::Own, |&wait| footprint(trace.event(wait).op));
            [footprint(op), begun]
        }
        _ => [footprint(op); 2],
    }
}

/// Whether `left` and `right`, of different threads, may change places. No if in doubt.
fn commute(trace: &Trace, left: EventId, right: EventId) -> bool {
    let begins_or_awaits = |event: EventId, other: EventId| matches!(trace.event(event).op, Op::Thread(_, thread) if thread == trace.event(other).thread);
    if begins_or_awaits(left, right) || begins_or_awaits(right, left) {
        return false;
    }
    let rights = footprints(trace, right);
    let mut lefts = footprints(trace, left).into_iter();
    lefts.all(|left| rights.into_iter().all(|right| are_apart(left, right)))
}

fn are_apart(left: Footprint, right: Footprint) -> bool {
    match (left, right) {
        (Footprint::Anything, _) | (_, Footprint::Anything) => false,
        (Footprint::Var { var, writes }, Footprint::Var { var: other, writes: too }) => {
            var != other || !(writes || too)
        }
        (Footprint::Lock(lock), Footprint::Lock(other)) => lock != other,
        (Footprint::Condition(condition), Footprint::Condition(other)) => condition != other,
        (
            Footprint::Own | Footprint::Var { .. } | Footprint::Lock(_) | Footprint::Condition(_),
            Footprint::Own | Footprint::Var { .. } | Footprint::Lock(_) | Footprint::Condition(_),
        ) => true,
    }
}

/// Whether a thread goes on with `op` that waited on a condition.
const fn is_end_of_wait(op: Op) -> bool {
    matches!(op, Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _))
}

/// Whether a thread that comes to `op` may have to wait there for others.
const fn may_wait(op: Op) -> bool {
    match op {
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, _)
        | Op::Thread(ThreadOp::Join, _)
        | Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _)
        | Op::Barrier(BarrierOp::Depart, _)
        | Op::Semaphore(SemaphoreOp::Take, _) => true,
        Op::Access(..)
        | Op::Fence(_)
        | Op::Lock(
            LockOp::Release | LockOp::ReleaseShared | LockOp::Request | LockOp::RequestExclusive,
            _,
        )
        | Op::Thread(ThreadOp::Fork, _)
        | Op::Condition(ConditionOp::Wait | ConditionOp::Notify | ConditionOp::NotifyAll, _)
        | Op::Barrier(BarrierOp::Arrive, _)
        | Op::Semaphore(SemaphoreOp::Post, _)
        | Op::Object(..)
        | Op::Marker(_) => false,
    }
}

#[cfg(test)]
mod tests;
