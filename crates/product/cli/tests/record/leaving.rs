//! What still runs when the program ends, or is interrupted: handlers, threads, processes, and what the
//! recorder leaves behind itself.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::harness::{Behaviour, Workshop, compilers};

const MODES: [&str; 2] = ["serial", "free"];

#[test]
fn what_comes_before_a_handler_is_installed_or_the_signal_sent_comes_before_its_run() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["interrupted.c"]);
        folder.build("interrupted.c", compiler, &["-O1"]);
        for way in ["thread", "process", "queue", "raise", "alarm", "timer", "installed"] {
            for mode in MODES {
                let recorded = folder.record(&["--mode", mode], &["interrupted", way]);
                let expected = Behaviour { code: Some(0), printed: "3\n".to_owned() };
                assert_eq!(recorded.behaviour, expected, "{compiler} {way} {mode}");
                let found = folder.findings();
                // The handler tells the thread that it interrupts, and who joins that; nobody else.
                assert!(found.is_empty(), "{compiler} {way} {mode}: {found:?}");
            }
        }
    }
}

#[test]
fn a_program_that_repairs_its_faults_runs_as_it_does_without_us() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["interrupted.c"]);
        folder.build("interrupted.c", compiler, &["-O1"]);
        for mode in MODES {
            let recorded = folder.record(&["--mode", mode], &["interrupted", "repair"]);
            let expected = Behaviour { code: Some(0), printed: "1\n".to_owned() };
            assert_eq!(recorded.behaviour, expected, "{compiler} {mode}: {}", recorded.said);
        }
    }
}

#[test]
fn threads_that_run_when_the_program_exits_get_a_moment_more() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["leaves.c"]);
        folder.build("leaves.c", compiler, &["-O1"]);
        // Nobody joins them either. Made by equal lines, they are one fault.
        for (way, code, leaks) in [("running", 0, 2), ("sleeping", 3, 1)] {
            let recorded = folder.record(&[], &["leaves", way]);
            assert_eq!(recorded.behaviour.code, Some(code), "{}", recorded.said);
            let expected = [&["misuse"].repeat(leaks)[..], &["race"]].concat();
            assert_eq!(folder.findings(), expected, "{compiler} {way}");
        }
        let recorded = folder.record(&["--exit-wait", "0"], &["leaves", "sleeping"]);
        assert_eq!(folder.findings(), [] as [&str; 0], "{}", recorded.said);
        // Who waits for ever is not waited for: this takes no hour.
        folder.record(&["--exit-wait", "3600"], &["leaves", "blocked"]);
    }
}

#[test]
fn a_forked_child_has_names_and_its_faults_are_the_same_each_time_and_happen() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["leaves.c"]);
        folder.build("leaves.c", compiler, &["-O1"]);
        let mut fingerprints = Vec::new();
        for seed in ["1", "2"] {
            folder.record(&["--seed", seed], &["leaves", "child"]);
            let output = folder.reweave(&["check", "run.rwt", "--format", "json"]);
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let finding = &report["findings"][0];
            assert_eq!(finding["sites"][0]["location"], "leaves.c:12", "{compiler}: {finding}");
            fingerprints.push(finding["fingerprint"].clone());
        }
        assert_eq!(fingerprints[0], fingerprints[1], "{compiler}");
        let output = folder.reweave(&["confirm", "run.rwt", "R1", "--", "./leaves", "child"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(66), "{compiler}: {said}");
    }
}

#[test]
fn a_daemon_is_recorded_until_it_ends() {
    let Some(folder) = Workshop::built("leaves.c") else { return };
    let recorded = folder.record(&[], &["leaves", "daemon"]);
    assert!(recorded.said.contains("in the background"), "{}", recorded.said);
    assert_eq!(folder.findings(), ["race"], "{}", recorded.said);
}

#[test]
fn a_lock_that_another_thread_releases_orders_what_came_before() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["handover.c"]);
        folder.build("handover.c", compiler, &["-O1"]);
        for mode in MODES {
            folder.record(&["--mode", mode], &["handover"]);
            let output = folder.reweave(&["check", "run.rwt"]);
            let report = String::from_utf8_lossy(&output.stdout);
            assert!(
                report.contains("T1 releases m, which main holds"),
                "{compiler} {mode}: {report}"
            );
            // What comes after the release is not ordered.
            assert!(!report.contains("`w(x)` at"), "{compiler} {mode}: {report}");
            assert!(report.contains("`w(y)` at"), "{compiler} {mode}: {report}");
        }
    }
}

/// Whether a process with `folder` among its words runs.
fn runs_in(folder: &Workshop, program: &str) -> bool {
    let path = folder.path(program);
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .into_iter()
        .any(|entry| std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == path))
}

/// Interrupts `reweave` once its program has printed, `times` times; says how long it took to end and
/// what it said.
fn interrupted(folder: &Workshop, words: &[&str], signal: &str, times: u32) -> (Duration, String) {
    let mut command = folder.command(env!("CARGO_BIN_EXE_reweave"));
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "started");
    let start = Instant::now();
    for _ in 0..times {
        let sent = Command::new("kill").args([signal, &running.id().to_string()]).status();
        assert!(sent.unwrap().success());
        // A second one must not be taken for the first.
        if times > 1 {
            let mut said = BufReader::new(running.stderr.as_mut().unwrap());
            said.read_line(&mut String::new()).unwrap();
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    let output = running.wait_with_output().unwrap();
    (start.elapsed(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_recording_that_is_interrupted_leaves_a_trace_and_nothing_else() {
    let Some(folder) = Workshop::built("stubborn.c") else { return };
    let words = ["record", "-o", "run.rwt", "--", "./stubborn"];
    for signal in ["-INT", "-TERM"] {
        let (_, said) = interrupted(&folder, &words, signal, 1);
        let asks = "reweave: stopping and saving the trace; press Ctrl-C again to quit now";
        assert!(said.contains(asks), "{said}");
        assert!(said.contains("→ run.rwt"), "{said}");
        assert!(!runs_in(&folder, "stubborn"), "the program and its child have ended");
        assert_eq!(leftovers(&folder), [] as [String; 0]);
    }
    std::fs::remove_file(folder.path("run.rwt")).unwrap();
    interrupted(&folder, &words, "-INT", 2);
    assert!(!folder.path("run.rwt").exists(), "nothing half written is left");
    assert!(!runs_in(&folder, "stubborn"), "the program and its child have ended");
    assert_eq!(leftovers(&folder), [] as [String; 0]);
}

#[test]
fn a_time_limit_from_outside_leaves_a_trace() {
    let Some(folder) = Workshop::built("stubborn.c") else { return };
    // `timeout` sends its signal twice: to the command, and to the command's process group.
    for _ in 0..4 {
        let mut command = folder.command("timeout");
        command.args([
            "1",
            env!("CARGO_BIN_EXE_reweave"),
            "record",
            "-o",
            "run.rwt",
            "--",
            "./stubborn",
        ]);
        let said = command.output().unwrap().stderr;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("→ run.rwt"), "{said}");
        assert!(folder.path("run.rwt").exists(), "{said}");
        std::fs::remove_file(folder.path("run.rwt")).unwrap();
    }
}

/// Folders of the recorder's own that are still there.
fn leftovers(folder: &Workshop) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path(".")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".reweave-")).collect()
}
