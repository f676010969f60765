//! Every circuit against the operator it is for.

use reweave_base::Rng;
use reweave_solver::{Outcome, Solver};

use super::*;

fn circuits(limit: u32) -> Circuits {
    Circuits::new(Gates::new(Solver::new(u64::MAX), u64::MAX), limit)
}

/// `number` as a number of `limit` bits.
fn wrap(number: i64, limit: u32) -> i64 {
    number << (64 - limit) >> (64 - limit)
}

/// Puts `left` and `right` where nothing but the ranges is known, and reads the result.
fn solve(circuits: &mut Circuits, inputs: [&Value; 2], numbers: [i64; 2], result: &Value) -> i64 {
    let known = [0, 1].map(|side| circuits.equal(inputs[side], &Value::constant(numbers[side])));
    let all = circuits.gates.and(known[0], known[1]);
    let assumption = circuits.gates.variable();
    circuits.gates.clause(&[!assumption, all]);
    let literal = circuits.gates.literal(assumption);
    assert_eq!(circuits.gates.solver.solve(&[literal]), Outcome::Satisfied);
    let number = circuits.number(result);
    // The bits determine the result: no other number is possible.
    let other = !circuits.equal(result, &Value::constant(number));
    let claim = circuits.gates.variable();
    circuits.gates.clause(&[!claim, other]);
    let claim = circuits.gates.literal(claim);
    assert!(matches!(circuits.gates.solver.solve(&[literal, claim]), Outcome::Refuted(_)));
    number
}

#[track_caller]
fn check(limit: u32, ranges: [(i64, i64); 2], pairs: &[(i64, i64)]) {
    let mut circuits = circuits(limit);
    let left = circuits.unknown(ranges[0].0, ranges[0].1);
    let right = circuits.unknown(ranges[1].0, ranges[1].1);
    let results = Binary::ALL.map(|operator| circuits.binary(operator, &left, &right));
    let unary = [Unary::Negate, Unary::Not];
    let singles = unary.map(|operator| circuits.unary(operator, &left));
    for &(one, two) in pairs {
        for (operator, result) in Binary::ALL.iter().zip(&results) {
            if let Some(expected) = operator.apply(one, two) {
                let found = solve(&mut circuits, [&left, &right], [one, two], result);
                assert_eq!(found, wrap(expected, limit), "{one} {operator:?} {two} in {ranges:?}");
                assert!(result.low <= found && found <= result.high, "{operator:?} {ranges:?}");
            }
        }
        for (operator, result) in unary.iter().zip(&singles) {
            let found = solve(&mut circuits, [&left, &right], [one, two], result);
            assert_eq!(found, wrap(operator.apply(one), limit), "{operator:?} {one}");
        }
    }
}

#[test]
fn circuits_compute_what_operators_do_on_all_small_numbers() {
    let ranges = [(-4, 3), (2, 2), (-3, -1), (0, 5)];
    for left in ranges {
        for right in ranges {
            let pairs: Vec<(i64, i64)> = (left.0..=left.1)
                .flat_map(|one| (right.0..=right.1).map(move |two| (one, two)))
                .collect();
            check(64, [left, right], &pairs);
        }
    }
}

#[test]
fn circuits_wrap_at_their_width() {
    let all = (-4, 3);
    let pairs: Vec<(i64, i64)> =
        (-4..=3).flat_map(|one| (-4..=3).map(move |two| (one, two))).collect();
    check(3, [all, all], &pairs);
}

#[test]
fn circuits_compute_what_operators_do_on_samples_of_64_bits() {
    let edges = [i64::MIN, i64::MIN + 1, -64, -1, 0, 1, 2, 63, 64, 65, i64::MAX - 1, i64::MAX];
    let mut random = Rng::new(7);
    let mut pairs = Vec::new();
    for _ in 0..5 {
        let one = *random.pick(&edges).expect("there are edges");
        let two = *random.pick(&edges).expect("there are edges");
        let shift = random.next() % 64;
        pairs.extend([(one, two), (random.next() as i64, (random.next() >> shift) as i64)]);
    }
    pairs.push((i64::MIN, -1));
    let all = (i64::MIN, i64::MAX);
    check(64, [all, all], &pairs);
}

#[test]
fn constants_and_what_adds_them_cost_nothing() {
    let mut circuits = circuits(64);
    let number = circuits.unknown(49, 112);
    let before = circuits.gates.solver.variables_count();
    let constant = Value::constant(7);
    let sum = circuits.binary(Binary::Add, &number, &constant);
    let product = circuits.binary(Binary::Multiply, &constant, &Value::constant(8));
    let back = circuits.binary(Binary::Subtract, &sum, &constant);
    assert_eq!((back, product.as_constant()), (number, Some(56)));
    assert_eq!(circuits.gates.solver.variables_count(), before);
}

#[test]
fn narrowing_and_choosing_keep_the_number() {
    let mut circuits = circuits(64);
    let (left, right) = (circuits.unknown(-10, 20), circuits.unknown(5, 300));
    let narrow = circuits.narrow(left.clone(), -2, 9);
    assert_eq!((narrow.low, narrow.high, narrow.bits.len()), (-2, 9, 4));
    let choice = circuits.gates.variable();
    let chosen = circuits.choose(choice, &Rc::new(left.clone()), &Rc::new(right.clone()));
    let is_left = Value { low: 0, high: 1, bits: vec![choice] };
    for (one, two) in [(-2, 5), (0, 300), (9, 77), (3, 19)] {
        assert_eq!(solve(&mut circuits, [&left, &right], [one, two], &narrow), one);
        let same = [circuits.equal(&chosen, &left), circuits.equal(&chosen, &right)];
        for (wanted, same) in [(1, same[0]), (0, same[1])] {
            let same = Value { low: 0, high: 1, bits: vec![same] };
            let inputs = circuits.binary(Binary::Multiply, &left, &Value::constant(2));
            let inputs = circuits.binary(Binary::Add, &inputs, &is_left);
            assert_eq!(solve(&mut circuits, [&inputs, &right], [2 * one + wanted, two], &same), 1);
        }
    }
}
