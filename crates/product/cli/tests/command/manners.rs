//! Help, usage errors, the list, and readers who leave early.

use std::io::Read as _;
use std::process::Stdio;

use super::Folder;

#[test]
fn every_command_has_help_with_an_example() {
    let folder = Folder::new();
    for command in super::COMMANDS {
        let help = folder.run(&[command, "--help"]).expect(0).out();
        assert!(
            help.contains("Usage: reweave ") && help.contains("Example:\n  reweave "),
            "{help}"
        );
        let overview = folder.run(&["--help"]).expect(0).out();
        assert!(overview.contains(&format!("\n  {command} ")), "{overview}");
    }
}

#[test]
fn verbose_shows_stages_and_given_twice_their_details() {
    let folder = Folder::with("race.std", super::RACE);
    let plain = folder.run(&["check", "race.std"]).expect(66);
    assert_eq!(plain.err(), "");
    let stages = folder.run(&["-v", "check", "race.std"]).expect(66);
    for stage in ["read file=race.std ", "analyse analysis=races.exact (", "write report "] {
        assert!(stages.err().contains(&format!("reweave: {stage}")), "{}", stages.err());
    }
    assert!(stages.err().lines().all(|line| line.ends_with(" ms)") || line.ends_with(" s)")));
    assert_eq!(stages.out(), plain.out());
    let details = folder.run(&["check", "-vv", "race.std"]).expect(66);
    for detail in ["check schedule steps=", "accepted=true (", "races.exact: pairs 1"] {
        assert!(details.err().contains(detail), "{}", details.err());
        assert!(!stages.err().contains(detail), "{}", stages.err());
    }
}

#[test]
fn bad_usage_exits_with_2() {
    let folder = Folder::new();
    let wrong: [&[&str]; 6] = [
        &[],
        &["chekc"],
        &["check"],
        &["check", "--threads", "0", "x"],
        &["generate", "--threads", "0"],
        &["stats", "--format", "html", "x"],
    ];
    for arguments in wrong {
        let ran = folder.run(arguments).expect(2);
        assert!(ran.out().is_empty() && !ran.err().is_empty(), "{arguments:?}");
    }
}

#[test]
fn what_looks_at_programs_is_named_where_traces_are_looked_at() {
    let folder = Folder::new();
    let said = |arguments: &[&str]| folder.run(arguments).expect(2).err();
    for name in ["ndseq", "intervals"] {
        let text = said(&["check", "--with", name, "x"]);
        assert!(text.contains(&format!("`{name}` looks at programs")));
    }
}

#[test]
fn the_list_names_every_analysis_with_its_guarantee() {
    let folder = Folder::new();
    let text = folder.run(&["list"]).expect(0).out();
    let json = folder.run(&["list", "--format", "json"]).expect(0).json();
    let analyses = json["analyses"].as_array().unwrap();
    assert_eq!(text.lines().count(), analyses.len());
    for (line, analysis) in text.lines().zip(analyses) {
        for field in ["name", "kind", "guarantee", "summary", "paper"] {
            assert!(line.contains(analysis[field].as_str().unwrap()), "{line}");
        }
        assert_eq!(line.contains(" default "), analysis["default"] == true, "{line}");
    }
    assert_eq!(json["analyses"][0]["name"], "races.exact");
    assert_eq!(json["analyses"][0]["guarantee"], "witnessed");
    assert_eq!(json["analyses"][0]["needs"], "events");
    assert_eq!(json["analyses"][0]["default"], true);
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    let folder = Folder::new();
    let mut command = folder.command(&["generate", "--events", "200000"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn output_that_is_not_a_terminal_has_no_colours() {
    let folder = Folder::with("race.std", super::RACE);
    let ran = folder.run(&["check", "race.std"]).expect(66);
    assert!(!ran.out().contains('\u{1b}'));
    let mut command = folder.command(&["check", "race.std"]);
    let coloured = command.env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(String::from_utf8(coloured.stdout).unwrap().contains('\u{1b}'));
}
