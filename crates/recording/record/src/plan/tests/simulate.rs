//! A program that does what its trace says, replayed by a plan: threads are sequences of what they
//! log, and a step runs one of them. What it gives is judged by the checker of reorderings.

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_runtime::plan::{GoalKind, Plan as View, Waypoint};
use reweave_trace::{
    After, EventId, Goal, LockId, LockOp, Op, Origin, Reordering, ThreadId, ThreadOp, Trace,
    certify,
};

use crate::plan::Plan;

/// What a thread logs as one.
#[derive(Debug)]
struct Logged {
    origin: Option<Origin>,
    events: Vec<EventId>,
}

/// A replay under way.
struct Simulation<'a> {
    trace: &'a Trace,
    view: View<'a>,
    threads: IndexVec<ThreadId, Vec<Logged>>,
    next: IndexVec<ThreadId, usize>,
    /// Which thread has which entry of the plan.
    named: FxHashMap<u32, ThreadId>,
    children: FxHashMap<u32, u32>,
    ran: Vec<EventId>,
}

/// Replays `plan`, which was made of `schedule`, and says what is wrong with what comes of it.
pub fn replay(trace: &Trace, plan: &Plan, schedule: &[EventId]) -> Result<(), String> {
    let words = plan.words();
    let view = View::new(&words).map_err(|invalid| format!("{invalid:?}"))?;
    let mut simulation = Simulation::new(trace, view);
    for &step in view.steps {
        simulation.step(step)?;
    }
    simulation.goal()?;
    // What is done with the rest of what a thread logs as one may see something else; the thread
    // goes no further.
    let free = simulation.ran.iter().copied().filter(|event| !schedule.contains(event)).collect();
    let run = Reordering::explicit(simulation.ran);
    let goal = Goal::Order { chain: Vec::new(), absent: Vec::new(), free, after: After::RunsOn };
    certify(trace, &run, &goal).map(|_| ()).map_err(|refusal| format!("{refusal:?}"))
}

impl<'a> Simulation<'a> {
    fn new(trace: &'a Trace, view: View<'a>) -> Self {
        let ids = || trace.names().threads.entries().map(|(id, _)| id);
        let main = ThreadId::from_index(trace.columns().threads[0] as usize);
        Self {
            trace,
            view,
            threads: ids().map(|thread| logged(trace, thread)).collect(),
            next: ids().map(|_| 0).collect(),
            named: FxHashMap::from_iter([(0, main)]),
            children: FxHashMap::default(),
            ran: Vec::new(),
        }
    }

    fn thread(&self, waypoint: Waypoint) -> Result<ThreadId, String> {
        let known = self.named.get(&waypoint.thread).copied();
        known.ok_or_else(|| format!("no thread {} yet", waypoint.thread))
    }

    fn next(&self, thread: ThreadId) -> Option<&Logged> {
        self.threads[thread].get(self.next[thread])
    }

    /// Whether what `logged` says is what `waypoint` waits for.
    fn is_at(&self, logged: &Logged, waypoint: Waypoint) -> bool {
        let Some(origin) = logged.origin else { return false };
        let origins = self.trace.origins().expect("a plan needs origins");
        let code = origins.codes()[origin.code];
        let wanted = self.view.codes[waypoint.code as usize];
        let path = self.view.path(self.view.modules[wanted.module as usize]);
        let module = &origins.modules()[code.module];
        path == module.path.as_bytes()
            && wanted.offset == code.offset
            && waypoint.occurrence == u64::from(origin.occurrence)
    }

    /// Runs the thread of `waypoint` until that has happened.
    fn step(&mut self, waypoint: Waypoint) -> Result<(), String> {
        let thread = self.thread(waypoint)?;
        loop {
            let Some(logged) = self.next(thread) else {
                return Err(format!("thread {} ended before its step", waypoint.thread));
            };
            let is_done = self.is_at(logged, waypoint);
            self.run(thread, waypoint.thread);
            if is_done {
                return Ok(());
            }
        }
    }

    fn run(&mut self, thread: ThreadId, entry: u32) {
        let events = self.threads[thread][self.next[thread]].events.clone();
        for &event in &events {
            match self.trace.event(event).op {
                Op::Thread(ThreadOp::Fork, child) => {
                    let count = self.children.entry(entry).or_default();
                    if let Some(entry) = self.view.entry_of(entry, *count) {
                        self.named.insert(entry, child);
                    }
                    *count += 1;
                }
                // Who waits for the end of a thread lets it go on with what nobody waits for.
                Op::Thread(ThreadOp::Join, child) => self.pass_requests(child),
                _ => {}
            }
        }
        self.ran.extend(events);
        self.next[thread] += 1;
    }

    fn pass_requests(&mut self, thread: ThreadId) {
        while let Some(logged) = self.next(thread)
            && let [request] = logged.events[..]
            && let Op::Lock(LockOp::Request | LockOp::RequestExclusive, _) =
                self.trace.event(request).op
        {
            self.ran.push(request);
            self.next[thread] += 1;
        }
    }

    fn goal(&mut self) -> Result<(), String> {
        let mut standing = Vec::new();
        for &waypoint in self.view.goals {
            let thread = self.thread(waypoint)?;
            self.pass_requests(thread);
            let next = self.next(thread).ok_or("a thread of the goal ended")?;
            if !self.is_at(next, waypoint) {
                return Err(format!("thread {} is not before its goal", waypoint.thread));
            }
            standing.push(thread);
        }
        let ops = |thread: ThreadId| {
            let events = self.next(thread).map_or(&[][..], |logged| &logged.events);
            events.iter().map(|&event| self.trace.event(event).op).collect::<Vec<_>>()
        };
        match self.view.goal_kind {
            GoalKind::Together => {
                for pair in self.view.pairs {
                    let [one, other] =
                        [pair.first, pair.second].map(|at| ops(standing[at as usize]));
                    let overlap =
                        one.iter().any(|one| other.iter().any(|it| one.conflicts_with(*it)));
                    if !overlap {
                        return Err("the accesses of the goal do not overlap".to_owned());
                    }
                }
            }
            GoalKind::Blocked => {
                for (at, &thread) in standing.iter().enumerate() {
                    let holder = standing[(at + 1) % standing.len()];
                    let waits = ops(thread).iter().any(|&op| match op {
                        Op::Lock(LockOp::Acquire, lock) => self.holds(holder, lock),
                        Op::Lock(LockOp::AcquireShared, lock) => self.holds_alone(holder, lock),
                        _ => false,
                    });
                    if !waits {
                        return Err("a thread of the goal does not wait".to_owned());
                    }
                }
            }
            GoalKind::Passed => {}
        }
        Ok(())
    }

    fn depth(&self, thread: ThreadId, taken: &[Op], given: &[Op]) -> i64 {
        let own = self.ran.iter().map(|&event| self.trace.event(event));
        let own = own.filter(|event| event.thread == thread).map(|event| event.op);
        own.map(|op| i64::from(taken.contains(&op)) - i64::from(given.contains(&op))).sum()
    }

    fn holds_alone(&self, thread: ThreadId, lock: LockId) -> bool {
        self.depth(thread, &[Op::Lock(LockOp::Acquire, lock)], &[Op::Lock(LockOp::Release, lock)])
            > 0
    }

    fn holds(&self, thread: ThreadId, lock: LockId) -> bool {
        let shared = [Op::Lock(LockOp::AcquireShared, lock), Op::Lock(LockOp::ReleaseShared, lock)];
        self.holds_alone(thread, lock) || self.depth(thread, &shared[..1], &shared[1..]) > 0
    }
}

/// What `thread` logs, in its order.
fn logged(trace: &Trace, thread: ThreadId) -> Vec<Logged> {
    let mut all: Vec<Logged> = Vec::new();
    for &event in trace.thread_events(thread) {
        let origin = trace.origins().and_then(|origins| origins.get(event));
        match all.last_mut() {
            Some(last) if origin.is_some() && last.origin == origin => last.events.push(event),
            _ => all.push(Logged { origin, events: vec![event] }),
        }
    }
    all
}
