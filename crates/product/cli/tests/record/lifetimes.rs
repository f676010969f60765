//! Memory that one thread frees, or a handle that it ends, and another uses.

use super::harness::{Workshop, compilers};

const WAYS: [&str; 4] = ["join", "lock", "count", "pages"];

#[test]
fn memory_that_can_be_used_after_it_was_freed_is_found() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["lifetimes.c"]);
        for level in ["-O0", "-O2"] {
            folder.build("lifetimes.c", compiler, &[level]);
            for how in WAYS {
                for seed in ["1", "2", "3"] {
                    let case = format!("{compiler} {level} {how} {seed}");
                    folder.record(&["--seed", seed], &["lifetimes", how, "safe"]).must_be_whole();
                    assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
                    folder.record(&["--seed", seed], &["lifetimes", how]).must_be_whole();
                    assert_eq!(folder.findings(), ["use-after-free"], "{case}");
                }
                if how != "pages" {
                    let words = ["confirm", "run.rwt", "U1", "--", "./lifetimes", how];
                    let said = folder.reweave(&words).stdout;
                    let said = String::from_utf8_lossy(&said);
                    assert!(said.contains("confirmed: 1 of 1"), "{compiler} {level} {how}: {said}");
                }
            }
        }
    }
}

#[test]
fn variables_that_can_be_used_after_their_function_returned_are_found() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["frames.c"]);
        for options in [&["-O0"][..], &["-O2", "-fno-omit-frame-pointer"]] {
            folder.build("frames.c", compiler, options);
            for (mode, seed) in [("serial", "1"), ("serial", "2"), ("free", "1")] {
                let case = format!("{compiler} {options:?} {mode} {seed}");
                folder.record(&["--mode", mode, "--seed", seed], &["frames"]).must_be_whole();
                assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
            }
            folder.record(&[], &["frames", "early"]).must_be_whole();
            assert_eq!(folder.findings(), ["use-after-free"], "{compiler} {options:?}");
            let report = folder.reweave(&["check", "run.rwt"]).stdout;
            let report = String::from_utf8_lossy(&report);
            assert!(report.contains("is on the stack of main, and can come after"), "{report}");
            let said = folder.reweave(&["confirm", "run.rwt", "U1", "--", "./frames", "early"]);
            let said = String::from_utf8_lossy(&said.stdout);
            assert!(said.contains("confirmed: 1 of 1"), "{compiler} {options:?}: {said}");
        }
        // Without frame pointers nothing is known of frames.
        folder.build("frames.c", compiler, &["-O2"]);
        folder.record(&[], &["frames"]).must_be_whole();
        assert_eq!(folder.findings(), [] as [&str; 0], "{compiler}");
    }
}

const HANDLES: [&str; 7] =
    ["rwlock", "spinlock", "condition", "semaphore", "stream", "socket", "copy"];

#[test]
fn handles_that_can_be_used_after_their_end_are_found() {
    for (compiler, level) in compilers("c").into_iter().zip(["-O0", "-O2"]) {
        let folder = Workshop::with(&["handles.c"]);
        folder.build("handles.c", compiler, &[level]);
        for which in HANDLES {
            let case = format!("{compiler} {level} {which}");
            folder.record(&[], &["handles", which, "safe"]).must_be_whole();
            assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
            folder.record(&[], &["handles", which]).must_be_whole();
            assert_eq!(folder.findings(), ["use-after-close"], "{case}");
        }
    }
}

#[test]
fn handles_of_threads_that_can_be_used_after_their_end_are_found() {
    for (compiler, level) in compilers("c").into_iter().zip(["-O0", "-O2"]) {
        let folder = Workshop::with(&["thread_handles.c"]);
        folder.build("thread_handles.c", compiler, &[level]);
        for how in ["joined", "itself", "detached", "later"] {
            for mode in ["serial", "free"] {
                let case = format!("{compiler} {level} {how} {mode}");
                folder.record(&["--mode", mode], &["thread_handles", how, "safe"]).must_be_whole();
                assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
                folder.record(&["--mode", mode], &["thread_handles", how]).must_be_whole();
                assert_eq!(folder.findings(), ["use-after-close"], "{case}");
            }
        }
        for mode in ["serial", "free"] {
            folder.record(&["--mode", mode], &["thread_handles", "ended"]).must_be_whole();
            assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {level} {mode}");
        }
        folder.record(&[], &["thread_handles", "joined"]).must_be_whole();
        let said =
            folder.reweave(&["confirm", "run.rwt", "C1", "--", "./thread_handles", "joined"]);
        let said = String::from_utf8_lossy(&said.stdout);
        assert!(said.contains("confirmed: 1 of 1"), "{compiler}: {said}");
    }
}

#[test]
fn a_condition_that_is_destroyed_while_a_thread_waits_stops_nobody() {
    let Some(folder) = Workshop::built("handles.c") else { return };
    folder.record(&[], &["handles", "waiting"]);
}

#[test]
fn what_ends_with_its_last_user_is_not_used_after_that() {
    for compiler in compilers("cpp") {
        let folder = Workshop::with(&["owners.cpp"]);
        for level in ["-O0", "-O2"] {
            folder.build("owners.cpp", compiler, &[level]);
            for (mode, seed) in [("serial", "1"), ("serial", "2"), ("serial", "3"), ("free", "1")] {
                let case = format!("{compiler} {level} {mode} {seed}");
                folder.record(&["--mode", mode, "--seed", seed], &["owners"]).must_be_whole();
                assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
            }
        }
    }
}

#[test]
fn handles_that_live_again_are_others() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["lives_again.c"]);
        for options in [&["-O0"][..], &["-O2"], &["-O2", "-static"]] {
            folder.build("lives_again.c", compiler, options);
            for (mode, seed) in [("serial", "1"), ("serial", "2"), ("free", "1")] {
                let case = format!("{compiler} {options:?} {mode} {seed}");
                folder.record(&["--mode", mode, "--seed", seed], &["lives_again"]).must_be_whole();
                assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
            }
        }
    }
}
