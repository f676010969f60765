//! Is what is to be written also what is read?
//!
//! A report that takes the place of its own trace, its suppressions or its program destroys what
//! cannot be made again, and one slip of the keyboard is enough: `check run.rwt -o run.rwt`. So
//! whatever a command line names besides its output is held against it before any work begins, for
//! all commands at once. Only `convert` may write over what it reads: that is what was asked for.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::ArgMatches;

use crate::commands::confirm::located;

/// What the arguments that name outputs are called.
const OUTPUT: &str = "output";

/// Commands that may write over what they read.
const IN_PLACE: [&str; 1] = ["convert"];

/// What is refused elsewhere, with a reason of its own.
const APART: [&str; 1] = ["baseline"];

/// Refuses a command line whose output is one of the files that it reads.
pub(crate) fn refuse(matches: &ArgMatches) -> anyhow::Result<()> {
    let Some((name, inner)) = matches.subcommand() else { return Ok(()) };
    refuse(inner)?;
    let Ok(Some(output)) = inner.try_get_one::<PathBuf>(OUTPUT) else { return Ok(()) };
    if IN_PLACE.contains(&name) {
        return Ok(());
    }
    let read = inputs(inner).find(|input| is_same_file(output, input));
    let Some(input) = read else { return Ok(()) };
    anyhow::bail!(
        "cannot write {}: the command reads {}, which is the same file and would be lost; give the \
         output another name",
        output.display(),
        if input == *output { "it".to_owned() } else { format!("`{}`", input.display()) }
    )
}

/// The files that a command line names, besides the output, and the program that it runs.
fn inputs(matches: &ArgMatches) -> impl Iterator<Item = PathBuf> {
    let ids = matches.ids().map(clap::Id::as_str);
    let ids = ids.filter(|&id| id != OUTPUT && !APART.contains(&id));
    let files = ids.flat_map(|id| matches.try_get_many::<PathBuf>(id).ok().flatten());
    let command = matches.try_get_many::<OsString>("command").ok().flatten();
    let program = command.and_then(|mut words| located(words.next()?));
    files.flatten().cloned().chain(program)
}

/// Whether both are names of one ordinary file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let facts = |path| fs::metadata(path).ok().filter(fs::Metadata::is_file);
    let same = facts(one).zip(facts(other));
    same.is_some_and(|(one, other)| (one.dev(), one.ino()) == (other.dev(), other.ino()))
}
