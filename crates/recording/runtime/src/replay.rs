//! Following a plan: one thread runs until it has done what the current step says, then the next.
//!
//! Only the thread of the current step may have the token. Each thread counts how many events it
//! logged at each code address of the plan; when the count and the address are those of the step,
//! the step is done, and the token is passed on when the thread next comes by, so that what it logged
//! has happened by then. After the last step the goal's threads run one by one until each stands
//! right before its event, or waits for a lock. What became of it is written where the recorder
//! sees it; from then on the scheduler draws at random again.
//!
//! A plan that does not move for a while is given up for good. A thread that arrives later finds
//! nothing to wait for: nothing is ever confirmed by accident.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::plan::{GoalKind, Plan, Waypoint};
use crate::process::Global;
use crate::shared::{OUTCOME_WORDS, outcome};
use crate::thread::{self, Thread};
use crate::wire::{Kind, flag};
use crate::{process, scheduler, sys};

pub mod conditions;
mod objects;
mod owners;

static ON: AtomicBool = AtomicBool::new(false);
static DONE: AtomicBool = AtomicBool::new(false);
static STEP: AtomicU32 = AtomicU32::new(0);
/// How many of the goal's threads are where they should be.
static ARRIVED: AtomicU32 = AtomicU32::new(0);

static PLAN: Global<Option<Plan<'static>>> = Global(UnsafeCell::new(None));
static PLACES: Global<Places> =
    Global(UnsafeCell::new(Places { steps: core::ptr::null_mut(), goals: core::ptr::null_mut() }));

/// Whether the thread of the current step waits for something that is no event of the plan, such as
/// the end of another thread; those that the plan has nothing more to say of may run meanwhile.
static OTHERS_MAY_RUN: AtomicBool = AtomicBool::new(false);

/// Where the accesses of steps and of goals went: an address and a length each.
struct Places {
    steps: *mut [u64; 2],
    goals: *mut [u64; 2],
}

/// Reads the plan, if there is one to follow.
pub unsafe fn start(is_wanted: bool) {
    ON.store(false, Ordering::Relaxed);
    DONE.store(false, Ordering::Relaxed);
    STEP.store(0, Ordering::Relaxed);
    ARRIVED.store(0, Ordering::Relaxed);
    OTHERS_MAY_RUN.store(false, Ordering::Relaxed);
    if !is_wanted {
        return;
    }
    if open().is_none() {
        finish(outcome::UNREADABLE, &[]);
        return;
    }
    ON.store(true, Ordering::Relaxed);
    check_goal();
}

unsafe fn open() -> Option<()> {
    let plan = Plan::new(process::map_plan()?).ok()?;
    owners::start()?;
    objects::start(&plan)?;
    let places = &mut *PLACES.0.get();
    places.steps = sys::allocate((plan.steps.len() + 1) * 16)?.cast();
    places.goals = sys::allocate((plan.goals.len() + 1) * 16)?.cast();
    *PLAN.0.get() = Some(plan);
    Some(())
}

/// Whether a plan is followed, or was.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether it is known what became of the plan.
pub fn is_done() -> bool {
    DONE.load(Ordering::Relaxed)
}

unsafe fn plan() -> Option<&'static Plan<'static>> {
    (*PLAN.0.get()).as_ref().filter(|_| is_on() && !is_done())
}

/// The plan's entry for the first thread.
pub fn main_entry() -> u32 {
    if is_on() { 0 } else { u32::MAX }
}

/// The plan's entry for the thread that `parent` is about to create.
pub unsafe fn child_entry(parent: *mut Thread) -> u32 {
    child_entry_after(parent, (*parent).forks)
}

/// The plan's entry for the thread that `parent` creates, or created, after `forks` others.
pub unsafe fn child_entry_after(parent: *mut Thread, forks: u32) -> u32 {
    plan().and_then(|plan| plan.entry_of((*parent).entry, forks)).unwrap_or(u32::MAX)
}

/// Starts to count what `thread` does.
pub unsafe fn begin(thread: *mut Thread) {
    let Some(plan) = plan() else { return };
    let bytes = (plan.codes.len() * 4).max(4);
    if (*thread).occurrences.is_null() {
        match sys::allocate(bytes) {
            Some(place) => (*thread).occurrences = place.cast(),
            None => finish(outcome::UNREADABLE, &[]),
        }
    } else {
        crate::interceptors::memory::fill((*thread).occurrences as usize, 0, bytes);
    }
}

/// Code was loaded: addresses of the plan may be known now.
pub unsafe fn objects_changed() {
    if let Some(plan) = plan() {
        objects::resolve(plan);
    }
}

/// The moment that is waited for: that of the current step, or of the goal's next thread.
unsafe fn current(plan: &Plan<'_>) -> Option<Waypoint> {
    let step = STEP.load(Ordering::Relaxed) as usize;
    let arrived = ARRIVED.load(Ordering::Relaxed) as usize;
    plan.steps.get(step).or_else(|| plan.goals.get(arrived)).copied()
}

fn is_at_goal(plan: &Plan<'_>) -> bool {
    STEP.load(Ordering::Relaxed) as usize >= plan.steps.len()
}

/// Whether `thread` may have the token.
pub unsafe fn may_run(thread: *mut Thread) -> bool {
    match plan() {
        Some(plan) => current(plan).is_some_and(|waypoint| waypoint.thread == (*thread).entry),
        None => true,
    }
}

/// Whether `thread` may run although the plan waits for another: that one does not come, and the
/// plan has nothing more to say of this one.
pub unsafe fn may_run_meanwhile(thread: *mut Thread) -> bool {
    let Some(plan) = plan().filter(|_| OTHERS_MAY_RUN.load(Ordering::Relaxed)) else {
        return false;
    };
    let entry = (*thread).entry;
    let next = STEP.load(Ordering::Relaxed) as usize;
    let mut later = plan.steps.iter().skip(next).chain(plan.goals);
    !later.any(|waypoint| waypoint.thread == entry)
}

/// Says whether the thread of the current step is awaited in vain.
pub fn let_others_run(others_may_run: bool) {
    OTHERS_MAY_RUN.store(others_may_run, Ordering::Relaxed);
}

/// Whether `thread` is about to log the event of `waypoint`, at the plan's code `code`.
unsafe fn is_it(thread: *mut Thread, code: Option<u32>, waypoint: Waypoint) -> bool {
    waypoint.thread == (*thread).entry
        && code == Some(waypoint.code)
        && u64::from(*(*thread).occurrences.add(waypoint.code as usize)) == waypoint.occurrence
}

/// What `thread` is about to log may be what the goal waits for.
pub unsafe fn before(thread: *mut Thread, code: u64, place: [u64; 2], kind: Kind) {
    let Some(plan) = plan() else { return };
    if !is_at_goal(plan) || (*thread).occurrences.is_null() {
        return;
    }
    let Some(goal) = current(plan) else { return };
    if !is_it(thread, objects::number(plan, code), goal) {
        return;
    }
    match plan.goal_kind {
        GoalKind::Together => {
            let arrived = ARRIVED.load(Ordering::Relaxed) as usize;
            *(*PLACES.0.get()).goals.add(arrived) = [place[0], place[1]];
            ARRIVED.store(arrived as u32 + 1, Ordering::Relaxed);
            check_goal();
            scheduler::pass_token(thread);
        }
        GoalKind::Blocked if matches!(kind, Kind::Lock | Kind::AtomicUpdate) => {
            finish(outcome::TAKEN, &[u64::from(goal.thread), code, place[0]]);
        }
        // A lock that is no more than a word, and is taken: the thread will wait for it.
        GoalKind::Blocked if kind == Kind::AtomicFailed => {
            ((*thread).waits_for, (*thread).waits_at) = (place[0], code);
            blocked(thread);
        }
        GoalKind::Blocked | GoalKind::Passed => {}
    }
}

/// `thread` logged an event at `code`, about the bytes of `place`.
pub unsafe fn logged(thread: *mut Thread, code: u64, place: [u64; 2], kind: Kind, flags: u16) {
    owners::note(thread, place[0], kind, flags & flag::SHARED != 0);
    let Some(plan) = plan() else { return };
    let Some(number) = objects::number(plan, code) else { return };
    if (*thread).occurrences.is_null() {
        return;
    }
    let step = STEP.load(Ordering::Relaxed) as usize;
    let is_step = plan.steps.get(step).is_some_and(|&it| is_it(thread, Some(number), it));
    *(*thread).occurrences.add(number as usize) += 1;
    if is_step {
        *(*PLACES.0.get()).steps.add(step) = place;
        STEP.store(step as u32 + 1, Ordering::Relaxed);
        check_goal();
        (*thread).must_yield = !may_run(thread);
    }
}

/// `thread` found `seen` at `address` and stored `stored` by an atomic update, which may have taken
/// a lock that is no more than a word, or given one back.
pub unsafe fn updated(thread: *mut Thread, address: u64, seen: u64, stored: u64) {
    if is_on() {
        if (*thread).waits_for == address && owners::is_free(seen) {
            (*thread).waits_for = 0;
        }
        owners::note_word(thread, address, seen, stored);
    }
}

/// `thread` releases `lock` while it waits on a condition.
pub unsafe fn released(thread: *mut Thread, lock: u64) {
    if is_on() {
        owners::note(thread, lock, Kind::Unlock, false);
    }
}

/// Whether a thread other than `thread` was seen to take `lock` and not to release it.
pub unsafe fn is_held_by_another(thread: *mut Thread, lock: u64) -> bool {
    is_on() && owners::any(lock, |holder| holder != thread)
}

/// `thread` has `lock` again after it waited on a condition.
pub unsafe fn acquired(thread: *mut Thread, lock: u64) {
    if is_on() {
        owners::note(thread, lock, Kind::Lock, false);
    }
}

/// Decides what became of the plan, if all that it waits for has come.
unsafe fn check_goal() {
    let Some(plan) = plan() else { return };
    let arrived = ARRIVED.load(Ordering::Relaxed) as usize;
    if !is_at_goal(plan) {
        return;
    }
    let places = &*PLACES.0.get();
    let (reached, places) = match plan.goal_kind {
        GoalKind::Together => (arrived == plan.goals.len(), places.goals),
        GoalKind::Passed => (true, places.steps),
        GoalKind::Blocked => return,
    };
    if !reached {
        return;
    }
    let mut words = [0; OUTCOME_WORDS - 1];
    let mut count = 0;
    let mut overlap = true;
    for pair in plan.pairs {
        let first = *places.add(pair.first as usize);
        let second = *places.add(pair.second as usize);
        overlap &= first[0] < second[0] + second[1] && second[0] < first[0] + first[1];
        for word in [first[0], second[0]] {
            if count < words.len() {
                words[count] = word;
                count += 1;
            }
        }
    }
    finish(if overlap { outcome::CONFIRMED } else { outcome::NO_OVERLAP }, &words[..count]);
}

/// `thread` is about to wait for the lock that it wants.
pub unsafe fn blocked(thread: *mut Thread) {
    let Some(plan) = plan() else { return };
    if plan.goal_kind != GoalKind::Blocked || !is_at_goal(plan) {
        return;
    }
    let arrived = ARRIVED.load(Ordering::Relaxed);
    let is_next =
        plan.goals.get(arrived as usize).is_some_and(|goal| goal.thread == (*thread).entry);
    if is_next {
        ARRIVED.store(arrived + 1, Ordering::Relaxed);
    }
    let mut words = [0; OUTCOME_WORDS - 1];
    let length = words.len().min(3 * plan.goals.len());
    let is_predicted = |cycle: &[u64]| is_predicted(plan, cycle);
    if let Some(count) = owners::cycle(thread, &mut words[..length], &is_predicted) {
        finish(outcome::CONFIRMED, &words[..count]);
    }
}

/// Whether the threads of a cycle, three words each, are those of the goal.
fn is_predicted(plan: &Plan<'_>, cycle: &[u64]) -> bool {
    let mut waiting = cycle.iter().step_by(3);
    cycle.len() / 3 == plan.goals.len()
        && waiting.all(|&entry| plan.goals.iter().any(|goal| u64::from(goal.thread) == entry))
}

/// `thread` will do nothing more.
pub unsafe fn ended(thread: *mut Thread) {
    let Some(plan) = plan() else { return };
    if current(plan).is_some_and(|waypoint| waypoint.thread == (*thread).entry) {
        let step = u64::from(STEP.load(Ordering::Relaxed));
        finish(outcome::ENDED, &[step, u64::from((*thread).entry)]);
    }
}

/// The thread of the current step goes on from a wait though nobody notified it. If it only comes back to wait once
/// more, again and again, the program went another way than the plan.
pub unsafe fn went_on_unnotified() {
    const TIMES_MAX: u32 = 100;
    static LAST_STEP: AtomicU32 = AtomicU32::new(u32::MAX);
    static TIMES: AtomicU32 = AtomicU32::new(0);
    let step = STEP.load(Ordering::Relaxed);
    if LAST_STEP.swap(step, Ordering::Relaxed) != step {
        TIMES.store(0, Ordering::Relaxed);
    } else if TIMES.fetch_add(1, Ordering::Relaxed) == TIMES_MAX {
        stalled();
    }
}

/// Nothing moved for too long.
pub unsafe fn stalled() {
    let Some(plan) = plan() else { return };
    let entry = current(plan).map_or(u64::from(u32::MAX), |waypoint| u64::from(waypoint.thread));
    let (mut waits_for, mut waits_at, mut exists) = (0, 0, 0);
    thread::each(|thread| {
        if u64::from((*thread).entry) == entry {
            (waits_for, waits_at, exists) = ((*thread).waits_for, (*thread).waits_at, 1);
        }
        false
    });
    let step = u64::from(STEP.load(Ordering::Relaxed));
    finish(outcome::STALLED, &[step, entry, exists, waits_for, waits_at]);
}

/// Writes what became of the plan; only the first word of it counts.
unsafe fn finish(what: u64, words: &[u64]) {
    if DONE.swap(true, Ordering::AcqRel) {
        return;
    }
    if let Some(header) = process::header() {
        let [first, length, rest @ ..] = &header.outcome;
        for (slot, &word) in rest.iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        length.store(words.len() as u64, Ordering::Relaxed);
        first.store(what, Ordering::Release);
    }
    process::wake_recorder();
}
