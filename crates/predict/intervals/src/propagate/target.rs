//! A node as a place to go on from: what comes in by switches, and what its transaction makes of it.

use super::bits;
use super::code::{Code, Scratch, Seen};
use super::memo::Memo;
use super::table::{Bundle, Table, join_all, join_columns};
use crate::domain::Domain;
use crate::terms::Terms;

/// What all targets look at.
pub(super) struct View<'a, D> {
    pub(super) terms: &'a Terms,
    pub(super) sources: &'a Table<D>,
    /// What threads brought to nodes, if locals are not carried along.
    pub(super) own: Option<&'a Table<D>>,
    pub(super) bundles: &'a [Bundle<D>],
}

/// A node.
pub(super) struct Target<D> {
    pub(super) intake: Intake<D>,
    pub(super) task: Option<Task<D>>,
}

/// What the processor brings to a node.
pub(super) struct Intake<D> {
    node: usize,
    bundles: Vec<u32>,
    /// The columns that are not brought, since they are the thread's own.
    owned: Vec<u64>,
    columns: Vec<usize>,
    /// The join of what is brought.
    pub(super) row: Vec<D>,
    pub(super) has: bool,
    /// Where that may differ from the round before.
    pub(super) changed: Vec<u64>,
}

impl<D: Domain> Target<D> {
    /// Takes up what changed, and says how much work that was.
    pub(super) fn update(&mut self, view: &View<'_, D>, scratch: &mut Scratch<D>) -> u64 {
        let work = self.intake.update(view);
        work + self.task.as_mut().map_or(0, |task| task.update(&self.intake, view, scratch))
    }

    /// How many times the transaction is run in a round.
    pub(super) fn visits(&self, view: &View<'_, D>) -> u64 {
        let Some(_) = self.task else { return 0 };
        let here = u64::from(view.sources.has(self.intake.node));
        here + self.intake.active(view).map(|bundle| bundle.count).sum::<u64>()
    }
}

impl<D: Domain> Intake<D> {
    pub(super) fn new(node: usize, bundles: Vec<u32>, owned: Vec<u64>, width: usize) -> Self {
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
pub(super) struct Task<D> {
    pub(super) code: Code<D>,
    pub(super) seen: Seen<D>,
    pub(super) ends: Vec<End<D>>,
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
pub(super) struct End<D> {
    pub(super) row: Vec<D>,
    pub(super) has: bool,
    /// Columns that may differ from the round before.
    pub(super) changed: Vec<u64>,
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
    pub(super) fn new(code: Code<D>, sources_count: usize, width: usize) -> Self {
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
        let mut runs = bits::meets(here, &self.inputs);
        runs |= own.is_some_and(|own| bits::meets(own, &self.inputs));
        for bundle in intake.active(view) {
            is_touched |= !bits::is_empty(&bundle.touched);
            runs |= bits::meets(&bundle.touched, &self.inputs);
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
