//! Gates: Boolean functions of literals, each made once and told to the solver as clauses.
//!
//! Constants are folded and equal gates are one, so what is known costs nothing.

use std::ops::Not;

use reweave_base::FxHashMap;
use reweave_solver::{Lit, Solver};

/// A truth value: known, or a literal of the solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Bit(u32);

impl Bit {
    /// Never true.
    pub(super) const FALSE: Self = Self(0);
    /// Always true.
    pub(super) const TRUE: Self = Self(1);

    /// The known truth value `value`.
    pub(super) const fn known(value: bool) -> Self {
        Self(value as u32)
    }

    const fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Not for Bit {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Gate {
    And(Bit, Bit),
    Xor(Bit, Bit),
    Choose(Bit, Bit, Bit),
    Majority(Bit, Bit, Bit),
}

/// The gates made so far, with the solver that knows them.
pub(super) struct Gates {
    /// The solver.
    pub(super) solver: Solver,
    literals: Vec<Lit>,
    made: FxHashMap<Gate, Bit>,
    clause: Vec<Lit>,
    clauses_max: u64,
}

impl Gates {
    /// No gates.
    pub(super) fn new(solver: Solver, clauses_max: u64) -> Self {
        let made = FxHashMap::default();
        Self { solver, literals: Vec::new(), made, clause: Vec::new(), clauses_max }
    }

    /// Whether there are more clauses than there may be.
    pub(super) const fn is_full(&self) -> bool {
        self.solver.clauses_count() > self.clauses_max
    }

    /// A new variable.
    pub(super) fn variable(&mut self) -> Bit {
        self.literals.push(self.solver.variable());
        Bit((self.literals.len() as u32) << 1)
    }

    /// The literal of `bit`, which is not known.
    pub(super) fn literal(&self, bit: Bit) -> Lit {
        let literal = self.literals[(bit.0 >> 1) as usize - 1];
        if bit.is_negated() { !literal } else { literal }
    }

    /// Demands that one of `bits` is true.
    pub(super) fn clause(&mut self, bits: &[Bit]) {
        self.clause.clear();
        for (position, &bit) in bits.iter().enumerate() {
            if bit == Bit::TRUE || bits[..position].contains(&!bit) {
                return;
            }
            if bit != Bit::FALSE && !bits[..position].contains(&bit) {
                let literal = self.literal(bit);
                self.clause.push(literal);
            }
        }
        self.solver.add(&self.clause);
    }

    /// Demands of `bits`, which are many and different variables, that one is true.
    pub(super) fn long_clause(&mut self, bits: &[Bit]) {
        if bits.contains(&Bit::TRUE) {
            return;
        }
        let known = |&&bit: &&Bit| bit != Bit::FALSE;
        let clause: Vec<Lit> = bits.iter().filter(known).map(|&bit| self.literal(bit)).collect();
        self.solver.add(&clause);
    }

    /// What `bit` is in the model found last.
    pub(super) fn holds(&self, bit: Bit) -> bool {
        match bit {
            Bit::FALSE => false,
            Bit::TRUE => true,
            bit => self.solver.holds(self.literal(bit)),
        }
    }

    fn make(&mut self, gate: Gate) -> Bit {
        if let Some(&made) = self.made.get(&gate) {
            return made;
        }
        let out = self.variable();
        self.made.insert(gate, out);
        match gate {
            Gate::And(left, right) => {
                self.clause(&[!out, left]);
                self.clause(&[!out, right]);
                self.clause(&[out, !left, !right]);
            }
            Gate::Xor(left, right) => {
                self.clause(&[!out, left, right]);
                self.clause(&[!out, !left, !right]);
                self.clause(&[out, !left, right]);
                self.clause(&[out, left, !right]);
            }
            Gate::Choose(choice, left, right) => {
                self.clause(&[!choice, !left, out]);
                self.clause(&[!choice, left, !out]);
                self.clause(&[choice, !right, out]);
                self.clause(&[choice, right, !out]);
                // These follow, but the solver sees more at once with them.
                self.clause(&[!left, !right, out]);
                self.clause(&[left, right, !out]);
            }
            Gate::Majority(one, two, three) => {
                for (left, right) in [(one, two), (one, three), (two, three)] {
                    self.clause(&[!left, !right, out]);
                    self.clause(&[left, right, !out]);
                }
            }
        }
        out
    }

    /// Both.
    pub(super) fn and(&mut self, left: Bit, right: Bit) -> Bit {
        let (left, right) = if left <= right { (left, right) } else { (right, left) };
        match (left, right) {
            (Bit::FALSE, _) => Bit::FALSE,
            (Bit::TRUE, other) => other,
            _ if left == right => left,
            _ if left == !right => Bit::FALSE,
            _ => self.make(Gate::And(left, right)),
        }
    }

    /// Either or both.
    pub(super) fn or(&mut self, left: Bit, right: Bit) -> Bit {
        !self.and(!left, !right)
    }

    /// One of two.
    pub(super) fn xor(&mut self, left: Bit, right: Bit) -> Bit {
        let odd = left.is_negated() != right.is_negated();
        let (left, right) = (Bit(left.0 & !1), Bit(right.0 & !1));
        let (left, right) = if left <= right { (left, right) } else { (right, left) };
        let even = match (left, right) {
            (Bit::FALSE, other) => other,
            _ if left == right => Bit::FALSE,
            _ => self.make(Gate::Xor(left, right)),
        };
        if odd { !even } else { even }
    }

    /// `left` if `choice`, else `right`.
    pub(super) fn choose(&mut self, choice: Bit, left: Bit, right: Bit) -> Bit {
        if choice.is_negated() && choice != Bit::TRUE {
            return self.choose(!choice, right, left);
        }
        match (choice, left, right) {
            (Bit::TRUE, _, _) => left,
            (Bit::FALSE, _, _) => right,
            _ if left == right => left,
            _ if left == !right => self.xor(choice, right),
            (_, Bit::TRUE, _) => self.or(choice, right),
            (_, Bit::FALSE, _) => self.and(!choice, right),
            (_, _, Bit::TRUE) => self.or(!choice, left),
            (_, _, Bit::FALSE) => self.and(choice, left),
            _ => self.make(Gate::Choose(choice, left, right)),
        }
    }

    /// Two of three, or all.
    pub(super) fn majority(&mut self, one: Bit, two: Bit, three: Bit) -> Bit {
        let mut bits = [one, two, three];
        bits.sort_unstable();
        match bits {
            [Bit::FALSE, left, right] => self.and(left, right),
            [Bit::TRUE, left, right] => self.or(left, right),
            [left, right, third] if left == !right => third,
            [left, right, third] if right == !third => left,
            [left, right, third] if left == right || right == third => right,
            [left, right, third] => self.make(Gate::Majority(left, right, third)),
        }
    }

    /// One of `bits`, or more.
    pub(super) fn any(&mut self, bits: &[Bit]) -> Bit {
        let mut unknown: Vec<Bit> = bits.to_vec();
        unknown.sort_unstable();
        unknown.dedup();
        unknown.retain(|&bit| bit != Bit::FALSE);
        if unknown.first() == Some(&Bit::TRUE) {
            return Bit::TRUE;
        }
        match unknown[..] {
            [] => Bit::FALSE,
            [only] => only,
            [left, right] => self.or(left, right),
            _ => {
                let out = self.variable();
                for &bit in &unknown {
                    self.clause(&[!bit, out]);
                }
                unknown.push(!out);
                self.long_clause(&unknown);
                out
            }
        }
    }

    /// All of `bits`.
    pub(super) fn all(&mut self, bits: &[Bit]) -> Bit {
        let negated: Vec<Bit> = bits.iter().map(|&bit| !bit).collect();
        !self.any(&negated)
    }
}
