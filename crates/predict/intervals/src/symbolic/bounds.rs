//! What ranges say about loads, beyond what each step assigns.
//!
//! A load that is only copied lies in the range of the copy. And a *counter*, a slot to which units
//! only ever add what is not negative, never falls: a unit finds in it at least what was left
//! there before. That follows from the rest of the formula, but only by induction along an order,
//! which the solver would have to find anew for each order.

use std::rc::Rc;

use reweave_base::FxHashMap;

use super::Widths;
use super::bits::Value;
use super::encode::{Encoder, Load};
use super::gates::Bit;
use super::plan::{Planned, UnitId, slots};
use crate::terms::{Slot, Term, TermId};

/// Beyond so many comparisons the help costs more than it saves.
const COMPARISONS_MAX: usize = 50_000;

impl Encoder<'_> {
    /// Between what numbers the load of `slot` by `unit` lies.
    pub(super) fn load_bounds(&self, unit: UnitId, slot: Slot) -> (i64, i64) {
        if matches!(self.widths, Widths::Fixed(_)) {
            return self.circuits.bounds();
        }
        let initial = self.ctp.initial[slot];
        let writers = self.writers.get(&slot).into_iter().flatten();
        let earlier = writers.filter(|&&(writer, ..)| match self.plan.units[writer].thread {
            thread if thread == self.plan.units[unit].thread => writer < unit,
            _ => self.order.known(unit, writer) != Some(true),
        });
        let hull = |(low, high): (i64, i64), &(_, from, to): &(UnitId, i64, i64)| {
            (low.min(from), high.max(to))
        };
        let (low, high) = earlier.fold((initial, initial), hull);
        match self.copied(&self.plan.units[unit], slot) {
            Some((from, to)) if low.max(from) <= high.min(to) => (low.max(from), high.min(to)),
            _ => (low, high),
        }
    }

    /// The range of what steps of `unit` copy from `slot`, if all that find there what the unit
    /// found copy it.
    fn copied(&self, unit: &Planned, slot: Slot) -> Option<(i64, i64)> {
        let Widths::Ranges(ranges) = self.widths else { return None };
        let from = |position: usize| self.ctp.steps[unit.steps[position]].from;
        let is_chain = (1..unit.steps.len()).all(|position| from(position - 1) != from(position));
        if !is_chain && unit.writes.contains(&slot) {
            // What is found may then matter to a step that sees another value.
            return None;
        }
        let mut hull: Option<(i64, i64)> = None;
        for &step in unit.steps.iter().filter(|&&step| self.is_reached(step)) {
            let description = &self.ctp.steps[step];
            let terms: Vec<TermId> = self.plan.terms(self.ctp, step).collect();
            if slots(self.ctp, &terms).contains(&slot) {
                let (_, term) = description.define?;
                if self.ctp.terms.term(term) != Term::Slot(slot) {
                    return None;
                }
                let (low, high) = ranges.defined.get(step).copied().flatten()?;
                let (least, greatest) = hull.unwrap_or((low, high));
                hull = Some((least.min(low), greatest.max(high)));
            }
            let mut assigned = description.store.into_iter().chain(description.define);
            if assigned.any(|(assigned, _)| assigned == slot) {
                break;
            }
        }
        hull
    }

    /// Says that counters never fall.
    pub(super) fn encode_counters(&mut self, loads: &[Load]) {
        let mut by_slot: FxHashMap<Slot, Vec<&Load>> = FxHashMap::default();
        for load in loads {
            by_slot.entry(load.slot).or_default().push(load);
        }
        for slot in self.ctp.slots.ids() {
            let Some(loads) = by_slot.get(&slot) else { continue };
            let Some(stores) = self.counter(slot, loads) else { continue };
            if stores.len().saturating_mul(loads.len()) > COMPARISONS_MAX {
                continue;
            }
            for load in loads {
                for (unit, store) in &stores {
                    if self.plan.units[*unit].thread != self.plan.units[load.unit].thread {
                        self.encode_rise(load, *unit, store);
                    }
                }
            }
        }
    }

    /// Says that `load` finds at least what `unit` left, if it comes after it.
    fn encode_rise(&mut self, load: &Load, unit: UnitId, store: &Count) {
        let before = self.order.before(unit, load.unit);
        let used = self.circuits.gates.any(&load.users);
        // Compared with what the unit found, so that both of two units that add are compared once.
        let falls = match store.is_strict {
            true => !self.circuits.less(&store.found, &load.value),
            false => self.circuits.less(&load.value, &store.found),
        };
        self.circuits.gates.clause(&[!used, !store.is_written, !before, !falls]);
    }

    /// The units that store to `slot`, if each adds to what it found there and nothing is
    /// subtracted.
    fn counter(&self, slot: Slot, loads: &[&Load]) -> Option<Vec<(UnitId, Count)>> {
        let mut counts = Vec::new();
        for (unit, stores) in self.stores.entries() {
            let Some(store) = stores.iter().find(|store| store.slot == slot) else { continue };
            let load = loads.iter().find(|load| load.unit == unit)?;
            if !store.value.adds_to(&load.value) {
                return None;
            }
            let (is_written, found) = (store.is_written, Rc::clone(&load.value));
            let is_strict = store.value.low > load.value.low;
            counts.push((unit, Count { is_written, found, is_strict }));
        }
        Some(counts)
    }
}

/// A unit that adds to a counter.
struct Count {
    is_written: Bit,
    found: Rc<Value>,
    /// Whether it adds more than nothing.
    is_strict: bool,
}
