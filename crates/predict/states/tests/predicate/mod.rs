//! Predicates mean what the definition says: at every state, by tables, on chains, chain by chain and
//! by their class; and what is no predicate is refused with the place.

mod check;
mod drafts;
mod errors;
mod unknown;

use std::fmt::Write as _;

use check::{check_everywhere, counter};
use drafts::{truths, with_few_values, written};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_base::IndexVec;
use reweave_order::poset::Relation;
use reweave_states::predicate::{Class, Modality, Predicate, PredicateErrorKind};
use reweave_testkit::{Scope, Shape, generate, soak, std, trace};
use reweave_trace::Trace;

/// What a predicate comes down to in `trace`.
fn summary(text: &str, trace: &Trace) -> String {
    let predicate = match Predicate::parse(text, trace) {
        Ok(predicate) => predicate,
        Err(error) => return error.to_string(),
    };
    let class = match predicate.class() {
        Class::Constant(truth) => format!("always {truth}"),
        Class::Pairwise => "pairwise".into(),
        Class::Conjunctive(any) => format!("conjunctions: {}", any.len()),
        Class::Linear(any) => format!("linear conjunctions: {}", any.len()),
        Class::Stable => "stable".into(),
        Class::Sum(sum) => {
            format!("a sum of {} {:?} {}", sum.terms.len(), sum.comparison, sum.bound)
        }
        Class::Fold => "a fold".into(),
    };
    let stable = if predicate.is_stable() { ", stable" } else { "" };
    let events: Vec<u32> = predicate.relevant_events().iter().map(|id| id.number()).collect();
    format!("{}: {class}{stable}; events {events:?}", predicate.modality().as_str())
}

#[track_caller]
fn check_summaries(trace: &Trace, texts: &[&str], expected: &Expect) {
    let mut shown = String::new();
    for text in texts {
        writeln!(shown, "{text}\n    {}", summary(text, trace))
            .expect("text takes what is written");
        if !text.contains("race") {
            check_everywhere(text, trace, Relation::HappensBefore);
        }
    }
    expected.assert_eq(&shown);
}

#[test]
fn each_class_is_recognised_with_the_events_that_matter() {
    check_summaries(
        &counter(),
        &[
            "true",
            "race",
            "never(race)",
            "holds(t1, m) && holds(t2, m)",
            "always(!(holds(t1, m) && at(t2, \"b.c:2\")))",
            "x == 1",
            "y == 7 && not done(t1)",
            "at(t1, \"a.c:2\") || next(t1, \"a.c:4\") and started(t2)",
            "all(t: done(t))",
            "definitely(count(t: started(t)) >= 2)",
            "count(t: holds(t, m)) >= 2",
            "position(t1) <= position(t2)",
            "position(t1) - position(t2) != 1 && holds(t2, m)",
            "x + y == 8 && started(t2)",
            "t1.seen == 0 => x > local(t1, seen)",
            "`n` == 5",
            "sum(t: position(t)) % 2 == 0",
            "count(t: done(t)) >= 2 && sum(t: position(t)) >= 9",
            "exists(a: exists(b: position(a) > position(b) + 3))",
        ],
        &expect![[r#"
            true
                possibly: always true, stable; events []
            race
                possibly: pairwise; events [2, 4, 6, 8, 10]
            never(race)
                never: pairwise; events [2, 4, 6, 8, 10]
            holds(t1, m) && holds(t2, m)
                possibly: conjunctions: 1; events [1, 5, 7, 9]
            always(!(holds(t1, m) && at(t2, "b.c:2")))
                always: conjunctions: 1; events [1, 5, 7, 8]
            x == 1
                possibly: a fold; events [4, 8]
            y == 7 && not done(t1)
                possibly: conjunctions: 1; events [5, 6]
            at(t1, "a.c:2") || next(t1, "a.c:4") and started(t2)
                possibly: conjunctions: 2; events [2, 4, 5, 6]
            all(t: done(t))
                possibly: conjunctions: 1, stable; events [5, 9, 10]
            definitely(count(t: started(t)) >= 2)
                definitely: a sum of 3 AtLeast 2, stable; events [1, 6, 10]
            count(t: holds(t, m)) >= 2
                possibly: a sum of 2 AtLeast 2; events [1, 5, 7, 9]
            position(t1) <= position(t2)
                possibly: linear conjunctions: 1; events [1, 2, 3, 4, 5, 6, 7, 8, 9]
            position(t1) - position(t2) != 1 && holds(t2, m)
                possibly: linear conjunctions: 2; events [1, 2, 3, 4, 5, 6, 7, 8, 9]
            x + y == 8 && started(t2)
                possibly: a fold; events [4, 6, 8]
            t1.seen == 0 => x > local(t1, seen)
                possibly: a fold; events [3, 4, 8]
            `n` == 5
                possibly: always false, stable; events []
            sum(t: position(t)) % 2 == 0
                possibly: a fold; events [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
            count(t: done(t)) >= 2 && sum(t: position(t)) >= 9
                possibly: stable, stable; events [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
            exists(a: exists(b: position(a) > position(b) + 3))
                possibly: linear conjunctions: 6; events [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
        "#]],
    );
}

#[test]
fn names_come_in_quotes_and_backquotes_and_as_numbers() {
    let trace = std("\
1|w(obj+8)|3|4
main thread|acq(and)|x y|0
1|let(a.b)|4|9
");
    check_summaries(
        &trace,
        &[
            "`obj+8` == 4",
            "holds(\"main thread\", and)",
            "at(1, 3) && local(1, a.b) == 9",
            "next(1, \"4\")",
            "at(\"main thread\", \"x y\")",
            "exists(t: t.a.b == 9)",
        ],
        &expect![[r#"
            `obj+8` == 4
                possibly: conjunctions: 1, stable; events [1]
            holds("main thread", and)
                possibly: conjunctions: 1, stable; events [2]
            at(1, 3) && local(1, a.b) == 9
                possibly: always false, stable; events []
            next(1, "4")
                possibly: conjunctions: 1; events [1, 3]
            at("main thread", "x y")
                possibly: conjunctions: 1, stable; events [2]
            exists(t: t.a.b == 9)
                possibly: conjunctions: 1, stable; events [3]
        "#]],
    );
}

#[test]
fn a_name_with_dots_is_split_where_it_is_a_thread_and_a_local() {
    let trace = std("\
t1|w(obj.next)|1|1
t1|let(next)|2|2
a.b|let(a.b.v)|3|3
a|let(b.c)|4|4
a.b|let(c)|5|5
a|w(a.b.x)|6|6
");
    for text in [
        "obj.next == 1",
        "t1.next == 2 && obj.next == 1",
        "a.b.a.b.v == 3",
        "exists(u: u.a.b.v == 3)",
        "a.b.c == 4",
        "local(a.b, c) == 5",
        "a.b.x == 6",
        "exists(u.w: u.w.c == 5)",
        "exists(obj: obj.next == 2)",
        "count(a.b: local(a.b, c) == 5) >= 1",
    ] {
        check_everywhere(text, &trace, Relation::HappensBefore);
        assert!(find_any(text, &trace), "{text}");
    }
}

/// Whether some state meets `text`.
fn find_any(text: &str, trace: &Trace) -> bool {
    let predicate = Predicate::parse(text, trace).unwrap_or_else(|error| panic!("{error}"));
    check::cuts(trace, Relation::HappensBefore).iter().any(|cut| predicate.is_met(cut))
}

#[test]
fn a_trace_without_events_has_predicates() {
    let empty = trace("");
    for text in ["true", "count(t: done(t)) == 0", "all(t: started(t))", "sum(t: position(t)) > 0"]
    {
        check_everywhere(text, &empty, Relation::HappensBefore);
    }
}

#[test]
fn arithmetic_that_does_not_fit_is_unknown() {
    let trace = std("\
t1|w(x)|1|9223372036854775807
t2|w(y)|2|9223372036854775807
t1|w(x)|3|-9223372036854775808
t2|w(y)|4|1
t2|w(y)|5|0
");
    for text in [
        "x + y > 0",
        "x + y - x > 0",
        "x - y <= 0",
        "always(x + 1 > y)",
        "x * 2 + y > 0",
        "-x > y",
        "x / y == 0 || x % y == 0",
        "x + x + y - x - y == x",
        "x + position(t2) + 9223372036854775807 - 9223372036854775807 > y",
        "x + 9223372036854775807 + 9223372036854775807 + y + y > 0",
        "sum(t: x) < y",
    ] {
        check_everywhere(text, &trace, Relation::HappensBefore);
    }
}

#[test]
fn what_updates_wrote_is_known_where_a_read_saw_it() {
    let trace = std("\
t1|arw(n)|1|1
t2|r(n)|2|1
t1|arw(n)|3|2
t2|w(n)|4
t1|ar(n)|5|7
t1|r(m)|6
t2|r(m)|7|3
");
    let values = |cut: [u32; 2]| {
        let predicate = Predicate::parse("n + m > 0", &trace).unwrap();
        let cut = IndexVec::from_vec(cut.to_vec());
        predicate.values(&cut).map(|atom| (atom.text.to_owned(), atom.value)).collect::<Vec<_>>()
    };
    let at = |n| vec![("n".to_owned(), n), ("m".to_owned(), Some(3))];
    assert_eq!(values([0, 0]), at(None));
    assert_eq!(values([1, 0]), at(Some(1)));
    assert_eq!(values([2, 1]), at(None));
    assert_eq!(values([2, 2]), at(Some(7)));
    check_everywhere("n + m > 7", &trace, Relation::TraceOrderPreserving);
}

const MODALITIES: [Modality; 4] =
    [Modality::Possibly, Modality::Definitely, Modality::Always, Modality::Never];

proptest! {
    #![proptest_config(soak::config(200))]

    #[test]
    fn every_way_of_asking_agrees_with_the_definition(
        drawn in generate::traces(Shape { threads: 3, ..Shape::EVERYTHING.events(13) }),
        draft in truths(),
        modality in prop::sample::select(MODALITIES.to_vec()),
        is_kept in any::<bool>(),
    ) {
        let trace = with_few_values(&drawn);
        let text = written(&draft, &trace);
        let text = format!("{}({text})", modality.as_str());
        let relation = if is_kept { Relation::TraceOrderPreserving } else { Relation::HappensBefore };
        check_everywhere(&text, &trace, relation);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ -~]{0,40}|[a-z(),:!&|=<>0-9 \"`.é\n-]{0,60}") {
        if let Err(error) = Predicate::parse(&text, &counter()) {
            prop_assert!(!error.to_string().is_empty());
            prop_assert!(error.span.start <= error.span.end && error.span.end <= error.text.len());
        }
    }
}

#[test]
fn on_every_small_trace_predicates_mean_what_they_say() {
    let texts = [
        "x == 0 || position(t1) > position(t2)",
        "always(count(t: holds(t, l)) <= 1)",
        "holds(t1, l) && !holds(t2, l) && done(t2)",
        "exists(t: at(t, 0)) && not all(t: started(t))",
        "count(t: next(t, 0)) == 1 || t1.a == 1",
        "sum(t: position(t)) == 2 && x != 1",
        "count(t: t.a == 1) >= 1",
    ];
    let mut compared = 0;
    for scope in [
        Scope::LOCKS,
        Scope::SHARED_LOCKS,
        Scope::FORKS,
        Scope::NOTIFIES,
        Scope::TIMEOUTS,
        Scope::MONITORS,
        Scope::BARRIERS,
        Scope::SEMAPHORES,
        Scope::ATOMICS.events(3),
        Scope::REST.events(3),
    ] {
        scope.for_each(|trace| {
            for text in texts {
                let is_named = match Predicate::parse(text, trace) {
                    Ok(_) => true,
                    Err(error) => {
                        assert!(
                            matches!(error.kind, PredicateErrorKind::Unknown { .. }),
                            "{error}"
                        );
                        false
                    }
                };
                if is_named {
                    compared += 1;
                    check_everywhere(text, trace, Relation::HappensBefore);
                }
            }
        });
    }
    assert!(compared > 1_000, "{compared}");
}
