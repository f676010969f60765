//! The search for the best placements, by a solver and counterexamples.
//!
//! The solver proposes placements. Whether they do is decided without it: the events that are
//! relevant with them (a linear fixpoint, and the smallest set that any solution of the clauses
//! can have) either conflict in a cycle or not. If they do, the cycles found become clauses, each
//! of which the proposal breaks, and the solver is asked again. So of all the cycles of a run only
//! those become clauses that distinguish placements, and a run of a million events with thousands
//! of cycles of the same few kinds needs some tens of them.
//!
//! From one proposal as many cycles are taken as differ in the statements they go through, and of
//! each kind a number that doubles with each round, so that there are few rounds even where many
//! clauses of one kind are needed.
//!
//! The criteria are minimised one after the other, each under the condition that those before it
//! keep their least value. That condition is a set of assumptions, not clauses, so that placements
//! can be rejected afterwards.

use std::collections::BTreeMap;

use reweave_base::{FxHashMap, FxHashSet, IndexVec};
use reweave_solver::{Encode, Lit, Outcome, Solver, Totalizer};

use crate::check::Explanation;
use crate::conflict::{Conflicts, Edge};
use crate::encode::{Encoding, Statement};
use crate::events::NodeId;
use crate::infer::{Settings, Statistics};
use crate::placement::{Placement, overlap};
use crate::relevant::{Regions, relevant};
use crate::run::Run;

/// How many cycles of more than two threads are looked for in one proposal, beyond the one that
/// there must be for each group of threads.
const LONG_CYCLES_MAX: usize = 64;

/// The search for the best placements.
#[derive(Debug)]
pub(crate) struct Search<'t> {
    runs: Vec<Run<'t>>,
    /// The events of each that are relevant if nothing more is enclosed.
    live: Vec<IndexVec<NodeId, bool>>,
    /// For each event its statement.
    statements: Vec<IndexVec<NodeId, Option<Statement>>>,
    own: Vec<Placement>,
    proof: Option<Explanation>,
    encoding: Encoding,
    /// Fewest placements. It lives as long as the search: its lower bound only grows.
    number: Objective,
    /// Fewest exempt statements.
    exemptions: Objective,
    /// How many cycles of one kind are taken from one proposal.
    quota: u32,
    cover: bool,
    /// Proposals that were found good.
    passed: FxHashSet<Proposal>,
    rounds_left: u64,
    rounds: u64,
    cycles: u64,
    cores: u64,
}

/// What a search ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The best placements.
    Best(Vec<Placement>),
    /// There are none.
    None,
    /// The budget ran out.
    Exhausted { lower_bound: u64, found: Option<Vec<Placement>> },
}

/// What the solver proposes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Proposal {
    /// Sorted by their place in the source.
    placements: Vec<Placement>,
    /// The statements whose events may be irrelevant without being enclosed; none if all may.
    exempt: Option<Vec<Statement>>,
}

/// Why the solver proposes nothing.
enum Failure {
    Refuted(Vec<Lit>),
    Exhausted,
}

impl<'t> Search<'t> {
    /// A search among the placements for `runs`, of which the events `known` are kept whatever is
    /// enclosed; `own` are there anyway. `proof` says why there are no such placements, if so.
    pub(crate) fn new(
        runs: Vec<Run<'t>>,
        known: Vec<IndexVec<NodeId, bool>>,
        own: Vec<Placement>,
        proof: Option<Explanation>,
        settings: &Settings,
    ) -> Self {
        let live: Vec<IndexVec<NodeId, bool>> = runs
            .iter()
            .map(|run| {
                let regions = Regions::new(run, &own, |node| run.events.is_branch(node));
                relevant(run, &regions).is_member
            })
            .collect();
        let encoding = Encoding::new(&runs, known, &live, &own, settings);
        let statement_of = |run: &Run<'t>, node| {
            let execution_of = |id| run.scopes.block(run.scopes.execution(id));
            run.events.instance(node).map(|id| (execution_of(id), run.scopes.position(id)))
        };
        let statements = runs
            .iter()
            .map(|run| run.events.nodes().map(|node| statement_of(run, node)).collect())
            .collect();
        Self {
            runs,
            live,
            statements,
            own,
            proof,
            encoding,
            number: Objective::default(),
            exemptions: Objective::default(),
            quota: 1,
            cover: settings.cover,
            passed: FxHashSet::default(),
            rounds_left: settings.rounds_max,
            rounds: 0,
            cycles: 0,
            cores: 0,
        }
    }

    /// Why there are no placements, if it is not for what was rejected.
    pub(crate) fn impossible(&self) -> Option<Explanation> {
        self.proof.clone()
    }

    /// Adds up what the search took so far.
    pub(crate) fn count(&self, statistics: &mut Statistics) {
        statistics.candidates = self.encoding.candidates_count();
        statistics.variables = self.encoding.solver.variables_count();
        statistics.clauses = self.encoding.solver.clauses_count();
        statistics.cycles = self.cycles;
        statistics.rounds = self.rounds;
        statistics.cores = self.cores + self.number.cores() + self.exemptions.cores();
    }

    /// Says that `placements` are wrong, and so is every set that contains them.
    pub(crate) fn reject(&mut self, placements: &[Placement]) {
        self.encoding.add_rejection(placements);
        self.add_new_soft(false);
    }

    /// The best placements that are not rejected.
    pub(crate) fn run(&mut self) -> Found {
        let first = match self.least_number() {
            Ok(proposal) => proposal,
            Err(Failure::Refuted(_)) => return Found::None,
            Err(Failure::Exhausted) => return self.exhausted(None),
        };
        match self.best() {
            Ok(placements) => Found::Best(placements),
            // Only with grouping: the clauses ask for more than the first specification needs.
            Err(Failure::Refuted(_)) => Found::Best(first.placements),
            Err(Failure::Exhausted) => self.exhausted(Some(first.placements)),
        }
    }

    fn exhausted(&self, found: Option<Vec<Placement>>) -> Found {
        Found::Exhausted { lower_bound: self.number.lower_bound(), found }
    }

    /// The first criterion.
    fn least_number(&mut self) -> Result<Proposal, Failure> {
        loop {
            let assumptions: Vec<Lit> = self.number.assumptions().collect();
            match self.propose(&assumptions, false) {
                Err(Failure::Refuted(core))
                    if self.number.relax(&core, &mut self.encoding.solver) => {}
                other => return other,
            }
        }
    }

    /// The other criteria; the first has its least value.
    fn best(&mut self) -> Result<Vec<Placement>, Failure> {
        if self.cover {
            self.least_exemptions()?;
        }
        let mut width = Objective::default();
        for (placement, &chosen) in &self.encoding.placements {
            if !self.number.assumes(!chosen) {
                width.add_soft(!chosen, u64::from(placement.width()));
            }
        }
        let proposal = loop {
            let mut conditions = self.conditions();
            conditions.extend(width.assumptions());
            match self.propose(&conditions, self.cover) {
                Err(Failure::Refuted(core)) if width.relax(&core, &mut self.encoding.solver) => {}
                other => break other?,
            }
        };
        self.cores += width.cores();
        self.earliest(proposal, &width)
    }

    /// The second criterion.
    fn least_exemptions(&mut self) -> Result<(), Failure> {
        self.encoding.cover(&self.runs);
        self.cores += std::mem::take(&mut self.exemptions).cores();
        self.add_new_soft(true);
        for &exempt in self.encoding.exemptions.values() {
            self.exemptions.add_soft(!exempt, 1);
        }
        loop {
            let conditions = self.conditions();
            match self.propose(&conditions, true) {
                Err(Failure::Refuted(core))
                    if self.exemptions.relax(&core, &mut self.encoding.solver) => {}
                other => return other.map(|_| ()),
            }
        }
    }

    /// The fourth criterion: one placement after the other is moved to the front as far as it
    /// goes, those before it staying where they are.
    fn earliest(
        &mut self,
        mut proposal: Proposal,
        width: &Objective,
    ) -> Result<Vec<Placement>, Failure> {
        let mut conditions = self.conditions();
        conditions.extend(width.assumptions());
        let mut settled = 0;
        let mut may_differ = true;
        while let Some(&next) = proposal.placements.get(settled) {
            if may_differ {
                // Often there is no other, and all is settled at once.
                let chosen: Vec<Lit> = self.variables(&proposal.placements[settled..]);
                let others: Vec<Lit> = chosen.iter().map(|&chosen| !chosen).collect();
                if self.propose_one_of(&others, &conditions)?.is_none() {
                    break;
                }
                may_differ = false;
            }
            let previous = settled.checked_sub(1).map(|index| proposal.placements[index]);
            let earlier = self.between(previous, next);
            match self.propose_one_of(&earlier, &conditions)? {
                Some(better) => {
                    proposal = better;
                    may_differ = true;
                }
                None => {
                    conditions.extend(self.variables(&[next]));
                    settled += 1;
                }
            }
        }
        Ok(proposal.placements)
    }

    fn variables(&self, placements: &[Placement]) -> Vec<Lit> {
        let variable = |placement| self.encoding.placements.get(placement).copied();
        placements.iter().filter_map(variable).collect()
    }

    /// A good proposal in which one of `literals` holds besides the `conditions`, if there is one.
    fn propose_one_of(
        &mut self,
        literals: &[Lit],
        conditions: &[Lit],
    ) -> Result<Option<Proposal>, Failure> {
        let excluded: FxHashSet<Lit> = conditions.iter().map(|&condition| !condition).collect();
        let selector = self.encoding.solver.variable();
        let mut clause = vec![!selector];
        clause.extend(literals.iter().filter(|literal| !excluded.contains(literal)));
        if clause.len() == 1 {
            return Ok(None);
        }
        self.encoding.solver.add(&clause);
        let mut assumptions = conditions.to_vec();
        assumptions.push(selector);
        match self.propose(&assumptions, self.cover) {
            Ok(proposal) => Ok(Some(proposal)),
            Err(Failure::Refuted(_)) => Ok(None),
            Err(exhausted) => Err(exhausted),
        }
    }

    /// The variables of the placements that stand after `previous` and before `next`.
    fn between(&self, previous: Option<Placement>, next: Placement) -> Vec<Lit> {
        let blocks = self.runs[0].flow.blocks();
        let after = previous.map(|previous| previous.order(blocks));
        let before = next.order(blocks);
        let stands_between = |placement: Placement| {
            let order = placement.order(blocks);
            after.is_none_or(|after| after < order) && order < before
        };
        let all = self.encoding.placements.iter();
        all.filter(|&(&placement, _)| stands_between(placement))
            .map(|(_, &chosen)| chosen)
            .collect()
    }

    /// That the first two criteria keep their least value.
    fn conditions(&self) -> Vec<Lit> {
        self.number.assumptions().chain(self.exemptions.assumptions()).collect()
    }

    /// A proposal under `assumptions` that is good for all runs.
    fn propose(&mut self, assumptions: &[Lit], covers: bool) -> Result<Proposal, Failure> {
        let mut assumptions = assumptions.to_vec();
        loop {
            if self.rounds_left == 0 || self.encoding.is_exhausted() {
                return Err(Failure::Exhausted);
            }
            match self.encoding.solver.solve(&assumptions) {
                Outcome::Satisfied => {}
                Outcome::Refuted(core) => return Err(Failure::Refuted(core)),
                Outcome::Exhausted => return Err(Failure::Exhausted),
            }
            let proposal = self.proposal(covers);
            // Clauses are only ever added, so what passed once still does.
            if self.passed.contains(&proposal) {
                return Ok(proposal);
            }
            self.rounds += 1;
            self.rounds_left -= 1;
            if !self.refute(&proposal) {
                self.passed.insert(proposal.clone());
                return Ok(proposal);
            }
            // What is new is not part of the best there is so far, and need not be: the clauses
            // before it can only be met by what was there before it.
            assumptions.extend(self.add_new_soft(covers));
        }
    }

    /// Soft literals against the placements that are new, and against the exemptions if they count now.
    fn add_new_soft(&mut self, covers: bool) -> Vec<Lit> {
        let mut soft = Vec::new();
        for chosen in self.encoding.take_fresh_placements() {
            self.number.add_soft(!chosen, 1);
            soft.push(!chosen);
        }
        let exempt = if covers { self.encoding.take_fresh_exemptions() } else { Vec::new() };
        for exempt in exempt {
            self.exemptions.add_soft(!exempt, 1);
            soft.push(!exempt);
        }
        soft
    }

    /// What the solver's model says.
    fn proposal(&self, covers: bool) -> Proposal {
        let blocks = self.runs[0].flow.blocks();
        let chosen = self.encoding.placements.iter();
        let chosen = chosen.filter(|&(_, &literal)| self.encoding.solver.holds(literal));
        let mut placements: Vec<Placement> = chosen.map(|(&placement, _)| placement).collect();
        placements.sort_unstable_by_key(|placement| placement.order(blocks));
        let exempt = covers.then(|| {
            let exempt = self.encoding.exemptions.iter();
            let exempt = exempt.filter(|&(_, &literal)| self.encoding.solver.holds(literal));
            exempt.map(|(&statement, _)| statement).collect()
        });
        Proposal { placements, exempt }
    }

    /// Adds clauses that `proposal` breaks, if it is not good for all runs.
    fn refute(&mut self, proposal: &Proposal) -> bool {
        if let Some((left, right)) = overlap(&proposal.placements) {
            self.encoding.add_overlap(left, right);
            return true;
        }
        let mut all = self.own.clone();
        all.extend_from_slice(&proposal.placements);
        let mut is_refuted = false;
        for index in 0..self.runs.len() {
            let conflicts = self.conflicts(index, &all, proposal.exempt.as_deref());
            if !conflicts.is_serializable() {
                is_refuted = true;
                self.add_cycles(index, &conflicts);
            }
        }
        if is_refuted {
            self.quota = self.quota.saturating_mul(2);
        }
        is_refuted
    }

    /// The conflicts of run number `index` that are left with `placements`, if what they make
    /// irrelevant has to be enclosed, but for the events of `exempt` statements.
    fn conflicts(
        &self,
        index: usize,
        placements: &[Placement],
        exempt: Option<&[Statement]>,
    ) -> Conflicts {
        let run = &self.runs[index];
        let exempt: Option<FxHashSet<Statement>> =
            exempt.map(|exempt| exempt.iter().copied().collect());
        let (statements, is_live) = (&self.statements[index], &self.live[index]);
        let is_bound = |node| {
            run.events.is_branch(node)
                || is_live[node]
                    && exempt.as_ref().is_some_and(|exempt| {
                        statements[node].is_some_and(|statement| !exempt.contains(&statement))
                    })
        };
        let relevance = relevant(run, &Regions::new(run, placements, is_bound));
        Conflicts::new(run, &relevance.is_member)
    }

    /// Adds clauses for cycles of `conflicts`, those of run number `index`.
    fn add_cycles(&mut self, index: usize, conflicts: &Conflicts) {
        let encoding = &self.encoding;
        let is_open = |node: NodeId| !encoding.is_kept(index, node);
        let cost = |edge: &Edge| u32::from(is_open(edge.earlier)) + u32::from(is_open(edge.later));
        let statements = &self.statements[index];
        let mut kinds: FxHashMap<Vec<Option<Statement>>, u32> = FxHashMap::default();
        let mut seen: FxHashSet<Vec<NodeId>> = FxHashSet::default();
        let mut clauses: Vec<Vec<NodeId>> = Vec::new();
        conflicts.visit_cycles(LONG_CYCLES_MAX, cost, |cycle| {
            let nodes = cycle.iter().flat_map(|edge| [edge.earlier, edge.later]);
            let mut nodes: Vec<NodeId> = nodes.filter(|&node| is_open(node)).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let mut kind: Vec<_> = nodes.iter().map(|&node| statements[node]).collect();
            kind.sort_unstable();
            let count = kinds.entry(kind).or_default();
            if *count < self.quota && seen.insert(nodes.clone()) {
                *count += 1;
                clauses.push(nodes);
            }
        });
        self.cycles += clauses.len() as u64;
        for clause in clauses {
            self.encoding.add_cycle(&self.runs, index, &clause);
        }
    }
}

// The objective: violate soft literals of the least total weight (MaxSAT).
//
// Core-guided (OLL): all soft literals are assumed. If the solver refutes some of them together, at
// least one must be violated: the lower bound grows, and instead of that core it is assumed that no
// more than one of it is violated, by the outputs of a totalizer, which become soft literals
// themselves. When the assumptions hold, they say exactly "the cost is the lower bound", so they can
// be kept as conditions while another objective is minimised.
//
// Clauses and soft literals may be added at any time: the lower bound stays one.
//
// Morgado, Dodaro, Marques-Silva: "Core-guided MaxSAT with soft cardinality constraints" (CP
// 2014).

reweave_base::id! {
    /// A sum of violated soft literals.
    struct SumId;
}

/// A weighted sum to be made least.
#[derive(Debug, Default)]
struct Objective {
    soft: BTreeMap<Lit, SoftLiteral>,
    sums: IndexVec<SumId, Totalizer>,
    lower_bound: u64,
    cores: u64,
}

#[derive(Clone, Copy, Debug)]
struct SoftLiteral {
    weight: u64,
    /// The sum that it bounds, and by how much.
    sum: Option<(SumId, usize)>,
}

impl Objective {
    /// Adds the soft literal `literal`; violating it costs `weight`.
    fn add_soft(&mut self, literal: Lit, weight: u64) {
        self.soft.insert(literal, SoftLiteral { weight, sum: None });
    }

    /// What is to be assumed now.
    fn assumptions(&self) -> impl Iterator<Item = Lit> {
        self.soft.keys().copied()
    }

    /// Whether `literal` is to be assumed now.
    fn assumes(&self, literal: Lit) -> bool {
        self.soft.contains_key(&literal)
    }

    /// What has to be paid at least; exactly, once the assumptions hold.
    const fn lower_bound(&self) -> u64 {
        self.lower_bound
    }

    /// How many refutations it took.
    const fn cores(&self) -> u64 {
        self.cores
    }

    /// Takes in that not all of `core` hold together. False if none of them is soft: then
    /// nothing that could be paid helps.
    fn relax(&mut self, core: &[Lit], solver: &mut Solver) -> bool {
        let own: Vec<Lit> = core.iter().copied().filter(|&literal| self.assumes(literal)).collect();
        let Some(weight) = own.iter().map(|literal| self.soft[literal].weight).min() else {
            return false;
        };
        self.cores += 1;
        self.lower_bound += weight;
        for &literal in &own {
            let soft = self.soft[&literal];
            if soft.weight == weight {
                self.soft.remove(&literal);
            } else {
                self.soft.insert(literal, SoftLiteral { weight: soft.weight - weight, ..soft });
            }
            if let Some((sum, bound)) = soft.sum {
                self.bound(sum, bound + 1, weight, solver);
            }
        }
        if own.len() > 1 {
            let broken: Totalizer = own.iter().map(|&literal| !literal).collect();
            let sum = self.sums.push(broken);
            self.bound(sum, 1, weight, solver);
        }
        true
    }

    /// Adds the soft literal that `sum` is at most `bound`.
    fn bound(&mut self, sum: SumId, bound: usize, weight: u64, solver: &mut Solver) {
        if bound >= self.sums[sum].n_lits() {
            return;
        }
        let Some(literal) = solver.at_most(&mut self.sums[sum], bound) else { return };
        let soft = self.soft.entry(literal).or_insert(SoftLiteral { weight: 0, sum: None });
        soft.weight += weight;
        soft.sum = Some((sum, bound));
    }
}

#[cfg(test)]
mod objective_tests {
    use reweave_base::Rng;

    use super::*;
    use reweave_solver::Outcome;

    /// The least cost by trying every assignment.
    fn brute_force(count: u32, clauses: &[Vec<(u32, bool)>], weights: &[u64]) -> Option<u64> {
        let holds = |bits: u32, clause: &Vec<(u32, bool)>| {
            clause.iter().any(|&(variable, sign)| (bits >> variable & 1 == 1) == sign)
        };
        let models =
            (0..1 << count).filter(|&bits| clauses.iter().all(|clause| holds(bits, clause)));
        let cost = |bits: u32| {
            (0..count).filter(|at| bits >> at & 1 == 1).map(|at| weights[at as usize]).sum::<u64>()
        };
        models.map(cost).min()
    }

    #[test]
    fn the_least_cost_is_that_of_the_best_assignment() {
        let mut rng = Rng::new(7);
        for _ in 0..300 {
            let count = 2 + rng.below(7) as u32;
            let weights: Vec<u64> = (0..count).map(|_| 1 + rng.below(3) as u64).collect();
            let clauses: Vec<Vec<(u32, bool)>> = (0..2 + rng.below(12))
                .map(|_| {
                    let length = 1 + rng.below(3);
                    (0..length)
                        .map(|_| (rng.below(count as usize) as u32, rng.chance(70)))
                        .collect()
                })
                .collect();
            let mut solver = Solver::new(u64::MAX);
            let variables: Vec<Lit> = (0..count).map(|_| solver.variable()).collect();
            let mut objective = Objective::default();
            for (&variable, &weight) in variables.iter().zip(&weights) {
                objective.add_soft(!variable, weight);
            }
            for clause in &clauses {
                let literal = |&(at, sign): &(u32, bool)| {
                    if sign { variables[at as usize] } else { !variables[at as usize] }
                };
                solver.add(&clause.iter().map(literal).collect::<Vec<_>>());
            }
            let found = loop {
                let assumptions: Vec<Lit> = objective.assumptions().collect();
                match solver.solve(&assumptions) {
                    Outcome::Satisfied => break Some(objective.lower_bound()),
                    Outcome::Refuted(core) => {
                        if !objective.relax(&core, &mut solver) {
                            break None;
                        }
                    }
                    Outcome::Exhausted => unreachable!("there is no budget"),
                }
            };
            assert_eq!(found, brute_force(count, &clauses, &weights), "{clauses:?}");
        }
    }
}
