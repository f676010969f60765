//! `intervals`: ranges, verdicts, graphs, and what is refused.

use serde_json::{Value, json};

use crate::Folder;

const RACY: &str = "shared x;
thread a {
    x = x + 1;
}
thread b {
    x = x + 1;
}
thread c {
    let t = x;
    assert(t <= 2);
    assert(t != 1);
}
";

fn program(name: &str) -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let path = root.join("corpus/programs/intervals").join(format!("{name}.rw"));
    path.display().to_string()
}

fn graphs(arguments: &[&str]) -> Vec<Value> {
    let ran = Folder::new().run(&[&["intervals", "--format", "json"], arguments].concat());
    ran.json()["graphs"].as_array().expect("there are graphs").clone()
}

#[test]
fn the_running_example_has_the_published_graphs() {
    let found = graphs(&[&program("running"), "--locals", "copy"]);
    let counts = |graph: &Value| {
        ["nodes", "transaction_edges", "switch_edges", "mats", "local_bits", "global_bits"]
            .map(|field| graph[field].clone())
    };
    assert_eq!(
        counts(&found[0]),
        [13, 11, 30, 0, 8, 95].map(|count| match count {
            0 => Value::Null,
            count => json!(count),
        })
    );
    assert_eq!(counts(&found[1]), [9, 7, 10, 7, 6, 57].map(|count| json!(count)));
    assert_eq!(counts(&found[2]), [7, 5, 8, 5, 6, 43].map(|count| json!(count)));
}

#[test]
fn cp_has_the_published_counts() {
    let published = [
        ("cp1", 90, (18, 22), (9, 14)),
        ("cp2", 1562, (330, 342), (121, 222)),
        ("cp3", 35802, (7650, 7702), (2601, 5102)),
    ];
    for (name, ccfg, tsg, reduced) in published {
        let found = graphs(&[&program(name), "--edges", "lockset", "--search", "0"]);
        let count = |graph: usize, field: &str| found[graph][field].as_u64().unwrap_or(0);
        assert_eq!(count(0, "switch_edges"), ccfg, "{name}");
        assert_eq!((count(1, "mats"), count(1, "switch_edges")), tsg, "{name}");
        assert_eq!((count(2, "mats"), count(2, "switch_edges")), reduced, "{name}");
    }
}

#[test]
fn assertions_are_proved_or_broken_by_a_run() {
    let folder = Folder::new();
    folder.put("p.rw", RACY);
    let report = folder.run(&["intervals", "p.rw", "--format", "json"]).expect(66).json();
    assert_eq!(report["closed"], true);
    let verdicts: Vec<&Value> =
        report["assertions"].as_array().unwrap().iter().map(|of| &of["verdict"]).collect();
    assert_eq!(verdicts, ["proved", "fails"]);
    assert!(report["assertions"][1]["schedule"].as_array().is_some_and(|steps| !steps.is_empty()));
    assert_eq!(report["ranges"]["final"][0]["low"], 1);
    assert_eq!(report["ranges"]["final"][0]["high"], 2);
}

#[test]
fn what_is_left_open_has_a_code_of_its_own() {
    let folder = Folder::new();
    folder.put("p.rw", RACY);
    let ran = folder.run(&["intervals", "p.rw", "--search", "0"]).expect(3);
    assert!(ran.out().contains("may fail"));
    let fine = "shared x;\nthread a {\n    x = 1;\n}\nthread b {\n    assert(x < 2);\n}\n";
    folder.put("q.rw", fine);
    assert!(folder.run(&["intervals", "q.rw"]).expect(0).out().contains("proved"));
}

#[test]
fn graphs_are_drawn() {
    let folder = Folder::new();
    folder.put("p.rw", RACY);
    let dot = folder.run(&["intervals", "p.rw", "--format", "dot"]).out();
    assert!(dot.starts_with("digraph transactions {") && dot.ends_with("}\n"));
    assert!(dot.contains("style=dashed"));
    let page = folder.run(&["intervals", "p.rw", "--format", "html"]).out();
    assert!(page.contains("<svg") && page.ends_with("</html>\n"));
}

#[test]
fn a_line_can_be_asked_about() {
    let folder = Folder::new();
    folder.put("p.rw", "shared x;\nthread a {\n    x = 1;\n}\nthread b {\n    let t = x;\n    if (t > 1) {\n        x = 5;\n    }\n}\n");
    let report = |arguments: &[&str]| folder.run(arguments).json();
    let found = report(&["intervals", "p.rw", "--reach", "6", "--format", "json"]);
    assert_eq!(found["reach"][0]["reachable"], true);
    let ran = folder.run(&["intervals", "p.rw", "--reach", "8"]).expect(3);
    assert!(ran.out().contains("line 8: is unknown: no run reached it"), "{}", ran.out());
    let found = report(&["intervals", "p.rw", "--reach", "8", "--format", "json"]);
    assert_eq!(found["reach"][0]["reachable"], Value::Null);
}

#[test]
fn a_run_that_does_not_end_is_refused() {
    let folder = Folder::new();
    folder.put("p.rw", "shared x;\nthread a {\n    while (1) {\n        x = 1;\n    }\n}\n");
    let ran = folder.run(&["intervals", "p.rw", "--steps", "1000"]).expect(2);
    assert!(ran.err().contains("a loop that it did not unroll"), "{}", ran.err());
}

#[test]
fn several_programs_are_a_list_and_every_domain_prints() {
    let folder = Folder::new();
    folder.put("p.rw", RACY);
    folder.put("q.rw", "shared x;\nthread a {\n    x = 4 * x + 2;\n}\n");
    let report = folder.run(&["intervals", "p.rw", "q.rw", "--format", "json"]).json();
    assert_eq!(report.as_array().map(Vec::len), Some(2));
    for domain in ["intervals", "congruences", "both"] {
        let ran = folder.run(&["intervals", "q.rw", "--domain", domain]).expect(0);
        assert!(ran.out().contains("2") && !ran.out().contains("mod 1\n"));
    }
}
