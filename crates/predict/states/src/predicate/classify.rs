//! Classes of goals: what can be decided without enumerating states.
//!
//! | class | a goal that is | so that |
//! | --- | --- | --- |
//! | [`Class::Constant`] | met everywhere or nowhere | nothing is to be done |
//! | [`Class::Pairwise`] | `race` | pairs of events are compared |
//! | [`Class::Conjunctive`] | one of some conjunctions of truths of one thread each | each has a least state, by Garg and Waldecker |
//! | [`Class::Linear`] | the same with comparisons between two threads, either side of which only grows | each has a least state, by Chase and Garg |
//! | [`Class::Sum`] | a sum, one term per thread, compared with a number | nodes of the decision diagram carry a number |
//! | [`Class::Stable`] | met by every state after one that meets it | the last state decides |
//! | [`Class::Fold`] | anything else | nodes carry what is known so far: [`PredicateFold`](super::PredicateFold) |
//!
//! Whatever its class, a goal can also be asked of each state. The class is found from the tables
//! of *this* trace: `x == 3` is a truth of one thread if one thread writes x, and `x <= y` is
//! linear if both only grow. A state meets what the class says exactly if it meets the goal.
//!
//! The first that fits, in the order above, is taken; [`is_stable`] is asked of any class.

use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

use super::expression::{
    Comparison, Expression, Leaf, Local, Node, Operator, Range, Steps, Term, combined_steps,
};
use crate::detect::{Forbidden, Truths};

/// The most conjunctions that are tried, one by one.
const CONJUNCTIONS_MAX: usize = 64;

/// What a goal is, with what its algorithm needs. Over threads and the events of a trace, or over
/// chains and those of a poset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class<C> {
    /// Met by every state or by none.
    Constant(bool),
    /// Two events that race.
    Pairwise,
    /// Met by what meets one of these, none of which has an order.
    Conjunctive(Vec<Conjunction<C>>),
    /// Met by what meets one of these.
    Linear(Vec<Conjunction<C>>),
    /// Met by what the sum holds of.
    Sum(Sum<C>),
    /// Met by every state after one that meets it.
    Stable,
    /// Anything else.
    Fold,
}

/// Truths and comparisons that must all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conjunction<C> {
    /// For some threads where their own truth holds, 1 or 0; at most one per thread, in order.
    pub locals: Vec<Local<C>>,
    /// What must not be more than what.
    pub orders: Vec<Order<C>>,
}

/// The value of one thread is at most that of another. Both only grow, where they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order<C> {
    /// Which is at most the other.
    pub low: Local<C>,
    /// Which is at least the other.
    pub high: Local<C>,
}

/// A sum compared with a number. Where a term is not known, it does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum<C> {
    /// The terms, one per thread.
    pub terms: Vec<Local<C>>,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what.
    pub bound: i64,
}

impl<C: Id> Conjunction<C> {
    const fn empty() -> Self {
        Self { locals: Vec::new(), orders: Vec::new() }
    }

    /// Whether it holds at a cut, which holds `at(c)` events of `c`.
    pub fn is_met(&self, at: impl Fn(C) -> u32) -> bool {
        let value = |local: &Local<C>| local.steps.value(at(local.owner));
        self.locals.iter().all(|local| value(local) == Some(1))
            && self.orders.iter().all(|order| match (value(&order.low), value(&order.high)) {
                (Some(low), Some(high)) => low <= high,
                _ => false,
            })
    }

    /// Both; none if that never holds.
    fn and(&self, other: &Self) -> Option<Self> {
        let mut both = self.clone();
        for local in &other.locals {
            match both.locals.binary_search_by_key(&local.owner, |own| own.owner) {
                Ok(at) => {
                    let own = &both.locals[at].steps;
                    let steps = combined_steps(&[own, &local.steps], |values| {
                        Some(i64::from(values.iter().all(|value| *value == Some(1))))
                    });
                    if steps.as_constant() == Some(Some(0)) {
                        return None;
                    }
                    both.locals[at].steps = steps;
                }
                Err(at) => both.locals.insert(at, local.clone()),
            }
        }
        both.orders.extend_from_slice(&other.orders);
        Some(both)
    }
}

impl Conjunction<ChainId> {
    /// For each chain of `poset` the numbers of its events at which its truth holds.
    #[must_use]
    pub fn truths(&self, poset: &Poset) -> Vec<Truths> {
        let mut truths = vec![None; poset.chains_count()];
        for Local { owner, steps } in &self.locals {
            let table = steps.tabulated(poset.length(*owner));
            let held = table.iter().zip(0..).filter(|&(value, _)| *value == Some(1));
            truths[owner.index()] = Some(held.map(|(_, index)| index).collect());
        }
        truths
    }

    /// A chain that has to advance before this can hold, if it does not at `cut`; as far as it
    /// must, or further than any chain if that is of no use.
    #[must_use]
    pub fn forbidden(&self, cut: &[u32]) -> Option<Forbidden> {
        let must = |local: &Local<ChainId>, least: i64| {
            let index = cut[local.owner.index()];
            let until = local.steps.next_at_least(index, least).unwrap_or(u32::MAX);
            (until > index).then_some(Forbidden { chain: local.owner, until })
        };
        let own = self.locals.iter().find_map(|local| must(local, 1));
        own.or_else(|| {
            self.orders.iter().find_map(|Order { low, high }| {
                // Where it is not known, a truth of its own did not hold.
                must(high, low.steps.value(cut[low.owner.index()])?)
            })
        })
    }
}

impl<C: Id> Sum<C> {
    /// Whether it holds at a cut, which holds `at(c)` events of `c`.
    pub fn is_met(&self, at: impl Fn(C) -> u32) -> bool {
        let value = |local: &Local<C>| local.steps.value(at(local.owner));
        let sum: Option<i64> = self.terms.iter().map(value).sum();
        sum.is_some_and(|sum| self.comparison.holds(sum, self.bound))
    }
}

/// The class of `goal`.
pub(super) fn classify<C: Id>(goal: &Expression<C>) -> Class<C> {
    if let Node::Constant(value) = goal.root {
        return Class::Constant(value == Some(1));
    }
    let classifier = Classifier { goal };
    if let Some(conjunctions) = classifier.alternatives(&goal.root) {
        return match conjunctions.iter().all(|one| one.orders.is_empty()) {
            true if conjunctions.is_empty() => Class::Constant(false),
            true => Class::Conjunctive(conjunctions),
            false => Class::Linear(conjunctions),
        };
    }
    match classifier.sum(&goal.root) {
        Some(sum) => Class::Sum(sum),
        None if classifier.stays(&goal.root) => Class::Stable,
        None => Class::Fold,
    }
}

/// Whether every state after one that meets `goal` meets it too, as far as the tables tell.
pub(super) fn is_stable<C: Id>(goal: &Expression<C>) -> bool {
    Classifier { goal }.stays(&goal.root)
}

struct Classifier<'e, C> {
    goal: &'e Expression<C>,
}

impl<C: Id> Classifier<'_, C> {
    /// Whether `node`, once true, stays true.
    fn stays(&self, node: &Node) -> bool {
        match node {
            Node::Constant(_) => true,
            Node::Leaf(id) => match &self.goal.leaves[*id] {
                Leaf::Local(local) => local.steps.is_known() && local.steps.is_nondecreasing(),
                Leaf::Shared(_) => false,
            },
            Node::All(parts) | Node::Any(parts) => parts.iter().all(|part| self.stays(part)),
            Node::Compare(comparison, _) => self.sum(node).is_some_and(|sum| {
                let grows = |steps: &Steps| steps.is_known() && steps.is_nondecreasing();
                match comparison {
                    Comparison::AtLeast | Comparison::More => {
                        sum.terms.iter().all(|term| grows(&term.steps))
                    }
                    Comparison::AtMost | Comparison::Less => sum.terms.iter().all(|term| {
                        grows(&term.steps.mapped(|value| value.and_then(i64::checked_neg)))
                    }),
                    Comparison::Equal | Comparison::Unequal => false,
                }
            }),
            Node::Not(_) | Node::Sum(_) | Node::Between(_) | Node::Arithmetic(..) => false,
        }
    }

    /// The conjunctions one of which `node` is met by, if they are few.
    fn alternatives(&self, node: &Node) -> Option<Vec<Conjunction<C>>> {
        match node {
            Node::Constant(Some(1)) => Some(vec![Conjunction::empty()]),
            Node::Constant(_) => Some(Vec::new()),
            Node::Leaf(id) => match &self.goal.leaves[*id] {
                Leaf::Local(local) => {
                    Some(vec![Conjunction { locals: vec![local.clone()], orders: Vec::new() }])
                }
                Leaf::Shared(_) => None,
            },
            Node::All(parts) => {
                let mut all = vec![Conjunction::empty()];
                for part in parts {
                    let own = self.alternatives(part)?;
                    if all.len() * own.len() > CONJUNCTIONS_MAX {
                        return None;
                    }
                    let pairs =
                        all.iter().flat_map(|one| own.iter().map(move |other| (one, other)));
                    all = pairs.filter_map(|(one, other)| one.and(other)).collect();
                }
                Some(all)
            }
            Node::Any(parts) => {
                let mut any = Vec::new();
                for part in parts {
                    any.extend(self.alternatives(part)?);
                    if any.len() > CONJUNCTIONS_MAX {
                        return None;
                    }
                }
                Some(any)
            }
            Node::Compare(..) => self.sum(node).and_then(|sum| sum.ordered()),
            Node::Not(_) | Node::Sum(_) | Node::Between(_) | Node::Arithmetic(..) => None,
        }
    }

    /// `node` as a sum with a term a thread, if it is a comparison of such and nothing in it can
    /// overflow.
    fn sum(&self, node: &Node) -> Option<Sum<C>> {
        let Node::Compare(comparison, sides) = node else { return None };
        let end = match comparison {
            Comparison::AtLeast | Comparison::More => End::Low,
            Comparison::AtMost | Comparison::Less => End::High,
            Comparison::Equal | Comparison::Unequal => End::Both,
        };
        let mut gathered = Gathered { goal: self.goal, end, terms: Vec::new(), constant: 0 };
        gathered.add(&sides[0], 1)?;
        gathered.add(&sides[1], -1)?;
        let Gathered { mut terms, constant, .. } = gathered;
        terms.sort_by_key(|&(owner, ..)| owner);
        let mut bound = -constant;
        let mut of_threads: Vec<Local<C>> = Vec::new();
        let mut range = (0_i128, 0_i128);
        for group in terms.chunk_by(|one, other| one.0 == other.0) {
            let steps = weighted(group)?;
            if let Some(Some(value)) = steps.as_constant() {
                bound -= i128::from(value);
                continue;
            }
            // What the terms can be, in whatever order, however many of them are added.
            let Range { low, high } = steps.range()?;
            range.0 += i128::from(low.min(0));
            range.1 += i128::from(high.max(0));
            of_threads.push(Local { owner: group[0].0, steps });
        }
        Range::fitting(range.0, range.1)?;
        let bound = i64::try_from(bound).ok()?;
        Some(Sum { terms: of_threads, comparison: *comparison, bound })
    }
}

/// Which end of a sum, that may lie between two numbers, decides how it compares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Low,
    High,
    Both,
}

/// The terms of a sum so far.
struct Gathered<'e, C> {
    goal: &'e Expression<C>,
    end: End,
    terms: Vec<(C, i64, &'e Steps)>,
    constant: i128,
}

impl<C: Id> Gathered<'_, C> {
    /// Adds `node`, `factor` times. None if it is not of the form, or may be unknown for its size.
    fn add(&mut self, node: &Node, factor: i64) -> Option<()> {
        node.bounds(&self.goal.leaves)?;
        match node {
            Node::Constant(value) => {
                self.constant += i128::from((*value)?) * i128::from(factor);
            }
            Node::Leaf(id) => {
                let Leaf::Local(local) = &self.goal.leaves[*id] else { return None };
                self.terms.push((local.owner, factor, &local.steps));
            }
            Node::Sum(terms) => {
                for Term { is_negative, node } in terms {
                    self.add(node, if *is_negative { factor.checked_neg()? } else { factor })?;
                }
            }
            Node::Arithmetic(Operator::Times, sides) => match sides.as_ref() {
                [Node::Constant(Some(times)), node] | [node, Node::Constant(Some(times))] => {
                    self.add(node, factor.checked_mul(*times)?)?;
                }
                _ => return None,
            },
            Node::Between(ends) => match (self.end, factor > 0) {
                (End::Low, true) | (End::High, false) => self.add(&ends[0], factor)?,
                (End::High, true) | (End::Low, false) => self.add(&ends[1], factor)?,
                (End::Both, _) => return None,
            },
            Node::Arithmetic(..) | Node::Not(_) | Node::All(_) | Node::Any(_) => return None,
            Node::Compare(..) => return None,
        }
        Some(())
    }
}

/// Terms of one thread, each so many times, together; none if that does not always fit.
fn weighted<C>(group: &[(C, i64, &Steps)]) -> Option<Steps> {
    let tables: Vec<&Steps> = group.iter().map(|&(_, _, steps)| steps).collect();
    let mut fits = true;
    let steps = combined_steps(&tables, |values| {
        let mut sum = Some(0_i64);
        for (value, &(_, factor, _)) in values.iter().zip(group) {
            let value = (*value)?;
            sum = sum.and_then(|sum| sum.checked_add(factor.checked_mul(value)?));
        }
        fits &= sum.is_some();
        sum
    });
    fits.then_some(steps)
}

impl<C: Id> Sum<C> {
    /// As comparisons between two threads, either side of which only grows, if it is that: the
    /// conjunctions one of which it is.
    fn ordered(&self) -> Option<Vec<Conjunction<C>>> {
        let [one, other] = self.terms.as_slice() else { return None };
        let negated = |steps: &Steps| {
            let bound = self.bound;
            let mut fits = true;
            let steps = steps.mapped(|value| {
                let turned = bound.checked_sub(value?);
                fits &= turned.is_some();
                turned
            });
            fits.then_some(steps)
        };
        // One grows and the other shrinks: `growing + shrinking` is compared with the bound, and so
        // `growing` with what is left of it, which grows.
        let (growing, shrinking) =
            if one.steps.is_nondecreasing() { (one, other) } else { (other, one) };
        let left = Local { owner: shrinking.owner, steps: negated(&shrinking.steps)? };
        if !growing.steps.is_nondecreasing() || !left.steps.is_nondecreasing() {
            return None;
        }
        let known: Vec<Local<C>> = [growing, &left].into_iter().filter_map(where_known).collect();
        let conjunction = |orders: Vec<Option<Order<C>>>| {
            let mut locals = known.clone();
            locals.sort_by_key(|local| local.owner);
            Some(Conjunction { locals, orders: orders.into_iter().collect::<Option<_>>()? })
        };
        let at_most = |low: &Local<C>, high: &Local<C>, by: i64| {
            let mut fits = true;
            let steps = low.steps.mapped(|value| {
                let more = value?.checked_add(by);
                fits &= more.is_some();
                more
            });
            let low = Local { owner: low.owner, steps };
            fits.then(|| Order { low, high: high.clone() })
        };
        let (below, above) = (at_most(growing, &left, 0), at_most(&left, growing, 0));
        let (under, over) = (at_most(growing, &left, 1), at_most(&left, growing, 1));
        Some(match self.comparison {
            Comparison::AtMost => vec![conjunction(vec![below])?],
            Comparison::AtLeast => vec![conjunction(vec![above])?],
            Comparison::Less => vec![conjunction(vec![under])?],
            Comparison::More => vec![conjunction(vec![over])?],
            Comparison::Equal => vec![conjunction(vec![below, above])?],
            Comparison::Unequal => vec![conjunction(vec![under])?, conjunction(vec![over])?],
        })
    }
}

/// Where `local` is known, if that is not everywhere.
fn where_known<C: Id>(local: &Local<C>) -> Option<Local<C>> {
    let steps = local.steps.mapped(|value| Some(i64::from(value.is_some())));
    steps.as_constant().is_none().then_some(Local { owner: local.owner, steps })
}
