//! Transactions by reduction: where threads must be cut so that every interleaving is equivalent
//! to one in which the pieces run without interruption.
//!
//! Each step is a mover of some kind (Lipton, *Reduction: a method of proving properties of
//! parallel programs*, 1975): it can be exchanged with the step of another thread after it, or
//! with the one before it, or with both, or neither. A piece is then a *transaction* if it has
//! first right-movers, then at most one step that moves nowhere, then left-movers, with steps
//! that move both ways anywhere. Its *pre* phase ends, and the *post* phase begins, with the first
//! step that is no right-mover.
//!
//! | step | kind |
//! | --- | --- |
//! | without access | both |
//! | access of a variable | none, or both if no conflicting one can come next to it |
//! | acquire | right, or both if nobody else can hold the lock then |
//! | release | left, or both if no operation on the lock can come next to it |
//! | join | right |
//! | fork | left |
//!
//! A step that may fail, since it has a guard or divides, starts a new transaction if it comes in
//! a post phase, and so does one that may have to wait: an acquire or join. In a pre phase they may
//! be.
//!
//! **Claim.** Of every interleaving, complete or not, every step sees the same values in some
//! interleaving that runs whole transactions one after another and at last a part of one.
//!
//! *Proof.* (1) A thread that stands in a post phase can go on to the end of its transaction, since
//! no step there waits or fails; let it. (2) A transaction that has only steps of its pre phase
//! and is not complete moves to the end of the interleaving: each of its steps is a right-mover,
//! and nothing of its own thread follows. (3) In the others, exchange neighbours until each pre
//! phase stands before the step that ends it, and each post phase after it. Every exchange gives
//! an interleaving of the same steps that see the same values: the two steps do not conflict,
//! since their threads *are* at the points before them together, and that pair was found
//! unreachable for those that do; after an acquire no other thread uses the lock, before a release
//! none does; nothing of a thread comes before its fork, and nothing of it after its join. Now
//! whole transactions come first, then parts of pre phases. (4) Those parts move to the right of
//! each other, so none sees what another does, and each may stand alone. ∎
//!
//! Where ways meet, the later phase counts: that only adds cuts. The claim needs that a step
//! reads and writes no shared variable but that of its action.

use reweave_base::{FxHashMap, Id, IndexVec, bits};
use reweave_trace::{LockId, ThreadId, VarId};

use crate::ctp::{Action, Ctp, Point, Step, StepId};
use crate::lattice::Lattice;

/// Which accesses of variables move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// Those that no conflicting one can be reached together with.
    Plain,
    /// Those that no conflicting one can come next to: also what locks keep apart.
    Reduced,
}

/// Where a step can be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// To both sides.
    Both,
    /// To the right.
    Right,
    /// To the left.
    Left,
    /// Nowhere.
    Neither,
}

/// The steps that use a variable or lock.
type Users<K> = FxHashMap<K, Vec<StepId>>;

/// How each step moves.
pub fn movers(ctp: &Ctp, lattice: &Lattice, strength: Strength) -> IndexVec<StepId, Mover> {
    let mut accesses: Users<VarId> = Users::default();
    let mut operations: Users<LockId> = Users::default();
    for (id, step) in ctp.steps.entries() {
        match step.action {
            Action::Read(var) | Action::Write(var) | Action::Update(var) => {
                accesses.entry(var).or_default().push(id);
            }
            Action::Acquire(lock) | Action::Release(lock) => {
                operations.entry(lock).or_default().push(id);
            }
            Action::Local | Action::Fork(_) | Action::Join(_) => {}
        }
    }
    let is_met = |step: &Step, others: &[StepId], at_end: bool| {
        others.iter().any(|&other| can_meet(lattice, step, &ctp.steps[other], at_end))
    };
    let is_held = |step: &Step, lock: LockId| {
        let locations = lattice.locations(step.thread);
        bits::has(locations.held(locations.of(step.from)), lock.index())
    };
    let at_end = strength == Strength::Plain;
    let mover = |step: &Step| match step.action {
        Action::Local => Mover::Both,
        Action::Read(var) | Action::Write(var) | Action::Update(var) => {
            if is_met(step, &accesses[&var], at_end) { Mover::Neither } else { Mover::Both }
        }
        Action::Acquire(lock) if may_wait(ctp, lattice, step, lock) => Mover::Right,
        Action::Acquire(_) => Mover::Both,
        // Where ways disagree whether the lock is held, nothing is known of a release.
        Action::Release(lock) if !is_held(step, lock) => Mover::Neither,
        Action::Release(lock) => {
            if is_met(step, &operations[&lock], false) {
                Mover::Left
            } else {
                Mover::Both
            }
        }
        Action::Fork(_) => Mover::Left,
        Action::Join(_) => Mover::Right,
    };
    ctp.steps.iter().map(mover).collect()
}

/// Whether two steps conflict and their threads can come to be after both, and unless `at_end`
/// suffices, can be before both too.
fn can_meet(lattice: &Lattice, step: &Step, other: &Step, at_end: bool) -> bool {
    if step.thread == other.thread || !is_conflict(step.action, other.action) {
        return false;
    }
    let (own, others) = (lattice.locations(step.thread), lattice.locations(other.thread));
    let reach = lattice.reach(step.thread, other.thread);
    reach.has(own.of(step.to), others.of(other.to))
        && (at_end || reach.has(own.of(step.from), others.of(other.from)))
}

/// Whether a thread may hold `lock` when `step` is about to take it; its own would wait forever.
fn may_wait(ctp: &Ctp, lattice: &Lattice, step: &Step, lock: LockId) -> bool {
    let location = lattice.locations(step.thread).of(step.from);
    ctp.threads.ids().any(|other| {
        let holding = lattice.locations(other).may_hold(lock);
        if other == step.thread {
            bits::has(holding, location.index())
        } else {
            bits::meet(lattice.reach(step.thread, other).row(location), holding)
        }
    })
}

/// Whether two steps of different threads cannot be exchanged for what they do.
pub fn is_conflict(left: Action, right: Action) -> bool {
    use Action::{Acquire, Read, Release, Update, Write};
    match (left, right) {
        (Read(left), Write(right) | Update(right))
        | (Write(left) | Update(left), Read(right) | Write(right) | Update(right)) => left == right,
        (Acquire(left) | Release(left), Acquire(right) | Release(right)) => left == right,
        _ => false,
    }
}

/// For each step whether it may not complete: it has a guard, or divides by what may be zero.
pub fn may_fail(ctp: &Ctp) -> IndexVec<StepId, bool> {
    let divides = ctp.terms.dividing();
    let fails = |step: &Step| {
        let terms =
            [step.store.map(|(_, term)| term), step.define.map(|(_, term)| term), step.assertion];
        step.guard.is_some() || terms.into_iter().flatten().any(|term| divides[term])
    };
    ctp.steps.iter().map(fails).collect()
}

/// For each point whether a transaction starts or ends there: entries, ends and cuts.
pub fn boundaries(ctp: &Ctp, lattice: &Lattice, strength: Strength) -> IndexVec<Point, bool> {
    let (movers, may_fail) = (movers(ctp, lattice, strength), may_fail(ctp));
    let mut is_boundary = IndexVec::from_elem(false, ctp.leaving.len());
    let mut is_post = IndexVec::from_elem(false, ctp.leaving.len());
    for thread in ctp.threads.ids() {
        cut(ctp, thread, (&movers, &may_fail), &mut is_post, &mut is_boundary);
    }
    is_boundary
}

fn cut(
    ctp: &Ctp,
    thread: ThreadId,
    (movers, may_fail): (&IndexVec<StepId, Mover>, &IndexVec<StepId, bool>),
    is_post: &mut IndexVec<Point, bool>,
    is_boundary: &mut IndexVec<Point, bool>,
) {
    let entry = ctp.threads[thread].points.start;
    for point in ctp.points_of(thread) {
        let must_cut = |id: StepId| match movers[id] {
            Mover::Both | Mover::Left => may_fail[id],
            Mover::Right | Mover::Neither => true,
        };
        if point == entry
            || ctp.is_end(point)
            || (is_post[point] && ctp.steps_from(point).any(|(id, _)| must_cut(id)))
        {
            // A new transaction starts here, in its pre phase.
            is_boundary[point] = true;
            is_post[point] = false;
        }
        // Points come in topological order, so the phase is final when its point is visited. Where
        // paths meet the later phase wins, which only adds boundaries.
        for (id, step) in ctp.steps_from(point) {
            is_post[step.to] |= match movers[id] {
                Mover::Both | Mover::Right => is_post[point],
                Mover::Left | Mover::Neither => true,
            };
        }
    }
}
