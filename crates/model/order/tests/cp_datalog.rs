//! The CP clocks hold what a Datalog program derives that is Definition 2 and nothing else.
//!
//! Its facts are taken from the events one by one, and so owe nothing to the clocks, to their
//! reference, or to the sections that a trace knows of.

use ascent::ascent;
use proptest::prelude::*;
use reweave_base::Id;
use reweave_order::cp::CausallyPrecedes;
use reweave_testkit::{Shape, soak, traces};
use reweave_trace::{
    BarrierOp, ConditionOp, Event, EventId, LockId, LockOp, ObjectOp, Op, SemaphoreOp, ThreadId,
    ThreadOp, Trace,
};

ascent! {
    /// Causally-precedes. Events and sections are numbers.
    struct Definition;

    /// An edge of happens-before: program order, a lock's, or a hard one.
    relation edge(u32, u32);
    /// An edge that CP takes as it is.
    relation hard(u32, u32);
    /// A section: its lock, whether it is in shared mode, its acquire, and its end.
    relation section(u32, u32, bool, u32, u32);
    /// A section that comes to an end, and its release.
    relation released(u32, u32);
    /// A section and an event in it.
    relation inside(u32, u32);
    /// Two events, either way around.
    relation conflict(u32, u32);

    relation happens_before(u32, u32);
    happens_before(a, b) <-- edge(a, b);
    happens_before(a, c) <-- happens_before(a, b), edge(b, c);

    /// Sections between which an edge can lead.
    relation candidate(u32, u32);
    candidate(first, second) <--
        section(first, lock, first_shared, _, _),
        released(first, release),
        section(second, lock, second_shared, acquire, _),
        if release < acquire && !(*first_shared && *second_shared);

    relation precedes(u32, u32);
    precedes(a, b) <-- hard(a, b);
    // Rule (a).
    precedes(release, acquire) <--
        candidate(first, second),
        inside(first, one), conflict(one, other), inside(second, other),
        released(first, release), section(second, _, _, acquire, _);
    // Rule (b).
    precedes(release, acquire) <--
        candidate(first, second),
        section(first, _, _, first_acquire, _), section(second, _, _, acquire, end),
        precedes(first_acquire, end),
        released(first, release);
    // Rule (c).
    precedes(a, c) <-- happens_before(a, b), precedes(b, c);
    precedes(a, c) <-- precedes(a, b), happens_before(b, c);
}

/// The lock that `op` takes or gives back, whether it takes it, and whether in shared mode.
fn lock_of(op: Op) -> Option<(LockId, bool, bool)> {
    match op {
        Op::Lock(LockOp::Acquire, lock) => Some((lock, true, false)),
        Op::Lock(LockOp::AcquireShared, lock) => Some((lock, true, true)),
        Op::Lock(LockOp::Release, lock) => Some((lock, false, false)),
        Op::Lock(LockOp::ReleaseShared, lock) => Some((lock, false, true)),
        _ => None,
    }
}

fn facts(trace: &Trace) -> Definition {
    let mut facts = Definition::default();
    let events: Vec<(EventId, Event)> = trace.events().collect();
    for (at, &(late, to)) in events.iter().enumerate() {
        for &(early, from) in &events[..at] {
            let pair = (early.number(), late.number());
            if from.thread == to.thread {
                facts.edge.push(pair);
                continue;
            }
            if is_hard(trace, early, late) {
                facts.edge.push(pair);
                facts.hard.push(pair);
            }
            let locks = lock_of(from.op).zip(lock_of(to.op));
            if let Some(((one, false, first_shared), (other, true, second_shared))) = locks
                && one == other
                && !(first_shared && second_shared)
            {
                facts.edge.push(pair);
            }
            if from.op.conflicts_with(to.op) {
                facts.conflict.extend([pair, (pair.1, pair.0)]);
            }
        }
    }
    add_sections(&mut facts, &events);
    facts
}

/// Goes on from each outermost acquire to the release that gives its lock back.
fn add_sections(facts: &mut Definition, events: &[(EventId, Event)]) {
    for (at, &(acquire, event)) in events.iter().enumerate() {
        let Some((lock, true, shared)) = lock_of(event.op) else { continue };
        if depth(&events[..at], event.thread, lock, shared) > 0 {
            continue;
        }
        let id = facts.section.len() as u32;
        let own = events[at + 1..].iter().filter(|(_, other)| other.thread == event.thread);
        let (mut left, mut end, mut release) = (1, acquire, None);
        for &(event, Event { op, .. }) in own {
            end = event;
            match lock_of(op) {
                Some((on, true, mode)) if (on, mode) == (lock, shared) => left += 1,
                Some((on, false, mode)) if (on, mode) == (lock, shared) => left -= 1,
                _ => {}
            }
            if left == 0 {
                release = Some(event);
                break;
            }
            facts.inside.push((id, event.number()));
        }
        let lock = lock.number();
        facts.section.push((id, lock, shared, acquire.number(), end.number()));
        facts.released.extend(release.map(|release| (id, release.number())));
    }
}

/// How often `thread` has acquired `lock` in `past` without giving it back.
fn depth(past: &[(EventId, Event)], thread: ThreadId, lock: LockId, shared: bool) -> i32 {
    let own = past.iter().filter(|(_, event)| event.thread == thread);
    own.map(|(_, event)| match lock_of(event.op) {
        Some((on, takes, mode)) if (on, mode) == (lock, shared) => {
            if takes {
                1
            } else {
                -1
            }
        }
        _ => 0,
    })
    .sum()
}

/// Whether a hard edge leads from `early` to `late`, of another thread.
fn is_hard(trace: &Trace, early: EventId, late: EventId) -> bool {
    let (from, to) = (trace.event(early), trace.event(late));
    let signals = trace.signals();
    match (from.op, to.op) {
        (Op::Thread(ThreadOp::Fork, child), _) if child == to.thread => true,
        (_, Op::Thread(ThreadOp::Join, child)) if child == from.thread => true,
        (Op::Thread(ThreadOp::Fork, child), Op::Thread(ThreadOp::Join, joined)) => child == joined,
        (_, Op::Condition(ConditionOp::Wake, _)) => {
            signals.wait_interval(late).and_then(|interval| interval.notify) == Some(early)
        }
        (Op::Barrier(BarrierOp::Arrive, _), Op::Barrier(..)) => {
            let generation =
                signals.needed_generation(late).map(|generation| signals.generation(generation));
            generation.is_some_and(|generation| generation.arrivals.contains(&early))
        }
        (_, Op::Semaphore(SemaphoreOp::Take, _)) => signals.post(late) == Some(early),
        // What synchronizes by memory orders, the definition of happens-before says.
        (Op::Access(..) | Op::Fence(_), Op::Access(..) | Op::Fence(_)) => {
            reweave_oracle::hb::is_edge(trace, early, late)
        }
        (Op::Object(ObjectOp::Alloc, born), Op::Object(ObjectOp::Free, ended)) => born == ended,
        _ => false,
    }
}

/// The first pair of events, if any, that clocks and program disagree on.
fn disagreement(trace: &Trace) -> Option<String> {
    let mut definition = facts(trace);
    definition.run();
    let mut derived = vec![vec![false; trace.len()]; trace.len()];
    for &(early, late) in &definition.precedes {
        derived[late as usize - 1][early as usize - 1] = true;
    }
    let causal = CausallyPrecedes::new(trace);
    let mut clocks = causal.clocks();
    for (late, _) in trace.events() {
        let clock = clocks.advance(trace, late);
        for (early, event) in trace.events() {
            let in_clock = trace.position(early) < clock.get(event.thread);
            let is_derived = derived[late.index()][early.index()];
            if in_clock != is_derived {
                let (early, late) = (early.number(), late.number());
                return Some(format!("{early} before {late}: {in_clock}, not {is_derived}"));
            }
        }
    }
    None
}

#[test]
fn clocks_hold_what_is_derived_from_the_litmus_cases() {
    for case in reweave_testkit::corpus::litmus() {
        assert_eq!(disagreement(&case.trace()), None, "{}", case.name);
    }
}

proptest! {
    #![proptest_config(soak::config(100))]

    #[test]
    fn clocks_hold_what_is_derived_from_everything(
        trace in traces(Shape::EVERYTHING.events(60)),
    ) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn clocks_hold_what_is_derived_from_locks(trace in traces(Shape::LOCKS.events(40))) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn clocks_hold_what_is_derived_from_nested_locks(trace in traces(Shape::NESTED)) {
        prop_assert_eq!(disagreement(&trace), None);
    }
}
