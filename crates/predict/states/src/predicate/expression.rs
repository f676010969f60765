//! Expressions over what changes as threads run, and what they are worth at a cut.
//!
//! A value is a number, or none if it is not known; a truth is 1 or 0. Logic goes by Kleene: a
//! conjunction with a false part is false, whatever is not known of the rest. A truth that is not known
//! counts for 0 or 1 in a sum, which then lies between two numbers, and a comparison is true or
//! false if it is of all numbers in between. Otherwise arithmetic and comparisons need all their
//! parts. A sum is exact, in whatever order its terms are, and is not known only if it does not fit as
//! a whole; a product that does not fit, and a division by zero, are not known.

use reweave_base::{Id, IndexVec};
use reweave_trace::{EventId, ThreadId, VarId};

use super::range::{self, Range};
use super::steps::Steps;

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
    /// Whether it is taken away.
    pub is_negative: bool,
    /// What is added or taken away.
    pub node: Node,
}

impl Node {
    pub(super) const fn truth(truth: bool) -> Self {
        Self::Constant(Some(truth as i64))
    }

    /// What is known of it if each leaf is worth what `leaf` says.
    pub(super) fn range(&self, leaf: &impl Fn(LeafId) -> Option<i64>) -> Option<Range> {
        match self {
            Self::Constant(value) => value.map(Range::exact),
            Self::Leaf(id) => leaf(*id).map(Range::exact),
            Self::Not(inner) => Some(range::truth(inner.range(leaf)).opposite()),
            Self::All(parts) => Some(joined(parts, 0, leaf)),
            Self::Any(parts) => Some(joined(parts, 1, leaf)),
            Self::Compare(comparison, sides) => {
                let [left, right] = sides.as_ref();
                range::compared(*comparison, left.range(leaf), right.range(leaf))
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
                range::combined(*operator, left.range(leaf), right.range(leaf))
            }
        }
    }

    /// What it is worth, if that is known exactly.
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
            Self::Leaf(_)
            | Self::Not(_)
            | Self::All(_)
            | Self::Any(_)
            | Self::Compare(..)
            | Self::Sum(_)
            | Self::Arithmetic(..) => None,
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

/// A conjunction if `decisive` is 0, a disjunction if it is 1.
fn joined(parts: &[Node], decisive: i64, leaf: &impl Fn(LeafId) -> Option<i64>) -> Range {
    let mut is_known = true;
    for part in parts {
        match range::truth(part.range(leaf)).value() {
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
    /// What it is worth at a cut, which holds `at(c)` events of `c`.
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

    /// For each of those the numbers of events from which on it may be worth something else.
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
    /// What it is worth at a cut, which holds `at(c)` events of `c`.
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

    /// The same over chains: `place` gives the chain of a thread and, for each number of the chain's
    /// events, how many the thread has run with them. A thread without a chain has run nothing.
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
