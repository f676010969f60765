//! Mutexes, conditions, threads, memory, files and signal handlers that the recorded run misuses.

use super::harness::{Workshop, compilers};

/// How they are misused, and what is said of it.
const WAYS: [(&str, &str); 16] = [
    ("free", "main releases mutex, which nobody holds at misuse.c:32"),
    ("other", "T1 releases mutex, which main holds at misuse.c:19"),
    ("destroy", "which main holds at misuse.c:52"),
    ("wait", "main waits with mutex, which nobody holds at misuse.c:58"),
    ("leak", "main creates T1, which ends and is neither joined nor detached at misuse.c:64"),
    ("twice", "main frees memory that T1 has freed at misuse.c:81"),
    ("early", "main reads memory that T1 has freed at misuse.c:144"),
    ("destroyed", "which T1 has destroyed at misuse.c:109"),
    ("closed", "which T1 has closed at misuse.c:113"),
    (
        "handler",
        "main calls what is not async-signal-safe in a handler of a signal at misuse.c:119",
    ),
    ("joined", "main joins T1, which T2 has joined at misuse.c:166"),
    ("rejoined", "main joins T1, which main has joined at misuse.c:166"),
    ("redetached", "main detaches T1, which is detached at misuse.c:182"),
    ("joined_detached", "main joins T1, which is detached at misuse.c:166"),
    ("detached_joined", "main detaches T1, which main has joined at misuse.c:182"),
    ("signalled", "main uses the handle of T1, which main has joined at misuse.c:183"),
];

#[test]
fn misuse_is_reported_where_it_happened() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["misuse.c"]);
        for level in ["-O0", "-O2"] {
            folder.build("misuse.c", compiler, &[level]);
            for (how, said) in WAYS {
                let case = format!("{compiler} {level} {how}");
                folder.record(&[], &["misuse", how, "right"]).must_be_whole();
                assert_eq!(folder.findings(), [] as [&str; 0], "{case}");
                // It may be undone, but nothing is called a race because of it.
                folder.record(&[], &["misuse", how]);
                assert_eq!(folder.findings(), ["misuse"], "{case}");
                let shown = folder.reweave(&["check", "run.rwt"]).stdout;
                let shown = String::from_utf8_lossy(&shown);
                assert!(shown.contains(said), "{case}: {shown}");
            }
        }
    }
}

/// What looks like misuse and is none.
const NONE: [&str; 7] =
    ["cached", "contended", "by_writing", "checked", "ended", "cookie", "handles"];

#[test]
fn what_is_no_misuse_is_not_reported() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["no_misuse.c"]);
        folder.build("no_misuse.c", compiler, &["-O1"]);
        for how in NONE {
            for seed in ["1", "2", "3", "4"] {
                folder.record(&["--seed", seed], &["no_misuse", how]);
                assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {how} {seed}");
            }
        }
    }
}

#[test]
fn memory_that_the_c_library_allocates_again_is_not_freed() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["reused_memory.c"]);
        for level in ["-O0", "-O2"] {
            folder.build("reused_memory.c", compiler, &[level]);
            folder.record(&[], &["reused_memory"]).must_be_whole();
            assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {level}");
        }
    }
}
