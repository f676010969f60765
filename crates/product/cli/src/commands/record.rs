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
use reweave_record::convert::write_trace;
use reweave_record::install::install;
use reweave_record::run::{Options, Run};
use reweave_record::shared::Mode;
use reweave_report::{counted, quoted};

use self::following::{Followed, Following};
use super::confirm::located;
use crate::destination::Destination;
use crate::exit::say;
use crate::interrupt;

/// Run a program once and record it.
///
/// A program that was built with `reweave cc`, `reweave c++` or `cargo reweave` is recorded whole, and so is
/// one that was built with gcc's -fsanitize=thread. Of any other, threads and the C library's locks are
/// seen, which is enough for their deadlocks. By default one thread runs at a time, and the order and the
/// values of all accesses are exact. Ends as the program does, with its status.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  reweave cc -pthread bank.c -o bank\n  reweave record -- ./bank 10\n  \
                        reweave check bank.rwt"
)]
pub(crate) struct Args {
    /// The trace to write; PROGRAM.rwt unless said otherwise
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,
    /// How threads run while they are recorded
    #[arg(long, value_enum, default_value_t)]
    mode: How,
    /// The seed of the moments at which threads take over from each other
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// End the recording, and the program, after this many events
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Do not record the values of accesses
    #[arg(long)]
    no_values: bool,
    /// Keep accesses to memory that threads do not contend for, too
    #[arg(long)]
    all_memory: bool,
    #[command(flatten)]
    following: Following,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// How threads run while they are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum How {
    /// one at a time: order and values are exact
    #[default]
    Serial,
    /// in parallel: the order of synchronisation is exact
    Free,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
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
    followed.tell();
    let run = &followed.run;
    let recording = choose(run, attachment)?;
    check_room(run, recording)?;
    let base = std::env::current_dir().context("the current folder is unknown")?;
    let mut summary = Summary::default();
    destination.write_bytes(|out: &mut dyn Write| {
        summary = write_trace(recording, &base, args.all_memory, out)?;
        check(&summary)
    })?;
    tell(&path, recording, &summary, run, options.limit);
    Ok(status(&followed))
}

/// The command that runs `words` with the runtime in it.
pub(super) fn program(words: &[OsString]) -> anyhow::Result<Command> {
    prepare(words).map(|(command, _)| command)
}

fn prepare(words: &[OsString]) -> anyhow::Result<(Command, Attachment)> {
    let (program, arguments) = words.split_first().context("no program was given")?;
    let is_here = || Path::new(program).components().count() == 1 && Path::new(program).is_file();
    anyhow::ensure!(
        located(program).is_some() || !is_here(),
        "cannot run `{0}`: no folder of PATH has it; did you mean `./{0}`?",
        program.display()
    );
    let mut command = Command::new(program);
    command.args(arguments);
    let attachment = attach(&mut command, &install()?);
    anyhow::ensure!(
        attachment != Attachment::None,
        "`{}` is a static program without the recorder in it; build it with `reweave cc -static`",
        program.display()
    );
    anyhow::ensure!(
        attachment != Attachment::Occupied,
        "`{}` has the thread sanitizer inside; build it with `reweave cc`, or with the sanitizer as a \
         shared library (gcc's default)",
        program.display()
    );
    Ok((command, attachment))
}

/// The trace that is written where nothing else is said.
fn default_output(words: &[OsString]) -> PathBuf {
    let program = words.first().map(Path::new).and_then(Path::file_name);
    let mut name = program.map_or_else(|| OsString::from("recorded"), OsString::from);
    name.push(".rwt");
    PathBuf::from(name)
}

/// A folder for what is recorded before it becomes a trace, beside the trace.
fn spools(path: &Path) -> anyhow::Result<tempfile::TempDir> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let folder = tempfile::Builder::new().prefix(".reweave-").tempdir_in(parent);
    folder.with_context(|| format!("cannot write to {}", parent.display()))
}

/// The process whose trace is written: the one with most threads, of these with most events.
fn choose(run: &Run, attachment: Attachment) -> anyhow::Result<&Recording> {
    let recordings = run.recordings.iter();
    let chosen =
        recordings.max_by_key(|it| (it.threads > 1, it.has_accesses, it.threads, it.events));
    let chosen = chosen.with_context(|| match run.unopened {
        0 => {
            "the program never loaded the recorder: it may be static, or start with more rights \
             than you have; build it with `reweave cc`"
        }
        _ => "there is no room in /dev/shm for a recording; make room, or make it larger",
    })?;
    if !chosen.has_accesses && attachment == Attachment::Preloaded {
        say(
            "reweave: only threads and the C library's locks were seen, no accesses to memory, so no \
             race can be found: build the program with `reweave cc` or `cargo reweave build`",
        );
    }
    if run.recordings.len() > 1 {
        let others = counted(run.recordings.len() as u64 - 1, "other");
        say(&format!("reweave: process {} is kept, of {others} nothing", chosen.pid));
    }
    Ok(chosen)
}

/// Refuses a recording that lacks a whole thread.
fn check_room(run: &Run, recording: &Recording) -> anyhow::Result<()> {
    anyhow::ensure!(
        recording.unrecorded == 0,
        "{} threads could not be recorded, so the order of events is not known: /dev/shm is full, or \
         the program may open no more files there; record with `--mode serial`, which needs one file",
        recording.unrecorded
    );
    if run.unopened > 0 {
        say(&format!("reweave: of {} other processes nothing is kept: no room", run.unopened));
    }
    Ok(())
}

/// Refuses what cannot be trusted.
fn check(summary: &Summary) -> anyhow::Result<()> {
    anyhow::ensure!(
        summary.unforked.is_empty(),
        "{} threads ran that nobody was seen to create, so the order of events is not known: the C \
         library makes such threads itself, for timers and queues that notify by a thread \
         (`SIGEV_THREAD`) and for `aio_read`, `aio_write` and `getaddrinfo_a`; so does a program that \
         calls `clone`, or in which the recorder is linked after the C library",
        summary.unforked.len()
    );
    Ok(())
}

/// What can be left out of a recording without harm to what is said of the rest.
const HARMLESS: [&str; 2] =
    ["end of an object that is not live", "end of a block that did not begin"];

fn tell(path: &Path, recording: &Recording, summary: &Summary, run: &Run, limit: u64) {
    if recording.events >= limit {
        say(&format!("reweave: ended after {limit} events, as asked"));
    } else if let Some(signal) = run.status.signal() {
        say(&format!("reweave: the program was ended by signal {signal}"));
    }
    for (what, count) in &summary.impossible {
        say(&format!("reweave: left out {count} that cannot have happened: {what}"));
    }
    if summary.escaped > 0 {
        say(&format!(
            "reweave: {} times a thread slept in a call that is not known to wait; others ran on",
            summary.escaped
        ));
    }
    if recording.is_damaged {
        say("reweave: the program wrote over what it had recorded; the trace ends there");
    }
    say(&format!(
        "reweave: {} of {} of {} kept in {}",
        summary.events,
        counted(summary.recorded, "event"),
        counted(summary.threads as u64, "thread"),
        path.display()
    ));
    say(&format!("reweave: next: reweave check {}", quoted(&path.display().to_string())));
    if summary.impossible.keys().any(|what| !HARMLESS.contains(what)) {
        say(
            "reweave: warning: what was left out is synchronisation, so some that belongs to it may be \
             missing; then findings are wrong, even with a schedule: `reweave confirm` tries them",
        );
    }
}

/// The program's own status; that of a program which we ended for being full is no failure.
fn status(followed: &Followed) -> ExitCode {
    if followed.run.was_ended && !followed.was_stalled && !interrupt::is_asked() {
        return ExitCode::SUCCESS;
    }
    ExitCode::from(code(followed.run.status))
}

/// What a shell would say of `status`.
fn code(status: ExitStatus) -> u8 {
    let signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
