//! All interfering writes of a read, by the write list of each thread.

use std::ops::Range;

use reweave_base::{Id, IndexVec};
use reweave_trace::{ThreadId, VarId};

use super::component::CHOICES_MAX;
use super::evaluate::{Chain, Evaluation, Workspace};
use super::graph::Point;
use super::overlay::{ClosedGraph, Incomplete, Outcome, Overlay, WitnessGraph, Work, has, lower};
use crate::accesses::Accesses;
use crate::verdicts::{Phases, Verdicts};

/// The writes of every variable as positions in their threads.
#[derive(Debug)]
pub(super) struct Writes {
    positions: Vec<u32>,
    lists: IndexVec<VarId, Vec<(ThreadId, Range<u32>)>>,
}

impl Writes {
    pub(super) fn new(accesses: &Accesses<'_>) -> Self {
        let trace = accesses.trace();
        let mut positions = Vec::new();
        let mut lists = IndexVec::new();
        for var in (0..trace.names().vars.len()).map(VarId::from_index) {
            let mut own = Vec::new();
            for list in accesses.lists(var) {
                let start = positions.len() as u32;
                positions.extend(accesses.writes(list).iter().map(|&id| trace.position(id)));
                own.push((list.thread, start..positions.len() as u32));
            }
            lists.push(own);
        }
        Self { positions, lists }
    }

    /// How many events write `var`.
    pub(super) fn count(&self, var: VarId) -> u64 {
        self.lists[var].iter().map(|(_, range)| u64::from(range.end - range.start)).sum()
    }

    /// The write lists of `var`.
    fn lists(&self, var: VarId) -> impl Iterator<Item = WriteList<'_>> {
        self.lists[var].iter().enumerate().map(|(index, (thread, range))| WriteList {
            index: index as u32,
            thread: *thread,
            positions: &self.positions[range.start as usize..range.end as usize],
        })
    }
}

/// The writes of a variable by one thread.
#[derive(Clone, Copy, Debug)]
struct WriteList<'a> {
    index: u32,
    thread: ThreadId,
    positions: &'a [u32],
}

impl WriteList<'_> {
    /// How many of its first writes come before what `cut` has of its thread.
    fn count_in(&self, cut: &[u32]) -> u32 {
        let until = cut[self.thread.index()];
        self.positions.partition_point(|&position| position < until) as u32
    }

    /// Its writes that are in neither cut: `before` of what comes first, and what comes `after`.
    fn range(&self, before: &[u32], after: &[u32]) -> Range<u32> {
        let start = self.count_in(before);
        start..self.count_in(after).max(start)
    }

    /// Which of its writes `point` is.
    fn find(&self, point: Point) -> Option<u32> {
        let at = self.positions.binary_search(&point.position).ok()?;
        (point.thread == self.thread).then_some(at as u32)
    }

    fn write(&self, at: u32) -> Point {
        Point { thread: self.thread, position: self.positions[at as usize] }
    }
}

/// The verdicts on one kind of witness of a read, and how they were found.
#[derive(Debug)]
pub(super) struct Results<'a> {
    pub(super) verdicts: &'a mut Verdicts,
    pub(super) phases: Phases,
}

impl<'a> Results<'a> {
    pub(super) fn new(verdicts: &'a mut Verdicts) -> Self {
        *verdicts = Verdicts::default();
        Self { verdicts, phases: Phases::default() }
    }

    /// How the phases decided all of `interfering_count`: what is not known otherwise is infeasible
    /// in the first.
    pub(super) fn finish(mut self, interfering_count: u64) -> Phases {
        let Phases { feasible, with_choices, .. } = self.phases;
        let unknown = self.verdicts.unknown.count();
        self.phases.infeasible = interfering_count - feasible - with_choices - unknown;
        self.phases
    }

    /// Records that a whole `range` of `list` is feasible, without choices.
    fn record_feasible(&mut self, list: &WriteList<'_>, range: Range<u32>) {
        self.phases.feasible += u64::from(range.end - range.start);
        self.verdicts.feasible.push(list.index, range);
    }

    /// Records the same evaluation for each write of a `range` of `list`.
    fn record(&mut self, list: &WriteList<'_>, range: Range<u32>, evaluation: Evaluation) {
        self.count(evaluation, u64::from(range.end - range.start));
        if evaluation.is_feasible {
            self.verdicts.feasible.push(list.index, range);
        }
    }

    /// Counts so many witnesses of which the same is known.
    fn count(&mut self, evaluation: Evaluation, times: u64) {
        let Evaluation { choices_count, is_feasible, explored } = evaluation;
        if choices_count == 0 {
            self.phases.feasible += times;
            return;
        }
        let graphs = if choices_count < CHOICES_MAX {
            (1_u64 << choices_count).saturating_mul(times)
        } else {
            u64::MAX * times.min(1)
        };
        self.phases.with_choices += times;
        self.phases.feasible_with_choices += if is_feasible { times } else { 0 };
        self.phases.possible_graphs = self.phases.possible_graphs.saturating_add(graphs);
        self.phases.explored_graphs += explored.saturating_mul(times);
    }

    /// Records that no witness with an interfering write is known, which neither of `others` is.
    pub(super) fn record_unknown(
        &mut self,
        writes: &Writes,
        var: VarId,
        others: [Option<Point>; 2],
    ) {
        for list in writes.lists(var) {
            let mut start = 0;
            let mut cuts = others.map(|other| other.and_then(|other| list.find(other)));
            cuts.sort_unstable();
            for at in cuts.into_iter().flatten() {
                self.verdicts.unknown.push(list.index, start..at);
                start = at + 1;
            }
            self.verdicts.unknown.push(list.index, start..list.positions.len() as u32);
        }
    }
}

/// What all interfering writes of a read share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The graph that has the read before its writer, and nothing else of a witness.
    start: Overlay,
    /// What comes before the writer, or before the read.
    before: Vec<u32>,
    /// What comes after the read.
    after: Vec<u32>,
    /// What the read can reach in the contracted graph.
    from_read: Vec<u32>,
    /// What can reach the writer.
    to_writer: Vec<u32>,
    /// What is known of interfering writes, one after the other.
    evaluated: Vec<Option<Evaluation>>,
}

impl Shared {
    pub(super) fn new(threads_count: usize) -> Self {
        Self {
            start: Overlay::default(),
            before: vec![0; threads_count],
            after: vec![0; threads_count],
            from_read: vec![0; threads_count],
            to_writer: vec![0; threads_count],
            evaluated: Vec::new(),
        }
    }
}

/// What is known of a read before its writer.
#[derive(Clone, Copy, Debug)]
struct Alone {
    /// With no interfering write.
    own: Evaluation,
    /// With one that comes before the read anyway, and that the read can reach.
    reached: Evaluation,
}

/// One kind of witness of one read, and what it takes to decide it.
#[derive(Debug)]
pub(super) struct ReadCase<'a> {
    pub(super) closed: ClosedGraph<'a>,
    pub(super) writes: &'a Writes,
    pub(super) var: VarId,
    pub(super) workspace: &'a mut Workspace,
    pub(super) shared: &'a mut Shared,
    pub(super) results: Results<'a>,
    pub(super) work: &'a mut Work,
}

/// Kind 1: the interfering write, the read, the writer. The closed graph is without their
/// reads-from edge.
impl<'a> ReadCase<'a> {
    /// Decides all interfering writes of `read`, which saw `writer`.
    pub(super) fn decide_writer_after(mut self, writer: Point, read: Point) -> Results<'a> {
        let (writes, var) = (self.writes, self.var);
        let chain = Chain { first: None, middle: read, last: Some(writer) };
        match self.share_read(writer, read) {
            Ok(()) => {}
            Err(Incomplete::Cycle) => return self.results,
            Err(Incomplete::Budget) => {
                self.results.verdicts.unknown.initial = true;
                for list in writes.lists(var) {
                    let count = list.count_in(&self.shared.after);
                    self.results.verdicts.unknown.push(list.index, 0..count);
                }
                return self.results;
            }
        }
        let alone = self.evaluate_alone(&chain);
        match alone {
            Some(Alone { own, .. }) => {
                self.results.count(own, 1);
                self.results.verdicts.feasible.initial = own.is_feasible;
            }
            None => self.results.verdicts.unknown.initial = true,
        }
        for list in writes.lists(var) {
            self.decide_list_before(&list, &chain, alone);
        }
        self.results
    }

    /// Builds the graph that all interfering writes share.
    fn share_read(&mut self, writer: Point, read: Point) -> Outcome {
        let Shared { start, before, after, .. } = &mut *self.shared;
        let (closed, work) = (self.closed, &mut *self.work);
        // Until more is known, no write that comes after either is a candidate.
        closed.after(read, after);
        closed.after(writer, before);
        lower(after, before);
        start.clear();
        start.add(closed, (read, writer), work)?;
        let graph = WitnessGraph { closed, overlay: start };
        graph.after(read, after);
        graph.before(read, before);
        Ok(())
    }

    /// Evaluates the read before its writer, with no interfering write, and those that come before
    /// the read anyway; none if the budget ended.
    fn evaluate_alone(&mut self, chain: &Chain) -> Option<Alone> {
        let (closed, shared) = (self.closed, &mut *self.shared);
        self.workspace.overlay.clone_from(&shared.start);
        let own = self.workspace.evaluate(closed, chain, false, self.work).ok()?;
        if own.choices_count > 0 {
            shared.from_read.fill(0);
            // Their graph is the same, and so is its component.
            let explored = if own.is_feasible { 1 } else { own.explored };
            return Some(Alone { own, reached: Evaluation { explored, ..own } });
        }
        // Only the read can make a component with an interfering write, and it has one with all
        // that it reaches.
        shared.from_read.copy_from_slice(&self.workspace.later.bounds);
        let is_reached = |list: WriteList<'_>| {
            let inside = list.count_in(&shared.before).min(list.count_in(&shared.after));
            inside > list.count_in(&shared.from_read)
        };
        let mut reached = Evaluation { explored: 1, ..own };
        if self.writes.lists(self.var).any(is_reached) {
            reached.choices_count =
                self.workspace.count_around(closed, &shared.start, self.work).ok()?;
        }
        Some(Alone { own, reached })
    }

    /// Decides the interfering writes of `list` that come before the read of `alone`.
    fn decide_list_before(&mut self, list: &WriteList<'_>, chain: &Chain, alone: Option<Alone>) {
        let Shared { before, after, from_read, .. } = &*self.shared;
        let candidates = list.count_in(after);
        // A write that comes before the read anyway adds nothing to the graph.
        let inside = list.count_in(before).min(candidates);
        let unreached = list.count_in(from_read);
        match alone {
            Some(Alone { reached, .. }) => {
                let settled = unreached.min(inside);
                self.results.record_feasible(list, 0..settled);
                self.results.record(list, settled..inside, reached);
            }
            None => self.results.verdicts.unknown.push(list.index, 0..inside),
        }
        let Ok(acyclic) = self.count_acyclic(list, inside..candidates, chain.middle) else {
            self.results.verdicts.unknown.push(list.index, inside..candidates);
            return;
        };
        let settled = match alone {
            Some(_) => unreached.clamp(inside, acyclic),
            None => inside,
        };
        self.results.record_feasible(list, inside..settled);
        self.evaluate_down(list, settled..acyclic, chain);
        for at in settled..acyclic {
            match self.shared.evaluated.pop().flatten() {
                Some(evaluation) => self.results.record(list, at..at + 1, evaluation),
                None => self.results.verdicts.unknown.push(list.index, at..at + 1),
            }
        }
    }

    /// Evaluates the interfering writes of `range` from the last one down: what is feasible for one
    /// is so for all before it.
    fn evaluate_down(&mut self, list: &WriteList<'_>, range: Range<u32>, chain: &Chain) {
        self.shared.evaluated.clear();
        let mut is_known = false;
        for at in range.rev() {
            let chain = Chain { first: Some(list.write(at)), ..*chain };
            let evaluation = self
                .set_before(&chain)
                .and_then(|()| self.workspace.evaluate(self.closed, &chain, is_known, self.work));
            is_known |= evaluation.is_ok_and(|evaluation| evaluation.is_feasible);
            self.shared.evaluated.push(evaluation.ok());
        }
    }

    /// Where the interfering writes of `list` end that have a graph without a cycle: those before
    /// the `candidates` have one.
    fn count_acyclic(
        &mut self,
        list: &WriteList<'_>,
        candidates: Range<u32>,
        read: Point,
    ) -> Outcome<u32> {
        let (mut from, mut to) = (candidates.start, candidates.end);
        // The last one first: often they all have.
        let mut at = to.saturating_sub(1);
        while from < to {
            let chain = Chain { first: Some(list.write(at)), middle: read, last: None };
            match self.set_before(&chain) {
                Ok(()) => from = at + 1,
                Err(Incomplete::Cycle) => to = at,
                Err(Incomplete::Budget) => return Err(Incomplete::Budget),
            }
            at = from.midpoint(to);
        }
        Ok(from)
    }

    /// Builds the graph of an interfering write before the read, from that of the read before its
    /// writer.
    fn set_before(&mut self, chain: &Chain) -> Outcome {
        self.workspace.overlay.clone_from(&self.shared.start);
        let Some(interfering) = chain.first else { return Ok(()) };
        self.workspace.overlay.add(self.closed, (interfering, chain.middle), self.work)
    }
}

/// A writer and the read that saw it; none is an initial value, or the end of the run.
pub(super) type Ends = (Option<Point>, Option<Point>);

/// Kind 2: the writer, the interfering write, the read.
impl<'a> ReadCase<'a> {
    /// Decides all interfering writes of the read.
    pub(super) fn decide_between(mut self, ends: Ends) -> Results<'a> {
        let (writes, var) = (self.writes, self.var);
        let is_shared = self.share_ends(ends);
        for list in writes.lists(var) {
            let candidates = list.range(&self.shared.before, &self.shared.after);
            if is_shared.is_err() {
                self.results.verdicts.unknown.push(list.index, candidates);
            } else {
                self.decide_list_between(&list, candidates, ends);
            }
        }
        self.results
    }

    /// Works out what all interfering writes share: what comes before the writer and after the
    /// read, what the read reaches and what reaches the writer, nothing being added.
    fn share_ends(&mut self, (writer, read): Ends) -> Outcome {
        let Shared { before, after, from_read, to_writer, .. } = &mut *self.shared;
        let (closed, graph, work) = (self.closed, self.closed.graph, &mut *self.work);
        match writer {
            Some(writer) => closed.before(writer, before),
            None => before.fill(0),
        }
        match read {
            Some(read) => closed.after(read, after),
            None => graph.whole(after),
        }
        let candidates = self.writes.lists(self.var).map(|list| list.range(before, after).len());
        let steps_max = (STEPS_EACH * candidates.sum::<usize>()).min(STEPS_MAX);
        let Workspace { overlay, later, earlier, .. } = &mut *self.workspace;
        overlay.clear();
        let alone = WitnessGraph { closed, overlay };
        graph.whole(from_read);
        if let Some(read) = read {
            later.start(graph, read);
            // What is not known in so many steps may be all.
            if later.go(alone, steps_max, work)? {
                from_read.copy_from_slice(&later.bounds);
            } else {
                from_read.fill(0);
            }
        }
        to_writer.fill(0);
        if let Some(writer) = writer {
            earlier.start(graph, writer);
            if earlier.go(alone, steps_max, work)? {
                to_writer.copy_from_slice(&earlier.bounds);
            } else {
                graph.whole(to_writer);
            }
        }
        Ok(())
    }

    fn decide_list_between(&mut self, list: &WriteList<'_>, candidates: Range<u32>, ends: Ends) {
        let Range { start, end } = candidates;
        let Shared { from_read, to_writer, .. } = &*self.shared;
        // Those that can reach the writer come first, those that the read can reach last.
        let is_looped = ends.0.is_some_and(|writer| !has(from_read, writer));
        let first = if is_looped { end } else { list.count_in(to_writer).clamp(start, end) };
        let last = list.count_in(from_read).clamp(first, end);
        let mut result = self.decide_each(list, start..first, ends);
        result = result.and_then(|()| self.decide_blocks(list, first..last, ends));
        result = result.and_then(|()| self.decide_each(list, last..end, ends));
        if let Err(at) = result {
            self.results.verdicts.unknown.push(list.index, at..end);
        }
    }

    /// Decides interfering writes one at a time; where the budget ended, if it did.
    fn decide_each(
        &mut self,
        list: &WriteList<'_>,
        range: Range<u32>,
        (writer, read): Ends,
    ) -> Result<(), u32> {
        for at in range {
            let chain = Chain { first: writer, middle: list.write(at), last: read };
            let evaluation = self
                .workspace
                .set(self.closed, &chain, self.work)
                .and_then(|()| self.workspace.evaluate(self.closed, &chain, false, self.work));
            match evaluation {
                Ok(evaluation) => self.results.record(list, at..at + 1, evaluation),
                Err(Incomplete::Cycle) => {}
                Err(Incomplete::Budget) if self.work.0 == 0 => return Err(at),
                Err(Incomplete::Budget) => {
                    self.results.verdicts.unknown.push(list.index, at..at + 1);
                }
            }
        }
        Ok(())
    }

    /// Decides interfering writes that leave nothing to choose: whole blocks at a time, halved
    /// where they do not fit; where the budget ended, if it did.
    fn decide_blocks(
        &mut self,
        list: &WriteList<'_>,
        range: Range<u32>,
        (writer, read): Ends,
    ) -> Result<(), u32> {
        let mut blocks = Vec::from_iter((!range.is_empty()).then_some(range));
        while let Some(block) = blocks.pop() {
            let chain = Chain { first: writer, middle: list.write(block.start), last: None };
            let added = self.workspace.set(self.closed, &chain, self.work).and_then(|()| {
                let Some(read) = read else { return Ok(()) };
                let last = list.write(block.end - 1);
                self.workspace.overlay.add(self.closed, (last, read), self.work)
            });
            match added {
                Ok(()) => self.results.record_feasible(list, block),
                Err(Incomplete::Cycle) if block.len() == 1 => {}
                Err(Incomplete::Cycle) => {
                    let middle = block.start.midpoint(block.end);
                    blocks.push(middle..block.end);
                    blocks.push(block.start..middle);
                }
                Err(Incomplete::Budget) => return Err(block.start),
            }
        }
        Ok(())
    }
}

/// How many steps of reachability are computed for all interfering writes at once: so many for each
/// of them, and at most. If more are needed, each is evaluated by itself.
const STEPS_EACH: usize = 2;
const STEPS_MAX: usize = 256;
