//! Predicates over a program that still runs, of which there is no trace yet.
//!
//! The part of the language that can be evaluated before the run is over: values of variables, and
//! whether a named thread holds a named lock. The rest needs the rest of the run: what a thread
//! does next, which is its last event, which threads there are in all, which of its events are in
//! the trace. `definitely` and `race` are about whole runs. These are refused, with the place and
//! the reason.
//!
//! Names are not looked up: the caller finds what has them ([`Running::subjects`]) and provides the
//! value of each in a state ([`Running::is_met`]).

use reweave_analysis::Modality;
use reweave_base::{Id, IndexVec};
use reweave_trace::TraceBuilder;

use super::error::{PredicateError, PredicateErrorKind};
use super::expression::{LeafId, Node};
use super::resolve::{self, Atom, Atoms};
use super::syntax::{self, Function, Kind, Syntax};

/// An atom of the predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The value of a variable.
    Variable {
        /// Its name.
        name: String,
    },
    /// Whether a thread holds a lock.
    Holds {
        /// The name of the thread.
        thread: String,
        /// The name of the lock.
        lock: String,
    },
}

/// A predicate over the states of a running program.
#[derive(Clone, Debug)]
pub struct Running {
    text: String,
    modality: Modality,
    root: Node,
    subjects: IndexVec<LeafId, (Subject, String)>,
}

impl Running {
    /// The predicate that `text` says.
    ///
    /// # Errors
    /// If it is not one, or asks what is not known before the run is over.
    pub fn parse(text: &str) -> Result<Self, PredicateError> {
        let (modality, syntax) = syntax::parse(text)?;
        if modality == Modality::Definitely {
            let kind = PredicateErrorKind::TooEarly { what: "what is on every path" };
            return Err(PredicateError { text: text.to_owned(), span: syntax.span, kind });
        }
        let mut builder = TraceBuilder::new();
        name_all(text, &syntax, &mut builder)?;
        let trace = builder.finish().expect("a trace without events is well formed");
        let mut atoms = Atoms::new(&trace);
        let root = resolve::resolve(text, &syntax, &trace, &mut atoms)?;
        let names = trace.names();
        let subject = |leaf: LeafId| {
            let subject = match atoms.atoms[leaf] {
                Atom::Holds(thread, lock) => Subject::Holds {
                    thread: names.threads.name(thread).to_owned(),
                    lock: names.locks.name(lock).to_owned(),
                },
                Atom::Variable(var) => Subject::Variable { name: names.vars.name(var).to_owned() },
                _ => unreachable!("refused when names were gathered"),
            };
            (subject, atoms.spell(leaf))
        };
        let subjects = atoms.leaves.ids().map(subject).collect();
        Ok(Self { text: text.to_owned(), modality, root, subjects })
    }

    /// The text it was made of.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is asked about it.
    #[must_use]
    pub const fn modality(&self) -> Modality {
        self.modality
    }

    /// Its atoms, each with how it is written.
    pub fn subjects(&self) -> impl ExactSizeIterator<Item = (&Subject, &str)> {
        self.subjects.iter().map(|(subject, text)| (subject, text.as_str()))
    }

    /// Whether a state in which each subject, by its place among [`Self::subjects`], has the value
    /// that `value` returns is one that is looked for: it certainly meets the predicate, or under
    /// `always` certainly does not. A truth is 1 or 0.
    pub fn is_met(&self, value: impl Fn(usize) -> Option<i64>) -> bool {
        let wanted = i64::from(self.modality != Modality::Always);
        self.root.value(&|leaf| value(leaf.index())) == Some(wanted)
    }
}

/// Gives `builder` every name of `syntax`; refuses what cannot be asked.
fn name_all(text: &str, syntax: &Syntax, builder: &mut TraceBuilder) -> Result<(), PredicateError> {
    let refuse = |what| {
        let kind = PredicateErrorKind::TooEarly { what };
        Err(PredicateError { text: text.to_owned(), span: syntax.span.clone(), kind })
    };
    match &syntax.kind {
        Kind::Number(_) | Kind::Truth(_) => Ok(()),
        Kind::Race => refuse("which accesses race"),
        Kind::Variable(name) => {
            builder.names().vars.intern(&name.text);
            Ok(())
        }
        Kind::Ask(function, arguments) => match (function, arguments.as_slice()) {
            (Function::Holds, [thread, lock]) => {
                builder.names().threads.intern(&thread.text);
                builder.names().locks.intern(&lock.text);
                Ok(())
            }
            (Function::Local, _) => refuse("which value a local has"),
            (Function::Next, _) => refuse("what a thread does next"),
            (Function::Done, _) => refuse("which event of a thread is its last"),
            _ => refuse("which events of a thread count"),
        },
        Kind::Quantified(..) => refuse("which threads there are in all"),
        Kind::Not(inner) => name_all(text, inner, builder),
        Kind::All(parts) | Kind::Any(parts) => {
            parts.iter().try_for_each(|part| name_all(text, part, builder))
        }
        Kind::Implies(sides) | Kind::Compare(_, sides) | Kind::Arithmetic(_, sides) => {
            sides.iter().try_for_each(|side| name_all(text, side, builder))
        }
        Kind::Sum(terms) => terms.iter().try_for_each(|(_, term)| name_all(text, term, builder)),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[track_caller]
    fn refusal(text: &str) -> String {
        Running::parse(text).expect_err("it asks too much").to_string()
    }

    #[test]
    fn a_state_is_asked_by_the_values_of_what_is_spoken_of() {
        let running = Running::parse("x == 1 && holds(T1, m)").unwrap();
        let subjects: Vec<&str> = running.subjects().map(|(_, text)| text).collect();
        assert_eq!(subjects, ["x", "holds(T1, m)"]);
        for (x, holds, is_met) in [
            (Some(1), Some(1), true),
            (Some(1), Some(0), false),
            (Some(2), Some(1), false),
            (None, Some(1), false),
        ] {
            assert_eq!(running.is_met(|place| [x, holds][place]), is_met, "{x:?} {holds:?}");
        }
    }

    #[test]
    fn what_should_always_hold_is_searched_for_where_it_does_not() {
        let running = Running::parse("always(x < 3)").unwrap();
        assert!(running.is_met(|_| Some(3)));
        assert!(!running.is_met(|_| Some(2)));
        assert!(!running.is_met(|_| None));
        let running = Running::parse("never(x >= 3)").unwrap();
        assert!(running.is_met(|_| Some(3)));
    }

    #[test]
    fn what_only_the_whole_run_tells_is_refused() {
        for text in [
            "race",
            "never(race)",
            "x == 1 && next(T1, \"a.c:1\")",
            "done(T1)",
            "position(T1) > 2",
            "started(T1)",
            "at(T1, \"a.c:1\")",
            "local(T1, i) == 2",
            "count(t: holds(t, m)) > 1",
            "definitely(x == 1)",
        ] {
            assert!(refusal(text).contains("while the program runs"), "{text}");
        }
        expect![[r#"
            unknown while the program runs: which threads there are in all
              count(t: holds(t, m)) > 1
              ^^^^^^^^^^^^^^^^^^^^^
            ask for it afterwards, with `reweave states find` and the trace"#]]
        .assert_eq(&refusal("count(t: holds(t, m)) > 1"));
    }
}
