//! Running one transaction on one store, as the definition says: step by step, on whole stores.
//!
//! Where ways of a thread meet inside a transaction, their stores are joined. A thread that cannot
//! go on, since all guards are false or a divisor is zero, comes to the stop of that point.

use std::collections::BTreeMap;

use reweave_base::{Id, IndexVec};
use reweave_trace::ThreadId;

use crate::ctp::{Action, Ctp, Owner, Point, Step, StepId};
use crate::domain::Domain;
use crate::evaluate;
use crate::graph::{Graph, NodeId, Transaction};
use crate::propagate::{Asserted, Row, StepValues, join_option, slots_of, terms_of};
use crate::terms::TermId;

reweave_base::id! {
    /// Where values rest between two rounds: the nodes first, then the stops.
    pub(crate) struct PlaceId;
}

/// A graph, seen from its places.
pub(crate) struct Shape<'a> {
    /// The graph.
    pub(crate) graph: &'a Graph,
    /// For each node its transaction.
    pub(crate) transactions: IndexVec<NodeId, Option<&'a Transaction>>,
    /// For each place where the processor can pass to from it, in order.
    pub(crate) switches: IndexVec<PlaceId, Vec<NodeId>>,
    /// For each thread the node of its entry.
    pub(crate) entries: IndexVec<ThreadId, Option<NodeId>>,
    /// For each stop whose it is.
    stopped: Vec<ThreadId>,
    /// For each point its stop.
    pub(crate) stops: IndexVec<Point, Option<PlaceId>>,
    /// How many transactions an interleaving has at most.
    pub(crate) rounds: u64,
}

impl<'a> Shape<'a> {
    pub(crate) fn new(ctp: &Ctp, graph: &'a Graph) -> Self {
        let nodes_count = graph.nodes.len();
        let mut transactions = IndexVec::from_elem(None, nodes_count);
        for transaction in &graph.transactions {
            transactions[transaction.from] = Some(transaction);
        }
        let mut switches = IndexVec::from_elem(Vec::new(), nodes_count + graph.stops.len());
        for &(from, to) in graph.switches.iter().chain(&graph.orders) {
            switches[PlaceId::from_index(from.index())].push(to);
        }
        let mut stops = IndexVec::from_elem(None, ctp.leaving.len());
        for (index, stop) in graph.stops.iter().enumerate() {
            let place = PlaceId::from_index(nodes_count + index);
            switches[place].extend(&stop.targets);
            stops[stop.point] = Some(place);
        }
        let stopped = graph.stops.iter().map(|stop| thread_of(ctp, stop.point)).collect();
        for targets in switches.iter_mut() {
            targets.sort_unstable();
            targets.dedup();
        }
        let mut entries = IndexVec::from_elem(None, ctp.threads.len());
        for (id, node) in graph.nodes.entries() {
            if node.point == ctp.threads[node.thread].points.start {
                entries[node.thread] = Some(id);
            }
        }
        let rounds = rounds(ctp, graph, &transactions);
        Self { graph, transactions, switches, entries, stopped, stops, rounds }
    }

    pub(crate) fn places_count(&self) -> usize {
        self.switches.len()
    }

    /// The thread that stops at `place`, which is a stop.
    pub(crate) fn stopped(&self, place: PlaceId) -> ThreadId {
        self.stopped[place.index() - self.graph.nodes.len()]
    }

    /// The node that `place` is, unless it is a stop.
    pub(crate) fn node(&self, place: PlaceId) -> Option<NodeId> {
        (place.index() < self.graph.nodes.len()).then(|| NodeId::from_index(place.index()))
    }
}

/// The thread that `point` belongs to.
fn thread_of(ctp: &Ctp, point: Point) -> ThreadId {
    let mut threads = ctp.threads.entries();
    let found = threads.find(|(_, thread)| thread.points.contains(&point));
    found.expect("every point is a thread's").0
}

/// The longest chain of transactions of each thread, added up.
fn rounds(ctp: &Ctp, graph: &Graph, transactions: &IndexVec<NodeId, Option<&Transaction>>) -> u64 {
    let mut chains = IndexVec::<NodeId, u64>::from_elem(0, graph.nodes.len());
    let mut longest = IndexVec::<ThreadId, u64>::from_elem(0, ctp.threads.len());
    for (node, transaction) in transactions.entries().rev() {
        let Some(transaction) = transaction else { continue };
        let after = transaction.exits.iter().map(|&exit| chains[exit]).max();
        chains[node] = 1 + after.unwrap_or(0);
        let longest = &mut longest[graph.nodes[node].thread];
        *longest = (*longest).max(chains[node]);
    }
    longest.iter().sum()
}

/// The place that `node` is.
pub(crate) fn place_of(node: NodeId) -> PlaceId {
    PlaceId::from_index(node.index())
}

/// What every slot holds at the start.
pub(crate) fn initial<D: Domain>(ctp: &Ctp) -> Row<D> {
    ctp.initial.iter().map(|&value| D::constant(value)).collect()
}

/// What `row` becomes for a thread that goes on: its locals are those of `own`.
pub(crate) fn with_own<D: Domain>(
    ctp: &Ctp,
    thread: ThreadId,
    row: &Row<D>,
    own: &Row<D>,
) -> Row<D> {
    let slots = ctp.slots.entries();
    slots
        .map(|(slot, owner)| match owner {
            Owner::Local(of, _) if *of == thread => own[slot].clone(),
            Owner::Local(..) | Owner::Shared(_) => row[slot].clone(),
        })
        .collect()
}

/// Adds the stores of `other`, if there are any.
pub(crate) fn join_row<D: Domain>(row: &mut Option<Row<D>>, other: &Row<D>) {
    match row {
        None => *row = Some(other.clone()),
        Some(row) => {
            for (value, other) in row.iter_mut().zip(other.iter()) {
                value.join(other);
            }
        }
    }
}

/// What is seen while transactions run.
pub(crate) struct Record<D> {
    pub(crate) steps: IndexVec<StepId, StepValues<D>>,
    pub(crate) leaves: IndexVec<Point, bool>,
    /// For each point the join of the stores with which steps came there.
    pub(crate) after: IndexVec<Point, Option<Row<D>>>,
    pub(crate) visits: u64,
}

impl<D: Domain> Record<D> {
    pub(crate) fn new(ctp: &Ctp) -> Self {
        Self {
            steps: IndexVec::from_elem(StepValues::never(), ctp.steps.len()),
            leaves: IndexVec::from_elem(false, ctp.leaving.len()),
            after: IndexVec::from_elem(None, ctp.leaving.len()),
            visits: 0,
        }
    }

    /// Runs `transaction` on `store`, and gives the stores with which its thread comes to places,
    /// in the order of places.
    pub(crate) fn run(
        &mut self,
        ctp: &Ctp,
        shape: &Shape<'_>,
        transaction: &Transaction,
        store: Row<D>,
    ) -> BTreeMap<PlaceId, Row<D>> {
        self.visits += 1;
        let mut reached = BTreeMap::new();
        let mut stores = BTreeMap::from([(shape.graph.nodes[transaction.from].point, store)]);
        let mut seen = None;
        for &id in &transaction.steps {
            let step = &ctp.steps[id];
            let Some(store) = stores.get(&step.from).cloned() else { continue };
            if seen != Some(step.from) {
                seen = Some(step.from);
                let stuck = stuck(ctp, step.from, &store);
                self.leaves[step.from] |= stuck.leaves;
                if let Some((place, store)) = shape.stops[step.from].zip(stuck.store) {
                    reached.insert(place, store);
                }
            }
            let Some(store) = take(ctp, step, store, &mut self.steps[id]) else { continue };
            join_row(&mut self.after[step.to], &store);
            let mut joined = stores.remove(&step.to);
            join_row(&mut joined, &store);
            stores.extend(joined.map(|joined| (step.to, joined)));
        }
        for &exit in &transaction.exits {
            if let Some(store) = stores.remove(&shape.graph.nodes[exit].point) {
                reached.insert(place_of(exit), store);
            }
        }
        reached
    }
}

/// How a thread may fail to go on from a point.
struct Stuck<D> {
    /// Whether all guards may be false.
    leaves: bool,
    /// The stores with which it stays there.
    store: Option<Row<D>>,
}

fn stuck<D: Domain>(ctp: &Ctp, point: Point, store: &Row<D>) -> Stuck<D> {
    let mut refined = store.clone();
    let mut faults = false;
    let mut leaves = true;
    for (_, step) in ctp.steps_from(point) {
        let mut taken = store.clone();
        let mut is_taken = true;
        leaves &= step.guard.is_some();
        if let Some(guard) = step.guard {
            faults |= may_fault(ctp, guard, store);
            leaves = leaves && assume(ctp, guard, false, &mut refined);
            is_taken = assume(ctp, guard, true, &mut taken);
        }
        let computed = terms_of(step).skip(usize::from(step.guard.is_some()));
        faults |= is_taken && computed.into_iter().any(|term| may_fault(ctp, term, &taken));
    }
    let store = if faults { Some(store.clone()) } else { leaves.then_some(refined) };
    Stuck { leaves, store }
}

/// The store after `step`; none if it cannot be taken or never ends.
fn take<D: Domain>(
    ctp: &Ctp,
    step: &Step,
    mut store: Row<D>,
    seen: &mut StepValues<D>,
) -> Option<Row<D>> {
    if let Some(guard) = step.guard {
        watch(ctp, guard, &store, seen);
        if !assume(ctp, guard, true, &mut store) {
            return None;
        }
    }
    seen.reached = true;
    if let Action::Read(var) | Action::Update(var) = step.action {
        join_option(&mut seen.read, Some(&store[ctp.shared(var)]));
    }
    if let Some(assertion) = step.assertion {
        watch(ctp, assertion, &store, seen);
        seen.note_assertion(asserted(ctp, assertion, &store)?);
    }
    let mut values = [None, None];
    for (value, assigned) in values.iter_mut().zip([step.store, step.define]) {
        let Some((slot, term)) = assigned else { continue };
        watch(ctp, term, &store, seen);
        *value = Some((slot, evaluate::value(&ctp.terms, term, &|slot| store[slot].clone())?));
    }
    let [stored, defined] = &values;
    join_option(&mut seen.stored, stored.as_ref().map(|(_, value)| value));
    join_option(&mut seen.defined, defined.as_ref().map(|(_, value)| value));
    for (slot, value) in values.into_iter().flatten() {
        store[slot] = value;
    }
    Some(store)
}

/// What `assertion` comes to in `store`; none if it always divides by zero.
fn asserted<D: Domain>(ctp: &Ctp, assertion: TermId, store: &Row<D>) -> Option<Asserted<D>> {
    let truth = evaluate::value(&ctp.terms, assertion, &|slot| store[slot].clone())?;
    let mut refined = store.clone();
    let fails = truth.contains(0) && assume(ctp, assertion, false, &mut refined);
    let slots = || slots_of(ctp, assertion).into_iter();
    let failing = fails.then(|| slots().map(|slot| (slot, refined[slot].clone())).collect());
    Some(Asserted { truth, failing })
}

/// Notes what may go wrong when `term` is computed.
fn watch<D: Domain>(ctp: &Ctp, term: TermId, store: &Row<D>, seen: &mut StepValues<D>) {
    seen.may_fault |= may_fault(ctp, term, store);
    seen.may_overflow |= evaluate::may_overflow(&ctp.terms, term, &|slot| store[slot].clone());
}

fn may_fault<D: Domain>(ctp: &Ctp, term: TermId, store: &Row<D>) -> bool {
    evaluate::may_fault(&ctp.terms, term, &|slot| store[slot].clone())
}

fn assume<D: Domain>(ctp: &Ctp, term: TermId, truth: bool, store: &mut Row<D>) -> bool {
    evaluate::assume(&ctp.terms, term, truth, store.as_mut_vec().as_mut_slice())
}
