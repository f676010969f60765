//! Defaults of options from `reweave.toml` and the environment.
//!
//! Both become defaults of clap's own arguments. So `--help` shows them, clap converts and checks
//! them, and rules between options still concern only what the command line says. Precedence: the
//! command line, the environment, a section of the file, the top of the file.
//!
//! The environment and the top of the file apply to the commands that look for faults in traces; a
//! section applies to the command of its name. Commands that run another program are left alone: a
//! file in some parent folder must not change what a compiler does, nor stop a build by an error.

use std::any::TypeId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use reweave_policy::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::exit::say;

/// The name of the file.
const FILE: &str = "reweave.toml";

/// Names the file where the command line cannot be changed.
const FILE_VARIABLE: &str = "REWEAVE_CONFIG";

/// Larger files are not configurations.
const BYTES_MAX: u64 = 1 << 20;

/// Options that the environment and the top of the file can set.
const SHARED: [&str; 10] = [
    "baseline", "budget", "fail-on", "format", "limit", "remap", "source", "suppress", "threads",
    "work",
];

/// Options that decide which findings count.
const POLICY: [&str; 3] = ["baseline", "suppress", "fail-on"];

/// The commands that look for faults in traces.
const SEARCHING: [&[&str]; 8] = [
    &["check"],
    &["races"],
    &["deadlocks"],
    &["atomicity"],
    &["determinism"],
    &["states", "find"],
    &["explain"],
    &["confirm"],
];

/// Commands that repeat the search of `check`, so its section applies to them too.
const LIKE_CHECK: [&str; 2] = ["explain", "confirm"];

/// Options for the command line alone.
const NOT_IN_FILE: [&str; 10] = [
    "help",
    "version",
    "verbose",
    "config",
    "no-config",
    "output",
    "from",
    "confirm",
    // What a program is and whether it may run is never for a file that lies somewhere.
    "yes",
    "directory",
];

/// Commands without configuration: those that run another program, and those that describe
/// `reweave` itself.
const WITHOUT_FILE: [&str; 7] = [
    "cc",
    "c++",
    "cargo",
    reweave_record::toolchain::WRAPPER,
    reweave_record::toolchain::RUNNER,
    "completions",
    "man",
];

/// Adds the options that every command has: which file to read, and what to log. Arguments that clap
/// calls global would also take such options away from compilers.
pub fn with_common_options(command: Command) -> Command {
    command.args(common_options()).mut_subcommands(|command| {
        if WITHOUT_FILE.contains(&command.get_name()) {
            return command;
        }
        command.args(common_options()).mut_subcommands(|inner| inner.args(common_options()))
    })
}

fn common_options() -> [Arg; 3] {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .long_help(format!("Take defaults from this file instead of the nearest {FILE}"));
    let no_config = Arg::new("no-config")
        .long("no-config")
        .action(ArgAction::SetTrue)
        .conflicts_with("config")
        .long_help("Take defaults from no file");
    let verbose = Arg::new("verbose")
        .short('v')
        .long("verbose")
        .action(ArgAction::Count)
        .long_help("Show each stage and how long it took; twice for internal counters");
    // Shown by `--help` and in manual pages, not by `-h`.
    [config, no_config, verbose].map(|arg| arg.hide_short_help(true))
}

/// The command with its defaults, and where they come from.
pub struct Configured {
    pub command: Command,
    /// The file that was read.
    file: Option<PathBuf>,
    /// The policy options that the file sets: the command, and the option.
    policy: Vec<(Vec<String>, &'static str)>,
}

/// What is wrong in the file, and at which byte.
struct Fault {
    at: usize,
    what: String,
}

type Key<'t> = Spanned<std::borrow::Cow<'t, str>>;
type Value<'t> = Spanned<DeValue<'t>>;

impl Configured {
    /// `command` as it is.
    pub const fn new(command: Command) -> Self {
        Self { command, file: None, policy: Vec::new() }
    }

    /// `command` with the defaults that apply to the command line `words`, without the program's name.
    ///
    /// # Errors
    /// If the file or a variable of the environment is invalid.
    pub fn load(command: Command, words: &[OsString]) -> anyhow::Result<Self> {
        let mut configured = Self::new(command);
        let request = FileRequest::new(words);
        if request == FileRequest::NotUsed {
            return Ok(configured);
        }
        configured.file = match request {
            FileRequest::Named(path) => Some(path),
            FileRequest::None | FileRequest::NotUsed => None,
            FileRequest::Nearest => {
                variable(FILE_VARIABLE).map(PathBuf::from).or_else(nearest_file)
            }
        };
        if let Some(path) = configured.file.clone() {
            configured.apply_file(&path)?;
        }
        for option in SHARED {
            configured.apply_variable(option)?;
        }
        Ok(configured)
    }

    /// Names the file if it decides what counts: it may lie in a folder that nobody thinks of.
    pub fn report_policy(&self, matches: &ArgMatches) {
        let Some(file) = &self.file else { return };
        let (mut path, mut leaf) = (Vec::new(), matches);
        while let Some((name, inner)) = leaf.subcommand() {
            path.push(name);
            leaf = inner;
        }
        let is_default = |option: &str| {
            leaf.value_source(&option.replace('-', "_")) == Some(ValueSource::DefaultValue)
        };
        let mut options: Vec<String> = Vec::new();
        for (command, option) in &self.policy {
            let name = format!("`{option}`");
            if *command == path && is_default(option) && !options.contains(&name) {
                options.push(name);
            }
        }
        if !options.is_empty() {
            say(&format!("reweave: {} set by {}", options.join(", "), file.display()));
        }
    }

    /// Applies the variable of the environment for `option`, if it is set.
    fn apply_variable(&mut self, option: &'static str) -> anyhow::Result<()> {
        let name = format!("REWEAVE_{}", option.to_ascii_uppercase().replace('-', "_"));
        let Some(value) = variable(&name) else { return Ok(()) };
        let words: Vec<OsString> = match option {
            "source" | "suppress" => std::env::split_paths(&value).map(OsString::from).collect(),
            _ => vec![value],
        };
        for path in SEARCHING {
            let set = self.set(path, option, Path::new(""), 0, &words);
            set.map_err(|fault| anyhow::anyhow!("environment variable {name}: {}", fault.what))?;
        }
        // It takes the place of what the file says.
        self.policy.retain(|(_, other)| *other != option);
        Ok(())
    }

    fn apply_file(&mut self, path: &Path) -> anyhow::Result<()> {
        let failed = || format!("cannot read {}", path.display());
        let facts = std::fs::metadata(path).with_context(failed)?;
        anyhow::ensure!(
            facts.is_file() && facts.len() <= BYTES_MAX,
            "{}: expected a configuration file of at most {BYTES_MAX} bytes",
            path.display()
        );
        let text = std::fs::read_to_string(path).with_context(failed)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let folder = path.parent().unwrap_or(Path::new(""));
        let parsed = DeTable::parse(text).map_err(|error| Fault {
            at: error.span().map_or(0, |span| span.start),
            what: error.message().trim().replace('\n', "; "),
        });
        let applied = parsed.and_then(|table| self.apply_table(table.get_ref(), folder));
        applied.map_err(|Fault { at, what }| {
            let before = text.get(..at).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().map_or(1, |start| start.chars().count() + 1);
            anyhow::anyhow!("{}:{line}:{column}: {what}", path.display())
        })
    }

    fn apply_table(&mut self, table: &DeTable<'_>, folder: &Path) -> Result<(), Fault> {
        // Later settings replace earlier ones: the top, `[check]`, which `explain` and `confirm`
        // follow, and the other sections.
        let rank = |(key, value): &(&Key<'_>, &Value<'_>)| {
            (value.get_ref().is_table(), key.get_ref() != "check")
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(rank);
        for (key, value) in entries {
            match value.get_ref().as_table() {
                Some(section) => self.apply_section(&[], key, section, folder)?,
                None => self.apply_shared(key, value, folder)?,
            }
        }
        Ok(())
    }

    /// Applies a key at the top of the file.
    fn apply_shared(
        &mut self,
        key: &Key<'_>,
        value: &Value<'_>,
        folder: &Path,
    ) -> Result<(), Fault> {
        let option = option_name(key);
        if !SHARED.contains(&&*option) {
            let what = match section_with(&self.command, &option) {
                Some(section) => format!(
                    "`{}` is not an option of all commands; put it in a section such as `[{section}]`",
                    key.get_ref()
                ),
                None => unknown("option", key.get_ref(), SHARED.into_iter()),
            };
            return Err(Fault { at: key.span().start, what });
        }
        let words = words(value)?;
        for path in SEARCHING {
            self.set(path, &option, folder, value.span().start, &words)?;
        }
        Ok(())
    }

    /// Applies a section: options of the command of its name, and sections of its subcommands.
    fn apply_section(
        &mut self,
        parents: &[&str],
        key: &Key<'_>,
        section: &DeTable<'_>,
        folder: &Path,
    ) -> Result<(), Fault> {
        let name = &**key.get_ref();
        let path = [parents, &[name]].concat();
        let known = |it: &&Command| !it.is_hide_set() && !WITHOUT_FILE.contains(&it.get_name());
        let all = || at(&self.command, parents).into_iter().flat_map(Command::get_subcommands);
        let Some(command) = all().filter(known).find(|it| it.get_name() == name) else {
            let what = unknown("command", name, all().filter(known).map(Command::get_name));
            return Err(Fault { at: key.span().start, what });
        };
        let inner = command.get_subcommands().map(|inner| inner.get_name().to_owned());
        let inner: Vec<String> = inner.collect();
        for (key, value) in section {
            if let Some(inner) = value.get_ref().as_table() {
                self.apply_section(&path, key, inner, folder)?;
                continue;
            }
            let (option, at, words) = (option_name(key), value.span().start, words(value)?);
            let mut is_known = self.set(&path, &option, folder, at, &words)?;
            // In the section of a group, such as `[states]`, it is for all commands of the group.
            for name in &inner {
                is_known |=
                    self.set(&[&path[..], &[name]].concat(), &option, folder, at, &words)?;
            }
            if !is_known {
                let command = self::at(&self.command, &path);
                let what = unknown("option", key.get_ref(), command.into_iter().flat_map(settable));
                return Err(Fault { at: key.span().start, what });
            }
            for other in LIKE_CHECK.iter().filter(|_| path == ["check"]) {
                self.set(&[*other], &option, folder, at, &words)?;
            }
        }
        Ok(())
    }

    /// Makes `words` the default of `option` of the command at `path`, with paths relative to
    /// `folder`. Whether the command has that option.
    fn set(
        &mut self,
        path: &[&str],
        option: &str,
        folder: &Path,
        at: usize,
        words: &[OsString],
    ) -> Result<bool, Fault> {
        let root = &mut self.command;
        let command = path.iter().try_fold(root, |it, name| it.find_subcommand_mut(name));
        let Some(command) = command else { return Ok(false) };
        let Some(arg) = find(command, option) else { return Ok(false) };
        let is_path = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        let mut values: Vec<OsString> = Vec::new();
        for word in words {
            match arg.get_value_delimiter() {
                Some(delimiter) => {
                    let text = word.to_string_lossy();
                    values.extend(text.split(delimiter).map(|it| it.trim().into()));
                }
                None if is_path => values.push(folder.join(word).into()),
                None => values.push(word.clone()),
            }
        }
        check_values(arg, option, &values).map_err(|what| Fault { at, what })?;
        let id = arg.get_id().clone();
        let set = |arg: Arg| arg.required(false).default_values(values);
        *command = std::mem::take(command).mut_arg(id, set);
        if let Some(option) = POLICY.into_iter().find(|&it| it == option) {
            self.policy.push((path.iter().map(|&name| name.to_owned()).collect(), option));
        }
        Ok(true)
    }
}

/// Which file the command line asks for; read before clap does, since the file decides what clap
/// sees.
#[derive(Debug, Default, PartialEq, Eq)]
enum FileRequest {
    #[default]
    Nearest,
    Named(PathBuf),
    /// `--no-config`.
    None,
    /// The command has no configuration.
    NotUsed,
}

impl FileRequest {
    fn new(words: &[OsString]) -> Self {
        let mut request = Self::default();
        let mut has_command = false;
        let mut words = words.iter().take_while(|&word| word != "--");
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            match text.strip_prefix("--config") {
                Some("") => request = words.next().map_or(request, |it| Self::Named(it.into())),
                Some(rest) if rest.starts_with('=') => request = Self::Named(rest[1..].into()),
                _ if text == "--no-config" => request = Self::None,
                _ if !has_command && !text.starts_with('-') => {
                    has_command = true;
                    if WITHOUT_FILE.contains(&&*text) {
                        return Self::NotUsed;
                    }
                }
                _ => {}
            }
        }
        request
    }
}

/// The nearest file in this folder or one above it, within the repository.
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

/// The option that `key` names: both `fail-on` and `fail_on` are understood.
fn option_name(key: &Key<'_>) -> String {
    key.get_ref().replace('_', "-")
}

/// The subcommand of `command` at `path`.
fn at<'c>(command: &'c Command, path: &[&str]) -> Option<&'c Command> {
    path.iter().try_fold(command, |command, name| command.find_subcommand(name))
}

/// The argument of `command` that a file can set as `option`.
fn find<'c>(command: &'c Command, option: &str) -> Option<&'c Arg> {
    let mut arguments = command.get_arguments();
    arguments.find(|arg| arg.get_long() == Some(option) && !NOT_IN_FILE.contains(&option))
}

/// The options of `command` and its subcommands that a file can set.
fn settable(command: &Command) -> impl Iterator<Item = &str> {
    let inner = command.get_subcommands().flat_map(Command::get_arguments);
    let options = command.get_arguments().chain(inner).filter_map(Arg::get_long);
    options.filter(|option| !NOT_IN_FILE.contains(option))
}

/// The first section of a file that can have `option`.
fn section_with(command: &Command, option: &str) -> Option<String> {
    let visible = || command.get_subcommands().filter(|it| !it.is_hide_set());
    let direct = visible().find(|it| find(it, option).is_some());
    direct.map(|it| it.get_name().to_owned()).or_else(|| {
        visible().find_map(|it| Some(format!("{}.{}", it.get_name(), section_with(it, option)?)))
    })
}

fn unknown<'a>(thing: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("unknown {thing} `{name}`; did you mean `{meant}`?"),
        None => format!("unknown {thing} `{name}`; expected one of {}", known.join(", ")),
    }
}

/// Whether `arg`, called `option`, accepts `values`; if not, why.
fn check_values(arg: &Arg, option: &str, values: &[OsString]) -> Result<(), String> {
    if !matches!(arg.get_action(), ArgAction::Append) && values.len() != 1 {
        return Err(format!("expected one value for `{option}`, found {}", values.len()));
    }
    // clap lets nobody call a value parser, so a command with this option alone does it.
    let alone = Arg::new("value")
        .long(option.to_owned())
        .action(ArgAction::Append)
        .value_parser(arg.get_value_parser().clone());
    let trial = Command::new("reweave").no_binary_name(true).disable_help_flag(true).arg(alone);
    let words = values.iter().map(|value| {
        let mut word = OsString::from(format!("--{option}="));
        word.push(value);
        word
    });
    let Err(error) = trial.try_get_matches_from(words) else { return Ok(()) };
    let text = error.render().to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|it| !it.is_empty()).collect();
    Err(lines.join(" ").trim_start_matches("error: ").to_owned())
}

/// The words that `value` stands for on the command line; clap decides whether an option takes them.
fn words(value: &Value<'_>) -> Result<Vec<OsString>, Fault> {
    let word = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            // A number that is too large stays as it is written, and clap rejects it.
            let parsed = i64::from_str_radix(&digits, number.radix());
            parsed.map_or(digits, |number| number.to_string())
        }
        DeValue::Array(items) => {
            let words: Result<Vec<_>, _> = items.iter().map(words).collect();
            return words.map(|words| words.concat());
        }
        other => {
            let found = other.type_str();
            let what = format!("expected a string, a number or a boolean, found type `{found}`");
            return Err(Fault { at: value.span().start, what });
        }
    };
    Ok(vec![word.into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_before_and_after_the_command_but_not_for_other_programs() {
        let request = |line: &str| {
            FileRequest::new(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
        };
        let named = || FileRequest::Named("a.toml".into());
        assert_eq!(request("check a.std"), FileRequest::Nearest);
        assert_eq!(request("--config a.toml check"), named());
        assert_eq!(request("check --config=a.toml b.std"), named());
        assert_eq!(request("check --no-config"), FileRequest::None);
        assert_eq!(request("record -- ./a --no-config --config x"), FileRequest::Nearest);
        assert_eq!(request("cc --config x.cfg a.c"), FileRequest::NotUsed);
        assert_eq!(request("cargo --config x run"), FileRequest::NotUsed);
    }
}
