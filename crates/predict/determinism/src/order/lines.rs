//! All challengers of a read, line by line.

use std::ops::Range;

use reweave_base::{Id, IndexVec};
use reweave_trace::{ThreadId, VarId};

use super::bend::{Base, Bend, Halt, Work, has, lower};
use super::desk::{Chain, Desk, Judgement};
use super::ground::Point;
use super::reach::CHOICES_MAX;
use crate::accesses::Accesses;
use crate::verdicts::{Phases, Verdicts};

/// The writes of every variable as positions in their threads.
#[derive(Debug)]
pub(super) struct Writes {
    positions: Vec<u32>,
    lines: IndexVec<VarId, Vec<(ThreadId, Range<u32>)>>,
}

impl Writes {
    pub(super) fn new(accesses: &Accesses<'_>) -> Self {
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
pub(super) struct Tally<'a> {
    pub(super) verdicts: &'a mut Verdicts,
    pub(super) phases: Phases,
}

impl<'a> Tally<'a> {
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

    /// Notes that a whole `range` of `line` is feasible, with nothing to choose.
    fn settle(&mut self, line: &Line<'_>, range: Range<u32>) {
        self.phases.feasible += u64::from(range.end - range.start);
        self.verdicts.feasible.push(line.index, range);
    }

    /// Notes what is known of a `range` of `line`, of each the same.
    fn note(&mut self, line: &Line<'_>, range: Range<u32>, judgement: Judgement) {
        self.count(judgement, u64::from(range.end - range.start));
        if judgement.is_feasible {
            self.verdicts.feasible.push(line.index, range);
        }
    }

    /// Counts so many witnesses of which the same is known.
    fn count(&mut self, judgement: Judgement, times: u64) {
        let Judgement { choices_count, is_feasible, explored } = judgement;
        if choices_count == 0 {
            self.phases.feasible += times;
            return;
        }
        let graphs = match choices_count < CHOICES_MAX {
            true => (1_u64 << choices_count).saturating_mul(times),
            false => u64::MAX * times.min(1),
        };
        self.phases.with_choices += times;
        self.phases.feasible_with_choices += if is_feasible { times } else { 0 };
        self.phases.possible_graphs = self.phases.possible_graphs.saturating_add(graphs);
        self.phases.explored_graphs += explored.saturating_mul(times);
    }

    /// Notes that nothing is known of any witness whose challenger is a write, which neither of
    /// `others` is.
    pub(super) fn leave(&mut self, writes: &Writes, var: VarId, others: [Option<Point>; 2]) {
        for line in writes.lines(var) {
            let mut start = 0;
            let mut cuts = others.map(|other| other.and_then(|other| line.find(other)));
            cuts.sort_unstable();
            for at in cuts.into_iter().flatten() {
                self.verdicts.unknown.push(line.index, start..at);
                start = at + 1;
            }
            self.verdicts.unknown.push(line.index, start..line.positions.len() as u32);
        }
    }
}

/// Room for what all challengers of a read share.
#[derive(Debug)]
pub(super) struct Room {
    /// The graph that has the read before its writer, and nothing else of a witness.
    start: Bend,
    /// What comes before the writer, or before the read.
    before: Vec<u32>,
    /// What comes after the read.
    after: Vec<u32>,
    /// What the read can reach in the contracted graph.
    from_read: Vec<u32>,
    /// What can reach the writer.
    to_writer: Vec<u32>,
    /// What is known of challengers, one after the other.
    judged: Vec<Option<Judgement>>,
}

impl Room {
    pub(super) fn new(threads_count: usize) -> Self {
        Self {
            start: Bend::default(),
            before: vec![0; threads_count],
            after: vec![0; threads_count],
            from_read: vec![0; threads_count],
            to_writer: vec![0; threads_count],
            judged: Vec::new(),
        }
    }
}

/// What is known of a read before its writer.
#[derive(Clone, Copy, Debug)]
struct Alone {
    /// With no challenger.
    own: Judgement,
    /// With one that comes before the read anyway, and that the read can reach.
    reached: Judgement,
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
        let chain = Chain { first: None, middle: read, last: Some(writer) };
        match self.share_read(writer, read) {
            Ok(()) => {}
            Err(Halt::Cycle) => return self.tally,
            Err(Halt::Spent) => {
                self.tally.verdicts.unknown.initial = true;
                for line in writes.lines(var) {
                    let count = line.count_in(&self.room.after);
                    self.tally.verdicts.unknown.push(line.index, 0..count);
                }
                return self.tally;
            }
        }
        let alone = self.judge_alone(&chain);
        match alone {
            Some(Alone { own, .. }) => {
                self.tally.count(own, 1);
                self.tally.verdicts.feasible.initial = own.is_feasible;
            }
            None => self.tally.verdicts.unknown.initial = true,
        }
        for line in writes.lines(var) {
            self.decide_line_before(&line, &chain, alone);
        }
        self.tally
    }

    /// Makes the graph that all challengers share.
    fn share_read(&mut self, writer: Point, read: Point) -> Result<(), Halt> {
        let Room { start, before, after, .. } = &mut *self.room;
        let (base, work) = (self.base, &mut self.work);
        // Until more is known, what comes after either is out of the question.
        base.after(read, after);
        base.after(writer, before);
        lower(after, before);
        start.clear();
        start.add(base, read, writer, work)?;
        start.after(base, read, after);
        start.before(base, read, before);
        Ok(())
    }

    /// Judges the read before its writer, with no challenger, and those that come before the read
    /// anyway; none if the budget ended.
    fn judge_alone(&mut self, chain: &Chain) -> Option<Alone> {
        let (base, room) = (self.base, &mut *self.room);
        self.desk.bend.clone_from(&room.start);
        let own = self.desk.judge(base, chain, false, &mut self.work).ok()?;
        if own.choices_count > 0 {
            fill_nothing(&mut room.from_read);
            // Their graph is the same, and so is its component.
            let explored = if own.is_feasible { 1 } else { own.explored };
            return Some(Alone { own, reached: Judgement { explored, ..own } });
        }
        // Only the read can make a component with a challenger, and it has one with all that it
        // reaches.
        room.from_read.copy_from_slice(self.desk.reached());
        let is_reached = |line: Line<'_>| {
            let inside = line.count_in(&room.before).min(line.count_in(&room.after));
            inside > line.count_in(&room.from_read)
        };
        let mut reached = Judgement { explored: 1, ..own };
        if self.writes.lines(self.var).any(is_reached) {
            reached.choices_count =
                self.desk.count_around(base, &room.start, &mut self.work).ok()?;
        }
        Some(Alone { own, reached })
    }

    /// Decides the challengers of `line` that come before the read of `alone`.
    fn decide_line_before(&mut self, line: &Line<'_>, chain: &Chain, alone: Option<Alone>) {
        let Room { before, after, from_read, .. } = &*self.room;
        let candidates = line.count_in(after);
        // Who comes before the read anyway adds nothing to the graph.
        let inside = line.count_in(before).min(candidates);
        let unreached = line.count_in(from_read);
        match alone {
            Some(Alone { reached, .. }) => {
                let settled = unreached.min(inside);
                self.tally.settle(line, 0..settled);
                self.tally.note(line, settled..inside, reached);
            }
            None => self.tally.verdicts.unknown.push(line.index, 0..inside),
        }
        let Ok(acyclic) = self.count_acyclic(line, inside..candidates, chain.middle) else {
            self.tally.verdicts.unknown.push(line.index, inside..candidates);
            return;
        };
        let settled = match alone {
            Some(_) => unreached.clamp(inside, acyclic),
            None => inside,
        };
        self.tally.settle(line, inside..settled);
        self.judge_down(line, settled..acyclic, chain);
        for at in settled..acyclic {
            match self.room.judged.pop().flatten() {
                Some(judgement) => self.tally.note(line, at..at + 1, judgement),
                None => self.tally.verdicts.unknown.push(line.index, at..at + 1),
            }
        }
    }

    /// Judges the challengers of `range` from the last one down: what is feasible for one is so for
    /// all before it.
    fn judge_down(&mut self, line: &Line<'_>, range: Range<u32>, chain: &Chain) {
        self.room.judged.clear();
        let mut is_known = false;
        for at in range.rev() {
            let chain = Chain { first: Some(line.write(at)), ..*chain };
            let judgement = self
                .set_before(&chain)
                .and_then(|()| self.desk.judge(self.base, &chain, is_known, &mut self.work));
            is_known |= judgement.is_ok_and(|judgement| judgement.is_feasible);
            self.room.judged.push(judgement.ok());
        }
    }

    /// Where the challengers of `line` end that have a graph without a cycle: those before the
    /// `candidates` have one.
    fn count_acyclic(
        &mut self,
        line: &Line<'_>,
        candidates: Range<u32>,
        read: Point,
    ) -> Result<u32, Halt> {
        let (mut from, mut to) = (candidates.start, candidates.end);
        // The last one first: often they all have.
        let mut at = to.saturating_sub(1);
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
        let Some(interfering) = chain.first else { return Ok(()) };
        self.desk.bend.add(self.base, interfering, chain.middle, &mut self.work)
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
        let Room { before, after, from_read, to_writer, .. } = &mut *self.room;
        let (base, ground, work) = (self.base, self.base.ground, &mut self.work);
        match writer {
            Some(writer) => base.before(writer, before),
            None => before.fill(0),
        }
        match read {
            Some(read) => base.after(read, after),
            None => ground.whole(after),
        }
        let candidates = self.writes.lines(self.var).map(|line| line.range(before, after).len());
        let steps_max = (STEPS_EACH * candidates.sum::<usize>()).min(STEPS_MAX);
        let Desk { bend, later, earlier, .. } = &mut *self.desk;
        bend.clear();
        match read {
            Some(read) => {
                later.start_forward(ground, read, from_read);
                if !later.go_forward(base, bend, from_read, steps_max, work)? {
                    fill_nothing(from_read);
                }
            }
            None => ground.whole(from_read),
        }
        match writer {
            Some(writer) => {
                earlier.start_backward(ground, writer, to_writer);
                if !earlier.go_backward(base, bend, to_writer, steps_max, work)? {
                    ground.whole(to_writer);
                }
            }
            None => fill_nothing(to_writer),
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
        let Room { from_read, to_writer, .. } = &*self.room;
        // Those that can reach the writer come first, those that the read can reach last.
        let is_looped = writer.is_some_and(|writer| !has(from_read, writer));
        let first = if is_looped { end } else { line.count_in(to_writer).clamp(start, end) };
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
            let judgement = self
                .desk
                .set(self.base, &chain, &mut self.work)
                .and_then(|()| self.desk.judge(self.base, &chain, false, &mut self.work));
            match judgement {
                Ok(judgement) => self.tally.note(line, at..at + 1, judgement),
                Err(Halt::Cycle) => {}
                Err(Halt::Spent) if self.work.is_over() => return Err(at),
                Err(Halt::Spent) => self.tally.verdicts.unknown.push(line.index, at..at + 1),
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

/// How many steps of what is reached are worth knowing for all challengers at once, for each that
/// there is, and at most. If there are more, each is looked at by itself.
const STEPS_EACH: usize = 2;
const STEPS_MAX: usize = 256;

/// Makes `cut` hold no event: all come after it.
fn fill_nothing(cut: &mut [u32]) {
    cut.fill(0);
}
