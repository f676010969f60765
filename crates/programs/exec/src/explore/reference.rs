//! Every outcome by definition: any thread that can take a step may take the next.

use std::collections::BTreeSet;

use reweave_base::FxHashSet;

use super::ending;
use crate::code::{Code, Instruction};
use crate::machine::Machine;
use crate::observe::{Nobody, ThreadNumber};
use crate::outcome::{Ending, Fault, Outcome};

/// What all runs of a program do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Everything {
    /// How they end.
    pub outcomes: BTreeSet<Outcome>,
    /// What goes wrong in them.
    pub faults: BTreeSet<Fault>,
}

/// What all runs of `code` do, one interleaving after the other; none if they have more than
/// `steps_max` steps together.
#[must_use]
pub fn interleavings(code: &Code, steps_max: u64) -> Option<Everything> {
    go_through(code, steps_max, |_| true)
}

/// The same for programs whose runs need not end: what is equal to the last bit, times of
/// condition variables included, is gone through once. None if there are more than `states_max`
/// states.
#[must_use]
pub fn states(code: &Code, states_max: u64) -> Option<Everything> {
    let mut visited: FxHashSet<String> = FxHashSet::default();
    go_through(code, states_max, |machine| {
        let Machine { memory, locks, conditions, threads, faults, assumption, .. } = machine;
        let state = (memory, locks, conditions, threads, faults, assumption);
        visited.insert(format!("{state:?}"))
    })
}

fn go_through(
    code: &Code,
    steps_max: u64,
    mut is_new: impl FnMut(&Machine<'_>) -> bool,
) -> Option<Everything> {
    let mut everything = Everything::default();
    let mut open = vec![Machine::new(code, false, &mut Nobody)];
    let mut steps_count = 0;
    while let Some(machine) = open.pop() {
        if !is_new(&machine) {
            continue;
        }
        steps_count += 1;
        if steps_count > steps_max {
            return None;
        }
        everything.faults.extend(machine.faults.iter().cloned());
        match ending(&machine) {
            Ok(enabled) => open.extend(enabled.into_iter().map(|thread| {
                let mut next = machine.clone();
                next.step(thread, &mut Nobody);
                next
            })),
            Err(ending) => {
                let (memory, faults) = (&machine.memory, &machine.faults);
                everything.outcomes.insert(Outcome::new(code, memory, ending, faults));
            }
        }
    }
    Some(everything)
}

/// What all sequential runs of `code` do: those in which a thread begins, or takes a step, only if no
/// other that was started alongside it, or alongside one it descends from, has begun and not ended; and
/// in which an `if (*)` may be left out. Deadlocks come without who waits, since who does not run
/// may or may not. None if there are more than `states_max` states.
#[must_use]
pub fn sequential_states(code: &Code, states_max: u64) -> Option<Everything> {
    let mut everything = Everything::default();
    let mut visited: FxHashSet<String> = FxHashSet::default();
    let mut open = vec![(Machine::new(code, true, &mut Nobody), Vec::<ThreadNumber>::new())];
    while let Some((machine, begun)) = open.pop() {
        let Machine { memory, locks, conditions, threads, faults, assumption, .. } = &machine;
        let state = (memory, locks, conditions, threads, faults, assumption, &begun);
        if !visited.insert(format!("{state:?}")) {
            continue;
        }
        if visited.len() as u64 > states_max {
            return None;
        }
        everything.faults.extend(faults.iter().cloned());
        let steps = sequential_steps(&machine, &begun);
        if steps.is_empty() {
            let ending = match ending(&machine) {
                Err(Ending::Deadlock(_)) | Ok(_) => Ending::Deadlock(Vec::new()),
                Err(ending) => ending,
            };
            everything.outcomes.insert(Outcome::new(code, memory, ending, faults));
        }
        for (thread, runs) in steps {
            let (mut next, mut begun) = (machine.clone(), begun.clone());
            match runs {
                _ if !begun.contains(&thread) => {
                    begun.push(thread);
                    begun.sort_unstable();
                }
                Some(runs) => next.choose(thread, runs, &mut Nobody),
                None => {
                    next.step(thread, &mut Nobody);
                }
            }
            open.push((next, begun));
        }
    }
    Some(everything)
}

/// The threads that may begin or take a step in a sequential run, and what they choose, if they do.
fn sequential_steps(
    machine: &Machine<'_>,
    begun: &[ThreadNumber],
) -> Vec<(ThreadNumber, Option<bool>)> {
    let parent = |thread: ThreadNumber| machine.threads[thread as usize].parent;
    let is_running = |thread: ThreadNumber| !machine.threads[thread as usize].has_ended;
    let is_alone = |thread: ThreadNumber| {
        let mut others = begun.iter().filter(|&&other| is_running(other) && other != thread);
        !others.any(|&other| parent(other) == parent(thread))
    };
    let mut steps = Vec::new();
    if machine.assumption.is_some() {
        return steps;
    }
    for thread in (0..machine.threads.len() as ThreadNumber).filter(|&thread| is_running(thread)) {
        let mut lineage = std::iter::successors(Some(thread), |&thread| parent(thread));
        if !lineage.all(is_alone) {
            continue;
        }
        if !begun.contains(&thread) {
            // Its parent first starts all that are to run alongside it.
            let has_started_all = parent(thread).is_none_or(|parent| {
                !is_running(parent) || matches!(machine.next(parent), Instruction::JoinChild { .. })
            });
            steps.extend(has_started_all.then_some((thread, None)));
            continue;
        }
        if machine.blocked_on(thread).is_some() {
            continue;
        }
        match machine.next(thread) {
            Instruction::Optional { .. } => {
                steps.extend([(thread, Some(false)), (thread, Some(true))]);
            }
            _ => steps.push((thread, None)),
        }
    }
    steps
}
