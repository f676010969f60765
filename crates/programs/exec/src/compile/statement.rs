//! Statements, and the blocks they stand in.

use reweave_base::Id;
use reweave_lang::{BlockId, Capture, ExprId, LockId, Place, Range, Statement, StatementKind};
use reweave_trace::Binary;

use super::jump::Level;
use super::{Compiler, Spawned};
use crate::code::{Address, CellOf, Instruction, Register, Symbol, SymbolId};

impl Compiler<'_> {
    /// A block inside the one that is being compiled.
    fn block(&mut self, block: BlockId) {
        self.scope_depth += 1;
        self.statements(block);
        self.scope_depth -= 1;
    }

    /// The statements of `block`, at the present depth.
    pub(super) fn statements(&mut self, block: BlockId) {
        let (scope_depth, control_depth) = (self.scope_depth, self.control_depth);
        self.emit(Instruction::Enter { block, depth: scope_depth });
        self.levels.push(Level::Block { block, position: 0, scope_depth, control_depth });
        let program = self.program;
        for (number, statement) in program.blocks[block].statements.iter().enumerate() {
            if let Some(Level::Block { position, .. }) = self.levels.last_mut() {
                *position = number as u32;
            }
            self.emit(Instruction::Begin { position: number as u32, depth: scope_depth });
            self.scratch = 0;
            self.span = statement.span;
            self.statement(statement);
        }
        self.levels.pop();
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Set { local, value } => {
                let mark = self.here();
                let symbol = self.flatten(*value);
                self.assign(local.index() as Register, symbol, mark);
            }
            StatementKind::Store { place, value } => self.store(place, *value),
            StatementKind::If { condition, then, otherwise } => {
                let condition = self.flatten(*condition);
                self.if_statement(condition, *then, *otherwise);
            }
            StatementKind::Optional { body } => self.optional(*body),
            StatementKind::While { condition, body } => {
                let start = self.mark();
                let condition = self.flatten(*condition);
                let exit = self.branch(condition);
                self.loop_body(*body);
                let continued = start;
                self.emit(Instruction::Jump { target: start });
                self.end_loop(exit, continued);
            }
            StatementKind::For { range, body } => self.for_statement(range, *body),
            StatementKind::ForEachThread { range, body } => self.for_each_thread(range, body),
            StatementKind::Threads { bodies } => {
                let since = self.children_start();
                for body in bodies {
                    self.fork(body, None);
                }
                self.join_children(since);
            }
            StatementKind::Atomic { body } => {
                self.section(Instruction::AcquireAtomic, None, Instruction::ReleaseAtomic, *body);
            }
            StatementKind::Expect { body } => {
                let block = self.code.expected.len() as u32;
                let name = format!("expect:{}", self.source.line(statement.span.start));
                self.code.expected.push(name);
                let (begin, end) =
                    (Instruction::BeginBlock { block }, Instruction::EndBlock { block });
                self.section(begin, None, end, *body);
            }
            StatementKind::Sync { lock, body } => {
                let (lock, index) = self.lock(lock);
                let (begin, end) = (Instruction::Acquire { lock }, Instruction::Release { lock });
                self.section(begin, index, end, *body);
            }
            StatementKind::CompareAndSwap { .. } | StatementKind::FetchAdd { .. } => {
                self.atomic_update(&statement.kind);
            }
            StatementKind::Fork { local, body } => {
                self.fork(body, Some(local.index() as Register));
            }
            StatementKind::Skip => {}
            StatementKind::Return { value } => self.return_value(*value),
            StatementKind::Break => self.break_loop(),
            StatementKind::Continue => self.continue_loop(),
            StatementKind::Call { function, arguments } => self.call(*function, arguments),
            other => self.simple(other),
        }
    }

    fn store(&mut self, place: &Place, value: ExprId) {
        let (cell, index) = self.cell_before(place, &[value]);
        let value = self.flatten(value);
        let from = self.evaluate(value);
        let symbols: Vec<SymbolId> = index.into_iter().chain([value]).collect();
        let address = self.event(Instruction::Write { cell, from }, &symbols, None);
        let effect = self.effect(address);
        (effect.value, effect.index) = (Some(value), index);
    }

    fn optional(&mut self, body: BlockId) {
        let skip = self.emit(Instruction::Optional { otherwise: 0 });
        let (line, span) = (self.source.line(self.span.start), self.span);
        let effect = self.effect(skip);
        (effect.line, effect.span) = (line, span);
        self.block(body);
        let end = self.mark();
        self.set_target(skip, end);
    }

    /// Statements that are one event besides what their operands make.
    fn simple(&mut self, kind: &StatementKind) {
        match kind {
            StatementKind::Lock { lock } => {
                let (lock, index) = self.lock(lock);
                self.acquire(lock, index);
            }
            StatementKind::Unlock { lock } => {
                let (lock, index) = self.lock(lock);
                self.indexed(Instruction::Release { lock }, index);
            }
            StatementKind::Wait { condition, lock } => {
                let (lock, index) = self.lock(lock);
                let condition = condition.index() as u32;
                self.event(Instruction::Wait { condition, lock }, &[], None);
                self.event(Instruction::Wake { condition }, &[], None);
                self.acquire(lock, index);
            }
            StatementKind::Notify { condition } => {
                let condition = condition.index() as u32;
                self.event(Instruction::Notify { condition }, &[], None);
            }
            StatementKind::NotifyAll { condition } => {
                let condition = condition.index() as u32;
                self.event(Instruction::NotifyAll { condition }, &[], None);
            }
            StatementKind::Join { local } => {
                let handle = local.index() as Register;
                self.event(Instruction::Join { handle }, &[], None);
            }
            StatementKind::Assert { condition } => {
                let symbol = self.flatten(*condition);
                let condition = self.evaluate(symbol);
                let address = self.event(Instruction::Assert { condition }, &[symbol], None);
                self.effect(address).value = Some(symbol);
            }
            StatementKind::Assume { condition } => {
                let symbol = self.flatten(*condition);
                let condition = self.evaluate(symbol);
                let address = self.event(Instruction::Assume { condition }, &[symbol], None);
                self.effect(address).value = Some(symbol);
            }
            other => unreachable!("{other:?} is compiled elsewhere"),
        }
    }

    fn if_statement(&mut self, condition: SymbolId, then: BlockId, otherwise: Option<BlockId>) {
        let branch = self.branch(condition);
        self.control_depth += 1;
        self.block(then);
        match otherwise {
            Some(otherwise) => {
                let skip = self.emit(Instruction::Jump { target: 0 });
                let start = self.mark();
                self.set_target(branch, start);
                self.block(otherwise);
                let end = self.mark();
                self.set_target(skip, end);
            }
            None => {
                let end = self.mark();
                self.set_target(branch, end);
            }
        }
        self.control_depth -= 1;
    }

    /// The body of a loop whose test has just been emitted.
    fn loop_body(&mut self, body: BlockId) {
        let (scope_depth, control_depth) = (self.scope_depth, self.control_depth);
        let (breaks, continues) = (Vec::new(), Vec::new());
        self.levels.push(Level::Loop { scope_depth, control_depth, breaks, continues });
        self.control_depth += 1;
        self.block(body);
        self.control_depth -= 1;
    }

    /// Ends the loop whose test is at `exit`; what continues it goes to `continued`.
    fn end_loop(&mut self, exit: Address, continued: Address) {
        let end = self.mark();
        self.set_target(exit, end);
        if let Some(Level::Loop { breaks, continues, .. }) = self.levels.pop() {
            for jump in breaks {
                self.set_target(jump, end);
            }
            for jump in continues {
                self.set_target(jump, continued);
            }
        }
    }

    /// Gives a loop's variable its first value, and returns the register of the bound.
    fn start_range(&mut self, range: &Range) -> SymbolId {
        let mark = self.here();
        let from = self.flatten(range.from);
        self.assign(range.local.index() as Register, from, mark);
        let mark = self.here();
        let to = self.flatten(range.to);
        if let Symbol::Constant(_) = self.code.symbols[to as usize] {
            return to;
        }
        let bound = self.temporary("");
        self.assign(bound, to, mark);
        self.symbol(Symbol::Register(bound))
    }

    /// Tests whether the loop goes on.
    fn test_range(&mut self, range: &Range, bound: SymbolId) -> Address {
        let operator = if range.is_inclusive { Binary::LessEqual } else { Binary::Less };
        let local = self.symbol(Symbol::Register(range.local.index() as Register));
        let test = self.symbol(Symbol::Binary(operator, local, bound));
        self.branch(test)
    }

    fn count_on(&mut self, range: &Range) {
        let register = range.local.index() as Register;
        let (local, one) = (self.symbol(Symbol::Register(register)), self.constant_symbol(1));
        let next = self.symbol(Symbol::Binary(Binary::Add, local, one));
        self.assign(register, next, self.here());
    }

    fn for_statement(&mut self, range: &Range, body: BlockId) {
        let span = self.span;
        let bound = self.start_range(range);
        let start = self.mark();
        let exit = self.test_range(range, bound);
        self.loop_body(body);
        self.span = span;
        let continued = self.mark();
        // Like the body, it depends on the test.
        self.control_depth += 1;
        self.count_on(range);
        self.control_depth -= 1;
        self.emit(Instruction::Jump { target: start });
        self.end_loop(exit, continued);
    }

    fn for_each_thread(&mut self, range: &Range, body: &Capture) {
        let since = self.children_start();
        let bound = self.start_range(range);
        let start = self.mark();
        let exit = self.test_range(range, bound);
        self.control_depth += 1;
        self.fork(body, None);
        self.count_on(range);
        self.control_depth -= 1;
        self.emit(Instruction::Jump { target: start });
        let end = self.mark();
        self.set_target(exit, end);
        self.join_children(since);
    }

    fn children_start(&mut self) -> Register {
        let since = self.temporary("");
        self.emit(Instruction::CountChildren { to: since });
        since
    }

    /// Starts a thread; without a handle, as a child that the statement joins.
    fn fork(&mut self, body: &Capture, handle: Option<Register>) {
        let start = self.code.captured.len() as u32;
        let mut symbols: Vec<SymbolId> = Vec::with_capacity(body.locals.len());
        for local in &body.locals {
            let register = local.index() as Register;
            self.code.captured.push(register);
            symbols.push(self.symbol(Symbol::Register(register)));
        }
        let captured = (start, self.code.captured.len() as u32);
        let fork = self.event(Instruction::Fork { address: 0, captured, handle }, &symbols, None);
        self.spawned.push(Spawned { fork, body: body.body });
    }

    fn join_children(&mut self, since: Register) {
        let next = self.temporary("");
        self.emit(Instruction::Copy { to: next, from: since });
        let start = self.mark();
        let exit = self.emit(Instruction::WhileChildren { since, next, otherwise: 0 });
        self.event(Instruction::JoinChild { next }, &[], None);
        self.emit(Instruction::Jump { target: start });
        let end = self.mark();
        self.set_target(exit, end);
    }

    fn acquire(&mut self, lock: CellOf<LockId>, index: Option<SymbolId>) {
        self.indexed(Instruction::Acquire { lock }, index);
    }

    /// An event of a lock with this index.
    fn indexed(&mut self, instruction: Instruction, index: Option<SymbolId>) {
        let address = self.event(instruction, index.as_slice(), None);
        self.effect(address).index = index;
    }

    /// A section from `begin`, of a lock with this index, to `end`.
    fn section(
        &mut self,
        begin: Instruction,
        index: Option<SymbolId>,
        end: Instruction,
        body: BlockId,
    ) {
        let span = self.span;
        self.indexed(begin, index);
        self.levels.push(Level::Section(end));
        self.block(body);
        self.levels.pop();
        // The end of a section is where its last token is.
        self.span = reweave_lang::Span::new(span.end - 1, span.end);
        self.event(end, &[], None);
        self.span = span;
    }

    fn atomic_update(&mut self, kind: &StatementKind) {
        match kind {
            StatementKind::CompareAndSwap { local, place, old, new } => {
                let (cell, index) = self.cell_before(place, &[*old, *new]);
                let (old, new) = (self.flatten(*old), self.flatten(*new));
                let (old_register, new_register) = (self.evaluate(old), self.evaluate(new));
                let to = local.index() as Register;
                let instruction =
                    Instruction::CompareAndSwap { to, cell, old: old_register, new: new_register };
                let symbols: Vec<SymbolId> = index.into_iter().chain([old, new]).collect();
                let address = self.event(instruction, &symbols, Some(to));
                let effect = self.effect(address);
                (effect.value, effect.index, effect.compared) = (Some(new), index, Some(old));
            }
            StatementKind::FetchAdd { local, place, amount } => {
                self.fetch_add(local.index() as Register, place, *amount);
            }
            other => unreachable!("{other:?} is no atomic update"),
        }
    }

    fn fetch_add(&mut self, to: Register, place: &Place, amount: ExprId) {
        let (cell, index) = self.cell_before(place, &[amount]);
        let amount = self.flatten(amount);
        let register = self.evaluate(amount);
        let symbols: Vec<SymbolId> = index.into_iter().chain([amount]).collect();
        let instruction = Instruction::FetchAdd { to, cell, amount: register };
        let address = self.event(instruction, &symbols, Some(to));
        let accessed = self.symbol(Symbol::Accessed);
        let value = self.symbol(Symbol::Binary(Binary::Add, accessed, amount));
        let effect = self.effect(address);
        (effect.value, effect.index) = (Some(value), index);
    }
}
