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

impl RunStart {
    /// The first of its variables whose name no shell takes for one: what is typed before a command may then be a command
    /// of its own. Readers refuse such a trace.
    #[must_use]
    pub fn illegal_variable(&self) -> Option<&str> {
        let mut names = self.environment.iter().map(|(name, _)| &**name);
        names.find(|name| !is_variable_name(name))
    }
}

/// Whether a shell takes `name` for that of a variable.
///
/// ```
/// use reweave_trace::is_variable_name;
///
/// assert!(is_variable_name("LD_DEBUG2"));
/// assert!(!is_variable_name("2ND") && !is_variable_name("A=1; ls; B") && !is_variable_name(""));
/// ```
#[must_use]
pub fn is_variable_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let has_start = name.bytes().next().is_some_and(is_letter);
    has_start && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}
