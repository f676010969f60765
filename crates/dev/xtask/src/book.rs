//! `book`: do the documents hold together, and what does the book look like?
//!
//! Checks every relative link of every Markdown file, and that the book's summary lists each of
//! its chapters; then has mdBook build it. The checks are part of `tidy` too.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::tidy::Fault;
use crate::tree::Tree;

const SUMMARY: &str = "book/src/SUMMARY.md";
const CHAPTERS: &str = "book/src/";

/// Checks the documents and builds the book, if mdBook is installed.
pub(crate) fn run(root: &Path) -> anyhow::Result<ExitCode> {
    let tree = Tree::load(root)?;
    let faults = [links(&tree), summary(&tree)].concat();
    for fault in &faults {
        println!("{fault}");
    }
    if !faults.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    println!("book: every link resolves and every chapter is listed");
    let installed = Command::new("mdbook").arg("--version").output().is_ok();
    if !installed {
        println!("book: mdbook is not installed; `cargo install mdbook --locked` installs it");
        return Ok(ExitCode::SUCCESS);
    }
    let status = Command::new("mdbook")
        .args(["build", "book"])
        .current_dir(root)
        .status()
        .context("cannot run mdbook")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every relative link of a document leads to a file or folder of the repository.
pub(crate) fn links(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (index, target) in targets(text) {
            let file = target.split('#').next().unwrap_or(target);
            if target.contains("://") || target.starts_with("mailto:") || file.is_empty() {
                continue;
            }
            if !resolve(path, file).is_some_and(|file| tree.contains(&file)) {
                faults.push(Fault::at_line(path, index, format!("`{target}` leads nowhere")));
            }
        }
    }
    faults
}

/// The summary of the book lists every chapter.
pub(crate) fn summary(tree: &Tree) -> Vec<Fault> {
    let text = tree.text(SUMMARY).unwrap_or_default();
    let listed: Vec<String> =
        targets(text).into_iter().filter_map(|(_, target)| resolve(SUMMARY, target)).collect();
    let chapters = tree.texts().map(|(path, _)| path);
    chapters
        .filter(|path| path.starts_with(CHAPTERS) && path.ends_with(".md") && *path != SUMMARY)
        .filter(|path| !listed.iter().any(|listed| listed == path))
        .map(|path| Fault::of_file(path, "not listed in the book's SUMMARY.md"))
        .collect()
}

/// The targets of all links of a document with their lines, code left out.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut targets = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second piece between backticks is code; a link's text may be, its target is not.
        let mut rest = line;
        while let Some(start) = rest.find("](") {
            let in_code = rest[..start].matches('`').count() % 2 == 1;
            rest = &rest[start + 2..];
            let Some(end) = rest.find(')') else { break };
            if !in_code {
                targets.push((index, rest[..end].split(' ').next().unwrap_or_default()));
                rest = &rest[end..];
            }
        }
        if let Some((label, target)) = line.split_once("]: ")
            && label.starts_with('[')
        {
            targets.push((index, target.trim()));
        }
    }
    targets
}

/// The path from the root of what `target` means in the file at `path`; none if it is outside.
fn resolve(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." | "" => {}
            ".." => _ = parts.pop()?,
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let tree = Tree::from([("docs/a.md", text), ("docs/b/c.md", ""), ("README.md", "")]);
        let faults: Vec<String> = links(&tree).iter().map(Fault::to_string).collect();
        assert_eq!(faults, expected);
    }

    #[test]
    fn links_to_files_folders_headings_and_other_sites_are_fine() {
        check("[a](b/c.md) [b](b/), [`c`](../README.md#use)\n[d](#here)\n", &[]);
        check("[a](https://example.org/x.md)\n[b]: ./b/c.md\n", &[]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_a_fault() {
        check("ok\n[a](b/d.md)\n", &["docs/a.md:2: `b/d.md` leads nowhere"]);
        check("[a](../../README.md)\n", &["docs/a.md:1: `../../README.md` leads nowhere"]);
        check("[a]: c.md\n", &["docs/a.md:1: `c.md` leads nowhere"]);
        check("[a](b/c.md), [b](d.md)\n", &["docs/a.md:1: `d.md` leads nowhere"]);
    }

    #[test]
    fn code_has_no_links() {
        check("```rust\nlet a = b[c](d);\n```\nand `b[c](d)` too\n", &[]);
        check("`code` and [a](d.md)\n", &["docs/a.md:1: `d.md` leads nowhere"]);
    }

    #[test]
    fn a_chapter_that_the_summary_lacks_is_a_fault() {
        let tree = Tree::from([
            (SUMMARY, "- [A](a.md)\n  - [B](formats/b.md)\n"),
            ("book/src/a.md", ""),
            ("book/src/formats/b.md", ""),
            ("book/src/formats/c.md", ""),
            ("book/src/figure.svg", ""),
        ]);
        let faults: Vec<String> = summary(&tree).iter().map(Fault::to_string).collect();
        assert_eq!(faults, ["book/src/formats/c.md: not listed in the book's SUMMARY.md"]);
    }
}
