//! In `serial` recordings every read returns what was last written, by the trace itself.

use reweave_base::IndexVec;
use reweave_testkit::soak;
use reweave_trace::{AccessOp, Op, Trace, VarId};

use super::harness::{Workshop, compilers};

/// How many reads there are whose value is known, and how many of these contradict the last write,
/// or if there was none, the last read.
fn contradictions(trace: &Trace) -> (u64, u64) {
    contradictions_of(trace, |_| true)
}

/// The same for variables whose names are as wanted.
fn contradictions_of(trace: &Trace, is_wanted: impl Fn(&str) -> bool) -> (u64, u64) {
    let mut last: IndexVec<VarId, Option<i64>> =
        IndexVec::from_elem(None, trace.names().vars.len());
    let (mut reads, mut wrong) = (0, 0);
    for (id, event) in trace.events() {
        let value = trace.value(id);
        if event.op.var().is_some_and(|var| !is_wanted(trace.names().vars.name(var))) {
            continue;
        }
        match event.op {
            Op::Access(AccessOp::Read | AccessOp::AtomicRead(_), var) => {
                let Some(value) = value else { continue };
                reads += 1;
                wrong += u64::from(last[var].is_some_and(|expected| expected != value));
                last[var] = Some(value);
            }
            // A write whose value is not known leaves the next read free.
            Op::Access(
                AccessOp::Write | AccessOp::AtomicWrite(_) | AccessOp::AtomicUpdate(_),
                var,
            ) => {
                last[var] = value;
            }
            _ => {}
        }
    }
    (reads, wrong)
}

#[test]
fn every_read_returns_the_last_write() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["racy.c"]);
        let rounds = (15_000 * u64::from(soak::multiplier())).to_string();
        for (level, seed) in [("-O0", "1"), ("-O2", "2"), ("-O2", "3")] {
            folder.build("racy.c", compiler, &[level]);
            let recorded = folder.record_all(&["--seed", seed], &["racy", &rounds]);
            recorded.must_be_whole();
            let (reads, wrong) = contradictions(&recorded.trace);
            assert!(reads > 500_000, "{reads} reads by {compiler} {level}");
            assert_eq!(wrong, 0, "of {reads} reads by {compiler} {level}, seed {seed}");
        }
    }
}

#[test]
fn values_are_told_of_copies_and_reused_memory() {
    for name in ["memory.c", "loads.c", "lives.c", "contended.c", "atomics.c"] {
        let Some(folder) = Workshop::built(name) else { return };
        let (stem, _) = name.split_once('.').expect("a source has an extension");
        let (_, wrong) = contradictions(&folder.record_all(&[], &[stem]).trace);
        assert_eq!(wrong, 0, "{name}");
    }
}

#[test]
fn what_a_copy_of_a_structure_stores_is_known() {
    for (name, stem, extension) in
        [("copies.c", "copies", "c"), ("class_copies.cpp", "class_copies", "cpp")]
    {
        for (compiler, level) in
            compilers(extension).into_iter().flat_map(|it| [(it, "-O0"), (it, "-O2")])
        {
            let folder = Workshop::with(&[name]);
            folder.build(name, compiler, &[level]);
            for seed in 1..=5 * soak::multiplier() {
                let recorded = folder.record_all(&["--seed", &seed.to_string()], &[stem]);
                recorded.must_be_whole();
                // What is on the first stack is another variable after each return.
                let is_named = |name: &str| !name.starts_with("memory#") && !name.contains("().");
                let (reads, wrong) = contradictions_of(&recorded.trace, is_named);
                let case = format!("{name} by {compiler} {level}, seed {seed}");
                assert!(reads > 1000, "{reads} reads, {case}");
                assert_eq!(wrong, 0, "of {reads} reads, {case}");
                assert!(!recorded.said.contains("no recorded code"), "{case}: {}", recorded.said);
            }
        }
    }
}

#[test]
fn what_atomics_protect_is_not_kept_in_registers() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["statics.c"]);
        for level in ["-O1", "-O2", "-O3"] {
            folder.build("statics.c", compiler, &[level]);
            let recorded = folder.record(&[], &["statics"]);
            assert_eq!(recorded.behaviour.printed, "106 106\n", "{compiler} {level}");
        }
    }
}

#[test]
fn another_seed_is_another_run() {
    let Some(folder) = Workshop::built("racy.c") else { return };
    let run = |seed| folder.record_all(&["--seed", seed], &["racy", "300"]).trace;
    let order = |trace: &Trace| -> Vec<usize> {
        trace.events().map(|(_, event)| reweave_base::Id::index(event.thread)).collect()
    };
    assert!(order(&run("1")) != order(&run("2")), "both seeds ran the threads in the same order");
}
