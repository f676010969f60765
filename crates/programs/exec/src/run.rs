//! One run, from the start to its end.
//!
//! The threads that may be able to go on are a list; a scheduler picks from it. One that turns out
//! to wait for something is set aside until a step gives that back, so a step costs the same with
//! many threads as with few.

use reweave_trace::{OpKind, Trace};

use crate::code::Code;
use crate::machine::{Machine, Resource, Stepped};
use crate::observe::{Observer, ThreadNumber};
use crate::outcome::{Awaited, Blocked, Ending, Fault, Outcome};
use crate::record::{Layers, Recorder};
use crate::scheduler::{Scheduler, View};

/// What a run may take, and what is recorded of it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many steps it may take.
    pub steps_max: u64,
    /// How many threads it may start.
    pub threads_max: u32,
    /// What is recorded.
    pub layers: Layers,
}

impl Default for Settings {
    fn default() -> Self {
        Self { steps_max: 10_000_000, threads_max: 100_000, layers: Layers::Program }
    }
}

/// Which thread took each step of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule(pub Vec<ThreadNumber>);

impl From<Vec<ThreadNumber>> for Schedule {
    fn from(threads: Vec<ThreadNumber>) -> Self {
        Self(threads)
    }
}

/// What one run did.
#[derive(Debug)]
pub struct Run {
    /// Its events, with the layers that were asked for.
    pub trace: Trace,
    /// How it ended.
    pub ending: Ending,
    /// The threads that could not go on, and why, in the order in which it happened.
    pub faults: Vec<Fault>,
    /// What repeats it.
    pub schedule: Schedule,
    /// What each shared variable and element held at the end, by cell.
    pub memory: Vec<i64>,
}

impl Run {
    /// What the program's result held at the end.
    pub fn result(&self, code: &Code) -> Vec<i64> {
        code.focus.iter().map(|&cell| self.memory[cell as usize]).collect()
    }

    /// What it came to, to be compared with other runs of `code`.
    pub fn outcome(&self, code: &Code) -> Outcome {
        Outcome::new(code, &self.memory, self.ending.clone(), &self.faults)
    }
}

impl Code {
    /// The names of what is the program's result, in the order of [`Run::result`].
    pub fn result_names(&self) -> Vec<String> {
        self.focus.iter().map(|&cell| self.cell_name(cell)).collect()
    }
}

/// How many registers all threads together may have.
pub(crate) const REGISTERS_MAX: usize = 1 << 27;

/// Runs `code` under `scheduler`.
///
/// ```
/// use reweave_exec::scheduler::RoundRobin;
/// use reweave_exec::{Code, Settings, run};
/// use reweave_lang::{Source, check};
///
/// let source = Source::new("a.rw", "shared x; main { x = 1; x = x + 1; }");
/// let code = Code::new(&check(&source).program.unwrap(), &source);
/// let run = run(&code, &mut RoundRobin::new(), &Settings::default());
/// assert_eq!(run.result(&code), [2]);
/// ```
pub fn run(code: &Code, scheduler: &mut dyn Scheduler, settings: &Settings) -> Run {
    let threads_max =
        (settings.threads_max as usize).min(REGISTERS_MAX / code.registers.len().max(1));
    let mut recorder = Recorder::new(code, settings.layers);
    if code.entries.len() > threads_max {
        let (schedule, memory) = (Schedule::default(), code.memory.clone());
        let (trace, ending) = (recorder.finish(), Ending::Threads);
        return Run { trace, ending, faults: Vec::new(), schedule, memory };
    }
    let mut machine = Machine::new(code, false, &mut recorder);
    let mut ready = Ready::new(&machine);
    let mut schedule = Vec::new();
    let ending = loop {
        if let Some(line) = machine.assumption {
            break Ending::Assumption(line);
        }
        if ready.threads.is_empty() {
            break deadlock_or_end(&machine);
        }
        if schedule.len() as u64 >= settings.steps_max {
            break Ending::Steps;
        }
        if machine.threads.len() > threads_max {
            break Ending::Threads;
        }
        let view = View { machine: &machine, steps_count: schedule.len() as u64 };
        let Some(place) = scheduler.pick(&ready.threads, view) else {
            // Those that are ready may all turn out to wait.
            let can_go_on = ready.threads.iter().any(|&thread| machine.can_step(thread));
            break if can_go_on { Ending::Stopped } else { deadlock_or_end(&machine) };
        };
        let thread = ready.threads[place];
        if let Some(awaited) = machine.blocked_on(thread) {
            ready.set_aside(place, awaited);
            continue;
        }
        let stepped = machine.step(thread, &mut recorder);
        schedule.push(thread);
        ready.update(place, stepped, &machine);
    };
    if let Ending::Deadlock(_) = ending {
        request_locks(&machine, &mut recorder);
    }
    Run {
        trace: recorder.finish(),
        ending,
        faults: machine.faults,
        schedule: Schedule(schedule),
        memory: machine.memory,
    }
}

/// Records what the threads that wait for locks have asked for and will not get.
fn request_locks(machine: &Machine<'_>, recorder: &mut Recorder<'_>) {
    for (number, thread) in machine.threads.iter().enumerate() {
        let number = number as ThreadNumber;
        if thread.has_ended {
            continue;
        }
        if let Some(Resource::Lock(lock)) = machine.blocked_on(number) {
            recorder.event(number, thread.at, (OpKind::Request, lock), None);
        }
    }
}

/// How a run ends in which no thread can go on.
pub(crate) fn deadlock_or_end(machine: &Machine<'_>) -> Ending {
    let threads = 0..machine.threads.len() as ThreadNumber;
    let blocked: Vec<Blocked> = threads.filter_map(|thread| blocked(machine, thread)).collect();
    if blocked.is_empty() { Ending::Finished } else { Ending::Deadlock(blocked) }
}

/// What `thread` waits for, if it waits.
pub(crate) fn blocked(machine: &Machine<'_>, thread: ThreadNumber) -> Option<Blocked> {
    let state = &machine.threads[thread as usize];
    let awaited = match machine.blocked_on(thread)? {
        Resource::Lock(lock) => Awaited::Lock(machine.code.lock_name(lock)),
        Resource::Condition(of) => Awaited::Condition(machine.code.conditions[of as usize].clone()),
        Resource::Thread(of) => Awaited::Thread(machine.threads[of as usize].name.to_string()),
    };
    let line = machine.code.effects[state.at as usize].line;
    Some(Blocked { thread: state.name.to_string(), awaited, line })
}

/// The threads that may be able to go on, and those that wait.
struct Ready {
    threads: Vec<ThreadNumber>,
    /// Those that wait, by what they wait for: locks, then conditions, then threads.
    waiting: Vec<Vec<ThreadNumber>>,
    locks_count: usize,
    conditions_count: usize,
}

impl Ready {
    fn new(machine: &Machine<'_>) -> Self {
        let threads = 0..machine.threads.len() as ThreadNumber;
        let (locks_count, conditions_count) = (machine.locks.len(), machine.conditions.len());
        Self {
            threads: threads
                .filter(|&thread| !machine.threads[thread as usize].has_ended)
                .collect(),
            waiting: vec![Vec::new(); locks_count + conditions_count + machine.threads.len()],
            locks_count,
            conditions_count,
        }
    }

    /// The place in `waiting` of those that wait for `awaited`.
    const fn place(&self, awaited: Resource) -> usize {
        match awaited {
            Resource::Lock(lock) => lock as usize,
            Resource::Condition(of) => self.locks_count + of as usize,
            Resource::Thread(of) => self.locks_count + self.conditions_count + of as usize,
        }
    }

    /// The thread at `place` waits for `awaited`.
    fn set_aside(&mut self, place: usize, awaited: Resource) {
        let thread = self.threads.swap_remove(place);
        let queue = self.place(awaited);
        self.waiting[queue].push(thread);
    }

    /// The thread at `place` has taken a step.
    fn update(&mut self, place: usize, stepped: Stepped, machine: &Machine<'_>) {
        let thread = self.threads[place];
        if let Some(freed) = stepped.freed {
            let queue = self.place(freed);
            self.threads.append(&mut self.waiting[queue]);
        }
        if let Some(child) = stepped.forked {
            self.waiting.push(Vec::new());
            if !machine.threads[child as usize].has_ended {
                self.threads.push(child);
            }
        }
        if machine.threads[thread as usize].has_ended {
            self.threads.swap_remove(place);
            let queue = self.place(Resource::Thread(thread));
            self.threads.append(&mut self.waiting[queue]);
        }
    }
}
