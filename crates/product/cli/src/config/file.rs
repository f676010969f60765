//! `reweave.toml`: what it says, and where it is wrong.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, ArgAction, Command};
use reweave_policy::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{ALONE, LIKE_CHECK, SHARED, content, find, set, set_at, set_shared};

/// `command` with what the file at `path` says.
///
/// # Errors
/// If it cannot be read, is no TOML, or says what no option can be worth.
pub(super) fn apply(command: Command, path: &Path) -> anyhow::Result<Command> {
    let text = content(path)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let folder = path.parent().unwrap_or(Path::new(""));
    let applied = parse(text).and_then(|table| File { folder }.apply(command, &table));
    applied.map_err(|Wrong { at, what }| {
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(1, |start| start.chars().count() + 1);
        anyhow::anyhow!("{}:{line}:{column}: {what}", path.display())
    })
}

/// What is wrong, and at which byte.
struct Wrong {
    at: usize,
    what: String,
}

fn parse(text: &str) -> Result<DeTable<'_>, Wrong> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Wrong { at, what: error.message().trim().replace('\n', "; ") }
    })?;
    Ok(table.into_inner())
}

type Key<'t> = Spanned<std::borrow::Cow<'t, str>>;
type Value<'t> = Spanned<DeValue<'t>>;

/// What a file says is relative to.
#[derive(Clone, Copy)]
struct File<'p> {
    folder: &'p Path,
}

impl File<'_> {
    /// What stands at the top, then the section of `check`, then the others.
    fn apply(self, command: Command, table: &DeTable<'_>) -> Result<Command, Wrong> {
        let mut command = command;
        for (key, value) in table.iter().filter(|(_, value)| !value.get_ref().is_table()) {
            command = self.shared(command, key, value)?;
        }
        let mut sections: Vec<_> =
            table.iter().filter(|(_, value)| value.get_ref().is_table()).collect();
        sections.sort_by_key(|(key, _)| key.get_ref() != "check");
        for (key, value) in sections {
            let Some(section) = value.get_ref().as_table() else { continue };
            command = self.section(command, key, section)?;
        }
        Ok(command)
    }

    /// A key at the top.
    fn shared(self, command: Command, key: &Key<'_>, value: &Value<'_>) -> Result<Command, Wrong> {
        let option = spelled(key);
        if !SHARED.contains(&&*option) {
            let what = match section_with(&command, &option) {
                Some(section) => format!(
                    "`{}` is an option of single commands: expected it in a section, such as \
                     `[{section}]`",
                    key.get_ref()
                ),
                None => unknown("option", key.get_ref(), SHARED.into_iter()),
            };
            return Err(Wrong { at: key.span().start, what });
        }
        let check = command.find_subcommand("check").and_then(|check| find(check, &option));
        let values = check.map_or_else(|| Ok(Vec::new()), |arg| texts(arg, value))?;
        let set = set_shared(command, &option, &values, self.folder);
        set.map_err(|what| Wrong { at: value.span().start, what })
    }

    /// A section: options of the command of its name, and sections of that command's commands.
    fn section(
        self,
        command: Command,
        key: &Key<'_>,
        section: &DeTable<'_>,
    ) -> Result<Command, Wrong> {
        let name = key.get_ref().to_string();
        let is_open = |it: &&Command| !it.is_hide_set() && !ALONE.contains(&it.get_name());
        let Some(inner) = command.find_subcommand(&name).filter(is_open) else {
            let known = command.get_subcommands().filter(is_open);
            let what = unknown("command", &name, known.map(Command::get_name));
            return Err(Wrong { at: key.span().start, what });
        };
        let mut inner = inner.clone();
        let mut command = command;
        for (key, value) in section {
            if let Some(section) = value.get_ref().as_table() {
                inner = self.section(inner, key, section)?;
                continue;
            }
            inner = self.option(inner, key, value)?;
            let like = if name == "check" { &LIKE_CHECK[..] } else { &[] };
            for other in like {
                command = self.also(command, other, key, value)?;
            }
        }
        Ok(command.mut_subcommand(&name, |_| inner))
    }

    /// An option of `command`, or of all its commands that have it.
    fn option(self, command: Command, key: &Key<'_>, value: &Value<'_>) -> Result<Command, Wrong> {
        let option = spelled(key);
        let wrong = |what| Wrong { at: value.span().start, what };
        if let Some(arg) = find(&command, &option) {
            let values = texts(arg, value)?;
            let set = set(command.clone(), &option, &values, self.folder);
            return set.unwrap_or(Ok(command)).map_err(wrong);
        }
        let names: Vec<String> = command
            .get_subcommands()
            .filter(|inner| find(inner, &option).is_some())
            .map(|inner| inner.get_name().to_owned())
            .collect();
        if names.is_empty() {
            let options: Vec<&str> = settable(&command).collect();
            let what = unknown("option", key.get_ref(), options.into_iter());
            return Err(Wrong { at: key.span().start, what });
        }
        names.iter().try_fold(command, |command, name| self.also(command, name, key, value))
    }

    /// The same option of the command `name` of `command`, if it has it.
    fn also(
        self,
        command: Command,
        name: &str,
        key: &Key<'_>,
        value: &Value<'_>,
    ) -> Result<Command, Wrong> {
        let option = spelled(key);
        let Some(arg) = command.find_subcommand(name).and_then(|inner| find(inner, &option)) else {
            return Ok(command);
        };
        let values = texts(arg, value)?;
        let set = set_at(command.clone(), &[name], &option, &values, self.folder);
        set.unwrap_or(Ok(command)).map_err(|what| Wrong { at: value.span().start, what })
    }
}

/// The option that `key` names: both `fail-on` and `fail_on` are understood.
fn spelled(key: &Key<'_>) -> String {
    key.get_ref().replace('_', "-")
}

/// Where in a file `option` may stand, if it is an option of a command.
fn section_with(command: &Command, option: &str) -> Option<String> {
    let visible = || command.get_subcommands().filter(|it| !it.is_hide_set());
    let direct = visible().find(|it| find(it, option).is_some());
    let within = || {
        visible().find_map(|it| Some(format!("{}.{}", it.get_name(), section_with(it, option)?)))
    };
    direct.map(|it| it.get_name().to_owned()).or_else(within)
}

/// The options of `command` that a file may speak of.
fn settable(command: &Command) -> impl Iterator<Item = &str> {
    let own = command.get_arguments();
    let inner = command.get_subcommands().flat_map(Command::get_arguments);
    let options = own.chain(inner).filter_map(Arg::get_long);
    options.filter(|option| !super::UNSET.contains(option))
}

fn unknown<'a>(thing: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("no {thing} is called `{name}`: did you mean `{meant}`?"),
        None => format!("no {thing} is called `{name}` here: there is {}", known.join(", ")),
    }
}

/// What `value` is on the command line, as `arg` takes it.
fn texts(arg: &Arg, value: &Value<'_>) -> Result<Vec<OsString>, Wrong> {
    let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
    let is_list = matches!(arg.get_action(), ArgAction::Append);
    match (value.get_ref(), is_flag) {
        (DeValue::Boolean(holds), true) => Ok(vec![holds.to_string().into()]),
        (DeValue::Array(items), false) if is_list => {
            items.iter().map(|item| text(item, "a list of texts")).collect()
        }
        (_, true) => Err(mismatch(value, "`true` or `false`")),
        (_, false) if is_list => Ok(vec![text(value, "a text or a list of texts")?]),
        (_, false) => Ok(vec![text(value, "a text or a number")?]),
    }
}

fn text(value: &Value<'_>, expected: &str) -> Result<OsString, Wrong> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string().into()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            let number = i64::from_str_radix(&digits, number.radix());
            number.map(|it| it.to_string().into()).map_err(|_| mismatch(value, expected))
        }
        _ => Err(mismatch(value, expected)),
    }
}

fn mismatch(value: &Value<'_>, expected: &str) -> Wrong {
    let found = match value.get_ref() {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number that is too large",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    };
    let found = match (value.get_ref(), expected.contains("number") || expected.contains("text")) {
        (DeValue::Integer(_), false) => "a number",
        _ => found,
    };
    Wrong { at: value.span().start, what: format!("expected {expected}, found {found}") }
}
