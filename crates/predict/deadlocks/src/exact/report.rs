//! From deadlocks to findings: each is put before the checker, then told in a sentence.
//!
//! Deadlocks at the same code locations are one finding unless all are asked for, shown by the
//! earliest that rests on no read of an unknown writer. Every schedule is put before the checker, so
//! how often it is asked is limited by the budget.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use reweave_analysis::{
    Detail, Evidence, Finding, Kind, Proof, Settings, Sink, Subject, Truncation,
};
use reweave_base::FxHashMap;
use reweave_trace::views::Mode;
use reweave_trace::{EventId, Goal, LockId, LockOp, Op, Trace};

use super::dependencies::excludes;
use super::{Deadlock, Follow, INFO};

/// What a look of the checker at one schedule costs, in steps of the budget.
const CHECK_COST: u64 = 10_000;

/// How many deadlocks at the same code locations are put before the checker.
const TRIES_MAX: usize = 8;

/// Makes findings of deadlocks.
pub(super) struct Report<'a, 't> {
    subject: &'a Subject<'t>,
    all: bool,
    sink: &'a mut dyn Sink,
    /// Deadlocks that are still to be told of, by their code locations.
    groups: Vec<Vec<Deadlock>>,
    by_locations: FxHashMap<Vec<&'t str>, usize>,
    /// How often the checker may be asked.
    replays_left: u64,
    /// How many findings were not made, as the checker could not be asked.
    unlisted: u64,
    /// How many schedules the checker refused, which is a fault of the engine.
    refused: u64,
    /// How many findings rest on reads whose writer was not observed.
    loose: u64,
}

impl Follow for Report<'_, '_> {
    fn found(&mut self, deadlock: Deadlock) -> ControlFlow<()> {
        if self.all {
            let count = deadlock.count;
            return self.tell(vec![deadlock], count);
        }
        let trace = self.subject.trace();
        let location = |&event: &EventId| trace.names().location(trace.event(event).site);
        let mut locations: Vec<&str> = deadlock.cycle.iter().map(location).collect();
        locations.sort_unstable();
        let groups = &mut self.groups;
        let at = *self.by_locations.entry(locations).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[at].push(deadlock);
        ControlFlow::Continue(())
    }

    fn progress(&mut self, done: usize, total: usize) -> ControlFlow<()> {
        self.sink.progress(done as u64, total as u64);
        match self.sink.is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl<'a, 't> Report<'a, 't> {
    pub(super) fn new(
        subject: &'a Subject<'t>,
        settings: &Settings,
        sink: &'a mut dyn Sink,
    ) -> Self {
        Self {
            subject,
            all: settings.all,
            sink,
            groups: Vec::new(),
            by_locations: FxHashMap::default(),
            replays_left: settings.budget / CHECK_COST,
            unlisted: 0,
            refused: 0,
            loose: 0,
        }
    }

    /// Tells of the groups, the earliest first; gives why not everything was told and tried.
    pub(super) fn finish(
        mut self,
        truncated: Option<Truncation>,
        counters: &mut Vec<(&'static str, u64)>,
    ) -> Option<Truncation> {
        let mut groups = std::mem::take(&mut self.groups);
        for group in &mut groups {
            group.sort_by_cached_key(Deadlock::order);
        }
        groups.sort_by_cached_key(|group| group.first().map(Deadlock::order));
        for group in groups {
            let count = group.iter().map(|deadlock| deadlock.count).sum();
            if self.tell(group, count).is_break() {
                break;
            }
        }
        let more = [("unlisted", self.unlisted), ("refused", self.refused), ("loose", self.loose)];
        counters.extend(more.into_iter().filter(|&(_, count)| count > 0));
        truncated.or((self.unlisted + self.refused > 0).then_some(Truncation::Budget))
    }

    /// Makes a finding of the first of `group` that can be proven without loose reads, or else of
    /// the first that can be proven.
    fn tell(&mut self, group: Vec<Deadlock>, count: u64) -> ControlFlow<()> {
        let mut shown: Option<Proof> = None;
        if self.replays_left == 0 {
            self.unlisted += 1;
            return ControlFlow::Continue(());
        }
        for deadlock in group.into_iter().take(TRIES_MAX) {
            if self.replays_left == 0 {
                break;
            }
            self.replays_left -= 1;
            let goal = Goal::Deadlock(deadlock.cycle);
            let Ok(proof) = self.subject.prove(deadlock.reordering, goal) else {
                self.refused += 1;
                continue;
            };
            if proof.unknown_reads_count() == 0 {
                shown = Some(proof);
                break;
            }
            shown = shown.or(Some(proof));
        }
        let Some(proof) = shown else { return ControlFlow::Continue(()) };
        self.loose += u64::from(proof.unknown_reads_count() > 0);
        let events = proof.then();
        self.sink.found(Finding {
            analysis: INFO.name,
            kind: Kind::Deadlock,
            message: message(self.subject.trace(), &events),
            events,
            count,
            evidence: Evidence::Schedule(proof),
            detail: Detail::None,
        })
    }
}

/// Says who holds what and waits for what, as in "T1 holds `a` and waits for `b` at f.c:3, T2 …".
fn message(trace: &Trace, cycle: &[EventId]) -> String {
    let names = trace.names();
    let mut message = String::new();
    for (at, &event) in cycle.iter().enumerate() {
        let before = cycle[(at + cycle.len() - 1) % cycle.len()];
        let blocked = trace.event(event);
        let thread = names.threads.name(blocked.thread);
        let separator = if at == 0 { "" } else { ", " };
        let (held, mode) = held_for(trace, event, before);
        let holds = if mode == Mode::Exclusive { "holds" } else { "shares" };
        let wanted = wanted(blocked.op).map_or("", |(lock, _)| names.locks.name(lock));
        let waits = match blocked.op {
            Op::Lock(LockOp::Acquire, _) if wanted == held => "waits to hold it alone".to_owned(),
            Op::Lock(LockOp::AcquireShared, _) => format!("waits to share `{wanted}`"),
            _ => format!("waits for `{wanted}`"),
        };
        let place = place(names.location(blocked.site).trim());
        write!(message, "{separator}{thread} {holds} `{held}` and {waits}{place}")
            .expect("text takes all that is written");
    }
    message
}

/// How a sentence goes on to say where.
fn place(location: &str) -> String {
    match location {
        "" => String::new(),
        // A bare number would read as part of the sentence.
        _ if location.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!(" at location {location}")
        }
        _ => format!(" at {location}"),
    }
}

/// The lock that `op` asks for, and in which mode; a request is for either.
fn wanted(op: Op) -> Option<(LockId, Mode)> {
    match op {
        Op::Lock(LockOp::Acquire, lock) => Some((lock, Mode::Exclusive)),
        Op::Lock(LockOp::AcquireShared | LockOp::Request, lock) => Some((lock, Mode::Shared)),
        _ => None,
    }
}

/// The lock by which the thread of `event` keeps `blocked` waiting, and how it holds it.
fn held_for(trace: &Trace, event: EventId, blocked: EventId) -> (&str, Mode) {
    let Some((lock, mode)) = wanted(trace.event(blocked).op) else { return ("", Mode::Exclusive) };
    let held = trace.sections().held(trace.event(event).thread, event);
    let mut blocking = held.filter(|held| held.lock == lock && excludes(held.mode, mode));
    let mode = blocking.next().map_or(Mode::Exclusive, |section| section.mode);
    (trace.names().locks.name(lock), mode)
}
