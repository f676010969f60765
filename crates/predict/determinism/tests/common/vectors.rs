//! The worked witnesses of the corpus: small traces, and for each witness what every notion of
//! feasibility says of it, found by an explicit search that is not part of this project.

use std::fs;

use reweave_determinism::{Mode, Witness, WitnessKind};
use reweave_testkit::corpus;
use reweave_trace::{EventId, Trace};
use serde_json::Value;

/// What `expect` says of the file.
const WELL_FORMED: &str = "the vectors are well formed";

/// A trace with everything that is known of its witnesses.
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) trace: Trace,
    pub(crate) witnesses: Vec<Expected>,
}

/// A witness and what is known of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) witness: Witness,
    /// Whether it is feasible in [`Mode::Order`].
    pub(crate) order: bool,
    /// Whether it is feasible if all events happen and every other read sees what it saw.
    pub(crate) view: bool,
    /// Whether it is feasible in [`Mode::Prefix`].
    pub(crate) prefix: bool,
    /// Whether it is feasible in [`Mode::Strict`].
    pub(crate) strict: bool,
    /// Whether the algorithm that the paper prints takes it as feasible.
    pub(crate) paper: bool,
    /// What the needed-set algorithm says, which should be `prefix`.
    pub(crate) needed: bool,
    /// Whether the paper's second phase has something to choose.
    pub(crate) choice: bool,
    /// Whether it has, and every choice graph has a cycle.
    pub(crate) all_choice_cyclic: bool,
}

impl Expected {
    /// Whether the witness is feasible in `mode`.
    pub(crate) const fn is_feasible(&self, mode: Mode) -> bool {
        match mode {
            Mode::Order => self.order,
            Mode::Prefix => self.prefix,
            Mode::Strict => self.strict,
        }
    }
}

/// Every vector of the corpus, in the order of the file.
pub(crate) fn all() -> Vec<Vector> {
    let path = corpus::folder().join("vectors/nondet_small.jsonl");
    let text = fs::read_to_string(path).expect("the corpus has the vectors");
    text.lines().map(vector).collect()
}

fn vector(line: &str) -> Vector {
    let value: Value = serde_json::from_str(line).expect(WELL_FORMED);
    let (trace, places) = trace_of(&value);
    let witnesses = value["witnesses"].as_array().expect(WELL_FORMED);
    Vector {
        name: value["name"].as_str().expect(WELL_FORMED).to_owned(),
        witnesses: witnesses.iter().map(|witness| expected(witness, &places)).collect(),
        trace,
    }
}

fn expected(value: &Value, places: &[EventId]) -> Expected {
    let place = |key: &str| {
        let index = value[key].as_i64().expect(WELL_FORMED);
        // Below zero is the initial value.
        usize::try_from(index).ok().map(|index| places[index])
    };
    let number = value["kind"].as_u64().expect(WELL_FORMED);
    let mut kinds = WitnessKind::ALL.into_iter();
    let kind = kinds.find(|kind| u64::from(kind.number()) == number).expect(WELL_FORMED);
    let holds = |key: &str| value[key].as_bool().expect(WELL_FORMED);
    Expected {
        witness: Witness { kind, writer: place("w"), read: place("r"), interfering: place("c") },
        order: holds("order"),
        view: holds("view"),
        prefix: holds("prefix"),
        strict: holds("strict"),
        paper: holds("paper"),
        needed: holds("needed"),
        choice: holds("choice"),
        all_choice_cyclic: holds("all_choice_cyclic"),
    }
}

/// The trace of `vector` and, for each event of the vector, the event that stands for it.
fn trace_of(vector: &Value) -> (Trace, Vec<EventId>) {
    let mut text = String::new();
    let (mut places, mut lines_count) = (Vec::new(), 0);
    for event in vector["events"].as_array().expect(WELL_FORMED) {
        let thread = event[0].as_u64().expect(WELL_FORMED);
        let op = event[1].as_str().expect(WELL_FORMED);
        let object = match &event[2] {
            Value::Number(child) => format!("T{child}"),
            name => name.as_str().expect(WELL_FORMED).to_owned(),
        };
        // A wait is a release and what it waits on; the wake comes before the lock is taken again.
        let ops = match op {
            "wrel" => vec![format!("rel({object})"), "wait(c)".to_owned()],
            "wacq" => vec!["wake(c)".to_owned(), format!("acq({object})")],
            "notify" => vec!["notify(c)".to_owned()],
            _ => vec![format!("{op}({object})")],
        };
        lines_count += ops.len() as u32;
        places.push(if op == "wrel" { lines_count - 1 } else { lines_count });
        for op in ops {
            text += &format!("T{thread}|{op}|0\n");
        }
    }
    let trace = reweave_testkit::std(&text);
    let places = places.iter().map(|&number| trace.numbered(number).expect(WELL_FORMED)).collect();
    (trace, places)
}
