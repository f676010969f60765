//! The built command, run as a user would run it, on files in a folder of its own.

mod bad_input;
mod book;
mod cc;
mod check;
mod config;
mod convert;
mod demo;
mod explain;
mod families;
mod fmt;
mod generate;
mod intervals;
mod machines;
mod manners;
mod ndseq;
mod options;
mod overwriting;
mod pages;
mod policy;
mod run;
mod states;
mod stats;
mod terminal;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder to run the command in.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("there is room for a folder"))
    }

    /// A folder that holds one file.
    pub(crate) fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let folder = Self::new();
        folder.put(name, content);
        folder
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("the folder can be written to");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names of what is in it, hidden files included.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder can be read");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("entries can be read").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reweave"));
        command.args(arguments).current_dir(self.0.path()).env_remove("CLICOLOR_FORCE");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran(self.command(arguments).output().expect("the command starts"))
    }

    /// Runs with `input` as standard input.
    pub(crate) fn run_with(&self, input: &[u8], arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let mut pipe = child.stdin.take().expect("its input is a pipe");
        // The command may stop reading early; that shows in how it ends.
        _ = pipe.write_all(input);
        drop(pipe);
        Ran(child.wait_with_output().expect("the command ends"))
    }
}

/// What became of a run.
pub(crate) struct Ran(pub(crate) Output);

impl Ran {
    pub(crate) fn code(&self) -> i32 {
        self.0.status.code().expect("it was not killed")
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).expect("output is UTF-8")
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).expect("messages are UTF-8")
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0.stdout
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.0.stdout).expect("output is JSON")
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{}", self.err());
        self
    }
}

/// Every command.
pub(crate) const COMMANDS: [&str; 23] = [
    "demo",
    "check",
    "races",
    "deadlocks",
    "atomicity",
    "determinism",
    "states",
    "intervals",
    "explain",
    "record",
    "confirm",
    "stats",
    "convert",
    "generate",
    "fmt",
    "cc",
    "c++",
    "run",
    "ndseq",
    "list",
    "completions",
    "man",
    "schema",
];

/// Every command below `states`.
pub(crate) const STATES_COMMANDS: [&str; 3] = ["count", "list", "sample"];

pub(crate) const RACE: &str = "T1|w(x)|a.c:1\nT2|w(x)|b.c:2\n";
pub(crate) const CLEAN: &str = "T1|acq(m)|1\nT1|w(x)|2\nT1|rel(m)|3\nT2|acq(m)|4\nT2|r(x)|5\n";

pub(crate) fn name_of(path: &Path) -> String {
    path.display().to_string()
}
