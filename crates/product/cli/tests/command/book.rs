//! What the book and the README show is what the command prints.
//!
//! Every command that a page shows is run, in order, and its output compared; [`page`] says how pages
//! are written. After a change of what is printed, `UPDATE_EXPECT=1 cargo test -p reweave-cli --test
//! command book` writes the new output into the pages.

mod newcomer;
mod page;
mod run;
mod shown;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use reweave_format::Format;

use super::Folder;

/// The text of a chapter.
fn chapter(name: &str) -> String {
    let path = run::root().join("book/src").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages below `folder`, with their paths.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let below = entries.map(|entry| entry.expect("entries can be read").path());
    let mut pages: Vec<PathBuf> = below
        .flat_map(|path| if path.is_dir() { pages(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect();
    pages.sort();
    pages
}

#[test]
fn the_book_shows_what_is_printed() {
    let pages = pages(&run::root().join("book/src"));
    let waiting = Mutex::new(pages.iter());
    let next = || waiting.lock().expect("nobody panics").next();
    let work = || std::iter::from_fn(next).map(|path| run::page(path)).collect::<Vec<_>>();
    let results: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().flat_map(|it| it.join().expect("a page is run")).collect()
    });
    let mut faults: Vec<String> = results.iter().filter_map(|it| it.clone().err()).collect();
    faults.sort();
    let how = "UPDATE_EXPECT=1 writes what is printed into the pages";
    assert!(faults.is_empty(), "{}\n\n{how}", faults.join("\n\n"));
    let commands: usize = results.into_iter().flatten().sum();
    assert!(commands > 25, "the book has only {commands} commands that can be run here");
}

#[test]
fn the_chapter_of_an_analysis_says_all_that_a_reader_asks() {
    let chapters = [
        "races",
        "deadlocks",
        "lifetimes",
        "atomicity",
        "determinism",
        "states",
        "predicates",
        "ndseq",
        "intervals",
    ];
    for name in chapters {
        let text = chapter(&format!("{name}.md"));
        assert!(text.contains("```console\n$ reweave "), "{name}: an example");
        for heading in ["Options", "What is promised", "Limits", "Papers"] {
            assert!(text.contains(&format!("\n## {heading}\n")), "{name}: {heading}");
        }
    }
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
fn the_reference_shows_the_json_of_the_first_trace() {
    let folder = started(&chapter("getting-started.md"));
    let mut report = folder.run(&["check", "--format", "json", "ready.std"]).expect(66).json();
    report["findings"][0]["message"] = "…".into();
    for text in ["why", "fix"] {
        for paragraph in report["findings"][0][text].as_array_mut().expect("it is a list") {
            *paragraph = "…".into();
        }
    }
    report["tool"]["version"] = "…".into();
    let start = "{ \"schema\"";
    let shown = start.to_owned() + &block(&chapter("commands.md"), start);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), report);
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
    let readme = std::fs::read_to_string(run::root().join("README.md")).unwrap();
    let folder = Folder::new();
    let mut cases = Vec::new();
    for case in reweave_testkit::corpus::litmus() {
        let name = format!("{}.rwt", case.name);
        reweave_format::write(&case.trace(), &folder.path(&name), Format::Rwt, None).unwrap();
        cases.push(name);
    }
    assert!(readme.contains(&format!("On the {} litmus cases", cases.len())));
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
            let option = word.trim_end_matches([',', '.']);
            assert!(option == "--help" || reference.contains(option), "{command:?} {option}");
        }
    }
}
