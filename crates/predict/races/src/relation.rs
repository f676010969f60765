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

use std::ops::ControlFlow;

use reweave_analysis::{
    Analysis, Coverage, Gathered, Guarantee, Info, Kind, Layer, Settings, Sink, Subject, Truncation,
};
use reweave_base::Id;
use reweave_order::Clocks;
use reweave_order::cp::CausallyPrecedes;
use reweave_order::hb::HappensBefore;
use reweave_order::shb::SchedulableHappensBefore;
use reweave_order::wcp::WeakCausallyPrecedes;
use reweave_trace::{AccessOp, EventId, LockOp, Op, Trace};

use crate::Race;
use crate::decide::Scope;
use crate::finding::Proofs;
use crate::scan::Scan;
#[cfg(doc)]
use crate::tally::TRIES_MAX;
use crate::tally::{Races, Tally};

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
    Schedulable,
    /// Weak causally-precedes.
    WeakCausal,
    /// Causally-precedes.
    Causal,
}

impl Relation {
    /// Every relation.
    pub const ALL: [Self; 4] =
        [Self::HappensBefore, Self::Schedulable, Self::WeakCausal, Self::Causal];
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
    let mut pass = Pass::new(trace, None, false);
    pass.run(relation, &mut Gathered::default());
    pass.tally.finish()
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
    let mut pass = Pass::new(trace, window, true);
    pass.run(relation, &mut Gathered::default());
    pass.pairs
}

/// The pass over a trace.
struct Pass<'t> {
    trace: &'t Trace,
    window: Option<u32>,
    keeps_pairs: bool,
    scan: Scan,
    tally: Tally,
    pairs: Vec<Race>,
    truncated: Option<Truncation>,
}

impl<'t> Pass<'t> {
    fn new(trace: &'t Trace, window: Option<u32>, keeps_pairs: bool) -> Self {
        Self {
            trace,
            window,
            keeps_pairs,
            scan: Scan::default(),
            tally: Tally::new(trace),
            pairs: Vec::new(),
            truncated: None,
        }
    }

    fn run(&mut self, relation: Relation, sink: &mut dyn Sink) {
        match (relation, self.window) {
            (Relation::HappensBefore, _) => self.go(&mut HappensBefore::new(), sink),
            (Relation::Schedulable, _) => self.go(&mut SchedulableHappensBefore::new(), sink),
            (Relation::WeakCausal, _) => {
                self.go(&mut WeakCausallyPrecedes::new(self.trace), sink);
            }
            (Relation::Causal, None) => {
                self.go(&mut CausallyPrecedes::new(self.trace).clocks(), sink);
            }
            (Relation::Causal, Some(window)) => {
                let order = CausallyPrecedes::within(self.trace, window as usize);
                self.go(&mut order.clocks(), sink);
            }
        }
    }

    fn go(&mut self, clocks: &mut impl Clocks, sink: &mut dyn Sink) {
        let trace = self.trace;
        for (second, _) in trace.events() {
            if second.index().is_multiple_of(STRIDE) {
                sink.progress(second.index() as u64, trace.len() as u64);
                if sink.is_cancelled() {
                    self.truncated = Some(Truncation::Cancelled);
                    return;
                }
            }
            let clock = clocks.advance(trace, second);
            let earliest = self.window.map(|window| {
                EventId::from_index((second.index() + 1).saturating_sub(window as usize))
            });
            let from = self.pairs.len();
            self.scan.step(
                trace,
                second,
                |thread| clock.get(thread),
                |unordered| {
                    let Some(unordered) =
                        earliest.map_or(Some(unordered), |first| unordered.since(first))
                    else {
                        return;
                    };
                    self.tally.add(trace, &unordered);
                    if self.keeps_pairs && self.pairs.len() < PAIRS_MAX {
                        self.pairs.extend(unordered.firsts().map(|first| Race { first, second }));
                    }
                },
            );
            self.pairs[from..].sort_unstable_by_key(Race::order);
        }
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
    relation: Relation::Schedulable,
};

/// Races of weak causally-precedes.
pub const WCP: RelationRaces = RelationRaces {
    info: &info(
        "races.wcp",
        "conflicting accesses that weak causally-precedes leaves unordered",
        "Kini, Mathur and Viswanathan, PLDI 2017",
    ),
    relation: Relation::WeakCausal,
};

/// Races of causally-precedes.
pub const CP: RelationRaces = RelationRaces {
    info: &info(
        "races.cp",
        "conflicting accesses that causally-precedes leaves unordered",
        "Smaragdakis et al., POPL 2012",
    ),
    relation: Relation::Causal,
};

impl Analysis for RelationRaces {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let trace = subject.trace();
        let mut pass = Pass::new(trace, settings.window, settings.all);
        pass.run(self.relation, sink);
        let Pass { tally, pairs, mut truncated, .. } = pass;
        let races = tally.finish();
        let is_cut = match settings.all {
            true => (pairs.len() as u64) < races.counts.pairs,
            false => races.unlisted() > 0,
        };
        if is_cut || races.is_lower_bound {
            truncated = truncated.or(Some(Truncation::Budget));
        }
        let mut proofs = Proofs::new(self.info, subject, settings, Scope::All);
        proofs.first = first(trace, &races, self.relation);
        let told = match settings.all {
            true => proofs.report_pairs(&pairs, sink),
            false => {
                let groups = races.groups.iter();
                proofs.report_groups(groups.map(|group| (&group.earliest[..], group.count)), sink)
            }
        };
        if let ControlFlow::Break(Some(reason)) = told {
            truncated = truncated.or(Some(reason));
        }
        if proofs.untried + proofs.undecided > 0 {
            truncated = truncated.or(Some(Truncation::Budget));
        }
        let mut counters = races.counts.counters();
        let unlisted = if settings.all { 0 } else { races.unlisted() };
        let untried = unlisted + if settings.all { 0 } else { proofs.untried };
        let more = [
            ("location_pairs_exact", 0, races.is_lower_bound),
            ("untried", untried, untried > 0),
            ("unlisted", unlisted, unlisted > 0),
            ("undecided", proofs.undecided, proofs.undecided > 0),
            ("loose", proofs.loose, proofs.loose > 0),
        ];
        counters.extend(more.iter().filter(|more| more.2).map(|&(name, count, _)| (name, count)));
        Coverage { analysis: self.info.name, truncated, counters }
    }
}

/// The first race of `relation`, if its theorem speaks of this trace: the second access as early,
/// then the first as late as can be. The theorems are about locks, well nested and held alone, and
/// about fork and join.
fn first(trace: &Trace, races: &Races, relation: Relation) -> Option<Race> {
    if matches!(relation, Relation::Schedulable) || !is_well_nested(trace) {
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
                | Op::Lock(LockOp::Acquire | LockOp::Release | LockOp::Request, _)
                | Op::Thread(..)
                | Op::Block(..)
                | Op::Branch
                | Op::Let(_)
        )
    });
    let sections = trace.sections();
    is_plain
        && sections.entries().all(|(_, section)| {
            let outer = section.outer.and_then(|outer| sections.get(outer).release);
            outer.is_none_or(|outer| section.release.is_some_and(|release| release < outer))
        })
}
