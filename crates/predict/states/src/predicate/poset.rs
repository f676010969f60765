//! A predicate over the chains of a poset: asked state by state, or chain by chain.

use reweave_base::{Id, IndexVec};
use reweave_order::poset::{ChainId, TracePoset};
use reweave_trace::{ThreadId, Trace};

use super::Predicate;
use super::classify::{Class, classify};
use super::expression::{
    Comparison, Expression, Leaf, LeafId, Node, Operator, Range, Shared, Writer, combined,
    compared, truth,
};
use crate::mdd;

/// A predicate over the chains of a poset: what its states are asked.
///
/// Everything is tabulated by the chains' own numbers of events, so asking costs a look-up a leaf.
#[derive(Clone, Debug)]
pub struct PosetPredicate {
    goal: Expression<ChainId>,
    class: Class<ChainId>,
    columns: IndexVec<LeafId, Column>,
}

/// A leaf by the numbers of events of the chains that it depends on.
#[derive(Clone, Debug)]
enum Column {
    Local { chain: ChainId, values: Vec<Option<i64>> },
    Shared { initial: Option<i64>, writers: Vec<WriterColumn> },
}

/// The last write of a chain by the number of its events.
#[derive(Clone, Debug)]
struct WriterColumn {
    chain: ChainId,
    lasts: Vec<Last>,
}

/// A write: its number in observed order, 0 if there is none yet, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Last {
    number: u32,
    value: Option<i64>,
}

impl Predicate {
    /// The predicate over the chains of `poset`, which is one of `trace`, the trace that the
    /// predicate is about. The poset must have every relevant event as an event of its own, and may
    /// have others.
    #[must_use]
    pub fn on(&self, trace: &Trace, poset: &TracePoset) -> PosetPredicate {
        let mut places: IndexVec<ThreadId, Option<(ChainId, Vec<u32>)>> =
            IndexVec::from_elem(None, trace.names().threads.len());
        for (chain, &thread) in poset.threads().entries() {
            let events = (1..=poset.poset().length(chain)).filter_map(|at| poset.first(chain, at));
            let counts = std::iter::once(0).chain(events.map(|event| trace.position(event) + 1));
            places[thread] = Some((chain, counts.collect()));
        }
        let place = |thread: ThreadId| {
            let (chain, counts) = places[thread].as_ref()?;
            Some((*chain, counts.as_slice()))
        };
        let goal = self.goal.placed(&place);
        let class = match self.class {
            Class::Pairwise => Class::Pairwise,
            _ => classify(&goal),
        };
        let length = |chain| poset.poset().length(chain);
        let columns = goal.leaves.iter().map(|leaf| column(leaf, length)).collect();
        PosetPredicate { goal, class, columns }
    }
}

fn column(leaf: &Leaf<ChainId>, length: impl Fn(ChainId) -> u32) -> Column {
    match leaf {
        Leaf::Local(local) => {
            Column::Local { chain: local.owner, values: local.steps.tabulated(length(local.owner)) }
        }
        Leaf::Shared(Shared { initial, writers, .. }) => {
            let writer_column = |writer: &Writer<ChainId>| {
                let last = |index| match writer.last(index) {
                    Some(write) => Last { number: write.event.number(), value: write.value },
                    None => Last { number: 0, value: *initial },
                };
                let chain = writer.owner;
                WriterColumn { chain, lasts: (0..=length(chain)).map(last).collect() }
            };
            Column::Shared {
                initial: *initial,
                writers: writers.iter().map(writer_column).collect(),
            }
        }
    }
}

impl PosetPredicate {
    /// What its states are searched for.
    #[must_use]
    pub const fn goal(&self) -> &Expression<ChainId> {
        &self.goal
    }

    /// The class of that, over chains.
    #[must_use]
    pub const fn class(&self) -> &Class<ChainId> {
        &self.class
    }

    #[inline]
    fn leaf(&self, id: LeafId, state: &[u32]) -> Option<i64> {
        match &self.columns[id] {
            Column::Local { chain, values } => values[state[chain.index()] as usize],
            Column::Shared { initial, writers } => {
                let lasts = writers.iter().map(|own| own.lasts[state[own.chain.index()] as usize]);
                lasts.max_by_key(|last| last.number).map_or(*initial, |last| last.value)
            }
        }
    }

    /// Whether `state` meets the goal: how many events of each chain have happened.
    #[must_use]
    pub fn is_met(&self, state: &[u32]) -> bool {
        self.goal.root.value(&|id| self.leaf(id, state)) == Some(1)
    }
}

reweave_base::id! {
    /// A part of a goal, its own parts before it.
    struct PartId;
}

/// A predicate evaluated chain by chain: what is known of the goal once some chains are fixed.
///
/// An accumulator has a cell for each part of the goal. A part is open, or has a value or a range
/// of values; a sum whose terms are not all known has the sum so far, and a variable the latest
/// write so far. Once a part has its value, the cells of its own parts no longer matter and are
/// blanked; so is a term once it is added, and a part of a conjunction once it is true. Hence
/// accumulators are equal whenever the same remains to be known, and the decision diagram keeps few
/// of them: a count over all threads keeps one number.
///
/// A step costs the number of parts of the goal.
#[derive(Clone, Debug)]
pub struct PredicateFold<'p> {
    predicate: &'p PosetPredicate,
    parts: IndexVec<PartId, Part>,
}

#[derive(Clone, Debug)]
struct Part {
    kind: Kind,
    inner: Vec<PartId>,
}

#[derive(Clone, Debug)]
enum Kind {
    Constant(Option<i64>),
    Leaf(LeafId),
    Not,
    /// A conjunction or a disjunction, by the truth that decides it.
    Joined(i64),
    Compare(Comparison),
    /// Whether each term is taken away.
    Sum(Vec<bool>),
    Between,
    Arithmetic(Operator),
}

/// What is known of a goal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Accumulator(Box<[Cell]>);

/// What is known of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Cell {
    /// Nothing yet.
    Open,
    /// It no longer matters.
    Blank,
    /// Its value, as far as that is known.
    Worth(Option<Range>),
    /// The least and the most that the terms so far are; of a conjunction or disjunction of which a
    /// part is not known, 0 and 1.
    Partial { low: i128, high: i128 },
    /// The latest write so far, and how many chains may have a later one.
    Latest { last: Last, writers: u32 },
}

impl PosetPredicate {
    /// The predicate chain by chain.
    #[must_use]
    pub fn fold(&self) -> PredicateFold<'_> {
        let mut parts = IndexVec::new();
        add(&self.goal().root, &mut parts);
        PredicateFold { predicate: self, parts }
    }
}

/// Adds `node` after its parts.
fn add(node: &Node, parts: &mut IndexVec<PartId, Part>) -> PartId {
    let inner: Vec<PartId> = node.parts().into_iter().map(|part| add(part, parts)).collect();
    let kind = match node {
        Node::Constant(value) => Kind::Constant(*value),
        Node::Leaf(id) => Kind::Leaf(*id),
        Node::Not(_) => Kind::Not,
        Node::All(_) => Kind::Joined(0),
        Node::Any(_) => Kind::Joined(1),
        Node::Compare(comparison, _) => Kind::Compare(*comparison),
        Node::Sum(terms) => Kind::Sum(terms.iter().map(|term| term.is_negative).collect()),
        Node::Between(_) => Kind::Between,
        Node::Arithmetic(operator, _) => Kind::Arithmetic(*operator),
    };
    parts.push(Part { kind, inner })
}

impl PredicateFold<'_> {
    /// Brings `cells` up to date once `fixed` has run so many events, or if nothing is new.
    fn settle(&self, cells: &mut [Cell], fixed: Option<(ChainId, u32)>) {
        for (id, part) in self.parts.entries() {
            let own = cells[id.index()];
            if matches!(own, Cell::Blank | Cell::Worth(_)) {
                continue;
            }
            cells[id.index()] = match &part.kind {
                Kind::Constant(value) => Cell::Worth(value.map(Range::exact)),
                Kind::Leaf(leaf) => fixed.map_or(own, |fixed| self.leaf(*leaf, own, fixed)),
                Kind::Not => match cells[part.inner[0].index()] {
                    Cell::Worth(value) => Cell::Worth(Some(truth(value).opposite())),
                    _ => own,
                },
                Kind::Joined(decisive) => joined(cells, part, own, *decisive),
                Kind::Sum(signs) => sum(cells, part, own, signs),
                Kind::Compare(comparison) => {
                    paired(cells, part, own, |left, right| compared(*comparison, left, right))
                }
                Kind::Between => paired(cells, part, own, |low, high| {
                    Some(Range { low: low?.low, high: high?.high })
                }),
                Kind::Arithmetic(operator) => {
                    paired(cells, part, own, |left, right| combined(*operator, left, right))
                }
            };
        }
        for (id, part) in self.parts.entries().rev() {
            if matches!(cells[id.index()], Cell::Blank | Cell::Worth(_)) {
                for inner in &part.inner {
                    cells[inner.index()] = Cell::Blank;
                }
            }
        }
    }

    fn leaf(&self, leaf: LeafId, own: Cell, (chain, index): (ChainId, u32)) -> Cell {
        match &self.predicate.columns[leaf] {
            Column::Local { chain: owner, values } if *owner == chain => {
                Cell::Worth(values[index as usize].map(Range::exact))
            }
            Column::Local { .. } => own,
            Column::Shared { initial, writers } => {
                let Some(writer) = writers.iter().find(|writer| writer.chain == chain) else {
                    return own;
                };
                let before = match own {
                    Cell::Latest { last, writers } => (last, writers),
                    _ => (Last { number: 0, value: *initial }, writers.len() as u32),
                };
                let new = writer.lasts[index as usize];
                let last = if new.number > before.0.number { new } else { before.0 };
                match before.1 {
                    0 | 1 => Cell::Worth(last.value.map(Range::exact)),
                    writers => Cell::Latest { last, writers: writers - 1 },
                }
            }
        }
    }

    fn root(&self, cells: &[Cell]) -> Cell {
        cells.last().copied().unwrap_or(Cell::Worth(None))
    }
}

/// A conjunction or disjunction. What does not decide it is blanked.
fn joined(cells: &mut [Cell], part: &Part, own: Cell, decisive: i64) -> Cell {
    let mut is_known = own == Cell::Open;
    let mut is_open = false;
    for inner in &part.inner {
        match cells[inner.index()] {
            Cell::Worth(value) => {
                let value = truth(value).value();
                if value == Some(decisive) {
                    return Cell::Worth(Some(Range::exact(decisive)));
                }
                is_known &= value.is_some();
                cells[inner.index()] = Cell::Blank;
            }
            Cell::Blank => {}
            Cell::Open | Cell::Partial { .. } | Cell::Latest { .. } => is_open = true,
        }
    }
    match (is_open, is_known) {
        (false, true) => Cell::Worth(Some(Range::exact(1 - decisive))),
        (false, false) => Cell::Worth(Some(Range::EITHER)),
        (true, true) => Cell::Open,
        (true, false) => Cell::Partial { low: 0, high: 1 },
    }
}

/// A sum. What is added is blanked.
fn sum(cells: &mut [Cell], part: &Part, own: Cell, signs: &[bool]) -> Cell {
    let mut sum = if let Cell::Partial { low, high } = own { (low, high) } else { (0, 0) };
    let mut is_open = false;
    for (inner, &is_negative) in part.inner.iter().zip(signs) {
        match cells[inner.index()] {
            Cell::Worth(None) => return Cell::Worth(None),
            Cell::Worth(Some(value)) => {
                let (low, high) = value.added(is_negative);
                sum = (sum.0 + low, sum.1 + high);
                cells[inner.index()] = Cell::Blank;
            }
            Cell::Blank => {}
            Cell::Open | Cell::Partial { .. } | Cell::Latest { .. } => is_open = true,
        }
    }
    match is_open {
        true => Cell::Partial { low: sum.0, high: sum.1 },
        false => Cell::Worth(Range::fitting(sum.0, sum.1)),
    }
}

/// What `of` makes of the two parts, once both are there or one may be anything.
fn paired(
    cells: &[Cell],
    part: &Part,
    own: Cell,
    of: impl Fn(Option<Range>, Option<Range>) -> Option<Range>,
) -> Cell {
    match [part.inner[0], part.inner[1]].map(|inner| cells[inner.index()]) {
        [Cell::Worth(None), _] | [_, Cell::Worth(None)] => Cell::Worth(of(None, None)),
        [Cell::Worth(left), Cell::Worth(right)] => Cell::Worth(of(left, right)),
        _ => own,
    }
}

/// The value of the goal where it is met.
const TRUE: Cell = Cell::Worth(Some(Range::truth(true)));

impl mdd::Fold for PredicateFold<'_> {
    type Memory = Accumulator;

    fn start(&self) -> Accumulator {
        let mut cells = vec![Cell::Open; self.parts.len()].into_boxed_slice();
        self.settle(&mut cells, None);
        Accumulator(cells)
    }

    fn step(&self, memory: &Accumulator, chain: ChainId, index: u32) -> Option<Accumulator> {
        let mut cells = memory.0.clone();
        self.settle(&mut cells, Some((chain, index)));
        match self.root(&cells) {
            Cell::Open | Cell::Partial { .. } | Cell::Latest { .. } => Some(Accumulator(cells)),
            root => (root == TRUE).then_some(Accumulator(cells)),
        }
    }

    fn is_met(&self, memory: &Accumulator) -> bool {
        self.root(&memory.0) == TRUE
    }

    fn bytes(&self, memory: &Accumulator) -> usize {
        size_of_val(&*memory.0)
    }
}
