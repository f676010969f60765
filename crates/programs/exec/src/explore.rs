//! Every outcome of a program.
//!
//! The question: how can runs of this program end, under any scheduler whatever? The answer goes
//! through its states, depth first, trying in each the threads of a persistent set and remembering
//! the states that it has seen, so that loops which wait or retry come to an end.
//!
//! Promised, where the exploration is complete: the outcomes are those of all runs that end, each
//! with a schedule that shows it, and the faults are those of all runs, even of runs that cannot
//! end. A run that an assumption ended has no result. For faults, a set of threads is not enough
//! where a loop could put the others off forever: a state from which the set leads back to one
//! that is being explored tries all threads (the cycle proviso). An exploration that was cut short
//! says so, and what it found is true all the same.
//!
//! Costs time in the states and memory in the states and the longest path, of which there is a
//! limit that comes before what a machine has. States where only one thread needs to be tried and
//! no loop goes round are passed through without being kept.

mod persistent;
#[cfg(feature = "reference")]
pub mod reference;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use reweave_base::{FxHashSet, bits};

use crate::code::Code;
pub(crate) use crate::explore::persistent::{INSTRUCTIONS_MAX, StaticFlow};
use crate::machine::{Machine, Thread};
use crate::observe::{Nobody, ThreadNumber};
use crate::outcome::{Ending, Fault, Outcome};
use crate::run::{REGISTERS_MAX, Schedule, deadlock_or_end};

/// How many words the states on one path may take together.
pub(crate) const WORDS_MAX: usize = 1 << 27;

/// How many threads a run may start: each costs a little at every step.
pub(crate) const THREADS_MAX: usize = 1 << 11;

/// How many words a state may have, on average, for as many to be kept as asked: a program that
/// starts ever more threads has ever larger states.
pub(crate) const WORDS_PER_STATE: u64 = 1 << 10;

/// How far an exploration goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many states it may keep; fewer, if they are very large.
    pub states_max: u64,
    /// How many steps a run may take.
    pub steps_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { states_max: 1_000_000, steps_max: 100_000 }
    }
}

/// What was found, each with a witness: by default a schedule that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration<W = Schedule> {
    /// How runs end, in order.
    pub outcomes: Vec<(Outcome, W)>,
    /// What goes wrong in runs, whether they end or not, in order.
    pub faults: Vec<(Fault, W)>,
    /// Whether a run can go on forever, if only because a scheduler is unfair.
    pub is_endless: bool,
    /// How many states were kept.
    pub states_count: u64,
    /// Whether everything was explored.
    pub complete: bool,
}

impl<W> Exploration<W> {
    /// Nothing looked at yet.
    pub(crate) const fn empty() -> Self {
        Self {
            outcomes: Vec::new(),
            faults: Vec::new(),
            is_endless: false,
            states_count: 0,
            complete: false,
        }
    }
}

/// Explores all runs of `code`.
///
/// ```
/// use reweave_exec::{Code, Limits, explore};
/// use reweave_lang::{Source, check};
///
/// let text = "shared x; thread a { x = 1; } thread b { x = 2; }";
/// let source = Source::new("a.rw", text);
/// let code = Code::new(&check(&source).program.unwrap(), &source);
/// assert_eq!(explore(&code, &Limits::default()).outcomes.len(), 2);
/// ```
pub fn explore(code: &Code, limits: &Limits) -> Exploration {
    explore_while(code, limits, &|| true)
}

/// Explores all runs of `code`, or those that there is time for until `goes_on` returns false.
pub fn explore_while<'c>(
    code: &'c Code,
    limits: &Limits,
    goes_on: &'c dyn Fn() -> bool,
) -> Exploration {
    if code.instructions.len() > INSTRUCTIONS_MAX || !fits(code) {
        return Exploration::empty();
    }
    let mut search = Search {
        flow: StaticFlow::new(code),
        progress: Progress::new(limits, goes_on),
        stack: Vec::new(),
        path: Vec::new(),
    };
    search.run(Machine::new(code, false, &mut Nobody));
    search.progress.finish()
}

/// Whether the threads that are there at the start fit into memory.
pub(crate) fn fits(code: &Code) -> bool {
    code.entries.len().saturating_mul(code.registers.len()) <= REGISTERS_MAX
}

/// A state on the path from the start.
struct Frame<'c> {
    /// The state, as long as a thread is left to try.
    machine: Option<Machine<'c>>,
    /// How many words that takes.
    words: usize,
    digest: u128,
    /// The threads that are left to try.
    left: Vec<ThreadNumber>,
    /// Those that need not be tried unless a loop puts them off.
    put_off: Vec<ThreadNumber>,
    /// How many steps lead here.
    depth: usize,
}

/// What a state turned out to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Met {
    /// One that is on the path, so that a loop is closed.
    Loop,
    Other,
}

struct Search<'c> {
    flow: StaticFlow,
    progress: Progress<'c, ThreadNumber>,
    stack: Vec<Frame<'c>>,
    /// The steps that lead to the state at hand.
    path: Vec<ThreadNumber>,
}

impl<'c> Search<'c> {
    fn run(&mut self, start: Machine<'c>) {
        self.progress.note_faults(&start, 0, &self.path);
        self.visit(start);
        while let Some(frame) = self.stack.last_mut() {
            if !self.progress.goes_on() {
                return;
            }
            let Some(thread) = frame.left.pop() else {
                self.progress.close(frame.digest);
                self.forget(self.stack.len() - 1);
                self.stack.pop();
                continue;
            };
            self.path.truncate(frame.depth);
            let is_last = frame.left.is_empty() && frame.put_off.is_empty();
            let machine = if is_last { frame.machine.take() } else { frame.machine.clone() };
            let mut machine = machine.expect("a state is kept as long as a thread is left to try");
            let place = self.stack.len() - 1;
            if is_last {
                self.forget(place);
            }
            self.step(&mut machine, thread);
            let met = self.visit(machine);
            let frame = &mut self.stack[place];
            if met == Met::Loop {
                // The cycle proviso: without it a loop of the chosen threads could put the others
                // off forever, and a fault of theirs would be missed.
                frame.left.append(&mut frame.put_off);
            } else if frame.left.is_empty() {
                frame.put_off = Vec::new();
                self.forget(place);
            }
        }
    }

    fn step(&mut self, machine: &mut Machine<'c>, thread: ThreadNumber) {
        let faults_count = machine.faults.len();
        machine.step(thread, &mut Nobody);
        self.progress.step();
        self.path.push(thread);
        self.progress.note_faults(machine, faults_count, &self.path);
    }

    /// Goes on from `machine` while only one thread need be tried; then keeps the state, if it is
    /// new, or notes how the run ended.
    fn visit(&mut self, mut machine: Machine<'c>) -> Met {
        let (left, put_off) = loop {
            let enabled = match ending(&machine) {
                Ok(enabled) => enabled,
                Err(ending) => {
                    self.progress.note_outcome(&machine, ending, &self.path);
                    return Met::Other;
                }
            };
            let is_long = self.progress.is_long(self.path.len() as u64);
            if is_long || machine.threads.len() > THREADS_MAX {
                self.progress.cut_short();
                return Met::Other;
            }
            let tried = persistent::threads(&machine, &self.flow, &enabled);
            // With one thread to try and no loop to close, the state need not be kept.
            if let &[only] = tried.as_slice()
                && !self.flow.may_go_back(machine.threads[only as usize].at)
            {
                self.step(&mut machine, only);
                continue;
            }
            let put_off = enabled.into_iter().filter(|thread| !tried.contains(thread)).collect();
            break (tried, put_off);
        };
        let digest = state_digest(&machine, &self.flow);
        if self.progress.closes_loop(digest) {
            return Met::Loop;
        }
        let words = machine.words();
        if self.progress.is_new(&machine, digest) && self.progress.reserve_words(words) {
            self.progress.open(digest);
            let (machine, depth) = (Some(machine), self.path.len());
            self.stack.push(Frame { machine, words, digest, left, put_off, depth });
        }
        Met::Other
    }

    /// Lets go of the state at `place` of the stack.
    fn forget(&mut self, place: usize) {
        let frame = &mut self.stack[place];
        self.progress.free_words(std::mem::take(&mut frame.words));
        frame.machine = None;
    }
}

/// The threads that can take a step, or how the run has ended.
fn ending(machine: &Machine<'_>) -> Result<Vec<ThreadNumber>, Ending> {
    if let Some(line) = machine.assumption {
        return Err(Ending::Assumption(line));
    }
    let threads = 0..machine.threads.len() as ThreadNumber;
    let enabled: Vec<ThreadNumber> = threads.filter(|&thread| machine.can_step(thread)).collect();
    if enabled.is_empty() { Err(deadlock_or_end(machine)) } else { Ok(enabled) }
}

// States by 128 bits.
//
// Two states are the same if nothing that can still happen distinguishes them. So threads go by
// their names, whatever order they started in; a thread that has ended counts only as far as it
// left something behind; and of its registers a thread has only those that it will still read.
// Different states have the same 128 bits with a chance that can be neglected.

/// Mixes numbers to 128 bits. Each half takes in a number by a bijection, so it forgets nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest {
    left: u64,
    right: u64,
}

impl Digest {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { left: seed ^ 0x243f_6a88_85a3_08d3, right: !seed ^ 0x1319_8a2e_0370_7344 }
    }

    pub(crate) const fn add(&mut self, number: u64) {
        let left = (self.left ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let right = (self.right.rotate_left(29) ^ number).wrapping_mul(0xd6e8_feb8_6659_fd93);
        self.left = left ^ left >> 32;
        self.right = right ^ right >> 29;
    }

    pub(crate) const fn value(self) -> u128 {
        (mixed(self.left) as u128) << 64 | mixed(self.right) as u128
    }
}

/// A bijection in which every bit depends on every other.
const fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        self.value() as u64
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut number = [0; 8];
            number[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(number));
        }
    }
}

/// What distinguishes `machine` from other states of the same program.
pub(crate) fn state_digest(machine: &Machine<'_>, flow: &StaticFlow) -> u128 {
    let identity = |thread: ThreadNumber| machine.threads[thread as usize].identity;
    let mut all = Digest::new(0);
    for &value in &machine.memory {
        all.add(value as u64);
    }
    for (number, lock) in machine.locks.iter().enumerate() {
        if let Some(owner) = lock.owner {
            all.add(number as u64);
            all.add(identity(owner));
            all.add(u64::from(lock.count));
        }
    }
    for (number, condition) in machine.conditions.iter().enumerate() {
        let mut sum = 0_u128;
        for (thread, signals) in condition.standing() {
            let mut one = Digest::new(number as u64);
            one.add(identity(thread));
            one.add(signals);
            sum = sum.wrapping_add(one.value());
        }
        all.add(condition.signals_count() as u64);
        all.add((sum >> 64) as u64);
        all.add(sum as u64);
    }
    // Neither threads nor faults have an order.
    let mut sum = 0_u128;
    for thread in machine.threads.iter().filter(|thread| !thread.has_ended) {
        sum = sum.wrapping_add(of_thread(machine, thread, flow));
    }
    for fault in &machine.faults {
        let mut one = Digest::new(1);
        fault.hash(&mut one);
        sum = sum.wrapping_add(one.value());
    }
    all.add((sum >> 64) as u64);
    all.add(sum as u64);
    all.value()
}

fn of_thread(machine: &Machine<'_>, thread: &Thread, flow: &StaticFlow) -> u128 {
    let identity = |thread: u64| {
        machine.threads.get(thread as usize).map_or(u64::MAX, |thread| thread.identity)
    };
    let mut one = Digest::new(2);
    one.add(thread.identity);
    one.add(u64::from(thread.at));
    one.add(u64::from(thread.forks_count));
    one.add(thread.frames.len() as u64);
    for &frame in &thread.frames {
        one.add(u64::from(frame));
    }
    one.add(thread.children.len() as u64);
    for &child in &thread.children {
        one.add(identity(u64::from(child)));
    }
    let places: Vec<&[u64]> = thread.places().map(|place| flow.live(place)).collect();
    for register in bits::union_members(&places).map(|register| register as u32) {
        let value = thread.registers[register as usize] as u64;
        one.add(if flow.is_handle(register) { identity(value) } else { value });
    }
    one.value()
}

/// How many words all witnesses together may take.
const WITNESSES_MAX: usize = 1 << 24;

/// How many steps are taken between two looks at whether to go on.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 10;

/// What an exploration has visited and found so far; witnesses are lists of `E`.
pub(crate) struct Progress<'c, E> {
    limits: Limits,
    goes_on: &'c dyn Fn() -> bool,
    steps_since_look: u64,
    /// How many words the witnesses take.
    witness_words: usize,
    /// How many words the states on the stack take.
    words: usize,
    /// How many words all states took that were kept, small ones counted as usual ones, and how
    /// many steps.
    work: u64,
    /// The states on the path.
    open: FxHashSet<u128>,
    visited: FxHashSet<u128>,
    outcomes: BTreeMap<Outcome, Vec<E>>,
    faults: BTreeMap<Fault, Vec<E>>,
    is_endless: bool,
    complete: bool,
}

impl<'c, E: Clone> Progress<'c, E> {
    pub(crate) fn new(limits: &Limits, goes_on: &'c dyn Fn() -> bool) -> Self {
        Self {
            limits: *limits,
            goes_on,
            steps_since_look: 0,
            witness_words: 0,
            words: 0,
            work: 0,
            open: FxHashSet::default(),
            visited: FxHashSet::default(),
            outcomes: BTreeMap::new(),
            faults: BTreeMap::new(),
            is_endless: false,
            complete: true,
        }
    }

    pub(crate) fn finish<W: From<Vec<E>>>(self) -> Exploration<W> {
        Exploration {
            outcomes: self.outcomes.into_iter().map(|(it, witness)| (it, witness.into())).collect(),
            faults: self.faults.into_iter().map(|(it, witness)| (it, witness.into())).collect(),
            is_endless: self.is_endless,
            states_count: self.visited.len() as u64,
            complete: self.complete,
        }
    }

    /// Counts a step.
    pub(crate) const fn step(&mut self) {
        self.steps_since_look += 1;
        self.work += 1;
    }

    /// Whether the exploration goes on, as far as whoever asked for it is concerned.
    pub(crate) fn goes_on(&mut self) -> bool {
        if self.steps_since_look <= STEPS_BETWEEN_LOOKS {
            return true;
        }
        self.steps_since_look = 0;
        let goes_on = (self.goes_on)();
        self.complete &= goes_on;
        goes_on
    }

    /// Whether a run of so many steps is as long as it may be.
    pub(crate) const fn is_long(&self, steps_count: u64) -> bool {
        steps_count >= self.limits.steps_max
    }

    /// Says that something is left out.
    pub(crate) const fn cut_short(&mut self) {
        self.complete = false;
    }

    /// Remembers the faults of `machine` after the first `known_count`, which `path` leads to.
    pub(crate) fn note_faults(&mut self, machine: &Machine<'_>, known_count: usize, path: &[E]) {
        for fault in &machine.faults[known_count..] {
            if !self.faults.contains_key(fault) && self.has_room(path, 0) {
                self.faults.insert(fault.clone(), path.to_vec());
            }
        }
    }

    /// Remembers how the run ended that `path` leads to.
    pub(crate) fn note_outcome(&mut self, machine: &Machine<'_>, ending: Ending, path: &[E]) {
        let outcome = Outcome::new(machine.code, &machine.memory, ending, &machine.faults);
        if !self.outcomes.contains_key(&outcome) && self.has_room(path, outcome.result.len()) {
            self.outcomes.insert(outcome, path.to_vec());
        }
    }

    /// Whether there is room for `path`, and `words` besides, among the witnesses.
    fn has_room(&mut self, path: &[E], words: usize) -> bool {
        self.witness_words += path.len() * size_of::<E>().div_ceil(size_of::<u64>()) + words;
        self.complete &= self.witness_words <= WITNESSES_MAX;
        self.witness_words <= WITNESSES_MAX
    }

    /// Whether the state `digest` is on the path, so that a loop is closed.
    pub(crate) fn closes_loop(&mut self, digest: u128) -> bool {
        let is_open = self.open.contains(&digest);
        self.is_endless |= is_open;
        is_open
    }

    /// Whether the state `digest` of `machine` was not seen before, and there is room for it.
    pub(crate) fn is_new(&mut self, machine: &Machine<'_>, digest: u128) -> bool {
        if self.visited.contains(&digest) {
            return false;
        }
        self.work += (machine.words() as u64).max(WORDS_PER_STATE);
        if self.work > self.limits.states_max.saturating_mul(WORDS_PER_STATE) {
            self.complete = false;
            return false;
        }
        self.visited.insert(digest)
    }

    /// Puts the state `digest` on the path.
    pub(crate) fn open(&mut self, digest: u128) {
        self.open.insert(digest);
    }

    /// Takes the state `digest` off the path.
    pub(crate) fn close(&mut self, digest: u128) {
        self.open.remove(&digest);
    }

    /// Whether there is room for a state of so many words on the stack, which it then takes.
    pub(crate) const fn reserve_words(&mut self, words: usize) -> bool {
        if self.words + words > WORDS_MAX {
            self.complete = false;
            return false;
        }
        self.words += words;
        true
    }

    /// Frees what a state on the stack took.
    pub(crate) const fn free_words(&mut self, words: usize) {
        self.words -= words;
    }
}
