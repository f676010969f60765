//! The commands that this user has recorded, so that they can be run again without being asked for.
//!
//! A trace holds the command that it was recorded from, and anyone may have written a trace. So what
//! a trace says is run unasked only if this user recorded exactly that before: the same file of the
//! same build, in the same folder, with the same arguments and variables. Each such command is a file
//! in the cache of the user, whose content, not whose name, is compared.

use std::fs;
use std::io::{self, Write as _};

use reweave_trace::RunStart;

use crate::install::in_cache;
use crate::symbols::build_id_of;

/// The folder in the cache.
const FOLDER: &str = "commands";

/// How many commands are kept.
const COUNT_MAX: usize = 4096;

/// What makes a command the same command.
fn text(start: &RunStart) -> String {
    let RunStart { folder, program, build_id, command, environment, .. } = start;
    serde_json::json!([folder, program, build_id, command, environment]).to_string()
}

fn name(text: &str) -> String {
    format!("{:032x}.json", xxhash_rust::xxh3::xxh3_128(text.as_bytes()))
}

/// Whether the file that `start` names is there, and is the build that was recorded.
#[must_use]
pub fn is_same_build(start: &RunStart) -> bool {
    !start.build_id.is_empty()
        && build_id_of(start.program.as_ref()).is_some_and(|now| now == start.build_id)
}

/// Remembers the command of `start`. Without a cache to write to it is not remembered, and will be
/// asked for.
pub fn remember(start: &RunStart) {
    let text = text(start);
    let kept = in_cache(|cache| {
        let folder = cache.join(FOLDER);
        let path = folder.join(name(&text));
        if !path.exists() && fs::read_dir(&folder).is_ok_and(|it| it.count() >= COUNT_MAX) {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        // Command lines may hold secrets: such a file is for its owner alone.
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(&path)?;
        Ok(())
    });
    tracing::debug!("command remembered: {}", kept.is_ok());
}

/// Whether this user has recorded the command of `start`.
#[must_use]
pub fn is_remembered(start: &RunStart) -> bool {
    let text = text(start);
    let found = in_cache(|cache| {
        let kept = fs::read(cache.join(FOLDER).join(name(&text)))?;
        (kept == text.as_bytes()).then_some(()).ok_or_else(|| io::Error::other("another command"))
    });
    found.is_ok()
}
