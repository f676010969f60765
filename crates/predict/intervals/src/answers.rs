//! Answers: what the values say about the program, site by site.
//!
//! **Question.** Which assertions hold in every interleaving, which code is never reached, what may
//! variables hold; and are the recorded paths all there are?
//!
//! **Idea.** A site can have several steps, in turns of a loop or in several threads. What may
//! happen at the site is what may happen at one of them.
//!
//! **Promise.** As that of the values: where they are sound, an assertion that holds does so in every
//! interleaving of the recorded steps, and a site that is unreachable is so. Of the program itself
//! this is true only if the answers are closed: else a thread may do what was never recorded.
//!
//! **Cost.** Linear in the steps, but for sorting.

use reweave_base::{FxHashSet, Id, IndexVec};
use reweave_trace::{SiteId, ThreadId, VarId};

use crate::ctp::{Action, Ctp, Point, Thread};
use crate::domain::Domain;
use crate::graph::Graph;
use crate::propagate::{StepValues, Values, join_option};
use crate::terms::Slot;

/// What is known of a program. All lists are in the order of sites, then of slots.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers<D> {
    /// Every site with an assertion.
    pub assertions: Vec<(SiteId, Verdict<D>)>,
    /// Sites none of whose steps can be taken.
    pub unreachable: Vec<SiteId>,
    /// What each shared variable may hold when all threads have ended, in the order of variables.
    pub finals: Vec<Final<D>>,
    /// What a site may assign to a slot.
    pub assigned: Vec<Range<D>>,
    /// What a site may read from a shared variable.
    pub read: Vec<Range<D>>,
    /// Sites of branches of which another side than the recorded ones may be taken.
    pub leaves: Vec<SiteId>,
    /// Sites that may divide by zero.
    pub faults: Vec<SiteId>,
    /// Sites where a number may leave 64 bits.
    pub overflows: Vec<SiteId>,
    /// Whether the recorded paths are all there are: no thread leaves them or ends by a fault.
    pub closed: bool,
    /// Whether a budget ran out, so that some of this may be too wide.
    pub exhausted: bool,
}

/// What becomes of an assertion.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict<D> {
    /// It holds in every interleaving.
    Holds,
    /// It may fail; if it does, its slots hold values out of these.
    MayFail {
        /// The slots that it speaks of, in order.
        ranges: Vec<(Slot, D)>,
    },
    /// No interleaving comes to it.
    NotReached,
}

/// What a slot may hold at a site.
#[derive(Clone, Debug, PartialEq)]
pub struct Range<D> {
    /// Where.
    pub site: SiteId,
    /// What is assigned or read.
    pub slot: Slot,
    /// Its values, of all steps of the site.
    pub value: D,
}

/// What a shared variable may hold at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Final<D> {
    /// Which.
    pub var: VarId,
    /// Its values; none if no interleaving comes to the end.
    pub value: Option<D>,
    /// How many bits distinguish its values.
    pub bits: u32,
}

/// What `values` say about `ctp`.
pub fn answers<D: Domain>(ctp: &Ctp, values: &Values<D>) -> Answers<D> {
    let steps = || ctp.steps.iter().zip(values.steps.iter());
    let sites = |is_at: &dyn Fn(&StepValues<D>) -> bool| {
        sorted(steps().filter(|(_, values)| is_at(values)).map(|(step, _)| step.site))
    };
    let leaves = sorted(
        values
            .leaves
            .entries()
            .filter(|(_, leaves)| **leaves)
            .flat_map(|(point, _)| ctp.steps_from(point).map(|(_, step)| step.site)),
    );
    let faults = sites(&|step| step.may_fault);
    let assigned = steps().flat_map(|(step, values)| {
        let stored = step.store.map(|(slot, _)| slot).zip(values.stored.as_ref());
        let defined = step.define.map(|(slot, _)| slot).zip(values.defined.as_ref());
        [stored, defined].into_iter().flatten().map(|(slot, value)| (step.site, slot, value))
    });
    let read = steps().filter_map(|(step, values)| {
        Some((step.site, ctp.read_slot(step)?, values.read.as_ref()?))
    });
    Answers {
        assertions: assertions(ctp, values),
        unreachable: unreachable(ctp, values),
        finals: finals(ctp, values),
        assigned: ranges(assigned),
        read: ranges(read),
        closed: leaves.is_empty() && faults.is_empty(),
        leaves,
        faults,
        overflows: sites(&|step| step.may_overflow),
        exhausted: values.exhausted,
    }
}

fn sorted(sites: impl Iterator<Item = SiteId>) -> Vec<SiteId> {
    let mut sites: Vec<SiteId> = sites.collect();
    sites.sort_unstable();
    sites.dedup();
    sites
}

/// Joins the values of each site and slot.
fn ranges<'a, D: Domain>(values: impl Iterator<Item = (SiteId, Slot, &'a D)>) -> Vec<Range<D>> {
    let mut values: Vec<(SiteId, Slot, &D)> = values.collect();
    values.sort_by_key(|&(site, slot, _)| (site, slot));
    let mut ranges: Vec<Range<D>> = Vec::new();
    for (site, slot, value) in values {
        match ranges.last_mut() {
            Some(last) if (last.site, last.slot) == (site, slot) => last.value.join(value),
            _ => ranges.push(Range { site, slot, value: value.clone() }),
        }
    }
    ranges
}

fn assertions<D: Domain>(ctp: &Ctp, values: &Values<D>) -> Vec<(SiteId, Verdict<D>)> {
    let mut verdicts: Vec<(SiteId, Verdict<D>)> = Vec::new();
    for (step, values) in ctp.steps.iter().zip(values.steps.iter()) {
        if step.assertion.is_none() {
            continue;
        }
        // One that is reached but never computed divides by zero each time: a fault, no failure.
        let verdict = match &values.asserted {
            _ if !values.reached => Verdict::NotReached,
            Some(asserted) => match &asserted.failing {
                Some(ranges) => Verdict::MayFail { ranges: ranges.clone() },
                None => Verdict::Holds,
            },
            None => Verdict::Holds,
        };
        verdicts.push((step.site, verdict));
    }
    verdicts.sort_by_key(|(site, _)| *site);
    verdicts.dedup_by(|(next, verdict), (site, kept)| {
        let is_same = next == site;
        if is_same {
            join_verdict(kept, verdict);
        }
        is_same
    });
    verdicts
}

/// Makes `kept` the verdict on both.
fn join_verdict<D: Domain>(kept: &mut Verdict<D>, other: &Verdict<D>) {
    match (&mut *kept, other) {
        (_, Verdict::NotReached) | (Verdict::Holds | Verdict::MayFail { .. }, Verdict::Holds) => {}
        (Verdict::MayFail { ranges }, Verdict::MayFail { ranges: others }) => {
            for (slot, value) in others {
                match ranges.binary_search_by_key(slot, |(slot, _)| *slot) {
                    Ok(found) => ranges[found].1.join(value),
                    // Another thread's step speaks of that thread's locals.
                    Err(place) => ranges.insert(place, (*slot, value.clone())),
                }
            }
        }
        (Verdict::NotReached | Verdict::Holds, other) => *kept = other.clone(),
    }
}

fn unreachable<D: Domain>(ctp: &Ctp, values: &Values<D>) -> Vec<SiteId> {
    let mut is_reached: IndexVec<SiteId, Option<bool>> = IndexVec::new();
    for (step, values) in ctp.steps.iter().zip(values.steps.iter()) {
        let reached = is_reached.get_or_default(step.site);
        *reached = Some(reached.unwrap_or(false) || values.reached);
    }
    let sites = is_reached.entries().filter(|(_, reached)| **reached == Some(false));
    sites.map(|(site, _)| site).collect()
}

fn finals<D: Domain>(ctp: &Ctp, values: &Values<D>) -> Vec<Final<D>> {
    let shared = (0..ctp.shared_count()).map(VarId::from_index);
    let last = last_values(ctp, values);
    let value = |var: VarId| {
        let slot = ctp.shared(var);
        let ended = values.final_values.as_ref().map(|row| &row[slot]);
        let value = ended.zip(last[slot].as_ref()).and_then(|(ended, last)| ended.meet(last));
        let bits = value.as_ref().map_or(0, bits);
        Final { var, value, bits }
    };
    shared.map(value).collect()
}

// Which stores to a variable can be the last one.
//
// In a run in which all threads come to their ends, what a variable holds at last was stored by the
// last store to it of some thread, or by nobody if no thread need store to it. That is often less
// than what it can hold whenever a thread ends.

/// What a thread does on every path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CertainAction {
    Stores(Slot),
    Forks(ThreadId),
}

/// For each shared variable what it may hold when every thread has ended; none if it is never
/// known to.
fn last_values<D: Domain>(ctp: &Ctp, values: &Values<D>) -> IndexVec<Slot, Option<D>> {
    let mut last: IndexVec<Slot, Option<D>> = IndexVec::from_elem(None, ctp.shared_count());
    let certain: IndexVec<ThreadId, FxHashSet<CertainAction>> =
        ctp.threads.iter().map(|thread| walk(ctp, thread, values, &mut last)).collect();
    let runs = |thread: ThreadId| surely_runs(ctp, &certain, thread);
    for slot in last.ids().collect::<Vec<_>>() {
        let stores = |(thread, certain): (ThreadId, &FxHashSet<CertainAction>)| {
            certain.contains(&CertainAction::Stores(slot)) && runs(thread)
        };
        if !certain.entries().any(stores) {
            join_option(&mut last[slot], Some(&D::constant(ctp.initial[slot])));
        }
    }
    last
}

/// Whether `thread` is there in every run: nobody forks it, or one that is there does on every path.
fn surely_runs(
    ctp: &Ctp,
    certain: &IndexVec<ThreadId, FxHashSet<CertainAction>>,
    thread: ThreadId,
) -> bool {
    let mut thread = thread;
    // Ancestors are fewer than threads.
    for _ in 0..ctp.threads.len() {
        let Some(parent) = ctp.threads[thread].parent else { return true };
        if !certain[parent].contains(&CertainAction::Forks(thread)) {
            return false;
        }
        thread = parent;
    }
    false
}

/// Goes through `thread` from its ends, joins what its last stores store to `last`, and gives what it
/// does on every path.
fn walk<D: Domain>(
    ctp: &Ctp,
    thread: &Thread,
    values: &Values<D>,
    last: &mut IndexVec<Slot, Option<D>>,
) -> FxHashSet<CertainAction> {
    let points = thread.points.start.index()..thread.points.end.index();
    // How many steps that are not looked at yet lead to a point: what is stored from there on can be
    // moved to the last of them.
    let mut waiting = vec![0_u32; points.len()];
    for point in points.clone().map(Point::from_index) {
        for (_, step) in ctp.steps_from(point) {
            waiting[step.to.index() - points.start] += 1;
        }
    }
    let mut stored: Vec<FxHashSet<CertainAction>> = vec![FxHashSet::default(); points.len()];
    for point in points.clone().rev() {
        let mut here: Option<FxHashSet<CertainAction>> = None;
        for (id, step) in ctp.steps_from(Point::from_index(point)) {
            let to = step.to.index() - points.start;
            waiting[to] -= 1;
            let mut after = match waiting[to] {
                0 => std::mem::take(&mut stored[to]),
                _ => stored[to].clone(),
            };
            if let Some((slot, _)) = step.store
                && after.insert(CertainAction::Stores(slot))
            {
                join_option(&mut last[slot], values.steps[id].stored.as_ref());
            }
            if let Action::Fork(child) = step.action {
                after.insert(CertainAction::Forks(child));
            }
            match &mut here {
                Some(here) => here.retain(|action| after.contains(action)),
                None => here = Some(after),
            }
        }
        stored[point - points.start] = here.unwrap_or_default();
    }
    stored.into_iter().next().unwrap_or_default()
}

// How many bits the values of a program need: a measure of how much is known of them.
//
// An assignment needs as many bits as number its values. A transaction needs, besides, those of
// every shared variable where it starts, since that is where threads meet. What is never reached
// needs none. Locks are no variables.
//
// Source: M. Ganai, C. Wang, "Interval analysis for concurrent trace programs using transaction
// sequence graphs", 2010, RB_l and RB_g; a range of one value, of which the printed logarithm is
// none, needs no bit here, and a range of n values the logarithm of n, rounded up.

/// How many bits number the members of `value`, as far as bounds say: 0 for one, 64 for all.
pub fn bits<D: Domain>(value: &D) -> u32 {
    let (low, high) = value.bounds();
    u64::BITS - high.abs_diff(low).leading_zeros()
}

/// The bits of all assignments to locals (RB_l).
pub fn local_bits<D: Domain>(values: &Values<D>) -> u64 {
    let defined = values.steps.iter().filter_map(|step| step.defined.as_ref());
    defined.map(|value| u64::from(bits(value))).sum()
}

/// The bits of all assignments to shared variables, and of these where transactions start (RB_g).
pub fn global_bits<D: Domain>(ctp: &Ctp, graph: &Graph, values: &Values<D>) -> u64 {
    let stored = values.steps.iter().filter_map(|step| step.stored.as_ref());
    let starts = graph.transactions.iter().filter_map(|entry| values.at[entry.from].as_ref());
    let met = starts.flat_map(|row| row.iter().take(ctp.shared_count()));
    stored.chain(met).map(|value| u64::from(bits(value))).sum()
}
