//! One fault is one finding, however many places, instances and runs show it.

use std::collections::{BTreeMap, BTreeSet};

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

/// The fingerprints of all places of what is found in a run of `words` that is recorded with `options`, and how many faults
/// there are.
#[track_caller]
fn names(workshop: &Workshop, options: &[&str], words: &[&str]) -> (usize, BTreeSet<String>) {
    workshop.record(options, words);
    let found = reports(workshop, &["run.rwt"]).remove(0);
    let findings = found["findings"].as_array().unwrap();
    let places = |finding: &Value| finding["places"].as_array().cloned().unwrap_or_default();
    let all = findings.iter().flat_map(|finding| [vec![finding.clone()], places(finding)].concat());
    let names = all.map(|place| place["fingerprint"].as_str().unwrap().to_owned()).collect();
    (findings.len(), names)
}

/// A line that two callers hand different variables is a fault of each, whichever races first.
#[test]
fn a_helper_races_on_each_variable_that_it_is_handed() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let workshop = Workshop::with(&[]);
    workshop.put("helper.c", HELPER);
    workshop.build("helper.c", compiler, &["-O0"]);
    let expected = names(&workshop, &["--seed", "1"], &["helper"]);
    assert_eq!((expected.0, expected.1.len()), (2, 2));
    for seed in ["2", "3", "4"] {
        assert_eq!(names(&workshop, &["--seed", seed], &["helper"]), expected, "{seed}");
    }
}

const HELPER: &str = "#include <pthread.h>
static struct { long hits, misses; } stats;
static void bump(long *p) { *p += 1; }
static void *hit(void *unused) { bump(&stats.hits); return unused; }
static void *miss(void *unused) { bump(&stats.misses); return unused; }
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, i % 2 ? hit : miss, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
";

/// So are other kinds: each of two locks, variables, blocks and objects is a fault of its own.
#[test]
fn a_helper_is_at_fault_for_each_thing_that_it_is_handed() {
    for compiler in compilers("c") {
        let workshop = Workshop::with(&["helpers.c"]);
        workshop.build("helpers.c", compiler, &["-O0"]);
        for (way, only, kind) in [
            ("orders", "deadlocks.exact", "deadlock"),
            ("reads", "determinism.strict", "nondeterminism"),
            ("blocks", "atomicity.blocks", "atomicity"),
            ("gates", "deadlocks.stuck", "stuck"),
            ("locks", "deadlocks.stuck", "stuck"),
            ("tokens", "deadlocks.stuck", "stuck"),
            ("memory", "lifetimes.free", "use-after-free"),
            ("handles", "lifetimes.close", "use-after-close"),
        ] {
            workshop.record(&[], &["helpers", way]);
            let words = ["check", "run.rwt", "--only", only, "--format", "json"];
            let output = workshop.reweave(&words);
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            let expected = BTreeMap::from([(kind.to_owned(), 2)]);
            assert_eq!(kinds(&report), expected, "{compiler} {way}: {report:#}");
            for finding in report["findings"].as_array().unwrap() {
                assert_eq!(finding["guarantee"], "witnessed", "{compiler} {way}");
                assert!(finding["places"].is_null(), "{compiler} {way}: {finding:#}");
            }
        }
    }
}

/// Types may have the names by which recorders call what has none.
#[test]
fn members_of_types_with_odd_names_are_told_apart() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    for word in ["stack", "frame", "block", "memory", "lock", "descriptor"] {
        let workshop = Workshop::with(&[]);
        let source = format!(
            "#include <pthread.h>\n#include <stdlib.h>\nstruct {word} {{ long len, flag; }} *it;\n\
             static void *work(void *unused) {{\n    it->len++;\n    it->flag++;\n    return unused;\n}}\n\
             static void set(void) {{ it = calloc(1, sizeof(struct {word})); }}\n{}",
            MAIN.replace("pthread_t", "set(); pthread_t")
        );
        workshop.put("odd.c", &source);
        workshop.build("odd.c", compiler, &["-O0"]);
        assert_eq!(names(&workshop, &[], &["odd"]).0, 2, "{word}");
        let text = workshop.reweave(&["check", "run.rwt"]);
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        let is_kept = !["stack", "descriptor"].contains(&word);
        let name = format!("{}{word}#1.len", if is_kept { "struct_" } else { "" });
        assert!(text.contains(&format!("w({name})")), "{word}: {text}");
    }
}

/// The numbers of threads are no part of what their handles are called.
#[test]
fn handles_of_threads_go_by_who_forks_them() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let workshop = Workshop::with(&[]);
    workshop.put("handle.c", HANDLE);
    workshop.build("handle.c", compiler, &["-O0"]);
    let expected = names(&workshop, &[], &["handle"]);
    assert_eq!(expected.0, 1);
    assert_eq!(names(&workshop, &[], &["handle", "one", "more"]), expected);
}

const HANDLE: &str = "#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static pthread_t worker;
static void *works(void *unused) { usleep(20000); return unused; }
static void *pokes(void *unused) { pthread_kill(worker, 0); return unused; }
static void *nothing(void *unused) { return unused; }
int main(int count, char **words) {
    pthread_t other, first;
    for (int i = 1; i < count; i++) {
        pthread_create(&first, 0, nothing, words);
        pthread_join(first, 0);
    }
    pthread_create(&worker, 0, works, 0);
    pthread_create(&other, 0, pokes, 0);
    usleep(10000);
    pthread_join(worker, 0);
    pthread_join(other, 0);
    return 0;
}
";

const MAIN: &str = "int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
";
