//! The decision diagram (MDD) of the states: they are counted, sampled, added up and searched
//! without being enumerated.
//!
//! Fix the chains one after the other, each to a number of its events. The chains fixed so far
//! leave to each other chain a range of numbers; the ranges of all chains that are not fixed yet
//! are the *frontier*, and what follows depends on nothing else. So prefixes with equal frontiers
//! are merged into one node. Different frontiers have different states ahead of them, since each
//! number in a range is that of some state. So, for the order in which the chains are fixed, the
//! result is the reduced decision diagram of the set of states, and it has no dead ends.
//!
//! | wanted | function |
//! | --- | --- |
//! | the number of states, of any size | [`count`] |
//! | the number of states of each event's interval | [`interval_counts`] |
//! | the least state that meets a predicate | [`least`] |
//! | states by their number, uniform samples, the histogram of a sum over the chains | [`Diagram`] |
//!
//! All of it is exact, and the same for the same input and limits. The order of states by their
//! number in a [`Diagram`] follows from the order of the chains.
//!
//! Costs the number of arcs: for each node the numbers that it leaves to the chain fixed next. In
//! the worst case there are exponentially many nodes in the number of chains: [`Limits`] say how
//! many there may be, and an [`Overflow`] that there were more. [`count`] and [`least`] continue
//! then, in batches that fit.
//!
//! Merging equal nodes is as in Bryant, "Graph-based algorithms for Boolean function manipulation"
//! (1986), with chains in place of bits, level by level as in frontier-based search (Knuth's
//! Simpath).

mod count;
mod diagram;
mod least;

use hashbrown::HashTable;
use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

use crate::enumerate::Bounds;
use crate::tables::{Index, Tables};

use count::TooWide;
pub use count::{Count, Counted, count, interval_counts};
pub use diagram::Diagram;
pub use least::{Fold, Least, least};

/// How much a decision diagram may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// With more nodes in a level than this, better orders of the chains are tried.
    pub nodes_soft: usize,
    /// The most nodes of a level.
    pub nodes_max: usize,
    /// About the most bytes that it takes.
    pub bytes_max: usize,
    /// The most work, in arcs: choices of a number of events for a chain at a node.
    pub work_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { nodes_soft: 1 << 14, nodes_max: 1 << 20, bytes_max: 1 << 30, work_max: 1 << 34 }
    }
}

/// Says whether to stop.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// Which limit was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// That on the nodes of a level.
    #[error("too many nodes")]
    Nodes,
    /// That on bytes.
    #[error("too little memory")]
    Memory,
    /// That on work.
    #[error("too much work")]
    Work,
    /// It was asked to stop.
    #[error("stopped")]
    Stopped,
}

impl Reason {
    /// Whether no other order of the chains is worth trying.
    const fn is_final(self) -> bool {
        matches!(self, Self::Work | Self::Stopped)
    }
}

/// A decision diagram that would not fit its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} for the decision diagram (level {level} has {nodes_count} nodes)")]
pub struct Overflow {
    /// Which of them.
    pub reason: Reason,
    /// How many chains were fixed by then.
    pub level: usize,
    /// How many nodes that level has.
    pub nodes_count: usize,
}

/// Counts work.
struct Meter<'a> {
    left: u64,
    /// How much was spent since `stop` was asked.
    unasked: u64,
    /// Once asked to stop it stays so.
    is_stopped: bool,
    stop: Stop<'a>,
}

/// After how much work `stop` is asked again.
const ASK_EVERY: u64 = 1 << 14;

impl<'a> Meter<'a> {
    const fn new(work_max: u64, stop: Stop<'a>) -> Self {
        // Asked at the first occasion, so that even small work ends when asked to.
        Self { left: work_max, unasked: ASK_EVERY, is_stopped: false, stop }
    }

    /// Takes `work` from what is left.
    ///
    /// # Errors
    /// If there is not so much left, or it was asked to stop.
    #[inline]
    fn spend(&mut self, work: u64) -> Result<(), Reason> {
        self.left = self.left.checked_sub(work).ok_or(Reason::Work)?;
        self.unasked = self.unasked.saturating_add(work);
        if self.unasked >= ASK_EVERY {
            self.unasked = 0;
            self.is_stopped |= (self.stop)();
        }
        if self.is_stopped { Err(Reason::Stopped) } else { Ok(()) }
    }

    /// Allows for so much more work.
    const fn grant(&mut self, work: u64) {
        self.left = self.left.saturating_add(work);
    }
}

/// Whether all numbers of `poset` fit 16 bits.
fn is_narrow(poset: &Poset) -> bool {
    poset.chains().all(|chain| poset.length(chain) <= u32::from(u16::MAX))
}

/// The tables of the chains of `poset` that vary within `bounds`. The fixed ones do not restrict
/// the others further: both bounds are states, so the ranges between them are consistent with
/// those.
///
/// # Panics
/// If the bounds are not states of `poset`, the one included in the other.
fn tables<I: Index>(poset: &Poset, bounds: &Bounds) -> Tables<I> {
    let Bounds { least, greatest } = bounds;
    let are_states = poset.is_consistent(least) && poset.is_consistent(greatest);
    let are_ordered = least.iter().zip(greatest).all(|(least, greatest)| least <= greatest);
    assert!(are_states && are_ordered, "bounds are two states, the one included in the other");
    let is_free = |chain: usize| bounds.least[chain] < bounds.greatest[chain];
    Tables::new(poset, poset.chains().filter(|chain| is_free(chain.index())).collect())
}

/// The states that a diagram is of: all within bounds, by the tables of the chains that vary.
#[derive(Clone, Debug)]
struct Space<'a, I> {
    tables: &'a Tables<I>,
    /// The least number of events of the chain at each place of the tables.
    least: Vec<u32>,
    /// The greatest.
    greatest: Vec<u32>,
    /// The places whose chains vary, in the order in which they are to be fixed.
    free: Vec<usize>,
}

impl<'a, I: Index> Space<'a, I> {
    /// The states within `bounds`, the narrowest chains first.
    fn new(tables: &'a Tables<I>, bounds: &Bounds) -> Self {
        let all: Vec<usize> = (0..tables.width()).collect();
        let mut space = Self::in_order(tables, bounds, &all);
        let widths = space.widths();
        space.free.sort_by_key(|&place| widths[place]);
        space
    }

    /// The states within `bounds`, with the chains in this `order` of places.
    fn in_order(tables: &'a Tables<I>, bounds: &Bounds, order: &[usize]) -> Self {
        let pick = |cut: &[u32]| tables.order.iter().map(|chain| cut[chain.index()]).collect();
        let (least, greatest): (Vec<u32>, Vec<u32>) = (pick(&bounds.least), pick(&bounds.greatest));
        let is_free = |place: &&usize| least[**place] < greatest[**place];
        let free = order.iter().filter(is_free).copied().collect();
        Self { tables, least, greatest, free }
    }

    /// For each place, the sizes of its ranges, summed over all numbers of the other chains. The
    /// widest chain goes last: its numbers are a run.
    fn widths(&self) -> Vec<u64> {
        let mut widths = vec![0; self.tables.width()];
        for &place in &self.free {
            for index in self.least[place]..=self.greatest[place] {
                let (low, high) = (self.tables.low(place, index), self.tables.high(place, index));
                for &other in self.free.iter().filter(|&&other| other != place) {
                    let least = low[other].get().max(self.least[other]);
                    let greatest = high[other].get().min(self.greatest[other]);
                    widths[other] += u64::from((greatest + 1).saturating_sub(least));
                }
            }
        }
        widths
    }

    /// The level before any chain is fixed.
    fn start(&self) -> Level<I> {
        let low = self.free.iter().map(|&place| I::new(self.least[place]));
        let high = self.free.iter().map(|&place| !I::new(self.greatest[place]));
        Level { places: self.free.clone(), frontiers: low.chain(high).collect(), count: 1 }
    }
}

/// The nodes after the same chains were fixed, each with its frontier.
#[derive(Clone, Debug)]
struct Level<I> {
    /// The places of the chains that are not fixed yet.
    places: Vec<usize>,
    /// For each node the low ends of their ranges, then the complements of the high ends: to
    /// intersect two frontiers is then to take the greater number everywhere.
    frontiers: Vec<I>,
    /// How many nodes there are.
    count: usize,
}

impl<I: Index> Level<I> {
    fn frontier(&self, node: usize) -> &[I] {
        let width = 2 * self.places.len();
        &self.frontiers[node * width..(node + 1) * width]
    }

    /// The least and the greatest number that `node` leaves to the chain `at`, counted among those
    /// not fixed yet.
    fn range(&self, node: usize, at: usize) -> (u32, u32) {
        let frontier = self.frontier(node);
        (frontier[at].get(), (!frontier[self.places.len() + at]).get())
    }

    /// About how many bytes it takes.
    fn bytes(&self) -> usize {
        self.frontiers.len() * size_of::<I>()
    }
}

/// For each number of one chain's events the ranges that it leaves to the chains not fixed yet,
/// laid out as frontiers are.
#[derive(Clone, Debug)]
struct Choices<I> {
    /// Which of the chains not fixed before it is.
    at: usize,
    /// The number of the first row.
    first: u32,
    rows: Vec<I>,
    /// How many numbers a row has.
    width: usize,
}

impl<I: Index> Choices<I> {
    /// The choices of the chain `at`, counted among those at `places`.
    fn new(space: &Space<'_, I>, places: &[usize], at: usize) -> Self {
        let place = places[at];
        let (first, last) = (space.least[place], space.greatest[place]);
        let rest = || places.iter().filter(|&&other| other != place);
        let width = 2 * (places.len() - 1);
        let mut rows = Vec::with_capacity((last - first + 1) as usize * width);
        for index in first..=last {
            let (low, high) = (space.tables.low(place, index), space.tables.high(place, index));
            rows.extend(rest().map(|&other| low[other]));
            rows.extend(rest().map(|&other| !high[other]));
        }
        Self { at, first, rows, width }
    }

    fn row(&self, index: u32) -> &[I] {
        let row = (index - self.first) as usize;
        &self.rows[row * self.width..(row + 1) * self.width]
    }

    /// How many rows there are, as work.
    fn work(&self) -> u64 {
        (self.rows.len() / 8) as u64
    }
}

/// From each of some nodes, the node that each number of the chain fixed next leads to.
#[derive(Clone, Debug, Default)]
struct Arcs {
    /// The first of the nodes.
    node: usize,
    /// The first number, for each node.
    firsts: Vec<u32>,
    /// Where the arcs of each node start, and at last where they end.
    starts: Vec<usize>,
    /// The nodes they lead to: one for each number from the first on.
    targets: Vec<u32>,
}

impl Arcs {
    /// The first number of `node`, and the nodes that it and those after it lead to.
    fn of(&self, node: usize) -> (u32, &[u32]) {
        let row = node - self.node;
        (self.firsts[row], &self.targets[self.starts[row]..self.starts[row + 1]])
    }

    /// The nodes they start from.
    fn nodes(&self) -> std::ops::Range<usize> {
        self.node..self.node + self.firsts.len()
    }
}

/// How far a level was expanded: to this node, and in it to this number.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    node: usize,
    index: u32,
}

/// How large a level may become.
#[derive(Clone, Copy, Debug)]
struct Capacity {
    /// The most nodes of it.
    nodes: usize,
    /// The most bytes it may take with the arcs to it.
    bytes: usize,
}

/// About how many bytes a node takes beside its frontier: in the hash table, and what it carries.
const NODE_BYTES: usize = 32;

/// How many bytes an arc takes.
const ARC_BYTES: usize = size_of::<u32>();

/// How many bytes the arcs of a node take beside themselves.
const ARCS_BYTES: usize = size_of::<u32>() + size_of::<usize>();

/// Fixes one more chain: from `cursor` on, expands the live nodes of `level` by each number that
/// `choices` leave, until all are expanded or the next level is full. At least one number is
/// expanded if there is capacity for anything.
///
/// # Errors
/// If the meter ran out; the cursor has not moved then.
fn expand<I: Index>(
    (level, choices): (&Level<I>, &Choices<I>),
    cursor: &mut Cursor,
    capacity: Capacity,
    is_live: impl Fn(usize) -> bool,
    meter: &mut Meter<'_>,
) -> Result<(Level<I>, Arcs), Reason> {
    let mut next = NextLevel::new(level, choices, capacity);
    let mut arcs = Arcs { node: cursor.node, starts: vec![0], ..Arcs::default() };
    let mut base = vec![I::new(0); choices.width];
    let mut at = *cursor;
    while at.node < level.count {
        let (first, last) = level.range(at.node, choices.at);
        let first = first.max(at.index);
        arcs.firsts.push(first);
        if is_live(at.node) {
            meter.spend(u64::from(last - first) + 1)?;
            copy_without(level.frontier(at.node), choices.at, &mut base);
            next.charge(ARCS_BYTES);
            for index in first..=last {
                let Some(target) = next.add(&base, choices.row(index)) else {
                    arcs.starts.push(arcs.targets.len());
                    *cursor = Cursor { node: at.node, index };
                    return Ok((next.level, arcs));
                };
                arcs.targets.push(target);
            }
        }
        arcs.starts.push(arcs.targets.len());
        at = Cursor { node: at.node + 1, index: 0 };
    }
    *cursor = at;
    Ok((next.level, arcs))
}

/// `frontier` without both numbers of the chain `at`.
fn copy_without<I: Copy>(frontier: &[I], at: usize, to: &mut [I]) {
    let chains_count = frontier.len() / 2;
    let (low, high) = frontier.split_at(chains_count);
    let (to_low, to_high) = to.split_at_mut(chains_count - 1);
    for (from, to) in [(low, to_low), (high, to_high)] {
        to[..at].copy_from_slice(&from[..at]);
        to[at..].copy_from_slice(&from[at + 1..]);
    }
}

/// A level that is being filled. Nodes are numbered as they are met, so no hash decides their
/// order.
struct NextLevel<I> {
    level: Level<I>,
    table: HashTable<u32>,
    width: usize,
    capacity: Capacity,
    /// The node met last: often the next one is the same.
    last: usize,
}

impl<I: Index> NextLevel<I> {
    fn new(level: &Level<I>, choices: &Choices<I>, capacity: Capacity) -> Self {
        let mut places = level.places.clone();
        places.remove(choices.at);
        // Positions are 32 bits wide.
        let capacity = Capacity { nodes: capacity.nodes.clamp(1, u32::MAX as usize), ..capacity };
        Self {
            level: Level { places, frontiers: Vec::new(), count: 0 },
            table: HashTable::new(),
            width: choices.width,
            capacity,
            last: 0,
        }
    }

    /// Takes bytes from the capacity.
    fn charge(&mut self, bytes: usize) {
        self.capacity.bytes = self.capacity.bytes.saturating_sub(bytes);
    }

    /// The node whose frontier is the intersection of `base` and `row`; none if it is new and the
    /// level is full.
    #[inline]
    fn add(&mut self, base: &[I], row: &[I]) -> Option<u32> {
        let width = self.width;
        let is_full = self.capacity.bytes < ARC_BYTES && self.level.count > 0;
        if is_full {
            return None;
        }
        self.charge(ARC_BYTES);
        let Self { level: Level { frontiers, count, .. }, table, .. } = self;
        frontiers.extend(base.iter().zip(row).map(|(&base, &row)| base.max(row)));
        let (old, new) = frontiers.split_at(*count * width);
        let at = |node: usize| &old[node * width..(node + 1) * width];
        if *count > 0 && at(self.last) == new {
            frontiers.truncate(*count * width);
            return Some(self.last as u32);
        }
        let hash = hash(new);
        if let Some(&node) = table.find(hash, |&node| at(node as usize) == new) {
            frontiers.truncate(*count * width);
            self.last = node as usize;
            return Some(node);
        }
        if *count == self.capacity.nodes {
            frontiers.truncate(*count * width);
            return None;
        }
        let node = *count as u32;
        let hash_of = |&node: &u32| {
            let start = node as usize * width;
            self::hash(&frontiers[start..start + width])
        };
        table.insert_unique(hash, node, hash_of);
        *count += 1;
        self.last = node as usize;
        self.charge(width * size_of::<I>() + NODE_BYTES);
        Some(node)
    }
}

/// Mixes the numbers of a frontier, 64 bits at a time, each by a product folded onto itself.
#[inline]
fn hash<I: Index>(frontier: &[I]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(MULTIPLIER);
        (product as u64) ^ ((product >> 64) as u64)
    };
    let mut hash = MULTIPLIER;
    let bits = 8 * size_of::<I>();
    for chunk in frontier.chunks(u64::BITS as usize / bits) {
        let join = |word: u64, number: &I| word << bits | u64::from(number.get());
        // Added, since a word equal to the hash so far would make it zero for good.
        hash = mix(hash, chunk.iter().fold(0, join)).wrapping_add(MULTIPLIER);
    }
    hash
}

/// What nodes carry, say the number of paths to them, and how that goes along the arcs.
trait Algebra<I> {
    /// What the nodes of a level carry.
    type Carried;

    /// How many chains [`finish`](Self::finish) takes at once.
    const LEFT: usize;

    /// What the root carries.
    fn start(&mut self) -> Self::Carried;

    /// Whether `node` needs to be expanded.
    fn is_live(carried: &Self::Carried, node: usize) -> bool;

    /// What the nodes of the next level carry.
    fn step(
        &mut self,
        at: Step,
        carried: &Self::Carried,
        meter: &mut Meter<'_>,
    ) -> Result<Self::Carried, MergeError>;

    /// Takes nodes of which at most [`Self::LEFT`] chains are not fixed. Does nothing if it fails.
    fn finish(
        &mut self,
        space: &Space<'_, I>,
        nodes: (&Level<I>, &Self::Carried),
        meter: &mut Meter<'_>,
    ) -> Result<(), MergeError>;

    /// About how many bytes it keeps.
    fn bytes(&self, carried: &Self::Carried) -> usize;
}

/// A chain being fixed.
struct Step {
    /// How many were fixed before it.
    level: usize,
    /// Which it is.
    chain: ChainId,
    /// Where its numbers lead.
    arcs: Arcs,
    /// To how many nodes.
    next_count: usize,
}

/// Why merging did not continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MergeError {
    /// A number did not fit.
    TooWide,
    /// A limit was met.
    Full(Reason),
}

impl From<TooWide> for MergeError {
    fn from(_: TooWide) -> Self {
        Self::TooWide
    }
}

impl From<Reason> for MergeError {
    fn from(reason: Reason) -> Self {
        Self::Full(reason)
    }
}

/// A merge that was cut short: the last level that is complete.
struct Cut<I, A: Algebra<I>> {
    algebra: A,
    level: Level<I>,
    carried: A::Carried,
    reason: Reason,
}

impl<I: Index, A: Algebra<I>> Cut<I, A> {
    /// What to say about it.
    fn overflow(&self, space: &Space<'_, I>) -> Overflow {
        let level = space.free.len() - self.level.places.len();
        Overflow { reason: self.reason, level, nodes_count: self.level.count }
    }
}

/// The result, or where it was cut short; or a number did not fit.
type Merged<I, A> = Result<Result<A, Box<Cut<I, A>>>, TooWide>;

/// How the chain to be fixed next is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChainOrder {
    /// In the order given.
    Given,
    /// Next the one that leaves the fewest nodes, which costs an expansion for each.
    Fewest,
}

/// Merges all levels of `space`. The order in which chains are fixed decides how many nodes there
/// are: the given one is tried first, up to the soft limit on nodes; then, per level, the chain
/// that leaves the fewest nodes; then both again up to the hard limit.
fn merge<I: Index, A: Algebra<I>>(
    space: &Space<'_, I>,
    make: impl Fn() -> A,
    limits: &Limits,
    meter: &mut Meter<'_>,
) -> Merged<I, A> {
    let soft = limits.nodes_soft.min(limits.nodes_max);
    let mut deepest: Option<Box<Cut<I, A>>> = None;
    for nodes_max in [soft, limits.nodes_max] {
        for order in [ChainOrder::Given, ChainOrder::Fewest] {
            let capacity = Capacity { nodes: nodes_max, bytes: limits.bytes_max };
            let cut = match attempt(space, make(), order, capacity, meter)? {
                Ok(algebra) => return Ok(Ok(algebra)),
                Err(cut) => cut,
            };
            let reason = cut.reason;
            // The fewer chains are left, the less is left to do.
            if deepest.as_ref().is_none_or(|old| cut.level.places.len() < old.level.places.len()) {
                deepest = Some(cut);
            }
            if let Some(deepest) = deepest.as_mut().filter(|_| reason.is_final()) {
                deepest.reason = reason;
                break;
            }
        }
        let is_final = deepest.as_ref().is_some_and(|cut| cut.reason.is_final());
        if is_final || soft == limits.nodes_max {
            break;
        }
    }
    Ok(Err(deepest.expect("there was at least one attempt, and it was cut short")))
}

fn attempt<I: Index, A: Algebra<I>>(
    space: &Space<'_, I>,
    mut algebra: A,
    order: ChainOrder,
    capacity: Capacity,
    meter: &mut Meter<'_>,
) -> Merged<I, A> {
    let mut level = space.start();
    let mut carried = algebra.start();
    let halt = loop {
        if level.places.len() <= A::LEFT {
            match algebra.finish(space, (&level, &carried), meter) {
                Ok(()) => return Ok(Ok(algebra)),
                Err(halt) => break halt,
            }
        }
        let kept = level.bytes() + algebra.bytes(&carried);
        let capacity = Capacity { bytes: capacity.bytes.saturating_sub(kept), ..capacity };
        let chosen = choose(space, (&level, &carried, &algebra), order, capacity, meter);
        let (chain, next, arcs) = match chosen {
            Ok(chosen) => chosen,
            Err(reason) => break MergeError::Full(reason),
        };
        let fixed = space.free.len() - level.places.len();
        let step = Step { level: fixed, chain, arcs, next_count: next.count };
        match algebra.step(step, &carried, meter) {
            Ok(next_carried) => (level, carried) = (next, next_carried),
            Err(halt) => break halt,
        }
    };
    match halt {
        MergeError::TooWide => Err(TooWide),
        MergeError::Full(reason) => Ok(Err(Box::new(Cut { algebra, level, carried, reason }))),
    }
}

/// Fixes one more chain of `level`: which, and what that leads to.
fn choose<I: Index, A: Algebra<I>>(
    space: &Space<'_, I>,
    (level, carried, _): (&Level<I>, &A::Carried, &A),
    order: ChainOrder,
    mut capacity: Capacity,
    meter: &mut Meter<'_>,
) -> Result<(ChainId, Level<I>, Arcs), Reason> {
    let mut best = None;
    let mut reason = Reason::Nodes;
    let tried = match order {
        ChainOrder::Given => 1,
        ChainOrder::Fewest => level.places.len(),
    };
    for at in 0..tried {
        let mut cursor = Cursor::default();
        let choices = Choices::new(space, &level.places, at);
        meter.spend(choices.work())?;
        let is_live = |node| A::is_live(carried, node);
        let (next, arcs) = expand((level, &choices), &mut cursor, capacity, is_live, meter)?;
        if cursor.node < level.count {
            // A chain that is merely no better than the best so far is no overflow.
            if best.is_none() && next.count < capacity.nodes {
                reason = Reason::Memory;
            }
            continue;
        }
        capacity.nodes = next.count.saturating_sub(1);
        let is_least = next.count <= 1;
        best = Some((space.tables.order[level.places[at]], next, arcs));
        if is_least {
            break;
        }
    }
    best.ok_or(reason)
}

/// A batch of nodes of one level, and how far they were expanded.
struct Frame<I, C> {
    level: Level<I>,
    carried: C,
    cursor: Cursor,
}

/// What came of all levels.
struct Traversed<I, A: Algebra<I>> {
    algebra: A,
    /// The nodes that were not expanded completely, from their cursors on, and why.
    frames: Vec<Frame<I, A::Carried>>,
    cut_short: Option<Reason>,
    /// Where merging did not fit the limits.
    overflow: Option<Overflow>,
}

/// Merges all levels of `space` while that fits the limits, and continues in batches.
fn traverse<I: Index, A: Algebra<I>>(
    space: &Space<'_, I>,
    make: impl Fn() -> A,
    limits: &Limits,
    stop: Stop<'_>,
) -> Result<Traversed<I, A>, TooWide> {
    // Half of the work is left for batches, should merging not fit.
    let mut meter = Meter::new(limits.work_max / 2, stop);
    let cut = match merge(space, make, limits, &mut meter)? {
        Ok(algebra) => {
            let (frames, cut_short, overflow) = (Vec::new(), None, None);
            return Ok(Traversed { algebra, frames, cut_short, overflow });
        }
        Err(cut) => cut,
    };
    meter.grant(limits.work_max - limits.work_max / 2);
    // One batch per level is kept, beside the whole level that the batches start from.
    let nodes = (limits.nodes_max / BATCH_FRACTION).max(1);
    let capacity = Capacity { nodes, bytes: limits.bytes_max / cut.level.places.len().max(1) };
    batches(space, *cut, capacity, &mut meter)
}

/// A batch has this many times fewer nodes than a level may have.
const BATCH_FRACTION: usize = 4;

/// Continues where a merge was cut short, depth first in batches: as many nodes of the next level
/// as `capacity` allows, and from those on down, before the rest of the level is expanded. Exact as
/// well; equal nodes of different batches are not merged, which costs time. With capacity for one
/// node it enumerates all states, with capacity for all it is the merge.
fn batches<I: Index, A: Algebra<I>>(
    space: &Space<'_, I>,
    cut: Cut<I, A>,
    capacity: Capacity,
    meter: &mut Meter<'_>,
) -> Result<Traversed<I, A>, TooWide> {
    let overflow = Some(cut.overflow(space));
    let Cut { mut algebra, level, carried, .. } = cut;
    let chains_count = space.free.len();
    let start = chains_count - level.places.len();
    // The chains that are left are fixed in one order everywhere.
    let mut choices: Vec<Choices<I>> = Vec::new();
    let mut frames = vec![Frame { level, carried, cursor: Cursor::default() }];
    while let Some(frame) = frames.last_mut() {
        let fixed = chains_count - frame.level.places.len();
        let done = if frame.level.places.len() <= A::LEFT {
            algebra.finish(space, (&frame.level, &frame.carried), meter).map(|()| None)
        } else if frame.cursor.node == frame.level.count {
            Ok(None)
        } else {
            if choices.len() == fixed - start {
                choices.push(Choices::new(space, &frame.level.places, 0));
            }
            let chain = space.tables.order[frame.level.places[0]];
            let at = (fixed, chain, &choices[fixed - start]);
            batch(&mut algebra, frame, at, capacity, meter).map(Some)
        };
        match done {
            Ok(Some(next)) => frames.push(next),
            Ok(None) => drop(frames.pop()),
            Err(MergeError::TooWide) => return Err(TooWide),
            Err(MergeError::Full(reason)) => {
                return Ok(Traversed { algebra, frames, cut_short: Some(reason), overflow });
            }
        }
    }
    Ok(Traversed { algebra, frames, cut_short: None, overflow })
}

/// The next batch of `frame`, whose cursor advances.
fn batch<I: Index, A: Algebra<I>>(
    algebra: &mut A,
    frame: &mut Frame<I, A::Carried>,
    (fixed, chain, choices): (usize, ChainId, &Choices<I>),
    capacity: Capacity,
    meter: &mut Meter<'_>,
) -> Result<Frame<I, A::Carried>, MergeError> {
    let mut cursor = frame.cursor;
    let is_live = |node| A::is_live(&frame.carried, node);
    let (next, arcs) = expand((&frame.level, choices), &mut cursor, capacity, is_live, meter)?;
    let step = Step { level: fixed, chain, arcs, next_count: next.count };
    let carried = algebra.step(step, &frame.carried, meter)?;
    frame.cursor = cursor;
    Ok(Frame { level: next, carried, cursor: Cursor::default() })
}
