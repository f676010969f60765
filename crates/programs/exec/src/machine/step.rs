//! One step: an event, and what the thread computes after it.

use reweave_lang::{GlobalId, LockId};

use super::{Machine, Resource, Stepped};
use crate::code::{CellOf, Code, Instruction, Register};
use crate::observe::{Happened, Observer, ThreadNumber};
use crate::outcome::FaultKind;

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
                self.tell(thread, Happened::Let, Some(value), observer);
                Ok(())
            }
            Instruction::Branch { condition, otherwise } => {
                let goes_on = self.register(thread, condition) != 0;
                let what = Happened::Branch { opens: true };
                self.tell(thread, what, Some(i64::from(goes_on)), observer);
                self.threads[thread as usize].at += 1;
                if !goes_on {
                    self.threads[thread as usize].at = otherwise;
                }
                self.advance(thread, observer);
                return self.ended(thread, stepped);
            }
            Instruction::Guard { flag } => {
                let value = self.register(thread, flag);
                self.tell(thread, Happened::Branch { opens: false }, Some(value), observer);
                Ok(())
            }
            Instruction::Read { .. }
            | Instruction::Write { .. }
            | Instruction::CompareAndSwap { .. }
            | Instruction::FetchAdd { .. } => self.access(thread, instruction, observer),
            Instruction::Assert { condition } => {
                let holds = self.register(thread, condition) != 0;
                let what = Happened::Branch { opens: false };
                self.tell(thread, what, Some(i64::from(holds)), observer);
                if holds { Ok(()) } else { Err(FaultKind::Assertion) }
            }
            Instruction::Assume { condition } => {
                let holds = self.register(thread, condition) != 0;
                let what = Happened::Branch { opens: false };
                self.tell(thread, what, Some(i64::from(holds)), observer);
                if !holds {
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
        self.ended(thread, stepped)
    }

    fn ended(&self, thread: ThreadNumber, mut stepped: Stepped) -> Stepped {
        stepped.has_ended = self.threads[thread as usize].has_ended;
        stepped
    }

    fn line(&self, thread: ThreadNumber) -> u32 {
        self.code.effects[self.threads[thread as usize].at as usize].line
    }

    fn tell<O: Observer>(
        &self,
        thread: ThreadNumber,
        what: Happened,
        value: Option<i64>,
        observer: &mut O,
    ) {
        observer.event(thread, self.threads[thread as usize].at, what, value);
    }

    fn set(&mut self, thread: ThreadNumber, register: Register, value: i64) {
        self.threads[thread as usize].registers[register as usize] = value;
    }

    fn global(&self, thread: ThreadNumber, cell: CellOf<GlobalId>) -> Result<u32, FaultKind> {
        let cells = &self.code.cells;
        self.cell(thread, cell, cells).ok_or_else(|| self.out_of_bounds(thread, cell, cells))
    }

    fn lock(&self, thread: ThreadNumber, lock: CellOf<LockId>) -> Result<u32, FaultKind> {
        let locks = &self.code.locks;
        self.cell(thread, lock, locks).ok_or_else(|| self.out_of_bounds(thread, lock, locks))
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
                self.tell(thread, Happened::Read(cell), Some(value), observer);
                self.set(thread, to, value);
            }
            Instruction::Write { cell, from } => {
                let cell = self.global(thread, cell)?;
                let value = self.register(thread, from);
                self.memory[cell as usize] = value;
                self.tell(thread, Happened::Write(cell), Some(value), observer);
            }
            Instruction::CompareAndSwap { to, cell, old, new } => {
                let cell = self.global(thread, cell)?;
                let seen = self.memory[cell as usize];
                let swaps = seen == self.register(thread, old);
                if swaps {
                    let new = self.register(thread, new);
                    self.memory[cell as usize] = new;
                    self.tell(thread, Happened::AtomicUpdate(cell), Some(new), observer);
                } else {
                    self.tell(thread, Happened::AtomicRead(cell), Some(seen), observer);
                }
                self.set(thread, to, i64::from(swaps));
            }
            Instruction::FetchAdd { to, cell, amount } => {
                let cell = self.global(thread, cell)?;
                let seen = self.memory[cell as usize];
                let sum = seen.wrapping_add(self.register(thread, amount));
                self.memory[cell as usize] = sum;
                self.tell(thread, Happened::AtomicUpdate(cell), Some(sum), observer);
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
            Instruction::AcquireAtomic => self.acquire(thread, 0, observer),
            Instruction::Release { lock } => {
                let lock = self.lock(thread, lock)?;
                self.release(thread, lock, stepped, observer)?;
            }
            Instruction::ReleaseAtomic => self.release(thread, 0, stepped, observer)?,
            Instruction::Wait { condition, lock } => {
                let lock = self.lock(thread, lock)?;
                self.wait(thread, condition, lock, stepped, observer)?;
            }
            Instruction::Wake { condition } => {
                let since = self.threads[thread as usize].waits_since.take();
                self.conditions[condition as usize].wake(thread, since.unwrap_or(0));
                self.tell(thread, Happened::Wake(condition), None, observer);
            }
            Instruction::Notify { condition } => {
                self.conditions[condition as usize].notify();
                stepped.freed = Some(Resource::Condition(condition));
                self.tell(thread, Happened::Notify(condition), None, observer);
            }
            Instruction::NotifyAll { condition } => {
                self.conditions[condition as usize].notify_all();
                stepped.freed = Some(Resource::Condition(condition));
                self.tell(thread, Happened::NotifyAll(condition), None, observer);
            }
            Instruction::BeginBlock { block } => {
                self.tell(thread, Happened::Begin(block), None, observer);
            }
            Instruction::EndBlock { block } => {
                self.tell(thread, Happened::End(block), None, observer);
            }
            _ => stepped.forked = self.fork_or_join(thread, instruction, observer),
        }
        Ok(())
    }

    fn acquire<O: Observer>(&mut self, thread: ThreadNumber, lock: u32, observer: &mut O) {
        let state = &mut self.locks[lock as usize];
        state.owner = Some(thread);
        state.count += 1;
        self.tell(thread, Happened::Acquire(lock), None, observer);
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
            return match self.chooses {
                true => Ok(()),
                false => Err(FaultKind::NotHeld(self.code.lock_name(lock))),
            };
        }
        let state = &mut self.locks[lock as usize];
        state.count -= 1;
        if state.count == 0 {
            state.owner = None;
            stepped.freed = Some(Resource::Lock(lock));
        }
        self.tell(thread, Happened::Release(lock), None, observer);
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
        self.tell(thread, Happened::Wait(condition), None, observer);
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
                self.tell(thread, Happened::Join(child), None, observer);
                return None;
            }
            Instruction::JoinChild { next } => {
                let place = self.register(thread, next);
                let child = self.threads[thread as usize].children[place as usize];
                self.set(thread, next, place + 1);
                self.tell(thread, Happened::Join(child), None, observer);
                return None;
            }
            other => unreachable!("{other:?} makes no event of its own"),
        };
        self.tell(thread, Happened::Fork(child), None, observer);
        self.advance(child, observer);
        Some(child)
    }

    /// Runs `thread` up to the next instruction that makes an event, or to its end.
    pub(super) fn advance<O: Observer>(&mut self, thread: ThreadNumber, observer: &mut O) {
        let code = self.code;
        let chooses = self.chooses;
        let state = &mut self.threads[thread as usize];
        let mut passed = 0;
        loop {
            // Calls of calls can go on for ever, as far as anyone would wait.
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
        use reweave_base::Id;
        self.functions[function.index()]
    }

    /// The name of a lock, as traces have it.
    pub(crate) fn lock_name(&self, lock: u32) -> String {
        if lock == 0 {
            return "atomic".to_owned();
        }
        element_name(&self.locks, lock)
    }

    /// The name of a cell, as traces have it.
    pub(crate) fn cell_name(&self, cell: u32) -> String {
        element_name(&self.cells, cell)
    }
}

fn element_name(cells: &[crate::code::Cells], number: u32) -> String {
    let place = cells.partition_point(|cells| cells.start <= number) - 1;
    let crate::code::Cells { name, start, length } = &cells[place];
    match length {
        Some(_) => format!("{name}[{}]", number - start),
        None => name.clone(),
    }
}
