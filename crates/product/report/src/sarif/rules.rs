//! What code scanners show of each kind of fault.

use reweave_analysis::Kind;
use serde_json::{Value, json};

use super::text;

/// The rules, in the order of [`Kind::ALL`].
pub fn all() -> Vec<Value> {
    Kind::ALL.iter().map(|&kind| entry(kind)).collect()
}

/// Which of [`all`] is that of `kind`.
pub fn index(kind: Kind) -> usize {
    Kind::ALL.iter().position(|&other| other == kind).unwrap_or(0)
}

fn entry(kind: Kind) -> Value {
    let info = kind.info();
    let weaknesses = info.weaknesses.iter().map(|number| format!("external/cwe/cwe-{number}"));
    let tags = ["concurrency", "correctness"].map(str::to_owned).into_iter().chain(weaknesses);
    json!({
        "id": info.name,
        "name": info.rule,
        "shortDescription": text(info.summary),
        "fullDescription": text(info.description),
        "help": { "text": info.fix, "markdown": info.fix },
        "defaultConfiguration": { "level": "error" },
        "properties": { "tags": tags.collect::<Vec<_>>(), "precision": "high" },
    })
}
