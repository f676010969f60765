//! How fast does a large file become a validated trace, and in how much memory?
//!
//! A trace is written as text and in our binary format, and each file is read in a process of its
//! own: one thread, the best of a few, from opening the file to the validated trace. Resident
//! memory is the peak of that process less that of one that reads a trace of one event.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reweave_format::{Format, ReadOptions, read, rwt, write};
use reweave_workload::generate;

use crate::config;

/// What is measured of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// From the file to the validated trace.
    Read,
    /// From a binary file to its columns.
    Decode,
}

/// What was seen.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// How many events the file holds.
    pub events: f64,
    /// The best time.
    pub seconds: f64,
    /// The most memory that the process ever had resident, in bytes.
    pub peak: f64,
    /// How many bytes of text its names have.
    pub names: f64,
}

/// Reads `path` `rounds` times.
///
/// # Panics
/// If the file cannot be read.
#[must_use]
pub fn measure(what: What, path: &Path, rounds: usize) -> Measured {
    let mut best = Duration::MAX;
    let (mut events, mut names) = (0, 0);
    for _ in 0..rounds {
        let start = Instant::now();
        match what {
            What::Decode => events = rwt::decode(path).expect("the file is whole"),
            What::Read => {
                let reading = read(path, &ReadOptions::default()).expect("the file is whole");
                events = reading.trace.len();
                let all = reading.trace.names();
                names = all.sites.text_len() + all.vars.text_len() + all.locks.text_len();
            }
        }
        best = best.min(start.elapsed());
    }
    Measured {
        events: events as f64,
        seconds: best.as_secs_f64(),
        peak: peak_bytes() as f64,
        names: names as f64,
    }
}

/// The most memory that this process ever had resident; 0 where the system does not tell.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    kilobytes * 1024
}

impl Measured {
    /// As the line that [`Measured::parse`] reads: what one process sends to another.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { events, seconds, peak, names } = self;
        format!("{events} {seconds} {peak} {names}\n")
    }

    /// Reads what [`Measured::line`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Self { events: next()?, seconds: next()?, peak: next()?, names: next()? })
    }
}

/// Writes a trace of `events` events into `folder`, measures it through `run`, and gives the
/// table.
///
/// # Panics
/// If the folder takes no files.
pub fn table(folder: &Path, events: usize, run: impl Fn(What, &Path) -> Measured) -> String {
    let file = |name: String| -> PathBuf { folder.join(name) };
    let formats = [("std", Format::Std), ("rwt", Format::Rwt)];
    for (size, label) in [(1, "one"), (events, "all")] {
        let trace = generate(&config(size));
        for (extension, format) in formats {
            let path = file(format!("{label}.{extension}"));
            write(&trace, &path, format, None).expect("the folder takes a file");
        }
    }
    let mut table = String::from(
        "| file | bytes an event | million events a second | resident bytes an event |\n\
         | --- | --- | --- | --- |\n",
    );
    let rows = [
        (".std", "std", What::Read),
        (".rwt", "rwt", What::Read),
        (".rwt, decoding alone", "rwt", What::Decode),
    ];
    for (label, extension, what) in rows {
        let path = file(format!("all.{extension}"));
        let base = run(What::Read, &file(format!("one.{extension}")));
        let all = run(what, &path);
        let size = std::fs::metadata(&path).expect("the file is there").len() as f64;
        let (bytes, rate) = (size / all.events, all.events / all.seconds / 1e6);
        let resident = (all.peak - base.peak) / all.events;
        writeln!(table, "| {label} | {bytes:.1} | {rate:.1} | {resident:.1} |")
            .expect("a string takes any text");
    }
    table
}
