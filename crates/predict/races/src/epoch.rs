//! Racy variables: which variables have a happens-before race at all?
//!
//! Until a variable's first race its plain writes come one after the other, and after all that they
//! conflict with. So of its writes the last is enough, and of its reads those since: usually one,
//! kept as an *epoch*, the thread and its segment; a whole clock only where threads read at once.
//! Each access then costs one or two comparisons, or none if it repeats the one before it; and
//! nothing but a look once its variable is known to race. Atomic accesses race with plain ones
//! alone, so they are kept apart, as clocks, for the few variables that have any.
//!
//! Promise: exactly the variables with two conflicting accesses that happens-before leaves
//! unordered, whatever the operations. Which accesses race, and how many, is not said.
//!
//! Costs a constant an access, but for reads that threads do at once, and one clock operation an
//! event that synchronises; keeps some words for each variable.
//!
//! Follows Flanagan and Freund, "FastTrack: efficient and precise dynamic race detection" (PLDI
//! 2009).

use reweave_base::{FxHashMap, Id, IndexVec, id};
use reweave_order::VectorClock;
use reweave_order::hb::Segments;
use reweave_trace::{Columns, Event, EventId, OpCode, OpKind, ThreadId, Trace, VarId};

id! {
    /// The reads of a variable that threads did at once.
    struct ClockId;
}

/// The variables of `trace` with two conflicting accesses that happens-before leaves unordered, in
/// ascending order.
///
/// ```
/// let trace = reweave_testkit::trace("
/// T1    T2
/// w(x)
/// w(y)
///       r(y)
/// ");
/// let racy = reweave_races::epoch::racy_variables(&trace);
/// assert_eq!(racy.iter().map(|&var| trace.names().vars.name(var)).collect::<Vec<_>>(), ["y"]);
/// ```
#[must_use]
pub fn racy_variables(trace: &Trace) -> Vec<VarId> {
    let mut scan = Scan::new(trace);
    let Columns { threads, codes, operands, .. } = trace.columns();
    for (index, ((&thread, &code), &operand)) in threads.iter().zip(codes).zip(operands).enumerate()
    {
        // While nothing is atomic, plain accesses synchronise nothing and need no clock of theirs.
        if !has_kind(PLAIN, code) || scan.has_atomics {
            scan.step(trace, EventId::from_index(index));
            continue;
        }
        let var = VarId::from_index(operand as usize);
        if !scan.racy[var] {
            scan.access(ThreadId::from_index(thread as usize), var, has_kind(WRITES, code));
        }
    }
    scan.racy.entries().filter(|&(_, &is_racy)| is_racy).map(|(var, _)| var).collect()
}

/// Kinds of operations as sets of bits: one test for several at once.
const PLAIN: u32 = kinds(&[OpKind::Read, OpKind::UnknownRead, OpKind::Write]);
const ATOMIC: u32 = kinds(&[OpKind::AtomicRead, OpKind::AtomicWrite, OpKind::AtomicUpdate]);
const WRITES: u32 = kinds(&[OpKind::Write, OpKind::AtomicWrite, OpKind::AtomicUpdate]);

const fn kinds(kinds: &[OpKind]) -> u32 {
    let mut bits = 0;
    let mut at = 0;
    while at < kinds.len() {
        bits |= 1 << kinds[at] as u32;
        at += 1;
    }
    bits
}

#[inline]
const fn has_kind(kinds: u32, code: OpCode) -> bool {
    kinds >> code.kind() as u32 & 1 == 1
}

/// The state after the events so far.
#[derive(Debug)]
struct Scan {
    segments: Segments,
    racy: IndexVec<VarId, bool>,
    vars: IndexVec<VarId, History>,
    /// Of variables whose reads are [`Reads::Many`], and some that are free to use.
    clocks: IndexVec<ClockId, VectorClock>,
    free: Vec<ClockId>,
    atomics: FxHashMap<VarId, Atomics>,
    /// Whether there was any atomic access.
    has_atomics: bool,
}

/// A segment of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Epoch {
    thread: ThreadId,
    segment: u32,
}

impl Epoch {
    /// Whether it comes before what has `clock`.
    #[inline]
    fn is_before(self, clock: &VectorClock) -> bool {
        self.segment <= clock.get(self.thread)
    }
}

/// The plain accesses of a variable that a later one may race with, unless it races with others.
#[derive(Clone, Copy, Debug)]
struct History {
    /// The last write.
    write: Option<Epoch>,
    /// The reads since.
    reads: Reads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    None,
    /// One that all others come before.
    One(Epoch),
    /// The last of each thread.
    Many(ClockId),
}

/// The atomic accesses of a variable since its last plain write, the last of each thread.
#[derive(Debug, Default)]
struct Atomics {
    reads: VectorClock,
    writes: VectorClock,
}

impl Scan {
    fn new(trace: &Trace) -> Self {
        let vars_count = trace.names().vars.len();
        let untouched = History { write: None, reads: Reads::None };
        Self {
            segments: Segments::new(trace),
            racy: IndexVec::from_elem(false, vars_count),
            vars: IndexVec::from_elem(untouched, vars_count),
            clocks: IndexVec::new(),
            free: Vec::new(),
            atomics: FxHashMap::default(),
            has_atomics: false,
        }
    }

    /// Takes the next event, whatever it is.
    #[inline]
    fn step(&mut self, trace: &Trace, event: EventId) {
        self.segments.advance(trace, event);
        let code = trace.columns().codes[event.index()];
        if !has_kind(PLAIN | ATOMIC, code) {
            return;
        }
        let Event { thread, op, .. } = trace.event(event);
        self.has_atomics |= op.is_atomic();
        match op.var() {
            Some(var) if self.racy[var] => {}
            Some(var) if op.is_atomic() => self.access_atomically(thread, var, op.is_write()),
            Some(var) => self.access(thread, var, op.is_write()),
            None => {}
        }
    }

    /// Takes a plain access of a variable that does not race yet.
    #[inline]
    fn access(&mut self, thread: ThreadId, var: VarId, is_write: bool) {
        let clock = self.segments.of_thread(thread);
        let epoch = Epoch { thread, segment: clock.get(thread) };
        let history = self.vars[var];
        let is_repeated = match is_write {
            true => history.write == Some(epoch),
            false => history.reads == Reads::One(epoch),
        };
        if is_repeated {
            return;
        }
        let is_ordered = history.write.is_none_or(|write| write.is_before(clock))
            && (!is_write || history.reads.are_before(clock, &self.clocks))
            && (!self.has_atomics || self.atomics_are_before(clock, var, is_write));
        if !is_ordered {
            self.racy[var] = true;
        } else if is_write {
            if let Reads::Many(id) = history.reads {
                self.free.push(id);
            }
            self.vars[var] = History { write: Some(epoch), reads: Reads::None };
            if self.has_atomics {
                self.atomics.remove(&var);
            }
        } else {
            self.read(var, epoch);
        }
    }

    /// Adds a read to those of `var`.
    #[inline]
    fn read(&mut self, var: VarId, epoch: Epoch) {
        let clock = self.segments.of_thread(epoch.thread);
        let reads = &mut self.vars[var].reads;
        match *reads {
            Reads::None => *reads = Reads::One(epoch),
            Reads::One(last) if last.is_before(clock) => *reads = Reads::One(epoch),
            Reads::One(last) => {
                let id = self.free.pop();
                let id = id.unwrap_or_else(|| self.clocks.push(VectorClock::default()));
                let wide = &mut self.clocks[id];
                wide.clear();
                wide.set(last.thread, last.segment);
                wide.set(epoch.thread, epoch.segment);
                *reads = Reads::Many(id);
            }
            Reads::Many(id) => self.clocks[id].set(epoch.thread, epoch.segment),
        }
    }

    /// Whether what had `clock` comes after all atomic accesses that it conflicts with.
    fn atomics_are_before(&self, clock: &VectorClock, var: VarId, is_write: bool) -> bool {
        self.atomics.get(&var).is_none_or(|atomics| {
            clock.covers(&atomics.writes) && (!is_write || clock.covers(&atomics.reads))
        })
    }

    /// Takes an atomic access of a variable that does not race yet.
    fn access_atomically(&mut self, thread: ThreadId, var: VarId, is_write: bool) {
        let clock = self.segments.of_thread(thread);
        let history = self.vars[var];
        let is_ordered = history.write.is_none_or(|write| write.is_before(clock))
            && (!is_write || history.reads.are_before(clock, &self.clocks));
        if !is_ordered {
            self.racy[var] = true;
            return;
        }
        // The access synchronises: it is the end of the segment before the one that is open now.
        let segment = clock.get(thread) - 1;
        let atomics = self.atomics.entry(var).or_default();
        let own = if is_write { &mut atomics.writes } else { &mut atomics.reads };
        own.set(thread, segment);
    }
}

impl Reads {
    /// Whether they all come before what has `clock`.
    #[inline]
    fn are_before(self, clock: &VectorClock, clocks: &IndexVec<ClockId, VectorClock>) -> bool {
        match self {
            Self::None => true,
            Self::One(read) => read.is_before(clock),
            Self::Many(id) => clock.covers(&clocks[id]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_trace::{MemoryOrder, Op};

    #[test]
    fn the_sets_of_kinds_are_what_operations_say_of_themselves() {
        for kind in OpKind::ALL {
            let code = OpCode::new(kind, MemoryOrder::SeqCst);
            let op = Op::decode(code, 0);
            let is_plain = op.var().is_some() && !op.is_atomic();
            assert_eq!(has_kind(PLAIN, code), is_plain, "{kind:?}");
            assert_eq!(has_kind(ATOMIC, code), op.is_atomic(), "{kind:?}");
            assert_eq!(has_kind(WRITES, code), op.is_write(), "{kind:?}");
        }
    }
}
