//! A word to those who ask for a command that is to come, or forget what stands before a program or
//! how findings are called.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands that are to come.
const PLANNED: &[&str] = &[];

/// What to say to someone who asks for the unknown command `name`, if it is known to us.
pub(crate) fn of_command(name: &str) -> Option<String> {
    PLANNED
        .contains(&name)
        .then(|| format!("`{name}` is not in this version; `reweave --help` says what is"))
}

/// `error`, which `words` led to, with a tip where they name a program without `--` before it, or a
/// trace without the finding that is meant.
pub(crate) fn with_tip(mut error: clap::Error, words: &[String]) -> clap::Error {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.as_slice(),
        _ => &[],
    };
    let lacks_id = error.kind() == ErrorKind::MissingRequiredArgument
        && words.get(1).is_some_and(|word| word == "explain" || word == "confirm")
        && missing.iter().any(|name| name == "<ID>");
    if lacks_id {
        let tip = "`reweave check TRACE` lists the findings with their ids, such as R1";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    let is_forgotten = error.kind() == ErrorKind::UnknownArgument
        && words.get(1).is_some_and(|word| word == "record" || word == "confirm")
        && !words.iter().any(|word| word == "--");
    let found = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(found)) if is_forgotten => found.clone(),
        _ => return error,
    };
    // What starts like an option is one that we do not have.
    if !found.starts_with('-') {
        let tip = format!("the program comes after `--`: -- {found}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    #[track_caller]
    fn tip(line: &str) -> bool {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let record = Command::new("record").arg(Arg::new("cmd").last(true).num_args(1..));
        let command = Command::new("reweave").subcommand(record);
        let error = command.try_get_matches_from(&words).unwrap_err();
        with_tip(error, &words).to_string().contains("the program comes after `--`")
    }

    #[test]
    fn a_program_without_dashes_before_it_gets_a_tip() {
        assert!(tip("reweave record ./bank"));
        assert!(!tip("reweave record --no-such"));
    }
}
