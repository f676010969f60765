//! Which events of a cut keep the observed order, and which are open to reordering?
//!
//! A cut is split in two. The *fixed prefix* runs first, in observed order: for each thread some of
//! its first events, such that this is correct. The *reordering window* is the rest: its events get
//! indexes of their own, in observed order, and clocks over the threads that have events there. The
//! sections, writes, reads and waits that have a part in it are listed so that the rules of
//! saturation find their partners.
//!
//! Costs the events of the window times the threads in it; and for each event that has to move a
//! search in each thread, for each read that moves along a look at each thread that writes its
//! variable.

use std::ops::Range;

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_order::mhb::CausalPast;
use reweave_trace::views::{CriticalSection, Mode, SectionId};
use reweave_trace::{ConditionId, ConditionOp, EventId, LockId, Op, ThreadId, VarId, WaitInterval};

use crate::engine::{Cut, Problem, leave};
use crate::query::View;
use crate::sync_preserving;

/// Where an event is: its index in the window, [`BEFORE`] it, or [`NEVER`], not in the cut.
pub(crate) type WindowIndex = u32;

/// In the cut, before the window.
pub(crate) const BEFORE: WindowIndex = u32::MAX - 1;

/// Not in the cut, or no event at all.
pub(crate) const NEVER: WindowIndex = u32::MAX;

/// The events whose order is open.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// How many events of each thread come before it.
    from: Cut,
    /// The threads that have events in it.
    pub(crate) threads: Vec<ThreadId>,
    /// The events of each thread, in order.
    pub(crate) by_thread: Vec<Vec<WindowIndex>>,
    pub(crate) events: Vec<EventId>,
    /// Whose each event is, as an index of `threads`.
    pub(crate) thread: Vec<u32>,
    /// How many events its thread has before each event, in the whole trace.
    pub(crate) position: Vec<u32>,
    /// What each event must come after, as far as that is known from the start: for each thread
    /// how many of its events. A row for each event, itself included.
    pub(crate) rows: Vec<u32>,
    /// The next event of the same thread.
    pub(crate) next: Vec<WindowIndex>,
    /// Direct must-happen-before edges between threads: the ends of those from each event.
    edges: Vec<WindowIndex>,
    edge_starts: Vec<u32>,
    /// Each thread as an index of `threads`.
    local: IndexVec<ThreadId, u32>,
    pub(crate) sections: Vec<Section>,
    /// The sections of each lock, by thread.
    pub(crate) locks: Vec<Vec<(u32, Range<usize>)>>,
    /// Which section starts, and which ends, at each event.
    pub(crate) starts: Vec<u32>,
    pub(crate) ends: Vec<u32>,
    pub(crate) vars: Vec<Var>,
    /// The variable of each access.
    pub(crate) var_of: Vec<u32>,
    pub(crate) is_write: Vec<bool>,
    /// What each read must see; [`NEVER`] for those that may see anything, and for all else.
    pub(crate) reads_from: Vec<WindowIndex>,
    /// For each write the last read of it in each thread, as a list in `readers`.
    reader_lists: Vec<u32>,
    readers: Vec<Vec<WindowIndex>>,
    /// Who waits, by condition.
    pub(crate) waits: Vec<Wait>,
    /// The waits that begin, and those that end, at an event.
    pub(crate) begins_at: FxHashMap<WindowIndex, Vec<usize>>,
    pub(crate) leaves_at: FxHashMap<WindowIndex, Vec<usize>>,
    /// The condition of each notify that comes while nobody waits but those that it wakes.
    pub(crate) notify_at: FxHashMap<WindowIndex, ConditionId>,
    notifies: FxHashMap<ConditionId, Vec<WindowIndex>>,
}

/// A section that has a part in the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    pub(crate) of: CriticalSection,
    pub(crate) lock: usize,
    /// Whose it is, as an index of the window's threads.
    pub(crate) thread: u32,
    pub(crate) acquire: WindowIndex,
    /// How many events its thread has before the acquire.
    pub(crate) acquired: u32,
    pub(crate) release: WindowIndex,
    /// Whether it is open in every reordering that meets the query.
    pub(crate) stays_open: bool,
    /// Of it and the earlier ones of its thread on the lock, which ends last: among all of them,
    /// and among those that hold the lock alone. A thread may hold a lock in both modes at once.
    last_to_end: [u32; 2],
}

impl Section {
    /// Of it and the earlier ones of its thread on the lock, the one that ends last of those that
    /// exclude `other`, a section of another thread.
    pub(crate) fn last_that_excludes<'w>(
        &self,
        other: &Self,
        window: &'w Window,
    ) -> Option<&'w Self> {
        let is_shared = usize::from(other.of.mode == Mode::Shared);
        window.sections.get(self.last_to_end[is_shared] as usize)
    }

    /// Whether it and `other` are of different threads and exclude each other.
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        self.thread != other.thread
            && (self.of.mode == Mode::Exclusive || other.of.mode == Mode::Exclusive)
    }
}

/// A variable that is accessed in the window.
#[derive(Debug, Default)]
pub(crate) struct Var {
    /// The writes of each thread.
    pub(crate) writes: Vec<(u32, Vec<WindowIndex>)>,
    /// What was written before the window; none if nothing was.
    pub(crate) prefix_write: Option<EventId>,
    /// Whose that write is, as an index of the window's threads, and its position there.
    pub(crate) prefix_write_at: Option<(u32, u32)>,
    /// The last read in each thread that must see that.
    pub(crate) prefix_readers: Vec<WindowIndex>,
}

/// A thread in a condition's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) of: WaitInterval,
    pub(crate) condition: ConditionId,
    pub(crate) begin: WindowIndex,
    pub(crate) leave: WindowIndex,
    /// Whether it never leaves in any reordering that meets the query.
    pub(crate) stays_open: bool,
}

impl Wait {
    /// Whether `notify` must not find it waiting.
    pub(crate) fn must_not_wake(&self, on: ConditionId, notify: EventId) -> bool {
        self.condition == on && self.of.notify != Some(notify) && !self.of.is_spared_by(notify)
    }
}

impl Window {
    /// The window of `cut` after `from`.
    pub(crate) fn build(problem: &Problem<'_, '_>, cut: &Cut, from: &Cut) -> Self {
        let local = IndexVec::from_elem(NEVER, cut.len());
        let mut window = Self { from: from.clone(), local, ..Self::default() };
        window.gather(problem, cut);
        window.fill_rows(problem);
        window.find_edges(problem);
        window.find_sections(problem, cut);
        window.find_accesses(problem);
        window.find_waits(problem, cut);
        window
    }

    /// How many numbers the rows of the window of `cut` after `from` have.
    pub(crate) fn size(cut: &Cut, from: &Cut) -> u64 {
        let counts = cut.entries().map(|(thread, &count)| u64::from(count - from[thread]));
        let counts = counts.filter(|&count| count > 0);
        let (events, threads) =
            counts.fold((0, 0), |(events, threads), count: u64| (events + count, threads + 1));
        events * threads
    }

    fn gather(&mut self, problem: &Problem<'_, '_>, cut: &Cut) {
        let trace = problem.engine.trace();
        for thread in cut.ids() {
            let (from, to) = (self.from[thread] as usize, cut[thread] as usize);
            let own = &trace.thread_events(thread)[from..to];
            if !own.is_empty() {
                self.local[thread] = self.threads.len() as u32;
                self.threads.push(thread);
                self.by_thread.push(Vec::with_capacity(own.len()));
                self.events.extend_from_slice(own);
            }
        }
        self.events.sort_unstable();
        self.next = vec![NEVER; self.events.len()];
        for (place, &event) in self.events.iter().enumerate() {
            let thread = self.local[trace.event(event).thread];
            self.thread.push(thread);
            self.position.push(trace.position(event));
            let line = &mut self.by_thread[thread as usize];
            if let Some(&last) = line.last() {
                self.next[last as usize] = place as WindowIndex;
            }
            line.push(place as WindowIndex);
        }
    }

    fn fill_rows(&mut self, problem: &Problem<'_, '_>) {
        let count = self.threads.len();
        self.rows = vec![0; self.events.len() * count];
        for (line, &thread) in self.by_thread.iter().zip(&self.threads) {
            let mut along = problem.mhb.along(thread);
            let mut known: Option<CausalPast<'_>> = None;
            let mut above: Option<usize> = None;
            for &at in line {
                let at = at as usize;
                let event = self.events[at];
                let past = match problem.query.view(event) {
                    Some(_) => problem.mhb.before(event),
                    None => along.at(self.position[at]),
                };
                let start = at * count;
                // Most events have the past of the one above them, but for themselves.
                match above.filter(|_| known.is_some_and(|known| known.is_same_row(&past))) {
                    Some(above) => self.rows.copy_within(above..above + count, start),
                    None => {
                        for (slot, &other) in self.rows[start..].iter_mut().zip(&self.threads) {
                            *slot = past.get(other);
                        }
                    }
                }
                self.rows[start + self.thread[at] as usize] = self.position[at] + 1;
                (known, above) = (Some(past), Some(start));
            }
        }
    }

    /// Where `event`, which the cut holds, is.
    pub(crate) fn place(&self, problem: &Problem<'_, '_>, event: EventId) -> WindowIndex {
        let trace = problem.engine.trace();
        let thread = trace.event(event).thread;
        let Some(offset) = trace.position(event).checked_sub(self.from[thread]) else {
            return BEFORE;
        };
        let line = self.by_thread.get(self.local[thread] as usize);
        line.and_then(|line| line.get(offset as usize)).copied().unwrap_or(NEVER)
    }

    /// The last read in each thread that must see the write at `at`.
    pub(crate) fn readers(&self, at: WindowIndex) -> &[WindowIndex] {
        self.readers.get(self.reader_lists[at as usize] as usize).map_or(&[], Vec::as_slice)
    }

    /// The events of other threads that `at` directly must happen before.
    pub(crate) fn edges_from(&self, at: WindowIndex) -> &[WindowIndex] {
        let at = at as usize;
        &self.edges[self.edge_starts[at] as usize..self.edge_starts[at + 1] as usize]
    }

    fn find_edges(&mut self, problem: &Problem<'_, '_>) {
        let trace = problem.engine.trace();
        let mut edges = Vec::new();
        for (to, &event) in self.events.iter().enumerate() {
            let mut add = |from: EventId| {
                let place = self.place(problem, from);
                if place < BEFORE && self.thread[place as usize] != self.thread[to] {
                    edges.push((place, to as WindowIndex));
                }
            };
            problem.mhb.for_each_signal(event, &mut add);
            if self.position[to] == 0 {
                trace.lifetime(trace.event(event).thread).fork.into_iter().for_each(&mut add);
            }
            if problem.query.view(event).is_none() {
                trace.writer(event).into_iter().for_each(&mut add);
            }
        }
        edges.sort_unstable();
        self.edge_starts = Vec::with_capacity(self.events.len() + 1);
        let mut end = 0;
        for at in 0..=self.events.len() as WindowIndex {
            end += edges[end..].iter().take_while(|&&(from, _)| from < at).count();
            self.edge_starts.push(end as u32);
        }
        self.edges = edges.into_iter().map(|(_, to)| to).collect();
    }

    fn find_sections(&mut self, problem: &Problem<'_, '_>, cut: &Cut) {
        let trace = problem.engine.trace();
        let sections = trace.sections();
        let mut found: Vec<(LockId, u32, CriticalSection)> = Vec::new();
        for (local, &thread) in self.threads.iter().enumerate() {
            let first = self.events[self.by_thread[local][0] as usize];
            let own = sections.of_thread(thread);
            let is_before =
                |&id: &SectionId| trace.position(sections.get(id).acquire) < self.from[thread];
            let own = &own[own.partition_point(is_before)..];
            let inside = own.iter().map(|&id| sections.get(id));
            let inside = inside.take_while(|section| trace.position(section.acquire) < cut[thread]);
            let held = sections.held(thread, first);
            let all = held.chain(inside).map(|section| (section.lock, local as u32, *section));
            found.extend(all);
        }
        self.starts = vec![NEVER; self.events.len()];
        self.ends = vec![NEVER; self.events.len()];
        found.sort_unstable_by_key(|&(lock, thread, section)| (lock, thread, section.acquire));
        let mut latest = None;
        for (lock, thread, of) in found {
            let at = self.sections.len();
            if latest.replace(lock) != Some(lock) {
                self.locks.push(Vec::new());
            }
            let by_thread = self.locks.last_mut().expect("a lock was just added");
            match by_thread.last_mut().filter(|(owner, _)| *owner == thread) {
                Some((_, range)) => range.end = at + 1,
                None => by_thread.push((thread, at..at + 1)),
            }
            let ended = of.release.filter(|&release| problem.engine.is_in(cut, release));
            let section = Section {
                of,
                lock: self.locks.len() - 1,
                thread,
                acquire: self.place(problem, of.acquire),
                acquired: trace.position(of.acquire),
                release: ended.map_or(NEVER, |release| self.place(problem, release)),
                stays_open: of.release.is_none_or(|release| problem.is_unreachable(release)),
                last_to_end: [NEVER; 2],
            };
            let by_thread = &self.locks[section.lock];
            let is_first = by_thread.last().is_none_or(|(_, range)| range.start == at);
            let before = if is_first { [NEVER; 2] } else { self.sections[at - 1].last_to_end };
            let section =
                Section { last_to_end: self.last_to_end(before, at, &section), ..section };
            if section.acquire < BEFORE {
                self.starts[section.acquire as usize] = at as u32;
            }
            if section.release < BEFORE {
                self.ends[section.release as usize] = at as u32;
            }
            self.sections.push(section);
        }
    }

    /// What [`Section::last_to_end`] is for `section`, at index `at`, given what it is for the one
    /// before it.
    fn last_to_end(&self, before: [u32; 2], at: usize, section: &Section) -> [u32; 2] {
        let ends_after = |index: u32| {
            let other = self.sections.get(index as usize);
            other.is_none_or(|other| match (other.release, section.release) {
                (NEVER, _) => false,
                (_, NEVER) => true,
                _ => other.of.release < section.of.release,
            })
        };
        let is_alone = section.of.mode == Mode::Exclusive;
        let own = |index: u32, counts: bool| {
            if counts && ends_after(index) { at as u32 } else { index }
        };
        [own(before[0], true), own(before[1], is_alone)]
    }

    fn find_accesses(&mut self, problem: &Problem<'_, '_>) {
        let trace = problem.engine.trace();
        let mut known: FxHashMap<VarId, u32> = FxHashMap::default();
        self.reads_from = vec![NEVER; self.events.len()];
        self.var_of = vec![NEVER; self.events.len()];
        self.is_write = vec![false; self.events.len()];
        self.reader_lists = vec![NEVER; self.events.len()];
        for at in 0..self.events.len() {
            let event = self.events[at];
            let op = trace.event(event).op;
            let Some(var) = op.var() else { continue };
            let index = *known.entry(var).or_insert_with(|| {
                self.vars.push(Var::default());
                self.vars.len() as u32 - 1
            });
            self.var_of[at] = index;
            let thread = self.thread[at];
            if op.is_read() {
                self.add_read(problem, at as WindowIndex, index);
            }
            if op.is_write() {
                self.is_write[at] = true;
                let writes = &mut self.vars[index as usize].writes;
                match writes.iter_mut().find(|(owner, _)| *owner == thread) {
                    Some((_, own)) => own.push(at as WindowIndex),
                    None => writes.push((thread, vec![at as WindowIndex])),
                }
            }
        }
    }

    fn add_read(&mut self, problem: &Problem<'_, '_>, at: WindowIndex, var: u32) {
        let event = self.events[at as usize];
        let Some(seen) = problem.must_see(event) else { return };
        let source = seen.map_or(BEFORE, |write| self.place(problem, write));
        self.reads_from[at as usize] = source;
        let threads = &self.thread;
        let readers = match source {
            BEFORE => {
                let trace = problem.engine.trace();
                let place = |write: EventId| {
                    let thread = self.local[trace.event(write).thread];
                    (thread != NEVER).then(|| (thread, trace.position(write)))
                };
                let var = &mut self.vars[var as usize];
                (var.prefix_write, var.prefix_write_at) = (seen, seen.and_then(place));
                &mut var.prefix_readers
            }
            _ => {
                let list = &mut self.reader_lists[source as usize];
                if *list == NEVER {
                    *list = self.readers.len() as u32;
                    self.readers.push(Vec::new());
                }
                &mut self.readers[*list as usize]
            }
        };
        // The last read of each thread speaks for its earlier ones.
        let same = |&other: &WindowIndex| threads[other as usize] == threads[at as usize];
        readers.retain(|other| !same(other));
        readers.push(at);
    }

    fn find_waits(&mut self, problem: &Problem<'_, '_>, cut: &Cut) {
        let engine = problem.engine;
        let trace = engine.trace();
        for (place, &event) in self.events.iter().enumerate() {
            let on = match trace.event(event).op {
                Op::Condition(ConditionOp::NotifyAll, on) => on,
                Op::Condition(ConditionOp::Notify, on)
                    if trace.signals().woken(event).is_empty() =>
                {
                    on
                }
                _ => continue,
            };
            self.notifies.entry(on).or_default().push(place as WindowIndex);
            self.notify_at.insert(place as WindowIndex, on);
        }
        if self.notify_at.is_empty() {
            return;
        }
        for wait in trace.signals().wait_intervals() {
            let Op::Condition(ConditionOp::Wait, condition) = trace.event(wait.wait).op else {
                continue;
            };
            if !engine.is_in(cut, wait.begin) {
                continue;
            }
            let left = leave(wait).filter(|&leave| engine.is_in(cut, leave));
            let begin = self.place(problem, wait.begin);
            let left = left.map_or(NEVER, |leave| self.place(problem, leave));
            // Who left before the window is in nobody's way.
            if left == BEFORE {
                continue;
            }
            let stays_open = leave(wait).is_none_or(|leave| problem.is_unreachable(leave));
            self.waits.push(Wait { of: *wait, condition, begin, leave: left, stays_open });
        }
        self.waits.sort_by_key(|wait| wait.condition);
        for (index, wait) in self.waits.iter().enumerate() {
            if wait.begin < BEFORE {
                self.begins_at.entry(wait.begin).or_default().push(index);
            }
            if wait.leave < BEFORE {
                self.leaves_at.entry(wait.leave).or_default().push(index);
            }
        }
    }

    /// Who waits on `condition`.
    pub(crate) fn waits_on(&self, condition: ConditionId) -> &[Wait] {
        let from = self.waits.partition_point(|wait| wait.condition < condition);
        let to = self.waits.partition_point(|wait| wait.condition <= condition);
        &self.waits[from..to]
    }

    /// The notifies on `condition` that come while nobody waits but those that they wake.
    pub(crate) fn notifies_on(&self, condition: ConditionId) -> &[WindowIndex] {
        self.notifies.get(&condition).map_or(&[], Vec::as_slice)
    }
}

// The fixed prefix. Some events have to move: those that the query puts the other way round, reads
// that see another write, and sections that stay open and are in the way. All whose causal past has
// one of them moves along, and nothing else: the prefix is what is left. It is closed under
// must-happen-before, so in observed order its reads see what they saw. What moved may hold more
// back: a section or a wait that the prefix leaves open in the way of a later event of its own, or
// that never ends while another behind it has to end first; and a write after the one that a read
// behind the prefix must see. Those move too.

/// The part of a cut that runs first.
#[derive(Debug)]
pub(crate) struct FixedPrefix<'a, 'e, 't> {
    problem: &'a Problem<'e, 't>,
    /// The whole cut.
    whole: &'a Cut,
    prefix: Cut,
    /// The events of each thread from here on were looked at for what they hold back.
    looked: Cut,
    /// How many threads and events were looked at.
    pub(crate) lookups: u64,
}

impl<'a, 'e, 't> FixedPrefix<'a, 'e, 't> {
    /// The fixed prefix of `whole`.
    pub(crate) fn new(problem: &'a Problem<'e, 't>, whole: &'a Cut) -> Self {
        let (prefix, looked) = (whole.clone(), whole.clone());
        let mut fixed = Self { problem, whole, prefix, looked, lookups: 0 };
        for &(first, second) in &problem.query.order {
            if first > second {
                fixed.lower(second);
            }
        }
        for &(read, view) in &problem.query.views {
            fixed.lower(read);
            if let View::Of(Some(write)) = view {
                fixed.lower(write);
            }
        }
        fixed.settle();
        fixed
    }

    /// How many events of each thread are in it.
    pub(crate) const fn cut(&self) -> &Cut {
        &self.prefix
    }

    /// Takes out `event` and all whose causal past has it.
    pub(crate) fn lower(&mut self, event: EventId) {
        let trace = self.problem.engine.trace();
        let (owner, position) = (trace.event(event).thread, trace.position(event));
        self.lookups += self.prefix.len() as u64;
        for thread in self.prefix.ids() {
            let count = &mut self.prefix[thread];
            if thread == owner {
                *count = (*count).min(position);
                continue;
            }
            let own = &trace.thread_events(thread)[..*count as usize];
            let mhb = &self.problem.mhb;
            let is_free = |&other: &EventId| mhb.past(other).get(owner) <= position;
            // Most often nothing moves.
            if !own.last().is_none_or(is_free) {
                *count = own.partition_point(is_free) as u32;
            }
        }
    }

    /// Takes out everything from the observed time `start` on.
    pub(crate) fn lower_to(&mut self, start: usize) {
        let from = EventId::from_index(start.min(self.problem.engine.trace().len()));
        for thread in self.prefix.ids() {
            let own = self.problem.engine.trace().thread_events(thread);
            let own = &own[..self.prefix[thread] as usize];
            self.prefix[thread] = own.partition_point(|&event| event < from) as u32;
        }
    }

    /// Takes out what keeps it, or what follows it, from running.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut has_moved = false;
            self.lookups += self.prefix.len() as u64;
            for thread in self.prefix.ids() {
                while let Some(event) = self.obstacle_of(thread) {
                    self.lower(event);
                    has_moved = true;
                }
            }
            has_moved |= self.move_overwriting_writes();
            if !has_moved {
                return;
            }
        }
    }

    /// The start of what `thread` leaves open after its part and that has to move.
    fn obstacle_of(&self, thread: ThreadId) -> Option<EventId> {
        if self.prefix[thread] == 0 {
            return None;
        }
        if let Some(obstacle) = sync_preserving::obstacle_of(self.problem, &self.prefix, thread) {
            return Some(obstacle.start);
        }
        let engine = self.problem.engine;
        let mut open = engine.open(thread, self.prefix[thread]);
        let never_ends = open.find(|section| {
            let ends = section.release.is_some_and(|release| engine.is_in(self.whole, release));
            let mut others = engine.users(section.lock).iter().filter(|user| user.thread != thread);
            !ends
                && others.any(|user| {
                    let last = engine.last_section(user, section.mode, self.whole[user.thread]);
                    last.is_some_and(|last| !engine.is_in(&self.prefix, last.acquire))
                })
        });
        never_ends.map(|section| section.acquire)
    }

    /// Takes out writes that come after what reads behind the prefix must see; whether there were any.
    fn move_overwriting_writes(&mut self) -> bool {
        let (engine, mut has_moved) = (self.problem.engine, false);
        for thread in self.prefix.ids() {
            while self.looked[thread] > self.prefix[thread] {
                self.looked[thread] -= 1;
                self.lookups += 1;
                let event = engine.trace().thread_events(thread)[self.looked[thread] as usize];
                let Some(seen) = self.problem.must_see(event) else { continue };
                // What is not in the prefix is not overwritten there.
                if seen.is_some_and(|write| !engine.is_in(&self.prefix, write)) {
                    continue;
                }
                let Some(var) = engine.trace().event(event).op.var() else { continue };
                let all = engine.trace().writes();
                for list in all.lists(var) {
                    self.lookups += 1;
                    let writes = all.of_list(list);
                    let later = writes.partition_point(|&write| Some(write) <= seen);
                    let Some(&later) = writes.get(later) else { continue };
                    if engine.trace().position(later) < self.prefix[list.thread] {
                        self.lower(later);
                        has_moved = true;
                    }
                }
            }
        }
        has_moved
    }
}
