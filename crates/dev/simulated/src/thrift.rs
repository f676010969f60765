//! A server of remote calls: a manager hands tasks to workers through a queue, with a monitor for
//! the queue, one for each worker and one for each task.

use std::rc::Rc;

use reweave_trace::{ConditionId, LockId, Trace, VarId};

use crate::machine::{Thread, run};

const SLICE: usize = 100;
const FIELDS: usize = 9;
const SETTINGS: usize = 14;

/// How large a server is, and how much it has to do.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) workers: usize,
    pub(crate) tasks: usize,
    /// How often each worker looks after itself.
    pub(crate) chores: usize,
    /// How often the manager's timer ticks.
    pub(crate) ticks: usize,
    /// How often workers together nap.
    pub(crate) naps: usize,
}

struct Worker {
    lock: LockId,
    started: ConditionId,
    state: VarId,
    fields: Vec<VarId>,
}

struct Task {
    lock: LockId,
    state: VarId,
    argument: VarId,
    result: VarId,
}

struct Server {
    lock: LockId,
    ready: ConditionId,
    tick: ConditionId,
    pushed: VarId,
    popped: VarId,
    is_closing: VarId,
    active: VarId,
    latch: LockId,
    finished: ConditionId,
    open: VarId,
    log: LockId,
    level: VarId,
    factory: LockId,
    statistics: LockId,
    settings: Vec<VarId>,
    workers: Vec<Worker>,
    tasks: Vec<Task>,
}

pub(crate) fn trace(seed: u64, size: Size) -> Trace {
    run(seed, SLICE, move |me| main(me, size))
}

fn worker(me: &Thread, number: usize) -> Worker {
    let field = |field| me.var(&format!("worker{number}.field{field}"), 1);
    Worker {
        lock: me.mutex(&format!("worker{number}")),
        started: me.condition(&format!("worker{number}.started")),
        state: me.var(&format!("worker{number}.state"), 0),
        fields: (0..FIELDS).map(field).collect(),
    }
}

fn task(me: &Thread, number: usize) -> Task {
    Task {
        lock: me.mutex(&format!("task{number}")),
        state: me.var(&format!("task{number}.state"), 0),
        argument: me.var(&format!("task{number}.argument"), number as i64),
        result: me.var(&format!("task{number}.result"), 0),
    }
}

async fn main(me: Thread, size: Size) {
    let server = Rc::new(Server {
        lock: me.mutex("manager"),
        ready: me.condition("manager.ready"),
        tick: me.condition("manager.tick"),
        pushed: me.var("manager.pushed", 0),
        popped: me.var("manager.popped", 0),
        is_closing: me.var("manager.is_closing", 0),
        active: me.var("manager.active", 0),
        latch: me.mutex("latch"),
        finished: me.condition("latch.finished"),
        open: me.var("latch.open", size.tasks as i64),
        log: me.mutex("log"),
        level: me.var("log.level", 2),
        factory: me.mutex("factory"),
        statistics: me.mutex("statistics"),
        settings: (0..SETTINGS)
            .map(|number| me.var(&format!("server.setting{number}"), 3))
            .collect(),
        workers: (0..size.workers).map(|number| worker(&me, number)).collect(),
        tasks: (0..size.tasks).map(|number| task(&me, number)).collect(),
    });
    for lock in [server.factory, server.statistics] {
        me.lock(lock).await;
        for _ in 0..3 {
            for &setting in &server.settings {
                me.read(setting).await;
            }
        }
        me.unlock(lock).await;
    }
    let mut workers = Vec::new();
    for (number, worker) in server.workers.iter().enumerate() {
        me.lock(worker.lock).await;
        let body = Rc::clone(&server);
        let name = format!("worker{number}");
        workers.push(me.fork(&name, move |me| worker_body(me, body, size, number)).await);
        while me.test(me.read(worker.state).await == 0).await {
            me.wait(worker.started, worker.lock).await;
        }
        me.unlock(worker.lock).await;
    }
    for number in 0..size.ticks {
        tick(&me, &server, number).await;
    }
    for task in &server.tasks {
        push(&me, &server, task).await;
    }
    me.lock(server.latch).await;
    while me.test(me.read(server.open).await > 0).await {
        me.wait(server.finished, server.latch).await;
    }
    me.unlock(server.latch).await;
    me.lock(server.lock).await;
    me.write(server.is_closing, 1).await;
    me.notify_all(server.ready).await;
    me.unlock(server.lock).await;
    for worker in workers {
        me.join(worker).await;
    }
}

async fn tick(me: &Thread, server: &Server, number: usize) {
    me.lock(server.log).await;
    me.test(number as i64 > me.read(server.level).await).await;
    me.unlock(server.log).await;
    me.lock(server.lock).await;
    me.read(server.level).await;
    me.notify(server.tick).await;
    me.unlock(server.lock).await;
    me.work(15).await;
}

async fn push(me: &Thread, server: &Server, task: &Task) {
    me.work(20).await;
    me.lock(server.lock).await;
    let pushed = me.add(server.pushed, 1).await + 1;
    if me.test(pushed > me.read(server.popped).await).await {
        me.notify(server.ready).await;
    }
    me.unlock(server.lock).await;
    me.test(pushed > me.read(server.popped).await).await;
    me.read(task.argument).await;
}

async fn worker_body(me: Thread, server: Rc<Server>, size: Size, number: usize) {
    let own = &server.workers[number];
    me.lock(server.lock).await;
    me.add(server.active, 1).await;
    me.unlock(server.lock).await;
    me.lock(own.lock).await;
    me.write(own.state, 1).await;
    me.notify(own.started).await;
    me.unlock(own.lock).await;
    for _ in 0..size.chores {
        chore(&me, own).await;
    }
    for _ in 0..size.naps / size.workers {
        me.lock(own.lock).await;
        me.nap(own.started, own.lock).await;
        me.unlock(own.lock).await;
        me.work(11).await;
    }
    while let Some(task) = pop(&me, &server).await {
        perform(&me, &server, task).await;
    }
    me.lock(server.lock).await;
    me.test(me.read(server.active).await == 1).await;
    me.add(server.active, -1).await;
    me.read(server.active).await;
    me.unlock(server.lock).await;
    me.lock(own.lock).await;
    me.write(own.state, 2).await;
    me.notify_all(own.started).await;
    me.unlock(own.lock).await;
}

/// Looks at what never changes.
async fn chore(me: &Thread, own: &Worker) {
    me.lock(own.lock).await;
    for _ in 0..2 {
        for &field in &own.fields {
            me.read(field).await;
            me.work(1).await;
        }
    }
    me.unlock(own.lock).await;
    me.work(10).await;
}

/// The next task; none when the server closes.
async fn pop<'server>(me: &Thread, server: &'server Server) -> Option<&'server Task> {
    me.lock(server.lock).await;
    let next = loop {
        let popped = me.read(server.popped).await;
        if me.test(popped < me.read(server.pushed).await).await {
            break Some(popped);
        }
        if me.test(me.read(server.is_closing).await > 0).await {
            break None;
        }
        me.wait(server.ready, server.lock).await;
    };
    if let Some(next) = next {
        me.write(server.popped, next + 1).await;
        if me.test(next + 1 < me.read(server.pushed).await).await {
            me.notify(server.ready).await;
        }
    }
    me.unlock(server.lock).await;
    server.tasks.get(usize::try_from(next?).ok()?)
}

async fn perform(me: &Thread, server: &Server, task: &Task) {
    me.lock(task.lock).await;
    me.write(task.state, 1).await;
    me.unlock(task.lock).await;
    for _ in 0..40 {
        me.read(task.argument).await;
        me.work(1).await;
    }
    me.lock(task.lock).await;
    me.write(task.result, 1).await;
    me.write(task.state, 2).await;
    me.unlock(task.lock).await;
    me.lock(server.latch).await;
    if me.test(me.add(server.open, -1).await == 1).await {
        me.notify(server.finished).await;
    }
    me.unlock(server.latch).await;
}
