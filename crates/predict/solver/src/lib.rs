//! The solver: clauses in, models and cores out, with a budget.
//!
//! What analyses need of an incremental satisfiability solver, and no more. The solver is batsat, in
//! Rust, which is deterministic.
//!
//! ```
//! use reweave_solver::{Outcome, Solver};
//!
//! let mut solver = Solver::new(1_000);
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
    batsat: rustsat_batsat::Solver<Budget>,
    variables_count: u32,
    clauses_count: u64,
    conflicts_count: u64,
    conflicts_left: u64,
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
    pub fn new(conflicts_max: u64) -> Self {
        Self {
            batsat: rustsat_batsat::Solver::default(),
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
        let added = self.batsat.add_clause(clause);
        added.expect("a clause can be added in every state of the solver");
    }

    /// Looks for a model of all clauses in which the `assumptions` hold.
    pub fn solve(&mut self, assumptions: &[Lit]) -> Outcome {
        let last = Var::new(self.variables_count.saturating_sub(1));
        let budget = self.conflicts_left;
        self.batsat.reserve(last).expect("batsat makes variables as they come");
        let callbacks = self.batsat.batsat_mut().cb_mut();
        *callbacks = Budget { conflicts: 0, conflicts_max: budget };
        let result = self.batsat.solve_assumps(assumptions).ok();
        let spent = self.batsat.batsat_mut().cb_mut().conflicts;
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
        let mut core = self.batsat.core().expect("the last answer was a refutation");
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
        let value = self.batsat.lit_val(literal);
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

impl std::fmt::Debug for Solver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Solver")
            .field("variables_count", &self.variables_count)
            .field("clauses_count", &self.clauses_count)
            .field("conflicts_left", &self.conflicts_left)
            .finish_non_exhaustive()
    }
}
