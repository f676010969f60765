//! A machine on which programs of several threads run, one step at a time.
//!
//! A thread is an `async` function. Each shared operation is a request that it awaits: the machine
//! picks a thread whose request can happen, does it, records the event, and lets the thread compute
//! until its next request. So reads give what was last written, a lock held by another blocks, and
//! who waits is woken by a notify; the recorded events are well formed. A run ends when nobody can go
//! on. A program may not release a lock that it does not hold, nor name two threads alike.
//!
//! The location of an event is the line of the program's source that asked for it. The same program
//! and seed give the same run. Costs a constant a step, and a look at every thread when the running
//! one stops.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use reweave_base::{Id, IndexVec, Rng};
use reweave_trace::{
    AccessOp, ConditionId, ConditionOp, LocalId, LockId, LockOp, Marker, Op, SiteId, ThreadId,
    ThreadOp, Trace, TraceBuilder, VarId,
};

type Body = Pin<Box<dyn Future<Output = ()>>>;

/// What a thread asks for.
#[derive(Clone, Copy)]
enum Request {
    Read(VarId),
    Write(VarId, i64),
    Lock(LockId),
    Unlock(LockId),
    Wait(ConditionId, LockId),
    Wake(ConditionId, LockId),
    /// As `Wake`, but nobody need have woken it.
    WakeOrTimeout(ConditionId, LockId),
    Notify(ConditionId),
    NotifyAll(ConditionId),
    Fork(ThreadId),
    Join(ThreadId),
    Local,
    Branch,
}

/// Where a thread stands.
#[derive(Default)]
struct Standing {
    /// None while it computes, and when it is done.
    body: Option<Body>,
    request: Option<(Request, SiteId)>,
    /// What the last request gave.
    answer: i64,
    is_forked: bool,
    is_done: bool,
    is_woken: bool,
}

/// All that threads share.
struct State {
    builder: TraceBuilder,
    rng: Rng,
    memory: IndexVec<VarId, i64>,
    holders: IndexVec<LockId, Option<ThreadId>>,
    /// Who waits on each condition and was not woken, longest first.
    waiting: IndexVec<ConditionId, VecDeque<ThreadId>>,
    threads: IndexVec<ThreadId, Standing>,
    local: LocalId,
}

/// One thread's way to the machine, through which it asks for everything.
#[derive(Clone)]
pub(crate) struct Thread {
    id: ThreadId,
    state: Rc<RefCell<State>>,
}

/// Runs `main` as the first thread, and the threads that it forks, to the end. A thread that can go
/// on does so for `slice` locks on average; when it asks for the next, it may be anyone's turn. What
/// it does between two locks is short beside a slice of time, so there it is left alone.
pub(crate) fn run<F: Future<Output = ()> + 'static>(
    seed: u64,
    slice: usize,
    main: impl FnOnce(Thread) -> F,
) -> Trace {
    let mut builder = TraceBuilder::new();
    let local = builder.local("local");
    let mut state = State {
        builder,
        rng: Rng::new(seed),
        memory: IndexVec::new(),
        holders: IndexVec::new(),
        waiting: IndexVec::new(),
        threads: IndexVec::new(),
        local,
    };
    let id = state.thread("main");
    state.threads[id].is_forked = true;
    let state = Rc::new(RefCell::new(state));
    let main = Thread { id, state: Rc::clone(&state) }.body(main);
    state.borrow_mut().threads[id].body = Some(main);
    compute(&state, id);
    let mut running = id;
    loop {
        let next = state.borrow_mut().turn(running, slice);
        let Some(next) = next else { break };
        running = next;
        compute(&state, running);
    }
    // Threads that are left over hold the state and are held by it.
    let bodies: Vec<Option<Body>> =
        state.borrow_mut().threads.iter_mut().map(|thread| thread.body.take()).collect();
    drop(bodies);
    let builder = std::mem::take(&mut state.borrow_mut().builder);
    builder.finish().expect("a step is only taken when it can happen")
}

/// Lets `thread`, whose request was answered, compute until its next one.
fn compute(state: &Rc<RefCell<State>>, thread: ThreadId) {
    let body = state.borrow_mut().threads[thread].body.take();
    let Some(mut body) = body else { return };
    // Nothing is borrowed now, so the thread may look at the state.
    let poll = body.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let standing = &mut state.borrow_mut().threads[thread];
    match poll {
        Poll::Ready(()) => standing.is_done = true,
        Poll::Pending => standing.body = Some(body),
    }
}

impl State {
    fn thread(&mut self, name: &str) -> ThreadId {
        let id = self.builder.thread(name);
        self.threads.get_or_default(id);
        id
    }

    /// Picks a thread that can go on and answers its request; none if there is none.
    fn turn(&mut self, running: ThreadId, slice: usize) -> Option<ThreadId> {
        let count = self.threads.len();
        let thread = if self.can_go_on(running) && self.goes_on(running, slice) {
            running
        } else {
            let first = self.rng.below(count);
            let mut turns = (first..count).chain(0..first).map(ThreadId::from_index);
            turns.find(|&thread| self.can_go_on(thread))?
        };
        let (request, site) = self.threads[thread].request.take()?;
        self.answer(thread, request, site);
        Some(thread)
    }

    /// Whether `thread`, which runs, is left to run.
    fn goes_on(&mut self, thread: ThreadId, slice: usize) -> bool {
        let request = self.threads[thread].request.map(|(request, _)| request);
        !matches!(request, Some(Request::Lock(_))) || self.rng.below(slice) > 0
    }

    /// Whether what `thread` asks for can happen now.
    fn can_go_on(&self, thread: ThreadId) -> bool {
        let standing = &self.threads[thread];
        match standing.request {
            None => false,
            Some(_) if !standing.is_forked => false,
            Some((Request::Lock(lock) | Request::WakeOrTimeout(_, lock), _)) => {
                self.holders[lock].is_none()
            }
            Some((Request::Wake(_, lock), _)) => standing.is_woken && self.holders[lock].is_none(),
            Some((Request::Join(child), _)) => self.threads[child].is_done,
            Some(_) => true,
        }
    }

    fn answer(&mut self, thread: ThreadId, request: Request, site: SiteId) {
        match request {
            Request::Read(var) => {
                self.builder.push(thread, Op::Access(AccessOp::Read, var), site);
                self.builder.value(self.memory[var]);
                self.threads[thread].answer = self.memory[var];
            }
            Request::Write(var, value) => {
                self.builder.push(thread, Op::Access(AccessOp::Write, var), site);
                self.builder.value(value);
                self.memory[var] = value;
            }
            Request::Lock(lock) => {
                self.builder.push(thread, Op::Lock(LockOp::Acquire, lock), site);
                self.holders[lock] = Some(thread);
            }
            Request::Unlock(lock) => self.unlock(thread, lock, site),
            Request::Wait(condition, lock) => {
                self.unlock(thread, lock, site);
                self.builder.push(thread, Op::Condition(ConditionOp::Wait, condition), site);
                self.threads[thread].is_woken = false;
                self.waiting[condition].push_back(thread);
            }
            Request::Wake(condition, lock) | Request::WakeOrTimeout(condition, lock) => {
                let is_woken = self.threads[thread].is_woken;
                self.waiting[condition].retain(|&other| other != thread);
                let end = if is_woken { ConditionOp::Wake } else { ConditionOp::Timeout };
                self.builder.push(thread, Op::Condition(end, condition), site);
                self.builder.push(thread, Op::Lock(LockOp::Acquire, lock), site);
                self.holders[lock] = Some(thread);
            }
            Request::Notify(condition) => {
                self.builder.push(thread, Op::Condition(ConditionOp::Notify, condition), site);
                if let Some(woken) = self.waiting[condition].pop_front() {
                    self.threads[woken].is_woken = true;
                }
            }
            Request::NotifyAll(condition) => {
                self.builder.push(thread, Op::Condition(ConditionOp::NotifyAll, condition), site);
                while let Some(woken) = self.waiting[condition].pop_front() {
                    self.threads[woken].is_woken = true;
                }
            }
            Request::Fork(child) => {
                self.builder.push(thread, Op::Thread(ThreadOp::Fork, child), site);
                self.threads[child].is_forked = true;
            }
            Request::Join(child) => {
                self.builder.push(thread, Op::Thread(ThreadOp::Join, child), site);
            }
            Request::Local => self.builder.push(thread, Op::Marker(Marker::Let(self.local)), site),
            Request::Branch => self.builder.push(thread, Op::Marker(Marker::Branch), site),
        }
    }

    fn unlock(&mut self, thread: ThreadId, lock: LockId, site: SiteId) {
        assert_eq!(self.holders[lock], Some(thread), "a program releases what it holds");
        self.builder.push(thread, Op::Lock(LockOp::Release, lock), site);
        self.holders[lock] = None;
    }
}

impl Thread {
    /// A variable called `name` that holds `value`.
    pub(crate) fn var(&self, name: &str, value: i64) -> VarId {
        let mut state = self.state.borrow_mut();
        let var = state.builder.var(name);
        *state.memory.get_or_default(var) = value;
        var
    }

    /// A lock called `name`.
    pub(crate) fn mutex(&self, name: &str) -> LockId {
        let mut state = self.state.borrow_mut();
        let lock = state.builder.lock(name);
        state.holders.get_or_default(lock);
        lock
    }

    /// A condition called `name`.
    pub(crate) fn condition(&self, name: &str) -> ConditionId {
        let mut state = self.state.borrow_mut();
        let condition = state.builder.condition(name);
        state.waiting.get_or_default(condition);
        condition
    }

    /// A number below `bound`, which is part of the program's input.
    pub(crate) fn draw(&self, bound: usize) -> usize {
        self.state.borrow_mut().rng.below(bound)
    }

    /// What `var` holds.
    #[track_caller]
    pub(crate) fn read(&self, var: VarId) -> impl Future<Output = i64> + use<> {
        self.ask(Request::Read(var))
    }

    /// Gives `var` a value.
    #[track_caller]
    pub(crate) fn write(&self, var: VarId, value: i64) -> impl Future<Output = ()> + use<> {
        self.act(Request::Write(var, value))
    }

    /// Reads `var` and writes it with `amount` added; gives what it read.
    #[track_caller]
    pub(crate) fn add(&self, var: VarId, amount: i64) -> impl Future<Output = i64> + use<> {
        let (thread, site) = (self.clone(), self.site());
        async move {
            let value = thread.ask_at(Request::Read(var), site).await;
            thread.ask_at(Request::Write(var, value.wrapping_add(amount)), site).await;
            value
        }
    }

    /// Acquires `lock`, which it must not hold.
    #[track_caller]
    pub(crate) fn lock(&self, lock: LockId) -> impl Future<Output = ()> + use<> {
        self.act(Request::Lock(lock))
    }

    /// Releases `lock`.
    #[track_caller]
    pub(crate) fn unlock(&self, lock: LockId) -> impl Future<Output = ()> + use<> {
        self.act(Request::Unlock(lock))
    }

    /// Waits on `condition`, and meanwhile releases `lock`.
    #[track_caller]
    pub(crate) fn wait(
        &self,
        condition: ConditionId,
        lock: LockId,
    ) -> impl Future<Output = ()> + use<> {
        self.wait_for(condition, lock, Request::Wake(condition, lock))
    }

    /// Waits on `condition`, and ends that as `end` says.
    #[track_caller]
    fn wait_for(
        &self,
        condition: ConditionId,
        lock: LockId,
        end: Request,
    ) -> impl Future<Output = ()> + use<> {
        let (thread, site) = (self.clone(), self.site());
        async move {
            thread.ask_at(Request::Wait(condition, lock), site).await;
            thread.ask_at(end, site).await;
        }
    }

    /// As [`Self::wait`], but nobody need wake it.
    #[track_caller]
    pub(crate) fn nap(
        &self,
        condition: ConditionId,
        lock: LockId,
    ) -> impl Future<Output = ()> + use<> {
        self.wait_for(condition, lock, Request::WakeOrTimeout(condition, lock))
    }

    /// Wakes who waits on `condition` longest, if anyone does.
    #[track_caller]
    pub(crate) fn notify(&self, condition: ConditionId) -> impl Future<Output = ()> + use<> {
        self.act(Request::Notify(condition))
    }

    /// Wakes all who wait on `condition`.
    #[track_caller]
    pub(crate) fn notify_all(&self, condition: ConditionId) -> impl Future<Output = ()> + use<> {
        self.act(Request::NotifyAll(condition))
    }

    /// Starts a thread called `name` that does `body`.
    #[track_caller]
    pub(crate) fn fork<F: Future<Output = ()> + 'static, B: FnOnce(Self) -> F>(
        &self,
        name: &str,
        body: B,
    ) -> impl Future<Output = ThreadId> + use<F, B> {
        let (thread, site) = (self.clone(), self.site());
        let child = self.state.borrow_mut().thread(name);
        let body = Self { id: child, state: Rc::clone(&self.state) }.body(body);
        self.state.borrow_mut().threads[child].body = Some(body);
        compute(&self.state, child);
        async move {
            thread.ask_at(Request::Fork(child), site).await;
            child
        }
    }

    /// Waits until `child` is done.
    #[track_caller]
    pub(crate) fn join(&self, child: ThreadId) -> impl Future<Output = ()> + use<> {
        self.act(Request::Join(child))
    }

    /// Branches on `condition`.
    #[track_caller]
    pub(crate) fn test(&self, condition: bool) -> impl Future<Output = bool> + use<> {
        let asked = self.act(Request::Branch);
        async move {
            asked.await;
            condition
        }
    }

    /// Computes on locals for `steps` steps.
    #[track_caller]
    pub(crate) fn work(&self, steps: usize) -> impl Future<Output = ()> + use<> {
        let (thread, site) = (self.clone(), self.site());
        async move {
            for _ in 0..steps {
                thread.ask_at(Request::Local, site).await;
            }
        }
    }

    fn body<F: Future<Output = ()> + 'static>(self, body: impl FnOnce(Self) -> F) -> Body {
        Box::pin(body(self))
    }

    /// The line of the program that the caller's caller is on.
    #[track_caller]
    fn site(&self) -> SiteId {
        let place = Location::caller();
        let file = place.file().rsplit(['/', '\\']).next().unwrap_or_default();
        self.state.borrow_mut().builder.site(&format!("{file}:{}", place.line()))
    }

    /// Asks for what gives no value.
    #[track_caller]
    fn act(&self, request: Request) -> impl Future<Output = ()> + use<> {
        let asked = self.ask(request);
        async move {
            asked.await;
        }
    }

    #[track_caller]
    fn ask(&self, request: Request) -> impl Future<Output = i64> + use<> {
        self.ask_at(request, self.site())
    }

    fn ask_at(&self, request: Request, site: SiteId) -> impl Future<Output = i64> + use<> {
        let Self { id, state } = self.clone();
        let mut is_asked = false;
        poll_fn(move |_| {
            let standing = &mut state.borrow_mut().threads[id];
            if is_asked {
                return Poll::Ready(standing.answer);
            }
            is_asked = true;
            standing.request = Some((request, site));
            Poll::Pending
        })
    }
}
