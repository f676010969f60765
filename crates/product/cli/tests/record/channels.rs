//! What threads hand each other through the kernel in ways that are easy to miss.

use super::harness::{Workshop, compilers};
use super::programs::check_mixed;

#[test]
fn what_the_kernel_carries_is_ordered_however_the_program_is_built() {
    for compiler in compilers("c") {
        check_mixed("handed.c", &[], compiler);
    }
}

/// Records the program `stem`, which prints 7 and has no race.
fn check_seven(stem: &str) {
    let Some(folder) = Workshop::built(&format!("{stem}.c")) else { return };
    for mode in ["serial", "free"] {
        let recorded = folder.record(&["--mode", mode], &[stem]);
        recorded.must_be_whole();
        assert_eq!(recorded.behaviour.printed, "7\n", "{mode}");
        assert_eq!(folder.findings(), [] as [&str; 0], "{mode}");
    }
}

#[test]
fn so_is_what_was_in_a_pipe_when_a_process_was_started() {
    check_seven("inherited");
}

#[test]
fn so_is_what_comes_before_a_signal_that_a_thread_waits_for() {
    check_seven("awaited");
}

#[test]
fn so_is_what_goes_through_other_processes() {
    if let Some(compiler) = compilers("c").first() {
        check_mixed("children.c", &[], compiler);
        check_mixed("children.c", &["fork"], compiler);
    }
}

#[test]
fn calls_that_check_their_buffers_are_seen_too() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["handed.c"]);
        folder.build("handed.c", compiler, &["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]);
        for mode in ["free", "serial"] {
            folder.record(&["--mode", mode], &["handed"]).must_be_whole();
            assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {mode}");
        }
    }
}

#[test]
fn who_writes_more_than_a_pipe_holds_lets_its_reader_run() {
    let Some(folder) = Workshop::built("bulk.c") else { return };
    let recorded = folder.record(&[], &["bulk"]);
    assert_eq!(recorded.behaviour.printed, "10485760\n");
    recorded.must_be_whole();
}

#[test]
fn sets_and_pipes_of_their_own_order_nobody() {
    let Some(folder) = Workshop::built("apart.c") else { return };
    folder.record(&[], &["apart"]).must_be_whole();
    assert_eq!(folder.findings(), ["race"]);
}
