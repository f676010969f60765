//! Which of many ranges hold an address.
//!
//! The idea: they are sorted by where they begin, and for each half of them, and each half of that, it is known how far
//! they reach. So a search leaves out what begins after the address and what ends before it.
//!
//! Promised: all that hold the address are found, whether ranges are nested, overlap or are damaged.
//!
//! The cost: n log n steps to sort n ranges; log n for each that is found.

use std::ops::Range;

/// Values by ranges of addresses.
#[derive(Debug)]
pub struct Ranges<T> {
    sorted: Vec<(Range<u64>, T)>,
    /// Where the last one ends of those that a range is the middle of.
    ends_max: Vec<u64>,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self { sorted: Vec::new(), ends_max: Vec::new() }
    }
}

impl<T: Copy> Ranges<T> {
    pub fn new(mut ranges: Vec<(Range<u64>, T)>) -> Self {
        ranges.sort_by_key(|(range, _)| range.start);
        let mut ends_max = vec![0; ranges.len()];
        fill(&ranges, &mut ends_max);
        Self { sorted: ranges, ends_max }
    }

    /// The values of the ranges that hold `address`, in the order of where these begin.
    pub fn holding(&self, address: u64) -> Vec<T> {
        let mut found = Vec::new();
        find(&self.sorted, &self.ends_max, address, &mut found);
        found
    }
}

fn fill<T>(ranges: &[(Range<u64>, T)], ends_max: &mut [u64]) -> u64 {
    if ranges.is_empty() {
        return 0;
    }
    let middle = ranges.len() / 2;
    let (before, rest) = ends_max.split_at_mut(middle);
    let [own, after @ ..] = rest else { return 0 };
    let inner = fill(&ranges[..middle], before).max(fill(&ranges[middle + 1..], after));
    *own = ranges[middle].0.end.max(inner);
    *own
}

fn find<T: Copy>(ranges: &[(Range<u64>, T)], ends_max: &[u64], address: u64, found: &mut Vec<T>) {
    let middle = ranges.len() / 2;
    if ranges.is_empty() || ends_max[middle] <= address {
        return;
    }
    find(&ranges[..middle], &ends_max[..middle], address, found);
    let (range, value) = &ranges[middle];
    if range.start > address {
        return;
    }
    found.extend(range.contains(&address).then_some(*value));
    find(&ranges[middle + 1..], &ends_max[middle + 1..], address, found);
}

#[cfg(test)]
mod tests {
    use reweave_base::Rng;

    use super::*;

    #[test]
    fn what_holds_an_address_is_found_whatever_the_ranges_are() {
        let mut rng = Rng::new(1);
        for count in 0..200 {
            let mut end = || rng.below(40) as u64;
            let ranges: Vec<(Range<u64>, usize)> =
                (0..count % 40).map(|value| (end()..end(), value)).collect();
            let index = Ranges::new(ranges.clone());
            for address in 0..41 {
                let mut found = index.holding(address);
                found.sort_unstable();
                let holding = ranges.iter().filter(|(range, _)| range.contains(&address));
                let expected: Vec<usize> = holding.map(|&(_, value)| value).collect();
                assert_eq!(found, expected, "{ranges:?} at {address}");
            }
        }
    }
}
