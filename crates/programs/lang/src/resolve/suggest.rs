//! What was meant by a name that is not there, or is something else.

use super::{Entity, Resolver, SUGGESTIONS_MAX};
use crate::diagnostic::{Diagnostic, quoted, short};
use crate::source::Span;
use crate::syntax::Value;

/// Names longer than this are not compared.
const COMPARED_MAX: usize = 64;

/// How many arguments of a call are shown: as many as the statements that it may stand for have.
const ARGUMENTS_SHOWN: usize = 2;

/// What a name should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
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
    pub(super) fn undeclared(&mut self, span: Span, wanted: Wanted) {
        let name = self.text(span);
        let message = format!("{} is not declared here", self.shown(span));
        let label = format!("expected {}", wanted.name());
        let error = Diagnostic::error(span, message, label);
        let is_own = self.scope.declaring.is_some_and(|own| self.text(own) == name);
        let error = if let Some(help) = elsewhere(name) {
            error.help(help)
        } else if is_own {
            error.help("a local can be used after its declaration, not in its own first value")
        } else if let Some(local) = self.scope.ended(name) {
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
    pub(super) fn is_foreign_statement(&mut self, name: Span, arguments: &[Value]) -> bool {
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
    pub(super) fn wrong_kind(&mut self, span: Span, entity: Entity, wanted: Wanted) {
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
        let locals = self.scope.names().iter().map(|&name| (name, self.local_entity(name)));
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
        let local = self.scope.find(name)?;
        let is_handle = self.scope.info(local).is_handle;
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
pub(super) fn elsewhere(name: &str) -> Option<&'static str> {
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

/// How many letters to put in, leave out, replace or swap with their neighbour to make one name
/// the other; the upper and the lower case of a letter count as equal.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<u8> = one.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
    let other: Vec<u8> = other.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, &letter) in one.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, &opposite) in other.iter().enumerate() {
            let replaced = row[j] + usize::from(letter != opposite);
            let mut best = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && letter == other[j - 1] && one[i - 1] == opposite {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = row;
        row = next;
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_of_neighbours_is_one_mistake() {
        for (one, other, expected) in [
            ("x", "x", 0),
            ("lenght", "length", 1),
            ("head", "haed", 1),
            ("a", "bc", 2),
            ("", "ab", 2),
            ("Top", "top", 0),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
