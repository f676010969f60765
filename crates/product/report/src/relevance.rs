//! Which steps of a schedule matter to a reader?
//!
//! A schedule runs everything that its end needs, most of which explains nothing. What does is, the most telling
//! first: the events at fault; what wakes a thread too early, with the last write before it that the thread had looked
//! at; the locks that their threads hold there; what they wait for, or see; critical sections that come in another
//! order than observed, since that is what the recorded run hid; values that one of these threads wrote and another
//! read; where the threads were started; and what each did last. Where room is left, the program's own names come
//! before those of a library's insides.
//!
//! Of each thread only the last steps are looked at, so the cost does not grow with the trace. A step that is not
//! chosen is still part of the schedule, and the checker has replayed it.

use reweave_analysis::Proof;
use reweave_base::{FxHashMap, FxHashSet, Id};
use reweave_trace::views::CriticalSection;
use reweave_trace::{ConditionOp, EventId, LockOp, Op, SiteId, ThreadId, Trace};

use crate::schedule::{sees, steps_of};
use crate::slice::causes;

/// How many of the last steps of a thread are looked at.
const LOOK_BACK: usize = 64;

/// How far back in a thread the write is looked for that another had looked at.
const WRITE_BACK: usize = 4096;

/// What names of a library's own data have in them, as the standard libraries of C++ and recorders spell them.
const INTERNAL_NAMES: [&str; 4] = ["._M_", ".__", "guard_variable", "assumed("];

/// How many values that threads handed to each other are worth a row each, for each reader.
const VALUES_MAX: usize = 2;

/// The steps of `proof` that matter: whatever tells why it ends as it does, up to `most`; then what gives context,
/// up to `usual`.
pub fn steps_that_matter(trace: &Trace, proof: &Proof, usual: usize, most: usize) -> Vec<EventId> {
    let schedule = Scheduled::new(trace, proof);
    let mut chosen = Chosen { schedule: &schedule, events: Vec::new() };
    let code = |&event: &EventId| {
        let event = trace.event(event);
        (event.thread, event.site, event.op)
    };
    let named = proof.goal().named();
    chosen.extend(named.iter().copied(), most);
    for &event in &named {
        chosen.extend(schedule.too_early(event), most);
    }
    for &event in &named {
        chosen.extend(schedule.held(event), most);
    }
    for &event in &named {
        chosen.extend(schedule.awaited(event), most);
        chosen.extend(sees(trace, proof.reordering(), event).and_then(|seen| seen.write()), most);
    }
    for runs in &schedule.recent {
        chosen.extend(schedule.overtaking(runs), most);
    }
    // One round shows what a loop does.
    let mut shown: FxHashSet<(ThreadId, SiteId, Op)> = chosen.events.iter().map(code).collect();
    for is_internal in [false, true] {
        let is_wanted = |event: &EventId| is_on_internals(trace, *event) == is_internal;
        for runs in &schedule.recent {
            chosen.extend(schedule.handed_values(runs, is_wanted), usual);
        }
        for &thread in &schedule.threads {
            chosen.extend(trace.lifetime(thread).fork, usual);
        }
        shown.extend(chosen.events.iter().map(code));
        // What each did last, in turns, so that each gets its share.
        for back in 1..=LOOK_BACK {
            for runs in &schedule.recent {
                let step = runs.len().checked_sub(back).map(|at| runs[at]);
                let step = step.filter(is_wanted);
                chosen.extend(step.filter(|step| shown.insert(code(step))), usual);
            }
        }
    }
    chosen.events
}

/// Whether `event` is on a part of a library's own data, or on a name that stands for no variable.
fn is_on_internals(trace: &Trace, event: EventId) -> bool {
    let op = trace.names().spell(trace.event(event).op).to_string();
    INTERNAL_NAMES.iter().any(|part| op.contains(part))
}

/// The steps chosen so far.
struct Chosen<'s, 't> {
    schedule: &'s Scheduled<'t>,
    events: Vec<EventId>,
}

impl Chosen<'_, '_> {
    /// Adds those of `events` that are run, as long as there are fewer than `max`. A request is shown by the acquire
    /// that follows it.
    fn extend(&mut self, events: impl IntoIterator<Item = EventId>, max: usize) {
        for event in events {
            let is_new = self.schedule.place(event).is_some() && !self.events.contains(&event);
            if is_new && self.events.len() < max && !is_answered(self.schedule, event) {
                self.events.push(event);
            }
        }
    }
}

/// Whether `event` is a request, and the acquire that it asks for is the next step of its thread or is next at the end.
fn is_answered(schedule: &Scheduled<'_>, event: EventId) -> bool {
    let next = answer(schedule.trace, event);
    next.is_some_and(|next| schedule.place(next).is_some() || schedule.next.contains(&next))
}

/// The acquire just after `event`, if that requests the lock.
pub fn answer(trace: &Trace, event: EventId) -> Option<EventId> {
    let Op::Lock(op, lock) = trace.event(event).op else { return None };
    let own = trace.thread_events(trace.event(event).thread);
    let &next = own.get(trace.position(event) as usize + 1).filter(|_| op.is_request())?;
    match trace.event(next).op {
        Op::Lock(LockOp::Acquire | LockOp::AcquireShared, acquired) if acquired == lock => {
            Some(next)
        }
        _ => None,
    }
}

/// What a proof runs, and when.
struct Scheduled<'t> {
    trace: &'t Trace,
    proof: &'t Proof,
    next: Vec<EventId>,
    places: FxHashMap<EventId, usize>,
    /// The threads of the events at fault, and the last steps of each up to the last of these.
    threads: Vec<ThreadId>,
    recent: Vec<&'t [EventId]>,
}

impl<'t> Scheduled<'t> {
    fn new(trace: &'t Trace, proof: &'t Proof) -> Self {
        let reordering = proof.reordering();
        let schedule = reordering.schedule.iter().enumerate();
        let named = proof.goal().named();
        let mut threads: Vec<ThreadId> =
            named.iter().map(|&event| trace.event(event).thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let recent = |&thread: &ThreadId| {
            let own = named.iter().filter(|&&event| trace.event(event).thread == thread);
            let last = own.map(|&event| trace.position(event) as usize + 1).max();
            let run = steps_of(trace, reordering, thread);
            let until = run.len().min(last.unwrap_or(0));
            &run[until.saturating_sub(LOOK_BACK)..until]
        };
        let recent = threads.iter().map(recent).collect();
        let places = schedule.map(|(at, &event)| (event, at)).collect();
        Self { trace, proof, next: proof.goal().next(), places, threads, recent }
    }

    /// When `event` comes, to compare with others; none if it does not.
    fn place(&self, event: EventId) -> Option<(bool, usize)> {
        if self.trace.is_in_prefix(self.proof.reordering(), event) {
            return Some((false, event.index()));
        }
        self.places.get(&event).map(|&at| (true, at))
    }

    /// Where the thread of `event` acquired the locks that it holds then.
    fn held(&self, event: EventId) -> impl Iterator<Item = EventId> {
        let sections = self.trace.sections().held(self.trace.event(event).thread, event);
        sections.map(|section| section.acquire)
    }

    /// For an event that waits on a condition variable, when that began and who was to wake it.
    fn awaited(&self, event: EventId) -> Vec<EventId> {
        if !matches!(self.trace.event(event).op, Op::Condition(ConditionOp::Wake, _)) {
            return Vec::new();
        }
        let interval = self.trace.signals().wait_interval(event);
        interval.map_or_else(Vec::new, |it| {
            [Some(it.begin), Some(it.wait), it.notify].into_iter().flatten().collect()
        })
    }

    /// For an event that waits for a notify or a post, those that come before it waits, each with the last write
    /// before it in its thread that the waiting thread had read: what it looked at was about to change.
    fn too_early(&self, event: EventId) -> Vec<EventId> {
        let waiting = self.trace.event(event);
        let signals = self.trace.signals();
        let start = signals.wait_interval(event).map_or(event, |interval| interval.begin);
        let looks =
            &self.trace.thread_events(waiting.thread)[..self.trace.position(start) as usize];
        let looks = &looks[looks.len().saturating_sub(LOOK_BACK)..];
        let is_looked_at = |write: &EventId| {
            let var = self.trace.event(*write).op.var();
            let is_read = |look: &EventId| {
                let op = self.trace.event(*look).op;
                op.is_read() && op.var() == var
            };
            self.trace.event(*write).op.is_write() && looks.iter().any(is_read)
        };
        let mut found = Vec::new();
        for cause in causes(self.trace, event) {
            let thread = self.trace.event(cause).thread;
            let before = &self.trace.thread_events(thread)[..self.trace.position(cause) as usize];
            found.push(cause);
            found.extend(before.iter().rev().take(WRITE_BACK).copied().find(is_looked_at));
        }
        found
    }

    /// The critical sections in `runs` that come before one that the same lock had before them when observed, and
    /// those others if they come at all.
    fn overtaking(&self, runs: &[EventId]) -> Vec<EventId> {
        let sections = self.trace.sections();
        let mut found = Vec::new();
        for &acquire in runs.iter().rev() {
            let Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) =
                self.trace.event(acquire).op
            else {
                continue;
            };
            let on_lock = sections.on_lock(lock);
            let at = on_lock.partition_point(|&id| sections.get(id).acquire < acquire);
            let Some(&before) = at.checked_sub(1).and_then(|at| on_lock.get(at)) else { continue };
            let before = sections.get(before);
            let is_at_fault = self.threads.contains(&before.thread);
            let is_overtaken = self
                .place(before.acquire)
                .is_none_or(|place| self.place(acquire).is_some_and(|own| own < place));
            if is_at_fault && is_overtaken && before.thread != self.trace.event(acquire).thread {
                let ends = |section: &CriticalSection| [Some(section.acquire), section.release];
                let own = on_lock.get(at).map(|&id| ends(sections.get(id)));
                found.extend(own.into_iter().flatten().chain(ends(before)).flatten());
            }
        }
        found
    }

    /// The last values that another thread wrote and a step of `runs` that `is_wanted` read: who wrote, who read.
    fn handed_values(
        &self,
        runs: &[EventId],
        is_wanted: impl Fn(&EventId) -> bool,
    ) -> Vec<EventId> {
        let handed = |&read: &EventId| {
            let write = sees(self.trace, self.proof.reordering(), read)?.write()?;
            let [writer, reader] = [write, read].map(|event| self.trace.event(event).thread);
            (writer != reader).then_some([write, read])
        };
        runs.iter()
            .rev()
            .filter(|read| is_wanted(read))
            .filter_map(handed)
            .take(VALUES_MAX)
            .flatten()
            .collect()
    }
}
