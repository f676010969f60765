//! Seeded synthetic posets, as vector clocks.
//!
//! A poset is named by a short text, so that a table or a test can say which it is about:
//!
//! | text | poset |
//! | --- | --- |
//! | `grid:n:m` | n chains of m events, none of which comes before one of another chain |
//! | `rand:n:events:p:seed` | so many events of n chains drawn at random; each with probability p after the last event of another chain |
//! | `pairs:n:m` | n chains of m events in pairs, i and i + n/2, each pair crossed and apart from the others |
//!
//! Events come in an order that keeps the poset's own, each as its chain and its clock: for each
//! chain, how many of its events come before the event or are it. The same text gives the same
//! poset, in every version of this crate.
//!
//! Costs a number for each event and chain.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use reweave_base::Rng;

/// The most numbers that the clocks of a poset named by a text may have together.
const ENTRIES_MAX: u64 = 1 << 27;

/// The clocks of the events of a poset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// How many chains there are.
    pub chains_count: usize,
    /// The events in an order that keeps the poset's own: the chain and the clock of each.
    pub events: Vec<(usize, Vec<u32>)>,
    /// The clock of the last event of each chain.
    latest: Vec<Vec<u32>>,
}

impl Clocks {
    fn new(chains_count: usize) -> Self {
        let latest = vec![vec![0; chains_count]; chains_count];
        Self { chains_count, events: Vec::new(), latest }
    }

    /// Adds an event of `chain`, after the last event of `other` if there is one.
    fn push(&mut self, chain: usize, other: Option<usize>) {
        let mut clock = std::mem::take(&mut self.latest[chain]);
        if let Some(other) = other {
            for (own, &needed) in clock.iter_mut().zip(&self.latest[other]) {
                *own = (*own).max(needed);
            }
        }
        clock[chain] += 1;
        self.latest[chain].clone_from(&clock);
        self.events.push((chain, clock));
    }
}

/// As many chains as `chains_count`, each of `length` events, independent of each other. They take
/// turns.
pub fn grid(chains_count: usize, length: usize) -> Clocks {
    let mut clocks = Clocks::new(chains_count);
    for _ in 0..length {
        for chain in 0..chains_count {
            clocks.push(chain, None);
        }
    }
    clocks
}

/// As many events as `events_count`, each of a chain drawn at random, and with this `probability`
/// after the last event of another chain drawn at random, if that has one. Without chains there
/// are no events.
pub fn random(chains_count: usize, events_count: usize, probability: f64, seed: u64) -> Clocks {
    let mut clocks = Clocks::new(chains_count);
    let mut rng = Rng::new(seed);
    let events_count = if chains_count == 0 { 0 } else { events_count };
    for _ in 0..events_count {
        let chain = rng.below(chains_count);
        let other = (chains_count > 1 && fraction(&mut rng) < probability).then(|| {
            let other = rng.below(chains_count - 1);
            other + usize::from(other >= chain)
        });
        clocks.push(chain, other);
    }
    clocks
}

/// A number from 0 up to but not 1, with as many bits as the type holds.
fn fraction(rng: &mut Rng) -> f64 {
    const BITS: u32 = f64::MANTISSA_DIGITS;
    (rng.next() >> (u64::BITS - BITS)) as f64 / (1_u64 << BITS) as f64
}

/// Chains of `length` events in pairs, chain i with chain i + half of them. In each pair, every
/// second event of the second chain comes after the event before it of the first chain, and before
/// the event with its own number there. A chain that is left over stands alone.
///
/// Each event of a first chain changes what its partner can have done, but only every second event
/// of a partner does so to it: whoever goes through the chains in their order has to tell apart all
/// that the first half can do.
pub fn pairs(chains_count: usize, length: usize) -> Clocks {
    let mut clocks = Clocks::new(chains_count);
    let half = chains_count / 2;
    for number in 1..=length {
        for first in 0..half {
            let second = first + half;
            if number % 2 == 1 {
                clocks.push(first, None);
                clocks.push(second, None);
            } else {
                clocks.push(second, Some(first));
                clocks.push(first, Some(second));
            }
        }
        if chains_count % 2 == 1 {
            clocks.push(chains_count - 1, None);
        }
    }
    clocks
}

/// Which poset to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spec {
    /// See [`grid`].
    Grid {
        /// How many chains.
        chains_count: usize,
        /// How many events of each.
        length: usize,
    },
    /// See [`random`].
    Random {
        /// How many chains.
        chains_count: usize,
        /// How many events in all.
        events_count: usize,
        /// How likely an event comes after one of another chain.
        probability: f64,
        /// Which of the many.
        seed: u64,
    },
    /// See [`pairs`].
    Pairs {
        /// How many chains.
        chains_count: usize,
        /// How many events of each.
        length: usize,
    },
}

impl Spec {
    /// Makes the poset.
    pub fn make(&self) -> Clocks {
        match *self {
            Self::Grid { chains_count, length } => grid(chains_count, length),
            Self::Random { chains_count, events_count, probability, seed } => {
                random(chains_count, events_count, probability, seed)
            }
            Self::Pairs { chains_count, length } => pairs(chains_count, length),
        }
    }
}

impl Display for Spec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grid { chains_count, length } => write!(f, "grid:{chains_count}:{length}"),
            Self::Random { chains_count, events_count, probability, seed } => {
                write!(f, "rand:{chains_count}:{events_count}:{probability}:{seed}")
            }
            Self::Pairs { chains_count, length } => write!(f, "pairs:{chains_count}:{length}"),
        }
    }
}

/// A text that names no poset: what was expected and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSpec(String);

impl Display for UnknownSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnknownSpec {}

impl FromStr for Spec {
    type Err = UnknownSpec;

    fn from_str(text: &str) -> Result<Self, UnknownSpec> {
        let parts: Vec<&str> = text.split(':').collect();
        match *parts {
            ["grid", chains, length] => {
                let (chains_count, length) = chains_of_length(chains, length)?;
                Ok(Self::Grid { chains_count, length })
            }
            ["pairs", chains, length] => {
                let (chains_count, length) = chains_of_length(chains, length)?;
                if chains_count % 2 == 1 {
                    return Err(expected("an even number of chains", chains));
                }
                Ok(Self::Pairs { chains_count, length })
            }
            ["rand", chains, events, probability, seed] => {
                let chains_count = number("a number of chains", chains)?;
                let events_count = number("a number of events", events)?;
                if chains_count == 0 && events_count > 0 {
                    return Err(expected("at least one chain where there are events", chains));
                }
                limited(chains_count, events_count)?;
                let share = probability.parse().ok().filter(|share| (0.0..=1.0).contains(share));
                let probability =
                    share.ok_or_else(|| expected("a probability from 0 to 1", probability))?;
                let seed = number("a seed", seed)?;
                Ok(Self::Random { chains_count, events_count, probability, seed })
            }
            _ => Err(expected("`grid:n:m`, `rand:n:events:p:seed` or `pairs:n:m`", text)),
        }
    }
}

fn expected(what: &str, found: &str) -> UnknownSpec {
    UnknownSpec(format!("expected {what}, found `{found}`"))
}

fn number<T: FromStr>(what: &str, text: &str) -> Result<T, UnknownSpec> {
    text.parse().map_err(|_| expected(what, text))
}

fn chains_of_length(chains: &str, length: &str) -> Result<(usize, usize), UnknownSpec> {
    let chains = number("a number of chains", chains)?;
    let length: usize = number("a number of events of each chain", length)?;
    limited(chains, length.saturating_mul(chains))?;
    Ok((chains, length))
}

/// Refuses what would take too much memory.
fn limited(chains_count: usize, events_count: usize) -> Result<(), UnknownSpec> {
    // The generator keeps a clock for each chain too.
    let rows = (events_count as u64).saturating_add(chains_count as u64);
    match rows.saturating_mul(chains_count as u64) {
        ..=ENTRIES_MAX => Ok(()),
        entries => Err(UnknownSpec(format!(
            "expected clocks of at most {ENTRIES_MAX} numbers in all, found {entries}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, events: &[(usize, &[u32])]) {
        let spec: Spec = text.parse().unwrap();
        assert_eq!(spec.to_string(), text);
        let made = spec.make().events;
        let made: Vec<(usize, &[u32])> =
            made.iter().map(|(chain, clock)| (*chain, &clock[..])).collect();
        assert_eq!(made, events);
    }

    #[test]
    fn a_grid_has_chains_that_know_nothing_of_each_other() {
        check("grid:2:2", &[(0, &[1, 0]), (1, &[0, 1]), (0, &[2, 0]), (1, &[0, 2])]);
        check("grid:0:5", &[]);
        check("grid:5:0", &[]);
    }

    #[test]
    fn random_posets_are_drawn_as_they_always_were() {
        check(
            "rand:3:8:0.5:1",
            &[
                (1, &[0, 1, 0]),
                (2, &[0, 0, 1]),
                (2, &[0, 0, 2]),
                (1, &[0, 2, 2]),
                (1, &[0, 3, 2]),
                (1, &[0, 4, 2]),
                (1, &[0, 5, 2]),
                (2, &[0, 0, 3]),
            ],
        );
        check("rand:1:2:1:9", &[(0, &[1]), (0, &[2])]);
        check("rand:0:0:1:9", &[]);
    }

    #[test]
    fn every_event_of_a_first_chain_bounds_its_partner() {
        check(
            "pairs:2:3",
            &[(0, &[1, 0]), (1, &[0, 1]), (1, &[1, 2]), (0, &[2, 2]), (0, &[3, 2]), (1, &[1, 3])],
        );
        assert_eq!(pairs(3, 1).events.len(), 3);
    }

    #[test]
    fn what_names_no_poset_is_refused_with_what_was_expected() {
        let cases = [
            ("", "expected `grid:n:m`, `rand:n:events:p:seed` or `pairs:n:m`, found ``"),
            (
                "grid:2",
                "expected `grid:n:m`, `rand:n:events:p:seed` or `pairs:n:m`, found `grid:2`",
            ),
            ("grid:-2:3", "expected a number of chains, found `-2`"),
            ("grid:2:x", "expected a number of events of each chain, found `x`"),
            ("pairs:3:3", "expected an even number of chains, found `3`"),
            ("rand:0:3:0.5:1", "expected at least one chain where there are events, found `0`"),
            ("rand:2:3:1.5:1", "expected a probability from 0 to 1, found `1.5`"),
            ("rand:2:3:NaN:1", "expected a probability from 0 to 1, found `NaN`"),
            ("rand:2:3:0.5:", "expected a seed, found ``"),
            (
                "grid:100000:2",
                "expected clocks of at most 134217728 numbers in all, found 30000000000",
            ),
        ];
        for (text, reason) in cases {
            assert_eq!(text.parse::<Spec>().unwrap_err().to_string(), reason);
        }
        assert!(format!("grid:{}:{}", usize::MAX, usize::MAX).parse::<Spec>().is_err());
    }
}
