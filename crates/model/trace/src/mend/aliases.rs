//! Threads known by two spellings: `fork(2)` starts what then runs as `T2`.

use reweave_base::{FxHashSet, Id, IndexVec, Interner};

use super::Repair;
use crate::builder::TraceBuilder;
use crate::columns::Columns;
use crate::names::Names;
use crate::op::{OpKind, ThreadId};

/// Takes each pair of spellings of which one is only forked or joined, and the other only runs
/// in between, as one thread: the one that runs.
pub(super) fn merge(builder: &mut TraceBuilder) -> Vec<Repair> {
    let pairs = two_spellings(&builder.names, &builder.columns);
    if pairs.is_empty() {
        return Vec::new();
    }
    let old = std::mem::take(&mut builder.names.threads);
    let mut target: IndexVec<ThreadId, ThreadId> = old.entries().map(|(id, _)| id).collect();
    for &(named, runs) in &pairs {
        target[named] = runs;
    }
    let mut threads = Interner::new();
    let renumbered: IndexVec<ThreadId, ThreadId> =
        target.iter().map(|&id| threads.intern(old.name(id))).collect();
    let columns = &mut builder.columns;
    for index in 0..columns.len() {
        let renumber = |index: &mut u32| {
            if let Some(id) = renumbered.get(ThreadId::from_index(*index as usize)) {
                *index = id.index() as u32;
            }
        };
        if matches!(columns.codes[index].kind(), OpKind::Fork | OpKind::Join) {
            renumber(&mut columns.operands[index]);
        }
        renumber(&mut columns.threads[index]);
    }
    builder.names.threads = threads;
    let text = |&(named, runs): &(ThreadId, ThreadId)| {
        format!("took threads `{}` and `{}` as one", old.name(named), old.name(runs))
    };
    pairs.iter().map(|pair| Repair { event: None, change: text(pair) }).collect()
}

/// When a thread is spoken of, and when it runs; positions of events.
#[derive(Clone, Copy, Default)]
struct Spans {
    runs: Option<(usize, usize)>,
    /// Whether its last event is a wait, so that it never ends.
    waits: bool,
    fork: Option<usize>,
    joins: Option<(usize, usize)>,
}

/// Pairs of a thread that is forked or joined and never runs, and one that runs and is neither,
/// whose names differ by a leading `T`, and that fit: the fork before the run, the joins after.
pub(crate) fn two_spellings(names: &Names, columns: &Columns) -> Vec<(ThreadId, ThreadId)> {
    let threads = &names.threads;
    let other_spelling = |name: &str| match name.strip_prefix('T') {
        Some(rest) if !rest.is_empty() => threads.get(rest),
        _ => threads.get(&format!("T{name}")),
    };
    let pairs: Vec<(ThreadId, ThreadId)> = threads
        .entries()
        .filter_map(|(id, name)| other_spelling(name).map(|other| (id, other)))
        .collect();
    if pairs.is_empty() {
        return pairs;
    }
    let spans = spans(threads.len(), columns);
    let fits = |&(named, runs): &(ThreadId, ThreadId)| {
        let (named, runs) = (spans[named], spans[runs]);
        let Some((first, last)) = runs.runs else { return false };
        named.runs.is_none()
            && (named.fork.is_some() || named.joins.is_some())
            && runs.fork.is_none()
            && runs.joins.is_none()
            && named.fork.is_none_or(|fork| fork < first)
            && named.joins.is_none_or(|(join, _)| join > last && !runs.waits)
    };
    let mut pairs: Vec<(ThreadId, ThreadId)> = pairs.into_iter().filter(fits).collect();
    // Of several spellings of one thread only the first is taken: it cannot be forked twice.
    let mut taken = FxHashSet::default();
    pairs.retain(|&(_, runs)| taken.insert(runs));
    pairs
}

fn spans(threads_count: usize, columns: &Columns) -> IndexVec<ThreadId, Spans> {
    let mut spans = IndexVec::from_elem(Spans::default(), threads_count);
    let widen = |span: &mut Option<(usize, usize)>, at: usize| {
        *span = Some((span.map_or(at, |(first, _)| first), at));
    };
    for index in 0..columns.len() {
        let thread = columns.threads[index] as usize;
        let operand = columns.operands[index] as usize;
        if thread >= threads_count {
            continue;
        }
        let own = &mut spans[ThreadId::from_index(thread)];
        widen(&mut own.runs, index);
        own.waits = columns.codes[index].kind() == OpKind::Wait;
        if operand >= threads_count {
            continue;
        }
        let spoken_of = &mut spans[ThreadId::from_index(operand)];
        match columns.codes[index].kind() {
            OpKind::Fork => _ = spoken_of.fork.get_or_insert(index),
            OpKind::Join => widen(&mut spoken_of.joins, index),
            _ => {}
        }
    }
    spans
}
