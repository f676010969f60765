//! All challengers of a read, line by line.

use std::ops::Range;

use reweave_base::{Id, IndexVec};
use reweave_trace::{ThreadId, VarId};

use super::bend::{Base, Bend, Halt, Work, has, lower};
use super::desk::{Chain, Desk, Judgement};
use super::ground::{Ground, Point};
use super::reach::Reach;
use crate::accesses::Accesses;
use crate::verdicts::{Phases, Verdicts};

/// The writes of every variable as positions in their threads.
#[derive(Debug)]
pub(super) struct Writes {
    positions: Vec<u32>,
    lines: IndexVec<VarId, Vec<(ThreadId, Range<u32>)>>,
}

impl Writes {
    pub(super) fn of(accesses: &Accesses<'_>) -> Self {
        let trace = accesses.trace();
        let mut positions = Vec::new();
        let mut lines = IndexVec::new();
        for var in (0..trace.names().vars.len()).map(VarId::from_index) {
            let mut own = Vec::new();
            for line in accesses.lines(var) {
                let start = positions.len() as u32;
                positions.extend(accesses.writes(line).iter().map(|&id| trace.position(id)));
                own.push((line.thread, start..positions.len() as u32));
            }
            lines.push(own);
        }
        Self { positions, lines }
    }

    /// How many events write `var`.
    pub(super) fn count(&self, var: VarId) -> u64 {
        self.lines[var].iter().map(|(_, range)| u64::from(range.end - range.start)).sum()
    }

    /// The lines of `var`.
    fn lines(&self, var: VarId) -> impl Iterator<Item = Line<'_>> {
        self.lines[var].iter().enumerate().map(|(index, (thread, range))| Line {
            index: index as u32,
            thread: *thread,
            positions: &self.positions[range.start as usize..range.end as usize],
        })
    }
}

/// The writes of a variable by one thread.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    index: u32,
    thread: ThreadId,
    positions: &'a [u32],
}

impl Line<'_> {
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

    fn write(&self, at: u32) -> Point {
        Point { thread: self.thread, position: self.positions[at as usize] }
    }
}

/// The verdicts on one kind of witness of a read, and how they were found.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    pub(super) verdicts: &'a mut Verdicts,
    pub(super) phases: Phases,
}

impl<'a> Tally<'a> {
    pub(super) fn new(verdicts: &'a mut Verdicts) -> Self {
        *verdicts = Verdicts::default();
        Self { verdicts, phases: Phases::default() }
    }

    /// How the phases decided all of `challengers_count`: what is not known otherwise is infeasible
    /// in the first.
    pub(super) fn finish(mut self, challengers_count: u64) -> Phases {
        let Phases { feasible, with_choices, .. } = self.phases;
        let unknown = self.verdicts.unknown.count();
        self.phases.infeasible = challengers_count - feasible - with_choices - unknown;
        self.phases
    }

    /// Notes that a whole `range` of `line` is feasible, with nothing to choose.
    fn settle(&mut self, line: &Line<'_>, range: Range<u32>) {
        self.phases.feasible += u64::from(range.end - range.start);
        self.verdicts.feasible.push(line.index, range);
    }

    /// Notes what is known of one challenger.
    fn note(&mut self, line: &Line<'_>, at: u32, judgement: Judgement) {
        if judgement.is_feasible() {
            self.verdicts.feasible.push(line.index, at..at + 1);
        }
    }
}

/// Room for what all challengers of a read share.
#[derive(Debug)]
pub(super) struct Room {
    /// The graph that has the read before its writer, and nothing else of a witness.
    start: Bend,
    /// What comes before the writer.
    before: Vec<u32>,
    /// What comes after the read.
    after: Vec<u32>,
    /// What the read can reach in the contracted graph.
    from_read: Vec<u32>,
    /// The same of the writer, or what can reach the writer.
    of_writer: Vec<u32>,
}

impl Room {
    pub(super) fn new(threads_count: usize) -> Self {
        Self {
            start: Bend::default(),
            before: vec![0; threads_count],
            after: vec![0; threads_count],
            from_read: Vec::new(),
            of_writer: Vec::new(),
        }
    }
}

/// One kind of witness of one read, and what it takes to decide it.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) base: Base<'a>,
    pub(super) writes: &'a Writes,
    pub(super) var: VarId,
    pub(super) desk: &'a mut Desk,
    pub(super) room: &'a mut Room,
    pub(super) tally: Tally<'a>,
    pub(super) work: Work<'a>,
}

/// Kind 1: the challenger, the read, the writer. The graph below is without their couple.
impl<'a> Case<'a> {
    /// Decides all challengers of `read`, which saw `writer`.
    pub(super) fn decide_writer_after(mut self, writer: Point, read: Point) -> Tally<'a> {
        let (writes, var) = (self.writes, self.var);
        let alone = Chain { first: None, middle: read, last: Some(writer) };
        let is_looped = match self.share_read(writer, read) {
            Ok(is_looped) => is_looped,
            Err(Halt::Cycle) => return self.tally,
            Err(Halt::Spent) => {
                self.tally.verdicts.unknown.initial = true;
                for line in writes.lines(var) {
                    let count = line.count_in(&self.room.after);
                    self.tally.verdicts.unknown.push(line.index, 0..count);
                }
                return self.tally;
            }
        };
        self.desk.bend.clone_from(&self.room.start);
        let phases = &mut self.tally.phases;
        match self.desk.judge(self.base, &alone, false, phases, &mut self.work) {
            Ok(judgement) => self.tally.verdicts.feasible.initial = judgement.is_feasible(),
            Err(_) => self.tally.verdicts.unknown.initial = true,
        }
        for line in writes.lines(var) {
            self.decide_line_before(&line, alone, is_looped);
        }
        self.tally
    }

    /// Works out what all challengers share; whether the writer can reach the read by way of
    /// choices, whatever the challenger.
    fn share_read(&mut self, writer: Point, read: Point) -> Result<bool, Halt> {
        let Room { start, after, from_read, of_writer, .. } = &mut *self.room;
        let (base, reach, work) = (self.base, &mut self.desk.later, &mut self.work);
        // Until more is known, what comes after either is out of the question.
        of_writer.resize(after.len(), 0);
        base.after(read, after);
        base.after(writer, of_writer);
        lower(after, of_writer);
        start.clear();
        start.add(base, read, writer, work)?;
        start.after(base, read, after);
        let candidates = self.writes.lines(self.var).map(|line| line.count_in(after) as usize);
        if candidates.sum::<usize>() < SHARED_MIN {
            fill_nothing(base.ground, from_read);
            return Ok(true);
        }
        reach_forward(base, reach, start, read, from_read, work)?;
        reach_forward(base, reach, start, writer, of_writer, work)?;
        Ok(!has(of_writer, read))
    }

    /// Decides the challengers of `line` that come before the chain `alone`.
    fn decide_line_before(&mut self, line: &Line<'_>, alone: Chain, is_looped: bool) {
        let candidates = line.count_in(&self.room.after);
        let Ok(acyclic) = self.count_acyclic(line, candidates, alone.middle) else {
            self.tally.verdicts.unknown.push(line.index, 0..candidates);
            return;
        };
        let settled = if is_looped { 0 } else { line.count_in(&self.room.from_read).min(acyclic) };
        self.tally.settle(line, 0..settled);
        // From the last one down: what is feasible for one is so for all before it.
        let (mut at, mut feasible) = (acyclic, settled);
        while at > settled {
            let chain = Chain { first: Some(line.write(at - 1)), ..alone };
            let judgement = self.set_before(&chain).and_then(|()| {
                let (phases, work) = (&mut self.tally.phases, &mut self.work);
                self.desk.judge(self.base, &chain, feasible > settled, phases, work)
            });
            let Ok(judgement) = judgement else { break };
            if judgement.is_feasible() {
                feasible = feasible.max(at);
            }
            at -= 1;
        }
        self.tally.verdicts.unknown.push(line.index, settled..at);
        self.tally.verdicts.feasible.push(line.index, at..feasible.max(at));
    }

    /// How many of the first `candidates` of `line` have a graph without a cycle.
    fn count_acyclic(
        &mut self,
        line: &Line<'_>,
        candidates: u32,
        read: Point,
    ) -> Result<u32, Halt> {
        let (mut from, mut to) = (0, candidates);
        // The last one first: often they all have.
        let mut at = candidates.saturating_sub(1);
        while from < to {
            let chain = Chain { first: Some(line.write(at)), middle: read, last: None };
            match self.set_before(&chain) {
                Ok(()) => from = at + 1,
                Err(Halt::Cycle) => to = at,
                Err(Halt::Spent) => return Err(Halt::Spent),
            }
            at = from.midpoint(to);
        }
        Ok(from)
    }

    /// Makes the graph of a challenger before the read, from that of the read before its writer.
    fn set_before(&mut self, chain: &Chain) -> Result<(), Halt> {
        self.desk.bend.clone_from(&self.room.start);
        let Some(challenger) = chain.first else { return Ok(()) };
        self.desk.bend.add(self.base, challenger, chain.middle, &mut self.work)
    }
}

/// Kind 2: the writer, the challenger, the read.
impl<'a> Case<'a> {
    /// Decides all challengers of `read`, which saw `writer`; none is the end, or an initial value.
    pub(super) fn decide_between(
        mut self,
        writer: Option<Point>,
        read: Option<Point>,
    ) -> Tally<'a> {
        let (writes, var) = (self.writes, self.var);
        let is_shared = self.share_ends(writer, read);
        for line in writes.lines(var) {
            let candidates = line.range(&self.room.before, &self.room.after);
            if is_shared.is_err() {
                self.tally.verdicts.unknown.push(line.index, candidates);
            } else {
                self.decide_line_between(&line, candidates, writer, read);
            }
        }
        self.tally
    }

    /// Works out what all challengers share: what comes before the writer and after the read, what
    /// the read reaches and what reaches the writer, nothing being added.
    fn share_ends(&mut self, writer: Option<Point>, read: Option<Point>) -> Result<(), Halt> {
        let Room { before, after, from_read, of_writer, .. } = &mut *self.room;
        let (base, ground, work) = (self.base, self.base.ground, &mut self.work);
        match writer {
            Some(writer) => base.before(writer, before),
            None => before.fill(0),
        }
        match read {
            Some(read) => base.after(read, after),
            None => fill_whole(ground, after),
        }
        let candidates = self.writes.lines(self.var).map(|line| line.range(before, after).len());
        let is_worth_it = candidates.sum::<usize>() >= SHARED_MIN;
        let Desk { bend, later, earlier, .. } = &mut *self.desk;
        bend.clear();
        match read {
            Some(read) if is_worth_it => reach_forward(base, later, bend, read, from_read, work)?,
            Some(_) => fill_nothing(ground, from_read),
            None => fill_whole(ground, from_read),
        }
        match writer {
            Some(writer) if is_worth_it => {
                reach_backward(base, earlier, bend, writer, of_writer, work)?;
            }
            Some(_) => fill_whole(ground, of_writer),
            None => fill_nothing(ground, of_writer),
        }
        Ok(())
    }

    fn decide_line_between(
        &mut self,
        line: &Line<'_>,
        candidates: Range<u32>,
        writer: Option<Point>,
        read: Option<Point>,
    ) {
        let Range { start, end } = candidates;
        let Room { from_read, of_writer, .. } = &*self.room;
        // Those that can reach the writer come first, those that the read can reach last.
        let is_looped = writer.is_some_and(|writer| !has(from_read, writer));
        let first = if is_looped { end } else { line.count_in(of_writer).clamp(start, end) };
        let last = line.count_in(from_read).clamp(first, end);
        let mut halt = self.decide_each(line, start..first, writer, read);
        halt = halt.and_then(|()| self.decide_blocks(line, first..last, writer, read));
        halt = halt.and_then(|()| self.decide_each(line, last..end, writer, read));
        if let Err(at) = halt {
            self.tally.verdicts.unknown.push(line.index, at..end);
        }
    }

    /// Decides challengers one at a time; where the budget ended, if it did.
    fn decide_each(
        &mut self,
        line: &Line<'_>,
        range: Range<u32>,
        writer: Option<Point>,
        read: Option<Point>,
    ) -> Result<(), u32> {
        for at in range {
            let chain = Chain { first: writer, middle: line.write(at), last: read };
            let judgement = self.desk.set(self.base, &chain, &mut self.work).and_then(|()| {
                let (phases, work) = (&mut self.tally.phases, &mut self.work);
                self.desk.judge(self.base, &chain, false, phases, work)
            });
            match judgement {
                Ok(judgement) => self.tally.note(line, at, judgement),
                Err(Halt::Cycle) => {}
                Err(Halt::Spent) => return Err(at),
            }
        }
        Ok(())
    }

    /// Decides challengers that leave nothing to choose: whole blocks at a time, halved where they
    /// do not fit; where the budget ended, if it did.
    fn decide_blocks(
        &mut self,
        line: &Line<'_>,
        range: Range<u32>,
        writer: Option<Point>,
        read: Option<Point>,
    ) -> Result<(), u32> {
        let mut blocks = Vec::from_iter((!range.is_empty()).then_some(range));
        while let Some(block) = blocks.pop() {
            let chain = Chain { first: writer, middle: line.write(block.start), last: None };
            let graph = self.desk.set(self.base, &chain, &mut self.work).and_then(|()| {
                let Some(read) = read else { return Ok(()) };
                let last = line.write(block.end - 1);
                self.desk.bend.add(self.base, last, read, &mut self.work)
            });
            match graph {
                Ok(()) => self.tally.settle(line, block),
                Err(Halt::Cycle) if block.len() == 1 => {}
                Err(Halt::Cycle) => {
                    let middle = block.start.midpoint(block.end);
                    blocks.push(middle..block.end);
                    blocks.push(block.start..middle);
                }
                Err(Halt::Spent) => return Err(block.start),
            }
        }
        Ok(())
    }
}

/// From how many challengers on it pays to work out what they share.
const SHARED_MIN: usize = 4;

/// How many steps of what is reached are worth knowing for all challengers at once. If there are
/// more, each is looked at by itself.
const STEPS_MAX: usize = 256;

/// Makes `first` all that `from` reaches, or more.
fn reach_forward(
    base: Base<'_>,
    reach: &mut Reach,
    bend: &Bend,
    from: Point,
    first: &mut Vec<u32>,
    work: &mut Work<'_>,
) -> Result<(), Halt> {
    reach.start_forward(base.ground, from, first);
    if !reach.go_forward(base, bend, first, STEPS_MAX, work)? {
        fill_nothing(base.ground, first);
    }
    Ok(())
}

/// Makes `behind` all that reaches `to`, or more.
fn reach_backward(
    base: Base<'_>,
    reach: &mut Reach,
    bend: &Bend,
    to: Point,
    behind: &mut Vec<u32>,
    work: &mut Work<'_>,
) -> Result<(), Halt> {
    reach.start_backward(base.ground, to, behind);
    if !reach.go_backward(base, bend, behind, STEPS_MAX, work)? {
        fill_whole(base.ground, behind);
    }
    Ok(())
}

/// Makes `cut` hold no event: all come after it.
fn fill_nothing(ground: &Ground<'_>, cut: &mut Vec<u32>) {
    cut.clear();
    cut.resize(ground.threads_count, 0);
}

/// Makes `cut` hold all events.
fn fill_whole(ground: &Ground<'_>, cut: &mut Vec<u32>) {
    cut.clear();
    cut.extend(ground.threads().map(|thread| ground.events_count(thread)));
}
