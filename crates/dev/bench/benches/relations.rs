//! How many events a second does each relation order, and in how much memory?
//!
//! `cargo bench -p reweave-bench --bench relations -- [EVENTS]`, five million events by default:
//! the trace of the speed goals, read from a binary file by a process of its own for each relation,
//! which then has one thread and takes the best of five. Memory is the most that was resident
//! beyond the trace, views of the trace that the relation asks for included; those are made in the
//! first round, so they weigh in memory but not in time.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use reweave_base::Id;
use reweave_bench::config;
use reweave_format::{Format, ReadOptions, read, write};
use reweave_order::Clocks;
use reweave_order::cp::CausallyPrecedes;
use reweave_order::hb::HappensBefore;
use reweave_order::mhb::MustHappenBefore;
use reweave_order::shb::SchedulableHappensBefore;
use reweave_order::wcp::WeakCausallyPrecedes;
use reweave_races::epoch;
use reweave_trace::{EventId, ThreadId, Trace};
use reweave_workload::generate;

const ROUNDS: usize = 5;
const EVENTS: usize = 5_000_000;

/// One thing to measure.
struct Case {
    name: &'static str,
    /// What is asked of it, in million events a second.
    goal: Option<u32>,
    /// Does it once; gives a number that depends on all of the work.
    run: fn(&Trace) -> usize,
}

const CASES: [Case; 6] = [
    Case { name: "hb", goal: Some(50), run: |trace| all_clocks(trace, &mut HappensBefore::new()) },
    Case { name: "races.epoch", goal: None, run: |trace| epoch::racy_variables(trace).len() },
    Case {
        name: "shb",
        goal: Some(15),
        run: |trace| all_clocks(trace, &mut SchedulableHappensBefore::new()),
    },
    Case {
        name: "wcp",
        goal: Some(3),
        run: |trace| all_clocks(trace, &mut WeakCausallyPrecedes::new(trace)),
    },
    Case { name: "cp", goal: Some(3), run: causally_precedes },
    Case { name: "needs", goal: None, run: |trace| MustHappenBefore::new(trace).rows_count() },
];

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--measure", name, path] => print!("{}", measure(name, Path::new(path)).line()),
        [events] => report(events.parse().expect("a number of events")),
        _ => report(EVENTS),
    }
}

/// The clock of every event, one after the other.
fn all_clocks(trace: &Trace, clocks: &mut impl Clocks) -> usize {
    let first = ThreadId::from_index(0);
    let ids = (0..trace.len()).map(EventId::from_index);
    ids.fold(0, |sum, id| sum.wrapping_add(clocks.advance(trace, id).get(first) as usize))
}

/// The edges, then the clock of every access.
fn causally_precedes(trace: &Trace) -> usize {
    let order = CausallyPrecedes::new(trace);
    let mut clocks = order.clocks();
    let first = ThreadId::from_index(0);
    let accesses = trace.events().filter(|(_, event)| event.op.var().is_some());
    accesses.fold(0, |sum, (id, _)| sum.wrapping_add(clocks.advance(trace, id).get(first) as usize))
}

/// What one process saw.
struct Measured {
    seconds: f64,
    bytes: f64,
}

impl Measured {
    fn line(&self) -> String {
        format!("{} {}\n", self.seconds, self.bytes)
    }

    fn parse(line: &str) -> Option<Self> {
        let (seconds, bytes) = line.trim().split_once(' ')?;
        Some(Self { seconds: seconds.parse().ok()?, bytes: bytes.parse().ok()? })
    }
}

fn measure(name: &str, path: &Path) -> Measured {
    let case = CASES.iter().find(|case| case.name == name).expect("a case has this name");
    let trace = read(path, &ReadOptions::default()).expect("the file is whole").trace;
    // What reading took at its peak is not the relation's. Where the system cannot forget it, the
    // memory reported is too low.
    _ = fs::write("/proc/self/clear_refs", "5");
    let before = peak_bytes();
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box((case.run)(black_box(&trace)));
        best = best.min(start.elapsed());
    }
    Measured { seconds: best.as_secs_f64(), bytes: peak_bytes() - before }
}

/// The most memory that this process had resident; 0 where the system does not tell.
fn peak_bytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0
}

fn report(events: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.rwt");
    let trace = generate(&config(events));
    write(&trace, &path, Format::Rwt, None).expect("the folder takes a file");
    let events = trace.len() as f64;
    drop(trace);
    println!("| {events} events | million a second | goal | MB | bytes an event |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for case in &CASES {
        let Measured { seconds, bytes } = in_a_process(case.name, &path);
        let goal = case.goal.map(|goal| goal.to_string()).unwrap_or_default();
        let (rate, megabytes, each) = (events / seconds / 1e6, bytes / 1e6, bytes / events);
        println!("| {} | {rate:.1} | {goal} | {megabytes:.0} | {each:.1} |", case.name);
    }
}

fn in_a_process(name: &str, path: &Path) -> Measured {
    let program = std::env::current_exe().expect("this program has a file");
    let output = Command::new(program).args(["--measure", name]).arg(path).output();
    let output = output.expect("the child runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    Measured::parse(&text).expect("the child tells what it measured")
}
