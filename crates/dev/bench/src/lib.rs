//! What is measured: each case once, for every kind of benchmark.
//!
//! `benches/speed.rs` times the cases, `benches/instructions.rs` counts their instructions, and
//! `tests/smoke.rs` runs each on little, so that none of them rots. [`ingest`] measures how a
//! large file becomes a trace, with its memory.

pub mod ingest;

use reweave_base::Id;
use reweave_format::{Format, ReadOptions, read_from, write_to};
use reweave_order::Clocks;
use reweave_order::cp::CausallyPrecedes;
use reweave_order::hb::HappensBefore;
use reweave_order::shb::SchedulableHappensBefore;
use reweave_order::wcp::WeakCausallyPrecedes;
use reweave_races::relation::{self, Relation};
use reweave_races::{epoch, exact};
use reweave_trace::{Checker, Event, EventId, Goal, Reordering, Trace, TraceBuilder};
use reweave_workload::{Config, Shape, generate};

/// The trace of the speed goals: 16 threads, 64 locks, 20 000 variables.
#[must_use]
pub const fn config(events: usize) -> Config {
    Config { events, threads: 16, locks: 64, vars: 20_000, seed: 1, shape: Shape::Mixed }
}

/// A trace in every form that a case may start from.
pub struct Prepared {
    /// The trace.
    pub trace: Trace,
    /// It as RAPID text.
    pub text: Vec<u8>,
    /// It in our binary format.
    pub binary: Vec<u8>,
    /// It as JSON lines.
    pub json: Vec<u8>,
}

impl Prepared {
    /// The trace of the speed goals with `events` events.
    #[must_use]
    pub fn new(events: usize) -> Self {
        let trace = generate(&config(events));
        let bytes = |format| {
            let mut bytes = Vec::new();
            write_to(&trace, &mut bytes, format).expect("a vector takes what is written to it");
            bytes
        };
        let (text, binary) = (bytes(Format::Std), bytes(Format::Rwt));
        let json = bytes(Format::JsonLines);
        Self { trace, text, binary, json }
    }
}

/// One thing to measure.
#[derive(Clone, Copy)]
pub struct Case {
    /// What it is called.
    pub name: &'static str,
    /// Does it once; gives a number that depends on all of the work.
    pub run: fn(&Prepared) -> usize,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Everything that is measured.
pub const CASES: [Case; 15] = [
    Case { name: "read.std", run: |prepared| read(&prepared.text) },
    Case { name: "read.rwt", run: |prepared| read(&prepared.binary) },
    Case { name: "read.jsonl", run: |prepared| read(&prepared.json) },
    Case { name: "write.std", run: |prepared| write(&prepared.trace, Format::Std) },
    Case { name: "write.rwt", run: |prepared| write(&prepared.trace, Format::Rwt) },
    Case { name: "validate", run: |prepared| validated(prepared).len() },
    Case { name: "views", run: views },
    Case { name: "certify", run: certify },
    Case { name: "hb", run: |prepared| clocks(&prepared.trace, &mut HappensBefore::new()) },
    Case {
        name: "shb",
        run: |prepared| clocks(&prepared.trace, &mut SchedulableHappensBefore::new()),
    },
    Case {
        name: "wcp",
        run: |prepared| clocks(&prepared.trace, &mut WeakCausallyPrecedes::new(&prepared.trace)),
    },
    Case {
        name: "cp",
        run: |prepared| {
            clocks(&prepared.trace, &mut CausallyPrecedes::new(&prepared.trace).clocks())
        },
    },
    Case { name: "races.epoch", run: |prepared| epoch::racy_variables(&prepared.trace).len() },
    Case {
        name: "races.hb",
        run: |prepared| {
            relation::races(&prepared.trace, Relation::HappensBefore).counts.pairs as usize
        },
    },
    Case {
        name: "races.exact",
        run: |prepared| exact::races(&prepared.trace).counts.pairs as usize,
    },
];

/// The case called `name`.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn case(name: &str) -> Case {
    CASES.into_iter().find(|case| case.name == name).expect("a case has this name")
}

fn read(bytes: &[u8]) -> usize {
    let reading = read_from(bytes, "benchmark", &ReadOptions::default());
    reading.expect("what was written can be read").trace.len()
}

fn write(trace: &Trace, format: Format) -> usize {
    let mut bytes = Vec::new();
    write_to(trace, &mut bytes, format).expect("a vector takes what is written to it");
    bytes.len()
}

/// The clocks of an order over the whole trace; the sum of each event's entry for its own thread
/// depends on all of them having been made.
fn clocks(trace: &Trace, clocks: &mut impl Clocks) -> usize {
    let entry =
        |(id, event): (EventId, Event)| clocks.advance(trace, id).get(event.thread) as usize;
    trace.events().map(entry).sum()
}

/// From columns in memory to a validated trace.
fn validated(prepared: &Prepared) -> Trace {
    let mut builder = TraceBuilder::new();
    builder.names().clone_from(prepared.trace.names());
    builder.append(prepared.trace.columns());
    builder.finish().expect("it was well formed before")
}

/// From columns in memory to all views, which a trace keeps once computed: what `validate` takes
/// is part of it.
fn views(prepared: &Prepared) -> usize {
    let trace = validated(prepared);
    let last = EventId::from_index(trace.len() - 1);
    let writers = trace.events().filter(|&(id, _)| trace.writer(id).is_some()).count();
    let (var, _) = trace.names().vars.entries().next().expect("there is a variable");
    let thread = trace.event(last).thread;
    assert_eq!(trace.lifetime(thread).last, Some(last));
    assert!(trace.signals().wait_intervals().is_empty(), "this workload does not wait");
    writers
        + trace.sections().entries().len()
        + trace.position(last) as usize
        + trace.accesses(var).len()
}

/// The observed order put before the checker, tables included.
fn certify(prepared: &Prepared) -> usize {
    let trace = &prepared.trace;
    let observed = trace.events().map(|(id, _)| id).collect();
    let reordering = Reordering::explicit(observed);
    let certificate = Checker::new(trace).check(&reordering, &Goal::Enabled(Vec::new()));
    certificate.expect("what was observed can happen").events_count
}
