//! Could the observed run have run each block at once?
//!
//! A run is a sequence of *transactions*: its blocks, and every event outside them. One transaction
//! comes before another if an event of it comes before one of the other by program order, by a
//! conflict of two accesses (atomic ones included), or by an edge that other runs keep as well: a
//! release before a later acquire, fork and join, a wait before the notify that woke it and that
//! before the wake, a barrier's arrivals before its departures, a post before the take that used it,
//! an object's birth before its end. A run in which this has no cycle is *serializable*: the same
//! events with the same results can run block by block.
//!
//! Where there is a cycle, somebody is to blame. A block is [`Interleaved`](Kind::Interleaved) if
//! others come between: a path of events leaves it and comes back, whatever else is a block. When
//! all spoiled blocks are taken apart into events, cycles may be left. They consist of blocks that
//! [`Overlap`](Kind::Overlap): each could have run at once, but not all of them.
//!
//! Promised: a run has a violation exactly if it is not serializable; a block is reported exactly if
//! it is spoiled, or overlaps when the spoiled ones are taken apart. Of a spoiled block the path
//! that closes first is given, of those along accesses and program order alone if there is one: what
//! happened to data says more than who held a lock. `oracle::atomicity` says the same pair by pair.
//!
//! Costs: the graph is linear in the events, and its cycles are found in linear time. Each block on
//! a cycle is explained by two looks at the events between its ends, at most twice events times
//! threads in all; that much is bounded by `steps`.
//!
//! Serializability of blocks is after Flanagan, Freund and Yi, "Velodrome" (PLDI 2008), blame
//! included. Mathur and Viswanathan, "Atomicity checking in linear time using vector clocks"
//! (ASPLOS 2020), decide it as the run goes on, with a clock a thread, lock and variable. With the
//! whole trace at hand its graph is linear too, without the factor of threads, and says which blocks
//! are at fault.

use std::collections::VecDeque;

use reweave_base::{ComponentId, FxHashMap, FxHashSet, Id, IndexVec, strong_components};
use reweave_trace::views::GenerationId;
use reweave_trace::{
    AccessOp, ConditionOp, Event, EventId, LockId, LockOp, ObjectId, ObjectOp, Op, SemaphoreOp,
    ThreadId, ThreadOp, Trace, VarId,
};

use crate::blocks::{Block, BlockRunId, Blocks};
use crate::conflict;

/// A block that the observed run did not, in effect, run at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which block.
    pub block: BlockRunId,
    /// In what way.
    pub kind: Kind,
    /// The events that show it, in observed order. For a spoiled block the first and the last are
    /// its own, and each comes before the next.
    pub chain: Vec<EventId>,
}

/// In what way a block was not run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Others come between its events.
    Interleaved,
    /// It cannot be run at once together with other blocks that are not spoiled.
    Overlap,
}

/// What the observed run shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    /// The blocks at fault, spoiled ones first, in the order in which they are seen to be.
    pub all: Vec<Violation>,
    /// How many blocks on cycles were not looked at, the steps being used up.
    pub untried: u64,
}

/// The blocks of `trace` that it did not run at once, found with at most `steps` steps beyond what
/// is linear.
#[must_use]
pub fn violations(trace: &Trace, blocks: &Blocks, steps: u64) -> Violations {
    if blocks.is_empty() {
        return Violations::default();
    }
    let edges = Edges::new(trace);
    let mut whole = IndexVec::from_elem(true, blocks.len());
    let suspects = Graph::new(&edges, blocks, &whole).on_cycle();
    let mut explained = Violations::default();
    let mut steps_left = steps;
    let mut sweep = Sweep::new(&edges);
    for (id, block) in blocks.entries().filter(|&(id, _)| suspects[id]) {
        let cost = 2 * u64::from(block.end.number() - block.begin.number() + 1);
        if cost > steps_left {
            explained.untried += 1;
            continue;
        }
        steps_left -= cost;
        let data = sweep.spoil(block, Along::Data);
        if let Some(chain) = data.or_else(|| sweep.spoil(block, Along::All)) {
            whole[id] = false;
            explained.all.push(Violation { block: id, kind: Kind::Interleaved, chain });
        }
    }
    // Only where every suspect was looked at is it known which ones are spoiled.
    if explained.untried == 0 && suspects.entries().any(|(id, suspect)| *suspect && whole[id]) {
        let graph = Graph::new(&edges, blocks, &whole);
        let left = graph.on_cycle();
        for id in left.ids().filter(|&id| left[id]) {
            match cycle(&graph, id, &mut steps_left) {
                Some(chain) => {
                    explained.all.push(Violation { block: id, kind: Kind::Overlap, chain });
                }
                None => explained.untried += 1,
            }
        }
    }
    explained.all.sort_by_key(|violation| {
        (violation.kind, violation.chain.last().copied(), violation.block)
    });
    explained
}

/// What a thread did after events of some block, in the order of events.
#[derive(Clone, Copy, Debug)]
struct Reached {
    /// The thread's first event that comes after one of the block.
    at: EventId,
    /// The event of another thread, or of the block, that makes it so.
    via: EventId,
}

/// Which edges a path may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Along {
    /// Conflicts of accesses.
    Data,
    /// Every edge.
    All,
}

/// Goes through the events between a block's ends to see who comes between.
struct Sweep<'a, 't> {
    edges: &'a Edges<'t>,
    reached: IndexVec<ThreadId, Option<Reached>>,
    touched: Vec<ThreadId>,
    /// For each generation an arrival of the block, and one after it.
    generations: FxHashMap<GenerationId, [Option<EventId>; 2]>,
}

impl<'a, 't> Sweep<'a, 't> {
    fn new(edges: &'a Edges<'t>) -> Self {
        let threads_count = edges.trace().names().threads.len();
        Self {
            edges,
            reached: IndexVec::from_elem(None, threads_count),
            touched: Vec::new(),
            generations: FxHashMap::default(),
        }
    }

    /// The path that leaves `block` and comes back first, if there is one.
    fn spoil(&mut self, block: &Block, along: Along) -> Option<Vec<EventId>> {
        let trace = self.edges.trace();
        let mut chain = None;
        for index in block.begin.index() + 1..=block.end.index() {
            let event = EventId::from_index(index);
            let thread = trace.event(event).thread;
            if thread != block.thread && self.reached[thread].is_some() {
                continue;
            }
            let [own, other] = match along {
                Along::Data => self.accesses(block, event),
                Along::All => self.sources(block, event),
            };
            if thread == block.thread {
                if let Some(other) = other {
                    chain = Some(self.path(block, event, other));
                    break;
                }
            } else if let Some(via) = own.or(other) {
                self.reached[thread] = Some(Reached { at: event, via });
                self.touched.push(thread);
            }
        }
        for thread in self.touched.drain(..) {
            self.reached[thread] = None;
        }
        self.generations.clear();
        chain
    }

    /// Of what `event` follows, something of `block` and something that comes after it.
    fn sources(&mut self, block: &Block, event: EventId) -> [Option<EventId>; 2] {
        let [own, other] = self.pick(block, self.edges.sources(event));
        let Some(generation) = self.edges.generation(event) else { return [own, other] };
        // All arrivals lie before the event, so what is found once does not change.
        let [own_arrival, other_arrival] = match self.generations.get(&generation) {
            Some(&known) => known,
            None => {
                let arrivals = &self.edges.trace().signals().generation(generation).arrivals;
                let found = self.pick(block, arrivals);
                self.generations.insert(generation, found);
                found
            }
        };
        [own.or(own_arrival), other.or(other_arrival)]
    }

    /// The same of the accesses that `event`, if it is one, conflicts with.
    fn accesses(&self, block: &Block, event: EventId) -> [Option<EventId>; 2] {
        let trace = self.edges.trace();
        let is_access = |event: EventId| trace.event(event).op.var().is_some();
        let sources = self.edges.sources(event);
        match sources {
            _ if !is_access(event) => [None, None],
            // The first event of a thread also follows its fork.
            [fork, accesses @ ..] if !is_access(*fork) => self.pick(block, accesses),
            accesses => self.pick(block, accesses),
        }
    }

    fn pick(&self, block: &Block, sources: &[EventId]) -> [Option<EventId>; 2] {
        let trace = self.edges.trace();
        let is_after = |&&source: &&EventId| {
            self.reached[trace.event(source).thread].is_some_and(|reached| reached.at <= source)
        };
        let own = sources.iter().find(|&&source| block.holds(trace, source));
        [own.copied(), sources.iter().find(is_after).copied()]
    }

    /// The path to `last`, of the block, that comes back to it from `source`.
    fn path(&self, block: &Block, last: EventId, source: EventId) -> Vec<EventId> {
        let trace = self.edges.trace();
        let mut back = vec![last];
        let mut exit = source;
        while !block.holds(trace, exit) {
            back.push(exit);
            let Some(reached) = self.reached[trace.event(exit).thread] else { break };
            if reached.at != exit {
                back.push(reached.at);
            }
            exit = reached.via;
        }
        back.push(exit);
        back.reverse();
        shorten(trace, back)
    }
}

/// `chain` without the detours between accesses that conflict at first hand.
fn shorten(trace: &Trace, mut chain: Vec<EventId>) -> Vec<EventId> {
    let is_direct = |left: EventId, right: EventId| {
        let (left, right) = (trace.event(left), trace.event(right));
        left.thread != right.thread && conflict(left.op, right.op)
    };
    let end = chain.len() - 1;
    if let Some(at) = (1..end).rev().find(|&at| is_direct(chain[0], chain[at])) {
        chain.drain(1..at);
    }
    let end = chain.len() - 1;
    if let Some(at) = (1..end).find(|&at| is_direct(chain[at], chain[end])) {
        chain.drain(at + 1..end);
    }
    chain
}

/// The events of different threads along a shortest cycle through `block`, in observed order; none
/// if the steps are used up.
fn cycle(graph: &Graph<'_, '_>, block: BlockRunId, steps_left: &mut u64) -> Option<Vec<EventId>> {
    let trace = graph.trace();
    let start = Transaction::Block(block);
    // For each transaction the edge towards the block, and where that leads.
    let mut towards: FxHashMap<Transaction, (EventId, EventId)> = FxHashMap::default();
    let mut queue = VecDeque::from([start]);
    while let Some(transaction) = queue.pop_front() {
        let events = graph.events(transaction);
        for (at, &event) in events.iter().enumerate() {
            let generations = graph
                .edges
                .generation(event)
                .map(|generation| trace.signals().generation(generation));
            let arrivals = generations.map_or(&[][..], |generation| &generation.arrivals);
            let previous = if at == 0 { graph.previous(event) } else { None };
            let listed = graph.edges.sources(event).iter().chain(arrivals);
            for source in listed.copied().chain(previous) {
                *steps_left = steps_left.checked_sub(1)?;
                let other = graph.transaction(source);
                if other == transaction || towards.contains_key(&other) {
                    continue;
                }
                towards.insert(other, (source, event));
                if other == start {
                    return Some(follow(graph, start, &towards));
                }
                queue.push_back(other);
            }
        }
    }
    None
}

/// The events of the edges from `start` on that lead back to it, but for program order.
fn follow(
    graph: &Graph<'_, '_>,
    start: Transaction,
    towards: &FxHashMap<Transaction, (EventId, EventId)>,
) -> Vec<EventId> {
    let thread = |event: EventId| graph.trace().event(event).thread;
    let mut events = Vec::new();
    let mut at = start;
    loop {
        let (from, to) = towards[&at];
        if thread(from) != thread(to) {
            events.extend([from, to]);
        }
        at = graph.transaction(to);
        if at == start {
            break;
        }
    }
    events.sort_unstable();
    events.dedup();
    events
}

// Which events had to come before an event for the run to be what it was?
//
// For each event those of other threads that it follows by a rule of its own: conflicting accesses,
// releases of its lock, its thread's fork, the end of a joined thread, the notify that woke it, the
// waits that it woke, the post that it took, its object's birth. Whatever follows from these and
// from program order is left out, so that there are about as many as events: a write follows the
// reads since the write before it, and of one thread's reads in a row the last.
//
// The arrivals that a barrier's generation waited for are not listed but named by the generation,
// since all that wait for it follow the same many events.

/// For each event the events of other threads that it follows.
#[derive(Debug)]
struct Edges<'t> {
    trace: &'t Trace,
    /// Where the sources of each event end.
    ends: Vec<usize>,
    sources: Vec<EventId>,
}

#[derive(Debug, Default)]
struct Variable {
    last_write: Option<EventId>,
    /// Since the last write.
    reads: Vec<EventId>,
}

#[derive(Debug, Default)]
struct Lock {
    /// The last release by a thread that held it alone.
    alone: Option<EventId>,
    /// The shared releases since.
    shared: Vec<EventId>,
}

/// What later events may have to follow.
#[derive(Debug, Default)]
struct Past {
    /// What the recorder added: nothing that the program accesses.
    added: FxHashSet<VarId>,
    vars: IndexVec<VarId, Variable>,
    locks: IndexVec<LockId, Lock>,
    births: IndexVec<ObjectId, Option<EventId>>,
}

impl<'t> Edges<'t> {
    fn new(trace: &'t Trace) -> Self {
        let names = trace.names();
        let vars = names.vars.entries().map(|(var, _)| var);
        let added = vars.filter(|&var| names.is_added(var)).collect();
        let mut past = Past { added, ..Past::default() };
        let mut edges = Self { trace, ends: Vec::with_capacity(trace.len()), sources: Vec::new() };
        for (id, event) in trace.events() {
            let from = edges.sources.len();
            if let Some(fork) = trace.lifetime(event.thread).fork
                && trace.position(id) == 0
            {
                edges.sources.push(fork);
            }
            past.step(trace, id, event, &mut edges.sources);
            edges.keep_others(from, event);
            edges.ends.push(edges.sources.len());
        }
        edges
    }

    /// Drops the sources from the index `from` on that are of the thread of `event`.
    fn keep_others(&mut self, from: usize, event: Event) {
        let mut kept = from;
        for at in from..self.sources.len() {
            let source = self.sources[at];
            if self.trace.event(source).thread != event.thread {
                self.sources[kept] = source;
                kept += 1;
            }
        }
        self.sources.truncate(kept);
    }

    const fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// The events that `event` follows, but for the arrivals of [`Self::generation`].
    fn sources(&self, event: EventId) -> &[EventId] {
        let at = event.index();
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.sources[start..self.ends[at]]
    }

    /// The generation all of whose arrivals `event` follows.
    fn generation(&self, event: EventId) -> Option<GenerationId> {
        match self.trace.event(event).op {
            Op::Barrier(..) => self.trace.signals().needed_generation(event),
            _ => None,
        }
    }
}

impl Past {
    /// Adds to `sources` what `id` follows, and keeps what may follow it.
    fn step(&mut self, trace: &Trace, id: EventId, event: Event, sources: &mut Vec<EventId>) {
        let signals = trace.signals();
        match event.op {
            Op::Access(_, var) if self.added.contains(&var) => {}
            Op::Access(AccessOp::Read | AccessOp::UnknownRead | AccessOp::AtomicRead(_), var) => {
                let variable = self.vars.get_or_default(var);
                sources.extend(variable.last_write);
                let same = |last: &&mut EventId| trace.event(**last).thread == event.thread;
                match variable.reads.last_mut().filter(same) {
                    Some(last) => *last = id,
                    None => variable.reads.push(id),
                }
            }
            Op::Access(
                AccessOp::Write | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_),
                var,
            ) => {
                let variable = self.vars.get_or_default(var);
                sources.append(&mut variable.reads);
                sources.extend(variable.last_write.replace(id));
            }
            Op::Lock(LockOp::Acquire, lock) => {
                let lock = self.locks.get_or_default(lock);
                sources.extend(lock.alone);
                sources.extend_from_slice(&lock.shared);
            }
            Op::Lock(LockOp::AcquireShared, lock) => {
                sources.extend(self.locks.get_or_default(lock).alone);
            }
            Op::Lock(LockOp::Release, lock) => {
                let lock = self.locks.get_or_default(lock);
                lock.alone = Some(id);
                lock.shared.clear();
            }
            Op::Lock(LockOp::ReleaseShared, lock) => {
                self.locks.get_or_default(lock).shared.push(id);
            }
            Op::Thread(ThreadOp::Join, child) => {
                let lifetime = trace.lifetime(child);
                sources.extend(lifetime.last.or(lifetime.fork));
            }
            Op::Condition(ConditionOp::Wake, _) => {
                sources.extend(signals.wait_interval(id).and_then(|interval| interval.notify));
            }
            Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, _) => {
                let woken =
                    signals.woken(id).iter().filter_map(|&wait| signals.wait_interval(wait));
                sources.extend(woken.map(|interval| interval.begin));
            }
            Op::Semaphore(SemaphoreOp::Take, _) => sources.extend(signals.post(id)),
            Op::Object(ObjectOp::Alloc, object) => *self.births.get_or_default(object) = Some(id),
            Op::Object(ObjectOp::Free, object) => {
                sources.extend(*self.births.get_or_default(object));
            }
            // A fork is looked up by the first event of its thread, arrivals by their generation.
            Op::Thread(ThreadOp::Fork, _)
            | Op::Barrier(..)
            | Op::Semaphore(SemaphoreOp::Post, _)
            | Op::Fence(_)
            | Op::Lock(LockOp::Request | LockOp::RequestExclusive, _)
            | Op::Condition(ConditionOp::Wait | ConditionOp::Timeout, _)
            | Op::Marker(_) => {}
        }
    }
}

// Which blocks lie on a cycle of the transaction graph?
//
// The strongly connected components of the graph, walked against its edges from the blocks: every
// cycle passes through a block, since edges between events follow the observed order. A barrier's
// generation is a node between its arrivals and what waits for them. It is no transaction, so a
// component is a cycle if it holds two others.

reweave_base::id! {
    /// A node of the graph: first the blocks, then the events, then the generations of barriers.
    struct NodeId;
}

/// What an event is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Transaction {
    Block(BlockRunId),
    /// An event outside all blocks.
    Lone(EventId),
}

/// The transactions of a run and what each follows.
#[derive(Debug)]
struct Graph<'a, 't> {
    edges: &'a Edges<'t>,
    blocks: &'a Blocks,
    block_of: IndexVec<EventId, Option<BlockRunId>>,
}

impl<'a, 't> Graph<'a, 't> {
    /// The graph in which the blocks that are `whole` are one transaction each.
    fn new(edges: &'a Edges<'t>, blocks: &'a Blocks, whole: &IndexVec<BlockRunId, bool>) -> Self {
        let trace = edges.trace();
        let mut block_of = IndexVec::from_elem(None, trace.len());
        for (id, block) in blocks.entries().filter(|&(id, _)| whole[id]) {
            for &event in block.events(trace) {
                block_of[event] = Some(id);
            }
        }
        Self { edges, blocks, block_of }
    }

    fn trace(&self) -> &'t Trace {
        self.edges.trace()
    }

    /// What `event` is part of.
    fn transaction(&self, event: EventId) -> Transaction {
        self.block_of[event].map_or(Transaction::Lone(event), Transaction::Block)
    }

    /// The events of `transaction`, in program order.
    fn events(&self, transaction: Transaction) -> &'t [EventId] {
        let trace = self.trace();
        match transaction {
            Transaction::Block(block) => self.blocks[block].events(trace),
            Transaction::Lone(event) => {
                let at = trace.position(event) as usize;
                &trace.thread_events(trace.event(event).thread)[at..=at]
            }
        }
    }

    /// The event before `event` in its thread.
    fn previous(&self, event: EventId) -> Option<EventId> {
        let trace = self.trace();
        let position = trace.position(event).checked_sub(1)? as usize;
        Some(trace.thread_events(trace.event(event).thread)[position])
    }

    /// The blocks among those that are one transaction each that lie on a cycle.
    fn on_cycle(&self) -> IndexVec<BlockRunId, bool> {
        let trace = self.trace();
        let generations = trace.events().filter_map(|(event, _)| self.edges.generation(event));
        let generations_count =
            generations.map(|generation| generation.index() + 1).max().unwrap_or(0);
        let firsts = self.blocks.entries().map(|(_, block)| block.begin);
        let roots = firsts.filter(|&first| self.block_of[first].is_some());
        let components = strong_components(
            self.generation_node(generations_count).index(),
            roots.map(|first| self.node(first)),
            |node| self.predecessors(node),
        );
        let mut transactions: IndexVec<ComponentId, u32> = IndexVec::new();
        for component in components.iter().take(self.generation_node(0).index()).flatten() {
            *transactions.get_or_default(*component) += 1;
        }
        let is_on_cycle = |&component: &Option<ComponentId>| {
            component.is_some_and(|component| transactions[component] > 1)
        };
        components.iter().take(self.blocks.len()).map(is_on_cycle).collect()
    }

    fn node(&self, event: EventId) -> NodeId {
        NodeId::from_index(match self.transaction(event) {
            Transaction::Block(block) => block.index(),
            Transaction::Lone(event) => self.blocks.len() + event.index(),
        })
    }

    fn generation_node(&self, generation: usize) -> NodeId {
        NodeId::from_index(self.blocks.len() + self.trace().len() + generation)
    }

    /// What `node` follows.
    fn predecessors(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let (blocks, trace) = (self.blocks.len(), self.trace());
        let (events, arrivals): (&[EventId], &[EventId]) = match node.index().checked_sub(blocks) {
            None => (self.events(Transaction::Block(BlockRunId::from_index(node.index()))), &[]),
            Some(event) if event < trace.len() => {
                (self.events(Transaction::Lone(EventId::from_index(event))), &[])
            }
            Some(generation) => {
                let generation = GenerationId::from_index(generation - trace.len());
                (&[], &trace.signals().generation(generation).arrivals)
            }
        };
        let previous = events.first().and_then(|&first| self.previous(first));
        let followed = events.iter().flat_map(|&event| {
            let generation = self
                .edges
                .generation(event)
                .map(|generation| self.generation_node(generation.index()));
            self.edges.sources(event).iter().map(|&source| self.node(source)).chain(generation)
        });
        let others = arrivals.iter().copied().chain(previous);
        followed.chain(others.map(|event| self.node(event)))
    }
}
