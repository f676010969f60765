//! Which stores to a variable can be the last one.
//!
//! In a run in which all threads come to their ends, what a variable holds at last was stored by the
//! last store to it of some thread, or by nobody if no thread need store to it. That is often less
//! than what it can hold whenever a thread ends.

use reweave_base::{FxHashSet, Id, IndexVec};
use reweave_trace::ThreadId;

use crate::ctp::{Action, Ctp, Point, Thread};
use crate::domain::Domain;
use crate::propagate::{Values, join_option};
use crate::terms::Slot;

/// What a thread does on every way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Deed {
    Stores(Slot),
    Forks(ThreadId),
}

/// For each shared variable what it may hold when every thread has ended; none if it is never
/// known to.
pub(super) fn last_values<D: Domain>(ctp: &Ctp, values: &Values<D>) -> IndexVec<Slot, Option<D>> {
    let mut last: IndexVec<Slot, Option<D>> = IndexVec::from_elem(None, ctp.shared_count());
    let deeds: IndexVec<ThreadId, FxHashSet<Deed>> =
        ctp.threads.iter().map(|thread| walk(ctp, thread, values, &mut last)).collect();
    let runs = |thread: ThreadId| surely_runs(ctp, &deeds, thread);
    for slot in last.ids().collect::<Vec<_>>() {
        let stores = |(thread, deeds): (ThreadId, &FxHashSet<Deed>)| {
            deeds.contains(&Deed::Stores(slot)) && runs(thread)
        };
        if !deeds.entries().any(stores) {
            join_option(&mut last[slot], Some(&D::constant(ctp.initial[slot])));
        }
    }
    last
}

/// Whether `thread` is there in every run: nobody forks it, or one that is there does on every way.
fn surely_runs(ctp: &Ctp, deeds: &IndexVec<ThreadId, FxHashSet<Deed>>, thread: ThreadId) -> bool {
    let mut thread = thread;
    // Ancestors are fewer than threads.
    for _ in 0..ctp.threads.len() {
        let Some(parent) = ctp.threads[thread].parent else { return true };
        if !deeds[parent].contains(&Deed::Forks(thread)) {
            return false;
        }
        thread = parent;
    }
    false
}

/// Goes through `thread` from its ends, joins what its last stores store to `last`, and gives what it
/// does on every way.
fn walk<D: Domain>(
    ctp: &Ctp,
    thread: &Thread,
    values: &Values<D>,
    last: &mut IndexVec<Slot, Option<D>>,
) -> FxHashSet<Deed> {
    let points = thread.points.start.index()..thread.points.end.index();
    // How many steps that are not looked at yet lead to a point: what is stored from there on can be
    // moved to the last of them.
    let mut waiting = vec![0_u32; points.len()];
    for point in points.clone().map(Point::from_index) {
        for (_, step) in ctp.steps_from(point) {
            waiting[step.to.index() - points.start] += 1;
        }
    }
    let mut stored: Vec<FxHashSet<Deed>> = vec![FxHashSet::default(); points.len()];
    for point in points.clone().rev() {
        let mut here: Option<FxHashSet<Deed>> = None;
        for (id, step) in ctp.steps_from(Point::from_index(point)) {
            let to = step.to.index() - points.start;
            waiting[to] -= 1;
            let mut after = match waiting[to] {
                0 => std::mem::take(&mut stored[to]),
                _ => stored[to].clone(),
            };
            if let Some((slot, _)) = step.store
                && after.insert(Deed::Stores(slot))
            {
                join_option(&mut last[slot], values.steps[id].stored.as_ref());
            }
            if let Action::Fork(child) = step.action {
                after.insert(Deed::Forks(child));
            }
            match &mut here {
                Some(here) => here.retain(|deed| after.contains(deed)),
                None => here = Some(after),
            }
        }
        stored[point - points.start] = here.unwrap_or_default();
    }
    stored.into_iter().next().unwrap_or_default()
}
