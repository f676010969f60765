//! Words as plans.

use reweave_runtime::plan::{MAGIC, Plan, Thread};

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

/// What is a plan names only what is there, and says the same when it is written again.
fn check_words(words: &[u64]) {
    let Ok(plan) = Plan::new(words) else { return };
    assert_eq!(plan.threads.first(), Some(&Thread::default()));
    for (place, thread) in plan.threads.iter().enumerate().skip(1) {
        assert!((thread.parent as usize) < place);
        let entry = plan.entry_of(thread.parent, thread.child).expect("the plan speaks of it");
        assert_eq!(plan.threads[entry as usize], *thread);
    }
    for module in plan.modules {
        assert_eq!(plan.path(*module).len(), module.length as usize);
    }
    assert!(plan.codes.iter().all(|code| (code.module as usize) < plan.modules.len()));
    for waypoint in plan.steps.iter().chain(plan.goals) {
        assert!((waypoint.thread as usize) < plan.threads.len());
        assert!((waypoint.code as usize) < plan.codes.len());
    }
    let again = plan.words();
    let again = Plan::new(&again).expect("what a plan says makes a plan");
    assert_eq!(format!("{again:?}"), format!("{plan:?}"));
}
