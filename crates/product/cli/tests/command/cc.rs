//! `cc`, `c++`, `cargo`: programs are built with the compilers that are there, and run.
//!
//! What is checked of a program is what recording rests on: it is instrumented, the runtime stands
//! before the C library, and it behaves as the plain program does.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::Folder;

const THREADS: &str = "\
#include <pthread.h>
#include <stdio.h>
int x;
void *f(void *p) { x++; return p; }
int main(void) {
    pthread_t t;
    if (pthread_create(&t, 0, f, 0)) return 1;
    pthread_join(t, 0);
    printf(\"%d\\n\", x);
    return 7;
}
";

const THREADS_CPP: &str = "\
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <reweave.h>
int x;
void f() { reweave::atomic_block block(\"f\"); x++; }
int main() {
    std::thread t(f);
    t.join();
    try { throw std::runtime_error(\"caught\"); }
    catch (const std::exception &e) { std::printf(\"%s %d\\n\", e.what(), x); }
    return 7;
}
";

/// Whether a tool is there; if not, or if this system cannot record, says why a test is skipped.
#[allow(clippy::print_stderr, reason = "whoever runs the tests must see what was not tried")]
fn has(tool: &str) -> bool {
    let is_supported = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
    let mut command = Command::new(tool);
    let starts = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match (is_supported, starts) {
        (false, _) => eprintln!("skipped: recording needs Linux on x86-64"),
        (true, Err(error)) => eprintln!("skipped: {tool}: {error}"),
        (true, Ok(_)) => return true,
    }
    false
}

/// The compilers that are there, each with our command for it.
fn compilers(names: [(&'static str, &'static str); 2]) -> Vec<(&'static str, &'static str)> {
    names.into_iter().filter(|(_, compiler)| has(compiler)).collect()
}

const C: [(&str, &str); 2] = [("cc", "gcc"), ("cc", "clang")];
const CPP: [(&str, &str); 2] = [("c++", "g++"), ("c++", "clang++")];

impl Folder {
    fn build(&self, words: &[&str]) -> Output {
        let mut command = self.command(words);
        command.env("REWEAVE_CACHE", self.path("cache")).env_remove("REWEAVE_RUNTIME");
        command.output().expect("the command starts")
    }

    /// Runs our command, which must succeed and say nothing.
    #[track_caller]
    fn must_build(&self, words: &[&str]) {
        let output = self.build(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        assert!(output.stdout.is_empty() && said.is_empty(), "{words:?}: {said}");
    }

    /// Runs a program that was built, which must print `expected` and end with 7.
    #[track_caller]
    fn must_run(&self, program: &str, expected: &str) {
        let run = Command::new(self.path(program)).current_dir(self.path("")).output();
        let output = run.expect("the program starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((said.as_str(), output.status.code()), (expected, Some(7)), "{complaint}");
    }

    /// What a tool of the linker's says of a file.
    fn ask(&self, tool: &str, words: &[&str], file: &str) -> String {
        let asked = Command::new(tool).args(words).arg(self.path(file)).output();
        String::from_utf8_lossy(&asked.expect("binutils come with compilers").stdout).into_owned()
    }

    /// The libraries that a file asks for, in the order in which the loader searches them.
    fn needed(&self, file: &str) -> Vec<String> {
        let said = self.ask("readelf", &["-dW"], file);
        let names = said.lines().filter(|line| line.contains("(NEEDED)"));
        names
            .filter_map(|line| Some(line.split_once('[')?.1.trim_end_matches(']').into()))
            .collect()
    }

    fn is_instrumented(&self, file: &str) -> bool {
        self.ask("nm", &[], file).contains(" __tsan_write4")
    }

    fn defines(&self, file: &str, symbol: &str) -> bool {
        self.ask("nm", &[], file).lines().any(|line| line.ends_with(&format!(" T {symbol}")))
    }
}

/// Builds and runs one program in the ways in which executables are linked.
#[track_caller]
fn check_executables(command: &str, compiler: &str, source: &str, expected: &str) {
    let extension = if command == "cc" { "c" } else { "cpp" };
    let file = format!("a.{extension}");
    let folder = Folder::with(&file, source);
    for level in ["-O0", "-O2"] {
        let call = |before: &[&str], rest: &[&str]| {
            folder.must_build(&[&[command], before, &[compiler, level], rest].concat());
        };
        call(&[], &[&file, "-pthread", "-o", "at-once"]);
        call(&[], &["-c", &file, "-o", "a.o"]);
        call(&[], &["a.o", "-pthread", "-o", "apart"]);
        for program in ["at-once", "apart"] {
            let needed = folder.needed(program);
            assert_eq!(needed.first().map(String::as_str), Some("libreweave_rt.so"), "{needed:?}");
            assert!(!needed.iter().any(|name| name.contains("tsan")), "{needed:?}");
            assert!(folder.is_instrumented(program));
            folder.must_run(program, expected);
        }
        call(&["--runtime", "static"], &[&file, "-pthread", "-o", "inside"]);
        assert!(!folder.needed("inside").contains(&"libreweave_rt.so".to_owned()));
        assert!(folder.defines("inside", "pthread_create"));
        folder.must_run("inside", expected);
        for kind in ["-static", "-static-pie"] {
            call(&[], &[kind, &file, "-pthread", "-o", "complete"]);
            assert_eq!(folder.needed("complete"), [] as [String; 0]);
            assert!(folder.defines("complete", "__wrap_pthread_create"));
            folder.must_run("complete", expected);
        }
    }
}

#[test]
fn programs_in_c_are_built_in_every_way() {
    for (command, compiler) in compilers(C) {
        check_executables(command, compiler, THREADS, "1\n");
    }
}

#[test]
fn programs_in_cpp_are_built_in_every_way() {
    for (command, compiler) in compilers(CPP) {
        check_executables(command, compiler, THREADS_CPP, "caught 1\n");
    }
}

#[test]
fn libraries_leave_the_runtime_to_the_executable() {
    let program = "\
#include <dlfcn.h>
int main(void) {
    void *library = dlopen(\"./libx.so\", RTLD_NOW);
    if (!library) return 1;
    return ((int (*)(void))dlsym(library, \"bump\"))();
}
";
    for (command, compiler) in compilers(C) {
        let folder = Folder::with("a.c", program);
        folder.put("x.c", "int y = 6; int bump(void) { return ++y; }");
        for runtime in ["dynamic", "static"] {
            let call = |rest: &[&str]| {
                folder.must_build(&[&[command, "--runtime", runtime, compiler], rest].concat());
            };
            call(&["a.c", "-ldl", "-o", "a"]);
            for closed in [None, Some("-Wl,-z,defs")] {
                let mut words = vec!["-shared", "-fPIC", "x.c", "-o", "libx.so"];
                words.extend(closed);
                call(&words);
                let has_runtime = folder.needed("libx.so").contains(&"libreweave_rt.so".to_owned());
                assert_eq!(has_runtime, runtime == "dynamic" && closed.is_some());
                assert!(folder.is_instrumented("libx.so"));
                folder.must_run("a", "");
            }
        }
    }
}

#[test]
fn what_the_user_says_of_sanitizers_is_heard() {
    for (command, compiler) in compilers(C) {
        let folder = Folder::with("a.c", THREADS);
        folder.must_build(&[command, compiler, "-fno-sanitize=thread", "-c", "a.c"]);
        assert!(!folder.is_instrumented("a.o"));
        folder.must_build(&[command, compiler, "-fsanitize=thread", "a.c", "-o", "a"]);
        assert!(!folder.needed("a").iter().any(|name| name.contains("tsan")));
        folder.must_run("a", "1\n");
        let refused = folder.build(&[command, compiler, "-fsanitize=address", "a.c"]);
        assert_eq!(refused.status.code(), Some(2));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("-fsanitize=address cannot be combined"), "{said}");
    }
}

#[test]
fn unusual_calls_are_the_compilers_own() {
    for (command, compiler) in compilers(C) {
        let folder = Folder::with("a.c", THREADS);
        folder.put("words", "-static 'a.c'\n-o \"a\"");
        folder.must_build(&[command, compiler, "@words"]);
        assert!(folder.defines("a", "__wrap_pthread_create"));
        folder.put("b.c", "int other;");
        folder.must_build(&[command, compiler, "-c", "a.c", "b.c"]);
        folder.must_build(&[command, compiler, "-r", "-nostdlib", "a.o", "b.o", "-o", "both.o"]);
        folder.must_build(&[command, compiler, "both.o", "-o", "a"]);
        folder.must_run("a", "1\n");
        folder.must_build(&[command, compiler, "-flto", "-O2", "a.c", "-o", "a"]);
        assert!(folder.is_instrumented("a"));
        folder.must_run("a", "1\n");
        for words in [&["--version"][..], &["-print-search-dirs"], &["-E", "a.c"], &["-M", "a.c"]] {
            let ours = folder.build(&[&[command, compiler], words].concat());
            assert!(ours.status.success() && !ours.stdout.is_empty(), "{words:?}");
        }
        for words in [&[][..], &["missing.c"], &["-c", "words"], &["-unknown-option", "a.c"]] {
            let mut plain = Command::new(compiler);
            let plain = plain.args(words).current_dir(folder.path("")).output().unwrap();
            let ours = folder.build(&[&[command, compiler], words].concat());
            assert_eq!(ours.status.code(), plain.status.code(), "{words:?}");
        }
    }
}

#[test]
fn the_command_may_lie_in_an_unusual_place() {
    for (command, compiler) in compilers(C) {
        let folder = Folder::with("a.c", THREADS);
        std::fs::create_dir(folder.path("odd, place")).unwrap();
        let own = folder.path("odd, place").join("reweave");
        std::fs::copy(env!("CARGO_BIN_EXE_reweave"), &own).unwrap();
        let mut call = Command::new(own);
        call.args([command, compiler, "a.c", "-o", "a"]).current_dir(folder.path(""));
        let output = call.env("REWEAVE_CACHE", folder.path("cache")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder.must_run("a", "1\n");
    }
}

#[test]
fn make_and_cmake_build_with_it() {
    if !has("cc") || !has("make") {
        return;
    }
    let folder = Folder::with("a.c", THREADS);
    folder.put("Makefile", "a: a.o\n\t$(CC) $(LDFLAGS) a.o -o a\n");
    let ours = format!("CC={} cc", env!("CARGO_BIN_EXE_reweave"));
    let in_folder = |tool: &str, words: &[&str]| {
        let mut command = Command::new(tool);
        command.args(words).current_dir(folder.path(""));
        command.env("REWEAVE_CACHE", folder.path("cache")).env_remove("MAKEFLAGS");
        let output = command.output().expect("the tool starts");
        assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
    };
    in_folder("make", &[&ours]);
    folder.must_run("a", "1\n");
    assert!(folder.is_instrumented("a"));
    if !has("cmake") {
        return;
    }
    let project = "cmake_minimum_required(VERSION 3.10)\nproject(demo C)\n\
                   find_package(Threads REQUIRED)\nadd_executable(demo a.c)\n\
                   target_link_libraries(demo Threads::Threads)\n";
    folder.put("CMakeLists.txt", project);
    let compiler = ours.trim_start_matches("CC=").replace(' ', ";");
    in_folder("cmake", &["-S", ".", "-B", "made", &format!("-DCMAKE_C_COMPILER={compiler}")]);
    in_folder("cmake", &["--build", "made"]);
    folder.must_run("made/demo", "1\n");
    assert!(folder.is_instrumented("made/demo"));
}

#[test]
fn a_compiler_that_is_none_is_refused() {
    let folder = Folder::with("a.c", THREADS);
    let mut command = folder.command(&["cc", "a.c"]);
    command.env("REWEAVE_CACHE", folder.path("cache"));
    let said = |value: &str, command: &mut Command| {
        let output = command.env("REWEAVE_CC", value).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said("no-such-compiler", &mut command).contains("cannot run `no-such-compiler`"));
    assert!(said("true", &mut command).contains("`true` is neither gcc nor clang"));
}

#[test]
fn a_cargo_project_is_built_beside_its_ordinary_builds() {
    if !has("cargo") || !has("cc") {
        return;
    }
    let folder = Folder::with("Cargo.toml", {
        "[package]\nname = \"bank\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n\
         [profile.release]\nstrip = true\n"
    });
    for name in ["src", ".cargo"] {
        std::fs::create_dir(folder.path(name)).unwrap();
    }
    folder.put(".cargo/config.toml", "[build]\nrustflags = [\"--cfg\", \"of_the_user\"]\n");
    folder.put("src/main.rs", {
        "static mut X: i32 = 6;\n#[cfg(of_the_user)]\nfn main() {\n    \
         std::thread::spawn(|| unsafe { X += 1 }).join().unwrap();\n    \
         std::process::exit(unsafe { X });\n}\n"
    });
    for profile in ["debug", "release"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-reweave"));
        command.args(["reweave", "build"]).args((profile == "release").then_some("--release"));
        command.current_dir(folder.path("")).env("REWEAVE_CACHE", folder.path("cache"));
        for name in ["CARGO_TARGET_DIR", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
            command.env_remove(name);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let program = format!("target/reweave/x86_64-unknown-linux-gnu/{profile}/bank");
        assert!(Path::new(&folder.path(&program)).is_file());
        assert_eq!(folder.needed(&program)[0], "libreweave_rt.so");
        assert!(folder.is_instrumented(&program));
        let sections = folder.ask("readelf", &["-SW"], &program);
        assert!(sections.contains(".debug_line"), "{sections}");
        folder.must_run(&program, "");
    }
}
