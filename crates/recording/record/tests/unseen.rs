//! Accesses that were not recorded: whoever reads what was written so comes after who wrote it, and a
//! call of a library after what it may have read.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use reweave_base::{FxHashMap, Rng};
use reweave_runtime::wire::{Event, Kind, order};
use reweave_testkit::soak;
use reweave_trace::{AccessOp, LockOp, Op, Trace, VarId};

use crate::convert_support::{Logged, about, access, converted, extra, global};

const THREADS: usize = 3;
const BYTES: usize = 24;

/// A write that nobody saw: who made it, and the place of what its thread was last seen to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hidden {
    thread: usize,
    after: usize,
}

#[derive(Clone, Copy, Default)]
struct Byte {
    value: u8,
    /// What somebody was last seen to read or write, and who had written that unseen.
    known: Option<(u8, Option<Hidden>)>,
    hidden: Option<Hidden>,
}

/// A recording from which some writes are missing, and what must come before its reads.
struct Run {
    events: Vec<Logged>,
    /// The place of each read with what it saw of hidden writes by others, and whether its
    /// thread itself had accessed the same half words last.
    reads: Vec<(usize, Hidden, bool)>,
    memory: [Byte; BYTES],
    accessors: [Option<usize>; BYTES / 4],
    last: [usize; THREADS],
    rng: Rng,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut run = Self {
            events: Vec::new(),
            reads: Vec::new(),
            memory: [Byte::default(); BYTES],
            accessors: [None; BYTES / 4],
            last: [0; THREADS],
            rng: Rng::new(seed),
        };
        for thread in 1..THREADS {
            run.log(0, about(Kind::Fork, thread as u64));
        }
        for thread in 1..THREADS {
            run.log(thread, about(Kind::Begin, 0));
        }
        run
    }

    /// Each event has a code address of its own, by which it is found in the trace.
    fn log(&mut self, thread: usize, event: Event) {
        if !matches!(event.kind, Kind::Nothing | Kind::Stored) {
            self.last[thread] = self.events.len();
        }
        let code = self.events.len() as u64 + 1;
        self.events.push((thread as u32, Event { code, ..event }));
    }

    /// One of few places in memory, and something to write there.
    fn choose(&mut self) -> (u8, usize, u64) {
        let size = self.rng.below(4) as u8;
        let at = self.rng.below(BYTES >> size) << size;
        (size, at, self.rng.next())
    }

    fn hide(&mut self, thread: usize) {
        let (size, at, value) = self.choose();
        for (byte, new) in self.memory[at..at + (1 << size)].iter_mut().zip(value.to_le_bytes()) {
            byte.value = new;
            byte.hidden = match byte.known {
                // What it was last seen to hold tells nobody anything.
                Some((value, hidden)) if value == new => hidden,
                _ => Some(Hidden { thread, after: self.last[thread] }),
            };
        }
    }

    fn access(&mut self, thread: usize, kind: Kind) {
        let (size, at, new) = self.choose();
        let length = 1 << size;
        let place = self.events.len();
        let bytes = &mut self.memory[at..at + length];
        let seen = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(byte.value));
        let new = new & (u64::MAX >> (64 - 8 * length));
        let accessors = &mut self.accessors[at / 4..(at + length).div_ceil(4)];
        let was_own = accessors.iter().flatten().all(|&last| last == thread);
        accessors.fill(Some(thread));
        let (reads, writes) = match kind {
            Kind::Read | Kind::AtomicLoad => (true, false),
            Kind::AtomicUpdate => (true, true),
            _ => (false, true),
        };
        for (byte, new) in bytes.iter_mut().zip(new.to_le_bytes()) {
            let is_known = byte.known.is_some();
            let hidden = byte.hidden.filter(|hidden| hidden.thread != thread && is_known);
            self.reads.extend(hidden.filter(|_| reads).map(|hidden| (place, hidden, was_own)));
            if writes {
                (byte.value, byte.hidden) = (new, None);
            } else if !is_known {
                byte.hidden = None;
            }
            byte.known = Some((byte.value, byte.hidden));
        }
        let event = Event { size, ..about(kind, global("counter") + at as u64) };
        match kind {
            Kind::Write => {
                self.log(thread, event);
                self.log(thread, Event { stored: Some(new), ..about(Kind::Stored, 0) });
            }
            Kind::AtomicUpdate => self
                .log(thread, extra(Event { value: Some(seen), order: order::BOTH, ..event }, new)),
            Kind::AtomicStore => self.log(thread, Event { value: Some(new), ..event }),
            Kind::AtomicLoad => {
                let load = Event { value: Some(seen), order: order::ACQUIRE, ..event };
                self.log(thread, load);
            }
            _ => self.log(thread, Event { value: Some(seen), ..event }),
        }
    }

    /// Threads take turns; each leaves a trace of having run, though perhaps no more.
    fn unordered(mut self, kinds: &[Kind]) -> Self {
        for _ in 0..60 {
            let thread = self.rng.below(THREADS);
            self.log(thread, Event::new(Kind::Nothing, 0, 0));
            for _ in 0..self.rng.below(4) {
                if self.rng.below(3) == 0 {
                    self.hide(thread);
                } else {
                    let kind = kinds[self.rng.below(kinds.len())];
                    self.access(thread, kind);
                }
            }
        }
        self
    }

    /// Threads take turns that are critical sections, in which plain accesses are made; outside of
    /// them they do what concerns nobody.
    fn locked(mut self) -> Self {
        for _ in 0..60 {
            let thread = self.rng.below(THREADS);
            self.log(thread, about(Kind::Lock, global("m")));
            for _ in 0..self.rng.below(5) {
                match self.rng.below(3) {
                    0 => self.hide(thread),
                    1 => self.access(thread, Kind::Read),
                    _ => self.access(thread, Kind::Write),
                }
            }
            self.log(thread, about(Kind::Unlock, global("m")));
            self.log(thread, access(Kind::Write, global("ready") + 8 * thread as u64, None));
        }
        self
    }
}

/// What each thread is known to have done before, by the places of events.
type Clocks = [[usize; THREADS]; THREADS];

/// What orders events of different threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Assumed,
    Locks,
    Both,
}

/// Calls `look` after each event of `trace` with its place in the recording, and what came before it.
fn follow(trace: &Trace, by: By, mut look: impl FnMut(usize, &Clocks)) {
    // Each comes after its fork, of which the first events are.
    let mut clocks: Clocks = std::array::from_fn(|thread| [thread.saturating_sub(1), 0, 0]);
    let mut channels: FxHashMap<VarId, [usize; THREADS]> = FxHashMap::default();
    let mut lock = [0; THREADS];
    let names = trace.names();
    let join = |into: &mut [usize; THREADS], from: &[usize; THREADS]| {
        into.iter_mut().zip(from).for_each(|(into, &from)| *into = from.max(*into));
    };
    for (_, event) in trace.events() {
        let thread = match names.threads.name(event.thread) {
            "main" => 0,
            name => name[1..].parse().unwrap(),
        };
        let place = names.location(event.site)[4..].parse::<usize>().unwrap() - 1;
        let is_assumed = |var: &VarId| by != By::Locks && names.assumed_library(*var).is_some();
        let channel = event.op.var().filter(is_assumed);
        match (event.op, channel) {
            (Op::Access(AccessOp::AtomicRead(_), _), Some(var)) => {
                join(&mut clocks[thread], &channels[&var]);
            }
            (Op::Lock(LockOp::Acquire, _), _) if by != By::Assumed => {
                join(&mut clocks[thread], &lock);
            }
            _ => {}
        }
        clocks[thread][thread] = place;
        match (event.op, channel) {
            (_, Some(var)) if event.op.is_write() => _ = channels.insert(var, clocks[thread]),
            (Op::Lock(LockOp::Release, _), _) if by != By::Assumed => lock = clocks[thread],
            _ => {}
        }
        look(place, &clocks);
    }
}

/// What came before the events at `places`, whether they are in the trace themselves or not.
fn known_at(trace: &Trace, places: impl Iterator<Item = usize>) -> FxHashMap<usize, Clocks> {
    let mut places: Vec<usize> = places.collect();
    places.sort_unstable();
    let (mut next, mut last, mut found) = (0, Clocks::default(), FxHashMap::default());
    follow(trace, By::Assumed, |place, clocks| {
        while next < places.len() && places[next] < place {
            found.insert(places[next], last);
            next += 1;
        }
        last = *clocks;
    });
    found.extend(places[next..].iter().map(|&place| (place, last)));
    found
}

/// Objects that threads change by atomics and give to libraries: blocks and a global variable.
const OBJECTS: [u64; 3] = [0x10_0000, 0x20_0000, 0x1000];

/// A recording of such threads, and by the places of the calls what must have come before them.
fn calls_of_libraries(seed: u64) -> (Vec<Logged>, Vec<(usize, Clocks)>) {
    let mut run = Run::new(seed);
    let mut clocks: Clocks = std::array::from_fn(|thread| [thread.saturating_sub(1), 0, 0]);
    let mut writes: Vec<(usize, [usize; THREADS])> = Vec::new();
    let mut calls = Vec::new();
    for &object in &OBJECTS[..2] {
        run.log(0, extra(about(Kind::Alloc, object), 64));
    }
    for _ in 0..60 {
        let (thread, object) = (run.rng.below(THREADS), run.rng.below(OBJECTS.len()));
        let address = OBJECTS[object] + 8 * run.rng.below(3) as u64;
        let place = run.events.len();
        match run.rng.below(8) {
            0 if object < 2 => {
                // It becomes another object.
                writes.retain(|&(of, _)| of != object);
                run.log(thread, about(Kind::Free, OBJECTS[object]));
                run.log(thread, extra(about(Kind::Alloc, OBJECTS[object]), 64));
            }
            0..4 => {
                let address = if object < 2 { address } else { OBJECTS[object] };
                run.log(thread, about(Kind::Argument, address));
                for (_, before) in writes.iter().filter(|&&(of, _)| of == object) {
                    for (own, &other) in clocks[thread].iter_mut().zip(before) {
                        *own = other.max(*own);
                    }
                }
                calls.push((place, clocks));
            }
            kind => {
                let event = access(Kind::AtomicStore, address, Some(seed));
                let update = extra(access(Kind::AtomicUpdate, address, None), seed);
                run.log(thread, if kind % 2 == 0 { event } else { update });
                clocks[thread][thread] = place;
                writes.push((object, clocks[thread]));
            }
        }
    }
    (run.events, calls)
}

/// Reads of `run` come after the hidden writes that they saw, unless `is_exempt` says otherwise.
fn check_reads(run: &Run, is_exempt: impl Fn(Kind, bool) -> bool) -> Result<(), TestCaseError> {
    let (trace, _) = converted(&run.events);
    let known = known_at(&trace, run.reads.iter().map(|&(place, ..)| place));
    for &(place, hidden, was_own) in &run.reads {
        let (reader, event) = run.events[place];
        let clocks = &known[&place];
        let is_after = clocks[reader as usize][hidden.thread] >= hidden.after;
        prop_assert!(
            is_after || is_exempt(event.kind, was_own),
            "{place} does not come after {hidden:?}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(soak::config(128))]

    #[test]
    fn atomic_reads_come_after_what_they_saw(seed in any::<u64>()) {
        let kinds = [
            Kind::Read, Kind::Write, Kind::AtomicLoad, Kind::AtomicLoad, Kind::AtomicUpdate,
            Kind::AtomicStore,
        ];
        let run = Run::new(seed).unordered(&kinds);
        check_reads(&run, |kind, _| kind == Kind::Read)?;
    }

    #[test]
    fn plain_reads_come_after_what_they_saw_where_nothing_else_orders(seed in any::<u64>()) {
        let run = Run::new(seed).unordered(&[Kind::Read, Kind::Write]);
        check_reads(&run, |_, was_own| was_own)?;
    }

    #[test]
    fn calls_of_libraries_come_after_writes_to_what_they_are_given_and_no_more(seed in any::<u64>()) {
        let (events, calls) = calls_of_libraries(seed);
        let (trace, _) = converted(&events);
        let known = known_at(&trace, calls.iter().map(|&(place, _)| place));
        for (place, expected) in calls {
            let thread = events[place].0 as usize;
            for other in (0..THREADS).filter(|&other| other != thread) {
                prop_assert_eq!(known[&place][thread][other], expected[thread][other], "{}", place);
            }
        }
    }

    #[test]
    fn plain_reads_come_after_what_locks_ordered_and_no_more(seed in any::<u64>()) {
        let run = Run::new(seed).locked();
        check_reads(&run, |_, _| false)?;
        let (trace, _) = converted(&run.events);
        let mut observed = Vec::new();
        follow(&trace, By::Locks, |place, clocks| observed.push((place, *clocks)));
        let mut all = Vec::new();
        follow(&trace, By::Both, |place, clocks| all.push((place, *clocks)));
        for (observed, all) in observed.into_iter().zip(all) {
            prop_assert_eq!(observed, all);
        }
    }
}
