//! Must-happen-before: which events must have happened for this one to happen, in any correct
//! reordering?
//!
//! A correct reordering that runs an event runs its *causal past*: what its thread did before it, the
//! fork of its thread, the write that a read saw, the end of a joined thread, the notify that woke
//! it, the waits that a notify woke, the arrivals of the barrier generation that it waited for, the
//! post that it took, the allocation of an object; and the causal past of each of those. Locks are
//! not among them: a section need not come after the sections that were observed before it.
//!
//! All these edges follow the observed order, so one pass finds the closure. The past of an event
//! within a thread is a prefix of it, so a vector clock says it all. A clock is kept only where it
//! changes by more than the event itself, and is cut into chunks that clocks share, so that one
//! thread that waits for thousands of others costs little more than what it learns.
//!
//! Exact, with one exception. A take of a semaphore whose start is known has in its past the post
//! that was used when observed, though another post would do as well: there this is more than a
//! reordering must run. [`MustHappenBefore::for_any_post`] leaves it out. `oracle::mhb` is the
//! definition.
//!
//! Costs a comparison for each edge, and a clock for each that brings news.
//!
//! It is the order that Mathur, Pavlogiannis and Viswanathan call the thread-read-from order,
//! "Optimal prediction of synchronization-preserving races" (POPL 2021), with signals added.

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::views::GenerationId;
use reweave_trace::{
    ConditionOp, EventId, ObjectId, ObjectOp, Op, SemaphoreOp, ThreadId, ThreadOp, Trace,
};

reweave_base::id! {
    /// A clock over all other threads.
    struct RowId;
}

/// The causal past of each event of a trace.
#[derive(Debug)]
pub struct MustHappenBefore<'t> {
    trace: &'t Trace,
    store: Store,
    /// For each thread where its clock changes.
    changes: IndexVec<ThreadId, Vec<Change>>,
    /// The causal past of each thread's start.
    starts: IndexVec<ThreadId, RowId>,
    allocations: IndexVec<ObjectId, Option<EventId>>,
    posts: Posts,
}

/// Which post the past of a take has, where the semaphore's start is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Posts {
    /// The one that it used.
    AsObserved,
    /// None in particular.
    Any,
}

/// From the event at `position` of its thread on, the clock is `row`.
#[derive(Clone, Copy, Debug)]
struct Change {
    position: u32,
    row: RowId,
}

/// Clocks with a number per thread, made of chunks that they share.
#[derive(Debug)]
struct Store {
    /// How many threads a chunk spans.
    width: usize,
    /// How many chunks a row has.
    chunks_count: usize,
    chunks: Vec<u32>,
    rows: Vec<u32>,
}

/// The causal past of an event: for each thread how many of its first events.
#[derive(Clone, Copy, Debug)]
pub struct CausalPast<'a> {
    store: &'a Store,
    row: RowId,
    thread: ThreadId,
    own: u32,
}

impl CausalPast<'_> {
    /// How many events of `thread` are in it.
    #[inline]
    #[must_use]
    pub fn get(&self, thread: ThreadId) -> u32 {
        if thread == self.thread { self.own } else { self.store.get(self.row, thread) }
    }

    /// Whether the past of `other`, of the same thread, is the same in all other threads.
    #[must_use]
    pub fn is_same_row(&self, other: &Self) -> bool {
        self.row == other.row
    }

    /// Raises `cut` to hold all of it.
    pub fn join_into(&self, cut: &mut IndexVec<ThreadId, u32>) {
        let numbers = cut.as_mut_vec();
        for (chunk, slots) in
            self.store.row(self.row).iter().zip(numbers.chunks_mut(self.store.width))
        {
            for (slot, &number) in slots.iter_mut().zip(self.store.chunk(*chunk)) {
                *slot = (*slot).max(number);
            }
        }
        let own = &mut numbers[self.thread.index()];
        *own = (*own).max(self.own);
    }
}

impl<'t> MustHappenBefore<'t> {
    /// The causal past of each event of `trace`.
    ///
    /// ```
    /// use reweave_order::mhb::MustHappenBefore;
    ///
    /// let trace = reweave_testkit::trace("
    /// T1    T2
    /// w(x)
    ///       r(x)
    /// ");
    /// let order = MustHappenBefore::new(&trace);
    /// let (write, read) = (trace.numbered(1).unwrap(), trace.numbered(2).unwrap());
    /// // Wherever the read happens, the write that it saw has happened.
    /// assert_eq!(order.past(read).get(trace.event(write).thread), 1);
    /// assert_eq!(order.past(write).get(trace.event(read).thread), 0);
    /// ```
    #[must_use]
    pub fn new(trace: &'t Trace) -> Self {
        Self::with_free_reads(trace, &[])
    }

    /// The same, if the reads of `free` may see any write.
    #[must_use]
    pub fn with_free_reads(trace: &'t Trace, free: &[EventId]) -> Self {
        Self::swept(trace, free, Posts::AsObserved)
    }

    /// The same, if takes of a semaphore whose start is known may use any post.
    #[must_use]
    pub fn for_any_post(trace: &'t Trace) -> Self {
        Self::swept(trace, &[], Posts::Any)
    }

    /// What happens before each event in every correct reordering that runs both, whatever comes
    /// first at locks: an atomic read comes after a write that it saw only if their memory orders
    /// say so. Takes may use any post.
    #[must_use]
    pub fn synchronized(trace: &'t Trace) -> Self {
        let mut sweep = Sweep::new(trace, Posts::Any);
        sweep.goes_by_memory_orders = true;
        for (id, event) in trace.events() {
            sweep.step(id, event.thread, event.op, false);
        }
        sweep.order
    }

    fn swept(trace: &'t Trace, free: &[EventId], posts: Posts) -> Self {
        let mut sweep = Sweep::new(trace, posts);
        for (id, event) in trace.events() {
            sweep.step(id, event.thread, event.op, free.contains(&id));
        }
        sweep.order
    }

    /// The causal past of `event`, itself included.
    #[inline]
    #[must_use]
    pub fn past(&self, event: EventId) -> CausalPast<'_> {
        let thread = self.trace.event(event).thread;
        let position = self.trace.position(event);
        CausalPast {
            row: self.row_at(thread, position),
            own: position + 1,
            thread,
            store: &self.store,
        }
    }

    /// The causal pasts of the events of `thread`, to be asked for in program order.
    #[must_use]
    pub const fn along(&self, thread: ThreadId) -> ThreadPasts<'_, 't> {
        ThreadPasts { order: self, thread, next: None }
    }

    /// What must have happened for `event` to be its thread's next, and for nothing else to keep
    /// it from happening but locks; what a read is about to see does not matter.
    #[must_use]
    pub fn before(&self, event: EventId) -> CausalPast<'_> {
        let reweave_trace::Event { thread, op, .. } = self.trace.event(event);
        let position = self.trace.position(event);
        let row = match position.checked_sub(1) {
            _ if !op.is_read() => self.row_at(thread, position),
            Some(previous) => self.row_at(thread, previous),
            None => self.starts[thread],
        };
        CausalPast { row, own: position, thread, store: &self.store }
    }

    /// How many clocks are kept.
    #[must_use]
    pub const fn rows_count(&self) -> usize {
        self.store.rows.len() / self.store.chunks_count
    }

    /// Hands `visit` the direct predecessors of `event`, but for its thread's earlier events, its
    /// thread's fork and the write that it read.
    pub fn for_each_signal(&self, event: EventId, mut visit: impl FnMut(EventId)) {
        let trace = self.trace;
        let signals = trace.signals();
        match trace.event(event).op {
            Op::Thread(ThreadOp::Join, child) => {
                let lifetime = trace.lifetime(child);
                [lifetime.fork, lifetime.last].into_iter().flatten().for_each(visit);
            }
            Op::Condition(ConditionOp::Wake, _) => {
                signals
                    .wait_interval(event)
                    .and_then(|interval| interval.notify)
                    .into_iter()
                    .for_each(visit);
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                let woken =
                    signals.woken(event).iter().filter_map(|&wait| signals.wait_interval(wait));
                woken.for_each(|interval| visit(interval.begin));
            }
            Op::Barrier(..) => {
                let generation = signals
                    .needed_generation(event)
                    .map(|generation| signals.generation(generation));
                generation
                    .iter()
                    .flat_map(|generation| &generation.arrivals)
                    .for_each(|&other| visit(other));
            }
            Op::Semaphore(SemaphoreOp::Take, semaphore) => {
                let is_known = trace.declared().start(semaphore).is_some();
                let post = signals.post(event);
                let post = post.filter(|_| !is_known || self.posts == Posts::AsObserved);
                post.into_iter().for_each(visit);
            }
            Op::Object(ObjectOp::Free, object) => {
                self.allocations[object].into_iter().for_each(visit);
            }
            Op::Access(..)
            | Op::Fence(_)
            | Op::Lock(..)
            | Op::Thread(ThreadOp::Fork, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Timeout, _)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Object(ObjectOp::Alloc, _)
            | Op::Marker(_) => {}
        }
    }

    fn row_at(&self, thread: ThreadId, position: u32) -> RowId {
        let changes = &self.changes[thread];
        let count = changes.partition_point(|change| change.position <= position);
        count.checked_sub(1).map_or(self.starts[thread], |at| changes[at].row)
    }
}

/// The causal pasts of the events of one thread, one after the other.
#[derive(Clone, Debug)]
pub struct ThreadPasts<'a, 't> {
    order: &'a MustHappenBefore<'t>,
    thread: ThreadId,
    /// The first change that is not reached yet.
    next: Option<usize>,
}

impl<'a> ThreadPasts<'a, '_> {
    /// The causal past of the event at `position` of the thread; positions must not go down.
    pub fn at(&mut self, position: u32) -> CausalPast<'a> {
        let changes = &self.order.changes[self.thread];
        let mut next = self
            .next
            .unwrap_or_else(|| changes.partition_point(|change| change.position <= position));
        while changes.get(next).is_some_and(|change| change.position <= position) {
            next += 1;
        }
        self.next = Some(next);
        let start = self.order.starts[self.thread];
        let row = next.checked_sub(1).map_or(start, |at| changes[at].row);
        CausalPast { store: &self.order.store, row, thread: self.thread, own: position + 1 }
    }
}

/// The pass over the trace.
struct Sweep<'t> {
    order: MustHappenBefore<'t>,
    /// The latest clock of each thread, and how many events it has had.
    latest: IndexVec<ThreadId, (RowId, u32)>,
    /// What a generation of a barrier passes on to those that wait for it.
    generations: FxHashMap<GenerationId, RowId>,
    goes_by_memory_orders: bool,
    /// Buffer for the clock that is being made.
    row: Vec<u32>,
}

impl<'t> Sweep<'t> {
    fn new(trace: &'t Trace, posts: Posts) -> Self {
        let threads_count = trace.names().threads.len();
        let store = Store::new(threads_count);
        let nothing = RowId::from_index(0);
        let order = MustHappenBefore {
            trace,
            store,
            changes: IndexVec::from_elem(Vec::new(), threads_count),
            starts: IndexVec::from_elem(nothing, threads_count),
            allocations: IndexVec::from_elem(None, trace.names().objects.len()),
            posts,
        };
        let latest = IndexVec::from_elem((nothing, 0), threads_count);
        let generations = FxHashMap::default();
        Self { order, latest, generations, goes_by_memory_orders: false, row: Vec::new() }
    }

    fn step(&mut self, id: EventId, thread: ThreadId, op: Op, is_free: bool) {
        let (row, position) = self.latest[thread];
        let mut next = row;
        if position == 0 {
            if let Some(fork) = self.order.trace.lifetime(thread).fork {
                next = self.join(next, thread, fork);
            }
            self.order.starts[thread] = next;
        }
        if op.is_read() {
            if let Some(writer) = self.order.trace.writer(id).filter(|_| !is_free)
                && !(self.goes_by_memory_orders && self.is_atomic(id, writer))
            {
                next = self.join(next, thread, writer);
            }
        } else if !op.is_write() {
            next = self.receive(next, thread, id, op);
        }
        if self.goes_by_memory_orders {
            for &release in self.order.trace.synchronization().acquired(id) {
                next = self.join(next, thread, release);
            }
        }
        // The past of a thread's start is kept apart from that of its first event.
        if next != row {
            self.order.changes[thread].push(Change { position, row: next });
        }
        self.latest[thread] = (next, position + 1);
    }

    fn is_atomic(&self, read: EventId, write: EventId) -> bool {
        [read, write].iter().all(|&access| self.order.trace.event(access).op.is_atomic())
    }

    /// `row` with the direct predecessors of `op`, no access, and their pasts.
    fn receive(&mut self, row: RowId, thread: ThreadId, id: EventId, op: Op) -> RowId {
        match op {
            // All that wait for a generation have the same past, which may be large.
            Op::Barrier(..) => {
                let generation = self.order.trace.signals().needed_generation(id);
                return generation.map_or(row, |generation| self.join_generation(row, generation));
            }
            Op::Object(ObjectOp::Alloc, object) => self.order.allocations[object] = Some(id),
            _ => {}
        }
        let mut signals = Vec::new();
        self.order.for_each_signal(id, |event| signals.push(event));
        signals.into_iter().fold(row, |row, event| self.join(row, thread, event))
    }

    /// `row` of `thread` with the past of `event`.
    fn join(&mut self, row: RowId, thread: ThreadId, event: EventId) -> RowId {
        let trace = self.order.trace;
        let other = trace.event(event).thread;
        let time = trace.position(event) + 1;
        // Clocks are closed: who has the event has its past.
        if other == thread || self.order.store.get(row, other) >= time {
            return row;
        }
        let theirs = self.order.row_at(other, time - 1);
        self.order.store.joined(row, theirs, Some((other, time)), &mut self.row)
    }

    /// `row` with all arrivals of `generation`. It may then name its own thread too, where it is never
    /// looked at.
    fn join_generation(&mut self, row: RowId, generation: GenerationId) -> RowId {
        let passed_on = match self.generations.get(&generation) {
            Some(&known) => known,
            None => {
                let trace = self.order.trace;
                let mut all = RowId::from_index(0);
                for &arrival in &trace.signals().generation(generation).arrivals {
                    let time = trace.position(arrival) + 1;
                    let other = trace.event(arrival).thread;
                    let theirs = self.order.row_at(other, time - 1);
                    all = self.order.store.joined(all, theirs, Some((other, time)), &mut self.row);
                }
                self.generations.insert(generation, all);
                all
            }
        };
        self.order.store.joined(row, passed_on, None, &mut self.row)
    }
}

impl Store {
    /// An empty store with the clock of zeros.
    fn new(threads_count: usize) -> Self {
        let width = threads_count.next_multiple_of(8).clamp(8, 32);
        let chunks_count = threads_count.div_ceil(width).max(1);
        Self { width, chunks_count, chunks: vec![0; width], rows: vec![0; chunks_count] }
    }

    #[inline]
    fn row(&self, row: RowId) -> &[u32] {
        &self.rows[row.index() * self.chunks_count..][..self.chunks_count]
    }

    #[inline]
    fn chunk(&self, chunk: u32) -> &[u32] {
        &self.chunks[chunk as usize * self.width..][..self.width]
    }

    #[inline]
    fn get(&self, row: RowId, thread: ThreadId) -> u32 {
        let (chunk, slot) = (thread.index() / self.width, thread.index() % self.width);
        let chunk = self.rows[row.index() * self.chunks_count + chunk];
        self.chunks[chunk as usize * self.width + slot]
    }

    /// The clock that holds what `left` and `right` do, and `event`: a thread and a time in it.
    fn joined(
        &mut self,
        left: RowId,
        right: RowId,
        event: Option<(ThreadId, u32)>,
        room: &mut Vec<u32>,
    ) -> RowId {
        room.clear();
        let mut is_new = false;
        for at in 0..self.chunks_count {
            let (own, theirs) = (self.row(left)[at], self.row(right)[at]);
            let event = event.filter(|(thread, _)| thread.index() / self.width == at);
            let event = event.map(|(thread, time)| (thread.index() % self.width, time));
            let chunk = self.joined_chunk(own, theirs, event);
            is_new |= chunk != own;
            room.push(chunk);
        }
        if !is_new {
            return left;
        }
        let row = RowId::from_index(self.rows.len() / self.chunks_count);
        self.rows.extend_from_slice(room);
        row
    }

    fn joined_chunk(&mut self, own: u32, theirs: u32, event: Option<(usize, u32)>) -> u32 {
        if own == theirs && event.is_none() {
            return own;
        }
        let from = self.chunks.len();
        for slot in 0..self.width {
            self.chunks.push(self.chunk(own)[slot].max(self.chunk(theirs)[slot]));
        }
        if let Some((slot, time)) = event {
            self.chunks[from + slot] = self.chunks[from + slot].max(time);
        }
        let known = [own, theirs].into_iter().find(|&known| {
            let at = known as usize * self.width;
            self.chunks[at..at + self.width] == self.chunks[from..]
        });
        match known {
            Some(known) => {
                self.chunks.truncate(from);
                known
            }
            None => (from / self.width) as u32,
        }
    }
}
