//! The program layer: the guarded transitions behind the events.
//!
//! Interval analysis looks at the program that a run went through, not only at what the run did:
//! each thread is a graph of control points joined by transitions that test a guard, make at most
//! one shared access, and assign at most one shared and one local variable. Expressions are a tree
//! in one table, so that the analysis depends on no language.

use reweave_base::{Id, IndexVec};

use crate::names::Names;
use crate::op::{LocalId, Op, SiteId, ThreadId, VarId};

reweave_base::id! {
    /// An expression.
    pub struct ExprId;
    /// A transition.
    pub struct TransitionId;
    /// A control point of a thread.
    pub struct PointId;
}

/// An integer expression over 64-bit two's complement; truth is any value but zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A number.
    Constant(i64),
    /// A thread-local variable.
    Local(LocalId),
    /// The shared variable that the transition reads.
    Shared(VarId),
    /// An operator on one operand.
    Unary(Unary, ExprId),
    /// An operator on two operands.
    Binary(Binary, ExprId, ExprId),
}

/// Operators on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-a`
    Negate,
    /// `!a`: 1 if a is 0, else 0
    Not,
}

/// Operators on two operands, as in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the operator of the same name in C")]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    ShiftLeft,
    ShiftRight,
    BitAnd,
    BitOr,
    BitXor,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
}

impl Unary {
    /// Every operator.
    pub const ALL: [Self; 2] = [Self::Negate, Self::Not];

    /// What the operator makes of `operand`.
    #[must_use]
    pub const fn apply(self, operand: i64) -> i64 {
        match self {
            Self::Negate => operand.wrapping_neg(),
            Self::Not => (operand == 0) as i64,
        }
    }
}

impl Binary {
    /// Every operator: those that give numbers, then those that give truth values.
    pub const ALL: [Self; 18] = [
        Self::Add,
        Self::Subtract,
        Self::Multiply,
        Self::Divide,
        Self::Remainder,
        Self::ShiftLeft,
        Self::ShiftRight,
        Self::BitAnd,
        Self::BitOr,
        Self::BitXor,
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessEqual,
        Self::Greater,
        Self::GreaterEqual,
        Self::And,
        Self::Or,
    ];

    /// The operators that give truth values: six comparisons, then `&&` and `||`.
    pub const TESTS: &[Self] = Self::ALL.split_at(10).1;

    /// Whether it has no result where the right operand is zero.
    #[must_use]
    pub const fn is_division(self) -> bool {
        matches!(self, Self::Divide | Self::Remainder)
    }

    /// What the operator makes of `left` and `right`; none if it divides by zero. Numbers wrap,
    /// and shifts take their width modulo 64.
    #[inline]
    #[must_use]
    pub const fn apply(self, left: i64, right: i64) -> Option<i64> {
        Some(match self {
            Self::Add => left.wrapping_add(right),
            Self::Subtract => left.wrapping_sub(right),
            Self::Multiply => left.wrapping_mul(right),
            Self::Divide if right == 0 => return None,
            Self::Divide => left.wrapping_div(right),
            Self::Remainder if right == 0 => return None,
            Self::Remainder => left.wrapping_rem(right),
            Self::ShiftLeft => left.wrapping_shl(right as u32),
            Self::ShiftRight => left.wrapping_shr(right as u32),
            Self::BitAnd => left & right,
            Self::BitOr => left | right,
            Self::BitXor => left ^ right,
            Self::Equal => (left == right) as i64,
            Self::NotEqual => (left != right) as i64,
            Self::Less => (left < right) as i64,
            Self::LessEqual => (left <= right) as i64,
            Self::Greater => (left > right) as i64,
            Self::GreaterEqual => (left >= right) as i64,
            Self::And => (left != 0 && right != 0) as i64,
            Self::Or => (left != 0 || right != 0) as i64,
        })
    }
}

/// One guarded step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Whose step it is.
    pub thread: ThreadId,
    /// Where it starts.
    pub from: PointId,
    /// Where it ends.
    pub to: PointId,
    /// It can be taken only where this is true; none is always.
    pub guard: Option<ExprId>,
    /// The shared access, lock operation or fork and join that it makes, at most one.
    pub access: Option<Op>,
    /// What it assigns to the shared variable that it accesses.
    pub store: Option<(VarId, ExprId)>,
    /// What it assigns to a local, of the values before the step.
    pub define: Option<(LocalId, ExprId)>,
    /// This must be true when the step is taken, or the program is at fault.
    pub assertion: Option<ExprId>,
    /// Where in the code.
    pub site: SiteId,
}

/// The program behind a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    expressions: IndexVec<ExprId, Expr>,
    transitions: IndexVec<TransitionId, Transition>,
    points: IndexVec<PointId, ThreadId>,
    entries: IndexVec<ThreadId, Option<PointId>>,
    initial: IndexVec<VarId, i64>,
}

impl Program {
    /// Adds an expression; its operands must have been added before.
    pub fn add_expr(&mut self, expr: Expr) -> ExprId {
        self.expressions.push(expr)
    }

    /// Makes room for `count` transitions more, and as many points.
    pub fn reserve(&mut self, count: usize) {
        self.transitions.as_mut_vec().reserve_exact(count);
        self.points.as_mut_vec().reserve_exact(count);
    }

    /// Adds a control point of `thread`.
    pub fn add_point(&mut self, thread: ThreadId) -> PointId {
        self.points.push(thread)
    }

    /// Adds a transition between control points that were added before.
    pub fn add_transition(&mut self, transition: Transition) -> TransitionId {
        self.transitions.push(transition)
    }

    /// Says where `thread` starts.
    pub fn set_entry(&mut self, thread: ThreadId, point: PointId) {
        *self.entries.get_or_default(thread) = Some(point);
    }

    /// Says what `var` holds at the start; 0 by default.
    pub fn set_initial(&mut self, var: VarId, value: i64) {
        *self.initial.get_or_default(var) = value;
    }

    /// The expression `id`.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> Expr {
        self.expressions[id]
    }

    /// All transitions with their ids.
    pub fn transitions(&self) -> impl ExactSizeIterator<Item = (TransitionId, &Transition)> {
        self.transitions.entries()
    }

    /// All control points with their threads.
    pub fn points(&self) -> impl ExactSizeIterator<Item = (PointId, ThreadId)> {
        self.points.entries().map(|(point, &thread)| (point, thread))
    }

    /// Where `thread` starts, if it has a program.
    #[must_use]
    pub fn entry(&self, thread: ThreadId) -> Option<PointId> {
        self.entries.get(thread).copied().flatten()
    }

    /// What `var` holds at the start.
    #[must_use]
    pub fn initial(&self, var: VarId) -> i64 {
        self.initial.get(var).copied().unwrap_or(0)
    }

    /// Whether it speaks of nothing that is not there.
    pub(crate) fn fits(&self, names: &Names) -> bool {
        let local = |id: LocalId| id.index() < names.locals.len();
        let shared = |id: VarId| id.index() < names.vars.len();
        let expr = |id: ExprId| id.index() < self.expressions.len();
        let point = |id: PointId, thread| self.points.get(id) == Some(&thread);
        self.expressions.entries().all(|(id, &node)| match node {
            Expr::Constant(_) => true,
            Expr::Local(of) => local(of),
            Expr::Shared(of) => shared(of),
            Expr::Unary(_, of) => of < id,
            Expr::Binary(_, left, right) => left < id && right < id,
        }) && self.points.iter().all(|thread| thread.index() < names.threads.len())
            && self.entries.entries().all(|(thread, entry)| entry.is_none_or(|p| point(p, thread)))
            && self.initial.len() <= names.vars.len()
            && self.transitions.iter().all(|step| {
                let operand_fits = step.access.is_none_or(|op| {
                    let (code, index) = op.encode();
                    (index as usize) < names.count(code.kind().operand())
                });
                operand_fits
                    && point(step.from, step.thread)
                    && point(step.to, step.thread)
                    && step.guard.is_none_or(expr)
                    && step.assertion.is_none_or(expr)
                    && step.site.index() < names.sites.len()
                    && step.store.is_none_or(|(var, value)| shared(var) && expr(value))
                    && step.define.is_none_or(|(of, value)| local(of) && expr(value))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_wrap_and_only_division_by_zero_has_none() {
        assert_eq!(Unary::Negate.apply(i64::MIN), i64::MIN);
        assert_eq!(Unary::Not.apply(7), 0);
        assert_eq!(Binary::Add.apply(i64::MAX, 1), Some(i64::MIN));
        assert_eq!(Binary::Divide.apply(i64::MIN, -1), Some(i64::MIN));
        assert_eq!(Binary::Remainder.apply(i64::MIN, -1), Some(0));
        assert_eq!(Binary::Divide.apply(-7, 2), Some(-3));
        assert_eq!(Binary::Remainder.apply(-7, 2), Some(-1));
        assert_eq!(Binary::ShiftLeft.apply(1, 64), Some(1));
        assert_eq!(Binary::ShiftRight.apply(-8, 1), Some(-4));
        assert_eq!(Binary::Divide.apply(1, 0), None);
        assert_eq!(Binary::Remainder.apply(1, 0), None);
    }
}
