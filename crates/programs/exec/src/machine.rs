//! The state of a run, and one step of it.
//!
//! A thread that can go on stands at an instruction that makes an event; a step makes that event
//! and goes on to the next such instruction, or to the thread's end. What a thread computes in
//! between nobody else can see, so nothing is lost by doing it at once.
//!
//! A lock is owned and counted. A wait releases its lock and starts waiting in one step, as real
//! ones do; a notify lets one of those wake that wait at that moment, and which one is for the
//! schedule to say.

use std::hash::BuildHasher;
use std::sync::Arc;

use reweave_base::{FxBuildHasher, Id};
use reweave_trace::OpKind;

use crate::code::{CellOf, Cells, Code, Instruction, Register};
use crate::observe::{Made, Observer, ThreadNumber};
use crate::outcome::{Fault, FaultKind};

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
    /// Ends it, and releases what it had.
    fn end(&mut self) {
        self.has_ended = true;
        (self.registers, self.frames, self.children) = (Vec::new(), Vec::new(), Vec::new());
    }

    /// Where it stands, and where it stands in the functions that called that one.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.at).chain(self.frames.iter().copied())
    }
}

/// What a step has released, for which others may have waited.
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
    pub(crate) forked: Option<ThreadNumber>,
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
    pub(crate) fn cell(&self, thread: ThreadNumber, cell: CellOf, cells: &[Cells]) -> Option<u32> {
        match cell {
            CellOf::Single(of) => Some(cells[of as usize].start),
            CellOf::Element(of, register) => {
                let Cells { start, length, .. } = cells[of as usize];
                let index = u32::try_from(self.register(thread, register)).ok()?;
                (index < length.unwrap_or(1)).then_some(start + index)
            }
        }
    }

    pub(crate) fn lock_number(&self, thread: ThreadNumber, lock: CellOf) -> Option<u32> {
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

    /// The same, or what is wrong with the index.
    fn cell_in_bounds(
        &self,
        thread: ThreadNumber,
        cell: CellOf,
        cells: &[Cells],
    ) -> Result<u32, FaultKind> {
        self.cell(thread, cell, cells).ok_or_else(|| {
            let (of, index) = match cell {
                CellOf::Single(of) => (of, 0),
                CellOf::Element(of, register) => (of, self.register(thread, register)),
            };
            let Cells { name, length, .. } = &cells[of as usize];
            FaultKind::OutOfBounds { name: name.clone(), index, length: length.unwrap_or(1) }
        })
    }
}

// Condition variables: who may wake.

/// A condition variable, between two steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Condition {
    /// Counts waits and notifies, to tell which came first.
    clock: u64,
    /// Those that wait, with the time since when, in order of time.
    waiting: Vec<(u64, ThreadNumber)>,
    /// Notifies that have not woken anyone yet, each with its time.
    signals: Vec<u64>,
    /// Those that a notify of all lets wake.
    released: Vec<ThreadNumber>,
}

impl Condition {
    /// `thread` starts to wait; returns since when.
    fn wait(&mut self, thread: ThreadNumber) -> u64 {
        self.clock += 1;
        self.waiting.push((self.clock, thread));
        self.clock
    }

    /// One of those that wait now may wake, unless each of them may already.
    fn notify(&mut self) {
        self.clock += 1;
        if self.signals.len() < self.waiting.len() {
            self.signals.push(self.clock);
        }
    }

    /// All that wait now may wake.
    fn notify_all(&mut self) {
        self.clock += 1;
        self.signals.clear();
        self.released.extend(self.waiting.drain(..).map(|(_, thread)| thread));
    }

    /// Whether `thread`, which has waited since `since`, may wake.
    fn can_wake(&self, thread: ThreadNumber, since: u64) -> bool {
        self.signals.last().is_some_and(|&signal| signal > since) && self.is_waiting(thread)
            || self.released.contains(&thread)
    }

    fn is_waiting(&self, thread: ThreadNumber) -> bool {
        self.waiting.iter().any(|&(_, waiting)| waiting == thread)
    }

    /// `thread` wakes, by the first notify that can have woken it: a later one may be the only one
    /// for a thread that came later.
    fn wake(&mut self, thread: ThreadNumber, since: u64) {
        if let Some(place) = self.released.iter().position(|&released| released == thread) {
            self.released.remove(place);
            return;
        }
        if let Some(place) = self.signals.iter().position(|&signal| signal > since) {
            self.signals.remove(place);
        }
        self.waiting.retain(|&(_, waiting)| waiting != thread);
    }

    /// How many notifies have not woken anyone yet.
    pub(crate) fn signals_count(&self) -> usize {
        self.signals.len()
    }

    /// Those that wait or were let go all at once, each with how many of the notifies may wake it;
    /// more than that, and when it all happened, does not matter any more.
    pub(crate) fn standing(&self) -> impl Iterator<Item = (ThreadNumber, u64)> {
        let waiting = self.waiting.iter().map(|&(since, thread)| {
            let before = self.signals.partition_point(|&signal| signal < since);
            (thread, (self.signals.len() - before) as u64)
        });
        waiting.chain(self.released.iter().map(|&thread| (thread, u64::MAX)))
    }
}

// One step: an event, and what the thread computes after it.

/// How many instructions that make no event a thread may go through at once.
const PASSED_MAX: u32 = 1 << 24;

impl Machine<'_> {
    /// Makes the next event of `thread`, which can take a step.
    pub(crate) fn step<O: Observer>(&mut self, thread: ThreadNumber, observer: &mut O) -> Stepped {
        let mut stepped = Stepped::default();
        let instruction = self.next(thread);
        let result = match instruction {
            Instruction::Let { to, from } => {
                let value = self.register(thread, from);
                self.set(thread, to, value);
                self.report(thread, (OpKind::Let, to), Some(value), observer);
                Ok(())
            }
            Instruction::Branch { condition, otherwise } => {
                let goes_on = self.test(thread, condition, observer);
                let at = &mut self.threads[thread as usize].at;
                *at = if goes_on { *at + 1 } else { otherwise };
                self.advance(thread, observer);
                return stepped;
            }
            Instruction::Guard { flag } => {
                self.test(thread, flag, observer);
                Ok(())
            }
            Instruction::Read { .. }
            | Instruction::Write { .. }
            | Instruction::CompareAndSwap { .. }
            | Instruction::FetchAdd { .. } => self.access(thread, instruction, observer),
            Instruction::Assert { condition } => {
                let holds = self.test(thread, condition, observer);
                if holds { Ok(()) } else { Err(FaultKind::Assertion) }
            }
            Instruction::Assume { condition } => {
                if !self.test(thread, condition, observer) {
                    // What comes after it does not run, and so has no faults.
                    self.assumption = Some(self.line(thread));
                    return stepped;
                }
                Ok(())
            }
            _ => self.synchronize(thread, instruction, &mut stepped, observer),
        };
        match result {
            Ok(()) => {
                self.threads[thread as usize].at += 1;
                self.advance(thread, observer);
            }
            Err(kind) => self.fail(thread, kind),
        }
        stepped
    }

    fn line(&self, thread: ThreadNumber) -> u32 {
        self.code.effects[self.threads[thread as usize].at as usize].line
    }

    fn report<O: Observer>(
        &self,
        thread: ThreadNumber,
        what: Made,
        value: Option<i64>,
        observer: &mut O,
    ) {
        observer.event(thread, self.threads[thread as usize].at, what, value);
    }

    fn set(&mut self, thread: ThreadNumber, register: Register, value: i64) {
        self.threads[thread as usize].registers[register as usize] = value;
    }

    fn global(&self, thread: ThreadNumber, cell: CellOf) -> Result<u32, FaultKind> {
        self.cell_in_bounds(thread, cell, &self.code.cells)
    }

    fn lock(&self, thread: ThreadNumber, lock: CellOf) -> Result<u32, FaultKind> {
        self.cell_in_bounds(thread, lock, &self.code.locks)
    }

    /// Tests `condition`, which is an event.
    fn test<O: Observer>(
        &self,
        thread: ThreadNumber,
        condition: Register,
        observer: &mut O,
    ) -> bool {
        let holds = self.register(thread, condition) != 0;
        self.report(thread, (OpKind::Branch, 0), Some(i64::from(holds)), observer);
        holds
    }

    fn access<O: Observer>(
        &mut self,
        thread: ThreadNumber,
        instruction: Instruction,
        observer: &mut O,
    ) -> Result<(), FaultKind> {
        match instruction {
            Instruction::Read { to, cell } => {
                let cell = self.global(thread, cell)?;
                let value = self.memory[cell as usize];
                self.report(thread, (OpKind::Read, cell), Some(value), observer);
                self.set(thread, to, value);
            }
            Instruction::Write { cell, from } => {
                let cell = self.global(thread, cell)?;
                let value = self.register(thread, from);
                self.memory[cell as usize] = value;
                self.report(thread, (OpKind::Write, cell), Some(value), observer);
            }
            Instruction::CompareAndSwap { to, cell, old, new } => {
                let cell = self.global(thread, cell)?;
                let seen = self.memory[cell as usize];
                let swaps = seen == self.register(thread, old);
                if swaps {
                    let new = self.register(thread, new);
                    self.memory[cell as usize] = new;
                    self.report(thread, (OpKind::AtomicUpdate, cell), Some(new), observer);
                } else {
                    self.report(thread, (OpKind::AtomicRead, cell), Some(seen), observer);
                }
                self.set(thread, to, i64::from(swaps));
            }
            Instruction::FetchAdd { to, cell, amount } => {
                let cell = self.global(thread, cell)?;
                let seen = self.memory[cell as usize];
                let sum = seen.wrapping_add(self.register(thread, amount));
                self.memory[cell as usize] = sum;
                self.report(thread, (OpKind::AtomicUpdate, cell), Some(sum), observer);
                self.set(thread, to, seen);
            }
            other => unreachable!("{other:?} is no access"),
        }
        Ok(())
    }

    fn synchronize<O: Observer>(
        &mut self,
        thread: ThreadNumber,
        instruction: Instruction,
        stepped: &mut Stepped,
        observer: &mut O,
    ) -> Result<(), FaultKind> {
        match instruction {
            Instruction::Acquire { lock } => {
                let lock = self.lock(thread, lock)?;
                self.acquire(thread, lock, observer);
            }
            Instruction::Release { lock } => {
                let lock = self.lock(thread, lock)?;
                self.release(thread, lock, stepped, observer)?;
            }
            Instruction::Wait { condition, lock } => {
                let lock = self.lock(thread, lock)?;
                self.wait(thread, condition, lock, stepped, observer)?;
            }
            Instruction::Wake { condition } => {
                let since = self.threads[thread as usize].waits_since.take();
                self.conditions[condition as usize].wake(thread, since.unwrap_or(0));
                self.report(thread, (OpKind::Wake, condition), None, observer);
            }
            Instruction::Notify { condition } => {
                self.conditions[condition as usize].notify();
                stepped.freed = Some(Resource::Condition(condition));
                self.report(thread, (OpKind::Notify, condition), None, observer);
            }
            Instruction::NotifyAll { condition } => {
                self.conditions[condition as usize].notify_all();
                stepped.freed = Some(Resource::Condition(condition));
                self.report(thread, (OpKind::NotifyAll, condition), None, observer);
            }
            Instruction::BeginBlock { block } => {
                self.report(thread, (OpKind::Begin, block), None, observer);
            }
            Instruction::EndBlock { block } => {
                self.report(thread, (OpKind::End, block), None, observer);
            }
            _ => stepped.forked = self.fork_or_join(thread, instruction, observer),
        }
        Ok(())
    }

    fn acquire<O: Observer>(&mut self, thread: ThreadNumber, lock: u32, observer: &mut O) {
        let state = &mut self.locks[lock as usize];
        state.owner = Some(thread);
        state.count += 1;
        self.report(thread, (OpKind::Acquire, lock), None, observer);
    }

    fn release<O: Observer>(
        &mut self,
        thread: ThreadNumber,
        lock: u32,
        stepped: &mut Stepped,
        observer: &mut O,
    ) -> Result<(), FaultKind> {
        if self.locks[lock as usize].owner != Some(thread) {
            // A sequential program needs no locks, and an `if (*)` may have left the acquire out.
            return if self.chooses {
                Ok(())
            } else {
                Err(FaultKind::NotHeld(self.code.lock_name(lock)))
            };
        }
        let state = &mut self.locks[lock as usize];
        state.count -= 1;
        if state.count == 0 {
            state.owner = None;
            stepped.freed = Some(Resource::Lock(lock));
        }
        self.report(thread, (OpKind::Release, lock), None, observer);
        Ok(())
    }

    fn wait<O: Observer>(
        &mut self,
        thread: ThreadNumber,
        condition: u32,
        lock: u32,
        stepped: &mut Stepped,
        observer: &mut O,
    ) -> Result<(), FaultKind> {
        if self.locks[lock as usize].owner == Some(thread) && self.locks[lock as usize].count > 1 {
            return Err(FaultKind::HeldTwice(self.code.lock_name(lock)));
        }
        self.release(thread, lock, stepped, observer)?;
        let since = self.conditions[condition as usize].wait(thread);
        self.threads[thread as usize].waits_since = Some(since);
        self.report(thread, (OpKind::Wait, condition), None, observer);
        Ok(())
    }

    fn fork_or_join<O: Observer>(
        &mut self,
        thread: ThreadNumber,
        instruction: Instruction,
        observer: &mut O,
    ) -> Option<ThreadNumber> {
        let child = match instruction {
            Instruction::Fork { address, captured, handle } => {
                let parent = &mut self.threads[thread as usize];
                parent.forks_count += 1;
                let name = format!("{}.{}", parent.name, parent.forks_count);
                let child = self.start(&name, address, Some(thread), observer);
                for &register in &self.code.captured[captured.0 as usize..captured.1 as usize] {
                    let value = self.register(thread, register);
                    self.set(child, register, value);
                }
                match handle {
                    Some(handle) => self.set(thread, handle, i64::from(child)),
                    None => self.threads[thread as usize].children.push(child),
                }
                child
            }
            Instruction::ForkDeclared { thread: number } => {
                let entry = &self.code.later[number as usize];
                self.start(&entry.name, entry.address, Some(thread), observer)
            }
            Instruction::Join { handle } => {
                let child = self.register(thread, handle) as ThreadNumber;
                self.report(thread, (OpKind::Join, child), None, observer);
                return None;
            }
            Instruction::JoinChild { next } => {
                let place = self.register(thread, next);
                let child = self.threads[thread as usize].children[place as usize];
                self.set(thread, next, place + 1);
                self.report(thread, (OpKind::Join, child), None, observer);
                return None;
            }
            other => unreachable!("{other:?} makes no event of its own"),
        };
        self.report(thread, (OpKind::Fork, child), None, observer);
        self.advance(child, observer);
        Some(child)
    }

    /// Runs `thread` up to the next instruction that makes an event, or to its end.
    fn advance<O: Observer>(&mut self, thread: ThreadNumber, observer: &mut O) {
        let code = self.code;
        let chooses = self.chooses;
        let state = &mut self.threads[thread as usize];
        let mut passed = 0;
        loop {
            // Calls of calls can go on forever, as far as anyone would wait.
            passed += 1;
            if passed > PASSED_MAX {
                return self.fail(thread, FaultKind::TooLong);
            }
            match code.instructions[state.at as usize] {
                Instruction::Unary { operator, to, of } => {
                    state.registers[to as usize] = operator.apply(state.registers[of as usize]);
                }
                Instruction::Binary { operator, to, left, right } => {
                    let (left, right) =
                        (state.registers[left as usize], state.registers[right as usize]);
                    let Some(value) = operator.apply(left, right) else {
                        return self.fail(thread, FaultKind::DivisionByZero);
                    };
                    state.registers[to as usize] = value;
                }
                Instruction::Copy { to, from } => {
                    state.registers[to as usize] = state.registers[from as usize];
                }
                Instruction::Jump { target } => {
                    state.at = target;
                    continue;
                }
                Instruction::Enter { block, depth } => observer.enter(thread, block, depth),
                Instruction::Begin { position, depth } => observer.begin(thread, position, depth),
                Instruction::Call { function } => {
                    observer.call(thread, state.at);
                    state.frames.push(state.at + 1);
                    state.at = code.function(function);
                    continue;
                }
                Instruction::Return => {
                    observer.leave(thread);
                    state.at = state.frames.pop().expect("a function returns to its caller");
                    continue;
                }
                Instruction::CountChildren { to } => {
                    state.registers[to as usize] = state.children.len() as i64;
                }
                Instruction::WhileChildren { since, next, otherwise } => {
                    if state.registers[next as usize] as usize >= state.children.len() {
                        state.children.truncate(state.registers[since as usize] as usize);
                        state.at = otherwise;
                        continue;
                    }
                }
                Instruction::Optional { .. } if chooses => return,
                Instruction::Optional { .. } => {}
                Instruction::End => {
                    return state.end();
                }
                _ => return,
            }
            state.at += 1;
        }
    }

    /// Runs the body of the `if (*)` at which `thread` stands, or leaves it out.
    pub(crate) fn choose<O: Observer>(
        &mut self,
        thread: ThreadNumber,
        runs: bool,
        observer: &mut O,
    ) {
        let Instruction::Optional { otherwise } = self.next(thread) else {
            unreachable!("only an `if (*)` is a choice")
        };
        let state = &mut self.threads[thread as usize];
        state.at = if runs { state.at + 1 } else { otherwise };
        self.advance(thread, observer);
    }
}

impl Code {
    fn function(&self, function: reweave_lang::FunctionId) -> u32 {
        self.functions[function.index()]
    }

    /// The name of a lock, as traces have it.
    pub(crate) fn lock_name(&self, lock: u32) -> String {
        element_name(&self.locks, lock)
    }

    /// The name of a cell, as traces have it.
    pub(crate) fn cell_name(&self, cell: u32) -> String {
        element_name(&self.cells, cell)
    }
}

fn element_name(cells: &[Cells], number: u32) -> String {
    let place = cells.partition_point(|cells| cells.start <= number) - 1;
    let Cells { name, start, length } = &cells[place];
    match length {
        Some(_) => format!("{name}[{}]", number - start),
        None => name.clone(),
    }
}

#[cfg(test)]
mod condition_tests {
    use super::*;

    fn standing(condition: &Condition) -> Vec<(ThreadNumber, u64)> {
        condition.standing().collect()
    }

    #[test]
    fn a_notify_is_for_those_that_waited_before_it() {
        let (mut early, mut late) = (Condition::default(), Condition::default());
        let first = early.wait(0);
        early.notify();
        let second = early.wait(1);
        assert!(early.can_wake(0, first) && !early.can_wake(1, second));
        assert_eq!(standing(&early), [(0, 1), (1, 0)]);

        let first = late.wait(0);
        let second = late.wait(1);
        late.notify();
        assert!(late.can_wake(0, first) && late.can_wake(1, second));
        assert_eq!(standing(&late), [(0, 1), (1, 1)]);
        late.wake(1, second);
        assert!(!late.can_wake(0, first));
    }

    #[test]
    fn each_that_wakes_leaves_the_later_notifies_to_the_others() {
        let mut condition = Condition::default();
        let first = condition.wait(0);
        condition.notify();
        let second = condition.wait(1);
        condition.notify();
        condition.notify();
        assert_eq!(condition.signals_count(), 2, "a third has no one to wake");
        condition.wake(0, first);
        assert!(condition.can_wake(1, second));
        let third = condition.wait(2);
        assert!(!condition.can_wake(2, third));
        condition.notify_all();
        assert!(condition.can_wake(1, second) && condition.can_wake(2, third));
        assert_eq!(standing(&condition), [(1, u64::MAX), (2, u64::MAX)]);
    }
}
