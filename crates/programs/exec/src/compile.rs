//! From a resolved program to code.
//!
//! Every access to a shared variable becomes an instruction of its own that leaves its value in a
//! register; what remains of the expression is computed from registers, without an event. Where
//! the access is the last of the value that a statement assigns, its event is the assignment, so
//! `let t = x;` is one event and `x = x + 1;` is two.
//!
//! `coforeach` is a loop that forks, then a loop that joins. A jump out of blocks (`break`,
//! `continue`, `return`) is what it would be without the word: a flag is set, and each block or
//! loop that it leaves early tests the flag. That makes what does not run depend on the jump, as
//! analyses of data flow need.
//!
//! Registers are numbered named ones first, and how many there are is known only at the end: the
//! program is compiled twice, and the second time knows.

mod expression;

use reweave_base::{FxHashMap, FxHashSet, Id};
use reweave_lang::{
    BlockId, Capture, ExprId, FunctionId, Place, Program, Range, Source, Span, Statement,
    StatementKind,
};
use reweave_trace::{Binary, Extent, StaticBlock, StaticBlockId};

use crate::code::{
    ATOMIC, Address, Cells, Code, Effect, Entry, Instruction, OUTSIDE, Register, Symbol, SymbolId,
};

impl Code {
    /// Compiles `program`, whose text is `source`.
    pub fn new(program: &Program, source: &Source) -> Self {
        let first = Compiler::new(program, source, Registers::default()).compile();
        let counted = Registers { named: first.names.len() as u32, scratch: first.scratch_max };
        Compiler::new(program, source, counted).compile().code
    }
}

/// How many registers of each kind there are, as far as it is known.
#[derive(Clone, Copy, Default)]
struct Registers {
    named: u32,
    scratch: u32,
}

/// A body that a fork starts, to be compiled once what is around it is.
struct Spawned {
    fork: Address,
    body: BlockId,
}

struct Compiler<'a> {
    program: &'a Program,
    source: &'a Source,
    code: Code,
    names: Vec<String>,
    counted: Registers,
    scratch: u32,
    scratch_max: u32,
    constants: FxHashMap<i64, Register>,
    constant_values: Vec<i64>,
    /// How many operators and operands each symbol has.
    symbol_sizes: Vec<u32>,
    /// Which expressions make no event.
    is_pure: Vec<bool>,
    /// Which of them cannot fail either.
    is_plain: Vec<bool>,
    /// The register of each function's result, and whether anyone asks for it.
    results: Vec<Register>,
    gives_result: Vec<bool>,
    spawned: Vec<Spawned>,
    /// While `main` is compiled, the jumps to its end, where it starts the declared threads.
    main_returns: Option<Vec<Address>>,
    levels: Vec<Level>,
    control_depth: u16,
    scope_depth: u16,
    /// Where something jumps to, last: no event before it may be changed for what comes after.
    label: Address,
    span: Span,
}

impl<'a> Compiler<'a> {
    fn new(program: &'a Program, source: &'a Source, counted: Registers) -> Self {
        let names = unique_names(program, source);
        let mut compiler = Self {
            program,
            source,
            code: Code { source: source.name().to_owned(), ..Code::default() },
            names,
            counted,
            scratch: 0,
            scratch_max: 0,
            constants: FxHashMap::default(),
            constant_values: Vec::new(),
            symbol_sizes: Vec::new(),
            is_pure: expression::pure_expressions(program),
            is_plain: expression::plain_expressions(program),
            results: Vec::new(),
            gives_result: expression::asked_results(program),
            spawned: Vec::new(),
            main_returns: None,
            levels: Vec::new(),
            control_depth: 0,
            scope_depth: 0,
            label: 0,
            span: Span::default(),
        };
        for function in program.functions.iter() {
            let result = compiler.temporary(&format!("{}()", function.name));
            compiler.results.push(result);
        }
        compiler.lay_out();
        compiler
    }

    /// Gives every shared variable, lock and block its place.
    fn lay_out(&mut self) {
        let mut start = 0;
        for global in self.program.globals.iter() {
            let length = global.length.unwrap_or(1);
            self.code.cells.push(Cells { name: global.name.clone(), start, length: global.length });
            self.code.memory.extend(std::iter::repeat_n(global.initial, length as usize));
            start += length;
        }
        for &global in &self.program.focus {
            let cells = &self.code.cells[global.index()];
            self.code.focus.extend(cells.start..cells.start + cells.length.unwrap_or(1));
        }
        self.code.locks.push(Cells { name: "atomic".to_owned(), start: 0, length: None });
        let mut start = 1;
        for lock in self.program.locks.iter() {
            self.code.locks.push(Cells { name: lock.name.clone(), start, length: lock.length });
            start += lock.length.unwrap_or(1);
        }
        self.code.locks_count = start;
        self.code.conditions =
            self.program.conditions.iter().map(|condition| condition.name.clone()).collect();
        self.code.blocks = self
            .program
            .blocks
            .ids()
            .map(|block| static_block(self.program, self.source, block))
            .collect();
    }

    fn compile(mut self) -> Self {
        let program = self.program;
        if let Some(main) = program.main {
            self.code.entries.push(Entry { name: "main".to_owned(), address: 0 });
            self.main_returns = Some(Vec::new());
            self.body(main);
            let end = self.mark();
            for jump in self.main_returns.take().unwrap_or_default() {
                self.set_target(jump, end);
            }
            self.fork_declared();
            self.emit(Instruction::End);
        }
        for thread in &program.threads {
            let entry = Entry { name: thread.name.clone(), address: self.here() };
            match program.main {
                Some(_) => self.code.later.push(entry),
                None => self.code.entries.push(entry),
            }
            self.body(thread.body);
            self.emit(Instruction::End);
        }
        for function in program.functions.ids() {
            self.function(function);
        }
        // A body may fork in turn, which adds to the list.
        let mut next = 0;
        while let Some(&Spawned { fork, body }) = self.spawned.get(next) {
            let start = self.here();
            if let Instruction::Fork { address, .. } = &mut self.code.instructions[fork as usize] {
                *address = start;
            }
            self.body(body);
            self.emit(Instruction::End);
            next += 1;
        }
        self.finish()
    }

    fn finish(mut self) -> Self {
        let total = self.names.len() + self.counted.scratch as usize;
        let mut registers = vec![0; total];
        registers.extend_from_slice(&self.constant_values);
        self.code.registers = registers;
        self.code.names.clone_from(&self.names);
        self
    }

    /// The threads that `main` starts when it is done.
    fn fork_declared(&mut self) {
        self.scope_depth = OUTSIDE;
        for (number, thread) in self.program.threads.iter().enumerate() {
            self.span = thread.span;
            self.event(Instruction::ForkDeclared { thread: number as u32 }, &[], None);
        }
    }

    fn function(&mut self, id: FunctionId) {
        let start = self.here();
        self.code.functions.push(start);
        let function = &self.program.functions[id];
        self.levels = vec![Level::Function(id)];
        self.root_block(function.body);
        if self.gives_result[id.index()] {
            self.span = Span::new(
                self.program.blocks[function.body].span.end - 1,
                self.program.blocks[function.body].span.end,
            );
            // It belongs to no statement of the function, but to the one that calls it.
            self.scope_depth = OUTSIDE;
            let zero = self.constant_symbol(0);
            self.assign(self.results[id.index()], zero, self.here());
        }
        self.levels.clear();
        self.emit(Instruction::Return);
    }

    fn body(&mut self, block: BlockId) {
        self.levels = vec![Level::Thread];
        self.root_block(block);
        self.levels.clear();
    }

    fn root_block(&mut self, block: BlockId) {
        (self.control_depth, self.scope_depth) = (0, 0);
        self.label = self.here();
        self.statements(block);
    }

    // What the rest is made of.

    fn here(&self) -> Address {
        self.code.instructions.len() as Address
    }

    /// A place that something jumps to.
    fn mark(&mut self) -> Address {
        self.label = self.here();
        self.label
    }

    fn emit(&mut self, instruction: Instruction) -> Address {
        let address = self.here();
        self.code.instructions.push(instruction);
        self.code.effects.push(Effect::default());
        address
    }

    /// Emits what makes an event that uses the registers in `symbols`.
    fn event(
        &mut self,
        instruction: Instruction,
        symbols: &[SymbolId],
        defines: Option<Register>,
    ) -> Address {
        let uses = self.uses(symbols);
        let address = self.emit(instruction);
        self.code.effects[address as usize] = Effect {
            uses,
            defines,
            control_depth: self.control_depth,
            scope_depth: self.scope_depth,
            line: self.source.line(self.span.start),
            span: self.span,
            value: None,
            index: None,
            compared: None,
        };
        address
    }

    fn effect(&mut self, address: Address) -> &mut Effect {
        &mut self.code.effects[address as usize]
    }

    fn set_target(&mut self, jump: Address, to: Address) {
        match &mut self.code.instructions[jump as usize] {
            Instruction::Jump { target } => *target = to,
            Instruction::Branch { otherwise, .. }
            | Instruction::WhileChildren { otherwise, .. }
            | Instruction::Optional { otherwise } => *otherwise = to,
            other => unreachable!("{other:?} does not jump"),
        }
    }

    /// A register for a result that an event leaves behind.
    fn temporary(&mut self, name: &str) -> Register {
        let register = self.names.len() as Register;
        self.names.push(if name.is_empty() { format!("%{register}") } else { name.to_owned() });
        register
    }

    fn scratch(&mut self) -> Register {
        let register = self.counted.named + self.scratch;
        self.scratch += 1;
        self.scratch_max = self.scratch_max.max(self.scratch);
        register
    }

    fn constant(&mut self, value: i64) -> Register {
        let next = self.counted.named + self.counted.scratch + self.constant_values.len() as u32;
        *self.constants.entry(value).or_insert_with(|| {
            self.constant_values.push(value);
            next
        })
    }
}

/// The names of all locals, each different from the others: the name itself where it is declared
/// once, else with the line, else with the column too.
fn unique_names(program: &Program, source: &Source) -> Vec<String> {
    let mut count: FxHashMap<&str, u32> = FxHashMap::default();
    for local in program.locals.iter() {
        *count.entry(&local.name).or_default() += 1;
    }
    let mut taken: FxHashSet<String> = FxHashSet::default();
    let mut names = Vec::with_capacity(program.locals.len());
    for local in program.locals.iter() {
        let (line, column) = source.position(local.span.start);
        let by_line = format!("{}@{line}", local.name);
        let name = match count[local.name.as_str()] {
            1 => local.name.clone(),
            _ if !taken.contains(&by_line) => by_line,
            _ => format!("{by_line}:{column}"),
        };
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

fn static_block(program: &Program, source: &Source, id: BlockId) -> StaticBlock {
    let block = &program.blocks[id];
    let is_optional = block.inside.is_some_and(|(outer, position)| {
        let around = &program.blocks[outer].statements[position as usize];
        matches!(around.kind, StatementKind::Optional { .. })
    });
    let extent = |span: Span| Extent {
        start: span.start,
        end: span.end,
        first_line: source.line(span.start),
        last_line: source.line(span.end.saturating_sub(1)),
    };
    StaticBlock {
        inside: block
            .inside
            .map(|(outer, position)| (StaticBlockId::from_index(outer.index()), position)),
        is_optional,
        statements: block.statements.iter().map(|statement| extent(statement.span)).collect(),
    }
}

// Jumps out of blocks: `break`, `continue`, `return`.

/// What a jump can leave, from the outside in.
#[derive(Clone, Debug)]
enum Level {
    /// The body of a thread.
    Thread,
    /// The body of a function.
    Function(FunctionId),
    /// A block, at one of its statements.
    Block { block: BlockId, position: u32, scope_depth: u16, control_depth: u16 },
    /// A loop, and the jumps that leave it or go on with it.
    Loop { scope_depth: u16, control_depth: u16, breaks: Vec<Address>, continues: Vec<Address> },
    /// A section, and what ends it.
    Section(Instruction),
}

/// How far a jump goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// To the end of the innermost loop's body.
    Continue,
    /// Out of the innermost loop.
    Break,
    /// Out of the function or thread.
    Return,
}

impl Compiler<'_> {
    /// Leaves the innermost loop, or goes on with it.
    fn jump_in_loop(&mut self, goal: Goal) {
        self.leave(goal);
        let jump = self.emit(Instruction::Jump { target: 0 });
        let mut loops = self.levels.iter_mut().rev();
        if let Some((breaks, continues)) = loops.find_map(|level| match level {
            Level::Loop { breaks, continues, .. } => Some((breaks, continues)),
            _ => None,
        }) {
            if goal == Goal::Break { breaks } else { continues }.push(jump);
        }
    }

    fn return_value(&mut self, value: Option<ExprId>) {
        let function = match self.levels.first() {
            Some(&Level::Function(function)) => Some(function),
            _ => None,
        };
        if let Some(function) = function {
            let mark = self.here();
            let result = self.results[function.index()];
            if let Some(value) = value {
                let symbol = self.flatten(value);
                self.assign(result, symbol, mark);
            } else if self.gives_result[function.index()] {
                let zero = self.constant_symbol(0);
                self.assign(result, zero, mark);
            }
        }
        self.leave(Goal::Return);
        if function.is_some() {
            self.emit(Instruction::Return);
            return;
        }
        let jump = self.here();
        match &mut self.main_returns {
            Some(returns) => {
                returns.push(jump);
                self.emit(Instruction::Jump { target: 0 });
            }
            None => {
                self.emit(Instruction::End);
            }
        }
    }

    /// Ends the sections that are left, and tests a flag wherever statements are left out.
    fn leave(&mut self, goal: Goal) {
        let (span, scope_depth, control_depth) = (self.span, self.scope_depth, self.control_depth);
        let mut flag = None;
        for number in (0..self.levels.len()).rev() {
            match self.levels[number].clone() {
                Level::Thread | Level::Function(_) => {}
                Level::Section(end) => {
                    self.event(end, &[], None);
                }
                Level::Block { block, position, scope_depth, control_depth } => {
                    let last = self.program.blocks[block].statements.len() as u32 - 1;
                    // A loop that is broken out of tests the flag itself, which says as much.
                    if position < last && goal != Goal::Break {
                        let flag = self.flag(&mut flag);
                        (self.scope_depth, self.control_depth) = (scope_depth, control_depth);
                        self.emit(Instruction::Begin { position: last, depth: scope_depth });
                        self.guard(flag);
                    }
                }
                Level::Loop { scope_depth, control_depth, .. } => {
                    if goal == Goal::Continue {
                        break;
                    }
                    let flag = self.flag(&mut flag);
                    (self.scope_depth, self.control_depth) = (scope_depth, control_depth);
                    self.guard(flag);
                    if goal == Goal::Break {
                        break;
                    }
                }
            }
        }
        (self.span, self.scope_depth, self.control_depth) = (span, scope_depth, control_depth);
    }

    /// The flag of the jump that is being compiled, set when it is first needed.
    fn flag(&mut self, flag: &mut Option<Register>) -> Register {
        if let Some(flag) = *flag {
            return flag;
        }
        let register = self.temporary("");
        let one = self.constant_symbol(1);
        self.assign(register, one, self.here());
        *flag = Some(register);
        register
    }

    fn guard(&mut self, flag: Register) {
        let symbol = self.symbol(Symbol::Register(flag));
        self.event_of(symbol, None, |flag| Instruction::Guard { flag });
    }
}

// Statements, and the blocks they stand in.

impl Compiler<'_> {
    /// A block inside the one that is being compiled.
    fn block(&mut self, block: BlockId) {
        self.scope_depth += 1;
        self.statements(block);
        self.scope_depth -= 1;
    }

    /// The statements of `block`, at the present depth.
    fn statements(&mut self, block: BlockId) {
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
                let (begin, end) =
                    (Instruction::Acquire { lock: ATOMIC }, Instruction::Release { lock: ATOMIC });
                self.section(begin, None, end, *body);
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
            StatementKind::CompareAndSwap { local, place, old, new } => {
                self.compare_and_swap(local.index() as Register, place, *old, *new);
            }
            StatementKind::FetchAdd { local, place, amount } => {
                self.fetch_add(local.index() as Register, place, *amount);
            }
            StatementKind::Fork { local, body } => {
                self.fork(body, Some(local.index() as Register));
            }
            StatementKind::Skip => {}
            StatementKind::Return { value } => self.return_value(*value),
            StatementKind::Break => self.jump_in_loop(Goal::Break),
            StatementKind::Continue => self.jump_in_loop(Goal::Continue),
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
                self.indexed(Instruction::Acquire { lock }, index);
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
                self.indexed(Instruction::Acquire { lock }, index);
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
                self.event_of(symbol, None, |condition| Instruction::Assert { condition });
            }
            StatementKind::Assume { condition } => {
                let symbol = self.flatten(*condition);
                self.event_of(symbol, None, |condition| Instruction::Assume { condition });
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
        self.span = Span::new(span.end - 1, span.end);
        self.event(end, &[], None);
        self.span = span;
    }

    fn compare_and_swap(&mut self, to: Register, place: &Place, old: ExprId, new: ExprId) {
        let (cell, index) = self.cell_before(place, &[old, new]);
        let (compared, value) = (self.flatten(old), self.flatten(new));
        let (old, new) = (self.evaluate(compared), self.evaluate(value));
        let symbols: Vec<SymbolId> = index.into_iter().chain([compared, value]).collect();
        let instruction = Instruction::CompareAndSwap { to, cell, old, new };
        let address = self.event(instruction, &symbols, Some(to));
        let effect = self.effect(address);
        (effect.value, effect.index, effect.compared) = (Some(value), index, Some(compared));
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
