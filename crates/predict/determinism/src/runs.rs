//! Modes `prefix` and `strict`, and kind 3 of `order`: is there a correct reordering with this
//! witness?
//!
//! A reordering that shows a witness of kind 2 or 3 still shows it when it is cut off right after
//! the read. So there the read comes last, its thread stops, and `prefix` and `strict` are the same:
//!
//! - kind 3: the challenger happens, the writer does not, and the read is next;
//! - kind 2: the writer happens, then the challenger, and the read is next.
//!
//! Of kind 1 in `strict` nothing happens in the read's thread after the read, so read and writer
//! can both wait until the end: the challenger happens, and the two are next at once. In `prefix`
//! the thread may go on, most often to release a lock that the writer takes; that is asked in full
//! where the stricter question has no answer.
//!
//! Each is a query to the engine, and most often few are asked of a read. What its thread needs to
//! get to the read refutes kinds 1 and 3 for all challengers if it includes the writer. Of kinds 1
//! and 3 a run serves the earlier writes of the challenger's thread too, so a search in halves finds
//! the last feasible one (`earlier`). Of kind 2 weaker questions narrow the challengers down, and
//! those that are left are asked in blocks, a block being feasible if its first comes after the
//! writer and its last before the read (`between`): in the worst case a query for each challenger.
//! Every run that is found answers for all challengers that it runs.
//!
//! In `prefix`, the queries of kind 1 in full need to know what needs what if the read may see
//! anything, which takes a pass over the trace for each read that has any.

mod between;
mod earlier;

use reweave_order::mhb::MustHappenBefore;
use reweave_reorder::{Answer, Query, Solver, View};
use reweave_trace::{EventId, Reordering, Trace, VarId};

use crate::accesses::{Accesses, ReadsFrom};
use crate::verdicts::{ReadVerdicts, Verdicts};
use crate::witness::{Mode, WitnessKind};

/// Decides the witnesses of one read after the other. Each worker has its own.
#[derive(Debug)]
pub(crate) struct Runs<'a, 't> {
    accesses: &'a Accesses<'t>,
    solver: Solver<'a, 't>,
    needs: &'a MustHappenBefore<'t>,
    mode: Mode,
    /// Work that is left for the read at hand.
    work_left: u64,
}

/// What one question came to.
#[derive(Clone, Debug)]
enum Asked {
    Found(Reordering),
    None,
    Unknown,
}

impl<'a, 't> Runs<'a, 't> {
    pub(crate) fn new(accesses: &'a Accesses<'t>, solver: Solver<'a, 't>, mode: Mode) -> Self {
        let needs = solver.engine().mhb();
        Self { accesses, solver, needs, mode, work_left: 0 }
    }

    /// Decides all witnesses of `couple`, in mode `order` those of kind 3 only, within about `work`
    /// steps; gives the work that was done.
    pub(crate) fn decide(
        &mut self,
        couple: &ReadsFrom,
        work: u64,
        verdicts: &mut ReadVerdicts,
    ) -> u64 {
        self.start(work);
        let [after, between, absent] = &mut verdicts.kinds;
        if let Some(writer) = couple.writer {
            self.decide_absent(couple, writer, absent);
        }
        if self.mode != Mode::Order {
            if let Some(writer) = couple.writer {
                self.decide_after(couple, writer, absent, after);
            }
            self.decide_between(couple, between);
        }
        work - self.work_left
    }

    /// Kind 2 for the implicit read of `var` at the end of the run, which saw `writer`, as
    /// [`Runs::decide`] does.
    ///
    /// All events happen, and all reads see what they saw. What comes after the writer is easier the
    /// later it is in its thread.
    pub(crate) fn decide_final(
        &mut self,
        var: VarId,
        writer: EventId,
        work: u64,
        verdicts: &mut ReadVerdicts,
    ) -> u64 {
        self.start(work);
        let trace = self.trace();
        let all = self.accesses.last_events();
        let verdicts = verdicts.of_mut(WitnessKind::Between);
        for (at, line) in (0..).zip(self.accesses.lines(var)) {
            let writes = self.accesses.writes(line);
            let needed = self.needs.past(writer).get(line.thread);
            let mut low = writes.partition_point(|&write| trace.position(write) < needed);
            let (mut high, mut is_known) = (writes.len(), true);
            while low < high {
                let probe = low + (high - low) / 2;
                let order = vec![(writer, writes[probe])];
                match self.ask(&Query { must: all.clone(), order, ..Query::default() }) {
                    Asked::Found(_) => high = probe,
                    Asked::None => low = probe + 1,
                    Asked::Unknown => {
                        is_known = false;
                        break;
                    }
                }
            }
            verdicts.feasible.push(at, high as u32..writes.len() as u32);
            if !is_known {
                verdicts.unknown.push(at, low as u32..high as u32);
            }
        }
        work - self.work_left
    }

    fn start(&mut self, work: u64) {
        self.work_left = work;
        self.solver.forget();
    }

    fn trace(&self) -> &'t Trace {
        self.accesses.trace()
    }

    fn ask(&mut self, query: &Query) -> Asked {
        if self.work_left == 0 {
            return Asked::Unknown;
        }
        self.solver.limit(self.work_left);
        let answer = self.solver.solve(query);
        self.work_left = self.work_left.saturating_sub(self.solver.take_work());
        match answer {
            Answer::Feasible(run) => Asked::Found(run),
            Answer::Infeasible(_) => Asked::None,
            Answer::Unknown => Asked::Unknown,
        }
    }

    /// Whether `late` needs `early`.
    fn is_needed(&self, early: EventId, late: EventId) -> bool {
        let thread = self.trace().event(early).thread;
        self.needs.past(late).get(thread) > self.trace().position(early)
    }

    /// How many of `writes`, which are one thread's, can happen before `event`.
    fn count_without(&self, writes: &[EventId], event: EventId) -> u32 {
        writes.partition_point(|&write| !self.is_needed(event, write)) as u32
    }

    /// Kind 3.
    fn decide_absent(&mut self, couple: &ReadsFrom, writer: EventId, verdicts: &mut Verdicts) {
        let trace = self.trace();
        let before = self.needs.before(couple.read);
        if before.get(trace.event(writer).thread) > trace.position(writer) {
            return;
        }
        let lines = self.accesses.lines(couple.var).iter();
        let limits: Vec<u32> = lines
            .map(|line| {
                let writes = self.accesses.writes(line);
                self.count_without(writes, couple.read).min(self.count_without(writes, writer))
            })
            .collect();
        let relaxed = self.mode == Mode::Order;
        self.decide_earlier(couple, &limits, verdicts, |runs, interfering| {
            runs.ask(&Query {
                must: interfering.into_iter().collect(),
                absent: vec![writer],
                enabled: vec![couple.read],
                relaxed,
                ..Query::default()
            })
        });
    }

    /// Kind 1: what shows it also shows kind 3, if it is cut off before the writer.
    fn decide_after(
        &mut self,
        couple: &ReadsFrom,
        writer: EventId,
        absent: &Verdicts,
        verdicts: &mut Verdicts,
    ) {
        if !absent.feasible.initial && !absent.unknown.initial {
            return;
        }
        let mut limits = vec![0; self.accesses.lines(couple.var).len()];
        for (line, range) in absent.feasible.ranges.iter().chain(&absent.unknown.ranges) {
            limits[*line as usize] = limits[*line as usize].max(range.end);
        }
        self.decide_earlier(couple, &limits, verdicts, |runs, interfering| {
            runs.ask_after(couple.read, writer, interfering)
        });
    }

    fn ask_after(&mut self, read: EventId, writer: EventId, interfering: Option<EventId>) -> Asked {
        // A writer that reads must find what it saw, so that it matters where the read stands.
        if !self.trace().event(writer).op.is_read() {
            let must = interfering.into_iter().collect();
            let asked = self.ask(&Query { must, enabled: vec![read, writer], ..Query::default() });
            if self.mode == Mode::Strict || !matches!(asked, Asked::None) {
                return asked;
            }
        }
        let mut order: Vec<(EventId, EventId)> =
            interfering.into_iter().map(|write| (write, read)).collect();
        order.push((read, writer));
        let stop = if self.mode == Mode::Strict { vec![read] } else { Vec::new() };
        self.ask(&Query { order, views: vec![(read, View::Any)], stop, ..Query::default() })
    }
}
