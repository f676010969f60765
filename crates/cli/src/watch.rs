//! Progress on a terminal, and whether to go on.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use reweave_analysis::Info;
use reweave_catalog::Watch;

use crate::interrupt;

/// A bar on standard error if that is a terminal; nothing otherwise.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar for work called `what`, of `total` steps if that is known.
    pub(crate) fn new(what: &str, total: Option<u64>) -> Self {
        let bar = match total {
            Some(total) => ProgressBar::new(total).with_style(bar_style()),
            None => ProgressBar::new_spinner(),
        };
        bar.set_message(reweave_report::shown(what).into_owned());
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar }
    }

    /// Says how far the work is; answers whether it should go on.
    pub(crate) fn go_on(&self, done: u64) -> bool {
        self.bar.set_position(done);
        !interrupt::is_asked()
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
        interrupt::is_asked()
    }

    fn progress(&self, info: &'static Info, done: u64, total: u64) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_message(info.name);
        self.bar.set_length(total);
        self.bar.set_position(done);
    }
}
