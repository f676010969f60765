//! Looking ahead: several transactions are run one after the other before values are joined.
//!
//! **Question.** As that of propagation, with fewer values that no interleaving has.
//!
//! **Idea.** A *window* is a path of transactions, each after one switch at most. Within a window
//! stores are not joined with those of other paths, and what is known of where a thread is must be
//! kept to: a switch to another node of it is none. At the start all threads are at their entries.
//! Windows follow each other as rounds do; the last is only as long as there are transactions left,
//! since a longer one could add what no interleaving has.
//!
//! **Promise.** As that of propagation, of which this is a refinement: every interleaving is cut
//! into windows.
//!
//! **Cost.** The number of paths, which grows with their length as a power. A budget of paths for
//! each window bounds it.
//!
//! Source: M. Ganai, C. Wang, "Interval analysis for concurrent trace programs using transaction
//! sequence graphs", 2010, lookahead.

use reweave_base::IndexVec;
use reweave_trace::ThreadId;

use crate::ctp::Ctp;
use crate::domain::Domain;
use crate::graph::{Graph, NodeId};
use crate::propagate::plain::{PlaceId, Record, Shape, initial, join_row, place_of, with_own};
use crate::propagate::{Row, Values, final_values};

/// How to look ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether a thread that goes on has the locals that it had before, not those carried along.
    pub own: bool,
    /// How many transactions a window has; at least 1.
    pub length: u32,
    /// Whether the last window has only as many as are left.
    pub capped: bool,
    /// How many paths a window may have.
    pub paths_max: u64,
    /// How many windows there may be.
    pub windows_max: u64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome<D> {
    /// What may happen.
    pub values: Values<D>,
    /// How many paths of full length there were, of all windows.
    pub paths: u64,
}

/// What may happen in the interleavings of `ctp` that `graph` stands for; none if a budget ran out.
pub fn propagate<D: Domain>(ctp: &Ctp, graph: &Graph, settings: &Settings) -> Option<Outcome<D>> {
    let shape = Shape::new(ctp, graph);
    let length = u64::from(settings.length.max(1));
    let mut search = Search::new(ctp, &shape, settings);
    let mut sources = IndexVec::<PlaceId, Option<Row<D>>>::from_elem(None, shape.places_count());
    for &root in &graph.roots {
        sources[place_of(root)] = Some(initial(ctp));
    }
    let windows = shape.rounds.div_ceil(length);
    let mut count = 0;
    while count < windows && sources.iter().any(Option::is_some) {
        if count == settings.windows_max {
            return None;
        }
        let left = shape.rounds - count * length;
        let depth = if settings.capped { left.min(length) } else { length };
        let own = search.own.clone();
        let next = search.window(&sources, depth, count == 0)?;
        count += 1;
        let repeats = next == sources && own == search.own;
        sources = next;
        if repeats {
            break;
        }
    }
    let values = Values {
        final_values: final_values(ctp, graph, &search.at),
        at: search.at,
        steps: search.record.steps,
        leaves: search.record.leaves,
        rounds: count,
        visits: search.record.visits,
        lookahead: settings.length.max(1),
        exhausted: false,
    };
    Some(Outcome { values, paths: search.paths })
}

/// What a path knows of where a thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Unknown,
    At(NodeId),
    Stopped,
}

/// A path that is not yet at its end.
struct Path<D> {
    place: PlaceId,
    store: Row<D>,
    positions: IndexVec<ThreadId, Position>,
    left: u64,
}

struct Search<'a, D> {
    ctp: &'a Ctp,
    shape: &'a Shape<'a>,
    settings: &'a Settings,
    record: Record<D>,
    at: IndexVec<NodeId, Option<Row<D>>>,
    own: IndexVec<NodeId, Option<Row<D>>>,
    paths: u64,
}

impl<'a, D: Domain> Search<'a, D> {
    fn new(ctp: &'a Ctp, shape: &'a Shape<'a>, settings: &'a Settings) -> Self {
        let mut at = IndexVec::from_elem(None, shape.graph.nodes.len());
        for &root in &shape.graph.roots {
            at[root] = Some(initial(ctp));
        }
        let mut own = at.clone();
        for &entry in shape.entries.iter().flatten() {
            own[entry] = Some(initial(ctp));
        }
        Self { ctp, shape, settings, record: Record::new(ctp), at, own, paths: 0 }
    }

    /// Goes along all paths of `depth` transactions from `sources`, and gives what they end with;
    /// none if there are too many.
    fn window(
        &mut self,
        sources: &IndexVec<PlaceId, Option<Row<D>>>,
        depth: u64,
        is_first: bool,
    ) -> Option<IndexVec<PlaceId, Option<Row<D>>>> {
        let mut next = IndexVec::from_elem(None, self.shape.places_count());
        // What threads bring to nodes counts for those that go on in a later window only.
        let mut arrived = IndexVec::from_elem(None, self.shape.graph.nodes.len());
        let visits_max = self.record.visits.saturating_add(self.settings.paths_max);
        for (place, source) in sources.entries() {
            let Some(source) = source else { continue };
            let positions = self.positions(place, is_first);
            let mut paths = vec![Path { place, store: source.clone(), positions, left: depth }];
            while let Some(path) = paths.pop() {
                if path.left == 0 {
                    self.paths += 1;
                    join_row(&mut next[path.place], &path.store);
                    continue;
                }
                if self.record.visits >= visits_max {
                    return None;
                }
                self.extend(&path, &mut arrived, &mut paths);
            }
        }
        for (own, arrived) in self.own.iter_mut().zip(arrived.iter()) {
            if let Some(arrived) = arrived {
                join_row(own, arrived);
            }
        }
        Some(next)
    }

    /// What is known of threads where a path starts at `place`.
    fn positions(&self, place: PlaceId, is_first: bool) -> IndexVec<ThreadId, Position> {
        let mut positions: IndexVec<ThreadId, Position> = self
            .shape
            .entries
            .iter()
            .map(|entry| match entry {
                Some(entry) if is_first => Position::At(*entry),
                Some(_) | None => Position::Unknown,
            })
            .collect();
        let (thread, position) = self.position(place);
        positions[thread] = position;
        positions
    }

    /// Whose `place` is, and where its thread is there.
    fn position(&self, place: PlaceId) -> (ThreadId, Position) {
        match self.shape.node(place) {
            Some(node) => (self.shape.graph.nodes[node].thread, Position::At(node)),
            None => (self.shape.stopped(place), Position::Stopped),
        }
    }

    /// Adds what `path` becomes by one transaction more.
    fn extend(
        &mut self,
        path: &Path<D>,
        arrived: &mut IndexVec<NodeId, Option<Row<D>>>,
        paths: &mut Vec<Path<D>>,
    ) {
        let (ctp, shape) = (self.ctp, self.shape);
        let here = shape.node(path.place);
        for &node in here.iter().chain(&shape.switches[path.place]) {
            let is_switch = here != Some(node);
            let thread = shape.graph.nodes[node].thread;
            let store = match (path.positions[thread], &self.own[node]) {
                (Position::At(known), _) if known == node => path.store.clone(),
                (Position::Unknown, _) if !self.settings.own => path.store.clone(),
                (Position::Unknown, Some(own)) => with_own(ctp, thread, &path.store, own),
                (Position::At(_) | Position::Stopped | Position::Unknown, _) => continue,
            };
            if is_switch {
                join_row(&mut self.at[node], &store);
            }
            let Some(transaction) = shape.transactions[node] else { continue };
            for (place, store) in self.record.run(ctp, shape, transaction, store) {
                if let Some(node) = shape.node(place) {
                    join_row(&mut self.at[node], &store);
                    join_row(&mut arrived[node], &store);
                }
                let mut positions = path.positions.clone();
                positions[thread] = self.position(place).1;
                paths.push(Path { place, store, positions, left: path.left - 1 });
            }
        }
    }
}
