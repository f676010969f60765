//! Ctrl-C: the first asks the work to stop with the results so far, the second quits at once.
//!
//! While standard input is read the first one quits at once too: reading may block forever, and half a
//! trace has no results.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::{INTERRUPTED, say};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether the work may be waiting for standard input.
static WAITING: AtomicBool = AtomicBool::new(false);

/// Whether the results so far will be reported.
static KEEPING: AtomicBool = AtomicBool::new(false);

/// The folder with unfinished output, to be removed if the process ends at once.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Handles Ctrl-C and requests to terminate from now on.
pub fn listen() {
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
        let rest =
            if KEEPING.load(Ordering::Relaxed) { " and saving the results so far" } else { "" };
        say(&format!("reweave: stopping{rest}; press Ctrl-C again to quit now"));
    });
    if let Err(error) = heard {
        say(&format!("reweave: Ctrl-C will quit at once, without results: {error}"));
    }
}

/// Whether the work should stop.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Sets whether the work may be waiting for standard input.
pub fn set_waiting(is_waiting: bool) {
    WAITING.store(is_waiting, Ordering::Relaxed);
}

/// Declares that from now on the results so far will be reported.
pub fn keep() {
    KEEPING.store(true, Ordering::Relaxed);
}

/// Remembers that `folder` holds unfinished output, or that nothing does.
pub fn set_unfinished(folder: Option<&Path>) {
    if let Ok(mut unfinished) = UNFINISHED.lock() {
        *unfinished = folder.map(Path::to_owned);
    }
}
