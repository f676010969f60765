//! The state of a run, and one step of it.
//!
//! A thread that can go on stands at an instruction that makes an event; a step makes that event
//! and goes on to the next such instruction, or to the thread's end. What a thread computes in
//! between nobody else can see, so nothing is lost by doing it at once.
//!
//! A lock is owned and counted. A wait gives its lock back and starts waiting in one step, as real
//! ones do; a notify lets one of those wake that wait at that moment, and which one is for the
//! schedule to say.

mod condition;
mod step;

use std::hash::BuildHasher;
use std::sync::Arc;

use crate::code::{CellOf, Cells, Code, Instruction, Register};
use crate::observe::{Observer, ThreadNumber};
use crate::outcome::{Fault, FaultKind};
use condition::Condition;
use reweave_base::{FxBuildHasher, Id};

/// A run, stopped between two steps.
#[derive(Clone, Debug)]
pub(crate) struct Machine<'c> {
    pub(crate) code: &'c Code,
    pub(crate) memory: Vec<i64>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) faults: Vec<Fault>,
    /// The line of the assumption that failed, which ends the run.
    pub(crate) assumption: Option<u32>,
    /// Whether `if (*)` is a choice; else its body is always run.
    pub(crate) chooses: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Lock {
    pub(crate) owner: Option<ThreadNumber>,
    pub(crate) count: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) at: u32,
    pub(crate) registers: Vec<i64>,
    pub(crate) frames: Vec<u32>,
    /// The threads that a statement has started and not joined yet.
    pub(crate) children: Vec<ThreadNumber>,
    pub(crate) name: Arc<str>,
    /// A number for the name.
    pub(crate) identity: u64,
    pub(crate) forks_count: u32,
    pub(crate) parent: Option<ThreadNumber>,
    pub(crate) has_ended: bool,
    /// When it began to wait, if it waits.
    pub(crate) waits_since: Option<u64>,
}

impl Thread {
    /// Ends it, and gives back what it had.
    fn end(&mut self) {
        self.has_ended = true;
        (self.registers, self.frames, self.children) = (Vec::new(), Vec::new(), Vec::new());
    }

    /// Where it stands, and where it stands in the functions that called that one.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.at).chain(self.frames.iter().copied())
    }
}

/// What a step has given back, for which others may have waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Lock(u32),
    Condition(u32),
    Thread(ThreadNumber),
}

/// What a step changed of who can go on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stepped {
    pub(crate) freed: Option<Resource>,
    /// A wait also starts to wait for its condition.
    pub(crate) forked: Option<ThreadNumber>,
    pub(crate) has_ended: bool,
}

impl<'c> Machine<'c> {
    /// The start of a run of `code`.
    pub(crate) fn new<O: Observer>(code: &'c Code, chooses: bool, observer: &mut O) -> Self {
        let mut machine = Self {
            code,
            memory: code.memory.clone(),
            locks: vec![Lock::default(); code.locks_count as usize],
            conditions: vec![Condition::default(); code.conditions.len()],
            threads: Vec::new(),
            faults: Vec::new(),
            assumption: None,
            chooses,
        };
        for entry in &code.entries {
            let thread = machine.start(&entry.name, entry.address, None, observer);
            machine.advance(thread, observer);
        }
        machine
    }

    /// A new thread, which has not computed anything yet.
    fn start<O: Observer>(
        &mut self,
        name: &str,
        address: u32,
        parent: Option<ThreadNumber>,
        observer: &mut O,
    ) -> ThreadNumber {
        let number = self.threads.len() as ThreadNumber;
        observer.thread(number, name);
        self.threads.push(Thread {
            at: address,
            registers: self.code.registers.clone(),
            frames: Vec::new(),
            children: Vec::new(),
            name: Arc::from(name),
            identity: FxBuildHasher.hash_one(name),
            forks_count: 0,
            parent,
            has_ended: false,
            waits_since: None,
        });
        number
    }

    /// The instruction that `thread` makes its next event with.
    pub(crate) fn next(&self, thread: ThreadNumber) -> Instruction {
        self.code.instructions[self.threads[thread as usize].at as usize]
    }

    pub(crate) fn register(&self, thread: ThreadNumber, register: Register) -> i64 {
        self.threads[thread as usize].registers[register as usize]
    }

    /// What `thread` waits for, if it cannot take a step; none also for one that has ended.
    pub(crate) fn blocked_on(&self, thread: ThreadNumber) -> Option<Resource> {
        if self.threads[thread as usize].has_ended {
            return None;
        }
        match self.next(thread) {
            Instruction::Acquire { lock } => {
                let lock = self.lock_number(thread, lock)?;
                self.lock_blocks(thread, lock)
            }
            Instruction::AcquireAtomic => self.lock_blocks(thread, 0),
            Instruction::Wake { condition } => {
                let since = self.threads[thread as usize].waits_since?;
                let wakes = self.conditions[condition as usize].can_wake(thread, since);
                (!wakes).then_some(Resource::Condition(condition))
            }
            Instruction::Join { handle } => {
                self.join_blocks(self.register(thread, handle) as ThreadNumber)
            }
            Instruction::JoinChild { next } => {
                let next = self.register(thread, next) as usize;
                self.join_blocks(self.threads[thread as usize].children[next])
            }
            _ => None,
        }
    }

    fn lock_blocks(&self, thread: ThreadNumber, lock: u32) -> Option<Resource> {
        let owner = self.locks[lock as usize].owner;
        owner.is_some_and(|owner| owner != thread).then_some(Resource::Lock(lock))
    }

    fn join_blocks(&self, child: ThreadNumber) -> Option<Resource> {
        (!self.threads[child as usize].has_ended).then_some(Resource::Thread(child))
    }

    pub(crate) fn can_step(&self, thread: ThreadNumber) -> bool {
        !self.threads[thread as usize].has_ended && self.blocked_on(thread).is_none()
    }

    /// The cell that an access of `thread` goes to; none if the index is out of bounds.
    pub(crate) fn cell<I: Id>(
        &self,
        thread: ThreadNumber,
        cell: CellOf<I>,
        cells: &[Cells],
    ) -> Option<u32> {
        match cell {
            CellOf::Single(of) => Some(cells[of.index()].start),
            CellOf::Element(of, register) => {
                let Cells { start, length, .. } = cells[of.index()];
                let index = u32::try_from(self.register(thread, register)).ok()?;
                (index < length.unwrap_or(1)).then_some(start + index)
            }
        }
    }

    pub(crate) fn lock_number(
        &self,
        thread: ThreadNumber,
        lock: CellOf<reweave_lang::LockId>,
    ) -> Option<u32> {
        self.cell(thread, lock, &self.code.locks)
    }

    /// About how many words of memory this takes.
    pub(crate) fn words(&self) -> usize {
        let of_thread =
            |thread: &Thread| size_of::<Thread>() / size_of::<u64>() + thread.registers.len();
        self.memory.len() + 2 * self.locks.len() + self.threads.iter().map(of_thread).sum::<usize>()
    }

    /// Ends `thread` because of what the instruction it stands at cannot do.
    fn fail(&mut self, thread: ThreadNumber, kind: FaultKind) {
        let effect = self.code.effects[self.threads[thread as usize].at as usize];
        self.threads[thread as usize].end();
        let name = self.threads[thread as usize].name.to_string();
        self.faults.push(Fault { thread: name, kind, line: effect.line, span: effect.span });
    }

    fn out_of_bounds<I: Id>(
        &self,
        thread: ThreadNumber,
        cell: CellOf<I>,
        cells: &[Cells],
    ) -> FaultKind {
        let (of, index) = match cell {
            CellOf::Single(of) => (of, 0),
            CellOf::Element(of, register) => (of, self.register(thread, register)),
        };
        let Cells { name, length, .. } = &cells[of.index()];
        FaultKind::OutOfBounds { name: name.clone(), index, length: length.unwrap_or(1) }
    }
}
