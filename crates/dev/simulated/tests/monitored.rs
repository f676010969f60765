//! Monitored programs run to their ends, repeat, and have the threads and variables published.

use std::fmt::Write as _;

use expect_test::expect;
use reweave_simulated::{Counts, Monitored};

use crate::common;

const SEEDS: std::ops::Range<u64> = 0..8;

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    for program in Monitored::ALL {
        common::repeats(program.as_str(), |seed| program.run(seed));
    }
}

#[test]
fn every_thread_ends_and_is_joined_whatever_the_seed() {
    for program in Monitored::ALL {
        for seed in SEEDS {
            common::ends(program.as_str(), &program.run(seed));
        }
    }
}

#[test]
fn reads_have_the_values_of_the_writes_that_they_saw() {
    for program in Monitored::ALL {
        common::reads_see_what_was_written(program.as_str(), &program.run(1));
    }
}

#[test]
fn threads_and_variables_are_as_many_as_published_whatever_the_seed() {
    for program in Monitored::ALL {
        for seed in SEEDS {
            let counts = Counts::new(&program.run(seed));
            let published = program.published();
            assert_eq!(counts.threads, published.threads, "{program:?} {seed}");
            assert_eq!(counts.vars, published.vars, "{program:?} {seed}");
        }
    }
}

#[test]
fn sizes_are_what_the_tables_say() {
    let mut text = String::new();
    for program in Monitored::ALL {
        let Counts { threads, events, lock_events, locks, accesses, vars, signals, .. } =
            Counts::new(&program.run(1));
        writeln!(
            text,
            "{:<13} {threads} {events:>5} {lock_events:>4} {locks:>2} {accesses:>5} {vars:>3} \
             {signals:>3}",
            program.as_str()
        )
        .unwrap();
    }
    expect![[r#"
        banking       4  3299 1200  5  1613   7   0
        set (faulty)  4  2457  902  5   839  10   0
        set (correct) 4  2664 1010  5   825  10   0
        arraylist1    4  2666  480  1  1700   6   0
        arraylist2    4  3390  960  2  1944  16   0
        sor           4  7214 1120  1  4648  20 560
        elevator      4  4864 1848 11  2290  23   0
        tsp           4   577   64  2   375  36   0
        raytracer     4 12839  648  1 12021  77   0
        hedc          8  2081  300  1  1584 345  85
    "#]]
    .assert_eq(&text);
}
