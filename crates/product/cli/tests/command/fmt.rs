//! `fmt`: formats programs.

use super::Folder;

const ROUGH: &str = "shared x;main{x=1;}";
const SMOOTH: &str = "shared x;\n\nmain {\n    x = 1;\n}\n";

#[test]
fn files_are_laid_out_in_place_and_nothing_else_is_left_behind() {
    let folder = Folder::with("rough.rw", ROUGH);
    folder.put("smooth.rw", SMOOTH);
    let ran = folder.run(&["fmt", "rough.rw", "smooth.rw"]).expect(0);
    assert!(ran.out().is_empty() && ran.err().is_empty());
    assert_eq!(folder.read("rough.rw"), SMOOTH.as_bytes());
    assert_eq!(folder.read("smooth.rw"), SMOOTH.as_bytes());
    assert_eq!(folder.names(), ["rough.rw", "smooth.rw"]);
}

#[test]
fn what_is_laid_out_already_is_not_written_again() {
    let folder = Folder::with("smooth.rw", SMOOTH);
    let time = || folder.path("smooth.rw").metadata().and_then(|it| it.modified()).unwrap();
    let before = time();
    folder.run(&["fmt", "smooth.rw"]).expect(0);
    assert_eq!(time(), before);
}

#[test]
fn standard_input_goes_to_standard_output() {
    let folder = Folder::new();
    assert_eq!(folder.run_with(ROUGH.as_bytes(), &["fmt", "-"]).expect(0).out(), SMOOTH);
    let twice = folder.run_with(ROUGH.as_bytes(), &["fmt", "-", "-"]).expect(2);
    assert!(twice.err().contains("can be given only once"));
}

#[test]
fn a_check_names_what_differs_and_changes_nothing() {
    let folder = Folder::with("rough.rw", ROUGH);
    folder.put("smooth.rw", SMOOTH);
    let ran = folder.run(&["fmt", "--check", "smooth.rw", "rough.rw"]).expect(1);
    assert_eq!((ran.out().as_str(), ran.err().as_str()), ("rough.rw\n", ""));
    assert_eq!(folder.read("rough.rw"), ROUGH.as_bytes());
    folder.run(&["fmt", "--check", "smooth.rw"]).expect(0);
}

#[test]
fn a_program_with_faults_is_left_as_it_is_and_the_others_are_laid_out() {
    let folder = Folder::with("bad.rw", "main { x = ; }");
    folder.put("rough.rw", ROUGH);
    let ran = folder.run(&["fmt", "bad.rw", "missing.rw", "rough.rw"]).expect(2);
    assert!(ran.out().is_empty());
    assert!(ran.err().contains("error: expected a value, found `;`\n --> bad.rw:1:12\n"));
    assert!(ran.err().contains("reweave: bad.rw: not formatted"));
    assert!(ran.err().contains("missing.rw"));
    assert_eq!(folder.read("bad.rw"), b"main { x = ; }");
    assert_eq!(folder.read("rough.rw"), SMOOTH.as_bytes());
}

#[test]
fn names_need_not_be_declared() {
    let folder = Folder::with("a.rw", "main{whatever();}");
    folder.run(&["fmt", "a.rw"]).expect(0);
    assert_eq!(folder.read("a.rw"), b"main {\n    whatever();\n}\n");
}

#[test]
fn what_is_no_text_is_refused() {
    let folder = Folder::with("a.rw", b"main { \xff }");
    let ran = folder.run(&["fmt", "a.rw"]).expect(2);
    assert!(ran.err().contains("not UTF-8"), "{}", ran.err());
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_a_file_keeps_its_permissions() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = Folder::with("real.rw", ROUGH);
    std::fs::set_permissions(folder.path("real.rw"), std::fs::Permissions::from_mode(0o640))
        .unwrap();
    symlink(folder.path("real.rw"), folder.path("link.rw")).unwrap();
    folder.run(&["fmt", "link.rw"]).expect(0);
    assert_eq!(folder.read("real.rw"), SMOOTH.as_bytes());
    assert!(folder.path("link.rw").is_symlink());
    let mode = folder.path("real.rw").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}
