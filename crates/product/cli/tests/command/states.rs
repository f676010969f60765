//! `states`: counted, listed and drawn, of traces and of posets.

use std::process::Stdio;

use expect_test::expect;
use reweave_testkit::corpus;
use reweave_workload::posets::Spec;
use serde_json::{Value, json};

use super::{Folder, name_of};

/// Figure 4 of the paper.
const CROSSED: &str = r#"{"n":2,"events":[[0,[1,0]],[1,[0,1]],[0,[2,1]],[1,[1,2]]]}"#;

const ALGORITHMS: [&str; 6] = ["mdd", "frontier", "lexical", "bfs", "paramount", "paramount-bfs"];

/// Two threads that take turns by a lock.
const TURNS: &str = "T1|w(x)|1\nT1|acq(m)|2\nT1|w(y)|3\nT1|r(z)|4\nT1|rel(m)|5\nT2|r(x)|6\n\
                     T2|acq(m)|7\nT2|w(y)|8\nT2|rel(m)|9\n";

/// A file with the poset that `spec` names.
fn written(spec: &str) -> String {
    let clocks = spec.parse::<Spec>().expect("the text names a poset").make();
    json!({ "n": clocks.chains_count, "events": clocks.events }).to_string()
}

#[test]
fn every_algorithm_counts_the_same_states() {
    let folder = Folder::with("crossed.json", CROSSED);
    for algorithm in ALGORITHMS {
        let options = ["states", "count", "--algorithm", algorithm, "--format", "json"];
        let arguments = [&options[..], &["--per-event", "crossed.json"]].concat();
        let answer = folder.run(&arguments).expect(0).json();
        assert_eq!(answer["states"], "7", "{algorithm}");
        assert_eq!(answer["intervals"], json!(["2", "2", "1", "2"]), "{algorithm}");
        assert_eq!(answer["complete"], true);
        assert_eq!(answer["algorithm"], algorithm);
    }
}

#[test]
fn a_page_draws_how_many_states_there_are_of_each_size() {
    let folder = Folder::with("crossed.json", CROSSED);
    let page = folder.run(&["states", "count", "--format", "html", "crossed.json"]).expect(0).out();
    assert!(page.contains("crossed.json: 7 global states"), "{page}");
    let bars: Vec<&str> = page.lines().filter(|line| line.starts_with("<rect")).collect();
    let sizes =
        ["0 events: 1 s", "1 events: 2 s", "2 events: 1 s", "3 events: 2 s", "4 events: 1 s"];
    assert!(
        bars.len() == 5 && bars.iter().zip(sizes).all(|(bar, size)| bar.contains(size)),
        "{page}"
    );
    assert!(page.starts_with("<!doctype html>") && !page.contains("<script"), "{page}");
}

#[test]
fn a_count_says_what_was_counted() {
    let folder = Folder::with("crossed.json", CROSSED);
    folder.put("turns.std", TURNS);
    expect![[r#"
        crossed.json: 7 global states
          A global state is the number of events that each thread has run; with an event, all that happen before it.
          The order is that of the poset.
          2 threads, 4 events; counted by a decision diagram.
    "#]].assert_eq(&folder.run(&["states", "count", "crossed.json"]).expect(0).out());
    expect![[r#"
        turns.std: 13 global states
          A global state is the number of events that each thread has run; with an event, all that happen before it.
          The order is happens-before; accesses between two synchronizations are one event.
          2 threads, 8 events; counted by a decision diagram.
          By the last event in observed order, the empty state with the first:
            event 1, thread T1: 2
            event 2, thread T1: 1
            event 3, thread T1: 1
            event 5, thread T1: 1
            event 6, thread T2: 5
            event 7, thread T2: 1
            event 8, thread T2: 1
            event 9, thread T2: 1
    "#]]
        .assert_eq(&folder.run(&["states", "count", "--per-event", "turns.std"]).expect(0).out());
    let ran = folder.run(&["states", "count", "--format", "json", "turns.std"]).expect(0);
    expect![[r#"
        {
          "algorithm": "mdd",
          "chains": 2,
          "complete": true,
          "events": 8,
          "events_of": "collections",
          "input": "trace",
          "order": "hb",
          "path": "turns.std",
          "schema": "reweave/1",
          "states": "13",
          "threads": [
            "T1",
            "T2"
          ]
        }
    "#]]
    .assert_eq(&ran.out());
}

#[test]
fn options_say_which_events_in_which_order() {
    let folder = Folder::with("turns.std", TURNS);
    let count = |options: &[&str]| {
        let arguments = [&["states", "count", "--format", "json", "turns.std"], options].concat();
        let answer = folder.run(&arguments).expect(0).json();
        (answer["events"].as_u64().unwrap(), answer["states"].as_str().unwrap().to_owned())
    };
    let counts = [
        count(&[]),
        count(&["--events", "raw"]),
        count(&["--order", "preserving"]),
        count(&["--events", "raw", "--order", "preserving"]),
    ];
    expect![[r#"
        [
            (
                8,
                "13",
            ),
            (
                9,
                "15",
            ),
            (
                8,
                "12",
            ),
            (
                9,
                "14",
            ),
        ]
    "#]]
    .assert_debug_eq(&counts);
}

#[test]
fn the_posets_that_are_written_out_have_the_states_listed_for_them() {
    for file in ["poset_bank_like.json", "poset_d300_like.json", "poset_hedc_like.json"] {
        let path = corpus::folder().join("posets").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = serde_json::from_str::<Value>(&text).unwrap()["states"].to_string();
        let arguments = ["states", "count", "--format", "json", &name_of(&path)];
        let ran = Folder::new().run(&arguments).expect(0);
        assert_eq!(ran.json()["states"], expected.as_str(), "{file}");
    }
}

#[test]
fn a_poset_is_read_from_standard_input_too() {
    let ran = Folder::new().run_with(CROSSED.as_bytes(), &["states", "count", "-"]).expect(0);
    assert!(ran.out().starts_with("-: 7 global states\n"), "{}", ran.out());
}

#[test]
fn more_states_than_any_machine_number_holds_are_counted() {
    let folder = Folder::with("wide.json", written("grid:40:100"));
    let answer = folder.run(&["states", "count", "--format", "json", "wide.json"]).expect(0).json();
    let power =
        std::iter::repeat_n(101_u8, 40).fold(vec![1_u8], |digits, factor| times(&digits, factor));
    let digits: String = power.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
    assert_eq!(answer["states"], digits.as_str());
}

/// A number of decimal digits, the last first, times `factor`.
fn times(digits: &[u8], factor: u8) -> Vec<u8> {
    let mut carry = 0_u32;
    let mut product = Vec::new();
    for &digit in digits {
        carry += u32::from(digit) * u32::from(factor);
        product.push((carry % 10) as u8);
        carry /= 10;
    }
    while carry > 0 {
        product.push((carry % 10) as u8);
        carry /= 10;
    }
    product
}

#[test]
fn a_budget_that_is_used_up_gives_a_lower_bound_and_says_so() {
    let folder = Folder::with("grid.json", written("grid:6:20"));
    let options = ["states", "count", "--work", "5000", "--algorithm"];
    for algorithm in &ALGORITHMS[1..] {
        let arguments = [&options[..], &[algorithm, "grid.json"]].concat();
        let out = folder.run(&arguments).expect(3).out();
        let said = "grid.json: at least 5000 global states; not all, as the budget was exhausted\n";
        assert!(out.starts_with(said), "{algorithm}: {out}");
        let arguments = [&arguments[..], &["--format", "json", "--per-event"]].concat();
        let answer = folder.run(&arguments).expect(3).json();
        assert_eq!((&answer["states"], &answer["complete"]), (&json!("5000"), &json!(false)));
        assert_eq!(answer["truncated"], "budget");
    }
    let arguments = ["states", "count", "--work", "1", "grid.json"];
    assert!(folder.run(&arguments).expect(3).out().contains("at least 1 global state;"));
}

#[test]
fn the_list_is_in_lexical_order_and_ends_where_it_is_told_to() {
    let folder = Folder::with("crossed.json", CROSSED);
    let ran = folder.run(&["states", "list", "crossed.json"]).expect(0);
    assert_eq!(ran.out(), "0 1\n0 0\n0 1\n1 0\n1 1\n1 2\n2 1\n2 2\n");
    assert_eq!(ran.err(), "");
    let ran = folder.run(&["states", "list", "--limit", "3", "crossed.json"]).expect(0);
    assert_eq!(ran.out(), "0 1\n0 0\n0 1\n1 0\n");
    assert!(ran.err().contains("there are more than these 3 states"), "{}", ran.err());
    let json = |options: &[&str]| {
        let arguments = [&["states", "list", "--format", "json", "crossed.json"], options].concat();
        folder.run(&arguments).expect(0).json()
    };
    let all = json!([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [2, 1], [2, 2]]);
    assert_eq!(json(&[])["states"], all);
    assert_eq!(json(&[])["complete"], true);
    assert_eq!(json(&["--limit", "7"])["complete"], true);
    assert_eq!(json(&["--limit", "0"])["states"], json!([]));
    assert_eq!(json(&["--limit", "6"])["complete"], false);
}

#[test]
fn a_seed_draws_the_same_states_and_all_of_them_come() {
    let folder = Folder::with("crossed.json", CROSSED);
    let drawn = |seed: &str| {
        let options = ["states", "sample", "--number", "700", "--seed", seed];
        let arguments = [&options[..], &["--format", "json", "crossed.json"]].concat();
        folder.run(&arguments).expect(0).json()
    };
    assert_eq!(drawn("3"), drawn("3"));
    assert_ne!(drawn("3"), drawn("4"));
    let mut states: Vec<String> =
        drawn("3")["states"].as_array().unwrap().iter().map(Value::to_string).collect();
    states.sort_unstable();
    let counts: Vec<usize> = states.chunk_by(|a, b| a == b).map(<[String]>::len).collect();
    assert_eq!(counts.iter().sum::<usize>(), 700);
    assert!(counts.len() == 7 && counts.iter().all(|&count| count > 60), "{counts:?}");
    let out = folder.run(&["states", "sample", "--number", "2", "crossed.json"]).expect(0).out();
    assert_eq!(out.lines().count(), 3);
}

#[test]
fn a_bad_poset_is_refused_with_the_place_and_the_reason() {
    let cases = [
        (r#"{"n":2,"events":[[0,[1,0]]"#, "bad.json: line 1, column 26: the text ends early"),
        (r#"{"n":1,"events":[[0,[1,0]]]}"#, "event 1: expected a clock of 1 numbers"),
        (
            r#"{"n":2,"events":[[0,[1,0]],[2,[1,0]]]}"#,
            "bad.json: event 2: expected a thread below 2",
        ),
        (
            r#"{"n":2,"events":[[0,[1,1]]]}"#,
            "bad.json: event 1: the clock holds 1 events of thread 1",
        ),
        (r#"{"n":4000000000,"events":[]}"#, "bad.json: expected at most 65536 threads"),
        (r#"{"n":-3,"events":[]}"#, "column 8: invalid value: integer `-3`, expected a number"),
        (
            r#"{"n":1,"events":[[0,[1.5]]]}"#,
            "invalid type: floating point `1.5`, expected a number",
        ),
        (r#"[{"n":1,"events":[]}]"#, "it starts with `[`"),
        ("", "the file is empty"),
        ("\u{0}", "it is binary"),
    ];
    for (content, reason) in cases {
        let folder = Folder::with("bad.json", content);
        for command in ["count", "list", "sample"] {
            let ran = folder.run(&["states", command, "bad.json", "-o", "out.txt"]).expect(2);
            assert!(ran.err().contains(reason), "{content}: {}", ran.err());
            assert_eq!((ran.out().as_str(), folder.names()), ("", vec!["bad.json".to_owned()]));
        }
    }
}

#[test]
fn a_poset_where_a_trace_is_wanted_and_options_for_traces_are_refused() {
    let folder = Folder::with("crossed.json", CROSSED);
    for command in ["check", "stats", "races"] {
        let said = folder.run(&[command, "crossed.json"]).expect(2).err();
        assert!(said.contains("crossed.json: expected a trace, found a poset"), "{said}");
        assert!(said.contains("`reweave states count` takes it"), "{said}");
    }
    let said = folder.run(&["states", "count", "--order", "hb", "crossed.json"]).expect(2).err();
    assert!(said.contains("`--order` is for traces"), "{said}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_count_with_what_is_known() {
    let folder = Folder::with("grid.json", written("grid:12:60"));
    let arguments = ["states", "count", "--algorithm", "lexical", "--format", "json"];
    let arguments = [&arguments[..], &["-o", "out.json", "grid.json"]].concat();
    let child = folder.command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
    // The folder with the unfinished file is there once the command listens for signals.
    while folder.names().len() < 2 {
        std::thread::yield_now();
    }
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let output = child.wait_with_output().unwrap();
    // It may have been reading still.
    if output.status.code() == Some(130) {
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&folder.read("out.json")).unwrap();
    assert_eq!((&answer["complete"], &answer["truncated"]), (&json!(false), &json!("cancelled")));
}

#[test]
fn every_subcommand_has_help_with_an_example() {
    for command in super::STATES_COMMANDS {
        let help = Folder::new().run(&["states", command, "--help"]).expect(0).out();
        assert!(help.contains(&format!("Example:\n  reweave states {command} ")), "{help}");
    }
}

/// A transfer under a lock, and someone who looks without it.
const BANK: &str = "T1|acq(m)|bank.c:10\nT1|r(a)|bank.c:11|100\nT1|w(a)|bank.c:11|90\n\
                    T1|r(b)|bank.c:12|100\nT1|w(b)|bank.c:12|110\nT1|rel(m)|bank.c:13\n\
                    T2|r(a)|audit.c:5|90\nT2|r(b)|audit.c:6|110\n";

const LOOKS: &str = "never(next(T2, \"audit.c:5\") && a + b != 200)";

#[test]
fn a_state_that_breaks_a_predicate_is_found_and_explained() {
    let folder = Folder::with("bank.std", BANK);
    let find = ["states", "find", "bank.std", "--predicate", LOOKS, "--format", "json"];
    let report = folder.run(&find).expect(66).json();
    let finding = &report["findings"][0];
    assert_eq!(finding["id"], "P1");
    assert_eq!(finding["kind"], "predicate");
    assert_eq!(finding["guarantee"], "witnessed");
    assert_eq!(finding["modality"], "never");
    assert_eq!(finding["cut"], json!({"T1": 3, "T2": 0}));
    assert_eq!(finding["witness"]["schedule"], json!([1, 2, 3]));
    let values = json!([
        {"term": "next(T2, \"audit.c:5\")", "value": "true"},
        {"term": "a", "value": "90"},
        {"term": "b", "value": "100"},
    ]);
    assert_eq!(finding["values"], values);

    let online = folder.run(&[&find[..], &["--online"]].concat()).expect(66).json();
    assert_eq!(online["findings"][0]["cut"], finding["cut"]);
    assert_eq!(online["findings"][0]["method"], "online");

    folder.put("report.json", report.to_string());
    let again = ["explain", "bank.std", "p1", "--from", "report.json"];
    let told = folder.run(&again).expect(0).out();
    let asked = ["explain", "bank.std", "P1", "--predicate", LOOKS];
    assert_eq!(told, folder.run(&asked).expect(0).out());
    assert!(told.contains("the state"), "{told}");
}

#[test]
fn a_predicate_that_holds_ends_with_zero_and_what_the_trace_does_not_tell_is_said() {
    let folder = Folder::with("bank.std", BANK);
    folder.put("silent.std", "T1|w(a)|1\nT2|w(a)|2\n");
    let find = |trace, text| folder.run(&["states", "find", trace, "--predicate", text]);
    let holds = find("bank.std", "always(a + b <= 200)").expect(0).out();
    assert!(holds.contains("nothing found"), "{holds}");
    let silent = find("silent.std", "a == 1").expect(3).out();
    let said = "1 predicate undefined in some states for lack of values";
    assert!(silent.contains(said), "{silent}");
}

#[test]
fn what_is_wrong_with_a_predicate_is_pointed_at() {
    let folder = Folder::with("bank.std", BANK);
    let find = |text| folder.run(&["states", "find", "bank.std", "--predicate", text]).expect(2);
    expect![[r#"
        reweave: bank.std: in the predicate: the trace has no variable `bb`
          a + bb > 1
              ^^
        the nearest are `b` and `a`
    "#]]
    .assert_eq(&find("a + bb > 1").err());
    for text in
        ["", "(", "a", "a +", "possibly(", "never(never(a > 1))", "\u{1}", "a > 1 \n\n && !"]
    {
        assert!(find(text).err().contains('^'), "{text}");
    }
}

#[test]
fn a_poset_has_nothing_to_say_of_values() {
    let folder = Folder::with("crossed.json", CROSSED);
    let find = ["states", "find", "crossed.json", "--predicate", "true"];
    let said = folder.run(&find).expect(2).err();
    assert!(said.contains("found a poset"), "{said}");
}

/// Two threads that write one variable each, twice.
const APART: &str = "T1|w(x)|1|1\nT1|w(x)|2|2\nT2|w(y)|3|1\nT2|w(y)|4|2\n";

#[test]
fn states_that_meet_a_predicate_are_counted() {
    let folder = Folder::with("apart.std", APART);
    let count = |options: &[&str]| {
        folder.run(&[&["states", "count", "apart.std", "--predicate"], options].concat())
    };
    // Of the nine states three have no event of T2, and so on.
    for (predicate, expected) in [
        ("done(T1)", "3 of 9 global states meet done(T1)"),
        ("done(T1) && done(T2)", "1 of 9 global states meet"),
        ("always(!done(T1))", "3 of 9 global states violate"),
        ("done(T1) || !done(T1)", "9 of 9 global states meet"),
    ] {
        let out = count(&[predicate]).expect(0).out();
        assert!(out.starts_with(&format!("apart.std: {expected}")), "{out}");
    }
    let answer = count(&["done(T1)", "--format", "json"]).expect(0).json();
    assert_eq!((&answer["states"], &answer["meeting"]), (&json!("9"), &json!("3")));
    let cut = count(&["done(T1)", "--work", "4"]).expect(3).out();
    assert!(cut.contains("at least ") && cut.contains("as the budget was exhausted"), "{cut}");
    assert!(count(&["race"]).expect(2).err().contains("use `states find`"));
    assert!(count(&["done(T9)"]).expect(2).err().contains("T9"));
    folder.put("grid.json", written("grid:2:2"));
    folder.run(&["states", "count", "grid.json", "--predicate", "done(T1)"]).expect(2);
}
