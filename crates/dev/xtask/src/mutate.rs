//! `mutate`: break the recorder on purpose, one line at a time, and see that a test notices.
//!
//! The mutations are listed in `mutations.txt`: each names a file, replaces or deletes lines of it, and
//! names the tests that must fail. What to break (an interceptor, an order edge, a rule of a table)
//! is a choice that no general tool makes, so the list is written by hand. The files are changed in
//! place, one after another, and restored; a file with changes that are not committed is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail, ensure};

/// What to break.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only mutations whose names contain this.
    #[arg(value_name = "NAME", default_value = "")]
    name: String,
    /// Only check that every mutation still finds its lines.
    #[arg(long)]
    dry_run: bool,
}

const LIST: &str = include_str!("mutations.txt");

/// One fault and who must notice it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mutation {
    name: String,
    file: String,
    /// Arguments of `cargo test`.
    test: String,
    removed: String,
    added: String,
}

/// Tries all mutations that `args` ask for; fails if one of them goes unnoticed.
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<ExitCode> {
    let mutations = parse(LIST)?;
    let chosen: Vec<&Mutation> =
        mutations.iter().filter(|mutation| mutation.name.contains(&args.name)).collect();
    let mut unnoticed = 0;
    for mutation in &chosen {
        let path = root.join(&mutation.file);
        let text = fs::read_to_string(&path).with_context(|| mutation.file.clone())?;
        let mutated = mutation.apply(&text)?;
        if args.dry_run {
            continue;
        }
        ensure!(
            is_committed(root, &mutation.file)?,
            "commit your changes of {} first",
            mutation.file
        );
        let restored = Restored { path, text };
        fs::write(&restored.path, mutated)?;
        let verdict = try_tests(root, &mutation.test)?;
        drop(restored);
        println!("{verdict:<10} {}", mutation.name);
        unnoticed += u32::from(verdict != "noticed");
    }
    println!("{} mutations, {unnoticed} not noticed", chosen.len());
    Ok(if unnoticed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Puts the text of a file back when it goes out of scope.
struct Restored {
    path: PathBuf,
    text: String,
}

impl Drop for Restored {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.path, &self.text) {
            println!("cannot restore {}: {error}", self.path.display());
        }
    }
}

fn is_committed(root: &Path, file: &str) -> anyhow::Result<bool> {
    let mut git = Command::new("git");
    git.args(["diff", "--quiet", "HEAD", "--", file]).current_dir(root);
    Ok(git.status().context("cannot run git")?.success())
}

/// Runs `cargo test` with `arguments`: a mutation that does not compile shows nothing.
fn try_tests(root: &Path, arguments: &str) -> anyhow::Result<&'static str> {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let cargo = |more: &[&str]| {
        let mut command = Command::new("cargo");
        command.arg("test").args(&words).args(more).current_dir(root);
        // Warnings about what is no longer used are expected.
        command.output().context("cannot run cargo")
    };
    if !cargo(&["--no-run"])?.status.success() {
        return Ok("not built");
    }
    Ok(if cargo(&[])?.status.success() { "MISSED" } else { "noticed" })
}

/// Reads the list: a line `# name`, then `file:`, `test:`, and lines that begin with `-` or `+`.
fn parse(list: &str) -> anyhow::Result<Vec<Mutation>> {
    let mut mutations: Vec<Mutation> = Vec::new();
    for line in list.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(name) = line.strip_prefix("# ") {
            mutations.push(Mutation { name: name.into(), ..Mutation::default() });
            continue;
        }
        let mutation = mutations.last_mut().context("the first line is no name")?;
        if let Some(file) = line.strip_prefix("file: ") {
            mutation.file = file.into();
        } else if let Some(test) = line.strip_prefix("test: ") {
            mutation.test = test.into();
        } else if let Some(removed) = line.strip_prefix('-') {
            mutation.removed += &format!("{removed}\n");
        } else if let Some(added) = line.strip_prefix('+') {
            mutation.added += &format!("{added}\n");
        } else {
            bail!("`{}`: not understood: `{line}`", mutation.name);
        }
    }
    Ok(mutations)
}

impl Mutation {
    /// `text` with the fault in it.
    fn apply(&self, text: &str) -> anyhow::Result<String> {
        let count = text.matches(&self.removed).count();
        ensure!(
            !self.removed.is_empty() && count == 1,
            "`{}`: its lines are in {} {count} times, expected once",
            self.name,
            self.file
        );
        Ok(text.replacen(&self.removed, &self.added, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutation_replaces_lines_that_are_there_once() {
        let list = "# two is three\nfile: a.rs\ntest: -p a\n-two\n+three\n";
        let [mutation] = parse(list).unwrap().try_into().unwrap();
        assert_eq!(mutation.apply("one\ntwo\n").unwrap(), "one\nthree\n");
        let error = mutation.apply("two\ntwo\n").unwrap_err().to_string();
        assert_eq!(error, "`two is three`: its lines are in a.rs 2 times, expected once");
    }

    #[test]
    fn every_mutation_finds_its_lines() {
        let args = Args { name: String::new(), dry_run: true };
        run(&crate::tree::root(), &args).unwrap();
    }
}
