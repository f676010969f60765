//! Whether addresses of real programs get the names that their sources give them.
//!
//! Each program prints code and data addresses of its own, then its map. Where there is no compiler
//! the tests say so and pass.

#![allow(clippy::unwrap_used, reason = "what fails here is the test")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says why")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_record::symbols::{Owner, Symbols};

const C_PROGRAM: &str = r#"#include <stdio.h>
#define HERE(name) do { void *p; __asm__ volatile("lea 0(%%rip),%0" : "=r"(p)); printf("code " name " %p\n", p); } while (0)
static int quiet;
int total = 3;
static char zeroed[100000];
static inline __attribute__((always_inline)) void inner(void) {
    HERE("inner");
}
static inline __attribute__((always_inline)) void middle(void) {
    inner();
}
__attribute__((noinline)) void outer(void) {
    static int calls;
    calls++;
    middle();
    HERE("outer");
    printf("data calls %p\ndata total %p\ndata quiet %p\ndata zeroed %p\n", &calls, &total, &quiet, zeroed + 99999);
}
int main(void) {
    outer();
    HERE("main");
    printf("data past %p\n", zeroed + 100000 + 64);
    FILE *maps = fopen("/proc/self/maps", "r");
    int c;
    puts("maps");
    while ((c = fgetc(maps)) != EOF) putchar(c);
    return quiet;
}
"#;

struct Run {
    folder: tempfile::TempDir,
    symbols: Symbols,
    codes: Vec<(String, u64)>,
    data: Vec<(String, u64)>,
}

impl Run {
    fn code(&self, name: &str) -> u64 {
        self.codes.iter().find(|(known, _)| known == name).unwrap().1
    }

    fn data(&mut self, name: &str) -> Option<(String, u64)> {
        let address = self.data.iter().find(|(known, _)| known == name).unwrap().1;
        self.symbols.data(address)
    }

    fn check_site(&mut self, code: &str, stack: &[&str], expected: Expect) {
        let stack: Vec<u64> = stack.iter().map(|name| self.code(name)).collect();
        let code = self.code(code);
        expected.assert_eq(&self.symbols.site(code, &stack));
    }
}

/// Whether `compiler` is there; says so if not.
fn has(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        println!("skipped: no {compiler} on this machine");
    }
    found
}

fn compile(folder: &Path, compiler: &str, arguments: &[&str]) -> bool {
    let output = Command::new(compiler).args(arguments).current_dir(folder).output().unwrap();
    if !output.status.success() {
        println!("skipped: {compiler} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

/// Writes `files`, compiles with each of `commands` and runs `./program`.
fn run(files: &[(&str, &str)], commands: &[(&str, &[&str])]) -> Option<Run> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    for (compiler, arguments) in commands {
        (has(compiler) && compile(folder.path(), compiler, arguments)).then_some(())?;
    }
    Some(start(folder))
}

fn start(folder: tempfile::TempDir) -> Run {
    let program = folder.path().join("program");
    let output = Command::new(&program).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (addresses, maps) = text.split_once("maps\n").unwrap();
    let mut symbols = Symbols::new(&folder.path().canonicalize().unwrap());
    symbols.add_map(0, maps);
    let named = |kind: &str| {
        let lines = addresses.lines().filter_map(|line| line.strip_prefix(kind));
        let parsed = lines.map(|line| {
            let (name, address) = line.trim().split_once(' ').unwrap();
            (name.to_owned(), u64::from_str_radix(&address[2..], 16).unwrap())
        });
        parsed.collect()
    };
    Run { codes: named("code"), data: named("data"), folder, symbols }
}

fn run_c(flags: &[&str]) -> Option<Run> {
    let arguments = [flags, &["main.c", "-o", "program"]].concat();
    run(&[("main.c", C_PROGRAM)], &[("cc", &arguments)])
}

#[test]
fn inlined_functions_are_named_with_their_lines() {
    let ways: [&[&str]; 6] = [
        &["-O0", "-g"],
        &["-O2", "-g"],
        &["-O2", "-g", "-no-pie"],
        &["-O0", "-g", "-gdwarf-4", "-fPIE", "-pie"],
        &["-O2", "-g", "-static"],
        &["-O2", "-g", "-static-pie"],
    ];
    for flags in ways {
        let Some(mut run) = run_c(flags) else { continue };
        println!("{flags:?}");
        let frames = run.symbols.frames(run.code("inner")).to_vec();
        let names: Vec<&str> = frames.iter().map(|frame| frame.function.as_str()).collect();
        assert_eq!(names, ["inner", "middle", "outer"]);
        let location = run.symbols.location(run.code("main"));
        assert_eq!(location, "main.c:21");
        run.check_site(
            "inner",
            &["main"],
            expect![[r#"
                main.c:7
                inner (main.c:7)
                middle (main.c:10)
                outer (main.c:15)
                main (main.c:21)
                source#ba817634"#]],
        );
    }
}

#[test]
fn globals_are_named_also_local_and_zeroed_ones() {
    let ways: [&[&str]; 4] =
        [&["-O0"], &["-O2", "-no-pie"], &["-O1", "-static"], &["-O1", "-static-pie"]];
    for flags in ways {
        let Some(mut run) = run_c(flags) else { continue };
        println!("{flags:?}");
        assert_eq!(run.data("total"), Some(("total".to_owned(), 0)));
        assert_eq!(run.data("zeroed"), Some(("zeroed".to_owned(), 99999)));
        assert_eq!(run.data("quiet"), Some(("quiet".to_owned(), 0)));
        let (calls, offset) = run.data("calls").unwrap();
        assert!(calls.starts_with("calls.") && offset == 0, "{calls}");
        assert_ne!(run.data("past").map(|(name, _)| name).as_deref(), Some("zeroed"));
        assert_eq!(run.symbols.data(0x10), None);
    }
}

#[test]
fn without_debug_information_functions_and_offsets_remain() {
    let Some(mut run) = run_c(&["-O0"]) else { return };
    let location = run.symbols.location(run.code("main"));
    assert!(location.starts_with("main+0x"), "{location}");
    assert_eq!(run.symbols.frames(run.code("main"))[0].function, "main");

    let Some(mut run) = run_c(&["-O0", "-s"]) else { return };
    let location = run.symbols.location(run.code("main"));
    assert!(location.starts_with("program+0x"), "{location}");
    let (module, address) = run.symbols.origin(run.code("main")).unwrap();
    assert!(module.ends_with("/program"));
    assert_eq!(location, format!("program+{address:#x}"));
    let site = run.symbols.site(run.code("main"), &[run.code("outer")]);
    assert!(site.starts_with(&location) && site.contains("\nprogram+0x"), "{site}");
}

#[test]
fn origins_are_the_same_in_every_run_and_build_ids_are_known() {
    let Some(run) = run_c(&["-O0", "-g", "-Wl,--build-id=0x0123abcd"]) else { return };
    let (code, mut symbols) = (run.code("main"), run.symbols);
    let origin = symbols.origin(code).map(|(module, address)| (module.to_owned(), address));
    let (module, _) = origin.clone().unwrap();
    assert_eq!(symbols.build_id(&module), Some("0123abcd"));
    let mut again = start(run.folder);
    let code = again.code("main");
    let same = again.symbols.origin(code).map(|(module, address)| (module.to_owned(), address));
    assert_eq!(origin, same);
}

#[test]
fn a_file_that_is_gone_has_no_names() {
    let Some(mut run) = run_c(&["-O0", "-g"]) else { return };
    let program = run.folder.path().join("program").canonicalize().unwrap();
    fs::remove_file(&program).unwrap();
    let location = run.symbols.location(run.code("main"));
    assert!(location.starts_with("program+0x"), "{location}");
    assert!(run.symbols.data(run.data[0].1).is_none());
}

#[test]
fn the_map_that_holds_is_the_one_selected() {
    let mut symbols = Symbols::new(Path::new("/"));
    symbols.add_map(1, "1000-2000 r-xp 00000000 00:00 0 /no/such/one.so\n");
    symbols.add_map(2, "1000-2000 r-xp 00003000 00:00 0 /no/such/two words.so (deleted)\n");
    symbols.add_map(3, "1000-2000 r-xp 00000000 00:00 0 [vdso]\nnonsense\n2000-1000 r-xp 0 0 0\n");
    let mut locations = Vec::new();
    for number in 0..4 {
        symbols.select(number);
        locations.push(symbols.location(0x1234));
    }
    assert_eq!(locations, ["0x1234", "one.so+0x234", "two words.so+0x3234", "[vdso]+0x234"]);
    assert_eq!(symbols.origin(0x1234), Some(("[vdso]", 0x234)));
}

const CPP_PROGRAM: &str = r#"#include <cstdio>
#include <vector>
#define HERE(name) do { void *p; __asm__ volatile("lea 0(%%rip),%0" : "=r"(p)); std::printf("code " name " %p\n", p); } while (0)
namespace bank {
static std::vector<int> accounts;
template <typename T> struct Teller {
    __attribute__((noinline)) void work(T) { HERE("work"); }
    static long served;
};
template <typename T> long Teller<T>::served = 7;
}
extern "C" void *library_place(void);
extern "C" { extern int library_total; }
int main() {
    bank::Teller<int>().work(3);
    bank::accounts.push_back(1);
    auto closure = [](int) { HERE("closure"); };
    closure(1);
    std::printf("code library %p\n", library_place());
    std::printf("data accounts %p\ndata served %p\n", (void *)&bank::accounts, (void *)&bank::Teller<int>::served);
    FILE *maps = std::fopen("/proc/self/maps", "r");
    int c;
    std::puts("maps");
    while ((c = std::fgetc(maps)) != EOF) std::putchar(c);
}
"#;

const LIBRARY: &str = "void *library_place(void) {\n    return __builtin_return_address(0);\n}\n\
    static __attribute__((noinline)) void *place(void) {\n    return __builtin_return_address(0);\n}\n\
    void *library_inner(void) {\n    void *p = place();\n    __asm__ volatile(\"\");\n    return p;\n}\n";

#[test]
fn cpp_names_are_readable() {
    let flags = ["-g", "-O1", "main.cpp", "library.c", "-fpermissive", "-w", "-o", "program"];
    let files = [("main.cpp", CPP_PROGRAM), ("library.c", "")];
    let library = LIBRARY.replace("void *library_place", "extern \"C\" void *library_place");
    let files = [files[0], ("library.c", library.as_str())];
    let Some(mut run) = run(&files, &[("c++", &flags)]) else { return };
    run.check_site(
        "work",
        &["library"],
        expect![[r#"
            main.cpp:7
            bank::Teller<int>::work (main.cpp:7)
            main (main.cpp:19)
            source#35ecc1c3"#]],
    );
    assert_eq!(run.symbols.frames(run.code("work"))[0].function, "bank::Teller<int>::work");
    let frames = run.symbols.frames(run.code("closure"));
    assert!(frames.iter().any(|frame| frame.function == "main"), "{frames:?}");
    assert_eq!(run.data("accounts"), Some(("bank::accounts".to_owned(), 0)));
    assert_eq!(run.data("served"), Some(("bank::Teller<int>::served".to_owned(), 0)));
}

const LOADING: &str = r#"#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    void *library = dlopen("./liblibrary.so", RTLD_NOW);
    void *(*inner)(void) = (void *(*)(void))dlsym(library, "library_inner");
    if (!inner) return 1;
    printf("code inner %p\n", inner());
    FILE *maps = fopen("/proc/self/maps", "r");
    int c;
    puts("maps");
    while ((c = fgetc(maps)) != EOF) putchar(c);
}
"#;

#[test]
fn loaded_libraries_are_named() {
    let commands: [(&str, &[&str]); 2] = [
        ("cc", &["-g", "-O1", "-shared", "-fPIC", "library.c", "-o", "liblibrary.so"]),
        ("cc", &["-g", "main.c", "-o", "program", "-ldl"]),
    ];
    let Some(mut run) = run(&[("main.c", LOADING), ("library.c", LIBRARY)], &commands) else {
        return;
    };
    let frames = run.symbols.frames(run.code("inner"));
    assert_eq!(frames[0].function, "library_inner");
    assert_eq!(frames[0].place().as_deref(), Some("library.c:8"));
}

const RUST_PROGRAM: &str = r#"use std::sync::atomic::{AtomicU32, Ordering};
static COUNTER: AtomicU32 = AtomicU32::new(1);
#[inline(always)]
fn here() -> usize {
    let place: usize;
    unsafe { std::arch::asm!("lea {}, [rip]", out(reg) place) };
    place
}
struct Teller;
impl Teller {
    #[inline(never)]
    fn work(&self) {
        println!("code work {:#x}", here());
        let inner = (0..1).map(|_| here()).next();
        println!("code closure {:#x}", inner.unwrap());
    }
}
fn main() {
    Teller.work();
    COUNTER.fetch_add(1, Ordering::Relaxed);
    println!("data counter {:#x}", &COUNTER as *const _ as usize);
    println!("maps\n{}", std::fs::read_to_string("/proc/self/maps").unwrap());
}
"#;

#[test]
fn rust_names_are_readable_and_library_frames_stand_back() {
    for optimisation in ["0", "3"] {
        let level = format!("-Copt-level={optimisation}");
        let flags = ["-g", level.as_str(), "--edition=2021", "main.rs", "-o", "program"];
        let Some(mut run) = run(&[("main.rs", RUST_PROGRAM)], &[("rustc", &flags)]) else { return };
        let frames = run.symbols.frames(run.code("work")).to_vec();
        assert_eq!(frames[0].function, "main::here");
        assert_eq!(frames[0].place().as_deref(), Some("main.rs:6"));
        if optimisation == "3" {
            assert_eq!(frames[1].function, "main::Teller::work");
            let closure = run.symbols.frames(run.code("closure")).to_vec();
            println!("{closure:#?}");
            assert!(closure.iter().any(|frame| frame.owner == Owner::Library));
        }
        assert_eq!(run.data("counter"), Some(("main::COUNTER".to_owned(), 0)));
    }
}

/// A small object file with code, symbols and debug information.
fn small_library() -> Option<(tempfile::TempDir, PathBuf, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let source = "int total = 1; static int zero;\nint f(int x) { return x + total + zero++; }\n";
    fs::write(folder.path().join("a.c"), source).unwrap();
    let flags = ["-g", "-O1", "-shared", "-fPIC", "-nostdlib", "a.c", "-o", "a.so"];
    (has("cc") && compile(folder.path(), "cc", &flags)).then_some(())?;
    let path = folder.path().join("a.so");
    let bytes = fs::read(&path).unwrap();
    Some((folder, path, bytes))
}

#[test]
fn damaged_files_do_no_harm() {
    let Some((_folder, path, bytes)) = small_library() else { return };
    let page = |address: u64| address & !0xfff;
    let length = bytes.len();
    let strategy = (prop::collection::vec((0..length, any::<u8>()), 1..40), 0..=length);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..reweave_testkit::soak::config(200)
    });
    let outcome = runner.run(&strategy, |(flips, cut)| {
        let mut damaged = bytes.clone();
        for (place, mask) in flips {
            // Half of the flips hit the headers, where they do most.
            let place = if place % 2 == 0 { place % 1024 } else { place };
            damaged[place] ^= mask;
        }
        damaged.truncate(cut.max(length - cut));
        fs::remove_file(&path).ok();
        fs::write(&path, &damaged).unwrap();
        let name = path.to_string_lossy();
        let end = page(0x10000 + length as u64) + 0x1000;
        let map = format!(
            "10000-{end:x} r-xp 00000000 08:01 1 {name}\n{end:x}-40000 rw-p 00000000 00:00 0\n"
        );
        let mut symbols = Symbols::new(Path::new("/"));
        symbols.add_map(0, &map);
        for code in (0x10000..0x16000).step_by(97) {
            prop_assert!(!symbols.site(code, &[code + 5]).is_empty());
            symbols.data(code);
            symbols.origin(code);
        }
        symbols.build_id(&name);
        Ok(())
    });
    outcome.unwrap();
}
