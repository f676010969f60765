//! Locks that threads found taken: in no reordering do they find them free.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::ControlFlow;

use convert_support::{Logged, about, access, converted, extra, global, on};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_base::{FxHashMap, Id as _};
use reweave_format::{Format, write_to};
use reweave_oracle::reachable::explore;
use reweave_runtime::wire::{Event, Kind, flag};
use reweave_testkit::soak;
use reweave_trace::views::Mode;
use reweave_trace::{EventId, LockId, LockOp, Op, ThreadId, Trace};

use crate::convert_support;

/// The code address of an attempt to take a lock alone, and of one to share it.
const TRY: u64 = 50;
const TRY_SHARED: u64 = 52;

fn busy(lock: &str) -> Event {
    Event { code: TRY, ..on(Kind::LockBusy, lock) }
}

fn write() -> Event {
    access(Kind::Write, global("counter"), None)
}

#[track_caller]
fn check(events: &[Logged], expected: Expect) {
    let mut all = vec![(0, about(Kind::Fork, 1)), (0, about(Kind::Fork, 2))];
    all.extend(events);
    let mut text = Vec::new();
    write_to(&converted(&all).0, &mut text, Format::Std).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines = text.lines().filter(|line| !line.contains("fork"));
    let lines = lines.map(|line| line.rsplit_once("|a.c").map_or(line, |(line, _)| line));
    expected.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn an_attempt_falls_into_the_section_that_it_lost_to() {
    check(
        &[
            (1, on(Kind::Lock, "m")),
            (2, busy("m")),
            (1, write()),
            (2, write()),
            (2, busy("m")),
            (1, on(Kind::Unlock, "m")),
            (2, on(Kind::Lock, "m")),
            (2, on(Kind::Unlock, "m")),
        ],
        expect![[r#"
            T1|req(m)
            T1|acq(m)
            T1|aw.relaxed(m.taken_by_T1)
            T2|ar.relaxed(m.taken_by_T1)
            T1|w(counter)
            T2|w(counter)
            T2|ar.relaxed(m.taken_by_T1)
            T1|aw.relaxed(m.taken_by_T1)
            T1|rel(m)
            T2|req(m)
            T2|acq(m)
            T2|aw.relaxed(m.taken_by_T2)
            T2|aw.relaxed(m.taken_by_T2)
            T2|rel(m)"#]],
    );
}

#[test]
fn attempts_in_a_row_fall_into_the_sections_that_they_lost_to() {
    check(
        &[
            (1, on(Kind::Lock, "m")),
            (2, busy("m")),
            (2, busy("m")),
            (1, write()),
            (2, busy("m")),
            (1, on(Kind::Unlock, "m")),
            (0, on(Kind::Lock, "m")),
            (2, busy("m")),
            (2, busy("m")),
            (0, on(Kind::Unlock, "m")),
            (2, write()),
        ],
        expect![[r#"
            T1|req(m)
            T1|acq(m)
            T1|aw.relaxed(m.taken_by_T1)
            T2|ar.relaxed(m.taken_by_T1)
            T2|ar.relaxed(m.taken_by_T1)
            T1|w(counter)
            T2|ar.relaxed(m.taken_by_T1)
            T1|aw.relaxed(m.taken_by_T1)
            T1|rel(m)
            main|req(m)
            main|acq(m)
            main|aw.relaxed(m.taken_by_main)
            T2|ar.relaxed(m.taken_by_main)
            T2|ar.relaxed(m.taken_by_main)
            main|aw.relaxed(m.taken_by_main)
            main|rel(m)
            T2|w(counter)"#]],
    );
}

/// How many events the trace of `events` has, with the forks.
fn count(events: &[Logged]) -> usize {
    converted(events).0.len()
}

#[test]
fn of_many_attempts_in_a_row_a_few_are_kept() {
    let row = |between: &[Logged]| {
        let mut events = vec![(1, on(Kind::Lock, "m")), (1, on(Kind::Lock, "ready"))];
        for _ in 0..50 {
            events.extend([(2, busy("m")), (2, busy("ready"))]);
            events.extend(between);
        }
        events.extend([(1, on(Kind::Unlock, "ready")), (1, on(Kind::Unlock, "m"))]);
        count(&events)
    };
    // Eight at each lock, and the sections of eight events.
    assert_eq!(row(&[]), 2 * 8 + 10);
    // What no other thread can see does not interrupt the row.
    assert_eq!(row(&[(2, access(Kind::Write, global("counter"), None))]), 2 * 8 + 10);
    assert_eq!(row(&[(2, on(Kind::Signal, "b|r"))]), 2 * 50 + 50 + 10);
}

#[test]
fn an_empty_semaphore_is_looked_at_a_few_times() {
    let empty = Event { flags: flag::TRY | flag::TIMED_OUT, ..on(Kind::Receive, "m") };
    let mut events = vec![(1, on(Kind::SemaphoreTake, "m"))];
    events.extend([(2, empty); 50]);
    events.push((1, on(Kind::SemaphorePost, "m")));
    events.extend([(2, empty); 50]);
    assert_eq!(count(&events), 4 + 2 * 8);
}

#[test]
fn who_shares_a_lock_stays_behind_who_waits_for_it() {
    let shared = |event: Event| Event { flags: flag::SHARED, ..event };
    check(
        &[
            (1, shared(on(Kind::Lock, "m"))),
            (2, on(Kind::LockRequest, "m")),
            (1, shared(busy("m"))),
            (1, on(Kind::Unlock, "m")),
            (2, on(Kind::Lock, "m")),
            (2, on(Kind::Unlock, "m")),
        ],
        expect![[r#"
            T1|req(m)
            T1|racq(m)
            T1|aw.relaxed(m.taken_by_T1)
            T2|aw.relaxed(m.taken_by_T2)
            T2|wreq(m)
            T1|ar.relaxed(m.taken_by_T2)
            T1|aw.relaxed(m.taken_by_T1)
            T1|rrel(m)
            T2|acq(m)
            T2|aw.relaxed(m.taken_by_T2)
            T2|aw.relaxed(m.taken_by_T2)
            T2|rel(m)"#]],
    );
}

#[test]
fn an_attempt_that_was_seen_before_the_acquire_that_it_lost_to_comes_after_it() {
    check(
        &[
            (2, busy("m")),
            (1, on(Kind::Lock, "m")),
            (1, on(Kind::Unlock, "m")),
            (2, on(Kind::Lock, "m")),
            (2, on(Kind::Unlock, "m")),
        ],
        expect![[r#"
            T1|req(m)
            T1|acq(m)
            T1|aw.relaxed(m.taken_by_T1)
            T1|aw.relaxed(m.taken_by_T1)
            T1|rel(m)
            T2|ar.relaxed(m.taken_by_T1)
            T2|req(m)
            T2|acq(m)
            T2|aw.relaxed(m.taken_by_T2)
            T2|aw.relaxed(m.taken_by_T2)
            T2|rel(m)"#]],
    );
}

#[test]
fn locks_that_nobody_found_taken_are_as_they_were() {
    check(
        &[
            (1, on(Kind::Lock, "m")),
            (2, on(Kind::Lock, "ready")),
            (1, on(Kind::Unlock, "m")),
            // Its own section keeps it from the lock, in whatever order.
            (2, busy("ready")),
            (2, on(Kind::Unlock, "ready")),
            // Nobody was seen to have it.
            (2, busy("counter")),
        ],
        expect![[r#"
            T1|req(m)
            T1|acq(m)
            T2|req(ready)
            T2|acq(ready)
            T2|aw.relaxed(ready.taken_by_T2)
            T1|rel(m)
            T2|aw.relaxed(ready.taken_by_T2)
            T2|rel(ready)"#]],
    );
}

/// Who has a lock, and how often.
type Holds = FxHashMap<(LockId, ThreadId, Mode), u32>;

fn note(holds: &mut Holds, thread: ThreadId, op: Op) {
    let Op::Lock(op, lock) = op else { return };
    let (mode, is_acquire) = match op {
        LockOp::Acquire => (Mode::Exclusive, true),
        LockOp::AcquireShared => (Mode::Shared, true),
        LockOp::Release => (Mode::Exclusive, false),
        LockOp::ReleaseShared => (Mode::Shared, false),
        LockOp::Request | LockOp::RequestExclusive => return,
    };
    let count = holds.entry((lock, thread, mode)).or_default();
    *count = if is_acquire { *count + 1 } else { *count - 1 };
}

/// The lock that `event` found taken, and whether it would have shared it.
fn attempt(trace: &Trace, event: EventId) -> Option<(LockId, bool)> {
    let origins = trace.origins()?;
    let code = origins.codes()[origins.get(event)?.code].offset;
    let var = trace.event(event).op.var()?;
    let lock = trace.names().locks.get(trace.names().tried_lock(var)?)?;
    matches!(code, TRY | TRY_SHARED).then_some((lock, code == TRY_SHARED))
}

/// By definition: an attempt can fail only while another thread has the lock in a way that excludes it.
fn check_all_reorderings(trace: &Trace) -> Result<(), TestCaseError> {
    const STATES_MAX: usize = 20_000;
    let mut wrong = None;
    explore(trace, STATES_MAX, |state| {
        let mut holds = Holds::default();
        for &event in state.path {
            note(&mut holds, trace.event(event).thread, trace.event(event).op);
        }
        for event in (0..trace.names().threads.len())
            .filter_map(|thread| state.next(ThreadId::from_index(thread)))
        {
            let Some((lock, is_shared)) = attempt(trace, event) else { continue };
            let own = trace.event(event).thread;
            let mut held = holds.iter().filter(|&(_, &count)| count > 0);
            let is_held = held.any(|(&(held, by, mode), _)| {
                held == lock && by != own && (!is_shared || mode == Mode::Exclusive)
            });
            // What says that a thread waits comes just before its request.
            let is_waited_for = trace.events().any(|(request, it)| {
                let at = trace.position(request) as usize;
                let own_events = trace.thread_events(it.thread);
                let has_run =
                    |at: usize| own_events.get(at).is_some_and(|id| state.path.contains(id));
                it.op == Op::Lock(LockOp::RequestExclusive, lock)
                    && it.thread != own
                    && has_run(at - 1)
                    && !has_run(at + 1)
            });
            let is_busy = is_held || is_shared && is_waited_for;
            if state.may_run(event) && !is_busy {
                wrong = Some((state.path.to_vec(), event));
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    prop_assert!(wrong.is_none(), "the attempt does not fail here: {wrong:?}");
    Ok(())
}

/// Threads that take, share, try and release two locks, wait for them, and wait with one of them.
fn recording(choices: &[(u32, u8)]) -> Vec<Logged> {
    let locks = ["m", "ready"];
    let mut events = vec![(0, about(Kind::Fork, 1)), (0, about(Kind::Fork, 2))];
    let mut held: [Vec<(u32, bool)>; 2] = Default::default();
    let mut waiting: FxHashMap<u32, usize> = FxHashMap::default();
    for &(thread, choice) in choices {
        let which = usize::from(choice / 8 % 2);
        if let Some(&which) = waiting.get(&thread) {
            // It goes on once it has the lock.
            if held[which].is_empty() {
                waiting.remove(&thread);
                held[which].push((thread, false));
                events.push((thread, on(Kind::Lock, locks[which])));
            }
            continue;
        }
        let (lock, is_shared) = (locks[which], choice & 16 != 0);
        let held = &mut held[which];
        let own = held.iter().position(|&(holder, _)| holder == thread);
        let is_waited_for = waiting.values().any(|&wanted| wanted == which);
        let is_busy = held
            .iter()
            .any(|&(holder, shares)| holder != thread && (!shares || !is_shared || is_waited_for));
        let is_own_alone = own.is_some_and(|own| !held[own].1);
        let shared = if is_shared { flag::SHARED } else { 0 };
        let flagged = |event: Event| Event { flags: shared, ..event };
        match choice % 8 {
            0..=2 if own.is_none() && !is_busy && !held.iter().any(|it| !(it.1 && is_shared)) => {
                held.push((thread, is_shared));
                events.push((thread, flagged(on(Kind::Lock, lock))));
            }
            0..=2 if own.is_none() && !is_shared && is_busy => {
                waiting.insert(thread, which);
                events.push((thread, on(Kind::LockRequest, lock)));
            }
            3 | 4 if is_busy || own.is_some() && is_shared && is_waited_for && !is_own_alone => {
                let code = if is_shared { TRY_SHARED } else { TRY };
                events.push((thread, Event { code, ..flagged(on(Kind::LockBusy, lock)) }));
            }
            5 | 6 if let Some(own) = own => {
                held.remove(own);
                events.push((thread, on(Kind::Unlock, lock)));
            }
            7 if is_own_alone && !is_waited_for => {
                // A wait that ends at once, and took and released the lock meanwhile.
                let of_lock = |kind| extra(on(kind, "counter"), global(lock));
                events.push((thread, of_lock(Kind::Wait)));
                let wake = Event { flags: flag::TIMED_OUT, ..of_lock(Kind::Wake) };
                events.push((thread, wake));
            }
            _ => events.push((thread, write())),
        }
    }
    events
}

proptest! {
    #![proptest_config(soak::config(256))]

    #[test]
    fn attempts_fail_in_every_reordering(
        choices in prop::collection::vec((0_u32..3, any::<u8>()), 0..18),
    ) {
        let (trace, summary) = converted(&recording(&choices));
        prop_assert!(summary.impossible.is_empty(), "{:?}", summary.impossible);
        check_all_reorderings(&trace)?;
    }
}
