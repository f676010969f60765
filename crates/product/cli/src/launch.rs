//! A program to start, and where: as the command line gives it, or as a trace holds it.
//!
//! A trace may come from anyone, so the command in it is run unasked only if this user recorded it
//! before and the program is still the same build. Otherwise the user is asked, and a script must say
//! `--yes`.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use reweave_record::attach::{Attachment, attach};
use reweave_record::install::install;
use reweave_record::remembered::{is_remembered, is_same_build};
use reweave_record::symbols::build_id_of;
use reweave_report::{RecordedCommand, quoted};
use reweave_trace::{RunStart, Trace};

use crate::exit::say;

/// Which program to run, by the command line.
#[derive(Debug, clap::Args)]
pub struct Program {
    /// Run the command that the trace holds without asking
    ///
    /// A command is run unasked if you recorded it on this machine and the program is still the same build.
    #[arg(long)]
    yes: bool,
    /// Run the program in this folder [default: the current folder]
    ///
    /// The command that the trace holds runs in the folder that it was recorded in.
    #[arg(long, value_name = "DIR", requires = "command")]
    directory: Option<PathBuf>,
    /// The recorded program, from the same build, and its arguments
    ///
    /// By default the command that the trace holds.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Program {
    /// Whether the command line says nothing of it.
    pub const fn is_unnamed(&self) -> bool {
        self.command.is_empty() && !self.yes
    }

    /// The program to run, for `trace`, which was read from `path`.
    pub fn launch(&self, trace: &Trace, path: &Path) -> anyhow::Result<Launch> {
        if self.command.is_empty() {
            return Launch::recorded(trace, path, self.yes);
        }
        Ok(Launch::new(&self.command, self.directory.as_deref()))
    }
}

/// A program to start.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The program and its arguments.
    words: Vec<OsString>,
    /// The file to start, if it is known; else the first word says which.
    file: Option<PathBuf>,
    /// The folder to start it in; none for the current one.
    folder: Option<PathBuf>,
    /// Variables of its environment besides those of ours.
    environment: Vec<(String, String)>,
}

impl Launch {
    /// Starts `words` in `folder`, or in the current folder.
    pub fn new(words: &[OsString], folder: Option<&Path>) -> Self {
        let folder = folder.map(Path::to_owned);
        Self { words: words.to_vec(), folder, ..Self::default() }
    }

    /// The file of the program, if it can be found.
    pub fn file(&self) -> Option<PathBuf> {
        located(&self.program()?)
    }

    /// The program, by a name that does not depend on the folder it is started in.
    fn program(&self) -> Option<OsString> {
        if let Some(file) = &self.file {
            return Some(file.clone().into());
        }
        let program = Path::new(self.words.first()?);
        // A name alone is looked for in the usual folders.
        let folder = self.folder.as_ref().filter(|_| program.components().count() > 1);
        Some(folder.map_or_else(|| program.as_os_str().to_owned(), |it| it.join(program).into()))
    }

    /// The command that runs it with the recorder in it, and how that got there.
    pub fn command(&self) -> anyhow::Result<(Command, Attachment)> {
        let (program, arguments) = self.words.split_first().context("expected a program to run")?;
        refuse_other_files(program, arguments)?;
        let is_here =
            || Path::new(program).components().count() == 1 && Path::new(program).is_file();
        anyhow::ensure!(
            self.file().is_some() || !is_here(),
            "cannot run `{0}`: not found in PATH; did you mean `./{0}`?",
            program.display()
        );
        let mut command = Command::new(self.program().unwrap_or_default());
        command.arg0(program).args(arguments).envs(self.environment.iter().map(|(k, v)| (k, v)));
        if let Some(folder) = &self.folder {
            let name = folder.display();
            anyhow::ensure!(
                folder.is_dir(),
                "cannot run `{}` in {name}: no such folder",
                program.display()
            );
            command.current_dir(folder);
        }
        let attachment = attach(&mut command, &install()?);
        anyhow::ensure!(
            attachment != Attachment::None,
            "`{}` is statically linked without the recorder; build it with `reweave cc -static`",
            program.display()
        );
        anyhow::ensure!(
            attachment != Attachment::Occupied,
            "`{}` contains the runtime of ThreadSanitizer; build it with `reweave cc`, or link the sanitizer as a \
             shared library (the default of gcc)",
            program.display()
        );
        Ok((command, attachment))
    }

    /// The folder that it starts in.
    pub fn base(&self) -> io::Result<PathBuf> {
        self.folder.as_ref().map_or_else(std::env::current_dir, |it| it.canonicalize())
    }

    /// A description of this launch, of a run that is recorded now.
    pub fn run_start(&self, keep_env: &[String]) -> RunStart {
        let file = self.file();
        let words = self.words.iter().map(|word| word.to_str().map(str::to_owned));
        let text = |path: PathBuf| path.into_os_string().into_string().unwrap_or_default();
        let variable = |name: &String| Some((name.clone(), std::env::var(name).ok()?));
        RunStart {
            folder: self.base().ok().map(text).unwrap_or_default(),
            build_id: file.as_deref().and_then(build_id_of).unwrap_or_default(),
            program: file.map(text).unwrap_or_default(),
            // What is no text cannot be typed again.
            command: words.collect::<Option<_>>().unwrap_or_default(),
            environment: keep_env.iter().filter_map(variable).collect(),
            ..RunStart::default()
        }
    }

    /// The command that `trace`, read from `path`, was recorded from, if it may be run: it is this user's own
    /// and its program the same, or `is_allowed`, or the user says so now.
    fn recorded(trace: &Trace, path: &Path, is_allowed: bool) -> anyhow::Result<Self> {
        let start = trace.run_start().filter(|start| !start.command.is_empty());
        let start = start.with_context(|| {
            let name = path.display();
            format!("{name} does not hold the command that it was recorded from; type it after `--`: {} -- ./program", typed())
        })?;
        let doubt = doubt(start);
        let launch = Self {
            words: start.command.iter().map(OsString::from).collect(),
            // What was examined is started, whatever the name of the program leads to now.
            file: doubt.is_none().then(|| PathBuf::from(&start.program)),
            folder: (!start.folder.is_empty()).then(|| PathBuf::from(&start.folder)),
            environment: start.environment.clone(),
        };
        say(&format!("reweave: recorded command: {}", line(start)));
        let Some(doubt) = doubt.filter(|_| !is_allowed) else { return Ok(launch) };
        anyhow::ensure!(
            io::stdin().is_terminal() && io::stderr().is_terminal(),
            "{doubt}; to run it, add `--yes`, or type the command: {}",
            typed_words(start)
        );
        say(&format!("reweave: {doubt}"));
        anyhow::ensure!(is_agreed()?, "the command was not run");
        Ok(launch)
    }
}

/// What was typed, with the command of `start`.
fn typed_words(start: &RunStart) -> String {
    let here = crate::input::current_folder().unwrap_or_default();
    RecordedCommand::new(start, Some(&here)).after(&typed())
}

/// What was typed before the command, to be typed again with one.
fn typed() -> String {
    let words = std::env::args().skip(1).take_while(|word| word != "--");
    let words = words.map(|word| format!(" {}", quoted(&word)));
    format!("reweave{}", words.collect::<String>())
}

/// Whether this user has recorded the command that `trace` holds.
pub fn is_own(trace: &Trace) -> bool {
    trace.run_start().is_some_and(is_remembered)
}

/// Why the command of `start` is not run unasked.
fn doubt(start: &RunStart) -> Option<String> {
    if !is_remembered(start) {
        return Some("this command was not recorded by you on this machine".to_owned());
    }
    let program = quoted(&start.program);
    (!is_same_build(start)).then(|| format!("{program} is not the build that was recorded"))
}

/// Asks on the terminal whether to go on.
fn is_agreed() -> anyhow::Result<bool> {
    ask("reweave: run it? [y/N] ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes `question` without ending its line. If that fails, there is nowhere to report it.
fn ask(question: &str) {
    let mut out = io::stderr().lock();
    _ = write!(out, "{question}").and_then(|()| out.flush());
}

/// The command of `start` as one types it, with its variables and its folder.
fn line(start: &RunStart) -> String {
    let place = if start.folder.is_empty() {
        String::new()
    } else {
        format!(" (in {})", quoted(&start.folder))
    };
    let RecordedCommand { variables, words, .. } = RecordedCommand::new(start, None);
    format!("{variables}{words}{place}")
}

/// Rejects what is easily mistaken for a program: its source, or the trace of its run.
fn refuse_other_files(program: &OsStr, arguments: &[OsString]) -> anyhow::Result<()> {
    let path = Path::new(program);
    let end = path.extension().and_then(OsStr::to_str).unwrap_or("");
    let stem = path.file_stem().unwrap_or_default().display().to_string();
    let name = path.display().to_string();
    let rest: String =
        arguments.iter().map(|word| format!(" {}", quoted(&word.display().to_string()))).collect();
    let (file, output) = (quoted(&name), quoted(&stem));
    let run = format!("reweave record -- {}{rest}", quoted(&format!("./{stem}")));
    let (what, advice) = match end {
        _ if !path.is_file() => return Ok(()),
        "c" => ("source code", format!("reweave cc -g -pthread {file} -o {output} && {run}")),
        "cc" | "cpp" | "cxx" | "C" | "c++" => {
            ("source code", format!("reweave c++ -g -pthread {file} -o {output} && {run}"))
        }
        "rs" | "toml" => ("source code", "cargo reweave run".to_owned()),
        "rw" => (
            "a program of the reweave language",
            format!("reweave run {file} -o {}", quoted(&format!("{stem}.rwt"))),
        ),
        "rwt" => ("a trace", format!("reweave check {file}")),
        _ => return Ok(()),
    };
    anyhow::bail!("cannot run `{name}`: it is {what}; try: {advice}")
}

/// The file that `program` runs, as a shell finds it.
pub fn located(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    let found = if path.components().count() > 1 {
        Some(path.to_owned())
    } else {
        let folders = std::env::var_os("PATH")?;
        let mut files = std::env::split_paths(&folders).map(|folder| folder.join(path));
        files.find(|file| file.is_file())
    };
    found?.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_from_the_folder_that_it_is_started_in() {
        let name = |word: &str| {
            let launch = Launch::new(&[OsString::from(word)], Some(Path::new("/srv/bank")));
            launch.program().unwrap()
        };
        assert_eq!(name("./bank"), "/srv/bank/./bank");
        assert_eq!(name("/usr/bin/bank"), "/usr/bin/bank");
        assert_eq!(name("bank"), "bank");
    }

    #[test]
    fn what_was_examined_is_started_by_the_name_that_was_typed() {
        let words = vec![OsString::from("bank")];
        let file = Some(PathBuf::from("/srv/bin/bank"));
        let launch = Launch { words, file, ..Launch::default() };
        assert_eq!(launch.program().unwrap(), "/srv/bin/bank");
    }

    #[test]
    fn the_recorded_command_is_shown_as_one_types_it() {
        let start = RunStart {
            command: ["./bank", "a b"].map(str::to_owned).into(),
            environment: vec![("MODE".to_owned(), "x y".to_owned())],
            folder: "/srv/my bank".to_owned(),
            ..RunStart::default()
        };
        assert_eq!(line(&start), "MODE='x y' ./bank 'a b' (in '/srv/my bank')");
    }
}
