//! `tables`: what is measured, as Markdown that can be kept beside the code.
//!
//! Sizes repeat exactly; rates are of the machine at hand, the best of three, and are left out
//! unless this command was built in release mode.

mod formats;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::tree::Tree;

/// Which table, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which table.
    #[arg(value_enum, default_value = "formats")]
    name: Name,
    /// Also write it to `docs/tables`.
    #[arg(long)]
    write: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Name {
    /// Sizes and reading rates of the formats, over the corpus and synthetic traces.
    Formats,
}

/// Measures and prints.
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<ExitCode> {
    let tree = Tree::load(root)?;
    let (file, table) = match args.name {
        Name::Formats => ("formats.md", formats::table(&tree, !cfg!(debug_assertions))?),
    };
    print!("{table}");
    if args.write {
        let folder = root.join("docs/tables");
        fs::create_dir_all(&folder)?;
        let path = folder.join(file);
        fs::write(&path, table).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
