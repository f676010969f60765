//! The walk itself: level by level down to the last two chains.

use std::ops::{ControlFlow, Range};

use super::pair::Pair;
use super::plan::Inner;
use super::rows::CsrTable;
use super::{Halt, Limits, Visitor, vector};

/// About how many states are visited before it is asked whether to stop.
const STATES_BETWEEN: u64 = 1 << 20;

/// One walker.
pub(super) struct Driver<'a, R: CsrTable, V: Visitor> {
    plan: &'a Inner,
    rows: &'a R,
    visitor: &'a mut V,
    limits: Limits<'a>,
    stack: R::Stack,
    frames: Vec<Frame<V::Acc>>,
    /// How many states may be visited, at the most, before the limits are looked at.
    credit: u64,
    /// How many were visited, if they are limited.
    visited: u64,
}

/// Where the walk is at a level: the number of events to go on with, the last one, and what is
/// known of the chains before.
#[derive(Clone, Copy)]
struct Frame<A> {
    next: u32,
    high: u32,
    acc: A,
}

impl<'a, R: CsrTable, V: Visitor> Driver<'a, R, V> {
    pub(super) fn new(
        plan: &'a Inner,
        rows: &'a R,
        visitor: &'a mut V,
        limits: Limits<'a>,
    ) -> Self {
        let stack = rows.stack();
        Self { plan, rows, visitor, limits, stack, frames: Vec::new(), credit: 0, visited: 0 }
    }

    /// How many states were visited, if they are limited.
    pub(super) const fn visited(&self) -> u64 {
        self.visited
    }

    /// Visits the states of the plan's tasks with these numbers.
    pub(super) fn visit(&mut self, acc: V::Acc, numbers: Range<u64>) -> ControlFlow<Halt> {
        vector::run(Visit { driver: self, acc, numbers })
    }

    #[inline(always)]
    fn start(&mut self, mut acc: V::Acc) -> V::Acc {
        for &(chain, index) in &self.plan.fixed {
            acc = self.visitor.step(acc, chain, index);
        }
        self.frames.clear();
        self.frames.resize(self.plan.levels.len(), Frame { next: 0, high: 0, acc });
        acc
    }

    /// Gives the chain at `level` its number of events.
    #[inline(always)]
    fn enter(&mut self, acc: V::Acc, level: usize, index: u32) -> V::Acc {
        let (chain, least) = self.plan.levels[level];
        self.rows.enter(&mut self.stack, level, index);
        self.visitor.step(acc, chain, least + index)
    }

    /// The states of the tasks with these numbers.
    #[inline(always)]
    fn tasks(&mut self, acc: V::Acc, numbers: Range<u64>) -> ControlFlow<Halt> {
        let tasks = &self.plan.tasks;
        let mut number = numbers.start;
        let mut outer = tasks.outer_of(number);
        while number < numbers.end {
            let range = tasks.range_of(outer);
            let end = range.end.min(numbers.end);
            let acc = if tasks.depth > 0 { self.enter(acc, 0, outer) } else { acc };
            let low = if tasks.depth > 1 { self.rows.window(&self.stack, 1, 1)[0] } else { 0 };
            for second in number - range.start..end - range.start {
                let acc =
                    if tasks.depth > 1 { self.enter(acc, 1, low + second as u32) } else { acc };
                self.below(acc, tasks.depth)?;
            }
            number = end;
            outer += 1;
        }
        ControlFlow::Continue(())
    }

    /// The states of which the chains before `base` have their numbers.
    #[inline(always)]
    fn below(&mut self, acc: V::Acc, base: usize) -> ControlFlow<Halt> {
        let width = self.plan.levels.len();
        if width < base + 2 {
            return self.single_run(acc, base);
        }
        if width == base + 2 {
            let second = self.rows.window(&self.stack, base, base);
            return self.pair(acc, second, self.rows.window(&self.stack, base, base + 1));
        }
        let mut level = base;
        let [next, high] = self.rows.window(&self.stack, level, level);
        self.frames[level] = Frame { next, high, acc };
        loop {
            let frame = &mut self.frames[level];
            if level + 3 == width {
                let frame = *frame;
                self.inner(frame, level)?;
            } else if frame.next <= frame.high {
                let (acc, index) = (frame.acc, frame.next);
                frame.next += 1;
                let acc = self.enter(acc, level, index);
                level += 1;
                let [next, high] = self.rows.window(&self.stack, level, level);
                self.frames[level] = Frame { next, high, acc };
                continue;
            }
            if level == base {
                return ControlFlow::Continue(());
            }
            level -= 1;
        }
    }

    /// The states of which all chains have their numbers but the last three, the first of which is
    /// at `level`.
    #[inline(always)]
    fn inner(&mut self, frame: Frame<V::Acc>, level: usize) -> ControlFlow<Halt> {
        let (chain, least) = self.plan.levels[level];
        for index in frame.next..=frame.high {
            let acc = self.visitor.step(frame.acc, chain, least + index);
            let [second, last] = self.rows.inner(&self.stack, level, index);
            self.pair(acc, second, last)?;
        }
        ControlFlow::Continue(())
    }

    /// The states of the last two chains within these windows.
    #[inline(always)]
    fn pair(&mut self, acc: V::Acc, second: [u32; 2], last: [u32; 2]) -> ControlFlow<Halt> {
        let tables = self.plan.pair.as_ref().expect("a pair is of two chains");
        let mut pair = tables.pair(second, last);
        let states_max = u64::from(pair.rows_count()) * u64::from(pair.run_max());
        if states_max <= self.credit {
            // A place of its own for what nearly always happens: a fifth faster.
            self.credit -= states_max;
            return by_visitor(self.visitor.pair(acc, &pair));
        }
        loop {
            self.look_at_limits(&mut pair)?;
            if self.limits.states.is_some_and(|most| self.visited > most) {
                return self.last_runs(acc, &pair);
            }
            by_visitor(self.visitor.pair(acc, &pair))?;
            if pair.second[1] == second[1] {
                return ControlFlow::Continue(());
            }
            pair.second = [pair.second[1] + 1, second[1]];
        }
    }

    /// Stops if told so. Else leaves so many rows of `pair` that it will be asked again soon enough;
    /// and there is credit, unless states are limited and so those of the pair are counted.
    #[cold]
    #[inline(never)]
    fn look_at_limits(&mut self, pair: &mut Pair<'_>) -> ControlFlow<Halt> {
        if self.limits.says_stop() {
            return ControlFlow::Break(Halt::Stop);
        }
        let rows_max = (STATES_BETWEEN / u64::from(pair.run_max())).max(1) as u32;
        let [first, last] = pair.second;
        pair.second[1] = last.min(first.saturating_add(rows_max - 1));
        match self.limits.states {
            None => self.credit = STATES_BETWEEN,
            Some(_) => self.visited += pair.states_count(),
        }
        ControlFlow::Continue(())
    }

    /// The runs of a pair up to the limit that it is counted past.
    fn last_runs(&mut self, acc: V::Acc, pair: &Pair<'_>) -> ControlFlow<Halt> {
        let most = self.limits.states.unwrap_or(u64::MAX);
        let mut left = pair.states_count() - (self.visited - most);
        self.visited = most;
        for (index, low, high) in pair.runs() {
            if left == 0 {
                break;
            }
            let count = left.min(u64::from(high - low) + 1);
            left -= count;
            let acc = self.visitor.step(acc, pair.chain(), index);
            by_visitor(self.visitor.run(acc, low, low + (count - 1) as u32))?;
        }
        ControlFlow::Break(Halt::States)
    }

    /// The states of one chain, or of none.
    fn single_run(&mut self, acc: V::Acc, level: usize) -> ControlFlow<Halt> {
        let (mut low, mut high) = (0, 0);
        if let Some(&(_, least)) = self.plan.levels.get(level) {
            [low, high] = self.rows.window(&self.stack, level, level).map(|index| least + index);
        }
        if self.limits.says_stop() {
            return ControlFlow::Break(Halt::Stop);
        }
        let count = u64::from(high - low) + 1;
        let most = self.limits.states.unwrap_or(count).min(count);
        self.visited = most;
        if most > 0 {
            by_visitor(self.visitor.run(acc, low, low + (most - 1) as u32))?;
        }
        if most < count { ControlFlow::Break(Halt::States) } else { ControlFlow::Continue(()) }
    }
}

#[inline(always)]
fn by_visitor(flow: ControlFlow<()>) -> ControlFlow<Halt> {
    match flow {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(()) => ControlFlow::Break(Halt::Visitor),
    }
}

/// A walk to be done with the widest vector instructions there are.
struct Visit<'d, 'a, R: CsrTable, V: Visitor> {
    driver: &'d mut Driver<'a, R, V>,
    acc: V::Acc,
    numbers: Range<u64>,
}

impl<R: CsrTable, V: Visitor> vector::Work for Visit<'_, '_, R, V> {
    type Output = ControlFlow<Halt>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let acc = self.driver.start(self.acc);
        self.driver.tasks(acc, self.numbers)
    }
}

/// The pieces of work that a walk can be cut into, in its order: one for each choice of numbers of
/// the first two chains, as far as there are two more. They are numbered.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    /// How many chains have their numbers.
    depth: usize,
    /// How many tasks there are before each number of the first chain, and in all.
    before: Vec<u64>,
}

impl Tasks {
    /// The tasks of so many chains, the first of which does `extent` events.
    pub(super) fn new<R: CsrTable>(rows: &R, width: usize, extent: u32) -> Self {
        let depth = width.saturating_sub(2).min(2);
        let mut stack = rows.stack();
        let mut before = vec![0];
        let mut count = 0;
        for index in 0..=if depth == 0 { 0 } else { extent } {
            count += if depth < 2 {
                1
            } else {
                rows.enter(&mut stack, 0, index);
                let [low, high] = rows.window(&stack, 1, 1);
                u64::from(high - low) + 1
            };
            before.push(count);
        }
        Self { depth, before }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// The number of events of the first chain in task `number`.
    fn outer_of(&self, number: u64) -> u32 {
        (self.before.partition_point(|&before| before <= number) - 1) as u32
    }

    /// The tasks in which the first chain has done `outer` events.
    fn range_of(&self, outer: u32) -> Range<u64> {
        self.before[outer as usize]..self.before[outer as usize + 1]
    }
}
