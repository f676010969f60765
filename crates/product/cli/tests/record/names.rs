//! What reports call data: as the program does, by debug information.
//!
//! Each program is recorded as both compilers build it, with and without optimisation, and all names in its headlines
//! are compared with what the source says. Variables of functions are known by name only where functions keep frame
//! pointers.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use serde_json::Value;

use super::harness::{Workshop, compilers};

/// How compilers are asked to build.
const LEVELS: [&str; 2] = ["-O0", "-O2"];

const MODES: [&str; 2] = ["serial", "free"];

/// What the names of memory must not have that a programmer did not give a name.
const MADE_UP: [&str; 9] = [
    "block#",
    "block@",
    "lock#",
    "memory#",
    "frame#",
    "condition#",
    "libstdc++",
    "std::thread",
    "0x",
];

/// The messages of all findings.
fn messages(folder: &Workshop) -> Vec<String> {
    let output = folder.reweave(&["check", "run.rwt", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let message = |finding: &Value| finding["message"].as_str().unwrap().to_owned();
    findings.iter().map(message).collect()
}

/// The names in them.
fn headlines(folder: &Workshop) -> BTreeSet<String> {
    let messages = messages(folder);
    for message in &messages {
        let made_up = MADE_UP.iter().find(|made_up| message.contains(**made_up));
        assert_eq!(made_up, None, "{message}");
        assert!(!has_offset(message), "{message}");
    }
    messages.iter().flat_map(|message| quoted(message)).collect()
}

/// Whether `text` has an offset in bytes in it: `+8`.
fn has_offset(text: &str) -> bool {
    text.match_indices('+')
        .any(|(at, _)| text[at + 1..].starts_with(|next: char| next.is_ascii_digit()))
}

/// What stands in backquotes, without the operation.
fn quoted(message: &str) -> Vec<String> {
    message.split('`').skip(1).step_by(2).map(operand).collect()
}

/// The same with its place, where one follows.
fn placed(message: &str) -> Vec<String> {
    let parts: Vec<&str> = message.split('`').skip(1).collect();
    let line = |pair: &[&str]| {
        let place = pair.get(1).and_then(|behind| behind.strip_prefix(" at "));
        let place = place.and_then(|place| place.split([' ', ',']).next());
        operand(pair[0]) + &place.map_or(String::new(), |place| format!(" at {place}"))
    };
    parts.chunks(2).map(line).collect()
}

/// `x` of `w(x)`.
fn operand(text: &str) -> String {
    match text.strip_suffix(')').and_then(|it| it.split_once('(')) {
        Some((operation, operand))
            if operation.bytes().all(|it| it.is_ascii_lowercase() || it == b'.') =>
        {
            operand.to_owned()
        }
        _ => text.to_owned(),
    }
}

/// Builds and records the program in all ways with `levels`; the names must be `expected` in each.
#[track_caller]
fn check(name: &str, levels: &[&str], expected: Expect) {
    let (stem, extension) = name.split_once('.').unwrap();
    let folder = Workshop::with(&[name]);
    let mut seen: Option<String> = None;
    for compiler in compilers(extension) {
        for level in levels {
            folder.build(name, compiler, &[level]);
            let mut names = BTreeSet::new();
            // Which accesses meet depends on the schedule.
            for seed in ["1", "2", "3"] {
                let recorded = folder.record(&["--seed", seed], &[stem]);
                assert_eq!(recorded.behaviour.code, Some(0), "{}", recorded.said);
                names.append(&mut headlines(&folder));
            }
            let names: String = names.iter().map(|name| format!("{name}\n")).collect();
            let first = seen.get_or_insert_with(|| names.clone());
            assert_eq!(*first, names, "{compiler} {level}");
        }
    }
    if let Some(names) = seen {
        expected.assert_eq(&names);
    }
}

#[test]
fn members_elements_unions_and_bit_fields_of_c() {
    check(
        "named_cache.c",
        &LEVELS,
        expect![[r#"
            Item#1.ready/done
            Item#1.refs
            Item#1.value.large
            cache.counts.writes
            cache.entries[1].hits
            cache.grid[1][2]
            int[]#1[5]
        "#]],
    );
}

#[test]
fn allocated_objects_and_their_locks() {
    check(
        "named_accounts.c",
        &LEVELS,
        expect![[r#"
        account#1.lock
        account#2.lock
    "#]],
    );
}

#[test]
fn variables_of_functions() {
    check(
        "named_locals.c",
        &["-O0"],
        expect![[r#"
        run().done
        run().progress.jobs.failed
    "#]],
    );
}

#[test]
fn a_pool_of_threads_and_a_class_with_a_base() {
    let known = [
        "Pool#1.submitted_",
        "web::Counters#1.requests",
        "web::Server#1.counters_.errors",
        "web::Server#1.state_",
    ];
    let folder = Workshop::with(&["named_pool.cpp"]);
    let mut names = BTreeSet::new();
    for compiler in compilers("cpp") {
        for level in LEVELS {
            folder.build("named_pool.cpp", compiler, &[level]);
            for seed in ["1", "2", "3", "4"] {
                folder.record(&["--seed", seed], &["named_pool"]);
                // Which of the jobs run beside each other depends on the schedule.
                names.append(&mut headlines(&folder));
            }
        }
    }
    let unknown: Vec<&String> =
        names.iter().filter(|name| !known.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn what_containers_hold_and_closures_capture() {
    check(
        "named_containers.cpp",
        &["-O0"],
        expect![[r#"
        Shape[]#1[2].center.x
        Shape[]#1[2].corners[1].y
        int[]#1[3]
        main().total
        node<int,Point>#1.second.x
    "#]],
    );
}

/// In each build, also with `more` options: what findings are about and where, and where that was allocated.
#[track_caller]
fn check_allocated(name: &str, more: &[&[&str]], expected: Expect) {
    let (stem, extension) = name.split_once('.').unwrap();
    let folder = Workshop::with(&[name]);
    let mut seen: Option<String> = None;
    for compiler in compilers(extension) {
        for options in
            [&["-O0"], &["-O2"]].into_iter().map(|it| &it[..]).chain(more.iter().copied())
        {
            folder.build(name, compiler, options);
            let mut lines = BTreeSet::new();
            for seed in ["1", "2", "3"] {
                let recorded = folder.record(&["--seed", seed], &[stem]);
                assert_eq!(recorded.behaviour.code, Some(0), "{}", recorded.said);
                lines.extend(messages(&folder).iter().flat_map(|message| placed(message)));
                let report = folder.reweave(&["check", "run.rwt"]).stdout;
                let report = String::from_utf8_lossy(&report).into_owned();
                let allocated = report.lines().filter(|line| line.contains(" was allocated at "));
                lines.extend(allocated.flat_map(|line| line.trim().split("; ")).map(str::to_owned));
            }
            let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let first = seen.get_or_insert_with(|| lines.clone());
            assert_eq!(*first, lines, "{compiler} {options:?}");
        }
    }
    if let Some(lines) = seen {
        expected.assert_eq(&lines);
    }
}

const STATIC: &[&str] = &["-O2", "-static"];

#[test]
fn what_new_makes_is_allocated_where_it_stands() {
    check_allocated(
        "named_made.cpp",
        &[STATIC],
        expect![[r#"
            Box<int>#1 was allocated at named_made.cpp:36 by main
            Box<int>#1.other at named_made.cpp:86
            Derived#1 was allocated at named_made.cpp:61 by main
            Derived#1.second at named_made.cpp:83
            Line#1 was allocated at named_made.cpp:62 by main
            Line#1.cells[1] at named_made.cpp:84
            Made#1 was allocated at named_made.cpp:60 by main
            Made#1.kind at named_made.cpp:82
            Owner::Owned#1 was allocated at named_made.cpp:30 by main
            Owner::Owned#1.next at named_made.cpp:85
            Pair[]#1 was allocated at named_made.cpp:58 by main
            Pair[]#1[1].left at named_made.cpp:81
            Point#1 was allocated at named_made.cpp:54 by main
            Point#1.x at named_made.cpp:79
            Point#2 was allocated at named_made.cpp:67 by main
            Point#2.y at named_made.cpp:87
            Point[]#1 was allocated at named_made.cpp:56 by main
            Point[]#1[2].y at named_made.cpp:80
            char[]#1 was allocated at named_made.cpp:75 by main
            char[]#1[4] at named_made.cpp:92
            int[]#1 was allocated at named_made.cpp:71 by main
            int[]#1[5] at named_made.cpp:89
            node<int,Point>#1 was allocated at named_made.cpp:72 by main
            node<int,Point>#1.second.x at named_made.cpp:90
            node<int>#1 at named_made.cpp:91
            node<int>#1 was allocated at named_made.cpp:73 by main
        "#]],
    );
}

#[test]
fn a_program_may_replace_new() {
    check_allocated(
        "named_own_new.cpp",
        &[STATIC],
        expect![[r#"
        Point#1 was allocated at named_own_new.cpp:38 by main
        Point#1.x at named_own_new.cpp:33
        Point[]#1 was allocated at named_own_new.cpp:40 by main
        Point[]#1[2].y at named_own_new.cpp:34
    "#]],
    );
    for compiler in compilers("cpp") {
        let folder = Workshop::with(&["named_own_new.cpp"]);
        for options in [&["-O2"], STATIC] {
            folder.build("named_own_new.cpp", compiler, options);
            let printed = folder.record(&[], &["named_own_new"]).behaviour.printed;
            assert_eq!(printed, "2 2\n", "{compiler} {options:?}");
        }
    }
}

#[test]
fn blocks_of_wrappers_are_their_callers() {
    check_allocated(
        "named_items.c",
        &[STATIC],
        expect![[r#"
            int[]#1 was allocated at named_items.c:60 by main
            int[]#1[3] at named_items.c:82
            item#1 was allocated at named_items.c:38 by main
            item#1.lock
            item#1.lock at named_items.c:72
            item#1.values[1] at named_items.c:75
            item#2 was allocated at named_items.c:54 by main
            item#2.refs at named_items.c:76
            item#3.lock
            item#3.lock at named_items.c:72
            list#1 was allocated at named_items.c:58 by main
            list#1.length at named_items.c:80
            message#1 was allocated at named_items.c:55 by main
            message#1.text[9] at named_items.c:77
            node#1 was allocated at named_items.c:62 by main
            node#1.value.large at named_items.c:83
            odd#1 was allocated at named_items.c:57 by main
            odd#1.c at named_items.c:79
            pair#1 was allocated at named_items.c:57 by main
            pair#1.right at named_items.c:78
            pair[]#1 was allocated at named_items.c:59 by main
            pair[]#1[1].left at named_items.c:81
        "#]],
    );
}

#[test]
fn no_type_is_guessed() {
    check_allocated(
        "named_guesses.c",
        &[STATIC],
        expect![[r#"
            block@named_guesses.c:18#1+4 at named_guesses.c:37
            block@named_guesses.c:23#1+4 at named_guesses.c:36
            block@named_guesses.c:31#1+8 at named_guesses.c:39
            row#1 was allocated at named_guesses.c:29 by main
            row#1.cells[2] at named_guesses.c:38
        "#]],
    );
}

/// What a report says of the threads and the objects of its findings.
#[track_caller]
fn check_legend(name: &str, expected: Expect) {
    let Some(compiler) = compilers(name.split_once('.').unwrap().1).first().copied() else {
        return;
    };
    let folder = Workshop::with(&[name]);
    folder.build(name, compiler, &["-O0"]);
    folder.record(&[], &[name.split_once('.').unwrap().0]);
    let output = folder.reweave(&["check", "run.rwt"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = ["was started", "allocated", "local variable"];
    let said = text.lines().filter(|line| words.iter().any(|word| line.contains(word)));
    let mut lines: Vec<&str> = said.map(str::trim_start).collect();
    lines.sort_unstable();
    lines.dedup();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn threads_are_known_by_who_started_them_and_objects_by_who_allocated_them() {
    check_legend(
        "named_accounts.c",
        expect![[r#"
              T1 was started at named_accounts.c:46 by main; T2 at named_accounts.c:47 by main
              account#1 was allocated at named_accounts.c:13 by main; account#2 was allocated at named_accounts.c:13 by main"#]],
    );
    check_legend(
        "named_containers.cpp",
        expect![[r#"
              Shape[]#1 was allocated at named_containers.cpp:17 by main
              T1 was started at named_containers.cpp:33 by main; T2 at named_containers.cpp:33 by main
              int[]#1 was allocated at named_containers.cpp:24 by main
              node<int,Point>#1 was allocated at named_containers.cpp:23 by main
              total is a local variable of main"#]],
    );
}

/// What the program of `thread_names.c` calls its threads, in a run with these options and words.
fn thread_names(folder: &Workshop, options: &[&str], words: &[&str]) -> Vec<String> {
    let words = [&["thread_names"], words].concat();
    let trace = folder.record(options, &words).trace;
    let names = trace.names();
    let called = |(thread, name)| format!("{} {name}", names.threads.name(thread));
    let mut called: Vec<String> = names.given_names().map(called).collect();
    called.sort_unstable();
    called
}

#[test]
fn threads_have_the_names_that_the_program_gave_them_last() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["thread_names.c"]);
        folder.build("thread_names.c", compiler, &["-O1"]);
        let expected = ["T1 reader", "T2 reader", "T3 writer  [31m\u{f6}\u{fffd}", "main boss"]
            .map(str::to_owned);
        for mode in MODES {
            for words in [&[][..], &["child"]] {
                let called = thread_names(&folder, &["--mode", mode], words);
                assert_eq!(called, expected, "{compiler} {mode} {words:?}");
            }
            let output = folder.reweave(&["check", "run.rwt", "--all"]);
            let report = String::from_utf8_lossy(&output.stdout);
            for said in [
                "T1 `reader` was started at thread_names.c:37 by main",
                "; T4 at thread_names.c:40 by main",
            ] {
                assert!(report.contains(said), "{compiler} {mode}: {report}");
            }
        }
    }
}

#[test]
fn threads_of_a_static_program_have_names() {
    let Some(compiler) = compilers("c").first().copied() else { return };
    let folder = Workshop::with(&["thread_names.c"]);
    folder.build("thread_names.c", compiler, &["-static"]);
    // What is given by `prctl` is not seen there.
    assert_eq!(thread_names(&folder, &[], &[]), ["T1 reader", "T2 reader", "main boss"]);
}
