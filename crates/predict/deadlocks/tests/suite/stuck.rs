//! Threads that can get stuck.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;
use reweave_analysis::{Analysis as _, Gathered, Guarantee, Kind, Settings, Subject, Truncation};
use reweave_base::Rng;
use reweave_deadlocks::exact::ExactDeadlocks;
use reweave_deadlocks::stuck::{StuckThreads, stuck};
use reweave_oracle as oracle;
use reweave_testkit::{draw, soak};
use reweave_trace::{ConditionOp, Event, EventId, Goal, Op, ThreadOp, Trace};

fn all() -> Settings {
    Settings { all: true, ..Settings::default() }
}

/// What is found in `trace`: the kind of each and the numbers of its events.
fn found(trace: &Trace) -> BTreeSet<(Kind, Vec<u32>)> {
    let findings = stuck(&Subject::new(trace), &all());
    let finding = findings.iter().map(|finding| {
        assert_eq!(finding.guarantee(), Guarantee::Witnessed);
        (finding.kind, finding.events.iter().map(|event| event.number()).collect())
    });
    finding.collect()
}

#[track_caller]
fn check(text: &str, expected: &[(Kind, &[u32])]) {
    let trace = reweave_testkit::trace(text);
    let expected: BTreeSet<(Kind, Vec<u32>)> =
        expected.iter().map(|&(kind, events)| (kind, events.to_vec())).collect();
    assert_eq!(found(&trace), expected);
    let by_definition = oracle::stuck::stuck(&trace, 3);
    for (_, events) in expected.iter().filter(|(kind, _)| *kind == Kind::Stuck) {
        let by_definition = by_definition.iter().map(|stops| numbers(stops));
        assert!(by_definition.into_iter().any(|stops| stops == *events), "{events:?}");
    }
}

fn numbers(events: &[EventId]) -> Vec<u32> {
    events.iter().map(|event| event.number()).collect()
}

#[test]
fn a_notify_that_comes_before_the_wait_is_lost() {
    check(
        "
        T1         T2
        fork(T2)
                   acq(m)
                   rel(m)
                   wait(c)
        acq(m)
        notify(c)
        rel(m)
                   wake(c)
                   acq(m)
                   rel(m)
        join(T2)
        ",
        &[(Kind::Stuck, &[11, 8])],
    );
}

#[test]
fn who_checks_under_the_lock_whether_to_wait_misses_nothing() {
    check(
        "
        T1         T2
        fork(T2)
                   acq(m)
                   r(ready)
                   rel(m)
                   wait(c)
        acq(m)
        w(ready)
        notify(c)
        rel(m)
                   wake(c)
                   acq(m)
                   r(ready)
                   rel(m)
        join(T2)
        ",
        &[],
    );
}

#[test]
fn a_check_outside_of_the_lock_can_be_out_of_date() {
    check(
        "
        T1         T2
        fork(T2)
                   ar(ready)
                   acq(m)
                   rel(m)
                   wait(c)
        aw(ready)
        acq(m)
        notify(c)
        rel(m)
                   wake(c)
                   acq(m)
                   rel(m)
        join(T2)
        ",
        &[(Kind::Stuck, &[13, 10])],
    );
    // Who notifies without the lock comes between the check and the wait.
    check(
        "
        T1         T2
        fork(T2)
                   acq(m)
                   ar(ready)
                   rel(m)
                   wait(c)
        aw(ready)
        notify(c)
                   wake(c)
                   acq(m)
                   ar(ready)
                   rel(m)
        join(T2)
        ",
        &[(Kind::Stuck, &[12, 8])],
    );
}

#[test]
fn a_later_notify_or_a_time_limit_saves_the_thread() {
    let later = "
        T1         T2
        fork(T2)
                   acq(m)
                   rel(m)
                   wait(c)
        notify(c)
                   wake(c)
                   acq(m)
                   rel(m)
        join(T2)
        ";
    check(later, &[(Kind::Stuck, &[9, 6])]);
    check(
        &later.replace(
            "                   acq(m)\n                   rel(m)\n                   wait(c)",
            "                   acq(m)\n                   timed\n                   rel(m)\n                   wait(c)",
        ),
        &[],
    );
    // The notifying thread has seen that it waits.
    check(
        "
        T1         T2
        fork(T2)
                   acq(m)
                   aw(waits)
                   rel(m)
                   wait(c)
        acq(m)
        ar(waits)
        notify(c)
        rel(m)
                   wake(c)
                   acq(m)
                   rel(m)
        join(T2)
        ",
        &[],
    );
}

#[test]
fn a_program_that_ends_is_not_stuck() {
    // Nobody waits for the worker: the process ends with its first thread.
    check(
        "
        T1         T2
        fork(T2)
                   acq(m)
                   rel(m)
                   wait(c)
        notify(c)
                   wake(c)
                   acq(m)
                   rel(m)
        ",
        &[],
    );
    // The other goes on by what it sees, nobody knows where.
    check(
        "
        T1         T2
        fork(T2)
                   acq(m)
                   rel(m)
                   wait(c)
        notify(c)
                   wake(c)
                   acq(m)
                   w(done)
                   rel(m)
        r(done)
        join(T2)
        ",
        &[],
    );
}

#[test]
fn who_joins_while_it_holds_a_lock_that_the_other_needs() {
    check(
        "
        T1         T2
        fork(T2)
                   acq(m)
                   rel(m)
        acq(m)
        join(T2)
        rel(m)
        ",
        &[(Kind::Deadlock, &[5, 2])],
    );
    check(
        "
        T1         T2
        acq(m)
        fork(T2)
        rel(m)
                   acq(m)
                   rel(m)
                   w(x)
        r(x)
        acq(m)
        join(T2)
        rel(m)
        ",
        &[],
    );
}

#[test]
fn who_waits_while_it_holds_a_lock_that_the_other_needs() {
    // T2 needs `l` before it notifies, and T1 holds it while it waits.
    check(
        "
        T1         T2
        fork(T2)
                   acq(l)
                   rel(l)
        acq(l)
        acq(m)
        rel(m)
        wait(c)
                   acq(m)
                   notify(c)
                   rel(m)
        wake(c)
        acq(m)
        rel(m)
        rel(l)
        ",
        &[(Kind::Stuck, &[11]), (Kind::Stuck, &[11, 2])],
    );
}

#[test]
fn who_joins_needs_what_the_joined_thread_waits_for() {
    check(
        "
        T1         T2        T3
        fork(T3)
        fork(T2)
                             acq(m)
                             rel(m)
                   join(T3)
        acq(m)
        join(T2)
        rel(m)
        ",
        &[(Kind::Stuck, &[7, 5, 3])],
    );
}

#[test]
fn a_lock_that_is_kept_is_never_free_again() {
    let of = |release: &str| {
        format!(
            "
            T1         T2        T3
            fork(T2)
            fork(T3)
                       acq(m)
                       rel(m)
                                 acq(m)
                                 {release}
            join(T2)
            join(T3)
            "
        )
    };
    check(&of(""), &[(Kind::Stuck, &[6, 3])]);
    check(&of("rel(m)"), &[]);
    // Who reads what the other wrote comes after it.
    check(
        "
        T1         T2
        fork(T2)
                   acq(m)
                   w(x)
                   rel(m)
        acq(m)
        r(x)
        join(T2)
        ",
        &[],
    );
}

#[test]
fn a_token_that_is_kept_is_missing_if_it_is_taken_first() {
    let of = |post: &str| {
        format!(
            "
            T1          T2        T3
            start(s)=1
            fork(T2)
            fork(T3)
                        take(s)
                        post(s)
                                  take(s)
                                  {post}
            join(T2)
            join(T3)
            "
        )
    };
    check(&of(""), &[(Kind::Stuck, &[6, 3])]);
    check(&of("post(s)"), &[]);
    // Who takes back what it posted leaves no token either.
    check(
        "
        T1          T2
        start(s)=0
                    post(s)
        take(s)
        post(s)
                    take(s)
        ",
        &[(Kind::Stuck, &[2])],
    );
}

#[test]
fn tokens_held_in_a_cycle_keep_all_waiting() {
    let of = |first: &str, second: &str, outer: [&str; 2]| {
        format!(
            "
            T1          T2          T3
            start(a)=1
            start(b)=1
            fork(T2)
            fork(T3)
                        {}
                        {first}
                        {second}
                        {}
                                    take(b)
                                    take(a)
                                    post(a)
                                    post(b)
            join(T2)
            join(T3)
            ",
            outer[0], outer[1]
        )
    };
    let semaphores = of("take(a)", "take(b)\n                        post(b)", ["", "post(a)"]);
    check(&semaphores, &[(Kind::Stuck, &[11, 4, 8])]);
    // The same order on both sides.
    check(&of("take(b)", "take(a)\n                        post(a)", ["", "post(b)"]), &[]);
    // A lock in the cycle, and one around it.
    let mixed = "
        T1          T2          T3
        start(a)=1
        fork(T2)
        fork(T3)
                    acq(m)
                    take(a)
                    post(a)
                    rel(m)
                                take(a)
                                acq(m)
                                rel(m)
                                post(a)
        join(T2)
        join(T3)
        ";
    check(mixed, &[(Kind::Stuck, &[11, 4, 8])]);
}

/// A figure with `threads` columns, for operations that are given with their threads' numbers.
fn figure(threads: usize, rows: impl IntoIterator<Item = (usize, String)>) -> Trace {
    let header: String =
        (1..=threads).map(|number| format!("{:12}", format!("T{number}"))).collect();
    let row = |(thread, op)| format!("{:1$}{op}\n", "", thread * 12);
    let rows: String = rows.into_iter().map(row).collect();
    reweave_testkit::trace(&format!("{}\n{rows}", header.trim_end()))
}

/// A thread takes a token of each of two semaphores and posts them.
fn nested(thread: usize, outer: usize, inner: usize) -> [(usize, String); 4] {
    let ops = [("take", outer), ("take", inner), ("post", inner), ("post", outer)];
    ops.map(|(op, on)| (thread, format!("{op}(s{on})")))
}

#[test]
fn waits_in_no_cycle_with_a_token_do_not_hide_one() {
    let starts = (0..2).map(|at| (0, format!("start(s{at})=1")));
    let locks = (0..4200).flat_map(|at| [format!("acq(m{at})"), format!("rel(m{at})")]);
    let locks = ["acq(m)".to_owned()].into_iter().chain(locks).chain(["rel(m)".to_owned()]);
    let rows = starts.chain(locks.map(|op| (0, op)));
    let trace = figure(2, rows.chain(nested(0, 0, 1)).chain(nested(1, 1, 0)));
    assert_eq!(found(&trace).len(), 1);
}

#[test]
fn a_search_for_cycles_that_is_cut_short_says_so() {
    let outcome = |threads: usize| {
        let starts = (0..threads).map(|at| (0, format!("start(s{at})=1")));
        let rows = (0..threads).flat_map(|at| nested(at, at, (at + 1) % threads));
        let trace = figure(threads, starts.chain(rows));
        let mut sink = Gathered::default();
        let coverage = StuckThreads.run(&Subject::new(&trace), &all(), &mut sink);
        (sink.findings.len(), coverage.truncated)
    };
    assert_eq!(outcome(8), (1, None));
    assert_eq!(outcome(9), (0, Some(Truncation::Capped)));
}

#[test]
fn who_takes_a_token_and_then_waits_for_one_whose_giver_needs_the_first() {
    // The consumer waits for an item while it has the only token of the buffer.
    check(
        "
        T1          T2
        start(buffer)=1
        start(items)=0
        fork(T2)
                    take(buffer)
                    post(buffer)
                    post(items)
        take(buffer)
        take(items)
        post(buffer)
        ",
        &[(Kind::Stuck, &[6, 2])],
    );
}

/// One thing that a thread of a random program does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Do {
    Op(&'static str),
    Acquire(&'static str),
    Release(&'static str),
    Wait,
    Notify(bool),
    /// Of the thread of this number.
    Join(usize),
}

/// A run of a random program: threads that wait and notify, in sections and outside.
fn random(seed: u64, waiters: usize) -> Trace {
    let mut rng = Rng::new(seed);
    let accesses = ["r(x)", "w(x)", "ar(y)", "aw(y)"];
    let mut programs: Vec<VecDeque<Do>> = Vec::new();
    for thread in 0..3 {
        let mut program = VecDeque::new();
        let is_waiter = thread < waiters;
        if rng.below(3) == 0 {
            program.push_back(Do::Op(accesses[rng.below(4)]));
        }
        let outer = rng.below(4) == 0;
        if outer {
            program.push_back(Do::Acquire("l"));
        }
        let inner = is_waiter || rng.below(2) == 0;
        if inner {
            program.push_back(Do::Acquire("m"));
        }
        if rng.below(2) == 0 {
            program.push_back(Do::Op(accesses[rng.below(4)]));
        }
        match (is_waiter, rng.below(4)) {
            (true, _) => program.push_back(Do::Wait),
            (_, 0) => {}
            (_, other) => program.push_back(Do::Notify(other == 1)),
        }
        if rng.below(3) == 0 {
            program.push_back(Do::Op(accesses[rng.below(4)]));
        }
        if inner {
            program.push_back(Do::Release("m"));
        }
        if outer {
            program.push_back(Do::Release("l"));
        }
        programs.push(program);
    }
    run(&mut rng, programs)
}

/// A run of a random program: threads with sections, of which some are never left, that join each other, some while
/// they hold a lock. The first thread waits for the others, and the run is not stuck itself.
fn random_joins(seed: u64) -> Trace {
    let mut rng = Rng::new(seed);
    let is_join = |event: Event| matches!(event.op, Op::Thread(ThreadOp::Join, _));
    loop {
        let programs = joining(&mut rng);
        let trace = run(&mut rng, programs);
        if trace.events().filter(|&(_, event)| is_join(event)).count() == 2 {
            return trace;
        }
    }
}

/// Programs of three threads, with two joins.
fn joining(rng: &mut Rng) -> Vec<VecDeque<Do>> {
    let accesses = ["r(x)", "w(x)", "ar(y)", "aw(y)"];
    let joins: [&[usize]; 3] =
        if rng.below(2) == 0 { [&[1, 2], &[], &[]] } else { [&[1], &[2], &[]] };
    let programs = joins.map(|joins| {
        let mut program = VecDeque::new();
        // A section, of which one in three is never left.
        let first = (rng.below(2) == 0).then(|| ["l", "m"][rng.below(2)]);
        let is_kept = rng.below(3) == 0;
        program.extend(first.map(Do::Acquire));
        program.extend((rng.below(3) == 0).then(|| Do::Op(accesses[rng.below(4)])));
        program.extend(first.filter(|_| !is_kept).map(Do::Release));
        // Another, which may hold the joins.
        let free = ["l", "m"].into_iter().find(|&lock| !is_kept || Some(lock) != first);
        let second = free.filter(|_| rng.below(2) == 0);
        program.extend(second.map(Do::Acquire));
        program.extend((rng.below(3) == 0).then(|| Do::Op(accesses[rng.below(4)])));
        let release = second.filter(|_| rng.below(4) > 0).map(Do::Release);
        let holds_joins = rng.below(2) == 0;
        program.extend(release.filter(|_| !holds_joins));
        program.extend(joins.iter().map(|&child| Do::Join(child)));
        program.extend(release.filter(|_| holds_joins));
        program
    });
    programs.into()
}

/// Runs `programs` by a random schedule, for as long as anyone can go on.
fn run(rng: &mut Rng, mut programs: Vec<VecDeque<Do>>) -> Trace {
    let has_joins = programs.iter().flatten().any(|it| matches!(it, Do::Join(_)));
    let mut lines =
        if has_joins { "T1|fork(T2)|a\nT1|fork(T3)|a\n".to_owned() } else { String::new() };
    let mut held: Vec<(&str, usize)> = Vec::new();
    // Who waits, and whether it was woken.
    let mut waiting: Vec<(usize, bool)> = Vec::new();
    loop {
        let can_go_on = |thread: usize| match (
            waiting.iter().find(|(waiter, _)| *waiter == thread),
            programs[thread].front(),
        ) {
            (Some((_, is_woken)), _) => *is_woken,
            (None, Some(Do::Acquire(lock))) => !held.iter().any(|(other, _)| other == lock),
            (None, Some(&Do::Join(child))) => programs[child].is_empty(),
            (None, next) => next.is_some(),
        };
        let ready: Vec<usize> = (0..programs.len()).filter(|&thread| can_go_on(thread)).collect();
        if ready.is_empty() {
            break;
        }
        let thread = ready[rng.below(ready.len())];
        let mut log = |what: &str| lines.push_str(&format!("T{}|{what}|a\n", thread + 1));
        if waiting.iter().any(|&(waiter, _)| waiter == thread) {
            waiting.retain(|&(waiter, _)| waiter != thread);
            log("wake(c)");
            programs[thread].push_front(Do::Acquire("m"));
            continue;
        }
        let Some(next) = programs[thread].pop_front() else { continue };
        match next {
            Do::Op(access) => log(access),
            Do::Join(child) => log(&format!("join(T{})", child + 1)),
            Do::Acquire(lock) => {
                held.push((lock, thread));
                log(&format!("acq({lock})"));
            }
            Do::Release(lock) => {
                held.retain(|&(other, _)| other != lock);
                log(&format!("rel({lock})"));
            }
            Do::Wait => {
                held.retain(|&(other, _)| other != "m");
                waiting.push((thread, false));
                log("rel(m)");
                log("wait(c)");
            }
            Do::Notify(all) => {
                log(if all { "notifyall(c)" } else { "notify(c)" });
                let count = if all { usize::MAX } else { 1 };
                let asleep = waiting.iter_mut().filter(|(_, is_woken)| !is_woken);
                asleep.take(count).for_each(|(_, is_woken)| *is_woken = true);
            }
        }
    }
    reweave_testkit::std(&lines)
}

/// The wakes that can be lost in `trace`, by the definition and as found.
fn lost_wakes(trace: &Trace) -> [BTreeSet<EventId>; 2] {
    let is_wake = |id: &EventId| matches!(trace.event(*id).op, Op::Condition(ConditionOp::Wake, _));
    let defined = oracle::stuck::stuck(trace, 3).into_iter().flatten().filter(is_wake).collect();
    let findings = stuck(&Subject::new(trace), &all());
    let found = findings.iter().flat_map(|finding| finding.events.clone()).filter(is_wake);
    [defined, found.collect()]
}

/// A run of three threads that take and post tokens of a semaphore.
fn random_tokens(seed: u64) -> Trace {
    let mut rng = Rng::new(seed);
    let mut tokens = rng.below(3);
    let mut drawing = format!("T1 T2 T3\nstart(s)={tokens}\n");
    for _ in 0..8 {
        let column = rng.below(3) * 3;
        let deed = match rng.below(6) {
            0 | 1 if tokens > 0 => {
                tokens -= 1;
                "take(s)"
            }
            2 | 3 => {
                tokens += 1;
                "post(s)"
            }
            4 => "w(x)",
            _ => "r(x)",
        };
        drawing.push_str(&format!("{:column$}{deed}\n", ""));
    }
    reweave_testkit::trace(&drawing)
}

/// A run of three threads with sections of two semaphores and a lock, which may be nested.
fn random_sections(seed: u64) -> Trace {
    let mut rng = Rng::new(seed);
    let words = |of: usize| match of {
        0 => ["take(a)", "post(a)"],
        1 => ["take(b)", "post(b)"],
        _ => ["acq(m)", "rel(m)"],
    };
    loop {
        let mut programs: Vec<VecDeque<(usize, bool)>> = Vec::new();
        for _ in 0..3 {
            let [outer, inner] = [rng.below(3), rng.below(4)];
            let mut program = VecDeque::from([(outer, true), (outer, false)]);
            if inner < 3 && inner != outer {
                let at = 1 + rng.below(2);
                program.insert(at, (inner, true));
                // Not always is what was taken last released first.
                program.insert(at + 1 + rng.below(3 - at), (inner, false));
            }
            programs.push(program);
        }
        let mut is_free = [true; 3];
        let mut drawing = "T1 T2 T3\nstart(a)=1\nstart(b)=1\n".to_owned();
        loop {
            let can_go_on = |thread: &usize| {
                let next = programs[*thread].front();
                next.is_some_and(|&(what, takes)| !takes || is_free[what])
            };
            let ready: Vec<usize> = (0..3).filter(can_go_on).collect();
            if ready.is_empty() {
                break;
            }
            let thread = ready[rng.below(ready.len())];
            let Some((what, takes)) = programs[thread].pop_front() else { continue };
            is_free[what] = !takes;
            let column = thread * 3;
            drawing.push_str(&format!("{:column$}{}\n", "", words(what)[usize::from(!takes)]));
            if rng.below(3) == 0 {
                let access = ["r(x)", "w(x)"][rng.below(2)];
                drawing.push_str(&format!("{:column$}{access}\n", ""));
            }
        }
        if programs.iter().all(VecDeque::is_empty) {
            return reweave_testkit::trace(&drawing);
        }
    }
}

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn where_threads_hold_tokens_one_is_found_if_one_can_be_stuck(seed in any::<u64>()) {
        let trace = random_sections(seed);
        let defined = oracle::stuck::stuck(&trace, 3);
        let subject = Subject::new(&trace);
        let found = stuck(&subject, &all());
        for finding in &found {
            if let Goal::Stuck(stops) = finding.evidence.proof().unwrap().goal() {
                prop_assert!(defined.contains(stops), "{:?}\n{}", stops, draw(&trace));
            }
        }
        let mut cycles = Gathered::default();
        ExactDeadlocks.run(&subject, &all(), &mut cycles);
        let is_found = !found.is_empty() || !cycles.findings.is_empty();
        prop_assert!(defined.is_empty() || is_found, "{:?}\n{}", defined, draw(&trace));
    }

    #[test]
    fn tokens_that_are_missing_are_found_as_defined(seed in any::<u64>()) {
        let trace = random_tokens(seed);
        let defined = oracle::stuck::stuck(&trace, 3);
        let found = stuck(&Subject::new(&trace), &all());
        for finding in &found {
            let Goal::Stuck(stops) = finding.evidence.proof().unwrap().goal().clone() else {
                panic!("{finding:?}");
            };
            prop_assert!(defined.contains(&stops), "{:?}\n{}", stops, draw(&trace));
        }
        let single = defined.iter().filter(|stops| stops.len() == 1);
        let is_found = |stop: EventId| found.iter().any(|it| it.events.contains(&stop));
        for stops in single {
            prop_assert!(is_found(stops[0]), "{:?}\n{}", stops, draw(&trace));
        }
    }

    #[test]
    fn where_threads_join_one_is_found_if_one_can_be_stuck(seed in any::<u64>()) {
        let trace = random_joins(seed);
        let defined = oracle::stuck::stuck(&trace, 3);
        let subject = Subject::new(&trace);
        let found = stuck(&subject, &all());
        for finding in &found {
            if let Goal::Stuck(stops) = finding.evidence.proof().unwrap().goal() {
                prop_assert!(defined.contains(stops), "{:?}\n{}", stops, draw(&trace));
            }
        }
        let mut cycles = Gathered::default();
        ExactDeadlocks.run(&subject, &all(), &mut cycles);
        let is_found = !found.is_empty() || !cycles.findings.is_empty();
        prop_assert!(defined.is_empty() || is_found, "{:?}\n{}", defined, draw(&trace));
    }

    #[test]
    fn with_one_that_waits_what_is_found_is_what_the_definition_says(seed in any::<u64>()) {
        let trace = random(seed, 1);
        let [defined, found] = lost_wakes(&trace);
        prop_assert_eq!(defined, found, "{}", draw(&trace));
    }

    #[test]
    fn with_more_that_wait_what_is_found_is_so(seed in any::<u64>()) {
        let trace = random(seed, 2);
        for finding in stuck(&Subject::new(&trace), &all()) {
            prop_assert_eq!(finding.guarantee(), Guarantee::Witnessed);
            let goal = finding.evidence.proof().unwrap().goal().clone();
            if let Goal::Stuck(stops) = goal {
                let defined = oracle::stuck::stuck(&trace, 3);
                prop_assert!(defined.contains(&stops), "{:?}\n{}", stops, draw(&trace));
            }
        }
    }
}
