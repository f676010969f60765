//! Every option and every exit code is in the book; scripts for shells and manual pages.

use std::path::Path;
use std::process::Command;

use super::Folder;

fn chapter(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../book/src").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The commands that `help` lists, but for the one that prints help.
fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    let names = lines.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|&name| name != "help").map(str::to_owned).collect()
}

/// Every command with its help, those of commands too.
fn commands(folder: &Folder) -> Vec<(Vec<String>, String)> {
    let mut all = Vec::new();
    let mut ahead = vec![Vec::new()];
    while let Some(path) = ahead.pop() {
        let words: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = folder.run(&words).expect(0).out();
        for name in listed(&help) {
            ahead.push([&path[..], &[name]].concat());
        }
        all.push((path, help));
    }
    all
}

#[test]
fn every_command_has_an_example_and_every_option_is_in_the_book() {
    let folder = Folder::new();
    let book = chapter("commands.md") + &chapter("ci.md");
    let commands = commands(&folder);
    assert!(commands.len() > 25, "{}", commands.len());
    for (path, help) in commands {
        let has_example = help.contains("Example:\n  ") || help.contains("Start with:\n  ");
        assert!(has_example, "{path:?}\n{help}");
        if let Some(name) = path.last() {
            assert!(book.contains(name.as_str()), "{path:?}");
        }
        for word in help.split_whitespace().filter(|word| word.starts_with("--")) {
            let option = word.trim_end_matches([',', '.', ')', '`']);
            let is_usual = ["--help", "--version", "--"].contains(&option);
            assert!(is_usual || book.contains(option), "{path:?} {option}");
        }
    }
}

#[test]
fn every_exit_code_is_in_the_book() {
    for name in ["commands.md", "ci.md"] {
        let text = chapter(name);
        for code in ["0", "1", "2", "3", "66", "70", "130"] {
            assert!(text.contains(&format!("\n| {code} | ")), "{name}: {code}");
        }
    }
}

#[test]
fn every_setting_and_every_variable_is_in_the_chapter() {
    let text = chapter("ci.md");
    let shared = [
        "baseline", "budget", "fail-on", "format", "limit", "remap", "source", "suppress",
        "threads", "work",
    ];
    for name in shared {
        let variable = format!("REWEAVE_{}", name.to_uppercase().replace('-', "_"));
        assert!(text.contains(&format!("| `{name}` | `{variable}` |")), "{name}");
    }
    for name in ["REWEAVE_CONFIG", "NO_COLOR", "CLICOLOR_FORCE"] {
        assert!(text.contains(name), "{name}");
    }
}

/// Whether the shell `name` is here; if not, says what is skipped.
#[allow(clippy::print_stderr, reason = "whoever runs the tests must see what was not tried")]
fn has(name: &str) -> bool {
    let is_here = Command::new(name).arg("--version").output().is_ok();
    if !is_here {
        eprintln!("skipped: no {name} to read its script");
    }
    is_here
}

#[test]
fn shells_take_their_scripts() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.run(&["completions", shell]).expect(0).out();
        for word in ["reweave", "deadlocks", "fail-on", "no-config"] {
            assert!(script.contains(word), "{shell} {word}");
        }
        assert!(!script.contains("reweave-step") && !script.contains("cargo"), "{shell}");
        folder.put(shell, script);
    }
    for shell in ["bash", "zsh", "fish"] {
        if has(shell) {
            let ran = Command::new(shell).arg("-n").arg(folder.path(shell)).output().unwrap();
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(ran.status.success() && said.is_empty(), "{shell}: {said}");
        }
    }
}

#[test]
fn there_is_a_page_for_every_command() {
    let folder = Folder::new();
    let page = folder.run(&["man"]).expect(0).out();
    assert!(page.contains(".TH reweave 1"), "{page}");
    let ran = folder.run(&["man", "-o", "pages/man1"]).expect(0);
    let commands = commands(&folder);
    let count = commands.len() + 1;
    assert_eq!(ran.err(), format!("{count} pages written to pages/man1\n"));
    for (path, _) in commands {
        let name = [&["reweave".to_owned()], &path[..]].concat().join("-");
        let page = folder.read(&format!("pages/man1/{name}.1"));
        let page = String::from_utf8(page).unwrap();
        let usage = path.last().map_or("reweave", String::as_str);
        assert!(page.contains(".SH SYNOPSIS") && page.contains(usage), "{name}: {page}");
    }
    folder.read("pages/man1/cargo-reweave.1");
    let plain = folder.run(&["man", "-o", "pages/man1/reweave.1"]).expect(2);
    assert!(plain.err().starts_with("reweave: cannot create"), "{}", plain.err());
}

#[test]
fn a_file_that_was_renamed_keeps_its_fingerprints_by_remap() {
    let folder = Folder::with("old.std", super::RACE);
    folder.put("new.std", super::RACE.replace("a.c", "src/new.c"));
    let fingerprint = |arguments: &[&str]| {
        let usual = ["check", "--format", "json"];
        let report = folder.run(&[&usual, arguments].concat()).expect(66).json();
        report["findings"][0]["fingerprint"].as_str().unwrap().to_owned()
    };
    assert_eq!(fingerprint(&["old.std"]), fingerprint(&["new.std", "--remap", "src/new.c=a.c"]));
    let wrong = folder.run(&["check", "new.std", "--remap", "src"]).expect(2).err();
    assert!(wrong.contains("expected OLD=NEW, such as /build/src=src"), "{wrong}");
}
