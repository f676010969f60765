//! What reads see and locks exclude.
//!
//! A load chooses a store, or the initial value. The store is made, before the load, and no other
//! store to the slot is made between. In a thread without branches only neighbours need be asked
//! for that: a store before an earlier one is hidden by it, and one after a later one comes later.

use std::rc::Rc;

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{LockId, ThreadId};

use super::bits::Value;
use super::encode::{Encoder, Load, Visit};
use super::gates::Bit;
use super::plan::{UnitId, following};
use crate::ctp::{Action, StepId};
use crate::terms::Slot;

/// A store as loads see it.
struct Source {
    unit: UnitId,
    thread: ThreadId,
    is_written: Bit,
    low: i64,
    high: i64,
    /// The value, as the distance from the least one of the slot.
    distance: Vec<Bit>,
}

/// All stores to a slot, by thread and in a thread in order.
struct Sources {
    all: Vec<Source>,
    low: i64,
    high: i64,
}

impl Encoder<'_> {
    /// Says what loads see.
    pub(super) fn encode_memory(&mut self) {
        let straight: IndexVec<ThreadId, bool> =
            self.ctp.threads.ids().map(|thread| self.ctp.is_straight(thread)).collect();
        let loads = std::mem::take(&mut self.loads);
        let mut sources: FxHashMap<Slot, Sources> = FxHashMap::default();
        for load in &loads {
            if self.circuits.gates.is_full() {
                return;
            }
            let sources =
                sources.entry(load.slot).or_insert_with(|| self.sources(load.slot, &loads));
            self.encode_load(load, sources, &straight);
        }
        self.encode_counters(&loads);
    }

    fn sources(&mut self, slot: Slot, loads: &[Load]) -> Sources {
        let initial = self.circuits.constant(self.ctp.initial[slot]).low;
        let (mut low, mut high) = (initial, initial);
        let stores = self.stores.entries();
        let stores =
            stores.flat_map(|(unit, stores)| stores.iter().map(move |store| (unit, store)));
        let stores = stores.filter(|(_, store)| store.slot == slot);
        let stored = stores.map(|(unit, store)| (unit, store.is_written, store.value.clone()));
        let stored: Vec<_> = stored.collect();
        let loaded = loads.iter().filter(|load| load.slot == slot).map(|load| &load.value);
        for value in stored.iter().map(|(_, _, value)| value).chain(loaded) {
            (low, high) = (low.min(value.low), high.max(value.high));
        }
        let source = |(unit, is_written, value): (UnitId, Bit, Rc<Value>)| Source {
            unit,
            thread: self.plan.units[unit].thread,
            is_written,
            low: value.low,
            high: value.high,
            distance: self.circuits.distances(&value, low, high),
        };
        Sources { all: stored.into_iter().map(source).collect(), low, high }
    }

    fn encode_load(&mut self, load: &Load, sources: &Sources, straight: &IndexVec<ThreadId, bool>) {
        let is_used = self.circuits.gates.any(&load.users);
        let distance = self.circuits.distances(&load.value, sources.low, sources.high);
        let mut choices = vec![!is_used];
        let own = self.plan.units[load.unit].thread;
        // The store of the own thread that hides all before it.
        let hider = if straight[own] { last_before(sources, own, load.unit) } else { None };
        for (position, source) in sources.all.iter().enumerate() {
            let is_hidden = source.thread == own
                && (source.unit >= load.unit || hider.is_some_and(|hider| hider != position));
            let is_apart = source.high < load.value.low || load.value.high < source.low;
            let before = self.order.before(source.unit, load.unit);
            if is_hidden || is_apart || before == Bit::FALSE {
                continue;
            }
            let choice = self.circuits.gates.variable();
            self.circuits.gates.clause(&[!choice, source.is_written]);
            self.circuits.gates.clause(&[!choice, before]);
            self.encode_equal(choice, &source.distance, &distance);
            for (other, between) in sources.all.iter().enumerate() {
                if is_needed(sources, straight, (position, other), (own, load.unit), hider) {
                    let unit = between.unit;
                    let earlier = self.order.before(unit, source.unit);
                    let later = self.order.before(load.unit, unit);
                    self.circuits.gates.clause(&[!choice, !between.is_written, earlier, later]);
                }
            }
            choices.push(choice);
        }
        let initial = self.circuits.constant(self.ctp.initial[load.slot]);
        let is_apart = initial.high < load.value.low || load.value.high < initial.low;
        if hider.is_none() && !is_apart {
            let choice = self.circuits.gates.variable();
            let start = self.circuits.distances(&initial, sources.low, sources.high);
            self.encode_equal(choice, &start, &distance);
            for source in sources.all.iter().filter(|source| source.unit != load.unit) {
                let later = self.order.before(load.unit, source.unit);
                self.circuits.gates.clause(&[!choice, !source.is_written, later]);
            }
            choices.push(choice);
        }
        self.circuits.gates.long_clause(&choices);
    }

    fn encode_equal(&mut self, condition: Bit, left: &[Bit], right: &[Bit]) {
        for (&left, &right) in left.iter().zip(right) {
            self.circuits.gates.clause(&[!condition, !left, right]);
            self.circuits.gates.clause(&[!condition, left, !right]);
        }
    }

    /// Says that at most one thread holds a lock.
    pub(super) fn encode_locks(&mut self) {
        let mut sections: Vec<(LockId, Section)> = Vec::new();
        let mut visits: FxHashMap<StepId, Vec<Visit>> = FxHashMap::default();
        for &visit in &self.visits {
            visits.entry(visit.step).or_default().push(visit);
        }
        for &acquire in &self.visits {
            if let Action::Acquire(lock) = self.ctp.steps[acquire.step].action {
                let next = following(self.ctp, acquire.step, lock);
                let of = |step: &StepId| visits.get(step).into_iter().flatten().copied();
                let releases = next.releases.iter().flat_map(of).collect();
                let again = next.acquires.iter().flat_map(of).collect();
                sections.push((lock, Section { acquire, releases, again }));
            }
        }
        for (position, (lock, one)) in sections.iter().enumerate() {
            for again in &one.again {
                let between = one.releases.iter().filter(|release| release.step < again.step);
                let mut clause: Vec<Bit> = between.map(|release| release.taken).collect();
                clause.extend([!one.acquire.taken, !again.taken]);
                self.circuits.gates.clause(&clause);
            }
            for (_, other) in sections[..position].iter().filter(|(of, _)| of == lock) {
                if self.plan.units[one.acquire.unit].thread
                    != self.plan.units[other.acquire.unit].thread
                {
                    let (first, second) = (self.is_left(one, other), self.is_left(other, one));
                    let (left, right) = (one.acquire.taken, other.acquire.taken);
                    self.circuits.gates.clause(&[!left, !right, first, second]);
                }
            }
            if self.circuits.gates.is_full() {
                return;
            }
        }
    }

    /// Whether the section `one`, if it is entered, is left before `other` is entered.
    fn is_left(&mut self, one: &Section, other: &Section) -> Bit {
        let mut ways = Vec::new();
        for release in &one.releases {
            let before = self.order.before(release.unit, other.acquire.unit);
            let is_certain = release.taken == one.acquire.taken;
            let taken = if is_certain { Bit::TRUE } else { release.taken };
            ways.push(self.circuits.gates.and(taken, before));
        }
        self.circuits.gates.any(&ways)
    }
}

/// Where a lock is taken, and what comes next.
struct Section {
    acquire: Visit,
    releases: Vec<Visit>,
    /// Where the thread would take it once more.
    again: Vec<Visit>,
}

/// The last store of `thread` before `unit`.
fn last_before(sources: &Sources, thread: ThreadId, unit: UnitId) -> Option<usize> {
    sources.all.iter().rposition(|source| source.thread == thread && source.unit < unit)
}

/// Whether it must be said that the second store of a pair does not come between the first and the
/// load.
fn is_needed(
    sources: &Sources,
    straight: &IndexVec<ThreadId, bool>,
    (chosen, other): (usize, usize),
    (own, unit): (ThreadId, UnitId),
    hider: Option<usize>,
) -> bool {
    let (source, between) = (&sources.all[chosen], &sources.all[other]);
    if chosen == other || between.thread == own && between.unit >= unit {
        return false;
    }
    if between.thread == own && straight[own] {
        return hider == Some(other);
    }
    if between.thread == source.thread {
        return other > chosen && (other == chosen + 1 || !straight[between.thread]);
    }
    true
}
