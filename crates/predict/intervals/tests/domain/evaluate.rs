//! Terms on sets against terms on all members, for each domain.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_base::Id;
use reweave_intervals::domain::{Congruence, Domain, Interval, Product};
use reweave_intervals::evaluate::{assume, may_fault, may_overflow, value};
use reweave_intervals::terms::{Slot, Term, TermId, Terms};
use reweave_testkit::soak;
use reweave_trace::{Binary, Unary};

use super::laws::edges;

fn slot(index: usize) -> Slot {
    Slot::from_index(index)
}

fn between(low: i64, high: i64) -> Interval {
    Interval::new(low, high).unwrap()
}

/// Checks `id` on stores of two slots: what it comes to, what can go wrong, and what its truth
/// leaves, against all `assignments` that are in the store.
#[track_caller]
fn check<D: Domain>(terms: &Terms, id: TermId, store: &[D; 2], assignments: &[[i64; 2]]) {
    let of = |slot: Slot| store[slot.index()].clone();
    let set = value(terms, id, &of);
    let refined = [false, true].map(|wanted| {
        let mut store = store.clone();
        assume(terms, id, wanted, store.as_mut_slice()).then_some(store)
    });
    let faults = may_fault(terms, id, &of);
    let text = || format!("{:?} in {store:?}", written(terms, id));
    for assignment in assignments {
        if (0..2).any(|index| !store[index].contains(assignment[index])) {
            continue;
        }
        let Some(value) = terms.evaluate(id, &|slot| assignment[slot.index()]) else {
            assert!(faults, "{}: {assignment:?} divides by zero", text());
            continue;
        };
        let has = set.as_ref().is_some_and(|set| set.contains(value));
        assert!(has, "{}: {set:?} lacks {value} of {assignment:?}", text());
        let left = &refined[usize::from(value != 0)];
        let is_kept = left
            .as_ref()
            .is_some_and(|left| left[0].contains(assignment[0]) && left[1].contains(assignment[1]));
        assert!(is_kept, "{}: {left:?} lacks {assignment:?}", text());
    }
}

/// The term, for messages.
fn written(terms: &Terms, id: TermId) -> String {
    match terms.term(id) {
        Term::Constant(number) => number.to_string(),
        Term::Slot(slot) => ["x", "y"][slot.index()].to_owned(),
        Term::Unary(operator, operand) => format!("{operator:?}({})", written(terms, operand)),
        Term::Binary(operator, left, right) => {
            format!("({} {operator:?} {})", written(terms, left), written(terms, right))
        }
    }
}

/// All terms of up to two operators one above the other, where one operand of the upper is an atom.
fn small_terms(terms: &mut Terms) -> Vec<TermId> {
    let atoms = [Term::Slot(slot(0)), Term::Slot(slot(1)), Term::Constant(-1), Term::Constant(2)]
        .map(|atom| terms.add(atom));
    let mut all = atoms.to_vec();
    for _ in 0..2 {
        for operand in all.clone() {
            all.extend(Unary::ALL.map(|operator| terms.add(Term::Unary(operator, operand))));
            for (atom, operator) in atoms.iter().flat_map(|&atom| Binary::ALL.map(|o| (atom, o))) {
                all.push(terms.add(Term::Binary(operator, operand, atom)));
                all.push(terms.add(Term::Binary(operator, atom, operand)));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// All pairs of numbers from `low` to `high`.
fn grid(low: i64, high: i64) -> Vec<[i64; 2]> {
    (low..=high).flat_map(|x| (low..=high).map(move |y| [x, y])).collect()
}

#[test]
fn small_terms_lose_no_assignment() {
    let mut terms = Terms::default();
    let all = small_terms(&mut terms);
    assert!(all.len() > 20_000, "there are {}", all.len());
    let assignments = grid(-3, 3);
    let intervals = [
        [between(-3, 3), between(-3, 3)],
        [between(0, 2), between(-2, 1)],
        [between(-3, -1), between(1, 3)],
    ];
    let classes = [Congruence::new(2, 1), Congruence::new(3, 0)];
    for &id in &all {
        for store in &intervals {
            check(&terms, id, store, &assignments);
        }
        check(&terms, id, &classes, &assignments);
        let product =
            [0, 1].map(|index| Product::new(intervals[0][index], classes[index]).unwrap());
        check(&terms, id, &product, &assignments);
    }
}

/// A random term over two slots.
#[derive(Clone, Debug)]
enum Shape {
    Constant(i64),
    Slot(usize),
    Unary(Unary, Box<Shape>),
    Binary(Binary, Box<Shape>, Box<Shape>),
}

fn shapes() -> impl Strategy<Value = Shape> {
    let atom = prop_oneof![
        4 => (0..2_usize).prop_map(Shape::Slot),
        2 => (-4..9_i64).prop_map(Shape::Constant),
        1 => prop::sample::select(edges()).prop_map(Shape::Constant),
    ];
    atom.prop_recursive(5, 24, 2, |inner| {
        prop_oneof![
            1 => (prop::sample::select(&Unary::ALL[..]), inner.clone())
                .prop_map(|(operator, operand)| Shape::Unary(operator, operand.into())),
            6 => (prop::sample::select(&Binary::ALL[..]), inner.clone(), inner).prop_map(
                |(operator, left, right)| Shape::Binary(operator, left.into(), right.into())
            ),
        ]
    })
}

fn build(terms: &mut Terms, shape: &Shape) -> TermId {
    let term = match shape {
        Shape::Constant(number) => Term::Constant(*number),
        Shape::Slot(index) => Term::Slot(slot(*index)),
        Shape::Unary(operator, operand) => Term::Unary(*operator, build(terms, operand)),
        Shape::Binary(operator, left, right) => {
            Term::Binary(*operator, build(terms, left), build(terms, right))
        }
    };
    terms.add(term)
}

fn interval() -> impl Strategy<Value = Interval> {
    let number =
        || prop_oneof![2 => -9..9_i64, 1 => prop::sample::select(edges()), 1 => any::<i64>()];
    (number(), number()).prop_map(|(one, other)| between(one.min(other), one.max(other)))
}

proptest! {
    #![proptest_config(soak::config(3000))]

    #[test]
    fn random_terms_lose_no_assignment(
        shape in shapes(),
        bounds in prop::array::uniform2(interval()),
        classes in prop::array::uniform2((0..9_u64, -9..9_i64)),
    ) {
        let mut terms = Terms::default();
        let id = build(&mut terms, &shape);
        let ends = bounds.iter().flat_map(|bounds| [bounds.low(), bounds.high()]);
        let numbers: Vec<i64> = ends.chain(edges()).collect();
        let assignments: Vec<[i64; 2]> =
            numbers.iter().flat_map(|&x| numbers.iter().map(move |&y| [x, y])).collect();
        check(&terms, id, &bounds, &assignments);
        let classes = classes.map(|(modulus, residue)| Congruence::new(modulus, residue));
        check(&terms, id, &classes, &assignments);
        let product = [0, 1].map(|index| Product::new(bounds[index], classes[index]));
        if let [Some(x), Some(y)] = product {
            check(&terms, id, &[x, y], &assignments);
        }
    }
}

/// Terms over x and y, as one writes them.
struct Made {
    terms: Terms,
    x: TermId,
    y: TermId,
}

impl Made {
    fn new() -> Self {
        let mut terms = Terms::default();
        let (x, y) = (terms.add(Term::Slot(slot(0))), terms.add(Term::Slot(slot(1))));
        Self { terms, x, y }
    }

    fn number(&mut self, number: i64) -> TermId {
        self.terms.add(Term::Constant(number))
    }

    fn binary(&mut self, operator: Binary, left: TermId, right: TermId) -> TermId {
        self.terms.add(Term::Binary(operator, left, right))
    }

    /// What is left where `id` is true and where it is false, of -10 to 10 for both.
    #[track_caller]
    fn check(&self, id: TermId, expected: &Expect) {
        let lines = [true, false].map(|wanted| {
            let mut store = [between(-10, 10); 2];
            let is_left = assume(&self.terms, id, wanted, store.as_mut_slice());
            let [x, y] = store;
            if is_left { format!("{wanted}: x {x}, y {y}\n") } else { format!("{wanted}: none\n") }
        });
        expected.assert_eq(&lines.concat());
    }
}

#[test]
fn a_comparison_of_sums_bounds_their_slots() {
    let mut made = Made::new();
    let three = made.number(3);
    let (x, y) = (made.x, made.y);
    let sum = made.binary(Binary::Add, x, three);
    let less = made.binary(Binary::Less, sum, y);
    made.check(
        less,
        &expect![[r#"
            true: x [-10, 6], y [-6, 10]
            false: x [-10, 10], y [-10, 10]
        "#]],
    );
    let product = made.binary(Binary::Multiply, x, three);
    let equal = made.binary(Binary::Equal, product, y);
    made.check(
        equal,
        &expect![[r#"
            true: x [-3, 3], y [-10, 10]
            false: x [-10, 10], y [-10, 10]
        "#]],
    );
}

#[test]
fn a_conjunction_says_what_its_parts_say_together() {
    let mut made = Made::new();
    let (x, y, four) = (made.x, made.y, made.number(4));
    let same = made.binary(Binary::Equal, x, y);
    let is_four = made.binary(Binary::Equal, y, four);
    let both = made.binary(Binary::And, same, is_four);
    made.check(
        both,
        &expect![[r#"
            true: x [4, 4], y [4, 4]
            false: x [-10, 10], y [-10, 10]
        "#]],
    );
    let above = made.binary(Binary::Greater, x, four);
    let thousand = made.number(1000);
    let never = made.binary(Binary::Greater, y, thousand);
    let either = made.binary(Binary::Or, above, never);
    made.check(
        either,
        &expect![[r#"
            true: x [5, 10], y [-10, 10]
            false: x [-10, 4], y [-10, 10]
        "#]],
    );
}

#[test]
fn a_number_of_truths_can_be_counted() {
    let mut made = Made::new();
    let (x, y, two, zero) = (made.x, made.y, made.number(2), made.number(0));
    let is_above = made.binary(Binary::Greater, x, two);
    let is_below = made.binary(Binary::Less, y, zero);
    let count = made.binary(Binary::Add, is_above, is_below);
    let all = made.binary(Binary::Equal, count, two);
    made.check(
        all,
        &expect![[r#"
            true: x [3, 10], y [-10, -1]
            false: x [-10, 10], y [-10, 10]
        "#]],
    );
}

#[test]
fn a_product_learns_from_a_remainder() {
    let mut made = Made::new();
    let (x, two, zero) = (made.x, made.number(2), made.number(0));
    let rest = made.binary(Binary::Remainder, x, two);
    let is_even = made.binary(Binary::Equal, rest, zero);
    let mut store = [Product::new(between(1, 9), Congruence::TOP).unwrap()];
    assert!(assume(&made.terms, is_even, true, store.as_mut_slice()));
    expect!["[2, 8], 0 mod 2"].assert_eq(&store[0].to_string());
}

#[test]
fn a_division_by_zero_has_no_value_and_is_neither_true_nor_false() {
    let mut made = Made::new();
    let (x, y, zero) = (made.x, made.y, made.number(0));
    let quotient = made.binary(Binary::Divide, x, zero);
    let of = |_: Slot| between(-10, 10);
    assert_eq!(value(&made.terms, quotient, &of), None);
    made.check(
        quotient,
        &expect![[r#"
            true: none
            false: none
        "#]],
    );
    let either = made.binary(Binary::Or, y, quotient);
    assert!(may_fault(&made.terms, either, &of), "both operands are evaluated");
    assert_eq!(value(&made.terms, either, &of), None);
    let rest = made.binary(Binary::Remainder, x, y);
    assert!(may_fault(&made.terms, rest, &of));
    assert!(!may_fault(&made.terms, rest, &|_| between(1, 10)));
}

#[test]
fn every_operator_that_can_overflow_is_noticed() {
    let mut made = Made::new();
    let (x, y) = (made.x, made.y);
    let zero = made.number(0);
    let mut cases =
        [Binary::Add, Binary::Subtract, Binary::Multiply, Binary::Divide, Binary::ShiftLeft]
            .map(|operator| made.binary(operator, x, y))
            .to_vec();
    cases.push(made.terms.add(Term::Unary(Unary::Negate, x)));
    let small = |_: Slot| between(-10, 10);
    let positive = |_: Slot| between(1, 10);
    for id in cases {
        let inside = made.binary(Binary::NotEqual, id, zero);
        assert!(may_overflow(&made.terms, inside, &|_| Interval::TOP), "{inside:?}");
        assert!(!may_overflow(&made.terms, inside, &positive), "{inside:?}");
    }
    let shift = made.binary(Binary::ShiftLeft, x, y);
    assert!(may_overflow(&made.terms, shift, &small), "a negative width is a great one");
    let shift = made.binary(Binary::ShiftRight, x, y);
    assert!(!may_overflow(&made.terms, shift, &|_| Interval::TOP));
}
