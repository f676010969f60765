//! A plan that is written reads back, and other words are refused or do no harm.

use proptest::prelude::*;

use super::*;

fn words(parts: &Parts<'_>) -> Vec<u64> {
    let mut words = Vec::new();
    parts.encode(&mut |word| words.push(word));
    words
}

const THREADS: [Thread; 3] = [
    Thread { parent: 0, child: 0 },
    Thread { parent: 0, child: 0 },
    Thread { parent: 1, child: 4 },
];

fn example() -> Vec<u64> {
    let waypoint = |thread, code, occurrence| Waypoint { thread, code, occurrence };
    words(&Parts {
        threads: &THREADS,
        modules: &[b"/bin/bank", b"", b"/lib/x.so"],
        codes: &[Code { module: 0, offset: 0x1234 }, Code { module: 2, offset: u64::MAX }],
        steps: &[waypoint(0, 0, 0), waypoint(2, 1, u32::MAX)],
        goal_kind: GoalKind::Together,
        goals: &[waypoint(0, 1, 3), waypoint(1, 0, 9)],
        pairs: &[Pair { first: 0, second: 1 }],
    })
}

/// Asks everything that can be asked of a plan, and a little more.
fn exercise(plan: &Plan<'_>) {
    for place in (0..plan.threads_count() + 2).chain([usize::MAX]) {
        let thread = plan.thread(place);
        assert_eq!(thread.is_some(), place < plan.threads_count());
        assert!(thread.is_none_or(|it| place == 0 || (it.parent as usize) < place));
    }
    for place in (0..plan.modules_count() + 2).chain([usize::MAX]) {
        let path = plan.module(place);
        assert_eq!(path.is_some(), place < plan.modules_count());
        assert!(path.is_none_or(|path| path.len() == path.count()));
    }
    for place in (0..plan.codes_count() + 2).chain([usize::MAX]) {
        let code = plan.code(place);
        assert_eq!(code.is_some(), place < plan.codes_count());
        assert!(code.is_none_or(|code| (code.module as usize) < plan.modules_count()));
    }
    for place in (0..plan.steps_count() + 2).chain([usize::MAX]) {
        assert_eq!(plan.step(place).is_some(), place < plan.steps_count());
        check_waypoint(plan, plan.step(place));
    }
    for place in (0..plan.goals_count() + 2).chain([usize::MAX]) {
        assert_eq!(plan.goal(place).is_some(), place < plan.goals_count());
        check_waypoint(plan, plan.goal(place));
    }
    for place in 0..=plan.pairs_count() {
        assert_eq!(plan.pair(place).is_some(), place < plan.pairs_count());
    }
}

fn check_waypoint(plan: &Plan<'_>, waypoint: Option<Waypoint>) {
    let Some(Waypoint { thread, code, .. }) = waypoint else { return };
    assert!(plan.thread(thread as usize).is_some() && plan.code(code as usize).is_some());
}

#[test]
fn what_is_written_reads_back() {
    let words = example();
    let plan = Plan::new(&words).unwrap();
    exercise(&plan);
    assert_eq!((0..3).map(|place| plan.thread(place).unwrap()).collect::<Vec<_>>(), THREADS);
    let paths: Vec<Vec<u8>> = (0..3).map(|place| plan.module(place).unwrap().collect()).collect();
    assert_eq!(paths, [&b"/bin/bank"[..], b"", b"/lib/x.so"]);
    assert_eq!(plan.code(1), Some(Code { module: 2, offset: u64::MAX }));
    assert_eq!(plan.step(1), Some(Waypoint { thread: 2, code: 1, occurrence: u32::MAX }));
    assert_eq!(plan.goal_kind(), GoalKind::Together);
    assert_eq!(plan.goal(0), Some(Waypoint { thread: 0, code: 1, occurrence: 3 }));
    assert_eq!(plan.pair(0), Some(Pair { first: 0, second: 1 }));
}

#[test]
fn threads_are_found_by_who_created_them() {
    let words = example();
    let plan = Plan::new(&words).unwrap();
    assert_eq!(plan.entry_of(0, 0), Some(1));
    assert_eq!(plan.entry_of(1, 4), Some(2));
    assert_eq!(plan.entry_of(1, 0), None);
}

#[test]
fn a_plan_that_is_cut_off_or_longer_than_it_says_is_refused() {
    let mut words = example();
    for length in 0..words.len() {
        assert!(Plan::new(&words[..length]).is_err(), "cut at {length}");
    }
    words.push(0);
    assert_eq!(Plan::new(&words).err(), Some(Invalid::Length));
}

#[test]
fn a_plan_that_names_what_is_not_there_is_refused() {
    let words = example();
    // A thread that is its own parent; a path past the end; a module, a thread, a code address and
    // a goal that are not there; a kind of goal that does not exist; a main thread with a parent.
    let places = [
        (HEAD_WORDS + 1, 1),
        (HEAD_WORDS + 3, joined(18, 9)),
        (HEAD_WORDS + 6, 3),
        (HEAD_WORDS + 10, joined(3, 0)),
        (HEAD_WORDS + 10, joined(0, 2)),
        (HEAD_WORDS + 11, 1 << 32),
        (HEAD_WORDS + 18, joined(0, 2)),
        (5, 3),
        (HEAD_WORDS, 1),
    ];
    for (place, word) in places {
        let mut changed = words.clone();
        changed[place] = word;
        assert_eq!(Plan::new(&changed).err(), Some(Invalid::Range), "word {place}");
    }
    assert_eq!(Plan::new(&[0; 40]).err(), Some(Invalid::Magic));
}

#[test]
fn a_plan_needs_a_main_thread() {
    let parts = Parts {
        threads: &[],
        modules: &[],
        codes: &[],
        steps: &[],
        goal_kind: GoalKind::Passed,
        goals: &[],
        pairs: &[],
    };
    assert_eq!(Plan::new(&words(&parts)).err(), Some(Invalid::Range));
    assert!(Plan::new(&words(&Parts { threads: &THREADS[..1], ..parts })).is_ok());
}

proptest! {
    #[test]
    fn any_words_are_refused_or_do_no_harm(
        head in prop::collection::vec(0..4_u64, 5),
        highs in prop::collection::vec(0..4_u64, 5),
        rest in prop::collection::vec(0..5_u64, 0..40),
    ) {
        let mut words = vec![MAGIC];
        words.extend(head.iter().zip(&highs).map(|(low, high)| low | high << 32));
        words[1] = head[0];
        words[5] = head[4];
        words.extend(rest);
        if let Ok(plan) = Plan::new(&words) {
            exercise(&plan);
        }
    }

    #[test]
    fn a_plan_with_some_words_changed_is_refused_or_does_no_harm(
        changes in prop::collection::vec((0..64_usize, any::<u64>(), 0..64_u32), 1..4),
    ) {
        let mut words = example();
        for (place, word, shift) in changes {
            let place = place % words.len();
            words[place] = word >> shift;
        }
        if let Ok(plan) = Plan::new(&words) {
            exercise(&plan);
        }
    }
}
