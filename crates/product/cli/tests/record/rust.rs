//! `cargo reweave`: a Cargo project is built, recorded, checked and replayed.
//!
//! The project is built once for each profile. A program that uses all of the standard library's
//! synchronisation must behave as it does when it is built plainly, and nothing may be found in it:
//! whatever is not seen of a lock would show as a race. Faulty programs have their fault found and
//! made to happen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use expect_test::expect;

use crate::harness::{has, must_be_short, shown_steps};

const MANIFEST: &str = r#"[package]
name = "project"
version = "0.1.0"
edition = "2024"
build = "build.rs"

[dependencies]
macros = { path = "macros" }

[profile.release]
lto = true
strip = true

[workspace]
"#;

const PARKING_MANIFEST: &str = r#"[package]
name = "parking"
version = "0.1.0"
edition = "2024"

[dependencies]
parking_lot = "0.12"

[workspace]
"#;

const MACROS_MANIFEST: &str = r#"[package]
name = "macros"
version = "0.1.0"
edition = "2024"

[lib]
proc-macro = true
"#;

const MACROS: &str = r#"
#[proc_macro]
pub fn seven(_: proc_macro::TokenStream) -> proc_macro::TokenStream {
    "7".parse().unwrap()
}
"#;

const BUILD_SCRIPT: &str = r#"fn main() {
    println!("cargo:rustc-env=SAID=built");
}
"#;

const LIBRARY: &str = r#"
pub fn seven() -> u32 {
    macros::seven!()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    static SUM: Mutex<u32> = Mutex::new(0);

    #[test]
    fn adds_what_the_macro_says() {
        *SUM.lock().unwrap() += super::seven();
    }

    #[test]
    fn adds_too() {
        assert_eq!(env!("SAID"), "built");
        *SUM.lock().unwrap() += 1;
    }

    #[test]
    #[cfg_attr(all(), ignore)]
    fn fails() {
        panic!("as it should");
    }
}
"#;

/// A project that was built, or could not be.
struct Project {
    folder: PathBuf,
}

/// The one project. It stays where it is, so that it is built anew only if something changed.
static PROJECT: LazyLock<Option<Project>> = LazyLock::new(Project::make);

/// The one that uses locks of a crate from outside.
static PARKING: LazyLock<Option<Project>> = LazyLock::new(Project::make_parking);

#[allow(clippy::print_stderr, reason = "whoever runs the tests must see what was not tried")]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

impl Project {
    fn make() -> Option<Self> {
        let files = [
            ("Cargo.toml", MANIFEST),
            ("build.rs", BUILD_SCRIPT),
            ("src/lib.rs", LIBRARY),
            ("src/bin/sound.rs", include_str!("rust/sound.rs")),
            ("src/bin/race.rs", include_str!("rust/race.rs")),
            ("src/bin/deadlock.rs", include_str!("rust/deadlock.rs")),
            ("src/bin/streams.rs", include_str!("rust/streams.rs")),
            ("src/bin/ends.rs", include_str!("rust/ends.rs")),
            ("src/bin/orders.rs", include_str!("rust/orders.rs")),
            ("src/bin/named.rs", include_str!("rust/named.rs")),
            ("macros/Cargo.toml", MACROS_MANIFEST),
            ("macros/src/lib.rs", MACROS),
        ];
        let project = Self::write("rust", &files)?;
        for profile in PROFILES {
            let built = project.build(profile);
            let said = String::from_utf8_lossy(&built.stderr);
            assert!(built.status.success(), "{said}");
            assert!(!said.contains("reweave:"), "{said}");
        }
        Some(project)
    }

    /// A project that needs a crate from outside; nothing where that was never fetched.
    fn make_parking() -> Option<Self> {
        let files =
            [("Cargo.toml", PARKING_MANIFEST), ("src/main.rs", include_str!("rust/parking.rs"))];
        let project = Self::write("parking", &files)?;
        for profile in PROFILES {
            let built = project.build(profile);
            let said = String::from_utf8_lossy(&built.stderr);
            if said.contains("--offline") {
                skip("parking_lot is not in cargo's cache");
                return None;
            }
            assert!(built.status.success(), "{said}");
        }
        Some(project)
    }

    fn build(&self, profile: Profile) -> Output {
        self.reweave(&["cargo", "build", "--offline", "--profile", profile.name])
    }

    /// The folder `name` with `files` in it; nothing where projects cannot be built.
    fn write(name: &str, files: &[(&str, &str)]) -> Option<Self> {
        if !["cargo", "rustc", "cc", "ld.bfd"].into_iter().all(has) {
            return None;
        }
        let project = Self { folder: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name) };
        for &(name, text) in files {
            let path = project.folder.join(name);
            fs::create_dir_all(path.parent().expect("a file is in a folder")).unwrap();
            // Left alone if it is the same, since cargo looks at times.
            if fs::read_to_string(&path).is_ok_and(|before| before == text) {
                continue;
            }
            fs::write(path, text).unwrap();
        }
        Some(project)
    }

    /// The command in the project's folder, with nothing of the cargo that runs this test.
    fn command(&self, program: impl AsRef<Path>, words: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command.args(words).current_dir(&self.folder).stdin(Stdio::null());
        command.env("REWEAVE_CACHE", self.folder.join("cache")).env("RUST_BACKTRACE", "0");
        for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "RUSTFLAGS", "REWEAVE_RUNTIME"] {
            command.env_remove(name);
        }
        command
    }

    fn reweave(&self, words: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_reweave"), words).output().unwrap()
    }

    /// Records `words`, the first of which is a program of the project, to the trace `name`.
    #[track_caller]
    fn record(&self, profile: Profile, how: &[&str], words: &[&str], name: &str) -> Output {
        let program = self.program(profile, words[0]);
        let all = [&["record", "-o", name], how, &["--", &program], &words[1..]].concat();
        let output = self.reweave(&all);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&format!("→ {name}")), "{said}");
        assert!(!said.contains("inconsistent event"), "{how:?} {words:?}: {said}");
        output
    }

    fn program(&self, profile: Profile, name: &str) -> String {
        let folder = self.folder.join("target/reweave/x86_64-unknown-linux-gnu");
        folder.join(profile.folder).join(name).display().to_string()
    }
}

/// A profile of cargo, and the folder that its programs are in.
#[derive(Clone, Copy, Debug)]
struct Profile {
    name: &'static str,
    folder: &'static str,
}

const PROFILES: [Profile; 2] =
    [Profile { name: "dev", folder: "debug" }, Profile { name: "release", folder: "release" }];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The names that the text form of a trace has behind `operation`.
fn names(trace: &str, operations: &[&str]) -> Vec<String> {
    let operands = trace.lines().filter_map(|line| {
        let (operation, rest) = line.split('|').nth(1)?.split_once('(')?;
        let operation = operation.split('.').next()?;
        operations.contains(&operation).then(|| rest.trim_end_matches(')').to_owned())
    });
    let mut names: Vec<String> = operands.collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn structures_of_atomics_whose_orders_are_too_weak_have_races() {
    let Some(project) = &*PROJECT else { return };
    for profile in PROFILES {
        for how in ["references", "stack"] {
            for seed in ["1", "2", "3"] {
                let record = |words: &[&str]| {
                    let run = project.record(profile, &["--seed", seed], words, "orders.rwt");
                    assert!(run.status.success(), "{}", text(&run.stderr));
                    project.reweave(&["check", "orders.rwt"])
                };
                let case = format!("{} {how} {seed}", profile.name);
                let check = record(&["orders", how]);
                assert_eq!(check.status.code(), Some(0), "{case}: {}", text(&check.stdout));
                let check = record(&["orders", how, "weak"]);
                assert_eq!(check.status.code(), Some(66), "{case}: {}", text(&check.stdout));
                assert!(text(&check.stdout).contains("are ordered by nothing"), "{case}");
            }
        }
    }
}

#[test]
fn fields_elements_and_variants_have_the_names_of_the_source() {
    let Some(project) = &*PROJECT else { return };
    let run = project.record(PROFILES[0], &[], &["named"], "named.rwt");
    assert!(run.status.success(), "{}", text(&run.stderr));
    let check = text(&project.reweave(&["check", "named.rwt"]).stdout);
    let words = ["at the same time", "was started", "allocated", "holding"];
    let is_about_names = |line: &&str| words.iter().any(|word| line.contains(word));
    // How many events come before depends on the standard library.
    let without_number = |line: &str| match line.trim_start().split_once(", T") {
        Some((number, rest)) if number.starts_with("event ") => format!("  T{rest}"),
        _ => line.trim_start().to_owned(),
    };
    let lines: Vec<String> = check.lines().filter(is_about_names).map(without_number).collect();
    expect![[r#"
          `w(named::STATS.0.bytes[2])` at src/bin/named.rs:39 and `r(named::STATS.0.bytes[2])` at src/bin/named.rs:39 can happen at the same time
            T1: w(named::STATS.0.bytes[2]) at src/bin/named.rs:39 in named::work, holding no lock
            T2: r(named::STATS.0.bytes[2]) at src/bin/named.rs:39 in named::work, holding no lock
          T1 `worker-0` was started at src/bin/named.rs:57 by main; T2 `worker-1` at src/bin/named.rs:57 by main
          `w(Arc<Server>#1.state.Busy.job)` at src/bin/named.rs:41 and `r(Arc<Server>#1.state.Busy.job)` at src/bin/named.rs:41 can happen at the same time
            T1: w(Arc<Server>#1.state.Busy.job) at src/bin/named.rs:41 in named::work, holding no lock
            T2: r(Arc<Server>#1.state.Busy.job) at src/bin/named.rs:41 in named::work, holding no lock
          T1 `worker-0` was started at src/bin/named.rs:57 by main; T2 `worker-1` at src/bin/named.rs:57 by main
          Arc<Server>#1 was allocated at src/bin/named.rs:48 by main
          `w(Arc<Server>#1.state.Busy.tries.1)` at src/bin/named.rs:42 and `r(Arc<Server>#1.state.Busy.tries.1)` at src/bin/named.rs:42 can happen at the same time
            T1: w(Arc<Server>#1.state.Busy.tries.1) at src/bin/named.rs:42 in named::work, holding no lock
            T2: r(Arc<Server>#1.state.Busy.tries.1) at src/bin/named.rs:42 in named::work, holding no lock
          T1 `worker-0` was started at src/bin/named.rs:57 by main; T2 `worker-1` at src/bin/named.rs:57 by main
          Arc<Server>#1 was allocated at src/bin/named.rs:48 by main"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn threads_have_the_names_that_their_builders_gave_them() {
    let Some(project) = &*PROJECT else { return };
    for mode in ["serial", "free"] {
        let run = project.record(PROFILES[0], &["--mode", mode], &["named"], "called.rwt");
        assert!(run.status.success(), "{}", text(&run.stderr));
        let report = project.reweave(&["check", "called.rwt", "--format", "json"]);
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        let names = serde_json::json!({ "T1": "worker-0", "T2": "worker-1" });
        assert_eq!(report["trace"]["thread_names"], names, "{mode}");
    }
}

#[test]
fn nothing_is_found_in_a_program_without_faults() {
    let Some(project) = &*PROJECT else { return };
    let built = project.command("cargo", &["build", "--offline"]).output().unwrap();
    assert!(built.status.success(), "{}", text(&built.stderr));
    let plain = project.command(project.folder.join("target/debug/sound"), &[]).output().unwrap();
    assert_eq!(plain.status.code(), Some(3));
    let seeds_count = reweave_testkit::soak::cases(3);
    for profile in PROFILES {
        for mode in ["serial", "free"] {
            for seed in 0..seeds_count {
                let seed = seed.to_string();
                let case = format!("{} {mode} {seed}", profile.name);
                let how = ["--mode", mode, "--seed", &seed];
                let run = project.record(profile, &how, &["sound"], "sound.rwt");
                assert_eq!(run.status.code(), Some(3), "{case}: {}", text(&run.stderr));
                assert_eq!(text(&run.stdout), text(&plain.stdout), "{case}");
                let check = project.reweave(&["check", "sound.rwt"]);
                assert!(check.status.success(), "{case}: {}", text(&check.stdout));
            }
            // Every lock is one, and none is at times a lock and at times a variable.
            let converted = project.reweave(&["convert", "sound.rwt", "sound.std"]);
            assert!(converted.status.success(), "{}", text(&converted.stderr));
            let trace = fs::read_to_string(project.folder.join("sound.std")).unwrap();
            let locks = names(&trace, &["acq", "racq"]);
            assert!(locks.iter().any(|lock| lock == "sound::GIVEN_BACK"), "{locks:?}");
            let variables = names(&trace, &["r", "w", "ar", "aw", "arw"]);
            let both: Vec<_> = locks.iter().filter(|lock| variables.contains(lock)).collect();
            assert!(both.is_empty(), "{both:?}");
        }
    }
}

/// Records `words`, which prints `printed`; says what `check` says. On a busy machine threads that run
/// freely can come too close to each other to know who wrote what was read: then once more.
#[track_caller]
fn check_run(
    project: &Project,
    profile: Profile,
    mode: &str,
    words: &[&str],
    printed: &str,
    name: &str,
) -> String {
    let mut said = String::new();
    for _ in 0..5 {
        let run = project.record(profile, &["--mode", mode], words, name);
        assert_eq!((run.status.code(), &*text(&run.stdout)), (Some(0), printed));
        said = text(&project.reweave(&["check", name]).stdout);
        if !said.contains("threads ran freely") {
            break;
        }
    }
    said
}

/// Records `words`, which has the fault `id` and prints `printed`, and makes the fault happen.
#[track_caller]
fn check_fault(words: &[&str], printed: &str, id: &str, places: [&str; 2]) {
    let Some(project) = &*PROJECT else { return };
    for profile in PROFILES {
        for mode in ["serial", "free"] {
            let name = format!("{}-{mode}.rwt", words.join("-"));
            let said = check_run(project, profile, mode, words, printed, &name);
            let ids = said.lines().filter(|line| line.contains("  witnessed  "));
            let ids: Vec<_> = ids.filter_map(|line| line.split(' ').next()).collect();
            assert_eq!(ids, [id], "{} {mode} {words:?}: {said}", profile.name);
            assert!(places.iter().all(|place| said.contains(place)), "{said}");
            must_be_short(shown_steps(&said));
            let program = project.program(profile, words[0]);
            let confirm = ["confirm", "--attempts", "20", &name, id, "--", &program];
            let confirmed = project.reweave(&[&confirm[..], &words[1..]].concat());
            let said = text(&confirmed.stdout);
            assert!(said.contains("confirmed: 20 of 20"), "{} {mode}: {said}", profile.name);
        }
    }
}

#[test]
fn a_race_that_a_lock_hides_is_found_and_confirmed() {
    let places = ["src/bin/race.rs:24", "src/bin/race.rs:33"];
    check_fault(&["race"], "2\n", "R1", places);
}

#[test]
fn a_race_is_confirmed_though_the_lock_was_waited_for_when_it_was_recorded() {
    let places = ["src/bin/race.rs:24", "src/bin/race.rs:33"];
    check_fault(&["race", "waits"], "2\n", "R1", places);
}

#[test]
fn a_deadlock_is_found_and_confirmed() {
    let places = ["src/bin/deadlock.rs:37", "src/bin/deadlock.rs:48"];
    check_fault(&["deadlock"], "8 2\n", "D1", places);
}

#[test]
fn the_lock_of_the_output_is_one_that_can_hide_a_race() {
    let places = ["src/bin/streams.rs:33", "src/bin/streams.rs:39"];
    check_fault(&["streams", "race"], "2\n", "R1", places);
}

#[test]
fn the_lock_of_the_output_is_one_that_can_deadlock() {
    let places = ["src/bin/streams.rs:46", "src/bin/streams.rs:52"];
    check_fault(&["streams", "deadlock"], "2\n", "D1", places);
}

#[test]
fn what_cargo_runs_is_recorded_and_ends_as_it_does() {
    let Some(project) = &*PROJECT else { return };
    let traces = project.folder.join("traces");
    _ = fs::remove_dir_all(&traces);
    fs::create_dir(&traces).unwrap();
    let cargo = |words: &[&str]| {
        let own = Path::new(env!("CARGO_BIN_EXE_cargo-reweave"));
        let mut command = project.command(own, &[&["reweave"], words].concat());
        command.current_dir(&traces).output().unwrap()
    };
    let run = cargo(&["run", "--offline", "--bin", "sound", "--", "scopes"]);
    assert_eq!((run.status.code(), &*text(&run.stdout)), (Some(3), "scopes 27\n"));
    assert!(traces.join("sound.rwt").is_file());
    let run = cargo(&["-o", "mine.rwt", "run", "--offline", "--bin", "sound", "--", "mutex"]);
    assert_eq!((run.status.code(), &*text(&run.stdout)), (Some(3), "mutex 18\n"));
    assert!(traces.join("mine.rwt").is_file());
    let test = cargo(&["-o", "made/here", "test", "--offline", "--lib", "-p", "project"]);
    assert_eq!(test.status.code(), Some(0), "{}", text(&test.stderr));
    assert!(text(&test.stdout).contains("2 passed"), "{}", text(&test.stdout));
    let trace = traces.join("made/here/project-test.rwt").display().to_string();
    let check = project.reweave(&["check", &trace]);
    assert!(check.status.success(), "{}", text(&check.stdout));
    let words = ["test", "--offline", "--lib", "-p", "project", "--", "--include-ignored"];
    let failed = cargo(&words);
    assert_eq!(failed.status.code(), Some(101), "{}", text(&failed.stderr));
    assert!(text(&failed.stdout).contains("1 failed"), "{}", text(&failed.stdout));
}

#[test]
fn nothing_is_found_in_a_program_with_locks_of_other_crates() {
    let Some(project) = &*PARKING else { return };
    for profile in PROFILES {
        for mode in ["serial", "free"] {
            for seed in 0..reweave_testkit::soak::cases(3) {
                let seed = seed.to_string();
                let how = ["--mode", mode, "--seed", &seed];
                let run = project.record(profile, &how, &["parking"], "sound.rwt");
                assert_eq!(text(&run.stdout), "[9, 9, 9, 9, 9, 2]\n");
                let check = project.reweave(&["check", "sound.rwt"]);
                let case = format!("{} {mode} {seed}", profile.name);
                assert!(check.status.success(), "{case}: {}", text(&check.stdout));
            }
        }
    }
}

#[test]
fn locks_of_other_crates_hide_no_race_and_no_deadlock() {
    let Some(project) = &*PARKING else { return };
    for profile in PROFILES {
        for mode in ["serial", "free"] {
            for (word, id) in [("race", "R1"), ("deadlock", "D1")] {
                project.record(profile, &["--mode", mode], &["parking", word], "faulty.rwt");
                let said = text(&project.reweave(&["check", "faulty.rwt"]).stdout);
                let ids = said.lines().filter(|line| line.contains("  witnessed  "));
                let ids: Vec<_> = ids.filter_map(|line| line.split(' ').next()).collect();
                assert_eq!(ids, [id], "{} {mode} {word}: {said}", profile.name);
            }
        }
    }
}

#[test]
fn locks_of_other_crates_are_acquired_in_lines_of_the_program() {
    let Some(project) = &*PARKING else { return };
    for profile in PROFILES {
        project.record(profile, &[], &["parking", "deadlock"], "placed.rwt");
        let check = project.reweave(&["check", "placed.rwt", "--format", "json"]);
        let report = text(&check.stdout);
        assert!(!report.contains("registry/src"), "{report}");
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let message = report["findings"][0]["message"].as_str().unwrap();
        expect!["T1 holds `parking::MUTEX` and waits for `parking::OTHER` at src/main.rs:122, T2 holds `parking::OTHER` and waits for `parking::MUTEX` at src/main.rs:122"].assert_eq(message);
    }
}

/// The files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => files(&path),
        path => vec![path],
    });
    below.collect()
}

#[test]
fn build_scripts_and_macros_stay_as_they_are() {
    let Some(project) = &*PROJECT else { return };
    let is_instrumented = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(7).any(|part| part == b"__tsan_")
    };
    assert!(is_instrumented(Path::new(&project.program(PROFILES[0], "sound"))));
    let built = files(&project.folder.join("target/reweave/debug"));
    let ends =
        |end: &'static str| built.iter().filter(move |path| path.to_string_lossy().ends_with(end));
    let scripts: Vec<_> = ends("build-script-build").collect();
    let macros: Vec<_> = ends(".so").collect();
    assert!(!scripts.is_empty() && !macros.is_empty(), "{built:?}");
    for path in scripts.into_iter().chain(macros) {
        assert!(!is_instrumented(path), "{}", path.display());
    }
}

#[test]
fn without_a_c_compiler_it_says_what_is_missing() {
    let Some(project) = &*PROJECT else { return };
    let which = |tool: &str| {
        let mut command = project.command("sh", &["-c", &format!("command -v {tool}")]);
        text(&command.output().unwrap().stdout).trim().to_owned()
    };
    let mut command = project.command(env!("CARGO_BIN_EXE_reweave"), &["cargo", "build"]);
    command.env("CARGO", which("cargo")).env("RUSTC", which("rustc"));
    let output = command.env("PATH", project.folder.join("src")).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no `cc`"), "{said}");
}

/// Compiles the standard library, which takes minutes.
#[test]
fn with_a_standard_library_of_its_own_all_is_the_same() {
    let Some(project) = &*PROJECT else { return };
    if reweave_testkit::soak::multiplier() == 1 {
        return skip("REWEAVE_SOAK is not set, and building the standard library takes minutes");
    }
    let folder = project.folder.join("target/std");
    let target = folder.display().to_string();
    for profile in PROFILES {
        let words = ["cargo", "build", "--build-std", "--profile", profile.name];
        let built = project.reweave(&[&words[..], &["--target-dir", &target]].concat());
        let said = text(&built.stderr);
        if said.contains("rust-src") || said.contains("failed to download") {
            return skip(&said);
        }
        assert!(built.status.success(), "{said}");
        let below = folder.join("x86_64-unknown-linux-gnu").join(profile.folder);
        let program = |name: &str| below.join(name).display().to_string();
        for mode in ["serial", "free"] {
            let sound = ["record", "--mode", mode, "-o", "std.rwt", "--", &program("sound")];
            let run = project.reweave(&sound);
            assert_eq!(run.status.code(), Some(3), "{}", text(&run.stderr));
            let check = project.reweave(&["check", "std.rwt"]);
            assert!(check.status.success(), "{mode}: {}", text(&check.stdout));
            for (name, id) in [("race", "R1"), ("deadlock", "D1")] {
                let words = ["--", &program(name)];
                let record = ["record", "--mode", mode, "-o", "std.rwt"];
                project.reweave(&[&record[..], &words].concat());
                let confirm = ["confirm", "--attempts", "20", "std.rwt", id];
                let said = text(&project.reweave(&[&confirm[..], &words].concat()).stdout);
                assert!(said.contains("confirmed: 20 of 20"), "{name} {mode}: {said}");
            }
        }
    }
}

#[test]
fn a_panic_and_a_deadlock_of_the_recorded_run_are_found() {
    let Some(project) = &*PROJECT else { return };
    for profile in PROFILES {
        let recorded = project.record(profile, &[], &["ends", "panic"], "panic.rwt");
        assert_eq!(recorded.status.code(), Some(101), "{}", text(&recorded.stderr));
        let checked = project.reweave(&["check", "panic.rwt"]);
        let report = text(&checked.stdout);
        assert_eq!(checked.status.code(), Some(66), "{report}");
        assert!(report.contains("T1 panicked"), "{report}");
        assert!(report.contains("no money left"), "{report}");
        let how = ["--stall-timeout", "1"];
        project.record(profile, &how, &["ends", "deadlock"], "deadlock.rwt");
        let checked = project.reweave(&["check", "deadlock.rwt"]);
        let report = text(&checked.stdout);
        assert_eq!(checked.status.code(), Some(66), "{report}");
        assert!(report.contains("the recorded run deadlocked: main waits for lock"), "{report}");
    }
}
