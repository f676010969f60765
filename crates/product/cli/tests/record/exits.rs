//! Programs behave as they do without us, and however they end, what they did is in the trace.

use reweave_trace::{AccessOp, Op};

use super::harness::{Behaviour, Recorded, Workshop, compilers};

const MODES: [&str; 2] = ["serial", "free"];

/// Runs the program in the source `name` plain, instrumented, and recorded in both modes, which must
/// print the same and end alike; gives what was recorded.
#[track_caller]
fn alike(name: &str, cases: &[&[&str]]) -> Vec<(String, Recorded)> {
    let Some(compiler) = compilers("c").first().copied() else { return Vec::new() };
    let folder = Workshop::with(&[name]);
    let (stem, _) = name.split_once('.').expect("a source has an extension");
    folder.build_plain(name, compiler, "plain", &[]);
    folder.build(name, compiler, &["-O1"]);
    let mut all = Vec::new();
    for &arguments in cases {
        let expected = folder.run("plain", arguments);
        assert_eq!(folder.run(stem, arguments), expected, "{name} {arguments:?}");
        for mode in MODES {
            let recorded = folder.record_all(&["--mode", mode], &[&[stem], arguments].concat());
            let what = format!("{name} {arguments:?} {mode}");
            assert_eq!(recorded.behaviour, expected, "{what}: {}", recorded.said);
            all.push((what, recorded));
        }
    }
    all
}

#[test]
fn programs_print_and_end_as_they_do_without_us() {
    let names = ["mutexes.c", "rwlocks.c", "conditions.c", "meetings.c", "c11.c", "atomics.c"];
    for name in names.into_iter().chain(["memory.c", "lives.c", "errno.c", "signals.c"]) {
        alike(name, &[&[]]);
    }
}

#[test]
fn a_handler_that_jumps_away_leaves_everything_in_order() {
    for (what, recorded) in alike("signals.c", &[&[]]) {
        recorded.must_be_whole();
        let by_thread = recorded.by_thread();
        // What happens after the jumps is seen.
        assert!(by_thread.contains("post(woken)"), "{what}: {by_thread}");
        assert!(by_thread.contains("take(woken)"), "{what}: {by_thread}");
    }
}

/// The line of `exits.c` that `main` reaches last.
const LAST_WRITE: u32 = 63;

#[track_caller]
fn check_last_write(what: &str, recorded: &Recorded) {
    let names = recorded.trace.names();
    let main = names.threads.get("main").expect("the first thread did something");
    let last = names.vars.get("last").unwrap_or_else(|| panic!("{what}: `last` is shared"));
    let mut written = recorded.trace.events().filter(|(_, event)| {
        event.thread == main && matches!(event.op, Op::Access(AccessOp::Write, var) if var == last)
    });
    let line = written.next_back().and_then(|(_, event)| names.line(event.site));
    assert_eq!(line, Some(LAST_WRITE), "{what}");
}

#[test]
fn the_last_write_is_in_the_trace_however_the_program_ends() {
    let ways = ["return", "exit", "abort", "_exit", "kill", "segv", "term", "exec", "pthread_exit"];
    let ways = ways.map(|way| [way]);
    let mut cases: Vec<&[&str]> = ways.iter().map(|way| &way[..]).collect();
    cases.extend([&["system"][..], &["others-run"]]);
    for (what, recorded) in alike("exits.c", &cases) {
        check_last_write(&what, &recorded);
    }
}

#[test]
fn a_process_that_forks_goes_on_and_so_does_its_child() {
    for (what, recorded) in alike("exits.c", &[&["fork"], &["fork-in-thread"]]) {
        assert!(recorded.said.contains(", dropped 1 other"), "{}", recorded.said);
        // The child has two threads more than it was forked with, the parent one or two in all.
        let threads = recorded.trace.names().threads.len();
        assert_eq!(threads, 3, "{what}");
    }
}

#[test]
fn workers_are_recorded_each_by_itself() {
    for (what, recorded) in alike("workers.c", &[&["4"]]) {
        assert!(recorded.said.contains(", dropped 4 others"), "{}", recorded.said);
        recorded.must_be_whole();
        assert_eq!(recorded.trace.names().threads.len(), 4, "{what}");
    }
}

#[test]
fn threads_that_wait_in_the_kernel_do_not_stop_others() {
    for (what, recorded) in alike("blocking.c", &[&[]]) {
        assert!(
            !recorded.said.contains("blocked in an unrecognised call"),
            "{what}: {}",
            recorded.said
        );
    }
}

#[test]
fn a_call_that_waits_without_our_knowledge_is_overcome() {
    for (what, recorded) in alike("unseen.c", &[&[]]) {
        let is_told = recorded.said.contains("blocked in an unrecognised call");
        assert_eq!(is_told, what.ends_with("serial"), "{what}: {}", recorded.said);
    }
}

/// Stops and continues a recorded program, with breaks longer than those after which a thread is
/// taken to sleep: none sleeps, so none may lose the token.
#[test]
fn a_program_that_is_stopped_for_a_while_loses_no_turn() {
    let Some(folder) = Workshop::built("racy.c") else { return };
    folder.put("stop.sh", {
        "./racy 60000 &\nfor i in 1 2 3 4; do\n  kill -STOP $!; sleep 0.25; kill -CONT $!\n  \
         sleep 0.05\ndone\nwait $!\n"
    });
    let output = folder.reweave(&["record", "-o", "run.rwt", "--", "sh", "stop.sh"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(Behaviour::new(&output).code, Some(0), "{said}");
    assert!(said.contains("from 5 threads"), "{said}");
    assert!(!said.contains("blocked in an unrecognised call"), "{said}");
}

#[test]
fn locks_of_the_loader_and_of_allocators_keep_nobody_waiting() {
    let Some(folder) = Workshop::built("loader.c") else { return };
    for mode in MODES {
        for seed in 1..=6 {
            let mut command = folder.command("timeout");
            command.args(["60", env!("CARGO_BIN_EXE_reweave"), "record", "-o", "run.rwt"]);
            command.args(["--mode", mode, "--seed", &seed.to_string(), "--", "./loader"]);
            let output = command.output().expect("the command starts");
            let behaviour = Behaviour::new(&output);
            assert_eq!((behaviour.code, &*behaviour.printed), (Some(0), "6\n"), "{mode} {seed}");
            assert_eq!(folder.findings(), [] as [&str; 0], "{mode} {seed}");
        }
    }
}
