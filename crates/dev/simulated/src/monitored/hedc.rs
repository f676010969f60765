//! A crawler of archives: searches are queued, and a pool of workers asks a site for each. In the
//! end every worker adds what it has found to the whole, without a lock.

use std::rc::Rc;

use reweave_trace::{ConditionId, LockId, Trace, VarId};

use super::together;
use crate::machine::{Thread, run};

const SLICE: usize = 2;
const THREADS: usize = 8;
const SITES: usize = 12;
const TASKS: usize = 40;

/// What a task consists of: what is asked for, and what comes back.
const ASKED: [&str; 4] = ["site", "from", "to", "kind"];
const ANSWERED: [&str; 4] = ["state", "size", "links", "date"];

struct Task {
    asked: Vec<VarId>,
    answered: Vec<VarId>,
}

struct Crawler {
    settings: Vec<VarId>,
    sites: Vec<VarId>,
    tasks: Vec<Task>,
    lock: LockId,
    queued: ConditionId,
    /// Which tasks were queued and taken, and whether more will come.
    tail: VarId,
    head: VarId,
    is_closed: VarId,
    /// How many workers wait and work.
    idle: VarId,
    active: VarId,
    /// What was found in all.
    found: Vec<VarId>,
}

pub(crate) fn trace(seed: u64) -> Trace {
    run(seed, SLICE, main)
}

async fn main(me: Thread) {
    let named = |of: &str, names: &[&str]| -> Vec<VarId> {
        names.iter().map(|name| me.var(&format!("{of}.{name}"), 5)).collect()
    };
    let task = |number| {
        let of = format!("task{number}");
        Task { asked: named(&of, &ASKED), answered: named(&of, &ANSWERED) }
    };
    let crawler = Rc::new(Crawler {
        settings: named("settings", &["timeout", "depth", "agent", "proxy"]),
        sites: (0..SITES).map(|site| me.var(&format!("site{site}"), 1)).collect(),
        tasks: (0..TASKS).map(task).collect(),
        lock: me.mutex("queue"),
        queued: me.condition("queue.queued"),
        tail: me.var("queue.tail", 0),
        head: me.var("queue.head", 0),
        is_closed: me.var("queue.closed", 0),
        idle: me.var("pool.idle", 0),
        active: me.var("pool.active", 0),
        found: named("found", &["pages", "bytes", "failures", "newest"]),
    });
    together(&me, THREADS, |me, number| part(me, Rc::clone(&crawler), number)).await;
    for &found in &crawler.found {
        me.read(found).await;
    }
}

/// The first thread queues what the others work on.
async fn part(me: Thread, crawler: Rc<Crawler>, number: usize) {
    if number == 0 {
        queue(&me, &crawler).await;
    } else {
        work(&me, &crawler).await;
    }
}

async fn queue(me: &Thread, crawler: &Crawler) {
    for task in &crawler.tasks {
        for &asked in &task.asked {
            me.write(asked, me.draw(SITES) as i64).await;
        }
        me.lock(crawler.lock).await;
        me.add(crawler.tail, 1).await;
        me.notify(crawler.queued).await;
        me.unlock(crawler.lock).await;
    }
    me.lock(crawler.lock).await;
    me.write(crawler.is_closed, 1).await;
    me.notify_all(crawler.queued).await;
    me.unlock(crawler.lock).await;
}

async fn work(me: &Thread, crawler: &Crawler) {
    for &setting in &crawler.settings {
        me.read(setting).await;
    }
    let mut found = 0;
    while let Some(task) = take(me, crawler).await {
        found += crawl(me, crawler, &crawler.tasks[task]).await;
        me.lock(crawler.lock).await;
        me.add(crawler.active, -1).await;
        me.unlock(crawler.lock).await;
    }
    // The fault: two workers may read the same number, and then what one has found is lost.
    for &sum in &crawler.found {
        me.add(sum, found).await;
    }
}

/// The next task, or none if there will be no more.
async fn take(me: &Thread, crawler: &Crawler) -> Option<usize> {
    me.lock(crawler.lock).await;
    loop {
        let head = me.read(crawler.head).await;
        if me.test(head < me.read(crawler.tail).await).await {
            me.write(crawler.head, head + 1).await;
            me.add(crawler.active, 1).await;
            me.unlock(crawler.lock).await;
            return Some(head as usize);
        }
        if me.test(me.read(crawler.is_closed).await == 1).await {
            me.unlock(crawler.lock).await;
            return None;
        }
        me.add(crawler.idle, 1).await;
        me.wait(crawler.queued, crawler.lock).await;
        me.add(crawler.idle, -1).await;
    }
}

async fn crawl(me: &Thread, crawler: &Crawler, task: &Task) -> i64 {
    let mut sum = 0;
    for &asked in &task.asked {
        sum += me.read(asked).await;
    }
    for &site in &crawler.sites {
        sum += me.read(site).await;
    }
    for &answered in &task.answered {
        me.write(answered, sum).await;
    }
    sum
}
