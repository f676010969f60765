//! What is known of a number or a truth at a state.
//!
//! A truth that is not known is worth 0 or 1, so that a count of truths is known to lie between two
//! numbers though some of them are not known. A number that is not known may be anything, and so may
//! what is made of it. A range is that of all results, except that a quotient by a number that is not
//! known exactly, and a remainder of or by one, may be anything.

use super::expression::{Comparison, Operator};

/// The least and the greatest that something can be.
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
