//! One small program for each family of functions that we stand before: what each thread did, in
//! its order, at which line.
//!
//! Programs are written so that each thread's events are the same in every run. What the runtime
//! does not know of shows here first: as events that cannot have happened, or are not there.

use expect_test::{Expect, expect};
use reweave_trace::Op;

use super::harness::{Recorded, Workshop, compilers, has};

/// Records the program in the source `name`, which must go well.
fn recorded(name: &str) -> Option<(Workshop, Recorded)> {
    let folder = Workshop::built(name)?;
    let (stem, _) = name.split_once('.').expect("a source has an extension");
    let recorded = folder.record(&[], &[stem]);
    assert_eq!(recorded.behaviour.code, Some(0), "{}", recorded.said);
    Some((folder, recorded))
}

#[track_caller]
fn check(name: &str, expected: Expect) {
    // Compilers differ in what they keep in registers.
    if !has("gcc") || !has("g++") {
        return;
    }
    let Some((_, recorded)) = recorded(name) else { return };
    expected.assert_eq(&recorded.by_thread());
}

#[test]
fn mutexes_of_every_kind_are_seen() {
    check(
        "mutexes.c",
        expect![[r#"
        main
          58: req(normal) acq(normal)
          59: req(spin) acq(spin)
          60: fork(T1)
          61: r(memory#1) join(T1)
          62: rel(spin)
          63: rel(normal)
          65: acq(normal)
          66: rel(normal)
          16: r(memory#2)=807440792 w(memory#2)=812440792
          21: r(memory#3)=1794810522 r(memory#2)=812440792
          68: acq(normal)
          69: rel(normal)
          16: r(memory#2)=933406688 w(memory#2)=938406688
          21: r(memory#3)=75555 r(memory#2)=938406688
          71: acq(normal)
          72: rel(normal)
          74: req(recursive) acq(recursive)
          75: req(recursive) acq(recursive)
          76: acq(recursive)
          77: rel(recursive)
          78: rel(recursive)
          79: rel(recursive)
          82: req(checking) acq(checking)
          83: req(checking)
          84: rel(checking)
          86: fork(T2)
          87: r(memory#1) join(T2)
          88: req(robust) acq(robust)
          90: r(x)=5 w(x)=6
          91: rel(robust)
          92: r(x)=6
        T1
          -: alloc(block#1)
          16: r(block#1+8384104)=794200976 w(block#1+8384104)=799200976
          21: r(block#1+8384096)=1794810522 r(block#1+8384104)=799200976
          16: r(block#1+8384104)=928071242 w(block#1+8384104)=933071242
          21: r(block#1+8384096)=75555 r(block#1+8384104)=933071242
          -: free(block#1)
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
          53: req(lock) racq(lock)
          54: racq(lock)
          46: fork(T1)
          47: r(memory#1) join(T1)
          56: rrel(lock)
          57: rrel(lock)
          59: req(lock) acq(lock)
          60: w(x)=1
          46: fork(T2)
          47: r(memory#1) join(T2)
          62: req(lock)
          63: rel(lock)
          14: r(memory#2)=516390076 w(memory#2)=521390076
          19: r(memory#3)=1794810523 r(memory#2)=521390076
          66: racq(lock)
          67: rrel(lock)
          68: acq(lock)
          69: rel(lock)
          14: r(memory#2)=642367959 w(memory#2)=647367959
          19: r(memory#3)=75556 r(memory#2)=647367959
          71: racq(lock)
          72: rrel(lock)
          73: acq(lock)
          74: rel(lock)
          75: acq(lock)
          76: rel(lock)
        T1
          -: alloc(block#1)
          14: r(block#1+8384120)=487110405 w(block#1+8384120)=492110405
          19: r(block#1+8384112)=1794810523 r(block#1+8384120)=492110405
          25: req(lock) racq(lock)
          26: r(x)=0
          27: rrel(lock)
          14: r(block#1+8384120)=618166302 w(block#1+8384120)=623166302
          19: r(block#1+8384112)=75556 r(block#1+8384120)=623166302
          -: free(block#1)
        T2
          -: alloc(block#2)
          14: r(block#2+8384120)=506129269 w(block#2+8384120)=511129269
          19: r(block#2+8384112)=1794810523 r(block#2+8384120)=511129269
          14: r(block#2+8384120)=637185035 w(block#2+8384120)=642185035
          19: r(block#2+8384112)=75556 r(block#2+8384120)=642185035
          -: free(block#2)
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
          16: r(memory#1)=564144821 w(memory#1)=569144821
          21: r(memory#2)=1794810587 r(memory#1)=569144821
          47: rel(m) wait(c) timeout(c) acq(m)
          16: r(memory#1)=700159956 w(memory#1)=705159956
          21: r(memory#2)=75620 r(memory#1)=705159956
          49: rel(m) wait(c) timeout(c) acq(m)
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
          61: r(memory#3) join(T1)
          62: r(stage)=6
        T1
          -: alloc(block#1)
          26: req(m) acq(m)
          27: w(stage)=1
          28: notify(back)
          29: r(stage)=1 rel(m) wait(c) wake(c) acq(m) r(stage)=2
          30: w(stage)=3
          31: notify(back)
          16: r(block#1+8384104)=586260417 w(block#1+8384104)=60586260417
          17: r(block#1+8384096)=1794810587 w(block#1+8384096)=1794810647 w(block#1+8384104)=586260417
          21: r(block#1+8384096)=1794810647 r(block#1+8384104)=586260417
          33: r(stage)=3 rel(m) wait(c) wake(c) acq(m) r(stage)=4
          34: w(stage)=5
          35: notifyall(back)
          16: r(block#1+8384104)=712246443 w(block#1+8384104)=60712246443
          17: r(block#1+8384096)=75620 w(block#1+8384096)=75680 w(block#1+8384104)=712246443
          21: r(block#1+8384096)=75680 r(block#1+8384104)=712246443
          37: r(stage)=5 rel(m) wait(c) wake(c) acq(m) r(stage)=6
          38: rel(m)
          -: free(block#1)
    "#]],
    );
}

#[test]
fn barriers_semaphores_and_what_is_done_once_are_seen() {
    check(
        "meetings.c",
        expect![[r#"
        main
          25: r(once_count)=0 w(once_count)=1
          49: aw.release(control)
          50: fork(T1)
          51: arrive(barrier) depart(barrier)
          53: take(empty)
          54: w(box)=1
          55: post(full)
          53: take(empty)
          54: w(box)=2
          55: post(full)
          53: take(empty)
          54: w(box)=3
          55: post(full)
          57: arrive(barrier) depart(barrier)
          58: r(sum)=6 r(once_count)=1
          59: r(memory#1) join(T1)
        T1
          -: alloc(block#1)
          17: r(block#1+8384072)=231921603 w(block#1+8384072)=236921603
          22: r(block#1+8384064)=1794810520 r(block#1+8384072)=236921603
          29: ar.acquire(control)
          30: r(block#1+8386096)=11
          31: r(block#1+8386096)=110
          17: r(block#1+8384072)=362975868 w(block#1+8384072)=367975868
          22: r(block#1+8384064)=75553 r(block#1+8384072)=367975868
          33: r(block#1+8386096)=110
          34: arrive(barrier) depart(barrier)
          36: take(full)
          37: r(sum)=0 r(box)=1 w(sum)=1
          38: post(empty)
          36: take(full)
          37: r(sum)=1 r(box)=2 w(sum)=3
          38: post(empty)
          36: take(full)
          37: r(sum)=3 r(box)=3 w(sum)=6
          38: post(empty)
          40: arrive(barrier) depart(barrier)
          -: free(block#1)
    "#]],
    );
}

#[test]
fn threads_of_the_c_standard_are_seen() {
    check(
        "c11.c",
        expect![[r#"
        main
          48: w(memory#1)=0 w(memory#2)=1000000
          11: r(once_count)=0 w(once_count)=1
          55: aw.release(flag)
          56: req(timed) acq(timed)
          57: req(plain) acq(plain)
          16: r(memory#3)=597944646 w(memory#3)=602944646
          21: r(memory#4)=1794810580 r(memory#3)=602944646
          59: rel(plain) wait(c) timeout(c) acq(plain)
          60: fork(T1)
          61: r(ready)=0 rel(plain) wait(c) wake(c) acq(plain) r(ready)=1
          62: rel(plain)
          63: rel(timed)
          64: r(memory#5) join(T1)
          65: req(recursive) acq(recursive)
          66: req(recursive) acq(recursive)
          67: acq(recursive)
          68: rel(recursive)
          69: rel(recursive)
          70: rel(recursive)
          71: fork(T2)
          72: r(memory#5)
          73: req(plain) acq(plain)
          74: r(ready)=1 rel(plain) wait(c) wake(c) acq(plain) r(ready)=2
          75: rel(plain)
          78: r(x)=1 r(once_count)=1 r(memory#7+4)=42
        T1
          -: alloc(block#1)
          16: r(block#1+8384120)=618610330 w(block#1+8384120)=623610330
          21: r(block#1+8384112)=1794810580 r(block#1+8384120)=623610330
          27: ar.acquire(flag)
          30: req(plain) acq(plain)
          31: w(ready)=1
          32: notify(c)
          33: rel(plain)
          34: r(x)=0 w(x)=1
          -: free(block#1)
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
          24: ar.acquire(guard_variable_for_shared_value()::value)=0
          19: r(attempts)=0 w(attempts)=1
          runtime_error+0x82: r(memory#1+4) r(memory#2) w(block#2+24)
          52: r(block#1+128) r({vtable(std::runtime_error)}+32)
          ~runtime_error+0x63: free(block#2)
          53: free(block#1)
          24: ar.acquire(guard_variable_for_shared_value()::value)=0
          19: r(attempts)=1 w(attempts)=2
          13: w(shared_value()::value)=7
          24: aw.release(guard_variable_for_shared_value()::value)=1
          54: r(shared_value()::value)=7
          55: w(memory#4)=3940912407 w(memory#4+4)=32764 w(memory#5) w(memory#6) r(once_count)=0 w(once_count)=1 aw.release(flag) w(memory#5)=0 w(memory#6)=0
          57: req(shared) acq(shared)
          58: w(x)=1
          59: rel(shared)
          60: w(memory#7)=0 w(block#3) w(block#3+8) w(memory#8)
          _M_start_thread+0x19: fork(T1)
          60: r(memory#8)=0
          62: w(memory#9) w(memory#10)=0 req(m) acq(m) w(memory#10)=1
          63: r(ready)=0 rel(m) wait(c) wake(c) acq(m) r(ready)=1
          64: w(memory#4)=75619 w(memory#4+4)=0 w(memory#11)=721200457 r(memory#9) rel(m) wait(c) timeout(c) acq(m)
          65: r(memory#10)=1 r(memory#10)=1 r(memory#9) rel(m) w(memory#10)=0
          join+0x17: join(T1)
          68: req(nested) acq(nested)
          69: req(nested) acq(nested)
          70: w(memory#4)=0 r(memory#4)=0 req(m) acq(m) acq(timed) w(memory#4)=4294967295
          71: rel(m) rel(timed) rel(nested) rel(nested)
          72: w(memory#4)=75619 w(memory#4+4)=0 w(memory#11)=726291039 acq(timed)
          73: rel(timed)
          74: w(block#5+8)=1 w(block#5+12)=1 w(block#5) w(block#5+24)=0 w(block#5+32)=0 w(block#5+36)=0 w(block#5+40)=0 w(block#5+48)=0 w(block#5+56)=0 w(block#5+16) w(block#6) w(block#6+20)=0 w(block#5+64) w(memory#12)=0 w(block#7) w(block#7+8) w(memory#13)
          _M_start_thread+0x19: fork(T2)
          74: r(memory#13)=0 r(block#5+48)=0 w(block#5+48)=0 r(memory#12) r(__libc_single_threaded@GLIBC_2.32)=0 arw.acqrel(block#5+8)=2 arw(block#5+36)=1 r(__libc_single_threaded@GLIBC_2.32)=0 arw.acqrel(block#5+8)=1
          75: r(once_count)=1 r(block#5+16) r(memory#14) w(memory#15) w(memory#16) w(memory#17) w(memory#5) w(memory#6) r(memory#5) r(memory#17) r(memory#16) r(memory#15)
          join+0x17: join(T2)
          75: aw.release(block#5+56) w(memory#5)=0 w(memory#6)=0 ar.acquire(block#5+32)=1 r(block#5+24) r(block#6+8)=0 r(block#6+16)=42 r(__libc_single_threaded@GLIBC_2.32)=0 arw.acqrel(block#5+8)=0 r(block#5) r(memory#18) r(block#5+48)=0 r(block#5+64)=0 w(block#5+16) r(block#5+48)=0 w(block#5+16) r(block#5+24) r(block#6) r(memory#19) r(block#6) r(memory#20) r(block#6+20)=1 free(block#6) r(__libc_single_threaded@GLIBC_2.32)=0 arw.acqrel(block#5+12)=0 r(block#5) r(memory#21) free(block#5)
          77: r(memory#7)=0
        T1
          -: alloc(block#4)
          38: w(block#4+8384128) w(block#4+8386216) w(block#4+8386208) ar.acquire(flag) w(block#4+8386216)=0 w(block#4+8386208)=0
          40: req(m) acq(m)
          41: w(ready)=1
          42: notify(c)
          43: rel(m)
          44: req(shared) racq(shared)
          24: ar.acquire(guard_variable_for_shared_value()::value)=1
          45: r(shared_value()::value)=7 r(x)=1
          46: rrel(shared)
          -: free(block#4)
        T2
          -: alloc(block#8)
          74: r(x)=1
          -: free(block#8)
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
          45: r(memory#1) join(T1)
          46: ar.relaxed(a8)=200
          47: ar.acquire(a16)=4
          48: ar(a32)=1
          49: ar.acquire(plain)=4294967295 ar(a64)=9
        T1
          -: alloc(block#1)
          15: w(block#1+8384156)=77
          16: w(block#1+8384144)=3
          17: arw.relaxed(a8)=2
          18: arw.acquire(a16)=1
          19: arw.release(a32)=15
          20: arw.acqrel(a64)=2
          21: arw(a64)=3
          22: arw(plain)=4294967295
          23: ar.acquire(a32)=15
          25: r(block#1+8384156)=15
          26: arw.release(a32)=1
          28: arw(a64)=9
          29: arw(a16)=4
          30: arw.acquire(taken)=1
          31: fence(release)
          32: aw.release(a8)=200
          -: free(block#1)
    "#]],
    );
}

#[test]
fn memory_is_told_apart_by_lifetime() {
    check(
        "memory.c",
        expect![[r#"
        main
          46: alloc(block#1)
          48: w(memory#1+4)=5
          50: w(bits)=5
          51: w(block#1)=1
          41: fork(T1)
          42: r(memory#2) join(T1)
          53: r(block#1+4)=2
          54: free(block#1) alloc(block#3)
          55: w(block#3)=10
          41: fork(T2)
          42: r(memory#2) join(T2)
          57: r(block#3+4)=11
          58: free(block#3)
          59: alloc(block#5)
          60: w(block#5)=20
          41: fork(T3)
          42: r(memory#2) join(T3)
          62: r(block#5+4)=21
          63: free(block#5)
          64: alloc(block#7)
          65: w(block#7)=30
          41: fork(T4)
          42: r(memory#2) join(T4)
          67: r(block#7+4)=31
          68: free(block#7)
          69: r(odd+5) r(odd+8) r(odd+1) r(bits)=77 r(bits)=77
          70: r(memory#1+4)=5
        T1
          -: alloc(block#2)
          28: r(block#2+8386236)=0 w(block#2+8386236)=1
          29: r(block#1)=1 w(block#1+4)=2
          30: r(text) r(text+8) r(text+16) r(text+24) w(copied) w(copied+1) w(copied+8) w(copied+16) w(copied+17) w(copied+24)
          31: r(copied) r(copied+1) r(copied+8) w(copied+1) w(copied+8) w(copied+16)
          32: w(text) w(text+8) w(text+16) w(text+24) w(text+32) w(text+40) w(text+48) w(text+56)
          33: w(bits)=77
          34: r(odd+1) w(odd+1)
          35: r(odd+5) r(odd+8) w(odd+5) w(odd+8)
          -: free(block#2)
        T2
          -: alloc(block#4)
          28: r(block#4+8386236)=0 w(block#4+8386236)=1
          29: r(block#3)=10 w(block#3+4)=11
          30: r(text) r(text+8) r(text+16) r(text+24) w(copied) w(copied+1) w(copied+8) w(copied+16) w(copied+17) w(copied+24)
          31: r(copied) r(copied+1) r(copied+8) w(copied+1) w(copied+8) w(copied+16)
          32: w(text) w(text+8) w(text+16) w(text+24) w(text+32) w(text+40) w(text+48) w(text+56)
          33: w(bits)=77
          34: r(odd+1) w(odd+1)
          35: r(odd+5) r(odd+8) w(odd+5) w(odd+8)
          -: free(block#4)
        T3
          -: alloc(block#6)
          28: r(block#6+8386236)=0 w(block#6+8386236)=1
          29: r(block#5)=20 w(block#5+4)=21
          30: r(text) r(text+8) r(text+16) r(text+24) w(copied) w(copied+1) w(copied+8) w(copied+16) w(copied+17) w(copied+24)
          31: r(copied) r(copied+1) r(copied+8) w(copied+1) w(copied+8) w(copied+16)
          32: w(text) w(text+8) w(text+16) w(text+24) w(text+32) w(text+40) w(text+48) w(text+56)
          33: w(bits)=77
          34: r(odd+1) w(odd+1)
          35: r(odd+5) r(odd+8) w(odd+5) w(odd+8)
          -: free(block#6)
        T4
          -: alloc(block#8)
          28: r(block#8+8386236)=0 w(block#8+8386236)=1
          29: r(block#7)=30 w(block#7+4)=31
          30: r(text) r(text+8) r(text+16) r(text+24) w(copied) w(copied+1) w(copied+8) w(copied+16) w(copied+17) w(copied+24)
          31: r(copied) r(copied+1) r(copied+8) w(copied+1) w(copied+8) w(copied+16)
          32: w(text) w(text+8) w(text+16) w(text+24) w(text+32) w(text+40) w(text+48) w(text+56)
          33: w(bits)=77
          34: r(odd+1) w(odd+1)
          35: r(odd+5) r(odd+8) w(odd+5) w(odd+8)
          -: free(block#8)
    "#]],
    );
}

#[test]
fn threads_end_in_every_way() {
    check(
        "lives.c",
        expect![[r#"
        T1
          24: r(key)=1
          25: w(x)=1
          14: r(one.0)=1 r(destroyed)=0 w(destroyed)=1
        main
          77: fork(T1)
          78: r(memory#1) join(T1)
          79: r(memory#3)=3
          60: fork(T2)
          61: take(waits)
          62: r(memory#4)
          63: r(memory#4) join(T2)
          64: r(memory#5)=-1
          65: req(m) acq(m)
          66: r(x)=1 w(x)=2
          67: rel(m)
          60: fork(T3)
          61: take(waits)
          62: r(memory#4)
          63: r(memory#4) join(T3)
          64: r(memory#5)=-1
          65: req(m) acq(m)
          66: r(x)=2 w(x)=3
          67: rel(m)
          85: fork(T4)
          86: r(memory#1)
          87: take(done)
          85: fork(T5)
          87: take(done)
          85: fork(T6)
          86: r(memory#1)
          87: take(done)
          85: fork(T7)
          87: take(done)
          89: r(destroyed)=1 r(cleaned)=2 r(x)=39
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
    let Some((_, recorded)) = recorded("mutexes.c") else { return };
    // Two calls of `pthread_mutex_unlock` fail, as the program expects.
    let left_out = recorded.said.lines().filter(|line| line.contains("left out"));
    let left_out: Vec<&str> = left_out.collect();
    let expected = "reweave: left out 2 that cannot have happened: \
                    release of a lock that its thread does not hold";
    assert_eq!(left_out, [expected]);
}

#[test]
fn sixteen_bytes_are_two_accesses() {
    if !has("gcc") {
        return;
    }
    let folder = Workshop::with(&["wide.c"]);
    folder.build("wide.c", "gcc", &["-O1", "-mcx16"]);
    let recorded = folder.record(&[], &["wide"]);
    recorded.must_be_whole();
    let by_thread = recorded.by_thread();
    for expected in [
        "12: arw(a)=8 arw(a+8)=6",
        "13: ar(a)=8 ar(a+8)=6",
        "14: r(b)=0 r(b+8)=0 w(b)",
        "24: r(a)=8 r(a+8)=6",
    ] {
        assert!(by_thread.contains(expected), "{expected}: {by_thread}");
    }
}

#[test]
fn locks_made_of_futexes_keep_what_they_protect_apart() {
    let Some((folder, recorded)) = recorded("futexes.c") else { return };
    recorded.must_be_whole();
    let count = |is: fn(Op) -> bool| recorded.trace.events().filter(|it| is(it.1.op)).count();
    assert_eq!(count(|op| matches!(op, Op::Begin(_))), 300);
    assert_eq!(count(|op| matches!(op, Op::End(_))), 300);
    assert_eq!(recorded.behaviour.printed, "300\n");
    let found = folder.findings();
    assert!(!found.iter().any(|kind| kind == "race" || kind == "deadlock"), "{found:?}");
}

/// Builds and records one program that uses everything, in one way of linking.
#[track_caller]
fn check_mixed(name: &str, arguments: &[&str], compiler: &str, options: &[&str]) {
    let folder = Workshop::with(&[name]);
    let (stem, _) = name.split_once('.').expect("a source has an extension");
    folder.build_plain(name, compiler, "plain", &[]);
    folder.build(name, compiler, options);
    let expected = folder.run("plain", arguments);
    assert_eq!(folder.run(stem, arguments), expected, "{compiler} {options:?}");
    for mode in ["serial", "free"] {
        let recorded = folder.record(&["--mode", mode], &[&[stem], arguments].concat());
        assert_eq!(recorded.behaviour, expected, "{compiler} {options:?} {mode}");
        recorded.must_be_whole();
        assert_eq!(folder.findings(), [] as [&str; 0], "{compiler} {options:?} {mode}");
    }
}

#[track_caller]
fn check_mixed_in_all_ways(name: &str, arguments: &[&str], compiler: &str) {
    for level in ["-O0", "-O2"] {
        check_mixed(name, arguments, compiler, &[level]);
        check_mixed(name, arguments, compiler, &["--runtime", "static", level]);
        check_mixed(name, arguments, compiler, &[level, "-static"]);
    }
}

#[test]
fn a_program_that_uses_everything_is_clean_however_it_is_built() {
    for compiler in compilers("c") {
        check_mixed_in_all_ways("contended.c", &["9"], compiler);
    }
}

#[test]
fn so_is_one_in_cpp() {
    for compiler in compilers("cpp") {
        check_mixed_in_all_ways("standard.cpp", &[], compiler);
    }
}
