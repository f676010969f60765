//! From names as written to ids, with every rule that a name or a place must keep.
//!
//! All declarations of a program share one set of names and may stand in any order; a local lives
//! from its `let` to the end of its block. What has a fault is reported and replaced by something
//! harmless, so that the rest is still looked at; the program is good for use only if nothing but
//! warnings was reported. The cost is linear, but for proposals of similar names, of which there
//! are at most [`SUGGESTIONS_MAX`].

mod statements;

use reweave_base::{FxHashMap, FxHashSet, Id as _, IndexVec};
use reweave_trace::Binary;

use crate::diagnostic::{Diagnostic, Label, quoted, short};
use crate::program::{
    BlockId, Condition, ConditionId, ExprId, Function, FunctionId, Global, GlobalId, Local,
    LocalId, Lock, LockId, Program, Thread,
};
use crate::resolve::statements::{Held, Release};
use crate::source::{Source, Span};
use crate::syntax::{Block, Item, Length, NodeId, NodeKind, Syntax, Value};

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
        self.local_entity(name).or_else(|| self.entities.get(name).copied())
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

// Declarations, and the bodies among them.

/// How many elements declarations of one kind may have.
struct Capacity {
    /// How many elements all arrays have together, where what is no array counts for one.
    elements_max: u64,
    /// How many elements the declarations so far have.
    elements: u64,
    noun: &'static str,
}

impl Capacity {
    const SHARED: Self = Self { elements_max: 1 << 24, elements: 0, noun: "shared variables" };
    const LOCKS: Self = Self { elements_max: 1 << 20, elements: 0, noun: "locks" };
}

/// Stands for the body until the body is resolved.
fn no_body() -> BlockId {
    BlockId::from_index(0)
}

impl<'s> Resolver<'s> {
    /// Gives every declaration its id.
    fn declare_items(&mut self) {
        let (mut variables, mut locks) = (Capacity::SHARED, Capacity::LOCKS);
        for item in &self.syntax.items {
            match item {
                Item::Shared { name, length, initial } => {
                    let name_text = self.text(*name).to_owned();
                    let length = self.length(*name, *length, &mut variables);
                    let initial = initial.map_or(0, |value| self.initial(value));
                    let global = Global { name: name_text, span: *name, length, initial };
                    let id = self.program.globals.push(global);
                    self.declare_item(*name, Entity::Global(id));
                }
                Item::Lock { name, length } => {
                    let name_text = self.text(*name).to_owned();
                    let length = self.length(*name, *length, &mut locks);
                    let id = self.program.locks.push(Lock { name: name_text, span: *name, length });
                    self.is_taken.push(false);
                    self.declare_item(*name, Entity::Lock(id));
                }
                Item::Condition { name } => {
                    let condition = Condition { name: self.text(*name).to_owned(), span: *name };
                    let id = self.program.conditions.push(condition);
                    self.declare_item(*name, Entity::Condition(id));
                }
                Item::Function { name, parameters, .. } => {
                    self.arities.push(parameters.len());
                    let id = self.program.functions.push(Function {
                        name: self.text(*name).to_owned(),
                        span: *name,
                        parameters: Vec::new(),
                        body: no_body(),
                    });
                    self.declare_item(*name, Entity::Function(id));
                }
                Item::Thread { name, .. } => {
                    let position = self.program.threads.len();
                    self.program.threads.push(Thread {
                        name: self.text(*name).to_owned(),
                        span: *name,
                        body: no_body(),
                    });
                    self.declare_item(*name, Entity::Thread(position));
                }
                Item::Focus { .. } | Item::Main { .. } => {}
            }
        }
    }

    fn declare_item(&mut self, span: Span, entity: Entity) {
        let name = self.text(span);
        if let Some(&first) = self.entities.get(name) {
            let message = format!("the name {} is declared twice", self.shown(span));
            let what = format!("this is {}", self.describe(first));
            let error = Diagnostic::error(span, message, "declared again here")
                .and(self.declaration(first), what)
                .help("shared variables, locks, conditions, functions and threads share one set of names");
            return self.report(error);
        }
        self.entities.insert(name, entity);
        self.declarations.push(name);
    }

    /// The length of what is declared as `name`, which counts against `capacity`.
    fn length(
        &mut self,
        name: Span,
        length: Option<Length>,
        capacity: &mut Capacity,
    ) -> Option<u32> {
        let (value, span) = length.map_or((1, name), |length| (length.value, length.span));
        let most = capacity.elements_max;
        if value == 0 || value > most {
            let label = if value == 0 { "this would have no element" } else { "this is too long" };
            let message = format!("the length of an array is between 1 and {most}");
            self.report(Diagnostic::error(span, message, label));
            // Of this length no constant index is out of bounds.
            return Some(u32::MAX);
        }
        let before = capacity.elements;
        capacity.elements += value;
        // The declarations behind the one that goes over have no fault of their own.
        if before <= most && capacity.elements > most {
            let message = format!(
                "there are too many {}: together they have at most {most} elements",
                capacity.noun
            );
            let label = format!("{} with this, {before} before it", capacity.elements);
            self.report(Diagnostic::error(span, message, label));
        }
        length.map(|_| value as u32)
    }

    /// Resolves all bodies, in the order of the text.
    fn bodies(&mut self) {
        let syntax = self.syntax;
        let (mut functions, mut threads) = (0, 0);
        let (mut main, mut focus) = (None, FxHashSet::default());
        for item in &syntax.items {
            match item {
                Item::Shared { .. } | Item::Lock { .. } | Item::Condition { .. } => {}
                Item::Focus { names } => {
                    for &name in names {
                        self.focus(name, &mut focus);
                    }
                }
                Item::Function { parameters, body, .. } => {
                    self.function(FunctionId::from_index(functions), parameters, body);
                    functions += 1;
                }
                Item::Thread { body, .. } => {
                    self.program.threads[threads].body = self.outer_body(body);
                    threads += 1;
                }
                Item::Main { word, body } => {
                    let block = self.outer_body(body);
                    match main {
                        None => main = Some(*word),
                        Some(first) => self.second_main(*word, first),
                    }
                    self.program.main.get_or_insert(block);
                }
            }
        }
        if self.program.focus.is_empty() {
            self.program.focus = self.program.globals.ids().collect();
        }
        if self.program.threads.is_empty() && self.program.main.is_none() {
            self.nothing_to_run();
        }
    }

    fn function(&mut self, id: FunctionId, parameters: &[Span], body: &'s Block) {
        self.body = Body { function: Some(id), ..Body::default() };
        let locals = parameters.iter().map(|&name| self.declare(name, false)).collect();
        self.program.functions[id].parameters = locals;
        let block = self.block(body, None);
        self.program.functions[id].body = block;
        self.end_body();
    }

    /// The body of a thread or of `main`.
    fn outer_body(&mut self, body: &'s Block) -> BlockId {
        self.body = Body::default();
        let block = self.block(body, None);
        self.end_body();
        block
    }

    fn end_body(&mut self) {
        self.scope.end();
        self.missing.clear();
    }

    fn second_main(&mut self, word: Span, first: Span) {
        let error = Diagnostic::error(word, "there are two `main`s", "the second")
            .and(first, "the first")
            .help("a program has one `main` at most; make the other a `thread`");
        self.report(error);
    }

    fn nothing_to_run(&mut self) {
        let end = self.source.text().trim_end().len() as u32;
        let message = "nothing to run: the program has neither `main` nor a `thread`";
        let error = Diagnostic::error(Span::new(end, end), message, "the program ends here");
        self.report(error.help("add `main { … }` or `thread t { … }`"));
    }

    fn focus(&mut self, span: Span, seen: &mut FxHashSet<GlobalId>) {
        let global = match self.entities.get(self.text(span)) {
            Some(&Entity::Global(global)) => global,
            Some(&other) => return self.wrong_kind(span, other, Wanted::Shared),
            None => return self.undeclared(span, Wanted::Shared),
        };
        if seen.insert(global) {
            return self.program.focus.push(global);
        }
        let message = format!("{} is in focus twice", self.shown(span));
        self.report(Diagnostic::error(span, message, "leave this out"));
    }
}

// Which locals live where.

/// The locals that live at some place of a body.
#[derive(Debug, Default)]
struct Scope<'s> {
    live: FxHashMap<&'s str, LocalId>,
    /// The names of those, in the order of their declaration.
    names: Vec<&'s str>,
    /// Locals of this body whose block has ended; of several of one name, the last.
    ended: FxHashMap<&'s str, LocalId>,
    info: IndexVec<LocalId, Info>,
    /// The local whose first value is being computed.
    declaring: Option<Span>,
}

/// What is to be known of a local.
#[derive(Clone, Copy, Debug)]
struct Info {
    is_handle: bool,
    /// How many blocks that are threads of their own are around its declaration.
    depth: usize,
    /// How many such blocks are around the place where the local itself lives: one more for the
    /// variable of a `coforeach`, of which each thread has its own.
    home: usize,
}

impl Scope<'_> {
    /// Starts a block; what it gives is for [`Scope::leave`].
    fn enter(&self) -> usize {
        self.names.len()
    }

    /// Ends a block.
    fn leave(&mut self, mark: usize) {
        for name in self.names.drain(mark..) {
            if let Some(local) = self.live.remove(name) {
                self.ended.insert(name, local);
            }
        }
    }

    /// Ends a body: nothing of it is remembered.
    fn end(&mut self) {
        self.leave(0);
        self.ended.clear();
    }
}

impl Resolver<'_> {
    /// Declares a local integer, or the handle of a thread.
    fn declare(&mut self, name: Span, is_handle: bool) -> LocalId {
        let depth = self.body.threads.len();
        self.declare_at(name, Info { is_handle, depth, home: depth })
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
    fn capture(&mut self, local: LocalId) {
        let depth = self.scope.info[local].depth;
        for thread in &mut self.body.threads[depth..] {
            thread.captured.insert(local);
        }
    }
}

// What shared variables hold at the start.

impl Resolver<'_> {
    /// The value of a constant expression; 0 if it has a fault, which is reported.
    fn initial(&mut self, value: Value) -> i64 {
        let first = value.first.index();
        let mut values: Vec<i64> = Vec::with_capacity(value.root.index() + 1 - first);
        for index in first..=value.root.index() {
            let node = &self.syntax.nodes[NodeId::from_index(index)];
            let of = |id: NodeId| values[id.index() - first];
            let computed = match &node.kind {
                NodeKind::Number(number) => Ok(*number),
                NodeKind::Paren(inner) => Ok(of(*inner)),
                NodeKind::Unary(operator, inner) => Ok(operator.apply(of(*inner))),
                NodeKind::Binary(operator, left, right) => {
                    let (left, right) = (of(*left), of(*right));
                    // What is left out is not computed: `0 && 1 / 0` is 0.
                    operator.apply(left, right).ok_or_else(|| {
                        Diagnostic::error(
                            node.span,
                            format!("{} by zero", name_of(*operator)),
                            "this has no value to start with",
                        )
                    })
                }
                NodeKind::Name | NodeKind::Index { .. } | NodeKind::Call { .. } => {
                    let error = Diagnostic::error(
                        node.span,
                        "what a shared variable holds at the start is a constant",
                        "this is no constant",
                    );
                    let foreign = elsewhere(self.text(node.span));
                    let usual = "assign it in `main`, which runs before the threads";
                    Err(error.help(foreign.unwrap_or(usual)))
                }
            };
            match computed {
                Ok(number) => values.push(number),
                Err(error) => {
                    self.report(error);
                    return 0;
                }
            }
        }
        values.last().copied().unwrap_or(0)
    }
}

/// What the operator does, as a noun.
const fn name_of(operator: Binary) -> &'static str {
    if matches!(operator, Binary::Remainder) { "remainder" } else { "division" }
}

// What was meant by a name that is not there, or is something else.

/// Names longer than this are not compared.
const COMPARED_MAX: usize = 64;

/// How many arguments of a call are shown: as many as the statements that it may stand for have.
const ARGUMENTS_SHOWN: usize = 2;

/// What a name should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// An integer to read.
    Value,
    /// An integer to assign to.
    Variable,
    Shared,
    Lock,
    Condition,
    Function,
    Handle,
}

impl Wanted {
    const fn name(self) -> &'static str {
        match self {
            Self::Value => "a value",
            Self::Variable => "a variable",
            Self::Shared => "a shared variable",
            Self::Lock => "a lock",
            Self::Condition => "a condition",
            Self::Function => "a function",
            Self::Handle => "a forked thread",
        }
    }

    const fn accepts(self, entity: Entity) -> bool {
        match entity {
            Entity::Global(_) => matches!(self, Self::Value | Self::Variable | Self::Shared),
            Entity::Local(_) => matches!(self, Self::Value | Self::Variable),
            Entity::Lock(_) => matches!(self, Self::Lock),
            Entity::Condition(_) => matches!(self, Self::Condition),
            Entity::Function(_) => matches!(self, Self::Function),
            Entity::Handle(_) => matches!(self, Self::Handle),
            Entity::Thread(_) => false,
        }
    }
}

impl Resolver<'_> {
    /// The name at `span` is declared nowhere, or not here.
    fn undeclared(&mut self, span: Span, wanted: Wanted) {
        let name = self.text(span);
        let message = format!("{} is not declared here", self.shown(span));
        let label = format!("expected {}", wanted.name());
        let error = Diagnostic::error(span, message, label);
        let is_own = self.scope.declaring.is_some_and(|own| self.text(own) == name);
        let error = if let Some(help) = elsewhere(name) {
            error.help(help)
        } else if is_own {
            error.help("a local can be used after its declaration, not in its own first value")
        } else if let Some(&local) = self.scope.ended.get(name) {
            let place = self.program.locals[local].span;
            error
                .and(place, "declared here, in a block that has ended")
                .help("declare it before that block to use it here")
        } else if let Some(similar) = self.similar(name, wanted) {
            error.help(format!("did you mean {}?", quoted(similar)))
        } else {
            let name = short(name);
            let message = self.diagnostics.len();
            self.missing.entry(self.source.slice(span)).or_insert(message);
            match wanted {
                Wanted::Variable => error.help(format!(
                    "write `let {name} = …;` for a local, or declare it outside: `shared {name};`"
                )),
                _ => error,
            }
        };
        self.report(error);
    }

    /// Whether the call of what is declared nowhere is a statement of the language under another
    /// name, which it then says.
    fn is_foreign_statement(&mut self, name: Span, arguments: &[Value]) -> bool {
        if self.entity(name).is_some() {
            return false;
        }
        let Some(word) = statement_word(self.text(name)) else { return false };
        let spans =
            arguments.iter().take(ARGUMENTS_SHOWN).map(|value| self.syntax.nodes[value.root].span);
        let shown: Vec<String> = spans.map(|span| short(self.text(span))).collect();
        let shown = if shown.is_empty() { "…".to_owned() } else { shown.join(", ") };
        let message = format!("{} is not declared here", self.shown(name));
        let error = Diagnostic::error(name, message, "expected a function");
        self.report(error.help(format!("did you mean `{word}({shown});`?")));
        self.has_bad_lock |= word == "lock";
        true
    }

    /// The name at `span` is something, but not what it should be.
    fn wrong_kind(&mut self, span: Span, entity: Entity, wanted: Wanted) {
        let expected = wanted.name();
        let message = format!("expected {expected}, found {}", self.describe(entity));
        let name = short(self.text(span));
        let help = match (wanted, entity) {
            (Wanted::Value, Entity::Function(_)) => Some(format!("to call it, write `{name}(…)`")),
            (Wanted::Value, Entity::Handle(_)) => {
                Some(format!("a forked thread can only be joined: `join({name});`"))
            }
            (Wanted::Variable, Entity::Handle(_)) => {
                Some("a forked thread keeps its name; choose another one for this".into())
            }
            (Wanted::Shared, Entity::Local(_)) => {
                Some("a local belongs to one thread; declare it outside by `shared`".into())
            }
            (Wanted::Handle, Entity::Thread(_)) => Some(
                "a `thread` is there from the start and is not joined; start it by `fork`".into(),
            ),
            (Wanted::Handle, _) => Some("`join` takes the name of `let t = fork { … };`".into()),
            (Wanted::Lock, Entity::Condition(_)) => {
                Some("a condition is waited for: `wait(condition, lock);`".into())
            }
            (Wanted::Lock, Entity::Global(_) | Entity::Local(_)) => {
                Some("a lock is declared outside of blocks: `lock m;`".into())
            }
            (Wanted::Condition, _) => {
                Some("a condition is declared outside of blocks: `cond c;`".into())
            }
            (Wanted::Function, Entity::Thread(_)) => {
                Some("a `thread` runs by itself and is not called".into())
            }
            _ => None,
        };
        let mut error = Diagnostic::error(span, message, format!("expected {expected}"))
            .and(self.declaration(entity), "declared here");
        error.help = help;
        self.report(error);
    }

    /// The nearest name of the kind that is wanted, if one is near; of equally near ones, the
    /// local and then the first.
    fn similar(&mut self, name: &str, wanted: Wanted) -> Option<&str> {
        self.suggestions += 1;
        if self.suggestions > SUGGESTIONS_MAX || name.len() > COMPARED_MAX {
            return None;
        }
        let far = name.len() / 3 + 1;
        let locals = self.scope.names.iter().map(|&name| (name, self.local_entity(name)));
        let items = self.declarations.iter().map(|&name| (name, self.entities.get(name).copied()));
        let fitting = locals
            .chain(items)
            .filter(|(other, entity)| {
                other.len() <= COMPARED_MAX && entity.is_some_and(|entity| wanted.accepts(entity))
            })
            .map(|(other, _)| (distance(name, other), other));
        let near = fitting.filter(|&(distance, other)| distance <= far.min(other.len() / 2));
        near.min_by_key(|&(distance, _)| distance).map(|(_, other)| other)
    }

    fn local_entity(&self, name: &str) -> Option<Entity> {
        let &local = self.scope.live.get(name)?;
        let is_handle = self.scope.info[local].is_handle;
        Some(if is_handle { Entity::Handle(local) } else { Entity::Local(local) })
    }
}

/// The word of the statement that a call stands for in other languages.
fn statement_word(name: &str) -> Option<&'static str> {
    Some(match name {
        "notify_all" | "broadcast" | "cond_broadcast" | "pthread_cond_broadcast" => "notifyall",
        "notify_one"
        | "notifyone"
        | "notifyOne"
        | "signal"
        | "cond_signal"
        | "pthread_cond_signal" => "notify",
        "cond_wait" | "pthread_cond_wait" => "wait",
        "acquire" | "mutex_lock" | "pthread_mutex_lock" => "lock",
        "release" | "mutex_unlock" | "pthread_mutex_unlock" => "unlock",
        "pthread_join" => "join",
        _ => {
            let words = ["notifyall", "notify", "wait", "lock", "unlock", "join", "assert"];
            return words.into_iter().find(|word| name.eq_ignore_ascii_case(word));
        }
    })
}

/// For a name that means something in other languages.
fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "true" | "True" | "TRUE" => "true is any number but 0; write `1`",
        "false" | "False" | "FALSE" => "false is the number 0; write `0`",
        "null" | "NULL" | "nullptr" | "None" | "nil" => "every value is an integer",
        "and" => "write `&&`",
        "or" => "write `||`",
        "not" => "write `!`",
        "print" | "printf" | "println" | "puts" => {
            "there is no output; the values of shared variables are the result"
        }
        "sleep" | "usleep" => "time plays no role: a scheduler picks who runs next",
        "yield" | "sched_yield" | "thread_yield" => {
            "leave it out: a scheduler picks who runs next at every step"
        }
        "spawn" | "async" | "pthread_create" => "a thread is started by `let t = fork { … };`",
        "CAS" | "compare_and_swap" | "compare_exchange" => "write `let ok = cas(x, old, new);`",
        "fetch_add" | "fetchAdd" | "atomic_fetch_add" => "write `let old = fetchadd(x, amount);`",
        "malloc" | "free" | "alloc" => "there is no memory to allocate; use a `shared` array",
        "main" => "`main` cannot be called",
        _ => return None,
    })
}

/// How many letters to insert, delete, replace or swap with their neighbour to make one name the
/// other, whatever their case.
fn distance(one: &str, other: &str) -> usize {
    strsim::osa_distance(&one.to_ascii_lowercase(), &other.to_ascii_lowercase())
}

// Functions that call themselves, directly or through others.

/// How many names of a cycle are shown.
const SHOWN_MAX: usize = 8;

/// One call in the text.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// The function that calls; none for threads and `main`.
    from: Option<FunctionId>,
    to: FunctionId,
    /// The name in the call.
    span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// On the path from where the search started, at this position.
    Open(usize),
    Done,
}

impl Resolver<'_> {
    /// Reports every call that closes a cycle, in a search through all functions.
    fn check_calls(&mut self) {
        let mut outgoing: IndexVec<FunctionId, Vec<Call>> =
            IndexVec::from_elem(Vec::new(), self.program.functions.len());
        for call in std::mem::take(&mut self.calls) {
            if let Some(from) = call.from {
                outgoing[from].push(call);
            }
        }
        let mut state = IndexVec::from_elem(State::New, outgoing.len());
        for start in outgoing.ids() {
            // The functions on the path, each with how many of its calls were followed.
            let mut path: Vec<(FunctionId, usize)> = Vec::new();
            if state[start] == State::New {
                state[start] = State::Open(0);
                path.push((start, 0));
            }
            while let Some((function, followed)) = path.last_mut() {
                let Some(&call) = outgoing[*function].get(*followed) else {
                    state[*function] = State::Done;
                    path.pop();
                    continue;
                };
                *followed += 1;
                match state[call.to] {
                    State::Done => {}
                    State::Open(position) => self.cycle(&path[position..], &outgoing, call),
                    State::New => {
                        state[call.to] = State::Open(path.len());
                        path.push((call.to, 0));
                    }
                }
            }
        }
    }

    /// Reports the cycle that `last` closes: the functions on it, from the one that is called again.
    fn cycle(
        &mut self,
        cycle: &[(FunctionId, usize)],
        outgoing: &IndexVec<FunctionId, Vec<Call>>,
        last: Call,
    ) {
        let name = |function: FunctionId| short(&self.program.functions[function].name);
        let mut names: Vec<String> =
            cycle.iter().take(SHOWN_MAX).map(|&(function, _)| name(function)).collect();
        if cycle.len() > SHOWN_MAX {
            names.push("…".into());
        }
        names.push(name(last.to));
        let message = format!("`{}` calls itself: {}", name(last.to), names.join(" → "));
        let mut error = Diagnostic::error(last.span, message, "this call closes the circle")
            .help("there is no recursion; use a loop and a `shared` array");
        for &(function, followed) in cycle.iter().take(cycle.len() - 1).take(SHOWN_MAX) {
            let call = outgoing[function][followed - 1];
            error = error.and(call.span, format!("`{}` is called here", name(call.to)));
        }
        self.report(error);
    }
}
