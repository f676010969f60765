//! What a question can depend on: the steps, the slots, and what each unit has to do with others.
//!
//! A set of steps is enough if it has those asked about and, with a step, those before it in its
//! thread; what forks the thread; all of a thread that it waits for; the releases of a lock that it
//! takes; and all writes of other threads to a slot that matters and that it reads. A slot matters
//! if a guard, a division or the assertion in question speaks of it, or the value of one that
//! matters is computed from it. Taking all else out of an interleaving leaves one, with the same
//! values.

use reweave_base::{Id, IndexVec};
use reweave_trace::{LockId, ThreadId};

use super::{Question, Unit};
use crate::ctp::{Action, Ctp, Point, StepId};
use crate::terms::{Slot, Term, TermId};

reweave_base::id! {
    /// A unit that matters; those of a thread are consecutive and ordered by where they start.
    pub(super) struct UnitId;
}

/// A unit with what it does, as far as it matters.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) thread: ThreadId,
    pub(super) from: Point,
    /// The steps that matter, ordered by where they start.
    pub(super) steps: Vec<StepId>,
    /// What threads share and it reads, sorted.
    pub(super) reads: Vec<Slot>,
    /// What threads share and it writes, sorted.
    pub(super) writes: Vec<Slot>,
    pub(super) locks: Vec<LockId>,
}

/// What a question can depend on.
pub(super) struct Plan {
    pub(super) units: IndexVec<UnitId, Planned>,
    /// For each thread its units.
    pub(super) units_of: IndexVec<ThreadId, Vec<UnitId>>,
    /// Slots that matter.
    pub(super) matters: IndexVec<Slot, bool>,
    /// Slots that matter and that several threads use, of which one writes.
    pub(super) is_shared: IndexVec<Slot, bool>,
    /// Whether a term may divide by zero.
    pub(super) may_fault: IndexVec<TermId, bool>,
    /// The threads that something forks, or ought to.
    pub(super) is_forked: IndexVec<ThreadId, bool>,
    /// Steps whose assertion is in question.
    asserted: IndexVec<StepId, bool>,
    /// Steps that are asked about.
    pub(super) is_asked: IndexVec<StepId, bool>,
    needed: IndexVec<Point, bool>,
}

impl Plan {
    /// What `question` depends on.
    pub(super) fn new(ctp: &Ctp, units: &[Unit], question: &Question) -> Self {
        let mut is_asked = IndexVec::from_elem(false, ctp.steps.len());
        let asks = question.steps().iter().filter(|step| step.index() < ctp.steps.len());
        asks.for_each(|&step| is_asked[step] = true);
        let asserted = match question {
            Question::Fails(_) => is_asked.clone(),
            Question::Reaches(_) => IndexVec::from_elem(false, ctp.steps.len()),
        };
        let mut plan = Self {
            units: IndexVec::default(),
            units_of: IndexVec::from_elem(Vec::new(), ctp.threads.len()),
            matters: IndexVec::from_elem(false, ctp.slots.len()),
            is_shared: IndexVec::from_elem(false, ctp.slots.len()),
            may_fault: ctp.terms.dividing(),
            is_forked: forked(ctp),
            asserted,
            is_asked,
            needed: IndexVec::from_elem(false, ctp.leaving.len()),
        };
        for (step, description) in ctp.steps.entries() {
            if plan.is_asked[step] {
                plan.needed[description.to] = true;
            }
        }
        while plan.grow(ctp) {}
        plan.share(ctp);
        plan.cut(ctp, units);
        plan
    }

    /// Whether `step` is kept.
    pub(super) fn keeps(&self, ctp: &Ctp, step: StepId) -> bool {
        self.needed[ctp.steps[step].to]
    }

    /// The terms of `step` that matter.
    pub(super) fn terms(&self, ctp: &Ctp, step: StepId) -> impl Iterator<Item = TermId> {
        let description = &ctp.steps[step];
        let faults = |term: &TermId| self.may_fault[*term];
        let assigned = |assignment: Option<(Slot, TermId)>| {
            let (slot, term) = assignment?;
            (self.matters[slot] || faults(&term)).then_some(term)
        };
        let assertion = description.assertion.filter(|term| self.asserted[step] || faults(term));
        let assigned = [assigned(description.store), assigned(description.define)];
        description.guard.into_iter().chain(assertion).chain(assigned.into_iter().flatten())
    }

    /// Whether `step` may be impossible although the thread is there.
    pub(super) fn may_block(&self, ctp: &Ctp, step: StepId) -> bool {
        let description = &ctp.steps[step];
        let waits = matches!(description.action, Action::Acquire(_) | Action::Join(_));
        let mut terms = self.terms(ctp, step);
        waits || description.guard.is_some() || terms.any(|term| self.may_fault[term])
    }

    fn need(&mut self, point: Point) -> bool {
        !std::mem::replace(&mut self.needed[point], true)
    }

    /// Adds what follows from what there is; whether that was anything.
    fn grow(&mut self, ctp: &Ctp) -> bool {
        let mut has_grown = false;
        for (_, step) in ctp.steps.entries().rev() {
            // Steps lead to later points and are ordered by where they start.
            if self.needed[step.to] {
                has_grown |= self.need(step.from);
            }
        }
        let mut readers: IndexVec<Slot, Vec<ThreadId>> =
            IndexVec::from_elem(Vec::new(), ctp.slots.len());
        let mut is_used = IndexVec::from_elem(false, ctp.threads.len());
        for (step, description) in ctp.steps.entries() {
            if !self.keeps(ctp, step) {
                continue;
            }
            is_used[description.thread] = true;
            let terms: Vec<TermId> = self.terms(ctp, step).collect();
            for slot in slots(ctp, &terms) {
                has_grown |= !std::mem::replace(&mut self.matters[slot], true);
                if !readers[slot].contains(&description.thread) {
                    readers[slot].push(description.thread);
                }
            }
            match description.action {
                Action::Join(thread) if thread.index() < ctp.threads.len() => {
                    has_grown |= self.need_all(ctp, thread);
                }
                Action::Acquire(lock) => {
                    for release in following(ctp, step, lock).releases {
                        has_grown |= self.need(ctp.steps[release].to);
                    }
                }
                _ => {}
            }
        }
        for step in ctp.steps.iter() {
            let is_read = |(slot, _): (Slot, TermId)| {
                self.matters[slot] && readers[slot].iter().any(|&reader| reader != step.thread)
            };
            let starts = matches!(step.action, Action::Fork(child)
                if is_used.get(child).is_some_and(|&is_used| is_used));
            if starts || step.store.is_some_and(is_read) || step.define.is_some_and(is_read) {
                has_grown |= self.need(step.to);
            }
        }
        has_grown
    }

    fn need_all(&mut self, ctp: &Ctp, thread: ThreadId) -> bool {
        let points = &ctp.threads[thread].points;
        let points = points.start.index()..points.end.index();
        points.fold(false, |has_grown, point| self.need(Point::from_index(point)) | has_grown)
    }

    /// Finds the slots that several threads use, of which one writes.
    fn share(&mut self, ctp: &Ctp) {
        let mut user: IndexVec<Slot, Option<ThreadId>> = IndexVec::from_elem(None, ctp.slots.len());
        let mut is_contested = IndexVec::from_elem(false, ctp.slots.len());
        let mut is_written = IndexVec::from_elem(false, ctp.slots.len());
        for (step, description) in ctp.steps.entries() {
            if !self.keeps(ctp, step) {
                continue;
            }
            let terms: Vec<TermId> = self.terms(ctp, step).collect();
            let mut uses = slots(ctp, &terms);
            for (slot, _) in description.store.into_iter().chain(description.define) {
                is_written[slot] = true;
                uses.push(slot);
            }
            for slot in uses {
                let first = *user[slot].get_or_insert(description.thread);
                is_contested[slot] |= first != description.thread;
            }
        }
        for slot in ctp.slots.ids() {
            self.is_shared[slot] = self.matters[slot] && is_contested[slot] && is_written[slot];
        }
    }

    fn cut(&mut self, ctp: &Ctp, units: &[Unit]) {
        let mut ordered: Vec<&Unit> = units.iter().filter(|unit| !unit.steps.is_empty()).collect();
        ordered.sort_by_key(|unit| unit.from);
        ordered.dedup_by_key(|unit| unit.from);
        for (thread, description) in ctp.threads.entries() {
            for unit in ordered.iter().filter(|unit| description.points.contains(&unit.from)) {
                let planned = self.planned(ctp, thread, unit);
                if !planned.steps.is_empty() {
                    let id = self.units.push(planned);
                    self.units_of[thread].push(id);
                }
            }
        }
    }

    fn planned(&self, ctp: &Ctp, thread: ThreadId, unit: &Unit) -> Planned {
        let own = unit.steps.iter().copied().filter(|&step| ctp.steps[step].thread == thread);
        let mut all: Vec<StepId> = own.collect();
        all.sort_unstable();
        all.dedup();
        let steps: Vec<StepId> = all.into_iter().filter(|&step| self.keeps(ctp, step)).collect();
        let terms: Vec<TermId> = steps.iter().flat_map(|&step| self.terms(ctp, step)).collect();
        let mut reads = slots(ctp, &terms);
        let (mut writes, mut locks) = (Vec::new(), Vec::new());
        for step in steps.iter().map(|&step| &ctp.steps[step]) {
            writes.extend(step.store.into_iter().chain(step.define).map(|(slot, _)| slot));
            match step.action {
                Action::Acquire(lock) | Action::Release(lock) => locks.push(lock),
                Action::Local
                | Action::Read(_)
                | Action::Write(_)
                | Action::Update(_)
                | Action::Fork(_)
                | Action::Join(_) => {}
            }
        }
        for slots in [&mut reads, &mut writes] {
            slots.retain(|&slot| self.is_shared[slot]);
            slots.sort_unstable();
            slots.dedup();
        }
        locks.sort_unstable();
        locks.dedup();
        Planned { thread, from: unit.from, steps, reads, writes, locks }
    }
}

fn forked(ctp: &Ctp) -> IndexVec<ThreadId, bool> {
    let has_parent = ctp.threads.iter().map(|thread| thread.parent.is_some());
    let mut forked: IndexVec<ThreadId, bool> = has_parent.collect();
    for step in ctp.steps.iter() {
        if let Action::Fork(child) = step.action
            && child.index() < forked.len()
        {
            forked[child] = true;
        }
    }
    forked
}

/// The slots that `terms` speak of, each once.
pub(super) fn slots(ctp: &Ctp, terms: &[TermId]) -> Vec<Slot> {
    let mut seen = reweave_base::FxHashSet::default();
    let mut found = Vec::new();
    let mut open = terms.to_vec();
    while let Some(term) = open.pop() {
        if !seen.insert(term) {
            continue;
        }
        match ctp.terms.term(term) {
            Term::Constant(_) => {}
            Term::Slot(slot) => found.push(slot),
            Term::Unary(_, operand) => open.push(operand),
            Term::Binary(_, left, right) => open.extend([left, right]),
        }
    }
    found
}

/// What comes next after a lock was taken.
#[derive(Debug, Default)]
pub(super) struct Following {
    /// Where it is given back.
    pub(super) releases: Vec<StepId>,
    /// Where it would be taken again before that.
    pub(super) acquires: Vec<StepId>,
}

/// What the thread does next to `lock` after `acquire`.
pub(super) fn following(ctp: &Ctp, acquire: StepId, lock: LockId) -> Following {
    let mut following = Following::default();
    let mut seen = reweave_base::FxHashSet::default();
    let mut open = vec![ctp.steps[acquire].to];
    while let Some(point) = open.pop() {
        if !seen.insert(point) {
            continue;
        }
        for (id, step) in ctp.steps_from(point) {
            match step.action {
                Action::Release(of) if of == lock => following.releases.push(id),
                Action::Acquire(of) if of == lock => following.acquires.push(id),
                _ => open.push(step.to),
            }
        }
    }
    following.releases.sort_unstable();
    following.acquires.sort_unstable();
    following
}
