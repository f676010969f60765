//! How the recorded run was started: by which tool, from which command line, with which seed.
//!
//! An optional part of a trace, written by the recorder, so that a run can be made again. Traces are
//! passed around: of the environment it holds only the variables that the user named. Who reads it
//! must not run what it says on its word alone, since a trace may come from anyone.

/// How a run was started. What is not known is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStart {
    /// The tool that recorded it, with its version: `reweave 0.1.0`.
    pub tool: String,
    /// When, in seconds since 1970.
    pub time: Option<u64>,
    /// The system that it ran on: its name, release and processor, but not the name of the machine.
    pub system: String,
    /// The folder that it was started in.
    pub folder: String,
    /// The file of the program.
    pub program: String,
    /// What the program's linker called this build of it.
    pub build_id: String,
    /// The program and its arguments, as they were given.
    pub command: Vec<String>,
    /// The environment variables that the user named, with their values.
    pub environment: Vec<(String, String)>,
    /// How its threads ran: `serial` or `free`.
    pub mode: String,
    /// The seed of its context switches.
    pub seed: Option<u64>,
    /// The other options of the recorder that make a run what it is.
    pub options: Vec<String>,
}
