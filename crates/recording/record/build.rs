//! Builds the runtime from its sources, so that it travels inside the command.
//!
//! There are three products: a shared library, an object for dynamic executables that bring their
//! own runtime, and an object for static executables, where the linker wraps functions of the C
//! library. The first two hold the same code and come from one call of the compiler that builds this
//! crate; the third comes from another, at the same time. Optimisation spans the core library too,
//! which leaves objects that need the C library and nothing else.
//!
//! Where recording does not work (anything but Linux on x86-64 with the GNU C library) the products
//! are empty, and the commands say so.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SHARED: &str = "libreweave_rt.so";
const OBJECT: &str = "reweave_rt.o";
const STATIC_OBJECT: &str = "reweave_rt_static.o";
/// What the compiler calls the archive that it makes beside each object.
const ARCHIVE: &str = "libreweave_rt.a";
const WRAPPED: &str = "wrapped.txt";
const HEADER: &str = "reweave.h";
/// A header that stands before one of GNU's C++ library.
const CXX_HEADER: &str = "c++/bits/c++config.h";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let sources = sources();
    println!("cargo:rerun-if-changed={}", sources.display());
    let out = PathBuf::from(variable("OUT_DIR"));
    copy(&sources.join("src").join(WRAPPED), &out.join(WRAPPED));
    fs::create_dir_all(out.join(CXX_HEADER).with_file_name(""))
        .expect("the output folder can be written to");
    for header in [HEADER, CXX_HEADER] {
        copy(&sources.join("include").join(header), &out.join(header));
    }
    if can_record() {
        let dynamic = start(dynamic_products(&sources, &out));
        let complete = start(static_product(&sources, &out));
        finish(dynamic, OBJECT);
        finish(complete, STATIC_OBJECT);
        for part in ["dynamic", "static"] {
            _ = fs::remove_file(out.join(part).join(ARCHIVE));
        }
        fs::rename(out.join("dynamic").join(SHARED), out.join(SHARED))
            .expect("the compiler wrote the shared library");
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

/// The compiler with what all products share. It works in the folder `part` of its own, since it
/// leaves files beside its products for a moment that another call must not find.
fn compiler(sources: &Path, out: &Path, part: &str, object: &str) -> Command {
    let folder = out.join(part);
    fs::create_dir_all(&folder).expect("the output folder can be written to");
    let mut command = Command::new(variable("RUSTC"));
    command.current_dir(&folder);
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
    // The archive is not used, but only where there is one does optimisation reach the core library.
    command.args(["--crate-type", "staticlib"]);
    let mut emit = OsString::from("--emit=link,obj=");
    emit.push(out.join(object));
    command.arg(emit).arg("--out-dir").arg(folder);
    command
}

fn dynamic_products(sources: &Path, out: &Path) -> Command {
    let mut command = compiler(sources, out, "dynamic", OBJECT);
    command.args(["--crate-type", "cdylib", "-Cstrip=debuginfo"]);
    command.arg(format!("-Clink-arg=-Wl,-soname,{SHARED}"));
    // Named, so that the references carry the versions of the C library's symbols.
    command.arg("-Clink-arg=-lc");
    command
}

fn static_product(sources: &Path, out: &Path) -> Command {
    let mut command = compiler(sources, out, "static", STATIC_OBJECT);
    command.args(["--cfg", "reweave_static"]);
    command
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    match command.spawn() {
        Ok(child) => child,
        Err(error) => panic!("cannot run {}: {error}", command.get_program().display()),
    }
}

fn finish(child: Child, product: &str) {
    let output = child.wait_with_output().expect("the compiler was started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the runtime ({product}) does not build:\n{said}");
    for line in said.lines().filter(|line| line.starts_with("warning: ")) {
        println!("cargo:warning={product}: {line}");
    }
}
