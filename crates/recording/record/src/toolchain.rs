//! Building programs so that they can be recorded: `reweave cc`, `reweave c++`, `cargo reweave`.
//!
//! A program is recorded if its code was compiled with the compiler's thread sanitizer, whose hooks
//! the runtime provides, and if the runtime stands before the C library where the loader looks for
//! symbols. So each call of a compiler is changed in two places and otherwise left as it is:
//! compiling gets `-fsanitize=thread`, linking gets the runtime as its first input and never the
//! sanitizer's own.
//!
//! Which of the two a call does is never guessed from its arguments: gcc runs the steps through a
//! wrapper ([`wrapper`](wrap)), which sees the compiler and the linker one by one, and clang says
//! beforehand what it would run. What the user asks for wins: a file compiled with
//! `-fno-sanitize=thread` stays as it is.
//!
//! A call costs a look at the unpacked runtime and, for clang where it may link, one start of it.

mod arguments;
mod cargo;
mod compiler;
mod jobs;
mod link;
mod shims;
mod wrapper;

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Command;

pub use cargo::{CargoRequest, cargo, runner};
pub use compiler::{CompilerRequest, Language, compile};
pub use shims::std_shims;
pub use wrapper::wrap;

use crate::unpack::UnpackError;

/// The name under which the command runs a step of gcc.
pub const WRAPPER: &str = "__wrapper";

/// The name under which the command runs what cargo has built.
pub const RUNNER: &str = "__runner";

/// How the runtime gets into a dynamic executable. Static ones always have it inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// As a shared library in the cache.
    #[default]
    Dynamic,
    /// Inside the executable.
    Static,
}

impl Linkage {
    /// The linkage that is called `name`.
    #[must_use]
    pub fn from_name(name: &OsStr) -> Option<Self> {
        [Self::Dynamic, Self::Static].into_iter().find(|linkage| linkage.name() == name)
    }

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dynamic => "dynamic",
            Self::Static => "static",
        }
    }
}

/// A program to run in place of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables to set, or to remove.
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// What the user should know beforehand.
    pub warnings: Vec<String>,
}

impl Invocation {
    fn new(program: impl Into<OsString>, arguments: Vec<OsString>) -> Self {
        let (environment, warnings) = (Vec::new(), Vec::new());
        Self { program: program.into(), arguments, environment, warnings }
    }

    /// The command that does it.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

/// Why a program cannot be built for recording.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    /// There is no runtime to link with.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// A tool does not start.
    #[error("cannot run `{name}`: {error}")]
    Start {
        /// The tool.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// The compiler is none that we know how to drive.
    #[error("`{name}` is neither gcc nor clang; name one first, or set REWEAVE_CC or REWEAVE_CXX")]
    UnknownCompiler {
        /// The compiler.
        name: String,
    },
    /// Another sanitizer is asked for.
    #[error("-fsanitize={name} cannot be combined with recording; build without it")]
    Sanitizer {
        /// The sanitizer.
        name: String,
    },
    /// The arguments are not what the command understands.
    #[error("{0}")]
    Usage(String),
    /// A tool did what it should not.
    #[error("`{name}` failed: {said}")]
    Failed {
        /// The tool.
        name: String,
        /// What it said.
        said: String,
    },
}

/// What a tool answers, or that it does not start.
fn answer(mut command: Command) -> Result<std::process::Output, ToolchainError> {
    command.env("LC_ALL", "C").stdin(std::process::Stdio::null()).output().map_err(|error| {
        ToolchainError::Start { name: command.get_program().display().to_string(), error }
    })
}
