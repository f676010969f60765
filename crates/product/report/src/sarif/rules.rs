//! What code scanners are told of each kind of fault.

use reweave_analysis::Kind;

use super::model::{Configuration, Help, RuleEntry, RuleProperties, Text};

/// The rules, in the order of [`Kind::ALL`].
pub(super) fn all() -> Vec<RuleEntry> {
    Kind::ALL.iter().map(|&kind| entry(kind)).collect()
}

/// Which of [`all`] is that of `kind`.
pub(super) fn index(kind: Kind) -> usize {
    Kind::ALL.iter().position(|&other| other == kind).unwrap_or(0)
}

fn entry(kind: Kind) -> RuleEntry {
    let info = kind.info();
    let weaknesses = info.weaknesses.iter().map(|number| format!("external/cwe/cwe-{number}"));
    let tags = ["concurrency", "correctness"].map(str::to_owned).into_iter().chain(weaknesses);
    RuleEntry {
        id: info.name,
        name: info.rule,
        short_description: Text::new(info.summary),
        full_description: Text::new(info.description),
        help: Help { text: info.fix, markdown: info.fix },
        default_configuration: Configuration { level: "error" },
        properties: RuleProperties { tags: tags.collect(), precision: "high" },
    }
}
