//! Programs run to their ends, repeat, and have the sizes they were made for.

use std::fmt::Write as _;

use expect_test::expect;
use reweave_base::Id;
use reweave_simulated::{Counts, Program};
use reweave_trace::ThreadId;

use crate::common;

const SEEDS: std::ops::Range<u64> = 0..8;

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    for program in Program::ALL {
        common::repeats(program.as_str(), |seed| program.run(seed));
    }
}

#[test]
fn every_thread_ends_and_is_joined_whatever_the_seed() {
    for program in Program::ALL {
        for seed in SEEDS {
            common::ends(program.as_str(), &program.run(seed));
        }
    }
}

#[test]
fn reads_have_the_values_of_the_writes_that_they_saw() {
    for program in Program::ALL {
        common::reads_see_what_was_written(program.as_str(), &program.run(1));
    }
}

#[test]
fn words_differ_and_are_plain() {
    let mut words = Program::ALL.map(Program::as_str);
    assert!(words.iter().all(|word| word.chars().all(|c| c.is_ascii_alphanumeric())), "{words:?}");
    words.sort_unstable();
    assert!(words.windows(2).all(|pair| pair[0] != pair[1]), "{words:?}");
}

#[test]
fn locations_are_lines_of_the_programs() {
    let trace = Program::Conpool.run(1);
    let locations = trace.events().map(|(_, event)| trace.names().location(event.site));
    for location in locations {
        let line = location.strip_prefix("pool.rs:").map(str::parse::<u32>);
        assert!(matches!(line, Some(Ok(_))), "{location}");
    }
}

#[test]
fn who_waits_is_woken_by_a_notify_or_gives_up() {
    for program in [Program::Conpool, Program::Barrier1, Program::Thrift9] {
        let trace = program.run(1);
        let intervals = trace.signals().wait_intervals();
        assert!(!intervals.is_empty(), "{program:?}");
        for interval in intervals {
            assert!(interval.end.is_some(), "{program:?}");
            assert_eq!(interval.notify.is_none(), interval.times_out, "{program:?}");
        }
    }
}

#[test]
fn sizes_stay_near_the_published_ones_whatever_the_seed() {
    for program in Program::ALL {
        let published = program.published();
        for seed in SEEDS {
            let counts = Counts::new(&program.run(seed));
            assert_eq!(counts.threads, published.threads, "{program:?}");
            assert_eq!(counts.locks, published.locks, "{program:?}");
            let apart = counts.events.abs_diff(published.events) * 100 / published.events;
            assert!(apart <= 25, "{program:?} {seed}: {} events", counts.events);
        }
    }
}

#[test]
fn files_have_as_many_witnesses_as_published_within_a_fifth() {
    for program in [Program::Daisy1, Program::Daisy2, Program::Daisy3] {
        let published = program.published().witnesses;
        for seed in SEEDS {
            let witnesses = Counts::new(&program.run(seed)).witnesses;
            assert!(witnesses.abs_diff(published) * 5 <= published, "{program:?}: {witnesses}");
        }
    }
}

#[test]
fn sizes_are_what_the_tables_say() {
    let mut text = String::new();
    for program in Program::ALL {
        let Counts { threads, events, lock_events, locks, accesses, vars, signals, witnesses } =
            Counts::new(&program.run(1));
        writeln!(
            text,
            "{:<10} {threads:>2} {events:>5} {lock_events:>4} {locks:>3} {accesses:>4} {vars:>3} \
             {signals:>4} {witnesses:>7}",
            program.as_str()
        )
        .unwrap();
    }
    expect![[r#"
        conpool     4    99   16   1   52   5    3     291
        liveness    7   308   44   9  162  12    6     822
        synchbench 16  1461  304   2  527  15    0   51075
        barrier1   10   654  142   2  253  12   20    3864
        barrier2   13   830  198   2  343  15   24    6576
        account1   11   855  148  21  427  42   10    1296
        account2   21  1703  292  41  851  82   20    2610
        daisy1      3  2870  410  10 1945  45   15  386244
        daisy2      3  4784  684  14 3241  63   24 1059789
        daisy3      3  7958 1138  18 5389  81   39 2931861
        elevator1   4  3047  368  11 1803  70    0    3528
        elevator2   4  5300  618  11 3856 117    0   12933
        elevator3   4  7857 1136  11 5671  94    0   26100
        philo       6  1106  120   6  841  23   15    3420
        thrift1     4  2406  232  12  832  62   55     855
        thrift2     4  2443  238  12  833  62   55     828
        thrift3    10  4551  404  18 1627 122   89    2952
        thrift4     4  6960  582  48 2716 170  123   35793
        thrift5    20  9284  740  28 3386 222  147   10305
        thrift6     4 11560 1382  48 3116 170  323   35793
        thrift7    20 13884 1540  28 3786 222  347   10305
        thrift8    40 16032 1302  48 5884 422  267   39465
        thrift9    10 15279 3012  18 1462 122 1401    2925
        thrift10    6 21910 1730 158 8844 514  359  474897
        thrift11    6 26510 2530 158 9244 514  559  474897
    "#]]
    .assert_eq(&text);
}

#[test]
fn the_first_thread_is_called_main() {
    let trace = Program::Philo.run(1);
    assert_eq!(trace.names().threads.name(ThreadId::from_index(0)), "main");
}
