//! Which events must be in a cut because others are?
//!
//! Each event needs some others at first hand: its thread's fork, the write it saw, what it
//! joins, the notify that woke it, the waits that it woke, the post it used, the allocation it
//! ends, the round of a barrier that it comes after. Of another thread it needs so many of the
//! first events, and so a thread's first events together need the most that any of them does: a
//! staircase over the thread, kept as the places where it rises. What those events need in turn
//! is asked of the threads they belong to, so nothing is followed further.
//!
//! A round would be needed by all who depart, each arrival of it: the square of the parties. So
//! the ends of a barrier's rounds are a line of their own beside those of the threads: the end of
//! a round needs its arrivals, and others need that end. It runs as far as anybody needs.
//!
//! A cut is tested by one search for each pair of lines that ever met.

use reweave_base::{CsrTable, FxHashMap, Id, IndexVec};

use crate::certify::tables::{RoundId, Tables};
use crate::op::{BarrierId, ConditionOp, EventId, Op, ThreadId, ThreadOp};
use crate::trace::Trace;

reweave_base::id! {
    /// A line of events: first the threads, then the ends of each barrier's rounds.
    struct LineId;
    /// One line that needs another.
    struct PairId;
}

/// A place where a line's needs of another rise.
#[derive(Clone, Copy, Debug)]
struct Rise {
    /// How many of the first events of the line it takes.
    of_first: u32,
    /// How many of the first events of the other they need.
    needed: u32,
}

#[derive(Debug)]
pub(super) struct MustHappenBefore {
    threads_count: usize,
    lines_count: usize,
    /// Who needs and who is needed; the needs of threads come before those of rounds.
    pairs: IndexVec<PairId, (LineId, LineId)>,
    rises: CsrTable<PairId, Rise>,
}

impl MustHappenBefore {
    pub(super) fn new(trace: &Trace, tables: &Tables) -> Self {
        let mut finder = Finder::new(trace, tables);
        for (id, event) in trace.events() {
            finder.note_event(id, event.thread, event.op);
        }
        finder.note_rounds();
        let filler = Rise { of_first: 0, needed: 0 };
        let rises = &finder.rises;
        Self {
            threads_count: finder.threads_count,
            lines_count: finder.threads_count + trace.names().barriers.len(),
            rises: CsrTable::group(finder.pairs.len(), filler, || rises.iter().copied()),
            pairs: finder.pairs,
        }
    }

    /// Whether the first `counts` events of each thread have among them whatever they need.
    pub(super) fn are_met(&self, counts: &IndexVec<ThreadId, u32>) -> bool {
        let mut reached = counts.as_slice().to_vec();
        reached.resize(self.lines_count, 0);
        self.pairs.entries().all(|(pair, &(from, to))| {
            let rises = self.rises.row(pair);
            let is_thread = to.index() < self.threads_count;
            if is_thread && rises.last().is_none_or(|top| top.needed <= reached[to.index()]) {
                return true;
            }
            let rise = rises.partition_point(|rise| rise.of_first <= reached[from.index()]);
            let needed = rise.checked_sub(1).map_or(0, |at| rises[at].needed);
            if !is_thread {
                // Rounds end because they are needed; what they need is asked further on.
                reached[to.index()] = needed.max(reached[to.index()]);
            }
            needed <= reached[to.index()]
        })
    }
}

/// The needs found so far.
struct Finder<'a> {
    trace: &'a Trace,
    tables: &'a Tables,
    threads_count: usize,
    /// How many rounds of its barrier there are up to each round, itself included.
    round_counts: IndexVec<RoundId, u32>,
    pair_of: FxHashMap<(LineId, LineId), PairId>,
    pairs: IndexVec<PairId, (LineId, LineId)>,
    /// How high each pair's staircase is now.
    tops: IndexVec<PairId, u32>,
    rises: Vec<(PairId, Rise)>,
}

impl<'a> Finder<'a> {
    fn new(trace: &'a Trace, tables: &'a Tables) -> Self {
        let mut finder = Self {
            trace,
            tables,
            threads_count: trace.names().threads.len(),
            round_counts: IndexVec::new(),
            pair_of: FxHashMap::default(),
            pairs: IndexVec::new(),
            tops: IndexVec::new(),
            rises: Vec::new(),
        };
        let mut counts = IndexVec::from_elem(0, trace.names().barriers.len());
        for &barrier in tables.barrier_of.iter() {
            counts[barrier] += 1;
            finder.round_counts.push(counts[barrier]);
        }
        finder
    }

    fn thread_line(thread: ThreadId) -> LineId {
        LineId::from_index(thread.index())
    }

    fn barrier_line(&self, barrier: BarrierId) -> LineId {
        LineId::from_index(self.threads_count + barrier.index())
    }

    /// Notes that the first `of_first` events of `from` need the first `needed` of `to`.
    fn note(&mut self, (from, of_first): (LineId, u32), (to, needed): (LineId, u32)) {
        if from == to || needed == 0 {
            return;
        }
        let pair = *self.pair_of.entry((from, to)).or_insert_with(|| {
            self.tops.push(0);
            self.pairs.push((from, to))
        });
        if self.tops[pair] < needed {
            self.tops[pair] = needed;
            self.rises.push((pair, Rise { of_first, needed }));
        }
    }

    fn note_event(&mut self, id: EventId, thread: ThreadId, op: Op) {
        let tables = self.tables;
        let place = (Self::thread_line(thread), tables.position[id] + 1);
        let fork = tables.forks[thread].filter(|_| tables.position[id] == 0);
        for needed in [fork, tables.cause[id]].into_iter().flatten() {
            self.note(place, self.place(needed));
        }
        match op {
            Op::Thread(ThreadOp::Join, child) => {
                let all = tables.threads.row(child).len() as u32;
                self.note(place, (Self::thread_line(child), all));
                if let Some(fork) = tables.forks[child] {
                    self.note(place, self.place(fork));
                }
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                for wait in tables.woken_by(id) {
                    self.note(place, self.place(tables.waits[wait].begin));
                }
            }
            Op::Barrier(_, barrier) => {
                if let Some(&round) = tables.needed_round.get(&id) {
                    self.note(place, (self.barrier_line(barrier), self.round_counts[round]));
                }
            }
            _ => {}
        }
    }

    fn note_rounds(&mut self) {
        for (round, arrivals) in self.tables.rounds.rows() {
            let line = self.barrier_line(self.tables.barrier_of[round]);
            for &arrival in arrivals {
                self.note((line, self.round_counts[round]), self.place(arrival));
            }
        }
    }

    /// The line of `event`, and how many of its events there are up to this one, itself included.
    fn place(&self, event: EventId) -> (LineId, u32) {
        let thread = self.trace.event(event).thread;
        (Self::thread_line(thread), self.tables.position[event] + 1)
    }
}
