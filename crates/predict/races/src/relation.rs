//! Races of a relation: which conflicting accesses does it leave unordered?
//!
//! One pass over the trace keeps the relation's clocks and, for each variable and thread, all
//! accesses so far, by code location. An access races with exactly those of other threads that its
//! own clock has not seen: at each location the newest ones, found by binary search. So pairs are
//! counted without being listed, and grouped by location pair as they come.
//!
//! | relation | finds | a pair is |
//! | --- | --- | --- |
//! | `hb`, happens-before | what no synchronisation orders | real if it is the first, else often not |
//! | `shb`, schedulable happens-before | those of `hb` that can happen | real |
//! | `wcp`, weak causally-precedes | also across locks | real, or a deadlock is, if it is the first |
//! | `cp`, causally-precedes | the same, a little less | the same |
//!
//! The counts are exact, over the whole trace, as `oracle::races` lists the pairs. Each reported
//! pair is put before the engine: it is called witnessed if there is a schedule that the checker
//! accepts, first if the theorem of the relation says that it is a race or hides a deadlock, and
//! unordered otherwise. Of a location pair the earliest [`TRIES_MAX`] instances are tried, and the
//! first that passes stands for all. With a window of K events, only pairs less than K apart count,
//! and CP takes longer spans of sections for ordered: what is left is a part of what CP finds.
//!
//! Costs a binary search for each access, other thread and location not yet seen; memory is
//! linear in the accesses, and some bytes for each location pair.
//!
//! Follows Pozniansky and Schuster (PPoPP 2003) for `hb`, keeping all accesses where they keep the
//! latest; Mathur, Kini and Viswanathan (OOPSLA 2018) for `shb`; Kini, Mathur and Viswanathan (PLDI
//! 2017) for `wcp`; Smaragdakis et al. (POPL 2012) for `cp`.

use std::collections::hash_map::Entry;
use std::ops::ControlFlow;

use reweave_analysis::{
    Analysis, Class, Counter, Coverage, Gathered, Guarantee, Identities, Info, Kind, Layer,
    Settings, Sink, Subject, Truncation,
};
use reweave_base::{FxHashMap, FxHashSet, Id, IndexVec, id};
use reweave_driver::{Driver, Reorderings, TRIES_MAX};
use reweave_order::Clocks;
use reweave_order::access::{CLASSES, CONFLICTS, class};
use reweave_order::cp::CausallyPrecedes;
use reweave_order::hb::HappensBefore;
use reweave_order::shb::SchedulableHappensBefore;
use reweave_order::wcp::WeakCausallyPrecedes;
use reweave_trace::{AccessOp, Event, EventId, LockOp, Op, SiteId, ThreadId, Trace, VarId};

use crate::pairs::{Access, Counts, GROUPS_MAX, Group, Race, RacePredictor, Unordered, to_prove};

/// How many location pairs are distinguished at most; beyond that their number is a lower bound.
const LOCATION_PAIRS_MAX: usize = 20_000_000;

/// How many pairs are listed one by one at most.
const PAIRS_MAX: usize = 10_000_000;

/// How many events are gone through between two looks at whether to stop.
const STRIDE: usize = 1 << 16;

/// The relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Happens-before.
    HappensBefore,
    /// Schedulable happens-before.
    Shb,
    /// Weak causally-precedes.
    Wcp,
    /// Causally-precedes.
    Cp,
}

impl Relation {
    /// Every relation.
    pub const ALL: [Self; 4] = [Self::HappensBefore, Self::Shb, Self::Wcp, Self::Cp];
}

/// Counts and groups the races of `relation` in `trace`.
///
/// ```
/// use reweave_races::relation::{Relation, races};
///
/// let trace = reweave_testkit::trace("
/// T1    T2
/// w(x)
///       w(x)
///       w(x)
/// ");
/// assert_eq!(races(&trace, Relation::HappensBefore).counts.pairs, 2);
/// ```
#[must_use]
pub fn races(trace: &Trace, relation: Relation) -> Races {
    passed(trace, relation, None, false).0
}

/// Lists every race of `relation` in `trace`, in the order their second accesses were observed;
/// with a window only those of accesses less than `window` events apart.
///
/// ```
/// use reweave_races::relation::{Relation, pairs};
///
/// let trace = reweave_testkit::trace("
/// T1    T2
/// w(x)
///       w(x)
///       w(x)
/// ");
/// let numbers = |window| {
///     let pairs = pairs(&trace, Relation::HappensBefore, window).into_iter();
///     pairs.map(|race| (race.first.number(), race.second.number())).collect::<Vec<_>>()
/// };
/// assert_eq!(numbers(None), [(1, 2), (1, 3)]);
/// assert_eq!(numbers(Some(2)), [(1, 2)]);
/// ```
#[must_use]
pub fn pairs(trace: &Trace, relation: Relation, window: Option<u32>) -> Vec<Race> {
    passed(trace, relation, window, true).1
}

fn passed(
    trace: &Trace,
    relation: Relation,
    window: Option<u32>,
    keeps_pairs: bool,
) -> (Races, Vec<Race>) {
    let (subject, settings, mut sink) =
        (Subject::new(trace), Settings::default(), Gathered::default());
    let mut pass = Pass::new(trace, window, keeps_pairs);
    _ = pass.run(relation, &mut Driver::new(&subject, &settings, &mut sink));
    (pass.groups.finish(), pass.pairs)
}

/// The pass over a trace.
struct Pass<'t> {
    trace: &'t Trace,
    window: Option<u32>,
    keeps_pairs: bool,
    history: AccessHistory,
    groups: Groups<'t>,
    pairs: Vec<Race>,
}

impl<'t> Pass<'t> {
    fn new(trace: &'t Trace, window: Option<u32>, keeps_pairs: bool) -> Self {
        Self {
            trace,
            window,
            keeps_pairs,
            history: AccessHistory::default(),
            groups: Groups::new(trace),
            pairs: Vec::new(),
        }
    }

    fn run(&mut self, relation: Relation, driver: &mut Driver<'_, '_>) -> ControlFlow<()> {
        match (relation, self.window) {
            (Relation::HappensBefore, _) => self.go(&mut HappensBefore::new(), driver),
            (Relation::Shb, _) => self.go(&mut SchedulableHappensBefore::new(), driver),
            (Relation::Wcp, _) => self.go(&mut WeakCausallyPrecedes::new(self.trace), driver),
            (Relation::Cp, None) => {
                self.go(&mut CausallyPrecedes::new(self.trace).clocks(), driver)
            }
            (Relation::Cp, Some(window)) => {
                let order = CausallyPrecedes::within(self.trace, window as usize);
                self.go(&mut order.clocks(), driver)
            }
        }
    }

    fn go(&mut self, clocks: &mut impl Clocks, driver: &mut Driver<'_, '_>) -> ControlFlow<()> {
        let trace = self.trace;
        for (second, _) in trace.events() {
            if second.index().is_multiple_of(STRIDE) {
                driver.progress(second.index(), trace.len())?;
            }
            let clock = clocks.advance(trace, second);
            let earliest = self.window.map(|window| {
                EventId::from_index((second.index() + 1).saturating_sub(window as usize))
            });
            let from = self.pairs.len();
            self.history.step(
                trace,
                second,
                |thread| clock.get(thread),
                |unordered| {
                    let Some(unordered) =
                        earliest.map_or(Some(unordered), |first| unordered.since(first))
                    else {
                        return;
                    };
                    self.groups.add(trace, &unordered);
                    if self.keeps_pairs && self.pairs.len() < PAIRS_MAX {
                        self.pairs.extend(unordered.firsts().map(|first| Race { first, second }));
                    }
                },
            );
            self.pairs[from..].sort_unstable_by_key(Race::order);
        }
        ControlFlow::Continue(())
    }
}

/// The analysis of one relation as one of many.
#[derive(Clone, Copy, Debug)]
pub struct RelationRaces {
    info: &'static Info,
    relation: Relation,
}

const fn info(name: &'static str, summary: &'static str, paper: &'static str) -> Info {
    Info {
        name,
        family: "races",
        kind: Kind::Race,
        guarantee: Guarantee::Witnessed,
        needs: Layer::Events,
        is_default: false,
        summary,
        paper,
    }
}

/// Races of happens-before.
pub const HB: RelationRaces = RelationRaces {
    info: &info(
        "races.hb",
        "conflicting accesses that happens-before leaves unordered",
        "Pozniansky and Schuster, PPoPP 2003",
    ),
    relation: Relation::HappensBefore,
};

/// Races of schedulable happens-before.
pub const SHB: RelationRaces = RelationRaces {
    info: &info(
        "races.shb",
        "those that can happen without reordering critical sections or reads",
        "Mathur, Kini and Viswanathan, OOPSLA 2018",
    ),
    relation: Relation::Shb,
};

/// Races of weak causally-precedes.
pub const WCP: RelationRaces = RelationRaces {
    info: &info(
        "races.wcp",
        "conflicting accesses that weak causally-precedes leaves unordered",
        "Kini, Mathur and Viswanathan, PLDI 2017",
    ),
    relation: Relation::Wcp,
};

/// Races of causally-precedes.
pub const CP: RelationRaces = RelationRaces {
    info: &info(
        "races.cp",
        "conflicting accesses that causally-precedes leaves unordered",
        "Smaragdakis et al., POPL 2012",
    ),
    relation: Relation::Cp,
};

impl Analysis for RelationRaces {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let trace = subject.trace();
        let mut driver = Driver::new(subject, settings, sink);
        let mut pass = Pass::new(trace, settings.window, settings.all);
        // What was found before someone asked to stop is still reported.
        _ = pass.run(self.relation, &mut driver);
        let (mut races, pairs) = (pass.groups.finish(), pass.pairs);
        let is_cut = match settings.all {
            true => (pairs.len() as u64) < races.counts.pairs,
            false => races.unlisted > 0,
        };
        if is_cut || races.is_lower_bound {
            driver.truncate(Truncation::Capped);
        }
        let mut predictor = RacePredictor::new(self.info, subject, Reorderings::All);
        predictor.first = first(trace, &races, self.relation);
        let unlisted = if settings.all { 0 } else { races.unlisted };
        let groups = std::mem::take(&mut races.groups);
        _ = driver.prove(&mut predictor, to_prove(groups, pairs, settings.all));
        let is_grouped = u64::from(!settings.all);
        let untried = unlisted + is_grouped * predictor.untried;
        let mut counters = races.counts.counters();
        counters.extend(races.is_lower_bound.then_some((Counter::LocationPairsExact, 0)));
        counters.extend(races.is_lower_bound.then_some((Counter::UnlistedExact, 0)));
        let more = [
            (Counter::Untried, untried),
            (Counter::Unlisted, unlisted),
            (Counter::Capped, is_grouped * predictor.capped),
            (Counter::Undecided, predictor.undecided),
            (Counter::UnknownWriter, is_grouped * predictor.unknown_writer),
        ];
        counters.extend(more.into_iter().filter(|&(_, count)| count > 0));
        driver.coverage(self.info, counters)
    }
}

/// The first race of `relation`, if its theorem speaks of this trace: the second access as early,
/// then the first as late as can be. The theorems are about locks, well nested and held alone, and
/// about fork and join.
fn first(trace: &Trace, races: &Races, relation: Relation) -> Option<Race> {
    if matches!(relation, Relation::Shb) || !is_well_nested(trace) {
        return None;
    }
    races.first
}

/// Whether `trace` has nothing but accesses, forks, joins, and sections held alone that end in the
/// reverse order of their beginning.
fn is_well_nested(trace: &Trace) -> bool {
    let is_plain = trace.events().all(|(_, event)| {
        matches!(
            event.op,
            Op::Access(AccessOp::Read | AccessOp::Write, _)
                | Op::Lock(
                    LockOp::Acquire | LockOp::Release | LockOp::Request | LockOp::RequestExclusive,
                    _
                )
                | Op::Thread(..)
                | Op::Marker(_)
        )
    });
    let sections = trace.sections();
    is_plain
        && sections.entries().all(|(_, section)| {
            let outer = section.outer.and_then(|outer| sections.get(outer).release);
            outer.is_none_or(|outer| section.release.is_some_and(|release| release < outer))
        })
}

/// What a whole trace holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Races {
    /// How many there are.
    pub counts: Counts,
    /// The pairs by location pair and what is accessed there, in the order of their earliest instances; of
    /// those that showed first, at most [`GROUPS_MAX`].
    pub groups: Vec<Group>,
    /// How many location pairs have something that is in no group.
    pub unlisted: u64,
    /// Whether there were too many location pairs to count: then their number is a lower bound.
    pub is_lower_bound: bool,
    /// The first pair: the second access as early, then the first as late as can be.
    pub first: Option<Race>,
}

/// What distinguishes groups: a site for each of two locations, and what is accessed there. A helper that is
/// handed different variables has a race on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) sites: (SiteId, SiteId),
    class: Class,
}

/// Counts and groups what the scan finds.
#[derive(Debug)]
pub(crate) struct Groups<'t> {
    identities: Identities<'t>,
    counts: Counts,
    last_second: Option<EventId>,
    racy: IndexVec<VarId, bool>,
    /// For each site the first one with the same location.
    locations: IndexVec<SiteId, SiteId>,
    group_of: FxHashMap<Key, usize>,
    groups: Vec<Group>,
    /// All location pairs. There may be millions, so nothing else is kept of them.
    location_pairs: FxHashSet<(SiteId, SiteId)>,
    /// Those with something beyond what has a group.
    unlisted: FxHashSet<(SiteId, SiteId)>,
    is_lower_bound: bool,
    first: Option<Race>,
    maxima: Maxima,
}

/// How many location pairs are kept, and in what way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Maxima {
    pub(crate) groups: usize,
    pub(crate) location_pairs: usize,
}

impl<'t> Groups<'t> {
    fn new(trace: &'t Trace) -> Self {
        Self::bounded(trace, Maxima { groups: GROUPS_MAX, location_pairs: LOCATION_PAIRS_MAX })
    }

    pub(crate) fn bounded(trace: &'t Trace, maxima: Maxima) -> Self {
        let names = trace.names();
        Self {
            identities: Identities::new(trace),
            counts: Counts::default(),
            last_second: None,
            racy: IndexVec::from_elem(false, names.vars.len()),
            locations: names.first_sites(),
            group_of: FxHashMap::default(),
            groups: Vec::new(),
            location_pairs: FxHashSet::default(),
            unlisted: FxHashSet::default(),
            is_lower_bound: false,
            first: None,
            maxima,
        }
    }

    /// How many there are.
    pub(crate) const fn len(&self) -> usize {
        self.groups.len()
    }

    /// What distinguishes the group of accesses to one variable: at a site, and `second`.
    pub(crate) fn key(&self, site: SiteId, second: &Event) -> Key {
        let (left, right) = (self.locations[site], self.locations[second.site]);
        let class = self.identities.class_of(second.op);
        Key { sites: (left.min(right), left.max(right)), class }
    }

    /// The group of `key`, if it has one yet.
    pub(crate) fn get(&self, key: Key) -> Option<&Group> {
        self.group_of.get(&key).map(|&at| &self.groups[at])
    }

    /// Adds the pairs of `unordered`.
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
        let key = self.key(unordered.site, &event);
        let Some(group) = self.group(key) else { return };
        group.count += count;
        for first in unordered.firsts().take(TRIES_MAX) {
            let race = Race { first, second };
            if !insert(&mut group.earliest, race) {
                break;
            }
        }
    }

    /// The group of `key`, if it is among the first ones; its location pair is counted anyway.
    fn group(&mut self, key: Key) -> Option<&mut Group> {
        if let Some(&at) = self.group_of.get(&key) {
            return Some(&mut self.groups[at]);
        }
        let (sites, pairs_max) = (key.sites, self.maxima.location_pairs);
        if self.location_pairs.len() < pairs_max {
            self.location_pairs.insert(sites);
        } else if !self.location_pairs.contains(&sites) {
            self.is_lower_bound = true;
        }
        if self.groups.len() < self.maxima.groups {
            self.group_of.insert(key, self.groups.len());
            self.groups.push(Group { sites, count: 0, earliest: Vec::new() });
            return self.groups.last_mut();
        }
        if self.location_pairs.contains(&sites) {
            self.unlisted.insert(sites);
        }
        None
    }

    pub(crate) fn finish(mut self) -> Races {
        self.counts.location_pairs = self.location_pairs.len() as u64;
        let unlisted = self.unlisted.len() as u64;
        self.groups.sort_by_key(|group| group.earliest.first().map(Race::order));
        let Self { counts, groups, is_lower_bound, first, .. } = self;
        Races { counts, groups, unlisted, is_lower_bound, first }
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

// The accesses so far: what one thread did to one variable is kept by class and code location. The
// places of a class are linked from the one accessed last back to the one accessed first, so a later
// access goes from the newest place until it meets one that it has seen, and recording takes constant
// time. What is seen is the caller's to say: each relation has its own clocks.

id! {
    /// What one thread did to one variable.
    struct HistoryId;
    /// The accesses of one class in one history at one site.
    struct PlaceId;
}

/// The state after the events so far.
#[derive(Debug, Default)]
struct AccessHistory {
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

impl Place {
    fn new(site: SiteId) -> Self {
        // Many a place is accessed once.
        Self { site, older: None, newer: None, accesses: Vec::with_capacity(1) }
    }

    fn last_time(&self) -> u32 {
        self.accesses.last().map_or(0, |access| access.time)
    }
}

impl AccessHistory {
    /// Takes the next event and hands `unordered` the conflicting accesses, never none at a time,
    /// that it is unordered with: those of other threads beyond what it has `seen`.
    fn step(
        &mut self,
        trace: &Trace,
        second: EventId,
        seen: impl Fn(ThreadId) -> u32,
        mut unordered: impl FnMut(Unordered<'_>),
    ) {
        let event = trace.event(second);
        let Some(var) = event.op.var() else { return };
        let histories = self.vars.get_or_default(var);
        for history in histories.iter().filter(|history| history.thread != event.thread) {
            let seen = seen(history.thread);
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
        let access = Access { time: trace.position(second) + 1, event: second };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(trace: &Trace, groups: usize, location_pairs: usize) -> Races {
        let mut history = AccessHistory::default();
        let mut groups_ = Groups::bounded(trace, Maxima { groups, location_pairs });
        for (second, _) in trace.events() {
            history.step(trace, second, |_| 0, |unordered| groups_.add(trace, &unordered));
        }
        groups_.finish()
    }

    #[test]
    fn location_pairs_beyond_the_first_are_counted_and_have_no_group() {
        let lines = (0..6).map(|at| format!("T1|w(x)|a{at}\nT2|w(x)|b{at}\n"));
        let trace = reweave_testkit::std(&lines.collect::<String>());
        let whole = grouped(&trace, 100, 100);
        assert_eq!((whole.groups.len(), whole.counts.location_pairs), (36, 36));
        let few = grouped(&trace, 5, 100);
        assert_eq!((few.groups.len(), few.unlisted), (5, 31));
        assert_eq!((few.counts, few.is_lower_bound), (whole.counts, false));
        assert_eq!(few.groups[..1], whole.groups[..1]);
        let bound = grouped(&trace, 5, 20);
        assert_eq!((bound.counts.location_pairs, bound.is_lower_bound), (20, true));
        assert!(!grouped(&trace, 5, 36).is_lower_bound);
    }
}
