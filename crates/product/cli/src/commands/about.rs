//! What `reweave` says of itself: `list`, `schema`, `completions`, `man`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use reweave_analysis::Info;
use serde_json::json;

use super::stats::StatsFormat;
use crate::destination::Destination;
use crate::exit::say;

/// List every analysis, what it finds and what it guarantees.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  reweave list --format json")]
pub struct ListArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: StatsFormat,
}

/// What the list says of an analysis.
#[derive(Clone, Copy, serde::Serialize)]
struct Row {
    name: &'static str,
    family: &'static str,
    kind: &'static str,
    guarantee: &'static str,
    needs: &'static str,
    #[serde(rename = "default")]
    is_default: bool,
    summary: &'static str,
    paper: &'static str,
}

/// The analyses of programs, which the catalog, being of traces, does not have.
const OF_PROGRAMS: [Row; 3] = [
    Row {
        name: "ndseq.infer",
        summary: "the fewest `if (*)` with which the runs of a program equal sequential ones",
        ..NDSEQ
    },
    Row {
        name: "ndseq.check",
        summary: "whether the runs of a program agree with its own `if (*)`",
        ..NDSEQ
    },
    Row {
        name: "intervals",
        family: "intervals",
        kind: "range",
        guarantee: "sound",
        needs: "program",
        is_default: false,
        summary: "the range of every variable over all interleavings of a program's runs",
        paper: "Ganai, Wang 2010",
    },
];

const NDSEQ: Row = Row {
    name: "",
    family: "ndseq",
    kind: "specification",
    guarantee: "exact",
    needs: "flow",
    is_default: false,
    summary: "",
    paper: "Burnim, Elmas, Necula, Sen 2012",
};

impl Row {
    const fn new(info: &Info) -> Self {
        Self {
            name: info.name,
            family: info.family,
            kind: info.kind.as_str(),
            guarantee: info.guarantee.as_str(),
            needs: info.needs.as_str(),
            is_default: info.is_default,
            summary: info.summary,
            paper: info.paper,
        }
    }
}

/// Runs `list`.
pub fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let of_traces = reweave_catalog::analyses().map(|analysis| Row::new(analysis.info()));
    let all: Vec<Row> = of_traces.chain(OF_PROGRAMS).collect();
    Destination::StandardOutput.write("", |out| match args.format {
        StatsFormat::Text => list_text(out, &all),
        StatsFormat::Json => {
            let document = json!({ "schema": reweave_report::SCHEMA, "analyses": all });
            serde_json::to_writer_pretty(&mut *out, &document)?;
            writeln!(out)
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn list_text(out: &mut dyn Write, all: &[Row]) -> io::Result<()> {
    let width = all.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for Row { name, kind, guarantee, is_default, summary, paper, .. } in all {
        let default = if *is_default { "default" } else { "" };
        writeln!(out, "{name:<width$} {kind:<9} {guarantee:<9} {default:<7} {summary} ({paper})")?;
    }
    Ok(())
}

/// Print the JSON schema of the output of `--format json`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  reweave schema > reweave-1.schema.json")]
pub struct SchemaArgs {}

/// Runs `schema`.
pub fn schema() -> anyhow::Result<ExitCode> {
    Destination::StandardOutput.write("", |out| write!(out, "{}", reweave_report::SCHEMA_FILE))?;
    Ok(ExitCode::SUCCESS)
}

/// Print a script that makes a shell complete commands and options.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  reweave completions bash > \
                        ~/.local/share/bash-completion/completions/reweave\n  \
                        reweave completions fish > ~/.config/fish/completions/reweave.fish\n  \
                        reweave completions zsh > \"${fpath[1]}/_reweave\"")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs `completions`.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::visible(), "reweave", &mut script);
    Destination::StandardOutput.write_bytes(|out| Ok(out.write_all(&script)?))?;
    Ok(ExitCode::SUCCESS)
}

/// Print the manual page, or write a page for every command.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  reweave man | man -l -\n  \
                        reweave man -o ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write a page for each command to this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Runs `man`.
pub fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let mut command = crate::visible().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.output else {
        let page = page(command)?;
        Destination::StandardOutput.write_bytes(|out| Ok(out.write_all(&page)?))?;
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let all = crate::Arguments::command();
    let cargo = all.find_subcommand("cargo").context("there is no `cargo reweave`")?;
    let cargo = cargo.clone().name("cargo-reweave").bin_name("cargo reweave");
    let count = write_pages(&command, folder)? + write_pages(&cargo, folder)?;
    say(&format!("{count} pages written to {}", folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of `command` and its subcommands; returns how many.
fn write_pages(command: &Command, folder: &Path) -> anyhow::Result<usize> {
    let path = folder.join(Man::new(command.clone()).get_filename());
    let page = page(command.clone())?;
    Destination::prepare(Some(&path))?.write_bytes(|out| Ok(out.write_all(&page)?))?;
    command.get_subcommands().try_fold(1, |count, inner| Ok(count + write_pages(inner, folder)?))
}

fn page(command: Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}
