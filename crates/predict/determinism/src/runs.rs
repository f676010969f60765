//! Modes `prefix` and `strict`, and kind 3 of `order`: is there a correct reordering with this
//! witness?
//!
//! A reordering that shows a witness of kind 2 or 3 still shows it when it is cut off right after
//! the read. So there the read comes last, its thread stops, and `prefix` and `strict` are the same:
//!
//! - kind 3: the interfering write happens, the writer does not, and the read is next;
//! - kind 2: the writer happens, then the interfering write, and the read is next.
//!
//! Of kind 1 in `strict` nothing happens in the read's thread after the read, so read and writer
//! can both wait until the end: the interfering write happens, and the two are next at once. In `prefix`
//! the thread may go on, most often to release a lock that the writer takes; that is asked in full
//! where the stricter question has no answer.
//!
//! Each is a query to the engine, and most often few are asked of a read. What its thread needs to
//! get to the read refutes kinds 1 and 3 for all interfering writes if it includes the writer. Of kinds 1
//! and 3 a run serves the earlier writes of the interfering write's thread too, so a search in halves finds
//! the last feasible one. Of kind 2 weaker questions narrow the interfering writes down, and
//! those that are left are asked in blocks, a block being feasible if its first comes after the
//! writer and its last before the read: in the worst case a query for each interfering write.
//! Every run that is found answers for all interfering writes that it runs.
//!
//! In `prefix`, the queries of kind 1 in full need to know what needs what if the read may see
//! anything, which takes a pass over the trace for each read that has any.

use std::ops::Range;

use reweave_base::{Id, IndexVec};
use reweave_order::mhb::MustHappenBefore;
use reweave_reorder::{Answer, Query, Solver, View};
use reweave_trace::{EventId, Reordering, ThreadId, Trace, VarId};

use crate::accesses::{Accesses, ReadsFrom};
use crate::verdicts::{ReadVerdicts, Verdicts};
use crate::witness::Mode;

/// After how many feasible blocks a longer one is tried at the latest.
const PATIENCE_MAX: u32 = 64;

/// Decides the witnesses of one read after the other. Each worker has its own.
#[derive(Debug)]
pub(crate) struct Runs<'a, 't> {
    accesses: &'a Accesses<'t>,
    solver: Solver<'a, 't>,
    needs: &'a MustHappenBefore<'t>,
    mode: Mode,
    /// Work that is left for the read at hand.
    work_left: u64,
}

/// A read of the trace and the write that it saw.
#[derive(Clone, Copy, Debug)]
struct Edge {
    var: VarId,
    read: EventId,
    writer: Option<EventId>,
}

impl<'a, 't> Runs<'a, 't> {
    pub(crate) fn new(accesses: &'a Accesses<'t>, solver: Solver<'a, 't>, mode: Mode) -> Self {
        let needs = solver.engine().mhb();
        Self { accesses, solver, needs, mode, work_left: 0 }
    }

    /// Decides all witnesses of `edge`, in mode `order` those of kind 3 only, within about `work`
    /// steps; gives the work that was done.
    pub(crate) fn decide(
        &mut self,
        edge: &ReadsFrom,
        work: u64,
        verdicts: &mut ReadVerdicts,
    ) -> u64 {
        self.work_left = work;
        self.solver.forget();
        let ReadsFrom { var, read, writer } = *edge;
        let [after, between, absent] = &mut verdicts.kinds;
        if let Some(read) = read {
            let edge = &Edge { var, read, writer };
            if let Some(writer) = writer {
                self.decide_absent(edge, writer, absent);
            }
            if self.mode != Mode::Order {
                if let Some(writer) = writer {
                    self.decide_after(edge, writer, absent, after);
                }
                self.decide_between(edge, between);
            }
        } else if let Some(writer) = writer.filter(|_| self.mode != Mode::Order) {
            self.decide_final(var, writer, between);
        }
        work - self.work_left
    }

    /// Kind 2 for the implicit read of `var` at the end of the run, which saw `writer`.
    ///
    /// All events happen, and all reads see what they saw. What comes after the writer is easier the
    /// later it is in its thread.
    fn decide_final(&mut self, var: VarId, writer: EventId, verdicts: &mut Verdicts) {
        let trace = self.trace();
        let all = self.accesses.last_events();
        for (at, list) in (0..).zip(self.accesses.lists(var)) {
            let writes = self.accesses.writes(list);
            let needed = self.needs.past(writer).get(list.thread);
            let mut low = writes.partition_point(|&write| trace.position(write) < needed);
            let (mut high, mut is_known) = (writes.len(), true);
            while low < high {
                let probe = low + (high - low) / 2;
                let order = vec![(writer, writes[probe])];
                match self.ask(&Query { must: all.clone(), order, ..Query::default() }) {
                    Answer::Feasible(_) => high = probe,
                    Answer::Infeasible(_) => low = probe + 1,
                    Answer::Unknown => {
                        is_known = false;
                        break;
                    }
                }
            }
            verdicts.feasible.push(at, high as u32..writes.len() as u32);
            if !is_known {
                verdicts.unknown.push(at, low as u32..high as u32);
            }
        }
    }

    fn trace(&self) -> &'t Trace {
        self.accesses.trace()
    }

    fn ask(&mut self, query: &Query) -> Answer {
        if self.work_left == 0 {
            return Answer::Unknown;
        }
        self.solver.limit(self.work_left);
        let answer = self.solver.solve(query);
        self.work_left = self.work_left.saturating_sub(self.solver.take_work());
        answer
    }

    /// Whether `late` needs `early`.
    fn is_needed(&self, early: EventId, late: EventId) -> bool {
        let thread = self.trace().event(early).thread;
        self.needs.past(late).get(thread) > self.trace().position(early)
    }

    /// How many of `writes`, which are one thread's, can happen before `event`.
    fn count_without(&self, writes: &[EventId], event: EventId) -> u32 {
        writes.partition_point(|&write| !self.is_needed(event, write)) as u32
    }

    /// Kind 3.
    fn decide_absent(&mut self, edge: &Edge, writer: EventId, verdicts: &mut Verdicts) {
        let trace = self.trace();
        let before = self.needs.before(edge.read);
        if before.get(trace.event(writer).thread) > trace.position(writer) {
            return;
        }
        let lists = self.accesses.lists(edge.var).iter();
        let limits: Vec<u32> = lists
            .map(|list| {
                let writes = self.accesses.writes(list);
                self.count_without(writes, edge.read).min(self.count_without(writes, writer))
            })
            .collect();
        let relaxed = self.mode == Mode::Order;
        self.decide_earlier(edge, &limits, verdicts, |runs, interfering| {
            runs.ask(&Query {
                must: interfering.into_iter().collect(),
                absent: vec![writer],
                enabled: vec![edge.read],
                relaxed,
                ..Query::default()
            })
        });
    }

    /// Kind 1: what shows it also shows kind 3, if it is cut off before the writer.
    fn decide_after(
        &mut self,
        edge: &Edge,
        writer: EventId,
        absent: &Verdicts,
        verdicts: &mut Verdicts,
    ) {
        if !absent.feasible.initial && !absent.unknown.initial {
            return;
        }
        let mut limits = vec![0; self.accesses.lists(edge.var).len()];
        for (list, range) in absent.feasible.ranges.iter().chain(&absent.unknown.ranges) {
            limits[*list as usize] = limits[*list as usize].max(range.end);
        }
        self.decide_earlier(edge, &limits, verdicts, |runs, interfering| {
            runs.ask_after(edge.read, writer, interfering)
        });
    }

    fn ask_after(
        &mut self,
        read: EventId,
        writer: EventId,
        interfering: Option<EventId>,
    ) -> Answer {
        // A writer that reads must find what it saw, so that it matters where the read stands.
        if !self.trace().event(writer).op.is_read() {
            let must = interfering.into_iter().collect();
            let asked = self.ask(&Query { must, enabled: vec![read, writer], ..Query::default() });
            if self.mode == Mode::Strict || !matches!(asked, Answer::Infeasible(_)) {
                return asked;
            }
        }
        let mut order: Vec<(EventId, EventId)> =
            interfering.into_iter().map(|write| (write, read)).collect();
        order.push((read, writer));
        let stop = if self.mode == Mode::Strict { vec![read] } else { Vec::new() };
        self.ask(&Query { order, views: vec![(read, View::Any)], stop, ..Query::default() })
    }
}

// Kinds 1 and 3, where a run that serves an interfering write serves all earlier ones of its thread.

/// What is known along a list: all before `feasible` is, nothing from `refuted` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Boundary {
    feasible: u32,
    refuted: u32,
}

impl Runs<'_, '_> {
    /// Decides the interfering writes of `edge`; `limits` says how many of each list nothing rules out.
    fn decide_earlier(
        &mut self,
        edge: &Edge,
        limits: &[u32],
        verdicts: &mut Verdicts,
        mut ask: impl FnMut(&mut Self, Option<EventId>) -> Answer,
    ) {
        let mut bounds: Vec<Boundary> =
            limits.iter().map(|&limit| Boundary { feasible: 0, refuted: limit }).collect();
        let mut has_run = false;
        match ask(self, None) {
            Answer::Infeasible(_) => return,
            Answer::Unknown => {}
            Answer::Feasible(run) => {
                has_run = true;
                self.mark(edge, &run, &mut bounds);
            }
        }
        for at in 0..bounds.len() {
            let writes = self.accesses.writes(&self.accesses.lists(edge.var)[at]);
            let mut open = bounds[at].refuted;
            let mut is_first = true;
            while bounds[at].feasible < open {
                let feasible = bounds[at].feasible;
                // The last one first: often all are feasible.
                let probe = if is_first { open - 1 } else { feasible + (open - feasible) / 2 };
                is_first = false;
                match ask(self, Some(writes[probe as usize])) {
                    Answer::Feasible(run) => {
                        has_run = true;
                        self.mark(edge, &run, &mut bounds);
                        bounds[at].feasible = bounds[at].feasible.max(probe + 1);
                    }
                    Answer::Infeasible(_) => {
                        open = probe;
                        bounds[at].refuted = probe;
                    }
                    Answer::Unknown => open = probe,
                }
            }
        }
        verdicts.feasible.initial = has_run;
        verdicts.unknown.initial = !has_run;
        for (list, bound) in (0..).zip(bounds) {
            verdicts.feasible.push(list, 0..bound.feasible);
            verdicts.unknown.push(list, bound.feasible..bound.refuted);
        }
    }

    /// Notes that all interfering writes that `run` runs before the read are feasible.
    fn mark(&self, edge: &Edge, run: &Reordering, bounds: &mut [Boundary]) {
        let counts = self.counts_until(run, edge.read);
        for (list, bound) in self.accesses.lists(edge.var).iter().zip(bounds) {
            let writes = self.accesses.writes(list);
            let count = counts[list.thread];
            let known = writes.partition_point(|&write| self.trace().position(write) < count);
            bound.feasible = bound.feasible.max((known as u32).min(bound.refuted));
        }
    }

    /// How many events of each thread `run` runs before `event`, or in all if it does not run it.
    fn counts_until(&self, run: &Reordering, event: EventId) -> IndexVec<ThreadId, u32> {
        let trace = self.trace();
        let mut counts = run.base.clone();
        let threads_count = trace.names().threads.len();
        if counts.len() < threads_count {
            counts.get_or_default(ThreadId::from_index(threads_count - 1));
        }
        for &other in run.schedule.iter().take_while(|&&other| other != event) {
            counts[trace.event(other).thread] += 1;
        }
        counts
    }
}

// Kind 2, where a run serves all interfering writes that it runs between the writer and the read. Of
// those that happen before the read in any case, a run that serves one serves all later ones of its
// thread too, so the last one is asked first. The others are narrowed down by two weaker questions, and
// those that are left are asked in blocks.

/// What is known along a list.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Feasible ones: ranges in order, apart.
    feasible: Vec<Range<u32>>,
    unknown: Vec<Range<u32>>,
    /// The first that nothing rules out, and the first after those.
    from: u32,
    to: u32,
    /// Those before this one are decided.
    decided: u32,
}

impl Known {
    /// Notes that those of `range` are feasible.
    fn mark(&mut self, range: Range<u32>) {
        let range = range.start.max(self.from)..range.end.min(self.to);
        if range.is_empty() {
            return;
        }
        let from = self.feasible.partition_point(|known| known.end < range.start);
        let to = self.feasible.partition_point(|known| known.start <= range.end);
        let joined = self.feasible[from..to]
            .iter()
            .fold(range, |all, known| all.start.min(known.start)..all.end.max(known.end));
        self.feasible.splice(from..to, [joined]);
    }

    /// Those of `range` that are not known to be feasible, as ranges.
    fn open(&self, range: Range<u32>) -> Vec<Range<u32>> {
        let mut open = Vec::new();
        let mut from = range.start;
        for known in &self.feasible {
            if known.start > from && from < range.end {
                open.push(from..known.start.min(range.end));
            }
            from = from.max(known.end);
        }
        if from < range.end {
            open.push(from..range.end);
        }
        open
    }

    fn is_feasible(&self, at: u32) -> bool {
        self.feasible.iter().any(|known| known.contains(&at))
    }
}

impl Runs<'_, '_> {
    /// Kind 2.
    fn decide_between(&mut self, edge: &Edge, verdicts: &mut Verdicts) {
        let lists = self.accesses.lists(edge.var);
        let trace = self.trace();
        let mut known: Vec<Known> = lists
            .iter()
            .map(|list| {
                let writes = self.accesses.writes(list);
                let needed = edge.writer.map(|writer| self.needs.past(writer));
                let needed = needed.map_or(0, |needed| needed.get(list.thread));
                let from = writes.partition_point(|&write| trace.position(write) < needed);
                let to = self.count_without(writes, edge.read);
                Known { from: from as u32, to, ..Known::default() }
            })
            .collect();
        for (at, list) in lists.iter().enumerate() {
            let writes = self.accesses.writes(list);
            self.raise_needed(edge, writes, at, &mut known);
            self.lower_end(edge, writes, at, &mut known);
            self.raise_start(edge, writes, at, &mut known);
            self.ask_blocks(edge, writes, at, &mut known);
        }
        for (list, mut known) in (0..).zip(known) {
            known.unknown.sort_unstable_by_key(|range| range.start);
            for range in known.unknown.iter().flat_map(|range| known.open(range.clone())) {
                verdicts.unknown.push(list, range);
            }
            for range in known.feasible {
                verdicts.feasible.push(list, range);
            }
        }
    }

    /// Decides those that happen before the read in any case: the feasible ones are the last ones.
    fn raise_needed(&mut self, edge: &Edge, writes: &[EventId], at: usize, known: &mut [Known]) {
        let Some(writer) = edge.writer else { return };
        let thread = self.accesses.lists(edge.var)[at].thread;
        let needed = self.needs.before(edge.read).get(thread);
        let end = writes.partition_point(|&write| self.trace().position(write) < needed) as u32;
        let end = end.min(known[at].to);
        let (mut low, mut high) = (known[at].from, end);
        if low >= end {
            return;
        }
        // The last one first, then in growing steps: the further back, the more has to move.
        let mut step = 1;
        while low < high {
            let probe = if step > 0 { high - step.min(high - low) } else { low + (high - low) / 2 };
            if known[at].is_feasible(probe) {
                high = probe;
                continue;
            }
            let order = vec![(writer, writes[probe as usize])];
            let query = Query { order, enabled: vec![edge.read], ..Query::default() };
            match self.ask(&query) {
                Answer::Feasible(run) => {
                    self.mark_between(edge, &run, known);
                    high = probe;
                    step *= 2;
                }
                Answer::Infeasible(_) => {
                    low = probe + 1;
                    step = 0;
                }
                Answer::Unknown => {
                    known[at].unknown.push(low..high);
                    break;
                }
            }
        }
        known[at].mark(high..end);
        known[at].decided = end;
    }

    /// Rules out those that cannot come before the read together with the writer, in whatever
    /// order: if one can, so can all earlier ones.
    fn lower_end(&mut self, edge: &Edge, writes: &[EventId], at: usize, known: &mut [Known]) {
        let (mut low, mut high) = (known[at].from.max(known[at].decided), known[at].to);
        let mut is_first = true;
        while low < high {
            // The last one first: often none is ruled out.
            let probe = if is_first { high - 1 } else { low + (high - low) / 2 };
            is_first = false;
            if known[at].is_feasible(probe) {
                low = probe + 1;
                continue;
            }
            let must = edge.writer.into_iter().chain([writes[probe as usize]]).collect();
            let query = Query { must, enabled: vec![edge.read], ..Query::default() };
            match self.ask(&query) {
                Answer::Feasible(run) => {
                    self.mark_between(edge, &run, known);
                    low = probe + 1;
                }
                Answer::Infeasible(_) => {
                    high = probe;
                    known[at].to = probe;
                }
                Answer::Unknown => return,
            }
        }
    }

    /// Rules out those that cannot come after the writer, whatever the read does: if one can, so can
    /// all later ones.
    fn raise_start(&mut self, edge: &Edge, writes: &[EventId], at: usize, known: &mut [Known]) {
        let Some(writer) = edge.writer else { return };
        // Those that came after the writer can.
        let end = writes.partition_point(|&write| write < writer) as u32;
        let start = known[at].from.max(known[at].decided);
        let (mut low, mut high) = (start, end.min(known[at].to));
        while low < high {
            let probe = if low == start { low } else { low + (high - low) / 2 };
            if known[at].is_feasible(probe) {
                high = probe;
                continue;
            }
            let absent = vec![writes[probe as usize], edge.read];
            match self.ask(&Query { must: vec![writer], absent, ..Query::default() }) {
                Answer::Feasible(_) => high = probe,
                Answer::Infeasible(_) => {
                    low = probe + 1;
                    known[at].decided = low;
                }
                Answer::Unknown => return,
            }
        }
    }

    /// Asks those that are left, in blocks: if the first of a block can come after the writer and the
    /// last before the read in one run, that serves all of it.
    fn ask_blocks(&mut self, edge: &Edge, writes: &[EventId], at: usize, known: &mut [Known]) {
        let start = known[at].from.max(known[at].decided);
        for open in known[at].open(start..known[at].to).into_iter().rev() {
            // From the last one back, in blocks that grow while they are feasible, and the more slowly
            // the more often one was not: those cost most.
            let (mut end, mut length) = (open.end, 1);
            let (mut successes, mut patience) = (0, 1);
            while open.start < end {
                let block = end - length.min(end - open.start)..end;
                if known[at].is_feasible(end - 1) {
                    end -= 1;
                    continue;
                }
                let (first, last) = (writes[block.start as usize], writes[end as usize - 1]);
                let query = Query {
                    must: vec![last],
                    order: edge.writer.into_iter().map(|writer| (writer, first)).collect(),
                    enabled: vec![edge.read],
                    ..Query::default()
                };
                match self.ask(&query) {
                    Answer::Feasible(run) => {
                        self.mark_between(edge, &run, known);
                        known[at].mark(block.clone());
                        end = block.start;
                        successes += 1;
                        if successes >= patience {
                            (successes, length) = (0, 2 * length);
                        }
                    }
                    Answer::Infeasible(_) if block.len() > 1 => {
                        length = block.len() as u32 / 2;
                        (successes, patience) = (0, (2 * patience).min(PATIENCE_MAX));
                    }
                    Answer::Infeasible(_) => end = block.start,
                    Answer::Unknown => {
                        known[at].unknown.push(open.start..end);
                        break;
                    }
                }
            }
        }
    }

    /// Notes that all interfering writes that `run` runs after the writer are feasible: the read comes last.
    fn mark_between(&self, edge: &Edge, run: &Reordering, known: &mut [Known]) {
        let trace = self.trace();
        let all = self.counts_until(run, edge.read);
        let until = edge.writer.filter(|&writer| !trace.is_in_prefix(run, writer));
        let until = until.map(|writer| self.counts_until(run, writer));
        for (list, known) in self.accesses.lists(edge.var).iter().zip(known) {
            let writes = self.accesses.writes(list);
            let count = |events: u32| {
                writes.partition_point(|&write| trace.position(write) < events) as u32
            };
            let start = match (&until, edge.writer) {
                (Some(until), _) => count(until[list.thread]),
                (None, None) => 0,
                // What is in the base runs in observed order.
                (None, Some(writer)) => {
                    let base = count(run.base.get(list.thread).copied().unwrap_or(0));
                    base.min(writes.partition_point(|&write| write < writer) as u32)
                }
            };
            known.mark(start..count(all[list.thread]));
        }
    }
}
