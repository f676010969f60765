//! All interleavings, one step at a time.

use reweave_base::{FxHashSet, Id, IndexVec};
use reweave_intervals::ctp::{Action, Ctp, Point, StepId};
use reweave_intervals::symbolic::{StepRanges, Unit};
use reweave_intervals::terms::{Term, TermId};
use reweave_trace::ThreadId;

/// What steps do in some interleaving.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) ranges: StepRanges,
    pub(crate) fails: IndexVec<StepId, bool>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    points: Vec<usize>,
    values: Vec<i64>,
    holders: Vec<Option<usize>>,
    started: Vec<bool>,
    /// Threads that stopped inside a unit.
    stopped: Vec<bool>,
    /// The thread inside a unit, the unit, and whether the last step was asked about.
    inside: Option<(usize, usize, bool)>,
}

fn divides(ctp: &Ctp, term: TermId) -> bool {
    match ctp.terms.term(term) {
        Term::Constant(_) | Term::Slot(_) => false,
        Term::Unary(_, operand) => divides(ctp, operand),
        Term::Binary(operator, left, right) => {
            let safe = matches!(ctp.terms.term(right), Term::Constant(number) if number != 0);
            operator.is_division() && !safe || divides(ctp, left) || divides(ctp, right)
        }
    }
}

/// Whether a thread may stop inside a unit at `point`.
fn may_stop(ctp: &Ctp, point: Point) -> bool {
    let leaving: Vec<_> = ctp.steps_from(point).collect();
    let [(_, step)] = leaving[..] else { return true };
    let assigned = step.store.into_iter().chain(step.define).map(|(_, term)| term);
    matches!(step.action, Action::Acquire(_) | Action::Join(_))
        || step.guard.is_some()
        || step.assertion.into_iter().chain(assigned).any(|term| divides(ctp, term))
}

/// What happens in all interleavings in which `units` are not interrupted; none if there are too
/// many states. Threads may also stop behind `asked`.
pub(crate) fn explore(
    ctp: &Ctp,
    units: &[Unit],
    asked: &[StepId],
    states_max: usize,
) -> Option<Truth> {
    let steps_count = ctp.steps.len();
    let mut truth = Truth {
        ranges: StepRanges {
            reached: IndexVec::from_elem(false, steps_count),
            stored: IndexVec::from_elem(None, steps_count),
            defined: IndexVec::from_elem(None, steps_count),
        },
        fails: IndexVec::from_elem(false, steps_count),
    };
    let forked = |child: usize| {
        let is_fork = |action| action == Action::Fork(ThreadId::from_index(child));
        let thread = ThreadId::from_index(child);
        ctp.threads[thread].parent.is_some() || ctp.steps.iter().any(|step| is_fork(step.action))
    };
    let threads_count = ctp.threads.len();
    let start = State {
        points: ctp.threads.iter().map(|thread| thread.points.start.index()).collect(),
        values: ctp.initial.iter().copied().collect(),
        holders: vec![None; ctp.names.locks.len()],
        started: (0..threads_count).map(|thread| !forked(thread)).collect(),
        stopped: vec![false; threads_count],
        inside: None,
    };
    let mut seen = FxHashSet::default();
    let mut open = vec![start.clone()];
    seen.insert(start);
    while let Some(state) = open.pop() {
        if seen.len() > states_max {
            return None;
        }
        for next in successors(ctp, units, asked, &state, &mut truth) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    Some(truth)
}

fn successors(
    ctp: &Ctp,
    units: &[Unit],
    asked: &[StepId],
    state: &State,
    truth: &mut Truth,
) -> Vec<State> {
    let mut found = Vec::new();
    if let Some((thread, _, is_asked)) = state.inside
        && (is_asked || may_stop(ctp, Point::from_index(state.points[thread])))
    {
        let mut next = state.clone();
        next.stopped[thread] = true;
        next.inside = None;
        found.push(next);
    }
    for thread in 0..ctp.threads.len() {
        if state.stopped[thread] || !state.started[thread] {
            continue;
        }
        let point = Point::from_index(state.points[thread]);
        let unit = match state.inside {
            Some((inside, unit, _)) if inside == thread => Some(unit),
            Some(_) => None,
            None => units.iter().position(|unit| unit.from == point),
        };
        let Some(unit) = unit else { continue };
        for (step, _) in ctp.steps_from(point) {
            if !units[unit].steps.contains(&step) {
                continue;
            }
            if let Some(mut next) = take(ctp, state, step, truth) {
                let to = ctp.steps[step].to;
                let goes_on = ctp.steps_from(to).any(|(step, _)| units[unit].steps.contains(&step));
                next.inside = goes_on.then(|| (thread, unit, asked.contains(&step)));
                found.push(next);
            }
        }
    }
    found
}

fn take(ctp: &Ctp, state: &State, id: StepId, truth: &mut Truth) -> Option<State> {
    let step = &ctp.steps[id];
    let thread = step.thread.index();
    let value = |term: TermId| ctp.terms.evaluate(term, &|slot| state.values[slot.index()]);
    let mut next = state.clone();
    match step.action {
        Action::Acquire(lock) if state.holders[lock.index()].is_some() => return None,
        Action::Acquire(lock) => next.holders[lock.index()] = Some(thread),
        Action::Release(lock) if state.holders[lock.index()] == Some(thread) => {
            next.holders[lock.index()] = None;
        }
        Action::Fork(child) => next.started[child.index()] = true,
        Action::Join(child) => {
            let at = Point::from_index(state.points[child.index()]);
            if !state.started[child.index()] || ctp.steps_from(at).next().is_some() {
                return None;
            }
        }
        _ => {}
    }
    if let Some(guard) = step.guard
        && value(guard)? == 0
    {
        return None;
    }
    let holds = match step.assertion {
        Some(assertion) => value(assertion)? != 0,
        None => true,
    };
    let stored = match step.store {
        Some((slot, term)) => Some((slot, value(term)?)),
        None => None,
    };
    let defined = match step.define {
        Some((slot, term)) => Some((slot, value(term)?)),
        None => None,
    };
    truth.ranges.reached[id] = true;
    truth.fails[id] |= !holds;
    for (assigned, range) in
        [(stored, &mut truth.ranges.stored[id]), (defined, &mut truth.ranges.defined[id])]
    {
        if let Some((slot, value)) = assigned {
            next.values[slot.index()] = value;
            let (low, high) = range.unwrap_or((value, value));
            *range = Some((low.min(value), high.max(value)));
        }
    }
    next.points[thread] = step.to.index();
    Some(next)
}
