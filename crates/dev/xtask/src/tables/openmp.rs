//! What do ThreadSanitizer, with Archer and without, and reweave say of OpenMP programs?
//!
//! The programs are those of the tests of the command: every construct, with a race and without.
//! The others watch three runs of each with four threads, and whatever one of them reports counts;
//! reweave looks at one. Where a tool is not installed the table says so.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::machine;

const HEAD: &str = "\
# What other tools say of OpenMP programs

The programs of [the tests](../../crates/product/cli/tests/record/programs/openmp): every construct of OpenMP that is supported, with a
race (`race_`) and without (`ok_`). The others watched three runs of each with four threads; `reweave check` looked at one recorded run.
Made by `cargo build --release && cargo xtask tables openmp --write`.

- `gcc`: gcc's ThreadSanitizer, `-fsanitize=thread -fopenmp -O1 -g`, with the library libgomp that is installed, which is not instrumented
- `clang`: clang's, with its library libomp and no tool (`OMP_TOOL=disabled`)
- `Archer`: the same with the tool that comes with clang (`TSAN_OPTIONS=ignore_noninstrumented_modules=1`)
- `reweave`: recorded as built by gcc and by clang, `-fopenmp -O1`
- a dash: nothing was reported, which is right for `ok_`

";

const FILES: [&str; 4] = ["regions.c", "loops.c", "tasks.c", "classes.cpp"];
const RUNS: usize = 3;
const THREADS: &str = "4";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tool {
    Gcc,
    Clang,
    Archer,
    ReweaveGcc,
    ReweaveClang,
}

const TOOLS: [(&str, Tool); 5] = [
    ("gcc", Tool::Gcc),
    ("clang", Tool::Clang),
    ("Archer", Tool::Archer),
    ("reweave, gcc", Tool::ReweaveGcc),
    ("reweave, clang", Tool::ReweaveClang),
];

/// Where programs are built.
struct Place {
    sources: PathBuf,
    folder: tempfile::TempDir,
    reweave: PathBuf,
    /// The tool that comes with clang, if it does.
    archer: Option<PathBuf>,
}

/// How often a tool found what is there, and what is not.
#[derive(Clone, Copy, Default)]
struct Score {
    found: usize,
    false_reports: usize,
}

/// The table.
pub(super) fn table(root: &Path) -> anyhow::Result<String> {
    let reweave = std::env::current_exe()?.with_file_name("reweave");
    ensure!(reweave.is_file(), "{} is not built: `cargo build --release`", reweave.display());
    let sources = root.join("crates/product/cli/tests/record/programs/openmp");
    let place = Place { sources, folder: tempfile::tempdir()?, reweave, archer: archer() };
    let mut scores = [Score::default(); TOOLS.len()];
    let (mut races, mut sound) = (0, 0);
    let mut rows = String::new();
    for file in FILES {
        let built = TOOLS.map(|(_, tool)| place.build(file, tool));
        let cases = place.run(&[built.iter().flatten().next().context("no compiler")?], &[])?;
        for case in String::from_utf8_lossy(&cases.stdout).lines() {
            let has_race = case.starts_with("race_");
            *(if has_race { &mut races } else { &mut sound }) += 1;
            write!(rows, "| `{case}` |")?;
            for ((score, (_, tool)), program) in scores.iter_mut().zip(TOOLS).zip(&built) {
                let Some(program) = program else {
                    write!(rows, " not installed |")?;
                    continue;
                };
                let is_reported = place.reports(tool, program, case)?;
                score.found += usize::from(is_reported && has_race);
                score.false_reports += usize::from(is_reported && !has_race);
                write!(rows, " {} |", if is_reported { "race" } else { "–" })?;
            }
            rows.push('\n');
        }
    }
    let mut table = String::from(HEAD);
    writeln!(table, "Run on: {}; {}; {}.\n", machine(), version("gcc"), version("clang"))?;
    let names = TOOLS.map(|(name, _)| name).join(" | ");
    writeln!(table, "| | {names} |\n| --- | --- | --- | --- | --- | --- |")?;
    let found = scores.map(|score| score.found.to_string()).join(" | ");
    writeln!(table, "| races found, of {races} | {found} |")?;
    let wrong = scores.map(|score| score.false_reports.to_string()).join(" | ");
    writeln!(table, "| reports of {sound} programs without one | {wrong} |\n")?;
    writeln!(
        table,
        "| case | {names} |\n| --- | --- | --- | --- | --- | --- |\n{}",
        rows.trim_end()
    )?;
    Ok(table)
}

/// Where clang has its tool for OpenMP, if it does.
fn archer() -> Option<PathBuf> {
    let output = Command::new("clang").arg("-print-resource-dir").output().ok()?;
    let resources = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    // It lies beside the folder with the resources of all versions.
    let path = resources.parent()?.with_file_name("libarcher.so");
    path.is_file().then_some(path)
}

/// The first line of what a compiler says of its version.
fn version(tool: &str) -> String {
    let output = Command::new(tool).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text.ok().and_then(|text| text.lines().next().map(str::to_owned));
    line.unwrap_or_else(|| format!("no {tool}"))
}

impl Place {
    /// Builds `file` for `tool`; the program's name, or nothing if that cannot be.
    fn build(&self, file: &str, tool: Tool) -> Option<String> {
        let is_c = file.ends_with(".c");
        let uses_gcc = matches!(tool, Tool::Gcc | Tool::ReweaveGcc);
        let compiler = match (is_c, uses_gcc) {
            (true, true) => "gcc",
            (true, false) => "clang",
            (false, true) => "g++",
            (false, false) => "clang++",
        };
        if tool == Tool::Archer && self.archer.is_none() {
            return None;
        }
        let mut command = match tool {
            Tool::ReweaveGcc | Tool::ReweaveClang => {
                let mut command = Command::new(&self.reweave);
                command.args([if is_c { "cc" } else { "c++" }, compiler]);
                command
            }
            Tool::Gcc | Tool::Clang | Tool::Archer => {
                let mut command = Command::new(compiler);
                command.arg("-fsanitize=thread");
                command
            }
        };
        let output = format!("{}-{}", file.replace('.', "-"), tool as usize);
        command.args(["-w", "-g", "-O1", "-fopenmp"]).arg(self.sources.join(file));
        command.arg("-o").arg(&output).current_dir(self.folder.path());
        let is_built = command.output().is_ok_and(|built| built.status.success());
        is_built.then(|| format!("./{output}"))
    }

    fn run(&self, words: &[&str], settings: &[(&str, &str)]) -> anyhow::Result<Output> {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).envs(settings.iter().copied());
        let output = command.current_dir(self.folder.path()).output();
        output.with_context(|| format!("cannot run {}", words[0]))
    }

    /// Whether `tool` reports a race in `case` of `program`.
    fn reports(&self, tool: Tool, program: &str, case: &str) -> anyhow::Result<bool> {
        let archer = self.archer.as_deref().unwrap_or(Path::new("")).to_string_lossy();
        let settings = match tool {
            Tool::Gcc => vec![],
            Tool::Clang => vec![("OMP_TOOL", "disabled")],
            Tool::Archer => vec![
                ("OMP_TOOL_LIBRARIES", &*archer),
                ("TSAN_OPTIONS", "ignore_noninstrumented_modules=1"),
            ],
            Tool::ReweaveGcc | Tool::ReweaveClang => return self.reweave_reports(program, case),
        };
        for _ in 0..RUNS {
            // Its memory map does not bear every layout that the kernel picks.
            let said = self.run(&["setarch", "-R", program, case, THREADS], &settings)?.stderr;
            if String::from_utf8_lossy(&said).contains("WARNING: ThreadSanitizer: data race") {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn reweave_reports(&self, program: &str, case: &str) -> anyhow::Result<bool> {
        let reweave = self.reweave.to_string_lossy();
        let recorded =
            self.run(&[&reweave, "record", "-o", "run.rwt", "--", program, case, THREADS], &[])?;
        ensure!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
        let report = self.run(&[&reweave, "check", "--format", "json", "run.rwt"], &[])?.stdout;
        let report: Value = serde_json::from_slice(&report)?;
        let findings = report["findings"].as_array().context("a report has findings")?;
        Ok(findings.iter().any(|finding| finding["kind"] == "race"))
    }
}
