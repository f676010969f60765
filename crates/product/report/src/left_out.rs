//! What a report leaves out, and why: in sentences for people, and as a number for programs.

use reweave_analysis::{Counter, Coverage, Outcome, Truncation, Unshown};

use crate::counted;

/// Counters that say why something was left out; sentences tell of them.
const REASONS: [Counter; 9] = [
    Counter::Untried,
    Counter::Unlisted,
    Counter::UnlistedWitnesses,
    Counter::UnknownWriter,
    Counter::Undecided,
    Counter::Unknown,
    Counter::Declined,
    Counter::SameValue,
    Counter::MissingValues,
];

/// How many groups were not tried.
pub(crate) fn untried(outcome: &Outcome) -> u64 {
    outcome.coverage.iter().filter_map(|coverage| coverage.counter(Counter::Untried)).sum()
}

/// Each analysis with what is to be said of what it left out.
pub(crate) fn accounts(outcome: &Outcome) -> impl Iterator<Item = (&Coverage, Vec<String>)> {
    outcome.coverage.iter().enumerate().map(|(at, coverage)| {
        let unshown = outcome.unshown.get(at).copied().unwrap_or_default();
        (coverage, left_out(coverage, unshown))
    })
}

/// What `coverage` says was left out, and what is not shown, a sentence for each reason.
fn left_out(coverage: &Coverage, unshown: Unshown) -> Vec<String> {
    let counter = |counter: Counter| coverage.counter(counter).unwrap_or(0);
    let thing = thing(coverage.analysis);
    let Unshown { unknown_writer, unproven, unlisted } = unshown;
    let untried = counter(Counter::Untried).saturating_sub(unlisted);
    let undecided = counter(Counter::Undecided) + counter(Counter::Unknown);
    // What is not decided of nondeterminism are witnesses, of which no finding was made; nor is one
    // of a predicate that is not decided.
    let (undecided_findings, undecided_thing) = match (family(coverage.analysis), unproven) {
        ("determinism" | "states", _) | (_, 0) => (0, candidate(coverage.analysis)),
        _ => (undecided, thing),
    };
    let unproven = unproven.saturating_sub(untried + undecided_findings);
    let reasons = [
        (unproven, thing, unproven_sentence(coverage.analysis)),
        (unknown_writer, thing, UNKNOWN_WRITER),
        (undecided, undecided_thing, undecided_sentence(coverage)),
        (counter(Counter::Declined), "witness", DECLINED),
        (untried, thing, untried_sentence(coverage)),
        (unlisted, thing, UNLISTED),
        (counter(Counter::UnlistedWitnesses), "witness", UNLISTED_WITNESSES),
        (counter(Counter::SameValue), "write", SAME_VALUE),
        (counter(Counter::MissingValues), "predicate", UNTOLD),
    ];
    let told = reasons.into_iter().filter(|&(count, ..)| count > 0);
    told.map(|(count, thing, rest)| format!("{} {}", counted(count, thing), rest.of(count)))
        .collect()
}

/// The rest of a sentence, as it goes on after one thing and after many.
struct Number {
    one: &'static str,
    many: &'static str,
}

impl Number {
    const fn of(&self, count: u64) -> &'static str {
        if count == 1 { self.one } else { self.many }
    }
}

const UNKNOWN_WRITER: Number = Number {
    one: "rests on reads whose writer was not observed; --all lists it",
    many: "rest on reads whose writer was not observed; --all lists them",
};

const DECLINED: Number = Number {
    one: "was not decided: the trace has too many threads and events for that",
    many: "were not decided: the trace has too many threads and events for that",
};

const UNLISTED: Number = Number {
    one: "was only counted: there are too many to try each",
    many: "were only counted: there are too many to try each",
};

const UNLISTED_WITNESSES: Number = Number {
    one: "is not in the list, which was cut short",
    many: "are not in the list, which was cut short",
};

const SAME_VALUE: Number = Number {
    one: "would give a read the value that it saw, and was let go, as --values asks",
    many: "would give reads the values that they saw, and were let go, as --values asks",
};

const UNTOLD: Number = Number {
    one: "speaks of values that the trace does not tell at every state: states where they are not \
          known were taken neither to meet nor to break it",
    many: "speak of values that the trace does not tell at every state: states where they are not \
           known were taken neither to meet nor to break them",
};

/// What is said of what was not decided.
fn undecided_sentence(coverage: &Coverage) -> Number {
    match coverage.truncated {
        Some(Truncation::Cancelled) => Number {
            one: "was not decided: the search was interrupted",
            many: "were not decided: the search was interrupted",
        },
        _ if family(coverage.analysis) == "states" => Number {
            one: "was not decided: there are too many states to go through all of them; a larger \
                  --budget may help",
            many: "were not decided: there are too many states to go through all of them; a larger \
                   --budget may help",
        },
        _ => Number {
            one: "was not decided: the search for a schedule was given up; a larger --budget may help",
            many: "were not decided: the search for a schedule was given up; a larger --budget may \
                   help",
        },
    }
}

/// What is said of what no schedule was looked for.
fn untried_sentence(coverage: &Coverage) -> Number {
    match coverage.truncated {
        Some(Truncation::Cancelled) => Number {
            one: "was not tried: the search was interrupted",
            many: "were not tried: the search was interrupted",
        },
        _ => Number {
            one: "was not tried: the work budget was used up; --budget raises it",
            many: "were not tried: the work budget was used up; --budget raises it",
        },
    }
}

/// What is said of findings of `analysis` that nothing proves.
fn unproven_sentence(analysis: &str) -> Number {
    match family(analysis) {
        "determinism" => Number {
            one: "can see another write as far as the order of events goes, but no correct \
                  reordering shows it; --all lists it",
            many: "can see another write as far as the order of events goes, but no correct \
                   reordering shows it; --all lists them",
        },
        "states" => Number {
            one: "has a state that happens-before allows, but no run is known that reaches it; --all \
                  lists it",
            many: "have states that happens-before allows, but no runs are known that reach them; \
                   --all lists them",
        },
        _ => Number {
            one: "is unordered, but no correct reordering shows an instance of it that was tried; \
                  --all lists it",
            many: "are unordered, but no correct reordering shows an instance of them that was \
                   tried; --all lists them",
        },
    }
}

/// What findings of `analysis` are grouped by.
fn thing(analysis: &str) -> &'static str {
    match family(analysis) {
        "races" => "location pair",
        "deadlocks" => "deadlock",
        "determinism" => "read",
        "states" => "predicate",
        _ => "place",
    }
}

/// What `analysis` tries to make findings of.
fn candidate(analysis: &str) -> &'static str {
    match family(analysis) {
        "races" => "pair",
        "determinism" => "witness",
        "states" => "predicate",
        _ => "candidate",
    }
}

fn family(analysis: &str) -> &str {
    analysis.split('.').next().unwrap_or(analysis)
}

/// What an analysis counted, in a line: `races.hb: pairs 2, second events 2`. Its first counter is
/// there in any case, the others where they are not 0.
pub(crate) fn counters(coverage: &Coverage) -> String {
    let is_told = |at: usize, counter: Counter, count: u64| {
        !REASONS.contains(&counter) && !counter.is_exactness() && (at == 0 || count > 0)
    };
    let counters = coverage.counters.iter().enumerate();
    let counters = counters.filter(|&(at, &(counter, count))| is_told(at, counter, count));
    let counter = |(_, &(counter, count)): (usize, &(Counter, u64))| {
        let is_bound = counter.exactness().is_some_and(|it| coverage.counter(it) == Some(0));
        let bound = if is_bound { "at least " } else { "" };
        format!("{} {bound}{count}", counter.as_str().replace('_', " "))
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
        assert_eq!(counters(&coverage), "races.hb: pairs 30, location pairs at least 20");
        let unshown = Unshown { unknown_writer: 1, unproven: 9, unlisted: 5 };
        assert_eq!(
            left_out(&coverage, unshown),
            [
                "2 location pairs are unordered, but no correct reordering shows an instance of \
                 them that was tried; --all lists them",
                "1 location pair rests on reads whose writer was not observed; --all lists it",
                "3 location pairs were not decided: the search for a schedule was given up; a \
                 larger --budget may help",
                "4 location pairs were not tried: the work budget was used up; --budget raises it",
                "5 location pairs were only counted: there are too many to try each",
            ]
        );
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
        let given_up = "was not decided: the search for a schedule was given up; a larger \
                        --budget may help";
        assert_eq!(left_out(&exact, Unshown::default()), [format!("1 pair {given_up}")]);
        let deadlocks =
            coverage("deadlocks.exact", &[(Counter::Deadlocks, 0), (Counter::Unknown, 1)]);
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
                "3 reads can see another write as far as the order of events goes, but no correct \
                 reordering shows it; --all lists them",
                "30 witnesses were not decided: the search for a schedule was given up; a larger \
                 --budget may help",
                "2 witnesses are not in the list, which was cut short",
                "1 write would give a read the value that it saw, and was let go, as --values asks",
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
                "1 predicate has a state that happens-before allows, but no run is known that \
                 reaches it; --all lists it",
                "1 predicate was not decided: there are too many states to go through all of them; \
                 a larger --budget may help",
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
                "30 witnesses were not decided: the search was interrupted",
                "2 witnesses were not decided: the trace has too many threads and events for that",
                "1 read was not tried: the search was interrupted",
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
