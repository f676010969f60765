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
use reweave_base::{FxHashMap, Id, IndexVec, bits};
use reweave_trace::ThreadId;

use crate::ctp::Ctp;
use crate::domain::Domain;
use crate::graph::NodeId;
use crate::propagate::code::{Code, Columns, Compiler, Scratch, Seen};
use crate::propagate::plain::{PlaceId, Shape};
use crate::propagate::{Row, Settings, StepValues, Values, final_values};
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

// Rows of columns with what changed in them, and joins of neighbouring rows.
//
// A set of changed columns has a bit more, after the last column: the row, or one of the rows that
// are joined, came to be or ceased to be.

/// Rows of columns, some of which are not there.
struct Table<D> {
    width: usize,
    words: usize,
    values: Vec<D>,
    has: Vec<bool>,
    changed: Vec<u64>,
}

impl<D: Domain> Table<D> {
    /// `count` rows, none of which is there.
    fn new(width: usize, count: usize) -> Self {
        let words = bits::words(width + 1);
        Self {
            width,
            words,
            values: vec![D::TOP; width * count],
            has: vec![false; count],
            changed: vec![0; words * count],
        }
    }

    /// How many columns there are.
    const fn width(&self) -> usize {
        self.width
    }

    fn is_empty(&self) -> bool {
        !self.has.contains(&true)
    }

    #[inline]
    fn has(&self, index: usize) -> bool {
        self.has[index]
    }

    #[inline]
    fn row(&self, index: usize) -> Option<&[D]> {
        self.has[index].then(|| &self.values[index * self.width..(index + 1) * self.width])
    }

    /// The columns that changed since the rows were last settled.
    #[inline]
    fn changed(&self, index: usize) -> &[u64] {
        &self.changed[index * self.words..(index + 1) * self.words]
    }

    /// Forgets what changed.
    fn settle(&mut self) {
        self.changed.fill(0);
    }

    /// Makes `row` the row at `index`.
    fn set(&mut self, index: usize, row: &[D]) {
        self.values[index * self.width..(index + 1) * self.width].clone_from_slice(row);
        self.has[index] = true;
        bits::fill(&mut self.changed[index * self.words..(index + 1) * self.words], self.width + 1);
    }

    /// Adds `columns` of `row` to the row at `index`.
    fn join(&mut self, index: usize, row: &[D], columns: &[u64]) {
        if !self.has[index] {
            self.set(index, row);
            return;
        }
        let values = &mut self.values[index * self.width..(index + 1) * self.width];
        let changed = &mut self.changed[index * self.words..(index + 1) * self.words];
        for column in bits::below(columns, self.width) {
            let mut joined = values[column].clone();
            joined.join(&row[column]);
            if values[column] != joined {
                values[column] = joined;
                bits::insert(changed, column);
            }
        }
    }

    /// Makes the row at `index` the join of `rows`, of which only `columns` can differ from it.
    /// Returns whether there is a difference.
    fn replace<'a>(
        &mut self,
        index: usize,
        rows: impl Iterator<Item = &'a [D]> + Clone,
        columns: &[u64],
    ) -> bool {
        let had = self.has[index];
        self.has[index] = rows.clone().next().is_some();
        let values = &mut self.values[index * self.width..(index + 1) * self.width];
        let changed = &mut self.changed[index * self.words..(index + 1) * self.words];
        for column in bits::below(columns, self.width) {
            let Some(value) = join_all(rows.clone().map(|row| &row[column])) else { break };
            if values[column] != value {
                values[column] = value;
                bits::insert(changed, column);
            }
        }
        if had != self.has[index] {
            bits::fill(changed, self.width + 1);
        }
        !bits::is_empty(changed)
    }
}

/// The join of all `values`; none if there are none.
#[inline]
fn join_all<'a, D: Domain>(mut values: impl Iterator<Item = &'a D>) -> Option<D> {
    let mut joined = values.next()?.clone();
    values.for_each(|value| joined.join(value));
    Some(joined)
}

/// Makes `columns` of `joined` the join of all `rows`, of which there is one at least. The other
/// columns must be that join already, so that they may be computed too where that is quicker.
#[inline]
fn join_columns<'a, D: Domain>(
    joined: &mut [D],
    columns: &[usize],
    mut rows: impl Iterator<Item = &'a [D]>,
) {
    let Some(first) = rows.next() else { return };
    if columns.len() * 2 >= joined.len() {
        joined.clone_from_slice(first);
        for row in rows {
            joined.iter_mut().zip(row).for_each(|(value, other)| value.join(other));
        }
        return;
    }
    for &column in columns {
        joined[column] = first[column].clone();
    }
    for row in rows {
        for &column in columns {
            joined[column].join(&row[column]);
        }
    }
}

/// Neighbouring rows that pass to some nodes together.
struct Bundle<D> {
    members: Range<usize>,
    /// The join of those that are there.
    joined: Vec<D>,
    before: Vec<D>,
    columns: Vec<usize>,
    has: bool,
    /// How many are there.
    count: u64,
    /// Where the join differs from the round before.
    changed: Vec<u64>,
    /// Where some member does.
    touched: Vec<u64>,
}

impl<D: Domain> Bundle<D> {
    fn new(members: Range<usize>, width: usize) -> Self {
        let none = vec![0; bits::words(width + 1)];
        let joined = vec![D::TOP; width];
        Self {
            members,
            before: joined.clone(),
            joined,
            columns: Vec::new(),
            has: false,
            count: 0,
            changed: none.clone(),
            touched: none,
        }
    }

    /// Takes up what changed in `sources`, and says how much work that was.
    fn update(&mut self, sources: &Table<D>) -> u64 {
        let width = sources.width;
        self.touched.fill(0);
        self.changed.fill(0);
        for member in self.members.clone() {
            bits::unite(&mut self.touched, sources.changed(member));
        }
        if bits::is_empty(&self.touched) {
            return 0;
        }
        let had = self.has;
        self.count = self.members.clone().filter(|&member| sources.has(member)).count() as u64;
        self.has = self.count > 0;
        self.columns.clear();
        self.columns.extend(bits::below(&self.touched, width));
        for &column in &self.columns {
            self.before[column] = self.joined[column].clone();
        }
        let rows = self.members.clone().filter_map(|member| sources.row(member));
        join_columns(&mut self.joined, &self.columns, rows);
        for &column in &self.columns {
            if self.joined[column] != self.before[column] {
                bits::insert(&mut self.changed, column);
            }
        }
        if bits::has(&self.touched, width) {
            bits::insert(&mut self.changed, width);
        }
        if self.has != had {
            bits::fill(&mut self.changed, width + 1);
        }
        self.count * self.columns.len() as u64
    }
}

// A node as a place to go on from: what comes in by switches, and what its transaction makes of it.

/// What all targets look at.
struct View<'a, D> {
    terms: &'a Terms,
    sources: &'a Table<D>,
    /// What threads brought to nodes, if locals are not carried along.
    own: Option<&'a Table<D>>,
    bundles: &'a [Bundle<D>],
}

/// A node.
struct Target<D> {
    intake: Intake<D>,
    task: Option<Task<D>>,
}

/// What the processor brings to a node.
struct Intake<D> {
    node: usize,
    bundles: Vec<u32>,
    /// The columns that are not brought, since they are the thread's own.
    owned: Vec<u64>,
    columns: Vec<usize>,
    /// The join of what is brought.
    row: Vec<D>,
    has: bool,
    /// Where that may differ from the round before.
    changed: Vec<u64>,
}

impl<D: Domain> Target<D> {
    /// Takes up what changed, and says how much work that was.
    fn update(&mut self, view: &View<'_, D>, scratch: &mut Scratch<D>) -> u64 {
        let work = self.intake.update(view);
        work + self.task.as_mut().map_or(0, |task| task.update(&self.intake, view, scratch))
    }

    /// How many times the transaction is run in a round.
    fn visits(&self, view: &View<'_, D>) -> u64 {
        let Some(_) = self.task else { return 0 };
        let here = u64::from(view.sources.has(self.intake.node));
        here + self.intake.active(view).map(|bundle| bundle.count).sum::<u64>()
    }
}

impl<D: Domain> Intake<D> {
    fn new(node: usize, bundles: Vec<u32>, owned: Vec<u64>, width: usize) -> Self {
        let changed = vec![0; owned.len()];
        let row = vec![D::TOP; width];
        Self { node, bundles, owned, columns: Vec::new(), row, has: false, changed }
    }

    /// The bundles whose values can be gone on with.
    #[inline]
    fn active<'v>(&'v self, view: &'v View<'_, D>) -> impl Iterator<Item = &'v Bundle<D>> {
        let is_known = view.own.is_none_or(|own| own.has(self.node));
        let bundles = if is_known { self.bundles.as_slice() } else { &[] };
        bundles.iter().map(|&bundle| &view.bundles[bundle as usize])
    }

    /// The locals that the thread goes on with, if they are not carried along.
    #[inline]
    fn own<'v>(&self, view: &View<'v, D>) -> Option<&'v [D]> {
        view.own.and_then(|own| own.row(self.node))
    }

    fn update(&mut self, view: &View<'_, D>) -> u64 {
        let width = view.sources.width();
        let mut changed = std::mem::take(&mut self.changed);
        changed.fill(0);
        for bundle in self.active(view) {
            bits::unite(&mut changed, &bundle.changed);
        }
        if let Some(own) = view.own {
            let own = own.changed(self.node);
            for ((changed, owned), own) in changed.iter_mut().zip(&self.owned).zip(own) {
                *changed = (*changed & !owned) | (own & owned);
            }
            if bits::has(own, width) {
                bits::fill(&mut changed, width + 1);
            }
        }
        let has = self.active(view).any(|bundle| bundle.has);
        if has != self.has {
            self.has = has;
            bits::fill(&mut changed, width + 1);
        }
        self.changed = changed;
        if has { self.join(view) } else { 0 }
    }

    /// Joins what is brought, in the columns that changed.
    fn join(&mut self, view: &View<'_, D>) -> u64 {
        let mut row = std::mem::take(&mut self.row);
        let mut columns = std::mem::take(&mut self.columns);
        columns.clear();
        columns.extend(bits::below(&self.changed, row.len()));
        let present = self.active(view).filter(|bundle| bundle.has);
        join_columns(&mut row, &columns, present.map(|bundle| bundle.joined.as_slice()));
        if let Some(own) = self.own(view) {
            for column in bits::members(&self.owned) {
                row[column] = own[column].clone();
            }
        }
        let work = columns.len() * self.bundles.len();
        (self.row, self.columns) = (row, columns);
        work as u64
    }
}

/// A transaction, with what it came to in the last round.
struct Task<D> {
    code: Code<D>,
    seen: Seen<D>,
    ends: Vec<End<D>>,
    /// The columns that make a difference to the code; and whether a source is there at all.
    inputs: Vec<u64>,
    /// The columns that it does not look at.
    rest: Vec<u64>,
    /// The row that the code runs on.
    start: Vec<D>,
    /// The rows that it ran on in this round.
    memo: Memo<D>,
    columns: Vec<usize>,
}

/// What a transaction brings to one place.
struct End<D> {
    row: Vec<D>,
    has: bool,
    /// Columns that may differ from the round before.
    changed: Vec<u64>,
    had: bool,
    /// Which sources come to it: the node itself, then members of bundles in order.
    passed: Vec<u64>,
    passed_before: Vec<u64>,
    /// Whether every source that is there comes to it.
    is_full: bool,
    was_full: bool,
    /// The join of what the code came to.
    footprint: Vec<D>,
}

impl<D: Domain> End<D> {
    fn new(width: usize, sources_count: usize, footprint: &[D]) -> Self {
        let passed = vec![0; bits::words(sources_count)];
        Self {
            row: vec![D::TOP; width],
            has: false,
            changed: vec![0; bits::words(width + 1)],
            had: false,
            passed_before: passed.clone(),
            passed,
            is_full: false,
            was_full: false,
            footprint: footprint.to_vec(),
        }
    }

    /// Forgets the last round's sources.
    fn restart(&mut self) {
        std::mem::swap(&mut self.passed, &mut self.passed_before);
        self.passed.fill(0);
        self.has = false;
        self.is_full = true;
    }

    /// Adds what a run came to.
    #[inline]
    fn join(&mut self, footprint: &[D]) {
        if self.has {
            let values = self.footprint.iter_mut().zip(footprint);
            values.for_each(|(value, other)| value.join(other));
        } else {
            self.footprint.clone_from_slice(footprint);
            self.has = true;
        }
    }
}

impl<D: Domain> Task<D> {
    /// `sources_count` counts the node itself too.
    fn new(code: Code<D>, sources_count: usize, width: usize) -> Self {
        let mut inputs = vec![0; bits::words(width + 1)];
        let mut rest = inputs.clone();
        bits::fill(&mut rest, width);
        bits::insert(&mut inputs, width);
        for cell in &code.footprint {
            let Some(column) = cell.column.map(|column| column as usize) else { continue };
            bits::remove(&mut rest, column);
            if cell.is_input {
                bits::insert(&mut inputs, column);
            }
        }
        let start: Vec<D> = code.footprint.iter().map(|cell| cell.initial.clone()).collect();
        let sources_count = if code.is_total { 0 } else { sources_count };
        let ends = code.outputs.iter().map(|_| End::new(width, sources_count, &start)).collect();
        let memo = Memo::new(start.len(), code.outputs.len());
        let seen = code.unseen();
        Self { code, seen, ends, inputs, rest, start, memo, columns: Vec::new() }
    }

    fn update(&mut self, intake: &Intake<D>, view: &View<'_, D>, scratch: &mut Scratch<D>) -> u64 {
        let here = view.sources.changed(intake.node);
        let own = view.own.map(|own| own.changed(intake.node));
        let mut is_touched = !bits::is_empty(here) || !bits::is_empty(&intake.changed);
        let mut runs = bits::meet(here, &self.inputs);
        runs |= own.is_some_and(|own| bits::meet(own, &self.inputs));
        for bundle in intake.active(view) {
            is_touched |= !bits::is_empty(&bundle.touched);
            runs |= bits::meet(&bundle.touched, &self.inputs);
        }
        for end in &mut self.ends {
            end.changed.fill(0);
            end.had = end.has;
            end.was_full = end.is_full;
        }
        let mut work = 0;
        if runs {
            work += self.run_all(intake, view, scratch);
        }
        if runs || is_touched {
            for index in 0..self.ends.len() {
                work += self.update_end(index, runs, intake, view);
            }
        }
        work
    }

    /// Runs the code for each source.
    fn run_all(&mut self, intake: &Intake<D>, view: &View<'_, D>, scratch: &mut Scratch<D>) -> u64 {
        self.ends.iter_mut().for_each(End::restart);
        self.memo.clear();
        let mut work = 0;
        if let Some(row) = view.sources.row(intake.node) {
            self.gather(row, None, intake);
            self.run(0, view.terms, scratch);
            work += 1;
        }
        let own = intake.own(view);
        let mut first = 1;
        for bundle in intake.active(view) {
            for (source, member) in (first..).zip(bundle.members.clone()) {
                let Some(row) = view.sources.row(member) else { continue };
                self.gather(row, own, intake);
                self.run(source, view.terms, scratch);
                work += 1;
            }
            first += bundle.members.len();
        }
        work * (1 + self.start.len() as u64)
    }

    /// Takes the footprint from a source's `row` and, if the thread has its own locals, those.
    #[inline]
    fn gather(&mut self, row: &[D], own: Option<&[D]>, intake: &Intake<D>) {
        for (value, cell) in self.start.iter_mut().zip(&self.code.footprint) {
            let (Some(column), true) = (cell.column, cell.is_input) else { continue };
            let column = column as usize;
            *value = match own {
                Some(own) if bits::has(&intake.owned, column) => own[column].clone(),
                _ => row[column].clone(),
            };
        }
    }

    /// Runs the code on what was gathered from `source`.
    #[inline]
    fn run(&mut self, source: usize, terms: &Terms, scratch: &mut Scratch<D>) {
        let (place, is_known) = self.memo.place(&self.start);
        if !is_known {
            self.code.run(terms, &self.start, scratch, &mut self.seen);
            for (index, end) in self.ends.iter_mut().enumerate() {
                let Some(footprint) = self.code.end(index, scratch) else {
                    end.is_full = false;
                    continue;
                };
                end.join(footprint);
                self.memo.note(place, index);
            }
        }
        if self.code.is_total {
            return;
        }
        for (index, end) in self.ends.iter_mut().enumerate() {
            if self.memo.passes(place, index) {
                bits::insert(&mut end.passed, source);
            }
        }
    }

    /// Computes again what may have changed of the end at `index`.
    fn update_end(
        &mut self,
        index: usize,
        ran: bool,
        intake: &Intake<D>,
        view: &View<'_, D>,
    ) -> u64 {
        let width = view.sources.width();
        let end = &mut self.ends[index];
        let is_other = end.has != end.had || (ran && end.passed != end.passed_before);
        if is_other {
            bits::fill(&mut end.changed, width + 1);
        }
        if !end.has {
            return 0;
        }
        let here = view.sources.changed(intake.node);
        if !is_other {
            bits::unite(&mut end.changed, here);
            bits::unite(&mut end.changed, &intake.changed);
            if !(end.is_full && end.was_full) {
                for bundle in intake.active(view) {
                    bits::unite(&mut end.changed, &bundle.touched);
                }
            }
        }
        self.columns.clear();
        let rest = |&column: &usize| bits::has(&self.rest, column);
        self.columns.extend(bits::below(&end.changed, width).filter(rest));
        // The footprint was joined while the code ran; elsewhere nothing of it changes.
        for (cell, value) in self.code.footprint.iter().zip(&end.footprint) {
            let Some(column) = cell.column.map(|column| column as usize) else { continue };
            if end.has != end.had || end.row[column] != *value {
                end.row[column] = value.clone();
                bits::insert(&mut end.changed, column);
            } else {
                bits::remove(&mut end.changed, column);
            }
        }
        if end.is_full {
            let here = view.sources.row(intake.node);
            for &column in &self.columns {
                let brought = intake.has.then(|| &intake.row[column]);
                let values = here.map(|row| &row[column]).into_iter().chain(brought);
                end.row[column] = join_all(values).expect("some source comes to the end");
            }
            return self.columns.len() as u64;
        }
        join_passed(end, &self.columns, intake, view)
    }
}

/// Joins `columns` of the sources that come to `end`.
fn join_passed<D: Domain>(
    end: &mut End<D>,
    columns: &[usize],
    intake: &Intake<D>,
    view: &View<'_, D>,
) -> u64 {
    let mut is_first = true;
    let mut joins = 0;
    let mut join = |row: &[D], own: Option<&[D]>| {
        for &column in columns {
            let value = match own {
                Some(own) if bits::has(&intake.owned, column) => &own[column],
                _ => &row[column],
            };
            if is_first {
                end.row[column] = value.clone();
            } else {
                end.row[column].join(value);
            }
        }
        is_first = false;
        joins += columns.len() as u64;
    };
    if bits::has(&end.passed, 0) {
        join(view.sources.row(intake.node).expect("a source that passed is there"), None);
    }
    let own = intake.own(view);
    let mut first = 1;
    for bundle in intake.active(view) {
        let sources = first..first + bundle.members.len();
        first = sources.end;
        let passed = sources.clone().filter(|&source| bits::has(&end.passed, source)).count();
        if passed as u64 == bundle.count {
            if bundle.has {
                join(&bundle.joined, own);
            }
            continue;
        }
        for (source, member) in sources.zip(bundle.members.clone()) {
            if bits::has(&end.passed, source) {
                join(view.sources.row(member).expect("a source that passed is there"), own);
            }
        }
    }
    joins
}

// The rows that a transaction's code ran on in one round, and which ends it came to from each.
//
// Many sources bring the same few values, and equal rows need to run once only. A row is looked
// for at one index of a small table, a hash of its bounds; what is not found there is
// run again, which costs time and changes nothing.

const PLACES: usize = 256;

struct Memo<D> {
    width: usize,
    /// For each place whether it holds a row of this round, the row, and the ends that the code
    /// comes to from it.
    is_used: Vec<bool>,
    rows: Vec<D>,
    passes: Vec<u64>,
    words: usize,
    used: Vec<u32>,
}

impl<D: Domain> Memo<D> {
    /// For rows of `width` values and code of `ends_count` ends.
    fn new(width: usize, ends_count: usize) -> Self {
        let words = bits::words(ends_count);
        Self {
            width,
            is_used: vec![false; PLACES],
            rows: vec![D::TOP; width * PLACES],
            passes: vec![0; words * PLACES],
            words,
            used: Vec::new(),
        }
    }

    /// Forgets all rows.
    fn clear(&mut self) {
        for place in self.used.drain(..) {
            self.is_used[place as usize] = false;
        }
    }

    /// The place of `row`, and whether it was there; otherwise it is now.
    #[inline]
    fn place(&mut self, row: &[D]) -> (usize, bool) {
        let place = place_of(row);
        let held = &mut self.rows[place * self.width..(place + 1) * self.width];
        if self.is_used[place] {
            if held == row {
                return (place, true);
            }
        } else {
            self.is_used[place] = true;
            self.used.push(place as u32);
        }
        held.clone_from_slice(row);
        self.passes[place * self.words..(place + 1) * self.words].fill(0);
        (place, false)
    }

    /// Notes that the code comes to `end` from the row at `place`.
    #[inline]
    fn note(&mut self, place: usize, end: usize) {
        bits::insert(&mut self.passes[place * self.words..(place + 1) * self.words], end);
    }

    /// Whether the code comes to `end` from the row at `place`.
    #[inline]
    fn passes(&self, place: usize, end: usize) -> bool {
        bits::has(&self.passes[place * self.words..(place + 1) * self.words], end)
    }
}

/// Where a row is looked for. Bounds are equal where values are, which is all that is needed.
#[inline]
fn place_of<D: Domain>(row: &[D]) -> usize {
    let mut hash = 0_u64;
    for value in row {
        let (low, high) = value.bounds();
        let mixed = (low as u64).rotate_left(32) ^ high as u64;
        hash = (hash.rotate_left(5) ^ mixed).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    (hash >> 56) as usize % PLACES
}
