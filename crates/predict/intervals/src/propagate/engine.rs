//! The fast propagation: rounds in which only what changed is computed again.
//!
//! Values are kept by column, that is for slots that something assigns to. Of columns outside the
//! footprint of a node's transaction only the join of what comes in matters; for the footprint the
//! code is run for each source, but once for equal rows that follow each other. Neighbouring
//! sources are bundled: their join is taken once for all nodes that they pass to.
//!
//! Each part has a set of columns in which it may differ from the round before. What depends on
//! none of these is as it was, so that a round costs as much as there is news in it.

use std::ops::Range;

use rayon::prelude::*;
use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::ThreadId;

use super::code::{Columns, Compiler, Scratch};
use super::plain::{PlaceId, Shape};
use super::table::{Bundle, Table};
use super::target::{End, Intake, Target, Task, View};
use super::values::{Row, StepValues, Values};
use super::{Settings, bits, final_values};
use crate::ctp::Ctp;
use crate::domain::Domain;
use crate::graph::NodeId;
use crate::terms::Terms;

/// What may happen, where locals are carried along by switches or are each thread's own.
pub(super) fn propagate<D: Domain>(
    ctp: &Ctp,
    shape: &Shape<'_>,
    settings: &Settings,
    is_own: bool,
) -> Values<D> {
    let mut engine = Engine::new(ctp, shape, is_own);
    let mut work = 0;
    while engine.rounds < shape.rounds && !engine.sources.is_empty() {
        if engine.rounds >= settings.rounds_max || work > settings.work_max {
            return Values::unknown(ctp, shape.graph);
        }
        let is_shared = engine.last_work >= settings.shared_work_min;
        if !engine.round(is_shared) {
            break;
        }
        work += engine.last_work;
    }
    engine.values(ctp, shape)
}

struct Engine<D> {
    columns: Columns,
    terms: Terms,
    sources: Table<D>,
    at: Table<D>,
    own: Option<Table<D>>,
    bundles: Vec<Bundle<D>>,
    targets: Vec<Target<D>>,
    /// For each place the ends that lead to it: the node and which of its ends.
    incoming: IndexVec<PlaceId, Vec<(u32, u32)>>,
    rounds: u64,
    visits: u64,
    last_work: u64,
}

impl<D: Domain> Engine<D> {
    fn new(ctp: &Ctp, shape: &Shape<'_>, is_own: bool) -> Self {
        let columns = Columns::new(ctp);
        let width = columns.slots.len();
        let nodes_count = shape.graph.nodes.len();
        let initial: Vec<D> =
            columns.slots.iter().map(|&slot| D::constant(ctp.initial[slot])).collect();
        let mut sources = Table::new(width, shape.places_count());
        let mut at = Table::new(width, nodes_count);
        for root in &shape.graph.roots {
            sources.set(root.index(), &initial);
            at.set(root.index(), &initial);
        }
        let own = is_own.then(|| {
            let mut own = Table::new(width, nodes_count);
            for entry in shape.entries.iter().flatten() {
                own.set(entry.index(), &initial);
            }
            own
        });
        let mut compiler = Compiler::new(ctp, &columns);
        let (bundles, members) = bundles(shape, width);
        let mut incoming = IndexVec::from_elem(Vec::new(), shape.places_count());
        let mut targets = Vec::with_capacity(nodes_count);
        for (node, bundled) in members.entries() {
            let length = |&bundle: &u32| bundles[bundle as usize].members.len();
            let sources_count = 1 + bundled.iter().map(length).sum::<usize>();
            let task = shape.transactions[node].map(|transaction| {
                Task::new(compiler.code(shape, transaction), sources_count, width)
            });
            for (end, output) in task.iter().flat_map(|task| task.code.outputs.iter().enumerate()) {
                incoming[output.place].push((node.index() as u32, end as u32));
            }
            let owned = owned(&columns, shape.graph.nodes[node].thread, is_own);
            let intake = Intake::new(node.index(), bundled.clone(), owned, width);
            targets.push(Target { intake, task });
        }
        let terms = compiler.terms;
        let (rounds, visits, last_work) = (0, 0, 0);
        Self {
            columns,
            terms,
            sources,
            at,
            own,
            bundles,
            targets,
            incoming,
            rounds,
            visits,
            last_work,
        }
    }

    /// Goes one round on; returns whether it differs from the one before.
    fn round(&mut self, is_shared: bool) -> bool {
        let sources = &self.sources;
        self.last_work = if is_shared {
            self.bundles.par_iter_mut().map(|bundle| bundle.update(sources)).sum()
        } else {
            self.bundles.iter_mut().map(|bundle| bundle.update(sources)).sum()
        };
        let view =
            View { terms: &self.terms, sources, own: self.own.as_ref(), bundles: &self.bundles };
        self.last_work += if is_shared {
            let targets = self.targets.par_iter_mut();
            targets.map_init(Scratch::new, |scratch, target| target.update(&view, scratch)).sum()
        } else {
            let mut scratch = Scratch::new();
            let targets = self.targets.iter_mut();
            targets.map(|target| target.update(&view, &mut scratch)).sum::<u64>()
        };
        self.visits += self.targets.iter().map(|target| target.visits(&view)).sum::<u64>();
        self.rounds += 1;
        self.take_over()
    }

    /// Makes what transactions came to the sources of the next round.
    fn take_over(&mut self) -> bool {
        for (node, target) in self.targets.iter().enumerate() {
            if target.intake.has {
                self.at.join(node, &target.intake.row, &target.intake.changed);
            }
        }
        self.sources.settle();
        if let Some(own) = &mut self.own {
            own.settle();
        }
        let mut is_changed = false;
        let mut changed = vec![0; bits::words(self.sources.width() + 1)];
        for (place, incoming) in self.incoming.entries() {
            let index = place.index();
            let ends =
                || incoming.iter().filter_map(|&(node, end)| self.targets[node as usize].end(end));
            changed.fill(0);
            ends().for_each(|end| bits::unite(&mut changed, &end.changed));
            if incoming.is_empty() && self.sources.has(index) {
                bits::fill(&mut changed, self.sources.width() + 1);
            }
            if bits::is_empty(&changed) {
                continue;
            }
            let rows = ends().filter(|end| end.has).map(|end| end.row.as_slice());
            is_changed |= self.sources.replace(index, rows, &changed);
            if let (Some(row), true) = (self.sources.row(index), index < self.targets.len()) {
                let changed = self.sources.changed(index);
                self.at.join(index, row, changed);
                if let Some(own) = &mut self.own {
                    own.join(index, row, changed);
                }
            }
        }
        is_changed
    }

    fn values(self, ctp: &Ctp, shape: &Shape<'_>) -> Values<D> {
        let mut steps = IndexVec::from_elem(StepValues::never(), ctp.steps.len());
        let mut leaves = IndexVec::from_elem(false, ctp.leaving.len());
        for task in self.targets.iter().filter_map(|target| target.task.as_ref()) {
            for (&step, seen) in task.code.steps.iter().zip(&task.seen.steps) {
                steps[step].join(seen);
            }
            for (&point, seen) in task.code.points.iter().zip(&task.seen.leaves) {
                leaves[point] |= seen;
            }
        }
        let row = |node: usize| {
            let mut row: Row<D> = super::plain::initial(ctp);
            for (slot, value) in self.columns.slots.iter().zip(self.at.row(node)?) {
                row[*slot] = value.clone();
            }
            Some(row)
        };
        let at: IndexVec<NodeId, Option<Row<D>>> = (0..self.targets.len()).map(row).collect();
        Values {
            final_values: final_values(ctp, shape.graph, &at),
            at,
            steps,
            leaves,
            rounds: self.rounds,
            visits: self.visits,
            lookahead: 1,
            exhausted: false,
        }
    }
}

impl<D> Target<D> {
    fn end(&self, end: u32) -> Option<&End<D>> {
        self.task.as_ref().and_then(|task| task.ends.get(end as usize))
    }
}

/// The columns that are locals of `thread`, if those are not carried along.
fn owned(columns: &Columns, thread: ThreadId, is_own: bool) -> Vec<u64> {
    let mut owned = vec![0; bits::words(columns.slots.len() + 1)];
    for (column, owner) in columns.owners.iter().enumerate() {
        if is_own && *owner == Some(thread) {
            bits::insert(&mut owned, column);
        }
    }
    owned
}

/// Runs of neighbouring places that pass to a node, each once, and for each node its own.
fn bundles<D: Domain>(
    shape: &Shape<'_>,
    width: usize,
) -> (Vec<Bundle<D>>, IndexVec<NodeId, Vec<u32>>) {
    let mut bundles = Vec::new();
    let mut numbers: FxHashMap<Range<usize>, u32> = FxHashMap::default();
    let mut sources =
        IndexVec::<NodeId, Vec<PlaceId>>::from_elem(Vec::new(), shape.graph.nodes.len());
    for (place, targets) in shape.switches.entries() {
        for &target in targets {
            sources[target].push(place);
        }
    }
    let follows = |first: &PlaceId, second: &PlaceId| {
        let thread = |place: PlaceId| shape.node(place).map(|node| shape.graph.nodes[node].thread);
        second.index() == first.index() + 1 && thread(*first) == thread(*second)
    };
    let members = sources.iter().map(|sources| {
        let runs = sources.chunk_by(follows);
        let number = |run: &[PlaceId]| {
            let members = run[0].index()..run[0].index() + run.len();
            *numbers.entry(members.clone()).or_insert_with(|| {
                bundles.push(Bundle::new(members, width));
                bundles.len() as u32 - 1
            })
        };
        runs.map(number).collect()
    });
    let members = members.collect();
    (bundles, members)
}
