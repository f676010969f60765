//! What options are worth where the command line does not say: `reweave.toml`, and the environment.
//!
//! Both become defaults of the options themselves, so `--help` shows them, and rules between
//! options still speak of what was given on the command line. The environment goes before the file.
//! What stands at the top of the file, and the environment, counts for the commands that look for
//! faults in traces and know the value; a section counts for the command that it is called after.
//!
//! Commands that become another program are left alone: a file in some folder above must not change
//! what a compiler is told, nor its faults stop a build.

mod file;

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::exit::say;

/// The name of the file.
pub(crate) const FILE: &str = "reweave.toml";

/// Names the file, for those who cannot change the command line.
const VARIABLE: &str = "REWEAVE_CONFIG";

/// What goes before an option in the name of its variable.
const PREFIX: &str = "REWEAVE_";

/// Options that the environment and the top of the file may speak of.
const SHARED: [&str; 8] =
    ["baseline", "budget", "fail-on", "format", "limit", "source", "suppress", "threads"];

/// Options that say which findings count.
const GATING: [&str; 3] = ["baseline", "suppress", "fail-on"];

/// The commands that look for faults in traces.
const LOOKING: [&[&str]; 8] = [
    &["check"],
    &["races"],
    &["deadlocks"],
    &["atomicity"],
    &["determinism"],
    &["states", "find"],
    &["explain"],
    &["confirm"],
];

/// Commands that look again as `check` looked, so that they find what it found.
const LIKE_CHECK: [&str; 2] = ["explain", "confirm"];

/// Options that are for the command line alone.
const UNSET: [&str; 7] = ["help", "version", "config", "no-config", "output", "from", "confirm"];

/// Commands that no file changes: those that become another program, and those that print what we
/// are.
const ALONE: [&str; 7] = [
    "cc",
    "c++",
    "cargo",
    reweave_record::toolchain::WRAPPER,
    reweave_record::toolchain::RUNNER,
    "completions",
    "man",
];

/// `command` with the options that say which file to read.
pub(crate) fn with_own_options(command: Command) -> Command {
    let command = command.args(own_options());
    command.mut_subcommands(|command| match ALONE.contains(&command.get_name()) {
        true => command,
        false => command.args(own_options()).mut_subcommands(|command| command.args(own_options())),
    })
}

fn own_options() -> [Arg; 2] {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf));
    let no_config =
        Arg::new("no-config").long("no-config").action(ArgAction::SetTrue).conflicts_with("config");
    // In the long help alone, which manual pages are made of.
    [
        config.long_help(format!("Take defaults from this file, and not from the nearest {FILE}")),
        no_config.long_help("Take defaults from no file"),
    ]
    .map(|arg| arg.hide_short_help(true))
}

/// `command` with the defaults that the command line `words`, without the program's own name, asks
/// for.
///
/// # Errors
/// If the file, or a variable of the environment, does not say what an option can be worth.
pub(crate) fn configured(command: Command, words: &[OsString]) -> anyhow::Result<Configured> {
    let asked = Asked::new(words);
    if asked.is_alone {
        return Ok(Configured::from(command));
    }
    let path = match (asked.is_refused, asked.file) {
        (true, _) => None,
        (false, Some(path)) => Some(path),
        (false, None) => variable(VARIABLE).map(PathBuf::from).or_else(nearest_file),
    };
    let mut gating = Vec::new();
    let command = match &path {
        Some(path) => {
            let changed = file::apply(command.clone(), path)?;
            gating = changed_gates(&command, &changed);
            changed
        }
        None => command,
    };
    let mut options = SHARED.iter();
    let command = options.try_fold(command, |command, option| from_environment(command, option))?;
    Ok(Configured { command, file: path, gating })
}

/// The command with its defaults, and where they are from.
pub(crate) struct Configured {
    pub(crate) command: Command,
    /// The file that was read.
    file: Option<PathBuf>,
    /// The options that say which findings count, as far as the file speaks of them: the command,
    /// and the option.
    gating: Vec<(&'static [&'static str], &'static str)>,
}

impl From<Command> for Configured {
    fn from(command: Command) -> Self {
        Self { command, file: None, gating: Vec::new() }
    }
}

impl Configured {
    /// Says which file decides what counts, if one does: it may lie in a folder that nobody thinks
    /// of.
    pub(crate) fn tell(&self, matches: &ArgMatches) {
        let Some(file) = &self.file else { return };
        let mut path = Vec::new();
        let mut leaf = matches;
        while let Some((name, inner)) = leaf.subcommand() {
            path.push(name);
            leaf = inner;
        }
        let is_default = |option: &str| {
            let source = leaf.value_source(&option.replace('-', "_"));
            source == Some(ValueSource::DefaultValue) && variable(&variable_of(option)).is_none()
        };
        let here = self.gating.iter().filter(|(command, _)| *command == path);
        let options = here.map(|&(_, option)| option).filter(|option| is_default(option));
        let options: Vec<String> = options.map(|option| format!("`{option}`")).collect();
        if !options.is_empty() {
            let options = options.join(", ");
            say(&format!("reweave: {options} as {} says", file.display()));
        }
    }
}

/// Which of the options that say which findings count have other defaults in `after` than in
/// `before`, and of which commands.
fn changed_gates(
    before: &Command,
    after: &Command,
) -> Vec<(&'static [&'static str], &'static str)> {
    let defaults = |command: &Command, path: &[&str], option: &str| {
        let mut inner = command;
        for name in path {
            inner = inner.find_subcommand(name)?;
        }
        Some(find(inner, option)?.get_default_values().to_vec())
    };
    let all = LOOKING.into_iter().flat_map(|path| GATING.map(|option| (path, option)));
    let is_changed = |&(path, option): &(&[&str], &str)| {
        defaults(before, path, option) != defaults(after, path, option)
    };
    all.filter(is_changed).collect()
}

/// What the command line says about files, as far as must be known before it is understood.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    file: Option<PathBuf>,
    is_refused: bool,
    is_alone: bool,
}

impl Asked {
    fn new(words: &[OsString]) -> Self {
        let mut asked = Self::default();
        let mut has_command = false;
        let mut words = words.iter().take_while(|&word| word != "--");
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            match text.strip_prefix("--config") {
                Some("") => asked.file = words.next().map(PathBuf::from),
                Some(rest) if rest.starts_with('=') => asked.file = Some(rest[1..].into()),
                _ if text == "--no-config" => asked.is_refused = true,
                _ if !has_command && !text.starts_with('-') => {
                    has_command = true;
                    asked.is_alone = ALONE.contains(&&*text);
                    if asked.is_alone {
                        return asked;
                    }
                }
                _ => {}
            }
        }
        asked
    }
}

/// The nearest file in this folder or one above it, not beyond the root of a repository.
fn nearest_file() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let mut up = PathBuf::new();
    for folder in here.ancestors() {
        if folder.join(FILE).is_file() {
            return Some(up.join(FILE));
        }
        if folder.join(".git").exists() {
            return None;
        }
        up.push("..");
    }
    None
}

/// The variable of the environment, unless it is empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The variable of the environment that speaks of `option`.
fn variable_of(option: &str) -> String {
    format!("{PREFIX}{}", option.to_ascii_uppercase().replace('-', "_"))
}

/// `command` with what the environment says of `option`.
fn from_environment(command: Command, option: &str) -> anyhow::Result<Command> {
    let name = variable_of(option);
    let Some(value) = variable(&name) else { return Ok(command) };
    let values: Vec<OsString> = match option {
        "source" | "suppress" => std::env::split_paths(&value).map(OsString::from).collect(),
        _ => vec![value],
    };
    set_shared(command, option, &values, Path::new(""))
        .map_err(|reason| anyhow::anyhow!("the variable {name} of the environment: {reason}"))
}

/// `command` with `values` for `option` wherever faults are looked for and the values are known.
///
/// # Errors
/// If nothing knows the values: why not.
fn set_shared(
    command: Command,
    option: &str,
    values: &[OsString],
    folder: &Path,
) -> Result<Command, String> {
    let mut reason = None;
    let mut is_known = false;
    let mut command = command;
    for path in LOOKING {
        match set_at(command.clone(), path, option, values, folder) {
            Some(Ok(changed)) => {
                command = changed;
                is_known = true;
            }
            Some(Err(wrong)) => reason = reason.or(Some(wrong)),
            None => {}
        }
    }
    match (is_known, reason) {
        (false, Some(reason)) => Err(reason),
        _ => Ok(command),
    }
}

/// `command` with `values` for `option` of its subcommand at `path`; none if there is no such
/// option.
fn set_at(
    command: Command,
    path: &[&str],
    option: &str,
    values: &[OsString],
    folder: &Path,
) -> Option<Result<Command, String>> {
    let Some((first, rest)) = path.split_first() else {
        return set(command, option, values, folder);
    };
    let inner = command.find_subcommand(first)?.clone();
    let changed = set_at(inner, rest, option, values, folder)?;
    Some(changed.map(|changed| command.mut_subcommand(first, |_| changed)))
}

/// `command` with `values` for its `option`; none if it has no such option.
fn set(
    command: Command,
    option: &str,
    values: &[OsString],
    folder: &Path,
) -> Option<Result<Command, String>> {
    let arg = find(&command, option)?.clone();
    let is_path = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    let placed = |value: &OsString| match is_path {
        true => folder.join(value).into_os_string(),
        false => value.clone(),
    };
    let split = values.iter().flat_map(|value| match arg.get_value_delimiter() {
        Some(delimiter) => split(value, delimiter),
        None => vec![value.clone()],
    });
    let values: Vec<OsString> = split.map(|value| placed(&value)).collect();
    if let Err(reason) = try_out(&arg, option, &values) {
        return Some(Err(reason));
    }
    let id = arg.get_id().clone();
    let changed = command.mut_arg(id, |arg| arg.required(false).default_values(values));
    Some(Ok(changed))
}

fn split(value: &OsStr, delimiter: char) -> Vec<OsString> {
    let text = value.to_string_lossy();
    text.split(delimiter).map(|part| OsString::from(part.trim())).collect()
}

/// The argument of `command` that is the option called `option`.
fn find<'c>(command: &'c Command, option: &str) -> Option<&'c Arg> {
    let is_meant = |arg: &&Arg| arg.get_long() == Some(option);
    command.get_arguments().find(is_meant).filter(|_| !UNSET.contains(&option))
}

/// Whether `arg`, the option called `option`, can be worth `values`.
///
/// # Errors
/// If not: why not.
fn try_out(arg: &Arg, option: &str, values: &[OsString]) -> Result<(), String> {
    let is_list = matches!(arg.get_action(), ArgAction::Append);
    if !is_list && values.len() != 1 {
        return Err(format!("expected one value for `{option}`, found {}", values.len()));
    }
    let trial = Arg::new("value")
        .long(option.to_owned())
        .action(ArgAction::Append)
        .value_parser(arg.get_value_parser().clone());
    let trial = Command::new("reweave").no_binary_name(true).disable_help_flag(true).arg(trial);
    let words = values.iter().map(|value| {
        let mut word = OsString::from(format!("--{option}="));
        word.push(value);
        word
    });
    let tried = trial.try_get_matches_from(words);
    tried.map(|_| ()).map_err(|error| {
        let text = error.render().to_string();
        let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
        let said: Vec<&str> = lines.collect();
        said.join(" ").trim_start_matches("error: ").to_owned()
    })
}

/// The text of the file at `path`.
fn content(path: &Path) -> anyhow::Result<String> {
    /// Larger files are no configurations.
    const BYTES_MAX: u64 = 1 << 20;
    let wrong = || format!("cannot read {}", path.display());
    let facts = std::fs::metadata(path).with_context(wrong)?;
    anyhow::ensure!(
        facts.is_file() && facts.len() <= BYTES_MAX,
        "{}: expected a file of settings, of at most {BYTES_MAX} bytes",
        path.display()
    );
    std::fs::read_to_string(path).with_context(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Asked {
        Asked::new(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn files_are_asked_for_before_and_after_the_command_but_not_of_other_programs() {
        let file = |path: &str| Asked { file: Some(path.into()), ..Asked::default() };
        assert_eq!(asked("check a.std"), Asked::default());
        assert_eq!(asked("--config a.toml check"), file("a.toml"));
        assert_eq!(asked("check --config=a.toml b.std"), file("a.toml"));
        assert!(asked("check --no-config").is_refused);
        assert_eq!(asked("record -- ./a --no-config --config x"), Asked::default());
        let alone = Asked { is_alone: true, ..Asked::default() };
        assert_eq!(asked("cc --config x.cfg a.c"), alone);
        assert_eq!(asked("cargo --config x run"), alone);
    }
}
