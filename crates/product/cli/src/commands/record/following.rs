//! What is reported while a program is recorded.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use reweave_record::collect::Collector;
use reweave_record::live::stall::{PATIENCE, Watchdog};
use reweave_record::run::{self, Run, Wish};
use reweave_record::wire::Event;
use reweave_states::predicate::running::Running;
use reweave_workflows::watch::{Verdict, Watching};

use crate::exit::say;
use crate::interrupt;

/// What is wanted while the program runs.
#[derive(Debug, clap::Args)]
pub struct Following {
    /// Report global states that meet this predicate while the program runs
    ///
    /// A predicate inside `always` or `never` is reported when a state violates it. May be given several times.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    watch: Vec<String>,
    /// Stop a deadlocked program after this many seconds without an event
    ///
    /// By default it is only reported, and the program runs until it is interrupted.
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..))]
    stall_timeout: Option<u64>,
}

/// What came of following a program.
pub struct Followed {
    /// How it ran.
    pub run: Run,
    /// Whether it was ended because its threads waited for each other.
    pub was_stalled: bool,
    verdicts: Vec<Verdict>,
}

impl Following {
    /// What to watch for, if it can be in a recording that is `exact`: with the order and the values
    /// of all accesses.
    pub fn questions(&self, exact: bool) -> anyhow::Result<Vec<Running>> {
        anyhow::ensure!(
            exact || self.watch.is_empty(),
            "`--watch` needs exact order and values of accesses: remove `--mode free` and \
             `--no-values`"
        );
        let questions = self.watch.iter().map(|text| Running::parse(text));
        questions.collect::<Result<_, _>>().context("in the predicate to watch for")
    }

    /// Runs `command` and reports on standard error what happens.
    pub fn run(
        &self,
        command: &mut Command,
        collector: Collector,
        questions: Vec<Running>,
    ) -> anyhow::Result<Followed> {
        let base = std::env::current_dir().context("cannot find the current folder")?;
        let limit = self.stall_timeout.map(Duration::from_secs);
        let watchdog = RefCell::new(Watchdog::new(limit.unwrap_or(PATIENCE).min(PATIENCE)));
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
                say(&format!("reweave: no events for {seconds} s: {stall}"));
            }
            let is_due = limit.is_some_and(|limit| watchdog.idle() >= limit);
            was_stalled |= watchdog.is_stalled() && is_due;
            if interrupt::is_asked() || was_stalled { Wish::End } else { Wish::GoOn }
        };
        let mut tap = |thread: u32, event: &Event| {
            watchdog.borrow_mut().step(thread, event);
            if let Some(watching) = watching.borrow_mut().as_mut() {
                watching.step(thread, event);
            }
        };
        let program = command.get_program().display().to_string();
        let stage = tracing::info_span!("run program", program).entered();
        let run = run::run(command, collector, &mut tap, &mut wish)
            .with_context(|| format!("cannot record `{}`", command.get_program().display()))?;
        drop(stage);
        let verdicts = watching.into_inner().map_or_else(Vec::new, Watching::finish);
        Ok(Followed { run, was_stalled, verdicts })
    }
}

fn watch(questions: Vec<Running>, directory: &Path, base: &Path) -> anyhow::Result<Watching> {
    let tell = |found: &str| say(&format!("reweave: {found}"));
    Watching::start(questions, directory, base, tell).context("cannot watch the program")
}

impl Followed {
    /// Reports for each predicate that no state met why not.
    pub fn report(&self) {
        for Verdict { text, found, is_cut_short, missing } in &self.verdicts {
            if found.is_some() {
                continue;
            }
            for name in missing {
                say(&format!("reweave: the program has no global variable `{name}`"));
            }
            let rest = match is_cut_short {
                true => ", but not all were searched; use `reweave states find`",
                false => "",
            };
            say(&format!("reweave: no state found for {text}{rest}"));
        }
        if self.was_stalled {
            say("reweave: stopped the program: its threads are deadlocked");
        }
    }
}
