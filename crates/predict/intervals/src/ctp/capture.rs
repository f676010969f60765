//! What a forked thread takes over from its parent.
//!
//! A child starts with the values that some of its parent's locals have at the fork. Locals are of
//! one thread here, so the values are passed: the parent writes them to variables that nobody else
//! knows, just before the fork, and the child reads them first of all. Fork and start order the
//! two, so that nothing else changes. Where what is passed is one number only, constant propagation
//! takes the steps out again.

use std::collections::{BTreeMap, BTreeSet};

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::{LocalId, Op, PointId, ThreadId, ThreadOp};

use super::build::{Body, Builder, Edge, Source, each_local};
use super::{Action, Ctp, CtpError, Owner, Point, Step, StepId};
use crate::terms::{Slot, Term};

/// How names of passed values start; no variable of a program starts so.
const MARK: char = '%';

/// For each thread what it takes over.
pub(super) type Captures = BTreeMap<ThreadId, BTreeSet<LocalId>>;

/// The locals that each thread uses before it defines them.
pub(super) fn captures(sources: &[Source<'_>]) -> Result<Captures, CtpError> {
    let mut orders = Vec::new();
    for source in sources {
        for (own, &thread) in source.threads.iter().enumerate() {
            if let Some(entry) = source.program.entry(ThreadId::from_index(own)) {
                orders.push((source, thread, source.backward(entry)?));
            }
        }
    }
    let mut captures = Captures::new();
    // What a thread passes on it must have itself: as often as there are generations.
    loop {
        let mut is_settled = true;
        for (source, thread, order) in &orders {
            let live = live_at_entry(source, order, &captures);
            let known = captures.entry(*thread).or_default();
            let before = known.len();
            known.extend(live);
            is_settled &= known.len() == before;
        }
        if is_settled {
            captures.retain(|_, locals| !locals.is_empty());
            return Ok(captures);
        }
    }
}

fn live_at_entry(
    source: &Source<'_>,
    backward: &[PointId],
    captures: &Captures,
) -> BTreeSet<LocalId> {
    let mut live: FxHashMap<PointId, BTreeSet<LocalId>> = FxHashMap::default();
    let mut last = BTreeSet::new();
    for &point in backward {
        let mut here = BTreeSet::new();
        for &id in &source.leaving[point] {
            let step = &source.transitions[id];
            let mut after = live.get(&step.to).cloned().unwrap_or_default();
            if let Some((local, _)) = step.define {
                after.remove(&source.locals[local.index()]);
            }
            let terms = [step.define.map(|(_, of)| of), step.store.map(|(_, of)| of)];
            for expr in terms.into_iter().chain([step.guard, step.assertion]).flatten() {
                each_local(source.program, expr, &mut |local| {
                    after.insert(source.locals[local.index()]);
                });
            }
            if let Some(Op::Thread(ThreadOp::Fork, child)) = step.access {
                after.extend(captures.get(&source.threads[child.index()]).into_iter().flatten());
            }
            here.append(&mut after);
        }
        live.insert(point, here.clone());
        last = here;
    }
    last
}

impl Builder<'_> {
    /// Adds the variables by which values are passed.
    pub(super) fn name_captures(&mut self) {
        for (&thread, locals) in &self.captures {
            for &local in locals {
                let (local_name, thread_name) =
                    (self.names.locals.name(local), self.names.threads.name(thread));
                let name = format!("{MARK}{local_name} of {thread_name}");
                self.passed.insert((thread, local), self.names.vars.intern(&name));
            }
        }
    }

    /// `points` of `thread` with what passes values put in.
    pub(super) fn pass(&mut self, thread: ThreadId, points: Vec<Vec<Edge>>) -> Vec<Vec<Edge>> {
        let mut passing: Vec<Vec<Edge>> = Vec::new();
        // For each old point its new one; edges are renumbered once all are known.
        let mut new_of = Vec::with_capacity(points.len());
        let mut unnumbered = Vec::new();
        for (old, leaving) in points.into_iter().enumerate() {
            if old == 0
                && let Some(first) = leaving.first().copied()
            {
                for local in self.captured(thread) {
                    let step = self.takes_over(thread, local, first.1);
                    let next = passing.len() + 1;
                    passing.push(vec![(step.0, step.1, next)]);
                }
            }
            let here = passing.len();
            new_of.push(here);
            passing.push(Vec::new());
            for (action, body, to) in leaving {
                let mut from = here;
                if let Action::Fork(child) = action {
                    for local in self.captured(child) {
                        let (action, body) = self.hands_over(thread, child, local, body);
                        let next = passing.len();
                        passing.push(Vec::new());
                        passing[from].push((action, body, next));
                        from = next;
                    }
                }
                unnumbered.push((from, passing[from].len()));
                passing[from].push((action, body, to));
            }
        }
        for (point, place) in unnumbered {
            let edge = &mut passing[point][place];
            edge.2 = new_of[edge.2];
        }
        passing
    }

    fn captured(&self, thread: ThreadId) -> Vec<LocalId> {
        self.captures.get(&thread).into_iter().flatten().copied().collect()
    }

    fn takes_over(&mut self, thread: ThreadId, local: LocalId, like: Body) -> (Action, Body) {
        let var = self.passed[&(thread, local)];
        let value = self.terms.add(Term::Slot(self.slot_of[&Owner::Shared(var)]));
        let action = Action::Read(var);
        let define = Some((self.slot_of[&Owner::Local(thread, local)], value));
        (action, Body { define, ..Body::plain(action, like.site) })
    }

    fn hands_over(
        &mut self,
        parent: ThreadId,
        child: ThreadId,
        local: LocalId,
        like: Body,
    ) -> (Action, Body) {
        let var = self.passed[&(child, local)];
        let value = self.terms.add(Term::Slot(self.slot_of[&Owner::Local(parent, local)]));
        let action = Action::Write(var);
        let store = Some((self.slot_of[&Owner::Shared(var)], value));
        (action, Body { store, ..Body::plain(action, like.site) })
    }
}

impl Ctp {
    /// Whether `var` is no variable of the program, but passes a value to a thread that is forked.
    #[must_use]
    pub fn is_passed(&self, var: reweave_trace::VarId) -> bool {
        self.names.vars.name(var).starts_with(MARK)
    }

    /// Whether a step of this `action` is none of the program, but passes a value.
    #[must_use]
    pub fn is_passing(&self, action: Action) -> bool {
        matches!(action, Action::Read(var) | Action::Write(var) if self.is_passed(var))
    }

    /// Takes out the steps that pass what `is_constant`, whose readers know it already.
    pub(super) fn drop_passing(&mut self, is_constant: &IndexVec<Slot, bool>) {
        let is_dropped = |ctp: &Self, step: &Step| match step.action {
            Action::Read(var) | Action::Write(var) => {
                ctp.is_passed(var) && is_constant[ctp.shared(var)]
            }
            _ => false,
        };
        if !self.steps.iter().any(|step| is_dropped(self, step)) {
            return;
        }
        // From the last point on: what leaves a point instead of what is dropped.
        let mut leaving: Vec<Vec<Step>> = vec![Vec::new(); self.leaving.len()];
        for point in (0..self.leaving.len()).rev() {
            let mut own = Vec::new();
            for (_, step) in self.steps_from(Point::from_index(point)) {
                match is_dropped(self, step) {
                    true => own.extend(leaving[step.to.index()].iter().copied()),
                    false => own.push(*step),
                }
            }
            leaving[point] = own;
        }
        self.rebuild(&leaving);
    }

    /// Makes it the program whose points have `leaving` steps, without points that nothing leads to.
    fn rebuild(&mut self, leaving: &[Vec<Step>]) {
        let mut is_there = vec![false; leaving.len()];
        for thread in self.threads.iter() {
            is_there[thread.points.start.index()] = true;
        }
        for point in 0..leaving.len() {
            if is_there[point] {
                for step in &leaving[point] {
                    is_there[step.to.index()] = true;
                }
            }
        }
        let mut new_of = Vec::with_capacity(leaving.len());
        let mut count = 0;
        for &is_there in &is_there {
            new_of.push(count);
            count += usize::from(is_there);
        }
        (self.steps, self.leaving) = (IndexVec::new(), IndexVec::new());
        for index in 0..self.threads.len() {
            let id = ThreadId::from_index(index);
            let points = self.threads[id].points.clone();
            let (first_point, first_step) = (self.leaving.len(), self.steps.len());
            for point in (points.start.index()..points.end.index()).filter(|&point| is_there[point])
            {
                let start = StepId::from_index(self.steps.len());
                let here = Point::from_index(new_of[point]);
                for step in &leaving[point] {
                    let to = Point::from_index(new_of[step.to.index()]);
                    self.steps.push(Step { from: here, to, ..*step });
                }
                self.leaving.push(start..StepId::from_index(self.steps.len()));
            }
            let thread = &mut self.threads[id];
            thread.points = Point::from_index(first_point)..Point::from_index(self.leaving.len());
            thread.steps = StepId::from_index(first_step)..StepId::from_index(self.steps.len());
        }
    }
}
