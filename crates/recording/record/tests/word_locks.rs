//! Words that are locks, and words that only look like one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use convert_support::{Logged, PARKING_QUEUE, about, access, converted, extra, global};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_format::{Format, write_to};
use reweave_runtime::wire::{Event, Kind, order};
use reweave_trace::{LockOp, Op};

use crate::convert_support;

/// The code address of an update that acquires.
const LOCK: u64 = 20;
/// The code address of a look at the word.
const LOOK: u64 = 22;
/// The code address of a store that releases.
const UNLOCK: u64 = 24;

fn atomic(kind: Kind, code: u64, order: u8, value: u64, stored: Option<u64>) -> Event {
    Event {
        size: 2,
        order,
        value: Some(value),
        extra: stored,
        ..Event::new(kind, global("m"), code)
    }
}

fn lock() -> Event {
    atomic(Kind::AtomicUpdate, LOCK, order::ACQUIRE, 0, Some(1))
}

fn failed() -> Event {
    atomic(Kind::AtomicFailed, LOCK, order::RELAXED, 1, None)
}

fn look(value: u64) -> Event {
    atomic(Kind::AtomicLoad, LOOK, order::RELAXED, value, None)
}

fn unlock() -> Event {
    atomic(Kind::AtomicStore, UNLOCK, order::RELEASE, 0, None)
}

fn read() -> Event {
    access(Kind::Read, global("counter"), None)
}

fn write() -> Event {
    access(Kind::Write, global("counter"), None)
}

/// Two threads that do what `events` say, between their start and their end.
fn run(events: &[Logged]) -> Vec<Logged> {
    let mut all = vec![(0, about(Kind::Fork, 1)), (0, about(Kind::Fork, 2))];
    all.extend(events);
    all
}

/// What the trace has of `events`, without where.
#[track_caller]
fn check(events: &[Logged], expected: Expect) {
    let (trace, _) = converted(&run(events));
    let mut text = Vec::new();
    write_to(&trace, &mut text, Format::Std).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines = text.lines().filter(|line| !line.contains("fork"));
    let lines = lines.map(|line| line.rsplit_once("|a.c").map_or(line, |(line, _)| line));
    expected.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

/// The word is no lock.
#[track_caller]
fn check_rejected(events: &[Logged]) {
    let (trace, _) = converted(&run(events));
    assert!(!trace.events().any(|(_, event)| matches!(event.op, Op::Lock(..))));
}

#[test]
fn sections_of_a_spin_lock_are_sections_of_a_lock() {
    check(
        &[(1, lock()), (1, write()), (1, unlock()), (2, lock()), (2, write()), (2, unlock())],
        expect![[r#"
            T1|ar.acquire(m)
            T1|acq(m)
            T1|w(counter)
            T1|rel(m)
            T2|ar.acquire(m)
            T2|acq(m)
            T2|w(counter)
            T2|rel(m)"#]],
    );
}

#[test]
fn who_spins_until_it_has_the_lock_asks_for_it() {
    check(
        &[
            (1, lock()),
            (2, failed()),
            (2, look(1)),
            (2, look(1)),
            (1, write()),
            (1, unlock()),
            (2, look(0)),
            (2, lock()),
            (2, write()),
            (2, unlock()),
        ],
        expect![[r#"
            T1|ar.acquire(m)
            T1|req(m)
            T1|acq(m)
            T1|aw.relaxed(m.taken_by_T1)
            T2|ar.relaxed(m.taken_by_T1)
            T2|ar.relaxed(m.taken_by_T1)
            T2|ar.relaxed(m.taken_by_T1)
            T1|w(counter)
            T1|aw.relaxed(m.taken_by_T1)
            T1|rel(m)
            T2|ar.acquire(m)
            T2|req(m)
            T2|acq(m)
            T2|aw.relaxed(m.taken_by_T2)
            T2|w(counter)
            T2|aw.relaxed(m.taken_by_T2)
            T2|rel(m)"#]],
    );
}

/// The code that waits for the only token of one semaphore takes one of two tokens of another.
#[test]
fn who_takes_one_of_two_tokens_waits_for_nobody() {
    let take = |name: &str, seen: u64| {
        let word = atomic(Kind::AtomicUpdate, LOCK, order::ACQUIRE, seen, Some(seen - 1));
        Event { address: global(name), ..word }
    };
    let give = |name: &str, left: u64| {
        let word = atomic(Kind::AtomicUpdate, UNLOCK, order::RELEASE, left, Some(left + 1));
        Event { address: global(name), ..word }
    };
    let looks = Event { address: global("ready"), ..look(0) };
    let sections = [
        (1, take("ready", 1)),
        (2, looks),
        (1, give("ready", 0)),
        (2, take("ready", 1)),
        (2, give("ready", 0)),
    ];
    let two = |thread| [(thread, take("m", 2)), (thread, give("m", 1))];
    let trace = converted(&run(&[&sections[..], &two(1), &two(2)].concat())).0;
    let names = trace.names();
    let asked: Vec<&str> = trace
        .events()
        .filter_map(|(_, event)| match event.op {
            Op::Lock(LockOp::Request, lock) => Some(names.locks.name(lock)),
            _ => None,
        })
        .collect();
    assert_eq!(asked, ["ready", "ready"]);
}

#[test]
fn setting_up_a_lock_while_it_is_used_stays_a_conflict() {
    check(
        &[
            (0, access(Kind::Write, global("m"), None)),
            (1, lock()),
            (1, unlock()),
            (2, lock()),
            (2, unlock()),
        ],
        expect![[r#"
            main|w(m)
            T1|ar.acquire(m)
            T1|acq(m)
            T1|rel(m)
            T2|ar.acquire(m)
            T2|acq(m)
            T2|rel(m)"#]],
    );
}

#[test]
fn who_goes_another_way_because_the_word_is_taken_shows_that_it_is_no_lock() {
    check_rejected(&[
        (1, lock()),
        (2, failed()),
        (2, write()),
        (1, unlock()),
        (2, lock()),
        (2, unlock()),
    ]);
    check_rejected(&[
        (1, lock()),
        (1, unlock()),
        (2, look(0)),
        (2, read()),
        (2, lock()),
        (2, unlock()),
    ]);
}

#[test]
fn a_lock_must_acquire_and_release() {
    let relaxed = |event: Event| Event { order: order::RELAXED, ..event };
    check_rejected(&[(1, lock()), (1, unlock()), (2, relaxed(lock())), (2, unlock())]);
    check_rejected(&[(1, lock()), (1, unlock()), (2, lock()), (2, relaxed(unlock()))]);
}

#[test]
fn a_word_that_says_more_than_whether_it_is_taken_is_no_lock() {
    let update = |seen, stored| atomic(Kind::AtomicUpdate, LOCK, order::BOTH, seen, Some(stored));
    // A ticket, a version.
    check_rejected(&[(1, update(0, 1)), (1, update(1, 2)), (2, update(2, 3)), (2, update(3, 4))]);
}

#[test]
fn a_word_that_another_thread_releases_is_no_lock() {
    check_rejected(&[(1, lock()), (2, unlock()), (2, lock()), (2, unlock())]);
    // And then its holder releases it, too: by a store or by an update.
    let exchange = atomic(Kind::AtomicUpdate, UNLOCK, order::BOTH, 1, Some(0));
    for release in [unlock(), exchange] {
        check_rejected(&[(1, lock()), (2, release), (1, unlock()), (2, lock()), (2, unlock())]);
    }
}

#[test]
fn a_word_that_is_also_accessed_plainly_is_no_lock() {
    let plain = |kind| access(kind, global("m"), None);
    for kind in [Kind::Read, Kind::Write] {
        check_rejected(&[(1, lock()), (1, unlock()), (2, lock()), (2, plain(kind)), (2, unlock())]);
    }
    let part = Event { size: 0, ..plain(Kind::Write) };
    check_rejected(&[(1, lock()), (1, part), (1, unlock()), (2, lock()), (2, unlock())]);
}

#[test]
fn a_holder_that_sees_that_others_wait_must_wake_them_next() {
    let mark = atomic(Kind::AtomicUpdate, LOCK, order::ACQUIRE, 1, Some(2));
    let exchange = atomic(Kind::AtomicUpdate, UNLOCK, order::RELEASE, 2, Some(0));
    let retry = atomic(Kind::AtomicUpdate, LOCK, order::ACQUIRE, 0, Some(2));
    let wake = Event { extra: Some(1), ..Event::new(Kind::FutexWake, global("m"), 30) };
    let sleep = Event::new(Kind::FutexWait, global("m"), 32);
    let events = |woken: &[Logged]| {
        let before = [(1, lock()), (2, mark), (2, sleep), (1, exchange)];
        let after = [(2, retry), (2, write()), (2, exchange), (1, write())];
        [&before[..], woken, &after].concat()
    };
    let (trace, _) = converted(&run(&events(&[(1, wake)])));
    let acquires =
        trace.events().filter(|(_, event)| matches!(event.op, Op::Lock(LockOp::Acquire, _)));
    assert_eq!(acquires.count(), 2);
    check_rejected(&events(&[]));
}

#[test]
fn memory_that_is_allocated_on_the_way_to_a_lock_changes_nothing_else() {
    let queue = |kind, address| Event::new(kind, address, PARKING_QUEUE);
    check(
        &[
            (1, lock()),
            (2, failed()),
            (2, extra(queue(Kind::Alloc, 0x9000), 64)),
            (2, Event { size: 2, ..queue(Kind::Write, 0x9000) }),
            (2, queue(Kind::Free, 0x9000)),
            (1, write()),
            (1, unlock()),
            (2, lock()),
            (2, write()),
            (2, unlock()),
        ],
        expect![[r#"
            T1|ar.acquire(m)
            T1|req(m)
            T1|acq(m)
            T1|aw.relaxed(m.taken_by_T1)
            T2|ar.relaxed(m.taken_by_T1)
            T1|w(counter)
            T1|aw.relaxed(m.taken_by_T1)
            T1|rel(m)
            T2|ar.acquire(m)
            T2|req(m)
            T2|acq(m)
            T2|aw.relaxed(m.taken_by_T2)
            T2|w(counter)
            T2|aw.relaxed(m.taken_by_T2)
            T2|rel(m)"#]],
    );
}

#[test]
fn of_reads_in_a_row_that_see_the_same_the_first_and_the_last_are_kept() {
    let flag = |value| Event { address: global("ready"), ..look(value) };
    let set = Event { address: global("ready"), value: Some(1), ..unlock() };
    check(
        &[
            (2, flag(0)),
            (2, flag(0)),
            (1, write()),
            (2, flag(0)),
            (2, flag(0)),
            (1, set),
            (2, flag(1)),
            (2, read()),
        ],
        expect![[r#"
            T2|ar.relaxed(ready)
            T1|w(counter)
            T2|ar.relaxed(ready)
            T1|aw.release(ready)
            T2|ar.relaxed(ready)
            T2|r(counter)"#]],
    );
}

#[test]
fn a_row_ends_where_what_it_reads_is_written() {
    let flag = |value| Event { address: global("ready"), ..look(value) };
    let set = |value| Event { address: global("ready"), value: Some(value), ..unlock() };
    check(
        &[(2, flag(0)), (2, flag(0)), (1, set(0)), (2, flag(0)), (2, flag(0))],
        expect![[r#"
            T2|ar.relaxed(ready)
            T2|ar.relaxed(ready)
            T1|aw.release(ready)
            T2|ar.relaxed(ready)
            T2|ar.relaxed(ready)"#]],
    );
}

/// What a thread may do to a word, given what the word holds.
fn step(choice: u8, held: u64) -> Event {
    let orders = [order::RELAXED, order::ACQUIRE, order::RELEASE, order::BOTH];
    let order = orders[usize::from(choice / 64)];
    let value = u64::from(choice / 8 % 3);
    match choice % 8 {
        0 | 1 if held == 0 => lock(),
        0 | 1 => atomic(Kind::AtomicFailed, LOCK, order::RELAXED, held, None),
        2 | 3 => unlock(),
        4 => atomic(Kind::AtomicUpdate, LOCK, order, held, Some(value)),
        5 => atomic(Kind::AtomicStore, UNLOCK, order, value, None),
        6 => look(held),
        _ => write(),
    }
}

/// By definition: what is wrong with taking the word of `events` for a lock.
fn objection(events: &[Logged]) -> Option<&'static str> {
    let mut holder = None;
    let mut free = None;
    let mut was_used = false;
    for (place, (thread, event)) in events.iter().enumerate() {
        let stored = match event.kind {
            Kind::AtomicUpdate => event.extra,
            Kind::AtomicStore => event.value,
            Kind::AtomicLoad | Kind::AtomicFailed => None,
            _ => continue,
        };
        let is_update = event.kind == Kind::AtomicUpdate;
        let next = events[place + 1..].iter().find(|(other, _)| other == thread);
        let goes_on = next.is_none_or(|(_, next)| next.address == event.address);
        match (holder, stored) {
            (Some(holder), None) if holder == *thread => {}
            (_, None) if goes_on => _ = free.get_or_insert(event.value),
            (_, None) => return Some("goes another way"),
            (None, Some(stored)) if is_update => {
                if *free.get_or_insert(event.value) != event.value || event.value == Some(stored) {
                    return Some("acquires what is not free");
                }
                if matches!(event.order, order::RELAXED | order::RELEASE) {
                    return Some("acquires without order");
                }
                holder = Some(*thread);
                was_used = true;
            }
            // A store sets up a lock that nobody has acquired yet.
            (None, Some(_)) if !was_used => free = Some(stored),
            (None, Some(_)) => return Some("stores without the lock"),
            (Some(by), Some(stored)) if by == *thread => {
                if Some(Some(stored)) == free {
                    if event.order < order::RELEASE {
                        return Some("releases without order");
                    }
                    holder = None;
                }
            }
            (Some(_), Some(stored)) if !is_update || Some(Some(stored)) == free || !goes_on => {
                return Some("changes the lock of another");
            }
            (Some(_), Some(_)) => {}
        }
    }
    None
}

#[test]
fn a_lock_may_be_set_up_more_than_once_before_it_is_used() {
    let events =
        [(1, unlock()), (1, unlock()), (1, lock()), (1, unlock()), (2, lock()), (2, unlock())];
    assert_eq!(objection(&events), None);
    let (trace, _) = converted(&run(&events));
    assert!(trace.events().any(|(_, event)| matches!(event.op, Op::Lock(LockOp::Acquire, _))));
}

proptest! {
    #[test]
    fn what_is_taken_for_a_lock_is_one_by_definition(
        choices in prop::collection::vec((1_u32..3, any::<u8>()), 0..12),
    ) {
        let mut held = 0;
        let events: Vec<Logged> = choices
            .iter()
            .map(|&(thread, choice)| {
                let event = step(choice, held);
                held = match event.kind {
                    Kind::AtomicUpdate => event.extra.unwrap(),
                    Kind::AtomicStore => event.value.unwrap(),
                    _ => held,
                };
                (thread, event)
            })
            .collect();
        let (trace, summary) = converted(&run(&events));
        let is_lock = trace.events().any(|(_, event)| matches!(event.op, Op::Lock(..)));
        prop_assert!(summary.impossible.is_empty(), "{:?}", summary.impossible);
        if is_lock {
            prop_assert_eq!(objection(&events), None);
        }
    }
}
