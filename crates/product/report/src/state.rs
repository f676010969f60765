//! A global state that meets a predicate, or breaks it: what it says, and its picture.
//!
//! The picture is the table of the run that reaches the state, with a line across it: above are
//! the events of the state in observed order, the last of each thread marked, and below is what
//! each thread does next. Where the checker refused that run, the table is the same but has no
//! steps, since nobody is known to make them.
//!
//! Threads are chosen in the order in which a reader asks for them: those that the predicate speaks
//! of, those of the events that the finding names, those that have run, and the others.

use std::collections::BTreeSet;

use reweave_analysis::{Finding, GlobalState, Modality, Proof};
use reweave_order::poset::Relation;
use reweave_trace::{EventId, Reordering, ThreadId, Trace};

use crate::alternatives::LISTED_MAX;
use crate::counted;
use crate::schedule::{Extent, Table, steps_count};
use crate::shown::clipped;

/// How many threads have a column.
const COLUMNS_MAX: usize = 8;

/// How long a predicate gets in a line.
const PREDICATE_MAX: usize = 64;

/// What is said of a term whose value the trace does not have.
const NOT_KNOWN: &str = "not known";

/// What a predicate speaks of, and what that is in a state.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    /// A term as the predicate spells it, and its value; at most [`LISTED_MAX`] of them.
    pub listed: Vec<(&'a str, &'a str)>,
    /// How many more there are.
    unlisted_count: usize,
}

impl<'a> Known<'a> {
    /// What the predicate of `state` speaks of.
    pub fn new(state: &'a GlobalState) -> Self {
        let known = |(term, value): &'a (String, Option<String>)| {
            (term.as_str(), value.as_deref().unwrap_or(NOT_KNOWN))
        };
        let listed = state.values.iter().take(LISTED_MAX).map(known).collect();
        Self { listed, unlisted_count: state.values.len().saturating_sub(LISTED_MAX) }
    }

    /// What introduces it; none if there is nothing.
    pub fn heading(&self) -> Option<&'static str> {
        (!self.listed.is_empty()).then_some("In this state:")
    }

    /// What is said of the others, if there are any.
    pub fn unlisted_note(&self) -> Option<String> {
        let count = self.unlisted_count;
        (count > 0).then(|| format!("and {count} more; --format json lists them all"))
    }
}

/// A state as a line through a table.
#[derive(Debug)]
pub struct Picture<'t> {
    /// What introduces it.
    pub heading: &'static str,
    /// The events around the state.
    pub table: Table<'t>,
    /// What is to be said below it, a sentence or two each.
    pub notes: Vec<String>,
}

impl<'t> Picture<'t> {
    /// The picture of the state of `finding`, if it shows one.
    pub fn new(trace: &'t Trace, finding: &Finding, extent: Extent) -> Option<Self> {
        let state = finding.detail.state()?;
        let proof = finding.evidence.proof();
        let observed = observed(trace, state);
        let reordering = proof.map_or(&observed, Proof::reordering);
        let (threads, unshown_count) = columns(trace, finding, state, &observed);
        let heading = match (steps_count(reordering), proof) {
            (0, _) => "Nothing has happened yet; below the line is what each thread does first:",
            (count, Some(_)) if count == trace.len() => {
                "A run of all observed events that reaches it:"
            }
            (_, Some(_)) => "A run that reaches it; below the line, what each thread does next:",
            (_, None) => {
                "Its events in observed order; below the line, what each thread does next:"
            }
        };
        let table = Table::of_state(trace, reordering, threads, proof.is_some(), extent);
        let mut notes = Vec::new();
        if unshown_count > 0 {
            let threads = counted(unshown_count as u64, "more thread");
            let are = if unshown_count == 1 { "is" } else { "are" };
            notes.push(format!("{threads} {are} not shown; --format json writes the whole cut."));
        }
        notes.push(order(state, proof.is_some()));
        Some(Self { heading, table, notes })
    }
}

/// The events of `state` in observed order.
fn observed(trace: &Trace, state: &GlobalState) -> Reordering {
    let entries = state.cut.entries().take(trace.names().threads.len());
    let held = |thread| trace.thread_events(thread).len() as u32;
    // A cut of another trace may have more events than this one.
    let base = entries.map(|(thread, &count)| count.min(held(thread))).collect();
    Reordering { base, schedule: Vec::new() }
}

/// The threads that have a column, and how many others have events.
fn columns(
    trace: &Trace,
    finding: &Finding,
    state: &GlobalState,
    observed: &Reordering,
) -> (Vec<ThreadId>, usize) {
    let names = &trace.names().threads;
    let thread_of = |&event: &EventId| trace.event(event).thread;
    let terms = state.values.iter().take(LISTED_MAX);
    let spoken_of = terms.flat_map(|(term, _)| spoken_of(trace, observed, term));
    let named = finding.events.iter().map(thread_of);
    let has_run =
        observed.base.entries().filter(|&(_, &count)| count > 0).map(|(thread, _)| thread);
    let all = names.entries().map(|(thread, _)| thread);
    let mut threads = BTreeSet::new();
    for thread in spoken_of.chain(named).chain(has_run).chain(all) {
        if threads.len() == COLUMNS_MAX {
            break;
        }
        if !trace.thread_events(thread).is_empty() {
            threads.insert(thread);
        }
    }
    let has_events = |&(thread, _): &(ThreadId, &str)| !trace.thread_events(thread).is_empty();
    let unshown_count = names.entries().filter(has_events).count() - threads.len();
    (threads.into_iter().collect(), unshown_count)
}

/// The threads whose names are words of `term`; if it is a variable, also the last that wrote it.
fn spoken_of<'t>(
    trace: &'t Trace,
    observed: &Reordering,
    term: &'t str,
) -> impl Iterator<Item = ThreadId> + use<'t> {
    let var = trace.names().vars.get(term.trim_matches('`'));
    let write = var.and_then(|var| trace.last_write(observed, var, None));
    let threads = trace.names().threads.entries();
    let named = threads.filter(move |(_, name)| has_word(term, name)).map(|(thread, _)| thread);
    named.chain(write.map(|write| trace.event(write).thread))
}

/// Whether `word` stands in `text` and is no part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    // `T1` must not match within `T11`.
    let stands_alone =
        |at: usize| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part);
    !word.is_empty() && text.match_indices(word).any(|(at, _)| stands_alone(at))
}

/// Which order of the events the state is of, and what that is worth.
fn order(state: &GlobalState, is_reached: bool) -> String {
    if events_count(state) == 0 {
        return "It is the state in which every run starts.".to_owned();
    }
    let sentence = match (state.order, is_reached) {
        (Relation::TraceOrderPreserving, true) => {
            "It is a state of the trace-order-preserving relation: every read sees the write that it saw, and the run above reaches it."
        }
        (Relation::TraceOrderPreserving, false) => {
            "It is a state of the trace-order-preserving relation, but the checker refused its events as a run."
        }
        (Relation::HappensBefore, true) => {
            "It is a state of happens-before, which follows locks, forks, joins and waits; the run above reaches it."
        }
        (Relation::HappensBefore, false) => {
            "It is a state of happens-before, which follows locks, forks, joins and waits and lets racing reads see other writes. The checker refused its events as a run, so the program may never get here."
        }
    };
    sentence.to_owned()
}

/// The predicate with what is said of it: `never(x > 1)`.
fn spelled(state: &GlobalState) -> String {
    let (predicate, modality) = (state.predicate.trim(), state.modality.as_str());
    let rest = predicate.strip_prefix(modality).map(str::trim_start);
    let is_spelled = rest.is_some_and(|rest| rest.starts_with('('));
    if is_spelled { predicate.to_owned() } else { format!("{modality}({predicate})") }
}

/// How many events of a run have happened.
fn events_count(state: &GlobalState) -> u64 {
    state.cut.iter().map(|&count| u64::from(count)).sum()
}

/// The predicate in a line, and after how much of a run it is met or broken.
pub fn line(state: &GlobalState) -> String {
    let verb = if state.modality.is_rule() { "broken" } else { "met" };
    let predicate = clipped(&spelled(state), PREDICATE_MAX);
    format!("{predicate} {verb} after {}", counted(events_count(state), "event"))
}

/// What a finding has several of.
pub fn instances(state: &GlobalState) -> &'static str {
    if state.modality.is_rule() { "states that break it" } else { "states that meet it" }
}

/// What the finding of `state` says, in paragraphs.
pub fn paragraphs(state: &GlobalState, is_reached: bool) -> Vec<String> {
    let asked = match state.modality {
        Modality::Possibly => {
            "asks whether any run of these events reaches a state that meets the predicate. The state below does"
        }
        Modality::Definitely => {
            "asks whether every run of these events that keeps their order passes a state that meets the predicate. Each does, and the state below is one"
        }
        Modality::Always => {
            "claims that every state of any run of these events meets the predicate. The state below does not"
        }
        Modality::Never => {
            "claims that no state of any run of these events meets the predicate. The state below does"
        }
    };
    let reached = if is_reached {
        "another run of the program, with the same input, can reach it"
    } else {
        "whether a run of the program can reach it is not known"
    };
    let predicate = match spelled(state) {
        // What it quotes itself would be taken for the end of the quotation.
        predicate if predicate.contains('`') => predicate,
        predicate => format!("`{predicate}`"),
    };
    let count = counted(events_count(state), "event");
    vec![
        format!("{predicate} {asked}; {reached}."),
        format!("It is a state after {count}, found by method {}.", state.method),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_spoken_of_where_its_name_is_a_word() {
        assert!(has_word("holds(T1, m)", "T1") && has_word("T1.x", "T1"));
        assert!(has_word("at(\"worker 1\", a)", "worker 1") && has_word("T11 T1", "T1"));
        assert!(!has_word("holds(T11, m)", "T1") && !has_word("T1_x", "T1"));
        assert!(!has_word("größe", "größ") && !has_word("x", ""));
    }

    #[test]
    fn a_modality_is_spelled_once() {
        let state = |modality, predicate: &str| GlobalState {
            predicate: predicate.to_owned(),
            modality,
            order: Relation::TraceOrderPreserving,
            method: "stable",
            cut: [2, 1].into_iter().collect(),
            values: Vec::new(),
        };
        assert_eq!(spelled(&state(Modality::Never, "x > 1")), "never(x > 1)");
        assert_eq!(spelled(&state(Modality::Never, " never (x > 1)")), "never (x > 1)");
        assert_eq!(spelled(&state(Modality::Never, "nevermore > 1")), "never(nevermore > 1)");
        assert_eq!(line(&state(Modality::Always, "x > 1")), "always(x > 1) broken after 3 events");
    }
}
