//! Counting and grouping unordered pairs as they come.

use reweave_base::{FxHashMap, FxHashSet, IndexVec};
use reweave_trace::{EventId, SiteId, Trace, VarId};

use crate::unordered::Unordered;
use crate::{Counts, Race};

/// How many instances of a location pair are kept.
pub const TRIES_MAX: usize = 8;

/// Of how many location pairs instances are kept.
pub const GROUPS_MAX: usize = 100_000;

/// How many location pairs are told apart at most; beyond that their number is a lower bound.
const LOCATION_PAIRS_MAX: usize = 20_000_000;

/// What a whole trace holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Races {
    /// How many there are.
    pub counts: Counts,
    /// The pairs by location pair, in the order of their earliest instances; of the location pairs
    /// that showed first, at most [`GROUPS_MAX`].
    pub groups: Vec<Group>,
    /// Whether there were too many location pairs to count: then their number is a lower bound.
    pub is_lower_bound: bool,
    /// The first pair: the second access as early, then the first as late as can be.
    pub first: Option<Race>,
}

impl Races {
    /// How many location pairs are in no group.
    #[must_use]
    pub const fn unlisted(&self) -> u64 {
        self.counts.location_pairs - self.groups.len() as u64
    }
}

/// The unordered pairs between two code locations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// A site at each of the two locations.
    pub sites: (SiteId, SiteId),
    /// How many pairs there are.
    pub count: u64,
    /// The earliest of them, at most [`TRIES_MAX`].
    pub earliest: Vec<Race>,
}

/// Counts and groups what the scan finds.
#[derive(Debug)]
pub(crate) struct Tally {
    counts: Counts,
    last_second: Option<EventId>,
    racy: IndexVec<VarId, bool>,
    /// For each site the first one with the same location.
    locations: IndexVec<SiteId, SiteId>,
    group_of: FxHashMap<(SiteId, SiteId), usize>,
    groups: Vec<Group>,
    /// The location pairs beyond those that have a group. There may be millions, so they are only
    /// told apart.
    unlisted: FxHashSet<(SiteId, SiteId)>,
    is_lower_bound: bool,
    first: Option<Race>,
    maxima: Maxima,
}

/// How many location pairs are kept, and in what way.
#[derive(Clone, Copy, Debug)]
struct Maxima {
    groups: usize,
    location_pairs: usize,
}

impl Tally {
    pub(crate) fn new(trace: &Trace) -> Self {
        Self::bounded(trace, Maxima { groups: GROUPS_MAX, location_pairs: LOCATION_PAIRS_MAX })
    }

    fn bounded(trace: &Trace, maxima: Maxima) -> Self {
        let names = trace.names();
        Self {
            counts: Counts::default(),
            last_second: None,
            racy: IndexVec::from_elem(false, names.vars.len()),
            locations: trace.names().first_sites(),
            group_of: FxHashMap::default(),
            groups: Vec::new(),
            unlisted: FxHashSet::default(),
            is_lower_bound: false,
            first: None,
            maxima,
        }
    }

    pub(crate) fn add(&mut self, trace: &Trace, unordered: &Unordered<'_>) {
        let second = unordered.second;
        let event = trace.event(second);
        let count = unordered.len() as u64;
        self.counts.pairs += count;
        if let Some(first) = unordered.firsts().next_back() {
            let race = Race { first, second };
            let is_first =
                self.first.is_none_or(|known| known.second == second && known.first < first);
            self.first = if is_first { Some(race) } else { self.first };
        }
        self.counts.second_events += u64::from(self.last_second != Some(second));
        self.last_second = Some(second);
        if let Some(var) = event.op.var() {
            self.counts.vars += u64::from(!self.racy[var]);
            self.racy[var] = true;
        }
        let (left, right) = (self.locations[unordered.site], self.locations[event.site]);
        let sites = (left.min(right), left.max(right));
        let Some(group) = self.group(sites) else { return };
        group.count += count;
        for first in unordered.firsts().take(TRIES_MAX) {
            let race = Race { first, second };
            if !insert(&mut group.earliest, race) {
                break;
            }
        }
    }

    /// The group of the location pair `sites`, if it is among the first ones; it is counted anyway.
    fn group(&mut self, sites: (SiteId, SiteId)) -> Option<&mut Group> {
        if self.groups.len() < self.maxima.groups {
            let at = *self.group_of.entry(sites).or_insert(self.groups.len());
            if at == self.groups.len() {
                self.groups.push(Group { sites, count: 0, earliest: Vec::new() });
            }
            return Some(&mut self.groups[at]);
        }
        if let Some(&at) = self.group_of.get(&sites) {
            return Some(&mut self.groups[at]);
        }
        if self.groups.len() + self.unlisted.len() < self.maxima.location_pairs {
            self.unlisted.insert(sites);
        } else if !self.unlisted.contains(&sites) {
            self.is_lower_bound = true;
        }
        None
    }

    pub(crate) fn finish(mut self) -> Races {
        self.counts.location_pairs = (self.groups.len() + self.unlisted.len()) as u64;
        self.groups.sort_by_key(|group| group.earliest.first().map(Race::order));
        let Self { counts, groups, is_lower_bound, first, .. } = self;
        Races { counts, groups, is_lower_bound, first }
    }
}

/// Adds `race` if it is among the earliest.
fn insert(earliest: &mut Vec<Race>, race: Race) -> bool {
    let at = earliest.partition_point(|other| other.order() < race.order());
    if at == TRIES_MAX {
        return false;
    }
    earliest.truncate(TRIES_MAX - 1);
    earliest.insert(at, race);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Scan;

    fn tallied(trace: &Trace, groups: usize, location_pairs: usize) -> Races {
        let mut scan = Scan::default();
        let mut tally = Tally::bounded(trace, Maxima { groups, location_pairs });
        for (second, _) in trace.events() {
            scan.step(trace, second, |_| 0, |unordered| tally.add(trace, &unordered));
        }
        tally.finish()
    }

    #[test]
    fn location_pairs_beyond_the_first_are_counted_and_have_no_group() {
        let lines = (0..6).map(|at| format!("T1|w(x)|a{at}\nT2|w(x)|b{at}\n"));
        let trace = reweave_testkit::std(&lines.collect::<String>());
        let whole = tallied(&trace, 100, 100);
        assert_eq!((whole.groups.len(), whole.counts.location_pairs), (36, 36));
        let few = tallied(&trace, 5, 100);
        assert_eq!((few.groups.len(), few.unlisted()), (5, 31));
        assert_eq!((few.counts, few.is_lower_bound), (whole.counts, false));
        assert_eq!(few.groups[..1], whole.groups[..1]);
        let bound = tallied(&trace, 5, 20);
        assert_eq!((bound.counts.location_pairs, bound.is_lower_bound), (20, true));
        assert!(!tallied(&trace, 5, 36).is_lower_bound);
    }
}
