//! What orders threads, and what does not: through the kernel, once, by locks that do not wait.

use reweave_testkit::soak;

use super::harness::{Workshop, compilers};
use super::programs::check_mixed;

#[test]
fn what_is_handed_over_in_the_kernel_does_not_race() {
    for compiler in compilers("c") {
        check_mixed("channels.c", &[], compiler);
    }
}

#[test]
fn tables_by_the_number_of_a_descriptor_do_not_race() {
    let Some(folder) = Workshop::built("descriptors.c") else { return };
    for mode in ["serial", "free"] {
        for how in ["own", "handed", "opened"] {
            let recorded = folder.record(&["--mode", mode], &["descriptors", how]);
            recorded.must_be_whole();
            let sum = if how == "own" { "20\n" } else { "6\n" };
            assert_eq!(recorded.behaviour.printed, sum);
            assert_eq!(folder.findings(), [] as [&str; 0], "{how} {mode}");
            // Where several threads open what another closes, the order of both is only assumed.
            let checked = folder.reweave(&["check", "run.rwt"]);
            let said = String::from_utf8_lossy(&checked.stdout);
            let is_assumed =
                said.contains("ordering through numbers of file descriptors was assumed: ");
            assert_eq!(is_assumed, how == "opened", "{how} {mode}: {said}");
        }
    }
}

#[test]
fn what_the_numbers_of_descriptors_do_not_order_races() {
    let Some(folder) = Workshop::built("descriptors.c") else { return };
    for seed in 1..=3 {
        let options = ["--seed", &seed.to_string()];
        folder.record(&options, &["descriptors", "apart"]).must_be_whole();
        assert_eq!(folder.findings(), ["race"], "{seed}");
        let said = confirmation(&folder, "R1", &["./descriptors", "apart"]);
        assert!(said.contains("  confirmed: 1 of 1\n"), "{seed}: {said}");
    }
}

#[test]
fn a_joined_thread_may_look_at_the_object_that_joins_it() {
    let Some(folder) = Workshop::built("joined.cpp") else { return };
    for mode in ["serial", "free"] {
        let recorded = folder.record(&["--mode", mode], &["joined"]);
        recorded.must_be_whole();
        assert_eq!(recorded.behaviour.printed, "1\n");
        assert_eq!(folder.findings(), [] as [&str; 0], "{mode}");
    }
}

#[test]
fn what_a_pipe_does_not_order_races() {
    let Some(folder) = Workshop::built("late.c") else { return };
    folder.record(&[], &["late"]).must_be_whole();
    assert_eq!(folder.findings(), ["race"]);
    let said = confirmation(&folder, "R1", &["./late"]);
    assert!(said.contains("  confirmed: 1 of 1\n"), "{said}");
}

#[test]
fn races_of_threads_that_wait_on_a_condition_happen_as_planned() {
    let Some(folder) = Workshop::built("consumers.c") else { return };
    for seed in 1..=6 * soak::multiplier() {
        folder.record(&["--seed", &seed.to_string()], &["consumers"]).must_be_whole();
        if folder.findings().is_empty() {
            continue;
        }
        let said = confirmation(&folder, "R1", &["./consumers"]);
        assert!(said.contains("  confirmed: 1 of 1\n"), "{seed}: {said}");
    }
}

/// What is said when the finding `id` of `run.rwt` is replayed by the command `words`.
fn confirmation(folder: &Workshop, id: &str, words: &[&str]) -> String {
    let output = folder.reweave(&[&["confirm", "run.rwt", id, "--"], words].concat());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_deadlock_in_which_somebody_does_not_wait_is_not_confirmed() {
    let Some(folder) = Workshop::built("patient.c") else { return };
    folder.record(&[], &["patient"]).must_be_whole();
    assert_eq!(folder.findings(), ["deadlock"]);
    let said = confirmation(&folder, "D1", &["./patient"]);
    assert!(said.contains("  confirmed: 1 of 1\n"), "{said}");
    for manner in ["timed", "checked"] {
        let said = confirmation(&folder, "D1", &["./patient", manner]);
        assert!(said.contains("  not confirmed\n"), "{manner}: {said}");
    }
    for manner in ["timed", "checked"] {
        folder.record(&[], &["patient", manner]).must_be_whole();
        assert_eq!(folder.findings(), [] as [&str; 0], "{manner}");
    }
}

#[test]
fn writers_that_wait_for_readers_deadlock() {
    let Some(folder) = Workshop::built("rwlock_cycles.c") else { return };
    folder.record(&[], &["rwlock_cycles"]).must_be_whole();
    assert_eq!(folder.findings(), ["deadlock"]);
    let said = confirmation(&folder, "D1", &["./rwlock_cycles"]);
    assert!(said.contains("  confirmed: 1 of 1\n"), "{said}");
    folder.record(&[], &["rwlock_cycles", "readers"]).must_be_whole();
    assert_eq!(folder.findings(), [] as [&str; 0]);
    // In these the writers never get the lock.
    folder.record(&["--stall-timeout", "1"], &["rwlock_cycles", "met"]);
    assert_eq!(folder.findings(), ["deadlock"]);
    let checked = folder.reweave(&["check", "run.rwt"]);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(said.contains("D1 deadlock  observed"), "{said}");
    folder.record(&["--stall-timeout", "1"], &["rwlock_cycles", "upgrade"]);
    assert_eq!(folder.findings(), ["deadlock", "stuck"]);
    let said = confirmation(&folder, "D1", &["./rwlock_cycles", "upgrade"]);
    assert!(said.contains("  confirmed: 1 of 1\n"), "{said}");
}

#[test]
fn what_was_set_up_once_does_not_race() {
    let Some(folder) = Workshop::built("once_only.c") else { return };
    for seed in 1..=12 {
        for mode in ["serial", "free"] {
            let options = ["--mode", mode, "--seed", &seed.to_string()];
            folder.record(&options, &["once_only"]).must_be_whole();
            assert_eq!(folder.findings(), [] as [&str; 0], "{options:?}");
        }
    }
}

#[test]
fn what_was_given_up_and_is_set_up_again_does_not_race() {
    for compiler in compilers("cpp") {
        let folder = Workshop::with(&["once_again.cpp"]);
        for options in [&["-O0"][..], &["-O2"], &["-O1", "-static"]] {
            folder.build("once_again.cpp", compiler, options);
            for mode in ["serial", "free"] {
                let context = format!("{compiler} {options:?} {mode}");
                let recorded = folder.record(&["--mode", mode], &["once_again"]);
                assert_eq!(recorded.behaviour.printed, "3 3\n2\n", "{context}");
                recorded.must_be_whole();
                assert_eq!(folder.findings(), [] as [&str; 0], "{context}");
            }
        }
        folder.record(&[], &["once_again", "caught"]).must_be_whole();
        assert_eq!(folder.findings(), ["race"], "{compiler}");
    }
}

#[test]
fn what_is_ready_at_the_end_of_a_thread_comes_after_it() {
    for compiler in compilers("cpp") {
        let folder = Workshop::with(&["ready_at_exit.cpp"]);
        for level in ["-O0", "-O2"] {
            folder.build("ready_at_exit.cpp", compiler, &["-std=c++17", level]);
            for mode in ["serial", "free"] {
                let recorded = folder.record(&["--mode", mode], &["ready_at_exit"]);
                assert_eq!(recorded.behaviour.printed, "1 1 1 1\n2 2\n", "{compiler} {level}");
                recorded.must_be_whole();
                assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {level} {mode}");
            }
        }
        folder.record(&[], &["ready_at_exit", "early"]).must_be_whole();
        assert_eq!(folder.findings(), ["race"], "{compiler}");
    }
}

#[test]
fn every_operation_on_sixteen_bytes_does_what_it_says() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["wide_operations.c"]);
        for level in ["-O0", "-O2"] {
            folder.build("wide_operations.c", compiler, &[level, "-mcx16"]);
            let right = "2 1\n";
            assert_eq!(folder.run("wide_operations", &[]).printed, right, "{compiler} {level}");
            let recorded = folder.record(&[], &["wide_operations"]);
            assert_eq!(recorded.behaviour.printed, right, "{compiler} {level}");
            recorded.must_be_whole();
            assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {level}");
        }
    }
}

#[test]
fn a_thread_is_joined_that_had_the_handle_when_it_was_asked_for() {
    let Some(folder) = Workshop::built("reused.c") else { return };
    for seed in 1..=6 {
        let recorded = folder.record(&["--seed", &seed.to_string()], &["reused"]);
        assert_eq!(recorded.behaviour.printed, "200 40\n");
        recorded.must_be_whole();
        assert_eq!(folder.findings(), [] as [&str; 0], "{seed}");
    }
}

#[test]
fn what_the_c_library_writes_is_seen() {
    for compiler in compilers("c") {
        check_mixed("texts.c", &[], compiler);
    }
}

#[test]
fn what_is_found_out_without_taking_it_orders_threads() {
    for compiler in compilers("c") {
        check_mixed("looks.c", &[], compiler);
    }
}

#[test]
fn what_unseen_code_writes_orders_who_reads_it() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["foreign.c", "foreign_library.c", "assembler.c"]);
        let library = "libforeign.so";
        folder.build_plain("foreign_library.c", compiler, library, &["-shared", "-fPIC"]);
        folder.build("foreign.c", compiler, &["-O1", "./libforeign.so", "-Wl,-rpath,."]);
        folder.build("assembler.c", compiler, &["-O1"]);
        for (program, printed) in [("foreign", "2\n"), ("assembler", "5\n")] {
            for seed in ["1", "2", "3", "4"] {
                let recorded = folder.record(&["--seed", seed], &[program]);
                assert_eq!(recorded.behaviour.printed, printed, "{}", recorded.said);
                recorded.must_be_whole();
                assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {program} {seed}");
                let vars = &recorded.trace.names().vars;
                assert!(vars.get("assumed(unseen_code)#1").is_some(), "{compiler} {program}");
            }
        }
        folder.record(&["--mode", "free"], &["assembler"]).must_be_whole();
        assert_eq!(folder.findings(), [] as [&str; 0], "{compiler}");
    }
}

#[test]
fn whoever_can_have_written_unseen_comes_before() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["handovers.c"]);
        folder.build("handovers.c", compiler, &["-O1"]);
        for way in ["flag", "cleared", "memset", "escaped", "references", "semaphore"] {
            for seed in ["1", "2", "3"] {
                let recorded = folder.record(&["--seed", seed], &["handovers", way]);
                assert_eq!(recorded.behaviour.printed, "1\n", "{}", recorded.said);
                assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {way} {seed}");
            }
        }
    }
}
