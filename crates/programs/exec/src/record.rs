//! Recording: a run as a trace with all its layers.
//!
//! Events come with everything that the code knows of them before any run (which registers they
//! use and define, how deep they stand), so that recording one is a few pushes. Blocks and
//! conditions around a thread are stacks that are cut to the depth which the code says.
//!
//! The program layer is the run's guarded transitions: one for each event, in its thread's order,
//! loops unrolled and calls followed. It is made at the end, from the instruction of each event.

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_lang::BlockId;
use reweave_trace::{
    AccessOp, Binary, EventId, Expr, ExprId, Flow, Instance, InstanceId, LocalId, LockId, LockOp,
    Marker, MemoryOrder, NameKind, Op, OpCode, OpKind, PointId, Program, StaticBlockId, Step,
    ThreadId, Trace, TraceBuilder, Transition, Unary, VarId,
};

use crate::code::{Address, Cells, Code, Effect, Instruction, OUTSIDE, Symbol, SymbolId};
use crate::observe::{Made, Observer, ThreadNumber};

/// What a run is to be recorded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layers {
    /// Events and their values.
    Events,
    /// Also data and control dependence, and statement instances.
    Flow,
    /// Also the guarded transitions.
    Program,
}

/// Records what it observes as a trace.
pub(crate) struct Recorder<'c> {
    code: &'c Code,
    builder: TraceBuilder,
    flow: Flow,
    layers: Layers,
    /// The code's list of used registers, as locals.
    uses: Vec<LocalId>,
    /// The names, once they are needed, of variables, locks, conditions, blocks and sites.
    cells: Vec<Option<u32>>,
    locks: Vec<Option<u32>>,
    conditions: Vec<Option<u32>>,
    blocks: Vec<Option<u32>>,
    sites: Vec<Option<u32>>,
    trails: Vec<Trail>,
    executions: u32,
    /// The instruction of each event.
    addresses: Vec<Address>,
}

/// What is around the place where a thread stands.
#[derive(Clone, Debug, Default)]
struct Trail {
    scopes: Vec<Scope>,
    /// The branches that decided that the thread came here.
    controls: Vec<EventId>,
    scope_base: usize,
    control_base: usize,
    /// The bases of the callers.
    frames: Vec<(usize, usize)>,
    outer_instance: Option<InstanceId>,
    outer_control: Option<EventId>,
}

/// A block that is being executed, and the statement of it.
#[derive(Clone, Copy, Debug)]
struct Scope {
    block: BlockId,
    execution: u32,
    parent: Option<InstanceId>,
    instance: Option<InstanceId>,
}

impl<'c> Recorder<'c> {
    pub(crate) fn new(code: &'c Code, layers: Layers) -> Self {
        let mut builder = TraceBuilder::new();
        let mut flow = Flow::default();
        if layers >= Layers::Flow {
            for name in &code.names {
                builder.local(name);
            }
            for block in &code.blocks {
                flow.add_block(block.clone());
            }
        }
        Self {
            code,
            builder,
            flow,
            layers,
            uses: code
                .uses
                .iter()
                .map(|&register| LocalId::from_index(register as usize))
                .collect(),
            cells: vec![None; code.memory.len()],
            locks: vec![None; code.locks_count as usize],
            conditions: vec![None; code.conditions.len()],
            blocks: vec![None; code.expected.len()],
            sites: vec![None; code.instructions.len()],
            trails: Vec::new(),
            executions: 0,
            addresses: Vec::new(),
        }
    }

    /// The trace of what was observed.
    pub(crate) fn finish(mut self) -> Trace {
        let touched = self.code.focus.iter().filter_map(|&cell| self.cells[cell as usize]);
        let mut focus: Vec<VarId> = touched.map(|var| VarId::from_index(var as usize)).collect();
        focus.sort_unstable();
        if self.layers >= Layers::Program {
            let program = self.transitions();
            self.builder.set_program(program);
        }
        if self.layers >= Layers::Flow {
            for var in focus {
                self.flow.add_focus(var);
            }
            self.builder.set_flow(self.flow);
        }
        self.builder.finish().expect("a run of a program is well formed")
    }

    /// The index, among the names of the trace, of what an event is on.
    fn operand(&mut self, (kind, on): Made) -> u32 {
        let (code, names) = (self.code, self.builder.names());
        let named = match kind.operand() {
            NameKind::Var => &mut self.cells,
            NameKind::Lock => &mut self.locks,
            NameKind::Condition => &mut self.conditions,
            NameKind::Block => &mut self.blocks,
            // Threads and, with the flow layer, locals have one number here and there.
            _ => return on,
        };
        *named[on as usize].get_or_insert_with(|| {
            let name = match kind.operand() {
                NameKind::Var => code.cell_name(on),
                NameKind::Lock => code.lock_name(on),
                NameKind::Condition => code.conditions[on as usize].clone(),
                _ => code.expected[on as usize].clone(),
            };
            names.intern(kind.operand(), name.as_bytes()).expect("the name is text")
        })
    }

    fn site(&mut self, at: Address) -> u32 {
        let (code, names) = (self.code, self.builder.names());
        *self.sites[at as usize].get_or_insert_with(|| {
            let line = code.effects[at as usize].line;
            names.sites.intern(&format!("{}:{line}", code.source)).index() as u32
        })
    }

    fn flow_of(&mut self, thread: ThreadNumber, at: Address, what: Made) {
        let effect = self.code.effects[at as usize];
        let event = EventId::from_index(self.builder.len() - 1);
        let trail = &mut self.trails[thread as usize];
        let depth = trail.control_base + effect.control_depth as usize;
        let control = match depth {
            0 => trail.outer_control,
            _ => Some(trail.controls[depth - 1]),
        };
        // Only a branch has two ways on; after the other tests there is one.
        if let Instruction::Branch { .. } = self.code.instructions[at as usize] {
            trail.controls.truncate(depth);
            trail.controls.push(event);
        }
        let instance = match effect.scope_depth {
            OUTSIDE if trail.scope_base == 0 => trail.outer_instance,
            OUTSIDE => trail.scopes[trail.scope_base - 1].instance,
            depth => trail.scopes[trail.scope_base + depth as usize].instance,
        };
        let mut step = Step::default();
        step.defines = effect.defines.map(|register| LocalId::from_index(register as usize));
        (step.control, step.instance) = (control, instance);
        let (start, end) = effect.uses;
        self.flow.push(step, &self.uses[start as usize..end as usize]);
        if let (OpKind::Fork, child) = what {
            let child = &mut self.trails[child as usize];
            (child.outer_instance, child.outer_control) = (instance, control);
        }
    }
}

impl Observer for Recorder<'_> {
    fn thread(&mut self, thread: ThreadNumber, name: &str) {
        let id = self.builder.thread(name);
        assert_eq!(id.index(), thread as usize, "every thread has a name of its own");
        self.trails.push(Trail::default());
    }

    fn event(&mut self, thread: ThreadNumber, at: Address, what: Made, value: Option<i64>) {
        let operand = match what {
            (OpKind::Let, register) if self.layers == Layers::Events => {
                self.builder.local(&self.code.names[register as usize]).index() as u32
            }
            _ => self.operand(what),
        };
        let site = self.site(at);
        self.builder.push_indexes(thread, OpCode::new(what.0, MemoryOrder::SeqCst), operand, site);
        if let Some(value) = value {
            self.builder.value(value);
        }
        if self.layers >= Layers::Flow {
            self.flow_of(thread, at, what);
        }
        if self.layers >= Layers::Program {
            self.addresses.push(at);
        }
    }

    fn enter(&mut self, thread: ThreadNumber, block: BlockId, depth: u16) {
        if self.layers < Layers::Flow {
            return;
        }
        let trail = &mut self.trails[thread as usize];
        let index = trail.scope_base + depth as usize;
        let parent = match index {
            0 => trail.outer_instance,
            _ => trail.scopes[index - 1].instance,
        };
        trail.scopes.truncate(index);
        trail.scopes.push(Scope { block, execution: self.executions, parent, instance: None });
        self.executions += 1;
    }

    fn begin(&mut self, thread: ThreadNumber, position: u32, depth: u16) {
        if self.layers < Layers::Flow {
            return;
        }
        let trail = &mut self.trails[thread as usize];
        let index = trail.scope_base + depth as usize;
        trail.scopes.truncate(index + 1);
        let scope = &mut trail.scopes[index];
        let block = StaticBlockId::from_index(scope.block.index());
        let Scope { parent, execution, .. } = *scope;
        scope.instance =
            Some(self.flow.add_instance(Instance { parent, block, execution, position }));
    }

    fn call(&mut self, thread: ThreadNumber, at: Address) {
        if self.layers < Layers::Flow {
            return;
        }
        let effect = &self.code.effects[at as usize];
        let trail = &mut self.trails[thread as usize];
        trail.frames.push((trail.scope_base, trail.control_base));
        trail.scope_base += effect.scope_depth as usize + 1;
        trail.scopes.truncate(trail.scope_base);
        trail.control_base += effect.control_depth as usize;
        trail.controls.truncate(trail.control_base);
    }

    fn leave(&mut self, thread: ThreadNumber) {
        if self.layers < Layers::Flow {
            return;
        }
        let trail = &mut self.trails[thread as usize];
        (trail.scope_base, trail.control_base) =
            trail.frames.pop().expect("a function that returns was called");
    }
}

// The program layer: what each event tests, reads and assigns, as expressions.

/// Symbolic expressions as those of the program layer, each made once for each variable that it is
/// about.
struct Expressions<'c> {
    code: &'c Code,
    program: Program,
    /// For each variable which element of its array it is, if it is one.
    elements: Vec<Option<i64>>,
    /// The same for each lock.
    lock_elements: Vec<Option<i64>>,
    made: FxHashMap<(SymbolId, Option<VarId>), ExprId>,
    constants: FxHashMap<i64, ExprId>,
    tests: FxHashMap<(Binary, ExprId, ExprId), ExprId>,
    /// For each instruction what its last event was, and what it came to.
    last: Vec<(Option<Variant>, Body)>,
    bodies: FxHashMap<(Address, Variant), Body>,
}

/// What distinguishes events of one instruction: what it accesses or which lock it acquires or
/// releases, and whether a test fails or a swap does.
type Variant = (Option<VarId>, Option<LockId>, bool);

/// What a transition tests and assigns.
#[derive(Clone, Copy, Default)]
struct Body {
    guard: Option<ExprId>,
    store: Option<(VarId, ExprId)>,
    define: Option<(LocalId, ExprId)>,
    assertion: Option<ExprId>,
}

impl Expressions<'_> {
    fn constant(&mut self, value: i64) -> ExprId {
        *self.constants.entry(value).or_insert_with(|| self.program.add_expr(Expr::Constant(value)))
    }

    /// `symbol`, where what is accessed is `var`.
    fn of(&mut self, symbol: SymbolId, var: Option<VarId>) -> ExprId {
        if let Some(&made) = self.made.get(&(symbol, var)) {
            return made;
        }
        let expr = match self.code.symbols[symbol as usize] {
            Symbol::Constant(value) => return self.constant(value),
            Symbol::Register(register) => Expr::Local(LocalId::from_index(register as usize)),
            Symbol::Accessed => Expr::Shared(var.expect("only an access uses what is accessed")),
            Symbol::Unary(operator, operand) => Expr::Unary(operator, self.of(operand, var)),
            Symbol::Binary(operator, left, right) => {
                Expr::Binary(operator, self.of(left, var), self.of(right, var))
            }
        };
        let made = self.program.add_expr(expr);
        self.made.insert((symbol, var), made);
        made
    }

    fn test(&mut self, operator: Binary, left: ExprId, right: ExprId) -> ExprId {
        *self
            .tests
            .entry((operator, left, right))
            .or_insert_with(|| self.program.add_expr(Expr::Binary(operator, left, right)))
    }
}

impl Recorder<'_> {
    /// The guarded transitions of the run.
    fn transitions(&mut self) -> Program {
        let mut expressions = Expressions {
            code: self.code,
            program: Program::default(),
            elements: elements(&self.cells, &self.code.cells),
            lock_elements: elements(&self.locks, &self.code.locks),
            made: FxHashMap::default(),
            constants: FxHashMap::default(),
            tests: FxHashMap::default(),
            last: vec![(None, Body::default()); self.code.instructions.len()],
            bodies: FxHashMap::default(),
        };
        for (cell, var) in self.cells.iter().enumerate() {
            if let &Some(var) = var {
                let var = VarId::from_index(var as usize);
                expressions.program.set_initial(var, self.code.memory[cell]);
            }
        }
        let threads_count = self.trails.len();
        expressions.program.reserve(self.addresses.len() + threads_count);
        let mut points: IndexVec<ThreadId, Option<PointId>> =
            IndexVec::from_elem(None, threads_count);
        for place in 0..self.addresses.len() {
            let event = self.builder.event(EventId::from_index(place));
            let from = *points[event.thread].get_or_insert_with(|| {
                let start = expressions.program.add_point(event.thread);
                expressions.program.set_entry(event.thread, start);
                start
            });
            let to = expressions.program.add_point(event.thread);
            points[event.thread] = Some(to);
            let Body { guard, store, define, assertion } =
                self.body(place, event.op, &mut expressions);
            let access = match event.op {
                Op::Marker(Marker::Branch | Marker::Let(_)) => None,
                op => Some(op),
            };
            expressions.program.add_transition(Transition {
                thread: event.thread,
                from,
                to,
                guard,
                access,
                store,
                define,
                assertion,
                site: event.site,
            });
        }
        expressions.program
    }

    /// What the transition of the event at `place` tests and assigns, computed once for all events
    /// that are alike.
    fn body(&self, place: usize, op: Op, expressions: &mut Expressions<'_>) -> Body {
        let at = self.addresses[place];
        let fails = match op {
            Op::Marker(Marker::Branch) => {
                self.builder.value_at(EventId::from_index(place)) == Some(0)
            }
            op => matches!(op, Op::Access(AccessOp::AtomicRead(_), _)),
        };
        let lock = match op {
            Op::Lock(LockOp::Acquire | LockOp::Release | LockOp::Request, lock) => Some(lock),
            _ => None,
        };
        let variant = (op.var(), lock, fails);
        let (last, body) = expressions.last[at as usize];
        if last == Some(variant) {
            return body;
        }
        let body = match expressions.bodies.get(&(at, variant)) {
            Some(&body) => body,
            None => {
                let body = self.new_body(at, variant, expressions);
                expressions.bodies.insert((at, variant), body);
                body
            }
        };
        expressions.last[at as usize] = (Some(variant), body);
        body
    }

    fn new_body(
        &self,
        at: Address,
        (var, lock, fails): Variant,
        expressions: &mut Expressions<'_>,
    ) -> Body {
        let effect = self.code.effects[at as usize];
        let defined = effect.defines.map(|register| LocalId::from_index(register as usize));
        let value = effect.value.map(|value| expressions.of(value, var));
        let element = match (var, lock) {
            (Some(var), _) => expressions.elements[var.index()],
            (None, Some(lock)) => expressions.lock_elements[lock.index()],
            (None, None) => None,
        };
        match self.code.instructions[at as usize] {
            Instruction::Let { .. } | Instruction::Read { .. } => Body {
                define: defined.zip(value),
                guard: self.index_guard(&effect, element, expressions),
                ..Body::default()
            },
            Instruction::Write { .. } => Body {
                store: var.zip(value),
                guard: self.index_guard(&effect, element, expressions),
                ..Body::default()
            },
            Instruction::Branch { .. } | Instruction::Guard { .. } | Instruction::Assume { .. } => {
                let guard = value.map(|condition| {
                    if fails {
                        expressions.program.add_expr(Expr::Unary(Unary::Not, condition))
                    } else {
                        condition
                    }
                });
                Body { guard, ..Body::default() }
            }
            Instruction::Assert { .. } => Body { assertion: value, ..Body::default() },
            Instruction::CompareAndSwap { .. } => {
                let Some(var) = var else { return Body::default() };
                let index = self.index_guard(&effect, element, expressions);
                let guard = swap_guard(&effect, var, index, fails, expressions);
                let result = expressions.constant(i64::from(!fails));
                let define = defined.map(|local| (local, result));
                let store = value.filter(|_| !fails).map(|value| (var, value));
                Body { guard, store, define, assertion: None }
            }
            Instruction::FetchAdd { .. } => {
                let seen = var.map(|var| expressions.program.add_expr(Expr::Shared(var)));
                let guard = self.index_guard(&effect, element, expressions);
                Body { guard, store: var.zip(value), define: defined.zip(seen), assertion: None }
            }
            _ => Body { guard: self.index_guard(&effect, element, expressions), ..Body::default() },
        }
    }

    /// That the index is the one of the `element` which was accessed, or of the lock which was acquired
    /// or released.
    fn index_guard(
        &self,
        effect: &Effect,
        element: Option<i64>,
        expressions: &mut Expressions<'_>,
    ) -> Option<ExprId> {
        let (index, element) = effect.index.zip(element)?;
        if let Symbol::Constant(_) = self.code.symbols[index as usize] {
            return None;
        }
        let (index, element) = (expressions.of(index, None), expressions.constant(element));
        Some(expressions.test(Binary::Equal, index, element))
    }
}

/// For each variable or lock which element of its array it is, if it is one: `ids` has for each of
/// the numbers that `cells` count what it is in the trace.
fn elements(ids: &[Option<u32>], cells: &[Cells]) -> Vec<Option<i64>> {
    let mut elements = vec![None; ids.len()];
    for cells in cells {
        for element in 0..cells.length.unwrap_or(0) {
            if let Some(id) = ids[(cells.start + element) as usize] {
                elements[id as usize] = Some(i64::from(element));
            }
        }
    }
    elements
}

/// That a swap of `var` found what it compares with, or did not, and had the right `index`.
fn swap_guard(
    effect: &Effect,
    var: VarId,
    index: Option<ExprId>,
    fails: bool,
    expressions: &mut Expressions<'_>,
) -> Option<ExprId> {
    let Some(compared) = effect.compared else { return index };
    let seen = expressions.program.add_expr(Expr::Shared(var));
    let compared = expressions.of(compared, None);
    let operator = if fails { Binary::NotEqual } else { Binary::Equal };
    let test = expressions.test(operator, seen, compared);
    Some(match index {
        Some(index) => expressions.test(Binary::And, index, test),
        None => test,
    })
}
