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

#[test]
fn a_thread_that_was_notified_need_not_go_on() {
    let Some(folder) = Workshop::built("notified.c") else { return };
    folder.record(&[], &["notified"]).must_be_whole();
    assert_eq!(folder.findings(), ["race"]);
    let confirmed = folder.reweave(&["confirm", "run.rwt", "R1", "--", "./notified"]);
    let said = String::from_utf8_lossy(&confirmed.stdout).into_owned();
    assert!(said.contains("confirmed: 1 of 1"), "{said}");
}
