//! The checker on small runs: each rule and each goal, accepted and refused; and that what it keeps
//! from one reordering to the next changes nothing.
//!
//! It agrees with a second statement of the definition on many more runs: see the tests of `trace`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use reweave_base::{Id, IndexVec};
use reweave_checker::{Certificate, Checker, ObservedRun, Refusal};
use reweave_op::{
    After, EventId, Goal, MemoryOrder, NameKind, OpCode, OpKind, Reordering, ThreadId, VarId,
};

/// A run, its events written as `thread operation operand`: threads are numbers, things are letters.
/// A memory order follows the operation after a dot.
struct Run {
    threads: Vec<u32>,
    codes: Vec<OpCode>,
    operands: Vec<u32>,
    starts: Vec<Option<u32>>,
    parties: Vec<Option<u32>>,
    waits_are_requested: bool,
}

impl Run {
    fn new(text: &str) -> Self {
        let (mut threads, mut codes, mut operands) = (Vec::new(), Vec::new(), Vec::new());
        for event in text.split(';').map(str::trim).filter(|event| !event.is_empty()) {
            let words: Vec<&str> = event.split(' ').collect();
            let (word, order) = words[1].split_once('.').unwrap_or((words[1], "seqcst"));
            let kind = OpKind::ALL.into_iter().find(|kind| kind.as_str() == word).unwrap();
            let order = MemoryOrder::ALL.into_iter().find(|it| it.as_str() == order).unwrap();
            let first = if kind.operand() == NameKind::Thread { b'1' } else { b'a' };
            threads.push(words[0].parse::<u32>().unwrap() - 1);
            codes.push(OpCode::new(kind, order));
            operands.push(words.get(2).map_or(0, |word| u32::from(word.as_bytes()[0] - first)));
        }
        let (starts, parties) = (Vec::new(), Vec::new());
        Self { threads, codes, operands, starts, parties, waits_are_requested: false }
    }

    fn checker(&self) -> Checker<'_> {
        Checker::new(ObservedRun {
            threads: &self.threads,
            codes: &self.codes,
            operands: &self.operands,
            starts: &self.starts,
            parties: &self.parties,
            waits_are_requested: self.waits_are_requested,
        })
    }

    /// The checker's answer to the events `schedule` after the first `base` of each thread.
    fn answer(&self, base: &[u32], schedule: &[u32], goal: &Goal) -> String {
        match self.checker().check(&reordering(base, schedule), goal) {
            Ok(Certificate { unknown_reads_count: 0, .. }) => "correct".into(),
            Ok(found) => format!("correct, {} unknown reads", found.unknown_reads_count),
            Err(refusal) => refusal.to_string(),
        }
    }
}

fn event(number: u32) -> EventId {
    EventId::from_number(number).unwrap()
}

fn events(numbers: &[u32]) -> Vec<EventId> {
    numbers.iter().copied().map(event).collect()
}

fn reordering(base: &[u32], schedule: &[u32]) -> Reordering {
    Reordering { base: base.iter().copied().collect(), schedule: events(schedule) }
}

fn nothing() -> Goal {
    Goal::Enabled(Vec::new())
}

fn enabled(number: u32) -> Goal {
    Goal::Enabled(vec![event(number)])
}

fn order(chain: &[u32], absent: &[u32], free: &[u32], after: After) -> Goal {
    Goal::Order { chain: events(chain), absent: events(absent), free: events(free), after }
}

fn sees(read: u32, write: Option<u32>, after: After) -> Goal {
    Goal::Sees { read: event(read), write: write.map(event), after }
}

/// Explicit schedules of `run`, and what comes of them.
#[track_caller]
fn check(run: &Run, cases: &[(&[u32], &str)]) {
    for (schedule, expected) in cases {
        assert_eq!(run.answer(&[], schedule, &nothing()), *expected, "{schedule:?}");
    }
}

/// What a schedule of `run` is said to show, and what comes of that.
#[track_caller]
fn check_goals(run: &Run, cases: &[(&[u32], Goal, &str)]) {
    for (schedule, goal, expected) in cases {
        assert_eq!(run.answer(&[], schedule, goal), *expected, "{schedule:?} {goal:?}");
    }
}

#[test]
fn rule_1_program_order() {
    let run = Run::new("1 w a; 1 w b; 2 w a");
    check(
        &run,
        &[
            (&[3, 1, 2], "correct"),
            (&[2], "step 1, event 2: its thread's next event is 1"),
            (&[1, 1], "step 2, event 1: its thread's next event is 2"),
            (&[3, 3], "step 2, event 3: its thread has no event left"),
            (&[4], "step 1, event 4: the trace has no such event"),
        ],
    );
}

#[test]
fn rule_2_reads_from() {
    let run = Run::new("2 r a; 1 w a; 2 r a; 1 w a; 2 r? a; 1 arw a; 1 w b; 2 aw a");
    check(
        &run,
        &[
            (&[1, 2, 3, 4, 5, 6, 7, 8], "correct, 1 unknown reads"),
            (&[1, 2, 3, 5], "correct, 1 unknown reads"),
            (&[1, 2, 3, 4, 5, 6], "correct, 1 unknown reads"),
            (
                &[2, 1],
                "step 2, event 1: the read saw the initial value and would now see the write at event 2",
            ),
            (
                &[1, 3],
                "step 2, event 3: the read saw the write at event 2 and would now see the initial value",
            ),
            (
                &[1, 2, 4, 3],
                "step 4, event 3: the read saw the write at event 2 and would now see the write at event 4",
            ),
            (&[1, 2, 3, 5, 8, 4, 6], "correct, 1 unknown reads"),
            (
                &[1, 2, 3, 4, 5, 8, 6],
                "step 7, event 6: the read saw the write at event 4 and would now see the write at event 8",
            ),
        ],
    );
}

#[test]
fn rule_3_locks() {
    let run = Run::new("1 acq a; 1 acq a; 1 rel a; 1 rel a; 2 acq a; 2 rel a; 2 acq b; 2 rel b");
    check(
        &run,
        &[
            (&[5, 6, 1, 2, 3, 4], "correct"),
            (&[1, 2, 3, 4, 5], "correct"),
            (&[1, 5], "step 2, event 5: thread number 1 holds the lock"),
            (&[1, 2, 3, 5], "step 4, event 5: thread number 1 holds the lock"),
            (&[5, 6, 7, 1], "correct"),
        ],
    );
    let shared = Run::new(
        "1 racq a; 1 racq a; 1 rrel a; 1 rrel a; 2 racq a; 2 rrel a; 3 acq a; 3 rel a; 1 racq a; 1 acq a",
    );
    check(
        &shared,
        &[
            (&[1, 5, 2], "correct"),
            (&[1, 7], "step 2, event 7: thread number 1 holds the lock"),
            (&[1, 2, 3, 7], "step 4, event 7: thread number 1 holds the lock"),
            (&[1, 2, 3, 4, 7, 8], "correct"),
            (&[7, 1], "step 2, event 1: thread number 3 holds the lock"),
            (&[1, 2, 3, 4, 9, 10], "correct"),
            (&[1, 2, 3, 4, 5, 9, 10], "step 7, event 10: thread number 2 holds the lock"),
        ],
    );
}

#[test]
fn rule_4_forks_and_joins() {
    let run = Run::new("1 fork 2; 2 w a; 2 w b; 1 join 2; 3 w c");
    check(
        &run,
        &[
            (&[5, 1, 2, 3, 4], "correct"),
            (&[2], "step 1, event 2: its thread starts with the fork at event 1"),
            (&[1, 4], "step 2, event 4: the joined thread has not run event 2"),
            (&[1, 2, 4], "step 3, event 4: the joined thread has not run event 3"),
        ],
    );
    let empty = Run::new("1 fork 3; 2 join 3");
    check(&empty, &[(&[2], "step 1, event 2: the joined thread has not run event 1")]);
}

#[test]
fn rule_5_waits_and_notifies() {
    let run = Run::new("1 wait a; 2 notify a; 1 wake a; 2 notify a; 3 wait a; 3 timeout a");
    check(
        &run,
        &[
            (&[1, 2, 3, 4, 5, 6], "correct"),
            (&[2], "step 1, event 2: the wait at event 1, which it woke, is not waiting"),
            (&[1, 3], "step 2, event 3: the notify that woke it, event 2, has not run"),
            (&[1, 2, 4], "correct"),
            (&[1, 2, 5, 4], "step 4, event 4: it would wake the wait at event 5, which it did not"),
            (&[1, 2, 5, 6, 4], "correct"),
            (&[1, 5, 2], "correct"),
        ],
    );
    // A wait that another notify woke was there, but would now be woken by this one.
    let twice = Run::new("1 wait a; 2 notify a; 3 notify a; 1 wake a");
    let refusal = "step 2, event 3: it would wake the wait at event 1, which it did not";
    check(&twice, &[(&[1, 2, 3, 4], "correct"), (&[1, 3], refusal)]);
    let all =
        Run::new("1 wait a; 2 wait a; 3 notifyall a; 1 wake a; 2 wake a; 4 wait a; 4 timeout a");
    check(
        &all,
        &[
            (&[2, 1, 3, 5, 4], "correct"),
            (&[1, 3], "step 2, event 3: the wait at event 2, which it woke, is not waiting"),
            (&[1, 2, 6, 3], "step 4, event 3: it would wake the wait at event 6, which it did not"),
        ],
    );
    // A timeout that was there when the notify came is spared; and a notify leaves others alone.
    let spared = Run::new("1 wait a; 2 notify a; 1 timeout a; 3 wait b; 2 notify a");
    check(&spared, &[(&[1, 2, 3], "correct"), (&[4, 1, 2, 3, 5], "correct")]);
    check(
        &spared,
        &[(&[2, 1, 5], "step 3, event 5: it would wake the wait at event 1, which it did not")],
    );
    // The one that wakes first is woken first, and after it one that never wakes.
    let two = Run::new("1 wait a; 2 wait a; 3 notify a; 2 wake a; 3 notify a; 3 notify a");
    check(
        &two,
        &[
            (&[2, 3, 4], "correct"),
            (&[1, 3], "step 2, event 3: the wait at event 2, which it woke, is not waiting"),
            (&[2, 3, 5], "step 3, event 5: the wait at event 1, which it woke, is not waiting"),
            (&[1, 2, 3, 5, 6], "correct"),
        ],
    );
}

#[test]
fn rule_5_a_wait_begins_with_the_release_of_its_lock() {
    let run =
        Run::new("1 acq a; 1 rel a; 2 notify a; 1 wait a; 1 timeout a; 1 req a; 1 acq a; 1 rel a");
    check(
        &run,
        &[(&[1, 2, 3], "correct"), (&[1, 2, 4, 3], "correct"), (&[3, 1, 2, 4, 5], "correct")],
    );
    let woken = Run::new("1 racq a; 1 rrel a; 2 notify a; 1 wait a; 1 wake a; 1 racq a; 1 rrel a");
    check(
        &woken,
        &[
            (&[1, 2, 3, 4, 5, 6], "correct"),
            (&[3], "step 1, event 3: the wait at event 4, which it woke, is not waiting"),
            (&[1, 3], "step 2, event 3: the wait at event 4, which it woke, is not waiting"),
        ],
    );
    let other = Run::new("1 acq a; 1 rel a; 2 notify a; 1 wait a; 1 timeout a; 1 acq b; 1 rel b");
    let refusal = "step 4, event 3: it would wake the wait at event 4, which it did not";
    check(&other, &[(&[1, 2, 3], "correct"), (&[1, 2, 4, 3], refusal)]);
}

#[test]
fn rule_6_barriers() {
    let text = "1 arrive a; 2 arrive a; 1 depart a; 2 depart a; 1 arrive a; 3 arrive a; 3 depart a";
    let run = Run { parties: vec![Some(2)], ..Run::new(text) };
    check(
        &run,
        &[
            (&[2, 1, 4, 3, 6, 5, 7], "correct"),
            (&[1, 3], "step 2, event 3: the arrival at event 2 has not run"),
            (&[1, 6], "step 2, event 6: the arrival at event 2 has not run"),
            (&[2, 1, 6, 7], "step 4, event 7: the arrival at event 5 has not run"),
            (&[2, 4], "step 2, event 4: the arrival at event 1 has not run"),
        ],
    );
    let unknown = Run::new("1 arrive a; 2 arrive a; 1 depart a; 3 arrive a; 2 depart a");
    check(
        &unknown,
        &[
            (&[1, 2, 4, 3, 5], "correct"),
            (&[2], "step 1, event 2: the arrival at event 1 has not run"),
            (&[1, 3], "step 2, event 3: the arrival at event 2 has not run"),
            (&[1, 2, 5], "step 3, event 5: the arrival at event 4 has not run"),
        ],
    );
}

#[test]
fn rule_6_semaphores_and_lifetimes() {
    let known = Run { starts: vec![Some(1)], ..Run::new("1 post a; 2 take a; 3 take a; 3 post a") };
    check(
        &known,
        &[
            (&[2, 1, 3], "correct"),
            (&[2, 3], "step 2, event 3: the semaphore is at zero"),
            (&[3, 4, 2], "correct"),
        ],
    );
    let unknown = Run::new("1 post a; 2 take a; 1 post a; 3 take a; 4 take a");
    check(
        &unknown,
        &[
            (&[5, 1, 3, 4, 2], "correct"),
            (&[2], "step 1, event 2: the post that it used, event 1, has not run"),
            (&[1, 4], "step 2, event 4: the post that it used, event 3, has not run"),
        ],
    );
    let oldest = Run::new("1 post a; 2 post a; 3 take a");
    let refusal = "step 2, event 3: the post that it used, event 1, has not run";
    check(&oldest, &[(&[1, 3], "correct"), (&[2, 3], refusal)]);
    let object =
        Run::new("1 alloc a; 2 free a; 1 free b; 2 branch; 2 let a; 1 begin a; 1 end a; 2 fence");
    check(
        &object,
        &[
            (&[1, 3, 6, 7, 2, 4, 5, 8], "correct"),
            (&[2], "step 1, event 2: its object is allocated at event 1, which has not run"),
        ],
    );
}

#[test]
fn the_fixed_prefix_runs_in_observed_order() {
    let run = Run::new("1 w a; 2 r a; 1 w a; 2 w b; 1 r b");
    let cases: [(&[u32], &[u32], &str); 6] = [
        (&[2, 1], &[4, 5], "correct"),
        (&[3, 2], &[], "correct"),
        (
            &[1],
            &[3, 2],
            "step 3, event 2: the read saw the write at event 1 and would now see the write at event 3",
        ),
        (
            &[3],
            &[],
            "step 3, event 5: the read saw the write at event 4 and would now see the initial value",
        ),
        (&[4], &[], "the fixed prefix runs 4 events of thread number 1, which has 3"),
        (&[0, 0, 0, 1], &[], "the fixed prefix runs 1 events of thread number 4, which has 0"),
    ];
    for (base, schedule, expected) in cases {
        assert_eq!(run.answer(base, schedule, &nothing()), expected, "{base:?} {schedule:?}");
    }
    assert_eq!(run.answer(&[3, 2, 0, 0], &[], &nothing()), "correct");
    let found = run.checker().check(&reordering(&[2, 1], &[4]), &nothing()).unwrap();
    assert_eq!(found.events_count, 4);
}

#[test]
fn goals_races() {
    let run = Run::new("1 fork 2; 1 w a; 2 w a; 2 r b; 1 r a; 1 ar a; 2 aw a");
    let race = |first, second| Goal::Race(event(first), event(second));
    check_goals(
        &run,
        &[
            (&[1], race(2, 3), "correct"),
            (&[1], race(3, 2), "correct"),
            (
                &[],
                race(2, 3),
                "at the end, event 2: it is not its thread's next event, ready to run",
            ),
            (
                &[1, 2],
                race(2, 3),
                "at the end, event 2: it is not its thread's next event, ready to run",
            ),
            (&[1], race(2, 2), "at the end, event 2: another of the events belongs to its thread"),
            (
                &[1, 3],
                race(2, 4),
                "at the end, event 2: it does not conflict with the other access",
            ),
            (&[1], race(2, 9), "at the end, event 9: the trace has no such event"),
        ],
    );
    let forked = Run::new("1 fork 2; 2 w a; 3 w a");
    let refusal = "at the end, event 2: it is not its thread's next event, ready to run";
    check_goals(&forked, &[(&[], race(2, 3), refusal), (&[1], race(2, 3), "correct")]);
    let atomic = Run::new("1 aw a; 2 ar a; 3 r a");
    let refusal = "at the end, event 1: it does not conflict with the other access";
    check_goals(&atomic, &[(&[], race(1, 2), refusal), (&[], race(1, 3), "correct")]);
}

/// Whether happens-before of `text`, as it stands, orders the first event and the last.
fn is_ordered(text: &str) -> bool {
    let run = Run::new(text);
    let all: Vec<u32> = (1..=run.threads.len() as u32).collect();
    let goal = Goal::Unordered(event(1), event(all.len() as u32));
    let mut answers = [vec![], all].map(|schedule| {
        // Once as a fixed prefix, once step by step.
        let counts = (0..4).map(|thread| run.threads.iter().filter(|&&it| it == thread).count());
        let base: Vec<u32> = counts.map(|count| count as u32).collect();
        run.answer(if schedule.is_empty() { &base } else { &[] }, &schedule, &goal)
    });
    answers.sort_unstable();
    assert_eq!(answers[0], answers[1], "{text}");
    match answers[0].as_str() {
        answer if answer.starts_with("correct") => false,
        "at the end, event 1: happens-before orders the two accesses" => true,
        other => panic!("{text}: {other}"),
    }
}

#[test]
fn what_happens_before_orders_is_not_unordered() {
    // The first and the last event are the accesses.
    let ordered = [
        "1 w a; 1 aw.release f; 2 ar.acquire f; 2 r a",
        "1 w a; 1 aw f; 2 ar f; 2 r a",
        "1 w a; 1 fence.release; 1 aw.relaxed f; 2 ar.relaxed f; 2 fence.acquire; 2 r a",
        "1 w a; 1 aw.release f; 2 arw.relaxed f; 3 ar.acquire f; 3 r a",
        "1 w a; 1 aw.release f; 1 aw.relaxed f; 2 ar.acquire f; 2 r a",
        "1 w a; 1 aw.release f; 2 ar.acquire f; 2 aw.release g; 3 ar.acquire g; 3 r a",
        "1 aw.release a; 2 ar.acquire a; 2 r a",
        "1 w a; 1 aw.release a; 2 ar.acquire a",
        "1 w a; 1 w b; 2 r b; 2 r a",
        "1 w a; 1 aw b; 2 r b; 2 r a",
        "1 w a; 1 w b; 2 ar.relaxed b; 2 r a",
        "1 w a; 1 acq l; 1 rel l; 2 acq l; 2 rel l; 2 r a",
        "1 w a; 1 racq l; 1 rrel l; 2 acq l; 2 rel l; 2 r a",
        "1 w a; 1 acq l; 1 rel l; 2 racq l; 2 rrel l; 2 r a",
        "1 w a; 1 fork 2; 2 r a",
        "1 w a; 2 join 1; 2 r a",
        "1 w a; 1 post s; 2 take s; 2 r a",
        "1 w a; 1 arrive b; 2 arrive b; 2 depart b; 2 r a",
        "1 w a; 1 wait c; 2 notify c; 2 r a",
        "2 w a; 1 wait c; 2 notify c; 1 wake c; 1 r a",
        "1 w a; 1 alloc o; 2 free o; 2 r a",
        // The access and the end of what it accesses.
        "1 w a; 1 aw.release f; 2 ar.acquire f; 2 free o",
        "1 w a; 1 alloc o; 2 free o",
        "1 free o; 1 fork 2; 2 r a",
    ];
    for text in ordered {
        assert!(is_ordered(text), "{text}");
    }
}

#[test]
fn goals_unordered() {
    let unordered = [
        "1 w a; 2 w a",
        "1 w a; 1 aw.relaxed f; 2 ar.acquire f; 2 r a",
        "1 w a; 1 aw.release f; 2 ar.relaxed f; 2 r a",
        "1 w a; 1 aw.relaxed f; 1 fence.release; 2 ar.acquire f; 2 r a",
        "1 w a; 1 aw.release f; 2 fence.acquire; 2 ar.relaxed f; 2 r a",
        "1 w a; 1 fence.acquire; 1 aw.relaxed f; 2 ar.acquire f; 2 r a",
        "1 w a; 1 aw.release f; 2 ar.relaxed f; 2 fence.release; 2 r a",
        "1 w a; 1 aw.release f; 2 aw.release f; 3 ar.acquire f; 3 r a",
        "1 w a; 1 aw.release f; 2 aw.relaxed f; 3 ar.acquire f; 3 r a",
        "1 w a; 1 aw.relaxed f; 2 arw.acqrel f; 3 ar.acquire f; 3 r a",
        "1 w a; 1 aw.release f; 2 w f; 3 ar.acquire f; 3 r a",
        "1 w a; 1 w b; 2 r? b; 2 r a",
        "1 arw.release a; 2 arw.relaxed a; 2 r a; 2 w a",
        // What the later access itself sees makes no order.
        "1 w a; 2 r a",
        "1 w a; 2 ar a",
        "1 aw a; 2 r a",
        "1 w a; 1 racq l; 1 rrel l; 2 racq l; 2 rrel l; 2 r a",
        "1 w a; 1 aw.release f; 2 r a",
        "1 w a; 1 aw.relaxed f; 2 ar.acquire f; 2 free o",
        "1 free o; 2 r a",
    ];
    for text in unordered {
        assert!(!is_ordered(text), "{text}");
    }
    let run = Run::new("1 w a; 1 w b; 2 w a; 2 r b");
    let unordered = |first, second| Goal::Unordered(event(first), event(second));
    check_goals(
        &run,
        &[
            (&[1, 3], unordered(1, 3), "correct"),
            (&[3, 1], unordered(1, 3), "correct"),
            (
                &[1],
                unordered(1, 3),
                "at the end, event 3: it did not run, or not in the order claimed",
            ),
            (
                &[1, 2],
                unordered(1, 2),
                "at the end, event 2: another of the events belongs to its thread",
            ),
            (
                &[1, 2, 3],
                unordered(2, 3),
                "at the end, event 2: it does not conflict with the other access",
            ),
            (&[1], unordered(1, 9), "at the end, event 9: the trace has no such event"),
        ],
    );
    let run = Run::new("1 alloc o; 1 free o; 2 post s; 2 free p");
    let refusal = "it does not conflict with the other access";
    check_goals(
        &run,
        &[
            (&[1, 2, 3], unordered(2, 3), &format!("at the end, event 2: {refusal}")),
            (&[1, 2, 3, 4], unordered(2, 4), &format!("at the end, event 2: {refusal}")),
        ],
    );
}

#[test]
fn goals_enabled() {
    let run = Run::new("1 acq a; 1 w a; 1 rel a; 2 acq a; 2 r a; 2 rel a");
    check_goals(
        &run,
        &[
            (&[1, 2, 3], enabled(4), "correct"),
            (&[1, 2], enabled(4), "at the end, event 4: thread number 1 holds the lock"),
            (&[4], enabled(5), "correct"),
            (
                &[4],
                enabled(6),
                "at the end, event 6: it is not its thread's next event, ready to run",
            ),
        ],
    );
}

#[test]
fn goals_stuck() {
    // Thread 1 waits and is woken; thread 2 notifies; thread 3 joins thread 1.
    let text =
        "1 acq a; 1 rel a; 1 wait a; 2 notify a; 2 w a; 1 wake a; 1 acq a; 1 rel a; 3 join 1";
    let run = Run::new(text);
    let stuck = |numbers: &[u32]| Goal::Stuck(events(numbers));
    let goes_on =
        |number| format!("at the end, event {number}: it can happen, or does not wait for ever");
    check_goals(
        &run,
        &[
            // The notify may come first, since nobody waits for it then.
            (&[4, 5, 1, 2, 3], stuck(&[6, 9]), "correct"),
            (&[1, 2, 3, 4, 5], stuck(&[]), "at the end: no thread is said to be stuck"),
            // Whoever is left must be named, and wait.
            (
                &[4, 5, 1, 2, 3],
                stuck(&[6]),
                "at the end, event 9: it did not run, and every event should have",
            ),
            (
                &[4, 1, 2, 3],
                stuck(&[6, 9]),
                "at the end, event 5: it did not run, and every event should have",
            ),
            (&[4, 1, 2, 3], stuck(&[5, 6, 9]), &goes_on(5)),
            // It was woken.
            (&[1, 2, 3, 4, 5], stuck(&[6, 9]), &goes_on(6)),
            // Only for who is stuck may a notify come early.
            (
                &[4, 5, 1, 2, 3],
                nothing(),
                "step 1, event 4: the wait at event 3, which it woke, is not waiting",
            ),
        ],
    );
    // A lost notify finds nobody else waiting: it would wake that one.
    let two = "1 wait a; 2 wait a; 3 notify a; 3 notify a; 1 wake a; 2 wake a";
    let two = Run::new(two);
    check_goals(
        &two,
        &[
            (&[3, 2, 4, 6, 1], stuck(&[5]), "correct"),
            (
                &[2, 3, 4, 6, 1],
                stuck(&[5]),
                "step 2, event 3: the wait at event 1, which it woke, is not waiting",
            ),
        ],
    );
    // A thread that never starts may stay behind; a wait with a limit is none.
    let forks = Run::new("1 wait a; 2 notify a; 1 wake a; 1 fork 3; 3 w a");
    check_goals(&forks, &[(&[2, 1], stuck(&[3]), "correct")]);
    let timed = Run::new("1 timed; 1 wait a; 2 notify a; 1 wake a");
    check_goals(&timed, &[(&[3, 1, 2], stuck(&[4]), &goes_on(4))]);
}

#[test]
fn goals_stuck_at_locks_semaphores_and_barriers() {
    let stuck = |numbers: &[u32]| Goal::Stuck(events(numbers));
    let goes_on =
        |number| format!("at the end, event {number}: it can happen, or does not wait for ever");
    let counted = |start| Run {
        starts: vec![start],
        ..Run::new("1 acq a; 1 post a; 1 rel a; 2 acq a; 2 take a; 2 rel a")
    };
    check_goals(
        &counted(Some(0)),
        &[(&[4], stuck(&[1, 5]), "correct"), (&[1, 2, 3, 4], stuck(&[5]), &goes_on(5))],
    );
    check_goals(&counted(Some(1)), &[(&[4], stuck(&[1, 5]), &goes_on(5))]);
    check_goals(&counted(None), &[(&[4], stuck(&[1, 5]), &goes_on(5))]);
    let parties = |parties| Run {
        parties: vec![parties],
        ..Run::new(
            "1 acq a; 1 rel a; 1 arrive a; 2 acq a; 2 arrive a; 1 depart a; 2 depart a; 2 rel a",
        )
    };
    check_goals(&parties(Some(2)), &[(&[4, 5], stuck(&[1, 7]), "correct")]);
    check_goals(&parties(None), &[(&[4], stuck(&[1, 5]), &goes_on(5))]);
    // A join waits for a thread that waits for a lock.
    let joins = Run::new("2 acq a; 2 rel a; 1 acq a; 1 join 2; 1 rel a");
    let deadlock = |numbers: &[u32]| Goal::Deadlock(events(numbers));
    check_goals(&joins, &[(&[3], deadlock(&[4, 1]), "correct")]);
    check_goals(&joins, &[(&[3], stuck(&[1, 4]), "correct")]);
}

#[test]
fn goals_deadlocks() {
    let text = "1 acq a; 1 acq b; 1 rel b; 1 rel a; 2 acq b; 2 acq a; 2 rel a; 2 rel b";
    let run = Run::new(text);
    let deadlock = |numbers: &[u32]| Goal::Deadlock(events(numbers));
    let refusal = |number| {
        format!("at the end, event {number}: it is not blocked by the thread of the next event")
    };
    check_goals(
        &run,
        &[
            (&[1, 5], deadlock(&[2, 6]), "correct"),
            (&[1], deadlock(&[2, 5]), &refusal(2)),
            (&[1, 5], deadlock(&[2]), "at the end: a deadlock takes at least two threads"),
            (
                &[1, 5],
                deadlock(&[2, 2]),
                "at the end, event 2: another of the events belongs to its thread",
            ),
            (&[], deadlock(&[1, 5]), &refusal(1)),
            (
                &[1, 5],
                deadlock(&[3, 6]),
                "at the end, event 3: it is not its thread's next event, ready to run",
            ),
        ],
    );
    // Who is blocked must be blocked by the next of the cycle, not by somebody else.
    let third = Run::new("1 acq a; 1 acq b; 1 rel b; 1 rel a; 2 acq c; 2 acq a; 3 acq b");
    check_goals(&third, &[(&[1, 5, 7], deadlock(&[2, 6]), &refusal(2))]);
    // With requests, an acquire without one was an attempt.
    let tried = Run { waits_are_requested: true, ..Run::new(text) };
    check_goals(&tried, &[(&[1, 5], deadlock(&[2, 6]), &refusal(2))]);
    let asked =
        "1 acq a; 1 req b; 1 acq b; 1 rel b; 1 rel a; 2 acq b; 2 req a; 2 acq a; 2 rel a; 2 rel b";
    let asked = Run { waits_are_requested: true, ..Run::new(asked) };
    check_goals(
        &asked,
        &[(&[1, 6], deadlock(&[2, 7]), "correct"), (&[1, 2, 6, 7], deadlock(&[3, 8]), "correct")],
    );
    // Who ends a wait on a condition waits for its lock, though it does not request it.
    let woken = "1 acq b; 1 acq a; 1 rel a; 1 wait c; 1 timeout c; 1 acq a; 1 rel a; 1 rel b; \
                 2 acq a; 2 req b; 2 acq b; 2 rel b; 2 rel a";
    let woken = Run { waits_are_requested: true, ..Run::new(woken) };
    check_goals(&woken, &[(&[1, 2, 3, 4, 5, 9], deadlock(&[6, 10]), "correct")]);
    // Readers block who wants the lock alone, and not each other.
    let readers = Run::new(
        "1 racq a; 1 acq b; 1 rel b; 1 rrel a; 2 acq b; 2 racq a; 2 rrel a; 2 rel b; 3 acq b; 3 acq a",
    );
    check_goals(
        &readers,
        &[(&[1, 5], deadlock(&[2, 6]), &refusal(6)), (&[1, 9], deadlock(&[2, 10]), "correct")],
    );
}

#[test]
fn a_free_read_is_free_of_one_rule_alone() {
    let locked = Run::new("1 acq a; 1 rel a; 2 acq a; 2 rel a");
    let refusal = "step 2, event 3: thread number 1 holds the lock";
    check_goals(&locked, &[(&[1, 3], order(&[], &[], &[3], After::RunsOn), refusal)]);
}

#[test]
fn goals_orders() {
    use After::{RunsOn, Stops};
    let run = Run::new("1 w a; 2 r a; 2 w b; 3 w c");
    check_goals(
        &run,
        &[
            (&[1, 4, 2], order(&[1, 4, 2], &[3], &[], RunsOn), "correct"),
            (
                &[1, 4, 2],
                order(&[4, 1], &[], &[], RunsOn),
                "at the end, event 1: it did not run, or not in the order claimed",
            ),
            (
                &[1, 4, 2],
                order(&[1, 1], &[], &[], RunsOn),
                "at the end, event 1: it did not run, or not in the order claimed",
            ),
            (
                &[1],
                order(&[4], &[], &[], RunsOn),
                "at the end, event 4: it did not run, or not in the order claimed",
            ),
            (
                &[1, 4],
                order(&[], &[4], &[], RunsOn),
                "at the end, event 4: it ran, though it should not have",
            ),
            (&[2, 1], order(&[2, 1], &[], &[2], Stops), "correct"),
            (
                &[2, 1],
                order(&[2, 1], &[], &[], Stops),
                "step 1, event 2: the read saw the write at event 1 and would now see the initial value",
            ),
            (
                &[2, 3, 1],
                order(&[2, 1], &[], &[2], Stops),
                "at the end, event 2: its thread ran on after it",
            ),
            (&[2, 3, 1], order(&[2, 1], &[], &[2], RunsOn), "correct"),
            (&[1], order(&[1], &[], &[2, 9], Stops), "correct"),
        ],
    );
    // In the fixed prefix, too, the order is the observed one.
    let goal = order(&[1, 4], &[], &[], RunsOn);
    assert_eq!(run.answer(&[1, 0, 1], &[], &goal), "correct");
    assert_eq!(run.answer(&[1, 0, 1], &[2], &order(&[4, 2], &[], &[], RunsOn)), "correct");
    let goal = order(&[4, 1], &[], &[], RunsOn);
    assert_eq!(
        run.answer(&[1, 0, 1], &[], &goal),
        "at the end, event 1: it did not run, or not in the order claimed"
    );
    // A read that is free frees no other.
    let others = Run::new("1 w a; 2 r a; 3 r a");
    let refusal =
        "step 2, event 3: the read saw the write at event 1 and would now see the initial value";
    check_goals(&others, &[(&[2, 3], order(&[2], &[], &[2], Stops), refusal)]);
    let update = Run::new("1 w a; 2 arw a; 3 r a");
    check_goals(
        &update,
        &[
            (
                &[2, 3, 1],
                order(&[2, 1], &[], &[2], Stops),
                "at the end, event 2: another event saw what it wrote",
            ),
            (&[2, 3, 1], order(&[2, 1], &[], &[2, 3], Stops), "correct"),
            (&[2, 1], order(&[2, 1], &[], &[2], Stops), "correct"),
        ],
    );
}

#[test]
fn goals_views() {
    use After::{RunsOn, Stops};
    let same = "at the end, event 2: it does not see the other write that is claimed";
    let run = Run::new("1 w a; 2 r a; 2 w b; 1 w a; 3 r? a");
    check_goals(
        &run,
        &[
            (&[2], sees(2, None, Stops), "correct"),
            (&[1, 4, 2], sees(2, Some(4), Stops), "correct"),
            (&[1, 2], sees(2, Some(1), Stops), same),
            (&[2], sees(2, Some(4), Stops), same),
            (
                &[1],
                sees(2, None, Stops),
                "at the end, event 2: it did not run, or not in the order claimed",
            ),
            (&[2, 3], sees(2, None, Stops), "at the end, event 2: its thread ran on after it"),
            (&[2, 3], sees(2, None, RunsOn), "correct"),
            (
                &[5],
                sees(5, None, Stops),
                "at the end, event 5: it does not see the other write that is claimed",
            ),
            (
                &[1],
                sees(1, None, RunsOn),
                "at the end, event 1: it does not see the other write that is claimed",
            ),
        ],
    );
    // In the fixed prefix it may be free as well, or see what it saw.
    assert_eq!(run.answer(&[0, 1], &[], &sees(2, None, Stops)), "correct");
    assert_eq!(run.answer(&[1, 1], &[], &sees(2, Some(1), Stops)), same);
}

#[test]
fn goals_ends() {
    let run = Run::new("1 w a; 2 w a; 1 w b; 2 r c");
    let reaches = |numbers: &[u32]| Goal::Reaches(events(numbers));
    let leaves = |var, write| Goal::Leaves { var: VarId::from_index(var), write: event(write) };
    check_goals(
        &run,
        &[
            (&[1, 2], reaches(&[1, 2]), "correct"),
            (&[], reaches(&[]), "correct"),
            (&[1, 2, 3], reaches(&[1, 2]), "at the end, event 1: its thread ran on after it"),
            (
                &[1],
                reaches(&[1, 2]),
                "at the end, event 2: it did not run, or not in the order claimed",
            ),
            (&[1, 2], reaches(&[1]), "at the end, event 2: it ran, though it should not have"),
            (
                &[1, 2],
                reaches(&[1, 1]),
                "at the end, event 1: another of the events belongs to its thread",
            ),
            (&[1, 2, 3, 4], leaves(0, 2), "correct"),
            (&[2, 4, 1, 3], leaves(0, 1), "correct"),
            (
                &[1, 2, 3, 4],
                leaves(0, 1),
                "at the end, event 1: the variable is left with the write at event 2, not with this",
            ),
            (
                &[1, 2, 3],
                leaves(0, 2),
                "at the end, event 4: it did not run, and every event should have",
            ),
            (&[1, 2, 3, 4], leaves(0, 3), "at the end, event 3: it does not write the variable"),
            (&[1, 2, 3, 4], leaves(2, 4), "at the end, event 4: it does not write the variable"),
        ],
    );
}

/// All cuts of `run`.
fn cuts(run: &Run) -> Vec<IndexVec<ThreadId, u32>> {
    let threads_count = run.threads.iter().max().map_or(0, |&last| last + 1);
    let mut cuts = vec![IndexVec::new()];
    for thread in 0..threads_count {
        let all = run.threads.iter().filter(|&&own| own == thread).count() as u32;
        let longer = |cut: IndexVec<ThreadId, u32>| {
            (0..=all).map(move |count| cut.iter().copied().chain([count]).collect())
        };
        cuts = cuts.into_iter().flat_map(longer).collect();
    }
    cuts
}

/// The reorderings of `run` that go through `cut` and on in observed order, with some goals.
fn claims(run: &Run, cut: &IndexVec<ThreadId, u32>) -> Vec<(Reordering, Goal)> {
    let mut seen: IndexVec<ThreadId, u32> = IndexVec::from_elem(0, cut.len());
    let mut rest = Vec::new();
    for (index, &thread) in run.threads.iter().enumerate() {
        let thread = ThreadId::from_index(thread as usize);
        seen[thread] += 1;
        if seen[thread] > cut[thread] {
            rest.push(EventId::from_index(index));
        }
    }
    let reads = (0..run.codes.len()).filter(|&at| run.codes[at].kind() == OpKind::Read);
    let free = reads.map(EventId::from_index).collect();
    let any = Goal::Order { chain: Vec::new(), absent: Vec::new(), free, after: After::RunsOn };
    let with = |schedule: Vec<EventId>, goal| (Reordering { base: cut.clone(), schedule }, goal);
    vec![
        with(Vec::new(), Goal::Enabled(rest.first().copied().into_iter().collect())),
        with(rest.clone(), nothing()),
        with(rest.into_iter().rev().collect(), any.clone()),
        with(Vec::new(), any),
    ]
}

const RUNS: [&str; 8] = [
    "1 w a; 2 r a; 1 w a; 2 r? a; 3 w a; 1 arw a; 2 w b; 3 r b",
    "1 acq a; 1 acq a; 1 rel a; 2 w a; 1 rel a; 2 acq a; 2 rel a; 3 acq a; 3 r a",
    "1 racq a; 2 racq a; 1 racq a; 2 rrel a; 1 rrel a; 1 rrel a; 3 acq a; 3 rel a; 2 acq a",
    "1 fork 2; 2 w a; 3 r? b; 2 r a; 1 join 2; 3 r a",
    "1 acq a; 1 rel a; 1 wait a; 2 notify a; 1 wake a; 1 acq a; 2 notify a; 3 wait a; 2 notify a; 3 timeout a",
    "1 wait a; 2 wait a; 3 notifyall a; 2 wake a; 1 wake a; 3 notify a; 1 wait a; 1 timeout a",
    "1 arrive a; 2 arrive a; 1 depart a; 3 arrive a; 2 depart a; 1 arrive a; 3 depart a",
    "1 post a; 2 take a; 3 take a; 1 post a; 2 post a; 1 alloc a; 2 take a; 3 free a",
];

#[test]
fn what_is_kept_between_reorderings_changes_nothing() {
    let (mut accepted, mut refused) = (0, 0);
    for text in RUNS {
        let run = Run { starts: vec![Some(1)], parties: vec![Some(2)], ..Run::new(text) };
        let claims: Vec<_> = cuts(&run).iter().flat_map(|cut| claims(&run, cut)).collect();
        let fresh: Vec<Result<Certificate, Refusal>> =
            claims.iter().map(|(run_of, goal)| run.checker().check(run_of, goal)).collect();
        let checker = run.checker();
        // Each is asked after those that come a few places before it, and after itself.
        for stride in [1, 3, 7, 50, 111] {
            for at in 0..claims.len() {
                let at = at * stride % claims.len();
                let (reordering, goal) = &claims[at];
                assert_eq!(
                    checker.check(reordering, goal),
                    fresh[at],
                    "{text}: {reordering:?} {goal:?}"
                );
            }
        }
        accepted += fresh.iter().filter(|answer| answer.is_ok()).count();
        refused += fresh.iter().filter(|answer| answer.is_err()).count();
    }
    assert!(accepted > 500 && refused > 500, "{accepted} {refused}");
}

#[test]
fn a_lock_is_released_by_a_thread_that_holds_it() {
    let run = Run::new("1 acq a; 1 rel a; 2 rel a; 1 racq b; 1 rel b");
    let not_held = |step: usize, event: usize| {
        format!("step {step}, event {event}: its thread does not hold the lock")
    };
    assert_eq!(run.answer(&[], &[1, 2], &nothing()), "correct");
    assert_eq!(run.answer(&[], &[3], &nothing()), not_held(1, 3));
    // Held in the other mode.
    assert_eq!(run.answer(&[], &[1, 2, 4, 5], &nothing()), not_held(4, 5));
}
