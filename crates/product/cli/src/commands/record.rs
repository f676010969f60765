//! `record`: run a program once and record it.

mod following;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::Context as _;
use reweave_record::attach::{Attachment, attach};
use reweave_record::collect::{Collector, Recording};
use reweave_record::convert::Summary;
use reweave_record::gather::write_trace;
use reweave_record::run::{Options, Run};
use reweave_record::shared::Mode;
use reweave_record::unpack::unpack;
use reweave_report::{counted, quoted};

use self::following::{Followed, Following};
use super::confirm::located;
use crate::destination::Destination;
use crate::exit::say;
use crate::interrupt;

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
    /// Do not record the values of accesses
    #[arg(long)]
    no_values: bool,
    /// Also keep accesses to memory that only one thread uses
    #[arg(long)]
    all_memory: bool,
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
    interrupt::keep();
    let (mut command, attachment) = prepare(&args.command)?;
    let options = Options {
        mode: match args.mode {
            How::Serial => Mode::Serial,
            How::Free => Mode::Free,
        },
        values: !args.no_values,
        seed: args.seed,
        limit: args.limit.unwrap_or(u64::MAX),
    };
    let questions = args.following.questions(options.mode == Mode::Serial && options.values)?;
    let spools = spools(&path)?;
    let settings = options.settings(false, std::time::Duration::ZERO);
    let collector = Collector::new(&settings, None, spools.path(), options.limit)
        .context("cannot set up a recording")?;
    let followed = args.following.run(&mut command, collector, questions)?;
    followed.report();
    let run = &followed.run;
    let recording = choose(run, attachment)?;
    check_room(run, recording)?;
    let base = std::env::current_dir().context("cannot find the current folder")?;
    let mut summary = Summary::default();
    destination.write_bytes(|out: &mut dyn Write| {
        summary = write_trace(recording, &base, args.all_memory, out)?;
        check(&summary)
    })?;
    report(&path, recording, &summary, run, options.limit);
    Ok(status(&followed))
}

/// The command that runs `words` with the runtime in it.
pub fn program(words: &[OsString]) -> anyhow::Result<Command> {
    prepare(words).map(|(command, _)| command)
}

fn prepare(words: &[OsString]) -> anyhow::Result<(Command, Attachment)> {
    let (program, arguments) = words.split_first().context("expected a program to run")?;
    let is_here = || Path::new(program).components().count() == 1 && Path::new(program).is_file();
    anyhow::ensure!(
        located(program).is_some() || !is_here(),
        "cannot run `{0}`: not found in PATH; did you mean `./{0}`?",
        program.display()
    );
    let mut command = Command::new(program);
    command.args(arguments);
    let attachment = attach(&mut command, &unpack()?);
    anyhow::ensure!(
        attachment != Attachment::None,
        "`{}` is statically linked without the recorder; build it with `reweave cc -static`",
        program.display()
    );
    anyhow::ensure!(
        attachment != Attachment::Occupied,
        "`{}` contains the runtime of ThreadSanitizer; build it with `reweave cc`, or link the sanitizer as a \
         shared library (the default of gcc)",
        program.display()
    );
    Ok((command, attachment))
}

/// The name of the trace by default.
fn default_output(words: &[OsString]) -> PathBuf {
    let program = words.first().map(Path::new).and_then(Path::file_name);
    let mut name = program.map_or_else(|| OsString::from("recorded"), OsString::from);
    name.push(".rwt");
    PathBuf::from(name)
}

/// A temporary folder beside the trace, for events that are not yet converted.
fn spools(path: &Path) -> anyhow::Result<tempfile::TempDir> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let folder = tempfile::Builder::new().prefix(".reweave-").tempdir_in(parent);
    folder.with_context(|| format!("cannot write to {}", parent.display()))
}

/// The process whose trace is written: the one with most threads, then with most events.
fn choose(run: &Run, attachment: Attachment) -> anyhow::Result<&Recording> {
    let recordings = run.recordings.iter();
    let chosen =
        recordings.max_by_key(|it| (it.threads > 1, it.has_accesses, it.threads, it.events));
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
fn check_room(run: &Run, recording: &Recording) -> anyhow::Result<()> {
    anyhow::ensure!(
        recording.unrecorded == 0,
        "{} threads could not be recorded, so the order of events is unknown: /dev/shm is full, or the \
         limit of open files is reached; use `--mode serial`, which needs a single file",
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

/// Rejects a recording that cannot be trusted.
fn check(summary: &Summary) -> anyhow::Result<()> {
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

/// Events that can be dropped without affecting findings.
const HARMLESS: [&str; 2] =
    ["end of an object that is not live", "end of a block that did not begin"];

fn report(path: &Path, recording: &Recording, summary: &Summary, run: &Run, limit: u64) {
    if recording.events >= limit {
        say(&format!("reweave: stopped after {limit} events (`--limit`)"));
    } else if let Some(signal) = run.status.signal() {
        say(&format!("reweave: the program was killed by signal {signal}"));
    }
    for (what, count) in &summary.impossible {
        say(&format!("reweave: dropped {count} inconsistent events: {what}"));
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
    say(&format!("reweave: next: reweave check {}", quoted(&path.display().to_string())));
    if summary.impossible.keys().any(|what| !HARMLESS.contains(what)) {
        say(
            "reweave: warning: dropped events include synchronisation, so findings may be wrong, even with \
             a schedule; check them with `reweave confirm`",
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
