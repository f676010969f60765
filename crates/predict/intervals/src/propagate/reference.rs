//! Propagation as it is defined, to compare the fast one with.
//!
//! In each round every place that was reached in the round before passes its store to the
//! transaction of its own node and to those that the processor can switch to; what these end with
//! is where the next round starts. There are as many rounds as an interleaving can have
//! transactions. Every store is kept whole and every edge is run each time: rounds × edges × slots.
//!
//! Source: M. Ganai, C. Wang, "Interval analysis for concurrent trace programs using transaction
//! sequence graphs", 2010, procedure RPT; stops and transactions that branch are additions.

use reweave_base::IndexVec;

use super::plain::{PlaceId, Record, Shape, initial, join_row, place_of, with_own};
use super::{Mode, final_values};
use crate::ctp::{Ctp, Point};
use crate::domain::Domain;
use crate::graph::{Graph, NodeId};
use crate::propagate::{Row, Values, meet_row};

/// Everything that propagation goes through.
#[derive(Clone, Debug)]
pub struct Outcome<D> {
    /// What is known in the end.
    pub values: Values<D>,
    /// For each point the stores with which steps came there.
    pub after: IndexVec<Point, Option<Row<D>>>,
    /// What nodes hold at the start, and then for each round what is brought to them in it, by
    /// switches or by transactions; of the first mode, if both ran.
    pub rounds: Vec<IndexVec<NodeId, Option<Row<D>>>>,
}

/// What may happen in the interleavings of `ctp` that `graph` stands for.
#[must_use]
pub fn propagate<D: Domain>(ctp: &Ctp, graph: &Graph, mode: Mode) -> Outcome<D> {
    let shape = Shape::new(ctp, graph);
    match mode {
        Mode::Copy => one_mode(ctp, &shape, false),
        Mode::Own => one_mode(ctp, &shape, true),
        Mode::Both => {
            let (copy, own) = (one_mode(ctp, &shape, false), one_mode(ctp, &shape, true));
            let after = copy.after.iter().zip(own.after.iter());
            let meet = |(left, right): (&Option<Row<D>>, &Option<Row<D>>)| {
                left.as_ref().zip(right.as_ref()).and_then(|(left, right)| meet_row(left, right))
            };
            Outcome {
                values: copy.values.meet(&own.values),
                after: after.map(meet).collect(),
                rounds: copy.rounds,
            }
        }
    }
}

fn one_mode<D: Domain>(ctp: &Ctp, shape: &Shape<'_>, is_own: bool) -> Outcome<D> {
    let mut record = Record::new(ctp);
    let mut sources = IndexVec::<PlaceId, Option<Row<D>>>::from_elem(None, shape.places_count());
    for &root in &shape.graph.roots {
        sources[place_of(root)] = Some(initial(ctp));
    }
    let nodes = |rows: &IndexVec<PlaceId, Option<Row<D>>>| -> IndexVec<NodeId, Option<Row<D>>> {
        rows.iter().take(shape.graph.nodes.len()).cloned().collect()
    };
    let mut at = nodes(&sources);
    let mut own = at.clone();
    for &entry in shape.entries.iter().flatten() {
        own[entry] = Some(initial(ctp));
    }
    let mut rounds = vec![nodes(&sources)];
    for _ in 0..shape.rounds {
        if sources.iter().all(Option::is_none) {
            break;
        }
        let mut brought = IndexVec::from_elem(None, shape.graph.nodes.len());
        let own_rows = is_own.then_some(&own);
        let next = one_round(ctp, shape, &sources, own_rows, &mut brought, &mut record);
        for (node, next) in nodes(&next).entries() {
            if let Some(next) = next {
                join_row(&mut brought[node], next);
                join_row(&mut own[node], next);
            }
            if let Some(brought) = &brought[node] {
                join_row(&mut at[node], brought);
            }
        }
        rounds.push(brought);
        let repeats = next == sources;
        sources = next;
        if repeats {
            break;
        }
    }
    let values = Values {
        final_values: final_values(ctp, shape.graph, &at),
        at,
        steps: record.steps,
        leaves: record.leaves,
        rounds: rounds.len() as u64 - 1,
        visits: record.visits,
        lookahead: 1,
        exhausted: false,
    };
    Outcome { values, after: record.after, rounds }
}

fn one_round<D: Domain>(
    ctp: &Ctp,
    shape: &Shape<'_>,
    sources: &IndexVec<PlaceId, Option<Row<D>>>,
    own: Option<&IndexVec<NodeId, Option<Row<D>>>>,
    brought: &mut IndexVec<NodeId, Option<Row<D>>>,
    record: &mut Record<D>,
) -> IndexVec<PlaceId, Option<Row<D>>> {
    let mut next = IndexVec::from_elem(None, shape.places_count());
    for (place, source) in sources.entries() {
        let Some(source) = source else { continue };
        let here = shape.node(place).map(|node| (node, source.clone()));
        let mut starts: Vec<(NodeId, Row<D>)> = here.into_iter().collect();
        for &target in &shape.switches[place] {
            let thread = shape.graph.nodes[target].thread;
            let row = match own {
                None => source.clone(),
                Some(own) => match &own[target] {
                    None => continue,
                    Some(own) => with_own(ctp, thread, source, own),
                },
            };
            join_row(&mut brought[target], &row);
            starts.push((target, row));
        }
        for (node, row) in starts {
            let Some(transaction) = shape.transactions[node] else { continue };
            for (place, row) in record.run(ctp, shape, transaction, row) {
                join_row(&mut next[place], &row);
            }
        }
    }
    next
}
