//! What each recorded event becomes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::convert_support;

use convert_support::{Logged, about, access, converted, converted_with, extra, global, on};
use expect_test::{Expect, expect};
use reweave_format::{Format, write_to};
use reweave_record::convert::Kept;
use reweave_runtime::wire::{Event, Kind, channel, flag, handle};
use reweave_trace::EventId;

/// The trace as text, then what the summary has to say.
#[track_caller]
fn check(events: &[Logged], expected: Expect) {
    let (trace, summary) = converted(events);
    let mut text = Vec::new();
    write_to(&trace, &mut text, Format::Std).unwrap();
    let mut text = String::from_utf8(text).unwrap();
    for format in [Format::Columns, Format::JsonLines] {
        write_to(&trace, &mut Vec::new(), format).unwrap();
    }
    for (why, count) in &summary.impossible {
        text.push_str(&format!("left out {count}: {why}\n"));
    }
    if !summary.unforked.is_empty() {
        text.push_str(&format!("not forked: {:?}\n", summary.unforked));
    }
    expected.assert_eq(&text);
}

fn flagged(event: Event, flags: u16) -> Event {
    Event { flags, ..event }
}

#[test]
fn a_counter_under_a_lock() {
    let counter = global("counter");
    let stored = |event: Event, value| Event { stored: Some(value), ..event };
    check(
        &[
            (0, about(Kind::Begin, 0)),
            (0, about(Kind::Fork, 1)),
            (0, on(Kind::LockRequest, "m")),
            (0, on(Kind::Lock, "m")),
            (1, about(Kind::Begin, 1)),
            (0, access(Kind::Read, counter, Some(0))),
            (0, access(Kind::Write, counter, None)),
            (1, on(Kind::LockRequest, "m")),
            (0, stored(on(Kind::Unlock, "m"), 1)),
            (1, on(Kind::Lock, "m")),
            (1, access(Kind::Read, counter, Some(1))),
            (1, access(Kind::Write, counter, None)),
            (1, stored(on(Kind::Unlock, "m"), 2)),
            (1, about(Kind::End, 1)),
            (0, about(Kind::Join, 1)),
        ],
        expect![[r#"
            main|fork(T1)|a.c:3
            main|req(m)|a.c:9
            main|acq(m)|a.c:9
            main|r(counter)|a.c:7|0
            main|w(counter)|a.c:7|1
            T1|req(m)|a.c:9
            main|rel(m)|a.c:9
            T1|acq(m)|a.c:9
            T1|r(counter)|a.c:7|1
            T1|w(counter)|a.c:7|2
            T1|rel(m)|a.c:9
            main|join(T1)|a.c:3
        "#]],
    );
}

#[test]
fn a_wide_access_is_an_event_per_cell_with_its_part_of_the_value() {
    let wide = Event { size: 3, ..access(Kind::Read, 0x1040, Some(0x11_2233_4455_6677)) };
    let narrow = Event { size: 1, ..access(Kind::Write, 0x1044, None) };
    let next = Event { stored: Some(0xffff), ..about(Kind::End, 1) };
    check(
        &[(0, wide), (1, narrow), (1, next)],
        expect![[r#"
            main|r(counter)|a.c:7|1146447479
            main|r(counter+4)|a.c:7|8755
            main|r(counter+6)|a.c:7|17
            T1|w(counter+4)|a.c:7|65535
            not forked: [1]
        "#]],
    );
}

#[test]
fn atomics_keep_their_orders_and_a_failed_exchange_is_a_load() {
    let ready = global("ready");
    let atomic = |kind, order, value| Event { order, ..access(kind, ready, Some(value)) };
    check(
        &[
            (0, atomic(Kind::AtomicStore, 3, 1)),
            (1, atomic(Kind::AtomicLoad, 2, 1)),
            (1, extra(atomic(Kind::AtomicUpdate, 5, 1), 2)),
            (1, atomic(Kind::AtomicFailed, 0, 2)),
            (1, Event { order: 4, ..about(Kind::Fence, 0) }),
        ],
        expect![[r#"
            main|aw.release(ready)|a.c:7|1
            T1|ar.acquire(ready)|a.c:7|1
            T1|arw(ready)|a.c:7|2
            T1|ar.relaxed(ready)|a.c:7|2
            T1|fence(acqrel)|a.c:3
            not forked: [1]
        "#]],
    );
}

#[test]
fn waits_are_woken_by_notifies_and_by_nothing_else() {
    let wait = extra(on(Kind::Wait, "ready"), global("m"));
    let wake = extra(on(Kind::Wake, "ready"), global("m"));
    check(
        &[
            (0, on(Kind::Lock, "m")),
            (0, wait),
            (1, on(Kind::Signal, "ready")),
            (0, wake),
            (0, wait),
            (0, wake),
            (0, wait),
            (0, flagged(wake, flag::TIMED_OUT)),
            (0, wait),
            (1, on(Kind::Broadcast, "ready")),
            (0, wake),
            (0, on(Kind::Unlock, "m")),
        ],
        expect![[r#"
            main|req(m)|a.c:9
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
            main|wait(ready)|a.c:9
            T1|notify(ready)|a.c:9
            main|wake(ready)|a.c:9
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
            main|wait(ready)|a.c:9
            main|timeout(ready)|a.c:9
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
            main|wait(ready)|a.c:9
            main|timeout(ready)|a.c:9
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
            main|wait(ready)|a.c:9
            T1|notifyall(ready)|a.c:9
            main|wake(ready)|a.c:9
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
            not forked: [1]
        "#]],
    );
}

#[test]
fn a_block_that_is_found_by_a_pointer_that_nobody_wrote_has_no_end() {
    let (block, head) = (0x8000, global("ready"));
    let pointer = Event { size: 3, ..access(Kind::Read, head, Some(block)) };
    let link = Event { size: 3, stored: None, ..access(Kind::AtomicStore, head, Some(block)) };
    for (is_written, first) in [(true, link), (false, about(Kind::Stored, 0))] {
        let events = [
            (0, extra(about(Kind::Alloc, block), 16)),
            (0, access(Kind::Write, block, None)),
            (0, first),
            (0, about(Kind::Fork, 1)),
            (0, about(Kind::Fork, 2)),
            (1, pointer),
            (1, access(Kind::Read, block, Some(0))),
            (2, about(Kind::Free, block)),
        ];
        let (trace, _) = converted(&events);
        let mut text = Vec::new();
        write_to(&trace, &mut text, Format::Std).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.contains("free("), is_written, "{text}");
    }
}

#[test]
fn waits_that_do_not_last_for_ever_are_marked() {
    let wait = extra(on(Kind::Wait, "ready"), global("m"));
    check(
        &[
            (0, on(Kind::Lock, "m")),
            (0, flagged(wait, flag::TIMED_OUT)),
            (0, flagged(extra(on(Kind::Wake, "ready"), global("m")), flag::TIMED_OUT)),
            (0, flagged(wait, flag::ASSUMED)),
        ],
        expect![[r#"
            main|req(m)|a.c:9
            main|acq(m)|a.c:9
            main|timed|a.c:9
            main|rel(m)|a.c:9
            main|wait(ready)|a.c:9
            main|timeout(ready)|a.c:9
            main|acq(m)|a.c:9
            main|timed|a.c:9
            main|rel(m)|a.c:9
            main|wait(ready)|a.c:9
        "#]],
    );
}

#[test]
fn whoever_may_have_written_unseen_before_it_waited_did_so_before_the_wait() {
    let wait = extra(on(Kind::Wait, "ready"), global("m"));
    let wake = extra(on(Kind::Wake, "ready"), global("m"));
    let counter = global("counter");
    let written = Event { order: 0, ..access(Kind::AtomicStore, counter, Some(1)) };
    let unexplained = Event { order: 2, ..access(Kind::AtomicLoad, counter, Some(7)) };
    check(
        &[
            (0, about(Kind::Fork, 1)),
            (1, written),
            (0, on(Kind::Lock, "m")),
            (0, wait),
            (0, on(Kind::FutexWait, "ready")),
            (1, unexplained),
            (1, on(Kind::Signal, "ready")),
            (0, on(Kind::FutexAwake, "ready")),
            (0, wake),
            (0, on(Kind::Unlock, "m")),
        ],
        expect![[r#"
            main|fork(T1)|a.c:3
            main|req(m)|a.c:9
            main|acq(m)|a.c:9
            main|aw.release(assumed(unseen_code)#1)|a.c:9
            main|rel(m)|a.c:9
            main|wait(ready)|a.c:9
            T1|ar.acquire(assumed(unseen_code)#1)|a.c:7
            T1|notify(ready)|a.c:9
            main|wake(ready)|a.c:9
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
        "#]],
    );
}

#[test]
fn after_synchronization_that_was_left_out_nothing_is_known_of_what_a_thread_saw() {
    let counter = global("counter");
    check(
        &[
            (0, about(Kind::Fork, 1)),
            (0, access(Kind::Write, counter, None)),
            (1, access(Kind::Write, counter, None)),
            (0, on(Kind::Wake, "ready")),
            (1, access(Kind::Write, counter, None)),
            (1, access(Kind::Write, counter, None)),
            (0, about(Kind::FutexWait, 0)),
            (0, about(Kind::Join, 1)),
        ],
        expect![[r#"
            main|fork(T1)|a.c:3
            main|w(counter)|a.c:7
            T1|w(counter)|a.c:7
            T1|r?(assumed(unseen_code)#0)|a.c:7
            T1|w(counter)|a.c:7
            T1|w(counter)|a.c:7
            main|r?(assumed(unseen_code)#0)|a.c:3
            main|join(T1)|a.c:3
            left out 1: wake without a wait
        "#]],
    );
}

#[test]
fn globals_that_are_asked_for_are_kept_whoever_uses_them() {
    let (counter, ready) = (global("counter"), global("ready"));
    let events = [
        (0, about(Kind::Fork, 1)),
        (1, access(Kind::Write, counter + 8, None)),
        (1, access(Kind::Write, ready, None)),
        (0, about(Kind::Join, 1)),
    ];
    let written = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let (trace, summary) = converted_with(&events, Kept::Contended { names: &names });
        let vars = trace.names().vars.entries().map(|(_, name)| name.to_owned());
        (vars.collect::<Vec<_>>(), summary.missing)
    };
    assert_eq!(written(&[]), (vec![], vec![]));
    assert_eq!(written(&["counter"]), (vec!["counter+8".to_owned()], vec![]));
    assert_eq!(written(&["ready", "x"]), (vec!["ready".to_owned()], vec!["x".to_owned()]));
}

#[test]
fn a_lock_is_given_back_in_the_mode_in_which_it_was_taken() {
    let lock = on(Kind::Lock, "m");
    check(
        &[
            (0, flagged(lock, flag::SHARED)),
            (1, flagged(lock, flag::SHARED)),
            (0, on(Kind::Unlock, "m")),
            (1, on(Kind::Unlock, "m")),
            (0, lock),
            (0, lock),
            (0, on(Kind::Unlock, "m")),
            (0, on(Kind::Unlock, "m")),
        ],
        expect![[r#"
            main|req(m)|a.c:9
            main|racq(m)|a.c:9
            T1|req(m)|a.c:9
            T1|racq(m)|a.c:9
            main|rrel(m)|a.c:9
            T1|rrel(m)|a.c:9
            main|req(m)|a.c:9
            main|acq(m)|a.c:9
            main|req(m)|a.c:9
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
            main|rel(m)|a.c:9
            not forked: [1]
        "#]],
    );
}

#[test]
fn a_request_says_that_it_is_not_for_shared_mode_where_the_lock_has_two() {
    let (request, lock) = (on(Kind::LockRequest, "m"), on(Kind::Lock, "m"));
    check(
        &[
            (0, request),
            (0, lock),
            (0, on(Kind::Unlock, "m")),
            (1, flagged(request, flag::SHARED)),
            (1, flagged(lock, flag::SHARED)),
            (0, request),
        ],
        expect![[r#"
            main|wreq(m)|a.c:9
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
            T1|req(m)|a.c:9
            T1|racq(m)|a.c:9
            main|wreq(m)|a.c:9
            not forked: [1]
        "#]],
    );
}

#[test]
fn who_tries_or_waits_for_a_while_only_is_not_said_to_ask() {
    let (request, lock) = (on(Kind::LockRequest, "m"), on(Kind::Lock, "m"));
    check(
        &[
            (0, flagged(lock, flag::TRY)),
            (0, on(Kind::Unlock, "m")),
            (0, flagged(request, flag::TRY)),
            (0, flagged(lock, flag::TRY)),
            (0, on(Kind::Unlock, "m")),
            (0, request),
            (0, lock),
            (0, on(Kind::Unlock, "m")),
        ],
        expect![[r#"
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
            main|req(m)|a.c:9
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
        "#]],
    );
}

#[test]
fn what_cannot_have_happened_is_left_out_and_counted() {
    check(
        &[
            (0, on(Kind::Unlock, "m")),
            (0, on(Kind::Lock, "m")),
            (1, on(Kind::Lock, "m")),
            (1, on(Kind::Unlock, "m")),
            (0, on(Kind::LockInit, "m")),
            (0, on(Kind::Lock, "m")),
            (0, about(Kind::Fork, 1)),
            (0, about(Kind::BlockEnd, 0)),
            (0, about(Kind::Join, 1)),
            (1, on(Kind::Lock, "m")),
        ],
        expect![[r#"
            main|r?(assumed(unseen_code)#0)|a.c:9
            main|req(m)|a.c:9
            main|acq(m)|a.c:9
            T1|r?(assumed(unseen_code)#0)|a.c:9
            T1|req(m)|a.c:9
            main|req(m)|a.c:9
            main|join(T1)|a.c:3
            left out 1: acquire of a lock that another thread holds
            left out 1: end of a block that did not begin
            left out 1: fork of a thread that ran before
            left out 2: of a thread that was joined
            left out 2: release of a lock that its thread does not hold
            left out 1: second acquire of a lock that does not nest
        "#]],
    );
}

#[test]
fn a_fork_that_failed_never_was() {
    check(
        &[
            (0, about(Kind::Fork, 1)),
            (0, about(Kind::ForkFailed, 1)),
            (0, about(Kind::Fork, 1)),
            (1, about(Kind::Begin, 1)),
            (0, about(Kind::Fork, 2)),
            (0, about(Kind::ForkFailed, 2)),
        ],
        expect![[r#"
            main|fork(T1)|a.c:3
        "#]],
    );
}

/// What happens to the handle of the kind `what` at `address`.
fn handled(what: u64, address: u64, flags: u16) -> Event {
    flagged(extra(about(Kind::LockDestroy, address), what), flags)
}

/// A library of 4096 bytes is loaded at `start`; with both flags it is gone.
fn library(start: u64, flags: u16) -> Event {
    Event { value: Some(4096), ..handled(handle::LIBRARY, start, flags) }
}

#[test]
fn a_library_that_one_thread_uses_has_no_end() {
    let life = [
        (0, library(0x9000, 0)),
        (0, access(Kind::Write, 0x9010, None)),
        (0, handled(handle::LIBRARY, 0x9008, flag::OUT)),
        (0, library(0x9000, flag::OUT | flag::SHARED)),
        // What comes there later is no longer the library.
        (1, access(Kind::Write, 0x9010, None)),
    ];
    check(
        &life,
        expect![[r#"
        main|w(memory#1)|a.c:7
        T1|w(memory#1)|a.c:7
        not forked: [1]
    "#]],
    );
}

#[test]
fn timers_and_streams_are_counted() {
    let timer = |flags| handled(handle::TIMER, 0, flags);
    let stream = |flags| handled(handle::STREAM, 0x8000, flags);
    check(
        &[
            (0, timer(flag::SHARED)),
            (1, timer(flag::OUT)),
            (1, timer(flag::SHARED)),
            (0, timer(flag::OUT)),
            // Where it is not seen why it ends, and of what one thread alone uses, nothing is said.
            (1, stream(flag::SHARED)),
            (0, stream(flag::OUT | flag::ASSUMED)),
            (0, stream(flag::SHARED)),
            (0, stream(flag::OUT)),
            (1, stream(flag::SHARED)),
            (0, stream(flag::OUT)),
        ],
        expect![[r#"
            main|ar.relaxed(timer(1)#1)|a.c:3
            T1|free(timer(1)#1)|a.c:3
            T1|ar.relaxed(timer(1)#2)|a.c:3
            main|free(timer(1)#2)|a.c:3
            T1|ar.relaxed(stream(2)#3)|a.c:3
            main|free(stream(2)#3)|a.c:3
            not forked: [1]
        "#]],
    );
}

#[test]
fn the_handle_of_a_joined_thread_is_used_in_vain() {
    let address = channel::address(channel::id(channel::THREADS, 1));
    let misuse = |flags| flagged(about(Kind::Receive, address), flags | flag::MISUSE);
    let (trace, _) = converted(&[
        (0, about(Kind::Fork, 1)),
        (1, about(Kind::Begin, 1)),
        // Nobody has joined it yet, so the runtime may have been wrong.
        (0, misuse(0)),
        (0, misuse(flag::ASKED)),
        (0, about(Kind::Join, 1)),
        (0, misuse(0)),
        (0, misuse(flag::OUT)),
    ]);
    let misuses = &trace.run_end().unwrap().misuses;
    let texts: Vec<&str> = misuses.iter().map(|misuse| &misuse.text[..]).collect();
    expect![[r#"
        [
            "joins T1, which another thread joins",
            "uses the handle of T1, which main has joined",
            "detaches T1, which main has joined",
        ]
    "#]]
    .assert_debug_eq(&texts);
}

#[test]
fn a_new_life_is_another_name() {
    let lock = |address| about(Kind::Lock, address);
    let unlock = |address| about(Kind::Unlock, address);
    let alloc = extra(about(Kind::Alloc, 0x8000), 64);
    let write = access(Kind::Write, 0x8008, None);
    let life = [
        (0, alloc),
        (0, lock(0x8010)),
        (0, write),
        (0, unlock(0x8010)),
        (1, write),
        (0, extra(about(Kind::Free, 0x8000), 0)),
    ];
    let destroyed = [
        (0, on(Kind::LockInit, "m")),
        (0, on(Kind::Lock, "m")),
        (0, on(Kind::Unlock, "m")),
        (0, on(Kind::LockDestroy, "m")),
    ];
    check(
        &[&life[..], &life, &destroyed, &destroyed].concat(),
        expect![[r#"
            main|alloc(block@a.c:3#1)|a.c:3
            main|req(block@a.c:3#1.lock)|a.c:3
            main|acq(block@a.c:3#1.lock)|a.c:3
            main|w(block@a.c:3#1+8)|a.c:7
            main|rel(block@a.c:3#1.lock)|a.c:3
            T1|w(block@a.c:3#1+8)|a.c:7
            main|free(block@a.c:3#1)|a.c:3
            main|alloc(block@a.c:3#2)|a.c:3
            main|req(block@a.c:3#2.lock)|a.c:3
            main|acq(block@a.c:3#2.lock)|a.c:3
            main|w(block@a.c:3#2+8)|a.c:7
            main|rel(block@a.c:3#2.lock)|a.c:3
            T1|w(block@a.c:3#2+8)|a.c:7
            main|free(block@a.c:3#2)|a.c:3
            main|req(m)|a.c:9
            main|acq(m)|a.c:9
            main|rel(m)|a.c:9
            main|free(lock(m))|a.c:9
            main|req(m'2)|a.c:9
            main|acq(m'2)|a.c:9
            main|rel(m'2)|a.c:9
            main|free(lock(m'2))|a.c:9
            not forked: [1]
        "#]],
    );
}

#[test]
fn names_that_no_format_carries_are_changed() {
    let events = ["b|r", "free slots", ""].map(|name| (0, on(Kind::Lock, name)));
    let more = [(0, access(Kind::Write, 0x9000, None)), (1, access(Kind::Write, 0x9004, None))];
    check(
        &[&events[..], &more].concat(),
        expect![[r#"
            main|req(b!r)|a.c:9
            main|acq(b!r)|a.c:9
            main|req(free_slots)|a.c:9
            main|acq(free_slots)|a.c:9
            main|req(_)|a.c:9
            main|acq(_)|a.c:9
            main|w(memory#1)|a.c:7
            T1|w(memory#1+4)|a.c:7
            not forked: [1]
        "#]],
    );
}

#[test]
fn barriers_semaphores_and_blocks() {
    let name = u64::from_le_bytes(*b"transfer");
    let begin =
        Event { extra: Some(name), value: Some(u64::from(b'!')), ..on(Kind::BlockBegin, "m") };
    let events = [
        (0, about(Kind::Fork, 1)),
        (0, extra(on(Kind::BarrierInit, "m"), 2)),
        (0, on(Kind::BarrierArrive, "m")),
        (0, on(Kind::BarrierDepart, "m")),
        (1, on(Kind::BarrierArrive, "m")),
        (0, on(Kind::BarrierDepart, "m")),
        (1, on(Kind::BarrierDepart, "m")),
        (0, extra(on(Kind::SemaphoreInit, "ready"), 0)),
        (1, on(Kind::SemaphoreTake, "ready")),
        (0, on(Kind::SemaphorePost, "ready")),
        (1, on(Kind::SemaphoreTake, "ready")),
        (1, begin),
        (1, about(Kind::BlockEnd, 0)),
    ];
    check(
        &events,
        expect![[r#"
            main|fork(T1)|a.c:3
            main|arrive(m)|a.c:9
            T1|r?(assumed(unseen_code)#0)|a.c:9
            T1|arrive(m)|a.c:9
            main|r?(assumed(unseen_code)#0)|a.c:9
            main|depart(m)|a.c:9
            T1|depart(m)|a.c:9
            main|post(ready)|a.c:9
            T1|take(ready)|a.c:9
            T1|begin(transfer!)|a.c:9
            T1|end(transfer!)|a.c:3
            left out 1: departure from a barrier before all arrived
            left out 1: take from a semaphore at zero
        "#]],
    );
    let (trace, _) = converted(&events);
    let semaphore = trace.names().semaphores.get("ready").unwrap();
    let barrier = trace.names().barriers.get("m").unwrap();
    assert_eq!(trace.declared().start(semaphore), Some(0));
    assert_eq!(trace.declared().parties(barrier), Some(2));
}

#[test]
fn sites_carry_their_call_stacks_and_the_map_of_their_time() {
    let mut events = vec![(0, about(Kind::Leave, 0))];
    for call in 0..20 {
        events.push((0, Event::new(Kind::Enter, 100 + call, 0)));
    }
    events.push((0, about(Kind::Fence, 0)));
    events.extend([(0, Event::new(Kind::Leave, 0, 0)); 18]);
    events.extend([(0, about(Kind::Fence, 0)), (0, about(Kind::Maps, 2))]);
    events.push((0, about(Kind::Fence, 0)));
    let (trace, _) = converted(&events);
    let sites = trace.events().map(|(_, event)| trace.names().sites.name(event.site));
    let sites: Vec<&str> = sites.collect();
    assert_eq!(sites[0].lines().count(), 17);
    assert!(sites[0].starts_with("a.c:3\nf (a.c:119)\nf (a.c:118)\n"));
    assert_eq!(sites[1], "a.c:3\nf (a.c:101)\nf (a.c:100)");
    assert_eq!(sites[2], "map2.c:3\nf (a.c:101)\nf (a.c:100)");
}

#[test]
fn origins_count_all_events_of_the_code_address_in_the_thread() {
    let local = Event::new(Kind::Write, 0x5000, 9);
    let events = [
        (0, local),
        (1, on(Kind::SemaphorePost, "m")),
        (0, on(Kind::SemaphorePost, "m")),
        (0, Event::new(Kind::Nothing, 0, 9)),
        (0, on(Kind::SemaphorePost, "m")),
        (0, Event { size: 3, ..access(Kind::Read, 0x1040, None) }),
        (1, access(Kind::Write, 0x1040, None)),
    ];
    let (trace, _) = converted(&events);
    assert!(trace.declared().waits_are_requested);
    let origins = trace.origins().unwrap();
    let found: Vec<(u64, u32)> = (0..trace.len())
        .map(|place| origins.get(EventId::from_number(place as u32 + 1).unwrap()).unwrap())
        .map(|origin| (origins.codes()[origin.code].offset, origin.occurrence))
        .collect();
    assert_eq!(found, [(9, 0), (9, 1), (9, 3), (7, 0), (7, 0), (7, 0)]);
    let module = &origins.modules()[origins.codes().iter().next().unwrap().module];
    assert_eq!((&module.path[..], &module.build_id[..]), ("/lib/b", "id of /lib/b"));
}

#[test]
fn reads_whose_order_is_not_known_have_no_known_writer() {
    let counter = global("counter");
    let ready = global("ready");
    let number = |number, event: Event| Event { number: Some(number), ..event };
    let lock = on(Kind::Lock, "m");
    let unlock = on(Kind::Unlock, "m");
    check(
        &[
            (0, number(1, about(Kind::Fork, 1))),
            (1, number(2, lock)),
            (1, access(Kind::Write, counter, None)),
            (1, access(Kind::Write, ready, None)),
            (1, number(3, unlock)),
            (0, access(Kind::Read, ready, None)),
            (0, number(4, lock)),
            (0, access(Kind::Read, counter, None)),
            (1, number(5, on(Kind::SemaphorePost, "free slots"))),
            (0, access(Kind::Read, counter, None)),
            (0, number(6, unlock)),
            (0, access(Kind::Read, ready, None)),
        ],
        expect![[r#"
            main|fork(T1)|a.c:3
            T1|req(m)|a.c:9
            T1|acq(m)|a.c:9
            T1|w(counter)|a.c:7
            T1|w(ready)|a.c:7
            T1|rel(m)|a.c:9
            main|r?(ready)|a.c:7
            main|req(m)|a.c:9
            main|acq(m)|a.c:9
            main|r(counter)|a.c:7
            T1|post(free_slots)|a.c:9
            main|r(counter)|a.c:7
            main|rel(m)|a.c:9
            main|r?(ready)|a.c:7
        "#]],
    );
}

#[test]
fn memory_that_is_only_copied_and_filled_is_one_variable() {
    let fill = |address, length| extra(about(Kind::WriteRange, address), length);
    check(
        &[
            (0, extra(about(Kind::Alloc, 0x8000), 1 << 25)),
            (0, fill(0x8000, 1 << 25)),
            (1, fill(0x8000, 1 << 25)),
            (1, extra(about(Kind::ReadRange, 0x8010), 16)),
            (1, fill(global("counter") + 4, 20)),
            (0, extra(about(Kind::ReadRange, global("counter") + 4), 20)),
        ],
        expect![[r#"
            main|alloc(block@a.c:3#1)|a.c:3
            main|w(block@a.c:3#1[0..16])|a.c:3
            main|w(block@a.c:3#1[16..32])|a.c:3
            main|w(block@a.c:3#1[32..33554432])|a.c:3
            T1|w(block@a.c:3#1[0..16])|a.c:3
            T1|w(block@a.c:3#1[16..32])|a.c:3
            T1|w(block@a.c:3#1[32..33554432])|a.c:3
            T1|r(block@a.c:3#1[16..32])|a.c:3
            T1|w(counter+4)|a.c:3
            T1|w(counter[8..24])|a.c:3
            main|r(counter+4)|a.c:3
            main|r(counter[8..24])|a.c:3
            not forked: [1]
        "#]],
    );
}

#[test]
fn who_looks_at_a_semaphore_comes_after_those_who_used_it() {
    let look = flagged(on(Kind::Receive, "free slots"), flag::TRY);
    check(
        &[
            (0, extra(on(Kind::SemaphoreInit, "free slots"), 0)),
            (0, on(Kind::SemaphorePost, "free slots")),
            (1, look),
            (1, on(Kind::SemaphoreTake, "free slots")),
        ],
        expect![[r#"
            main|post(free_slots)|a.c:9
            main|arw.release(free_slots.value)|a.c:9
            T1|ar.acquire(free_slots.value)|a.c:9
            T1|take(free_slots)|a.c:9
            T1|arw.release(free_slots.value)|a.c:9
            not forked: [1]
        "#]],
    );
}
