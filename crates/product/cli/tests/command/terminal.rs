//! What is shown on a terminal, by `script`, which makes one.

use std::process::{Command, Stdio};

use super::Folder;

/// A race on a long name, and what else a line needs to be long.
const LONG: &str = "loader|fork(worker)|src/loader.c:10\nloader|w(configuration)|src/loader.c:112\n\
                    worker|acq(configuration_lock)|src/worker.c:20\nworker|r(configuration)|src/worker.c:21\n";

/// What `arguments` print on a terminal of so many columns; nothing without `script`.
fn shown(folder: &Folder, columns: u32, variables: &str, arguments: &str) -> Option<String> {
    let own = env!("CARGO_BIN_EXE_reweave");
    let line = format!("stty cols {columns} rows 50; {variables} {own} {arguments}");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(folder.path("."));
    command.env_remove("CLICOLOR_FORCE").env_remove("NO_COLOR").stdin(Stdio::null());
    let output = command.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"))
}

/// `text` without colours.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut pieces = text.split("\u{1b}[");
    out += pieces.next().unwrap_or("");
    for piece in pieces {
        out += piece.split_once(|letter: char| letter.is_ascii_alphabetic()).map_or("", |it| it.1);
    }
    out
}

#[test]
fn reports_fit_the_terminal_and_commands_stay_whole() {
    let folder = Folder::with("a_rather_long_name_of_a_trace.std", LONG);
    for arguments in ["check a_rather_long_name_of_a_trace.std", "explain *.std R1"] {
        for columns in [50, 80, 200] {
            let Some(text) = shown(&folder, columns, "", arguments) else { return };
            let text = plain(&text);
            assert!(text.contains("R1 race"), "{text}");
            let long = |line: &&str| line.chars().count() > columns as usize;
            let long: Vec<&str> = text.lines().filter(long).collect();
            assert!(long.iter().all(|line| line.contains("reweave explain")), "{long:#?}\n{text}");
        }
    }
    let Some(narrow) = shown(&folder, 60, "", "check *.std") else { return };
    assert!(plain(&narrow).contains("  thread\n"), "{narrow}");
    let Some(wide) = shown(&folder, 200, "", "check *.std") else { return };
    let piped = folder.run(&["check", "a_rather_long_name_of_a_trace.std"]).expect(66).out();
    assert_eq!(plain(&wide), piped);
}

#[test]
fn places_are_links_where_that_is_asked_for() {
    let folder = Folder::with("race.std", super::RACE);
    folder.put("a.c", "int x;\n");
    let links = |variables| {
        Some(shown(&folder, 80, variables, "check race.std")?.contains("\u{1b}]8;;file://"))
    };
    let Some(always) = links("REWEAVE_HYPERLINKS=always") else { return };
    assert!(always);
    assert_eq!(links("REWEAVE_HYPERLINKS=never TERM=xterm-kitty"), Some(false));
    assert_eq!(links("TERM=xterm-kitty TERM_PROGRAM= VTE_VERSION="), Some(true));
    let piped = folder.command(&["check", "race.std"]).env("REWEAVE_HYPERLINKS", "always").output();
    assert!(!piped.unwrap().stdout.contains(&0x1b));
}
