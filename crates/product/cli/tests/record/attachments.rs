//! Programs that were not built for recording, and programs that start others.

use reweave_trace::{AccessOp, Op};

use super::harness::{Workshop, has};

/// The number of threads of a deadlock in the lock order of `abba.c`, once it is made to happen.
#[track_caller]
fn confirms_deadlock(folder: &Workshop, program: &str) {
    assert_eq!(folder.findings(), ["deadlock"], "{program}");
    let ran = folder.reweave(&["confirm", "run.rwt", "D1", "--", &format!("./{program}")]);
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(ran.status.code(), Some(66), "{program}: {said}");
    assert!(said.contains("2 threads waited for each other's locks"), "{program}: {said}");
}

/// Records `program` with the first seed with which the deadlock does not happen by itself.
fn record_alive(folder: &Workshop, program: &str) -> super::harness::Recorded {
    for seed in 1..20 {
        let seed = seed.to_string();
        let recorded = folder.record(&["--seed", &seed, "--stall-timeout", "2"], &[program]);
        if recorded.behaviour.printed == "2\n" {
            return recorded;
        }
    }
    panic!("the deadlock happens by itself in twenty runs");
}

#[test]
fn deadlocks_of_a_program_that_was_not_built_for_us() {
    if !has("gcc") {
        return;
    }
    let folder = Workshop::with(&["abba.c"]);
    folder.build_plain("abba.c", "gcc", "plain", &[]);
    let recorded = record_alive(&folder, "plain");
    assert!(recorded.said.contains("memory accesses were not recorded"), "{}", recorded.said);
    assert_eq!(recorded.trace.names().vars.len(), 0);
    confirms_deadlock(&folder, "plain");
}

/// Without its atomic accesses, what is copied and read by calls would seem to race.
#[test]
fn of_a_program_that_was_not_built_for_us_no_access_is_told() {
    if !has("gcc") {
        return;
    }
    let folder = Workshop::with(&["memory.c", "blocking.c"]);
    for name in ["memory.c", "blocking.c"] {
        folder.build_plain(name, "gcc", "plain", &["-fno-builtin"]);
        let recorded = folder.record_all(&[], &["plain"]);
        recorded.must_be_whole();
        assert!(recorded.said.contains("memory accesses were not recorded"), "{}", recorded.said);
        // What the kernel carries is seen, since calls say so.
        let is_access = |op: Op| matches!(op, Op::Access(AccessOp::Read | AccessOp::Write, _));
        let accesses = recorded.trace.events().filter(|(_, event)| is_access(event.op));
        assert_eq!(accesses.count(), 0, "{name}");
    }
}

#[test]
fn a_program_with_gccs_sanitizer_is_recorded_whole() {
    if !has("gcc") {
        return;
    }
    let folder = Workshop::with(&["abba.c"]);
    folder.put("a.c", "int main(void) { return 0; }");
    let tried = folder.command("gcc").args(["-fsanitize=thread", "a.c", "-o", "a"]).output();
    if !tried.unwrap().status.success() {
        eprint_skipped("no libtsan");
        return;
    }
    folder.build_plain("abba.c", "gcc", "sanitized", &["-fsanitize=thread"]);
    let recorded = record_alive(&folder, "sanitized");
    recorded.must_be_whole();
    assert!(recorded.trace.names().vars.get("x").is_some());
    confirms_deadlock(&folder, "sanitized");
    folder.build_plain("abba.c", "gcc", "own", &["-fsanitize=thread", "-static-libtsan"]);
    let refused = folder.reweave(&["record", "--", "./own"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("`./own` contains the runtime of ThreadSanitizer"), "{said}");
}

#[allow(clippy::print_stderr, reason = "whoever runs the tests must see what was not tried")]
fn eprint_skipped(why: &str) {
    eprintln!("skipped: {why}");
}

#[test]
fn a_static_program_without_the_recorder_is_refused() {
    if !has("gcc") {
        return;
    }
    let folder = Workshop::with(&["abba.c"]);
    folder.build_plain("abba.c", "gcc", "plain", &["-static"]);
    let refused = folder.reweave(&["record", "--", "./plain"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("`./plain` is statically linked without the recorder"), "{said}");
    assert!(!folder.path("plain.rwt").exists());
}

#[test]
fn a_script_may_start_the_program() {
    let Some(folder) = Workshop::built("many.c") else { return };
    let scripts = [
        (
            "a child",
            "#!/bin/sh\necho before\n./many 3\necho after\nexit 5\n",
            "before\n3\nafter\n",
            5,
        ),
        ("in its place", "#!/bin/sh\necho before\nexec ./many 3\n", "before\n3\n", 0),
        ("in a pipe", "#!/bin/sh\n./many 3 | tr 3 4\n", "4\n", 0),
    ];
    for (how, script, printed, code) in scripts {
        folder.put("script.sh", script);
        let output = folder.reweave(&["record", "-o", "run.rwt", "--", "sh", "./script.sh"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{how}: {said}");
        assert_eq!(output.status.code(), Some(code), "{how}: {said}");
        assert!(said.contains("from 4 threads"), "{how}: {said}");
    }
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    if !has("gcc") {
        return;
    }
    let folder = Workshop::with(&[]);
    let refused = folder.reweave(&["record", "--", "./missing"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot record `./missing`: "), "{said}");
    assert!(!folder.path("missing.rwt").exists());
}
