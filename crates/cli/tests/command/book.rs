//! What the book shows is what the command prints.

use std::path::Path;

use reweave_format::Format;

use super::Folder;

/// The text of a chapter.
fn chapter(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/src").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What stands between the fences of each block of `text`.
fn blocks(text: &str) -> Vec<String> {
    let fenced = text.split("```").skip(1).step_by(2);
    fenced.filter_map(|block| block.split_once('\n')).map(|(_, body)| body.to_owned()).collect()
}

/// The block of `text` that starts with `start`, without it.
#[track_caller]
fn block(text: &str, start: &str) -> String {
    let found = blocks(text).into_iter().find_map(|it| it.strip_prefix(start).map(str::to_owned));
    found.unwrap_or_else(|| panic!("no block starts with {start}"))
}

const FIRST_EVENT: &str = "main|fork(worker)|app.c:10\n";

/// A folder with the trace of the chapter on how to get started.
fn started(text: &str) -> Folder {
    Folder::with("ready.std", FIRST_EVENT.to_owned() + &block(text, FIRST_EVENT))
}

#[test]
fn the_first_trace_gives_what_the_chapter_shows() {
    let text = chapter("getting-started.md");
    let folder = started(&text);
    let ran = folder.run(&["check", "ready.std"]).expect(66);
    assert_eq!(ran.out(), block(&text, "$ reweave check ready.std\n"));
    folder.run(&["convert", "ready.std", "ready.rwt"]).expect(0);
    let columns = folder.run(&["convert", "--to", "columns", "ready.rwt", "-"]).expect(0).out();
    let heading = "main          worker\n";
    assert_eq!(columns.strip_prefix(heading), Some(block(&text, heading).as_str()));
}

#[test]
fn a_refused_trace_is_refused_in_the_words_of_the_chapter() {
    let text = chapter("getting-started.md");
    let folder = Folder::with("bad.std", "T1|acq(m)|1\nT2|acq(m)|2\n");
    let ran = folder.run(&["check", "bad.std"]).expect(2);
    assert_eq!(ran.err(), block(&text, "$ reweave check bad.std\n"));
}

#[test]
fn the_reference_shows_the_json_of_the_first_trace() {
    let folder = started(&chapter("getting-started.md"));
    let mut report = folder.run(&["check", "--format", "json", "ready.std"]).expect(66).json();
    report["findings"][0]["message"] = "…".into();
    let start = "{ \"schema\"";
    let shown = start.to_owned() + &block(&chapter("commands.md"), start);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), report);
}

/// The name and the text of a program whose first line is a comment with its name.
fn named_program(block: &String) -> Option<(&str, &String)> {
    let name = block.strip_prefix("// ")?.lines().next()?;
    name.ends_with(".rw").then_some((name, block))
}

/// Everything that the chapter `name` shows of a run of the command is what it prints; the chapter's
/// traces are in `files`, its first poset, if it has one, in `poset.json`, and its programs in files
/// of the names that they start with.
#[track_caller]
fn shows_what_is_printed(name: &str, files: &[&str]) {
    let text = chapter(name);
    let all = blocks(&text);
    let is_trace = |block: &&String| block.lines().all(|line| line.matches('|').count() > 1);
    let traces: Vec<&String> = all.iter().filter(is_trace).collect();
    let folder = Folder::new();
    for (at, file) in files.iter().enumerate() {
        folder.put(file, traces.get(at).expect("the chapter has a trace for each file"));
    }
    for (name, program) in all.iter().filter_map(named_program) {
        folder.put(name, program);
    }
    if let Some(poset) = all.iter().find(|block| block.starts_with("{\"n\"")) {
        folder.put("poset.json", poset);
    }
    let commands =
        all.iter().filter_map(|block| block.strip_prefix("$ reweave ")?.split_once('\n'));
    let mut count = 0;
    for (command, shown) in commands {
        // What stands in quotes is one argument.
        let parts = command.split('\'').enumerate();
        let words = parts.flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        let arguments: Vec<&str> = words.collect();
        assert_eq!(folder.run(&arguments).out(), shown, "{command}");
        count += 1;
    }
    assert!(count > 0, "{name} shows no command");
}

#[test]
fn the_chapters_on_faults_show_what_is_printed() {
    shows_what_is_printed("races.md", &["handed.std"]);
    shows_what_is_printed("deadlocks.md", &["crossed.std"]);
    shows_what_is_printed("atomicity.md", &["deposit.std"]);
    shows_what_is_printed("determinism.md", &["total.std"]);
    shows_what_is_printed("states.md", &["turns.std", "bank.std"]);
    shows_what_is_printed("explain.md", &["total.std"]);
    shows_what_is_printed("ndseq.md", &[]);
    shows_what_is_printed("language.md", &[]);
    shows_what_is_printed("intervals.md", &[]);
}

/// The row of the relation in the table of the README: its pairs, and how many are proven.
fn row(readme: &str, relation: &str) -> Option<(u64, u64)> {
    let line = readme.lines().find(|line| line.starts_with(&format!("| `{relation}` |")))?;
    let mut cells = line.trim_matches('|').rsplit('|').map(|cell| cell.trim().parse().ok());
    let proven = cells.next()??;
    Some((cells.next()??, proven))
}

#[test]
fn the_table_of_relations_is_what_the_litmus_cases_give() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let folder = Folder::new();
    let mut cases = Vec::new();
    for case in reweave_testkit::corpus::litmus() {
        let name = format!("{}.rwt", case.name);
        reweave_format::write(&case.trace(), &folder.path(&name), Format::Rwt, None).unwrap();
        cases.push(name);
    }
    assert!(readme.contains(&format!("On the {} small cases", cases.len())));
    for relation in ["hb", "shb", "wcp", "cp", "syncp", "exact"] {
        let options = ["races", "--all", "--format", "json", "--relation", relation];
        let cases = cases.iter().map(String::as_str);
        let report = folder.run(&options.into_iter().chain(cases).collect::<Vec<_>>()).json();
        let reports = report.as_array().unwrap();
        let pairs = reports.iter().map(|it| it["coverage"][0]["counters"]["pairs"].as_u64());
        let findings = reports.iter().flat_map(|it| it["findings"].as_array().unwrap());
        let proven = findings.filter(|finding| finding["guarantee"] == "witnessed").count();
        let counted = (pairs.map(Option::unwrap).sum::<u64>(), proven as u64);
        assert_eq!(row(&readme, relation), Some(counted), "{relation}");
    }
}

#[test]
fn the_reference_names_every_option_of_every_command() {
    let reference = chapter("commands.md");
    let families = super::COMMANDS.map(|command| vec![command]);
    let of_states = super::STATES_COMMANDS.map(|command| vec!["states", command]);
    for command in families.into_iter().chain(of_states) {
        let arguments = [&command[..], &["--help"]].concat();
        let help = Folder::new().run(&arguments).expect(0).out();
        for word in help.split_whitespace().filter(|word| word.starts_with("--")) {
            let option = word.trim_end_matches(',');
            assert!(option == "--help" || reference.contains(option), "{command:?} {option}");
        }
    }
}
