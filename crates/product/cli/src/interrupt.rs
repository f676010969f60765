//! Ctrl-C: the first asks the work to end with what there is, the second ends it at once.
//!
//! While standard input is read the first one ends it at once too: reading may wait for ever, and
//! there is nothing to tell of half a trace.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::{INTERRUPTED, say};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether the work may be waiting for standard input.
static WAITING: AtomicBool = AtomicBool::new(false);

/// Whether what was found so far will be told.
static KEEPING: AtomicBool = AtomicBool::new(false);

/// The folder with unfinished output, to be removed if the process ends at once.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Listens for Ctrl-C and requests to terminate from now on.
pub(crate) fn listen() {
    let heard = ctrlc::set_handler(|| {
        let is_waiting = WAITING.load(Ordering::Relaxed);
        let was_asked = ASKED.swap(true, Ordering::Relaxed);
        if is_waiting || was_asked {
            if !was_asked {
                say("reweave: interrupted");
            }
            if let Ok(unfinished) = UNFINISHED.lock()
                && let Some(folder) = unfinished.as_ref()
            {
                _ = std::fs::remove_dir_all(folder);
            }
            std::process::exit(i32::from(INTERRUPTED));
        }
        let rest = if KEEPING.load(Ordering::Relaxed) { " with what there is" } else { "" };
        say(&format!("reweave: ending{rest}; once more to end at once"));
    });
    if let Err(error) = heard {
        say(&format!("reweave: Ctrl-C will end the work at once: {error}"));
    }
}

/// Whether someone asked the work to end.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Says whether the work may be waiting for standard input from now on.
pub(crate) fn set_waiting(is_waiting: bool) {
    WAITING.store(is_waiting, Ordering::Relaxed);
}

/// Says that from now on what was found so far will be told.
pub(crate) fn keep() {
    KEEPING.store(true, Ordering::Relaxed);
}

/// Remembers that `folder` holds unfinished output, or that nothing does.
pub(crate) fn set_unfinished(folder: Option<&Path>) {
    if let Ok(mut unfinished) = UNFINISHED.lock() {
        *unfinished = folder.map(Path::to_owned);
    }
}
