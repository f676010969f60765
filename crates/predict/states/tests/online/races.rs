//! Races by states and by pairs, against happens-before by definition.

use std::collections::BTreeSet;

use proptest::prelude::*;
use reweave_base::Id;
use reweave_states::online::{Access, Form, OnlineDetector, Options, Races, collected, races};
use reweave_testkit::{Drawn, Scope, Shape, corpus, soak, traces};
use reweave_trace::{AccessOp, Marker, Op, Trace, VarId};

use crate::online::common::{chain, limits};
use crate::reference;

proptest! {
    #![proptest_config(soak::config(60))]

    #[test]
    fn racy_variables_are_those_that_happens_before_leaves_unordered(
        drawn in all_shapes(),
        workers in 0..3_usize,
    ) {
        check_races(&drawn, Options { workers, ..limits() });
    }
}

/// Traces of every shape.
fn all_shapes() -> impl Strategy<Value = Drawn> {
    let of_shape = |(_, shape): (&str, Shape)| traces(shape.events(30)).boxed();
    proptest::strategy::Union::new(Shape::ALL.map(of_shape))
}

#[track_caller]
fn check_races(trace: &Trace, options: Options) {
    let expected = reference::racy(trace);
    for form in [Form::States, Form::Pairs] {
        let found = races(trace, form, options).expect("it is small");
        assert_eq!(found.answer, expected, "{form:?}");
        assert!(found.summary.is_complete());
    }
}

#[test]
fn racy_variables_of_all_small_traces_are_by_definition() {
    let scopes = [
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
    for scope in scopes {
        scope.for_each(|trace| check_races(trace, limits()));
    }
    for case in corpus::litmus() {
        check_races(&case.trace(), limits());
    }
}

#[test]
fn the_last_events_of_two_threads_do_not_race_if_one_comes_before_the_other() {
    let var = VarId::from_index;
    let label = |var, op: fn(VarId) -> Op| collected([op(var)]);
    for form in [Form::States, Form::Pairs] {
        let detector = OnlineDetector::new(Races::new(form), limits());
        detector
            .insert(chain(0), &[1], label(var(0), |it| Op::Access(AccessOp::Write, it)))
            .unwrap();
        detector
            .insert(chain(1), &[1, 1], label(var(0), |it| Op::Access(AccessOp::Read, it)))
            .unwrap();
        detector
            .insert(chain(0), &[2], label(var(1), |it| Op::Access(AccessOp::Write, it)))
            .unwrap();
        detector
            .insert(chain(1), &[1, 2], label(var(1), |it| Op::Access(AccessOp::Read, it)))
            .unwrap();
        assert_eq!(detector.finish().answer, BTreeSet::from([var(1)]));
    }
}

#[test]
fn a_collection_has_a_write_or_else_a_read_of_each_variable() {
    let var = VarId::from_index;
    let read = Op::Access(AccessOp::Read, var(0));
    let all = [
        read,
        Op::Access(AccessOp::Write, var(1)),
        Op::Access(AccessOp::Read, var(1)),
        Op::Marker(Marker::Branch),
        read,
    ];
    let expected = [read, Op::Access(AccessOp::Write, var(1))].map(|op| Access::new(op).unwrap());
    assert_eq!(*collected(all), expected);
}
