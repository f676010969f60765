//! What must come before what in a reordering window, whatever the rest of the order?
//!
//! Must-happen-before is given. Three kinds of things exclude each other, and each exclusion can be
//! resolved in two ways: two sections of a lock, one after the other; another write before what a
//! read sees, or after the read; a notify before a thread starts to wait, or after it has left. Where
//! the start of one must come before the end of the other, only one way is left, and that is a new
//! edge, from which more may follow: *saturation* adds such edges until there are no more. A section
//! that stays open comes after all others of its lock.
//!
//! A clock per event holds what must come before it; edges are followed from the earliest changed
//! event on. An event that must come before itself is a contradiction. Every edge is forced by the
//! cut alone, not by where the window starts, so a contradiction refutes the cut. Sound, and not
//! complete: a saturated order may still have no schedule.
//!
//! Costs a clock operation for each edge and change. An entry may rise as often as its thread has
//! events in the window, though it seldom does so twice; the budget is the bound.
//!
//! Saturation in this sense is in Pavlogiannis, "Fast, sound, and effectively complete dynamic race
//! prediction" (POPL 2020).

use reweave_base::bits;
use reweave_trace::EventId;

use crate::engine::Problem;
use crate::window::{BEFORE, NEVER, Var, Wait, Window, WindowIndex};

/// Why saturation ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// An event must come before itself.
    Contradiction,
    /// This event, before the window, must come after one of the window.
    Extend(EventId),
    /// This event, not in the cut, must happen too.
    Complete(EventId),
    /// The budget ended.
    BudgetExhausted,
}

/// What saturation gave, or why it ended early.
pub(crate) type Saturated<T = ()> = Result<T, Interruption>;

/// The order that is forced so far.
#[derive(Clone, Debug)]
pub(crate) struct Saturation {
    /// For each event a row: for each thread how many of its events come before it, or are it.
    rows: Vec<u32>,
    threads_count: usize,
    /// Edges besides must-happen-before: for each event the last one added, each with the one before it.
    added: Vec<(WindowIndex, u32)>,
    heads: Vec<u32>,
    queue: Queue,
    /// Which rows have changed since they were passed on; must-happen-before is passed on already.
    changed: Vec<bool>,
    /// How many clock entries were written, and how many may be.
    pub(crate) work: u64,
    work_max: u64,
    /// Whether sections that could be completed count as open.
    assumes_open: bool,
}

/// Events to be visited, the earliest first.
#[derive(Clone, Debug)]
struct Queue {
    members: Vec<u64>,
    /// No member is below this.
    lowest: usize,
}

impl Queue {
    fn full(count: usize) -> Self {
        let mut members = vec![0; bits::words(count)];
        bits::fill(&mut members, count);
        Self { members, lowest: 0 }
    }

    fn push(&mut self, at: WindowIndex) {
        bits::insert(&mut self.members, at as usize);
        self.lowest = self.lowest.min(at as usize);
    }

    fn pop(&mut self) -> Option<WindowIndex> {
        let at = bits::first_from(&self.members, self.lowest)?;
        bits::remove(&mut self.members, at);
        self.lowest = at;
        Some(at as WindowIndex)
    }
}

impl Saturation {
    /// What is forced in `window` whatever else happens; threads that can complete a section may do
    /// so outside the cut.
    pub(crate) fn new(
        window: &Window,
        problem: &Problem<'_, '_>,
        work_max: u64,
    ) -> Saturated<Self> {
        let mut saturation = Self {
            rows: window.rows.clone(),
            threads_count: window.threads.len(),
            added: Vec::new(),
            heads: vec![NEVER; window.events.len()],
            queue: Queue::full(window.events.len()),
            changed: vec![false; window.events.len()],
            work: window.rows.len() as u64,
            work_max,
            assumes_open: false,
        };
        for &(first, second) in &problem.query.order {
            let (from, to) = (window.place(problem, first), window.place(problem, second));
            match (from, to) {
                (BEFORE, _) => {}
                (_, BEFORE) => return Err(Interruption::Extend(second)),
                _ => saturation.add(window, from, to)?,
            }
        }
        saturation.add_views(window)?;
        saturation.open(window)?;
        saturation.run(window)?;
        Ok(saturation)
    }

    /// What is forced besides if nothing happens but the events of the cut.
    pub(crate) fn assume_open(&mut self, window: &Window) -> Saturated {
        self.assumes_open = true;
        self.open(window)?;
        self.run(window)
    }

    /// Adds the edge from `from` to `to` and what follows.
    pub(crate) fn decide(
        &mut self,
        window: &Window,
        (from, to): (WindowIndex, WindowIndex),
    ) -> Saturated {
        self.add(window, from, to)?;
        self.run(window)
    }

    /// The row of `at`.
    pub(crate) fn row(&self, at: WindowIndex) -> &[u32] {
        &self.rows[at as usize * self.threads_count..][..self.threads_count]
    }

    /// Reads come after what they see also where that was not observed.
    fn add_views(&mut self, window: &Window) -> Saturated {
        for (at, &source) in window.reads_from.iter().enumerate() {
            if source < BEFORE {
                self.add(window, source, at as WindowIndex)?;
            }
        }
        Ok(())
    }

    /// Puts sections and waits that are never left after everything that they exclude.
    fn open(&mut self, window: &Window) -> Saturated {
        for section in &window.sections {
            let is_open = section.release == NEVER && (section.stays_open || self.assumes_open);
            if !is_open || section.acquire >= BEFORE {
                continue;
            }
            for (_, range) in &window.locks[section.lock] {
                let last = &window.sections[range.end - 1];
                let last = last.last_that_excludes(section, window);
                let last = last.filter(|last| section.excludes(last) && last.release < BEFORE);
                if let Some(last) = last {
                    self.add(window, last.release, section.acquire)?;
                }
            }
        }
        for wait in &window.waits {
            if wait.leave == NEVER && (wait.stays_open || self.assumes_open) {
                for &notify in window.notifies_on(wait.condition) {
                    let event = window.events[notify as usize];
                    if wait.must_not_wake(wait.condition, event) {
                        self.put_before_wait(window, notify, wait.begin, wait.of.begin)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn put_before_wait(
        &mut self,
        window: &Window,
        notify: WindowIndex,
        begin: WindowIndex,
        event: EventId,
    ) -> Saturated {
        if begin == BEFORE {
            Err(Interruption::Extend(event))
        } else {
            self.add(window, notify, begin)
        }
    }

    fn run(&mut self, window: &Window) -> Saturated {
        while let Some(at) = self.queue.pop() {
            self.work += 1;
            if self.work > self.work_max {
                return Err(Interruption::BudgetExhausted);
            }
            if std::mem::take(&mut self.changed[at as usize]) {
                self.pass_on(window, at)?;
            }
            if window.ends[at as usize] != NEVER {
                self.exclude_sections(window, at)?;
            }
            if window.var_of[at as usize] != NEVER {
                self.exclude_writes(window, at)?;
            }
            if !window.notify_at.is_empty() {
                self.exclude_notifies(window, at)?;
            }
        }
        Ok(())
    }

    /// Tells all that come right after `at` what comes before it.
    fn pass_on(&mut self, window: &Window, at: WindowIndex) -> Saturated {
        if window.next[at as usize] != NEVER {
            self.raise(window, at, window.next[at as usize])?;
        }
        for &to in window.edges_from(at) {
            self.raise(window, at, to)?;
        }
        let mut link = self.heads[at as usize];
        while let Some(&(to, before)) = self.added.get(link as usize) {
            self.raise(window, at, to)?;
            link = before;
        }
        Ok(())
    }

    /// Adds to `to` all that comes before `from`.
    fn raise(&mut self, window: &Window, from: WindowIndex, to: WindowIndex) -> Saturated {
        if self.is_before(window, to, from) {
            return Err(Interruption::Contradiction);
        }
        let count = self.threads_count;
        let (from, start) = (from as usize * count, to as usize * count);
        let mut has_changed = false;
        for offset in 0..count {
            let theirs = self.rows[from + offset];
            let own = &mut self.rows[start + offset];
            has_changed |= theirs > *own;
            *own = theirs.max(*own);
        }
        if has_changed {
            self.work += count as u64;
            self.changed[to as usize] = true;
            self.queue.push(to);
        }
        Ok(())
    }

    /// Whether `early` comes before `late`, or is it.
    pub(crate) fn is_before(&self, window: &Window, early: WindowIndex, late: WindowIndex) -> bool {
        let thread = window.thread[early as usize] as usize;
        self.row(late)[thread] > window.position[early as usize]
    }

    /// Adds an edge, unless it is known.
    fn add(&mut self, window: &Window, from: WindowIndex, to: WindowIndex) -> Saturated {
        if from == to {
            return Err(Interruption::Contradiction);
        }
        if self.is_before(window, from, to) {
            return Ok(());
        }
        self.added.push((to, self.heads[from as usize]));
        self.heads[from as usize] = self.added.len() as u32 - 1;
        self.raise(window, from, to)
    }

    /// The section that ends at `at` comes after all whose start comes before its end.
    fn exclude_sections(&mut self, window: &Window, at: WindowIndex) -> Saturated {
        let own = &window.sections[window.ends[at as usize] as usize];
        for (thread, range) in &window.locks[own.lock] {
            if *thread == own.thread {
                continue;
            }
            let line = &window.sections[range.clone()];
            let seen = self.row(at)[*thread as usize];
            let count = line.partition_point(|other| other.acquired < seen);
            let last = line[..count].last().and_then(|last| last.last_that_excludes(own, window));
            let Some(other) = last else { continue };
            match other.release {
                BEFORE => {}
                NEVER => match other.of.release.filter(|_| !other.stays_open) {
                    Some(release) => return Err(Interruption::Complete(release)),
                    None => return Err(Interruption::Contradiction),
                },
                _ if own.acquire == BEFORE => {
                    // Each would have to come first, whatever lies before the window.
                    let is_known = self.row(other.release)[own.thread as usize] > own.acquired;
                    return Err(match is_known {
                        true => Interruption::Contradiction,
                        false => Interruption::Extend(own.of.acquire),
                    });
                }
                release => self.add(window, release, own.acquire)?,
            }
        }
        Ok(())
    }

    /// Other writes come before what the read at `at` sees, or after it; the write at `at` comes
    /// after all reads of what comes before it.
    fn exclude_writes(&mut self, window: &Window, at: WindowIndex) -> Saturated {
        let var = &window.vars[window.var_of[at as usize] as usize];
        let source = window.reads_from[at as usize];
        for (thread, writes) in var.writes.iter().filter(|_| source != NEVER) {
            let seen = self.row(at)[*thread as usize];
            let count = writes.partition_point(|&write| window.position[write as usize] < seen);
            let others = writes[..count].iter().rev();
            let Some(other) = others.copied().find(|&other| other != at) else { continue };
            match source {
                BEFORE => {
                    let is_known = self.is_prefix_write_before(var, other);
                    let moved = var.prefix_write.filter(|_| !is_known);
                    return Err(moved.map_or(Interruption::Contradiction, Interruption::Extend));
                }
                _ if other == source => {}
                _ => self.add(window, other, source)?,
            }
        }
        if window.is_write[at as usize] { self.exclude_readers(window, at) } else { Ok(()) }
    }

    /// Whether what was there before the window, or nothing, is known to come before `at`.
    fn is_prefix_write_before(&self, var: &Var, at: WindowIndex) -> bool {
        let is_seen = |(thread, position): (u32, u32)| self.row(at)[thread as usize] > position;
        var.prefix_write.is_none() || var.prefix_write_at.is_some_and(is_seen)
    }

    /// The write at `at` comes after all reads of what comes before it.
    fn exclude_readers(&mut self, window: &Window, at: WindowIndex) -> Saturated {
        let var = &window.vars[window.var_of[at as usize] as usize];
        for (thread, writes) in &var.writes {
            let seen = self.row(at)[*thread as usize];
            let count = writes.partition_point(|&write| window.position[write as usize] < seen);
            let others = writes[..count].iter().rev();
            let Some(other) = others.copied().find(|&other| other != at) else { continue };
            for &reader in window.readers(other) {
                if reader != at {
                    self.add(window, reader, at)?;
                }
            }
        }
        if self.is_prefix_write_before(var, at) {
            for &reader in var.prefix_readers.iter().filter(|&&reader| reader != at) {
                self.add(window, reader, at)?;
            }
        }
        Ok(())
    }

    /// Notifies that would wake others than they did come before those wait, or after.
    fn exclude_notifies(&mut self, window: &Window, at: WindowIndex) -> Saturated {
        if let Some(&on) = window.notify_at.get(&at) {
            let event = window.events[at as usize];
            for wait in window.waits_on(on) {
                self.work += 1;
                let is_begun = wait.begin < BEFORE && self.is_before(window, wait.begin, at);
                if is_begun && wait.must_not_wake(on, event) {
                    self.end_before(window, wait, at)?;
                }
            }
        }
        for &index in window.leaves_at.get(&at).into_iter().flatten() {
            let wait = window.waits[index];
            for &notify in window.notifies_on(wait.condition) {
                self.work += 1;
                let is_before = self.is_before(window, notify, at);
                let event = window.events[notify as usize];
                if is_before && wait.must_not_wake(wait.condition, event) {
                    self.put_before_wait(window, notify, wait.begin, wait.of.begin)?;
                }
            }
        }
        Ok(())
    }

    /// Puts the end of `wait` before the notify at `at`, which comes after its begin.
    fn end_before(&mut self, window: &Window, wait: &Wait, at: WindowIndex) -> Saturated {
        match wait.leave {
            NEVER => match crate::engine::leave(&wait.of).filter(|_| !wait.stays_open) {
                Some(leave) => Err(Interruption::Complete(leave)),
                None => Err(Interruption::Contradiction),
            },
            leave => self.add(window, leave, at),
        }
    }
}
