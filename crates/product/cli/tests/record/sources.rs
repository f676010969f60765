//! Source code that lies elsewhere than where the program ran: builds out of tree, workspaces, folders
//! that were moved; and what files are called in reports for code scanners.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{compilers, has, next_lines, typed};

const RACE: &str = include_str!("../../../../../examples/hidden_race.c");

/// A folder for everything.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn put(&self, name: &str, content: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn text(&self, name: &str) -> String {
        self.0.path().canonicalize().unwrap().join(name).display().to_string()
    }

    /// A command that runs in the folder `at`.
    fn command(&self, at: &str, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path().join(at)).env("REWEAVE_CACHE", self.text("cache"));
        for name in ["REWEAVE_CC", "CLICOLOR_FORCE", "CARGO_TARGET_DIR", "RUSTFLAGS"] {
            command.env_remove(name);
        }
        command
    }

    fn reweave(&self, at: &str, arguments: &[&str]) -> Output {
        self.command(at, env!("CARGO_BIN_EXE_reweave")).args(arguments).output().unwrap()
    }

    /// What `check` with `options` prints in the folder `at`.
    fn check(&self, at: &str, options: &[&str]) -> String {
        let ran = self.reweave(at, &[&["check"], options].concat());
        assert_eq!(ran.status.code(), Some(66), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    /// A project whose program was built and recorded in the folder `project/build`.
    fn built_out_of_tree() -> Option<Self> {
        let compiler = compilers("c").first().copied()?;
        let place = Self::new();
        place.put("project/src/bank.c", RACE);
        place.put("project/build/empty", "");
        let words = ["cc", compiler, "-g", "-pthread", "../src/bank.c", "-o", "bank"];
        let built = place.reweave("project/build", &words);
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let ran = place.reweave("project/build", &["record", "--", "./bank"]);
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        Some(place)
    }
}

/// Whether a text report shows the line of the race.
fn shows_code(report: &str) -> bool {
    report.contains("balance += 50;")
}

/// The files of the results of a SARIF report.
fn files(report: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(report).unwrap();
    let results = report["runs"][0]["results"].as_array().unwrap().iter();
    let uri =
        |it: &Value| it["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].clone();
    results.map(|result| uri(result).as_str().unwrap().to_owned()).collect()
}

#[test]
fn code_of_a_build_out_of_tree_is_shown_from_any_folder() {
    let Some(place) = Place::built_out_of_tree() else { return };
    for (at, trace) in [
        ("project/build", "bank.rwt"),
        ("project", "build/bank.rwt"),
        ("", "project/build/bank.rwt"),
    ] {
        let report = place.check(at, &[trace]);
        assert!(shows_code(&report), "{at}: {report}");
    }
}

#[test]
fn code_that_was_moved_is_found_where_the_options_say() {
    let Some(place) = Place::built_out_of_tree() else { return };
    fs::rename(place.0.path().join("project/src"), place.0.path().join("moved")).unwrap();
    let (trace, old) = ("project/build/bank.rwt", place.text("project/src"));
    assert!(!shows_code(&place.check("", &[trace])));
    assert!(shows_code(&place.check("", &[trace, "--source", "moved"])));
    let remap = format!("{old}=moved");
    let report = place.check("", &[trace, "--remap", &remap]);
    assert!(shows_code(&report) && report.contains(" at moved/bank.c:19 in deposit"), "{report}");
    // What is printed shows the same.
    for line in next_lines(&report).iter().filter(|line| line.contains(" explain ")) {
        let explained = typed(place.command("", "sh"), line);
        let text = String::from_utf8_lossy(&explained.stdout).into_owned();
        assert!(shows_code(&text) && text.contains("moved/bank.c:19"), "{line}: {text}");
    }
}

#[test]
fn machines_are_told_names_from_the_root_of_the_repository() {
    let Some(place) = Place::built_out_of_tree() else { return };
    let trace = place.text("project/build/bank.rwt");
    let sarif = |at: &str| files(&place.check(at, &[&trace, "--format", "sarif"]));
    let absolute = format!("file://{}", place.text("project/src/bank.c"));
    assert_eq!(sarif("project/build"), [absolute]);
    fs::create_dir(place.0.path().join("project/.git")).unwrap();
    for at in ["", "project", "project/build"] {
        assert_eq!(sarif(at), ["src/bank.c"], "{at}");
    }
    let github = place.check("project/build", &[&trace, "--format", "github"]);
    assert!(github.contains("::error file=src/bank.c,line=19,"), "{github}");
    // A file of another repository is none of this one.
    fs::create_dir_all(place.0.path().join("other/.git")).unwrap();
    assert_eq!(sarif("other").len(), 1);
    assert!(sarif("other")[0].starts_with("file:///"));
}

const LIBRARY: &str = "
use std::sync::Mutex;
use std::thread;

pub static mut BALANCE: i32 = 0;
static LOCK: Mutex<()> = Mutex::new(());

pub fn deposit() {
    let _guard = LOCK.lock().unwrap();
    unsafe { BALANCE += 50 };
}

pub fn audit() {
    drop(LOCK.lock().unwrap());
    unsafe { BALANCE -= 1 };
}

#[test]
fn both() {
    let first = thread::spawn(deposit);
    let second = thread::spawn(audit);
    first.join().unwrap();
    second.join().unwrap();
}
";

#[test]
fn tests_of_members_of_a_workspace_are_found_and_run_again() {
    if !has("cargo") || !has("cc") {
        return;
    }
    let place = Place::new();
    place.put("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n");
    place.put("crates/bank/Cargo.toml", "[package]\nname = \"bank\"\nedition = \"2021\"\n");
    place.put("crates/bank/src/lib.rs", LIBRARY);
    fs::create_dir(place.0.path().join(".git")).unwrap();
    let ran = place.reweave("", &["cargo", "test", "--offline", "--lib"]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let report = place.check("", &["bank-test.rwt"]);
    assert!(report.contains("unsafe { BALANCE += 50 };"), "{report}");
    for line in next_lines(&report) {
        assert!(!line.contains("CMD"), "{line}");
        let ran = typed(place.command("", "sh"), &line);
        let code = if line.contains(" confirm ") { 66 } else { 0 };
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(code), "{line}: {said}");
    }
    let sarif = place.check("crates", &["../bank-test.rwt", "--format", "sarif"]);
    assert_eq!(files(&sarif), ["crates/bank/src/lib.rs"]);
}
