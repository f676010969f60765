//! Blocks and statements.

use super::{Resolver, Spawned};
use crate::diagnostic::Diagnostic;
use crate::program::{Block, BlockId, Capture, LocalId, Range, Statement, StatementKind as Kind};
use crate::source::Span;
use crate::syntax::{self, StatementKind as Syntax, Value};

/// The statement whose body a block is.
type Inside = (BlockId, u32);

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
            Syntax::Lock { lock } => {
                let lock = self.lock_place(*lock);
                self.has_bad_lock |= lock.is_none();
                self.take(lock?);
                Kind::Lock { lock: lock? }
            }
            Syntax::Unlock { lock } => {
                let lock = self.lock_place(*lock)?;
                self.needs(lock, "unlocks");
                self.release(lock);
                Kind::Unlock { lock }
            }
            Syntax::Wait { condition, lock } => return self.wait(*condition, *lock),
            Syntax::Notify { condition } => Kind::Notify { condition: self.condition(*condition)? },
            Syntax::NotifyAll { condition } => {
                Kind::NotifyAll { condition: self.condition(*condition)? }
            }
            Syntax::Join { name } => Kind::Join { local: self.handle(*name)? },
            Syntax::Assert { condition } => Kind::Assert { condition: self.expression(*condition) },
            Syntax::Assume { condition } => Kind::Assume { condition: self.expression(*condition) },
            Syntax::Skip => Kind::Skip,
            Syntax::Return { value } => self.give_back(*value, word),
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
        let range = self.range(range, Self::declare_integer);
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
        let range = self.range(range, Self::declare_for_threads);
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

    fn declare_integer(&mut self, name: Span) -> LocalId {
        self.declare(name, false)
    }

    /// The range of a loop; its variable is declared behind it.
    fn range(
        &mut self,
        range: &syntax::Range,
        declare: impl FnOnce(&mut Self, Span) -> LocalId,
    ) -> Range {
        let outer = self.scope.declaring.replace(range.name);
        let (from, to) = (self.expression(range.from), self.expression(range.to));
        self.scope.declaring = outer;
        let local = declare(self, range.name);
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

    fn give_back(&mut self, value: Option<Value>, word: Span) -> Kind {
        let value = value.map(|value| self.expression(value));
        if let Some(value) = value {
            self.check_return(word, self.program.expressions[value].span);
        }
        Kind::Return { value }
    }

    /// Whether there is a function to give a value back from.
    fn check_return(&mut self, word: Span, value: Span) {
        let error = match (self.body.threads.last(), self.body.function) {
            (Some(thread), _) => {
                Diagnostic::error(value, "a thread gives no value back", "unexpected value")
                    .and(thread.word, "the thread starts here")
            }
            (None, Some(_)) => return,
            (None, None) => {
                Diagnostic::error(value, "only a function gives a value back", "unexpected value")
                    .and(word, "this ends the thread")
            }
        };
        self.report(error.help("write `return;`, and leave results in a `shared` variable"));
    }
}
