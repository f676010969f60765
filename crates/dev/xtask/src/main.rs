//! The project's own commands: `cargo xtask tidy`, `soak`, `mutate`, `tables`, `book`.

#![expect(clippy::print_stdout, reason = "these commands exist to print")]

mod book;
mod mutate;
mod soak;
mod tables;
mod tidy;
mod tree;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use tree::Tree;

/// The project's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check the rules that the compiler does not: layers, lengths, documentation, left-overs.
    Tidy,
    /// Run the property tests for long, and the fuzz targets if asked to.
    Soak(soak::Args),
    /// Break the recorder and the checker on purpose, one line at a time, and see that a test notices.
    Mutate(mutate::Args),
    /// Measure, and print what was measured as a table.
    Tables(tables::Args),
    /// Check the links of all documents and build the book.
    Book,
    /// Run a program recorded, for `tables recording`.
    #[command(hide = true)]
    RecordOnly { mode: String, program: std::path::PathBuf },
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let root = tree::root();
    match arguments.command {
        Command::Tidy => Ok(tidy::run(&Tree::load(&root)?)),
        Command::Soak(args) => soak::run(&root, &args),
        Command::Mutate(args) => mutate::run(&root, &args),
        Command::Tables(args) => tables::run(&root, &args),
        Command::Book => book::run(&root),
        Command::RecordOnly { mode, program } => tables::recording::record_only(&mode, &program),
    }
}
