//! Ctrl-C: the first asks the work to end with what there is, the second ends it at once.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::{INTERRUPTED, say};

static ASKED: AtomicBool = AtomicBool::new(false);

/// The folder with unfinished output, to be removed if the process ends at once.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Listens for Ctrl-C and requests to terminate from now on.
pub(crate) fn listen() {
    let heard = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            if let Ok(unfinished) = UNFINISHED.lock()
                && let Some(folder) = unfinished.as_ref()
            {
                _ = std::fs::remove_dir_all(folder);
            }
            std::process::exit(i32::from(INTERRUPTED));
        }
        say("reweave: ending with what there is; once more to end at once");
    });
    if let Err(error) = heard {
        say(&format!("reweave: Ctrl-C will end the work at once: {error}"));
    }
}

/// Whether someone asked the work to end.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Remembers that `folder` holds unfinished output, or that nothing does.
pub(crate) fn set_unfinished(folder: Option<&Path>) {
    if let Ok(mut unfinished) = UNFINISHED.lock() {
        *unfinished = folder.map(Path::to_owned);
    }
}
