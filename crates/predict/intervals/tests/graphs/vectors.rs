//! Published and recorded graphs, MATs and counts.

use std::fs;

use super::schedules::{classes, permitted};
use reweave_base::Id;
use reweave_intervals::ctp::Ctp;
use reweave_intervals::graph::{Graph, GraphKind, Mode, Rule, Settings, build};
use reweave_intervals::lattice::{Lattice, StraightLine};
use reweave_intervals::mats::{self, Choice, Dummy, Generated, Pair};
use reweave_testkit::corpus;
use reweave_trace::ThreadId;
use serde_json::{Value, json};

use crate::graphs::common::{drawn, place};

const KINDS: [(&str, GraphKind, Choice); 2] = [
    ("genmat", GraphKind::Tsg, Choice::First),
    ("genmat_prime", GraphKind::TsgReduced, Choice::Feasible),
];

fn vector(name: &str) -> Value {
    let text = fs::read_to_string(corpus::folder().join("vectors").join(name));
    serde_json::from_str(&text.expect("the vector can be read")).expect("vectors are JSON")
}

/// The program of the lists of accesses `[kind, name, …]` of each thread.
fn listed(threads: &Value) -> Ctp {
    let word = |access: &Value| {
        format!(
            "{}{}",
            access[0].as_str().expect("the vectors are well formed"),
            access[1].as_str().expect("the vectors are well formed")
        )
    };
    let lines: Vec<String> = threads
        .as_array()
        .expect("the vectors are well formed")
        .iter()
        .map(|list| {
            list.as_array()
                .expect("the vectors are well formed")
                .iter()
                .map(word)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    drawn(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

fn settings(switches: Rule, mode: Mode) -> Settings {
    Settings { switches, mode, dummy: Dummy::None }
}

fn generated(ctp: &Ctp, choice: Choice) -> Generated {
    let lattice = Lattice::new(ctp);
    let threads = (ThreadId::from_index(0), ThreadId::from_index(1));
    let line = |thread| StraightLine::new(ctp, lattice.locations(thread), thread);
    let lines = (line(threads.0), line(threads.1));
    let pair = Pair::new(ctp, &lattice, threads, (&lines.0, &lines.1), Dummy::None);
    mats::generate(&pair, choice)
}

/// `3a`, `2b`, and `Ja` for the end, as in the paper.
fn label(ends: (usize, usize), thread: usize, position: usize) -> String {
    let (end, letter) = if thread == 0 { (ends.0, 'a') } else { (ends.1, 'b') };
    if position == end { format!("J{letter}") } else { format!("{}{letter}", position + 1) }
}

fn mat_labels(ends: (usize, usize), found: &Generated) -> Value {
    let label = |thread, position| label(ends, thread, position);
    let mats = found.mats.iter().map(|mat| {
        json!([
            label(0, mat.begin.0),
            label(0, mat.end.0),
            label(1, mat.begin.1),
            label(1, mat.end.1)
        ])
    });
    mats.collect()
}

fn sorted(value: &Value) -> Vec<String> {
    let mut items: Vec<String> = value
        .as_array()
        .expect("the vectors are well formed")
        .iter()
        .map(Value::to_string)
        .collect();
    items.sort_unstable();
    items
}

const ENDS: (usize, usize) = (5, 6);

fn figure_one() -> (Ctp, Value) {
    (drawn(&["LL RZ WX UL WY", "RY LL RX WZ UL WY"]), vector("tsg_fig1.json"))
}

#[track_caller]
fn check_graph(ctp: &Ctp, graph: &Graph, expected: &Value) {
    let name = |node| {
        let (thread, position) = place(ctp, graph, node);
        label(ENDS, thread, position)
    };
    let nodes: Value = graph.nodes.ids().map(|node| json!(name(node))).collect();
    assert_eq!(nodes, expected["V"]);
    let edges: Value = graph
        .transactions
        .iter()
        .flat_map(|transaction| {
            transaction.exits.iter().map(|&exit| json!([name(transaction.from), name(exit)]))
        })
        .collect();
    if expected.get("TE").is_some() {
        assert_eq!(edges, expected["TE"]);
    } else {
        let lists = [&expected["AT"]["a"], &expected["AT"]["b"]];
        let all: Value = lists
            .into_iter()
            .flat_map(|list| list.as_array().expect("the vectors are well formed"))
            .cloned()
            .collect();
        assert_eq!(edges, all);
    }
    let switches: Value =
        graph.switches.iter().map(|&(from, to)| json!([name(from), name(to)])).collect();
    assert_eq!(sorted(&switches), sorted(&expected["CE"]));
}

#[test]
fn the_running_example_has_the_graphs_of_the_paper_in_both_modes() {
    let (ctp, expected) = figure_one();
    for mode in [Mode::Sound, Mode::Paper] {
        let settings = settings(Rule::Lattice, mode);
        let graph = build(&ctp, GraphKind::Ccfg, &settings);
        check_graph(&ctp, &graph, &expected["ccfg"]);
        for (key, kind, _) in KINDS {
            let graph = build(&ctp, kind, &settings);
            check_graph(&ctp, &graph, &expected[key]);
            assert_eq!(json!(graph.mats_count), expected[key]["counts"]["mats"]);
            let permitted = permitted(&ctp, &graph);
            assert_eq!(json!(permitted.schedules_count), expected[key]["n_tsg_schedules"]);
            assert_eq!(json!(permitted.classes.len()), expected[key]["n_tsg_classes"]);
            assert_eq!(permitted.classes, classes(&ctp));
        }
    }
    let graph = build(&ctp, GraphKind::Ccfg, &settings(Rule::Lockset, Mode::Sound));
    assert_eq!(json!(graph.switches.len()), expected["ccfg"]["CE_lockset_pairs_only"]);
}

#[test]
fn the_running_example_has_the_mats_and_the_work_list_of_the_paper() {
    let (ctp, expected) = figure_one();
    for (key, _, choice) in KINDS {
        let expected = &expected[key];
        let found = generated(&ctp, choice);
        assert_eq!(mat_labels(ENDS, &found), expected["mats"]);
        let label = |pair: (usize, usize)| json!([label(ENDS, 0, pair.0), label(ENDS, 1, pair.1)]);
        let mut start = 1;
        let rows: Value = found
            .mats
            .iter()
            .zip(&found.queued)
            .map(|(mat, &end)| {
                let added = found.queue[start..end].iter().map(|&pair| label(pair));
                start = end;
                json!({ "pair": label(mat.begin), "inserted": added.collect::<Value>() })
            })
            .collect();
        assert_eq!(rows, expected["worklist"]);
        let name = |thread, position| self::label(ENDS, thread, position);
        let mut switches: Vec<Value> = found
            .mats
            .iter()
            .flat_map(|mat| {
                let [there, back] = mat.switches();
                [
                    json!([name(0, there.0), name(1, there.1)]),
                    json!([name(1, back.0), name(0, back.1)]),
                ]
            })
            .collect();
        switches.sort_by_key(Value::to_string);
        switches.dedup();
        assert_eq!(sorted(&switches.into_iter().collect()), sorted(&expected["TP"]));
    }
}

#[test]
fn the_cp_family_has_the_counts_of_table_one() {
    for row in
        vector("tsg_cp_family.json")["measured"].as_array().expect("the vectors are well formed")
    {
        let rounds = row["N"].as_u64().expect("the vectors are well formed") as usize;
        let worker = format!("{}WY", "LL RX WX UL ".repeat(rounds));
        let ctp = drawn(&[&worker, &worker]);
        for mode in [Mode::Paper, Mode::Sound] {
            let counts = |kind| {
                let graph = build(&ctp, kind, &settings(Rule::Lockset, mode));
                (graph.transaction_edges_count(), graph.switches.len(), graph.mats_count)
            };
            let ccfg = counts(GraphKind::Ccfg);
            assert_eq!(json!({ "TE": ccfg.0, "CE": ccfg.1 }), row["ccfg"]);
            for (key, kind, _) in KINDS {
                let (edges, switches, mats) = counts(kind);
                assert_eq!(json!({ "M": mats, "CE": switches, "TE": edges }), row[key]);
            }
        }
    }
}

#[test]
fn random_programs_have_the_recorded_mats_graphs_and_schedules() {
    for case in vector("tsg_random2.json").as_array().expect("the vectors are well formed") {
        let ctp = listed(&case["threads"]);
        let all = classes(&ctp);
        assert_eq!(json!(all.len()), case["classes"]);
        for (key, kind, choice) in KINDS {
            let expected = &case[key];
            let found = generated(&ctp, choice);
            let mats = found.mats.iter();
            let mats: Value =
                mats.map(|m| json!([m.begin.0, m.end.0, m.begin.1, m.end.1])).collect();
            assert_eq!(mats, expected["mats"]);
            for mode in [Mode::Paper, Mode::Sound] {
                let graph = build(&ctp, kind, &settings(Rule::Lattice, mode));
                if graph.mats_count.is_none() {
                    continue;
                }
                let node = |node| json!(place(&ctp, &graph, node));
                let edges = graph.transactions.iter().flat_map(|transaction| {
                    transaction
                        .exits
                        .iter()
                        .map(|&exit| json!([node(transaction.from), node(exit)]))
                });
                assert_eq!(edges.collect::<Value>(), expected["TE"]);
                let switches =
                    graph.switches.iter().map(|&(from, to)| json!([node(from), node(to)]));
                assert_eq!(switches.collect::<Value>(), expected["CE"]);
                let permitted = permitted(&ctp, &graph);
                assert_eq!(json!(permitted.schedules_count), expected["tsg_schedules"]);
                assert_eq!(permitted.classes, all);
            }
        }
    }
}

#[test]
fn the_fall_back_covers_what_the_printed_algorithm_misses() {
    let gaps = vector("tsg_gaps.json");
    let gap = &gaps["genmat_prime_literal_inadequate"];
    let ctp = listed(&gap["threads"]);
    assert_eq!(json!(classes(&ctp).len()), gap["total_classes"]);
    for (key, kind, choice) in [
        ("new_with_fallback", GraphKind::TsgReduced, Choice::Feasible),
        ("old", GraphKind::Tsg, Choice::First),
    ] {
        assert_eq!(mat_labels((5, 5), &generated(&ctp, choice)), gap[key]["mats"]);
        let graph = build(&ctp, kind, &settings(Rule::Lattice, Mode::Sound));
        let permitted = permitted(&ctp, &graph);
        assert_eq!(json!(permitted.schedules_count), gap[key]["tsg_schedules"]);
        assert_eq!(json!(permitted.classes.len()), gap[key]["classes_covered"]);
    }
}

#[test]
fn three_threads_lose_classes_in_the_mode_of_the_paper_and_none_in_the_sound_one() {
    let gaps = vector("tsg_gaps.json");
    let gap = &gaps["three_threads"];
    let ctp = listed(&gap["threads"]);
    let total = classes(&ctp).len();
    let mut longer = gap["threads"].clone();
    for thread in longer.as_array_mut().expect("the vectors are well formed") {
        thread.as_array_mut().expect("the vectors are well formed").push(json!(["W", "_d"]));
    }
    let with_dummy = listed(&longer);
    for (name, kind) in [("GenMAT", GraphKind::Tsg), ("GenMAT'", GraphKind::TsgReduced)] {
        let expected = &gap["classes_covered_of_total"];
        let paper = settings(Rule::Lattice, Mode::Paper);
        let covered = permitted(&ctp, &build(&ctp, kind, &paper)).classes.len();
        assert_eq!(json!([covered, total]), expected[format!("no_dummy/{name}")]);
        let all = permitted(&with_dummy, &build(&with_dummy, kind, &paper)).classes;
        assert_eq!(without_last(&with_dummy, &all), expected[format!("one_dummy_var/{name}")][0]);
        let sound = settings(Rule::Lattice, Mode::Sound);
        assert_eq!(permitted(&ctp, &build(&ctp, kind, &sound)).classes, classes(&ctp));
    }
}

/// How many classes there are without the last step of each thread.
fn without_last(
    ctp: &Ctp,
    runs: &std::collections::BTreeSet<Vec<reweave_intervals::ctp::StepId>>,
) -> usize {
    let is_last = |step| ctp.steps_from(ctp.steps[step].to).next().is_none();
    let mut found: Vec<_> = runs
        .iter()
        .map(|run| run.iter().copied().filter(|&step| !is_last(step)).collect::<Vec<_>>())
        .map(|run| super::schedules::canonical(ctp, &run))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.len()
}
