//! A newcomer with a C program and the README: how far do they get, and how much do they type?

use std::fs;

use super::{block, run};
use crate::Folder;

/// Five minutes of slow typing.
const TYPED_MAX: usize = 600;

/// The commands of the README's section on one's own program, without what stands behind `#`.
fn commands() -> Vec<String> {
    let readme = fs::read_to_string(run::root().join("README.md")).expect("there is a README");
    let section = readme.split("\n## ").find(|it| it.starts_with("Your own program\n"));
    let lines = block(section.expect("the README has the section"), "");
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
        "kept in hidden_race.rwt",
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
