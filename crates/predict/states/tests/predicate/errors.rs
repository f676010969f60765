//! What is no predicate is refused, and the place is shown.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use reweave_order::poset::Relation;
use reweave_states::predicate::{DEPTH_MAX, Predicate, PredicateErrorKind, TEXT_MAX};
use reweave_testkit::std;

use crate::predicate::check::{check_everywhere, counter};

#[track_caller]
fn check_errors(texts: &[&str], expected: &Expect) {
    let trace = counter();
    let mut shown = String::new();
    for text in texts {
        let error = Predicate::parse(text, &trace).expect_err(text);
        writeln!(shown, "{error}\n").expect("text takes what is written");
    }
    expected.assert_eq(&shown);
}

#[test]
fn what_cannot_be_read_is_shown_with_its_place() {
    check_errors(
        &[
            "",
            "x = 1",
            "x == 1 &",
            "x == 1 && ",
            "(x == 1",
            "x == 1)",
            "at(t1, \"a.c:1)",
            "x # 3",
            "x == 99999999999999999999",
            "x ==\n  1 1",
        ],
        &expect![[r#"
            expected a variable, a number, a function or `(`, found the end

              ^

            unexpected `=`
              x = 1
                ^
            write == to compare

            unexpected `&`
              x == 1 &
                     ^
            write && for and

            expected a variable, a number, a function or `(`, found the end
              x == 1 &&
                        ^

            expected an operator or `)`, found the end
              (x == 1
                     ^

            expected an operator or the end, found `)`
              x == 1)
                    ^

            the name has no closing "
              at(t1, "a.c:1)
                     ^^^^^^^
            close it with "

            unexpected `#`
              x # 3
                ^
            put names with such characters in backquotes

            expected a decimal integer up to 9223372036854775807
              x == 99999999999999999999
                   ^^^^^^^^^^^^^^^^^^^^

            expected an operator or the end, found `1`
                1 1
                  ^

        "#]],
    );
}

#[test]
fn what_is_not_put_together_rightly_says_how_it_is() {
    check_errors(
        &[
            "0 < x < 3",
            "holds(t1)",
            "holds(t1 m)",
            "position()",
            "hold(t1, m)",
            "count(holds(t1, m)) > 1",
            "count(t: count(t: done(t)) > 1) > 1",
        ],
        &expect![[r#"
            a comparison has two sides
              0 < x < 3
                    ^
            join two comparisons with &&, as in a < b && b < c

            expected `holds(thread, lock)`
              holds(t1)
              ^^^^^^^^^

            expected `holds(thread, lock)`
              holds(t1 m)
              ^^^^^^^^^^

            expected a thread, found `)`
              position()
                       ^

            there is no function `hold`
              hold(t1, m)
              ^^^^
            the nearest is `holds`

            expected `count(t: …)`
              count(holds(t1, m)) > 1
              ^^^^^^^^^^^

            `t` stands for a thread already
              count(t: count(t: done(t)) > 1) > 1
                             ^
            give the inner one another name

        "#]],
    );
}

#[test]
fn modalities_and_races_stand_alone() {
    check_errors(
        &["never(x == 1) && y == 7", "x == 1 && never(y == 7)", "race && x == 1", "always(race)"],
        &expect![[r#"
            possibly, definitely, always and never stand around the whole predicate
              never(x == 1) && y == 7
              ^^^^^
            ask for each part by itself

            possibly, definitely, always and never stand around the whole predicate
              x == 1 && never(y == 7)
                        ^^^^^
            ask for each part by itself

            `race` stands alone, or alone within possibly(…) or never(…)
              race && x == 1
              ^^^^
            ask for races by themselves, or put the name of a variable in backquotes

            `race` stands alone, or alone within possibly(…) or never(…)
              always(race)
                     ^^^^
            ask for races by themselves, or put the name of a variable in backquotes

        "#]],
    );
}

#[test]
fn what_the_trace_does_not_have_is_shown_with_what_comes_near() {
    check_errors(
        &[
            "z == 1",
            "holds(T1, m)",
            "holds(t1, n)",
            "at(t1, \"a.c:9\")",
            "t1.seem == 0",
            "m == 1",
            "t1 == 1",
            "seen == 1",
        ],
        &expect![[r#"
            the trace has no variable `z`
              z == 1
              ^
            the nearest are `n`, `x` and `y`

            the trace has no thread `T1`
              holds(T1, m)
                    ^^
            the nearest are `t1` and `t2`

            the trace has no lock `n`
              holds(t1, n)
                        ^
            the nearest is `m`

            the trace has no location `a.c:9`
              at(t1, "a.c:9")
                     ^^^^^^^
            the nearest are `a.c:1`, `a.c:2` and `a.c:3`

            the trace has no local `seem`
              t1.seem == 0
                 ^^^^
            the nearest is `seen`

            the trace has no variable `m`
              m == 1
              ^
            it is a lock: holds(T, m) asks whether a thread has it

            the trace has no variable `t1`
              t1 == 1
              ^^
            it is a thread: position(T) and done(T) speak of one

            the trace has no variable `seen`
              seen == 1
              ^^^^
            it is a local: T.name is that of thread T

        "#]],
    );
}

#[test]
fn numbers_and_truths_are_not_mixed() {
    check_errors(
        &[
            "x",
            "holds(t1, m) + 1 == 2",
            "x && y == 7",
            "done(t1) < done(t2)",
            "done(t1) == x",
            "count(t: position(t)) > 1",
        ],
        &expect![[r#"
            expected a truth value, found a number
              x
              ^
            compare it, as in x != 0

            expected a number, found a truth value
              holds(t1, m) + 1 == 2
              ^^^^^^^^^^^^
            count(t: …) says for how many threads something is true

            expected a truth value, found a number
              x && y == 7
              ^
            compare it, as in x != 0

            expected a number, found a truth value
              done(t1) < done(t2)
              ^^^^^^^^
            count(t: …) says for how many threads something is true

            expected a number, found a truth value
              done(t1) == x
              ^^^^^^^^
            leave out the comparison, or write ! before it for false

            expected a truth value, found a number
              count(t: position(t)) > 1
                       ^^^^^^^^^^^
            compare it, as in x != 0

        "#]],
    );
}

#[test]
fn quotes_and_numbers_as_elsewhere_are_told_how_they_are_here() {
    check_errors(
        &[
            "next(t1, 'a.c:1')",
            "x == 2.5",
            "x == 0x1F",
            "x == 2u",
            "position(1st) > 2",
            "x == 1_000",
        ],
        &expect![[r#"
            unexpected `'`
              next(t1, 'a.c:1')
                       ^
            use double quotes

            expected a decimal integer
              x == 2.5
                   ^^^
            write a whole number, or put a name in double quotes

            expected a decimal integer
              x == 0x1F
                   ^^^^
            write 31, or put a name in double quotes

            expected a decimal integer
              x == 2u
                   ^^
            write 2, or put a name in double quotes

            expected a decimal integer
              position(1st) > 2
                       ^^^
            write a whole number, or put a name in double quotes

            expected a decimal integer
              x == 1_000
                   ^^^^^
            write a whole number, or put a name in double quotes

        "#]],
    );
}

#[test]
fn words_as_elsewhere_are_told_what_they_are_here() {
    check_errors(
        &[
            "posibly(x == 1)",
            "eventually(x == 1)",
            "forall(t: done(t))",
            "race == 1",
            "not == 1",
            "x + or > 2",
        ],
        &expect![[r#"
            there is no function `posibly`
              posibly(x == 1)
              ^^^^^^^
            the nearest is `possibly`

            there is no function `eventually`
              eventually(x == 1)
              ^^^^^^^^^^
            the nearest is `definitely`

            there is no function `forall`
              forall(t: done(t))
              ^^^^^^
            the nearest is `all`

            `race` stands alone, or alone within possibly(…) or never(…)
              race == 1
              ^^^^
            ask for races by themselves, or put the name of a variable in backquotes

            expected a variable, a number, a function or `(`, found `==`
              not == 1
                  ^^
            a variable called and, or, or not goes in backquotes

            expected a variable, a number, a function or `(`, found `or`
              x + or > 2
                  ^^
            a variable called and, or, or not goes in backquotes

        "#]],
    );
}

#[test]
fn names_and_truths_as_elsewhere_are_told_how_they_are_here() {
    check_errors(
        &[
            "obj->next == 1",
            "next(t1, a.c:22)",
            "at(t1, src/a.c)",
            "holds(t1, m-1)",
            "holds(t1, m) == 1",
            "1 != done(t1)",
            "holds(t1, m) >= 1",
        ],
        &expect![[r#"
            expected a variable, a number, a function or `(`, found `>`
              obj->next == 1
                  ^
            put names with -> in backquotes

            expected `next(thread, "location")`
              next(t1, a.c:22)
              ^^^^^^^^^^^^^
            put the location in double quotes

            expected `at(thread, "location")`
              at(t1, src/a.c)
              ^^^^^^^^^^^
            put the location in double quotes

            expected `holds(thread, lock)`
              holds(t1, m-1)
              ^^^^^^^^^^^^
            put names with such characters in double quotes

            expected a number, found a truth value
              holds(t1, m) == 1
              ^^^^^^^^^^^^
            leave out the comparison, or write ! before it for false

            expected a number, found a truth value
              1 != done(t1)
                   ^^^^^^^^
            leave out the comparison, or write ! before it for false

            expected a number, found a truth value
              holds(t1, m) >= 1
              ^^^^^^^^^^^^
            leave out the comparison, or write ! before it for false

        "#]],
    );
}

#[test]
fn a_number_may_be_followed_by_and_at_once() {
    check_everywhere("x == 1and y == 7or x == 2", &counter(), Relation::HappensBefore);
}

#[test]
fn a_name_of_two_things_must_be_told_apart() {
    let trace = std("t1|w(t1.v)|1|3\nt1|let(v)|2|4\n");
    let error = Predicate::parse("t1.v == 3", &trace).unwrap_err();
    expect![[r#"
        `t1.v` is the name of a variable and of a local
          t1.v == 3
          ^^^^
        write `t1.v`, in backquotes, for the variable and local(t1, v) for the local"#]]
    .assert_eq(&error.to_string());
    for text in ["`t1.v` == 3", "local(t1, v) == 4", "exists(t: t.v == 4)"] {
        check_everywhere(text, &trace, Relation::HappensBefore);
    }
}

#[test]
fn a_long_line_is_shown_around_the_place() {
    let text =
        format!("{} && zz == 1 && {}", ["x == 1"; 30].join(" && "), ["y > 2"; 30].join(" && "));
    let error = Predicate::parse(&text, &counter()).unwrap_err();
    expect![[r#"
        the trace has no variable `zz`
          …x == 1 && x == 1 && x == 1 && x == 1 && zz == 1 && y > 2 && y > 2 && y > 2 && y > 2 && y >…
                                                   ^^
        the nearest are `n`, `x` and `y`"#]].assert_eq(&error.to_string());
}

#[test]
fn hostile_texts_are_refused_without_harm() {
    let trace = counter();
    let kind = |text: &str| Predicate::parse(text, &trace).unwrap_err().kind;
    for text in ["(", "!", "-", "not ", "x == 1 => ", "count(t: ", "0 * ", "-(", "1 % (", "!("] {
        let many = text.repeat(TEXT_MAX / text.len());
        assert!(!kind(&many).to_string().is_empty());
    }
    let nested = |depth: usize| format!("{}x == 1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Predicate::parse(&nested(DEPTH_MAX), &trace).is_ok());
    assert_eq!(kind(&nested(DEPTH_MAX + 1)), PredicateErrorKind::TooDeep);
    let product = format!("{}1 == x", "1 * ".repeat(DEPTH_MAX + 1));
    assert_eq!(kind(&product), PredicateErrorKind::TooDeep);
    let wide = |count: usize| vec!["x == 1"; count].join(" || ");
    assert!(Predicate::parse(&wide(1_000), &trace).is_ok());
    assert_eq!(kind(&wide(10_000)), PredicateErrorKind::TooLong);
    let inner = vec!["position(a) + position(b) + position(c) > 1"; 20].join(" || ");
    let threads: Vec<String> = (0..20).map(|at| format!("t{at}|w(x)|1|{at}\n")).collect();
    let many = std(&threads.concat());
    let all = format!("exists(a: exists(b: exists(c: {inner})))");
    let error = Predicate::parse(&all, &many).unwrap_err();
    assert_eq!(error.kind, PredicateErrorKind::TooLarge);
}
