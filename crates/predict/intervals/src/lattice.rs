//! Reachable control pairs: where two threads can be at the same time.
//!
//! The question is asked of every two threads: which pairs of their points can the two be at
//! together, if nothing but their own locks, forks and joins counts? [`Lattice`] answers it by
//! walking the product of the two threads. A lock that one holds blocks the other's acquire, a
//! forked thread does not leave its entry before the fork, and a join waits for the other's end.
//!
//! Steps that nobody notices are contracted first: a point whose only step is [`Action::Local`]
//! is the same [`Location`] as the point where that leads.
//!
//! The answer errs to one side: a pair that some interleaving comes to is always among the
//! reachable ones. Guards, third threads and values are not looked at, and where the ways to a
//! point disagree, only locks that all of them hold are said to be held there.
//!
//! For two threads of m and n locations it takes O(m·n) time and 2·m·n bits.

use reweave_base::{BitRows, Id, IndexVec, bits};
use reweave_trace::{LockId, ThreadId};

use crate::ctp::{Action, Ctp, Point, StepId};

reweave_base::id! {
    /// Points of a thread that differ in steps that nobody notices.
    pub struct Location;
}

/// A step between locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Where it leads.
    pub to: Location,
    /// What it does.
    pub action: Action,
}

/// The locations of a thread.
#[derive(Clone, Debug)]
pub struct Locations {
    first_point: usize,
    of: Vec<Location>,
    moves: IndexVec<Location, Vec<Move>>,
    arrivals: Vec<Vec<Location>>,
    held: BitRows,
    may_hold: BitRows,
}

impl Locations {
    /// Contracts the points of `thread`.
    pub fn new(ctp: &Ctp, thread: ThreadId) -> Self {
        let points = &ctp.threads[thread].points;
        let first_point = points.start.index();
        let count = points.end.index() - first_point;
        let point = |index: usize| Point::from_index(first_point + index);

        // The last point of each location, found from behind since steps lead forward.
        let mut last: Vec<usize> = (0..count).collect();
        for index in (0..count).rev() {
            let mut steps = ctp.steps_from(point(index));
            if let (Some((_, step)), None) = (steps.next(), steps.next())
                && step.action == Action::Local
            {
                last[index] = last[step.to.index() - first_point];
            }
        }
        let mut number = vec![None; count];
        let mut moves: IndexVec<Location, Vec<Move>> = IndexVec::new();
        for index in (0..count).filter(|&index| last[index] == index) {
            number[index] = Some(moves.push(Vec::new()));
        }
        let of: Vec<Location> =
            last.iter().map(|&last| number[last].expect("a last point has a location")).collect();
        for index in (0..count).filter(|&index| last[index] == index) {
            moves[of[index]] = ctp
                .steps_from(point(index))
                .map(|(_, step)| Move {
                    to: of[step.to.index() - first_point],
                    action: step.action,
                })
                .collect();
        }
        let arrivals = arrivals(ctp, thread, &of);
        let (held, may_hold) = held(ctp, thread, &of, moves.len());
        Self { first_point, of, moves, arrivals, held, may_hold }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.moves.len()
    }

    /// Whether there are none, which no thread with a point has.
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    /// The location of `point`, which must be of this thread.
    #[inline]
    pub fn of(&self, point: Point) -> Location {
        self.of[point.index() - self.first_point]
    }

    /// The steps from `location`.
    pub fn moves(&self, location: Location) -> &[Move] {
        &self.moves[location]
    }

    /// Whether the thread ends at `location`.
    #[inline]
    pub fn is_end(&self, location: Location) -> bool {
        self.moves[location].is_empty()
    }

    /// From where a step that leaves its location comes to `point`, or to a point from which only
    /// steps that nobody notices lead to it.
    pub fn arrivals(&self, point: Point) -> &[Location] {
        &self.arrivals[point.index() - self.first_point]
    }

    /// The locks held at `location`, one bit each.
    #[inline]
    pub fn held(&self, location: Location) -> &[u64] {
        self.held.row(location.index())
    }

    /// For each lock the locations at which some path holds it, one bit each.
    #[inline]
    pub fn may_hold(&self, lock: LockId) -> &[u64] {
        self.may_hold.row(lock.index())
    }

    fn holds(&self, location: Location, lock: LockId) -> bool {
        self.held.has(location.index(), lock.index())
    }

    /// The locations that the thread can be at after it forked `child`.
    fn after_fork(&self, child: ThreadId) -> Vec<bool> {
        let mut after = vec![false; self.len()];
        for (location, moves) in self.moves.entries() {
            for next in moves {
                after[next.to.index()] |=
                    after[location.index()] || next.action == Action::Fork(child);
            }
        }
        after
    }
}

fn arrivals(ctp: &Ctp, thread: ThreadId, of: &[Location]) -> Vec<Vec<Location>> {
    let first_point = ctp.threads[thread].points.start.index();
    let mut arrivals: Vec<Vec<Location>> = vec![Vec::new(); of.len()];
    for (_, step) in ctp.steps_of(thread) {
        let (from, to) = (step.from.index() - first_point, step.to.index() - first_point);
        let more = if of[from] == of[to] { arrivals[from].clone() } else { vec![of[from]] };
        arrivals[to].extend(more);
        arrivals[to].sort_unstable();
        arrivals[to].dedup();
    }
    arrivals
}

/// For each location the locks that every path to its end holds, and for each lock the locations that
/// some path holds it at.
fn held(
    ctp: &Ctp,
    thread: ThreadId,
    of: &[Location],
    locations_count: usize,
) -> (BitRows, BitRows) {
    let locks_count = ctp.names.locks.len();
    let first_point = ctp.threads[thread].points.start.index();
    let mut every = BitRows::new(of.len(), locks_count);
    let mut some = BitRows::new(of.len(), locks_count);
    let mut is_known = vec![false; of.len()];
    if let Some(entry) = is_known.first_mut() {
        *entry = true;
    }
    for (_, step) in ctp.steps_of(thread) {
        let (from, to) = (step.from.index() - first_point, step.to.index() - first_point);
        if !is_known[from] {
            continue;
        }
        let (mut surely, mut maybe) = (every.row(from).to_vec(), some.row(from).to_vec());
        change(&mut surely, step.action);
        change(&mut maybe, step.action);
        bits::unite(some.row_mut(to), &maybe);
        let row = every.row_mut(to);
        if is_known[to] {
            row.iter_mut().zip(&surely).for_each(|(old, new)| *old &= new);
        } else {
            row.copy_from_slice(&surely);
        }
        is_known[to] = true;
    }
    // The last point of a location comes after the others, and has the locks of all paths to it.
    let mut held = BitRows::new(locations_count, locks_count);
    let mut may_hold = BitRows::new(locks_count, locations_count);
    for (index, location) in of.iter().enumerate() {
        held.row_mut(location.index()).copy_from_slice(every.row(index));
        let mut start = 0;
        while let Some(lock) = some.first_from(index, start) {
            may_hold.set(lock, location.index());
            start = lock + 1;
        }
    }
    (held, may_hold)
}

/// What a thread that held `locks` holds after `action`.
fn change(locks: &mut [u64], action: Action) {
    match action {
        Action::Acquire(lock) => locks[lock.index() / 64] |= 1 << (lock.index() % 64),
        Action::Release(lock) => locks[lock.index() / 64] &= !(1 << (lock.index() % 64)),
        _ => {}
    }
}

/// The pairs of locations of two threads that are reachable, from the first thread's side.
#[derive(Clone, Copy, Debug)]
pub struct Reach<'a> {
    rows: &'a BitRows,
}

impl<'a> Reach<'a> {
    /// Whether the first thread can be at `first` while the second is at `second`.
    #[inline]
    pub fn has(self, first: Location, second: Location) -> bool {
        self.rows.has(first.index(), second.index())
    }

    /// The locations that the second thread can be at while the first is at `first`, one bit each.
    #[inline]
    pub fn row(self, first: Location) -> &'a [u64] {
        self.rows.row(first.index())
    }
}

/// The reachable control pairs of all pairs of threads.
#[derive(Clone, Debug)]
pub struct Lattice {
    locations: IndexVec<ThreadId, Locations>,
    is_forked: IndexVec<ThreadId, bool>,
    forkers: IndexVec<ThreadId, Option<ThreadId>>,
    pairs: Vec<[BitRows; 2]>,
}

impl Lattice {
    /// Explores the pairs of threads of `ctp`.
    pub fn new(ctp: &Ctp) -> Self {
        let locations: IndexVec<ThreadId, Locations> =
            ctp.threads.ids().map(|thread| Locations::new(ctp, thread)).collect();
        let (is_forked, forkers) = forkers(ctp);
        let mut lattice = Self { locations, is_forked, forkers, pairs: Vec::new() };
        for second in ctp.threads.ids() {
            for first in ctp.threads.ids().take(second.index()) {
                let pair = lattice.explore(first, second);
                lattice.pairs.push(pair);
            }
        }
        lattice
    }

    /// The locations of `thread`.
    #[inline]
    pub fn locations(&self, thread: ThreadId) -> &Locations {
        &self.locations[thread]
    }

    /// Which pairs of locations of two different threads are reachable.
    ///
    /// # Panics
    /// If they are the same.
    #[inline]
    pub fn reach(&self, first: ThreadId, second: ThreadId) -> Reach<'_> {
        let (low, high) = (first.min(second).index(), first.max(second).index());
        assert!(low < high, "a pair of threads has two of them");
        let pair = &self.pairs[high * (high - 1) / 2 + low];
        Reach { rows: &pair[usize::from(first.index() == high)] }
    }

    /// Whether a step of some thread forks `thread`.
    pub fn is_forked(&self, thread: ThreadId) -> bool {
        self.is_forked[thread]
    }

    /// The child of `ancestor` that is, or has among those it forks in turn, `thread`.
    pub fn child_towards(&self, ancestor: ThreadId, thread: ThreadId) -> Option<ThreadId> {
        let mut child = thread;
        for _ in 0..self.forkers.len() {
            let parent = self.forkers[child]?;
            if parent == ancestor {
                return Some(child);
            }
            child = parent;
        }
        None
    }

    /// Whether `thread` may take a step with `action` from `location` while `other` is at `place`,
    /// as far as the two are concerned; `may_start` says that the fork is not missing.
    fn is_allowed(
        &self,
        step: (ThreadId, Location, Action),
        other: (ThreadId, Location),
        may_start: Option<&[bool]>,
    ) -> bool {
        let (thread, location, action) = step;
        let (other, place) = other;
        if location.index() == self.entry(thread).index()
            && may_start.is_some_and(|after| !after[place.index()])
        {
            return false;
        }
        match action {
            Action::Acquire(lock) => !self.locations[other].holds(place, lock),
            Action::Join(child) if child == other => self.locations[other].is_end(place),
            _ => true,
        }
    }

    fn entry(&self, thread: ThreadId) -> Location {
        self.locations[thread].of[0]
    }

    /// The locations of `ancestor` with which `thread` may have started, if that forks it.
    pub(crate) fn after_fork(&self, ancestor: ThreadId, thread: ThreadId) -> Option<Vec<bool>> {
        let child = self.child_towards(ancestor, thread)?;
        Some(self.locations[ancestor].after_fork(child))
    }

    fn explore(&self, first: ThreadId, second: ThreadId) -> [BitRows; 2] {
        let (rows, columns) = (&self.locations[first], &self.locations[second]);
        let mut reached =
            [BitRows::new(rows.len(), columns.len()), BitRows::new(columns.len(), rows.len())];
        if rows.is_empty() || columns.is_empty() {
            return reached;
        }
        let first_start = self.after_fork(second, first);
        let second_start = self.after_fork(first, second);
        reached[0].set(self.entry(first).index(), self.entry(second).index());
        for row in rows.moves.ids() {
            let mut column = 0;
            while let Some(index) = reached[0].first_from(row.index(), column) {
                let place = Location::from_index(index);
                reached[1].set(index, row.index());
                for next in rows.moves(row) {
                    let step = (first, row, next.action);
                    if self.is_allowed(step, (second, place), first_start.as_deref()) {
                        reached[0].set(next.to.index(), index);
                    }
                }
                for next in columns.moves(place) {
                    let step = (second, place, next.action);
                    if self.is_allowed(step, (first, row), second_start.as_deref()) {
                        reached[0].set(row.index(), next.to.index());
                    }
                }
                column = index + 1;
            }
        }
        reached
    }

    /// Whether two threads can come to a pair from which neither goes on, though not both have
    /// ended.
    pub fn has_deadlock(&self, first: ThreadId, second: ThreadId) -> bool {
        let (reach, rows) = (self.reach(first, second), &self.locations[first]);
        let columns = &self.locations[second];
        let goes_on = |row, column| {
            rows.moves(row).iter().any(|next| reach.has(next.to, column))
                || columns.moves(column).iter().any(|next| reach.has(row, next.to))
        };
        let has_ended = |row, column| rows.is_end(row) && columns.is_end(column);
        rows.moves.ids().any(|row| {
            columns.moves.ids().any(|column| {
                let is_fine = goes_on(row, column) || has_ended(row, column);
                reach.has(row, column) && !is_fine
            })
        })
    }
}

/// Whether each thread is forked, and by which thread, where there is just one that does.
fn forkers(ctp: &Ctp) -> (IndexVec<ThreadId, bool>, IndexVec<ThreadId, Option<ThreadId>>) {
    let mut is_forked = IndexVec::from_elem(false, ctp.threads.len());
    let mut forkers = IndexVec::from_elem(None, ctp.threads.len());
    for step in ctp.steps.iter() {
        let Action::Fork(child) = step.action else { continue };
        forkers[child] =
            Some(step.thread).filter(|&forker| !is_forked[child] || forkers[child] == Some(forker));
        is_forked[child] = true;
    }
    (is_forked, forkers)
}

// Positions of a straight-line thread.

/// A straight-line thread by its accesses: the steps that others can notice.
///
/// A *position* is a number of accesses made. Other steps belong to the access that follows, and
/// those at the end to the last one; a thread that has no other has them as its only access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StraightLine {
    /// The accesses, in order.
    pub accesses: Vec<StepId>,
    /// The point of each position, one more than accesses.
    pub points: Vec<Point>,
    locations: Vec<Location>,
}

impl StraightLine {
    /// The accesses of `thread`, which must be straight-line and have the given locations.
    pub fn new(ctp: &Ctp, locations: &Locations, thread: ThreadId) -> Self {
        let entry = ctp.threads[thread].points.start;
        let mut points = vec![entry];
        let mut accesses = Vec::new();
        let mut end = entry;
        while let Some((id, step)) = ctp.steps_from(end).next() {
            end = step.to;
            if step.action != Action::Local {
                accesses.push(id);
                points.push(step.to);
            }
        }
        if accesses.is_empty()
            && let Some((first, _)) = ctp.steps_from(entry).next()
        {
            accesses.push(first);
            points.push(end);
        }
        if let Some(last) = points.last_mut() {
            *last = end;
        }
        let locations = points.iter().map(|&point| locations.of(point)).collect();
        Self { accesses, points, locations }
    }

    /// The last position.
    pub fn end(&self) -> usize {
        self.accesses.len()
    }

    /// The location of `position`; positions past the end are at the end.
    pub fn location(&self, position: usize) -> Location {
        self.locations[position.min(self.end())]
    }
}
