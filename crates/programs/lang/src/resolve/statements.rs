//! Blocks, statements and expressions, and the variables and locks that they name.

use reweave_base::Id as _;
use reweave_trace::Binary;

use crate::diagnostic::{Diagnostic, short};
use crate::program::{
    Block, BlockId, Capture, ConditionId, Expr, ExprId, ExprKind, FunctionId, GlobalId, LocalId,
    LockId, LockPlace, Place, Range, Statement, StatementKind, StatementKind as Kind,
};
use crate::resolve::{Entity, Info, Resolver, Spawned, Wanted, name_of};
use crate::source::Span;
use crate::syntax::{self, NodeId, NodeKind, StatementKind as Syntax, Value};

/// The statement whose body a block is.
type Inside = (BlockId, u32);

/// Takes the id of an entity if it is of the right kind.
macro_rules! only {
    ($Kind:ident) => {
        |entity| if let Entity::$Kind(id) = entity { Some(id) } else { None }
    };
}

impl<'s> Resolver<'s> {
    /// Resolves a block. The recursion is as deep as blocks nest, which the parser limits.
    pub(super) fn block(&mut self, block: &'s syntax::Block, inside: Option<Inside>) -> BlockId {
        let id = self.program.blocks.push(Block {
            span: block.span,
            inside,
            statements: Vec::with_capacity(block.statements.len()),
        });
        let mark = self.scope.enter();
        for (statement, position) in block.statements.iter().zip(0..) {
            // What has a fault is reported, and nothing runs such a program.
            let kind = self.statement(statement, (id, position));
            let kind = kind.unwrap_or(Kind::Skip);
            self.program.blocks[id].statements.push(Statement { span: statement.span, kind });
        }
        self.scope.leave(mark);
        id
    }

    fn statement(&mut self, statement: &'s syntax::Statement, inside: Inside) -> Option<Kind> {
        let word = self.word(statement.span);
        Some(match &statement.kind {
            Syntax::Let { name, value } => self.set(*name, *value),
            Syntax::CompareAndSwap { name, place, old, new } => {
                return self.compare_and_swap(*name, *place, *old, *new);
            }
            Syntax::FetchAdd { name, place, amount } => {
                return self.fetch_add(*name, *place, *amount);
            }
            Syntax::Fork { name, word, body } => self.fork(*name, body, *word, inside),
            Syntax::Assign { place, value } => return self.assignment(*place, *value),
            Syntax::If { condition, then, otherwise } => {
                let condition = self.expression(*condition);
                let then = self.branch(then, inside);
                let otherwise = otherwise.as_ref().map(|block| self.branch(block, inside));
                Kind::If { condition, then, otherwise }
            }
            Syntax::Optional { body } => Kind::Optional { body: self.branch(body, inside) },
            Syntax::While { condition, body } => {
                let condition = self.expression(*condition);
                Kind::While { condition, body: self.repeated(body, word, inside) }
            }
            Syntax::For { range, body } => self.counted(range, body, word, inside),
            Syntax::ForEachThread { range, body } => self.for_each(range, body, word, inside),
            Syntax::Threads { bodies } => {
                let bodies = bodies.iter().map(|body| self.spawned(body, word, inside, None));
                Kind::Threads { bodies: bodies.collect() }
            }
            Syntax::Atomic { body } => Kind::Atomic { body: self.block(body, Some(inside)) },
            Syntax::Expect { body } => Kind::Expect { body: self.block(body, Some(inside)) },
            Syntax::Sync { lock, body } => return self.sync(*lock, body, inside),
            Syntax::Lock(lock) => {
                let lock = self.lock_place(*lock);
                self.has_bad_lock |= lock.is_none();
                self.take(lock?);
                Kind::Lock { lock: lock? }
            }
            Syntax::Unlock(lock) => {
                let lock = self.lock_place(*lock)?;
                self.needs(lock, "unlocks");
                self.release(lock);
                Kind::Unlock { lock }
            }
            Syntax::Wait { condition, lock } => return self.wait(*condition, *lock),
            Syntax::Notify(condition) => Kind::Notify { condition: self.condition(*condition)? },
            Syntax::NotifyAll(condition) => {
                Kind::NotifyAll { condition: self.condition(*condition)? }
            }
            Syntax::Join(name) => Kind::Join { local: self.handle(*name)? },
            Syntax::Assert(condition) => Kind::Assert { condition: self.expression(*condition) },
            Syntax::Assume(condition) => Kind::Assume { condition: self.expression(*condition) },
            Syntax::Skip => Kind::Skip,
            Syntax::Return { value } => self.return_value(*value, word),
            Syntax::Break => self.leave_loop(word, "break", Kind::Break),
            Syntax::Continue => self.leave_loop(word, "continue", Kind::Continue),
            Syntax::Call { name, arguments } => return self.call(*name, arguments, statement.span),
        })
    }

    /// The word that a statement starts with.
    fn word(&self, span: Span) -> Span {
        let text = self.text(span);
        let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        Span::new(span.start, span.start + end.unwrap_or(text.len()) as u32)
    }

    fn set(&mut self, name: Span, value: Value) -> Kind {
        let outer = self.scope.declaring.replace(name);
        let value = self.expression(value);
        self.scope.declaring = outer;
        Kind::Set { local: self.declare(name, false), value }
    }

    fn compare_and_swap(
        &mut self,
        name: Span,
        place: syntax::Place,
        old: Value,
        new: Value,
    ) -> Option<Kind> {
        let place = self.shared(place);
        let (old, new) = (self.expression(old), self.expression(new));
        let local = self.declare(name, false);
        Some(Kind::CompareAndSwap { local, place: place?, old, new })
    }

    fn fetch_add(&mut self, name: Span, place: syntax::Place, amount: Value) -> Option<Kind> {
        let place = self.shared(place);
        let amount = self.expression(amount);
        let local = self.declare(name, false);
        Some(Kind::FetchAdd { local, place: place?, amount })
    }

    fn wait(&mut self, condition: Span, lock: syntax::Place) -> Option<Kind> {
        let (condition, lock) = (self.condition(condition), self.lock_place(lock));
        let lock = lock?;
        self.needs(lock, "waits with");
        Some(Kind::Wait { condition: condition?, lock })
    }

    fn call(&mut self, name: Span, arguments: &[Value], span: Span) -> Option<Kind> {
        // Its arguments may be locks and conditions, which are right there and no values.
        if self.is_foreign_statement(name, arguments) {
            return None;
        }
        let arguments: Vec<_> = arguments.iter().map(|&value| self.expression(value)).collect();
        // The call ends before the `;`.
        let text = self.text(span);
        let end = text.rfind(')').map_or(text.len(), |at| at + 1) as u32;
        let call = Span::new(span.start, span.start + end);
        let function = self.callee(name, call, &arguments)?;
        Some(Kind::Call { function, arguments })
    }

    fn sync(
        &mut self,
        lock: syntax::Place,
        body: &'s syntax::Block,
        inside: Inside,
    ) -> Option<Kind> {
        let lock = self.lock_place(lock);
        if let Some(lock) = lock {
            self.take(lock);
        }
        self.has_bad_lock |= lock.is_none();
        let body = self.block(body, Some(inside));
        if let Some(lock) = lock {
            self.release(lock);
        }
        Some(Kind::Sync { lock: lock?, body })
    }

    fn counted(
        &mut self,
        range: &syntax::Range,
        body: &'s syntax::Block,
        word: Span,
        inside: Inside,
    ) -> Kind {
        let mark = self.scope.enter();
        let range = self.range(range, false);
        let body = self.repeated(body, word, inside);
        self.scope.leave(mark);
        Kind::For { range, body }
    }

    fn for_each(
        &mut self,
        range: &syntax::Range,
        body: &'s syntax::Block,
        word: Span,
        inside: Inside,
    ) -> Kind {
        let mark = self.scope.enter();
        let range = self.range(range, true);
        let body = self.spawned(body, word, inside, Some(range.local));
        self.scope.leave(mark);
        Kind::ForEachThread { range, body }
    }

    fn fork(&mut self, name: Span, body: &'s syntax::Block, word: Span, inside: Inside) -> Kind {
        let outer = self.scope.declaring.replace(name);
        let body = self.spawned(body, word, inside, None);
        self.scope.declaring = outer;
        Kind::Fork { local: self.declare(name, true), body }
    }

    /// A block that may be left out.
    fn branch(&mut self, block: &'s syntax::Block, inside: Inside) -> BlockId {
        self.unsure(|resolver| resolver.block(block, Some(inside)))
    }

    /// The body of a loop.
    fn repeated(&mut self, block: &'s syntax::Block, word: Span, inside: Inside) -> BlockId {
        self.body.loops.push((word, self.body.threads.len()));
        let id = self.branch(block, inside);
        self.body.loops.pop();
        id
    }

    /// A block that is a thread of its own, with its variable if it is one of a `coforeach`.
    fn spawned(
        &mut self,
        block: &'s syntax::Block,
        word: Span,
        inside: Inside,
        variable: Option<LocalId>,
    ) -> Capture {
        let captured = variable.into_iter().collect();
        self.body.threads.push(Spawned { word, captured });
        let held = std::mem::take(&mut self.body.held);
        let body = self.block(block, Some(inside));
        self.body.held = held;
        let thread = self.body.threads.pop().expect("it was put there above");
        Capture { body, locals: thread.captured.into_iter().collect() }
    }

    /// The range of a loop; its variable is declared behind it. With `for_threads` each thread has a
    /// variable of its own.
    fn range(&mut self, range: &syntax::Range, for_threads: bool) -> Range {
        let outer = self.scope.declaring.replace(range.name);
        let (from, to) = (self.expression(range.from), self.expression(range.to));
        self.scope.declaring = outer;
        let depth = self.body.threads.len();
        let info = Info { is_handle: false, depth, home: depth + usize::from(for_threads) };
        let local = self.declare_at(range.name, info);
        Range { local, from, to, is_inclusive: range.is_inclusive }
    }

    /// Whether there is a loop for `break` or `continue`.
    fn leave_loop(&mut self, word: Span, name: &str, kind: Kind) -> Kind {
        let depth = self.body.threads.len();
        let error = match (self.body.loops.last(), self.body.threads.last()) {
            (Some(&(_, around)), _) if around == depth => return kind,
            (Some(&(around, _)), Some(thread)) => Diagnostic::error(
                word,
                format!("`{name}` cannot leave the block of a thread"),
                "this runs in a thread of its own",
            )
            .and(thread.word, "the thread starts here")
            .and(around, "the loop is outside of it")
            .help("to end the thread, write `return;`"),
            _ => {
                let error = Diagnostic::error(
                    word,
                    format!("`{name}` outside of a loop"),
                    "no `while` or `for` is around this",
                );
                match self.body.threads.last() {
                    Some(_) => error.help("to end the thread, write `return;`"),
                    None => error,
                }
            }
        };
        self.report(error);
        kind
    }

    fn return_value(&mut self, value: Option<Value>, word: Span) -> Kind {
        let value = value.map(|value| self.expression(value));
        if let Some(value) = value {
            self.check_return(word, self.program.expressions[value].span);
        }
        Kind::Return { value }
    }

    /// Whether there is a function to return a value from.
    fn check_return(&mut self, word: Span, value: Span) {
        let error = match (self.body.threads.last(), self.body.function) {
            (Some(thread), _) => {
                Diagnostic::error(value, "a thread returns no value", "unexpected value")
                    .and(thread.word, "the thread starts here")
            }
            (None, Some(_)) => return,
            (None, None) => {
                Diagnostic::error(value, "only a function returns a value", "unexpected value")
                    .and(word, "this ends the thread")
            }
        };
        self.report(error.help("write `return;`, and leave results in a `shared` variable"));
    }
}

// Expressions.

impl Resolver<'_> {
    /// Resolves a whole expression.
    pub(super) fn expression(&mut self, value: Value) -> ExprId {
        for index in value.first.index()..=value.root.index() {
            let id = NodeId::from_index(index);
            let resolved = self.node(id);
            self.values[id] = Some(resolved);
        }
        self.value_of(value.root)
    }

    /// What became of a node that was gone through.
    fn value_of(&self, id: NodeId) -> ExprId {
        self.values[id].expect("operands come before their operator")
    }

    fn node(&mut self, id: NodeId) -> ExprId {
        let syntax = self.syntax;
        let span = syntax.nodes[id].span;
        let (kind, constant) = match &syntax.nodes[id].kind {
            NodeKind::Paren(inner) => return self.value_of(*inner),
            NodeKind::Number(number) => (ExprKind::Number(*number), Some(*number)),
            NodeKind::Name => (self.read(span, None, span), None),
            NodeKind::Index { name, index } => {
                let index = self.value_of(*index);
                (self.read(*name, Some(index), span), None)
            }
            NodeKind::Unary(operator, of) => {
                let of = self.value_of(*of);
                let constant = self.constants[of].map(|of| operator.apply(of));
                (ExprKind::Unary(*operator, of), constant)
            }
            NodeKind::Binary(operator, left, right) => {
                let (left, right) = (self.value_of(*left), self.value_of(*right));
                self.warn_of_zero(*operator, right, span);
                let (one, other) = (self.constants[left], self.constants[right]);
                let constant = known(*operator, one, other);
                (ExprKind::Binary(*operator, left, right), constant)
            }
            NodeKind::Call { name, arguments } => {
                let arguments: Vec<ExprId> =
                    arguments.iter().map(|&argument| self.value_of(argument)).collect();
                let call = self.callee(*name, span, &arguments);
                (call.map_or(ExprKind::Number(0), |id| ExprKind::Call(id, arguments)), None)
            }
        };
        self.constants.push(constant);
        self.program.expressions.push(Expr { span, kind })
    }

    /// What the name at `name`, with an index or without, is worth; 0 if it has a fault.
    fn read(&mut self, name: Span, index: Option<ExprId>, span: Span) -> ExprKind {
        match self.entity(name) {
            Some(Entity::Local(local)) => {
                if index.is_some() {
                    self.no_array(name, Entity::Local(local), span);
                }
                self.capture(local);
                ExprKind::Local(local)
            }
            Some(Entity::Global(global)) => self
                .shared_place(global, name, index, span)
                .map_or(ExprKind::Number(0), ExprKind::Shared),
            Some(other) => {
                self.wrong_kind(name, other, Wanted::Value);
                ExprKind::Number(0)
            }
            None => {
                self.undeclared(name, Wanted::Value);
                ExprKind::Number(0)
            }
        }
    }

    fn warn_of_zero(&mut self, operator: Binary, right: ExprId, span: Span) {
        let divides = operator.is_division();
        if divides && self.constants[right] == Some(0) {
            let message = format!("{} by zero", name_of(operator));
            self.report(Diagnostic::warning(span, message, "this ends the thread with a fault"));
        }
    }

    /// The function that the name of a call means, if it takes these arguments.
    fn callee(&mut self, name: Span, span: Span, arguments: &[ExprId]) -> Option<FunctionId> {
        let function = self.named(name, Wanted::Function, only!(Function))?;
        self.calls.push(super::Call { from: self.body.function, to: function, span: name });
        // The function may release what is held.
        self.body.held.clear();
        let (wanted, given) = (self.arities[function], arguments.len());
        if wanted == given {
            return Some(function);
        }
        let message =
            format!("{} takes {}, found {given}", self.shown(name), plural(wanted, "argument"));
        // The first argument that is too many, or where the first that is missing would stand.
        let (place, label) = match arguments.get(wanted) {
            Some(&surplus) => (self.program.expressions[surplus].span, "not expected".to_owned()),
            None => (
                Span::new(span.end - 1, span.end),
                format!("{} missing", plural(wanted - given, "argument")),
            ),
        };
        let declared = self.program.functions[function].span;
        self.report(Diagnostic::error(place, message, label).and(declared, "declared here"));
        None
    }
}

/// `count` of what `noun` names.
fn plural(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    let count = if count == 0 { "no".to_owned() } else { count.to_string() };
    format!("{count} {noun}{ending}")
}

/// The result where each operand may be unknown; none where it is unknown too, or there is none.
fn known(operator: Binary, left: Option<i64>, right: Option<i64>) -> Option<i64> {
    match (operator, left?) {
        (Binary::And, 0) => Some(0),
        (Binary::Or, decided) if decided != 0 => Some(1),
        (_, left) => operator.apply(left, right?),
    }
}

// Shared variables, locks, conditions and threads that statements name.

impl Resolver<'_> {
    /// What `pick` takes of the entity at `name`; if there is none or it is not what is wanted, that
    /// is reported.
    fn named<T>(
        &mut self,
        name: Span,
        wanted: Wanted,
        pick: impl FnOnce(Entity) -> Option<T>,
    ) -> Option<T> {
        let Some(entity) = self.entity(name) else {
            self.undeclared(name, wanted);
            return None;
        };
        let picked = pick(entity);
        if picked.is_none() {
            self.wrong_kind(name, entity, wanted);
        }
        picked
    }

    /// An element of `global`, or `global` itself.
    fn shared_place(
        &mut self,
        global: GlobalId,
        name: Span,
        index: Option<ExprId>,
        span: Span,
    ) -> Option<Place> {
        let length = self.program.globals[global].length;
        self.check_index(Entity::Global(global), name, length, index, span)?;
        Some(Place { global, index, span })
    }

    /// The shared variable or element that `cas` and `fetchadd` work on.
    pub(super) fn shared(&mut self, place: syntax::Place) -> Option<Place> {
        let index = place.index.map(|index| self.expression(index));
        let global = self.named(place.name, Wanted::Shared, only!(Global))?;
        self.shared_place(global, place.name, index, place.span)
    }

    /// The lock, or element of an array of locks, at `place`.
    fn lock_place(&mut self, place: syntax::Place) -> Option<LockPlace> {
        let index = place.index.map(|index| self.expression(index));
        let lock = self.named(place.name, Wanted::Lock, only!(Lock))?;
        let length = self.program.locks[lock].length;
        self.check_index(Entity::Lock(lock), place.name, length, index, place.span)?;
        Some(LockPlace { lock, index, span: place.span })
    }

    pub(super) fn condition(&mut self, name: Span) -> Option<ConditionId> {
        self.named(name, Wanted::Condition, only!(Condition))
    }

    /// The handle that `join` takes.
    pub(super) fn handle(&mut self, name: Span) -> Option<LocalId> {
        let local = self.named(name, Wanted::Handle, only!(Handle))?;
        self.capture(local);
        Some(local)
    }

    /// An assignment to a local or a shared variable. Its place is evaluated before its value.
    fn assignment(&mut self, place: syntax::Place, value: Value) -> Option<StatementKind> {
        let index = place.index.map(|index| self.expression(index));
        let entity = self.named(place.name, Wanted::Variable, Some);
        let value = self.expression(value);
        match entity? {
            Entity::Local(local) => {
                if index.is_some() {
                    self.no_array(place.name, Entity::Local(local), place.span);
                }
                self.warn_of_copy(local, place.name);
                self.capture(local);
                Some(StatementKind::Set { local, value })
            }
            Entity::Global(global)
                if index.is_none() && self.program.globals[global].length.is_some() =>
            {
                self.whole_array(global, place.name);
                None
            }
            Entity::Global(global) => {
                let place = self.shared_place(global, place.name, index, place.span)?;
                Some(StatementKind::Store { place, value })
            }
            other => {
                self.wrong_kind(place.name, other, Wanted::Variable);
                None
            }
        }
    }

    fn whole_array(&mut self, global: GlobalId, name: Span) {
        let array = self.describe(Entity::Global(global));
        let message = format!("{array} cannot be assigned as a whole");
        let help = format!("assign to its elements: `{}[i] = …;`", short(self.text(name)));
        let error = Diagnostic::error(name, message, "expected an element")
            .and(self.program.globals[global].span, "declared here")
            .help(help);
        self.report(error);
    }

    /// Says that an assignment in a thread's block stays within the thread.
    fn warn_of_copy(&mut self, local: LocalId, name: Span) {
        if self.scope.info[local].home >= self.body.threads.len() {
            return;
        }
        let shown = self.shown(name);
        let word = self.body.threads.last().map_or(name, |thread| thread.word);
        let warning = Diagnostic::warning(
            name,
            format!("this assigns to the thread's own copy of {shown}"),
            "the code around does not see it",
        )
        .and(self.program.locals[local].span, "declared outside of the thread's block")
        .and(word, "the thread starts here")
        .help("to give a result to other threads, use a `shared` variable");
        self.report(warning);
    }

    /// Whether there is an index where one is needed, and only there, and within the bounds.
    fn check_index(
        &mut self,
        entity: Entity,
        name: Span,
        length: Option<u32>,
        index: Option<ExprId>,
        span: Span,
    ) -> Option<()> {
        match (length, index) {
            (None, None) => Some(()),
            (None, Some(_)) => {
                self.no_array(name, entity, span);
                None
            }
            (Some(_), None) => {
                let message = format!("{} needs an index", self.describe(entity));
                let help = format!("name one element: `{}[i]`", short(self.text(name)));
                let error = Diagnostic::error(name, message, "expected an element")
                    .and(self.declaration(entity), "declared here")
                    .help(help);
                self.report(error);
                None
            }
            (Some(length), Some(index)) => self.check_bounds(entity, length, index),
        }
    }

    fn check_bounds(&mut self, entity: Entity, length: u32, index: ExprId) -> Option<()> {
        let Some(constant) = self.constants[index] else { return Some(()) };
        if (0..i64::from(length)).contains(&constant) {
            return Some(());
        }
        let message = format!("the index {constant} is out of bounds");
        let label = format!("expected a number from 0 to {}", length - 1);
        let what = format!("{} has {length} elements", self.describe(entity));
        let place = self.program.expressions[index].span;
        let error = Diagnostic::error(place, message, label).and(self.declaration(entity), what);
        self.report(error);
        None
    }

    /// There is an index, but the entity has no elements.
    fn no_array(&mut self, name: Span, entity: Entity, span: Span) {
        let message = format!("{} has no elements", self.describe(entity));
        let index = Span::new(name.end, span.end);
        let error = Diagnostic::error(index, message, "unexpected index")
            .and(self.declaration(entity), "declared here, not as an array");
        self.report(error);
    }
}

// Misuse of locks that can be seen in the text.
//
// A lock counts as surely held from where it is taken to the end of the statements that surely
// follow. Locks are re-entrant, so taking one that is held is no fault; it is rarely meant.
//
// No more than [`HELD_MAX`] locks are known to be held at a time, so that the cost is linear in the
// text; what is taken beyond them counts as not surely held, which loses a warning and makes none.

/// How many locks are known to be held at a time.
const HELD_MAX: usize = 64;

/// A lock that is surely held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    lock: LockId,
    /// The element; none for a single lock.
    element: Option<i64>,
    /// Where it was taken.
    span: Span,
}

/// A place that is right only where the lock is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    lock: LockId,
    span: Span,
    does: &'static str,
}

impl Resolver<'_> {
    /// Which lock this is, if that is known: not if the element is computed.
    fn identity(&self, place: LockPlace) -> Option<(LockId, Option<i64>)> {
        match place.index {
            None => Some((place.lock, None)),
            Some(index) => Some((place.lock, Some(self.constants[index]?))),
        }
    }

    /// Notes that a lock is taken.
    pub(super) fn take(&mut self, place: LockPlace) {
        self.is_taken[place.lock] = true;
        let Some((lock, element)) = self.identity(place) else { return };
        let is_same = |held: &&Held| held.lock == lock && held.element == element;
        if let Some(held) = self.body.held.iter().find(is_same).copied() {
            let shown = self.shown(place.span);
            let warning = Diagnostic::warning(
                place.span,
                format!("{shown} is acquired while it is held"),
                "acquired again here",
            )
            .and(held.span, "acquired here")
            .help("locks are re-entrant: it is free after as many releases");
            self.report(warning);
        }
        if self.body.held.len() < HELD_MAX {
            self.body.held.push(Held { lock, element, span: place.span });
        }
    }

    /// Notes that a lock is released.
    pub(super) fn release(&mut self, place: LockPlace) {
        match self.identity(place) {
            Some((lock, element)) => {
                let is_same = |held: &Held| held.lock == lock && held.element == element;
                if let Some(position) = self.body.held.iter().rposition(is_same) {
                    self.body.held.remove(position);
                }
            }
            // It may be any of them.
            None => self.body.held.retain(|held| held.lock != place.lock),
        }
    }

    /// Notes that the place is right only where something takes the lock.
    fn needs(&mut self, place: LockPlace, does: &'static str) {
        self.releases.push(Release { lock: place.lock, span: place.span, does });
    }

    /// Resolves a part that may be left out or repeated: what it takes or releases is not sure
    /// behind it.
    fn unsure<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.body.held.clone();
        let result = part(self);
        let after = std::mem::replace(&mut self.body.held, before);
        let held = &mut self.body.held;
        // Most parts release what they take, and then the two are the same.
        let same = held.iter().zip(&after).take_while(|(one, other)| one == other).count();
        let changed = held.split_off(same);
        held.extend(changed.into_iter().filter(|held| after[same..].contains(held)));
        result
    }

    /// Reports what releases locks that nothing takes.
    pub(super) fn check_releases(&mut self) {
        // What should take a lock but has a fault may have meant any.
        if self.has_bad_lock {
            return;
        }
        for release in std::mem::take(&mut self.releases) {
            if self.is_taken[release.lock] {
                continue;
            }
            let shown = self.shown(release.span);
            let lock = &self.program.locks[release.lock];
            let name = short(&lock.name);
            let index = if lock.length.is_some() { "[i]" } else { "" };
            let message = format!("this {} {shown}, but nothing acquires it", release.does);
            let label = format!("`{name}` is never held");
            let error = Diagnostic::error(release.span, message, label)
                .and(lock.span, "declared here")
                .help(format!(
                    "acquire it before: `lock({name}{index});` or `sync ({name}{index}) {{ … }}`"
                ));
            self.report(error);
        }
    }
}

#[cfg(test)]
mod expressions_tests {
    use super::*;

    #[test]
    fn a_deciding_first_operand_leaves_out_the_second() {
        assert_eq!(known(Binary::And, Some(0), None), Some(0));
        assert_eq!(known(Binary::Or, Some(5), None), Some(1));
        assert_eq!(known(Binary::And, Some(1), None), None);
        assert_eq!(known(Binary::And, None, Some(0)), None);
    }
}
