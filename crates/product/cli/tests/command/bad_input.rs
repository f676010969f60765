//! Whatever is wrong with the input, the command says where and why, and writes nothing.

use std::io::Write as _;
use std::process::Stdio;

use super::{Folder, RACE};

/// Every command that reads a trace refuses `content` with exit code 2, names the file and says
/// each of `words`; nothing is left in the folder but the input.
#[track_caller]
fn refused(content: impl AsRef<[u8]>, words: &[&str]) {
    let folder = Folder::with("bad.std", content);
    let commands: [&[&str]; 4] = [
        &["stats", "bad.std"],
        &["check", "--format", "json", "bad.std"],
        &["check", "bad.std", "-o", "out.html", "--format", "html"],
        &["convert", "bad.std", "out.rwt"],
    ];
    for arguments in commands {
        let ran = folder.run(arguments).expect(2);
        assert_eq!(ran.out(), "", "{arguments:?}");
        let message = ran.err();
        assert!(message.contains("bad.std"), "{arguments:?}: {message}");
        for word in words {
            assert!(message.contains(word), "{arguments:?}: {word} is not in {message}");
        }
        assert_eq!(folder.names(), ["bad.std"], "{arguments:?}");
    }
}

#[test]
fn an_unknown_operation_is_refused() {
    refused("T1|w(x)|1\nT1|jump(x)|2\n", &["line 2", "jump(x)"]);
}

#[test]
fn a_program_is_told_from_a_trace_of_it() {
    refused(b"\x7fELF\x02\x01\x01\0", &["this is a program", "reweave record -- ./bad.std"]);
}

#[test]
fn a_program_without_dashes_before_it_gets_a_tip() {
    let folder = Folder::with("run.std", RACE);
    for arguments in [&["record", "./bank"][..], &["confirm", "run.std", "R1", "./bank"]] {
        let message = folder.run(arguments).expect(2).err();
        let ours = arguments[..arguments.len() - 1].join(" ");
        let tip = format!("the program comes after `--`: reweave {ours} -- ./bank\n");
        assert!(message.contains(&tip), "{message}");
    }
}

#[test]
fn a_missing_field_is_refused() {
    refused("T1|w(x)|1\nT1|w(x)|2\nT1|w(x)\n", &["line 3"]);
}

#[test]
fn what_is_not_text_is_refused() {
    refused(b"T1|w(x)|1\nT1|w(\xff)|2\n", &["line 2", "UTF-8"]);
}

#[test]
fn a_release_of_a_lock_not_held_is_refused() {
    refused("T1|acq(m)|1\nT2|rel(m)|2\n", &["line 2", "`m`"]);
}

#[test]
fn an_acquire_of_a_lock_that_another_thread_holds_is_refused() {
    refused("T1|acq(m)|1\nT2|acq(m)|2\n", &["line 2", "`m`", "`T1`"]);
}

#[test]
fn an_event_before_its_fork_is_refused() {
    refused("T2|w(x)|1\nT1|fork(T2)|2\n", &["line 1", "`T2`", "event 2"]);
}

#[test]
fn an_event_after_its_join_is_refused() {
    refused("T1|fork(T2)|1\nT1|join(T2)|2\nT2|w(x)|3\n", &["line 3", "T2"]);
}

#[test]
fn a_thread_forked_twice_is_refused() {
    refused("T1|fork(T2)|1\nT1|fork(T2)|2\n", &["line 2", "`T2`"]);
}

#[test]
fn the_line_is_counted_with_comments_and_blank_lines() {
    refused("# a comment\n\nT1|w(x)|1\n\nT1|rel(m)|2\n", &["line 5"]);
}

#[test]
fn an_empty_file_is_refused() {
    refused("", &["empty"]);
}

#[test]
fn random_bytes_are_refused() {
    let mut state = 7_u32;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(4_096)
    .collect();
    refused(bytes, &[]);
}

#[test]
fn a_binary_file_cut_off_anywhere_or_changed_anywhere_is_refused() {
    let folder = Folder::with("good.std", RACE);
    folder.run(&["convert", "good.std", "good.rwt"]).expect(0);
    let good = folder.read("good.rwt");
    for cut in 0..good.len() {
        folder.put("cut.rwt", &good[..cut]);
        let ran = folder.run(&["stats", "cut.rwt"]).expect(2);
        assert!(ran.out().is_empty() && ran.err().contains("cut.rwt"), "{cut}: {}", ran.err());
    }
    for at in 0..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 0x55;
        folder.put("changed.rwt", &changed);
        let ran = folder.run(&["stats", "changed.rwt"]).expect(2);
        assert!(ran.out().is_empty() && ran.err().contains("changed.rwt"), "{at}: {}", ran.err());
    }
}

#[test]
fn a_line_without_end_is_refused_before_much_of_it_is_read() {
    const CHUNK: usize = 1 << 20;
    let folder = Folder::new();
    let mut command = folder.command(&["stats", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let chunk = vec![b'x'; CHUNK];
    let taken = (0..1_024).take_while(|_| pipe.write_all(&chunk).is_ok()).count();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(taken < 128, "{taken} MiB were read");
    assert!(message.contains("standard input: line 1"), "{message}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let ran = Folder::new().run(&["stats", "nowhere.std"]).expect(2);
    assert!(ran.err().contains("nowhere.std"), "{}", ran.err());
}

#[test]
fn a_bad_file_among_good_ones_is_named_and_hides_nothing() {
    let folder = Folder::with("good.std", RACE);
    folder.put("bad.std", "T1|nonsense|1\n");
    for command in ["check", "stats"] {
        let arguments = [command, "--format", "json", "good.std", "bad.std", "nowhere.std"];
        let ran = folder.run(&arguments).expect(2);
        let said = ran.err();
        assert!(said.contains("bad.std: line 1") && said.contains("nowhere.std"), "{said}");
        let report = ran.json();
        assert_eq!(report.as_array().map(Vec::len), Some(1), "{command}");
        assert_eq!(report[0]["trace"]["path"], "good.std");
    }
    folder.run(&["check", "bad.std", "good.std", "-o", "report.txt"]).expect(2);
    assert!(folder.read("report.txt").starts_with(b"good.std"));
}

#[test]
fn standard_input_can_be_given_once() {
    for command in ["check", "stats"] {
        let ran = Folder::new().run_with(RACE.as_bytes(), &[command, "-", "-"]).expect(2);
        assert_eq!(ran.err(), "reweave: standard input (`-`) can be given only once\n");
    }
}

#[cfg(unix)]
#[test]
fn one_interrupt_ends_the_wait_for_standard_input() {
    let folder = Folder::new();
    let mut command = folder.command(&["check", "-", "-o", "report.txt"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // More than a pipe holds, so once it is written the command has begun to read; and the pipe
    // stays open, so it waits for more.
    pipe.write_all("T1|w(x)|a.c:1\n".repeat(100_000).as_bytes()).unwrap();
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), said.as_str()),
        (Some(130), "reweave: interrupted\n")
    );
    drop(pipe);
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[test]
fn names_from_a_bad_file_do_nothing_to_the_terminal() {
    let folder = Folder::with("bad.std", "T1|\u{1b}[2Jjump(x)|1\n");
    let ran = folder.run(&["stats", "bad.std"]).expect(2);
    assert!(!ran.err().contains('\u{1b}'), "{:?}", ran.err());
}

#[test]
fn repair_mends_what_the_default_refuses_and_every_report_says_so() {
    let folder = Folder::with("bad.std", "T1|rel(m)|1\nT1|w(x)|2\nT2|w(x)|3\n");
    folder.run(&["check", "bad.std"]).expect(2);
    let ran = folder.run(&["check", "--repair", "--format", "json", "bad.std"]).expect(66);
    assert_eq!(ran.json()["repaired"].as_array().map(Vec::len), Some(1));
    assert!(folder.run(&["check", "--repair", "bad.std"]).expect(66).out().contains("repaired"));
}

#[test]
fn source_code_is_told_from_traces_with_what_to_do() {
    let folder = Folder::with("jobs.c", "int main(void) { return 0; }\n");
    folder.put("my jobs.cpp", "int main() {}\n");
    folder.put("jobs.rw", "thread main() {\n}\n");
    for (name, advice) in [
        ("jobs.c", "reweave cc -g -pthread jobs.c -o jobs && reweave record -- ./jobs"),
        (
            "my jobs.cpp",
            "reweave c++ -g -pthread 'my jobs.cpp' -o 'my jobs' && reweave record -- './my jobs'",
        ),
        ("jobs.rw", "reweave run jobs.rw -o jobs.rwt"),
    ] {
        let said = folder.run(&["check", name]).expect(2).err();
        assert!(said.contains("this is source code") && said.contains(advice), "{said}");
    }
    // What is inside counts, not the name.
    folder.put("trace.c", RACE);
    folder.run(&["check", "trace.c"]).expect(66);
}

#[test]
fn slips_of_the_command_line_are_told_how_to_go_on() {
    let folder = Folder::with("run.std", RACE);
    folder.put("jobs", "");
    for (line, told) in [
        ("record -- jobs", "did you mean `./jobs`?"),
        ("explain run.std", "`reweave check TRACE` lists the findings"),
        ("explain R1 run.std", "expected the trace before the id: run.std R1"),
        ("check run.std --limit abc", "expected a whole number"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let said = folder.run(&words).expect(2).err();
        assert!(said.contains(told), "{line}: {said}");
    }
}

#[test]
fn what_is_mistaken_for_something_else_gets_the_right_command() {
    let folder = Folder::with("race.std", RACE);
    folder.put("bank.c", "int main(void) { return 0; }\n");
    folder.put("bank", b"\x7fELF and more");
    folder.put("bank.rwt", b"\x89RWT\r\n\x1a\n");
    folder.put("report.json", "{\n  \"schema\": \"reweave/1\"\n}\n");
    let built = "reweave cc -g -pthread bank.c -o bank && reweave record -- ./bank";
    for (arguments, hint) in [
        (&["record", "./bank", "1", "a b"][..], "reweave record -- ./bank 1 'a b'"),
        (&["record", "--seed", "2", "bank"], "reweave record --seed 2 -- ./bank"),
        (&["confirm", "race.std", "R1", "bank"], "reweave confirm race.std R1 -- ./bank"),
        (&["check", "race.std", "--confirm", "./bank"], "check race.std --confirm -- ./bank"),
        (&["record", "--", "bank.c", "10"], &format!("{built} 10")),
        (&["record", "--", "./bank.rwt"], "it is a trace; try: reweave check ./bank.rwt"),
        (&["check", "bank.c"], built),
        (&["check", "bank"], "reweave record -- ./bank"),
        (&["check", "report.json"], "give the trace that it is about, such as report.rwt"),
        (&["run", "bank.c"], built),
        (&["ndseq", "infer", "bank.rwt"], "reweave check bank.rwt"),
        (&["intervals", "bank"], "reweave record -- ./bank"),
    ] {
        let said = folder.run(arguments).expect(2).err();
        assert!(said.contains(hint), "{arguments:?}: {said}");
    }
    let mut command = folder.command(&["cc", "-g", "bank.c"]);
    let output = command.env("PATH", folder.path("nowhere")).env_remove("REWEAVE_CC").output();
    let said = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(said.contains("install a C compiler, or name one: reweave cc clang -g"), "{said}");
}
