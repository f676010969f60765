//! Residue classes against their members, near zero and where numbers wrap.

use proptest::prelude::*;
use reweave_intervals::domain::{Congruence, Domain};
use reweave_testkit::soak;
use reweave_trace::Binary;

use super::laws::{Sample, check_binary_back, check_one, check_two, check_unary_back, edges};

/// Constants and classes, with members around zero and at the ends.
fn samples(candidates: &[i64], moduli: &[u64]) -> Vec<Sample<Congruence>> {
    let constants = [-6, -3, -1, 0, 1, 2, 5, 8, i64::MIN, i64::MIN + 1, i64::MAX];
    let classes = moduli.iter().flat_map(|&modulus| {
        let residues = [0, 1, 2, 3, 5, 40, modulus / 2, modulus - 1];
        residues.map(|residue| Congruence::new(modulus, (residue % modulus) as i64))
    });
    let mut sets: Vec<_> = constants.map(Congruence::constant).into_iter().chain(classes).collect();
    sets.sort_by_key(|set| (set.modulus(), set.residue()));
    sets.dedup();
    sets.into_iter().map(|set| Sample::new(set, candidates)).collect()
}

const MODULI: [u64; 12] = [1, 2, 3, 4, 5, 6, 12, 64, 96, 1 << 32, (1 << 61) - 1, 1 << 63];

#[test]
fn classes_have_all_that_their_members_give() {
    let samples = samples(&edges(), &MODULI);
    for left in &samples {
        check_one(left);
        for right in &samples {
            check_two(left, right);
        }
    }
}

#[test]
fn going_back_loses_no_operand() {
    let samples = samples(&edges(), &[1, 2, 3, 4, 6, 1 << 63]);
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
    #![proptest_config(soak::config(3000))]

    #[test]
    fn random_classes_lose_nothing(
        sets in prop::array::uniform3((modulus(), any::<i64>())),
        more in prop::collection::vec(-4..4_i64, 8),
    ) {
        let [left, right, result] = sets.map(|(modulus, residue)| {
            let set = Congruence::new(modulus, residue);
            // Members near the residue, as far as there are some.
            let near = more.iter().filter_map(|&steps| {
                set.residue().checked_add(steps.checked_mul(i64::try_from(set.modulus()).ok()?)?)
            });
            Sample::new(set, &near.chain(edges()).collect::<Vec<_>>())
        });
        check_one(&left);
        check_two(&left, &right);
        check_unary_back(&left, &result.set);
        check_binary_back(&left, &right, &result.set);
    }

    #[test]
    fn meets_are_exact(one in 1..400_u64, other in 1..400_u64, residues: (i64, i64)) {
        let (left, right) = (Congruence::new(one, residues.0), Congruence::new(other, residues.1));
        let both = (0..(one * other) as i64).find(|&n| left.contains(n) && right.contains(n));
        let mut multiples = (1..=other).map(|factor| one * factor);
        let common = multiples.find(|n| n.is_multiple_of(other)).unwrap_or(0);
        prop_assert_eq!(left.meet(&right), both.map(|least| Congruence::new(common, least)));
    }
}

fn modulus() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..100_u64,
        any::<u64>(),
        (0..64_u32).prop_map(|power| 1 << power),
        (0..40_u32, 1..1000_u64).prop_map(|(power, factor)| factor << power),
    ]
}

#[test]
fn a_class_survives_wrapping_as_far_as_it_is_a_power_of_two() {
    let add = |left, right| Congruence::binary(Binary::Add, &left, &right);
    let one = Congruence::constant(1);
    assert_eq!(add(Congruence::new(12, 2), one), Some(Congruence::new(4, 3)));
    assert_eq!(add(Congruence::new(3, 2), one), Some(Congruence::TOP));
    let twice = Congruence::binary(
        Binary::Multiply,
        &Congruence::new(1 << 40, 0),
        &Congruence::new(1 << 40, 0),
    );
    assert_eq!(twice, Some(Congruence::constant(0)));
}

#[test]
fn low_bits_are_known_through_masks_and_shifts() {
    let constant = Congruence::constant;
    let check = |operator, left, right, expected| {
        assert_eq!(Congruence::binary(operator, &left, &right), Some(expected));
    };
    check(Binary::BitAnd, Congruence::TOP, constant(-8), Congruence::new(8, 0));
    check(Binary::BitAnd, Congruence::TOP, constant(0), constant(0));
    check(Binary::BitOr, Congruence::new(4, 2), constant(4), Congruence::new(8, 6));
    check(Binary::BitOr, Congruence::TOP, constant(7), Congruence::new(8, 7));
    check(Binary::BitXor, Congruence::new(4, 2), constant(1), Congruence::new(4, 3));
    check(Binary::ShiftLeft, Congruence::TOP, constant(3), Congruence::new(8, 0));
    check(Binary::ShiftRight, Congruence::new(8, 5), constant(1), Congruence::new(4, 2));
    check(Binary::Divide, Congruence::new(12, 8), constant(-4), Congruence::new(3, 1));
    check(Binary::Remainder, Congruence::new(12, 8), constant(4), constant(0));
    check(Binary::Remainder, Congruence::new(12, 8), constant(8), Congruence::new(4, 0));
    check(Binary::Equal, Congruence::new(2, 1), Congruence::new(4, 2), constant(0));
}

#[test]
fn a_remainder_tells_the_class_of_what_was_divided() {
    let back = |result| {
        let divisor = Congruence::constant(6);
        let operands = Congruence::binary_back(
            Binary::Remainder,
            &Congruence::TOP,
            &divisor,
            &Congruence::constant(result),
        );
        operands.map(|(dividend, _)| dividend)
    };
    assert_eq!(back(4), Some(Congruence::new(6, 4)));
    assert_eq!(back(-1), Some(Congruence::new(6, 5)));
    let masked = Congruence::binary_back(
        Binary::BitAnd,
        &Congruence::TOP,
        &Congruence::constant(3),
        &Congruence::constant(1),
    );
    assert_eq!(masked.map(|(operand, _)| operand), Some(Congruence::new(4, 1)));
}

#[test]
fn a_class_is_written_by_residue_and_modulus() {
    assert_eq!(Congruence::new(4, -1).to_string(), "3 mod 4");
    assert_eq!(Congruence::constant(-7).to_string(), "-7");
    assert_eq!(Congruence::TOP.to_string(), "0 mod 1");
}
