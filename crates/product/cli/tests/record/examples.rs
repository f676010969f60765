//! The programs in `examples/`: each fault is predicted from one ordinary run, in which it did not
//! happen, and then made to happen, or is seen in the run; in the corrected twins nothing is found.
//!
//! `examples/expected.json` says what is to be found where. Every compiler and every level of
//! optimisation is tried on a few; on the others one of them each, or all in a soak.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use reweave_format::{Format, ReadOptions};
use reweave_testkit::soak;
use reweave_trace::{AccessOp, Op, ThreadOp, Trace, TraceBuilder};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{
    accepted_schedules, compilers, has, must_be_short, next_lines, shown_steps, typed,
};

const LEVELS: [&str; 2] = ["-O0", "-O2"];

/// What `examples/expected.json` says of a program.
#[derive(Clone, Debug)]
struct Example {
    name: String,
    language: String,
    options: Vec<String>,
    /// How it is recorded, and with what code that ends.
    record: Vec<String>,
    status: i32,
    /// Whether the fault shows in every run.
    is_observed: bool,
    output: String,
    has_twin: bool,
    /// The kind of each finding and the lines that it names, in order.
    findings: Vec<(String, Vec<u64>)>,
}

fn examples_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples")
}

fn examples() -> Vec<Example> {
    let text = fs::read_to_string(examples_folder().join("expected.json")).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    list.as_array().unwrap().iter().map(example).collect()
}

fn example(entry: &Value) -> Example {
    let text = |key: &str| entry[key].as_str().unwrap().to_owned();
    let words = |list: &Value| -> Vec<String> {
        let words = list.as_array().into_iter().flatten();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let finding = |finding: &Value| {
        let lines = finding["lines"].as_array().unwrap().iter().map(|it| it.as_u64().unwrap());
        (finding["kind"].as_str().unwrap().to_owned(), lines.collect())
    };
    Example {
        name: text("name"),
        language: text("language"),
        options: words(&entry["options"]),
        record: words(&entry["record"]),
        status: entry["status"].as_i64().map_or(0, |status| status as i32),
        is_observed: entry["observed"] == Value::Bool(true),
        output: text("output"),
        has_twin: entry["twin"] != Value::Bool(false),
        findings: entry["findings"].as_array().unwrap().iter().map(finding).collect(),
    }
}

fn named(name: &str, language: &str) -> Example {
    let mut all = examples().into_iter();
    all.find(|it| it.name == name && it.language == language).expect("the example is there")
}

/// A folder to build and to record in, with a cache of its own.
struct Place {
    folder: TempDir,
    /// How many events the schedules of all reports show.
    steps: RefCell<Vec<usize>>,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        Self { folder, steps: RefCell::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("REWEAVE_CACHE", self.path("cache"));
        for variable in ["CARGO_TARGET_DIR", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "REWEAVE_CC"] {
            command.env_remove(variable);
        }
        command.env_remove("CLICOLOR_FORCE").stdin(Stdio::null());
        command
    }

    #[track_caller]
    fn reweave(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_reweave"));
        command.args(arguments).output().expect("the command starts")
    }

    /// Builds an example, and says where the program is.
    #[track_caller]
    fn build(&self, name: &str, language: &str, compiler: &str, level: &str) -> String {
        let (driver, extension) = match language {
            "c" => ("cc", "c"),
            _ => ("c++", "cpp"),
        };
        let file = format!("{name}.{extension}");
        fs::copy(examples_folder().join(&file), self.path(&file)).unwrap();
        let rest = ["-Wall", "-Wextra", "-Werror", "-pthread", &file, "-o", name];
        let arguments = [&[driver, compiler, "-g", level][..], &rest].concat();
        expect(&self.reweave(&arguments), 0);
        format!("./{name}")
    }

    /// Records an ordinary run, which must end well and print `output`.
    #[track_caller]
    fn record(&self, program: &str, output: &str, seed: &str) -> Vec<String> {
        self.record_so(&[], program, 0, output, seed)
    }

    /// Records a run with `options`, which must end with `status` and print `output`; says what to type next.
    #[track_caller]
    fn record_so(
        &self,
        options: &[String],
        program: &str,
        status: i32,
        output: &str,
        seed: &str,
    ) -> Vec<String> {
        let mut arguments = vec!["record", "-o", "run.rwt", "--seed", seed];
        arguments.extend(options.iter().map(String::as_str));
        arguments.extend(["--", program]);
        let ran = self.reweave(&arguments);
        expect(&ran, status);
        assert_eq!(String::from_utf8_lossy(&ran.stdout), output, "{program}");
        let lines = next_lines(&String::from_utf8_lossy(&ran.stderr));
        assert_eq!(lines, ["reweave check run.rwt"], "{program}");
        lines
    }

    /// What `check` finds in the recorded run: its exit code and its report.
    #[track_caller]
    fn check(&self, options: &[String], more: &[&str]) -> (i32, Value) {
        let mut arguments = vec!["check", "--format", "json", "run.rwt"];
        arguments.extend(options.iter().map(String::as_str));
        arguments.extend(more);
        let ran = self.reweave(&arguments);
        let code = ran.status.code().expect("it was not killed");
        assert!(code == 0 || code == 66, "{}", String::from_utf8_lossy(&ran.stderr));
        (code, serde_json::from_slice(&ran.stdout).expect("the report is JSON"))
    }

    /// Records the program of `example`, looks whether all that is expected is found and nothing
    /// else, and has each finding confirmed.
    #[track_caller]
    fn try_out(&self, example: &Example, program: &str) {
        let output = if example.status == 0 { &example.output } else { "" };
        let next = self.record_so(&example.record, program, example.status, output, "1");
        let (code, report) = self.check(&example.options, &[]);
        assert_eq!(found(&report), example.findings, "{program}: {report:#}");
        assert_eq!(code, if example.findings.is_empty() { 0 } else { 66 }, "{program}");
        if example.options.is_empty() {
            let proven = report["findings"].as_array().unwrap().iter();
            let proven = proven.filter(|it| it["guarantee"] == "witnessed").count();
            assert_eq!(accepted_schedules(&self.path("run.rwt"), &report), proven, "{program}");
        }
        self.follow(&example.options, next);
        for finding in report["findings"].as_array().unwrap() {
            has_names_of_the_source(finding["message"].as_str().unwrap());
            if example.is_observed {
                assert_eq!(finding["guarantee"], "observed");
                continue;
            }
            assert_eq!(finding["guarantee"], "witnessed");
            self.confirm(&example.options, finding["id"].as_str().unwrap(), program);
        }
    }

    /// Types every command that the report says to type next, those of `next`, and whatever these say, as printed; and
    /// looks whether the page has the same commands.
    #[track_caller]
    fn follow(&self, options: &[String], next: Vec<String>) {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let report = self.reweave(&[&["check", "run.rwt"], &options[..]].concat());
        let text = String::from_utf8_lossy(&report.stdout).into_owned();
        self.steps.borrow_mut().extend(shown_steps(&text));
        let lines = [next_lines(&text), of_other_ids(&text)].concat();
        assert!(!lines.is_empty(), "{text}");
        let page =
            self.reweave(&[&["check", "run.rwt", "--format", "html"], &options[..]].concat());
        let page = String::from_utf8_lossy(&page.stdout).into_owned();
        for line in lines.iter().filter(|line| line.contains("reweave confirm ")) {
            assert!(page.contains(&format!("\"confirm\":\"{line}\"")), "{line}");
        }
        let mut typed = BTreeSet::new();
        let mut open = [lines, next].concat();
        while let Some(line) = open.pop() {
            assert!(!line.contains("CMD"), "{line}");
            // Recording says how to record once more, and so on.
            let is_again = |other: &String| {
                line == *other || [&line, other].iter().all(|it| it.contains("reweave record "))
            };
            if typed.iter().any(is_again) {
                continue;
            }
            let output = self.type_line(&line);
            let said = [output.stdout, output.stderr].concat();
            open.extend(next_lines(&String::from_utf8_lossy(&said)));
            typed.insert(line);
        }
    }

    /// Types a command that a report prints, which must do what it says.
    #[track_caller]
    fn type_line(&self, line: &str) -> Output {
        let output = typed(self.command("sh"), line);
        let code = output.status.code();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if line.contains("reweave confirm ") {
            assert_eq!(code, Some(66), "{line}: {said}");
        } else if line.contains("reweave explain ") {
            assert_eq!(code, Some(0), "{line}: {said}");
        } else if line.contains("reweave record ") {
            assert!(said.contains(" → "), "{line}: {said}");
        } else {
            assert!(matches!(code, Some(0 | 66)), "{line}: {said}");
        }
        output
    }

    /// Has a finding confirmed in every attempt.
    #[track_caller]
    fn confirm(&self, options: &[String], id: &str, program: &str) {
        let attempts = if soak::multiplier() > 1 { "20" } else { "1" };
        let mut arguments = vec!["confirm", "run.rwt", id, "--format", "json"];
        arguments.extend(options.iter().map(String::as_str));
        arguments.extend(["--attempts", attempts, "--", program]);
        let ran = self.reweave(&arguments);
        expect(&ran, 66);
        let report: Value = serde_json::from_slice(&ran.stdout).expect("the report is JSON");
        let confirmed = &report["findings"][0]["confirmed"];
        assert_eq!(confirmed["times"].to_string(), attempts, "{program} {id}: {report:#}");
        assert_eq!(confirmed["attempts"].to_string(), attempts, "{program} {id}");
    }

    /// Looks whether nothing is found in runs of the twin, whatever the seed.
    #[track_caller]
    fn try_out_twin(&self, example: &Example, program: &str) {
        let mut next = Vec::new();
        for seed in 1..=soak::cases(3) {
            next = self.record(program, &example.output, &seed.to_string());
            let (code, report) = self.check(&example.options, &[]);
            assert_eq!((found(&report), code), (Vec::new(), 0), "{program} {seed}: {report:#}");
        }
        self.follow(&example.options, next);
    }
}

/// The commands that `text` says to type next, with the other ids that it names: `(the same with R2, S1)`.
fn of_other_ids(text: &str) -> Vec<String> {
    let said =
        text.lines().find_map(|line| line.strip_prefix("(the same with ")?.strip_suffix(')'));
    let with = |id: &str, line: &String| {
        let mut words: Vec<&str> = line.split(' ').collect();
        assert!(matches!(words[..2], ["reweave", "explain" | "confirm"]), "{line}");
        words[3] = id;
        words.join(" ")
    };
    let lines = next_lines(text);
    let ids = said.into_iter().flat_map(|ids| ids.split(", ")).filter(|&id| id != "…");
    ids.flat_map(|id| lines.iter().map(move |line| with(id, line))).collect()
}

/// Nothing in a headline is called by an offset, an address or a number.
#[track_caller]
fn has_names_of_the_source(message: &str) {
    let words = ["block#", "block@", "memory#", "lock#", "condition#", "semaphore#", "0x"];
    assert!(!words.iter().any(|word| message.contains(word)), "{message}");
    let offsets = message.split('+').skip(1);
    let is_offset = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_digit());
    assert!(!offsets.into_iter().any(is_offset), "{message}");
}

#[track_caller]
fn expect(ran: &Output, code: i32) {
    let said = [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert_eq!(ran.status.code(), Some(code), "{}{}", said[0], said[1]);
}

/// The kind of each finding of a report and the lines that it names, in order.
fn found(report: &Value) -> Vec<(String, Vec<u64>)> {
    let line = |site: &Value| -> u64 {
        let (_, line) = site["location"].as_str().unwrap().rsplit_once(':').unwrap();
        line.parse().unwrap()
    };
    let finding = |finding: &Value| {
        let sites = finding["sites"].as_array().unwrap();
        let mut lines: Vec<u64> = sites.iter().map(line).collect();
        lines.sort_unstable();
        (finding["kind"].as_str().unwrap().to_owned(), lines)
    };
    report["findings"].as_array().unwrap().iter().map(finding).collect()
}

/// Every compiler for a language with every level of optimisation.
fn combinations(language: &str) -> Vec<(&'static str, &'static str)> {
    let with_levels = |compiler| LEVELS.map(|level| (compiler, level));
    compilers(language).into_iter().flat_map(with_levels).collect()
}

/// Builds an example and its twin, and tries them out; gives how many events its schedules show.
#[track_caller]
fn check(example: &Example, compiler: &str, level: &str) -> Vec<usize> {
    let place = Place::new();
    let program = place.build(&example.name, &example.language, compiler, level);
    place.try_out(example, &program);
    if example.has_twin {
        let twin = format!("{}_fixed", example.name);
        let program = place.build(&twin, &example.language, compiler, level);
        place.try_out_twin(example, &program);
    } else {
        place.try_out_twin(example, &program);
    }
    place.steps.into_inner()
}

/// Tries every so many of the examples in C and C++, each with one compiler and level by turns, or
/// with all of them in a soak.
fn check_part(part: usize, parts: usize) {
    let natives = examples().into_iter().filter(|example| example.language != "rust");
    let mut steps = Vec::new();
    for (number, example) in natives.enumerate().filter(|(number, _)| number % parts == part) {
        let all = combinations(&example.language);
        let turn = all.iter().cycle().skip(number / parts).take(1);
        let chosen: Vec<_> = match soak::multiplier() {
            1 if all.is_empty() => Vec::new(),
            1 => turn.collect(),
            _ => all.iter().collect(),
        };
        for (compiler, level) in chosen {
            steps.extend(check(&example, compiler, level));
        }
    }
    must_be_short(steps);
}

#[test]
fn faults_are_predicted_and_confirmed_and_twins_are_clean() {
    check_part(0, 2);
}

#[test]
fn so_are_those_of_the_other_half() {
    check_part(1, 2);
}

#[test]
fn every_compiler_and_level_shows_the_hidden_race() {
    let example = named("hidden_race", "c");
    for (compiler, level) in combinations("c") {
        check(&example, compiler, level);
    }
}

#[test]
fn every_compiler_and_level_shows_the_deadlock_of_three() {
    let example = named("three_way_deadlock", "c++");
    for (compiler, level) in combinations("c++") {
        check(&example, compiler, level);
    }
}

/// Builds the examples in Rust, debug or release, and tries them out.
fn check_rust(profile: &str, options: &[&str]) {
    if !has("cargo") || !has("cc") {
        return;
    }
    let place = Place::new();
    for file in ["Cargo.toml", "Cargo.lock"] {
        fs::copy(examples_folder().join("rust").join(file), place.path(file)).unwrap();
    }
    fs::create_dir_all(place.path("src/bin")).unwrap();
    for entry in fs::read_dir(examples_folder().join("rust/src/bin")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), place.path("src/bin").join(entry.file_name())).unwrap();
    }
    expect(&place.reweave(&[&["cargo", "build", "--offline"], options].concat()), 0);
    let folder = format!("target/reweave/x86_64-unknown-linux-gnu/{profile}");
    for example in examples().iter().filter(|example| example.language == "rust") {
        place.try_out(example, &format!("{folder}/{}", example.name));
        place.try_out_twin(example, &format!("{folder}/{}_fixed", example.name));
    }
    must_be_short(place.steps.into_inner());
}

#[test]
fn so_are_those_of_rust_programs() {
    check_rust("debug", &[]);
}

#[test]
fn so_are_those_of_optimised_rust_programs() {
    check_rust("release", &["--release"]);
}

#[test]
fn what_is_read_right_before_it_is_written_is_seen_to_be_read() {
    for (compiler, level) in combinations("c") {
        let place = Place::new();
        let program = place.build("lost_update", "c", compiler, level);
        place.record(&program, "3 hits\n", "1");
        let ran = place.reweave(&["convert", "--to", "std", "run.rwt", "-"]);
        let text = String::from_utf8_lossy(&ran.stdout);
        let counts = ["r(hits)", "w(hits)"].map(|op| text.matches(op).count());
        // Main reads the sum.
        assert_eq!(counts, [4, 3], "{compiler} {level}\n{text}");
    }
}

#[test]
fn there_is_a_source_for_everything_expected_and_nothing_else() {
    let mut expected: Vec<String> = Vec::new();
    for Example { name, language, has_twin, .. } in examples() {
        let (folder, extension) = match language.as_str() {
            "c" => ("", "c"),
            "c++" => ("", "cpp"),
            _ => ("rust/src/bin/", "rs"),
        };
        expected.push(format!("{folder}{name}.{extension}"));
        if has_twin {
            expected.push(format!("{folder}{name}_fixed.{extension}"));
        }
    }
    expected.sort();
    let files = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(examples_folder().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.map(|name| format!("{folder}{name}")).collect()
    };
    let mut sources = [files(""), files("rust/src/bin/")].concat();
    sources.retain(|name| [".c", ".cpp", ".rs"].iter().any(|end| name.ends_with(end)));
    sources.sort();
    assert_eq!(sources, expected);
}

#[test]
fn check_confirms_all_that_it_finds_if_asked() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let place = Place::new();
    let example = named("condition_flag", "c");
    let program = place.build(&example.name, "c", compiler, "-O1");
    place.record(&program, &example.output, "1");
    let (code, report) = place.check(&[], &["--confirm", "--", &program]);
    assert_eq!((code, found(&report)), (66, example.findings));
    assert_eq!(report["findings"][0]["confirmed"]["times"], 1, "{report:#}");
    let text = place.reweave(&["check", "run.rwt", "--confirm", "--", &program]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("confirmed: 1 of 1"));
}

/// `trace` as a recorder would give it that missed all locks: nothing keeps accesses apart.
fn without_locks(trace: &Trace) -> Trace {
    let (names, origins) = (trace.names(), trace.origins().expect("it was recorded"));
    let mut builder = TraceBuilder::new();
    for module in origins.modules().iter() {
        builder.origins().add_module(module.clone());
    }
    for code in origins.codes().iter() {
        builder.origins().add_code(*code);
    }
    for (id, event) in trace.events() {
        let mut thread = |thread| builder.thread(names.threads.name(thread));
        let (own, op) = match event.op {
            Op::Thread(ThreadOp::Fork, child) => {
                (thread(event.thread), Op::Thread(ThreadOp::Fork, thread(child)))
            }
            Op::Thread(ThreadOp::Join, child) => {
                (thread(event.thread), Op::Thread(ThreadOp::Join, thread(child)))
            }
            Op::Access(AccessOp::Read, var) => (
                thread(event.thread),
                Op::Access(AccessOp::Read, builder.var(names.vars.name(var))),
            ),
            Op::Access(AccessOp::Write, var) => (
                thread(event.thread),
                Op::Access(AccessOp::Write, builder.var(names.vars.name(var))),
            ),
            _ => continue,
        };
        let site = builder.site(names.location(event.site));
        builder.push(own, op, site);
        builder.origin(origins.get(id).expect("all that is kept comes from the program"));
    }
    builder.finish().expect("locks were all that was left out")
}

#[test]
fn what_a_lock_keeps_apart_is_never_confirmed() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let place = Place::new();
    let program = place.build("hidden_race_fixed", "c", compiler, "-O0");
    place.record(&program, &named("hidden_race", "c").output, "1");
    let path = place.path("run.rwt");
    let trace = reweave_format::read(&path, &ReadOptions::default()).unwrap().trace;
    reweave_format::write(&without_locks(&trace), &path, Format::Rwt, None).unwrap();
    let attempts = soak::cases(1).to_string();
    let options = ["--confirm", "--attempts", &attempts, "--", &program];
    let (_, report) = place.check(&[], &options);
    let findings = report["findings"].as_array().unwrap();
    assert!(!findings.is_empty());
    for finding in findings {
        let reason = finding["not_confirmed"]["reason"].as_str();
        let reason = reason.unwrap_or_else(|| panic!("{finding:#}"));
        assert!(reason.contains("waited for a lock"), "{reason}");
    }
}
