//! What is read is never written over by what comes of it.

use super::{Folder, RACE};

/// Runs the command line on a folder with some inputs, which it must refuse and leave alone.
#[track_caller]
fn refused(line: &str) {
    let folder = Folder::with("run.std", RACE);
    folder.put("known.supp", "race:nowhere\n");
    folder.put("two.rw", "thread main() {\n}\n");
    std::fs::hard_link(folder.path("run.std"), folder.path("twin.std"))
        .expect("files can be linked");
    std::os::unix::fs::symlink("run.std", folder.path("link.std")).expect("files can be linked");
    folder.run(&["check", "run.std", "-o", "report.json"]).expect(66);
    let names = folder.names();
    let before: Vec<Vec<u8>> = names.iter().map(|name| folder.read(name)).collect();
    let words: Vec<&str> = line.split(' ').collect();
    let said = folder.run(&words).expect(2).err();
    assert!(said.contains("would destroy it") && said.lines().count() == 1, "{line}: {said}");
    assert_eq!(folder.names(), names, "{line}");
    let after: Vec<Vec<u8>> = names.iter().map(|name| folder.read(name)).collect();
    assert_eq!(before, after, "{line}");
}

#[test]
fn no_report_takes_the_place_of_its_trace_under_any_name() {
    for output in ["run.std", "./run.std", "link.std", "twin.std"] {
        refused(&format!("check run.std -o {output}"));
    }
    refused("check report.json run.std -o run.std");
    refused("races run.std -o run.std");
    refused("explain run.std R1 -o run.std");
    refused("stats run.std -o run.std");
    refused("states count run.std -o run.std");
    refused("states find run.std --predicate x>1 -o run.std");
    refused("confirm run.std R1 -o run.std -- true");
}

#[test]
fn other_files_that_are_read_are_safe_too() {
    refused("check run.std --suppress known.supp -o known.supp");
    refused("explain run.std R1 --from report.json -o report.json");
    refused("run two.rw --to std -o two.rw");
    refused("ndseq check two.rw -o two.rw");
    refused("intervals two.rw -o two.rw");
    refused("record -o ./two.rw -- ./two.rw");
}

#[test]
fn a_file_that_is_not_read_may_be_written_over() {
    let folder = Folder::with("run.std", RACE);
    for _ in 0..2 {
        folder.run(&["check", "run.std", "-o", "report.txt"]).expect(66);
    }
    folder.run(&["check", "run.std", "-o", "/dev/null"]).expect(66);
}
