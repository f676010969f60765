//! What a report leaves out, and why: in sentences for people, and as a number for programs.

use reweave_analysis::{Coverage, Outcome};

use crate::counted;

/// Counters that say why something was left out; sentences tell of them.
const REASONS: [&str; 4] = ["untried", "unlisted", "loose", "location_pairs_exact"];

/// How many groups were not tried.
pub(crate) fn untried(outcome: &Outcome) -> u64 {
    total(outcome, "untried")
}

fn total(outcome: &Outcome, counter: &str) -> u64 {
    outcome.coverage.iter().filter_map(|coverage| coverage.counter(counter)).sum()
}

/// What was left out of the report on `outcome`, a sentence for each reason.
pub(crate) fn left_out(outcome: &Outcome) -> Vec<String> {
    if outcome.unshown == 0 {
        return Vec::new();
    }
    let (untried, unlisted, loose) =
        (untried(outcome), total(outcome, "unlisted"), total(outcome, "loose"));
    let refused = outcome.unshown.saturating_sub(untried + loose);
    let pairs = |count: u64| counted(count, "location pair");
    let verb = |count: u64, one: &'static str, many: &'static str| {
        if count == 1 { one } else { many }
    };
    let out_of_budget = untried.saturating_sub(unlisted);
    let reasons = [
        (
            refused,
            format!(
                "{} more {} unordered, and no schedule that was tried proves {}",
                pairs(refused),
                verb(refused, "is", "are"),
                verb(refused, "it", "them")
            ),
        ),
        (
            loose,
            format!(
                "{} more {} on reads whose writer was not observed",
                pairs(loose),
                verb(loose, "rests", "rest")
            ),
        ),
        (
            out_of_budget,
            format!(
                "{} {} not tried: the work budget was used up; --budget raises it",
                pairs(out_of_budget),
                verb(out_of_budget, "was", "were")
            ),
        ),
        (
            unlisted,
            format!(
                "{} {} only counted: there are too many to try each",
                pairs(unlisted),
                verb(unlisted, "was", "were")
            ),
        ),
    ];
    let mut told: Vec<String> =
        reasons.into_iter().filter(|&(count, _)| count > 0).map(|(_, told)| told).collect();
    let them = verb(outcome.unshown, "it", "them");
    if let [only] = told.as_mut_slice() {
        *only += &format!("; --all lists {them}");
    } else {
        told.push(format!("{} in all are not shown; --all lists {them}", pairs(outcome.unshown)));
    }
    told
}

/// What an analysis counted, in a line: `races.hb: pairs 2, second events 2`.
pub(crate) fn counters(coverage: &Coverage) -> String {
    let counters = coverage.counters.iter().filter(|(name, _)| !REASONS.contains(name));
    let counter = |&(name, count): &(&str, u64)| {
        let is_bound = coverage.counter(&format!("{name}_exact")) == Some(0);
        let bound = if is_bound { "at least " } else { "" };
        format!("{} {bound}{count}", name.replace('_', " "))
    };
    let counters: Vec<String> = counters.map(counter).collect();
    let separator = if counters.is_empty() { "" } else { ": " };
    format!("{}{separator}{}", coverage.analysis, counters.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_tried_is_not_said_to_have_failed() {
        let counters = vec![
            ("location_pairs", 20),
            ("location_pairs_exact", 0),
            ("untried", 9),
            ("unlisted", 5),
            ("loose", 1),
        ];
        let coverage = Coverage { analysis: "races.hb", truncated: None, counters };
        assert_eq!(super::counters(&coverage), "races.hb: location pairs at least 20");
        let outcome = Outcome { coverage: vec![coverage], unshown: 12, findings: Vec::new() };
        assert_eq!(
            left_out(&outcome),
            [
                "2 location pairs more are unordered, and no schedule that was tried proves them",
                "1 location pair more rests on reads whose writer was not observed",
                "4 location pairs were not tried: the work budget was used up; --budget raises it",
                "5 location pairs were only counted: there are too many to try each",
                "12 location pairs in all are not shown; --all lists them",
            ]
        );
        let outcome = Outcome { unshown: 1, ..Outcome::default() };
        let told = "1 location pair more is unordered, and no schedule that was tried proves it; \
                    --all lists it";
        assert_eq!(left_out(&outcome), [told]);
    }
}
