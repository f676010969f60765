//! What a trace holds, in numbers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Write};

use reweave_trace::{EventId, OpKind, ThreadId, Trace};
use serde::Serialize;

use crate::json::{SCHEMA, object, trace_entry, write_json};
use crate::rerun::start_lines;
use crate::shown::shown;
use crate::{counted, title};

/// How many threads the text form lists.
const THREADS_MAX: usize = 20;

/// Where a trace came from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its file; `-` is standard input.
    pub path: &'a str,
    /// The format it was in.
    pub format: &'a str,
    /// How it was compressed, if it was.
    pub compression: Option<&'a str>,
    /// The trace.
    pub trace: &'a Trace,
}

/// What a trace holds, in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// How many events there are.
    pub events: usize,
    /// How many threads have names.
    pub threads: usize,
    /// How many locks have names.
    pub locks: usize,
    /// How many variables have names.
    pub vars: usize,
    /// How many events each operation has, by the word that text formats use.
    pub ops: BTreeMap<&'static str, u64>,
}

impl Stats {
    /// The numbers of `trace`.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let mut counts = [0_u64; OpKind::ALL.len()];
        // The column alone, since assembling every event takes several times as long.
        for code in &trace.columns().codes {
            counts[code.kind() as usize] += 1;
        }
        let ops = OpKind::ALL.into_iter().map(|kind| (kind.as_str(), counts[kind as usize]));
        let names = trace.names();
        Self {
            events: trace.len(),
            threads: names.threads.len(),
            locks: names.locks.len(),
            vars: names.vars.len(),
            ops: ops.filter(|&(_, count)| count > 0).collect(),
        }
    }
}

#[derive(Serialize)]
struct SectionsEntry {
    count: usize,
    open_at_end: usize,
    deepest: usize,
}

/// Writes the numbers of each of `sources`: an object for one, a list of them for several.
///
/// # Errors
/// If `out` fails.
pub fn stats_json(out: &mut dyn Write, sources: &[Source<'_>]) -> io::Result<()> {
    match sources {
        [only] => write_json(out, &document(only, &Stats::new(only.trace)), usize::MAX),
        all => stats_list_json(out, all),
    }
}

/// Writes a list of the numbers of each of `sources`, however few they are.
///
/// # Errors
/// If `out` fails.
pub fn stats_list_json(out: &mut dyn Write, sources: &[Source<'_>]) -> io::Result<()> {
    let stats: Vec<Stats> = sources.iter().map(|source| Stats::new(source.trace)).collect();
    let documents = sources.iter().zip(&stats).map(|(source, stats)| document(source, stats));
    write_json(out, &documents.collect::<Vec<_>>(), usize::MAX)
}

fn document<'a>(source: &Source<'a>, stats: &'a Stats) -> impl Serialize + use<'a> {
    let trace = source.trace;
    let names = trace.names();
    object! {
        schema: SCHEMA,
        trace: trace_entry(source.path, trace),
        ..top: stats,
        stats: stats,
        format: source.format,
        compression: source.compression,
        sections: sections(trace),
        values: trace.has_values(),
        objects: object! {
            conditions: names.conditions.len(),
            barriers: names.barriers.len(),
            semaphores: names.semaphores.len(),
            objects: names.objects.len(),
            blocks: names.blocks.len(),
        },
        locations: names.sites.len(),
        repaired: trace.repairs().iter().map(ToString::to_string).collect::<Vec<_>>(),
    }
}

/// Writes the numbers of `source` as text.
///
/// # Errors
/// If `out` fails.
pub fn stats_text(out: &mut dyn Write, source: &Source<'_>) -> io::Result<()> {
    let trace = source.trace;
    let stats = Stats::new(trace);
    let packed = source.compression.map_or(String::new(), |name| format!(", {name}"));
    writeln!(out, "{}: {}{packed}", shown(title(source.path)), source.format)?;
    if !trace.repairs().is_empty() {
        let changes = counted(trace.repairs().len() as u64, "change");
        writeln!(out, "  repaired   {changes} made it well formed")?;
    }
    let names = trace.names();
    let rows = [
        ("events", stats.events),
        ("threads", stats.threads),
        ("locks", stats.locks),
        ("variables", stats.vars),
        ("conditions", names.conditions.len()),
        ("barriers", names.barriers.len()),
        ("semaphores", names.semaphores.len()),
        ("objects", names.objects.len()),
        ("blocks", names.blocks.len()),
        ("locations", names.sites.len()),
    ];
    for (name, count) in rows {
        writeln!(out, "  {name:<10} {count}")?;
    }
    writeln!(out, "  values     {}", if trace.has_values() { "yes" } else { "no" })?;
    let SectionsEntry { count, open_at_end, deepest } = sections(trace);
    writeln!(out, "  sections   {count}, {open_at_end} open at the end, nested {deepest} deep")?;
    let ops: Vec<String> =
        stats.ops.iter().map(|(word, count)| format!("{word} {count}")).collect();
    writeln!(out, "  operations {}", ops.join(", "))?;
    for (name, text) in trace.run_start().map(start_lines).unwrap_or_default() {
        writeln!(out, "  {name:<10} {}", shown(&text))?;
    }
    lifetimes(out, trace)
}

fn lifetimes(out: &mut dyn Write, trace: &Trace) -> io::Result<()> {
    let names = &trace.names().threads;
    for (thread, name) in names.entries().take(THREADS_MAX) {
        writeln!(out, "  thread {}: {}", shown(name), life(trace, thread))?;
    }
    if names.len() > THREADS_MAX {
        writeln!(out, "  … and {} more", counted((names.len() - THREADS_MAX) as u64, "thread"))?;
    }
    Ok(())
}

fn life(trace: &Trace, thread: ThreadId) -> String {
    let lifetime = trace.lifetime(thread);
    let mut life = match (lifetime.first, lifetime.last) {
        (Some(first), Some(last)) => {
            let count = counted(trace.thread_events(thread).len() as u64, "event");
            format!("{count}, {} to {}", first.number(), last.number())
        }
        _ => "never runs".to_owned(),
    };
    if let Some(fork) = lifetime.fork {
        life += &format!(", forked at {}", fork.number());
    }
    if let Some(join) = lifetime.join {
        life += &format!(", joined at {}", join.number());
    }
    life
}

fn sections(trace: &Trace) -> SectionsEntry {
    let sections = trace.sections();
    let mut deepest = 0;
    for (thread, _) in trace.names().threads.entries() {
        // Releases of the sections that are open, the next one first; those that stay open last.
        let mut open: BinaryHeap<Reverse<(bool, Option<EventId>)>> = BinaryHeap::new();
        for &id in sections.of_thread(thread) {
            let section = sections.get(id);
            while matches!(open.peek(), Some(Reverse((false, release))) if *release < Some(section.acquire))
            {
                open.pop();
            }
            open.push(Reverse((section.release.is_none(), section.release)));
            deepest = deepest.max(open.len());
        }
    }
    let open_at_end = sections.entries().filter(|(_, section)| section.release.is_none()).count();
    SectionsEntry { count: sections.entries().len(), open_at_end, deepest }
}
