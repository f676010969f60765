//! Happens-before races: which conflicting accesses does synchronisation leave unordered?
//!
//! One pass over the trace keeps the happens-before clocks and, for each variable and thread, all
//! accesses so far, by code location. An access races with exactly those of other threads that its
//! own clock has not seen: at each location the newest ones, found by binary search. So pairs are
//! counted without being listed, and grouped by location pair as they come.
//!
//! The counts are exact, over the whole trace, as [`mod@reference`] lists the pairs. A pair that is
//! unordered need not be a race that can happen: a read on the way may see another write when the
//! two are brought together. So each reported pair comes with a witness, the events that happen
//! before either access in observed order, and is called witnessed only if the independent checker
//! accepts it and the writers of all reads in it were observed. The first unordered pair of a trace
//! always passes, unless a notify came without the lock of its waits. Of a location pair the
//! earliest [`TRIES_MAX`] instances are tried, and the first that passes stands for all; a location
//! pair all of whose tries fail may still hold a race. Where the budget does not last, every
//! location pair is tried once before any is tried again. Instances are kept of the first
//! [`GROUPS_MAX`] location pairs; those beyond are counted and not tried.
//!
//! Costs a binary search for each access, other thread and location not yet seen; memory is
//! linear in the accesses, and some bytes for each location pair. Each try replays the trace once
//! and is paid from the work budget.
//!
//! Follows Pozniansky and Schuster, "Efficient on-the-fly data race detection in multithreaded
//! C++ programs" (PPoPP 2003), keeping all accesses where they keep the latest.

mod prove;
pub mod reference;
mod scan;

use reweave_analysis::{
    Analysis, Coverage, Guarantee, Info, Kind, Layer, Settings, Sink, Subject, Truncation,
};
use reweave_base::{FxHashMap, Id};
use reweave_order::VectorClock;
use reweave_order::hb::HappensBefore;
use reweave_trace::{EventId, Reordering, SiteId, Trace};

use prove::Proofs;
use scan::{Scan, Tally};

/// How many instances of a location pair are tried for a witness.
pub const TRIES_MAX: usize = 8;

/// Of how many location pairs instances are kept.
pub const GROUPS_MAX: usize = 100_000;

/// How many location pairs are told apart at most; beyond that their number is a lower bound.
const LOCATION_PAIRS_MAX: usize = 20_000_000;

/// How many pairs are listed one by one at most.
const PAIRS_MAX: usize = 10_000_000;

/// How many events are gone through between two looks at whether to stop.
const STRIDE: usize = 1 << 16;

/// Two conflicting accesses that happens-before leaves unordered; `first` was observed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Race {
    /// The access observed first.
    pub first: EventId,
    /// The other.
    pub second: EventId,
}

impl Race {
    /// Races are listed in the order in which they showed: by the second access, then the first.
    const fn order(&self) -> (EventId, EventId) {
        (self.second, self.first)
    }
}

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
}

/// How many races a trace holds, counted four ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Unordered conflicting pairs.
    pub pairs: u64,
    /// Events that are the second of a pair.
    pub second_events: u64,
    /// Variables with a pair.
    pub vars: u64,
    /// Pairs of code locations with a pair of accesses.
    pub location_pairs: u64,
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

/// Counts and groups the races of `trace`.
#[must_use]
pub fn races(trace: &Trace) -> Races {
    let mut scan = Scan::default();
    let mut tally = Tally::new(trace);
    for (second, _) in trace.events() {
        scan.step(trace, second, |unordered| tally.add(trace, &unordered));
    }
    tally.finish()
}

/// Lists every race of `trace`, in the order their second accesses were observed.
#[must_use]
pub fn pairs(trace: &Trace) -> Vec<Race> {
    let mut scan = Scan::default();
    let mut pairs = Vec::new();
    for (second, _) in trace.events() {
        let from = pairs.len();
        scan.step(trace, second, |unordered| {
            pairs.extend(unordered.firsts().map(|first| Race { first, second }));
        });
        pairs[from..].sort_unstable_by_key(Race::order);
    }
    pairs
}

/// For each of `races` the events that happen before either access, to run in observed order.
///
/// One pass over the trace; both accesses of each race are next when its witness has run.
#[must_use]
pub fn witnesses(trace: &Trace, races: &[Race]) -> Vec<Reordering> {
    let mut clocks: FxHashMap<EventId, VectorClock> = FxHashMap::default();
    for race in races {
        clocks.insert(race.first, VectorClock::default());
        clocks.insert(race.second, VectorClock::default());
    }
    let Some(last) = races.iter().map(|race| race.second).max() else { return Vec::new() };
    let mut order = HappensBefore::new();
    for (id, _) in trace.events().take(last.index() + 1) {
        let clock = order.advance(trace, id);
        if let Some(kept) = clocks.get_mut(&id) {
            kept.copy_from(clock);
        }
    }
    let witness = |race: &Race| {
        let mut cut = clocks[&race.first].clone();
        cut.join(&clocks[&race.second]);
        let mut base = cut.to_cut();
        for access in [race.first, race.second] {
            base[trace.event(access).thread] = trace.position(access);
        }
        Reordering { base, schedule: Vec::new() }
    };
    races.iter().map(witness).collect()
}

/// The happens-before analysis as one of many.
#[derive(Clone, Copy, Debug, Default)]
pub struct HappensBeforeRaces;

const INFO: Info = Info {
    name: "races.hb",
    family: "races",
    kind: Kind::Race,
    guarantee: Guarantee::Witnessed,
    needs: Layer::Events,
    summary: "conflicting accesses that happens-before leaves unordered",
    paper: "Pozniansky and Schuster, PPoPP 2003",
};

impl Analysis for HappensBeforeRaces {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let trace = subject.trace();
        let mut scan = Scan::default();
        let mut tally = Tally::new(trace);
        let mut pairs = Vec::new();
        let mut truncated = None;
        for (second, _) in trace.events() {
            if second.index().is_multiple_of(STRIDE) {
                sink.progress(second.index() as u64, trace.len() as u64);
                if sink.is_cancelled() {
                    truncated = Some(Truncation::Cancelled);
                    break;
                }
            }
            let from = pairs.len();
            scan.step(trace, second, |unordered| {
                tally.add(trace, &unordered);
                if settings.all && pairs.len() < PAIRS_MAX {
                    pairs.extend(unordered.firsts().map(|first| Race { first, second }));
                }
            });
            pairs[from..].sort_unstable_by_key(Race::order);
        }
        drop(scan);
        let races = tally.finish();
        let is_cut = match settings.all {
            true => (pairs.len() as u64) < races.counts.pairs,
            false => races.unlisted() > 0,
        };
        if is_cut || races.is_lower_bound {
            truncated = truncated.or(Some(Truncation::Budget));
        }
        let mut proofs = Proofs::new(subject, settings, truncated);
        // A break means that no more findings are wanted; the counts hold all the same.
        let mut unlisted = 0;
        if proofs.report_groups(&races.groups, sink).is_continue() {
            unlisted = races.unlisted();
            _ = proofs.report_pairs(pairs, sink);
        }
        let mut counters = races.counts.counters();
        counters.extend(races.is_lower_bound.then_some(("location_pairs_exact", 0)));
        counters.extend(proofs.counters(if settings.all { 0 } else { unlisted }));
        Coverage { analysis: INFO.name, truncated: proofs.truncated(), counters }
    }
}

impl Races {
    /// How many location pairs are in no group.
    #[must_use]
    pub const fn unlisted(&self) -> u64 {
        self.counts.location_pairs - self.groups.len() as u64
    }
}

impl Counts {
    fn counters(self) -> Vec<(&'static str, u64)> {
        vec![
            ("pairs", self.pairs),
            ("second_events", self.second_events),
            ("vars", self.vars),
            ("location_pairs", self.location_pairs),
        ]
    }
}
