//! What a predicate means, by its definition: a cut's events run again, in observed order, and the
//! text is asked of what they leave behind. For tests.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{EventId, LocalId, LockId, Op, SiteId, ThreadId, Trace, VarId};

use super::syntax::{self, Function, Kind, Modality, Name, Quantifier, Syntax};

/// Whether `text` is true of `cut`, which says how many events each thread has run; none if that is
/// not known. The modality is left out.
///
/// # Panics
/// If the text is no predicate over `trace`, or is `race`.
#[must_use]
pub fn truth(text: &str, trace: &Trace, cut: &IndexVec<ThreadId, u32>) -> Option<bool> {
    let (_, syntax) = syntax::parse(text).expect("the text is a predicate");
    let mut memory = Memory::run(trace, cut);
    memory.value(&syntax).map(|truth| truth == 1)
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
            Op::Acquire(lock) | Op::AcquireShared(lock) => {
                *self.holds.entry((thread, lock)).or_insert(0) += 1;
            }
            Op::Release(lock) | Op::ReleaseShared(lock) => {
                *self.holds.entry((thread, lock)).or_insert(0) -= 1;
            }
            Op::Let(local) => _ = self.locals.insert((thread, local), self.trace.value(id)),
            Op::Write(var) | Op::AtomicWrite(var, _) => {
                let value = self.trace.value(id).or_else(|| self.seen(var, Some(id)));
                self.vars.insert(var, value);
            }
            Op::AtomicUpdate(var, _) => _ = self.vars.insert(var, self.seen(var, Some(id))),
            _ => {}
        }
    }

    /// What the first read of `var` that saw `write`, or no write, and recorded something recorded.
    fn seen(&self, var: VarId, write: Option<EventId>) -> Option<i64> {
        let reads = self.trace.events().filter(|(id, event)| {
            matches!(event.op, Op::Read(own) | Op::AtomicRead(own, _) if own == var)
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
        let dotted = name.text.split_once('.').filter(|_| !name.is_quoted);
        if let Some((owner, local)) = dotted
            && let Some(local) = names.locals.get(local)
        {
            let is_quoted = false;
            let owner = Name { text: owner.to_owned(), is_quoted, span: name.span.clone() };
            return self.locals.get(&(self.thread(&owner), local)).copied().flatten();
        }
        let var = names.vars.get(&name.text).expect("the variable is one");
        match self.vars.get(&var) {
            Some(value) => *value,
            None => self.seen(var, None),
        }
    }

    fn value(&mut self, syntax: &Syntax) -> Option<i64> {
        match &syntax.kind {
            Kind::Number(value) => Some(*value),
            Kind::Truth(value) => Some(i64::from(*value)),
            Kind::Race => panic!("a race is not told by a cut alone"),
            Kind::Variable(name) => self.variable(name),
            Kind::Ask(function, arguments) => self.asked(*function, arguments),
            Kind::Quantified(quantifier, name, inner) => {
                let mut values = Vec::new();
                for (thread, _) in self.trace.names().threads.entries() {
                    self.bound.push((name.text.clone(), thread));
                    values.push(self.value(inner));
                    self.bound.pop();
                }
                match quantifier {
                    Quantifier::Count | Quantifier::Sum => added(&values),
                    Quantifier::Exists => least(values.into_iter().map(opposite)).map(|v| 1 - v),
                    Quantifier::All => least(values.into_iter()),
                }
            }
            Kind::Not(inner) => opposite(self.value(inner)),
            Kind::All(parts) => least(parts.iter().map(|part| self.value(part))),
            Kind::Any(parts) => {
                opposite(least(parts.iter().map(|part| opposite(self.value(part)))))
            }
            Kind::Implies(sides) => {
                let [left, right] = [self.value(&sides[0]), self.value(&sides[1])];
                opposite(least([left, opposite(right)].into_iter()))
            }
            Kind::Compare(comparison, sides) => {
                let [left, right] = [self.value(&sides[0])?, self.value(&sides[1])?];
                Some(i64::from(comparison.holds(left, right)))
            }
            Kind::Sum(terms) => {
                let mut values = Vec::new();
                for (is_negative, part) in terms {
                    values.push((*is_negative, self.value(part)));
                }
                let sum = values.iter().try_fold(0_i128, |sum, (is_negative, value)| {
                    let value = i128::from((*value)?);
                    Some(if *is_negative { sum - value } else { sum + value })
                });
                sum.and_then(|sum| sum.try_into().ok())
            }
            Kind::Arithmetic(operator, sides) => {
                let [left, right] = [self.value(&sides[0])?, self.value(&sides[1])?];
                operator.apply(left, right)
            }
        }
    }
}

fn opposite(truth: Option<i64>) -> Option<i64> {
    truth.map(|truth| 1 - truth)
}

/// Kleene's conjunction: false below unknown below true.
fn least(truths: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    const RANKS: [Option<i64>; 3] = [Some(0), None, Some(1)];
    let rank = |truth| RANKS.iter().position(|own| *own == truth).expect("a truth is one of three");
    RANKS[truths.map(rank).min().unwrap_or(2)]
}

fn added(values: &[Option<i64>]) -> Option<i64> {
    let sum: Option<i128> = values.iter().map(|value| value.map(i128::from)).sum();
    sum.and_then(|sum| sum.try_into().ok())
}
