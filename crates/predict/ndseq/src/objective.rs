//! An objective: a weighted number of wishes to break as few of as possible.
//!
//! Core-guided (OLL): all wishes are assumed. If the solver refutes some of them together, at least
//! one must be broken: the lower bound grows, and instead of those wishes it is assumed that no
//! more than one of them is broken, by the outputs of a totalizer, which become wishes themselves.
//! When the assumptions hold, they say exactly "the cost is the lower bound", so they can be kept
//! as conditions while another objective is looked at.
//!
//! Clauses and wishes may be added at any time: the lower bound stays one.
//!
//! Morgado, Dodaro, Marques-Silva: "Core-guided MaxSAT with soft cardinality constraints" (CP
//! 2014).

use std::collections::BTreeMap;

use reweave_base::IndexVec;
use reweave_solver::{Encode, Lit, Solver, Totalizer};

reweave_base::id! {
    /// A sum of broken wishes.
    struct SumId;
}

/// A weighted sum to be made least.
#[derive(Debug, Default)]
pub(crate) struct Objective {
    wishes: BTreeMap<Lit, Wish>,
    sums: IndexVec<SumId, Totalizer>,
    lower_bound: u64,
    cores: u64,
}

#[derive(Clone, Copy, Debug)]
struct Wish {
    weight: u64,
    /// The sum that it bounds, and by how much.
    sum: Option<(SumId, usize)>,
}

impl Objective {
    /// Wishes that `literal` holds; breaking it costs `weight`.
    pub(crate) fn wish(&mut self, literal: Lit, weight: u64) {
        self.wishes.insert(literal, Wish { weight, sum: None });
    }

    /// What is to be assumed now.
    pub(crate) fn assumptions(&self) -> impl Iterator<Item = Lit> {
        self.wishes.keys().copied()
    }

    /// Whether `literal` is to be assumed now.
    pub(crate) fn assumes(&self, literal: Lit) -> bool {
        self.wishes.contains_key(&literal)
    }

    /// What has to be paid at least; exactly, once the assumptions hold.
    pub(crate) const fn lower_bound(&self) -> u64 {
        self.lower_bound
    }

    /// How many refutations it took.
    pub(crate) const fn cores(&self) -> u64 {
        self.cores
    }

    /// Takes in that not all of `core` hold together. False if none of them is a wish: then
    /// nothing that could be paid helps.
    pub(crate) fn relax(&mut self, core: &[Lit], solver: &mut Solver) -> bool {
        let own: Vec<Lit> = core.iter().copied().filter(|&literal| self.assumes(literal)).collect();
        let Some(weight) = own.iter().map(|literal| self.wishes[literal].weight).min() else {
            return false;
        };
        self.cores += 1;
        self.lower_bound += weight;
        for &literal in &own {
            let wish = self.wishes[&literal];
            if wish.weight == weight {
                self.wishes.remove(&literal);
            } else {
                self.wishes.insert(literal, Wish { weight: wish.weight - weight, ..wish });
            }
            if let Some((sum, bound)) = wish.sum {
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

    /// Wishes that `sum` is at most `bound`.
    fn bound(&mut self, sum: SumId, bound: usize, weight: u64, solver: &mut Solver) {
        if bound >= self.sums[sum].n_lits() {
            return;
        }
        let Some(literal) = solver.at_most(&mut self.sums[sum], bound) else { return };
        let wish = self.wishes.entry(literal).or_insert(Wish { weight: 0, sum: None });
        wish.weight += weight;
        wish.sum = Some((sum, bound));
    }
}

#[cfg(test)]
mod tests {
    use reweave_base::Rng;

    use super::*;
    use reweave_solver::{Engine, Outcome};

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
            let mut solver = Solver::new(Engine::default(), u64::MAX);
            let variables: Vec<Lit> = (0..count).map(|_| solver.variable()).collect();
            let mut objective = Objective::default();
            for (&variable, &weight) in variables.iter().zip(&weights) {
                objective.wish(!variable, weight);
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
