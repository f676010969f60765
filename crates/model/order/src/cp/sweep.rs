//! One pass over the skeleton: what happens before each step, and what comes before it by CP.

use std::mem;

use reweave_base::IndexVec;
use reweave_trace::views::SectionId;
use reweave_trace::{LockId, ThreadId};

use super::edges::{Edge, Edges};
use super::shelf::Shelf;
use super::skeleton::{Action, MessageId, Skeleton, Step};
use crate::clock::VectorClock;

/// The clocks after the steps so far.
#[derive(Debug)]
pub(super) struct Sweep<'a> {
    skeleton: &'a Skeleton,
    edges: &'a Edges,
    threads: IndexVec<ThreadId, Clocks>,
    locks: IndexVec<LockId, LockClocks>,
    /// What happens before each event that sent, while someone has still to receive it. That is
    /// what comes before it by CP at the other end, too: hard edges are CP edges.
    messages: Shelf<MessageId>,
    /// What happens before the release of each section, while an edge leads on to a later one.
    releases: Shelf<SectionId>,
    steps_count: usize,
    edges_count: usize,
    /// The edges so far that added something.
    pub(super) needed: Vec<Edge>,
}

/// What happens before an event, and what comes before it by CP: a part of that.
#[derive(Clone, Debug, Default)]
struct Clocks {
    happened: VectorClock,
    causal: VectorClock,
}

impl Clocks {
    fn join(&mut self, other: &Self) {
        self.happened.join(&other.happened);
        self.causal.join(&other.causal);
    }

    fn copy_from(&mut self, other: &Self) {
        self.happened.copy_from(&other.happened);
        self.causal.copy_from(&other.causal);
    }

    /// Adds what comes along a hard edge.
    fn receive(&mut self, sent: &VectorClock) {
        self.happened.join(sent);
        self.causal.join(sent);
    }
}

/// What the releases of a lock pass on.
#[derive(Clone, Debug, Default)]
struct LockClocks {
    /// Of the last exclusive release, which has seen all releases before it.
    alone: Clocks,
    /// Whose that was, and its number in its thread.
    last: Option<(ThreadId, u32)>,
    /// Of the shared releases since.
    together: Option<Clocks>,
}

impl<'a> Sweep<'a> {
    /// The clocks before any step of `skeleton`, with these `edges` from releases to acquires.
    pub(super) fn new(skeleton: &'a Skeleton, edges: &'a Edges) -> Self {
        Self {
            skeleton,
            edges,
            threads: IndexVec::from_elem(Clocks::default(), skeleton.threads.len()),
            locks: IndexVec::from_elem(LockClocks::default(), skeleton.locks_count),
            messages: Shelf::new(skeleton.messages.len()),
            releases: Shelf::new(skeleton.sections.len()),
            steps_count: 0,
            edges_count: 0,
            needed: Vec::new(),
        }
    }

    /// What comes by CP before the last event of `thread` so far.
    #[inline]
    pub(super) fn causal(&self, thread: ThreadId) -> &VectorClock {
        &self.threads[thread].causal
    }

    /// The step to come.
    #[inline]
    pub(super) fn next(&self) -> Option<&'a Step> {
        self.skeleton.steps.get(self.steps_count)
    }

    /// Takes the next step.
    pub(super) fn advance(&mut self) {
        let Some(&step) = self.next() else { return };
        self.steps_count += 1;
        match step.action {
            Action::Enter(section) => self.enter(section),
            Action::Leave(section) => self.leave(section),
            Action::Fork(child) => {
                let own = &mut self.threads[step.thread].happened;
                own.raise(step.thread, step.time);
                let sent = mem::take(own);
                self.threads[child].receive(&sent);
                self.threads[step.thread].happened = sent;
            }
            Action::Join(child) => self.join(step, child),
            Action::Send(message) => {
                let own = &mut self.threads[step.thread].happened;
                own.raise(step.thread, step.time);
                if self.skeleton.messages[message].last.is_some() {
                    self.messages.put(message, own);
                }
            }
            Action::Receive(message) => self.receive(step, message),
            Action::Gather(round) => {
                for &message in &self.skeleton.rounds[round] {
                    self.receive(step, message);
                }
            }
        }
    }

    fn receive(&mut self, step: Step, message: MessageId) {
        let sent = &self.skeleton.messages[message];
        // A thread receives nothing from itself.
        if sent.by != step.thread
            && let Some(clock) = self.messages.get(message)
        {
            self.threads[step.thread].receive(clock);
        }
        if sent.last == Some(step.event) {
            self.messages.remove(message);
        }
    }

    fn join(&mut self, step: Step, child: ThreadId) {
        let joined = &self.skeleton.threads[child];
        let mut ended = mem::take(&mut self.threads[child].happened);
        ended.raise(child, joined.events_count);
        self.threads[step.thread].receive(&ended);
        if joined.last_join != Some(step.event) {
            self.threads[child].happened = ended;
        } else if joined.open_count == 0 {
            // Nobody asks again for what a thread that is over has seen.
            self.threads[child].causal = VectorClock::default();
        }
    }

    fn enter(&mut self, section: SectionId) {
        let entered = &self.skeleton.sections[section];
        let lock = &self.locks[entered.lock];
        let own = &mut self.threads[entered.thread];
        // Who has seen the release has seen all before it, by CP too.
        if lock.last.is_some_and(|(by, time)| own.happened.get(by) < time) {
            own.join(&lock.alone);
        }
        if let Some(together) = lock.together.as_ref().filter(|_| !entered.is_shared) {
            own.join(together);
        }
        for &edge in &self.edges.as_slice()[self.edges_count..] {
            if edge.target != section {
                break;
            }
            self.edges_count += 1;
            let source = &self.skeleton.sections[edge.source];
            // Clocks are closed under happens-before: the release says it for all before it.
            if own.causal.get(source.thread) < source.released
                && let Some(released) = self.releases.get(edge.source)
            {
                own.causal.join(released);
                self.needed.push(edge);
            }
            if self.edges.last_target(edge.source) == Some(section) {
                self.releases.remove(edge.source);
            }
        }
    }

    fn leave(&mut self, section: SectionId) {
        let left = &self.skeleton.sections[section];
        let lock = &mut self.locks[left.lock];
        let own = &mut self.threads[left.thread];
        own.happened.raise(left.thread, left.released);
        if left.is_shared {
            lock.together.get_or_insert_default().join(own);
        } else {
            lock.alone.copy_from(own);
            lock.last = Some((left.thread, left.released));
            lock.together = None;
        }
        if self.edges.last_target(section).is_some() {
            self.releases.put(section, &own.happened);
        }
    }
}
