//! A plan that is written reads back, and other words are refused or do no harm.

use proptest::prelude::*;

use super::*;

const THREADS: [Thread; 3] = [
    Thread { parent: 0, child: 0 },
    Thread { parent: 0, child: 0 },
    Thread { parent: 1, child: 4 },
];

fn example() -> Vec<u64> {
    let waypoint = |thread, code, occurrence| Waypoint { thread, code, occurrence };
    let module = |start, length| Module { start, length };
    Plan {
        threads: &THREADS,
        modules: &[module(0, 9), module(9, 0), module(9, 9)],
        codes: &[Code { module: 0, offset: 0x1234 }, Code { module: 2, offset: u64::MAX }],
        steps: &[waypoint(0, 0, 0), waypoint(2, 1, u32::MAX.into())],
        goal_kind: GoalKind::Together,
        goals: &[waypoint(0, 1, 3), waypoint(1, 0, 9)],
        pairs: &[Pair { first: 0, second: 1 }],
        paths: b"/bin/bank/lib/x.so",
    }
    .words()
}

/// Asks everything that can be asked of a plan.
fn exercise(plan: &Plan<'_>) {
    let is_thread = |entry: u32| (entry as usize) < plan.threads.len();
    let is_code = |code: u32| (code as usize) < plan.codes.len();
    for (place, thread) in plan.threads.iter().enumerate() {
        assert!(place == 0 || (thread.parent as usize) < place);
    }
    for module in plan.modules {
        assert_eq!(plan.path(*module).len(), module.length as usize);
    }
    for code in plan.codes {
        assert!((code.module as usize) < plan.modules.len());
    }
    for waypoint in plan.steps.iter().chain(plan.goals) {
        assert!(is_thread(waypoint.thread) && is_code(waypoint.code));
    }
    let pairs_of = if plan.goal_kind == GoalKind::Together { plan.goals } else { plan.steps };
    for pair in plan.pairs {
        assert!((pair.first as usize) < pairs_of.len() && (pair.second as usize) < pairs_of.len());
    }
}

#[test]
fn what_is_written_reads_back() {
    let words = example();
    let plan = Plan::new(&words).unwrap();
    exercise(&plan);
    assert_eq!(plan.threads, THREADS);
    let paths: Vec<&[u8]> = plan.modules.iter().map(|&module| plan.path(module)).collect();
    assert_eq!(paths, [&b"/bin/bank"[..], b"", b"/lib/x.so"]);
    assert_eq!(plan.codes[1], Code { module: 2, offset: u64::MAX });
    assert_eq!(plan.steps[1], Waypoint { thread: 2, code: 1, occurrence: u32::MAX.into() });
    assert_eq!(plan.goal_kind, GoalKind::Together);
    assert_eq!(plan.goals[0], Waypoint { thread: 0, code: 1, occurrence: 3 });
    assert_eq!(plan.pairs, [Pair { first: 0, second: 1 }]);
    assert_eq!(plan.words(), words);
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
    let plan = Plan {
        threads: &[],
        modules: &[],
        codes: &[],
        steps: &[],
        goal_kind: GoalKind::Passed,
        goals: &[],
        pairs: &[],
        paths: &[],
    };
    assert_eq!(Plan::new(&plan.words()).err(), Some(Invalid::Range));
    assert!(Plan::new(&Plan { threads: &THREADS[..1], ..plan }.words()).is_ok());
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
