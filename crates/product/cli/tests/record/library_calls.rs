//! What functions of the C library read and write in the program's memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::harness::{Recorded, Workshop, compilers};

/// The bytes that the thread T1 reads and writes of each variable `r_name` and `w_name`.
fn bytes_by_name(recorded: &Recorded) -> String {
    let names = recorded.trace.names();
    let mut bytes: BTreeMap<(&str, char, char), Vec<u64>> = BTreeMap::new();
    for (_, event) in recorded.trace.events() {
        let Some(var) = event.op.var() else { continue };
        let (base, offset) =
            names.vars.name(var).split_once('+').unwrap_or((names.vars.name(var), "0"));
        let Some((side @ ("r" | "w"), name)) = base.split_once('_') else { continue };
        if names.threads.name(event.thread) != "T1" {
            continue;
        }
        let how = if event.op.is_write() { 'w' } else { 'r' };
        let key = (name, side.chars().next().expect("one letter"), how);
        bytes.entry(key).or_default().push(offset.parse().expect("an offset in bytes"));
    }
    let mut text = String::new();
    let mut last = "";
    for ((name, side, how), mut places) in bytes {
        places.sort_unstable();
        places.dedup();
        if name != last {
            let line_end = if last.is_empty() { "" } else { "\n" };
            write!(text, "{line_end}{name}:").expect("text can be written");
            last = name;
        }
        let stretches = places.chunk_by(|first, second| first + 1 == *second);
        let spelled: Vec<String> = stretches
            .map(|stretch| format!("{}..{}", stretch[0], stretch[stretch.len() - 1] + 1))
            .collect();
        write!(text, " {how}({side} {})", spelled.join(" ")).expect("text can be written");
    }
    text + "\n"
}

/// Which bytes of which argument each function reads and writes.
fn expected() -> Expect {
    expect![[r#"
        asprintf: r(r 0..6) w(w 0..8)
        clock_getres: w(w 0..16)
        ctime_r: r(r 0..8) w(w 0..26)
        dprintf: r(r 0..6)
        fprintf: r(r 0..6)
        frexp: w(w 0..4)
        fscanf: w(w 0..2)
        fstat: w(w 0..144)
        getaddrinfo: r(r 0..3) w(w 0..8)
        getsockname: r(w 0..4)
        inet_aton: r(r 0..11)
        inet_ntop: r(r 0..4) w(w 0..12)
        inet_pton: r(r 0..8) w(w 0..4)
        ioctl: w(w 0..4)
        mbstowcs: r(r 0..4) w(w 0..16)
        memmem: r(r 0..4)
        memrchr: r(r 0..3)
        mktime: r(w 0..56) w(w 0..56)
        modff: w(w 0..4)
        prctl: w(w 0..16)
        preadv: w(w 0..8)
        printf: r(r 0..6) w(w 0..4)
        pthread_attr_getstacksize: w(w 0..8)
        pthread_getname_np: w(w 0..14)
        pthread_mutexattr_gettype: w(w 0..4)
        puts: r(r 0..6)
        pwritev: r(r 0..5)
        qsort: r(w 0..16) w(w 0..16)
        rand_r: r(w 0..4) w(w 0..4)
        readlink: r(r 0..5) w(w 0..3)
        realpath: r(r 0..2) w(w 0..2)
        regcomp: r(r 0..3) w(w 0..64)
        sem_getvalue: w(w 0..4)
        setitimer: r(r 0..32) w(w 0..32)
        sigaction: w(w 0..152)
        sigprocmask: r(r 0..8) w(w 0..8)
        snprintf: r(r 0..3) w(w 0..4)
        sscanf: r(r 0..11) w(w 0..4 8..11 16..25 28..32)
        stat: r(r 0..2) w(w 0..144)
        stat_fails: r(r 0..13)
        statfs: r(r 0..2) w(w 0..120)
        statvfs: r(r 0..2) w(w 0..112)
        strcasecmp: r(r 0..4)
        strcasestr: r(r 0..6)
        strchrnul: r(r 0..3)
        strcspn: r(r 0..3)
        strdup: r(r 0..6)
        strncasecmp: r(r 0..2)
        strndup: r(r 0..3)
        strnlen: r(r 0..3)
        strpbrk: r(r 0..6)
        strptime: r(r 0..3) w(w 0..56)
        strrchr: r(r 0..6)
        strspn: r(r 0..3)
        strstr: r(r 0..6)
        strtok: r(r 0..2)
        strtol: r(r 0..3) w(w 0..8)
        strxfrm: r(r 0..6) w(w 0..6)
        sysinfo: w(w 0..112)
        timerfd_settime: r(r 0..32) w(w 0..32)
        times: w(w 0..32)
        uname: w(w 0..390)
        unlink: r(r 0..5)
        vprintf: r(r 0..6)
        wcslen: r(r 0..12)
        wcstombs: w(w 0..4)
        xpg_strerror_r: w(w 0..26)
    "#]]
}

#[test]
fn what_the_c_library_reads_and_writes_is_the_programs_access() {
    let recorded_by = |compiler: &str| {
        let folder = Workshop::with(&["library_calls.c"]);
        folder.build("library_calls.c", compiler, &["-O1", "-fno-builtin"]);
        let recorded = folder.record_all(&[], &["library_calls"]);
        assert_eq!(recorded.behaviour.code, Some(0), "{}", recorded.said);
        recorded.must_be_whole();
        assert!(!recorded.said.contains("no recorded code"), "{}", recorded.said);
        bytes_by_name(&recorded)
    };
    let all: Vec<String> = compilers("c").into_iter().map(recorded_by).collect();
    let Some(first) = all.first() else { return };
    assert!(all.iter().all(|other| other == first), "{all:#?}");
    expected().assert_eq(first);
}
