//! What of a page of Markdown can be run: which files it shows, which commands, which output?
//!
//! A page is read from top to bottom, as a reader would follow it, in a folder of its own:
//!
//! - A block fenced as `c file=bank.c`, in any language, is a file of that name.
//! - A block fenced as `diff file=bank.c` changes that file: its lines with `-` and without a mark
//!   stand there once, and become those with `+` and without a mark.
//! - A block fenced as `console` has commands, `$ command`, with the lines of a longer one behind
//!   `> `, and below each of them what it prints, errors too. `[exit 66]` ends the output of one
//!   that does not end with 0. `[..]` stands for any text within a line, and `...`, alone on its
//!   line, for any lines.
//!   A command `cd folder` counts for those below it.
//! - A comment `<!-- files: examples/clean.c -->` puts files of the repository there.
//! - A comment `<!-- needs: cc -->` says which tools the commands from here on need; where one is
//!   missing they are not run. `<!-- needs: -->` ends that.

use std::ops::Range;

/// What to do for one part of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Copies a file of the repository, named from its root.
    Copy(String),
    /// What follows needs these tools.
    Needs(Vec<String>),
    /// Writes a file.
    File { name: String, content: String },
    /// Replaces the one place of a file that reads `old`.
    Change { name: String, old: String, new: String },
    /// Runs a command, whose output stands in these lines of the page.
    Run { command: String, shown: Range<usize> },
}

/// The steps of `lines`, and what is wrong with them.
pub(super) fn steps(lines: &[&str]) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(names) = comment(line, "files:") {
            steps.extend(names.into_iter().map(Step::Copy));
        } else if let Some(tools) = comment(line, "needs:") {
            steps.push(Step::Needs(tools));
        } else if let Some(info) = line.strip_prefix("```") {
            let body = at + 1..end_of_block(lines, at)?;
            at = body.end;
            add_block(&mut steps, info, lines, body)?;
        }
        at += 1;
    }
    Ok(steps)
}

/// The words behind `key` of a comment that is a line of its own.
fn comment(line: &str, key: &str) -> Option<Vec<String>> {
    let words = line.strip_prefix("<!-- ")?.strip_suffix("-->")?.strip_prefix(key)?;
    Some(words.split_whitespace().map(str::to_owned).collect())
}

/// The line that closes the block that line `start` opens.
fn end_of_block(lines: &[&str], start: usize) -> Result<usize, String> {
    let length = lines[start + 1..].iter().position(|line| *line == "```");
    length.map(|it| start + 1 + it).ok_or(format!("line {}: the block never ends", start + 1))
}

fn add_block(
    steps: &mut Vec<Step>,
    info: &str,
    lines: &[&str],
    body: Range<usize>,
) -> Result<(), String> {
    let name = info.split(' ').find_map(|word| word.strip_prefix("file="));
    let block = &lines[body.clone()];
    match (info.split(' ').next(), name) {
        (Some("console"), _) => add_commands(steps, lines, body)?,
        (Some("diff"), Some(name)) => steps.push(change(name, block)),
        (_, Some(name)) => {
            let content = block.iter().map(|line| format!("{line}\n")).collect();
            steps.push(Step::File { name: name.to_owned(), content });
        }
        _ if block.iter().any(|line| line.starts_with("$ ")) => {
            return Err(format!("line {}: `console` blocks alone have commands", body.start));
        }
        _ => {}
    }
    Ok(())
}

fn change(name: &str, block: &[&str]) -> Step {
    let side = |own: char| {
        let lines = block.iter().filter_map(|line| match line.chars().next() {
            Some(mark @ ('+' | '-')) => (mark == own).then(|| &line[1..]),
            _ => Some(line.strip_prefix(' ').unwrap_or(line)),
        });
        lines.map(|line| format!("{line}\n")).collect()
    };
    Step::Change { name: name.to_owned(), old: side('-'), new: side('+') }
}

fn add_commands(steps: &mut Vec<Step>, lines: &[&str], body: Range<usize>) -> Result<(), String> {
    let mut at = body.start;
    while at < body.end {
        let Some(command) = lines[at].strip_prefix("$ ") else {
            return Err(format!("line {}: output without a command", at + 1));
        };
        let mut command = command.to_owned();
        at += 1;
        while let Some(more) = lines[at..body.end].first().and_then(|it| it.strip_prefix("> ")) {
            command = command + "\n" + more;
            at += 1;
        }
        let start = at;
        while at < body.end && !lines[at].starts_with("$ ") {
            at += 1;
        }
        steps.push(Step::Run { command, shown: start..at });
    }
    Ok(())
}

#[test]
fn files_changes_and_commands_are_found() {
    let page = "\
<!-- files: corpus/a.std b.c -->
```c file=x.c
int x;
```
<!-- needs: cc -->
```console
$ cat <<END
> one
> END
one
$ false
[exit 1]
```
```diff file=x.c
-int x;
+long x;
```
```text
$5
```";
    let lines: Vec<&str> = page.lines().collect();
    let named = str::to_owned;
    let run = |command: &str, shown| Step::Run { command: named(command), shown };
    let expected = vec![
        Step::Copy(named("corpus/a.std")),
        Step::Copy(named("b.c")),
        Step::File { name: named("x.c"), content: named("int x;\n") },
        Step::Needs(vec![named("cc")]),
        run("cat <<END\none\nEND", 9..10),
        run("false", 11..12),
        Step::Change { name: named("x.c"), old: named("int x;\n"), new: named("long x;\n") },
    ];
    assert_eq!(steps(&lines), Ok(expected));
}

#[test]
fn what_would_not_be_run_is_refused() {
    let found = |page: &str| steps(&page.lines().collect::<Vec<_>>()).unwrap_err();
    assert_eq!(found("a\n```text\n$ ls\n```"), "line 2: `console` blocks alone have commands");
    assert_eq!(found("```console\nls\n```"), "line 2: output without a command");
    assert_eq!(found("```console\n$ ls"), "line 1: the block never ends");
}
