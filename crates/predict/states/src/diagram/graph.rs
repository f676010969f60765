//! The diagram itself: its windows numbered, and where each number of a chain leads.
//!
//! With the number of states ahead of each window, a state is found by its number, or the number of
//! a state, in one way through the diagram; and a uniform number gives a uniform state. The last
//! chain's arcs all lead to the end and are not kept.
//!
//! Keeps four bytes for each number of each window, and 16 or more for each window.

use num_bigint::BigUint;
use reweave_base::{Id, Rng};
use reweave_order::poset::{ChainId, Poset};

use super::limits::{Limits, Meter, Overflow, Stop};
use super::merge::{Algebra, Halt, Step, merge};
use super::number::{Count, Narrow, Number};
use super::windows::{Arcs, Lane, Level, Space, is_narrow, tables};
use crate::bounds::Bounds;

/// The states of a poset within bounds, as a decision diagram.
#[derive(Clone, Debug)]
pub struct Diagram {
    /// The least state: what it has of chains without a layer, all states have.
    pub(super) least: Vec<u32>,
    /// How many events each chain has.
    pub(super) lengths: Vec<u32>,
    pub(super) layers: Vec<Layer>,
    pub(super) ahead: Ahead,
}

/// The windows before a chain is fixed, and where its numbers lead.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) chain: ChainId,
    /// Without targets in the last layer.
    arcs: Arcs,
}

impl Layer {
    /// How many windows there are.
    pub(super) fn count(&self) -> usize {
        self.arcs.firsts.len()
    }

    /// The first number that window `node` leaves to the chain, and how many there are.
    pub(super) fn run(&self, node: usize) -> (u32, usize) {
        (self.arcs.firsts[node], self.arcs.starts[node + 1] - self.arcs.starts[node])
    }

    /// To which windows of the next layer those numbers lead; none in the last layer, where all
    /// lead to the end.
    pub(super) fn targets(&self, node: usize) -> Option<&[u32]> {
        let start = self.arcs.starts[node];
        self.arcs.targets.get(start..self.arcs.starts[node + 1]).filter(|run| !run.is_empty())
    }
}

/// For each layer the number of states ahead of each window, and 1 at the end.
#[derive(Clone, Debug)]
pub(super) enum Ahead {
    Small(Vec<Vec<u128>>),
    Big(Vec<Vec<BigUint>>),
}

/// Keeps the arcs.
#[derive(Default)]
struct Graph {
    layers: Vec<Layer>,
    bytes: usize,
}

impl Graph {
    fn push(&mut self, chain: ChainId, arcs: Arcs) {
        let node = size_of::<u32>() + size_of::<usize>() + size_of::<u128>();
        self.bytes += arcs.firsts.len() * node + arcs.targets.len() * size_of::<u32>();
        self.layers.push(Layer { chain, arcs });
    }
}

impl<I: Lane> Algebra<I> for Graph {
    /// For each place of the tables, which chain it is of.
    type Carried = ();

    const LEFT: usize = 1;

    fn start(&mut self) {}

    fn is_live((): &(), _: usize) -> bool {
        true
    }

    fn step(&mut self, at: Step, (): &(), _: &mut Meter<'_>) -> Result<(), Halt> {
        self.push(at.chain, at.arcs);
        Ok(())
    }

    fn finish(
        &mut self,
        space: &Space<'_, I>,
        (level, ()): (&Level<I>, &()),
        _: &mut Meter<'_>,
    ) -> Result<(), Halt> {
        let Some(&place) = level.places.first() else { return Ok(()) };
        let mut arcs = Arcs { starts: vec![0], ..Arcs::default() };
        let mut end = 0;
        for node in 0..level.count {
            let (first, last) = level.range(node, 0);
            end += (last - first) as usize + 1;
            arcs.firsts.push(first);
            arcs.starts.push(end);
        }
        self.push(space.tables.order[place], arcs);
        Ok(())
    }

    fn bytes(&self, (): &()) -> usize {
        self.bytes
    }
}

impl Diagram {
    /// The diagram of the states of `poset` within `bounds`.
    ///
    /// # Errors
    /// If it does not fit the limits, or was told to stop.
    ///
    /// # Panics
    /// If the bounds are not states of `poset`, the one held by the other.
    pub fn build(
        poset: &Poset,
        bounds: &Bounds,
        limits: &Limits,
        stop: Stop<'_>,
    ) -> Result<Self, Overflow> {
        let layers = if is_narrow(poset) {
            layers::<u16>(poset, bounds, limits, stop)?
        } else {
            layers::<u32>(poset, bounds, limits, stop)?
        };
        let ahead = match ahead(&layers) {
            Ok(ahead) => Ahead::Small(ahead),
            Err(Narrow) => Ahead::Big(ahead(&layers).expect("numbers of any size fit")),
        };
        Ok(Self { least: bounds.least.clone(), lengths: poset.top(), layers, ahead })
    }

    /// How many states there are.
    #[must_use]
    pub fn count(&self) -> Count {
        Count::from(match &self.ahead {
            Ahead::Small(ahead) => ahead[0][0].big(),
            Ahead::Big(ahead) => ahead[0][0].clone(),
        })
    }

    /// How many windows the widest level has.
    #[must_use]
    pub fn width(&self) -> usize {
        self.layers.iter().map(Layer::count).max().unwrap_or(1)
    }

    /// The chains in the order in which they are fixed; those that the bounds fix are left out.
    pub fn chains(&self) -> impl Iterator<Item = ChainId> {
        self.layers.iter().map(|layer| layer.chain)
    }

    /// The state with this number, counted from 0; none if there are not so many. The first of
    /// [`Self::chains`] is the most significant.
    #[must_use]
    pub fn unrank(&self, rank: &BigUint) -> Option<Vec<u32>> {
        match &self.ahead {
            Ahead::Small(ahead) => self.unrank_by(ahead, u128::new(rank).ok()?),
            Ahead::Big(ahead) => self.unrank_by(ahead, rank.clone()),
        }
    }

    fn unrank_by<N: Number>(&self, ahead: &[Vec<N>], mut rank: N) -> Option<Vec<u32>> {
        if rank >= ahead[0][0] {
            return None;
        }
        let mut state = self.least.clone();
        let mut node = 0;
        for (layer, ahead) in self.layers.iter().zip(&ahead[1..]) {
            let (mut index, _) = layer.run(node);
            match layer.targets(node) {
                Some(targets) => {
                    for &target in targets {
                        node = target as usize;
                        if rank < ahead[node] {
                            break;
                        }
                        rank.take(&ahead[node]);
                        index += 1;
                    }
                }
                None => index += rank.to_u64().expect("a run is of 32-bit numbers") as u32,
            }
            state[layer.chain.index()] = index;
        }
        Some(state)
    }

    /// The number of `state`, counted from 0; none if it is not one of the states.
    #[must_use]
    pub fn rank(&self, state: &[u32]) -> Option<BigUint> {
        match &self.ahead {
            Ahead::Small(ahead) => self.rank_by(ahead, state).map(|rank| rank.big()),
            Ahead::Big(ahead) => self.rank_by(ahead, state),
        }
    }

    fn rank_by<N: Number>(&self, ahead: &[Vec<N>], state: &[u32]) -> Option<N> {
        if state.len() != self.least.len() {
            return None;
        }
        let mut fixed = self.least.clone();
        let mut rank = N::zero();
        let mut node = 0;
        for (layer, ahead) in self.layers.iter().zip(&ahead[1..]) {
            let index = state[layer.chain.index()];
            fixed[layer.chain.index()] = index;
            let (first, count) = layer.run(node);
            let at = index.checked_sub(first).filter(|&at| (at as usize) < count)?;
            let fits = "a rank is below the number of states";
            match layer.targets(node) {
                Some(targets) => {
                    for &before in &targets[..at as usize] {
                        rank.add_times(&ahead[before as usize], 1).expect(fits);
                    }
                    node = targets[at as usize] as usize;
                }
                None => rank.add_times(&N::one(), u64::from(at)).expect(fits),
            }
        }
        (fixed == state).then_some(rank)
    }

    /// One of the states, each as likely as any other.
    pub fn sample(&self, rng: &mut Rng) -> Vec<u32> {
        let count = BigUint::from(self.count());
        let bits = count.bits();
        // What is drawn is below twice the count: every other draw is good, on average.
        let rank = loop {
            let mut digits: Vec<u32> =
                (0..bits.div_ceil(32)).map(|_| (rng.next() >> 32) as u32).collect();
            if let Some(top) = digits.last_mut().filter(|_| bits % 32 != 0) {
                *top >>= 32 - bits % 32;
            }
            let rank = BigUint::new(digits);
            if rank < count {
                break rank;
            }
        };
        self.unrank(&rank).expect("the number is below the count")
    }

    /// All states, by their number.
    #[must_use]
    pub fn states(&self) -> States<'_> {
        let mut states =
            States { diagram: self, state: Some(self.least.clone()), way: vec![(0, 0)] };
        states.way.resize(self.layers.len() + 1, (0, 0));
        states.descend(0);
        states
    }

    /// For each number of events of `chain`, from 0 on, how many states have so many of it.
    #[must_use]
    pub fn with_index(&self, chain: ChainId) -> Vec<Count> {
        let counts = match &self.ahead {
            Ahead::Small(ahead) => {
                let counts = self.with_index_by(ahead, chain);
                counts.map(|counts| counts.iter().map(Number::big).collect::<Vec<_>>())
            }
            Ahead::Big(ahead) => self.with_index_by(ahead, chain),
        };
        let counts = counts.expect("none is more than the number of states");
        counts.into_iter().map(Count::from).collect()
    }

    fn with_index_by<N: Number>(&self, ahead: &[Vec<N>], chain: ChainId) -> Result<Vec<N>, Narrow> {
        let mut counts = vec![N::zero(); self.lengths[chain.index()] as usize + 1];
        let mut behind = vec![N::one()];
        for (layer, ahead) in self.layers.iter().zip(&ahead[1..]) {
            if layer.chain == chain {
                layer.with_index(&behind, ahead, &mut counts)?;
                return Ok(counts);
            }
            let mut next = vec![N::zero(); ahead.len()];
            for (node, behind) in behind.iter().enumerate() {
                for &target in layer.targets(node).unwrap_or_default() {
                    next[target as usize].add_times(behind, 1)?;
                }
            }
            behind = next;
        }
        counts[self.least[chain.index()] as usize] = ahead[0][0].clone();
        Ok(counts)
    }

    /// How many states hold event `index` of `chain`, counted from 1: all of them for 0.
    #[must_use]
    pub fn containing(&self, chain: ChainId, index: u32) -> Count {
        let mut sum = Count::default();
        for count in self.with_index(chain).iter().skip(index as usize) {
            sum += count;
        }
        sum
    }
}

impl Layer {
    /// Adds to `counts`, for each number of the chain, how many states have it.
    fn with_index<N: Number>(
        &self,
        behind: &[N],
        ahead: &[N],
        counts: &mut [N],
    ) -> Result<(), Narrow> {
        // In the last layer a run of numbers has the same count: it starts here and ends there.
        let mut ends = vec![N::zero(); counts.len() + 1];
        let mut starts = ends.clone();
        for (node, behind) in behind.iter().enumerate() {
            let (first, count) = self.run(node);
            let Some(targets) = self.targets(node) else {
                starts[first as usize].add_times(behind, 1)?;
                ends[first as usize + count].add_times(behind, 1)?;
                continue;
            };
            for (count, &target) in counts[first as usize..].iter_mut().zip(targets) {
                count.add_product(behind, &ahead[target as usize])?;
            }
        }
        let mut going = N::zero();
        for (count, (starting, ending)) in counts.iter_mut().zip(starts.iter().zip(&ends)) {
            going.add_times(starting, 1)?;
            going.take(ending);
            count.add_times(&going, 1)?;
        }
        Ok(())
    }
}

fn layers<I: Lane>(
    poset: &Poset,
    bounds: &Bounds,
    limits: &Limits,
    stop: Stop<'_>,
) -> Result<Vec<Layer>, Overflow> {
    let tables = tables::<I>(poset, bounds);
    let space = Space::new(&tables, bounds);
    let mut meter = Meter::new(limits.work_max, stop);
    let merged = merge(&space, Graph::default, limits, &mut meter);
    match merged.expect("arcs have no numbers that could be too large") {
        Ok(graph) => Ok(graph.layers),
        Err(cut) => Err(cut.overflow(&space)),
    }
}

/// The number of states ahead of each window.
fn ahead<N: Number>(layers: &[Layer]) -> Result<Vec<Vec<N>>, Narrow> {
    let mut ahead = vec![vec![N::one()]];
    for layer in layers.iter().rev() {
        let next = ahead.last().expect("there is the end");
        let mut own = Vec::with_capacity(layer.count());
        for node in 0..layer.count() {
            let mut sum = N::zero();
            match layer.targets(node) {
                Some(targets) => {
                    for same in targets.chunk_by(|one, other| one == other) {
                        sum.add_times(&next[same[0] as usize], same.len() as u64)?;
                    }
                }
                None => sum.add_times(&next[0], layer.run(node).1 as u64)?,
            }
            own.push(sum);
        }
        ahead.push(own);
    }
    ahead.reverse();
    Ok(ahead)
}

/// The states of a diagram, by their number.
#[derive(Clone, Debug)]
pub struct States<'a> {
    diagram: &'a Diagram,
    /// The one that comes next.
    state: Option<Vec<u32>>,
    /// For each layer the window and which of its numbers was taken.
    way: Vec<(usize, usize)>,
}

impl States<'_> {
    /// Takes the first number of each layer from `start` on, whose window is known.
    fn descend(&mut self, start: usize) {
        let Some(state) = &mut self.state else { return };
        for (level, layer) in self.diagram.layers.iter().enumerate().skip(start) {
            let (node, taken) = self.way[level];
            state[layer.chain.index()] = layer.run(node).0 + taken as u32;
            let target = layer.targets(node).map_or(0, |targets| targets[taken] as usize);
            self.way[level + 1] = (target, 0);
        }
    }
}

impl Iterator for States<'_> {
    type Item = Vec<u32>;

    fn next(&mut self) -> Option<Vec<u32>> {
        let state = self.state.clone()?;
        let layers = &self.diagram.layers;
        let has_more = |&level: &usize| {
            let (node, taken) = self.way[level];
            taken + 1 < layers[level].run(node).1
        };
        match (0..layers.len()).rev().find(has_more) {
            Some(level) => {
                self.way[level].1 += 1;
                self.descend(level);
            }
            None => self.state = None,
        }
        Some(state)
    }
}
