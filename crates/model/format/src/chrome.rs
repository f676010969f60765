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

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::views::Mode;
use reweave_trace::{
    AccessOp, BarrierOp, BlockId, ConditionId, ConditionOp, Event, EventId, LockId, LockOp, Marker,
    NameKind, Names, Op, OpKind, SemaphoreOp, ThreadId, ThreadOp, Trace, VarId,
};
use serde::Serialize;

/// The key of the events; a file that has it is known by it.
pub(crate) const KEY: &[u8] = b"traceEvents";

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
    pub const fn observed(trace: &'t Trace, name: String) -> Self {
        Self { trace, name, order: Order::Observed, is_observed: true, marked: Vec::new() }
    }

    /// Only `events`, as they were observed. Those that are `marked` stand out.
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
    let (slices, lanes) = of(run);
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

// Arrows from an event to one of another thread that comes after it for a reason.

/// When and in which thread an arrow starts or ends.
type End = (u64, ThreadId);

/// An arrow.
#[derive(Clone, Copy, Debug)]
struct Arrow {
    /// What it stands for.
    name: &'static str,
    from: End,
    to: End,
}

/// What arrows may start from, as of some moment of a run.
#[derive(Debug)]
struct Arrows {
    writes: IndexVec<VarId, Option<End>>,
    releases: IndexVec<LockId, Option<End>>,
    /// For each thread the fork that started it, until it is seen to run.
    forks: IndexVec<ThreadId, Option<End>>,
    last: IndexVec<ThreadId, Option<End>>,
}

impl Arrows {
    /// At the start of a run of what has `names`.
    fn new(names: &Names) -> Self {
        Self {
            writes: IndexVec::from_elem(None, names.vars.len()),
            releases: IndexVec::from_elem(None, names.locks.len()),
            forks: IndexVec::from_elem(None, names.threads.len()),
            last: IndexVec::from_elem(None, names.threads.len()),
        }
    }

    /// The arrows to `event`, which is next in `run` and happens at `moment`.
    fn to(
        &mut self,
        run: &Run<'_>,
        moment: u64,
        event: EventId,
    ) -> impl Iterator<Item = Arrow> + use<> {
        let trace = run.trace;
        let (thread, op) = (trace.event(event).thread, trace.event(event).op);
        let here = (moment, thread);
        let start = self.forks[thread].take().map(|from| ("starts", from));
        let reason = self.reason(run, event).or_else(|| {
            let var = op
                .var()
                .filter(|_| op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _)))?;
            Some(("reads from", self.writes[var]?))
        });
        self.record(op, here);
        let is_arrow = move |&(_, from): &(&str, End)| from.1 != here.1 && from.0 < here.0;
        let all = [start, reason].into_iter().flatten().filter(is_arrow);
        all.map(move |(name, from)| Arrow { name, from, to: here })
    }

    /// What lets `event` go on, if it is one that waits.
    fn reason(&self, run: &Run<'_>, event: EventId) -> Option<(&'static str, End)> {
        let trace = run.trace;
        let end = |event: EventId| Some((run.moment(event)?, trace.event(event).thread));
        let signals = trace.signals();
        match trace.event(event).op {
            Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) => {
                Some(("hands over", self.releases[lock]?))
            }
            Op::Thread(ThreadOp::Join, child) => Some(("ends", self.last[child]?)),
            Op::Condition(ConditionOp::Wake, _) => {
                Some(("wakes", end(signals.wait_interval(event)?.notify?)?))
            }
            Op::Semaphore(SemaphoreOp::Take, _) => Some(("posts", end(signals.post(event)?)?)),
            Op::Barrier(BarrierOp::Depart, _) => {
                let generation = signals.generation(signals.needed_generation(event)?);
                Some(("releases", end(*generation.arrivals.last()?)?))
            }
            _ => None,
        }
    }

    fn record(&mut self, op: Op, here: End) {
        self.last[here.1] = Some(here);
        if let Some(var) = op.var().filter(|_| op.is_write()) {
            self.writes[var] = Some(here);
        }
        match op {
            Op::Lock(LockOp::Release | LockOp::ReleaseShared, lock) => {
                self.releases[lock] = Some(here);
            }
            // A lock that is taken again by its owner is not handed over once more.
            Op::Lock(LockOp::Acquire, lock) => self.releases[lock] = None,
            Op::Thread(ThreadOp::Fork, child) => self.forks[child] = Some(here),
            _ => {}
        }
    }
}

// What lasts longer than an event: locks that are held, blocks, waits; and the tracks for them.

/// What a slice shows.
#[derive(Clone, Copy, Debug)]
enum What {
    Lock(LockId, Mode),
    Block(BlockId),
    Wait(ConditionId),
}

/// A stretch of a thread's time, its last moment not included.
#[derive(Clone, Copy, Debug)]
struct Slice {
    thread: ThreadId,
    what: What,
    start: u64,
    end: u64,
    /// Which of the thread's tracks it is on.
    lane: u32,
}

/// The tracks of each thread.
#[derive(Debug)]
struct Lanes {
    /// How many tracks each thread has, and the number of its second.
    tracks: IndexVec<ThreadId, (u32, u32)>,
}

impl Lanes {
    /// How many tracks `thread` has.
    fn count(&self, thread: ThreadId) -> u32 {
        self.tracks[thread].0
    }

    /// The number of the track `lane` of `thread`.
    fn track(&self, thread: ThreadId, lane: u32) -> u32 {
        match lane {
            0 => track(thread),
            lane => self.tracks[thread].1 + lane - 1,
        }
    }
}

/// The slices of `run`, those of a thread in the order of their starts, and the tracks they need.
fn of(run: &Run<'_>) -> (Vec<Slice>, Lanes) {
    let mut slices = locks(run);
    slices.extend(blocks_and_waits(run));
    // Of what begins before the run, what ends last lies around the others.
    slices.sort_by_key(|slice| (slice.thread, slice.start, Reverse(slice.end)));
    let threads_count = run.trace.names().threads.len();
    let mut counts: IndexVec<ThreadId, u32> = IndexVec::from_elem(1, threads_count);
    for of_thread in slices.chunk_by_mut(|one, other| one.thread == other.thread) {
        counts[of_thread[0].thread] = place(of_thread);
    }
    let mut tracks = IndexVec::new();
    let mut next = threads_count as u32 + 1;
    for &count in counts.iter() {
        tracks.push((count, next));
        next += count - 1;
    }
    (slices, Lanes { tracks })
}

/// Puts each of `slices`, of one thread and in the order of their starts, on the first track where
/// it overlaps none in part. Answers how many tracks there are.
fn place(slices: &mut [Slice]) -> u32 {
    // On each track the ends of the slices that are open, the outermost first.
    let mut lanes: Vec<Vec<u64>> = vec![Vec::new()];
    for slice in slices {
        for open in &mut lanes {
            while open.last().is_some_and(|&end| end <= slice.start) {
                open.pop();
            }
        }
        let fits = |open: &Vec<u64>| open.last().is_none_or(|&end| slice.end <= end);
        let lane = lanes.iter().position(fits).unwrap_or_else(|| {
            lanes.push(Vec::new());
            lanes.len() - 1
        });
        lanes[lane].push(slice.end);
        slice.lane = lane as u32;
    }
    lanes.len() as u32
}

/// From when to when what `begins` and `ends` lasts in `run`: it may have begun before, and may end
/// after. None if `run` has neither.
fn span(run: &Run<'_>, begins: EventId, ends: Option<EventId>) -> Option<(u64, u64)> {
    let is_shown = |event: EventId| run.moment(event).is_some();
    if !is_shown(begins) && !ends.is_some_and(is_shown) {
        return None;
    }
    let (first, last) = run.span();
    let start = run.known_moment(begins).unwrap_or(first).max(first);
    let end = ends.and_then(|ends| run.known_moment(ends)).map_or(last, |it| it + EVENT_TIME);
    (start < end).then_some((start, end.min(last)))
}

fn locks(run: &Run<'_>) -> Vec<Slice> {
    let sections = run.trace.sections().entries();
    let slices = sections.filter_map(|(_, section)| {
        let (start, end) = span(run, section.acquire, section.release)?;
        let what = What::Lock(section.lock, section.mode);
        Some(Slice { thread: section.thread, what, start, end, lane: 0 })
    });
    slices.collect()
}

fn blocks_and_waits(run: &Run<'_>) -> Vec<Slice> {
    let mut slices = Vec::new();
    let mut open: BTreeMap<(ThreadId, BlockId), Vec<EventId>> = BTreeMap::new();
    let trace = run.trace;
    let mut add = |thread, what, begins, ends| {
        if let Some((start, end)) = span(run, begins, ends) {
            slices.push(Slice { thread, what, start, end, lane: 0 });
        }
    };
    for (id, event) in trace.events() {
        match event.op {
            Op::Marker(Marker::Begin(block)) => {
                open.entry((event.thread, block)).or_default().push(id);
            }
            Op::Marker(Marker::End(block)) => {
                let begins = open.get_mut(&(event.thread, block)).and_then(Vec::pop);
                if let Some(begins) = begins {
                    add(event.thread, What::Block(block), begins, Some(id));
                }
            }
            Op::Condition(ConditionOp::Wait, condition) => {
                let interval = trace.signals().wait_interval(id);
                add(
                    event.thread,
                    What::Wait(condition),
                    id,
                    interval.and_then(|interval| interval.end),
                );
            }
            _ => {}
        }
    }
    for ((thread, block), begins) in open {
        for begins in begins {
            add(thread, What::Block(block), begins, None);
        }
    }
    slices
}
