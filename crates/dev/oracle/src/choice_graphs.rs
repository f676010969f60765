//! The witness order graph and the choice graphs of a witness, by definition: every pair of events,
//! every pair of sections, every choice graph until one is without a cycle.
//!
//! Sinha, Malik and Gupta, "Efficient predictive analysis for detecting nondeterminism in
//! multi-threaded programs" (FMCAD 2012).

use reweave_base::{Id, IndexVec};
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{EventId, Trace};

use crate::mhb;
use crate::nondeterminism::Witness;
use crate::relation::close;

/// How the phases decide a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The witness order graph has a cycle, or there is no such witness.
    Cyclic,
    /// Nothing is left to choose.
    Settled,
    /// There is.
    Chosen {
        /// How many pairs of sections there are to choose the order of.
        choices: usize,
        /// Whether some choice graph has no cycle; none if there are too many to look at.
        is_feasible: Option<bool>,
    },
}

/// Of how many choices all graphs are looked at.
const CHOICES_MAX: usize = 12;

/// How the phases decide `witness`, which is of kind 1 or 2.
#[must_use]
pub fn outcome(trace: &Trace, witness: &Witness) -> Outcome {
    if witness.is_void() {
        return Outcome::Cyclic;
    }
    let added = witness.edges();
    let mut graph = Graph::new(trace, witness.read);
    added.iter().for_each(|&(tail, head)| graph.add(tail, head));
    graph.close(trace);
    if graph.is_cyclic() {
        return Outcome::Cyclic;
    }
    let choices = choices(trace, &graph, &added);
    if choices.is_empty() {
        return Outcome::Settled;
    }
    Outcome::Chosen { choices: choices.len(), is_feasible: explore(&graph, &choices) }
}

/// Whether `order` is one of all events that shows `witness`, which is of kind 1 or 2.
#[must_use]
pub fn is_shown(trace: &Trace, witness: &Witness, order: &[EventId]) -> bool {
    let mut places: IndexVec<EventId, Option<usize>> = IndexVec::from_elem(None, trace.len());
    order.iter().enumerate().for_each(|(at, &id)| places[id] = Some(at));
    if order.len() != trace.len() || places.iter().any(Option::is_none) {
        return false;
    }
    let is_kept = |early: EventId, late: EventId| places[early] < places[late];
    let ids = || trace.events().map(|(id, _)| id);
    let are_edges_kept = ids().all(|late| {
        ids()
            .filter(|&early| is_edge(trace, early, late, witness.read))
            .all(|early| is_kept(early, late))
    });
    let is_before = |early: &CriticalSection, late: &CriticalSection| {
        early.release.is_some_and(|release| is_kept(release, late.acquire))
    };
    let mut pairs = rivals(trace).into_iter();
    are_edges_kept
        && pairs.all(|(left, right)| is_before(&left, &right) || is_before(&right, &left))
        && witness.edges().iter().all(|&(early, late)| is_kept(early, late))
}

/// Whether each event comes before each other.
#[derive(Clone, Debug)]
struct Graph {
    before: Vec<Vec<bool>>,
}

impl Graph {
    /// The edges of the partial order graph and of all reads-from edges but that of `free`, closed under
    /// transitivity alone.
    fn new(trace: &Trace, free: Option<EventId>) -> Self {
        let mut graph = Self { before: vec![vec![false; trace.len()]; trace.len()] };
        for (late, _) in trace.events() {
            for (early, _) in trace.events() {
                if is_edge(trace, early, late, free) {
                    graph.before[early.index()][late.index()] = true;
                }
            }
        }
        close(&mut graph.before);
        graph
    }

    fn has(&self, early: EventId, late: EventId) -> bool {
        self.before[early.index()][late.index()]
    }

    fn is_cyclic(&self) -> bool {
        (0..self.before.len()).any(|at| self.before[at][at])
    }

    /// Adds an edge and all paths through it.
    fn add(&mut self, tail: EventId, head: EventId) {
        let mut onward = self.before[head.index()].clone();
        onward[head.index()] = true;
        for (at, row) in self.before.iter_mut().enumerate() {
            if at == tail.index() || row[tail.index()] {
                row.iter_mut().zip(&onward).for_each(|(slot, &is_set)| *slot |= is_set);
            }
        }
    }

    /// Adds what follows for sections: who must start before another ends must end before that
    /// starts, and who never ends comes last.
    fn close(&mut self, trace: &Trace) {
        let pairs = rivals(trace);
        let both_ways = || pairs.iter().flat_map(|&(left, right)| [(left, right), (right, left)]);
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for (early, late) in both_ways() {
                let Some(end) = early.release else { continue };
                let is_forced = late.release.is_none_or(|last| self.has(early.acquire, last));
                if is_forced && !self.has(end, late.acquire) {
                    self.add(end, late.acquire);
                    has_changed = true;
                }
            }
        }
    }
}

/// Whether `late` comes right after `early` in the partial order graph, or as a reads-from edge but that of
/// `free`.
fn is_edge(trace: &Trace, early: EventId, late: EventId, free: Option<EventId>) -> bool {
    early < late && mhb::is_edge(trace, early, late, free.as_slice())
}

/// All pairs of sections that exclude each other.
fn rivals(trace: &Trace) -> Vec<(CriticalSection, CriticalSection)> {
    let sections: Vec<CriticalSection> =
        trace.sections().entries().map(|(_, section)| *section).collect();
    let mut pairs = Vec::new();
    for (at, &left) in sections.iter().enumerate() {
        for &right in &sections[at + 1..] {
            let is_shared = left.mode == Mode::Shared && right.mode == Mode::Shared;
            if left.lock == right.lock && left.thread != right.thread && !is_shared {
                pairs.push((left, right));
            }
        }
    }
    pairs
}

/// A choice: either edge, from a release to an acquire.
type Choice = [(EventId, EventId); 2];

/// The choices on walks of the contracted graph from the head to the tail of an edge of `added`.
fn choices(trace: &Trace, graph: &Graph, added: &[(EventId, EventId)]) -> Vec<Choice> {
    let vertices = vertices(trace);
    let count = trace.len();
    let mut contracted = Graph { before: vec![vec![false; count]; count] };
    for early in vertices.ids() {
        for late in vertices.ids().filter(|&late| graph.has(early, late)) {
            contracted.before[vertices[early].index()][vertices[late].index()] = true;
        }
    }
    let mut open = Vec::new();
    for (left, right) in rivals(trace) {
        let (Some(left_end), Some(right_end)) = (left.release, right.release) else { continue };
        if !graph.has(left_end, right.acquire) && !graph.has(right_end, left.acquire) {
            let (one, other) = (vertices[left.acquire], vertices[right.acquire]);
            contracted.before[one.index()][other.index()] = true;
            contracted.before[other.index()][one.index()] = true;
            open.push([(left_end, right.acquire), (right_end, left.acquire)]);
        }
    }
    close(&mut contracted.before);
    let is_reached = |from: EventId, to: EventId| {
        vertices[from] == vertices[to] || contracted.has(vertices[from], vertices[to])
    };
    // An edge of the witness leads from its tail to its head, so a walk from head to tail makes one
    // component of both.
    let on_walk = |(tail, head): &(EventId, EventId), choice: &Choice| {
        is_reached(*head, choice[0].0) && is_reached(choice[0].0, *tail)
    };
    open.retain(|choice| added.iter().any(|edge| on_walk(edge, choice)));
    open
}

/// For each event its vertex of the contracted graph, named by one of its events: overlapping
/// sections of a thread are one.
fn vertices(trace: &Trace) -> IndexVec<EventId, EventId> {
    let mut vertices: IndexVec<EventId, EventId> = trace.events().map(|(id, _)| id).collect();
    for (_, section) in trace.sections().entries() {
        let own = trace.thread_events(section.thread).iter().copied();
        let is_inside = |id: &EventId| {
            *id >= section.acquire && section.release.is_none_or(|release| *id <= release)
        };
        let first = vertices[section.acquire];
        own.filter(is_inside).for_each(|id| vertices[id] = first);
    }
    vertices
}

/// Whether some way to make `choices` has no cycle; none if there are too many.
fn explore(graph: &Graph, choices: &[Choice]) -> Option<bool> {
    if choices.len() > CHOICES_MAX {
        return None;
    }
    let is_acyclic = |number: u64| {
        let mut chosen = graph.clone();
        for (at, choice) in choices.iter().enumerate() {
            let (tail, head) = choice[(number >> at & 1) as usize];
            chosen.add(tail, head);
        }
        !chosen.is_cyclic()
    };
    Some((0..1 << choices.len()).any(is_acyclic))
}
