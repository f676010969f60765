//! The engine decides the worked nondeterminism witnesses as an explicit search did, in both
//! notions it knows: threads may run on after the changed read, or stop there.

use std::fs;

use reweave_reorder::{Answer, Engine, Query, View};
use reweave_testkit::corpus;
use reweave_trace::{After, Checker, EventId, Goal, Trace};
use serde_json::Value;

/// A trace with, for each event of the vector, the event that stands for it.
fn trace_of(vector: &Value) -> (Trace, Vec<EventId>) {
    let mut text = String::new();
    let (mut places, mut lines_count) = (Vec::new(), 0);
    for event in vector["events"].as_array().expect("the vectors are well formed") {
        let (thread, op) = (
            event[0].as_u64().expect("the vectors are well formed"),
            event[1].as_str().expect("the vectors are well formed"),
        );
        let object = match &event[2] {
            Value::Number(number) => format!("T{number}"),
            other => other.as_str().expect("the vectors are well formed").to_owned(),
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
    let places = places
        .iter()
        .map(|&number| trace.numbered(number).expect("the vectors are well formed"))
        .collect();
    (trace, places)
}

/// The question that `witness` is, if it is not infeasible by definition.
fn query_of(witness: &Value, places: &[EventId], stops: bool) -> Option<Query> {
    let place = |key: &str| {
        let index = witness[key].as_i64().expect("the vectors are well formed");
        usize::try_from(index).ok().map(|index| places[index])
    };
    let (w, r, c) = (place("w"), place("r")?, place("c"));
    let mut query = Query {
        views: vec![(r, View::Any)],
        stop: if stops { vec![r] } else { Vec::new() },
        ..Query::default()
    };
    match witness["kind"].as_u64()? {
        1 => {
            query.order.extend(c.map(|c| (c, r)));
            query.order.push((r, w?));
        }
        2 => {
            query.order.extend(w.map(|w| (w, c.unwrap_or(w))).filter(|(from, to)| from != to));
            query.order.push((c?, r));
        }
        _ => {
            query.order.extend(c.map(|c| (c, r)));
            query.absent.push(w?);
        }
    }
    Some(query)
}

#[test]
fn worked_witnesses_are_decided_as_an_explicit_search_decides_them() {
    let path = corpus::folder().join("vectors/nondet_small.jsonl");
    let text = fs::read_to_string(path).expect("the vectors are well formed");
    let mut counts = [0; 2];
    for line in text.lines() {
        let vector: Value = serde_json::from_str(line).expect("the vectors are well formed");
        let (trace, places) = trace_of(&vector);
        let (engine, checker) = (Engine::new(&trace), Checker::new(&trace));
        for witness in vector["witnesses"].as_array().expect("the vectors are well formed") {
            for (at, (notion, stops)) in [("prefix", false), ("strict", true)].iter().enumerate() {
                let expected = witness[notion].as_bool().expect("the vectors are well formed");
                let what = format!("{} {witness} {notion}", vector["name"]);
                let Some(query) = query_of(witness, &places, *stops) else {
                    assert!(!expected, "{what}");
                    continue;
                };
                let answer = engine.solve(&query);
                assert_eq!(matches!(answer, Answer::Feasible(_)), expected, "{what}: {answer:?}");
                assert!(!matches!(answer, Answer::Unknown), "{what}");
                if let Answer::Feasible(reordering) = answer {
                    counts[at] += 1;
                    let free = query.views.iter().map(|&(read, _)| read).collect();
                    let chain = query.order.first().map_or(Vec::new(), |&(a, b)| vec![a, b]);
                    let after = if *stops { After::Stops } else { After::RunsOn };
                    let goal = Goal::Order { chain, absent: query.absent.clone(), free, after };
                    assert_eq!(checker.check(&reordering, &goal).err(), None, "{what}");
                }
            }
        }
    }
    assert_eq!(counts, [618, 573]);
}
