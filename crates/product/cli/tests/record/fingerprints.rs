//! Runs of the same program give the same fingerprints, so that a baseline outlives the run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::harness::{Workshop, compilers};

/// The fingerprints of what is found in a run that is recorded with `options`.
#[track_caller]
fn fingerprints(workshop: &Workshop, program: &str, options: &[&str]) -> BTreeSet<String> {
    workshop.record(options, &[program]);
    let output = workshop.reweave(&["check", "run.rwt", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].as_array().expect("a report has findings");
    findings.iter().map(|finding| finding["fingerprint"].as_str().unwrap().to_owned()).collect()
}

/// A folder with the example `name` in it, built by `compiler`.
fn built(name: &str, compiler: &str) -> Workshop {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let workshop = Workshop::with(&[]);
    workshop.put(name, &fs::read_to_string(examples.join(name)).unwrap());
    workshop.build(name, compiler, &["-O1"]);
    workshop
}

/// The example `name` has the same fingerprints whatever the seed, the folder and the compiler. How
/// threads run in parallel nobody chooses: what is found then has the same names too.
fn check(name: &str) {
    let (program, extension) = name.split_once('.').unwrap();
    let mut expected = None;
    for compiler in compilers(extension) {
        let workshop = built(name, compiler);
        for seed in ["1", "2", "3"] {
            let found = fingerprints(&workshop, program, &["--seed", seed]);
            assert!(!found.is_empty(), "{name} {seed}");
            assert_eq!(*expected.get_or_insert(found.clone()), found, "{name} {compiler} {seed}");
        }
        let free = fingerprints(&workshop, program, &["--mode", "free"]);
        assert!(expected.as_ref().is_none_or(|all| free.is_subset(all)), "{name} {free:?}");
    }
}

#[test]
fn runs_of_a_c_program_have_the_same_fingerprints() {
    check("hidden_race.c");
    check("bank_atomicity.c");
}

#[test]
fn runs_of_a_cplusplus_program_have_the_same_fingerprints() {
    check("double_checked_locking.cpp");
}

/// What was not built to be recorded has threads and locks, but no accesses.
#[test]
fn where_accesses_are_not_seen_no_races_is_not_the_answer() {
    for compiler in compilers("c").into_iter().take(1) {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
        let workshop = Workshop::with(&[]);
        for (name, code) in [("lost_update.c", 3), ("abba_deadlock.c", 66)] {
            workshop.put(name, &fs::read_to_string(examples.join(name)).unwrap());
            workshop.build_plain(name, compiler, "plain", &[]);
            workshop.record(&[], &["plain"]);
            let checked = workshop.reweave(&["check", "run.rwt"]);
            let text = String::from_utf8_lossy(&checked.stdout).into_owned();
            assert_eq!(checked.status.code(), Some(code), "{text}");
            assert!(text.contains("build it with `reweave cc`"), "{text}");
            let deadlocks = workshop.reweave(&["deadlocks", "run.rwt"]);
            assert_eq!(deadlocks.status.code(), Some(if code == 3 { 0 } else { 66 }));
        }
        // A program that was, and shares nothing, is as good as it looks.
        workshop.put("apart.c", APART);
        workshop.build("apart.c", compiler, &["-O1"]);
        workshop.record(&[], &["apart"]);
        let checked = workshop.reweave(&["check", "run.rwt"]);
        let text = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert_eq!(checked.status.code(), Some(0), "{text}");
    }
}

const APART: &str = "#include <pthread.h>
static void *work(void *unused) { return unused; }
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
";
