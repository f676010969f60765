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
fn of_attempts_in_a_row_the_first_of_each_section_is_kept() {
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
            T1|w(counter)
            T1|aw.relaxed(m.taken_by_T1)
            T1|rel(m)
            main|req(m)
            main|acq(m)
            main|aw.relaxed(m.taken_by_main)
            T2|ar.relaxed(m.taken_by_main)
            main|aw.relaxed(m.taken_by_main)
            main|rel(m)
            T2|w(counter)"#]],
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
            let is_busy = held.any(|(&(held, by, mode), _)| {
                held == lock && by != own && (!is_shared || mode == Mode::Exclusive)
            });
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

/// Threads that take, share, try and release two locks, and wait with one of them.
fn recording(choices: &[(u32, u8)]) -> Vec<Logged> {
    let locks = ["m", "ready"];
    let mut events = vec![(0, about(Kind::Fork, 1)), (0, about(Kind::Fork, 2))];
    let mut held: [Vec<(u32, bool)>; 2] = Default::default();
    for &(thread, choice) in choices {
        let which = usize::from(choice / 8 % 2);
        let (lock, held) = (locks[which], &mut held[which]);
        let is_shared = choice & 16 != 0;
        let shared = if is_shared { flag::SHARED } else { 0 };
        let own = held.iter().position(|&(holder, _)| holder == thread);
        let is_busy = held.iter().any(|&(_, shares)| !(shares && is_shared));
        let flagged = |event: Event| Event { flags: shared, ..event };
        match (choice % 8, own, is_busy) {
            (0..=3, None, false) => {
                held.push((thread, is_shared));
                events.push((thread, flagged(on(Kind::Lock, lock))));
            }
            (0..=4, None, true) => {
                let code = if is_shared { TRY_SHARED } else { TRY };
                events.push((thread, Event { code, ..flagged(on(Kind::LockBusy, lock)) }));
            }
            (5 | 6, Some(own), _) => {
                held.remove(own);
                events.push((thread, on(Kind::Unlock, lock)));
            }
            (4, Some(own), _) if !held[own].1 => {
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
        choices in prop::collection::vec((0_u32..3, any::<u8>()), 0..14),
    ) {
        let (trace, summary) = converted(&recording(&choices));
        prop_assert!(summary.impossible.is_empty(), "{:?}", summary.impossible);
        check_all_reorderings(&trace)?;
    }
}
