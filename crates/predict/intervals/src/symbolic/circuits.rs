//! Circuits: the operators of terms on vectors of bits.
//!
//! A [`Value`] is known to lie between two numbers and is its distance from the lower one, in as
//! many bits as the difference of both needs. So a constant has no bits, and to add one costs
//! nothing. An operator first bounds its result; if that may leave the width to which numbers
//! wrap, the bounds are those of the width. The bits are then computed modulo the power of two
//! that the bounds need, and wrapping comes out right by itself.
//!
//! Quotients and remainders by zero are arbitrary; the caller notes when that happens.

use std::ops::Not;
use std::rc::Rc;

use reweave_base::FxHashMap;
use reweave_solver::{Lit, Solver};
use reweave_trace::{Binary, Unary};

/// A number: `low` and what the bits, the least first, say is to be added; at most `high`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) low: i64,
    pub(super) high: i64,
    bits: Vec<Bit>,
}

/// How many bits the numbers from 0 to `distance` need.
const fn width(distance: u128) -> usize {
    (u128::BITS - distance.leading_zeros()) as usize
}

/// How many bits of two's complement the numbers from `low` to `high` need.
fn signed_width(low: i64, high: i64) -> usize {
    let magnitude = |number: i64| width((if number < 0 { !number } else { number }) as u128);
    magnitude(low).max(magnitude(high)) + 1
}

impl Value {
    fn distance(&self) -> u128 {
        (i128::from(self.high) - i128::from(self.low)).unsigned_abs()
    }

    /// The only number it can be, if there is only one.
    pub(super) fn as_constant(&self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    /// Whether it is `other` and a number that is not negative.
    pub(super) fn adds_to(&self, other: &Self) -> bool {
        self.low >= other.low && self.bits == other.bits
    }

    /// The number `number`.
    pub(super) fn constant(number: i64) -> Self {
        Self { low: number, high: number, bits: Vec::new() }
    }

    fn truth(bit: Bit) -> Self {
        match bit {
            Bit::FALSE => Self::constant(0),
            Bit::TRUE => Self::constant(1),
            bit => Self { low: 0, high: 1, bits: vec![bit] },
        }
    }
}

/// Makes circuits.
pub(super) struct Circuits {
    /// The gates they are made of.
    pub(super) gates: Gates,
    /// The least and the greatest number; what leaves them wraps.
    bounds: (i64, i64),
}

impl Circuits {
    /// Makes circuits for numbers of `limit` bits, from 2 to 64, that wrap.
    pub(super) fn new(gates: Gates, limit: u32) -> Self {
        let unused = 64 - limit.clamp(2, 64);
        Self { gates, bounds: (i64::MIN >> unused, i64::MAX >> unused) }
    }

    /// The least and the greatest number.
    pub(super) const fn bounds(&self) -> (i64, i64) {
        self.bounds
    }

    /// The number `number`, wrapped.
    pub(super) fn constant(&self, number: i64) -> Value {
        let unused = self.bounds.1.leading_zeros() - 1;
        Value::constant(number << unused >> unused)
    }

    /// A number between `low` and `high` that is not known.
    pub(super) fn unknown(&mut self, low: i64, high: i64) -> Value {
        let mut value = Value { low, high, bits: Vec::new() };
        value.bits = (0..width(value.distance())).map(|_| self.gates.variable()).collect();
        let highest = constant_bits(value.distance(), value.bits.len());
        let over = self.less_bits(&highest, &value.bits);
        self.gates.clause(&[!over]);
        value
    }

    /// The bounds of a result between `low` and `high`, or, if it may wrap, of all numbers.
    fn settle(&self, low: i128, high: i128) -> (i64, i64) {
        match (i64::try_from(low), i64::try_from(high)) {
            (Ok(low), Ok(high)) if low >= self.bounds.0 && high <= self.bounds.1 => (low, high),
            _ => self.bounds,
        }
    }

    /// The number whose `width` low bits are `bits`, and that is known to lie within `bounds`,
    /// which need no more bits.
    fn of_residue(&mut self, bits: Vec<Bit>, bounds: (i64, i64)) -> Value {
        self.of_offset(bits, 0, bounds)
    }

    /// The same if `offset` has been subtracted from it.
    fn of_offset(&mut self, mut bits: Vec<Bit>, offset: i128, (low, high): (i64, i64)) -> Value {
        let mut value = Value { low, high, bits: Vec::new() };
        let needed = width(value.distance());
        bits.resize(needed, Bit::FALSE);
        value.bits = self.add_constant(&bits, offset.wrapping_sub(i128::from(low)));
        value
    }

    /// `value` less `base`, modulo two to the power of `width`.
    fn residue(&mut self, value: &Value, base: i128, width: usize) -> Vec<Bit> {
        let mut bits = value.bits.clone();
        bits.resize(width, Bit::FALSE);
        self.add_constant(&bits, i128::from(value.low).wrapping_sub(base))
    }

    fn add_constant(&mut self, bits: &[Bit], constant: i128) -> Vec<Bit> {
        let constant = constant_bits(constant as u128, bits.len());
        self.add_bits(bits, &constant, Bit::FALSE)
    }

    /// The sum modulo the width, which both have.
    fn add_bits(&mut self, left: &[Bit], right: &[Bit], mut carry: Bit) -> Vec<Bit> {
        let mut sum = Vec::with_capacity(left.len());
        for (&left, &right) in left.iter().zip(right) {
            let half = self.gates.xor(left, right);
            sum.push(self.gates.xor(half, carry));
            carry = self.gates.majority(left, right, carry);
        }
        sum
    }

    /// Whether `left` is less than `right`; both are as wide and have no sign.
    fn less_bits(&mut self, left: &[Bit], right: &[Bit]) -> Bit {
        let bits = left.iter().zip(right);
        bits.fold(Bit::FALSE, |less, (&left, &right)| self.gates.majority(!left, right, less))
    }

    /// `bits` or, if `sign`, what makes zero with them.
    fn negate_if(&mut self, sign: Bit, bits: &[Bit]) -> Vec<Bit> {
        let flipped: Vec<Bit> = bits.iter().map(|&bit| self.gates.xor(bit, sign)).collect();
        self.add_bits(&flipped, &vec![Bit::FALSE; bits.len()], sign)
    }

    /// Both as distances from the lesser of their bounds, equally wide.
    fn align(&mut self, left: &Value, right: &Value) -> (Vec<Bit>, Vec<Bit>) {
        let base = i128::from(left.low.min(right.low));
        let width = width((i128::from(left.high.max(right.high)) - base).unsigned_abs());
        (self.residue(left, base, width), self.residue(right, base, width))
    }

    /// Whether `left` is less than `right`.
    pub(super) fn less(&mut self, left: &Value, right: &Value) -> Bit {
        if left.high < right.low || left.low >= right.high {
            return Bit::known(left.high < right.low);
        }
        let (left, right) = self.align(left, right);
        self.less_bits(&left, &right)
    }

    fn less_or_equal(&mut self, left: &Value, right: &Value) -> Bit {
        !self.less(right, left)
    }

    /// Whether both are the same number.
    pub(super) fn equal(&mut self, left: &Value, right: &Value) -> Bit {
        if left.high < right.low || right.high < left.low {
            return Bit::FALSE;
        }
        let (left, right) = self.align(left, right);
        let same: Vec<Bit> =
            left.iter().zip(&right).map(|(&left, &right)| !self.gates.xor(left, right)).collect();
        self.gates.all(&same)
    }

    /// Whether `value` is not zero.
    pub(super) fn is_true(&mut self, value: &Value) -> Bit {
        !self.equal(value, &Value::constant(0))
    }

    /// `left` if `choice`, else `right`.
    pub(super) fn choose(&mut self, choice: Bit, left: &Rc<Value>, right: &Rc<Value>) -> Rc<Value> {
        match choice {
            Bit::TRUE => return Rc::clone(left),
            Bit::FALSE => return Rc::clone(right),
            _ if Rc::ptr_eq(left, right) || left == right => return Rc::clone(left),
            _ => {}
        }
        let (low, high) = (left.low.min(right.low), left.high.max(right.high));
        let (left, right) = self.align(left, right);
        let bits = left.iter().zip(&right);
        let bits = bits.map(|(&left, &right)| self.gates.choose(choice, left, right)).collect();
        Rc::new(Value { low, high, bits })
    }

    /// `value`, which is known to lie between `low` and `high` besides.
    pub(super) fn narrow(&mut self, value: Value, low: i64, high: i64) -> Value {
        let (low, high) = (low.max(value.low), high.min(value.high));
        if (low, high) == (value.low, value.high) || low > high {
            return value;
        }
        let width = width((i128::from(high) - i128::from(low)).unsigned_abs());
        let bits = self.residue(&value, i128::from(low), width);
        Value { low, high, bits }
    }

    /// The distances of `value` from `base`, in the bits that numbers up to `high` need.
    pub(super) fn distances(&mut self, value: &Value, base: i64, high: i64) -> Vec<Bit> {
        let width = width((i128::from(high) - i128::from(base)).unsigned_abs());
        self.residue(value, i128::from(base), width)
    }

    /// What `operator` makes of `operand`.
    pub(super) fn unary(&mut self, operator: Unary, operand: &Value) -> Value {
        match operator {
            Unary::Negate => self.subtract(&Value::constant(0), operand),
            Unary::Not => Value::truth(self.equal(operand, &Value::constant(0))),
        }
    }

    /// What `operator` makes of `left` and `right`; anything where it has no result.
    pub(super) fn binary(&mut self, operator: Binary, left: &Value, right: &Value) -> Value {
        let truth = match operator {
            Binary::Add => return self.add(left, right),
            Binary::Subtract => return self.subtract(left, right),
            Binary::Multiply => return self.multiply(left, right),
            Binary::Divide => return self.divide(left, right),
            Binary::Remainder => return self.remainder(left, right),
            Binary::ShiftLeft => return self.shift_left(left, right),
            Binary::ShiftRight => return self.shift_right(left, right),
            Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
                return self.bitwise(operator, left, right);
            }
            Binary::Equal => self.equal(left, right),
            Binary::NotEqual => !self.equal(left, right),
            Binary::Less => self.less(left, right),
            Binary::LessEqual => self.less_or_equal(left, right),
            Binary::Greater => self.less(right, left),
            Binary::GreaterEqual => self.less_or_equal(right, left),
            Binary::And => {
                let (left, right) = (self.is_true(left), self.is_true(right));
                self.gates.and(left, right)
            }
            Binary::Or => {
                let (left, right) = (self.is_true(left), self.is_true(right));
                self.gates.or(left, right)
            }
        };
        Value::truth(truth)
    }

    fn add(&mut self, left: &Value, right: &Value) -> Value {
        let offset = i128::from(left.low) + i128::from(right.low);
        let bounds = self.settle(offset, i128::from(left.high) + i128::from(right.high));
        let needed = width(bounds_distance(bounds));
        let (mut left, mut right) = (left.bits.clone(), right.bits.clone());
        left.resize(needed, Bit::FALSE);
        right.resize(needed, Bit::FALSE);
        let sum = self.add_bits(&left, &right, Bit::FALSE);
        self.of_offset(sum, offset, bounds)
    }

    fn subtract(&mut self, left: &Value, right: &Value) -> Value {
        // Flipping the bits of a distance subtracts it from the largest one of its width.
        let largest = (1_i128 << right.bits.len()) - 1;
        let offset = i128::from(left.low) - i128::from(right.low) - largest;
        let low = i128::from(left.low) - i128::from(right.high);
        let bounds = self.settle(low, i128::from(left.high) - i128::from(right.low));
        let needed = width(bounds_distance(bounds));
        let mut minuend = left.bits.clone();
        let mut flipped: Vec<Bit> = right.bits.iter().map(|&bit| !bit).collect();
        minuend.resize(needed, Bit::FALSE);
        flipped.resize(needed, Bit::FALSE);
        let sum = self.add_bits(&minuend, &flipped, Bit::FALSE);
        self.of_offset(sum, offset, bounds)
    }

    fn multiply(&mut self, left: &Value, right: &Value) -> Value {
        let product = |left: i64, right: i64| i128::from(left) * i128::from(right);
        let corners = [
            product(left.low, right.low),
            product(left.low, right.high),
            product(left.high, right.low),
            product(left.high, right.high),
        ];
        let bounds = self.settle(min(&corners), max(&corners));
        let needed = width(bounds_distance(bounds));
        let (many, factor, offset) = match (left.as_constant(), right.as_constant()) {
            // A distance times a constant, so that what it is a distance from needs no circuit.
            (_, Some(factor)) => {
                let mut bits = left.bits.clone();
                bits.resize(needed, Bit::FALSE);
                (bits, constant_bits(factor as i128 as u128, needed), product(left.low, factor))
            }
            (Some(_), None) => return self.multiply(right, left),
            (None, None) => (self.residue(left, 0, needed), self.residue(right, 0, needed), 0),
        };
        let mut sum = vec![Bit::FALSE; needed];
        for (shift, &chosen) in factor.iter().enumerate() {
            let mut part = vec![Bit::FALSE; shift];
            let kept = &many[..needed - shift];
            part.extend(kept.iter().map(|&bit| self.gates.and(bit, chosen)));
            sum = self.add_bits(&sum, &part, Bit::FALSE);
        }
        self.of_offset(sum, offset, bounds)
    }

    /// Whether `value` is negative, and its absolute value.
    fn magnitude(&mut self, value: &Value) -> (Bit, Vec<Bit>) {
        let largest = value.low.unsigned_abs().max(value.high.unsigned_abs());
        let bits = self.residue(value, 0, width(u128::from(largest)));
        let sign = self.less(value, &Value::constant(0));
        (sign, self.negate_if(sign, &bits))
    }

    /// The quotient and the remainder of numbers without sign, by restoring division.
    fn divide_bits(&mut self, dividend: &[Bit], divisor: &[Bit]) -> (Vec<Bit>, Vec<Bit>) {
        let mut wide: Vec<Bit> = divisor.to_vec();
        wide.push(Bit::FALSE);
        let flipped: Vec<Bit> = wide.iter().map(|&bit| !bit).collect();
        let mut rest = vec![Bit::FALSE; wide.len()];
        let mut quotient = vec![Bit::FALSE; dividend.len()];
        for (position, &bit) in dividend.iter().enumerate().rev() {
            rest.pop();
            rest.insert(0, bit);
            let fits = !self.less_bits(&rest, &wide);
            let less = self.add_bits(&rest, &flipped, Bit::TRUE);
            for (rest, &less) in rest.iter_mut().zip(&less) {
                *rest = self.gates.choose(fits, less, *rest);
            }
            quotient[position] = fits;
        }
        (quotient, rest)
    }

    fn divide(&mut self, left: &Value, right: &Value) -> Value {
        let divisors = [right.low, right.high, 1, -1];
        let divisors =
            divisors.iter().filter(|&&by| by != 0 && right.low <= by && by <= right.high);
        let quotients = |&by: &i64| [left.low, left.high].map(|of| i128::from(of) / i128::from(by));
        let corners: Vec<i128> = divisors.flat_map(quotients).collect();
        let bounds = self.settle(min(&corners), max(&corners));
        let (left_sign, dividend) = self.magnitude(left);
        let (right_sign, divisor) = self.magnitude(right);
        let (mut quotient, _) = self.divide_bits(&dividend, &divisor);
        quotient.resize(width(bounds_distance(bounds)), Bit::FALSE);
        let sign = self.gates.xor(left_sign, right_sign);
        let quotient = self.negate_if(sign, &quotient);
        self.of_residue(quotient, bounds)
    }

    fn remainder(&mut self, left: &Value, right: &Value) -> Value {
        let largest = i128::from(right.low).abs().max(i128::from(right.high).abs());
        let largest = (largest - 1).max(0);
        let low = i128::from(left.low).min(0).max(-largest);
        let bounds = self.settle(low, i128::from(left.high).max(0).min(largest));
        let (sign, dividend) = self.magnitude(left);
        let (_, divisor) = self.magnitude(right);
        let (_, mut rest) = self.divide_bits(&dividend, &divisor);
        rest.resize(width(bounds_distance(bounds)), Bit::FALSE);
        let rest = self.negate_if(sign, &rest);
        self.of_residue(rest, bounds)
    }

    /// By how much a shift by `amount` shifts: its six bits, the least and the most.
    fn shift_amount(&mut self, amount: &Value) -> (Vec<Bit>, u32, u32) {
        let bits = self.residue(amount, 0, 6);
        if amount.low >= 0 && amount.high < 64 {
            return (bits, amount.low as u32, amount.high as u32);
        }
        match amount.as_constant() {
            Some(amount) => (bits, (amount & 63) as u32, (amount & 63) as u32),
            None => (bits, 0, 63),
        }
    }

    fn shift_left(&mut self, left: &Value, right: &Value) -> Value {
        let (amount, least, most) = self.shift_amount(right);
        let corners = [left.low, left.high].map(i128::from);
        let corners = corners.map(|number| [number << least, number << most]).concat();
        let bounds = self.settle(min(&corners), max(&corners));
        let needed = width(bounds_distance(bounds));
        let mut bits = self.residue(left, 0, needed);
        for (position, &shifts) in amount.iter().enumerate() {
            let by = 1 << position;
            let bit = |at: usize| at.checked_sub(by).map_or(Bit::FALSE, |from| bits[from]);
            let shifted: Vec<Bit> = (0..needed).map(bit).collect();
            bits = self.choose_bits(shifts, &shifted, &bits);
        }
        self.of_residue(bits, bounds)
    }

    fn shift_right(&mut self, left: &Value, right: &Value) -> Value {
        let (amount, least, most) = self.shift_amount(right);
        let corners = [left.low, left.high].map(i128::from);
        let corners = corners.map(|number| [number >> least, number >> most]).concat();
        let bounds = self.settle(min(&corners), max(&corners));
        let wide = signed_width(left.low, left.high);
        let mut bits = self.residue(left, 0, wide);
        let sign = bits[wide - 1];
        for (position, &shifts) in amount.iter().enumerate() {
            let bit = |at: usize| bits.get(at + (1 << position)).copied().unwrap_or(sign);
            let shifted: Vec<Bit> = (0..wide).map(bit).collect();
            bits = self.choose_bits(shifts, &shifted, &bits);
        }
        self.of_residue(bits, bounds)
    }

    fn choose_bits(&mut self, choice: Bit, left: &[Bit], right: &[Bit]) -> Vec<Bit> {
        let bits = left.iter().zip(right);
        bits.map(|(&left, &right)| self.gates.choose(choice, left, right)).collect()
    }

    fn bitwise(&mut self, operator: Binary, left: &Value, right: &Value) -> Value {
        let wide = signed_width(left.low, left.high).max(signed_width(right.low, right.high));
        let largest = (1_i128 << (wide - 1)) - 1;
        let (low, high) = match (operator, left.low >= 0, right.low >= 0) {
            (Binary::BitAnd, true, true) => (0, i128::from(left.high.min(right.high))),
            (Binary::BitAnd, true, false) => (0, i128::from(left.high)),
            (Binary::BitAnd, false, true) => (0, i128::from(right.high)),
            (_, true, true) => (0, largest),
            _ => (-largest - 1, largest),
        };
        let (left, right) = (self.residue(left, 0, wide), self.residue(right, 0, wide));
        let pairs = left.iter().zip(&right);
        let bits = pairs.map(|(&left, &right)| match operator {
            Binary::BitAnd => self.gates.and(left, right),
            Binary::BitOr => self.gates.or(left, right),
            _ => self.gates.xor(left, right),
        });
        let bits: Vec<Bit> = bits.collect();
        let bounds = self.settle(low, high);
        self.of_residue(bits, bounds)
    }

    /// What `value` is in the model found last.
    #[cfg(test)]
    fn number(&self, value: &Value) -> i64 {
        let weights = value.bits.iter().enumerate();
        let holding = weights.filter(|&(_, &bit)| self.gates.holds(bit));
        let distance: i128 = holding.map(|(position, _)| 1_i128 << position).sum();
        (i128::from(value.low) + distance) as i64
    }
}

fn bounds_distance((low, high): (i64, i64)) -> u128 {
    (i128::from(high) - i128::from(low)).unsigned_abs()
}

fn constant_bits(constant: u128, width: usize) -> Vec<Bit> {
    (0..width).map(|position| Bit::known(constant >> position & 1 == 1)).collect()
}

fn min(numbers: &[i128]) -> i128 {
    numbers.iter().copied().min().unwrap_or(0)
}

fn max(numbers: &[i128]) -> i128 {
    numbers.iter().copied().max().unwrap_or(0)
}

// Gates: Boolean functions of literals, each made once and passed to the solver as clauses.
//
// Constants are folded and equal gates are one, so what is known costs nothing.

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
    fn xor(&mut self, left: Bit, right: Bit) -> Bit {
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
    fn majority(&mut self, one: Bit, two: Bit, three: Bit) -> Bit {
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

#[cfg(test)]
mod tests;
