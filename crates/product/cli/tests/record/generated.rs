//! Generated programs without races: nothing is found in them, and they print what they print
//! without us. `REWEAVE_SOAK=334` tries two thousand of them.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use reweave_testkit::programs::{self, Kind, Program};
use reweave_testkit::soak;

use super::harness::{Behaviour, Workshop, has};

const MODES: [&str; 2] = ["serial", "free"];

/// What `pkg-config` says of `packages`; nothing if one of them is not there.
fn package_options(packages: &[&str]) -> Option<Vec<String>> {
    if packages.is_empty() {
        return Some(Vec::new());
    }
    let output = Command::new("pkg-config").args(["--cflags", "--libs"]).args(packages).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect())
}

/// Builds `program` twice: as `plain` without us, and as `generated` for recording. Nothing if a
/// library or the compiler is not there.
fn built(program: &Program, seed: u64) -> Option<Workshop> {
    let compiler = match (program.extension, seed % 3) {
        ("c", 1) => "clang",
        ("c", _) => "gcc",
        (_, 1) => "clang++",
        _ => "g++",
    };
    let mut options = package_options(&program.packages)?;
    if !has(compiler) {
        return None;
    }
    let folder = Workshop::with(&[]);
    if let Some(library) = program.library {
        folder.put("plain.c", library);
        let library_compiler = if seed % 3 == 1 { "clang" } else { "gcc" };
        folder.build_plain("plain.c", library_compiler, "libplain.so", &["-shared", "-fPIC"]);
        options.extend(["-L.", "-lplain", "-Wl,-rpath,."].map(str::to_owned));
    }
    if program.uses_openmp {
        options.push("-fopenmp".to_owned());
    }
    if program.extension == "cpp" {
        options.push("-std=gnu++20".to_owned());
    }
    options.push(format!("-O{}", seed / 3 % 3));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let source = format!("generated.{}", program.extension);
    folder.put(&source, &program.source);
    folder.build_plain(&source, compiler, "plain", &options);
    folder.build(&source, compiler, &options);
    Some(folder)
}

/// The exit code of `check`, and what it says, for a run of the program in `folder`.
fn checked(folder: &Workshop, mode: &str, seed: u64) -> (Behaviour, String, Option<i32>, String) {
    let seed = seed.to_string();
    let usual = ["record", "-o", "run.rwt", "--time-limit", "60", "--mode", mode, "--seed", &seed];
    let recorded = folder.reweave(&[&usual[..], &["--", "./generated"]].concat());
    let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
    let output = folder.reweave(&["check", "run.rwt"]);
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    (Behaviour::new(&recorded), said, output.status.code(), found)
}

/// What goes wrong with the program of `seed`, in `runs` runs of each mode.
fn faults(seed: u64, runs: u64) -> Vec<String> {
    let program = programs::program(seed, Kind::Any);
    let Some(folder) = built(&program, seed) else { return Vec::new() };
    let expected = folder.run("plain", &[]);
    let misuses = program.mechanisms.contains(&"mutex unlocked by another thread");
    let mut faults = Vec::new();
    for mode in MODES {
        for run in 1..=runs {
            let (behaviour, said, code, found) = checked(&folder, mode, run);
            let which = format!("program {seed}, {mode}, seed {run} {:?}", program.mechanisms);
            if behaviour != expected {
                faults.push(format!("{which}: {behaviour:?}, not {expected:?}\n{said}"));
            }
            // What was not decided is not wrong: a library may order, or the budget ended.
            let is_right = matches!(code, Some(0 | 3)) || misuses && has_only_misuse(&found);
            if !is_right {
                faults.push(format!("{which}: {code:?}\n{found}{said}"));
            }
        }
    }
    if !faults.is_empty()
        && let Some(kept) = std::env::var_os("REWEAVE_KEEP")
    {
        let name = format!("{seed}.{}", program.extension);
        std::fs::write(Path::new(&kept).join(name), &program.source).unwrap();
    }
    faults
}

/// Whether all that `found` says was found is misuse.
fn has_only_misuse(found: &str) -> bool {
    let starts = |line: &&str| line.starts_with("1 finding (misuse 1)");
    found.lines().filter(starts).count() == 1
}

/// `what` of each of `seeds`, by two workers.
fn for_each(seeds: std::ops::Range<u64>, what: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(seeds.start);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    what(seed);
                }
            });
        }
    });
}

/// The seed to begin with, if not the first: a soak can be cut into parts.
fn first_seed() -> u64 {
    let asked = std::env::var("REWEAVE_FIRST_SEED").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[test]
fn nothing_is_found_in_generated_programs_without_races() {
    if !has("gcc") {
        return;
    }
    let first = first_seed();
    let end = first + u64::from(soak::cases(programs::COVERING as u32));
    // A usual test has time for one run of each mode.
    let runs = if soak::multiplier() > 1 { 3 } else { 1 };
    let all = Mutex::new(Vec::new());
    for_each(first..end, |seed| {
        let faults = faults(seed, runs);
        for fault in &faults {
            eprintln!("{fault}");
        }
        if soak::multiplier() > 1 {
            eprintln!("program {seed}: {} faults", faults.len());
        }
        all.lock().unwrap().extend(faults);
    });
    let all = all.into_inner().unwrap();
    assert!(all.is_empty(), "{} faults; the first: {}", all.len(), all[0]);
}

#[test]
fn most_programs_that_lack_one_protection_have_a_race() {
    if !has("gcc") {
        return;
    }
    let count = u64::from(soak::cases(4));
    let found = AtomicU64::new(0);
    let tried = AtomicU64::new(0);
    for_each(100..100 + count, |seed| {
        let program = programs::program(seed, Kind::Mutant);
        let Some(folder) = built(&program, seed) else { return };
        tried.fetch_add(1, Ordering::Relaxed);
        // Some have no race: other protections order what this one did.
        let is_found = (1..=3).any(|run| checked(&folder, "serial", run).2 == Some(66));
        found.fetch_add(u64::from(is_found), Ordering::Relaxed);
    });
    let (found, tried) = (found.into_inner(), tried.into_inner());
    eprintln!("a fault was found in {found} of {tried} mutants");
    assert!(found * 2 >= tried, "{found} of {tried}");
}
