//! What code scanners show of each kind of fault.

use reweave_analysis::Kind;
use serde_json::{Value, json};

use super::text;

/// What is said of a kind of fault.
struct Rule {
    name: &'static str,
    short: &'static str,
    full: &'static str,
    /// What to do about it, in Markdown that reads well as plain text too.
    help: &'static str,
    /// The weaknesses that it is an instance of, by their numbers in the common enumeration.
    weaknesses: &'static [&'static str],
}

/// The rules, in the order of [`Kind::ALL`].
pub fn all() -> Vec<Value> {
    Kind::ALL.iter().map(|&kind| entry(kind)).collect()
}

/// Which of [`all`] is that of `kind`.
pub fn index(kind: Kind) -> usize {
    Kind::ALL.iter().position(|&other| other == kind).unwrap_or(0)
}

fn entry(kind: Kind) -> Value {
    let rule = rule(kind);
    let tags = [&["concurrency", "correctness"], rule.weaknesses].concat();
    json!({
        "id": kind.as_str(),
        "name": rule.name,
        "shortDescription": text(rule.short),
        "fullDescription": text(rule.full),
        "help": { "text": rule.help, "markdown": rule.help },
        "defaultConfiguration": { "level": "error" },
        "properties": { "tags": tags, "precision": "high" },
    })
}

fn rule(kind: Kind) -> Rule {
    match kind {
        Kind::Deadlock => Rule {
            name: "Deadlock",
            short: "Threads can wait for each other for ever.",
            full: "Each of some threads can come to wait for a lock that the next of them holds. \
                   As a rule a schedule that leads there is attached as a code flow; the message \
                   says how far to rely on the result.",
            help: "Take the locks in the same order everywhere, or take one lock around both, or \
                   give up what is held when the next lock cannot be had (try-lock).",
            weaknesses: &["external/cwe/cwe-833"],
        },
        Kind::Race => Rule {
            name: "DataRace",
            short: "Two threads can access the same memory at the same time.",
            full: "Two threads can be about to access the same memory, at least one of them to \
                   write it, and nothing orders the two. As a rule a schedule that leads there \
                   is attached as a code flow; the message says how far to rely on the result.",
            help: "Hold the same lock around both accesses, or make the variable atomic, or let \
                   one thread wait for the other before it goes on.",
            weaknesses: &["external/cwe/cwe-362", "external/cwe/cwe-366"],
        },
        Kind::Atomicity => Rule {
            name: "AtomicityViolation",
            short: "Another thread can come in between the steps of a block.",
            full: "A block that is expected to be atomic can be spoiled: another thread's access \
                   can come between two of its steps, with a result that no undisturbed run of \
                   the block has.",
            help: "Hold one lock over the whole block, not one for each step, or check again what \
                   was checked before.",
            weaknesses: &["external/cwe/cwe-362", "external/cwe/cwe-367", "external/cwe/cwe-662"],
        },
        Kind::Assertion => Rule {
            name: "AssertionFailure",
            short: "An assertion can fail.",
            full: "An assertion of the program does not hold in another order of its steps. As a \
                   rule that schedule is attached as a code flow.",
            help: "Look at the schedule: it shows in which order the steps have to come. Exclude \
                   that order, or mend what is asserted.",
            weaknesses: &["external/cwe/cwe-617"],
        },
        Kind::Predicate => Rule {
            name: "GlobalState",
            short: "A global state meets a predicate, or breaks one that should hold.",
            full: "Some order of the observed events passes a state in which the given predicate \
                   holds, or in which one that should always hold does not.",
            help: "Look at the state and at the run that reaches it. If it is not wanted, add what \
                   keeps the threads from being there together.",
            weaknesses: &[],
        },
        Kind::Nondeterminism => Rule {
            name: "ScheduleDependentRead",
            short: "What a read sees depends on the schedule.",
            full: "A read can see another write than the one it saw, so that a result can differ \
                   from run to run, whether or not there is a data race.",
            help: "If the result should not depend on the schedule, let the reader wait for the \
                   writer (join, a condition, a barrier), or combine the results in a fixed order.",
            weaknesses: &["external/cwe/cwe-662"],
        },
    }
}
