//! All of it: graphs, values on each, and what they say.
//!
//! The three graphs stand for the same interleavings and differ in how many points they keep apart.
//! Values are propagated on each that is small enough; answers are those of the last one that was,
//! the most reduced.

use crate::answers::{Answers, answers, global_bits, local_bits};
use crate::ctp::Ctp;
use crate::domain::Domain;
use crate::graph::{self, Graph, GraphKind, build};
use crate::propagate::{self, Values, propagate};

/// How to analyse.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The graphs, the one that answers are taken from last; the most reduced if none is named.
    pub kinds: Vec<GraphKind>,
    /// How they are built.
    pub graph: graph::Settings,
    /// How values are propagated.
    pub propagation: propagate::Settings,
    /// Values are propagated on a graph, unless it is the last one, only if that takes at most so
    /// many runs of transactions.
    pub visits_max: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kinds: vec![GraphKind::Ccfg, GraphKind::Tsg, GraphKind::TsgReduced],
            graph: graph::Settings::default(),
            propagation: propagate::Settings::default(),
            visits_max: 1 << 27,
        }
    }
}

impl Settings {
    /// How values are propagated on `graph`: not at all if rounds, which have work with every node,
    /// would be too many.
    fn propagation_on(&self, graph: &Graph) -> propagate::Settings {
        let rounds_max = if places_count(graph) > PLACES_MAX { 0 } else { u64::MAX };
        let rounds_max = self.propagation.rounds_max.min(rounds_max);
        propagate::Settings { rounds_max, ..self.propagation }
    }
}

/// How many nodes may be looked at, in all rounds together.
const PLACES_MAX: u64 = 1 << 22;
/// How many pairs of points of two threads may be looked at.
const PAIRS_MAX: u64 = 1 << 31;
/// How many nodes a graph may have, since switches join most pairs of them.
const ACCESSES_MAX: u64 = 1 << 14;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// The runs are too long.
    #[error(
        "the runs have {pairs} pairs of points of two threads, more than the {PAIRS_MAX} that can be looked at; shorten the run"
    )]
    TooLarge {
        /// How many there are.
        pairs: u64,
    },
}

/// How many bits the values of a graph need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Those of locals.
    pub local: u64,
    /// Those of shared variables.
    pub global: u64,
}

impl Bits {
    /// Those of the `values` on `graph`.
    pub fn new<D: Domain>(ctp: &Ctp, graph: &Graph, values: &Values<D>) -> Self {
        Self { local: local_bits(values), global: global_bits(ctp, graph, values) }
    }
}

/// A graph, and what is known on it.
#[derive(Clone, Debug)]
pub struct Examined<D> {
    /// The graph.
    pub graph: Graph,
    /// The values on it; none if that would have been too much work.
    pub values: Option<Values<D>>,
    /// How many bits they need.
    pub bits: Option<Bits>,
}

/// What was found out about a program.
#[derive(Clone, Debug)]
pub struct Analysis<D> {
    /// The graphs in the order that was asked for, but for those that would have been too large.
    pub graphs: Vec<Examined<D>>,
    /// Graphs that would have been too large.
    pub omitted: Vec<GraphKind>,
    /// What the last graph's values say.
    pub answers: Answers<D>,
}

impl<D: Domain> Analysis<D> {
    /// The values that answers are made of.
    pub fn best(&self) -> &Values<D> {
        let last = self.graphs.last().and_then(|examined| examined.values.as_ref());
        last.expect("values are propagated on the last graph, and there is one")
    }
}

/// Builds the graphs of `ctp` and propagates values on them. Once `goes_on` returns false, nothing
/// more is found out, and everything is taken to be possible.
///
/// # Errors
/// If the program is too large to look at pairs of its points.
pub fn analyse<D: Domain>(
    ctp: &Ctp,
    settings: &Settings,
    goes_on: &dyn Fn() -> bool,
) -> Result<Analysis<D>, AnalysisError> {
    let pairs = pairs_count(ctp);
    if pairs > PAIRS_MAX {
        return Err(AnalysisError::TooLarge { pairs });
    }
    let mut graphs: Vec<Examined<D>> = Vec::new();
    let mut omitted = Vec::new();
    let (others, last) = match settings.kinds.split_last() {
        Some((&last, others)) => (others, last),
        None => (&[][..], GraphKind::TsgReduced),
    };
    for (place, &kind) in others.iter().chain([&last]).enumerate() {
        let is_last = place == others.len();
        if !is_last && accesses_count(ctp) > ACCESSES_MAX {
            omitted.push(kind);
            continue;
        }
        let graph = build(ctp, kind, &settings.graph);
        let fits = visits_count(&graph) <= settings.visits_max
            && places_count(&graph) <= PLACES_MAX / 4
            && goes_on();
        let mut propagation = settings.propagation_on(&graph);
        if !goes_on() {
            propagation.rounds_max = 0;
        }
        let values = (is_last || fits).then(|| propagate::<D>(ctp, &graph, &propagation));
        let bits = values.as_ref().map(|values| Bits::new(ctp, &graph, values));
        graphs.push(Examined { graph, values, bits });
    }
    let best = graphs.last().and_then(|examined| examined.values.as_ref());
    let answers = answers(ctp, best.expect("values are propagated on the last graph"));
    Ok(Analysis { graphs, omitted, answers })
}

/// How many runs of transactions it takes to propagate values on `graph`, at most.
fn visits_count(graph: &Graph) -> u64 {
    let edges = graph.switches.len() + graph.orders.len() + graph.transactions.len();
    (edges as u64).saturating_mul(graph.transaction_edges_count() as u64)
}

/// How many nodes are looked at, in all rounds together, at most.
fn places_count(graph: &Graph) -> u64 {
    (graph.nodes.len() as u64).saturating_mul(graph.transaction_edges_count() as u64)
}

fn pairs_count(ctp: &Ctp) -> u64 {
    let points = || ctp.threads.ids().map(|thread| ctp.points_of(thread).count() as u64);
    let same: u64 = points().map(|count| count.pow(2)).sum();
    points().sum::<u64>().saturating_pow(2).saturating_sub(same) / 2
}

fn accesses_count(ctp: &Ctp) -> u64 {
    ctp.steps.iter().filter(|step| step.action != crate::ctp::Action::Local).count() as u64
}
