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

/// Two functions that use one variable without a lock.
const BANK: &str = "#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int balance;

static void deposit(int sum) {
    balance = balance + sum;
}

static int audit(void) {
    return balance;
}

static void *work(void *unused) {
    deposit(3);
    return unused;
}

int main(void) {
    pthread_t worker;
    pthread_create(&worker, 0, work, 0);
    int sum = audit();
    pthread_join(worker, 0);
    return sum > 100 || pthread_mutex_destroy(&lock);
}
";

/// What the program `source`, in the file `name`, has: findings that `known` does not have, and how many it has.
#[track_caller]
fn compared(source: &str, name: &str, known: Option<&str>, is_gone: bool) -> (String, usize, u64) {
    let workshop = Workshop::with(&[]);
    workshop.put(name, source);
    let compiler = compilers("c")[0];
    workshop.build(name, compiler, &["-O1"]);
    if is_gone {
        fs::remove_file(workshop.path(name)).unwrap();
    }
    workshop.record(&[], &[name.trim_end_matches(".c")]);
    let mut words = vec!["check", "run.rwt", "--format", "json"];
    if let Some(known) = known {
        workshop.put("known.json", known);
        words.extend(["--baseline", "known.json"]);
    }
    let output = workshop.reweave(&words);
    let text = String::from_utf8(output.stdout).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let known = report["set_aside"]["baseline"].as_u64().unwrap_or(0);
    let new = report["findings"].as_array().expect("a report has findings").len();
    (text, new, known)
}

#[test]
fn a_baseline_survives_edits_elsewhere_and_none_at_the_fault() {
    if compilers("c").is_empty() {
        return;
    }
    let (known, 1, 0) = compared(BANK, "bank.c", None, false) else { panic!("one race") };
    let audit = "static int audit(void) {\n    return balance;\n}\n\n";
    let moved = BANK
        .replace(audit, "")
        .replace("static void deposit", &format!("{audit}static void deposit"));
    let commented = BANK.replace("#include", "/* A bank.\n *\n */\n#include");
    let indented =
        BANK.replace("    balance = balance + sum;", "        balance = balance  + sum;\r");
    let another = BANK.replace(
        "static void *work",
        "static int unused(int x) {\n    return x;\n}\n\nstatic void *work",
    );
    for (source, name) in [
        (BANK, "bank.c"),
        (BANK, "ledger.c"),
        (&commented, "bank.c"),
        (&moved, "bank.c"),
        (&indented, "bank.c"),
        (&another, "bank.c"),
    ] {
        let (_, new, found) = compared(source, name, Some(&known), false);
        assert_eq!((new, found), (0, 1), "{name}: {source}");
    }
    let renamed = BANK.replace("balance", "account");
    let changed = BANK.replace("balance = balance + sum", "balance = balance + 2 * sum");
    let elsewhere = BANK.replace("deposit", "pay_in");
    for source in [renamed, changed, elsewhere] {
        let (_, new, found) = compared(&source, "bank.c", Some(&known), false);
        assert_eq!((new, found), (1, 0), "{source}");
    }
    // What was repaired is gone.
    let locked =
        |line: &str| format!("pthread_mutex_lock(&lock);\n{line}\npthread_mutex_unlock(&lock);\n");
    let repaired = BANK
        .replace("balance = balance + sum;", &locked("balance = balance + sum;"))
        .replace("return balance;", &format!("int is;\n{}return is;", locked("is = balance;")));
    let (_, new, found) = compared(&repaired, "bank.c", Some(&known), false);
    assert_eq!((new, found), (0, 0));
}

#[test]
fn another_place_of_a_known_fault_is_new_and_shown() {
    if compilers("c").is_empty() {
        return;
    }
    let (known, 1, 0) = compared(BANK, "bank.c", None, false) else { panic!("one race") };
    let more = BANK
        .replace(
            "static void *work",
            "static void reset(void) {\n    balance = 0;\n}\n\nstatic void *work",
        )
        .replace("    deposit(3);", "    deposit(3);\n    reset();");
    let (text, new, found) = compared(&more, "bank.c", Some(&known), false);
    assert_eq!((new, found), (1, 0));
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let finding = &report["findings"][0];
    assert!(finding["message"].as_str().unwrap().contains("bank.c:15"), "{finding}");
    assert_eq!(finding.get("places"), None, "what is known is not listed again");
}

#[test]
fn where_the_source_is_gone_functions_have_to_do() {
    if compilers("c").is_empty() {
        return;
    }
    let (known, 1, 0) = compared(BANK, "bank.c", None, true) else { panic!("one race") };
    let commented = BANK.replace("#include", "/* A bank.\n *\n */\n#include");
    let elsewhere = BANK.replace("deposit", "pay_in");
    for (source, expected) in [(commented, (0, 1)), (elsewhere, (1, 0))] {
        let (_, new, found) = compared(&source, "bank.c", Some(&known), true);
        assert_eq!((new, found), expected, "{source}");
    }
}
