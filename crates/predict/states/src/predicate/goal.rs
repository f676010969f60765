//! The goal of a predicate: what a search looks for, simplified.
//!
//! A state meets the goal if the predicate is certainly true there, or certainly false if that is
//! what is looked for. The goal is partially evaluated:
//!
//! - negations are moved inwards, down to comparisons and leaves. Then an unknown part is as good as
//!   a false one, since the whole must be certainly true;
//! - what depends on one thread alone becomes a single leaf, a table over that thread's events,
//!   however large it was;
//! - what is the same everywhere becomes a constant and is folded;
//! - of a count, some of whose truths may not be known, only the end that decides is kept: at least
//!   two are true if at least two certainly are.
//!
//! A state meets the goal exactly if it meets the predicate. Only the events at which a leaf
//! changes matter; they are often far fewer than those at which an atom of the predicate does.
//!
//! Costs, for each table, the changes of its parts times their number. What would cost too much
//! time or memory stays as it is, which is correct too but slower at each state.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::ThreadId;

use super::expression::{
    Comparison, Expression, Leaf, LeafId, Local, Node, Range, Steps, Term, bounds_of_sum,
    combined_steps, compared,
};

/// The most evaluations of leaves that are spent on tables.
const WORK_MAX: u64 = 1 << 28;

/// The most changes of value that tables keep.
const CHANGES_MAX: usize = 1 << 24;

/// The goal of `expression`: that it is certainly `wanted`.
pub(super) fn goal(expression: &Expression, wanted: bool) -> Expression {
    goal_within(expression, wanted, WORK_MAX)
}

/// The same with a limit on the work for tables.
fn goal_within(expression: &Expression, wanted: bool, work_max: u64) -> Expression {
    let mut reducer = Reducer {
        from: expression,
        leaves: IndexVec::new(),
        taken: FxHashMap::default(),
        work_left: work_max,
        changes: 0,
    };
    let root = reducer.goal(&expression.root, wanted);
    compact(&root, &reducer.leaves)
}

/// The expression with only those of `leaves` that `root` has.
fn compact(root: &Node, leaves: &IndexVec<LeafId, Leaf<ThreadId>>) -> Expression {
    let mut renamed: IndexVec<LeafId, Option<LeafId>> = IndexVec::from_elem(None, leaves.len());
    let mut kept = IndexVec::new();
    root.visit_leaves(&mut |id| {
        if renamed[id].is_none() {
            renamed[id] = Some(kept.push(leaves[id].clone()));
        }
    });
    let rename = |id: LeafId| renamed[id].map_or(Node::Constant(None), Node::Leaf);
    Expression { root: root.substituted(&rename), leaves: kept }
}

/// Which threads a part of an expression depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Support {
    Nobody,
    One(ThreadId),
    Several,
}

struct Reducer<'e> {
    from: &'e Expression,
    leaves: IndexVec<LeafId, Leaf<ThreadId>>,
    /// The leaves that were copied as they are.
    taken: FxHashMap<LeafId, LeafId>,
    /// How much work is left for tables.
    work_left: u64,
    /// How many changes they keep so far.
    changes: usize,
}

impl Reducer<'_> {
    fn support(&self, node: &Node) -> Support {
        let mut support = Support::Nobody;
        node.visit_leaves(&mut |id| {
            let own = match &self.from.leaves[id] {
                Leaf::Local(local) if local.steps.as_constant().is_some() => Support::Nobody,
                Leaf::Local(local) => Support::One(local.owner),
                Leaf::Shared(shared) if shared.writers.is_empty() => Support::Nobody,
                Leaf::Shared(_) => Support::Several,
            };
            support = match (support, own) {
                (one, other) if one == other => one,
                (Support::Nobody, one) | (one, Support::Nobody) => one,
                _ => Support::Several,
            };
        });
        support
    }

    /// What `of` makes of what is known of `node`, if that depends on one thread at most.
    fn table(
        &mut self,
        node: &Node,
        mut of: impl FnMut(Option<Range>) -> Option<i64>,
    ) -> Option<Node> {
        let owner = match self.support(node) {
            Support::Nobody => {
                let range = node.range(&|id| self.from.leaves[id].value(|_| 0));
                return Some(Node::Constant(of(range)));
            }
            Support::One(owner) => owner,
            Support::Several => return None,
        };
        let from = &self.from.leaves;
        let (mut ids, mut evaluations) = (Vec::new(), 0);
        node.visit_leaves(&mut |id| {
            evaluations += 1;
            if let Leaf::Local(_) = from[id] {
                ids.push(id);
            }
        });
        ids.sort_unstable();
        ids.dedup();
        let tables = tables(from, ids.iter().copied());
        if !can_afford(&mut self.work_left, self.changes, &tables, evaluations) {
            return None;
        }
        let steps = combined_steps(&tables, |values| {
            of(node.range(&|id| match ids.binary_search(&id) {
                Ok(at) => values[at],
                // A variable that nobody writes.
                Err(_) => from[id].value(|_| 0),
            }))
        });
        Some(self.local(owner, steps))
    }

    fn local(&mut self, owner: ThreadId, steps: Steps) -> Node {
        match steps.as_constant() {
            Some(value) => Node::Constant(value),
            None => {
                self.changes += steps.changes().len();
                Node::Leaf(self.leaves.push(Leaf::Local(Local { owner, steps })))
            }
        }
    }

    /// A node that is 1 exactly where `node`, a truth, is certainly `wanted`.
    fn goal(&mut self, node: &Node, wanted: bool) -> Node {
        let is_wanted = |range| Some(i64::from(range == Some(Range::truth(wanted))));
        if let Some(table) = self.table(node, is_wanted) {
            return table;
        }
        match node {
            Node::Not(inner) => self.goal(inner, !wanted),
            Node::All(parts) => {
                let parts = parts.iter().map(|part| self.goal(part, wanted)).collect();
                self.joined(parts, wanted)
            }
            Node::Any(parts) => {
                let parts = parts.iter().map(|part| self.goal(part, wanted)).collect();
                self.joined(parts, !wanted)
            }
            Node::Compare(comparison, sides) => {
                let comparison = if wanted { *comparison } else { comparison.inverse() };
                let [left, right] = [self.copied(&sides[0]), self.copied(&sides[1])];
                let (left, right) = self.decisive_ends(comparison, left, right);
                surely(comparison, left, right)
            }
            _ => surely(Comparison::Equal, self.copied(node), Node::truth(wanted)),
        }
    }

    /// A conjunction, or a disjunction, of goals: nested ones are flattened, constants are folded,
    /// and leaves of one thread are combined.
    fn joined(&mut self, parts: Vec<Node>, is_all: bool) -> Node {
        let mut rest = Vec::new();
        let mut locals: Vec<(ThreadId, LeafId)> = Vec::new();
        let opened = parts.into_iter().flat_map(|part| match part {
            Node::All(parts) if is_all => parts,
            Node::Any(parts) if !is_all => parts,
            _ => vec![part],
        });
        for part in opened {
            match part {
                Node::Constant(value) if (value == Some(1)) == is_all => {}
                Node::Constant(_) => return Node::truth(!is_all),
                Node::Leaf(id) => match &self.leaves[id] {
                    Leaf::Local(local) => locals.push((local.owner, id)),
                    Leaf::Shared(_) => rest.push(part),
                },
                _ => rest.push(part),
            }
        }
        locals.sort_unstable();
        let mut joined = Vec::new();
        for group in locals.chunk_by(|one, other| one.0 == other.0) {
            let tables = tables(&self.leaves, group.iter().map(|&(_, id)| id));
            if group.len() == 1
                || !can_afford(&mut self.work_left, self.changes, &tables, tables.len())
            {
                joined.extend(group.iter().map(|&(_, id)| Node::Leaf(id)));
                continue;
            }
            let decisive = Some(i64::from(!is_all));
            let steps = combined_steps(&tables, |values| match values.contains(&decisive) {
                true => decisive,
                false => Some(i64::from(is_all)),
            });
            match self.local(group[0].0, steps) {
                Node::Constant(value) if value == decisive => return Node::truth(!is_all),
                Node::Constant(_) => {}
                leaf => joined.push(leaf),
            }
        }
        joined.append(&mut rest);
        match joined.len() {
            0 => Node::truth(is_all),
            1 => joined.swap_remove(0),
            _ if is_all => Node::All(joined),
            _ => Node::Any(joined),
        }
    }

    /// The same value, whatever it is, unknown or not.
    fn copied(&mut self, node: &Node) -> Node {
        if let Node::Leaf(id) = node {
            return self.taken(*id);
        }
        if let Some(table) = self.exact_table(node) {
            return table;
        }
        match node {
            Node::Constant(_) | Node::Leaf(_) => node.clone(),
            Node::Between(ends) => {
                Node::Between(Box::new([self.copied(&ends[0]), self.copied(&ends[1])]))
            }
            Node::Not(inner) => Node::Not(Box::new(self.copied(inner))),
            Node::All(parts) => Node::All(parts.iter().map(|part| self.copied(part)).collect()),
            Node::Any(parts) => Node::Any(parts.iter().map(|part| self.copied(part)).collect()),
            Node::Compare(comparison, sides) => {
                let sides = [self.copied(&sides[0]), self.copied(&sides[1])];
                Node::Compare(*comparison, Box::new(sides))
            }
            Node::Sum(terms) => self.sum(terms),
            Node::Arithmetic(operator, sides) => {
                let sides = [self.copied(&sides[0]), self.copied(&sides[1])];
                if sides.contains(&Node::Constant(None)) {
                    return Node::Constant(None);
                }
                Node::Arithmetic(*operator, Box::new(sides))
            }
        }
    }

    /// A leaf as it is.
    fn taken(&mut self, id: LeafId) -> Node {
        let leaf = &self.from.leaves[id];
        let constant = match leaf {
            Leaf::Local(local) => local.steps.as_constant(),
            Leaf::Shared(shared) => shared.writers.is_empty().then_some(shared.initial),
        };
        if let Some(value) = constant {
            return Node::Constant(value);
        }
        let leaves = &mut self.leaves;
        Node::Leaf(*self.taken.entry(id).or_insert_with(|| leaves.push(leaf.clone())))
    }

    /// What is known of `node`, if that depends on one thread at most.
    fn exact_table(&mut self, node: &Node) -> Option<Node> {
        let mut is_exact = true;
        let low = self.table(node, |range| {
            is_exact &= range.is_none_or(|range| range.value().is_some());
            range.map(|range| range.low)
        })?;
        if is_exact {
            return Some(low);
        }
        let high = self.table(node, |range| range.map(|range| range.high))?;
        Some(Node::Between(Box::new([low, high])))
    }

    /// The owner and the leaves that are the least and the greatest of `node`, if one thread has
    /// it.
    fn own_ends(&self, node: &Node) -> Option<(ThreadId, [LeafId; 2])> {
        let own = |id: LeafId| match &self.leaves[id] {
            Leaf::Local(local) => Some(local.owner),
            Leaf::Shared(_) => None,
        };
        match node {
            Node::Leaf(id) => Some((own(*id)?, [*id; 2])),
            Node::Between(ends) => match ends.as_ref() {
                [Node::Leaf(low), Node::Leaf(high)] if own(*low) == own(*high) => {
                    Some((own(*low)?, [*low, *high]))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// A sum whose terms of one thread are combined, as far as that fits.
    fn sum(&mut self, terms: &[Term]) -> Node {
        let mut rest: Vec<Term> = Vec::new();
        let mut locals: Vec<(ThreadId, [LeafId; 2], bool)> = Vec::new();
        let mut constant = (0_i128, 0_i128);
        let mut add = |range: Range, is_negative| {
            let (low, high) = range.added(is_negative);
            constant = (constant.0 + low, constant.1 + high);
        };
        for &Term { is_negative, ref node } in terms {
            let node = self.copied(node);
            match (node.as_constant(), self.own_ends(&node)) {
                (Some(None), _) => return Node::Constant(None),
                (Some(Some(range)), _) => add(range, is_negative),
                (None, Some((owner, ends))) => locals.push((owner, ends, is_negative)),
                (None, None) => rest.push(Term { is_negative, node }),
            }
        }
        locals.sort_unstable();
        for group in locals.chunk_by(|one, other| one.0 == other.0) {
            let Some(node) = self.added(group) else {
                rest.extend(group.iter().map(|&(_, ends, is_negative)| {
                    let node = between(ends.map(Node::Leaf));
                    Term { is_negative, node }
                }));
                continue;
            };
            match node.as_constant() {
                Some(None) => return Node::Constant(None),
                Some(Some(range)) => add(range, false),
                None => rest.push(Term { is_negative: false, node }),
            }
        }
        match Range::fitting(constant.0, constant.1) {
            Some(Range { low: 0, high: 0 }) => {}
            Some(range) => {
                let node = Node::constant(Some(range));
                rest.push(Term { is_negative: false, node });
            }
            // Too large for one number, though the terms that vary may bring it back.
            None => return Node::Sum(self.uncollected(terms)),
        }
        Node::Sum(rest)
    }

    /// The terms of a sum as they are.
    fn uncollected(&mut self, terms: &[Term]) -> Vec<Term> {
        let term = |Term { is_negative, node }: &Term| Term {
            is_negative: *is_negative,
            node: self.copied(node),
        };
        terms.iter().map(term).collect()
    }

    /// Terms of one thread together, if they always fit.
    fn added(&mut self, group: &[(ThreadId, [LeafId; 2], bool)]) -> Option<Node> {
        let low = self.added_ends(group, 0)?;
        if group.iter().all(|(_, [low, high], _)| low == high) {
            return Some(low);
        }
        Some(between([low, self.added_ends(group, 1)?]))
    }

    /// The least of such terms if `end` is 0, the greatest if it is 1.
    fn added_ends(&mut self, group: &[(ThreadId, [LeafId; 2], bool)], end: usize) -> Option<Node> {
        let leaf =
            |&(_, ends, is_negative): &(_, [LeafId; 2], _)| ends[end ^ usize::from(is_negative)];
        let tables = tables(&self.leaves, group.iter().map(leaf));
        if !can_afford(&mut self.work_left, self.changes, &tables, tables.len()) {
            return None;
        }
        let mut fits = true;
        let steps = combined_steps(&tables, |values| {
            let mut sum = 0_i128;
            for (value, &(_, _, is_negative)) in values.iter().zip(group) {
                sum += signed(is_negative, (*value)?);
            }
            let sum = i64::try_from(sum);
            fits &= sum.is_ok();
            sum.ok()
        });
        fits.then(|| self.local(group[0].0, steps))
    }

    /// Two sides of a comparison, with only the end of each that decides whether it certainly
    /// holds.
    fn decisive_ends(&self, comparison: Comparison, left: Node, right: Node) -> (Node, Node) {
        let is_low = match comparison {
            Comparison::AtLeast | Comparison::More => true,
            Comparison::AtMost | Comparison::Less => false,
            Comparison::Equal | Comparison::Unequal => return (left, right),
        };
        (self.end(left, is_low), self.end(right, !is_low))
    }

    /// `node` with no more than its least, or else its greatest, as far as that is known where it
    /// is.
    fn end(&self, node: Node, is_low: bool) -> Node {
        match node {
            Node::Between(ends) => {
                let [low, high] = *ends;
                if is_low { low } else { high }
            }
            // Otherwise the other end may make the whole unknown.
            Node::Sum(terms) if bounds_of_sum(&terms, &self.leaves).is_some() => {
                let mut kept = Vec::new();
                let mut constant = 0_i128;
                for Term { is_negative, node } in terms {
                    match self.end(node, is_low != is_negative) {
                        Node::Constant(Some(value)) => constant += signed(is_negative, value),
                        node => kept.push(Term { is_negative, node }),
                    }
                }
                let constant = Node::Constant(i64::try_from(constant).ok());
                if kept.is_empty() {
                    return constant;
                }
                if constant != Node::Constant(Some(0)) {
                    kept.push(Term { is_negative: false, node: constant });
                }
                Node::Sum(kept)
            }
            other => other,
        }
    }
}

/// What lies between two.
fn between([low, high]: [Node; 2]) -> Node {
    if low == high { low } else { Node::Between(Box::new([low, high])) }
}

/// The tables of those of `ids` that have one.
fn tables(
    leaves: &IndexVec<LeafId, Leaf<ThreadId>>,
    ids: impl Iterator<Item = LeafId>,
) -> Vec<&Steps> {
    let table = |id| match &leaves[id] {
        Leaf::Local(local) => Some(&local.steps),
        Leaf::Shared(_) => None,
    };
    ids.filter_map(table).collect()
}

/// Whether `tables` can be combined, for so many evaluations at each change; if so, the work is
/// spent.
fn can_afford(work_left: &mut u64, kept: usize, tables: &[&Steps], evaluations: usize) -> bool {
    let changes: usize = tables.iter().map(|steps| steps.changes().len() + 1).sum();
    let work = (changes as u64).saturating_mul(evaluations as u64);
    let is_affordable = work <= *work_left && kept.saturating_add(changes) <= CHANGES_MAX;
    if is_affordable {
        *work_left -= work;
    }
    is_affordable
}

fn signed(is_negative: bool, value: i64) -> i128 {
    if is_negative { -i128::from(value) } else { i128::from(value) }
}

/// That two certainly compare so.
fn surely(comparison: Comparison, left: Node, right: Node) -> Node {
    match (left.as_constant(), right.as_constant()) {
        (Some(None), _) | (_, Some(None)) => Node::truth(false),
        (Some(left), Some(right)) => {
            let compared = compared(comparison, left, right);
            Node::truth(compared == Some(Range::truth(true)))
        }
        (None, _) | (_, None) => Node::Compare(comparison, Box::new([left, right])),
    }
}

#[cfg(test)]
mod tests {
    use reweave_base::IndexVec;
    use reweave_testkit::{Shape, generate};
    use reweave_trace::ThreadId;

    use super::*;
    use crate::predicate::Predicate;

    #[test]
    fn what_was_too_much_for_tables_is_right_too() {
        let texts = [
            "holds(t1, l1) && !(position(t1) > 2 || done(t2)) && started(t1)",
            "count(t: holds(t, l1) && t.v1 == 1 || x1 > 3) >= 1",
            "2 * count(t: t.v1 == 1) - count(t: x1 > t.v1) > 0 => count(t: t.v1 == x1) == 0",
            "count(t: t.v1 == 0 || position(t) > 3) + position(t1) <= 3",
            "x1 + position(t1) + position(t1) - position(t2) > 3 => done(t1) == started(t2)",
        ];
        let trace = generate::random(Shape { threads: 2, ..Shape::EVERYTHING.events(12) }, 5);
        let lengths: Vec<u32> = [0, 1]
            .map(|at| trace.thread_events(reweave_base::Id::from_index(at)).len() as u32)
            .into();
        for text in texts {
            let predicate = Predicate::parse(text, &trace).unwrap();
            for work_max in [0, 5, 20, 80, 300] {
                let goals = [true, false]
                    .map(|wanted| (wanted, goal_within(predicate.expression(), wanted, work_max)));
                for code in 0..(lengths[0] + 1) * (lengths[1] + 1) {
                    let counts = vec![code / (lengths[1] + 1), code % (lengths[1] + 1)];
                    let cut: IndexVec<ThreadId, u32> = IndexVec::from_vec(counts);
                    let truth = predicate.truth(&cut);
                    for (wanted, goal) in &goals {
                        let is_met = goal.value(|thread| cut[thread]) == Some(1);
                        assert_eq!(is_met, truth == Some(*wanted), "{text} at {cut:?}, {goal:?}");
                    }
                }
            }
        }
    }
}
