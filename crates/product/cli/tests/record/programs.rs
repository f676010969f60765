//! One small program for each family of functions that we stand before: what each thread did, in
//! its order, at which line.
//!
//! Programs are written so that each thread's events are the same in every run. What the runtime
//! does not know of shows here first: as events that cannot have happened, or are not there.

use expect_test::{Expect, expect};
use reweave_trace::{Marker, Op};

use super::harness::{Recorded, Workshop, compilers, has};

/// Records the program in the source `name`, which must go well.
fn recorded(name: &str) -> Option<Recorded> {
    let folder = Workshop::built(name)?;
    let (stem, _) = name.split_once('.').expect("a source has an extension");
    let recorded = folder.record_all(&[], &[stem]);
    assert_eq!(recorded.behaviour.code, Some(0), "{}", recorded.said);
    Some(recorded)
}

#[track_caller]
fn check(name: &str, expected: Expect) {
    // Compilers differ in what they keep in registers.
    if !has("g++") {
        return;
    }
    let Some(recorded) = recorded(name) else { return };
    let mut by_thread = recorded.by_thread();
    if name.ends_with(".cpp") {
        by_thread = without_blocks(&by_thread);
    }
    expected.assert_eq(&by_thread);
}

/// What a thread did without what it did in allocated memory, which is the C++ library's own.
fn without_blocks(by_thread: &str) -> String {
    let mut text = String::new();
    for line in by_thread.lines() {
        let (indent, words) = line.split_at(line.len() - line.trim_start().len());
        let is_in_block = |word: &&str| word.contains('#') && !word.contains("memory#");
        let kept: Vec<&str> = words.split(' ').filter(|word| !is_in_block(word)).collect();
        if kept.len() > 1 || indent.is_empty() {
            text.push_str(&format!("{indent}{}\n", kept.join(" ")));
        }
    }
    text
}

#[test]
fn mutexes_of_every_kind_are_seen() {
    check(
        "mutexes.c",
        expect![[r#"
            main
              58: req(normal) acq(normal) aw.relaxed(normal.taken_by_main)
              59: req(spin) acq(spin) aw.relaxed(spin.taken_by_main)
              60: fork(T1)
              61: join(T1)
              62: aw.relaxed(spin.taken_by_main) rel(spin)
              63: aw.relaxed(normal.taken_by_main) rel(normal)
              65: acq(normal) aw.relaxed(normal.taken_by_main) r(memory#1+5)
              66: aw.relaxed(normal.taken_by_main) rel(normal)
              68: acq(normal) aw.relaxed(normal.taken_by_main) r(memory#1+4) r(memory#1+5)
              69: aw.relaxed(normal.taken_by_main) rel(normal)
              71: acq(normal) aw.relaxed(normal.taken_by_main) r(memory#2)
              72: aw.relaxed(normal.taken_by_main) rel(normal)
              74: req(recursive) acq(recursive)
              75: req(recursive) acq(recursive)
              76: acq(recursive) r(memory#1+5)
              77: rel(recursive)
              78: rel(recursive)
              79: rel(recursive)
              80: r(memory#1+4) r(memory#1+5)
              82: req(checking) acq(checking)
              83: r(memory#1+4) r(memory#1+5)
              84: rel(checking)
              86: fork(T2)
              87: join(T2)
              88: req(robust) acq(robust) r(memory#1+4) r(memory#1+5)
              89: r(memory#1+4) r(memory#1+5)
              90: r(x)=5 w(x)=6
              91: rel(robust)
              92: r(x)=6 r(memory#2)
            T1
              35: ar.relaxed(normal.taken_by_main) r(memory#1+5)
              36: ar.relaxed(normal.taken_by_main) r(memory#1+4) r(memory#1+5)
              38: ar.relaxed(normal.taken_by_main) r(memory#1+4) r(memory#1+5)
              39: r(memory#1+4) r(memory#1+5)
              40: ar.relaxed(spin.taken_by_main) r(memory#2)
            T2
              45: req(robust) acq(robust)
              46: w(x)=5
              -: rel(robust)
        "#]],
    );
}

#[test]
fn reader_writer_locks_are_seen_in_their_mode() {
    check(
        "rwlocks.c",
        expect![[r#"
            main
              53: req(lock) racq(lock) aw.relaxed(lock.taken_by_main)
              54: racq(lock) aw.relaxed(lock.taken_by_main)
              46: fork(T1)
              47: join(T1)
              56: aw.relaxed(lock.taken_by_main) rrel(lock)
              57: aw.relaxed(lock.taken_by_main) rrel(lock)
              59: aw.relaxed(lock.taken_by_main) wreq(lock) acq(lock) aw.relaxed(lock.taken_by_main)
              60: w(x)=1
              46: fork(T2)
              47: join(T2)
              62: req(lock) r(memory#2+5) r(memory#1)
              63: aw.relaxed(lock.taken_by_main) rel(lock)
              66: racq(lock) aw.relaxed(lock.taken_by_main)
              67: aw.relaxed(lock.taken_by_main) rrel(lock)
              68: acq(lock) aw.relaxed(lock.taken_by_main)
              69: aw.relaxed(lock.taken_by_main) rel(lock)
              71: racq(lock) aw.relaxed(lock.taken_by_main)
              72: aw.relaxed(lock.taken_by_main) rrel(lock)
              73: acq(lock) aw.relaxed(lock.taken_by_main)
              74: aw.relaxed(lock.taken_by_main) rel(lock)
              75: acq(lock) aw.relaxed(lock.taken_by_main)
              76: aw.relaxed(lock.taken_by_main) rel(lock)
            T1
              25: req(lock) racq(lock)
              26: r(x)=0
              27: rrel(lock)
              28: ar.relaxed(lock.taken_by_main) r(memory#1+3) r(memory#1+4)
              29: ar.relaxed(lock.taken_by_main) r(memory#1+3) r(memory#1+4)
              31: ar.relaxed(lock.taken_by_main) r(memory#2+4) r(memory#2+5) r(memory#1)
            T2
              37: ar.relaxed(lock.taken_by_main) r(memory#1+4)
              38: ar.relaxed(lock.taken_by_main) r(memory#1+3) r(memory#1+4)
              40: ar.relaxed(lock.taken_by_main) r(memory#2+4) r(memory#2+5) r(memory#1)
        "#]],
    );
}

#[test]
fn waits_on_conditions_are_seen_with_their_ends() {
    check(
        "conditions.c",
        expect![[r#"
            main
              45: req(m) acq(m)
              47: timed rel(m) wait(c) timeout(c) acq(m)
              49: timed rel(m) wait(c) timeout(c) acq(m)
              50: fork(T1)
              51: r(stage)=0 rel(m) wait(back) wake(back) acq(m) r(stage)=1
              52: w(stage)=2
              53: notify(c)
              54: r(stage)=2 rel(m) wait(back) wake(back) acq(m) r(stage)=3
              55: w(stage)=4
              56: notifyall(c)
              57: r(stage)=4 rel(m) wait(back) wake(back) acq(m) r(stage)=5
              58: w(stage)=6
              59: notify(c)
              60: rel(m)
              61: join(T1)
              62: r(stage)=6
            T1
              26: req(m) acq(m)
              27: w(stage)=1
              28: notify(back)
              29: r(stage)=1 rel(m) wait(c) wake(c) acq(m) r(stage)=2
              30: w(stage)=3
              31: notify(back)
              33: r(stage)=3 timed rel(m) wait(c) wake(c) acq(m) r(stage)=4
              34: w(stage)=5
              35: notifyall(back)
              37: r(stage)=5 timed rel(m) wait(c) wake(c) acq(m) r(stage)=6
              38: rel(m)
        "#]],
    );
}

#[test]
fn barriers_semaphores_and_what_is_done_once_are_seen() {
    check(
        "meetings.c",
        expect![[r#"
            main
              49: aw.release(control)
              50: fork(T1)
              51: arrive(barrier) depart(barrier)
              53: take(empty)
              54: w(box)=1
              55: post(full) arw.release(full.value)
              53: take(empty)
              54: w(box)=2
              55: post(full) arw.release(full.value)
              53: take(empty)
              54: w(box)=3
              55: post(full) arw.release(full.value)
              57: arrive(barrier) depart(barrier)
              58: r(sum)=6 r(memory#2+2)
              59: join(T1)
            T1
              29: ar.acquire(control)
              30: ar.relaxed(full.value)
              31: ar.relaxed(full.value)
              33: ar.relaxed(full.value) r(memory#2+2)
              34: arrive(barrier) depart(barrier)
              36: take(full) arw.release(full.value)
              37: r(sum)=0 r(box)=1 w(sum)=1
              38: post(empty)
              36: take(full) arw.release(full.value)
              37: r(sum)=1 r(box)=2 w(sum)=3
              38: post(empty)
              36: take(full) arw.release(full.value)
              37: r(sum)=3 r(box)=3 w(sum)=6
              38: post(empty)
              40: arrive(barrier) depart(barrier)
        "#]],
    );
}

#[test]
fn threads_of_the_c_standard_are_seen() {
    check(
        "c11.c",
        expect![[r#"
            main
              55: aw.release(flag)
              56: req(timed) acq(timed) aw.relaxed(timed.taken_by_main)
              57: req(plain) acq(plain)
              59: timed rel(plain) wait(c) timeout(c) acq(plain) r(memory#1+6) r(memory#2)
              60: fork(T1)
              61: r(ready)=0 rel(plain) wait(c) wake(c) acq(plain) r(ready)=1
              62: rel(plain)
              63: aw.relaxed(timed.taken_by_main) rel(timed)
              64: join(T1)
              65: req(recursive) acq(recursive)
              66: req(recursive) acq(recursive)
              67: acq(recursive) r(memory#3+4)
              68: rel(recursive)
              69: rel(recursive)
              70: rel(recursive)
              71: req(plain) acq(plain)
              72: fork(T2)
              74: r(ready)=1 rel(plain) wait(c) wake(c) acq(plain) r(ready)=2
              75: rel(plain)
              78: r(x)=1 r(memory#1+5) r(memory#1+6) r(memory#2)
            T1
              27: ar.acquire(flag)
              28: ar.relaxed(timed.taken_by_main) r(memory#3+4)
              29: ar.relaxed(timed.taken_by_main) r(memory#1+5) r(memory#1+6) r(memory#2)
              30: req(plain) acq(plain)
              31: w(ready)=1
              32: notify(c)
              33: rel(plain)
              34: r(x)=0 w(x)=1
            T2
              40: req(plain) acq(plain)
              41: w(ready)=2
              42: notifyall(c)
              43: rel(plain)
        "#]],
    );
}

#[test]
fn threads_of_the_cpp_standard_are_seen() {
    check(
        "standard.cpp",
        expect![[r#"
            main
              24: ar.acquire(guard_variable_for_shared_value()::value)=0 ar.acquire(guard_variable_for_shared_value()::value) aw.release(guard_variable_for_shared_value()::value)=0 ar.acquire(guard_variable_for_shared_value()::value)=0 ar.acquire(guard_variable_for_shared_value()::value)
              13: w(shared_value()::value.number)=7
              24: aw.release(guard_variable_for_shared_value()::value)=1
              54: r(shared_value()::value.number)=7 r(memory#2+7) r(memory#8)
              55: aw.release(flag)
              57: wreq(shared) acq(shared)
              58: w(x)=1
              59: rel(shared)
              60: fork(T1)
              62: req(m) acq(m)
              63: r(ready)=0 rel(m) wait(c) wake(c) acq(m) r(ready)=1
              64: timed rel(m) wait(c) timeout(c) acq(m)
              65: rel(m)
              66: join(T1)
              68: req(nested) acq(nested)
              69: req(nested) acq(nested)
              70: req(m) acq(m) acq(timed)
              71: rel(m) rel(timed) rel(nested) rel(nested)
              72: acq(timed) r(memory#2+7) r(memory#8)
              73: rel(timed)
              74: fork(T2)
              75: join(T2) r(memory#2+7) r(memory#8)
            T1
              38: ar.acquire(flag)
              40: req(m) acq(m)
              41: w(ready)=1
              42: notify(c)
              43: rel(m)
              44: req(shared) racq(shared)
              24: ar.acquire(guard_variable_for_shared_value()::value)=1
              45: r(shared_value()::value.number)=7 r(x)=1 r(memory#2+7) r(memory#8)
              46: rrel(shared)
            T2
              74: r(x)=1
        "#]],
    );
}

#[test]
fn atomic_accesses_keep_their_sizes_and_orders() {
    check(
        "atomics.c",
        expect![[r#"
            main
              38: aw.relaxed(a8)=1
              39: aw.release(a16)=2
              40: aw(a32)=3
              41: aw(a64)
              42: aw.release(taken)=0
              43: fence(seqcst)
              44: fork(T1)
              45: join(T1)
              46: ar.relaxed(a8)=200 r(memory#1+1)
              47: ar.acquire(a16)=4 r(memory#1) r(memory#1+1)
              48: ar(a32)=1 r(memory#1) r(memory#1+1)
              49: ar.acquire(plain)=4294967295 ar(a64)=9
            T1
              17: arw.relaxed(a8)=2
              18: arw.acquire(a16)=1
              19: arw.release(a32)=15
              20: arw.acqrel(a64)=2
              21: arw(a64)=3
              22: arw(plain)=4294967295
              23: ar.acquire(a32)=15 r(memory#1+1)
              26: arw.release(a32)=1 r(memory#1) r(memory#1+1)
              28: arw(a64)=9 r(memory#1) r(memory#1+1)
              29: arw(a16)=4 r(memory#1) r(memory#1+1)
              30: arw.acquire(taken)=1
              31: fence(release)
              32: aw.release(a8)=200
        "#]],
    );
}

#[test]
fn memory_is_told_apart_by_lifetime() {
    check(
        "memory.c",
        expect![[r#"
            main
              46: alloc(int[]#1)
              49: w(text[0..8]) w(text[8..10])
              50: w(bits.low/high)=5
              51: w(int[]#1[0])=1
              41: fork(T1)
              42: join(T1)
              53: r(int[]#1[1])=2
              54: free(int[]#1) alloc(int[]#2)
              55: w(int[]#2[0])=10
              41: fork(T2)
              42: join(T2)
              57: r(int[]#2[1])=11
              58: free(int[]#2)
              59: alloc(int[]#3)
              60: w(int[]#3[0])=20
              41: fork(T3)
              42: join(T3)
              62: r(int[]#3[1])=21
              63: free(int[]#3)
              64: alloc(int[]#4)
              65: w(int[]#4[0])=30
              41: fork(T4)
              42: join(T4)
              67: r(int[]#4[1])=31
              68: free(int[]#4)
              69: r(odd.third) r(odd.third+3) r(odd.second) r(bits.low/high)=77 r(bits.low/high)=77 r(copied[0])
            T1
              29: r(int[]#1[0])=1 w(int[]#1[1])=2
              30: r(text[0..8]) r(text[8..10]) r(text[10..16]) r(text[16..32]) w(copied[0]) w(copied[1..8]) w(copied[8..16]) w(copied[16]) w(copied[17..24]) w(copied[24..32])
              31: r(copied[0]) r(copied[1..8]) r(copied[8..16]) w(copied[1..8]) w(copied[8..16]) w(copied[16])
              32: w(text[0..8]) w(text[8..10]) w(text[10..16]) w(text[16..32]) w(text[32..64])
              33: w(bits.low/high)=77
              34: r(odd.second) w(odd.second)
              35: r(odd.third) r(odd.third+3) w(odd.third) w(odd.third+3)
            T2
              29: r(int[]#2[0])=10 w(int[]#2[1])=11
              30: r(text[0..8]) r(text[8..10]) r(text[10..16]) r(text[16..32]) w(copied[0]) w(copied[1..8]) w(copied[8..16]) w(copied[16]) w(copied[17..24]) w(copied[24..32])
              31: r(copied[0]) r(copied[1..8]) r(copied[8..16]) w(copied[1..8]) w(copied[8..16]) w(copied[16])
              32: w(text[0..8]) w(text[8..10]) w(text[10..16]) w(text[16..32]) w(text[32..64])
              33: w(bits.low/high)=77
              34: r(odd.second) w(odd.second)
              35: r(odd.third) r(odd.third+3) w(odd.third) w(odd.third+3)
            T3
              29: r(int[]#3[0])=20 w(int[]#3[1])=21
              30: r(text[0..8]) r(text[8..10]) r(text[10..16]) r(text[16..32]) w(copied[0]) w(copied[1..8]) w(copied[8..16]) w(copied[16]) w(copied[17..24]) w(copied[24..32])
              31: r(copied[0]) r(copied[1..8]) r(copied[8..16]) w(copied[1..8]) w(copied[8..16]) w(copied[16])
              32: w(text[0..8]) w(text[8..10]) w(text[10..16]) w(text[16..32]) w(text[32..64])
              33: w(bits.low/high)=77
              34: r(odd.second) w(odd.second)
              35: r(odd.third) r(odd.third+3) w(odd.third) w(odd.third+3)
            T4
              29: r(int[]#4[0])=30 w(int[]#4[1])=31
              30: r(text[0..8]) r(text[8..10]) r(text[10..16]) r(text[16..32]) w(copied[0]) w(copied[1..8]) w(copied[8..16]) w(copied[16]) w(copied[17..24]) w(copied[24..32])
              31: r(copied[0]) r(copied[1..8]) r(copied[8..16]) w(copied[1..8]) w(copied[8..16]) w(copied[16])
              32: w(text[0..8]) w(text[8..10]) w(text[10..16]) w(text[16..32]) w(text[32..64])
              33: w(bits.low/high)=77
              34: r(odd.second) w(odd.second)
              35: r(odd.third) r(odd.third+3) w(odd.third) w(odd.third+3)
        "#]],
    );
}

#[test]
fn threads_end_in_every_way() {
    check(
        "lives.c",
        expect![[r#"
            main
              76: w(key)
              77: fork(T1)
              78: join(T1)
              60: fork(T2)
              61: take(waits)
              63: join(T2)
              65: req(m) acq(m)
              66: r(x)=1 w(x)=2
              67: rel(m)
              60: fork(T3)
              61: take(waits)
              63: join(T3)
              65: req(m) acq(m)
              66: r(x)=2 w(x)=3
              67: rel(m)
              85: fork(T4)
              87: take(done)
              85: fork(T5)
              87: take(done)
              85: fork(T6)
              87: take(done)
              85: fork(T7)
              87: take(done)
              89: r(destroyed)=1 r(cleaned)=2 r(x)=39
            T1
              24: r(key)=1
              25: w(x)=1
              14: r(destroyed)=0 w(destroyed)=1
            T2
              30: req(m) acq(m)
              32: post(waits)
              33: rel(m) wait(c) timeout(c) acq(m)
              17: r(cleaned)=0 w(cleaned)=1
              18: rel(m)
            T3
              39: req(m) acq(m)
              41: post(waits)
              17: r(cleaned)=1 w(cleaned)=2
              18: rel(m)
            T4
              50: req(m) acq(m)
              51: r(x)=3 w(x)=12
              52: rel(m)
              53: post(done)
            T5
              50: req(m) acq(m)
              51: r(x)=12 w(x)=21
              52: rel(m)
              53: post(done)
            T6
              50: req(m) acq(m)
              51: r(x)=21 w(x)=30
              52: rel(m)
              53: post(done)
            T7
              50: req(m) acq(m)
              51: r(x)=30 w(x)=39
              52: rel(m)
              53: post(done)
        "#]],
    );
}

#[test]
fn what_unlocking_another_threads_mutex_answers_is_no_event() {
    let Some(recorded) = recorded("mutexes.c") else { return };
    // Two calls of `pthread_mutex_unlock` fail, as the program expects.
    recorded.must_be_whole();
}

#[test]
fn fields_of_local_variables_are_seen() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&["locals.c"]);
        for level in ["-O0", "-O2"] {
            folder.build("locals.c", compiler, &[level]);
            let recorded = folder.record(&[], &["locals"]);
            recorded.must_be_whole();
            let by_thread = recorded.by_thread();
            let main = by_thread.split("\nT1").next().expect("main comes first");
            let reads = main.lines().filter(|line| line.contains("24:") && line.contains(" r("));
            assert!(reads.count() > 0, "{compiler} {level}: {by_thread}");
        }
    }
}

#[test]
fn sixteen_bytes_are_two_accesses() {
    if !has("gcc") {
        return;
    }
    let folder = Workshop::with(&["wide.c"]);
    folder.build("wide.c", "gcc", &["-O1", "-mcx16"]);
    let recorded = folder.record_all(&[], &["wide"]);
    recorded.must_be_whole();
    let by_thread = recorded.by_thread();
    for expected in [
        "12: arw(a)=8 arw(a+8)=6",
        "13: ar(a)=8 ar(a+8)=6",
        "14: r(b[0])=0 r(b[1])=0 w(b[0])",
        "24: r(a)=8 r(a+8)=6",
    ] {
        assert!(by_thread.contains(expected), "{expected}: {by_thread}");
    }
}

#[test]
fn locks_made_of_futexes_keep_what_they_protect_apart() {
    let Some(folder) = Workshop::built("futexes.c") else { return };
    let recorded = folder.record(&[], &["futexes"]);
    recorded.must_be_whole();
    let count = |is: fn(Op) -> bool| recorded.trace.events().filter(|it| is(it.1.op)).count();
    assert_eq!(count(|op| matches!(op, Op::Marker(Marker::Begin(_)))), 300);
    assert_eq!(count(|op| matches!(op, Op::Marker(Marker::End(_)))), 300);
    assert_eq!(recorded.behaviour.printed, "300\n");
    let found = folder.findings();
    assert!(!found.iter().any(|kind| kind == "race" || kind == "deadlock"), "{found:?}");
}

/// Builds one program that uses everything with all ways of linking and levels of optimisation, and
/// records it.
#[track_caller]
pub(crate) fn check_mixed(name: &str, arguments: &[&str], compiler: &str) {
    let folder = Workshop::with(&[name]);
    let (stem, _) = name.split_once('.').expect("a source has an extension");
    folder.build_plain(name, compiler, "plain", &[]);
    let expected = folder.run("plain", arguments);
    for linking in [&[][..], &["--runtime", "static"], &["-static"]] {
        for level in ["-O0", "-O2"] {
            let options = [linking, &[level]].concat();
            folder.build(name, compiler, &options);
            assert_eq!(folder.run(stem, arguments), expected, "{compiler} {options:?}");
            for mode in ["free", "serial"] {
                let recorded = folder.record(&["--mode", mode], &[&[stem], arguments].concat());
                assert_eq!(recorded.behaviour, expected, "{compiler} {options:?} {mode}");
                recorded.must_be_whole();
            }
            assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {options:?}");
        }
    }
}

#[test]
fn a_program_that_uses_everything_is_clean_however_it_is_built() {
    for compiler in compilers("c") {
        check_mixed("contended.c", &["5"], compiler);
    }
}

#[test]
fn so_is_one_in_cpp() {
    for compiler in compilers("cpp") {
        check_mixed("standard.cpp", &[], compiler);
    }
}
