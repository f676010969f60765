//! Schedules: steps one after the other, executed on plain numbers and made readable.

use reweave_base::{FxHashMap, Id, IndexVec, with_few_switches};
use reweave_trace::{LockId, ThreadId, VarId};

use crate::ctp::{Action, Ctp, Point, StepId};
use crate::symbolic::Question;
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
    pub fn point(&self, thread: ThreadId) -> Point {
        self.points[thread]
    }

    /// What `slot` holds.
    pub fn value(&self, slot: Slot) -> i64 {
        self.values[slot]
    }

    fn evaluate(&self, term: TermId) -> Option<i64> {
        self.ctp.terms.evaluate(term, &|slot| self.values[slot])
    }

    fn has_ended(&self, thread: ThreadId) -> bool {
        let description = &self.ctp.threads[thread];
        let is_at_end = description.points.is_empty() || self.ctp.is_end(self.points[thread]);
        self.has_started[thread] && is_at_end
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

/// `order` without what its last step does not depend on, and with few context switches.
///
/// Steps that do not depend on each other can be exchanged, so every value stays as it was.
pub fn minimize_switches(ctp: &Ctp, order: &[StepId]) -> Vec<StepId> {
    let before = dependences(ctp, order);
    let mut is_needed = vec![false; order.len()];
    if let Some(last) = is_needed.last_mut() {
        *last = true;
    }
    for place in (0..order.len()).rev() {
        if is_needed[place] {
            for &earlier in &before[place] {
                is_needed[earlier] = true;
            }
        }
    }
    let needed: Vec<usize> = (0..order.len()).filter(|&place| is_needed[place]).collect();
    let owners: Vec<usize> =
        needed.iter().map(|&place| ctp.steps[order[place]].thread.index()).collect();
    // What a needed step depends on is needed, so it has a place among these.
    let among_needed = |earlier: &usize| needed.partition_point(|place| place < earlier);
    let before: Vec<Vec<usize>> =
        needed.iter().map(|&place| before[place].iter().map(among_needed).collect()).collect();
    let steps = with_few_switches(&owners, &before).into_iter();
    steps.map(|step| order[needed[step]]).collect()
}

/// For each place of `order` earlier places that it depends on, which depend on all others that it
/// does.
fn dependences(ctp: &Ctp, order: &[StepId]) -> Vec<Vec<usize>> {
    let mut last_of: FxHashMap<ThreadId, usize> = FxHashMap::default();
    let mut writes: FxHashMap<VarId, usize> = FxHashMap::default();
    let mut reads: FxHashMap<VarId, Vec<usize>> = FxHashMap::default();
    let mut locks: FxHashMap<LockId, usize> = FxHashMap::default();
    let mut forks: FxHashMap<ThreadId, usize> = FxHashMap::default();
    let mut all = Vec::with_capacity(order.len());
    for (place, &id) in order.iter().enumerate() {
        let step = &ctp.steps[id];
        let own = last_of.insert(step.thread, place);
        let mut before: Vec<usize> = own.into_iter().collect();
        if own.is_none() {
            before.extend(forks.get(&step.thread));
        }
        match step.action {
            Action::Local => {}
            Action::Read(var) => {
                before.extend(writes.get(&var));
                reads.entry(var).or_default().push(place);
            }
            Action::Write(var) | Action::Update(var) => {
                before.extend(writes.insert(var, place));
                before.append(reads.entry(var).or_default());
            }
            Action::Acquire(lock) | Action::Release(lock) => {
                before.extend(locks.insert(lock, place));
            }
            Action::Fork(child) => _ = forks.insert(child, place),
            Action::Join(child) => before.extend(last_of.get(&child)),
        }
        all.push(before);
    }
    all
}
