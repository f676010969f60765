//! Threads that wait for ever, noticed while the program runs.
//!
//! The question: nothing happens any more; is that a fault? A program that sleeps, waits for input
//! or for a signal that may still come looks the same from outside.
//!
//! The idea: who holds a lock, and what each thread waits for, is in the events. If a thread waits
//! for a lock whose holder waits for a lock, and so on back to the first, or if the holder has ended,
//! nobody in the program can end it: a *deadlock*. If all threads wait for each other in some other
//! way, such as for a signal on a condition that nobody is left to send, the program *hangs*. A thread
//! that only ticks, sleeping over and over in code that it went through before, does not count: it
//! wakes nobody.
//!
//! Promised: what is named held when the last event was drained. A lock that code took which was not
//! seen is not known to be held. A thread in a call that waits for something outside of the program
//! may go on, so a program with one does not hang. That a thread which ticks would never do anything
//! else is a guess, which is why a program is ended for it only if somebody asked for that.
//!
//! An event costs a look at its thread, and more only if it is about a lock or a thread waits.

use std::path::Path;
use std::time::{Duration, Instant};

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, flag, wait};

use crate::collect::{Collector, announced_process};
use crate::symbols::Symbols;

/// How long nothing happens before it is looked at.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The most locks that are followed in one process.
const LOCKS_MAX: usize = 1 << 16;

/// The most threads that are followed in one process.
const THREADS_MAX: u32 = 1 << 20;

/// The binary logarithm of the bytes of a lock that is a word.
const WORD_SIZE: u8 = 2;

/// Who slept so often and did nothing new in between only ticks.
const TICKS_MIN: u32 = 3;

/// How often it is looked for threads that wait for each other's locks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A thread that asked for a lock and did not get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The thread.
    pub thread: u32,
    /// Where the lock is.
    pub lock: u64,
    /// Where in the code it asked.
    pub code: u64,
    /// Who holds the lock.
    pub holder: u32,
    /// Whether the holder has ended.
    pub is_abandoned: bool,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A lock, by its address.
    Lock(u64),
    /// A condition, by its address.
    Condition(u64),
    /// A barrier, by its address.
    Barrier(u64),
    /// A semaphore, by its address.
    Semaphore(u64),
    /// The end of a thread, by its number.
    Join(Option<u64>),
    /// A word of memory to change.
    Word(u64),
    /// Time to pass.
    Time,
    /// Something outside of the program.
    Call,
}

impl Awaited {
    /// What the thread of `event`, which is about to wait, waits for.
    fn new(event: &Event) -> Option<Self> {
        let is_timed = event.flags & flag::TIMED_OUT != 0;
        Some(match event.kind {
            Kind::LockRequest if event.flags & flag::TRY != 0 => Self::Time,
            Kind::LockRequest => Self::Lock(event.address),
            Kind::Wait | Kind::FutexWait if is_timed => Self::Time,
            Kind::Wait => Self::Condition(event.address),
            Kind::FutexWait => Self::Word(event.address),
            Kind::BarrierArrive => Self::Barrier(event.address),
            Kind::Block => match event.address {
                wait::SLEEP => Self::Time,
                wait::JOIN => Self::Join(event.extra),
                wait::SEMAPHORE => Self::Semaphore(event.extra.unwrap_or(0)),
                _ => Self::Call,
            },
            _ => return None,
        })
    }
}

/// What is known of one thread.
#[derive(Debug, Default)]
struct Thread {
    is_living: bool,
    awaited: Option<Awaited>,
    /// Where in the code it waits.
    code: u64,
    /// The code that it went through since it first slept; nothing if it never did.
    ticking: Option<FxHashSet<u64>>,
    /// How often it slept since the progress of this number.
    ticks: (u64, u32),
}

/// What is known of one process.
#[derive(Default)]
pub struct Process {
    holders: FxHashMap<u64, Vec<u32>>,
    threads: Vec<Thread>,
    /// How many threads wait for a lock.
    asking: FxHashSet<u32>,
    ended: Vec<u32>,
    map: u64,
    progress: u64,
    /// Whether locks are recognized already: then a word that is updated is none.
    is_recognized: bool,
}

impl Process {
    /// For events in which locks are recognized.
    #[must_use]
    pub fn recognized() -> Self {
        Self { is_recognized: true, ..Self::default() }
    }

    /// Takes the next event.
    #[inline]
    pub fn step(&mut self, thread: u32, event: &Event) {
        if thread >= THREADS_MAX {
            return;
        }
        if thread as usize >= self.threads.len() {
            self.threads.resize_with(thread as usize + 1, Thread::default);
        }
        let state = &mut self.threads[thread as usize];
        state.is_living = event.kind != Kind::End;
        if event.kind != Kind::Stored {
            if state.ticking.is_some() || state.awaited.is_some() {
                self.step_waiting(thread, event);
            } else {
                self.progress += 1;
            }
            if let Some(awaited) = Awaited::new(event) {
                self.begin_wait(thread, event, awaited);
            }
        }
        self.step_locks(thread, event);
    }

    /// Takes an event of a thread that waited, or that has slept.
    fn step_waiting(&mut self, thread: u32, event: &Event) {
        let state = &mut self.threads[thread as usize];
        let is_asking = matches!(state.awaited, Some(Awaited::Lock(_)));
        // A lock that is a word is waited for by sleeping on the word.
        if is_asking && matches!(event.kind, Kind::FutexWait | Kind::FutexAwake) {
            return;
        }
        // It does something, so it waits no longer, whatever came of it.
        if state.awaited.take().is_some() {
            self.asking.remove(&thread);
        }
        let is_new = match &mut state.ticking {
            // A call has no code address, but that of its frame.
            Some(seen) => !event.kind.is_brief() && event.code != 0 && seen.insert(event.code),
            None => true,
        };
        self.progress += u64::from(is_new);
    }

    fn begin_wait(&mut self, thread: u32, event: &Event, awaited: Awaited) {
        let state = &mut self.threads[thread as usize];
        if matches!(state.awaited, Some(Awaited::Lock(_))) && event.kind == Kind::FutexWait {
            return;
        }
        let lock = match awaited {
            Awaited::Lock(lock) => Some(lock),
            // Who sleeps on a word that it changed itself, such as to park, waits for no lock.
            Awaited::Word(word) if !self.is_recognized => {
                let holders = self.holders.get(&word);
                holders.is_some_and(|holders| !holders.contains(&thread)).then_some(word)
            }
            _ => None,
        };
        (state.awaited, state.code) = (Some(lock.map_or(awaited, Awaited::Lock)), event.code);
        if lock.is_some() {
            self.asking.insert(thread);
        }
        if awaited == Awaited::Time {
            state.ticking.get_or_insert_default();
            let ticks = if state.ticks.0 == self.progress { state.ticks.1 } else { 0 };
            state.ticks = (self.progress, ticks + 1);
        }
    }

    fn step_locks(&mut self, thread: u32, event: &Event) {
        let lock = event.address;
        match event.kind {
            Kind::Lock => self.acquire(thread, lock, event.flags & flag::SHARED != 0),
            Kind::Unlock => self.release(thread, lock),
            Kind::LockDestroy if event.ends_lock() => _ = self.holders.remove(&lock),
            Kind::Wait => {
                if let Some(lock) = event.extra {
                    self.release(thread, lock);
                }
            }
            Kind::Wake => {
                if let Some(lock) = event.extra {
                    self.acquire(thread, lock, false);
                }
            }
            // The locks of Rust's standard library are words, taken and released by updates.
            Kind::AtomicUpdate if event.size == WORD_SIZE && !self.is_recognized => {
                match (event.value, event.extra) {
                    (_, Some(0)) => _ = self.holders.remove(&lock),
                    (Some(0), Some(_)) => self.acquire(thread, lock, false),
                    _ => {}
                }
            }
            Kind::End if self.holders.values().any(|holders| holders.contains(&thread)) => {
                self.ended.push(thread);
            }
            Kind::Maps => self.map = event.address,
            _ => {}
        }
    }

    fn acquire(&mut self, thread: u32, lock: u64, is_shared: bool) {
        if self.holders.len() >= LOCKS_MAX && !self.holders.contains_key(&lock) {
            return;
        }
        let holders = self.holders.entry(lock).or_default();
        // What others were not seen to release they do not hold any more.
        if !is_shared {
            holders.retain(|&holder| holder == thread);
        }
        holders.push(thread);
    }

    fn release(&mut self, thread: u32, lock: u64) {
        let Some(holders) = self.holders.get_mut(&lock) else { return };
        match holders.iter().rposition(|&holder| holder == thread) {
            Some(place) => _ = holders.remove(place),
            // Misuse that works: who holds it has it no longer.
            None => holders.clear(),
        }
        if holders.is_empty() {
            self.holders.remove(&lock);
        }
    }

    /// What `thread` waits for, and where in the code.
    #[must_use]
    pub fn awaited(&self, thread: u32) -> Option<(Awaited, u64)> {
        let state = self.threads.get(thread as usize)?;
        state.awaited.map(|awaited| (awaited, state.code))
    }

    /// Whom `thread` waits for, if it waits for a lock that somebody holds.
    #[must_use]
    pub fn wait(&self, thread: u32) -> Option<Wait> {
        let (Awaited::Lock(lock), code) = self.awaited(thread)? else { return None };
        let &holder = self.holders.get(&lock)?.first()?;
        let is_abandoned = self.ended.contains(&holder);
        Some(Wait { thread, lock, code, holder, is_abandoned })
    }

    /// Threads that wait for each other, each for the next and the last for the first, or for one
    /// that has ended; those of the least number first.
    #[must_use]
    pub fn cycle(&self) -> Option<Vec<Wait>> {
        let mut threads: Vec<u32> = self.asking.iter().copied().collect();
        threads.sort_unstable();
        threads.into_iter().find_map(|first| {
            let mut waits = Vec::new();
            let mut thread = first;
            while let Some(wait) = self.wait(thread) {
                waits.push(wait);
                if wait.is_abandoned || wait.holder == first {
                    return Some(waits);
                }
                if waits.len() > self.asking.len() {
                    // A cycle, but not through the first.
                    return None;
                }
                thread = wait.holder;
            }
            None
        })
    }

    /// Whether the thread `number` has not ended.
    #[must_use]
    pub fn is_living(&self, number: u32) -> bool {
        self.threads.get(number as usize).is_some_and(|thread| thread.is_living)
    }

    /// The threads that can never go on, if no thread can: all wait for others, or only tick.
    #[must_use]
    pub fn stuck(&self) -> Option<Vec<u32>> {
        let mut stuck = Vec::new();
        for (number, thread) in (0..).zip(&self.threads) {
            let only_ticks = thread.ticks.0 == self.progress && thread.ticks.1 >= TICKS_MIN;
            match thread.awaited {
                _ if !thread.is_living => {}
                Some(Awaited::Time) | None if only_ticks => {}
                Some(Awaited::Time | Awaited::Call) | None => return None,
                Some(_) => stuck.push(number),
            }
        }
        (!stuck.is_empty()).then_some(stuck)
    }
}

/// Follows who holds which lock and who waits, in all processes.
#[derive(Default)]
pub struct WaitGraph {
    processes: Vec<Process>,
    current: usize,
}

impl WaitGraph {
    /// Takes the next event, as it is drained.
    #[inline]
    pub fn step(&mut self, thread: u32, event: &Event) {
        if let Some(place) = announced_process(event) {
            self.current = place;
        }
        if self.current >= self.processes.len() {
            self.processes.resize_with(self.current + 1, Process::default);
        }
        self.processes[self.current].step(thread, event);
    }

    /// The first process with threads that wait for each other for ever, and these.
    #[must_use]
    pub fn cycle(&self) -> Option<(usize, Vec<Wait>)> {
        let processes = self.processes.iter().enumerate();
        processes.filter_map(|(place, process)| Some((place, process.cycle()?))).next()
    }

    /// How much has happened, but for threads that only tick.
    fn progress(&self) -> u64 {
        self.processes.iter().map(|process| process.progress).sum()
    }
}

/// Why a program does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// Threads wait for locks of each other, or of one that has ended.
    Deadlock,
    /// All threads wait in some other way.
    Hang,
}

/// Looks from time to time whether anything still happens.
pub struct Watchdog {
    wait_graph: WaitGraph,
    timeout: Duration,
    progress: (u64, u64),
    since: Instant,
    looked: Instant,
    /// Threads that wait for each other's locks, and since when.
    cycle: Option<(Vec<Wait>, Instant)>,
    stall: Option<(Stall, usize)>,
}

impl Watchdog {
    /// Looks at what has not moved for `timeout`.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        let now = Instant::now();
        Self {
            wait_graph: WaitGraph::default(),
            timeout,
            progress: (0, 0),
            since: now,
            looked: now,
            cycle: None,
            stall: None,
        }
    }

    /// Takes the next event, as it is drained.
    #[inline]
    pub fn step(&mut self, thread: u32, event: &Event) {
        self.wait_graph.step(thread, event);
    }

    /// Why the program does not go on, as far as was seen, and which of its processes.
    #[must_use]
    pub const fn stall(&self) -> Option<(Stall, usize)> {
        self.stall
    }

    /// How long nothing has happened that counts.
    #[must_use]
    pub fn idle(&self) -> Duration {
        let cycle = self.cycle.as_ref().map_or(Duration::ZERO, |(_, since)| since.elapsed());
        self.since.elapsed().max(cycle)
    }

    /// Says, once, who waits for whom, when that has not changed for long enough. Source files below
    /// `base` are named relative to it.
    pub fn look(&mut self, collector: &Collector, base: &Path) -> Option<String> {
        // Accesses that are only counted are no events, but a thread that does them runs.
        let progress = (self.wait_graph.progress(), collector.unwritten());
        if progress != self.progress {
            self.progress = progress;
            self.since = Instant::now();
        }
        if self.looked.elapsed() < LOOK_EVERY {
            return None;
        }
        self.looked = Instant::now();
        let cycle = self.wait_graph.cycle();
        let waits = cycle.as_ref().map(|(_, waits)| waits);
        if self.cycle.as_ref().map(|(known, _)| known) != waits {
            self.cycle = waits.map(|waits| (waits.clone(), Instant::now()));
        }
        let is_idle = self.since.elapsed() >= self.timeout;
        let found = match &self.cycle {
            Some((_, since)) if is_idle || since.elapsed() >= self.timeout => {
                cycle.map(|(place, _)| (Stall::Deadlock, place))
            }
            _ if is_idle => self.hang().map(|it| (Stall::Hang, it)),
            _ => None,
        };
        let was_known = std::mem::replace(&mut self.stall, found).is_some();
        let (stall, place) = found.filter(|_| !was_known)?;
        let mut symbols = Symbols::new(base);
        for (number, text) in (0..).zip(collector.maps(place)) {
            symbols.add_map(number, &text);
        }
        let process = &self.wait_graph.processes[place];
        symbols.select(process.map);
        Some(match (stall, &self.cycle) {
            (Stall::Deadlock, Some((waits, _))) => describe(waits, &mut symbols),
            _ => describe_hang(process, &mut symbols),
        })
    }

    /// The process that hangs, if every one with a thread that waits does.
    fn hang(&self) -> Option<usize> {
        let mut hanging = None;
        for (place, process) in self.wait_graph.processes.iter().enumerate() {
            if process.threads.iter().any(|thread| thread.is_living) {
                // One that waits for another process is in a call.
                let is_stuck = process.stuck().is_some();
                hanging = hanging.or(is_stuck.then_some(place));
            }
        }
        hanging
    }
}

fn name(thread: u32) -> String {
    match thread {
        0 => "main".to_owned(),
        number => format!("T{number}"),
    }
}

fn data(symbols: &mut Symbols, address: u64) -> String {
    symbols.object(address).unwrap_or_else(|| format!("at {address:#x}"))
}

fn located(symbols: &mut Symbols, code: u64) -> String {
    match code {
        0 => String::new(),
        code => format!(" ({})", symbols.location(code)),
    }
}

/// What each thread of a process that hangs waits for; a fragment.
fn describe_hang(process: &Process, symbols: &mut Symbols) -> String {
    let mut parts = Vec::new();
    for thread in process.stuck().unwrap_or_default() {
        let Some((awaited, code)) = process.awaited(thread) else { continue };
        let what = awaited.words(&mut |address| data(symbols, address));
        parts.push(format!("{} {what}{}", name(thread), located(symbols, code)));
    }
    format!("{}: no thread can go on", parts.join("; "))
}

impl Awaited {
    /// What the thread does, with `name` for what is at an address.
    pub fn words(self, name_of: &mut dyn FnMut(u64) -> String) -> String {
        match self {
            Self::Lock(lock) => format!("waits for lock {}", name_of(lock)),
            Self::Condition(condition) => format!("waits on condition {}", name_of(condition)),
            Self::Barrier(barrier) => format!("waits at barrier {}", name_of(barrier)),
            Self::Semaphore(semaphore) => format!("waits for semaphore {}", name_of(semaphore)),
            Self::Join(Some(thread)) => format!("waits for {} to end", name(thread as u32)),
            Self::Join(None) => "waits for a thread to end".to_owned(),
            Self::Word(_) => "waits to be woken".to_owned(),
            Self::Time => "sleeps".to_owned(),
            Self::Call => "waits in a call".to_owned(),
        }
    }
}

/// Who waits for whom, in words; a fragment.
fn describe(waits: &[Wait], symbols: &mut Symbols) -> String {
    let mut parts: Vec<String> = Vec::new();
    for wait in waits {
        let lock = data(symbols, wait.lock);
        let place = located(symbols, wait.code);
        let is_own = wait.holder == wait.thread;
        let holder = if is_own { "it".to_owned() } else { name(wait.holder) };
        let holds = match (wait.is_abandoned, is_own) {
            (true, _) => "held when it ended",
            (false, true) => "holds itself",
            (false, false) => "holds",
        };
        parts.push(format!(
            "{} waits for lock {lock}{place}, which {holder} {holds}",
            name(wait.thread)
        ));
    }
    format!("{}: a deadlock", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(thread, kind, lock)`, one after the other.
    fn cycle(events: &[(u32, Kind, u64)]) -> Option<Vec<(u32, u64, u32)>> {
        let mut wait_graph = WaitGraph::default();
        for &(thread, kind, lock) in events {
            wait_graph.step(thread, &Event::new(kind, lock, 1));
        }
        let (_, waits) = wait_graph.cycle()?;
        Some(waits.iter().map(|wait| (wait.thread, wait.lock, wait.holder)).collect())
    }

    use Kind::{End, Lock, LockRequest, Read, Unlock};

    #[test]
    fn two_threads_that_wait_for_each_others_locks_are_a_cycle() {
        let events = [
            (1, Lock, 10),
            (2, Lock, 20),
            (1, LockRequest, 20),
            (3, LockRequest, 10),
            (2, LockRequest, 10),
        ];
        assert_eq!(cycle(&events), Some(vec![(1, 20, 2), (2, 10, 1)]));
        assert_eq!(cycle(&events[..4]), None);
    }

    #[test]
    fn a_lock_that_was_released_holds_nobody_up() {
        let events = [
            (1, Lock, 10),
            (2, Lock, 20),
            (1, LockRequest, 20),
            (2, Unlock, 20),
            (2, LockRequest, 10),
        ];
        assert_eq!(cycle(&events), None);
    }

    #[test]
    fn who_does_something_waits_no_longer() {
        let events = [
            (1, Lock, 10),
            (2, Lock, 20),
            (1, LockRequest, 20),
            (2, LockRequest, 10),
            (1, Read, 5),
        ];
        assert_eq!(cycle(&events), None);
    }

    #[test]
    fn a_thread_can_wait_for_itself_and_for_one_that_has_ended() {
        assert_eq!(cycle(&[(1, Lock, 10), (1, LockRequest, 10)]), Some(vec![(1, 10, 1)]));
        let events = [(1, Lock, 10), (1, End, 0), (2, LockRequest, 10)];
        assert_eq!(cycle(&events), Some(vec![(2, 10, 1)]));
    }

    #[test]
    fn who_waits_behind_a_cycle_is_not_of_it() {
        let events = [(4, Lock, 40), (4, LockRequest, 40), (1, LockRequest, 40)];
        assert_eq!(cycle(&events), Some(vec![(4, 40, 4)]));
    }

    /// `(thread, event)`, one after the other: the threads that are stuck.
    fn stuck(events: &[(u32, Event)]) -> Option<Vec<u32>> {
        let mut process = Process::default();
        events.iter().for_each(|(thread, event)| process.step(*thread, event));
        process.stuck()
    }

    fn block(what: u64) -> Event {
        Event::new(Kind::Block, what, 7)
    }

    #[test]
    fn a_process_hangs_if_every_thread_waits_for_another() {
        let waits = [(0, block(wait::JOIN)), (1, Event::new(Kind::Wait, 8, 1))];
        assert_eq!(stuck(&waits), Some(vec![0, 1]));
        // One that runs, sleeps, or waits for something outside may wake the others.
        for other in [Event::new(Read, 5, 1), block(wait::SLEEP), block(wait::CALL)] {
            assert_eq!(stuck(&[waits[0], waits[1], (2, other)]), None, "{other:?}");
        }
        let timed = Event { flags: flag::TIMED_OUT, ..waits[1].1 };
        assert_eq!(stuck(&[waits[0], (1, timed)]), None);
        assert_eq!(stuck(&[waits[0], waits[1], (2, Event::new(End, 2, 0))]), Some(vec![0, 1]));
    }

    #[test]
    fn who_only_ticks_wakes_nobody() {
        let waits = (0, block(wait::JOIN));
        let tick = [(1, Event::new(Read, 5, 3)), (1, block(wait::SLEEP))];
        let ticks = |count: usize| [vec![waits], tick.repeat(count)].concat();
        assert_eq!(stuck(&ticks(2)), None);
        assert_eq!(stuck(&ticks(10)), Some(vec![0]));
        // Code that it did not go through before is something new.
        // A call at another depth of the stack is nothing new.
        let calls = [ticks(10), vec![(1, Event::new(Kind::Enter, 5, 4096))]].concat();
        assert_eq!(stuck(&calls), Some(vec![0]));
        let news = [ticks(10), vec![(1, Event::new(Read, 5, 4))]].concat();
        assert_eq!(stuck(&news), None);
        assert_eq!(stuck(&[news, tick.repeat(10)].concat()), Some(vec![0]));
    }

    #[test]
    fn a_lock_that_another_thread_releases_is_free() {
        let events = [(0, Lock, 10), (0, LockRequest, 10), (1, Unlock, 10)];
        assert_eq!(cycle(&events[..2]), Some(vec![(0, 10, 0)]));
        assert_eq!(cycle(&events), None);
    }

    #[test]
    fn a_lock_that_is_a_word_is_waited_for_by_sleeping_on_it() {
        let events = [
            (1, Lock, 10),
            (1, LockRequest, 10),
            (1, Kind::FutexWait, 10),
            (1, Kind::FutexAwake, 10),
        ];
        assert_eq!(cycle(&events), Some(vec![(1, 10, 1)]));
    }
}
