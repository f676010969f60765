//! Kind 2, where a run serves all challengers that it runs between the writer and the read.
//!
//! Of the challengers that happen before the read in any case, a run that serves one serves all
//! later ones of its thread too, so the last one is asked first. The others are narrowed down by two
//! weaker questions, and those that are left are asked in blocks.

use std::ops::Range;

use reweave_reorder::Query;
use reweave_trace::{EventId, Reordering};

use super::{Asked, Runs};
use crate::accesses::ReadsFrom;
use crate::verdicts::Verdicts;

/// After how many feasible blocks a longer one is tried at the latest.
const PATIENCE_MAX: u32 = 64;

/// What is known along a line.
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
    pub(super) fn decide_between(&mut self, couple: &ReadsFrom, verdicts: &mut Verdicts) {
        let lines = self.accesses.lines(couple.var);
        let trace = self.trace();
        let mut known: Vec<Known> = lines
            .iter()
            .map(|line| {
                let writes = self.accesses.writes(line);
                let needed = couple.writer.map(|writer| self.needs.past(writer));
                let needed = needed.map_or(0, |needed| needed.get(line.thread));
                let from = writes.partition_point(|&write| trace.position(write) < needed);
                let to = self.count_without(writes, couple.read);
                Known { from: from as u32, to, ..Known::default() }
            })
            .collect();
        for (at, line) in lines.iter().enumerate() {
            let writes = self.accesses.writes(line);
            self.raise_needed(couple, writes, at, &mut known);
            self.lower_end(couple, writes, at, &mut known);
            self.raise_start(couple, writes, at, &mut known);
            self.ask_blocks(couple, writes, at, &mut known);
        }
        for (line, mut known) in (0..).zip(known) {
            known.unknown.sort_unstable_by_key(|range| range.start);
            for range in known.unknown.iter().flat_map(|range| known.open(range.clone())) {
                verdicts.unknown.push(line, range);
            }
            for range in known.feasible {
                verdicts.feasible.push(line, range);
            }
        }
    }

    /// Decides those that happen before the read in any case: the feasible ones are the last ones.
    fn raise_needed(
        &mut self,
        couple: &ReadsFrom,
        writes: &[EventId],
        at: usize,
        known: &mut [Known],
    ) {
        let Some(writer) = couple.writer else { return };
        let thread = self.accesses.lines(couple.var)[at].thread;
        let needed = self.needs.before(couple.read).get(thread);
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
            let query = Query { order, enabled: vec![couple.read], ..Query::default() };
            match self.ask(&query) {
                Asked::Found(run) => {
                    self.mark_between(couple, &run, known);
                    high = probe;
                    step *= 2;
                }
                Asked::None => {
                    low = probe + 1;
                    step = 0;
                }
                Asked::Unknown => {
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
    fn lower_end(
        &mut self,
        couple: &ReadsFrom,
        writes: &[EventId],
        at: usize,
        known: &mut [Known],
    ) {
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
            let must = couple.writer.into_iter().chain([writes[probe as usize]]).collect();
            let query = Query { must, enabled: vec![couple.read], ..Query::default() };
            match self.ask(&query) {
                Asked::Found(run) => {
                    self.mark_between(couple, &run, known);
                    low = probe + 1;
                }
                Asked::None => {
                    high = probe;
                    known[at].to = probe;
                }
                Asked::Unknown => return,
            }
        }
    }

    /// Rules out those that cannot come after the writer, whatever the read does: if one can, so can
    /// all later ones.
    fn raise_start(
        &mut self,
        couple: &ReadsFrom,
        writes: &[EventId],
        at: usize,
        known: &mut [Known],
    ) {
        let Some(writer) = couple.writer else { return };
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
            let absent = vec![writes[probe as usize], couple.read];
            match self.ask(&Query { must: vec![writer], absent, ..Query::default() }) {
                Asked::Found(_) => high = probe,
                Asked::None => {
                    low = probe + 1;
                    known[at].decided = low;
                }
                Asked::Unknown => return,
            }
        }
    }

    /// Asks those that are left, in blocks: if the first of a block can come after the writer and the
    /// last before the read in one run, that serves all of it.
    fn ask_blocks(
        &mut self,
        couple: &ReadsFrom,
        writes: &[EventId],
        at: usize,
        known: &mut [Known],
    ) {
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
                    order: couple.writer.into_iter().map(|writer| (writer, first)).collect(),
                    enabled: vec![couple.read],
                    ..Query::default()
                };
                match self.ask(&query) {
                    Asked::Found(run) => {
                        self.mark_between(couple, &run, known);
                        known[at].mark(block.clone());
                        end = block.start;
                        successes += 1;
                        if successes >= patience {
                            (successes, length) = (0, 2 * length);
                        }
                    }
                    Asked::None if block.len() > 1 => {
                        length = block.len() as u32 / 2;
                        (successes, patience) = (0, (2 * patience).min(PATIENCE_MAX));
                    }
                    Asked::None => end = block.start,
                    Asked::Unknown => {
                        known[at].unknown.push(open.start..end);
                        break;
                    }
                }
            }
        }
    }

    /// Notes that all challengers that `run` runs after the writer are feasible: the read comes last.
    fn mark_between(&self, couple: &ReadsFrom, run: &Reordering, known: &mut [Known]) {
        let trace = self.trace();
        let all = self.counts_until(run, couple.read);
        let until = couple.writer.filter(|&writer| !trace.is_in_prefix(run, writer));
        let until = until.map(|writer| self.counts_until(run, writer));
        for (line, known) in self.accesses.lines(couple.var).iter().zip(known) {
            let writes = self.accesses.writes(line);
            let count = |events: u32| {
                writes.partition_point(|&write| trace.position(write) < events) as u32
            };
            let start = match (&until, couple.writer) {
                (Some(until), _) => count(until[line.thread]),
                (None, None) => 0,
                // What is in the base runs in observed order.
                (None, Some(writer)) => {
                    let base = count(run.base.get(line.thread).copied().unwrap_or(0));
                    base.min(writes.partition_point(|&write| write < writer) as u32)
                }
            };
            known.mark(start..count(all[line.thread]));
        }
    }
}
