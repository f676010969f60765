//! What is held and let go of, what is refused, and what an end in between leaves.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use reweave_states::online::{Least, OnlineDetector, Options, Refused, State};
use reweave_testkit::soak;

use crate::online::common::{Order, chain, insert_all, limits, never, of_spec, states_count};

proptest! {
    #![proptest_config(soak::config(30))]

    #[test]
    fn dropping_events_leaves_out_no_state(seed in any::<u64>(), chains_count in 2..5_usize) {
        let poset = of_spec(&format!("rand:{chains_count}:1500:0.9:{seed}"));
        for order in [Order::Recorded, Order::Drawn(seed)] {
            let never = Least::new(|_: &State<'_, i64>| false);
            let detector = OnlineDetector::new(never, Options { workers: 1, ..limits() });
            insert_all(&poset, order, &detector);
            let outcome = detector.finish();
            prop_assert!(outcome.summary.is_complete());
            prop_assert_eq!(outcome.summary.states, states_count(&poset));
        }
    }

    #[test]
    fn with_few_events_kept_what_is_found_is_there_and_what_is_left_out_is_said(
        seed in any::<u64>(),
        events_max in 0..1000_usize,
    ) {
        let poset = of_spec(&format!("rand:3:700:0.5:{seed}"));
        let visited: Arc<Mutex<Vec<Vec<u32>>>> = Arc::default();
        let noted = Arc::clone(&visited);
        let search = Least::new(move |state: &State<'_, i64>| {
            noted.lock().expect("nobody panics").push(state.indices().to_vec());
            false
        });
        let detector = OnlineDetector::new(search, Options { events_max, ..limits() });
        insert_all(&poset, Order::Recorded, &detector);
        let outcome = detector.finish();
        let mut visited = visited.lock().expect("nobody panics");
        for state in visited.iter_mut() {
            state.resize(3, 0);
            prop_assert!(poset.is_consistent(state), "{:?}", state);
        }
        prop_assert_eq!(visited.len() as u64, outcome.summary.states);
        prop_assert_eq!(visited.iter().collect::<BTreeSet<_>>().len(), visited.len());
        let count = states_count(&poset);
        prop_assert!(outcome.summary.states <= count);
        prop_assert_eq!(outcome.summary.states == count, outcome.summary.late == 0);
        prop_assert_eq!(outcome.answer.is_certain, outcome.summary.is_complete());
    }
}

#[test]
fn two_threads_that_meet_regularly_need_few_events() {
    let detector = never(limits());
    let mut clocks = [[0_u32; 2]; 2];
    let mut kept_max = 0;
    for event in 0..100_000 {
        let own = event / 10 % 2;
        if event % 10 == 0 {
            // It hears from the other one.
            let other = clocks[1 - own];
            clocks[own].iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(other));
        }
        clocks[own][own] += 1;
        detector.insert(chain(own), &clocks[own], ()).unwrap();
        kept_max = kept_max.max(detector.events_kept());
    }
    let outcome = detector.finish();
    assert!(outcome.summary.is_complete() && outcome.answer.is_certain);
    assert_eq!(outcome.summary.intervals, 100_001);
    // Two chunks a thread at most, and one for what came since the last look.
    assert!(kept_max <= 6 * 64, "{kept_max}");
}

#[test]
fn a_thread_that_has_ended_holds_nothing_back() {
    let run = |ends: bool| {
        let detector = never(limits());
        detector.insert(chain(0), &[1], ()).unwrap();
        if ends {
            detector.end(chain(0)).unwrap();
        }
        for index in 1..=1000 {
            detector.insert(chain(1), &[1, index], ()).unwrap();
        }
        let kept = detector.events_kept();
        (kept, detector.finish().summary)
    };
    let ((with, summary), (without, other)) = (run(true), run(false));
    assert_eq!(summary, other);
    assert!(summary.is_complete() && summary.states == 1002);
    assert!(with <= 3 * 64 && without == 1001, "{with} {without}");
}

#[test]
fn an_announced_thread_that_starts_late_misses_nothing_and_an_unannounced_one_says_so() {
    let run = |is_announced: bool| {
        let detector = never(limits());
        detector.insert(chain(0), &[1], ()).unwrap();
        if is_announced {
            detector.declare(chain(1)).unwrap();
        }
        for index in 2..=300 {
            detector.insert(chain(0), &[index], ()).unwrap();
        }
        for index in 1..=2 {
            detector.insert(chain(1), &[1, index], ()).unwrap();
        }
        detector.finish()
    };
    let announced = run(true);
    // All of the first thread's beginnings, and three things the second has done from the first on.
    assert_eq!(announced.summary.states, 1 + 300 * 3);
    assert!(announced.summary.is_complete() && announced.answer.is_certain);
    let unannounced = run(false);
    assert_eq!((unannounced.summary.late, unannounced.answer.is_certain), (2, false));
    assert!(unannounced.summary.states < announced.summary.states);
}

#[test]
fn clocks_of_no_order_are_refused_with_the_reason_and_change_nothing() {
    let detector = never(limits());
    let check = |number: usize, clock: &[u32], reason: &str| {
        let taken = detector.insert(chain(number), clock, ());
        assert_eq!(taken.map_err(|refused| refused.to_string()).err().unwrap_or_default(), reason);
    };
    check(0, &[1], "");
    check(0, &[1], "expected 2 as the clock's entry for its own thread 0, found 1");
    check(0, &[], "expected 2 as the clock's entry for its own thread 0, found 0");
    check(1, &[1, 1, 0, 0, 0], "");
    check(
        2,
        &[0, 1, 1],
        "the clock includes event 1 of thread 1, but not all that happens before it",
    );
    check(
        2,
        &[2, 0, 1],
        "the clock includes 2 events of thread 0, of which only 1 were inserted: insert each event \
         before its thread continues",
    );
    check(
        2,
        &[1, 1, 1, 0, 7],
        "the clock includes 7 events of thread 4, of which only 0 were inserted: insert each event \
         before its thread continues",
    );
    check(1, &[0, 2], "the clock does not include that of the last event of thread 1");
    let [last, over] = [chain(65_535), chain(65_536)];
    assert_eq!(detector.insert(over, &[], ()), Err(Refused::Chain { chain: over }));
    assert_eq!(detector.declare(over), Err(Refused::Chain { chain: over }));
    detector.declare(last).unwrap();
    detector.end(chain(0)).unwrap();
    assert_eq!(detector.insert(chain(0), &[2], ()), Err(Refused::Ended { chain: chain(0) }));
    assert_eq!(detector.finish().summary.states, 3);
}

#[test]
fn an_interrupted_search_says_that_it_is_not_the_whole() {
    let detector = never(Options { workers: 1, ..limits() });
    detector.insert(chain(0), &[1], ()).unwrap();
    detector.interrupt_flag().store(true, Ordering::Relaxed);
    for index in 1..=50 {
        detector.insert(chain(1), &[0, index], ()).unwrap();
    }
    let outcome = detector.finish();
    assert_eq!(outcome.summary.intervals, 52);
    assert!(outcome.summary.short >= 50 && !outcome.answer.is_certain);
}

#[test]
fn a_detector_that_is_dropped_ends_its_workers() {
    let label = Arc::new(());
    for workers in [0, 2] {
        let search = Least::new(|_: &State<'_, Arc<()>>| false);
        let detector = OnlineDetector::new(search, Options { workers, ..limits() });
        for index in 1..=5 {
            detector.insert(chain(0), &[index], Arc::clone(&label)).unwrap();
        }
        drop(detector);
        assert_eq!(Arc::strong_count(&label), 1);
    }
}

#[test]
fn a_predicate_that_panics_is_heard_of_and_nobody_waits_for_ever() {
    for workers in [0, 1, 3] {
        for queue_max in [0, 2, 100] {
            let poset = of_spec("grid:3:3");
            let heard = catch_unwind(AssertUnwindSafe(|| {
                let search = Least::new(|state: &State<'_, i64>| {
                    assert!(state.events_count() < 5, "asked too much");
                    false
                });
                let options = Options { workers, queue_max, ..limits() };
                let detector = OnlineDetector::new(search, options);
                insert_all(&poset, Order::Recorded, &detector);
                detector.finish()
            }));
            assert!(heard.is_err(), "{workers} {queue_max}");
        }
    }
}
