//! Every view says what counting and searching the events says.

use reweave_base::Id;
use reweave_oracle::observed::{Observed, acquired, released};
use reweave_testkit::{Scope, Shape, draw, generate, soak, trace};
use reweave_trace::views::{CriticalSection, Lifetime, Mode};
use reweave_trace::{
    AccessOp, BarrierOp, ConditionOp, EventId, LockId, Op, ThreadId, ThreadOp, Trace, TraceBuilder,
    VarId,
};

/// Runs `check` on generated traces of every shape and on all traces of small scopes.
fn on_many_traces(check: impl Fn(&Trace)) {
    for (_, shape) in Shape::ALL {
        for seed in 0..u64::from(soak::cases(40)) {
            check(&generate::random(shape, seed));
        }
    }
    let scopes = [
        Scope::SHARED_LOCKS.events(5),
        Scope::FORKS.threads(3).events(4),
        Scope::MONITORS.events(5),
        Scope::TIMEOUTS.threads(3).events(5),
        Scope::BARRIERS.threads(3).events(6),
        Scope { parties: Some(2), ..Scope::BARRIERS.threads(3).events(6) },
        Scope::SEMAPHORES.events(5),
    ];
    for scope in scopes {
        scope.for_each(&check);
    }
}

fn ids(trace: &Trace) -> impl DoubleEndedIterator<Item = EventId> + Clone + use<> {
    (0..trace.len()).map(EventId::from_index)
}

fn such(trace: &Trace, is_such: impl Fn(ThreadId, Op) -> bool) -> Vec<EventId> {
    let found = trace.events().filter(|(_, event)| is_such(event.thread, event.op));
    found.map(|(id, _)| id).collect()
}

fn threads(trace: &Trace) -> impl Iterator<Item = ThreadId> + use<> {
    (0..trace.names().threads.len()).map(ThreadId::from_index)
}

#[test]
fn the_events_of_a_thread_are_numbered_from_zero() {
    on_many_traces(|trace| {
        for thread in threads(trace) {
            let own = such(trace, |other, _| other == thread);
            assert_eq!(trace.thread_events(thread), own);
            for (position, &event) in own.iter().enumerate() {
                assert_eq!(trace.position(event) as usize, position);
            }
        }
    });
}

#[test]
fn the_accesses_of_a_variable_are_all_that_name_it() {
    on_many_traces(|trace| {
        for var in (0..trace.names().vars.len()).map(VarId::from_index) {
            assert_eq!(trace.accesses(var), such(trace, |_, op| op.var() == Some(var)));
        }
    });
}

#[test]
fn a_read_sees_the_last_write_before_it() {
    on_many_traces(|trace| {
        let observed = Observed::new(trace);
        for event in ids(trace) {
            assert_eq!(trace.writer(event), observed.saw[event.index()], "{}", draw(trace));
        }
    });
}

#[test]
fn a_lifetime_is_from_the_fork_to_the_first_join() {
    on_many_traces(|trace| {
        for thread in threads(trace) {
            let own = such(trace, |other, _| other == thread);
            let expected = Lifetime {
                fork: such(trace, |_, op| op == Op::Thread(ThreadOp::Fork, thread))
                    .first()
                    .copied(),
                first: own.first().copied(),
                last: own.last().copied(),
                join: such(trace, |_, op| op == Op::Thread(ThreadOp::Join, thread))
                    .first()
                    .copied(),
            };
            assert_eq!(trace.lifetime(thread), expected, "{}", draw(trace));
        }
    });
}

/// How often the thread of `event` holds the lock in that mode just before it.
fn depth(trace: &Trace, event: EventId, lock: LockId, shared: bool) -> usize {
    let thread = trace.event(event).thread;
    let own = |id: &EventId| trace.event(*id).thread == thread;
    let before = || ids(trace).filter(|&id| id < event).filter(own);
    let acquires = before().filter(|&id| acquired(trace.event(id).op) == Some((lock, shared)));
    let releases = before().filter(|&id| released(trace.event(id).op) == Some((lock, shared)));
    acquires.count() - releases.count()
}

/// The sections by counting, with outer sections as their acquires.
fn sections_by_counting(trace: &Trace) -> Vec<(CriticalSection, Option<EventId>)> {
    let mut sections: Vec<(CriticalSection, Option<EventId>)> = Vec::new();
    for acquire in ids(trace) {
        let event = trace.event(acquire);
        let Some((lock, shared)) = acquired(event.op) else { continue };
        if depth(trace, acquire, lock, shared) > 0 {
            continue;
        }
        let gives_back = |id: &EventId| {
            *id > acquire
                && trace.event(*id).thread == event.thread
                && released(trace.event(*id).op) == Some((lock, shared))
                && depth(trace, *id, lock, shared) == 1
        };
        let mode = if shared { Mode::Shared } else { Mode::Exclusive };
        let release = ids(trace).find(gives_back);
        let section =
            CriticalSection { thread: event.thread, lock, mode, acquire, release, outer: None };
        let open = |(other, _): &&(CriticalSection, Option<EventId>)| {
            other.thread == event.thread && other.release.is_none_or(|release| release > acquire)
        };
        let outer = sections.iter().rfind(open).map(|(other, _)| other.acquire);
        sections.push((section, outer));
    }
    sections
}

#[test]
fn sections_are_from_the_outermost_acquire_to_the_release_that_gives_back() {
    on_many_traces(|trace| {
        let view = trace.sections();
        let counted = sections_by_counting(trace);
        let found: Vec<(CriticalSection, Option<EventId>)> = view
            .entries()
            .map(|(_, section)| {
                let outer = section.outer.map(|outer| view.get(outer).acquire);
                (CriticalSection { outer: None, ..*section }, outer)
            })
            .collect();
        assert_eq!(found, counted, "{}", draw(trace));
        for lock in (0..trace.names().locks.len()).map(LockId::from_index) {
            let on_lock = view.entries().filter(|(_, section)| section.lock == lock);
            assert_eq!(view.on_lock(lock), on_lock.map(|(id, _)| id).collect::<Vec<_>>());
        }
        for thread in threads(trace) {
            let own = view.entries().filter(|(_, section)| section.thread == thread);
            assert_eq!(view.of_thread(thread), own.map(|(id, _)| id).collect::<Vec<_>>());
        }
    });
}

#[test]
fn held_are_the_sections_that_are_open_just_before_an_event() {
    on_many_traces(|trace| {
        let counted = sections_by_counting(trace);
        for event in ids(trace) {
            let thread = trace.event(event).thread;
            let found: Vec<EventId> =
                trace.sections().held(thread, event).map(|section| section.acquire).collect();
            let is_open = |section: &CriticalSection| {
                let shared = section.mode == Mode::Shared;
                section.thread == thread
                    && section.acquire < event
                    && section.release.is_none_or(|release| event <= release)
                    && depth(trace, event, section.lock, shared) > 0
            };
            let open = counted.iter().rev().map(|(section, _)| section);
            let open: Vec<EventId> =
                open.filter(|section| is_open(section)).map(|section| section.acquire).collect();
            assert_eq!(found, open, "event {}\n{}", event.number(), draw(trace));
        }
    });
}

#[test]
fn stays_and_notifications_are_as_the_naive_pairing_has_them() {
    on_many_traces(|trace| {
        let (observed, view) = (Observed::new(trace), trace.signals());
        let found: Vec<_> = view
            .wait_intervals()
            .iter()
            .map(|interval| (interval.begin, interval.wait, interval.end, interval.notify))
            .collect();
        let naive: Vec<_> =
            observed.waits.iter().map(|w| (w.begin, w.wait, w.end, w.notify)).collect();
        assert_eq!(found, naive, "{}", draw(trace));
        for interval in view.wait_intervals() {
            for event in [Some(interval.wait), interval.end].into_iter().flatten() {
                assert_eq!(view.wait_interval(event), Some(interval));
            }
        }
        for (event, happened) in trace.events() {
            let woke: Vec<EventId> = observed.woken_by(event).map(|wait| wait.wait).collect();
            assert_eq!(view.woken(event), woke, "{}", draw(trace));
            let Op::Condition(ConditionOp::Notify | ConditionOp::NotifyAll, on) = happened.op
            else {
                continue;
            };
            let pairs = view.wait_intervals().iter().zip(&observed.waits);
            for (interval, wait) in pairs.filter(|(_, wait)| wait.condition == on) {
                let spared = observed.is_spared(wait, event);
                assert_eq!(interval.is_spared_by(event), spared, "{}", draw(trace));
            }
        }
    });
}

#[test]
fn rounds_and_posts_are_as_the_naive_statement_has_them() {
    on_many_traces(|trace| {
        let (observed, view) = (Observed::new(trace), trace.signals());
        for (event, happened) in trace.events() {
            assert_eq!(view.post(event), observed.post[event.index()], "{}", draw(trace));
            // With all generations that come before the one needed.
            let mut found: Vec<EventId> = Vec::new();
            let mut needed = view.needed_generation(event);
            while let Some(generation) = needed {
                let generation = view.generation(generation);
                found.extend(&generation.arrivals);
                needed = view.needed_generation(generation.arrivals[0]);
            }
            let mut naive = observed.arrivals[event.index()].clone();
            if matches!(happened.op, Op::Barrier(BarrierOp::Depart, _)) {
                // Its generation's arrivals come after those of earlier generations.
                let earlier = naive.iter().flat_map(|arrival| &observed.arrivals[arrival.index()]);
                naive.extend(earlier.copied().collect::<Vec<_>>());
            }
            found.sort_unstable();
            naive.sort_unstable();
            naive.dedup();
            assert_eq!(found, naive, "event {}\n{}", event.number(), draw(trace));
            let own = view.own_generation(event).map(|generation| view.generation(generation));
            let arrives = matches!(happened.op, Op::Barrier(BarrierOp::Arrive, _));
            assert_eq!(own.is_some_and(|generation| generation.arrivals.contains(&event)), arrives);
        }
    });
}

#[test]
fn a_lock_given_back_hand_over_hand_is_not_held_by_what_it_led_to() {
    let trace = trace(
        "
t1
acq(a)
acq(b)
rel(a)
acq(c)
rel(b)
w(x)
",
    );
    let last = trace.numbered(6).unwrap();
    let thread = trace.event(last).thread;
    let held: Vec<u32> =
        trace.sections().held(thread, last).map(|section| section.acquire.number()).collect();
    assert_eq!(held, [4]);
    let outer: Vec<Option<u32>> = trace
        .sections()
        .entries()
        .map(|(_, section)| section.outer.map(|id| trace.sections().get(id).acquire.number()))
        .collect();
    assert_eq!(outer, [None, Some(1), Some(2)]);
}

#[test]
fn files_can_be_called_otherwise_in_locations_and_frames() {
    let mut builder = TraceBuilder::new();
    let (thread, var) = (builder.thread("T1"), builder.var("x"));
    let sites = [("old/a.c:1", "main (old/a.c:9)"), ("new/a.c:1", "main (new/a.c:9)"), ("7", "f")];
    for (location, frame) in sites {
        let site = builder.names().site(location, [frame]);
        builder.push(thread, Op::Access(AccessOp::Write, var), site);
    }
    let trace = builder.finish().unwrap();
    let rename = |text: &str| text.strip_prefix("old/").map(|rest| format!("new/{rest}"));
    let trace = trace.with_locations(&rename);
    let names = trace.names();
    let site = |number| trace.event(trace.numbered(number).unwrap()).site;
    assert_eq!((site(1), names.sites.len()), (site(2), 2));
    assert_eq!(names.location(site(1)), "new/a.c:1");
    assert_eq!(names.stack(site(1)).collect::<Vec<_>>(), ["main (new/a.c:9)"]);
    assert_eq!(names.location(site(3)), "7");
}
