//! The pass over the trace: for each access, the earlier ones that it is unordered with.
//!
//! What one thread did to one variable is kept by class and code location. The places of a class
//! are linked from the one accessed last back to the one accessed first, so a later access walks
//! from the newest place until it meets one that it has seen, and recording takes constant time.

use std::collections::hash_map::Entry;

use reweave_base::{FxHashMap, FxHashSet, Id, IndexVec, id};
use reweave_order::access::{CLASSES, CONFLICTS, class};
use reweave_order::hb::HappensBefore;
use reweave_trace::{EventId, SiteId, ThreadId, Trace, VarId};

use super::{Counts, GROUPS_MAX, Group, LOCATION_PAIRS_MAX, Race, Races, TRIES_MAX};

id! {
    /// What one thread did to one variable.
    struct HistoryId;
    /// The accesses of one class in one history at one site.
    struct PlaceId;
}

/// The state after the events so far.
#[derive(Debug, Default)]
pub(super) struct Scan {
    clocks: HappensBefore,
    vars: IndexVec<VarId, Vec<History>>,
    histories_count: usize,
    places: Places,
}

/// What one thread did to one variable.
#[derive(Debug)]
struct History {
    id: HistoryId,
    thread: ThreadId,
    /// The place of the last access, by [`class`].
    newest: [Option<PlaceId>; CLASSES],
}

#[derive(Debug, Default)]
struct Places {
    all: IndexVec<PlaceId, Place>,
    /// Where each place is; but not those that are their class's only one.
    at: FxHashMap<(HistoryId, usize, SiteId), PlaceId>,
}

/// The accesses of one class at one site, oldest first, linked with the other places of the class
/// in the order of their last accesses.
#[derive(Debug)]
struct Place {
    site: SiteId,
    older: Option<PlaceId>,
    newer: Option<PlaceId>,
    accesses: Vec<Access>,
}

#[derive(Clone, Copy, Debug)]
struct Access {
    /// Its number in its thread, counted from 1.
    time: u32,
    event: EventId,
}

impl Place {
    fn new(site: SiteId) -> Self {
        // Many a place is accessed once.
        Self { site, older: None, newer: None, accesses: Vec::with_capacity(1) }
    }

    fn last_time(&self) -> u32 {
        self.accesses.last().map_or(0, |access| access.time)
    }
}

/// Accesses of one thread at one site that a later access is unordered with.
#[derive(Debug)]
pub(super) struct Unordered<'a> {
    site: SiteId,
    accesses: &'a [Access],
    second: EventId,
}

impl Unordered<'_> {
    /// The earlier accesses, oldest first.
    pub(super) fn firsts(&self) -> impl Iterator<Item = EventId> {
        self.accesses.iter().map(|access| access.event)
    }
}

impl Scan {
    /// Takes the next event and tells `unordered` of the conflicting accesses, never none at a
    /// time, that it is unordered with.
    pub(super) fn step(
        &mut self,
        trace: &Trace,
        second: EventId,
        mut unordered: impl FnMut(Unordered<'_>),
    ) {
        let clock = self.clocks.advance(trace, second);
        let event = trace.event(second);
        let Some(var) = event.op.var() else { return };
        let histories = self.vars.get_or_default(var);
        for history in histories.iter().filter(|history| history.thread != event.thread) {
            let seen = clock.get(history.thread);
            for &other in CONFLICTS[class(event.op)] {
                for place in self.places.back_from(history.newest[other]) {
                    if place.last_time() <= seen {
                        break;
                    }
                    let from = place.accesses.partition_point(|access| access.time <= seen);
                    let accesses = &place.accesses[from..];
                    unordered(Unordered { site: place.site, accesses, second });
                }
            }
        }
        let access = Access { time: clock.get(event.thread), event: second };
        let at = histories.iter().position(|history| history.thread == event.thread);
        let at = at.unwrap_or_else(|| {
            let id = HistoryId::from_index(self.histories_count);
            self.histories_count += 1;
            histories.push(History { id, thread: event.thread, newest: [None; CLASSES] });
            histories.len() - 1
        });
        self.places.record(&mut histories[at], class(event.op), event.site, access);
    }
}

impl Places {
    /// The places linked from `newest` on, the one accessed last first.
    fn back_from(&self, newest: Option<PlaceId>) -> impl Iterator<Item = &Place> {
        std::iter::successors(newest.map(|id| &self.all[id]), |place| {
            place.older.map(|id| &self.all[id])
        })
    }

    /// Adds `access` to its place in `history` and makes that the newest.
    fn record(&mut self, history: &mut History, class: usize, site: SiteId, access: Access) {
        let newest = history.newest[class];
        if let Some(newest) = newest {
            let place = &mut self.all[newest];
            if place.site == site {
                place.accesses.push(access);
                return;
            }
            if place.older.is_none() {
                self.at.insert((history.id, class, place.site), newest);
            }
        }
        let id = match newest {
            None => self.all.push(Place::new(site)),
            Some(_) => match self.at.entry((history.id, class, site)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(self.all.push(Place::new(site))),
            },
        };
        self.unlink(id);
        self.all[id].accesses.push(access);
        self.all[id].older = newest;
        if let Some(newest) = newest {
            self.all[newest].newer = Some(id);
        }
        history.newest[class] = Some(id);
    }

    /// Links the neighbours of `id` with each other.
    fn unlink(&mut self, id: PlaceId) {
        let (older, newer) = (self.all[id].older.take(), self.all[id].newer.take());
        if let Some(older) = older {
            self.all[older].newer = newer;
        }
        if let Some(newer) = newer {
            self.all[newer].older = older;
        }
    }
}

/// Counts and groups what the scan finds.
#[derive(Debug)]
pub(super) struct Tally {
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
    maxima: Maxima,
}

/// How many location pairs are kept, and in what way.
#[derive(Clone, Copy, Debug)]
struct Maxima {
    groups: usize,
    location_pairs: usize,
}

impl Tally {
    pub(super) fn new(trace: &Trace) -> Self {
        Self::bounded(trace, Maxima { groups: GROUPS_MAX, location_pairs: LOCATION_PAIRS_MAX })
    }

    fn bounded(trace: &Trace, maxima: Maxima) -> Self {
        let names = trace.names();
        let mut first: FxHashMap<&str, SiteId> = FxHashMap::default();
        let locations =
            names.sites.entries().map(|(id, _)| *first.entry(names.location(id)).or_insert(id));
        Self {
            counts: Counts::default(),
            last_second: None,
            racy: IndexVec::from_elem(false, names.vars.len()),
            locations: locations.collect(),
            group_of: FxHashMap::default(),
            groups: Vec::new(),
            unlisted: FxHashSet::default(),
            is_lower_bound: false,
            maxima,
        }
    }

    pub(super) fn add(&mut self, trace: &Trace, unordered: &Unordered<'_>) {
        let second = unordered.second;
        let event = trace.event(second);
        let count = unordered.accesses.len() as u64;
        self.counts.pairs += count;
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

    pub(super) fn finish(mut self) -> Races {
        self.counts.location_pairs = (self.groups.len() + self.unlisted.len()) as u64;
        self.groups.sort_by_key(|group| group.earliest.first().map(Race::order));
        let is_lower_bound = self.is_lower_bound;
        Races { counts: self.counts, groups: self.groups, is_lower_bound }
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

    fn tallied(trace: &Trace, groups: usize, location_pairs: usize) -> Races {
        let mut scan = Scan::default();
        let mut tally = Tally::bounded(trace, Maxima { groups, location_pairs });
        for (second, _) in trace.events() {
            scan.step(trace, second, |unordered| tally.add(trace, &unordered));
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
