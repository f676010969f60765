//! The encoding: what makes an event irrelevant, as clauses.
//!
//! Variables, each true if:
//! - an *event* is irrelevant (X_e), or a junction's sources may be;
//! - a *placement* is chosen (X_s), with a soft literal that it is not;
//! - a *stretch*, an execution of a placement, is skipped (X_Es);
//! - an *instance* of a statement is wholly irrelevant, or lies inside a stretch that is skipped;
//! - a *statement* is exempt: its events may be irrelevant without being enclosed.
//!
//! Clauses, numbered as by Burnim et al., section 4.1:
//! - (1) an irrelevant branch is inside a stretch that is skipped;
//! - (2) a stretch is skipped only if its placement is chosen;
//! - (3) what is inside a skipped stretch is irrelevant, by way of its instances;
//! - (4) what an irrelevant event flows into is irrelevant;
//! - (5) chosen placements do not overlap: added when a model breaks it;
//! - (6) one event of each cycle of conflicts is irrelevant: added when a model breaks it;
//! - (8) not all of a rejected set of placements are chosen;
//! - cover: an irrelevant event is inside a skipped stretch, or its statement is exempt.
//!
//! Events that are kept whatever is enclosed have no variable: theirs would be false. Nor have those
//! that are irrelevant even if nothing more is enclosed, statistics that nobody reads for instance:
//! theirs would be true. Of the others only the *cone* of the cycles has variables: their events,
//! what these flow into, and what could be skipped around those. Nothing else is asked to be
//! irrelevant by anything, so it need not be.
//!
//! With grouping (section 4.3 of the paper) all events of an outermost statement instance that
//! holds no kept event share one variable. That is smaller, and may cost more placements.
//!
//! Linear in the cone, but for the stretches: there are quadratically many in the length of a
//! block, and cubically many literals that say what each encloses. They are counted (see
//! `StepBudget`); when there are too many the encoding stays as it is, incomplete, and
//! must not be solved any more.

use std::collections::BTreeMap;

use reweave_base::{CsrTable, FxHashMap, FxHashSet, IndexVec};
use reweave_solver::{Lit, Solver};
use reweave_trace::{InstanceId, StaticBlockId};

use crate::events::NodeId;
use crate::infer::Settings;
use crate::placement::Placement;
use crate::relevant::forced;
use crate::run::Run;
use crate::scopes::ExecutionId;

/// A statement: its block and its position there.
pub(crate) type Statement = (StaticBlockId, u32);

/// One of the runs, counted from 0.
pub(crate) type RunIndex = usize;

/// The clauses so far, by what their variables stand for.
#[derive(Debug)]
pub(crate) struct Encoding {
    /// What the clauses are given to.
    pub(crate) solver: Solver,
    tables: Vec<Table>,
    candidates: Candidates,
    own: FxHashSet<Placement>,
    budget: StepBudget,
    /// The placements that have a variable, with it.
    pub(crate) placements: BTreeMap<Placement, Lit>,
    /// The statements that have events that might be irrelevant, and whether they are exempt.
    pub(crate) exemptions: BTreeMap<Statement, Lit>,
    covers: bool,
    rest: Vec<Task>,
    fresh_placements: Vec<Lit>,
    fresh_exemptions: Vec<Lit>,
}

/// What is known of one run.
#[derive(Debug)]
struct Table {
    /// The events that are kept whatever is enclosed.
    is_kept: IndexVec<NodeId, bool>,
    /// The events that are relevant if nothing more is enclosed; the others are irrelevant anyway.
    is_live: IndexVec<NodeId, bool>,
    /// The instances that hold such an event.
    holds_live: IndexVec<InstanceId, bool>,
    /// The instances that hold an event that is kept.
    is_blocked: IndexVec<InstanceId, bool>,
    /// What each node flows into.
    targets: CsrTable<NodeId, NodeId>,
    /// With grouping, the outermost instance that shares a variable, for each event.
    groups: Option<IndexVec<NodeId, Option<InstanceId>>>,
    nodes: IndexVec<NodeId, Option<Lit>>,
    irrelevant: IndexVec<InstanceId, Option<Lit>>,
    enclosed: IndexVec<InstanceId, Option<Lit>>,
    stretches: FxHashMap<(ExecutionId, Placement), Lit>,
    /// That all from one instance to another of the same execution of a block are irrelevant.
    neighbours: FxHashMap<(InstanceId, InstanceId), Lit>,
}

/// Something whose variable is there and whose clauses are not yet.
#[derive(Clone, Copy, Debug)]
enum Task {
    Node(RunIndex, NodeId),
    Cover(RunIndex, NodeId),
    Irrelevant(RunIndex, InstanceId),
    Enclosed(RunIndex, InstanceId),
}

impl Encoding {
    /// No clauses yet, for `runs` with the events of each that are `known` to be kept whatever is
    /// enclosed, and those that are `live` if only `own` are chosen, which are there anyway.
    pub(crate) fn new(
        runs: &[Run<'_>],
        known: Vec<IndexVec<NodeId, bool>>,
        live: &[IndexVec<NodeId, bool>],
        own: &[Placement],
        settings: &Settings,
    ) -> Self {
        let each = runs.iter().zip(known).zip(live);
        let tables: Vec<Table> = each
            .map(|((run, is_kept), is_live)| {
                Table::new(run, is_kept, is_live.clone(), settings.grouping)
            })
            .collect();
        let mut budget = StepBudget::new(settings.encoding_max);
        let blocked = tables.iter().map(|table| &table.is_blocked);
        let candidates = Candidates::new(runs.iter().zip(blocked), own, &mut budget);
        Self {
            solver: Solver::new(settings.conflicts_max),
            tables,
            candidates,
            own: own.iter().copied().collect(),
            budget,
            placements: BTreeMap::new(),
            exemptions: BTreeMap::new(),
            covers: false,
            rest: Vec::new(),
            fresh_placements: Vec::new(),
            fresh_exemptions: Vec::new(),
        }
    }

    /// How many placements are thought of.
    pub(crate) fn candidates_count(&self) -> usize {
        self.candidates.count
    }

    /// Whether it took more steps than it may: then clauses are missing.
    pub(crate) const fn is_exhausted(&self) -> bool {
        self.budget.is_exhausted()
    }

    /// Whether `node` is kept whatever is enclosed.
    pub(crate) fn is_kept(&self, run: RunIndex, node: NodeId) -> bool {
        self.tables[run].is_kept[node]
    }

    /// The variables of placements that are new since the last call.
    pub(crate) fn take_fresh_placements(&mut self) -> Vec<Lit> {
        std::mem::take(&mut self.fresh_placements)
    }

    /// The variables of statements that are new since the last call.
    pub(crate) fn take_fresh_exemptions(&mut self) -> Vec<Lit> {
        std::mem::take(&mut self.fresh_exemptions)
    }

    /// Adds (6) for a cycle through `events`, with all that follows.
    pub(crate) fn add_cycle(&mut self, runs: &[Run<'_>], run: RunIndex, events: &[NodeId]) {
        let mut clause = Vec::new();
        for &event in events {
            if !self.tables[run].is_kept[event] {
                clause.push(self.node(runs, run, event));
            }
        }
        self.solver.add(&clause);
        self.complete(runs);
    }

    /// Adds (5) for two placements.
    pub(crate) fn add_overlap(&mut self, left: Placement, right: Placement) {
        let clause = [!self.placement(left), !self.placement(right)];
        self.solver.add(&clause);
    }

    /// Adds (8) for a set of placements.
    pub(crate) fn add_rejection(&mut self, rejected: &[Placement]) {
        let mut clause = Vec::new();
        for &placement in rejected {
            if !self.own.contains(&placement) {
                clause.push(!self.placement(placement));
            }
        }
        self.solver.add(&clause);
    }

    /// From now on demands that what is irrelevant is enclosed or its statement exempt.
    pub(crate) fn cover(&mut self, runs: &[Run<'_>]) {
        if std::mem::replace(&mut self.covers, true) {
            return;
        }
        for (index, run) in runs.iter().enumerate() {
            let table = &self.tables[index];
            let encoded = run.events.nodes().filter(|&node| table.nodes[node].is_some());
            self.rest.extend(encoded.map(|node| Task::Cover(index, node)));
        }
        self.complete(runs);
    }

    fn complete(&mut self, runs: &[Run<'_>]) {
        while !self.is_exhausted() {
            let Some(task) = self.rest.pop() else { return };
            match task {
                Task::Node(run, node) => self.complete_node(runs, run, node),
                Task::Cover(run, node) => self.complete_cover(runs, run, node),
                Task::Irrelevant(run, instance) => {
                    self.complete_irrelevant(runs, run, instance);
                }
                Task::Enclosed(run, instance) => {
                    self.complete_enclosed(runs, run, instance);
                }
            }
        }
    }

    /// (4), and (1) for a branch.
    fn complete_node(&mut self, runs: &[Run<'_>], run: RunIndex, node: NodeId) {
        let literal = self.node(runs, run, node);
        for index in 0..self.tables[run].targets.row(node).len() {
            let target = self.tables[run].targets.row(node)[index];
            if !self.tables[run].is_live[target] {
                continue;
            }
            if self.tables[run].is_kept[target] {
                self.solver.add(&[!literal]);
                return;
            }
            let flows_into = self.node(runs, run, target);
            if flows_into != literal {
                self.solver.add(&[!literal, flows_into]);
            }
        }
        if runs[run].dependences.is_junction(node) {
            return;
        }
        if runs[run].events.is_branch(node) {
            let mut clause = vec![!literal];
            clause.extend(self.enclosing(run, runs[run].events.instance(node)));
            self.solver.add(&clause);
        } else if self.covers {
            self.rest.push(Task::Cover(run, node));
        }
    }

    /// Cover, for an event that is no branch; (1) says more of those.
    fn complete_cover(&mut self, runs: &[Run<'_>], run: RunIndex, node: NodeId) {
        let instance = runs[run].events.instance(node);
        let Some(id) = instance.filter(|_| !runs[run].events.is_branch(node)) else { return };
        let literal = self.node(runs, run, node);
        let scopes = &runs[run].scopes;
        let statement = (scopes.block(scopes.execution(id)), scopes.position(id));
        let mut clause = vec![!literal, self.exemption(statement)];
        clause.extend(self.enclosing(run, instance));
        self.solver.add(&clause);
    }

    /// (3), from an instance to what is in it.
    fn complete_irrelevant(&mut self, runs: &[Run<'_>], run: RunIndex, instance: InstanceId) {
        let literal = self.irrelevant(run, instance);
        for &event in runs[run].scopes.own(instance) {
            if !self.tables[run].is_live[event] {
                continue;
            }
            let inside = self.node(runs, run, event);
            self.solver.add(&[!literal, inside]);
        }
        for &child in runs[run].scopes.children(instance) {
            if self.tables[run].holds_live[child] {
                let inside = self.irrelevant(run, child);
                self.solver.add(&[!literal, inside]);
            }
        }
    }

    /// An instance is inside a skipped stretch if one of its own block is, or if the instance
    /// around it is.
    fn complete_enclosed(&mut self, runs: &[Run<'_>], run: RunIndex, instance: InstanceId) {
        let scopes = &runs[run].scopes;
        let execution = scopes.execution(instance);
        let (block, position) = (scopes.block(execution), scopes.position(instance));
        let statements = runs[run].flow.blocks()[block].statements.len() as u32;
        let members = scopes.members(execution);
        let is_blocked = |member: &InstanceId| self.tables[run].is_blocked[*member];
        let at = members.partition_point(|&member| scopes.position(member) < position);
        let before = members[..at].iter().rposition(is_blocked);
        let after = members[at..].iter().position(is_blocked).map(|index| at + index);
        let first_min = before.map_or(0, |index| scopes.position(members[index]) + 1);
        let last_max = after.map_or(statements, |index| scopes.position(members[index]));
        let looked_at = after.unwrap_or(members.len()) - before.unwrap_or(0);
        self.budget.spend(looked_at as u64 + u64::from(position - first_min));
        let mut clause = vec![!self.enclosed(run, instance)];
        for first in first_min..=position {
            let last: Vec<u32> =
                self.candidates.last_statements(block, first, (position, last_max)).collect();
            for last in last {
                if !self.budget.spend(1) {
                    return;
                }
                let placement = Placement { block, first, last };
                clause.push(self.stretch(runs, run, execution, placement));
            }
        }
        clause.extend(self.enclosing(run, scopes.parents()[instance]));
        self.solver.add(&clause);
    }

    /// That `instance` is inside a skipped stretch, if that can be.
    fn enclosing(&mut self, run: RunIndex, instance: Option<InstanceId>) -> Option<Lit> {
        let instance = instance.filter(|&instance| !self.tables[run].is_blocked[instance])?;
        Some(self.enclosed(run, instance))
    }

    /// X_e.
    fn node(&mut self, runs: &[Run<'_>], run: RunIndex, node: NodeId) -> Lit {
        let table = &mut self.tables[run];
        if let Some(literal) = table.nodes[node] {
            return literal;
        }
        let literal = self.solver.variable();
        match table.group(node) {
            Some(instance) => {
                let scopes = &runs[run].scopes;
                for &member in &scopes.order()[scopes.range(&[instance])] {
                    if !table.is_live[member] {
                        continue;
                    }
                    table.nodes[member] = Some(literal);
                    self.rest.push(Task::Node(run, member));
                }
            }
            None => {
                table.nodes[node] = Some(literal);
                self.rest.push(Task::Node(run, node));
            }
        }
        literal
    }

    /// That all events of `instance` are irrelevant.
    fn irrelevant(&mut self, run: RunIndex, instance: InstanceId) -> Lit {
        let slot = &mut self.tables[run].irrelevant[instance];
        if slot.is_none() {
            self.rest.push(Task::Irrelevant(run, instance));
        }
        *slot.get_or_insert_with(|| self.solver.variable())
    }

    /// That `instance` is inside a skipped stretch.
    fn enclosed(&mut self, run: RunIndex, instance: InstanceId) -> Lit {
        let slot = &mut self.tables[run].enclosed[instance];
        if slot.is_none() {
            self.rest.push(Task::Enclosed(run, instance));
        }
        *slot.get_or_insert_with(|| self.solver.variable())
    }

    /// X_Es, with (2) and (3).
    fn stretch(
        &mut self,
        runs: &[Run<'_>],
        run: RunIndex,
        execution: ExecutionId,
        placement: Placement,
    ) -> Lit {
        if let Some(&literal) = self.tables[run].stretches.get(&(execution, placement)) {
            return literal;
        }
        self.budget.spend(VARIABLE);
        let literal = self.solver.variable();
        self.tables[run].stretches.insert((execution, placement), literal);
        if !self.own.contains(&placement) {
            let chosen = self.placement(placement);
            self.solver.add(&[!literal, chosen]);
        }
        let scopes = &runs[run].scopes;
        let members = scopes.members_within(execution, placement.first, placement.last);
        if let Some(inside) = self.all_irrelevant(run, members) {
            self.solver.add(&[!literal, inside]);
        }
        literal
    }

    /// That all events of `members`, neighbours in one execution of a block, are irrelevant; none
    /// if they are anyway. Stretches that end alike share what they have in common.
    fn all_irrelevant(&mut self, run: RunIndex, members: &[InstanceId]) -> Option<Lit> {
        let holds_live = &self.tables[run].holds_live;
        let end = members.iter().rposition(|&member| holds_live[member])?;
        let last = members[end];
        let mut literal = None;
        let mut fresh = Vec::new();
        let mut looked_at = members.len() - end;
        for &member in &members[..=end] {
            looked_at += 1;
            literal = self.tables[run].neighbours.get(&(member, last)).copied();
            if literal.is_some() {
                break;
            }
            if holds_live[member] {
                fresh.push(member);
            }
        }
        self.budget.spend(looked_at as u64);
        for member in fresh.into_iter().rev() {
            self.budget.spend(VARIABLE);
            let first = self.irrelevant(run, member);
            let both = match literal {
                None => first,
                Some(others) => {
                    let both = self.solver.variable();
                    self.solver.add(&[!both, first]);
                    self.solver.add(&[!both, others]);
                    both
                }
            };
            self.tables[run].neighbours.insert((member, last), both);
            literal = Some(both);
        }
        literal
    }

    /// X_s.
    fn placement(&mut self, placement: Placement) -> Lit {
        if let Some(&literal) = self.placements.get(&placement) {
            return literal;
        }
        let literal = self.solver.variable();
        self.placements.insert(placement, literal);
        self.fresh_placements.push(literal);
        literal
    }

    /// That `statement` is exempt.
    fn exemption(&mut self, statement: Statement) -> Lit {
        if let Some(&literal) = self.exemptions.get(&statement) {
            return literal;
        }
        let literal = self.solver.variable();
        self.exemptions.insert(statement, literal);
        self.fresh_exemptions.push(literal);
        literal
    }
}

impl Table {
    fn new(
        run: &Run<'_>,
        is_kept: IndexVec<NodeId, bool>,
        is_live: IndexVec<NodeId, bool>,
        grouping: bool,
    ) -> Self {
        let holds_live = run.scopes.holding(&run.events, &is_live);
        let is_blocked = run.scopes.holding(&run.events, &is_kept);
        let instances_count = is_blocked.len();
        let groups = grouping.then(|| {
            // By what is kept, whether it is known or not: else a group might never be irrelevant.
            let holds_kept = run.scopes.holding(&run.events, &forced(run).is_member);
            let outermost = outermost_free(run, &holds_kept);
            let group = |node| run.events.instance(node).and_then(|id| outermost[id]);
            run.events.nodes().map(group).collect()
        });
        Self {
            targets: run.dependences.targets(),
            nodes: IndexVec::from_elem(None, is_kept.len()),
            is_kept,
            is_live,
            holds_live,
            is_blocked,
            groups,
            irrelevant: IndexVec::from_elem(None, instances_count),
            enclosed: IndexVec::from_elem(None, instances_count),
            stretches: FxHashMap::default(),
            neighbours: FxHashMap::default(),
        }
    }

    fn group(&self, node: NodeId) -> Option<InstanceId> {
        self.groups.as_ref().and_then(|groups| groups.get(node).copied().flatten())
    }
}

/// For each instance that is not blocked the outermost one around it that is not.
fn outermost_free(
    run: &Run<'_>,
    is_blocked: &IndexVec<InstanceId, bool>,
) -> IndexVec<InstanceId, Option<InstanceId>> {
    let mut outermost: IndexVec<InstanceId, Option<InstanceId>> =
        IndexVec::from_elem(None, is_blocked.len());
    // A parent has a smaller id than what is inside it.
    for (id, parent) in run.scopes.parents().entries() {
        if !is_blocked[id] {
            outermost[id] = parent.and_then(|parent| outermost[parent]).or(Some(id));
        }
    }
    outermost
}

// Candidates: the placements that can be part of a best specification.
//
// Any neighbouring statements of a block might be enclosed. But a placement is of no use unless
// some execution of it can be skipped as a whole, holding no event that is kept whatever is
// enclosed, and has a branch in it: all that an `if (*)` does is to make branches irrelevant.
//
// Executions of a block that look alike are looked at once. For each first statement the last
// ones are kept as intervals, since a block of n statements may have n²/2 candidates. Linear in
// the run, and for each block its length times the number of ways in which its executions differ;
// that part is counted against the budget.

/// Statements of a block, from the first to before the second.
type Interval = (u32, u32);

/// The placements that may be chosen or are there anyway.
#[derive(Debug, Default)]
struct Candidates {
    /// For each block and first statement the last ones, sorted, with a gap between each two.
    last: FxHashMap<StaticBlockId, Vec<Vec<Interval>>>,
    /// How many can be of use.
    count: usize,
}

/// What a statement did in one execution of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Content {
    /// Nothing that is kept, and no branch.
    Plain,
    /// Nothing that is kept, and a branch.
    Branch,
    /// An event that is kept.
    Kept,
}

impl Candidates {
    /// The placements that can be of use in `runs`, and `own`; for each run `is_blocked` says which
    /// executions of statements hold an event that is kept whatever is enclosed. Some are missing
    /// if the budget runs out.
    pub(crate) fn new<'r, 't: 'r>(
        runs: impl Iterator<Item = (&'r Run<'t>, &'r IndexVec<InstanceId, bool>)>,
        own: &[Placement],
        budget: &mut StepBudget,
    ) -> Self {
        let mut seen: FxHashSet<(StaticBlockId, Vec<(u32, Content)>)> = FxHashSet::default();
        let mut found = Self::default();
        for (run, is_blocked) in runs {
            let branches = branches_before(run);
            for execution in run.scopes.executions() {
                let contents = contents(run, execution, is_blocked, &branches);
                if contents.iter().all(|&(_, content)| content != Content::Branch) {
                    continue;
                }
                let block = run.scopes.block(execution);
                if seen.insert((block, contents.clone())) {
                    let statements_count = run.flow.blocks()[block].statements.len() as u32;
                    found.add_stretches(block, &contents, statements_count, budget);
                }
            }
        }
        let intervals = found.last.values().flatten().flatten();
        found.count = intervals.map(|&(start, end)| (end - start) as usize).sum();
        for placement in own {
            found.insert(placement.block, placement.first, (placement.last, placement.last + 1));
        }
        found
    }

    /// The last statements, of those from `last.0` to before `last.1`, of the placements in `block`
    /// that start at `first`.
    fn last_statements(
        &self,
        block: StaticBlockId,
        first: u32,
        last: Interval,
    ) -> impl Iterator<Item = u32> {
        let of_block = self.last.get(&block).and_then(|starts| starts.get(first as usize));
        let intervals = of_block.map_or(&[][..], |intervals| intervals.as_slice());
        let from = intervals.partition_point(|&(_, end)| end <= last.0);
        let intervals = intervals[from..].iter().take_while(move |&&(start, _)| start < last.1);
        intervals.flat_map(move |&(start, end)| start.max(last.0)..end.min(last.1))
    }

    /// Adds the placements that stay between statements whose events are kept and enclose a branch.
    fn add_stretches(
        &mut self,
        block: StaticBlockId,
        contents: &[(u32, Content)],
        statements_count: u32,
        budget: &mut StepBudget,
    ) {
        let positions = |wanted: Content| -> Vec<u32> {
            let matching = contents.iter().filter(|&&(_, content)| content == wanted);
            matching.map(|&(position, _)| position).collect()
        };
        let (kept, branches) = (positions(Content::Kept), positions(Content::Branch));
        let at_least = |positions: &[u32], least: u32| {
            positions.get(positions.partition_point(|&position| position < least)).copied()
        };
        for first in 0..statements_count {
            let Some(branch) = at_least(&branches, first) else { break };
            if !budget.spend(1) {
                return;
            }
            let end = at_least(&kept, first).unwrap_or(statements_count);
            if branch < end {
                self.insert(block, first, (branch, end));
            }
        }
    }

    /// Adds the placements that start at `first` and end in `last`.
    fn insert(&mut self, block: StaticBlockId, first: u32, last: Interval) {
        let starts = self.last.entry(block).or_default();
        if starts.len() <= first as usize {
            starts.resize(first as usize + 1, Vec::new());
        }
        let intervals = &mut starts[first as usize];
        // Those that it touches become one with it.
        let from = intervals.partition_point(|&(_, end)| end < last.0);
        let to = intervals.partition_point(|&(start, _)| start <= last.1);
        let touched = &intervals[from..to];
        let start = touched.first().map_or(last.0, |&(start, _)| start.min(last.0));
        let end = touched.last().map_or(last.1, |&(_, end)| end.max(last.1));
        intervals.splice(from..to, [(start, end)]);
    }
}

/// How many branches come before each place in the order of the run's scopes.
fn branches_before(run: &Run<'_>) -> Vec<u32> {
    let mut count = 0;
    let mut counts = Vec::with_capacity(run.scopes.order().len() + 1);
    counts.push(0);
    for &node in run.scopes.order() {
        count += u32::from(run.events.is_branch(node));
        counts.push(count);
    }
    counts
}

fn contents(
    run: &Run<'_>,
    execution: ExecutionId,
    is_blocked: &IndexVec<InstanceId, bool>,
    branches: &[u32],
) -> Vec<(u32, Content)> {
    let content = |&member: &InstanceId| {
        let range = run.scopes.range(&[member]);
        let content = if is_blocked[member] {
            Content::Kept
        } else if branches[range.end] > branches[range.start] {
            Content::Branch
        } else {
            Content::Plain
        };
        (run.scopes.position(member), content)
    };
    run.scopes.members(execution).iter().map(content).collect()
}

// The budget of the encoding: how much may be written down for the solver.
//
// A block of n statements has n²/2 placements, an execution of it as many stretches, and the
// clauses that say which of them enclose each statement have n³/6 literals in all. The blocks of
// programs are short, but those of a trace may be of any length. So each step that is not linear
// in the run is counted, and there is a limit: it bounds both time and memory.

/// What a variable costs, in steps. With its clauses, soft literal and table entries it takes some
/// hundred times the memory of a literal.
const VARIABLE: u64 = 100;

/// How many steps are left.
#[derive(Clone, Copy, Debug)]
struct StepBudget {
    left: Option<u64>,
}

impl StepBudget {
    /// A budget of at most `steps_max` steps.
    pub(crate) const fn new(steps_max: u64) -> Self {
        Self { left: Some(steps_max) }
    }

    /// Takes so many steps; false if there are not as many left, now and from then on.
    fn spend(&mut self, steps: u64) -> bool {
        self.left = self.left.and_then(|left| left.checked_sub(steps));
        self.left.is_some()
    }

    /// Whether more steps were asked for than there were.
    const fn is_exhausted(self) -> bool {
        self.left.is_none()
    }
}

#[cfg(test)]
mod candidates_tests {
    use reweave_base::Rng;

    use super::*;

    /// Intervals hold what was put into them, one last statement at a time.
    #[test]
    fn intervals_are_the_sets_of_their_members() {
        let block = StaticBlockId::from_number(1).expect("1 is a number");
        let mut rng = Rng::new(1);
        for _ in 0..500 {
            let mut candidates = Candidates::default();
            let mut expected = [false; 16];
            for _ in 0..rng.below(6) {
                let start = rng.below(15);
                let end = start + 1 + rng.below(15 - start);
                expected[start..end].fill(true);
                candidates.insert(block, 3, (start as u32, end as u32));
            }
            let (from, to) = (rng.below(16) as u32, rng.below(17) as u32);
            let found: Vec<u32> = candidates.last_statements(block, 3, (from, to)).collect();
            let is_expected = |&last: &u32| expected[last as usize];
            assert_eq!(found, (from..to).filter(is_expected).collect::<Vec<u32>>());
            assert_eq!(candidates.last_statements(block, 2, (0, 16)).count(), 0);
        }
    }
}
