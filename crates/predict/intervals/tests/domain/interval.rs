//! Intervals against their members: nothing is lost, and where promised nothing is too much.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_intervals::answers;
use reweave_intervals::domain::{Domain, Interval};
use reweave_testkit::soak;
use reweave_trace::{Binary, Unary};

use super::laws::{
    Sample, check_binary_back, check_one, check_two, check_unary_back, edges, pairs,
};

/// All intervals between two numbers, with all members.
fn between(low: i64, high: i64) -> Vec<Sample<Interval>> {
    let numbers: Vec<i64> = (low..=high).collect();
    let of = |&low: &i64| numbers.iter().filter_map(move |&high| Interval::new(low, high));
    numbers.iter().flat_map(of).map(|set| Sample::new(set, &numbers)).collect()
}

/// The smallest interval with `values`.
fn hull(values: impl Iterator<Item = i64> + Clone) -> Option<Interval> {
    Interval::new(values.clone().min()?, values.max()?)
}

#[test]
fn small_intervals_have_all_that_their_members_give() {
    let samples = between(-6, 6);
    for left in &samples {
        check_one(left);
        for right in &samples {
            check_two(left, right);
        }
    }
}

#[test]
fn nothing_smaller_has_all_results() {
    let samples = between(-6, 6);
    for left in &samples {
        for operator in Unary::ALL {
            let results = left.members.iter().map(|&value| operator.apply(value));
            assert_eq!(Some(Interval::unary(operator, &left.set)), hull(results));
        }
        for right in &samples {
            let pairs = pairs(left, right);
            for operator in Binary::ALL {
                let results = pairs.iter().filter_map(|&(one, other)| operator.apply(one, other));
                let exact = hull(results);
                let given = Interval::binary(operator, &left.set, &right.set);
                let shifts_far = operator == Binary::ShiftLeft && right.set.low() < 0;
                let many = operator == Binary::Remainder && right.set.as_constant().is_none();
                if !shifts_far && !many {
                    assert_eq!(given, exact, "{:?} {operator:?} {:?}", left.set, right.set);
                }
            }
        }
    }
}

#[test]
fn remainders_by_ranges_are_mostly_exact() {
    let samples = between(-6, 6);
    let (mut count, mut exact_count) = (0, 0);
    for left in &samples {
        for right in &samples {
            let pairs = pairs(left, right);
            let results =
                pairs.iter().filter_map(|&(one, other)| Binary::Remainder.apply(one, other));
            let given = Interval::binary(Binary::Remainder, &left.set, &right.set);
            count += 1;
            exact_count += usize::from(given == hull(results));
        }
    }
    expect!["7807 of 8281"].assert_eq(&format!("{exact_count} of {count}"));
}

#[test]
fn bit_operations_are_exact_on_wider_ranges() {
    let ends = [-20, -17, -16, -9, -1, 0, 3, 7, 8, 12, 15, 16, 21];
    let all: Vec<i64> = (-20..=21).collect();
    let of = |&low: &i64| ends.iter().filter_map(move |&high| Interval::new(low, high));
    let samples: Vec<_> = ends.iter().flat_map(of).map(|set| Sample::new(set, &all)).collect();
    for left in &samples {
        for right in &samples {
            let pairs = pairs(left, right);
            for operator in [Binary::BitAnd, Binary::BitOr, Binary::BitXor] {
                let results = pairs.iter().filter_map(|&(one, other)| operator.apply(one, other));
                let given = Interval::binary(operator, &left.set, &right.set);
                assert_eq!(given, hull(results), "{:?} {operator:?} {:?}", left.set, right.set);
            }
        }
    }
}

#[test]
fn comparisons_keep_no_more_than_true_pairs() {
    let samples = between(-4, 4);
    for left in &samples {
        for right in &samples {
            let pairs = pairs(left, right);
            for &operator in &Binary::TESTS[..6] {
                let is_true = |&&(one, other): &&(i64, i64)| operator.apply(one, other) == Some(1);
                let kept = pairs.iter().filter(is_true);
                let exact =
                    hull(kept.clone().map(|pair| pair.0)).zip(hull(kept.map(|pair| pair.1)));
                let given = Interval::compare(operator, &left.set, &right.set);
                assert_eq!(given, exact, "{:?} {operator:?} {:?}", left.set, right.set);
            }
        }
    }
}

#[test]
fn going_back_loses_no_small_operand() {
    let samples = between(-4, 4);
    for left in &samples {
        for result in between(-5, 5) {
            check_unary_back(left, &result.set);
        }
        for right in &samples {
            for result in &samples {
                check_binary_back(left, right, &result.set);
            }
        }
    }
}

#[test]
fn going_back_through_what_can_be_undone_keeps_nothing_else() {
    let samples = between(-4, 4);
    let operators = [
        Binary::Add,
        Binary::Subtract,
        Binary::Multiply,
        Binary::Divide,
        Binary::ShiftLeft,
        Binary::ShiftRight,
    ];
    for left in &samples {
        for right in &samples {
            let is_sum = |operator| matches!(operator, Binary::Add | Binary::Subtract);
            let pairs = pairs(left, right);
            for (result, operator) in samples.iter().flat_map(|r| operators.map(|o| (r, o))) {
                // Shifts by negative numbers are by 60 and more and overflow.
                let shifts_far = operator == Binary::ShiftLeft && right.set.low() < 0;
                if shifts_far || !is_sum(operator) && right.set.as_constant().is_none() {
                    continue;
                }
                let fits = |&&(one, other): &&(i64, i64)| {
                    operator.apply(one, other).is_some_and(|value| result.set.contains(value))
                };
                let kept = pairs.iter().filter(fits);
                let exact =
                    hull(kept.clone().map(|pair| pair.0)).zip(hull(kept.map(|pair| pair.1)));
                let given = Interval::binary_back(operator, &left.set, &right.set, &result.set);
                let case = (left.set, operator, right.set, result.set);
                assert_eq!(given, exact, "{case:?}");
            }
        }
    }
}

#[test]
fn bounds_at_the_edges_lose_nothing() {
    let edges = edges();
    let some: Vec<i64> = edges.iter().copied().step_by(3).collect();
    let of = |&low: &i64| some.iter().filter_map(move |&high| Interval::new(low, high));
    let samples: Vec<_> = some.iter().flat_map(of).map(|set| Sample::new(set, &edges)).collect();
    for left in &samples {
        check_one(left);
        for right in &samples {
            check_two(left, right);
        }
    }
}

proptest! {
    #![proptest_config(soak::config(2000))]

    #[test]
    fn going_back_at_the_edges_loses_nothing(ends in prop::array::uniform6(number())) {
        let edges = edges();
        let of = |one: i64, other: i64| {
            let set = Interval::new(one.min(other), one.max(other)).expect("the ends are in order");
            let candidates = [edges.as_slice(), &ends].concat();
            Sample::new(set, &candidates)
        };
        let (left, right, result) =
            (of(ends[0], ends[1]), of(ends[2], ends[3]), of(ends[4], ends[5]));
        check_one(&left);
        check_two(&left, &right);
        check_unary_back(&left, &result.set);
        check_binary_back(&left, &right, &result.set);
    }
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![prop::sample::select(edges()), any::<i64>(), -200..200_i64]
}

#[test]
fn infinities_are_written_as_such() {
    let check = |set: Interval, expected: Expect| expected.assert_eq(&set.to_string());
    let of = |low, high| Interval::new(low, high).unwrap();
    check(of(1, 5), expect!["[1, 5]"]);
    check(of(i64::MIN, 5), expect!["[-oo, 5]"]);
    check(of(-3, i64::MAX), expect!["[-3, +oo]"]);
    check(Interval::TOP, expect!["[-oo, +oo]"]);
    assert_eq!(Interval::new(2, 1), None);
}

#[test]
fn bits_number_the_members() {
    let bits = |low, high| Interval::new(low, high).map(|members| answers::bits(&members));
    assert_eq!(bits(7, 7), Some(0));
    assert_eq!(bits(0, 1), Some(1));
    assert_eq!(bits(1, 5), Some(3));
    assert_eq!(bits(-1, 2), Some(2));
    assert_eq!(bits(0, i64::MAX), Some(63));
    assert_eq!(bits(-1, i64::MAX), Some(64));
    assert_eq!(answers::bits(&Interval::TOP), 64);
}

#[test]
fn what_may_wrap_is_the_whole_range() {
    let of = |low, high| Interval::new(low, high).unwrap();
    let one = Interval::constant(1);
    let top = Some(Interval::TOP);
    let check = |operator, left: Interval, right: Interval, expected: Option<Interval>| {
        assert_eq!(Interval::binary(operator, &left, &right), expected, "{operator:?}");
        let overflows = Interval::may_overflow(operator, left, right);
        assert_eq!(overflows, expected == top, "{operator:?}");
    };
    check(Binary::Add, of(0, i64::MAX), one, top);
    check(Binary::Add, of(0, i64::MAX - 1), one, Some(of(1, i64::MAX)));
    check(Binary::Subtract, of(i64::MIN, 0), one, top);
    check(Binary::Multiply, of(0, 1 << 32), of(0, 1 << 32), top);
    check(Binary::Divide, of(i64::MIN, 0), of(-2, 2), top);
    check(Binary::Divide, of(i64::MIN, 0), of(2, 4), Some(of(i64::MIN / 2, 0)));
    check(Binary::Divide, of(4, 9), Interval::constant(0), None);
    check(Binary::ShiftLeft, of(0, 1), of(0, 63), top);
    check(Binary::ShiftLeft, of(0, 1), of(0, 62), Some(of(0, 1 << 62)));
    assert_eq!(Interval::unary(Unary::Negate, &of(i64::MIN, 3)), Interval::TOP);
}
