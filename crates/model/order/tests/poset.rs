//! The poset of a trace is the order by definition, and what the trace-order-preserving relation promises holds: every
//! global state is a run that the checker accepts.

use proptest::prelude::*;
use reweave_base::Id;
use reweave_oracle::{cut_order, hb};
use reweave_order::poset::{ChainId, EventRole, Relation, TracePoset, collections, raw};
use reweave_testkit::{Scope, Shape, corpus, soak, trace, traces};
use reweave_trace::{Checker, EventId, Goal, LockOp, Op, Reordering, ThreadId, Trace};

const RELATIONS: [Relation; 2] = [Relation::HappensBefore, Relation::TraceOrderPreserving];

/// Keeps every second event, so that most of the order goes through what is left out.
fn every_second(_: &Trace, event: EventId) -> EventRole {
    if event.number().is_multiple_of(2) { EventRole::Event } else { EventRole::Outside }
}

/// The first event pair, if any, on which a poset of `trace` and the definition disagree.
fn disagreement(
    trace: &Trace,
    relation: Relation,
    place: fn(&Trace, EventId) -> EventRole,
) -> Option<String> {
    let before = match relation {
        Relation::HappensBefore => hb::order(trace),
        Relation::TraceOrderPreserving => cut_order::order(trace),
    };
    let made = TracePoset::new(trace, relation, place).expect("it is small");
    let poset = made.poset();
    let events: Vec<(ChainId, u32)> = poset.events().collect();
    for &(chain, index) in &events {
        let late = made.first(chain, index).expect("there is such an event");
        for &(other, number) in &events {
            let early = made.first(other, number).expect("there is such an event");
            let in_clock = number <= poset.clock(chain, index)[other.index()];
            let defined = early == late || before.is_before(early, late);
            if in_clock != defined {
                return Some(format!("{relation:?} {early:?} {late:?}: {in_clock}"));
            }
        }
    }
    None
}

#[track_caller]
fn check_order(trace: &Trace) {
    for relation in RELATIONS {
        assert_eq!(disagreement(trace, relation, raw), None);
        assert_eq!(disagreement(trace, relation, every_second), None);
    }
}

/// Every state of the trace-order-preserving relation of `trace`, up to a number, is a run that the checker accepts.
fn check_states(trace: &Trace, states_max: usize) {
    let made = TracePoset::new(trace, Relation::TraceOrderPreserving, raw).expect("it is small");
    let poset = made.poset();
    let checker = Checker::new(trace);
    let mut states = vec![vec![0; poset.chains_count()]];
    let mut seen = std::collections::BTreeSet::from([states[0].clone()]);
    while let Some(state) = states.pop() {
        let base = made.in_trace(trace, &state);
        for (chain, &index) in poset.chains().zip(&state) {
            let held = base.get(made.threads()[chain]).copied().unwrap_or(0);
            assert_eq!(held, index, "a state of all events is its own extension");
        }
        let accepted =
            checker.check(&Reordering { base, schedule: Vec::new() }, &Goal::Enabled(vec![]));
        assert!(accepted.is_ok(), "{state:?}: {:?}", accepted.err());
        for chain in 0..state.len() {
            let mut next = state.clone();
            next[chain] += 1;
            if next[chain] <= poset.length(ChainId::from_index(chain))
                && seen.len() < states_max
                && poset.is_consistent(&next)
                && seen.insert(next.clone())
            {
                states.push(next);
            }
        }
    }
}

const SCOPES: [Scope; 10] = [
    Scope::LOCKS,
    Scope::SHARED_LOCKS,
    Scope::FORKS,
    Scope::NOTIFIES,
    Scope::TIMEOUTS,
    Scope::MONITORS,
    Scope::BARRIERS,
    Scope::SEMAPHORES,
    Scope::ATOMICS,
    Scope::REST,
];

#[test]
fn the_clocks_hold_the_order_in_every_small_trace() {
    for scope in SCOPES {
        scope.for_each(check_order);
    }
}

#[test]
fn every_state_of_every_small_trace_is_a_run() {
    for scope in SCOPES {
        scope.for_each(|trace| check_states(trace, usize::MAX));
    }
    Scope::MONITORS.events(6).for_each(|trace| check_states(trace, usize::MAX));
    Scope::BARRIERS.events(6).threads(3).for_each(|trace| check_states(trace, usize::MAX));
    Scope::TIMEOUTS.events(5).threads(3).for_each(|trace| check_states(trace, usize::MAX));
}

#[test]
fn every_state_of_the_litmus_cases_is_a_run() {
    for case in corpus::litmus() {
        check_states(&case.trace(), 2_000);
    }
}

/// Figure 9 of the paper: of what comes between synchronisations, one event is left.
#[test]
fn accesses_with_nothing_between_them_are_one_event() {
    let trace = trace(
        "
        t1       t2
        w(v1)
        r(v1)
        r(v2)
        r(v2)
        acq(l)
        rel(l)
        branch
                 r(v2)
                 w(v2)
                 post(s)
                 w(v1)
        ",
    );
    let made = TracePoset::new(&trace, Relation::HappensBefore, collections).unwrap();
    let firsts: Vec<Vec<u32>> = made
        .poset()
        .chains()
        .map(|chain| {
            let events = 1..=made.poset().length(chain);
            events.map(|index| made.first(chain, index).unwrap().number()).collect()
        })
        .collect();
    assert_eq!(firsts, [vec![1, 5, 6], vec![8, 10, 11]]);
}

#[test]
fn a_poset_of_some_threads_has_those_chains() {
    let trace = trace(
        "
        t1      t2      t3
        w(x)
        acq(l)
        rel(l)
                acq(l)
                rel(l)
                        acq(l)
                        rel(l)
        ",
    );
    let threads = [2, 0].map(ThreadId::from_index).into_iter().collect();
    let place = |trace: &Trace, event: EventId| match trace.event(event).op {
        Op::Lock(LockOp::Acquire, _) => EventRole::Event,
        _ => EventRole::Outside,
    };
    let made = TracePoset::of_threads(&trace, Relation::HappensBefore, threads, place).unwrap();
    assert_eq!(made.poset().clock(ChainId::from_index(0), 1), [1, 1]);
    // To be at its acquire, the third thread needs what the first and the second did.
    let least = made.in_trace(&trace, &[1, 1]);
    assert_eq!(least.as_slice(), [3, 2, 1]);
}

proptest! {
    #![proptest_config(soak::config(60))]

    #[test]
    fn the_clocks_hold_the_order(drawn in traces(Shape::EVERYTHING.events(40))) {
        check_order(&drawn.0);
    }

    #[test]
    fn every_state_is_a_run(drawn in traces(Shape::EVERYTHING.events(30))) {
        check_states(&drawn.0, 300);
    }

    #[test]
    fn every_state_is_a_run_with_signals(drawn in traces(Shape::SIGNALS.events(30))) {
        check_states(&drawn.0, 300);
    }

    #[test]
    fn every_state_is_a_run_with_barriers(drawn in traces(Shape::BARRIERS.events(30))) {
        check_states(&drawn.0, 300);
    }
}
