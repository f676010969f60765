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

/// What ends, and what is called the use of it after that.
const ENDED: [(&str, &str); 10] = [
    ("own", "use-after-free"),
    ("local", "use-after-free"),
    ("pages", "use-after-free"),
    ("folder", "use-after-close"),
    ("timer", "use-after-close"),
    ("timer_asked", "use-after-close"),
    ("stream", "use-after-close"),
    ("plugin_symbol", "use-after-close"),
    ("plugin_code", "use-after-close"),
    ("plugin_data", "use-after-close"),
];

#[test]
fn what_ends_with_a_thread_or_by_a_call_is_found_where_others_can_use_it_later() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["ended.c", "plugin.c"]);
        for level in ["-O0", "-O2"] {
            folder.build("plugin.c", compiler, &["-shared", "-fPIC", level, "-o", "plugin.so"]);
            // What is on the stack needs a frame pointer.
            folder.build("ended.c", compiler, &[level, "-fno-omit-frame-pointer"]);
            for (what, kind) in ENDED {
                folder.record(&[], &["ended", what]).must_be_whole();
                assert_eq!(folder.findings(), [kind], "{compiler} {level} {what}");
                let safe: &[&str] = match what {
                    "own" | "local" => &["wait"],
                    _ => &["wait", "join", "flag", "count"],
                };
                for how in safe {
                    folder.record(&[], &["ended", what, how]).must_be_whole();
                    assert_eq!(
                        folder.findings(),
                        [] as [&str; 0],
                        "{compiler} {level} {what} {how}"
                    );
                }
            }
            // Each opens the library by itself: then it is there for as long as one needs it.
            for seed in ["1", "2", "3"] {
                // Both may be in the loader at once, where one waits out of sight.
                folder.record(&["--seed", seed], &["ended", "opened"]);
                assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {level} {seed}");
            }
            // One that stops a thread of its own when it is closed.
            let options = ["-shared", "-fPIC", level, "-DHAS_WORKER", "-o", "plugin.so"];
            folder.build("plugin.c", compiler, &options);
            for mode in ["serial", "free"] {
                folder.record(&["--mode", mode], &["ended", "plugin_code", "join"]);
                assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {level} {mode}");
            }
        }
    }
}

#[test]
fn what_is_said_of_what_ended_is_what_a_user_would_call_it() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let folder = Workshop::with(&["ended.c", "plugin.c"]);
    folder.build("plugin.c", compiler, &["-shared", "-fPIC", "-o", "plugin.so"]);
    folder.build("ended.c", compiler, &["-O0"]);
    let said = [
        ("own", "or in its thread-local storage, and can come after T1 has ended", "U1", true),
        ("local", "can come after the function that T1 began with has returned", "U1", true),
        ("timer", "T1 can use a timer at ended.c:48 after T2 has deleted it", "C1", true),
        ("stream", "T1 can use a stream at ended.c:55 after T2 has closed it", "C1", true),
        ("plugin_symbol", "T1 can use library plugin.so at ended.c:59 after T2", "C1", true),
        ("plugin_code", "T1 can use library plugin.so at plugin.c:4 after T2", "C1", false),
    ];
    for (what, message, id, is_confirmed) in said {
        folder.record(&[], &["ended", what]);
        let report = folder.reweave(&["check", "run.rwt"]).stdout;
        let report = String::from_utf8_lossy(&report);
        assert!(report.contains(message), "{what}: {report}");
        let said = folder.reweave(&["confirm", "run.rwt", id, "--", "./ended", what]).stdout;
        let said = String::from_utf8_lossy(&said);
        // A call of what is gone crashes before it says that it has come.
        assert_eq!(said.contains("confirmed: 1 of 1"), is_confirmed, "{what}: {said}");
        assert!(is_confirmed || said.contains("SIGSEGV"), "{what}: {said}");
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
