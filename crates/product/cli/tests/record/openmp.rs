//! OpenMP: every construct, with a race and without, as gcc's and as clang's library do it.

use std::fs;
use std::path::Path;

use super::harness::{Workshop, compilers};

/// The files with cases, each of which lists its own when it is called without words.
const FILES: [&str; 4] = ["regions.c", "loops.c", "tasks.c", "classes.cpp"];

/// A folder with the sources.
fn workshop() -> Workshop {
    let folder = Workshop::with(&[]);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs/openmp");
    for name in FILES.iter().chain(&["cases.h"]) {
        let content = fs::read_to_string(sources.join(name)).expect("the source is there");
        folder.put(name, &content);
    }
    folder
}

/// The compilers for sources with this extension that have an OpenMP library.
fn openmp_compilers(extension: &str) -> Vec<&'static str> {
    let folder = Workshop::with(&[]);
    let source = format!("empty.{extension}");
    folder.put(&source, "#include <omp.h>\nint main() { return omp_get_max_threads() == 0; }\n");
    let can_build = |compiler: &&str| {
        let words = ["-fopenmp", &source, "-o", "empty"];
        let built = folder.command(compiler).args(words).output();
        let is_built = built.is_ok_and(|output| output.status.success());
        if !is_built {
            eprintln!("skipped: {compiler} has no OpenMP library");
        }
        is_built
    };
    compilers(extension).into_iter().filter(can_build).collect()
}

/// One way to build and run all cases.
#[derive(Clone, Copy, Debug)]
struct Way {
    optimisation: &'static str,
    mode: &'static str,
    threads: &'static str,
}

/// Records the cases for which `is_wanted` says so of their number and name, built by `compiler`;
/// says in which of those with a race none was found.
#[track_caller]
fn missed(
    compiler: &str,
    file: &str,
    way: Way,
    is_wanted: impl Fn(usize, &str) -> bool,
) -> Vec<String> {
    let folder = workshop();
    folder.build(file, compiler, &["-fopenmp", way.optimisation]);
    let (stem, _) = file.split_once('.').expect("a source has an extension");
    let listed = folder.run(stem, &[]).printed;
    let mut missed = Vec::new();
    for (number, case) in listed.lines().enumerate() {
        if !is_wanted(number, case) {
            continue;
        }
        let recorded = folder.record(&["--mode", way.mode], &[stem, case, way.threads]);
        let which = format!("{case} by {compiler}, {way:?}");
        assert_eq!(recorded.behaviour.code, Some(0), "{which}: {}", recorded.said);
        recorded.must_be_whole();
        let found = folder.findings();
        if case.starts_with("ok_") {
            assert_eq!(found, [] as [&str; 0], "{which}");
        } else if !found.iter().any(|kind| kind == "race") {
            missed.push(which);
        }
    }
    missed
}

#[test]
fn races_of_openmp_programs_are_found_and_no_others() {
    let way = Way { optimisation: "-O1", mode: "serial", threads: "4" };
    for file in FILES {
        let (_, extension) = file.split_once('.').expect("a source has an extension");
        let compilers = openmp_compilers(extension);
        // Each case once: by one compiler or the other.
        for (place, compiler) in compilers.iter().enumerate() {
            let is_wanted = |number: usize, _: &str| number % compilers.len() == place;
            let missed = missed(compiler, file, way, is_wanted);
            assert_eq!(missed, [] as [String; 0]);
        }
    }
}

#[test]
fn nothing_is_found_in_sound_openmp_programs_whose_threads_run_freely() {
    let way = Way { optimisation: "-O1", mode: "free", threads: "2" };
    for (file, part) in
        [("regions.c", "ok_barrier"), ("tasks.c", "ok_depend"), ("tasks.c", "ok_fib")]
    {
        for compiler in openmp_compilers("c") {
            missed(compiler, file, way, |_, case| case == part);
        }
    }
}

#[test]
fn openmp_programs_are_recorded_right_however_they_are_built() {
    if std::env::var_os("REWEAVE_SOAK").is_none() {
        eprintln!("skipped: every way takes minutes; set REWEAVE_SOAK");
        return;
    }
    for file in FILES {
        let (_, extension) = file.split_once('.').expect("a source has an extension");
        for compiler in openmp_compilers(extension) {
            for (optimisation, threads) in [("-O0", "2"), ("-O0", "4"), ("-O2", "2"), ("-O2", "4")]
            {
                let serial = Way { optimisation, mode: "serial", threads };
                let missed_by = missed(compiler, file, serial, |_, _| true);
                assert!(missed_by.len() <= 1, "{missed_by:?}");
                let free = Way { mode: "free", ..serial };
                missed(compiler, file, free, |_, case| case.starts_with("ok_"));
            }
        }
    }
}

#[test]
fn a_race_of_two_tasks_is_made_to_happen() {
    let folder = workshop();
    for compiler in openmp_compilers("c") {
        folder.build("tasks.c", compiler, &["-fopenmp", "-O1"]);
        folder.record(&[], &["tasks", "race_tasks_of_threads", "2"]);
        let program = ["--", "./tasks", "race_tasks_of_threads", "2"];
        let words = [&["confirm", "run.rwt", "R1"][..], &program].concat();
        let output = folder.reweave(&words);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("confirmed: 1 of 1"), "{compiler}: {said}");
    }
}
