//! The program layer: what each event tests, reads and assigns, as expressions.

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::{
    AccessOp, Binary, EventId, Expr, ExprId, LocalId, LockId, LockOp, Op, PointId, Program,
    ThreadId, Transition, Unary, VarId,
};

use super::Recorder;
use crate::code::{Address, Code, Effect, Instruction, Symbol, SymbolId};

/// Symbolic expressions as those of the program layer, each made once for each variable that it is
/// about.
struct Expressions<'c> {
    code: &'c Code,
    program: Program,
    /// For each variable which element of its array it is.
    elements: Vec<i64>,
    /// The same for each lock.
    lock_elements: Vec<Option<i64>>,
    made: FxHashMap<(SymbolId, Option<VarId>), ExprId>,
    constants: FxHashMap<i64, ExprId>,
    tests: FxHashMap<(Binary, ExprId, ExprId), ExprId>,
    /// For each instruction what its last event was, and what it came to.
    last: Vec<(Option<Variant>, Body)>,
    bodies: FxHashMap<(Address, Variant), Body>,
}

/// What tells events of one instruction apart: what it accesses or which lock it takes or gives
/// back, and whether a test fails or a swap does.
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
    pub(super) fn transitions(&mut self) -> Program {
        let mut expressions = Expressions {
            code: self.code,
            program: Program::default(),
            elements: self.elements(),
            lock_elements: self.lock_elements(),
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
                Op::Branch | Op::Let(_) => None,
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
            Op::Branch => self.builder.value_at(EventId::from_index(place)) == Some(0),
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

    fn elements(&self) -> Vec<i64> {
        let mut elements = vec![0; self.cells.len()];
        for cells in &self.code.cells {
            for element in 0..cells.length.unwrap_or(1) {
                if let Some(var) = self.cells[(cells.start + element) as usize] {
                    elements[var as usize] = i64::from(element);
                }
            }
        }
        elements
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
        match self.code.instructions[at as usize] {
            Instruction::Let { .. } | Instruction::Read { .. } => Body {
                define: defined.zip(value),
                guard: self.index_guard(&effect, var, expressions),
                ..Body::default()
            },
            Instruction::Write { .. } => Body {
                store: var.zip(value),
                guard: self.index_guard(&effect, var, expressions),
                ..Body::default()
            },
            Instruction::Branch { .. } | Instruction::Guard { .. } | Instruction::Assume { .. } => {
                let guard = value.map(|condition| match fails {
                    true => expressions.program.add_expr(Expr::Unary(Unary::Not, condition)),
                    false => condition,
                });
                Body { guard, ..Body::default() }
            }
            Instruction::Assert { .. } => Body { assertion: value, ..Body::default() },
            Instruction::CompareAndSwap { .. } => {
                let Some(var) = var else { return Body::default() };
                let guard = self.swap_guard(&effect, var, fails, expressions);
                let result = expressions.constant(i64::from(!fails));
                let define = defined.map(|local| (local, result));
                let store = value.filter(|_| !fails).map(|value| (var, value));
                Body { guard, store, define, assertion: None }
            }
            Instruction::FetchAdd { .. } => {
                let seen = var.map(|var| expressions.program.add_expr(Expr::Shared(var)));
                let guard = self.index_guard(&effect, var, expressions);
                Body { guard, store: var.zip(value), define: defined.zip(seen), assertion: None }
            }
            _ => Body { guard: self.lock_guard(&effect, lock, expressions), ..Body::default() },
        }
    }

    /// That the index is the one of the lock which was taken or given back.
    fn lock_guard(
        &self,
        effect: &Effect,
        lock: Option<LockId>,
        expressions: &mut Expressions<'_>,
    ) -> Option<ExprId> {
        let (index, lock) = effect.index.zip(lock)?;
        if let Symbol::Constant(_) = self.code.symbols[index as usize] {
            return None;
        }
        let element = expressions.lock_elements[lock.index()]?;
        let (index, element) = (expressions.of(index, None), expressions.constant(element));
        Some(expressions.test(Binary::Equal, index, element))
    }

    /// For each lock which element of its array it is, if it is one.
    fn lock_elements(&self) -> Vec<Option<i64>> {
        let mut elements = vec![None; self.locks.len()];
        for (lock, id) in self.locks.iter().enumerate() {
            if let &Some(id) = id {
                let name = self.code.lock_name(lock as u32);
                let element = name.strip_suffix(']').and_then(|name| name.rsplit('[').next());
                elements[id as usize] = element.and_then(|element| element.parse().ok());
            }
        }
        elements
    }

    /// That a swap found what it compares with, or did not.
    fn swap_guard(
        &self,
        effect: &Effect,
        var: VarId,
        fails: bool,
        expressions: &mut Expressions<'_>,
    ) -> Option<ExprId> {
        let index = self.index_guard(effect, Some(var), expressions);
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

    /// That the index is the one of the element which was accessed.
    fn index_guard(
        &self,
        effect: &Effect,
        var: Option<VarId>,
        expressions: &mut Expressions<'_>,
    ) -> Option<ExprId> {
        let (index, var) = effect.index.zip(var)?;
        if let Symbol::Constant(_) = self.code.symbols[index as usize] {
            return None;
        }
        let element = expressions.elements[var.index()];
        let (index, element) = (expressions.of(index, None), expressions.constant(element));
        Some(expressions.test(Binary::Equal, index, element))
    }
}
