//! How the run ended, and where its threads were then.

use std::io;

use reweave_base::Id;
use reweave_runtime::shared::failure;
use reweave_runtime::wire::{Event, Kind};
use reweave_trace::{EndKind, EventId, Marker, Op, RunEnd, ThreadEnd};

use super::scan::MAIN;
use super::{Current, Pass};
use crate::collect::Failure;
use crate::watchdog::{Awaited, Wait};

/// What is known from outside of how a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// How the program failed by itself.
    pub failure: Option<Failure>,
    /// Whether it was ended since no thread could go on.
    pub is_hang: bool,
    /// Whether it was ended before it ended by itself.
    pub is_stopped: bool,
}

/// The name of the signal `number`.
fn signal_name(number: u64) -> String {
    let names = [
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (11, "SIGSEGV"),
        (31, "SIGSYS"),
    ];
    let known = names.iter().find(|&&(known, _)| known == number);
    known.map_or_else(|| format!("signal {number}"), |&(_, name)| name.to_owned())
}

const ABORT: u64 = 6;

impl Pass<'_> {
    /// Says how the run ended: what the last events show, and `exit` where they show nothing.
    pub fn end(&mut self, exit: &Exit) -> io::Result<()> {
        let run_end = match (&exit.failure, self.waits.cycle()) {
            (Some(failure), _) => self.failed(failure)?,
            (None, Some(waits)) => self.deadlocked(&waits)?,
            (None, None) => match self.waits.stuck() {
                Some(threads) if exit.is_hang => self.hung(&threads)?,
                _ => {
                    let kind = if exit.is_stopped { EndKind::Stopped } else { EndKind::Exited };
                    RunEnd {
                        kind,
                        text: String::new(),
                        threads: self.still_running(),
                        misuses: Vec::new(),
                    }
                }
            },
        };
        // Where another thread ended the program while the first one waited, that may have been about to join more. The
        // runtime's own wait at the end is at no code of the program.
        let waits = self.waits.awaited(MAIN).is_some_and(|(_, code)| code != 0);
        let is_whole = run_end.kind == EndKind::Exited && !waits;
        let misuses = self.take_misuses(is_whole);
        self.sink.end(RunEnd { misuses, ..run_end });
        Ok(())
    }

    /// The threads that had not ended, or not by themselves, where they did anything that is kept.
    fn still_running(&self) -> Vec<ThreadEnd> {
        let is_running =
            |&number: &u32| self.waits.is_living(number) || self.misuses.is_cancelled(number);
        let mut numbers: Vec<u32> = self.places.keys().copied().filter(is_running).collect();
        numbers.sort_unstable();
        let ends = numbers.into_iter().filter_map(|number| {
            let event = self.threads[*self.places.get(&number)?].last_event?;
            Some(ThreadEnd { event, state: "was still running".to_owned() })
        });
        ends.collect()
    }

    fn failed(&mut self, failure: &Failure) -> io::Result<RunEnd> {
        let is_abort = matches!(failure.signal, ABORT | failure::PANIC);
        let kind = if is_abort { EndKind::FailedAssertion } else { EndKind::Crash };
        let state = match failure.signal {
            failure::PANIC => "panicked".to_owned(),
            ABORT if failure.text.is_empty() => "aborted".to_owned(),
            ABORT => "failed an assertion".to_owned(),
            signal => format!("was ended by {}", signal_name(signal)),
        };
        // Where the thread is not known, the one that did something last is as good a guess as any.
        let number = failure.thread.or(self.last_thread).unwrap_or(MAIN);
        let threads = match self.last_event(number, failure.code, false)? {
            Some(event) => vec![ThreadEnd { event, state }],
            // It was joined before it was known that this ends the program.
            None => {
                let failed = self.thread_id(number);
                let failed = self.sink.names().threads.name(failed);
                let state = format!("ended since {failed} {state}");
                let event = self.last_event(MAIN, 0, false)?;
                event.map(|event| ThreadEnd { event, state }).into_iter().collect()
            }
        };
        let text = match failure.text.trim() {
            "" => signal_name(failure.signal),
            text => text.to_owned(),
        };
        Ok(RunEnd { kind, text, threads, misuses: Vec::new() })
    }

    fn deadlocked(&mut self, waits: &[Wait]) -> io::Result<RunEnd> {
        let kind = match waits {
            _ if waits.iter().any(|wait| wait.is_abandoned) => EndKind::AbandonedLock,
            [wait] if wait.holder == wait.thread => EndKind::SelfDeadlock,
            _ => EndKind::Deadlock,
        };
        let mut threads = Vec::new();
        for wait in waits {
            let lock = self.lock(wait.lock);
            let lock = self.sink.names().locks.name(lock).to_owned();
            let holder = self.thread_id(wait.holder);
            let holder = self.sink.names().threads.name(holder);
            let state = match wait {
                Wait { is_abandoned: true, .. } => {
                    format!("waits for lock {lock}, which {holder} held when it ended")
                }
                wait if wait.holder == wait.thread => {
                    format!("waits for lock {lock}, which it holds itself")
                }
                _ => format!("waits for lock {lock}, which {holder} holds"),
            };
            let event = self.last_event(wait.thread, wait.code, true)?;
            threads.extend(event.map(|event| ThreadEnd { event, state }));
        }
        Ok(RunEnd { kind, text: String::new(), threads, misuses: Vec::new() })
    }

    fn hung(&mut self, stuck: &[u32]) -> io::Result<RunEnd> {
        let mut threads = Vec::new();
        for &number in stuck {
            let Some((awaited, code)) = self.waits.awaited(number) else { continue };
            let state = self.state(awaited);
            let is_event =
                matches!(awaited, Awaited::Lock(_) | Awaited::Condition(_) | Awaited::Barrier(_));
            let event = self.last_event(number, code, is_event)?;
            threads.extend(event.map(|event| ThreadEnd { event, state }));
        }
        Ok(RunEnd { kind: EndKind::Hang, text: String::new(), threads, misuses: Vec::new() })
    }

    /// What a thread waits for, in the words of the trace.
    fn state(&mut self, awaited: Awaited) -> String {
        match awaited {
            Awaited::Join(Some(thread)) => {
                let thread = self.thread_id(thread as u32);
                format!("waits for {} to end", self.sink.names().threads.name(thread))
            }
            _ => awaited.words(&mut |address| match awaited {
                Awaited::Lock(_) => {
                    let lock = self.lock(address);
                    self.sink.names().locks.name(lock).to_owned()
                }
                Awaited::Condition(_) => {
                    let condition = self.condition(address);
                    self.sink.names().conditions.name(condition).to_owned()
                }
                Awaited::Barrier(_) => {
                    let barrier = self.barrier(address);
                    self.sink.names().barriers.name(barrier).to_owned()
                }
                _ => {
                    let semaphore = self.semaphore(address);
                    self.sink.names().semaphores.name(semaphore).to_owned()
                }
            }),
        }
    }

    /// The last event of the thread `number`, which is at `code`: what it did last if that is
    /// `announced` to be where it waits, or else one that is added for the place.
    pub fn last_event(
        &mut self,
        number: u32,
        code: u64,
        announced: bool,
    ) -> io::Result<Option<EventId>> {
        let place = self.thread(number);
        let last = self.threads[place].last_event;
        if announced && last.is_some() {
            return Ok(last);
        }
        let near = self.threads[place].stack.inside();
        let site = self.site(place, code, near);
        let event = Event::new(Kind::Block, 0, code);
        let mut current = Current {
            event,
            thread: place,
            number,
            place: self.summary.recorded,
            occurrence: 0,
            site: Some(site),
            near: None,
            origin: None,
        };
        let thread = self.thread_id(number);
        let op = Op::Marker(Marker::Branch);
        // A thread that waits on a condition does nothing until it is woken.
        if self.rules.step(thread, op).is_err() {
            return Ok(last);
        }
        self.write(&mut current, thread, op, None)?;
        Ok(self.threads[place].last_event)
    }
}

/// The event that is written next.
pub fn next_event(count: u64) -> Option<EventId> {
    usize::try_from(count).ok().filter(|&count| count < EventId::COUNT_MAX).map(EventId::from_index)
}
