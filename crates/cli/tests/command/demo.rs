//! `demo`: works anywhere, and says true things.

use super::Folder;

#[test]
fn it_predicts_what_happens_before_does_not_see() {
    let folder = Folder::new();
    let ran = folder.run(&["demo"]).expect(66);
    let out = ran.out();
    assert!(out.contains("says of this run:\nnothing found."), "{out}");
    assert!(out.contains("D1 deadlock  witnessed"), "{out}");
    assert!(out.contains("R1 race  witnessed"), "{out}");
    assert!(ran.err().contains("reweave-demo.html"), "{}", ran.err());
    let page = String::from_utf8(folder.read("reweave-demo.html")).unwrap();
    assert_eq!(page.matches("<article").count(), 2);
}

#[test]
fn a_page_on_standard_output_stands_there_alone() {
    let folder = Folder::new();
    let ran = folder.run(&["demo", "-o", "-"]).expect(66);
    assert!(ran.out().starts_with("<!doctype html>") && ran.out().ends_with("</html>\n"));
    assert!(ran.err().contains("nothing found."), "{}", ran.err());
    assert!(folder.names().is_empty());
}

#[test]
fn it_goes_on_where_it_cannot_write() {
    let folder = Folder::new();
    let ran = folder.run(&["demo", "-o", "no/such/folder/page.html"]).expect(66);
    assert!(ran.out().contains("R1 race"));
    assert!(ran.err().contains("No report was written"), "{}", ran.err());
    assert!(folder.names().is_empty());
}
