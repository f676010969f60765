//! What every domain promises, checked member by member, and what no set can say better.

use reweave_intervals::domain::Domain;
use reweave_trace::{Binary, Unary};

/// Numbers where arithmetic has its edges: around zero, the infinities and powers of two.
pub(crate) fn edges() -> Vec<i64> {
    let mut edges: Vec<i64> = (-7..=7).collect();
    for power in [6, 31, 32, 62] {
        let power = 1_i64 << power;
        edges.extend([-power - 1, -power, -power + 1, power - 1, power, power + 1]);
    }
    edges.extend((0..5).flat_map(|distance| [i64::MIN + distance, i64::MAX - distance]));
    edges.sort_unstable();
    edges
}

/// A set with some of its members, or all.
#[derive(Clone, Debug)]
pub(crate) struct Sample<D> {
    pub(crate) set: D,
    pub(crate) members: Vec<i64>,
}

impl<D: Domain> Sample<D> {
    /// `set` with those of `candidates` that are its members.
    pub(crate) fn new(set: D, candidates: &[i64]) -> Self {
        let members = candidates.iter().copied().filter(|&value| set.contains(value)).collect();
        Self { set, members }
    }
}

/// The pairs of members.
pub(crate) fn pairs<D>(left: &Sample<D>, right: &Sample<D>) -> Vec<(i64, i64)> {
    let of = |&left: &i64| right.members.iter().map(move |&right| (left, right));
    left.members.iter().flat_map(of).collect()
}

/// What is said of one set.
#[track_caller]
pub(crate) fn check_one<D: Domain>(sample: &Sample<D>) {
    let Sample { set, members } = sample;
    let (low, high) = set.bounds();
    for &member in members {
        assert!(low <= member && member <= high, "{set:?}: {member} is out of bounds");
        assert!(set.as_constant().is_none_or(|only| only == member), "{set:?}: also {member}");
        assert_eq!(D::constant(member).as_constant(), Some(member));
        assert_eq!(set.meet(&D::constant(member)), Some(D::constant(member)), "{set:?}");
        for operator in Unary::ALL {
            let result = D::unary(operator, set);
            let value = operator.apply(member);
            assert!(result.contains(value), "{operator:?} {set:?} = {result:?} lacks {value}");
        }
    }
    assert_eq!(set.meet(&D::TOP).as_ref(), Some(set));
}

/// What is said of two sets, but for going back.
#[track_caller]
pub(crate) fn check_two<D: Domain>(left: &Sample<D>, right: &Sample<D>) {
    let sets = (&left.set, &right.set);
    let mut join = left.set.clone();
    join.join(&right.set);
    for &member in left.members.iter().chain(&right.members) {
        assert!(join.contains(member), "{sets:?}: {join:?} lacks {member}");
    }
    let meet = left.set.meet(&right.set);
    for &member in left.members.iter().filter(|&&member| right.set.contains(member)) {
        let has = meet.as_ref().is_some_and(|meet| meet.contains(member));
        assert!(has, "{sets:?}: {meet:?} lacks {member}");
    }
    let pairs = pairs(left, right);
    for operator in Binary::ALL {
        let result = D::binary(operator, &left.set, &right.set);
        for &(one, other) in &pairs {
            let Some(value) = operator.apply(one, other) else { continue };
            let has = result.as_ref().is_some_and(|result| result.contains(value));
            assert!(has, "{sets:?}: {one} {operator:?} {other} is not in {result:?}");
        }
    }
    for &operator in &Binary::TESTS[..6] {
        let after = D::compare(operator, &left.set, &right.set);
        for &(one, other) in &pairs {
            let is_kept = after
                .as_ref()
                .is_some_and(|after| after.0.contains(one) && after.1.contains(other));
            let is_true = operator.apply(one, other) == Some(1);
            assert!(!is_true || is_kept, "{sets:?}: {one} {operator:?} {other}: {after:?}");
        }
    }
}

/// What is said of one operand, given a result.
#[track_caller]
pub(crate) fn check_unary_back<D: Domain>(operand: &Sample<D>, result: &D) {
    for operator in Unary::ALL {
        let after = D::unary_back(operator, &operand.set, result);
        for &member in &operand.members {
            let is_kept = after.as_ref().is_some_and(|after| after.contains(member));
            let fits = result.contains(operator.apply(member));
            let set = &operand.set;
            assert!(!fits || is_kept, "{operator:?} {set:?} = {result:?}: {member}: {after:?}");
        }
    }
}

/// What is said of two operands, given a result.
#[track_caller]
pub(crate) fn check_binary_back<D: Domain>(left: &Sample<D>, right: &Sample<D>, result: &D) {
    let sets = (&left.set, &right.set);
    let pairs = pairs(left, right);
    for operator in Binary::ALL {
        let after = D::binary_back(operator, &left.set, &right.set, result);
        for &(one, other) in &pairs {
            let fits = operator.apply(one, other).is_some_and(|value| result.contains(value));
            let is_kept = after
                .as_ref()
                .is_some_and(|after| after.0.contains(one) && after.1.contains(other));
            assert!(
                !fits || is_kept,
                "{sets:?} {operator:?} = {result:?}: {one}, {other}: {after:?}"
            );
        }
    }
}
