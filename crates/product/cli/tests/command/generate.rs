//! `generate`: seeded traces, whole or not at all.

use super::Folder;

#[test]
fn a_seed_gives_the_same_bytes_and_another_seed_others() {
    let folder = Folder::new();
    let made = |seed: &str| folder.run(&["generate", "--seed", seed]).expect(0).out();
    assert_eq!(made("5"), made("5"));
    assert_ne!(made("5"), made("6"));
}

#[test]
fn every_shape_gives_a_trace_that_is_read_again() {
    let folder = Folder::new();
    for shape in reweave_workload::Shape::ALL.map(reweave_workload::Shape::as_str) {
        for file in ["made.std", "made.rwt"] {
            folder.run(&["generate", "--shape", shape, "--events", "2000", "-o", file]).expect(0);
            let stats = folder.run(&["stats", "--format", "json", file]).expect(0).json();
            assert_eq!(stats["events"], 2_000, "{shape}");
        }
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing_behind() {
    use std::process::{Command, Stdio};

    let folder = Folder::new();
    let mut command = folder.command(&["generate", "--events", "300000000", "-o", "made.rwt"]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    // The folder with the unfinished file is there once the command listens for signals.
    while folder.names().is_empty() {
        std::thread::yield_now();
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(folder.names(), [""; 0]);
}
