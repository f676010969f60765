//! What the trace does not tell, and what is decided all the same.

use expect_test::expect;
use proptest::prelude::*;
use reweave_order::poset::Relation;
use reweave_states::predicate::Predicate;
use reweave_testkit::{Shape, generate, soak, std};
use reweave_trace::Trace;

use crate::predicate::check::{check_everywhere, counter, cuts};
use crate::predicate::check_summaries;
use crate::predicate::drafts::{quantified, truths, with_few_values};

/// Three threads that set a local, of one of which the value is not recorded.
fn locals() -> Trace {
    std("\
t1|let(v)|1|1
t2|let(v)|2|0
t3|let(v)|3
t1|let(v)|4|2
t2|let(v)|5|1
")
}

#[track_caller]
fn check_alike(one: &str, other: &str, trace: &Trace) {
    let [left, right] = [one, other]
        .map(|text| Predicate::parse(text, trace).unwrap_or_else(|error| panic!("{error}")));
    for cut in cuts(trace, Relation::HappensBefore) {
        assert_eq!(left.truth(&cut), right.truth(&cut), "`{one}` and `{other}` at {cut:?}");
        assert_eq!(left.is_met(&cut), right.is_met(&cut), "`{one}` and `{other}` at {cut:?}");
    }
}

#[test]
fn a_count_is_decided_as_far_as_the_truths_that_are_known_decide_it() {
    check_summaries(
        &locals(),
        &[
            "count(t: t.v == 1) >= 1",
            "count(t: t.v == 1) >= 2",
            "count(t: t.v == 2) == 0",
            "always(count(t: t.v == 1) <= 2)",
            "always(count(t: t.v == 1) <= 1)",
            "always(count(t: t.v > 2) == 0)",
            "count(t: t.v == 1) != 3",
            "2 * count(t: t.v == 1) > 3",
            "count(t: t.v == 1) - count(t: t.v == 0) >= 1",
            "count(t: t.v == 1) / 2 == 0",
            "count(t: t.v == 1) % 2 == 0",
            "sum(t: t.v) >= 0",
        ],
        &expect![[r#"
            count(t: t.v == 1) >= 1
                possibly: a sum of 2 AtLeast 1; events [1, 4, 5]
            count(t: t.v == 1) >= 2
                possibly: a sum of 2 AtLeast 2; events [1, 4, 5]
            count(t: t.v == 2) == 0
                possibly: a fold; events [1, 2, 4]
            always(count(t: t.v == 1) <= 2)
                always: a sum of 2 More 2; events [1, 4, 5]
            always(count(t: t.v == 1) <= 1)
                always: a sum of 2 More 1; events [1, 4, 5]
            always(count(t: t.v > 2) == 0)
                always: a fold; events [1, 2]
            count(t: t.v == 1) != 3
                possibly: a fold; events [1, 2, 4, 5]
            2 * count(t: t.v == 1) > 3
                possibly: a sum of 2 More 3; events [1, 2, 4, 5]
            count(t: t.v == 1) - count(t: t.v == 0) >= 1
                possibly: a sum of 2 AtLeast 2; events [1, 4, 5]
            count(t: t.v == 1) / 2 == 0
                possibly: a fold; events [1, 2, 4, 5]
            count(t: t.v == 1) % 2 == 0
                possibly: a fold; events [1, 2, 4, 5]
            sum(t: t.v) >= 0
                possibly: always false, stable; events []
        "#]],
    );
}

#[test]
fn what_no_event_changes_decides_a_count_at_once() {
    let trace = std("t1|let(v)|1|1\nt2|let(v)|2|1\n");
    check_summaries(
        &trace,
        &["count(t: t.v == 2) >= 1", "count(t: t.v == 2) <= 2", "count(t: t.v == 1) < 2"],
        &expect![[r#"
            count(t: t.v == 2) >= 1
                possibly: always false, stable; events []
            count(t: t.v == 2) <= 2
                possibly: a sum of 2 AtMost 2, stable; events [1, 2]
            count(t: t.v == 1) < 2
                possibly: always false, stable; events []
        "#]],
    );
}

#[test]
fn a_sum_that_may_not_fit_is_unknown_with_unknown_truths_too() {
    for text in [
        "count(t: t.v == 1) + 9223372036854775806 >= 1",
        "count(t: t.v == 1) + 9223372036854775805 >= 1",
        "9223372036854775807 * count(t: t.v == 1) >= 0",
        "-9223372036854775807 - count(t: t.v == 1) < 0",
        "-(count(t: t.v == 1) - 9223372036854775807) > count(t: t.v != 1) - 9223372036854775807",
    ] {
        check_everywhere(text, &locals(), Relation::HappensBefore);
    }
}

proptest! {
    #![proptest_config(soak::config(60))]

    #[test]
    fn to_count_is_to_ask_whether_one_or_all_are(
        drawn in generate::traces(Shape { threads: 3, ..Shape::EVERYTHING.events(12) }),
        draft in truths(),
    ) {
        let trace = with_few_values(&drawn);
        let inner = quantified("t", &draft, &trace);
        let threads = trace.names().threads.len();
        let pairs = [
            (format!("count(t: {inner}) >= 1"), format!("exists(t: {inner})")),
            (format!("count(t: {inner}) == 0"), format!("!exists(t: {inner})")),
            (format!("count(t: {inner}) == {threads}"), format!("all(t: {inner})")),
            (format!("count(t: {inner}) < {threads}"), format!("not all(t: {inner})")),
            (format!("count(t: !({inner})) > 0"), format!("not all(t: {inner})")),
        ];
        for (counted, asked) in &pairs {
            check_alike(counted, asked, &trace);
            check_alike(&format!("always({counted})"), &format!("always({asked})"), &trace);
        }
        check_everywhere(&pairs[0].0, &trace, Relation::HappensBefore);
        check_everywhere(&pairs[2].0, &trace, Relation::HappensBefore);
    }

    #[test]
    fn counts_in_arithmetic_agree_with_the_definition(
        drawn in generate::traces(Shape { threads: 3, ..Shape::EVERYTHING.events(10) }),
        drafts in [truths(), truths()],
        kind in 0..8_usize,
    ) {
        let trace = with_few_values(&drawn);
        let [one, other] = [0, 1].map(|at| {
            format!("count(t: {})", quantified("t", &drafts[at], &trace))
        });
        let text = match kind {
            0 => format!("2 * {one} - {other} >= 1"),
            1 => format!("{one} - {other} - {one} < 2 - {other}"),
            2 => format!("{one} / 2 == {other}"),
            3 => format!("{one} % 2 == 1 || {other} * {one} > 2"),
            4 => format!("always({one} != {other})"),
            5 => format!("{one} + position(t1) + x1 > {other} * x2"),
            6 => format!("count(u: {one} > position(u)) <= 1"),
            _ => format!("({one} > 1) == ({other} > 1)"),
        };
        check_everywhere(&text, &trace, Relation::HappensBefore);
    }
}

#[test]
fn what_the_trace_does_not_tell_is_listed() {
    let unknowns = |text: &str| {
        let predicate = Predicate::parse(text, &counter()).unwrap();
        predicate.unknowns().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(unknowns("n == 5 && x == 1 && y == 7"), ["n", "y"]);
    assert_eq!(unknowns("t1.seen == 0 || holds(t1, m)"), ["local(t1, seen)"]);
    assert!(unknowns("position(t1) > 2 && x == 1").is_empty());
}

#[test]
fn what_the_trace_never_tells_is_listed_apart() {
    let never_known = |text: &str, trace: &Trace| {
        let predicate = Predicate::parse(text, trace).unwrap();
        predicate.never_known().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(never_known("n == 5 && x == 1 && y == 7", &counter()), ["n"]);
    assert!(never_known("t1.seen == 0 || holds(t1, m)", &counter()).is_empty());
    assert_eq!(
        never_known(
            "t2.seen == 0 => race_free == 1",
            &std("\
t1|let(seen)|1|0
t2|w(race_free)|2
t1|w(race_free)|3
")
        ),
        ["local(t2, seen)", "race_free"]
    );
    assert!(never_known("never(race)", &counter()).is_empty());
    let trace = locals();
    assert_eq!(never_known("count(t: t.v == 1) >= 1", &trace), ["local(t3, v)"]);
}
