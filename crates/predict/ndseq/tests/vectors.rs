//! The vectors of the corpus: dependences, targets, slices, conflicts, cycles, answers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::vectors::{NAMES, Vector, all_lines, lines, list, load, number, numbers};
use reweave_base::{Id, IndexVec};
use reweave_ndseq::conflict::Conflicts;
use reweave_ndseq::events::NodeId;
use reweave_ndseq::relevant::slice;
use reweave_ndseq::{Answer, Inferrer, Run, Settings, Unneeded, Verdict, check, infer};
use reweave_oracle::ndseq::{BruteForce, Definitions};
use reweave_trace::Trace;

fn vectors() -> Vec<Vector> {
    NAMES.into_iter().map(load).collect()
}

/// The traces of a vector, each with its place, ready.
fn runs(vector: &Vector) -> Vec<(usize, Run<'_>)> {
    vector.traces.iter().map(|trace| Run::new(trace).unwrap()).enumerate().collect()
}

#[test]
fn data_dependences_are_as_expected() {
    for vector in vectors() {
        for (index, run) in runs(&vector) {
            let mut found = Vec::new();
            for event in run.events.nodes() {
                let sources = run.dependences.direct(event);
                found.extend(sources.into_iter().map(|from| vec![from.number(), event.number()]));
            }
            found.sort_unstable();
            let expected = list(&vector.expected["data_deps"][index]);
            let expected: Vec<Vec<u32>> = expected.iter().map(numbers).collect();
            assert_eq!(found, expected, "{} {index}", vector.name);
        }
    }
}

#[test]
fn targets_and_slices_are_as_expected() {
    for vector in vectors() {
        for (index, run) in runs(&vector) {
            let targets: Vec<u32> = run.targets.iter().map(|target| target.number()).collect();
            assert_eq!(targets, numbers(&vector.expected["targets"][index]), "{}", vector.name);
            let is_member = slice(&run);
            let members = run.events.nodes().filter(|&node| is_member[node]);
            let members: Vec<u32> = members.map(|node| node.number()).collect();
            let expected = numbers(&vector.expected["dynamic_slice"][index]);
            assert_eq!(members, expected, "{} {index}", vector.name);
        }
    }
}

#[test]
fn serializable_runs_are_as_expected() {
    for vector in vectors() {
        for (index, run) in runs(&vector) {
            let every = IndexVec::from_elem(true, run.dependences.nodes_count());
            let conflicts = Conflicts::new(&run, &every);
            let expected = &vector.expected["conflict_serializable"][index];
            assert_eq!(conflicts.is_serializable(), expected == true, "{} {index}", vector.name);
        }
    }
}

/// Each expected cycle is one: its events alone are not serializable.
#[test]
fn expected_cycles_are_cycles() {
    for vector in vectors() {
        let runs = runs(&vector);
        for cycle in list(&vector.expected["cycles_eager"]) {
            let (_, run) = &runs[number(&cycle[0]) as usize];
            let mut is_member = IndexVec::from_elem(false, run.dependences.nodes_count());
            for event in numbers(&cycle[1]) {
                is_member[NodeId::from_number(event).unwrap()] = true;
            }
            let conflicts = Conflicts::new(run, &is_member);
            assert!(!conflicts.is_serializable(), "{} {cycle}", vector.name);
        }
    }
}

#[test]
fn every_cycle_that_is_found_is_expected_or_contains_one() {
    for vector in vectors() {
        let expected: Vec<(u32, Vec<u32>)> = list(&vector.expected["cycles_eager"])
            .iter()
            .map(|cycle| (number(&cycle[0]), numbers(&cycle[1])))
            .collect();
        for (index, run) in runs(&vector) {
            let every = IndexVec::from_elem(true, run.dependences.nodes_count());
            Conflicts::new(&run, &every).visit_cycles(
                usize::MAX,
                |_| 0,
                |cycle| {
                    let events: Vec<u32> = cycle
                        .iter()
                        .flat_map(|edge| [edge.earlier.number(), edge.later.number()])
                        .collect();
                    let is_expected = expected.iter().any(|(trace, cycle)| {
                        *trace as usize == index && cycle.iter().all(|event| events.contains(event))
                    });
                    assert!(is_expected, "{} {index} {events:?}", vector.name);
                },
            );
        }
    }
}

#[track_caller]
fn check_answer(vector: &Vector, settings: &Settings) {
    let traces: Vec<&Trace> = vector.traces.iter().collect();
    let expected = &vector.expected["expected"]["B_sec4.1_plus_cover_tiebreak"];
    let answer = infer(&traces, settings).unwrap().answer;
    let flow = traces[0].flow().unwrap();
    match answer {
        Answer::Specification(placements) => {
            assert_eq!(vec![lines(&placements, flow)], all_lines(&expected["all_optimal"]));
            assert_eq!(check(&traces, &placements), Ok(Verdict::Serializable));
        }
        Answer::Unneeded(_) => assert_eq!(expected["cost"], 0, "{}", vector.name),
        Answer::Impossible(explanation) => {
            assert_eq!(expected["status"], "UNSAT", "{}", vector.name);
            assert_eq!(explanation.cycle.len(), 2);
        }
        other => panic!("{}: {other:?}", vector.name),
    }
}

#[test]
fn answers_are_as_expected() {
    for vector in vectors() {
        check_answer(&vector, &Settings::default());
    }
}

#[test]
fn figure_1_needs_one_around_lines_5_to_10() {
    let vector = load("fig1");
    let Answer::Specification(placements) =
        infer(&[&vector.traces[0]], &Settings::default()).unwrap().answer
    else {
        panic!("there is one");
    };
    assert_eq!(lines(&placements, vector.traces[0].flow().unwrap()), [(5, 10)]);
}

#[test]
fn serial_turns_need_nothing_since_nothing_conflicts_in_a_cycle() {
    let vector = load("serializable");
    let inference = infer(&[&vector.traces[0]], &Settings::default()).unwrap();
    assert_eq!(inference.answer, Answer::Unneeded(Unneeded::Serializable));
    assert_eq!((inference.statistics.rounds, inference.statistics.variables), (0, 0));
}

#[test]
fn brute_force_finds_all_smallest_sets() {
    for vector in vectors() {
        let traces: Vec<&Trace> = vector.traces.iter().collect();
        let smallest = BruteForce::new(&traces).smallest(&[], 2).unwrap_or_default();
        let flow = traces[0].flow().unwrap();
        let own = |placement: &reweave_oracle::ndseq::Placement| reweave_ndseq::Placement {
            block: placement.block,
            first: placement.first,
            last: placement.last,
        };
        let sets = smallest.iter().map(|set| set.iter().map(own).collect::<Vec<_>>());
        let mut found: Vec<_> = sets.map(|set| lines(set.as_slice(), flow)).collect();
        found.sort_unstable();
        let expected = all_lines(&vector.expected["expected"]["B_sec4.1"]["all_optimal"]);
        assert_eq!(found, expected, "{}", vector.name);
    }
}

/// Rejecting one answer after the other goes through all smallest sets, then to larger ones.
#[test]
fn rejected_answers_do_not_come_again() {
    for name in ["fig1", "treiber"] {
        let vector = load(name);
        let traces: Vec<&Trace> = vector.traces.iter().collect();
        let flow = traces[0].flow().unwrap();
        let expected = all_lines(&vector.expected["expected"]["B_sec4.1"]["all_optimal"]);
        let mut inferrer = Inferrer::new(&traces, &Settings::default()).unwrap();
        let mut found = Vec::new();
        for _ in 0..expected.len() {
            let Answer::Specification(placements) = inferrer.infer().answer else {
                panic!("there are more")
            };
            found.push(lines(&placements, flow));
            inferrer.reject(&placements);
        }
        found.sort_unstable();
        assert_eq!(found, expected);
        match inferrer.infer().answer {
            Answer::Specification(placements) => {
                assert!(placements.len() > expected[0].len());
                assert_eq!(check(&traces, &placements), Ok(Verdict::Serializable));
            }
            Answer::NoneLeft => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_reference_agrees_on_the_vectors() {
    for vector in vectors() {
        for (index, run) in runs(&vector) {
            let reference = Definitions::new(&vector.traces[index]);
            let is_member = slice(&run);
            for event in run.events.nodes() {
                let expected = reference.slice() >> event.index() & 1 == 1;
                assert_eq!(is_member[event], expected, "{} {event:?}", vector.name);
            }
        }
    }
}
