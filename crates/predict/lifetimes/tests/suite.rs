//! Uses after free, compared with their definition.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use reweave_analysis::{Guarantee, Settings, Subject};
use reweave_base::Rng;
use reweave_lifetimes::free::uses;
use reweave_oracle::lifetimes::uses_after_free;
use reweave_testkit::soak;
use reweave_trace::{EventId, Trace};

const STATES_MAX: usize = 200_000;

/// The pairs of a free and an access that are found in `trace`.
fn found(trace: &Trace, settings: &Settings) -> BTreeSet<(EventId, EventId)> {
    let findings = uses(&Subject::new(trace), settings);
    let pair = |events: &[EventId]| (events[0], events[1]);
    findings.iter().map(|finding| pair(&finding.events)).collect()
}

#[track_caller]
fn check(text: &str, expected: &[(u32, u32)]) {
    let trace = reweave_testkit::trace(text);
    let numbers = |pairs: BTreeSet<(EventId, EventId)>| -> Vec<(u32, u32)> {
        pairs.into_iter().map(|(free, access)| (free.number(), access.number())).collect()
    };
    let all = Settings { all: true, ..Settings::default() };
    assert_eq!(numbers(found(&trace, &all)), expected);
    assert_eq!(numbers(uses_after_free(&trace, STATES_MAX).unwrap()), expected);
}

#[test]
fn a_lock_keeps_the_two_apart_but_in_no_order() {
    check(
        "
        T1        T2
        alloc(o)
        fork(T2)
                  acq(m)
                  w(o+4)
                  rel(m)
        acq(m)
        free(o)
        rel(m)
        ",
        &[(7, 4)],
    );
}

#[test]
fn who_saw_that_the_other_was_done_frees_after_it() {
    check(
        "
        T1        T2
        alloc(o)
        fork(T2)
                  r(o)
                  acq(m)
                  w(done)
                  rel(m)
        acq(m)
        r(done)
        rel(m)
        free(o)
        ",
        &[],
    );
    check(
        "
        T1        T2
        alloc(o)
        fork(T2)
                  r(o)
        join(T2)
        free(o)
        ",
        &[],
    );
}

#[test]
fn a_read_may_see_something_else_by_then() {
    // What the freeing thread wrote before would be seen, so the read can only be the last.
    check(
        "
        T1        T2
        alloc(o)
        fork(T2)
                  r(o)
                  r(o)
        w(o)
        free(o)
        ",
        &[(6, 3), (6, 4)],
    );
}

#[test]
fn only_parts_of_the_object_count() {
    check(
        "
        T1            T2
        alloc(o)
        fork(T2)
                      r(other)
                      w(o.next)
                      r(o[0..16])
                      r(on)
        free(o)
        ",
        &[(7, 4), (7, 5)],
    );
}

/// A small run of three threads with locks, flags, joins and two objects.
fn random(seed: u64) -> Trace {
    let mut rng = Rng::new(seed);
    let mut lines = vec!["T1|alloc(o)".to_owned(), "T1|alloc(p)".to_owned()];
    let mut left = ["o", "p"].to_vec();
    let mut held: [Option<&str>; 3] = [None; 3];
    for _ in 0..9 {
        let thread = rng.below(3);
        let name = format!("T{}", thread + 1);
        let deed = match rng.below(10) {
            0..=3 if !left.is_empty() => {
                let object = left[rng.below(left.len())];
                let part = ["", "+8"][rng.below(2)];
                let access = ["r", "w", "ar.acquire", "arw"][rng.below(4)];
                format!("{access}({object}{part})")
            }
            4 if !left.is_empty() => format!("free({})", left.swap_remove(rng.below(left.len()))),
            5 | 6 if held[thread].is_none() && !held.contains(&Some("m")) => {
                held[thread] = Some("m");
                "acq(m)".to_owned()
            }
            5 | 6 if held[thread].is_some() => {
                held[thread] = None;
                "rel(m)".to_owned()
            }
            7 => "w(done)".to_owned(),
            8 => "r(done)".to_owned(),
            _ => ["aw.release(flag)", "ar.acquire(flag)"][rng.below(2)].to_owned(),
        };
        lines.push(format!("{name}|{deed}"));
    }
    reweave_testkit::std(&lines.iter().map(|line| format!("{line}|a\n")).collect::<String>())
}

proptest! {
    #![proptest_config(soak::config(400))]

    #[test]
    fn what_is_found_is_what_the_definition_says(seed in any::<u64>()) {
        let trace = random(seed);
        let all = Settings { all: true, ..Settings::default() };
        let expected = uses_after_free(&trace, STATES_MAX).unwrap();
        prop_assert_eq!(found(&trace, &all), expected.clone());
        let findings = uses(&Subject::new(&trace), &Settings::default());
        for finding in &findings {
            prop_assert_eq!(finding.guarantee(), Guarantee::Witnessed);
            prop_assert!(expected.contains(&(finding.events[0], finding.events[1])));
        }
        // All is at one place here.
        prop_assert_eq!(findings.is_empty(), expected.is_empty());
    }
}
