//! `record`: run a program once and record it.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use reweave_record::attach::Attachment;
use reweave_record::collect::{Collector, Failure, Recording};
use reweave_record::convert::{Conversion, Exit, Kept, Summary, write_trace};
use reweave_record::remembered::remember;
use reweave_record::run::{self, Control, EXIT_WAIT, Options, Run};
use reweave_record::shared::{Mode, failure};
use reweave_record::watchdog::{STALL_TIMEOUT, Stall, Watchdog};
use reweave_record::wire::Event;
use reweave_report::{counted, quoted};
use reweave_states::predicate::running::Running;
use reweave_trace::{RunStart, is_variable_name};
use reweave_workflows::watch::{Verdict, Watching};

use super::check::name;
use crate::destination::Destination;
use crate::exit::say;
use crate::interrupt;
use crate::launch::Launch;
use crate::watch::Bar;

/// Run a program once and record it.
///
/// A program built with `reweave cc`, `reweave c++`, `cargo reweave` or gcc's -fsanitize=thread is recorded completely.
/// Of any other program only threads and the locks of the C library are recorded, which is enough to find deadlocks. By
/// default one thread runs at a time, so the order and the values of all accesses are exact. Exits with the status of
/// the program.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  reweave cc -pthread bank.c -o bank\n  reweave record -- ./bank 10\n  \
                        reweave check bank.rwt"
)]
pub struct Args {
    /// Write the trace to this file [default: PROGRAM.rwt]
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,
    /// How threads run while recorded
    #[arg(long, value_enum, default_value_t)]
    mode: How,
    /// Seed of the context switches; another seed gives another schedule
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Stop the program and the recording after this many events
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Stop the program and the recording after this many seconds
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: Option<u64>,
    /// Seconds to wait at exit for threads that still run
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    exit_wait: Duration,
    /// Do not record the values of accesses
    #[arg(long)]
    no_values: bool,
    /// Also keep accesses to memory that only one thread uses
    #[arg(long)]
    all_memory: bool,
    /// Also keep accesses to this global variable, whoever uses it
    ///
    /// For predicates over variables that threads do not contend for. May be given several times.
    #[arg(long, value_name = "NAME", conflicts_with = "all_memory")]
    keep: Vec<String>,
    /// Also store this environment variable in the trace
    ///
    /// For programs that need it: commands that run the program again set it. May be given several times.
    #[arg(long, value_name = "NAME", value_parser = variable)]
    keep_env: Vec<String>,
    /// Run the program in this folder [default: the current folder]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    #[command(flatten)]
    following: Following,
    /// The program to run, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// How threads run while they are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum How {
    /// one at a time: order and values are exact
    #[default]
    Serial,
    /// in parallel: only the order of synchronisation is exact
    Free,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let path = args.output.clone().unwrap_or_else(|| default_output(&args.command));
    let destination = Destination::prepare(Some(&path))?;
    interrupt::keep(interrupt::TRACE);
    let launch = Launch::new(&args.command, args.directory.as_deref());
    let (mut command, attachment) = launch.command()?;
    let start = args.run_start(&launch);
    let options = Options {
        mode: match args.mode {
            How::Serial => Mode::Serial,
            How::Free => Mode::Free,
        },
        values: !args.no_values,
        seed: args.seed,
        limit: args.limit.unwrap_or(u64::MAX),
        exit_wait: args.exit_wait,
    };
    let questions = args.following.questions(options.mode == Mode::Serial && options.values)?;
    let event_logs = event_log_folder(&path)?;
    let settings = options.settings(false, Duration::ZERO);
    let collector = Collector::new(&settings, None, event_logs.path(), options.limit)
        .context("cannot set up a recording")?;
    interrupt::add_unfinished(event_logs.path());
    interrupt::add_unfinished(collector.directory());
    let time_limit = args.time_limit.map(Duration::from_secs);
    let base = launch.base().context("cannot find the current folder")?;
    let followed = args.following.run(&mut command, collector, questions, time_limit, &base)?;
    followed.report();
    let run = &followed.run;
    interrupt::set_program(0);
    let recording = choose(&followed, attachment)?;
    reject_incomplete(run, recording)?;
    let mut summary = Summary::default();
    let exit = followed.exit(recording);
    let converting = Converting::new();
    let bar = Bar::new("converting", Some(recording.events));
    let conversion = Conversion {
        base: &base,
        kept: if args.all_memory { Kept::All } else { Kept::Contended { names: &args.keep } },
        start: Some(&start),
        exit: &exit,
        asked: &|| {
            converting.say_if_due(recording.events);
            interrupt::asked_since()
        },
        progress: &|pass, count| bar.pass(pass, count),
    };
    destination.write_bytes(|out: &mut dyn Write| {
        summary = write_trace(recording, &conversion, out)?;
        reject_unforked(&summary)
    })?;
    drop(bar);
    remember(&start);
    report(&path, recording, &summary, &followed, options.limit);
    Ok(status(&followed))
}

impl Args {
    /// How the run of `launch` starts.
    fn run_start(&self, launch: &Launch) -> RunStart {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        let [kernel, release] = ["ostype", "osrelease"].map(|it| read(it).unwrap_or_default());
        let system = [kernel.trim(), release.trim(), std::env::consts::ARCH];
        RunStart {
            tool: format!("reweave {}", env!("CARGO_PKG_VERSION")),
            time: since_1970.map(|time| time.as_secs()),
            system: system.join(" "),
            mode: name(self.mode),
            seed: Some(self.seed),
            options: self.options(),
            ..launch.run_start(&self.keep_env)
        }
    }

    /// The options, but for the seed, the output and the folder, that make a run what it is.
    fn options(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| [name.to_owned(), value]).into_iter().flatten());
        };
        let seconds = |time: Duration| time.as_secs_f64().to_string();
        option("--mode", (self.mode != How::default()).then(|| name(self.mode)));
        option("--limit", self.limit.map(|it| it.to_string()));
        option("--time-limit", self.time_limit.map(|it| it.to_string()));
        let is_usual = self.exit_wait == EXIT_WAIT;
        option("--exit-wait", (!is_usual).then(|| seconds(self.exit_wait)));
        option("--stall-timeout", self.following.stall_timeout.map(|it| it.to_string()));
        self.keep.iter().for_each(|name| option("--keep", Some(name.clone())));
        self.keep_env.iter().for_each(|name| option("--keep-env", Some(name.clone())));
        let flags = [("--no-values", self.no_values), ("--all-memory", self.all_memory)];
        words
            .extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (*name).to_owned()));
        words
    }
}

/// The name of a variable of the environment.
fn variable(text: &str) -> Result<String, String> {
    let expected = || "expected the name of a variable: letters, digits and `_`".to_owned();
    is_variable_name(text).then(|| text.to_owned()).ok_or_else(expected)
}

/// The name of the trace by default.
fn default_output(words: &[OsString]) -> PathBuf {
    let program = words.first().map(Path::new).and_then(Path::file_name);
    let mut name = program.map_or_else(|| OsString::from("recorded"), OsString::from);
    name.push(".rwt");
    PathBuf::from(name)
}

/// A temporary folder beside the trace, for events that are not yet converted.
fn event_log_folder(path: &Path) -> anyhow::Result<tempfile::TempDir> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let folder = tempfile::Builder::new().prefix(".reweave-").tempdir_in(parent);
    folder.with_context(|| format!("cannot write to {}", parent.display()))
}

/// The process whose trace is written: one that failed or is stuck, or else the one with most threads,
/// then with most events.
fn choose(followed: &Followed, attachment: Attachment) -> anyhow::Result<&Recording> {
    let run = &followed.run;
    let chosen = run.recordings.iter().max_by_key(|it| {
        let is_at_fault = followed.failure(it).is_some() || followed.is_stalled(it);
        (is_at_fault, it.threads > 1, it.has_accesses, it.threads, it.events)
    });
    let chosen = chosen.with_context(|| match run.unopened {
        0 => {
            "the program did not load the recorder: it may be statically linked or have the setuid \
             bit; build it with `reweave cc`"
        }
        _ => "/dev/shm is full; free some space in it, or enlarge it",
    })?;
    if !chosen.has_accesses && attachment == Attachment::Preloaded {
        say(
            "reweave: memory accesses were not recorded, so races cannot be found: build the program \
             with `reweave cc` or `cargo reweave build`",
        );
    }
    if run.recordings.len() > 1 {
        let others = counted(run.recordings.len() as u64 - 1, "other");
        say(&format!("reweave: kept process {}, dropped {others}", chosen.pid));
    }
    Ok(chosen)
}

/// Rejects a recording that lacks a whole thread.
fn reject_incomplete(run: &Run, recording: &Recording) -> anyhow::Result<()> {
    anyhow::ensure!(
        recording.unrecorded == 0,
        "{} threads could not be recorded, so the order of events is unknown: /dev/shm is full, the \
         limit of open files is reached, or the program may no longer write there; use `--mode serial`, which \
         needs a single file",
        recording.unrecorded
    );
    if run.unopened > 0 {
        say(&format!(
            "reweave: dropped {}: /dev/shm is full",
            counted(run.unopened.into(), "other process")
        ));
    }
    Ok(())
}

/// Rejects a recording with threads that were never forked.
fn reject_unforked(summary: &Summary) -> anyhow::Result<()> {
    anyhow::ensure!(
        summary.unforked.is_empty(),
        "{} threads started in a way that cannot be recorded, so the order of events is unknown: \
         the C library starts such threads for `SIGEV_THREAD`, `aio_read`, `aio_write` and \
         `getaddrinfo_a`; so does a program that calls `clone`, or in which the recorder is linked after \
         the C library",
        summary.unforked.len()
    );
    Ok(())
}

fn report(path: &Path, recording: &Recording, summary: &Summary, followed: &Followed, limit: u64) {
    let run = &followed.run;
    if recording.events >= limit {
        say(&format!("reweave: stopped after {limit} events (`--limit`)"));
    } else if followed.is_over_time && run.was_ended {
        say("reweave: stopped the program: its time was up (`--time-limit`)");
    } else if let Some(signal) = run.status.signal() {
        say(&format!("reweave: the program was killed by signal {signal}"));
    }
    if summary.is_cut_short {
        say("reweave: saved the start of the run; the rest was dropped, to stop at once");
    }
    for (what, count) in &summary.impossible {
        say(&format!("reweave: left out {}: {what}", counted(*count, "inconsistent event")));
    }
    for name in &summary.missing {
        say(&format!("reweave: no access to a global variable `{name}` was recorded (`--keep`)"));
    }
    if summary.escaped > 0 {
        say(&format!(
            "reweave: a thread blocked in an unrecognised call {}; other threads continued",
            counted(summary.escaped, "time")
        ));
    }
    if recording.is_damaged {
        say("reweave: the program overwrote the recording in memory; the trace ends there");
    }
    let dropped = match summary.local_accesses {
        0 => String::new(),
        count => format!(" ({count} thread-local ones dropped)"),
    };
    say(&format!(
        "reweave: recorded {} from {}{dropped} → {}",
        counted(summary.events, "event"),
        counted(summary.threads as u64, "thread"),
        path.display()
    ));
    if summary.events == 0 {
        say(
            "reweave: nothing to check was recorded: the program shared nothing between threads, or was not built \
             with `reweave cc` or `cargo reweave build`",
        );
    }
    say(&format!("reweave: next: reweave check {}", quoted(&path.display().to_string())));
    if summary.lacks_synchronization() {
        say(
            "reweave: warning: what was left out may have ordered threads, so nothing that comes after it is \
             proven",
        );
    }
}

/// The exit status of the program, or success if the recording stopped it at a limit.
fn status(followed: &Followed) -> ExitCode {
    if followed.run.was_ended && !followed.was_stalled && !interrupt::is_asked() {
        return ExitCode::SUCCESS;
    }
    ExitCode::from(code(followed.run.status))
}

/// The exit code of `status`, as a shell has it.
fn code(status: ExitStatus) -> u8 {
    let signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// What to look for while the program runs.
#[derive(Debug, clap::Args)]
struct Following {
    /// Report global states that meet this predicate while the program runs
    ///
    /// A predicate inside `always` or `never` is reported when a state violates it. May be given several times.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    watch: Vec<String>,
    /// Stop a program after this many seconds in which no thread goes on
    ///
    /// A thread does not go on if it waits for another one, or only sleeps again and again in code that it went
    /// through before. By default that is only reported, and the program runs until it is interrupted.
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..))]
    stall_timeout: Option<u64>,
}

/// What came of following a program.
struct Followed {
    /// How it ran.
    run: Run,
    /// Why its threads do not go on, and in which of its processes.
    stall: Option<(Stall, usize)>,
    /// Whether it was ended because of that.
    was_stalled: bool,
    /// Whether it was ended because its time was up.
    is_over_time: bool,
    verdicts: Vec<Verdict>,
}

impl Following {
    /// What to watch for, if it can be in a recording that is `exact`: with the order and the values
    /// of all accesses.
    fn questions(&self, exact: bool) -> anyhow::Result<Vec<Running>> {
        anyhow::ensure!(
            exact || self.watch.is_empty(),
            "`--watch` needs exact order and values of accesses: remove `--mode free` and \
             `--no-values`"
        );
        let questions = self.watch.iter().map(|text| Running::parse(text));
        questions.collect::<Result<_, _>>().context("in the predicate to watch for")
    }

    /// Runs `command` and reports on standard error what happens.
    fn run(
        &self,
        command: &mut Command,
        collector: Collector,
        questions: Vec<Running>,
        time_limit: Option<Duration>,
        base: &Path,
    ) -> anyhow::Result<Followed> {
        let limit = self.stall_timeout.map(Duration::from_secs);
        let watchdog =
            RefCell::new(Watchdog::new(limit.unwrap_or(STALL_TIMEOUT).min(STALL_TIMEOUT)));
        let watching = if questions.is_empty() {
            None
        } else {
            Some(watch(questions, collector.directory(), base)?)
        };
        let watching = RefCell::new(watching);
        let mut was_stalled = false;
        let mut stall = None;
        let mut is_background_told = false;
        let mut progress = Progress::new();
        let mut is_over_time = false;
        let mut control = |collector: &Collector| {
            interrupt::set_program(collector.started());
            if !is_background_told && !collector.background().is_empty() {
                is_background_told = true;
                say_background(collector.background());
            }
            if let Some(watching) = watching.borrow_mut().as_mut() {
                watching.flush();
            }
            let mut watchdog = watchdog.borrow_mut();
            if let Some(waits) = watchdog.look(collector, base) {
                let seconds = watchdog.idle().as_secs();
                say(&format!("reweave: no progress for {seconds} s: {waits}"));
            }
            let is_due = limit.is_some_and(|limit| watchdog.idle() >= limit);
            // Once it is being ended, what its threads did before is what counts.
            if !was_stalled && !interrupt::is_asked() {
                stall = watchdog.stall();
            }
            was_stalled |= stall.is_some() && is_due;
            progress.say_if_due(collector);
            is_over_time = time_limit.is_some_and(|limit| progress.start.elapsed() >= limit);
            let is_to_end = interrupt::is_asked() || was_stalled || is_over_time;
            if is_to_end { Control::End } else { Control::Continue }
        };
        let mut observer = |thread: u32, event: &Event| {
            watchdog.borrow_mut().step(thread, event);
            if let Some(watching) = watching.borrow_mut().as_mut() {
                watching.step(thread, event);
            }
        };
        let program = command.get_program().display().to_string();
        let stage = tracing::info_span!("run program", program).entered();
        let run = run::run(command, collector, &mut observer, &mut control)
            .with_context(|| format!("cannot record `{}`", command.get_program().display()))?;
        drop(stage);
        let verdicts = watching.into_inner().map_or_else(Vec::new, Watching::finish);
        Ok(Followed { run, stall, was_stalled, is_over_time, verdicts })
    }
}

/// How often it is said that a program still runs.
const SAID_EVERY: Duration = Duration::from_secs(15);

/// How long a recording is converted before that is said.
const CONVERTED_UNSAID: Duration = Duration::from_secs(3);

/// Reports now and then that a program still runs.
struct Progress {
    start: Instant,
    said: Instant,
}

impl Progress {
    fn new() -> Self {
        Self { start: Instant::now(), said: Instant::now() }
    }

    fn say_if_due(&mut self, collector: &Collector) {
        if self.said.elapsed() < SAID_EVERY {
            return;
        }
        self.said = Instant::now();
        let (seconds, events) = (self.start.elapsed().as_secs(), collector.events());
        say(&format!(
            "reweave: recording for {seconds} s, {events} events so far; Ctrl-C stops and saves the trace, \
             `--time-limit` does so by itself"
        ));
    }
}

/// Reports, once, that a recording takes long to convert.
struct Converting {
    start: Instant,
    is_said: Cell<bool>,
}

impl Converting {
    fn new() -> Self {
        Self { start: Instant::now(), is_said: Cell::new(false) }
    }

    fn say_if_due(&self, recorded: u64) {
        if self.start.elapsed() >= CONVERTED_UNSAID && !self.is_said.replace(true) {
            say(&format!(
                "reweave: converting {recorded} recorded events to a trace; Ctrl-C saves what is converted"
            ));
        }
    }
}

fn watch(questions: Vec<Running>, directory: &Path, base: &Path) -> anyhow::Result<Watching> {
    let report = |found: &str| say(&format!("reweave: {found}"));
    Watching::start(questions, directory, base, report).context("cannot watch the program")
}

impl Followed {
    /// Reports for each predicate that no state met why not.
    fn report(&self) {
        for Verdict { text, found, is_cut_short, missing } in &self.verdicts {
            if found.is_some() {
                continue;
            }
            for name in missing {
                say(&format!("reweave: the program has no global variable `{name}`"));
            }
            let rest = if *is_cut_short {
                ", but not all were searched; use `reweave states find`"
            } else {
                ""
            };
            say(&format!("reweave: no state found for {text}{rest}"));
        }
        if self.was_stalled {
            let why = match self.stall {
                Some((Stall::Hang, _)) => "no thread can go on",
                _ => "its threads are deadlocked",
            };
            say(&format!("reweave: stopped the program: {why}"));
        }
    }

    /// Whether no thread of the process of `recording` went on at the end.
    fn is_stalled(&self, recording: &Recording) -> bool {
        let stalled = self.stall.and_then(|(_, place)| self.run.recordings.get(place));
        stalled.is_some_and(|stalled| stalled.pid == recording.pid)
    }

    /// How the process of `recording` failed, if it did.
    fn failure(&self, recording: &Recording) -> Option<Failure> {
        let run = &self.run;
        let is_started = recording.pid == u64::from(run.started) || run.recordings.len() == 1;
        let signal = run.status.signal().and_then(|signal| u64::try_from(signal).ok());
        let fault = signal.filter(|signal| FAULTS.contains(signal) && is_started);
        let has_panicked = run.status.code() == Some(PANIC_CODE);
        let said = recording.failure.clone().filter(|failure| {
            failure.is_certain
                || fault == Some(failure.signal)
                || failure.signal == failure::PANIC && has_panicked
        });
        let unsaid = |signal| Failure {
            signal,
            thread: None,
            code: 0,
            text: String::new(),
            is_certain: true,
        };
        said.or_else(|| fault.map(unsaid))
    }

    /// How the process of `recording` ended.
    fn exit(&self, recording: &Recording) -> Exit {
        Exit {
            failure: self.failure(recording),
            is_hang: self.is_stalled(recording),
            is_stopped: self.run.was_ended || interrupt::is_asked(),
        }
    }
}

/// Signals by which a program fails: illegal instruction, trap, abort, bus, arithmetic, memory, system
/// call.
const FAULTS: [u64; 7] = [4, 5, 6, 7, 8, 11, 31];

/// The exit code of a program of Rust whose main thread panicked.
const PANIC_CODE: i32 = 101;

/// Reports that the program went on in the background.
fn say_background(processes: &[u32]) {
    let list: Vec<String> = processes.iter().map(ToString::to_string).collect();
    say(&format!(
        "reweave: the program ended but left process {} running in the background; recording goes on until \
         it ends (Ctrl-C stops it)",
        list.join(", ")
    ));
}

/// The duration that `text` is, in seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration
        .filter(|it| *it <= Duration::from_secs(3600))
        .ok_or_else(|| "expected a number of seconds up to 3600, such as 0.5".to_owned())
}
