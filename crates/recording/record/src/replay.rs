//! Making a program follow a plan, and saying what came of it.

use std::cell::RefCell;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use reweave_runtime::plan::GoalKind;
use reweave_runtime::session;
use reweave_runtime::shared::{Mode, outcome};
use reweave_runtime::wire::Event;

use crate::collect::Collector;
use crate::plan::{Outcome, Plan, Shown};
use crate::run::{self, Control, Options};
use crate::watchdog::Watchdog;

/// Why a replay that was interrupted confirmed nothing.
pub const INTERRUPTED: &str = "it was interrupted";

/// How long nothing may move before a plan is given up.
const STALL_TIMEOUT: Duration = Duration::from_secs(3);

/// How long nothing happens before it is looked at whether threads wait for each other.
const STILLNESS: Duration = Duration::from_secs(2);

/// How long a program may go on after it is known what became of the plan.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// Runs `command` under `plan`, for `time` at most and until `is_cancelled`.
///
/// # Errors
/// If the program cannot be started.
pub fn replay(
    command: &mut Command,
    plan: &Plan,
    time: Duration,
    is_cancelled: &dyn Fn() -> bool,
) -> io::Result<Outcome> {
    let options = Options {
        mode: Mode::Serial,
        values: false,
        seed: 1,
        limit: u64::MAX,
        exit_wait: run::EXIT_WAIT,
    };
    let logs = tempfile::tempdir()?;
    let settings = options.settings(true, STALL_TIMEOUT.min(time));
    let words = plan.words();
    let collector = Collector::new(&settings, Some(&words), logs.path(), u64::MAX)?;
    let start = Instant::now();
    let mut known: Option<Instant> = None;
    let base = std::env::current_dir().unwrap_or_default();
    let watchdog = RefCell::new(Watchdog::new(STILLNESS));
    let mut stall: Option<String> = None;
    let mut control = |collector: &Collector| {
        if is_cancelled() {
            return Control::Kill;
        }
        stall = watchdog.borrow_mut().look(collector, &base).or(stall.take());
        let Some((what, _)) = collector.outcome() else {
            return if start.elapsed() > time { Control::Kill } else { Control::Continue };
        };
        let since = *known.get_or_insert_with(Instant::now);
        // A deadlock does not end, and the rest of the program is not what was asked for.
        let is_confirmed = what == outcome::CONFIRMED;
        let is_over = match (plan.goal_kind, plan.shown) {
            (GoalKind::Blocked, _) if is_confirmed => true,
            (GoalKind::Passed, Shown::Stuck) if is_confirmed => {
                stall.is_some() || since.elapsed() > STILLNESS + AFTERWARDS
            }
            _ => since.elapsed() > AFTERWARDS,
        };
        if is_over { Control::Kill } else { Control::Continue }
    };
    let mut observer = |thread: u32, event: &Event| watchdog.borrow_mut().step(thread, event);
    // Nobody wants a program that was only to be replayed.
    session::end_with_us(command);
    let run = run::run(command, collector, &mut observer, &mut control)?;
    let outcome = match run.outcome {
        _ if is_cancelled() => not_confirmed(INTERRUPTED.to_owned()),
        Some((outcome::CONFIRMED, _)) if plan.shown == Shown::Stuck => {
            afterwards(stall.take(), run.was_ended)
        }
        Some((what, words)) => report(plan, what, &words),
        None if run.recordings.is_empty() => not_confirmed(
            "the program did not load the recorder; was it built with `reweave cc`?".to_owned(),
        ),
        None if run.was_ended => {
            not_confirmed(format!("the program took longer than {} s", time.as_secs()))
        }
        None => not_confirmed(format!("the program ended ({}) before that", run.status)),
    };
    Ok(match (outcome, stall) {
        (Outcome::NotConfirmed { reason }, Some(stall)) => {
            not_confirmed(format!("{reason}; {stall}"))
        }
        (outcome, _) => outcome,
    })
}

/// What came of a schedule after which nobody goes on: `stall` says who waits, if nobody did.
fn afterwards(stall: Option<String>, was_ended: bool) -> Outcome {
    match stall {
        Some(stall) => {
            let went = "the program went through the schedule, and then nobody went on";
            Outcome::Confirmed { details: format!("{went}: {stall}") }
        }
        None if was_ended => not_confirmed("threads still went on after the schedule".to_owned()),
        None => not_confirmed("the program ended after the schedule".to_owned()),
    }
}

const fn not_confirmed(reason: String) -> Outcome {
    Outcome::NotConfirmed { reason }
}

/// What the runtime wrote, in words for people.
fn report(plan: &Plan, what: u64, words: &[u64]) -> Outcome {
    let word = |place: usize| words.get(place).copied().unwrap_or(0);
    let step = || match plan.step_events.get(word(0) as usize) {
        Some(event) => format!("event {}", event.number()),
        None => "what comes after the schedule".to_owned(),
    };
    match what {
        outcome::CONFIRMED => Outcome::Confirmed { details: seen(plan, words) },
        outcome::NO_OVERLAP => not_confirmed(format!(
            "the accesses were reached together, but at addresses {:#x} and {:#x}",
            word(0),
            word(1)
        )),
        outcome::STALLED if word(3) != 0 => not_confirmed(format!(
            "on the way to {}, its thread waited for a lock that no thread released",
            step()
        )),
        outcome::STALLED if word(2) == 0 => {
            not_confirmed(format!("the thread of {} was not created in time", step()))
        }
        outcome::STALLED => not_confirmed(format!("the thread of {} did not get there", step())),
        outcome::ENDED => not_confirmed(format!("the thread of {} ended before it", step())),
        outcome::TAKEN => not_confirmed("a lock that was to be taken was free".to_owned()),
        _ => not_confirmed("the runtime could not follow the plan".to_owned()),
    }
}

/// What was seen when a plan was confirmed; a fragment.
fn seen(plan: &Plan, words: &[u64]) -> String {
    match plan.goal_kind {
        GoalKind::Together => {
            let address = words.first().copied().unwrap_or(0);
            format!(
                "both threads were stopped right before their accesses to {address:#x} at the same time"
            )
        }
        GoalKind::Blocked => {
            let count = words.len() / 3;
            format!("{count} threads waited for each other's locks, in a cycle")
        }
        GoalKind::Passed if plan.shown == Shown::NoOrder => {
            "the program ran both accesses in this schedule; that nothing orders them is proven, and \
             cannot be shown by stopping threads"
                .to_owned()
        }
        GoalKind::Passed if let Shown::UseOfFreed(called) = plan.shown => format!(
            "the program went through the whole schedule and used what was freed, which AddressSanitizer \
             calls {called}"
        ),
        GoalKind::Passed => "the program went through the whole schedule".to_owned(),
    }
}
