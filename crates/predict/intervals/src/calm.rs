//! Calm schedules: the same happening with fewer switches.
//!
//! What a solver finds jumps between threads for no reason. Steps that do not depend on each other
//! can be exchanged, and what the last step does not depend on can be left out; then each thread is
//! let go on as long as it does not depend on what another has still to do. Every value stays as it
//! was.
//!
//! Linear in the steps, the dependences between neighbours in the order, and the threads at each
//! switch.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{LockId, ThreadId, VarId};

use crate::ctp::{Action, Ctp, StepId};

/// `order` without what its last step does not depend on, and with few switches.
#[must_use]
pub fn calm(ctp: &Ctp, order: &[StepId]) -> Vec<StepId> {
    let before = dependences(ctp, order);
    let mut is_needed = vec![false; order.len()];
    if let Some(last) = is_needed.last_mut() {
        *last = true;
    }
    for place in (0..order.len()).rev() {
        if is_needed[place] {
            for &earlier in &before[place] {
                is_needed[earlier] = true;
            }
        }
    }
    let mut left: IndexVec<ThreadId, Vec<usize>> =
        IndexVec::from_elem(Vec::new(), ctp.threads.len());
    for place in (0..order.len()).rev().filter(|&place| is_needed[place]) {
        left[ctp.steps[order[place]].thread].push(place);
    }
    let mut is_done = vec![false; order.len()];
    let mut calm = Vec::new();
    // The first step that is left is always ready, so some thread can go on.
    while let Some(mut thread) = first(&left) {
        // The thread whose turn was last goes on if it can.
        if let Some(&last) = calm.last()
            && let Some(&next) = left[ctp.steps[last].thread].last()
            && before[next].iter().all(|&earlier| is_done[earlier])
        {
            thread = ctp.steps[last].thread;
        }
        while let Some(&place) = left[thread].last()
            && before[place].iter().all(|&earlier| is_done[earlier])
        {
            is_done[place] = true;
            calm.push(order[place]);
            left[thread].pop();
        }
    }
    calm
}

/// The thread with the first step that is left.
fn first(left: &IndexVec<ThreadId, Vec<usize>>) -> Option<ThreadId> {
    let next = left.entries().filter_map(|(thread, places)| Some((*places.last()?, thread)));
    next.min().map(|(_, thread)| thread)
}

/// For each place of `order` earlier places that it depends on, which depend on all others that it
/// does.
fn dependences(ctp: &Ctp, order: &[StepId]) -> Vec<Vec<usize>> {
    let mut last_of: FxHashMap<ThreadId, usize> = FxHashMap::default();
    let mut writes: FxHashMap<VarId, usize> = FxHashMap::default();
    let mut reads: FxHashMap<VarId, Vec<usize>> = FxHashMap::default();
    let mut locks: FxHashMap<LockId, usize> = FxHashMap::default();
    let mut forks: FxHashMap<ThreadId, usize> = FxHashMap::default();
    let mut all = Vec::with_capacity(order.len());
    for (place, &id) in order.iter().enumerate() {
        let step = &ctp.steps[id];
        let own = last_of.insert(step.thread, place);
        let mut before: Vec<usize> = own.into_iter().collect();
        if own.is_none() {
            before.extend(forks.get(&step.thread));
        }
        match step.action {
            Action::Local => {}
            Action::Read(var) => {
                before.extend(writes.get(&var));
                reads.entry(var).or_default().push(place);
            }
            Action::Write(var) | Action::Update(var) => {
                before.extend(writes.insert(var, place));
                before.append(reads.entry(var).or_default());
            }
            Action::Acquire(lock) | Action::Release(lock) => {
                before.extend(locks.insert(lock, place));
            }
            Action::Fork(child) => _ = forks.insert(child, place),
            Action::Join(child) => before.extend(last_of.get(&child)),
        }
        all.push(before);
    }
    all
}
