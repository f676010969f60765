//! The summary of a step that GitHub shows on the page of a workflow's run.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use reweave_report::Examined;

use crate::exit::say;

/// The file that a step's summary is appended to, where a workflow runs us.
const FILE: &str = "GITHUB_STEP_SUMMARY";

/// Appends what was found to the summary of the step, if there is one. That it cannot be written is
/// said, and no more: the report is there all the same.
pub(crate) fn append(examined: &[Examined<'_>]) {
    let Some(path) = std::env::var_os(FILE).filter(|path| !path.is_empty()) else { return };
    let path = Path::new(&path);
    let file = File::options().append(true).create(true).open(path);
    let written = file.and_then(|file| {
        let mut out = BufWriter::new(file);
        reweave_report::github_summary(&mut out, examined)?;
        out.flush()
    });
    if let Err(error) = written {
        say(&format!("cannot write the summary of the step to {}: {error}", path.display()));
    }
}
