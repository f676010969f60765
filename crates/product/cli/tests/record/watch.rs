//! What is reported while a program is recorded: states that meet a predicate, and stalls.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::harness::has;

/// A folder for one test: a program, its traces, and the runtime.
struct Bench {
    folder: TempDir,
    program: PathBuf,
}

impl Bench {
    /// Builds the program `name`; nothing if there is no compiler.
    fn new(name: &str) -> Option<Self> {
        if !has("cc") {
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = folder.path().join(name);
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/watch");
        let bench = Self { folder, program };
        let source = format!("{name}.c");
        std::fs::copy(sources.join(&source), bench.folder.path().join(&source)).unwrap();
        let built = bench.run(&["cc", "-g", "-O1", "-pthread", &source, "-o", name]);
        assert!(built.status.success(), "{}", error(&built));
        Some(bench)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reweave"));
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("REWEAVE_CACHE", self.folder.path().join("cache"));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the command starts")
    }

    /// Records the program with `options`.
    fn record(&self, options: &[&str]) -> Output {
        let program = self.program.to_str().expect("a name of letters");
        let words = [&["record", "-o", "run.rwt"], options, &["--", program]].concat();
        self.run(&words)
    }
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_state_is_told_while_the_program_runs() {
    let Some(bench) = Bench::new("halves") else { return };
    // The program never ends by itself.
    let words = ["record", "-o", "run.rwt", "--watch", "x == 1 && y == 0", "--", "./halves"];
    let mut recorder = bench.command(&words).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(recorder.stderr.take().unwrap()).lines();
    let told = lines.next().unwrap().unwrap();
    // Whether the other thread has been there already is up to the run.
    let state = "reweave: a state can be reached that meets x == 1 && y == 0: \
                 x = 1 (T1, halves.c:13), y = 0 (";
    assert!(told.starts_with(state), "{told}");
    assert!(told.ends_with("at the start)") || told.ends_with("T2, halves.c:23)"), "{told}");
    assert!(recorder.try_wait().unwrap().is_none(), "it still runs");
    let ended = Command::new("kill").args(["-INT", &recorder.id().to_string()]).status().unwrap();
    assert!(ended.success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line.contains("→ run.rwt")), "{rest:?}");
    recorder.wait().unwrap();
    let found = bench.run(&["states", "find", "run.rwt", "--predicate", "x == 1 && y == 0"]);
    assert_eq!(found.status.code(), Some(66), "{}", error(&found));
}

#[test]
fn what_is_not_found_is_said_with_the_reason() {
    let Some(bench) = Bench::new("halves") else { return };
    let options = ["--limit", "20000", "--watch", "x == 7", "--watch", "x == 1 && nowhere == 1"];
    let output = bench.record(&options);
    let said = error(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("reweave: no state found for x == 7\n"), "{said}");
    assert!(said.contains("reweave: the program has no global variable `nowhere`\n"), "{said}");
    let options = ["--limit", "60000", "--watch", "x == 7 && y == 7"];
    let said = error(&bench.record(&options));
    let short = "no state found for x == 7 && y == 7, but not all were searched";
    assert!(said.contains(short), "{said}");
}

#[test]
fn what_cannot_be_watched_for_is_refused() {
    let Some(bench) = Bench::new("halves") else { return };
    for (options, reason) in [
        (&["--watch", "race"][..], "unknown while the program runs: which accesses race"),
        (&["--watch", "count(t: holds(t, first)) > 1"], "which threads there are in all"),
        (&["--watch", "x =="], "expected"),
        (&["--watch", "x == 1", "--mode", "free"], "remove `--mode free`"),
        (&["--watch", "x == 1", "--no-values"], "remove `--mode free` and `--no-values`"),
    ] {
        let output = bench.record(options);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(error(&output).contains(reason), "{options:?}: {}", error(&output));
    }
}

#[test]
fn what_is_found_while_a_program_runs_is_what_its_trace_has() {
    const PREDICATES: [&str; 15] = [
        "ready == 2 && data == 10",
        "ready == 1 && data == 10",
        "sum == 10 && written == 3",
        "sum == 0 && written == 3",
        "counter == 1 && sum < 60",
        "guarded == 1 && plain == 3",
        "guarded == 0 && plain == 3",
        "set_up == 7 && data == 0",
        "plain == 3 && sum == 0",
        "always(sum + data < 70)",
        "holds(T1, mutex) && holds(T2, mutex)",
        "holds(T2, mutex) && ready == 3",
        "written == 2 && holds(T2, table)",
        "flag == 1 && plain == 2",
        "guarded >= 6 && written <= 2",
    ];
    let Some(bench) = Bench::new("ordered") else { return };
    let mut counts = [0, 0];
    for seed in 1..=3 {
        let seed = seed.to_string();
        let mut options = vec!["--all-memory", "--seed", &seed];
        options.extend(PREDICATES.iter().flat_map(|predicate| ["--watch", predicate]));
        let output = bench.record(&options);
        let said = error(&output);
        assert!(output.status.success(), "{said}");
        for predicate in PREDICATES {
            let is_told = said.contains(&format!("meets {predicate}:"))
                || said.contains(&format!("breaks {predicate}:"));
            let found = bench.run(&["states", "find", "run.rwt", "--predicate", predicate]);
            let is_found = found.status.code() == Some(66);
            assert_eq!(is_told, is_found, "seed {seed}, {predicate}:\n{said}{}", error(&found));
            counts[usize::from(is_told)] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count >= 5), "{counts:?}");
}

#[test]
fn threads_that_wait_for_each_other_are_named_and_checked() {
    let Some(bench) = Bench::new("circle") else { return };
    let output = bench.record(&["--stall-timeout", "1"]);
    let said = error(&output);
    let expected = "reweave: no progress for 1 s: T1 waits for lock right (circle.c:12), \
                    which T2 holds; T2 waits for lock left (circle.c:20), which T1 holds: a deadlock\n";
    assert!(said.contains(expected), "{said}");
    assert_eq!(output.status.code(), Some(128 + 15), "{said}");
    let checked = bench.run(&["check", "run.rwt"]);
    let report = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(checked.status.code(), Some(66), "{report}");
    let expected = "the recorded run deadlocked: T1 waits for lock right, which T2 holds";
    assert!(report.contains(expected), "{report}");
}

#[test]
fn who_sleeps_is_not_accused() {
    let Some(bench) = Bench::new("idle") else { return };
    let output = bench.record(&["--stall-timeout", "1"]);
    let said = error(&output);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("no progress for"), "{said}");
}
