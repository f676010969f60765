//! In every mode the same witnesses are decided as feasible as are by definition, on random,
//! enumerated and corpus traces; and the modes fit together.

use crate::common;

use common::{guarded, reference, verdicts};
use expect_test::expect;
use proptest::prelude::*;
use reweave_testkit::{Scope, Shape, corpus, soak, trace, traces};
use reweave_trace::OpKind;

#[test]
fn every_read_of_a_known_writer_is_challenged_by_every_other_write() {
    let trace = trace(
        "
        t1       t2
        w(y)
                 r(x)
        w(x)
                 arw(x)
                 r?(x)
                 r(y)
        aw(x)
        ",
    );
    let mut text = String::new();
    let all = reference::witnesses(&trace).into_iter().chain(reference::final_witnesses(&trace));
    for witness in all {
        text += &format!("{}\n", verdicts::spell(&witness));
    }
    expect![[r#"
        6 saw 1, kind 1 with init
        6 saw 1, kind 2 with init
        6 saw 1, kind 3 with init
        2 saw init, kind 1 with 3
        2 saw init, kind 2 with 3
        2 saw init, kind 3 with 3
        2 saw init, kind 1 with 4
        2 saw init, kind 2 with 4
        2 saw init, kind 3 with 4
        2 saw init, kind 1 with 7
        2 saw init, kind 2 with 7
        2 saw init, kind 3 with 7
        4 saw 3, kind 1 with init
        4 saw 3, kind 2 with init
        4 saw 3, kind 3 with init
        4 saw 3, kind 1 with 7
        4 saw 3, kind 2 with 7
        4 saw 3, kind 3 with 7
        end saw 1, kind 1 with init
        end saw 1, kind 2 with init
        end saw 1, kind 3 with init
        end saw 7, kind 1 with init
        end saw 7, kind 2 with init
        end saw 7, kind 3 with init
        end saw 7, kind 1 with 3
        end saw 7, kind 2 with 3
        end saw 7, kind 3 with 3
        end saw 7, kind 1 with 4
        end saw 7, kind 2 with 4
        end saw 7, kind 3 with 4
    "#]]
    .assert_eq(&text);
}

/// Accesses among all other operations, each kind with those that it goes with.
const SCOPES: [Scope; 13] = {
    use OpKind::*;
    let counted = Scope::new(&[Write, Read, Post, Take]).events(5);
    let together = Scope::new(&[Write, Read, Arrive, Depart]).events(5);
    [
        Scope::LOCKS.events(6),
        Scope::LOCKS.threads(3).things(2).events(4),
        Scope::new(&[Write, Read, Acquire, Release, AcquireShared, ReleaseShared]).events(5),
        Scope::FORKS.threads(3).events(5),
        Scope::new(&[Write, Read, Wait, Wake, Timeout, Notify, NotifyAll]).events(5),
        Scope::new(&[Write, Read, Acquire, Release, Wait, Notify]).events(5),
        together,
        Scope { parties: Some(2), ..together },
        counted,
        Scope { start: Some(1), ..counted },
        Scope::new(&[Write, Read, AtomicUpdate]).threads(3).events(5),
        Scope::ATOMICS.threads(3).events(4),
        Scope::new(&[Write, Read, Alloc, Free]).events(5),
    ]
};

#[test]
fn verdicts_fit_on_every_small_trace() {
    for scope in SCOPES {
        scope.for_each(|trace| assert_eq!(verdicts::fault(trace).unwrap_or_default(), ""));
    }
}

#[test]
fn verdicts_fit_on_litmus_cases() {
    for case in corpus::litmus() {
        assert_eq!(verdicts::fault(&case.trace()).unwrap_or_default(), "", "{}", case.name);
    }
}

macro_rules! verdicts_fit {
    ($($name:ident: $traces:expr;)+) => {
        proptest! {
            #![proptest_config(soak::config(100))]
            $(
                #[test]
                fn $name(trace in $traces) {
                    prop_assert_eq!(verdicts::fault(&trace).unwrap_or_default(), "");
                }
            )+
        }
    };
}

verdicts_fit! {
    verdicts_fit_on_guarded_accesses: guarded::traces(8);
    verdicts_fit_on_small_traces: traces(Shape::SMALL);
    verdicts_fit_on_general_traces: traces(Shape { vars: 2, ..Shape::GENERAL.events(20) });
    verdicts_fit_on_locks: traces(Shape::LOCKS.events(18));
    verdicts_fit_on_nested_locks: traces(Shape::NESTED.events(20));
    verdicts_fit_on_forks: traces(Shape::FORKS.events(20));
    verdicts_fit_on_signals: traces(Shape::SIGNALS.events(20));
    verdicts_fit_on_barriers: traces(Shape::BARRIERS.events(16));
    verdicts_fit_on_semaphores: traces(Shape::SEMAPHORES.events(18));
    verdicts_fit_on_atomics: traces(Shape::ATOMICS.events(14));
    verdicts_fit_on_everything: traces(Shape::EVERYTHING.events(24));
}
