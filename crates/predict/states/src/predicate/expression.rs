//! Expressions over what changes as threads run, and their values at a cut.
//!
//! A value is a number, or none if it is not known; a truth is 1 or 0. Logic is Kleene's: a
//! conjunction with a false part is false, whatever is not known of the rest. A truth that is not
//! known counts for 0 or 1 in a sum, which then lies in a [`Range`], and a comparison is true or
//! false if it is so for all numbers in between. Otherwise arithmetic and comparisons need all
//! their parts. A sum is exact, in whatever order its terms are, and is not known only if it does
//! not fit as a whole; a product that does not fit, and a division by zero, are not known.

use reweave_base::{Id, IndexVec};
use reweave_trace::{EventId, ThreadId, VarId};

reweave_base::id! {
    /// A leaf of an expression.
    pub struct LeafId;
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Comparison {
    /// Whether it holds of the two.
    #[must_use]
    pub const fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Unequal => left != right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::More => left > right,
            Self::AtLeast => left >= right,
        }
    }

    /// What holds exactly if this does not.
    #[must_use]
    pub const fn inverse(self) -> Self {
        match self {
            Self::Equal => Self::Unequal,
            Self::Unequal => Self::Equal,
            Self::Less => Self::AtLeast,
            Self::AtMost => Self::More,
            Self::More => Self::AtMost,
            Self::AtLeast => Self::Less,
        }
    }
}

/// An operation on two numbers besides sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Their product.
    Times,
    /// Their quotient, rounded towards zero.
    Over,
    /// What remains of it, with the sign of the first.
    Modulo,
}

impl Operator {
    pub(super) const fn apply(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Self::Times => left.checked_mul(right),
            Self::Over => left.checked_div(right),
            Self::Modulo => left.checked_rem(right),
        }
    }
}

/// An expression or a part of one. Nested only so deep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// Always the same value.
    Constant(Option<i64>),
    /// The value of a leaf.
    Leaf(LeafId),
    /// True if the part is false.
    Not(Box<Node>),
    /// True if all parts are.
    All(Vec<Node>),
    /// True if one part is.
    Any(Vec<Node>),
    /// True if the two compare so.
    Compare(Comparison, Box<[Node; 2]>),
    /// All terms together. A term that is a truth counts for 1 or 0.
    Sum(Vec<Term>),
    /// No less than the first and no more than the second, which are known at the same cuts.
    Between(Box<[Node; 2]>),
    /// An operation on two numbers.
    Arithmetic(Operator, Box<[Node; 2]>),
}

/// A term of a sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Whether it is subtracted.
    pub is_negative: bool,
    /// What is added or subtracted.
    pub node: Node,
}

impl Node {
    pub(super) const fn truth(truth: bool) -> Self {
        Self::Constant(Some(truth as i64))
    }

    /// What is known of it if each leaf has the value that `leaf` returns.
    pub(super) fn range(&self, leaf: &impl Fn(LeafId) -> Option<i64>) -> Option<Range> {
        match self {
            Self::Constant(value) => value.map(Range::exact),
            Self::Leaf(id) => leaf(*id).map(Range::exact),
            Self::Not(inner) => Some(truth(inner.range(leaf)).opposite()),
            Self::All(parts) => Some(joined(parts, 0, leaf)),
            Self::Any(parts) => Some(joined(parts, 1, leaf)),
            Self::Compare(comparison, sides) => {
                let [left, right] = sides.as_ref();
                compared(*comparison, left.range(leaf), right.range(leaf))
            }
            Self::Sum(terms) => {
                let mut sum = (0_i128, 0_i128);
                for Term { is_negative, node } in terms {
                    let (low, high) = node.range(leaf)?.added(*is_negative);
                    sum = (sum.0 + low, sum.1 + high);
                }
                Range::fitting(sum.0, sum.1)
            }
            Self::Between(ends) => {
                let [low, high] = ends.as_ref();
                Some(Range { low: low.range(leaf)?.low, high: high.range(leaf)?.high })
            }
            Self::Arithmetic(operator, sides) => {
                let [left, right] = sides.as_ref();
                combined(*operator, left.range(leaf), right.range(leaf))
            }
        }
    }

    /// Its value, if that is known exactly.
    pub(super) fn value(&self, leaf: &impl Fn(LeafId) -> Option<i64>) -> Option<i64> {
        self.range(leaf).and_then(Range::value)
    }

    /// What is known of it, if it is the same always.
    pub(super) fn as_constant(&self) -> Option<Option<Range>> {
        match self {
            Self::Constant(value) => Some(value.map(Range::exact)),
            Self::Between(ends) => match ends.as_ref() {
                [Self::Constant(low), Self::Constant(high)] => {
                    Some((*low).zip(*high).map(|(low, high)| Range { low, high }))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// What is always so.
    pub(super) fn constant(range: Option<Range>) -> Self {
        match range {
            Some(Range { low, high }) if low != high => {
                Self::Between(Box::new([low, high].map(|end| Self::Constant(Some(end)))))
            }
            exact => Self::Constant(exact.map(|range| range.low)),
        }
    }

    /// What it is within wherever it is known, if that is known and always fits.
    pub(super) fn bounds<C>(&self, leaves: &IndexVec<LeafId, Leaf<C>>) -> Option<Range> {
        match self {
            Self::Constant(value) => value.map(Range::exact),
            Self::Leaf(id) => match &leaves[*id] {
                Leaf::Local(local) => local.steps.range(),
                Leaf::Shared(_) => None,
            },
            Self::Not(_) | Self::All(_) | Self::Any(_) | Self::Compare(..) => Some(Range::EITHER),
            Self::Between(ends) => {
                let [low, high] = [ends[0].bounds(leaves)?, ends[1].bounds(leaves)?];
                Some(Range { low: low.low, high: high.high })
            }
            Self::Sum(terms) => bounds_of_sum(terms, leaves),
            Self::Arithmetic(Operator::Times, sides) => {
                let [left, right] = sides.as_ref();
                combined(Operator::Times, left.bounds(leaves), right.bounds(leaves))
            }
            Self::Arithmetic(..) => None,
        }
    }

    /// Its parts.
    pub(super) fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Constant(_) | Self::Leaf(_) => Vec::new(),
            Self::Not(inner) => vec![inner],
            Self::All(parts) | Self::Any(parts) => parts.iter().collect(),
            Self::Compare(_, sides) | Self::Arithmetic(_, sides) | Self::Between(sides) => {
                sides.iter().collect()
            }
            Self::Sum(terms) => terms.iter().map(|term| &term.node).collect(),
        }
    }

    /// Hands each leaf in it to `visit`.
    pub(super) fn visit_leaves(&self, visit: &mut impl FnMut(LeafId)) {
        if let Self::Leaf(id) = self {
            visit(*id);
        }
        for part in self.parts() {
            part.visit_leaves(visit);
        }
    }

    /// The same with what `of` says in the place of each leaf.
    pub(super) fn substituted(&self, of: &impl Fn(LeafId) -> Self) -> Self {
        let both =
            |[left, right]: &[Self; 2]| Box::new([left.substituted(of), right.substituted(of)]);
        match self {
            Self::Constant(_) => self.clone(),
            Self::Leaf(id) => of(*id),
            Self::Not(inner) => Self::Not(Box::new(inner.substituted(of))),
            Self::All(parts) => Self::All(parts.iter().map(|part| part.substituted(of)).collect()),
            Self::Any(parts) => Self::Any(parts.iter().map(|part| part.substituted(of)).collect()),
            Self::Compare(comparison, sides) => Self::Compare(*comparison, both(sides)),
            Self::Arithmetic(operator, sides) => Self::Arithmetic(*operator, both(sides)),
            Self::Between(sides) => Self::Between(both(sides)),
            Self::Sum(terms) => {
                let term = |Term { is_negative, node }: &Term| Term {
                    is_negative: *is_negative,
                    node: node.substituted(of),
                };
                Self::Sum(terms.iter().map(term).collect())
            }
        }
    }
}

/// What a sum is within wherever it is known, if that is known and always fits.
pub(super) fn bounds_of_sum<C>(
    terms: &[Term],
    leaves: &IndexVec<LeafId, Leaf<C>>,
) -> Option<Range> {
    let mut sum = (0_i128, 0_i128);
    for Term { is_negative, node } in terms {
        let (low, high) = node.bounds(leaves)?.added(*is_negative);
        sum = (sum.0 + low, sum.1 + high);
    }
    Range::fitting(sum.0, sum.1)
}

/// A conjunction if `decisive` is 0, a disjunction if it is 1.
fn joined(parts: &[Node], decisive: i64, leaf: &impl Fn(LeafId) -> Option<i64>) -> Range {
    let mut is_known = true;
    for part in parts {
        match truth(part.range(leaf)).value() {
            Some(value) if value == decisive => return Range::exact(decisive),
            Some(_) => {}
            None => is_known = false,
        }
    }
    if is_known { Range::exact(1 - decisive) } else { Range::EITHER }
}

/// What depends on one thread, or chain, alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local<C> {
    /// The thread or chain.
    pub owner: C,
    /// The value by how many events it has run.
    pub steps: Steps,
}

/// The value of a variable that several threads write: that of the latest write, in observed
/// order, that a cut holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared<C> {
    /// The variable.
    pub var: VarId,
    /// The value before any write.
    pub initial: Option<i64>,
    /// Who writes it.
    pub writers: Vec<Writer<C>>,
}

/// The writes of a variable by one thread, or chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer<C> {
    /// The thread or chain.
    pub owner: C,
    /// Its writes, in its order.
    pub writes: Vec<Write>,
}

/// A write of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// How many events its thread or chain has run with it.
    pub count: u32,
    /// The write.
    pub event: EventId,
    /// The value, if it is known.
    pub value: Option<i64>,
}

impl<C: Id> Writer<C> {
    /// The last write when `count` events have run.
    #[must_use]
    pub fn last(&self, count: u32) -> Option<&Write> {
        let before = self.writes.partition_point(|write| write.count <= count);
        self.writes[..before].last()
    }
}

/// What an expression is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaf<C> {
    /// Depends on one thread, or chain, alone.
    Local(Local<C>),
    /// A variable that several write.
    Shared(Shared<C>),
}

impl<C: Id> Leaf<C> {
    /// Its value at a cut, which has `at(c)` events of `c`.
    pub fn value(&self, at: impl Fn(C) -> u32) -> Option<i64> {
        match self {
            Self::Local(Local { owner, steps }) => steps.value(at(*owner)),
            Self::Shared(Shared { initial, writers, .. }) => {
                let writes = writers.iter().filter_map(|writer| writer.last(at(writer.owner)));
                writes.max_by_key(|write| write.event).map_or(*initial, |write| write.value)
            }
        }
    }

    /// Whether it is known at some cut.
    #[must_use]
    pub fn is_ever_known(&self) -> bool {
        match self {
            Self::Local(local) => local.steps.as_constant() != Some(None),
            Self::Shared(Shared { initial, writers, .. }) => {
                let mut writes = writers.iter().flat_map(|writer| &writer.writes);
                initial.is_some() || writes.any(|write| write.value.is_some())
            }
        }
    }

    /// Whether it is known at every cut.
    #[must_use]
    pub fn is_known(&self) -> bool {
        match self {
            Self::Local(local) => local.steps.is_known(),
            Self::Shared(Shared { initial, writers, .. }) => {
                let mut writes = writers.iter().flat_map(|writer| &writer.writes);
                initial.is_some() && writes.all(|write| write.value.is_some())
            }
        }
    }

    /// The threads, or chains, that it depends on.
    pub fn owners(&self) -> impl Iterator<Item = C> {
        let (local, writers) = match self {
            Self::Local(local) => (Some(local.owner), &[][..]),
            Self::Shared(shared) => (None, shared.writers.as_slice()),
        };
        local.into_iter().chain(writers.iter().map(|writer| writer.owner))
    }

    /// For each of those the numbers of events at which its value may change.
    pub(super) fn changes(&self) -> Vec<(C, u32)> {
        match self {
            Self::Local(Local { owner, steps }) => {
                steps.changes().iter().map(|&count| (*owner, count)).collect()
            }
            Self::Shared(Shared { writers, .. }) => writers
                .iter()
                .flat_map(|writer| writer.writes.iter().map(|write| (writer.owner, write.count)))
                .collect(),
        }
    }
}

/// An expression and its leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression<C = ThreadId> {
    /// The expression.
    pub root: Node,
    /// What it is made of.
    pub leaves: IndexVec<LeafId, Leaf<C>>,
}

impl<C: Id> Expression<C> {
    /// Its value at a cut, which has `at(c)` events of `c`.
    pub fn value(&self, at: impl Fn(C) -> u32) -> Option<i64> {
        self.root.value(&|leaf| self.leaves[leaf].value(&at))
    }

    /// The threads, or chains, that it depends on, in order.
    #[must_use]
    pub fn owners(&self) -> Vec<C> {
        let mut owners: Vec<C> = self.leaves.iter().flat_map(Leaf::owners).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// The same over chains: `place` gives the chain of a thread and, for each number of the
    /// chain's events, how many the thread has run with them. A thread without a chain has run
    /// nothing.
    pub(super) fn placed<'p, D: Id>(
        &self,
        place: &impl Fn(C) -> Option<(D, &'p [u32])>,
    ) -> Expression<D> {
        let mut leaves = IndexVec::new();
        let mut nodes = IndexVec::<LeafId, Node>::new();
        for leaf in self.leaves.iter() {
            let placed = match leaf {
                Leaf::Local(Local { owner, steps }) => place(*owner).map(|(owner, counts)| {
                    Leaf::Local(Local { owner, steps: steps.placed(counts) })
                }),
                Leaf::Shared(shared) => Some(Leaf::Shared(Shared {
                    var: shared.var,
                    initial: shared.initial,
                    writers: shared.writers.iter().filter_map(|own| own.placed(place)).collect(),
                })),
            };
            nodes.push(match placed {
                Some(placed) => Node::Leaf(leaves.push(placed)),
                None => Node::Constant(leaf.value(|_| 0)),
            });
        }
        Expression { root: self.root.substituted(&|id| nodes[id].clone()), leaves }
    }
}

impl<C: Id> Writer<C> {
    fn placed<'p, D: Id>(&self, place: &impl Fn(C) -> Option<(D, &'p [u32])>) -> Option<Writer<D>> {
        let (owner, counts) = place(self.owner)?;
        let placed = |write: &Write| {
            let index = counts.partition_point(|&count| count < write.count);
            (index < counts.len()).then_some(Write { count: index as u32, ..*write })
        };
        Some(Writer { owner, writes: self.writes.iter().filter_map(placed).collect() })
    }
}

/// A value for each number of events that a thread, or a chain, has run: none where it is not
/// known. Kept by where it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// From which numbers on there is another value; the first is 0.
    starts: Vec<u32>,
    values: Vec<Option<i64>>,
}

impl Steps {
    /// The same value always.
    #[must_use]
    pub fn constant(value: Option<i64>) -> Self {
        Self { starts: vec![0], values: vec![value] }
    }

    /// From `start` on, which no change is after, the value is `value`.
    pub(super) fn push(&mut self, start: u32, value: Option<i64>) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.values.pop();
        }
        if self.values.last() != Some(&value) {
            self.starts.push(start);
            self.values.push(value);
        }
    }

    /// The value when `count` events have run.
    #[inline]
    #[must_use]
    pub fn value(&self, count: u32) -> Option<i64> {
        self.values[self.starts.partition_point(|&start| start <= count) - 1]
    }

    /// The numbers of events from which on the value is another, in ascending order, 0 left out.
    #[must_use]
    pub fn changes(&self) -> &[u32] {
        &self.starts[1..]
    }

    /// The values with the number of events from which on each holds, the first 0.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (u32, Option<i64>)> {
        self.starts.iter().copied().zip(self.values.iter().copied())
    }

    /// The value, if it never changes.
    #[must_use]
    pub fn as_constant(&self) -> Option<Option<i64>> {
        if let [only] = self.values.as_slice() { Some(*only) } else { None }
    }

    /// Whether the value is known everywhere.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.values.iter().all(Option::is_some)
    }

    /// Whether no known value is below one before it.
    #[must_use]
    pub fn is_nondecreasing(&self) -> bool {
        let known: Vec<i64> = self.values.iter().copied().flatten().collect();
        known.is_sorted()
    }

    /// The least and the greatest known value.
    #[must_use]
    pub(super) fn range(&self) -> Option<Range> {
        let known = || self.values.iter().copied().flatten();
        Some(Range { low: known().min()?, high: known().max()? })
    }

    /// The least number of events, from `from` on, at which the value is known to be at least
    /// `least`.
    #[must_use]
    pub fn next_at_least(&self, from: u32, least: i64) -> Option<u32> {
        let at = self.starts.partition_point(|&start| start <= from) - 1;
        let found = (at..self.values.len()).find(|&at| self.values[at] >= Some(least))?;
        Some(self.starts[found].max(from))
    }

    /// The same for a chain of which event number i, from 1 on, is that after which the thread has
    /// run `counts[i]` events; `counts[0]` is 0. Every change must be at such an event.
    #[must_use]
    pub fn placed(&self, counts: &[u32]) -> Self {
        let mut placed = Self::constant(self.values[0]);
        for (start, value) in self.entries() {
            let index = counts.partition_point(|&count| count < start);
            if index < counts.len() {
                placed.push(index as u32, value);
            }
        }
        placed
    }

    /// The value for each number of events up to `length`.
    #[must_use]
    pub fn tabulated(&self, length: u32) -> Vec<Option<i64>> {
        let mut table = Vec::with_capacity(length as usize + 1);
        for (at, &value) in self.values.iter().enumerate() {
            let end = self.starts.get(at + 1).map_or(length + 1, |&end| end.min(length + 1));
            table.resize((end as usize).max(table.len()), value);
        }
        table
    }

    /// What `of` makes of each value.
    pub(super) fn mapped(&self, mut of: impl FnMut(Option<i64>) -> Option<i64>) -> Self {
        let mut mapped = Self::constant(of(self.values[0]));
        for (start, value) in self.entries() {
            mapped.push(start, of(value));
        }
        mapped
    }
}

/// What `of` makes of the values of all `steps`, in their order, at each number of events.
pub(super) fn combined_steps(
    steps: &[&Steps],
    mut of: impl FnMut(&[Option<i64>]) -> Option<i64>,
) -> Steps {
    let mut changes: Vec<u32> =
        steps.iter().flat_map(|steps| steps.changes().iter().copied()).collect();
    changes.sort_unstable();
    changes.dedup();
    let mut places = vec![0; steps.len()];
    let mut values: Vec<Option<i64>> = steps.iter().map(|steps| steps.values[0]).collect();
    let mut result = Steps::constant(of(&values));
    for start in changes {
        for ((steps, place), value) in steps.iter().zip(&mut places).zip(&mut values) {
            if steps.starts.get(*place + 1) == Some(&start) {
                *place += 1;
                *value = steps.values[*place];
            }
        }
        result.push(start, of(&values));
    }
    result
}

/// What is known of a number or a truth at a state: the least and the greatest that it can be.
///
/// A truth that is not known is 0 or 1, so that a count of truths is known to lie between two
/// numbers. A number that is not known may be anything, and so may what is computed from it. A
/// range is that of all results, except that a quotient by a number that is not known exactly, and
/// a remainder of or by one, may be anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Range {
    pub(super) low: i64,
    pub(super) high: i64,
}

impl Range {
    /// Either truth.
    pub(super) const EITHER: Self = Self { low: 0, high: 1 };

    pub(super) const fn exact(value: i64) -> Self {
        Self { low: value, high: value }
    }

    pub(super) const fn truth(truth: bool) -> Self {
        Self::exact(truth as i64)
    }

    /// The range between two numbers, if they fit.
    pub(super) fn fitting(low: i128, high: i128) -> Option<Self> {
        Some(Self { low: i64::try_from(low).ok()?, high: i64::try_from(high).ok()? })
    }

    /// What it is, if it is one number.
    pub(super) const fn value(self) -> Option<i64> {
        if self.low == self.high { Some(self.low) } else { None }
    }

    /// The opposite of a truth.
    pub(super) const fn opposite(self) -> Self {
        Self { low: 1 - self.high, high: 1 - self.low }
    }

    /// A term of a sum: the least and the greatest that it adds.
    pub(super) fn added(self, is_negative: bool) -> (i128, i128) {
        let (low, high) = (i128::from(self.low), i128::from(self.high));
        if is_negative { (-high, -low) } else { (low, high) }
    }
}

/// A truth, of which nothing needs to be known.
pub(super) fn truth(range: Option<Range>) -> Range {
    range.unwrap_or(Range::EITHER)
}

/// Whether two compare so: true or false if any two numbers of theirs do.
pub(super) fn compared(
    comparison: Comparison,
    left: Option<Range>,
    right: Option<Range>,
) -> Option<Range> {
    let (Some(left), Some(right)) = (left, right) else { return Some(Range::EITHER) };
    Some(match (surely(comparison, left, right), surely(comparison.inverse(), left, right)) {
        (true, _) => Range::truth(true),
        (false, true) => Range::truth(false),
        (false, false) => Range::EITHER,
    })
}

/// Whether all numbers of two ranges compare so.
fn surely(comparison: Comparison, left: Range, right: Range) -> bool {
    match comparison {
        Comparison::Equal => left.low == right.high && left.high == right.low,
        Comparison::Unequal => left.high < right.low || left.low > right.high,
        Comparison::Less => left.high < right.low,
        Comparison::AtMost => left.high <= right.low,
        Comparison::More => left.low > right.high,
        Comparison::AtLeast => left.low >= right.high,
    }
}

/// What `operator` makes of two numbers.
pub(super) fn combined(
    operator: Operator,
    left: Option<Range>,
    right: Option<Range>,
) -> Option<Range> {
    let (left, right) = (left?, right?);
    match (operator, left.value(), right.value()) {
        (_, Some(left), Some(right)) => operator.apply(left, right).map(Range::exact),
        (Operator::Times, ..) => {
            let product = |left: i64, right: i64| i128::from(left) * i128::from(right);
            let corners = [
                product(left.low, right.low),
                product(left.low, right.high),
                product(left.high, right.low),
                product(left.high, right.high),
            ];
            Range::fitting(*corners.iter().min()?, *corners.iter().max()?)
        }
        // Rounding towards zero keeps the order, or turns it round.
        (Operator::Over, None, Some(divisor)) => {
            let ends = [left.low.checked_div(divisor)?, left.high.checked_div(divisor)?];
            Some(Range { low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) })
        }
        (Operator::Over, _, None) | (Operator::Modulo, ..) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranges() -> impl Strategy<Value = Range> {
        (-6..7_i64, 0..4_i64).prop_map(|(low, width)| Range { low, high: low + width })
    }

    fn within(range: Range) -> std::ops::RangeInclusive<i64> {
        range.low..=range.high
    }

    proptest! {
        #[test]
        fn a_comparison_is_decided_exactly_if_all_numbers_decide_it_alike(
            left in ranges(),
            right in ranges(),
            comparison in prop::sample::select(vec![
                Comparison::Equal, Comparison::Unequal, Comparison::Less,
                Comparison::AtMost, Comparison::More, Comparison::AtLeast,
            ]),
        ) {
            let pairs = || within(left).flat_map(|one| within(right).map(move |other| (one, other)));
            let holds = |(one, other): (i64, i64)| comparison.holds(one, other);
            let decided = truth(compared(comparison, Some(left), Some(right))).value();
            let expected = match (pairs().all(holds), pairs().any(holds)) {
                (true, _) => Some(1),
                (false, true) => None,
                (false, false) => Some(0),
            };
            prop_assert_eq!(decided, expected);
        }

        #[test]
        fn a_range_has_all_results_and_its_ends_are_among_them(
            left in ranges(),
            right in ranges(),
            operator in prop::sample::select(vec![Operator::Times, Operator::Over]),
        ) {
            let Some(range) = combined(operator, Some(left), Some(right)) else {
                let is_unsure = right.value().is_none_or(|divisor| divisor == 0);
                prop_assert!(operator == Operator::Over && is_unsure);
                return Ok(());
            };
            let results: Vec<i64> = within(left)
                .flat_map(|one| within(right).filter_map(move |other| operator.apply(one, other)))
                .collect();
            prop_assert_eq!(results.iter().min(), Some(&range.low));
            prop_assert_eq!(results.iter().max(), Some(&range.high));
        }
    }

    #[test]
    fn what_does_not_fit_may_be_anything() {
        let large = Range { low: 1, high: i64::MAX };
        assert_eq!(combined(Operator::Times, Some(large), Some(Range::exact(2))), None);
        let least = Range { low: i64::MIN, high: 0 };
        assert_eq!(combined(Operator::Over, Some(least), Some(Range::exact(-1))), None);
        assert_eq!(compared(Comparison::Less, None, Some(large)), Some(Range::EITHER));
    }
}
