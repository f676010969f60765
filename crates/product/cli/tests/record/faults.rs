//! One fault is one finding, however many places, instances and runs show it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::harness::{Workshop, compilers};

/// The reports of `check` on `traces`.
#[track_caller]
fn reports(workshop: &Workshop, traces: &[&str]) -> Vec<Value> {
    let output = workshop.reweave(&[&["check", "--format", "json"], traces].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let parsed: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    match parsed {
        Value::Array(all) => all,
        one => vec![one],
    }
}

/// How many findings of each kind a report has.
fn kinds(report: &Value) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for finding in report["findings"].as_array().expect("a report has findings") {
        *kinds.entry(finding["kind"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    kinds
}

/// A server of a few hundred lines has as many findings as faults were planted in it, in every run, with either
/// compiler; and so have all runs together.
#[test]
fn a_server_has_as_many_findings_as_faults() {
    let expected = BTreeMap::from(
        [("race", 3), ("deadlock", 1), ("use-after-free", 1)]
            .map(|(kind, count)| (kind.to_owned(), count)),
    );
    for compiler in compilers("cpp") {
        for options in [["-O0"], ["-O2"]] {
            let workshop = Workshop::with(&["server.cpp"]);
            workshop.build("server.cpp", compiler, &options);
            for seed in ["1", "2"] {
                let recorded = workshop.record(&["--seed", seed], &["server"]);
                assert_eq!(recorded.behaviour.printed, "served\n", "{compiler} {options:?} {seed}");
                let found = reports(&workshop, &["run.rwt"]);
                assert_eq!(kinds(&found[0]), expected, "{compiler} {options:?} {seed}");
                std::fs::rename(workshop.path("run.rwt"), workshop.path(&format!("{seed}.rwt")))
                    .unwrap();
            }
            let [first, second] = &reports(&workshop, &["1.rwt", "2.rwt"])[..] else {
                panic!("a report for each trace")
            };
            assert_eq!(kinds(first), expected);
            let is_in_both = |finding: &Value| finding["traces"] == serde_json::json!(["2.rwt"]);
            assert!(first["findings"].as_array().unwrap().iter().all(is_in_both));
            assert_eq!(second["findings"].as_array().unwrap().len(), 0);
            assert_eq!(second["listed"].as_array().unwrap().len(), 5);
        }
    }
}

/// A variable that two threads count at many lines is one fault at many pairs of lines.
#[test]
fn many_pairs_are_one_fault() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let workshop = Workshop::with(&[]);
    let lines = "    count++;\n".repeat(20);
    let source = format!(
        "#include <pthread.h>\nstatic volatile int count;\n\
         static void *work(void *unused) {{\n{lines}    return unused;\n}}\n{MAIN}"
    );
    workshop.put("many.c", &source);
    workshop.build("many.c", compiler, &["-O1"]);
    workshop.record(&[], &["many"]);
    let found = reports(&workshop, &["run.rwt"]);
    let finding = &found[0]["findings"][0];
    assert_eq!(found[0]["findings"].as_array().unwrap().len(), 1);
    let places = finding["places"].as_array().expect("there are several").len();
    assert!(places > 20, "{places}");
    assert!(finding["total"].as_u64() > Some(places as u64));
    // Every place is a name of the fault.
    let name = finding["places"][places - 1]["fingerprint"].as_str().unwrap();
    let explained = workshop.reweave(&["explain", "run.rwt", name]);
    assert!(String::from_utf8_lossy(&explained.stdout).contains(name));
    let text = workshop.reweave(&["check", "run.rwt"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains(&format!("and {} more; --all lists each instance", places - 5)),
        "{text}"
    );
    let suppressed = format!("fingerprint:{name}\n");
    workshop.put("known.txt", &suppressed);
    let checked = workshop.reweave(&["check", "run.rwt", "--suppress", "known.txt"]);
    assert_eq!(checked.status.code(), Some(0));
}

const MAIN: &str = "int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
";
