//! Rust sources: how long they are, how they begin, what must not be left in them.

use super::Fault;
use crate::tree::Tree;

const FILE_LINES_MAX: usize = 1_000;
const FUNCTION_LINES_MAX: usize = 70;

/// What must not stay behind, and why; put together here so that this file has none of them.
const LEFT_OVERS: [(&str, &str); 7] = [
    (concat!("to", "do!"), "unfinished work belongs into the tracker"),
    (concat!("unimple", "mented!"), "unfinished work belongs into the tracker"),
    (concat!("FIX", "ME"), "unfinished work belongs into the tracker"),
    (concat!("XX", "X"), "unfinished work belongs into the tracker"),
    (concat!("d", "bg!"), "a trace of debugging"),
    (concat!("#[ign", "ore"), "a test that does not run tests nothing"),
    (concat!("#[should", "_panic"), "name the error that is expected instead"),
];

/// Files and functions are short enough to be read at one go.
pub(super) fn lengths(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.sources() {
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > FILE_LINES_MAX {
            let what = format!("{} lines; at most {FILE_LINES_MAX} a file", lines.len());
            faults.push(Fault::of_file(path, what));
        }
        for function in functions(&lines) {
            if function.length > FUNCTION_LINES_MAX {
                let what = format!(
                    "`{}` has {} lines; at most {FUNCTION_LINES_MAX} a function",
                    function.name, function.length
                );
                faults.push(Fault::at_line(path, function.line, what));
            }
        }
    }
    faults
}

struct Function<'a> {
    name: &'a str,
    line: usize,
    length: usize,
}

/// The functions with a body among `lines`: in formatted code a body ends at the first closing
/// brace that is indented as its `fn` is.
fn functions<'a>(lines: &[&'a str]) -> Vec<Function<'a>> {
    let mut functions = Vec::new();
    for (line, text) in lines.iter().enumerate() {
        let Some((indent, name)) = function_head(text) else { continue };
        let opening = lines[line..].iter().position(|text| text.ends_with(['{', ';', '}']));
        let Some(opening) = opening.filter(|&at| lines[line + at].ends_with('{')) else { continue };
        let closing = lines[line + opening + 1..].iter().position(|text| {
            text.len() > indent && text[..indent].trim().is_empty() && text[indent..] == *"}"
        });
        if let Some(closing) = closing {
            functions.push(Function { name, line, length: opening + closing + 2 });
        }
    }
    functions
}

/// The indentation and the name of the function that starts on this line, if one does.
fn function_head(line: &str) -> Option<(usize, &str)> {
    let head = line.trim_start();
    let indent = line.len() - head.len();
    let mut words = head.split(' ');
    let modifier = |word: &str| {
        matches!(word, "const" | "async" | "unsafe" | "extern" | "\"C\"") || word.starts_with("pub")
    };
    // `pub(in some::path)` has a space inside; no such visibility is used here.
    let keyword = words.find(|word| !modifier(word))?;
    let name = words.next().filter(|_| keyword == "fn")?;
    Some((indent, name.split(['(', '<']).next().unwrap_or(name)))
}

/// Every file says what it is about.
pub(super) fn module_docs(tree: &Tree) -> Vec<Fault> {
    tree.sources()
        .filter(|(path, text)| !path.ends_with("build.rs") && !text.starts_with("//! "))
        .map(|(path, _)| Fault::of_file(path, "must start with module documentation, `//! …`"))
        .collect()
}

/// Crates that nobody is meant to call: they are linked into programs, or for tests.
const UNCALLED: [&str; 3] = ["runtime", "testkit", "bench"];

/// Every crate shows how it is used.
pub(super) fn crate_examples(tree: &Tree) -> Vec<Fault> {
    let name = |path: &str| {
        let folder = path.strip_prefix("crates/")?.strip_suffix("/src/lib.rs")?;
        folder.split_once('/').map(|(_, name)| name.to_owned())
    };
    tree.sources()
        .filter(|(path, _)| name(path).is_some_and(|name| !UNCALLED.contains(&name.as_str())))
        .filter(|(_, text)| !text.lines().any(|line| line.starts_with("//! ```")))
        .map(|(path, _)| Fault::of_file(path, "its documentation has no example"))
        .collect()
}

/// Nothing unfinished or switched off stays behind.
pub(super) fn left_overs(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.sources() {
        for (index, line) in text.lines().enumerate() {
            for (word, why) in LEFT_OVERS.iter().filter(|(word, _)| line.contains(word)) {
                faults.push(Fault::at_line(path, index, format!("`{word}`: {why}")));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> String {
        "    step();\n".repeat(count)
    }

    #[test]
    fn a_long_file_is_a_fault() {
        let check = |count| lengths(&Tree::from([("a.rs", "//\n".repeat(count).as_str())])).len();
        assert_eq!((check(1_000), check(1_001)), (0, 1));
    }

    #[test]
    fn a_long_function_is_named() {
        let source = format!(
            "fn fits() {{\n{}}}\n\npub(crate) fn long(\n) {{\n{}}}\n",
            lines(68),
            lines(68)
        );
        let faults = lengths(&Tree::from([("a.rs", source.as_str())]));
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].to_string(), "a.rs:72: `long` has 71 lines; at most 70 a function");
    }

    #[test]
    fn a_method_ends_at_its_own_brace() {
        let source = format!(
            "impl A {{\n    const fn short(&self) {{\n        if x {{\n        }}\n    }}\n{}}}\n",
            lines(100)
        );
        assert_eq!(lengths(&Tree::from([("a.rs", source.as_str())])), []);
    }

    #[test]
    fn a_function_without_a_body_or_on_one_line_has_no_length() {
        let source = format!("fn a();\nfn b() {{}}\nlet c = \"a fn (\";\n{}}}\n", lines(100));
        assert_eq!(lengths(&Tree::from([("a.rs", source.as_str())])), []);
    }

    #[test]
    fn a_file_without_module_documentation_is_a_fault() {
        let tree = Tree::from([
            ("a.rs", "//! What it is.\n"),
            ("b.rs", "use std::fmt;\n"),
            ("c.rs", "//!\n"),
            ("crates/g/d/build.rs", "fn main() {}\n"),
            ("e.md", "text\n"),
        ]);
        let paths: Vec<String> = module_docs(&tree).into_iter().map(|fault| fault.path).collect();
        assert_eq!(paths, ["b.rs", "c.rs"]);
    }

    #[test]
    fn a_crate_without_an_example_is_a_fault() {
        let tree = Tree::from([
            ("crates/g/a/src/lib.rs", "//! What it is.\n//!\n//! ```\n//! a::a();\n//! ```\n"),
            ("crates/g/b/src/lib.rs", "//! What it is.\n"),
            ("crates/g/b/src/c.rs", "//! What it is.\n"),
            ("crates/dev/testkit/src/lib.rs", "//! What it is.\n"),
        ]);
        let faults: Vec<String> = crate_examples(&tree).iter().map(Fault::to_string).collect();
        assert_eq!(faults, ["crates/g/b/src/lib.rs: its documentation has no example"]);
    }

    #[test]
    fn each_left_over_is_found() {
        for (word, _) in LEFT_OVERS {
            let faults = left_overs(&Tree::from([("a.rs", format!("ok\n{word}\n").as_str())]));
            assert_eq!(faults.len(), 1, "{word}");
            assert_eq!(faults[0].line, Some(2));
        }
        assert_eq!(left_overs(&Tree::from([("a.rs", "nothing to do!\n")])), []);
    }
}
