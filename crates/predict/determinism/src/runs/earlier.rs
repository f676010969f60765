//! Kinds 1 and 3, where a run that serves a challenger serves all earlier ones of its thread.

use reweave_base::{Id, IndexVec};
use reweave_trace::{EventId, Reordering, ThreadId};

use super::{Asked, Runs};
use crate::accesses::ReadsFrom;
use crate::verdicts::Verdicts;

/// What is known along a line: all before `feasible` is, nothing from `refuted` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Boundary {
    feasible: u32,
    refuted: u32,
}

impl Runs<'_, '_> {
    /// Decides the challengers of `couple`; `limits` says how many of each line nothing rules out.
    pub(super) fn decide_earlier(
        &mut self,
        couple: &ReadsFrom,
        limits: &[u32],
        verdicts: &mut Verdicts,
        mut ask: impl FnMut(&mut Self, Option<EventId>) -> Asked,
    ) {
        let mut bounds: Vec<Boundary> =
            limits.iter().map(|&limit| Boundary { feasible: 0, refuted: limit }).collect();
        let mut has_run = false;
        match ask(self, None) {
            Asked::None => return,
            Asked::Unknown => {}
            Asked::Found(run) => {
                has_run = true;
                self.mark(couple, &run, &mut bounds);
            }
        }
        for at in 0..bounds.len() {
            let writes = self.accesses.writes(&self.accesses.lines(couple.var)[at]);
            let mut open = bounds[at].refuted;
            let mut is_first = true;
            while bounds[at].feasible < open {
                let feasible = bounds[at].feasible;
                // The last one first: often all are feasible.
                let probe = if is_first { open - 1 } else { feasible + (open - feasible) / 2 };
                is_first = false;
                match ask(self, Some(writes[probe as usize])) {
                    Asked::Found(run) => {
                        has_run = true;
                        self.mark(couple, &run, &mut bounds);
                        bounds[at].feasible = bounds[at].feasible.max(probe + 1);
                    }
                    Asked::None => {
                        open = probe;
                        bounds[at].refuted = probe;
                    }
                    Asked::Unknown => open = probe,
                }
            }
        }
        verdicts.feasible.initial = has_run;
        verdicts.unknown.initial = !has_run;
        for (line, bound) in (0..).zip(bounds) {
            verdicts.feasible.push(line, 0..bound.feasible);
            verdicts.unknown.push(line, bound.feasible..bound.refuted);
        }
    }

    /// Notes that all challengers that `run` runs before the read are feasible.
    fn mark(&self, couple: &ReadsFrom, run: &Reordering, bounds: &mut [Boundary]) {
        let counts = self.counts_until(run, couple.read);
        for (line, bound) in self.accesses.lines(couple.var).iter().zip(bounds) {
            let writes = self.accesses.writes(line);
            let count = counts[line.thread];
            let known = writes.partition_point(|&write| self.trace().position(write) < count);
            bound.feasible = bound.feasible.max((known as u32).min(bound.refuted));
        }
    }

    /// How many events of each thread `run` runs before `event`, or in all if it does not run it.
    pub(super) fn counts_until(&self, run: &Reordering, event: EventId) -> IndexVec<ThreadId, u32> {
        let trace = self.trace();
        let mut counts = run.base.clone();
        let threads_count = trace.names().threads.len();
        if counts.len() < threads_count {
            counts.get_or_default(ThreadId::from_index(threads_count - 1));
        }
        for &other in run.schedule.iter().take_while(|&&other| other != event) {
            counts[trace.event(other).thread] += 1;
        }
        counts
    }
}
