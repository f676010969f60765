//! The WCP clocks hold exactly the relation of the definition, and the corpus comes out.

use proptest::prelude::*;
use reweave_oracle::{cp, wcp};
use reweave_order::wcp::WeakCausallyPrecedes;
use reweave_testkit::{Scope, Shape, soak, traces};
use reweave_trace::{AccessOp, EventId, LockOp, Op, OpKind, Trace};

/// The first event pair, if any, that clocks and definition disagree on.
fn disagreement(trace: &Trace) -> Option<String> {
    let order = wcp::order(trace);
    let mut clocks = WeakCausallyPrecedes::new(trace);
    for (late, _) in trace.events() {
        let clock = clocks.advance(trace, late);
        for (early, event) in trace.events() {
            let in_clock = trace.position(early) < clock.get(event.thread);
            let defined = order.is_before(early, late);
            if in_clock != defined {
                let (early, late) = (early.number(), late.number());
                return Some(format!("{early} before {late}: {in_clock}, not {defined}"));
            }
        }
    }
    None
}

/// The conflicting pairs that WCP leaves unordered, by its clocks.
fn races(trace: &Trace) -> Vec<Vec<u32>> {
    let mut clocks = WeakCausallyPrecedes::new(trace);
    let mut races = Vec::new();
    for (late, to) in trace.events() {
        let clock = clocks.advance(trace, late);
        for (early, from) in trace.events().take_while(|&(early, _)| early < late) {
            let unordered = trace.position(early) >= clock.get(from.thread);
            if from.thread != to.thread && from.op.conflicts_with(to.op) && unordered {
                races.push(vec![early.number(), late.number()]);
            }
        }
    }
    races.sort_unstable();
    races
}

/// Accesses in sections of either mode.
const ACCESSES_IN_BOTH_MODES: Scope = Scope::new(&[
    OpKind::Write,
    OpKind::Acquire,
    OpKind::Release,
    OpKind::AcquireShared,
    OpKind::ReleaseShared,
]);

#[test]
fn clocks_agree_with_the_definition_on_every_small_trace() {
    let scopes = [
        Scope::LOCKS.events(7),
        Scope::LOCKS.threads(3).things(2).events(5),
        Scope::SHARED_LOCKS.threads(3).events(5),
        ACCESSES_IN_BOTH_MODES.events(7),
        Scope::FORKS.threads(3).events(5),
        Scope::MONITORS.events(6),
        Scope::BARRIERS.threads(3).events(6),
        Scope::SEMAPHORES.threads(3).events(6),
        Scope::ATOMICS.threads(3).events(4),
        Scope::REST.events(4),
    ];
    for scope in scopes {
        scope.for_each(|trace| {
            let found = disagreement(trace);
            assert_eq!(found, None, "\n{}", reweave_testkit::draw(trace));
        });
    }
}

/// An event by its number.
fn event(trace: &Trace, number: u32) -> EventId {
    trace.numbered(number).expect("the trace has so many events")
}

#[test]
fn rule_b_holds_within_one_thread_too() {
    // Lock l is used by one thread alone, and still orders: without it, 5 and 20 would race.
    let trace = reweave_testkit::trace(
        "
        t1      t2      t3
        acq(l)
        acq(m)
        w(x)
        rel(m)
        w(y)
        rel(l)
                acq(m)
                w(x)
                rel(m)
                acq(n)
                rel(n)
        acq(l)
        acq(n)
        rel(n)
        rel(l)
        acq(k)
        rel(k)
                        acq(k)
                        rel(k)
                        w(y)
        ",
    );
    assert!(wcp::order(&trace).is_before(event(&trace, 5), event(&trace, 20)));
    assert_eq!(races(&trace), Vec::<Vec<u32>>::new());
}

#[test]
fn an_access_is_ordered_from_itself_on_and_not_from_its_acquire_on() {
    // CP orders the release of t1 before the acquire of t2; WCP only before the second access.
    let trace = reweave_testkit::trace(
        "
        t1      t2
        w(y)
        acq(l)
        w(x)
        rel(l)
                acq(l)
                w(y)
                w(x)
                w(y)
                rel(l)
        ",
    );
    assert_eq!(races(&trace), [[1, 6]]);
    assert!(cp::order(&trace).is_before(event(&trace, 1), event(&trace, 6)));
}

#[test]
fn shared_sections_are_ordered_with_exclusive_ones_only() {
    let trace = reweave_testkit::trace(
        "
        t1       t2       t3
        racq(l)
        w(x)
        rrel(l)
                 racq(l)
                 w(x)
                 rrel(l)
                          acq(l)
                          r(x)
                          rel(l)
        ",
    );
    assert_eq!(races(&trace), [[2, 5]]);
}

#[test]
fn a_shared_section_can_bring_in_one_that_was_looked_at_before() {
    // At 17, 6 comes before by rule (a), so 12 does by rule (b); with that comes 1, by way of
    // lock n, so 5 does, again by rule (b). The section of t1 is looked at before that of t2.
    let trace = reweave_testkit::trace(
        "
        t1       t2       t3
        racq(l)
        acq(n)
        rel(n)
        w(z)
        rrel(l)
                 racq(l)
                 acq(m)
                 w(y)
                 rel(m)
                 acq(n)
                 rel(n)
                 rrel(l)
                          acq(m)
                          w(y)
                          rel(m)
                          acq(l)
                          rel(l)
                          w(z)
        ",
    );
    assert_eq!(disagreement(&trace), None);
    assert_eq!(races(&trace), Vec::<Vec<u32>>::new());
}

/// A trace of `threads` threads that take `locks` nested locks in turn, access a variable, and
/// give the locks back in the order of taking.
fn chain(threads: usize, locks: usize) -> Trace {
    let mut builder = reweave_trace::TraceBuilder::new();
    let site = builder.site("0");
    let var = builder.var("x");
    let locks: Vec<_> = (0..locks).map(|lock| builder.lock(&format!("l{lock}"))).collect();
    for thread in 0..threads {
        let thread = builder.thread(&format!("t{thread}"));
        for &lock in &locks {
            builder.push(thread, Op::Lock(LockOp::Acquire, lock), site);
        }
        builder.push(thread, Op::Access(AccessOp::Write, var), site);
        for &lock in &locks {
            builder.push(thread, Op::Lock(LockOp::Release, lock), site);
        }
    }
    builder.finish().expect("sections follow each other")
}

#[test]
fn many_threads_and_many_nested_locks_are_ordered_by_their_writes() {
    for (threads, locks) in [(10_000, 1), (50, 100)] {
        let trace = chain(threads, locks);
        let mut clocks = WeakCausallyPrecedes::new(&trace);
        for (id, happening) in trace.events() {
            let clock = clocks.advance(&trace, id);
            if happening.op.is_write() {
                // Every thread before it wrote and gave back all its locks.
                let sum: u64 = clock.entries().map(|(_, time)| u64::from(time)).sum();
                let threads_before = id.number() as u64 / (2 * locks as u64 + 1);
                assert_eq!(sum, threads_before * (2 * locks as u64 + 1));
            }
        }
    }
}

#[test]
fn clocks_agree_with_the_definition_on_every_shape() {
    for (name, shape) in Shape::ALL {
        for seed in 0..soak::cases(60).into() {
            let trace = reweave_testkit::generate::random(shape, seed);
            assert_eq!(disagreement(&trace), None, "{name} {seed}");
        }
    }
}

/// So many locks for so few events that no table of all variables under all locks is made.
const MANY_LOCKS: Shape = Shape { locks: 9, vars: 4, held_max: 6, shared: true, ..Shape::LOCKS };

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn clocks_agree_with_the_definition_on_everything(trace in traces(Shape::EVERYTHING)) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn clocks_agree_with_the_definition_on_locks(trace in traces(Shape::LOCKS.events(80))) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn clocks_agree_with_the_definition_on_nested_locks(trace in traces(Shape::NESTED.events(80))) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn clocks_agree_with_the_definition_on_many_locks_held_at_once(trace in traces(MANY_LOCKS)) {
        prop_assert_eq!(disagreement(&trace), None);
    }

    #[test]
    fn what_wcp_orders_cp_orders(trace in traces(Shape::EVERYTHING.events(60))) {
        let (weak, causal) = (wcp::order(&trace), cp::order(&trace));
        for (late, _) in trace.events() {
            for (early, _) in trace.events().take_while(|&(early, _)| early < late) {
                prop_assert!(!weak.is_before(early, late) || causal.is_before(early, late));
            }
        }
    }
}
