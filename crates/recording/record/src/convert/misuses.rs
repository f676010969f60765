//! What a program must not do with mutexes, conditions, threads, memory and descriptors, and did.
//!
//! The runtime looks at a mutex before it is released, waited with or destroyed, and marks what is wrong; it is
//! believed where the events say the same. A thread that ended and that nobody joined or detached is a leak,
//! if a program that was recorded created it.

use std::collections::BTreeMap;
use std::io;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, detach, flag};
use reweave_trace::{EventId, LockId, Marker, Misuse, MisuseKind, Op};

use super::names::thread_name;
use super::{Current, Pass};
use crate::shadow::Access;

/// How many are kept: more of them say nothing new.
const MISUSES_MAX: usize = 1000;

/// What is known of misuse so far.
#[derive(Default)]
pub struct Misuses {
    found: Vec<Misuse>,
    /// Where each lock was acquired last.
    acquires: FxHashMap<LockId, EventId>,
    /// Where threads were created that nobody has joined or detached yet.
    forks: BTreeMap<u32, EventId>,
    ended: FxHashSet<u32>,
    /// Who freed the memory at an address that is freed again, who destroyed a lock, and at which event.
    freed: FxHashMap<u64, (u32, Option<EventId>)>,
    /// The same of memory that is accessed later, by when it was freed.
    freed_then_used: FxHashMap<u64, (u32, Option<EventId>)>,
    destroyed: FxHashMap<u64, (u32, Option<EventId>, LockId)>,
    cancelled: FxHashSet<u32>,
    /// What was done to threads that are joined or detached: whether they were joined, by whom, and at which event.
    released: FxHashMap<u32, (bool, u32, Option<EventId>)>,
}

impl Misuses {
    /// `lock` was acquired at `event`.
    pub fn acquired(&mut self, lock: LockId, event: Option<EventId>) {
        self.acquires.extend(event.map(|event| (lock, event)));
    }

    /// A thread is created at `event`.
    pub fn fork(&mut self, current: &Current, event: Option<EventId>) {
        // Members of teams and tasks of OpenMP are not created by the program.
        if current.event.flags & (flag::MEMBER | flag::TASK) == 0 {
            self.forks.extend(event.map(|event| (current.event.address as u32, event)));
        }
    }

    /// Whether the thread `number` was to end before its time.
    pub fn is_cancelled(&self, number: u32) -> bool {
        self.cancelled.contains(&number)
    }

    /// The thread `number` was joined, or detached, by another at an event that may be known.
    pub fn release(&mut self, number: u32, is_joined: bool, (by, event): (u32, Option<EventId>)) {
        self.forks.remove(&number);
        self.released.insert(number, (is_joined, by, event));
    }

    /// Whether nobody has joined or detached the thread `number` yet.
    pub fn is_joinable(&self, number: u32) -> bool {
        self.forks.contains_key(&number)
    }

    /// The thread `number` ended.
    pub fn end(&mut self, number: u32) {
        self.ended.insert(number);
    }

    /// Memory is freed at `event` that will be freed again.
    pub fn freed(&mut self, current: &Current, event: Option<EventId>) {
        self.freed.insert(current.event.address, (current.number, event));
    }

    /// Memory may have been allocated out of sight that was freed before.
    pub fn allocated_unseen(&mut self, event: &Event) {
        match event.extra {
            Some(0) => self.freed.clear(),
            Some(_) => _ = self.freed.remove(&event.address),
            None => {}
        }
    }

    /// Memory is freed at `event` and `time` that will be accessed.
    pub fn freed_then_used(&mut self, current: &Current, event: Option<EventId>, time: u64) {
        self.freed_then_used.insert(time, (current.number, event));
    }

    /// `lock` is destroyed at `event`, if that is known.
    pub fn destroyed(&mut self, current: &Current, event: Option<EventId>, lock: Option<LockId>) {
        let address = current.event.address;
        match lock {
            Some(lock) => _ = self.destroyed.insert(address, (current.number, event, lock)),
            None => _ = self.destroyed.remove(&address),
        }
    }

    fn add(&mut self, misuse: Misuse) {
        if self.found.len() < MISUSES_MAX {
            self.found.push(misuse);
        }
    }
}

impl Pass<'_> {
    /// Nobody is to join a thread, or it is to end: then it might have done more. Or it is given a name.
    pub fn detach(&mut self, by: u32, event: &Event) -> io::Result<()> {
        let number = event.address as u32;
        if let Some(name) = event.given_name() {
            let place = self.thread(number);
            self.threads[place].given_name = thread_name(&name);
        } else if event.extra == Some(detach::CANCELLED) {
            self.misuses.cancelled.insert(number);
            // So that it is known even if it did nothing.
            self.last_event(number, 0, true)?;
        } else {
            self.misuses.release(number, false, (by, None));
        }
        Ok(())
    }

    /// A thread that does not hold `lock` releases it, or `does` something else with it.
    pub fn misuse_by_stranger(
        &mut self,
        current: &mut Current,
        lock: LockId,
        does: &str,
    ) -> io::Result<()> {
        if current.event.flags & flag::MISUSE == 0 {
            return Ok(());
        }
        let is_others = current.event.flags & flag::TRY != 0;
        let holder = self.exclusive_holder(lock);
        if is_others != holder.is_some() {
            // The holder acquired it out of sight, or released it so.
            return Ok(());
        }
        let kind = match (current.event.kind, holder) {
            (Kind::Wait, _) => MisuseKind::WaitWithoutLock,
            (_, None) => MisuseKind::ReleaseNotHeld,
            (_, Some(_)) => MisuseKind::ReleaseOfOthers,
        };
        let who = match holder {
            Some(number) => {
                let holder = self.thread_id(number);
                format!("which {} holds", self.sink.names().threads.name(holder))
            }
            None => "which nobody holds".to_owned(),
        };
        let text = format!("{does} {}, {who}", self.sink.names().locks.name(lock));
        let other = holder.and_then(|_| self.misuses.acquires.get(&lock).copied());
        self.add_misuse(current, kind, other, text)
    }

    /// A mutex is destroyed while a thread holds it.
    pub fn misuse_of_destroyed(&mut self, current: &mut Current) -> io::Result<()> {
        let event = current.event;
        if event.flags & flag::MISUSE == 0 {
            return Ok(());
        }
        let lock = self.lock(event.address);
        let Some(holder) = self.exclusive_holder(lock) else { return Ok(()) };
        let holder = self.thread_id(holder);
        let names = self.sink.names();
        let (lock_name, holder) = (names.locks.name(lock), names.threads.name(holder));
        let text = format!("destroys {lock_name}, which {holder} holds");
        let other = self.misuses.acquires.get(&lock).copied();
        self.add_misuse(current, MisuseKind::DestroyHeld, other, text)
    }

    /// A thread asks for a lock that another has destroyed.
    pub fn use_of_destroyed(&mut self, current: &mut Current) -> io::Result<()> {
        let destroyed = self.misuses.destroyed.get(&current.event.address);
        let Some(&(by, other, lock)) = destroyed.filter(|(by, ..)| *by != current.number) else {
            return Ok(());
        };
        let by = self.thread_id(by);
        let names = self.sink.names();
        let (lock, by) = (names.locks.name(lock), names.threads.name(by));
        let text = format!("asks for {lock}, which {by} has destroyed");
        self.add_misuse(current, MisuseKind::UseDestroyed, other, text)
    }

    /// A thread uses the descriptor `number`, which another has closed, at an event that may be known.
    pub fn misuse_of_closed(
        &mut self,
        current: &mut Current,
        number: u32,
        (by, other): (u32, Option<EventId>),
    ) -> io::Result<()> {
        let by = self.thread_id(by);
        let by = self.sink.names().threads.name(by);
        let text = format!("uses descriptor {number}, which {by} has closed");
        self.add_misuse(current, MisuseKind::UseClosed, other, text)
    }

    /// A thread uses the handle of the thread `number`, which was joined or detached, or another is about to join.
    pub fn misuse_of_joined(&mut self, current: &mut Current, number: u32) -> io::Result<()> {
        let flags = current.event.flags;
        let released = self.misuses.released.get(&number).copied();
        let is_about_to = flags & (flag::ASKED | flag::OUT) != 0;
        if released.is_none() && !is_about_to {
            return Ok(());
        }
        let thread = self.thread_id(number);
        let by = released.map(|(_, by, _)| self.thread_id(by));
        let names = &self.sink.names().threads;
        let name = names.name(thread);
        let does = match (flags & flag::ASKED != 0, flags & flag::OUT != 0) {
            (true, _) => format!("joins {name}"),
            (_, true) => format!("detaches {name}"),
            _ => format!("uses the handle of {name}"),
        };
        let (why, other) = match (released, by) {
            (Some((true, _, event)), Some(by)) => {
                (format!("which {} has joined", names.name(by)), event)
            }
            (Some((_, _, event)), _) => ("which is detached".to_owned(), event),
            _ => ("which another thread joins".to_owned(), None),
        };
        self.add_misuse(current, MisuseKind::UseJoined, other, format!("{does}, {why}"))
    }

    /// A thread frees memory that was freed.
    pub fn misuse_of_freed(&mut self, current: &mut Current) -> io::Result<()> {
        let event = current.event;
        if event.kind != Kind::Free || event.flags & flag::MISUSE == 0 {
            return Ok(());
        }
        let Some(&(by, other)) = self.misuses.freed.get(&event.address) else { return Ok(()) };
        let by = self.thread_id(by);
        let text = format!("frees memory that {} has freed", self.sink.names().threads.name(by));
        self.add_misuse(current, MisuseKind::DoubleFree, other, text)
    }

    /// A thread accesses memory that was freed at `time`.
    pub fn use_of_freed(&mut self, current: &mut Current, time: u64) -> io::Result<()> {
        let Some(&(by, other)) = self.misuses.freed_then_used.get(&time) else { return Ok(()) };
        let by = self.thread_id(by);
        let writes = Access::new(&current.event).is_some_and(|access| access.writes);
        let does = if writes { "writes to" } else { "reads" };
        let text = format!("{does} memory that {} has freed", self.sink.names().threads.name(by));
        self.add_misuse(current, MisuseKind::UseFreed, other, text)
    }

    /// A handler of a signal is about to call what it must not.
    pub fn misuse_in_handler(&mut self, current: &mut Current) -> io::Result<()> {
        let text = "calls what is not async-signal-safe in a handler of a signal".to_owned();
        self.add_misuse(current, MisuseKind::UnsafeInHandler, None, text)
    }

    /// Adds a misuse at the place of `current`, which gets an event for it.
    fn add_misuse(
        &mut self,
        current: &mut Current,
        kind: MisuseKind,
        other: Option<EventId>,
        text: String,
    ) -> io::Result<()> {
        self.emit(current, Op::Marker(Marker::Branch), None)?;
        if let Some(event) = self.threads[current.thread].last_event {
            self.misuses.add(Misuse { kind, event, other, text });
        }
        Ok(())
    }

    /// All that was found, when the run is over. Threads of a run that `is_whole` must have been joined or
    /// detached if they ended.
    pub fn take_misuses(&mut self, is_whole: bool) -> Vec<Misuse> {
        let Misuses { forks, ended, .. } = &mut self.misuses;
        let leaks = std::mem::take(forks).into_iter();
        let leaks: Vec<(u32, EventId)> =
            leaks.filter(|(number, _)| is_whole && ended.contains(number)).collect();
        for (number, event) in leaks {
            let thread = self.thread_id(number);
            let name = self.sink.names().threads.name(thread);
            let text = format!("creates {name}, which ends and is neither joined nor detached");
            let other = self.places.get(&number).and_then(|&place| self.threads[place].last_event);
            self.misuses.add(Misuse { kind: MisuseKind::ThreadLeak, event, other, text });
        }
        std::mem::take(&mut self.misuses.found)
    }
}
