//! From names as written to ids, with every rule that a name or a place must keep.
//!
//! All declarations of a program share one set of names and may stand in any order; a local lives
//! from its `let` to the end of its block. What has a fault is reported and replaced by something
//! harmless, so that the rest is still looked at; the program is good for use only if nothing but
//! warnings was reported. The cost is linear, but for proposals of similar names, of which there
//! are at most [`SUGGESTIONS_MAX`].

mod calls;
mod constants;
mod expressions;
mod held;
mod items;
mod places;
mod scope;
mod statements;
mod suggest;

use reweave_base::{FxHashMap, IndexVec};

use crate::diagnostic::{Diagnostic, quoted};
use crate::program::{ConditionId, ExprId, FunctionId, GlobalId, LocalId, LockId, Program};
use crate::source::{Source, Span};
use crate::syntax::{NodeId, Syntax};

use calls::Call;
use held::{Held, Release};
use scope::Scope;

/// How many faults get a proposal of a similar name.
const SUGGESTIONS_MAX: usize = 50;

/// The resolved form of `syntax`, and what is wrong with it.
pub(crate) fn resolve(source: &Source, syntax: &Syntax) -> (Program, Vec<Diagnostic>) {
    let mut resolver = Resolver {
        source,
        syntax,
        program: Program::default(),
        entities: FxHashMap::default(),
        declarations: Vec::new(),
        values: IndexVec::from_elem(None, syntax.nodes.len()),
        constants: IndexVec::new(),
        arities: IndexVec::new(),
        scope: Scope::default(),
        body: Body::default(),
        calls: Vec::new(),
        is_taken: IndexVec::new(),
        releases: Vec::new(),
        has_bad_lock: false,
        missing: FxHashMap::default(),
        diagnostics: Vec::new(),
        suggestions: 0,
    };
    resolver.declare_items();
    resolver.bodies();
    resolver.check_calls();
    resolver.check_releases();
    (resolver.program, resolver.diagnostics)
}

/// What a declaration declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entity {
    Global(GlobalId),
    Lock(LockId),
    Condition(ConditionId),
    Function(FunctionId),
    /// A thread that is there from the start, by position.
    Thread(usize),
    /// A local integer.
    Local(LocalId),
    /// A local that a `fork` declares.
    Handle(LocalId),
}

struct Resolver<'s> {
    source: &'s Source,
    syntax: &'s Syntax,
    program: Program,
    /// What each name outside of blocks means; of several, the first.
    entities: FxHashMap<&'s str, Entity>,
    /// Those names in the order of their declaration.
    declarations: Vec<&'s str>,
    /// What became of each node of an expression.
    values: IndexVec<NodeId, Option<ExprId>>,
    /// The value of each expression where it is always the same.
    constants: IndexVec<ExprId, Option<i64>>,
    /// How many parameters each function has.
    arities: IndexVec<FunctionId, usize>,
    scope: Scope<'s>,
    body: Body,
    calls: Vec<Call>,
    /// Whether anything takes the lock.
    is_taken: IndexVec<LockId, bool>,
    releases: Vec<Release>,
    /// Whether the place of a statement that takes a lock has a fault.
    has_bad_lock: bool,
    /// Names that were not declared where they are used in this body, with what was said of them.
    missing: FxHashMap<&'s str, usize>,
    diagnostics: Vec<Diagnostic>,
    /// How many similar names were looked for.
    suggestions: usize,
}

/// Where in the body of a function, a thread or `main` we are.
#[derive(Debug, Default)]
struct Body {
    function: Option<FunctionId>,
    /// The blocks around that are threads of their own, the innermost last.
    threads: Vec<Spawned>,
    /// The loops around, with how many such blocks are around each.
    loops: Vec<(Span, usize)>,
    /// The locks that are surely held.
    held: Vec<Held>,
}

/// A block that is a thread of its own.
#[derive(Debug)]
struct Spawned {
    /// The word that starts it.
    word: Span,
    /// Which locals of the code around it uses.
    captured: std::collections::BTreeSet<LocalId>,
}

impl<'s> Resolver<'s> {
    fn text(&self, span: Span) -> &'s str {
        self.source.slice(span)
    }

    /// The text at `span` as a message shows it.
    fn shown(&self, span: Span) -> String {
        quoted(self.text(span))
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// What the name at `span` means here.
    fn entity(&self, span: Span) -> Option<Entity> {
        let name = self.text(span);
        let local = self.scope.find(name).map(|local| {
            if self.scope.info(local).is_handle {
                Entity::Handle(local)
            } else {
                Entity::Local(local)
            }
        });
        local.or_else(|| self.entities.get(name).copied())
    }

    /// Where an entity is declared.
    fn declaration(&self, entity: Entity) -> Span {
        match entity {
            Entity::Global(id) => self.program.globals[id].span,
            Entity::Lock(id) => self.program.locks[id].span,
            Entity::Condition(id) => self.program.conditions[id].span,
            Entity::Function(id) => self.program.functions[id].span,
            Entity::Thread(position) => self.program.threads[position].span,
            Entity::Local(id) | Entity::Handle(id) => self.program.locals[id].span,
        }
    }

    /// What an entity is, for a message.
    fn describe(&self, entity: Entity) -> String {
        let what = match entity {
            Entity::Global(id) if self.program.globals[id].length.is_some() => "the array",
            Entity::Global(_) => "the shared variable",
            Entity::Lock(id) if self.program.locks[id].length.is_some() => "the array of locks",
            Entity::Lock(_) => "the lock",
            Entity::Condition(_) => "the condition",
            Entity::Function(_) => "the function",
            Entity::Thread(_) => "the thread",
            Entity::Local(_) => "the local",
            Entity::Handle(_) => "the forked thread",
        };
        format!("{what} {}", self.shown(self.declaration(entity)))
    }
}
