//! What is told of a program while it is recorded.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use reweave_record::collect::Collector;
use reweave_record::run::{self, Control, Run};
use reweave_record::watchdog::{STALL_TIMEOUT, Watchdog};
use reweave_record::wire::Event;
use reweave_states::predicate::running::Running;
use reweave_workflows::watch::{Verdict, Watching};

use crate::exit::say;
use crate::interrupt;

/// What is wanted while the program runs.
#[derive(Debug, clap::Args)]
pub(super) struct Following {
    /// While the program runs, look for global states that meet this predicate, or break one that
    /// should hold, and say so at once; may be given several times
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    watch: Vec<String>,
    /// End a program whose threads wait for each other's locks when nothing has happened for so many
    /// seconds; else it goes on until it is interrupted
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..))]
    stall_timeout: Option<u64>,
}

/// What came of following a program.
pub(super) struct Followed {
    /// How it ran.
    pub(super) run: Run,
    /// Whether it was ended because its threads waited for each other.
    pub(super) was_stalled: bool,
    verdicts: Vec<Verdict>,
}

impl Following {
    /// What to watch for, if it can be in a recording that is `exact`: with the order and the values
    /// of all accesses.
    pub(super) fn questions(&self, exact: bool) -> anyhow::Result<Vec<Running>> {
        anyhow::ensure!(
            exact || self.watch.is_empty(),
            "--watch needs the order and the values of accesses as they were: leave out `--mode \
             free` and `--no-values`"
        );
        let questions = self.watch.iter().map(|text| Running::parse(text));
        questions.collect::<Result<_, _>>().context("in the predicate to watch for")
    }

    /// Runs `command` and tells what there is to tell on standard error, as it happens.
    pub(super) fn run(
        &self,
        command: &mut Command,
        collector: Collector,
        questions: Vec<Running>,
    ) -> anyhow::Result<Followed> {
        let base = std::env::current_dir().context("the current folder is unknown")?;
        let limit = self.stall_timeout.map(Duration::from_secs);
        let watchdog =
            RefCell::new(Watchdog::new(limit.unwrap_or(STALL_TIMEOUT).min(STALL_TIMEOUT)));
        let watching = match questions.is_empty() {
            true => None,
            false => Some(watch(questions, collector.directory(), &base)?),
        };
        let watching = RefCell::new(watching);
        let mut was_stalled = false;
        let mut wish = |collector: &Collector| {
            if let Some(watching) = watching.borrow_mut().as_mut() {
                watching.flush();
            }
            let mut watchdog = watchdog.borrow_mut();
            if let Some(stall) = watchdog.look(collector, &base) {
                let seconds = watchdog.idle().as_secs();
                say(&format!("reweave: nothing has happened for {seconds} s: {stall}"));
            }
            let is_due = limit.is_some_and(|limit| watchdog.idle() >= limit);
            was_stalled |= watchdog.is_stalled() && is_due;
            if interrupt::is_asked() || was_stalled { Control::End } else { Control::Continue }
        };
        let mut tap = |thread: u32, event: &Event| {
            watchdog.borrow_mut().step(thread, event);
            if let Some(watching) = watching.borrow_mut().as_mut() {
                watching.step(thread, event);
            }
        };
        let run = run::run(command, collector, &mut tap, &mut wish)
            .with_context(|| format!("cannot record `{}`", command.get_program().display()))?;
        let verdicts = watching.into_inner().map_or_else(Vec::new, Watching::finish);
        Ok(Followed { run, was_stalled, verdicts })
    }
}

fn watch(questions: Vec<Running>, directory: &Path, base: &Path) -> anyhow::Result<Watching> {
    let tell = |found: &str| say(&format!("reweave: {found}"));
    Watching::start(questions, directory, base, tell).context("cannot watch the program")
}

impl Followed {
    /// Says of each predicate that was watched for why nothing was said of it.
    pub(super) fn tell(&self) {
        for Verdict { text, found, is_cut_short, missing } in &self.verdicts {
            if found.is_some() {
                continue;
            }
            for name in missing {
                say(&format!("reweave: the program has no global `{name}` to watch"));
            }
            let rest = match is_cut_short {
                true => ", but not all of them were looked at; ask `reweave states find`",
                false => "",
            };
            say(&format!("reweave: no state was found for {text}{rest}"));
        }
        if self.was_stalled {
            say("reweave: the program was ended, since its threads wait for each other");
        }
    }
}
