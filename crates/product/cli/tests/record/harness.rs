//! Programs in C and C++, built and recorded in a folder of their own.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use reweave_analysis::Settings;
use reweave_base::IndexVec;
use reweave_catalog::Quiet;
use reweave_format::ReadOptions;
use reweave_trace::{Op, Reordering, ThreadId, Trace, VarId};
use serde_json::Value;
use tempfile::TempDir;

/// Whether a tool is there; if not, or if this system cannot record, says why a test is skipped.
#[allow(clippy::print_stderr, reason = "whoever runs the tests must see what was not tried")]
pub(crate) fn has(tool: &str) -> bool {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        eprintln!("skipped: recording needs Linux on x86-64");
        return false;
    }
    let mut command = Command::new(tool);
    let starts = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if starts.is_err() {
        eprintln!("skipped: no {tool}");
    }
    starts.is_ok()
}

/// The compilers that are there, for sources with this extension.
pub(crate) fn compilers(extension: &str) -> Vec<&'static str> {
    let names = if extension == "c" { ["gcc", "clang"] } else { ["g++", "clang++"] };
    names.into_iter().filter(|name| has(name)).collect()
}

/// The option that names the standard of a language.
fn standard(extension: &str) -> &'static str {
    if extension == "c" { "-std=gnu11" } else { "-std=gnu++17" }
}

/// How a run ended, and what it printed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Behaviour {
    pub(crate) code: Option<i32>,
    pub(crate) printed: String,
}

impl Behaviour {
    /// As a shell tells it: a program that a signal ended has 128 and the signal's number.
    pub(crate) fn new(output: &Output) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        let signal = output.status.signal().map(|signal| signal + 128);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        Self { code: output.status.code().or(signal), printed }
    }
}

/// The commands that `text`, of a report or a message, says to type next.
pub(crate) fn next_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_next = false;
    for line in text.lines() {
        let line = line.strip_prefix("reweave: ").unwrap_or(line);
        let command = match line.strip_prefix("next: ") {
            Some(command) => Some(command),
            None => line.strip_prefix("      ").filter(|_| is_next),
        };
        is_next = command.is_some();
        lines.extend(command.map(str::to_owned));
    }
    lines
}

/// `command`, which runs our command, typed into a shell.
pub(crate) fn typed(mut command: Command, line: &str) -> Output {
    let own = Path::new(env!("CARGO_BIN_EXE_reweave")).parent().expect("it is in a folder");
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let folders = [own.to_owned()].into_iter().chain(std::env::split_paths(&usual));
    let folders = std::env::join_paths(folders).expect("folders have no colons");
    command.args(["-c", line]).env("PATH", folders).stdin(Stdio::null());
    command.output().expect("there is a shell")
}

/// How many events each table of a report shows.
pub(crate) fn shown_steps(text: &str) -> Vec<usize> {
    let is_row = |line: &&str| {
        let mut words = line.trim_start_matches([' ', '>']).split_whitespace();
        let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        let is_label = |word| is_number(word) || matches!(word, "then" | "waits");
        words.next().is_some_and(is_label) && words.next().is_some_and(is_number)
    };
    let tables = text.split("    step     event  ").skip(1);
    let is_gap = |line: &&str| line.trim_start().starts_with('…');
    let rows = |table: &str| {
        let lines = table.lines().skip(1).take_while(|line| is_row(line) || is_gap(line));
        lines.filter(is_row).count()
    };
    tables.map(rows).collect()
}

/// Whether schedules that show so many events can be read: most of them at a glance, and all without scrolling.
#[track_caller]
pub(crate) fn must_be_short(mut steps: Vec<usize>) {
    steps.sort_unstable();
    let middle = steps.get(steps.len() / 2).copied().unwrap_or(0);
    assert!(middle <= 12 && steps.last().is_none_or(|&most| most <= 40), "{steps:?}");
}

/// Looks whether the checker accepts the whole schedule of each finding of `report`, in JSON, on the trace in the file
/// `path`, which the default analyses examine; gives how many schedules there are.
#[track_caller]
pub(crate) fn accepted_schedules(path: &Path, report: &Value) -> usize {
    let trace = reweave_format::read(path, &ReadOptions::default()).expect("it was recorded").trace;
    let analyses = reweave_catalog::select("", &[]).expect("there are some by default");
    let outcome = reweave_catalog::run(&trace, &analyses, &Settings::default(), &Quiet);
    let mut count = 0;
    for finding in report["findings"].as_array().expect("a report has findings") {
        let Some(steps) = finding["witness"]["schedule"].as_array() else { continue };
        let own = outcome.findings.iter().find(|own| own.id == finding["id"]);
        let proof = own.and_then(|own| own.finding.evidence.proof()).expect("it is proven again");
        let numbers: Vec<u64> = steps.iter().filter_map(Value::as_u64).collect();
        let events = numbers.iter().map(|&number| {
            trace.numbered(u32::try_from(number).expect("it is small")).expect("there is one")
        });
        let written = Reordering { base: IndexVec::new(), schedule: events.collect() };
        let accepted = reweave_trace::certify(&trace, &written, proof.goal());
        assert!(accepted.is_ok(), "{}: {accepted:?}", finding["id"]);
        count += 1;
    }
    count
}

/// A folder with sources, programs and traces.
pub(crate) struct Workshop(TempDir);

impl Workshop {
    /// A folder that holds the sources `names`.
    pub(crate) fn with(names: &[&str]) -> Self {
        let folder = Self(TempDir::new().expect("there is room for a folder"));
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs");
        for name in names {
            fs::copy(sources.join(name), folder.path(name)).expect("the source is there");
        }
        folder
    }

    /// A folder with the program in the source `name`, built by the first compiler that is there;
    /// nothing if none is.
    pub(crate) fn built(name: &str) -> Option<Self> {
        let extension = Path::new(name).extension()?.to_str()?;
        let compiler = compilers(extension).first().copied()?;
        let folder = Self::with(&[name]);
        folder.build(name, compiler, &["-O1"]);
        Some(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).expect("the folder can be written to");
    }

    /// A command that runs in the folder.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).env("REWEAVE_CACHE", self.path("cache"));
        for name in ["REWEAVE_RUNTIME", "REWEAVE_RECORD", "REWEAVE_CC", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn reweave(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_reweave"));
        command.args(arguments).output().expect("the command starts")
    }

    /// Builds the source `name` for recording, as a program or library of its name without the
    /// extension. An option that our command knows goes before the compiler.
    #[track_caller]
    pub(crate) fn build(&self, name: &str, compiler: &str, options: &[&str]) {
        let (stem, extension) = name.split_once('.').expect("a source has an extension");
        let (ours, theirs) = match options {
            ["--runtime", how, rest @ ..] => (vec!["--runtime", *how], rest),
            options => (vec![], options),
        };
        let command = if extension == "c" { "cc" } else { "c++" };
        let usual = ["-g", "-w", standard(extension), "-pthread", name, "-o", stem];
        let words = [&[command][..], &ours, &[compiler], &usual, theirs, &["-lm", "-ldl"]].concat();
        let built = self.reweave(&words);
        assert!(built.status.success(), "{words:?}: {}", String::from_utf8_lossy(&built.stderr));
    }

    /// Builds the source `name` as the compiler does without us.
    #[track_caller]
    pub(crate) fn build_plain(&self, name: &str, compiler: &str, output: &str, options: &[&str]) {
        let mut command = self.command(compiler);
        let (_, extension) = name.split_once('.').expect("a source has an extension");
        command.args(["-g", "-w", "-O1", standard(extension), "-pthread", name, "-o", output]);
        command.args(options);
        let built = command.args(["-lm", "-ldl"]).output().expect("the compiler starts");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }

    /// Runs a program of the folder as it is.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Behaviour {
        let mut command = self.command(self.path(program));
        Behaviour::new(&command.args(arguments).output().expect("the program starts"))
    }

    /// Records a program of the folder to `run.rwt`, with all accesses.
    pub(crate) fn record_all(&self, options: &[&str], words: &[&str]) -> Recorded {
        self.record(&[&["--all-memory"], options].concat(), words)
    }

    /// Records a program of the folder to `run.rwt`.
    pub(crate) fn record(&self, options: &[&str], words: &[&str]) -> Recorded {
        let program = format!("./{}", words[0]);
        let usual = ["record", "-o", "run.rwt"];
        let words = [&usual, options, &["--", &program], &words[1..]].concat();
        let output = self.reweave(&words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let read = reweave_format::read(&self.path("run.rwt"), &ReadOptions::default());
        let trace = read.unwrap_or_else(|error| panic!("{words:?}: {error}; {said}")).trace;
        Recorded { behaviour: Behaviour::new(&output), said, trace }
    }

    /// What `check` finds in `run.rwt`: the kinds, sorted.
    #[track_caller]
    pub(crate) fn findings(&self) -> Vec<String> {
        self.findings_with(&[])
    }

    /// The same, with more `options`.
    #[track_caller]
    pub(crate) fn findings_with(&self, options: &[&str]) -> Vec<String> {
        let usual = ["check", "run.rwt", "--format", "json"];
        let output = self.reweave(&[&usual, options].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {said}"));
        let findings = report["findings"].as_array().expect("a report has findings");
        let kind = |finding: &Value| finding["kind"].as_str().map(str::to_owned);
        let mut kinds: Vec<String> = findings.iter().filter_map(kind).collect();
        kinds.sort();
        kinds
    }
}

/// A recorded run. Whatever could be read is a trace that is well formed.
pub(crate) struct Recorded {
    pub(crate) behaviour: Behaviour,
    pub(crate) said: String,
    pub(crate) trace: Trace,
}

impl Recorded {
    /// What each thread did, in order, by lines of the source: values after the operations, except
    /// addresses. What happens in code of others is left out, and memory that one thread has for
    /// itself.
    pub(crate) fn by_thread(&self) -> String {
        let names = self.trace.names();
        let shared = self.shared_variables();
        let is_kept = |op: Op| match op {
            Op::Object(_, object) => {
                let mut parts = shared.iter().filter(|name| **name != names.objects.name(object));
                parts.any(|name| names.object_around(name) == Some(object))
            }
            op => op.var().is_none_or(|var| shared.contains(names.vars.name(var))),
        };
        let mut text = String::new();
        let mut threads: Vec<(ThreadId, &str)> = names.threads.entries().collect();
        threads.sort_by_key(|&(_, name)| (name != "main", name.len(), name));
        for (thread, name) in threads {
            let mut line_before = None;
            text.push_str(name);
            for (id, event) in self.trace.events().filter(|(_, event)| event.thread == thread) {
                let location = names.location(event.site);
                let line = match (names.line(event.site), location.is_empty()) {
                    (Some(line), _) if !location.starts_with('/') => line.to_string(),
                    (None, true) => "-".to_owned(),
                    _ => continue,
                };
                if !is_kept(event.op) {
                    continue;
                }
                if line_before.as_ref() != Some(&line) {
                    write!(text, "\n  {line}:").expect("text can be written");
                    line_before = Some(line);
                }
                write!(text, " {}", names.spell(event.op)).expect("text can be written");
                let value = self.trace.value(id).filter(|value| value.unsigned_abs() < 1 << 40);
                if let Some(value) = value {
                    write!(text, "={value}").expect("text can be written");
                }
            }
            text.push('\n');
        }
        text
    }

    /// The names of variables that several threads access.
    fn shared_variables(&self) -> BTreeSet<&str> {
        let mut first: IndexVec<VarId, Option<ThreadId>> =
            IndexVec::from_elem(None, self.trace.names().vars.len());
        let mut shared = BTreeSet::new();
        for (_, event) in self.trace.events() {
            let Some(var) = event.op.var() else { continue };
            if *first[var].get_or_insert(event.thread) != event.thread {
                shared.insert(self.trace.names().vars.name(var));
            }
        }
        shared
    }

    /// Whether nothing that was recorded contradicted the rest, and no thread ran unseen.
    #[track_caller]
    pub(crate) fn must_be_whole(&self) {
        assert!(!self.said.contains("inconsistent event"), "{}", self.said);
        assert!(!self.said.contains("blocked in an unrecognised call"), "{}", self.said);
    }
}
