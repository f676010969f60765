//! Words as plans.

use reweave_runtime::plan::{Code, MAGIC, Pair, Parts, Plan, Thread, Waypoint};

/// The words before the parts of a plan.
const HEAD_WORDS: usize = 6;

/// Reads `bytes` as the words of a plan, as they are and with a head that fits.
pub fn check_plan(bytes: &[u8]) {
    let (chunks, _) = bytes.as_chunks::<8>();
    let mut words: Vec<u64> = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect();
    check_words(&words);
    if let Some(first) = words.first_mut() {
        *first = MAGIC;
    }
    check_words(&words);
    check_words(&fitting(bytes));
}

/// Words whose head is of small counts and the right length, and whose halves are small too.
fn fitting(bytes: &[u8]) -> Vec<u64> {
    let Some((&[counts, more, last, kind], rest)) = bytes.split_first_chunk::<4>() else {
        return Vec::new();
    };
    let halves = |byte: u8| u64::from(byte & 7) | u64::from(byte >> 3 & 7) << 32;
    let (pairs, _) = rest.as_chunks::<2>();
    let body = pairs.iter().map(|&[low, high]| u64::from(low) | u64::from(high) << 32);
    let body: Vec<u64> = body.collect();
    let sum = |byte: u8, each: u64| u64::from(byte & 7) + each * u64::from(byte >> 3 & 7);
    let parts = sum(counts, 1) + 2 * sum(more, 1) + 2 * u64::from(last & 7);
    let parts = parts + u64::from(last >> 3 & 7);
    let paths = (body.len() as u64).saturating_sub(parts);
    let bytes_count = (8 * paths).saturating_sub(u64::from(kind >> 5));
    let mut words =
        vec![MAGIC, bytes_count, halves(counts), halves(more), halves(last), u64::from(kind & 3)];
    assert_eq!(words.len(), HEAD_WORDS);
    words.extend(body);
    words
}

/// Everything that a plan says.
#[derive(Debug, PartialEq)]
struct Said {
    threads: Vec<Thread>,
    modules: Vec<Vec<u8>>,
    codes: Vec<Code>,
    steps: Vec<Waypoint>,
    goals: Vec<Waypoint>,
    pairs: Vec<Pair>,
}

impl Said {
    fn new(plan: &Plan<'_>) -> Self {
        let path = |place| {
            let path = plan.module(place)?;
            let length = path.len();
            let path: Vec<u8> = path.collect();
            assert_eq!(path.len(), length);
            Some(path)
        };
        Self {
            threads: all(plan.threads_count(), |place| plan.thread(place)),
            modules: all(plan.modules_count(), path),
            codes: all(plan.codes_count(), |place| plan.code(place)),
            steps: all(plan.steps_count(), |place| plan.step(place)),
            goals: all(plan.goals_count(), |place| plan.goal(place)),
            pairs: all(plan.pairs_count(), |place| plan.pair(place)),
        }
    }
}

/// The `count` things that `at` gives, and no more.
fn all<T>(count: usize, at: impl Fn(usize) -> Option<T>) -> Vec<T> {
    for place in [count, count + 1, usize::MAX / 2 + 1, usize::MAX] {
        assert!(at(place).is_none(), "{place} of {count}");
    }
    (0..count).map(|place| at(place).expect("what is counted is there")).collect()
}

/// What is a plan names only what is there, and says the same when it is written again.
fn check_words(words: &[u64]) {
    let Ok(plan) = Plan::new(words) else { return };
    let said = Said::new(&plan);
    assert_eq!(said.threads.first(), Some(&Thread::default()));
    for (place, thread) in said.threads.iter().enumerate().skip(1) {
        assert!((thread.parent as usize) < place);
        let entry = plan.entry_of(thread.parent, thread.child).expect("the plan speaks of it");
        assert_eq!(said.threads[entry as usize], *thread);
    }
    assert!(said.codes.iter().all(|code| (code.module as usize) < said.modules.len()));
    for waypoint in said.steps.iter().chain(&said.goals) {
        assert!((waypoint.thread as usize) < said.threads.len());
        assert!((waypoint.code as usize) < said.codes.len());
    }
    let modules: Vec<&[u8]> = said.modules.iter().map(Vec::as_slice).collect();
    let parts = Parts {
        threads: &said.threads,
        modules: &modules,
        codes: &said.codes,
        steps: &said.steps,
        goal_kind: plan.goal_kind(),
        goals: &said.goals,
        pairs: &said.pairs,
    };
    let mut again = Vec::new();
    parts.encode(&mut |word| again.push(word));
    let again = Plan::new(&again).expect("what a plan says makes a plan");
    assert_eq!(again.goal_kind(), plan.goal_kind());
    assert_eq!(Said::new(&again), said);
}
