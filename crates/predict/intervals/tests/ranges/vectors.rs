//! The published example and random programs with known values.

use reweave_base::Id;
use reweave_intervals::answers::{global_bits, local_bits};
use reweave_intervals::ctp::{Action, Ctp, Point};
use reweave_intervals::domain::{Domain, Interval};
use reweave_intervals::graph::Graph;
use reweave_intervals::lookahead;
use reweave_intervals::propagate::{Mode, Row, Settings, Values, propagate, reference};
use reweave_intervals::terms::{Slot, Term, TermId};
use reweave_testkit::corpus;
use reweave_trace::{Binary, LockId, ThreadId, VarId};
use serde_json::{Map, Value};

use crate::ranges::common::{Cut, Draft, Sketch};

fn read(name: &str) -> Value {
    let path = corpus::folder().join("vectors").join(name);
    let text = std::fs::read_to_string(&path).expect("the vector is in the corpus");
    serde_json::from_str(&text).expect("the vector is JSON")
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object is here")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list is here")
}

fn number(value: &Value) -> i64 {
    value.as_i64().expect("a number is here")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text is here")
}

fn interval(value: &Value) -> Interval {
    Interval::new(number(&value[0]), number(&value[1])).expect("bounds are in order")
}

/// A straight program as vectors spell it: variables with capitals are shared.
fn program(init: &Value, threads: &[Vec<Value>]) -> (Ctp, Vec<String>) {
    let mut sketch = Sketch { locals: vec![Vec::new(); threads.len()], ..Sketch::default() };
    for (name, value) in object(init) {
        let local = ["a", "b"].iter().position(|thread| name.starts_with(thread));
        match local {
            Some(thread) => sketch.locals[thread].push((name.clone(), number(value))),
            None => sketch.shared.push((name.clone(), number(value))),
        }
    }
    for steps in threads {
        let drafts = steps.iter().enumerate().map(|(index, step)| draft(&mut sketch, index, step));
        let drafts = drafts.collect();
        sketch.steps.push(drafts);
    }
    let slots = sketch.shared.iter().chain(sketch.locals.iter().flatten());
    let names = slots.map(|(name, _)| name.clone()).collect();
    (sketch.finish(), names)
}

fn draft(sketch: &mut Sketch, index: usize, step: &Value) -> Draft {
    let var = || VarId::from_index(sketch.slot(text(&step[1])).index());
    let lock = LockId::from_index(0);
    let action = match text(&step[0]) {
        "R" => Action::Read(var()),
        "W" => Action::Write(var()),
        "L" => Action::Acquire(lock),
        "U" => Action::Release(lock),
        other => panic!("unknown access {other}"),
    };
    let mut draft = Draft::new(index, index + 1, action);
    if step[2].is_null() {
        return draft;
    }
    let mut sum = sketch.term(Term::Constant(number(&step[2][1])));
    for (name, factor) in object(&step[2][2]) {
        let slot = sketch.slot(name);
        let slot = sketch.term(Term::Slot(slot));
        let factor = sketch.term(Term::Constant(number(factor)));
        let product = sketch.term(Term::Binary(Binary::Multiply, factor, slot));
        sum = sketch.term(Term::Binary(Binary::Add, sum, product));
    }
    let assigned: (Slot, TermId) = (sketch.slot(text(&step[2][0])), sum);
    match draft.action {
        Action::Write(_) => draft.store = Some(assigned),
        _ => draft.define = Some(assigned),
    }
    draft
}

fn point(ctp: &Ctp, thread: usize, index: usize) -> Point {
    let start = ctp.threads[ThreadId::from_index(thread)].points.start;
    Point::from_index(start.index() + index)
}

fn graph_of(
    ctp: &Ctp,
    transactions: &Value,
    switches: &Value,
    name: impl Fn(&Value) -> Point,
) -> Graph {
    let pairs = |value: &Value| -> Vec<(Point, Point)> {
        list(value).iter().map(|pair| (name(&pair[0]), name(&pair[1]))).collect()
    };
    let nodes = pairs(transactions).into_iter().flat_map(|(from, to)| [from, to]).collect();
    Cut { nodes, switches: pairs(switches).into_iter().collect(), ..Cut::default() }.graph(ctp)
}

fn settings(mode: Mode) -> Settings {
    Settings { mode, ..Settings::default() }
}

/// The example of the first figure, and its three graphs.
struct Figure {
    vector: Value,
    ctp: Ctp,
    names: Vec<String>,
}

impl Figure {
    fn new() -> Self {
        let vector = read("tsg_fig1.json");
        let json = serde_json::json!([
            [["L", "L", null], ["R", "Z", ["a1", 0, {"Z": 1}]], ["W", "X", ["X", 4, {}]],
             ["U", "L", null], ["W", "Y", ["Y", 1, {}]]],
            [["R", "Y", ["b1", 0, {"Y": 1}]], ["L", "L", null], ["R", "X", ["b2", 0, {"X": 1}]],
             ["W", "Z", ["Z", 0, {"b2": 1}]], ["U", "L", null],
             ["W", "Y", ["Y", 0, {"b1": 1, "b2": 1}]]],
        ]);
        let threads: Vec<Vec<Value>> =
            list(&json).iter().map(|steps| list(steps).to_vec()).collect();
        let (ctp, names) = program(&vector["init"], &threads);
        Self { vector, ctp, names }
    }

    fn point(&self, name: &str) -> Point {
        let thread = usize::from(name.ends_with('b'));
        let last = [5, 6][thread];
        let index = name[..1].parse::<usize>().map_or(last, |number| number - 1);
        point(&self.ctp, thread, index)
    }

    fn graph(&self, key: &str) -> Graph {
        let entry = &self.vector[key];
        let transactions = match entry.get("TE") {
            Some(transactions) => transactions.clone(),
            None => object(&entry["AT"]).values().flat_map(|all| list(all).to_vec()).collect(),
        };
        graph_of(&self.ctp, &transactions, &entry["CE"], |name| self.point(text(name)))
    }

    #[track_caller]
    fn check_row(&self, expected: &Value, row: &Row<Interval>, place: &str) {
        for (name, value) in object(expected) {
            let slot = self.names.iter().position(|other| other == name);
            let slot = Slot::from_index(slot.expect("the variable is known"));
            assert_eq!(row[slot], interval(value), "{name} at {place}");
        }
    }

    fn final_y(&self, graph: &Graph, values: &Values<Interval>) -> Interval {
        let end = self.point("Jb");
        let (node, _) = graph.nodes.entries().find(|(_, node)| node.point == end).expect("a node");
        let slot = self.names.iter().position(|name| name == "Y").expect("a variable");
        values.at[node].as_ref().expect("it is reached")[Slot::from_index(slot)]
    }
}

const GRAPHS: [(&str, u64, (u64, u64)); 3] =
    [("ccfg", 11, (8, 95)), ("genmat", 7, (6, 57)), ("genmat_prime", 5, (6, 43))];

#[test]
fn every_round_of_the_example_is_as_published() {
    let figure = Figure::new();
    for (key, rounds, _) in GRAPHS {
        let graph = figure.graph(key);
        let outcome = reference::propagate::<Interval>(&figure.ctp, &graph, Mode::Copy);
        let expected = &figure.vector[key]["rpt"];
        assert_eq!(outcome.values.rounds, rounds, "{key}");
        assert_eq!(outcome.rounds.len(), list(&expected["steps"]).len(), "{key}");
        for (round, expected) in outcome.rounds.iter().zip(list(&expected["steps"])) {
            let there = round.iter().filter(|row| row.is_some()).count();
            assert_eq!(there, object(expected).len(), "{key}");
            for (name, expected) in object(expected) {
                let point = figure.point(name);
                let node = graph.nodes.entries().find(|(_, node)| node.point == point);
                let row = round[node.expect("a node").0].as_ref().expect("it is reached");
                figure.check_row(expected, row, name);
            }
        }
        for (name, expected) in object(&expected["R"]) {
            let point = figure.point(name);
            let node = graph.nodes.entries().find(|(_, node)| node.point == point);
            let row = match node {
                Some((node, _)) => &outcome.values.at[node],
                None => &outcome.after[point],
            };
            figure.check_row(expected, row.as_ref().expect("it is reached"), name);
        }
    }
}

#[test]
fn the_metric_of_the_example_is_as_published() {
    let figure = Figure::new();
    for (key, _, bits) in GRAPHS {
        let graph = figure.graph(key);
        let values: Values<Interval> = propagate(&figure.ctp, &graph, &settings(Mode::Copy));
        let found = (local_bits(&values), global_bits(&figure.ctp, &graph, &values));
        assert_eq!(found, bits, "{key}");
    }
}

#[test]
fn both_modes_together_find_the_exact_range_of_the_example() {
    let figure = Figure::new();
    for (key, bits) in [("ccfg", (8, 89)), ("genmat", (6, 57)), ("genmat_prime", (6, 43))] {
        let graph = figure.graph(key);
        let values: Values<Interval> = propagate(&figure.ctp, &graph, &settings(Mode::Both));
        let found = (local_bits(&values), global_bits(&figure.ctp, &graph, &values));
        assert_eq!(found, bits, "{key}");
        assert_eq!(figure.final_y(&graph, &values).bounds(), (1, 5), "{key}");
    }
}

#[test]
fn random_programs_end_with_the_expected_values() {
    for case in list(&read("tsg_random2.json")) {
        let threads: Vec<Vec<Value>> =
            list(&case["threads"]).iter().map(|steps| list(steps).to_vec()).collect();
        let (ctp, names) = program(&case["init"], &threads);
        for key in ["genmat", "genmat_prime"] {
            let name = |node: &Value| {
                let (thread, index) = (number(&node[0]), number(&node[1]));
                point(&ctp, thread as usize, index as usize)
            };
            let graph = graph_of(&ctp, &case[key]["TE"], &case[key]["CE"], name);
            let values: Values<Interval> = propagate(&ctp, &graph, &settings(Mode::Copy));
            for (thread, expected) in object(&case[key]["R_end"]) {
                let thread: usize = thread.parse().expect("threads are numbers");
                let end = point(&ctp, thread, threads[thread].len());
                let (node, _) =
                    graph.nodes.entries().find(|(_, node)| node.point == end).expect("a node");
                let row = values.at[node].as_ref().expect("ends are reached");
                for (name, value) in object(expected) {
                    let slot = names.iter().position(|other| other == name).expect("a variable");
                    assert_eq!(row[Slot::from_index(slot)], interval(value), "{name}");
                }
            }
        }
    }
}

#[test]
fn looking_ahead_narrows_the_example_as_published() {
    let figure = Figure::new();
    for (key, expected) in object(&read("tsg_lookahead.json")) {
        let (graph, length) = key.split_once(" B=").expect("keys name a graph and a length");
        let graph = match graph {
            "ccfg" => "ccfg",
            "mat" => "genmat",
            "mat'" => "genmat_prime",
            other => panic!("unknown graph {other}"),
        };
        let graph = figure.graph(graph);
        let settings = lookahead::Settings {
            own: false,
            length: length.parse().expect("lengths are numbers"),
            capped: false,
            paths_max: u64::MAX,
            windows_max: u64::MAX,
        };
        let outcome = lookahead::propagate::<Interval>(&figure.ctp, &graph, &settings);
        let outcome = outcome.expect("nothing bounds it");
        let (low, high) = figure.final_y(&graph, &outcome.values).bounds();
        let found = serde_json::json!({
            "RB_l": local_bits(&outcome.values),
            "RB_g": global_bits(&figure.ctp, &graph, &outcome.values),
            "Y_Jb": [low, high],
            "iterations": outcome.values.rounds,
            "paths": outcome.paths,
        });
        assert_eq!(&found, expected, "{key}");
    }
}
