//! Declarations, and the bodies among them.

use reweave_base::{FxHashSet, Id as _};

use super::{Body, Entity, Resolver};
use crate::diagnostic::Diagnostic;
use crate::program::{BlockId, Condition, Function, FunctionId, Global, GlobalId, Lock, Thread};
use crate::source::Span;
use crate::syntax::{Block, Item, Length};

use super::suggest::Wanted;

/// What there is room for.
struct Room {
    /// How many elements all arrays have together, where what is no array counts for one.
    elements_max: u64,
    /// How many elements the declarations so far have.
    elements: u64,
    noun: &'static str,
}

impl Room {
    const SHARED: Self = Self { elements_max: 1 << 24, elements: 0, noun: "shared variables" };
    const LOCKS: Self = Self { elements_max: 1 << 20, elements: 0, noun: "locks" };
}

/// Stands for the body until the body is resolved.
fn no_body() -> BlockId {
    BlockId::from_index(0)
}

impl<'s> Resolver<'s> {
    /// Gives every declaration its id.
    pub(super) fn declare_items(&mut self) {
        let (mut variables, mut locks) = (Room::SHARED, Room::LOCKS);
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

    /// The length of what is declared as `name`, for which there must be `room`.
    fn length(&mut self, name: Span, length: Option<Length>, room: &mut Room) -> Option<u32> {
        let (value, span) = length.map_or((1, name), |length| (length.value, length.span));
        let most = room.elements_max;
        if value == 0 || value > most {
            let label = if value == 0 { "this would have no element" } else { "this is too long" };
            let message = format!("the length of an array is between 1 and {most}");
            self.report(Diagnostic::error(span, message, label));
            // Of this length no constant index is out of bounds.
            return Some(u32::MAX);
        }
        let before = room.elements;
        room.elements += value;
        // The declarations behind the one that goes over have no fault of their own.
        if before <= most && room.elements > most {
            let message = format!(
                "there are too many {}: together they have at most {most} elements",
                room.noun
            );
            let label = format!("{} with this, {before} before it", room.elements);
            self.report(Diagnostic::error(span, message, label));
        }
        length.map(|_| value as u32)
    }

    /// Resolves all bodies, in the order of the text.
    pub(super) fn bodies(&mut self) {
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
