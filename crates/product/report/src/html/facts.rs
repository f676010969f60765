//! What is known of a recorded run: its command, when and on what it ran, how it ended.
//!
//! It is what JSON reports have of it, so a page says no more than they do, and nothing of what was not
//! recorded. The date is that of the recording: the same trace gives the same page.

use reweave_trace::{EndKind, RunEnd};
use serde::Serialize;
use serde_json::Value;

use crate::finding::quoted;

/// Something that is known of a run.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Fact {
    name: &'static str,
    value: String,
}

/// What is known of the run that JSON reports call `trace`, and which ended like `end`.
pub(super) fn facts(trace: &Value, end: Option<&RunEnd>) -> Vec<Fact> {
    let recorded = &trace["recorded"];
    let text = |name: &str| recorded[name].as_str().filter(|text| !text.is_empty());
    let words = |name: &str| {
        let words = recorded[name].as_array()?.iter().filter_map(Value::as_str).map(quoted);
        Some(words.collect::<Vec<_>>().join(" ")).filter(|words| !words.is_empty())
    };
    let seed = recorded["seed"].as_u64().map(|seed| format!("seed {seed}"));
    let how: Vec<String> = text("mode").map(str::to_owned).into_iter().chain(seed).collect();
    let environment = recorded["environment"].as_object().map(|environment| {
        let variables =
            environment.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
        variables.map(|(name, value)| format!("{name}={}", quoted(value))).collect::<Vec<_>>()
    });
    let facts = [
        ("command", words("command")),
        ("variables", environment.filter(|all| !all.is_empty()).map(|all| all.join(" "))),
        ("folder", text("folder").map(str::to_owned)),
        ("recorded", text("time").map(str::to_owned)),
        ("on", text("system").map(str::to_owned)),
        ("by", text("tool").map(str::to_owned)),
        ("threads", (!how.is_empty()).then(|| how.join(", "))),
        ("options", words("options")),
        ("ended", end.and_then(ended)),
    ];
    facts.into_iter().filter_map(|(name, value)| Some(Fact { name, value: value? })).collect()
}

/// How a run ended, in a few words; none if it is as runs should.
fn ended(end: &RunEnd) -> Option<String> {
    let how = match end.kind {
        EndKind::Exited => return None,
        EndKind::Stopped => "when it was stopped",
        EndKind::Deadlock => "in a deadlock",
        EndKind::SelfDeadlock => "with a thread that waited for itself",
        EndKind::AbandonedLock => "with a thread that waited for a lock whose holder had ended",
        EndKind::Hang => "with no thread that could go on",
        EndKind::Crash => "by a crash",
        EndKind::FailedAssertion => "by a failed assertion",
    };
    Some(match end.text.split_whitespace().collect::<Vec<_>>().join(" ") {
        text if text.is_empty() => how.to_owned(),
        text => format!("{how}: {text}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_says_of_a_run_what_is_known_and_nothing_else() {
        assert_eq!(facts(&json!({ "path": "run.rwt" }), None), []);
        let trace = json!({ "recorded": {
            "command": ["./server", "--port", "80 80"], "time": "2026-11-19T05:52:13Z",
            "system": "Linux 6.1 x86_64", "seed": 7, "mode": "serial", "folder": "", "options": [],
            "environment": { "LANG": "C" },
        } });
        let end = RunEnd {
            kind: EndKind::Crash,
            text: "Aborted\n".into(),
            threads: vec![],
            misuses: vec![],
        };
        let said = facts(&trace, Some(&end));
        let said: Vec<String> =
            said.iter().map(|it| format!("{}: {}", it.name, it.value)).collect();
        assert_eq!(
            said,
            [
                "command: ./server --port '80 80'",
                "variables: LANG=C",
                "recorded: 2026-11-19T05:52:13Z",
                "on: Linux 6.1 x86_64",
                "threads: serial, seed 7",
                "ended: by a crash: Aborted",
            ]
        );
    }
}
