//! What do ThreadSanitizer, Helgrind and reweave say of the programs in `examples/`?
//!
//! Each program, with its fault and corrected, is built by gcc and run under each tool with its own
//! settings. The other tools watch three runs each, and the most that one of them reports counts; reweave looks at
//! one. Runs that stand still are ended after some seconds. Where a tool is not installed the table says so.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, ensure};
use reweave_record::install::install;
use serde_json::Value;

use super::machine;

const HEAD: &str = "\
# What other tools say of the examples

The C and C++ programs of [examples](../../examples/README.md), with their faults and corrected. The faults of most did not happen in
the runs at hand; those of the last four before `clean` show in every run, and two of these stand still. The others watched three runs of each program, with their usual settings; `reweave check` looked at one recorded
run (`--with determinism` for `nondeterministic`). Made by `cargo build -p reweave-cli && cargo xtask tables comparison --write`.

- `ThreadSanitizer`: gcc's, `-fsanitize=thread -O1 -g`
- `Helgrind`: `valgrind --tool=helgrind`
- a dash: nothing was reported, which is right for a corrected program
- hangs: the program stood still and was ended after five seconds

";

const RUNS: usize = 3;

/// When a run that stands still is ended, and how `timeout` says that it did.
const SECONDS: &str = "5";
const TIMED_OUT: i32 = 124;

/// What a tool reported, and how often.
type Counts = Vec<(String, usize)>;

struct Tool {
    name: &'static str,
    /// Builds and runs the program of that name, and says what the tool reports.
    look: fn(&Place, &Example, &str) -> anyhow::Result<Counts>,
    /// What must be installed.
    needs: &'static str,
}

const TOOLS: [Tool; 3] = [
    Tool { name: "ThreadSanitizer", look: thread_sanitizer, needs: "gcc" },
    Tool { name: "Helgrind", look: helgrind, needs: "valgrind" },
    Tool { name: "reweave", look: reweave, needs: "gcc" },
];

/// Where programs are built, and what they are built with.
struct Place {
    sources: PathBuf,
    folder: tempfile::TempDir,
    include: PathBuf,
    reweave: PathBuf,
}

struct Example {
    name: String,
    extension: &'static str,
    compiler: &'static str,
    options: Vec<String>,
    /// How it is recorded.
    record: Vec<String>,
    kinds: Vec<String>,
    has_twin: bool,
}

/// The table.
pub(super) fn table(root: &Path) -> anyhow::Result<String> {
    let reweave = std::env::current_exe()?.with_file_name("reweave");
    ensure!(reweave.is_file(), "{} is not built: `cargo build -p reweave-cli`", reweave.display());
    let (sources, folder) = (root.join("examples"), tempfile::tempdir()?);
    let place = Place { folder, include: install()?.include(), reweave, sources };
    let mut table = String::from(HEAD);
    writeln!(table, "Run on: {}; {}; {}.\n", machine(), version("gcc"), version("valgrind"))?;
    let names = TOOLS.map(|tool| tool.name).join(" | ");
    writeln!(table, "| program | what is wrong | {names} |")?;
    writeln!(table, "| --- | --- | --- | --- | --- |")?;
    for example in examples(&place.sources)? {
        let twins = if example.has_twin { &["", "_fixed"][..] } else { &[""][..] };
        for twin in twins {
            let name = format!("{}{twin}", example.name);
            let is_faulty = twin.is_empty() && !example.kinds.is_empty();
            let wrong = if is_faulty { example.kinds.join(", ") } else { "nothing".to_owned() };
            let cells = TOOLS.map(|tool| cell(&tool, &place, &example, &name));
            let cells = cells.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
            writeln!(table, "| `{name}` | {wrong} | {} |", cells.join(" | "))?;
        }
    }
    Ok(table)
}

fn cell(tool: &Tool, place: &Place, example: &Example, name: &str) -> anyhow::Result<String> {
    if Command::new(tool.needs).arg("--version").output().is_err() {
        return Ok(format!("no {}", tool.needs));
    }
    let counts = (tool.look)(place, example, name)?;
    let reported = counts.iter().filter(|(_, count)| *count > 0).map(|(what, count)| match count {
        1 => what.clone(),
        _ => format!("{count} {what}s"),
    });
    let reported: Vec<String> = reported.collect();
    Ok(if reported.is_empty() { "–".to_owned() } else { reported.join(", ") })
}

/// The first line of what a tool says of its version.
fn version(tool: &str) -> String {
    let output = Command::new(tool).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text.ok().and_then(|text| text.lines().next().map(str::to_owned));
    line.unwrap_or_else(|| format!("no {tool}"))
}

/// The examples in C and C++ that `expected.json` lists.
fn examples(sources: &Path) -> anyhow::Result<Vec<Example>> {
    let list: Value = serde_json::from_slice(&fs::read(sources.join("expected.json"))?)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = list.as_array().context("expected.json is a list")?.iter();
    Ok(list
        .filter_map(|entry| {
            let (extension, compiler) = match entry["language"].as_str()? {
                "c" => ("c", "gcc"),
                "c++" => ("cpp", "g++"),
                _ => return None,
            };
            let findings = entry["findings"].as_array()?.iter();
            let words = |list: &Value| list.as_array().into_iter().flatten().map(text).collect();
            Some(Example {
                name: text(&entry["name"]),
                extension,
                compiler,
                options: words(&entry["options"]),
                record: words(&entry["record"]),
                kinds: findings.map(|finding| text(&finding["kind"])).collect(),
                has_twin: entry["twin"] != Value::Bool(false),
            })
        })
        .collect())
}

impl Place {
    /// Builds the program `name` by `compiler`, which has its own options already, as `output`.
    fn build(
        &self,
        compiler: &mut Command,
        name: &str,
        example: &Example,
        output: &str,
    ) -> anyhow::Result<()> {
        let source = self.sources.join(format!("{name}.{}", example.extension));
        compiler.args(["-w", "-g", "-O1", "-pthread", "-I"]).arg(&self.include);
        compiler.arg(source).arg("-o").arg(output).current_dir(self.folder.path());
        let built = compiler.output().with_context(|| format!("cannot build {name}"))?;
        ensure!(built.status.success(), "{name}: {}", String::from_utf8_lossy(&built.stderr));
        Ok(())
    }

    fn run(&self, words: &[&str]) -> anyhow::Result<Output> {
        let mut command = Command::new(words[0]);
        let output = command.args(&words[1..]).current_dir(self.folder.path()).output();
        output.with_context(|| format!("cannot run {}", words[0]))
    }

    /// The most often that `reports` finds each thing in what three runs of `words` say.
    fn count(&self, words: &[&str], reports: fn(&str) -> Vec<String>) -> anyhow::Result<Counts> {
        let mut counts: Counts = Vec::new();
        for _ in 0..RUNS {
            let output = self.run(&[&["timeout", SECONDS], words].concat())?;
            let mut found = reports(&String::from_utf8_lossy(&output.stderr));
            if output.status.code() == Some(TIMED_OUT) {
                found.push("hangs".to_owned());
            }
            for what in &found {
                let count = found.iter().filter(|other| *other == what).count();
                match counts.iter_mut().find(|(name, _)| name == what) {
                    Some((_, most)) => *most = count.max(*most),
                    None => counts.push((what.clone(), count)),
                }
            }
        }
        Ok(counts)
    }
}

fn thread_sanitizer(place: &Place, example: &Example, name: &str) -> anyhow::Result<Counts> {
    let mut compiler = Command::new(example.compiler);
    place.build(compiler.arg("-fsanitize=thread"), name, example, "sanitized")?;
    // Its memory map does not bear every layout that the kernel picks.
    let is_there = Command::new("setarch").arg("--version").output().is_ok();
    let words = if is_there { vec!["setarch", "-R", "./sanitized"] } else { vec!["./sanitized"] };
    place.count(&words, |said| {
        let reports = said.split("WARNING: ThreadSanitizer: ").skip(1);
        let names = reports.map(|report| report.split(" (").next().unwrap_or_default());
        let short = |name: &str| match name {
            "data race" => "race".to_owned(),
            "lock-order-inversion" => "lock order".to_owned(),
            name => name.to_owned(),
        };
        names.map(short).collect()
    })
}

/// What Helgrind says, and what the table calls it.
const HELGRIND: [(&str, &str); 6] = [
    ("Possible data race", "race"),
    ("lock order \"", "lock order"),
    ("Attempt to re-lock a non-recursive lock", "double lock"),
    ("unlocked lock at", "unlock by another thread"),
    ("of a locked mutex", "destroy of a locked mutex"),
    ("associated lock is not held", "notify without the lock"),
];

fn helgrind(place: &Place, example: &Example, name: &str) -> anyhow::Result<Counts> {
    place.build(&mut Command::new(example.compiler), name, example, "plain")?;
    place.count(&["valgrind", "--tool=helgrind", "./plain"], |said| {
        let found = HELGRIND.iter().flat_map(|&(mark, what)| {
            std::iter::repeat_n(what.to_owned(), said.matches(mark).count())
        });
        found.collect()
    })
}

fn reweave(place: &Place, example: &Example, name: &str) -> anyhow::Result<Counts> {
    let mut compiler = Command::new(&place.reweave);
    let word = if example.extension == "c" { "cc" } else { "c++" };
    place.build(compiler.args([word, example.compiler]), name, example, "recorded")?;
    let reweave = place.reweave.to_string_lossy();
    let mut words = vec![&*reweave, "record", "-o", "run.rwt"];
    words.extend(example.record.iter().map(String::as_str));
    place.run(&[&words[..], &["--", "./recorded"]].concat())?;
    let mut words = vec![&*reweave, "check", "--format", "json", "run.rwt"];
    words.extend(example.options.iter().map(String::as_str));
    let report: Value = serde_json::from_slice(&place.run(&words)?.stdout)?;
    let findings = report["findings"].as_array().context("a report has findings")?;
    let mut counts: Counts = Vec::new();
    for kind in findings.iter().filter_map(|finding| finding["kind"].as_str()) {
        match counts.iter_mut().find(|(name, _)| name == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind.to_owned(), 1)),
        }
    }
    Ok(counts)
}
