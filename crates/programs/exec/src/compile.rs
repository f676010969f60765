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
mod jump;
mod statement;

use reweave_base::{FxHashMap, FxHashSet, Id};
use reweave_lang::{BlockId, FunctionId, Program, Source, Span, StatementKind};
use reweave_trace::{Extent, StaticBlock, StaticBlockId};

use crate::code::{Address, Cells, Code, Effect, Entry, Instruction, OUTSIDE, Register, SymbolId};
use jump::Level;

impl Code {
    /// Compiles `program`, whose text is `source`.
    #[must_use]
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
        self.names.push(match name.is_empty() {
            true => format!("%{register}"),
            false => name.to_owned(),
        });
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
