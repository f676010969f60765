//! The least state that meets a predicate of small memory.
//!
//! A [`Fold`] takes the chains of a state one by one and remembers little, say a partial sum or
//! what remains to be known of a formula. Nodes carry what may be remembered at them, each with the
//! least weight it comes with and where it came from; so the states themselves are not enumerated.
//! A node at which nothing is left to remember is not expanded.
//!
//! Costs as many steps per arc as there are memories at its node. The state found is one of least
//! weight, and the same for the same input and limits.

use std::hash::{BuildHasher as _, Hash};

use hashbrown::HashTable;
use reweave_base::{FxBuildHasher, Id};
use reweave_order::poset::{ChainId, Poset};

use super::{
    Algebra, Level, Limits, MergeError, Meter, Overflow, Reason, Space, Step, Stop, Traversed,
    is_narrow, tables, traverse,
};
use crate::enumerate::Bounds;
use crate::tables::Index;

/// A predicate that is evaluated chain by chain, in any order: what it remembers in the end must
/// not depend on that.
pub trait Fold {
    /// What it remembers.
    type Memory: Clone + Eq + Hash + Ord;

    /// What it remembers before any chain.
    fn start(&self) -> Self::Memory;

    /// What it remembers once `chain` has run `index` events; none if no such state meets it.
    fn step(&self, memory: &Self::Memory, chain: ChainId, index: u32) -> Option<Self::Memory>;

    /// Whether a state meets the predicate, once all chains were taken.
    fn is_met(&self, memory: &Self::Memory) -> bool;

    /// How many bytes `memory` takes elsewhere, beyond its own size.
    fn bytes(&self, _memory: &Self::Memory) -> usize {
        0
    }
}

/// The result of a search for the least state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Least {
    /// The weight of the state and the state, if one was found. It is the least unless the search
    /// was cut short.
    pub found: Option<(u64, Vec<u32>)>,
    /// Why there may be a lesser one, if so.
    pub cut_short: Option<Reason>,
    /// Where merging did not fit the limits, so that the rest was searched in batches.
    pub overflow: Option<Overflow>,
}

/// The state of `poset` within `bounds` that meets `fold` and weighs least. The weight of a state
/// is the sum over its chains of `weight`, which must not decrease along a chain.
///
/// # Panics
/// If the bounds are not states of `poset`, the one included in the other.
pub fn least<F: Fold>(
    poset: &Poset,
    bounds: &Bounds,
    fold: &F,
    weight: &dyn Fn(ChainId, u32) -> u32,
    limits: &Limits,
    stop: Stop<'_>,
) -> Least {
    if is_narrow(poset) {
        least_by::<u16, F>(poset, bounds, (fold, weight), limits, stop)
    } else {
        least_by::<u32, F>(poset, bounds, (fold, weight), limits, stop)
    }
}

fn least_by<I: Index, F: Fold>(
    poset: &Poset,
    bounds: &Bounds,
    (fold, weight): (&F, &dyn Fn(ChainId, u32) -> u32),
    limits: &Limits,
    stop: Stop<'_>,
) -> Least {
    let Some(start) = start(poset, bounds, fold, weight) else { return Least::default() };
    let tables = tables::<I>(poset, bounds);
    let space = Space::new(&tables, bounds);
    let search = || Search {
        fold,
        weight,
        start: start.clone(),
        trails: Vec::new(),
        best: None,
        bytes_max: limits.bytes_max,
    };
    let traversed = traverse(&space, search, limits, stop).expect("weights are 64 bits wide");
    let Traversed { algebra, cut_short, overflow, .. } = traversed;
    Least { found: algebra.found(bounds), cut_short, overflow }
}

/// What is remembered of the chains that `bounds` fix, and what they weigh.
fn start<F: Fold>(
    poset: &Poset,
    bounds: &Bounds,
    fold: &F,
    weight: &dyn Fn(ChainId, u32) -> u32,
) -> Option<(F::Memory, u64)> {
    let mut start = (fold.start(), 0);
    for chain in poset.chains() {
        let index = bounds.least[chain.index()];
        if index == bounds.greatest[chain.index()] {
            start.0 = fold.step(&start.0, chain, index)?;
            start.1 += u64::from(weight(chain, index));
        }
    }
    Some(start)
}

/// Something remembered at a node.
#[derive(Clone)]
struct Entry<M> {
    node: u32,
    memory: M,
    /// The least weight with which it comes about.
    weight: u64,
    from: Origin,
}

/// The entry of the level before, and the number of the chain fixed since.
#[derive(Clone, Copy)]
struct Origin {
    entry: u32,
    index: u32,
}

/// How the entries of a level came about.
struct Trail {
    chain: ChainId,
    entries: Vec<Origin>,
}

struct Search<'a, F: Fold> {
    fold: &'a F,
    weight: &'a dyn Fn(ChainId, u32) -> u32,
    start: (F::Memory, u64),
    /// For each level the batch that the current one comes from.
    trails: Vec<Trail>,
    /// The least weight so far, and the numbers of the chains that are not fixed.
    best: Option<(u64, Vec<(ChainId, u32)>)>,
    bytes_max: usize,
}

/// What is remembered at the nodes of a level, by node.
struct Entries<M> {
    entries: Vec<Entry<M>>,
    /// Whether anything is, for each node.
    is_live: Vec<bool>,
    /// About how many bytes they take.
    bytes: usize,
}

impl<F: Fold> Search<'_, F> {
    fn found(self, bounds: &Bounds) -> Option<(u64, Vec<u32>)> {
        let (weight, numbers) = self.best?;
        let mut state = bounds.least.clone();
        for (chain, index) in numbers {
            state[chain.index()] = index;
        }
        Some((weight, state))
    }

    fn is_less(&self, weight: u64) -> bool {
        self.best.as_ref().is_none_or(|&(best, _)| weight < best)
    }

    /// Keeps the state that `entry` of the last level and the `last` chain's number make.
    fn keep(&mut self, weight: u64, mut entry: usize, last: Option<(ChainId, u32)>) {
        let mut numbers: Vec<(ChainId, u32)> = last.into_iter().collect();
        for trail in self.trails.iter().rev() {
            let from = trail.entries[entry];
            numbers.push((trail.chain, from.index));
            entry = from.entry as usize;
        }
        self.best = Some((weight, numbers));
    }

    /// How many bytes are left for the entries of a level, beside the trails and the entries of the
    /// level before.
    fn bytes_left(&self, carried: &Entries<F::Memory>) -> usize {
        let trails: usize = self.trails.iter().map(|trail| trail.entries.len()).sum();
        self.bytes_max.saturating_sub(trails * size_of::<Origin>()).saturating_sub(carried.bytes)
    }

    /// How many bytes an entry takes that remembers `memory`, with its slot in the hash table.
    fn entry_bytes(&self, memory: &F::Memory) -> usize {
        size_of::<Entry<F::Memory>>() + 2 * size_of::<u32>() + self.fold.bytes(memory)
    }
}

impl<I: Index, F: Fold> Algebra<I> for Search<'_, F> {
    type Carried = Entries<F::Memory>;

    const LEFT: usize = 1;

    fn start(&mut self) -> Entries<F::Memory> {
        let (memory, weight) = self.start.clone();
        let from = Origin { entry: 0, index: 0 };
        let bytes = self.entry_bytes(&memory);
        let entries = vec![Entry { node: 0, memory, weight, from }];
        Entries { entries, is_live: vec![true], bytes }
    }

    fn is_live(carried: &Entries<F::Memory>, node: usize) -> bool {
        carried.is_live[node]
    }

    fn step(
        &mut self,
        at: Step,
        carried: &Entries<F::Memory>,
        meter: &mut Meter<'_>,
    ) -> Result<Entries<F::Memory>, MergeError> {
        self.trails.truncate(at.level);
        let capacity = self.bytes_left(carried);
        let nodes = at.arcs.nodes();
        let start = carried.entries.partition_point(|entry| (entry.node as usize) < nodes.start);
        let end = carried.entries.partition_point(|entry| (entry.node as usize) < nodes.end);
        let mut entries: Vec<Entry<F::Memory>> = Vec::new();
        let mut places: HashTable<u32> = HashTable::new();
        let hash = |node: u32, memory: &F::Memory| FxBuildHasher.hash_one((node, memory));
        let mut bytes = 0;
        for number in start..end {
            let old = &carried.entries[number];
            let (first, targets) = at.arcs.of(old.node as usize);
            meter.spend(targets.len() as u64)?;
            for (index, &node) in (first..).zip(targets) {
                let Some(memory) = self.fold.step(&old.memory, at.chain, index) else { continue };
                let weight = old.weight + u64::from((self.weight)(at.chain, index));
                let from = Origin { entry: number as u32, index };
                let is_same = |&place: &u32| {
                    let known = &entries[place as usize];
                    known.node == node && known.memory == memory
                };
                match places.find(hash(node, &memory), is_same) {
                    Some(&place) => {
                        let same = &mut entries[place as usize];
                        if weight < same.weight {
                            (same.weight, same.from) = (weight, from);
                        }
                    }
                    None => {
                        bytes += self.entry_bytes(&memory);
                        let rehash = |&place: &u32| {
                            let known: &Entry<F::Memory> = &entries[place as usize];
                            hash(known.node, &known.memory)
                        };
                        places.insert_unique(hash(node, &memory), entries.len() as u32, rehash);
                        entries.push(Entry { node, memory, weight, from });
                    }
                }
            }
            if bytes > capacity || entries.len() >= u32::MAX as usize {
                return Err(MergeError::Full(Reason::Memory));
            }
        }
        entries.sort_by_key(|entry| entry.node);
        let mut is_live = vec![false; at.next_count];
        entries.iter().for_each(|entry| is_live[entry.node as usize] = true);
        let trail = entries.iter().map(|entry| entry.from).collect();
        self.trails.push(Trail { chain: at.chain, entries: trail });
        Ok(Entries { entries, is_live, bytes })
    }

    fn finish(
        &mut self,
        space: &Space<'_, I>,
        (level, carried): (&Level<I>, &Entries<F::Memory>),
        meter: &mut Meter<'_>,
    ) -> Result<(), MergeError> {
        for (number, entry) in carried.entries.iter().enumerate() {
            let Some(&place) = level.places.first() else {
                if self.fold.is_met(&entry.memory) && self.is_less(entry.weight) {
                    self.keep(entry.weight, number, None);
                }
                continue;
            };
            let chain = space.tables.order[place];
            let (first, last) = level.range(entry.node as usize, 0);
            for index in first..=last {
                meter.spend(1)?;
                let weight = entry.weight + u64::from((self.weight)(chain, index));
                // Later numbers weigh no less.
                if !self.is_less(weight) {
                    break;
                }
                let memory = self.fold.step(&entry.memory, chain, index);
                if memory.is_some_and(|memory| self.fold.is_met(&memory)) {
                    self.keep(weight, number, Some((chain, index)));
                    break;
                }
            }
        }
        Ok(())
    }

    fn bytes(&self, carried: &Entries<F::Memory>) -> usize {
        let trails: usize = self.trails.iter().map(|trail| trail.entries.len()).sum();
        trails * size_of::<Origin>() + carried.bytes
    }
}
