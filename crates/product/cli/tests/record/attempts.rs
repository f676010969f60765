//! Threads that find a lock taken, go on, and remember it.

use super::harness::{Workshop, compilers};

const WAYS: [&str; 13] = [
    "mutex",
    "timed",
    "spin",
    "writer",
    "reader",
    "standard",
    "standard_timed",
    "semaphore",
    "semaphore_timed",
    "stream",
    "word",
    "behind",
    "pipe",
];

/// What is said only where an attempt failed.
const FAILED: [&str; 3] = [".taken_by_", ".value)", ".taken)"];

#[test]
fn who_found_a_lock_taken_comes_after_the_section_that_it_lost_to() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["attempts.c"]);
        folder.build("attempts.c", compiler, &["-O1"]);
        for mode in ["serial", "free"] {
            for how in WAYS {
                // The other thread has the lock for long, but nothing makes sure that it is in time.
                let has_failed = (1..=8).any(|seed: u32| {
                    let seed = seed.to_string();
                    let recorded =
                        folder.record(&["--mode", mode, "--seed", &seed], &["attempts", how]);
                    recorded.must_be_whole();
                    assert_eq!(
                        folder.findings(),
                        [] as [&str; 0],
                        "{compiler} {mode} {how} {seed}"
                    );
                    let trace = recorded.by_thread();
                    FAILED.iter().any(|it| trace.contains(it))
                });
                assert!(has_failed, "{compiler} {mode} {how}");
            }
        }
    }
}

#[test]
fn an_attempt_that_fails_orders_nothing() {
    let Some(&compiler) = compilers("c").first() else { return };
    let folder = Workshop::with(&["attempts.c"]);
    folder.build("attempts.c", compiler, &["-O1"]);
    for how in ["signal", "signal_by_semaphore", "thrice"] {
        let has_failed = (1..=8).any(|seed: u32| {
            folder.record(&["--seed", &seed.to_string()], &["attempts", how]).must_be_whole();
            folder.findings() == ["race"]
        });
        assert!(has_failed, "{how}: the other thread was never in time");
        if how == "signal" {
            let said = folder.reweave(&["explain", "run.rwt", "R1"]).stdout;
            let said = String::from_utf8_lossy(&said);
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            let why = "An attempt to take `mutex` that fails orders nothing.";
            assert!(said.contains(why), "{said}");
        }
        let output = folder.reweave(&["confirm", "run.rwt", "R1", "--", "./attempts", how]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("confirmed: 1 of"), "{how}: {said}");
    }
}
