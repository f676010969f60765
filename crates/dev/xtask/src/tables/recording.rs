//! What does it cost to record a program?
//!
//! Three programs in C, each as it is, under gcc's thread sanitizer, and recorded in both modes: CPU
//! time of the program and of the recorder together, taken in turns so that a busy machine is
//! unfair to none, the least of several.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use reweave_record::convert::{Conversion, write_trace};
use reweave_record::install::{Runtime, install};
use reweave_record::run::{EXIT_WAIT, Options, record};
use reweave_record::shared::Mode;

use super::machine;

const PROGRAMS: [(&str, &str); 3] = [
    ("locks", include_str!("recording/locks.c")),
    ("memory", include_str!("recording/memory.c")),
    ("queue", include_str!("recording/queue.c")),
];

const TRIES: usize = 5;

const HEAD: &str = "\
# Recording

What it costs to record three programs, next to gcc's thread sanitizer: seconds of CPU time, of the program and of the recorder
together, and in brackets how many times that of the plain program. All are compiled by gcc with -O1; in each round all
configurations run in turn, and the least of five is shown. Made by `cargo run --release -p xtask -- tables recording --write`.

- `locks`: four threads take one lock half a million times each
- `memory`: two threads multiply matrices of 400 by 400 numbers that look random
- `queue`: two threads hand 200 000 numbers each to two others through a buffer
- `off`: built to be recorded, and run as it is
- `free`: threads run in parallel; `serial`: one at a time, with the values of all accesses; `inside`: with the runtime linked into
  the program, not beside it
- `bytes`: on disk, for each event, in `serial` recordings
- `trace`: what it takes afterwards to make the trace of a `serial` recording

";

/// How a program is run: the column, the ending of the executable, and the mode if it is recorded.
const CONFIGURATIONS: [(&str, &str, Option<Mode>); 7] = [
    ("plain", ".plain", None),
    ("sanitizer", ".sanitized", None),
    ("off", ".beside", None),
    ("free", ".beside", Some(Mode::Free)),
    ("free, inside", ".inside", Some(Mode::Free)),
    ("serial", ".beside", Some(Mode::Serial)),
    ("serial, inside", ".inside", Some(Mode::Serial)),
];

/// The table.
pub(super) fn table() -> anyhow::Result<String> {
    let folder = tempfile::tempdir()?;
    let runtime = install()?;
    let mut table = String::from(HEAD);
    writeln!(table, "Measured on: {}.\n", machine())?;
    let names = CONFIGURATIONS.map(|(name, ..)| name).join(" | ");
    writeln!(table, "| program | events | {names} | bytes | trace |")?;
    writeln!(table, "| --- | ---: | {} ---: | ---: |", "---: | ".repeat(CONFIGURATIONS.len()))?;
    for (name, source) in PROGRAMS {
        build(folder.path(), name, source, &runtime)?;
        let mut least = [Duration::MAX; CONFIGURATIONS.len()];
        for _ in 0..TRIES {
            for (least, (_, ending, mode)) in least.iter_mut().zip(CONFIGURATIONS) {
                let program = folder.path().join(format!("{name}{ending}"));
                *least = time(&program, mode)?.min(*least);
            }
        }
        let Recorded { events, bytes, conversion } = recorded(folder.path(), name)?;
        let plain = least[0].as_secs_f64();
        let shown = least.map(|time| {
            let seconds = time.as_secs_f64();
            format!("{seconds:.3} ({:.1})", seconds / plain)
        });
        let each = bytes as f64 / events as f64;
        let trace = conversion.as_secs_f64();
        writeln!(table, "| {name} | {events} | {} | {each:.3} | {trace:.2} |", shown.join(" | "))?;
    }
    Ok(table)
}

/// Builds a program for every configuration.
fn build(folder: &Path, name: &str, source: &str, runtime: &Runtime) -> anyhow::Result<()> {
    let path = |ending: &str| folder.join(format!("{name}{ending}"));
    fs::write(path(".c"), source)?;
    let gcc = |arguments: &[&str], files: &[PathBuf], out: &Path| {
        let mut command = Command::new("gcc");
        command.args(["-O1", "-g", "-pthread"]).args(arguments).args(files).arg("-o").arg(out);
        let status = command.status().context("this table needs gcc")?;
        ensure!(status.success(), "gcc does not build {name}");
        Ok(())
    };
    let sanitize = "-fsanitize=thread";
    gcc(&[], &[path(".c")], &path(".plain"))?;
    gcc(&[sanitize], &[path(".c")], &path(".sanitized"))?;
    gcc(&[sanitize, "-c"], &[path(".c")], &path(".o"))?;
    let beside = format!("-Wl,-rpath,{}", runtime.folder().display());
    let needed = "-Wl,--no-as-needed";
    gcc(&[needed, &beside], &[runtime.shared(), path(".o")], &path(".beside"))?;
    gcc(&["-rdynamic"], &[path(".o"), runtime.object()], &path(".inside"))
}

/// The CPU time that running a program takes, recorded if a mode is given.
fn time(program: &Path, mode: Option<Mode>) -> anyhow::Result<Duration> {
    // The shell reports the times of what it ran; nothing else does without system calls of our own.
    let script = "\"$@\" > /dev/null && times";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]);
    if let Some(mode) = mode {
        let mode = if mode == Mode::Free { "free" } else { "serial" };
        shell.arg(std::env::current_exe()?).args(["record-only", mode]);
    }
    let output = shell.arg(program).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {said}", program.display());
    let times = String::from_utf8_lossy(&output.stdout).into_owned();
    let children = times.lines().last().context("the shell reported no times")?;
    children.split_whitespace().map(parse).sum()
}

/// A time as shells write it, such as `1m2.500s`.
fn parse(text: &str) -> anyhow::Result<Duration> {
    let Some((minutes, seconds)) = text.trim_end_matches('s').split_once('m') else {
        bail!("not a time: {text}");
    };
    let seconds: f64 = seconds.replace(',', ".").parse()?;
    let minutes: u64 = minutes.parse()?;
    Ok(Duration::from_secs(60 * minutes) + Duration::from_secs_f64(seconds))
}

/// A serial recording.
struct Recorded {
    events: u64,
    bytes: u64,
    /// How long it takes to make its trace.
    conversion: Duration,
}

fn recorded(folder: &Path, name: &str) -> anyhow::Result<Recorded> {
    let program = folder.join(format!("{name}.beside"));
    let logs = tempfile::tempdir()?;
    let mut command = Command::new(program);
    let run = record(command.stdout(std::process::Stdio::null()), &serial(), logs.path())?;
    let recording = run.recordings.first().context("nothing was recorded")?;
    let start = Instant::now();
    let summary = write_trace(recording, &Conversion::new(folder), &mut std::io::sink())?;
    let bytes = fs::metadata(&recording.event_log)?.len();
    Ok(Recorded { events: summary.recorded, bytes, conversion: start.elapsed() })
}

const fn serial() -> Options {
    Options { mode: Mode::Serial, values: true, seed: 1, limit: u64::MAX, exit_wait: EXIT_WAIT }
}

/// Runs a program recorded and throws away what was recorded: what is measured.
pub(crate) fn record_only(mode: &str, program: &Path) -> anyhow::Result<ExitCode> {
    let mode = if mode == "free" { Mode::Free } else { Mode::Serial };
    let logs = tempfile::tempdir()?;
    let run = record(&mut Command::new(program), &Options { mode, ..serial() }, logs.path())?;
    ensure!(run.status.success() && !run.recordings.is_empty(), "nothing was recorded");
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_shells_are_read() {
        assert_eq!(parse("1m2.500s").unwrap(), Duration::from_millis(62_500));
        assert_eq!(parse("0m0.000000s").unwrap(), Duration::ZERO);
        assert!(parse("soon").is_err());
    }
}
