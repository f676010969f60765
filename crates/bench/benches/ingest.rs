//! How fast does a large file become a validated trace, and in how much memory?
//!
//! `cargo bench -p reweave-bench --bench ingest -- [EVENTS]` writes a trace of ten million
//! events, or as many as said, as text and in our binary format, and reads each in a process of
//! its own: one thread, best of three, from opening the file to the validated trace. Resident
//! memory is the peak of that process less that of one that reads a trace of one event. The
//! last row decodes without validating.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use reweave_base::FxHashMap;
use reweave_bench::config;
use reweave_format::{Format, ReadOptions, read, write};
use reweave_workload::generate;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.first().map(String::as_str) {
        Some("--read") => child(&arguments[1], Path::new(&arguments[2])),
        Some(events) => parent(events.parse().expect("a number of events")),
        None => parent(10_000_000),
    }
}

/// What a child says about one file.
struct Measured {
    events: f64,
    seconds: f64,
    peak: f64,
    names: f64,
}

fn parent(events: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| folder.path().join(name);
    let formats = [("std", Format::Std), ("rwt", Format::Rwt)];
    for (size, label) in [(1, "one"), (events, "all")] {
        let trace = generate(&config(size));
        for (extension, format) in formats {
            let path = file(&format!("{label}.{extension}"));
            write(&trace, &path, format, None).expect("the temporary folder takes a file");
        }
    }
    println!("| file | bytes an event | million events a second | resident bytes an event |");
    println!("| --- | --- | --- | --- |");
    for (extension, _) in formats {
        let path = file(&format!("all.{extension}"));
        let base = measure("read", &file(&format!("one.{extension}")));
        let all = measure("read", &path);
        row(&format!(".{extension}"), &path, &base, &all);
    }
    let path = file("all.rwt");
    row(
        ".rwt, decoding alone",
        &path,
        &measure("read", &file("one.rwt")),
        &measure("decode", &path),
    );
}

fn row(label: &str, path: &Path, base: &Measured, all: &Measured) {
    let size = std::fs::metadata(path).expect("the file is there").len() as f64;
    println!(
        "| {label} | {:.1} | {:.1} | {:.1} (names: {:.1}) |",
        size / all.events,
        all.events / all.seconds / 1e6,
        (all.peak - base.peak) / all.events,
        all.names / all.events,
    );
}

fn measure(what: &str, path: &Path) -> Measured {
    let program: PathBuf = std::env::current_exe().expect("this program has a file");
    let output = Command::new(program).args(["--read", what]).arg(path).output();
    let output = output.expect("the child runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let numbers: FxHashMap<&str, f64> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(key, value)| (key, value.parse().expect("a number")))
        .collect();
    Measured {
        events: numbers["events"],
        seconds: numbers["seconds"],
        peak: numbers["peak"],
        names: numbers["names"],
    }
}

fn child(what: &str, path: &Path) {
    let mut best = Duration::MAX;
    let (mut events, mut names) = (0, 0);
    let rounds = if what == "read" { 3 } else { 5 };
    for _ in 0..rounds {
        let start = Instant::now();
        if what == "decode" {
            events = reweave_format::rwt::decode(path).expect("it was just written");
        } else {
            let reading = read(path, &ReadOptions::default()).expect("it was just written");
            events = reading.trace.len();
            let all = reading.trace.names();
            names = all.sites.text_len() + all.vars.text_len() + all.locks.text_len();
        }
        best = best.min(start.elapsed());
    }
    println!("events {events}\nseconds {}\nnames {names}", best.as_secs_f64());
    println!("peak {}", peak_bytes());
}

/// The most memory that this process ever had resident.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    kilobytes * 1024
}
