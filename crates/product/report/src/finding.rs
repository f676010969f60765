//! What reports in several formats say of a finding: its schedule's heading and remarks, how many
//! instances it has, how bad it is, where it is first of all, and the commands that explain it and
//! replay it.

use reweave_analysis::{Detail, Finding, Guarantee, Kind, Proof, Reported, Settings};
use reweave_trace::{After, EventId, Goal, ObjectOp, Op, Trace};

use crate::places::counted_places;
use crate::rerun::confirm_line;
use crate::schedule::{observed, sees};
use crate::shown::is_hidden;
use crate::sources::Place;
use crate::{Examined, counted, state};

/// Up to so many reads that may see another write are reported one by one.
const FREE_READS_MAX: usize = 3;

/// The reads that a schedule lets see another write than they saw, and what their threads do then.
pub fn free_reads(trace: &Trace, proof: &Proof) -> (Vec<EventId>, After) {
    let (free, after) = proof.goal().free_reads();
    (free.iter().copied().filter(|&event| trace.event(event).op.is_read()).collect(), after)
}

/// The event of the schedule of `proof` that ends the life of what an event uses after that, if this is what it
/// shows.
pub fn end_of_life(trace: &Trace, proof: &Proof) -> Option<EventId> {
    let Goal::Order { chain, .. } = proof.goal() else { return None };
    let is_end = |event: &EventId| matches!(trace.event(*event).op, Op::Object(ObjectOp::Free, _));
    chain.first().copied().filter(is_end)
}

/// What a schedule assumes, a sentence each.
pub fn remarks(trace: &Trace, proof: &Proof) -> Vec<String> {
    let (free, after) = free_reads(trace, proof);
    let mut remarks: Vec<String> = match free.len() {
        0..=FREE_READS_MAX => {
            free.iter().map(|&read| free_read(trace, proof, read, after)).collect()
        }
        count => vec![format!(
            "{count} reads may see other writes than they did; the schedule assumes that their threads continue as observed."
        )],
    };
    let count = proof.unknown_reads_count() as u64;
    if count > 0 {
        let reads = counted(count, "read");
        remarks.push(format!("It depends on {reads} whose writer was not recorded."));
    }
    remarks
}

/// What `read` sees in a schedule that lets it see another write, and what its thread does then.
fn free_read(trace: &Trace, proof: &Proof, read: EventId, after: After) -> String {
    let number = read.number();
    let saw = observed(trace, read);
    let what = match sees(trace, proof.reordering(), read).zip(saw) {
        _ if end_of_life(trace, proof).is_some() => "reads freed memory".to_owned(),
        Some((now, saw)) if now != saw => format!("sees {now} instead of {saw}"),
        _ => "may see a different write".to_owned(),
    };
    let rest = match after {
        After::Stops => "its thread stops there",
        After::RunsOn => "the schedule assumes that its thread continues as observed",
    };
    format!("Event {number} {what}; {rest}.")
}

/// What introduces the run of what happened in it.
pub const AS_OBSERVED: &str = "As it was observed:";

/// What introduces `proof`, the schedule of `finding`.
pub fn heading(finding: &Finding, proof: &Proof) -> &'static str {
    match proof.goal() {
        _ if finding.guarantee() == Guarantee::Observed => AS_OBSERVED,
        Goal::Race(..) | Goal::Enabled(_) => "A schedule that leads to it:",
        Goal::Deadlock(_) => "A schedule that deadlocks:",
        Goal::Stuck(_) => "A schedule after which nobody goes on:",
        Goal::Order { .. } | Goal::Sees { .. } | Goal::Unordered(..) => {
            "A schedule that shows it (> marks the events at fault):"
        }
        Goal::Reaches(_) => "A run that reaches it:",
        Goal::Leaves { .. } => "A schedule of all events that shows it (> marks the last write):",
    }
}

/// How many instances a fault has, and at how many places; none if it is the only one.
pub fn instances_note(reported: &Reported) -> Option<String> {
    let finding = &reported.finding;
    let things = match (&finding.detail, finding.kind) {
        // What a read then sees may be yet another write.
        (Detail::Nondeterminism(_), _) => "pairs of a read here and an interfering write",
        (Detail::State(state), _) => state::instances(state),
        (Detail::None | Detail::MemoryOrders(_), Kind::Race) => "pairs at these locations",
        (Detail::None | Detail::MemoryOrders(_) | Detail::Misuse(_), _) => {
            "instances at these locations"
        }
    };
    let count = reported.count();
    let places = reported.places.len() as u64;
    if places == 0 {
        return (count > 1).then(|| format!("{count} {things}; one shown"));
    }
    let things = if finding.kind == Kind::Race { "pair" } else { "instance" };
    let instances =
        if count > 1 + places { counted(count, things) } else { "One fault".to_owned() };
    Some(format!("{instances} at {}; one shown", counted_places(finding.kind, 1 + places)))
}

/// How bad a finding is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It is a fault, and a schedule proves it.
    Error,
    /// A theorem says that it is a fault, or that there is another before it; or a proven one that
    /// is no reason to fail.
    Warning,
    /// An unconfirmed candidate; or a state that was asked for and may be a good one.
    Note,
}

impl Level {
    /// How bad `finding` is, one of those of `examined`.
    pub fn new(examined: &Examined<'_>, finding: &Finding) -> Self {
        let is_asked_for = finding.detail.state().is_some_and(|state| !state.modality.is_rule());
        match finding.guarantee() {
            certain if certain.is_certain() && is_asked_for => Self::Note,
            certain if certain.is_certain() && examined.fails_on.contains(&finding.kind) => {
                Self::Error
            }
            Guarantee::Observed | Guarantee::Witnessed | Guarantee::Decided => Self::Warning,
            Guarantee::First => Self::Warning,
            Guarantee::Unordered => Self::Note,
        }
    }
}

/// At most `count_max` of the events at fault, the one first that the finding is to be shown at: a
/// read that can see something else, or the first at a line of a file.
pub fn main_event_first(trace: &Trace, finding: &Finding, count_max: usize) -> Vec<EventId> {
    let mut events = finding.events.clone();
    let read = finding.detail.nondeterminism().and_then(|detail| detail.read);
    let is_in_file =
        |event: &EventId| Place::new(trace.names().location(trace.event(*event).site)).is_some();
    let main = match read {
        Some(read) => events.iter().position(|&event| event == read),
        None => events.iter().position(is_in_file),
    };
    if let Some(main) = main {
        // The others keep their order, which is that of the finding.
        events[..=main].rotate_right(1);
    }
    events.truncate(count_max);
    events
}

/// The code locations of `finding` that are known, each once in a row.
pub fn known_locations<'t>(trace: &'t Trace, finding: &Finding) -> Vec<&'t str> {
    let mut locations = finding.locations(trace);
    locations.retain(|location| !location.trim().is_empty());
    locations.dedup();
    locations
}

/// The analyses that run where nothing else is asked for.
const DEFAULT: [&str; 4] =
    ["races.exact", "deadlocks.exact", "deadlocks.stuck", "atomicity.blocks"];

/// How the names of those start that run by default where they have something to say.
const WHERE_NEEDED: [&str; 2] = ["endings.", "lifetimes."];

fn is_where_needed(name: &str) -> bool {
    WHERE_NEEDED.iter().any(|start| name.starts_with(start))
}

/// The analysis that is asked for by its predicates.
const ASKED: &str = "states.find";

/// What `explain` and `confirm` are given to find `reported` again.
fn again(examined: &Examined<'_>, reported: &Reported) -> String {
    let finding = &reported.finding;
    let state = finding.detail.state().filter(|_| finding.analysis == ASKED);
    // Asked for alone, the second of two predicates is the first.
    let name = match state {
        Some(_) => reported.fingerprint.to_string(),
        None => reported.id.clone(),
    };
    let mut words = vec![trace_word(examined), name];
    match state {
        Some(state) => {
            words.extend(["--predicate".to_owned(), quoted(&state.predicate)]);
            words.extend(["--order".to_owned(), state.order.as_str().to_owned()]);
        }
        None => words.extend(analyses(examined)),
    }
    words.extend(settings_words(examined));
    words.join(" ")
}

/// The name of the trace as an argument.
fn trace_word(examined: &Examined<'_>) -> String {
    // A name that starts with a dash would be taken for an option.
    let dash = if examined.path.starts_with('-') { "./" } else { "" };
    format!("{dash}{}", quoted(examined.path))
}

/// The options with which the search is the same.
fn settings_words(examined: &Examined<'_>) -> Vec<String> {
    let mut words = Vec::new();
    let Settings { all, limit, budget, time, window, .. } = examined.outcome.settings;
    let Settings { differing_values, final_reads, seqcst, .. } = examined.outcome.settings;
    let mut flag = |is_set: bool, word: &str| {
        if is_set {
            words.push(word.to_owned());
        }
    };
    flag(all, "--all");
    flag(differing_values, "--values");
    flag(final_reads, "--final-reads");
    flag(seqcst, "--seqcst");
    flag(!examined.trace.repairs().is_empty(), "--repair");
    words.extend(limit.map(|limit| format!("--limit {limit}")));
    words.extend(window.map(|window| format!("--window {window}")));
    words.extend(time.map(|time| format!("--budget {}", time.as_secs_f64())));
    let is_usual = budget == Settings::budget_for(time);
    words.extend((!is_usual).then(|| format!("--work {budget}")));
    words.extend(examined.sources.options().iter().cloned());
    words
}

/// The options that have the same analyses run.
fn analyses(examined: &Examined<'_>) -> Vec<String> {
    let ran: Vec<&str> = examined.outcome.coverage.iter().map(|it| it.analysis).collect();
    let with = |names: Vec<&str>| names.into_iter().map(|name| format!("--with {name}")).collect();
    // The default analyses run without being named; naming them would only lengthen the command.
    if ran.is_empty() || DEFAULT.iter().all(|name| ran.contains(name)) {
        let is_named = |name: &&str| !DEFAULT.contains(name) && !is_where_needed(name);
        return with(ran.into_iter().filter(is_named).collect());
    }
    // A family stands for the analyses of it that run by default.
    let family = ran[0].split('.').next().unwrap_or(ran[0]);
    let is_of_family = |name: &&str| name.split('.').next() == Some(family);
    let own: Vec<&str> = DEFAULT.into_iter().filter(is_of_family).collect();
    let (only, rest) = match ran.strip_prefix(&own[..]) {
        Some(rest) if own.len() > 1 => (family, rest),
        _ => (ran[0], &ran[1..]),
    };
    let mut options = vec![format!("--only {only}")];
    options.extend::<Vec<String>>(with(rest.to_vec()));
    options
}

/// The command that has determinism looked at besides; none if the trace cannot be read again.
pub fn more_command(examined: &Examined<'_>) -> Option<String> {
    let mut words = vec!["reweave check".to_owned(), trace_word(examined)];
    words.extend(analyses(examined));
    words.push("--with determinism".to_owned());
    words.extend(settings_words(examined));
    examined.is_kept.then(|| words.join(" "))
}

/// The command that explains `reported`; none if its trace cannot be read again.
pub fn explain_command(examined: &Examined<'_>, reported: &Reported) -> Option<String> {
    examined.is_kept.then(|| format!("reweave explain {}", again(examined, reported)))
}

/// The command that replays `reported`; none if the trace is of no real program, or nothing proves it.
pub fn confirm_command(examined: &Examined<'_>, reported: &Reported) -> Option<String> {
    let is_recorded = examined.is_kept && examined.trace.origins().is_some();
    let is_proven = reported.finding.guarantee() == Guarantee::Witnessed;
    let is_open = examined.replayed(&reported.id).is_none();
    let line = || confirm_line(examined, &again(examined, reported));
    (is_recorded && is_proven && is_open).then(line)
}

/// `word` as a shell takes it for one word.
///
/// ```
/// assert_eq!(reweave_report::quoted("run.rwt"), "run.rwt");
/// assert_eq!(reweave_report::quoted("my run.rwt"), "'my run.rwt'");
/// ```
#[must_use]
pub fn quoted(word: &str) -> String {
    if word.chars().any(is_hidden) {
        return escaped(word);
    }
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// `word`, which has characters that nobody sees or that move the cursor, with escapes for them, as bash
/// and zsh take them.
fn escaped(word: &str) -> String {
    let mut out = String::from("$'");
    for letter in word.chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\'' | '\\' => out.extend(['\\', letter]),
            hidden if is_hidden(hidden) => out += &format!("\\U{:08x}", u32::from(hidden)),
            plain => out.push(plain),
        }
    }
    out + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_that_of_the_catalog() {
        let selected = reweave_catalog::select("", &[]).unwrap();
        let mut names: Vec<&str> = selected.iter().map(|it| it.info().name).collect();
        names.retain(|name| !is_where_needed(name));
        let mut default = DEFAULT;
        names.sort_unstable();
        default.sort_unstable();
        assert_eq!(names, default);
    }

    #[test]
    fn a_word_stays_a_word() {
        assert_eq!(quoted("a/b.rwt"), "a/b.rwt");
        assert_eq!(quoted("my run.rwt"), "'my run.rwt'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's\n\u{1b}[0m"), r"$'it\'s\n\U0000001b[0m'");
    }
}
