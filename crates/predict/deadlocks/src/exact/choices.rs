//! One pattern: which choices of one acquire for each of its dependencies can be blocked together?
//!
//! *The walk* asks for reorderings that keep the observed order of the sections they run. What
//! such a reordering must run only grows from an instance to a later one of the same thread. So
//! start with the first instances; where what must run passes one of them, it does so for all
//! later choices of the others too, and the next instance takes its place. That finds the earliest
//! choice of this class, if there is any, in as many steps as there are instances.
//!
//! Then *each choice* is put to the engine, but for those where one acquire needs another: what
//! fits one acquire is a range of the other's instances, found by bisection. If tokens of a
//! semaphore are counted, needs ask too much and nothing is left out.

use reweave_base::IndexVec;
use reweave_driver::{Evaluator, Reorderings};
use reweave_reorder::{Answer, Engine, Query};
use reweave_trace::{EventId, Reordering, ThreadId, Trace};

use super::Deadlock;
use super::patterns::{Dependencies, DependencyId};

/// How many more choices are tried for the count once a pattern is proven and one is enough.
const COUNTED_MAX: u64 = 256;

/// How many steps a walk may take.
const WALK_MAX: u64 = 100_000;

/// What all patterns share.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryContext<'e, 't> {
    pub(super) engine: &'e Engine<'t>,
    pub(super) reorderings: Reorderings,
    /// Whether every choice is to be found, not only one.
    pub(super) all: bool,
}

/// A pattern, and what is known of it so far.
#[derive(Debug, Default)]
pub(super) struct PatternState<'d> {
    /// For each dependency its acquires.
    lists: Vec<&'d [EventId]>,
    is_walked: bool,
    choices: Choices,
    /// The choice that the walk found, which the choices come to again.
    walked: Option<Vec<EventId>>,
    /// How many choices were tried since the pattern was proven.
    counted: u64,
    /// What was found; only the first if one is enough.
    pub(super) found: Vec<Deadlock>,
    /// How many choices were proven, refuted, and given up.
    pub(super) proven: u64,
    pub(super) refuted: u64,
    pub(super) unknown: u64,
    /// Whether there is nothing more to try.
    pub(super) is_over: bool,
    /// Whether some choices were not tried.
    pub(super) is_partial: bool,
}

impl<'d> PatternState<'d> {
    pub(super) fn new(dependencies: &'d Dependencies, pattern: &[DependencyId]) -> Self {
        let instances = |&id: &DependencyId| dependencies.all[id].instances.as_slice();
        Self { lists: pattern.iter().map(instances).collect(), is_partial: true, ..Self::default() }
    }

    /// Goes on for about `work` steps; gives how many it took.
    pub(super) fn advance(
        &mut self,
        context: &QueryContext<'_, '_>,
        evaluator: &mut Evaluator<'_, '_>,
        work: u64,
    ) -> u64 {
        let trace = context.engine.trace();
        let mut done = 0;
        if !self.is_walked {
            self.is_walked = true;
            done += self.walk(trace, evaluator) * trace.names().threads.len() as u64;
        }
        while !self.is_over && done < work {
            done += 1 + self.lists.len() as u64;
            match self.choices.step(context, &self.lists) {
                Step::Moved => {}
                Step::Ended => (self.is_over, self.is_partial) = (true, false),
                Step::Choice => {
                    let choice = self.choices.acquires(&self.lists);
                    if self.walked.as_ref() != Some(&choice) {
                        done += self.decide(context, evaluator, choice);
                    }
                    self.counted += u64::from(self.proven > 0);
                    self.is_over = !context.all && self.counted > COUNTED_MAX;
                }
            }
        }
        done
    }

    /// Puts `cycle` to the engine; gives what that costs.
    fn decide(
        &mut self,
        context: &QueryContext<'_, '_>,
        evaluator: &mut Evaluator<'_, '_>,
        cycle: Vec<EventId>,
    ) -> u64 {
        match evaluator.answer(&Query::enabled(&cycle), context.reorderings) {
            Answer::Feasible(reordering) => self.prove(cycle, reordering, context.all),
            Answer::Infeasible(_) => self.refuted += 1,
            Answer::Unknown => self.unknown += 1,
        }
        evaluator.take_work()
    }

    fn prove(&mut self, cycle: Vec<EventId>, reordering: Reordering, all: bool) {
        self.proven += 1;
        if all || self.proven == 1 {
            self.found.push(Deadlock { cycle, reordering, count: 1 });
        }
    }

    /// Looks for the earliest choice that a reordering in the observed order of sections blocks;
    /// gives the number of steps.
    fn walk(&mut self, trace: &Trace, evaluator: &mut Evaluator<'_, '_>) -> u64 {
        let mut at = vec![0; self.lists.len()];
        let mut must: Vec<EventId> = Vec::new();
        for steps in 1..=WALK_MAX {
            let chosen = self.lists.iter().zip(&at);
            let cycle: Vec<EventId> = chosen.map(|(list, &at)| list[at]).collect();
            must.extend(cycle.iter().filter_map(|&acquire| before(trace, acquire)));
            let query = Query { must, ..Query::default() };
            let Some(reordering) = evaluator.solver().sync_preserving(&query) else { return steps };
            let ran = &reordering.base;
            let is_past =
                |&acquire: &EventId| trace.position(acquire) < ran[trace.event(acquire).thread];
            if !cycle.iter().any(is_past) {
                self.walked = Some(cycle.clone());
                self.prove(cycle, reordering, true);
                return steps;
            }
            for (at, list) in at.iter_mut().zip(&self.lists) {
                *at += list[*at..].partition_point(is_past);
                if *at == list.len() {
                    return steps;
                }
            }
            // Going on from here, what was found to run need not be found again.
            must = last_events(trace, ran).collect();
        }
        WALK_MAX
    }
}

/// The event of its thread before `acquire`.
fn before(trace: &Trace, acquire: EventId) -> Option<EventId> {
    let position = trace.position(acquire).checked_sub(1)?;
    trace.thread_events(trace.event(acquire).thread).get(position as usize).copied()
}

/// The last event of each thread that has one in `cut`.
fn last_events(trace: &Trace, cut: &IndexVec<ThreadId, u32>) -> impl Iterator<Item = EventId> {
    let counts = cut.entries().filter(|&(_, &count)| count > 0);
    counts.map(|(thread, &count)| trace.thread_events(thread)[count as usize - 1])
}

/// Goes through the choices of one acquire from each list, no acquire needing another.
#[derive(Debug, Default)]
struct Choices {
    /// For each list that has a choice, which acquire of it, and where its range ends.
    chosen: Vec<(usize, usize)>,
    is_started: bool,
}

/// What a step through the choices came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The next choice.
    Choice,
    /// Part of one.
    Moved,
    /// The end.
    Ended,
}

impl Choices {
    fn step(&mut self, context: &QueryContext<'_, '_>, lists: &[&[EventId]]) -> Step {
        if self.is_started && self.chosen.is_empty() {
            return Step::Ended;
        }
        let has_range = self.chosen.last().is_none_or(|&(at, end)| at < end);
        if has_range && self.chosen.len() < lists.len() {
            self.is_started = true;
            let range = self.range(context, lists);
            self.chosen.push(range);
        } else {
            if !has_range {
                self.chosen.pop();
            }
            // Leaves the choice made before, or the list that has run out, for what comes next.
            if let Some((at, _)) = self.chosen.last_mut() {
                *at += 1;
            }
        }
        let is_whole = self.chosen.len() == lists.len();
        let has_choice = self.chosen.last().is_some_and(|&(at, end)| at < end);
        if is_whole && has_choice { Step::Choice } else { Step::Moved }
    }

    /// Which acquires of the next list neither need one that was chosen nor are needed by one.
    fn range(&self, context: &QueryContext<'_, '_>, lists: &[&[EventId]]) -> (usize, usize) {
        let list = lists[self.chosen.len()];
        let (mut start, mut end) = (0, list.len());
        let Some(&first) = list.first() else { return (start, end) };
        let (trace, needs) = (context.engine.trace(), context.engine.mhb());
        let thread = trace.event(first).thread;
        for (&(at, _), other) in self.chosen.iter().zip(lists) {
            let other = other[at];
            let (other_thread, other_position) = (trace.event(other).thread, trace.position(other));
            let needed = needs.before(other).get(thread);
            let is_needed = |&acquire: &EventId| trace.position(acquire) < needed;
            let lets_be =
                |&acquire: &EventId| needs.before(acquire).get(other_thread) <= other_position;
            start = start.max(list.partition_point(is_needed));
            end = end.min(list.partition_point(lets_be));
        }
        (start, end.max(start))
    }

    /// The acquires that are chosen, one from each list.
    fn acquires(&self, lists: &[&[EventId]]) -> Vec<EventId> {
        lists.iter().zip(&self.chosen).map(|(list, &(at, _))| list[at]).collect()
    }
}
