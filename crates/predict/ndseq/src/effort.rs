//! Effort: what may be written down for the solver, counted.
//!
//! A block of n statements has n²/2 placements, an execution of it as many stretches, and the
//! clauses that say which of them enclose each statement have n³/6 literals in all. The blocks of
//! programs are short, but those of a trace may be of any length. So each step that is not linear
//! in the run is counted, and there is a limit: it bounds both time and memory.

/// What a variable costs, in steps. With its clauses, wishes and places in tables it takes some
/// hundred times the memory of a literal.
pub(crate) const VARIABLE: u64 = 100;

/// How many steps are left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    left: Option<u64>,
}

impl Effort {
    /// An effort of at most `steps_max` steps.
    pub(crate) const fn new(steps_max: u64) -> Self {
        Self { left: Some(steps_max) }
    }

    /// Takes so many steps; false if there are not as many left, now and from then on.
    pub(crate) fn spend(&mut self, steps: u64) -> bool {
        self.left = self.left.and_then(|left| left.checked_sub(steps));
        self.left.is_some()
    }

    /// Whether more steps were asked for than there were.
    pub(crate) const fn is_exhausted(self) -> bool {
        self.left.is_none()
    }
}
