//! Threads that wait for each other for ever, noticed while the program runs.
//!
//! The question: nothing happens any more; is that a fault? A program that sleeps, waits for input
//! or for a signal that may still come looks the same from outside.
//!
//! The idea: who holds a lock, and who asked for one and did not get it, is in the events. If a
//! thread waits for a lock whose holder waits for a lock, and so on back to the first, or if the
//! holder has ended, nobody in the program can end it. Only that is called a stall.
//!
//! Promised: what is named held when the last event was drained. A lock that code took which was not
//! seen is not known to be held; a stall without a cycle of locks, such as a signal that was lost, is
//! not named.
//!
//! An event costs nothing unless it is about a lock or a thread waits.

use std::path::Path;
use std::time::{Duration, Instant};

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind, flag};

use crate::collect::{Collector, announced_process};
use crate::convert::at_offset;
use crate::symbols::Symbols;

/// How long nothing happens before it is looked at.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The most locks that are followed in one process.
const LOCKS_MAX: usize = 1 << 16;

/// The binary logarithm of the bytes of a lock that is a word.
const WORD_SIZE: u8 = 2;

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

/// What is known of one process.
#[derive(Default)]
struct Process {
    holders: FxHashMap<u64, Vec<u32>>,
    /// The lock that each waiting thread asked for, and where in the code.
    asked: FxHashMap<u32, (u64, u64)>,
    ended: Vec<u32>,
    map: u64,
}

impl Process {
    #[inline]
    fn step(&mut self, thread: u32, event: &Event) {
        if !self.asked.is_empty() && event.kind != Kind::Stored {
            // It does something, so it waits no longer, whatever came of it.
            self.asked.remove(&thread);
        }
        let lock = event.address;
        match event.kind {
            Kind::LockRequest if event.flags & flag::TRY == 0 => {
                self.asked.insert(thread, (lock, event.code));
            }
            Kind::FutexWait if self.holders.contains_key(&lock) => {
                self.asked.insert(thread, (lock, event.code));
            }
            Kind::Lock => self.acquire(thread, lock, event.flags & flag::SHARED != 0),
            Kind::Unlock => self.release(thread, lock),
            Kind::LockDestroy => _ = self.holders.remove(&lock),
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
            Kind::AtomicUpdate if event.size == WORD_SIZE => match (event.value, event.extra) {
                (_, Some(0)) => _ = self.holders.remove(&lock),
                (Some(0), Some(_)) => self.acquire(thread, lock, false),
                _ => {}
            },
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
        if let Some(place) = holders.iter().rposition(|&holder| holder == thread) {
            holders.remove(place);
        }
        if holders.is_empty() {
            self.holders.remove(&lock);
        }
    }

    /// Whom `thread` waits for, if it does.
    fn wait(&self, thread: u32) -> Option<Wait> {
        let &(lock, code) = self.asked.get(&thread)?;
        let &holder = self.holders.get(&lock)?.first()?;
        let is_abandoned = self.ended.contains(&holder);
        Some(Wait { thread, lock, code, holder, is_abandoned })
    }

    /// Threads that wait for each other, each for the next and the last for the first, or for one
    /// that has ended; those of the least number first.
    fn cycle(&self) -> Option<Vec<Wait>> {
        let mut threads: Vec<u32> = self.asked.keys().copied().collect();
        threads.sort_unstable();
        threads.into_iter().find_map(|first| {
            let mut waits = Vec::new();
            let mut thread = first;
            while let Some(wait) = self.wait(thread) {
                waits.push(wait);
                if wait.is_abandoned || wait.holder == first {
                    return Some(waits);
                }
                if waits.len() > self.asked.len() {
                    // A cycle, but not through the first.
                    return None;
                }
                thread = wait.holder;
            }
            None
        })
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
}

/// Looks from time to time whether anything still happens.
pub struct Watchdog {
    wait_graph: WaitGraph,
    timeout: Duration,
    drained: u64,
    since: Instant,
    is_stalled: bool,
}

impl Watchdog {
    /// Looks at what has not moved for `timeout`.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        let (drained, since) = (0, Instant::now());
        Self { wait_graph: WaitGraph::default(), timeout, drained, since, is_stalled: false }
    }

    /// Takes the next event, as it is drained.
    #[inline]
    pub fn step(&mut self, thread: u32, event: &Event) {
        self.wait_graph.step(thread, event);
    }

    /// Whether threads wait for each other for ever, as far as was seen.
    #[must_use]
    pub const fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    /// How long nothing has happened.
    #[must_use]
    pub fn idle(&self) -> Duration {
        self.since.elapsed()
    }

    /// Says, once, who waits for whom, when nothing has happened for long enough and threads wait
    /// for each other for ever. Source files below `base` are named relative to it.
    pub fn look(&mut self, collector: &Collector, base: &Path) -> Option<String> {
        let drained = collector.events();
        if drained != self.drained {
            self.drained = drained;
            self.since = Instant::now();
            self.is_stalled = false;
        }
        if self.is_stalled || self.idle() < self.timeout {
            return None;
        }
        let (place, waits) = self.wait_graph.cycle()?;
        self.is_stalled = true;
        let mut symbols = Symbols::new(base);
        for (number, text) in (0..).zip(collector.maps(place)) {
            symbols.add_map(number, &text);
        }
        symbols.select(self.wait_graph.processes[place].map);
        Some(describe(&waits, &mut symbols))
    }
}

/// Who waits for whom, in words; a fragment.
fn describe(waits: &[Wait], symbols: &mut Symbols) -> String {
    let name = |thread: u32| match thread {
        0 => "main".to_owned(),
        number => format!("T{number}"),
    };
    let mut parts: Vec<String> = Vec::new();
    for wait in waits {
        let lock = match symbols.data(wait.lock) {
            Some((global, offset)) => at_offset(&global, offset),
            None => format!("at {:#x}", wait.lock),
        };
        let place = match wait.code {
            0 => String::new(),
            code => format!(" ({})", symbols.location(code)),
        };
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
}
