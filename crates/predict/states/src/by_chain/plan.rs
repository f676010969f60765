//! The tables of an enumeration, and the enumeration itself: chain by chain down to the last two.

mod least;

use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reweave_base::Id;
use reweave_order::poset::{ChainId, Poset};

use super::{EarlyEnd, Join, Limits, Visitor};
use crate::enumerate::Bounds;
use crate::tables::Tables;

pub use least::{Least, least};

/// The tables of the states of a poset within bounds, for any number of enumerations.
#[derive(Clone, Debug)]
pub struct Plan {
    /// None if there are no states.
    layout: Option<Layout>,
    /// The states that are enumerated.
    bounds: Bounds,
}

#[derive(Clone, Debug)]
struct Layout {
    /// The chains that vary, outermost first, and the number of events of each in the least state.
    levels: Vec<(ChainId, u32)>,
    /// The other chains, which have the same number of events in all states.
    fixed: Vec<(ChainId, u32)>,
    /// Of the last two levels, if there are two.
    pair: Option<PairTables>,
    tasks: Tasks,
    rows: Rows,
}

/// The rows that a plan has.
#[derive(Clone, Debug)]
enum Rows {
    Narrow(Narrow),
    Wide(Wide),
}

impl Plan {
    /// The plan of the states of `poset` within `bounds`.
    ///
    /// # Panics
    /// If `bounds` do not have one number per chain.
    #[must_use]
    pub fn new(poset: &Poset, bounds: &Bounds) -> Self {
        Self::with(poset, bounds, Narrow::new)
    }

    /// As [`new`](Self::new), with wide rows even where narrow ones would do. Slower.
    ///
    /// # Panics
    /// If `bounds` do not have one number per chain.
    #[must_use]
    pub fn wide(poset: &Poset, bounds: &Bounds) -> Self {
        Self::with(poset, bounds, |_| None)
    }

    fn with(
        poset: &Poset,
        bounds: &Bounds,
        narrow: impl FnOnce(&Tables<u32>) -> Option<Narrow>,
    ) -> Self {
        let Some(bounds) = tightened(poset, bounds) else {
            return Self { layout: None, bounds: bounds.clone() };
        };
        let least = |chain: ChainId| (chain, bounds.least[chain.index()]);
        let varies = |chain: &ChainId| bounds.least[chain.index()] < bounds.greatest[chain.index()];
        let (mut varying, mut fixed): (Vec<_>, Vec<_>) = poset.chains().partition(varies);
        if varying.is_empty() {
            // There is one state, and some chain must be the run of the visitor.
            varying.extend(fixed.pop());
        }
        let tables = Tables::<u32>::within(poset, varying, &bounds);
        let order = widest_last(&tables);
        let tables = Tables::<u32>::within(poset, order, &bounds);
        let (width, length) = (tables.width(), tables.lengths.first().copied().unwrap_or(0));
        let pair = (width >= 2).then(|| PairTables::new(&tables, &bounds.least));
        let levels = tables.order.iter().copied().map(least).collect();
        let (rows, tasks) = match narrow(&tables) {
            Some(rows) => {
                let tasks = Tasks::new(&rows, width, length);
                (Rows::Narrow(rows), tasks)
            }
            None => {
                let rows = Wide { tables };
                let tasks = Tasks::new(&rows, width, length);
                (Rows::Wide(rows), tasks)
            }
        };
        let fixed = fixed.into_iter().map(least).collect();
        Self { layout: Some(Layout { levels, fixed, pair, tasks, rows }), bounds }
    }

    /// The least and the greatest of the states; if there are none, what was asked for.
    #[must_use]
    pub const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Whether there are no states.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.layout.is_none()
    }

    /// The last chain, whose numbers of events make runs. None if there are no chains or no states.
    #[must_use]
    pub fn last(&self) -> Option<ChainId> {
        let &(chain, _) = self.layout.as_ref()?.levels.last()?;
        Some(chain)
    }

    /// Enumerates all states on this thread; `acc` is what is known before any chain has its
    /// number.
    ///
    /// # Errors
    /// Why not all states were visited.
    pub fn visit<V: Visitor>(
        &self,
        visitor: &mut V,
        acc: V::Acc,
        limits: &Limits<'_>,
    ) -> Result<(), EarlyEnd> {
        let Some(layout) = &self.layout else { return Ok(()) };
        let tasks = 0..layout.tasks.count();
        let flow = match &layout.rows {
            Rows::Narrow(rows) => Driver::new(layout, rows, visitor, *limits).visit(acc, tasks),
            Rows::Wide(rows) => Driver::new(layout, rows, visitor, *limits).visit(acc, tasks),
        };
        flow.break_value().map_or(Ok(()), Err)
    }

    /// Enumerates all states on the current thread pool. Each task group has a copy of `empty`, and
    /// they are joined in the order of the enumeration.
    ///
    /// # Errors
    /// What was gathered, and why not all states were visited. That is what [`visit`](Self::visit)
    /// gathers with the same limits, unless it was asked to stop. To know where the limit on states
    /// is, some may be visited in vain.
    pub fn gather<V>(&self, empty: &V, acc: V::Acc, limits: &Limits<'_>) -> Result<V, (V, EarlyEnd)>
    where
        V: Join + Clone + Send + Sync,
        V::Acc: Send + Sync,
    {
        let Some(layout) = &self.layout else { return Ok(empty.clone()) };
        match &layout.rows {
            Rows::Narrow(rows) => Parallel { layout, rows, empty, acc, limits }.gather(),
            Rows::Wide(rows) => Parallel { layout, rows, empty, acc, limits }.gather(),
        }
    }
}

/// The least and the greatest state within `bounds`, if there is a state: the least cut with all
/// that it needs, and of the greatest cut the events that have all they need.
fn tightened(poset: &Poset, bounds: &Bounds) -> Option<Bounds> {
    let width = poset.chains_count();
    assert_eq!(bounds.least.len(), width, "the least state has one number per chain");
    assert_eq!(bounds.greatest.len(), width, "the greatest state has one number per chain");
    let lengths = poset.top();
    if bounds.least.iter().zip(&lengths).any(|(least, length)| least > length) {
        return None;
    }
    let mut least = bounds.least.clone();
    for (chain, &index) in poset.chains().zip(&bounds.least) {
        for (own, &needed) in least.iter_mut().zip(poset.clock(chain, index)) {
            *own = (*own).max(needed);
        }
    }
    let cut: Vec<u32> =
        bounds.greatest.iter().zip(&lengths).map(|(&most, &length)| most.min(length)).collect();
    let mut greatest = cut.clone();
    for (chain, most) in poset.chains().zip(&mut greatest) {
        let has_all = |index: u32| poset.clock(chain, index).iter().zip(&cut).all(|(a, b)| a <= b);
        while !has_all(*most) {
            *most -= 1;
        }
    }
    let is_one = least.iter().zip(&greatest).all(|(least, greatest)| least <= greatest);
    is_one.then_some(Bounds { least, greatest })
}

/// The chains by the sizes of their ranges, summed over all numbers of events of all other chains.
fn widest_last(tables: &Tables<u32>) -> Vec<ChainId> {
    let width = tables.width();
    let mut sizes = vec![0_u64; width];
    for (place, &length) in tables.lengths.iter().enumerate() {
        for index in 0..=length {
            let ranges = tables.low(place, index).iter().zip(tables.high(place, index));
            for (size, (low, high)) in sizes.iter_mut().zip(ranges) {
                *size += u64::from(high - low) + 1;
            }
        }
        // Its range under its own number is that number.
        sizes[place] -= u64::from(length) + 1;
    }
    let mut places: Vec<usize> = (0..width).collect();
    places.sort_by_key(|&place| sizes[place]);
    places.into_iter().map(|place| tables.order[place]).collect()
}

/// Into how many groups the tasks of a parallel enumeration are put, at most.
const GROUPS_MAX: u64 = 4096;

/// An enumeration on several threads.
///
/// The task groups depend on the plan alone. The threads take them in the order of the enumeration,
/// by one counter. If a group ends early, no more are taken; since all before it were, what is
/// joined is what one thread would have gathered, up to the same state. Only when asked to stop
/// from outside does the result depend on timing.
struct Parallel<'a, R, V: Visitor> {
    layout: &'a Layout,
    rows: &'a R,
    empty: &'a V,
    acc: V::Acc,
    limits: &'a Limits<'a>,
}

/// What came of a task group.
struct GroupDone<V> {
    group: u64,
    visitor: V,
    visited: u64,
    ended: Option<EarlyEnd>,
}

impl<R: RangeTable, V> Parallel<'_, R, V>
where
    V: Join + Clone + Send + Sync,
    V::Acc: Send + Sync,
{
    fn gather(&self) -> Result<V, (V, EarlyEnd)> {
        let next = AtomicU64::new(0);
        let visited = AtomicU64::new(0);
        let is_over = AtomicBool::new(false);
        let all_done = Mutex::new(Vec::new());
        let work = || {
            while !is_over.load(Ordering::Relaxed) {
                let group = next.fetch_add(1, Ordering::Relaxed);
                if self.tasks_of(group).is_empty() {
                    break;
                }
                let done = self.visit(group, self.limits.states);
                let visited = visited.fetch_add(done.visited, Ordering::Relaxed) + done.visited;
                if done.ended.is_some() || self.limits.states.is_some_and(|most| visited > most) {
                    is_over.store(true, Ordering::Relaxed);
                }
                // A thread that panicked has left the list whole.
                all_done.lock().unwrap_or_else(|poison| poison.into_inner()).push(done);
            }
        };
        rayon::scope(|scope| {
            for _ in 0..rayon::current_num_threads() {
                scope.spawn(|_| work());
            }
        });
        let mut all_done = all_done.into_inner().unwrap_or_else(|poison| poison.into_inner());
        all_done.sort_unstable_by_key(|done: &GroupDone<V>| done.group);
        self.joined(all_done)
    }

    /// The tasks of a group; none if there are no more groups.
    fn tasks_of(&self, group: u64) -> Range<u64> {
        let count = self.layout.tasks.count();
        let size = count.div_ceil(GROUPS_MAX).max(1);
        let start = group.saturating_mul(size).min(count);
        start..start.saturating_add(size).min(count)
    }

    fn visit(&self, group: u64, states_max: Option<u64>) -> GroupDone<V> {
        let mut visitor = self.empty.clone();
        let limits = Limits { states: states_max, ..*self.limits };
        let mut driver = Driver::new(self.layout, self.rows, &mut visitor, limits);
        let ended = driver.visit(self.acc, self.tasks_of(group)).break_value();
        let visited = driver.visited;
        GroupDone { group, visitor, visited, ended }
    }

    /// All that was gathered, in order, up to where one thread would have ended.
    fn joined(&self, all_done: Vec<GroupDone<V>>) -> Result<V, (V, EarlyEnd)> {
        let mut gathered = self.empty.clone();
        let mut left = self.limits.states;
        let mut is_stopped = false;
        for mut done in all_done {
            if left.is_some_and(|left| done.visited > left) {
                // It did not know how many states the groups before it would visit.
                done = self.visit(done.group, left);
            }
            gathered.join(done.visitor);
            left = left.map(|left| left.saturating_sub(done.visited));
            match done.ended {
                None => {}
                Some(EarlyEnd::Stop) => is_stopped = true,
                Some(ended) => return Err((gathered, ended)),
            }
        }
        if is_stopped { Err((gathered, EarlyEnd::Stop)) } else { Ok(gathered) }
    }
}

/// About how many states are visited before the limits are checked.
const STATES_BETWEEN: u64 = 1 << 20;

/// One enumeration, or the tasks of one group.
struct Driver<'a, R: RangeTable, V: Visitor> {
    layout: &'a Layout,
    rows: &'a R,
    visitor: &'a mut V,
    limits: Limits<'a>,
    stack: R::Stack,
    frames: Vec<Frame<V::Acc>>,
    /// How many states may be visited, at most, before the limits are checked.
    credit: u64,
    /// How many were visited, if they are limited.
    visited: u64,
}

/// Where the enumeration is at a level: the next number of events, the last one, and what is known
/// of the chains before.
#[derive(Clone, Copy)]
struct Frame<A> {
    next: u32,
    high: u32,
    acc: A,
}

impl<'a, R: RangeTable, V: Visitor> Driver<'a, R, V> {
    fn new(layout: &'a Layout, rows: &'a R, visitor: &'a mut V, limits: Limits<'a>) -> Self {
        let stack = rows.stack();
        Self { layout, rows, visitor, limits, stack, frames: Vec::new(), credit: 0, visited: 0 }
    }

    /// Visits the states of the tasks with these numbers.
    fn visit(&mut self, acc: V::Acc, numbers: Range<u64>) -> ControlFlow<EarlyEnd> {
        run_vectorized(Visit { driver: self, acc, numbers })
    }

    #[inline(always)]
    fn start(&mut self, mut acc: V::Acc) -> V::Acc {
        for &(chain, index) in &self.layout.fixed {
            acc = self.visitor.step(acc, chain, index);
        }
        self.frames.clear();
        self.frames.resize(self.layout.levels.len(), Frame { next: 0, high: 0, acc });
        acc
    }

    /// Gives the chain at `level` its number of events.
    #[inline(always)]
    fn enter(&mut self, acc: V::Acc, level: usize, index: u32) -> V::Acc {
        let (chain, least) = self.layout.levels[level];
        self.rows.enter(&mut self.stack, level, index);
        self.visitor.step(acc, chain, least + index)
    }

    /// The states of the tasks with these numbers.
    #[inline(always)]
    fn tasks(&mut self, acc: V::Acc, numbers: Range<u64>) -> ControlFlow<EarlyEnd> {
        let tasks = &self.layout.tasks;
        let mut number = numbers.start;
        let mut outer = tasks.outer_of(number);
        while number < numbers.end {
            let range = tasks.range_of(outer);
            let end = range.end.min(numbers.end);
            let acc = if tasks.depth > 0 { self.enter(acc, 0, outer) } else { acc };
            let low = if tasks.depth > 1 { self.rows.range(&self.stack, 1, 1)[0] } else { 0 };
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

    /// The states of which the chains before level `base` have their numbers.
    #[inline(always)]
    fn below(&mut self, acc: V::Acc, base: usize) -> ControlFlow<EarlyEnd> {
        let width = self.layout.levels.len();
        if width < base + 2 {
            return self.single_run(acc, base);
        }
        if width == base + 2 {
            let second = self.rows.range(&self.stack, base, base);
            return self.pair(acc, second, self.rows.range(&self.stack, base, base + 1));
        }
        let mut level = base;
        let [next, high] = self.rows.range(&self.stack, level, level);
        self.frames[level] = Frame { next, high, acc };
        loop {
            let frame = &mut self.frames[level];
            if level + 3 == width {
                let frame = *frame;
                self.innermost(frame, level)?;
            } else if frame.next <= frame.high {
                let (acc, index) = (frame.acc, frame.next);
                frame.next += 1;
                let acc = self.enter(acc, level, index);
                level += 1;
                let [next, high] = self.rows.range(&self.stack, level, level);
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
    /// at `level`. Only the ranges of the last two are computed, not a whole row.
    #[inline(always)]
    fn innermost(&mut self, frame: Frame<V::Acc>, level: usize) -> ControlFlow<EarlyEnd> {
        let (chain, least) = self.layout.levels[level];
        for index in frame.next..=frame.high {
            let acc = self.visitor.step(frame.acc, chain, least + index);
            let [second, last] = self.rows.last_two(&self.stack, level, index);
            self.pair(acc, second, last)?;
        }
        ControlFlow::Continue(())
    }

    /// The states of the last two chains within these ranges.
    #[inline(always)]
    fn pair(&mut self, acc: V::Acc, second: [u32; 2], last: [u32; 2]) -> ControlFlow<EarlyEnd> {
        let tables = self.layout.pair.as_ref().expect("a pair is of two chains");
        let mut pair = Pair { tables, second, last };
        let states_max = u64::from(pair.rows_count()) * u64::from(pair.run_max());
        if states_max <= self.credit {
            // The common case has a call of its own, which makes it a fifth faster.
            self.credit -= states_max;
            return by_visitor(self.visitor.pair(acc, &pair));
        }
        loop {
            self.check_limits(&mut pair)?;
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

    /// Ends if asked to stop. Else cuts `pair` to so many rows that the next check comes soon
    /// enough, and renews the credit; with a limit on states there is no credit, and those of the
    /// pair are counted instead.
    #[cold]
    #[inline(never)]
    fn check_limits(&mut self, pair: &mut Pair<'_>) -> ControlFlow<EarlyEnd> {
        if self.limits.says_stop() {
            return ControlFlow::Break(EarlyEnd::Stop);
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

    /// The runs of a pair up to the limit that its count exceeds.
    fn last_runs(&mut self, acc: V::Acc, pair: &Pair<'_>) -> ControlFlow<EarlyEnd> {
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
        ControlFlow::Break(EarlyEnd::States)
    }

    /// The states of one chain, or of none.
    fn single_run(&mut self, acc: V::Acc, level: usize) -> ControlFlow<EarlyEnd> {
        let (mut low, mut high) = (0, 0);
        if let Some(&(_, least)) = self.layout.levels.get(level) {
            [low, high] = self.rows.range(&self.stack, level, level).map(|index| least + index);
        }
        if self.limits.says_stop() {
            return ControlFlow::Break(EarlyEnd::Stop);
        }
        let count = u64::from(high - low) + 1;
        let most = self.limits.states.unwrap_or(count).min(count);
        self.visited = most;
        if most > 0 {
            by_visitor(self.visitor.run(acc, low, low + (most - 1) as u32))?;
        }
        if most < count { ControlFlow::Break(EarlyEnd::States) } else { ControlFlow::Continue(()) }
    }
}

#[inline(always)]
fn by_visitor(flow: ControlFlow<()>) -> ControlFlow<EarlyEnd> {
    match flow {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(()) => ControlFlow::Break(EarlyEnd::Visitor),
    }
}

/// The tasks that an enumeration can be split into, in its order: one for each choice of numbers of
/// the first two chains, as far as there are two more. They are numbered.
#[derive(Clone, Debug)]
struct Tasks {
    /// How many chains have their numbers in a task.
    depth: usize,
    /// How many tasks there are before each number of the first chain, and in all.
    before: Vec<u64>,
}

impl Tasks {
    /// The tasks of so many chains, the first of which has `length` events.
    fn new<R: RangeTable>(rows: &R, width: usize, length: u32) -> Self {
        let depth = width.saturating_sub(2).min(2);
        let mut stack = rows.stack();
        let mut before = vec![0];
        let mut count = 0;
        for index in 0..=if depth == 0 { 0 } else { length } {
            count += if depth < 2 {
                1
            } else {
                rows.enter(&mut stack, 0, index);
                let [low, high] = rows.range(&stack, 1, 1);
                u64::from(high - low) + 1
            };
            before.push(count);
        }
        Self { depth, before }
    }

    fn count(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// The number of events of the first chain in task `number`.
    fn outer_of(&self, number: u64) -> u32 {
        (self.before.partition_point(|&before| before <= number) - 1) as u32
    }

    /// The tasks in which the first chain has run `outer` events.
    fn range_of(&self, outer: u32) -> Range<u64> {
        self.before[outer as usize]..self.before[outer as usize + 1]
    }
}

/// For a number of events of the second-to-last chain, the range of the last one.
#[derive(Clone, Copy, Debug)]
struct Column {
    low: u32,
    high: u32,
}

/// All of the last two chains that does not depend on the others.
#[derive(Clone, Debug)]
struct PairTables {
    chain: ChainId,
    /// The number of events of each chain in the least state; all else counts from there.
    least: [u32; 2],
    columns: Vec<Column>,
    /// Prefix sums over the columns of the low and of the high ends.
    sums: Vec<[u64; 2]>,
    /// For each number of the last chain, the first column that allows as many, and the first that
    /// needs more.
    thresholds: Vec<[u32; 2]>,
}

impl PairTables {
    /// The tables of the last two of at least two chains; `least` is by chain.
    fn new(tables: &Tables<u32>, least: &[u32]) -> Self {
        let [second, last] = [tables.width() - 2, tables.width() - 1];
        let columns: Vec<Column> = (0..=tables.lengths[second])
            .map(|index| Column {
                low: tables.low(second, index)[last],
                high: tables.high(second, index)[last],
            })
            .collect();
        let mut sums = vec![[0, 0]];
        let [mut low, mut high] = [0, 0];
        for column in &columns {
            low += u64::from(column.low);
            high += u64::from(column.high);
            sums.push([low, high]);
        }
        let thresholds = (0..=tables.lengths[last])
            .map(|index| [tables.low(last, index)[second], tables.high(last, index)[second] + 1])
            .collect();
        let chain = tables.order[second];
        let least = [second, last].map(|place| least[tables.order[place].index()]);
        Self { chain, least, columns, sums, thresholds }
    }
}

/// States that differ in the last two chains only: rows, one for each number of events of the
/// second-to-last, each a run of the last.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    tables: &'a PairTables,
    /// The ranges of the two, each a low and a high number.
    second: [u32; 2],
    last: [u32; 2],
}

impl Pair<'_> {
    /// The chain whose number of events makes a row.
    #[must_use]
    pub const fn chain(&self) -> ChainId {
        self.tables.chain
    }

    /// How many rows there are.
    #[inline(always)]
    #[must_use]
    pub const fn rows_count(&self) -> u32 {
        self.second[1] - self.second[0] + 1
    }

    /// The most states that a row can have.
    #[inline(always)]
    #[must_use]
    pub const fn run_max(&self) -> u32 {
        self.last[1] - self.last[0] + 1
    }

    /// The least number of events that makes a row.
    #[inline(always)]
    #[must_use]
    pub const fn first_row(&self) -> u32 {
        self.second[0] + self.tables.least[0]
    }

    /// The rows: the number of events that makes each, and its run, the least and the greatest
    /// number of the last chain.
    #[inline(always)]
    pub fn runs(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let [first, last] = self.second.map(|index| index as usize);
        let [low, high] = self.last;
        let run_least = self.tables.least[1];
        let columns = self.tables.columns[first..=last].iter();
        columns.zip(self.first_row()..).map(move |(column, index)| {
            let low = column.low.max(low) + run_least;
            (index, low, column.high.min(high) + run_least)
        })
    }

    /// How many states there are, in closed form. Both ends of a column's range grow with it. So
    /// the low end of a run is that of the pair's own range up to some column and the column's from
    /// there on; and the high end is the column's first and the pair's own later.
    #[inline(always)]
    #[must_use]
    pub fn states_count(&self) -> u64 {
        let [first, end] = [self.second[0], self.second[1] + 1];
        let [low, high] = self.last;
        let needs_more = self.tables.thresholds[low as usize][1].clamp(first, end);
        let allows_all = self.tables.thresholds[high as usize][0].clamp(first, end);
        let sums = |column: u32| self.tables.sums[column as usize];
        let highs =
            sums(allows_all)[1] - sums(first)[1] + u64::from(high) * u64::from(end - allows_all);
        let lows =
            sums(end)[0] - sums(needs_more)[0] + u64::from(low) * u64::from(needs_more - first);
        highs + u64::from(end - first) - lows
    }
}

/// How many chains have narrow rows.
const LANES: usize = 16;

/// For each chain and number of its events a row: the ranges that it leaves to all chains. Levels
/// are chains, outermost first; numbers count from the least state. A stack has, for each level,
/// the ranges once the chains before it have their numbers.
trait RangeTable: Sync {
    /// The ranges of each level.
    type Stack;

    /// A stack that has the ranges of level 0.
    fn stack(&self) -> Self::Stack;

    /// The range of the chain at level `of`, as it is at `level`.
    fn range(&self, stack: &Self::Stack, level: usize, of: usize) -> [u32; 2];

    /// Computes the ranges of the level after `level`, whose chain has run `index` events.
    fn enter(&self, stack: &mut Self::Stack, level: usize, index: u32);

    /// The ranges of the last two chains once the one before them, at `level`, has run `index`
    /// events.
    fn last_two(&self, stack: &Self::Stack, level: usize, index: u32) -> [[u32; 2]; 2];
}

/// A low and a high number for each of 16 chains, the last of them in the last lane.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Row {
    low: [u16; LANES],
    high: [u16; LANES],
}

const _: () = assert!(size_of::<Row>() == 64, "a row is a cache line");

impl Row {
    const ZERO: Self = Self { low: [0; LANES], high: [0; LANES] };

    #[inline(always)]
    fn intersected(&self, with: &Self) -> Self {
        let mut row = Self::ZERO;
        for lane in 0..LANES {
            row.low[lane] = self.low[lane].max(with.low[lane]);
            row.high[lane] = self.high[lane].min(with.high[lane]);
        }
        row
    }
}

/// Rows of up to 16 chains of up to 65 535 events.
#[derive(Clone, Debug)]
struct Narrow {
    /// How many lanes before the first are not used.
    skipped: usize,
    /// Where the rows of each level start.
    starts: [usize; LANES],
    rows: Vec<Row>,
    first: Row,
}

impl Narrow {
    /// The tables as narrow rows, if they fit: at least 3 chains, so that there is a level before
    /// the last two.
    fn new(tables: &Tables<u32>) -> Option<Self> {
        let width = tables.width();
        let is_short = tables.lengths.iter().all(|&length| length <= u32::from(u16::MAX));
        if !(3..=LANES).contains(&width) || !is_short {
            return None;
        }
        let skipped = LANES - width;
        let fill = |low: &[u32], high: &[u32]| {
            let mut row = Row::ZERO;
            for place in 0..width {
                row.low[skipped + place] = low[place] as u16;
                row.high[skipped + place] = high[place] as u16;
            }
            row
        };
        let mut starts = [0; LANES];
        let mut rows = Vec::new();
        for (place, &length) in tables.lengths.iter().enumerate() {
            starts[place] = rows.len();
            let row = |index| fill(tables.low(place, index), tables.high(place, index));
            rows.extend((0..=length).map(row));
        }
        let first = fill(&vec![0; width], &tables.lengths);
        Some(Self { skipped, starts, rows, first })
    }

    /// The remainder spares a bounds check: a level is below [`LANES`].
    #[inline(always)]
    fn row(&self, level: usize, index: u32) -> &Row {
        &self.rows[self.starts[level % LANES] + index as usize]
    }
}

impl RangeTable for Narrow {
    type Stack = [Row; LANES];

    fn stack(&self) -> Self::Stack {
        [self.first; LANES]
    }

    #[inline(always)]
    fn range(&self, stack: &Self::Stack, level: usize, of: usize) -> [u32; 2] {
        let row = &stack[level % LANES];
        let lane = (self.skipped + of) % LANES;
        [u32::from(row.low[lane]), u32::from(row.high[lane])]
    }

    #[inline(always)]
    fn enter(&self, stack: &mut Self::Stack, level: usize, index: u32) {
        stack[(level + 1) % LANES] = stack[level % LANES].intersected(self.row(level, index));
    }

    #[inline(always)]
    fn last_two(&self, stack: &Self::Stack, level: usize, index: u32) -> [[u32; 2]; 2] {
        let [ranges, row] = [&stack[level % LANES], self.row(level, index)];
        [LANES - 2, LANES - 1].map(|lane| {
            let low = ranges.low[lane].max(row.low[lane]);
            [u32::from(low), u32::from(ranges.high[lane].min(row.high[lane]))]
        })
    }
}

/// Rows of any number of chains of any length.
#[derive(Clone, Debug)]
struct Wide {
    tables: Tables<u32>,
}

impl Wide {
    /// The low ends of the chains from `level` on, as they are at that level.
    fn lows<'a>(&self, stack: &'a [u32], level: usize) -> &'a [u32] {
        let width = self.tables.width();
        let start = level * 2 * width;
        &stack[start + level..start + width]
    }
}

impl RangeTable for Wide {
    /// For each level the low ends of all chains, then the high ones.
    type Stack = Vec<u32>;

    fn stack(&self) -> Self::Stack {
        let width = self.tables.width();
        let mut stack = vec![0; 2 * width * width];
        if let Some(highs) = stack.get_mut(width..2 * width) {
            highs.copy_from_slice(&self.tables.lengths);
        }
        stack
    }

    #[inline(always)]
    fn range(&self, stack: &Self::Stack, level: usize, of: usize) -> [u32; 2] {
        let width = self.tables.width();
        let start = level * 2 * width + of;
        [stack[start], stack[start + width]]
    }

    #[inline(always)]
    fn enter(&self, stack: &mut Self::Stack, level: usize, index: u32) {
        let width = self.tables.width();
        let (above, below) = stack.split_at_mut((level + 1) * 2 * width);
        let (lows, highs) = above[level * 2 * width..].split_at(width);
        let (lows_below, highs_below) = below[..2 * width].split_at_mut(width);
        let pairs = lows.iter().zip(self.tables.low(level, index));
        for (to, (own, row)) in lows_below.iter_mut().zip(pairs).skip(level + 1) {
            *to = *own.max(row);
        }
        let pairs = highs.iter().zip(self.tables.high(level, index));
        for (to, (own, row)) in highs_below.iter_mut().zip(pairs).skip(level + 1) {
            *to = *own.min(row);
        }
    }

    #[inline(always)]
    fn last_two(&self, stack: &Self::Stack, level: usize, index: u32) -> [[u32; 2]; 2] {
        let width = self.tables.width();
        let ranges = &stack[level * 2 * width..(level + 1) * 2 * width];
        let [low, high] = [self.tables.low(level, index), self.tables.high(level, index)];
        [width - 2, width - 1]
            .map(|place| [ranges[place].max(low[place]), ranges[width + place].min(high[place])])
    }
}

/// Work that is compiled twice, once for the widest vector instructions. For that all of it must be
/// inlined into [`run`](Self::run).
trait Work {
    type Output;

    /// Does it. Marked `#[inline(always)]` where it is implemented.
    fn run(self) -> Self::Output;
}

struct Visit<'d, 'a, R: RangeTable, V: Visitor> {
    driver: &'d mut Driver<'a, R, V>,
    acc: V::Acc,
    numbers: Range<u64>,
}

impl<R: RangeTable, V: Visitor> Work for Visit<'_, '_, R, V> {
    type Output = ControlFlow<EarlyEnd>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let acc = self.driver.start(self.acc);
        self.driver.tasks(acc, self.numbers)
    }
}

/// Does `work` with the widest vector instructions that the processor has.
///
/// The compiler vectorizes the plain loops over rows of fixed length with the instructions that
/// every processor of the architecture has. On x86-64 those leave out AVX2, which nearly all have
/// today; so the work is compiled once more for it, and the choice is made at run time.
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "what is compiled for some processors runs on those alone")
)]
fn run_vectorized<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has all that the function is compiled for.
        return unsafe { run_wide(work) };
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn run_wide<W: Work>(work: W) -> W::Output {
    work.run()
}
