//! What is left of a trace has races on the same variables, and nothing is dropped that orders.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_races::reduce::{Reduced, kept_events};
use reweave_races::relation::{Relation, pairs};
use reweave_testkit::{Scope, Shape, corpus, draw, soak, traces};
use reweave_trace::{EventId, OpKind, Trace, VarId};

const RELATIONS: [Relation; 3] = [Relation::HappensBefore, Relation::Wcp, Relation::Cp];

/// The variables with a race of `relation`, in ascending order.
fn racy_variables(trace: &Trace, relation: Relation) -> Vec<VarId> {
    let of = |event: EventId| trace.event(event).op.var().expect("races are of accesses");
    let mut vars: Vec<VarId> =
        pairs(trace, relation, None).iter().map(|race| of(race.second)).collect();
    vars.sort_unstable();
    vars.dedup();
    vars
}

/// What is promised of any trace.
fn keeps_its_promise(trace: &Trace) -> Result<(), String> {
    let reduced = Reduced::new(trace);
    for (own, &full) in reduced.events.entries() {
        if reduced.trace.event(own) != trace.event(full) {
            return Err(format!("event {} is not as it was", full.number()));
        }
    }
    for relation in RELATIONS {
        let (full, left) =
            (racy_variables(trace, relation), racy_variables(&reduced.trace, relation));
        if full != left {
            return Err(format!("{relation:?}: {full:?} became {left:?}"));
        }
    }
    Ok(())
}

#[track_caller]
fn check(drawing: &str, dropped: &Expect) {
    let trace = reweave_testkit::trace(drawing);
    assert_eq!(keeps_its_promise(&trace), Ok(()));
    let kept = kept_events(&trace);
    let dropped_events = trace.events().map(|(id, _)| id).filter(|id| !kept.contains(id));
    let spelled: Vec<String> =
        dropped_events.map(|id| format!("{} {}", id.number(), trace.spell(id))).collect();
    dropped.assert_eq(&spelled.join("\n"));
}

#[test]
fn variables_of_one_thread_or_never_written_are_dropped() {
    check(
        "
        t1      t2
        w(own)
        r(own)
        r(c)
                r(c)
        w(x)
                r(x)
        ",
        &expect![[r#"
            1 t1|w(own)
            2 t1|r(own)
            3 t1|r(c)
            4 t2|r(c)"#]],
    );
}

#[test]
fn an_access_is_dropped_if_its_thread_made_one_of_its_kind_since_it_last_synchronised() {
    check(
        "
        t1      t2
        r(x)
        w(x)
        r(x)
                w(x)
        w(x)
        acq(m)
        w(x)
        rel(m)
        ",
        &expect![[r#"
            3 t1|r(x)
            5 t1|w(x)"#]],
    );
}

#[test]
fn empty_sections_and_locks_of_one_thread_stay() {
    check(
        "
        t1      t2
        acq(l)
        rel(l)
        acq(m)
        rel(m)
                acq(m)
                rel(m)
        ",
        &expect![""],
    );
}

#[test]
fn a_variable_with_an_atomic_access_stays_whole() {
    // Without the second plain write the atomic read would see the atomic write, and y be ordered.
    check(
        "
        t1      t2      t3
        w(x)
                w(y)
                aw(x)
        w(x)
                        ar(x)
                        w(y)
        ",
        &expect![""],
    );
}

#[test]
fn what_is_no_access_and_orders_nothing_begins_no_new_segment() {
    check(
        "
        t1      t2
        w(x)
        begin(b)
        w(x)
        end(b)
                w(x)
        ",
        &expect!["3 t1|w(x)"],
    );
}

#[test]
fn every_small_trace_keeps_its_racy_variables() {
    use OpKind::*;
    let scopes = [
        Scope::LOCKS.events(6),
        Scope::LOCKS.threads(3).things(2).events(5),
        Scope::new(&[Write, Read, AcquireShared, ReleaseShared, Acquire, Release]).events(6),
        Scope::FORKS.threads(3).events(6),
        Scope::new(&[Write, Read, Wait, Wake, Timeout, Notify, NotifyAll]).events(5),
        Scope::new(&[Write, Read, Arrive, Depart]).events(6),
        Scope::new(&[Write, Read, Post, Take]).events(6),
        Scope::ATOMICS.threads(3).events(4),
        Scope::new(&[Write, Read, AtomicWrite, AtomicRead]).threads(3).events(5),
        Scope::new(&[Write, Alloc, Free, Request, Fence, Branch]).events(5),
    ];
    for scope in scopes {
        scope.for_each(|trace| {
            let kept = keeps_its_promise(trace);
            assert_eq!(kept, Ok(()), "\n{}", draw(trace));
        });
    }
}

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn racy_variables_are_kept(trace in traces(Shape::EVERYTHING)) {
        prop_assert_eq!(keeps_its_promise(&trace), Ok(()));
    }

    #[test]
    fn racy_variables_are_kept_under_locks(trace in traces(Shape { vars: 8, ..Shape::LOCKS })) {
        prop_assert_eq!(keeps_its_promise(&trace), Ok(()));
    }

    #[test]
    fn racy_variables_are_kept_in_nested_sections(
        trace in traces(Shape { vars: 6, ..Shape::NESTED }),
    ) {
        prop_assert_eq!(keeps_its_promise(&trace), Ok(()));
    }

    #[test]
    fn racy_variables_are_kept_among_forks(
        trace in traces(Shape { vars: 8, locks: 2, ..Shape::FORKS }),
    ) {
        prop_assert_eq!(keeps_its_promise(&trace), Ok(()));
    }

    #[test]
    fn racy_variables_are_kept_among_atomics(
        trace in traces(Shape { vars: 6, ..Shape::ATOMICS }),
    ) {
        prop_assert_eq!(keeps_its_promise(&trace), Ok(()));
    }

    #[test]
    fn what_is_reduced_can_be_reduced_no_further(trace in traces(Shape::EVERYTHING)) {
        let once = Reduced::new(&trace).trace;
        prop_assert_eq!(&Reduced::new(&once).trace, &once);
    }
}

#[test]
fn the_corpus_keeps_its_racy_variables() {
    for case in corpus::litmus().into_iter().chain(corpus::traces()) {
        assert_eq!(keeps_its_promise(&case.trace()), Ok(()), "{}", case.name);
    }
}
