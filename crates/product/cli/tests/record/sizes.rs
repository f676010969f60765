//! Large programs, long runs, code that comes and goes: recorded, readable, in bounded memory.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Output, Stdio};

use reweave_testkit::soak;
use reweave_trace::{Op, ThreadOp};

use super::harness::{
    Behaviour, Workshop, accepted_schedules, compilers, has, must_be_short, shown_steps,
};

#[test]
fn many_threads_at_once_and_one_after_the_other() {
    let Some(folder) = Workshop::built("many.c") else { return };
    for mode in ["serial", "free"] {
        for [width, rounds] in [["200", "1"], ["1", "2000"], ["8", "50"]] {
            let count: usize = width.parse::<usize>().unwrap() * rounds.parse::<usize>().unwrap();
            let recorded = folder.record_all(&["--mode", mode], &["many", width, rounds]);
            recorded.must_be_whole();
            assert_eq!(recorded.behaviour.printed, format!("{count}\n"));
            assert_eq!(recorded.trace.names().threads.len(), count + 1);
            let joins = recorded
                .trace
                .events()
                .filter(|it| matches!(it.1.op, Op::Thread(ThreadOp::Join, _)));
            assert_eq!(joins.count(), count);
        }
    }
}

#[test]
fn code_that_is_loaded_and_unloaded_is_named_right() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["loads.c", "loaded.c"]);
        folder.build("loads.c", compiler, &["-O1"]);
        for step in ["1", "2"] {
            let define = format!("-DSTEP={step}");
            folder.build("loaded.c", compiler, &["-O1", "-shared", "-fPIC", &define]);
            std::fs::rename(folder.path("loaded"), folder.path(&format!("lib{step}.so"))).unwrap();
        }
        for mode in ["serial", "free"] {
            let recorded =
                folder.record_all(&["--mode", mode], &["loads", "./lib1.so", "./lib2.so"]);
            recorded.must_be_whole();
            assert_eq!(recorded.behaviour.printed, "2\n4\n");
            let names = recorded.trace.names();
            // What the second library has at the same place is another variable.
            let results = names.vars.entries().filter(|(_, name)| name.starts_with("result"));
            assert_eq!(results.count(), 2, "{compiler} {mode}");
            let in_library = recorded.trace.events().filter(|(_, event)| {
                let var = event.op.var().map(|var| names.vars.name(var));
                // Beside it the library itself is used.
                var.is_some_and(|name| name.starts_with("result"))
                    && names.location(event.site) == "loaded.c:6"
            });
            assert_eq!(in_library.count(), 8, "{compiler} {mode}");
        }
    }
}

#[test]
fn a_recording_ends_at_its_limit() {
    let Some(folder) = Workshop::built("endless.c") else { return };
    for mode in ["serial", "free"] {
        let recorded = folder.record_all(&["--mode", mode, "--limit", "20000"], &["endless"]);
        let expected = Behaviour { code: Some(0), printed: "running\n".into() };
        assert_eq!(recorded.behaviour, expected, "{}", recorded.said);
        assert!(recorded.said.contains("stopped after 20000 events"), "{}", recorded.said);
        assert!((15_000..=20_000).contains(&recorded.trace.len()), "{}", recorded.trace.len());
    }
}

/// Sends `signal` to the process `child` and gives what it says until it ends.
fn ended_by(mut child: Child, signal: &str) -> Output {
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args([signal, &child.id().to_string()]).status().unwrap().success());
    child.stdin.take();
    child.wait_with_output().unwrap()
}

#[test]
fn a_recording_that_is_interrupted_keeps_what_there_is() {
    let Some(folder) = Workshop::built("endless.c") else { return };
    for signal in ["-INT", "-TERM"] {
        let mut command = folder.command(env!("CARGO_BIN_EXE_reweave"));
        command.args(["record", "-o", "run.rwt", "--", "./endless"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The program says when it runs; it is in the recorder's hands by then.
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "running\n");
        let output = ended_by(child, signal);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(143), "{said}");
        assert!(said.contains("saving the trace"), "{said}");
        assert!(folder.reweave(&["stats", "run.rwt"]).status.success(), "{said}");
        std::fs::remove_file(folder.path("run.rwt")).unwrap();
    }
}

#[test]
fn a_program_outlives_its_recorder() {
    let Some(folder) = Workshop::built("racy.c") else { return };
    // The shell that ends the recorder is not recorded, and waits for what was.
    folder.put("orphan.sh", {
        "\"$REWEAVE\" record -o run.rwt -- sh -c './racy 300000; echo done > end' &\nsleep 0.3\n\
         kill -KILL $!\nfor i in $(seq 600); do test -e end && exit 0; sleep 0.1; done\nexit 1\n"
    });
    let mut command = folder.command("sh");
    command.arg("orphan.sh").env("REWEAVE", env!("CARGO_BIN_EXE_reweave"));
    assert!(command.status().unwrap().success());
}

/// Bytes of memory that a command took at most, which GNU time tells.
fn memory_of(output: &Output) -> u64 {
    let said = String::from_utf8_lossy(&output.stderr);
    let kilobytes = said.lines().last().and_then(|line| line.trim().parse::<u64>().ok());
    kilobytes.unwrap_or_else(|| panic!("{said}")) * 1024
}

#[test]
fn memory_does_not_grow_with_the_run() {
    let Some(folder) = Workshop::built("sums.c") else { return };
    if !has("/usr/bin/time") {
        return;
    }
    // Each round is a read and a write in each of two threads: 100 million in a soak.
    let rounds = if soak::multiplier() > 1 { 25_000_000_u64 } else { 500_000 };
    for mode in ["serial", "free"] {
        let measure = |rounds: u64| {
            let mut command = folder.command("/usr/bin/time");
            command.args(["-f", "%M", env!("CARGO_BIN_EXE_reweave"), "record", "--mode", mode]);
            command.args(["--all-memory", "-o", "run.rwt", "--", "./sums", &rounds.to_string()]);
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(0), "{said}");
            let bytes = std::fs::metadata(folder.path("run.rwt")).unwrap().len();
            assert!(bytes < 4 * 4 * rounds, "{bytes} bytes for {} events: {said}", 4 * rounds);
            memory_of(&output)
        };
        let (short, long) = (measure(rounds / 10), measure(rounds));
        assert!(long < short + (48 << 20), "{mode}: {short} bytes, then {long}");
    }
}

#[test]
fn schedules_of_larger_programs_are_short_and_accepted() {
    for (source, program, kinds) in [
        ("pages.cpp", "pages", &["race"][..]),
        ("server.cpp", "server", &["deadlock", "race", "race", "race", "use-after-free"]),
    ] {
        let Some(folder) = Workshop::built(source) else { return };
        let mut steps = Vec::new();
        for seed in ["1", "2", "3"] {
            folder.record(&["--seed", seed], &[program]);
            assert_eq!(folder.findings(), kinds, "{program} {seed}");
            let check = |format| folder.reweave(&["check", "run.rwt", "--format", format]).stdout;
            steps.extend(shown_steps(&String::from_utf8_lossy(&check("text"))));
            let report = serde_json::from_slice(&check("json")).expect("the report is JSON");
            let accepted = accepted_schedules(&folder.path("run.rwt"), &report);
            assert_eq!(accepted, kinds.len(), "{program} {seed}");
        }
        assert!(!steps.is_empty(), "{program}");
        must_be_short(steps);
    }
}
