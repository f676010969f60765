//! What functions of the C library read and write in the program's memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::expect_file;

use super::harness::{Recorded, Workshop, compilers};

/// The bytes that the thread T1 reads and writes of each variable `r_name` and `w_name`.
fn bytes_by_name(recorded: &Recorded) -> String {
    let names = recorded.trace.names();
    let mut bytes: BTreeMap<(&str, char, char), Vec<u64>> = BTreeMap::new();
    for (_, event) in recorded.trace.events() {
        let Some(var) = event.op.var() else { continue };
        // All are arrays of bytes.
        let whole = names.vars.name(var);
        let (base, offset) = whole.split_once(['+', '[']).unwrap_or((whole, "0"));
        let offset = offset.trim_end_matches(']');
        let Some((side @ ("r" | "w"), name)) = base.split_once('_') else { continue };
        if names.threads.name(event.thread) != "T1" {
            continue;
        }
        let how = if event.op.is_write() { 'w' } else { 'r' };
        let key = (name, side.chars().next().expect("one letter"), how);
        bytes.entry(key).or_default().push(offset.parse().expect("an offset in bytes"));
    }
    let mut text = String::new();
    let mut last = "";
    for ((name, side, how), mut places) in bytes {
        places.sort_unstable();
        places.dedup();
        if name != last {
            let line_end = if last.is_empty() { "" } else { "\n" };
            write!(text, "{line_end}{name}:").expect("text can be written");
            last = name;
        }
        let stretches = places.chunk_by(|first, second| first + 1 == *second);
        let spelled: Vec<String> = stretches
            .map(|stretch| format!("{}..{}", stretch[0], stretch[stretch.len() - 1] + 1))
            .collect();
        write!(text, " {how}({side} {})", spelled.join(" ")).expect("text can be written");
    }
    text + "\n"
}

#[test]
fn what_the_c_library_reads_and_writes_is_the_programs_access() {
    let recorded_by = |compiler: &str| {
        let folder = Workshop::with(&["library_calls.c"]);
        folder.build("library_calls.c", compiler, &["-O1", "-fno-builtin"]);
        let recorded = folder.record_all(&[], &["library_calls"]);
        assert_eq!(recorded.behaviour.code, Some(0), "{}", recorded.said);
        recorded.must_be_whole();
        bytes_by_name(&recorded)
    };
    let all: Vec<String> = compilers("c").into_iter().map(recorded_by).collect();
    let Some(first) = all.first() else { return };
    assert!(all.iter().all(|other| other == first), "{all:#?}");
    // Which bytes of which argument each function reads and writes.
    expect_file!["programs/library_calls.expected"].assert_eq(first);
}
