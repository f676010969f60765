//! What is known of all witnesses of one read, as ranges of interfering writes.
//!
//! A read has three witnesses for every other write of its variable, which may be a hundred
//! thousand. Along the writes of one thread verdicts seldom change, so a few ranges say it all.

use std::ops::Range;

use crate::witness::WitnessKind;

/// Some interfering writes of a read: ranges of the lists of its variable, and the initial value or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteRanges {
    /// Whether the initial value is one.
    pub initial: bool,
    /// Ranges of the writes of a list, by its index; in order, apart, none empty. They hold neither
    /// the writer nor the read.
    pub ranges: Vec<(u32, Range<u32>)>,
}

impl WriteRanges {
    /// How many they are.
    #[must_use]
    pub fn count(&self) -> u64 {
        let ranges = self.ranges.iter().map(|(_, range)| u64::from(range.end - range.start));
        ranges.sum::<u64>() + u64::from(self.initial)
    }

    /// Whether the write at `at` of `list` is one.
    #[must_use]
    pub fn contains(&self, list: u32, at: u32) -> bool {
        let until =
            self.ranges.partition_point(|(other, range)| (*other, range.start) <= (list, at));
        let last = until.checked_sub(1).map(|last| &self.ranges[last]);
        last.is_some_and(|(other, range)| *other == list && range.contains(&at))
    }

    /// Adds `range` of `list`, after all that are there.
    pub fn push(&mut self, list: u32, range: Range<u32>) {
        if range.is_empty() {
            return;
        }
        match self.ranges.last_mut() {
            Some((last, known)) if *last == list && known.end == range.start => {
                known.end = range.end;
            }
            _ => self.ranges.push((list, range)),
        }
    }

    /// Those of either.
    fn union(&self, other: &Self) -> Self {
        let mut ranges: Vec<(u32, Range<u32>)> = [&self.ranges[..], &other.ranges[..]].concat();
        ranges.sort_unstable_by_key(|(list, range)| (*list, range.start));
        let mut all = Self { initial: self.initial || other.initial, ranges: Vec::new() };
        for (list, range) in ranges {
            match all.ranges.last_mut() {
                Some((last, known)) if *last == list && known.end >= range.start => {
                    known.end = known.end.max(range.end);
                }
                _ => all.ranges.push((list, range)),
            }
        }
        all
    }
}

/// The verdicts on one kind of witness of a read: the interfering writes in neither are infeasible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Those of feasible witnesses.
    pub feasible: WriteRanges,
    /// Those of witnesses on which a budget ended.
    pub unknown: WriteRanges,
}

/// The verdicts on all witnesses of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadVerdicts {
    /// By kind.
    pub kinds: [Verdicts; 3],
}

impl ReadVerdicts {
    /// Those on witnesses of `kind`.
    #[must_use]
    pub const fn of_kind(&self, kind: WitnessKind) -> &Verdicts {
        &self.kinds[kind as usize]
    }

    /// The interfering writes of all feasible witnesses.
    #[must_use]
    pub fn feasible(&self) -> WriteRanges {
        let [after, between, absent] = &self.kinds;
        after.feasible.union(&between.feasible).union(&absent.feasible)
    }

    /// How many witnesses are feasible, and on how many a budget ended.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let count = |of: fn(&Verdicts) -> &WriteRanges| {
            self.kinds.iter().map(|kind| of(kind).count()).sum()
        };
        (count(|kind| &kind.feasible), count(|kind| &kind.unknown))
    }
}

/// How the paper's two phases decided witnesses, and what that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Witnesses whose witness order graph has a cycle, and those that are infeasible by definition.
    pub infeasible: u64,
    /// Witnesses that are feasible, there being nothing to choose.
    pub feasible: u64,
    /// Witnesses with choices.
    pub with_choices: u64,
    /// Of those with choices, the feasible ones.
    pub feasible_with_choices: u64,
    /// How many choice graphs those with choices have together; saturates.
    pub possible_graphs: u64,
    /// How many of them were looked at.
    pub explored_graphs: u64,
}

impl Phases {
    /// Adds what `other` counted.
    pub const fn add(&mut self, other: &Self) {
        self.infeasible += other.infeasible;
        self.feasible += other.feasible;
        self.with_choices += other.with_choices;
        self.feasible_with_choices += other.feasible_with_choices;
        self.possible_graphs = self.possible_graphs.saturating_add(other.possible_graphs);
        self.explored_graphs += other.explored_graphs;
    }
}
