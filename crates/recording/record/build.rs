//! Builds the runtime from its sources, so that it travels inside the command.
//!
//! There are three products, each made by one call of the compiler that builds this crate: a shared
//! library, an object for dynamic executables that bring their own runtime, and an object for
//! static executables, where functions of the C library are wrapped by the linker. Optimisation
//! spans the core library too, which leaves objects that need the C library and nothing else.
//!
//! Where recording does not work (anything but Linux on x86-64 with the GNU C library) the products
//! are empty, and the commands say so.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SHARED: &str = "libreweave_rt.so";
const OBJECT: &str = "reweave_rt.o";
const STATIC_OBJECT: &str = "reweave_rt_static.o";
const WRAPPED: &str = "wrapped.txt";
const HEADER: &str = "reweave.h";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let sources = sources();
    println!("cargo:rerun-if-changed={}", sources.display());
    let out = PathBuf::from(variable("OUT_DIR"));
    copy(&sources.join("src").join(WRAPPED), &out.join(WRAPPED));
    copy(&sources.join("include").join(HEADER), &out.join(HEADER));
    if can_record() {
        build_shared(&sources, &out);
        build_object(&sources, &out, OBJECT, false);
        build_object(&sources, &out, STATIC_OBJECT, true);
    } else {
        for name in [SHARED, OBJECT, STATIC_OBJECT] {
            fs::write(out.join(name), []).expect("the output folder can be written to");
        }
    }
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name} for build scripts"))
}

/// The folder of the runtime's package: beside this one, under the name that the workspace or
/// `cargo vendor` gives it.
fn sources() -> PathBuf {
    let own = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let beside = own.parent().expect("a package lies in a folder");
    let version = env!("CARGO_PKG_VERSION");
    let vendored = format!("reweave-runtime-{version}");
    ["runtime", "reweave-runtime", &vendored]
        .map(|name| beside.join(name))
        .into_iter()
        .find(|folder| folder.join("src/lib.rs").is_file())
        .unwrap_or_else(|| panic!("no sources of the runtime beside {}", own.display()))
}

fn can_record() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
}

fn copy(from: &Path, to: &Path) {
    if let Err(error) = fs::copy(from, to) {
        panic!("{}: {error}", from.display());
    }
}

/// The compiler with what all products share.
fn compiler(sources: &Path) -> Command {
    let mut command = Command::new(variable("RUSTC"));
    // Parts are left in the current folder for a moment; another build must not find them there.
    command.current_dir(variable("OUT_DIR"));
    command.arg(sources.join("src/lib.rs"));
    command.args(["--edition", "2024", "--crate-name", "reweave_rt", "--cfg", "reweave_export"]);
    command.args(["--check-cfg", "cfg(reweave_export,reweave_static,test)"]);
    command.args(["-Copt-level=3", "-Cpanic=abort", "-Ccodegen-units=1", "-Clto=fat"]);
    command.args(["-Cdebuginfo=0", "-Crelocation-model=pic", "--cap-lints=warn"]);
    // Exceptions and cancellation of the program pass through the runtime.
    command.arg("-Cforce-unwind-tables=yes");
    command.arg("--target").arg(variable("TARGET"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("-Clinker=");
        option.push(linker);
        command.arg(option);
    }
    command
}

fn build_shared(sources: &Path, out: &Path) {
    let mut command = compiler(sources);
    command.args(["--crate-type", "cdylib", "-Cstrip=debuginfo"]);
    command.arg(format!("-Clink-arg=-Wl,-soname,{SHARED}"));
    // Named, so that the references carry the versions of the C library's symbols.
    command.arg("-Clink-arg=-lc");
    command.arg("-o").arg(out.join(SHARED));
    run(command, SHARED);
}

fn build_object(sources: &Path, out: &Path, name: &str, is_static: bool) {
    let mut command = compiler(sources);
    command.args(["--crate-type", "staticlib"]);
    if is_static {
        command.args(["--cfg", "reweave_static"]);
    }
    // The archive is not used, but only where there is one does optimisation reach the core library.
    let archive = out.join(name).with_extension("a");
    let mut emit = OsString::from("--emit=link=");
    emit.push(&archive);
    emit.push(",obj=");
    emit.push(out.join(name));
    command.arg(emit);
    run(command, name);
    _ = fs::remove_file(archive);
}

fn run(mut command: Command, product: &str) {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("cannot run {}: {error}", command.get_program().display()),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the runtime ({product}) does not build:\n{said}");
    for line in said.lines().filter(|line| line.starts_with("warning: ")) {
        println!("cargo:warning={product}: {line}");
    }
}
