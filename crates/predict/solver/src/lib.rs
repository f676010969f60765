//! The solver: clauses in, models and cores out, with a budget.
//!
//! What analyses need of an incremental satisfiability solver, and no more. The default is
//! batsat, in Rust; with the feature `cadical` there is CaDiCaL besides. Both are deterministic.
//!
//! ```
//! use reweave_solver::{Engine, Outcome, Solver};
//!
//! let mut solver = Solver::new(Engine::default(), 1_000);
//! let (a, b) = (solver.variable(), solver.variable());
//! solver.add(&[a, b]);
//! solver.add(&[!a]);
//! assert_eq!(solver.solve(&[]), Outcome::Satisfied);
//! assert!(solver.holds(b));
//! assert_eq!(solver.solve(&[!b]), Outcome::Refuted(vec![!b]));
//! ```

use batsat::Callbacks;
use rustsat::encodings::card::{BoundUpper, BoundUpperIncremental};
use rustsat::instances::{BasicVarManager, Cnf, ManageVars};
use rustsat::solvers::{Solve, SolveIncremental, SolverResult};
use rustsat::types::{Clause, TernaryVal, Var};

pub use rustsat::encodings::card::{Encode, Totalizer};
pub use rustsat::types::Lit;

/// Which solver to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Batsat, written in Rust.
    #[default]
    Batsat,
    /// CaDiCaL, written in C++.
    #[cfg(feature = "cadical")]
    Cadical,
}

/// What a call of the solver ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All clauses and assumptions hold in the model that can be asked for now.
    Satisfied,
    /// These assumptions cannot all hold.
    Refuted(Vec<Lit>),
    /// The budget ran out.
    Exhausted,
}

/// A solver with its clauses.
pub struct Solver {
    backend: Backend,
    variables_count: u32,
    clauses_count: u64,
    conflicts_count: u64,
    conflicts_left: u64,
}

enum Backend {
    // Both are large; a solver exists once.
    Batsat(Box<rustsat_batsat::Solver<Budget>>),
    #[cfg(feature = "cadical")]
    Cadical(Box<rustsat_cadical::CaDiCaL<'static, 'static>>),
}

/// Stops batsat when it has learnt as many clauses as there may be conflicts.
#[derive(Default)]
struct Budget {
    conflicts: u64,
    conflicts_max: u64,
}

impl Callbacks for Budget {
    fn on_new_clause(&mut self, _: &[batsat::Lit], source: batsat::ClauseKind) {
        self.conflicts += u64::from(matches!(source, batsat::ClauseKind::Learnt));
    }

    fn stop(&self) -> bool {
        self.conflicts >= self.conflicts_max
    }
}

impl Solver {
    /// A solver without clauses that may meet `conflicts_max` conflicts in all.
    pub fn new(engine: Engine, conflicts_max: u64) -> Self {
        let backend = match engine {
            Engine::Batsat => Backend::Batsat(Box::default()),
            #[cfg(feature = "cadical")]
            Engine::Cadical => Backend::Cadical(Box::default()),
        };
        Self {
            backend,
            variables_count: 0,
            clauses_count: 0,
            conflicts_count: 0,
            conflicts_left: conflicts_max,
        }
    }

    /// A new variable, as the literal that says that it is true.
    pub fn variable(&mut self) -> Lit {
        self.variables_count += 1;
        Var::new(self.variables_count - 1).pos_lit()
    }

    /// Demands that one of `literals` holds.
    pub fn add(&mut self, literals: &[Lit]) {
        self.clauses_count += 1;
        let clause: Clause = literals.iter().copied().collect();
        let added = match &mut self.backend {
            Backend::Batsat(solver) => solver.add_clause(clause),
            #[cfg(feature = "cadical")]
            Backend::Cadical(solver) => solver.add_clause(clause),
        };
        added.expect("a clause can be added in every state of the solver");
    }

    /// Looks for a model of all clauses in which the `assumptions` hold.
    pub fn solve(&mut self, assumptions: &[Lit]) -> Outcome {
        let last = Var::new(self.variables_count.saturating_sub(1));
        let budget = self.conflicts_left;
        let (result, spent) = match &mut self.backend {
            Backend::Batsat(solver) => {
                solver.reserve(last).expect("batsat makes variables as they come");
                let callbacks = solver.batsat_mut().cb_mut();
                *callbacks = Budget { conflicts: 0, conflicts_max: budget };
                let result = solver.solve_assumps(assumptions).ok();
                (result, solver.batsat_mut().cb_mut().conflicts)
            }
            #[cfg(feature = "cadical")]
            Backend::Cadical(solver) => solve_cadical(solver, last, assumptions, budget),
        };
        self.conflicts_count = self.conflicts_count.saturating_add(spent);
        self.conflicts_left = budget.saturating_sub(spent);
        match result.expect("the solver is in no state that forbids solving") {
            SolverResult::Sat => Outcome::Satisfied,
            SolverResult::Unsat => Outcome::Refuted(self.core(assumptions)),
            SolverResult::Interrupted => {
                self.conflicts_left = 0;
                Outcome::Exhausted
            }
        }
    }

    fn core(&mut self, assumptions: &[Lit]) -> Vec<Lit> {
        let core = match &mut self.backend {
            Backend::Batsat(solver) => solver.core(),
            #[cfg(feature = "cadical")]
            Backend::Cadical(solver) => solver.core(),
        };
        let mut core = core.expect("the last answer was a refutation");
        // The clause that was derived has the assumptions negated.
        for literal in &mut core {
            *literal = !*literal;
        }
        core.sort_unstable();
        debug_assert!(core.iter().all(|literal| assumptions.contains(literal)));
        core
    }

    /// Whether `literal` holds in the model that was found last.
    pub fn holds(&self, literal: Lit) -> bool {
        let value = match &self.backend {
            Backend::Batsat(solver) => solver.lit_val(literal),
            #[cfg(feature = "cadical")]
            Backend::Cadical(solver) => solver.lit_val(literal),
        };
        value.expect("the last answer was a model") == TernaryVal::True
    }

    /// Demands that `total`, a sum of literals, can be bounded by `bound`, and gives the literal
    /// that does so.
    pub fn at_most(&mut self, total: &mut Totalizer, bound: usize) -> Option<Lit> {
        let mut variables = BasicVarManager::from_next_free(Var::new(self.variables_count));
        let mut clauses = Cnf::new();
        let encoded = total.encode_ub_change(bound..=bound, &mut clauses, &mut variables);
        encoded.expect("the sum fits into memory");
        self.variables_count = variables.n_used();
        for clause in clauses {
            self.add(clause.as_ref());
        }
        let literals = total.enforce_ub(bound).expect("the bound was encoded just now");
        literals.first().copied()
    }

    /// How many variables there are.
    pub const fn variables_count(&self) -> u32 {
        self.variables_count
    }

    /// How many clauses were added.
    pub const fn clauses_count(&self) -> u64 {
        self.clauses_count
    }

    /// How many conflicts were met in all calls.
    pub const fn conflicts_count(&self) -> u64 {
        self.conflicts_count
    }
}

#[cfg(feature = "cadical")]
fn solve_cadical(
    solver: &mut rustsat_cadical::CaDiCaL<'static, 'static>,
    last: Var,
    assumptions: &[Lit],
    budget: u64,
) -> (Option<SolverResult>, u64) {
    use rustsat::solvers::{GetInternalStats, LimitConflicts};
    // CaDiCaL counts in a signed `int`; so many conflicts take days.
    let limit = u32::try_from(budget).unwrap_or(u32::MAX).min(i32::MAX.unsigned_abs());
    let before = solver.conflicts();
    let reserved = solver.reserve(last).and_then(|()| solver.limit_conflicts(Some(limit)));
    let result = reserved.and_then(|()| solver.solve_assumps(assumptions)).ok();
    (result, (solver.conflicts() - before) as u64)
}

impl std::fmt::Debug for Solver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Solver")
            .field("variables_count", &self.variables_count)
            .field("clauses_count", &self.clauses_count)
            .field("conflicts_left", &self.conflicts_left)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "cadical"))]
mod tests {
    use super::*;

    #[test]
    fn a_budget_of_any_size_is_one_for_cadical() {
        let limit = u64::from(i32::MAX.unsigned_abs());
        for budget in [limit - 1, limit, limit + 1, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            let mut solver = Solver::new(Engine::Cadical, budget);
            let literal = solver.variable();
            solver.add(&[literal]);
            assert_eq!(solver.solve(&[]), Outcome::Satisfied, "{budget}");
            assert_eq!(solver.solve(&[!literal]), Outcome::Refuted(vec![!literal]), "{budget}");
        }
    }
}
