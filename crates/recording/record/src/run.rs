//! Running a program under the recorder.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use reweave_runtime::session;
use reweave_runtime::shared::{DIRECTORY_VARIABLE, Mode, Settings};

use crate::collect::{Collector, Observer, Recording};

/// How long a program that is asked to end has before it is made to.
const GRACE: Duration = Duration::from_secs(5);

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
}

/// Runs `command` and reads what it records, until it ends, is full, or `control` says so.
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
    let mut ending: Option<Instant> = None;
    let status = loop {
        let drained = match collector.poll(observer) {
            Ok(drained) => drained,
            Err(error) => {
                // The program is none the worse for it: it goes on, and is not left alone.
                collector.stop();
                child.wait()?;
                return Err(error);
            }
        };
        if let Some(status) = child.try_wait()? {
            break status;
        }
        match control(&collector) {
            Control::Kill => {
                ending.get_or_insert_with(Instant::now);
                child.kill()?;
            }
            Control::Continue if !collector.is_full() && ending.is_none() => {}
            Control::Continue | Control::End => end(&mut child, &mut ending)?,
        }
        if drained == 0 {
            collector.wait();
        }
    };
    let outcome = collector.outcome();
    let (recordings, unopened) = collector.finish(observer)?;
    Ok(Run { status, was_ended: ending.is_some(), outcome, recordings, unopened })
}

/// Asks the program to end, and makes it end when it has had its time.
fn end(child: &mut Child, since: &mut Option<Instant>) -> io::Result<()> {
    match since {
        None => {
            let _ = session::kill(child.id(), TERMINATE);
            *since = Some(Instant::now());
            Ok(())
        }
        Some(since) if since.elapsed() > GRACE => child.kill(),
        Some(_) => Ok(()),
    }
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
