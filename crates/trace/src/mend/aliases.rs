//! Threads known by two spellings: `fork(2)` starts what then runs as `T2`.

use reweave_base::{Id, IndexVec, Interner};

use super::Repair;
use crate::builder::TraceBuilder;
use crate::op::{Op, ThreadId};

/// Takes each pair of spellings of which one is only forked or joined, and the other only runs,
/// as one thread: the one that runs.
pub(super) fn merge(builder: &mut TraceBuilder) -> Vec<Repair> {
    let pairs = two_spellings(builder);
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
        if matches!(Op::decode(columns.codes[index], 0), Op::Fork(_) | Op::Join(_)) {
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

/// Pairs of a thread that is forked or joined and never runs, and one that runs and is neither,
/// whose names differ by a leading `T`.
fn two_spellings(builder: &TraceBuilder) -> Vec<(ThreadId, ThreadId)> {
    let threads = &builder.names.threads;
    let mut runs = IndexVec::from_elem(false, threads.len());
    let mut named = IndexVec::from_elem(false, threads.len());
    for index in 0..builder.columns.len() {
        let thread = builder.columns.threads[index] as usize;
        let operand = builder.columns.operands[index] as usize;
        if thread < threads.len() {
            runs[ThreadId::from_index(thread)] = true;
        }
        let starts_or_ends =
            matches!(Op::decode(builder.columns.codes[index], 0), Op::Fork(_) | Op::Join(_));
        if starts_or_ends && operand < threads.len() {
            named[ThreadId::from_index(operand)] = true;
        }
    }
    let other_spelling = |name: &str| match name.strip_prefix('T') {
        Some(rest) if !rest.is_empty() => threads.get(rest),
        _ => threads.get(&format!("T{name}")),
    };
    threads
        .entries()
        .filter(|&(id, _)| named[id] && !runs[id])
        .filter_map(|(id, name)| other_spelling(name).map(|other| (id, other)))
        .filter(|&(_, other)| runs[other] && !named[other])
        .collect()
}
