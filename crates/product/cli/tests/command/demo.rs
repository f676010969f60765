//! `demo`: works anywhere, and says true things.

use super::{Folder, Ran};

/// The demo, with a compiler of that name; `cc` if it is none.
fn demo(folder: &Folder, compiler: Option<&str>, arguments: &[&str]) -> Ran {
    let mut command = folder.command(&[&["demo"], arguments].concat());
    let cache = tempfile::tempdir().expect("a folder for the cache");
    command.env("REWEAVE_CACHE", cache.path()).env_remove("REWEAVE_CC");
    command.envs(compiler.map(|compiler| ("REWEAVE_CC", compiler)));
    Ran(command.output().expect("the command starts"))
}

const MISSING: Option<&str> = Some("no-such-compiler");

#[test]
fn without_a_compiler_a_bundled_run_is_looked_at() {
    let folder = Folder::new();
    let ran = demo(&folder, MISSING, &[]).expect(66);
    let out = ran.out();
    assert!(out.contains("reports for this run:\nnothing found."), "{out}");
    assert!(out.contains("D1 deadlock  witnessed"), "{out}");
    assert!(out.contains("R1 race  witnessed"), "{out}");
    let said = ran.err();
    assert!(said.contains("a bundled trace") && said.contains("no-such-compiler"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.ends_with("Report written to reweave-demo.html\n"), "{said}");
    let page = String::from_utf8(folder.read("reweave-demo.html")).unwrap();
    assert_eq!(page.matches("<article").count(), 2);
}

#[test]
fn with_a_compiler_a_real_program_is_recorded_and_the_race_happens() {
    let folder = Folder::new();
    let ran = demo(&folder, None, &[]).expect(66);
    let (out, said) = (ran.out(), ran.err());
    assert!(out.contains("reports for this run:\nnothing found."), "{out}");
    assert!(out.contains("R1 race  witnessed"), "{out}");
    if said.contains("a bundled trace") {
        skip(&said);
        return;
    }
    assert!(out.contains("It printed: balance 149 after 1 audit"), "{out}");
    assert!(out.contains("`w(balance)` at hidden_race.c:19"), "{out}");
    assert!(out.contains("confirmed: "), "{out}");
    assert_eq!(said, "Report written to reweave-demo.html\n");
    let page = String::from_utf8(folder.read("reweave-demo.html")).unwrap();
    assert_eq!(page.matches("<article").count(), 1);
    assert!(page.contains("confirmed"));
}

#[allow(clippy::print_stderr, reason = "whoever runs the tests must see what was not tried")]
fn skip(said: &str) {
    eprintln!("skipped: {said}");
}

#[test]
fn a_page_on_standard_output_stands_there_alone() {
    let folder = Folder::new();
    for compiler in [MISSING, None] {
        let ran = demo(&folder, compiler, &["-o", "-"]).expect(66);
        assert!(ran.out().starts_with("<!doctype html>") && ran.out().ends_with("</html>\n"));
        assert!(ran.err().contains("nothing found."), "{}", ran.err());
        assert!(folder.names().is_empty());
    }
}

#[test]
fn it_goes_on_where_it_cannot_write() {
    let folder = Folder::new();
    let ran = demo(&folder, MISSING, &["-o", "no/such/folder/page.html"]).expect(66);
    assert!(ran.out().contains("R1 race"));
    assert!(ran.err().contains("No report was written"), "{}", ran.err());
    assert!(folder.names().is_empty());
}
