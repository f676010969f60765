//! Memory that ends in parts, memory that is touched in long ranges, and what programs themselves say
//! of their synchronisation.

use super::harness::{Recorded, Workshop, compilers, has};

/// Records `words`, which must go well in every respect.
#[track_caller]
fn recorded(folder: &Workshop, options: &[&str], words: &[&str]) -> Recorded {
    let recorded = folder.record(options, words);
    assert_eq!(recorded.behaviour.code, Some(0), "{words:?}: {}", recorded.said);
    recorded.must_be_whole();
    recorded
}

/// A flag in memory that lives on stays the same variable, so what it orders stays ordered.
#[test]
fn what_is_left_of_a_mapping_or_a_block_lives_on() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["mappings.c"]);
        folder.build("mappings.c", compiler, &["-O1"]);
        for mode in ["serial", "free"] {
            recorded(&folder, &["--mode", mode], &["mappings"]);
            assert_eq!(folder.findings(), [""; 0], "{compiler}, {mode}");
        }
    }
}

/// Records the annotated program, which has no races but those that it is asked for and declares
/// benign.
#[track_caller]
fn check_annotations(folder: &Workshop, program: &str) {
    for mode in ["serial", "free"] {
        recorded(folder, &["--mode", mode], &[program]);
        assert_eq!(folder.findings(), [""; 0], "{mode}");
    }
    recorded(folder, &[], &[program, "races"]);
    assert!(folder.findings().contains(&"race".to_owned()));
}

#[test]
fn synchronisation_that_a_program_declares_is_seen() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["annotations.c"]);
        for how in [&["-O1"][..], &["--runtime", "static", "-O1"]] {
            folder.build("annotations.c", compiler, how);
            check_annotations(&folder, "annotations");
        }
    }
}

#[test]
fn what_a_program_with_gccs_sanitizer_declares_is_seen() {
    if !has("gcc") {
        return;
    }
    let folder = Workshop::with(&["annotations.c"]);
    folder.put("a.c", "int main(void) { return 0; }");
    let tried = folder.command("gcc").args(["-fsanitize=thread", "a.c", "-o", "a"]).output();
    if !tried.unwrap().status.success() {
        eprintln!("skipped: no libtsan");
        return;
    }
    folder.build_plain("annotations.c", "gcc", "sanitized", &["-fsanitize=thread"]);
    check_annotations(&folder, "sanitized");
}

#[test]
fn a_block_that_is_filled_is_an_event_for_each_range_that_is_accessed_alone() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["fills.c"]);
        folder.build("fills.c", compiler, &["-O1"]);
        let recorded = recorded(&folder, &[], &["fills"]);
        let names = recorded.trace.names();
        let mut ranges: Vec<&str> = names.vars.entries().map(|(_, name)| name).collect();
        ranges.retain(|name| name.contains("#1["));
        ranges.sort_unstable();
        let expected =
            ["char[]#1[0..1048576]", "char[]#1[1048576..2097152]", "char[]#1[2097152..8388608]"];
        assert_eq!(ranges, expected, "{compiler}");
        let is_range = |op: reweave_trace::Op| {
            op.var().is_some_and(|var| names.vars.name(var).contains("[0..1048576]"))
        };
        let fills = recorded.trace.events().filter(|(_, event)| is_range(event.op));
        assert_eq!(fills.count(), 2, "{compiler}");
        assert_eq!(folder.findings(), [""; 0], "{compiler}");
    }
}
