//! Traces for timeline viewers: the JSON trace event format, which Perfetto and Chrome's own viewer
//! open. It is written only.
//!
//! A thread is a track. Every event is a slice one microsecond long, at the microsecond of its
//! number; around them lie longer slices for locks that are held, blocks, and waits. Arrows go from
//! a fork to what it starts, from a thread's end to its join, from a release to the next acquire by
//! another thread, from a write to a read of it by another thread, and from whoever signals to
//! whoever was waiting.
//!
//! Slices of a track never overlap in part, as viewers want it: where locks are taken hand over
//! hand, a thread gets a second track. Events are written as they are gone through; memory is kept
//! for the slices around them, not for the text.

mod arrows;
mod slices;

use std::io::{self, BufWriter, Write};

use reweave_base::FxHashMap;
use reweave_trace::{Event, EventId, NameKind, OpKind, ThreadId, Trace};
use serde::Serialize;

use arrows::{Arrow, Arrows};
use slices::{Lanes, Slice, What};

/// The key of the events; a file that has it is known by it.
pub(crate) const KEY: &[u8] = b"\"traceEvents\"";

/// How long an event takes.
const EVENT_TIME: u64 = 1;

/// Events of a trace, in an order, as one process of a timeline.
#[derive(Debug)]
pub struct Run<'t> {
    trace: &'t Trace,
    name: String,
    order: Order,
    /// Whether moments are the numbers of events.
    is_observed: bool,
    marked: Vec<EventId>,
}

/// Which events happen when.
#[derive(Debug)]
enum Order {
    /// All of them, as they were observed.
    Observed,
    /// These, and the moments of each once more by event.
    Given(Vec<(u64, EventId)>, FxHashMap<EventId, u64>),
}

impl<'t> Run<'t> {
    /// All events of `trace` as they were observed, under the title `name`.
    #[must_use]
    pub const fn observed(trace: &'t Trace, name: String) -> Self {
        Self { trace, name, order: Order::Observed, is_observed: true, marked: Vec::new() }
    }

    /// Only `events`, as they were observed. Those that are `marked` stand out.
    #[must_use]
    pub fn some_observed(
        trace: &'t Trace,
        name: String,
        mut events: Vec<EventId>,
        marked: Vec<EventId>,
    ) -> Self {
        events.sort_unstable();
        let events = events.iter().map(|&event| (u64::from(event.number()), event)).collect();
        Self { is_observed: true, ..Self::given(trace, name, events, marked) }
    }

    /// `events` at the moments that stand before them, which ascend; those of a thread do so
    /// strictly. Those that are `marked` stand out.
    #[must_use]
    pub fn given(
        trace: &'t Trace,
        name: String,
        events: Vec<(u64, EventId)>,
        marked: Vec<EventId>,
    ) -> Self {
        let moments = events.iter().map(|&(moment, event)| (event, moment)).collect();
        let order = Order::Given(events, moments);
        Self { trace, name, order, is_observed: false, marked }
    }

    /// The events, each with its moment.
    fn events(&self) -> Box<dyn Iterator<Item = (u64, EventId)> + '_> {
        match &self.order {
            Order::Observed => {
                Box::new(self.trace.events().map(|(id, _)| (u64::from(id.number()), id)))
            }
            Order::Given(events, _) => Box::new(events.iter().copied()),
        }
    }

    /// When `event` happens, if it does.
    fn moment(&self, event: EventId) -> Option<u64> {
        match &self.order {
            Order::Observed => Some(u64::from(event.number())),
            Order::Given(_, moments) => moments.get(&event).copied(),
        }
    }

    /// When `event` happens, if that is known, whether or not it is one of those that are shown.
    fn known_moment(&self, event: EventId) -> Option<u64> {
        let number = self.is_observed.then(|| u64::from(event.number()));
        self.moment(event).or(number)
    }

    /// From when to when it lasts.
    fn span(&self) -> (u64, u64) {
        match &self.order {
            Order::Observed => (1, self.trace.len() as u64 + EVENT_TIME),
            Order::Given(events, _) => {
                let start = events.first().map_or(1, |&(moment, _)| moment);
                (start, events.last().map_or(1, |&(moment, _)| moment + EVENT_TIME))
            }
        }
    }
}

/// Writes `trace` to `out`.
///
/// ```
/// let trace = reweave_trace::TraceBuilder::new().finish()?;
/// reweave_format::chrome::write(&trace, &mut std::io::stdout())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If `out` fails.
pub fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    write_runs(out, &[Run::observed(trace, "observed".to_owned())])
}

/// Writes each of `runs` to `out` as a process of its own.
///
/// # Errors
/// If `out` fails.
pub fn write_runs(out: &mut dyn Write, runs: &[Run<'_>]) -> io::Result<()> {
    let mut entries = Entries { out: BufWriter::new(out), is_first: true, arrows_count: 0 };
    write!(entries.out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for (process, run) in (1..).zip(runs) {
        write_run(&mut entries, process, run)?;
    }
    writeln!(entries.out, "\n]}}")?;
    entries.out.flush()
}

fn write_run(entries: &mut Entries<'_>, process: u32, run: &Run<'_>) -> io::Result<()> {
    let names = run.trace.names();
    let (slices, lanes) = slices::of(run);
    write_names(entries, process, run, &lanes)?;
    for slice in &slices {
        write_slice(entries, process, run, slice, lanes.track(slice.thread, slice.lane))?;
    }
    for (moment, event) in run.events() {
        write_event(entries, process, run, moment, event)?;
    }
    let mut arrows = Arrows::new(names);
    for (moment, event) in run.events() {
        for arrow in arrows.to(run, moment, event) {
            write_arrow(entries, process, &arrow)?;
        }
    }
    Ok(())
}

/// The number of a thread's own track.
fn track(thread: ThreadId) -> u32 {
    thread.number()
}

/// What the process and its tracks are called, and in which order they stand.
fn write_names(
    entries: &mut Entries<'_>,
    process: u32,
    run: &Run<'_>,
    lanes: &Lanes,
) -> io::Result<()> {
    let named = |name, track, text: &str| Entry {
        tid: track,
        args: Args { name: Some(text.to_owned()), ..Args::default() },
        ..Entry::new(name, "M", process)
    };
    entries.put(&named("process_name", None, &run.name))?;
    let mut place = 0;
    for (thread, name) in run.trace.names().threads.entries() {
        for lane in 0..lanes.count(thread) {
            let track = Some(lanes.track(thread, lane));
            let title = match lane {
                0 => name.to_owned(),
                lane => format!("{name} ({})", lane + 1),
            };
            entries.put(&named("thread_name", track, &title))?;
            place += 1;
            entries.put(&Entry {
                tid: track,
                args: Args { sort_index: Some(place), ..Args::default() },
                ..Entry::new("thread_sort_index", "M", process)
            })?;
        }
    }
    Ok(())
}

fn write_slice(
    entries: &mut Entries<'_>,
    process: u32,
    run: &Run<'_>,
    slice: &Slice,
    track: u32,
) -> io::Result<()> {
    let names = run.trace.names();
    let (name, category, mode) = match slice.what {
        What::Lock(lock, mode) => (names.locks.name(lock), "held", Some(mode.as_str())),
        What::Block(block) => (names.blocks.name(block), "block", None),
        What::Wait(condition) => (names.conditions.name(condition), "waits", None),
    };
    let name = match mode {
        Some("shared") => format!("{name} (shared)"),
        _ => name.to_owned(),
    };
    entries.put(&Entry {
        cat: Some(category),
        tid: Some(track),
        ts: Some(slice.start),
        dur: Some(slice.end - slice.start),
        args: Args { mode, ..Args::default() },
        ..Entry::new(&name, "X", process)
    })
}

fn write_event(
    entries: &mut Entries<'_>,
    process: u32,
    run: &Run<'_>,
    moment: u64,
    id: EventId,
) -> io::Result<()> {
    let (trace, names) = (run.trace, run.trace.names());
    let Event { thread, op, site } = trace.event(id);
    let (code, operand) = op.encode();
    let kind = code.kind();
    let location = names.location(site);
    let is_fault = run.marked.contains(&id);
    entries.put(&Entry {
        cat: Some(if is_fault { "fault" } else { category(kind) }),
        tid: Some(track(thread)),
        ts: Some(moment),
        dur: Some(EVENT_TIME),
        cname: is_fault.then_some("terrible"),
        args: Args {
            event: Some(id.number()),
            on: (kind.operand() != NameKind::None).then(|| names.name(kind.operand(), operand)),
            value: trace.value(id),
            location: (!location.is_empty()).then_some(location),
            ..Args::default()
        },
        ..Entry::new(&names.spell(op).to_string(), "X", process)
    })
}

/// What viewers may filter events by.
const fn category(kind: OpKind) -> &'static str {
    match kind.operand() {
        NameKind::Var | NameKind::Object => "memory",
        NameKind::Lock => "lock",
        NameKind::Thread => "thread",
        NameKind::Condition | NameKind::Barrier | NameKind::Semaphore => "signal",
        NameKind::Block => "block",
        NameKind::None | NameKind::Local | NameKind::Site => "other",
    }
}

fn write_arrow(entries: &mut Entries<'_>, process: u32, arrow: &Arrow) -> io::Result<()> {
    entries.arrows_count += 1;
    let end = |phase, (moment, thread): (u64, ThreadId)| Entry {
        cat: Some("order"),
        tid: Some(track(thread)),
        ts: Some(moment),
        id: Some(entries.arrows_count),
        ..Entry::new(arrow.name, phase, process)
    };
    let ends = [end("s", arrow.from), Entry { bp: Some("e"), ..end("f", arrow.to) }];
    entries.put(&ends[0])?;
    entries.put(&ends[1])
}

/// The list of entries, written one by one.
struct Entries<'a> {
    out: BufWriter<&'a mut dyn Write>,
    is_first: bool,
    arrows_count: u64,
}

impl Entries<'_> {
    fn put(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let separator: &[u8] = if self.is_first { b"\n" } else { b",\n" };
        self.is_first = false;
        self.out.write_all(separator)?;
        Ok(serde_json::to_writer(&mut self.out, entry)?)
    }
}

/// An entry, with the format's own names.
#[derive(Default, Serialize)]
struct Entry<'a> {
    name: &'a str,
    ph: &'static str,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cname: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    #[serde(skip_serializing_if = "Args::is_empty")]
    args: Args<'a>,
}

impl<'a> Entry<'a> {
    fn new(name: &'a str, phase: &'static str, process: u32) -> Self {
        Self { name, ph: phase, pid: process, ..Self::default() }
    }
}

/// What is shown of a slice that is clicked on.
#[derive(Default, PartialEq, Eq, Serialize)]
struct Args<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
}

impl Args<'_> {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
