//! Programs that use libraries which were not rebuilt: what those order out of sight does not race,
//! and what nothing orders does.

use std::process::Command;

use super::harness::{Workshop, compilers, has};

/// A folder with the two libraries and the program that uses them, which was built with `options`.
fn with_libraries(compiler: &str, options: &[&str]) -> Workshop {
    let sources = ["library.c", "library_sums.c", "library_user.c"];
    let folder = Workshop::with(&sources);
    folder.build_plain("library.c", compiler, "libown.so", &["-shared", "-fPIC"]);
    folder.build_plain("library_sums.c", compiler, "libsums.so", &["-shared", "-fPIC"]);
    let linked = ["-L.", "-lown", "-lsums", "-Wl,-rpath,."];
    folder.build("library_user.c", compiler, &[&["-O1"], options, &linked].concat());
    folder
}

/// The same with a static library and an object file in place of the two libraries.
fn with_static_libraries(compiler: &str, archive: &str, options: &[&str]) -> Workshop {
    let folder = Workshop::with(&["library.c", "library_sums.c", "library_user.c"]);
    folder.build_plain("library.c", compiler, "own.o", &["-c", "-fPIC"]);
    folder.build_plain("library_sums.c", compiler, "sums.o", &["-c", "-fPIC"]);
    let made = folder.command("ar").args([archive, "libown.a", "own.o"]).status();
    assert!(made.expect("compilers come with it").success());
    let linked = ["sums.o", "-L.", "-Wl,-Bstatic", "-lown", "-Wl,-Bdynamic"];
    folder.build("library_user.c", compiler, &[&["-O1"], options, &linked].concat());
    folder
}

/// What `check` says of `run.rwt`: the kinds of findings, and how many pairs are not decided because a
/// library may order them.
#[track_caller]
fn checked(folder: &Workshop) -> (Vec<String>, u64) {
    let output = folder.reweave(&["check", "run.rwt", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let kinds =
        list(&report["findings"]).iter().map(|it| it["kind"].as_str().unwrap().into()).collect();
    let counts = list(&report["coverage"]);
    let count = counts.iter().filter_map(|it| it["counters"]["assumed"].as_u64()).sum();
    (kinds, count)
}

const NONE: [&str; 0] = [];

#[test]
fn what_libraries_order_out_of_sight_does_not_race() {
    let Some(&compiler) = compilers("c").first() else { return };
    let folder = with_libraries(compiler, &[]);
    for how in ["object", "all", "callback", "box", "interrupted", "pool", "counted", "keep"] {
        for mode in ["serial", "free"] {
            let recorded = folder.record(&["--mode", mode, "--seed", "3"], &["library_user", how]);
            assert_eq!(recorded.behaviour.code, Some(0), "{how}: {}", recorded.said);
            recorded.must_be_whole();
            let (found, undecided) = checked(&folder);
            assert_eq!(found, NONE, "{how} {mode}");
            assert_eq!(undecided > 0, how != "keep", "{how} {mode}: {undecided}");
        }
    }
}

#[test]
fn static_libraries_are_as_shared_ones() {
    for compiler in compilers("c") {
        // The second is a thin archive.
        for (archive, options) in [("rcs", &[][..]), ("rcsT", &["-no-pie", "-fno-pie"])] {
            let folder = with_static_libraries(compiler, archive, options);
            let expected = "2 2.5 3 7 11 15 9\n";
            assert_eq!(folder.run("library_user", &["kinds"]).printed, expected);
            let recorded = folder.record(&[], &["library_user", "kinds"]);
            assert_eq!(recorded.behaviour.printed, expected, "{compiler} {options:?}");
            for how in
                ["object", "all", "callback", "box", "interrupted", "pool", "counted", "keep"]
            {
                folder.record(&["--seed", "3"], &["library_user", how]).must_be_whole();
                let (found, undecided) = checked(&folder);
                assert_eq!(found, NONE, "{compiler} {how}");
                let is_ordered_otherwise = ["callback", "keep"].contains(&how);
                assert!(undecided > 0 || is_ordered_otherwise, "{compiler} {how}: {undecided}");
            }
            for how in ["object", "box", "sums"] {
                folder.record(&[], &["library_user", how, "forgets"]).must_be_whole();
                assert_eq!(folder.findings(), ["race"], "{compiler} {how}");
            }
        }
    }
}

#[test]
fn a_static_library_is_named() {
    let Some(&compiler) = compilers("c").first() else { return };
    let folder = with_static_libraries(compiler, "rcs", &[]);
    folder.record(&[], &["library_user", "box"]);
    let said = folder.reweave(&["check", "run.rwt"]).stdout;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("ordering through libown.a was assumed: "), "{said}");
}

#[test]
fn a_library_needs_no_atomic_update_to_order_threads() {
    let Some(&compiler) = compilers("c").first() else { return };
    let folder = Workshop::with(&["library_flag.c", "library_flag_user.c"]);
    folder.build_plain("library_flag.c", compiler, "libflag.so", &["-shared", "-fPIC"]);
    folder.build_plain("library_flag.c", compiler, "flag.o", &["-c"]);
    for linked in [&["-L.", "-lflag", "-Wl,-rpath,."][..], &["flag.o"]] {
        folder.build("library_flag_user.c", compiler, &[&["-O1"], linked].concat());
        for seed in ["1", "2"] {
            folder.record(&["--seed", seed], &["library_flag_user"]).must_be_whole();
            assert_eq!(checked(&folder), (vec![], 1), "{linked:?}");
        }
    }
}

#[test]
fn a_library_may_wait_for_what_the_program_changes() {
    for compiler in compilers("c") {
        let sources = ["library_waits.c", "library_waits.h", "library_waits_user.c"];
        let folder = Workshop::with(&sources);
        folder.build_plain("library_waits.c", compiler, "libwaits.so", &["-shared", "-fPIC"]);
        let linked = ["-L.", "-lwaits", "-Wl,-rpath,.", "-O1"];
        folder.build("library_waits_user.c", compiler, &linked);
        for place in ["global", "local", "heap"] {
            for mode in ["serial", "free"] {
                let program = ["library_waits_user", place];
                let recorded = folder.record(&["--mode", mode], &program);
                assert_eq!(recorded.behaviour.printed, "5\n", "{}", recorded.said);
                assert_eq!(checked(&folder).0, NONE, "{compiler} {place} {mode}");
            }
            folder.record(&[], &["library_waits_user", place, "forgets"]).must_be_whole();
            assert_eq!(checked(&folder), (vec!["race".into()], 0), "{compiler} {place}");
        }
    }
}

#[test]
fn static_code_of_what_is_loaded_and_unloaded_is_seen() {
    let Some(&compiler) = compilers("c").first() else { return };
    let folder = Workshop::with(&["library.c", "library_plugin.c", "library_loader.c"]);
    folder.build_plain("library.c", compiler, "own.o", &["-c", "-fPIC"]);
    let options = ["-shared", "-fPIC", "own.o", "-o", "libplugin.so"];
    folder.build("library_plugin.c", compiler, &options);
    folder.build("library_loader.c", compiler, &[]);
    for mode in ["serial", "free"] {
        let recorded = folder.record(&["--mode", mode], &["library_loader"]);
        assert_eq!(recorded.behaviour.printed, "7\n7\n7\n", "{}", recorded.said);
        let (found, undecided) = checked(&folder);
        assert_eq!((found, undecided > 0), (vec![], true), "{mode}");
    }
}

#[test]
fn what_cannot_be_linked_with_slots_is_linked_without() {
    let Some(&compiler) = compilers("c").first() else { return };
    let folder = Workshop::with(&["library.c", "library_plugin.c", "library_user.c"]);
    let sums = "long sum(const long *numbers, int count) { return count ? *numbers : 0; }";
    folder.put("sums.c", sums);
    folder.build_plain("library.c", compiler, "own.o", &["-c", "-fPIC"]);
    folder.build_plain("sums.c", compiler, "sums.o", &["-c", "-fPIC"]);
    // A shared library that asks for a function of the static code.
    folder.build_plain("library_plugin.c", compiler, "libasks.so", &["-shared", "-fPIC"]);
    let linked = ["-O1", "own.o", "sums.o", "./libasks.so"];
    folder.build("library_user.c", compiler, &linked);
    assert_eq!(folder.run("library_user", &["kinds"]).code, Some(0));
}

#[test]
fn calls_are_seen_however_a_program_was_linked() {
    for compiler in compilers("c") {
        for options in [&["-fno-plt"][..], &["-Wl,-z,lazy"], &["-Wl,-z,now", "-no-pie", "-fno-pie"]]
        {
            let folder = with_libraries(compiler, options);
            let expected = "2 2.5 3 7 11 15 9\n";
            assert_eq!(folder.run("library_user", &["kinds"]).printed, expected);
            let recorded = folder.record(&[], &["library_user", "kinds"]);
            assert_eq!(recorded.behaviour.printed, expected, "{compiler} {options:?}");
            folder.record(&[], &["library_user", "box"]).must_be_whole();
            let (found, undecided) = checked(&folder);
            assert_eq!((found, undecided > 0), (vec![], true), "{compiler} {options:?}");
        }
    }
}

#[test]
fn what_no_library_orders_races() {
    let Some(&compiler) = compilers("c").first() else { return };
    let folder = with_libraries(compiler, &[]);
    for how in ["object", "box", "sums"] {
        folder.record(&[], &["library_user", how, "forgets"]).must_be_whole();
        assert_eq!(folder.findings(), ["race"], "{how}");
    }
}

#[test]
fn what_the_cpp_library_writes_unseen_hides_no_race() {
    for compiler in compilers("cpp") {
        let folder = Workshop::with(&["strings.cpp"]);
        folder.build("strings.cpp", compiler, &["-O1"]);
        for (arguments, expected) in [(&["strings"][..], &[][..]), (&["strings", "x"], &["race"])] {
            folder.record(&[], arguments).must_be_whole();
            assert_eq!(folder.findings(), expected, "{compiler} {arguments:?}");
        }
    }
}

#[test]
fn blocks_of_pools_and_variables_whose_constructors_throw_have_no_races() {
    for (compiler, level) in compilers("cpp").into_iter().zip(["-O0", "-O2"]) {
        let folder = Workshop::with(&["pools.cpp", "thrown.cpp"]);
        for (name, printed) in [("pools", "1 1\n"), ("thrown", "2\n")] {
            folder.build(&format!("{name}.cpp"), compiler, &[level, "-std=gnu++17"]);
            for (mode, seed) in [("serial", "1"), ("serial", "2"), ("serial", "3"), ("free", "1")] {
                let recorded = folder.record(&["--mode", mode, "--seed", seed], &[name]);
                assert_eq!(recorded.behaviour.printed, printed, "{compiler} {mode} {seed}");
                assert_eq!(folder.findings(), NONE, "{compiler} {level} {name} {mode} {seed}");
            }
        }
    }
}

/// What the C++ library does in functions of its own, and whether a static program that does so without a lock is seen.
const CXX_USES: [(&str, bool); 8] = [
    ("spliced", true),
    ("pushed", true),
    ("mapped", true),
    ("walked", true),
    ("texted", true),
    ("streamed", false),
    ("lined", false),
    ("published", true),
];

#[test]
fn what_the_cpp_library_does_to_objects_is_seen() {
    for (compiler, level) in compilers("cpp").into_iter().zip(["-O0", "-O2"]) {
        let folder = Workshop::with(&["cxx_library.cpp"]);
        for options in [&[level][..], &[level, "-static"]] {
            folder.build("cxx_library.cpp", compiler, options);
            for (which, is_seen_in_static) in CXX_USES {
                let case = format!("{compiler} {options:?} {which}");
                for mode in ["serial", "free"] {
                    folder.record(&["--mode", mode], &["cxx_library", which]).must_be_whole();
                    assert_eq!(folder.findings(), NONE, "{case} {mode}");
                }
                folder.record(&[], &["cxx_library", which, "faulty"]).must_be_whole();
                if options.len() == 1 || is_seen_in_static {
                    assert!(folder.findings().contains(&"race".to_owned()), "{case}");
                }
            }
            // Any thread may print at any time.
            folder.record(&[], &["cxx_library", "printed", "faulty"]).must_be_whole();
            assert_eq!(folder.findings(), NONE, "{compiler} {options:?}");
        }
    }
}

#[test]
fn a_library_that_only_computes_orders_what_it_is_given_and_no_more() {
    let Some(&compiler) = compilers("c").first() else { return };
    let folder = with_libraries(compiler, &[]);
    folder.record(&[], &["library_user", "sums"]).must_be_whole();
    assert_eq!(checked(&folder), (vec![], 0));
}

#[test]
fn what_a_library_does_to_memory_is_not_the_programs_doing() {
    let Some(&compiler) = compilers("c").first() else { return };
    let folder = with_libraries(compiler, &[]);
    let recorded = folder.record_all(&[], &["library_user", "keep"]);
    let vars = &recorded.trace.names().vars;
    assert!(vars.entries().any(|(_, name)| name.starts_with("assumed(libown.so)#")));
    let kept: Vec<&str> =
        vars.entries().map(|(_, name)| name).filter(|name| name.contains("kept_text")).collect();
    assert_eq!(kept, NONE);
}

#[test]
fn a_report_says_what_was_not_decided_and_why() {
    let Some(&compiler) = compilers("c").first() else { return };
    let folder = with_libraries(compiler, &[]);
    folder.record(&[], &["library_user", "box"]);
    let output = folder.reweave(&["check", "run.rwt"]);
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = "ordering through libown.so was assumed: ";
    assert!(said.contains(expected) && said.contains("not decided\n"), "{said}");
    assert!(said.ends_with("nothing found; not everything was searched\n"), "{said}");
    assert_eq!(output.status.code(), Some(3));
    let page = folder.reweave(&["check", "run.rwt", "--format", "html"]);
    assert!(String::from_utf8_lossy(&page.stdout).contains(expected));
}

/// What must be said to a compiler to use the library `name`; nothing if it is not there.
fn options_for(name: &str) -> Option<Vec<String>> {
    let asked = Command::new("pkg-config").args(["--cflags", "--libs", name]).output();
    match asked {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            Some(said.split_whitespace().map(str::to_owned).collect())
        }
        _ => {
            eprintln!("skipped: no {name}");
            None
        }
    }
}

/// A folder with the program in the source `name`, which uses the library `library`.
fn using(name: &str, library: &str) -> Option<Workshop> {
    let compiler = if name.ends_with(".c") { "gcc" } else { "g++" };
    if !has(compiler) {
        return None;
    }
    let options = options_for(library)?;
    let folder = Workshop::with(&[name]);
    let options = options.iter().map(String::as_str);
    folder.build(name, compiler, &["-O1"].into_iter().chain(options).collect::<Vec<_>>());
    Some(folder)
}

#[test]
fn what_is_taken_out_of_a_container_of_a_library_belongs_to_its_taker() {
    let Some(folder) = using("containers.c", "glib-2.0") else { return };
    for kind in ["queue", "table", "list", "search"] {
        for (mode, seed) in [("serial", "1"), ("serial", "2"), ("free", "1")] {
            let recorded = folder.record(&["--mode", mode, "--seed", seed], &["containers", kind]);
            assert_eq!(recorded.behaviour.printed, "9\n");
            recorded.must_be_whole();
            assert_eq!(folder.findings(), NONE, "{kind} {mode} {seed}");
        }
    }
}

#[test]
fn glib_is_known() {
    let Some(folder) = using("library_glib.c", "glib-2.0") else { return };
    // GLib sets the word of what is done once before its call is over. A thread that looks at it in
    // between, which is rare, comes after that by assumption only.
    let check = |expected: &[&str], how: &str| {
        let (found, undecided) = checked(&folder);
        assert!(found == expected && undecided <= 1, "{how}: {found:?} {undecided}");
    };
    for seed in ["1", "2", "3"] {
        for mode in ["serial", "free"] {
            let recorded = folder.record(&["--mode", mode, "--seed", seed], &["library_glib"]);
            assert_eq!(recorded.behaviour.printed, "15 15 79\n");
            recorded.must_be_whole();
            check(&NONE, &format!("{mode} {seed}"));
        }
    }
    folder.record(&[], &["library_glib", "races"]).must_be_whole();
    check(&["race"], "races");
    folder.record(&[], &["library_glib", "deadlocks"]).must_be_whole();
    assert_eq!(folder.findings(), ["deadlock"]);
}

#[test]
fn abseil_is_known() {
    let Some(folder) = using("library_abseil.cc", "absl_synchronization") else { return };
    for seed in ["1", "2", "3", "4"] {
        let recorded = folder.record(&["--seed", seed], &["library_abseil"]);
        assert_eq!(recorded.behaviour.printed, "10 25\n");
        // A thread may wait for a lock inside the library whose holder waits for the token.
        assert!(!recorded.said.contains("inconsistent event"), "{}", recorded.said);
        assert_eq!(checked(&folder), (vec![], 0), "{seed}");
    }
    folder.record(&[], &["library_abseil", "races"]);
    assert_eq!(checked(&folder), (vec!["race".into()], 0));
}

#[test]
fn conditions_that_abseil_asks_for_are_asked_with_the_lock() {
    let Some(folder) = using("library_when.cpp", "absl_synchronization") else { return };
    for seed in ["1", "2", "3", "4"] {
        folder.record(&["--seed", seed], &["library_when"]).must_be_whole();
        assert_eq!(checked(&folder), (vec![], 0), "{seed}");
    }
}

#[test]
fn loops_of_onetbb_do_not_race() {
    let Some(folder) = using("library_tbb.cc", "tbb") else { return };
    for seed in ["1", "2", "3"] {
        let recorded = folder.record(&["--seed", seed], &["library_tbb"]);
        assert_eq!(recorded.behaviour.printed, "44850\n");
        assert_eq!(checked(&folder).0, NONE, "{seed}");
    }
}
