//! Schedules: steps one after the other, on plain numbers.

use reweave_base::{Id, IndexVec};
use reweave_trace::{LockId, ThreadId};

use super::Question;
use crate::ctp::{Action, Ctp, Point, StepId};
use crate::terms::{Slot, TermId};

/// Where all threads are, and what all slots hold.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    ctp: &'a Ctp,
    points: IndexVec<ThreadId, Point>,
    has_started: IndexVec<ThreadId, bool>,
    holders: IndexVec<LockId, Option<ThreadId>>,
    values: IndexVec<Slot, i64>,
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// What it stored.
    pub stored: Option<i64>,
    /// What it defined a local by.
    pub defined: Option<i64>,
    /// Whether its assertion was true; a step that has none asserts nothing false.
    pub held: bool,
}

impl<'a> Machine<'a> {
    /// Before the first step.
    #[must_use]
    pub fn new(ctp: &'a Ctp) -> Self {
        let mut has_started: IndexVec<ThreadId, bool> =
            ctp.threads.iter().map(|thread| thread.parent.is_none()).collect();
        for step in ctp.steps.iter() {
            if let Action::Fork(child) = step.action
                && child.index() < has_started.len()
            {
                has_started[child] = false;
            }
        }
        Self {
            ctp,
            points: ctp.threads.iter().map(|thread| thread.points.start).collect(),
            has_started,
            holders: IndexVec::default(),
            values: ctp.initial.clone(),
        }
    }

    /// Where `thread` is.
    #[must_use]
    pub fn point(&self, thread: ThreadId) -> Point {
        self.points[thread]
    }

    /// What `slot` holds.
    #[must_use]
    pub fn value(&self, slot: Slot) -> i64 {
        self.values[slot]
    }

    fn evaluate(&self, term: TermId) -> Option<i64> {
        self.ctp.terms.evaluate(term, &|slot| self.values[slot])
    }

    fn has_ended(&self, thread: ThreadId) -> bool {
        let description = &self.ctp.threads[thread];
        let is_end = |point| self.ctp.leaving[point].is_empty();
        self.has_started[thread] && (description.points.is_empty() || is_end(self.points[thread]))
    }

    /// Takes `step`, if that is possible now.
    pub fn take(&mut self, step: StepId) -> Option<Effect> {
        let description = self.ctp.steps.get(step)?;
        let thread = description.thread;
        if !self.has_started[thread] || self.points[thread] != description.from {
            return None;
        }
        let evaluate = |term: Option<TermId>| match term {
            Some(term) => self.evaluate(term).map(Some),
            None => Some(None),
        };
        if evaluate(description.guard)? == Some(0) {
            return None;
        }
        let held = evaluate(description.assertion)? != Some(0);
        let stored = evaluate(description.store.map(|(_, term)| term))?;
        let defined = evaluate(description.define.map(|(_, term)| term))?;
        match description.action {
            Action::Local | Action::Read(_) | Action::Write(_) | Action::Update(_) => {}
            Action::Acquire(lock) => {
                let holder = self.holders.get_or_default(lock);
                if holder.is_some() {
                    return None;
                }
                *holder = Some(thread);
            }
            Action::Release(lock) => {
                let holder = self.holders.get_or_default(lock);
                *holder = holder.filter(|&holder| holder != thread);
            }
            Action::Fork(child) => {
                if child.index() < self.has_started.len() {
                    self.has_started[child] = true;
                }
            }
            Action::Join(child) => {
                if child.index() >= self.has_started.len() || !self.has_ended(child) {
                    return None;
                }
            }
        }
        for (assignment, value) in [(description.store, stored), (description.define, defined)] {
            if let (Some((slot, _)), Some(value)) = (assignment, value) {
                self.values[slot] = value;
            }
        }
        self.points[thread] = description.to;
        Some(Effect { stored, defined, held })
    }
}

/// After how many steps of `schedule` what `question` asks about happens; none if it does not, or
/// if a step before that is not possible.
#[must_use]
pub fn replay(ctp: &Ctp, schedule: &[StepId], question: &Question) -> Option<usize> {
    let mut machine = Machine::new(ctp);
    for (position, &step) in schedule.iter().enumerate() {
        let effect = machine.take(step)?;
        let happens = match question {
            Question::Fails(steps) => !effect.held && steps.contains(&step),
            Question::Reaches(steps) => steps.contains(&step),
        };
        if happens {
            return Some(position + 1);
        }
    }
    None
}
