//! Growth: the needed set in observed order, grown until no section is left open in the way.
//!
//! In observed order every read of a cut that is closed under needs sees what it saw. A section of
//! a lock that the cut leaves open is in the way of a later one of its lock, and a thread left in a
//! condition's queue is in the way of a later notify that did not wake it. Completing either, with
//! what that needs, is the only way to keep the observed order, so the grown cut is the least that
//! works: a reordering that keeps the observed order of the sections it runs, of waits and notifies,
//! and of posts and takes, exists exactly if the grown cut holds nothing that must not happen.
//!
//! Costs a look at each thread and open section each time the cut grows.

use reweave_trace::{EventId, ThreadId};

use crate::engine::{Cut, Problem, leave};

/// Grows `cut` until its events can run in observed order; false if that takes too much.
pub(crate) fn preserve(problem: &Problem<'_, '_>, cut: &mut Cut) -> bool {
    if problem.is_too_much(cut) {
        return false;
    }
    loop {
        let mut has_grown = false;
        for thread in cut.ids() {
            if cut[thread] == 0 {
                continue;
            }
            while let Some(obstacle) = in_the_way(problem, cut, thread) {
                let Some(event) = obstacle.completion else { return false };
                problem.add(event, cut);
                if problem.is_too_much(cut) {
                    return false;
                }
                has_grown = true;
            }
        }
        if !has_grown {
            return true;
        }
    }
}

/// Something that `cut` leaves open and that is in the way of a later event of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Obstacle {
    /// Where it was begun.
    pub(crate) start: EventId,
    /// What completes it, if it ever is.
    pub(crate) completion: Option<EventId>,
}

/// The first thread, and what of it is in the way of the observed order of `cut`.
pub(crate) fn obstacle(problem: &Problem<'_, '_>, cut: &Cut) -> Option<(ThreadId, Obstacle)> {
    let threads = cut.ids().filter(|&thread| cut[thread] > 0);
    let mut found = threads.filter_map(|thread| Some((thread, in_the_way(problem, cut, thread)?)));
    found.next()
}

/// What of `thread`, after its events in `cut`, is in the way.
pub(crate) fn in_the_way(
    problem: &Problem<'_, '_>,
    cut: &Cut,
    thread: ThreadId,
) -> Option<Obstacle> {
    let engine = problem.engine;
    problem.looks.update(|looks| looks + 1);
    for section in engine.open(thread, cut[thread]) {
        problem.looks.update(|looks| looks + engine.users(section.lock).len() as u64);
        let others = engine.users(section.lock).iter().filter(|user| user.thread != thread);
        let mut last =
            others.filter_map(|user| engine.last_section(user, section.mode, cut[user.thread]));
        if last.any(|other| other.acquire > section.acquire) {
            return Some(Obstacle { start: section.acquire, completion: section.release });
        }
    }
    let stay = engine.last_stay(thread, cut[thread])?;
    if leave(stay).is_some_and(|leave| engine.is_in(cut, leave)) {
        return None;
    }
    let mut later = engine.kept_from(stay).filter(|&notify| notify > stay.begin);
    let is_found = later.any(|notify| engine.is_in(cut, notify));
    is_found.then(|| Obstacle { start: stay.begin, completion: leave(stay) })
}
