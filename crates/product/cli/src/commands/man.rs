//! `man`: manual pages, made of what `--help` says.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::destination::Destination;
use crate::exit::say;

/// Print the manual page, or write a page for every command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  reweave man | man -l -\n  \
                        reweave man -o ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Write a page for each command to this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut command = crate::visible().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.output else {
        let page = page(command)?;
        Destination::StandardOutput.write_bytes(|out| Ok(out.write_all(&page)?))?;
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let count = write(&command, folder)? + write_cargo(folder)?;
    say(&format!("{count} pages written to {}", folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of `command` and of its commands, and gives how many.
fn write(command: &Command, folder: &Path) -> anyhow::Result<usize> {
    let man = Man::new(command.clone());
    let path = folder.join(man.get_filename());
    let page = page(command.clone())?;
    Destination::prepare(Some(&path))?.write_bytes(|out| Ok(out.write_all(&page)?))?;
    command.get_subcommands().try_fold(1, |count, inner| Ok(count + write(inner, folder)?))
}

/// Writes the page of `cargo reweave`, and gives that it is one.
fn write_cargo(folder: &Path) -> anyhow::Result<usize> {
    let all = crate::Arguments::command();
    let cargo = all.find_subcommand("cargo").context("there is no `cargo reweave`")?;
    write(&cargo.clone().name("cargo-reweave").bin_name("cargo reweave"), folder)
}

fn page(command: Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}
