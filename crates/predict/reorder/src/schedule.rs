//! The schedule: the observed order of a window, bent to what is forced and to what excludes what.
//!
//! At each step the earliest observed event that may come next does: all that must come before it
//! has, its lock is free, the reads that must still see the value it would overwrite are done, and
//! nobody waits whom it would wake. When nothing may come next, some exclusion that is not forced
//! was taken the wrong way round, and the caller has to decide it; or the fault lies before the
//! window, which then has to start earlier.
//!
//! Costs the events of the window times its threads, more where many threads are blocked.

use reweave_trace::EventId;

use crate::closure::Closure;
use crate::window::{BEFORE, NEVER, Place, Window};

/// An edge that puts one event before another.
pub(crate) type Edge = (Place, Place);

/// Why no event may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// An exclusion that is not decided: the edge of the way round to try first, and the other if
    /// that is possible too.
    Decide(Edge, Option<Edge>),
    /// This event, before the window, might have to come later.
    Extend(EventId),
}

/// What keeps an event from coming next.
enum Block {
    /// A section, by its index, that another thread is in.
    Section(usize),
    /// A read that must still see what would be overwritten.
    Read(Place),
    /// A thread, by the index of its stay, that would be woken.
    WaitInterval(usize),
}

/// The state after the steps so far.
struct Run<'a> {
    window: &'a Window,
    closure: &'a Closure,
    /// How many events of each thread happened, in the whole trace.
    done: Vec<u32>,
    /// Threads with events left, by their next event.
    heads: Vec<(Place, u32)>,
    /// The next event of each thread, as an index of its line.
    next: Vec<usize>,
    /// The sections that threads are in, by lock.
    held: Vec<Vec<usize>>,
    /// The last write of each variable, and the reads that must still see it.
    current: Vec<(Place, Vec<Place>)>,
    waiting: Vec<usize>,
}

/// The events of `window` in an order that keeps `closure` and all exclusions.
pub(crate) fn schedule(window: &Window, closure: &Closure) -> Result<Vec<EventId>, Stuck> {
    let mut run = Run::new(window, closure);
    let mut order = Vec::with_capacity(window.events.len());
    while !run.heads.is_empty() {
        let ready = |run: &Run<'_>, at: Place| run.is_ready(at) && run.block(at).is_none();
        match run.heads.iter().position(|&(at, _)| ready(&run, at)) {
            Some(index) => order.push(window.events[run.step(index) as usize]),
            None => return Err(run.stuck()),
        }
    }
    Ok(order)
}

impl<'a> Run<'a> {
    fn new(window: &'a Window, closure: &'a Closure) -> Self {
        let first = |line: &Vec<Place>| window.position[line[0] as usize];
        let mut heads: Vec<(Place, u32)> =
            window.lines.iter().zip(0..).map(|(line, thread)| (line[0], thread)).collect();
        heads.sort_unstable();
        let mut held = vec![Vec::new(); window.locks.len()];
        for (at, section) in window.sections.iter().enumerate() {
            if section.acquire == BEFORE {
                held[section.lock].push(at);
            }
        }
        let stays = window.stays.iter().enumerate();
        let waiting = stays.filter(|(_, stay)| stay.begin == BEFORE).map(|(at, _)| at).collect();
        let current = window.vars.iter().map(|var| (BEFORE, var.base_readers.clone())).collect();
        let next = vec![0; window.lines.len()];
        let done = window.lines.iter().map(first).collect();
        Self { window, closure, done, heads, next, held, current, waiting }
    }

    /// Whether all that must come before `at` has.
    fn is_ready(&self, at: Place) -> bool {
        let own = self.window.thread[at as usize] as usize;
        let row = self.closure.row(at).iter().zip(&self.done).enumerate();
        row.into_iter().all(|(thread, (needed, done))| thread == own || needed <= done)
    }

    fn block(&self, at: Place) -> Option<Block> {
        let window = self.window;
        if let Some(section) = window.sections.get(window.starts[at as usize] as usize) {
            let held = self.held[section.lock].iter().copied();
            let other = held.into_iter().find(|&other| section.excludes(&window.sections[other]));
            if let Some(other) = other {
                return Some(Block::Section(other));
            }
        }
        let var = window.var_of[at as usize];
        if var != NEVER && window.is_write[at as usize] {
            let pending = &self.current[var as usize].1;
            if let Some(&read) = pending.iter().find(|&&read| read != at) {
                return Some(Block::Read(read));
            }
        }
        let &on = window.notify_at.get(&at)?;
        let event = window.events[at as usize];
        let mut waiting = self.waiting.iter().copied();
        waiting.find(|&stay| window.stays[stay].is_kept_from(on, event)).map(Block::WaitInterval)
    }

    /// Lets the next event of the thread at `index` of the heads happen.
    fn step(&mut self, index: usize) -> Place {
        let (at, thread) = self.heads.remove(index);
        self.done[thread as usize] += 1;
        self.next[thread as usize] += 1;
        if let Some(&next) = self.window.lines[thread as usize].get(self.next[thread as usize]) {
            let to = self.heads.partition_point(|&(other, _)| other < next);
            self.heads.insert(to, (next, thread));
        }
        self.happen(at);
        at
    }

    fn happen(&mut self, at: Place) {
        let window = self.window;
        let (start, end) = (window.starts[at as usize], window.ends[at as usize]);
        if let Some(section) = window.sections.get(start as usize) {
            self.held[section.lock].push(start as usize);
        }
        if let Some(section) = window.sections.get(end as usize) {
            self.held[section.lock].retain(|&other| other != end as usize);
        }
        let var = window.var_of[at as usize];
        if var != NEVER {
            self.current[var as usize].1.retain(|&read| read != at);
            if window.is_write[at as usize] {
                self.current[var as usize] = (at, window.readers(at).to_vec());
            }
        }
        self.waiting.extend(window.begins_at.get(&at).into_iter().flatten());
        if let Some(left) = window.leaves_at.get(&at) {
            self.waiting.retain(|other| !left.contains(other));
        }
    }

    /// What to decide, or else where to start instead.
    fn stuck(&self) -> Stuck {
        let mut extend: Option<EventId> = None;
        for &(at, _) in self.heads.iter().filter(|&&(at, _)| self.is_ready(at)) {
            let Some(block) = self.block(at) else { continue };
            match self.choice(at, &block) {
                Ok((first, second)) => return Stuck::Decide(first, second),
                Err(event) => extend = extend.max(Some(event)),
            }
        }
        Stuck::Extend(extend.expect("an order without a cycle has an event that is ready"))
    }

    /// The two edges between which to decide so that `at` is not blocked, the observed way round
    /// first; or the event before the window that would have to move.
    fn choice(&self, at: Place, block: &Block) -> Result<(Edge, Option<Edge>), EventId> {
        let window = self.window;
        let (start, end, other_start, other_end, event) = match *block {
            Block::Section(other) => {
                let (other, own) =
                    (window.sections[other], window.sections[window.starts[at as usize] as usize]);
                (other.acquire, other.release, own.acquire, own.release, other.of.acquire)
            }
            Block::Read(read) => {
                let var = &window.vars[window.var_of[at as usize] as usize];
                let couple = window.couples[read as usize];
                let event = match couple {
                    BEFORE => var.base.unwrap_or(window.events[at as usize]),
                    _ => window.events[couple as usize],
                };
                (couple, read, at, at, event)
            }
            Block::WaitInterval(stay) => {
                let stay = window.stays[stay];
                (stay.begin, stay.leave, at, at, stay.of.begin)
            }
        };
        if start == BEFORE {
            return Err(event);
        }
        let (here, there) = ((end, other_start), (other_end, start));
        // What never ends comes last.
        Ok(match (end, other_end) {
            (NEVER, _) => (there, None),
            (_, NEVER) => (here, None),
            _ if start < other_start => (here, Some(there)),
            _ => (there, Some(here)),
        })
    }
}
