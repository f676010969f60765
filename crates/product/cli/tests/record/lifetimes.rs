//! Memory that one thread frees and another uses.

use super::harness::{Workshop, compilers};

const WITH: [&str; 2] = ["--with", "lifetimes"];

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
                    assert_eq!(folder.findings_with(&WITH), [] as [&str; 0], "{case}");
                    folder.record(&["--seed", seed], &["lifetimes", how]).must_be_whole();
                    assert_eq!(folder.findings_with(&WITH), ["use-after-free"], "{case}");
                }
                if how != "pages" {
                    let words = ["confirm", "run.rwt", "U1"];
                    let words = [&words[..], &WITH, &["--", "./lifetimes", how]].concat();
                    let said = folder.reweave(&words).stdout;
                    let said = String::from_utf8_lossy(&said);
                    assert!(said.contains("confirmed: 1 of 1"), "{compiler} {level} {how}: {said}");
                }
            }
        }
    }
}
