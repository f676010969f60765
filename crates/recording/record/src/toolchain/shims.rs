//! Shims around functions of Rust's standard library that lock without being instrumented.
//!
//! The standard library comes compiled. Where a lock is contended it leaves the inlined code, which
//! is instrumented, for code that is not. The linker redirects calls of such functions to shims,
//! which call them and log what they did; which functions those are and what is logged is for
//! [`crate::lift::shims`] to say. The linker sees a call only if the compiler left it there: with
//! link-time optimisation it does not, so that is off in all programs that are recorded.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use xxhash_rust::xxh3::xxh3_64;

use super::{ToolchainError, answer};
use crate::lift::shims::{Shims, find_library, library_symbols, shims};
use crate::unpack::{in_cache, write};

/// The compiler driver that assembles shims and that Rust's compiler links with.
const DRIVER: &str = "cc";

/// The shims for the standard library for `target` of the toolchain at `sysroot`. Where there is no
/// such library, all functions are missing.
#[must_use]
pub fn std_shims(sysroot: &Path, target: &str) -> Shims {
    let library = find_library(sysroot, target);
    let symbols = library.and_then(|library| library_symbols(&library).ok()).unwrap_or_default();
    shims(symbols.iter().map(String::as_str))
}

/// What to tell the user of what `shims` could not be made for.
pub(super) fn warning(shims: &Shims) -> Option<String> {
    let names: Vec<&str> = shims.missing.iter().map(|name| short(name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "this standard library has no {}: where these order threads it is not seen, and races \
             may be reported that are none; `--build-std` sees everything",
            names.join(", ")
        )
    })
}

/// The last two parts of the name of a function.
fn short(name: &str) -> &str {
    name.rmatch_indices("::").nth(1).map_or(name, |(place, _)| &name[place + 2..])
}

/// Whether there is what programs are linked with.
///
/// # Errors
/// If there is no C compiler.
pub(super) fn check_driver() -> Result<(), ToolchainError> {
    let mut command = Command::new(DRIVER);
    command.arg("--version");
    answer(command).map(|_| ()).map_err(|_| {
        let said = "Rust programs are linked by a C compiler, and there is no `cc`: install gcc or \
                    clang";
        ToolchainError::Usage(said.to_owned())
    })
}

/// The linker driver's arguments that put `shims` into a program; none for no shims.
pub(super) fn link_arguments(shims: &Shims) -> Result<Vec<OsString>, ToolchainError> {
    if shims.wraps.is_empty() {
        return Ok(Vec::new());
    }
    let mut arguments = vec![assembled(&shims.assembly)?.into_os_string()];
    arguments.extend(shims.wraps.iter().map(|name| format!("-Wl,--wrap={name}").into()));
    Ok(arguments)
}

/// The shims as an object in the cache, whose name says what it was made of.
fn assembled(assembly: &str) -> Result<PathBuf, ToolchainError> {
    let name = format!("shims-{:016x}", xxh3_64(assembly.as_bytes()));
    let source = in_cache(|cache| {
        let source = cache.join(&name).with_extension("s");
        write(&source, assembly.as_bytes()).map(|()| source)
    })?;
    let object = source.with_extension("o");
    if object.is_file() {
        return Ok(object);
    }
    // Assembled under a name of its own and then renamed: others may be doing the same.
    let own = source.with_extension(format!("{}.o", std::process::id()));
    let mut command = Command::new(DRIVER);
    command.arg("-c").arg(&source).arg("-o").arg(&own);
    let output = answer(command)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(ToolchainError::Failed { name: DRIVER.to_owned(), said });
    }
    fs::rename(&own, &object)
        .map_err(|error| ToolchainError::Start { name: object.display().to_string(), error })?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_shortly() {
        let missing = vec!["std::sys::sync::once::futex::Once::call", "main"];
        let said = warning(&Shims { missing, ..Shims::default() }).unwrap();
        assert!(said.contains("has no Once::call, main:"), "{said}");
        assert!(said.contains("--build-std"), "{said}");
        assert_eq!(warning(&Shims::default()), None);
    }

    #[test]
    fn a_toolchain_without_a_library_lacks_everything() {
        let folder = tempfile::tempdir().unwrap();
        let shims = std_shims(folder.path(), "x86_64-unknown-linux-gnu");
        assert!(shims.wraps.is_empty() && !shims.missing.is_empty());
        assert_eq!(link_arguments(&shims).unwrap(), Vec::<OsString>::new());
    }
}
