//! Running a program under the recorder.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use reweave_runtime::session;
use reweave_runtime::shared::{DIRECTORY_VARIABLE, Mode, Settings};

use crate::collect::{Collector, Observer, Recording, is_running};

/// How long a program that is asked to end has before it is made to.
const GRACE: Duration = Duration::from_millis(500);

/// How long a program that exits waits for its other threads by default.
pub const EXIT_WAIT: Duration = Duration::from_secs(1);

/// How long a process that was made has to announce itself once the program has ended.
const CHILD_GRACE: Duration = Duration::from_millis(300);

/// How long no recorded process is looked for once the one that was started has ended.
const BACKGROUND_EVERY: Duration = Duration::from_millis(20);

const KILL: u32 = 9;
const TERMINATE: u32 = 15;

/// How a program is recorded.
#[derive(Clone, Debug)]
pub struct Options {
    /// One thread at a time, or all in parallel.
    pub mode: Mode,
    /// Whether values of accesses are kept.
    pub values: bool,
    /// The seed of the moments at which threads take over from each other.
    pub seed: u64,
    /// The most events that are kept.
    pub limit: u64,
    /// How long a program that exits waits for its other threads.
    pub exit_wait: Duration,
}

impl Options {
    /// What the runtime is asked for; `replay` says that there is a plan.
    #[must_use]
    pub fn settings(&self, replay: bool, timeout: Duration) -> Settings {
        let ring_words = match self.mode {
            Mode::Serial => 1 << 17,
            Mode::Free => 1 << 15,
        };
        Settings {
            mode: self.mode,
            values: self.values,
            seed: self.seed,
            quantum_max: 1 << 16,
            ring_words,
            collector: u64::from(std::process::id()),
            replay,
            stall_timeout_ms: timeout.as_millis() as u64,
            exit_wait_ms: self.exit_wait.as_millis() as u64,
        }
    }
}

/// What the caller wants while the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Ask the program to end.
    End,
    /// End the program at once.
    Kill,
}

/// How a run went.
#[derive(Debug)]
pub struct Run {
    /// How the program ended.
    pub status: ExitStatus,
    /// Whether we ended it.
    pub was_ended: bool,
    /// What became of a plan.
    pub outcome: Option<(u64, Vec<u64>)>,
    /// What each process recorded.
    pub recordings: Vec<Recording>,
    /// How many processes wanted to be recorded and had no room for it.
    pub unopened: u32,
    /// The process that was started.
    pub started: u32,
}

/// Runs `command` and reads what it records, until it ends, is full, or `control` says so. A recorded
/// process that runs on when the one that was started has ended, such as a daemon, is read until it
/// ends too.
///
/// # Errors
/// If the program cannot be started or an event log cannot be written.
pub fn run(
    command: &mut Command,
    mut collector: Collector,
    observer: &mut Observer<'_>,
    control: &mut dyn FnMut(&Collector) -> Control,
) -> io::Result<Run> {
    command.env(DIRECTORY_VARIABLE, collector.directory());
    // Clang's OpenMP library would not say what orders its threads.
    command.env_remove("OMP_TOOL");
    let mut child = command.spawn()?;
    collector.set_started(child.id());
    let mut processes = Processes { started: child.id(), known: Vec::new(), ending: None };
    let (mut status, mut ended) = (None, None);
    loop {
        let drained = match collector.poll(observer) {
            Ok(drained) => drained,
            Err(error) => {
                // The program is none the worse for it: it goes on, and is not left alone.
                collector.stop();
                child.wait()?;
                return Err(error);
            }
        };
        if status.is_none() {
            status = child.try_wait()?;
            ended = status.map(|_| Instant::now());
        }
        if let Some(ended) = ended {
            let living = collector.living();
            // A daemon may still be about to announce itself when its parent has ended.
            let may_come = collector.misses_child() && ended.elapsed() < CHILD_GRACE;
            if living.is_empty() && !may_come {
                break;
            }
            if !living.is_empty() {
                collector.set_background(living);
            }
        }
        match control(&collector) {
            Control::Kill => processes.kill(&collector),
            Control::Continue if !collector.is_full() && processes.ending.is_none() => {}
            Control::Continue | Control::End => processes.end(&collector),
        }
        if drained == 0 {
            collector.wait();
            if status.is_some() {
                std::thread::sleep(BACKGROUND_EVERY);
            }
        }
    }
    let status = match status {
        Some(status) => status,
        None => child.wait()?,
    };
    let was_ended = processes.ending.is_some();
    if was_ended {
        processes.kill(&collector);
    }
    let outcome = collector.outcome();
    let (recordings, unopened) = collector.finish(observer)?;
    Ok(Run { status, was_ended, outcome, recordings, unopened, started: processes.started })
}

/// The processes of a program, when it is to end.
struct Processes {
    started: u32,
    /// Those that it started, as far as they were found before those died that started them.
    known: Vec<u32>,
    ending: Option<Instant>,
}

impl Processes {
    /// Asks the program to end, and makes it end when it has had its time.
    fn end(&mut self, collector: &Collector) {
        match self.ending {
            None => {
                self.find(collector);
                self.ending = Some(Instant::now());
                for &pid in &self.known {
                    let _ = session::kill(pid, TERMINATE);
                }
            }
            Some(since) if since.elapsed() > GRACE => self.kill(collector),
            Some(_) => {}
        }
    }

    /// Ends all processes at once.
    fn kill(&mut self, collector: &Collector) {
        self.ending.get_or_insert_with(Instant::now);
        self.find(collector);
        for &pid in self.known.iter().filter(|&&pid| is_running(pid)) {
            let _ = session::kill(pid, KILL);
        }
    }

    /// Looks for the processes that the program has started by now.
    fn find(&mut self, collector: &Collector) {
        let mut found = vec![self.started];
        found.extend(collector.living());
        found.extend(self.known.iter().copied());
        self.known = descendants(found);
    }
}

/// Has this process asked to terminate when the one ends that started it.
pub fn terminate_with_parent() {
    session::terminate_with_parent();
}

/// Ends the process `pid` and all that it started, at once.
pub fn kill_all(pid: u32) {
    for pid in descendants(vec![pid]) {
        let _ = session::kill(pid, KILL);
    }
}

/// The processes `roots` and all that they started and did not outlive.
pub fn descendants(mut roots: Vec<u32>) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    roots.sort_unstable();
    roots.dedup();
    let mut place = 0;
    while place < roots.len() {
        let above = roots[place];
        let below = parents.iter().filter(|&&(pid, parent)| parent == above && pid != above);
        let new: Vec<u32> = below.map(|&(pid, _)| pid).filter(|pid| !roots.contains(pid)).collect();
        roots.extend(new);
        place += 1;
    }
    roots
}

fn parent(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it is in brackets and may hold anything.
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Runs `command` recorded, with its event logs in `logs`: what tests and benchmarks need.
///
/// # Errors
/// As [`run`].
pub fn record(command: &mut Command, options: &Options, logs: &Path) -> io::Result<Run> {
    let settings = options.settings(false, Duration::ZERO);
    let collector = Collector::new(&settings, None, logs, options.limit)?;
    run(command, collector, &mut |_, _| {}, &mut |_| Control::Continue)
}
