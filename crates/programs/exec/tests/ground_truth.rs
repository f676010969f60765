//! What is predicted from the trace of one run happens in another run of the same program.
//!
//! Random small programs are run and their races and deadlocks predicted. A race must come about
//! when the program follows the schedule that shows it; a deadlock must be one of the endings of
//! the program, all of which are known.

use crate::common;

use common::code;
use common::generate::{Shape, programs};
use proptest::prelude::*;
use reweave_deadlocks::exact::{Reorderings, deadlocks};
use reweave_exec::scheduler::{Random, View};
use reweave_exec::{
    Awaited, Blocked, Code, Ending, FaultKind, Layers, Limits, Run, Scheduler, Settings,
    ThreadNumber, explore, run,
};
use reweave_races::exact::races;
use reweave_reorder::{Answer, Engine, Query};
use reweave_testkit::soak;
use reweave_trace::{ConditionOp, EventId, LockOp, Op, Reordering, ThreadOp, Trace};

const SHORT: Settings = Settings { steps_max: 2_000, threads_max: 200, layers: Layers::Events };

const SHAPE: Shape = Shape { statements_max: 14, spins: false, assumptions: false, ..Shape::SMALL };

/// Runs the threads with these names, one step each.
struct Follow<'a> {
    names: Vec<&'a str>,
}

impl Scheduler for Follow<'_> {
    fn pick(&mut self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize> {
        let name = self.names.get(usize::try_from(view.steps_count()).ok()?)?;
        ready.iter().position(|&thread| view.name(thread) == *name)
    }
}

/// The events that `reordering` runs, in its order.
fn events(trace: &Trace, reordering: &Reordering) -> Vec<EventId> {
    let base = trace.events().map(|(id, _)| id).filter(|&id| trace.is_in_prefix(reordering, id));
    base.chain(reordering.schedule.iter().copied()).collect()
}

/// The run of `code` that does `events` of `observed`, then a step of the thread of `last`.
fn follow(code: &Code, observed: &Run, events: &[EventId], last: EventId) -> Run {
    let trace = &observed.trace;
    let mut names = Vec::new();
    for &id in events {
        let event = trace.event(id);
        if is_step(event.op) {
            names.push(trace.names().threads.name(event.thread));
        }
        names.extend(fails_after(observed, id));
    }
    names.push(trace.names().threads.name(trace.event(last).thread));
    run(code, &mut Follow { names }, &SHORT)
}

/// The thread that took a step of which the trace says nothing, since it failed, after `event`: the
/// last of its thread, or the one that started it.
fn fails_after(observed: &Run, event: EventId) -> Option<&str> {
    let trace = &observed.trace;
    let last_of = |thread| {
        let mut events = trace.events().rev();
        events.find(|(_, event)| {
            event.thread == thread || event.op == Op::Thread(ThreadOp::Fork, thread)
        })
    };
    let silent = observed
        .faults
        .iter()
        .filter(|fault| !matches!(fault.kind, FaultKind::Assertion | FaultKind::DivisionByZero));
    let mut failed = silent.map(|fault| fault.thread.as_str());
    failed.find(|name| {
        let thread = trace.names().threads.get(name).expect("the thread was there");
        last_of(thread).is_some_and(|(id, _)| id == event)
    })
}

/// Whether it takes a step: a wait goes with the release before it, and a request is what stands
/// for an acquire that never came.
const fn is_step(op: Op) -> bool {
    !matches!(op, Op::Condition(ConditionOp::Wait, _) | Op::Lock(LockOp::Request, _))
}

/// What `events` of `trace` do, however they are numbered.
fn spelled(trace: &Trace, events: impl Iterator<Item = EventId>) -> Vec<(String, Option<i64>)> {
    events
        .filter(|&id| is_step(trace.event(id).op))
        .map(|id| (trace.spell(id), trace.value(id)))
        .collect()
}

/// That the accesses `first` and `second` of `trace` are both next after `events`.
#[track_caller]
fn comes_about(code: &Code, observed: &Run, events: &[EventId], pair: [EventId; 2]) {
    let trace = &observed.trace;
    let expected = spelled(trace, events.iter().copied());
    for access in pair {
        let run = follow(code, observed, events, access);
        let mut done = spelled(&run.trace, run.trace.events().map(|(id, _)| id));
        let (last, _) = done.pop().expect("at least the access");
        assert_eq!(done, expected);
        // The swap may now find another value, and so be another operation.
        let place = |spelled: &str| spelled.rsplit('(').next().map(str::to_owned);
        assert_eq!(place(&last), place(&trace.spell(access)));
        let line = |trace: &Trace, id| trace.names().location(trace.event(id).site).to_owned();
        let last = EventId::from_number(run.trace.len() as u32).expect("there is an event");
        assert_eq!(line(&run.trace, last), line(trace, access));
    }
}

proptest! {
    #![proptest_config(soak::config(150))]

    #[test]
    fn predicted_races_come_about(text in programs(SHAPE), seed: u64) {
        let code = code(&text);
        let run = run(&code, &mut Random::new(seed), &SHORT);
        let engine = Engine::new(&run.trace);
        for race in races(&run.trace).pairs {
            let pair = [race.first, race.second];
            let Answer::Feasible(reordering) = engine.solve(&Query::enabled(&pair)) else {
                panic!("{race:?} is shown by a reordering");
            };
            comes_about(&code, &run, &events(&run.trace, &reordering), pair);
        }
    }

    #[test]
    fn random_runs_end_as_all_runs_do(text in programs(SHAPE)) {
        let code = code(&text);
        let exploration = explore(&code, &Limits { states_max: 20_000, ..Limits::default() });
        prop_assume!(exploration.complete);
        for seed in 0..20 {
            let run = run(&code, &mut Random::new(seed), &SHORT);
            let outcome = run.outcome(&code);
            prop_assert!(exploration.outcomes.iter().any(|(other, _)| *other == outcome));
        }
    }
}

proptest! {
    // Few programs can deadlock.
    #![proptest_config(soak::config(3000))]

    #[test]
    fn predicted_deadlocks_are_endings(
        text in programs(Shape { many_sections: true, unpaired_locks: false, ..SHAPE }),
        seed: u64,
    ) {
        let code = code(&text);
        let run = run(&code, &mut Random::new(seed), &SHORT);
        let settings = reweave_analysis::Settings { all: true, ..Default::default() };
        let predicted = deadlocks(&reweave_analysis::Subject::new(&run.trace), Reorderings::All, &settings).found;
        if predicted.is_empty() {
            return Ok(());
        }
        let exploration = explore(&code, &Limits { states_max: 20_000, ..Limits::default() });
        prop_assume!(exploration.complete);
        for deadlock in predicted {
            let waiting: Vec<Blocked> =
                deadlock.cycle.iter().map(|&acquire| blocked(&run.trace, acquire)).collect();
            let shows = |ending: &Ending| match ending {
                Ending::Deadlock(blocked) => waiting.iter().all(|one| blocked.contains(one)),
                _ => false,
            };
            prop_assert!(
                exploration.outcomes.iter().any(|(outcome, _)| shows(&outcome.ending)),
                "{:?}", waiting
            );
        }
    }
}

fn blocked(trace: &Trace, acquire: EventId) -> Blocked {
    let event = trace.event(acquire);
    let Op::Lock(LockOp::Acquire | LockOp::Request, lock) = event.op else {
        panic!("a deadlock is of acquires")
    };
    let line = trace.names().location(event.site).rsplit(':').next();
    Blocked {
        thread: trace.names().threads.name(event.thread).to_owned(),
        awaited: Awaited::Lock(trace.names().locks.name(lock).to_owned()),
        line: line.and_then(|line| line.parse().ok()).expect("a location ends in its line"),
    }
}

#[test]
fn a_deadlock_that_was_missed_is_predicted_and_is_an_ending() {
    let code = code(
        "shared x; lock m; lock n;
         thread a { sync (m) { sync (n) { x = 1; } } }
         thread b { sync (n) { sync (m) { x = 2; } } }",
    );
    let all = explore(&code, &Limits::default());
    assert_eq!(all.outcomes.len(), 3);
    let finished = (0..100)
        .map(|seed| run(&code, &mut Random::new(seed), &SHORT))
        .find(|run| run.ending == Ending::Finished)
        .expect("a run that ends");
    let found = deadlocks(
        &reweave_analysis::Subject::new(&finished.trace),
        Reorderings::All,
        &reweave_analysis::Settings::default(),
    )
    .found;
    assert_eq!(found.len(), 1);
}
