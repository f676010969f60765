//! Every outcome of a program read as a nondeterministic sequential one.
//!
//! The threads of a `coforeach` or `cobegin` run one after the other, in any order, each with all
//! that it starts, from its first step to its end; so do the declared threads. An `if (*)` may be
//! left out. Those are the executions that specifications of parallel correctness allow (Burnim et
//! al., *NDetermin*, section 3.1). Locks, atomic sections and assumptions work as usual: a thread
//! that would wait waits forever, since nobody else runs, and that run ends as a deadlock, which
//! is no result. Only releasing a lock that is not held is no fault, since an `if (*)` may have
//! left the acquire out. `fork` has no such meaning ([`Code::has_fork`]), and nothing is explored.
//!
//! Depth first over choices; a state is remembered where there is a choice and where a loop goes
//! round, so a loop that does nothing but choose comes to an end. Cost: time and memory in those
//! states.

use crate::code::{Code, Instruction};
use crate::explore::{
    Digest, Exploration, INSTRUCTIONS_MAX, Limits, Progress, StaticFlow, THREADS_MAX, fits,
    state_digest,
};
use crate::machine::Machine;
use crate::observe::{Nobody, ThreadNumber};
use crate::outcome::Ending;
use crate::run::blocked;

/// A choice that a sequential run makes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// This thread runs now, from its start to its end.
    Thread(String),
    /// The `if (*)` at this line runs its body.
    Taken(u32),
    /// The `if (*)` at this line leaves its body out.
    Skipped(u32),
}

impl Code {
    /// The line of a `fork` statement, which has no sequential meaning; none if there is none.
    pub fn has_fork(&self) -> Option<u32> {
        let forks = |instruction: &Instruction| {
            matches!(instruction, Instruction::Fork { handle: Some(_), .. })
        };
        self.instructions.iter().position(forks).map(|at| self.effects[at].line)
    }
}

/// Explores all sequential runs of `code`, each with the choices that lead to it.
///
/// ```
/// use reweave_exec::{Code, Limits, explore_sequential};
/// use reweave_lang::{Source, check};
///
/// let text = "shared x; thread a { x = 2 * x; } thread b { x = x + 1; }";
/// let source = Source::new("a.rw", text);
/// let code = Code::new(&check(&source).program.unwrap(), &source);
/// // One after the other, in both orders: 1 and 2.
/// assert_eq!(explore_sequential(&code, &Limits::default()).outcomes.len(), 2);
/// ```
pub fn explore_sequential(code: &Code, limits: &Limits) -> Exploration<Vec<Choice>> {
    explore_sequential_while(code, limits, &|| true)
}

/// The same, or as much as there is time for until `goes_on` returns false.
pub fn explore_sequential_while<'c>(
    code: &'c Code,
    limits: &Limits,
    goes_on: &'c dyn Fn() -> bool,
) -> Exploration<Vec<Choice>> {
    if code.has_fork().is_some() || code.instructions.len() > INSTRUCTIONS_MAX || !fits(code) {
        return Exploration::empty();
    }
    let mut search = Search {
        flow: StaticFlow::new(code),
        progress: Progress::new(limits, goes_on),
        stack: Vec::new(),
        choices: Vec::new(),
    };
    search.run(Sequence {
        machine: Machine::new(code, true, &mut Nobody),
        active: Vec::new(),
        steps_count: 0,
    });
    search.progress.finish()
}

/// A sequential run, stopped between two steps.
#[derive(Clone)]
struct Sequence<'c> {
    machine: Machine<'c>,
    /// The threads that have begun and not ended, each started by the one before it.
    active: Vec<ThreadNumber>,
    steps_count: u64,
}

/// What comes next in a sequential run.
enum Next {
    /// This thread takes a step.
    Step(ThreadNumber),
    /// The innermost thread has ended.
    Leave,
    /// One of these threads begins.
    Begin(Vec<ThreadNumber>),
    /// This thread runs the body of an `if (*)`, or leaves it out.
    Optional(ThreadNumber),
    End(Ending),
}

/// What can be chosen.
#[derive(Clone, Copy)]
enum Alternative {
    Begin(ThreadNumber),
    Optional { thread: ThreadNumber, runs: bool },
}

impl Sequence<'_> {
    fn next(&self) -> Next {
        let machine = &self.machine;
        if let Some(line) = machine.assumption {
            return Next::End(Ending::Assumption(line));
        }
        let waiting = |threads: &mut dyn Iterator<Item = ThreadNumber>| -> Vec<ThreadNumber> {
            threads.filter(|&thread| !machine.threads[thread as usize].has_ended).collect()
        };
        let Some(&thread) = self.active.last() else {
            let first = waiting(&mut (0..machine.threads.len() as ThreadNumber));
            return if first.is_empty() { Next::End(Ending::Finished) } else { Next::Begin(first) };
        };
        if machine.threads[thread as usize].has_ended {
            return Next::Leave;
        }
        match machine.next(thread) {
            Instruction::Optional { .. } => return Next::Optional(thread),
            Instruction::JoinChild { next } => {
                let next = machine.register(thread, next) as usize;
                let children = &machine.threads[thread as usize].children[next..];
                let children = waiting(&mut children.iter().copied());
                if !children.is_empty() {
                    return Next::Begin(children);
                }
            }
            _ => {}
        }
        match blocked(machine, thread) {
            Some(blocked) => Next::End(Ending::Deadlock(vec![blocked])),
            None => Next::Step(thread),
        }
    }

    fn digest(&self, flow: &StaticFlow) -> u128 {
        let state = state_digest(&self.machine, flow);
        let mut all = Digest::new(state as u64);
        all.add((state >> 64) as u64);
        for &thread in &self.active {
            all.add(self.machine.threads[thread as usize].identity);
        }
        all.value()
    }

    fn choose(&mut self, alternative: Alternative) {
        match alternative {
            Alternative::Begin(thread) => self.active.push(thread),
            Alternative::Optional { thread, runs } => {
                self.machine.choose(thread, runs, &mut Nobody);
            }
        }
    }

    fn choice(&self, alternative: Alternative) -> Choice {
        match alternative {
            Alternative::Begin(thread) => {
                Choice::Thread(self.machine.threads[thread as usize].name.to_string())
            }
            Alternative::Optional { thread, runs } => {
                let at = self.machine.threads[thread as usize].at;
                let line = self.machine.code.effects[at as usize].line;
                if runs { Choice::Taken(line) } else { Choice::Skipped(line) }
            }
        }
    }
}

/// A state on the path from the start, and what is left to choose there.
struct Frame<'c> {
    sequence: Sequence<'c>,
    /// How many words that takes.
    words: usize,
    /// The states on the path since the one before.
    open: Vec<u128>,
    left: Vec<Alternative>,
    depth: usize,
}

struct Search<'c> {
    flow: StaticFlow,
    progress: Progress<'c, Choice>,
    stack: Vec<Frame<'c>>,
    /// The choices that lead to the state at hand.
    choices: Vec<Choice>,
}

impl<'c> Search<'c> {
    fn run(&mut self, start: Sequence<'c>) {
        self.progress.note_faults(&start.machine, 0, &self.choices);
        self.visit(start);
        while let Some(frame) = self.stack.last_mut() {
            if !self.progress.goes_on() {
                return;
            }
            let Some(alternative) = frame.left.pop() else {
                self.progress.free_words(frame.words);
                for digest in std::mem::take(&mut frame.open) {
                    self.progress.close(digest);
                }
                self.stack.pop();
                continue;
            };
            self.choices.truncate(frame.depth);
            let mut sequence = frame.sequence.clone();
            self.choose(&mut sequence, alternative);
            self.visit(sequence);
        }
    }

    fn choose(&mut self, sequence: &mut Sequence<'c>, alternative: Alternative) {
        self.choices.push(sequence.choice(alternative));
        let faults_count = sequence.machine.faults.len();
        sequence.choose(alternative);
        self.progress.note_faults(&sequence.machine, faults_count, &self.choices);
    }

    /// Goes on from `sequence` to the next choice that is new, or to the end of the run.
    fn visit(&mut self, mut sequence: Sequence<'c>) {
        // The states of loops that this stretch has gone round.
        let mut rounds: Vec<u128> = Vec::new();
        loop {
            let left = match sequence.next() {
                Next::Step(thread) => {
                    if self.goes_on(&mut sequence, thread, &mut rounds) {
                        continue;
                    }
                    break;
                }
                Next::Leave => {
                    sequence.active.pop();
                    continue;
                }
                Next::End(ending) => {
                    self.progress.note_outcome(&sequence.machine, ending, &self.choices);
                    break;
                }
                Next::Begin(threads) => threads.into_iter().rev().map(Alternative::Begin).collect(),
                Next::Optional(thread) => {
                    [false, true].map(|runs| Alternative::Optional { thread, runs }).to_vec()
                }
            };
            if let &[only] = left.as_slice() {
                self.choose(&mut sequence, only);
                continue;
            }
            let digest = sequence.digest(&self.flow);
            // The step before may have gone round a loop to here, and noted the state.
            let is_noted = rounds.last() == Some(&digest);
            if is_noted || self.is_new(&sequence, digest) {
                if !is_noted {
                    rounds.push(digest);
                    self.progress.open(digest);
                }
                self.keep(sequence, &mut rounds, left);
            }
            break;
        }
        for round in rounds {
            self.progress.close(round);
        }
    }

    /// Keeps a state with a choice, and the states on the path to it.
    fn keep(&mut self, sequence: Sequence<'c>, open: &mut Vec<u128>, left: Vec<Alternative>) {
        let words = sequence.machine.words();
        if !self.progress.reserve_words(words) {
            return;
        }
        let (open, depth) = (std::mem::take(open), self.choices.len());
        self.stack.push(Frame { sequence, words, open, left, depth });
    }

    /// Takes a step; whether the run is to be followed further.
    fn goes_on(
        &mut self,
        sequence: &mut Sequence<'c>,
        thread: ThreadNumber,
        rounds: &mut Vec<u128>,
    ) -> bool {
        let is_long = self.progress.is_long(sequence.steps_count);
        if is_long || sequence.machine.threads.len() > THREADS_MAX {
            self.progress.cut_short();
            return false;
        }
        let at = sequence.machine.threads[thread as usize].at;
        let faults_count = sequence.machine.faults.len();
        sequence.machine.step(thread, &mut Nobody);
        sequence.steps_count += 1;
        self.progress.step();
        self.progress.note_faults(&sequence.machine, faults_count, &self.choices);
        let state = &sequence.machine.threads[thread as usize];
        if state.has_ended || state.at > at || sequence.machine.assumption.is_some() {
            return true;
        }
        let digest = sequence.digest(&self.flow);
        let is_new = self.is_new(sequence, digest);
        if is_new {
            self.progress.open(digest);
            rounds.push(digest);
        }
        is_new
    }

    /// Whether `digest` was not seen before, and there is room for it.
    fn is_new(&mut self, sequence: &Sequence<'_>, digest: u128) -> bool {
        !self.progress.closes_loop(digest) && self.progress.is_new(&sequence.machine, digest)
    }
}
