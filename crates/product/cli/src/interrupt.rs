//! Ctrl-C and requests to terminate: the first asks the work to stop with the results so far, the
//! second quits at once.
//!
//! While standard input is read the first one quits at once too: reading may block forever, and half a
//! trace has no results. Work that does not stop soon is given up: whoever asks is not kept waiting.
//! However it ends, no process that was started and no temporary folder is left behind.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::exit::{INTERRUPTED, say};

static ASKED: AtomicBool = AtomicBool::new(false);

/// When it was asked.
static ASKED_AT: Mutex<Option<Instant>> = Mutex::new(None);

/// Whether the work may be waiting for standard input.
static WAITING: AtomicBool = AtomicBool::new(false);

/// What will be saved of what was done so far.
static KEEPING: Mutex<Option<&'static str>> = Mutex::new(None);

/// Whether the work is done, and what came of it is being written.
static WRITING: AtomicBool = AtomicBool::new(false);

/// Folders with unfinished work, to be removed if the process ends at once.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The program that runs on our behalf; 0 if none does.
static PROGRAM: AtomicU32 = AtomicU32::new(0);

/// Signals that come within this time are one request: `timeout` sends one to its command and another
/// one to the command's process group. Nobody presses Ctrl-C twice that fast.
const ONE_REQUEST: Duration = Duration::from_millis(100);

/// How long work may go on after it was asked to stop.
const PATIENCE: Duration = Duration::from_millis(1700);

/// The same while a trace is saved, which is quick unless the machine is not.
const PATIENCE_SAVING: Duration = Duration::from_secs(6);

/// What `record` saves.
pub const TRACE: &str = "the trace";

/// What other commands save.
pub const RESULTS: &str = "the results so far";

/// Handles Ctrl-C and requests to terminate from now on.
pub fn listen() {
    let heard = ctrlc::set_handler(|| {
        let is_waiting = WAITING.load(Ordering::Relaxed);
        let was_asked = ASKED.swap(true, Ordering::Relaxed);
        if was_asked && asked_since().is_some_and(|since| since < ONE_REQUEST) {
            return;
        }
        if is_waiting || was_asked {
            if !was_asked {
                say("reweave: interrupted");
            }
            quit();
        }
        if let Ok(mut asked_at) = ASKED_AT.lock() {
            *asked_at = Some(Instant::now());
        }
        let kept = KEEPING.lock().ok().and_then(|kept| *kept);
        let rest = kept.map_or_else(String::new, |kept| format!(" and saving {kept}"));
        say(&format!("reweave: stopping{rest}; press Ctrl-C again to quit now"));
        let patience = if kept == Some(TRACE) { PATIENCE_SAVING } else { PATIENCE };
        std::thread::spawn(move || {
            std::thread::sleep(patience);
            if !WRITING.load(Ordering::Relaxed) {
                say("reweave: interrupted; the work did not stop in time, so nothing was saved");
                quit();
            }
        });
    });
    if let Err(error) = heard {
        say(&format!("reweave: Ctrl-C will quit at once, without results: {error}"));
    }
}

/// Ends the process, and leaves nothing behind.
fn quit() -> ! {
    let program = PROGRAM.load(Ordering::Relaxed);
    if program != 0 {
        reweave_record::run::kill_all(program);
    }
    if let Ok(unfinished) = UNFINISHED.lock() {
        for folder in &*unfinished {
            _ = std::fs::remove_dir_all(folder);
        }
    }
    std::process::exit(i32::from(INTERRUPTED));
}

/// Whether the work should stop.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// How long ago it was asked to stop.
pub fn asked_since() -> Option<Duration> {
    if !is_asked() {
        return None;
    }
    let asked_at = ASKED_AT.lock().ok().and_then(|asked_at| *asked_at);
    Some(asked_at.map_or(Duration::ZERO, |asked_at| asked_at.elapsed()))
}

/// Sets whether the work may be waiting for standard input.
pub fn set_waiting(is_waiting: bool) {
    WAITING.store(is_waiting, Ordering::Relaxed);
}

/// Declares that from now on `what` will be saved, such as [`RESULTS`].
pub fn keep(what: &'static str) {
    if let Ok(mut keeping) = KEEPING.lock() {
        *keeping = Some(what);
    }
}

/// Declares that the work is done and only the results are still to be written.
pub fn writing() {
    WRITING.store(true, Ordering::Relaxed);
}

/// Sets the program that runs on our behalf; 0 if none does.
pub fn set_program(pid: u32) {
    PROGRAM.store(pid, Ordering::Relaxed);
}

/// Remembers that `folder` holds unfinished work.
pub fn add_unfinished(folder: &Path) {
    if let Ok(mut unfinished) = UNFINISHED.lock() {
        unfinished.push(folder.to_owned());
    }
}

/// Forgets `folder`, in which nothing is unfinished any more.
pub fn remove_unfinished(folder: &Path) {
    if let Ok(mut unfinished) = UNFINISHED.lock() {
        unfinished.retain(|known| known != folder);
    }
}
