//! The definition of threads that can get stuck: after some correct reordering, in which wakes of theirs may be
//! lost, each of them waits, and all others have run to their ends or were never started. For small
//! traces.

use std::collections::BTreeSet;

use reweave_base::Id;
use reweave_trace::{ConditionOp, EventId, Goal, Op, ThreadId, Trace, VarId};

use crate::reordering::Definition;

/// The sets of events at which threads of `trace` can be stuck together, but for `wakes_max` and more
/// wakes, of which no subset is tried.
#[must_use]
pub fn stuck(trace: &Trace, wakes_max: usize) -> BTreeSet<Vec<EventId>> {
    let wakes: Vec<EventId> = trace
        .events()
        .filter(|(_, event)| matches!(event.op, Op::Condition(ConditionOp::Wake, _)))
        .map(|(id, _)| id)
        .take(wakes_max)
        .collect();
    let mut found = BTreeSet::new();
    for subset in 0..1_u32 << wakes.len() {
        let lost = wakes.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1);
        let mut search = Search {
            trace,
            definition: Definition::new(trace),
            lost: lost.map(|(_, &wake)| wake).collect(),
            seen: BTreeSet::new(),
            found: &mut found,
        };
        search.extend(&mut Vec::new());
    }
    found
}

/// How far each thread is, what each variable holds, and which notifies came after which waits began.
type State = (Vec<usize>, Vec<Option<EventId>>, Vec<bool>);

struct Search<'a> {
    trace: &'a Trace,
    definition: Definition<'a>,
    lost: Vec<EventId>,
    seen: BTreeSet<State>,
    found: &'a mut BTreeSet<Vec<EventId>>,
}

impl Search<'_> {
    fn state(&self, schedule: &[EventId]) -> State {
        let trace = self.trace;
        let threads = (0..trace.names().threads.len()).map(ThreadId::from_index);
        let ran = |thread| schedule.iter().filter(|&&id| trace.event(id).thread == thread).count();
        let last = |var| {
            let writes = |id: EventId| {
                let op = trace.event(id).op;
                op.is_write() && op.var() == Some(var)
            };
            schedule.iter().copied().rfind(|&id| writes(id))
        };
        let vars = (0..trace.names().vars.len()).map(VarId::from_index);
        let place = |id: EventId| schedule.iter().position(|&other| other == id);
        let waits = trace.signals().wait_intervals().iter();
        let is_woken = waits.map(|wait| {
            let notify = wait.notify.and_then(place);
            notify.is_some() && place(wait.begin).is_some_and(|begin| Some(begin) < notify)
        });
        (threads.map(ran).collect(), vars.map(last).collect(), is_woken.collect())
    }

    /// Tries all correct reorderings that begin with `schedule`.
    fn extend(&mut self, schedule: &mut Vec<EventId>) {
        let state = self.state(schedule);
        let ran = state.0.clone();
        if !self.seen.insert(state) {
            return;
        }
        let threads = (0..self.trace.names().threads.len()).map(ThreadId::from_index);
        let next: Vec<EventId> = threads
            .filter_map(|thread| self.trace.thread_events(thread).get(ran[thread.index()]).copied())
            .collect();
        let is_started = |&event: &EventId| {
            let fork = self.trace.lifetime(self.trace.event(event).thread).fork;
            fork.is_none_or(|fork| schedule.contains(&fork))
        };
        let stops: Vec<EventId> = next.iter().copied().filter(is_started).collect();
        if self.lost.iter().all(|wake| stops.contains(wake)) {
            let goal = Goal::Stuck(stops.clone());
            if self.definition.shows(schedule, &goal) {
                self.found.insert(stops);
            }
        }
        for event in next {
            schedule.push(event);
            if self.definition.is_correct_but_for_wakes(schedule, &self.lost) {
                self.extend(schedule);
            }
            schedule.pop();
        }
    }
}
