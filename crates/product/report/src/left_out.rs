//! What a report leaves out, and why: in sentences for people, and as a number for programs.

use reweave_analysis::{Counter, Coverage, Outcome, Truncation, Unshown};
use reweave_trace::{ASSUMED_DESCRIPTORS, ASSUMED_UNSEEN};

use crate::counted;

/// Counters that say why something was left out; they are reported in sentences.
const REASONS: [Counter; 11] = [
    Counter::Untried,
    Counter::Unlisted,
    Counter::UnlistedWitnesses,
    Counter::UnknownWriter,
    Counter::Undecided,
    Counter::Capped,
    Counter::Refused,
    Counter::Declined,
    Counter::Assumed,
    Counter::SameValue,
    Counter::MissingValues,
];

/// How many groups were not tried.
pub fn untried(outcome: &Outcome) -> u64 {
    outcome.coverage.iter().filter_map(|coverage| coverage.counter(Counter::Untried)).sum()
}

/// The analysis that tries all reorderings for each cycle in the order of locks.
const ALL_REORDERINGS: &str = "deadlocks.exact";

/// What it means that there are cycles in the order of locks and fewer deadlocks or none, where all were decided.
pub fn refuted_cycles(coverage: &Coverage) -> Option<String> {
    let counter = |counter: Counter| coverage.counter(counter).unwrap_or(0);
    let open = [Counter::Undecided, Counter::Partial, Counter::Refused, Counter::Assumed];
    let is_decided = coverage.truncated.is_none() && open.iter().all(|&it| counter(it) == 0);
    if coverage.analysis != ALL_REORDERINGS || !is_decided {
        return None;
    }
    // Each cycle that can deadlock has one deadlock or more.
    let deadlocks = counter(Counter::Deadlocks);
    let count = counter(Counter::Patterns).checked_sub(deadlocks).filter(|&count| count > 0)?;
    let others = if deadlocks > 0 { "other " } else { "" };
    let bound = if deadlocks > 1 { "at least " } else { "" };
    let cycles = counted(count, &format!("{others}cycle"));
    Some(format!(
        "{bound}{cycles} in the order of locks cannot deadlock as long as every read sees the value that it saw; \
         another run may show more"
    ))
}

/// Each analysis with what it left out.
pub fn accounts(outcome: &Outcome) -> impl Iterator<Item = (&Coverage, Vec<String>)> {
    outcome.coverage.iter().enumerate().map(|(at, coverage)| {
        let unshown = outcome.unshown.get(at).copied().unwrap_or_default();
        let mut sentences = left_out(coverage, unshown);
        sentences.extend(assumed(coverage, &outcome.assumed));
        if outcome.settings.seqcst && family(coverage.analysis) == "races" {
            sentences.push("all atomics were treated as sequentially consistent".to_owned());
        }
        (coverage, sentences)
    })
}

/// What ordering that `libraries`, or the numbers of descriptors, are assumed to have made keeps
/// undecided.
fn assumed(coverage: &Coverage, libraries: &[String]) -> Option<String> {
    let count = coverage.counter(Counter::Assumed).filter(|&count| count > 0)?;
    let name = |library: &String| match library.as_str() {
        ASSUMED_DESCRIPTORS => "numbers of file descriptors".to_owned(),
        ASSUMED_UNSEEN => "code that was not recorded".to_owned(),
        name => name.to_owned(),
    };
    let libraries = libraries.iter().map(name).collect::<Vec<_>>().join(", ");
    let undecided = match family(coverage.analysis) {
        "deadlocks" => counted(count, "deadlock"),
        _ => format!("{} of locations", counted(count, "pair")),
    };
    Some(format!("ordering through {libraries} was assumed: {undecided} not decided"))
}

/// What `coverage` says was left out, and what is not shown, a line for each reason: how many of
/// which thing, and why. The reasons are worded so that they follow one thing and many alike.
fn left_out(coverage: &Coverage, unshown: Unshown) -> Vec<String> {
    let counter = |counter: Counter| coverage.counter(counter).unwrap_or(0);
    let family = family(coverage.analysis);
    // What findings are grouped by, and what an analysis tries to make findings of.
    let (thing, candidate) = match family {
        "races" => ("location pair", "pair"),
        "deadlocks" => ("deadlock", "candidate"),
        "determinism" => ("read", "witness"),
        "states" => ("predicate", "predicate"),
        _ => ("place", "candidate"),
    };
    let Unshown { unknown_writer, unproven, unlisted } = unshown;
    // What was only counted was not tried either; it has a line of its own.
    let untried = counter(Counter::Untried).saturating_sub(unlisted);
    let [undecided, capped, refused] =
        [Counter::Undecided, Counter::Capped, Counter::Refused].map(counter);
    // What is not decided of nondeterminism are witnesses, of which no finding was made; nor is one
    // of a predicate that is not decided.
    let (undecided_findings, undecided_thing) = match (family, unproven) {
        ("determinism" | "states", _) | (_, 0) => (0, candidate),
        _ => (undecided, thing),
    };
    // Each group is accounted for once: what was not tried or not decided is not called unproven
    // too.
    let unproven = unproven.saturating_sub(untried + undecided_findings + capped + refused);
    let unproven_why = match family {
        "determinism" => "with another write possible by order, but unproven (see --all)",
        "states" => "with a state that happens-before allows, but no known run reaches (see --all)",
        _ => "unordered, but without a correct reordering for any instance tried (see --all)",
    };
    let [undecided_why, untried_why] = unfinished(coverage);
    let reasons = [
        (unproven, thing, unproven_why),
        (unknown_writer, thing, "depending on reads whose writer was not recorded (see --all)"),
        (undecided, undecided_thing, undecided_why),
        (counter(Counter::Declined), "witness", "undecided: too many threads and events for that"),
        (capped, thing, "with more instances than were tried, none of which can happen"),
        (refused, "schedule", "refused by the checker: a fault of reweave, please report it"),
        (untried, thing, untried_why),
        (unlisted, thing, UNLISTED),
        (
            counter(Counter::UnlistedWitnesses),
            "witness",
            "missing from the list, which was cut short",
        ),
        (
            counter(Counter::SameValue),
            "write",
            "ignored: the read would see the same value (--values)",
        ),
        (
            counter(Counter::MissingValues),
            "predicate",
            "undefined in some states for lack of values, which count as neither met nor broken",
        ),
    ];
    let reasons = reasons.into_iter().filter(|&(count, ..)| count > 0);
    let sentence = |(count, thing, why): (u64, &str, &str)| {
        let is_bound = why == UNLISTED && coverage.counter(Counter::UnlistedExact) == Some(0);
        let bound = if is_bound { "at least " } else { "" };
        format!("{bound}{} {why}", counted(count, thing))
    };
    reasons.map(sentence).collect()
}

/// Why something is not decided, and why something was not tried.
fn unfinished(coverage: &Coverage) -> [&'static str; 2] {
    let untried = match coverage.truncated {
        Some(Truncation::Cancelled) => {
            return [
                "undecided: the search was interrupted",
                "not tried: the search was interrupted",
            ];
        }
        Some(Truncation::Time) => {
            return [
                "undecided: the time was up; try a larger --budget",
                "not tried: the time was up; try a larger --budget",
            ];
        }
        Some(Truncation::Capped) => "not tried: too many to try each",
        _ => "not tried: the work budget ran out; raise it with --budget",
    };
    let undecided = match family(coverage.analysis) {
        "states" => "undecided: too many states to go through; try a larger --budget",
        _ => "undecided: the search for a schedule gave up; try a larger --budget",
    };
    [undecided, untried]
}

const UNLISTED: &str = "counted only: too many to try each";

fn family(analysis: &str) -> &str {
    analysis.split('.').next().unwrap_or(analysis)
}

/// What an analysis counted, in a line: `races.hb: unordered pairs 2, second events 2`. Its first
/// counter is there in any case, the others where they are not 0.
pub fn counters(coverage: &Coverage) -> String {
    let is_shown = |at: usize, counter: Counter, count: u64| {
        !REASONS.contains(&counter) && !counter.is_exactness() && (at == 0 || count > 0)
    };
    let counters = coverage.counters.iter().enumerate();
    let counters = counters.filter(|&(at, &(counter, count))| is_shown(at, counter, count));
    let counter = |(_, &(counter, count)): (usize, &(Counter, u64))| {
        let is_bound = counter.exactness().is_some_and(|it| coverage.counter(it) == Some(0));
        let bound = if is_bound { "at least " } else { "" };
        // Beside the races that were proven, what a relation leaves unordered is no race yet.
        let word = match (counter, coverage.analysis) {
            (Counter::Pairs, "races.hb" | "races.shb" | "races.cp" | "races.wcp") => {
                "unordered pairs".to_owned()
            }
            _ => counter.as_str().replace('_', " "),
        };
        format!("{word} {bound}{count}")
    };
    let counters: Vec<String> = counters.map(counter).collect();
    let separator = if counters.is_empty() { "" } else { ": " };
    format!("{}{separator}{}", coverage.analysis, counters.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(analysis: &'static str, counters: &[(Counter, u64)]) -> Coverage {
        Coverage { analysis, truncated: None, counters: counters.to_vec() }
    }

    #[test]
    fn what_was_not_tried_or_not_decided_is_not_said_to_be_refuted() {
        let coverage = coverage(
            "races.hb",
            &[
                (Counter::Pairs, 30),
                (Counter::LocationPairs, 20),
                (Counter::LocationPairsExact, 0),
                (Counter::Untried, 9),
                (Counter::Unlisted, 5),
                (Counter::UnknownWriter, 1),
                (Counter::Undecided, 3),
            ],
        );
        assert_eq!(counters(&coverage), "races.hb: unordered pairs 30, location pairs at least 20");
        let unshown = Unshown { unknown_writer: 1, unproven: 9, unlisted: 5 };
        assert_eq!(
            left_out(&coverage, unshown),
            [
                "2 location pairs unordered, but without a correct reordering for any instance tried \
                 (see --all)",
                "1 location pair depending on reads whose writer was not recorded (see --all)",
                "3 location pairs undecided: the search for a schedule gave up; try a larger --budget",
                "4 location pairs not tried: the work budget ran out; raise it with --budget",
                "5 location pairs counted only: too many to try each",
            ]
        );
    }

    #[test]
    fn cycles_of_locks_that_cannot_deadlock_are_spoken_of_where_all_were_decided() {
        let said = |analysis, [deadlocks, patterns, undecided]: [u64; 3]| {
            let counted = [
                (Counter::Deadlocks, deadlocks),
                (Counter::Patterns, patterns),
                (Counter::Undecided, undecided),
            ];
            refuted_cycles(&coverage(analysis, &counted))
        };
        let end = "in the order of locks cannot deadlock as long as every read sees the value that it saw; \
                   another run may show more";
        let exact = |counts| said("deadlocks.exact", counts);
        assert_eq!(exact([0, 18, 0]), Some(format!("18 cycles {end}")));
        assert_eq!(exact([0, 1, 0]), Some(format!("1 cycle {end}")));
        assert_eq!(exact([1, 3, 0]), Some(format!("2 other cycles {end}")));
        assert_eq!(exact([2, 3, 0]), Some(format!("at least 1 other cycle {end}")));
        for nothing in [[0, 0, 0], [3, 3, 0], [5, 3, 0], [0, 18, 1]] {
            assert_eq!(exact(nothing), None);
        }
        assert_eq!(said("deadlocks.syncp", [0, 18, 0]), None);
    }

    #[test]
    fn what_was_counted_up_to_a_limit_is_a_lower_bound() {
        let counted = [(Counter::Pairs, 9), (Counter::Unlisted, 5), (Counter::UnlistedExact, 0)];
        let coverage = coverage("races.exact", &counted);
        let unshown = Unshown { unlisted: 5, ..Unshown::default() };
        let sentences = ["at least 5 location pairs counted only: too many to try each"];
        assert_eq!(left_out(&coverage, unshown), sentences);
        assert_eq!(counters(&coverage), "races.exact: pairs 9");
    }

    #[test]
    fn what_is_counted_along_with_pairs_is_as_exact_as_they_are() {
        let counted = [
            (Counter::Pairs, 9),
            (Counter::SecondEvents, 3),
            (Counter::LocationPairs, 2),
            (Counter::PairsExact, 0),
        ];
        let line = "races.exact: pairs at least 9, second events at least 3, location pairs 2";
        assert_eq!(counters(&coverage("races.exact", &counted)), line);
    }

    #[test]
    fn what_never_came_as_a_finding_is_called_what_it_was() {
        let exact = coverage("races.exact", &[(Counter::Pairs, 0), (Counter::Undecided, 1)]);
        let given_up = "undecided: the search for a schedule gave up; try a larger --budget";
        assert_eq!(left_out(&exact, Unshown::default()), [format!("1 pair {given_up}")]);
        let deadlocks =
            coverage("deadlocks.exact", &[(Counter::Deadlocks, 0), (Counter::Undecided, 1)]);
        assert_eq!(left_out(&deadlocks, Unshown::default()), [format!("1 candidate {given_up}")]);
        assert_eq!(counters(&deadlocks), "deadlocks.exact: deadlocks 0");
    }

    #[test]
    fn what_was_left_out_of_nondeterminism_is_called_what_it_is() {
        let order = coverage(
            "determinism.order",
            &[
                (Counter::Witnesses, 90),
                (Counter::Undecided, 30),
                (Counter::UnlistedWitnesses, 2),
                (Counter::SameValue, 1),
            ],
        );
        assert_eq!(counters(&order), "determinism.order: witnesses 90");
        // How many witnesses are not decided says nothing about the reads that nothing proves.
        let unshown = Unshown { unknown_writer: 0, unproven: 3, unlisted: 0 };
        assert_eq!(
            left_out(&order, unshown),
            [
                "3 reads with another write possible by order, but unproven (see --all)",
                "30 witnesses undecided: the search for a schedule gave up; try a larger --budget",
                "2 witnesses missing from the list, which was cut short",
                "1 write ignored: the read would see the same value (--values)",
            ]
        );
    }

    #[test]
    fn what_was_left_out_of_states_are_predicates() {
        let counted = [
            (Counter::States, 1_000),
            (Counter::Predicates, 4),
            (Counter::Met, 2),
            (Counter::Undecided, 1),
        ];
        let find = coverage("states.find", &counted);
        assert_eq!(counters(&find), "states.find: states 1000, predicates 4, met 2");
        // A predicate that is not decided is none of those that no run is known for.
        let unshown = Unshown { unknown_writer: 0, unproven: 1, unlisted: 0 };
        assert_eq!(
            left_out(&find, unshown),
            [
                "1 predicate with a state that happens-before allows, but no known run reaches (see \
                 --all)",
                "1 predicate undecided: too many states to go through; try a larger --budget",
            ]
        );
    }

    #[test]
    fn an_interrupt_is_not_blamed_on_the_budget_nor_is_a_size_that_is_declined() {
        let counted = [
            (Counter::Witnesses, 90),
            (Counter::Undecided, 30),
            (Counter::Declined, 2),
            (Counter::Untried, 1),
        ];
        let stopped = Coverage {
            truncated: Some(Truncation::Cancelled),
            ..coverage("determinism.order", &counted)
        };
        assert_eq!(
            left_out(&stopped, Unshown::default()),
            [
                "30 witnesses undecided: the search was interrupted",
                "2 witnesses undecided: too many threads and events for that",
                "1 read not tried: the search was interrupted",
            ]
        );
    }

    #[test]
    fn an_analysis_that_left_nothing_out_has_nothing_to_account_for() {
        let clean = coverage("atomicity.blocks", &[(Counter::Blocks, 0), (Counter::Violations, 0)]);
        assert_eq!(left_out(&clean, Unshown::default()), [""; 0]);
        assert_eq!(counters(&clean), "atomicity.blocks: blocks 0");
        let outcome = Outcome { coverage: vec![clean], ..Outcome::default() };
        assert_eq!(accounts(&outcome).count(), 1);
    }
}
