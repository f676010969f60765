//! Threads that can get stuck: lost wake-ups, and locks held while waiting.

use super::harness::{Workshop, compilers};

/// How threads get stuck, and what it is called.
const WAYS: [(&str, &str); 10] = [
    ("bare", "stuck"),
    ("notify", "stuck"),
    ("check", "stuck"),
    ("post", "stuck"),
    ("barrier", "stuck"),
    ("keep", "stuck"),
    ("chain", "stuck"),
    ("tokens", "stuck"),
    ("buffer", "stuck"),
    ("join", "deadlock"),
];

/// Programs whose threads wait by design, or where it is not seen that they need not.
const SOUND: [&str; 5] = ["timed", "unseen", "cancel", "server", "ticker"];

#[test]
fn threads_that_can_wait_for_ever_are_found_and_led_there() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["stuck.c"]);
        for level in ["-O0", "-O2"] {
            folder.build("stuck.c", compiler, &[level]);
            for (how, kind) in WAYS {
                let seeds = if level == "-O0" { &["1", "2"][..] } else { &["1"] };
                for &seed in seeds {
                    let case = format!("{compiler} {level} {how} {seed}");
                    folder.record(&["--seed", seed], &["stuck", how, "safe"]).must_be_whole();
                    assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
                    folder.record(&["--seed", seed], &["stuck", how]).must_be_whole();
                    assert_eq!(folder.findings(), [kind], "{case}");
                }
                // It takes seconds to see that nobody goes on.
                let is_led = compiler == "gcc" && level == "-O0" || how == "notify";
                if !is_led {
                    continue;
                }
                let id = if kind == "stuck" { "S1" } else { "D1" };
                let words = ["confirm", "run.rwt", id, "--", "./stuck", how];
                let said = folder.reweave(&words).stdout;
                let said = String::from_utf8_lossy(&said);
                assert!(said.contains("confirmed: 1 of 1"), "{compiler} {level} {how}: {said}");
            }
            for how in SOUND {
                folder.record(&[], &["stuck", how]);
                assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {level} {how}");
            }
        }
    }
}

/// The same in C++, and with locks that can be shared.
const CXX_WAYS: [(&str, &str); 8] = [
    ("three_locks", "deadlock"),
    ("reader_and_mutex", "deadlock"),
    ("shared_and_mutex", "deadlock"),
    ("two_shared", "deadlock"),
    ("missing_party", "stuck"),
    ("join_of_locked", "deadlock"),
    ("ended_with_lock", "stuck"),
    ("missing_post", "stuck"),
];

/// Readers that ask to write wait for themselves in every run.
const UPGRADES: [&str; 2] = ["upgrade", "upgrade_shared"];

/// C++ programs that end while threads wait, by design, or whose threads always go on.
const CXX_SOUND: [&str; 10] = [
    "pool",
    "consumers",
    "reader_of_pipe",
    "partner",
    "keeper",
    "stopped_pool",
    "bounded_queue",
    "limited",
    "promise",
    "once",
];

#[test]
fn threads_of_cpp_programs_that_can_wait_for_ever_are_found() {
    for compiler in compilers("cpp") {
        let folder = Workshop::with(&["waiting.cpp"]);
        for level in ["-O0", "-O2"] {
            folder.build("waiting.cpp", compiler, &[level]);
            for (how, kind) in CXX_WAYS {
                let case = format!("{compiler} {level} {how}");
                folder.record(&[], &["waiting", how, "safe"]).must_be_whole();
                assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
                folder.record(&[], &["waiting", how]).must_be_whole();
                assert_eq!(folder.findings(), [kind], "{case}");
            }
            for how in UPGRADES {
                let case = format!("{compiler} {level} {how}");
                folder.record(&[], &["waiting", how, "safe"]).must_be_whole();
                assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
                folder.record(&["--stall-timeout", "1"], &["waiting", how]);
                assert_eq!(folder.findings(), ["deadlock", "stuck"], "{case}");
            }
            for how in CXX_SOUND {
                for seed in ["1", "2"] {
                    folder.record(&["--seed", seed], &["waiting", how]);
                    let case = format!("{compiler} {level} {how} {seed}");
                    assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
                }
            }
        }
    }
}

#[test]
fn a_thread_that_was_notified_need_not_go_on() {
    let Some(folder) = Workshop::built("notified.c") else { return };
    folder.record(&[], &["notified"]).must_be_whole();
    assert_eq!(folder.findings(), ["race"]);
    let confirmed = folder.reweave(&["confirm", "run.rwt", "R1", "--", "./notified"]);
    let said = String::from_utf8_lossy(&confirmed.stdout).into_owned();
    assert!(said.contains("confirmed: 1 of 1"), "{said}");
}
