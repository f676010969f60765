//! Random traces in which most accesses are guarded by locks.
//!
//! There a read is often inside a section that must end before its writer may go on, which is what
//! tells the modes *prefix* and *strict* apart; in traces whose threads do anything at all, it
//! hardly ever is.

use std::collections::VecDeque;

use proptest::prelude::*;
use proptest::sample::Index;
use reweave_testkit::Drawn;

/// How many threads there are.
const THREADS: usize = 3;
/// The operations inside a section, reads more often than others.
const ACCESSES: [&str; 6] = ["r(x)", "w(x)", "r(y)", "w(y)", "r(x)", "arw(x)"];
/// The locks of a section, in the one order in which they are taken.
const GUARDS: [&[&str]; 5] = [&["l"], &["m"], &["l", "m"], &["l"], &[]];

/// Sections: of which thread, under which locks, with which accesses; as numbers of the above.
type Section = (usize, usize, Vec<usize>);

/// Traces of guarded accesses, some of which end before their last sections do.
pub(crate) fn traces(sections_max: usize) -> impl Strategy<Value = Drawn> {
    let accesses = proptest::collection::vec(0..ACCESSES.len(), 1..=2);
    let section = (0..THREADS, 0..GUARDS.len(), accesses);
    let sections = proptest::collection::vec(section, 1..=sections_max);
    let turns = proptest::collection::vec(any::<Index>(), 0..=8 * sections_max);
    (sections, turns).prop_map(|(sections, turns)| Drawn(run(&sections, &turns)))
}

/// The trace of threads that do `sections`, each its own in order, one event a turn.
fn run(sections: &[Section], turns: &[Index]) -> reweave_trace::Trace {
    let mut left: [VecDeque<(&str, &str)>; THREADS] = Default::default();
    for (thread, guard, accesses) in sections {
        let guards = GUARDS[*guard].iter();
        left[*thread].extend(guards.clone().map(|lock| ("acq", *lock)));
        left[*thread].extend(accesses.iter().map(|&access| ("", ACCESSES[access])));
        left[*thread].extend(guards.rev().map(|lock| ("rel", *lock)));
    }
    let mut held: Vec<&str> = Vec::new();
    let mut text = String::new();
    for turn in turns {
        let able = (0..THREADS).filter(|&thread| {
            let next = left[thread].front();
            next.is_some_and(|&(word, lock)| word != "acq" || !held.contains(&lock))
        });
        // Locks are taken in one order, so somebody is able until all are done.
        let able: Vec<usize> = able.collect();
        if able.is_empty() {
            break;
        }
        let thread = *turn.get(&able);
        let Some((word, what)) = left[thread].pop_front() else { break };
        text += &match word {
            "" => format!("t{thread}|{what}|0\n"),
            _ => format!("t{thread}|{word}({what})|0\n"),
        };
        match word {
            "acq" => held.push(what),
            "rel" => held.retain(|lock| *lock != what),
            _ => {}
        }
    }
    reweave_testkit::std(&text)
}
