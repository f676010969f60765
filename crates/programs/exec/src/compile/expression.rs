//! Expressions: accesses as events, the rest on registers.

use reweave_base::Id;
use reweave_lang::{ExprId, ExprKind, FunctionId, LockPlace, Place, Program};
use reweave_trace::{Binary, Unary};

use super::Compiler;
use crate::code::{Address, CellOf, Instruction, Register, Symbol, SymbolId};

/// How many operators are computed at once; what is larger is kept in a register, so that no
/// symbol is deep.
const SYMBOL_MAX: u32 = 64;

/// For each expression whether computing it makes no event.
pub(super) fn pure_expressions(program: &Program) -> Vec<bool> {
    let mut is_pure: Vec<bool> = Vec::with_capacity(program.expressions.len());
    for expr in program.expressions.iter() {
        let of = |id: &ExprId| is_pure[id.index()];
        let pure = match &expr.kind {
            ExprKind::Number(_) | ExprKind::Local(_) => true,
            ExprKind::Shared(_) | ExprKind::Call(..) => false,
            ExprKind::Unary(_, operand) => of(operand),
            ExprKind::Binary(_, left, right) => of(left) && of(right),
        };
        is_pure.push(pure);
    }
    is_pure
}

/// For each expression whether computing it makes no event and cannot fail.
pub(super) fn plain_expressions(program: &Program) -> Vec<bool> {
    let mut is_plain = pure_expressions(program);
    for (id, expr) in program.expressions.entries() {
        let fails = match &expr.kind {
            ExprKind::Unary(_, operand) => !is_plain[operand.index()],
            &ExprKind::Binary(operator, left, right) => {
                let divides = operator.is_division();
                let is_zero_out = matches!(program.expressions[right].kind,
                    ExprKind::Number(divisor) if divisor != 0);
                !is_plain[left.index()] || !is_plain[right.index()] || divides && !is_zero_out
            }
            ExprKind::Number(_) | ExprKind::Local(_) | ExprKind::Shared(_) | ExprKind::Call(..) => {
                false
            }
        };
        is_plain[id.index()] &= !fails;
    }
    is_plain
}

/// For each function whether an expression uses its result.
pub(super) fn asked_results(program: &Program) -> Vec<bool> {
    let mut asked = vec![false; program.functions.len()];
    for expr in program.expressions.iter() {
        if let ExprKind::Call(function, _) = &expr.kind {
            asked[function.index()] = true;
        }
    }
    asked
}

impl Compiler<'_> {
    pub(super) fn symbol(&mut self, symbol: Symbol) -> SymbolId {
        let size_of = |id: SymbolId| self.symbol_sizes[id as usize];
        let size = match symbol {
            Symbol::Constant(_) | Symbol::Register(_) | Symbol::Accessed => 1,
            Symbol::Unary(_, operand) => 1 + size_of(operand),
            Symbol::Binary(_, left, right) => 1 + size_of(left) + size_of(right),
        };
        self.symbol_sizes.push(size);
        self.code.symbols.push(symbol);
        self.code.symbols.len() as SymbolId - 1
    }

    pub(super) fn constant_symbol(&mut self, value: i64) -> SymbolId {
        self.symbol(Symbol::Constant(value))
    }

    /// Emits the accesses and calls of `expr`, from left to right, and returns what is to be
    /// computed from the registers that they leave.
    ///
    /// A chain of operators leans to the left and may be long, so it is gone through from the
    /// inside.
    pub(super) fn flatten(&mut self, expr: ExprId) -> SymbolId {
        let program = self.program;
        let mark = self.here();
        let mut chain: Vec<(Binary, ExprId)> = Vec::new();
        let mut inner = expr;
        while let ExprKind::Binary(operator, left, right) = program.expressions[inner].kind {
            chain.push((operator, right));
            inner = left;
        }
        let mut symbol = self.flatten_operand(inner);
        for &(operator, right) in chain.iter().rev() {
            symbol = self.kept_if_large(symbol, mark);
            let may_be_left_out = matches!(operator, Binary::And | Binary::Or);
            symbol = if may_be_left_out && !self.is_plain[right.index()] {
                self.short_circuit(operator, symbol, mark, right)
            } else {
                let mark = self.here();
                let right = self.flatten(right);
                let right = self.kept_if_large(right, mark);
                self.symbol(Symbol::Binary(operator, symbol, right))
            };
        }
        symbol
    }

    /// The same for what is no operator on two operands.
    fn flatten_operand(&mut self, expr: ExprId) -> SymbolId {
        let program = self.program;
        match &program.expressions[expr].kind {
            &ExprKind::Number(value) => self.constant_symbol(value),
            ExprKind::Local(local) => self.symbol(Symbol::Register(local.index() as Register)),
            ExprKind::Shared(place) => {
                let register = self.read(place);
                self.symbol(Symbol::Register(register))
            }
            &ExprKind::Unary(operator, operand) => {
                let mark = self.here();
                let operand = self.flatten(operand);
                let operand = self.kept_if_large(operand, mark);
                self.symbol(Symbol::Unary(operator, operand))
            }
            ExprKind::Binary(..) => unreachable!("the left end of a chain is no operator"),
            ExprKind::Call(function, arguments) => {
                self.call(*function, arguments);
                // Another call of the function would overwrite its result.
                let result = self.symbol(Symbol::Register(self.results[function.index()]));
                self.kept(result, self.here())
            }
        }
    }

    fn kept_if_large(&mut self, symbol: SymbolId, mark: Address) -> SymbolId {
        if self.symbol_sizes[symbol as usize] > SYMBOL_MAX {
            self.kept(symbol, mark)
        } else {
            symbol
        }
    }

    /// `symbol`, whose accesses were emitted since `mark`, in a register of its own.
    fn kept(&mut self, symbol: SymbolId, mark: Address) -> SymbolId {
        let register = self.temporary("");
        self.assign(register, symbol, mark);
        self.symbol(Symbol::Register(register))
    }

    /// `left && right` or `left || right` where `right` makes events or may fail: a branch.
    fn short_circuit(
        &mut self,
        operator: Binary,
        left: SymbolId,
        mark: Address,
        right: ExprId,
    ) -> SymbolId {
        let result = self.temporary("");
        let left = self.truth(left);
        self.assign(result, left, mark);
        let condition = self.symbol(Symbol::Register(result));
        let tested = match operator {
            Binary::Or => self.symbol(Symbol::Unary(Unary::Not, condition)),
            _ => condition,
        };
        let branch = self.branch(tested);
        self.control_depth += 1;
        let mark = self.here();
        let right = self.flatten(right);
        let right = self.truth(right);
        self.assign(result, right, mark);
        self.control_depth -= 1;
        let end = self.mark();
        self.set_target(branch, end);
        self.symbol(Symbol::Register(result))
    }

    /// 1 where `symbol` is not zero, else 0.
    fn truth(&mut self, symbol: SymbolId) -> SymbolId {
        let zero = self.constant_symbol(0);
        self.symbol(Symbol::Binary(Binary::NotEqual, symbol, zero))
    }

    /// Goes on if `condition` is not zero; where to else is to be set.
    pub(super) fn branch(&mut self, condition: SymbolId) -> Address {
        self.event_of(condition, None, |condition| Instruction::Branch { condition, otherwise: 0 })
    }

    /// An event that tests or assigns the value of `symbol`, which is computed to a register first.
    pub(super) fn event_of(
        &mut self,
        symbol: SymbolId,
        defines: Option<Register>,
        instruction: impl FnOnce(Register) -> Instruction,
    ) -> Address {
        let register = self.evaluate(symbol);
        let address = self.event(instruction(register), &[symbol], defines);
        self.effect(address).value = Some(symbol);
        address
    }

    /// Gives the parameters their values and calls.
    pub(super) fn call(&mut self, function: FunctionId, arguments: &[ExprId]) {
        let values: Vec<SymbolId> =
            arguments.iter().map(|&argument| self.flatten(argument)).collect();
        let program = self.program;
        for (&parameter, value) in program.functions[function].parameters.iter().zip(values) {
            self.assign(parameter.index() as Register, value, self.here());
        }
        self.event(Instruction::Call { function }, &[], None);
        self.mark();
    }

    /// Reads `place` into a register of its own.
    fn read(&mut self, place: &Place) -> Register {
        let span = std::mem::replace(&mut self.span, place.span);
        let (cell, index) = self.cell(place);
        let to = self.temporary("");
        let address = self.event(Instruction::Read { to, cell }, index.as_slice(), Some(to));
        let accessed = self.symbol(Symbol::Accessed);
        let effect = self.effect(address);
        (effect.value, effect.index) = (Some(accessed), index);
        self.span = span;
        to
    }

    /// The cell that `place` names, and the symbol of its index.
    fn cell(&mut self, place: &Place) -> (CellOf, Option<SymbolId>) {
        let cells = place.global.index() as u32;
        let Some(index) = place.index else { return (CellOf::Single(cells), None) };
        let index = self.flatten(index);
        (CellOf::Element(cells, self.evaluate(index)), Some(index))
    }

    /// The same for an access that comes after what `operands` do: a function that they call would
    /// overwrite an index that has no register of its own.
    pub(super) fn cell_before(
        &mut self,
        place: &Place,
        operands: &[ExprId],
    ) -> (CellOf, Option<SymbolId>) {
        let (cell, index) = self.cell(place);
        match cell {
            CellOf::Element(cells, from)
                if operands.iter().any(|operand| !self.is_pure[operand.index()]) =>
            {
                let to = self.temporary("");
                self.emit(Instruction::Copy { to, from });
                (CellOf::Element(cells, to), index)
            }
            _ => (cell, index),
        }
    }

    /// The lock that `place` names, its index kept while the program goes on, and the symbol of it.
    pub(super) fn lock(&mut self, place: &LockPlace) -> (CellOf, Option<SymbolId>) {
        // The first lock is that of atomic sections.
        let lock = place.lock.index() as u32 + 1;
        let Some(index) = place.index else { return (CellOf::Single(lock), None) };
        let index = self.flatten(index);
        let from = self.evaluate(index);
        let to = self.temporary("");
        self.emit(Instruction::Copy { to, from });
        (CellOf::Element(lock, to), Some(index))
    }

    /// Gives `register` the value of `symbol`, whose accesses are those emitted since `mark`: by the
    /// last of them where nothing stands in between, else by an event of its own.
    pub(super) fn assign(&mut self, register: Register, symbol: SymbolId, mark: Address) {
        if self.fold(register, symbol, mark) {
            return;
        }
        self.event_of(symbol, Some(register), |from| Instruction::Let { to: register, from });
    }

    fn fold(&mut self, register: Register, symbol: SymbolId, mark: Address) -> bool {
        let here = self.here();
        if here == mark || self.label == here {
            return false;
        }
        let last = here - 1;
        let Instruction::Read { to: read, .. } = self.code.instructions[last as usize] else {
            return false;
        };
        if self.may_fail(symbol) {
            return false;
        }
        let index = self.code.effects[last as usize].index;
        let symbols: Vec<SymbolId> = index.into_iter().chain([symbol]).collect();
        let (start, end) = self.uses(&symbols);
        let used: Vec<Register> = self.code.uses.drain(start as usize..end as usize).collect();
        if !used.contains(&read) {
            return false;
        }
        self.code.uses.extend(used.into_iter().filter(|&used| used != read));
        let end = self.code.uses.len() as u32;
        let value = self.with_accessed(symbol, read);
        let effect = self.effect(last);
        (effect.uses, effect.defines, effect.value) = ((start, end), Some(register), Some(value));
        if self.code.symbols[symbol as usize] == Symbol::Register(read) {
            if let Instruction::Read { to, .. } = &mut self.code.instructions[last as usize] {
                *to = register;
            }
        } else {
            self.evaluate_into(symbol, register);
        }
        true
    }

    /// Whether computing `symbol` may divide by zero. An access that has happened cannot fail.
    fn may_fail(&self, symbol: SymbolId) -> bool {
        let mut open = vec![symbol];
        while let Some(symbol) = open.pop() {
            match self.code.symbols[symbol as usize] {
                Symbol::Unary(_, operand) => open.push(operand),
                Symbol::Binary(operator, left, right) => {
                    let divisor = self.code.symbols[right as usize];
                    let is_safe = matches!(divisor, Symbol::Constant(divisor) if divisor != 0);
                    if operator.is_division() && !is_safe {
                        return true;
                    }
                    open.extend([left, right]);
                }
                Symbol::Constant(_) | Symbol::Register(_) | Symbol::Accessed => {}
            }
        }
        false
    }

    /// `symbol` with what is read now in place of the register that it is read into.
    fn with_accessed(&mut self, symbol: SymbolId, read: Register) -> SymbolId {
        match self.code.symbols[symbol as usize] {
            Symbol::Register(register) if register == read => self.symbol(Symbol::Accessed),
            Symbol::Unary(operator, operand) => {
                let operand = self.with_accessed(operand, read);
                self.symbol(Symbol::Unary(operator, operand))
            }
            Symbol::Binary(operator, left, right) => {
                let left = self.with_accessed(left, read);
                let right = self.with_accessed(right, read);
                self.symbol(Symbol::Binary(operator, left, right))
            }
            Symbol::Constant(_) | Symbol::Register(_) | Symbol::Accessed => symbol,
        }
    }

    /// Emits what computes `symbol`, and returns where its value is.
    pub(super) fn evaluate(&mut self, symbol: SymbolId) -> Register {
        match self.code.symbols[symbol as usize] {
            Symbol::Constant(value) => self.constant(value),
            Symbol::Register(register) => register,
            _ => {
                let to = self.scratch();
                self.evaluate_into(symbol, to);
                to
            }
        }
    }

    fn evaluate_into(&mut self, symbol: SymbolId, to: Register) {
        match self.code.symbols[symbol as usize] {
            Symbol::Constant(_) | Symbol::Register(_) => {
                let from = self.evaluate(symbol);
                self.emit(Instruction::Copy { to, from });
            }
            Symbol::Accessed => unreachable!("what is accessed is in a register by now"),
            Symbol::Unary(operator, of) => {
                let of = self.evaluate(of);
                self.emit(Instruction::Unary { operator, to, of });
            }
            Symbol::Binary(operator, left, right) => {
                let (left, right) = (self.evaluate(left), self.evaluate(right));
                let address = self.emit(Instruction::Binary { operator, to, left, right });
                // A division may fail, and then says where.
                let (line, span) = (self.source.line(self.span.start), self.span);
                let effect = self.effect(address);
                (effect.line, effect.span) = (line, span);
            }
        }
    }

    /// The registers in `symbols`, each once, as a range of the code's list.
    pub(super) fn uses(&mut self, symbols: &[SymbolId]) -> (u32, u32) {
        let start = self.code.uses.len();
        let mut open = symbols.to_vec();
        while let Some(symbol) = open.pop() {
            match self.code.symbols[symbol as usize] {
                Symbol::Register(register) => {
                    if !self.code.uses[start..].contains(&register) {
                        self.code.uses.push(register);
                    }
                }
                Symbol::Unary(_, operand) => open.push(operand),
                Symbol::Binary(_, left, right) => open.extend([left, right]),
                Symbol::Constant(_) | Symbol::Accessed => {}
            }
        }
        (start as u32, self.code.uses.len() as u32)
    }
}
