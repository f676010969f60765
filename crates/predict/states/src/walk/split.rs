//! A walk on several threads.
//!
//! Its tasks, one for each choice of numbers of the first two chains, are put together into pieces,
//! which depend on the plan alone. The threads take them in the walk's order, each from where one
//! counter stands. If a piece ends early, no more are taken; since all before it were, what is
//! joined is what one thread would have gathered, up to the same state. Only if it is told to stop
//! from outside is that by chance.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::driver::Driver;
use super::plan::{Inner, Kind};
use super::rows::CsrTable;
use super::{Halt, Limits, Plan, Visitor};

/// Into how many pieces the tasks are put, at the most.
const PIECES: u64 = 4096;

/// What visitors of different parts of a walk gather, to be joined.
pub trait Join: Visitor {
    /// Adds what another one, which started with nothing, gathered of what comes later in the walk.
    fn join(&mut self, later: Self);
}

impl Plan {
    /// Walks all states on the threads of the pool that this is called in. Each part of the walk
    /// has a copy of `empty`, and they are joined in the walk's order.
    ///
    /// # Errors
    /// What was gathered, and why not all states were visited. That is what [`walk`](Self::walk)
    /// gathers with the same limits, unless it was told to stop. To know where the limit on states
    /// is, some may be visited in vain.
    pub fn gather<V>(&self, empty: &V, acc: V::Acc, limits: &Limits<'_>) -> Result<V, (V, Halt)>
    where
        V: Join + Clone + Send + Sync,
        V::Acc: Send + Sync,
    {
        let Some(inner) = &self.inner else { return Ok(empty.clone()) };
        match &inner.kind {
            Kind::Narrow(rows) => Split { inner, rows, empty, acc, limits }.gather(),
            Kind::Wide(rows) => Split { inner, rows, empty, acc, limits }.gather(),
        }
    }
}

/// A walk to be split.
struct Split<'a, R, V: Visitor> {
    inner: &'a Inner,
    rows: &'a R,
    empty: &'a V,
    acc: V::Acc,
    limits: &'a Limits<'a>,
}

/// What came of a piece.
struct Done<V> {
    piece: u64,
    visitor: V,
    visited: u64,
    halt: Option<Halt>,
}

impl<R: CsrTable, V> Split<'_, R, V>
where
    V: Join + Clone + Send + Sync,
    V::Acc: Send + Sync,
{
    fn gather(&self) -> Result<V, (V, Halt)> {
        let next = AtomicU64::new(0);
        let visited = AtomicU64::new(0);
        let is_over = AtomicBool::new(false);
        let all_done = Mutex::new(Vec::new());
        let work = || {
            while !is_over.load(Ordering::Relaxed) {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if self.tasks_of(piece).is_empty() {
                    break;
                }
                let done = self.walk(piece, self.limits.states);
                let visited = visited.fetch_add(done.visited, Ordering::Relaxed) + done.visited;
                if done.halt.is_some() || self.limits.states.is_some_and(|most| visited > most) {
                    is_over.store(true, Ordering::Relaxed);
                }
                // A thread that panicked has left what is in there whole.
                all_done.lock().unwrap_or_else(|poison| poison.into_inner()).push(done);
            }
        };
        rayon::scope(|scope| {
            for _ in 0..rayon::current_num_threads() {
                scope.spawn(|_| work());
            }
        });
        let mut all_done = all_done.into_inner().unwrap_or_else(|poison| poison.into_inner());
        all_done.sort_unstable_by_key(|done: &Done<V>| done.piece);
        self.joined(all_done)
    }

    /// The tasks of a piece; none if there are no more pieces.
    fn tasks_of(&self, piece: u64) -> Range<u64> {
        let count = self.inner.tasks.count();
        let size = count.div_ceil(PIECES).max(1);
        let start = piece.saturating_mul(size).min(count);
        start..start.saturating_add(size).min(count)
    }

    fn walk(&self, piece: u64, states_max: Option<u64>) -> Done<V> {
        let mut visitor = self.empty.clone();
        let limits = Limits { states: states_max, ..*self.limits };
        let mut driver = Driver::new(self.inner, self.rows, &mut visitor, limits);
        let halt = driver.visit(self.acc, self.tasks_of(piece)).break_value();
        let visited = driver.visited();
        Done { piece, visitor, visited, halt }
    }

    /// All that was gathered, in order, up to where a walk on one thread would have ended.
    fn joined(&self, all_done: Vec<Done<V>>) -> Result<V, (V, Halt)> {
        let mut gathered = self.empty.clone();
        let mut left = self.limits.states;
        let mut is_stopped = false;
        for mut done in all_done {
            if left.is_some_and(|left| done.visited > left) {
                // It did not know what others before it would visit.
                done = self.walk(done.piece, left);
            }
            gathered.join(done.visitor);
            left = left.map(|left| left.saturating_sub(done.visited));
            match done.halt {
                None => {}
                Some(Halt::Stop) => is_stopped = true,
                Some(halt) => return Err((gathered, halt)),
            }
        }
        if is_stopped { Err((gathered, Halt::Stop)) } else { Ok(gathered) }
    }
}
