//! Whether what is written is well-formed, whatever was seen.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use proptest::prelude::*;
use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind, flag};

use super::{
    Count, How, InstrumentedCode, LockRecognizer, Role, VIRTUAL, WithLocks, came_compiled, order,
};
use crate::event_log::{Ending, Reader, Stream as _};
use crate::symbols::Symbols;

const CODE: u64 = 0x5555;

const ACQUIRE: Role = Role::Acquire(How::Fast);

fn update(address: u64, order: u8, value: u64, stored: u64) -> Event {
    let event = Event::new(Kind::AtomicUpdate, address, CODE);
    Event { order, value: Some(value), extra: Some(stored), ..event }
}

/// What a program's thread does with a lock.
#[derive(Clone, Copy, Debug)]
enum Step {
    Acquire,
    AcquireShared,
    Release,
    ReleaseShared,
    Downgrade,
    AcquireSlow,
    AcquireInternal,
}

const STEPS: [Step; 7] = [
    Step::Acquire,
    Step::AcquireShared,
    Step::Release,
    Step::ReleaseShared,
    Step::Downgrade,
    Step::AcquireSlow,
    Step::AcquireInternal,
];

fn locks(steps: &[(u32, u64, Step)]) -> Vec<(u32, Event)> {
    let mut recognizer = LockRecognizer::default();
    let mut rewritten = Vec::new();
    let mut out = |thread, event| rewritten.push((thread, event));
    for &(thread, lock, step) in steps {
        let acquire = update(lock, order::ACQUIRE, 0, 1);
        let release = update(lock, order::RELEASE, 1, 0);
        match step {
            Step::Acquire => recognizer.atomic(ACQUIRE, thread, acquire, &mut out),
            Step::AcquireShared => {
                recognizer.atomic(Role::AcquireShared(How::Fast), thread, acquire, &mut out);
            }
            Step::Release => recognizer.atomic(Role::Release, thread, release, &mut out),
            Step::ReleaseShared => {
                recognizer.atomic(Role::ReleaseShared, thread, release, &mut out);
            }
            Step::Downgrade => recognizer.atomic(Role::Downgrade, thread, release, &mut out),
            Step::AcquireSlow => {
                let event = Event::new(Kind::Lock, lock, CODE);
                recognizer.slow(ACQUIRE, thread, event, &mut out);
            }
            Step::AcquireInternal => {
                let event = Event::new(Kind::Lock, lock | VIRTUAL, CODE);
                recognizer.internal(thread, event, &mut out);
            }
        }
    }
    rewritten
}

/// The definition: at no moment has a lock an exclusive holder and any other, and who releases
/// holds. Says how many events of the program's own are left.
#[track_caller]
fn check_well_formed(events: &[(u32, Event)]) -> usize {
    let mut holders: FxHashMap<u64, Vec<(u32, bool)>> = FxHashMap::default();
    for (thread, event) in events {
        let hold = (*thread, event.flags & flag::SHARED != 0);
        let held = holders.entry(event.address).or_default();
        match event.kind {
            Kind::Lock => {
                assert!(held.iter().all(|other| other.1 && hold.1), "{event:?} among {held:?}");
                held.push(hold);
            }
            Kind::Unlock => {
                let place = held.iter().position(|other| *other == hold);
                held.remove(place.expect("who gives back holds"));
            }
            _ => assert_eq!(event.kind, Kind::Nothing),
        }
    }
    events.iter().filter(|(_, event)| event.code == CODE).count()
}

#[test]
fn sections_never_overlap_on_any_short_stream() {
    let choices: Vec<(u32, u64, Step)> =
        (0..2).flat_map(|thread| STEPS.map(|step| (thread, 8, step))).collect();
    for length in 1..=4_u32 {
        for number in 0..choices.len().pow(length) {
            let place = |index| number / choices.len().pow(index) % choices.len();
            let steps: Vec<_> = (0..length).map(|index| choices[place(index)]).collect();
            assert_eq!(check_well_formed(&locks(&steps)), steps.len());
        }
    }
}

proptest! {
    #![proptest_config(reweave_testkit::soak::config(300))]

    #[test]
    fn sections_never_overlap_on_drawn_streams(
        steps in prop::collection::vec((0..4_u32, 1..4_u64, prop::sample::select(&STEPS[..])), 0..200)
    ) {
        prop_assert_eq!(check_well_formed(&locks(&steps)), steps.len());
    }

    #[test]
    fn of_a_correct_program_nothing_is_left_out_or_made_up(
        choices in prop::collection::vec((0..4_u32, 0..3_usize), 0..200)
    ) {
        // One lock; who may not go on is left out, as a lock does it.
        let (mut writer, mut readers, mut steps) = (None, Vec::new(), Vec::new());
        for (thread, choice) in choices {
            let step = if writer == Some(thread) {
                writer = None;
                Step::Release
            } else if let Some(place) = readers.iter().position(|reader| *reader == thread) {
                readers.remove(place);
                Step::ReleaseShared
            } else if choice == 0 && writer.is_none() {
                readers.push(thread);
                Step::AcquireShared
            } else if writer.is_none() && readers.is_empty() {
                writer = Some(thread);
                if choice == 1 { Step::Acquire } else { Step::AcquireSlow }
            } else {
                continue;
            };
            steps.push((thread, 8, step));
        }
        let rewritten = locks(&steps);
        prop_assert_eq!(rewritten.len(), steps.len());
        prop_assert!(rewritten.iter().all(|(_, event)| event.kind != Kind::Nothing));
    }
}

/// What a thread does with a lock that the library keeps for itself, which starts at 64 and has its
/// word at 72, and what comes of it.
#[track_caller]
fn check_internal(steps: &[(u32, Kind)], expected: &[(u32, Kind)]) {
    let mut recognizer = LockRecognizer::default();
    let mut rewritten = Vec::new();
    let mut out = |thread, event: Event| rewritten.push((thread, event.address, event.kind));
    for &(thread, kind) in steps {
        match kind {
            Kind::Unlock => {
                recognizer.atomic(
                    Role::Release,
                    thread,
                    update(72, order::RELEASE, 1, 0),
                    &mut out,
                );
            }
            kind => recognizer.internal(thread, Event::new(kind, 64 | VIRTUAL, CODE), &mut out),
        }
    }
    let seen: Vec<_> = rewritten.iter().filter(|(.., kind)| *kind != Kind::Nothing).collect();
    assert!(seen.iter().all(|(_, address, _)| *address == 64), "{seen:?}");
    let seen: Vec<_> = seen.iter().map(|(thread, _, kind)| (*thread, *kind)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_lock_that_the_library_keeps_is_given_back_by_its_word() {
    use Kind::{Lock, LockRequest, Unlock};
    let turns =
        [(1, LockRequest), (1, Lock), (2, LockRequest), (1, Unlock), (2, Lock), (2, Unlock)];
    check_internal(&turns, &turns);
    // Who has it gets it again, and the last guard releases it.
    let again = [(1, LockRequest), (1, Lock), (1, LockRequest), (1, Lock), (1, Unlock)];
    check_internal(&again, &[(1, LockRequest), (1, Lock), (1, Unlock)]);
    // Given back where it was not seen, or never taken.
    check_internal(&[(1, Lock), (2, Lock)], &[(1, Lock), (1, Unlock), (2, Lock)]);
    check_internal(&[(1, Lock), (1, Unlock), (1, Lock)], &[(1, Lock), (1, Unlock), (1, Lock)]);
}

#[test]
fn who_has_a_lock_that_the_library_keeps_is_no_variable() {
    let (mut recognizer, mut rewritten) = (LockRecognizer::default(), Vec::new());
    let mut symbols = Symbols::new(Path::new("nowhere"));
    let mut out = |_, event: Event| rewritten.push(event.kind);
    recognizer.internal(1, Event::new(Kind::Lock, 64 | VIRTUAL, CODE), &mut out);
    for (kind, address) in
        [(Kind::Read, 76), (Kind::Write, 79), (Kind::AtomicStore, 64), (Kind::Write, 80)]
    {
        recognizer.rewrite(&mut symbols, 1, Event::new(kind, address, CODE), &mut out);
    }
    assert_eq!(rewritten, [Kind::Lock, Kind::Nothing, Kind::Nothing, Kind::Nothing, Kind::Write]);
}

/// The one event that an atomic access in a function of `role` becomes.
#[track_caller]
fn check(role: Role, event: Event, kind: Kind) {
    let mut rewritten = Vec::new();
    LockRecognizer::default().atomic(role, 1, event, &mut |_, event| rewritten.push(event));
    assert_eq!(rewritten.iter().map(|event| event.kind).collect::<Vec<_>>(), [kind], "{event:?}");
    assert_eq!((rewritten[0].code, rewritten[0].stored), (event.code, event.stored));
}

#[test]
fn an_attempt_that_fails_means_nothing() {
    let failed = Event { kind: Kind::AtomicFailed, stored: Some(3), ..update(8, 0, 1, 1) };
    let load = Event { kind: Kind::AtomicLoad, ..failed };
    for role in [Role::Acquire(How::Fast), Role::AcquireShared(How::Fast)] {
        check(role, failed, Kind::Nothing);
        check(role, load, Kind::Nothing);
    }
    // The slow path of a mutex, where it is seen: the mark of contention takes a free mutex only.
    check(ACQUIRE, update(8, order::ACQUIRE, 1, 2), Kind::Nothing);
    check(ACQUIRE, update(8, order::ACQUIRE, 0, 2), Kind::Lock);
    // Those of a lock for readers: bits that say who waits, a second reader, a writer before others.
    check(ACQUIRE, update(8, order::RELAXED, 1 << 30, 3 << 30), Kind::Nothing);
    check(Role::AcquireShared(How::Fast), update(8, order::ACQUIRE, 1, 2), Kind::Lock);
    check(ACQUIRE, update(8, order::ACQUIRE, 1 << 31, 1 << 31 | 0x3fff_ffff), Kind::Lock);
    // What the program does itself stays.
    check(Role::Other, failed, Kind::AtomicFailed);
    check(Role::Other, update(8, order::ACQUIRE, 0, 1), Kind::AtomicUpdate);
}

#[test]
fn who_tries_and_does_not_wait_finds_the_lock_taken() {
    const WRITER: u64 = super::HOLDERS;
    const WAITING: u64 = 1 << 30;
    let seen = |kind, value| Event { kind, stored: Some(3), ..update(8, 0, value, value) };
    for kind in [Kind::AtomicFailed, Kind::AtomicLoad] {
        for (role, value, expected) in [
            (Role::Acquire(How::Try), 1, Kind::LockBusy),
            (Role::Acquire(How::Try), 2, Kind::LockBusy),
            (Role::Acquire(How::Try), WRITER | WAITING, Kind::LockBusy),
            (Role::AcquireShared(How::Try), WRITER, Kind::LockBusy),
            (Role::AcquireShared(How::Try), 1 | WAITING, Kind::LockBusy),
            // It looks before it tries, or was too late.
            (Role::Acquire(How::Try), 0, Kind::Nothing),
            (Role::Acquire(How::Try), WAITING, Kind::Nothing),
            (Role::AcquireShared(How::Try), 0, Kind::Nothing),
            (Role::AcquireShared(How::Try), 5, Kind::Nothing),
        ] {
            check(role, seen(kind, value), expected);
        }
    }
}

/// What a slow take comes to, in a thread that did `before` to the lock: its code address, how it
/// counts there, and those of the request.
fn slow_acquire(std_wrappers: bool, before: &[(Kind, u64)]) -> Vec<(Kind, u64, Count)> {
    let mut recognizer = LockRecognizer::default();
    let mut rewritten = Vec::new();
    let mut out = |_, event: Event| rewritten.push((event.kind, event.code, Count::new(&event)));
    let access = |kind, code| Event { kind, code, ..update(8, order::ACQUIRE, 0, 1) };
    for &(kind, code) in before {
        recognizer.atomic(Role::AcquireShared(How::Fast), 1, access(kind, code), &mut out);
        if kind == Kind::AtomicUpdate {
            let release = Event { code: 9, ..update(8, order::RELEASE, 1, 0) };
            recognizer.atomic(Role::ReleaseShared, 1, release, &mut out);
        }
    }
    let role = Role::AcquireShared(How::Slow);
    if std_wrappers {
        recognizer.slow(role, 1, Event::new(Kind::LockRequest, 8, CODE), &mut out);
        recognizer.slow(role, 1, Event::new(Kind::Lock, 8, CODE), &mut out);
    } else {
        recognizer.atomic(role, 1, access(Kind::AtomicLoad, CODE), &mut out);
        recognizer.atomic(role, 1, access(Kind::AtomicUpdate, CODE), &mut out);
    }
    rewritten.split_off(rewritten.len() - 2)
}

#[test]
fn a_lock_is_taken_slowly_where_it_was_tried() {
    use Kind::{AtomicFailed, AtomicLoad, AtomicUpdate, Lock, LockRequest, Nothing};
    let failed = [(AtomicLoad, 1), (AtomicFailed, 2)];
    let with_last = Count::WithLast;
    assert_eq!(slow_acquire(true, &failed), [(LockRequest, 2, with_last), (Lock, 2, with_last)]);
    assert_eq!(slow_acquire(false, &failed), [(Nothing, 0, Count::One), (Lock, 2, with_last)]);
    // Not tried, since a look reported that it is held; where it is tried was seen before.
    let looked = [(AtomicLoad, 1), (AtomicUpdate, 2), (AtomicLoad, 1)];
    let expected = [(LockRequest, 2, Count::WithNext), (Lock, 2, Count::One)];
    assert_eq!(slow_acquire(true, &looked), expected);
    assert_eq!(slow_acquire(false, &looked), [(Nothing, 0, Count::One), (Lock, 2, Count::One)]);
    // Where it is tried was never seen.
    let expected = [(LockRequest, CODE, Count::One), (Lock, 0, Count::One)];
    assert_eq!(slow_acquire(true, &[(AtomicLoad, 1)]), expected);
    assert_eq!(slow_acquire(true, &[(AtomicLoad, 1), (AtomicLoad, 3)]), expected);
}

#[test]
fn a_lock_that_is_held_is_given_back_even_where_no_name_says_so() {
    let writer = (1 << 30) - 1;
    // How it was taken, what was found and stored, in which order, and whether that releases it.
    let cases = [
        (ACQUIRE, 1, 0, order::RELEASE, true),
        (ACQUIRE, 2, 0, order::RELEASE, true),
        (ACQUIRE, writer | 1 << 30, 1 << 30, order::RELEASE, true),
        (ACQUIRE, 1, 2, order::ACQUIRE, false),
        (ACQUIRE, 1, 0, order::RELAXED, false),
        (Role::AcquireShared(How::Fast), 3, 2, order::RELEASE, true),
        (Role::AcquireShared(How::Fast), 3, 4, order::RELEASE, false),
    ];
    for (role, seen, stored, order, releases) in cases {
        let mut recognizer = LockRecognizer::default();
        let mut rewritten = Vec::new();
        let mut out = |_, event: Event| rewritten.push(event.kind);
        recognizer.atomic(role, 1, update(8, order::ACQUIRE, 0, 1), &mut out);
        recognizer.atomic(Role::Other, 2, update(8, order, seen, stored), &mut out);
        recognizer.atomic(Role::Other, 1, update(8, order, seen, stored), &mut out);
        let last = if releases { Kind::Unlock } else { Kind::AtomicUpdate };
        assert_eq!(rewritten, [Kind::Lock, Kind::AtomicUpdate, last], "{seen:x} {stored:x}");
    }
}

#[test]
fn a_scope_sees_its_threads_end() {
    let mut recognizer = LockRecognizer::default();
    let mut rewritten = Vec::new();
    let mut out = |thread, event: Event| rewritten.push((thread, event.kind, event.address));
    let load = |address, value| Event {
        kind: Kind::AtomicLoad,
        value: Some(value),
        ..update(address, order::ACQUIRE, 0, 0)
    };
    recognizer.atomic(Role::ScopeCheck, 1, load(0x1018, 1), &mut out);
    let end = Event { value: None, extra: None, ..update(0x1010 | VIRTUAL, order::RELEASE, 0, 0) };
    recognizer.atomic(Role::Other, 2, end, &mut out);
    recognizer.atomic(Role::ScopeCheck, 1, load(0x1018, 1), &mut out);
    recognizer.atomic(Role::ScopeCheck, 1, load(0x1018, 0), &mut out);
    recognizer.atomic(Role::ScopeCheck, 1, load(0x1028, 0), &mut out);
    let apart = 0x1010 | VIRTUAL;
    let expected = [
        (1, Kind::AtomicLoad, 0x1018),
        (2, Kind::AtomicUpdate, apart),
        (1, Kind::Nothing, 0x1018),
        (1, Kind::AtomicLoad, apart),
        (1, Kind::AtomicLoad, 0x1028),
    ];
    assert_eq!(rewritten, expected);
}

#[test]
fn a_token_is_taken_where_it_was_given() {
    let mut recognizer = LockRecognizer::default();
    let mut rewritten = Vec::new();
    let mut out = |thread, event: Event| rewritten.push((thread, event.kind, event.address));
    let park = |start| Event::new(Kind::Park, start, CODE);
    recognizer.park(1, park(0x1000), &mut out);
    recognizer.atomic(Role::Unpark, 2, update(0x1028, order::RELEASE, 0, 1), &mut out);
    recognizer.park(1, park(0x1000), &mut out);
    recognizer.atomic(Role::Unpark, 2, update(0x1068, order::RELEASE, 0, 1), &mut out);
    recognizer.park(3, park(0x1040), &mut out);
    recognizer.park(4, park(0x1060), &mut out);
    let expected = [
        (1, Kind::Nothing, 0x1000),
        (2, Kind::AtomicUpdate, 0x1028),
        (1, Kind::AtomicUpdate, 0x1028),
        (2, Kind::AtomicUpdate, 0x1068),
        (3, Kind::AtomicUpdate, 0x1068),
        (4, Kind::Nothing, 0x1060),
    ];
    assert_eq!(rewritten, expected);
}

#[test]
fn a_run_that_panicked_is_seen_by_the_next() {
    let mut recognizer = LockRecognizer::default();
    let mut rewritten = Vec::new();
    let mut out = |thread, event: Event| rewritten.push((thread, event.kind, event.order));
    let once = |order| Event { order, ..Event::new(Kind::OnceDone, 8, CODE) };
    recognizer.once(1, once(order::BOTH), &mut out);
    recognizer.once(2, once(order::BOTH), &mut out);
    recognizer.once(2, once(order::RELEASE), &mut out);
    recognizer.once(3, once(order::ACQUIRE), &mut out);
    let expected = [
        (1, Kind::AtomicUpdate, order::ACQUIRE),
        (1, Kind::AtomicUpdate, order::RELEASE),
        (2, Kind::AtomicUpdate, order::ACQUIRE),
        (2, Kind::AtomicUpdate, order::RELEASE),
        (3, Kind::AtomicLoad, order::ACQUIRE),
    ];
    assert_eq!(rewritten, expected);
}

#[test]
fn addresses_at_the_end_of_all_are_addresses() {
    let mut recognizer = LockRecognizer::default();
    let mut rewritten = Vec::new();
    let mut out = |_, event: Event| rewritten.push((event.kind, event.address));
    let end = Event { value: None, extra: None, ..update(u64::MAX, order::RELEASE, 0, 0) };
    recognizer.atomic(Role::Other, 1, end, &mut out);
    recognizer.atomic(Role::Unpark, 1, update(0x1028, order::RELEASE, 0, 1), &mut out);
    for start in [0x1000, u64::MAX] {
        recognizer.park(2, Event::new(Kind::Park, start, CODE), &mut out);
    }
    let expected = [
        (Kind::AtomicUpdate, u64::MAX),
        (Kind::AtomicUpdate, 0x1028),
        (Kind::AtomicUpdate, 0x1028),
        (Kind::Nothing, u64::MAX),
    ];
    assert_eq!(rewritten, expected);
}

#[test]
fn how_a_recording_ended_is_known_behind_the_lift_too() {
    let cut = crate::event_log::single_frame(&[], &[], 0);
    let reader = Reader::new(&cut[..cut.len() - 1]).unwrap();
    let symbols = Symbols::new(Path::new("/nowhere"));
    let mut rewritten = WithLocks::new(reader, Rc::new(RefCell::new(symbols)));
    assert!(rewritten.next_event().unwrap().is_none());
    assert!(matches!(rewritten.ending(), Some(Ending::Broken(_))), "{:?}", rewritten.ending());
}

#[test]
fn units_of_the_standard_library_are_known_by_their_names() {
    let check = |unit: &str, expected: bool| assert_eq!(came_compiled(unit), expected, "{unit}");
    check("/rustc/5980/library/std/src/lib.rs/@/std.e282-cgu.0", true);
    check("/rust/deps/memchr-2.7.6/src/lib.rs/@/memchr.9642-cgu.0", true);
    check("/usr/src/rustc-1.95/library/alloc/src/lib.rs/@/alloc.1-cgu.0", true);
    check("/src/me/lib/rustlib/src/rust/library/std/src/lib.rs/@/std.1-cgu.0", false);
    check("src/bin/library/main.rs/@/e3ool0vg3sqbvmw", false);
}

#[test]
fn what_is_in_no_range_is_not_contained() {
    let internal = InstrumentedCode { is_rust: true, ranges: vec![2..4, 4..6, 9..10] };
    let inside: Vec<u64> = (0..12).filter(|&address| internal.contains(address)).collect();
    assert_eq!(inside, [2, 3, 4, 5, 9]);
    assert!(!InstrumentedCode::default().contains(0));
}

#[test]
fn a_file_that_cannot_be_read_has_no_units() {
    assert!(InstrumentedCode::read(Path::new("/nowhere/at/all")).is_none());
}

#[test]
fn a_device_without_an_end_is_not_read() {
    assert!(InstrumentedCode::read(Path::new("/dev/zero")).is_none());
}
