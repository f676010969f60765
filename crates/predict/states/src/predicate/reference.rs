//! What a predicate means, by its definition: a cut's events run again, in observed order, and the
//! text is asked of what they leave behind. For tests.
//!
//! What a part can be is a first and a last number, or none if it can be anything. A truth that is not
//! known can be 0 or 1.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{
    AccessOp, EventId, LocalId, LockId, LockOp, Op, SiteId, ThreadId, Trace, VarId,
};

use super::Modality;
use super::expression::{Comparison, Operator};
use super::syntax::{self, Function, Kind, Name, Quantifier, Syntax};

/// Whether `text` is true of `cut`, which says how many events each thread has run; none if that is
/// not known. The modality is left out.
///
/// # Panics
/// If the text is no predicate over `trace`, or is `race`.
#[must_use]
pub fn truth(text: &str, trace: &Trace, cut: &IndexVec<ThreadId, u32>) -> Option<bool> {
    let (_, syntax) = syntax::parse(text).expect("the text is a predicate");
    let mut memory = Memory::run(trace, cut);
    match memory.range(&syntax) {
        FALSE => Some(false),
        TRUE => Some(true),
        _ => None,
    }
}

/// Whether `cut` meets what is searched for.
///
/// # Panics
/// If the text is no predicate over `trace`, or is `race`.
#[must_use]
pub fn is_met(text: &str, trace: &Trace, cut: &IndexVec<ThreadId, u32>) -> bool {
    let (modality, _) = syntax::parse(text).expect("the text is a predicate");
    truth(text, trace, cut) == Some(modality != Modality::Always)
}

/// What something can be.
type Range = Option<(i64, i64)>;

const FALSE: Range = Some((0, 0));
const TRUE: Range = Some((1, 1));
const EITHER: Range = Some((0, 1));

/// What the events of a cut leave behind.
struct Memory<'t> {
    trace: &'t Trace,
    positions: FxHashMap<ThreadId, usize>,
    last_sites: FxHashMap<ThreadId, SiteId>,
    holds: FxHashMap<(ThreadId, LockId), i64>,
    locals: FxHashMap<(ThreadId, LocalId), Option<i64>>,
    vars: FxHashMap<VarId, Option<i64>>,
    bound: Vec<(String, ThreadId)>,
}

impl<'t> Memory<'t> {
    fn run(trace: &'t Trace, cut: &IndexVec<ThreadId, u32>) -> Self {
        let mut memory = Self {
            trace,
            positions: FxHashMap::default(),
            last_sites: FxHashMap::default(),
            holds: FxHashMap::default(),
            locals: FxHashMap::default(),
            vars: FxHashMap::default(),
            bound: Vec::new(),
        };
        for (id, event) in trace.events() {
            let position = memory.positions.entry(event.thread).or_insert(0);
            if *position >= cut.get(event.thread).map_or(0, |&count| count as usize) {
                continue;
            }
            *position += 1;
            memory.last_sites.insert(event.thread, event.site);
            memory.take_effect(id, event.thread, event.op);
        }
        memory
    }

    fn take_effect(&mut self, id: EventId, thread: ThreadId, op: Op) {
        match op {
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => {
                *self.holds.entry((thread, lock)).or_insert(0) += 1;
            }
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, lock) => {
                *self.holds.entry((thread, lock)).or_insert(0) -= 1;
            }
            Op::Let(local) => _ = self.locals.insert((thread, local), self.trace.value(id)),
            Op::Access(AccessOp::Write | AccessOp::AtomicWrite(_), var) => {
                let value = self.trace.value(id).or_else(|| self.seen(var, Some(id)));
                self.vars.insert(var, value);
            }
            Op::Access(AccessOp::AtomicUpdate(_), var) => {
                _ = self.vars.insert(var, self.seen(var, Some(id)))
            }
            Op::Access(AccessOp::Read | AccessOp::UnknownRead | AccessOp::AtomicRead(_), _)
            | Op::Fence(_)
            | Op::Lock(LockOp::Request, _)
            | Op::Thread(..)
            | Op::Condition(..)
            | Op::Barrier(..)
            | Op::Semaphore(..)
            | Op::Object(..)
            | Op::Block(..)
            | Op::Branch => {}
        }
    }

    /// What the first read of `var` that saw `write`, or no write, and recorded something recorded.
    fn seen(&self, var: VarId, write: Option<EventId>) -> Option<i64> {
        let reads = self.trace.events().filter(|(id, event)| {
            matches!(event.op, Op::Access(AccessOp::Read | AccessOp::AtomicRead(_), own) if own == var)
                && self.trace.writer(*id) == write
        });
        reads.filter_map(|(id, _)| self.trace.value(id)).next()
    }

    fn thread(&self, name: &Name) -> ThreadId {
        let bound = self.bound.iter().find(|(own, _)| *own == name.text && !name.is_quoted);
        let known = || self.trace.names().threads.get(&name.text);
        bound.map(|&(_, thread)| thread).or_else(known).expect("the thread is one of the trace")
    }

    fn is_at(&self, site: SiteId, location: &str) -> bool {
        let own = self.trace.names().location(site);
        own == location || own.starts_with(&format!("{location}:"))
    }

    fn asked(&self, function: Function, arguments: &[Name]) -> Option<i64> {
        let names = self.trace.names();
        let thread = self.thread(&arguments[0]);
        let events = self.trace.thread_events(thread);
        let position = self.positions.get(&thread).copied().unwrap_or(0);
        let truth = match function {
            Function::At => {
                let last = self.last_sites.get(&thread);
                last.is_some_and(|&site| self.is_at(site, &arguments[1].text))
            }
            Function::Next => events
                .get(position)
                .is_some_and(|&next| self.is_at(self.trace.event(next).site, &arguments[1].text)),
            Function::Holds => {
                let lock = names.locks.get(&arguments[1].text).expect("the lock is one");
                self.holds.get(&(thread, lock)).is_some_and(|&depth| depth > 0)
            }
            Function::Done => position == events.len(),
            Function::Started => position > 0,
            Function::Position => return Some(position as i64),
            Function::Local => {
                let local = names.locals.get(&arguments[1].text).expect("the local is one");
                return self.locals.get(&(thread, local)).copied().flatten();
            }
        };
        Some(i64::from(truth))
    }

    fn variable(&self, name: &Name) -> Option<i64> {
        let names = self.trace.names();
        let var = names.vars.get(&name.text);
        for (at, _) in name.text.match_indices('.') {
            let (owner, local) = (&name.text[..at], &name.text[at + 1..]);
            let bound = self.bound.iter().find(|(own, _)| own == owner).map(|&(_, thread)| thread);
            // The name of a variable is that of a local only if the thread is one gone through.
            let thread = match var {
                None => bound.or_else(|| names.threads.get(owner)),
                Some(_) => bound,
            };
            if !name.is_quoted
                && let Some(thread) = thread
                && let Some(local) = names.locals.get(local)
            {
                return self.locals.get(&(thread, local)).copied().flatten();
            }
        }
        let var = var.expect("the variable is one");
        match self.vars.get(&var) {
            Some(value) => *value,
            None => self.seen(var, None),
        }
    }

    fn range(&mut self, syntax: &Syntax) -> Range {
        match &syntax.kind {
            Kind::Number(value) => exact(Some(*value)),
            Kind::Truth(value) => exact(Some(i64::from(*value))),
            Kind::Race => panic!("a race is not told by a cut alone"),
            Kind::Variable(name) => exact(self.variable(name)),
            Kind::Ask(function, arguments) => exact(self.asked(*function, arguments)),
            Kind::Quantified(quantifier, name, inner) => {
                let mut ranges = Vec::new();
                for (thread, _) in self.trace.names().threads.entries() {
                    self.bound.push((name.text.clone(), thread));
                    ranges.push(self.range(inner));
                    self.bound.pop();
                }
                match quantifier {
                    Quantifier::Count | Quantifier::Sum => {
                        added(ranges.into_iter().map(|range| (false, range)))
                    }
                    Quantifier::Exists => opposite(least(ranges.into_iter().map(opposite))),
                    Quantifier::All => least(ranges.into_iter()),
                }
            }
            Kind::Not(inner) => opposite(self.range(inner)),
            Kind::All(parts) => least(parts.iter().map(|part| self.range(part))),
            Kind::Any(parts) => {
                opposite(least(parts.iter().map(|part| opposite(self.range(part)))))
            }
            Kind::Implies(sides) => {
                let [left, right] = [self.range(&sides[0]), self.range(&sides[1])];
                opposite(least([left, opposite(right)].into_iter()))
            }
            Kind::Compare(comparison, sides) => {
                compared(*comparison, self.range(&sides[0]), self.range(&sides[1]))
            }
            Kind::Sum(terms) => {
                added(terms.iter().map(|(is_negative, part)| (*is_negative, self.range(part))))
            }
            Kind::Arithmetic(operator, sides) => {
                combined(*operator, self.range(&sides[0]), self.range(&sides[1]))
            }
        }
    }
}

fn exact(value: Option<i64>) -> Range {
    value.map(|value| (value, value))
}

fn opposite(truth: Range) -> Range {
    match truth {
        FALSE => TRUE,
        TRUE => FALSE,
        _ => EITHER,
    }
}

/// Kleene's conjunction: false below unknown below true.
fn least(truths: impl Iterator<Item = Range>) -> Range {
    const RANKS: [Range; 3] = [FALSE, EITHER, TRUE];
    let rank = |truth| RANKS.iter().position(|own| *own == truth).expect("a truth is one of three");
    RANKS[truths.map(rank).min().unwrap_or(2)]
}

/// Each with whether it is taken away.
fn added(terms: impl Iterator<Item = (bool, Range)>) -> Range {
    let (mut first, mut last) = (0_i128, 0_i128);
    for (is_negative, range) in terms {
        let (low, high) = range?;
        first += if is_negative { -i128::from(high) } else { low.into() };
        last += if is_negative { -i128::from(low) } else { high.into() };
    }
    first.try_into().ok().zip(last.try_into().ok())
}

/// True or false if the first and last numbers of both compare alike, and for equality if there are
/// no others.
fn compared(comparison: Comparison, left: Range, right: Range) -> Range {
    let (Some(left), Some(right)) = (left, right) else { return EITHER };
    let overlap = left.0 <= right.1 && right.0 <= left.1;
    let is_exact = left.0 == left.1 && right.0 == right.1;
    if overlap && !is_exact && matches!(comparison, Comparison::Equal | Comparison::Unequal) {
        return EITHER;
    }
    match [(left.0, right.1), (left.1, right.0)].map(|(one, other)| comparison.holds(one, other)) {
        [true, true] => TRUE,
        [false, false] => FALSE,
        [true, false] | [false, true] => EITHER,
    }
}

/// Quotients and remainders are known only of what is known exactly, or, rounded towards zero, by it.
fn combined(operator: Operator, left: Range, right: Range) -> Range {
    let ((first, last), (low, high)) = (left?, right?);
    let is_told = match operator {
        Operator::Times => true,
        Operator::Over => low == high,
        Operator::Modulo => first == last && low == high,
    };
    if !is_told {
        return None;
    }
    let results = [(first, low), (first, high), (last, low), (last, high)]
        .map(|(left, right)| operator.apply(left, right));
    let results: Option<Vec<i64>> = results.into_iter().collect();
    results.map(|results| {
        let ends = (results.iter().min(), results.iter().max());
        (*ends.0.expect("there are four"), *ends.1.expect("there are four"))
    })
}
