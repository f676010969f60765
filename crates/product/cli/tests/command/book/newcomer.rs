//! A newcomer with a C program and the README: how far do they get, and how much do they type?

use std::fs;

use super::{block, run};
use crate::Folder;

/// Five minutes of slow typing.
const TYPED_MAX: usize = 600;

/// The first block of the README's section `heading`.
fn shown(heading: &str) -> String {
    let readme = fs::read_to_string(run::root().join("README.md")).expect("there is a README");
    let section = readme.split("\n## ").find(|it| it.starts_with(&format!("{heading}\n")));
    block(section.expect("the README has the section"), "")
}

/// The commands of the section on one's own program, without what stands behind `#`.
fn commands() -> Vec<String> {
    let lines = shown("Your own program");
    let commands = lines.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
    commands.filter(|command| !command.is_empty()).map(str::to_owned).collect()
}

#[test]
#[allow(clippy::print_stdout, reason = "how much there is to type is what is asked")]
fn a_newcomer_gets_to_an_explained_and_confirmed_race_in_five_minutes() {
    let commands = commands();
    let typed: usize = commands.iter().map(|command| command.chars().count() + 1).sum();
    println!("{} commands, {typed} characters typed", commands.len());
    assert!(typed < TYPED_MAX, "{typed} characters typed");
    if !run::has("cc", "the README") {
        return;
    }
    let folder = Folder::new();
    fs::create_dir(folder.path("examples")).unwrap();
    let program = "examples/hidden_race.c";
    fs::copy(run::root().join(program), folder.path(program)).unwrap();
    let mut printed = String::new();
    // What is installed is what the tests were built with.
    for command in commands.iter().filter(|command| !command.starts_with("cargo install ")) {
        printed += &format!("$ {command}\n{}", run::printed(&folder.path(""), command));
    }
    let told = [
        "balance 149 after 1 audit",
        "→ hidden_race.rwt",
        "R1 race  witnessed",
        "[exit 66]",
        "Why it is a fault",
        "confirmed: 1 of 1",
    ];
    let mut rest = printed.as_str();
    for words in told {
        let Some((_, after)) = rest.split_once(words) else {
            panic!("`{words}` is not said, or not in this order:\n{printed}");
        };
        rest = after;
    }
}

/// Runs what the README shows under `heading`, with the command that was built.
fn printed(heading: &str) -> String {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("corpus/programs/intervals")).expect("there is room");
    for name in ["lost_update.rw", "fig1.rw", "intervals/bank1.rw"] {
        let name = format!("corpus/programs/{name}");
        fs::copy(run::root().join(&name), folder.path(&name)).expect("the program is there");
    }
    let script = shown(heading).replace("cargo run --release -- ", "reweave ");
    assert!(!script.contains("cargo"), "{script}");
    run::printed(&folder.path(""), &script)
}

#[test]
fn a_trace_of_ones_own_and_the_programs_do_what_the_readme_says() {
    let trace = printed("Your own trace");
    assert!(trace.contains("R1 race  witnessed  races.exact"), "{trace}");
    assert!(trace.contains("R1 race  witnessed  races.hb"), "{trace}");
    let programs = printed("A program to try things on");
    for words in ["outcomes of all schedules", "`if (*)`", "proved"] {
        assert!(programs.contains(words), "{programs}");
    }
    assert!(![trace, programs].iter().any(|it| it.contains("reweave: ")), "an error is printed");
}
