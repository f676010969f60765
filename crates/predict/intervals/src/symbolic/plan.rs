//! What a question can depend on: the steps, the slots, what each unit has to do with others, and
//! which of two units comes first.
//!
//! A set of steps is enough if it has those asked about and, with a step, those before it in its
//! thread; what forks the thread; all of a thread that it waits for; the releases of a lock that it
//! takes; and all writes of other threads to a slot that matters and that it reads. A slot matters
//! if a guard, a division or the assertion in question speaks of it, or the value of one that
//! matters is computed from it. Taking all else out of an interleaving leaves one, with the same
//! values.

use reweave_base::{FxHashMap, FxHashSet, Id, IndexVec};
use reweave_trace::{LockId, ThreadId};

use crate::ctp::{Action, Ctp, Point, StepId};
use crate::symbolic::circuits::{Bit, Gates};
use crate::symbolic::{Question, Unit};
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
    fn keeps(&self, ctp: &Ctp, step: StepId) -> bool {
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
        ctp.points_of(thread).fold(false, |has_grown, point| self.need(point) | has_grown)
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
    let mut seen = FxHashSet::default();
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
    /// Where it is released.
    pub(super) releases: Vec<StepId>,
    /// Where it would be taken again before that.
    pub(super) acquires: Vec<StepId>,
}

/// What the thread does next to `lock` after `acquire`.
pub(super) fn following(ctp: &Ctp, acquire: StepId, lock: LockId) -> Following {
    let mut following = Following::default();
    let mut seen = FxHashSet::default();
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

// Which of two units comes first.
//
// For two threads there is a grid of literals, a row for each unit of the one that the other can
// notice and a column for each unit of the other: the row comes before the column. That units of a
// thread are ordered means that truth spreads upwards and to the right; so two threads never
// contradict each other. Threads can contradict each other in rings of three and more; such rings
// are found in models, one at a time, and forbidden.
//
// Units that are not executed are ordered too, after those that are, or between those of their
// thread where it went another way. So nothing need be said about them.

/// How units are ordered.
pub(super) struct Order {
    /// For each unit and each thread how many units of that one come before in any case.
    clocks: IndexVec<UnitId, IndexVec<ThreadId, usize>>,
    grids: FxHashMap<(ThreadId, ThreadId), Grid>,
    threads: IndexVec<UnitId, ThreadId>,
    /// For each thread its first unit.
    firsts: IndexVec<ThreadId, usize>,
    /// The units that fork a thread, if there is one such unit only.
    only_fork: IndexVec<ThreadId, Option<UnitId>>,
}

struct Grid {
    rows: Vec<UnitId>,
    columns: Vec<UnitId>,
    /// Row by row.
    cells: Vec<Bit>,
}

impl Grid {
    fn cell(&self, row: UnitId, column: UnitId) -> Option<Bit> {
        let row = self.rows.binary_search(&row).ok()?;
        let column = self.columns.binary_search(&column).ok()?;
        Some(self.cells[row * self.columns.len() + column])
    }
}

/// A unit with a thread that it forks or waits for.
struct ThreadDependency {
    unit: UnitId,
    child: ThreadId,
    forks: bool,
    /// Whether it does so first of all.
    is_first: bool,
}

impl Order {
    /// Orders the units of `plan`; none if that takes more than `cells_max` literals.
    pub(super) fn new(ctp: &Ctp, plan: &Plan, gates: &mut Gates, cells_max: u64) -> Option<Self> {
        let firsts = plan.units_of.iter().map(|units| units.first().map_or(0, |unit| unit.index()));
        let dependencies = dependencies(ctp, plan);
        let mut order = Self {
            clocks: IndexVec::default(),
            grids: FxHashMap::default(),
            threads: plan.units.iter().map(|unit| unit.thread).collect(),
            firsts: firsts.collect(),
            only_fork: only_forks(ctp, &dependencies),
        };
        order.clocks = order.certain(ctp, plan, &dependencies);
        let mut cells_count = 0;
        for one in ctp.threads.ids() {
            for other in ctp.threads.ids().filter(|&other| other > one) {
                let rows = noticed(plan, &dependencies, one, other);
                let columns = noticed(plan, &dependencies, other, one);
                cells_count += (rows.len() * columns.len()) as u64;
                if cells_count > cells_max {
                    return None;
                }
                let grid = order.grid(rows, columns, gates);
                order.grids.insert((one, other), grid);
            }
        }
        Some(order)
    }

    fn rank(&self, unit: UnitId) -> usize {
        unit.index() - self.firsts[self.threads[unit]]
    }

    /// The orders that hold in any case: of programs, of the only fork of a thread, and of a join
    /// that its thread cannot go around and that its unit begins with: another may be missing from
    /// a unit that is executed in part.
    fn certain(
        &self,
        ctp: &Ctp,
        plan: &Plan,
        dependencies: &[ThreadDependency],
    ) -> IndexVec<UnitId, IndexVec<ThreadId, usize>> {
        let mut edges: Vec<(UnitId, UnitId)> = Vec::new();
        for units in plan.units_of.iter() {
            edges.extend(units.windows(2).map(|pair| (pair[0], pair[1])));
        }
        for dependency in dependencies {
            let children = &plan.units_of[dependency.child];
            let (Some(&first), Some(&last)) = (children.first(), children.last()) else { continue };
            if dependency.forks && self.only_fork[dependency.child] == Some(dependency.unit) {
                edges.push((dependency.unit, first));
            }
            if !dependency.forks
                && dependency.is_first
                && ctp.is_straight_line(self.threads[dependency.unit])
            {
                edges.push((last, dependency.unit));
            }
        }
        edges.sort_unstable();
        let none = IndexVec::from_elem(0, ctp.threads.len());
        let mut clocks = IndexVec::from_elem(none, plan.units.len());
        // Impossible programs have cycles; a clock never passes the number of units even then.
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for &(before, after) in &edges {
                for thread in ctp.threads.ids() {
                    let is_own = thread == self.threads[before];
                    let own = if is_own { self.rank(before) + 1 } else { 0 };
                    let known: usize = own.max(clocks[before][thread]);
                    if known > clocks[after][thread] {
                        clocks[after][thread] = known;
                        has_changed = true;
                    }
                }
            }
        }
        clocks
    }

    fn grid(&self, rows: Vec<UnitId>, columns: Vec<UnitId>, gates: &mut Gates) -> Grid {
        let mut cells = Vec::with_capacity(rows.len() * columns.len());
        for &row in &rows {
            for &column in &columns {
                cells.push(match self.known(row, column) {
                    Some(is_before) => Bit::known(is_before),
                    None => gates.variable(),
                });
            }
        }
        let width = columns.len();
        for (position, &cell) in cells.iter().enumerate() {
            // Before a unit is before the units that follow it in its thread …
            if position % width + 1 < width {
                gates.clause(&[!cell, cells[position + 1]]);
            }
            // … and what an earlier unit precedes whenever a later one of its thread does.
            if let Some(&below) = cells.get(position + width) {
                gates.clause(&[!below, cell]);
            }
        }
        Grid { rows, columns, cells }
    }

    /// Whether `one` comes before `other`, if that is certain.
    pub(super) fn known(&self, one: UnitId, other: UnitId) -> Option<bool> {
        if self.clocks[other][self.threads[one]] > self.rank(one) {
            return Some(true);
        }
        (self.clocks[one][self.threads[other]] > self.rank(other)).then_some(false)
    }

    /// Whether `one` comes before `other`, which must be of one thread or able to notice each
    /// other.
    pub(super) fn before(&self, one: UnitId, other: UnitId) -> Bit {
        let (left, right) = (self.threads[one], self.threads[other]);
        if left == right {
            return Bit::known(one < other);
        }
        if let Some(is_before) = self.known(one, other) {
            return Bit::known(is_before);
        }
        let cell = if left < right {
            self.grids[&(left, right)].cell(one, other)
        } else {
            self.grids[&(right, left)].cell(other, one).map(|cell| !cell)
        };
        cell.expect("units that use the same thing are in the grid of their threads")
    }

    /// The units of `thread` that have a place in the grid with `other`.
    fn placed(&self, thread: ThreadId, other: ThreadId) -> &[UnitId] {
        if thread < other {
            &self.grids[&(thread, other)].rows
        } else {
            &self.grids[&(other, thread)].columns
        }
    }

    /// How many units of `thread` the model puts before `unit`, executed or not.
    fn needs(&self, unit: UnitId, thread: ThreadId, gates: &Gates) -> usize {
        let certain = self.clocks[unit][thread];
        if self.placed(self.threads[unit], thread).binary_search(&unit).is_err() {
            return certain;
        }
        let placed = self.placed(thread, self.threads[unit]);
        let count = placed.partition_point(|&other| gates.holds(self.before(other, unit)));
        let last = placed[..count].last();
        last.map_or(certain, |&last| certain.max(self.rank(last) + 1))
    }

    /// The `executed` units, thread by thread and in each in order, in one order that agrees with
    /// the model; or the rings that forbid one, as clauses that the model breaks.
    pub(super) fn linearize(
        &self,
        executed: &IndexVec<ThreadId, Vec<UnitId>>,
        gates: &Gates,
        begun: &IndexVec<UnitId, Bit>,
    ) -> Result<Vec<UnitId>, Vec<Vec<Bit>>> {
        let mut next: IndexVec<ThreadId, usize> = IndexVec::from_elem(0, executed.len());
        let head = |next: &IndexVec<ThreadId, usize>, thread: ThreadId| {
            executed[thread].get(next[thread]).copied()
        };
        let mut line = Vec::new();
        let mut rings = Vec::new();
        let mut current = None;
        loop {
            // For each thread that has not ended one that it waits for, if it does.
            let threads = executed.ids();
            let mut waits: IndexVec<ThreadId, Vec<ThreadId>> =
                IndexVec::from_elem(Vec::new(), executed.len());
            let mut ready = None;
            let mut has_more = false;
            for thread in current.into_iter().chain(threads) {
                let Some(unit) = head(&next, thread) else { continue };
                has_more = true;
                let blocks = |&other: &ThreadId| {
                    let first = head(&next, other);
                    other != thread
                        && first
                            .is_some_and(|first| self.rank(first) < self.needs(unit, other, gates))
                };
                waits[thread] = executed.ids().filter(blocks).collect();
                if waits[thread].is_empty() {
                    ready = Some((thread, unit));
                    break;
                }
            }
            if !has_more {
                return if rings.is_empty() { Ok(line) } else { Err(rings) };
            }
            let Some((thread, unit)) = ready else {
                let ring = shortest_ring(&waits);
                rings.push(self.forbid(&ring, &next, executed, begun));
                // Going on as if this one could shows more rings of the same model.
                next[ring[0]] += 1;
                continue;
            };
            line.push(unit);
            next[thread] += 1;
            current = Some(thread);
        }
    }

    /// The clause that forbids that each thread of `ring` waits for the next, and the last for the
    /// first.
    fn forbid(
        &self,
        ring: &[ThreadId],
        next: &IndexVec<ThreadId, usize>,
        executed: &IndexVec<ThreadId, Vec<UnitId>>,
        begun: &IndexVec<UnitId, Bit>,
    ) -> Vec<Bit> {
        let head = |thread: ThreadId| executed[thread][next[thread]];
        let mut clause = Vec::new();
        for (position, &thread) in ring.iter().enumerate() {
            let other = ring[(position + 1) % ring.len()];
            let (unit, blocker) = (head(thread), head(other));
            if self.clocks[unit][other] > self.rank(blocker) {
                continue;
            }
            let placed = self.placed(other, thread);
            // Any unit of the grid from the head on will do; the first one forbids most.
            let first = placed[placed.partition_point(|&placed| placed < blocker)];
            clause.push(!self.before(first, unit));
        }
        if clause.is_empty() {
            clause.extend(ring.iter().map(|&thread| !begun[head(thread)]));
        }
        clause
    }
}

/// A shortest ring of threads that wait; each of them waits for some.
fn shortest_ring(waits: &IndexVec<ThreadId, Vec<ThreadId>>) -> Vec<ThreadId> {
    let mut best: Option<Vec<ThreadId>> = None;
    for start in waits.ids().filter(|&thread| !waits[thread].is_empty()) {
        let mut cause: IndexVec<ThreadId, Option<ThreadId>> =
            IndexVec::from_elem(None, waits.len());
        let mut queue = vec![start];
        let mut position = 0;
        while position < queue.len() && cause[start].is_none() {
            let thread = queue[position];
            position += 1;
            for &other in &waits[thread] {
                if cause[other].is_none() {
                    cause[other] = Some(thread);
                    queue.push(other);
                }
            }
        }
        let mut ring = Vec::new();
        let mut at = cause[start];
        while let Some(thread) = at {
            ring.push(thread);
            at = if thread == start { None } else { cause[thread] };
        }
        ring.reverse();
        if !ring.is_empty() && best.as_ref().is_none_or(|best| ring.len() < best.len()) {
            best = Some(ring);
        }
    }
    best.expect("threads that all wait for one another wait in a ring")
}

fn dependencies(ctp: &Ctp, plan: &Plan) -> Vec<ThreadDependency> {
    let mut dependencies = Vec::new();
    for (unit, planned) in plan.units.entries() {
        for &step in &planned.steps {
            let (child, forks) = match ctp.steps[step].action {
                Action::Fork(child) => (child, true),
                Action::Join(child) => (child, false),
                _ => continue,
            };
            let is_first = ctp.steps[step].from == planned.from;
            if child.index() < ctp.threads.len() && child != planned.thread {
                dependencies.push(ThreadDependency { unit, child, forks, is_first });
            }
        }
    }
    dependencies
}

fn only_forks(ctp: &Ctp, dependencies: &[ThreadDependency]) -> IndexVec<ThreadId, Option<UnitId>> {
    let only = |child| {
        let mut units =
            dependencies.iter().filter(|dependency| dependency.forks && dependency.child == child);
        let first = units.next()?.unit;
        units.all(|dependency| dependency.unit == first).then_some(first)
    };
    ctp.threads.ids().map(only).collect()
}

/// The units of `thread` that `other` can notice, or that notice it.
fn noticed(
    plan: &Plan,
    dependencies: &[ThreadDependency],
    thread: ThreadId,
    other: ThreadId,
) -> Vec<UnitId> {
    let mut reads: IndexVec<Slot, bool> = IndexVec::from_elem(false, plan.matters.len());
    let mut writes = reads.clone();
    let mut locks = FxHashSet::default();
    for unit in plan.units_of[other].iter().map(|&unit| &plan.units[unit]) {
        unit.reads.iter().for_each(|&slot| reads[slot] = true);
        unit.writes.iter().for_each(|&slot| writes[slot] = true);
        locks.extend(unit.locks.iter().copied());
    }
    let ends = [plan.units_of[thread].first(), plan.units_of[thread].last()];
    let is_noticed = |&unit: &UnitId| {
        let planned = &plan.units[unit];
        let is_bound = dependencies.iter().any(|dependency| {
            let is_parent = dependency.unit == unit && dependency.child == other;
            let binds = dependency.child == thread && plan.units[dependency.unit].thread == other;
            is_parent || binds && ends.contains(&Some(&unit))
        });
        is_bound
            || planned.reads.iter().any(|&slot| writes[slot])
            || planned.writes.iter().any(|&slot| reads[slot] || writes[slot])
            || planned.locks.iter().any(|lock| locks.contains(lock))
    };
    plan.units_of[thread].iter().copied().filter(is_noticed).collect()
}
