//! Products against their members, and what bounds and classes learn from each other.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_intervals::domain::{Congruence, Domain, Interval, Product};
use reweave_testkit::soak;
use reweave_trace::Binary;

use super::laws::{Sample, check_binary_back, check_one, check_two, check_unary_back, edges};

type Both = Product;

fn of(low: i64, high: i64, modulus: u64, residue: i64) -> Option<Both> {
    Product::new(Interval::new(low, high)?, Congruence::new(modulus, residue))
}

/// All products between two numbers by small moduli, with all members.
fn between(low: i64, high: i64) -> Vec<Sample<Both>> {
    let all: Vec<i64> = (low..=high).collect();
    let mut sets: Vec<Both> = Vec::new();
    for (&one, &other) in all.iter().flat_map(|one| all.iter().map(move |other| (one, other))) {
        for (modulus, residue) in [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (4, 3)] {
            sets.extend(of(one, other, modulus, residue).filter(|set| !sets.contains(set)));
        }
    }
    sets.into_iter().map(|set| Sample::new(set, &all)).collect()
}

#[test]
fn small_products_have_all_that_their_members_give() {
    let samples = between(-5, 5);
    for left in &samples {
        check_one(left);
        assert!(!left.members.is_empty(), "{:?} has no members", left.set);
        let ends = (left.members[0], *left.members.last().unwrap());
        assert_eq!(left.set.bounds(), ends, "bounds are members");
        for right in &samples {
            check_two(left, right);
        }
    }
}

#[test]
fn going_back_loses_no_small_operand() {
    let samples = between(-3, 3);
    for left in &samples {
        for result in &samples {
            check_unary_back(left, &result.set);
            for right in &samples {
                check_binary_back(left, right, &result.set);
            }
        }
    }
}

proptest! {
    #![proptest_config(soak::config(2000))]

    #[test]
    fn random_products_lose_nothing(
        sets in prop::array::uniform3((number(), number(), 1..70_u64, any::<i64>())),
    ) {
        let mut samples = Vec::new();
        for (one, other, modulus, residue) in sets {
            let Some(set) = of(one.min(other), one.max(other), modulus, residue) else {
                return Ok(());
            };
            let (low, high) = set.bounds();
            let near = (-3..=3_i64).flat_map(|steps| {
                let distance = steps * modulus as i64;
                [low.wrapping_add(distance), high.wrapping_add(distance)]
            });
            samples.push(Sample::new(set, &near.chain(edges()).collect::<Vec<_>>()));
        }
        let [left, right, result] = samples.try_into().expect("there are three");
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
fn each_makes_the_other_smaller() {
    let check = |set: Option<Both>, expected: Expect| {
        expected.assert_eq(&set.map_or("nothing".to_owned(), |set| set.to_string()));
    };
    check(of(1, 10, 4, 0), expect!["[4, 8], 0 mod 4"]);
    check(of(1, 6, 4, 0), expect!["[4, 4], 4"]);
    check(of(1, 3, 4, 0), expect!["nothing"]);
    check(of(1, 9, 0, 7), expect!["[7, 7], 7"]);
    check(
        of(i64::MIN, i64::MAX, 3, 0),
        expect!["[-9223372036854775806, 9223372036854775806], 0 mod 3"],
    );
    check(of(i64::MAX, i64::MAX, 2, 0), expect!["nothing"]);
}

#[test]
fn bounds_tell_a_class_that_nothing_wraps() {
    let check = |operator, left: Option<Both>, right, expected: Expect| {
        let result = Both::binary(operator, &left.unwrap(), &Both::constant(right));
        expected.assert_eq(&result.unwrap().to_string());
    };
    check(Binary::Multiply, of(0, 9, 1, 0), 11, expect!["[0, 99], 0 mod 11"]);
    check(Binary::Add, of(0, 99, 11, 0), 5, expect!["[5, 104], 5 mod 11"]);
    check(Binary::Add, of(0, i64::MAX, 11, 7), 5, expect!["[-oo, +oo], 0 mod 1"]);
    check(Binary::Remainder, of(0, 99, 4, 3), 6, expect!["[1, 5], 1 mod 2"]);
    check(Binary::Equal, of(0, 99, 4, 3), 6, expect!["[0, 0], 0"]);
}
