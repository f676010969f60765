//! Progress on a terminal, and whether to continue.

use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use reweave_analysis::Info;
use reweave_catalog::Watch;

use crate::interrupt;

/// Work that takes less time has no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar on standard error if that is a terminal that can draw one and the work takes long;
/// nothing otherwise.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    started: Instant,
    /// When the work is to stop.
    deadline: Option<Instant>,
    /// Whether it was decided to show the bar, or never to.
    is_settled: AtomicBool,
}

impl Bar {
    /// A bar for work called `what`, of `total` steps if that is known.
    pub(crate) fn new(what: &str, total: Option<u64>) -> Self {
        let bar = match total {
            Some(total) => ProgressBar::new(total).with_style(bar_style()),
            None => ProgressBar::new_spinner(),
        };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        bar.set_message(reweave_report::shown(what).into_owned());
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        let is_settled = AtomicBool::new(is_dumb || !io::stderr().is_terminal());
        Self { bar, started: Instant::now(), deadline: None, is_settled }
    }

    /// Work that is to stop once the command has searched for `time`, if that is given.
    pub(crate) fn within(mut self, time: Option<Duration>) -> Self {
        // The time is that of the command, for however many pieces of work.
        static START: OnceLock<Instant> = OnceLock::new();
        let start = *START.get_or_init(Instant::now);
        self.deadline = time.and_then(|time| start.checked_add(time));
        self
    }

    /// Shows the bar once the work has taken long.
    fn show_if_due(&self) {
        if !self.is_settled.load(Ordering::Relaxed) && self.started.elapsed() >= PATIENCE {
            self.is_settled.store(true, Ordering::Relaxed);
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
    }

    /// Shows how far the pass `number` over the same data is.
    pub(crate) fn pass(&self, number: u32, done: u64) {
        self.show_if_due();
        if self.bar.is_hidden() {
            return;
        }
        if done == 0 {
            // Each pass has a speed of its own.
            self.bar.reset_eta();
            self.bar.set_message(format!("converting, pass {number}"));
        }
        self.bar.set_position(done);
    }

    /// Shows how far the work is; returns whether it should continue.
    pub(crate) fn go_on(&self, done: u64) -> bool {
        self.show_if_due();
        self.bar.set_position(done);
        !self.is_cancelled()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn bar_style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}% {eta:>4}");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Watch for Bar {
    fn is_cancelled(&self) -> bool {
        interrupt::is_asked() || self.is_out_of_time()
    }

    fn is_out_of_time(&self) -> bool {
        !interrupt::is_asked() && self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn progress(&self, info: &'static Info, done: u64, total: u64) {
        self.show_if_due();
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_message(info.name);
        self.bar.set_length(total);
        self.bar.set_position(done);
    }
}
