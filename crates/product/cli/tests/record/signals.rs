//! Handlers of signals: what they do is recorded where it can be, and wherever they jump to, the
//! program goes on. What cannot be recorded is refused, with the reason.

use reweave_testkit::soak;
use reweave_trace::Op;

use super::harness::{Behaviour, Workshop, compilers, has};

const PROGRAM: &str = "handlers.c";
const MODES: [&str; 2] = ["serial", "free"];

/// Records the program in both modes, which must print `expected`; gives what `check` finds.
#[track_caller]
fn findings(case: &str, expected: &str) -> Vec<(&'static str, Vec<String>)> {
    let Some(folder) = Workshop::built(PROGRAM) else { return Vec::new() };
    let expected = Behaviour { code: Some(0), printed: expected.to_owned() };
    let mut all = Vec::new();
    for mode in MODES {
        let recorded = folder.record(&["--mode", mode], &["handlers", case]);
        assert_eq!(recorded.behaviour, expected, "{mode}: {}", recorded.said);
        assert!(!recorded.said.contains("inconsistent event"), "{mode}: {}", recorded.said);
        all.push((mode, folder.findings()));
    }
    all
}

/// Records the program in `mode`, which must run on while it is refused because of `reason`.
#[track_caller]
fn refuses(case: &str, mode: &str, printed: &str, reason: &str) {
    let Some(folder) = Workshop::built(PROGRAM) else { return };
    let words = ["record", "-o", "run.rwt", "--mode", mode, "--", "./handlers", case];
    let output = folder.reweave(&words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{said}");
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(reason), "{said}");
    assert!(!folder.path("run.rwt").exists(), "nothing is written that cannot be trusted");
}

#[test]
fn what_a_handler_does_while_its_thread_waits_is_recorded() {
    for (mode, found) in findings("posts", "3 2\n") {
        assert!(found.is_empty(), "{mode}: {found:?}");
    }
}

#[test]
fn no_signal_is_lost_where_regions_begin_and_end() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["region_signals.c"]);
        folder.build("region_signals.c", compiler, &["-fopenmp", "-O1"]);
        for mode in MODES {
            for seed in 1..=2 * soak::multiplier() {
                let options = ["--mode", mode, "--seed", &seed.to_string(), "--time-limit", "60"];
                let recorded = folder.record(&options, &["region_signals", "150"]);
                let context = format!("{compiler} {mode} {seed}: {}", recorded.said);
                assert_eq!(recorded.behaviour.printed, "1\n", "{context}");
            }
        }
    }
}

#[test]
fn signals_that_come_to_idle_threads_of_a_pool_are_recorded() {
    if !has("gcc") {
        return;
    }
    let folder = Workshop::with(&["pool_signals.c"]);
    folder.build("pool_signals.c", "gcc", &["-fopenmp"]);
    for mode in MODES {
        let recorded = folder.record(&["--mode", mode], &["pool_signals"]);
        assert_eq!(recorded.behaviour.printed, "210 6\n", "{mode}: {}", recorded.said);
        assert!(!recorded.said.contains("inconsistent"), "{mode}: {}", recorded.said);
        assert_eq!(folder.findings(), [] as [&str; 0], "{mode}");
    }
}

#[test]
fn a_handler_can_jump_away_from_the_runtime() {
    findings("jumps", "1000\n");
}

#[test]
fn a_handler_can_jump_away_from_an_atomic_access_that_faults() {
    for (mode, found) in findings("faults", "recovered\n") {
        assert!(found.is_empty(), "{mode}: {found:?}");
    }
}

#[test]
fn a_handler_can_fork_while_its_thread_waits() {
    findings("splits", "7\n");
}

#[test]
fn a_thread_that_cannot_be_recorded_is_not_passed_over() {
    refuses("files", "free", "1\n", "could not be recorded");
}

#[test]
fn threads_of_a_process_that_gave_up_the_rights_of_root_are_recorded() {
    let Some(folder) = Workshop::built("another_user.c") else { return };
    for mode in MODES {
        let recorded = folder.record(&["--mode", mode], &["another_user"]);
        recorded.must_be_whole();
        assert_eq!(recorded.behaviour.printed, "2\n", "{mode}: {}", recorded.said);
        assert_eq!(recorded.trace.names().threads.len(), 3, "{mode}");
    }
}

#[test]
fn threads_that_the_c_library_makes_are_named() {
    for mode in MODES {
        refuses("timer", mode, "ticked\n", "SIGEV_THREAD");
    }
}

#[test]
fn what_a_handler_does_is_recorded_whatever_it_interrupts() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["signalled.c"]);
        folder.build("signalled.c", compiler, &["-O1"]);
        for mode in MODES {
            for seed in 1..=5 {
                let options = ["--mode", mode, "--seed", &seed.to_string()];
                let recorded = folder.record(&options, &["signalled"]);
                assert_eq!(recorded.behaviour.printed, "5 5\n", "{compiler} {options:?}");
                recorded.must_be_whole();
                assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {options:?}");
            }
        }
    }
}

/// Records the program of the source `name`, which must print in both modes what it prints without us.
#[track_caller]
fn runs_as_without_us(name: &str, arguments: &[&str]) {
    let Some(folder) = Workshop::built(name) else { return };
    let (program, _) = name.split_once('.').expect("a source has an extension");
    folder.build_plain(name, compilers("c")[0], "plain", &[]);
    let expected = folder.run("plain", arguments);
    assert_eq!(expected.code, Some(0), "{}", expected.printed);
    for mode in MODES {
        let recorded = folder.record(&["--mode", mode], &[&[program], arguments].concat());
        assert_eq!(recorded.behaviour, expected, "{mode}: {}", recorded.said);
        recorded.must_be_whole();
    }
}

#[test]
fn a_handler_for_one_signal_runs_once_whatever_it_interrupts() {
    runs_as_without_us("single_use.c", &[]);
}

#[test]
fn the_signals_that_a_program_blocks_and_puts_back_are_its_own() {
    runs_as_without_us("masks.c", &["puts_back"]);
}

#[test]
fn the_signals_that_a_jump_or_a_context_saves_are_the_programs_own() {
    runs_as_without_us("masks.c", &["saves"]);
}

#[test]
fn handlers_that_interrupt_each_other_leave_no_signal_blocked() {
    runs_as_without_us("masks.c", &["nests"]);
}

#[test]
fn a_jump_out_of_a_wait_does_not_end_the_recording_of_handlers() {
    let Some(folder) = Workshop::built("leaps.c") else { return };
    for mode in MODES {
        let recorded = folder.record_all(&["--mode", mode], &["leaps"]);
        let trace = &recorded.trace;
        let is_handled = |op: Op| {
            let name = op.var().map(|var| trace.names().vars.name(var));
            op.is_write() && name == Some("handled")
        };
        let handled = trace.events().filter(|(_, event)| is_handled(event.op)).count();
        assert!(handled >= 100, "{mode}: {handled}; {}", recorded.said);
        assert_eq!(recorded.behaviour.printed, format!("{handled}\n"), "{mode}");
    }
}
