//! Which locals live where.

use reweave_base::{FxHashMap, IndexVec};

use super::{Entity, Resolver};
use crate::diagnostic::{Diagnostic, Label};
use crate::program::{Local, LocalId};
use crate::source::Span;

/// The locals that live at some place of a body.
#[derive(Debug, Default)]
pub(super) struct Scope<'s> {
    live: FxHashMap<&'s str, LocalId>,
    /// The names of those, in the order of their declaration.
    names: Vec<&'s str>,
    /// Locals of this body whose block has ended; of several of one name, the last.
    ended: FxHashMap<&'s str, LocalId>,
    info: IndexVec<LocalId, Info>,
    /// The local whose first value is being computed.
    pub(super) declaring: Option<Span>,
}

/// What is to be known of a local.
#[derive(Clone, Copy, Debug)]
pub(super) struct Info {
    pub(super) is_handle: bool,
    /// How many blocks that are threads of their own are around its declaration.
    pub(super) depth: usize,
    /// How many such blocks are around the place where the local itself lives: one more for the
    /// variable of a `coforeach`, of which each thread has its own.
    pub(super) home: usize,
}

impl<'s> Scope<'s> {
    /// The local of that name that lives here.
    pub(super) fn find(&self, name: &str) -> Option<LocalId> {
        self.live.get(name).copied()
    }

    pub(super) fn info(&self, local: LocalId) -> Info {
        self.info[local]
    }

    /// The local of that name that lived before.
    pub(super) fn ended(&self, name: &str) -> Option<LocalId> {
        self.ended.get(name).copied()
    }

    /// The names of all that live here, in the order of their declaration.
    pub(super) fn names(&self) -> &[&'s str] {
        &self.names
    }

    /// Starts a block; what it gives is for [`Scope::leave`].
    pub(super) fn enter(&self) -> usize {
        self.names.len()
    }

    /// Ends a block.
    pub(super) fn leave(&mut self, mark: usize) {
        for name in self.names.drain(mark..) {
            if let Some(local) = self.live.remove(name) {
                self.ended.insert(name, local);
            }
        }
    }

    /// Ends a body: nothing of it is remembered.
    pub(super) fn end(&mut self) {
        self.leave(0);
        self.ended.clear();
    }
}

impl Resolver<'_> {
    /// Declares a local integer, or the handle of a thread.
    pub(super) fn declare(&mut self, name: Span, is_handle: bool) -> LocalId {
        let depth = self.body.threads.len();
        self.declare_at(name, Info { is_handle, depth, home: depth })
    }

    /// Declares the variable of a `coforeach`, of which each thread has its own.
    pub(super) fn declare_for_threads(&mut self, name: Span) -> LocalId {
        let depth = self.body.threads.len();
        self.declare_at(name, Info { is_handle: false, depth, home: depth + 1 })
    }

    fn declare_at(&mut self, span: Span, info: Info) -> LocalId {
        let name = self.text(span);
        let local = self.program.locals.push(Local { name: name.to_owned(), span });
        self.scope.info.push(info);
        if let Some(there) = self.entity(span) {
            self.shadowing(span, there);
            return local;
        }
        if let Some(said) = self.missing.remove(name) {
            let error = &mut self.diagnostics[said];
            error.secondary.push(Label { span, text: "declared only here".into() });
            error.help = Some("a local can be used after its declaration".into());
        }
        self.scope.live.insert(name, local);
        self.scope.names.push(name);
        local
    }

    fn shadowing(&mut self, span: Span, there: Entity) {
        let message = format!("the name {} is taken", self.shown(span));
        let what = match there {
            Entity::Local(_) | Entity::Handle(_) => "another local that lives here".to_owned(),
            _ => self.describe(there),
        };
        let error = Diagnostic::error(span, message, "declared again here")
            .and(self.declaration(there), format!("this is {what}"))
            .help("a local cannot hide another name; choose a different one");
        self.report(error);
    }

    /// Notes that the code here uses a local: the blocks that are threads of their own between its
    /// declaration and here get a copy.
    pub(super) fn capture(&mut self, local: LocalId) {
        let depth = self.scope.info(local).depth;
        for thread in &mut self.body.threads[depth..] {
            thread.captured.insert(local);
        }
    }
}
