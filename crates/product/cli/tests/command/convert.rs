//! `convert`: every format to every other and back.

use super::{CLEAN, Folder, RACE};

#[test]
fn text_comes_back_byte_for_byte_through_every_format() {
    let folder = Folder::with("run.std", CLEAN);
    for middle in ["run.rwt", "run.jsonl", "run.std.gz", "run.rwt.zst"] {
        folder.run(&["convert", "run.std", middle]).expect(0);
        folder.run(&["convert", middle, "back.std"]).expect(0);
        assert_eq!(folder.read("back.std"), CLEAN.as_bytes(), "{middle}");
    }
}

#[test]
fn columns_hold_the_same_operations() {
    let folder = Folder::with("run.std", CLEAN);
    folder.run(&["convert", "run.std", "run.trace"]).expect(0);
    let ops = |name: &str| folder.run(&["stats", "--format", "json", name]).json()["ops"].clone();
    assert_eq!(ops("run.trace"), ops("run.std"));
}

#[test]
fn what_the_new_format_does_not_carry_is_said() {
    let text = concat!(
        "{\"semaphore\":\"s\",\"start\":2}\n",
        "{\"thread\":\"T1\",\"op\":\"post\",\"on\":\"s\",\"location\":\"a.c:1\",\"stack\":[\"m.c:9\"]}\n"
    );
    let folder = Folder::with("run.jsonl", text);
    for output in ["run.std", "run.trace"] {
        let said = folder.run(&["convert", "run.jsonl", output]).expect(0).err();
        assert!(said.contains(&format!("{output}: call stacks dropped")), "{said}");
        assert!(said.contains("initial values of semaphores"), "{said}");
    }
    assert_eq!(folder.run(&["convert", "run.jsonl", "run.rwt"]).expect(0).err(), "");
    assert_eq!(folder.run(&["convert", "run.std", "again.trace"]).expect(0).err(), "");
}

#[test]
fn a_dash_is_standard_input_and_output() {
    let folder = Folder::new();
    let binary = folder.run_with(RACE.as_bytes(), &["convert", "-", "-", "--to", "rwt"]).expect(0);
    let text = folder.run_with(binary.bytes(), &["convert", "-", "-"]).expect(0);
    assert_eq!(text.out(), RACE);
    assert!(folder.names().is_empty());
}

#[test]
fn a_name_that_says_no_format_is_refused_before_reading() {
    let folder = Folder::new();
    let ran = folder.run(&["convert", "nowhere.std", "out.txt"]).expect(2);
    assert!(ran.err().contains("out.txt") && ran.err().contains("--to"), "{}", ran.err());
}

#[test]
fn a_file_can_be_converted_onto_itself() {
    let folder = Folder::with("run", RACE);
    folder.run(&["convert", "run", "run", "--to", "rwt"]).expect(0);
    assert_ne!(folder.read("run"), RACE.as_bytes());
    folder.run(&["convert", "run", "run", "--to", "std"]).expect(0);
    assert_eq!(folder.read("run"), RACE.as_bytes());
    assert_eq!(folder.names(), ["run"]);
}

#[test]
fn a_failed_conversion_leaves_the_old_file_as_it_was() {
    let folder = Folder::with("bad.std", "T1|rel(m)|1\n");
    folder.put("out.rwt", "precious");
    folder.run(&["convert", "bad.std", "out.rwt"]).expect(2);
    assert_eq!(folder.read("out.rwt"), b"precious");
    assert_eq!(folder.names(), ["bad.std", "out.rwt"]);
}

/// Two threads that acquire two locks in opposite orders; both request the first and try the
/// second.
const ATTEMPTS: &str = r#"{"waits_are_requested":true}
{"thread":"A","op":"req","on":"l"}
{"thread":"A","op":"acq","on":"l"}
{"thread":"A","op":"acq","on":"m"}
{"thread":"A","op":"rel","on":"m"}
{"thread":"A","op":"rel","on":"l"}
{"thread":"B","op":"req","on":"m"}
{"thread":"B","op":"acq","on":"m"}
{"thread":"B","op":"acq","on":"l"}
{"thread":"B","op":"rel","on":"l"}
{"thread":"B","op":"rel","on":"m"}
"#;

#[test]
fn a_lock_that_was_tried_does_not_become_one_that_waits() {
    let folder = Folder::with("run.jsonl", ATTEMPTS);
    for file in ["run.rwt", "again.jsonl"] {
        let converted = folder.run(&["convert", "run.jsonl", file]).expect(0);
        assert_eq!(converted.err(), "");
        folder.run(&["deadlocks", file]).expect(0);
    }
    for (file, format) in [("run.std", "std"), ("run.trace", "columns")] {
        let warning = folder.run(&["convert", "run.jsonl", file]).expect(0).err();
        let expected = format!(
            "{file}: the marks of acquires that cannot wait, such as `trylock` (deadlocks may be \
             reported that cannot happen), dropped: the format {format} cannot store them"
        );
        assert!(warning.contains(&expected), "{warning}");
    }
}
