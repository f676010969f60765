//! The patterns that nothing simple rules out.
//!
//! What the other thread does must not be needed by the first event of the block, nor need the last;
//! and no lock may be held from the first to the last that is held between as well. What an event
//! needs only grows along its thread, so of accesses that are alike a range is left, found by binary
//! search: patterns are counted without being listed. Of each range those next to the block, in
//! observed order, are kept to be tried.
//!
//! A pattern that another is within is left out: where a run shows `first`, `b`, `second`, and the
//! block has an access between the two that conflicts with `b`, the run also shows `b` between that
//! one and one of the two. So on one variable the two events of the block are next to each other
//! among its accesses that conflict with `b`; on two, none of those of the block that conflict lies
//! between; and of the other thread's accesses at two code locations those next to each other do.
//!
//! Costs a binary search for each two neighbours in a block and each set of alike accesses of other
//! threads; that much for each two variables of the block besides.

use std::mem;

use reweave_analysis::{Class, Identities};
use reweave_base::{FxHashMap, IndexVec};
use reweave_order::mhb::MustHappenBefore;
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, LockId, NameKind, SiteId, ThreadId, Trace, VarId};

use super::Pattern;
use crate::blocks::{BlockRunId, Blocks};

/// How many patterns of one set of code locations and variables are kept.
pub const KEPT_MAX: usize = 64;

/// How many of one range are kept.
const NEAREST: usize = 4;

/// How many patterns are kept in all.
const KEPT_TOTAL: usize = 2_000_000;

/// How many sets of code locations and variables are distinguished.
const GROUPS_MAX: usize = 1_000_000;

/// Which patterns are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Of each set of code locations and variables the first few.
    Some,
    /// All.
    All,
}

/// On how many variables patterns are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// On one, with one event of another thread.
    One,
    /// On two, with one event of another thread on each.
    Two,
}

/// The patterns at one set of code locations, on the same variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// How many there are.
    pub count: u64,
    /// Those to try, in this order: those of the earliest blocks.
    pub kept: Vec<Pattern>,
}

impl Group {
    /// Whether there are patterns that are not kept.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.count > self.kept.len() as u64
    }
}

/// The code location of an event, and the class of what it accesses.
type Side = (SiteId, Option<Class>);

/// What the events of a pattern are at and on, in a fixed order. A helper may be handed different variables.
type Key = [Option<Side>; 4];

/// The patterns of a trace, by code locations and variables.
#[derive(Debug)]
pub struct Candidates<'a, 't> {
    trace: &'t Trace,
    blocks: &'a Blocks,
    needs: &'a MustHappenBefore<'t>,
    accesses: Accesses,
    groups: Groups,
    /// Whether what an event needs is needed in every reordering.
    are_needs_exact: bool,
}

/// The groups so far.
#[derive(Debug)]
struct Groups {
    extent: Extent,
    groups: Vec<Group>,
    group_of: FxHashMap<Key, usize>,
    /// How many patterns are kept in all groups.
    kept_count: usize,
    steps_left: u64,
    /// Whether there are more sets of code locations and variables than are distinguished.
    is_full: bool,
}

/// The accesses of a block to one variable, in program order.
#[derive(Debug)]
struct Own {
    var: VarId,
    all: Vec<EventId>,
    writes: Vec<EventId>,
}

impl Own {
    /// Those that conflict with a write, or with a read that does not write.
    fn conflicting(&self, with_write: bool) -> &[EventId] {
        if with_write { &self.all } else { &self.writes }
    }
}

impl<'a, 't> Candidates<'a, 't> {
    /// The patterns of `blocks`, none found yet; `needs` are those of `trace`. Looking for them
    /// takes at most `steps` steps.
    #[must_use]
    pub fn new(
        needs: &'a MustHappenBefore<'t>,
        trace: &'t Trace,
        blocks: &'a Blocks,
        extent: Extent,
        steps: u64,
    ) -> Self {
        let shared = shared(trace, blocks);
        Self {
            trace,
            blocks,
            needs,
            accesses: Accesses::new(trace, |var| shared[var]),
            groups: Groups {
                extent,
                groups: Vec::new(),
                group_of: FxHashMap::default(),
                kept_count: 0,
                steps_left: steps,
                is_full: false,
            },
            // A take may do with another post than the one it used.
            are_needs_exact: trace.declared().starts.iter().all(Option::is_none),
        }
    }

    /// Looks for the patterns of those blocks of which `is_wanted` says so; stops when it says
    /// nothing. Gives the groups in the order of their first patterns, and whether these are all.
    pub fn find(
        &mut self,
        width: Width,
        mut is_wanted: impl FnMut(BlockRunId) -> Option<bool>,
    ) -> (Vec<Group>, bool) {
        let mut is_whole = true;
        for block in self.blocks.ids() {
            let found = match is_wanted(block) {
                Some(true) => self.add_block(block, width),
                Some(false) => Some(()),
                None => None,
            };
            if found.is_none() {
                is_whole = false;
                break;
            }
        }
        self.groups.group_of.clear();
        (mem::take(&mut self.groups.groups), is_whole)
    }

    /// Whether the search ended because there are too many sets of code locations and variables.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.groups.is_full
    }

    /// How many steps are left.
    #[must_use]
    pub const fn steps_left(&self) -> u64 {
        self.groups.steps_left
    }

    /// The accesses of `block` by variable, in the order of their first accesses.
    fn own(&self, block: BlockRunId) -> Vec<Own> {
        let mut own: Vec<Own> = Vec::new();
        let mut at_of: FxHashMap<VarId, usize> = FxHashMap::default();
        for &id in self.blocks[block].events(self.trace) {
            let op = self.trace.event(id).op;
            let Some(var) = op.var().filter(|&var| !self.accesses.of_var(var).alike.is_empty())
            else {
                continue;
            };
            let at = *at_of.entry(var).or_insert_with(|| {
                own.push(Own { var, all: Vec::new(), writes: Vec::new() });
                own.len() - 1
            });
            own[at].all.push(id);
            if op.is_write() {
                own[at].writes.push(id);
            }
        }
        own
    }

    /// Adds the patterns of `block`; none if the steps are used up.
    fn add_block(&mut self, block: BlockRunId, width: Width) -> Option<()> {
        let own = self.own(block);
        for early in &own {
            for late in &own {
                if (early.var == late.var) != (width == Width::One) {
                    continue;
                }
                // Whether the other thread's event on the first variable writes, and on the second.
                let kinds: &[(bool, bool)] = match width {
                    Width::One => &[(true, true), (false, false)],
                    Width::Two => &[(true, true), (true, false), (false, true), (false, false)],
                };
                for &(left, right) in kinds {
                    let pairs = closest(early.conflicting(left), late.conflicting(right));
                    self.groups.spend(1 + pairs.len() as u64)?;
                    for ends in pairs {
                        let pair = self.pair(block, ends);
                        match width {
                            Width::One => self.add_single(&pair, early.var, left)?,
                            Width::Two => {
                                self.add_double(&pair, (early.var, left), (late.var, right))?;
                            }
                        }
                    }
                }
            }
        }
        Some(())
    }

    fn pair(&self, block: BlockRunId, [first, second]: [EventId; 2]) -> Pair<'a, 't> {
        let thread = self.blocks[block].thread;
        let held = self.trace.sections().held(thread, second);
        let sections = held.filter(|section| section.acquire < first).copied().collect();
        let needs = self.are_needs_exact.then_some(self.needs);
        Pair { trace: self.trace, needs, block, thread, first, second, sections }
    }

    /// Adds the patterns around one access of another thread to `var`, which `writes` or not.
    fn add_single(&mut self, pair: &Pair<'_, 't>, var: VarId, writes: bool) -> Option<()> {
        let accesses = &self.accesses;
        let side = |event: EventId| accesses.side(self.trace, event);
        let variable = accesses.of_var(var);
        for peers in &variable.peers {
            self.groups.spend(1)?;
            if peers.writes != writes || pair.excludes(accesses, peers.locks) {
                continue;
            }
            for alike in peers.alike.iter().map(|&at| &variable.alike[at]) {
                self.groups.spend(1)?;
                if alike.thread != pair.thread {
                    let range = pair.range(alike);
                    let kept = self.groups.nearest(pair, range).iter().map(|&one| [one, one]);
                    let patterns = kept.map(|between| pair.pattern(between)).collect();
                    self.groups.add(range.len() as u64, patterns, side)?;
                }
            }
        }
        Some(())
    }

    /// Adds the patterns around two accesses of another thread, each to a variable and writing it
    /// or not.
    fn add_double(
        &mut self,
        pair: &Pair<'_, 't>,
        early: (VarId, bool),
        late: (VarId, bool),
    ) -> Option<()> {
        let accesses = &self.accesses;
        let side = |event: EventId| accesses.side(self.trace, event);
        // Whoever accesses both is found among those who access the variable that fewer do.
        let count = |(var, _): (VarId, bool)| accesses.of_var(var).alike.len();
        let is_early = count(early) <= count(late);
        let ((var, writes), (other, other_writes)) =
            if is_early { (early, late) } else { (late, early) };
        let variable = accesses.of_var(var);
        for peers in &variable.peers {
            self.groups.spend(1)?;
            if peers.writes != writes || pair.excludes(accesses, peers.locks) {
                continue;
            }
            for one in peers.alike.iter().map(|&at| &variable.alike[at]) {
                self.groups.spend(1)?;
                if one.thread == pair.thread {
                    continue;
                }
                for partner in accesses.of_thread(other, one.thread) {
                    self.groups.spend(1)?;
                    if partner.writes != other_writes || pair.excludes(accesses, partner.locks) {
                        continue;
                    }
                    let (early, late) = if is_early { (one, partner) } else { (partner, one) };
                    let between = closest(pair.range(early), pair.range(late));
                    self.groups.add_closest(pair, &between, side)?;
                }
            }
        }
        Some(())
    }
}

impl Groups {
    /// Pays for `count` steps; none if they are used up.
    fn spend(&mut self, count: u64) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(count)?;
        Some(())
    }

    /// Those of `range` that are next to the block, or all if all are wanted.
    fn nearest<'l>(&self, pair: &Pair<'_, '_>, range: &'l [EventId]) -> &'l [EventId] {
        match self.extent {
            Extent::All => range,
            Extent::Some => {
                let pivot = range.partition_point(|&event| event < pair.second);
                let last = range.len().saturating_sub(NEAREST);
                let from = pivot.saturating_sub(NEAREST / 2).min(last);
                &range[from..range.len().min(from + NEAREST)]
            }
        }
    }

    /// Adds the patterns around each of `between`.
    fn add_closest(
        &mut self,
        pair: &Pair<'_, '_>,
        between: &[[EventId; 2]],
        side: impl Fn(EventId) -> Side,
    ) -> Option<()> {
        self.spend(between.len() as u64)?;
        let lates: Vec<EventId> = between.iter().map(|&[_, late]| late).collect();
        let kept = self.nearest(pair, &lates);
        let is_kept = |[_, late]: &&[EventId; 2]| kept.binary_search(late).is_ok();
        let patterns = between.iter().filter(is_kept).map(|&between| pair.pattern(between));
        self.add(lates.len() as u64, patterns.collect(), side)
    }

    /// Counts `count` patterns with the same sides, of which `patterns` may be tried; none if
    /// there are too many sets of sides.
    fn add(
        &mut self,
        count: u64,
        patterns: Vec<Pattern>,
        side: impl Fn(EventId) -> Side,
    ) -> Option<()> {
        let Some(pattern) = patterns.first() else { return Some(()) };
        let mut key: Key = [None; 4];
        for (slot, event) in key.iter_mut().zip(pattern.chain()) {
            *slot = Some(side(event));
        }
        key.sort_unstable();
        if self.groups.len() >= GROUPS_MAX && !self.group_of.contains_key(&key) {
            self.is_full = true;
            return None;
        }
        let groups = &mut self.groups;
        let at = *self.group_of.entry(key).or_insert_with(|| {
            groups.push(Group { count: 0, kept: Vec::new() });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.count += count;
        let room = match self.extent {
            Extent::All => usize::MAX,
            Extent::Some => KEPT_MAX.saturating_sub(group.kept.len()),
        };
        let kept_before = group.kept.len();
        group.kept.extend(patterns.into_iter().take(room.min(KEPT_TOTAL - self.kept_count)));
        self.kept_count += group.kept.len() - kept_before;
        Some(())
    }
}

/// Two events of a block, between which something is to come.
struct Pair<'a, 't> {
    trace: &'t Trace,
    /// What each event needs, where that says what cannot be.
    needs: Option<&'a MustHappenBefore<'t>>,
    block: BlockRunId,
    thread: ThreadId,
    first: EventId,
    second: EventId,
    /// The sections that the thread is in from the first to the second.
    sections: Vec<CriticalSection>,
}

impl Pair<'_, '_> {
    fn pattern(&self, between: [EventId; 2]) -> Pattern {
        Pattern { block: self.block, first: self.first, between, second: self.second }
    }

    /// Whether what holds `locks` cannot come between.
    fn excludes(&self, accesses: &Accesses, locks: LocksId) -> bool {
        accesses.are_excluded(locks, &self.sections)
    }

    /// Those of `alike` that the first event does not need and that do not need the second, as far
    /// as they run.
    fn range<'l>(&self, alike: &'l Alike) -> &'l [EventId] {
        let Some(needs) = self.needs else { return &alike.events };
        let needed = needs.past(self.first).get(alike.thread);
        let start = alike.events.partition_point(|&event| self.trace.position(event) < needed);
        let last = self.trace.position(self.second);
        let is_free = |&event: &EventId| needs.before(event).get(self.thread) <= last;
        let count = alike.events[start..].partition_point(is_free);
        &alike.events[start..start + count]
    }
}

/// Pairs of one of `early` and a later one of `late` with none of either between them.
fn closest(early: &[EventId], late: &[EventId]) -> Vec<[EventId; 2]> {
    let mut pairs: Vec<[EventId; 2]> = Vec::new();
    let mut at = 0;
    for &second in late {
        at += early[at..].partition_point(|&first| first < second);
        let Some(before) = at.checked_sub(1) else { continue };
        if pairs.last().is_none_or(|&[first, _]| first != early[before]) {
            pairs.push([early[before], second]);
        }
    }
    pairs
}

/// Whether more than one thread accesses each variable, at least one of them to write, and a block
/// does. What the recorder added is no variable of the program.
fn shared(trace: &Trace, blocks: &Blocks) -> IndexVec<VarId, bool> {
    let mut shared = IndexVec::from_elem(false, trace.names().vars.len());
    for (_, block) in blocks.entries() {
        for &event in block.events(trace) {
            if let Some(var) = trace.event(event).op.var() {
                shared[var] = true;
            }
        }
    }
    for var in shared.ids() {
        shared[var] &= !trace.names().is_added(var);
        if !shared[var] {
            continue;
        }
        let accesses = || trace.accesses(var).iter().map(|&access| trace.event(access));
        let first = accesses().next().map(|event| event.thread);
        shared[var] = accesses().any(|event| Some(event.thread) != first)
            && accesses().any(|event| event.op.is_write());
    }
    shared
}

// The accesses of each variable, those that are alike together. Two accesses of one thread to one
// variable are alike if they have the same code location, both write or neither does, and the same
// locks are held at both: then what rules out one rules out the other, but for what happened before
// it.

reweave_base::id! {
    /// A set of locks that are held together.
    struct LocksId;
}

/// Accesses that are alike, in program order.
#[derive(Debug)]
struct Alike {
    thread: ThreadId,
    writes: bool,
    locks: LocksId,
    events: Vec<EventId>,
}

/// Those accesses to a variable that hold the same locks and all write, or none of which does.
#[derive(Debug)]
struct Peers {
    writes: bool,
    locks: LocksId,
    /// As indexes.
    alike: Vec<usize>,
}

/// The accesses to one variable.
#[derive(Debug, Default)]
struct Variable {
    alike: Vec<Alike>,
    peers: Vec<Peers>,
}

/// The accesses to variables that some block accesses and more than one thread does.
#[derive(Debug)]
struct Accesses {
    vars: IndexVec<VarId, Variable>,
    by_thread: FxHashMap<(VarId, ThreadId), Vec<usize>>,
    locks: IndexVec<LocksId, Vec<(LockId, Mode)>>,
    /// For each site the first with the same location.
    locations: IndexVec<SiteId, SiteId>,
    /// The class of each of the variables.
    classes: IndexVec<VarId, Option<Class>>,
}

impl Variable {
    fn add(&mut self, alike: Alike) -> usize {
        let at = self.alike.len();
        let (writes, locks) = (alike.writes, alike.locks);
        let is_peer = |peers: &&mut Peers| peers.writes == writes && peers.locks == locks;
        match self.peers.iter_mut().find(is_peer) {
            Some(peers) => peers.alike.push(at),
            None => self.peers.push(Peers { writes, locks, alike: vec![at] }),
        }
        self.alike.push(alike);
        at
    }
}

impl Accesses {
    /// Those of `trace` to variables for which `is_wanted`.
    fn new(trace: &Trace, is_wanted: impl Fn(VarId) -> bool) -> Self {
        let names = trace.names();
        let mut accesses = Self {
            vars: (0..names.vars.len()).map(|_| Variable::default()).collect(),
            by_thread: FxHashMap::default(),
            locks: IndexVec::new(),
            locations: names.first_sites(),
            classes: IndexVec::from_elem(None, names.vars.len()),
        };
        let identities = Identities::new(trace);
        let mut known: FxHashMap<Vec<(LockId, Mode)>, LocksId> = FxHashMap::default();
        let mut alike: FxHashMap<(VarId, ThreadId, bool, SiteId, LocksId), usize> =
            FxHashMap::default();
        // What each thread holds, until it acquires or releases a lock.
        let mut held: IndexVec<ThreadId, Option<LocksId>> =
            IndexVec::from_elem(None, names.threads.len());
        for (id, event) in trace.events() {
            let Some(var) = event.op.var() else {
                if event.op.kind().operand() == NameKind::Lock {
                    held[event.thread] = None;
                }
                continue;
            };
            if !is_wanted(var) {
                continue;
            }
            accesses.classes[var].get_or_insert_with(|| identities.class_of(event.op));
            let locks = *held[event.thread].get_or_insert_with(|| {
                let mut list: Vec<(LockId, Mode)> = trace
                    .sections()
                    .held(event.thread, id)
                    .map(|section| (section.lock, section.mode))
                    .collect();
                list.sort_unstable_by_key(|&(lock, mode)| (lock, mode == Mode::Shared));
                *known.entry(list).or_insert_with_key(|list| accesses.locks.push(list.clone()))
            });
            let (writes, location) = (event.op.is_write(), accesses.locations[event.site]);
            let variable = &mut accesses.vars[var];
            let at = alike.entry((var, event.thread, writes, location, locks));
            let at = *at.or_insert_with(|| {
                let at = variable.alike.len();
                accesses.by_thread.entry((var, event.thread)).or_default().push(at);
                variable.add(Alike { thread: event.thread, writes, locks, events: Vec::new() })
            });
            variable.alike[at].events.push(id);
        }
        accesses
    }

    /// Where `event` is, and what it accesses.
    fn side(&self, trace: &Trace, event: EventId) -> Side {
        let event = trace.event(event);
        (self.locations[event.site], event.op.var().and_then(|var| self.classes[var]))
    }

    /// The accesses to `var`.
    fn of_var(&self, var: VarId) -> &Variable {
        &self.vars[var]
    }

    /// The accesses of `thread` to `var`.
    fn of_thread(&self, var: VarId, thread: ThreadId) -> impl Iterator<Item = &Alike> {
        let own = self.by_thread.get(&(var, thread)).map_or(&[][..], Vec::as_slice);
        own.iter().map(move |&at| &self.vars[var].alike[at])
    }

    /// Whether what holds `locks` cannot come while another thread is in one of `sections`.
    fn are_excluded(&self, locks: LocksId, sections: &[CriticalSection]) -> bool {
        self.locks[locks].iter().any(|&(lock, mode)| {
            sections.iter().any(|section| {
                let is_alone = mode == Mode::Exclusive || section.mode == Mode::Exclusive;
                section.lock == lock && is_alone
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_testkit::events;

    #[test]
    fn the_closest_pairs_have_none_of_either_between_them() {
        let closest = |early: &[u32], late: &[u32]| -> Vec<Vec<u32>> {
            let pairs = closest(&events(early), &events(late));
            pairs.iter().map(|pair| pair.iter().map(|event| event.number()).collect()).collect()
        };
        assert_eq!(closest(&[1, 2, 5], &[3, 4, 6]), [[2, 3], [5, 6]]);
        assert_eq!(closest(&[1, 2, 5], &[1, 2, 5]), [[1, 2], [2, 5]]);
        assert!(closest(&[4], &[1, 2, 3]).is_empty());
    }
}
