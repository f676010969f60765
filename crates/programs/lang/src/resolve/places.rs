//! Shared variables, locks, conditions and threads that statements name.

use super::suggest::Wanted;
use super::{Entity, Resolver};
use crate::diagnostic::{Diagnostic, short};
use crate::program::{ConditionId, ExprId, GlobalId, LocalId, LockPlace, Place, StatementKind};
use crate::source::Span;
use crate::syntax;

impl Resolver<'_> {
    /// The name at `name` as what is wanted, if it is anything.
    fn named(&mut self, name: Span, wanted: Wanted) -> Option<Entity> {
        let entity = self.entity(name);
        if entity.is_none() {
            self.undeclared(name, wanted);
        }
        entity
    }

    /// An element of `global`, or `global` itself.
    pub(super) fn shared_place(
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
        match self.named(place.name, Wanted::Shared)? {
            Entity::Global(global) => self.shared_place(global, place.name, index, place.span),
            other => {
                self.wrong_kind(place.name, other, Wanted::Shared);
                None
            }
        }
    }

    /// The lock, or element of an array of locks, at `place`.
    pub(super) fn lock_place(&mut self, place: syntax::Place) -> Option<LockPlace> {
        let index = place.index.map(|index| self.expression(index));
        match self.named(place.name, Wanted::Lock)? {
            Entity::Lock(lock) => {
                let length = self.program.locks[lock].length;
                let entity = Entity::Lock(lock);
                self.check_index(entity, place.name, length, index, place.span)?;
                Some(LockPlace { lock, index, span: place.span })
            }
            other => {
                self.wrong_kind(place.name, other, Wanted::Lock);
                None
            }
        }
    }

    pub(super) fn condition(&mut self, name: Span) -> Option<ConditionId> {
        match self.named(name, Wanted::Condition)? {
            Entity::Condition(condition) => Some(condition),
            other => {
                self.wrong_kind(name, other, Wanted::Condition);
                None
            }
        }
    }

    /// The handle that `join` takes.
    pub(super) fn handle(&mut self, name: Span) -> Option<LocalId> {
        match self.named(name, Wanted::Handle)? {
            Entity::Handle(local) => {
                self.capture(local);
                Some(local)
            }
            other => {
                self.wrong_kind(name, other, Wanted::Handle);
                None
            }
        }
    }

    /// An assignment to a local or a shared variable. Its place is evaluated before its value.
    pub(super) fn assignment(
        &mut self,
        place: syntax::Place,
        value: syntax::Value,
    ) -> Option<StatementKind> {
        let index = place.index.map(|index| self.expression(index));
        let entity = self.named(place.name, Wanted::Variable);
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
        if self.scope.info(local).home >= self.body.threads.len() {
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
    pub(super) fn no_array(&mut self, name: Span, entity: Entity, span: Span) {
        let message = format!("{} has no elements", self.describe(entity));
        let index = Span::new(name.end, span.end);
        let error = Diagnostic::error(index, message, "unexpected index")
            .and(self.declaration(entity), "declared here, not as an array");
        self.report(error);
    }
}
