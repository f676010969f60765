//! Nondeterministic sequential specifications by definition, and the best placements of `if (*)` by
//! trying all, smallest sets first.
//!
//! For runs of at most 128 events that count, since sets of events are words of that many bits.
//!
//! Burnim, Elmas, Necula and Sen, "NDetermin: inferring nondeterministic sequential specifications
//! for parallelism correctness" (PPoPP 2012).

use reweave_base::{Id, IndexVec};
use reweave_trace::{
    EventId, Flow, Instance, LocalId, Marker, Op, StaticBlock, StaticBlockId, ThreadId, ThreadOp,
    Trace,
};

/// An `if (*)` around the statements `first` to `last` of a block, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    /// The block.
    pub block: StaticBlockId,
    /// The first statement enclosed.
    pub first: u32,
    /// The last.
    pub last: u32,
}

impl Placement {
    /// Whether the two are in one block, share a statement, and neither is inside the other.
    fn overlaps(self, other: Self) -> bool {
        let (left, right) = if self.first <= other.first { (self, other) } else { (other, self) };
        left.block == right.block
            && left.first < right.first
            && right.first <= left.last
            && left.last < right.last
    }
}

/// Whether an event counts: assignments and branches do, as section 3.2 of the paper says.
const fn counts(op: Op) -> bool {
    matches!(op, Op::Access(..) | Op::Marker(Marker::Branch | Marker::Let(_)))
}

/// A set of events, by their place among those that count.
pub type Set = u128;

/// A statement: its block and its position there.
pub type Statement = (StaticBlockId, u32);

/// A run with all that is asked of it, computed by definition.
#[derive(Clone, Debug)]
pub struct Definitions<'t> {
    trace: &'t Trace,
    flow: &'t Flow,
    events: Vec<EventId>,
    ops: Vec<Op>,
    sources: Vec<Set>,
    conflicts: Vec<Conflict>,
}

/// Two events that conflict, the earlier first, and the threads that they order.
type Conflict = (usize, usize, Vec<(ThreadId, ThreadId)>);

impl<'t> Definitions<'t> {
    /// The definitions for `trace`.
    ///
    /// # Panics
    /// If it has no flow layer, or more than 128 events that count, or more than 64 threads.
    #[must_use]
    pub fn new(trace: &'t Trace) -> Self {
        let flow = trace.flow().expect("the trace has a flow layer");
        let counted = trace.events().filter(|(_, event)| counts(event.op));
        let (events, ops): (Vec<EventId>, Vec<Op>) =
            counted.map(|(id, event)| (id, event.op)).unzip();
        assert!(events.len() <= 128, "sets are words of 128 bits");
        assert!(trace.names().threads.len() <= 64, "sets of threads are words of 64 bits");
        let mut definitions =
            Self { trace, flow, events, ops, sources: Vec::new(), conflicts: Vec::new() };
        definitions.sources =
            (0..definitions.events.len()).map(|at| definitions.sources_of(at)).collect();
        definitions.conflicts = definitions.conflicts();
        definitions
    }

    /// The events that count.
    #[must_use]
    pub fn events(&self) -> &[EventId] {
        &self.events
    }

    /// The events on which the one at `at` depends directly, D1 and D2.
    #[must_use]
    pub fn sources(&self, at: usize) -> Set {
        self.sources[at]
    }

    fn thread(&self, at: usize) -> ThreadId {
        self.trace.event(self.events[at]).thread
    }

    fn all(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.events.len()
    }

    fn sources_of(&self, at: usize) -> Set {
        let mut sources = 0;
        for &local in self.flow.uses(self.events[at]) {
            if let Some(writer) = self.writer(self.thread(at), local, self.events[at]) {
                sources |= 1 << writer;
            }
        }
        let Some(var) = self.ops[at].var().filter(|_| self.ops[at].is_read()) else {
            return sources;
        };
        for thread in (0..self.trace.names().threads.len()).map(ThreadId::from_index) {
            let writes = |&other: &usize| {
                let op = self.ops[other];
                op.is_write() && op.var() == Some(var) && self.thread(other) == thread
            };
            if let Some(last) = (0..at).rfind(writes) {
                sources |= 1 << last;
            }
            let first_after = (at + 1..self.events.len()).find(writes);
            if let Some(first) = first_after.filter(|_| thread != self.thread(at)) {
                sources |= 1 << first;
            }
        }
        sources
    }

    /// The event that assigned `local` of `thread` last before `before`, there or in the thread
    /// that forked it.
    fn writer(&self, thread: ThreadId, local: LocalId, before: EventId) -> Option<usize> {
        let mut thread = thread;
        for index in (0..before.index()).rev() {
            let id = EventId::from_index(index);
            let event = self.trace.event(id);
            let assigned = match event.op {
                Op::Marker(Marker::Let(own)) => Some(own),
                _ => None,
            };
            let assigned = self.flow.step(id).defines.or(assigned);
            if event.thread == thread && assigned == Some(local) {
                return self.events.iter().position(|&other| other == id);
            }
            if event.op == Op::Thread(ThreadOp::Fork, thread) {
                if !self.flow.uses(id).contains(&local) {
                    return None;
                }
                thread = event.thread;
            }
        }
        None
    }

    /// Each thread's last write to each variable of the focus (R1).
    #[must_use]
    pub fn targets(&self) -> Set {
        let is_target = |&at: &usize| {
            let op = self.ops[at];
            let is_last = (at + 1..self.events.len()).all(|later| {
                let other = self.ops[later];
                !(other.is_write() && other.var() == op.var())
                    || self.thread(later) != self.thread(at)
            });
            let is_focus = op.var().is_some_and(|var| self.flow.focus().contains(&var));
            op.is_write() && is_focus && is_last
        };
        self.all().filter(is_target).fold(0, |set, at| set | 1 << at)
    }

    /// What a target depends on, D1, D2 and C1.
    #[must_use]
    pub fn slice(&self) -> Set {
        least(self.targets(), |set| {
            let mut more = self.flowing_into(set);
            for at in self.all().filter(|at| set >> at & 1 == 1) {
                let control = self.flow.step(self.events[at]).control;
                let branch = self.events.iter().position(|&event| Some(event) == control);
                more |= branch.map_or(0, |branch| 1 << branch);
            }
            more
        })
    }

    fn flowing_into(&self, set: Set) -> Set {
        let members = self.all().filter(|at| set >> at & 1 == 1);
        members.fold(0, |sources, at| sources | self.sources[at])
    }

    fn branches(&self) -> Set {
        let branches = self.all().filter(|&at| self.ops[at] == Op::Marker(Marker::Branch));
        branches.fold(0, |set, at| set | 1 << at)
    }

    /// The events whose instance, or one around it, is one for which `is_inside`.
    fn inside(&self, is_inside: impl Fn(Instance) -> bool) -> Set {
        let is_member = |&at: &usize| {
            let instance = self.flow.step(self.events[at]).instance;
            instance.is_some_and(|id| self.flow.enclosing(id).any(&is_inside))
        };
        self.all().filter(is_member).fold(0, |set, at| set | 1 << at)
    }

    /// The targets, what flows into a member, and the branches whose own statement's execution
    /// contains a member.
    #[must_use]
    pub fn forced(&self) -> Set {
        let own = |at: usize| {
            let instance = self.flow.step(self.events[at]).instance;
            instance.map(|id| self.inside(|other| other == self.flow.instance(id)))
        };
        let branches: Vec<(usize, Option<Set>)> = self
            .all()
            .filter(|at| self.branches() >> at & 1 == 1)
            .map(|at| (at, own(at)))
            .collect();
        least(self.targets(), |set| {
            let is_kept = |own: Option<Set>| own.is_none_or(|own| own & set != 0);
            let kept = branches.iter().filter(|&&(_, own)| is_kept(own));
            kept.fold(self.flowing_into(set), |more, &(at, _)| more | 1 << at)
        })
    }

    /// The executions of `placement`: the events of each.
    #[must_use]
    pub fn executions(&self, placement: Placement) -> Vec<Set> {
        let is_of = |instance: &Instance| {
            instance.block == placement.block
                && (placement.first..=placement.last).contains(&instance.position)
        };
        let mut executions: Vec<_> = self
            .flow
            .instances()
            .filter(|(_, instance)| is_of(instance))
            .map(|(_, instance)| (instance.parent, instance.execution))
            .collect();
        executions.sort_unstable();
        executions.dedup();
        let events = |&(parent, execution): &(_, u32)| {
            self.inside(|other| {
                is_of(&other) && (other.parent, other.execution) == (parent, execution)
            })
        };
        executions.iter().map(events).collect()
    }

    /// Definition 5, given the executions of all placements. With a set of events and statements the
    /// rules of branches hold for those of these events too that are of none of the statements.
    #[must_use]
    pub fn relevant(&self, executions: &[Set], exempt: Option<(Set, &[Statement])>) -> Set {
        let is_bound = |at: usize| {
            let instance = self.flow.step(self.events[at]).instance;
            let statement = instance.map(|id| self.flow.instance(id));
            let statement = statement.map(|instance| (instance.block, instance.position));
            let must_be_enclosed = exempt.is_some_and(|(events, exempt)| {
                events >> at & 1 == 1
                    && statement.is_some_and(|statement| !exempt.contains(&statement))
            });
            self.ops[at] == Op::Marker(Marker::Branch) || must_be_enclosed
        };
        let bound: Vec<usize> = self.all().filter(|&at| is_bound(at)).collect();
        let smallest = |at: usize| {
            let around = executions.iter().filter(|&&execution| execution >> at & 1 == 1);
            around.min_by_key(|execution| execution.count_ones()).copied()
        };
        let blocks: Vec<Option<Set>> = bound.iter().map(|&at| smallest(at)).collect();
        least(self.targets(), |set| {
            let is_kept = |block: Option<Set>| block.is_none_or(|block| block & set != 0);
            let kept = bound.iter().zip(&blocks).filter(|&(_, &block)| is_kept(block));
            kept.fold(self.flowing_into(set), |more, (&at, _)| more | 1 << at)
        })
    }

    /// Pairs of events that conflict (Definition 3), with the threads whose transactions they are
    /// of, neither of which descends from the other (Definition 4).
    fn conflicts(&self) -> Vec<Conflict> {
        let mut found = Vec::new();
        for later in self.all() {
            for earlier in 0..later {
                let (one, other) = (self.ops[earlier], self.ops[later]);
                let is_conflict = one.var().is_some()
                    && one.var() == other.var()
                    && (one.is_write() || other.is_write())
                    && self.thread(earlier) != self.thread(later);
                if !is_conflict {
                    continue;
                }
                let mut pairs = Vec::new();
                for from in self.ancestors(self.thread(earlier)) {
                    for to in self.ancestors(self.thread(later)) {
                        let descends = self.ancestors(from).contains(&to)
                            || self.ancestors(to).contains(&from);
                        if !descends {
                            pairs.push((from, to));
                        }
                    }
                }
                found.push((earlier, later, pairs));
            }
        }
        found
    }

    /// `thread` and those above it.
    fn ancestors(&self, thread: ThreadId) -> Vec<ThreadId> {
        let forked_by = |child: ThreadId| {
            let mut events = self.trace.events();
            events
                .find(|(_, event)| event.op == Op::Thread(ThreadOp::Fork, child))
                .map(|(_, event)| event.thread)
        };
        std::iter::successors(Some(thread), |&thread| forked_by(thread)).collect()
    }

    /// Whether the conflicts between the events of `set` order the threads without a cycle.
    #[must_use]
    pub fn is_serializable(&self, set: Set) -> bool {
        let threads_count = self.trace.names().threads.len();
        let mut reaches = vec![0_u64; threads_count];
        for (earlier, later, pairs) in &self.conflicts {
            if set >> earlier & set >> later & 1 == 1 {
                for (from, to) in pairs {
                    reaches[from.index()] |= 1 << to.index();
                }
            }
        }
        for middle in 0..threads_count {
            for from in 0..threads_count {
                if reaches[from] >> middle & 1 == 1 {
                    reaches[from] |= reaches[middle];
                }
            }
        }
        (0..threads_count).all(|thread| reaches[thread] >> thread & 1 == 0)
    }

    /// The statements of the events outside `set`.
    fn statements_outside(&self, set: Set) -> Vec<Statement> {
        let outside = self.all().filter(|at| set >> at & 1 == 0);
        let instances = outside.filter_map(|at| self.flow.step(self.events[at]).instance);
        let instances = instances.map(|id| self.flow.instance(id));
        instances.map(|instance| (instance.block, instance.position)).collect()
    }
}

/// The least set that has `seed` and is closed under `more`.
fn least(seed: Set, more: impl Fn(Set) -> Set) -> Set {
    let mut set = seed;
    loop {
        let next = set | more(set);
        if next == set {
            return set;
        }
        set = next;
    }
}

/// All placements that could be chosen, and those that are there anyway.
fn all_placements(
    blocks: &IndexVec<StaticBlockId, StaticBlock>,
) -> (Vec<Placement>, Vec<Placement>) {
    let (mut free, mut own) = (Vec::new(), Vec::new());
    for (block, static_block) in blocks.entries() {
        let count = static_block.statements.len() as u32;
        for first in 0..count {
            for last in first..count {
                let is_own = static_block.is_optional && last - first + 1 == count;
                let list = if is_own { &mut own } else { &mut free };
                list.push(Placement { block, first, last });
            }
        }
    }
    (free, own)
}

/// The best placements, by trying all.
#[derive(Clone, Debug)]
pub struct BruteForce<'t> {
    runs: Vec<Definitions<'t>>,
    free: Vec<Placement>,
    /// For each run the executions of what is there anyway, and of each free placement.
    own_executions: Vec<Vec<Set>>,
    executions: Vec<Vec<Vec<Set>>>,
}

impl<'t> BruteForce<'t> {
    /// Makes `traces`, runs of one program, ready.
    ///
    /// # Panics
    /// If there is none, or as [`Definitions::new`] does.
    #[must_use]
    pub fn new(traces: &[&'t Trace]) -> Self {
        let runs: Vec<Definitions<'t>> =
            traces.iter().map(|trace| Definitions::new(trace)).collect();
        let (free, own) = all_placements(runs.first().expect("there is a run").flow.blocks());
        let of = |run: &Definitions<'t>, placements: &[Placement]| -> Vec<Vec<Set>> {
            placements.iter().map(|&placement| run.executions(placement)).collect()
        };
        let own_executions = runs.iter().map(|run| of(run, &own).concat()).collect();
        let executions = runs.iter().map(|run| of(run, &free)).collect();
        Self { runs, free, own_executions, executions }
    }

    /// How many placements could be chosen.
    #[must_use]
    pub const fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Whether every run is serializable with the free placements `chosen`.
    fn is_safe(&self, chosen: &[usize], exempt: Option<&[Statement]>) -> bool {
        (0..self.runs.len()).all(|run| {
            let mut executions = self.own_executions[run].clone();
            for &index in chosen {
                executions.extend_from_slice(&self.executions[run][index]);
            }
            let definitions = &self.runs[run];
            // What is irrelevant anyway is not made so by what is chosen.
            let live = definitions.relevant(&self.own_executions[run], None);
            let exempt = exempt.map(|exempt| (live, exempt));
            definitions.is_serializable(definitions.relevant(&executions, exempt))
        })
    }

    fn can_stand_together(&self, chosen: &[usize]) -> bool {
        let pairs = chosen.iter().flat_map(|&left| chosen.iter().map(move |&right| (left, right)));
        pairs.into_iter().all(|(left, right)| !self.free[left].overlaps(self.free[right]))
    }

    /// The sets of fewest placements with which every run is serializable and which contain none
    /// of the `rejected` sets; none if there are none of up to `number_max`.
    #[must_use]
    pub fn smallest(
        &self,
        rejected: &[Vec<Placement>],
        number_max: usize,
    ) -> Option<Vec<Vec<Placement>>> {
        let is_rejected = |chosen: &[usize]| {
            let chosen: Vec<Placement> = chosen.iter().map(|&index| self.free[index]).collect();
            rejected.iter().any(|set| set.iter().all(|placement| chosen.contains(placement)))
        };
        for number in 0..=number_max.min(self.free.len()) {
            let mut found = Vec::new();
            subsets(self.free.len(), number, |chosen| {
                let is_good = self.can_stand_together(chosen)
                    && !is_rejected(chosen)
                    && self.is_safe(chosen, None);
                if is_good {
                    found.push(chosen.iter().map(|&index| self.free[index]).collect());
                }
            });
            if !found.is_empty() {
                return Some(found);
            }
        }
        None
    }

    /// The best of `smallest` by the other criteria: the fewest exempt statements if `cover`, the
    /// fewest statements enclosed, the earliest.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn best(&self, smallest: Vec<Vec<Placement>>, cover: bool) -> Vec<Placement> {
        let covered = if cover { self.best_covered(&smallest) } else { smallest };
        let blocks = self.runs[0].flow.blocks();
        let key = |placements: &Vec<Placement>| {
            let width: u32 =
                placements.iter().map(|placement| placement.last - placement.first + 1).sum();
            let start = |placement: &Placement| {
                blocks[placement.block].statements[placement.first as usize].start
            };
            let mut sorted: Vec<(u32, Placement)> =
                placements.iter().map(|placement| (start(placement), *placement)).collect();
            sorted.sort_unstable();
            (width, sorted)
        };
        let (_, sorted) = covered.iter().map(key).min().expect("there is a smallest set");
        sorted.into_iter().map(|(_, placement)| placement).collect()
    }

    /// Those of `smallest` that need the fewest exempt statements.
    fn best_covered(&self, smallest: &[Vec<Placement>]) -> Vec<Vec<Placement>> {
        // An event that is kept whatever is enclosed does not care whether it is exempt.
        let mut statements: Vec<Statement> =
            self.runs.iter().flat_map(|run| run.statements_outside(run.forced())).collect();
        statements.sort_unstable();
        statements.dedup();
        let index_of = |placement: &Placement| self.free.iter().position(|free| free == placement);
        for number in 0..=statements.len() {
            let is_good = |placements: &&Vec<Placement>| {
                let chosen: Vec<usize> = placements.iter().filter_map(index_of).collect();
                let mut is_safe = false;
                subsets(statements.len(), number, |indexes| {
                    let exempt: Vec<Statement> =
                        indexes.iter().map(|&index| statements[index]).collect();
                    is_safe = is_safe || self.is_safe(&chosen, Some(&exempt));
                });
                is_safe
            };
            let good: Vec<Vec<Placement>> = smallest.iter().filter(is_good).cloned().collect();
            if !good.is_empty() {
                return good;
            }
        }
        Vec::new()
    }
}

/// Shows `visit` every set of `number` of the first `count` numbers.
fn subsets(count: usize, number: usize, mut visit: impl FnMut(&[usize])) {
    if number > count {
        return;
    }
    let mut chosen: Vec<usize> = (0..number).collect();
    loop {
        visit(&chosen);
        let movable = (0..number).rev().find(|&at| chosen[at] < count - number + at);
        let Some(at) = movable else { return };
        chosen[at] += 1;
        for later in at + 1..number {
            chosen[later] = chosen[later - 1] + 1;
        }
    }
}
