//! How fast does a large file become a validated trace, and in how much memory?
//!
//! `cargo bench -p reweave-bench --bench ingest -- [EVENTS]`, ten million events by default. Each
//! file is read in a process of its own.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::path::Path;
use std::process::Command;

use reweave_bench::ingest::{Measured, What, measure, table};

const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--read", path] => print!("{}", measure(What::Read, Path::new(path), ROUNDS).line()),
        ["--decode", path] => print!("{}", measure(What::Decode, Path::new(path), ROUNDS).line()),
        [events] => report(events.parse().expect("a number of events")),
        _ => report(10_000_000),
    }
}

fn report(events: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    print!("{}", table(folder.path(), events, in_a_process));
}

fn in_a_process(what: What, path: &Path) -> Measured {
    let program = std::env::current_exe().expect("this program has a file");
    let what = if what == What::Read { "--read" } else { "--decode" };
    let output = Command::new(program).arg(what).arg(path).output().expect("the child runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    Measured::parse(&text).expect("the child prints what it measured")
}
