//! Every outcome of a program.
//!
//! The question: how can runs of this program end, under any scheduler whatever? The answer goes
//! through its states, depth first, trying in each the threads of a persistent set and remembering
//! the states that it has seen, so that loops which wait or retry come to an end.
//!
//! Promised, where the exploration is complete: the outcomes are those of all runs that end, each
//! with a schedule that shows it, and the faults are those of all runs, even of runs that cannot
//! end. A run that an assumption ended has no result. For faults, a set of threads is not enough
//! where a loop could put the others off for ever: a state from which the set leads back to one
//! that is being explored tries all threads (the cycle proviso). An exploration that was cut short
//! says so, and what it found is true all the same.
//!
//! Costs time in the states and memory in the states and the longest path, of which there is a
//! limit that comes before what a machine has. States where only one thread needs to be tried and
//! no loop goes round are passed through without being kept.

mod bits;
mod digest;
mod flow;
mod ledger;
mod persistent;
#[cfg(feature = "reference")]
pub mod reference;

pub(crate) use digest::{Digest, state};
pub(crate) use flow::{INSTRUCTIONS_MAX, StaticFlow};
pub(crate) use ledger::Ledger;

use crate::code::Code;
use crate::machine::Machine;
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
    /// Whether a run can go on for ever, if only because a scheduler is unfair.
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
#[must_use]
pub fn explore(code: &Code, limits: &Limits) -> Exploration {
    explore_while(code, limits, &|| true)
}

/// Explores all runs of `code`, or those that there is time for until `goes_on` returns false.
#[must_use]
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
        ledger: Ledger::new(limits, goes_on),
        stack: Vec::new(),
        path: Vec::new(),
    };
    search.run(Machine::new(code, false, &mut Nobody));
    search.ledger.finish()
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
    ledger: Ledger<'c, ThreadNumber>,
    stack: Vec<Frame<'c>>,
    /// The steps that lead to the state at hand.
    path: Vec<ThreadNumber>,
}

impl<'c> Search<'c> {
    fn run(&mut self, start: Machine<'c>) {
        self.ledger.note_faults(&start, 0, &self.path);
        self.visit(start);
        while let Some(frame) = self.stack.last_mut() {
            if !self.ledger.goes_on() {
                return;
            }
            let Some(thread) = frame.left.pop() else {
                self.ledger.close(frame.digest);
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
        self.ledger.step();
        self.path.push(thread);
        self.ledger.note_faults(machine, faults_count, &self.path);
    }

    /// Goes on from `machine` while only one thread need be tried; then keeps the state, if it is
    /// new, or notes how the run ended.
    fn visit(&mut self, mut machine: Machine<'c>) -> Met {
        let (left, put_off) = loop {
            let enabled = match ending(&machine) {
                Ok(enabled) => enabled,
                Err(ending) => {
                    self.ledger.note_outcome(&machine, ending, &self.path);
                    return Met::Other;
                }
            };
            let is_long = self.ledger.is_long(self.path.len() as u64);
            if is_long || machine.threads.len() > THREADS_MAX {
                self.ledger.cut_short();
                return Met::Other;
            }
            let tried = persistent::threads(&machine, &self.flow, &enabled);
            if let &[only] = tried.as_slice()
                && !self.flow.may_go_back(machine.threads[only as usize].at)
            {
                self.step(&mut machine, only);
                continue;
            }
            let put_off = enabled.into_iter().filter(|thread| !tried.contains(thread)).collect();
            break (tried, put_off);
        };
        let digest = state(&machine, &self.flow);
        if self.ledger.closes_loop(digest) {
            return Met::Loop;
        }
        let words = machine.words();
        if self.ledger.is_new(&machine, digest) && self.ledger.takes(words) {
            self.ledger.open(digest);
            let (machine, depth) = (Some(machine), self.path.len());
            self.stack.push(Frame { machine, words, digest, left, put_off, depth });
        }
        Met::Other
    }

    /// Lets go of the state at `place` of the stack.
    fn forget(&mut self, place: usize) {
        let frame = &mut self.stack[place];
        self.ledger.gives_back(std::mem::take(&mut frame.words));
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
