//! What the names of a predicate mean in a trace.
//!
//! Numbers and truths are told apart, every name is looked up, and what is asked of all threads is
//! asked of each.

use std::ops::Range;

use reweave_base::{Id, Interner};
use reweave_trace::{NameKind, ThreadId, Trace};

use super::PARTS_MAX;
use super::atoms::{Atom, Atoms, PlaceId};
use super::error::{PredicateError, PredicateErrorKind, Type};
use super::expression::{Comparison, Node, Term};
use super::names;
use super::syntax::{Function, Kind, Name, Quantifier, Syntax};

/// `syntax`, which is that of `text`, over the atoms of a trace.
pub(super) fn resolve<'t>(
    text: &str,
    syntax: &Syntax,
    trace: &'t Trace,
    atoms: &mut Atoms<'t>,
) -> Result<Node, PredicateError> {
    Resolver { text, trace, atoms, bound: Vec::new(), parts_count: 0 }.truth(syntax)
}

struct Resolver<'a, 't> {
    text: &'a str,
    trace: &'t Trace,
    atoms: &'a mut Atoms<'t>,
    /// The names that stand for threads here.
    bound: Vec<(&'a str, ThreadId)>,
    parts_count: usize,
}

type Resolved<T = Node> = Result<T, PredicateError>;

impl<'a> Resolver<'a, '_> {
    fn fault<T>(&self, span: &Range<usize>, kind: PredicateErrorKind) -> Resolved<T> {
        Err(PredicateError { text: self.text.to_owned(), span: span.clone(), kind })
    }

    fn truth(&mut self, syntax: &'a Syntax) -> Resolved {
        self.typed(syntax, Type::Truth)
    }

    fn number(&mut self, syntax: &'a Syntax) -> Resolved {
        self.typed(syntax, Type::Number)
    }

    fn typed(&mut self, syntax: &'a Syntax, expected: Type) -> Resolved {
        let (node, found) = self.part(syntax)?;
        if found == expected {
            return Ok(node);
        }
        self.fault(&syntax.span, PredicateErrorKind::Type { expected })
    }

    fn truths(&mut self, parts: &'a [Syntax]) -> Resolved<Vec<Node>> {
        parts.iter().map(|part| self.truth(part)).collect()
    }

    fn part(&mut self, syntax: &'a Syntax) -> Resolved<(Node, Type)> {
        self.parts_count += 1;
        if self.parts_count > PARTS_MAX {
            return self.fault(&syntax.span, PredicateErrorKind::TooLarge);
        }
        let truth = |node| Ok((node, Type::Truth));
        let number = |node| Ok((node, Type::Number));
        match &syntax.kind {
            Kind::Number(value) => number(Node::Constant(Some(*value))),
            Kind::Truth(value) => truth(Node::truth(*value)),
            Kind::Race => self.fault(&syntax.span, PredicateErrorKind::InnerRace),
            Kind::Variable(name) => number(self.variable(name)?),
            Kind::Ask(function, arguments) => {
                let atom = self.asked(*function, arguments)?;
                let kind = if atom.is_truth() { Type::Truth } else { Type::Number };
                Ok((self.atoms.leaf(atom), kind))
            }
            Kind::Quantified(quantifier, name, inner) => self.quantified(*quantifier, name, inner),
            Kind::Not(inner) => truth(Node::Not(Box::new(self.truth(inner)?))),
            Kind::All(parts) => truth(Node::All(self.truths(parts)?)),
            Kind::Any(parts) => truth(Node::Any(self.truths(parts)?)),
            Kind::Implies(sides) => {
                let [left, right] = sides.as_ref();
                let left = Node::Not(Box::new(self.truth(left)?));
                truth(Node::Any(vec![left, self.truth(right)?]))
            }
            Kind::Compare(comparison, sides) => {
                let [left, right] = sides.as_ref();
                let [(left, kind), (right, other)] = [self.part(left)?, self.part(right)?];
                // Truths are the same or not; there is no other order of them.
                let is_order = !matches!(comparison, Comparison::Equal | Comparison::Unequal);
                let fault = match (kind, other) {
                    (Type::Truth, Type::Number) => Some((0, PredicateErrorKind::Mixed)),
                    (Type::Number, Type::Truth) => Some((1, PredicateErrorKind::Mixed)),
                    (Type::Truth, Type::Truth) if is_order => {
                        Some((0, PredicateErrorKind::Type { expected: Type::Number }))
                    }
                    (Type::Truth, Type::Truth) | (Type::Number, Type::Number) => None,
                };
                if let Some((side, kind)) = fault {
                    return self.fault(&sides[side].span, kind);
                }
                truth(Node::Compare(*comparison, Box::new([left, right])))
            }
            Kind::Sum(terms) => {
                let term = |(is_negative, part): &'a (bool, Syntax)| {
                    Ok(Term { is_negative: *is_negative, node: self.number(part)? })
                };
                number(Node::Sum(terms.iter().map(term).collect::<Resolved<_>>()?))
            }
            Kind::Arithmetic(operator, sides) => {
                let [left, right] = sides.as_ref();
                let sides = [self.number(left)?, self.number(right)?];
                number(Node::Arithmetic(*operator, Box::new(sides)))
            }
        }
    }

    /// What is asked of all threads, asked of each.
    fn quantified(
        &mut self,
        quantifier: Quantifier,
        name: &'a Name,
        inner: &'a Syntax,
    ) -> Resolved<(Node, Type)> {
        if self.bound.iter().any(|(bound, _)| *bound == name.text) {
            let kind = PredicateErrorKind::BoundTwice { name: name.text.clone() };
            return self.fault(&name.span, kind);
        }
        let expected = match quantifier {
            Quantifier::Sum => Type::Number,
            Quantifier::Count | Quantifier::Exists | Quantifier::All => Type::Truth,
        };
        let mut parts = Vec::new();
        for (thread, _) in self.trace.names().threads.entries() {
            self.bound.push((&name.text, thread));
            parts.push(self.typed(inner, expected)?);
            self.bound.pop();
        }
        let added = |parts: Vec<Node>| {
            Node::Sum(parts.into_iter().map(|node| Term { is_negative: false, node }).collect())
        };
        Ok(match quantifier {
            Quantifier::Count | Quantifier::Sum => (added(parts), Type::Number),
            Quantifier::Exists => (Node::Any(parts), Type::Truth),
            Quantifier::All => (Node::All(parts), Type::Truth),
        })
    }

    fn asked(&mut self, function: Function, arguments: &[Name]) -> Resolved<Atom> {
        let names = self.trace.names();
        let thread = self.thread(&arguments[0])?;
        match function {
            Function::At => Ok(Atom::At(thread, self.place(&arguments[1])?)),
            Function::Next => Ok(Atom::Next(thread, self.place(&arguments[1])?)),
            Function::Holds => {
                Ok(Atom::Holds(thread, self.known(&names.locks, NameKind::Lock, &arguments[1])?))
            }
            Function::Position => Ok(Atom::Position(thread)),
            Function::Done => Ok(Atom::Done(thread)),
            Function::Started => Ok(Atom::Started(thread)),
            Function::Local => {
                Ok(Atom::Local(thread, self.known(&names.locals, NameKind::Local, &arguments[1])?))
            }
        }
    }

    fn bound(&self, name: &str) -> Option<ThreadId> {
        self.bound.iter().find(|(bound, _)| *bound == name).map(|&(_, thread)| thread)
    }

    fn thread(&self, name: &Name) -> Resolved<ThreadId> {
        match self.bound(&name.text) {
            Some(thread) if !name.is_quoted => Ok(thread),
            _ => self.known(&self.trace.names().threads, NameKind::Thread, name),
        }
    }

    fn place(&mut self, name: &Name) -> Resolved<PlaceId> {
        if let Some(place) = self.atoms.place(&name.text) {
            return Ok(place);
        }
        let names = self.trace.names();
        // With and without the last number: a line is named as often as a column in it.
        let locations = names.sites.entries().flat_map(|(site, _)| {
            let location = names.location(site);
            let line = location.rsplit_once(':').map(|(line, _)| line);
            [Some(location), line].into_iter().flatten()
        });
        let near = names::nearest(&name.text, locations);
        self.unknown(NameKind::Site, &name.text, &name.span, near)
    }

    /// The thing that `name` names among `all`.
    fn known<I: Id>(&self, all: &Interner<I>, kind: NameKind, name: &Name) -> Resolved<I> {
        match all.get(&name.text) {
            Some(id) => Ok(id),
            None => {
                let near = names::nearest(&name.text, all.entries().map(|(_, name)| name));
                self.unknown(kind, &name.text, &name.span, near)
            }
        }
    }

    fn unknown<T>(
        &self,
        kind: NameKind,
        name: &str,
        span: &Range<usize>,
        near: Vec<String>,
    ) -> Resolved<T> {
        let names = self.trace.names();
        let also = if self.bound(name).is_some() || names.threads.get(name).is_some() {
            Some(NameKind::Thread)
        } else if names.locks.get(name).is_some() {
            Some(NameKind::Lock)
        } else if names.locals.get(name).is_some() {
            Some(NameKind::Local)
        } else {
            None
        };
        let name = name.to_owned();
        self.fault(span, PredicateErrorKind::Unknown { kind, name, near, also })
    }

    /// A variable, or `thread.local`.
    fn variable(&mut self, name: &Name) -> Resolved {
        let names = self.trace.names();
        let var = names.vars.get(&name.text);
        let local = if name.is_quoted { None } else { self.dotted(name, var.is_some())? };
        let atom = match (var, local) {
            (None, Some(local)) => local.atom,
            // What stands for a thread stands for nothing else.
            (Some(_), Some(local)) if local.is_bound => local.atom,
            (Some(_), Some(local)) => {
                let kind =
                    PredicateErrorKind::Ambiguous { name: name.text.clone(), local: local.spelled };
                return self.fault(&name.span, kind);
            }
            (Some(var), None) => Atom::Variable(var),
            (None, None) => Atom::Variable(self.known(&names.vars, NameKind::Var, name)?),
        };
        Ok(self.atoms.leaf(atom))
    }

    /// What `name` is if it is that of a thread, a dot, and that of a local.
    fn dotted(&self, name: &Name, is_variable: bool) -> Resolved<Option<Dotted>> {
        let names = self.trace.names();
        let mut without_local = None;
        for (at, _) in name.text.match_indices('.') {
            let (owner, rest) = (&name.text[..at], &name.text[at + 1..]);
            let bound = self.bound(owner);
            let Some(thread) = bound.or_else(|| names.threads.get(owner)) else { continue };
            if let Some(local) = names.locals.get(rest) {
                let spelled = format!("local({owner}, {rest})");
                let is_bound = bound.is_some();
                return Ok(Some(Dotted { atom: Atom::Local(thread, local), is_bound, spelled }));
            }
            if bound.is_some() || !is_variable {
                without_local = without_local.or(Some(rest));
            }
        }
        let Some(local) = without_local else { return Ok(None) };
        let near = names::nearest(local, names.locals.entries().map(|(_, name)| name));
        let span = name.span.end - local.len()..name.span.end;
        self.unknown(NameKind::Local, local, &span, near)
    }
}

/// A thread's local, written with a dot.
struct Dotted {
    atom: Atom,
    /// Whether the thread's name stands for threads in turn.
    is_bound: bool,
    spelled: String,
}
