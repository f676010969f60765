//! Shims around functions of Rust's standard library that lock without being instrumented.
//!
//! The standard library comes compiled. Where a lock is contended it leaves the inlined code, which
//! is instrumented, for code that is not. The linker redirects calls of such functions to shims,
//! which call them and then log what they did.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use xxhash_rust::xxh3::xxh3_64;

use super::{ToolchainError, answer};
use crate::unpack::{in_cache, write};

/// Functions to be redirected, and what they are redirected to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shims {
    /// The symbols that the linker wraps.
    pub wraps: Vec<String>,
    /// The shims, for the assembler.
    pub assembly: String,
}

/// The shims for the standard library of the compiler that calls itself `version`. There are none:
/// contended locks of std are seen with `--build-std` only.
#[must_use]
pub fn std_shims(_version: &str) -> Shims {
    Shims::default()
}

impl Shims {
    /// The linker driver's arguments that put the shims into a program; none for no shims.
    pub(super) fn link_arguments(&self) -> Result<Vec<OsString>, ToolchainError> {
        if self.wraps.is_empty() {
            return Ok(Vec::new());
        }
        let mut arguments = vec![self.assembled()?.into_os_string()];
        arguments.extend(self.wraps.iter().map(|name| format!("-Wl,--wrap={name}").into()));
        Ok(arguments)
    }

    /// The shims as an object in the cache, whose name says what it was made of.
    fn assembled(&self) -> Result<PathBuf, ToolchainError> {
        let name = format!("shims-{:016x}", xxh3_64(self.assembly.as_bytes()));
        let source = in_cache(|cache| {
            let source = cache.join(&name).with_extension("s");
            write(&source, self.assembly.as_bytes()).map(|()| source)
        })?;
        let object = source.with_extension("o");
        if object.is_file() {
            return Ok(object);
        }
        // Assembled under a name of its own and then renamed: others may be doing the same.
        let own = source.with_extension(format!("{}.o", std::process::id()));
        let mut command = Command::new("cc");
        command.arg("-c").arg(&source).arg("-o").arg(&own);
        let output = answer(command)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(ToolchainError::Failed { name: "cc".to_owned(), said });
        }
        fs::rename(&own, &object)
            .map_err(|error| ToolchainError::Start { name: object.display().to_string(), error })?;
        Ok(object)
    }
}
