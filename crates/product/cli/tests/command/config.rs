//! `reweave.toml` and the environment.

use super::{Folder, RACE, Ran};

fn check(folder: &Folder, words: &[&str]) -> Ran {
    folder.run(&[&["check", "race.std"], words].concat())
}

fn is_json(ran: &Ran) -> bool {
    ran.out().starts_with('{')
}

#[test]
fn the_command_line_goes_before_the_environment_and_that_before_the_file() {
    let folder = Folder::with("race.std", RACE);
    folder.put("reweave.toml", "format = \"json\"\nfail-on = [\"deadlock\"]\n");
    assert!(is_json(&check(&folder, &[]).expect(0)));
    assert!(!is_json(&check(&folder, &["--format", "text", "--fail-on", "race"]).expect(66)));
    let with = |words: &[&str]| {
        let words = [&["check", "race.std"], words].concat();
        let mut command = folder.command(&words);
        command.env("REWEAVE_FORMAT", "text").env("REWEAVE_FAIL_ON", "atomicity, race");
        Ran(command.output().unwrap())
    };
    assert!(!is_json(&with(&[]).expect(66)));
    assert!(is_json(&with(&["--format", "json"]).expect(66)));
    // What is said anywhere goes before what the name of the output says.
    assert_eq!(with(&["-o", "page.html"]).expect(66).out(), "");
    assert!(folder.read("page.html").starts_with(b"race.std"));
    assert!(!is_json(&check(&folder, &["--no-config"]).expect(66)));
    let help = folder.run(&["check", "--help"]).expect(0).out();
    assert!(help.contains("[default: json]") && help.contains("[default: deadlock]"), "{help}");
}

#[test]
fn the_nearest_file_above_is_taken_but_not_beyond_the_repository() {
    let folder = Folder::with("reweave.toml", "format = \"json\"\nbaseline = \"known\"\n");
    folder.put("known", "");
    let inner = folder.path("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(inner.join("race.std"), RACE).unwrap();
    let run = || {
        let mut command = folder.command(&["check", "race.std"]);
        Ran(command.current_dir(&inner).output().unwrap())
    };
    // The baseline is found beside the file that names it.
    assert!(is_json(&run().expect(66)));
    std::fs::create_dir(folder.path("a/.git")).unwrap();
    assert!(!is_json(&run().expect(66)));
}

#[test]
fn another_file_can_be_named() {
    let folder = Folder::with("race.std", RACE);
    folder.put("ci.toml", "fail_on = \"none\"\n");
    check(&folder, &["--config", "ci.toml"]).expect(0);
    check(&folder, &["--config=ci.toml"]).expect(0);
    folder.run(&["--config", "ci.toml", "check", "race.std"]).expect(0);
    let mut command = folder.command(&["check", "race.std"]);
    Ran(command.env("REWEAVE_CONFIG", "ci.toml").output().unwrap()).expect(0);
    let gone = check(&folder, &["--config", "gone.toml"]).expect(2).err();
    assert!(gone.starts_with("reweave: cannot read gone.toml"), "{gone}");
}

#[test]
fn sections_speak_of_single_commands() {
    let folder = Folder::with("race.std", RACE);
    folder.put(
        "reweave.toml",
        "threads = 1\n[races]\nrelation = \"hb\"\n[check]\nwith = [\"determinism\"]\nall = true\n\
         [states.count]\nformat = \"json\"\n[states]\nevents = \"raw\"\n",
    );
    let hb = folder.run(&["races", "race.std", "--format", "json"]).expect(66).json();
    assert_eq!(hb["coverage"][0]["analysis"], "races.hb");
    let report = check(&folder, &["--format", "json"]).expect(66).json();
    assert_eq!(report["coverage"][4]["analysis"], "determinism.strict");
    assert_eq!(report["settings"]["all"], true);
    // What is explained is found as `check` finds it.
    let names = report["findings"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap());
    for name in names {
        folder.run(&["explain", "race.std", name]).expect(0);
    }
    folder.put("report.json", report.to_string());
    folder.run(&["explain", "race.std", "R1", "--from", "report.json"]).expect(0);
    let count = folder.run(&["states", "count", "race.std"]).expect(0).json();
    assert_eq!(count["events_of"], "raw");
}

#[test]
fn a_value_that_some_commands_do_not_know_is_for_the_others() {
    let folder = Folder::with("race.std", RACE);
    folder.put("reweave.toml", "format = \"html\"\nlimit = 7\n");
    assert!(check(&folder, &[]).expect(66).out().starts_with("<!"));
    let stats = folder.run(&["stats", "race.std"]).expect(0);
    assert!(stats.out().starts_with("race.std: std"));
}

#[test]
fn what_a_file_gets_wrong_is_pointed_at() {
    let folder = Folder::with("race.std", RACE);
    for (text, said) in [
        ("\nfromat = \"json\"", "2:1: unknown option `fromat`; did you mean `format`?"),
        ("[chekc]\n", "1:2: unknown command `chekc`; did you mean `check`?"),
        ("[cc]\nruntime = \"static\"", "1:2: unknown command `cc`; expected one of"),
        ("[check]\nlimt = 3", "2:1: unknown option `limt`; did you mean `limit`?"),
        (
            "limit = true",
            "1:9: invalid value 'true' for '--limit <value>': expected a whole number",
        ),
        (
            "[check]\nall = 1",
            "2:7: invalid value '1' for '--all <value>' [possible values: true, false]",
        ),
        ("threads = [1, 2]", "1:11: expected one value for `threads`, found 2"),
        ("suppress = [1.5]", "1:13: expected a string, a number or a boolean, found type `float`"),
        (
            "limit = \"many\"",
            "1:9: invalid value 'many' for '--limit <value>': expected a whole number",
        ),
        ("format = \"xml\"", "1:10: invalid value 'xml' for '--format <value>' [possible values:"),
        (
            "sections = true",
            "1:1: `sections` is not an option of all commands; put it in a section such as",
        ),
        ("[check]\noutput = \"x\"", "2:1: unknown option `output`; expected one of all,"),
    ] {
        folder.put("reweave.toml", text);
        let said = format!("reweave: reweave.toml:{said}");
        let found = check(&folder, &[]).expect(2).err();
        assert!(found.starts_with(&said), "{found}{said}");
    }
    for text in ["format = ", "[check", "a = 1\na = 2", "\u{0}", "limit = 99999999999999999999999"]
    {
        folder.put("reweave.toml", text);
        let found = check(&folder, &[]).expect(2).err();
        assert!(found.starts_with("reweave: reweave.toml:"), "{found}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
    folder.put("reweave.toml", b"format = \"\xff\"");
    assert!(check(&folder, &[]).expect(2).err().starts_with("reweave: cannot read reweave.toml"));
}

#[test]
fn a_variable_that_no_option_can_be_worth_is_named() {
    let folder = Folder::with("race.std", RACE);
    let mut command = folder.command(&["check", "race.std"]);
    let ran = Ran(command.env("REWEAVE_LIMIT", "many").output().unwrap()).expect(2);
    let said = "reweave: environment variable REWEAVE_LIMIT: invalid value 'many'";
    assert!(ran.err().starts_with(said), "{}", ran.err());
}

#[test]
fn a_compiler_is_not_stopped_by_a_faulty_file() {
    let folder = Folder::with("reweave.toml", "nonsense");
    folder.run(&["cc", "--help"]).expect(0);
    folder.run(&["man"]).expect(0);
}

#[test]
fn who_asks_what_there_is_is_told_in_spite_of_a_faulty_file() {
    let folder = Folder::with("race.std", RACE);
    folder.put("reweave.toml", "nonsense");
    for line in ["--help", "--version", "help", "check --help", "check -h", "list", "schema"] {
        let words: Vec<&str> = line.split(' ').collect();
        let ran = folder.run(&words).expect(0);
        assert!(ran.err().starts_with("reweave: reweave.toml:1:"), "{line}: {}", ran.err());
        assert_ne!(ran.out(), "", "{line}");
    }
    assert_eq!(folder.run(&["list", "--no-config"]).expect(0).err(), "");
    // Where the file would have counted, its faults do.
    check(&folder, &[]).expect(2);
    folder.run(&["stats", "race.std"]).expect(2);
}

#[test]
fn the_file_that_decides_what_counts_is_always_named() {
    let folder = Folder::with("race.std", RACE);
    folder.put("known", "");
    folder.put("reweave.toml", "limit = 7\n");
    assert_eq!(check(&folder, &[]).expect(66).err(), "");
    folder.put("reweave.toml", "baseline = \"known\"\n[check]\nfail-on = \"none\"\n");
    let said = "reweave: `baseline`, `fail-on` set by reweave.toml\n";
    assert_eq!(check(&folder, &[]).expect(0).err(), said);
    let said = "reweave: `baseline` set by reweave.toml\n";
    assert_eq!(check(&folder, &["--fail-on", "any"]).expect(66).err(), said);
    let mut command = folder.command(&["check", "race.std"]);
    let ran = Ran(command.env("REWEAVE_FAIL_ON", "race").output().unwrap()).expect(66);
    assert_eq!(ran.err(), said);
    assert_eq!(folder.run(&["races", "race.std"]).expect(66).err(), said);
    assert_eq!(folder.run(&["explain", "race.std", "R1"]).expect(0).err(), "");
    assert_eq!(check(&folder, &["--no-config"]).expect(66).err(), "");
}
