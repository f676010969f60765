//! Commands that a recording holds: printed so that they can be typed, and run only where they are the
//! user's own.

use std::fs;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::harness::{Workshop, compilers, next_lines, typed};

/// A folder with a program with a race, recorded there with arguments and a variable.
fn recorded() -> Option<Workshop> {
    let compiler = compilers("c").first().copied()?;
    let workshop = Workshop::with(&[]);
    workshop.put("bank.c", include_str!("../../../../../examples/hidden_race.c"));
    workshop.build("bank.c", compiler, &[]);
    let mut command = workshop.command(env!("CARGO_BIN_EXE_reweave"));
    command.args(["record", "--keep-env", "WORDS", "--seed", "3", "-o", "run.rwt", "--"]);
    let ran = command.args(["./bank", "a b", "it's"]).env("WORDS", "x y").output().unwrap();
    assert!(ran.status.success(), "{}", said(&ran));
    Some(workshop)
}

fn said(ran: &Output) -> String {
    [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// What `arguments` do where `cache` is the user's, with nobody at a terminal.
fn run_as(workshop: &Workshop, cache: &str, arguments: &[&str]) -> Output {
    let mut command = workshop.command(env!("CARGO_BIN_EXE_reweave"));
    command.args(arguments).env("REWEAVE_CACHE", workshop.path(cache)).stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn a_recording_holds_what_makes_the_run_again() {
    let Some(workshop) = recorded() else { return };
    let stats = workshop.reweave(&["stats", "run.rwt", "--format", "json"]);
    let stats: Value = serde_json::from_slice(&stats.stdout).unwrap();
    let start = &stats["trace"]["recorded"];
    let folder = workshop.path(".").canonicalize().unwrap();
    assert_eq!(start["command"], serde_json::json!(["./bank", "a b", "it's"]));
    assert_eq!(start["environment"], serde_json::json!({ "WORDS": "x y" }));
    assert_eq!(start["options"], serde_json::json!(["--keep-env", "WORDS"]));
    assert_eq!(start["folder"], folder.to_str().unwrap());
    assert_eq!(start["program"], folder.join("bank").to_str().unwrap());
    assert_eq!((&start["seed"], &start["mode"]), (&Value::from(3), &Value::from("serial")));
    assert!(start["tool"].as_str().unwrap().starts_with("reweave "), "{start}");
    let text = said(&workshop.reweave(&["stats", "run.rwt"]));
    assert!(text.contains("  command    ./bank 'a b' 'it'\\''s'\n"), "{text}");
    // Nothing of the environment that nobody asked for.
    let bytes = fs::read(workshop.path("run.rwt")).unwrap();
    let path = std::env::var("PATH").unwrap();
    assert!(!bytes.windows(path.len()).any(|window| window == path.as_bytes()));
}

#[test]
fn what_is_printed_works_from_another_folder_too() {
    let Some(workshop) = recorded() else { return };
    fs::create_dir(workshop.path("other")).unwrap();
    let command = |program: &str| {
        let mut command = workshop.command(program);
        command.current_dir(workshop.path("other"));
        command
    };
    let report = command(env!("CARGO_BIN_EXE_reweave")).args(["check", "../run.rwt"]).output();
    let lines = next_lines(&said(&report.unwrap()));
    let confirm = lines.iter().find(|line| line.contains("reweave confirm ")).unwrap();
    assert!(confirm.starts_with("WORDS='x y' reweave confirm ../run.rwt R1 --directory "));
    let ran = typed(command("sh"), confirm);
    assert_eq!(ran.status.code(), Some(66), "{}", said(&ran));
}

#[test]
fn the_recorded_command_of_this_user_is_run_unasked() {
    let Some(workshop) = recorded() else { return };
    let ran = run_as(&workshop, "cache", &["confirm", "run.rwt", "R1"]);
    assert_eq!(ran.status.code(), Some(66), "{}", said(&ran));
    assert!(said(&ran).contains("recorded command: WORDS='x y' ./bank 'a b' 'it'\\''s' (in "));
    let ran = run_as(&workshop, "cache", &["check", "run.rwt", "--confirm"]);
    assert!(said(&ran).contains("confirmed: 1 of 1"), "{}", said(&ran));
}

#[test]
fn the_recorded_command_of_a_stranger_is_not_run() {
    let Some(workshop) = recorded() else { return };
    // Whoever has another cache has not recorded it.
    for arguments in [&["confirm", "run.rwt", "R1"][..], &["check", "run.rwt", "--confirm"]] {
        let ran = run_as(&workshop, "cache of another", arguments);
        assert_eq!(ran.status.code(), Some(2), "{}", said(&ran));
        assert!(said(&ran).contains("not recorded by you"), "{}", said(&ran));
        assert!(said(&ran).contains("add `--yes`, or type the command: WORDS='x y' reweave "));
        assert!(!said(&ran).contains("confirmed"), "{}", said(&ran));
    }
    // What is printed to be typed next does not start it either.
    let next = |cache: &str| next_lines(&said(&run_as(&workshop, cache, &["check", "run.rwt"])));
    assert!(next("cache of another").contains(&"reweave confirm run.rwt R1".to_owned()));
    let own = "WORDS='x y' reweave confirm run.rwt R1 -- ./bank 'a b' 'it'\\''s'".to_owned();
    assert!(next("cache").contains(&own), "{:?}", next("cache"));
    let ran = run_as(&workshop, "cache of another", &["confirm", "run.rwt", "R1", "--yes"]);
    assert_eq!(ran.status.code(), Some(66), "{}", said(&ran));
}

#[test]
fn a_program_that_was_changed_since_is_not_run_unasked() {
    let Some(workshop) = recorded() else { return };
    let mut program = fs::read(workshop.path("bank")).unwrap();
    // The build id is the end of its note.
    let note = b"\x03\0\0\0GNU\0";
    let at = program.windows(note.len()).position(|window| window == note).unwrap();
    program[at + note.len()] ^= 1;
    fs::remove_file(workshop.path("bank")).unwrap();
    fs::write(workshop.path("bank"), program).unwrap();
    let ran = run_as(&workshop, "cache", &["confirm", "run.rwt", "R1"]);
    assert_eq!(ran.status.code(), Some(2), "{}", said(&ran));
    assert!(said(&ran).contains("is not the build that was recorded"), "{}", said(&ran));
}

#[test]
fn nothing_but_the_command_line_allows_to_run_a_recorded_command() {
    let Some(workshop) = recorded() else { return };
    workshop.put("reweave.toml", "[confirm]\nyes = true\n");
    let ran = run_as(&workshop, "cache of another", &["confirm", "run.rwt", "R1"]);
    assert_eq!(ran.status.code(), Some(2), "{}", said(&ran));
}

#[test]
fn a_trace_without_a_command_says_so() {
    let Some(workshop) = recorded() else { return };
    workshop.put("a.std", "T1|w(x)|a.c:1\nT2|w(x)|b.c:2\n");
    let ran = workshop.reweave(&["confirm", "a.std", "R1"]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(said(&ran).contains("type it after `--`: reweave confirm a.std R1 -- ./program"));
}
