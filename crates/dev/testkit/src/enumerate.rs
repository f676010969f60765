//! Every well-formed trace of a small scope.
//!
//! Traces grow by one event at a time; what the builder refuses is not grown further, since a
//! well-formed trace has only well-formed beginnings. (Each rule of well-formedness speaks of
//! what came before an event. Which notify woke whom looks ahead, but a pairing that explains all
//! wakes explains those of every beginning.) Things are numbered in the order of their first use,
//! so of traces that differ in names alone one comes.
//!
//! The number of traces grows exponentially with the events: five or six is the usual end.

use reweave_base::Id;
use reweave_trace::{
    BarrierId, MemoryOrder, NameKind, Op, OpCode, OpKind, SemaphoreId, ThreadId, Trace,
    TraceBuilder,
};

/// Which traces to enumerate.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// The operations that may occur.
    pub kinds: &'static [OpKind],
    /// How many threads at most.
    pub threads: usize,
    /// How many things of each other kind at most (up to three): variables, locks and so on.
    pub things: usize,
    /// How many events at most.
    pub events: usize,
    /// What semaphores start at, if that is known.
    pub start: Option<u32>,
    /// How many arrivals end a barrier's generation, if that is known.
    pub parties: Option<u32>,
}

impl Scope {
    /// Accesses and exclusive locks.
    pub const LOCKS: Self =
        Self::new(&[OpKind::Write, OpKind::Read, OpKind::Acquire, OpKind::Release]);
    /// Exclusive and shared mode, re-entrance and upgrades among them.
    pub const SHARED_LOCKS: Self = Self::new(&[
        OpKind::Acquire,
        OpKind::Release,
        OpKind::AcquireShared,
        OpKind::ReleaseShared,
    ]);
    /// Threads that start and end.
    pub const FORKS: Self = Self::new(&[OpKind::Write, OpKind::Read, OpKind::Fork, OpKind::Join]);
    /// Waits that are woken.
    pub const NOTIFIES: Self =
        Self::new(&[OpKind::Wait, OpKind::Wake, OpKind::Notify, OpKind::NotifyAll]);
    /// Waits that may time out.
    pub const TIMEOUTS: Self = Self::new(&[
        OpKind::Wait,
        OpKind::Wake,
        OpKind::Timeout,
        OpKind::Notify,
        OpKind::NotifyAll,
    ]);
    /// Waits that give up a lock.
    pub const MONITORS: Self =
        Self::new(&[OpKind::Acquire, OpKind::Release, OpKind::Wait, OpKind::Wake, OpKind::Notify]);
    /// Barriers of any number of parties.
    pub const BARRIERS: Self = Self::new(&[OpKind::Arrive, OpKind::Depart]);
    /// Semaphores of unknown start.
    pub const SEMAPHORES: Self = Self::new(&[OpKind::Post, OpKind::Take]);
    /// Atomic and plain accesses.
    pub const ATOMICS: Self = Self::new(&[
        OpKind::Write,
        OpKind::Read,
        OpKind::UnknownRead,
        OpKind::AtomicRead,
        OpKind::AtomicWrite,
        OpKind::AtomicUpdate,
    ]);
    /// What has no place elsewhere.
    pub const REST: Self = Self::new(&[
        OpKind::Alloc,
        OpKind::Free,
        OpKind::Begin,
        OpKind::End,
        OpKind::Request,
        OpKind::RequestExclusive,
        OpKind::Fence,
        OpKind::Branch,
        OpKind::Let,
    ]);

    /// Two threads, one thing of each kind, four events.
    #[must_use]
    pub const fn new(kinds: &'static [OpKind]) -> Self {
        Self { kinds, threads: 2, things: 1, events: 4, start: None, parties: None }
    }

    /// The same with so many events at most.
    #[must_use]
    pub const fn events(self, events: usize) -> Self {
        Self { events, ..self }
    }

    /// The same with so many threads at most.
    #[must_use]
    pub const fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// The same with so many things of each kind at most.
    #[must_use]
    pub const fn things(self, things: usize) -> Self {
        Self { things, ..self }
    }

    /// Hands every well-formed trace of the scope to `visit`, the empty one first, each before
    /// those that go on from it. Gives their number.
    pub fn for_each(self, mut visit: impl FnMut(&Trace)) -> usize {
        let mut walk = Walk { scope: self, steps: Vec::new(), count: 0 };
        walk.grow(&mut visit);
        walk.count
    }
}

/// An event to be: the index of its thread, what it does, and the index of what it does it to.
type StepKind = (usize, OpKind, usize);

struct Walk {
    scope: Scope,
    steps: Vec<StepKind>,
    count: usize,
}

impl Walk {
    fn grow(&mut self, visit: &mut impl FnMut(&Trace)) {
        let Ok(trace) = self.build().finish() else { return };
        self.count += 1;
        visit(&trace);
        if self.steps.len() == self.scope.events {
            return;
        }
        for step in self.candidates() {
            self.steps.push(step);
            self.grow(visit);
            self.steps.pop();
        }
    }

    /// The events that may come next, by the order of first use alone.
    fn candidates(&self) -> Vec<StepKind> {
        let mut candidates = Vec::new();
        let known = self.used(NameKind::Thread);
        for thread in 0..self.scope.threads.min(known + 1) {
            for &kind in self.scope.kinds {
                let count = match kind.operand() {
                    NameKind::None => 1,
                    NameKind::Thread => self.scope.threads.min(known.max(thread + 1) + 1),
                    operand => self.scope.things.min(self.used(operand) + 1),
                };
                candidates.extend((0..count).map(|operand| (thread, kind, operand)));
            }
        }
        candidates
    }

    /// How many things of the kind `operand` the steps use.
    fn used(&self, operand: NameKind) -> usize {
        let named = |&(thread, kind, index): &StepKind| {
            let actor = (operand == NameKind::Thread).then_some(thread + 1);
            let object = (kind.operand() == operand).then_some(index + 1);
            actor.max(object).unwrap_or(0)
        };
        self.steps.iter().map(named).max().unwrap_or(0)
    }

    fn build(&self) -> TraceBuilder {
        let mut builder = TraceBuilder::new();
        let site = builder.site("0");
        for thread in 1..=self.used(NameKind::Thread) {
            builder.thread(&format!("t{thread}"));
        }
        for &(thread, kind, index) in &self.steps {
            let letter = match kind.operand() {
                NameKind::Thread | NameKind::None => None,
                NameKind::Var => Some(b'x'),
                NameKind::Lock => Some(b'l'),
                _ => Some(b'a'),
            };
            if let Some(letter) = letter {
                let name = [letter + index as u8];
                builder.names().intern(kind.operand(), &name).expect("a letter is text");
            }
            builder.push(ThreadId::from_index(thread), operation(kind, index), site);
        }
        for index in 0..self.used(NameKind::Semaphore) {
            let semaphore = SemaphoreId::from_index(index);
            self.scope.start.into_iter().for_each(|start| builder.declare_start(semaphore, start));
        }
        for index in 0..self.used(NameKind::Barrier) {
            let barrier = BarrierId::from_index(index);
            let parties = self.scope.parties.into_iter();
            parties.for_each(|parties| builder.declare_parties(barrier, parties));
        }
        builder
    }
}

/// The operation `kind` on the thing at `index`, sequentially consistent.
fn operation(kind: OpKind, index: usize) -> Op {
    Op::decode(OpCode::new(kind, MemoryOrder::SeqCst), index as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn figures(scope: Scope) -> Vec<String> {
        let mut figures = Vec::new();
        scope.for_each(|trace| figures.push(fixture::draw(trace)));
        figures
    }

    #[test]
    fn traces_that_differ_in_names_alone_come_once() {
        let mut seen = figures(Scope::LOCKS.things(2).events(3));
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
        let first_words = seen.iter().filter_map(|figure| figure.split_whitespace().next());
        assert!(first_words.into_iter().all(|word| word == "t1"));
    }

    #[test]
    fn what_cannot_happen_does_not_come() {
        // One thread and one semaphore that starts at zero: no beginning has more takes than posts.
        let scope = Scope { start: Some(0), ..Scope::SEMAPHORES.threads(1).events(4) };
        assert_eq!(scope.for_each(|_| ()), 1 + 1 + 2 + 3 + 6);
    }

    #[test]
    fn waits_wake_only_after_a_notify() {
        let figures = figures(Scope::NOTIFIES.events(3));
        assert!(figures.iter().any(|figure| figure.contains("wake")));
        assert!(
            !figures.iter().any(|figure| figure.contains("wake") && !figure.contains("notify"))
        );
    }
}
