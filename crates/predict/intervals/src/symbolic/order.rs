//! Which of two units comes first.
//!
//! For two threads there is a grid of literals, a row for each unit of the one that the other can
//! notice and a column for each unit of the other: the row comes before the column. That units of a
//! thread are ordered means that truth spreads upwards and to the right; so two threads never
//! contradict each other. Threads can contradict each other in rings of three and more; such rings
//! are found in models, one at a time, and forbidden.
//!
//! Units that are not executed are ordered too, after those that are, or between those of their
//! thread where it went another way. So nothing need be said about them.

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::ThreadId;

use super::gates::{Bit, Gates};
use super::plan::{Plan, UnitId};
use crate::ctp::{Action, Ctp};

/// How units are ordered.
pub(super) struct Order {
    /// For each unit and each thread how many units of that one come before in any case.
    clocks: IndexVec<UnitId, IndexVec<ThreadId, usize>>,
    grids: FxHashMap<(ThreadId, ThreadId), Grid>,
    threads: IndexVec<UnitId, ThreadId>,
    /// For each thread its first unit.
    firsts: IndexVec<ThreadId, usize>,
    /// The units that fork a thread, if there is one such unit only.
    pub(super) only_fork: IndexVec<ThreadId, Option<UnitId>>,
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
struct Bond {
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
        let bonds = bonds(ctp, plan);
        let mut order = Self {
            clocks: IndexVec::default(),
            grids: FxHashMap::default(),
            threads: plan.units.iter().map(|unit| unit.thread).collect(),
            firsts: firsts.collect(),
            only_fork: only_forks(ctp, &bonds),
        };
        order.clocks = order.certain(ctp, plan, &bonds);
        let mut cells_count = 0;
        for one in ctp.threads.ids() {
            for other in ctp.threads.ids().filter(|&other| other > one) {
                let rows = noticed(plan, &bonds, one, other);
                let columns = noticed(plan, &bonds, other, one);
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
        bonds: &[Bond],
    ) -> IndexVec<UnitId, IndexVec<ThreadId, usize>> {
        let mut edges: Vec<(UnitId, UnitId)> = Vec::new();
        for units in plan.units_of.iter() {
            edges.extend(units.windows(2).map(|pair| (pair[0], pair[1])));
        }
        for bond in bonds {
            let children = &plan.units_of[bond.child];
            let (Some(&first), Some(&last)) = (children.first(), children.last()) else { continue };
            if bond.forks && self.only_fork[bond.child] == Some(bond.unit) {
                edges.push((bond.unit, first));
            }
            if !bond.forks && bond.is_first && ctp.is_straight(self.threads[bond.unit]) {
                edges.push((last, bond.unit));
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
            if position % width + 1 < width {
                gates.clause(&[!cell, cells[position + 1]]);
            }
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

fn bonds(ctp: &Ctp, plan: &Plan) -> Vec<Bond> {
    let mut bonds = Vec::new();
    for (unit, planned) in plan.units.entries() {
        for &step in &planned.steps {
            let (child, forks) = match ctp.steps[step].action {
                Action::Fork(child) => (child, true),
                Action::Join(child) => (child, false),
                Action::Local
                | Action::Read(_)
                | Action::Write(_)
                | Action::Update(_)
                | Action::Acquire(_)
                | Action::Release(_) => continue,
            };
            let is_first = ctp.steps[step].from == planned.from;
            if child.index() < ctp.threads.len() && child != planned.thread {
                bonds.push(Bond { unit, child, forks, is_first });
            }
        }
    }
    bonds
}

fn only_forks(ctp: &Ctp, bonds: &[Bond]) -> IndexVec<ThreadId, Option<UnitId>> {
    let only = |child| {
        let mut units = bonds.iter().filter(|bond| bond.forks && bond.child == child);
        let first = units.next()?.unit;
        units.all(|bond| bond.unit == first).then_some(first)
    };
    ctp.threads.ids().map(only).collect()
}

/// The units of `thread` that `other` can notice, or that notice it.
fn noticed(plan: &Plan, bonds: &[Bond], thread: ThreadId, other: ThreadId) -> Vec<UnitId> {
    let mut reads: IndexVec<crate::terms::Slot, bool> =
        IndexVec::from_elem(false, plan.matters.len());
    let mut writes = reads.clone();
    let mut locks = reweave_base::FxHashSet::default();
    for unit in plan.units_of[other].iter().map(|&unit| &plan.units[unit]) {
        unit.reads.iter().for_each(|&slot| reads[slot] = true);
        unit.writes.iter().for_each(|&slot| writes[slot] = true);
        locks.extend(unit.locks.iter().copied());
    }
    let ends = [plan.units_of[thread].first(), plan.units_of[thread].last()];
    let is_noticed = |&unit: &UnitId| {
        let planned = &plan.units[unit];
        let is_bound = bonds.iter().any(|bond| {
            let is_parent = bond.unit == unit && bond.child == other;
            let binds = bond.child == thread && plan.units[bond.unit].thread == other;
            is_parent || binds && ends.contains(&Some(&unit))
        });
        is_bound
            || planned.reads.iter().any(|&slot| writes[slot])
            || planned.writes.iter().any(|&slot| reads[slot] || writes[slot])
            || planned.locks.iter().any(|lock| locks.contains(lock))
    };
    plan.units_of[thread].iter().copied().filter(is_noticed).collect()
}
