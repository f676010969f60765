//! Deadlocks one can draw, and traces that take too much work.

use std::cell::Cell;
use std::ops::ControlFlow;

use expect_test::{Expect, expect};
use reweave_analysis::{Analysis, Coverage, Finding, Settings, Sink, Subject, Truncation};
use reweave_deadlocks::exact::{ExactDeadlocks, Reorderings};
use reweave_testkit::corpus;
use reweave_trace::{LockOp, Op, Trace, TraceBuilder};

use crate::exact::{examine, grouped, run, sets, ungrouped, with_requested_waits};

/// The messages of the findings in the figure, then what was counted.
#[track_caller]
fn check(figure: &str, expected: Expect) {
    let (findings, coverage) = run(&reweave_testkit::trace(figure), &grouped());
    let mut text = String::new();
    for finding in findings {
        text += &format!("{} (x{})\n", finding.message, finding.count);
    }
    for (name, count) in &coverage.counters {
        text += &format!("{name} {count}, ");
    }
    text.push_str(&coverage.truncated.map_or("complete".to_owned(), |reason| reason.to_string()));
    expected.assert_eq(&text);
}

#[test]
fn two_locks_in_opposite_orders_deadlock() {
    check(
        "
        t1      t2
        acq(a)
        acq(b)
        rel(b)
        rel(a)
                acq(b)
                acq(a)
                rel(a)
                rel(b)
        ",
        expect![[r#"
            t1 holds `a` and waits for `b` at location 2, t2 holds `b` and waits for `a` at location 6 (x1)
            deadlocks 1, patterns 1, candidates 1, refuted 0, undecided 0, complete"#]],
    );
}

#[test]
fn a_third_lock_guards_them() {
    check(
        "
        t1      t2
        acq(g)
        acq(a)
        acq(b)
        rel(b)
        rel(a)
        rel(g)
                acq(g)
                acq(b)
                acq(a)
                rel(a)
                rel(b)
                rel(g)
        ",
        expect!["deadlocks 0, patterns 0, candidates 0, refuted 0, undecided 0, complete"],
    );
}

#[test]
fn a_lock_that_both_share_does_not_guard_them() {
    check(
        "
        t1       t2
        racq(g)
        acq(a)
        acq(b)
        rel(b)
        rel(a)
        rrel(g)
                 racq(g)
                 acq(b)
                 racq(a)
                 rrel(a)
                 rel(b)
                 rrel(g)
        ",
        expect![[r#"
            t1 holds `a` and waits for `b` at location 3, t2 holds `b` and waits to share `a` at location 9 (x1)
            deadlocks 1, patterns 1, candidates 1, refuted 0, undecided 0, complete"#]],
    );
}

#[test]
fn two_that_share_a_lock_and_want_it_alone_deadlock() {
    check(
        "
        t1       t2
        racq(l)
        acq(l)
        rel(l)
        rrel(l)
                 racq(l)
                 acq(l)
                 rel(l)
                 rrel(l)
        ",
        expect![[r#"
            t1 shares `l` and waits to hold it alone at location 2, t2 shares `l` and waits to hold it alone at location 6 (x1)
            deadlocks 1, patterns 1, candidates 1, refuted 0, undecided 0, complete"#]],
    );
}

#[test]
fn threads_that_follow_each_other_do_not_deadlock() {
    check(
        "
        t1        t2
        acq(a)
        acq(b)
        rel(b)
        rel(a)
        fork(t2)
                  acq(b)
                  acq(a)
        ",
        expect!["deadlocks 0, patterns 1, candidates 0, refuted 0, undecided 0, complete"],
    );
}

#[test]
fn what_is_read_keeps_threads_apart() {
    check(
        "
        t1      t2
        acq(a)
        acq(b)
        rel(b)
        w(x)
        rel(a)
                acq(b)
                r(x)
                acq(a)
                rel(a)
                rel(b)
        ",
        expect!["deadlocks 0, patterns 1, candidates 0, refuted 0, undecided 0, complete"],
    );
}

#[test]
fn a_lock_need_not_be_given_back() {
    check(
        "
        t1      t2
        acq(a)
        acq(b)
        rel(b)
        rel(a)
                acq(b)
                acq(a)
        ",
        expect![[r#"
            t1 holds `a` and waits for `b` at location 2, t2 holds `b` and waits for `a` at location 6 (x1)
            deadlocks 1, patterns 1, candidates 1, refuted 0, undecided 0, complete"#]],
    );
}

#[test]
fn a_run_that_did_deadlock_is_reported() {
    check(
        "
        t1      t2      t3
        acq(a)
                acq(b)
                        acq(c)
        req(b)
                req(c)
                        req(a)
        ",
        expect![[r#"
            t1 holds `a` and waits for `b` at location 4, t2 holds `b` and waits for `c` at location 5, t3 holds `c` and waits for `a` at location 6 (x1)
            deadlocks 1, patterns 1, candidates 1, refuted 0, undecided 0, complete"#]],
    );
}

#[test]
fn readers_block_a_request_for_exclusive_mode() {
    check(
        "
        t1       t2
        racq(a)
                 racq(b)
        wreq(b)
                 wreq(a)
        ",
        expect![[r#"
            t1 shares `a` and waits for `b` at location 3, t2 shares `b` and waits for `a` at location 4 (x1)
            deadlocks 1, patterns 1, candidates 1, refuted 0, undecided 0, complete"#]],
    );
    check(
        "
        t1       t2
        racq(l)
                 racq(l)
        wreq(l)
                 wreq(l)
        ",
        expect![[r#"
            t1 shares `l` and waits to hold it alone at location 3, t2 shares `l` and waits to hold it alone at location 4 (x1)
            deadlocks 1, patterns 1, candidates 1, refuted 0, undecided 0, complete"#]],
    );
}

#[test]
fn readers_may_share_with_a_request_that_does_not_say_its_mode() {
    // Only what blocks in both modes is certain.
    let modes = [("racq", "req"), ("racq", "wreq"), ("acq", "req"), ("acq", "wreq")];
    for (held, asked) in modes {
        let text = format!("t1|acq(a)|1\nt2|{held}(b)|2\nt1|{asked}(b)|3\nt2|wreq(a)|4");
        let trace = reweave_testkit::std(&text);
        let expected: &[[u32; 2]] = if (held, asked) == ("racq", "req") { &[] } else { &[[3, 4]] };
        assert_eq!(sets(&trace, Reorderings::All), expected, "{held} {asked}");
    }
}

#[test]
fn a_writer_that_waits_does_not_keep_readers_waiting() {
    // Some implementations let a waiting writer go first, which would close the cycle.
    check(
        "
        t1       t2       t3
        racq(a)
                 acq(m)
                          wreq(a)
        req(m)
                 req(a)
        ",
        expect!["deadlocks 0, patterns 0, candidates 0, refuted 0, undecided 0, complete"],
    );
}

#[test]
fn an_attempt_to_take_a_lock_does_not_wait() {
    let figure = "
t1      t2
req(l)
acq(l)
acq(m)
rel(m)
rel(l)
        req(m)
        acq(m)
        req(l)
        acq(l)
        rel(l)
        rel(m)
";
    let tried = reweave_testkit::trace(figure);
    // Where nothing is known of the program, an acquire without a request may be one that waits.
    assert_eq!(sets(&tried, Reorderings::All), [[3, 9]]);
    assert!(sets(&with_requested_waits(&tried), Reorderings::All).is_empty());
    let asked = reweave_testkit::trace(&figure.replace("\nacq(m)\n", "\nreq(m)\nacq(m)\n"));
    assert_eq!(sets(&with_requested_waits(&asked), Reorderings::All), [[4, 10]]);
}

#[test]
fn a_waiter_takes_its_lock_again_inside_another() {
    check(
        "
        t1       t2      t3
        acq(n)
        acq(m)
        rel(m)
        wait(c)
                         notify(c)
        wake(c)
        acq(m)
        rel(m)
        rel(n)
                 acq(m)
                 acq(n)
        ",
        expect![[r#"
            t1 holds `n` and waits for `m` at location 2, t2 holds `m` and waits for `n` at location 11 (x1)
            t1 holds `n` and waits for `m` at location 7, t2 holds `m` and waits for `n` at location 11 (x1)
            deadlocks 2, patterns 2, candidates 2, refuted 0, undecided 0, complete"#]],
    );
}

#[test]
fn instances_at_the_same_locations_are_one_finding() {
    let trace = abba(3, 4);
    let (findings, _) = run(&trace, &grouped());
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].count, &findings[0].events), (12, &reweave_testkit::events(&[2, 14])));
    expect![
        "T1 holds `a` and waits for `b` at T1.c:inner, T2 holds `b` and waits for `a` at T2.c:inner"
    ]
    .assert_eq(&findings[0].message);
    assert_eq!(run(&trace, &ungrouped()).0.len(), 12);
}

#[test]
fn a_trace_without_locks_has_none() {
    check(
        "
        t1    t2
        w(x)
              w(x)
        ",
        expect!["deadlocks 0, patterns 0, candidates 0, refuted 0, undecided 0, complete"],
    );
}

/// Two threads that take `a` and `b` in opposite orders, so many times each.
fn abba(first_count: usize, second_count: usize) -> Trace {
    let mut builder = TraceBuilder::new();
    let [a, b] = ["a", "b"].map(|name| builder.lock(name));
    for (name, outer, inner, count) in [("T1", a, b, first_count), ("T2", b, a, second_count)] {
        let thread = builder.thread(name);
        let sites = ["outer", "inner", "end"].map(|line| builder.site(&format!("{name}.c:{line}")));
        for _ in 0..count {
            builder.push(thread, Op::Lock(LockOp::Acquire, outer), sites[0]);
            builder.push(thread, Op::Lock(LockOp::Acquire, inner), sites[1]);
            builder.push(thread, Op::Lock(LockOp::Release, inner), sites[2]);
            builder.push(thread, Op::Lock(LockOp::Release, outer), sites[2]);
        }
    }
    builder.finish().expect("the events are well formed")
}

#[test]
fn more_patterns_than_are_kept_are_not_the_fault_of_the_budget() {
    let mut builder = TraceBuilder::new();
    let locks = ["a", "b"].map(|name| builder.lock(name));
    for (name, [outer, inner]) in [("t1", locks), ("t2", [locks[1], locks[0]])] {
        let thread = builder.thread(name);
        for at in 0..320 {
            let site = builder.site(&format!("{name}:{at}"));
            for (op, lock) in [(LockOp::Acquire, outer), (LockOp::Acquire, inner)] {
                builder.push(thread, Op::Lock(op, lock), site);
            }
            for lock in [inner, outer] {
                builder.push(thread, Op::Lock(LockOp::Release, lock), site);
            }
        }
    }
    let trace = builder.finish().expect("the events are well formed");
    let settings = Settings { budget: 32_000_000, ..grouped() };
    let found = examine(&trace, Reorderings::All, &settings);
    assert_eq!((found.truncated, found.counts.patterns), (Some(Truncation::Capped), 100_000));
}

#[test]
fn many_instances_are_not_all_tried_when_one_is_enough() {
    let one = examine(&abba(1000, 1000), Reorderings::All, &grouped());
    assert_eq!((one.found.len(), one.truncated), (1, None));
    assert_eq!((one.counts.candidates, one.counts.partial), (257, 1));
    let limited = Settings { budget: 8_000_000, ..ungrouped() };
    let all = examine(&abba(1000, 1000), Reorderings::All, &limited);
    assert_eq!((all.truncated, all.counts.partial), (Some(Truncation::Budget), 1));
    assert_eq!(all.found.len() as u64, all.counts.deadlocks);
}

/// Each of `threads_count` threads takes the locks in turn, every second one backwards.
fn nested(threads_count: usize, locks_count: usize) -> Trace {
    let mut builder = TraceBuilder::new();
    let site = builder.site("nest.c:1");
    for at in 0..threads_count {
        let thread = builder.thread(&format!("T{at}"));
        let mut locks: Vec<_> =
            (0..locks_count).map(|lock| builder.lock(&format!("l{lock}"))).collect();
        if at % 2 == 1 {
            locks.reverse();
        }
        locks.iter().for_each(|&lock| builder.push(thread, Op::Lock(LockOp::Acquire, lock), site));
        locks
            .iter()
            .rev()
            .for_each(|&lock| builder.push(thread, Op::Lock(LockOp::Release, lock), site));
    }
    builder.finish().expect("the events are well formed")
}

#[test]
fn a_hundred_nested_locks_deadlock_wherever_two_threads_meet() {
    let all = examine(&nested(2, 100), Reorderings::All, &ungrouped());
    assert_eq!((all.found.len(), all.counts.patterns, all.truncated), (99, 99, None));
}

#[test]
fn locks_in_one_order_cost_nothing() {
    let trace = nested(1, 3000);
    assert_eq!(examine(&trace, Reorderings::All, &ungrouped()).truncated, None);
    let mut builder = TraceBuilder::new();
    let site = builder.site("order.c:1");
    for at in 0..40 {
        let thread = builder.thread(&format!("T{at}"));
        for outer in 0..40 {
            let [first, second] =
                [outer, outer + 1 + at % 7].map(|lock| builder.lock(&format!("l{lock}")));
            builder.push(thread, Op::Lock(LockOp::Acquire, first), site);
            builder.push(thread, Op::Lock(LockOp::Acquire, second), site);
            builder.push(thread, Op::Lock(LockOp::Release, second), site);
            builder.push(thread, Op::Lock(LockOp::Release, first), site);
        }
    }
    let trace = builder.finish().expect("the events are well formed");
    let small = Settings { budget: 0, ..ungrouped() };
    assert_eq!(examine(&trace, Reorderings::All, &small).truncated, None);
}

/// Each thread takes each pair of locks in both orders.
fn every_order(threads_count: usize, locks_count: usize) -> Trace {
    let mut builder = TraceBuilder::new();
    let site = builder.site("order.c:1");
    for at in 0..threads_count {
        let thread = builder.thread(&format!("T{at}"));
        for outer in 0..locks_count {
            for inner in (0..locks_count).filter(|&inner| inner != outer) {
                let [outer, inner] = [outer, inner].map(|lock| builder.lock(&format!("l{lock}")));
                builder.push(thread, Op::Lock(LockOp::Acquire, outer), site);
                builder.push(thread, Op::Lock(LockOp::Acquire, inner), site);
                builder.push(thread, Op::Lock(LockOp::Release, inner), site);
                builder.push(thread, Op::Lock(LockOp::Release, outer), site);
            }
        }
    }
    builder.finish().expect("the events are well formed")
}

#[test]
fn short_cycles_come_first_and_what_is_cut_is_said_to_be() {
    let trace = every_order(8, 8);
    let pairs = 8 * 7 / 2 * (8 * 7);
    let few = examine(&trace, Reorderings::All, &Settings { budget: 20_000_000, ..grouped() });
    assert_eq!(few.truncated, Some(Truncation::Budget));
    let short = few.found.iter().filter(|deadlock| deadlock.cycle.len() == 2).count();
    assert_eq!(short, pairs);
    let threads = examine(
        &trace,
        Reorderings::All,
        &Settings { budget: 20_000_000, threads: 3, ..grouped() },
    );
    assert_eq!(few, threads);
}

#[test]
fn what_a_small_budget_finds_a_large_one_finds_too() {
    for case in corpus::litmus().into_iter().chain(corpus::traces()) {
        let trace = case.trace();
        let (whole, _) = run(&trace, &grouped());
        for budget in [0, 1, 2 * trace.len() as u64, 20 * trace.len() as u64] {
            let (found, coverage) = run(&trace, &Settings { budget, ..grouped() });
            for finding in &found {
                assert!(whole.iter().any(|other| other.events == finding.events), "{}", case.name);
            }
            assert!(found.len() == whole.len() || !coverage.is_complete(), "{}", case.name);
        }
    }
}

/// Takes so many findings, or stops the work at once.
struct Picky {
    found: Vec<Finding>,
    limit: usize,
    stops: bool,
    asked: Cell<u32>,
}

impl Sink for Picky {
    fn found(&mut self, finding: Finding) -> ControlFlow<()> {
        if self.found.len() == self.limit {
            return ControlFlow::Break(());
        }
        self.found.push(finding);
        ControlFlow::Continue(())
    }

    fn is_cancelled(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.stops
    }

    fn progress(&mut self, _: u64, _: u64) {}
}

fn run_picky(limit: usize, stops: bool) -> (usize, Coverage, u32) {
    let mut sink = Picky { found: Vec::new(), limit, stops, asked: Cell::new(0) };
    let trace = nested(2, 20);
    let coverage = ExactDeadlocks.run(&Subject::new(&trace), &ungrouped(), &mut sink);
    (sink.found.len(), coverage, sink.asked.get())
}

#[test]
fn it_stops_when_told_and_when_no_more_is_wanted() {
    let (count, coverage, _) = run_picky(usize::MAX, true);
    assert_eq!((count, coverage.truncated), (0, Some(Truncation::Cancelled)));
    let (count, coverage, asked) = run_picky(3, false);
    assert_eq!((count, coverage.truncated), (3, None));
    assert!(asked > 0);
    let limited =
        examine(&nested(2, 20), Reorderings::All, &Settings { limit: Some(5), ..ungrouped() });
    assert_eq!((limited.found.len(), limited.truncated), (5, Some(Truncation::Limit)));
}

#[test]
fn sections_may_have_to_change_places() {
    let trace = reweave_testkit::trace(
        "
        t1      t2
        acq(c)
        acq(a)
        acq(b)
        rel(b)
        rel(a)
        rel(c)
                acq(c)
                rel(c)
                acq(b)
                acq(a)
        ",
    );
    assert_eq!(sets(&trace, Reorderings::All), [[3, 10]]);
    assert!(sets(&trace, Reorderings::SyncPreserving).is_empty());
}
